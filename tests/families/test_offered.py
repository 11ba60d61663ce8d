"""Distributions of other libraries are recognised by what they offer; nothing of theirs is imported."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal.errors import FormError

N = 400
MEAN = np.linspace(-1.0, 1.0, N)


@pytest.fixture
def y(rng: np.random.Generator) -> np.ndarray:
    return MEAN + rng.standard_normal(N)


class Offers:
    """A log-density and quantiles, and nothing else."""

    def __init__(self, law: object, table: bool = False) -> None:
        self._law = law
        if table:
            self.shape = (N, 1)

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x)
        return self._law.logpdf(x[:, 0])[:, None] if hasattr(self, "shape") else self._law.logpdf(x)

    def quantile(self, p: np.ndarray) -> np.ndarray:
        return self._law.ppf(p)[:, None] if hasattr(self, "shape") else self._law.ppf(p)


@pytest.mark.parametrize("table", [False, True])
def test_a_log_density_with_quantiles_is_enough(y: np.ndarray, table: bool) -> None:
    for law in (stats.norm(MEAN, 0.6), stats.gumbel_r(MEAN, 0.7)):
        wanted = safecal.density(y, law)
        predictions = safecal.density(y, Offers(law, table))
        np.testing.assert_allclose(predictions.score().excess, wanted.score().excess, rtol=1e-7, atol=1e-9)
        assert predictions.method == "quadrature"


def test_what_holds_a_frozen_distribution_is_that(y: np.ndarray) -> None:
    law = stats.norm(MEAN, 0.6)
    assert safecal.density(y, SimpleNamespace(dist=law)).ecd == safecal.density(y, law).ecd


def test_a_prediction_with_the_error_of_an_outcome_is_that(y: np.ndarray) -> None:
    stated = SimpleNamespace(predicted_mean=MEAN, se_obs=np.full(N, 0.6), dist=stats.t, df=7.0)
    assert safecal.density(y, stated).ecd == safecal.density(y, stats.t(7.0, MEAN, 0.6)).ecd
    normal = SimpleNamespace(predicted_mean=MEAN, se_obs=np.full(N, 0.6))
    assert safecal.density(y, normal).ecd == safecal.density(y, stats.norm(MEAN, 0.6)).ecd
    with pytest.raises(FormError, match="not of a mean alone"):
        safecal.density(y, SimpleNamespace(predicted_mean=MEAN, se_mean=MEAN))


def test_a_log_density_without_quantiles_asks_for_a_sampler(y: np.ndarray) -> None:
    with pytest.raises(FormError, match="offers no quantiles"):
        safecal.density(y, SimpleNamespace(log_prob=np.abs))
    with pytest.raises(FormError, match="two functions"):
        safecal.density(y, SimpleNamespace(mean=0.0))


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (SimpleNamespace(log_likelihood=1, posterior=2), "how surprised it expected to be"),
        ({"posterior_predictive": 1}, "with the groups posterior_predictive"),
    ],
)
def test_groups_of_arviz_are_refused_with_what_to_pass_instead(held: Any, message: str, y: np.ndarray) -> None:
    for door in (safecal.density, safecal.ensemble):
        with pytest.raises(FormError, match=message) as refused:
            door(y, held)
        assert "safecal.ensemble(y_true, draws)" in str(refused.value)


class EveryAttribute:
    """As NGBoost's distributions: what they do not know is None."""

    def __init__(self, dist: Any) -> None:
        self.dist = dist

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dist, name, None)


def test_an_object_with_every_attribute_is_taken_for_what_it_holds(y: np.ndarray) -> None:
    held = stats.norm(MEAN, 0.6)
    assert safecal.density(y, EveryAttribute(held)).ecd == safecal.density(y, held).ecd


def test_predictions_of_the_rows_that_a_model_was_fitted_to_are_refused(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 50))
    slope, intercept = np.polyfit(x, y, 1)
    mean = slope * x + intercept
    scale = np.square(y - mean).sum() / 48
    own = SimpleNamespace(predicted_mean=mean, var_resid=np.full(50, scale), df=48.0, se_obs=np.full(50, scale**0.5))
    with pytest.raises(FormError, match="not fitted to"):
        safecal.density(y, own)
    assert safecal.density(y[::-1].copy(), own).n == 50
    own.var_resid = None
    assert safecal.density(y, own).n == 50


@pytest.mark.extra
def test_the_distributions_of_numpyro(y: np.ndarray) -> None:
    numpyro = pytest.importorskip("numpyro.distributions")
    predictions = safecal.density(y, numpyro.Normal(MEAN, 0.6))
    assert predictions.ecd == pytest.approx(safecal.density(y, stats.norm(MEAN, 0.6)).ecd, abs=0.05)
    assert predictions.evaluate().verdict.decision == "UNSAFE"


@pytest.mark.extra
def test_the_predictions_of_statsmodels_recover_a_planted_factor(rng: np.random.Generator) -> None:
    sm = pytest.importorskip("statsmodels.api")
    x = sm.add_constant(rng.normal(size=1200))
    noise = np.where(np.arange(1200) < 600, 1.0, 1.46)  # noisier than where it was fitted
    y = x @ [1.0, 2.0] + noise * rng.normal(size=1200)
    fitted = sm.OLS(y[:600], x[:600]).fit()
    with pytest.raises(FormError, match="not fitted to"):
        safecal.density(y[:600], fitted.get_prediction())
    prediction = fitted.get_prediction(x[600:])
    assert safecal.density(y[600:], prediction).evaluate().verdict.decision == "UNSAFE"
    spread = safecal.gaussian(y[600:], prediction.predicted_mean, std=prediction.se_obs).evaluate().forecast.spread
    assert spread.low < 1.46 < spread.high


@pytest.mark.extra
def test_the_intervals_of_crepes_hold(rng: np.random.Generator) -> None:
    crepes = pytest.importorskip("crepes")
    y = rng.normal(size=3000)
    fitted = crepes.ConformalRegressor()
    fitted.fit(residuals=y[:1000])
    ends = fitted.predict_int(np.zeros(2000), confidence=0.9)
    assert safecal.intervals(y[1000:], ends[:, 0], ends[:, 1], level=0.9).evaluate().verdict.decision == "SAFE"
    narrow = safecal.intervals(y[1000:], ends[:, 0] / 1.46, ends[:, 1] / 1.46, level=0.9).evaluate()
    assert narrow.verdict.decision == "UNSAFE"


@pytest.mark.extra
def test_the_intervals_of_mapie_hold(rng: np.random.Generator) -> None:
    regression = pytest.importorskip("mapie.regression")
    linear = pytest.importorskip("sklearn.linear_model")
    x = rng.normal(size=(3000, 1))
    y = x[:, 0] + rng.normal(size=3000)
    fitted = regression.SplitConformalRegressor(linear.LinearRegression(), confidence_level=0.9, prefit=False)
    fitted = fitted.fit(x[:500], y[:500]).conformalize(x[500:1000], y[500:1000])
    centre, ends = fitted.predict_interval(x[1000:])
    low, high = ends[:, 0, 0], ends[:, 1, 0]
    assert safecal.intervals(y[1000:], low, high, level=0.9).evaluate().verdict.decision == "SAFE"
    low, high = (centre + (end - centre) / 1.46 for end in (low, high))
    narrow = safecal.intervals(y[1000:], low, high, level=0.9).evaluate()
    assert narrow.verdict.decision == "UNSAFE"
