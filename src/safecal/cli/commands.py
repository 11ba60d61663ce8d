"""The commands about rows: those of files, ``safecal evaluate``, ``compare``, ``plan``; of a model that is run, ``lm``;
and those of ``demo``.

What only some of them need is imported when they run.
"""

import argparse
import json
import shlex
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np

from .. import documents
from .._checks.message import in_options
from ..engines.batches import evaluate_batches
from ..errors import DocumentError, FileError
from ..families.predictions import family_named
from ..files import parsed_json, write_atomically
from ..inputs.columns import Columns
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate
from ..judge.verdict import SAFE, UNSAFE
from ..visible import visible
from .options import limit_options
from .outputs import check_outputs, command_line, write_plot
from .table import Kept, TableFile, file_inputs
from .terminal import Progress, say_verdict, searching

__all__ = ["GATE", "run_compare", "run_demo", "run_evaluate", "run_lm", "run_plan"]

GATE = {SAFE: 0, UNSAFE: 3}
UNDETERMINED = 4
WORSE_THAN_BASELINE = 5
_SHOWN = 20  # groups
_FIXED = 200_000  # rows up to which a report tries what fixes them: some seconds


def run_evaluate(options: argparse.Namespace) -> int:
    """Say the verdict first, then the numbers, then the tables."""
    inputs = file_inputs(options.file) | {"--baseline": options.baseline}
    check_outputs(inputs=inputs, report=options.report, plot=options.plot, summary=options.summary)
    before = None if options.baseline is None else _earlier(options.baseline)
    table = TableFile.opened(options.file, options, options.prob, options.logits)
    kept = Kept(table.batches, min(_FIXED, options.max_rows)) if options.report else None
    found = evaluate_batches(
        kept or table.batches,
        bins=options.bins if has_bins(table.columns, options) else None,
        bin_on=options.bin_on,
        strategy=options.strategy,
        max_rows=options.max_rows,
        once=table.source.once,
        progress=None if not table.columns.features else searching(),
        **limit_options(options),
    )
    baseline = None
    if before is not None:
        from ..judge.baseline import WORSE, Baseline

        baseline = Baseline.of(found, before)
    if options.gate:
        options.decided = GATE.get(found.verdict.decision, UNDETERMINED)
        if baseline is not None and baseline.decision == WORSE and found.verdict.decision != UNSAFE:
            options.decided = WORSE_THAN_BASELINE
    if options.report:
        from ..report import write_report
        from .recalibrate import fix_of

        assert kept is not None
        fix, line = fix_of(found, kept.whole(), table, options)
        write_report(
            found, options.report, title=options.title, source=table.source.name, command=command_line(), fix=fix,
            fix_command=line,
        )  # fmt: skip
    if options.plot:
        write_plot(found.plot(), options.plot)
    left_out = _left_out(table)
    if options.summary:
        from .summary import summary_markdown

        text = summary_markdown(
            found, source=table.source.name, title=options.title, baseline=baseline, notes=left_out
        )  # fmt: skip
        write_atomically(options.summary, text)
    for line in left_out:
        print(f"safecal: {line}", file=sys.stderr)
    if options.json:
        more = {} if baseline is None else {"baseline": baseline.to_dict()}
        print(json.dumps(found.to_dict() | more, indent=2, allow_nan=False))
    else:
        say_verdict(_text(found, options, table))
        if baseline is not None:
            print(f"\n{baseline!r}")
    return int(options.decided)


def _left_out(table: TableFile) -> list[str]:
    """Say how many rows were left out, where some were."""
    reader = table.reader
    if reader.first_dropped is None:
        return []
    rows = "row" if reader.rows == 1 else "rows"
    where = table.source.place(reader.first_dropped) or f"row {reader.first_dropped}"
    return [f"left out {reader.dropped} of {reader.rows} {rows} with missing values, the first at {where}."]


def has_bins(columns: Columns, options: argparse.Namespace) -> bool:
    """Tell whether rows have bins: those of a number only by quantiles of their entropy, where that is asked for."""
    return columns.of_classes or (columns.form == "gaussian" and options.strategy == "quantile")


def _earlier(path: str) -> Evaluation:
    """Read the document of an earlier evaluation."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"`--baseline` could not be read: {error}.") from error
    try:
        document = parsed_json(content)
    except DocumentError as error:
        hint = "write it with `safecal evaluate FILE --json > evaluation.json`."
        raise DocumentError(f"`--baseline` must be a JSON document; {path} is not.\n\nHint: {hint}") from error
    with documents.of_file(path):
        return Evaluation.from_dict(document)


def _text(found: Evaluation, options: argparse.Namespace, table: TableFile) -> str:
    shown, more = found, 0
    if found.groups is not None and len(found.groups) > _SHOWN:
        more = len(found.groups) - _SHOWN
        shown = replace(found, tally=replace(found.tally, groups=found.groups.worst_first(_SHOWN)))
    lines = [in_options(repr(shown), recalibrates=family_named(found.family).discrete)]
    if more:
        lines.append(f"and {more} more groups: all of them are in `--json`.")
    lines.append(_methods(found, options))
    for name, path in (("report", options.report), ("picture", options.plot), ("summary", options.summary)):
        if path:
            lines.append(f"{name}: {visible(path)}")
    # Where something impossible happened, no map is fitted; and what came through a pipe is gone.
    if found.verdict.decision == UNSAFE and not found.summary.n_impossible and not table.source.once:
        from .recalibrate import fix_command

        line = fix_command(found, table, options)
        lines += [] if line is None else [f"what fixes it: {visible(line)}"]
    return "\n".join(lines)


def _methods(found: Evaluation, options: argparse.Namespace) -> str:
    text = f"Methods. Interval of ECD: {found.interval.method}. Temperature: {found.temperature.method}. "
    text += f"Test: {found.test.method} ({found.test.reason})."
    return "\n" + textwrap.fill(text, 78, break_on_hyphens=False)


def run_compare(options: argparse.Namespace) -> int:
    """Compare two models on the same rows."""
    from ..judge.paired import compare

    check_outputs(inputs={"a": options.a, "b": options.b}, report=options.report, plot=options.plot)
    a = TableFile.opened(options.a, options, options.prob, options.logits).whole()
    second = (options.prob_b, options.logits_b)
    if not any(second):
        second = (options.prob, options.logits)
    b = TableFile.opened(options.b, options, *second).whole()
    found = compare(
        a.predictions, b.predictions, cluster=a.cluster, sample_weight=a.sample_weight, level=options.level
    )  # fmt: skip
    if options.report or options.plot:
        shared = {"cluster": a.cluster, "sample_weight": a.sample_weight, "level": options.level}
        sides = compare(*(batch.predictions.evaluate(**shared) for batch in (a, b)))
    if options.report:
        from ..report import write_comparison

        names = f"{options.a} (a) and {options.b} (b)"
        write_comparison(found, options.report, sides=sides, source=names, command=command_line())
    if options.plot:
        write_plot(found.plot(sides=sides), options.plot)
    print(json.dumps(found.to_dict(), indent=2, allow_nan=False) if options.json else found)
    for name, path in (("report", options.report), ("picture", options.plot)):
        if path and not options.json:
            print(f"{name}: {visible(path)}")
    return 0


def run_plan(options: argparse.Namespace) -> int:
    """Say how many rows would decide."""
    from ..judge.planning import rows_needed

    check_outputs(inputs={"file": options.file})
    rows = TableFile.opened(options.file, options, options.prob, options.logits).whole()
    tally = rows.predictions.tally(sample_weight=rows.sample_weight, cluster=rows.cluster, bins=None)
    found = rows_needed(tally, power=options.power, **limit_options(options))
    print(json.dumps(found.to_dict(), indent=2, allow_nan=False) if options.json else found)
    return 0


def run_lm(options: argparse.Namespace) -> int:
    """Let a language model score texts, and say the verdict."""
    from ..compat.huggingface import run_language_model

    check_outputs(inputs={"file": options.file}, report=options.report)
    with Progress(None) as progress:

        def tell(done: int, total: int) -> None:
            progress.total = total
            progress.add(done - progress.rows)

        found = run_language_model(
            options.model, options.file, text=options.text, column=options.field, window=options.window,
            stride=options.stride, batch_size=options.batch_size, revision=options.revision, device=options.device,
            cache=options.cache, progress=tell,
        )  # fmt: skip
    result = found.evaluate(by=options.by, **limit_options(options))
    if options.gate:
        options.decided = GATE.get(result.verdict.decision, UNDETERMINED)
    if options.report:
        from ..report import write_report

        write_report(
            result, options.report, title=options.title or "Is this language model over-confident?",
            source=options.file, command=command_line(), texts=found.marked(),
        )  # fmt: skip
    if options.json:
        print(json.dumps(result.to_dict(), indent=2, allow_nan=False))
        return int(options.decided)
    lines = [in_options(repr(result), recalibrates=False)]
    if found.resumed:
        lines.append(f"\n{found.resumed} tokens had been scored by an earlier run.")
    if options.report:
        lines.append(f"report: {visible(options.report)}")
    say_verdict("\n".join(lines))
    return int(options.decided)


def run_demo(options: argparse.Namespace) -> int:
    """Simulate 10 000 labels and two models, print both evaluations, and report the second with what fixes it."""
    from ..maps import recalibrate
    from ..report import write_report

    check_outputs(report=options.report)
    rng = np.random.default_rng(2025)
    log_odds = rng.uniform(-5.0, 5.0, 10_000)
    y_true = rng.random(10_000) < 1.0 / (1.0 + np.exp(-log_odds))
    print("A model that knows the true log-odds of every label.\n")
    print(evaluate(y_true, logits=log_odds))
    print("\n\nThe same model with its log-odds doubled: as accurate, and unsafe.\n")
    unsafe = evaluate(y_true, logits=2.0 * log_odds)
    print(unsafe)
    fix = recalibrate(y_true, logits=2.0 * log_odds)
    title = "The over-confident model of the demo"
    write_report(unsafe, options.report, title=title, command="safecal demo", fix=fix)
    print(f"\nThe report of the second model: {visible(shlex.quote(options.report))}. Open it in a browser.")
    return 0
