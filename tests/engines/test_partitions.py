"""The same rows through every kind of frame: the result is that of arrays, in memory and beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import Bins, Evaluation, Predictions, Scored, Summary, Table, _sums
from safecal._sums import Tally
from safecal._sums.scored import summed
from safecal._sums.splits import Plan, binned_values
from safecal._sums.summary import summaries
from safecal.engines import batches, workers
from safecal.engines import partitions as front
from safecal.engines.partitions import evaluate_partitions, fetch
from safecal.engines.workers import Reply, Task, do_task, merge, pack, unpack
from safecal.errors import (
    DtypeError,
    EmptyError,
    EngineError,
    InputError,
    LabelError,
    MergeError,
    MissingValueError,
    NormalisationError,
    OptionError,
    RangeError,
    ShapeError,
    WeightError,
)
from safecal.inputs.columns import Columns

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

# PySpark warns of pandas 3, and PySpark and Dask leave sockets to the garbage collector.
third_parties = [
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore:.*PySpark does not yet fully support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
]

N, K = 3000, 4
RNG = np.random.default_rng(7)
Z = RNG.normal(0, 2, (N, K))
KIND = (Z + RNG.gumbel(size=(N, K))).argmax(axis=1)
PROB = np.exp(Z - Z.max(axis=1, keepdims=True))
PROB /= PROB.sum(axis=1, keepdims=True)
LOGIT = RNG.normal(0, 2, N)
HAPPENED = RNG.random(N) < 1 / (1 + np.exp(-LOGIT))
WEIGHT = RNG.random(N) * (RNG.random(N) < 0.9)
WEIGHT[:700] = 0.0  # whole batches and partitions of them
SITE = np.array([None, "north", "east", "south"], dtype=object)[RNG.integers(0, 4, N)]
YEAR = [None if k == 3 else 2020 + k for k in RNG.integers(0, 4, N).tolist()]
DAY = RNG.integers(0, 40, N)
X, STD = RNG.normal(0, 1.2, N), RNG.random(N) + 0.5
NAMES = ("ant", "bee", "cow", "dog")
STATE = np.random.default_rng(8).normal(0, 1.2, (N, 2))
_FACTOR = np.tril(np.random.default_rng(9).normal(0.0, 0.3, (N, 2, 2))) + np.eye(2)
COV = _FACTOR @ np.swapaxes(_FACTOR, 1, 2)

TABLE = pa.table(
    {
        "kind": KIND,
        "animal": np.array(NAMES)[KIND],
        **{f"z {k}": Z[:, k] for k in range(K)},
        "prob": pa.array(list(PROB)),
        "short": pa.array(list(PROB.astype(np.float32))),
        "sick": np.where(HAPPENED, "yes", "no"),
        "logit": LOGIT,
        "weight": WEIGHT,
        "site": pa.array(SITE.tolist()),
        "year": pa.array(YEAR, pa.int64()),
        "day": DAY,
        "x": X,
        "mean": np.zeros(N),
        "std": STD,
        "var": STD**2,
        **{f"x{k}": STATE[:, k] for k in range(2)},
        **{f"m{k}": np.zeros(N) for k in range(2)},
        **{f"s{k}": np.sqrt(COV[:, k, k]) for k in range(2)},
        **{f"c{i}{j}": COV[:, i, j] for i in range(2) for j in range(i + 1)},
        "state": pa.array(STATE.tolist()),
        "zeros": pa.array(np.zeros((N, 2)).tolist()),
        "matrix": pa.array(COV.reshape(N, 4).tolist()),
        "nested": pa.array(COV.tolist()),
        "nobody needs this": pa.array([{"a": 1}] * N),
    }
)


@dataclass(frozen=True)
class Case:
    """Columns of the table above, and the same as arrays."""

    columns: Columns
    predictions: Predictions
    weight: Any = None
    by: dict[str, Any] | None = None
    cluster: Any = None


LOGITS = tuple(f"z {k}" for k in range(K))
CASES = {
    "several columns": Case(Columns("kind", LOGITS, "logits"), safecal.categorical(KIND, logits=Z)),
    "groups": Case(
        Columns("kind", LOGITS, "logits", by=("site", "year")),
        safecal.categorical(KIND, logits=Z),
        by={"site": SITE, "year": np.array(YEAR, dtype=object)},
    ),
    "a column of lists": Case(
        Columns("animal", ("prob",), "y_prob", labels=NAMES, by=("year",), clip=1e-3),
        safecal.categorical(KIND, PROB, clip=1e-3),
        by={"year": np.array(YEAR, dtype=object)},
    ),
    "short floats": Case(Columns("kind", ("short",), "y_prob"), safecal.categorical(KIND, PROB.astype(np.float32))),
    "two classes, weights": Case(
        Columns("sick", ("logit",), "logits", sample_weight="weight", by=("site",), pos_label="yes"),
        safecal.bernoulli(HAPPENED, logits=LOGIT),
        weight=WEIGHT,
        by={"site": SITE},
    ),
    "clusters": Case(
        Columns("kind", LOGITS, "logits", cluster="day", sample_weight="weight"),
        safecal.categorical(KIND, logits=Z),
        weight=WEIGHT,
        cluster=DAY,
    ),
    "states": Case(
        Columns("x", ("mean",), "gaussian", ("std", "std"), by=("site",)),
        safecal.gaussian(X, np.zeros(N), std=STD),
        by={"site": SITE},
    ),
    "variances": Case(
        Columns("x", ("mean",), "gaussian", ("var", "var")), safecal.gaussian(X, np.zeros(N), var=STD**2)
    ),
    "states of two axes": Case(
        Columns(None, ("m0", "m1"), "gaussian", ("std", "s0", "s1"), by=("site",), axes=("x0", "x1")),
        safecal.gaussian(STATE, np.zeros((N, 2)), std=np.sqrt(COV[:, (0, 1), (0, 1)])),
        by={"site": SITE},
    ),
    "covariances": Case(
        Columns(None, ("m0", "m1"), "gaussian", ("cov", "c00", "c10", "c11"), cluster="day", axes=("x0", "x1")),
        safecal.gaussian(STATE, np.zeros((N, 2)), cov=COV),
        cluster=DAY,
    ),
    "lists of covariances": Case(
        Columns("state", ("zeros",), "gaussian", ("cov", "matrix")),
        safecal.gaussian(STATE, np.zeros((N, 2)), cov=COV),
    ),
    "matrices": Case(
        Columns("state", ("zeros",), "gaussian", ("cov", "nested")),
        safecal.gaussian(STATE, np.zeros((N, 2)), cov=COV),
    ),
}


@cache
def whole_of(name: str) -> Evaluation:
    case = CASES[name]
    return case.predictions.evaluate(by=case.by, cluster=case.cluster, sample_weight=case.weight)


CUTS = [0, 0, 1, 2, 700, 1400, 1400, 1401, N, N]  # empty partitions, partitions of one row, partitions of zeros


def _pieces(table: Any) -> list[Any]:
    ends = [min(c, table.num_rows) for c in CUTS[:-1]] + [table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(ends)]


def _reader(table: Any, folder: Path) -> Any:
    pieces = [
        b for piece in _pieces(table) for b in piece.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    ]
    return pa.RecordBatchReader.from_batches(table.schema, pieces)


def _dataset(table: Any, folder: Path) -> Any:
    from pyarrow import dataset, parquet

    parquet.write_table(table, folder / "rows.parquet", row_group_size=100)
    return dataset.dataset(folder / "rows.parquet")


def _scan(table: Any, folder: Path) -> Any:
    return pl.scan_parquet(_dataset(table, folder).files[0])


def _duckdb(table: Any, folder: Path) -> Any:
    return pytest.importorskip("duckdb").connect().from_arrow(table)


def _ibis(table: Any, folder: Path) -> Any:
    pytest.importorskip("duckdb")
    return pytest.importorskip("ibis").memtable(table)


def _ibis_on_polars(table: Any, folder: Path) -> Any:
    return pytest.importorskip("ibis").polars.connect().create_table("rows", table)


def _dask(table: Any, folder: Path) -> Any:
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.dataframe")
    import dask.dataframe as dd

    parts = [piece.to_pandas() for piece in _pieces(table)]
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[3].iloc[:0])


LOCAL: dict[str, Callable[[Any, Path], Any]] = {
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas on arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, folder: pl.from_arrow(table),
    "lazy polars": lambda table, folder: pl.from_arrow(table).lazy(),
    "polars scan": _scan,
    "arrow table": lambda table, folder: pa.concat_tables(_pieces(table)),
    "arrow batch": lambda table, folder: table.combine_chunks().to_batches()[0],
    "arrow reader": _reader,
    "arrow dataset": _dataset,
    "duckdb": _duckdb,
    "ibis": _ibis,
    "ibis on polars": _ibis_on_polars,
}
KINDS = [pytest.param(kind, marks=pytest.mark.extra if kind.startswith("ibis") else ()) for kind in LOCAL]


def _tier(kind: str, case: str) -> Any:
    """Every kind meets one case, and every case one kind, in the fast tier."""
    if kind.startswith("ibis"):
        return pytest.mark.extra
    one = case == "groups" or (kind == "arrow table" and case != "two classes, weights")  # which takes seconds
    return () if one else pytest.mark.proof


PAIRS = [pytest.param(kind, case, marks=_tier(kind, case)) for kind in LOCAL for case in CASES]


def _spark(session: Any, table: Any) -> Any:
    """Make a frame of one row a partition, of an empty one, and of larger ones."""
    table = table.drop_columns([n for n in ("nobody needs this",) if n in table.column_names])
    pieces = [session.createDataFrame(p) if p.num_rows else session.createDataFrame([], _ddl(session, table))
              for p in _pieces(table)]  # fmt: skip
    whole = pieces[0].repartition(2)
    for piece in pieces[1:]:
        whole = whole.union(piece.coalesce(1))
    return whole


def _ddl(session: Any, table: Any) -> Any:
    return session.createDataFrame(table.slice(0, 1)).schema


def _magnitude(s: Scored) -> Scored:
    return replace(
        s,
        excess=np.abs(s.excess),
        third_cumulant=np.abs(s.third_cumulant),
        entropy=None if s.entropy is None else np.abs(s.entropy),
    )


def _close(actual: Summary, whole: Summary, terms: Summary) -> None:
    assert (actual.n, actual.n_impossible) == (whole.n, whole.n_impossible)
    for field in fields(Summary):
        a, b, size = (getattr(s, field.name) for s in (actual, whole, terms))
        assert (a is None) == (b is None), field.name
        if a is not None:
            assert abs(a - b) <= 1e-12 * size, field.name


def _same_sums(actual: Evaluation, whole: Evaluation, case: Case) -> None:
    scored, weight = case.predictions.score(), case.weight
    terms = _magnitude(scored)
    _close(actual.summary, whole.summary, summaries(summed(terms, weight))[0])
    if whole.bins is None:
        assert actual.bins is None
    else:
        assert actual.bins is not None
        assert whole.bins.bins is not None
        _same_table(
            actual.bins, whole.bins, terms, weight, whole.bins.bins.index(binned_values(scored, whole.bins.name))
        )
    if whole.groups is None:
        assert actual.groups is None
    else:
        assert actual.groups is not None
        assert case.by is not None
        columns = [column.tolist() for column in case.by.values()]
        keys = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
        place = {key: k for k, key in enumerate(whole.groups.keys)}
        _same_table(actual.groups, whole.groups, terms, weight, np.array([place[key] for key in keys]))
    assert actual.n_certain == whole.n_certain
    assert sum(actual.histogram.counts) == pytest.approx(sum(whole.histogram.counts), rel=1e-12)
    assert [c > 0 for c in actual.histogram.counts] == [c > 0 for c in whole.histogram.counts]
    kinds = [(e.family, e.dimension, e.tally.most_entropy, e.tally.least_excess) for e in (actual, whole)]
    assert kinds[0] == kinds[1]


def _same_table(actual: Table, whole: Table, terms: Scored, weight: Any, index: Any) -> None:
    assert (actual.name, actual.keys, actual.bins, actual.top_label) == (
        whole.name,
        whole.keys,
        whole.bins,
        whole.top_label,
    )
    sizes = summaries(summed(terms, weight, index, len(whole)))
    for a, b, size in zip(actual.summaries, whole.summaries, sizes, strict=True):
        _close(a, b, size)


def _same_judgement(actual: Evaluation, whole: Evaluation) -> None:
    assert (actual.verdict.decision, actual.verdict.reason) == (whole.verdict.decision, whole.verdict.reason)
    assert actual.test.method == whole.test.method
    assert actual.test.p_value == pytest.approx(whole.test.p_value, rel=1e-6)
    for a, b in ((actual.interval, whole.interval), (actual.temperature, whole.temperature)):
        assert a.method == b.method
        for name in ("value", "low", "high"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-9, abs=1e-12)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "VALUES", 1000)


@pytest.mark.parametrize(("kind", "case"), PAIRS)
def test_what_fits_is_evaluated_whole(kind: str, case: str, tmp_path: Path, small: None) -> None:
    evaluation = evaluate_partitions(LOCAL[kind](TABLE, tmp_path), CASES[case].columns)
    assert evaluation == whole_of(case)


@pytest.mark.parametrize(("kind", "case"), PAIRS)
def test_batches_beyond_give_the_same_sums(kind: str, case: str, tmp_path: Path, small: None) -> None:
    evaluation = evaluate_partitions(LOCAL[kind](TABLE, tmp_path), CASES[case].columns, max_rows=1500)
    whole = whole_of(case)
    _same_sums(evaluation, whole, CASES[case])
    _same_judgement(evaluation, whole)


@pytest.mark.extra
@pytest.mark.parametrize(
    "case", ["several columns", "groups", "a column of lists", "clusters", "states", "covariances", "matrices"]
)
class TestClusters:
    pytestmark = third_parties

    def test_spark(self, case: str, spark: Any) -> None:
        self._check(_spark(spark, TABLE), case)

    def test_dask(self, case: str, tmp_path: Path) -> None:
        self._check(_dask(TABLE, tmp_path), case)

    def _check(self, frame: Any, name: str) -> None:
        case, whole = CASES[name], whole_of(name)
        assert evaluate_partitions(frame, case.columns) == whole
        evaluation = evaluate_partitions(frame, case.columns, max_rows=1500)
        assert evaluation == evaluate_partitions(frame, case.columns, max_rows=1500)
        _same_sums(evaluation, whole, case)
        _same_judgement(evaluation, whole)


def _with(name: str, values: Any, rows: Any = slice(None)) -> Any:
    """Return the table with some values of a column replaced."""
    old = TABLE.column(name).to_pylist()
    new = list(old)
    for row in np.arange(N)[rows].tolist():
        new[row] = values
    array = pa.array(new)
    return TABLE.set_column(TABLE.schema.get_field_index(name), name, array)


LISTS = Columns("kind", ("prob",), "y_prob")
BINARY = Columns("sick", ("logit",), "logits", pos_label="yes")
HALF = slice(5, None, 1000)  # rows 5, 1005, 2005
BAD: dict[str, tuple[Any, Columns, type[InputError], str]] = {
    "null value": (_with("z 1", None, HALF), CASES["groups"].columns, MissingValueError, "`z 1` must not hold"),
    "NaN": (_with("z 1", float("nan"), HALF), CASES["groups"].columns, MissingValueError, "`z 1` must not hold"),
    "infinite": (_with("z 1", float("inf"), HALF), CASES["groups"].columns, RangeError, "`logits` must be finite"),
    "null list": (
        _with("prob", None, HALF), LISTS, MissingValueError, "`prob` must not hold missing"
    ),
    "null in a list": (
        _with("prob", [0.5, 0.5, None, 0.0], HALF), LISTS, MissingValueError, "`prob` must"
    ),
    "another length": (
        _with("prob", [0.5, 0.5], HALF), LISTS, ShapeError, "lists of one length, 4; got 2"
    ),
    "out of range": (
        _with("prob", [1.5, -0.5, 0.0, 0.0], HALF), LISTS, RangeError, "`y_prob` must lie in"
    ),
    "not normalised": (
        _with("prob", [0.5, 0.1, 0.1, 0.1], HALF), LISTS, NormalisationError, "must sum to 1"
    ),
    "null outcome": (_with("kind", None, HALF), CASES["groups"].columns, MissingValueError, "`kind` must not hold"),
    "no such class": (_with("kind", 4, HALF), CASES["groups"].columns, LabelError, "`y_true` must be a class number"),
    "no such label": (
        _with("animal", "cat", HALF), Columns("animal", LOGITS, "logits", labels=NAMES), LabelError, "one of `labels`"
    ),
    "null weight": (
        _with("weight", None, HALF), CASES["clusters"].columns, MissingValueError, "`weight` must not hold"
    ),
    "negative weight": (
        _with("weight", -1.0, HALF), CASES["clusters"].columns, WeightError, "`sample_weight` must not be negative"
    ),
    "null cluster": (_with("day", None, HALF), CASES["clusters"].columns, MissingValueError, "`day` must not hold"),
    "null mean": (_with("mean", None, HALF), CASES["states"].columns, MissingValueError, "`mean` must not hold"),
    "spread of zero": (_with("std", 0.0, HALF), CASES["states"].columns, RangeError, "`std` must be greater than 0"),
}  # fmt: skip


@pytest.mark.parametrize("max_rows", [500, 10_000])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    "kind", ["arrow table", *(pytest.param(k, marks=pytest.mark.proof) for k in ("pandas", "lazy polars", "duckdb"))]
)
def test_bad_rows_are_refused_alike_and_counted(
    kind: str, bad: str, max_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "VALUES", 1600)
    table, columns, error, said = BAD[bad]
    with pytest.raises(error, match=f"(?s){said}") as caught:
        evaluate_partitions(LOCAL[kind](table, tmp_path), columns, max_rows=max_rows)
    assert type(caught.value) is error
    assert "at row 5" in str(caught.value)
    assert "(3 of 3000 rows)" in str(caught.value)


@pytest.mark.extra
class TestRefusedOnClusters:
    pytestmark = third_parties

    @pytest.mark.parametrize("bad", ["null list", "no such label", "negative weight"])
    def test_spark(self, bad: str, spark: Any) -> None:
        self._check(_spark(spark, BAD[bad][0]), bad)

    @pytest.mark.parametrize("bad", ["null value", "another length", "null weight"])
    def test_dask(self, bad: str, tmp_path: Path) -> None:
        self._check(_dask(BAD[bad][0], tmp_path), bad)

    def _check(self, frame: Any, bad: str) -> None:
        _, columns, error, said = BAD[bad]
        for max_rows in (500, 10_000):
            with pytest.raises(error, match=f"(?s){said}") as caught:
                evaluate_partitions(frame, columns, max_rows=max_rows)
            assert type(caught.value) is error
            assert "(3 of 3000 rows)" in str(caught.value)
            assert ("of partition" in str(caught.value)) == (max_rows == 500)


def test_a_third_label_is_refused_wherever_it_stands(small: None) -> None:
    table = _with("sick", "maybe", slice(2990, None))
    for max_rows in (500, 10_000):
        with pytest.raises(LabelError, match="`pos_label` \\('yes'\\) and at most one other label; got 2 others"):
            evaluate_partitions(table, BINARY, max_rows=max_rows)


@pytest.mark.extra
def test_a_positive_label_in_no_partition_is_refused(tmp_path: Path) -> None:
    columns = replace(BINARY, pos_label="yse")
    table = _with("sick", "no", slice(None))
    for frame in (table, _dask(table, tmp_path)):
        for max_rows in (500, 10_000):
            with pytest.raises(LabelError, match=r"got 'yse', which never occurs\.\n\nHint: .* occur: 'no'"):
                evaluate_partitions(frame, columns, max_rows=max_rows)


def test_lists_of_another_length_are_refused_wherever_they_stand(small: None) -> None:
    short = TABLE.slice(0, 1000).select(["kind", "prob"])
    wide = pa.table({"kind": [0] * 1000, "prob": [[0.2] * 5] * 1000})
    for max_rows in (500, 10_000):
        with pytest.raises(ShapeError, match="`y_prob` must hold lists of one length, 4; got 5 at row 1000"):
            evaluate_partitions(pa.concat_tables([short, wide]), LISTS, max_rows=max_rows)


def test_any_arrow_stream_will_do() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return TABLE.__arrow_c_stream__(requested_schema)

    assert evaluate_partitions(Stream(), CASES["several columns"].columns) == whole_of("several columns")


def test_rows_without_the_positive_label_are_rows_like_others(small: None) -> None:
    order = np.argsort(HAPPENED, kind="stable")  # every "no" before every "yes"
    evaluation = evaluate_partitions(TABLE.take(order), BINARY, max_rows=500)
    whole = safecal.evaluate(HAPPENED[order], logits=LOGIT[order])
    _same_sums(evaluation, whole, Case(BINARY, safecal.bernoulli(HAPPENED[order], logits=LOGIT[order])))


def test_an_impossible_outcome_and_certain_predictions(small: None) -> None:
    p = np.array([1.0, 0.0, *np.linspace(0.1, 0.9, 1998)])
    y = np.array([1, 1] + [0, 1] * 999)
    evaluation = evaluate_partitions(pa.table({"y": y, "p": p}), Columns("y", ("p",), "y_prob"), max_rows=500)
    whole = safecal.evaluate(y, p)
    assert evaluation.ecd == whole.ecd == np.inf
    assert evaluation.n_certain == whole.n_certain == 2
    assert evaluation.summary.n_impossible == 1


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy polars", "arrow table", "arrow reader", "arrow dataset"])
def test_nothing_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(EmptyError, match="`frame` must have at least one row; got none"):
        evaluate_partitions(LOCAL[kind](TABLE.slice(0, 0), tmp_path), BINARY)
    with pytest.raises(EmptyError, match="`frame` must have at least one row; got none"):
        fetch(LOCAL[kind](TABLE.slice(0, 0), tmp_path), BINARY)


def test_weights_that_are_all_zero_are_refused(small: None) -> None:
    table = _with("weight", 0.0)
    for max_rows in (500, 10_000):
        with pytest.raises(WeightError, match="must not be all zero; got 3000 zeros"):
            evaluate_partitions(table, CASES["two classes, weights"].columns, max_rows=max_rows)


def test_columns_that_hold_something_else() -> None:
    for columns, said in (
        (Columns("kind", ("site",), "logits"), "`site` must be a number; got 'east' at row 0"),
        (Columns("kind", ("prob", "z 1"), "logits"), "a column of lists holds every class: give it alone"),
        (Columns("x", ("site",), "gaussian", ("std", "std")), "`site` must be a number; got 'east' at row 0"),
    ):
        with pytest.raises(DtypeError, match=said):
            evaluate_partitions(TABLE, columns)
    with pytest.raises(DtypeError, match="`frame` must have columns of one type each"):
        evaluate_partitions(pd.DataFrame({"y": [0, "one"], "p": [0.1, 0.2]}), Columns("y", ("p",), "y_prob"))
    with pytest.raises(DtypeError, match="`frame` must be a frame that offers its columns through Arrow; got list"):
        evaluate_partitions([1, 2], BINARY)
    with pytest.raises(OptionError, match="`labels` names the columns"):
        evaluate_partitions(TABLE, Columns("sick", ("logit",), "logits", labels=("no", "yes")))


def test_types_of_columns_that_numpy_does_not_have() -> None:
    from decimal import Decimal

    p = (1 + np.arange(N) % 1023) / 1024
    table = pa.table(
        {
            "y": pa.array(np.where(HAPPENED, "yes", "no")).dictionary_encode(),
            "p": pa.array([Decimal(str(value)) for value in p.tolist()]),
            "day": pa.array(DAY.tolist(), pa.int32()).cast(pa.date32()),
            "site": pa.array(SITE.tolist()).dictionary_encode(),
        }
    )
    evaluation = evaluate_partitions(table, Columns("y", ("p",), "y_prob", by=("site", "day"), pos_label="yes"))
    by = {"site": SITE, "day": DAY.astype("datetime64[D]")}
    assert evaluation == safecal.evaluate(HAPPENED, p, by=by)


def test_bins_are_those_that_were_asked_for(small: None) -> None:
    columns, predictions = CASES["several columns"].columns, CASES["several columns"].predictions
    for options in ({"bins": 4}, {"bins": None}, {"bins": Bins.from_edges([0, 0.5, 1])}, {"bin_on": "entropy"}):
        evaluation = evaluate_partitions(TABLE, columns, max_rows=1000, **options)
        whole = predictions.evaluate(**options)
        assert (evaluation.bins is None) == (whole.bins is None)
        if evaluation.bins is not None and whole.bins is not None:
            assert evaluation.bins.keys == whole.bins.keys
            assert [s.n for s in evaluation.bins.summaries] == [s.n for s in whole.bins.summaries]


def _quantiles(frame: Any) -> None:
    evaluation = evaluate_partitions(
        frame, CASES["several columns"].columns, bins=6, strategy="quantile", max_rows=1000
    )
    assert evaluation.bins is not None
    assert [s.n for s in evaluation.bins.summaries] == pytest.approx([N // 6] * 6, abs=3)
    with pytest.raises(OptionError, match='cannot be "quantile" for so many gaussian rows'):
        evaluate_partitions(frame, CASES["states"].columns, strategy="quantile", max_rows=1000)


def test_quantile_bins(small: None, tmp_path: Path) -> None:
    _quantiles(TABLE)
    with pytest.raises(OptionError, match="can be read only once"):
        evaluate_partitions(_reader(TABLE, tmp_path), BINARY, strategy="quantile", max_rows=1000)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.proof if case == "two classes, weights" else ()) for case in CASES]
)
def test_parts_add_up_in_any_tree(case: str) -> None:
    columns, whole = CASES[case].columns, whole_of(case)
    plan = Plan() if whole.bins is None else Plan(whole.bins.bins, whole.bins.name)

    def replies() -> list[Reply]:
        task = Task(columns, plan)
        return [unpack(pack(do_task(task, [p], k))) for k, p in enumerate(_pieces(TABLE))]

    for width in (2, 3, 20):
        left = replies()[::-1]  # in whatever order they arrive
        while len(left) > 1:
            left.sort(key=lambda reply: reply.index)
            left = [unpack(pack(merge(left[k : k + width]))) for k in range(0, len(left), width)]
        assert left[0].rows == N
        part = left[0].sums
        assert isinstance(part, Tally)
        evaluation = Evaluation.of(part)
        terms = summed(_magnitude(CASES[case].predictions.score()), CASES[case].weight)
        _close(evaluation.summary, whole.summary, summaries(terms)[0])
        if whole.groups is not None:
            assert evaluation.groups is not None
            assert {k: s.n for k, s in evaluation.groups.items()} == {k: s.n for k, s in whole.groups.items()}
        _same_judgement(evaluation, whole)


def test_failures_add_up_too() -> None:
    table, columns, error, _ = BAD["not normalised"]
    replies = [do_task(Task(columns), [piece], k) for k, piece in enumerate(_pieces(table))]
    reply = merge(replies[::-1])
    assert type(reply.failure) is error
    assert "at row 3 of partition 3 (3 of 3000 rows)" in str(reply.failure)
    assert merge([]).sums is None


def test_replies_of_another_release_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pack(Reply(0))
    monkeypatch.setattr(workers, "version", lambda: "99.0")
    with pytest.raises(EngineError, match="Hint: install the same release on all of them"):
        unpack(data)


def test_states_are_joined_when_each_row_has_its_spread() -> None:
    one = safecal.gaussian(X, np.zeros(N), std=STD)
    parts = [one.take(np.arange(0, 10)), one.take(np.arange(10, N))]
    assert type(parts[0]).concatenate(parts).ecd == one.ecd
    shared = safecal.gaussian(X, np.zeros(N), std=1.0)
    for other in (shared, safecal.gaussian(X, np.zeros(N), var=STD), safecal.bernoulli(HAPPENED, logits=LOGIT)):
        with pytest.raises(MergeError, match="of one form"):
            type(one).concatenate([one, other])


def test_a_database_is_free_again_after_an_error(small: None) -> None:
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("create table rows as select i % 3 as y, 0.5 as p from range(3000) numbers(i)")
    kept = []
    for columns, options in (
        (Columns("y", ("p",), "y_prob"), {}),
        (Columns("y", ("p",), "y_prob", pos_label=1), {"max_rows": 500}),
        (Columns("y", ("p",), "y_prob", labels=(0, 1)), {}),
        (Columns("y", ("p",), "logits", clip=0.1), {}),
        (Columns("y", ("p",), "y_prob", by=("y",)), {"bin_on": "height", "max_rows": 500}),
    ):
        with pytest.raises(InputError) as caught:
            evaluate_partitions(connection.table("rows"), columns, **options)
        kept.append(caught)  # with every frame of its traceback
        assert connection.execute("select count(*) from rows").fetchall() == [(3000,)]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_fetched_in_order(kind: str, tmp_path: Path) -> None:
    batch = fetch(LOCAL[kind](TABLE, tmp_path), CASES["groups"].columns)
    assert batch.predictions.n == N
    assert batch.predictions.ecd == CASES["groups"].predictions.ecd
    assert batch.by is not None
    assert list(batch.by["site"]) == SITE.tolist()


@pytest.mark.extra
class TestOnlyOnClusters:
    pytestmark = third_parties

    def test_quantile_bins(self, spark: Any, tmp_path: Path) -> None:
        _quantiles(_spark(spark, TABLE))
        _quantiles(_dask(TABLE, tmp_path))

    def test_nothing_is_refused(self, spark: Any, tmp_path: Path) -> None:
        for frame in (_spark(spark, TABLE.slice(0, 0)), _dask(TABLE, tmp_path).query("day < 0")):
            with pytest.raises(EmptyError, match="`frame` must have at least one row; got none"):
                evaluate_partitions(frame, BINARY)

    def test_third_labels_and_other_lengths_in_another_partition(self, spark: Any, tmp_path: Path) -> None:
        third = _with("sick", "maybe", slice(1400, 1401))
        short = _with("prob", [0.4, 0.3, 0.3], slice(1400, 1401))
        for frame in (_spark(spark, third), _dask(third, tmp_path)):
            with pytest.raises(LabelError, match="and at most one other label; got 2 others"):
                evaluate_partitions(frame, BINARY, max_rows=500)
        short = short.filter(pa.compute.less(short["kind"], 3))
        for frame in (_spark(spark, short), _dask(short, tmp_path)):
            with pytest.raises(ShapeError, match="must hold lists of one length"):
                evaluate_partitions(frame, LISTS, max_rows=500)

    def test_keys_and_values_are_capped(self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for frame in (_spark(spark, TABLE), _dask(TABLE, tmp_path)):
            with monkeypatch.context() as patch:
                patch.setattr(batches, "MAX_VALUES", 10_000)
                patch.setattr(front, "fetch", lambda *_: pytest.fail("the rows were fetched"))
                assert evaluate_partitions(frame, CASES["several columns"].columns).n == 3000
        with monkeypatch.context() as patch:
            patch.setattr(_sums, "MAX_KEYS", 20)
            with pytest.raises(ShapeError, match="`cluster` must have at most 20 different values; got"):
                evaluate_partitions(_dask(TABLE, tmp_path), CASES["clusters"].columns, max_rows=500)

    def test_a_name_with_marks_in_it(self, spark: Any) -> None:
        table = pa.table({"y": HAPPENED, "log`odds of.it": LOGIT})
        columns = Columns("y", ("log`odds of.it",), "logits")
        evaluation = evaluate_partitions(spark.createDataFrame(table), columns, max_rows=500)
        assert evaluation.ecd == pytest.approx(safecal.ecd(HAPPENED, logits=LOGIT), rel=1e-12)
