"""What belongs to a Tally beside its sums: how it looks at the rows, its groups by one column alone, its documents.

Where there are several looks at the same rows, their decisions are put together here. Where rows are grouped by several
columns at once, sums of combinations add up to those of each column, so nothing has to be summed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .. import documents
from .._types import Decision
from ..errors import MergeError
from .causes import AxisSums, ClassSums, DirectionSums
from .cells import Cells, WeightedCells
from .cluster_pairs import Pairs
from .clusters import Clusters
from .forecasts import DrawSums, VectorSums, read_sums
from .nodes import Nodes, NodeTable, Ordered, Spectrum
from .scored import Histogram
from .summary import Summary, added_rows, adds_up
from .table import Table

if TYPE_CHECKING:
    from . import Tally

__all__ = [
    "FIELDS", "LATER", "PARTS", "PLAIN", "Look", "are_ends", "columns_of", "decide", "tallies_by_column",
    "unfitting",
]  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Look:
    """One way to look at rows: where there are several ways, or where one alone must not call the rows SAFE or UNSAFE.

    Attributes
    ----------
    name : str
        What it is called in a table: ``"moments"``.
    seen : str
        How it sees, inside a sentence: ``"by the moments of the draws"``.
    condemns : bool, default True
        Whether rows that are UNSAFE by this look are UNSAFE. A look that overstates over-confidence must not condemn.
    acquits : bool, default True
        Whether SAFE needs this look to be SAFE. If no look acquits, the rows are never SAFE. A look that understates
        over-confidence must not acquit.
    why : str, default ""
        A sentence that says why it does not both condemn and acquit.

    Examples
    --------
    >>> moments = Look("moments", "by the moments of the draws")
    >>> shape = Look("neighbours", "by neighbours among the draws", acquits=False)
    >>> decide([moments, shape], ["SAFE", "UNDETERMINED"])
    ('SAFE', 0)
    >>> decide([moments, shape], ["SAFE", "UNSAFE"])
    ('UNSAFE', 1)
    """

    name: str
    seen: str
    condemns: bool = True
    acquits: bool = True
    why: str = ""

    def __add__(self, other: Self) -> Self:
        """Look at rows of both: what one of them must not do, both together must not."""
        if self.name != other.name:
            hint = "keep such rows apart."
            raise MergeError(
                f"tallies must look at their rows in the same ways: {self.name}, {other.name}.\n\nHint: {hint}"
            )
        first = self if self.acquits + self.condemns <= other.acquits + other.condemns else other
        return replace(first, condemns=self.condemns and other.condemns, acquits=self.acquits and other.acquits)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Read what `to_dict` wrote."""
        return cls(**_read(document))


_read: Any = documents.record({
    "name": documents.words,
    "seen": documents.words,
    "condemns": documents.flag,
    "acquits": documents.flag,
    "why": documents.text,
})  # fmt: skip


def decide(looks: Sequence[Look], decisions: Sequence[Decision]) -> tuple[Decision, int]:
    """Decide by all looks together, of which there is one at least, from what each of them says by itself.

    It is UNSAFE where a look that condemns says so; SAFE where each that acquits says so, and there is one. Beside the
    decision stands the number of the look that decided, the first of several.
    """
    pairs = list(enumerate(zip(looks, decisions, strict=True)))
    condemning = [i for i, (look, decision) in pairs if look.condemns and decision == "UNSAFE"]
    if condemning:
        return "UNSAFE", condemning[0]
    acquitting = [i for i, (look, _) in pairs if look.acquits]
    doubtful = [i for i in acquitting if decisions[i] != "SAFE"]
    if doubtful or not acquitting:
        return "UNDETERMINED", (doubtful or [0])[0]
    return "SAFE", acquitting[0]


def are_ends(looks: Sequence[Look | None]) -> bool:
    """Tell whether two looks are the ends of a bound: the larger one can only acquit, the smaller one only condemn."""
    may = [(look.acquits, look.condemns) for look in looks if look is not None]
    return may == [(True, False), (False, True)]


def columns_of(groups: Table | None) -> int:
    """Return by how many columns rows are grouped: keys of several are tuples, and their names stand in the title."""
    if groups is None:
        return 0
    most = len(groups.name.split(", "))  # more than there are, if a name has a comma in it
    widths = {len(key) if isinstance(key, tuple) else 1 for key in groups.keys} if most > 1 else {1}
    count = widths.pop() if len(widths) == 1 else 1
    return count if 1 < count <= most else 1


def tallies_by_column(tally: Tally) -> list[Tally]:
    """Return for each of several columns the tally with the groups of that column; none where there is but one."""
    groups, count = tally.groups, columns_of(tally.groups)
    if groups is None or count < 2:
        return []
    names = groups.name.split(", ")
    if len(names) != count:
        names = [f"column {k} of {groups.name}" for k in range(1, count + 1)]
    tallies = []
    for k, name in enumerate(names):
        values = [key[k] for key in groups.keys]  # type: ignore[index]
        keys = tuple(dict.fromkeys(values))
        place = {key: number for number, key in enumerate(keys)}
        index = np.array([place[value] for value in values], dtype=np.intp)
        nodes, pairs = tally.group_nodes, tally.pairs
        if nodes is not None:
            nodes = NodeTable(keys, added_rows(nodes.of(groups.keys).sums, index, len(keys)), nodes.classes)
        if pairs is not None:
            of_pair = np.array([place[key[k]] for key in pairs.keys], dtype=np.intp)  # type: ignore[index]
            pairs = Pairs.of(pairs.clusters, keys, pairs.cluster, of_pair[pairs.key], pairs.sums)
        table = Table(name, keys, added_rows(groups.sums, index, len(keys)), None, groups.top_label)
        tallies.append(replace(tally, groups=table, group_nodes=nodes, pairs=pairs))
    return tallies


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
