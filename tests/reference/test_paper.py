"""The simulation of arXiv 2502.14545, section V-A, against slow obvious loops, line by line of its table."""

from __future__ import annotations

import math

import numpy as np
import pytest

import safecal

from . import loops

N = 10_000


def simulate(sigma: float, seed: int) -> tuple[list[int], list[float]]:
    """Return labels and estimated probabilities: log-odds uniform on (-10, 10), halved, plus noise."""
    rng = np.random.default_rng(seed)
    log_odds = 0.5 * rng.uniform(-10.0, 10.0, N)
    truth = 1.0 / (1.0 + np.exp(-log_odds))
    labels = rng.binomial(1, truth)
    estimated = 1.0 / (1.0 + np.exp(-(log_odds + sigma * rng.normal(size=N))))
    return labels.tolist(), estimated.tolist()


@pytest.mark.parametrize("sigma", [0.0, 0.5, 2.0])
def test_every_line_of_the_table_is_what_slow_loops_give(sigma: float) -> None:
    y, p = simulate(sigma, seed=1)
    lines = loops.table(p, y, [loops.bernoulli_excess(a, b) for a, b in zip(p, y, strict=True)], 10)
    result = safecal.evaluate(y, p, bins=10)
    table = result.bins
    assert table is not None
    assert table.keys == tuple((k / 10, (k + 1) / 10) for k in range(10))
    assert [s.n for s in table.summaries] == [line.n for line in lines]
    assert table.predicted == pytest.approx([line.predicted for line in lines], rel=1e-12)
    assert table.observed == pytest.approx([line.observed for line in lines], rel=1e-12)
    assert table.gaps == pytest.approx([line.observed - line.predicted for line in lines], abs=1e-13)
    assert table.ecd == pytest.approx([line.ecd for line in lines], rel=1e-10, abs=1e-12)
    assert result.ece == pytest.approx(loops.ece(lines), rel=1e-11)
    assert result.esce == pytest.approx(loops.esce(lines), rel=1e-11, abs=1e-14)
    weighted = math.fsum(line.n * line.ecd for line in lines) / N
    assert result.ecd == pytest.approx(weighted, rel=1e-11)


@pytest.mark.proof
def test_without_noise_the_published_sums_lie_within_the_spread_of_the_simulation() -> None:
    results = [safecal.evaluate(*simulate(0.0, seed)) for seed in range(40)]
    assert min(r.ece for r in results) < 0.0077 < max(r.ece for r in results)
    assert min(r.esce for r in results) < 0.0003 < max(r.esce for r in results)
    assert min(r.ecd for r in results) < 0.0057 < max(r.ecd for r in results)


def test_noise_on_the_log_odds_makes_a_model_over_confident() -> None:
    clean, some, much = (safecal.evaluate(*simulate(sigma, seed=2)) for sigma in (0.0, 0.5, 2.0))
    assert abs(clean.ecd) < 3.5 * math.sqrt(clean.summary.sum_varentropy) / N
    assert some.ecd > 0.0
    assert much.ecd > 0.15
    assert much.ece > some.ece
    assert abs(much.esce) < 0.02 < much.ece  # both sides cancel in the signed error
    assert much.ece_overconfident > 0.9 * much.ece


def test_the_noise_as_described_gives_less_than_the_published_second_and_third_columns() -> None:
    # Published: ECE .1702 and ECD 1.2901 for sigma = .5, ECE .4042 and ECD 4.2405 for sigma = 2. The text as it stands
    # gives a tenth of that.
    some, much = (safecal.evaluate(*simulate(sigma, seed=3)) for sigma in (0.5, 2.0))
    assert (some.ece, some.ecd) == pytest.approx((0.01, 0.014), abs=0.012)
    assert (much.ece, much.ecd) == pytest.approx((0.08, 0.21), abs=0.03)
