"""Classes at one inverse temperature: NumPy agrees with 60 digits, the compiled kernel with NumPy."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from safecal._kernels import compiled
from safecal._kernels.classes import gap_moments

from .test_compiled import needs_kernel

RNG = np.random.default_rng(19)
BETAS = (2.0**-20, 0.3, 1.0, 7.0, 2.0**20)
ROWS = {
    "two": RNG.normal(0.0, 3.0, (9, 2)),
    "ten": RNG.normal(0.0, 3.0, (17, 10)),
    "ties": np.zeros((3, 7)),
    "far from 0": 1e6 + RNG.normal(0.0, 1.0, (5, 4)),
    "far apart": np.array([[0.0, 1e300, -1e300], [5.0, -800.0, 4.0], [0.0, 1e-300, -1e-9]]),
    "impossible": np.array([[0.0, -np.inf, -1.0], [-np.inf, -np.inf, 3.0], [-np.inf, 2.0, 2.0]]),
    "many": RNG.normal(0.0, 4.0, (3, 131)),
    "very many": RNG.normal(0.0, 2.0, (2, 1500)),
    "float32": RNG.normal(0.0, 3.0, (10, 5)).astype(np.float32),
}


def exact(z: np.ndarray, beta: float) -> list[list[float]]:
    """Return mean, variance and third cumulant of the gaps of each row, and the mean size of the terms of both."""
    out = []
    with mpmath.workdps(60):
        for row in z.tolist():
            gaps = [mpmath.mpf(max(row)) - mpmath.mpf(x) for x in row if x > -np.inf]
            w = [mpmath.exp(-mpmath.mpf(beta) * gap) if beta * gap < 1e5 else mpmath.mpf(0) for gap in gaps]
            total = mpmath.fsum(w)
            raw = [mpmath.fsum(a * g**k for a, g in zip(w, gaps, strict=True)) / total for k in range(4)]
            second, third = raw[2] - raw[1] ** 2, raw[3] - 3 * raw[1] * raw[2] + 2 * raw[1] ** 3
            out.append([float(x) for x in (raw[1], second, third, raw[2], raw[3])])
    return out


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("way", ["compiled", "NumPy"])
def test_moments_of_gaps_have_all_digits(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "NumPy":
        monkeypatch.setattr(compiled, "_module", None)
    else:
        needs_kernel()
    z = ROWS[name]
    for beta in BETAS:
        moments = gap_moments(z, beta)
        np.testing.assert_array_equal(moments.largest, z.max(axis=1))
        mean, variance, third, square, cube = np.array(exact(z, beta)).T
        np.testing.assert_allclose(moments.mean, mean, rtol=1e-13, atol=1e-290)
        assert (np.abs(moments.variance - variance) <= 1e-13 * square + 1e-290).all()
        assert (np.abs(moments.third - third) <= 4e-13 * cube + 1e-290).all()


def test_both_ways_agree_whatever_the_layout(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    needs_kernel()
    z = rng.normal(0.0, 3.0, (1000, 12))
    forms = (z, np.asfortranarray(z), z[::-1, ::2], z.astype(">f8"), z.astype(np.float16), z[:0])
    quick = [gap_moments(form, 0.8) for form in forms]
    monkeypatch.setattr(compiled, "_module", None)
    for form, a in zip(forms, quick, strict=True):
        for x, y in zip(a, gap_moments(form, 0.8), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("beta", [-1.0, 0.0, 1e-10, np.nan])
def test_a_beta_at_which_impossible_classes_would_count_is_refused(beta: float) -> None:
    needs_kernel()
    with pytest.raises(ValueError, match="beta of at least 1e-9"):
        gap_moments(np.zeros((1, 2)), beta)
