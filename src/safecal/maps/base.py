"""The base of every map: it is fitted to rows, applied to others, written and read."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .. import documents
from .._checks.arrays import same_labels
from .._checks.columns import clusters, group_codes, steadied, weights
from .._types import AnyArray, ArrayLike, By, FloatArray, IndexArray, Labels, SpreadLike
from ..families.gaussian import gaussian
from ..families.predictions import Predictions, classifier
from .applying import Applied

__all__ = ["OPTIONS", "FitRows", "Grouping", "Map"]

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

    def take(self, index: IndexArray) -> "FitRows":
        """Return some of them."""
        weight, cluster = (None if column is None else column[index] for column in (self.weight, self.cluster))
        return FitRows(self.predictions.take(index), weight, cluster)


class Grouping(NamedTuple):
    """The groups of some rows, and for each row the number of its own."""

    keys: tuple[Hashable, ...]
    codes: IndexArray

    def take(self, index: IndexArray) -> "Grouping":
        """Return the groups of some rows."""
        return Grouping(self.keys, self.codes[index])


@steadied
class Map(Applied):
    """A map that recalibrates predictions. Fit it on rows that the model was not trained on."""

    _kind: ClassVar[str]
    _options: ClassVar[tuple[str, ...]] = ()

    n_: int

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
        same_labels(predictions.row_labels, sample_weight=sample_weight, cluster=cluster, by=by)
        n, reference = predictions.n, predictions.outcome
        weight = weights(sample_weight, n, reference)
        codes = None if cluster is None else clusters(cluster, n, reference)[0]
        grouping = None if by is None else Grouping(*group_codes(by, n, reference)[1:])
        return self._fit_checked(FitRows(predictions, weight, codes), grouping)

    def _fit_checked(self, rows: FitRows, grouping: Grouping | None) -> Self:
        """Fit to checked rows, and remember their family, their classes and their number."""
        self._fit_rows(rows, grouping)
        self.family_, self.classes_, self.n_ = rows.predictions.family, rows.predictions.classes, rows.n
        return self

    # As others know it

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as scikit-learn asks for them.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the options of the map inside.

        Returns
        -------
        dict
            The options.
        """
        options = {name: getattr(self, name) for name in self._options}
        inner = options.get("map")
        if deep and isinstance(inner, Map):
            options |= {f"map__{name}": value for name, value in inner.get_params().items()}
        return options

    def set_params(self, **options: object) -> Self:
        """Change options, as scikit-learn does.

        Parameters
        ----------
        **options : object
            The options by name.

        Returns
        -------
        self
            Changed.
        """
        inner_options = {
            name.removeprefix("map__"): value for name, value in options.items() if name.startswith("map__")
        }
        own_options = {name: value for name, value in options.items() if not name.startswith("map__")}
        checked = type(self)(**{**self.get_params(deep=False), **own_options})
        for name in self._options:
            setattr(self, name, getattr(checked, name))
        if inner_options:
            self.map.set_params(**inner_options)  # type: ignore[attr-defined]
        return self

    def _copy(self) -> Self:
        """Return an unfitted copy."""
        return type(self)(**self.get_params(deep=False))

    def _similar_copy(self) -> Self:
        """Return an unfitted copy for similar rows: its fit can begin where this one ended."""
        return self._copy()

    def _name(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{option}={getattr(self, option)!r}' for option in self._options)})"

    def __repr__(self) -> str:
        if not hasattr(self, "family_"):
            return self._name()
        keys = self._keys()
        groups = "" if keys is None else f" in {len(keys)} groups"
        return f"{self._name()}: {self._numbers()} from {self.n_} rows{groups}"

    @abstractmethod
    def _numbers(self) -> str:
        """Return the fit to all rows in a few words."""
