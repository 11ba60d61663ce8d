"""
Zeros and ones
==============

The trees of a forest often all agree, and then the forest says exactly 0 or 1: it calls the other outcome impossible.
If that outcome happens once, the surprise is infinite, and no number of rows can rule that out. So such predictions are
never SAFE.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import safecal
from safecal import plot

X, y = load_breast_cancer(return_X_y=True)
forest = RandomForestClassifier(25, random_state=0)
p = cross_val_predict(forest, X, y, cv=3, method="predict_proba")[:, 1]

result = safecal.evaluate(y, p)
print(f"{result.n_certain} of {result.n} predictions are exactly 0 or 1")
print(f"{result.summary.n_impossible} of them were wrong")
print(result.verdict)

# %%
# Twenty-five trees that agree are no proof. Laplace's rule adds one vote for each side, so that the forest never says
# exactly 0 or 1.

smooth = (25 * p + 1) / (25 + 2)
honest = safecal.evaluate(y, smooth)
print(honest.verdict)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.6), layout="constrained")
left.hist(p, np.linspace(0, 1, 41), color="#7f7f7f")
left.hist(p[(p == 0) | (p == 1)], np.linspace(0, 1, 41), color="#d55e00", label="exactly 0 or 1")
left.set_yscale("log")
left.set_xlabel("predicted probability")
left.set_ylabel("rows")
left.set_title("Most rows are called certain", loc="left", fontweight="bold")
left.legend()
plot.ReliabilityDisplay.from_evaluation(honest, ax=right)
right.set_title("With one more vote for each side", loc="left", pad=44, fontweight="bold")
plt.show()
