"""Directions of states: what NEES adds up, a verdict tells apart."""

import json

import numpy as np
import polars as pl
import pytest

import safecal
from safecal import Evaluation
from safecal._sums import Tally
from safecal.engines.frames import evaluate_frame
from safecal.errors import DocumentError
from safecal.html.intervals import factors_of
from safecal.inference.directions import JudgedDirection, judged_directions, least_of_largest


def _worst(tally: Tally, level: float) -> JudgedDirection:
    return max(judged_directions(tally, level), key=lambda one: (one.ecd.low, one.at_least, one.ecd.value))


def _turned(rng: np.random.Generator, n: int, factors: tuple[float, float]) -> safecal.Predictions:
    """Draw plane states whose covariance, 3 by 1, turns from row to row; squared errors are so many times theirs."""
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    turn = np.moveaxis(np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]), -1, 0)
    cov = (turn * [9.0, 1.0]) @ np.swapaxes(turn, 1, 2)
    error = np.einsum("nij,nj->ni", turn, rng.normal(size=(n, 2)) * np.sqrt(factors) * [3.0, 1.0])
    return safecal.gaussian(error, np.zeros((n, 2)), cov=cov)


@pytest.mark.parametrize("form", ["cov", "chol", "precision", "std", "var"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("d", [2, 5])
def test_the_sums_are_those_of_slow_code(form: str, shared: bool, d: int, rng: np.random.Generator) -> None:
    n = 40
    parts = rng.normal(size=(n, d, d))
    covs = parts @ np.swapaxes(parts, 1, 2) + 0.1 * np.eye(d)
    if form in ("std", "var"):
        covs *= np.eye(d)
    if shared:
        covs[:] = covs[0]
    error, weight = rng.normal(size=(n, d)), rng.uniform(0.5, 2.0, n)
    variances = np.diagonal(covs, axis1=1, axis2=2)
    forms = {"cov": covs, "chol": np.linalg.cholesky(covs), "precision": np.linalg.inv(covs)}
    given = (forms | {"std": np.sqrt(variances), "var": variances})[form]
    tally = safecal.gaussian(error, np.zeros((n, d)), **{form: given[0] if shared else given}).tally(
        sample_weight=weight
    )
    sums = tally.directions
    products, fourth, along = np.zeros((d, d)), np.zeros((d, d)), np.zeros((2, 2))
    for e, c, w in zip(error, covs, weight, strict=True):
        inverse = np.linalg.inv(c)
        scale = np.diag(1.0 / np.sqrt(np.diag(c)))
        white = np.linalg.solve(np.linalg.cholesky(scale @ c @ scale), scale @ e)
        products += w * np.outer(white, white)
        fourth += w * (white @ white) * np.outer(white, white)
        for k, square in enumerate((e @ e / np.trace(c), e @ inverse @ inverse @ e / np.trace(inverse))):
            along[k] += w * square, w * square**2
    for matrix, wanted in zip(sums.matrices, (products, fourth), strict=False):
        np.testing.assert_allclose(matrix, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())
    np.testing.assert_allclose(sums.along, along, rtol=1e-10)


def test_errors_that_go_together_are_unsafe_where_nees_is_right(rng: np.random.Generator) -> None:
    error = rng.normal(size=(3000, 1)) + 0.3 * rng.normal(size=(3000, 2))
    result = safecal.gaussian(error, np.zeros((3000, 2)), std=error.std(axis=0)).evaluate()
    verdict = result.verdict
    assert abs(result.ecd) < 0.01
    assert verdict.on_average == "SAFE"
    assert verdict.decision == "UNSAFE"
    place = verdict.where[0]
    assert (place.type, place.name, place.shown) == ("direction", "0.71 axis 0 + 0.71 axis 1", True)
    assert "along 0.71 axis 0 + 0.71 axis 1 its errors are 1.38 times as large as it says" in verdict.reason
    assert verdict.diagnosis is not None
    assert verdict.diagnosis.cause == "only a direction"
    assert "correlation" in verdict.diagnosis.remedy
    again = Evaluation.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result
    assert again.verdict.where == verdict.where


def test_one_axis_is_named_with_what_mends_it(rng: np.random.Generator) -> None:
    error = rng.normal(size=(4000, 3)) * [0.8, 1.4, 0.8]
    verdict = safecal.gaussian(error, np.zeros((4000, 3)), std=1.0).evaluate().verdict
    assert verdict.decision == "UNSAFE"
    assert verdict.where[0].name == "axis 1"
    assert "`safecal.maps.Axes`" in verdict.diagnosis.remedy
    mended = safecal.maps.Axes().fit_predictions(safecal.gaussian(error[:2000], np.zeros((2000, 3)), std=1.0))
    rest = safecal.gaussian(error[2000:], np.zeros((2000, 3)), std=1.0)
    assert mended.apply_predictions(rest).evaluate().verdict.decision == "SAFE"


@pytest.mark.parametrize(("factors", "name"), [((0.3, 1.8), "short"), ((1.8, 0.2), "long")])
def test_a_fault_that_turns_with_the_covariance_is_seen(
    factors: tuple[float, float], name: str, rng: np.random.Generator
) -> None:
    result = _turned(rng, 8000, factors).evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert result.verdict.where[0].name == f"the {name} axes of its covariance"
    assert result.forecast.vector.largest.factor.high**2 < 1.6, "no fixed direction shows as much"
    assert _turned(rng, 8000, (1.0, 1.0)).evaluate().verdict.decision == "SAFE"


def test_too_few_rows_withhold_safe(rng: np.random.Generator) -> None:
    error = rng.normal(size=(300, 2)) @ np.linalg.cholesky([[1.0, 0.6], [0.6, 1.0]]).T
    verdict = safecal.gaussian(error, np.zeros((300, 2)), std=1.0).evaluate().verdict
    assert verdict.decision == "UNDETERMINED"
    assert not verdict.where[0].shown
    assert "may be" in verdict.reason
    assert verdict.reason.endswith("More rows would decide.")


def test_a_direction_is_not_named_where_all_are_alike(rng: np.random.Generator) -> None:
    verdict = safecal.gaussian(1.5 * rng.normal(size=(2000, 3)), np.zeros((2000, 3)), std=1.0).evaluate().verdict
    assert verdict.decision == "UNSAFE"
    assert verdict.where == ()
    assert verdict.diagnosis.cause == "too sharp"


def test_a_limit_of_ones_own_counts(rng: np.random.Generator) -> None:
    error = rng.normal(size=(4000, 2)) * [1.3, 0.6]
    result = safecal.gaussian(error, np.zeros((4000, 2)), std=1.0).evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert result.judge(local_threshold=0.5).decision == "SAFE"
    assert result.judge(rule="average").decision == "SAFE"


def test_what_was_looked_at_is_said(rng: np.random.Generator) -> None:
    one, two, many = (
        safecal.gaussian(rng.normal(size=(2000, d)), np.zeros((2000, d)), std=1.0).evaluate().verdict
        for d in (1, 2, 65)
    )
    assert one.decision == two.decision == many.decision == "SAFE"
    assert "irection" not in one.reason
    assert "No direction of its states" in two.reason
    assert many.reason.endswith("Directions of its states were not looked at.")


def test_rows_of_a_run_count_as_one(rng: np.random.Generator) -> None:
    """Thirty errors, each of them a hundred times: whatever they show, they are no more than thirty."""
    error = np.repeat(rng.normal(size=(30, 2)) * [1.5, 0.6], 100, axis=0)
    rows = safecal.gaussian(error, np.zeros_like(error), std=1.0)
    alone = _worst(rows.tally(), 0.95)
    runs = _worst(rows.tally(cluster=np.repeat(np.arange(30), 100)), 0.95)
    once = _worst(safecal.gaussian(error[::100], np.zeros((30, 2)), std=1.0).tally(), 0.95)
    assert alone.ecd.low > runs.ecd.low
    assert runs.ecd.value == pytest.approx(once.ecd.value, rel=1e-12)
    assert runs.ecd.low == pytest.approx(once.ecd.low, rel=1e-9)


def test_an_early_document_has_no_directions(rng: np.random.Generator) -> None:
    result = safecal.gaussian(rng.normal(size=(2000, 2)), np.zeros((2000, 2)), std=1.0).evaluate()
    document = json.loads(json.dumps(result.tally.to_dict()))
    del document["directions"]
    early = safecal.Tally.from_dict(document)
    assert judged_directions(early, 0.95) == []
    assert "Directions of its states were not looked at." in Evaluation.of(early).verdict.reason
    assert (early + result.tally).directions is None


_PLAIN = [[50.0, 0.0], [0.0, 50.0]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sums", [10.0, 200.0]),
        ("sums", [500.0, 500.0]),
        ("matrices", [_PLAIN, _PLAIN, _PLAIN]),
        ("matrices", [_PLAIN, [[900.0, 5.0], [0.0, 900.0]], _PLAIN]),
        ("matrices", [[[50.0, 90.0], [90.0, 50.0]], [[900.0, 0.0], [0.0, 900.0]], _PLAIN]),
        ("matrices", [_PLAIN, _PLAIN, [[1.0, 2.0], [3.0]]]),
        ("matrices", [(900.0 ** (k == 1) * np.eye(3)).tolist() for k in range(3)]),
        ("along", [[9e9, 1.0], [1.0, 1.0]]),
    ],
)
def test_directions_that_no_errors_have_are_refused(name: str, value: object, rng: np.random.Generator) -> None:
    document = safecal.gaussian(rng.normal(size=(50, 2)), np.zeros((50, 2)), std=1.0).tally().to_dict()
    document["directions"][name] = value
    with pytest.raises(DocumentError, match="directions"):
        safecal.Tally.from_dict(document)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_of_any_size_do_not_overflow(scale: float, rng: np.random.Generator) -> None:
    error = rng.normal(size=(500, 2))
    plain, scaled = (
        safecal.gaussian(error * s, np.zeros((500, 2)), std=s).tally().directions
        for s in (np.ones(2), np.array([scale, 1.0]))
    )
    np.testing.assert_allclose(scaled.matrices, plain.matrices, rtol=1e-9)
    assert np.isfinite(scaled.along).all()
    assert scaled.along[:, 0].sum() == pytest.approx((error**2).sum(), rel=1e-9), "each looks at one of the two"


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("d", [2, 3, 6, 12])
@pytest.mark.parametrize("n", [15, 50, 1000])
def test_the_largest_of_many_directions_is_bounded_as_often_as_it_says(d: int, n: int) -> None:
    """Wishart matrices by Bartlett's factors; the tail of a hundredth is met to a fifth of itself, and two errors."""
    rng, repetitions, alpha = np.random.default_rng([d, n]), 40_000, 0.01
    factor = np.tril(rng.normal(size=(repetitions, d, d)), -1)
    for k in range(d):
        factor[:, k, k] = np.sqrt(rng.chisquare(n - k, repetitions))
    largest = np.linalg.norm(factor, ord=2, axis=(1, 2)) ** 2 / n
    beyond = float((largest > least_of_largest(n, d, alpha)).mean())
    assert 0.4 * alpha < beyond < 1.2 * alpha + 2.0 * np.sqrt(alpha / repetitions)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("freedom", [5.0, np.inf])
def test_a_direction_within_its_limit_is_rarely_called_unsafe(freedom: float) -> None:
    """Bounds miss in at most half a percent; Student errors of 5 degrees may have 2 % in all, with 30 rows."""
    rng, wrong = np.random.default_rng(17), 0
    for _ in range(400):
        error = rng.normal(size=(30, 4)) * np.sqrt([1.399, 1.399, 1.0, 1.0])
        if np.isfinite(freedom):
            error *= np.sqrt((freedom - 2.0) / rng.chisquare(freedom, (30, 1)))
        worst = _worst(safecal.gaussian(error, np.zeros((30, 4)), std=1.0).tally(), 0.95)
        wrong += worst.ecd.low > 0.2
    assert wrong <= (4 if np.isinf(freedom) else 8)


def test_mixtures_have_directions_by_their_moments(rng: np.random.Generator) -> None:
    n, apart = 3000, np.array([[1.5, 1.5], [-1.5, -1.5]])
    side = rng.integers(0, 2, n)

    def states(x: np.ndarray) -> safecal.Predictions:
        return safecal.gaussian_mixture(x, [0.5, 0.5], apart, std=1.0, rng=0)

    right = states(apart[side] + rng.normal(size=(n, 2)))
    np.testing.assert_allclose(right.matched.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(right.matched.spread[0], np.eye(2) + 2.25)
    verdict = right.evaluate().verdict
    assert verdict.decision == "SAFE"
    assert "No direction of its states" in verdict.reason
    along_and_across = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)
    error = rng.normal(size=(n, 2)) * [0.5, 1.4] @ along_and_across
    wrong = states(apart[side] + error).evaluate().verdict
    assert wrong.decision == "UNSAFE"
    assert wrong.where[0].type == "direction"


@pytest.mark.parametrize(("d", "n"), [(24, 400), (64, 1000)])
def test_many_axes_hide_no_direction(d: int, n: int, rng: np.random.Generator) -> None:
    error = rng.normal(size=(n, d))
    std = np.ones((n, d))
    assert safecal.gaussian(error, np.zeros_like(error), std=std).evaluate().verdict.decision == "SAFE"
    error[:, 3] *= 2.0
    error[:, 4:] *= np.sqrt(1.0 - 3.0 / (d - 4))
    evaluation = safecal.gaussian(error, np.zeros_like(error), std=std).evaluate()
    assert evaluation.verdict.decision == "UNSAFE"
    assert evaluation.verdict.where[0].name == "axis 3"
    assert safecal.Evaluation.from_dict(evaluation.to_dict()).verdict.reason == evaluation.verdict.reason
    common = 0.5 * (error + error.mean(axis=1, keepdims=True) * np.sqrt(3.0 * d))
    together = safecal.gaussian(common, np.zeros_like(error), std=std).evaluate().verdict.where[0]
    assert together.name == f"{d} axes at once"


def test_covariances_without_correlations_are_no_case_of_their_own(rng: np.random.Generator) -> None:
    std = rng.uniform(0.1, 5.0, (200, 4))
    error = rng.normal(size=(200, 4)) * std
    alone = safecal.gaussian(error, np.zeros_like(error), std=std).evaluate().tally.directions
    whole = (
        safecal.gaussian(error, np.zeros_like(error), cov=std[:, :, None] ** 2 * np.eye(4)).evaluate().tally.directions
    )
    np.testing.assert_allclose(alone.along, whole.along, rtol=1e-12)
    np.testing.assert_allclose(alone.matrices, whole.matrices, rtol=1e-12, atol=1e-12)


def test_states_that_are_few_beside_their_axes_are_never_safe(rng: np.random.Generator) -> None:
    for n, decision in ((2, "UNDETERMINED"), (6, "UNDETERMINED"), (22, "UNDETERMINED"), (23, "SAFE")):
        verdict = safecal.gaussian(0.1 * rng.normal(size=(n, 6)), np.zeros((n, 6)), std=1.0).evaluate().verdict
        assert verdict.decision == decision
    few = safecal.gaussian(np.zeros((2, 20)), np.zeros((2, 20)), std=1.0).evaluate().verdict
    assert few.reason == "2 rows cannot show every direction of 20 axes."
    runs = safecal.gaussian(0.1 * rng.normal(size=(90, 6)), np.zeros((90, 6)), std=1.0)
    assert runs.evaluate().verdict.decision == "SAFE"
    clustered = runs.take(np.repeat(np.arange(9), 10)).evaluate(cluster=np.repeat(np.arange(9), 10)).verdict
    assert clustered.reason == "90 rows in so few clusters cannot show every direction of 6 axes."


def test_a_document_of_errors_whose_squares_vanish_is_read_again(rng: np.random.Generator) -> None:
    result = safecal.gaussian(1e-200 * rng.normal(size=(50, 2)), np.zeros((50, 2)), std=1.0).evaluate()
    assert Evaluation.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_ensembles_have_directions_exactly_under_the_null(rng: np.random.Generator) -> None:
    """The outcome may be any point of its pool: summed over which one it is, its products are those of all points."""
    points = rng.exponential(size=(1, 12, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]])
    judged = []
    for k in range(12):
        x, draws = points[:, k], np.delete(points, k, axis=1)
        judged.append(safecal.ensemble(x, draws).tally().directions)
    total = sum(judged[1:], judged[0])
    np.testing.assert_allclose(total.mean("white"), np.eye(2), atol=1e-12)
    np.testing.assert_allclose(total.along[:, 0] / 12.0, 1.0, rtol=1e-12)


def test_an_ensemble_whose_draws_do_not_go_together_as_outcomes_do_is_unsafe(rng: np.random.Generator) -> None:
    n, m = 1500, 60
    outcome = rng.normal(size=(n, 2)) @ np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]]).T
    result = safecal.ensemble(outcome, rng.normal(size=(n, m, 2))).evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert result.verdict.where[0].name == "0.72 axis 0 + 0.70 axis 1"
    right = safecal.ensemble(rng.normal(size=(n, 2)), rng.normal(size=(n, m, 2))).evaluate().verdict
    assert right.decision == "SAFE"
    assert "No direction of its states" in right.reason


def test_axes_are_called_as_their_columns_are(rng: np.random.Generator) -> None:
    error = rng.normal(size=(3000, 2)) * [0.7, 1.4]
    frame = pl.DataFrame({"east": error[:, 0], "north": error[:, 1], "a": 0.0, "b": 0.0, "s": 1.0, "t": 1.0})
    result = evaluate_frame(frame, x_true=["east", "north"], mean=["a", "b"], std=["s", "t"])
    assert result.verdict.where[0].name == "north"
    assert "along north its errors are" in result.verdict.reason
    assert "`safecal.maps.Axes`" in result.verdict.diagnosis.remedy
    assert "along north (" in str(result)
    assert [name for name, _ in factors_of(result.forecast)][:2] == ["east", "north"]
    poses = safecal.poses(*np.broadcast_to(np.eye(4), (2, 50, 4, 4)), np.eye(6), side="right", first="rotation")
    assert poses.tally().class_names[-3:] == ("forward", "left", "up")
    assert poses.tally().others[0].class_names == ("rotation x", "rotation y", "rotation z")


def test_a_suspected_direction_withholds_safe_also_where_it_is_not_shown_to_be_worse_than_the_average() -> None:
    error = np.random.default_rng(35).normal(size=(250, 6)) * np.sqrt([1.5, 1.1, 1.1, 1.1, 1.1, 1.0])
    rows = safecal.gaussian(error, np.zeros((250, 6)), std=1.0)
    worst, verdict = _worst(rows.tally(), 0.95), rows.evaluate().verdict
    assert 0.0 < worst.at_least < worst.everywhere
    assert worst.ecd.value > 0.2
    assert (verdict.on_average, verdict.decision) == ("SAFE", "UNDETERMINED")


def test_a_suspected_direction_withholds_safe_also_where_another_has_the_higher_firm_bound() -> None:
    error = np.random.default_rng(0).normal(size=(300, 24)) * np.sqrt([2.0, *[0.96] * 23])
    rows = safecal.gaussian(error, np.zeros((300, 24)), std=1.0)
    fixed, long, short = judged_directions(rows.tally(cluster=np.arange(300) // 3), 0.95)
    assert fixed.at_least > 0.0
    assert fixed.ecd.low < min(long.ecd.low, short.ecd.low) < 0.0
    verdict = rows.evaluate(cluster=np.arange(300) // 3).verdict
    assert (verdict.decision, verdict.where[0].name) == ("UNDETERMINED", "axis 0")
