"""Reach: a slice that would have been found, had there been one; so that finding none means something."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from .. import documents

__all__ = ["Reach"]


@final
@dataclass(frozen=True, slots=True)
class Reach:
    """A slice that would have been found.

    Attributes
    ----------
    share : float
        Its share of the rows.
    temperature : float
        How many times its logits, or its variances, are too large; below 1 for under-confidence.
    chance : float
        In what share of such samples it would have been found, at least.
    classes : bool
        Whether predictions are of classes.

    Examples
    --------
    >>> from safecal.slices.reach import Reach
    >>> print(Reach(0.05, 2.0, 0.93, True))
    a slice of 5 % of the rows with logits 2 times too large would have been found in at least 9 of 10 such samples
    """

    share: float
    temperature: float
    chance: float
    classes: bool

    def __str__(self) -> str:
        times = self.temperature
        if times > 1.0:
            wrong = f"logits {times:g} times too large" if self.classes else f"a temperature of {times:g}"
        else:
            wrong = f"logits {1.0 / times:g} times too small" if self.classes else f"a temperature of {times:.2g}"
        of_ten = min(math.floor(10.0 * self.chance), 9)
        found = f"would have been found in at least {of_ten} of 10 such samples"
        return f"a slice of {100.0 * self.share:g} % of the rows with {wrong} {found}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in ("share", "temperature", "chance", "classes")}
        return documents.document("reach", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        return cls(**documents.read("reach", document, _FIELDS))


_FIELDS: dict[str, Any] = {
    "share": documents.between(0.0, 1.0),
    "temperature": documents.between(0.0, inside=True),
    "chance": documents.between(0.0, 1.0),
    "classes": documents.flag,
}
