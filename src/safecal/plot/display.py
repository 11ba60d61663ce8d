"""What plots share: where they are drawn, their look and their scales, and three ways to make a display.

Nothing here touches matplotlib's settings. The neutral colour is the one that the axes themselves use for text, so that
dark styles stay readable. The other colours are those of Okabe and Ito, which colour-blind readers tell apart.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, Unpack

from .._checks import fail, show
from .._checks.columns import spelled
from .._optional import require
from .._types import AnyArray, ArrayLike, Labels
from ..errors import OptionError
from ..families import Predictions, predictions_of
from ..html import percent as with_space
from ..html import shortened
from ..inputs.estimators import Estimated, positive_column, probabilities_of, several_classes
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..options import EvaluateOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "AFTER", "BEFORE", "NEUTRAL", "OVER", "UNDER", "Display", "ModelLook", "alone", "axes_on", "blank_figure",
    "checked", "direction_label", "heading", "ink", "legend_above", "message", "next_look", "percent",
]  # fmt: skip

OVER, UNDER = "#D55E00", "#0072B2"  # vermillion, blue
NEUTRAL = "#56B4E9"  # sky blue
BEFORE, AFTER = "#CC79A7", "#009E73"  # reddish purple, bluish green
# Of models that share axes: no two have the same colour, line and marker.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
_STYLES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_MODEL_GID, _ALONE_GID = "model", "alone"

_LEGEND_COLUMNS = 2  # of a legend
_LEGEND_LINE = 1.45  # height of a line of a legend, in sizes of its letters


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say what to install."""
    return require("matplotlib.pyplot", "plots need matplotlib", "plot")


def axes_on(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes that were given, or those of a new figure of a size in inches."""
    plt = pyplot()
    if ax is None:
        new_axes: Axes = plt.subplots(figsize=size, layout="constrained")[1]
        return new_axes
    if not callable(getattr(ax, "errorbar", None)):
        hint = "`fig, ax = plt.subplots()` makes one; of several, pass one: `ax=axes[0, 0]`."
        raise fail(OptionError, "ax", "must be a matplotlib Axes", got=f"a {type(ax).__name__}", hint=hint)
    return ax


def blank_figure(figure: Figure | SubFigure | None, size: tuple[float, float]) -> Figure | SubFigure:
    """Return the figure that was given, which must be empty, or a new one."""
    plt = pyplot()
    if figure is None:
        new_figure: Figure = plt.figure(figsize=size, layout="constrained")
        return new_figure
    if not callable(getattr(figure, "add_gridspec", None)):
        hint = "`plt.figure()` makes one."
        raise fail(OptionError, "figure", "must be a matplotlib Figure", got=f"a {type(figure).__name__}", hint=hint)
    if figure.axes:
        hint = "pass a new one, or call `figure.clear()` first."
        raise fail(OptionError, "figure", "must be empty", got=f"a figure with {len(figure.axes)} axes", hint=hint)
    if figure.get_layout_engine() is None and hasattr(figure, "set_layout_engine"):
        figure.set_layout_engine("constrained")
    return figure


def ink(ax: Axes) -> Any:
    """Return the colour in which the axes write."""
    return ax.xaxis.label.get_color()


class ModelLook(NamedTuple):
    """How one of several models is drawn, and what the legend calls it."""

    name: str
    colour: str
    style: str
    marker: str
    first: bool

    def line(self) -> dict[str, Any]:
        """Return how its line is drawn; one of them carries the name."""
        return {"color": self.colour, "ls": self.style, "lw": 1.7, "label": self.name, "gid": _MODEL_GID}


def next_look(ax: Axes, name: str, length: int) -> ModelLook:
    """Return the look of one more model on axes that may hold others."""
    k = sum(drawn.get_gid() == _MODEL_GID for drawn in ax.get_children())
    colour, style, marker = (palette[k % len(palette)] for palette in (_COLOURS, _STYLES, _MARKERS))
    return ModelLook(shortened(name, length), colour, style, marker, k == 0)


def legend_above(ax: Axes) -> None:
    """Put the legend above the axes, where no data are."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": _LEGEND_COLUMNS}
        spaces = {"borderaxespad": 0.2, "borderpad": 0.2, "columnspacing": 1.2, "handlelength": 1.6}
        ax.legend(handles, labels, fontsize="small", frameon=False, **place, **spaces)


def heading(ax: Axes, text: str) -> None:
    """Write a heading above the legend."""
    legend = ax.get_legend()
    pad = 6.0
    if legend is not None:
        sizes = [float(label.get_fontsize()) for label in legend.get_texts()]
        pad += math.ceil(len(sizes) / _LEGEND_COLUMNS) * _LEGEND_LINE * max(sizes)
    ax.set_title(text, loc="left", pad=pad, fontsize="medium", fontweight="bold", parse_math=False)


def alone(ax: Axes) -> None:
    """Refuse axes on which a model was drawn that shares them with no other, and mark them as such."""
    if any(drawn.get_gid() == _ALONE_GID for drawn in ax.get_children()):
        hint = "give each model axes of its own: `figure, axes = plt.subplots(1, 2)`, then `ax=axes[0]`."
        raise fail(OptionError, "ax", "must hold no other model: their rows would cover each other", hint=hint)
    ax.plot([], [], gid=_ALONE_GID)


def message(ax: Axes, text: str) -> None:
    """Write a sentence in the middle of axes in which there is nothing to draw."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", wrap=True)


def direction_label(name: str, below: str = "under-confident", above: str = "over-confident") -> str:
    """Return the label of an axis on which the left is one thing and the right another."""
    return f"← {below}     {name}     {above} →"


def percent(share: float) -> str:
    """Return a share in percent, as pages write it, with a plain space."""
    return with_space(share, " ")


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
    _name_length: ClassVar[int] = 28  # characters of the name of a model

    @classmethod
    @abstractmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        """Take the numbers to draw from an evaluation."""

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on axes."""

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        """Draw one of several models; by default alone, under its name."""
        alone(ax)
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
            Of any predictions; where it lacks the numbers to draw, the plot or an error says so.
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
        ax, name : optional
            As in `from_evaluation`.

        Returns
        -------
        Display
            Itself.
        """
        axes = self._on(ax, self._size())
        if name is None:
            self._draw(axes)
        else:
            self._draw_model(axes, next_look(axes, name, self._name_length))
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
        clip, ax, name, **options : optional
            As in `from_predictions`.

        Returns
        -------
        Display
            The display, drawn.
        """
        y_prob, labels = estimated(estimator, X, pos_label)
        return cls.from_predictions(y, y_prob, clip=clip, ax=ax, name=name, **labels, **options)

    @classmethod
    @spelled(EvaluateOptions)
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        X: ArrayLike,
        y: ArrayLike,
        *,
        pos_label: Any = None,
        clip: float | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        **options: Unpack[EvaluateOptions],
    ) -> Self:
        """Evaluate a cross-validation of scikit-learn, and draw: every row by the model that was not fitted to it.

        The held-out rows of all folds are drawn together. Where folds are repeated, the predictions for one row form a
        cluster. Rows of a class that the model of their fold was not fitted to are left out, with a warning.

        Parameters
        ----------
        cv_results : dict
            What ``cross_validate(model, X, y, return_estimator=True, return_indices=True)`` returned.
        X : array-like
            The rows that were cross-validated.
        y : array-like of shape (n,)
            What happened.
        pos_label : object, optional
            The positive one of two classes; by default the last of ``classes_``.
        clip, ax, name, **options : optional
            As in `from_predictions`; columns are for the rows of ``X``.

        Returns
        -------
        Display
            The display, drawn.
        """
        evaluation = Estimated.of_folds(cv_results, X, y).evaluate(pos_label, clip, options)
        return cls.from_evaluation(evaluation, ax=ax, name=name)


def estimated(estimator: Any, X: ArrayLike, pos_label: Any) -> tuple[AnyArray, dict[str, Any]]:
    """Return the probabilities of an estimator, and the labels that they belong to."""
    y_prob, names = probabilities_of(estimator, X)
    if len(names) > 2:
        if pos_label is not None:
            raise several_classes(len(names))
        return y_prob, {"labels": names}
    column = positive_column(names, pos_label)
    return y_prob[:, column], {"pos_label": names[column]}
