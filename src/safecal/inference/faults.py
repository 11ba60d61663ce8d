"""How much the likelihood gains by each simple fault: a temperature, a shift, both, or a few wrong labels.

Each is a change of the predictions with one or two numbers to fit. Of two outcomes, the one with the largest likelihood
explains them best, at a price of `PRICE` for each number; what is left is compared range by range, for faults that none
of them explains.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from .._sums.cells import Points
from .._sums.summary import COLUMN
from .._sums.tally import Tally
from .._types import FloatArray, IndexArray
from ..families.predictions import family_named
from .bounds import law_of
from .cox import LogisticRows

__all__ = ["PRICE", "Explained", "explain", "temperature_gain", "uneven_gain"]

PRICE = 6.0  # of one fitted number, in log-likelihood: by chance alone it gains as much in 1 of 1900 samples
_LESS = 3.0  # that wrong labels must gain beyond a temperature: where predictions are vague the two are alike
_ALIKE = 1e-3  # log-likelihood: less is no difference
_SHARE = 1e-12  # of labels: less is no difference
_HALVINGS, _STEPS = 8, 30  # of the scale of that share, and of Newton's method
_RANGES = 16  # of about equal information, in which the rest is compared


class Explained(NamedTuple):
    """How well each fault explains the outcomes.

    ``gain`` is the log-likelihood of each above that of the predictions as they are; ``cause`` the best, at its price,
    or ``"none"``; ``rest`` about what is still to be gained, and ``p_rest`` the p-value that nothing else is wrong.
    """

    cause: str
    gain: dict[str, float]
    shift: float
    slope: float
    noise: float
    rest: float
    p_rest: float


@np.errstate(all="ignore")  # log-odds may be so far that squares of them overflow; such fits do not exist
def explain(points: Points, chance_right: float = 0.0) -> Explained:
    """Compare the faults. ``chance_right`` is how often a wrong label is right all the same: one over the classes."""
    rows = LogisticRows.of(points)
    z = rows.z
    unchanged = rows.at(0.0, 1.0)
    base = unchanged.value
    if rows.happened.all() or not rows.happened.any():  # the larger the shift the likelier, and nothing is left
        shift, cause = (math.inf if rows.happened.all() else -math.inf), ("shift" if -base > PRICE else "none")
        return Explained(cause, {"shift": -base, "slope": 0.0, "both": -base, "noise": 0.0}, shift, 1.0, 0.0, 0.0, 1.0)
    fits = {
        "slope": rows.best((0.0, 1.0), (False, True), unchanged),
        "shift": rows.best((0.0, 1.0), (True, False), unchanged),
        "both": rows.best((0.0, 1.0), (True, True), unchanged),
    }
    gain = {name: fit.value - base if fit.exists else 0.0 for name, fit in fits.items()}
    noise, gain["noise"] = _random_labels(rows, base, chance_right)
    price = {"slope": PRICE, "shift": PRICE, "noise": PRICE + _LESS, "both": 2.0 * PRICE}
    # Where all predictions are alike a shift and a slope are one, and rounding must not choose between them.
    cause = max(gain, key=lambda name: gain[name] - price[name] + _ALIKE * (name == "shift"))
    if gain[cause] <= PRICE * (1.0 + (cause == "both")):
        cause = "none"
    predicted = special.expit(z)
    if cause == "noise":
        predicted = (1.0 - noise) * predicted + noise * (chance_right if chance_right else 0.5)
    elif cause != "none":
        predicted = special.expit(fits[cause].shift + fits[cause].slope * z)
    fitted = {"none": 0, "both": 2}.get(cause, 1)
    fit = fits["shift" if cause == "shift" else "both"]
    leftover = _unexplained(rows, np.where(points.positive, points.cell, -1 - points.cell), predicted, fitted)
    return Explained(cause, gain, fit.shift, fit.slope, noise, *leftover)


def _random_labels(rows: LogisticRows, base: float, chance_right: float) -> tuple[float, float]:
    """Return the share of labels that look as if drawn at random, and how much it gains."""
    m, label_chance = rows.mass, chance_right if chance_right else 0.5
    mass = special.expit(np.where(rows.happened, rows.z, -rows.z))
    change = np.where(rows.happened, label_chance, 1.0 - label_chance) - mass

    def slopes(share: float) -> tuple[float, float]:
        ratio = change / (mass + share * change)
        return float(m @ ratio), -float(m @ (ratio * ratio))

    low, high = 1e-9, 1.0
    if not slopes(low)[0] > 0.0:
        return 0.0, 0.0
    for _ in range(_HALVINGS):  # the likelihood is concave: first its scale, and then Newton's steps
        share = math.sqrt(low * high)
        low, high = (share, high) if slopes(share)[0] > 0.0 else (low, share)
    share = low
    for _ in range(_STEPS):
        first, second = slopes(share)
        before, share = share, min(max(share - first / second, low), high)
        if abs(share - before) < _SHARE:
            break
    return share, max(float(m @ np.log(mass + share * change)) - base, 0.0)


def _unexplained(rows: LogisticRows, cell: IndexArray, predicted: FloatArray, fitted: int) -> tuple[float, float]:
    """Return about what is still to be gained in ranges, each a union of whole cells, and the p-value of their gaps."""
    m = rows.mass
    cell = cell - cell.min()
    spread = np.bincount(cell, weights=rows.w * m * predicted * (1.0 - predicted))
    gap = np.bincount(cell, weights=m * (rows.happened - predicted))
    before = np.cumsum(spread)
    if not before[-1] > 0.0:
        return 0.0, 1.0
    place = np.minimum((_RANGES * (before - 0.5 * spread) / before[-1]).astype(np.intp), _RANGES - 1)
    gaps, spreads = (np.bincount(place, weights=x, minlength=_RANGES) for x in (gap, spread))
    filled = spreads > 0.0
    freedom, total = float(filled.sum() - fitted), float((gaps[filled] ** 2 / spreads[filled]).sum())
    if freedom <= 0.0:
        return 0.0, 1.0
    return 0.5 * max(total - freedom, 0.0), float(special.chdtrc(freedom, total))


def temperature_gain(tally: Tally) -> float:
    """Return how much the likelihood gains by the implied temperature."""
    law = law_of(tally)
    if law is None or not 0.0 < law.beta < math.inf:
        return 0.0 if law is None or math.isnan(law.beta) else math.inf
    if family_named(tally.family).chi_square:
        return 0.5 * tally.dimension * law.mass * (math.log(law.beta) + 1.0 / law.beta - 1.0)
    low, high = law.range
    beta = min(max(law.beta, low), high)
    return (1.0 - beta) * law.seen + law.at_one.value - law.at(beta).value


def uneven_gain(tally: Tally) -> tuple[float, int]:
    """Return about how much the likelihood gains by a bias for each predicted class, and the class that is worst."""
    orders = [order for order in tally.orders if order.label is not None]
    if len(orders) < 2:
        return 0.0, 0
    correct, expected, rows = (
        np.array([order.sums[:, COLUMN[name]].sum() for order in orders])
        for name in ("sum_correct", "sum_confidence", "weight")
    )
    spread = np.maximum(expected * (1.0 - expected / rows), 1e-9)  # at least what it is: confidences of a class differ
    gap = correct - expected
    gap = gap - spread * gap.sum() / spread.sum()
    total = float((gap * gap / spread).sum())
    worst = orders[int(np.argmin(gap / np.sqrt(spread)))].label
    return 0.5 * max(total - (len(orders) - 1), 0.0), 0 if worst is None else worst
