"""
Reliability diagrams of several models
======================================

To draw several models on the same axes, give each a name. The grey bars show where the bins of a calibrated model are
by chance, so that you do not take noise for a fault.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(7)
log_odds = rng.normal(0, 2, 3000)
y_true = rng.random(3000) < 1 / (1 + np.exp(-log_odds))
models = {"honest": log_odds, "too modest": 0.6 * log_odds, "too sure": 2.2 * log_odds}

figure, ax = plt.subplots(figsize=(6.4, 6.8), layout="constrained")
for name, logits in models.items():
    plot.ReliabilityDisplay.from_predictions(y_true, logits=logits, ax=ax, name=name)
plt.show()

# %%
# The temperature says the same in one number for each model, with an interval: 2.2 means that the logits should be
# divided by 2.2.

figure, ax = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
for name, logits in models.items():
    result = safecal.evaluate(y_true, logits=logits)
    plot.TemperatureDisplay.from_evaluation(result, ax=ax, name=name)
    T = result.temperature
    print(f"{name:10}  T {T.value:.2f} ({T.low:.2f} to {T.high:.2f})  {result.verdict.decision}")
plt.show()
