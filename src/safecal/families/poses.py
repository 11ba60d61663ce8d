"""Poses: errors of rotations and positions in the tangent space, where a covariance is stated for them."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from .._checks import fail, worded
from .._checks.arrays import same_rows
from .._checks.columns import choice, spelled, steady
from .._checks.states import DIMENSIONS, checked_poses, covariance_factor, named
from .._kernels.states import Pose, Side, tangent_errors
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike, FloatArray
from ..errors import CovarianceError, InputError, ShapeError
from .gaussian import Gaussian, Parts, states

__all__ = ["Convention", "axis_names", "pose_errors", "poses", "suspicions"]

Group = Literal["SE3", "SE2", "SO3"]
First = Literal["rotation", "translation"]
Quaternion = Literal["xyzw", "wxyz"]
SIDES = {
    "right": "errors in the axes of the estimate, truth = estimate * exp(error), as GTSAM's marginals",
    "left": "errors in the axes of the world, truth = exp(error) * estimate",
    "world": "position and rotation apart, along the axes of the world, as nav_msgs/Odometry",
}
FIRST = {"rotation": "as GTSAM's Pose3", "translation": "as nav_msgs/Odometry, and GTSAM's Pose2"}
_SUSPICIOUS = 2.0  # times as large a median NEES, by which another reading of the same numbers is suspected
_FEWEST_POSES = 10  # poses from which on another reading is suspected
_MOST_READ = 2000  # rows that are read in every way


class Convention(NamedTuple):
    """What the numbers of a covariance are: of which group, on which side, in which order."""

    group: str
    side: Side
    first: str | None

    def ordered(self, errors: FloatArray) -> FloatArray:
        """Return errors that come rotation first in the order of the covariance."""
        turn = DIMENSIONS[self.group][0]
        if self.first != "translation":
            return errors
        return np.ascontiguousarray(np.concatenate([errors[:, turn:], errors[:, :turn]], axis=1))

    @property
    def parts(self) -> Parts:
        """What is looked at by itself: rotation and translation, and each axis, which alone cannot acquit."""
        turn, move = DIMENSIONS[self.group]
        numbers = [*range(turn), *range(turn, turn + move)]
        if self.first == "translation":
            numbers = numbers[move:] + numbers[:move]
        blocks = (("rotation", tuple(numbers[:turn])), ("translation", tuple(numbers[turn:])))
        wide = [(Look(name, f"in {name}"), kept) for name, kept in blocks if move]
        single = [
            (Look(name, f"on the axis {name}", acquits=False), (k,))
            for k, name in enumerate(axis_names(self))
            if name not in {"rotation"}  # in the plane, that is a block
        ]
        return (*wide, *single)

    def __str__(self) -> str:
        first = "" if self.first is None else f", {self.first} first"
        return f"{self.group} errors, {'in the world' if self.side == 'world' else 'on the ' + self.side}{first}"


def axis_names(convention: Convention) -> tuple[str, ...]:
    """Return what the axes are called, in the order of the covariance; on the right, x is forward, y left and z up.

    Examples
    --------
    >>> axis_names(Convention("SE2", "right", "translation"))
    ('forward', 'left', 'rotation')
    """
    turn, move = DIMENSIONS[convention.group]
    turns = [f"rotation {axis}" for axis in "xyz"] if turn == 3 else ["rotation"]
    body = ("forward", "left", "up")
    moves = [body[i] if convention.side == "right" else f"translation {'xyz'[i]}" for i in range(move)]
    return tuple(moves + turns if convention.first == "translation" else turns + moves)


@steady
@spelled()
def poses(
    truth: ArrayLike,
    estimate: ArrayLike,
    cov: ArrayLike,
    *,
    group: Group = "SE3",
    side: Side | None = None,
    first: First | None = None,
    quaternion: Quaternion | None = None,
) -> Gaussian:
    """Check estimates of poses, their covariances, and the true poses.

    The error of a pose is a vector in the tangent space, and the covariance is that of this vector; so it must be said
    in which axes it was stated. The result are Gaussian predictions of the error, which are looked at as a whole, in
    rotation and in translation, and on each axis: a verdict is UNSAFE where one of them is, and SAFE where the first
    three are.

    Parameters
    ----------
    truth, estimate : array-like
        Of shape (n, 7) for SE3, position and quaternion; (n, 3) for SE2, position and angle in radians; (n, 4) for SO3,
        quaternions. Or matrices, (n, 4, 4) for SE3, (n, 3, 3) else. Quaternions may be off their length by rounding,
        a thousandth.
    cov : array-like of shape (d, d) or (n, d, d)
        Covariances of the errors, d = 6 for SE3, else 3.
    group : {"SE3", "SE2", "SO3"}, default "SE3"
        Poses of space, poses of the plane, or rotations of space.
    side : {"right", "left", "world"}
        The axes of the errors. ``"right"``: those of the estimate, ``truth = estimate * exp(error)``, as GTSAM's
        marginals. ``"left"``: ``truth = exp(error) * estimate``. ``"world"``: the position and the rotation by
        themselves, along and about the axes of the world, as nav_msgs/Odometry. It is never guessed.
    first : {"rotation", "translation"}
        Which the covariance has first; not for SO3. It is never guessed.
    quaternion : {"xyzw", "wxyz"}
        The order in quaternions; for matrices and for SE2 it is not needed. It is never guessed.

    Returns
    -------
    Predictions
        Of the errors, as `gaussian` gives them. Call ``.evaluate()``, or pass them to `assess_consistency`.

    Warns
    -----
    UserWarning
        Where another side or order explains the errors far better than the one that was named.

    See Also
    --------
    gaussian : States that are vectors.
    assess_consistency : Many runs, step by step.

    Notes
    -----
    A covariance in the tangent space speaks of errors below half a turn. Where rotations are uncertain by more than
    about 0.2 rad, covariances of positions that were carried along by first-order formulas are too small themselves.

    Examples
    --------
    A yaw of 0.1 where 0.05 is one standard deviation:

    >>> import safecal
    >>> predictions = safecal.poses([[2.0, 1.0, 0.1]], [[2.0, 1.0, 0.0]], [[0.0025, 0, 0], [0, 1, 0], [0, 0, 1]],
    ...                             group="SE2", side="world", first="rotation")
    >>> predictions
    gaussian predictions: 1 row (SE2 errors, in the world, rotation first)
    >>> round(predictions.ecd, 9)
    0.5
    """
    choice(group, "group", tuple(DIMENSIONS))
    convention = Convention(group, _side(side), _first(first, group))
    a, b = (checked_poses(p, name, group, quaternion) for p, name in ((truth, "truth"), (estimate, "estimate")))
    same_rows("estimate", len(b.rotation), len(a.rotation), "truth")
    predictions = pose_errors(a, b, cov, convention)
    for text in suspicions(a, b, predictions.spread, convention, quaternion):
        warnings.warn(text, UserWarning, stacklevel=4)  # of the caller, behind two decorators
    return predictions


def _side(side: str | None) -> Side:
    checked: Side = named(side, "side", SIDES)  # type: ignore[assignment]
    return checked


def _first(first: str | None, group: str) -> str | None:
    return None if group == "SO3" else named(first, "first", FIRST)


def pose_errors(truth: Pose, estimate: Pose, cov: ArrayLike, convention: Convention) -> Gaussian:
    """Return predictions of the errors of checked poses; their covariances are checked here."""
    errors = convention.ordered(tangent_errors(truth, estimate, convention.side))
    shape = np.shape(cov)
    n, d = errors.shape
    if shape not in {(d, d), (n, d, d)}:
        rule = (
            f"must be one ({d}, {d}) matrix, or one for each pose, ({n}, {d}, {d}): {convention.group} has {d} numbers"
        )
        raise fail(ShapeError, "cov", rule, got=f"shape {shape}")
    try:
        matrices = covariance_factor(cov, "cov", errors.shape)
    except CovarianceError as error:
        raise _with_flat_axes(error, cov, convention) from None
    predictions = states(errors, np.zeros_like(errors), matrices, str(convention), convention.parts)
    return replace(predictions, axis_names=axis_names(convention))


def _with_flat_axes(error: InputError, cov: ArrayLike, convention: Convention) -> InputError:
    """Name the axes whose variance is 0 everywhere, where there are some: planar estimators leave them out so."""
    flat = np.diagonal(np.asarray(cov), axis1=-2, axis2=-1) == 0.0
    names = [name for name, k in zip(axis_names(convention), range(flat.shape[-1]), strict=True) if flat[..., k].all()]
    if not names:
        return error
    hint = f'the variance of {", ".join(names)} is 0 in every pose. A robot in the plane is judged with `group="SE2"`.'
    return worded(error, replace(error.complaint, hint=hint))


def suspicions(
    truth: Pose, estimate: Pose, cov: AnyArray, convention: Convention, quaternion: str | None = None
) -> list[str]:
    """Say which other reading of the numbers explains the errors far better, if one does.

    A covariance keeps its determinant in every reading; so the right one has the smallest NEES, whatever its scale.
    """
    n = len(truth.rotation)
    if n < _FEWEST_POSES:  # of so few errors any reading may fit best by chance
        return []
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_READ)).astype(np.intp))
    a, b = (Pose(p.rotation[rows], None if p.position is None else p.position[rows]) for p in (truth, estimate))
    matrices = np.asarray(cov if cov.ndim == 2 else cov[rows], dtype=np.float64)
    named_nees = _median_nees(a, b, matrices, convention)
    best = min(((_median_nees(*reading), why) for reading, why in _readings(a, b, matrices, convention, quaternion)))
    if not named_nees > _SUSPICIOUS * best[0]:
        return []
    return [
        f"{best[1]} explains these errors far better: the median NEES is {best[0]:.3g}, and {named_nees:.3g} as named."
    ]


def _median_nees(truth: Pose, estimate: Pose, cov: FloatArray, convention: Convention) -> float:
    errors = convention.ordered(tangent_errors(truth, estimate, convention.side))
    white = np.linalg.solve(np.linalg.cholesky(cov), errors[..., None])[..., 0]
    return float(np.median((white * white).sum(axis=1)))


Reading = tuple[Pose, Pose, FloatArray, Convention]


def _readings(
    a: Pose, b: Pose, cov: FloatArray, convention: Convention, quaternion: str | None
) -> Iterator[tuple[Reading, str]]:
    """Yield the same numbers as others might have meant them, one change at a time."""
    for side in SIDES:
        if side != convention.side and not (convention.group == "SO3" and {side, convention.side} == {"left", "world"}):
            yield (a, b, cov, convention._replace(side=_side(side))), f'`side="{side}"`'
    if convention.first is not None:
        other = "translation" if convention.first == "rotation" else "rotation"
        yield (a, b, cov, convention._replace(first=other)), f'`first="{other}"`'
    if quaternion is not None and a.rotation.ndim == 2:
        order = [1, 2, 3, 0] if quaternion == "xyzw" else [3, 0, 1, 2]
        x, y = (Pose(p.rotation[:, order], p.position) for p in (a, b))
        for truth, estimate, whose in ((x, y, "both"), (x, b, "`truth`"), (a, y, "`estimate`")):
            yield (truth, estimate, cov, convention), f"the other order of `quaternion` in {whose}"
