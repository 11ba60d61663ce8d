"""Points that stand for two-class rows: NumPy agrees with 60 digits, the compiled kernel with NumPy."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import safecal
from safecal._kernels import compiled
from safecal._kernels.compiled import POINT_SUMS, point_sums, tempered_change, tempered_sums
from safecal._sums.cells import Cells, order_of_cells

from .test_compiled import needs_kernel

RNG = np.random.default_rng(23)
BETAS = (-3.0, -1e-6, 0.0, 2.0**-20, 0.3, 1.0, 1.0 + 1e-9, 7.0, 2.0**20)
POINTS = {
    "none": np.empty(0),
    "one": np.array([0.7]),
    "small": RNG.random(13) * 1e-3,
    "usual": np.abs(RNG.normal(0.0, 3.0, 31)),
    "far": np.array([0.0, 1e-9, 30.0, 36.8, 700.0, 745.0, 746.0, 800.0, 1e6, 2.0**30]),
}


ODDS = {
    "wide": RNG.normal(0.0, 4.0, 5000),
    "few": RNG.normal(0.0, 1.0, 9),
    "a lattice": np.round(RNG.normal(0.0, 2.0, 3000)),
    "thirds": np.repeat([0.3, 0.3003, 0.31, -2.0, -2.01], 40),
    "far": np.array([1e6, 3e6, 1e200, -1e150, 1e-200, 0.0, 5.0, -5.0]),
}


def cells(name: str) -> Cells:
    """Return cells of rows, of which three in five happened."""
    spectrum = safecal.bernoulli(np.arange(len(ODDS[name])) % 5 < 3, logits=ODDS[name]).tally().spectrum
    assert isinstance(spectrum, Cells)
    return spectrum


def anew(spectrum: Cells) -> Cells:
    return Cells(spectrum.moments)


@pytest.mark.parametrize("name", ODDS)
def test_the_points_of_cells_are_those_of_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_kernel()
    spectrum = cells(name)
    quick, together = anew(spectrum).points(), spectrum.together()
    order = order_of_cells(anew(spectrum))
    monkeypatch.setattr(compiled, "_module", None)
    for a, b in zip(quick, anew(spectrum).points(), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    np.testing.assert_array_equal(together, spectrum.together())
    slow = order_of_cells(anew(spectrum))
    for part in ("low", "high", "coarse"):
        np.testing.assert_array_equal(getattr(order, part), getattr(slow, part))
    np.testing.assert_allclose(order.sums, slow.sums, rtol=1e-12, atol=1e-300)


def test_points_keep_what_is_known_of_their_cells() -> None:
    for spectrum in map(cells, ODDS):
        points = spectrum.points()
        assert points.n.sum() == pytest.approx(spectrum.moments[..., 0].sum(), rel=1e-14)
        used = (points.cell * 2 + points.wrong) * 2 + points.positive
        counts = np.bincount(used, weights=points.n, minlength=spectrum.moments[..., 0].size)
        np.testing.assert_allclose(counts, spectrum.moments[..., 0].ravel(), rtol=1e-14)


def exact(beta: float, L: np.ndarray, n: np.ndarray) -> list[float]:
    """Return the sums with 60 digits."""
    with mpmath.workdps(60):
        total = [mpmath.mpf(0)] * 4
        for x, count in zip(map(mpmath.mpf, L.tolist()), n.tolist(), strict=True):
            t = mpmath.exp(-beta * x)
            q = t / (1 + t)
            terms = (mpmath.log1p(t), x * q, x**2 * q * (1 - q), x**3 * q * (1 - q) * (1 - 2 * q))
            total = [a + count * b for a, b in zip(total, terms, strict=True)]
        return [float(x) for x in total]


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("way", ["compiled", "NumPy"])
def test_tempered_sums_have_all_digits(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "NumPy":
        monkeypatch.setattr(compiled, "_module", None)
    else:
        needs_kernel()
    L = POINTS[name]
    n = np.arange(1.0, len(L) + 1.0)
    for beta in BETAS:
        sums, wanted = tempered_sums(beta, L, n), exact(beta, L, n)
        assert sums[:3] == pytest.approx(wanted[:3], rel=2e-13, abs=1e-290)
        # Its terms have both signs, and are small where 1 - 2q is: what is lost is a share of L times the variance.
        largest = float(L.max(initial=0.0))
        assert sums[3] == pytest.approx(wanted[3], rel=2e-13, abs=1e-15 * max(largest * wanted[2], 1e-270))


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("way", ["compiled", "NumPy"])
def test_a_change_of_the_log_partition_has_all_digits(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "NumPy":
        monkeypatch.setattr(compiled, "_module", None)
    else:
        needs_kernel()
    L = POINTS[name]
    n = np.arange(1.0, len(L) + 1.0)
    for beta in BETAS:
        for other in (*BETAS, beta + 1e-12, beta * (1.0 + 1e-5), beta + 0.4):
            with mpmath.workdps(60):
                terms = [
                    count * (mpmath.log1p(mpmath.exp(-beta * x)) - mpmath.log1p(mpmath.exp(-other * x)))
                    for x, count in zip(map(mpmath.mpf, L.tolist()), n.tolist(), strict=True)
                ]
                wanted = float(mpmath.fsum(terms))
            assert tempered_change(beta, other, L, n) == pytest.approx(wanted, rel=1e-13, abs=1e-290), (beta, other)


def test_places_stand_in_the_order_of_probabilities() -> None:
    needs_kernel()
    L, n = np.array([0.1, 0.1, 3.0, 3.0, 0.1]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    wrong, positive = np.array([0, 1, 0, 1, 0], dtype=bool), np.array([1, 1, 0, 1, 1], dtype=bool)
    places = point_sums(L, n, wrong, positive, np.array([7, 7, 200, 200, 7]))
    assert places is not None
    used, sums = places
    assert used.tolist() == [450 - 1 - 200, 450 + 7, 450 + 200]
    columns = dict(zip(POINT_SUMS, sums.T.tolist(), strict=True))
    assert columns["weight"] == [4.0, 19.0, 8.0]
    assert columns["sum_observed"] == [0.0, 17.0, 0.0]
    assert columns["sum_correct"] == [4.0, 17.0, 0.0]
    with pytest.raises(ValueError, match="cells must lie between 0 and 449"):
        point_sums(L, n, wrong, positive, np.array([7, 7, 450, 200, 7]))
