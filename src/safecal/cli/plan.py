"""``safecal plan``: how many rows would decide."""

import argparse
import json

from ..engines.batches import join_batches
from ..planning import rows_needed
from .limits import limit_options
from .outputs import check_outputs
from .reader import Reader
from .readings import choose
from .sources import open_source

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    check_outputs(inputs={"file": options.file})
    source = open_source(options.file, options.format)
    reading = choose(source, options, prob=options.prob, logits=options.logits)
    rows = join_batches(list(Reader(source, reading).batches()))
    tally = rows.predictions.tally(sample_weight=rows.weight, cluster=rows.cluster, bins=None)
    found = rows_needed(tally, power=options.power, **limit_options(options))
    print(json.dumps(found.to_dict(), indent=2, allow_nan=False) if options.json else found)
    return 0
