"""States: Gaussians whitened with a Cholesky factor, never with an inverse; mixtures of them; rotations and poses."""

from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from .._types import FloatArray, IndexArray
from .compiled import state_scores

_LEAST_SCALE = 1e-150  # of a scale: its square is still a float
LOG_2PI = float(np.log(2.0 * np.pi))


def nees_from_std(residual: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C of (n, d) residuals with independent components."""
    white = residual / std
    return np.vecdot(white, white), 2.0 * np.log(np.broadcast_to(std, residual.shape)).sum(axis=1)


def nees_from_covariance(residual: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C of (n, d) residuals with a positive definite covariance each, (n, d, d)."""
    scores = state_scores(residual, cov)
    if scores is not None:
        return scores
    return nees_from_factor(residual, np.asarray(np.linalg.cholesky(cov), dtype=np.float64))


def nees_from_factor(residual: FloatArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C, with lower factors of C, one for all (d, d) or one a row (n, d, d)."""
    n, white = len(residual), solved(residual, factor)
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    logdet = 2.0 * np.log(np.abs(diagonal)).sum(axis=-1)
    return np.einsum("in,in->n", white, white), np.broadcast_to(logdet, (n,)).astype(np.float64)


def solved(residual: FloatArray, factor: FloatArray) -> FloatArray:
    """Solve (n, d) residuals by lower factors, one for all, (d, d) or (1, d, d), or one a row; return (d, n).

    Forward substitution runs over the components and is vectorised over the rows.
    """
    n, d = residual.shape
    white = np.empty((d, n))
    lines = np.moveaxis(factor, -3, -1) if factor.ndim == 3 else factor[..., None]
    lines = np.ascontiguousarray(lines)
    for i in range(d):
        rest = residual[:, i].copy()
        for j in range(i):
            rest -= lines[i, j] * white[j]
        white[i] = rest / lines[i, i]
    return white


def along_covariance(error: FloatArray, deviation: FloatArray, white: FloatArray, factor: FloatArray) -> FloatArray:
    """Return squared errors over what was stated, (2, n): where a covariance C is long, and where it is short.

    Of an error e these are ``e' e / tr C`` and ``e' C^-2 e / tr C^-1``. Given are errors over the deviations of their
    axes, (n, d), these, (d,) or (n, d), the whitened errors, and the lower factor of the correlations, one for all,
    (1, d, d), or one a row.
    """
    d = error.shape[1]
    scale = (np.atleast_2d(deviation) * np.ones(d)).T
    scale = scale / scale.max(axis=0)  # so that no square leaves the floats
    gap = error.T * scale
    long = np.square(gap).sum(axis=0) / np.square(scale).sum(axis=0)
    inverse = 1.0 / np.maximum(scale, _LEAST_SCALE)
    if len(factor) == 1 and (factor[0] == np.eye(d)).all():  # axes by themselves, as most of those with many are
        root = inverse / inverse.max(axis=0)
        return np.stack([long, np.square(root * white.T).sum(axis=0) / np.square(root).sum(axis=0)])
    root = _inverse_of_lower(np.moveaxis(factor, 0, -1)) * inverse  # C^-1 is root' root
    root /= np.abs(root).max(axis=(0, 1))
    pull = np.einsum("jin,jn->in", np.broadcast_to(root, (d, d, len(white))), white.T)
    return np.stack([long, np.square(pull).sum(axis=0) / np.square(root).sum(axis=(0, 1))])


def _inverse_of_lower(factor: FloatArray) -> FloatArray:
    """Invert lower triangular matrices, (d, d, n): a component at a time, for all rows at once."""
    factor = np.ascontiguousarray(factor)
    inverted = np.zeros_like(factor)
    for i in range(len(factor)):
        inverted[i, i] = 1.0 / factor[i, i]
        for j in range(i):
            inverted[i, j] = -inverted[i, i] * np.einsum("kn,kn->n", factor[i, j:i], inverted[j:i, j])
    return inverted


def nees_from_precision_factor(residual: FloatArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C, with lower factors of the precision matrix ``C^-1 = F F^T``."""
    white = np.einsum("...ji,...j->...i", factor, residual)
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    logdet = -2.0 * np.log(np.abs(diagonal)).sum(axis=-1)
    return np.vecdot(white, white), np.broadcast_to(logdet, (len(residual),)).astype(np.float64)


def wrap(residual: FloatArray, angles: tuple[int, ...]) -> FloatArray:
    """Bring the components that are angles into (-pi, pi], in place, and return the residuals."""
    for i in angles:
        residual[..., i] = np.pi - np.mod(np.pi - residual[..., i], 2.0 * np.pi)
    return residual


def marginal_factor(factor: FloatArray, kept: tuple[int, ...]) -> FloatArray:
    """Return lower factors of the covariance of some components, without squaring the condition number."""
    rows = factor[..., kept, :]
    upper = np.linalg.qr(np.swapaxes(rows, -1, -2), mode="r")
    return np.ascontiguousarray(np.swapaxes(upper, -1, -2), dtype=np.float64)


def marginal_precision(precision: FloatArray, kept: tuple[int, ...]) -> FloatArray:
    """Return the inverse covariance of some components.

    It is the Schur complement of the others: the last block of a Cholesky factor in which they come first.
    """
    d = precision.shape[-1]
    order = [i for i in range(d) if i not in kept] + list(kept)
    factor = np.linalg.cholesky(precision[..., order, :][..., order])
    last = factor[..., d - len(kept) :, d - len(kept) :]
    return np.asarray(last @ np.swapaxes(last, -1, -2), dtype=np.float64)


def crps_of_normal(error: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the continuous ranked probability score of normal forecasts; ``error`` is in units of their spread."""
    density = np.exp(-0.5 * error * error) / np.sqrt(2.0 * np.pi)
    return np.asarray(spread * (error * (2.0 * special.ndtr(error) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)))


class Components(NamedTuple):
    """The mixtures of some rows; components of weight 0 have a log-weight of -inf and any valid factor."""

    log_weight: FloatArray
    mean: FloatArray
    factor: FloatArray
    angles: tuple[int, ...]

    @property
    def log_root(self) -> FloatArray:
        """Half the log-determinant of each covariance, (K, rows)."""
        return np.asarray(np.log(np.abs(np.einsum("kiin->kin", self.factor))).sum(axis=1))


def log_joint(mixture: Components, points: FloatArray) -> FloatArray:
    """Return ``log w_k + log N(x; m_k, C_k)`` for each component: (K, ..., rows)."""
    count, d = mixture.mean.shape[:2]
    constant = mixture.log_weight - mixture.log_root - 0.5 * d * LOG_2PI
    out = np.empty((count, *points.shape[1:]))
    white = np.empty(points.shape)
    for k in range(count):
        square = np.zeros(points.shape[1:])
        for i in range(d):
            gap = points[i] - mixture.mean[k, i]
            if i in mixture.angles:
                gap = np.pi - np.mod(np.pi - gap, 2.0 * np.pi)
            for j in range(i):
                gap -= mixture.factor[k, i, j] * white[j]
            gap /= mixture.factor[k, i, i]
            white[i] = gap
            square += gap * gap
        out[k] = constant[k] - 0.5 * square
    return out


def moments(mixture: Components) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of each mixture, (rows, d) and (rows, d, d)."""
    weight = np.exp(mixture.log_weight)
    weight = weight / weight.sum(axis=0)
    counts = weight > 0.0
    means = np.where(counts[:, None], mixture.mean, 0.0)
    factor = np.where(counts[:, None, None], mixture.factor, 0.0)
    centre = np.einsum("kn,kin->in", weight, means)
    gap = means - centre
    within = np.einsum("kn,kijn,kljn->nil", weight, factor, factor)
    return centre.T, within + np.einsum("kn,kin,kln->nil", weight, gap, gap)


def membership(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log-density of the mixture, and how unsure it leaves of which component: the entropy of that.

    Both have the shape of ``joint`` without its first axis.
    """
    top = joint.max(axis=0)
    gap = joint - np.where(np.isneginf(top), 0.0, top)
    share = np.exp(gap)
    total = share.sum(axis=0)
    with np.errstate(divide="ignore"):
        log_total = np.log(total)
    term = np.where(share > 0.0, share * np.where(np.isneginf(gap), 0.0, gap), 0.0).sum(axis=0)
    unsure = log_total - term / np.where(total > 0.0, total, 1.0)
    return top + log_total, np.maximum(unsure, 0.0)


def draw(mixture: Components, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return fresh draws for each row: (d, draws, rows)."""
    _, d, rows = mixture.mean.shape
    which = _choose_components(np.exp(mixture.log_weight), rng.random((draws, rows)))
    row = np.arange(rows)
    noise = rng.standard_normal((d, draws, rows))
    points = np.empty((d, draws, rows))
    for i in range(d):
        points[i] = mixture.mean[which, i, row]
        for j in range(i + 1):
            points[i] += mixture.factor[which, i, j, row] * noise[j]
    return points


def _choose_components(weight: FloatArray, uniform: FloatArray) -> IndexArray:
    """Choose components by their weights (K, rows); one of weight 0 is never chosen."""
    edges = np.cumsum(weight, axis=0)
    chosen = (uniform[None] * edges[-1] >= edges[:, None]).sum(axis=0)
    last = len(weight) - 1 - (weight[::-1] > 0.0).argmax(axis=0)
    return np.asarray(np.minimum(chosen, last), dtype=np.intp)


def mixture_columns(mixture: Components, x: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return surprisal, entropy, excess, varentropy, third cumulant and numerical variance of some rows."""
    d = len(x)
    with np.errstate(over="ignore"):  # an error beyond every float has density 0, and is counted as impossible
        surprisal = -membership(log_joint(mixture, x))[0]
    weight = np.exp(mixture.log_weight)
    single = (weight > 0.0).sum(axis=0) == 1
    parts = mixture.log_root + 0.5 * d * (1.0 + LOG_2PI) - np.where(weight > 0.0, mixture.log_weight, 0.0)
    of_components = (weight * parts).sum(axis=0)
    log_f, doubt = membership(log_joint(mixture, draw(mixture, draws, rng)))
    entropy = of_components - np.where(single, 0.0, doubt.mean(axis=0))
    gap = log_f - log_f.mean(axis=0)
    varentropy = np.where(single, 0.5 * d, np.square(gap).sum(axis=0) / (draws - 1.0))
    third = -(gap**3).sum(axis=0) * draws / ((draws - 1.0) * (draws - 2.0))
    # Doubt may be so rare that no draw saw it: count one more draw in full doubt, or the error would seem to be 0.
    unseen = np.log((weight > 0.0).sum(axis=0)) / draws
    variance = np.where(single, 0.0, doubt.var(axis=0, ddof=1) / draws + unseen**2)
    return np.stack([surprisal, entropy, surprisal - entropy, varentropy, np.where(single, float(d), third), variance])


def cloud_moments(
    points: FloatArray, weight: FloatArray, angles: tuple[int, ...]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the means (b, d) of weighted particles, these less their mean (b, S, d), and covariances (b, d, d)."""
    centre = np.einsum("bs,bsd->bd", weight, points)
    for i in angles:
        centre[:, i] = np.arctan2(
            np.einsum("bs,bs->b", weight, np.sin(points[..., i])), np.einsum("bs,bs->b", weight, np.cos(points[..., i]))
        )
    gap = wrap(points - centre[:, None], angles)
    shift = np.einsum("bs,bsd->bd", weight, gap)
    gap -= shift[:, None]
    cov = np.einsum("bs,bsi,bsj->bij", weight, gap, gap, optimize=True)
    return centre + shift, gap, (cov + cov.transpose(0, 2, 1)) / 2.0


Side = Literal["left", "right", "world"]
_SMALL_SQUARE = 1e-2  # of the square of an angle: below it, series keep more digits than the formulas


class Pose(NamedTuple):
    """Rotations, (n, 4) quaternions or (n,) angles, and positions (n, 3) or (n, 2); None where only rotations count."""

    rotation: FloatArray
    position: FloatArray | None


def product(a: Pose, b: Pose) -> Pose:
    """Return ``a b``: b, seen from a."""
    if a.rotation.ndim == 1:
        rotation = a.rotation + b.rotation
    else:
        v, w, u, x = a.rotation[:, :3], a.rotation[:, 3:], b.rotation[:, :3], b.rotation[:, 3:]
        rotation = np.concatenate([w * u + x * v + np.cross(v, u), w * x - (v * u).sum(axis=1, keepdims=True)], axis=1)
    if a.position is None or b.position is None:
        return Pose(rotation, None)
    return Pose(rotation, a.position + _rotated(a.rotation, b.position))


def inverse(pose: Pose) -> Pose:
    """Return the pose that undoes another."""
    rotation = -pose.rotation if pose.rotation.ndim == 1 else pose.rotation * np.array([-1.0, -1.0, -1.0, 1.0])
    return Pose(rotation, None if pose.position is None else -_rotated(rotation, pose.position))


def _rotated(rotation: FloatArray, vectors: FloatArray) -> FloatArray:
    if rotation.ndim == 1:
        cos, sin = np.cos(rotation), np.sin(rotation)
        x, y = vectors.T
        return np.stack([cos * x - sin * y, sin * x + cos * y], axis=1)
    v = rotation[:, :3]
    across = 2.0 * np.cross(v, vectors)
    return np.asarray(vectors + rotation[:, 3:] * across + np.cross(v, across))


def logarithm(pose: Pose) -> FloatArray:
    """Return the tangent vectors, rotation first: (n, 6) for poses, (n, 3) for rotations and for poses of the plane."""
    if pose.rotation.ndim == 1:
        angle = np.pi - np.mod(np.pi - pose.rotation, 2.0 * np.pi)
        if pose.position is None:
            return angle[:, None]
        half, (x, y) = 0.5 * angle, pose.position.T
        along = 1.0 - angle * angle * _cotangent_term(angle * angle)  # half * cot(half)
        return np.stack([angle, along * x + half * y, along * y - half * x], axis=1)
    turn = _rotation_vector(pose.rotation)
    if pose.position is None:
        return turn
    square = (turn * turn).sum(axis=1, keepdims=True)
    once = np.cross(turn, pose.position)
    return np.concatenate([turn, pose.position - 0.5 * once + _cotangent_term(square) * np.cross(turn, once)], axis=1)


def exponential(tangent: FloatArray, *, plane: bool = False) -> Pose:
    """Return the poses of tangent vectors, rotation first; the rotations, where they have three numbers.

    In the ``plane`` these are an angle and two translations.
    """
    if plane:
        angle, x, y = tangent.T
        along, across = np.sinc(angle / np.pi), 0.5 * angle * np.sinc(0.5 * angle / np.pi) ** 2
        return Pose(angle.copy(), np.stack([along * x - across * y, across * x + along * y], axis=1))
    turn = tangent[:, :3]
    square = (turn * turn).sum(axis=1, keepdims=True)
    angle = np.sqrt(square)
    slope = 0.5 * np.sinc(0.5 * angle / np.pi)
    rotation = np.concatenate([slope * turn, np.cos(0.5 * angle)], axis=1)
    if tangent.shape[1] == 3:
        return Pose(rotation, None)
    once = np.cross(turn, tangent[:, 3:])
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (angle - np.sin(angle)) / (square * angle)
    series = 1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0 - square / 362_880.0))
    twice = np.where(square < _SMALL_SQUARE, series, exact)
    return Pose(rotation, tangent[:, 3:] + 2.0 * slope * slope * once + twice * np.cross(turn, once))


def _rotation_vector(quaternion: FloatArray) -> FloatArray:
    """Return axis times angle, at most half a turn."""
    sign = np.where(quaternion[:, 3:] < 0.0, -1.0, 1.0)
    v, w = sign * quaternion[:, :3], sign * quaternion[:, 3:]
    sine = np.sqrt((v * v).sum(axis=1, keepdims=True))
    tiny = sine < 1e-100
    return np.asarray(v * np.where(tiny, 2.0, 2.0 * np.arctan2(sine, w) / np.where(tiny, 1.0, sine)))


def _cotangent_term(square: FloatArray) -> FloatArray:
    """Return ``(1 - half * cot(half)) / angle**2`` of squared angles: finite at 0, and at half a turn."""
    half = 0.5 * np.sqrt(square)
    series = 1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30_240.0 + square / 1_209_600.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (1.0 - half * np.cos(half) / np.sin(half)) / square
    return np.where(square < _SMALL_SQUARE, series, exact)


def tangent_errors(truth: Pose, estimate: Pose, side: Side) -> FloatArray:
    """Return the errors of poses in the tangent space, rotation first.

    right: ``truth = estimate exp(error)``, in the axes of the estimate. left: ``truth = exp(error) estimate``. world:
    the rotation as on the left, and the difference of the positions, each by itself.
    """
    if side == "right":
        return logarithm(product(inverse(estimate), truth))
    if side == "left":
        return logarithm(product(truth, inverse(estimate)))
    turn = logarithm(product(Pose(truth.rotation, None), inverse(Pose(estimate.rotation, None))))
    if truth.position is None or estimate.position is None:
        return turn
    return np.concatenate([turn, truth.position - estimate.position], axis=1)
