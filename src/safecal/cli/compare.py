"""``safecal compare``: two models on the same rows."""

import argparse
import json

from ..paired import compare
from .outputs import check_outputs
from .table import TableFile

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    check_outputs(inputs={"a": options.a, "b": options.b})
    a = TableFile.opened(options.a, options, options.prob, options.logits).whole()
    second = (options.prob_b, options.logits_b)
    if not any(second):
        second = (options.prob, options.logits)
    b = TableFile.opened(options.b, options, *second).whole()
    found = compare(
        a.predictions, b.predictions, cluster=a.cluster, sample_weight=a.sample_weight, level=options.level
    )  # fmt: skip
    print(json.dumps(found.to_dict(), indent=2, allow_nan=False) if options.json else found)
    return 0
