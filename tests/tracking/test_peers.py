"""NEES beside filterpy's and a plain Cholesky, and the covariances that neither may be given."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

import safecal
from safecal.errors import CovarianceError, MissingValueError, RangeError, ShapeError

ROOT = Path(__file__).resolve().parents[2]
N = 500


def problem(d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = rng.normal(size=(N, d, d + 2))
    cov = a @ a.transpose(0, 2, 1)
    return rng.normal(size=(N, d)), rng.normal(size=(N, d)), (cov + cov.transpose(0, 2, 1)) / 2


@pytest.mark.parametrize("d", [1, 2, 4, 6])
def test_agreement_with_filterpy(d: int, rng: np.random.Generator) -> None:
    peer = pytest.importorskip("filterpy.stats")
    x, mean, cov = problem(d, rng)
    theirs = np.array(peer.NEES(x, mean, cov))
    ours = d + 2 * safecal.gaussian(x, mean, cov=cov).score().excess
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-14)  # d + 2 * excess cancels where NEES is near 0
    assert safecal.nees(x, mean, cov=cov) == pytest.approx(theirs.mean(), rel=1e-10)


@pytest.mark.parametrize("d", [1, 2, 4, 9])
def test_agreement_with_a_plain_cholesky(d: int, rng: np.random.Generator) -> None:
    x, mean, cov = problem(d, rng)
    plain = []
    for row in range(N):
        white = linalg.solve_triangular(np.linalg.cholesky(cov[row]), x[row] - mean[row], lower=True)
        plain.append(white @ white)
    np.testing.assert_allclose(d + 2 * safecal.gaussian(x, mean, cov=cov).score().excess, plain, rtol=1e-10, atol=1e-14)


GOOD = np.diag([4.0, 1.0, 9.0, 0.25])
INDEFINITE = np.array([[1.0, 2.0, 0, 0], [2.0, 1.0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
SINGULAR = np.diag([1.0, 1.0, 0.0, 1.0])
NEGATIVE = np.diag([1.0, 1.0, -2.0, 1.0])
LOPSIDED = GOOD + np.triu(np.full((4, 4), 0.1), 1)
NAN = GOOD.copy()
NAN[1, 2] = math.nan
INF = GOOD.copy()
INF[0, 0] = math.inf
CATALOGUE = {
    "indefinite": (
        INDEFINITE,
        CovarianceError,
        "be positive definite; got a matrix whose smallest eigenvalue is -1 at",
    ),
    "singular": (SINGULAR, CovarianceError, "be positive definite; got a matrix whose smallest eigenvalue is 0 at"),
    "negative": (NEGATIVE, CovarianceError, "be positive definite; got a matrix whose smallest eigenvalue is -2 at"),
    "asymmetric": (LOPSIDED, CovarianceError, "be symmetric; got entries that differ by 0.1 from their mirror at"),
    "NaN": (NAN, MissingValueError, "not be NaN; got nan at"),
    "infinite": (INF, RangeError, "be finite; got inf at"),
}


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("fault", CATALOGUE)
@pytest.mark.parametrize("form", ["cov", "precision"])
def test_one_bad_matrix_among_many_thousand_is_named(fault: str, form: str) -> None:
    n = 100_000 if (fault, form) == ("singular", "cov") else 10_000
    matrix, error, words = CATALOGUE[fault]
    batch = np.broadcast_to(GOOD, (n, 4, 4)).copy()
    batch[n // 2 + 321] = matrix
    x = np.zeros((n, 4))
    with pytest.raises(error, match=re.escape(f"`{form}` must {words} row {n // 2 + 321}") + rf".*\(1 of {n} rows\)"):
        safecal.gaussian(x, x, **{form: batch})


@pytest.mark.parametrize("shape", [(3, 3), (10, 3, 3), (9, 4, 4), (4,), (10, 4), (2, 10, 4, 4)])
def test_a_wrong_shape_is_named(shape: tuple[int, ...]) -> None:
    x = np.zeros((10, 4))
    words = f"`cov` must be one (4, 4) matrix, or one for each row, (10, 4, 4); got shape {shape}."
    with pytest.raises(ShapeError, match=re.escape(words)):
        safecal.gaussian(x, x, cov=np.ones(shape))


def test_there_is_no_pseudo_inverse_anywhere() -> None:
    found = [path for path in (ROOT / "src").rglob("*.py") if re.search(r"\bpinv", path.read_text(encoding="utf-8"))]
    assert not found


def test_a_matrix_that_is_singular_up_to_rounding_is_singular() -> None:
    # One in ten of these passes a plain Cholesky by luck, and has an NEES of 1e15.
    rng = np.random.default_rng(0)
    for _ in range(300):
        root = rng.normal(size=(4, 2))
        cov = root @ root.T
        with pytest.raises(CovarianceError, match="`cov` must be positive definite"):
            safecal.gaussian(np.ones((1, 4)), np.zeros((1, 4)), cov=(cov + cov.T) / 2)
    close = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])  # nearly so is not
    assert math.isfinite(safecal.gaussian([[1.0, 1.0]], [[0.0, 0.0]], cov=close).ecd)
