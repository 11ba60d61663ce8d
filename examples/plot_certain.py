"""
Zeros and ones
==============

A forest of deep trees is often unanimous, and then says 0 or 1: that the other outcome is impossible. One failure there
is an infinite surprise, and no number of rows rules it out. So such predictions are never SAFE.
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
# Twenty-five trees that agree are not a certainty. With one more vote for each side (Laplace's rule) the same forest
# says what twenty-five trees can know.

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
