"""``safecal poses``: is the covariance of a pose estimator honest? Over time, over runs, and by axis."""

import argparse
import json
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._checks import in_options
from .._kernels.states import Pose
from .._types import FloatArray, IndexArray
from ..errors import FileError, OptionError, visible
from ..families.poses import Convention, pose_errors, suspicions
from ..files import write_atomically
from ..inputs.trajectories import Trajectory, matched_times, of_group, read_covariances, read_trajectory
from ..judge.display import evaluation_text, number
from ..maps.result import PoseStudy
from ..report.poses import Track, write_poses
from .options import above, add_limit_options, limit_options, output, place
from .outputs import check_outputs, command_line, gate_status, say_verdict

__all__ = ["add_options", "run"]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    estimates, truths = _files(options)
    covs = _each(options.cov, len(estimates), "--cov")
    named = {f"file {k + 1}": path for k, path in enumerate([*estimates, *truths, *(c for c in covs if c)])}
    check_outputs(inputs=named, report=options.report, save=options.save)
    for cov in covs:
        if cov is not None and not Path(cov).is_file():
            raise FileError(f"`--cov` must name files that exist; got {cov}.")
    if options.group != "SO3" and options.first is None:
        hint = "`--first rotation`, as GTSAM's Pose3, or `--first translation`, as nav_msgs/Odometry."
        raise OptionError(f"`--first` must say what covariances begin with.\n\nHint: {hint}")
    convention = Convention(options.group, options.side, None if options.group == "SO3" else options.first)
    runs = _Runs(options, convention)
    trajectories = {path: read_trajectory(path, options.quaternion) for path in dict.fromkeys(truths)}
    for estimate, truth, cov in zip(estimates, _each(truths, len(estimates), "--truth"), covs, strict=True):
        assert truth is not None
        runs.add(estimate, trajectories[truth], cov)
    study = runs.judged(one_truth=len(trajectories) == 1)
    decision = study.evaluation.verdict.decision
    if options.gate:
        options.decided = gate_status(decision)
    if options.report:
        write_poses(study, runs.track(), options.report, title=options.title, source=_source(estimates),
                    command=command_line())  # fmt: skip
    if options.save and study.fix is not None:
        write_atomically(options.save, json.dumps(study.fix.to_dict(), indent=2, allow_nan=False) + "\n")
    if options.json:
        print(json.dumps(study.to_dict(), indent=2, allow_nan=False))
    else:
        say_verdict(_text(study, options))
    return int(options.decided)


def _files(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the files of estimates and of truths."""
    if options.truth:
        return options.files, options.truth
    if len(options.files) != 2:
        raise OptionError(
            f"without `--truth` there must be two files, an estimate and its truth; got {len(options.files)}."
            "\n\nHint: many runs: `safecal poses runs/*/estimate.tum --truth truth.tum`."
        )
    return options.files[:1], options.files[1:]


def _each(paths: Sequence[str] | None, runs: int, word: str) -> list[str | None]:
    """Return one file for each run; one alone serves all."""
    named = list(paths or [])
    if len(named) not in (0, 1, runs):
        raise OptionError(f"`{word}` must name one file, or one for each of the {runs} runs; got {len(named)}.")
    return [*named] * runs if len(named) == 1 else [*named] or [None] * runs


def _source(estimates: Sequence[str]) -> str:
    return estimates[0] if len(estimates) == 1 else f"{estimates[0]} and {len(estimates) - 1} more"


class _Runs:
    """The runs that were read so far."""

    def __init__(self, options: argparse.Namespace, convention: Convention) -> None:
        self.options, self.convention = options, convention
        self.truths: list[Pose] = []
        self.estimates: list[Pose] = []
        self.covs: list[FloatArray] = []
        self.steps: list[IndexArray] = []
        self.times: list[FloatArray] = []
        self.names: dict[tuple[bytes, bytes], str] = {}  # of the files, by estimated and true poses
        self.given = 0  # estimates that could have a true pose
        self.missing = 0  # those that would be there if no estimate ended before its truth

    def add(self, path: str, truth: Trajectory, cov: str | None) -> None:
        """Read a run, and match its times with those of the truth."""
        estimate = read_trajectory(path, self.options.quaternion)
        matrices = estimate.cov if cov is None else read_covariances(cov, estimate)
        if matrices is None:
            raise OptionError(f"{path} has no covariances.\n\nHint: name their file with `--cov`.")
        i, j = matched_times(estimate.times, truth.times, self.options.tolerance)
        if not i.size:
            raise FileError(
                f"{path} and {truth.name} have no stamps within {self.options.tolerance:g} s of each other: "
                f"{_span(estimate.times)}, and {_span(truth.times)}."
                "\n\nHint: are both in seconds, of one clock? `--tolerance` allows more."
            )
        first = self.options.first
        true_poses, _ = of_group(truth.taken(j), np.eye(6), self.convention.group, first)
        poses, covs = of_group(
            estimate.taken(i), matrices[i] if matrices.ndim == 3 else matrices, self.convention.group, first
        )
        self._refuse_copies(path, _content(poses), _content(true_poses))
        self.truths.append(true_poses)
        self.estimates.append(poses)
        self.covs.append(np.broadcast_to(covs, (len(i), *covs.shape[-2:])))
        self.steps.append(j)
        self.times.append(truth.times[j] - truth.times[0])
        self.given += min(len(estimate.times), len(truth.times))
        self.missing += _missing_at_end(estimate.times, truth.times, self.options.tolerance)

    def _refuse_copies(self, path: str, estimate: bytes, truth: bytes) -> None:
        """Refuse a run that was read already, which would count twice, and the truth in place of an estimate."""
        if estimate == truth:
            hint = "name the estimates first, and the truth with `--truth`."
            raise FileError(f"{path} holds the true poses, and no estimate of them.\n\nHint: {hint}")
        other = self.names.setdefault((estimate, truth), path)
        if len(self.names) <= len(self.steps):
            same = "is named twice" if other == path else f"and {other} hold the same poses"
            raise FileError(f"{path} {same}: a run counts once.\n\nHint: give each run a file of its own, once.")

    def judged(self, *, one_truth: bool) -> PoseStudy:
        """Judge all runs together; where all have one truth, steps are its stamps."""
        truth, estimate, cov = _joined(self.truths), _joined(self.estimates), np.concatenate(self.covs)
        predictions = pose_errors(truth, estimate, cov, self.convention)
        run = np.repeat(np.arange(len(self.steps)), [len(step) for step in self.steps])
        step = np.concatenate(self.steps if one_truth else [np.arange(len(steps)) for steps in self.steps])
        notes = [f"{len(run)} of {self.given} poses have a true pose within {self.options.tolerance:g} s"]
        if self.missing:
            notes.append(f"about {self.missing} poses are missing, because estimates end before the truth does")
        suspected = suspicions(truth, estimate, cov, self.convention, self.options.quaternion)
        return PoseStudy.of(
            predictions, self.convention, run=run, step=step, expected=max(self.given, len(run)) + self.missing,
            suspicions=tuple(_in_options(text) for text in suspected), notes=tuple(notes),
            **limit_options(self.options),
        )  # fmt: skip

    def track(self) -> Track:
        """Return what the pictures show."""
        return Track(self.truths[0], self.estimates[0], self.covs[0], self.convention, self.times)


def _content(poses: Pose) -> bytes:
    """Return all numbers of some poses."""
    return poses.rotation.tobytes() + (b"" if poses.position is None else poses.position.tobytes())


def _missing_at_end(estimate: FloatArray, truth: FloatArray, tolerance: float) -> int:
    """Return how many poses are missing after the last estimate, at the rate of those that are there."""
    after = truth > estimate[-1] + tolerance
    during = int(((truth >= estimate[0] - tolerance) & ~after).sum())
    return int(int(after.sum()) * min(1.0, len(estimate) / max(during, 1)))


def _joined(poses: Sequence[Pose]) -> Pose:
    positions = [pose.position for pose in poses if pose.position is not None]
    return Pose(np.concatenate([pose.rotation for pose in poses]), np.concatenate(positions) if positions else None)


def _span(times: FloatArray) -> str:
    return f"{times[0]:.6f} to {times[-1]:.6f}"


def _in_options(text: str) -> str:
    """Return a suspicion in the words of the command line."""
    text = re.sub(r'`(side|first)="(\w+)"`', r"`--\1 \2`", text)
    return text.replace("the other order of `quaternion`", "the other `--quaternion`").rstrip(".")


def _head(study: PoseStudy) -> str:
    """Return the verdict and the numbers; of one run only those that need no test."""
    if study.consistency is not None:
        return repr(study.consistency)
    if study.several:
        return repr(study.evaluation)
    evaluation, d = study.evaluation, study.evaluation.dimension
    metrics = [
        ("ECD", number(evaluation.ecd, signed=True), "nat: above 0 over-confident, below 0 under-confident"),
        ("NEES", number(d + 2.0 * evaluation.ecd), f"{d} is consistent"),
    ]
    return evaluation_text(f"safecal poses: {evaluation.n} poses of one run", str(evaluation.verdict), metrics, [])


def _text(study: PoseStudy, options: argparse.Namespace) -> str:
    lines = [in_options(_head(study), recalibrates=False), ""]
    sentences = [f"Suspected: {text}." for text in study.suspicions]
    sentences += [f"{note[:1].upper()}{note[1:]}." for note in study.notes]
    lines += [textwrap.fill(text, 78, break_on_hyphens=False) for text in sentences]
    level = f"{100 * study.evaluation.limits.level:g} % interval"
    lines += ["", f"{'axis':<14}{'true / stated variance':>24}{level:>22}{'factor of the sd':>20}"]
    for axis in study.axes:
        interval = (
            f"{number(axis.temperature.low)} to {number(axis.temperature.high)}" if study.several else "not of one run"
        )
        factor = "" if study.fix is None else number(axis.factor)
        lines.append(f"{axis.name:<14}{number(axis.temperature.value):>24}{interval:>22}{factor:>20}".rstrip())
    if study.fix is not None:
        lines += ["", "Multiply covariances by this, entry by entry; over-confidence is then ruled out:"]
        lines.append("[" + ",\n ".join("[" + ", ".join(f"{x:.4g}" for x in row) + "]" for row in study.matrix) + "]")
    for name, path in (("report", options.report), ("factors", options.save if study.fix is not None else None)):
        if path:
            lines.append(f"{name}: {visible(path)}")
    return "\n".join(lines)


_EXAMPLES = """examples:
  safecal poses estimate.tum truth.tum --cov cov.csv --side right --first rotation
  safecal poses runs/*/estimate.tum --truth truth.tum --cov runs/*/cov.csv --side right --first rotation \\
    --report poses.html
  safecal poses odometry.csv truth.tum --side world --first translation --group SE2 --gate

Files named .csv, .parquet, .arrow or .jsonl hold the columns of nav_msgs/Odometry, covariances among them; others are
TUM text, `timestamp tx ty tz qx qy qz qw`. A file of covariances holds one matrix, or one line for each
pose: the matrix row by row, with a stamp before it or without. A verdict needs several runs: errors of one run depend
on each other."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``safecal poses``."""
    parser.epilog = _EXAMPLES
    files = "an estimate and its truth; with --truth, one estimate for each run"
    parser.add_argument("files", nargs="+", type=place, metavar="FILE", help=files)
    group = parser.add_argument_group("poses")
    group.add_argument(
        "--truth", nargs="+", type=place, metavar="FILE", help="true poses: one file, or one for each run"
    )
    cov = "covariances, as text or .npy: one file, or one for each run"
    group.add_argument("--cov", nargs="+", type=place, metavar="FILE", help=cov)
    group.add_argument(
        "--side",
        required=True,
        choices=("right", "left", "world"),
        help="axes of the errors: right, those of the estimate (GTSAM); left, truth = exp(error) * estimate; world,"
        " fixed axes, with position and rotation separate (nav_msgs/Odometry)",
    )
    group.add_argument("--first", choices=("rotation", "translation"), help="what the covariances begin with")
    group.add_argument(
        "--group", choices=("SE3", "SE2", "SO3"), default="SE3", help="space (default), the plane, or rotations alone"
    )
    quaternion = "order of quaternions in TUM text (default xyzw, as TUM defines it)"
    group.add_argument("--quaternion", choices=("xyzw", "wxyz"), default="xyzw", help=quaternion)
    tolerance = "largest difference of stamps that belong together, in seconds (default 0.01)"
    group.add_argument("--tolerance", type=above(0, included=True), default=0.01, metavar="S", help=tolerance)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    group.add_argument("--report", type=output, metavar="FILE", help="write a report with pictures: one HTML file")
    group.add_argument("--title", metavar="TEXT", help="heading of the report")
    group.add_argument("--save", type=output, metavar="FILE", help="write the factors of the covariances as JSON")
    group.add_argument("--gate", action="store_true", help="set the exit status: 0 SAFE, 3 UNSAFE, 4 UNDETERMINED")
    add_limit_options(parser)
