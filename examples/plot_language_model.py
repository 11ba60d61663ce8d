"""
A language model, subject by subject
====================================

A model answers multiple-choice questions and gives a log-likelihood to each choice. On average the data cannot tell
whether it is over-confident. In law it is far too sure, and users of that part should know it.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(0)
n = 6000
subjects = ["algebra", "anatomy", "astronomy", "contracts", "geography", "history"]
subject = rng.choice(subjects, n)
p = rng.dirichlet(np.ones(4), n)
right = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
times = np.where(subject == "contracts", 3.0, np.where(subject == "history", 0.6, 0.95))
log_likelihood = times[:, None] * np.log(p) - 12.0  # any constant goes: four choices are compared

result = safecal.evaluate(right, logits=log_likelihood, by=subject)
print(f"accuracy {result.accuracy:.2f}, ECD {result.ecd:+.3f} nat")
print(result.verdict)

# %%
# Left: all subjects together. Right: each subject, with bounds that hold for all of them together.

figure, (left, right_) = plt.subplots(1, 2, figsize=(12, 5.8), layout="constrained", width_ratios=[1, 1.2])
plot.ReliabilityDisplay.from_evaluation(result, ax=left)
left.set_title("All subjects together", loc="left", pad=44, fontweight="bold")
plot.GroupsDisplay.from_evaluation(result, ax=right_)
right_.set_title("By subject", loc="left", pad=32, fontweight="bold")
plt.show()
