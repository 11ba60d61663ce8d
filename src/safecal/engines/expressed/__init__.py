"""Two-class and scalar Gaussian predictions, evaluated by the engine that holds them.

One lazy pipeline of expressions: checks, the log-odds, the row formulas, the bin and the cell of each row. A dataframe
engine sums it by its cells, once more by group, by cluster, by both, and by cluster and coarse cell; nothing but sums
leaves it.

``language``  what expressions are written in: narwhals, or SQL
``formulas``  which rows break a rule, and the row formulas of the others
``cells``     what each row adds, and to which sum
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from ..._checks import fail
from ..._checks.columns import cluster_codes, group_codes
from ..._kernels.spectrum import CELLS as ODDS_CELLS
from ..._kernels.spectrum import NODES, SPREADS
from ..._optional import narwhals
from ..._sums import Tally, cluster_pairs
from ..._sums.causes import AxisSums
from ..._sums.cells import Cells, WeightedCells
from ..._sums.cluster_pairs import MAX_PAIRS, CellPairs, Pairs, refuse_many
from ..._sums.clusters import Clusters, added_by
from ..._sums.nodes import NodeTable, Ordered, Spectrum
from ..._sums.scored import CELLS, Histogram
from ..._sums.splits import Bins, Plan, bin_count, bin_keys
from ..._sums.summary import added_up, completed
from ..._sums.table import Table
from ..._types import AnyArray, BinOn, FloatArray, Strategy
from ...errors import BinsError, EmptyError
from ...families import Predictions
from ...families.bernoulli import bernoulli
from ...families.gaussian import gaussian
from ...inputs.columns import Columns
from ...inputs.values import keys as keys_of
from ...inputs.values import library
from ...judge.evaluation import Evaluation
from ...options import Limits
from ..batches import GRID_CELLS, CountGrid
from . import cells
from .formulas import Flagged, flag, log1p, score_binary, score_gaussian
from .language import SqlFrame, as_arrays, collect_limited, collect_numbers, in_sql, language, sums_by

__all__ = ["Expressed", "express"]


@final
@dataclass(frozen=True, slots=True)
class Expressed:
    """A frame, its columns, and the lazy pipeline over it up to its scored rows."""

    columns: Columns
    example: Predictions  # of the same family: what it may be binned on, and its range
    flagged: Flagged
    rows: Any
    names: tuple[str, ...]  # of the sums of a Summary
    n: int

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.columns.sample_weight is not None

    @property
    def classes(self) -> bool:
        """Whether outcomes are classes, not states."""
        return self.columns.form != "gaussian"

    def evaluate(
        self, bins: int | Bins | Literal["auto"] | None, bin_on: BinOn | None, strategy: Strategy, limits: Limits
    ) -> Evaluation:
        """Evaluate the rows; the options are those of `evaluate`."""
        if self.flagged.naming is not None:
            with in_sql(self.rows):
                self.flagged.refuse(self.n)
        return Evaluation.of(self.tally(self.plan(bins, bin_on, strategy)), limits)

    def tally(self, plan: Plan) -> Tally:
        """Sum the rows, in at most six queries: all of them, two by group, by cluster, by both, by cluster and cell."""
        with in_sql(self.rows):
            return self._tally(plan)

    def _tally(self, plan: Plan) -> Tally:
        query, size = self.main(plan)
        main = collect_numbers(query)
        if self.classes:
            main = cells.with_implied_sums(main, self.weighted)
        self._refuse(main, plan)
        cell, place = main["key"].astype(np.int64) % size, main["key"].astype(np.int64) // size
        bins = None
        if plan.bins is not None and plan.bin_on is not None:
            sums = self._sums(main, place, len(plan.bins))
            bins = Table(plan.bin_on, bin_keys(plan.bins), sums, plan.bins, plan.bin_on != "probability")
        groups, nodes = self._groups()
        return replace(
            Tally.of(self.example),
            weighted=self.weighted,
            summary=added_up(self._sums(main, np.zeros(len(cell), dtype=np.intp), 1)),
            bins=bins,
            groups=groups,
            group_nodes=nodes,
            clusters=self._clusters(),
            spectrum=self._spectrum(main, cell) if self.classes else None,
            spread=None if self.classes else self._spread(main, cell // SPREADS),
            ordered=None if self.classes else self._ordered(main, cell % SPREADS),
            n_certain=int(main["n_certain"].sum()),
            pairs=self._pairs(),
            cell_pairs=self._cell_pairs(),
            axes=None if self.classes else self._axes(main),
        )

    def _axes(self, main: dict[str, AnyArray]) -> AxisSums:
        """Return the errors of scalar states: a squared error is one more than twice the excess."""
        s = added_up(self._sums(main, np.zeros(len(main["n"]), dtype=np.intp), 1))
        possible = s.weight - s.weight_impossible
        return AxisSums(
            np.array([[possible, s.weight2, float(main["sum_error"].sum()), 2.0 * s.sum_excess + possible]])
        )

    def main(self, plan: Plan) -> tuple[Any, int]:
        """Return the lazy query of all sums by one key, made of bin and cell, and how many cells there are."""
        with in_sql(self.rows):
            nw = language()
            rows, names = self.rows, [name for name in self.names if not self.classes or name not in cells.IMPLIED]
            if plan.bins is None or plan.bin_on is None:
                rows = rows.with_columns(bin=nw.lit(0.0))
            else:
                bins, on = plan.bins, plan.bin_on
                largest = self.example.bin_range(on)[1] if self.example.binned_by_default else math.inf
                rows = rows.with_columns(binned=cells.binned_value(on, largest, bins))
                rows = rows.with_columns(bin=cells.bin_number(nw.col("binned"), bins))
                if not self._covered(bins, on):
                    rows = rows.with_columns(outside=cells.outside(nw.col("binned"), bins))
                    names.append("outside")
            if not self.classes:
                rows, size = cells.add_spread_cell(rows), CELLS * SPREADS
                names.append("bad")
            elif self.weighted:
                rows, size = cells.add_weighted_cell(rows)
                names += cells.WEIGHTED_MOMENTS
            else:
                rows, size = cells.add_odds_cell(rows)
                names += cells.MOMENTS[1:]
            key = nw.col("bin") * float(size) + nw.col("cell")
            if self.classes:
                key = cells.with_state(key)
            return sums_by(rows.with_columns(key=key.cast(nw.Int64)), ["key"], names), size

    def _covered(self, bins: Bins, on: str) -> bool:
        """Tell whether the bins hold every value that there can be."""
        if not self.example.binned_by_default:
            return bins.edges[0] == -math.inf and bins.edges[-1] == math.inf
        low, high = self.example.bin_range(on)
        return bins.edges[0] <= low and high <= bins.edges[-1]

    def plan(self, bins: int | Bins | Literal["auto"] | None, bin_on: BinOn | None, strategy: Strategy) -> Plan:
        """Decide on the bins; those of quantiles are found by a query of its own."""
        bins = Plan.wanted(bins, self.example.binned_by_default, bin_on, strategy)
        plan = Plan.of(self.example, bins, bin_on, strategy)
        if plan.bin_on is None or isinstance(bins, Bins) or strategy == "uniform":
            return plan
        with in_sql(self.rows):
            return Plan(*self._quantiles(bin_count(bins), plan.bin_on))

    def _quantiles(self, bins: int, on: BinOn) -> tuple[Bins, BinOn]:
        nw = language()
        value = nw.col(cells.COLUMN[on])
        if self.example.binned_by_default:
            low, high = self.example.bin_range(on)
        else:
            ends = collect_numbers(
                self.rows.select(low=value, high=value).select(nw.col("low").min(), nw.col("high").max())
            )
            low, high = float(ends["low"][0]), float(ends["high"][0])
            if low == high:
                return Bins((low, high)), on
        place = (value - low) * (GRID_CELLS / (high - low))
        inside = nw.when(place < 0.0).then(nw.lit(0.0)).otherwise(place)
        inside = nw.when(place > GRID_CELLS - 1.0).then(nw.lit(GRID_CELLS - 1.0)).otherwise(inside)
        counted = collect_numbers(sums_by(self.rows.with_columns(place=inside.floor().cast(nw.Float64)), ["place"], []))
        counts = np.zeros(GRID_CELLS, dtype=np.int64)
        np.add.at(counts, counted["place"].astype(np.intp), counted["n"].astype(np.int64))
        return CountGrid(on, low, high, counts).bins(bins)

    def _refuse(self, main: dict[str, AnyArray], plan: Plan) -> None:
        if main["bad"].sum() > 0.0:
            self.flagged.refuse(self.n)
        beyond = int(main["outside"].sum()) if "outside" in main else 0
        if beyond and plan.bins is not None:
            ends = plan.bins.edges[0], plan.bins.edges[-1]
            rule = f"must lie within the bins, {ends[0]:.6g} to {ends[1]:.6g}"
            hint = "add edges that cover every value; `-inf` and `inf` are allowed."
            raise fail(BinsError, "values", rule, count=(beyond, self.n), hint=hint)

    def _spectrum(self, main: dict[str, AnyArray], cell: AnyArray) -> Spectrum:
        names = cells.WEIGHTED_MOMENTS if self.weighted else cells.MOMENTS
        keys, index = np.unique(cell, return_inverse=True)
        moments: FloatArray = np.stack([np.bincount(index, weights=main[name]) for name in names], axis=1).astype(float)
        used = moments[:, 0] > 0.0  # certain rows are in no cell
        if self.weighted:
            return WeightedCells(keys[used], moments[used])
        table = np.zeros((4 * ODDS_CELLS, len(names)))
        table[keys[used]] = moments[used]
        return Cells(table.reshape(ODDS_CELLS, 2, 2, len(names)))

    def _spread(self, main: dict[str, AnyArray], cell: AnyArray) -> Histogram:
        possible = main["weight"] - main["weight_impossible"] if self.weighted else main["n"] - main["n_impossible"]
        columns = (possible, main["sum_excess"])
        return Histogram.of(np.stack([np.bincount(cell, weights=x, minlength=CELLS) for x in columns], axis=1))

    def _ordered(self, main: dict[str, AnyArray], cell: AnyArray) -> Ordered:
        keys, index = np.unique(cell, return_inverse=True)
        return Ordered("spread", keys, self._sums(main, index, len(keys)), SPREADS)

    def _sums(self, table: dict[str, AnyArray], codes: AnyArray, size: int) -> FloatArray:
        """Return the sums of summaries by key."""

        def by_key(name: str) -> FloatArray:
            return np.asarray(np.bincount(codes, weights=table[name], minlength=size), dtype=np.float64)

        sums = {name: by_key(name) for name in ("n", *self.names) if name != "n_certain"}
        if not self.weighted:
            possible = sums["n"] - sums["n_impossible"]
            sums |= {"weight_impossible": sums["n_impossible"], "weight2": possible, "weight3": possible}
        return completed(sums)

    def _groups(self) -> tuple[Table | None, NodeTable | None]:
        names = [f"by{k}" for k in range(len(self.columns.by))]
        if not names:
            return None, None
        grouped = collect_limited(sums_by(self.rows, names, list(self.names)), "by")
        name, keys, codes = self._group_codes(grouped)
        sums = self._sums(as_arrays(grouped, ["n", *self.names]), codes, len(keys))
        table = Table(name, keys, sums, None, "probability" not in self.example.bin_choices)
        return table, self._nodes(names, keys) if self.classes else None

    def _nodes(self, names: list[str], keys: tuple[Hashable, ...]) -> NodeTable:
        """Sum the nodes of groups whose keys are known."""
        result = node_query(self.rows, names, self.weighted).collect("pyarrow").to_native()
        _, again, codes = self._group_codes(result)
        return NodeTable(again, node_sums_of(result, codes, len(again), self.weighted)).of(keys)

    def _clusters(self) -> Clusters | None:
        if self.columns.cluster is None:
            return None
        rows, names = cells.add_cluster_columns(self.rows, self.weighted, self.classes)
        result = collect_limited(sums_by(rows, ["cluster"], names), "cluster")
        keys, codes = self._cluster_codes(result)
        return Clusters(keys, added_by(codes, len(keys), self._columns(result, names)))

    def _pairs(self) -> Pairs | None:
        names = [f"by{k}" for k in range(len(self.columns.by))]
        if not names or self.columns.cluster is None:
            return None
        rows, columns_summed = cells.add_pair_columns(self.rows, self.weighted, self.classes)
        result = sums_by(rows, ["cluster", *names], columns_summed).head(MAX_PAIRS + 1).collect("pyarrow").to_native()
        refuse_many(result.num_rows)
        clusters, cluster = self._cluster_codes(result)
        _, keys, key = self._group_codes(result)
        return Pairs.of(clusters, keys, cluster, key, np.stack(self._columns(result, columns_summed), axis=1))

    def _cell_pairs(self) -> CellPairs | None:
        if self.columns.cluster is None:
            return None
        rows, names = cells.add_pair_columns(self.rows, self.weighted, self.classes)
        rows = cells.add_coarse_odds(rows, self.weighted) if self.classes else cells.add_coarse_spread(rows)
        query = sums_by(rows, ["cluster", "coarse"], names).head(cluster_pairs.MAX_CELL_PAIRS + 1)
        result = query.collect("pyarrow").to_native()
        clusters, cluster = self._cluster_codes(result)
        used, key = np.unique(result.column("coarse").to_numpy().astype(np.intp), return_inverse=True)
        sums = np.stack(self._columns(result, names), axis=1)
        return CellPairs.of(Pairs.of(clusters, tuple(used.tolist()), cluster, key, sums))

    def _group_codes(self, result: Any) -> tuple[str, tuple[Hashable, ...], AnyArray]:
        return group_codes({x: _keys(result, f"by{k}") for k, x in enumerate(self.columns.by)}, result.num_rows)

    def _cluster_codes(self, result: Any) -> tuple[tuple[Hashable, ...], AnyArray]:
        return cluster_codes(_keys(result, "cluster"), result.num_rows, self.example.outcome)

    def _columns(self, result: Any, names: list[str]) -> list[AnyArray]:
        """Return sums of dependent rows; states have no mistakes."""
        table = as_arrays(result, ["n", *names])
        if not self.classes:
            table |= dict.fromkeys(("c_seen", "c_announced"), np.full(result.num_rows, np.nan))
        return list(table.values())


def express(frame: Any, columns: Columns, n: int | None = None) -> Expressed:
    """Write the evaluation of a lazy frame of narwhals as expressions; ``n`` is its number of rows, where it is known.

    It has one column of values: of two classes, or of scalar Gaussians.
    """
    n = int(collect_numbers(frame.select(n=narwhals().len()))["n"][0]) if n is None else n
    if n == 0:
        raise fail(EmptyError, "frame", "must have at least one row", got="none")
    native = frame.to_native()
    rows = SqlFrame(native, columns.names) if library(native) == "pyspark" else frame
    with in_sql(rows):
        return _expressed(rows, columns, n)


def _expressed(frame: Any, columns: Columns, n: int) -> Expressed:
    nw = language()
    flagged = flag(frame, columns)
    rows = flagged.rows
    if columns.form == "gaussian":
        assert columns.spread is not None
        example: Predictions = gaussian([0.0], [0.0], std=1.0)
        rows = score_gaussian(rows, columns.spread[0])
    else:
        example = bernoulli([1], [0.5], clip=columns.clip) if columns.form == "y_prob" else bernoulli([1], logits=[0.0])
        rows = score_binary(rows.with_columns(happened=nw.col("outcome") == 1.0), columns.form, columns.clip)
    rows, names = cells.add_summary_columns(rows, columns.sample_weight is not None, columns.form != "gaussian")
    return Expressed(columns, example, flagged, rows, tuple(names), n)


def _keys(table: Any, name: str) -> AnyArray:
    return keys_of(table.column(name), name).values


_SUMS = ("n_value", "n_first", "n_second", "n_third")
_WEIGHTED = ("n_second_weight2", "n_third_weight3")
_MISTAKES = "n_mistakes"


def node_query(rows: Any, keys: list[str], weighted: bool) -> Any:
    """Return the lazy query of the sums of `NodeTable`, by key and by node.

    With ``q`` the tempered probability of the less likely outcome, the derivatives of ``R = log(1 + exp(-beta L))`` are
    ``-L q``, ``L**2 q (1 - q)`` and ``-L**3 q (1 - q) (1 - 2q)``. Each node is a pass of its own over the rows, and one
    query has them all. Twenty sums in one pass are more code than Spark compiles, and took it many times as long.
    """
    names = [*_SUMS, *((*_WEIGHTED, _MISTAKES) if weighted else ())]
    parts = [_at_node(rows, keys, weighted, k) for k in range(len(NODES))]
    return sums_by(language().concat(parts, how="vertical"), [*keys, "node"], names)


def _at_node(rows: Any, keys: list[str], weighted: bool, k: int) -> Any:
    """Add the columns of one node; certain and impossible rows give 0."""
    nw = language()
    zero, odds, w = nw.lit(0.0), nw.col("odds"), nw.col("w1")
    frame = rows.select(*keys, "odds", "w1", "certain", *(("weight", "correct") if weighted else ()))
    t = nw.when(nw.col("certain")).then(zero).otherwise((odds * (0.0 - NODES[k])).exp())
    frame = frame.with_columns(n_t=t, node=nw.lit(float(k)))
    frame = frame.with_columns(n_u=1.0 + nw.col("n_t"))
    frame = frame.with_columns(n_q=nw.col("n_t") / nw.col("n_u"))
    q = nw.col("n_q")
    frame = frame.with_columns(n_v=odds * q * (odds / nw.col("n_u")))  # L * L may overflow where q is 0
    v = nw.col("n_v")
    third = zero - v * (odds * (1.0 - 2.0 * q))
    columns = dict(
        zip(_SUMS, (w * log1p(nw.col("n_t"), nw.col("n_u")), zero - w * (odds * q), w * v, w * third), strict=True)
    )
    if weighted:
        weight = nw.col("weight")
        columns |= dict(zip(_WEIGHTED, (w * w * v, w * w * w * third), strict=True))
        columns[_MISTAKES] = weight * weight * (1.0 - nw.col("correct"))
    return frame.with_columns(**columns).select(*keys, "node", *columns)


def node_sums_of(result: Any, codes: Any, size: int, weighted: bool) -> FloatArray:
    """Return the sums of `NodeTable`, from what the query gave and the number of the key of each of its rows."""
    names = [*_SUMS, *(_WEIGHTED if weighted else ())]
    table = as_arrays(result, ["node", *names, *([_MISTAKES] if weighted else [])])
    place = codes * len(NODES) + table["node"].astype(np.intp)
    parts = [np.bincount(place, weights=table[name], minlength=size * len(NODES)) for name in names]
    sums: FloatArray = np.stack(parts, axis=1).astype(np.float64).reshape(size, -1)
    if not weighted:
        return sums
    mistakes = np.bincount(codes, weights=table[_MISTAKES] * (table["node"] == 0.0), minlength=size)
    return np.concatenate([sums, mistakes[:, None]], axis=1)
