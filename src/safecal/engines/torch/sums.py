"""The sums of an evaluation on tensors: columns of rows, what they add to the sums, and what is read off them.

Columns are in float64: those of `safecal.bernoulli` and `safecal.categorical`. A row without an answer (NaN, a value
out of range, an unknown label) has an excess of NaN: the device is not waited for.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ..._checks.class_columns import row_tolerance
from ..._kernels.spectrum import BY_CLASS, CELLS, CENTRES, CONFIDENCE_STEPS, CONFIDENCES, HAIR, LOWEST, NODES
from ..._sums.causes import MOST_CLASSES, ClassSums
from ..._sums.cells import Cells
from ..._sums.nodes import Nodes, Ordered
from ..._sums.scored import CELLS as SPREAD_CELLS
from ..._sums.scored import FIRST, SIDE, Histogram
from ..._sums.splits import Bins, bin_keys
from ..._sums.summary import completed
from ..._sums.table import Table
from ..._sums.tally import Tally
from ..._types import FloatArray
from ...families.predictions import family_named
from .binary import binary_columns
from .tensors import block_rows, load_torch, node_columns, on_cuda, score_columns, widen

__all__ = [
    "FORMS", "METRICS", "ClassColumns", "OddsColumns", "Rulers", "ScoredColumns", "add_rows", "class_sums",
    "least_excess", "metrics", "rows_at_once", "state_shapes", "summary_columns", "table_of", "tally_of",
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
_BLOCK = 1 << 22  # values worked on at once, at most
_MAGNITUDE = (1 << 63) - 1  # every bit of a float but its sign
_SHIFT = 48  # leaves the exponent and the first four binary digits, which number the cells of log-odds
_BEFORE = int(LOWEST[1:2].view(np.int64)[0] >> _SHIFT) - 1  # the number before the first cell


class OddsColumns(NamedTuple):
    """What inference needs of two-class rows beside the columns; tensors of shape (n,)."""

    log_odds: Any  # of the likelier class; 0 where it is certain
    positive: Any  # whether that is the positive one


class ClassColumns(NamedTuple):
    """What inference needs of rows of K classes beside the columns; of shape (n,) where nothing else is said."""

    nodes: Any  # the log-partition and three derivatives at each node, (20, n)
    surprised: Any  # whether the outcome was less likely than another
    top: Any  # the likeliest class
    happened: Any  # the class that happened
    classes: int
    log_p: Any  # of every class, (n, K); None where classes are many


class ScoredColumns(NamedTuple):
    """What each row adds to the sums; tensors of shape (n,)."""

    excess: Any
    varentropy: Any
    third_cumulant: Any
    entropy: Any
    predicted: Any
    observed: Any
    confidence: Any
    correct: Any
    brier: Any
    certain: Any  # whether some class has a probability of exactly 0
    spectral: OddsColumns | ClassColumns


def _binary(values: Any, y: Any, logits: bool) -> ScoredColumns:
    torch = load_torch()
    named = binary_columns(y, values, logits)
    excess = torch.where(named["impossible"], torch.inf, named["excess"])
    named["excess"] = torch.where(named["bad"], torch.nan, excess)
    return ScoredColumns(
        **{name: named[name] for name in ScoredColumns._fields if name != "spectral"},
        spectral=OddsColumns(named["log_odds"], named["positive"]),
    )


def binary_probabilities(values: Any, y: Any) -> ScoredColumns:
    """Score probabilities of the positive class."""
    return _binary(values, y, False)


def binary_logits(values: Any, y: Any) -> ScoredColumns:
    """Score log-odds of the positive class."""
    return _binary(values, y, True)


def class_probabilities(values: Any, y: Any) -> ScoredColumns:
    """Score (n, K) probabilities, used as given."""
    torch = load_torch()
    p = widen(values)
    y = y.to(p.device)
    K = p.shape[-1]
    known = (y >= 0) & (y < K)
    at = torch.where(known, y, 0)[:, None]
    z = torch.where(p > 0.0, p, 1.0).log()
    entropy = -(p * z).sum(-1)
    p_y, z_y = p.gather(-1, at)[:, 0], z.gather(-1, at)[:, 0]
    others = p.scatter(-1, at, 0.0)
    # Where p_y is near 1 the shorter formula cancels.
    confident = (others * others).sum(-1) + (1.0 - p_y) ** 2
    brier = torch.where(p_y > 0.5, confident, (p * p).sum(-1) - 2.0 * p_y + 1.0)
    centred = z + entropy[:, None]
    weighted = p * centred * centred
    normal = (p.sum(-1) - 1.0).abs() <= row_tolerance(K)
    fine = known & normal & (p.amin(-1) >= 0.0) & (p.amax(-1) <= 1.0)
    excess = torch.where(p_y == 0.0, torch.inf, -entropy - z_y)
    confidence, top = p.amax(-1), p.argmax(-1)
    correct = top == y
    log_top = confidence.log()
    gaps = torch.where(p > 0.0, log_top[:, None] - z, torch.inf).scatter(-1, top[:, None], torch.inf)
    # An outcome as likely as the most likely one is no surprise.
    surprised = ~correct & (-z_y > -log_top * (1.0 + 1e-9))
    log_p = torch.where(p > 0.0, z, -torch.inf) if K <= MOST_CLASSES else None
    return ScoredColumns(
        torch.where(fine, excess, torch.nan), weighted.sum(-1), -(weighted * centred).sum(-1), entropy,
        confidence, correct, confidence, correct, brier / 2.0 if K == 2 else brier, (p == 0.0).any(-1),
        ClassColumns(node_columns(gaps), surprised, top, y, K, log_p),
    )  # fmt: skip


def class_logits(values: Any, y: Any) -> ScoredColumns:
    """Score (n, K) logits: by the Triton kernel where it runs, else in float64."""
    K = values.shape[-1]
    z = values if on_cuda(values) else widen(values)
    y = y.to(z.device)
    return class_columns(score_columns(y, z, None, None, 2), y, K, z)


def class_columns(scored: Any, y: Any, classes: int, z: Any = None) -> ScoredColumns:
    """Name the columns of `score_columns`; ``z`` are the logits, which sums by class need where classes are few."""
    scored = widen(scored)
    y = y.to(scored.device)
    _, entropy, varentropy, excess, third, brier, confidence, correct, surprised, certain, top, *_ = scored
    brier = brier / 2.0 if classes == 2 else brier
    log_p = None
    if classes <= MOST_CLASSES and z is not None:
        log_p = widen(z).log_softmax(-1)
    spectral = ClassColumns(scored[len(scored) - 4 * len(NODES) :], surprised.bool(), top.long(), y, classes, log_p)
    return ScoredColumns(
        excess, varentropy, third, entropy, confidence, correct.bool(), confidence, correct.bool(), brier,
        certain.bool(), spectral,
    )  # fmt: skip


FORMS: dict[tuple[str, bool], Callable[[Any, Any], ScoredColumns]] = {
    ("bernoulli", False): binary_probabilities,
    ("bernoulli", True): binary_logits,
    ("categorical", False): class_probabilities,
    ("categorical", True): class_logits,
}


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
    log_odds = (columns.confidence.log() - (1.0 - columns.confidence).clamp(min=0.0).log()).abs()
    inside = counted & log_odds.isfinite()
    wrong = positive != columns.correct
    return _odds_cells(OddsColumns(log_odds.nan_to_num(posinf=0.0), positive), inside, wrong, centres)


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
            "ordered": Ordered("confidence", used, summary_columns(states["ordered"][used])),
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
