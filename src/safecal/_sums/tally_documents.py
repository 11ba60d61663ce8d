"""Documents of a Tally: what they hold, how they are read, and whether their parts are of the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .. import documents
from .causes import AxisSums, ClassSums, DirectionSums
from .cells import Cells, WeightedCells
from .clusters import Clusters
from .forecasts import DrawSums, VectorSums, read_sums
from .histogram import Histogram
from .looks import Look
from .nodes import Nodes, NodeTable, Spectrum
from .ordered import Ordered
from .summary import Summary, adds_up
from .table import Table

if TYPE_CHECKING:
    from .tally import Tally

__all__ = ["FIELDS", "LATER", "PARTS", "PLAIN", "unfitting"]
_SPECTRA: dict[str, type[Cells] | type[WeightedCells] | type[Nodes]] = {
    "safecal.cells": Cells,
    "safecal.weighted_cells": WeightedCells,
    "safecal.nodes": Nodes,
}


def unfitting(tally: Tally) -> Iterator[tuple[str, str]]:
    """Find parts that are not of the same rows, and say what they must be."""
    s, n = tally.summary, tally.n
    if not tally.weighted and s.weight != n:
        yield "summary", f"must have the `weight` {n}, as many as it has rows, where rows have no weights"
    if tally.n_certain > n:
        yield "n_certain", f"must not exceed the {n} rows"
    tables = {"bins": tally.bins, "groups": tally.groups, "ordered": tally.ordered}
    for name, table in tables.items():
        wrong = None if table is None else adds_up(table.sums, s)
        if wrong is not None:
            yield name, f"must add up to `summary`; `{wrong}` does not"
    for name, table in (("bins", tally.bins), ("groups", tally.groups)):
        if table is not None and (table.bins is None) != (name == "groups"):
            yield name, f"must {'have bins' if name == 'bins' else 'have no bins'}"
    yield from _unfitting_spectrum(tally)
    if tally.clusters is not None and not _near(tally.clusters.column("n").sum(), n):
        yield "clusters", f"must have {n} rows in all"
    if tally.clusters is not None and not _near(tally.clusters.column("weight").sum(), s.weight):
        yield "clusters", f"must have the weight {s.weight:.6g} in all"
    if tally.spread is not None and not _near(sum(tally.spread.counts), s.weight - s.weight_impossible, s.weight):
        yield "spread", "must have the weight of all possible rows"
    nodes, groups = tally.group_nodes, tally.groups
    if nodes is not None and (groups is None or nodes.keys != groups.keys or nodes.weighted != tally.weighted):
        yield "group_nodes", "must have the keys of `groups`, in their order, and weights where rows have them"
    classes = tally.class_sums
    if classes is not None and any(
        not part.sum() <= s.weight * 1.01 for part in (classes.predicted, classes.observed)
    ):  # fmt: skip
        yield "class_sums", f"must not have more than the weight {s.weight:.6g} of all rows"
    if tally.axes is not None and len(tally.axes.sums) != tally.dimension:
        yield "axes", f"must have {tally.dimension} axes, as many as `dimension` says"
    if tally.room is not None and not tally.room <= s.weight * tally.most_entropy * (1.0 + 1e-9):
        yield "room", "must not exceed `most_entropy` for each row"
    if tally.forecast is not None and not tally.forecast.sums[0] <= s.weight * 1.000001:
        yield "forecast", f"must not have more than the weight {s.weight:.6g} of all rows"
    if isinstance(tally.forecast, VectorSums) and tally.forecast.matrices.shape[1] != tally.dimension:
        yield "forecast", f"must have matrices of the dimension {tally.dimension}"
    if tally.directions is not None and tally.directions.axes != tally.dimension:
        yield "directions", f"must have matrices of the dimension {tally.dimension}"
    if tally.directions is not None and not tally.directions.sums[0] <= s.weight * 1.000001:
        yield "directions", f"must not have more than the weight {s.weight:.6g} of all rows"
    if isinstance(tally.forecast, DrawSums) and len(tally.forecast.axes) != tally.dimension:
        yield "forecast", f"must have {tally.dimension} axes, as many as `dimension` says"
    yield from _unfitting_looks(tally)


def _unfitting_spectrum(tally: Tally) -> Iterator[tuple[str, str]]:
    """Find faults of the spectrum, and of the cells of the likeliest class."""
    spectrum, top = tally.spectrum, tally.top
    possible = tally.n - tally.summary.n_impossible
    if isinstance(spectrum, Cells if tally.weighted else WeightedCells):
        yield "spectrum", f"must be of rows {'with' if tally.weighted else 'without'} weights"
    if isinstance(spectrum, Nodes) and spectrum.surprises > tally.n:
        yield "spectrum", f"must not have more surprises than the {tally.n} rows"
    varentropy = spectrum.sums[2, 2] if isinstance(spectrum, Nodes) else math.nan
    if not (math.isnan(varentropy) or _near(varentropy, tally.summary.sum_varentropy, 1e-6 * tally.n)):
        yield "spectrum", "must have the varentropy of `summary` at the inverse temperature 1"
    for name, cells in (("spectrum", spectrum), ("top", top)):
        rows = cells.moments[..., 0].sum() if isinstance(cells, Cells | WeightedCells) else 0.0
        if not rows <= (tally.n if name == "top" else possible) * (1.0 + 1e-9):
            yield name, f"must not have more rows in its cells than the {possible} that are possible"


def _unfitting_looks(tally: Tally) -> Iterator[tuple[str, str]]:
    """Find faults of the tallies of other looks at the same rows."""
    if tally.others and tally.look is None:
        yield "others", "must not be there where the tally has no `look` of its own"
    for other in tally.others:
        if other.look is None or other.others:
            yield "others", "must have a `look` each, and no others of their own"
        for name in _SHARED:
            if getattr(other, name) != getattr(tally, name):
                yield "others", f"must have the same `{name}`, {getattr(tally, name)}"


def _near(value: float, wanted: float, size: float = 0.0) -> bool:
    return bool(abs(value - wanted) <= 1e-6 * (abs(wanted) + size))


def _read_spectrum(document: Any) -> Spectrum:
    kind = document.get("kind") if isinstance(document, Mapping) else None
    return _SPECTRA.get(str(kind), Cells).from_dict(document)


_SHARED = ("n", "dimension", "weighted")  # by all looks at the same rows
PLAIN = ("family", "dimension", "weighted", "n_certain", "decimals")
PARTS: dict[str, Callable[[Any], Any]] = {
    "summary": Summary.from_dict,
    "bins": documents.optional(Table.from_dict),
    "groups": documents.optional(Table.from_dict),
    "clusters": documents.optional(Clusters.from_dict),
    "spectrum": documents.optional(_read_spectrum),
    "spread": documents.optional(Histogram.from_dict),
    "ordered": documents.optional(Ordered.from_dict),
    "top": documents.optional(Cells.from_dict),
    "axes": documents.optional(AxisSums.from_dict),
}
FIELDS: dict[str, Callable[[Any], Any]] = {
    "family": documents.text,
    "dimension": documents.count(1),
    "most_entropy": documents.between(0.0, inside=True, infinite=True),
    "least_excess": documents.between(-math.inf, 0.0, infinite=True),
    "weighted": documents.flag,
    "n_certain": documents.count(),
    "decimals": documents.count(),
    "class_names": documents.list_of(documents.text),
    **PARTS,
}


LATER: dict[str, Callable[[Any], Any]] = {  # early documents do not have them
    "group_nodes": documents.optional(NodeTable.from_dict),
    "class_sums": documents.optional(ClassSums.from_dict),
    "look": Look.from_dict,
    "forecast": read_sums,
    "directions": DirectionSums.from_dict,
    "room": documents.between(0.0),
    "notes": documents.list_of(documents.words),
}
