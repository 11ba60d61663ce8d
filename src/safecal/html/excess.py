"""How surprise is spread over the rows, beside what a calibrated model would show: for states and densities."""

import math
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from scipy import special

from .._types import FloatArray
from ..families.predictions import family_named
from ..judge.evaluation import Evaluation
from .markup import Markup, Scale, element, label, line, percent, picture, plain, shape, sized, tick_text, upright

__all__ = ["ExcessShares", "excess_picture"]

_SIZE = (440.0, 320.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 424.0, 34.0, 270.0
_FARTHEST = 4.0  # how far the rows may stretch the axis, in reaches of a calibrated model
_REACH = 20.0  # nats, where that is not known


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExcessShares:
    """Share of the rows whose excess is at least so large.

    Attributes
    ----------
    excess, share : ndarray of shape (cells,)
        The mean excess of each cell of the histogram that holds rows, increasing, and the share of the weight with at
        least that; rows of infinite excess included.
    expected : ndarray of shape (points, 2) or None
        Excess, and the share that a calibrated model has there; None where that is not known.
    impossible : float
        Share of the weight in rows of infinite excess.
    """

    excess: FloatArray
    share: FloatArray
    expected: FloatArray | None
    impossible: float

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Read it off an evaluation."""
        gone = evaluation.summary.weight_impossible
        counts, sums = np.array(evaluation.histogram.counts), np.array(evaluation.histogram.sums)
        full = counts > 0.0
        weight = counts[full]
        total = float(weight.sum()) + gone
        share = (np.cumsum(weight[::-1])[::-1] + gone) / total
        has_law = family_named(evaluation.family).chi_square and full.any()
        expected = _chi_square(evaluation.dimension, float(share.min())) if has_law else None
        return cls(sums[full] / weight, share, expected, gone / total)


def _chi_square(dimension: int, least: float) -> FloatArray:
    """Return excess and share of calibrated states: half a chi-square, minus its mean."""
    half = 0.5 * dimension
    shares = np.concatenate([[1.0], np.linspace(0.999, 0.05, 60), np.geomspace(0.05, min(least, 0.05), 60)])
    return np.stack([special.gammainccinv(half, shares) - half, shares], axis=1)


def excess_picture(name: str, found: ExcessShares) -> Markup | None:
    """Return the picture; None where every outcome was called impossible."""
    if not found.excess.size:
        return None
    law = np.empty((0, 2)) if found.expected is None else found.expected
    reach = float(law[-1, 0]) if len(law) else _REACH
    low = min(0.0, float(found.excess[0]), *law[:1, 0].tolist())
    high = max(reach if len(law) else 0.0, min(float(found.excess[-1]), _FARTHEST * reach), 0.1)
    pad = 0.04 * (high - low)
    x = Scale(low - pad, high + pad, _LEFT, _RIGHT)
    least = min(float(found.share.min()), 0.1)
    y = Scale(0.7 * least, 1.0, _BOTTOM, _TOP, log=True)
    ticks, shares = x.ticks(7), [10.0**-k for k in range(math.floor(-math.log10(least)) + 1)]
    steps = [(float(found.excess[0]), 1.0)]
    for at, share in zip(found.excess.tolist(), found.share.tolist(), strict=True):
        steps += [(steps[-1][0], share), (at, share)]
    parts = [
        element("rect", x=x(0.0), y=_TOP, width=_RIGHT - x(0.0), height=_BOTTOM - _TOP, class_="zone"),
        *(line(_LEFT, y(s), _RIGHT, y(s), "grid") for s in shares),
        *(label(_LEFT - 8.0, y(s) + 4.0, percent(s), anchor="end") for s in shares),
        *(line(x(t), _BOTTOM, x(t), _BOTTOM + 4.0, "axis") for t in ticks),
        *(label(x(t), _BOTTOM + 18.0, tick_text(t), anchor="middle") for t in ticks),
        line(x(0.0), _TOP, x(0.0), _BOTTOM, "neutral"),
        *([shape([(x(a), y(s)) for a, s in law.tolist()], "curve second", closed=False)] if len(law) else []),
        shape([(x(a), y(s)) for a, s in steps], "curve", closed=False),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        label(
            (_LEFT + _RIGHT) / 2.0,
            _BOTTOM + 40.0,
            "excess, nat: above 0 more surprised than announced",
            "axis-name",
            "middle",
        ),
        upright("rows with at least that", 12.0, (_TOP + _BOTTOM) / 2.0),
        *_legend(len(law) > 0),
    ]
    return picture(name, _SIZE, "How surprise is spread", _described(found), *parts)


def _legend(expected: bool) -> list[Markup]:
    names = [("the rows", "curve"), *([("a calibrated model", "curve second")] if expected else [])]
    parts, at = [], _LEFT
    for text, look in names:
        parts += [line(at, 14.0, at + 22.0, 14.0, look), label(at + 28.0, 18.0, text, "small")]
        at += 44.0 + sized(text)
    return parts


def _described(found: ExcessShares) -> str:
    above = found.share[found.excess > 0.0]
    share = float(above[0]) if above.size else found.impossible
    text = f"In {percent(share)} of the rows the model was more surprised than it announced. "
    if found.impossible > 0.0:
        text += f"In {percent(found.impossible)} the surprise was infinite. "
    return text + f"The largest finite excess is {plain(float(found.excess[-1]))} nat."
