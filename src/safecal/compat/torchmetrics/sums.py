"""The one state of a metric: what rows add to it, and what is read off it."""

from typing import Any

import numpy as np

from ..._types import FloatArray
from ...engines.torch.tensors import block_rows, load_torch
from ...histogram import CELLS, QUICK_CELLS, Histogram
from ...summary import completed
from .rows import Columns

__all__ = ["NAMES", "WIDTH", "add_rows", "histogram", "metrics", "summary_columns"]

# Columns of the state, by the names of `Summary`; then the counts and the summed excess of the cells of a Histogram.
NAMES = (
    "n", "n_impossible", "n_certain", "sum_excess", "sum_excess2_weight2", "sum_excess3_weight3", "sum_varentropy",
    "sum_third_cumulant_weight3", "sum_entropy", "sum_predicted", "sum_observed", "sum_confidence", "sum_correct",
    "sum_brier",
)  # fmt: skip
WIDTH = len(NAMES) + 2 * CELLS
_AT = {name: k for k, name in enumerate(NAMES)}
_BLOCK = 1 << 22  # values worked on at once, at most
_MAGNITUDE = (1 << 63) - 1  # every bit of a float but its sign


def rows_at_once(values: Any) -> int:
    """Return how many rows to work on at once: float64 columns of them must not fill the memory of a device."""
    width = values.shape[1] if values.ndim == 2 else 1
    return min(block_rows(values.device, width), max(1, _BLOCK // width))


def add_rows(columns: Columns, counted: Any, edges: Any) -> Any:
    """Sum rows by the bin of what they predict: a (bins, WIDTH) tensor. Rows that are not counted add nothing."""
    torch = load_torch()
    bins = len(edges) - 1
    impossible = counted & columns.excess.isposinf()
    possible = counted & ~impossible
    e, v, k3, h = (torch.where(possible, x, 0.0) for x in (columns[:4]))
    rest = [torch.where(counted, x.to(e.dtype), 0.0) for x in columns[4:9]]
    parts = [counted, impossible, counted & columns.certain, e, e * e, e * e * e, v, k3, h, *rest]
    index = (torch.bucketize(columns.predicted, edges, right=True) - 1).clamp(0, bins - 1)
    cells = index * CELLS + _cells(torch, e)
    by_cell = _by_key([possible, e], cells, bins * CELLS)
    return torch.cat([_by_key(parts, index, bins).T, *by_cell.reshape(2, bins, CELLS)], dim=1)


def _cells(torch: Any, excess: Any) -> Any:
    """Number the cells as `Histogram` does: by the exponent and the first three binary digits."""
    first, side = QUICK_CELLS
    bits = excess.view(torch.int64)
    step = (((bits & _MAGNITUDE) >> 49) - first).clamp(0, side)
    return side + torch.where(bits < 0, -step, step)


def _by_key(parts: list[Any], index: Any, size: int) -> Any:
    """Sum each part over the rows of each key: a (parts, size) tensor."""
    torch = load_torch()
    wide = [part.to(torch.float64) for part in parts]
    if index.device.type == "cpu":
        return torch.stack([torch.bincount(index, part, minlength=size) for part in wide])
    # On a device, bincount would be waited for.
    out = torch.zeros((len(wide), size), dtype=torch.float64, device=index.device)
    return out.index_add_(1, index, torch.stack(wide))


def metrics(sums: Any) -> dict[str, Any]:
    """Return every metric of the rows that were summed, as scalars on the device."""
    torch = load_torch()
    total = dict(zip(NAMES, sums[:, : len(NAMES)].sum(0), strict=True))
    n, impossible = total["n"], total["n_impossible"] > 0
    gaps = sums[:, _AT["sum_observed"]] - sums[:, _AT["sum_predicted"]]
    return {
        "ecd": torch.where(impossible, torch.inf, total["sum_excess"] / n),
        "nll": torch.where(impossible, torch.inf, (total["sum_excess"] + total["sum_entropy"]) / n),
        "ece": gaps.abs().sum() / n,
        "esce": gaps.sum() / n,
        "brier": total["sum_brier"] / n,
        "accuracy": total["sum_correct"] / n,
    }


def summary_columns(sums: FloatArray) -> FloatArray:
    """Arrange the state as `safecal.summary.summaries` reads it, bin by bin."""
    found = dict(zip(NAMES, sums[:, : len(NAMES)].T, strict=True))
    del found["n_certain"]
    possible = found["n"] - found["n_impossible"]
    return completed(found | {"weight_impossible": found["n_impossible"], "weight2": possible, "weight3": possible})


def histogram(sums: FloatArray) -> tuple[Histogram, int]:
    """Return how the excess is spread over the rows, and how many predictions were certain."""
    counts, excess = np.split(sums[:, len(NAMES) :].sum(axis=0), 2)
    return Histogram(tuple(counts.tolist()), tuple(excess.tolist())), int(sums[:, _AT["n_certain"]].sum())
