"""``safecal compare``: two models on the same rows."""

import argparse
import json

from ..engines.batches import Batch, join_batches
from ..paired import compare
from .outputs import check_outputs, command_line, write_plot
from .reader import Reader
from .readings import choose
from .sources import open_source

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    check_outputs(inputs={"a": options.a, "b": options.b}, report=options.report, plot=options.plot)
    a = _whole(options, options.a, options.prob, options.logits)
    second = (options.prob_b, options.logits_b)
    if not any(second):
        second = (options.prob, options.logits)
    b = _whole(options, options.b, *second)
    found = compare(
        a.predictions, b.predictions, cluster=a.cluster, sample_weight=a.weight, level=options.level
    )  # fmt: skip
    if options.report or options.plot:
        shared = {"cluster": a.cluster, "sample_weight": a.weight, "level": options.level}
        sides = compare(*(batch.predictions.evaluate(**shared) for batch in (a, b)))
    if options.report:
        from ..report.compared import write_comparison

        names = f"{options.a} (a) and {options.b} (b)"
        write_comparison(found, options.report, sides=sides, source=names, command=command_line())
    if options.plot:
        write_plot(found.plot(sides=sides), options.plot)
    print(json.dumps(found.to_dict(), indent=2, allow_nan=False) if options.json else found)
    for name, path in (("report", options.report), ("picture", options.plot)):
        if path and not options.json:
            print(f"{name}: {path}")
    return 0


def _whole(options: argparse.Namespace, file: str, prob: list[str] | None, logits: list[str] | None) -> Batch:
    source = open_source(file, options.format)
    reader = Reader(source, choose(source, options, prob=prob, logits=logits))
    return join_batches(list(reader.batches()))
