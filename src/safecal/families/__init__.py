"""One file a family: each turns an outcome and a prediction into a few numbers. Here: what all of them offer.

To add one, fill in `Family` in a file of its own, and name it in the list of families below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np

from .._checks import fail, show
from .._checks.arrays import row_labels, same_labels
from .._checks.classes import class_shape, one_form, outcome_column, refuse_arrays
from .._checks.columns import spelled, steadied, weights, whole_number
from .._sums import Tally
from .._sums.scored import Scored
from .._sums.splits import Bins, Plan, bins_for, by_bin
from .._sums.summary import Summary
from .._sums.sweep import sweep, tabulate
from .._sums.table import Table
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike, BinOn, By, FloatArray, IndexArray, Labels, Strategy
from ..errors import FormError, MergeError, OptionError, RangeError, UnavailableError
from ..options import EvaluateOptions
from .family import BLOCK, Family

if TYPE_CHECKING:
    from ..judge.evaluation import Evaluation


__all__ = ["FAMILIES", "Predictions", "classifier", "family_named", "predictions_of"]

#: The families: where the class of each stands. Results and documents know them by their names alone.
FAMILIES = {
    "bernoulli": ("bernoulli", "Bernoulli"),
    "categorical": ("categorical", "Categorical"),
    "gaussian": ("gaussian", "Gaussian"),
    "density": ("density", "Density"),
    "bounded": ("bounded", "Bounded"),
    "ensemble": ("ensemble", "Ensemble"),
    "intervals": ("forecasts", "Intervals"),
    "quantiles": ("forecasts", "Quantiles"),
}


@steadied
class Predictions(Family):
    """Checked outcomes and predictions of one family, ready to be scored.

    Build them with `bernoulli`, `categorical`, `gaussian` or `density`. Nothing row-sized is made until it is asked
    for: sums run over blocks of rows.

    A new family subclasses this, names itself in ``family``, and fills in ``n``, ``_score`` and ``_partition``;
    `safecal.testing.assert_family_laws` checks the result.

    Examples
    --------
    >>> import safecal
    >>> predictions = safecal.bernoulli([1, 0, 1, 1], [0.8, 0.3, 0.6, 0.9])
    >>> predictions
    bernoulli predictions: 4 rows
    >>> round(predictions.ecd, 4)
    -0.2283
    """

    __slots__ = ()

    @property
    def look(self) -> Look | None:
        """How these numbers look at the rows, where there are `others`, or where these must not condemn or acquit."""
        return None

    @property
    def others(self) -> tuple[Predictions, ...]:
        """Other looks at the same rows, of any family, each with a ``look``; the verdict is that of all of them."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about how these numbers came to be, that stand beside every result."""
        return ()

    def _rows(self, size: int) -> Iterator[slice]:
        for start in range(0, self.n, size):
            yield slice(start, min(start + size, self.n))

    def blocks(self, size: int = BLOCK) -> Iterator[Scored]:
        """Score the rows a block at a time.

        Parameters
        ----------
        size : int, default 65536
            Rows in a block.

        Yields
        ------
        Scored
            The columns of the next rows.
        """
        for rows in self._rows(whole_number(size, "size", 1)):
            yield self._score(rows)

    def score(self) -> Scored:
        """Score all rows at once.

        Returns
        -------
        Scored
            Columns as long as the data.
        """
        return Scored.concatenate(list(self.blocks(self._block_rows)))

    def row_blocks(self, quick: bool = False) -> Iterator[slice]:
        """Cut the rows into blocks that fit comfortably into memory; ``quick`` where the compiled kernel sums them."""
        return self._rows(self._block_rows)

    def as_odds(self) -> Predictions:
        """Return predictions of two classes, a column each, as log-odds of the second; others as they are."""
        return self

    def with_logits(self, logits: FloatArray) -> Predictions:
        """Return the same outcomes beside other log-odds, (n,), or logits, (n, K); raise where a family has none."""
        raise UnavailableError(f"a map does not apply to {self.family} predictions.")

    def take(self, index: IndexArray) -> Self:
        """Return some rows.

        Parameters
        ----------
        index : ndarray of int
            Their numbers.

        Returns
        -------
        Predictions
            Those rows, in that order.

        Raises
        ------
        UnavailableError
            For a family whose rows cannot be told apart.
        """
        raise UnavailableError(
            f"{self.family} predictions have one map for all rows.\n\n"
            "Hint: fit each group by itself, on predictions of its own."
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Predictions]) -> Predictions:
        """Put the rows of predictions of one form under each other.

        Parameters
        ----------
        parts : sequence of Predictions
            The first of them is of this family.

        Returns
        -------
        Predictions
            All rows.

        Raises
        ------
        MergeError
            Where they are not of one form, or where their family cannot put rows together.
        """
        if len(parts) == 1:
            return parts[0]
        alike = [part for part in parts if isinstance(part, cls)]
        joined = cls._joined(alike) if len(alike) == len(parts) else None
        if joined is None:
            raise MergeError("predictions must be of one form and one number of classes; these are not.")
        return joined

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        """Put rows of this family under each other; None where they are not of one form."""
        return None

    def summary(self, weight: ArrayLike | None = None) -> Summary:
        """Sum all rows.

        Parameters
        ----------
        weight : array-like of shape (n,), optional
            Weight of each row.

        Returns
        -------
        Summary
            Sums that merge with ``+``.
        """
        return sweep(self, [], self._weights(weight))[0]

    @property
    def ecd(self) -> float:
        """Entropic calibration difference in nats: positive over-confident, negative under-confident."""
        return self.summary().ecd

    def log_partition(self, beta: float, *, deriv: int = 0) -> FloatArray:
        """Return ``A(beta) = log sum p**beta`` of each row, or a derivative of it.

        The first derivative at 1 is minus the entropy, the second is the varentropy. ``A`` is normalised to be 0 at 1.

        Parameters
        ----------
        beta : float
            Inverse temperature: below 1 the tempered model is less confident.
        deriv : {0, 1, 2, 3}, default 0
            Order of the derivative.

        Returns
        -------
        ndarray of shape (n,)
            One value a row.

        Raises
        ------
        UnavailableError
            Where the sum or integral does not exist.
        """
        if isinstance(deriv, bool) or deriv not in (0, 1, 2, 3):
            raise fail(OptionError, "deriv", "must be 0, 1, 2 or 3", got=show(deriv))
        if not np.isfinite(beta):
            raise fail(RangeError, "beta", "must be finite", got=show(beta))
        parts = [self._partition(rows)(float(beta))[deriv] for rows in self.row_blocks()]
        return np.concatenate(parts)

    def table(
        self,
        bins: int | Bins = 10,
        *,
        bin_on: BinOn | None = None,
        strategy: Strategy = "uniform",
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """Sum the rows by bin: every metric, without tests and intervals, in one fast pass.

        Parameters
        ----------
        bins : int or Bins, default 10
            How many bins, or the bins themselves.
        bin_on : str, optional
            What rows are binned on; one of ``bin_choices``.
        strategy : {"uniform", "quantile"}, default "uniform"
            Bins of equal width, or of about equally many rows.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.

        Returns
        -------
        Table
            A `Summary` for each bin; ``.total`` for all rows.
        """
        split = by_bin(self, *bins_for(self, bins, bin_on, strategy))
        return tabulate(self, [split], self._weights(sample_weight))[0]

    def _weights(self, sample_weight: ArrayLike | None) -> AnyArray | None:
        same_labels(self.row_labels, sample_weight=sample_weight)
        return weights(sample_weight, self.n, self.outcome)

    @spelled()
    def tally(
        self,
        *,
        bins: int | Bins | Literal["auto"] | None = "auto",
        bin_on: BinOn | None = None,
        strategy: Strategy = "uniform",
        by: By | None = None,
        cluster: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Tally:
        """Sum these predictions: all that an evaluation is made of, without a row.

        Parameters
        ----------
        bins : int, Bins, "auto" or None, default "auto"
            The bins of the table; ``"auto"`` is ten bins for classifiers, none for states and densities.
        bin_on, strategy, by, cluster, sample_weight
            As in `safecal.evaluate`.

        Returns
        -------
        Tally
            Sums that merge with ``+``.
        """
        same_labels(self.row_labels, by=by, cluster=cluster, sample_weight=sample_weight)
        plan = Plan.of(self, bins, bin_on, strategy)
        return Tally.of(self, plan, sample_weight=sample_weight, by=by, cluster=cluster)

    @spelled(EvaluateOptions)
    def evaluate(self, **options: Unpack[EvaluateOptions]) -> Evaluation:
        """Evaluate these predictions: every metric, the table of bins, groups.

        Parameters
        ----------
        **options
            ``bins``, ``bin_on``, ``strategy``, ``by``, ``cluster``, ``sample_weight``, ``threshold``,
            ``max_temperature``, ``max_ratio``, ``local_threshold``, ``min_share``, ``level``, ``rule`` and ``rng``, as
            in `safecal.evaluate`; ``bins="auto"``, the default, is ten for classifiers, none for states and densities.

        Returns
        -------
        Evaluation
            What `safecal.evaluate` returns.
        """
        from ..judge.evaluation import evaluate_predictions

        return evaluate_predictions(self, **options)

    @property
    def _remark(self) -> str:
        """What stands behind the number of rows."""
        return ""

    def __repr__(self) -> str:
        return f"{self.family} predictions: {self.n} {'row' if self.n == 1 else 'rows'}{self._remark}"


def family_named(name: str) -> type[Predictions]:
    """Return the class of a family; of one that is not known here, `Predictions` itself, which has plain words.

    Examples
    --------
    >>> family_named("gaussian").words.scaled
    'covariances'
    >>> family_named("a family of your own").words.scaled
    'densities'
    """
    if name in FAMILIES:
        module, kind = FAMILIES[name]
        named: type[Predictions] = getattr(import_module(f"{__package__}.{module}"), kind)
        return named
    own = (kind for kind in Predictions.__subclasses__() if getattr(kind, "family", None) == name)
    return next(own, Predictions)


def classifier(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    whole: bool = False,
) -> Predictions:
    """Return Bernoulli predictions for a column, categorical ones for a matrix.

    ``whole`` tells that no other rows will follow: a label that does not occur in them never does.
    """
    from .bernoulli import checked_binary
    from .categorical import checked_classes

    rows = row_labels(y_true=y_true, y_prob=y_prob, logits=logits)
    values, name = one_form(y_prob, logits)
    outcomes = outcome_column(y_true, values, name)
    if class_shape(values, name, pos_label, labels):
        return checked_binary(outcomes, values, name, pos_label, clip, rows, whole)
    original = y_prob if logits is None else logits
    return checked_classes(outcomes, values, name, original, labels, clip, rows, whole)


def predictions_of(
    y_true: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    also: str = "",
) -> Predictions:
    """Return predictions as they are, and arrays as those of a classifier; ``also`` names what else a door takes."""
    if isinstance(y_true, Predictions):
        refuse_arrays("predictions", y_prob=y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        return y_true
    if y_prob is None and logits is None:
        rule = f"must be predictions{also}, or outcomes beside `y_prob` or `logits`"
        hint = "pass `y_true, y_prob`, or predictions such as `safecal.gaussian(x_true, mean, cov=cov)`."
        raise fail(FormError, "y_true", rule, got=f"a {type(y_true).__name__} alone", hint=hint)
    return classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)
