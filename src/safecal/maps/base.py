"""The base of every map: rows to fit to, fitting to all of them and to groups, and documents of maps.

Where there are groups, all rows together count as `SHARED` more rows in the fit of each. A group of n rows so goes
about n / (n + SHARED) of the way from the common fit to its own, and one without rows stays there.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, final

import numpy as np

from .. import documents
from .._checks import refused
from .._checks.arrays import same_labels
from .._checks.columns import clusters, group_codes, steadied, weights
from .._types import AnyArray, ArrayLike, By, FloatArray, IndexArray, Labels, SpreadLike
from ..errors import UnavailableError
from ..families import Predictions, classifier, family_named
from ..families.gaussian import gaussian
from .applying import Applied
from .steps import Grouping, MapStep

__all__ = [
    "OPTIONS", "SHARED", "Fit", "FitRows", "Fitted", "Grouping", "Map", "PlainMap", "checked_rows", "reader_of_fits",
]  # fmt: skip

SHARED = 30.0  # rows that all rows together count for in a group
_SAMPLE = 20_000  # of them stand for all, where there are more

OPTIONS: dict[str, Callable[[Any], Any]] = {
    "level": documents.LEVEL,
    "alpha": documents.between(0.0, 0.5, inside=True),
    "sharpen": documents.flag,
    "shared": documents.flag,
    "folds": documents.count(2),
    "bias": documents.flag,
}


class FitRows(NamedTuple):
    """Checked rows to be fitted to."""

    predictions: Predictions
    weight: AnyArray | None = None
    cluster: IndexArray | None = None

    @property
    def n(self) -> int:
        """How many there are."""
        return self.predictions.n

    @property
    def weights(self) -> FloatArray:
        """The weight of each; 1 where there are no weights."""
        return np.ones(self.n) if self.weight is None else np.asarray(self.weight, dtype=np.float64)

    @property
    def worth(self) -> float:
        """How many rows of equal weight would tell as much (Kish)."""
        return self.n if self.weight is None else float(self.weights.sum() ** 2 / np.square(self.weights).sum())

    def require(self, fewest: int, name: str, hint: str | None) -> None:
        """Refuse rows that are worth less than so many to a map with this name."""
        if self.worth < fewest * (1.0 - 1e-9):
            got = f"got {self.n}" if self.weight is None else f"got weights worth {self.worth:.3g}"
            refused(f"{name} needs at least {fewest} rows; {got}", hint)

    def take(self, index: IndexArray) -> "FitRows":
        """Return some of them."""
        weight, cluster = (None if column is None else column[index] for column in (self.weight, self.cluster))
        return FitRows(self.predictions.take(index), weight, cluster)


def checked_rows(
    predictions: Predictions, sample_weight: ArrayLike | None, by: By | None, cluster: ArrayLike | None
) -> tuple[FitRows, Grouping | None]:
    """Check the columns that come with predictions, and return all rows, and their groups where there are any."""
    same_labels(predictions.row_labels, sample_weight=sample_weight, cluster=cluster, by=by)
    n, reference = predictions.n, predictions.outcome
    weight = weights(sample_weight, n, reference)
    codes = None if cluster is None else clusters(cluster, n, reference)[0]
    several = tuple(map(str, by)) if isinstance(by, Mapping) and len(by) > 1 else ()
    grouping = None if by is None else Grouping(*group_codes(by, n, reference)[1:], several)
    return FitRows(predictions, weight, codes), grouping


@steadied
class Map(Applied):
    """A map that recalibrates predictions. Fit it on rows that the model was not trained on."""

    _kind: ClassVar[str]

    # What a kind of map fills in

    @abstractmethod
    def _fit_rows(self, rows: FitRows, grouping: Grouping | None) -> None:
        """Fit to checked rows, and keep the fit; raise UnavailableError where they do not support one."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the options and of the fit."""

    @classmethod
    @abstractmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""

    @property
    @abstractmethod
    def parameters_(self) -> int:
        """How many numbers were fitted, in all groups together."""

    @property
    @abstractmethod
    def sentence_(self) -> str:
        """What the map does, in a sentence."""

    # Fitting

    def fit(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        by: By | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Fit to the outcomes of a classifier, on rows it was not trained on.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            What happened, as in `evaluate`.
        y_prob : array-like of shape (n,) or (n, K)
            Probability of the positive class, or of each of K classes.
        logits : array-like of shape (n,) or (n, K)
            Log-odds, or unnormalised log-probabilities, instead of ``y_prob``. They never saturate: prefer them.
        pos_label : object, optional
            The label of the positive class, for shape (n,).
        labels : sequence of K hashables, optional
            The names of the columns in their order, for shape (n, K).
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        by : array-like of shape (n,), or mapping of names to such, optional
            Fit a separate map to each group. All rows together count as 30 more rows in each, so that the map of a
            small group stays near the common one.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster: a patient, a track, a day.

        Returns
        -------
        self
            Fitted.

        Raises
        ------
        UnavailableError
            Where the rows cannot support the map; the message says why.
        """
        predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, whole=True)
        return self.fit_predictions(predictions, sample_weight=sample_weight, by=by, cluster=cluster)

    def fit_states(
        self,
        x_true: ArrayLike,
        mean: ArrayLike,
        *,
        std: SpreadLike | None = None,
        var: SpreadLike | None = None,
        cov: ArrayLike | None = None,
        chol: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        by: By | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Fit to the true states of Gaussian state estimates.

        Parameters
        ----------
        x_true, mean : array-like of shape (n,) or (n, d)
            The true states and the estimates.
        std, var, cov, chol, precision : array-like
            The uncertainty in exactly one of these forms, as in `gaussian`.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        by : array-like of shape (n,), or mapping of names to such, optional
            Fit a separate map to each group.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster: a patient, a track, a day.

        Returns
        -------
        self
            Fitted.
        """
        predictions = gaussian(x_true, mean, std=std, var=var, cov=cov, chol=chol, precision=precision)
        return self.fit_predictions(predictions, sample_weight=sample_weight, by=by, cluster=cluster)

    def fit_predictions(
        self,
        predictions: Predictions,
        *,
        sample_weight: ArrayLike | None = None,
        by: By | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Fit to predictions that were checked already.

        Parameters
        ----------
        predictions : Predictions
            As `bernoulli`, `categorical`, `gaussian` or `density` return them.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        by : array-like of shape (n,), or mapping of names to such, optional
            Fit a separate map to each group; not for densities.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster.

        Returns
        -------
        self
            Fitted.
        """
        return self._fit_checked(*checked_rows(predictions, sample_weight, by, cluster))

    def _fit_checked(self, rows: FitRows, grouping: Grouping | None) -> Self:
        """Fit to checked rows, and remember their family, their classes and their number."""
        self._fit_rows(rows, grouping)
        p = rows.predictions
        self.family_, self.classes_, self.n_ = p.family, p.classes, rows.n
        self.names_ = () if p.classes is None else p.class_names
        self.by_ = () if grouping is None else grouping.names
        return self


S = TypeVar("S", bound=MapStep)


class Fit(Protocol):
    """A fit to some rows: how many there were, how many numbers were fitted, and the step on classes."""

    @property
    def n(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def step(self) -> MapStep: ...
    def to_dict(self) -> dict[str, Any]: ...


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


def reader_of_fits(read_step: Callable[[Any], MapStep]) -> Callable[[Any], Fitted[Any]]:
    """Return what reads a step and its number of rows, as `Fitted.to_dict` wrote them."""
    read = documents.record({"step": read_step, "n": documents.count(1)})
    return lambda content: Fitted(**read(content))


F = TypeVar("F", bound=Fit)


@steadied
class PlainMap(Map, Generic[F]):
    """The base of maps that are fitted by likelihood: one step for all rows, and one for each group."""

    _read_fit: ClassVar[Any]  # the function that reads what a fit wrote
    _early_defaults: ClassVar[Mapping[str, Any]] = {}  # of options that early documents do not have

    fit_: F
    groups_: dict[Hashable, F] | None

    @abstractmethod
    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> F:
        """Fit to rows; ``own_rows`` are those of the group, without the rows that it was lent."""

    def _fit_rows(self, rows: FitRows, grouping: Grouping | None) -> None:
        self._accepts(rows)
        fit = self._fit_to(rows, rows)
        self.fit_, self.groups_ = fit, None if grouping is None else self._fit_groups(rows, grouping, fit)

    def _accepts(self, rows: FitRows) -> None:
        """Refuse a family that the map is not for."""
        if rows.predictions.classes is None:
            what = f"{type(self).__name__} is for classes, and these are {rows.predictions.family} predictions"
            refused(what, "use `Temperature`, or `Axes` for Gaussian states.")

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
        return self.fit_.size if self.groups_ is None else sum(fit.size for fit in self.groups_.values())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the options and of the fit."""
        family, groups = self._fitted_family(), None
        if self.groups_ is not None:
            groups = [{"key": documents.plain(key), "fit": fit.to_dict()} for key, fit in self.groups_.items()]
        state = {"family": family, "classes": self.classes_, "fit": self.fit_.to_dict(), "groups": groups}
        names = {name: list(x) for name, x in (("names", self.names_), ("by", self.by_)) if x}
        return documents.document(self._kind, self.get_params() | state | names)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        groups = documents.list_of(documents.record({"key": documents.key, "fit": cls._read_fit}), 1)
        state = {"family": documents.words, "fit": cls._read_fit, "groups": documents.optional(groups)}
        options = {name: OPTIONS[name] for name in cls._options if name not in cls._early_defaults}
        later: dict[str, Any] = {name: OPTIONS[name] for name in cls._early_defaults}
        later["classes"], later["names"] = documents.optional(documents.count(2)), documents.list_of(documents.text, 2)
        later["by"] = documents.list_of(documents.text, 2)
        fields = {"classes": None, "names": [], "by": [], **cls._early_defaults}
        fields |= documents.read(cls._kind, document, options | state, later)
        map_ = cls(**{name: fields[name] for name in cls._options})
        map_.fit_, map_.groups_ = fields["fit"], None
        if fields["groups"] is not None:
            map_.groups_ = {row["key"]: row["fit"] for row in fields["groups"]}
            with documents.at("groups"):
                documents.distinct([row["key"] for row in fields["groups"]])
        map_.family_, map_.classes_, map_.n_ = fields["family"], fields["classes"], map_.fit_.n
        map_.names_ = names = tuple(fields["names"])
        map_.by_ = tuple(fields["by"])
        right = map_._is_of_its_family() and len(set(names)) == len(names) in (0, map_.classes_)
        documents.every([(right, "must have a family and classes that its numbers and names belong to")])
        return map_

    def _is_of_its_family(self) -> bool:
        """Tell whether the numbers belong to the family and the classes; early temperatures fit any number of them."""
        class_numbers = (2, 3) if self.classes_ is None else (self.classes_,)
        fitting = all(
            step.fits(k) for key in self._keys() or [None] for step in self._steps(key) for k in class_numbers
        )
        family = family_named(self.family_)
        if family.mapped != "classes":
            return fitting and self.classes_ is None
        return fitting and (not family.has_odds or self.classes_ in (None, 2))


def _rows_to_lend(rows: FitRows) -> tuple[Any, FloatArray]:
    """Return rows that stand for all of them, and weights that together are worth `SHARED` of them."""
    index = np.arange(rows.n)
    if rows.n > _SAMPLE:
        index = np.sort(np.random.default_rng(0).permutation(rows.n)[:_SAMPLE])
    w, sampled_weight = rows.weights, rows.weights[index]
    return index, sampled_weight * (SHARED * float(w.mean()) / float(sampled_weight.sum()))
