"""Temperatures of many keys at once, from their sums and their nodes.

Whether the temperature of a key exceeds ``T`` is one test at ``beta = 1/T``: the surprise that was seen against the one
that ``p_beta`` expects. The bounds on that difference are those of `sum_bounds`: corrected for skewness, and never
narrower than the spread that ``p_beta`` claims. Where such a bound is 0, the temperature has its bound.

Between two nodes, values and three derivatives at both ends fix a polynomial of degree seven in log beta, as in
`nodes`; here for all keys together.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np

from .._kernels.spectrum import NODES
from .._sums.nodes import NodeTable
from .._sums.summary import COLUMN
from .._types import BoolArray, FloatArray, IndexArray
from .law import LARGEST, SMALLEST
from .nodes import BEYOND, FROM_ENDS, in_log_beta
from .sum_bounds import Keys, blocks, mistakes_by_key

__all__ = ["Hot", "KeyLaw", "KeyTemperatures", "NodeKeys", "StateKeys"]

_X = np.log(NODES)
_ONE = NODES.index(1.0)
_STEPS, _EXACT = 100, 1e-12
_EVEN = 1e-4  # of R: below it, a second derivative drowns in the rounding of the polynomial


class ExpectedSurprise(NamedTuple):
    """The surprise that ``p_beta`` expects of each key: its mean, variance and third cumulant.

    ``rounding`` is what the mean may be off by.
    """

    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    rounding: FloatArray | float = 0.0


class KeyLaw(ABC):
    """How the summed surprise of each key is distributed.

    Attributes
    ----------
    seen : ndarray of shape (keys,)
        The surprise that was seen.
    lowest, highest : ndarray of shape (keys,)
        The inverse temperatures that can be told apart.
    """

    seen: FloatArray
    lowest: FloatArray
    highest: FloatArray

    @abstractmethod
    def at(self, beta: FloatArray, keys: IndexArray) -> ExpectedSurprise:
        """Return the sums of some keys, each at a beta of its own."""


@final
class StateKeys(KeyLaw):
    """Gaussian states: closed forms of their sums."""

    def __init__(self, sums: FloatArray) -> None:
        self._half = sums[:, COLUMN["sum_varentropy"]]
        self._variance = sums[:, COLUMN["sum_varentropy_weight2"]]
        self._third = sums[:, COLUMN["sum_third_cumulant_weight3"]]
        self.seen = sums[:, COLUMN["sum_excess"]] + self._half
        self.lowest, self.highest = (np.full(len(sums), end) for end in (SMALLEST, LARGEST))

    def at(self, beta: FloatArray, keys: IndexArray) -> ExpectedSurprise:
        return ExpectedSurprise(self._half[keys] / beta, self._variance[keys] / beta**2, self._third[keys] / beta**3)


@final
class NodeKeys(KeyLaw):
    """Rows whose log-partition is known at nodes; ``sums`` are those of the same keys, as `Table` holds them.

    ``most_entropy`` is the entropy of a prediction that says nothing; NaN where some rows rule some classes out, or
    have no classes.
    """

    def __init__(self, table: NodeTable, sums: FloatArray, most_entropy: float) -> None:
        self._classes = table.classes
        nodes = table.nodes
        cumulants = np.moveaxis(nodes[:, :, :4], 2, 0)
        value, _, second, third = cumulants
        beta = np.array(NODES)
        known: BoolArray = np.asarray(np.isfinite(nodes).all(axis=2))
        with np.errstate(all="ignore"):  # keys without rows, or so sharp that nothing is left at beta = 4
            self._ratios = np.nan_to_num(nodes[:, :, 4:] / nodes[:, :, 2:4], nan=1.0)
            self._lowest_node = nodes[:, 0, :4]
            self._size = np.abs(value)
            self._second, self._slopes = second, beta * third / second
            mass = sums[:, COLUMN["weight"]] - sums[:, COLUMN["weight_impossible"]]
            self._fourth = self._fourth_power(mass * most_entropy)
            if table.classes:
                known &= value > 0.0
            self._ends = np.stack(in_log_beta(beta, cumulants, table.classes), axis=2)
        self._first, self._last = _known_around_one(known)
        self.lowest = np.full(len(sums), SMALLEST) if table.classes else np.exp(_X[self._first])
        self.highest = np.exp(_X[self._last]) * (BEYOND if table.classes else 1.0)
        self.seen = sums[:, COLUMN["sum_excess"]] - nodes[:, _ONE, 1]
        if table.classes:
            unsurprised = mistakes_by_key(sums)[0] == 0.0
            self.seen = np.where(unsurprised, 0.0, np.maximum(self.seen, 0.0))

    def _fourth_power(self, at_zero: FloatArray) -> FloatArray:
        """Fit a fourth power below the lowest node: at beta = 0 all classes are alike, and R is known."""
        value, first, second, third = self._lowest_node.T
        d = -NODES[0]
        plain = value + d * (first + d * (second / 2.0 + d * third / 6.0))
        missing = at_zero - plain
        known = np.isfinite(missing) & (np.abs(missing) > 1e-10 * np.abs(at_zero))  # not rounding alone
        return np.where(known, missing / d**4, 0.0)

    def at(self, beta: FloatArray, keys: IndexArray) -> ExpectedSurprise:
        beta = np.maximum(beta, SMALLEST)
        x = np.log(beta)
        first, last = self._first[keys], self._last[keys]
        k = np.clip(np.searchsorted(_X, x, side="right") - 1, first, np.maximum(last - 1, first))
        up = np.minimum(k + 1, last)
        width = float(_X[1] - _X[0])
        u = (x - _X[k]) / width
        with np.errstate(all="ignore"):
            scale = width ** np.arange(4)
            ends = np.concatenate([self._ends[keys, k] * scale, self._ends[keys, up] * scale], axis=1)
            coefficients = ends @ FROM_ENDS.T
            f = [_derivative(coefficients, u, order) / width**order for order in range(4)]
            if self._classes:
                above = x > _X[last]
                if above.any():  # a power of beta beyond the last node: it falls no faster than any R
                    value, slope = self._ends[keys, last, 0], self._ends[keys, last, 1]
                    f[0] = np.where(above, value + (x - _X[last]) * slope, f[0])
                    f[1] = np.where(above, slope, f[1])
                    f[2], f[3] = (np.where(above, 0.0, y) for y in f[2:])
                value = np.exp(f[0])
                f = [value, value * f[1], value * (f[2] + f[1] ** 2), value * (f[3] + 3.0 * f[1] * f[2] + f[1] ** 3)]
            derivatives = [f[1] / beta, (f[2] - f[1]) / beta**2, (f[3] - 3.0 * f[2] + 2.0 * f[1]) / beta**3]
            if self._classes:
                even = derivatives[1] * beta**2 < _EVEN * f[0]
                if even.any():
                    flatter = self._even_derivatives(beta, keys, k, up, u)
                    derivatives[1:] = [np.where(even, a, b) for a, b in zip(flatter, derivatives[1:], strict=True)]
            if self._classes and (x < _X[0]).any():
                below, d = x < _X[0], beta - NODES[0]
                _, r1, r2, r3 = self._lowest_node[keys].T
                c = self._fourth[keys]
                series = (
                    r1 + d * (r2 + d * (r3 / 2.0 + d * 4.0 * c)), r2 + d * (r3 + d * 12.0 * c), r3 + d * 24.0 * c
                )  # fmt: skip
                derivatives = [np.where(below, a, b) for a, b in zip(series, derivatives, strict=True)]
            inside = np.clip(u, 0.0, 1.0)[:, None]
            ratios = self._ratios[keys, k] * (1.0 - inside) + self._ratios[keys, up] * inside
            r1, r2, r3 = derivatives
            if not self._classes:
                r1 = np.where((x < _X[first] - _EXACT) | (x > _X[last] + _EXACT), np.nan, r1)
            return ExpectedSurprise(
                -r1, np.maximum(r2, 0.0) * ratios[:, 0], -r3 * ratios[:, 1], _EXACT * self._size[keys, k]
            )

    def _even_derivatives(
        self, beta: FloatArray, keys: IndexArray, k: IndexArray, up: IndexArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the second and third derivative where predictions are all but even, from those at the two nodes.

        The logarithm of the second one follows a cubic in log beta. Beyond the nodes it stays what it is at the last.
        """
        u = np.clip(u, 0.0, 1.0)
        width = float(_X[1] - _X[0])
        a, b = (np.log(self._second[keys, j]) for j in (k, up))
        p, q = (width * self._slopes[keys, j] for j in (k, up))
        c2, c3 = 3.0 * (b - a) - 2.0 * p - q, 2.0 * (a - b) + p + q
        second = np.exp(a + u * (p + u * (c2 + u * c3)))
        return second, second * (p + u * (2.0 * c2 + u * 3.0 * c3)) / width / beta


def _derivative(coefficients: FloatArray, u: FloatArray, order: int) -> FloatArray:
    total = np.zeros(len(u))
    for power in range(7, order - 1, -1):
        total = total * u + math.perm(power, order) * coefficients[:, power]
    return total


def _known_around_one(known: BoolArray) -> tuple[IndexArray, IndexArray]:
    """Return the first and the last node of those that follow one another around beta = 1."""
    below, above = known[:, _ONE::-1], known[:, _ONE:]
    first = _ONE + 1 - np.cumprod(below, axis=1).sum(axis=1)
    last = _ONE - 1 + np.cumprod(above, axis=1).sum(axis=1)
    return np.minimum(first, _ONE), np.maximum(last, _ONE)


class Hot(NamedTuple):
    """How far the surprise of each key lies beyond the one expected at a temperature, a row: above 0 it is hotter."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@final
class KeyTemperatures:
    """The temperatures of keys.

    ``law`` returns how the surprise of some keys is distributed, by their places; ``sums`` are as `Table` holds them,
    and ``alpha`` is the accepted probability of a miss, for each end. Where rows come in clusters, ``reach`` is how far
    the upper bound on the ECD of each key lies above it; it widens as the spread does that is claimed, and no lower
    bound is known then.
    """

    def __init__(
        self, law: Callable[[IndexArray], KeyLaw], sums: FloatArray, alpha: float, reach: FloatArray | None = None
    ) -> None:
        self._law, self._sums, self._alpha, self._reach = law, sums, alpha, reach

    def _select(self, keys: IndexArray) -> "_SelectedKeys":
        reach = None if self._reach is None else self._reach[keys]
        return _SelectedKeys(self._law(keys), self._sums[keys], self._alpha, reach)

    def beyond(self, temperature: float) -> Hot:
        """Compare every key with a temperature; NaN where the law is not known there."""
        count = len(self._sums)
        if temperature == math.inf:
            return Hot(*[np.full(count, -math.inf)] * 3)
        ends = np.empty((len(Hot._fields), count))
        for rows in blocks(count):  # what a law holds of a key is more than its sums
            ends[:, rows] = self._select(np.arange(count)[rows]).beyond(temperature)
        return Hot(*ends)

    def intervals(self, keys: IndexArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the temperature of some keys, and its bounds: 0, infinite, or NaN where there is none."""
        return self._select(keys).intervals()


class _SelectedKeys:
    """The temperatures of some keys."""

    def __init__(self, law: KeyLaw, sums: FloatArray, alpha: float, reach: FloatArray | None) -> None:
        self._law, self._keys, self._alpha, self._reach = law, Keys.of(sums), alpha, reach
        self._every = np.arange(len(sums))

    def beyond(self, temperature: float) -> Hot:
        """Compare every key with a temperature."""
        beta = np.full(len(self._every), 1.0 / temperature)
        value, low, high = (self._end(name, beta, self._every) for name in Hot._fields)
        return Hot(value, low, high)

    def _end(self, name: str, beta: FloatArray, keys: IndexArray) -> FloatArray:
        """Return the difference of some keys at a beta each, or one of its bounds."""
        at = self._law.at(beta, keys)
        selected = self._keys.take(keys)
        with np.errstate(all="ignore"):
            distance = self._law.seen[keys] - at.mean
            value = np.where(selected.impossible, math.inf, distance / selected.weight)
            if name == "value":
                return value
            if self._reach is not None:
                wider = np.fmax(np.sqrt(at.variance / selected.variance), 1.0)
                return value + self._reach[keys] * wider if name == "high" else np.full(len(keys), -math.inf)
            smallest_ecd = np.where(np.isnan(selected.smallest_ecd), np.nan, -at.mean / selected.weight)
        selected = selected._replace(
            ecd=value, excess=distance, variance=at.variance, third=at.third, smallest_ecd=smallest_ecd
        )
        with np.errstate(all="ignore"):
            slack = at.rounding / selected.weight
            side = -1 if name == "low" else +1
            return selected.bounds((self._alpha, side))[0] + side * slack

    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the temperatures and their bounds."""
        flat = ~(self._keys.variance > 0.0)  # every prediction is a coin toss or a certainty
        with np.errstate(divide="ignore"):
            ends = [np.where(flat, np.nan, 1.0 / self._root(name, self._every)) for name in Hot._fields]
        return ends[0], ends[1], ends[2]

    def _root(self, name: str, keys: IndexArray) -> FloatArray:
        """Return the beta at which a difference is 0; 0 or infinity where none is, NaN where it is not known."""

        def f(x: FloatArray, some_keys: IndexArray) -> FloatArray:
            return self._end(name, np.exp(x), some_keys)

        low, high = np.log(self._law.lowest[keys]), np.log(self._law.highest[keys])
        f_low, f_high = f(low, keys), f(high, keys)
        out = np.where(f_low >= 0.0, 0.0, math.inf)
        out[np.isnan(f_low) | np.isnan(f_high)] = np.nan
        inside = np.flatnonzero((f_low < 0.0) & (f_high > 0.0))
        if len(inside):
            ends = low[inside], high[inside], f_low[inside], f_high[inside]
            out[inside] = np.exp(_crossings(f, keys[inside], *ends))
        return out


def _crossings(
    f: Callable[[FloatArray, IndexArray], FloatArray],
    keys: IndexArray,
    a: FloatArray,
    b: FloatArray,
    f_a: FloatArray,
    f_b: FloatArray,
) -> FloatArray:
    """Find where functions that rise from below 0 to above are 0, by false position that halves the end that stays."""
    a, b, f_a, f_b = a.copy(), b.copy(), f_a.copy(), f_b.copy()
    f_a, f_b = np.maximum(f_a, -1e300), np.minimum(f_b, 1e300)
    x, kept = 0.5 * (a + b), np.zeros(len(a))
    open_keys = np.arange(len(a))
    for step in range(_STEPS):
        i = open_keys
        guess = (a[i] * f_b[i] - b[i] * f_a[i]) / (f_b[i] - f_a[i])
        middle = 0.5 * (a[i] + b[i])
        x[i] = np.where((guess > a[i]) & (guess < b[i]) & (step % 4 != 3), guess, middle)
        value = f(x[i], keys[i])
        above = value >= 0.0
        f_a[i] *= np.where(above & (kept[i] > 0.0), 0.5, 1.0)
        f_b[i] *= np.where(~above & (kept[i] < 0.0), 0.5, 1.0)
        kept[i] = np.where(above, 1.0, -1.0)
        b[i], f_b[i] = np.where(above, x[i], b[i]), np.where(above, value, f_b[i])
        a[i], f_a[i] = np.where(above, a[i], x[i]), np.where(above, f_a[i], value)
        open_keys = i[(b[i] - a[i] > _EXACT * (1.0 + np.abs(x[i]))) & (value != 0.0)]
        if not len(open_keys):
            break
    return x
