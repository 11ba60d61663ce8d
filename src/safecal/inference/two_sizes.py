"""A few surprises of unknown sizes: the law of their sum if there are two sizes, which three cumulants tell."""

import math

import numpy as np
from scipy import special

__all__ = ["two_size_tails"]

_ONE = 0.02  # of the mean: sizes that differ less are one
_SLACK = 0.01  # of the sum seen: what two sizes leave unsaid
_MOST = 2000  # surprises that are enumerated


def two_size_tails(
    seen: float, rows: float, rate: float, mean: float, variance: float, third: float
) -> tuple[float, float]:
    """Return ``P(S >= seen)`` and ``P(S <= seen)``, with all that lies within one per cent of it in both.

    Parameters
    ----------
    seen : float
        The sum.
    rows : float
        How many rows there are; each surprises with the same probability.
    rate : float
        Minus the logarithm of the probability that nothing surprises.
    mean, variance, third : float
        Cumulants of the sum.

    Returns
    -------
    tuple of float
        Exact where rows are alike and have two sizes of surprises, but for the slack.
    """
    chance = -math.expm1(-rate / rows)
    expected = rows * chance
    m1 = mean / expected
    m2 = variance / expected + chance * m1 * m1
    m3 = third / expected + 3.0 * chance * m1 * m2 - 2.0 * chance * chance * m1**3
    spread = math.sqrt(max(m2 - m1 * m1, 0.0))
    most = int(min(rows, expected + 10.0 * math.sqrt(expected) + 30.0))
    if most > _MOST:  # so many surprises have no atoms to speak of, and every pair of counts would fill the memory
        return 0.0, 0.0
    if spread < _ONE * m1:
        small, large, share = m1, m1, 1.0
    else:
        skew = (m3 - 3.0 * m1 * m2 + 2.0 * m1**3) / spread**3
        reach = math.sqrt(1.0 + 0.25 * skew * skew)
        small, large = max(m1 + spread * (0.5 * skew - reach), 0.0), m1 + spread * (0.5 * skew + reach)
        share = (0.5 * skew + reach) / (2.0 * reach)
    a, b = np.meshgrid(np.arange(most + 1.0), np.arange(most + 1.0 if share < 1.0 else 1.0), indexing="ij")
    a, b = a[a + b <= most], b[a + b <= most]
    log = special.gammaln(rows + 1.0) - special.gammaln(rows - a - b + 1.0)
    log -= special.gammaln(a + 1.0) + special.gammaln(b + 1.0)
    log += special.xlogy(a, chance * share) + special.xlogy(b, chance * (1.0 - share))
    mass = np.exp(log - (rows - a - b) * (rate / rows))
    total = a * small + b * large
    upper, lower = (float(mass[ok].sum()) for ok in (total >= seen * (1.0 - _SLACK), total <= seen * (1.0 + _SLACK)))
    return min(upper, 1.0), min(lower, 1.0)
