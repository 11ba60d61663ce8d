"""The commands about files of rows: ``safecal evaluate``, with its Markdown summary, ``compare``, ``plan``; ``demo``.

What only some of them need is imported when they run.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .. import documents
from .._checks import in_options, worded
from .._checks.arrays import same_outcomes
from ..engines.batches import evaluate_batches
from ..errors import InputError, shortened, visible
from ..families import family_named
from ..files import write_atomically
from ..inputs import Batch
from ..inputs.columns import Columns
from ..judge import evaluate
from ..judge.decision import smaller_end
from ..judge.display import forecast_rows, inference_rows, look_rows, metric_rows, number, with_ends
from ..judge.evaluation import Evaluation
from ..judge.places import place_rows
from ..judge.verdict import SAFE, UNSAFE
from .options import LIMITS, RULES, attribute, limit_options
from .outputs import check_outputs, command_line, gate_status, say_verdict, searching, write_plot
from .table_file import KeptRows, TableFile, file_inputs, read_json

if TYPE_CHECKING:
    from ..judge.baseline import Baseline

__all__ = ["run_compare", "run_demo", "run_evaluate", "run_plan"]

_WORSE_THAN_BASELINE = 5  # exit status
_GROUPS_SHOWN = 20
_GROUPS_MAPPED = 20  # up to so many, groups that alone are wrong have a map each
_PLACES_SUMMED, _GROUPS_SUMMED, _NAME = 5, 10, 80  # of a summary: rows of its tables, characters of a name
_ROWS_FIXED = 200_000  # up to so many, a report tries what fixes them: some seconds
_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_[]|~"}
_MARKS |= str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "<span>$</span>"})  # the last begins a formula
# GitHub makes links and mentions of what looks like one, after all escapes. A comment inside keeps it from doing so.
_LINKS = re.compile(r"[@#](?=\S)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)


def run_evaluate(options: argparse.Namespace) -> int:
    """Say the verdict first, then the numbers, then the tables."""
    inputs = file_inputs(options.file) | {"--baseline": options.baseline}
    check_outputs(inputs=inputs, report=options.report, plot=options.plot, summary=options.summary)
    earlier = None if options.baseline is None else _earlier(options.baseline)
    table = TableFile.opened(options.file, options, options.prob, options.logits)
    kept_rows = KeptRows(table.batches, min(_ROWS_FIXED, options.max_rows)) if options.report else None
    evaluation = evaluate_batches(
        kept_rows or table.batches,
        bins=options.bins if has_bins(table.columns, options) else None,
        bin_on=options.bin_on,
        strategy=options.strategy,
        max_rows=options.max_rows,
        once=table.source.once,
        progress=None if not table.columns.features else searching(),
        **limit_options(options),
    )
    if table.left_out or table.source.doubts:
        notes = (*table.left_out, *table.source.doubts, *evaluation.notes)
        evaluation = replace(evaluation, tally=replace(evaluation.tally, notes=notes))
    baseline, worse = None, False
    if earlier is not None:
        from ..judge.baseline import WORSE, Baseline

        baseline = Baseline.of(evaluation, earlier)
        worse = baseline.decision == WORSE
    if options.gate:
        options.decided = gate_status(evaluation.verdict.decision)
        if worse and evaluation.verdict.decision != UNSAFE:
            options.decided = _WORSE_THAN_BASELINE
    if options.report:
        from ..report import write_report
        from .recalibrate import fix_of

        assert kept_rows is not None
        rows, command = kept_rows.whole(), _fix_command(evaluation, table, options)
        fix = None if rows is None or command is None else fix_of(rows, options, _has_maps(evaluation))
        write_report(
            evaluation, options.report, title=options.title, source=table.source.name, command=command_line(), fix=fix,
            fix_command=command,
        )  # fmt: skip
    if options.plot:
        write_plot(evaluation.plot(), options.plot)
    if options.summary:
        text = _markdown(evaluation, table.source.name, options.title, baseline, worse)
        write_atomically(options.summary, text)
    table.say_left_out()
    if options.json:
        with_baseline = {} if baseline is None else {"baseline": baseline.to_dict()}
        print(json.dumps(evaluation.to_dict() | with_baseline, indent=2, allow_nan=False))
    else:
        say_verdict(_text(evaluation, options, table))
        if baseline is not None:
            print(f"\n{baseline!r}")
    return int(options.decided)


def has_bins(columns: Columns, options: argparse.Namespace) -> bool:
    """Tell whether rows get bins; forecasts of a number only do where quantiles of their entropy are asked for."""
    return columns.of_classes or (columns.form == "gaussian" and options.strategy == "quantile")


def _earlier(path: str) -> Evaluation:
    """Read the document of an earlier evaluation."""
    document = read_json(path, "safecal evaluate FILE --json > evaluation.json")
    with documents.of_file(path):
        return Evaluation.from_dict(document)


def _text(evaluation: Evaluation, options: argparse.Namespace, table: TableFile) -> str:
    shown, hidden = evaluation, 0
    if evaluation.groups is not None and len(evaluation.groups) > _GROUPS_SHOWN:
        hidden = len(evaluation.groups) - _GROUPS_SHOWN
        worst = evaluation.groups.worst_first(_GROUPS_SHOWN)
        shown = replace(evaluation, tally=replace(evaluation.tally, groups=worst))
    text = repr(shown)
    if "`" in text:  # it quotes what is typed in Python
        text = in_options(text, recalibrates=family_named(evaluation.family).discrete)
    lines = [text]
    if hidden:
        lines.append(f"and {hidden} more groups: all of them are in `--json`.")
    lines.append(_methods(evaluation, options))
    for name, path in (("report", options.report), ("picture", options.plot), ("summary", options.summary)):
        if path:
            lines.append(f"{name}: {visible(path)}")
    # Where something impossible happened, no map is fitted; and what came through a pipe is gone.
    if evaluation.verdict.decision == UNSAFE and not evaluation.summary.n_impossible and not table.source.once:
        line = _fix_command(evaluation, table, options)
        lines += [] if line is None else ["what fixes it:", visible(line)]  # alone, to be copied
        python = _fix_in_python(evaluation, table)
        lines += [] if python is None else ["what fixes it, in Python:", visible(python, keep="\n")]
    return "\n".join(lines)


def _has_maps(evaluation: Evaluation) -> bool:
    """Tell whether each group has a map of its own: only where groups are what is wrong."""
    diagnosis = evaluation.verdict.diagnosis
    alone = diagnosis is not None and diagnosis.cause == "only a group"
    return alone and evaluation.groups is not None and len(evaluation.groups) <= _GROUPS_MAPPED


def _fix_command(evaluation: Evaluation, table: TableFile, options: argparse.Namespace) -> str | None:
    """Return the command that recalibrates the same rows, every column named; None where there is nothing to fix."""
    columns = table.columns
    one_label = columns.of_classes and not columns.outcomes  # several labels a row are recalibrated one by one
    if evaluation.verdict.decision == SAFE or not one_label:
        return None
    assert columns.y_true is not None
    form = "--logits" if columns.form == "logits" else "--prob"
    words = ["safecal", "recalibrate", *options.file]
    if table.source.has_known_columns:
        words += [] if options.normalise == "none" else ["--normalise", options.normalise]
        words += [] if options.tokenizer is None else ["--tokenizer", options.tokenizer]
    else:
        words += ["--y", columns.y_true, *(word for name in columns.values for word in (form, name))]
        words += [word for label in columns.labels or () for word in ("--label", label)]
    words += [word for name in (columns.by if _has_maps(evaluation) else ()) for word in ("--by", name)]
    for name in ("cluster", "sample_weight", "pos_label", "clip", "format", "sep"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    words += ["--drop-missing"] if columns.drop_missing else []
    words += ["--verbalised"] if columns.grid is not None else []
    for name, limit in LIMITS.items():
        value = getattr(options, attribute(name))
        words += [] if value == limit.default else [name, f"{value:g}"]
    words += [] if options.rule == RULES[0] else ["--rule", options.rule]
    return shlex.join([*words, "--save", "calibrator.json"])


def _fix_in_python(evaluation: Evaluation, table: TableFile) -> str | None:
    """Return what no command does: the lines that widen forecasts of a number; None of other rows and other files."""
    columns = table.columns
    if columns.form != "gaussian" or columns.spread is None or columns.axes or not table.source.name.endswith(".csv"):
        return None
    kind, spread = columns.spread[0], columns.spread[1]
    rows = f"safecal.gaussian(rows[{columns.y_true!r}], rows[{columns.values[0]!r}], {kind}=rows[{spread!r}])"
    by = columns.by[0] if _has_maps(evaluation) and len(columns.by) == 1 else None
    named = {"by": by, "cluster": columns.cluster, "sample_weight": columns.sample_weight}
    rows += "".join(f", {name}=rows[{column!r}]" for name, column in named.items() if column is not None)
    read = f"rows = pandas.read_csv({table.source.name!r})"
    return f"import pandas, safecal\n{read}\nprint(safecal.recalibrate({rows}))"


def _methods(evaluation: Evaluation, options: argparse.Namespace) -> str:
    text = f"Methods. Interval of ECD: {evaluation.interval.method}. Temperature: {evaluation.temperature.method}. "
    text += f"Test: {evaluation.test.method} ({evaluation.test.reason})."
    return "\n" + textwrap.fill(text, 78, break_on_hyphens=False)


def _escaped(text: str) -> str:
    r"""Return a text of strangers as Markdown that shows it as it is: no markup, link, mention, or line of its own.

    Examples
    --------
    >>> _escaped("*a* | <b>\nping @all")
    '\\*a\\* \\| &lt;b&gt;\\\\nping @<!-- -->all'
    """
    return _LINKS.sub(r"\g<0><!-- -->", visible(text).translate(_MARKS))


def _markdown(evaluation: Evaluation, source: str, title: str | None, baseline: Baseline | None, worse: bool) -> str:
    """Return the verdict and its reason, the worst places, the numbers and the groups as Markdown."""
    verdict = evaluation.verdict
    head: str = verdict.decision
    if worse:  # a gate fails then: the first line must not read as if all were well
        head += f"{', but' if head == SAFE else ', and'} WORSE than the baseline"
    rows = f"{evaluation.n} row{'' if evaluation.n == 1 else 's'} of {shortened(source, _NAME)}"
    parts = [
        f"## {head}" + (f": {_escaped(title)}" if title else ""),
        _escaped(in_options(_begun(verdict.reason))),
    ]
    if baseline is not None:
        parts.append(f"{'**Baseline**' if worse else 'Baseline'}: {_escaped(str(baseline))}")
    parts += [f"Note: {_escaped(in_options(note))}" for note in evaluation.notes]
    if verdict.where:
        places = place_rows(verdict.where[:_PLACES_SUMMED], evaluation.summary.weight)
        cells = ([shortened(name, _NAME), *rest] for name, *rest in (row.values() for row in places))
        parts.append(_markdown_table(list(places[0]), f"l{'r' * (len(places[0]) - 2)}l", cells))
        more = len(verdict.where) - _PLACES_SUMMED
        parts += [f"And in {more} more place{'' if more == 1 else 's'}."] if more > 0 else []
    recalibrates = family_named(evaluation.family).discrete
    if verdict.diagnosis is not None and verdict.diagnosis.remedy:
        parts.append(f"What to do: {_escaped(in_options(verdict.diagnosis.remedy, recalibrates=recalibrates))}")
    parts.append(_markdown_table(("", "value", _escaped(rows)), "lrl", _markdown_numbers(evaluation)))
    if evaluation.slices is not None:
        parts.append(_escaped(_begun(evaluation.slices.sentence)))
    parts += _markdown_groups(evaluation)
    return "\n\n".join(parts) + "\n"


def _begun(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _markdown_numbers(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    smaller = smaller_end(evaluation.verdict.looks)
    rows = inference_rows(evaluation.interval, evaluation.temperature, evaluation.test, evaluation.mistakes, smaller)
    forecast = evaluation.forecast
    rows += look_rows(evaluation.verdict.looks) + ([] if forecast is None else forecast_rows(forecast))
    bins = None if math.isnan(evaluation.ece) else evaluation.bins
    return rows + metric_rows(evaluation.summary, bins, evaluation.reliability)


def _markdown_groups(evaluation: Evaluation) -> list[str]:
    """Return the most over-confident groups, each with a verdict of its own."""
    if evaluation.groups is None:
        return []
    shown = evaluation.groups.worst_first(_GROUPS_SUMMED)
    body = []
    for key, label in zip(shown.keys, shown.labels, strict=True):
        verdict = evaluation.group_verdict(key)
        ratio = "" if verdict.ratio is None else number(verdict.ratio.value)
        temperature, ecd = number(verdict.temperature.value), with_ends(verdict.ecd, True)
        body.append([shortened(label, _NAME), str(verdict.n), verdict.decision, ecd, temperature, ratio])
    by = _escaped(shortened(shown.name, _NAME))
    head = [by, "rows", "verdict", "ECD", "temperature", "mistakes made / announced"]
    more = len(evaluation.groups) - len(shown)
    table = _markdown_table(head, "lrlrrr", body)
    return [table, f"And {more} more group{'' if more == 1 else 's'}."] if more else [table]


def _markdown_table(head: Sequence[str], sides: str, body: Iterable[Sequence[str]]) -> str:
    """Return a table, with the side of each column: ``l`` or ``r``. Its cells are escaped, its head is not."""
    rule = [{"l": ":--", "r": "--:"}[side] for side in sides]
    lines = [head, rule, *([_escaped(cell) for cell in row] for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def run_compare(options: argparse.Namespace) -> int:
    """Compare two models on the same rows."""
    from ..judge.paired import compare

    check_outputs(inputs={"a": options.a, "b": options.b}, report=options.report, plot=options.plot)
    first = TableFile.opened(options.a, options, options.prob, options.logits)
    a = first.whole()
    second_model = (options.prob_b, options.logits_b)
    if not any(second_model):
        second_model = (options.prob, options.logits)
    second = TableFile.opened(options.b, options, *second_model)
    b = second.whole()
    try:
        _check_beside(a, b, second)
        comparison = compare(
            a.predictions, b.predictions, cluster=a.cluster, sample_weight=a.sample_weight, level=options.level
        )
    except InputError as error:
        raise _about_files(error, first, second) from error
    if options.report or options.plot:
        shared = {"cluster": a.cluster, "sample_weight": a.sample_weight, "level": options.level}
        sides = compare(*(batch.predictions.evaluate(**shared) for batch in (a, b)))
    if options.report:
        from ..report import write_comparison

        names = f"{options.a} (a) and {options.b} (b)"
        write_comparison(comparison, options.report, sides=sides, source=names, command=command_line())
    if options.plot:
        write_plot(comparison.plot(sides=sides), options.plot)
    print(json.dumps(comparison.to_dict(), indent=2, allow_nan=False) if options.json else comparison)
    for name, path in (("report", options.report), ("picture", options.plot)):
        if path and not options.json:
            print(f"{name}: {visible(path)}")
    return 0


def _check_beside(a: Batch, b: Batch, second: TableFile) -> None:
    """Refuse a second file whose rows belong to other clusters, or weigh something else, than those of the first."""
    columns = second.columns
    pairs = ((columns.cluster, a.cluster, b.cluster), (columns.sample_weight, a.sample_weight, b.sample_weight))
    for name, of_a, of_b in pairs:
        if name is not None and of_a is not None and of_b is not None and len(of_a) == len(of_b):
            same_outcomes(np.asarray(of_a, dtype=object), np.asarray(of_b, dtype=object), name)


def _about_files(error: InputError, first: TableFile, second: TableFile) -> InputError:
    """Return an error that names files and a column where it named arguments, and labels as files have them."""
    complaint = error.complaint
    if complaint is None or complaint.argument != "b":
        return error
    columns = first.columns
    other = "another" if columns.pos_label is not None else "0"
    typed = {"`a`": f"`{first.source.name}`", "False": other, "True": str(columns.pos_label or 1)}
    if columns.y_true is not None:
        typed |= dict.fromkeys(("`y_true`", "`x_true`"), f"`{columns.y_true}`")

    def named(text: str | None) -> str | None:
        return None if text is None else re.sub("|".join(typed), lambda word: typed[word[0]], text)

    hint = "give both files the same rows in the same order."
    if "classes" in complaint.rule:
        hint = complaint.hint or hint
    place = None if complaint.place is None else f"{complaint.place}, counting from 0"
    return worded(
        error,
        replace(complaint, argument=second.source.name, rule=named(complaint.rule) or "", got=named(complaint.got),
                place=place, hint=hint),
    )  # fmt: skip


def run_plan(options: argparse.Namespace) -> int:
    """Say how many rows would decide."""
    from ..judge.planning import rows_needed

    check_outputs(inputs={"file": options.file})
    rows = TableFile.opened(options.file, options, options.prob, options.logits).whole()
    tally = rows.predictions.tally(sample_weight=rows.sample_weight, cluster=rows.cluster, bins=None)
    plan = rows_needed(tally, power=options.power, **limit_options(options))
    print(json.dumps(plan.to_dict(), indent=2, allow_nan=False) if options.json else plan)
    return 0


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
    print(in_options(repr(unsafe), recalibrates=True))
    fix = recalibrate(y_true, logits=2.0 * log_odds)
    title = "The over-confident model of the demo"
    write_report(unsafe, options.report, title=title, command="safecal demo", fix=fix)
    print(f"\nThe report of the second model: {visible(shlex.quote(options.report))}. Open it in a browser.")
    return 0
