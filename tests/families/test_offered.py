"""Distributions of other libraries are recognised by what they offer; nothing of theirs is imported."""

from types import SimpleNamespace

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
        found = safecal.density(y, Offers(law, table))
        np.testing.assert_allclose(found.score().excess, wanted.score().excess, rtol=1e-7, atol=1e-9)
        assert found.method == "quadrature"


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


@pytest.mark.extra
def test_the_distributions_of_numpyro(y: np.ndarray) -> None:
    numpyro = pytest.importorskip("numpyro.distributions")
    found = safecal.density(y, numpyro.Normal(MEAN, 0.6))
    assert found.ecd == pytest.approx(safecal.density(y, stats.norm(MEAN, 0.6)).ecd, abs=0.05)
    assert found.evaluate().verdict.decision == "UNSAFE"


@pytest.mark.extra
def test_the_predictions_of_statsmodels_recover_a_planted_factor(rng: np.random.Generator) -> None:
    sm = pytest.importorskip("statsmodels.api")
    x = sm.add_constant(rng.normal(size=1200))
    noise = np.where(np.arange(1200) < 600, 1.0, 1.46)  # noisier than where it was fitted
    y = x @ [1.0, 2.0] + noise * rng.normal(size=1200)
    prediction = sm.OLS(y[:600], x[:600]).fit().get_prediction(x[600:])
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
