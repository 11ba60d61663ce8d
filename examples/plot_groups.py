"""
Groups, each with a verdict
===========================

With ``by=`` each group has the same limits as the average. The bounds hold for all groups together, so no group is
called unsafe only because there are many groups. Groups that are too small to judge are named.
"""

import matplotlib.pyplot as plt
import numpy as np

import safecal
from safecal import plot

rng = np.random.default_rng(5)
share = {"Aberdeen": 0.3, "Bath": 0.25, "Cork": 0.2, "Derby": 0.15, "Exeter": 0.095, "Fife": 0.005}
site = rng.choice(list(share), 12_000, p=list(share.values()))
log_odds = rng.normal(0, 2, 12_000)
y_true = rng.random(12_000) < 1 / (1 + np.exp(-log_odds))
times = np.select([site == "Cork", site == "Derby"], [0.6, 2.2], 1.0)

result = safecal.evaluate(y_true, logits=times * log_odds, by=site)
print(result.verdict)
for name in result.groups.keys:
    verdict = result.group_verdict(name)
    print(f"{name:9} {verdict.decision:13} ECD {verdict.ecd.low:+.2f} to {verdict.ecd.high:+.2f}")

# %%
# Derby is beyond the limit, Cork is under-confident, and Fife has too few rows to judge.

figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
plot.GroupsDisplay.from_evaluation(result, ax=ax)
plt.show()
