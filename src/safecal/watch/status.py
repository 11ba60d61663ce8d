"""The state of a watched model, for a person at a terminal."""

import math
from collections.abc import Hashable

from ..monitor import Monitor
from ..monitor.stream import DETECT
from ..visible import visible
from .standing import Judged, log10
from .store import Store

__all__ = ["power_of_ten", "status_text"]

_GROUPS = 20
_ASIDES = 5


def power_of_ten(log: float) -> str:
    """Return exp of a natural logarithm as a power of ten.

    Examples
    --------
    >>> from safecal.watch.status import power_of_ten
    >>> power_of_ten(2.302585092994046), power_of_ten(float("inf"))
    ('10^+1.00', 'infinite')
    """
    if math.isinf(log):
        return "infinite" if log > 0 else "0"
    return f"10^{log10(log):+.2f}"


def status_text(store: Store) -> str:
    """Return rows, ECD, evidence, alarms and what was set aside, one line each.

    Parameters
    ----------
    store : Store
        Of the model.

    Returns
    -------
    str
        Several lines; an e-value above its limit is an alarm.
    """
    monitor, last = store.monitor(), store.last()
    alarms, asides = store.alarms(), store.asides()
    lines = _table(monitor)
    lines.append(f"last batch      {'none yet' if last is None else f'{last.batch}, {last.received}'}")
    judged = Judged.last(monitor)
    if judged is not None:
        lines.append(f"verdict         {judged.name}: {judged.verdict}")
    lines.append(f"alarms          {len(alarms)}")
    lines += [f"  {raised.at}  {raised.alarm}" for raised in alarms]
    lines.append(f"set aside       {len(asides)}")
    lines += [f"  {aside.batch}, {aside.place}: {aside.reason}" for aside in asides[-_ASIDES:]]
    if len(asides) > _ASIDES:
        lines.append(f"  and {len(asides) - _ASIDES} before")
    label = store.settings.get("pos_label")
    if label is not None and not store.settings.get("seen"):
        lines.append(f"note            the label {label!r} of `--pos-label` has not occurred yet")
    return "\n".join(map(visible, lines))


def _table(monitor: Monitor) -> list[str]:
    groups: list[Hashable] = [None, *monitor.groups]
    changes = ("change", "to under")[: len(DETECT[monitor.detect])]
    names = ("over", "under", "up", "down")[: len(monitor.directions)]
    header = ("", "rows", "ECD", *(part for name in names for part in (name, "limit")), *changes, "limit")
    rows = [header, *(_row(monitor, group) for group in groups[: _GROUPS + 1])]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    widths[0] = max(widths[0], 14)
    lines = []
    for name, *numbers in rows:
        cells = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]))
    if len(groups) > _GROUPS + 1:
        lines.append(f"and {len(groups) - _GROUPS - 1} more groups")
    return lines


def _row(monitor: Monitor, group: Hashable) -> tuple[str, ...]:
    stream, limits = monitor.stream(group), monitor.threshold(group=group)
    logs = (
        log
        for direction in monitor.directions
        for log in (monitor.log_e_value(direction, group=group), limits.log_thresholds[direction])
    )
    name = "all rows" if group is None else visible(str(group))
    return (
        name,
        str(stream.summary.n),
        f"{stream.summary.ecd:+.4f}" if stream.summary.n else "-",
        *(power_of_ten(log) for log in logs),
        *(
            power_of_ten(monitor.log_change(direction, group=group)) + ("!" if direction in stream.changes else "")
            for direction in DETECT[monitor.detect]
        ),
        power_of_ten(limits.log_run_length),
    )
