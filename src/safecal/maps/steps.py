"""What a map does to log-odds, or to a column of log-probabilities for each class: one step, or several in turn.

A step is a function with a few numbers. It is all that is kept of a fit, and all that `exports` writes down again in
other languages.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._types import FloatArray
from .values import tempered_columns

__all__ = ["Columns", "Curve", "Line", "Nothing", "Stairs", "Step"]

Numbers = tuple[float, ...]

_numbers = documents.list_of(documents.read_number, 1)


class Step(ABC):
    """One step."""

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers were fitted."""

    def fits(self, classes: int) -> bool:
        """Tell whether it can be applied to so many classes, whatever it was fitted to."""
        return False

    @abstractmethod
    def of(self, z: FloatArray) -> FloatArray:
        """Return the log-odds, or the logits, that it makes of some."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""


@final
@dataclass(frozen=True, slots=True)
class Nothing(Step):
    """Everything stays as it is."""

    @property
    def size(self) -> int:
        return 0

    def fits(self, classes: int) -> bool:
        return True

    def of(self, z: FloatArray) -> FloatArray:
        return z

    def to_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        return cls()


@final
@dataclass(frozen=True, slots=True)
class Line(Step):
    """``slope * z + shift``; of K classes, the slope alone."""

    slope: float
    shift: float = 0.0
    fixed: bool = False  # whether the shift is 0 by choice

    @property
    def size(self) -> int:
        return 1 if self.fixed else 2

    def fits(self, classes: int) -> bool:
        return self.fixed

    def of(self, z: FloatArray) -> FloatArray:
        scaled = tempered_columns(z, self.slope)
        return scaled if self.fixed else scaled + self.shift

    def to_dict(self) -> dict[str, Any]:
        return {"slope": self.slope, "shift": self.shift}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        fields = {"slope": documents.between(0.0, inside=True), "shift": documents.read_number}
        return cls(**documents.record(fields)(content))


@final
@dataclass(frozen=True, slots=True)
class Columns(Step):
    """``weights[k] * log p_k + shifts[k]`` for each class."""

    weights: Numbers
    shifts: Numbers
    shared: bool = False  # whether all weights are one

    @property
    def size(self) -> int:
        return (1 if self.shared else len(self.weights)) + len(self.shifts) - 1

    def of(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.asarray(self.weights) * z
        if 0.0 in self.weights:  # a class whose probability no longer counts
            scaled = np.where(np.asarray(self.weights) == 0.0, 0.0, scaled)
        return np.asarray(scaled + np.asarray(self.shifts))

    def to_dict(self) -> dict[str, Any]:
        return {"weights": list(self.weights), "shifts": list(self.shifts), "shared": self.shared}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        weights = documents.list_of(documents.between(0.0), 3)
        found = documents.record({"weights": weights, "shifts": _numbers, "shared": documents.flag})(content)
        documents.every(
            [
                (len(found["weights"]) == len(found["shifts"]), "must have as many weights as shifts"),
                (not found["shared"] or len(set(found["weights"])) == 1, "must have one weight where it is shared"),
            ]
        )
        return cls(tuple(found["weights"]), tuple(found["shifts"]), found["shared"])


@final
@dataclass(frozen=True, slots=True)
class Curve(Step):
    """``a log p - b log(1 - p) + c``."""

    a: float
    b: float
    c: float

    @property
    def size(self) -> int:
        return 3

    def of(self, z: FloatArray) -> FloatArray:
        left = special.log_expit(z) if self.a else np.zeros_like(z)  # 0 times an infinite logarithm
        right = special.log_expit(-z) if self.b else np.zeros_like(z)
        return np.asarray(self.a * left - self.b * right + self.c)

    def to_dict(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, "c": self.c}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        power = documents.between(0.0)
        found = documents.record({"a": power, "b": power, "c": documents.read_number})(content)
        documents.every([(found["a"] + found["b"] > 0.0, "must have a power above 0")])
        return cls(**found)


@final
@dataclass(frozen=True, slots=True)
class Stairs(Step):
    """``values[k]`` from ``starts[k - 1]`` on, up to ``starts[k]``: log-odds that never fall."""

    starts: Numbers
    values: Numbers

    @property
    def size(self) -> int:
        return len(self.values)

    def of(self, z: FloatArray) -> FloatArray:
        return np.asarray(self.values)[np.searchsorted(np.asarray(self.starts), z, side="right")]

    def to_dict(self) -> dict[str, Any]:
        return {"starts": [documents.number(x) for x in self.starts], "values": list(self.values)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        starts = documents.list_of(documents.between(infinite=True))
        found = documents.record({"starts": starts, "values": _numbers})(content)
        x, v = found["starts"], found["values"]
        documents.every(
            [
                (len(v) == len(x) + 1, "must have one value more than starts"),
                (all(a < b for a, b in pairwise(x)), "must have starts that grow"),
                (all(a <= b for a, b in pairwise(v)), "must have values that do not fall"),
            ]
        )
        return cls(tuple(x), tuple(v))
