"""
Error bars that are too small
=============================

A forest predicts a number, and the disagreement of its trees is often used as an error bar. But the trees disagree
about the mean, while outcomes scatter around the mean. So the bars are too small, and the histogram of the ranks shows
it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

import safecal
from safecal import plot

rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, (1600, 1))
y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=1600)
train, test = slice(0, 600), slice(600, None)

forest = RandomForestRegressor(60, min_samples_leaf=5, oob_score=True, random_state=0).fit(x[train], y[train])
trees = np.array([tree.predict(x[test]) for tree in forest.estimators_])
mean, std = trees.mean(axis=0), trees.std(axis=0)

# %%
# A better bar is the scatter of the out-of-bag errors: how far outcomes are from the trees that have not seen them. It
# is the same for every row.

scatter = np.std(y[train] - forest.oob_prediction_)
results = {
    "How far trees disagree": safecal.gaussian(y[test], mean, std=std).evaluate(),
    "How far outcomes scatter": safecal.gaussian(y[test], mean, std=scatter).evaluate(),
}
for name, result in results.items():
    print(f"{name}: {result.verdict.decision}")
    print(f"  {result.forecast.said}")
    for held in result.forecast.coverage:
        print(f"  intervals of {held.level:.0%} hold {held.share.value:.0%} of the outcomes")

# %%
# The probability integral transform of each outcome: flat if the bars are right, a U if they are too small.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    plot.TransformDisplay.from_evaluation(result, ax=ax)
    ax.set_title(name, loc="left", pad=20, fontweight="bold")
plt.show()
