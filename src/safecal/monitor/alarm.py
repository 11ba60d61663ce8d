"""What a monitor says when it has seen enough."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from .. import documents
from .._types import AlarmDirection, AlarmKind
from ..visible import visible
from .size import Size

__all__ = ["Alarm"]

# The words of a diagnosis.
_WORDS = {
    "over-confident": "too sharp",
    "under-confident": "too vague",
    "shifted up": "shifted up: the event happens more often than it says",
    "shifted down": "shifted down: the event happens less often than it says",
}


@final
@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm.

    Attributes
    ----------
    kind : {"since the start", "change"}
        Evidence against a model that was calibrated throughout, or for one that changed.
    direction : {"over-confident", "under-confident", "shifted up", "shifted down"}
        Which way. Shifted up: the event happens more often than the model says.
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
    size : Size or None
        How large it is beside the limits of a verdict: of all rows so far, or since the row at which it most likely
        began; None where that is not known. What sets off an alarm is among the largest there was: of a change, the
        first rows overstate it.

    Examples
    --------
    >>> from safecal.monitor import Alarm
    >>> print(Alarm("change", "over-confident", None, 5200, 15.2, 13.8, 4990, "2026-11-14"))
    changed at about row 4990, too sharp: e-value 3.99e+06 at row 5200, 9.85e+05 was asked for (window 2026-11-14)
    """

    kind: AlarmKind
    direction: AlarmDirection
    group: Hashable
    row: int
    log_e_value: float
    log_threshold: float
    began: int
    window: str | None = None
    size: Size | None = None

    @property
    def cause(self) -> str:
        """Which way, in the words of a diagnosis: too sharp, too vague, shifted up or shifted down."""
        return _WORDS[self.direction].partition(":")[0]

    @property
    def what(self) -> str:
        """What it says of the model: since when, which way, and how large that is beside the limits."""
        start = f"changed at about row {self.began}" if self.kind == "change" else "not calibrated throughout"
        text = f"{start}, {_WORDS[self.direction]}"
        if self.size is None:
            return text
        rates = f", {self.size.rates}" if self.direction.startswith("shifted") else ""
        return f"{text}{rates}: {self.size}"

    def __str__(self) -> str:
        who = "" if self.group is None else f"{visible(str(self.group))}: "
        where = "" if self.window is None else f" (window {visible(self.window)})"
        found, asked = (_readable(x) for x in (self.log_e_value, self.log_threshold))
        ends = ":" if self.size is None else ";"
        return f"{who}{self.what}{ends} e-value {found} at row {self.row}, {asked} was asked for{where}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        names = ("kind", "direction", "row", "log_threshold", "began", "window")
        content = {name: getattr(self, name) for name in names}
        content["alarm_kind"] = content.pop("kind")
        content |= {"group": documents.plain(self.group), "log_e_value": documents.number(self.log_e_value)}
        content["size"] = None if self.size is None else self.size.to_dict()
        return documents.document("alarm", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, now or before sizes were told."""
        fields = {
            "alarm_kind": documents.choice("since the start", "change"),
            "direction": documents.choice(*_WORDS),
            "group": documents.key,
            "row": documents.count(),
            "log_e_value": documents.between(infinite=True),
            "log_threshold": documents.read_number,
            "began": documents.count(),
            "window": documents.optional(documents.text),
        }
        found = documents.read("alarm", document, fields, {"size": documents.optional(Size.from_dict)})
        documents.every([(found["began"] <= found["row"], "must have begun no later than at its `row`")])
        return cls(kind=found.pop("alarm_kind"), **found)


def _readable(log: float) -> str:
    """Return exp of a logarithm, also where it is too large for a float."""
    if log < 700.0:
        return f"{math.exp(log):.3g}"
    return "infinite" if log >= 1e5 else f"1e+{math.floor(log / math.log(10.0))}"
