"""
Rows of one patient are not independent
=======================================

Fifty visits of one patient have much in common. If you treat them as independent rows, the interval is too narrow, and
a calibrated model can be called unsafe. Name the patients with ``cluster=``.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal

rng = np.random.default_rng(3)
patients, visits = 60, 50


def study():
    """Return outcomes and log-odds of a model that is calibrated over all patients there are."""
    p = rng.uniform(0.05, 0.95, patients)
    shared = rng.random(patients) < p  # what a patient's visits mostly show
    own = rng.random((patients, visits)) < p[:, None]
    y = np.where(rng.random((patients, visits)) < 0.7, shared[:, None], own)
    logits = np.broadcast_to(np.log(p / (1 - p))[:, None], y.shape)
    return y.ravel(), logits.ravel()


patient = np.repeat(np.arange(patients), visits)

# %%
# Twenty studies of the same calibrated model: 60 patients with 50 visits each. Its ECD is 0, and 19 of 20 intervals
# should hold that.

studies = [study() for _ in range(20)]
as_rows = [safecal.evaluate(y, logits=z) for y, z in studies]
as_patients = [safecal.evaluate(y, logits=z, cluster=patient) for y, z in studies]

figure, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True, sharex=True, layout="constrained")
for ax, name, results in zip(axes, ("3000 rows", "60 patients"), (as_rows, as_patients), strict=True):
    holds = 0
    for k, result in enumerate(results):
        ecd = result.interval
        hit = ecd.low <= 0 <= ecd.high
        holds += hit
        ax.hlines(k, ecd.low, ecd.high, color="#0072b2" if hit else "#d55e00", lw=2.5)
        ax.plot(ecd.value, k, marker="o" if hit else "D", color="#0072b2" if hit else "#d55e00", ms=5)
    false = sum(result.verdict.decision == "UNSAFE" for result in results)
    ax.axvline(0, color="black", lw=1)
    ax.set_title(f"Taken as {name}: {holds} of 20 hold 0", fontweight="bold", loc="left")
    ax.set_xlabel("ECD with its 95 % interval, nat")
    print(f"taken as {name}: {holds} of 20 intervals hold the truth, {false} of 20 verdicts are UNSAFE")
axes[0].set_ylabel("study")
axes[0].set_yticks([])
plt.show()
