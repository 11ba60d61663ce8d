"""For whom: ECD by group, and of slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack, final

import numpy as np

from .._checks import fail
from .._checks.columns import fraction, positive, spelled, whole_number
from .._sums.table import Table
from .._types import ArrayLike, Labels
from ..errors import OptionError
from ..families import Predictions, predictions_of
from ..html import shortened
from ..inference import Interval
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..judge.groups import judge_groups
from ..options import EvaluateOptions
from ..slices.results import Slices
from .display import Display, alone, checked, estimated, heading, message
from .intervals import BEYOND, draw_ecd, name_rows, note, states

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GroupsDisplay", "SlicesDisplay"]

_GROUPS_DRAWN = 20
_NAME_LENGTH = 28  # characters of a group


@final
@dataclass(slots=True, eq=False, repr=False)
class GroupsDisplay(Display):
    """ECD of each group, the largest first, with intervals that hold together.

    The intervals are those of the verdict: so wide that those of all groups hold at once, whether drawn or not. The
    marker says on which side of its limit an interval lies. Few rows give long intervals; where one leaves the axis, an
    arrow says how far.

    Attributes
    ----------
    labels : tuple of str
        The groups, the one with the largest ECD first.
    n, n_impossible : tuple of int
        Rows of each group, and those whose outcome had probability zero.
    intervals : tuple of Interval
        ECD of each group, with its interval.
    name : str
        What the groups are.
    limits : tuple of float
        Largest ECD that is allowed in each group, in nats: the threshold times its dimensions.
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    See Also
    --------
    ECDDisplay : ECD by bin.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from safecal.plot import GroupsDisplay
    >>> display = GroupsDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], by=["a", "a", "b", "b"])
    >>> display
    GroupsDisplay: 2 groups, 0 of them beyond 0.1 nat
    >>> plt.close(display.figure_)
    """

    labels: tuple[str, ...]
    n: tuple[int, ...]
    n_impossible: tuple[int, ...]
    intervals: tuple[Interval, ...]
    name: str
    limits: tuple[float, ...]

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, ax: Axes | None = None, name: str | None = None, most: int = _GROUPS_DRAWN
    ) -> Self:
        """Draw the groups of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            Made with ``by=``.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        name : str, optional
            What the model is called; written above.
        most : int, default 20
            How many groups to draw, at most; a line says how many more there are.

        Returns
        -------
        GroupsDisplay
            The display, drawn.
        """
        return cls._of(checked(evaluation)).plot(ax=ax, name=name, most=most)

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        table = evaluation.groups
        if table is None:
            raise fail(OptionError, "evaluation", "must have groups", hint="evaluate with `by=` a column of groups.")
        judged = judge_groups(table, evaluation.limits, evaluation.tally)
        intervals = [judged.interval(ecd, k) for k, ecd in enumerate(table.ecd.tolist())]
        return cls._of_table(table, intervals, judged.limit.tolist())

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
        most: int = _GROUPS_DRAWN,
        **options: Unpack[EvaluateOptions],
    ) -> Self:
        """Evaluate a model by group, and draw.

        Parameters
        ----------
        y_true, y_prob, logits, pos_label, labels, clip
            Outcomes and predictions, as in `safecal.evaluate`; or `Predictions`, which hold both.
        ax, name, most : optional
            As in `from_evaluation`.
        **options
            ``by``, and the other arguments of `safecal.evaluate`.

        Returns
        -------
        GroupsDisplay
            The display, drawn.
        """
        predictions = predictions_of(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        return cls.from_evaluation(evaluate_predictions(predictions, **options), ax=ax, name=name, most=most)

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
        most: int = _GROUPS_DRAWN,
        **options: Unpack[EvaluateOptions],
    ) -> Self:
        """Evaluate a fitted classifier of scikit-learn's kind by group, and draw.

        Parameters
        ----------
        estimator, X, y, pos_label, clip
            The classifier, and rows that it was not fitted to, as in `ECDDisplay.from_estimator`.
        ax, name, most : optional
            As in `from_evaluation`.
        **options
            ``by``, and the other arguments of `safecal.evaluate`.

        Returns
        -------
        GroupsDisplay
            The display, drawn.
        """
        y_prob, labels = estimated(estimator, X, pos_label)
        return cls.from_predictions(y, y_prob, clip=clip, ax=ax, name=name, most=most, **labels, **options)

    @classmethod
    def from_table(
        cls,
        table: Table,
        *,
        threshold: float = 0.1,
        level: float = 0.95,
        ax: Axes | None = None,
        name: str | None = None,
        most: int = _GROUPS_DRAWN,
    ) -> Self:
        """Draw a table of groups, for example one that was merged from several.

        Parameters
        ----------
        table : Table
            By group.
        threshold : float, default 0.1
            Largest ECD that is allowed, in nats.
        level : float, default 0.95
            Level of the intervals.
        ax, name, most : optional
            As in `from_evaluation`.

        Returns
        -------
        GroupsDisplay
            The display, drawn.
        """
        limit, level = positive(threshold, "threshold"), fraction(level, "level")
        return cls._of_table(table, table.intervals(level), [limit] * len(table)).plot(ax=ax, name=name, most=most)

    @classmethod
    def _of_table(cls, table: Table, intervals: Sequence[Interval], limits: Sequence[float]) -> Self:
        order = np.lexsort((-table.n, -table.ecd)).tolist()  # NaN comes last
        columns = table.labels, table.n.tolist(), table.n_impossible.tolist(), intervals, limits
        labels, n, n_impossible, ordered, ordered_limits = (tuple(column[k] for k in order) for column in columns)
        return cls(labels, n, n_impossible, ordered, table.name, ordered_limits)

    def __repr__(self) -> str:
        beyond = states(self.intervals, self.limits).count(BEYOND)
        limit = f"{self.limits[0]:g} nat" if len(set(self.limits)) == 1 else "their limits"
        return f"{type(self).__name__}: {len(self.labels)} groups, {beyond} of them beyond {limit}"

    def plot(self, *, ax: Axes | None = None, name: str | None = None, most: int = _GROUPS_DRAWN) -> Self:
        """Draw.

        Parameters
        ----------
        ax, name, most : optional
            As in `from_evaluation`.

        Returns
        -------
        GroupsDisplay
            Itself.
        """
        drawn = min(whole_number(most, "most", 1), len(self.labels))
        more = drawn < len(self.labels)
        axes = self._on(ax, (6.4, 1.8 + 0.28 * (min(drawn, 60) + more)))
        if name is not None:
            alone(axes)
        self._draw(axes, drawn)
        if name is not None:
            heading(axes, shortened(name, self._name_length))
        return self

    def _draw(self, ax: Axes, drawn: int = _GROUPS_DRAWN) -> None:
        more = len(self.labels) - drawn
        intervals, counts = self.intervals[:drawn], self.n[:drawn]
        draw_ecd(ax, intervals, self.limits[:drawn], "intervals, all together")
        name_rows(ax, [shortened(label, _NAME_LENGTH) for label in self.labels[:drawn]], counts)
        for y, row in enumerate(zip(intervals, counts, self.n_impossible[:drawn], strict=True)):
            note(ax, y, *row, True)
        if more:
            ax.set_ylim(drawn + 0.5, -0.5)
            words = f"and {more:,} more group{'' if more == 1 else 's'} with smaller ECD"
            ax.text(0.5, drawn, words, transform=ax.get_yaxis_transform(), ha="center", va="center", fontsize="small")
        ax.set_ylabel(shortened(self.name, _NAME_LENGTH), parse_math=False)


@final
@dataclass(slots=True, eq=False, repr=False)
class SlicesDisplay(Display):
    """Slices as bars, with intervals that hold together, against the limit.

    Attributes
    ----------
    slices : Slices
        What is drawn.
    limits : tuple of float
        Largest ECD that is allowed in each, in nats.
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    See Also
    --------
    GroupsDisplay : ECD by groups of your own.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z, age = rng.normal(0, 2, 4000), rng.integers(20, 90, 4000)
    >>> happened = rng.random(4000) < 1 / (1 + np.exp(-z / np.where(age >= 70, 3, 1)))
    >>> display = safecal.find_slices(safecal.bernoulli(happened, logits=z), {"age": age}).plot()
    >>> display
    SlicesDisplay: 1 slice
    >>> plt.close(display.figure_)
    """

    slices: Slices
    limits: tuple[float, ...]
    _name_length: ClassVar[int] = 36  # conditions are long

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        slices = evaluation.slices
        if slices is None:
            hint = "evaluate with `features=` a frame of what is known of each row."
            raise fail(OptionError, "evaluation", "must have slices", hint=hint)
        return cls._with(slices, evaluation.limits.local_threshold)

    @classmethod
    def _with(cls, slices: Slices, local_threshold: float) -> Self:
        return cls(slices, tuple(local_threshold * s.dimensions for s in slices))

    @classmethod
    def from_slices(cls, slices: Slices, *, local_threshold: float = 0.2, ax: Axes | None = None) -> Self:
        """Draw slices.

        Parameters
        ----------
        slices : Slices
            The slices to draw.
        local_threshold : float, default 0.2
            Largest ECD that is allowed in a slice, in nats a dimension.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        SlicesDisplay
            The display, drawn.
        """
        return cls._with(slices, positive(local_threshold, "local_threshold")).plot(ax=ax)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {len(self.slices)} slice{'' if len(self.slices) == 1 else 's'}"

    def _size(self) -> tuple[float, float]:
        return 6.8, 1.8 + 0.32 * max(len(self.slices), 2)

    def _draw(self, ax: Axes) -> None:
        if not len(self.slices):
            message(ax, "No slice was found.")
            return
        draw_ecd(ax, [s.ecd for s in self.slices], self.limits, "intervals, all together", bars=True)
        conditions = [shortened(s.condition, self._name_length) for s in self.slices]
        name_rows(ax, conditions, [s.n for s in self.slices])
