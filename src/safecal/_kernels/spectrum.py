"""What inference needs of a row beside its sums: its cell, its nodes, and its place in the order of the predictions.

*Cells* of the log-odds of the likelier outcome, for two outcomes. With ``L`` those log-odds, a row is ``L``, whether
the likelier outcome failed to happen, and on which side of one half the prediction lay. A cell holds log-odds that
differ by a few per cent, and keeps their number and the sums of the first three powers of ``d``, their distance from
its centre. Certain rows have no finite log-odds: they are in no cell.

*Nodes* of the log-partition function, for K outcomes. With ``g`` the gaps of the other outcomes, ``log p_top - log
p_k >= 0``, a row is the function ``R(beta) = log(1 + sum of exp(-beta g))``. It is kept as its value and three
derivatives at a few inverse temperatures, each twice the one before, so that one exponential gives all weights: those
of a node are the squares of the last ones. The derivatives are the mean and the central moments of ``-g``, sums of
terms around that mean, where nothing cancels.

*Order*: by the probability of the likeliest class, or by the spread of a density. Ranges of the predictions are
unions of whole cells, so that equal predictions never part. Where rows come in clusters, they are unions of coarse
cells, each of them a union of cells: sums of every cluster are kept in these.
"""

import math

import numpy as np
from scipy import special

from .._types import BoolArray, FloatArray, IndexArray

_BITS, _LOW, _OCTAVES = 4, -8, 28  # sixteen cells to each doubling, from 2**-8 to 2**20
CELLS = (_OCTAVES << _BITS) + 2  # with one below and one above
_FIRST = ((1023 + _LOW) << _BITS) - 1
# Log-odds of a probability made from a round number lie beside it, on the one side or the other as their last digits
# fall. So cells begin a hair below round numbers, and every way of computing the last digits finds the same cell.
_HAIR = 1 << 12
#: The smallest log-odds of each cell, but for that hair: a relative 2**-40.
LOWEST = np.concatenate([[0.0], ((np.arange(1, CELLS, dtype=np.int64) + _FIRST) << (52 - _BITS)).view(np.float64)])
#: What distances are measured from; the last cell, which has no end, from its beginning.
CENTRES = np.concatenate([0.5 * (LOWEST[:-1] + LOWEST[1:]), LOWEST[-1:]])


def cell_numbers(L: FloatArray) -> IndexArray:
    """Number the cells: the exponent and the first four binary digits of a float are what is wanted."""
    bits = np.ascontiguousarray(L, dtype=np.float64).view(np.int64)
    return np.asarray(np.clip(((bits + _HAIR) >> (52 - _BITS)) - _FIRST, 0, CELLS - 1), dtype=np.intp)


def top_moments(confidence: FloatArray, correct: BoolArray, entropy: FloatArray) -> FloatArray:
    """Sum rows of K classes by the log-odds of their likeliest class, as `cell_moments` does those of two outcomes.

    The two outcomes are that it happened, and that it did not. Where the confidence is rounded to 1, the log-odds are
    those that the entropy allows: with ``m`` left for the other classes, it is ``m (1 + L)`` at least. A class that was
    right, and leaves no entropy, is in the last cell; one that was wrong is in none, since its surprise tells more.
    """
    positive = confidence >= 0.5
    wrong = positive != correct
    with np.errstate(divide="ignore", invalid="ignore"):
        L = np.abs(np.log(confidence) - np.log(np.maximum(1.0 - confidence, 0.0)))
        rounded = np.flatnonzero(np.isinf(L))
        if not len(rounded):
            return cell_moments(L, wrong, positive)
        left = -np.log(entropy[rounded])
        L[rounded] = np.where(np.isinf(left) & ~wrong[rounded], LOWEST[-1], left + np.log1p(left))
    inside = np.isfinite(L)
    return cell_moments(L[inside], wrong[inside], positive[inside])


def cell_moments(L: FloatArray, wrong: BoolArray, positive: BoolArray) -> FloatArray:
    """Sum rows by cell: ``n``, and the sums of ``d``, ``d**2`` and ``d**3``, of shape (CELLS, 2, 2, 4).

    ``L`` are log-odds of the likelier outcome, finite and not negative, ``wrong`` tells whether the other one happened,
    and ``positive`` whether the likelier one is the positive one; sums are by cell, by wrong, by positive. The last
    cell keeps the mean alone: squares of its log-odds may overflow.
    """
    cell = cell_numbers(L)
    d = L - CENTRES[cell]
    key = 4 * cell + 2 * wrong + positive
    size = 4 * CELLS
    square = np.where(cell == CELLS - 1, 0.0, d)
    columns = (None, d, square * square, square * square * square)
    sums = [np.bincount(key, weights=column, minlength=size) for column in columns]
    return np.stack(sums, axis=1).astype(np.float64, copy=False).reshape(CELLS, 2, 2, 4)


def point_columns(
    L: FloatArray, w: FloatArray, n: FloatArray, wrong: BoolArray, positive: BoolArray
) -> dict[str, FloatArray]:
    """Return what is summed of points that stand for rows each, by the names of the sums in `Summary`.

    ``L`` are the log-odds of the likelier outcome, ``w`` the weights, ``n`` says how many rows each stands for,
    ``wrong`` whether the other outcome happened, and ``positive`` whether the likelier one is the positive one.
    """
    weighted = bool((w != 1.0).any())
    small = np.exp(-L)
    likely = 1.0 / (1.0 + small)
    q = small * likely
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(q == 0.0, 0.0, L * q)
        spread = mean * np.where(mean == 0.0, 0.0, L * likely)
        third = np.where(spread == 0.0, 0.0, spread * (L * (likely - q)))
        e = np.where(wrong, L, 0.0) - mean
        nw = n * w if weighted else n
        nw2 = nw * w if weighted else nw
        nw3 = nw2 * w if weighted else nw
        ne = nw * e
        e2 = nw2 * (e * e)
        confidence = nw * likely
        columns = {
            "weight": nw,
            "sum_excess": ne,
            "sum_excess2_weight2": e2,
            "sum_excess3_weight3": e2 * e * w if weighted else e2 * e,
            "sum_varentropy": nw * spread,
            "sum_third_cumulant_weight3": nw3 * third,
            "sum_entropy": nw * (np.log1p(small) + mean),
            "sum_predicted": np.where(positive, confidence, nw * q),
            "sum_observed": nw * (wrong != positive),
            "sum_confidence": confidence,
            "sum_correct": nw * ~wrong,
        }
        if weighted:  # else they are equal to others
            columns |= {
                "n": n,
                "weight2": nw2,
                "weight3": nw3,
                "sum_excess_weight2": nw2 * e,
                "sum_excess_weight3": nw3 * e,
                "sum_excess2_weight3": w * e2,
                "sum_varentropy_weight2": nw2 * spread,
            }
    return columns


#: The inverse temperatures.
NODES = (0.25, 0.5, 1.0, 2.0, 4.0)


def node_rows(gaps: FloatArray) -> FloatArray:
    """Return R and its first three derivatives for each row: by node, by derivative, (5, 4, n).

    ``gaps`` (n, K) say how much less likely each other outcome is than the most likely one, in nats; +inf where it is
    impossible, and in the place of the most likely one, if that has a place.
    """
    w = np.exp(-NODES[0] * gaps)
    g = np.where(np.isinf(gaps), 0.0, gaps)
    out = np.empty((len(NODES), 4, len(gaps)))
    for node in out:
        rest = w.sum(axis=1)
        total = 1.0 + rest
        mean = np.vecdot(w, g) / total
        x = g - mean[:, None]
        wx = w * x
        wxx = wx * x  # not x * x, which overflows where w is 0
        node[0] = np.log1p(rest)
        node[1] = -mean
        node[2] = (wxx.sum(axis=1) + mean * mean) / total  # the last term is that of the most likely outcome
        node[3] = (mean * mean * mean - np.vecdot(wxx, x)) / total
        w *= w
    return out


def binary_node_rows(odds: FloatArray) -> FloatArray:
    """Return the same for two outcomes, from the log-odds of the likelier one; +inf where the other is impossible."""
    t = np.exp(-NODES[0] * odds)
    L = np.where(np.isinf(odds), 0.0, odds)
    out = np.empty((len(NODES), 4, len(odds)))
    for node in out:
        large = 1.0 / (1.0 + t)
        small = t * large
        mean = L * small
        node[0] = np.log1p(t)
        node[1] = -mean
        node[2] = mean * (L * large)  # in this order, because L * L may overflow where t is 0
        node[3] = -node[2] * (L * (large - small))
        t *= t
    return out


BY_CLASS = 128  # classes up to which each predicted class has cells of its own
CONFIDENCES = 256  # cells of a class: eight to each unit of the log-odds of its probability, from -16 to 16
SPREADS = 1024  # cells of densities: eight to each doubling of the standard deviation, from 2**-64 to 2**64
CONFIDENCE_UNITS = 32  # of the log-odds
CONFIDENCE_STEPS = float(CONFIDENCES // CONFIDENCE_UNITS)
# Round numbers lie on the edges of cells, which begin a hair earlier, so that the last digit decides nothing.
HAIR = 1e-9
SPREAD_START = 0.5 * math.log(2.0 * math.pi * math.e)  # entropy of a Gaussian of standard deviation 1
SPREAD_STEPS = 8.0 / math.log(2.0)  # cells to each nat

COARSE = 256  # coarse cells of an order, or of a predicted class, at most
COARSE_SPREADS = 4  # cells of a coarse one: half a doubling; of confidences, it is a unit of the log-odds
# Where coarse cells of log-odds begin: at cells with and without weights. Below 1/4 no ECD reaches 0.15 nat.
_COARSE_ODDS = np.array(
    [0.0, 0.25, 0.375, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0,
     24.0, 32.0, 64.0]
)  # fmt: skip
#: The first cell of log-odds in each coarse one.
STARTS = np.searchsorted(LOWEST, _COARSE_ODDS)
_COARSE_OF = np.searchsorted(STARTS, np.arange(CELLS), side="right") - 1


def confidence_cells(confidence: FloatArray, top: IndexArray, classes: int) -> IndexArray:
    """Number the cell of each row: by its likeliest class, where classes are few, and by the probability of it."""
    with np.errstate(divide="ignore"):
        odds = np.log(confidence) - np.log(np.maximum(1.0 - confidence, 0.0))
    cell = _cell_of(CONFIDENCE_STEPS * odds, CONFIDENCES)
    return cell if classes > BY_CLASS else top * CONFIDENCES + cell


def confidence_ends(size: int) -> FloatArray:
    """Return the probabilities between which the cells of a class lie, if it has so many."""
    return _with_ends(special.expit((np.arange(size + 1) / size - 0.5) * CONFIDENCE_UNITS), 0.0, 1.0)


def spread_cells(entropy: FloatArray, dimension: int) -> IndexArray:
    """Number the cell of each row by the standard deviation of a Gaussian that has as much entropy a dimension."""
    return _cell_of((entropy / dimension - SPREAD_START) * SPREAD_STEPS, SPREADS)


def spread_ends() -> FloatArray:
    """Return the standard deviations between which the cells lie."""
    return _with_ends(np.exp2((np.arange(SPREADS + 1) - SPREADS // 2) / 8.0), 0.0, math.inf)


def coarse_odds(cell: IndexArray, positive: BoolArray, *, weighted: bool) -> IndexArray:
    """Number the coarse cells of two outcomes in the order of their probability, by the cells of their log-odds.

    With weights these are eight to each doubling instead of sixteen.
    """
    coarse, size = _COARSE_OF[np.maximum(2 * cell - 1, 0) if weighted else cell], len(STARTS)
    return np.where(positive, size + coarse, size - 1 - coarse)


def coarse_confidences(cell: IndexArray, size: int = CONFIDENCES) -> IndexArray:
    """Number the coarse cells of predicted class and confidence, where a class has so many cells."""
    label, cell = np.divmod(cell, size)
    return np.asarray(label * COARSE + cell * CONFIDENCE_UNITS // size)


def coarse_spreads(cell: IndexArray) -> IndexArray:
    """Number the coarse cells of spreads."""
    return np.asarray(cell // COARSE_SPREADS)


def _cell_of(place: FloatArray, size: int) -> IndexArray:
    return np.asarray(np.clip(np.floor(place + HAIR) + size // 2, 0, size - 1), dtype=np.intp)


def _with_ends(ends: FloatArray, low: float, high: float) -> FloatArray:
    ends[0], ends[-1] = low, high
    return ends
