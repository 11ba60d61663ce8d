"""The front door for dataframes: columns are named, and the engine that holds them does the work."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from .._checks import FRAME, fail, show
from .._checks.arrays import spelled_labels
from .._checks.classes import class_shape, clip_value
from .._checks.columns import spelled, steady, whole_number
from .._optional import narwhals
from .._sums.splits import Bins, Plan
from .._types import BinOn, Strategy
from ..errors import DtypeError, FormError, InputError, OptionError, ShapeError
from ..inputs.columns import Columns, Stated, about_columns, check_by_label, matching, near_names
from ..inputs.states import check_states
from ..inputs.values import library
from ..judge.evaluation import Evaluation
from ..options import LimitOptions, Limits
from .expressed import express
from .expressed.language import collect_numbers
from .partitions import evaluate_partitions

__all__ = ["evaluate_frame"]

# Engines of Ibis on this machine, whose rows are faster through the kernel.
_LOCAL_BACKENDS = ("duckdb", "polars", "datafusion")


@steady
@spelled(LimitOptions)
def evaluate_frame(
    frame: Any,
    *,
    y_true: str | Sequence[str] = "y_true",
    y_prob: str | Sequence[str] | None = None,
    logits: str | Sequence[str] | None = None,
    x_true: str | Sequence[str] | None = None,
    mean: str | Sequence[str] | None = None,
    std: str | Sequence[str] | None = None,
    var: str | Sequence[str] | None = None,
    cov: str | Sequence[str] | None = None,
    lower: str | None = None,
    upper: str | None = None,
    coverage: float | None = None,
    quantile: Mapping[float, str] | None = None,
    draws: str | Sequence[str] | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    by_label: bool = False,
    bins: int | Bins | Literal["auto"] | None = "auto",
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    by: str | Sequence[str] | None = None,
    cluster: str | None = None,
    sample_weight: str | None = None,
    features: str | Sequence[str] | None = None,
    clip: float | None = None,
    max_rows: int = 1_000_000,
    **limits: Unpack[LimitOptions],
) -> Evaluation:
    """Evaluate predictions that lie in the columns of a dataframe, of any size.

    The result is that of `evaluate`. Beyond ``max_rows`` rows their sums are added up, a batch or a partition at a
    time; Spark and remote databases that Ibis reaches then sum predictions of two classes and scalar Gaussians
    themselves, by an expression.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Table or relation
        Of pandas, Polars, PyArrow, DuckDB, PySpark, Dask or Ibis. Lazy ones stay lazy.
    y_true : str, default "y_true"
        The column of outcomes. For two classes 0 or 1, or any two labels with ``pos_label``; for more the number of the
        class, or one of ``labels``. With ``by_label`` a list of columns of 0 and 1.
    y_prob : str or sequence of str
        The column of probabilities of the positive class; or one column a class; or one column of lists.
    logits : str or sequence of str
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
    x_true, mean : str or sequence of str
        The columns of true states and of their estimates, for Gaussians: one, or one a component, or one of lists.
    std, var : str or sequence of str
        The columns of standard deviations, or of variances.
    cov : str or sequence of str
        The columns of covariances, in their order: the matrix row by row, or its lower triangle row by row. Patterns
        such as ``"cov_*"`` name columns in the order of the frame; one column can hold lists, or lists of lists.
    lower, upper : str
        The columns of the ends of intervals, as in `intervals`; with ``coverage``.
    coverage : float
        The probability with which intervals are said to hold the outcome.
    quantile : mapping of levels to str
        The columns of quantiles, as in `quantiles`: ``{0.05: "q05", 0.95: "q95"}``.
    draws : str or sequence of str
        The columns of draws, as in `ensemble`: names, patterns such as ``"draw_*"``, or one column of lists.
    pos_label : object, optional
        The label of the positive class, for one column.
    labels : sequence, optional
        The names of the classes, in the order of the columns.
    by_label : bool, default False
        Several labels a row: ``y_true`` lists a column for each, and ``y_prob`` or ``logits`` one beside it. Each label
        is a group, named after its column or by ``labels``; those of one row depend on each other.
    bins : int, Bins, None or "auto", default "auto"
        The bins of the table; None for no table. By default ten for classifiers, none for Gaussians.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows.
    by : str or sequence of str, optional
        The columns to group by. Missing values form a group of their own.
    cluster : str, optional
        The column of clusters: rows that depend on each other share one.
    sample_weight : str, optional
        The column of weights.
    features : str or sequence of str, optional
        The columns in which slices are looked for, as by `find_slices`. From more than ``max_rows`` rows, this many are
        drawn to be searched (at least 10 000, at most a million); all rows are estimated, so the frame is read twice.
        Remote databases search up to ``max_rows`` rows.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default, and at most ``0.02 / (K - 1)`` for K classes,
        because a larger one makes another, vaguer model. A note beside the result says so.
    max_rows : int, default 1_000_000
        Rows that are fetched and held in memory; beyond, their sums are added up.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `evaluate`.

    Returns
    -------
    Evaluation
        Its intervals, its test and its temperature name the method that was used.

    See Also
    --------
    evaluate : Arrays.

    Examples
    --------
    >>> import polars as pl
    >>> from safecal.engines.frames import evaluate_frame
    >>> frame = pl.DataFrame({"sick": [0, 1, 1, 0, 1], "risk": [0.2, 0.7, 0.9, 0.6, 0.8], "site": [1, 1, 2, 2, None]})
    >>> result = evaluate_frame(frame.lazy(), y_true="sick", y_prob="risk", by="site")
    >>> round(result.ecd, 4), result.groups.keys
    (-0.157, (1, 2, None))
    """
    checked = Limits(**limits)
    whole_number(max_rows, "max_rows", 0)
    if library(frame) == "narwhals":
        frame = frame.to_native()
    available = _column_names(frame)
    stated = None
    spreads = {"std": _as_tuple(std), "var": _as_tuple(var), "cov": _as_tuple(cov)}
    if spreads["cov"] is not None:
        spreads["cov"] = matching(available, spreads["cov"], "cov")
    if any(value is not None for value in (lower, upper, coverage, quantile, draws)):
        patterns = _as_tuple(draws)
        stated = Stated.of(
            mean=_as_tuple(mean), **spreads, lower=lower, upper=upper, coverage=coverage, quantile=quantile,
            draws=None if patterns is None else matching(available, patterns, "draws"),
        )  # fmt: skip
    columns = replace(
        _columns(
            {"y_prob": y_prob, "logits": logits, "mean": mean},
            {"y_true": y_true, "x_true": x_true, **spreads},
            {"pos_label": pos_label, "labels": labels, "clip": clip},
            stated,
            by_label,
        ),
        by=_as_tuple(by) or (), cluster=cluster, sample_weight=sample_weight, features=_as_tuple(features) or (),
    )  # fmt: skip
    if by_label and columns.of_classes:
        check_by_label(columns)
    elif by_label:
        raise fail(OptionError, "by_label", "is for labels with probabilities or log-odds", hint="leave it out.")
    gaussian = columns.form in ("gaussian", "ensemble")
    bins = Plan.wanted(bins, not gaussian, bin_on, strategy)
    try:
        if columns.form == "gaussian":
            check_states(columns)
        for name in columns.names:
            _refuse_absent(name, available)
        lazy, rows = _pushed_down(frame, columns, gaussian and strategy == "quantile" and not columns.features)
        if lazy is not None and rows > max_rows:
            if columns.features:  # a database elsewhere sums the rows
                rule = f"of more than {max_rows} rows cannot be searched by a remote database"
                hint = "write them to a Parquet file, and evaluate `polars.scan_parquet(file)`; or raise `max_rows`."
                raise fail(OptionError, "features", rule, hint=hint)
            return express(lazy, columns, rows).evaluate(bins, bin_on, strategy, checked)
        options: dict[str, Any] = {"bins": bins, "bin_on": bin_on, "strategy": strategy, "max_rows": max_rows}
        return evaluate_partitions(frame, columns, **options, **limits)
    except InputError as error:
        raise about_columns(error, columns, FRAME) from error.__cause__


def _columns(
    forms: dict[str, Any], names: dict[str, Any], options: dict[str, Any], stated: Stated | None, by_label: bool
) -> Columns:
    """Return which columns hold outcomes and predictions; exactly one form of prediction."""
    given_forms = [name for name, value in forms.items() if value is not None]
    if stated is not None:
        if given_forms or any(value is not None for value in options.values()):
            rule = "must be stated in one way, without probabilities, labels and clip"
            raise fail(FormError, "forecast", rule, got=stated.form)
        happened = _column_name(names["x_true"] or names["y_true"], "y_true")
        return Columns(happened, stated.values, stated.form, stated.spread, levels=stated.levels)
    if len(given_forms) != 1:
        raise fail(
            FormError, "y_prob", "or `logits` or `mean` must name the predictions, exactly one of them",
            got=" and ".join(f"`{name}`" for name in given_forms) or "none",
            hint="`y_prob=` for probabilities, `logits=` for log-odds, `mean=` with `std=` or `var=` for Gaussians.",
        )  # fmt: skip
    form = given_forms[0]
    if form == "mean":
        return _gaussian_columns(_as_tuple(forms["mean"]) or (), names, {"by_label": by_label or None} | options)
    return _class_columns(form, forms[form], names, options, by_label)


def _class_columns(
    form: str, values: str | Sequence[str], names: dict[str, Any], options: dict[str, Any], by_label: bool
) -> Columns:
    """Return the columns of a classifier."""
    if len(values) < 2 and not isinstance(values, str):
        hint = "for two classes, or for a column of lists, pass the name alone."
        rule = "must name two columns or more if it is a list"
        raise fail(ShapeError, form, rule, got=show(list(values)), hint=hint)
    for name in ("x_true", "std", "var", "cov"):
        if names[name] is not None:
            raise fail(OptionError, name, "belongs to Gaussians, with `mean=`", got=f"`{form}`")
    happened = names["y_true"]
    return Columns(
        None if by_label else _column_name(happened, "y_true"),
        _as_tuple(values) or (),
        form,
        pos_label=options["pos_label"],
        labels=None if options["labels"] is None else tuple(options["labels"]),
        clip=clip_value(options["clip"], form, 2 if by_label or isinstance(values, str) else len(values)),
        outcomes=tuple(happened) if by_label and not isinstance(happened, str) else (),
    )


def _gaussian_columns(mean: tuple[str, ...], names: dict[str, Any], options: dict[str, Any]) -> Columns:
    """Return the columns of Gaussian states; ``options`` are those of classifiers, which do not belong here."""
    for name, value in options.items():
        if value is not None:
            raise fail(OptionError, name, "belongs to classifiers", got="`mean`")
    given_spreads = [name for name in ("std", "var", "cov") if names[name] is not None]
    if len(given_spreads) != 1:
        raise fail(
            FormError, "std", "or `var` or `cov` must name the spread, exactly one of them",
            got=" and ".join(f"`{name}`" for name in given_spreads) or "none",
            hint="`std=` or `var=` for independent components, `cov=` for the columns of a covariance matrix.",
        )  # fmt: skip
    axes = tuple(names["x_true"]) if isinstance(names["x_true"], list | tuple) else ()
    x_true = None if axes else _column_name(names["x_true"], "x_true")
    spread = (given_spreads[0], *names[given_spreads[0]])
    return Columns(x_true, mean, "gaussian", spread, axes=axes)


def _as_tuple(value: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _column_name(value: Any, name: str) -> str:
    if not isinstance(value, str):
        several = name == "y_true" and isinstance(value, Sequence)
        hint = "for several labels a row, each with its own column of predictions, pass `by_label=True`."
        raise fail(FormError, name, "must name a column", got=show(value), hint=hint if several else None)
    return value


def _column_names(frame: Any) -> list[Any]:
    kind = library(frame)
    if kind == "pyarrow":
        return list(frame.schema.names)
    if kind == "polars" and hasattr(frame, "collect_schema"):
        return list(frame.collect_schema().names())
    if hasattr(frame, "columns"):
        return list(frame.columns)
    raise fail(
        DtypeError, "frame", "must be a dataframe", got=type(frame).__name__,
        hint="pandas, Polars, PyArrow, DuckDB, PySpark, Dask and Ibis frames are; for arrays use `evaluate`.",
    )  # fmt: skip


def _refuse_absent(name: str, available: list[Any]) -> None:
    """Refuse the name of a column that does not exist, or of several."""
    if available.count(name) > 1:
        hint = "give each column a name of its own: safecal does not guess which of them is meant."
        got = f"{available.count(name)} of that name"
        raise fail(OptionError, "frame", f"must have one column {name!r}", got=got, hint=hint)
    if name not in available:
        hint = near_names(str(name), available)
        raise fail(OptionError, "frame", f"must have the column {name!r}", got="none of that name", hint=hint)


def _is_remote(frame: Any) -> bool:
    """Tell whether rows lie on other machines, whose engine runs the row formulas itself."""
    kind = library(frame)
    return kind == "pyspark" or (kind == "ibis" and frame.get_backend().name not in _LOCAL_BACKENDS)


def _types_suffice(schema: Any, columns: Columns) -> bool:
    """Tell whether the types of the columns suffice; text that can spell numbers must go through the reader."""
    nw = narwhals()
    numbers = [columns.values[0], *(columns.spread or ())[1:], columns.sample_weight]
    if any(name is not None and not schema[name].is_numeric() for name in numbers):
        return False
    kind = schema[columns.y_true]
    if kind.is_numeric() or kind == nw.Boolean:
        return not isinstance(columns.pos_label, str)
    label = columns.pos_label
    return isinstance(label, str) and spelled_labels(np.array([label])) is None


def _pushed_down(frame: Any, columns: Columns, even_local: bool) -> tuple[Any, int]:
    """Return the lazy frame and its rows, where its engine can do the work; else None."""
    on_workers = columns.features and library(frame) == "pyspark"  # they search slices themselves
    scalar = len(columns.values) == 1 and not columns.axes and (columns.spread or ("",))[0] != "cov"
    if not scalar or columns.form == "ensemble" or on_workers or not (_is_remote(frame) or even_local):
        return None, 0
    nw = narwhals()
    wrapped = nw.from_native(frame, pass_through=True)
    if not isinstance(wrapped, nw.DataFrame | nw.LazyFrame):
        return None, 0
    lazy = wrapped.lazy()
    if not _types_suffice(lazy.collect_schema(), columns):
        return None, 0
    if columns.form != "gaussian":
        class_shape(np.zeros(1), columns.form, columns.pos_label, columns.labels)
    if library(frame) == "pyspark":  # what narwhals asks comes as a table, and takes twice as long
        return lazy, frame.count()
    return lazy, int(collect_numbers(lazy.select(n=nw.len()))["n"][0])
