"""Rows that come in clusters, and surprise as one: laws for tests of size, where the truth is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
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
    "independent states": lambda rng, n: np.zeros((n, 2)),
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
        x = np.sqrt(temperature) * _moved(kind, rng, codes)
        return Drawn(safecal.gaussian(x, z, std=1.0), codes)
    u = _luck(kind, rng, codes)
    if z.ndim == 2:
        return _classes(z, special.softmax(z / temperature, axis=1), u, codes)
    return _two(rng, z, special.expit(-z / temperature), u, codes)


def draw_at(kind: str, rng: np.random.Generator, rows: np.ndarray, ecd: float) -> Drawn:
    """Draw outcomes so that the ECD of every row is this many nats a dimension, or the most that it can be.

    States have all kinds of spread.
    """
    codes = np.repeat(np.arange(len(rows)), rows)
    n = len(codes)
    if kind.endswith("states"):
        std = np.exp(rng.normal(0.0, 0.7, (n, 1))) * np.ones(2)
        x = np.sqrt(1.0 + 2.0 * ecd) * std * _moved(kind, rng, codes)
        return Drawn(safecal.gaussian(x, np.zeros((n, 2)), std=std), codes)
    z, u = KINDS[kind](rng, n), _luck(kind, rng, codes)
    if z.ndim == 2:
        return _classes(z, _tempered(special.log_softmax(z, axis=1), ecd), u, codes)
    q = special.expit(-z)
    return _two(rng, z, np.minimum(q + ecd / np.maximum(z, 1e-9), 1.0 - q), u, codes)


def _moved(kind: str, rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """Draw errors of unit variance in two dimensions."""
    share = {"correlated states": 0.5, "independent states": 0.0}.get(kind, 1.0)
    shared, own = rng.normal(size=(codes.max() + 1, 2))[codes], rng.normal(size=(len(codes), 2))
    return np.sqrt(share) * shared + np.sqrt(1.0 - share) * own


def _luck(kind: str, rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """Draw how lucky each row is, from 0 to 1."""
    n = len(codes)
    shared, own = rng.random(codes.max() + 1)[codes], rng.random(n)
    if kind == "independent":
        return own
    if kind == "correlated":
        return np.asarray(special.ndtr(np.sqrt(0.3) * special.ndtri(shared) + np.sqrt(0.7) * special.ndtri(own)))
    return np.where(_even(n), own, shared) if kind.startswith("storm among") else shared


def _classes(z: np.ndarray, true: np.ndarray, u: np.ndarray, codes: np.ndarray) -> Drawn:
    """Draw classes in the order of their probability: one shock surprises all rows, or none."""
    p = np.sort(true, axis=1)[:, ::-1]
    rank = np.minimum((p.cumsum(axis=1) < u[:, None]).sum(axis=1), z.shape[1] - 1)
    return Drawn(safecal.categorical(np.argsort(-z, axis=1)[np.arange(len(z)), rank], logits=z), codes)


def _two(rng: np.random.Generator, z: np.ndarray, mistaken: np.ndarray, u: np.ndarray, codes: np.ndarray) -> Drawn:
    wrong = u > 1.0 - mistaken
    side = np.where(rng.random(len(z)) < 0.5, 1.0, -1.0)
    return Drawn(safecal.bernoulli((side > 0.0) != wrong, logits=side * z), codes)


def _tempered(log_p: np.ndarray, ecd: float) -> np.ndarray:
    """Return the true probabilities of rows of classes that make their ECD what is wanted."""
    p = np.exp(log_p)
    entropy = -(p * log_p).sum(axis=1)
    varentropy = (p * log_p**2).sum(axis=1) - entropy**2
    wanted = entropy + ecd * np.maximum(1.0, 2.0 * varentropy)
    low, high = np.zeros(len(p)), np.ones(len(p))
    for _ in range(40):
        beta = 0.5 * (low + high)
        surprisal = -(special.softmax(beta[:, None] * log_p, axis=1) * log_p).sum(axis=1)
        low, high = np.where(surprisal > wanted, beta, low), np.where(surprisal > wanted, high, beta)
    return np.asarray(special.softmax(high[:, None] * log_p, axis=1))


@cache
def true_ecd(kind: str, temperature: float) -> float:
    """Return the mean excess if the predictions tempered are the truth."""
    if kind.endswith("states"):
        return temperature - 1.0
    z = KINDS[kind](np.random.default_rng(12345), 200_000)
    z = np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z
    gap = special.softmax(z, axis=1) - special.softmax(z / temperature, axis=1)
    return float((gap * z).sum(axis=1).mean())
