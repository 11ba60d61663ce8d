"""OpenTelemetry: the state of a monitor as metrics, through the official API.

It needs ``pip install "safecal[opentelemetry]"``, and the exporter that your services use.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from .._checks import fail, show
from .._checks.columns import whole_number
from .._optional import require
from ..errors import InputError
from ..monitor import Monitor
from ..watch.history import Reading, ReadingCache, group_names, shown_groups

__all__ = ["observe"]

Values = Callable[[Reading], dict[tuple[tuple[str, str], ...], float]]


def _alarms(r: Reading) -> dict[tuple[tuple[str, str], ...], float]:
    since_start: dict[tuple[tuple[str, str], ...], float] = {
        (("kind", "since the start"), ("direction", direction)): int(direction in r.raised) for direction in r.evidence
    }
    changes = {(("kind", "change"), ("direction", direction)): int(direction in r.changes) for direction in r.changing}
    return since_start | changes


# Name, kind of instrument, unit, what it is, and its values by attributes.
_INSTRUMENTS: tuple[tuple[str, str, str, str, Values], ...] = (
    ("rows", "counter", "{row}", "Rows taken in", lambda r: {(): r.summary.n}),
    (
        "impossible", "counter", "{row}", "Rows whose outcome had probability 0",
        lambda r: {(): r.summary.n_impossible},
    ),
    ("ecd", "gauge", "{nat}", "Mean excess surprise; above 0 over-confident", lambda r: {(): r.summary.ecd}),
    (
        "log10_e_value", "gauge", "1", "Evidence against calibration since the start",
        lambda r: {(("direction", direction),): log for direction, log in r.evidence.items()},
    ),
    (
        "log10_e_value_threshold", "gauge", "1", "Evidence since the start that raises an alarm",
        lambda r: {(("direction", direction),): log for direction, log in r.thresholds.items()},
    ),
    ("log10_change", "gauge", "1", "Evidence that it became over-confident", lambda r: {(): r.change}),
    (
        "log10_other_change", "gauge", "1", "Evidence that it became under-confident, where that is looked for",
        lambda r: {} if r.other_change is None else {(): r.other_change},
    ),
    (
        "log10_change_threshold", "gauge", "1", "Evidence of a change that raises an alarm",
        lambda r: {(): r.change_threshold},
    ),
    (
        "alarm_active", "gauge", "1", "1 where an alarm was raised and still stands",
        _alarms,
    ),
)  # fmt: skip


def observe(monitor: Monitor | Callable[[], Monitor], meter: Any = None, *, max_groups: int = 50) -> None:
    """Show a monitor as observable instruments, which are read whenever metrics are collected.

    Instruments of all rows are named ``safecal.ecd`` and so on, those of groups ``safecal.group.ecd`` with an attribute
    ``group``, so that a sum counts no row twice. OpenTelemetry takes finite values only. So ECD of no rows is not
    reported; nor, after an impossible outcome, are ECD and the evidence, which are infinite: ``safecal.impossible``
    counts such rows, and ``safecal.alarm_active`` stays 1.

    Parameters
    ----------
    monitor : Monitor or callable
        What to show, or a function that returns it.
    meter : opentelemetry.metrics.Meter, optional
        Where to show it; by default the global meter named ``safecal``.
    max_groups : int, default 50
        Groups that are shown: those with the strongest evidence of over-confidence. The others are counted in
        ``safecal.groups_not_shown``.

    Raises
    ------
    MissingExtraError
        When the API is not installed.

    Examples
    --------
    >>> from safecal.compat.opentelemetry import observe
    >>> from safecal.monitor import Monitor
    >>> monitor = Monitor()
    >>> observe(monitor)  # doctest: +SKIP
    """
    if not (isinstance(monitor, Monitor) or callable(monitor)):
        raise fail(InputError, "monitor", "must be a Monitor, or a function that returns one", got=show(monitor))
    limit = whole_number(max_groups, "max_groups", 0)
    metrics = require("opentelemetry.metrics", "OpenTelemetry metrics need opentelemetry-api", "opentelemetry")
    chosen_meter = metrics.get_meter("safecal") if meter is None else meter

    def current() -> Monitor:
        return monitor if isinstance(monitor, Monitor) else monitor()

    readings = ReadingCache()

    def of_all() -> Iterator[tuple[dict[str, str], Reading]]:
        yield {}, readings(current())

    def of_groups() -> Iterator[tuple[dict[str, str], Reading]]:
        shown = current()
        names = group_names(shown.groups)
        for group, reading in shown_groups(shown, limit, readings)[0]:
            yield {"group": names[group]}, reading

    def callback(read: Callable[[], Iterator[tuple[dict[str, str], Reading]]], values: Values) -> Any:
        def observations(_: Any) -> Iterator[Any]:
            for whose, reading in read():
                for attributes, value in values(reading).items():
                    if math.isfinite(value):
                        yield metrics.Observation(value, whose | dict(attributes))

        return observations

    for name, kind, unit, about, values in _INSTRUMENTS:
        create = getattr(chosen_meter, f"create_observable_{kind}")
        for prefix, read in (("safecal", of_all), ("safecal.group", of_groups)):
            create(f"{prefix}.{name}", callbacks=[callback(read, values)], unit=unit, description=about)
    chosen_meter.create_observable_gauge(
        "safecal.groups_not_shown",
        callbacks=[lambda _: [metrics.Observation(max(len(current().groups) - limit, 0), {})]],
        unit="{group}",
        description="Groups that have no series",
    )
