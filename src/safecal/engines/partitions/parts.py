"""What one partition adds to the whole: sums, by key where there are keys, and some rows. Parts add up."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..._checks.columns import cluster_codes
from ..._checks.message import fail
from ..._sums.keyed import Keyed
from ..._types import FloatArray
from ...bins import Bins
from ...errors import ShapeError
from ...front_door import Gathered, gather, most_entropy
from ...histogram import Histogram
from ...inference.calibration import cluster_sums
from ...summary import as_sums, summaries
from ...table import Table
from .. import totals
from ..batch import Batch
from ..columns import Columns, batch, pyarrow
from ..totals import Totals
from .checked import Checked

__all__ = ["Part", "summed"]


@final
@dataclass(slots=True)
class Part:
    """The sums of some rows.

    ``first`` holds what does not add up: names, bins, and which sums exist.
    """

    form: str
    family: str
    dimension: int
    most_entropy: float
    first: Gathered
    total: FloatArray
    bins: FloatArray | None
    groups: Keyed | None
    cells: FloatArray
    certain: int
    clusters: Keyed | None
    drawn: list[Any]  # Arrow tables of rows drawn at random
    others: tuple[str, ...] = ()  # labels met beside the positive one

    def absorb(self, other: "Part") -> None:
        """Add the sums of other rows."""
        if self.most_entropy != other.most_entropy:
            classes = [round(math.exp(p.most_entropy)) for p in (self, other)]
            rule = f"must hold lists of one length, {classes[0]}"
            raise fail(ShapeError, self.form, rule, got=f"{classes[1]} in another partition")
        with np.errstate(invalid="ignore", over="ignore"):
            self.total += other.total
            self.cells += other.cells
            if self.bins is not None and other.bins is not None:
                self.bins += other.bins
        self.certain += other.certain
        if self.groups is not None and other.groups is not None:
            self.groups.absorb(other.groups)
            _limited(self.groups, "by")
        if self.clusters is not None and other.clusters is not None:
            self.clusters.absorb(other.clusters)
            _limited(self.clusters, "cluster")
        self.drawn += other.drawn
        self.others = tuple(dict.fromkeys((*self.others, *other.others)))

    def totals(self, columns: Columns, rate: float) -> Totals:
        """Return the sums as an evaluation takes them."""
        bins, groups = self.first.bins, self.first.groups
        if bins is not None and self.bins is not None:
            bins = Table(bins.name, bins.keys, self.bins, bins.bins, bins.top_label)
        if groups is not None and self.groups is not None:
            groups = Table(groups.name, self.groups.keys, self.groups.rows, None, groups.top_label)
        counts, sums = self.cells.tolist()
        sums_of_all = Gathered(
            summaries(self.total)[0], bins, groups, Histogram(tuple(counts), tuple(sums)), self.certain
        )
        clusters = None
        if self.clusters is not None:
            clusters = dict(zip(self.clusters.keys, self.clusters.rows, strict=True))
        return Totals(self.family, self.dimension, self.most_entropy, sums_of_all, clusters, self._drawn(columns), rate)

    def _drawn(self, columns: Columns) -> Batch | None:
        if not self.drawn:
            return None
        alone = Columns(
            columns.y_true, columns.values, columns.form, columns.spread, (), None, columns.sample_weight,
            columns.pos_label, columns.labels, columns.clip,
        )  # fmt: skip
        return batch(alone, pyarrow().concat_tables(self.drawn, promote_options="permissive"))


def summed(checked: Checked, edges: tuple[Bins, str] | None, rate: float, rng: np.random.Generator) -> Part | None:
    """Sum checked rows, and draw each with the chance ``rate``; None where there are none."""
    part: Part | None = None
    for table, rows in checked:
        new = _part(checked.columns.form, rows, edges)
        if rows.cluster is None:
            new.drawn = list(_some(table.select(list(checked.columns.measured)), rate, rng))
        if part is None:
            part = new
        else:
            part.absorb(new)
    if part is not None:
        part.others = checked.others
    return part


def _limited(keyed: Keyed, name: str) -> None:
    """Refuse more keys than can be held."""
    if len(keyed) > totals.MAX_KEYS:
        raise fail(
            ShapeError, name, f"must have at most {totals.MAX_KEYS} different values", got=f"{len(keyed)}",
            hint="sums are kept for each of them; is it the right column?",
        )  # fmt: skip


def _some(table: Any, rate: float, rng: np.random.Generator) -> Iterator[Any]:
    n = table.num_rows
    if rate >= 1.0:
        yield table
        return
    index = np.sort(rng.choice(n, rng.binomial(n, rate), replace=False, shuffle=False))
    if len(index):
        yield table.take(index)


def _part(form: str, rows: Batch, edges: tuple[Bins, str] | None) -> Part:
    p = rows.predictions
    sums = gather(p, rows.weight, edges, rows.by)
    groups = clusters = None
    if sums.groups is not None:
        groups = Keyed()
        groups.add(sums.groups.keys, sums.groups.sums)
        _limited(groups, "by")
    if rows.cluster is not None:
        keys, codes = cluster_codes(rows.cluster, p.n, p.outcome)
        clusters = Keyed()
        clusters.add(keys, cluster_sums(p, codes, len(keys), rows.weight))
        _limited(clusters, "cluster")
    total, cells = as_sums([sums.summary]), np.array([sums.histogram.counts, sums.histogram.sums])
    bins = None if sums.bins is None else sums.bins.sums.copy()
    if sums.groups is not None:
        sums = sums._replace(groups=Table.of_summaries(sums.groups.name, (), (), None, sums.groups.top_label))
    most, certain = most_entropy(p), sums.n_certain
    return Part(form, p.family, p.dimension, most, sums, total, bins, groups, cells, certain, clusters, [])
