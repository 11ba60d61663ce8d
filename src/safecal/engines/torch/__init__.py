"""Predictions that lie in torch tensors: they are scored where they are.

On CUDA a Triton kernel reads each number once; elsewhere, and for float64, torch works on blocks of rows. No softmax is
stored. Numbers are in nats; float32 and shorter predictions are worked on in float32, float64 in float64, and sums over
rows are float64.

``tensors``     row formulas, and where a kernel may run
``rows``        what each row says, after its checks
``sums``        what rows add to the sums of an evaluation; a Summary
``triton_*``    kernels: of two outcomes, of K, and of all columns of K

Here is the way to a verdict: the sums of all rows, made where the predictions lie, and everything about them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Self, Unpack, final

import numpy as np

from ..._checks import fail
from ..._checks.classes import refuse_probabilities, telling_rows
from ..._checks.columns import spelled
from ..._kernels.spectrum import NODES, confidence_cells
from ..._sums import Tally
from ..._sums.clusters import Near
from ..._sums.nodes import Nodes
from ..._sums.scored import Scored, possible_weight
from ..._sums.splits import Bins, Plan
from ..._types import BinOn, FloatArray, IndexArray, Rows, Strategy
from ...errors import EmptyError, UnavailableError
from ...families import Predictions
from ...families.bernoulli import bernoulli
from ...families.categorical import Categorical, categorical
from ...families.family import AT_NEAR, FamilyWords, Partition, Spectral
from ...judge.evaluation import Evaluation
from ...options import LimitOptions, Limits
from .rows import (
    binary_row_scores,
    check_classes,
    check_hidden,
    check_outcomes,
    differentiable_row_scores,
    ecd,
    named_form,
    nll,
    refuse_outcomes,
    row_scores,
)
from .sums import (
    Rulers,
    ScoredBlock,
    add_rows,
    binary_summary,
    class_sums,
    hidden_rows,
    least_excess,
    logit_rows,
    rows_at_once,
    summary,
    tally_of,
)
from .tensors import (
    COLUMNS,
    FORMS,
    WIDTHS,
    RowScores,
    bad_outcomes,
    beside_counted,
    class_columns,
    counted_rows,
    flatten,
    load_torch,
    on_cuda,
    to_numpy,
    triton_kernels,
    widen,
)

__all__ = [
    "RowScores", "binary_row_scores", "binary_summary", "differentiable_row_scores", "ecd", "evaluate", "nll",
    "row_scores", "summary", "tally",
]  # fmt: skip

_FEW_CLASSES = 512  # up to which rows with groups, clusters or weights are scored by NumPy: they are no burden
_KERNEL_ROWS = 1 << 31  # rows of two outcomes that a kernel counts at once


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ScoredRows(Predictions):
    """Rows of K outcomes whose columns are known, but not the predictions themselves.

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
        return least_excess(self.classes)

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
        raise UnavailableError(
            "log_partition is known at five temperatures only, because the predictions are not kept."
        )

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        n = len(scored)
        nodes = np.asarray(self.columns[WIDTHS[2] - 4 * len(NODES) :, rows], dtype=np.float64).reshape(-1, 4, n)
        above = self._column("surprised", rows).astype(bool) & ~scored.impossible
        spectrum = Nodes.of(nodes, possible_weight(scored, weight), int(above.sum()))
        assert scored.confidence is not None
        order = confidence_cells(scored.confidence, self._column("top", rows).astype(np.intp), self.classes)

        def near() -> Near:
            return Near(-nodes[AT_NEAR, 1], nodes[AT_NEAR, 2], nodes[AT_NEAR, 0])

        return Spectral(spectrum, near, order, lambda: nodes)

    def certain(self, rows: Rows) -> int:
        return int(self._column("certain", rows).sum())


@lru_cache(maxsize=16)
def _rulers(edges: tuple[float, ...], device: Any) -> Rulers:
    return Rulers.of(edges, device)


@lru_cache(maxsize=16)
def _log_odds(edges: tuple[float, ...], device: Any) -> Any:
    return _rulers(edges, device).edges.logit()


def _add_parts(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Add up the states of parts of the rows, and bring them here in one piece."""
    total: dict[str, Any] = {}
    for part in parts:
        total = {name: total[name] + sums for name, sums in part.items()} if total else part
    if not total:
        return {}
    values = load_torch().cat([sums.reshape(-1) for sums in total.values()]).cpu().numpy()
    pieces = np.split(values, np.cumsum([sums.numel() for sums in total.values()])[:-1])
    return {name: piece.reshape(tuple(sums.shape)) for (name, sums), piece in zip(total.items(), pieces, strict=True)}


_Parts = Callable[[], Iterator[dict[str, Any]]]


def _added_up(kernel: Any, by_kernel: _Parts, by_torch: _Parts, family: str, bins: Bins, classes: int) -> Tally:
    """Add up parts of the rows: those of the kernel where it runs and its numbers suffice, else those of torch."""
    states: dict[str, Any] = {}
    if kernel is not None:
        states = _add_parts(by_kernel())
        if states:
            split = kernel.split_outcomes if family == "bernoulli" else partial(kernel.split_classes, classes=classes)
            states |= split(states.pop("all"), len(bins))
    if kernel is None or (states and (states.pop("bad") or states.pop("far"))):
        states = _add_parts(by_torch())
    total = tally_of(states, family, bins, classes) if states else Tally()
    return total if total.n else Tally()


def class_tally(
    rows: Callable[[bool], Iterator[ScoredBlock]], bins: Bins, classes: int, ignore_index: int | None, cuda: bool
) -> Tally:
    """Add up rows of K outcomes; ``rows`` takes whether to refuse those without an answer."""
    kernel = triton_kernels("triton_categorical", cuda)

    def by_kernel() -> Iterator[dict[str, Any]]:
        for columns, y, z in rows(False):
            rulers = _rulers(bins.edges, columns.device)
            with load_torch().cuda.device(columns.device):
                states = {"all": kernel.sum_classes(columns, y.contiguous(), *rulers, classes, ignore_index)}
            if z is not None:
                log_p, counted = widen(z).log_softmax(-1), counted_rows(y, ignore_index)
                states["by_class"] = class_sums(log_p, widen(columns[1]), y, counted)
            yield states

    def by_torch() -> Iterator[dict[str, Any]]:
        for scored, y, z in rows(True):
            columns = class_columns(scored, y, classes, z)
            home = columns.excess.device
            yield add_rows(columns, counted_rows(y, ignore_index).to(home), _rulers(bins.edges, home))

    return _added_up(kernel, by_kernel, by_torch, "categorical", bins, classes)


def outcome_tally(y_true: Any, values: Any, bins: Bins, form: str, ignore_index: int | None) -> Tally:
    """Add up rows of two outcomes: probabilities or log-odds, as ``form`` says."""
    y, x = flatten(y_true, values.detach())
    kernel, logits = triton_kernels("triton_binary", on_cuda(x)), form == "logits"

    def by_kernel() -> Iterator[dict[str, Any]]:
        rulers = _rulers(bins.edges, x.device)
        edges = _log_odds(bins.edges, x.device) if logits else rulers.edges
        for begin in range(0, y.numel(), _KERNEL_ROWS):
            block = slice(begin, begin + _KERNEL_ROWS)
            with load_torch().cuda.device(x.device):
                yield {"all": kernel.sum_outcomes(x[block], y[block], edges, rulers.centres, logits, ignore_index)}

    def by_torch() -> Iterator[dict[str, Any]]:
        step = rows_at_once(x)
        for begin in range(0, y.numel(), step):
            some_y, some_x = y[begin : begin + step], x[begin : begin + step]
            counted = counted_rows(some_y, ignore_index)
            columns = FORMS["bernoulli", logits](some_x, some_y)
            home = columns.excess.device
            if bool((columns.excess.isnan() & counted.to(home)).any()):
                bad = bad_outcomes(y, x, form)
                refuse_outcomes(bad & counted_rows(y, ignore_index), y_true, values, form)
            yield add_rows(columns, counted.to(home), _rulers(bins.edges, home))

    return _added_up(kernel, by_kernel, by_torch, "bernoulli", bins, 2)


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
        Instead, the states before the last layer, and that layer: only the logits of ``chunk`` rows exist at a time.
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
    form = named_form(logits, y_prob, hidden, weight)
    values = y_prob if logits is None else logits
    beside = (by, cluster, sample_weight)
    bins_alone = all(x is None for x in beside) and bins is not None and strategy == "uniform"
    two = form != "hidden" and tuple(getattr(values, "shape", ())) == tuple(getattr(y_true, "shape", ()))
    rows_of: Callable[[bool], Iterator[ScoredBlock]]
    if two:
        check_outcomes(y_true, y_prob, logits)
        if bins_alone and bin_on in (None, "probability"):
            return outcome_tally(y_true, values, _bins(bins), form, ignore_index)
    elif form == "hidden":
        check_hidden(y_true, hidden, weight)
        classes = int(weight.shape[0])
        rows_of = partial(hidden_rows, y_true, hidden, weight, bias, ignore_index, chunk)
    else:
        check_classes(y_true, values)
        classes = int(values.shape[-1])
        if form == "logits":
            refuse_probabilities(to_numpy(values.reshape(-1, classes)[: telling_rows(classes)]), form)
        rows_of = partial(logit_rows, y_true, values, ignore_index, chunk)
    if bins_alone and bin_on in (None, "confidence") and form != "y_prob" and not two:
        return class_tally(rows_of, _bins(bins), classes, ignore_index, on_cuda(values if hidden is None else hidden))
    kept = counted_rows(y_true, ignore_index).cpu().numpy()
    predictions: Predictions
    if two:
        predictions = bernoulli(to_numpy(y_true).reshape(-1)[kept], **{form: to_numpy(values).reshape(-1)[kept]})
    elif form == "y_prob" or (form == "logits" and classes <= _FEW_CLASSES):
        rows = to_numpy(values).reshape(-1, classes)[kept]
        predictions = categorical(to_numpy(y_true).reshape(-1)[kept], **{form: rows})
    else:
        columns = np.concatenate([part.columns.cpu().numpy() for part in rows_of(True)], axis=1)
        predictions = ScoredRows(columns[:, kept], classes)
    plan = Plan.of(predictions, bins, bin_on, strategy)
    by, cluster, sample_weight = (beside_counted(x, tuple(y_true.shape), kept) for x in beside)
    return Tally.of(predictions, plan, sample_weight=sample_weight, by=by, cluster=cluster)


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
    total = tally(
        y_true, logits, y_prob=y_prob, hidden=hidden, weight=weight, bias=bias, ignore_index=ignore_index, bins=bins,
        bin_on=bin_on, strategy=strategy, by=by, cluster=cluster, sample_weight=sample_weight, chunk=chunk,
    )  # fmt: skip
    if total.n == 0:
        raise fail(EmptyError, "y_true", "must have at least one row that counts", got="none")
    return Evaluation.of(total, checked)


def _bins(bins: int | Bins | None) -> Bins:
    return bins if isinstance(bins, Bins) else Bins.uniform(bins if bins is not None else 1)
