"""Where rows are grouped by several columns at once: the groups of each column by itself.

Sums of combinations add up to those of each column, so nothing has to be summed again.
"""

from dataclasses import replace

import numpy as np

from .._types import FloatArray, IndexArray
from .cluster_pairs import Pairs
from .nodes import NodeTable
from .table import Table
from .tally import Tally

__all__ = ["columns_of", "tallies_by_column"]


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
            nodes = NodeTable(keys, _added(nodes.of(groups.keys).sums, index, len(keys)), nodes.classes)
        if pairs is not None:
            of_pair = np.array([place[key[k]] for key in pairs.keys], dtype=np.intp)  # type: ignore[index]
            pairs = Pairs.of(pairs.clusters, keys, pairs.cluster, of_pair[pairs.key], pairs.sums)
        table = Table(name, keys, _added(groups.sums, index, len(keys)), None, groups.top_label)
        tallies.append(replace(tally, groups=table, group_nodes=nodes, pairs=pairs))
    return tallies


def _added(sums: FloatArray, index: IndexArray, size: int) -> FloatArray:
    total = np.zeros((size, sums.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        np.add.at(total, index, sums)
    return total
