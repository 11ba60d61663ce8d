"""Rows that come in clusters: temperatures and bounds from sums, against slow sums over the rows themselves."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal._sums import Tally
from safecal._sums.clusters import RARE
from safecal.inference.bounds import Bounds, clusters_needed
from safecal.inference.clustered import ClusteredLaw, Rarity
from safecal.inference.local import Local
from safecal.inference.sum_bounds import clustered_bounds, clustered_ratios

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))

from clustered import ClusteredRows, correlation, ecd_bounds, rarest_half
from rows import classes, two_classes

ALPHA = 0.025
LAWS = {
    "sharp": lambda rng, n: rng.normal(4.0, 1.0, n),
    "usual": lambda rng, n: rng.normal(0.0, 2.0, n),
    "vague": lambda rng, n: rng.normal(0.0, 0.5, n),
    "vague and sharp": lambda rng, n: np.where(np.arange(n) % 2 == 0, rng.normal(0, 0.5, n), rng.normal(5, 1, n)),
}


def _drawn(law: str, sizes: list[int], weighted: bool) -> tuple[ClusteredRows, Tally]:
    rng = np.random.default_rng([len(law), sum(sizes), weighted])
    codes = np.repeat(np.arange(len(sizes)), sizes)
    z = LAWS[law](rng, len(codes))
    y = rng.random(len(codes)) < special.expit(z / 1.2 + rng.normal(0.0, 0.5, len(sizes))[codes])
    w = rng.gamma(2.0, 1.0, len(codes)) if weighted else None
    rows = ClusteredRows(two_classes(z, y, w), np.where((z > 0.0) != y, np.abs(z), 0.0), codes)
    return rows, Tally.of(safecal.bernoulli(y, logits=z), sample_weight=w, cluster=codes)


SIZES = {"60 of 10": [10] * 60, "40 of 1 to 40": list(range(1, 41)), "8 of 50": [50] * 8, "300 of 2": [2] * 300}
CASES = [
    pytest.param(law, sizes, marks=() if (law, sizes) == ("usual", "60 of 10") else pytest.mark.proof)
    for law in LAWS
    for sizes in SIZES
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("law", "sizes"), CASES)
def test_two_classes(law: str, sizes: str, weighted: bool) -> None:
    rows, tally = _drawn(law, SIZES[sizes], weighted)
    temperature = Bounds(tally).temperature(1.0 - 2.0 * ALPHA)
    assert temperature.method == "cluster t"
    assert temperature.value == pytest.approx(rows.rows.temperature(), rel=2e-6 if weighted else 1e-7)
    for side, end in ((+1, temperature.low), (-1, temperature.high)):
        wanted = rows.bound(ALPHA, side)
        if 0.5 < wanted < 2.0:
            # Between beta = 1/2, 1 and 2 the sums of a cluster follow parabolas; weights make it rougher.
            assert end == pytest.approx(wanted, rel=1e-2 if "and" in law else 5e-3 if weighted else 1e-3)
        else:
            assert (end > 2.0) == (wanted > 2.0)
            assert (end < 0.5) == (wanted < 0.5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_tails_at_the_nodes_are_those_of_the_rows(law: str, weighted: bool) -> None:
    rows, tally = _drawn(law, [20] * 30, weighted)
    clustered = Bounds(tally).law
    assert isinstance(clustered, ClusteredLaw)
    for beta in (0.5, 1.0, 2.0):
        assert clustered.tails(beta) == pytest.approx(rows.tails(beta), rel=1e-3 if weighted else 1e-5)
        chance = special.expit(-beta * rows.rows.sizes[0])
        spread = rows.rows.weight * np.sqrt(rows.rows.cumulants(beta)[2])
        wanted = rarest_half(chance, spread), rarest_half(1.0 - chance, spread)
        assert [float(x[0]) for x in clustered.rarity(beta)] == pytest.approx(wanted, rel=2e-3)


@pytest.mark.parametrize("k", [3, pytest.param(10, marks=pytest.mark.proof)])
def test_several_classes(k: int) -> None:
    rng = np.random.default_rng(k)
    z = rng.normal(0.0, 2.0, (900, k))
    codes = np.repeat(np.arange(90), 10)
    shared = rng.normal(0.0, 0.5, (90, k))[codes]
    y = (z / 1.1 + shared + rng.gumbel(size=z.shape)).argmax(axis=1)
    rows = ClusteredRows(classes(z, y), z.max(axis=1) - z[np.arange(900), y], codes)
    bounds = Bounds(Tally.of(safecal.categorical(y, logits=z), cluster=codes))
    temperature = bounds.temperature(1.0 - 2.0 * ALPHA)
    # A clear case, with many mistakes: how rare they are does not matter, which sums bound and rows tell.
    assert (temperature.low, temperature.high) == pytest.approx(
        [rows.bound(ALPHA, side) for side in (+1, -1)], rel=1e-3
    )
    law = bounds.law
    assert isinstance(law, ClusteredLaw)
    for beta in (0.5, 1.0, 2.0):
        cumulants = rows.rows.cumulants(beta)
        chance, spread = -np.expm1(-cumulants[0]), np.sqrt(cumulants[2])
        for share, wanted in zip(law.rarity(beta), (chance, 1.0 - chance), strict=True):
            assert 0.3 * rarest_half(wanted, spread) < float(share[0]) <= rarest_half(wanted, spread) * (1.0 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_states(weighted: bool) -> None:
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(25), 8)
    x = rng.normal(0.0, 1.1, (200, 2)) + rng.normal(0.0, 0.4, (25, 2))[codes]
    w = rng.gamma(3.0, 1.0, 200) if weighted else np.ones(200)
    law = Bounds(Tally.of(safecal.gaussian(x, np.zeros((200, 2)), std=1.0), cluster=codes, sample_weight=w)).law
    assert law is not None
    half = (x**2).sum(axis=1) / 2.0
    for beta in (0.3, 0.7, 1.0, 1.5, 4.0):
        e = half - 1.0 / beta
        S, V, C, E = (np.bincount(codes, weights=c) for c in (w * e, w**2 / beta**2, w / beta, w**2 * e**2))
        C = C**2
        floor = (V + correlation(S, V, C, E) * (C - V)).sum()
        above = max(25 * S.var(ddof=1), floor)
        df = C.sum() ** 2 / (C**2).sum() - 1.0
        wanted = stats.t.sf(S.sum() / math.sqrt(above), df)
        lower = stats.t.cdf(S.sum() / math.sqrt(max(above, (S**2).sum())), df)
        assert law.tails(beta) == pytest.approx((wanted, lower), rel=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [[10] * 60, list(range(1, 41)), [50] * 8, [400] + [50] * 8, [400] + [5] * 8])
def test_ecd_of_all_rows_and_of_groups(sizes: list[int], weighted: bool) -> None:
    rng = np.random.default_rng(len(sizes))
    codes = np.repeat(np.arange(len(sizes)), sizes)
    n = len(codes)
    z, group = rng.normal(0.0, 2.0, n), rng.integers(0, 3, n)
    y = rng.random(n) < special.expit(z / 1.5 + rng.normal(0.0, 0.5, len(sizes))[codes])
    w = rng.gamma(2.0, 1.0, n) if weighted else np.ones(n)
    predictions = safecal.bernoulli(y, logits=z)
    tally = Tally.of(predictions, sample_weight=w, cluster=codes, by=group)
    scored, chance = predictions.score(), special.expit(-np.abs(z))
    columns = scored.excess, scored.varentropy, chance, w
    bounds = Bounds(tally)
    low, high, method = bounds._empirical(1.0 - 2.0 * ALPHA)
    temperature = bounds.temperature(1.0 - 2.0 * ALPHA)
    where = [min(max(1.0 / t, 2.0**-20), 2.0**20) if t > 0.0 else 2.0**20 for t in (temperature.high, temperature.low)]
    chances = [special.expit(-beta * np.abs(z)) for beta in where]
    spreads = [w * np.abs(z) * np.sqrt(q * (1.0 - q)) for q in chances]
    rarity = rarest_half(chances[0], spreads[0]), rarest_half(1.0 - chances[1], spreads[1])
    assert (low, high) == pytest.approx(ecd_bounds(*columns, codes, ALPHA, rarity), rel=1e-6)
    assert method == f"t on {len(sizes)} clusters"
    pairs = tally.pairs
    assert pairs is not None
    ends = clustered_bounds(pairs.key, pairs.cluster, pairs.sums, 3, ALPHA)
    for k in range(3):
        some = group == k
        wanted = ecd_bounds(*(c[some] for c in columns), codes[some], ALPHA, None)
        assert (ends.low[k], ends.high[k]) == pytest.approx(wanted, rel=1e-9)


def test_bounds_of_keys_add_up_rows_of_one_pair() -> None:
    rng = np.random.default_rng(3)
    n, key, cluster = 400, rng.integers(0, 5, 400), rng.integers(0, 20, 400)
    z = rng.normal(0.0, 2.0, n)
    y = rng.random(n) < special.expit(z)
    fine = Tally.of(safecal.bernoulli(y, logits=z), by=np.arange(n), cluster=cluster).pairs
    whole = Tally.of(safecal.bernoulli(y, logits=z), by=key, cluster=cluster).pairs
    assert fine is not None
    assert whole is not None
    a = clustered_bounds(key[fine.key], fine.cluster, fine.sums, 6, 0.01)
    b = clustered_bounds(whole.key, whole.cluster, whole.sums, 6, 0.01)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    assert np.isnan(a.low[5])  # a key without rows


FAMILIES = {
    "two classes": lambda z, y: (safecal.bernoulli(y, logits=z[:, 0]), special.expit(z[:, 0])),
    "three classes": lambda z, y: (
        safecal.categorical((z + y[:, None]).argmax(axis=1), logits=z), special.softmax(z, axis=1).max(axis=1)
    ),
    "states": lambda z, y: (
        safecal.gaussian(z[:, :2], np.zeros((len(z), 2)), std=np.exp(z[:, 2:]) * np.ones(2)), np.exp(z[:, 2])
    ),
}  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_ranges_have_the_bounds_of_their_rows_as_a_group(family: str, weighted: bool) -> None:
    rng = np.random.default_rng(len(family))
    z, codes = rng.normal(0.0, 1.5, (2000, 3)), rng.integers(0, 80, 2000)
    y = rng.random(2000) < special.expit(z[:, 0] - 0.5 + rng.normal(0.0, 0.5, 80)[codes])
    w = rng.gamma(2.0, 1.0, 2000) if weighted else None
    predictions, place = FAMILIES[family](z, y)
    local = Local.of(Tally.of(predictions, sample_weight=w, cluster=codes))
    assert len(local) > 10
    assert local.error == pytest.approx(0.005 if family == "states" else 0.01), "states share it with their directions"
    top = z.argmax(axis=1)
    for r in local:
        inside = (place >= r.low) & (place < r.high) & (True if r.label is None else top == r.label)
        assert inside.sum() == r.n
        pairs = Tally.of(predictions, sample_weight=w, cluster=codes, by=inside).pairs
        assert pairs is not None
        for alpha, bounds in ((local.error / len(local), (r.ecd.low, r.ecd.high)), (0.1 / len(local), (r.at_least,))):
            ends = clustered_bounds(pairs.key, pairs.cluster, pairs.sums, 2, alpha)
            k = pairs.keys.index(True)
            wanted = [max(float(end[k]), predictions.least_excess) for end in ends]
            assert list(bounds) == pytest.approx(wanted[: len(bounds)], rel=1e-6, abs=1e-9)


def test_few_clusters_bound_nothing_from_above() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(0.0, 2.0, 300)
    y = rng.random(300) < special.expit(z)
    for codes in (np.repeat([0, 1, 2], 100), np.minimum(np.arange(300) // 10 * (np.arange(300) > 250), 30)):
        bounds = Bounds(Tally.of(safecal.bernoulli(y, logits=z), cluster=codes))
        assert bounds.temperature(0.95).high == math.inf
        assert bounds.interval(0.95).high == math.inf


def test_weights_have_no_unit() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(0.0, 2.0, 800)
    y, w = rng.random(800) < special.expit(z), rng.gamma(2.0, 1.0, 800)
    codes, group = np.repeat(np.arange(80), 10), rng.integers(0, 4, 800)
    numbers = []
    for unit in (1.0, 1e-70, 1e70):
        tally = Tally.of(safecal.bernoulli(y, logits=z), sample_weight=w * unit, cluster=codes, by=group)
        bounds, pairs = Bounds(tally), tally.pairs
        assert pairs is not None
        ends = clustered_bounds(pairs.key, pairs.cluster, pairs.sums, 4, ALPHA)
        t, e = bounds.temperature(0.95), bounds.interval(0.95)
        numbers.append([t.value, t.low, t.high, e.low, e.high, *ends.low, *ends.high])
    np.testing.assert_allclose(numbers[1:], [numbers[0]] * 2, rtol=1e-5)  # cells of weights are powers of two


@pytest.mark.parametrize("parts", [(0.4, 0.001), (0.5, 0.0), (0.3, 0.3), (0.4, 0.1, 0.01, 0.001)])
def test_rarity_from_sums_is_never_too_large(parts: tuple[float, ...]) -> None:
    rng = np.random.default_rng(5)
    chance, spread = rng.choice(parts, 1000), rng.gamma(2.0, 1.0, 1000)
    sums = [spread @ c for c in (chance, np.sqrt(chance), 1.0 - chance, np.sqrt(1.0 - chance))]
    assert len(sums) == len(RARE)
    rarity = Rarity.of(np.array([sums]), np.array([spread.sum()]))
    assert 0.0 <= rarity.surprise[0] <= rarest_half(chance, spread) * (1.0 + 1e-9) + 1e-12
    assert 0.0 <= rarity.no_surprise[0] <= rarest_half(1.0 - chance, spread) * (1.0 + 1e-9)


def _needed(tally: Tally, **limits: float) -> int | None:
    return clusters_needed(tally, **{"threshold": 0.1, "max_temperature": 1.5, "alpha": ALPHA, **limits})


def _calibrated(clusters: int, seed: int = 0) -> Tally:
    rng = np.random.default_rng([clusters, seed])
    z = rng.normal(0.0, 2.0, 50 * clusters)
    y = rng.random(50 * clusters) < special.expit(z)
    return Tally.of(safecal.bernoulli(y, logits=z), cluster=np.repeat(np.arange(clusters), 50))


def test_as_many_clusters_as_are_said_to_be_needed_are_about_enough() -> None:
    totals = [clusters + (_needed(_calibrated(clusters)) or 0) for clusters in (5, 10, 20, 30)]
    assert all(35 <= total <= 60 for total in totals), totals
    large = _calibrated(100)
    assert _needed(large) == 0
    bounds = Bounds(large)
    assert bounds.temperature(0.95).high < 1.5
    assert bounds.interval(0.95).high < 0.1


def test_no_number_of_clusters_helps_an_estimate_beyond_its_limit() -> None:
    tally = _calibrated(30)
    assert _needed(tally, max_temperature=0.8) is None
    assert _needed(tally, threshold=-0.5) is None
    assert _needed(tally, max_ratio=0.5) is None
    assert (_needed(tally, max_ratio=1.05) or 0) > (_needed(tally) or 0)


@pytest.mark.parametrize("family", ["10 classes", "states", "density"])
def test_every_family_says_how_many(family: str) -> None:
    rng = np.random.default_rng(8)
    codes = np.repeat(np.arange(6), 20)
    if family == "states":
        predictions = safecal.gaussian(rng.normal(size=(120, 2)), np.zeros((120, 2)), std=1.1)
    elif family == "density":
        predictions = safecal.density(
            rng.normal(size=120), log_density=lambda v: -0.4 * v**2, sampler=lambda r: r.normal(0, 1.12, 120), rng=0
        )
    else:
        z = rng.normal(0.0, 2.0, (120, 10))
        predictions = safecal.categorical((z + rng.gumbel(size=z.shape)).argmax(axis=1), logits=z)
    needed = _needed(Tally.of(predictions, cluster=codes))
    assert needed is not None
    assert 0 < needed < 1000


def test_ratios_of_mistakes_against_a_slow_search() -> None:
    """Rows with one weight: at the bounds, a t test of (seen - ratio x announced) has just the level."""
    rng = np.random.default_rng(9)
    codes = np.repeat(np.arange(120), 10)
    q = np.repeat(rng.choice([0.1, 0.3], 120), 10)
    wrong = rng.random(1200) < 1.2 * q
    tally = Tally.of(safecal.bernoulli(~wrong, 1.0 - q), cluster=codes, by=np.zeros(1200))
    pairs = tally.pairs
    assert pairs is not None
    (low,), (high,) = clustered_ratios(pairs.key, pairs.cluster, pairs.sums, 1, ALPHA)
    seen, announced = (np.bincount(codes, weights=x) for x in (wrong, q))
    assert low < seen.sum() / announced.sum() < high
    C = 10.0 * announced
    df = C.sum() ** 2 / (C**2).sum() - 1.0
    for ratio, side in ((low, 1.0), (high, -1.0)):
        S = seen - ratio * announced
        t = side * S.sum() / math.sqrt(120 * S.var(ddof=1))
        assert stats.t.sf(t, df) <= ALPHA * 1.05  # the spread seen alone is never more than what is used
        assert stats.t.sf(t, df) > ALPHA / 4.0
    assert np.isnan(clustered_ratios(pairs.key, pairs.cluster, np.full((120, 14), np.nan), 1, ALPHA).low).all()
