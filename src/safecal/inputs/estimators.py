"""Fitted classifiers of scikit-learn's kind: what they predict, and for which classes."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from .._checks import fail, show
from .._checks.arrays import as_keys, same_rows
from .._types import AnyArray, ArrayLike, IndexArray
from ..errors import EmptyError, InputError, LabelError, OptionError, ShapeError
from ..families import Predictions
from ..families.bernoulli import bernoulli
from ..families.categorical import categorical
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..options import EvaluateOptions

__all__ = ["Estimated", "positive_column", "probabilities_of", "several_classes"]


def probabilities_of(estimator: Any, X: Any) -> tuple[AnyArray, list[Any]]:
    """Return the probabilities that a fitted classifier gives to its classes, and the classes."""
    predict = getattr(estimator, "predict_proba", None)
    hint = "pass its probabilities to `from_predictions`."
    if not callable(predict):
        got = f"a {type(estimator).__name__}"
        raise fail(OptionError, "estimator", "must have a method `predict_proba`", got=got, hint=hint)
    classes = getattr(estimator, "classes_", None)
    if classes is None or np.ndim(classes) != 1:
        got = "no `classes_`" if classes is None else "several outputs"
        rule = "must be a fitted classifier with one output and `classes_`"
        raise fail(OptionError, "estimator", rule, got=got, hint=hint)
    names = np.asarray(classes).tolist()
    y_prob = np.asarray(predict(X))
    if y_prob.ndim != 2 or y_prob.shape[1] != len(names) or len(names) < 2:
        got = f"shape {y_prob.shape} for {len(names)} of `classes_`"
        raise fail(ShapeError, "estimator", "must predict a column for each of two or more classes", got=got, hint=hint)
    return y_prob, names


@final
@dataclass(frozen=True, slots=True)
class Estimated:
    """What classifiers predicted for rows that they were not fitted to, and what happened there.

    Attributes
    ----------
    happened : ndarray of shape (m,)
        The number of the class that happened.
    y_prob : ndarray of shape (m, K)
        The probability of each class.
    classes : list
        The labels of the classes.
    rows : ndarray of shape (m,)
        The number of each row among those that were given. Rows of classes that the classifier never met are left out.
    n_given : int
        How many rows were given.
    unseen : int
        How many predictions were left out.
    """

    happened: IndexArray
    y_prob: AnyArray
    classes: list[Any]
    rows: IndexArray
    n_given: int
    unseen: int

    @classmethod
    def of(cls, estimator: Any, X: Any, y: ArrayLike) -> Self:
        """Let a classifier predict some rows.

        A class that it was not fitted to, as happens to rare ones in small folds, says nothing about how confident it
        is: its rows are left out, with a warning.
        """
        y_prob, classes = probabilities_of(estimator, X)
        labels = as_keys(y, "y").tolist()
        same_rows("y", len(labels), len(y_prob), "X")
        number = {name: k for k, name in enumerate(classes)}
        happened = np.fromiter((number.get(label, -1) for label in labels), dtype=np.intp, count=len(labels))
        rows = np.flatnonzero(happened >= 0)
        if len(rows) < len(labels):
            unseen = sorted({show(labels[k]) for k in np.flatnonzero(happened < 0)})
            warnings.warn(
                f"the estimator was not fitted to the class {', '.join(unseen[:5])}: {len(labels) - len(rows)} of"
                f" {len(labels)} rows are left out.\n\nHint: use folds that hold every class: `StratifiedKFold`.",
                stacklevel=2,
            )
        return cls(happened[rows], y_prob[rows], classes, rows, len(labels), len(labels) - len(rows))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say beside the result: how many rows were left out, where some were."""
        if self.unseen == 0:
            return ()
        return (f"{self.unseen} rows of classes that the estimator was not fitted to were left out.",)

    @classmethod
    def of_folds(cls, cv_results: Mapping[str, Any], X: Any, y: ArrayLike) -> Self:
        """Let each classifier of a cross-validation predict the rows it was not fitted to."""
        results: Any = cv_results
        if not isinstance(results, Mapping) or "estimator" not in results or "indices" not in results:
            got = show(list(results)) if isinstance(results, Mapping) else show(results)
            hint = "`cross_validate(model, X, y, return_estimator=True, return_indices=True)` gives both."
            raise fail(OptionError, "cv_results", "must hold `estimator` and `indices`", got=got, hint=hint)
        from sklearn.utils import _safe_indexing  # where there are such results, there is scikit-learn

        models, tests = results["estimator"], results["indices"]["test"]
        labels = as_keys(y, "y")
        needed = 1 + max((int(test.max()) for test in tests if len(test)), default=-1)
        if len(labels) < needed:
            hint = "pass the `X` and `y` that were cross-validated, all of their rows."
            raise fail(
                ShapeError, "y", "must have the rows of `cv_results`", got=f"{len(labels)} for {needed}", hint=hint
            )
        parts = [
            cls.of(model, _safe_indexing(X, test), labels[test]) for model, test in zip(models, tests, strict=True)
        ]
        classes = max((part.classes for part in parts), key=len)
        if any(name not in classes for part in parts for name in part.classes):
            classes = sorted({name for part in parts for name in part.classes})  # as scikit-learn orders them
        column_of = {name: k for k, name in enumerate(classes)}
        happened, y_prob = [], []
        for part in parts:
            columns = [column_of[name] for name in part.classes]
            padded = np.zeros((len(part.rows), len(classes)))
            padded[:, columns] = part.y_prob
            y_prob.append(padded)
            happened.append(np.array(columns)[part.happened])
        rows = [test[part.rows] for part, test in zip(parts, tests, strict=True)]
        unseen = sum(part.unseen for part in parts)
        return cls(np.concatenate(happened), np.concatenate(y_prob), classes, np.concatenate(rows), len(labels), unseen)

    def predictions(self, pos_label: Any = None, clip: float | None = None) -> Predictions:
        """Return the predictions; of one column, where there are two classes."""
        if not len(self.rows):
            raise fail(EmptyError, "y", "must hold classes that the estimator was fitted to", got="other classes only")
        if len(self.classes) > 2:
            if pos_label is not None:
                raise several_classes(len(self.classes))
            labels = np.empty(len(self.classes), dtype=object)
            labels[:] = self.classes
            several = categorical(labels[self.happened], self.y_prob, labels=self.classes, clip=clip)
            return replace(several, notes=(*several.notes, *self.notes))
        column = positive_column(self.classes, pos_label)
        two = bernoulli(self.happened == column, self.y_prob[:, column], clip=clip)
        return replace(two, notes=(*two.notes, *self.notes))

    def evaluate(self, pos_label: Any, clip: float | None, options: EvaluateOptions) -> Evaluation:
        """Evaluate the predictions; columns among the options are those of the rows that were given."""
        chosen = options.copy()
        for name in ("by", "cluster", "sample_weight"):
            if options.get(name) is not None:
                chosen[name] = self._taken(options[name], name)
        if chosen.get("cluster") is None and len(np.unique(self.rows)) < len(self.rows):
            chosen["cluster"] = self.rows  # a row that is predicted several times is still one
        return evaluate_predictions(self.predictions(pos_label, clip), **chosen)

    def _taken(self, column: Any, name: str) -> Any:
        if isinstance(column, Mapping):
            return {key: self._taken(value, f"{name}[{key!r}]") for key, value in column.items()}
        values = as_keys(column, name)
        same_rows(name, len(values), self.n_given, "y")
        return values[self.rows]


def positive_column(classes: list[Any], pos_label: Any) -> int:
    """Return the number of the positive class of two; by default the last."""
    positive = classes[1] if pos_label is None else pos_label
    if positive not in classes:
        got = f"{show(positive)}, and `classes_` {show(classes)}"
        raise fail(LabelError, "pos_label", "must be one of the classes of the estimator", got=got)
    return classes.index(positive)


def several_classes(count: int) -> InputError:
    """Build the error for a positive class beside several others."""
    return fail(OptionError, "pos_label", "is for two classes", got=f"{count} classes", hint="leave it out.")
