"""What differences between two models do by chance, if the models are equally good in every row.

A row of two classes with differences ``d1`` and ``d0`` of opposite sign has mean difference 0 under exactly one law; it
has variance ``|d1 d0|`` and third cumulant ``|d1 d0| (d1 + d0)``. For K classes the law is ``sqrt(p_a p_b)`` tilted by
the differences until their mean is 0, for surprisals ``p_a^w p_b^(1-w)``. Unlike the spread of the data, it knows of
surprises that have not happened yet.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from .._types import BoolArray, FloatArray, IndexArray
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.predictions import Predictions

__all__ = ["Equality", "Law", "equality", "rows_of_law"]

_NAMES = ("excess", "surprisal", "brier")
_STEPS, _NEAR = 60, 1e-6
_ELEMENTS = 1 << 18
_FEW = 5.0  # surprises, by one over the squared skewness, below which their dependence cannot be seen


class Law(NamedTuple):
    """For each row, the cumulants of its difference if both models are equal in it, and the ends of what it may be.

    Where no law makes them equal, because every outcome favours the same model, both cumulants are 0.
    """

    variance: FloatArray
    third: FloatArray
    least: FloatArray
    most: FloatArray
    certain: BoolArray  # whether the difference may be beyond every float; its cumulants are then 0

    def of(self, rows: BoolArray) -> Self:
        """Return the law of some rows."""
        ends = self.least[rows], self.most[rows]
        return type(self)(self.variance[rows], self.third[rows], *ends, self.certain[rows])


class Equality(NamedTuple):
    """The cumulants of a mean difference between equal models."""

    variance: float
    third: float


def rows_of_law(a: Predictions, b: Predictions) -> dict[str, Law]:
    """Return the law of each column that compares classes; nothing where outcomes cannot be listed."""
    if not isinstance(a, Bernoulli | Categorical) or not isinstance(b, Bernoulli | Categorical):
        return {}
    width = [2 if isinstance(p, Bernoulli) else p.classes for p in (a, b)]
    if width[0] != width[1]:
        return {}
    parts = _two(a, b) if width[0] == 2 else _many(a, b)
    return {
        name: Law(*(np.concatenate(column) for column in zip(*found, strict=True))) for name, found in parts.items()
    }


def _other(p: Bernoulli | Categorical) -> Predictions:
    """Return the same predictions as if the other outcome had happened."""
    return replace(p, happened=~p.happened) if isinstance(p, Bernoulli) else replace(p, happened=1 - p.happened)


@np.errstate(all="ignore")
def _two(a: Bernoulli | Categorical, b: Bernoulli | Categorical) -> dict[str, list[Law]]:
    parts: dict[str, list[Law]] = {name: [] for name in _NAMES}
    for blocks in zip(*(p.blocks() for p in (a, b, _other(a), _other(b))), strict=True):
        for name in _NAMES:
            here_a, here_b, there_a, there_b = (getattr(block, name) for block in blocks)
            d = here_a - here_b
            e = np.where(there_a == there_b, d, there_a - there_b)  # what is impossible for both makes no difference
            variance = np.maximum(-d * e, 0.0)
            third = variance * (d + e)
            certain = ~np.isfinite(third)
            variance, third = (np.where(certain, 0.0, x) for x in (variance, third))
            parts[name].append(Law(variance, third, np.minimum(d, e), np.maximum(d, e), certain))
    return parts


@np.errstate(all="ignore")
def _many(a: Bernoulli | Categorical, b: Bernoulli | Categorical) -> dict[str, list[Law]]:
    assert isinstance(a, Categorical)
    assert isinstance(b, Categorical)
    step = max(1, _ELEMENTS // a.classes)
    parts: dict[str, list[Law]] = {name: [] for name in _NAMES}
    for start in range(0, a.n, step):
        rows = slice(start, min(start + step, a.n))
        (log_a, columns_a), (log_b, columns_b) = (_outcomes(p, rows) for p in (a, b))
        for name in _NAMES:
            base = np.logaddexp(log_a, log_b) if name == "brier" else 0.5 * (log_a + log_b)
            parts[name].append(_tilted(columns_a[name] - columns_b[name], base))
    return parts


def _outcomes(p: Categorical, rows: slice) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the log-probability of each class, and each column as it is if that class happens."""
    gaps = p.log_gaps(rows)
    q = np.exp(-gaps)
    total = q.sum(axis=1, keepdims=True)
    q /= total
    surprisal = gaps + np.log(total)
    entropy = np.where(q > 0.0, q * surprisal, 0.0).sum(axis=1, keepdims=True)
    brier = (q * q).sum(axis=1, keepdims=True) + 1.0 - 2.0 * q
    return -surprisal, {"excess": surprisal - entropy, "surprisal": surprisal, "brier": brier}


def _tilted(d: FloatArray, log_base: FloatArray) -> Law:
    """Tilt a law of each row by ``exp(-theta d)`` until the mean of ``d`` is 0, by a bracketed Newton's method."""
    known = np.isfinite(d) & np.isfinite(log_base)
    ends = np.where(known, d, np.inf).min(axis=1), np.where(known, d, -np.inf).max(axis=1)
    scale = np.where(known, np.abs(d), 0.0).max(axis=1)
    certain = np.isinf(d).any(axis=1) | ~np.isfinite(scale**3)
    some = (ends[0] < 0.0) & (ends[1] > 0.0) & ~certain
    variance, third = np.zeros(len(d)), np.zeros(len(d))
    x = np.where(known, d, 0.0)[some] / scale[some, None]
    base = np.where(known, log_base, -np.inf)[some]
    theta, low, high = np.zeros(len(x)), np.full(len(x), -np.inf), np.full(len(x), np.inf)
    active: IndexArray = np.arange(len(x))
    spread, skew = np.zeros(len(x)), np.zeros(len(x))
    for _ in range(_STEPS):
        t = theta[active]
        w = base[active] - t[:, None] * x[active]
        q = np.exp(w - w.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        mean = (q * x[active]).sum(axis=1)
        c = x[active] - mean[:, None]
        var = (q * c * c).sum(axis=1)
        spread[active], skew[active] = var, (q * c**3).sum(axis=1)
        low[active] = np.where(mean > 0.0, t, low[active])
        high[active] = np.where(mean > 0.0, high[active], t)
        far = np.abs(mean) > _NEAR * np.sqrt(var)
        if not far.any():
            break
        lo, hi = low[active], high[active]
        newton = t + mean / var
        outward = np.where(np.isinf(hi), 2.0 * np.abs(t) + 1.0, -2.0 * np.abs(t) - 1.0)
        half = np.where(np.isfinite(lo) & np.isfinite(hi), 0.5 * (lo + hi), outward)
        inside = (newton > lo) & (newton < hi) & (np.abs(newton) <= 4.0 * np.abs(t) + 4.0)
        theta[active] = np.where(inside, newton, half)
        active = active[far]
    variance[some] = spread * scale[some] ** 2
    third[some] = skew * scale[some] ** 3
    return Law(variance, third, *ends, certain)


def equality(law: Law, share: FloatArray, d: FloatArray, codes: IndexArray | None) -> Equality:
    """Return the cumulants of ``sum(share * d)`` between equal models; ``codes`` numbers the cluster of each row.

    Rows of a cluster may surprise together. They are taken to, unless enough surprises are expected to see how far they
    do: then by the correlation within clusters, and two standard errors.
    """
    variance, third = float(np.dot(share**2, law.variance)), float(np.dot(share**3, law.third))
    if codes is None:
        return Equality(variance, third)
    together = _by_cluster(codes, share * np.sqrt(law.variance)) ** 2
    skewed = _by_cluster(codes, share * np.cbrt(law.third)) ** 3
    most, most_third = float(together.sum()), float(skewed.sum())
    if most <= variance * (1.0 + 1e-12) or abs(most_third) * np.sqrt(_FEW) > most**1.5:
        return Equality(most, most_third)
    own = _by_cluster(codes, share**2 * law.variance)
    products = _by_cluster(codes, share * d) ** 2 - _by_cluster(codes, (share * d) ** 2)
    room = float((together - own).sum())
    found = float(products.sum()) / room
    error = float(np.sqrt(np.sum((products - found * (together - own)) ** 2))) / room
    rho = min(1.0, max(0.0, found + 2.0 * error))
    return Equality(variance + rho * (most - variance), third + rho * (most_third - third))


def _by_cluster(codes: IndexArray, column: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(codes, weights=column), dtype=np.float64)
