"""Columns of a frame, as Arrow hands them over, become checked predictions."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._checks.columns import cluster_codes, weights
from .._checks.message import fail
from .._types import AnyArray
from ..errors import DtypeError, MissingExtraError, MissingValueError, ShapeError
from ..families.classifier import classifier
from ..families.gaussian import gaussian
from ..families.predictions import Predictions
from .batch import Batch

__all__ = ["Columns", "batch", "group_keys", "pyarrow"]


def pyarrow(extra: str = "frames") -> Any:
    """Import PyArrow, or say what to install."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError(
            f'frames are read through PyArrow, which is not installed.\n\nHint: pip install "safecal[{extra}]"'
        ) from error
    return pa


@final
@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a frame hold what.

    Attributes
    ----------
    y_true : str
        What happened; the true state for Gaussians.
    values : tuple of str
        Probabilities or logits: one column for two classes, one a class for more, or a single column of lists. For
        Gaussians the mean.
    form : {"y_prob", "logits", "gaussian"}
        What ``values`` are.
    spread : (str, str) or None
        ``("std", column)`` or ``("var", column)``, for Gaussians.
    by : tuple of str
        The columns to group by.
    cluster, sample_weight : str or None
        The columns of clusters and of weights.
    pos_label : object
        The label of the positive class, for one column.
    labels : tuple or None
        The names of the classes, in the order of the columns.
    clip : float or None
        As in `evaluate`.

    Examples
    --------
    >>> from safecal.engines.columns import Columns
    >>> Columns("outcome", ("p",), "y_prob", by=("site",)).names
    ('outcome', 'p', 'site')
    """

    y_true: str
    values: tuple[str, ...]
    form: str
    spread: tuple[str, str] | None = None
    by: tuple[str, ...] = ()
    cluster: str | None = None
    sample_weight: str | None = None
    pos_label: Any = None
    labels: tuple[Any, ...] | None = None
    clip: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is needed, each once."""
        return tuple(dict.fromkeys((*self.measured, *self.by, *(() if self.cluster is None else (self.cluster,)))))

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns of outcomes, predictions and weights, each once."""
        spread = () if self.spread is None else (self.spread[1],)
        weight = () if self.sample_weight is None else (self.sample_weight,)
        return tuple(dict.fromkeys((self.y_true, *self.values, *spread, *weight)))


def batch(columns: Columns, table: Any, whole: bool = False) -> Batch:
    """Check the rows of an Arrow table.

    A missing outcome, prediction, weight or cluster is refused; a missing group is a group of its own. Weights may all
    be zero, since other rows may follow.

    Parameters
    ----------
    columns : Columns
        What is where.
    table : pyarrow.Table or pyarrow.RecordBatch
        At least one row, with every one of ``columns.names``.
    whole : bool, default False
        Whether no other rows will follow, so that the positive label must occur in these.

    Returns
    -------
    Batch
        The rows, in their order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from safecal.engines.columns import Columns, batch
    >>> table = pa.table({"outcome": [1, 0], "p": [0.9, 0.4]})
    >>> batch(Columns("outcome", ("p",), "y_prob"), table).predictions.ecd
    -0.1909...
    """
    pa = pyarrow()
    table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    predictions = _predictions(columns, table, whole)
    weight = None
    if columns.sample_weight is not None:
        weight = _numbers(table, columns.sample_weight, "sample_weight")
        if weight.any():  # NaN is not zero
            weight = weights(weight, predictions.n, predictions.outcome)
    by = {name: group_keys(table, name) for name in columns.by} or None
    cluster = None
    if columns.cluster is not None:
        cluster = group_keys(table, columns.cluster)
        if cluster.dtype.kind in "fMmO":
            cluster_codes(cluster, predictions.n, predictions.outcome)  # refuses missing ones
    return Batch(predictions, weight, by, cluster)


def _predictions(columns: Columns, table: Any, whole: bool) -> Predictions:
    if columns.form == "gaussian":
        assert columns.spread is not None
        form, name = columns.spread
        x_true = _numbers(table, columns.y_true, "x_true")
        mean = _numbers(table, columns.values[0], "mean")
        spread: dict[str, Any] = {form: _numbers(table, name, form)}
        return gaussian(x_true, mean, **spread)
    given: dict[str, Any] = {columns.form: _values(columns, table)}
    labels = None if columns.labels is None else list(columns.labels)
    return classifier(
        _outcomes(table, columns.y_true), **given, pos_label=columns.pos_label, labels=labels, clip=columns.clip,
        whole=whole,
    )  # fmt: skip


def _values(columns: Columns, table: Any) -> AnyArray:
    """Return one column, or a matrix of several or of lists."""
    if len(columns.values) == 1:
        name = columns.values[0]
        kind = str(table.schema.field(name).type)
        lists = kind.startswith(("list", "large_list", "fixed_size_list"))
        return (_lists if lists else _numbers)(table, name, columns.form)
    found = [_numbers(table, name, columns.form) for name in columns.values]
    out = np.empty((len(found[0]), len(found)), dtype=np.result_type(*found))
    for k, column in enumerate(found):
        out[:, k] = column
    return out


def _plain(column: Any) -> Any:
    """Return a column without its dictionary, where it has one."""
    kind = column.type
    return column.cast(kind.value_type) if str(kind).startswith("dictionary") else column


def _numbers(table: Any, name: str, argument: str) -> AnyArray:
    """Return a column of numbers; missing ones are NaN, which every check refuses."""
    pa = pyarrow()
    column = _plain(table.column(name))
    kind = str(column.type)
    if kind.startswith("decimal") or kind == "null":
        column = column.cast(pa.float64())
    elif not kind.startswith(("int", "uint", "float", "double", "halffloat")):
        hint = "is it the right column?"
        if kind.startswith(("list", "large_list", "fixed_size_list")):
            hint = "a column of lists holds every class: give it alone."
        elif "string" in kind:
            hint += " Dask makes text of lists unless its option `dataframe.convert-string` is False."
        raise fail(DtypeError, argument, f"must be numbers in column {name!r}", got=f"type {kind}", hint=hint)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _lists(table: Any, name: str, argument: str) -> AnyArray:
    """Return a column of lists as a matrix; every list must be as long as the first."""
    import pyarrow.compute as pc

    pa = pyarrow()
    column = table.column(name)
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    if missing.any():
        raise fail(
            MissingValueError, argument, "must not hold missing values", got="None", place=f"row {missing.argmax()}",
            count=(int(missing.sum()), len(missing)),
            hint="drop or fill those rows first: safecal drops nothing by itself.",
        )  # fmt: skip
    lengths = np.asarray(pc.list_value_length(column).to_numpy(zero_copy_only=False))
    other = lengths != lengths[:1]
    if other.any():
        at = int(other.argmax())
        raise fail(
            ShapeError, argument, f"must hold lists of one length, {lengths[0]}", got=f"{lengths[at]}",
            place=f"row {at}", count=(int(other.sum()), len(other)),
        )  # fmt: skip
    flat = pa.table({name: pc.list_flatten(column)})
    return _numbers(flat, name, argument).reshape(len(column), -1)


def _outcomes(table: Any, name: str) -> AnyArray:
    """Return outcomes as NumPy has them: numbers, True and False, or objects with None where one is missing."""
    column = _plain(table.column(name))
    if str(column.type).startswith("decimal"):
        column = column.cast(pyarrow().float64()) if column.type.scale else column
        if not column.null_count and str(column.type).startswith("decimal"):  # whole numbers, of any length
            return np.array([int(v) for v in column.to_pylist()], dtype=object)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def group_keys(table: Any, name: str) -> AnyArray:
    """Return keys of groups or clusters; a missing one is None, NaN or NaT, and whole numbers stay whole."""
    column = _plain(table.column(name))
    if column.null_count and str(column.type).startswith(("int", "uint")):
        return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column.to_numpy(zero_copy_only=False))
