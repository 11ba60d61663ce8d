"""Callers who told NumPy to raise, and Python to turn warnings into errors, get the same answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import safecal
from safecal.engines.batches import Batch, evaluate_batches
from safecal.monitor import Monitor

N = 120
RNG = np.random.default_rng(0)
Z = RNG.normal(0, 2, N)
ODDS = {
    "ordinary": Z,
    "sharp": np.where(np.arange(N) % 20 == 0, 300 * Z, Z),
    "one beyond floats": np.where(np.arange(N) == 3, 1e9, Z),
    "next to 0": 1e-200 * Z,
    "denormal": np.full(N, 5e-324),
}
W = RNG.pareto(0.7, N) + 1e-3
CLUSTER, GROUP = np.arange(N) // 6, np.arange(N) % 3


def families(z: np.ndarray) -> dict[str, safecal.Predictions]:
    p = special.expit(z)
    y = np.random.default_rng(1).random(N) < p
    k = np.random.default_rng(2).integers(0, 3, N)
    small = np.clip(z, -9, 9)
    return {
        "logits": safecal.bernoulli(y, logits=z),
        "probabilities": safecal.bernoulli(y, p, clip=1e-9),
        "classes": safecal.categorical(k, logits=np.stack([0 * z, z, -z], axis=1)),
        "states": safecal.gaussian(np.stack([small, small], axis=1), np.zeros((N, 2)), cov=1e-3 * np.eye(2)),
        "mixture": safecal.gaussian_mixture(
            small[:, None], np.full((N, 2), 0.5), np.tile([[-1.0], [1.0]], (N, 1, 1)), std=0.1, draws=8, rng=1
        ),
        "particles": safecal.particles(small[:, None], np.tile(np.linspace(-9, 9, 40)[:, None], (N, 1, 1)), rng=1),
        "density": safecal.density(
            small, log_density=lambda x: -0.5 * x**2, sampler=lambda rng: rng.normal(size=N), draws=8, rng=1
        ),
    }


def read(e: safecal.Evaluation) -> None:
    _ = str(e), e.to_dict(), e._repr_html_(), e.judge(threshold=0.05), e.test, e.reliability, e.local, e.cox


def try_temperature(make: Callable[[], Any]) -> None:
    try:
        repr(make())
    except safecal.errors.SafecalError:
        pass


DOORS: dict[str, Callable[[safecal.Predictions], Any]] = {
    "evaluate": lambda p: read(p.evaluate()),
    "weights": lambda p: read(p.evaluate(sample_weight=W)),
    "clusters": lambda p: read(p.evaluate(cluster=CLUSTER, by=GROUP)),
    "all": lambda p: read(p.evaluate(sample_weight=W, cluster=CLUSTER, by=GROUP)),
    "rows": lambda p: (p.score(), p.ecd, [block.excess.sum() for block in p.blocks()]),
    "batches": lambda p: read(evaluate_batches(lambda: iter([Batch(p)] * 2), max_rows=1, bins=None)),
    "test": lambda p: try_temperature(lambda: safecal.calibration_test(p)),
    "temperature": lambda p: try_temperature(lambda: safecal.implied_temperature(p)),
    "recalibrate": lambda p: try_temperature(lambda: safecal.Temperature().fit_predictions(p)),
    "safely": lambda p: try_temperature(lambda: safecal.SafeTemperature().fit_predictions(p, cluster=CLUSTER)),
    "plan": lambda p: try_temperature(lambda: safecal.rows_needed(p)),
    "reliability": lambda p: try_temperature(lambda: safecal.assess_reliability(p)),
    "monitor": lambda p: try_temperature(lambda: repr((m := Monitor(detect="both")).add(p)) + repr(m)),
    "compare": lambda p: try_temperature(lambda: str(safecal.compare(p, p))),
}


FAST = [("one beyond floats", "all"), ("one beyond floats", "rows"), ("ordinary", "monitor")]
EVERY = [
    (odds, door) if (odds, door) in FAST else pytest.param(odds, door, marks=pytest.mark.proof)
    for odds in ODDS
    for door in DOORS
]


@pytest.mark.parametrize(("odds", "door"), EVERY)
def test_every_door_works_where_numpy_raises(odds: str, door: str) -> None:
    """Each family, at each door; numbers are those of a caller who chose nothing."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        before = np.geterr()
        with np.errstate(under="ignore"):
            made = families(ODDS[odds])
        for predictions in made.values():
            DOORS[door](predictions)
        assert np.geterr() == before


def test_metrics_and_constructors_work_where_numpy_raises() -> None:
    y = Z > 0
    p = np.array([1e-300, 5e-324, 1.0 - 2**-53, 0.5])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for metric in (safecal.ecd, safecal.nll, safecal.brier, safecal.ece, safecal.esce):
            metric(y, special.expit(0.5 * Z))
            metric([0, 0, 1, 1], p)
        safecal.nees(Z, 0 * Z, std=1e-150)
        safecal.Bins.uniform(10)
        safecal.evaluate([0, 0, 1, 1], p)
        assert safecal.bernoulli([1, 0], logits=[800.0, -900.0]).ecd == 0.0
