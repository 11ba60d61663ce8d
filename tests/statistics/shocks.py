"""Rows that come in clusters, and surprise as one: laws for tests of size, where the truth is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

import safecal
from safecal import Predictions

KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "usual": lambda rng, n: np.abs(rng.normal(0.0, 2.0, n)),
    "vague": lambda rng, n: np.abs(rng.normal(0.0, 0.5, n)),
    "storm": lambda rng, n: rng.normal(4.0, 0.5, n),
    "storm among vague": lambda rng, n: np.abs(np.where(_even(n), rng.normal(0, 0.5, n), rng.normal(4, 0.5, n))),
    "storm among usual": lambda rng, n: np.abs(np.where(_even(n), rng.normal(0, 2, n), rng.normal(6, 0.5, n))),
    "independent": lambda rng, n: np.abs(rng.normal(0.0, 2.0, n)),
    "correlated": lambda rng, n: np.abs(rng.normal(0.0, 2.0, n)),
    "10 classes": lambda rng, n: rng.normal(0.0, 2.0, (n, 10)),
    "10 sharp classes": lambda rng, n: np.c_[rng.normal(6.0, 1.0, n), rng.normal(0.0, 1.0, (n, 9))],
    "states": lambda rng, n: np.zeros((n, 2)),
    "correlated states": lambda rng, n: np.zeros((n, 2)),
}


def _even(n: int) -> np.ndarray:
    return np.arange(n) % 2 == 0


class Drawn(NamedTuple):
    predictions: Predictions
    codes: np.ndarray


def sizes(name: str, clusters: int) -> np.ndarray:
    """Return how many rows each cluster has."""
    if name == "equal":
        return np.full(clusters, 50)
    if name == "unequal":
        drawn = np.random.default_rng(1).normal(3.0, 1.2, clusters)
        return np.maximum(1, np.round(np.exp(drawn))).astype(int)
    return np.array([50 * (clusters - 1), *[50] * (clusters - 1)])  # one as large as all others


def draw(kind: str, rng: np.random.Generator, rows: np.ndarray, temperature: float = 1.0) -> Drawn:
    """Draw outcomes from the predictions tempered; the rows of a cluster share one shock, or none, or half of one."""
    codes = np.repeat(np.arange(len(rows)), rows)
    n = len(codes)
    z = KINDS[kind](rng, n)
    if kind.endswith("states"):
        share = 0.5 if kind.startswith("correlated") else 1.0
        shared, own = rng.normal(size=(len(rows), 2))[codes], rng.normal(size=(n, 2))
        x = np.sqrt(temperature) * (np.sqrt(share) * shared + np.sqrt(1.0 - share) * own)
        return Drawn(safecal.gaussian(x, z, std=1.0), codes)
    shared, own = rng.random(len(rows))[codes], rng.random(n)
    u = shared
    if kind == "independent":
        u = own
    elif kind == "correlated":
        u = special.ndtr(np.sqrt(0.3) * special.ndtri(shared) + np.sqrt(0.7) * special.ndtri(own))
    elif kind.startswith("storm among"):
        u = np.where(_even(n), own, shared)
    if z.ndim == 2:  # classes in the order of their probability: one shock surprises all rows, or none
        p = np.sort(special.softmax(z / temperature, axis=1), axis=1)[:, ::-1]
        rank = np.minimum((p.cumsum(axis=1) < u[:, None]).sum(axis=1), z.shape[1] - 1)
        return Drawn(safecal.categorical(np.argsort(-z, axis=1)[np.arange(n), rank], logits=z), codes)
    wrong = u > special.expit(z / temperature)
    side = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return Drawn(safecal.bernoulli((side > 0.0) != wrong, logits=side * z), codes)


def true_ecd(kind: str, temperature: float) -> float:
    """Return the mean excess if the predictions tempered are the truth."""
    if kind.endswith("states"):
        return temperature - 1.0
    z = KINDS[kind](np.random.default_rng(12345), 200_000)
    z = np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z
    gap = special.softmax(z, axis=1) - special.softmax(z / temperature, axis=1)
    return float((gap * z).sum(axis=1).mean())
