"""Range-bearing tracking: what ECD sees, and RMSE and NIS do not."""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.cli.paper import add_tracking
from safecal.errors import OptionError

pytest.importorskip("stonesoup")

from stonesoup.metricgenerator.manager import MultiManager
from stonesoup.types.groundtruth import GroundTruthPath, GroundTruthState
from stonesoup.types.track import Track

from safecal.compat.stonesoup import monte_carlo
from safecal.paper.tracking import TrackingStudy, run_tracking
from safecal.paper.tracking_filters import SETTINGS, Run, filtered, simulated
from safecal.paper.tracking_views import tracking_text


@pytest.fixture(scope="module")
def study() -> TrackingStudy:
    return run_tracking(runs=30, particles=8000, seed=4)


@pytest.fixture(scope="module")
def hard() -> TrackingStudy:
    return run_tracking("hard", runs=20, seed=4, filters=["EKF", "UKF"], inflated=False)


@pytest.fixture(scope="module")
def few() -> TrackingStudy:
    """A study too short to find anything, for what does not depend on the numbers."""
    return run_tracking(runs=3, particles=500, seed=4, inflated=False)


@pytest.fixture(scope="module")
def few_hard() -> TrackingStudy:
    return run_tracking("hard", runs=3, seed=4, filters=["EKF", "UKF"], inflated=False)


@pytest.mark.proof
@pytest.mark.no_cover  # nor its study, on which the tests below look, too
def test_the_ekf_is_overconfident_and_the_others_are_not(study: TrackingStudy) -> None:
    found = {name: f.consistency() for name, f in study.filters.items()}
    assert 0.3 < found["EKF"].median_run < 1.3
    assert found["EKF"].share_inside < 0.6
    assert found["EKF"].share_above > 0.4
    assert found["EKF"].verdict.decision == "UNSAFE"
    assert study.filters["EKF"].nees[:, 0].mean() > 20
    for name in ("UKF", "PF"):
        assert abs(found[name].median_run) < 0.4
        assert found[name].share_inside >= 0.75
    assert found["EKF"].lost == 0


@pytest.mark.proof
def test_the_linear_kalman_filter_stays_in_the_band(study: TrackingStudy) -> None:
    found = study.filters["KF"].consistency()
    assert found.share_inside >= 0.9
    assert found.interval.low < 0 < found.interval.high
    assert abs(np.mean(study.filters["KF"].nis) - 2) < 0.2


@pytest.mark.proof
def test_rmse_and_nis_do_not_see_it(study: TrackingStudy) -> None:
    rmse = {name: study.filters[name].rmse for name in ("EKF", "UKF", "PF")}
    assert max(rmse.values()) < 1.15 * min(rmse.values())
    assert abs(np.mean(study.filters["EKF"].nis) - 2) < 0.4
    assert np.isnan(study.filters["PF"].nis).all()


@pytest.mark.proof
def test_a_gate_hides_it(study: TrackingStudy) -> None:
    ecd, kept, share = study.gated()
    assert ecd > 1.5
    assert abs(kept) < 0.25
    assert 0.1 < share < 0.3


@pytest.mark.proof
def test_inflation_mends_the_ecd_of_fresh_runs_at_a_price(study: TrackingStudy) -> None:
    found = study.inflation
    assert found is not None
    assert found.factor > 1.5
    assert found.factors[0] > 4 * found.factors[-1]
    for name in ("one factor", "one a step"):
        assert found.ecd[name] < found.ecd["as given"] - 0.5
        assert found.nll[name] < found.nll["as given"]


@pytest.mark.proof
@pytest.mark.no_cover
def test_the_harder_setting_is_harder(hard: TrackingStudy) -> None:
    ekf, ukf = (hard.filters[name].consistency() for name in ("EKF", "UKF"))
    assert 8 < ekf.median_run < 45
    assert ekf.share_above == 1.0
    assert -0.5 < ukf.median_run < 0.8
    assert hard.banana is None
    assert hard.inflation is None


@pytest.mark.proof
def test_each_run_has_draws_of_its_own(study: TrackingStudy) -> None:
    again = run_tracking(runs=3, particles=8000, seed=4, filters=["UKF", "PF"], inflated=False)
    for name in ("UKF", "PF"):
        np.testing.assert_array_equal(again.filters[name].mean, study.filters[name].mean[:3])
    other = run_tracking(runs=3, seed=5, filters=["UKF"], inflated=False)
    assert not np.allclose(other.filters["UKF"].truth, study.filters["UKF"].truth[:3])


def test_truths_come_from_the_prior_that_the_filters_start_from() -> None:
    setting = SETTINGS["standard"]
    first = np.array([simulated(setting, np.random.default_rng([9, k])).truth[0] for k in range(400)])
    spread = np.sqrt(np.array([200**2 + 10**2 + 1 / 3, 10**2 + 1, 200**2 + 10**2 + 1 / 3, 10**2 + 1]))
    z = (first - [1995.0, -5.0, 10.0, 10.0]) / spread
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=0.2)
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.12)


def unscented(run: Run) -> np.ndarray:
    """A plain unscented filter, written out, with alpha 1 and kappa 0: (steps, 4) means."""
    s = SETTINGS["standard"]
    f = np.kron(np.eye(2), [[1.0, 1.0], [0.0, 1.0]])
    q = np.kron(np.eye(2), s.q * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]]))
    m, p, out = np.array(s.mean), np.diag(np.square(s.std)), []
    for z in run.polar:
        m, p = f @ m, f @ p @ f.T + q
        root = 2.0 * np.linalg.cholesky(p)
        points = np.vstack([m, m + root.T, m - root.T])
        mean, cov = np.array([0.0] + [1 / 8] * 8), np.array([2.0] + [1 / 8] * 8)
        y = np.stack([np.arctan2(points[:, 2], points[:, 0]), np.hypot(points[:, 0], points[:, 2])], axis=1)
        at = np.array([np.arctan2(mean @ np.sin(y[:, 0]), mean @ np.cos(y[:, 0])), mean @ y[:, 1]])
        gap = y - at
        gap[:, 0] = (gap[:, 0] + np.pi) % (2 * np.pi) - np.pi
        spread = gap.T @ (cov[:, None] * gap) + s.noise
        gain = (points - m).T @ (cov[:, None] * gap) @ np.linalg.inv(spread)
        error = z - at
        error[0] = (error[0] + np.pi) % (2 * np.pi) - np.pi
        m, p = m + gain @ error, p - gain @ spread @ gain.T
        p = (p + p.T) / 2
        out.append(m)
    return np.array(out)


@pytest.mark.proof
def test_stone_soups_filters_are_the_ones_that_were_meant(few: TrackingStudy) -> None:
    for k in range(3):
        run = simulated(SETTINGS["standard"], np.random.default_rng([4, k]))
        np.testing.assert_allclose(few.filters["UKF"].mean[k], unscented(run), rtol=1e-9, atol=1e-7)


@pytest.mark.proof
def test_particles_that_start_from_the_measurement_have_the_posterior_of_the_prior() -> None:
    # Far from the bend, with a prior no wider than the measurement, the posterior is known from plain importance.
    setting = SETTINGS["standard"]
    run = simulated(setting, np.random.default_rng([1, 1]))
    state = next(filtered(setting, "PF", run, 50_000, np.random.default_rng(0)))
    rng = np.random.default_rng(1)
    points = rng.normal(setting.mean, setting.std, (2_000_000, 4))
    points[:, 0] += points[:, 1] + rng.normal(0, math.sqrt(1 / 3), len(points))
    points[:, 2] += points[:, 3] + rng.normal(0, math.sqrt(1 / 3), len(points))
    gap = (
        np.stack([np.arctan2(points[:, 2], points[:, 0]), np.hypot(points[:, 0], points[:, 2])], axis=1) - run.polar[0]
    )
    weight = np.exp(-0.5 * (np.square(gap) / np.diag(setting.noise)).sum(axis=1))
    weight /= weight.sum()
    wanted = weight @ points[:, [0, 2]]
    spread = np.sqrt(weight @ np.square(points[:, [0, 2]] - wanted))
    error = spread * math.sqrt(weight @ weight)
    found = np.asarray(state.mean, dtype=float).ravel()[[0, 2]]
    assert (np.abs(found - wanted) < 5 * error + 0.05 * spread).all()
    cov = np.sqrt(np.diag(np.asarray(state.covar, dtype=float)))[[0, 2]]
    np.testing.assert_allclose(cov, spread, rtol=0.1)


def test_the_plug_in_says_the_same_as_the_arrays(few: TrackingStudy) -> None:
    def managers() -> Any:
        for k in range(3):
            run = simulated(SETTINGS["standard"], np.random.default_rng([4, k]))
            track = Track(list(filtered(SETTINGS["standard"], "EKF", run, 0, np.random.default_rng(0))))
            states = [GroundTruthState(x, timestamp=s.timestamp) for x, s in zip(run.truth, track, strict=True)]
            made = MultiManager([])
            made.add_data({"tracks": {track}, "groundtruth_paths": {GroundTruthPath(states)}})
            yield made

    ekf = few.filters["EKF"]
    wanted = ((ekf.nees - 4) / 2).mean(axis=0)
    np.testing.assert_allclose(monte_carlo(managers()).steps.ecd, wanted, rtol=1e-6)


@pytest.mark.proof
def test_the_words(study: TrackingStudy, hard: TrackingStudy) -> None:
    text = tracking_text(study)
    assert text.startswith("Range and bearing, standard setting: 30 runs of 40 steps, 8000 particles, seed 4\n")
    assert all(len(line) <= 110 for line in text.splitlines())
    for words in ("EKF", "UKF", "PF", "KF", "A gate that drops NEES > 9.49", "inflated by SafeTemperature"):
        assert words in text
    assert "SafeTemperature" not in tracking_text(hard)


@pytest.mark.proof
def test_the_picture(few: TrackingStudy, few_hard: TrackingStudy) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    from safecal.paper.tracking_views import tracking_figure

    figure = tracking_figure(few)
    try:
        time, nees, banana = figure.axes
        ekf = next(line for line in time.get_lines() if line.get_label() == "EKF")
        np.testing.assert_allclose(ekf.get_ydata(), few.filters["EKF"].consistency().steps.ecd)
        np.testing.assert_allclose(
            next(line for line in nees.get_lines() if line.get_label() == "UKF").get_ydata(),
            few.filters["UKF"].nees.mean(axis=0),
        )
        labels = [text.get_text() for text in banana.get_legend().get_texts()]
        assert labels == ["posterior, particles", "EKF, 95 % ellipse", "UKF, 95 % ellipse", "truth"]
        ellipse = next(line for line in banana.get_lines() if line.get_label() == "EKF, 95 % ellipse")
        mean, cov = few.banana.gaussians["EKF"]
        gap = np.stack(ellipse.get_data(), axis=1) - mean
        square = np.einsum("ni,ij,nj->n", gap, np.linalg.inv(cov), gap)
        np.testing.assert_allclose(square, -2 * math.log(0.05), rtol=1e-6)
        figure.canvas.draw()
    finally:
        plt.close(figure)
    small = tracking_figure(few_hard)
    assert len(small.axes) == 2
    plt.close(small)


def command(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_tracking(parser.add_subparsers(required=True))
    return parser.parse_args(["tracking", *words])


@pytest.mark.proof
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "tracking.png"
    options = command("--runs", "3", "--particles", "500", "--plot", str(picture))
    assert options.run(options) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Range and bearing, standard setting: 3 runs of 40 steps, 500 particles, seed 4\n")
    assert out.endswith(f"picture: {picture}\n")
    assert err == ""  # the progress is for terminals
    assert picture.read_bytes().startswith(b"\x89PNG")
    bad = command("--plot", str(tmp_path / "no" / "x.png"))
    with pytest.raises(safecal.SafecalError, match="the folder of"):
        bad.run(bad)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"setting": "easy"}, "`setting` must be one of 'standard', 'hard'; got 'easy'."),
        ({"filters": ["IMM"]}, "`filters` must be one of 'EKF', 'UKF', 'PF', 'KF'; got 'IMM'."),
        ({"runs": 1}, "`runs` must be a whole number, at least 2; got 1."),
        ({"particles": 10}, "`particles` must be a whole number, at least 100; got 10."),
    ],
)
def test_bad_options_are_refused(options: dict, text: str) -> None:
    with pytest.raises(OptionError) as caught:
        run_tracking(**options)
    assert str(caught.value) == text


@pytest.mark.proof
@pytest.mark.no_cover
def test_the_expected_numbers_of_the_standard_setting() -> None:
    study = run_tracking("standard", runs=100, filters=["EKF", "UKF", "KF"], inflated=False)
    # Particles take longest: some of the runs, as many particles, and the other filters on the same runs.
    some = run_tracking("standard", runs=10, particles=20_000, filters=["EKF", "UKF", "PF"], inflated=False)
    found = {name: f.consistency() for name, f in (some.filters | study.filters).items()}
    assert 3.0 < found["EKF"].ecd < 6.0
    assert found["EKF"].median_run == pytest.approx(0.7, abs=0.3)
    assert found["EKF"].share_inside < 0.3
    assert study.filters["EKF"].nees[:, 0].mean() > 40
    assert found["UKF"].ecd == pytest.approx(0.07, abs=0.16)
    assert found["PF"].ecd == pytest.approx(0.1, abs=0.2)
    assert min(found["UKF"].share_inside, found["PF"].share_inside) >= 0.85
    rmse = [some.filters[name].rmse for name in ("EKF", "UKF", "PF")]
    assert max(rmse) < 1.05 * min(rmse)
    assert np.mean(study.filters["EKF"].nis) == pytest.approx(2.0, abs=0.3)
    assert found["KF"].share_inside >= 0.9
    assert study.gated()[1] == pytest.approx(-0.04, abs=0.1)


@pytest.mark.proof
@pytest.mark.no_cover
def test_the_expected_numbers_of_the_hard_setting() -> None:
    study = run_tracking("hard", runs=100, filters=["EKF", "UKF"], inflated=False)
    some = run_tracking("hard", runs=10, particles=20_000, filters=["UKF", "PF"], inflated=False)
    found = {name: f.consistency() for name, f in study.filters.items()}
    assert 180 < found["EKF"].ecd < 280
    assert found["EKF"].median_run == pytest.approx(20.0, abs=6.0)
    assert found["EKF"].share_inside == 0.0
    assert 0.3 < found["UKF"].ecd < 2.0
    assert some.filters["PF"].consistency().ecd < some.filters["UKF"].consistency().ecd
