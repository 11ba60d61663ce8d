"""Which simple fault of two outcomes explains them best: nothing, a temperature, a shift, both, or a few wrong labels.

Each is a change of the predictions with one or two numbers to fit. The one with the largest likelihood wins, at a price
of `PRICE` for each number; what is left is compared range by range, for faults that none of them explains.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from .._sums.cells import Points
from .._types import FloatArray, IndexArray
from .cox import LogisticRows

__all__ = ["PRICE", "Explained", "explain"]

PRICE = 6.0  # of one fitted number, in log-likelihood: by chance alone it gains as much in 1 of 1900 samples
_LESS = 3.0  # that wrong labels must gain beyond a temperature: where predictions are vague the two are alike
_ALIKE = 1e-3  # log-likelihood: less is no difference
_SHARE = 1e-12  # of labels: less is no difference
_HALVINGS, _STEPS = 8, 30  # of the scale of that share, and of Newton's method
_RANGES = 16  # of about equal information, in which the rest is compared


class Explained(NamedTuple):
    """How well each fault explains the outcomes.

    ``gain`` is the log-likelihood of each above that of the predictions as they are; ``cause`` the best, at its price,
    or ``"none"``; ``rest`` the p-value that nothing else is wrong.
    """

    cause: str
    gain: dict[str, float]
    shift: float
    slope: float
    noise: float
    rest: float
    p_rest: float


@np.errstate(all="ignore")  # log-odds may be so far that squares of them overflow; such fits do not exist
def explain(points: Points, least: float = 0.0) -> Explained:
    """Compare the faults. ``least`` is the chance of a wrong label to be right all the same: one over the classes."""
    rows = LogisticRows.of(points)
    z = rows.z
    given = rows.at(0.0, 1.0)
    base = given.value
    if rows.happened.all() or not rows.happened.any():  # the larger the shift the likelier, and nothing is left
        shift, cause = (math.inf if rows.happened.all() else -math.inf), ("shift" if -base > PRICE else "none")
        return Explained(cause, {"shift": -base, "slope": 0.0, "both": -base, "noise": 0.0}, shift, 1.0, 0.0, 0.0, 1.0)
    fits = {
        "slope": rows.best((0.0, 1.0), (False, True), given),
        "shift": rows.best((0.0, 1.0), (True, False), given),
        "both": rows.best((0.0, 1.0), (True, True), given),
    }
    gain = {name: fit.value - base if fit.exists else 0.0 for name, fit in fits.items()}
    noise, gain["noise"] = _noise(rows, base, least)
    price = {"slope": PRICE, "shift": PRICE, "noise": PRICE + _LESS, "both": 2.0 * PRICE}
    # Where all predictions are alike a shift and a slope are one, and rounding must not choose between them.
    cause = max(gain, key=lambda name: gain[name] - price[name] + _ALIKE * (name == "shift"))
    if gain[cause] <= PRICE * (1.0 + (cause == "both")):
        cause = "none"
    said = special.expit(z)
    if cause == "noise":
        said = (1.0 - noise) * said + noise * (least if least else 0.5)
    elif cause != "none":
        said = special.expit(fits[cause].shift + fits[cause].slope * z)
    fitted = {"none": 0, "both": 2}.get(cause, 1)
    fit = fits["shift" if cause == "shift" else "both"]
    rest = _rest(rows, np.where(points.positive, points.cell, -1 - points.cell), said, fitted)
    return Explained(cause, gain, fit.shift, fit.slope, noise, *rest)


def _noise(rows: LogisticRows, base: float, least: float) -> tuple[float, float]:
    """Return the share of labels that look as if drawn at random, and how much it gains."""
    m, other = rows.mass, least if least else 0.5
    mass = special.expit(np.where(rows.happened, rows.z, -rows.z))
    apart = np.where(rows.happened, other, 1.0 - other) - mass

    def slopes(share: float) -> tuple[float, float]:
        ratio = apart / (mass + share * apart)
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
    return share, max(float(m @ np.log(mass + share * apart)) - base, 0.0)


def _rest(rows: LogisticRows, cell: IndexArray, said: FloatArray, fitted: int) -> tuple[float, float]:
    """Return about what is still to be gained in ranges, each a union of whole cells, and the p-value of their gaps."""
    m = rows.mass
    cell = cell - cell.min()
    spread = np.bincount(cell, weights=rows.w * m * said * (1.0 - said))
    gap = np.bincount(cell, weights=m * (rows.happened - said))
    before = np.cumsum(spread)
    if not before[-1] > 0.0:
        return 0.0, 1.0
    place = np.minimum((_RANGES * (before - 0.5 * spread) / before[-1]).astype(np.intp), _RANGES - 1)
    gaps, spreads = (np.bincount(place, weights=x, minlength=_RANGES) for x in (gap, spread))
    some = spreads > 0.0
    freedom, total = float(some.sum() - fitted), float((gaps[some] ** 2 / spreads[some]).sum())
    if freedom <= 0.0:
        return 0.0, 1.0
    return 0.5 * max(total - freedom, 0.0), float(special.chdtrc(freedom, total))
