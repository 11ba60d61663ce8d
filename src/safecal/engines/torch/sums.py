"""The sums of an evaluation on tensors: what rows add to them, and what is read off them; and those of a Summary."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ..._kernels.spectrum import BY_CLASS, CELLS, CENTRES, CONFIDENCE_STEPS, CONFIDENCES, HAIR, LOWEST, NODES
from ..._sums import Tally
from ..._sums.causes import MOST_CLASSES, ClassSums
from ..._sums.cells import Cells
from ..._sums.nodes import Nodes, Ordered
from ..._sums.scored import CELLS as SPREAD_CELLS
from ..._sums.scored import FIRST, SIDE, Histogram
from ..._sums.splits import Bins, bin_keys
from ..._sums.summary import Summary, completed, summaries
from ..._sums.table import Table
from ..._types import FloatArray
from ...families import family_named
from .rows import check_classes, check_outcomes, hidden_columns, refuse_classes, refuse_outcomes
from .tensors import (
    LEAST_ENTROPY,
    ClassColumns,
    OddsColumns,
    ScoredColumns,
    bad_outcomes,
    binary_columns,
    block_rows,
    counted_rows,
    flatten,
    load_torch,
    on_cuda,
    outcome_blocks,
    score_columns,
    triton_kernels,
    widen,
)

__all__ = [
    "METRICS", "Rulers", "ScoredBlock", "add_rows", "binary_summary", "class_sums", "hidden_rows", "least_excess",
    "logit_rows", "metrics", "rows_at_once", "state_shapes", "summary", "summary_columns", "table_of", "tally_of",
]  # fmt: skip

# Columns of the sums by bin, by the names of `Summary`.
NAMES = (
    "n", "n_impossible", "n_certain", "sum_excess", "sum_excess2_weight2", "sum_excess3_weight3", "sum_varentropy",
    "sum_third_cumulant_weight3", "sum_entropy", "sum_predicted", "sum_observed", "sum_confidence", "sum_correct",
    "sum_brier",
)  # fmt: skip
METRICS = ("ecd", "nll", "ece", "esce", "brier", "accuracy")
_AT = {name: k for k, name in enumerate(NAMES)}
_COPIES = 1 << 16  # sums that take turns, at most
_SUMMED = (
    "excess", "varentropy", "third_cumulant", "entropy", "confidence", "brier", "predicted", "observed", "correct",
    "impossible", "bad",
)  # fmt: skip
_ROWS_AT_ONCE = 1 << 20  # rows whose columns are held at once
_BLOCK = 1 << 22  # values worked on at once, at most
_MAGNITUDE = (1 << 63) - 1  # every bit of a float but its sign
_SHIFT = 48  # leaves the exponent and the first four binary digits, which number the cells of log-odds
_BEFORE = int(LOWEST[1:2].view(np.int64)[0] >> _SHIFT) - 1  # the number before the first cell


class ScoredBlock(NamedTuple):
    """Some of the rows of K outcomes."""

    columns: Any  # as `score_columns` gives them
    y: Any
    logits: Any  # of few classes, (n, K): sums by class need them; else None


def logit_rows(
    y_true: Any, logits: Any, ignore_index: int | None, chunk: int | None, check: bool
) -> Iterator[ScoredBlock]:
    """Score rows of logits, some at a time; with ``check`` those without an answer are refused."""
    classes = logits.shape[-1]
    step = _ROWS_AT_ONCE if logits.ndim == 2 else max(1, y_true.numel())  # rows of one matrix can be cut anywhere
    for begin in range(0, y_true.numel(), step):
        y, z = (y_true[begin : begin + step], logits[begin : begin + step]) if logits.ndim == 2 else (y_true, logits)
        columns = score_columns(y, z if on_cuda(z) else widen(z), ignore_index, chunk, 2)
        if check:
            refuse_classes(columns[0], y, z, ignore_index)
        yield ScoredBlock(columns, y.reshape(-1), z.reshape(-1, classes) if classes <= MOST_CLASSES else None)


def hidden_rows(
    y_true: Any, hidden: Any, weight: Any, bias: Any, ignore_index: int | None, chunk: int | None, check: bool
) -> Iterator[ScoredBlock]:
    """Score rows of hidden states, as `logit_rows` does."""
    if len(weight) <= MOST_CLASSES:  # sums by class need the logits themselves, which are few
        z = load_torch().nn.functional.linear(hidden, weight, bias)
        yield from logit_rows(y_true, z, ignore_index, chunk, check)
        return
    columns = hidden_columns(y_true, hidden, weight, bias, ignore_index=ignore_index, chunk=chunk, check=check)
    yield ScoredBlock(columns, y_true.reshape(-1), None)


class Rulers(NamedTuple):
    """What rows are measured by; tensors on the device of the states."""

    edges: Any  # of the bins
    centres: Any  # of the cells of log-odds

    @classmethod
    def of(cls, edges: Any, device: Any) -> "Rulers":
        """Bring them to a device."""
        torch = load_torch()
        return cls(*(torch.tensor(ends, dtype=torch.float64, device=device) for ends in (edges, CENTRES)))

    def to(self, device: Any) -> "Rulers":
        """Bring them to another device."""
        return type(self)(*(ends.to(device) for ends in self))


def state_shapes(family: str, bins: int, classes: int) -> dict[str, tuple[int, ...]]:
    """Return the states of a metric by their names: sums by bin, then what a test, a temperature and bounds need."""
    by_bin = {"sums": (bins, len(NAMES))}
    if family == "bernoulli":
        return by_bin | {"cells": (CELLS, 2, 2, 4)}
    cells = CONFIDENCES * (classes if classes <= BY_CLASS else 1)
    ordered = {"ordered": (cells, len(NAMES)), "top": (CELLS, 2, 2, 4)}
    if classes <= MOST_CLASSES:
        ordered["by_class"] = (classes, classes + 3)
    return by_bin | {"nodes": (len(NODES), 4), "surprises": (), "spread": (SPREAD_CELLS, 2)} | ordered


def rows_at_once(values: Any) -> int:
    """Return how many rows to work on at once: float64 columns of them must not fill the memory of a device."""
    width = values.shape[1] if values.ndim == 2 else 1
    return min(block_rows(values.device, width), max(1, _BLOCK // width))


def add_rows(columns: ScoredColumns, counted: Any, rulers: Rulers) -> dict[str, Any]:
    """Sum rows: what each state gains. Rows that are not counted add nothing."""
    torch = load_torch()
    bins = len(rulers.edges) - 1
    impossible = counted & columns.excess.isposinf()
    possible = counted & ~impossible
    e, v, k3, h = (torch.where(possible, x, 0.0) for x in (columns[:4]))
    rest = [torch.where(counted, x.to(e.dtype), 0.0) for x in columns[4:9]]
    parts = [counted, impossible, counted & columns.certain, e, e * e, e * e * e, v, k3, h, *rest]
    index = (torch.bucketize(columns.predicted, rulers.edges, right=True) - 1).clamp(0, bins - 1)
    gains = {"sums": _by_key(parts, index, bins)}
    if isinstance(columns.spectral, OddsColumns):
        inside = counted & ~columns.certain
        return gains | {"cells": _odds_cells(columns.spectral, inside, ~columns.correct, rulers.centres)}
    if columns.spectral.log_p is not None:
        classes = columns.spectral
        gains["by_class"] = class_sums(classes.log_p, columns.entropy, classes.happened, counted)
    return gains | {
        "nodes": torch.where(possible, columns.spectral.nodes, 0.0).sum(1).reshape(len(NODES), 4),
        "surprises": (columns.spectral.surprised & possible).sum(dtype=torch.float64),
        "spread": _by_key([possible, e], _spread_cells(torch, e), SPREAD_CELLS),
        "ordered": _by_key(parts, *_order_cells(columns)),
        "top": _top_cells(columns, counted, rulers.centres),
    }


def _odds_cells(odds: OddsColumns, inside: Any, wrong: Any, centres: Any) -> Any:
    """Sum rows by the cell of their log-odds, as `cell_moments` does."""
    torch = load_torch()
    L = odds.log_odds
    cell = ((L.view(torch.int64) >> _SHIFT) - _BEFORE).clamp(0, CELLS - 1)
    d = torch.where(inside, L - centres[cell], 0.0)
    square = torch.where(cell == CELLS - 1, 0.0, d)  # squares of the last cell may overflow
    parts = [inside, d, square * square, square * square * square]
    return _by_key(parts, 4 * cell + 2 * wrong + odds.positive, 4 * CELLS).reshape(CELLS, 2, 2, 4)


def _top_cells(columns: ScoredColumns, counted: Any, centres: Any) -> Any:
    """Sum rows of K classes by the log-odds of their likeliest class, as `top_moments` does."""
    positive = columns.confidence >= 0.5
    wrong = positive != columns.correct
    log_odds = (columns.confidence.log() - (1.0 - columns.confidence).clamp(min=0.0).log()).abs()
    entropy = columns.entropy.clamp(min=LEAST_ENTROPY) if columns.entropy.is_cuda else columns.entropy
    left = -entropy.log()
    from_entropy = (left + left.log1p()).where(wrong | ~left.isposinf(), LOWEST[-1])
    log_odds = log_odds.where(log_odds.isfinite(), from_entropy)
    inside = counted & log_odds.isfinite()
    return _odds_cells(OddsColumns(log_odds.nan_to_num(0.0, posinf=0.0), positive), inside, wrong, centres)


def class_sums(log_p: Any, entropy: Any, happened: Any, counted: Any) -> Any:
    """Sum probabilities of classes and their products, as `ClassSums` does."""
    torch = load_torch()
    p = torch.where(counted[:, None], log_p.exp(), 0.0)
    plogp = torch.where(p > 0.0, p * (log_p + entropy[:, None]), 0.0)
    seen = (happened[:, None] == torch.arange(p.shape[1], device=p.device)) & counted[:, None]
    parts = [p.T @ p, plogp.sum(0)[:, None], p.sum(0)[:, None], seen.sum(0, dtype=torch.float64)[:, None]]
    return torch.cat(parts, dim=1)


def _spread_cells(torch: Any, excess: Any) -> Any:
    """Number the cells as `Histogram` does: by the exponent and the first three binary digits."""
    bits = excess.view(torch.int64)
    step = (((bits & _MAGNITUDE) >> 49) - FIRST).clamp(0, SIDE)
    return SIDE + torch.where(bits < 0, -step, step)


def _order_cells(columns: ScoredColumns) -> tuple[Any, int]:
    """Number the cells as `confidence_cells` does, and say how many there are."""
    assert isinstance(columns.spectral, ClassColumns)
    odds = columns.confidence.log() - (1.0 - columns.confidence).clamp(min=0.0).log()
    cell = ((CONFIDENCE_STEPS * odds + HAIR).floor() + CONFIDENCES // 2).clamp(0, CONFIDENCES - 1)
    cell = cell.nan_to_num().long()  # rows without an answer are not counted, or refused
    classes, top = columns.spectral.classes, columns.spectral.top
    return (cell, CONFIDENCES) if classes > BY_CLASS else (top * CONFIDENCES + cell, classes * CONFIDENCES)


def _by_key(parts: list[Any], index: Any, size: int) -> Any:
    """Sum each part over the rows of each key: a (size, parts) tensor."""
    torch = load_torch()
    wide = [part.to(torch.float64) for part in parts]
    if index.device.type == "cpu":
        return torch.stack([torch.bincount(index, part, minlength=size) for part in wide], dim=1)
    # On a device, bincount would be waited for. Rows take turns among copies of the sums, so that few of them meet.
    copies = max(1, min(_COPIES // size, len(index) // 256))
    if copies > 1:
        index = index + size * (torch.arange(len(index), device=index.device) % copies)
    out = torch.zeros((len(wide), copies * size), dtype=torch.float64, device=index.device)
    return out.index_add_(1, index, torch.stack(wide)).reshape(len(wide), copies, size).sum(1).T


def metrics(sums: Any) -> dict[str, Any]:
    """Return every metric of the rows that were summed, as scalars on the device."""
    torch = load_torch()
    total = dict(zip(NAMES, sums.sum(0), strict=True))
    n, impossible = total["n"], total["n_impossible"] > 0
    gaps = sums[:, _AT["sum_observed"]] - sums[:, _AT["sum_predicted"]]
    values = (
        torch.where(impossible, torch.inf, total["sum_excess"] / n),
        torch.where(impossible, torch.inf, (total["sum_excess"] + total["sum_entropy"]) / n),
        gaps.abs().sum() / n,
        gaps.sum() / n,
        total["sum_brier"] / n,
        total["sum_correct"] / n,
    )
    return dict(zip(METRICS, values, strict=True))


def summary_columns(sums: FloatArray) -> FloatArray:
    """Arrange the sums as `safecal._sums.summary.summaries` reads them, bin by bin."""
    named = dict(zip(NAMES, sums.T, strict=True))
    del named["n_certain"]
    possible = named["n"] - named["n_impossible"]
    return completed(named | {"weight_impossible": named["n_impossible"], "weight2": possible, "weight3": possible})


def table_of(sums: FloatArray, family: str, bins: Bins) -> Table:
    """Return the table of bins."""
    of_family = family_named(family)
    return Table(of_family.bin_choices[0], bin_keys(bins), summary_columns(sums), bins, not of_family.has_odds)


def least_excess(classes: int) -> float:
    """Return the smallest excess that a row of so many classes can have."""
    return -float(special.lambertw((classes - 1) / math.e).real)


def tally_of(states: dict[str, FloatArray], family: str, bins: Bins, classes: int) -> Tally:
    """Return the `Tally` that the sums of all rows make."""
    table = table_of(states["sums"], family, bins)
    inference: dict[str, Any] = {}
    if family == "bernoulli":
        inference["spectrum"] = Cells(states["cells"])
    else:
        nodes, used = states["nodes"], np.flatnonzero(states["ordered"][:, _AT["n"]])
        inference = {
            "spectrum": Nodes(np.concatenate([nodes, nodes[:, 2:]], axis=1), int(states["surprises"])),
            "spread": Histogram.of(states["spread"]),
            "ordered": Ordered("confidence", used, summary_columns(states["ordered"][used]), CONFIDENCES),
            "top": Cells(states["top"]),
            "class_sums": ClassSums(states["by_class"][None]) if "by_class" in states else None,
        }
    return Tally(
        family,
        most_entropy=float(np.log(classes)),
        least_excess=least_excess(classes),
        summary=table.total,
        bins=table,
        n_certain=int(states["sums"][:, _AT["n_certain"]].sum()),
        **inference,
    )


def summary(y_true: Any, logits: Any, *, ignore_index: int | None = None, chunk: int | None = None) -> Summary:
    """Sum all rows to a `Summary`, the one that ``safecal.categorical(y_true, logits=logits).summary()`` gives.

    Summaries of batches, or of other devices, add up with ``+``. Only a few numbers leave the device.

    Parameters
    ----------
    y_true, logits, ignore_index, chunk
        As in `row_scores`.

    Returns
    -------
    Summary
        The sums over all rows that are not ignored.

    Examples
    --------
    Over the batches of a loader::

        total = sum((summary(y, model(x)) for x, y in loader), start=safecal.Summary())
        total.ecd, total.nll
    """
    check_classes(y_true, logits)
    torch = load_torch()
    counted = counted_rows(y_true, ignore_index)
    out = score_columns(y_true, logits, ignore_index, chunk, 1)
    refuse_classes(out[0], y_true, logits, ignore_index)
    _, h, v, e, k3, brier, confidence, correct = widen(out)
    counted = counted.to(e.device)
    impossible = e.isposinf() & counted
    possible = counted & ~impossible
    e, h, v, k3 = (torch.where(possible, x, 0.0) for x in (e, h, v, k3))
    brier, confidence = (torch.where(counted, x, 0.0) for x in (brier, confidence))
    if logits.shape[-1] == 2:
        brier = brier / 2.0  # two classes: the binary definition
    columns = {
        "n": counted, "impossible": impossible, "excess": e, "excess2": e * e, "excess3": e * e * e, "varentropy": v,
        "third_cumulant": k3, "entropy": h, "confidence": confidence, "correct": correct.bool() & counted,
        "brier": brier,
    }  # fmt: skip
    totals = torch.stack([column.sum(dtype=torch.float64) for column in columns.values()]).tolist()
    sums = dict(zip(columns, totals, strict=True))
    return _summary(sums | {"predicted": sums["confidence"], "observed": sums["correct"]}, sums["n"])


def binary_summary(y_true: Any, y_prob: Any = None, *, logits: Any = None) -> Summary:
    """Sum all rows to a `Summary`, the one that ``safecal.bernoulli(y_true, y_prob).summary()`` gives.

    Summaries of batches, or of other devices, add up with ``+``. Only a few numbers leave the device.

    Parameters
    ----------
    y_true, y_prob, logits
        As in `binary_row_scores`.

    Returns
    -------
    Summary
        The sums over all rows.

    Examples
    --------
    Over the batches of a loader::

        total = sum((binary_summary(y, logits=model(x)) for x, y in loader), start=safecal.Summary())
        total.ecd, total.nll
    """
    values, as_logits = check_outcomes(y_true, y_prob, logits)
    torch, name = load_torch(), "logits" if as_logits else "y_prob"
    y, x = flatten(y_true, values)
    n, kernel = x.numel(), triton_kernels("triton_binary", on_cuda(x))
    if n == 0:
        return Summary()
    if kernel is not None:
        parts = torch.empty((kernel.programs(n), len(kernel.SUMS)), dtype=torch.float64, device=x.device)
        with torch.cuda.device(x.device):
            kernel.launch_sums(x, y, parts, as_logits)
        sums = dict(zip(kernel.SUMS, parts.sum(0).tolist(), strict=True))
    else:
        sums = _sums_of_blocks(y, x, as_logits)
    if sums["mislabelled"] or sums["excess"] != sums["excess"]:
        refuse_outcomes(bad_outcomes(y, x, name), y_true, values, name)
    return _summary(sums, n)


def _sums_of_blocks(y: Any, values: Any, logits: bool) -> dict[str, float]:
    totals: dict[str, float] = {}
    for _, y_block, x_block in outcome_blocks(y, values):
        scored = binary_columns(y_block, x_block, logits)
        e = scored["excess"]
        columns = {name: scored[name] for name in _SUMMED} | {"excess2": e * e, "excess3": e * e * e}
        for name, column in columns.items():
            totals[name] = totals.get(name, 0.0) + float(column.double().sum())
    return totals | {"mislabelled": totals["bad"]}


def _summary(sums: dict[str, float], n: float) -> Summary:
    named: dict[str, float] = {
        "n": n, "n_impossible": sums["impossible"], "weight_impossible": sums["impossible"],
        "weight2": n - sums["impossible"], "weight3": n - sums["impossible"], "sum_excess": sums["excess"],
        "sum_excess2_weight2": sums["excess2"], "sum_excess3_weight3": sums["excess3"],
        "sum_third_cumulant_weight3": sums["third_cumulant"],
    }  # fmt: skip
    same = ("varentropy", "entropy", "confidence", "brier", "predicted", "observed", "correct")
    named |= {f"sum_{name}": sums[name] for name in same}
    return summaries(completed({name: np.array([float(value)]) for name, value in named.items()}))[0]
