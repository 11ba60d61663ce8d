"""What forecasters expect of draws, of vectors and of densities, too: ranks among them, and each axis by itself."""

import json

import jsonschema
import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

import safecal
from safecal._kernels.ensemble import crps_of_draws, left_out_errors
from safecal._kernels.states import crps_of_normal
from safecal._sums.forecasts import LEVELS, DrawSums, read_sums
from safecal.errors import DocumentError
from safecal.families.ensemble import draws_kept, score_draws
from safecal.inference.forecasts import Forecast
from safecal.plot import DirectionsDisplay, TransformDisplay
from safecal.report import report_html

mpl.use("agg")
N, M, D = 3000, 30, 3


def drawn(rng: np.random.Generator, scale: object = 1.0, shift: object = 0.0, n: int = N) -> safecal.Predictions:
    """Draw vectors whose axes go together, and outcomes that are farther out."""
    mix = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.5, 2.0]])
    centre = rng.normal(size=(n, 1, D))
    y = centre[:, 0] + shift + (rng.normal(size=(n, D)) * scale) @ mix.T
    return safecal.ensemble(y, centre + rng.normal(size=(n, M, D)) @ mix.T)


def seen(predictions: safecal.Predictions) -> Forecast:
    forecast = predictions.evaluate(rule="average").forecast
    assert forecast is not None
    return forecast


@pytest.mark.extra
def test_each_axis_has_the_scores_of_scoringrules(rng: np.random.Generator) -> None:
    scoringrules = pytest.importorskip("scoringrules")
    y, draws = rng.normal(size=(60, D)), rng.normal(size=(60, M, D))
    forecast = seen(safecal.ensemble(y, draws))
    for k, axis in enumerate(forecast.axes):
        wanted = scoringrules.crps_ensemble(y[:, k], draws[..., k], estimator="nrg").mean()
        assert axis.crps == pytest.approx(wanted, rel=1e-12)


def test_each_axis_is_what_its_draws_alone_are(rng: np.random.Generator) -> None:
    y, draws = rng.normal(size=(200, D)), 0.8 * rng.normal(size=(200, M, D))
    forecast = seen(safecal.ensemble(y, draws))
    assert len(forecast.axes) == D
    for k, axis in enumerate(forecast.axes):
        alone = seen(safecal.ensemble(y[:, k], draws[..., k]))
        np.testing.assert_array_equal(axis.ranks, alone.ranks)
        assert (axis.crps, axis.sharpness, axis.bias.value) == (alone.crps, alone.sharpness, alone.bias.value)
        assert axis.spread.low < alone.spread.low < alone.spread.high < axis.spread.high  # all axes hold together


@pytest.mark.parametrize("shape", ["normal", "skewed", "heavy"])
def test_ranks_of_right_draws_are_even_whatever_their_shape(shape: str, rng: np.random.Generator) -> None:
    law = {"normal": rng.normal, "skewed": rng.standard_exponential, "heavy": lambda size: rng.standard_t(3, size)}
    y, draws = law[shape](size=(N, 2)), law[shape](size=(N, 12, 2))
    forecast = seen(safecal.ensemble(y, draws))
    for one in (forecast, *forecast.axes):
        assert stats.chisquare(one.ranks * N).pvalue > 1e-3
        assert all(c.share.low - 0.02 < c.level < c.share.high + 0.02 for c in one.coverage)
        assert one.spread.low - 0.05 < 1.0 < one.spread.high + 0.05


def test_a_factor_that_was_planted_lies_in_its_interval(rng: np.random.Generator) -> None:
    held = np.zeros(1 + D)
    for _ in range(30):
        forecast = seen(drawn(rng, 1.46, n=300))
        held += [one.spread.low < 1.46 < one.spread.high for one in (forecast, *forecast.axes)]
    assert held.min() >= 25
    assert "times too small" in forecast.said


def test_an_axis_and_a_bias_that_were_planted_are_found(rng: np.random.Generator) -> None:
    forecast = seen(drawn(rng, [1.0, 1.0, 2.0], [0.3, 0.0, 0.0]))
    assert forecast.axes[2].spread.low > 1.5
    assert abs(forecast.axes[1].spread.value - 1.0) < 0.06
    assert forecast.axes[0].bias.low < 0.3 < forecast.axes[0].bias.high
    assert forecast.coverage[2].share.high < 0.9
    assert np.isnan([forecast.crps, forecast.sharpness, forecast.bias.value]).all()


def test_every_surface_shows_it(rng: np.random.Generator) -> None:
    result = drawn(rng, [1.0, 1.0, 2.0], [0.3, 0.0, 0.0], n=800).evaluate()
    document = json.loads(json.dumps(result.to_dict()))
    jsonschema.Draft202012Validator(safecal.Evaluation.json_schema()).validate(document)
    assert safecal.Evaluation.from_dict(document) == result
    text, page = str(result), report_html(result)
    for shown in (text, page, result._repr_html_()):
        assert "along axis 2" in shown
        assert "of the draws, 0." in shown
        assert "CRPS" in shown
    assert "Where do outcomes fall along axis 2?" in page
    assert "bars that rise mean that it is too narrow" in page
    assert DirectionsDisplay.from_evaluation(result).labels == ("axis 0", "axis 1", "axis 2")
    assert TransformDisplay.from_evaluation(result).share[-1] > 1 / 20
    document["forecast"]["axes"][0]["crps"] *= 2
    with pytest.raises(DocumentError, match="what the sums give"):
        safecal.Evaluation.from_dict(document)


def test_sums_merge_weights_count_and_clusters_have_no_interval(rng: np.random.Generator) -> None:
    whole = drawn(rng, 1.3, n=400)
    parts = [whole.take(np.arange(k, k + 100)).tally() for k in range(0, 400, 100)]
    merged, one = sum(parts[1:], parts[0]).forecast, whole.tally().forecast
    assert isinstance(merged, DrawSums)
    assert isinstance(one, DrawSums)
    np.testing.assert_allclose(merged.sums, one.sums, rtol=1e-12)
    np.testing.assert_array_equal(merged.ranks, one.ranks)
    joined = type(whole).concatenate([whole.take(np.arange(200)), whole.take(np.arange(200, 400))])
    assert joined.tally().forecast == one
    plain, twice = seen(whole), whole.evaluate(sample_weight=np.full(400, 2.0)).forecast
    assert twice is not None
    assert twice.spread.low == pytest.approx(plain.spread.low)
    clustered = whole.evaluate(cluster=np.arange(400) // 4)
    assert clustered.forecast is not None
    assert clustered.forecast.spread.method == "none: rows depend on each other"
    assert "(no interval)" in str(clustered)
    single = whole.take(np.arange(1)).evaluate().forecast
    assert single is not None
    assert single.spread.high == np.inf


def test_few_draws_and_many_axes_have_none(rng: np.random.Generator) -> None:
    assert safecal.ensemble(rng.normal(size=20), rng.normal(size=(20, 5))).evaluate().forecast is None
    assert safecal.ensemble(rng.normal(size=(20, 3)), rng.normal(size=(20, 7, 3))).evaluate().forecast is None
    assert safecal.ensemble(rng.normal(size=(20, 17)), rng.normal(size=(20, 40, 17))).evaluate().forecast is None


def test_sums_that_no_rows_have_are_refused(rng: np.random.Generator) -> None:
    sums = drawn(rng, n=50).tally().forecast
    assert isinstance(sums, DrawSums)
    assert read_sums(sums.to_dict()) == sums
    assert sums != 3
    assert repr(sums) == "DrawSums(3 axes)"
    for name, place, wrong in (("ranks", 0, 9.0), ("sums", 1, 1e9)):
        document = json.loads(json.dumps(sums.to_dict()))
        document[name][place] = wrong
        with pytest.raises(DocumentError):
            DrawSums.from_dict(document)
    document = json.loads(json.dumps(drawn(rng, n=50).evaluate().to_dict()))
    document["tally"]["forecast"]["axes"].pop()
    with pytest.raises(DocumentError, match="along each axis"):
        safecal.Evaluation.from_dict(document)
    document["tally"]["forecast"]["distances"].pop()
    with pytest.raises(DocumentError, match="3 axes"):
        safecal.Evaluation.from_dict(document)
    assert len(LEVELS) == 4


def test_the_bias_of_right_draws_is_none_whatever_their_shape(rng: np.random.Generator) -> None:
    y, draws = rng.standard_exponential(20_000), rng.standard_exponential((20_000, 12))
    forecast = seen(safecal.ensemble(y, draws))
    assert forecast.bias.low < 0.0 < forecast.bias.high
    assert forecast.spread.low < 1.0 < forecast.spread.high


def test_left_out_errors_and_quantiles_are_those_of_a_loop(rng: np.random.Generator) -> None:
    draws = rng.gamma(2.0, size=(3, 9))
    for row, errors in zip(draws, left_out_errors(draws), strict=True):
        for k in range(9):
            others = np.delete(row, k)
            assert errors[k] == pytest.approx((row[k] - others.mean()) / others.std(ddof=1), rel=1e-9)
    columns = score_draws(draws[:, :1], draws[:, 1:, None])
    assert columns is not None
    width = np.subtract(*np.quantile(draws[:, 1:], (0.95, 0.05), axis=1))
    np.testing.assert_allclose(columns[1 + 3 * 2 + 4 + 2], width, rtol=1e-12)


CENTRE = np.linspace(-2.0, 2.0, N)
DENSITIES = {
    "normal": lambda rng, c: safecal.density(CENTRE + c * rng.normal(size=N), stats.norm(CENTRE, 1.0)),
    "skewed": lambda rng, c: safecal.density(c * rng.standard_exponential(N), stats.expon()),
    "heavy": lambda rng, c: safecal.density(c * rng.standard_t(4, N), stats.t(4)),
    "a pair of functions": lambda rng, c: safecal.density(
        c * rng.laplace(size=N), log_density=lambda x: -np.abs(x), sampler=lambda own: own.laplace(size=N), rng=0
    ),
    "two components": lambda rng, c: safecal.density(
        c * rng.normal(size=(N, 2)), stats.multivariate_normal([0.0, 0.0], np.eye(2))
    ),
}


@pytest.mark.parametrize("kind", DENSITIES)
def test_densities_are_looked_at_by_their_draws(kind: str, rng: np.random.Generator) -> None:
    right = seen(DENSITIES[kind](rng, 1.0))
    assert stats.chisquare(right.ranks * N).pvalue > 1e-3
    assert right.spread.low - 0.03 < 1.0 < right.spread.high + 0.03
    assert all(abs(c.share.value - c.level) < 0.03 for c in right.coverage)
    narrow = DENSITIES[kind](rng, 1.5)
    forecast = seen(narrow)
    assert forecast.spread.low > 1.2
    assert forecast.coverage[2].share.high < 0.9 - 0.01 * (kind == "normal")
    assert seen(narrow).crps == pytest.approx(forecast.crps, nan_ok=True)  # the same rows, the same answer
    assert len(forecast.axes) == (2 if kind == "two components" else 0)


def test_the_crps_of_a_density_is_that_of_its_law_on_average(rng: np.random.Generator) -> None:
    y = CENTRE + rng.normal(size=N)
    forecast = seen(safecal.density(y, stats.norm(CENTRE, 1.0)))
    assert forecast.crps == pytest.approx(crps_of_normal(y - CENTRE, np.ones(N)).mean(), abs=0.006)
    few, many = rng.normal(size=(N, 5)), rng.normal(size=(N, 200))
    fair = crps_of_draws(y - CENTRE, few, fair=True).mean()
    assert fair == pytest.approx(crps_of_draws(y - CENTRE, many).mean(), abs=0.02)
    assert crps_of_draws(y - CENTRE, few).mean() > fair + 0.05


def test_counts_labels_and_shares_have_none(rng: np.random.Generator) -> None:
    counts = safecal.density(rng.poisson(3.0, 200), stats.poisson(3.0))
    shares = safecal.density(rng.dirichlet([1.0, 2.0, 3.0], 200), stats.dirichlet([1.0, 2.0, 3.0]))
    few = safecal.density(
        rng.normal(size=200), log_density=lambda x: -x * x / 2, sampler=lambda own: own.normal(size=200), draws=8, rng=0
    )
    for one in (counts, shares, few):
        assert one.evaluate().forecast is None
    many = np.broadcast_to(np.zeros(1), (2_000_000,))
    assert draws_kept(many, 64) == 0
    assert draws_kept(many[:1_000_000], 64) == 16
