"""
Rare events: few nats, many harmed
==================================

A model says that a failure happens about once in a thousand cases, but it happens six times as often. ECD is small,
because failures are rare. So the verdict also counts mistakes: how many were made, divided by how many were announced.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal

rng = np.random.default_rng(4)
n = 40_000
logits = rng.normal(-7.5, 0.8, n)
y_true = rng.random(n) < np.minimum(6 / (1 + np.exp(-logits)), 1)

result = safecal.evaluate(y_true, logits=logits)
mistakes = result.mistakes
print(f"ECD {result.ecd:+.4f} nat, where {result.verdict.allowed:g} is allowed; ECE {result.ece:.4f}")
print(f"{mistakes.seen:.0f} failures, where {mistakes.announced:.0f} were announced")
print(result.verdict)

# %%
# The same model on three scales, each divided by its limit: only the ratio of mistakes shows the fault.

scales = {
    "ECD, limit 0.1 nat": (result.interval, 0.1),
    "temperature, limit 1.5": (result.temperature, 1.5),
    "ratio of mistakes, limit 3": (mistakes.ratio, 3.0),
}
figure, ax = plt.subplots(figsize=(8.6, 3.2), layout="constrained")
for y, (interval, limit) in enumerate(scales.values()):
    beyond = interval.low > limit
    color = "#d55e00" if beyond else "#0072b2"
    ax.hlines(y, interval.low / limit, interval.high / limit, color=color, lw=3)
    ax.plot(interval.value / limit, y, marker="D" if beyond else "o", color=color, ms=8)
ax.axvline(1.0, color="black", lw=1, ls="--")
ax.text(1.02, -0.4, "limit", va="center")
ax.set_yticks(range(3), scales)
ax.set_ylim(2.5, -0.6)
ax.set_xlim(0, 3)
ax.set_xlabel("estimate and interval, in units of the limit")
plt.show()
