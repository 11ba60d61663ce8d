"""What forecasters expect beside ECD: coverage, transform, CRPS, interval score, sharpness, bias, spread."""

import json
from collections import Counter

import jsonschema
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import safecal
from safecal._kernels.ensemble import crps_of_draws, interval_score, rank_among
from safecal._kernels.states import crps_of_normal
from safecal._sums.forecasts import LEVELS, ForecastSums, VectorSums
from safecal.errors import DocumentError, UnavailableError
from safecal.inference.forecasts import Forecast
from safecal.plot import DirectionsDisplay, TransformDisplay
from safecal.report import report_html

mpl.use("agg")
N = 4000


@pytest.fixture
def y(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(N)


@pytest.mark.extra
def test_scores_are_those_of_scoringrules(rng: np.random.Generator) -> None:
    scoringrules = pytest.importorskip("scoringrules")
    y, mean, std = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.2, 3.0, 50)
    crps = crps_of_normal((y - mean) / std, std)
    np.testing.assert_allclose(crps, scoringrules.crps_normal(y, mean, std), rtol=1e-12, atol=1e-13)
    draws = mean[:, None] + std[:, None] * rng.normal(size=(50, 21))
    wanted = scoringrules.crps_ensemble(y, draws, estimator="nrg")
    np.testing.assert_allclose(crps_of_draws(y, draws), wanted, rtol=1e-12, atol=1e-13)
    wanted = scoringrules.interval_score(y, mean - std, mean + std, 0.1)
    np.testing.assert_allclose(interval_score(y, mean - std, mean + std, 0.9), wanted, rtol=1e-12)
    result = safecal.gaussian(y, mean, std=std).evaluate().forecast
    assert result is not None
    z = stats.norm.ppf(0.95)
    score = scoringrules.interval_score(y, mean - z * std, mean + z * std, 0.1).mean()
    assert result.coverage[2].score == pytest.approx(score, rel=1e-12)
    assert result.crps == pytest.approx(crps.mean(), rel=1e-12)


def test_coverage_has_the_exact_interval_of_a_share(y: np.ndarray) -> None:
    forecast = safecal.gaussian(y, np.zeros(N), std=0.7).evaluate().forecast
    assert forecast is not None
    for held in forecast.coverage:
        inside = int((np.abs(y) <= 0.7 * stats.norm.ppf(0.5 + held.level / 2)).sum())
        wanted = stats.binomtest(inside, N).proportion_ci(0.95, method="exact")
        assert held.share.value == pytest.approx(inside / N, abs=1e-12)
        assert (held.share.low, held.share.high) == pytest.approx((wanted.low, wanted.high), rel=1e-9)
        assert held.width == pytest.approx(1.4 * stats.norm.ppf(0.5 + held.level / 2))
    assert forecast.sharpness == pytest.approx(0.7)


def test_the_factor_is_said_in_words(y: np.ndarray) -> None:
    narrow, wide, right = (safecal.gaussian(y, np.zeros(N), std=std).evaluate() for std in (0.685, 1.46, y.std()))
    assert narrow.forecast is not None
    assert wide.forecast is not None
    assert right.forecast is not None
    assert "standard deviations 1.46 times too small (1.4" in str(narrow)
    assert "standard deviations 1.46 times too large (1.4" in str(wide)
    assert max(map(len, str(narrow).splitlines())) <= 80
    assert right.forecast.said == "its standard deviations are about right"
    assert narrow.forecast.spread.low < 1.0 / 0.685 < narrow.forecast.spread.high


def test_bias_is_in_units_of_the_stated_spread(y: np.ndarray) -> None:
    forecast = safecal.gaussian(y + 0.2, np.zeros(N), std=1.0).evaluate().forecast
    assert forecast is not None
    assert forecast.bias.low < 0.2 < forecast.bias.high
    assert forecast.bias.low > 0.1


def test_the_transform_of_right_forecasts_is_even_and_its_band_holds(rng: np.random.Generator) -> None:
    y = rng.standard_normal(N)
    for right in (safecal.gaussian(y, np.zeros(N), std=1.0), safecal.ensemble(y, rng.standard_normal((N, 19)))):
        forecast = right.evaluate().forecast
        assert forecast is not None
        assert stats.chisquare(forecast.ranks * N).pvalue > 1e-3
        low, high = forecast.band
        assert ((forecast.ranks >= low) & (forecast.ranks <= high)).mean() > 0.85
    many = safecal.gaussian(np.tile(y, 26), np.zeros(26 * N), std=1.0).evaluate().forecast
    assert many is not None
    assert many.band[0] < 1 / 40 < many.band[1]


def test_an_outcome_among_equal_draws_has_a_rank_by_chance() -> None:
    y, draws = np.zeros(3), np.zeros((3, 4))
    np.testing.assert_allclose(rank_among(y, draws, np.array([0.0, 0.5, 0.999])), [0.0, 0.5, 0.999])
    np.testing.assert_allclose(rank_among(y, draws + [[-1], [1], [1]], np.zeros(3)), [0.8, 0.0, 0.0])


def test_every_surface_shows_it(y: np.ndarray, rng: np.random.Generator) -> None:
    for result in (
        safecal.gaussian(y, np.zeros(N), std=0.7).evaluate(),
        safecal.ensemble(y, 0.7 * rng.standard_normal((N, 30))).evaluate(),
    ):
        document = result.to_dict()
        again = safecal.Evaluation.from_dict(document)
        assert again == result
        assert again.forecast is not None
        assert again.forecast.said == document["forecast"]["said"]
        for shown in (str(result), result._repr_html_(), report_html(result)):
            assert "CRPS" in shown
            assert "times too small" in shown
        assert "Where outcomes fall in their forecasts" in report_html(result)
        display = TransformDisplay.from_evaluation(result)
        assert display.share[0] > display.band[1]
        assert result.plot("transform", name="a").axes


def test_sums_merge_and_weights_count(y: np.ndarray, rng: np.random.Generator) -> None:
    whole = safecal.gaussian(y, np.zeros(N), std=1.0).tally().forecast
    parts = [safecal.gaussian(part, np.zeros(len(part)), std=1.0).tally() for part in np.split(y, 4)]
    merged = sum(parts[1:], parts[0]).forecast
    assert whole is not None
    assert merged is not None
    np.testing.assert_allclose(merged.sums, whole.sums, rtol=1e-12)
    twice = safecal.gaussian(y, np.zeros(N), std=1.0).evaluate(sample_weight=np.full(N, 2.0)).forecast
    once = safecal.gaussian(y, np.zeros(N), std=1.0).evaluate().forecast
    assert once is not None
    assert twice is not None
    assert twice.coverage[0].share.low == pytest.approx(once.coverage[0].share.low)
    clustered = safecal.gaussian(y, np.zeros(N), std=1.0).evaluate(cluster=np.arange(N) // 4).forecast
    assert clustered is not None
    assert clustered.coverage[0].share.method == "none: rows depend on each other"
    assert "no interval" in str(safecal.gaussian(y, np.zeros(N), std=1.0).evaluate(cluster=np.arange(N) // 4))


def test_classes_have_none() -> None:
    classes = safecal.evaluate([0, 1, 1], [0.2, 0.6, 0.7])
    assert classes.forecast is None
    with pytest.raises(UnavailableError, match="no forecasts of numbers or vectors"):
        classes.plot("transform")


def test_one_row_and_outcomes_beyond_every_float_are_no_accident() -> None:
    one = safecal.gaussian([0.5], [0.0], std=1.0).evaluate().forecast
    assert one is not None
    assert one.spread.high == np.inf
    far = safecal.gaussian([0.5, 1e300], [0.0, 0.0], std=[1.0, 1e-300]).evaluate().forecast
    assert far is not None
    assert far.sharpness == pytest.approx(1.0)
    assert safecal.gaussian([1e300], [0.0], std=1e-300).evaluate().forecast is None


def test_sums_that_no_rows_have_are_refused() -> None:
    sums = safecal.gaussian([0.5, 0.1], [0.0, 0.0], std=1.0).tally().forecast
    assert sums is not None
    assert ForecastSums.from_dict(sums.to_dict()) == sums
    assert sums != 3
    assert "crps" in repr(sums)
    document = sums.to_dict()
    document["ranks"][0] += 5
    with pytest.raises(DocumentError, match="weight of its rows"):
        ForecastSums.from_dict(document)
    assert len(LEVELS) == 4


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (0.0, "far too large"),
        (1e150, "times too small"),
        (3.0, "times too small"),
        (1.0, "about right"),
        (0.5, "too large"),
    ],
)
def test_the_factor_is_said_also_where_it_has_no_end(error: float, words: str) -> None:
    signs = np.tile([error, -error], 20)
    forecast = safecal.gaussian(signs, np.zeros(40), std=1.0).evaluate(rule="average").forecast
    assert forecast is not None
    assert words in forecast.said


CORRELATED = np.linalg.cholesky([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])


def test_an_axis_whose_spread_is_too_small_is_found_and_named(rng: np.random.Generator) -> None:
    x = rng.normal(size=(N, 3)) * [1.0, 3.1, 1.0]
    result = safecal.gaussian(x, np.zeros((N, 3)), std=[1.0, 1.0, 1.0]).evaluate()
    assert result.forecast is not None
    vector = result.forecast.vector
    assert vector is not None
    assert vector.spread[1].low < 3.1 < vector.spread[1].high
    assert vector.largest.factor.low < 3.1 < vector.largest.factor.high
    assert vector.largest.along[1] > 0.99
    text = str(result)
    assert "along axis 1 (" in text
    assert ") along axis 1\n" in text
    assert max(map(len, text.splitlines())) <= 84
    page = report_html(result)
    assert "Along which axis is it too narrow?" in page
    assert "widest direction" in page


def test_correlations_and_bias_of_vectors_are_told_beside_what_was_stated(rng: np.random.Generator) -> None:
    x = rng.normal(size=(N, 3)) @ CORRELATED.T + [0.0, 0.0, 0.4]
    result = safecal.gaussian(x, np.zeros((N, 3)), std=1.0).evaluate()
    assert result.forecast is not None
    vector = result.forecast.vector
    assert vector is not None
    assert vector.farthest is not None
    assert vector.farthest.axes == (0, 1)
    assert vector.farthest.seen.low < 0.6 < vector.farthest.seen.high
    assert vector.largest.factor.low < np.sqrt(1.6) < vector.largest.factor.high
    assert vector.smallest.factor.low < np.sqrt(0.4) < vector.smallest.factor.high
    np.testing.assert_allclose(np.abs(vector.largest.along[:2]), np.sqrt(0.5), atol=0.08)
    assert "of axes 0 and 1" in str(result)
    assert "along axis 2 (0.3" in str(result)
    right = safecal.gaussian(x - [0.0, 0.0, 0.4], np.zeros((N, 3)), chol=CORRELATED).evaluate().forecast
    assert right is not None
    assert right.vector is not None
    assert right.vector.farthest is None


def test_ellipsoids_hold_as_often_as_chi_square_says(rng: np.random.Generator) -> None:
    result = safecal.gaussian(rng.normal(size=(N, 2)), np.zeros((N, 2)), std=1.0).evaluate()
    assert result.forecast is not None
    for held in result.forecast.coverage:
        assert held.share.method == "Clopper-Pearson"
        assert held.share.low < held.level < held.share.high
    nees = 2.0 * safecal.gaussian([[3.0, 4.0]], [[0.0, 0.0]], std=2.0).score().excess + 2.0
    far = safecal.gaussian([[3.0, 4.0]], [[0.0, 0.0]], std=2.0).tally().forecast
    assert far is not None
    assert far.ranks.argmax() == int(stats.chi2(2).cdf(nees[0]) * 40)


def test_every_form_of_a_covariance_has_the_same_directions_and_sums_merge(rng: np.random.Generator) -> None:
    x, cov = rng.normal(size=(N, 3)), CORRELATED @ CORRELATED.T
    forms = {"cov": cov, "chol": CORRELATED, "precision": np.linalg.inv(cov)}
    sums = [safecal.gaussian(x, np.zeros((N, 3)), **{name: value}).tally().forecast for name, value in forms.items()]
    by_row = np.broadcast_to(cov, (N, 3, 3))
    halves = [safecal.gaussian(x[k::2], np.zeros((N // 2, 3)), cov=by_row[k::2]).tally() for k in (0, 1)]
    for one in (*sums[1:], (halves[0] + halves[1]).forecast):
        assert isinstance(one, VectorSums)
        for name in ("ranks", "sums", "matrices"):
            np.testing.assert_allclose(getattr(one, name), getattr(sums[0], name), rtol=1e-9, atol=1e-8)


def test_documents_hold_directions_and_refuse_sums_that_no_errors_have(rng: np.random.Generator) -> None:
    result = safecal.gaussian(rng.normal(size=(200, 2)), np.zeros((200, 2)), std=0.5).evaluate()
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    jsonschema.validate(document, safecal.Evaluation.json_schema())
    assert safecal.Evaluation.from_dict(document).tally == result.tally
    assert repr(result.tally.forecast) == "VectorSums(2 axes)"
    for spoil in (
        lambda sums: sums["matrices"][0][0].__setitem__(0, -1.0),
        lambda sums: sums["matrices"][1][0].__setitem__(1, 1e6),
        lambda sums: sums["matrices"][0].append([0.0, 0.0]),
        lambda sums: sums["ranks"].__setitem__(0, 1e6),
    ):
        spoiled = json.loads(json.dumps(document))
        spoil(spoiled["tally"]["forecast"])
        with pytest.raises(DocumentError):
            safecal.Evaluation.from_dict(spoiled)
    other = safecal.gaussian(rng.normal(size=(200, 3)), np.zeros((200, 3)), std=0.5).tally().to_dict()["forecast"]
    document["tally"]["forecast"] = other
    with pytest.raises(DocumentError, match="dimension"):
        safecal.Evaluation.from_dict(document)


def test_vectors_in_clusters_and_in_many_dimensions_have_no_bounds_of_directions(rng: np.random.Generator) -> None:
    x = 3.0 * rng.normal(size=(400, 2))
    result = safecal.gaussian(x, np.zeros((400, 2)), std=1.0).evaluate(cluster=np.arange(400) // 4)
    assert result.forecast is not None
    assert result.forecast.vector is not None
    assert result.forecast.vector.largest.factor.low == 0.0
    assert "(no interval)" in str(result)
    assert safecal.gaussian(rng.normal(size=(50, 17)), np.zeros((50, 17)), std=1.0).evaluate().forecast is None
    few = safecal.gaussian([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0]] * 2, std=1.0).evaluate().forecast
    assert few is not None
    assert few.vector is not None
    assert few.vector.largest.factor.high == np.inf
    display = DirectionsDisplay.from_evaluation(result)
    assert display.labels == ("axis 0", "axis 1", "widest direction", "narrowest")
    assert display.factors == (*result.forecast.vector.spread, *(
        one.factor for one in (result.forecast.vector.largest, result.forecast.vector.smallest)
    ))  # fmt: skip
    plt.close(display.figure_)
    with pytest.raises(UnavailableError, match="no directions"):
        safecal.gaussian([1.0, 2.0], [0.0, 0.0], std=1.0).evaluate().plot("directions")


@pytest.mark.proof
@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_no_direction_of_a_right_forecast_is_called_wrong_by_chance(tails: str, rng: np.random.Generator) -> None:
    wrong = Counter[str]()
    runs = 300
    for _ in range(runs):
        n, d = 100, 4
        x = rng.normal(size=(n, d)) if tails == "normal" else rng.standard_t(5, (n, d)) * np.sqrt(0.6)
        forecast = Forecast.of(safecal.gaussian(x, np.zeros((n, d)), std=1.0).tally(), 0.95)
        assert forecast is not None
        vector = forecast.vector
        assert vector is not None
        wrong["widest"] += vector.largest.factor.low > 1.0
        wrong["narrowest"] += vector.smallest.factor.high < 1.0
        wrong["axis"] += any(x.low > 1.0 or x.high < 1.0 for x in vector.spread)
        wrong["correlation"] += vector.farthest is not None
        wrong["bias"] += any(x.low > 0.0 or x.high < 0.0 for x in vector.bias)
    most = runs * (0.05 + 3.0 * np.sqrt(0.05 * 0.95 / runs))
    assert all(count <= most for count in wrong.values()), wrong
