"""`safecal poses`: one run, many runs, what is suspected, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from safecal._kernels.states import Pose, exponential, product
from safecal.cli import main
from safecal.cli.poses import _missing_at_end
from safecal.families.poses import Convention, pose_errors
from safecal.maps import from_dict
from safecal.maps.result import PoseStudy

SIGMA = np.array([0.01, 0.02, 0.03, 0.3, 0.2, 0.1])
RUNS, STEPS = 60, 12
NAMED = ["--side", "right", "--first", "rotation"]


def tum(path: Path, times: np.ndarray, pose: Pose) -> str:
    path.parent.mkdir(exist_ok=True)
    assert pose.position is not None
    np.savetxt(path, np.concatenate([times[:, None], pose.position, pose.rotation], axis=1), fmt="%.9f")
    return str(path)


@pytest.fixture
def runs(tmp_path: Path, rng: np.random.Generator) -> tuple[Path, list[str]]:
    """Sixty runs of one track whose errors are right, but for `forward`, which are twice as large as stated."""
    k = np.arange(STEPS)[:, None]
    zero = np.zeros_like(k, dtype=float)
    truth = exponential(np.concatenate([zero, zero, 0.2 * k, 10.0 + k, 5.0 + zero, zero], axis=1))
    times = 100.0 + 0.1 * np.arange(STEPS)
    tum(tmp_path / "truth.tum", times, truth)
    np.savetxt(tmp_path / "cov.csv", np.diag(SIGMA**2), delimiter=",")
    files = []
    for run in range(RUNS):
        error = exponential(-SIGMA * [1, 1, 1, 2, 1, 1] * rng.normal(size=(STEPS, 6)))
        files.append(tum(tmp_path / f"{run:02d}" / "estimate.tum", times + 0.002, product(truth, error)))
    return tmp_path, files


def many(folder: Path, files: list[str], *words: str) -> int:
    given = ["--truth", str(folder / "truth.tum"), "--cov", str(folder / "cov.csv")]
    return main(["poses", *files, *given, *words])


def test_many_runs_have_a_verdict_by_axis_and_the_factors_that_mend_them(
    runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, files = runs
    report, save = folder / "poses.html", folder / "factors.json"
    assert many(folder, files, *NAMED, "--gate", "--report", str(report), "--save", str(save)) == 3
    text = capsys.readouterr().out
    assert "UNSAFE: in " in text
    assert f"{RUNS * STEPS} of {RUNS * STEPS} poses have a true pose within 0.01 s." in text
    assert "Multiply covariances by this, entry by entry; over-confidence is then ruled out:" in text
    assert "Suspected" not in text
    page = report.read_text(encoding="utf-8")
    assert "Error ellipses along the track, with the truth" in page
    assert "NEES and ECD over time" in page
    assert '<th scope="row">forward</th>' in page
    factors = from_dict(json.loads(save.read_text()))._axes()[1]
    assert factors[3] == pytest.approx(2.0, rel=0.2)
    assert np.delete(factors, 3) == pytest.approx(np.ones(5), rel=0.2)

    assert many(folder, files, *NAMED, "--json", "--gate") == 3
    document = json.loads(capsys.readouterr().out)
    assert [axis["name"] for axis in document["axes"]][3:] == ["forward", "left", "up"]
    assert document["matrix"][3][3] == pytest.approx(factors[3] ** 2)
    assert document["evaluation"]["verdict"]["decision"] == "UNSAFE"
    low, high = (document["axes"][3]["temperature"][end] for end in ("low", "high"))
    assert low < 4.0 < high


def test_a_run_counts_once_and_the_truth_is_no_estimate(
    runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, files = runs
    assert many(folder, [*files, files[3]], *NAMED) == 2
    assert f"{files[3]} is named twice: a run counts once." in capsys.readouterr().err
    copy = folder / "copy.tum"
    copy.write_bytes(Path(files[3]).read_bytes())
    assert many(folder, [*files, str(copy)], *NAMED) == 2
    assert f"{copy} and {files[3]} hold the same poses: a run counts once." in capsys.readouterr().err
    assert many(folder, [*files, str(folder / "truth.tum")], *NAMED) == 2
    assert "holds the true poses, and no estimate of them." in capsys.readouterr().err


@pytest.mark.proof
def test_right_covariances_are_safe(runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    folder, files = runs
    np.savetxt(folder / "cov.csv", np.diag((SIGMA * [1, 1, 1, 2, 1, 1]) ** 2), delimiter=",")
    assert many(folder, files, *NAMED, "--gate") == 0
    assert "SAFE: in all axes together" in capsys.readouterr().out


def test_a_wrong_side_is_suspected_and_gets_no_factors(
    runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, files = runs
    words = ["--side", "left", "--first", "rotation", "--report", str(folder / "r.html")]
    assert many(folder, files, *words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Suspected: `--side right` explains these errors far better" in text
    assert "Multiply covariances" not in text
    assert "explains these errors far better" in (folder / "r.html").read_text(encoding="utf-8")


def test_one_run_is_never_safe_nor_unsafe(runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    folder, files = runs
    for scale in (1.0, 100.0, 0.01):
        np.savetxt(folder / "cov.csv", scale * np.diag(SIGMA**2), delimiter=",")
        given = ["--cov", str(folder / "cov.csv"), "--report", str(folder / "one.html")]
        assert main(["poses", files[0], str(folder / "truth.tum"), *given, *NAMED, "--gate"]) == 4
        text = " ".join(capsys.readouterr().out.split())
        assert "UNDETERMINED" in text
        assert "give several runs" in text
        assert "not of one run" in text
    assert "not known from one run" in (folder / "one.html").read_text(encoding="utf-8")


@pytest.mark.proof
@pytest.mark.parametrize("group", ["SE2", "SO3"])
def test_other_groups(group: str, runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    folder, files = runs
    words = ["--group", group, "--report", str(folder / "g.html")]
    status = many(folder, files, *words, *(NAMED[:2] if group == "SO3" else NAMED), "--gate")
    text = capsys.readouterr().out
    assert (status, "forward" in text) == ((0, False) if group == "SO3" else (3, True))
    assert ("Error ellipses" in (folder / "g.html").read_text(encoding="utf-8")) == (group == "SE2")


@pytest.mark.proof
def test_long_runs_are_told_in_windows_and_each_may_have_its_truth(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    n = 1100
    files = []
    for name in "ab":
        truth = exponential(rng.normal(size=(n, 6)))
        error = exponential(SIGMA * rng.normal(size=(n, 6)))
        tum(tmp_path / name / "t.tum", np.arange(float(n)), truth)
        files.append(tum(tmp_path / name / "e.tum", np.arange(float(n)), product(truth, error)))
    np.savetxt(tmp_path / "cov.txt", np.diag(SIGMA**2))
    truths = [str(tmp_path / name / "t.tum") for name in "ab"]
    words = ["--cov", str(tmp_path / "cov.txt"), *NAMED, "--report", str(tmp_path / "r.html"), "--gate"]
    assert main(["poses", *files, "--truth", *truths, *words]) == 4
    assert "safecal evaluation: 2200 rows" in capsys.readouterr().out
    assert "in windows of time" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.proof
def test_wide_rotations_are_noted(runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    folder, files = runs
    np.savetxt(folder / "cov.csv", np.diag([1.0, 1, 1, 1, 1, 1]), delimiter=",")
    assert many(folder, files, *NAMED) == 0
    assert "100 % of the poses have rotations uncertain by more than 0.2 rad" in " ".join(
        capsys.readouterr().out.split()
    )


def test_what_cannot_be_is_refused(runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    folder, files = runs

    def said(*words: str) -> str:
        assert main(["poses", *words]) == 2
        return " ".join(capsys.readouterr().err.split())

    truth, cov = str(folder / "truth.tum"), ["--cov", str(folder / "cov.csv")]
    assert "--side" in said(files[0], truth, *cov, "--first", "rotation")
    assert "`--first` must say what covariances begin with" in said(files[0], truth, *cov, "--side", "left")
    assert "without `--truth` there must be two files" in said(*files[:3], *cov, *NAMED)
    assert "has no covariances. Hint: name their file with `--cov`" in said(files[0], truth, *NAMED)
    assert "`--cov` must name one file, or one for each of the 3 runs; got 2" in said(
        *files[:3], "--truth", truth, *cov, cov[1], *NAMED
    )
    assert "have no stamps within 0.001 s of each other: 100.002000 to" in said(
        files[0], truth, *cov, *NAMED, "--tolerance", "0.001"
    )
    np.savetxt(folder / "three.csv", np.eye(3))
    assert "SE3 has 6 numbers" in said(files[0], truth, "--cov", str(folder / "three.csv"), *NAMED)
    np.savetxt(folder / "flat.csv", np.diag([0.0, 0, 1, 1, 1, 0]))
    assert "is 0 in every pose" in said(files[0], truth, "--cov", str(folder / "flat.csv"), *NAMED)
    assert "must not be the same file as" in said(files[0], truth, *cov, *NAMED, "--report", files[0])


def test_estimates_that_end_before_the_truth_have_lost_what_is_missing(
    runs: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, files = runs
    np.savetxt(folder / "cov.csv", np.diag((SIGMA * [1, 1, 1, 2.5, 1, 1]) ** 2), delimiter=",")
    report = folder / "short.html"
    for path in files:
        lines = Path(path).read_text().splitlines(keepends=True)
        Path(path).write_text("".join(lines[: STEPS // 2]))
    assert many(folder, files, *NAMED, "--gate", "--report", str(report)) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert f"50 % of the {RUNS * STEPS} rows are missing: what is dropped is rarely dropped by chance." in text
    assert f"lost 50.0 % {RUNS * STEPS // 2} of {RUNS * STEPS} rows are missing" in text
    assert f"About {RUNS * STEPS // 2} poses are missing, because estimates end before the truth does." in text
    assert "rows are missing: what is dropped" in report.read_text(encoding="utf-8")
    assert many(folder, files, *NAMED, "--json", "--gate") == 4
    document = json.loads(capsys.readouterr().out)
    assert document["evaluation"]["verdict"]["decision"] == "UNDETERMINED"
    assert document["consistency"]["evaluation"]["verdict"]["decision"] == "UNDETERMINED"


def test_slow_estimates_have_lost_nothing_and_many_steps_count_what_is_missing() -> None:
    truth = np.arange(0.0, 20.0, 0.01)
    assert _missing_at_end(truth[::10], truth, 0.01) == 0
    assert _missing_at_end(truth[::10][:100], truth, 0.01) == pytest.approx(100, abs=2)
    assert _missing_at_end(truth, truth[::10], 0.01) == 0
    x = np.random.default_rng(0).normal(size=(3 * 1500, 6)) * SIGMA
    zero = exponential(np.zeros_like(x))
    convention = Convention("SE3", "right", "rotation")
    errors = pose_errors(zero, exponential(x), np.diag(2.0 * SIGMA**2), convention)
    step, run = np.repeat(np.arange(1500), 3) % 1500, np.tile(np.arange(60), 75)
    study = PoseStudy.of(errors, convention, run=run, step=step, expected=6000)
    assert study.consistency is None
    assert study.evaluation.verdict.decision == "UNDETERMINED"
    assert "25 % of the 6000 rows are missing" in study.evaluation.verdict.reason
