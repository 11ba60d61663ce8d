"""Confidence bounds on the inverse temperature, and on the ECD that goes with it, by inverting tests.

An inverse temperature is ruled out at level alpha when, under it, a summed surprisal as small as the observed one (or
as large) has a probability of at most alpha. That probability is a saddlepoint tail where many surprises are expected,
and is drawn where few are: with no surprise among n rows it is the rule of three.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from scipy import special

from .._types import AnyArray, FloatArray, IndexArray
from ..errors import UnavailableError
from .calibration import cluster_tails
from .curves import Curve, score
from .surprises import draw_surprises, expected_surprises, observed_surprises, surprise_rates
from .tails import lugannani_rice, pearson3
from .tempered import LARGEST, SMALLEST, Tempered, Tilted

__all__ = ["Evidence", "evidence"]

_SCORES = (0.0, 0.9, 1.6, 2.3, 3.7)  # where bounds are first looked for, in standard deviations
_STEP = 1.0  # a jump of the score between two nodes that asks for one more
_ENOUGH = 3.5  # a normal score beyond every level that is asked for
_ROUNDS = 12  # of four nodes each, sixteen times farther every time
_FEW = 25.0  # expected surprises under which tails are drawn
_DRAWS = 14_000

# Betas -> for each the tilted sums, and the normal scores of P(S <= observed) and of P(S >= observed) under it
Tails = Callable[[list[float]], list[tuple[Tilted, float, float]]]


@final
@dataclass(frozen=True, slots=True)
class Evidence:
    """What the data say about the inverse temperature: an estimate, and one-sided bounds at every level."""

    beta: float
    low: Curve  # smallest beta that is not ruled out
    high: Curve  # largest
    ecd_low: Curve  # the ECD that goes with `high`
    ecd_high: Curve  # the ECD that goes with `low`
    method: str


def evidence(rows: Tempered, rng: np.random.Generator, clusters: tuple[IndexArray, int] | None = None) -> Evidence:
    """Compute the bounds; ``clusters`` numbers the cluster of each row, and says how many there are."""
    if math.isnan(rows.beta):
        flat = Curve((0.0,), (math.nan,))
        zero = Curve((0.0,), (0.0,))
        return Evidence(math.nan, flat, flat, zero, zero, "none: every prediction is a toss or a certainty")
    if clusters is not None:
        method, tails = "cluster t", _clustered_tails(rows, *clusters)
    elif rows.predictions.discrete and _few(rows):
        method, tails = "drawn surprises", _drawn_tails(rows, rng)
    else:
        method, tails = "saddlepoint" if rows.weight is None else "Pearson III", _smooth_tails(rows)
    low, ecd_high = _bounds(rows, tails, -1)
    high, ecd_low = _bounds(rows, tails, +1)
    return Evidence(rows.beta, low, high, ecd_low, ecd_high, method)


def _bounds(rows: Tempered, tails: Tails, side: int) -> tuple[Curve, Curve]:
    """Return the bound on one side as a curve, and the ECD along it."""
    end = math.inf if side > 0 else 0.0
    if rows.beta == end:
        at = _first_available(rows, (SMALLEST, 2.0**-10, 2.0**-5, 0.25, 0.5) if side < 0 else (LARGEST,))
        return Curve((0.0,), (end,)), Curve((0.0,), (rows.ecd(at),))
    found: list[tuple[float, float, float]] = []  # score, beta, ECD; from the estimate outward

    def look(nodes: list[float]) -> bool:
        """Take in some nodes; tell whether all of them exist."""
        try:
            new = tails(nodes)
        except UnavailableError:  # the log-partition function ends among them, and so does what can be ruled out
            return len(nodes) > 1 and all(look([beta]) for beta in nodes)
        found.extend((lower if side < 0 else upper, at.beta, rows.ecd(at)) for at, lower, upper in new)
        found.sort(key=lambda point: side * point[1])
        return True

    nodes = _first_nodes(rows, side)
    for _ in range(_ROUNDS):
        last = nodes[-1]
        if not look(nodes) or max(x for x, _, _ in found) >= _ENOUGH or not SMALLEST < last < LARGEST:
            break
        nodes = [min(max(last * 2.0 ** (side * step), SMALLEST), LARGEST) for step in (0.5, 1.0, 2.0, 4.0)]
    for _ in range(_ROUNDS):  # halve steps in which the score jumps
        steps = [(p, q) for p, q in pairwise(found) if q[0] - p[0] > _STEP and -_STEP < p[0] < _ENOUGH]
        nodes = [math.sqrt(p[1] * q[1]) for p, q in steps]
        if not nodes or not look(nodes):
            break
    if max((x for x, _, _ in found), default=0.0) < _ENOUGH:
        found.append((_ENOUGH + 10.0, end, found[-1][2] if found else 0.0))
    scores = np.maximum.accumulate([x for x, _, _ in found])
    keep = np.concatenate([[True], np.diff(scores) > 1e-4])
    kept = tuple(scores[keep].tolist())
    betas, ecds = (tuple(point[j] for point, ok in zip(found, keep, strict=True) if ok) for j in (1, 2))
    return Curve(kept, betas), Curve(kept, ecds)


def _first_available(rows: Tempered, betas: tuple[float, ...]) -> Tilted:
    for beta in betas:
        try:
            return rows.at(beta)[0]
        except UnavailableError:
            continue
    return rows.one


def _first_nodes(rows: Tempered, side: int) -> list[float]:
    if rows.best is not None:
        spread = math.sqrt(rows.best.variance) / (rows.best.information * rows.best.beta)
        return [rows.best.beta * math.exp(side * z * spread) for z in _SCORES if z * spread < 14.0]
    start = 16.0 if side < 0 else SMALLEST
    steps = np.arange(0.0, 24.0) if side < 0 else np.linspace(0.0, 40.0, 24)
    return [float(start * 2.0 ** (side * 0.5 * step)) for step in steps]


def _few(rows: Tempered) -> bool:
    if math.isinf(rows.beta):
        return True
    beta = max(rows.beta, SMALLEST)
    return expected_surprises(surprise_rates(rows.predictions, beta)) < _FEW


def _smooth_tails(rows: Tempered) -> Tails:
    def tails(betas: list[float]) -> list[tuple[Tilted, float, float]]:
        found = []
        for at in rows.at(*betas):
            if rows.weight is None and rows.best is not None:
                drop = rows.log_likelihood(rows.best) - rows.log_likelihood(at)
                upper, lower = lugannani_rice(at.beta - rows.best.beta, drop, rows.best.variance, -rows.best.third)
            else:
                upper, lower = pearson3(rows.gap(at), at.variance, -at.third)
            found.append((at, score(lower), score(upper)))
        return found

    return tails


def _drawn_tails(rows: Tempered, rng: np.random.Generator) -> Tails:
    """Draw sums under a few betas around the estimate, and reweight all of them to any other.

    Under ``p_beta`` a sum ``s`` of surprises has a density proportional to ``exp(-beta s - R(beta))``, where ``R`` is
    the summed rate of surprises, so the weight against the mixture of all draws is known.
    """
    bases = _bases(rows)
    rates = [_rates(rows, beta) for beta in bases]
    drawn = [
        draw_surprises(rows.predictions, rate, beta, rows.weight, _DRAWS // len(bases), rng)
        for beta, rate in zip(bases, rates, strict=True)
    ]
    plain, sums = (np.concatenate([pair[j] for pair in drawn]) for j in (0, 1))
    exponents = [-beta * plain - rate.sum() for beta, rate in zip(bases, rates, strict=True)]
    mixture = special.logsumexp(exponents, axis=0)
    observed = observed_surprises(rows.predictions, rows.possible, rows.weight)
    slack = 1e-9 * max(1.0, observed)
    below, above = sums <= observed + slack, sums >= observed - slack

    def tails(betas: list[float]) -> list[tuple[Tilted, float, float]]:
        found = []
        for at in rows.at(*betas):
            exponent = -at.beta * plain - mixture
            w = np.exp(exponent - exponent.max())
            total = w.sum()
            found.append((at, score(float(w[below].sum() / total)), score(float(w[above].sum() / total))))
        return found

    return tails


def _bases(rows: Tempered) -> list[float]:
    """Return betas that span what the data leave open."""
    if rows.best is not None:
        spread = min(math.sqrt(rows.best.variance) / (rows.best.information * rows.best.beta), 1.5)
        return [rows.best.beta * math.exp(z * spread) for z in (-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5)]
    if rows.beta == 0.0:
        return [2.0**-8, 2.0**-4, 0.125, 0.25, 0.5, 1.0, 2.0]
    return [_with_surprises(rows, count) for count in (0.2, 0.7, 1.5, 3.0, 5.0, 8.0)]


def _with_surprises(rows: Tempered, count: float) -> float:
    """Return the beta under which so many surprises are expected."""
    low, high = SMALLEST, 1024.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if expected_surprises(_rates(rows, middle)) > count else (low, middle)
    return math.sqrt(low * high)


def _rates(rows: Tempered, beta: float) -> FloatArray:
    return np.where(rows.possible, surprise_rates(rows.predictions, beta), 0.0)


def _clustered_tails(rows: Tempered, codes: IndexArray, size: int) -> Tails:
    """Compare the sums of clusters, observed minus expected, with their own spread."""
    observed = _cluster_surprisal(rows, codes, size)

    def tails(betas: list[float]) -> list[tuple[Tilted, float, float]]:
        expected = np.zeros((len(betas), size))
        for part in rows.predictions.row_blocks():
            partition = rows.predictions._partition(part)
            w = rows.row_weights(part)
            for j, beta in enumerate(betas):
                expected[j] -= np.bincount(codes[part], weights=w * partition(beta).mean, minlength=size)
        found = []
        for at, mean in zip(rows.at(*betas), expected, strict=True):
            _, lower, upper = cluster_tails(observed - mean, at.variance)
            found.append((at, score(lower), score(upper)))
        return found

    return tails


def _cluster_surprisal(rows: Tempered, codes: IndexArray, size: int) -> AnyArray:
    total = np.zeros(size)
    for part in rows.predictions.row_blocks():
        scored, _ = rows.predictions.weighted(part, None)
        assert scored.surprisal is not None
        s = np.where(rows.possible[part], scored.surprisal, 0.0)
        total += np.bincount(codes[part], weights=rows.row_weights(part) * s, minlength=size)
    return total
