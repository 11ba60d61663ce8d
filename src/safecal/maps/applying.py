"""What a fitted map does to predictions: it is applied to them, or written down where they are made."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .._checks.arrays import as_array
from .._checks.maps import class_prediction, fitted_codes, other_classes, other_kind, spread_form, unfitted
from .._checks.message import fail, show
from .._steady import steadied
from .._types import ArrayLike, By, FloatArray, IndexArray, Spread
from ..errors import OptionError, UnavailableError
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.gaussian import Gaussian
from ..families.predictions import Predictions, family_named
from .exports import python_text, sql_text, torch_module, torch_module_by_group
from .steps import Step, log_odds, log_values, moved_states, probabilities, scaled_spread, two_columns

__all__ = ["Applied"]


@steadied
class Applied(ABC):
    """A map, once it is fitted."""

    family_: str
    classes_: int | None

    # What a kind of map fills in

    @abstractmethod
    def _steps(self, key: Hashable = None) -> tuple[Step, ...]:
        """Return what is done to log-odds or to log-probabilities, for a group where there are some."""

    @abstractmethod
    def _keys(self) -> tuple[Hashable, ...] | None:
        """Return the groups that were fitted; None where there were none."""

    @abstractmethod
    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        """Return what is added to the axes of a state, and by what their deviations are multiplied."""

    # Applying

    def apply(
        self,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        by: By | None = None,
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
        by: By | None = None,
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
        std: Spread | None = None,
        var: Spread | None = None,
        cov: ArrayLike | None = None,
        chol: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        by: By | None = None,
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

    def apply_mean(self, mean: ArrayLike, *, by: By | None = None) -> FloatArray:
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

    def apply_predictions(self, predictions: Predictions, *, by: By | None = None) -> Predictions:
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
        return predictions.with_logits(z)

    def _must_be(self, wanted: str) -> None:
        family = getattr(self, "family_", None)
        if family is None:
            unfitted()
        if family_named(family).mapped != wanted:
            other_kind(family, wanted, family_named(family).words.tempered)

    def _mapped(self, z: FloatArray, by: By | None, reference: str) -> FloatArray:
        """Return recalibrated log-odds, or logits of three classes and more."""
        keys, codes = self._groups_of(by, len(z), reference)
        every = [self._steps(key) for key in keys]
        given = 2 if z.ndim == 1 else z.shape[1]
        if not all(step.fits(given) for steps in every for step in steps):
            assert self.classes_ is not None
            other_classes(given, self.classes_)
        if codes is None:
            return _in_turn(every[0], z)
        found = np.empty_like(z)
        for k, steps in enumerate(every):
            rows = codes == k
            found[rows] = _in_turn(steps, z[rows])
        return found

    def _by_row(self, by: By | None, n: int, reference: str) -> tuple[FloatArray, FloatArray]:
        """Return biases and factors of states: for all rows, or one line for each."""
        keys, codes = self._groups_of(by, n, reference)
        found = [self._axes(key) for key in keys]
        if codes is None:
            return found[0]
        bias, factor = (np.stack([np.atleast_1d(one[j]) for one in found])[codes] for j in range(2))
        return bias, factor

    def _groups_of(self, by: By | None, n: int, reference: str) -> tuple[tuple[Hashable, ...], IndexArray | None]:
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
            A function of one probability, of the positive class; or of a list with one for each class. Where groups
            were fitted, its second argument is the group (a tuple of several columns, None where it is missing), and
            one that was not fitted is an error.
        """
        self._must_be("classes")
        groups = {key: self._steps(key) for key in self._keys() or (None,)}
        return python_text(groups, self._class_number(), name, grouped=self._keys() is not None)

    def to_sql(
        self, *columns: str, by: str | Sequence[str] | None = None, dialect: Literal["standard", "spark"] = "standard"
    ) -> str:
        """Return a SQL expression, which DuckDB, PostgreSQL, SQLite and others understand; or Spark.

        Parameters
        ----------
        *columns : str
            The column with the probability of the positive class; or one column for each class.
        by : str or sequence of str, optional
            The column or columns of the group; given exactly when groups were fitted.
        dialect : {"standard", "spark"}, default "standard"
            Whose SQL: Spark, Databricks and Hive quote names with backticks.

        Returns
        -------
        str
            An expression for the recalibrated probability; for each of more classes one, with a name. It is NULL in
            groups that were not fitted.
        """
        self._must_be("classes")
        keys = self._keys()
        if (by is None) != (keys is None):
            rule = "must name the column of the groups" if by is None else "belongs to maps that were fitted with `by=`"
            raise fail(OptionError, "by", rule, got="none" if by is None else show(by))
        places = [by] if isinstance(by, str) else by
        steps = {key: self._steps(key) for key in keys or (None,)}
        return sql_text(steps, self._class_number(), columns, places, dialect)

    def to_torch(self) -> Any:
        """Return a torch Module that makes recalibrated logits of logits, with the same numbers.

        Returns
        -------
        torch.nn.Module
            Of log-odds (n,), or of a column of logits for each class, (n, K). Its numbers are double; what it returns
            has the type of what it is given. Where groups were fitted, its second argument is the place of each row's
            group in its ``groups``; one that was not fitted is an error.
        """
        self._must_be("classes")
        keys = self._keys()
        if keys is not None:
            return torch_module_by_group({key: self._steps(key) for key in keys}, self._class_number())
        return torch_module(self._steps(), self._class_number())

    def _class_number(self) -> int:
        if self.classes_ is not None:
            return self.classes_
        if family_named(self.family_).has_odds:
            return 2
        raise UnavailableError("an early document does not say how many classes there are.\n\nHint: fit it again.")


def _in_turn(steps: tuple[Step, ...], z: FloatArray) -> FloatArray:
    for step in steps:
        z = step.of(z)
    return z


def _length(by: Any) -> int:
    columns = list(by.values()) if isinstance(by, Mapping) else [by]
    return len(as_array(columns[0], "by")) if columns else 0
