"""Two outcomes, one of them positive; and several labels a row, each of which has two."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from scipy import special

from .._checks import fail
from .._checks.arrays import RowLabels, as_keys, block, row_labels, same_labels, same_rows
from .._checks.class_columns import decimals_of, label_matrix, label_names, label_values
from .._checks.classes import (
    binary_outcomes,
    clip_note,
    clip_value,
    one_form,
    outcome_column,
    probabilities,
    real_logits,
)
from .._checks.columns import cluster_codes, spelled, steady, weights
from .._checks.forecasts import Grid
from .._kernels import classes as kernel
from .._kernels.compiled import KernelSums, available, bernoulli_sums, floats
from .._kernels.spectrum import binary_node_rows, cell_moments, cell_numbers, coarse_odds
from .._sums.cells import Cells, WeightedCells
from .._sums.clusters import NEAR, Near
from .._sums.scored import Scored
from .._types import AnyArray, ArrayLike, BinOn, BoolArray, By, FloatArray, IndexArray, Labels, Mapped, Rows
from ..errors import OptionError, ShapeError, UnavailableError
from . import Predictions
from .family import BLOCK, Cumulants, FamilyWords, Partition, Spectral

__all__ = ["Bernoulli", "Labelled", "bernoulli", "checked_binary"]


_LEAST_EXCESS = -float(special.lambertw(1.0 / math.e).real)


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Bernoulli(Predictions):
    """Checked two-class predictions."""

    family: ClassVar[str] = "bernoulli"
    words: ClassVar[FamilyWords] = FamilyWords(
        kind="two classes",
        scaled="logits",
        sense="large",
        right="the logits it should give",
        call="safecal.evaluate(\n    y_true,\n    y_prob,{})",
        tempered="call `apply`.",
    )
    bin_choices: ClassVar[tuple[BinOn, ...]] = ("probability", "confidence", "entropy")
    binned_by_default: ClassVar[bool] = True
    discrete: ClassVar[bool] = True
    outcome: ClassVar[str] = "y_true"
    quick_bins: ClassVar[tuple[str, ...]] = ("probability", "confidence")
    has_odds: ClassVar[bool] = True
    mapped: ClassVar[Mapped] = "classes"

    happened: BoolArray
    values: AnyArray
    logits: bool
    clip: float | None
    row_labels: RowLabels | None = None
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.happened)

    @property
    def what_happened(self) -> AnyArray:
        return self.happened

    @property
    def classes(self) -> int:
        return 2

    def with_logits(self, logits: FloatArray) -> Predictions:
        return replace(self, values=logits, logits=True, clip=None, row_labels=None)

    def take(self, index: IndexArray) -> Self:
        return replace(self, happened=self.happened[index], values=self.values[index], row_labels=None)

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        if len({(part.logits, part.clip, part.notes) for part in parts}) > 1:
            return None
        happened, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("happened", "values"))
        return replace(parts[0], happened=happened, values=values, row_labels=None)

    @property
    def least_excess(self) -> float:
        return _LEAST_EXCESS

    @property
    def _block_rows(self) -> int:
        # The compiled kernel has no columns that memory would be sought for.
        return BLOCK if available() and self.clip is None else Predictions._block_rows.__get__(self)

    def row_blocks(self, quick: bool = False) -> Iterator[slice]:
        # It takes so little time for each row that the calls count.
        return self._rows(4 * BLOCK if quick and available() and self.clip is None else self._block_rows)

    def bin_range(self, bin_on: str) -> tuple[float, float]:
        return {"probability": (0.0, 1.0), "confidence": (0.5, 1.0), "entropy": (0.0, float(np.log(2.0)))}[bin_on]

    def known_value(self, bin_on: str, rows: slice) -> FloatArray | None:
        if bin_on != "probability" or self.logits or self.clip is not None:
            return None
        return block(self.values, rows)

    def quick_sums(
        self,
        rows: slice,
        weight: FloatArray | None = None,
        *,
        keys: int = 1,
        edges: FloatArray | None = None,
        bin_on: str = "probability",
        index: IndexArray | None = None,
        spectrum: bool = False,
        nodes: bool = False,
    ) -> KernelSums | None:
        if self.clip is not None:
            return None
        return bernoulli_sums(
            floats(self.values[rows]),
            self.happened[rows],
            logits=self.logits,
            weight=weight,
            keys=keys,
            edges=edges,
            confidence=bin_on == "confidence",
            index=index,
            spectrum=spectrum,
            nodes=nodes,
        )

    def _odds(self, rows: Rows) -> tuple[FloatArray, kernel.Odds]:
        values = block(self.values, rows)
        if self.logits:
            return values, kernel.odds_of_logit(values)
        if self.clip is not None:
            values = np.clip(values, self.clip, 1.0 - self.clip)
        return values, kernel.odds_of_probability(values)

    def _score(self, rows: Rows) -> Scored:
        values, odds = self._odds(rows)
        happened = self.happened[rows]
        agree = (values > (0.0 if self.logits else 0.5)) == happened
        certain = None
        if odds.m.min(initial=1.0) == 0.0:
            certain = np.isinf(values) if self.logits else odds.m == 0.0
        s = kernel.binary_scores(odds, agree, certain)
        predicted = np.where(values > 0.0, odds.M, odds.m) if self.logits else values
        return Scored(
            s.excess, s.varentropy, s.third_cumulant, s.surprisal, s.entropy,
            predicted, happened, odds.M, agree, s.brier,
        )  # fmt: skip

    def _partition(self, rows: slice) -> Partition:
        values, odds = self._odds(rows)

        def at(beta: AnyArray | float) -> Cumulants:
            if np.min(beta) < 0.0 and odds.m.min() == 0.0 and not (self.logits and np.isfinite(values).all()):
                raise UnavailableError("log_partition at beta < 0 is infinite where a probability is 0.")
            return Cumulants(*kernel.binary_cumulants(odds, beta))

        return at

    def _log_partitions(self, rows: slice, betas: Sequence[float]) -> FloatArray:
        if min(betas) < 0.0:
            return super()._log_partitions(rows, betas)
        _, odds = self._odds(rows)
        return np.stack([kernel.binary_log_partition(odds, beta) for beta in betas])

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        values, odds = self._odds(rows)

        def near() -> Near:
            q = special.expit(-np.array(NEAR)[:, None] * odds.L)
            mean = odds.L * q
            return Near(mean, mean * (odds.L * (1.0 - q)))  # in this order, because L * L may overflow where q is 0

        def nodes() -> FloatArray:
            return binary_node_rows(np.where(certain, np.inf, odds.L))

        assert scored.correct is not None
        certain = (odds.m == 0.0) & (odds.L == 0.0)
        inside = ~certain
        if weight is not None:
            inside &= weight > 0.0
        columns = (odds.L, ~scored.correct, values > (0.0 if self.logits else 0.5))
        L, wrong, positive = columns if inside.all() else tuple(column[inside] for column in columns)

        def coarse() -> IndexArray:
            cell = cell_numbers(odds.L) if weight is None else WeightedCells.numbers(odds.L)
            return np.where(inside, coarse_odds(cell, columns[2], weighted=weight is not None), -1)

        if weight is None:
            return Spectral(Cells(cell_moments(L, wrong, positive)), near, None, nodes, coarse)
        return Spectral(WeightedCells.of(L, weight[inside], wrong, positive), near, None, nodes, coarse)

    def gaps(self, rows: Rows) -> FloatArray:
        _, odds = self._odds(rows)
        return np.where((odds.m == 0.0) & (odds.L == 0.0), np.inf, odds.L)[:, None]

    def decimals(self, rows: Rows) -> int:
        return 0 if self.logits or self.clip is not None else decimals_of(self.values[rows])

    def certain(self, rows: Rows) -> int:
        values = self.values[rows]
        if self.logits:
            return int(np.isinf(values).sum())
        return 0 if self.clip is not None else int(((values == 0) | (values == 1)).sum())


@steady
@spelled()
def bernoulli(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    clip: float | None = None,
    verbalised: bool = False,
) -> Bernoulli:
    r"""Check two-class predictions and their outcomes.

    With ``l = log(p / (1 - p))``, the excess of a row is ``(p - y) l``: positive and unbounded when a confident
    prediction is wrong, never below -0.27846 (``-W(1/e)``), and exactly 0 at ``p = 1/2``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        What happened: 0 or 1, or any two labels when ``pos_label`` is given.
    y_prob : array-like of shape (n,)
        Probability of the positive class.
    logits : array-like of shape (n,)
        Log-odds of the positive class, instead of ``y_prob``. They never saturate: prefer them.
    pos_label : object, optional
        The label of the positive class. It must occur in ``y_true``; for a batch in which it need not, pass
        ``y_true == pos_label`` as outcomes.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``, at most 0.02. Off by default: an outcome of probability 0 that
        happened makes ECD infinite, and that is the truth about the model.
    verbalised : bool, default False
        Whether the probabilities were said, by people or by a model that was asked how sure it is, in steps of some
        percent. Then 100 % is read as anything from halfway to the step below, and 0 % as anything up to halfway to the
        step above; the result says so.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    categorical : Two or more classes, one column each.

    Examples
    --------
    >>> import safecal
    >>> safecal.bernoulli([1, 0, 1], [0.9, 0.2, 0.6]).ecd
    -0.2197...
    >>> safecal.bernoulli(["sick", "well"], logits=[2.0, -1.0], pos_label="sick").ecd
    -0.2536...
    """
    rows = row_labels(y_true=y_true, y_prob=y_prob, logits=logits)
    values, name = one_form(y_prob, logits)
    predictions = checked_binary(outcome_column(y_true, values, name), values, name, pos_label, clip, rows)
    if not verbalised:
        return predictions
    if predictions.logits or predictions.clip is not None:
        raise fail(OptionError, "verbalised", "belongs to `y_prob` without `clip`", hint="leave one of them out.")
    grid = Grid().add(values)
    return replace(predictions, values=grid.moved(values), notes=(grid.note,))


def checked_binary(
    y_true: AnyArray,
    values: AnyArray,
    name: str,
    pos_label: Any,
    clip: float | None,
    rows: RowLabels | None,
    whole: bool = True,
) -> Bernoulli:
    """Check a column and its outcomes; ``whole`` tells that no other rows will follow."""
    if values.ndim != 1:
        hint = None
        if values.ndim == 2:
            column = values.shape[1] - 1
            hint = f"pass the positive class alone, `{name}[:, {column}]`, or use `categorical` for one column a class."
        raise fail(
            ShapeError, name, "must be one value for each row, shape (n,)", got=f"shape {values.shape}", hint=hint
        )
    if name == "logits":
        real_logits(values, name)
    else:
        probabilities(values, name)
    happened = binary_outcomes(y_true, len(values), name, pos_label, whole)
    if clip is None:
        return Bernoulli(happened, values, name == "logits", None, rows)
    clip = clip_value(clip, name, 2)
    return Bernoulli(happened, values, name == "logits", clip, rows, clip_note(clip))


@final
@dataclass(frozen=True, slots=True)
class Labelled:
    """Predictions of shape (n, L), row by row, and the names of the labels."""

    predictions: Bernoulli
    names: list[Hashable]
    row_labels: RowLabels | None

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: ArrayLike | None,
        *,
        logits: ArrayLike | None,
        labels: Labels | None,
        clip: float | None,
        fewest: int = 2,
    ) -> Self:
        """Check matrices of outcomes and predictions; of a part of the rows, one is enough."""
        rows = row_labels(y_true=y_true, y_prob=y_prob, logits=logits)
        values, name = label_values(y_prob, logits)
        happened = label_matrix(y_true, values.shape, name, fewest)
        names = label_names(y_true, y_prob if logits is None else logits, labels, values.shape[1], name)
        clip = clip_value(clip, name, 2)
        columns = happened.reshape(-1), values.reshape(-1)
        return cls(Bernoulli(*columns, name == "logits", clip, notes=clip_note(clip)), names, rows)

    def beside(
        self, by: By | None, cluster: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[dict[str, AnyArray], AnyArray, AnyArray | None]:
        """Return the groups, the clusters and the weights of every label of every row."""
        same_labels(self.row_labels, by=by, cluster=cluster, sample_weight=sample_weight)
        count = len(self.names)
        n = self.predictions.n // count
        label = np.empty(count, dtype=object)
        label[:] = self.names
        groups = {"label": np.tile(label, n)}
        for name, column in _columns(by).items():
            if name == "label":
                raise fail(OptionError, "by", "must not have a column `label`: that is what `by_label` adds",
                           hint="name yours otherwise.")  # fmt: skip
            values = as_keys(column, "by")
            same_rows("by", len(values), n, "y_true")
            groups[name] = np.repeat(values, count, axis=0)
        row = np.arange(n) if cluster is None else cluster_codes(cluster, n)[1]
        weight = weights(sample_weight, n)
        return groups, np.repeat(row, count), None if weight is None else np.repeat(weight, count)


def _columns(by: By | None) -> dict[str, ArrayLike]:
    if by is None:
        return {}
    return dict(by) if isinstance(by, Mapping) else {str(getattr(by, "name", None) or "group"): by}
