"""``safecal compare``: two models on the same rows."""

import argparse
import json

from ..judge.paired import compare
from ..visible import visible
from .outputs import check_outputs, command_line, write_plot
from .table import TableFile

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
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
        from ..report.compared import write_comparison

        names = f"{options.a} (a) and {options.b} (b)"
        write_comparison(found, options.report, sides=sides, source=names, command=command_line())
    if options.plot:
        write_plot(found.plot(sides=sides), options.plot)
    print(json.dumps(found.to_dict(), indent=2, allow_nan=False) if options.json else found)
    for name, path in (("report", options.report), ("picture", options.plot)):
        if path and not options.json:
            print(f"{name}: {visible(path)}")
    return 0
