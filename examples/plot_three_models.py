"""
Three models that ECE cannot tell apart
=======================================

Is a handwritten digit 5 or more? Three models answer. The expected calibration error (ECE) gives two of them about the
same value, though one is far too sure of itself and the other one is not sure enough.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import safecal
from safecal import plot

pixels, digit = load_digits(return_X_y=True)
y = digit >= 5

models = {
    "naive Bayes": MultinomialNB(),
    "random forest": RandomForestClassifier(40, min_samples_leaf=20, random_state=0),
    "logistic regression": make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=2000)),
}

# %%
# Each row is predicted by a model that has not seen it. Logarithms keep what would be rounded to 1.

results = {}
for name, model in models.items():
    log_p = cross_val_predict(model, pixels, y, cv=3, method="predict_log_proba")
    results[name] = safecal.evaluate(y, logits=log_p[:, 1] - log_p[:, 0])

print("model                 ECE     ECD  decision")
for name, result in results.items():
    print(f"{name:20} {result.ece:.2f}  {result.ecd:+.2f}  {result.verdict.decision}, {result.verdict.direction}")

# %%
# Naive Bayes counts the same stroke of the pen many times, so it is over-confident. A forest averages trees that
# disagree, so it is right more often than it says. ECE has no sign; ECD has one.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 6), layout="constrained")
for name, result in results.items():
    plot.ReliabilityDisplay.from_evaluation(result, ax=left, name=name)
for y, result in enumerate(results.values()):
    right.barh(y - 0.2, result.ece, 0.36, color="#7f7f7f", label="ECE" if y == 0 else None)
    right.barh(
        y + 0.2,
        result.ecd,
        0.36,
        color="#d55e00" if result.ecd > 0 else "#0072b2",
        label="ECD, nat" if y == 0 else None,
    )
right.axvline(0, color="black", lw=1)
right.set_yticks(range(3), results)
right.invert_yaxis()
right.set_xlabel("← under-confident     ECD     over-confident →")
right.legend()
plt.show()
