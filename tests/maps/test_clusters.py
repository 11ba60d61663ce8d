"""Temperatures of rows that depend on each other."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, special, stats

import safecal
from safecal.errors import MissingValueError, ShapeError, UnavailableError
from safecal.maps.temperature import SafeTemperature, Temperature

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))

from clustered import ClusteredRows
from rows import two_classes


def _rows(clusters: int, size: int, seed: int = 0, scale: float = 1.6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outcomes, log-odds that are too large, and clusters with an intercept of their own."""
    rng = np.random.default_rng([clusters, size, seed])
    codes = np.repeat(np.arange(clusters), size)
    z = rng.normal(0.0, 2.0, len(codes))
    y = rng.random(len(codes)) < special.expit(z + rng.normal(0.0, 0.5, clusters)[codes])
    return y, scale * z, codes


def test_the_likeliest_temperature_stays_and_its_interval_widens() -> None:
    y, z, codes = _rows(40, 25)
    alone, clustered = (Temperature().fit(y, logits=z, cluster=c) for c in (None, codes))
    assert clustered.temperature_ == alone.temperature_
    assert clustered.interval_.low < alone.interval_.low
    assert clustered.interval_.high > alone.interval_.high
    assert clustered.interval_.method == "cluster t"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("alpha", "scale"), [(0.05, 1.6), (0.2, 0.7), (0.05, 6.0)])
def test_the_safe_temperature_is_where_the_test_of_the_rows_no_longer_rejects(
    alpha: float, scale: float, weighted: bool
) -> None:
    y, z, codes = _rows(60, 10, scale=scale)
    w = np.random.default_rng(1).gamma(2.0, 1.0, len(y)) if weighted else None
    rows = ClusteredRows(two_classes(z, y, w), np.where((z > 0.0) != y, np.abs(z), 0.0), codes)
    model = SafeTemperature(alpha).fit(y, logits=z, cluster=codes, sample_weight=w)
    below, above = (rows.tails(model.beta_ * f)[1] for f in (0.999, 1.001))
    assert below < alpha < above
    if 0.5 < model.temperature_ < 2.0:
        assert model.interval_.high == pytest.approx(model.temperature_, rel=5e-3 if weighted else 1e-3)


def test_states_in_closed_form() -> None:
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(40), 5)
    x = math.sqrt(1.5) * (0.6 * rng.normal(size=(40, 2))[codes] + 0.8 * rng.normal(size=(200, 2)))
    model = SafeTemperature(0.05).fit_states(x, np.zeros((200, 2)), std=1.0, cluster=codes)
    half = (x**2).sum(axis=1) / 2.0

    def beyond(t: float) -> float:
        """Every cluster has five rows with variance t**2, or 25 t**2 if they move as one."""
        e = half - t
        S, E = (np.bincount(codes, weights=c) for c in (e, e**2))
        likely = []
        for whole in (np.full(40, 20.0 * t * t), 4.0 * E):
            rho = (S**2 - E).sum() / whole.sum()
            error = math.sqrt(((S**2 - E - rho * whole) ** 2).sum() * 40 / 39) / whole.sum()
            likely.append(rho + 2.0 * error)
        floor = 40.0 * (5.0 + min(max(*likely, 0.0), 1.0) * 20.0) * t * t
        spread = max(40 * S.var(ddof=1), (S**2).sum(), floor)
        return float(stats.t.cdf(S.sum() / math.sqrt(spread), 39)) - 0.05

    wanted = optimize.brentq(beyond, half.mean(), 5.0 * half.mean())
    assert model.temperature_ == pytest.approx(wanted, rel=1e-6)


def test_groups_have_clusters_of_their_own() -> None:
    y, z, codes = _rows(80, 20)
    group = np.where(codes < 40, "a", "b")
    both = SafeTemperature().fit(y, logits=z, cluster=codes, by=group)
    assert both.groups_ is not None
    for key in ("a", "b"):
        some = group == key
        alone = SafeTemperature().fit(y[some], logits=z[some], cluster=codes[some])
        assert both.groups_[key].temperature == pytest.approx(alone.temperature_, rel=1e-9)


def test_groups_without_enough_clusters_are_named() -> None:
    y, z, codes = _rows(40, 20)
    group = np.where(codes == 0, "one", np.where(codes < 4, "three", "rest"))
    with pytest.raises(UnavailableError) as error:
        SafeTemperature().fit(y, logits=z, cluster=codes, by=np.where(np.arange(800) < 35, "one", "rest"))
    assert "needs about" in str(error.value)
    with pytest.raises(UnavailableError) as error:
        SafeTemperature().fit(np.repeat(y, 2), logits=np.repeat(z, 2), cluster=np.repeat(codes, 2),
                              by=np.repeat(group, 2))  # fmt: skip
    assert "all its rows are of one cluster" in str(error.value)


def test_few_clusters_have_no_safe_temperature_and_hear_how_many_would_do() -> None:
    y, z, codes = _rows(4, 100)
    with pytest.raises(
        UnavailableError, match=r"with these 4 clusters, at any temperature\.\n\nHint: about \d+ clusters"
    ):
        SafeTemperature().fit(y, logits=z, cluster=codes)


def test_clusters_are_checked() -> None:
    y, z, codes = _rows(10, 20)
    with pytest.raises(ShapeError, match="`cluster` must name at least two clusters"):
        Temperature().fit(y, logits=z, cluster=np.zeros(200))
    with pytest.raises(ShapeError, match="cluster"):
        Temperature().fit(y, logits=z, cluster=codes[1:])
    with pytest.raises(MissingValueError, match="`cluster` must not hold missing values"):
        safecal.Temperature().fit(y, logits=z, cluster=np.where(codes == 3, None, codes))
