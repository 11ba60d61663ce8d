"""Consistency over time and runs."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal.errors import MissingValueError, OptionError, ShapeError
from safecal.families.mixtures import gaussian_mixture, particles
from safecal.judge.consistency import Consistency, assess_consistency

RUNS, STEPS, D = 60, 15, 3
RUN, STEP = np.repeat(np.arange(RUNS), STEPS), np.tile(np.arange(STEPS), RUNS)


def states(scale: float = 1.0, seed: int = 0) -> safecal.Predictions:
    x = scale * np.random.default_rng(seed).normal(size=(RUNS * STEPS, D))
    return safecal.gaussian(x, 0 * x, std=1.0)


def tracks(rng: np.random.Generator, runs: int, steps: int) -> tuple[np.ndarray, float]:
    """Return errors of correct, slow scalar Kalman filters, (runs, steps), and their steady variance."""
    q, r = 0.01, 1.0
    p = (q + math.sqrt(q * q + 4 * q * r)) / 2  # steady state of the prediction
    gain, post = p / (p + r), p * r / (p + r)
    error = rng.normal(0, math.sqrt(post), runs)
    out = []
    for _ in range(steps):
        error = (1 - gain) * (error + rng.normal(0, math.sqrt(q), runs)) - gain * rng.normal(0, math.sqrt(r), runs)
        out.append(error)
    return np.array(out).T, post


def test_the_band_of_gaussian_states_is_a_chi_square() -> None:
    result = assess_consistency(states(), run=RUN, step=STEP)
    law = stats.chi2(RUNS * D)
    for level in (0.5, 0.95, 0.999):
        ends = law.ppf([(1 - level) / 2, (1 + level) / 2]) / RUNS
        np.testing.assert_allclose(D + 2 * result.bands(level), np.tile(ends, (STEPS, 1)), rtol=1e-9)


def test_means_by_step_by_run_and_overall() -> None:
    predictions = states(1.5)
    excess = predictions.score().excess.reshape(RUNS, STEPS)
    result = assess_consistency(predictions, run=RUN, step=STEP)
    np.testing.assert_allclose(result.steps.ecd, excess.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.runs.ecd, excess.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(result.step_medians, np.median(excess, axis=0), rtol=1e-12)
    assert result.ecd == pytest.approx(excess.mean())
    assert result.nees == pytest.approx(D + 2 * excess.mean())
    assert result.median_run == pytest.approx(np.median(excess.mean(axis=1)))
    assert result.steps.keys == tuple(range(STEPS))
    assert (result.steps.name, result.runs.name) == ("step", "run")
    assert result.test.method == "cluster"
    assert result.test.n == RUNS
    assert result.share_inside == 0.0
    assert result.share_above == 1.0
    assert result.verdict.decision == "UNSAFE"
    assert result.temperature.value == pytest.approx(result.nees / D, rel=1e-6)
    timid = assess_consistency(states(0.5), run=RUN, step=STEP)
    assert (timid.share_inside, timid.share_above) == (0.0, 0.0)


def test_the_order_of_the_rows_is_free() -> None:
    order = np.random.default_rng(1).permutation(RUNS * STEPS)
    x = np.random.default_rng(0).normal(size=(RUNS * STEPS, D))
    a = assess_consistency(safecal.gaussian(x, 0 * x, std=1.0), run=RUN, step=STEP)
    b = assess_consistency(safecal.gaussian(x[order], 0 * x, std=1.0), run=RUN[order], step=STEP[order])
    np.testing.assert_allclose(a.steps.ecd, b.steps.ecd, rtol=1e-12)
    np.testing.assert_allclose(a.step_medians, b.step_medians, rtol=1e-12)


@pytest.mark.proof
@pytest.mark.no_cover
def test_correct_filters_stay_in_the_band_and_pass_the_test_on_runs_but_not_a_pooled_one() -> None:
    rng = np.random.default_rng(2)
    pooled, by_run, inside = [], [], []
    step, run = np.tile(np.arange(40), 50), np.repeat(np.arange(50), 40)
    for _ in range(150):
        errors, variance = tracks(rng, 50, 40)
        predictions = safecal.gaussian(errors.ravel(), np.zeros(2000), var=variance)
        pooled.append(safecal.calibration_test(predictions).p_value < 0.05)
        result = assess_consistency(predictions, run=run, step=step)
        by_run.append(result.test.p_value < 0.05)
        inside.append(result.share_inside)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02)
    assert np.mean(pooled) > 0.25
    assert np.mean(by_run) < 0.1


def test_missing_rows_are_lost_and_reported() -> None:
    x = np.random.default_rng(0).normal(size=(RUNS * STEPS, D))
    keep = (np.square(x).sum(axis=1) <= stats.chi2(D).ppf(0.8)) & (RUN != 7)
    result = assess_consistency(safecal.gaussian(x[keep], 0 * x[keep], std=1.0), run=RUN[keep], step=STEP[keep])
    assert result.expected == (RUNS - 1) * STEPS  # a run that is gone cannot be known about
    assert result.lost == result.expected - keep.sum()
    assert 0.1 < result.share_lost < 0.3
    assert result.ecd < -0.3
    assert f"{result.lost} of {result.expected} rows are missing, and nothing above covers them" in repr(result)
    announced = assess_consistency(
        safecal.gaussian(x[keep], 0 * x[keep], std=1.0), run=RUN[keep], step=STEP[keep], expected=RUNS * STEPS
    )
    assert announced.expected == RUNS * STEPS


def test_several_targets_at_a_step_are_not_taken_for_losses() -> None:
    result = assess_consistency(states(), run=RUN // 2, step=STEP)
    assert (result.expected, result.lost) == (RUNS * STEPS, 0)


def test_steps_may_be_times_and_runs_names() -> None:
    times = np.datetime64("2025-01-01T00:00") + STEP.astype("timedelta64[s]")
    result = assess_consistency(states(), run=[f"run {r}" for r in RUN], step=times)
    assert result.steps.keys[1] == "2025-01-01T00:00:01"
    assert result.runs.keys[0] == "run 0"


@pytest.mark.parametrize("kind", ["mixture", "particles", pytest.param("neighbours", marks=pytest.mark.proof)])
def test_other_shapes_have_bands_too(kind: str) -> None:
    rng = np.random.default_rng(3)
    n = RUNS * STEPS
    if kind == "mixture":
        sides = rng.integers(0, 2, n)
        x = rng.normal(size=n) + 3.0 * sides
        predictions = gaussian_mixture(x, [0.5, 0.5], [0.0, 3.0], std=1.0, rng=0)
    else:
        cloud = rng.normal(size=(n, 200, 2))
        method = "moments" if kind == "particles" else kind
        predictions = particles(rng.normal(size=(n, 2)), cloud, method=method, rng=0)
    result = assess_consistency(predictions, run=RUN, step=STEP)
    assert result.share_inside >= 0.7
    assert abs(result.test.statistic) < 3.5
    band = result.bands()
    assert (band[:, 0] < 0).all()
    assert (band[:, 1] > 0).all()


def test_it_makes_the_round_trip_and_reads_well() -> None:
    result = assess_consistency(states(1.2), run=RUN, step=STEP, quantity="NIS", level=0.9)
    again = Consistency.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert again == result
    assert repr(again) == repr(result)
    lines = repr(result).splitlines()
    assert lines[0] == "safecal consistency: 900 innovations in 60 runs of 15 steps"
    assert any(line.startswith("NIS ") and "3 is consistent" in line for line in lines)
    assert any(line.startswith("in the band") and "of 15 steps, 90 % are expected" in line for line in lines)
    assert all(len(line) <= 100 for line in lines)


def test_an_impossible_state_is_outside_every_band() -> None:
    x = np.zeros((RUNS * STEPS, 1))
    x[3] = 1e200
    result = assess_consistency(safecal.gaussian(x, 0 * x, std=1e-200), run=RUN, step=STEP)
    assert result.ecd == math.inf
    assert not result.inside[3]
    assert Consistency.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False))).ecd == math.inf


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"run": np.zeros(RUNS * STEPS), "step": STEP},
            ShapeError,
            "`run` must name at least two runs; got 1.\n\nHint: states of one run depend on each other; test its "
            "innovations (NIS), which do not: `gaussian(z, ...)`.",
        ),
        (
            {"run": RUN[:-1], "step": STEP},
            ShapeError,
            "`run` must have as many rows as `x_true`; got 899 and 900.\n\n"
            "Hint: both must come from the same rows, in the same order.",
        ),
        (
            {"run": RUN, "step": STEP, "expected": 5},
            OptionError,
            "`expected` must be a whole number, at least the number of rows; got 5 and 900 rows.",
        ),
        (
            {"run": RUN, "step": STEP, "quantity": "SNEES"},
            OptionError,
            "`quantity` must be one of 'NEES', 'NIS'; got 'SNEES'.",
        ),
    ],
)
def test_bad_input_is_refused(options: dict, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        assess_consistency(states(), **options)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["run", "step"])
@pytest.mark.parametrize("hole", [float("nan"), None])
def test_a_row_of_no_run_or_no_step_is_refused(name: str, hole: float | None) -> None:
    columns = {"run": [0, 0, 0, 1, 1, 1], "step": [0, 1, 2, 0, 1, 2]}
    columns[name] = [*columns[name][:4], hole, columns[name][5]]
    states = safecal.gaussian(np.zeros(6), np.zeros(6), std=1.0)
    with pytest.raises(MissingValueError, match=rf"^`{name}` must not hold missing values at row 4 \(1 of 6 rows\)"):
        safecal.assess_consistency(states, **columns)


def test_a_filter_that_diverges_late_is_not_safe_because_it_was_timid_before() -> None:
    run, step = np.repeat(np.arange(200), 40), np.tile(np.arange(40), 200)
    x = np.random.default_rng(0).normal(size=(8000, 2))
    late = np.where(step < 20, 0.6, 1.28)[:, None] * x
    result = assess_consistency(safecal.gaussian(late, 0 * x, std=1.0), run=run, step=step)
    assert safecal.gaussian(late, 0 * x, std=1.0).evaluate(cluster=run).verdict.decision == "SAFE"
    assert result.verdict.decision == "UNSAFE"
    assert {place.name for place in result.verdict.shown} == {f"steps {k} to {k + 4}" for k in range(20, 40, 5)}
    assert "in steps 35 to 39" in result.verdict.reason
    assert Consistency.from_dict(json.loads(json.dumps(result.to_dict()))).verdict == result.verdict
    averages = assess_consistency(safecal.gaussian(late, 0 * x, std=1.0), run=run, step=step, rule="average")
    assert averages.verdict.decision == "SAFE"
    for scale in (1.0, 0.5):  # right, and timid throughout: as by runs alone
        even = safecal.gaussian(scale * x, 0 * x, std=1.0)
        steady = assess_consistency(even, run=run, step=step)
        assert steady.verdict.decision == "SAFE"
        assert steady.evaluation.groups is None
        assert steady.ecd == pytest.approx(even.ecd)


@pytest.mark.parametrize(
    "keys", [0.05 + np.arange(15) / 8, np.array([f"t{k:02d}" for k in range(15)]), np.arange(15) // 5]
)
def test_parts_of_the_steps_are_named_by_their_ends(keys: np.ndarray) -> None:
    x = np.random.default_rng(0).normal(size=(RUNS * STEPS, D))
    late = np.where(STEP < 10, 0.3, 1.8)[:, None] * x
    result = assess_consistency(safecal.gaussian(late, 0 * x, std=1.0), run=RUN, step=keys[STEP], threshold=0.5)
    assert result.verdict.decision == "UNSAFE"
    known = set(map(str, keys.tolist()))
    for place in result.verdict.where:
        assert set(place.name.removeprefix("steps ").split(" to ")) <= known


def test_rows_that_are_missing_withhold_safe_and_nothing_else() -> None:
    x = np.random.default_rng(0).normal(size=(RUNS * STEPS, D))
    square = (x**2).sum(axis=1)
    keep = square < np.quantile(square, 0.6)

    def gated(scale: float, expected: int | None = None) -> Consistency:
        states = safecal.gaussian(scale * x[keep], 0 * x[keep], std=1.0)
        return assess_consistency(states, run=RUN[keep], step=STEP[keep], expected=expected)

    result = gated(1.2)
    assert (result.verdict.decision, result.share_lost) == ("UNDETERMINED", pytest.approx(0.4))
    why = "40 % of the 900 rows are missing: what is dropped is rarely dropped by chance."
    assert why in result.verdict.reason
    assert "pass `expected=`" in result.verdict.reason
    assert why in " ".join(repr(result).split())
    again = Consistency.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result
    assert again.evaluation.judge().decision == "UNDETERMINED"
    told = gated(1.2, 900).verdict
    assert (told.decision, "pass `expected=`" in told.reason) == ("UNDETERMINED", False)
    assert gated(1.2, int(keep.sum())).verdict.decision == "SAFE"
    assert gated(1.2, round(keep.sum() / 0.96)).verdict.decision == "SAFE"  # a few
    assert gated(4.0).verdict.decision == "UNSAFE"


def test_runs_that_are_copies_of_one_are_refused(rng: np.random.Generator) -> None:
    """As where each run of a simulation begins with the same seed: copies agree, and their mean looks certain."""
    errors = 1.5 * rng.normal(size=40)
    run, step = np.repeat(np.arange(50), 40), np.tile(np.arange(40), 50)
    order = rng.permutation(2000)
    copies = safecal.gaussian(np.tile(errors, 50)[order], np.zeros(2000), std=1.0)
    with pytest.raises(
        ShapeError, match=r"`run` must name runs that differ; got the errors of another one in 49 of 50"
    ):
        safecal.assess_consistency(copies, run=run[order], step=step[order])
    flat = safecal.gaussian(np.zeros(2000), np.zeros(2000), std=1.0)  # nothing that chance could not repeat
    assert safecal.assess_consistency(flat, run=run, step=step).ecd == -0.5
