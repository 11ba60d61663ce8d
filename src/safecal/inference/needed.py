"""How many more clusters would settle the matter."""

import math

import numpy as np

from .._sums.tally import Tally
from .bounds import Bounds
from .cluster_bounds import clustered_interval
from .cluster_mistakes import clustered_ratios
from .clustered import ClusteredLaw
from .dependence import ALIKE
from .law import Law

__all__ = ["clusters_needed"]

_MOST = 1_000_000  # clusters


def clusters_needed(
    tally: Tally, *, threshold: float, max_temperature: float, alpha: float, max_ratio: float = math.inf
) -> int | None:
    """Return about how many more clusters of this kind would let the upper bounds fall within the limits.

    They are reckoned to be of the same sizes, with the same surprises, and as far correlated: what is known less well
    is known better by the root of their number.

    Parameters
    ----------
    tally : Tally
        Sums of rows in clusters.
    threshold : float
        Largest ECD that is allowed, in nats.
    max_temperature : float
        Largest temperature that is allowed.
    alpha : float
        Accepted probability that a bound misses.
    max_ratio : float, optional
        Largest ratio of mistakes that is allowed; by default it is not looked at.

    Returns
    -------
    int or None
        0 where all bounds are within the limits already; None where an estimate is not, or a million would not do.
    """
    clusters = tally.clusters
    assert clusters is not None
    bounds = Bounds(tally)
    law = bounds.law
    ecd, temperature = tally.summary.ecd, bounds.temperature(1.0 - 2.0 * alpha).value
    seen, announced = (float(clusters.column(name).sum()) for name in ("seen", "announced"))
    if not ecd < threshold or temperature >= max_temperature or seen >= max_ratio * announced > 0.0:
        return None
    places = np.zeros(len(clusters), dtype=np.intp), np.arange(len(clusters))
    clustered = law if isinstance(law, ClusteredLaw) and not math.isnan(law.beta) else None
    beta = None if clustered is None else max(1.0 / max_temperature, _beta_at(clustered, threshold))

    def within(times: float) -> bool:
        rarity = ALIKE if clustered is None or beta is None else clustered.rarity(beta)
        if clustered_interval(clusters.sums, alpha, rarity, times)[1] > threshold:
            return False
        if clustered is not None and beta is not None and clustered.lower(beta, times) > alpha:
            return False
        if math.isinf(max_ratio):
            return True
        return not clustered_ratios(*places, clusters.sums, 1, alpha, times=times).high[0] > max_ratio

    size = len(clusters)
    if within(1.0):
        return 0
    low, high = size, 2 * size
    while not within(high / size):
        if high >= _MOST:
            return None
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle / size) else (middle, high)
    return high - size


def _beta_at(law: Law, ecd: float) -> float:
    """Return the beta that goes with an ECD; the smallest where none is so flat."""
    low, high = (math.log(x) for x in law.range)
    if law.ecd(math.exp(low)) <= ecd:
        return math.exp(low)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if law.ecd(math.exp(middle)) > ecd else (low, middle)
    return math.exp(high)
