"""Evaluations of every family and at every edge, for the tests of the report."""

from functools import cache

import numpy as np
from scipy import stats

import safecal
from safecal import Evaluation

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
HOSTILE = (SCRIPT, IMAGE, "</script><!--", "a & b", "\u202eright to left\x00", "\ud800 half", "x" * 500, "שלום")

CASES = (
    *("unsafe", "safe", "cautious", "undetermined", "weighted", "clustered", "many", "categorical", "entropy"),
    *("gaussian", "tracks", "binned states", "huge", "density", "unnormalised"),
    *("impossible", "all impossible", "one row", "coin tosses", "certain", "always right", "useless", "hostile"),
    "one group",
)


@cache
def evaluations() -> dict[str, Evaluation]:
    """Return one evaluation for each case."""
    return _classifiers() | _states_and_densities() | _edges()


def _classifiers() -> dict[str, Evaluation]:
    rng = np.random.default_rng(2025)
    n = 2000
    log_odds = rng.uniform(-5, 5, n)
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    site, year = rng.choice(["north", "south", "a hospital with quite a long name"], n), rng.choice([2023, 2024], n)
    logits = rng.normal(0, 2, (600, 5))
    label = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    many = np.array([f"{k} " + "&<>" * 40 for k in range(1000)])
    crowd = np.repeat(np.arange(1000), 2)
    level = np.where(crowd < 960, 0.0, log_odds)  # coin tosses in most of the groups: their intervals cost nothing
    return {
        "unsafe": safecal.evaluate(y, logits=2 * log_odds, by={"site": site}),
        "safe": safecal.evaluate(y, logits=log_odds, by={"site": site, "year": year}),
        "cautious": safecal.evaluate(y, logits=0.5 * log_odds, bins=20, strategy="quantile"),
        "undetermined": safecal.evaluate(y[:60], logits=1.3 * log_odds[:60]),
        "weighted": safecal.evaluate(y, logits=log_odds, sample_weight=rng.uniform(0, 2, n)),
        "clustered": safecal.evaluate(y, logits=2 * log_odds, cluster=np.arange(n) // 40, bins=None),
        "many": safecal.evaluate(y, logits=level, by=many[crowd], bins=500),
        "categorical": safecal.evaluate(label, logits=1.6 * logits, by=label % 2 == 0),
        "entropy": safecal.evaluate(label, logits=1.6 * logits, bin_on="entropy", strategy="quantile"),
    }


def _states_and_densities() -> dict[str, Evaluation]:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((400, 4))
    zero, t = np.zeros_like(x), rng.standard_t(3, 200)
    laplace = rng.laplace(scale=1.3, size=200)
    return {
        "gaussian": safecal.gaussian(x, zero, cov=0.5 * np.eye(4)).evaluate(),
        "tracks": safecal.gaussian(x, zero, cov=np.eye(4)).evaluate(cluster=np.arange(400) // 8, by=np.arange(400) % 3),
        "binned states": safecal.gaussian(x, zero, var=rng.uniform(0.5, 2, x.shape)).evaluate(
            bins=4, strategy="quantile"
        ),
        "huge": safecal.gaussian([[1.0], [2.0]], [[0.0], [0.0]], var=1e-300).evaluate(by=["a", "b"]),
        "density": safecal.density(t, stats.norm(0.0, 1.0)).evaluate(by=np.arange(200) % 2),
        "unnormalised": safecal.density(
            laplace, log_density=lambda v: -np.abs(v), sampler=lambda r: r.laplace(size=200), rng=1
        ).evaluate(by=np.arange(200) % 2),
    }


def _edges() -> dict[str, Evaluation]:
    keys = np.empty(7, dtype=object)
    keys[:] = [None, ("a", 1), "x", "x", "y", "y", 2.5]
    hostile = np.array(HOSTILE, dtype=object).repeat(4)
    return {
        "impossible": safecal.evaluate([1, 0, 1, 1, 0, 1, 0], [0.0, 0.2, 0.6, 0.05, 0.3, 0.9, 1.0], by=keys),
        "all impossible": safecal.evaluate([1], [0.0]),
        "one row": safecal.evaluate([1], [0.7]),
        "coin tosses": safecal.evaluate([0, 1] * 50, [0.5] * 100),
        "certain": safecal.evaluate([1, 0] * 30, [1.0, 0.0] * 30),
        "always right": safecal.evaluate([1, 0] * 30, [0.9, 0.2] * 30),
        "useless": safecal.evaluate([1, 0, 0, 1] * 30, [0.9, 0.9, 0.1, 0.1] * 30),
        "hostile": safecal.evaluate([1, 0, 1, 0] * 8, [0.9, 0.2, 0.99, 0.4] * 8, by={IMAGE: hostile}),
        "one group": safecal.evaluate([1, 0, 1], [0.7, 0.2, 0.6], by=[1, 1, 1], bins=1),
    }
