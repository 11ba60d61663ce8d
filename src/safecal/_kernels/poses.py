"""Rotations and poses: products, exponentials and logarithms, each in the form that keeps its digits.

Rotations of space are unit quaternions ``x, y, z, w``, which lose nothing near half a turn; those of the plane are
angles. A pose is a rotation with a position. Tangent vectors are given in two parts, rotation and translation.
"""

from typing import Literal, NamedTuple

import numpy as np

from .._types import FloatArray

__all__ = ["Pose", "Side", "exponential", "inverse", "logarithm", "product", "tangent_errors"]

Side = Literal["left", "right", "world"]
_SMALL = 1e-2  # of the square of an angle: below it, series keep more digits than the formulas


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
    return Pose(rotation, a.position + _turned(a.rotation, b.position))


def inverse(pose: Pose) -> Pose:
    """Return the pose that undoes another."""
    rotation = -pose.rotation if pose.rotation.ndim == 1 else pose.rotation * np.array([-1.0, -1.0, -1.0, 1.0])
    return Pose(rotation, None if pose.position is None else -_turned(rotation, pose.position))


def _turned(rotation: FloatArray, vectors: FloatArray) -> FloatArray:
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
        along = 1.0 - angle * angle * _after_half(angle * angle)  # half * cot(half)
        return np.stack([angle, along * x + half * y, along * y - half * x], axis=1)
    turn = _rotation_vector(pose.rotation)
    if pose.position is None:
        return turn
    square = (turn * turn).sum(axis=1, keepdims=True)
    once = np.cross(turn, pose.position)
    return np.concatenate([turn, pose.position - 0.5 * once + _after_half(square) * np.cross(turn, once)], axis=1)


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
    twice = np.where(square < _SMALL, series, exact)
    return Pose(rotation, tangent[:, 3:] + 2.0 * slope * slope * once + twice * np.cross(turn, once))


def _rotation_vector(quaternion: FloatArray) -> FloatArray:
    """Return axis times angle, at most half a turn."""
    sign = np.where(quaternion[:, 3:] < 0.0, -1.0, 1.0)
    v, w = sign * quaternion[:, :3], sign * quaternion[:, 3:]
    sine = np.sqrt((v * v).sum(axis=1, keepdims=True))
    tiny = sine < 1e-100
    return np.asarray(v * np.where(tiny, 2.0, 2.0 * np.arctan2(sine, w) / np.where(tiny, 1.0, sine)))


def _after_half(square: FloatArray) -> FloatArray:
    """Return ``(1 - half * cot(half)) / angle**2`` of squared angles: finite at 0, and at half a turn."""
    half = 0.5 * np.sqrt(square)
    series = 1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30_240.0 + square / 1_209_600.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (1.0 - half * np.cos(half) / np.sin(half)) / square
    return np.where(square < _SMALL, series, exact)


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
