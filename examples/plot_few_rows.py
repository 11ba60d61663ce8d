"""
Few rows: undetermined, and how many are needed
===============================================

With 100 rows, a calibrated model is neither SAFE nor UNSAFE, because over-confidence is not ruled out yet. Before you
pay for labels, ``rows_needed`` estimates from the predictions how many rows a decision needs.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal

rng = np.random.default_rng(11)
log_odds = rng.normal(0, 2, 6400)
y_true = rng.random(6400) < 1 / (1 + np.exp(-log_odds))

print(safecal.evaluate(y_true[:100], logits=log_odds[:100]).verdict)
needed = safecal.rows_needed(safecal.bernoulli(y_true[:100], logits=log_odds[:100]))
print(needed)

# %%
# As rows come in, the interval of ECD narrows, until its upper end is within the limit.

sizes = [50, 100, 200, 400, 800, 1600, 3200, 6400]
results = [safecal.evaluate(y_true[:n], logits=log_odds[:n]) for n in sizes]
looks = {"SAFE": ("#0072b2", "o"), "UNDETERMINED": ("#7f7f7f", "s"), "UNSAFE": ("#d55e00", "D")}

figure, ax = plt.subplots(figsize=(8.6, 4.8), layout="constrained")
for n, result in zip(sizes, results, strict=True):
    decision, ecd = result.verdict.decision, result.interval
    color, marker = looks[decision]
    ax.errorbar(n, ecd.value, [[ecd.value - ecd.low], [ecd.high - ecd.value]],
                fmt=marker, color=color, capsize=4, ms=8, label=decision)  # fmt: skip
ax.axhline(0, color="black", lw=1)
ax.axhline(0.1, color="black", lw=1, ls="--")
ax.text(sizes[-1], 0.105, "allowed", ha="right", va="bottom")
ax.axvline(needed.on_average, color="#7f7f7f", lw=1, ls=":")
ax.text(1.03 * needed.on_average, ax.get_ylim()[0], f" {needed.on_average} rows were reckoned", va="bottom")
ax.set_xscale("log")
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.minorticks_off()
ax.set_xlabel("rows")
ax.set_ylabel("ECD, nat")
handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
ax.legend(handles.values(), handles.keys())
plt.show()
