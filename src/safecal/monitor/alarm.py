"""What a monitor says when it has seen enough."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from .. import documents

__all__ = ["Alarm"]


@final
@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm.

    Attributes
    ----------
    kind : {"since the start", "change"}
        Evidence against a model that was calibrated all along, or for one that changed.
    direction : {"over-confident", "under-confident"}
        Which way.
    group : hashable or None
        The group it is about; None for all rows.
    row : int
        The number of the row at which the threshold was reached, counted from 0 within the group.
    log_e_value, log_threshold : float
        Natural logarithms of the evidence, and of what was asked for.
    began : int
        The number of the row at which it most likely began; 0 for evidence since the start.
    window : str or None
        The window of the batch in which the alarm was raised.

    Examples
    --------
    >>> from safecal.monitor import Alarm
    >>> print(Alarm("change", "over-confident", None, 5200, 15.2, 13.8, 4990, "2026-11-14"))
    over-confident since about row 4990: e-value 3.99e+06 at row 5200, 9.85e+05 was asked for (window 2026-11-14)
    """

    kind: str
    direction: str
    group: Hashable
    row: int
    log_e_value: float
    log_threshold: float
    began: int
    window: str | None = None

    def __str__(self) -> str:
        since = "all along" if self.kind == "since the start" else f"since about row {self.began}"
        who = "" if self.group is None else f"{self.group}: "
        where = "" if self.window is None else f" (window {self.window})"
        found, asked = (_readable(x) for x in (self.log_e_value, self.log_threshold))
        return f"{who}{self.direction} {since}: e-value {found} at row {self.row}, {asked} was asked for{where}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        names = ("kind", "direction", "row", "log_threshold", "began", "window")
        content = {name: getattr(self, name) for name in names}
        content["alarm_kind"] = content.pop("kind")
        content |= {"group": documents.plain(self.group), "log_e_value": documents.number(self.log_e_value)}
        return documents.document("alarm", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        names = ("alarm_kind", "direction", "group", "row", "log_e_value", "log_threshold", "began", "window")
        values = [documents.body("alarm", document, names)[name] for name in names]
        values[2] = tuple(values[2]) if isinstance(values[2], list) else values[2]
        values[4] = float(values[4])
        return cls(*values)


def _readable(log: float) -> str:
    """Return exp of a logarithm, also where it is too large for a float."""
    if log < 700.0:
        return f"{math.exp(log):.3g}"
    return "infinite" if log >= 1e5 else f"1e+{math.floor(log / math.log(10.0))}"
