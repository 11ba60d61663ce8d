"""What might have made Table 1: candidate processes, and the random numbers that they draw from.

The paper says that noise is added to the log-odds; a script might have done something else. A candidate draws true
log-odds ``u'``, noise and labels, and makes an estimate of them. ``L`` is the logistic function, ``W`` one half, ``ε``
normal noise with the standard deviation that Table 1 names.

The column without noise is the same for every candidate, and the text says how it is made. So each seed of a generator
gives one such column, and the published one is either it or not.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from scipy import special

from .._types import FloatArray
from .cells import cells_of
from .published import BINS, published_table1
from .simulation import CLIP, Draws

__all__ = ["CANDIDATES", "N", "Candidate", "Match", "blend", "draw", "find_draws"]

N = 10_000  # rows of each simulation
W = 0.5
Pair: TypeAlias = tuple[FloatArray, FloatArray]  # probability and log-odds
Noise: TypeAlias = tuple[FloatArray, ...]

L: Any = special.expit


def _once(draws: Draws, n: int, sd: float) -> Noise:
    return (draws.normal(0.0, sd, n),)


def _twice(draws: Draws, n: int, sd: float) -> Noise:
    return (draws.normal(0.0, sd, n), draws.normal(0.0, sd, n))


def _squared(draws: Draws, n: int, sd: float) -> Noise:
    return (draws.normal(0.0, sd * sd, n),)


def _laplace(draws: Draws, n: int, sd: float) -> Noise:
    return (draws.laplace(0.0, sd, n),)


def _uniform(draws: Draws, n: int, sd: float) -> Noise:
    return (draws.uniform(-np.sqrt(3.0) * sd, np.sqrt(3.0) * sd, n),)


def _student(draws: Draws, n: int, sd: float) -> Noise:
    return (sd * draws.standard_t(5, n),)


def _label(raw: FloatArray, *_: FloatArray) -> FloatArray:
    chance: FloatArray = L(W * raw)
    return chance


def _logit(estimate: Callable[..., FloatArray]) -> Callable[..., Pair]:
    """An estimate that is made as log-odds."""

    def pair(*raw_and_noise: FloatArray) -> Pair:
        log_odds = estimate(*raw_and_noise)
        return L(log_odds), log_odds

    return pair


def _clipped(estimate: Callable[..., FloatArray], clip: float = CLIP) -> Callable[..., Pair]:
    """An estimate that is made as a probability, and moved into [clip, 1 - clip]."""

    def pair(*raw_and_noise: FloatArray) -> Pair:
        p = np.clip(estimate(*raw_and_noise), clip, 1.0 - clip)
        return p, special.logit(p)

    return pair


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A process that might have made the published table.

    Attributes
    ----------
    name : str
        In a few words.
    formula : str
        The estimate.
    estimate : callable
        From ``u'`` and the noise to probability and log-odds.
    noise : callable
        Draws the noise.
    chance : callable
        From ``u'`` and the noise to the probability of label 1.
    fitted : int
        Constants that were chosen to fit the published cells.
    """

    name: str
    formula: str
    estimate: Callable[..., Pair]
    noise: Callable[[Draws, int, float], Noise] = _once
    chance: Callable[..., FloatArray] = _label
    fitted: int = 0


def draw(
    candidate: Candidate, draws: Draws, n: int, sd: float, *, labels_first: bool = False
) -> tuple[Any, FloatArray, FloatArray]:
    """Draw labels, estimated probabilities and their log-odds; the noise comes before the labels or after them."""
    raw = draws.uniform(-10.0, 10.0, n)
    if labels_first and candidate.chance is _label:
        labels = draws.binomial(1, _label(raw))
        noise = candidate.noise(draws, n, sd)
    else:
        noise = candidate.noise(draws, n, sd)
        labels = draws.binomial(1, candidate.chance(raw, *noise))
    return labels, *candidate.estimate(raw, *noise)


def blend(a: float, b: float, clip: float = CLIP) -> Candidate:
    """Return the process that adds ``a ε`` to the log-odds and ``b ε`` to the probability, and clips."""
    return Candidate(
        "", f"clip(L(u + {a:g} ε) + {b:g} ε)", _clipped(lambda r, e: L(W * r + a * e) + b * e, clip), fitted=2
    )


def _renormalised(raw: FloatArray, e: FloatArray, f: FloatArray) -> FloatArray:
    p = L(W * raw)
    negative, positive = (np.clip(x, CLIP, 1.0 - CLIP) for x in (1.0 - p + e, p + f))
    renormalised: FloatArray = positive / (negative + positive)
    return renormalised


def _five_percent(raw: FloatArray, *_: FloatArray) -> FloatArray:
    return 0.95 * _label(raw) + 0.05 * (1.0 - _label(raw))


CANDIDATES = (
    Candidate("as written", "L(u + ε)", _logit(lambda r, e: W * r + e)),
    Candidate("variance taken for sd", "L(u + ε), sd σ²", _logit(lambda r, e: W * r + e), _squared),
    Candidate("noise before W", "L(W (u' + ε))", _logit(lambda r, e: W * (r + e))),
    Candidate("W left out of the estimate", "L(u' + ε)", _logit(lambda r, e: r + e)),
    Candidate("noise twenty times as large", "L(u + 20 ε), clipped", _clipped(lambda r, e: L(W * r + 20.0 * e))),
    Candidate("labels from the noisy log-odds", "L(u)", _logit(lambda r, e: W * r), chance=lambda r, e: L(W * r + e)),
    Candidate(
        "labels from the noisy probability",
        "L(u)",
        _logit(lambda r, e: W * r),
        chance=lambda r, e: np.clip(L(W * r) + e, 0.0, 1.0),
    ),
    Candidate("on the probability", "clip(L(u) + ε)", _clipped(lambda r, e: L(W * r) + e)),
    Candidate("the same, clipped at 1e-4", "clip(L(u) + ε)", _clipped(lambda r, e: L(W * r) + e, 1e-4)),
    Candidate("the same, clipped at 1e-6", "clip(L(u) + ε)", _clipped(lambda r, e: L(W * r) + e, 1e-6)),
    Candidate("the same, variance for sd", "clip(L(u) + ε), sd σ²", _clipped(lambda r, e: L(W * r) + e), _squared),
    Candidate("the same, W left out", "clip(L(u') + ε)", _clipped(lambda r, e: L(r) + e)),
    Candidate("the same, Laplace noise", "clip(L(u) + ε)", _clipped(lambda r, e: L(W * r) + e), _laplace),
    Candidate("the same, uniform noise", "clip(L(u) + ε)", _clipped(lambda r, e: L(W * r) + e), _uniform),
    Candidate(
        "the same, Student noise", "clip(L(u) + ε), t of 5 df", _clipped(lambda r, e: L(W * r) + e), _student, fitted=1
    ),
    Candidate(
        "the same, 5 % of labels flipped", "clip(L(u) + ε)", _clipped(lambda r, e: L(W * r) + e), chance=_five_percent
    ),
    Candidate("in proportion to the probability", "clip(L(u) (1 + ε))", _clipped(lambda r, e: L(W * r) * (1.0 + e))),
    Candidate("on both classes, renormalised", "q₁ / (q₀ + q₁)", _clipped(_renormalised), _twice),
    Candidate("twice on the probability", "clip(L(u) + ε + ε')", _clipped(lambda r, e, f: L(W * r) + e + f), _twice),
    Candidate(
        "on the probability, and W times more",
        "clip(L(u) + ε + W ε')",
        _clipped(lambda r, e, f: L(W * r) + e + W * f),
        _twice,
    ),
    Candidate(
        "on the probability, 1.13 σ", "clip(L(u) + 1.13 ε)", _clipped(lambda r, e: L(W * r) + 1.13 * e), fitted=1
    ),
    Candidate("on both, independent", "clip(L(u + ε) + ε')", _clipped(lambda r, e, f: L(W * r + e) + f), _twice),
    Candidate("on both, before W", "clip(L(W (u' + ε)) + ε)", _clipped(lambda r, e: L(W * (r + e)) + e)),
    Candidate("on both, clipped at 1e-4", "clip(L(u + ε) + ε)", _clipped(lambda r, e: L(W * r + e) + e, 1e-4)),
    Candidate("on both, clipped at 1e-6", "clip(L(u + ε) + ε)", _clipped(lambda r, e: L(W * r + e) + e, 1e-6)),
    Candidate("on both, the same noise", "clip(L(u + ε) + ε)", _clipped(lambda r, e: L(W * r + e) + e)),
)

_GENERATORS: dict[str, Callable[[int], Draws]] = {
    "np.random.seed": np.random.RandomState,
    "np.random.default_rng": np.random.default_rng,
}
_ORDERS = ("u', binomial", "u', uniform < p", "u', ε, binomial", "u', ε, uniform < p")


@final
@dataclass(frozen=True, slots=True)
class Match:
    """A seed, and how close its draws come to the published column without noise.

    Attributes
    ----------
    seed : int
        The seed.
    generator : str
        Which of NumPy's generators.
    order : str
        What is drawn, in which order.
    largest : float
        The largest deviation of an ESCE of the ten bins from the published one.
    agreeing : int
        Of the 33 cells, how many come out to the printed digits.

    Examples
    --------
    >>> from safecal.paper import find_draws
    >>> find_draws([99])[0].order
    "u', binomial"
    """

    seed: int
    generator: str
    order: str
    largest: float
    agreeing: int


def find_draws(seeds: Iterable[int]) -> tuple[Match, ...]:
    """Look for the random numbers behind the published column without noise.

    Parameters
    ----------
    seeds : iterable of int
        Seeds to try, with both of NumPy's generators and four ways to draw the labels.

    Returns
    -------
    tuple of Match
        One for each, the closest first.

    Examples
    --------
    >>> from safecal.paper import find_draws
    >>> first, second, *_ = find_draws(range(95, 105))
    >>> first.seed, first.generator, first.agreeing
    (99, 'np.random.seed', 33)
    >>> first.largest < 0.00005, second.largest > 0.01
    (True, True)
    """
    matches = [_match(seed, name, order) for seed in seeds for name in _GENERATORS for order in _ORDERS]
    return tuple(sorted(matches, key=lambda match: match.largest))


def _match(seed: int, generator: str, order: str) -> Match:
    draws: Draws = _GENERATORS[generator](seed)
    p = special.expit(0.5 * draws.uniform(-10.0, 10.0, N))
    if "ε" in order:  # noise of standard deviation 0 changes nothing, but uses up draws
        draws.normal(0.0, 0.0, N)
    labels = draws.binomial(1, p) if "binomial" in order else draws.uniform(0.0, 1.0, N) < p
    cells = cells_of(labels, p)
    column = published_table1()[0]
    largest = float(np.abs(cells - column.values)[1, :BINS].max())
    return Match(seed, generator, order, largest, int(column.agreeing(cells).sum()))
