"""
Compare two models
==================

A new model has a lower ECD. Is it less over-confident because it predicts better, or because it says less? ``compare``
compares both models row by row, and NLL answers the question.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal

rng = np.random.default_rng(2)
log_odds = rng.normal(0, 2, 2000)
y_true = rng.random(2000) < 1 / (1 + np.exp(-log_odds))
present = safecal.bernoulli(y_true, logits=1.5 * log_odds)  # over-confident
vaguer = safecal.bernoulli(y_true, logits=0.4 * log_odds)  # says less
better = safecal.bernoulli(y_true, logits=log_odds)  # calibrated

for name, other in (("vaguer", vaguer), ("better", better)):
    comparison = safecal.compare(present, other)
    print(f"present (a) and {name} (b): {comparison.verdict}")

# %%
# The differences with their intervals, and each model by itself.

sides = safecal.compare(present.evaluate(), better.evaluate())
safecal.compare(present, better).plot(sides=sides)
plt.show()
