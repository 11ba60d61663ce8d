"""Poses: errors in the tangent space, what must be named, and what is suspected where it was named wrongly."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import safecal
from safecal._kernels.states import Pose, exponential, inverse, logarithm, product, tangent_errors
from safecal.errors import CovarianceError, FormError, MissingValueError, OptionError, RangeError, ShapeError

COV = np.diag([0.02, 0.01, 0.05, 0.3, 0.1, 0.05]) ** 2


def numbers(pose: Pose) -> np.ndarray:
    assert pose.position is not None
    return np.concatenate([pose.position, pose.rotation], axis=1)


def matrices(pose: Pose) -> np.ndarray:
    transforms = np.tile(np.eye(4), (len(pose.rotation), 1, 1))
    transforms[:, :3, :3], transforms[:, :3, 3] = (
        Rotation.from_quat(pose.rotation).as_matrix(),
        pose.position,
    )
    return transforms


def tracks(rng: np.random.Generator, n: int = 600, side: str = "right") -> tuple[np.ndarray, np.ndarray]:
    """Return true and estimated poses, ten metres from the origin, whose errors have the covariance COV."""
    where = np.concatenate([rng.normal(size=(n, 3)), 10.0 * rng.normal(size=(n, 3))], axis=1)
    estimate, error = exponential(where), exponential(rng.multivariate_normal(np.zeros(6), COV, n))
    return numbers(product(estimate, error) if side == "right" else product(error, estimate)), numbers(estimate)


def hat(xi: np.ndarray) -> np.ndarray:
    generator_matrix = np.zeros((4, 4))
    x, y, z = xi[:3]
    generator_matrix[:3, :3], generator_matrix[:3, 3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]], xi[3:]
    return generator_matrix


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.05, 0.2, 2.0, np.pi - 1e-3, np.pi - 1e-9])
def test_logarithm_and_exponential_are_those_of_matrices_and_undo_each_other(
    angle: float, rng: np.random.Generator
) -> None:
    axis = rng.normal(size=(20, 3))
    xi = np.concatenate(
        [angle * axis / np.linalg.norm(axis, axis=1, keepdims=True), 3 * rng.normal(size=(20, 3))], axis=1
    )
    pose = exponential(xi)
    np.testing.assert_allclose(matrices(pose), [expm(hat(one)) for one in xi], atol=1e-12)
    np.testing.assert_allclose(logarithm(pose), xi, atol=2e-14)
    np.testing.assert_allclose(logarithm(exponential(xi[:, :3])), xi[:, :3], atol=2e-14)
    flat = xi[:, [2, 3, 4]]
    np.testing.assert_allclose(logarithm(exponential(flat, plane=True)), flat, atol=2e-14)


def test_a_product_with_the_inverse_is_nothing(rng: np.random.Generator) -> None:
    for pose in (exponential(rng.normal(size=(20, 6))), exponential(rng.normal(size=(20, 3)), plane=True)):
        for one in (product(pose, inverse(pose)), product(inverse(pose), pose)):
            np.testing.assert_allclose(logarithm(one), 0.0, atol=1e-14)


def test_the_sides_say_what_they_mean(rng: np.random.Generator) -> None:
    estimate, xi = exponential(rng.normal(size=(30, 6))), 0.3 * rng.normal(size=(30, 6))
    right, left = product(estimate, exponential(xi)), product(exponential(xi), estimate)
    np.testing.assert_allclose(tangent_errors(right, estimate, "right"), xi, atol=1e-13)
    np.testing.assert_allclose(tangent_errors(left, estimate, "left"), xi, atol=1e-13)
    world = tangent_errors(left, estimate, "world")
    np.testing.assert_allclose(world[:, :3], xi[:, :3], atol=1e-13)
    assert left.position is not None
    assert estimate.position is not None
    np.testing.assert_allclose(world[:, 3:], left.position - estimate.position, atol=1e-13)


def test_every_form_of_the_same_poses_gives_the_same_numbers(rng: np.random.Generator) -> None:
    truth, estimate = tracks(rng, 50)
    one = safecal.poses(truth, estimate, COV, side="right", first="rotation", quaternion="xyzw").score().excess
    swapped = [p[:, [0, 1, 2, 6, 3, 4, 5]] for p in (truth, estimate)]
    other = safecal.poses(*swapped, COV, side="right", first="rotation", quaternion="wxyz").score().excess
    np.testing.assert_allclose(one, other, rtol=1e-12)
    four = [matrices(Pose(p[:, 3:], p[:, :3])) for p in (truth, estimate)]
    np.testing.assert_allclose(safecal.poses(*four, COV, side="right", first="rotation").score().excess, one, rtol=1e-9)
    order = [3, 4, 5, 0, 1, 2]
    moved = safecal.poses(*four, COV[np.ix_(order, order)], side="right", first="translation")
    np.testing.assert_allclose(moved.score().excess, one, rtol=1e-9)
    negative = safecal.poses(-truth * [-1, -1, -1, 1, 1, 1, 1], estimate, COV, side="right", first="rotation",
                             quaternion="xyzw")  # fmt: skip
    np.testing.assert_allclose(negative.score().excess, one, rtol=1e-12)  # q and -q are one rotation
    turns = safecal.poses(truth[:, 3:], estimate[:, 3:], COV[:3, :3], group="SO3", side="right", quaternion="xyzw")
    again = safecal.poses(four[0][:, :3, :3], four[1][:, :3, :3], COV[:3, :3], group="SO3", side="right")
    np.testing.assert_allclose(again.score().excess, turns.score().excess, rtol=1e-9)
    assert turns.dimension == 3
    assert [look.name for look, _ in turns.parts] == ["rotation x", "rotation y", "rotation z"]


def test_poses_of_the_plane_are_those_of_space_that_stay_in_it(rng: np.random.Generator) -> None:
    truth, estimate = rng.normal(size=(2, 40, 3))
    deep = []
    for p in (truth, estimate):
        pose = np.tile(np.eye(4), (40, 1, 1))
        pose[:, :2, :2] = np.moveaxis([[np.cos(p[:, 2]), -np.sin(p[:, 2])], [np.sin(p[:, 2]), np.cos(p[:, 2])]], 2, 0)
        pose[:, :2, 3] = p[:, :2]
        deep.append(pose)
    kept = [2, 3, 4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for side in ("left", "right", "world"):
            space = safecal.poses(*deep, np.eye(6), side=side, first="rotation").marginal((2, 3, 4)).errors(slice(None))
            flat = safecal.poses(truth, estimate, np.eye(3), group="SE2", side=side, first="rotation")
            np.testing.assert_allclose(flat.errors(slice(None)), space, atol=1e-9)
            small = [np.delete(np.delete(p, 2, axis=1), 2, axis=2) for p in deep]
            again = safecal.poses(*small, np.eye(3), group="SE2", side=side, first="rotation")
            np.testing.assert_allclose(again.errors(slice(None)), space, atol=1e-9)
    assert len(kept) == flat.dimension


def test_rotation_and_translation_are_looked_at_by_themselves(rng: np.random.Generator) -> None:
    """Over-confident rotations hide behind cautious translations in the whole."""
    truth, estimate = tracks(rng, 4000)
    factor = np.sqrt(np.array([2.5] * 3 + [0.6] * 3))
    predictions = safecal.poses(
        truth, estimate, COV / np.outer(factor, factor), side="right", first="rotation", quaternion="xyzw"
    )
    limits = {"threshold": 0.5, "max_temperature": 2.0}
    hidden = safecal.gaussian(predictions.x_true, predictions.mean, cov=predictions.spread).evaluate(**limits)
    verdict = predictions.evaluate(**limits).verdict
    assert (hidden.verdict.on_average, verdict.decision) == ("SAFE", "UNSAFE")
    assert verdict.reason.startswith("in rotation, ")
    right = safecal.poses(truth, estimate, COV, side="right", first="rotation", quaternion="xyzw").evaluate()
    assert right.verdict.decision == "SAFE"
    names = [look.tally.look.name for look in right.looks if look.tally.look]
    assert names == ["rotation", "translation", *(f"rotation {axis}" for axis in "xyz"), "forward", "left", "up"]
    shown = repr(right)
    assert "\nrotation     " in shown
    assert "rotation x" not in shown  # nothing is wrong with it


def test_an_axis_is_looked_at_by_itself(rng: np.random.Generator) -> None:
    """An over-confident roll hides behind cautious pitch and yaw."""
    truth, estimate = tracks(rng, 3000)
    factor = np.sqrt(np.array([1.9, 0.7, 0.7, 1.0, 1.0, 1.0]))
    predictions = safecal.poses(
        truth, estimate, COV / np.outer(factor, factor), side="right", first="rotation", quaternion="xyzw"
    )
    result = predictions.evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert result.verdict.reason.startswith("on the axis rotation x, ")
    averages = {v.look.name: v.on_average for v in result.verdict.looks if v.look is not None}
    assert (averages["all"], averages["rotation"], averages["rotation x"]) == ("SAFE", "SAFE", "UNSAFE")
    assert "\nrotation x" in repr(result)


def test_maps_mend_the_axes_and_keep_the_looks(rng: np.random.Generator) -> None:
    truth, estimate = tracks(rng, 2000)
    factor = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 3.0])
    predictions = safecal.poses(
        truth, estimate, COV / np.outer(factor, factor), side="right", first="rotation", quaternion="xyzw"
    )
    model = safecal.maps.Safe(safecal.maps.Axes()).fit_predictions(predictions)
    np.testing.assert_allclose(model._axes()[1], factor, rtol=0.08)
    mended = model.apply_predictions(predictions).evaluate()
    assert mended.verdict.decision == "SAFE"
    assert len(mended.looks) == 8


def test_another_reading_that_explains_the_errors_far_better_is_suspected(rng: np.random.Generator) -> None:
    truth, estimate = tracks(rng)
    mixed = estimate[:, [0, 1, 2, 6, 3, 4, 5]]
    named = {"side": "right", "first": "rotation", "quaternion": "xyzw"}
    for given, changed, said in (
        (estimate, {"side": "left"}, '`side="right"`'),
        (estimate, {"side": "world"}, '`side="right"`'),
        (estimate, {"first": "translation"}, '`first="rotation"`'),
        (estimate, {"quaternion": "wxyz"}, "the other order of `quaternion` in both"),
        (mixed, {}, "the other order of `quaternion` in `estimate`"),
    ):
        with pytest.warns(UserWarning, match="explains these errors far better") as seen:
            safecal.poses(truth, given, COV, **(named | changed))
        assert str(seen[0].message).startswith(said)
        assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (0.1, 1.0, 10.0):  # however wrong the scale is
            safecal.poses(truth, estimate, scale * COV, **named)
        truth, estimate = tracks(rng, side="left")
        safecal.poses(truth, estimate, COV, **(named | {"side": "left"}))


IDENTITY = np.tile(np.eye(4), (3, 1, 1))
UNIT = np.tile([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], (3, 1))


def test_nothing_is_guessed() -> None:
    with pytest.raises(
        FormError, match='`side` must be "right" or "left" or "world"; got none, and it is never guessed'
    ):
        safecal.poses(IDENTITY, IDENTITY, np.eye(6), first="rotation")
    with pytest.raises(OptionError, match="`side` must be"):
        safecal.poses(IDENTITY, IDENTITY, np.eye(6), first="rotation", side="body")  # type: ignore[arg-type]
    with pytest.raises(FormError, match='`first` must be "rotation" or "translation"; got none'):
        safecal.poses(IDENTITY, IDENTITY, np.eye(6), side="left")
    with pytest.raises(FormError, match='`quaternion` must be "xyzw" or "wxyz"; got none'):
        safecal.poses(UNIT, UNIT, np.eye(6), side="left", first="rotation")
    with pytest.raises(OptionError, match="`group` must be"):
        safecal.poses(UNIT, UNIT, np.eye(6), group="SE4", side="left", first="rotation")  # type: ignore[arg-type]


def test_bad_poses_are_named() -> None:
    def wrong(truth: np.ndarray, cov: np.ndarray, **options: str) -> None:
        safecal.poses(truth, UNIT, cov, side="left", first="rotation", quaternion="xyzw", **options)  # type: ignore[arg-type]

    long, missing = UNIT.copy(), UNIT.copy()
    long[1, 6], missing[2, 0] = 1.3, np.nan
    with pytest.raises(
        RangeError, match=r"`truth` must have quaternions of length 1; got one of length 1.3 at row 1 \(1 of 3"
    ):
        wrong(long, np.eye(6))
    with pytest.raises(MissingValueError, match="`truth` must be finite; got nan at row 2, column 0"):
        wrong(missing, np.eye(6))
    with pytest.raises(ShapeError, match=r"must have shape \(n, 7\) for position and quaternion or \(n, 4, 4\)"):
        wrong(UNIT[:, :6], np.eye(6))
    with pytest.raises(ShapeError, match="`estimate` must have as many rows as `truth`"):
        wrong(UNIT[:2], np.eye(6))
    with pytest.raises(
        ShapeError, match=r"`cov` must be one \(6, 6\) matrix, .* SE3 has 6 numbers; got shape \(3, 3\)"
    ):
        wrong(UNIT, np.eye(3))
    with pytest.raises(CovarianceError, match="smallest eigenvalue is -1"):
        wrong(UNIT, np.diag([1.0, 1, 1, 1, 1, -1]))
    with pytest.raises(
        CovarianceError, match="the variance of rotation x, rotation y, translation z is 0 in every pose"
    ):
        wrong(UNIT, np.diag([0.0, 0, 1, 1, 1, 0]))
    mirrored, scaled, last = IDENTITY.copy(), IDENTITY.copy(), IDENTITY.copy()
    mirrored[1, 2, 2], scaled[1, 0, 0], last[1, 3, 0] = -1.0, 1.1, 0.5
    for bad in (mirrored, scaled, last):
        with pytest.raises(
            RangeError, match=r"`truth` must hold rotation matrices, of determinant 1.* at row 1 \(1 of 3"
        ):
            safecal.poses(bad, IDENTITY, np.eye(6), side="left", first="rotation")
