"""The same rows by every door, held in memory or summed: one verdict, one reason, one set of numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import Evaluation, Limits, Predictions, Summary, Table
from safecal._sums import cluster_pairs
from safecal._sums.cells import Cells, WeightedCells
from safecal._sums.cluster_pairs import Pairs
from safecal._sums.nodes import Nodes
from safecal._sums.scored import Scored, summed
from safecal._sums.summary import summaries
from safecal.engines import partitions
from safecal.engines.batches import Batch, evaluate_batches
from safecal.judge.evaluation import evaluate_predictions

pa = pytest.importorskip("pyarrow")
nw = pytest.importorskip("narwhals")

from safecal.engines.expressed import express  # noqa: E402
from safecal.engines.frames import evaluate_frame  # noqa: E402
from safecal.inputs.columns import Columns  # noqa: E402

# PySpark warns of pandas 3, and PySpark and Dask leave sockets to the garbage collector.
third_parties = [
    pytest.mark.extra,
    pytest.mark.no_cover,  # `test_partitions` and `test_frames` run the same lines
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore:.*PySpark does not yet fully support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
]


@dataclass(frozen=True, eq=False)
class Case:
    """Rows: what happened, what was predicted, and the columns beside it."""

    y: Any
    values: Any
    form: str  # "y_prob", "logits" or "gaussian"
    std: Any = None
    by: Any = None
    cluster: Any = None
    weight: Any = None

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def classes(self) -> int:
        return 1 if self.values.ndim == 1 else self.values.shape[1]

    def predictions(self, rows: slice = slice(None)) -> Predictions:
        if self.form == "gaussian":
            return safecal.gaussian(self.y[rows], self.values[rows], std=self.std[rows])
        kind = safecal.bernoulli if self.classes == 1 else safecal.categorical
        return kind(self.y[rows], **{self.form: self.values[rows]})

    def table(self) -> Any:
        """Return the rows as an Arrow table; many classes are a column of lists."""
        names = {"std": self.std, "site": self.by, "day": self.cluster, "w": self.weight}
        values = self.values if self.classes == 1 else pa.array(list(self.values))
        return pa.table({"y": self.y, "v": values} | {k: pa.array(c) for k, c in names.items() if c is not None})

    @property
    def columns(self) -> Columns:
        spread = None if self.std is None else ("std", "std")
        by = () if self.by is None else ("site",)
        weight = None if self.weight is None else "w"
        return Columns("y", ("v",), self.form, spread, by, None if self.cluster is None else "day", weight)

    @property
    def words(self) -> dict[str, Any]:
        """What `evaluate_frame` is told."""
        given = (
            {"x_true": "y", "mean": "v", "std": "std"} if self.form == "gaussian" else {"y_true": "y", self.form: "v"}
        )
        given |= {} if self.by is None else {"by": "site"}
        given |= {} if self.cluster is None else {"cluster": "day"}
        return given | ({} if self.weight is None else {"sample_weight": "w"})


def _two(seed: int, log_odds: Callable[[np.random.Generator], Any], scale: float = 1.0, **more: Any) -> Case:
    rng = np.random.default_rng(seed)
    z = log_odds(rng)
    return Case((rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(int), scale * z, "logits", **more)


def _chances(seed: int, p: Any, said: Any = None) -> Case:
    rng = np.random.default_rng(seed)
    return Case((rng.random(len(p)) < p).astype(int), p if said is None else said, "y_prob")


def _many(seed: int, n: int, classes: int, scale: float) -> Case:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, (n, classes))
    return Case((z + rng.gumbel(size=z.shape)).argmax(axis=1), scale * z, "logits")


def _states(seed: int, n: int, scale: float) -> Case:
    rng = np.random.default_rng(seed)
    std = 0.5 + rng.random(n)
    mean = rng.normal(0, 3, n)
    return Case(mean + scale * std * rng.normal(0, 1, n), mean, "gaussian", std=std)


def _beside(case: Case, *names: str) -> Case:
    """Add columns: groups with missing ones, clusters of unequal size, weights of which some are 0."""
    rng = np.random.default_rng(case.n)
    columns = {
        "by": np.array(["north", "east", "south", None], dtype=object)[rng.integers(0, 4, case.n)],
        "cluster": rng.geometric(0.05, case.n),
        "weight": rng.gamma(2.0, 1.0, case.n) * (rng.random(case.n) < 0.9),
    }
    return replace(case, **{name: columns[name] for name in names})


def _any(seed: int) -> Case:
    """Make rows of a kind that the seed decides."""
    rng = np.random.default_rng([9, seed])
    n, scale = int(rng.integers(300, 1500)), float(np.exp(rng.normal(0, 0.5)))
    kind = rng.choice(["two", "chances", "many", "states"], p=[0.4, 0.3, 0.15, 0.15])
    if kind == "two":
        spread, shift = rng.gamma(2.0, 1.0), rng.normal(0, 2)
        case = _two(seed, lambda rng: rng.normal(shift, spread, n), scale)
    elif kind == "chances":
        p = rng.beta(*rng.gamma(2.0, 1.0, 2), n).clip(1e-9, 1 - 1e-9)
        case = _chances(seed, p, np.round(p, 2) if rng.random() < 0.5 else p**scale)
    else:
        case = _many(seed, n, int(rng.integers(3, 8)), scale) if kind == "many" else _states(seed, n, scale)
    return _beside(case, *(name for name in ("by", "cluster", "weight") if rng.random() < 0.4))


def _vague(seed: int) -> Case:
    """Make rows near one half; in one group of three logits are twice too large: few nats, but a temperature of 2."""
    case = _two(seed, lambda rng: rng.normal(0, 0.5, 3 * N))
    group = np.array(["hot", "mild", "cold"], dtype=object)[np.arange(case.n) % 3]
    return replace(case, values=case.values * np.where(group == "hot", 2.2, 0.8), by=group)


N, LESS = 3000, 1000  # with weights, what chance alone would give is drawn: that takes time
CASES: dict[str, Callable[[], Case]] = {
    "calibrated": lambda: _two(0, lambda rng: rng.normal(0, 2, N)),
    "1.55 times too large": lambda: _two(1, lambda rng: rng.normal(0, 2, N), 1.55),
    "T = 1.2": lambda: _two(2, lambda rng: rng.normal(0, 2, N), 1.2),
    "T = 2": lambda: _two(3, lambda rng: rng.normal(0, 2, N), 2.0),
    "T = 3": lambda: _two(4, lambda rng: rng.normal(0, 2, N), 3.0),
    "sharp": lambda: _two(5, lambda rng: rng.normal(7, 1, N)),
    "rare": lambda: _chances(6, np.random.default_rng(6).beta(0.5, 200, N)),
    "rare, and too seldom": lambda: _chances(7, np.full(N, 0.018), np.full(N, 0.001)),
    "lattice of tenths": lambda: _chances(8, np.random.default_rng(8).integers(1, 10, N) / 10),
    "lattice of one": lambda: _chances(9, np.full(N, 0.8)),
    "lattice of powers of two": lambda: _two(10, lambda rng: rng.choice([-4.0, -0.5, 0.0, 0.25, 1.0, 2.0], N)),
    "hot groups": lambda: _vague(20),
    "hot groups, with weights": lambda: _beside(_vague(21), "weight"),
    "groups": lambda: _beside(_two(11, lambda rng: rng.normal(0, 2, N), 1.55), "by"),
    "clusters": lambda: _beside(_two(12, lambda rng: rng.normal(0, 2, N), 1.55), "cluster"),
    "weights": lambda: _beside(_two(13, lambda rng: rng.normal(0, 2, LESS), 1.55), "weight"),
    "all three": lambda: _beside(_two(14, lambda rng: rng.normal(0, 2, LESS), 1.2), "by", "cluster", "weight"),
    "many classes": lambda: _many(15, N, 5, 1.0),
    "many classes, 1.55 times too large": lambda: _many(16, N, 5, 1.55),
    "many classes, all three": lambda: _beside(_many(17, LESS, 5, 1.2), "by", "cluster", "weight"),
    "states": lambda: _states(18, N, 1.0),
    "states, all three": lambda: _beside(_states(19, LESS, 1.3), "by", "cluster", "weight"),
    **{f"random {seed}": (lambda seed=seed: _any(seed)) for seed in range(20)},
}
# What a door may do differently shows in a few cases; the others are for the longer tiers.
FEW = ("1.55 times too large", "hot groups", "rare, and too seldom", "lattice of tenths", "all three",
       "states, all three", "random 0", "random 1")  # fmt: skip


@cache
def case_of(name: str) -> Case:
    return CASES[name]()


def evaluated(case: Case) -> Evaluation:
    """Evaluate the rows as arrays: what every door must say."""
    by = None if case.by is None else {"site": case.by}
    return evaluate_predictions(case.predictions(), by=by, cluster=case.cluster, sample_weight=case.weight)


@cache
def whole_of(name: str) -> Evaluation:
    return evaluated(case_of(name))


def _batches(case: Case, max_rows: int) -> Evaluation:
    def cut() -> Iterator[Batch]:
        for start in range(0, case.n, 700):
            rows = slice(start, start + 700)
            weight, cluster = (None if c is None else c[rows] for c in (case.weight, case.cluster))
            yield Batch(case.predictions(rows), weight, None if case.by is None else {"site": case.by[rows]}, cluster)

    return evaluate_batches(cut, bins=None if case.form == "gaussian" else 10, max_rows=max_rows)


def _frame(made: Callable[[Any], Any]) -> Callable[[Case, int], Evaluation]:
    return lambda case, max_rows: evaluate_frame(made(case.table()), **case.words, max_rows=max_rows)


def _polars(table: Any) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def _duckdb(table: Any) -> Any:
    return pytest.importorskip("duckdb").from_arrow(table)


def _ibis(table: Any) -> Any:
    pytest.importorskip("duckdb")
    return pytest.importorskip("ibis").memtable(table)


def _dask(table: Any) -> Any:
    dask = pytest.importorskip("dask")
    with dask.config.set({"dataframe.convert-string": False}):
        return pytest.importorskip("dask.dataframe").from_pandas(table.to_pandas(), npartitions=4)


def _expressed(made: Callable[[Any], Any]) -> Callable[[Case, int], Evaluation]:
    def evaluate(case: Case, max_rows: int) -> Evaluation:
        frame = nw.from_native(made(case.table())).lazy()
        return express(frame, case.columns).evaluate("auto", None, "uniform", Limits())

    return evaluate


DOORS: dict[str, Callable[[Case, int], Evaluation]] = {
    "batches": _batches,
    "pandas": _frame(lambda table: table.to_pandas()),
    "polars": _frame(_polars),
    "lazy polars": _frame(lambda table: _polars(table).lazy()),
    "pyarrow": _frame(lambda table: table),
    "duckdb": _frame(_duckdb),
    "ibis": _frame(_ibis),
    "expression": _expressed(_duckdb),
}
EXPRESSIONS = ("expression", "spark expression")
# Ibis is of the extras; of doors that read alike, one stays fast.
TIERS = {"ibis": pytest.mark.extra} | dict.fromkeys(("polars", "lazy polars", "pyarrow", "duckdb"), pytest.mark.proof)


def close(a: float, b: float, rel: float, scale: float = 0.0) -> bool:
    """Tell whether two numbers agree, NaN and infinities included."""
    return a == b or (a != a and b != b) or abs(a - b) <= rel * max(abs(b), scale)


def same_local(actual: Evaluation, whole: Evaluation, rel: float) -> None:
    """Hold ranges of the predictions, and mistakes, to those of the arrays."""
    a, b = actual.local, whole.local
    assert (a.on, len(a)) == (b.on, len(b))
    for name in ("label", "low", "high"):
        np.testing.assert_array_equal(a.column(name), b.column(name))
    np.testing.assert_allclose(a.numbers[:, 3:], b.numbers[:, 3:], rtol=rel, atol=rel)
    assert (actual.mistakes is None) == (whole.mistakes is None)
    if actual.mistakes is not None and whole.mistakes is not None:
        for name in ("value", "low", "high"):
            assert close(getattr(actual.mistakes.ratio, name), getattr(whole.mistakes.ratio, name), rel)


def same(actual: Evaluation, whole: Evaluation, case: Case, *, exactly: bool) -> None:
    """Hold an evaluation to that of the arrays. ``exactly`` is whether log-odds agree to the last digit."""
    for name in ("decision", "on_average", "reason", "direction", "n_impossible", "uninformative"):
        assert getattr(actual.verdict, name) == getattr(whole.verdict, name), name
    assert [place.name for place in actual.verdict.where] == [place.name for place in whole.verdict.where]
    same_local(actual, whole, 1e-4 if case.classes > 1 else 1e-6)
    assert (actual.n, actual.n_certain, actual.family) == (whole.n, whole.n_certain, whole.family)
    rel = 1e-4 if case.classes > 1 else 1e-6
    for a, b in ((actual.interval, whole.interval), (actual.temperature, whole.temperature)):
        assert a.method == b.method
        for name in ("value", "low", "high"):
            assert close(getattr(a, name), getattr(b, name), rel, 1e-6), (name, a, b)
    assert (actual.test.method, actual.test.reason) == (whole.test.method, whole.test.reason)
    assert close(actual.test.p_value, whole.test.p_value, rel)
    scored = case.predictions().score()
    terms = replace(scored, excess=np.abs(scored.excess), third_cumulant=np.abs(scored.third_cumulant),
                    entropy=None if scored.entropy is None else np.abs(scored.entropy))  # fmt: skip
    same_sums(actual.summary, whole.summary, summaries(summed(terms, case.weight))[0])
    for table, other in ((actual.bins, whole.bins), (actual.groups, whole.groups)):
        assert (table is None) == (other is None)
        if table is not None and other is not None:
            same_table(table, other, terms, case)
    same_spectrum(actual, whole, exactly=exactly)
    a, b = actual.tally.clusters, whole.tally.clusters
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert a.keys is not None
        assert b.keys is not None
        order = [a.keys.index(key) for key in b.keys]
        np.testing.assert_allclose(a.sums[order], b.sums, rtol=1e-12, atol=1e-12 * np.nanmax(np.abs(b.sums)))
    same_pairs(actual.tally.pairs, whole.tally.pairs)
    one, other = actual.tally.axes, whole.tally.axes
    assert (one is None) == (other is None) == (whole.family != "gaussian")
    if one is not None and other is not None:
        np.testing.assert_allclose(one.sums, other.sums, rtol=1e-11, atol=1e-11 * whole.n)
    a, b = actual.tally.cell_pairs, whole.tally.cell_pairs
    assert (a is None) == (b is None) == (whole.tally.clusters is None)  # a few rows are never too many
    if a is not None and b is not None:
        assert a.classes == b.classes
        if exactly:  # else the last digit of log-odds may choose another cell
            same_pairs(a.pairs, b.pairs)
    same_group_temperatures(actual, whole)


def same_group_temperatures(actual: Evaluation, whole: Evaluation) -> None:
    """Hold the nodes of groups to those of the arrays, and with them what is said of each group."""
    a, b = actual.tally.group_nodes, whole.tally.group_nodes
    assert (a is None) == (b is None) == (whole.groups is None or whole.family == "gaussian")
    if a is not None and b is not None:
        assert a.keys == b.keys
        np.testing.assert_allclose(a.sums, b.sums, rtol=1e-11, atol=1e-12 * np.abs(b.sums).max())
    for key in () if whole.groups is None else whole.groups.keys:
        one, other = actual.group_verdict(key), whole.group_verdict(key)
        assert (one.name, one.decision, one.n) == (other.name, other.decision, other.n)
        for end in ("value", "low", "high"):
            assert close(getattr(one.temperature, end), getattr(other.temperature, end), 1e-6, 1e-6)


def same_pairs(actual: Pairs | None, whole: Pairs | None) -> None:
    assert (actual is None) == (whole is None)
    if actual is None or whole is None:
        return
    a, b = (
        {(p.clusters[c], p.keys[k]): row for c, k, row in zip(p.cluster, p.key, p.sums, strict=True)}
        for p in (actual, whole)
    )
    assert set(a) == set(b)
    sums = [np.array([a[pair] for pair in b]), np.array(list(b.values()))]
    np.testing.assert_allclose(*sums, rtol=1e-12, atol=1e-12 * np.nanmax(np.abs(sums[1])))


def same_sums(actual: Summary, whole: Summary, terms: Summary) -> None:
    """Hold sums to a trillionth of what their terms add up to without their signs."""
    assert (actual.n, actual.n_impossible) == (whole.n, whole.n_impossible)
    for field in fields(Summary):
        a, b, size = (getattr(s, field.name) for s in (actual, whole, terms))
        assert (a is None) == (b is None), field.name
        assert a is None or a == b or abs(a - b) <= 1e-12 * size, field.name


def same_table(actual: Table, whole: Table, terms: Scored, case: Case) -> None:
    assert (actual.name, actual.keys, actual.bins, actual.top_label) == (
        whole.name, whole.keys, whole.bins, whole.top_label
    )  # fmt: skip
    if whole.bins is None:
        index = np.array([whole.keys.index(key) for key in case.by])
    else:
        on = terms.predicted if whole.name == "probability" else terms.confidence
        assert on is not None
        index = whole.bins.index(on)
    sizes = summaries(summed(terms, case.weight, index, len(whole)))
    for a, b, size in zip(actual.summaries, whole.summaries, sizes, strict=True):
        same_sums(a, b, size)


def same_spectrum(actual: Evaluation, whole: Evaluation, *, exactly: bool) -> None:
    a, b = actual.tally.spectrum, whole.tally.spectrum
    assert type(a) is type(b)
    if isinstance(a, Nodes) and isinstance(b, Nodes):
        assert (a.surprises, a.classes) == (b.surprises, b.classes)
        np.testing.assert_allclose(a.sums, b.sums, rtol=1e-12, atol=1e-12 * np.nanmax(np.abs(b.sums)))
    elif isinstance(a, Cells) and isinstance(b, Cells):
        sums = [c.moments.reshape(-1, 4) for c in (a, b)]
        if exactly:
            np.testing.assert_array_equal(sums[0][:, 0], sums[1][:, 0])
            np.testing.assert_allclose(*sums, rtol=1e-12, atol=1e-12 * np.abs(sums[1]).max())
        assert sums[0][:, 0].sum() == sums[1][:, 0].sum()
    elif isinstance(a, WeightedCells) and isinstance(b, WeightedCells):
        if exactly:
            np.testing.assert_array_equal(a.keys, b.keys)
            np.testing.assert_allclose(a.moments, b.moments, rtol=1e-12, atol=1e-12 * np.abs(b.moments).max())
        assert a.moments[:, 0].sum() == b.moments[:, 0].sum()
    else:
        assert actual.histogram.counts == pytest.approx(whole.histogram.counts, rel=1e-12)


def _served(door: str, case: Case) -> bool:
    """Tell whether a door takes such rows; expressions have one column of values."""
    return door not in EXPRESSIONS or case.classes == 1


def by_both_ways(door: Callable[[Case, int], Evaluation], case: Case, whole: Evaluation, *, exactly: bool) -> None:
    """Sum the rows, and hold them in memory; ``exactly`` is false of expressions, which only sum."""
    for max_rows in (case.n // 3, 10 * case.n) if exactly else (case.n // 3,):
        same(door(case, max_rows), whole, case, exactly=exactly)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "VALUES", 1000)


def _pairs() -> Iterator[Any]:
    """Yield each case with each door; of the fast ones, each case comes to one door."""
    for name in CASES:
        for door in ("batches", "pandas", "expression"):
            fast = name in FEW and door == ("batches", "pandas")[FEW.index(name) % 2]
            yield pytest.param(name, door, marks=() if fast else pytest.mark.proof)


@pytest.mark.parametrize(("name", "door"), list(_pairs()))
def test_every_door_says_the_same(name: str, door: str, small: None) -> None:
    case = case_of(name)
    if _served(door, case):
        by_both_ways(DOORS[door], case, whole_of(name), exactly=door not in EXPRESSIONS)


@pytest.mark.parametrize("name", [*FEW, *(f"random {seed}" for seed in range(3, 20, 4))])
@pytest.mark.parametrize("door", [pytest.param(door, marks=mark) for door, mark in TIERS.items()])
@pytest.mark.no_cover
def test_doors_that_read_the_same_batches_say_the_same(door: str, name: str, small: None) -> None:
    by_both_ways(DOORS[door], case_of(name), whole_of(name), exactly=True)


@pytest.mark.proof
def test_too_many_pairs_of_cluster_and_cell_are_kept_by_no_door(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    case = case_of("all three")
    pairs = whole_of("all three").tally.cell_pairs
    assert pairs is not None
    monkeypatch.setattr(cluster_pairs, "MAX_CELL_PAIRS", len(pairs.pairs) - 1)
    whole = evaluated(case)
    assert whole.tally.cell_pairs is None
    assert (whole.local.column("ecd_low") <= 0.0).all()
    for door in ("batches", "pandas", "expression"):
        evaluation = DOORS[door](case, case.n // 3)
        assert evaluation.tally.cell_pairs is None
        same_local(evaluation, whole, 1e-6)


def _csv(path: Path, *names: str) -> list[Any]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([row[name] for row in rows]) for name in names]


def _games(path: Path) -> Case:
    p, y = (column.astype(float) for column in _csv(path, "prob1", "prob1_outcome"))
    played = y != 0.5
    return Case(y[played].astype(int), p[played], "y_prob")


def _images(path: Path) -> Case:
    with np.load(path) as file:
        return Case(file["ground_truth"].astype(int).ravel(), file["predictions"], "y_prob")


def _tweets(path: Path) -> Case:
    y, logit = _csv(path, "y", "logit")
    return Case(y.astype(int), logit.astype(float), "logits")


def _biology(path: Path) -> Case:
    p, kind = _csv(path, ".pred_poor", "Class")
    return Case((kind == "poor").astype(int), p.astype(float), "y_prob")


REAL: dict[str, Callable[[Path], Case]] = {
    "baseball": lambda data: _games(data / "baseball" / "mlb_games.csv"),
    "football": lambda data: _games(data / "football" / "nfl_games.csv"),
    "tweets": lambda data: _tweets(data / "toxicity" / "bilstm_tweets.csv"),
    "logistic regression": lambda data: _biology(data / "cells" / "segment_logistic.csv"),
    "naive Bayes": lambda data: _biology(data / "cells" / "segment_naive_bayes.csv"),
    "10 classes": lambda data: _images(data / "cifar" / "wideresnet-16-4-cifar-10.npz"),
    "100 classes": lambda data: _images(data / "cifar" / "densenet-bc-100-cifar-100.npz"),
}


@pytest.mark.extra  # one of the doors is Ibis
@pytest.mark.no_cover
@pytest.mark.parametrize("name", REAL)
def test_every_door_says_the_same_of_real_predictions(
    name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = REAL[name](shared_data)
    monkeypatch.setattr(partitions, "VALUES", max(case.n * case.classes // 3, 1))
    whole = evaluated(case)
    for door, evaluate in DOORS.items():
        if _served(door, case):
            by_both_ways(evaluate, case, whole, exactly=door not in EXPRESSIONS)


ON_CLUSTERS = ("1.55 times too large", "lattice of tenths", "all three", "many classes, all three",
               "states, all three", "random 15")  # fmt: skip


@pytest.mark.proof
def test_a_hot_group_is_named_by_its_temperature() -> None:
    for name in ("hot groups", "hot groups, with weights"):
        shown = whole_of(name).verdict.shown
        assert [(place.name, place.by) for place in shown] == [("site hot", "temperature")]


class TestOnClusters:
    pytestmark = third_parties

    @pytest.mark.parametrize("name", ON_CLUSTERS)
    def test_dask(self, name: str, small: None) -> None:
        by_both_ways(_frame(_dask), case_of(name), whole_of(name), exactly=True)

    @pytest.mark.parametrize("name", ON_CLUSTERS)
    def test_spark_partitions(self, name: str, small: None, spark: Any) -> None:
        from safecal.engines.partitions import evaluate_partitions

        case = case_of(name)
        frame = spark.createDataFrame(case.table()).repartition(5)
        by_both_ways(
            lambda case, max_rows: evaluate_partitions(frame, case.columns, max_rows=max_rows),
            case, whole_of(name), exactly=True,
        )  # fmt: skip

    @pytest.mark.parametrize("name", ["1.55 times too large", "all three", "states, all three", "random 15"])
    def test_spark_expression(self, name: str, spark: Any) -> None:
        case = case_of(name)
        if _served("spark expression", case):
            evaluation = _frame(spark.createDataFrame)(case, case.n // 3)
            same(evaluation, whole_of(name), case, exactly=False)
