"""Workers that die at work: the answer is right, or the error is clear."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.engines import workers
from safecal.engines.partitions import evaluate_partitions
from safecal.errors import EngineError
from safecal.inputs.columns import Columns

pa = pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.extra,
    # PySpark warns of pandas 3; PySpark and Dask leave sockets and files of dead workers to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*PySpark does not yet fully support:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
]

N, K, PARTITIONS = 4000, 5, 8
RNG = np.random.default_rng(3)
Z = RNG.normal(0, 2, (N, K))
KIND = (Z + RNG.gumbel(size=(N, K))).argmax(axis=1)
COLUMNS = Columns("kind", tuple(f"z{k}" for k in range(K)), "logits", by=("kind",))
TABLE = pa.table({"kind": KIND, **{f"z{k}": Z[:, k] for k in range(K)}})
WHOLE = safecal.evaluate(KIND, logits=Z, by={"kind": KIND})


def _deadly(folder: Path, lives: int) -> Any:
    """Return a `work` whose process dies in the middle of partition 3, as often as it is told."""
    notes, real = str(folder), workers.do_task

    def do_task(task: Any, stream: Iterable[Any], index: int) -> Any:
        def interrupted() -> Iterator[Any]:
            for table in stream:
                yield table.slice(0, table.num_rows // 2)
                if index == 3 and len(os.listdir(notes)) < lives:
                    with open(os.path.join(notes, str(time.time_ns())), "w"):
                        pass
                    os.kill(os.getpid(), signal.SIGKILL)
                yield table.slice(table.num_rows // 2)

        return real(task, interrupted(), index)

    return do_task


def _right(evaluation: safecal.Evaluation) -> None:
    assert evaluation.bins is not None
    assert WHOLE.bins is not None
    assert evaluation.groups is not None
    assert WHOLE.groups is not None
    assert evaluation.summary.n == N
    assert [s.n for s in evaluation.bins.summaries] == [s.n for s in WHOLE.bins.summaries]
    assert [(key, s.n) for key, s in evaluation.groups.items()] == [(key, s.n) for key, s in WHOLE.groups.items()]
    terms = np.abs(safecal.categorical(KIND, logits=Z).score().excess).sum()
    assert abs(evaluation.summary.sum_excess - WHOLE.summary.sum_excess) <= 1e-12 * terms
    assert evaluation.temperature.value == pytest.approx(WHOLE.temperature.value, rel=1e-9)


def _short(error: EngineError) -> None:
    """The message is a few lines, and holds no stack."""
    text = str(error)
    assert len(text.splitlines()) <= 4
    assert "Hint: " in text
    assert "Traceback" not in text
    assert "\tat " not in text
    assert len(text) < 600


@contextmanager
def _session(master: str) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    shared = sql.SparkSession.getActiveSession()
    if shared is not None:  # has another master; who asks for it next starts it again
        shared.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)
        session = (
            sql.SparkSession.builder.master(master)
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
        try:
            yield session
        finally:
            session.stop()


def test_spark_runs_a_lost_partition_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _session("local[2,4]") as session:  # a task may fail three times
        frame = session.createDataFrame(TABLE).repartition(PARTITIONS)
        calm = evaluate_partitions(frame, COLUMNS, max_rows=100)
        monkeypatch.setattr(workers, "do_task", _deadly(tmp_path, 2))
        evaluation = evaluate_partitions(frame, COLUMNS, max_rows=100)
    assert len(list(tmp_path.iterdir())) == 2
    _right(evaluation)
    assert evaluation == calm


def test_spark_says_that_a_worker_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _session("local[2]") as session:  # a task may not fail
        frame = session.createDataFrame(TABLE).repartition(PARTITIONS)
        with monkeypatch.context() as patch:
            patch.setattr(workers, "do_task", _deadly(tmp_path, 1))
            with pytest.raises(EngineError, match="Spark did not finish: Python worker exited unexpectedly") as caught:
                evaluate_partitions(frame, COLUMNS, max_rows=100)
        _short(caught.value)
        assert len(list(tmp_path.iterdir())) == 1
        _right(evaluate_partitions(frame, COLUMNS, max_rows=100))  # and the session lives on


def test_spark_says_what_its_workers_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    def do_task(task: Any, stream: Iterable[Any], index: int) -> Any:
        raise ModuleNotFoundError("No module named 'safecal'")

    monkeypatch.setattr(workers, "do_task", do_task)
    with _session("local[2]") as session:
        with pytest.raises(EngineError, match="install safecal and PyArrow on every worker") as caught:
            evaluate_partitions(session.createDataFrame(TABLE), COLUMNS, max_rows=100)
        _short(caught.value)
        with pytest.raises(EngineError, match="are the columns spelled as in the frame"):
            evaluate_partitions(session.createDataFrame(TABLE), Columns("Art", COLUMNS.values, "logits"), max_rows=100)


@contextmanager
def _cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def _frame() -> Any:
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(TABLE.to_pandas(), npartitions=PARTITIONS)


def test_dask_runs_a_lost_partition_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _cluster():
        calm = evaluate_partitions(_frame(), COLUMNS, max_rows=100)
        monkeypatch.setattr(workers, "_reply", _deadly_reply(tmp_path, 1))
        evaluation = evaluate_partitions(_frame(), COLUMNS, max_rows=100)
    assert len(list(tmp_path.iterdir())) == 1
    _right(evaluation)
    assert evaluation == calm


def _deadly_reply(folder: Path, lives: int) -> Any:
    do_task = _deadly(folder, lives)

    def reply(part: Any, task: Any, index: int) -> bytes:
        return workers.pack(do_task(task, [pa.Table.from_pandas(part, preserve_index=False)], index))

    return reply


def test_dask_says_that_workers_were_lost_too_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dask = pytest.importorskip("dask")
    monkeypatch.setattr(workers, "_reply", _deadly_reply(tmp_path, 100))
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), _cluster():
        with pytest.raises(EngineError, match="Dask did not finish: KilledWorker") as caught:
            evaluate_partitions(_frame(), COLUMNS, max_rows=100)
        _short(caught.value)


def test_dask_says_that_it_was_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = str(tmp_path / "started")

    def reply(part: Any, task: Any, index: int) -> bytes:
        Path(started).touch()
        time.sleep(60)
        return b""

    monkeypatch.setattr(workers, "_reply", reply)
    with _cluster() as cluster:

        def close() -> None:
            while not os.path.exists(started):
                time.sleep(0.05)
            cluster.close()

        closing = threading.Thread(target=close)
        closing.start()
        with pytest.raises(EngineError, match="Dask did not finish: ") as caught:
            evaluate_partitions(_frame(), COLUMNS, max_rows=100)
        closing.join()
        _short(caught.value)
