"""The command ``safecal lm``: from a language model and texts to a verdict."""

import argparse
import json

from ..compat.huggingface import run_language_model
from ..inputs.surfaces import in_options
from ..visible import visible
from .commands import GATE, UNDETERMINED
from .options import limit_options
from .outputs import check_outputs, command_line
from .terminal import Progress, say_verdict

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Score the texts, and say the verdict."""
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
    lines = [in_options(repr(result))]
    if found.resumed:
        lines.append(f"\n{found.resumed} tokens had been scored by an earlier run.")
    if options.report:
        lines.append(f"report: {visible(options.report)}")
    say_verdict("\n".join(lines))
    return int(options.decided)
