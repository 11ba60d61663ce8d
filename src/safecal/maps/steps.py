"""The steps of maps: the one form of classes that they work on, the functions on it, and moves of states.

Two classes are a column of log-odds, in whichever of its forms they came; more are a column of log-probabilities for
each. A certainty is infinite, and so is what a map makes of it, unless the map says otherwise.

A step is a function of these with a few numbers. It is all that is kept of a fit, and all that `exports` writes down
again in other languages. States have a bias and a factor instead, for all axes or for each.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._types import AnyArray, FloatArray, IndexArray
from ..families import Predictions
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.gaussian import Gaussian

__all__ = [
    "BetaCurve", "ClassLines", "Grouping", "Line", "MapStep", "Stairs", "Unchanged", "by_group", "class_shift_words",
    "log_odds", "log_values", "log_values_of", "moved_states", "outcome_classes", "probabilities", "scaled_spread",
    "sentence_of", "shift_words", "slope_words", "tempered_columns", "two_columns",
]  # fmt: skip

_BLOCK = 1 << 16  # elements that fit into a cache
_SLIGHT = 0.02  # of a shift or of the logarithm of a slope: nothing to speak of


class Grouping(NamedTuple):
    """The groups of some rows, for each row the number of its own, and the columns, where there are several."""

    keys: tuple[Hashable, ...]
    codes: IndexArray
    names: tuple[str, ...] = ()

    def take(self, index: IndexArray) -> "Grouping":
        """Return the groups of some rows."""
        return self._replace(codes=self.codes[index])


def log_values(values: AnyArray, name: str) -> FloatArray:
    """Return log-odds of a column, or normalised log-probabilities of a matrix, from ``"y_prob"`` or ``"logits"``."""
    z = np.asarray(values, dtype=np.float64)
    if z.ndim == 1:
        return z if name == "logits" else np.asarray(special.logit(z))
    if name != "logits":
        total = (z @ np.ones(z.shape[1]))[:, None]
        with np.errstate(divide="ignore"):  # a probability of 0
            z = np.log(z)
        z -= np.log(total)
        return z
    log_probabilities, ones = np.empty_like(z), np.ones(z.shape[1])
    step = max(1, _BLOCK // z.shape[1])
    for start in range(0, len(z), step):
        part = slice(start, start + step)
        with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
            gaps = np.subtract(z[part], z[part].max(axis=1, keepdims=True), out=log_probabilities[part])
        gaps -= np.log(np.exp(gaps) @ ones)[:, None]
    return log_probabilities


def log_odds(z: FloatArray) -> FloatArray:
    """Return the log-odds of the second of two columns; any other form as it is."""
    if z.ndim == 2 and z.shape[1] == 2:
        return np.asarray(z[:, 1] - z[:, 0])
    return z


def two_columns(odds: FloatArray) -> FloatArray:
    """Return the log-probabilities of both classes."""
    return np.stack([special.log_expit(-odds), special.log_expit(odds)], axis=1)


def probabilities(z: FloatArray) -> FloatArray:
    """Return the probabilities that log-odds, or columns of logits, stand for."""
    if z.ndim == 1:
        return np.asarray(special.expit(z), dtype=np.float64)
    p: FloatArray = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def tempered_columns(z: FloatArray, beta: float) -> FloatArray:
    """Return logits times a number, the likeliest class at 0, so that nothing overflows."""
    with np.errstate(over="ignore"):
        return np.asarray(beta * (z if z.ndim == 1 else z - z.max(axis=1, keepdims=True)))


def log_values_of(predictions: Predictions) -> FloatArray:
    """Return the log-odds or log-probabilities of checked predictions."""
    assert isinstance(predictions, Bernoulli | Categorical)
    values: Any = predictions.values
    if predictions.clip is not None:
        values = np.clip(np.asarray(values, dtype=np.float64), predictions.clip, 1.0 - predictions.clip)
    return log_odds(log_values(values, "logits" if predictions.logits else "y_prob"))


def outcome_classes(predictions: Predictions) -> IndexArray:
    """Return the number of the class that happened, row by row."""
    assert isinstance(predictions, Bernoulli | Categorical)
    return np.asarray(predictions.happened, dtype=np.intp)


def scaled_spread(spread: AnyArray, name: str, factor: FloatArray) -> FloatArray:
    """Return standard deviations, variances or matrices whose axes have deviations ``factor`` times as large.

    ``factor`` is a number, one for each axis (d,), or a line for each row, (n, 1) or (n, d).
    """
    spreads = np.asarray(spread, dtype=np.float64)
    if name in ("std", "var"):
        if factor.ndim == 2 and spreads.ndim == 1:
            factor = factor[:, 0]
        elif factor.shape == (1,):  # a state of one axis
            factor = factor[0]
        return np.asarray(spreads * (factor if name == "std" else factor * factor))
    if factor.ndim == 0:
        factor = factor[None]
    if name == "chol":
        return np.asarray(spreads * factor[..., :, None])
    products = factor[..., :, None] * factor[..., None, :]
    return np.asarray(spreads * products if name == "cov" else spreads / products)


def moved_states(p: Gaussian, bias: FloatArray, factor: FloatArray) -> Gaussian:
    """Return states whose means are moved and whose spreads are scaled; a spread becomes one of each row."""
    mean = np.asarray(p.mean, dtype=np.float64)
    mean = mean + (bias.reshape(-1) if mean.ndim == 1 else bias)
    shape = p.x_true.shape
    spreads = np.asarray(p.spread, dtype=np.float64)
    if p.form in ("std", "var"):
        spreads = np.broadcast_to(spreads, shape)
    elif spreads.ndim == 2:
        spreads = np.broadcast_to(spreads, (p.n, *spreads.shape))
    return replace(p, mean=mean, spread=scaled_spread(spreads, p.form, factor), shared=None, row_labels=None)


_Readers = Mapping[str, documents.FieldReader[Any]]


def _numbers(reader: documents.FieldReader[float], least: int = 1) -> documents.FieldReader[tuple[float, ...]]:
    read = documents.list_of(reader, least)
    return lambda value: tuple(read(value))


class MapStep(ABC):
    """One step: a frozen class of a few numbers."""

    __slots__ = ()
    _readers: ClassVar[_Readers]  # of the fields that are written

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers were fitted."""

    def fits(self, classes: int) -> bool:
        """Tell whether it can be applied to so many classes."""
        return classes == 2

    @abstractmethod
    def of(self, z: FloatArray) -> FloatArray:
        """Return the log-odds, or the logits, that it makes of some."""

    def rules(self) -> list[tuple[bool, str]]:
        """Return what must hold of its numbers together, and whether it does."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = {name: getattr(self, name) for name in self._readers}
        return {name: [documents.number(x) for x in v] if isinstance(v, tuple) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        step = cls(**documents.record(cls._readers)(content))
        documents.every(step.rules())
        return step


@final
@dataclass(frozen=True, slots=True)
class Unchanged(MapStep):
    """Everything stays as it is."""

    _readers: ClassVar[_Readers] = {}

    @property
    def size(self) -> int:
        return 0

    def fits(self, classes: int) -> bool:
        return True

    def of(self, z: FloatArray) -> FloatArray:
        return z


@final
@dataclass(frozen=True, slots=True)
class Line(MapStep):
    """``slope * z + shift``; of K classes, the slope alone."""

    _readers: ClassVar[_Readers] = {"slope": documents.between(0.0, inside=True), "shift": documents.read_number}

    slope: float
    shift: float = 0.0
    fixed: bool = False  # whether the shift is 0 by choice

    @property
    def size(self) -> int:
        return 1 if self.fixed else 2

    def fits(self, classes: int) -> bool:
        return self.fixed or classes == 2

    def of(self, z: FloatArray) -> FloatArray:
        scaled = tempered_columns(z, self.slope)
        return scaled if self.fixed else scaled + self.shift


@final
@dataclass(frozen=True, slots=True)
class ClassLines(MapStep):
    """``weights[k] * log p_k + shifts[k]`` for each class."""

    _readers: ClassVar[_Readers] = {
        "weights": _numbers(documents.between(0.0), 3),
        "shifts": _numbers(documents.read_number),
        "shared": documents.flag,
    }

    weights: tuple[float, ...]
    shifts: tuple[float, ...]
    shared: bool = False  # whether all weights are one

    @property
    def size(self) -> int:
        return (1 if self.shared else len(self.weights)) + len(self.shifts) - 1

    def fits(self, classes: int) -> bool:
        return classes == len(self.weights)

    def of(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.asarray(self.weights) * z
        if 0.0 in self.weights:  # a class whose probability no longer counts
            scaled = np.where(np.asarray(self.weights) == 0.0, 0.0, scaled)
        return np.asarray(scaled + np.asarray(self.shifts))

    def rules(self) -> list[tuple[bool, str]]:
        return [
            (len(self.weights) == len(self.shifts), "must have as many weights as shifts"),
            (not self.shared or len(set(self.weights)) == 1, "must have one weight where it is shared"),
        ]


@final
@dataclass(frozen=True, slots=True)
class BetaCurve(MapStep):
    """``a log p - b log(1 - p) + c``."""

    _readers: ClassVar[_Readers] = {
        "a": documents.between(0.0),
        "b": documents.between(0.0),
        "c": documents.read_number,
    }

    a: float
    b: float
    c: float

    @property
    def size(self) -> int:
        return 3

    def of(self, z: FloatArray) -> FloatArray:
        log_p = special.log_expit(z) if self.a else np.zeros_like(z)  # 0 times an infinite logarithm
        log_not_p = special.log_expit(-z) if self.b else np.zeros_like(z)
        return np.asarray(self.a * log_p - self.b * log_not_p + self.c)

    def rules(self) -> list[tuple[bool, str]]:
        return [(self.a + self.b > 0.0, "must have a power above 0")]


@final
@dataclass(frozen=True, slots=True)
class Stairs(MapStep):
    """``values[k]`` from ``starts[k - 1]`` on, up to ``starts[k]``: log-odds that never fall."""

    _readers: ClassVar[_Readers] = {
        "starts": _numbers(documents.between(infinite=True), 0),
        "values": _numbers(documents.read_number),
    }

    starts: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.values)

    def of(self, z: FloatArray) -> FloatArray:
        return np.asarray(self.values)[np.searchsorted(np.asarray(self.starts), z, side="right")]

    def rules(self) -> list[tuple[bool, str]]:
        return [
            (len(self.values) == len(self.starts) + 1, "must have one value more than starts"),
            (all(a < b for a, b in pairwise(self.starts)), "must have starts that grow"),
            (all(a <= b for a, b in pairwise(self.values)), "must have values that do not fall"),
        ]


def shift_words(shift: float) -> str:
    """Say what a shift does to log-odds."""
    return "hardly moved" if abs(shift) < _SLIGHT else f"moved {'up' if shift > 0.0 else 'down'} by {abs(shift):.2g}"


def slope_words(slope: float) -> str:
    """Say what a slope does."""
    if abs(slope - 1.0) < _SLIGHT:
        return "hardly scaled"
    return f"{'shrunk' if slope < 1.0 else 'stretched'} by a factor of {slope:.2g}"


def class_shift_words(shifts: tuple[float, ...]) -> str:
    """Say which classes gain and lose most."""
    up, down = max(range(len(shifts)), key=shifts.__getitem__), min(range(len(shifts)), key=shifts.__getitem__)
    if shifts[up] - shifts[down] < _SLIGHT:
        return "classes hardly move"
    return f"class {up} gains most ({shifts[up]:+.2g}) and class {down} loses most ({shifts[down]:+.2g})"


def sentence_of(*parts: str) -> str:
    """Join parts into a sentence."""
    text = ", and ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def by_group(steps_by_group: Sequence[Sequence[MapStep]], z: FloatArray, codes: IndexArray | None) -> FloatArray:
    """Apply the steps of each group to its rows, of which ``codes`` has the group; None for one group of all rows."""
    if codes is not None:
        mapped = np.empty_like(z)
        for k, steps in enumerate(steps_by_group):
            mapped[codes == k] = by_group([steps], z[codes == k], None)
        return mapped
    for step in steps_by_group[0]:
        z = step.of(z)
    return z
