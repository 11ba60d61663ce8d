"""``safecal recalibrate``: find the map that mends predictions and show what it does, or apply a saved one."""

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import documents
from .._checks import SHELL, show
from .._checks.class_columns import class_prediction
from .._checks.classes import clip_value
from .._optional import polars
from .._types import AnyArray, FloatArray
from ..errors import DocumentError, FileError, FormError, InputError, OptionError, visible
from ..files import write_atomically
from ..inputs import Batch, prediction_values
from ..inputs.columns import Columns, about_columns
from ..inputs.sources import has_polars
from ..inputs.values import keys
from ..judge.display import ece_of
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..maps import Map, SafeTemperature, Temperature, from_dict, recalibrate
from ..maps.applying import places_of
from ..maps.result import Recalibration
from ..maps.safe import MAPS, kind_of
from .options import limit_options
from .outputs import TABLE_KINDS, check_outputs, write_plot
from .table_file import TableFile, file_inputs, read_json

__all__ = ["fix_of", "run"]

_FORMULA = r"^[\s]*[=+\-@|%]|^[\t\r\n]"  # how a formula begins, for one spreadsheet or another


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    inputs = file_inputs(options.file) | {"--apply": options.apply}
    check_outputs(inputs=inputs, plot=options.plot, table=options.out, save=options.save)
    if options.apply and not options.out:
        raise OptionError("`--apply` writes calibrated rows: say where with `--out FILE`.")
    if options.spreadsheet_safe and not options.out:
        raise OptionError("`--spreadsheet-safe` belongs to `--out`, which writes rows.")
    if options.drop_missing and options.out:
        raise OptionError("`--out` writes every row; fill or remove those with missing values first.")
    table = TableFile.opened(options.file, options, options.prob, options.logits, outcome=not options.apply)
    calibrator = _loaded(options.apply) if options.apply else _fitted(table, options)
    if options.out:
        new_columns = _calibrated(table, calibrator)
        write_atomically(options.out, _written(table, new_columns, options.out, options.spreadsheet_safe))
        print(f"calibrated rows: {visible(options.out)}")
    if options.save:
        write_atomically(options.save, json.dumps(calibrator.to_dict(), indent=2, allow_nan=False) + "\n")
        print(f"calibrator: {visible(options.save)}")
    return 0


def _fitted(table: TableFile, options: argparse.Namespace) -> Map:
    batch = table.whole()
    groups = _grouping(batch.by)
    row_options: dict[str, Any] = {"cluster": batch.cluster, "sample_weight": batch.sample_weight}
    if options.method in ("safe", "likelihood"):
        if options.plain:
            raise OptionError(f"`--plain` belongs to `--method auto`, or to a map; got `--method {options.method}`.")
        calibrator: Map = SafeTemperature(options.alpha) if options.method == "safe" else Temperature()
        calibrator.fit_predictions(batch.predictions, by=groups, **row_options)
        limits = limit_options(options)
        before = evaluate_predictions(batch.predictions, **row_options, **limits)
        after = evaluate_predictions(
            calibrator.apply_predictions(batch.predictions, by=groups), **row_options, **limits
        )
        note = "The column `after` is about the rows that the temperature was fitted to: check it on others."
        print(f"{calibrator!r}\n\n{_text(before, after)}\n\n{note}")
    else:
        recalibration = recalibrate(
            batch.predictions, method=options.method, safe=not options.plain, alpha=options.alpha, by=groups,
            **row_options, **limit_options(options),
        )  # fmt: skip
        calibrator, before, after = recalibration.map, recalibration.before, recalibration.after
        print(f"{recalibration!r}\n\n{_text(before, after)}")
    if options.plot:
        from ..plot import RecalibrationDisplay

        write_plot(RecalibrationDisplay.from_evaluations(before, after).figure_, options.plot)
        print(f"picture: {visible(options.plot)}")
    return calibrator


def fix_of(rows: Batch, options: argparse.Namespace, by: bool) -> Recalibration:
    """Return what fixes a model that is not safe; ``by`` where each group has a map of its own."""
    return recalibrate(
        rows.predictions, by=_grouping(rows.by) if by else None, cluster=rows.cluster,
        sample_weight=rows.sample_weight, **limit_options(options),
    )  # fmt: skip


def _grouping(by: Any, *, as_text: bool = False) -> Any:
    """Return one column of groups, or several by their names; in early calibrators these were one of text."""
    if by is None:
        return None
    if len(by) == 1:
        return np.asarray(next(iter(by.values())))
    if not as_text:
        return by
    return np.array([" / ".join(map(str, row)) for row in zip(*by.values(), strict=True)])


def _text(before: Evaluation, after: Evaluation) -> str:
    rows = [("", "before", "after"), ("verdict", before.verdict.decision, after.verdict.decision)]
    columns = [
        {
            "ECD": f"{e.ecd:+.4f}",
            "  from": f"{e.interval.low:+.4f}",
            "  to": f"{e.interval.high:+.4f}",
            "temperature": f"{e.temperature.value:.3f}",
            "NLL": f"{e.nll:.4f}",
            "ECE" if before.bins is None else f"ECE ({ece_of(before.bins)})": f"{e.ece:.4f}",
            "Brier": f"{e.brier:.4f}",
            "worst place": e.verdict.where[0].brief if e.verdict.where else "none",
            "  ECD from": f"{e.verdict.where[0].ecd.low:+.4f}" if e.verdict.where else "",
        }
        for e in (before, after)
    ]
    pairs = [(name, value, columns[1][name]) for name, value in columns[0].items()]
    rows += [pair for pair in pairs if any(pair[1:])]
    widths = [max(len(row[j]) for row in rows) for j in range(3)]
    lines = [f"{a.ljust(widths[0])}  {b.rjust(widths[1])}  {c.rjust(widths[2])}" for a, b, c in rows]
    return "\n".join(line.rstrip() for line in lines)


def _loaded(path: str) -> Map:
    command = "safecal recalibrate FILE --save calibrator.json"
    document = read_json(path, command)
    with documents.of_file(path):
        if kind_of(document) in MAPS:
            return from_dict(document)
    raise DocumentError(f"{path} is not a calibrator that safecal wrote.\n\nHint: write one with `{command}`.")


def _calibrated(table: TableFile, calibrator: Map) -> dict[str, FloatArray]:
    """Return the calibrated columns by their names."""
    source, columns = table.source, _in_order(table.columns, calibrator.names_)
    rows = {name: _column(table, name) for name in (*columns.values, *columns.by)}
    form: dict[str, Any] = {columns.form: _moved(prediction_values(rows, columns).values, columns)}
    by = {name: keys(rows[name], name).values for name in columns.by} or None
    calibrated = calibrator.apply(**form, by=_grouping(by, as_text=not calibrator.by_))
    _say_certain(form.get("y_prob"), calibrated)
    names = ["calibrated"]
    if calibrated.ndim == 2:
        ends = list(columns.values) if len(columns.values) > 1 else [str(k) for k in range(calibrated.shape[1])]
        names = [f"calibrated_{end}" for end in ends]
    clashes = [name for name in names if name in source.columns]
    if clashes:
        raise FileError(f"{source.name} already has a column {clashes[0]!r}; rename it first.")
    if calibrated.ndim == 1:
        return dict.fromkeys(names, calibrated)
    written = {name: calibrated[:, k] for k, name in enumerate(names)}
    if columns.values != table.columns.values:  # as the file has them
        written = {f"calibrated_{end}": written[f"calibrated_{end}"] for end in table.columns.values}
    return written


def _in_order(columns: Columns, names: Sequence[str]) -> Columns:
    """Put columns of classes into the order of the fit, whatever order the file has them in."""
    if len(columns.values) < 2 or len(names) != len(columns.values):
        return columns
    labels = columns.values if columns.labels is None else tuple(map(str, columns.labels))
    places = places_of(names, labels)
    if places is None:
        shown = ", ".join(map(show, columns.values))
        raise FormError(
            f"the calibrator was fitted to the classes {', '.join(map(show, names))}, and the columns {shown} do not "
            f"say which of them they are.\n\nHint: name them with {' '.join(f'--label {name}' for name in names)}, in "
            "the order of `--prob`."
        )
    return replace(columns, values=tuple(columns.values[place] for place in places))


def _moved(values: AnyArray, columns: Columns) -> AnyArray:
    """Return predictions as `--clip` and `--verbalised` move them, for the fit as for what is written."""
    if columns.grid is not None:
        return columns.grid.moved(values)
    if columns.clip is None:
        return values
    try:
        checked, _ = class_prediction(**{"y_prob": None, "logits": None, columns.form: values})
        clip = clip_value(columns.clip, columns.form, 2 if checked.ndim == 1 else checked.shape[1])
    except InputError as error:
        raise about_columns(error, columns, SHELL) from error
    assert clip is not None
    clipped = np.clip(checked, clip, 1.0 - clip)
    return clipped if clipped.ndim == 1 else clipped / clipped.sum(axis=1, keepdims=True)


def _say_certain(values: AnyArray | None, calibrated: FloatArray) -> None:
    """Say how many rows said 0 or 1 and still do, where there are some."""
    if values is None:
        return
    still = ((values == 0) | (values == 1)) & ((calibrated == 0) | (calibrated == 1))
    count = int(still.sum() if still.ndim == 1 else still.any(axis=1).sum())
    if count:
        rows = f"{count} of {len(still)} rows say exactly 0 or 1, and this map does not change that"
        print(f"safecal: {rows}; `--clip` moves them, or `--verbalised`.", file=sys.stderr)


def _written(table: TableFile, new_columns: dict[str, FloatArray], path: str, spreadsheet_safe: bool) -> bytes:
    """Return all columns of the file and the new ones, in the format the name asks for."""
    if path.lower().endswith(".csv") and not has_polars():
        rows = {name: _column(table, name).tolist() for name in table.source.columns}
        return _csv_bytes(
            {**rows, **{name: map(repr, x.tolist()) for name, x in new_columns.items()}}, spreadsheet_safe
        )
    pl = polars("rows are written")
    frame = table.source.frame().with_columns([pl.Series(name, x) for name, x in new_columns.items()])
    if spreadsheet_safe:
        frame = _without_formulas(frame)
    buffer = io.BytesIO()
    write = {
        "csv": frame.write_csv,
        "parquet": frame.write_parquet,
        "jsonl": frame.write_ndjson,
        "arrow": frame.write_ipc,
    }[TABLE_KINDS[Path(path).suffix.lower()]]
    write(buffer)
    return buffer.getvalue()


def _column(table: TableFile, name: str) -> Any:
    parts = [rows[name] for rows in table.source.batches([name])]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return polars().concat(parts)


def _csv_bytes(columns: Mapping[str, Iterable[Any]], spreadsheet_safe: bool) -> bytes:
    """Return columns as CSV, without Polars; values as Python writes them, and nothing for a missing one."""

    def cell(value: Any) -> str:
        text = "" if value is None else str(value)
        return f"'{text}" if spreadsheet_safe and re.match(_FORMULA, text) and not _is_number(text) else text

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([cell(name) for name in columns])
    writer.writerows([cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return buffer.getvalue().encode()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _without_formulas(frame: Any) -> Any:
    """Return a frame in which no text, and no name of a column, begins as a formula does; numbers stay as they are."""
    import polars as pl

    words = (pl.String, pl.Categorical, pl.Enum)

    def harmless(name: str) -> Any:
        text = pl.col(name).cast(pl.String)  # of categories, too
        formula = text.str.contains(_FORMULA) & text.str.strip_chars().cast(pl.Float64, strict=False).is_null()
        return pl.when(formula).then(pl.lit("'") + text).otherwise(text).alias(name)

    frame = frame.with_columns([harmless(name) for name, kind in frame.schema.items() if kind in words])
    return frame.rename({name: f"'{name}" for name in frame.columns if re.match(_FORMULA, name)})
