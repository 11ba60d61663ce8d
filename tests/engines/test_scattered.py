"""Slices of rows on workers are those of the same rows in memory, in whatever order partitions hand them out."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from safecal import Evaluation, Slices
from safecal.engines import frames, partitions
from safecal.engines.frames import evaluate_frame
from safecal.engines.workers import PartitionedFrame, Reply, Task, do_task, merge, pack, unpack
from safecal.errors import EngineError, LabelError, OptionError
from safecal.inputs.columns import Columns
from safecal.slices import discovery
from safecal.slices.features import Kinds
from safecal.slices.two_passes import RowKeys

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

# PySpark warns of pandas 3, and PySpark and Dask leave sockets to the garbage collector.
third_parties = [
    pytest.mark.extra,
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore:.*PySpark does not yet fully support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
]

N = 2000
RNG = np.random.default_rng(3)
Z, AGE = RNG.normal(0, 2, N), RNG.integers(20, 90, N)
FRAME = pl.DataFrame({
    "y": (RNG.random(N) < 1 / (1 + np.exp(-Z / np.where(AGE >= 60, 5, 1)))).astype(int),
    "p": 1 / (1 + np.exp(-Z)),
    "age": AGE,
    "seen": np.datetime64("2024-01-01T00:00:00", "us") + RNG.integers(0, 365, N) * np.timedelta64(1, "D"),
    "site": RNG.choice(np.array(["north", "south", None]), N).tolist(),
    "lab": [None if x < 0.1 else round(x, 3) for x in RNG.random(N).tolist()],
    "smoker": RNG.random(N) < 0.3,
    "few": RNG.choice(np.array(["1", "2", "some"]), N, p=[0.5, 0.49, 0.01]).tolist(),
    "patient": RNG.integers(0, 200, N),
    "w": RNG.integers(1, 4, N),
})  # fmt: skip
FEATURES = ("age", "seen", "site", "lab", "smoker", "few")
GIVEN: dict[str, Any] = {"y_true": "y", "y_prob": "p", "features": FEATURES}
CLUSTERED: dict[str, Any] = {**GIVEN, "cluster": "patient", "sample_weight": "w"}


@cache
def _whole() -> Evaluation:
    return evaluate_frame(FRAME, **CLUSTERED)


class Parts(PartitionedFrame):
    """Partitions of a table, which each pass sees as ``seen`` makes them."""

    def __init__(self, table: Any, seen: Callable[[Any, int], Any] = lambda part, turn: part) -> None:
        cuts = [0, 0, 1, 700, 1200, table.num_rows]
        self._parts = [table.slice(a, b - a) for a, b in pairwise(cuts)]
        self._seen, self._turn = seen, 0

    def size(self, columns: Columns) -> tuple[int, int]:
        return sum(part.num_rows for part in self._parts), len(columns.values)

    def table(self, names: Sequence[str]) -> Any:
        return pa.concat_tables(self._parts).select(list(names))

    def run(self, task: Task) -> Reply:
        self._turn += 1
        task = pickle.loads(pickle.dumps(task))
        parts = [self._seen(part, self._turn) for part in self._parts]
        return merge(unpack(pack(do_task(task, part.to_batches(300), k))) for k, part in enumerate(parts))


def _evaluated(monkeypatch: pytest.MonkeyPatch, cluster: Parts, given: dict[str, Any], max_rows: int = 500) -> Any:
    monkeypatch.setattr(partitions, "_partitioned", lambda frame: cluster)
    return evaluate_frame(FRAME, **given, max_rows=max_rows)


def _same(a: Slices | None, b: Slices | None) -> None:
    assert a is not None
    assert b is not None
    assert (a.n, a.searched, a.features, a.left_out) == (b.n, b.searched, b.features, b.left_out)
    assert len(a.candidates) == len(b.candidates) > 0
    assert [s.conditions for s in a] == [s.conditions for s in b]
    for one, other in zip(a.candidates, b.candidates, strict=True):
        assert (one.conditions, one.n, one.estimated_on) == (other.conditions, other.n, other.estimated_on)
        for name in ("ecd", "beyond", "temperature"):
            for end in ("value", "low", "high"):
                assert getattr(getattr(one, name), end) == pytest.approx(getattr(getattr(other, name), end), rel=1e-6)


def _shuffled(part: Any, turn: int) -> Any:
    return part.take(np.random.default_rng(turn).permutation(part.num_rows))


@pytest.mark.proof
def test_slices_of_partitions_are_those_of_all_rows_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _whole()
    parts = _evaluated(monkeypatch, Parts(FRAME.to_arrow(), _shuffled), CLUSTERED)
    _same(parts.slices, whole.slices)
    assert parts.verdict.decision == whole.verdict.decision == "UNSAFE"
    assert [place.name for place in parts.verdict.where] == [place.name for place in whole.verdict.where]


def test_slices_do_not_depend_on_the_order_of_rows_in_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _evaluated(monkeypatch, Parts(FRAME.to_arrow()), GIVEN).slices
    assert rows[0].conditions[0].feature == "age"
    assert (rows.n, rows.searched) == (N, N)
    _same(rows, _evaluated(monkeypatch, Parts(FRAME.to_arrow(), _shuffled), GIVEN).slices)


def test_partitions_that_hold_other_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(part: Any, turn: int) -> Any:
        noise = np.random.default_rng(turn).random(part.num_rows)
        return part.set_column(part.schema.get_field_index("lab"), "lab", pa.array(noise))

    with pytest.raises(EngineError, match=r"held other rows when they were read again.*\n\nHint: something in the fr"):
        _evaluated(monkeypatch, Parts(FRAME.to_arrow(), other), GIVEN)


def test_as_many_rows_are_drawn_from_partitions_as_from_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "DRAWN", 1200)
    slices = _evaluated(monkeypatch, Parts(FRAME.to_arrow()), GIVEN).slices
    assert (slices.n, slices.searched) == (N, 1200)
    assert slices[0].conditions[0].feature == "age"
    assert slices[0].n > slices[0].estimated_on


def test_a_remote_database_does_not_search_more_rows_than_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_is_remote", lambda frame: True)
    assert evaluate_frame(FRAME.lazy(), y_true="y", y_prob="p", max_rows=500).n == N
    with pytest.raises(OptionError, match="of more than 500 rows cannot be searched by a remote database"):
        evaluate_frame(FRAME.lazy(), **GIVEN, max_rows=500)


def test_equal_rows_have_keys_of_their_own_in_any_order() -> None:
    values = pa.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]] * 400)
    table = pa.table({
        "y": pa.array([1, 0, None] * 400), "v": values, "w": pa.array([1.0, 1.0, None] * 400),
        "c": pa.array(["a", "b", None] * 400).dictionary_encode(), "ragged": pa.array([[1], [1, 2], []] * 400),
        "none": pa.nulls(1200), "is": pa.array([{"a": 1}] * 1200),
    })  # fmt: skip

    def keys(table: Any, size: int, partition: int = 0) -> tuple[Any, int]:
        of = RowKeys(partition)
        parts = [table.slice(start, size) for start in range(0, table.num_rows, size)]
        row_keys = [of.of({name: part.column(name) for name in part.column_names}) for part in parts]
        return np.sort(np.concatenate(row_keys)), of.total

    whole, total = keys(table, 1200)
    assert len(np.unique(whole)) == 1200
    again, same = keys(_shuffled(table, 1), 130)
    assert np.array_equal(again, whole)
    assert same == total
    elsewhere, other = keys(table, 1200, partition=1)
    assert not np.isin(elsewhere, whole).any()
    assert other != total
    assert abs((whole >= np.uint64(1 << 63)).sum() - 600) < 4 * 17.4  # coins of equal rows are independent


def test_text_that_spells_numbers_by_chance_is_read_as_the_words_it_is_among() -> None:
    kinds = Kinds("few", np.asarray) + Kinds("few", lambda x: x.astype(float) if "some" not in x else x)
    kinds.add(np.array(["1", "some"]))
    again = Kinds("few", lambda x: x.astype(float) if "some" not in x else x) + kinds
    assert again.column(np.array(["1", "2"])).categories == ("1", "2")


Z3 = np.random.default_rng(5).normal(0, 2, (3000, 4))
SHIFTED = (Z3[:, :3] + np.random.default_rng(6).gumbel(size=(3000, 3))).argmax(axis=1) + 1
LABELS: dict[str, Any] = {"y_true": "y", "logits": list("abcd"), "max_rows": 500}
FROM_ONE = r"`y` must be a class number from 0 to 3; got 1, 2, 3 and never 0.*\n\nHint: if classes are numbered from 1"


def _labelled(labels: Any) -> Any:
    return pl.DataFrame({"y": labels, **{name: Z3[:, k] for k, name in enumerate("abcd")}})


def test_classes_that_are_numbered_from_one_are_refused_on_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = _labelled(SHIFTED)
    with pytest.raises(LabelError, match=FROM_ONE) as here:
        evaluate_frame(frame, **LABELS)
    for seen in (_shuffled, lambda part, turn: part.sort_by("y")):
        cluster = Parts(frame.to_arrow(), seen)
        monkeypatch.setattr(partitions, "_partitioned", lambda frame, cluster=cluster: cluster)
        with pytest.raises(LabelError) as there:
            evaluate_frame(frame, **LABELS)
        assert str(there.value) == str(here.value)


class TestOnClusters:
    pytestmark = third_parties

    def test_dask(self) -> None:
        pytest.importorskip("dask.dataframe")
        import dask.dataframe as dd

        frame = dd.from_pandas(FRAME.to_pandas(), npartitions=3)
        _same(evaluate_frame(frame, **CLUSTERED, max_rows=500).slices, _whole().slices)
        fetched = evaluate_frame(frame, **GIVEN).slices
        assert fetched is not None
        assert fetched[0].conditions[0].feature == "age"
        with pytest.raises(LabelError, match=FROM_ONE):
            evaluate_frame(dd.from_pandas(_labelled(SHIFTED).to_pandas(), npartitions=3), **LABELS)
        bad = _labelled(np.where(np.arange(3000) == 5, 4, SHIFTED))
        with pytest.raises(LabelError, match=r"from 0 to 3; got 4 at row 5 of partition 0 .1 of 3000 rows"):
            evaluate_frame(dd.from_pandas(bad.to_pandas(), npartitions=3), **LABELS)

    def test_spark(self, spark: Any) -> None:
        frame = spark.createDataFrame(FRAME.to_arrow()).repartition(3)
        _same(evaluate_frame(frame, **CLUSTERED, max_rows=500).slices, _whole().slices)
        with pytest.raises(LabelError, match=FROM_ONE):
            evaluate_frame(spark.createDataFrame(_labelled(SHIFTED).to_arrow()), **LABELS)
