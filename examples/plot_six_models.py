"""
Six models, five measures
=========================

Which calibration measure when? Six models predict the same events, and five measures judge them: ECE, smooth ECE, the
Brier score, NLL and ECD.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import safecal

rng = np.random.default_rng(0)
n = 20_000
log_odds = rng.normal(0, 2, n)
y_true = rng.random(n) < 1 / (1 + np.exp(-log_odds))
models = {
    "calibrated": log_odds,
    "too sharp": 2.0 * log_odds,
    "too vague": 0.5 * log_odds,
    "both, by turns": np.where(rng.random(n) < 0.3, 2.0, 0.45) * log_odds,
    "always one half": np.zeros(n),
    "rarely, wildly sure": np.where(rng.random(n) < 0.02, rng.choice([-9.0, 9.0], n), log_odds),
}


def smooth_ece(y_true, y_prob):
    """Return the smooth ECE: a Gaussian kernel instead of bins, as wide as the error that it then shows."""
    grid = (np.arange(250) + 0.5) / 250
    cell = np.minimum((250 * y_prob).astype(int), 499)
    gap = np.bincount(cell, weights=y_true - y_prob, minlength=250) / len(y_prob)
    low, high = 0.0, 1.0
    for _ in range(11):
        width = (low + high) / 2
        kernel = sum(norm.pdf(grid[:, None], centre, width) for centre in (grid, -grid, 2 - grid))
        error = np.abs(kernel @ gap).mean()
        low, high = (width, high) if error > width else (low, width)
    return width


# %%
# Smaller is better for the first four. ECD has a sign: above 0 the model is over-confident.

measures = ["ECE", "smooth ECE", "Brier", "NLL", "ECD"]
table = {}
print(f"{'model':20}" + "".join(f"{name:>11}" for name in measures) + "  verdict")
for name, logits in models.items():
    result = safecal.evaluate(y_true, logits=logits)
    smooth = smooth_ece(y_true, 1 / (1 + np.exp(-logits)))
    table[name] = [result.ece, smooth, result.brier, result.nll, result.ecd]
    print(f"{name:20}" + "".join(f"{value:11.3f}" for value in table[name]) + f"  {result.verdict.decision}")

# %%
# ECE and smooth ECE cannot tell sharp from vague, and are smallest for the model that says nothing. Brier and NLL show
# that it says nothing, but they mix how much a model knows with whether its confidence is right. ECD has a sign, and
# shows the wild rows. The faults of the fourth model cancel in its mean; for that reason the verdict also looks at
# ranges.

figure, axes = plt.subplots(1, 5, figsize=(13, 3.8), sharey=True, layout="constrained")
for k, (ax, measure) in enumerate(zip(axes, measures, strict=True)):
    values = np.array([row[k] for row in table.values()])
    colors = np.where(values < -0.02, "#0072b2", np.where(values > values[0] + 0.005, "#d55e00", "#7f7f7f"))
    ax.bar_label(ax.barh(range(6), values, color=colors, height=0.7), fmt="%.3f", padding=4)
    ax.axvline(0, color="black", lw=1)
    ax.margins(x=0.4)
    ax.set_title(measure, loc="left", fontweight="bold")
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom", "left"]].set_visible(False)
    ax.tick_params(length=0)
axes[0].set_yticks(range(6), table)
axes[0].invert_yaxis()
plt.show()
