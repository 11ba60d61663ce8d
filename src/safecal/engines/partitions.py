"""Frames of any library and size: batches of one machine, or partitions of a cluster, through the same kernel."""

from collections.abc import Generator
from contextlib import ExitStack, closing
from typing import Any, Literal, Unpack

from .._checks.message import fail
from .._optional import pyarrow
from .._sums.bins import Bins
from .._sums.splits import Plan
from .._sums.tally import Tally
from .._types import BinOn, Strategy
from ..errors import EmptyError, InputError, OptionError
from ..families.bernoulli import bernoulli
from ..families.categorical import categorical
from ..families.gaussian import gaussian
from ..families.predictions import Predictions
from ..inputs.arrow import cut, once, rows_of, tables
from ..inputs.columns import Columns
from ..inputs.reader import Batch, Reader
from ..inputs.values import library
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate_predictions
from ..options import LimitOptions, Limits
from . import batches
from .batches import Grid, evaluate_batches, refuse_unbounded
from .dask import Dask
from .spark import Spark
from .workers import Cluster, Task

__all__ = ["evaluate_partitions", "fetch"]


def evaluate_partitions(
    frame: Any,
    columns: Columns,
    *,
    bins: int | Bins | Literal["auto"] | None = "auto",
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    max_rows: int = 1_000_000,
    **limits: Unpack[LimitOptions],
) -> Evaluation:
    """Evaluate the rows of a frame, a batch or a partition at a time.

    Frames of one machine are read as a stream. Partitions of Spark and Dask are summed where they lie, and only their
    sums come back. The result is that of `evaluate`, however many rows there are.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Table, RecordBatchReader, Dataset or relation
        Of pandas, Polars, PyArrow, DuckDB, Ibis, PySpark or Dask.
    columns : Columns
        What is where.
    bins : int, Bins, "auto" or None, default "auto"
        The bins of the table: by default ten for classifiers and none for Gaussians.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows.
    max_rows : int, default 1_000_000
        Rows that are fetched and held in memory; beyond, their sums are added up.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `evaluate`.

    Returns
    -------
    Evaluation
        Its intervals, its test and its temperature name the method that was used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from safecal.inputs.columns import Columns
    >>> from safecal.engines.partitions import evaluate_partitions
    >>> table = pa.table({"kind": [0, 2, 1], "p": [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]]})
    >>> round(evaluate_partitions(table, Columns("kind", ("p",), "y_prob")).ecd, 4)
    -0.3445
    """
    checked = Limits(**limits)
    bins = Plan.wanted(bins, columns.form != "gaussian", bin_on, strategy)
    options: dict[str, Any] = {"bins": bins, "bin_on": bin_on, "strategy": strategy}
    options |= limits
    cluster = _cluster(frame)
    if cluster is None:
        with ExitStack() as streams:
            return evaluate_batches(
                lambda: streams.enter_context(closing(_stream(frame, columns))),
                **options, max_rows=max_rows, once=once(frame),
            )  # fmt: skip
    rows, width = cluster.size(columns)
    if rows == 0:
        raise _nothing()
    if rows <= max_rows and rows * width <= batches.MAX_VALUES:
        whole = fetch(frame, columns)
        return evaluate_predictions(
            whole.predictions, **options, by=whole.by, cluster=whole.cluster, sample_weight=whole.sample_weight
        )
    if columns.outcomes:
        hint = f"raise `max_rows=` to {rows} or more, or evaluate one label after another."
        raise fail(OptionError, "by_label", "is for rows that one machine holds: partitions do not number theirs",
                   got=f"{rows} rows", hint=hint)  # fmt: skip
    plan = _plan(cluster, columns, _example(columns, width), bins, bin_on, strategy)
    tally = cluster.answer(Task(columns, plan)).found
    assert isinstance(tally, Tally)
    return Evaluation.of(tally, checked)


def fetch(frame: Any, columns: Columns) -> Batch:
    """Bring all rows of the columns that are needed into memory, and check them.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Table, RecordBatchReader, Dataset or relation
        Of pandas, Polars, PyArrow, DuckDB, Ibis, PySpark or Dask.
    columns : Columns
        What is where.

    Returns
    -------
    Batch
        The rows, in the order of the frame and its partitions.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from safecal.inputs.columns import Columns
    >>> from safecal.engines.partitions import fetch
    >>> fetch(pa.table({"y": [1, 0], "p": [0.9, 0.4]}), Columns("y", ("p",), "y_prob")).predictions.n
    2
    """
    cluster = _cluster(frame)
    if cluster is not None:
        whole = cluster.table(columns.names)
    else:
        parts = list(cut(tables(frame, columns.names), columns.values))
        whole = pyarrow().concat_tables(parts, promote_options="permissive") if parts else None
    if whole is None or whole.num_rows == 0:
        raise _nothing()
    found = Reader(columns).batch(next(rows_of([whole], columns.names)), whole=True)
    assert found is not None
    return found


def _cluster(frame: Any) -> Cluster | None:
    name = library(frame)
    if name == "pyspark":
        return Spark(frame)
    if name in ("dask", "dask_expr"):
        return Dask(frame)
    return None


def _stream(frame: Any, columns: Columns) -> Generator[Batch, None, None]:
    """Yield checked batches of a frame of one machine."""
    reader = Reader(columns)
    yield from reader.batches(rows_of(cut(tables(frame, columns.names), columns.values), columns.names))
    if not reader.rows:
        raise _nothing()
    reader.finish()


def _nothing() -> InputError:
    return fail(EmptyError, "frame", "must have at least one row", got="none")


def _example(columns: Columns, classes: int) -> Predictions:
    """Return one row of the family and the number of classes, for what does not depend on values."""
    if columns.form == "gaussian":
        return gaussian([0.0], [0.0], std=1.0)
    return bernoulli([0], [0.5]) if classes == 1 else categorical([0], [[1.0 / classes] * classes])


def _plan(
    cluster: Cluster,
    columns: Columns,
    example: Predictions,
    bins: int | Bins | Literal["auto"] | None,
    bin_on: BinOn | None,
    strategy: Strategy,
) -> Plan:
    """Decide on the bins; those of quantiles take a pass of their own."""
    if bins is None or isinstance(bins, Bins) or strategy != "quantile":
        return Plan.of(example, bins, bin_on, strategy)
    refuse_unbounded(example)
    Plan.of(example, bins, bin_on)  # refuses what no partition need be asked about
    grid = cluster.answer(Task(columns, quantiles=True, bin_on=bin_on)).found
    assert isinstance(grid, Grid)
    return Plan(*grid.bins(int(bins)))
