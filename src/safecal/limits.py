"""What a verdict allows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from . import documents
from ._checks.columns import fraction, positive

__all__ = ["Limits"]


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a verdict, and the level of its intervals; checked when they are set.

    Attributes
    ----------
    threshold : float, default 0.1
        Largest ECD that is safe, in nats; for states in nats a dimension.
    max_temperature : float, default 1.5
        Largest temperature that is safe.
    level : float, default 0.95
        Level of the confidence intervals.

    Examples
    --------
    >>> from safecal import Limits
    >>> Limits(threshold=0.05)
    Limits(threshold=0.05, max_temperature=1.5, level=0.95)
    """

    threshold: float = 0.1
    max_temperature: float = 1.5
    level: float = 0.95

    def __post_init__(self) -> None:
        positive(self.threshold, "threshold")
        positive(self.max_temperature, "max_temperature")
        fraction(self.level, "level")
        for name in self.__slots__:
            object.__setattr__(self, name, float(getattr(self, name)))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("limits", {name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("limits", document, cls.__slots__)
        return cls(**{name: content[name] for name in cls.__slots__})
