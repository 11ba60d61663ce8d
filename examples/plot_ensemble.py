"""
An ensemble whose modes are too narrow
======================================

A forecast has two modes: it will go left or right. Both modes are in the right place, but each is three times too
narrow. The mean and the variance of the ensemble are right, so a measure that uses only these two sees no fault.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(1)
n, members = 800, 50
truth = 2.0 * rng.choice([-1, 1], n) + 0.3 * rng.normal(size=n)
draws = 2.0 * rng.choice([-1, 1], (n, members)) + 0.1 * rng.normal(size=(n, members))

result = safecal.ensemble(truth, draws).evaluate()
for look in result.verdict.looks:
    print(f"{look.look.name:12} {look.decision:13} ECD {look.ecd.value:+.2f}")
print(result.verdict)

# %%
# If the forecast is right, the outcome is like one more draw. So safecal also compares each point with its neighbours
# among the others, which shows any shape. The ranks show the fault, too: outcomes fall outside of both modes, or
# between them.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
bins = np.linspace(-3.2, 3.2, 97)
left.hist(draws.ravel(), bins, density=True, color="#d55e00", alpha=0.8, label="draws")
left.hist(truth, bins, density=True, histtype="step", color="black", lw=1.4, label="outcomes")
left.set_title("Right places, wrong width", loc="left", fontweight="bold")
left.set_xlabel("outcome")
left.set_ylabel("density")
left.legend()
plot.TransformDisplay.from_evaluation(result, ax=right)
right.set_title("Where outcomes fall among the draws", loc="left", pad=20, fontweight="bold")
plt.show()
