"""What the displays share: three ways to make one, and a way to draw it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from .._checks.columns import spelled
from .._checks.message import fail, show
from .._types import AnyArray, ArrayLike, Labels
from ..errors import LabelError, OptionError, ShapeError
from ..families.classifier import predictions_of
from ..families.predictions import Predictions
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate_predictions
from ..options import EvaluateOptions
from .canvas import Look, axes_on, heading, next_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Display", "checked"]


def checked(evaluation: Any, name: str = "evaluation") -> Evaluation:
    """Require an Evaluation."""
    if not isinstance(evaluation, Evaluation):
        hint = "`safecal.evaluate(y_true, y_prob)` makes one; so does `.evaluate()` of any predictions."
        got = f"{show(evaluation)}, a {type(evaluation).__name__}"
        raise fail(OptionError, name, "must be an Evaluation", got=got, hint=hint)
    return evaluation


class Display(ABC):
    """A plot that holds the numbers it draws; made from an evaluation, from predictions or from an estimator."""

    __slots__ = ("ax_", "figure_")

    ax_: Axes
    figure_: Any

    @classmethod
    @abstractmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        """Take from an evaluation what is drawn."""

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on axes."""

    def _draw_model(self, ax: Axes, look: Look) -> None:
        """Draw one of several models; by default alone, under its name."""
        self._draw(ax)
        heading(ax, look.name)

    def _size(self) -> tuple[float, float]:
        """Return the size of a new figure, in inches."""
        return 5.8, 4.2

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Axes | None = None, name: str | None = None) -> Self:
        """Draw what an evaluation holds.

        Parameters
        ----------
        evaluation : Evaluation
            Of any predictions; where it lacks what is drawn, the plot or an error says so.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        name : str, optional
            What the model is called. Models with names can share axes: each has a look of its own, in one legend.

        Returns
        -------
        Display
            The display, drawn.
        """
        return cls._of(checked(evaluation)).plot(ax=ax, name=name)

    def plot(self, *, ax: Axes | None = None, name: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        name : str, optional
            What the model is called. Models with names can share axes: each has a look of its own, in one legend.

        Returns
        -------
        Display
            Itself.
        """
        axes = self._on(ax, self._size())
        if name is None:
            self._draw(axes)
        else:
            self._draw_model(axes, next_look(axes, name))
        return self

    def _on(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """Keep the axes that were given, or new ones, and return them."""
        self.ax_ = axes_on(ax, size)
        self.figure_ = self.ax_.figure
        return self.ax_

    @classmethod
    @spelled(EvaluateOptions)
    def from_predictions(
        cls,
        y_true: Predictions | ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Labels | None = None,
        clip: float | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        **options: Unpack[EvaluateOptions],
    ) -> Self:
        """Evaluate a model, and draw.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Predictions
            What happened, with a prediction beside it; or predictions, which hold both.
        y_prob : array-like of shape (n,) or (n, K)
            Probability of the positive class, or of each of K classes.
        logits : array-like of shape (n,) or (n, K)
            Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
        pos_label : object, optional
            The label of the positive class, for shape (n,).
        labels : sequence of K hashables, optional
            The names of the columns in their order, for shape (n, K).
        clip : float, optional
            Move probabilities into ``[clip, 1 - clip]``; off by default.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        name : str, optional
            What the model is called. Models with names can share axes: each has a look of its own, in one legend.
        **options
            The other arguments of `safecal.evaluate`: ``bins``, ``by``, ``sample_weight``, ``level`` and so on.

        Returns
        -------
        Display
            The display, drawn.
        """
        predictions = predictions_of(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        return cls.from_evaluation(evaluate_predictions(predictions, **options), ax=ax, name=name)

    @classmethod
    @spelled(EvaluateOptions)
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pos_label: Any = None,
        clip: float | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        **options: Unpack[EvaluateOptions],
    ) -> Self:
        """Evaluate a fitted classifier of scikit-learn's kind, and draw.

        Parameters
        ----------
        estimator : object
            A fitted classifier with ``predict_proba`` and ``classes_``.
        X : array-like
            Rows that it was not fitted to.
        y : array-like of shape (n,)
            What happened, as one of ``classes_``.
        pos_label : object, optional
            The positive one of two classes; by default the last of ``classes_``.
        clip : float, optional
            Move probabilities into ``[clip, 1 - clip]``; off by default.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        name : str, optional
            What the model is called. Models with names can share axes: each has a look of its own, in one legend.
        **options
            The other arguments of `safecal.evaluate`: ``bins``, ``by``, ``sample_weight``, ``level`` and so on.

        Returns
        -------
        Display
            The display, drawn.
        """
        y_prob, labels = estimated(estimator, X, pos_label)
        return cls.from_predictions(y, y_prob, clip=clip, ax=ax, name=name, **labels, **options)


def estimated(estimator: Any, X: ArrayLike, pos_label: Any) -> tuple[AnyArray, dict[str, Any]]:
    """Return the probabilities of an estimator, and the labels that they belong to."""
    predict = getattr(estimator, "predict_proba", None)
    hint = "pass its probabilities to `from_predictions`."
    if not callable(predict):
        got = f"a {type(estimator).__name__}"
        raise fail(OptionError, "estimator", "must have a method `predict_proba`", got=got, hint=hint)
    classes = getattr(estimator, "classes_", None)
    if classes is None or np.ndim(classes) != 1:
        got = "no `classes_`" if classes is None else "several outputs"
        raise fail(OptionError, "estimator", "must be fitted, for one output with `classes_`", got=got, hint=hint)
    names = np.asarray(classes).tolist()
    y_prob = np.asarray(predict(X))
    if y_prob.ndim != 2 or y_prob.shape[1] != len(names) or len(names) < 2:
        got = f"shape {y_prob.shape} for {len(names)} of `classes_`"
        raise fail(ShapeError, "estimator", "must predict a column for each of two or more classes", got=got, hint=hint)
    if len(names) > 2:
        if pos_label is not None:
            raise fail(
                OptionError, "pos_label", "is for two classes", got=f"{len(names)} classes", hint="leave it out."
            )
        return y_prob, {"labels": names}
    positive = names[1] if pos_label is None else pos_label
    if positive not in names:
        got = f"{show(positive)}, and `classes_` {show(names)}"
        raise fail(LabelError, "pos_label", "must be one of the classes of the estimator", got=got)
    return y_prob[:, names.index(positive)], {"pos_label": positive}
