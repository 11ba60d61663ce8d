"""
A robot's poses, axis by axis
=============================

An estimator gives a pose and a 6 × 6 covariance. This robot's errors are as large as it says, except along the forward
axis, where they are twice as large. Six axes together would hide much of that, so safecal also judges each axis.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation

import safecal

rng = np.random.default_rng(0)
runs, steps = 60, 20
run, step = np.repeat(np.arange(runs), steps), np.tile(np.arange(steps), runs)

truth = np.tile(np.eye(4), (runs * steps, 1, 1))
truth[:, :3, :3] = Rotation.from_euler("z", 0.3 * step[:, None]).as_matrix()
truth[:, :2, 3] = 5.0 * np.stack([np.sin(0.3 * step), -np.cos(0.3 * step)], axis=1)

deviation = np.array([0.01, 0.01, 0.02, 0.1, 0.1, 0.05])  # rotation x, y, z, then forward, left, up
error = deviation * [1, 1, 1, 2, 1, 1] * rng.normal(size=(runs * steps, 6))
moved = np.tile(np.eye(4), (runs * steps, 1, 1))
moved[:, :3, :3], moved[:, :3, 3] = Rotation.from_rotvec(error[:, :3]).as_matrix(), error[:, 3:]
estimate = truth @ np.linalg.inv(moved)

# %%
# You must name what the six numbers mean; safecal never guesses it.

poses = safecal.poses(truth, estimate, np.diag(deviation**2), side="right", first="rotation")
consistency = safecal.assess_consistency(poses, run=run, step=step)
print(consistency.verdict)

looks = consistency.verdict.looks
for look in looks:
    print(f"{look.look.name:12} {look.decision:13} T {look.temperature.value:.2f}")

# %%
# The factor by which each covariance is too small, with its interval; 1 is right, 1.5 is allowed.

names = [look.look.name for look in looks]
value = np.array([look.temperature.value for look in looks])
ends = np.array([[look.temperature.low, look.temperature.high] for look in looks]).T
unsafe = np.array([look.decision == "UNSAFE" for look in looks])

figure, ax = plt.subplots(figsize=(8.4, 4.4), layout="constrained")
at = np.arange(len(names))
for mask, color, marker, label in ((unsafe, "#d55e00", "D", "UNSAFE"), (~unsafe, "#0072b2", "o", "not UNSAFE")):
    spans = np.abs(ends - value)[:, mask]
    ax.errorbar(value[mask], at[mask], xerr=spans, fmt=marker, color=color, capsize=3, label=label)
ax.axvline(1.0, color="black", lw=1)
ax.axvline(1.5, color="black", lw=1, ls="--")
ax.set_yticks(at, names)
ax.invert_yaxis()
ax.set_xscale("log")
ax.set_xticks([0.8, 1, 1.5, 2, 3, 4], ["0.8", "1", "1.5", "2", "3", "4"])
ax.minorticks_off()
ax.set_xlabel("times too small: 1 is right, 1.5 is allowed")
ax.set_title("Forward errors are twice as large as stated", fontweight="bold", loc="left")
ax.legend()
plt.show()
