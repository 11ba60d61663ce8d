"""Histories of watched models, at every edge, for the tests of what is shown and told."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np

from safecal import bernoulli
from safecal.monitor import Monitor
from safecal.watch.history import History, Point, Raised

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
HOSTILE = (SCRIPT, IMAGE, 'a "quoted" \\ back\nslash', "a & b", "\u202eright to left\x00", "\ud800 half", "x" * 300)
START = datetime(2026, 1, 1, tzinfo=UTC)


def watched(
    drifts: Sequence[float],
    *,
    rows: int = 400,
    names: Sequence[str] = (),
    windows: Sequence[str | None] | None = None,
    impossible_at: int | None = None,
    run_length: float = 100_000,
    acknowledge_at: int | None = None,
    quarantined: int = 0,
    shift: float = 0.0,
    detect: str = "over",
) -> History:
    """Watch a model whose logits are too large by a factor that changes from batch to batch; with names, by group.

    ``shift`` is added to the log-odds of what happens.
    """
    rng = np.random.default_rng(8)
    monitor = Monitor(run_length=run_length, grouped=bool(names), detect=detect)
    points: list[Point] = []
    alarms: list[Raised] = []
    for k, drift in enumerate(drifts):
        z = rng.normal(0, 2, rows)
        y = (rng.random(rows) < 1 / (1 + np.exp(-z - shift))).astype(int)
        z = drift * z
        if k == impossible_at:
            z[0], y[0] = np.inf, 0
        batch, at = f"batch {k}", (START + timedelta(hours=6 * k)).isoformat()
        window = f"{START + timedelta(days=k):%Y-%m-%d}" if windows is None else windows[k]
        by = np.array(names, dtype=object)[rng.integers(len(names), size=rows)] if names else None
        predictions = bernoulli(y, logits=z)
        new_alarms = monitor.add(predictions, by=by, window=window, batch=None if window is None else batch)
        alarms += [Raised(alarm, at, batch) for alarm in new_alarms]
        points.append(Point.of(batch, window, at, predictions.summary(), monitor))
        if k == acknowledge_at:
            monitor.acknowledge()
    return History(monitor, tuple(points), tuple(alarms), quarantined)


SITES = ["north", "south", "a hospital with quite a long name"]
_MAKE: dict[str, Callable[[], History]] = {
    "drift": lambda: watched([1.0] * 18 + [1.7] * 12, quarantined=12),
    "quiet": lambda: watched([1.0] * 6),
    "cautious": lambda: watched([0.5] * 12),
    "relaxed": lambda: watched([1.0] * 6 + [0.5] * 6, detect="both", run_length=10_000),
    "shifted": lambda: watched([1.0] * 8, shift=0.5, rows=200),
    "badly shifted": lambda: watched([1.0], shift=1.5, rows=340),
    "small": lambda: watched([1.25] * 8, rows=1000, run_length=1e300),
    "small change": lambda: watched([1.0] * 4 + [1.3] * 8, rows=1500),
    "groups": lambda: watched([1.0] * 10 + [2.0] * 4, names=SITES, rows=300),
    "one group": lambda: _one_group(),
    "impossible": lambda: watched([1.0] * 12, impossible_at=7),
    "acknowledged": lambda: watched([1.0] * 10 + [2.0] * 2 + [1.0] * 20, acknowledge_at=12, windows=[None] * 32),
    "one batch": lambda: watched([1.0]),
    "nothing": lambda: History(Monitor()),
    "many windows": lambda: watched([1.0] * 400, rows=20, windows=[f"{k // 2:05d}" for k in range(400)]),
    "many groups": lambda: watched([1.0] * 3, names=[f"{k} " + "&<>" * 40 for k in range(250)], rows=2000),
    "hostile": lambda: watched([1.0, 1.5, 1.5], names=HOSTILE, windows=HOSTILE[:3]),
}
CASES = tuple(_MAKE)


@cache
def history_of(case: str) -> History:
    """Return the history of a case."""
    return _MAKE[case]()


def _one_group() -> History:
    """Return a history in which one small group is over-confident, and all rows together are not."""
    rng = np.random.default_rng(3)
    monitor = Monitor(grouped=True, run_length=1e8)
    z = rng.normal(0, 2, 6000)
    y = (rng.random(6000) < 1 / (1 + np.exp(-z))).astype(int)
    small = np.arange(6000) % 60 == 0
    raised = monitor.update(y, logits=np.where(small, 4.0, 0.9) * z, by=np.where(small, "small", "large"), window="all")
    alarms = tuple(Raised(alarm, START.isoformat(), "1") for alarm in raised)
    point = Point.of("1", "all", START.isoformat(), monitor.summary, monitor)
    return History(monitor, (point,), alarms)
