"""Fitting and applying a temperature, whichever way it is chosen."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from .. import documents
from .._checks.arrays import as_array
from .._checks.columns import clusters, weights
from .._checks.recalibration import (
    class_prediction,
    fitted_codes,
    group_column,
    groups_refused,
    inverse_temperature,
    other_kind,
    refused,
    spread_form,
)
from .._checks.rows import same_labels
from .._steady import steadied
from .._sums.tally import Tally
from .._types import AnyArray, ArrayLike, FloatArray, IndexArray, Labels
from ..families.classifier import classifier
from ..families.gaussian import gaussian
from ..families.predictions import Predictions, family_named
from ..inference.bounds import Bounds, inverse
from ..inference.results import Interval
from .dependent import Dependent
from .fitting import FEWEST, FEWEST_IN_GROUP, Refusal, unfit
from .tempered import Tempered, tempered
from .tempering import tempered_classes, tempered_spread

__all__ = ["FittedTemperature", "Recalibration"]


@final
@dataclass(frozen=True, slots=True)
class FittedTemperature:
    """The temperature of some rows.

    Attributes
    ----------
    beta : float
        Inverse temperature that is applied.
    interval : Interval
        The implied temperature of the rows.
    n : int
        How many rows there were.
    """

    beta: float
    interval: Interval
    n: int

    def __post_init__(self) -> None:
        inverse_temperature(self.beta, "beta")

    @property
    def temperature(self) -> float:
        """The temperature that is applied."""
        return 1.0 / self.beta

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {"beta": self.beta, "interval": self.interval.to_dict(), "n": self.n}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        beta = documents.between(1e-300, 1e300)  # below 0 it would turn every prediction round
        return cls(**documents.record({"beta": beta, "interval": Interval.from_dict, "n": documents.count(1)})(content))


@steadied
class Recalibration(ABC):
    """What both kinds share: everything but the choice of the inverse temperature."""

    _kind: ClassVar[str]
    _options: ClassVar[tuple[str, ...]]
    _before: ClassVar[Mapping[str, Any]] = {}  # how rows were fitted before there was an option

    temperature_: float
    beta_: float
    interval_: Interval
    n_: int
    family_: str
    groups_: dict[Hashable, FittedTemperature] | None

    @abstractmethod
    def _choose(self, rows: Tempered, groups: int, clusters: Dependent | None) -> float | Refusal:
        """Return the inverse temperature of rows that have one, or why it cannot be had.

        ``groups`` is how many groups there are where the rows are those of one of them, and 0 where they are all rows.
        """

    @abstractmethod
    def _interval_level(self) -> float:
        """Return the level of the interval for the implied temperature."""

    def fit(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Fit the temperature of a classifier, on rows it was not trained on.

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
        groups : array-like of shape (n,), optional
            Fit each group a temperature of its own.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster: a patient, a track, a day.

        Returns
        -------
        self
            With ``temperature_`` and the other attributes set.

        Raises
        ------
        UnavailableError
            Where the rows, or those of a group, have no temperature; the message says why.
        """
        predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, whole=True)
        return self.fit_predictions(predictions, sample_weight=sample_weight, groups=groups, cluster=cluster)

    def fit_states(
        self,
        x_true: ArrayLike,
        mean: ArrayLike,
        *,
        std: ArrayLike | None = None,
        var: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        chol: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Fit by how much the covariances of state estimates are to be inflated.

        Parameters
        ----------
        x_true, mean : array-like of shape (n,) or (n, d)
            The true states and the estimates.
        std, var, cov, chol, precision : array-like
            The uncertainty in exactly one of these forms, as in `gaussian`.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        groups : array-like of shape (n,), optional
            Fit each group a temperature of its own.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster: a patient, a track, a day.

        Returns
        -------
        self
            With ``temperature_``, the factor of the covariance, and the other attributes set.
        """
        predictions = gaussian(x_true, mean, std=std, var=var, cov=cov, chol=chol, precision=precision)
        return self.fit_predictions(predictions, sample_weight=sample_weight, groups=groups, cluster=cluster)

    def fit_predictions(
        self,
        predictions: Predictions,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Fit the temperature of predictions of any family that is normalised.

        Parameters
        ----------
        predictions : Predictions
            What `bernoulli`, `categorical`, `gaussian` or `density` returned.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        groups : array-like of shape (n,), optional
            Fit each group a temperature of its own; not for densities.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster.

        Returns
        -------
        self
            With ``temperature_`` and the other attributes set.
        """
        same_labels(predictions.row_labels, sample_weight=sample_weight, groups=groups, cluster=cluster)
        weight = weights(sample_weight, predictions.n, predictions.outcome)
        codes = None if cluster is None else clusters(cluster, predictions.n, predictions.outcome)[0]
        fitted_groups = None if groups is None else self._fit_groups(predictions, weight, codes, groups)
        fitted = self._fit(predictions, weight, codes, groups=0)
        if isinstance(fitted, Refusal):
            refused(fitted.text, fitted.hint)
        self._set(predictions.family, fitted, fitted_groups)
        return self

    def _fit(
        self, predictions: Predictions, weight: AnyArray | None, codes: IndexArray | None, groups: int
    ) -> FittedTemperature | Refusal:
        rows = tempered(predictions, weight)
        dependent = None
        if codes is not None:
            keys, codes = np.unique(codes, return_inverse=True)
            if len(keys) < 2:
                return Refusal("all rows are of one cluster", None, "all its rows are of one cluster")
            dependent = Dependent(rows, codes, len(keys))
        beta = unfit(rows, FEWEST_IN_GROUP if groups else FEWEST) or self._choose(rows, groups, dependent)
        if isinstance(beta, Refusal):
            return beta
        bounds = Bounds(Tally.of_checked(predictions, None, weight, None, codes))
        interval = replace(bounds.temperature(self._interval_level()), value=inverse(rows.beta))
        return FittedTemperature(beta, interval, predictions.n)

    def _fit_groups(
        self, predictions: Predictions, weight: AnyArray | None, codes: IndexArray | None, groups: ArrayLike
    ) -> dict[Hashable, FittedTemperature]:
        keys, group = group_column(groups, predictions.n, predictions.outcome)
        fitted: dict[Hashable, FittedTemperature] = {}
        refusals: dict[Hashable, tuple[int, str]] = {}
        for k, key in enumerate(keys):
            index = np.flatnonzero(group == k)
            one, own = (None if column is None else column[index] for column in (weight, codes))
            result: FittedTemperature | Refusal
            if one is not None and not (one > 0).any():
                result = Refusal("", None, "their weights are all 0")
            else:
                result = self._fit(predictions.take(index), one, own, groups=len(keys))
            if isinstance(result, Refusal):
                refusals[key] = len(index), result.short
            else:
                fitted[key] = result
        if refusals:
            groups_refused(refusals, len(keys))
        return fitted

    def _set(self, family: str, fitted: FittedTemperature, groups: dict[Hashable, FittedTemperature] | None) -> None:
        self.family_, self.groups_ = family, groups
        self.temperature_, self.beta_ = fitted.temperature, fitted.beta
        self.interval_, self.n_ = fitted.interval, fitted.n

    def _betas(self, groups: ArrayLike | None, n: int, reference: str) -> AnyArray | float:
        found = fitted_codes(groups, n, reference, self.groups_)
        if found is None:
            return inverse_temperature(self.beta_, "beta_")
        assert self.groups_ is not None
        keys, codes = found
        return np.array([self.groups_[key].beta for key in keys])[codes]

    def apply(
        self, y_prob: ArrayLike | None = None, *, logits: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> FloatArray:
        """Return recalibrated probabilities: ``p**(1/T)`` made to sum to one, or the softmax of ``logits / T``.

        The order of classes, and of rows, stays; so do probabilities of exactly 0 and 1.

        Parameters
        ----------
        y_prob : array-like of shape (n,) or (n, K)
            Probabilities, in either shape, whichever was fitted.
        logits : array-like of shape (n,) or (n, K)
            Log-odds or unnormalised log-probabilities, instead of ``y_prob``.
        groups : array-like of shape (n,), optional
            The group of each row; given exactly when groups were fitted.

        Returns
        -------
        ndarray of float64
            Probabilities of the shape that was given.
        """
        family = getattr(self, "family_", None)
        if family not in ("bernoulli", "categorical"):
            other_kind(family, "classes", family_named(family or "").words.tempered)
        values, name = class_prediction(y_prob, logits)
        return tempered_classes(values, name, self._betas(groups, len(values), name))

    def apply_states(
        self,
        *,
        std: ArrayLike | None = None,
        var: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        chol: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the uncertainty with the covariance multiplied by T, in the form and shape that was given.

        Parameters
        ----------
        std, var, cov, chol, precision : array-like
            The uncertainty in exactly one of these forms, as in `gaussian`.
        groups : array-like of shape (n,), optional
            The group of each row; given exactly when groups were fitted. Then one spread a row is needed.

        Returns
        -------
        ndarray of float64
            The same form: a covariance times T, a standard deviation times the root of T, a precision over T.
        """
        family = getattr(self, "family_", None)
        if family != "gaussian":
            other_kind(family, "states", family_named(family or "").words.tempered)
        rows = None if groups is None else len(as_array(groups, "groups"))
        forms = {"std": std, "var": var, "cov": cov, "chol": chol, "precision": precision}
        spread, name = spread_form(forms, rows)
        return tempered_spread(spread, name, self._betas(groups, rows or 0, name))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the options and of what was fitted."""
        family = getattr(self, "family_", None)
        if family is None:
            other_kind(None, "")
        whole = FittedTemperature(self.beta_, self.interval_, self.n_)
        groups = None
        if self.groups_ is not None:
            groups = [{"key": documents.plain(key), "fit": fit.to_dict()} for key, fit in self.groups_.items()]
        options = {name: getattr(self, name) for name in self._options}
        return documents.document(self._kind, {**options, "family": family, "fit": whole.to_dict(), "groups": groups})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        group = documents.record({"key": documents.key, "fit": FittedTemperature.from_dict})
        fields = {name: _OPTIONS[name] for name in cls._options if name not in cls._before}
        state = {
            "family": documents.words,
            "fit": FittedTemperature.from_dict,
            "groups": documents.optional(documents.list_of(group, 1)),
        }
        later = {name: _OPTIONS[name] for name in cls._before}
        found = {**cls._before, **documents.read(cls._kind, document, fields | state, later)}
        made = cls(**{name: found[name] for name in cls._options})
        groups = None
        if found["groups"] is not None:
            groups = {row["key"]: row["fit"] for row in found["groups"]}
            with documents.at("groups"):
                documents.distinct([row["key"] for row in found["groups"]])
        made._set(found["family"], found["fit"], groups)
        return made

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({', '.join(f'{option}={getattr(self, option)!r}' for option in self._options)})"
        if not hasattr(self, "beta_"):
            return name
        groups = "" if self.groups_ is None else f" in {len(self.groups_)} groups"
        return f"{name}: T = {self.temperature_:.4g} from {self.n_} rows{groups}"


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "level": documents.LEVEL,
    "alpha": documents.between(0.0, 0.5, inside=True),
    "sharpen": documents.flag,
    "shared": documents.flag,
}
