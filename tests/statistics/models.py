"""Predictions drawn from known laws, for tests of size and coverage."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import special

import safecal
from safecal import Predictions

# A law draws log-odds (n,), logits (n, K) or, for states, nothing.
Draw = Callable[[np.random.Generator, int], np.ndarray]

LAWS: dict[str, Draw] = {
    "U(0, 1)": lambda rng, n: special.logit(rng.random(n)),
    "Beta(.3, .3)": lambda rng, n: special.logit(np.clip(rng.beta(0.3, 0.3, n), 1e-12, 1 - 1e-12)),
    "logits N(4, 1)": lambda rng, n: rng.normal(4.0, 1.0, n),
    "p = .999": lambda rng, n: np.full(n, special.logit(0.999)),
    "p = .001": lambda rng, n: np.full(n, special.logit(0.001)),
    "10 classes": lambda rng, n: rng.normal(0.0, 2.0, (n, 10)),
    "states, d = 4": lambda rng, n: np.zeros((n, 4)),
}


def draw(law: str, rng: np.random.Generator, n: int, temperature: float = 1.0) -> Predictions:
    """Draw predictions, and outcomes from the predictions tempered: above 1, the predictions are over-confident."""
    z = LAWS[law](rng, n)
    if law.startswith("states"):
        return safecal.gaussian(rng.normal(0.0, math.sqrt(temperature), z.shape), z, std=1.0)
    if z.ndim == 1:
        return safecal.bernoulli(rng.random(n) < special.expit(z / temperature), logits=z)
    p = special.softmax(z / temperature, axis=1)
    y = np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), z.shape[1] - 1)
    return safecal.categorical(y, logits=z)


@cache
def true_ecd(law: str, temperature: float) -> float:
    """Return the mean excess if the predictions tempered are the truth."""
    if law.startswith("states"):
        return 4.0 * (temperature - 1.0) / 2.0
    if temperature == 1.0:
        return 0.0
    z = LAWS[law](np.random.default_rng(12345), 1 if law.startswith("p =") else 400_000)
    z = np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z
    gap = special.softmax(z, axis=1) - special.softmax(z / temperature, axis=1)
    return float((gap * z).sum(axis=1).mean())


def error(rate: float, repeats: int) -> float:
    """Return three Monte-Carlo standard errors of a rate."""
    return 3.0 * math.sqrt(rate * (1.0 - rate) / repeats)
