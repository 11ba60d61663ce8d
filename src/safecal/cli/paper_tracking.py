"""``safecal paper tracking``: the experiment that ECD comes from, in Stone Soup."""

import argparse
from typing import Any

from ..visible import visible
from .values import output, whole

__all__ = ["add_parser", "run"]

_ABOUT = "track targets by range and bearing with EKF, UKF and particle filter"
_EXAMPLES = """examples:
  safecal paper tracking                                  100 runs of 40 steps; a minute
  safecal paper tracking --plot tracking.png              ECD and NEES over time, and the banana
  safecal paper tracking --setting hard --seed 7
  safecal paper tracking --runs 20 --particles 5000       a quick look

RMSE is the same for all filters, and the innovations of the EKF look right (NIS near 2). ECD is not: its covariances
are far too small at first, because the posterior is bent like a banana. Needs `pip install "safecal[stonesoup]"`."""


def add_parser(commands: Any, formatter: Any = argparse.RawDescriptionHelpFormatter) -> Any:
    """Add the command to those of ``safecal paper``; nothing is imported before it runs."""
    about = f"{_ABOUT[0].upper()}{_ABOUT[1:]}."
    parser = commands.add_parser("tracking", help=about, description=about, epilog=_EXAMPLES, formatter_class=formatter)
    parser.add_argument("--setting", choices=("standard", "hard"), default="standard", help="(default standard)")
    parser.add_argument("--runs", type=whole(1, 10**6), default=100, metavar="N", help="targets (default 100)")
    parser.add_argument("--particles", type=whole(1, 10**8), default=20_000, metavar="N", help="(default 20000)")
    parser.add_argument("--seed", type=whole(0, 2**63), default=4, metavar="N", help="of the simulation (default 4)")
    parser.add_argument("--plot", type=output, metavar="FILE", help="draw the picture: .svg, .png or .pdf")
    parser.set_defaults(run=run, command="paper tracking")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from ..paper.tracking import run_tracking
    from ..paper.tracking_words import tracking_text
    from .outputs import check_outputs, write_plot
    from .terminal import Progress

    check_outputs(plot=options.plot)
    filters = 5 if options.runs >= 30 else 4  # with enough runs, fresh ones of the EKF are inflated
    with Progress(40 * filters * options.runs) as progress:
        study = run_tracking(
            options.setting,
            runs=options.runs,
            particles=options.particles,
            seed=options.seed,
            progress=progress.add,
        )
    print(tracking_text(study))
    if options.plot:
        from ..paper.tracking_figure import tracking_figure

        write_plot(tracking_figure(study), options.plot)
        print(f"\npicture: {visible(options.plot)}")
    return 0
