"""``safecal recalibrate``: find the map that mends predictions and show what it does, or apply a saved one."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from .. import documents
from .._optional import polars
from .._types import AnyArray, FloatArray
from ..errors import DocumentError, FileError, OptionError
from ..files import parsed_json, write_atomically
from ..inputs.logs import SampleLogs
from ..inputs.reader import Batch, prediction_values
from ..inputs.sources import polars_is_there
from ..inputs.values import keys
from ..judge.display import ece_of
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate_predictions
from ..judge.verdict import SAFE
from ..maps import Map, SafeTemperature, Temperature, from_dict, recalibrate
from ..maps.result import Recalibration
from ..maps.safe import MAPS, kind_of
from ..visible import visible
from .options import LIMITS, RULES, limit_options
from .outputs import check_outputs, csv_bytes, frame_bytes, write_plot
from .table import TableFile, file_inputs

__all__ = ["fix_of", "run"]

_GROUPS = 20  # up to which each has a map of its own in a report


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    inputs = file_inputs(options.file) | {"--apply": options.apply}
    check_outputs(inputs=inputs, plot=options.plot, table=options.out, save=options.save)
    if options.apply and not options.out:
        raise OptionError("`--apply` writes calibrated rows: say where with `--out FILE`.")
    if options.spreadsheet_safe and not options.out:
        raise OptionError("`--spreadsheet-safe` belongs to `--out`, which writes rows.")
    if options.drop_missing and options.out:
        raise OptionError("`--out` writes every row; fill or remove those with missing values before.")
    table = TableFile.opened(options.file, options, options.prob, options.logits, outcome=not options.apply)
    calibrator = _loaded(options.apply) if options.apply else _fitted(table, options)
    if options.out:
        new = _calibrated(table, calibrator)
        write_atomically(options.out, _written(table, new, options.out, options.spreadsheet_safe))
        print(f"calibrated rows: {visible(options.out)}")
    if options.save:
        write_atomically(options.save, json.dumps(calibrator.to_dict(), indent=2, allow_nan=False) + "\n")
        print(f"calibrator: {visible(options.save)}")
    return 0


def _fitted(table: TableFile, options: argparse.Namespace) -> Map:
    batch = table.whole()
    groups = _grouping(batch.by)
    rest: dict[str, Any] = {"cluster": batch.cluster, "sample_weight": batch.sample_weight}
    if options.method in ("safe", "likelihood"):
        if options.plain:
            raise OptionError("`--plain` belongs to `--method auto`, or to that of a map.")
        calibrator: Map = SafeTemperature(options.alpha) if options.method == "safe" else Temperature()
        calibrator.fit_predictions(batch.predictions, by=groups, **rest)
        limits = limit_options(options)
        before = evaluate_predictions(batch.predictions, **rest, **limits)
        after = evaluate_predictions(calibrator.apply_predictions(batch.predictions, by=groups), **rest, **limits)
        note = "After is on the rows that the temperature was fitted to: check it on others."
        print(f"{calibrator!r}\n\n{_text(before, after)}\n\n{note}")
    else:
        found = recalibrate(
            batch.predictions, method=options.method, safe=not options.plain, alpha=options.alpha, by=groups,
            **rest, **limit_options(options),
        )  # fmt: skip
        calibrator, before, after = found.map, found.before, found.after
        print(f"{found!r}\n\n{calibrator!r}\n\n{_text(before, after)}")
    if options.plot:
        from ..plot import RecalibrationDisplay

        write_plot(RecalibrationDisplay.from_evaluations(before, after).figure_, options.plot)
        print(f"picture: {visible(options.plot)}")
    return calibrator


def fix_of(
    found: Evaluation, rows: Batch | None, table: TableFile, options: argparse.Namespace
) -> tuple[Recalibration | None, str | None]:
    """Return what fixes a model that is not safe, where its rows were kept, and the command that finds it."""
    line = fix_command(found, table, options)
    if rows is None or line is None:
        return None, line
    by = _has_maps(found)
    fix = recalibrate(
        rows.predictions, by=_grouping(rows.by) if by else None, cluster=rows.cluster,
        sample_weight=rows.sample_weight, **limit_options(options),
    )  # fmt: skip
    return fix, line


def _has_maps(found: Evaluation) -> bool:
    """Tell whether each group has a map of its own."""
    return found.groups is not None and len(found.groups) <= _GROUPS


def fix_command(found: Evaluation, table: TableFile, options: argparse.Namespace) -> str | None:
    """Return the command that recalibrates the same rows, every column by its name; None where nothing is to fix."""
    columns, by = table.columns, _has_maps(found)
    one = columns.of_classes and not columns.outcomes  # several labels a row are recalibrated one by one
    if found.verdict.decision == SAFE or not one:
        return None
    assert columns.y_true is not None
    form = "--logits" if columns.form == "logits" else "--prob"
    words = ["safecal", "recalibrate", *options.file]
    if isinstance(table.source, SampleLogs):  # which say themselves what is where
        words += [] if options.normalise == "none" else ["--normalise", options.normalise]
        words += [] if options.tokenizer is None else ["--tokenizer", options.tokenizer]
    else:
        words += ["--y", columns.y_true, *(word for name in columns.values for word in (form, name))]
        words += [word for label in columns.labels or () for word in ("--label", label)]
    words += [word for name in (columns.by if by else ()) for word in ("--by", name)]
    for name in ("cluster", "sample_weight", "pos_label", "clip", "format", "sep"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    words += ["--drop-missing"] if columns.drop_missing else []
    words += ["--verbalised"] if columns.grid is not None else []
    for name, limit in LIMITS.items():
        value = getattr(options, name.removeprefix("--").replace("-", "_"))
        words += [] if value == limit.default else [name, f"{value:g}"]
    words += [] if options.rule == RULES[0] else ["--rule", options.rule]
    return shlex.join([*words, "--save", "calibrator.json"])


def _grouping(by: Any) -> AnyArray | None:
    """Return one column of groups; several become text."""
    if by is None:
        return None
    if len(by) == 1:
        return np.asarray(next(iter(by.values())))
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
    rows += [(name, value, columns[1][name]) for name, value in columns[0].items()]
    widths = [max(len(row[j]) for row in rows) for j in range(3)]
    lines = [f"{a.ljust(widths[0])}  {b.rjust(widths[1])}  {c.rjust(widths[2])}" for a, b, c in rows]
    return "\n".join(lines)


def _loaded(path: str) -> Map:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    try:
        document = parsed_json(content)
    except DocumentError as error:
        raise FileError(f"{path} is not JSON: it {error.rule}.") from error
    with documents.of_file(path):
        if kind_of(document) in MAPS:
            return from_dict(document)
    raise DocumentError(
        f"{path} is not a calibrator that safecal wrote.\n\n"
        "Hint: write one with `safecal recalibrate FILE --save calibrator.json`."
    )


def _calibrated(table: TableFile, calibrator: Map) -> dict[str, FloatArray]:
    """Return the calibrated columns by their names."""
    source, columns = table.source, table.columns
    rows = {name: _column(table, name) for name in (*columns.values, *columns.by)}
    form: dict[str, Any] = {columns.form: prediction_values(rows, columns).values}
    by = {name: keys(rows[name], name).values for name in columns.by} or None
    found = calibrator.apply(**form, by=_grouping(by))
    names = ["calibrated"]
    if found.ndim == 2:
        ends = list(columns.values) if len(columns.values) > 1 else [str(k) for k in range(found.shape[1])]
        names = [f"calibrated_{end}" for end in ends]
    taken = [name for name in names if name in source.columns]
    if taken:
        raise FileError(f"{source.name} already has a column {taken[0]!r}; rename it first.")
    return {name: found if found.ndim == 1 else found[:, k] for k, name in enumerate(names)}


def _written(table: TableFile, new: dict[str, FloatArray], path: str, spreadsheet_safe: bool) -> bytes:
    """Return all columns of the file and the new ones, in the format the name asks for."""
    if path.lower().endswith(".csv") and not polars_is_there():
        rows = {name: _column(table, name).tolist() for name in table.source.columns}
        return csv_bytes({**rows, **{name: map(repr, x.tolist()) for name, x in new.items()}}, spreadsheet_safe)
    pl = polars("rows are written")
    frame = table.source.frame().with_columns([pl.Series(name, x) for name, x in new.items()])
    return frame_bytes(frame, path, spreadsheet_safe=spreadsheet_safe)


def _column(table: TableFile, name: str) -> Any:
    parts = [rows[name] for rows in table.source.batches([name])]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return polars().concat(parts)
