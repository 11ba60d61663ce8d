"""
Right on average, over-confident in places
==========================================

A mean can be 0 because two faults cancel. This model is over-confident in 30 % of its predictions and under-confident
in the others. On average it is safe, but not for people who act on its surest predictions.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(2025)
log_odds = rng.normal(0, 2, 20_000)
y_true = rng.random(20_000) < 1 / (1 + np.exp(-log_odds))
times = np.where(rng.random(20_000) < 0.3, 2.0, 0.45)  # how many times too large its logits are

result = safecal.evaluate(y_true, logits=times * log_odds)
print(f"ECD {result.ecd:+.3f} nat on average")
print(safecal.evaluate(y_true, logits=times * log_odds, rule="average").verdict.decision, "by the average alone")
print(result.verdict)

# %%
# The verdict also looks at ranges of the predictions. The bounds hold for all ranges together, so a range is not named
# by chance.

for place in result.verdict.where:
    print(place)

figure, ax = plt.subplots(figsize=(9, 5), layout="constrained")
plot.LocalDisplay.from_evaluation(result, ax=ax)
plt.show()
