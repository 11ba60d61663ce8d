"""
For whom is it over-confident?
==============================

``find_slices`` searches conditions on the features, and pairs of conditions, on one half of the rows. It estimates what
it finds on the other half. So it also finds combinations that nobody thought of.
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
# We plant two faults: an old device at one site, and patients of 80 years or more.

device = (patients["site"] == "east") & (patients["device"] == "B")
old = patients["age"] >= 80
logits = np.where(device, 3.0, np.where(old, 2.5, 1.0)) * log_odds

predictions = safecal.bernoulli(y_true, logits=logits)
slices = safecal.find_slices(predictions, patients)
print(slices)

# %%
# The intervals of all slices hold together. Each slice has its condition for SQL, Polars and pandas.

print(slices[0].sql)

figure, ax = plt.subplots(figsize=(9.5, 3.4), layout="constrained")
plot.SlicesDisplay.from_slices(slices, ax=ax)
plt.show()
