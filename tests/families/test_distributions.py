"""Distributions of SciPy and torch, as densities see them."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from safecal.errors import FormError, RangeError, ShapeError, UnavailableError
from safecal.families.density import density
from safecal.families.distributions import adapt
from safecal.testing import assert_family_laws

RNG = np.random.default_rng(31)
N = 60
X = RNG.normal(size=N)
SCALES = RNG.uniform(0.5, 2.0, size=N)


def _same(a: Any, b: Any, atol: float = 1e-9) -> None:
    for column in ("excess", "varentropy", "third_cumulant", "surprisal", "entropy"):
        np.testing.assert_allclose(getattr(a.score(), column), getattr(b.score(), column), atol=atol, rtol=1e-9)


# SciPy, one variable


@pytest.mark.parametrize("shape", ["skewnorm", "exponnorm", "triang", "dgamma", "loglaplace", "genpareto", "invgauss"])
def test_quadrature_agrees_with_scipy(shape: str) -> None:
    dist = {"triang": stats.triang(0.3), "dgamma": stats.dgamma(0.5)}.get(shape) or getattr(stats, shape)(1.5)
    scored = density([0.4, 0.6], dist).score()
    assert scored.entropy is not None
    np.testing.assert_allclose(scored.entropy, float(dist.entropy()), atol=1e-5)


@pytest.mark.proof
def test_quantiles_by_root_search_are_left_to_draws_when_they_are_many() -> None:
    few, many = density([0.1], stats.vonmises(2.0)), density(X, stats.vonmises(SCALES), rng=0)
    assert (few.method, many.method) == ("quadrature", "draws")
    assert density(X, stats.vonmises(2.0, scale=SCALES)).method == "quadrature"
    exact = np.concatenate([density(X[i : i + 1], stats.vonmises(SCALES[i])).score().excess for i in range(4)])
    scored = many.score()
    assert scored.numerical_variance is not None
    z = (scored.excess[:4] - exact) / np.sqrt(scored.numerical_variance[:4])
    assert np.abs(z).max() < 4.0
    with pytest.raises(UnavailableError, match="known by its draws only"):
        many.log_partition(1.0)
    assert_family_laws(many)


def test_histograms_and_listed_values() -> None:
    listed = stats.rv_discrete(values=([0.5, 2.0, 7.0], [0.2, 0.3, 0.5]))
    scored = density([0.5, 7.0, 1.0], listed).score()
    assert scored.entropy is not None
    np.testing.assert_allclose(scored.entropy, stats.entropy([0.2, 0.3, 0.5]))
    assert scored.impossible.tolist() == [False, False, True]
    counts, edges = np.histogram(X, bins=8)
    inside = X[edges[-1] > X]  # the last edge itself has density 0
    drawn = density(inside, stats.rv_histogram((counts, edges)), draws=400, rng=0)
    assert drawn.method == "draws"
    assert abs(drawn.ecd) < 4.0 * drawn.summary().numerical_error + 0.05


@pytest.mark.proof
def test_sums_that_are_too_long_are_drawn() -> None:
    assert density([1, 2, 3], stats.zipf(1.5), rng=0).method == "draws"
    assert density([1, 2, 3], stats.zipf(8.0)).method == "summation"
    wide = density([999_000], stats.poisson(1e6)).score()
    np.testing.assert_allclose(wide.varentropy, 0.5, atol=1e-6)


@pytest.mark.proof
def test_a_long_sum_may_not_exist_at_every_temperature() -> None:
    predictions = density([1, 2, 3], stats.zipf(8.0))
    with pytest.raises(UnavailableError, match=r"beta = 0\.0625 of scipy\.stats\.zipf"):
        predictions.log_partition(0.0625)


def test_a_shifted_spike_is_known_by_its_formula() -> None:
    plain, moved = density([1.0], stats.gamma(0.02)).score(), density([6.0], stats.gamma(0.02, loc=5.0)).score()
    np.testing.assert_allclose(plain.excess, moved.excess)
    np.testing.assert_allclose(plain.entropy, stats.gamma(0.02).entropy())


def test_large_parameters_go_to_quadrature() -> None:
    predictions = density([1e6], stats.gamma(1e6))
    assert predictions.method == "quadrature"
    np.testing.assert_allclose(predictions.score().varentropy, 0.5, atol=1e-6)
    np.testing.assert_allclose(density([0.1], stats.t(1e9)).score().third_cumulant, 1.0, atol=1e-6)


# SciPy, the new infrastructure


@pytest.mark.proof
def test_new_style() -> None:
    _same(density(X, stats.Normal(mu=0.0, sigma=SCALES)), density(X, stats.norm(0.0, SCALES)))
    _same(density(X, stats.Normal()), density(X, stats.norm()))
    _same(density([0.2, 0.9], stats.Uniform(a=-1.0, b=1.0)), density([0.2, 0.9], stats.uniform(-1.0, 2.0)))
    gamma = stats.make_distribution(stats.gamma)
    _same(density(np.abs(X), gamma(a=1.0 + SCALES)), density(np.abs(X), stats.gamma(1.0 + SCALES)))
    assert density(np.abs(X), gamma(a=1.0 + SCALES)).method == "quadrature"


def test_new_style_draws() -> None:
    for dist, rows in ((stats.Normal(mu=np.arange(4.0), sigma=1e-9), 4), (stats.Normal(mu=2.0, sigma=1e-9), 4)):
        drawn = adapt(dist, np.zeros(rows)).draw(np.random.default_rng(0))
        np.testing.assert_allclose(drawn, np.arange(4.0) if dist.mu.size > 1 else 2.0, atol=1e-6)


def test_new_style_discrete(rng: np.random.Generator) -> None:
    x = rng.integers(0, 10, N)
    if hasattr(stats, "Binomial"):  # since SciPy 1.16
        _same(density(x, stats.Binomial(n=np.full(N, 9), p=0.3)), density(x, stats.binom(9, 0.3)))


# SciPy, several variables

COV = np.array([[2.0, 0.3], [0.3, 1.0]])
POINTS = RNG.normal(size=(N, 2))


@pytest.mark.parametrize(
    ("dist", "x", "method"),
    [
        (stats.multivariate_normal([0.0, 1.0], COV), POINTS, "formula"),
        (stats.multivariate_t([0.0, 1.0], COV, df=5), POINTS, "formula"),
        (stats.dirichlet([1.0, 2.0, 3.5]), RNG.dirichlet([1.0, 2.0, 3.5], N), "formula"),
        (stats.multinomial(5, [0.2, 0.3, 0.5]), RNG.multinomial(5, [0.2, 0.3, 0.5], N), "draws"),
        (stats.matrix_normal(np.zeros((2, 3))), RNG.normal(size=(N, 2, 3)), "draws"),
        (stats.wishart(4, np.eye(2)), stats.wishart(4, np.eye(2)).rvs(N, random_state=RNG), "draws"),
        (stats.multivariate_hypergeom([5, 6], 4), np.tile([[1, 3], [2, 2]], (N // 2, 1)), "draws"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "rvs") else "",
)
def test_multivariate(dist: Any, x: Any, method: str) -> None:
    predictions = density(x, dist, draws=16, rng=0)
    assert predictions.method == method
    assert_family_laws(predictions)
    scored = predictions.score()
    if hasattr(dist, "entropy"):
        np.testing.assert_allclose(scored.entropy, dist.entropy(), rtol=1e-10)
        assert scored.numerical_variance is None
    else:
        assert scored.numerical_variance is not None
    # The moments that a formula gives are those of draws.
    log_f = getattr(dist, "logpdf", None) or dist.logpmf
    draws = dist.rvs(4000, random_state=np.random.default_rng(1))
    turned = np.moveaxis(draws, 0, -1) if "dirichlet" in repr(dist) or "wishart" in repr(dist) else draws
    assert scored.varentropy.mean() == pytest.approx(np.var(log_f(turned)), rel=0.2)


def test_multivariate_normal_is_nees() -> None:
    nees = np.einsum("ni,ij,nj->n", POINTS, np.linalg.inv(COV), POINTS)
    scored = density(POINTS, stats.multivariate_normal([0.0, 0.0], COV)).score()
    np.testing.assert_allclose(scored.excess, (nees - 2.0) / 2.0, atol=1e-12)
    assert (scored.varentropy == 1.0).all()
    assert (scored.third_cumulant == 2.0).all()


def test_multivariate_errors() -> None:
    with pytest.raises(RangeError, match=r"`x_true` must hold outcomes that scipy\.stats\.dirichlet accepts"):
        density([[0.5, 0.9]], stats.dirichlet([1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"`dist` must return one log-density for each row of `x_true`, shape \(2,\)"):
        density([0.0, 1.0], stats.multivariate_normal([0.0, 0.0]))
    with pytest.raises(FormError, match=r"has no density or no sampler"):
        density([[1.0, 2.0]], stats.uniform_direction(2))


# torch


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def _tensor(torch: Any, values: Any) -> Any:
    return torch.tensor(np.asarray(values), dtype=torch.float64)


@pytest.mark.extra
def test_torch_agrees_with_scipy(torch: Any, rng: np.random.Generator) -> None:
    td, s = torch.distributions, _tensor(torch, SCALES)
    positive, counts, unit = np.abs(X) + 0.1, rng.poisson(3.0, N), rng.uniform(size=N)
    pairs = [
        (X, td.Normal(0.0 * s, s), stats.norm(0.0, SCALES)),
        (X, td.Laplace(0.0 * s, s), stats.laplace(0.0, SCALES)),
        (X, td.Cauchy(0.0 * s, s), stats.cauchy(0.0, SCALES)),
        (X, td.StudentT(4.0, 0.0 * s, s), stats.t(4.0, 0.0, SCALES)),
        (X, td.Gumbel(0.0 * s, s), stats.gumbel_r(0.0, SCALES)),
        (unit, td.Uniform(-1.0 + 0.0 * s, s), stats.uniform(-1.0, SCALES + 1.0)),
        (unit, td.Beta(s, 2.0 * s), stats.beta(SCALES, 2.0 * SCALES)),
        (positive, td.Exponential(s), stats.expon(scale=1.0 / SCALES)),
        (positive, td.Gamma(s, 2.0 * s), stats.gamma(SCALES, scale=0.5 / SCALES)),
        (positive, td.Chi2(s), stats.chi2(SCALES)),
        (positive, td.HalfNormal(s), stats.halfnorm(scale=SCALES)),
        (positive, td.HalfCauchy(s), stats.halfcauchy(scale=SCALES)),
        (positive, td.LogNormal(0.0 * s, s), stats.lognorm(SCALES)),
        (positive, td.Weibull(s, 1.5 + 0.0 * s), stats.weibull_min(1.5, scale=SCALES)),
        (positive + 1.0, td.Pareto(1.0 + 0.0 * s, s), stats.pareto(SCALES)),
        (counts, td.Poisson(s), stats.poisson(SCALES)),
        (counts, td.Geometric(s / 3.0), stats.geom(SCALES / 3.0, loc=-1)),
        (counts, td.NegativeBinomial(4.0, s / 3.0), stats.nbinom(4, 1.0 - SCALES / 3.0)),
        (np.minimum(counts, 9), td.Binomial(9, s / 3.0), stats.binom(9, SCALES / 3.0)),
        (counts > 2, td.Bernoulli(s / 3.0), stats.bernoulli(SCALES / 3.0)),
    ]
    for x, ours, theirs in pairs:
        a, b = density(np.asarray(x, dtype=float), ours), density(np.asarray(x, dtype=float), theirs)
        _same(a, b)
        assert a.method == b.method, type(ours).__name__


@pytest.mark.extra
def test_torch_of_uneven_counts(torch: Any) -> None:
    trials = np.arange(1, N + 1)
    dist = torch.distributions.Binomial(_tensor(torch, trials), _tensor(torch, SCALES / 3.0))
    _same(density(np.ones(N), dist), density(np.ones(N), stats.binom(trials, SCALES / 3.0)))


@pytest.mark.extra
def test_torch_events(torch: Any, rng: np.random.Generator) -> None:
    td = torch.distributions
    x = rng.normal(size=(N, 2))
    joint = density(x, td.MultivariateNormal(_tensor(torch, np.zeros((N, 2))), _tensor(torch, COV)))
    _same(joint, density(x, stats.multivariate_normal([0.0, 0.0], COV)))
    shared = density(x, td.MultivariateNormal(torch.zeros(2), torch.tensor(COV, dtype=torch.float32)))
    _same(shared, joint, atol=1e-5)
    apart = density(x, td.Independent(td.Normal(_tensor(torch, np.zeros((N, 2))), 1.0), 1))
    _same(apart, density(x, stats.multivariate_normal([0.0, 0.0])))
    assert joint.method == shared.method == apart.method == "formula"
    simplex = rng.dirichlet([1.0, 2.0, 3.5], N)
    alpha = _tensor(torch, [1.0, 2.0, 3.5])
    _same(density(simplex, td.Dirichlet(alpha)), density(simplex, stats.dirichlet([1.0, 2.0, 3.5])))
    one_hot = density(np.eye(3)[[0, 2]], td.OneHotCategorical(_tensor(torch, [0.2, 0.3, 0.5])))
    _same(one_hot, density([0, 2], td.Categorical(_tensor(torch, [0.2, 0.3, 0.5]))))
    assert one_hot.method == "summation"


@pytest.mark.extra
def test_torch_mixture_and_quantiles(torch: Any, rng: np.random.Generator) -> None:
    td = torch.distributions
    weights, means = np.array([0.3, 0.7]), np.array([-20.0, 5.0])
    ours = td.MixtureSameFamily(td.Categorical(_tensor(torch, weights)), td.Normal(_tensor(torch, means), 1.0))
    theirs = stats.Mixture([stats.Normal(mu=m, sigma=1.0) for m in means], weights=weights)
    _same(density(X, ours), density(X, theirs))
    assert density(X, ours).method == "quadrature"
    bernoulli = td.ContinuousBernoulli(_tensor(torch, [0.3]))
    np.testing.assert_allclose(density([0.2], bernoulli).score().entropy, float(bernoulli.entropy()), rtol=1e-9)
    assert density(X, td.VonMises(_tensor(torch, 0.0), _tensor(torch, 2.0)), rng=0).method == "draws"
    counts = rng.multinomial(5, [0.2, 0.8], N)
    multinomial = density(counts, td.Multinomial(5, _tensor(torch, [0.2, 0.8])), rng=0)
    assert multinomial.method == "draws"
    np.testing.assert_allclose(multinomial.score().entropy, stats.multinomial(5, [0.2, 0.8]).entropy())


@pytest.mark.extra
def test_torch_impossible_outcomes(torch: Any) -> None:
    exponential = torch.distributions.Exponential(_tensor(torch, [1.0, 2.0, 3.0]))
    assert density([1.0, -1.0, 2.0], exponential).summary().n_impossible == 1
    assert density([1.5, 2.0], torch.distributions.Poisson(2.0)).summary().n_impossible == 1


@pytest.mark.extra
def test_torch_random_state_is_untouched(torch: Any) -> None:
    dist = torch.distributions.VonMises(_tensor(torch, 0.0), _tensor(torch, SCALES))
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    first = density(np.clip(X, -3.0, 3.0), dist, rng=4).score().excess
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(8)
    assert (first == density(np.clip(X, -3.0, 3.0), dist, rng=4).score().excess).all()
    assert (first != density(np.clip(X, -3.0, 3.0), dist, rng=5).score().excess).any()


@pytest.mark.extra
def test_torch_gradients_are_left_alone(torch: Any) -> None:
    scale = _tensor(torch, SCALES).requires_grad_()
    density(X, torch.distributions.Normal(0.0 * scale, scale))
    density(X, torch.distributions.VonMises(0.0 * scale, scale), rng=0)
    assert scale.grad is None


@pytest.mark.extra
def test_torch_errors(torch: Any) -> None:
    td = torch.distributions
    normal = td.Normal(_tensor(torch, np.zeros((N, 2))), 1.0)
    with pytest.raises(
        ShapeError, match=r"must have shape \(60,\) for torch\.distributions\.Normal with event shape \(\)"
    ):
        density(np.zeros((N, 2)), normal)
    with pytest.raises(ShapeError, match=r"Independent\(dist, 1\)"):
        density(X, normal)
    with pytest.raises(ShapeError, match="for each of the 60 rows"):
        density(X, td.Normal(torch.zeros(3), 1.0))
