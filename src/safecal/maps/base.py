"""What every map offers: it is fitted to rows, applied to others, written and read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .. import documents
from .._checks.arrays import as_array
from .._checks.columns import clusters, group_codes, weights
from .._checks.maps import class_prediction, fitted_codes, other_classes, other_kind, spread_form, unfitted
from .._checks.rows import same_labels
from .._steady import steadied
from .._types import AnyArray, ArrayLike, FloatArray, IndexArray, Labels
from ..errors import UnavailableError
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.classifier import classifier
from ..families.gaussian import Gaussian, gaussian
from ..families.predictions import Predictions, family_named
from .exports import python_text, sql_text, torch_module
from .spreads import moved_states, scaled_spread
from .steps import Step
from .values import log_odds, log_values, probabilities, two_columns

__all__ = ["OPTIONS", "Grouping", "Map", "Rows", "class_count"]


class Rows(NamedTuple):
    """Checked rows to be fitted to."""

    predictions: Predictions
    weight: AnyArray | None = None
    cluster: IndexArray | None = None

    @property
    def n(self) -> int:
        """How many there are."""
        return self.predictions.n

    def take(self, index: IndexArray) -> "Rows":
        """Return some of them."""
        weight, cluster = (None if column is None else column[index] for column in (self.weight, self.cluster))
        return Rows(self.predictions.take(index), weight, cluster)


class Grouping(NamedTuple):
    """The groups of some rows, and for each row the number of its own."""

    keys: tuple[Hashable, ...]
    codes: IndexArray

    def take(self, index: IndexArray) -> "Grouping":
        """Return the groups of some rows."""
        return Grouping(self.keys, self.codes[index])


def class_count(predictions: Predictions) -> int | None:
    """Return how many classes there are; None for states and densities."""
    if isinstance(predictions, Bernoulli):
        return 2
    return predictions.classes if isinstance(predictions, Categorical) else None


@steadied
class Map(ABC):
    """What recalibrates predictions. Fit it on rows that the model was not trained on."""

    _kind: ClassVar[str]
    _options: ClassVar[tuple[str, ...]] = ()

    family_: str
    classes_: int | None
    n_: int

    # What a kind of map fills in

    @abstractmethod
    def _fit_rows(self, rows: Rows, grouping: Grouping | None) -> None:
        """Fit to checked rows, and set what was fitted; raise UnavailableError where that cannot be."""

    @abstractmethod
    def _steps(self, key: Hashable = None) -> tuple[Step, ...]:
        """Return what is done to log-odds or to log-probabilities, for a group where there are some."""

    @abstractmethod
    def _keys(self) -> tuple[Hashable, ...] | None:
        """Return the groups that were fitted; None where there were none."""

    @abstractmethod
    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        """Return what is added to the axes of a state, and by what their deviations are multiplied."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the options and of what was fitted."""

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
        by: ArrayLike | Mapping[str, ArrayLike] | None = None,
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
            Fit each group a map of its own. All rows together count as 30 more rows in each, so that a small group
            stays near the common fit.
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
        std: ArrayLike | None = None,
        var: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        chol: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        by: ArrayLike | Mapping[str, ArrayLike] | None = None,
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
            Fit each group a map of its own.
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
        by: ArrayLike | Mapping[str, ArrayLike] | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Fit to predictions that were checked already.

        Parameters
        ----------
        predictions : Predictions
            What `bernoulli`, `categorical`, `gaussian` or `density` returned.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        by : array-like of shape (n,), or mapping of names to such, optional
            Fit each group a map of its own; not for densities.
        cluster : array-like of shape (n,), optional
            Rows that depend on each other share a cluster.

        Returns
        -------
        self
            Fitted.
        """
        columns = by if isinstance(by, Mapping) else {"by": by}
        same_labels(predictions.row_labels, sample_weight=sample_weight, cluster=cluster, **columns)
        n, reference = predictions.n, predictions.outcome
        weight = weights(sample_weight, n, reference)
        codes = None if cluster is None else clusters(cluster, n, reference)[0]
        grouping = None if by is None else Grouping(*group_codes(by, n, reference)[1:])
        self._fit_rows(Rows(predictions, weight, codes), grouping)
        self.family_, self.classes_, self.n_ = predictions.family, class_count(predictions), n
        return self

    # Applying

    def apply(
        self,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> FloatArray:
        """Return recalibrated probabilities.

        Parameters
        ----------
        y_prob : array-like of shape (n,) or (n, K)
            Probabilities; two classes in either shape, whichever was fitted.
        logits : array-like of shape (n,) or (n, K)
            Log-odds or unnormalised log-probabilities, instead of ``y_prob``.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row; given exactly when groups were fitted.

        Returns
        -------
        ndarray of float64
            Probabilities of the shape that was given.
        """
        return probabilities(self.apply_logits(y_prob, logits=logits, by=by))

    def apply_logits(
        self,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> FloatArray:
        """Return recalibrated log-odds, or a column of logits for each class: they never saturate.

        Parameters
        ----------
        y_prob : array-like of shape (n,) or (n, K)
            Probabilities; two classes in either shape, whichever was fitted.
        logits : array-like of shape (n,) or (n, K)
            Log-odds or unnormalised log-probabilities, instead of ``y_prob``.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row; given exactly when groups were fitted.

        Returns
        -------
        ndarray of float64
            Of the shape that was given.
        """
        self._must_be("classes")
        values, name = class_prediction(y_prob, logits)
        z = log_values(values, name)
        if z.ndim == 2 and z.shape[1] == 2:
            return two_columns(self._mapped(log_odds(z), by, name))
        return self._mapped(z, by, name)

    def apply_states(
        self,
        *,
        std: ArrayLike | None = None,
        var: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        chol: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> FloatArray:
        """Return the uncertainty that states should have had, in the form that was given.

        Parameters
        ----------
        std, var, cov, chol, precision : array-like
            The uncertainty in exactly one of these forms, as in `gaussian`.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row; given exactly when groups were fitted. Then one spread a row is needed.

        Returns
        -------
        ndarray of float64
            The same form. A temperature multiplies a covariance by T.
        """
        self._must_be("states")
        rows = None if by is None else _length(by)
        forms = {"std": std, "var": var, "cov": cov, "chol": chol, "precision": precision}
        spread, name = spread_form(forms, rows)
        return scaled_spread(spread, name, self._by_row(by, rows or 0, name)[1])

    def apply_mean(self, mean: ArrayLike, *, by: ArrayLike | Mapping[str, ArrayLike] | None = None) -> FloatArray:
        """Return the means of states, corrected for a bias; only `Axes` finds one.

        Parameters
        ----------
        mean : array-like of shape (n,) or (n, d)
            The estimates.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row; given exactly when groups were fitted.

        Returns
        -------
        ndarray of float64
            Of the shape that was given.
        """
        self._must_be("states")
        given = np.asarray(as_array(mean, "mean"), dtype=np.float64)
        bias = self._by_row(by, len(given), "mean")[0]
        return given + (bias.reshape(-1) if given.ndim == 1 else bias)

    def apply_predictions(
        self, predictions: Predictions, *, by: ArrayLike | Mapping[str, ArrayLike] | None = None
    ) -> Predictions:
        """Return predictions as they would have been, with the outcomes of the given ones.

        Parameters
        ----------
        predictions : Predictions
            Of the family that was fitted.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row; given exactly when groups were fitted.

        Returns
        -------
        Predictions
            Recalibrated; classes as logits.
        """
        n, reference = predictions.n, predictions.outcome
        if isinstance(predictions, Gaussian):
            self._must_be("states")
            return moved_states(predictions, *self._by_row(by, n, reference))
        if not isinstance(predictions, Bernoulli | Categorical):
            raise UnavailableError(f"a map does not apply to {predictions.family} predictions.")
        form = "logits" if predictions.logits else "y_prob"
        values: Any = predictions.values
        if predictions.clip is not None:
            values = np.clip(values, predictions.clip, 1.0 - predictions.clip)
            values = values / values.sum(axis=1, keepdims=True) if values.ndim == 2 else values
        z = self.apply_logits(**{form: values}, by=by)
        if isinstance(predictions, Bernoulli):
            return Bernoulli(predictions.happened, z, True, None)
        infinite = bool(np.isneginf(z).any())
        return Categorical(predictions.happened, z, True, infinite, None, names=predictions.names)

    def _must_be(self, wanted: str) -> None:
        family = getattr(self, "family_", None)
        if family is None:
            unfitted()
        if (family == "gaussian") != (wanted == "states") or family == "density":
            other_kind(family, wanted, family_named(family).words.tempered)

    def _mapped(self, z: FloatArray, by: Any, reference: str) -> FloatArray:
        """Return recalibrated log-odds, or logits of three classes and more."""
        keys, codes = self._groups_of(by, len(z), reference)
        every = [self._steps(key) for key in keys]
        given = 2 if z.ndim == 1 else z.shape[1]
        if given != self.classes_ and not all(step.fits(given) for steps in every for step in steps):
            assert self.classes_ is not None
            other_classes(given, self.classes_)
        if codes is None:
            return _in_turn(every[0], z)
        found = np.empty_like(z)
        for k, steps in enumerate(every):
            rows = codes == k
            found[rows] = _in_turn(steps, z[rows])
        return found

    def _by_row(self, by: Any, n: int, reference: str) -> tuple[FloatArray, FloatArray]:
        """Return biases and factors of states: for all rows, or one line for each."""
        keys, codes = self._groups_of(by, n, reference)
        found = [self._axes(key) for key in keys]
        if codes is None:
            return found[0]
        bias, factor = (np.stack([np.atleast_1d(one[j]) for one in found])[codes] for j in range(2))
        return bias, factor

    def _groups_of(self, by: Any, n: int, reference: str) -> tuple[tuple[Hashable, ...], IndexArray | None]:
        found = fitted_codes(by, n, reference, self._keys())
        return ((None,), None) if found is None else found

    # Where it is used

    def to_python(self, name: str = "recalibrate") -> str:
        """Return a Python function as text, which needs safecal no more.

        Parameters
        ----------
        name : str, default "recalibrate"
            What the function is called.

        Returns
        -------
        str
            A function of one probability, of the positive class; or of a list with one for each class.
        """
        return python_text(self._exported(), self._class_number(), name)

    def to_sql(self, *columns: str) -> str:
        """Return a SQL expression, which DuckDB, PostgreSQL, SQLite and others understand.

        Parameters
        ----------
        *columns : str
            The column with the probability of the positive class; or one column for each class.

        Returns
        -------
        str
            An expression for the recalibrated probability; for each of more classes one, with a name.
        """
        return sql_text(self._exported(), self._class_number(), columns)

    def to_torch(self) -> Any:
        """Return a torch Module that makes recalibrated logits of logits, with the same numbers.

        Returns
        -------
        torch.nn.Module
            Of log-odds (n,), or of a column of logits for each class, (n, K). Its numbers are double; what it returns
            has the type of what it is given.
        """
        return torch_module(self._exported(), self._class_number())

    def _class_number(self) -> int:
        assert self.classes_ is not None
        return self.classes_

    def _exported(self) -> tuple[Step, ...]:
        self._must_be("classes")
        if self._keys() is not None:
            raise UnavailableError("each group has a map of its own.\n\nHint: fit a group by itself, and export that.")
        return self._steps()

    # As others know it

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as scikit-learn asks for them.

        Parameters
        ----------
        deep : bool, default True
            Whether those of a map inside are wanted, too.

        Returns
        -------
        dict
            The options.
        """
        found = {name: getattr(self, name) for name in self._options}
        inner = found.get("map")
        if deep and isinstance(inner, Map):
            found |= {f"map__{name}": value for name, value in inner.get_params().items()}
        return found

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
        inner = {name.removeprefix("map__"): value for name, value in options.items() if name.startswith("map__")}
        own = {name: value for name, value in options.items() if not name.startswith("map__")}
        checked = type(self)(**{**self.get_params(deep=False), **own})
        for name in self._options:
            setattr(self, name, getattr(checked, name))
        if inner:
            self.map.set_params(**inner)  # type: ignore[attr-defined]
        return self

    def _copy(self) -> Self:
        """Return one that is not fitted."""
        return type(self)(**self.get_params(deep=False))

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
        """Return what was fitted to all rows, in a few words."""


def _in_turn(steps: tuple[Step, ...], z: FloatArray) -> FloatArray:
    for step in steps:
        z = step.of(z)
    return z


def _length(by: Any) -> int:
    columns = list(by.values()) if isinstance(by, Mapping) else [by]
    return len(as_array(columns[0], "by")) if columns else 0


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "level": documents.LEVEL,
    "alpha": documents.between(0.0, 0.5, inside=True),
    "sharpen": documents.flag,
    "shared": documents.flag,
    "folds": documents.count(2),
}
