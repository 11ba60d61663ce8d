"""Densities against slow, obvious integrals and sums at 30 digits."""

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from safecal.errors import UnavailableError
from safecal.families.density import density
from safecal.families.distributions import adapt

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]  # nearly all of it is the reference

X = np.array([0.25, 0.5, 0.75])


def _moments(expect: Callable[[Callable[[Any], Any]], Any]) -> tuple[float, float, float]:
    """Return entropy, varentropy and third cumulant from an expectation of functions of the log-density."""
    with mp.workdps(30):
        h = -expect(lambda log_f: log_f)
        v = expect(lambda log_f: (log_f + h) ** 2)
        k3 = -expect(lambda log_f: (log_f + h) ** 3)
        return float(h), float(v), float(k3)


def _line(log_f: Callable[[Any], Any], points: list[float]) -> tuple[float, float, float]:
    return _moments(lambda g: mp.quad(lambda x: mp.exp(log_f(x)) * g(log_f(x)), points))


def _positive(log_f: Callable[[Any], Any], points: list[float]) -> tuple[float, float, float]:
    """As `_line`, in ``y = log x``."""
    return _moments(lambda g: mp.quad(lambda y: mp.exp(log_f(mp.exp(y)) + y) * g(log_f(mp.exp(y))), points))


def _log_t(df: float) -> Callable[[Any], Any]:
    constant = mp.loggamma((df + 1) / 2) - mp.loggamma(mp.mpf(df) / 2) - mp.log(df * mp.pi) / 2
    return lambda x: constant - mp.mpf(df + 1) / 2 * mp.log1p(x**2 / df)


def _log_gamma(a: float) -> Callable[[Any], Any]:
    return lambda x: (mp.mpf(a) - 1) * mp.log(x) - x - mp.loggamma(mp.mpf(a))


def _arcsine() -> tuple[float, float, float]:
    # x = sin(a)**2 has this law when a is uniform on (0, pi/2).
    def log_f(a: Any) -> Any:
        return -mp.log(mp.pi * mp.sin(a) * mp.cos(a))

    return _moments(lambda g: mp.quad(lambda a: g(log_f(a)), [0, mp.pi / 4, mp.pi / 2]) * 2 / mp.pi)


def _log_normal(x: Any) -> Any:
    return -mp.log(2 * mp.pi) / 2 - x**2 / 2


WIDE = [-60, -10, 0, 10, 60]
HEAVY = [-mp.inf, -1, 0, 1, mp.inf]

CASES: dict[str, tuple[Any, Callable[[], tuple[float, float, float]]]] = {
    "normal": (stats.norm(1.0, 3.0), lambda: _line(lambda x: _log_normal(x / 3) - mp.log(3), [-60, 0, 60])),
    "exponential": (stats.expon(scale=2.0), lambda: _line(lambda x: -x / 2 - mp.log(2), [0, 10, 200])),
    "laplace": (stats.laplace(), lambda: _line(lambda x: -abs(x) - mp.log(2), WIDE + [100])),
    "gamma": (stats.gamma(2.5), lambda: _positive(_log_gamma(2.5), [-40, -5, 0, 5])),
    "spiked gamma": (stats.gamma(0.1), lambda: _positive(_log_gamma(0.1), [-900, -300, -100, -20, 0, 5])),
    "beta": (stats.beta(2.0, 3.0), lambda: _line(lambda x: mp.log(12 * x * (1 - x) ** 2), [0, 0.5, 1])),
    "arcsine": (stats.beta(0.5, 0.5), _arcsine),
    "t1": (stats.t(1.0), lambda: _line(_log_t(1), HEAVY)),
    "t2": (stats.t(2.0), lambda: _line(_log_t(2), HEAVY)),
    "t3": (stats.t(3.0), lambda: _line(_log_t(3), HEAVY)),
    "cauchy": (stats.cauchy(), lambda: _line(_log_t(1), HEAVY)),
    "lognormal": (
        stats.lognorm(1.5),
        lambda: _positive(lambda x: _log_normal(mp.log(x) / 1.5) - mp.log(1.5 * x), [-40, -5, 0, 5, 40]),
    ),
    "uniform": (stats.uniform(-1.0, 3.0), lambda: (float(mp.log(3)), 0.0, 0.0)),
    "logistic": (stats.logistic(), lambda: _line(lambda x: -x - 2 * mp.log1p(mp.exp(-x)), [-100, -10, 0, 10, 100])),
    "gumbel": (stats.gumbel_r(), lambda: _line(lambda x: -x - mp.exp(-x), [-6, 0, 5, 20, 100])),
    "weibull": (
        stats.weibull_min(0.7),
        lambda: _positive(lambda x: mp.log(0.7) - 0.3 * mp.log(x) - x**0.7, [-110, -20, -5, 0, 3, 7]),
    ),
    "pareto": (stats.pareto(2.0), lambda: _positive(lambda x: mp.log(2) - 3 * mp.log(x), [0, 1, 10, 60])),
}


@pytest.mark.parametrize("name", CASES)
def test_continuous(name: str) -> None:
    dist, reference = CASES[name]
    h, v, k3 = reference()
    law = adapt(dist, X)
    assert [integral.method for integral in law.integrals] == ["formula", "quadrature"]
    for integral in law.integrals:
        if name == "arcsine" and integral.method == "quadrature":
            continue  # near 1 its quantiles round to 1: only the formula reaches the digits
        cumulants = integral.open()(1.0)
        scale = 1.0 + abs(h)
        np.testing.assert_allclose(cumulants.value, 0.0, atol=1e-12)
        np.testing.assert_allclose(cumulants.mean, -h, rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(cumulants.variance, v, rtol=0, atol=1e-10 * (scale**2 + v))
        np.testing.assert_allclose(cumulants.third, -k3, rtol=0, atol=1e-10 * (scale**3 + v**1.5))


def _sum(log_f: Callable[[int], Any], support: range) -> tuple[float, float, float]:
    with mp.workdps(30):
        terms = [log_f(k) for k in support]
        return _moments(lambda g: mp.fsum(mp.exp(t) * g(t) for t in terms))


def _log_binomial(k: int) -> Any:
    return mp.log(mp.binomial(20, k)) + k * mp.log(mp.mpf(3) / 10) + (20 - k) * mp.log(mp.mpf(7) / 10)


@pytest.mark.parametrize(
    ("dist", "reference"),
    [
        (stats.poisson(4.5), lambda: _sum(lambda k: k * mp.log(4.5) - 4.5 - mp.loggamma(k + 1), range(150))),
        (stats.binom(20, 0.3), lambda: _sum(_log_binomial, range(21))),
        (stats.geom(0.05), lambda: _sum(lambda k: (k - 1) * mp.log(0.95) + mp.log(0.05), range(1, 1500))),
    ],
    ids=["poisson", "binomial", "geometric"],
)
def test_discrete(dist: Any, reference: Callable[[], tuple[float, float, float]]) -> None:
    h, v, k3 = reference()
    predictions = density([3.0, 4.0], dist)
    assert predictions.method == "summation"
    scored = predictions.score()
    np.testing.assert_allclose(scored.entropy, h, rtol=1e-12)
    np.testing.assert_allclose(scored.varentropy, v, rtol=1e-11)
    np.testing.assert_allclose(scored.third_cumulant, k3, rtol=1e-10)
    np.testing.assert_allclose(scored.excess, -dist.logpmf([3.0, 4.0]) - h, atol=1e-12)


def _log_t_partition(beta: float) -> float:
    with mp.workdps(30):
        return float(mp.log(mp.quad(lambda x: mp.exp(beta * _log_t(2)(x)), [-mp.inf, -1, 0, 1, mp.inf])))


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0, 2.0, 16.0])
def test_log_partition_of_heavy_tails(beta: float) -> None:
    for integral in adapt(stats.t(2.0), X).integrals:
        np.testing.assert_allclose(integral.open()(beta).value, _log_t_partition(beta), atol=1e-9)


@pytest.mark.parametrize("beta", [0.0625, 0.5, 2.0, 16.0])
@pytest.mark.parametrize(
    "dist",
    [
        stats.norm(0.5, 2.0), stats.gumbel_r(), stats.logistic(), stats.expon(scale=3.0), stats.lognorm(0.5),
        stats.gamma(2.0), stats.weibull_min(2.0), stats.beta(2.0, 3.0),
    ],
    ids=lambda d: d.dist.name,
)  # fmt: skip
def test_formula_and_quadrature_agree_at_every_temperature(dist: Any, beta: float) -> None:
    formula, quadrature = adapt(dist, X).integrals
    for exact, integrated in zip(formula.open()(beta), quadrature.open()(beta), strict=True):
        np.testing.assert_allclose(integrated, exact, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("beta", [-0.5, 0.3, 0.5])
def test_the_partition_of_a_cauchy_diverges(beta: float) -> None:
    for integral in adapt(stats.cauchy(), X).integrals:
        with pytest.raises(UnavailableError):
            integral.open()(beta)


@pytest.mark.parametrize("beta", [0.125, 0.5, 2.0])
def test_log_partition_of_a_sum(beta: float) -> None:
    with mp.workdps(30):
        terms = [k * mp.log(4.5) - 4.5 - mp.loggamma(k + 1) for k in range(400)]
        total = mp.fsum(mp.exp(beta * t) for t in terms)
        slope = mp.fsum(mp.exp(beta * t) * t for t in terms) / total
    predictions = density([3.0, 4.0], stats.poisson([4.5, 4.5]))
    np.testing.assert_allclose(predictions.log_partition(beta), float(mp.log(total)), rtol=1e-12)
    np.testing.assert_allclose(predictions.log_partition(beta, deriv=1), float(slope), rtol=1e-12)


def test_distant_components_of_a_mixture() -> None:
    parts = [stats.Normal(mu=-300.0, sigma=1.0), stats.Normal(mu=0.0, sigma=0.1), stats.Normal(mu=500.0, sigma=20.0)]
    weights = np.array([0.2, 0.5, 0.3])
    scored = density([0.0], stats.Mixture(parts, weights=weights)).score()
    # Components that do not overlap: the entropy of the choice plus the mean of theirs.
    entropies = 0.5 * np.log(2 * np.pi * np.e * np.array([1.0, 0.1, 20.0]) ** 2) - np.log(weights)
    h = weights @ entropies
    np.testing.assert_allclose(scored.entropy, h, rtol=1e-12)
    np.testing.assert_allclose(scored.varentropy, 0.5 + weights @ (entropies - h) ** 2, rtol=1e-10)
