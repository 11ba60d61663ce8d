"""The calibration test rejects a calibrated model as often as it says, or more rarely."""

import math

import numpy as np
import pytest
from models import LAWS, draw, error
from scipy import special, stats

import safecal
from safecal.inference.calibration import calibration_test

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]  # the same lines many times over
SIDES = ("overconfident", "underconfident")


def _rates(law: str, n: int, repeats: int) -> tuple[dict[tuple[str, float], float], set[str]]:
    rng = np.random.default_rng([n, len(law), ord(law[0])])
    p_values: dict[str, list[float]] = {side: [] for side in SIDES}
    methods = set()
    for _ in range(repeats):
        predictions = draw(law, rng, n)
        for side in SIDES:
            result = calibration_test(predictions, alternative=side, rng=rng)
            p_values[side].append(result.p_value)
            methods.add(result.method)
    return {(s, a): float((np.array(p_values[s]) <= a).mean()) for s in SIDES for a in (0.05, 0.01)}, methods


def _check(law: str, n: int, repeats: int) -> None:
    rates, methods = _rates(law, n, repeats)
    # Predictions that all differ, of which many surprise, or states: no atom weighs a thousandth.
    smooth = law.startswith("states") or (methods == {"saddlepoint"} and n >= 200)
    for (_, alpha), rate in rates.items():
        assert rate <= alpha + error(alpha, repeats), rates
        if smooth:
            assert rate >= alpha - error(alpha, repeats), rates


@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("law", LAWS)
def test_size(law: str, n: int) -> None:
    _check(law, n, 200)


@pytest.mark.parametrize(("vague", "sharp", "log_odds"), [(50, 54, 7.0), (200, 54, 7.0), (50, 20, 5.0), (50, 500, 7.0),
                                                         (100, 10, 4.0), (2000, 30, 5.0)])  # fmt: skip
def test_size_where_a_few_sharp_rows_stand_among_vague_ones(vague: int, sharp: int, log_odds: float) -> None:
    """Rows near one half are no surprises: what counts is how many the sharp ones may give."""
    rng, repeats, p_values = np.random.default_rng([vague, sharp]), 400, []
    for _ in range(repeats):
        z = np.concatenate([rng.normal(0.0, 0.1, vague), np.full(sharp, log_odds)])
        y = rng.random(len(z)) < special.expit(z)
        p_values.append(calibration_test(safecal.bernoulli(y, logits=z)).p_value)
    for alpha in (0.05, 0.01):
        assert np.mean(np.array(p_values) <= alpha) <= alpha + error(alpha, repeats)


@pytest.mark.parametrize("method", ["pearson3", "normal"])
def test_sums_alone_hold_where_surprises_are_many(method: str) -> None:
    rng = np.random.default_rng(5)
    repeats = 1000
    p_values = [calibration_test(draw("U(0, 1)", rng, 200).summary(), method=method).p_value for _ in range(repeats)]
    assert abs(np.mean(np.array(p_values) <= 0.05) - 0.05) <= error(0.05, repeats)


def _tracks(rng: np.random.Generator, runs: int, steps: int) -> tuple[np.ndarray, float]:
    """Return the errors of a steady, correct Kalman filter of a random walk, (runs, steps), and their variance."""
    q, r = 0.1, 1.0
    prior = (q + math.sqrt(q * q + 4.0 * q * r)) / 2.0  # the steady solution of the Riccati equation
    gain = prior / (prior + r)
    variance = (1.0 - gain) * prior
    errors = np.empty((runs, steps))
    e = rng.normal(0.0, math.sqrt(variance), runs)
    for step in range(steps):
        e = (1.0 - gain) * (e + rng.normal(0.0, math.sqrt(q), runs)) - gain * rng.normal(0.0, math.sqrt(r), runs)
        errors[:, step] = e
    return errors, variance


def test_steps_of_a_track_are_not_independent() -> None:
    """A correct filter: pooled over 100 steps a chi-square test rejects far too often; runs as clusters hold."""
    rng = np.random.default_rng(11)
    repeats, runs, steps = 300, 50, 100
    clustered, pooled, chi_square = [], [], []
    cluster = np.repeat(np.arange(runs), steps)
    for _ in range(repeats):
        e, variance = _tracks(rng, runs, steps)
        states = safecal.gaussian(e.ravel(), np.zeros(e.size), var=variance)
        clustered.append(calibration_test(states, cluster=cluster).p_value)
        pooled.append(calibration_test(states).p_value)
        nees = float((e**2).sum() / variance)
        chi_square.append(2.0 * min(stats.chi2.sf(nees, e.size), stats.chi2.cdf(nees, e.size)))
    assert pooled == pytest.approx(chi_square, rel=1e-6, abs=1e-12)
    held, failed = (float(np.mean(np.array(p) <= 0.05)) for p in (clustered, pooled))
    assert held <= 0.05 + error(0.05, repeats)
    assert failed > 0.12


def test_a_single_step_of_many_tracks_needs_no_clusters() -> None:
    rng = np.random.default_rng(12)
    repeats = 1000
    p_values = []
    for _ in range(repeats):
        e, variance = _tracks(rng, 50, 5)
        p_values.append(calibration_test(safecal.gaussian(e[:, -1], np.zeros(50), var=variance)).p_value)
    assert abs(np.mean(np.array(p_values) <= 0.05) - 0.05) <= error(0.05, repeats)


def test_power_against_logits_too_large() -> None:
    rng = np.random.default_rng(13)
    p_values = [
        calibration_test(draw("U(0, 1)", rng, 500, 1.5), alternative="overconfident").p_value for _ in range(100)
    ]
    assert np.mean(np.array(p_values) <= 0.05) > 0.9
