"""Rows of classes that support a map, and their likeliest numbers: by a logistic regression, or by a softmax.

Both have a normal prior around "change nothing". It keeps numbers finite where outcomes are separated, and decides
where the rows do not.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from .._checks import refused
from .._types import FloatArray, IndexArray
from ..errors import UnavailableError
from .base import FitRows
from .steps import log_values_of, outcome_classes

__all__ = ["PRIOR", "Softmax", "checked_classes", "logistic", "possible_rows", "require_rising", "softmax"]

PRIOR = 0.05  # precision of the normal prior of a slope around 1, and of a shift around 0: a deviation of 4.5
_STEPS = 100
_CLOSE = 1e-9  # of a step, beside the numbers
_SAMPLE, _MANY = 20_000, 100_000  # rows of a first fit, where there are many more
_NEAR = 0.2  # a step from the first fit to the whole one that needs no check
_STEEP = 20.0  # weights beyond which the largest logit of a row may be far below 0
_DENSE = 256  # numbers, up to which the matrix of second derivatives is made
_FLOOR = -1e5  # instead of the logarithm of 0: exp of it is 0, and so is their product
_SPREAD = 1e-3, 5.0  # between which the deviation of shifts from class to class is sought
_BLOCK = 1 << 16  # elements that fit into a cache
_ROUGH, _ROUNDS = 5, 20  # steps while the prior is not settled, and how often it is estimated


def checked_classes(rows: FitRows, fewest: int, name: str) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return log-odds or log-probabilities, what happened, and weights, of rows that support a map."""
    z, y = log_values_of(rows.predictions), outcome_classes(rows.predictions)
    w = None if rows.weight is None else rows.weights
    rows.require(fewest, name, "`Temperature` needs 10.")
    counted = y if w is None else y[w > 0.0]
    if len(counted) and (counted == counted[0]).all():
        refused("the same class happened in every row, which says nothing about the others", None)
    return z, y, w


def possible_rows(
    z: FloatArray, y: IndexArray, w: FloatArray | None
) -> tuple[FloatArray, IndexArray, FloatArray | None]:
    """Return the rows that say something; refuse outcomes of probability 0."""
    outcome_logits = np.where(y == 1, z, -z) if z.ndim == 1 else z[np.arange(len(y)), y]
    bad = np.isneginf(outcome_logits) if w is None else np.isneginf(outcome_logits) & (w > 0.0)
    if bad.any():
        raise UnavailableError(
            f"no shift and slope explain an outcome of probability 0: that happened at row {int(bad.argmax())} "
            f"({int(bad.sum())} of {len(y)} rows).\n\nHint: pass `logits=`, which never saturate; keep probabilities "
            "off 0 in the fit and when applying it, for example `np.clip(y_prob, 1e-6, 1 - 1e-6)`; or use `Isotonic`."
        )
    if z.ndim == 1:
        telling = np.isfinite(z)  # a certainty that came true says nothing
        if not telling.all():
            return z[telling], y[telling], None if w is None else w[telling]
    return z, y, w


def require_rising(slope: float) -> None:
    """Refuse a slope that would turn predictions round."""
    if not slope > 0.0:
        refused(
            "confidence carries no information here: the outcomes are likelier without it",
            "are outcomes and predictions rows of the same data, in the same order? Is `pos_label` the right one?",
        )


def logistic(columns: FloatArray, y: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the likeliest coefficients of columns, then what is added to their sum.

    The prior is around 1 for each coefficient, and around no change for the mean prediction, so that coefficients stay
    at 1 where the columns do not vary.
    """
    middle = np.average(columns, axis=0, weights=weight)
    X = np.empty((len(y), columns.shape[1] + 1))
    X[:, :-1], X[:, -1] = columns - middle, 1.0
    centre = np.append(np.ones(len(middle)), middle.sum())
    theta = centre
    if len(y) > _MANY:
        sampled = np.random.default_rng(0).permutation(len(y))[:_SAMPLE]
        theta = _logistic(X[sampled], y[sampled], None if weight is None else weight[sampled], centre, centre)
    theta = _logistic(X, y, weight, centre, theta)
    return np.append(theta[:-1], theta[-1] - theta[:-1] @ middle)


def _logistic(
    X: FloatArray, y: FloatArray, weight: FloatArray | None, centre: FloatArray, theta: FloatArray
) -> FloatArray:
    w = np.ones(len(y)) if weight is None else weight
    unit = float(w.mean())
    eye = PRIOR * unit * np.eye(len(centre))

    def loss(t: FloatArray) -> float:
        z = X @ t
        return float(w @ (np.logaddexp(0.0, z) - y * z) + 0.5 * PRIOR * unit * np.square(t - centre).sum())

    value = loss(theta)
    for _ in range(_STEPS):
        p = 0.5 * (1.0 + np.tanh(0.5 * (X @ theta)))
        gradient = X.T @ (w * (p - y)) + eye @ (theta - centre)
        hessian = X.T @ (X * (w * p * (1.0 - p))[:, None]) + eye
        step = np.linalg.solve(hessian, gradient)
        share = 1.0
        while (new_value := loss(theta - share * step)) > value + 1e-12 * abs(value) and share > 1e-6:
            share *= 0.5
        theta, value = theta - share * step, new_value
        if np.abs(step).max() <= _CLOSE * (1.0 + np.abs(theta).max()):
            break
    return theta


class Softmax(NamedTuple):
    """Weights and shifts of K classes, and the variances of their priors."""

    weights: FloatArray
    shifts: FloatArray
    variances: tuple[float, float]


class _SoftmaxSums(NamedTuple):
    value: float
    gradient: FloatArray
    hessian: FloatArray | None
    curvature: FloatArray  # its diagonal


class _SoftmaxRows:
    """Log-probabilities of K classes, what happened, and the numbers of each class, one after another."""

    def __init__(self, z: FloatArray, y: IndexArray, weight: FloatArray | None, shared: bool) -> None:
        self.z, self.y, self.weight, self.shared = z, y, weight, shared
        self.classes = z.shape[1]
        self.number: type[np.floating[Any]] = np.float64
        self.steep = _STEEP

    def take(self, index: IndexArray) -> "_SoftmaxRows":
        return _SoftmaxRows(
            self.z[index], self.y[index], None if self.weight is None else self.weight[index], self.shared
        )

    def single(self) -> "_SoftmaxRows":
        """Return rows without weights, with half of the digits."""
        rows = _SoftmaxRows(self.z, self.y, None, self.shared)
        rows.number, rows.steep = np.float32, _STEEP / 4.0
        return rows

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights and shifts."""
        K = self.classes
        return np.full(K, theta[0]) if self.shared else theta[:K], theta[-K:]

    def at(self, theta: FloatArray, dense: bool) -> _SoftmaxSums:
        """Return minus the log-likelihood and its derivatives."""
        K, size = self.classes, len(theta)
        value, gradient, diagonal = 0.0, np.zeros(size), np.zeros(size)
        hessian = np.zeros((size, size)) if dense else None
        step = max(1, _BLOCK // K)
        for start in range(0, len(self.z), step):
            part = slice(start, start + step)
            value += self._add(theta, part, gradient, diagonal, hessian)
        if hessian is not None:
            lower = np.tril(hessian)
            hessian = lower + np.tril(lower, -1).T
        return _SoftmaxSums(value, gradient, hessian, diagonal)

    def _add(
        self, theta: FloatArray, part: slice, gradient: FloatArray, diagonal: FloatArray, hessian: FloatArray | None
    ) -> float:
        K, y = self.classes, self.y[part]
        z = self.z[part].astype(self.number, copy=False)
        weights, shifts = (numbers.astype(self.number, copy=False) for numbers in self.split(theta))
        x = z * weights[0] if self.shared else z * weights
        # Log-probabilities are at most 0, and the largest of a row is not far below: one bound serves all rows.
        x += shifts - shifts.max()
        if weights.max() > self.steep or weights.min() < 0.0:
            x -= x.max(axis=1, keepdims=True)
        rows, ones = np.arange(len(y)), np.ones(K, dtype=self.number)
        outcome_logits = x[rows, y]
        p = np.exp(x, out=x)
        total = p @ ones
        p /= total[:, None]
        w = np.ones(len(y), dtype=self.number) if self.weight is None else self.weight[part]
        share = p if self.weight is None else p * w[:, None]
        mass, zp = w @ p, p * z
        gradient[-K:] += mass - np.bincount(y, weights=w, minlength=K)
        if hessian is None:
            diagonal[-K:] += mass - np.einsum("ij,ij->j", share, p)
        else:
            products = share.T @ p
            diagonal[-K:] += mass - np.diag(products)
            hessian[-K:, -K:] += np.diag(mass) - products
        if self.shared:
            mean = zp @ ones
            gradient[0] += float(w @ (mean - z[rows, y]))
            diagonal[0] += float(w @ (np.einsum("ij,ij->i", zp, z) - mean * mean))
            if hessian is not None:
                hessian[0, 0] = diagonal[0]
                hessian[1:, 0] += w @ zp - share.T @ mean
        else:
            szp = zp if self.weight is None else zp * w[:, None]
            gradient[:K] += w @ zp - np.bincount(y, weights=w * z[rows, y], minlength=K)
            squares = np.einsum("ij,ij->j", szp, z)
            diagonal[:K] += squares - np.einsum("ij,ij->j", szp, zp)
            if hessian is not None:
                hessian[:K, :K] += np.diag(squares) - szp.T @ zp
                hessian[K:, :K] += np.diag(w @ zp) - share.T @ zp
        return float(w @ (np.log(total) - outcome_logits))


class _SoftmaxPrior:
    """Normal priors: of the mean weight around 1, of weights around their mean, of shifts around 0.

    How far weights and shifts differ from class to class is estimated with them, by the moments of what is expected of
    each: classes that differ by chance alone are pulled together.
    """

    def __init__(self, classes: int, shared: bool, unit: float) -> None:
        self.classes, self.shared, self.unit = classes, shared, unit
        self.shift = self.weight = 1.0  # variances

    def precision(self) -> FloatArray:
        K = self.classes
        size = (1 if self.shared else K) + K
        precision = np.zeros((size, size))
        precision[-K:, -K:] = np.eye(K) / self.shift
        if self.shared:
            precision[0, 0] = PRIOR
        else:
            mean = np.full((K, K), 1.0 / K)
            precision[:K, :K] = (np.eye(K) - mean) / self.weight + PRIOR * mean / K
        return precision * self.unit

    def pull(self, from_centre: FloatArray) -> FloatArray:
        """Return the product of the precision and how far numbers are from the centre, without the matrix."""
        K = self.classes
        pull = from_centre / self.shift
        if self.shared:
            pull[0] = PRIOR * from_centre[0]
        else:
            mean = from_centre[:K].mean()
            pull[:K] = (from_centre[:K] - mean) / self.weight + PRIOR * mean / K
        return np.asarray(pull * self.unit)

    def centre(self) -> FloatArray:
        K = self.classes
        return np.concatenate([np.ones(1 if self.shared else K), np.zeros(K)])

    def learn(self, theta: FloatArray, curvature: FloatArray) -> bool:
        """Estimate the variances anew, and tell whether they have settled."""
        K, (smallest, largest) = self.classes, (s * s for s in _SPREAD)
        variances_before = self.shift, self.weight

        def variance(values: FloatArray, seen: FloatArray, variance_before: float) -> float:
            uncertainty = 1.0 / (seen / self.unit + 1.0 / variance_before)
            return min(max(float((np.square(values) + uncertainty).mean()), smallest), largest)

        self.shift = variance(theta[-K:], curvature[-K:], self.shift)
        if not self.shared:
            self.weight = variance(theta[:K] - theta[:K].mean(), curvature[:K], self.weight)
        pairs = zip(variances_before, (self.shift, self.weight), strict=True)
        return all(abs(math.log(a / b)) < 0.05 for a, b in pairs)


def softmax(
    z: FloatArray, y: IndexArray, weight: FloatArray | None, *, shared: bool, near: Softmax | None = None
) -> Softmax:
    """Return the likeliest weights and shifts of log-probabilities; ``shared`` for one weight of all classes.

    ``near`` is a fit to similar rows, from which this one starts. The likeliest numbers are the same; the variances
    settle within the same twentieth.
    """
    rows = _SoftmaxRows(z if z.min() >= _FLOOR else np.maximum(z, _FLOOR), y, weight, shared)
    prior = _SoftmaxPrior(rows.classes, shared, 1.0 if weight is None else float(weight.mean()))
    theta = prior.centre()
    if near is not None:
        theta = np.concatenate([near.weights[:1] if shared else near.weights, near.shifts])
        prior.shift, prior.weight = near.variances
    elif len(y) > _MANY:
        sampled = rows.take(np.random.default_rng(0).permutation(len(y))[:_SAMPLE])
        theta = _approach(rows, prior, _fit(sampled, prior, theta))
    theta = _fit(rows, prior, theta, settled=len(y) > _MANY)
    return Softmax(*rows.split(theta), (prior.shift, prior.weight))


def _approach(rows: _SoftmaxRows, prior: _SoftmaxPrior, theta: FloatArray) -> FloatArray:
    """Return what two steps with half of the digits lead to, from a start that is near already."""
    if len(theta) > _DENSE or rows.weight is not None:  # weights may be larger than half of the digits hold
        return theta
    single_rows, precision = rows.single(), prior.precision()
    for _ in range(2):
        sums = single_rows.at(theta, dense=True)
        assert sums.hessian is not None
        step = np.linalg.solve(sums.hessian + precision, sums.gradient + precision @ (theta - prior.centre()))
        if not np.abs(step).max() < _NEAR:
            break
        theta = np.asarray(theta - step)
    return theta


def _fit(rows: _SoftmaxRows, prior: _SoftmaxPrior, theta: FloatArray, *, settled: bool = False) -> FloatArray:
    centre = prior.centre()
    if len(theta) > _DENSE:
        return _fit_many(rows, prior, theta, centre)
    value_before, step = math.inf, np.zeros_like(theta)
    for _ in range(_STEPS):
        sums = rows.at(theta, dense=True)
        from_centre = theta - centre
        value = sums.value + 0.5 * float(from_centre @ prior.precision() @ from_centre)
        if value > value_before * (1.0 + 1e-12) and np.abs(step).max() > 1e-6:  # too far
            step *= 0.5
            theta = theta + step
            continue
        if not settled:
            settled = prior.learn(theta, sums.curvature)
        precision = prior.precision()
        value_before = sums.value + 0.5 * float(from_centre @ precision @ from_centre)
        assert sums.hessian is not None
        gradient = sums.gradient + precision @ from_centre
        step = np.asarray(np.linalg.solve(sums.hessian + precision, gradient))
        theta = np.asarray(theta - step)
        if settled and float(gradient @ step) <= 1e-8 * (1.0 + sums.value):  # what is left is its square
            break
    return theta


def _fit_many(rows: _SoftmaxRows, prior: _SoftmaxPrior, theta: FloatArray, centre: FloatArray) -> FloatArray:
    """Fit many numbers, without the matrix of second derivatives: roughly until the prior has settled, then closely."""
    curvature = rows.at(theta, dense=False).curvature
    shifts = np.arange(len(theta)) >= len(theta) - rows.classes
    settled = False
    for _ in range(_ROUNDS):
        scale = 1.0 / np.sqrt(curvature + prior.unit / np.where(shifts, prior.shift, prior.weight))

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            t = x * scale  # noqa: B023
            sums, from_centre = rows.at(t, dense=False), t - centre
            pulled = prior.pull(from_centre)
            return sums.value + 0.5 * float(from_centre @ pulled), (sums.gradient + pulled) * scale  # noqa: B023

        options = {"maxiter": 100 if settled else _ROUGH}
        theta = optimize.minimize(loss, theta / scale, jac=True, method="L-BFGS-B", options=options).x * scale
        if settled:
            break
        curvature = rows.at(theta, dense=False).curvature
        settled = prior.learn(theta, curvature)
    return theta
