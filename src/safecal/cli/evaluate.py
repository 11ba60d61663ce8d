"""``safecal evaluate``: verdict first, then the numbers, then the tables."""

import argparse
import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

from .. import documents
from ..engines.batches import evaluate_batches
from ..errors import DocumentError, FileError
from ..inputs.columns import in_options
from ..judge.baseline import WORSE, Baseline
from ..judge.evaluation import Evaluation
from ..judge.verdict import SAFE, UNSAFE
from ..visible import visible
from .limits import limit_options
from .outputs import check_outputs, command_line, write_plot
from .table import TableFile
from .terminal import say_verdict

__all__ = ["GATE", "run"]

GATE = {SAFE: 0, UNSAFE: 3}
UNDETERMINED = 4
WORSE_THAN_BASELINE = 5
_SHOWN = 20  # groups


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    inputs = {"file": options.file, "--baseline": options.baseline}
    check_outputs(inputs=inputs, report=options.report, plot=options.plot)
    before = None if options.baseline is None else _earlier(options.baseline)
    table = TableFile.opened(options.file, options, options.prob, options.logits)
    found = evaluate_batches(
        table.batches,
        bins=options.bins,
        bin_on=options.bin_on,
        strategy=options.strategy,
        max_rows=options.max_rows,
        once=table.source.once,
        **limit_options(options),
    )
    baseline = None if before is None else Baseline.of(found, before)
    if options.gate:
        options.decided = GATE.get(found.verdict.decision, UNDETERMINED)
        if baseline is not None and baseline.decision == WORSE and found.verdict.decision != UNSAFE:
            options.decided = WORSE_THAN_BASELINE
    if options.report:
        from ..report import write_report

        write_report(found, options.report, title=options.title, source=table.source.name, command=command_line())
    if options.plot:
        write_plot(found.plot(), options.plot)
    reader = table.reader
    if reader.dropped:
        rows = "row" if reader.dropped == 1 else "rows"
        print(
            f"safecal: left out {reader.dropped} of {reader.rows} {rows} with missing values, the first at row "
            f"{reader.first_dropped}.",
            file=sys.stderr,
        )
    if options.json:
        more = {} if baseline is None else {"baseline": baseline.to_dict()}
        print(json.dumps(found.to_dict() | more, indent=2, allow_nan=False))
    else:
        say_verdict(_text(found, options))
        if baseline is not None:
            print(f"\n{baseline!r}")
    return int(options.decided)


def _earlier(path: str) -> Evaluation:
    """Read the document of an earlier evaluation."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"`--baseline` could not be read: {error}.") from error
    try:
        document = documents.parsed(content)
    except DocumentError as error:
        hint = "write it with `safecal evaluate FILE --json > evaluation.json`."
        raise DocumentError(f"`--baseline` must be a JSON document; {path} is not.\n\nHint: {hint}") from error
    with documents.of_file(path):
        return Evaluation.from_dict(document)


def _text(found: Evaluation, options: argparse.Namespace) -> str:
    shown, more = found, 0
    if found.groups is not None and len(found.groups) > _SHOWN:
        more = len(found.groups) - _SHOWN
        shown = replace(found, tally=replace(found.tally, groups=found.groups.worst_first(_SHOWN)))
    lines = [in_options(repr(shown))]
    if more:
        lines.append(f"and {more} more groups: all of them are in `--json`.")
    lines.append(_methods(found, options))
    for name, path in (("report", options.report), ("picture", options.plot)):
        if path:
            lines.append(f"{name}: {visible(path)}")
    return "\n".join(lines)


def _methods(found: Evaluation, options: argparse.Namespace) -> str:
    text = f"Methods. Interval of ECD: {found.interval.method}. Temperature: {found.temperature.method}. "
    text += f"Test: {found.test.method} ({found.test.reason})."
    return "\n" + textwrap.fill(text, 78)
