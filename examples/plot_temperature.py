"""
What a temperature fixes, and what it does not
==============================================

Dividing all logits by one number fixes a model that is too sharp. It does not fix a shifted model, whose event has
become more common than it says. The diagnosis tells the two apart.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(3)
log_odds = rng.normal(-1, 2, 8000)
chance = rng.random(8000)
fit, fresh = slice(0, 4000), slice(4000, None)
truths = {
    "too sharp": chance < 1 / (1 + np.exp(-log_odds / 2)),
    "shifted": chance < 1 / (1 + np.exp(-1.5 - log_odds)),
}

figure, axes = plt.subplots(1, 2, figsize=(10.5, 5.6), layout="constrained")
for ax, (name, y_true) in zip(axes, truths.items(), strict=True):
    before = safecal.evaluate(y_true[fresh], logits=log_odds[fresh])
    safe = safecal.SafeTemperature().fit(y_true[fit], logits=log_odds[fit])
    after = safecal.evaluate(y_true[fresh], safe.apply(logits=log_odds[fresh]))
    print(f"{name}: the diagnosis is '{before.verdict.diagnosis.cause}'")
    print(f"  before     {before.verdict.decision:12}  NLL {before.nll:.3f}")
    print(f"  T = {safe.temperature_:.2f}   {after.verdict.decision:12}  NLL {after.nll:.3f}")
    plot.ReliabilityDisplay.from_evaluation(before, ax=ax, name="before")
    plot.ReliabilityDisplay.from_evaluation(after, ax=ax, name=f"after, T = {safe.temperature_:.2f}")
    ax.set_title(name, loc="left", pad=32, fontweight="bold")
plt.show()

# %%
# The temperature makes the shifted model vaguer until over-confidence is ruled out. It is safe then, but its points are
# still off the line, and its NLL is far worse than with a slope and a shift.

line = safecal.maps.Affine().fit(truths["shifted"][fit], logits=log_odds[fit])
mended = safecal.evaluate(truths["shifted"][fresh], line.apply(logits=log_odds[fresh]))
print(f"slope {line.slope_:.2f}, shift {line.shift_:+.2f}: {mended.verdict.decision}, NLL {mended.nll:.3f}")
