"""
Choose a map that fixes it
==========================

``recalibrate`` tries several maps, functions that correct the predictions, and judges each on rows that it was not
fitted to. It takes the simplest map that is as good as the best, and then rules over-confidence out.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(0)
log_odds = rng.normal(0, 2, 6000)
happened = rng.random(6000) < 1 / (1 + np.exp(-(0.6 * log_odds + 1.2)))
fit, fresh = slice(0, 3000), slice(3000, None)

fixed = safecal.recalibrate(happened[fit], logits=log_odds[fit])
print(fixed)

# %%
# Judge the map on rows that played no part in choosing it.

before = safecal.evaluate(happened[fresh], logits=log_odds[fresh])
after = safecal.evaluate(happened[fresh], fixed.apply(logits=log_odds[fresh]))
print("before:", before.verdict)
print("after: ", after.verdict)

plot.RecalibrationDisplay.from_evaluations(before, after)
plt.show()
