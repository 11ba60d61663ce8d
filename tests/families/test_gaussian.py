"""Gaussian states."""

import math

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal.errors import UnavailableError

RNG = np.random.default_rng(21)
N, D = 40, 3
X = RNG.normal(0, 2, (N, D))
M = RNG.normal(0, 1, (N, D))
L = np.tril(RNG.normal(0, 1, (N, D, D))) + 3 * np.eye(D)
C = L @ L.transpose(0, 2, 1)


def test_surprisal_and_entropy_agree_with_scipy() -> None:
    scored = safecal.gaussian(X, M, cov=C).score()
    wanted = [stats.multivariate_normal(M[i], C[i]) for i in range(N)]
    np.testing.assert_allclose(scored.surprisal, [-w.logpdf(x) for w, x in zip(wanted, X, strict=True)], rtol=1e-10)
    np.testing.assert_allclose(scored.entropy, [w.entropy() for w in wanted], rtol=1e-10)
    np.testing.assert_allclose(scored.excess, scored.surprisal - scored.entropy, atol=1e-11)
    assert scored.predicted is scored.brier is None


def test_every_form_of_the_spread_says_the_same() -> None:
    wanted = safecal.gaussian(X, M, cov=C).score()
    for form in ({"chol": L}, {"precision": np.linalg.inv(C)}):
        scores = safecal.gaussian(X, M, **form).score()
        np.testing.assert_allclose(scores.excess, wanted.excess, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(scores.entropy, wanted.entropy, rtol=1e-9)


@pytest.mark.parametrize("form", ["cov", "chol", "precision"])
def test_one_matrix_for_all_rows_is_that_matrix_in_every_row(form: str) -> None:
    matrix = {"cov": C[0], "chol": L[0], "precision": np.linalg.inv(C[0])}[form]
    matrix = (matrix + matrix.T) / 2 if form != "chol" else matrix
    one = safecal.gaussian(X, M, **{form: matrix}).score()
    many = safecal.gaussian(X, M, **{form: np.broadcast_to(matrix, (N, D, D))}).score()
    np.testing.assert_allclose(one.excess, many.excess, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.entropy, many.entropy, rtol=1e-12)


def test_independent_components(rng: np.random.Generator) -> None:
    std = np.exp(rng.normal(0, 1, (N, D)))
    a = safecal.gaussian(X, M, std=std).score()
    b = safecal.gaussian(X, M, var=std**2).score()
    c = safecal.gaussian(X, M, cov=np.einsum("ni,ij->nij", std**2, np.eye(D))).score()
    for other in (b, c):
        np.testing.assert_allclose(a.excess, other.excess, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(a.entropy, other.entropy, rtol=1e-12)
    assert safecal.gaussian(X, M, std=std[0]).ecd == pytest.approx(
        safecal.gaussian(X, M, std=np.broadcast_to(std[0], (N, D))).ecd, rel=1e-12
    )
    assert safecal.gaussian(X, M, std=2.0).ecd == pytest.approx(safecal.gaussian(X, M, std=[2.0] * D).ecd, rel=1e-12)


def test_scalar_states_are_states_of_one_dimension(rng: np.random.Generator) -> None:
    std = np.exp(rng.normal(0, 1, N))
    a = safecal.gaussian(X[:, 0], M[:, 0], std=std).score()
    b = safecal.gaussian(X[:, :1], M[:, :1], cov=(std**2)[:, None, None]).score()
    np.testing.assert_allclose(a.excess, b.excess, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(a.surprisal, stats.norm(M[:, 0], std).logpdf(X[:, 0]) * -1, rtol=1e-12)


def test_a_covariance_that_is_symmetric_up_to_rounding_is_accepted() -> None:
    wobble = C.copy()
    wobble[:, 0, 1] *= 1 + 1e-12
    assert safecal.gaussian(X, M, cov=wobble).ecd == pytest.approx(safecal.gaussian(X, M, cov=C).ecd, rel=1e-9)
    narrow = C.astype(np.float32)
    narrow[:, 0, 1] *= np.float32(1 + 1e-6)
    assert safecal.gaussian(X, M, cov=narrow).ecd == pytest.approx(safecal.gaussian(X, M, cov=C).ecd, rel=1e-4)


def test_a_covariance_of_any_scale_is_a_covariance() -> None:
    for scale in (1e-20, 1e20):
        wanted = safecal.gaussian(X, M, cov=C).ecd
        ecd = safecal.gaussian(X * math.sqrt(scale), M * math.sqrt(scale), cov=C * scale).ecd
        assert ecd == pytest.approx(wanted, rel=1e-9)


def test_a_factor_may_have_a_negative_diagonal() -> None:
    flipped = L * np.array([1.0, -1.0, 1.0])
    assert safecal.gaussian(X, M, chol=flipped).ecd == pytest.approx(safecal.gaussian(X, M, chol=L).ecd, rel=1e-12)


def test_the_excess_is_half_of_nees_minus_d() -> None:
    nees = np.einsum("ni,nij,nj->n", X - M, np.linalg.inv(C), X - M)
    np.testing.assert_allclose(safecal.gaussian(X, M, cov=C).score().excess, (nees - D) / 2, rtol=1e-9, atol=1e-9)
    assert safecal.gaussian(M, M, cov=C).score().excess.tolist() == [-D / 2] * N


@pytest.mark.parametrize("beta", [0.25, 1.0, 3.0])
def test_the_log_partition_by_quadrature(beta: float) -> None:
    x = np.linspace(-60, 60, 200_001)
    for std in (0.5, 2.0):
        f = stats.norm(0, std).pdf(x)
        wanted = math.log(np.trapezoid(f**beta, x))
        assert safecal.gaussian([0.0], [0.0], std=std).log_partition(beta)[0] == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("beta", [0.0, -1.0])
def test_the_log_partition_exists_for_positive_beta_only(beta: float) -> None:
    with pytest.raises(UnavailableError, match=r"^log_partition of a Gaussian exists for beta > 0 only; got"):
        safecal.gaussian([0.0], [0.0], std=1.0).log_partition(beta)
