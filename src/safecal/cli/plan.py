"""``safecal plan``: how many rows would decide."""

import argparse
import json

from ..judge.planning import rows_needed
from .limits import limit_options
from .outputs import check_outputs
from .table import TableFile

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    check_outputs(inputs={"file": options.file})
    rows = TableFile.opened(options.file, options, options.prob, options.logits).whole()
    tally = rows.predictions.tally(sample_weight=rows.sample_weight, cluster=rows.cluster, bins=None)
    found = rows_needed(tally, power=options.power, **limit_options(options))
    print(json.dumps(found.to_dict(), indent=2, allow_nan=False) if options.json else found)
    return 0
