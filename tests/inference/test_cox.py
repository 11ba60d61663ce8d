"""Shift and slope from cells, against fits to the rows themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

import safecal
from safecal._sums import Tally
from safecal.inference.cox import Cox

CASES = {
    "calibrated": (1000, 0.0, 2.0, 0.0, 1.0),
    "shifted": (3000, 0.0, 2.0, 0.7, 1.0),
    "too sharp": (3000, 0.0, 2.0, 0.0, 0.6),
    "both, rare": (20_000, -3.0, 1.5, -0.4, 0.6),
    "vague": (500, 0.0, 0.5, 0.0, 1.0),
}


def _drawn(case: str) -> tuple[Any, Any]:
    n, centre, spread, shift, slope = CASES[case]
    rng = np.random.default_rng(n)
    z = rng.normal(centre, spread, n)
    return z, rng.random(n) < special.expit(shift + slope * z)


def _cox(z: Any, y: Any, **options: Any) -> Cox:
    cox = Cox.of(Tally.of(safecal.bernoulli(y, logits=z), **options))
    assert cox is not None
    return cox


def _lost(at: Any, z: Any, y: Any) -> float:
    x = at[0] + at[1] * z
    return float(np.logaddexp(0.0, np.where(y, -x, x)).sum())


def _fitted(z: Any, y: Any) -> Any:
    """Fit rows by Newton's method, from the definition."""
    at = np.array([0.0, 1.0])
    for _ in range(30):
        q = special.expit(at[0] + at[1] * z)
        columns = np.stack([np.ones_like(z), z])
        at = at + np.linalg.solve((columns * (q * (1 - q))) @ columns.T, columns @ (y - q))
    return at


@pytest.mark.parametrize("case", CASES)
def test_shift_and_slope_are_those_of_the_rows(case: str) -> None:
    z, y = _drawn(case)
    cox = _cox(z, y)
    assert [cox.shift.value, cox.slope.value] == pytest.approx(_fitted(z, y), abs=5e-8)


@pytest.mark.parametrize("case", CASES)
def test_ends_lie_where_the_likelihood_has_dropped(case: str) -> None:
    z, y = _drawn(case)
    cox = _cox(z, y)
    best = _lost(_fitted(z, y), z, y)
    for k, interval in enumerate((cox.shift, cox.slope)):
        for end in (interval.low, interval.high):

            def other(value: float, end: float = end, k: int = k) -> float:
                return _lost((end, value) if k == 0 else (value, end), z, y)

            least = optimize.minimize_scalar(other, bracket=(-1.0, 1.0), tol=1e-12).fun
            assert 2.0 * (least - best) == pytest.approx(stats.chi2.ppf(0.95, 1), rel=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_score_tests_are_those_of_the_rows(case: str) -> None:
    z, y = _drawn(case)
    q = special.expit(z)
    columns = np.stack([np.ones_like(z), z])
    score, variance = columns @ (y - q), (columns * (q * (1 - q))) @ columns.T
    wanted = [
        *stats.chi2.sf(score**2 / np.diag(variance), 1),
        stats.chi2.sf(score @ np.linalg.inv(variance) @ score, 2),
    ]
    cox = _cox(z, y)
    assert [cox.p_shift, cox.p_slope, cox.p_both] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.extra
@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_statsmodels(case: str) -> None:
    sm = pytest.importorskip("statsmodels.api")
    z, y = _drawn(case)
    fit = sm.Logit(y.astype(float), sm.add_constant(z)).fit(disp=0, method="newton", tol=1e-14)
    large = sm.GLM(y.astype(float), np.ones_like(z), family=sm.families.Binomial(), offset=z).fit(tol=1e-14)
    cox = _cox(z, y)
    assert [cox.shift.value, cox.slope.value] == pytest.approx(fit.params, abs=5e-8)
    assert cox.in_the_large.value == pytest.approx(large.params[0], abs=5e-8)


def test_the_slope_is_the_inverse_of_the_implied_temperature_where_there_is_no_shift() -> None:
    z, y = _drawn("too sharp")
    tally = Tally.of(safecal.bernoulli(np.append(y, ~y), logits=np.append(z, -z)))  # both sides alike: no shift
    cox = Cox.of(tally)
    assert cox is not None
    assert cox.shift.value == pytest.approx(0.0, abs=1e-9)
    assert 1.0 / cox.slope.value == pytest.approx(safecal.implied_temperature(tally).value, rel=1e-7)


def test_weights_count_rows() -> None:
    z, y = _drawn("shifted")
    twice = _cox(np.append(z, z), np.append(y, y))
    weighted = _cox(z, y, sample_weight=np.full(len(z), 2.0))
    assert weighted.shift.value == pytest.approx(twice.shift.value, abs=1e-4)
    assert weighted.slope.value == pytest.approx(twice.slope.value, abs=1e-4)
    once = _cox(z, y)
    assert weighted.slope.method == "robust"
    assert weighted.slope.high == pytest.approx(once.slope.high, abs=5e-3)  # a weight of 2 is not two rows
    assert (weighted.p_shift, weighted.p_slope) == pytest.approx((once.p_shift, once.p_slope), rel=1e-2)


def test_clusters_have_the_shift_and_slope_of_the_rows_and_wider_intervals() -> None:
    z, y = _drawn("shifted")
    cox, rows = _cox(z, y, cluster=np.arange(len(z)) % 50), _cox(z, y)
    for name in ("shift", "slope", "in_the_large"):
        wide, narrow = getattr(cox, name), getattr(rows, name)
        assert wide.value == pytest.approx(narrow.value)
        assert wide.method == "cluster t"
        assert wide.low < narrow.low < narrow.high < wide.high
    assert cox.p_shift < 1e-4
    assert cox.p_both == pytest.approx(2.0 * min(cox.p_shift, cox.p_slope))


def test_many_clusters_of_one_row_have_about_the_interval_of_the_rows() -> None:
    z, y = _drawn("calibrated")
    cox, rows = _cox(z, y, cluster=np.arange(len(z))), _cox(z, y)
    for name in ("shift", "slope", "in_the_large"):
        width = getattr(rows, name).high - getattr(rows, name).low
        assert getattr(cox, name).high - getattr(cox, name).low == pytest.approx(width, rel=0.1)
    assert (cox.p_shift, cox.p_slope) == pytest.approx((rows.p_shift, rows.p_slope), abs=0.03)


def test_weighted_clusters_are_those_of_rows_that_are_there_twice() -> None:
    z, y = _drawn("shifted")
    cluster = np.arange(len(z)) // 20
    once, heavy = _cox(z, y, cluster=cluster), _cox(z, y, cluster=cluster, sample_weight=np.full(len(z), 3.0))
    assert (heavy.slope.low, heavy.slope.high) == pytest.approx((once.slope.low, once.slope.high), abs=2e-3)


def test_one_cluster_and_a_tally_from_a_document_have_no_interval() -> None:
    z, y = _drawn("shifted")
    one = _cox(z, y, cluster=np.zeros(len(z)))
    assert one.slope.method == "none: too few clusters"
    assert (one.slope.low, one.slope.high) == (-np.inf, np.inf)
    assert np.isnan(one.p_both)
    result = safecal.evaluate(y, logits=z, cluster=np.arange(len(z)) // 20)
    read = safecal.Evaluation.from_dict(result.to_dict())
    assert read.cox == result.cox
    alone = Cox.of(read.tally)
    assert alone is not None
    assert alone.slope.method == "none: the sums by cluster and range are missing"


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("clusters", "rows", "centre", "shared", "shift", "slope"),
    [
        (5, 50, 0.0, 0.9, 0.0, 1.0),
        (30, 20, 0.0, 0.5, 0.0, 1.0),
        (40, 20, -4.0, 0.8, 0.0, 1.0),
        (100, 10, 0.0, 0.8, 0.0, 1.0),
        (200, 10, 0.0, 0.5, 0.0, 1.0),
        (200, 5, 0.0, 0.3, 0.7, 0.6),
    ],
)
def test_intervals_of_clusters_hold_the_truth(
    clusters: int, rows: int, centre: float, shared: float, shift: float, slope: float
) -> None:
    rng, held, rejected, repetitions = np.random.default_rng(clusters), np.zeros(2), np.zeros(3), 300
    cluster = np.repeat(np.arange(clusters), rows)
    for _ in range(repetitions):
        z = rng.normal(centre, 2.0, len(cluster)) + rng.normal(size=clusters)[cluster]
        own, common = rng.normal(size=len(cluster)), rng.normal(size=clusters)[cluster]
        chance = special.ndtr(np.sqrt(shared) * common + np.sqrt(1.0 - shared) * own)  # each row by itself is uniform
        cox = _cox(z, chance < special.expit(shift + slope * z), cluster=cluster)
        held += [cox.shift.low <= shift <= cox.shift.high, cox.slope.low <= slope <= cox.slope.high]
        rejected += np.array([cox.p_shift, cox.p_slope, cox.p_both]) < 0.05
    assert (held / repetitions).min() >= 0.95 - 0.033
    if (shift, slope) == (0.0, 1.0):
        assert (rejected / repetitions).max() <= 0.05 + 0.033


def test_what_has_no_best_fit() -> None:
    right = _cox(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1]))
    assert np.isnan(right.slope.value)
    assert right.slope.method == "none: no best shift and slope exist"
    same = _cox(np.full(50, 1.0), np.arange(50) % 3 > 0)
    assert np.isnan(same.slope.value)
    assert same.in_the_large.low < same.in_the_large.value < same.in_the_large.high
    assert same.p_both == same.p_shift
    assert Cox.of(Tally.of(safecal.bernoulli([0, 1], [0.0, 1.0]))) is None
    assert Cox.of(Tally.of(safecal.gaussian([0.0, 1.0], [0.0, 0.0], std=1.0))) is None


def test_it_is_written_and_read() -> None:
    cox = _cox(*_drawn("shifted"))
    assert Cox.from_dict(cox.to_dict()) == cox
