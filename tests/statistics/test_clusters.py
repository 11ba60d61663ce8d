"""Rows that come in clusters and surprise as one: no bound misses the truth more often than it says.

Where clusters are few, bounds are wide, and miss far less often than that.
"""

from __future__ import annotations

import numpy as np
import pytest
from models import error
from scipy import special
from shocks import KINDS, Drawn, draw, draw_at, sizes, true_ecd

import safecal
from safecal import Limits, Place
from safecal._sums import Tally
from safecal.errors import UnavailableError
from safecal.inference.bounds import Bounds
from safecal.inference.local import Local
from safecal.inference.sum_bounds import bounds_by_key, clustered_bounds, clustered_ratios
from safecal.judge.decision import range_places

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]  # the same lines many times over
ALPHA = 0.025
REPEATS = {3: 80, 5: 80, 10: 60, 30: 40, 100: 30}
CELLS = [
    *((kind, clusters, "equal", 1.5) for kind in KINDS for clusters in (3, 10, 30, 100)),
    *((kind, clusters, "equal", 1.0) for kind in ("usual", "storm", "vague") for clusters in (5, 30, 100)),
    *((kind, clusters, "unequal", 1.5) for kind in ("usual", "storm", "states") for clusters in (5, 10, 30, 100)),
    *((kind, 10, "one giant", 1.5) for kind in ("usual", "storm", "states")),
]


@pytest.mark.parametrize(("kind", "clusters", "shape", "temperature"), CELLS)
def test_no_side_misses_more_often_than_it_says(kind: str, clusters: int, shape: str, temperature: float) -> None:
    repeats = REPEATS[clusters]
    rng = np.random.default_rng([clusters, len(kind), len(shape), int(10 * temperature)])
    truth, rows = true_ecd(kind, temperature), sizes(shape, clusters)
    missed = np.zeros(4)
    for _ in range(repeats):
        drawn = draw(kind, rng, rows, temperature)
        bounds = Bounds(Tally.of(drawn.predictions, cluster=drawn.codes))
        t, e = bounds.temperature(1.0 - 2.0 * ALPHA), bounds.interval(1.0 - 2.0 * ALPHA)
        missed += [t.high < temperature, e.high < truth, t.low > temperature, e.low > truth]
    assert (missed / repeats <= ALPHA + error(ALPHA, repeats)).all(), missed / repeats


@pytest.mark.parametrize(("clusters", "rows", "kind", "high", "low"), [
    (60, 50, "independent", 0.9, 0.0),
    (100, 50, "correlated", 0.5, 0.0),
    (20, 50, "independent", 0.0, 0.5),
    (30, 50, "independent", 0.0, 0.9),
])  # fmt: skip
def test_power_where_rows_depend_on_each_other_less(
    clusters: int, rows: int, kind: str, high: float, low: float
) -> None:
    """T = 1.5 is excluded from above where T is 1, and from below where it is 2."""
    rng, repeats = np.random.default_rng(clusters), 40
    size = np.full(clusters, rows)
    rates = []
    for temperature in (1.0, 2.0):
        samples = [draw(kind, rng, size, temperature) for _ in range(repeats)]
        rates.append([Bounds(Tally.of(d.predictions, cluster=d.codes)).temperature(0.95) for d in samples])
    assert np.mean([t.high < 1.5 for t in rates[0]]) >= high
    assert np.mean([t.low > 1.5 for t in rates[1]]) >= low


@pytest.mark.parametrize("crossed", [False, True], ids=["nested", "crossed"])
@pytest.mark.parametrize("kind", ["usual", "vague", "storm", "correlated", "independent", "10 classes", "states"])
def test_groups_of_a_calibrated_model_are_not_called_over_confident(kind: str, crossed: bool) -> None:
    """Six groups, eight clusters each; bounds of rows that are taken as independent find one in up to half."""
    groups, clusters, repeats = 6, 8, 80
    rng = np.random.default_rng([len(kind), crossed])
    by_clusters = by_rows = 0
    limit = 0.2 if kind == "states" else 0.1  # of two dimensions
    for _ in range(repeats):
        drawn = draw(kind, rng, np.full(clusters, 50 * groups) if crossed else np.full(clusters * groups, 50))
        group = np.arange(len(drawn.codes)) % groups if crossed else drawn.codes // clusters
        tally = Tally.of(drawn.predictions, by=group, cluster=drawn.codes)
        assert tally.pairs is not None
        assert tally.groups is not None
        p = tally.pairs
        low, high = clustered_bounds(p.key, p.cluster, p.sums, groups, 0.01 / groups)
        by_clusters += bool((low > limit).any())
        by_rows += bool((bounds_by_key(tally.groups.sums, 0.01 / groups)[0] > limit).any())
        assert (high > 0.0).all()
    assert by_clusters / repeats <= 0.01 + error(0.01, repeats)
    if kind in ("usual", "storm"):
        assert by_rows / repeats > 0.05


def ranges(drawn: Drawn) -> list[Place]:
    """Return the ranges that are beyond the limit, or suspected to be."""
    return range_places(Local.of(Tally.of(drawn.predictions, cluster=drawn.codes)), Limits())


AT_THE_LIMIT = [
    *(
        (kind, clusters, "equal")
        for kind in ("usual", "storm", "correlated", "independent")
        for clusters in (3, 10, 30)
    ),
    *((kind, 100, "unequal") for kind in ("usual", "storm", "correlated", "independent")),
    *((kind, clusters, "unequal") for kind in ("states", "10 classes") for clusters in (5, 30)),
    *((kind, 100, "equal") for kind in ("independent", "independent states")),
]


@pytest.mark.parametrize(("kind", "clusters", "shape"), AT_THE_LIMIT)
def test_ranges_just_below_the_limit_are_not_called_unsafe(kind: str, clusters: int, shape: str) -> None:
    """ECD is 0.199 nat a dimension in every row, where 0.2 is allowed."""
    repeats = REPEATS[clusters] * (1 if "classes" in kind else 2)
    rng = np.random.default_rng([clusters, len(kind), len(shape)])
    rows = sizes(shape, clusters)
    shown = sum(any(place.shown for place in ranges(draw_at(kind, rng, rows, 0.199))) for _ in range(repeats))
    assert shown / repeats <= 0.01 + error(0.01, repeats)


@pytest.mark.parametrize(("clusters", "said", "least"), [
    (100, "a shift of 1", 0.4), (300, "a shift of 1", 0.95), (300, "a mixture", 0.4),
])  # fmt: skip
def test_ranges_show_what_cancels_on_average(clusters: int, said: str, least: float) -> None:
    repeats, rng = 25, np.random.default_rng(clusters)
    codes = np.repeat(np.arange(clusters), 50)
    shown = []
    for _ in range(repeats):
        z = rng.normal(0.0, 2.0, len(codes))
        y = rng.random(len(codes)) < special.expit(z)
        z = z + 1.0 if said == "a shift of 1" else np.where(rng.random(len(codes)) < 0.3, 2.0, 0.45) * z
        places = ranges(Drawn(safecal.bernoulli(y, logits=z), codes))
        assert places  # suspected at least, so that the model is not called safe
        shown.append(places[0].shown)
    assert np.mean(shown) >= least


@pytest.mark.parametrize("kind", ["usual", "storm", "correlated", "independent", "10 sharp classes", "states"])
def test_ranges_of_a_calibrated_model_are_hardly_ever_suspected(kind: str) -> None:
    rng, repeats = np.random.default_rng(len(kind)), 40
    samples = [ranges(draw(kind, rng, sizes("equal", clusters))) for clusters in (30, 100) for _ in range(repeats // 2)]
    assert np.mean([bool(places) for places in samples]) <= 0.05
    assert not any(place.shown for places in samples for place in places)


@pytest.mark.parametrize("kind", ["usual", "storm", "correlated", "independent", "10 classes"])
@pytest.mark.parametrize("clusters", [5, 10, 30, 100])
def test_the_ratio_of_mistakes(kind: str, clusters: int) -> None:
    rng, repeats = np.random.default_rng(clusters), REPEATS[clusters]
    z = KINDS[kind](np.random.default_rng(1), 200_000)
    z = np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z
    announced, made = (1.0 - special.softmax(x, axis=1).max(axis=1).mean() for x in (z, z / 2.0))
    missed = np.zeros(2)
    for _ in range(repeats):
        drawn = draw(kind, rng, sizes("equal", clusters), 2.0)
        clusters_of_rows = Tally.of(drawn.predictions, cluster=drawn.codes).clusters
        assert clusters_of_rows is not None
        places = np.zeros(clusters, dtype=np.intp), np.arange(clusters)
        low, high = clustered_ratios(*places, clusters_of_rows.sums, 1, ALPHA)
        missed += [low[0] > made / announced, high[0] < made / announced]
    assert (missed / repeats <= ALPHA + error(ALPHA, repeats)).all(), missed / repeats


@pytest.mark.parametrize(("clusters", "rows", "kind"), [
    (30, 50, "usual"), (30, 50, "correlated"), (100, 20, "usual"), (10, 50, "usual"), (30, 50, "storm among vague"),
])  # fmt: skip
def test_a_safe_temperature_is_safe_where_rows_share_a_shock(clusters: int, rows: int, kind: str) -> None:
    rng, repeats, truth, alpha = np.random.default_rng(clusters), 40, 1.5, 0.05
    over = np.zeros(2)
    for _ in range(repeats):
        drawn = draw(kind, rng, np.full(clusters, rows), truth)
        for k, cluster in enumerate((drawn.codes, None)):
            try:
                fitted = safecal.SafeTemperature(alpha).fit_predictions(drawn.predictions, cluster=cluster)
            except UnavailableError:
                continue
            over[k] += fitted.temperature_ < truth
    assert over[0] / repeats <= alpha + error(alpha, repeats)
    if kind == "usual":
        assert over[1] / repeats > 0.2


def test_rows_of_one_cluster_each_are_rows() -> None:
    """Clusters of one row: the bounds are about those of independent rows."""
    rng = np.random.default_rng(3)
    z = rng.normal(0.0, 2.0, 2000)
    predictions = safecal.bernoulli(rng.random(2000) < special.expit(z / 1.2), logits=z)
    alone, clustered = (Bounds(Tally.of(predictions, cluster=c)) for c in (None, np.arange(2000)))
    for a, b in (
        (alone.temperature(0.95), clustered.temperature(0.95)),
        (alone.interval(0.95), clustered.interval(0.95)),
    ):
        assert b.value == pytest.approx(a.value, rel=1e-9)
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.1)
