"""
For whom is it over-confident?
==============================

Harm hides in combinations that nobody thought of. ``find_slices`` looks at conditions on the features, and at pairs of
them, on one half of the rows, and estimates what it finds on the other half.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(0)
n = 16_000
patients = {
    "age": rng.integers(20, 90, n),
    "site": rng.choice(["north", "south", "east", "west"], n),
    "device": rng.choice(["A", "B"], n),
}
log_odds = rng.normal(0, 2, n)
y_true = rng.random(n) < 1 / (1 + np.exp(-log_odds))

# %%
# Two faults are planted: an old device at one site, and the very old.

device = (patients["site"] == "east") & (patients["device"] == "B")
old = patients["age"] >= 80
logits = np.where(device, 3.0, np.where(old, 2.5, 1.0)) * log_odds

predictions = safecal.bernoulli(y_true, logits=logits)
slices = safecal.find_slices(predictions, patients)
print(slices)

# %%
# Intervals of all slices hold together. Each slice comes as a condition to paste into SQL, Polars or pandas.

print(slices[0].sql)

figure, ax = plt.subplots(figsize=(9.5, 3.4), layout="constrained")
plot.SlicesDisplay.from_slices(slices, ax=ax)
plt.show()
