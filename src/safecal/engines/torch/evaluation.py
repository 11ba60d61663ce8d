"""From tensors to a verdict: the sums of all rows, made where the predictions lie, and everything about them."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, Unpack, final

import numpy as np
from scipy import special

from ..._checks.columns import spelled
from ..._checks.message import fail
from ..._kernels.spectrum import NODES, confidence_cells
from ..._sums.bins import Bins
from ..._sums.clusters import Near
from ..._sums.nodes import Nodes
from ..._sums.scored import Scored, possible_weight
from ..._sums.splits import Plan
from ..._sums.tally import Tally
from ..._types import AnyArray, BinOn, BoolArray, FloatArray, IndexArray, Rows, Strategy
from ...errors import EmptyError, FormError, UnavailableError
from ...families.bernoulli import bernoulli
from ...families.categorical import Categorical, categorical
from ...families.family import AT_NEAR, FamilyWords, Partition, Spectral
from ...families.predictions import Predictions
from ...judge.evaluation import Evaluation
from ...options import LimitOptions, Limits
from .binary import checked_outcomes
from .categorical import checked_classes, counted_rows
from .rows import ClassRows, checked_hidden, class_tally, hidden_rows, logit_rows, outcome_tally
from .tensors import COLUMNS, WIDTHS, load_torch, on_cuda

__all__ = ["ScoredRows", "evaluate", "tally"]

_FEW = 512  # classes up to which rows with groups, clusters or weights are scored by NumPy: they are no burden


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ScoredRows(Predictions):
    """Rows of K outcomes of which the columns are known, and not the predictions themselves.

    Attributes
    ----------
    columns : ndarray of shape (31, n)
        As `engines.torch` scores them.
    classes : int
        Number of classes.
    """

    family: ClassVar[str] = "categorical"
    words: ClassVar[FamilyWords] = Categorical.words
    bin_choices = Categorical.bin_choices
    binned_by_default: ClassVar[bool] = True
    discrete: ClassVar[bool] = True
    outcome: ClassVar[str] = "y_true"

    columns: FloatArray
    classes: int

    @property
    def n(self) -> int:
        return int(self.columns.shape[1])

    @property
    def least_excess(self) -> float:
        return -float(special.lambertw((self.classes - 1) / math.e).real)

    def bin_range(self, bin_on: str) -> tuple[float, float]:
        return (0.0, 1.0) if bin_on == "confidence" else (0.0, float(np.log(self.classes)))

    def take(self, index: IndexArray) -> Self:
        return type(self)(self.columns[:, index], self.classes)

    def _column(self, name: str, rows: Rows) -> FloatArray:
        return np.asarray(self.columns[COLUMNS.index(name)][rows], dtype=np.float64)

    def _score(self, rows: Rows) -> Scored:
        surprisal, entropy, varentropy, excess, third, brier, confidence, correct = (
            self._column(name, rows) for name in COLUMNS[: WIDTHS[1]]
        )
        right = correct.astype(bool)
        brier = brier / 2.0 if self.classes == 2 else brier
        return Scored(
            excess, varentropy, third, surprisal, entropy, confidence, right, confidence, right, brier
        )  # fmt: skip

    def _partition(self, rows: slice) -> Partition:
        raise UnavailableError("log_partition is known at five temperatures alone where the predictions are not kept.")

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        n = len(scored)
        found = np.asarray(self.columns[WIDTHS[2] - 4 * len(NODES) :, rows], dtype=np.float64).reshape(-1, 4, n)
        above = self._column("surprised", rows).astype(bool) & ~scored.impossible
        spectrum = Nodes.of(found, possible_weight(scored, weight), int(above.sum()))
        assert scored.confidence is not None
        order = confidence_cells(scored.confidence, self._column("top", rows).astype(np.intp), self.classes)

        def near() -> Near:
            return Near(-found[AT_NEAR, 1], found[AT_NEAR, 2], found[AT_NEAR, 0])

        return Spectral(spectrum, near, order, lambda: found)

    def certain(self, rows: Rows) -> int:
        return int(self._column("certain", rows).sum())


def _form(logits: Any, y_prob: Any, hidden: Any, weight: Any) -> str:
    """Name the one form in which predictions were given."""
    given = [n for n, x in (("logits", logits), ("y_prob", y_prob), ("hidden", hidden)) if x is not None]
    if len(given) != 1:
        rule = "or `y_prob` or `hidden` must be given, and only one of them"
        raise fail(FormError, "logits", rule, got=" and ".join(given) or "none")
    if (hidden is None) != (weight is None):
        hint = "pass `hidden=states, weight=model.lm_head.weight`."
        raise fail(FormError, "weight", "belongs to `hidden`: the logits are `hidden @ weight.T + bias`", hint=hint)
    return given[0]


def _numpy(x: Any) -> AnyArray:
    torch = load_torch()
    x = x.detach().cpu()
    return np.asarray((x.float() if x.dtype == torch.bfloat16 else x).numpy())


def _rows_of(x: Any, shape: tuple[int, ...], kept: BoolArray) -> Any:
    """Bring groups, clusters or weights to the rows that count; they may have the shape of the labels."""
    if x is None:
        return None
    if isinstance(x, Mapping):
        return {name: _rows_of(column, shape, kept) for name, column in x.items()}
    found = _numpy(x) if hasattr(x, "detach") else np.asarray(x)
    found = found.reshape(-1) if found.shape == shape else found
    return found[kept] if found.shape == kept.shape else found  # else the check of its length refuses it


@spelled()
def tally(
    y_true: Any,
    logits: Any = None,
    *,
    y_prob: Any = None,
    hidden: Any = None,
    weight: Any = None,
    bias: Any = None,
    ignore_index: int | None = None,
    bins: int | Bins | None = 10,
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    by: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    chunk: int | None = None,
) -> Tally:
    """Sum all rows to the `Tally` that every other door fills; tallies of batches and devices add up with ``+``.

    Logits are read once. Without groups, clusters and weights a few thousand numbers leave the device; with them, 31
    numbers of each row.

    Parameters
    ----------
    y_true : torch.Tensor of shape (...)
        The class that happened, from 0 to V - 1; for two outcomes 0 or 1.
    logits : torch.Tensor of shape (..., V), or of the shape of ``y_true`` for two outcomes
        Unnormalised log-probabilities, or log-odds, in float64, float32, bfloat16 or float16.
    y_prob : torch.Tensor of the same shapes
        Probabilities, instead.
    hidden, weight, bias : torch.Tensor of shapes (..., D), (V, D) and (V,)
        What the last layer is applied to, and that layer, instead: the logits of ``chunk`` rows exist at a time.
    ignore_index : int, optional
        Rows with this label are left out.
    bins, bin_on, strategy
        As in `safecal.evaluate`.
    by, cluster, sample_weight : array-like or torch.Tensor of shape (...), optional
        As in `safecal.evaluate`.
    chunk : int, optional
        Rows that are worked on at once.

    Returns
    -------
    Tally
        The sums of the rows that are not ignored.

    Examples
    --------
    Over the batches of a loader::

        total = sum((tally(y, model(x)) for x, y in loader), start=Tally())
        safecal.Evaluation.of(total).verdict
    """
    form = _form(logits, y_prob, hidden, weight)
    values = y_prob if logits is None else logits
    beside = (by, cluster, sample_weight)
    bins_alone = all(x is None for x in beside) and bins is not None and strategy == "uniform"
    if form != "hidden" and tuple(getattr(values, "shape", ())) == tuple(getattr(y_true, "shape", ())):
        checked_outcomes(y_true, y_prob, logits)
        if bins_alone and bin_on in (None, "probability"):
            return outcome_tally(y_true, values, _bins(bins), form, ignore_index)
        kept = counted_rows(y_true, ignore_index).cpu().numpy()
        rows = _numpy(values).reshape(-1)[kept]
        two = bernoulli(_numpy(y_true).reshape(-1)[kept], **{form: rows})
        return _on_host(two, Plan.of(two, bins, bin_on, strategy), beside, y_true, kept)
    rows_of: Callable[[bool], Iterator[ClassRows]]
    if form == "hidden":
        checked_hidden(y_true, hidden, weight)
        classes = int(weight.shape[0])
        rows_of = partial(hidden_rows, y_true, hidden, weight, bias, ignore_index, chunk)
    else:
        checked_classes(y_true, values)
        classes = int(values.shape[-1])
        rows_of = partial(logit_rows, y_true, values, ignore_index, chunk)
    if bins_alone and bin_on in (None, "confidence") and form != "y_prob":
        return class_tally(rows_of, _bins(bins), classes, ignore_index, on_cuda(values if hidden is None else hidden))
    kept = counted_rows(y_true, ignore_index).cpu().numpy()
    many: Predictions
    if form == "y_prob" or (form == "logits" and classes <= _FEW):
        rows = _numpy(values).reshape(-1, classes)[kept]
        many = categorical(_numpy(y_true).reshape(-1)[kept], **{form: rows})
    else:
        found = np.concatenate([part.found.cpu().numpy() for part in rows_of(True)], axis=1)
        many = ScoredRows(found[:, kept], classes)
    return _on_host(many, Plan.of(many, bins, bin_on, strategy), beside, y_true, kept)


@spelled(LimitOptions)
def evaluate(
    y_true: Any,
    logits: Any = None,
    *,
    y_prob: Any = None,
    hidden: Any = None,
    weight: Any = None,
    bias: Any = None,
    ignore_index: int | None = None,
    bins: int | Bins | None = 10,
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    by: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    chunk: int | None = None,
    **limits: Unpack[LimitOptions],
) -> Evaluation:
    """Evaluate predictions in tensors: the verdict, every metric, bins, groups, as `safecal.evaluate` gives them.

    Parameters
    ----------
    y_true, logits, y_prob, hidden, weight, bias, ignore_index
        As in `tally`.
    bins, bin_on, strategy, by, cluster, sample_weight, chunk
        As in `tally`.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `safecal.evaluate`.

    Returns
    -------
    Evaluation
        Print it for the verdict and the table.

    Examples
    --------
    The tokens of a few texts, by position, each text a cluster::

        evaluate(tokens[:, 1:], logits[:, :-1], ignore_index=-100, cluster=texts)
    """
    checked = Limits(**limits)
    found = tally(
        y_true, logits, y_prob=y_prob, hidden=hidden, weight=weight, bias=bias, ignore_index=ignore_index, bins=bins,
        bin_on=bin_on, strategy=strategy, by=by, cluster=cluster, sample_weight=sample_weight, chunk=chunk,
    )  # fmt: skip
    if found.n == 0:
        raise fail(EmptyError, "y_true", "must have at least one row that counts", got="none")
    return Evaluation.of(found, checked)


def _bins(bins: int | Bins | None) -> Bins:
    return bins if isinstance(bins, Bins) else Bins.uniform(bins if bins is not None else 1)


def _on_host(predictions: Predictions, plan: Plan, beside: tuple[Any, ...], y_true: Any, kept: BoolArray) -> Tally:
    by, cluster, sample_weight = (_rows_of(x, tuple(y_true.shape), kept) for x in beside)
    return Tally.of(predictions, plan, sample_weight=sample_weight, by=by, cluster=cluster)
