"""The options of ``safecal poses``."""

import argparse

from .options import above, output, place

__all__ = ["POSES", "add_pose_options"]

POSES = """examples:
  safecal poses estimate.tum truth.tum --cov cov.csv --side right --first rotation
  safecal poses runs/*/estimate.tum --truth truth.tum --cov runs/*/cov.csv --side right --first rotation \\
    --report poses.html
  safecal poses odometry.csv truth.tum --side world --first translation --group SE2 --gate

Files named .csv, .parquet, .arrow or .jsonl hold the columns of nav_msgs/Odometry, covariances among them; others are
TUM text, `timestamp tx ty tz qx qy qz qw`. A file of covariances holds one matrix, or a line for each pose, row by row,
which a stamp may begin. Several runs are needed for a verdict: errors of one run depend on each other."""


def add_pose_options(parser: argparse.ArgumentParser) -> None:
    """Add what `safecal poses` can be told, limits excepted."""
    parser.add_argument(
        "files",
        nargs="+",
        type=place,
        metavar="FILE",
        help="an estimate and its truth; with --truth, an estimate a run",
    )
    group = parser.add_argument_group("poses")
    group.add_argument(
        "--truth", nargs="+", type=place, metavar="FILE", help="true poses: one file, or one for each run"
    )
    group.add_argument(
        "--cov", nargs="+", type=place, metavar="FILE", help="covariances: one file, or one for each run; or .npy"
    )
    group.add_argument(
        "--side",
        required=True,
        choices=("right", "left", "world"),
        help="axes of the errors: right, those of the estimate (GTSAM); left, truth = exp(error) * estimate; world,"
        " position and rotation apart along fixed axes (nav_msgs/Odometry)",
    )
    group.add_argument("--first", choices=("rotation", "translation"), help="what covariances begin with")
    group.add_argument(
        "--group", choices=("SE3", "SE2", "SO3"), default="SE3", help="space (default), the plane, or rotations alone"
    )
    group.add_argument(
        "--quaternion",
        choices=("xyzw", "wxyz"),
        default="xyzw",
        help="order in TUM text (default xyzw, as it is defined)",
    )
    group.add_argument(
        "--tolerance",
        type=above(0, included=True),
        default=0.01,
        metavar="S",
        help="seconds by which stamps that belong together may differ (default 0.01)",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    group.add_argument("--report", type=output, metavar="FILE", help="write a report with pictures: one HTML file")
    group.add_argument("--title", metavar="TEXT", help="heading of the report")
    group.add_argument("--save", type=output, metavar="FILE", help="write the factors of the covariances as JSON")
    group.add_argument("--gate", action="store_true", help="set the exit status: 0 SAFE, 3 UNSAFE, 4 UNDETERMINED")
