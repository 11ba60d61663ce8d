"""
A tracker that believes in straight lines
=========================================

A Kalman filter follows a target that turns. One filter allows for turns, the other one hardly does: its covariances are
too small, and it falls behind. NEES over time shows it, with the band of a consistent filter.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(0)
runs, steps = 60, 40
move = np.array([[1.0, 1.0], [0.0, 1.0]])  # position and speed
jerk = np.array([[0.25, 0.5], [0.5, 1.0]]) + 1e-9 * np.eye(2)
see = np.array([[1.0, 0.0]])


def simulated():
    """Return true states and measurements, one row a run and step."""
    state = rng.normal(size=(runs, 2))
    states, seen = [], []
    for _ in range(steps):
        state = state @ move.T + 0.5 * rng.normal(size=(runs, 1)) * [0.5, 1.0]
        states.append(state)
        seen.append(state[:, :1] + rng.normal(size=(runs, 1)))
    return np.array(states), np.array(seen)


def filtered(seen, noise):
    """Return means and covariances of a Kalman filter whose process noise is ``noise``."""
    mean, cov, means, covs = np.zeros((runs, 2)), np.eye(2), [], []
    for z in seen:
        mean, cov = mean @ move.T, move @ cov @ move.T + noise**2 * jerk
        gain = cov @ see.T / (see @ cov @ see.T + 1.0)
        mean, cov = mean + (z - mean @ see.T) @ gain.T, cov - gain @ see @ cov
        means.append(mean)
        covs.append(np.broadcast_to(cov, (runs, 2, 2)))
    return np.array(means), np.array(covs)


truth, seen = simulated()
step, run = np.repeat(np.arange(steps), runs), np.tile(np.arange(runs), steps)

# %%
# The states of one run depend on each other, but the runs do not. So the verdict uses the means of runs.

figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
for name, noise, color in (("allows for turns", 0.5, "#0072b2"), ("hardly does", 0.2, "#d55e00")):
    mean, cov = filtered(seen, noise)
    states = safecal.gaussian(truth.reshape(-1, 2), mean.reshape(-1, 2), cov=cov.reshape(-1, 2, 2))
    consistency = safecal.assess_consistency(states, run=run, step=step)
    first = name == "allows for turns"
    plot.ConsistencyDisplay.from_consistency(consistency, scale="NEES", ax=ax, color=color, label=name, band=first)
    print(f"{name}: {consistency.verdict}")
plt.show()
