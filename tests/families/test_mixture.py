"""Gaussian mixtures: exact where they can be, honest about their draws where they cannot."""

import math

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal.errors import (
    CovarianceError,
    FormError,
    MissingValueError,
    NormalisationError,
    RangeError,
    ShapeError,
    UnavailableError,
    WeightError,
)
from safecal.families.mixtures import gaussian_mixture

RNG = np.random.default_rng(8)
N, K, D = 40, 3, 2
X, M = RNG.normal(0, 2, (N, D)), RNG.normal(0, 2, (N, K, D))
W = RNG.dirichlet(np.ones(K), N)
L = np.tril(RNG.normal(0, 0.5, (N, K, D, D))) + np.eye(D)
C = L @ np.swapaxes(L, -1, -2)


def quadrature(w: np.ndarray, mean: np.ndarray, std: np.ndarray) -> tuple[float, float, float]:
    """Return entropy, varentropy and third cumulant of the surprisal of a mixture of one variable."""
    x = np.linspace(-60, 60, 48_001)
    log_f = special.logsumexp(np.log(w)[:, None] + stats.norm(mean[:, None], std[:, None]).logpdf(x), axis=0)
    f = np.exp(log_f)
    entropy = -np.trapezoid(f * log_f, x)
    gap = -log_f - entropy
    return entropy, np.trapezoid(f * gap**2, x), np.trapezoid(f * gap**3, x)


@pytest.mark.parametrize("form", ["cov", "chol", "std", "var"])
def test_one_component_is_a_gaussian(form: str) -> None:
    spread = {"cov": C[:, :1], "chol": L[:, :1], "std": np.exp(M[:, :1]), "var": np.exp(M[:, :1])}[form]
    scores = gaussian_mixture(X, [1.0], M[:, :1], **{form: spread}, rng=0).score()
    wanted = safecal.gaussian(X, M[:, 0], **{form: spread[:, 0]}).score()
    for column in ("excess", "varentropy", "third_cumulant", "surprisal", "entropy"):
        np.testing.assert_allclose(getattr(scores, column), getattr(wanted, column), rtol=1e-12, atol=1e-12)
    assert (scores.numerical_variance == 0).all()


def test_the_surprisal_is_exact() -> None:
    scores = gaussian_mixture(X, W, M, cov=C, rng=0).score()
    parts = [[stats.multivariate_normal(M[i, k], C[i, k]).logpdf(X[i]) for k in range(K)] for i in range(N)]
    np.testing.assert_allclose(scores.surprisal, -special.logsumexp(np.log(W) + parts, axis=1), rtol=1e-11)
    np.testing.assert_allclose(scores.excess, scores.surprisal - scores.entropy, rtol=1e-12, atol=1e-12)


def test_equal_components_are_one() -> None:
    mean, cov = np.broadcast_to(M[:, :1], M.shape), np.broadcast_to(C[:, :1], C.shape)
    scores = gaussian_mixture(X, np.full(K, 1 / K), mean, cov=cov, rng=0).score()
    wanted = safecal.gaussian(X, M[:, 0], cov=C[:, 0]).score()
    np.testing.assert_allclose(scores.excess, wanted.excess, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0, 3.0, 4.0, 8.0])
def test_error_bars_cover_the_truth_by_quadrature(apart: float) -> None:
    w, mean, std = np.array([0.6, 0.4]), np.array([0.0, apart]), np.array([1.0, 0.7])
    entropy, varentropy, third = quadrature(w, mean, std)
    scores = gaussian_mixture(np.zeros(4000), w, mean, std=std, draws=64, rng=3).score()
    z = (scores.entropy - entropy) / np.sqrt(scores.numerical_variance)
    covered = np.mean(np.abs(z) <= stats.t(63).ppf(0.975))
    assert covered >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 4000)
    assert abs(scores.entropy.mean() - entropy) <= 4.5 * math.sqrt(scores.numerical_variance.mean() / 4000)
    assert np.sqrt(scores.numerical_variance.mean()) < 0.5 * math.sqrt(varentropy / 64)  # what plain draws would give
    assert scores.varentropy.mean() == pytest.approx(varentropy, rel=0.03)
    assert scores.third_cumulant.mean() == pytest.approx(third, rel=0.12)


@pytest.mark.proof
@pytest.mark.no_cover
def test_error_bars_cover_the_truth_for_random_mixtures() -> None:
    rng = np.random.default_rng(11)
    hits = []
    for _ in range(60):
        count = int(rng.integers(2, 6))
        w, std = rng.dirichlet(np.ones(count)), np.exp(rng.normal(0, 0.6, count))
        mean = rng.normal(0, rng.choice([0.5, 2.0, 6.0]), count)
        scores = gaussian_mixture(np.zeros(100), w, mean, std=std, draws=64, rng=int(rng.integers(2**31))).score()
        z = (scores.entropy - quadrature(w, mean, std)[0]) / np.sqrt(scores.numerical_variance)
        hits.append(np.mean(np.abs(z) <= stats.t(63).ppf(0.975)))
    assert np.mean(hits) >= 0.95
    assert min(hits) >= 0.85


@pytest.mark.proof
@pytest.mark.no_cover
def test_a_calibrated_mixture_has_the_null_distribution_it_claims() -> None:
    rng = np.random.default_rng(2)
    z = []
    for _ in range(300):
        w, mean = rng.dirichlet(np.ones(3), 100), rng.normal(0, 2, (100, 3, 2))
        k = (np.cumsum(w, axis=1) < rng.random((100, 1))).sum(axis=1)
        x = mean[np.arange(100), k] + rng.normal(size=(100, 2))
        z.append(safecal.calibration_test(gaussian_mixture(x, w, mean, std=1.0, draws=16, rng=rng)).statistic)
    assert abs(np.mean(z)) < 0.2
    assert np.std(z) == pytest.approx(1.0, abs=0.13)


def test_a_component_of_weight_0_is_absent_and_may_hold_anything() -> None:
    weight = np.concatenate([W, np.zeros((N, 1))], axis=1)
    mean = np.concatenate([M, np.full((N, 1, D), np.nan)], axis=1)
    cov = np.concatenate([C, np.full((N, 1, D, D), np.inf)], axis=1)
    scores = gaussian_mixture(X, weight, mean, cov=cov, draws=2000, rng=0).score()
    wanted = gaussian_mixture(X, W, M, cov=C, draws=2000, rng=1).score()
    np.testing.assert_allclose(scores.surprisal, wanted.surprisal, rtol=1e-12)
    np.testing.assert_allclose(scores.entropy, wanted.entropy, atol=0.1)
    alone = gaussian_mixture(X, [0.0, 1.0, 0.0], M, cov=C, rng=0).score()
    np.testing.assert_allclose(alone.excess, safecal.gaussian(X, M[:, 1], cov=C[:, 1]).score().excess, rtol=1e-10)
    shared = gaussian_mixture(X, [1.0, 0.0], [[0.0, 0.0], [np.nan, 0.0]], std=[[1.0, 1.0], [0.0, -1.0]], rng=0)
    np.testing.assert_allclose(shared.score().excess, safecal.gaussian(X, 0 * X, std=1.0).score().excess, atol=1e-12)


def test_shared_parts_are_those_of_every_row() -> None:
    a = gaussian_mixture(X, W[0], M[0], cov=C[0], rng=4).score()
    b = gaussian_mixture(X, np.tile(W[0], (N, 1)), np.tile(M[0], (N, 1, 1)), cov=np.tile(C[0], (N, 1, 1, 1)), rng=4)
    np.testing.assert_allclose(a.excess, b.score().excess, rtol=1e-12)
    one = gaussian_mixture(X, W, M, cov=C[0, 0], rng=4).score()
    every = gaussian_mixture(X, W, M, cov=np.broadcast_to(C[0, 0], C.shape), rng=4).score()
    np.testing.assert_allclose(one.excess, every.excess, rtol=1e-12)


def test_scalar_states_are_states_of_one_dimension() -> None:
    std = np.exp(M[..., 0])
    a = gaussian_mixture(X[:, 0], W, M[..., 0], std=std, rng=5).score()
    b = gaussian_mixture(X[:, :1], W, M[..., :1], cov=np.square(std)[..., None, None], rng=5).score()
    np.testing.assert_allclose(a.excess, b.excess, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("form", ["cov", "chol", "std"])
def test_the_coordinates_that_matter_have_the_marginal_mixture(form: str) -> None:
    spread = {"cov": C, "chol": L, "std": np.exp(M)}[form]
    marginal = {"cov": C[..., 1:, 1:], "chol": np.sqrt(C[..., 1:, 1:]), "std": np.exp(M[..., 1:])}[form]
    scores = gaussian_mixture(X, W, M, **{form: spread}, mapping=[1], rng=6).score()
    wanted = gaussian_mixture(X[:, 1:], W, M[..., 1:], **{form: marginal}, rng=6).score()
    np.testing.assert_allclose(scores.surprisal, wanted.surprisal, rtol=1e-10)


def test_angles_are_wrapped(rng: np.random.Generator) -> None:
    turned = X + 2 * math.pi * rng.integers(-2, 3, X.shape) * [0, 1]
    narrow = {"std": 0.3, "angles": [1], "rng": 7}
    a = gaussian_mixture(X, W, M, **narrow).score()
    b = gaussian_mixture(turned, W, M, **narrow).score()
    np.testing.assert_allclose(a.excess, b.excess, rtol=1e-8, atol=1e-8)
    assert not np.allclose(a.excess, gaussian_mixture(X, W, M, std=0.3, rng=7).score().excess)


def test_draws_are_fresh_for_each_row_and_come_from_rng() -> None:
    same = [np.zeros(50), [0.5, 0.5], [-1.0, 1.0]]
    a = gaussian_mixture(*same, std=1.0, rng=1).score().entropy
    assert len(set(a.tolist())) == 50
    np.testing.assert_array_equal(a, gaussian_mixture(*same, std=1.0, rng=1).score().entropy)
    assert not np.array_equal(a, gaussian_mixture(*same, std=1.0, rng=2).score().entropy)


def test_a_state_beyond_every_float_is_impossible() -> None:
    scored = gaussian_mixture([0.0, 1e200], [0.5, 0.5], [-1.0, 1.0], std=1.0, rng=0).score()
    assert scored.excess[1] == math.inf
    assert math.isfinite(scored.excess[0])


def test_what_a_mixture_has_and_has_not() -> None:
    predictions = gaussian_mixture(X, W, M, cov=C, rng=0)
    assert repr(predictions) == "density predictions: 40 rows (mixture, draws: 64)"
    assert predictions.dimension == D
    with pytest.raises(UnavailableError):
        predictions.log_partition(0.5)
    result = predictions.evaluate()
    assert math.isfinite(result.nll)
    assert math.isnan(result.temperature.value)


EYE = np.eye(2)
BAD = [
    (lambda: gaussian_mixture(X, [0.5, 0.6], M[0, :2], std=1.0), NormalisationError,
     "`weight` must sum to one in each row; got 1.1 at row 0 (1 of 1 row).\n\n"
     "Hint: pass `weight / weight.sum(axis=-1, keepdims=True)` if that is meant."),
    (lambda: gaussian_mixture(X, [1.5, -0.5], M[0, :2], std=1.0), WeightError,
     "`weight` must not be negative; got -0.5 at row 0, component 1."),
    (lambda: gaussian_mixture(X, [0.5, math.nan], M[0, :2], std=1.0), MissingValueError,
     "`weight` must not be NaN; got nan at row 0, component 1."),
    (lambda: gaussian_mixture(X, [0.5, 0.5], M[0], std=1.0), ShapeError,
     "`mean` must have shape (2, 2), or (40, 2, 2) for means of each row; got shape (3, 2)."),
    (lambda: gaussian_mixture(X, W[:5], M, std=1.0), ShapeError,
     "`weight` must have as many rows as `x_true`; got 5 and 40.\n\n"
     "Hint: both must come from the same rows, in the same order."),
    (lambda: gaussian_mixture(X, W, M), FormError,
     "`std` or `var`, `cov`, `chol` must be given, exactly one of them; got none."),
    (lambda: gaussian_mixture(X, W, M, std=0.0), RangeError,
     "`std` must be greater than 0; got 0.0 at component 0.\n\n"
     "Hint: a state known without error has no density."),
    (lambda: gaussian_mixture(X, W, M, cov=np.eye(3)), ShapeError,
     "`cov` must have one of the shapes (2, 2) or (3, 2, 2) or (40, 3, 2, 2); got shape (3, 3)."),
    (lambda: gaussian_mixture(X[:, 0], W, M[..., 0], cov=EYE), ShapeError,
     "`cov` needs states of shape (n, d); got `x_true` of shape (40,).\n\n"
     "Hint: for scalar states pass `std=` or `var=`; or make the states (n, 1)."),
    (lambda: gaussian_mixture(X, W, M, cov=[EYE, EYE, [[1.0, 0.5], [0.2, 1.0]]]), CovarianceError,
     "`cov` must be symmetric; got entries that differ by 0.3 from their mirror at component 2.\n\n"
     "Hint: if that is rounding, pass `(cov + np.swapaxes(cov, -1, -2)) / 2`."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_bad_input_is_refused(call, error: type[Exception], text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def test_a_bad_covariance_is_named_by_row_and_component() -> None:
    cov = C.copy()
    cov[17, 2] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(CovarianceError, match=r"smallest eigenvalue is -1 at row 17, component 2\.\n") as caught:
        gaussian_mixture(X, W, M, cov=cov)
    assert caught.value.complaint.place == "row 17, component 2"
    mean = M.copy()
    mean[3, 1, 0] = math.nan
    with pytest.raises(MissingValueError, match=r"^`mean` must not be NaN; got nan at row 3, component 1\."):
        gaussian_mixture(X, W, mean, cov=C)


def test_a_spike_beside_a_slab_has_one_dimension(rng: np.random.Generator) -> None:
    # Dry is said in 70 % of the cases, and happens in 40 %; the density varies by 20 nats.
    x = np.where(rng.random(1000) < 0.4, 0.001, 10.0) * rng.normal(size=1000)
    result = safecal.gaussian_mixture(x, [0.7, 0.3], [0.0, 0.0], std=np.array([0.001, 10.0]), rng=0).evaluate()
    assert result.summary.sum_varentropy / 1000 > 10.0
    assert result.verdict.dimensions == 1.0
    assert result.verdict.decision == "UNSAFE"
