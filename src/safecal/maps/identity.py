"""The map that changes nothing."""

from collections.abc import Hashable
from typing import Any, ClassVar, final

import numpy as np

from .. import documents
from .._types import FloatArray
from .base import Rows
from .plain import Fitted, PlainMap
from .steps import Nothing

__all__ = ["Identity"]


@final
class Identity(PlainMap[Fitted[Nothing]]):
    """Leave predictions as they are: what every other map has to beat.

    See Also
    --------
    safecal.SafeTemperature : The same as ``Safe(Identity())``.

    Examples
    --------
    >>> from safecal.maps import Identity
    >>> Identity().fit([0, 1, 1], [0.2, 0.7, 0.9]).apply([0.25, 0.5]).tolist()
    [0.25, 0.5]
    """

    _kind: ClassVar[str] = "identity"

    def _accepts(self, rows: Rows) -> None:
        """Take any family."""

    def _fitted(self, rows: Rows, own: Rows) -> Fitted[Nothing]:
        return Fitted(Nothing(), own.n)

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[Nothing]:
        found = documents.record({"step": documents.record({}), "n": documents.count(1)})(content)
        return Fitted(Nothing(), found["n"])

    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        return np.zeros(1), np.array(1.0)

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        return "Predictions are left as they are."

    def _numbers(self) -> str:
        return "nothing changed"
