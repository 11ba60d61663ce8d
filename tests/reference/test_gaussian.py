"""Gaussian states against 700 digits.

With a covariance matrix, errors are at most ``10 d 2^-53`` times the condition number of the matrix scaled to a unit
diagonal: units do not matter. With standard deviations, or a factor that is itself well conditioned, at most 1e-12.
"""

from __future__ import annotations

import numpy as np
import pytest

import safecal

from . import oracle

RELATIVE = 1e-12
UNIT = 2.0**-53
DIMENSIONS = [1, 2, 3, 4, 5, 8, 13, 20]


def condition(matrix: np.ndarray) -> float:
    """Return the condition number after scaling the diagonal to ones."""
    scale = np.sqrt(np.diag(matrix))
    return float(np.linalg.cond(matrix / np.outer(scale, scale)))


def covariance(d: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "ill-conditioned" and d > 1:
        q, _ = np.linalg.qr(rng.normal(size=(d, d)))
        cov = (q * np.logspace(0.0, -rng.uniform(3.0, 10.0), d)) @ q.T
    else:
        a = rng.normal(size=(d, d + 3))
        cov = a @ a.T
    if kind == "badly scaled":
        units = 10.0 ** rng.uniform(-6.0, 6.0, d)
        cov = cov * np.outer(units, units)
    return (cov + cov.T) / 2.0


def states(cov: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two states and means: one with errors of any direction, one with errors the covariance expects."""
    d, scale = len(cov), np.sqrt(np.diag(cov))
    x = 3.0 * scale * rng.normal(size=(2, d))
    expected = np.linalg.cholesky(cov) @ rng.normal(size=d)
    return x, np.stack([scale * rng.normal(size=d), x[1] - expected])


def assert_exact(predictions: safecal.Predictions, nees: list[float], exact: list, bound: float) -> None:
    scored = predictions.score()
    assert scored.surprisal is not None
    assert scored.entropy is not None
    for i, (value, e) in enumerate(zip(nees, exact, strict=True)):
        d = e.dimension
        assert oracle.error(value, e.nees) <= bound
        assert oracle.error(scored.excess[i], e.excess, (e.nees + d) / 2) <= bound
        assert oracle.error(scored.surprisal[i], e.surprisal, abs(e.surprisal) + e.nees + d) <= bound
        assert oracle.error(scored.entropy[i], e.entropy, abs(e.entropy) + d) <= bound
        assert (scored.varentropy[i], scored.third_cumulant[i]) == (d / 2, d)


@pytest.mark.parametrize("kind", ["plain", "badly scaled", "ill-conditioned"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_covariance_is_as_exact_as_its_scaled_condition_allows(d: int, kind: str) -> None:
    rng = np.random.default_rng([d, len(kind)])
    for _ in range(3 if d < 10 else 1):
        cov = covariance(d, kind, rng)
        x, mean = states(cov, rng)
        exact = [oracle.gaussian_from_covariance(x[i], mean[i], cov) for i in range(2)]
        nees = [safecal.nees(x[i : i + 1], mean[i : i + 1], cov=cov) for i in range(2)]
        bound = 10 * d * UNIT * condition(cov)
        assert_exact(safecal.gaussian(x, mean, cov=cov), nees, exact, bound)
        assert_exact(safecal.gaussian(x, mean, cov=np.stack([cov, cov])), nees, exact, bound)


@pytest.mark.parametrize("kind", ["plain", "badly scaled"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_factor_is_exact_to_12_digits(d: int, kind: str) -> None:
    rng = np.random.default_rng([d, len(kind), 1])
    cov = covariance(d, kind, rng)
    chol = np.linalg.cholesky(cov)
    x, mean = states(cov, rng)
    exact = [oracle.gaussian_from_factor(x[i], mean[i], chol) for i in range(2)]
    nees = [safecal.nees(x[i : i + 1], mean[i : i + 1], chol=chol) for i in range(2)]
    assert_exact(safecal.gaussian(x, mean, chol=chol), nees, exact, RELATIVE)
    assert_exact(safecal.gaussian(x, mean, chol=np.stack([chol, chol])), nees, exact, RELATIVE)


@pytest.mark.parametrize("d", DIMENSIONS[1:])
def test_an_ill_conditioned_factor_is_as_exact_as_its_own_condition_allows(d: int) -> None:
    # The condition of the factor, not its square: that is what passing `chol=` gains over `cov=`.
    rng = np.random.default_rng([d, 2])
    cov = covariance(d, "ill-conditioned", rng)
    chol = np.linalg.cholesky(cov)
    x, mean = states(cov, rng)
    exact = [oracle.gaussian_from_factor(x[i], mean[i], chol) for i in range(2)]
    nees = [safecal.nees(x[i : i + 1], mean[i : i + 1], chol=chol) for i in range(2)]
    bound = 10 * d * UNIT * float(np.linalg.cond(chol / np.sqrt(np.diag(cov))[:, None]))
    assert_exact(safecal.gaussian(x, mean, chol=chol), nees, exact, bound)


@pytest.mark.parametrize("form", ["std", "var"])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_standard_deviations_are_exact_to_12_digits(d: int, form: str) -> None:
    rng = np.random.default_rng([d, 3])
    std = 10.0 ** rng.uniform(-6.0, 6.0, d)
    x, mean = states(np.diag(std**2), rng)
    if form == "std":
        exact = [oracle.gaussian_from_std(x[i], mean[i], std) for i in range(2)]
    else:
        exact = [oracle.gaussian_from_covariance(x[i], mean[i], np.diag(std**2)) for i in range(2)]
    spread = {form: std if form == "std" else std**2}
    nees = [safecal.nees(x[i : i + 1], mean[i : i + 1], **spread) for i in range(2)]
    assert_exact(safecal.gaussian(x, mean, **spread), nees, exact, RELATIVE)
    rows = {form: np.stack([spread[form]] * 2)}
    assert_exact(safecal.gaussian(x, mean, **rows), nees, exact, RELATIVE)


def test_units_do_not_change_the_excess() -> None:
    rng = np.random.default_rng(4)
    cov = covariance(6, "plain", rng)
    x, mean = states(cov, rng)
    units = 2.0 ** rng.integers(-20, 20, 6)  # powers of two: no rounding at all
    a = safecal.gaussian(x, mean, cov=cov).score()
    b = safecal.gaussian(x * units, mean * units, cov=cov * np.outer(units, units)).score()
    assert a.excess.tolist() == b.excess.tolist()
