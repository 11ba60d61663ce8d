"""
A stream that changes
=====================

A model in production is calibrated for six days; then its logits become 1.6 times too large. You can look at the
monitor after every row: for a calibrated model, the probability that it ever raises a false alarm is at most 5 %.
"""

import matplotlib.pyplot as plt
import numpy as np

from safecal.monitor import Monitor

rng = np.random.default_rng(0)
monitor = Monitor(alpha=0.05, run_length=100_000)
rows, evidence, change, alarms = [0], [0.0], [0.0], []
for hour in range(240):
    z = rng.normal(0, 2, 40)
    y = rng.random(40) < 1 / (1 + np.exp(-z))
    times = 1.0 if hour < 144 else 1.6
    alarms += monitor.update(y, logits=times * z, window=f"day {hour // 24}")
    rows.append(rows[-1] + 40)
    evidence.append(monitor.log_e_value("over-confident") / np.log(10))
    change.append(monitor.log_change() / np.log(10))

for alarm in alarms:
    print(alarm)

# %%
# Above: the ECD of each day with its interval. Below: the evidence on a scale of powers of ten. The evidence since the
# start falls while the model is calibrated, and must rise again after the change. The change detector does not fall, so
# it raises its alarm sooner.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6.8), layout="constrained")
for day, (_, interval) in enumerate(monitor.windows().values()):
    top.errorbar(day + 0.5, interval.value, [[interval.value - interval.low], [interval.high - interval.value]],
                 fmt="o", color="#0072b2", capsize=3)  # fmt: skip
top.axhline(0, color="black", lw=1)
top.axhline(0.1, color="black", lw=1, ls="--")
top.text(0.02, 0.115, "allowed")
top.set_xlim(0, 10)
top.set_xlabel("day")
top.set_ylabel("ECD, nat")
top.set_title("Over-confidence by day", fontweight="bold", loc="left")

limits = monitor.threshold()
bottom.plot(rows, evidence, color="#0072b2", label="since the start")
bottom.plot(rows, change, color="#d55e00", ls="--", label="since a change")
bottom.axhline(limits.log_threshold / np.log(10), color="#0072b2", lw=1, ls=":")
bottom.axhline(limits.log_run_length / np.log(10), color="#d55e00", lw=1, ls=":")
for alarm in alarms:
    height = (limits.log_run_length if alarm.kind == "change" else limits.log_threshold) / np.log(10)
    bottom.plot(alarm.row, height, marker="v", color="black", ms=8)
    bottom.annotate(f"alarm at row {alarm.row}", (alarm.row, height), (12, -14), textcoords="offset points")
bottom.axvline(144 * 40, color="black", lw=1)
bottom.text(144 * 40 - 60, -7, "the change", ha="right")
bottom.set_xlim(0, 9600)
bottom.set_ylim(-8, 14)
bottom.set_xlabel("row")
bottom.set_ylabel("evidence, log10")
bottom.set_title("Evidence, and what raises an alarm", fontweight="bold", loc="left")
bottom.legend(loc="upper left")
plt.show()
