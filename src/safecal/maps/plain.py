"""Maps that are fitted by likelihood: one step for all rows, and one for each group.

Where there are groups, all rows together count as `SHARED` more rows in the fit of each. A group of n rows so goes
about n / (n + SHARED) of the way from the common fit to its own, and one without rows stays there.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, final

import numpy as np

from .. import documents
from .._checks.columns import steadied
from .._checks.message import refused, unfitted
from .._types import FloatArray
from ..errors import UnavailableError
from ..families.predictions import family_named
from .base import OPTIONS, FitRows, Grouping, Map
from .steps import MapStep, Unchanged, log_values_of, outcome_classes

__all__ = [
    "SHARED",
    "Fit",
    "Fitted",
    "Identity",
    "PlainMap",
    "checked_classes",
    "class_shift_words",
    "sentence_of",
    "shift_words",
    "slope_words",
]

SHARED = 30.0  # rows that all rows together count for in a group
_SAMPLE = 20_000  # of them stand for all, where there are more
_SLIGHT = 0.02  # of a shift or of the logarithm of a slope: nothing to speak of

S = TypeVar("S", bound=MapStep)


class Fit(Protocol):
    """A fit to some rows."""

    @property
    def n(self) -> int:
        """How many rows there were."""

    @property
    def size(self) -> int:
        """How many numbers were fitted."""

    @property
    def step(self) -> MapStep:
        """The step on classes."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""


@final
@dataclass(frozen=True, slots=True)
class Fitted(Generic[S]):
    """A step, and to how many rows it was fitted."""

    step: S
    n: int

    @property
    def size(self) -> int:
        """How many numbers were fitted."""
        return self.step.size

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"step": self.step.to_dict(), "n": self.n}

    @classmethod
    def from_dict(cls, content: Any, read_step: Callable[[Any], S]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(**documents.record({"step": read_step, "n": documents.count(1)})(content))


F = TypeVar("F", bound=Fit)


@steadied
class PlainMap(Map, Generic[F]):
    """The base of maps that are fitted by likelihood."""

    _early_defaults: ClassVar[Mapping[str, Any]] = {}  # of options that early documents do not have

    fit_: F
    groups_: dict[Hashable, F] | None

    @abstractmethod
    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> F:
        """Fit to rows; ``own_rows`` are those of the group, without the rows that it was lent."""

    @classmethod
    @abstractmethod
    def _read_fit(cls, content: Any) -> F:
        """Read what a fit wrote."""

    def _fit_rows(self, rows: FitRows, grouping: Grouping | None) -> None:
        self._accepts(rows)
        fit = self._fit_to(rows, rows)
        self.fit_, self.groups_ = fit, None if grouping is None else self._fit_groups(rows, grouping, fit)

    def _accepts(self, rows: FitRows) -> None:
        """Refuse a family that the map is not for."""
        if rows.predictions.classes is None:
            family = rows.predictions.family
            hint = "use `Temperature`, or `Axes` for Gaussian states."
            refused(f"{type(self).__name__} is for classes, and these are {family} predictions", hint)

    def _fit_groups(self, rows: FitRows, grouping: Grouping, common: F) -> dict[Hashable, F]:
        lent_rows, lent_weight = _rows_to_lend(rows)
        fits: dict[Hashable, F] = {}
        for k, key in enumerate(grouping.keys):
            index = np.flatnonzero(grouping.codes == k)
            if not len(index):  # all of its rows are in the fold that is held out
                fits[key] = common
                continue
            own_rows = rows.take(index)
            weight = np.concatenate([own_rows.weights, lent_weight])
            own_and_lent = FitRows(rows.predictions.take(np.concatenate([index, lent_rows])), weight)
            fits[key] = self._fit_to(own_and_lent, own_rows)
        return fits

    def _keys(self) -> tuple[Hashable, ...] | None:
        return None if self.groups_ is None else tuple(self.groups_)

    def _fit_of(self, key: Hashable) -> F:
        return self.fit_ if self.groups_ is None else self.groups_[key]

    def _steps(self, key: Hashable = None) -> tuple[MapStep, ...]:
        return (self._fit_of(key).step,)

    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        raise UnavailableError(f"{type(self).__name__} is for classes.")  # pragma: no cover

    @property
    def parameters_(self) -> int:
        """How many numbers were fitted, in all groups together."""
        if self.groups_ is None:
            return self.fit_.size
        return sum(fit.size for fit in self.groups_.values())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the options and of the fit."""
        if getattr(self, "family_", None) is None:
            unfitted()
        groups = None
        if self.groups_ is not None:
            groups = [{"key": documents.plain(key), "fit": fit.to_dict()} for key, fit in self.groups_.items()]
        state = {"family": self.family_, "classes": self.classes_, "fit": self.fit_.to_dict(), "groups": groups}
        return documents.document(self._kind, {**{name: getattr(self, name) for name in self._options}, **state})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        group = documents.record({"key": documents.key, "fit": cls._read_fit})
        state = {
            "family": documents.words,
            "fit": cls._read_fit,
            "groups": documents.optional(documents.list_of(group, 1)),
        }
        options = {name: OPTIONS[name] for name in cls._options if name not in cls._early_defaults}
        later = {
            **{name: OPTIONS[name] for name in cls._early_defaults},
            "classes": documents.optional(documents.count(2)),
        }
        fields = {"classes": None, **cls._early_defaults, **documents.read(cls._kind, document, options | state, later)}
        map_ = cls(**{name: fields[name] for name in cls._options})
        map_.fit_, map_.groups_ = fields["fit"], None
        if fields["groups"] is not None:
            map_.groups_ = {row["key"]: row["fit"] for row in fields["groups"]}
            with documents.at("groups"):
                documents.distinct([row["key"] for row in fields["groups"]])
        map_.family_, map_.classes_, map_.n_ = fields["family"], fields["classes"], map_.fit_.n
        documents.every([(map_._is_of_its_family(), "must have a family and classes that its numbers belong to")])
        return map_

    def _is_of_its_family(self) -> bool:
        """Tell whether the numbers belong to the family and to the number of classes."""
        # Early documents of a temperature do not say how many classes there are: it fits any number.
        class_numbers = (2, 3) if self.classes_ is None else (self.classes_,)
        keys = [None] if self.groups_ is None else list(self.groups_)
        fitting = all(step.fits(k) for key in keys for step in self._steps(key) for k in class_numbers)
        family = family_named(self.family_)
        if family.mapped != "classes":
            return fitting and self.classes_ is None
        return fitting and (not family.has_odds or self.classes_ in (None, 2))


def _rows_to_lend(rows: FitRows) -> tuple[Any, FloatArray]:
    """Return rows that stand for all of them, and weights that together are worth `SHARED` of them."""
    index = np.arange(rows.n)
    if rows.n > _SAMPLE:
        index = np.sort(np.random.default_rng(0).permutation(rows.n)[:_SAMPLE])
    w = rows.weights
    sampled_weight = w[index]
    return index, sampled_weight * (SHARED * float(w.mean()) / float(sampled_weight.sum()))


def checked_classes(rows: FitRows, fewest: int, name: str) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return log-odds or log-probabilities, what happened, and weights, of rows that support a map."""
    z, y = log_values_of(rows.predictions), outcome_classes(rows.predictions)
    w = None if rows.weight is None else rows.weights
    if rows.worth < fewest * (1.0 - 1e-9):
        got = f"got {rows.n}" if w is None else f"got weights worth {rows.worth:.3g}"
        refused(f"{name} needs at least {fewest} rows; {got}", "`Temperature` needs 10.")
    counted = y if w is None else y[w > 0.0]
    if len(counted) and (counted == counted[0]).all():
        refused("the same class happened in every row, which says nothing about the others", None)
    return z, y, w


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


@final
class Identity(PlainMap[Fitted[Unchanged]]):
    """Leave predictions as they are: the map that every other one has to beat.

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

    def _accepts(self, rows: FitRows) -> None:
        """Take any family."""

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> Fitted[Unchanged]:
        return Fitted(Unchanged(), own_rows.n)

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[Unchanged]:
        fields = documents.record({"step": documents.record({}), "n": documents.count(1)})(content)
        return Fitted(Unchanged(), fields["n"])

    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        return np.zeros(1), np.array(1.0)

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        return "Predictions are left as they are."

    def _numbers(self) -> str:
        return "nothing changed"
