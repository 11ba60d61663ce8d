"""Two-class and scalar Gaussian predictions, evaluated by the engine that holds them.

One lazy pipeline of expressions: checks, the log-odds, the row formulas, the bin and the cell of each row. A dataframe
engine sums it by its cells, once more by group and once more by cluster; nothing but sums leaves it.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..._checks.columns import cluster_codes, group_codes, whole_number
from ..._checks.message import fail
from ..._types import AnyArray, FloatArray
from ...bins import Bins
from ...errors import BinsError, EmptyError, WeightError
from ...evaluation import Evaluation
from ...families.bernoulli import bernoulli
from ...families.gaussian import gaussian
from ...families.predictions import Predictions
from ...front_door import Gathered, most_entropy
from ...histogram import CELLS, Histogram
from ...summary import Summary, added_up, completed
from ...table import Table, bin_keys
from ...tabulate import bins_for
from ..columns import Columns, group_keys
from ..libraries import narwhals
from ..quantiles import CELLS as FINE
from ..quantiles import Grid
from ..totals import Implied, Limits, Totals, from_sums
from . import cells
from .atoms import ODDS_CELLS, Atoms, atoms_temperature, gaussian_temperature, odds_cell
from .formulas import binary_rows, gaussian_rows, information
from .queries import arrays, collected, limited, sums_by
from .validity import Flagged, flag

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

    def evaluate(self, bins: int | Bins | str | None, bin_on: str | None, strategy: str, limits: Limits) -> Evaluation:
        """Evaluate the rows; the options are those of `evaluate`."""
        if self.flagged.naming is not None:
            self.flagged.refuse(self.n)
        edges = self._edges(bins, bin_on, strategy)
        main = collected(self.main(edges))
        self._refuse(main, edges)
        sums, implied = self._gathered(main, edges)
        found = Totals(self.example.family, 1, most_entropy(self.example), sums, self._clusters(), None, 1.0)
        return from_sums(found, limits, implied)

    def main(self, edges: tuple[Bins, str] | None) -> Any:
        """Return the lazy query: all sums by one key, made of bin, cell of the excess and cell of the log-odds."""
        nw = narwhals()
        rows, names = self.rows, [*self.names, "bad"]
        if edges is None:
            rows = rows.with_columns(bin=nw.lit(0.0))
        else:
            bins, on = edges
            most = self.example.bin_range(on)[1] if self.example.binned_by_default else math.inf
            rows = rows.with_columns(binned=cells.binned_value(on, most, bins))
            rows = rows.with_columns(bin=cells.bin_number(nw.col("binned"), bins))
            if not self._covered(bins, on):
                rows = rows.with_columns(outside=cells.outside(nw.col("binned"), bins))
                names.append("outside")
        rows = cells.cell_number(rows)
        key = nw.col("bin") * float(CELLS) + nw.col("cell")
        if self.columns.form != "gaussian":
            w, odds = nw.col("w1"), nw.col("odds")
            rows = odds_cell(rows).with_columns(
                sum_surprise=w * nw.col("surprise"), sum_odds=w * odds, sum_odds2=w * odds * odds
            )
            key = key * float(ODDS_CELLS) + nw.col("odds_cell")
            names += ["sum_surprise", "sum_odds", "sum_odds2"]
        return sums_by(rows.with_columns(key=key.cast(nw.Int64)), ["key"], names)

    def _covered(self, bins: Bins, on: str) -> bool:
        """Tell whether the bins hold every value that there can be."""
        if not self.example.binned_by_default:
            return bins.edges[0] == -math.inf and bins.edges[-1] == math.inf
        low, high = self.example.bin_range(on)
        return bins.edges[0] <= low and high <= bins.edges[-1]

    def _edges(self, bins: int | Bins | str | None, bin_on: str | None, strategy: str) -> tuple[Bins, str] | None:
        """Return the bins, and what they bin on; those of quantiles are found by a query of its own."""
        if isinstance(bins, str) and bins == "auto":
            wanted = self.example.binned_by_default or bin_on is not None or strategy != "uniform"
            bins = 10 if wanted else None
        if bins is None:
            return None
        found = bins_for(self.example, bins, bin_on, strategy)
        if isinstance(bins, Bins) or strategy == "uniform":
            return found
        assert not isinstance(bins, str)
        return self._quantiles(whole_number(bins, "bins", 1, BinsError), found[1])

    def _quantiles(self, bins: int, on: str) -> tuple[Bins, str]:
        nw = narwhals()
        value = nw.col(cells.COLUMN[on])
        if self.example.binned_by_default:
            low, high = self.example.bin_range(on)
        else:
            ends = collected(self.rows.select(low=value, high=value).select(nw.col("low").min(), nw.col("high").max()))
            low, high = float(ends["low"][0]), float(ends["high"][0])
            if low == high:
                return Bins((low, high)), on
        place = (value - low) * (FINE / (high - low))
        inside = nw.when(place < 0.0).then(nw.lit(0.0)).otherwise(place)
        inside = nw.when(place > FINE - 1.0).then(nw.lit(FINE - 1.0)).otherwise(inside)
        counted = collected(sums_by(self.rows.with_columns(place=inside.floor().cast(nw.Float64)), ["place"], []))
        counts = np.zeros(FINE, dtype=np.int64)
        np.add.at(counts, counted["place"].astype(np.intp), counted["n"].astype(np.int64))
        return Grid(on, low, high, counts).bins(bins)

    def _refuse(self, main: dict[str, AnyArray], edges: tuple[Bins, str] | None) -> None:
        if main["bad"].sum() > 0.0:
            self.flagged.refuse(self.n)
        if self.weighted and not main["weight"].sum() > 0.0:
            raise fail(WeightError, "sample_weight", "must not be all zero", got=f"{self.n} zeros")
        beyond = int(main["outside"].sum()) if "outside" in main else 0
        if beyond and edges is not None:
            ends = edges[0].edges[0], edges[0].edges[-1]
            rule = f"must lie within the bins, {ends[0]:.6g} to {ends[1]:.6g}"
            hint = "add edges that cover every value; `-inf` and `inf` are allowed."
            raise fail(BinsError, "values", rule, count=(beyond, self.n), hint=hint)

    def _gathered(self, main: dict[str, AnyArray], edges: tuple[Bins, str] | None) -> tuple[Gathered, Implied]:
        key = main["key"].astype(np.int64)
        if self.columns.form != "gaussian":
            key = key // ODDS_CELLS
        size = 1 if edges is None else len(edges[0])
        found = self._sums(main, key // CELLS, size)
        total = added_up(found)
        table = None
        if edges is not None:
            table = Table(edges[1], bin_keys(edges[0]), found, edges[0], edges[1] != "probability")
        possible = main["weight"] - main["weight_impossible"] if self.weighted else main["n"] - main["n_impossible"]
        counts, sums = (
            np.bincount(key % CELLS, weights=x, minlength=CELLS).tolist() for x in (possible, main["sum_excess"])
        )
        gathered = Gathered(
            total, table, self._groups(), Histogram(tuple(counts), tuple(sums)), int(main["n_certain"].sum())
        )
        return gathered, self._temperature(main, total, possible)

    def _temperature(self, main: dict[str, AnyArray], total: Summary, possible: FloatArray) -> Implied:
        if self.columns.form == "gaussian":
            weight = total.weight - total.weight_impossible
            return gaussian_temperature(2.0 * total.sum_excess + weight, weight, total.weight2, total.weight3)
        weights = (possible, main["weight2"], main["weight3"]) if self.weighted else (possible,) * 3
        surprise = float(main["sum_surprise"].sum())
        return atoms_temperature(Atoms.of(weights, main["sum_odds"], main["sum_odds2"], surprise, self.weighted))

    def _sums(self, table: dict[str, AnyArray], codes: AnyArray, size: int) -> FloatArray:
        def by_key(name: str) -> FloatArray:
            return np.asarray(np.bincount(codes, weights=table[name], minlength=size), dtype=np.float64)

        sums = {name: by_key(name) for name in ("n", *self.names) if name != "n_certain"}
        if not self.weighted:
            possible = sums["n"] - sums["n_impossible"]
            sums |= {"weight_impossible": sums["n_impossible"], "weight2": possible, "weight3": possible}
        return completed(sums)

    def _groups(self) -> Table | None:
        names = [f"by{k}" for k in range(len(self.columns.by))]
        if not names:
            return None
        found = limited(sums_by(self.rows, names, list(self.names)), "by")
        columns = {name: group_keys(found, f"by{k}") for k, name in enumerate(self.columns.by)}
        name, keys, codes = group_codes(columns, found.num_rows)
        table = self._sums(arrays(found, ["n", *self.names]), codes, len(keys))
        return Table(name, keys, table, None, "probability" not in self.example.bin_choices)

    def _clusters(self) -> dict[Any, FloatArray] | None:
        if self.columns.cluster is None:
            return None
        wanted = ["sum_excess", "sum_varentropy", "n_impossible"]
        if self.weighted:
            wanted += ["weight", "weight_impossible", "sum_varentropy_weight2"]
        found = limited(sums_by(self.rows, ["cluster"], wanted), "cluster")
        keys, codes = cluster_codes(group_keys(found, "cluster"), found.num_rows, self.example.outcome)
        table = arrays(found, ["n", *wanted])
        impossible = table["weight_impossible" if self.weighted else "n_impossible"] > 0.0
        parts = (
            np.where(impossible, np.inf, table["sum_excess"]),
            table["weight" if self.weighted else "n"],
            table["sum_varentropy_weight2" if self.weighted else "sum_varentropy"],
        )
        sums = np.stack([np.bincount(codes, weights=part, minlength=len(keys)) for part in parts], axis=1)
        return dict(zip(keys, sums, strict=True))


def express(frame: Any, columns: Columns, n: int | None = None) -> Expressed:
    """Write the evaluation of a frame as expressions; ``n`` is its number of rows, where it is known.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        Of any engine.
    columns : Columns
        One column of values: two classes, or scalar Gaussians.
    n : int, optional
        Rows.

    Returns
    -------
    Expressed
        Call ``.evaluate(...)`` on it.
    """
    nw = narwhals()
    n = int(collected(frame.select(n=nw.len()))["n"][0]) if n is None else n
    if n == 0:
        raise fail(EmptyError, "frame", "must have at least one row", got="none")
    flagged = flag(frame, columns)
    rows = flagged.rows
    if columns.form == "gaussian":
        assert columns.spread is not None
        example: Predictions = gaussian([0.0], [0.0], std=1.0)
        rows = gaussian_rows(rows, columns.spread[0])
    else:
        example = bernoulli([1], [0.5]) if columns.form == "y_prob" else bernoulli([1], logits=[0.0])
        rows = binary_rows(rows.with_columns(happened=nw.col("outcome") == 1.0), columns.form, columns.clip)
    rows, names = information(rows, columns.sample_weight is not None, columns.form != "gaussian")
    return Expressed(columns, example, flagged, rows, tuple(names), n)
