"""Tests, temperatures and bounds from a Tally, against slow sums over the rows themselves."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal._sums import Tally
from safecal.inference import TestResult
from safecal.inference import calibration as testing
from safecal.inference.bounds import Bounds
from safecal.inference.nodes import NodesLaw
from safecal.inference.points import PointsLaw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))

from rows import Rows, classes, two_classes

ALPHA = 0.025
Draw = Callable[[np.random.Generator, int], np.ndarray]

SMOOTH: dict[str, Draw] = {
    "sharp": lambda rng, n: rng.normal(4.0, 1.0, n),
    "vague": lambda rng, n: rng.normal(0.0, 0.5, n),
    "rare": lambda rng, n: rng.normal(-7.0, 2.0, n),
    "uniform": lambda rng, n: special.logit(rng.random(n)),
    "vague and sharp": lambda rng, n: np.where(np.arange(n) % 2 == 0, rng.normal(0, 0.5, n), rng.normal(5, 1, n)),
}
LATTICES: dict[str, Draw] = {
    "0.999": lambda rng, n: np.full(n, special.logit(0.999)),
    "0.9": lambda rng, n: np.full(n, special.logit(0.9)),
    "four values": lambda rng, n: special.logit(rng.choice([0.55, 0.7, 0.9, 0.99], n)),
    "two decimals": lambda rng, n: special.logit(np.clip(np.round(rng.random(n), 2), 0.01, 0.99)),
}


def _drawn(law: str, n: int, weighted: bool, t: float = 1.2) -> tuple[Rows, Bounds, Tally]:
    rng = np.random.default_rng([n, len(law), weighted])
    z = (SMOOTH | LATTICES)[law](rng, n)
    y = rng.random(n) < special.expit(z / t)
    w = rng.gamma(1.0, 1.0, n) if weighted else None
    tally = Tally.of(safecal.bernoulli(y, logits=z), sample_weight=w)
    return two_classes(z, y, w), Bounds(tally), tally


def _result(tally: Tally, bounds: Bounds) -> TestResult:
    return testing.tally_test(tally, bounds.law)


def _law(bounds: Bounds) -> PointsLaw:
    assert isinstance(bounds.law, PointsLaw)
    return bounds.law


def _same_smooth_law(rows: Rows, bounds: Bounds, digits: float, p_digits: float) -> None:
    law, temperature = _law(bounds), bounds.temperature(1.0 - 2.0 * ALPHA)
    assert rows.is_temperature(temperature.value, digits)
    assert law.smooth(1.0) == pytest.approx(rows.saddlepoint(1.0), rel=p_digits, abs=1e-300)
    if not law.few:
        assert temperature.method == "saddlepoint"
        assert rows.is_bound(temperature.low, ALPHA, +1, digits)
        assert rows.is_bound(temperature.high, ALPHA, -1, digits)


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("law", [*SMOOTH, *LATTICES])
def test_two_classes(law: str, n: int) -> None:
    rows, bounds, _ = _drawn(law, n, False)
    if 0.0 < _law(bounds).beta < math.inf:
        _same_smooth_law(rows, bounds, 1e-7, 1e-4)


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("law", [*SMOOTH, *LATTICES])
def test_two_classes_with_weights(law: str, n: int) -> None:
    # Cells of log-odds and weight are twice as wide: T and its bounds keep six digits, p-values three.
    rows, bounds, _ = _drawn(law, n, True)
    if 0.0 < _law(bounds).beta < math.inf:
        _same_smooth_law(rows, bounds, 2e-6, 1e-3)


MILLION = {("rare", False), ("vague and sharp", True)}  # the others have a tenth of it


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("law", SMOOTH)
def test_a_million_rows(law: str, weighted: bool) -> None:
    rows, bounds, _ = _drawn(law, 1_000_000 if (law, weighted) in MILLION else 100_000, weighted, t=1.001)
    _same_smooth_law(rows, bounds, 2e-6 if weighted else 1e-7, 5e-3 if weighted else 1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("law", [*SMOOTH, *LATTICES])
def test_few_rows_against_every_outcome(law: str, weighted: bool) -> None:
    rows, bounds, _ = _drawn(law, 14, weighted, t=3.0)
    fitted = _law(bounds)
    assert fitted.few
    for beta in (0.3, 1.0, 2.0):
        assert fitted.tails(beta) == pytest.approx(rows.listed(beta), rel=1e-2, abs=5e-4)


@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize("law", ["0.999", "0.9", "four values"])
def test_lattices_against_their_own_convolution(law: str, n: int) -> None:
    rows, bounds, tally = _drawn(law, min(n, 80) if law == "four values" else n, False, t=2.0)
    fitted, several = _law(bounds), law == "four values"
    assert fitted.few
    for beta in (0.4, 1.0, 1.5):
        assert fitted.tails(beta) == pytest.approx(rows.listed(beta), rel=5e-3 if several else 1e-9, abs=1e-10)
    if 0.0 < fitted.beta < math.inf:
        interval = bounds.temperature(1.0 - 2.0 * ALPHA)
        for side, end in ((+1, interval.low), (-1, interval.high)):
            assert end == pytest.approx(rows.bound(ALPHA, side, "listed"), rel=1e-3 if several else 1e-8)
    listed = min(1.0, 2.0 * min(rows.listed(1.0)))
    assert _result(tally, bounds).p_value == pytest.approx(listed, rel=2e-2 if several else 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("law", SMOOTH)
def test_few_surprises_against_draws(law: str, weighted: bool) -> None:
    rows, bounds, _ = _drawn(law, 40, weighted, t=2.5)
    fitted, draws = _law(bounds), 200_000
    assert fitted.few
    for beta in (0.4, 1.0):
        for tail, wanted in zip(fitted.tails(beta), rows.drawn(beta, draws), strict=True):
            assert abs(tail - wanted) < 4.0 * math.sqrt(wanted * (1.0 - wanted) / draws) + 0.003 * wanted + 1e-5


def test_bounds_of_few_surprises_are_right_to_three_thousandths() -> None:
    rows, bounds, _ = _drawn("sharp", 16, False, t=3.0)
    interval = bounds.temperature(1.0 - 2.0 * ALPHA)
    assert _law(bounds).few
    for side, end in ((+1, interval.low), (-1, interval.high)):
        upper, lower = rows.listed(1.0 / end)
        assert (upper if side > 0 else lower) == pytest.approx(ALPHA, rel=5e-3)
        assert end == pytest.approx(rows.bound(ALPHA, side, "listed"), rel=3e-3)


@pytest.mark.proof
def test_a_few_sharp_rows_among_many_vague_ones() -> None:
    # Neither a smooth law nor a lattice of few values: the sharp rows have atoms, which the vague ones spread.
    rng = np.random.default_rng(3)
    z = np.concatenate([rng.normal(0.0, 0.1, 2000), np.full(100, 4.6)])
    y = rng.random(len(z)) < special.expit(z / 1.5)
    rows, law = two_classes(z, y), _law(Bounds(Tally.of(safecal.bernoulli(y, logits=z))))
    assert law.few
    for beta in (0.6, 1.0):
        for tail, wanted in zip(law.tails(beta), rows.drawn(beta, 50_000), strict=True):
            assert abs(tail - wanted) < 4.0 * math.sqrt(wanted * (1.0 - wanted) / 50_000) + 0.003 * wanted + 1e-5


def _several(k: int, spread: float, n: int, t: float = 1.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([k, n])
    z = rng.normal(0.0, spread, (n, k))
    p = special.softmax(z / t, axis=1)
    return z, np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)


@pytest.mark.parametrize(("k", "spread", "n"), [
    (3, 1.0, 300), (3, 4.0, 1000), (10, 2.5, 300),
    *(pytest.param(*case, marks=pytest.mark.proof) for case in ((10, 2.5, 5000), (100, 2.0, 500))),
])  # fmt: skip
def test_several_classes(k: int, spread: float, n: int) -> None:
    z, y = _several(k, spread, n)
    rows, tally = classes(z, y), Tally.of(safecal.categorical(y, logits=z))
    bounds = Bounds(tally)
    temperature = bounds.temperature(1.0 - 2.0 * ALPHA)
    wanted = rows.temperature(), rows.bound(ALPHA, +1), rows.bound(ALPHA, -1)
    assert (temperature.value, temperature.low, temperature.high) == pytest.approx(wanted, rel=1e-4)
    assert _result(tally, bounds).p_value == pytest.approx(2.0 * min(rows.saddlepoint(1.0)), rel=1e-3)


@pytest.mark.parametrize("t", [6.0, 20.0])
def test_several_classes_beyond_their_nodes(t: float) -> None:
    z, y = _several(5, 3.0, 4000, t)
    temperature, rows = Bounds(Tally.of(safecal.categorical(y, logits=z))).temperature(0.95), classes(z, y)
    assert temperature.value == pytest.approx(rows.temperature(), rel=0.02)
    assert temperature.low == pytest.approx(rows.bound(ALPHA, +1), rel=0.02)


LATTICES_OF_CLASSES = ([0.98, 0.01, 0.01], [0.98, 0.015, 0.005], [0.9, 0.07, 0.03], [0.99, 0.009, 0.001],
                       [0.97, 0.0299, 0.0001], [0.7, 0.2, 0.1])  # fmt: skip


@pytest.mark.parametrize(
    ("p", "n"), [(p, n) for p in LATTICES_OF_CLASSES for n in (20, 50, 200) if n * (1.0 - p[0]) <= 20.0], ids=str
)
@pytest.mark.proof
@pytest.mark.no_cover
def test_equal_predictions_of_three_classes_miss_as_rarely_as_they_say(p: list[float], n: int) -> None:
    """Of every possible outcome: how probable are those whose bound leaves out the truth?"""
    laws: dict[tuple[int, int], NodesLaw] = {}  # of an outcome, whatever the temperature it was drawn at
    for t in (0.5, 0.7, 1.0, 1.5, 2.0):
        tempered = special.softmax(np.log(p) / t)
        rates = n * (1.0 - tempered[0])
        most = int(min(n, rates + 7.0 * math.sqrt(rates) + 7.0))
        outcomes = [(a, b) for a, b in itertools.product(range(most + 1), repeat=2) if a + b <= most]
        chances = stats.multinomial.pmf([[n - a - b, a, b] for a, b in outcomes], n, tempered)
        missed = np.full(2, 1.0 - chances[chances > 1e-6].sum())  # the others count as missed
        for (a, b), chance in zip(outcomes, chances, strict=True):
            if chance > 1e-6:
                if (a, b) not in laws:
                    y = np.repeat([0, 1, 2], [n - a - b, a, b])
                    law = Bounds(Tally.of(safecal.categorical(y, np.tile(p, (n, 1))))).law
                    assert isinstance(law, NodesLaw)
                    laws[a, b] = law
                tails = laws[a, b].tails(1.0 / t)
                missed += chance * np.array([tails.upper <= ALPHA, tails.lower <= ALPHA])
        assert missed.max() <= 0.033, (t, missed)


def test_states() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(0.0, 1.3, (200, 3))
    tally = Tally.of(safecal.gaussian(x, np.zeros((200, 3)), std=1.0))
    temperature = Bounds(tally).temperature(0.95)
    total = float((x**2).sum())
    wanted = total / 600.0, total / stats.chi2.isf(0.025, 600), total / stats.chi2.isf(0.975, 600)
    assert (temperature.value, temperature.low, temperature.high) == pytest.approx(wanted, rel=1e-8)
    p = 2.0 * min(stats.chi2.sf(total, 600), stats.chi2.cdf(total, 600))
    assert _result(tally, Bounds(tally)).p_value == pytest.approx(p, rel=1e-8)
