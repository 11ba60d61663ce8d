"""Intervals, quantiles and draws: what a forecaster states, and what must not be called safe."""

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal._kernels.ensemble import exchanged, left_out_distances, left_out_nees, whitened
from safecal.errors import CovarianceError, FormError, MissingValueError, RangeError, SafecalError, ShapeError
from safecal.report import report_html

N = 2000
LEVELS = [0.05, 0.25, 0.75, 0.95]


def normal_quantiles(scale: float, levels: Any = LEVELS) -> np.ndarray:
    return np.tile(scale * stats.norm.ppf(levels), (N, 1))


@pytest.fixture
def y(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(N)


def test_intervals_are_two_outcomes_of_their_level(y: np.ndarray) -> None:
    end = 1.2
    predictions = safecal.intervals(y, -end, np.full(N, end), level=0.9)
    wanted = safecal.bernoulli(np.abs(y) <= end, np.full(N, 0.9))
    assert predictions.ecd == pytest.approx(wanted.ecd, rel=1e-14)
    evaluation = predictions.evaluate()
    assert evaluation.temperature.high == pytest.approx(wanted.evaluate().temperature.high, rel=1e-9)
    assert evaluation.verdict.decision == "UNSAFE"
    assert "Its intervals hold 76.5 % of the outcomes, where 90 % are stated." in evaluation.verdict.reason
    assert "recalibrate" not in str(evaluation)


def test_a_cause_is_told_once(y: np.ndarray) -> None:
    wide = np.arange(N) % 2 == 0
    end = np.where(wide, 1.7, 0.5)
    verdict = safecal.intervals(y, -end, end, level=0.9).evaluate(by=np.where(wide, "near", "far")).verdict
    assert verdict.diagnosis is not None
    assert verdict.diagnosis.cause == "only a group"
    assert verdict.reason.lower().count(verdict.diagnosis.evidence.lower()) == 1


def test_intervals_that_hold_are_safe_and_what_is_not_seen_is_said(y: np.ndarray) -> None:
    verdict = safecal.intervals(y, -1.645, 1.645, level=0.9).evaluate().verdict
    assert verdict.decision == "SAFE"
    assert verdict.reason.endswith("How far outside of them outcomes lie is not seen.")


def test_intervals_of_one_half_are_blind_and_never_safe(y: np.ndarray) -> None:
    narrow = safecal.intervals(y, -0.01, 0.01, level=0.5)
    assert narrow.ecd == 0.0  # hardly one holds
    verdict = narrow.evaluate().verdict
    assert verdict.decision == "UNDETERMINED"
    assert "Intervals of 50 % are blind" in verdict.reason
    mixed = safecal.intervals(y, -1.645, 1.645, level=np.where(np.arange(N) < 100, 0.5, 0.9))
    assert mixed.evaluate().verdict.decision == "UNDETERMINED"


def test_parts_with_and_without_blind_intervals_merge_and_stay_unsafe_to_acquit(y: np.ndarray) -> None:
    parts = [safecal.intervals(y, -1.645, 1.645, level=level) for level in (0.9, 0.5)]
    assert safecal.Evaluation.of(parts[0].tally() + parts[1].tally()).verdict.decision == "UNDETERMINED"
    joined = type(parts[0]).concatenate(parts)
    assert joined.n == 2 * N
    assert joined.evaluate().verdict.decision == "UNDETERMINED"
    assert parts[0].take(np.arange(10)).n == 10


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_quantiles_are_classes_between_them(y: np.ndarray, scale: float) -> None:
    result = safecal.quantiles(y, normal_quantiles(scale), levels=LEVELS).evaluate()
    happened = np.searchsorted(scale * stats.norm.ppf(LEVELS), y)
    wanted = safecal.categorical(happened, np.tile([0.05, 0.2, 0.5, 0.2, 0.05], (N, 1)))
    assert result.ecd == pytest.approx(wanted.ecd, rel=1e-13)
    assert result.verdict.decision == ("SAFE" if scale == 1.0 else "UNSAFE")
    assert "outermost quantiles" in result.verdict.reason or "times as often as stated" in result.verdict.reason


def test_equal_levels_are_regrouped_and_the_verdict_says_so(y: np.ndarray) -> None:
    levels = np.arange(1, 20) / 20
    narrow = normal_quantiles(0.5, levels)
    blind = safecal.categorical(np.searchsorted(narrow[0], y), np.full((N, 20), 0.05))
    assert blind.ecd == pytest.approx(0.0, abs=1e-12)  # whatever happens
    verdict = safecal.quantiles(y, narrow, levels=levels).evaluate().verdict
    assert verdict.decision == "UNSAFE"
    assert "quantiles at 5, 15, 35, 65, 85, 95 %" in verdict.reason
    right = safecal.quantiles(y, 2 * narrow, levels=levels).evaluate().verdict
    assert right.decision == "SAFE"
    assert "Of 19 quantiles 6 were used" in right.reason


@pytest.mark.parametrize(
    ("levels", "kept"),
    [
        ([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]),
        ([0.25, 0.5, 0.75], [0.25, 0.75]),
        ([0.1, 0.4, 0.6, 0.9], [0.1, 0.6, 0.9]),
        ([0.9, 0.95], [0.95]),
    ],
)
def test_classes_are_likelier_the_nearer_they_are_to_the_median(
    y: np.ndarray, levels: list[float], kept: list[float]
) -> None:
    predictions = safecal.quantiles(y, normal_quantiles(1.0, levels), levels=levels)
    np.testing.assert_allclose(predictions.coded.values[0], np.diff([0.0, *kept, 1.0]), rtol=1e-12)
    assert abs(predictions.ecd) < 0.05


def test_the_reason_says_what_equally_likely_classes_cannot_show() -> None:
    share = np.array([0.05, 0.85, 0.05, 0.05])  # nearly all outcomes fall short of the median
    y = np.repeat([-2.0, -1.0, 1.0, 2.0], np.round(3000 * share).astype(int))
    short = safecal.quantiles(y, np.tile([-1.5, 0.0, 1.5], (3000, 1)), levels=[0.05, 0.5, 0.95]).evaluate().verdict
    assert short.decision == "SAFE"
    assert "Whether its median is right is not seen." in short.reason
    for levels, words in (([0.05, 0.25, 0.75, 0.95], "In which of two equally likely classes"), ([0.05, 0.9], "")):
        look = safecal.quantiles([0.0], [np.arange(len(levels)) - 1.0], levels=levels).look
        assert look is not None
        assert look.why.removeprefix("How far beyond its outermost quantiles outcomes lie is not seen.").startswith(
            words and f" {words}"
        )
        assert "median" not in look.why


def test_an_outcome_that_equals_quantiles_falls_by_chance_to_either_side(rng: np.random.Generator) -> None:
    rain = np.where(rng.random(N) < 0.6, 0.0, rng.exponential(size=N))
    levels = [0.1, 0.5, 0.9, 0.99]
    values = np.tile([0.0, 0.0, -np.log(0.25), -np.log(0.025)], (N, 1))
    predictions = safecal.quantiles(rain, values, levels=levels)
    share = np.bincount(predictions.coded.happened, minlength=5) / N
    assert share[0] == pytest.approx(0.6 / 9, abs=0.03)  # of the classes 0.1, 0.4 and 0.4 that hold 0
    assert predictions.evaluate().verdict.decision != "UNSAFE"


@pytest.mark.parametrize("d", [1, 2, 6])
def test_a_point_left_out_is_compared_with_the_moments_of_the_others(rng: np.random.Generator, d: int) -> None:
    m = 12
    pool = rng.standard_normal((3, m + 1, d)) * 3.0 + 5.0
    by_kernel = left_out_nees(whitened(pool))
    for b in range(3):
        for j in range(m + 1):
            rest = np.delete(pool[b], j, axis=0)
            gap = pool[b, j] - rest.mean(axis=0)
            nees = gap @ np.linalg.solve(np.atleast_2d(np.cov(rest.T)), gap)
            assert by_kernel[b, j] == pytest.approx(nees * m * (m - d - 2) / ((m - 1) * (m + 1)), rel=1e-10)


@pytest.mark.parametrize("d", [1, 3])
def test_neighbours_are_those_of_a_slow_search(rng: np.random.Generator, d: int) -> None:
    pool = rng.standard_normal((2, 30, d))
    pool[0, 3] = pool[0, 4] = pool[0, 5]  # copies
    white = whitened(pool) * np.sqrt(29.0)
    distances = left_out_distances(whitened(pool), 2)
    for b in range(2):
        for j in range(30):
            far = np.sort(np.linalg.norm(white[b] - white[b, j], axis=1))[2]
            assert distances[b, j] == pytest.approx(max(far, 1e-3), rel=1e-9)


def test_the_excess_of_a_right_ensemble_has_mean_0_and_the_variance_stated_for_every_shape(
    rng: np.random.Generator,
) -> None:
    n, m = 4000, 20

    def heavy(size: tuple[int, int]) -> np.ndarray:
        return rng.standard_t(3, size)

    normal = rng.standard_normal
    for draw in (normal, rng.standard_exponential, heavy):
        pool = np.asarray(draw((n, m + 1)))[..., None]
        white = whitened(pool)
        for surprise in (0.5 * left_out_nees(white), np.log(left_out_distances(white, 4))):
            exchanged_columns = exchanged(surprise)
            assert abs(exchanged_columns.excess.sum()) < 3.5 * np.sqrt(exchanged_columns.variance.sum())
            if draw is normal:
                assert exchanged_columns.excess.var() == pytest.approx(exchanged_columns.variance.mean(), rel=0.25)


@pytest.mark.parametrize(("m", "d"), [(20, 1), (100, 2), (30, 6)])
def test_a_right_ensemble_is_safe_and_one_too_narrow_is_not(rng: np.random.Generator, m: int, d: int) -> None:
    y, draws = rng.standard_normal((N, d)), rng.standard_normal((N, m, d))
    right, narrow = safecal.ensemble(y, draws).evaluate(), safecal.ensemble(y, draws / 1.5).evaluate()
    assert right.verdict.decision == "SAFE"
    assert [one.decision for one in right.verdict.looks] == ["SAFE", "SAFE"]
    assert narrow.verdict.decision == "UNSAFE"
    assert "Its spread is about 1." in narrow.verdict.reason
    assert narrow.ecd == pytest.approx(0.625 * d, rel=0.25)


def test_modes_that_are_too_narrow_are_unsafe_by_their_neighbours(rng: np.random.Generator) -> None:
    mode, modes = 2.0 * rng.choice([-1, 1], N), 2.0 * rng.choice([-1, 1], (N, 100))
    y, draws = mode + 0.3 * rng.standard_normal(N), modes + 0.1 * rng.standard_normal((N, 100))
    for predictions in (safecal.ensemble(y, draws), safecal.particles(y, draws)):
        verdict = predictions.evaluate().verdict
        assert [one.decision for one in verdict.looks] == ["SAFE", "UNSAFE"]
        assert verdict.decision == "UNSAFE"
        assert verdict.reason.startswith("by the neighbours of the outcome among the draws, the model is over-conf")
    assert safecal.particles(y, draws, method="moments").evaluate().verdict.decision == "UNDETERMINED"
    wide = safecal.particles(y, modes + 0.3 * rng.standard_normal((N, 100)), method="neighbours").evaluate().verdict
    assert wide.decision == "UNDETERMINED"
    assert "understate" in wide.reason


def test_particles_that_few_hold_are_seen_by_moments_alone(rng: np.random.Generator) -> None:
    cloud = rng.standard_normal((300, 50, 2))
    weight = np.full((300, 50), 0.4 / 47)
    weight[:, :3] = 0.2
    verdict = safecal.particles(np.zeros((300, 2)), cloud, weight).evaluate().verdict
    assert verdict.decision == "UNDETERMINED"
    assert "too few particles hold most of the weight" in verdict.reason


def test_too_few_draws_for_their_covariance_are_never_safe(rng: np.random.Generator) -> None:
    y = rng.standard_normal((N, 3))
    few = safecal.ensemble(y, rng.standard_normal((N, 7, 3)))
    assert few.evaluate().verdict.decision == "UNDETERMINED"
    assert "draw more than the number of components plus 4" in few.evaluate().verdict.reason
    assert repr(few) == "ensemble predictions: 2000 rows of 7 draws (neighbours)"
    assert safecal.ensemble(y, rng.standard_normal((N, 7, 3)) / 4).evaluate().verdict.decision == "UNSAFE"


def test_many_draws_are_thinned_for_neighbours_alone(rng: np.random.Generator) -> None:
    y, draws = rng.standard_normal((60, 2)), rng.standard_normal((60, 300, 2))
    predictions = safecal.ensemble(y, draws)
    assert predictions.score().excess.shape == (60,)
    assert predictions.others[0].n == 60
    assert predictions.take(np.arange(5)).others[0].n == 5
    joined = type(predictions).concatenate([predictions, predictions])
    assert joined.evaluate().verdict.looks[1].ecd.value == pytest.approx(predictions.others[0].ecd)
    with pytest.raises(SafecalError, match="of one form"):
        type(predictions).concatenate([predictions, safecal.ensemble(y[:, 0], draws[..., 0])])


def test_groups_and_clusters_of_forecasts(y: np.ndarray, rng: np.random.Generator) -> None:
    horizon = np.repeat([1, 2], N // 2)
    draws = rng.standard_normal((N, 50)) * np.where(horizon == 2, 0.5, 1.0)[:, None]
    result = safecal.ensemble(y, draws).evaluate(by=horizon, cluster=np.arange(N) // 5)
    assert result.verdict.decision == "UNSAFE"
    assert result.group_verdict(1).decision != "UNSAFE"


def test_draws_have_no_temperature_and_no_log_partition(y: np.ndarray, rng: np.random.Generator) -> None:
    predictions = safecal.ensemble(y, rng.standard_normal((N, 20)))
    with pytest.raises(SafecalError, match="no density of their own"):
        predictions.log_partition(1.0)
    assert np.isnan(predictions.evaluate().temperature.value)


Y = np.zeros(3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: safecal.intervals(Y, 1, 0, level=0.9), RangeError, "swapped"),
        (lambda: safecal.intervals(Y, 0, 1, level=0.3), RangeError, "cannot show over-confidence"),
        (lambda: safecal.intervals(Y, 0, 1, level=90), RangeError, "pass `level=0.9`"),
        (lambda: safecal.intervals(Y, 0, 1, level=1.0), RangeError, "nothing can show"),
        (lambda: safecal.intervals(Y, 0, 1, level=[0.9, 0.9, 0.2]), RangeError, "1 of 3 rows"),
        (lambda: safecal.intervals(Y, 0, 1, level=np.full((3, 1), 0.9)), SafecalError, "one for each row"),
        (lambda: safecal.intervals(Y, [0, 1], 1, level=0.9), ShapeError, "as many rows"),
        (lambda: safecal.intervals(Y, np.zeros((3, 1)), 1, level=0.9), ShapeError, r"shape \(n,\)"),
        (lambda: safecal.intervals(Y, [0, np.nan, 1], 1, level=0.9), MissingValueError, "NaN"),
        (lambda: safecal.intervals(Y[:, None], 0, 1, level=0.9), ShapeError, r"y_true\[:, 0\]"),
        (lambda: safecal.intervals([0, np.inf, 1], 0, 1, level=0.9), RangeError, "finite"),
        (lambda: safecal.quantiles(Y, np.zeros((3, 2)), levels=[0.4, 0.6]), FormError, "farther out"),
        (lambda: safecal.quantiles(Y, np.zeros((3, 2)), levels=[0.6, 0.4]), RangeError, "increase"),
        (lambda: safecal.quantiles(Y, np.zeros((3, 2)), levels=[5, 95]), RangeError, "percentages"),
        (lambda: safecal.quantiles(Y, np.zeros((3, 2)), levels=[0.0, 0.5]), RangeError, "leave 0 and 1 out"),
        (lambda: safecal.quantiles(Y, np.zeros((3, 1)), levels=[0.5]), ShapeError, "two or more"),
        (lambda: safecal.quantiles(Y, np.zeros((3, 3)), levels=[0.1, 0.9]), ShapeError, "one column for each"),
        (lambda: safecal.quantiles(Y, [[1, 0]] * 3, levels=[0.1, 0.9]), RangeError, "cross"),
        (lambda: safecal.ensemble(Y, np.zeros((3, 5))), CovarianceError, "nothing else can happen"),
        (
            lambda: safecal.ensemble(np.zeros((3, 2)), np.ones((3, 9, 2)) * np.arange(9)[:, None]),
            CovarianceError,
            "line",
        ),
        (lambda: safecal.ensemble(Y, np.zeros((9, 3))), ShapeError, r"draws\.T"),
        (lambda: safecal.ensemble(np.zeros((3, 2)), np.zeros((9, 3, 2))), ShapeError, "moveaxis"),
        (lambda: safecal.ensemble(Y, np.zeros((3, 2))), ShapeError, "at least 4"),
        (lambda: safecal.ensemble(np.zeros((3, 2, 2)), np.zeros((3, 9, 2))), ShapeError, r"\(n,\) or \(n, d\)"),
    ],
)
def test_what_cannot_be_a_forecast_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def cancelling(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return outcomes, and the standard deviations stated for them: too small where they are large, and vice versa."""
    stated = rng.uniform(0.2, 3.0, n)
    return np.where(stated > 1.6, 1.5, 0.6) * stated * rng.normal(size=n), stated


def test_wide_forecasts_that_are_too_narrow_do_not_hide_behind_narrow_ones(rng: np.random.Generator) -> None:
    y, stated = cancelling(12_000, rng)
    ends = np.outer(stated, [-1.2816, 0.0, 1.2816])
    for result in (
        safecal.intervals(y, ends[:, 0], ends[:, 2], level=0.8).evaluate(),
        safecal.quantiles(y, ends, levels=[0.1, 0.5, 0.9]).evaluate(),
    ):
        assert result.verdict.on_average == "SAFE"
        assert result.verdict.decision == "UNSAFE"
        assert "wide, " in result.verdict.reason
        again = safecal.Evaluation.from_dict(json.loads(json.dumps(result.to_dict())))
        assert again.verdict.reason == result.verdict.reason
        assert "width" in report_html(result)


def test_right_forecasts_of_any_width_are_safe_also_in_clusters(rng: np.random.Generator) -> None:
    stated = rng.uniform(0.2, 3.0, 6000)
    y, ends = stated * rng.normal(size=6000), np.outer(stated, [-1.2816, 0.0, 1.2816])
    for cluster in (None, np.arange(6000) // 20):
        for rows in (
            safecal.intervals(y, ends[:, 0], ends[:, 2], level=0.8),
            safecal.quantiles(y, ends, levels=[0.1, 0.5, 0.9]),
        ):
            assert rows.evaluate(cluster=cluster).verdict.decision == "SAFE"
    halves = [safecal.quantiles(y[k::2], ends[k::2], levels=[0.1, 0.5, 0.9]).tally() for k in (0, 1)]
    whole = safecal.quantiles(y, ends, levels=[0.1, 0.5, 0.9]).tally()
    assert np.array_equal((halves[0] + halves[1]).ordered.keys, whole.ordered.keys)
    open_ended = safecal.intervals([0.0, 1.0, 2.0], [-np.inf, 1.0, 0.0], [1.0, 1.0, np.inf], level=0.9)
    assert open_ended.tally().n == 3


def test_a_document_whose_forecast_was_changed_is_refused(rng: np.random.Generator) -> None:
    document = safecal.gaussian(rng.normal(size=50), np.zeros(50), std=1.0).evaluate().to_dict()
    document["forecast"]["crps"] *= 1.0 + 1e-9  # rounded otherwise, on another machine
    safecal.Evaluation.from_dict(document)
    document["forecast"]["crps"] *= 1.1
    with pytest.raises(safecal.errors.DocumentError, match="`forecast` must be what the sums give"):
        safecal.Evaluation.from_dict(document)


@pytest.mark.parametrize("d", [1, 3])
def test_outcomes_any_number_of_spreads_away_from_their_draws_are_unsafe(d: int, rng: np.random.Generator) -> None:
    draws, way = rng.normal(size=(40, 30, d)), rng.normal(size=(40, d))
    excess = []
    for far in (1e3, 1e5, 1e7, 1e9, 1e30, 1e200):
        x = far * way
        predictions = safecal.ensemble(x if d > 1 else x[:, 0], draws if d > 1 else draws[..., 0])
        excess.append(predictions.score().excess / far**2 if far < 1e100 else predictions.score().excess)
        assert predictions.evaluate().verdict.decision == "UNSAFE"
    for scaled in excess[1:5]:  # squared distances
        np.testing.assert_allclose(scaled, excess[1], rtol=1e-2)
    assert np.isinf(excess[5]).all(), "impossible by these draws"


@pytest.mark.parametrize("axes", [1, 2])
def test_a_document_without_squared_weights_is_refused(axes: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, axes)) if axes > 1 else rng.normal(size=50)
    document = safecal.gaussian(x, np.zeros_like(x), std=1.0).evaluate().to_dict()
    document["tally"]["forecast"]["sums"][1] = 0.0
    with pytest.raises(safecal.errors.DocumentError, match="must have the weight of its rows"):
        safecal.Evaluation.from_dict(document)
