"""What a map can do once it is fitted: be applied to predictions, and be written as Python, SQL or torch."""

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from os.path import commonprefix
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._checks import fail, other_classes, other_kind, show, unfitted
from .._checks.arrays import as_array
from .._checks.class_columns import class_prediction, column_names
from .._checks.columns import fitted_codes, steadied
from .._checks.states import spread_form
from .._types import ArrayLike, By, FloatArray, IndexArray, SpreadLike
from ..errors import LabelError, OptionError, UnavailableError
from ..families import Predictions, family_named
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.gaussian import Gaussian
from .exports import python_text, sql_text, torch_module, torch_module_by_group
from .steps import MapStep, by_group, log_odds, log_values, moved_states, probabilities, scaled_spread, two_columns

__all__ = ["Applied", "places_of"]


@steadied
class Applied(ABC):
    """A map, once it is fitted."""

    _options: ClassVar[tuple[str, ...]] = ()

    family_: str
    classes_: int | None
    names_: tuple[str, ...] = ()  # of the classes, where they have any
    by_: tuple[str, ...] = ()  # the columns of the groups, where there are several
    n_: int

    # What a kind of map fills in

    @abstractmethod
    def _steps(self, key: Hashable = None) -> tuple[MapStep, ...]:
        """Return the steps on log-odds or log-probabilities; those of a group, where there are groups."""

    @abstractmethod
    def _keys(self) -> tuple[Hashable, ...] | None:
        """Return the groups that were fitted; None where there were none."""

    @abstractmethod
    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        """Return what is added to the axes of a state, and what their deviations are multiplied by."""

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
            Probabilities. Two classes can come in either shape, whichever was fitted.
        logits : array-like of shape (n,) or (n, K)
            Log-odds or unnormalised log-probabilities, instead of ``y_prob``.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row: needed if groups were fitted, and only then.

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
            Probabilities. Two classes can come in either shape, whichever was fitted.
        logits : array-like of shape (n,) or (n, K)
            Log-odds or unnormalised log-probabilities, instead of ``y_prob``.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row: needed if groups were fitted, and only then.

        Returns
        -------
        ndarray of float64
            Of the shape that was given.
        """
        self._require_kind("classes")
        values, name = class_prediction(y_prob, logits)
        self._refuse_other_order(column_names(y_prob if logits is None else logits), name)
        z = log_values(values, name)
        if z.ndim == 2 and z.shape[1] == 2:
            return two_columns(self._mapped(log_odds(z), by, name))
        return self._mapped(z, by, name)

    def apply_states(
        self,
        *,
        std: SpreadLike | None = None,
        var: SpreadLike | None = None,
        cov: ArrayLike | None = None,
        chol: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        by: By | None = None,
    ) -> FloatArray:
        """Return the recalibrated uncertainty of states, in the form that was given.

        Parameters
        ----------
        std, var, cov, chol, precision : array-like
            The uncertainty in exactly one of these forms, as in `gaussian`.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row: needed if groups were fitted, and only then. Then one spread a row is needed.

        Returns
        -------
        ndarray of float64
            The same form. A temperature multiplies a covariance by T.
        """
        self._require_kind("states")
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
            The group of each row: needed if groups were fitted, and only then.

        Returns
        -------
        ndarray of float64
            Of the shape that was given.
        """
        self._require_kind("states")
        means = np.asarray(as_array(mean, "mean"), dtype=np.float64)
        bias = self._by_row(by, len(means), "mean")[0]
        return means + (bias.reshape(-1) if means.ndim == 1 else bias)

    def apply_predictions(self, predictions: Predictions, *, by: By | None = None) -> Predictions:
        """Return recalibrated predictions, with the outcomes of the given ones.

        Parameters
        ----------
        predictions : Predictions
            Of the family that was fitted.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row: needed if groups were fitted, and only then.

        Returns
        -------
        Predictions
            Recalibrated; classes as logits.
        """
        n, reference = predictions.n, predictions.outcome
        self._refuse_other_order(predictions.class_names, "predictions")
        if isinstance(predictions, Gaussian):
            self._require_kind("states")
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

    def _fitted_family(self) -> str:
        """Return the family that was fitted; raise UnavailableError where there is none yet."""
        if not hasattr(self, "family_"):
            unfitted()
        return self.family_

    def _refuse_other_order(self, columns: Sequence[Hashable], name: str) -> None:
        """Refuse classes in another order than those that were fitted, as far as names tell."""
        names = [column for column in columns if isinstance(column, str)]
        places = places_of(self.names_, names) if len(names) == len(columns) else None
        if places is not None and places != sorted(places):
            order = show([names[place] for place in places])
            hint = f"`{name}[{order}]`." if name in ("y_prob", "logits") else f"name them in the order {order}."
            rule = f"must have the classes in the order of the fit, {show(list(self.names_))}"
            raise fail(LabelError, name, rule, got=show(names), hint=hint)

    def _require_kind(self, kind: str) -> None:
        family = self._fitted_family()
        if family_named(family).mapped != kind:
            other_kind(family, kind, family_named(family).words.tempered)

    def _mapped(self, z: FloatArray, by: By | None, reference: str) -> FloatArray:
        """Return recalibrated log-odds, or logits of three classes and more."""
        keys, codes = self._groups_of(by, len(z), reference)
        steps_by_group = [self._steps(key) for key in keys]
        classes = 2 if z.ndim == 1 else z.shape[1]
        if not all(step.fits(classes) for steps in steps_by_group for step in steps):
            assert self.classes_ is not None
            other_classes(classes, self.classes_)
        return by_group(steps_by_group, z, codes)

    def _by_row(self, by: By | None, n: int, reference: str) -> tuple[FloatArray, FloatArray]:
        """Return biases and factors of states: for all rows, or one line for each."""
        keys, codes = self._groups_of(by, n, reference)
        axes_by_group = [self._axes(key) for key in keys]
        if codes is None:
            return axes_by_group[0]
        bias, factor = (np.stack([np.atleast_1d(axes[j]) for axes in axes_by_group])[codes] for j in range(2))
        return bias, factor

    def _groups_of(self, by: By | None, n: int, reference: str) -> tuple[tuple[Hashable, ...], IndexArray | None]:
        if self.by_ and isinstance(by, Mapping):
            columns = {str(name): column for name, column in by.items()}
            if columns.keys() != set(self.by_):
                rule = f"must have the columns of the fit, {show(list(self.by_))}"
                raise fail(OptionError, "by", rule, got=show(list(columns)))
            by = {name: columns[name] for name in self.by_}
        groups = fitted_codes(by, n, reference, self._keys())
        return ((None,), None) if groups is None else groups

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
        if deep and isinstance(inner, Applied):
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
        inner = {name.removeprefix("map__"): options.pop(name) for name in list(options) if name.startswith("map__")}
        checked = type(self)(**{**self.get_params(deep=False), **options})
        for name in self._options:
            setattr(self, name, getattr(checked, name))
        if inner:
            self.map.set_params(**inner)  # type: ignore[attr-defined]
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

    # Where it is used

    def to_python(self, name: str = "recalibrate") -> str:
        """Return a Python function as text; it runs without safecal.

        Parameters
        ----------
        name : str, default "recalibrate"
            The name of the function.

        Returns
        -------
        str
            A function of the probability of the positive class, or of a list with one probability for each class.
            Where groups were fitted, its second argument is the group (a tuple if it has several columns, None where
            it is missing); a group that was not fitted is an error.
        """
        self._require_kind("classes")
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
            The column or columns of the group: needed if groups were fitted, and only then.
        dialect : {"standard", "spark"}, default "standard"
            Whose SQL: Spark, Databricks and Hive quote names with backticks.

        Returns
        -------
        str
            An expression for the recalibrated probability; with more than two classes, one named expression for each.
            It is NULL in groups that were not fitted, and where there is no probability: for NULL, NaN, and 1.3.
        """
        self._require_kind("classes")
        keys = self._keys()
        if (by is None) != (keys is None):
            rule = "must name the column of the groups" if by is None else "belongs to maps that were fitted with `by=`"
            raise fail(OptionError, "by", rule, got="none" if by is None else show(by))
        group_columns = [by] if isinstance(by, str) else by
        self._refuse_other_order(columns, "columns")
        steps = {key: self._steps(key) for key in keys or (None,)}
        return sql_text(steps, self._class_number(), columns, group_columns, dialect)

    def to_torch(self) -> Any:
        """Return a torch Module that turns logits into recalibrated logits, with the same numbers.

        Returns
        -------
        torch.nn.Module
            Of log-odds (n,), or of a column of logits for each class, (n, K). Its numbers are double; its result has
            the type of its input. Where groups were fitted, its second argument is the place of each row's group in
            its ``groups``; a group that was not fitted is an error.
        """
        self._require_kind("classes")
        keys = self._keys()
        if keys is not None:
            return torch_module_by_group({key: self._steps(key) for key in keys}, self._class_number())
        return torch_module(self._steps(), self._class_number())

    def _class_number(self) -> int:
        if self.classes_ is not None:
            return self.classes_
        if family_named(self.family_).has_odds:
            return 2
        raise UnavailableError(
            "the early document of this map does not say how many classes there are.\n\nHint: fit it again."
        )


def places_of(names: Sequence[str], columns: Sequence[str]) -> list[int] | None:
    """Return where the column of each class stands, by the names of columns; None where they do not say."""
    common = commonprefix(columns)  # noqa: RUF071 (character by character is what is meant)
    numbered = [str(int(match[1])) if (match := re.fullmatch(r".*?([0-9]+)", column)) else "" for column in columns]
    for ends in (list(columns), [column[len(common) :] for column in columns], numbered):
        if names and sorted(ends) == sorted(names):
            return [ends.index(name) for name in names]
    return None


def _length(by: Any) -> int:
    columns = list(by.values()) if isinstance(by, Mapping) else [by]
    return len(as_array(columns[0], "by")) if columns else 0
