"""``safecal demo``: a minute with safecal."""

import argparse
import shlex

from ..demo import main
from ..visible import visible
from .outputs import check_outputs

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from ..report import write_report

    check_outputs(report=options.report)
    unsafe = main()
    write_report(unsafe, options.report, title="The over-confident model of the demo", command="safecal demo")
    print(f"\nThe report of the second model: {visible(shlex.quote(options.report))}. Open it in a browser.")
    return 0
