"""What nats do not show: mistakes that are rare and far too many, and a likeliest class that is right too seldom."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Predictions
from safecal.report import report_html

Draw = Callable[[np.random.Generator, int], Predictions]


def _rare(share: float, said: float, true: float) -> Draw:
    """Draw rows of which some say that an event is rarer than it is; the others are calibrated."""

    def draw(rng: np.random.Generator, n: int) -> Predictions:
        z, rare = rng.normal(0, 2, n), rng.random(n) < share
        logits = np.where(rare, special.logit(said) + rng.normal(0, 0.1, n), z)
        return safecal.bernoulli(rng.random(n) < np.where(rare, true, special.expit(z)), logits=logits)

    return draw


def _second(classes: int, said: tuple[float, float], true: float) -> Draw:
    """Draw rows that name a first and a second class, the rest on all others; the first is right in ``true``."""

    def draw(rng: np.random.Generator, n: int) -> Predictions:
        rows, first = np.arange(n), rng.integers(0, classes, n)
        second = (first + rng.integers(1, classes, n)) % classes
        p = np.full((n, classes), (1.0 - sum(said)) / (classes - 2))
        p[rows, first], p[rows, second] = said
        return safecal.categorical(np.where(rng.random(n) < true, first, second), p)

    return draw


@pytest.mark.parametrize(
    "draw", [_rare(0.1, 1e-6, 0.01), _rare(0.5, 0.0005, 0.01), _rare(0.3, 0.0001, 0.015), _rare(0.5, 0.001, 0.02)]
)
def test_rare_mistakes_in_a_range_are_counted(draw: Draw) -> None:
    for seed in range(3):
        verdict = draw(np.random.default_rng(seed), 10_000).evaluate().verdict
        assert verdict.decision != "SAFE"
        (place,) = [place for place in verdict.where if place.by == "mistakes"]
        assert place.type == "range"
        assert place.seen > 9 * place.announced
        assert place.limit == 9.0
        assert f"made {place.seen:.0f} (" in verdict.reason
        assert f"where it {place.brief} it announced" in verdict.reason


def test_a_thousand_times_as_many_mistakes_are_unsafe(rng: np.random.Generator) -> None:
    verdict = _rare(0.1, 1e-6, 0.01)(rng, 10_000).evaluate().verdict
    assert verdict.decision == "UNSAFE"
    assert verdict.on_average == "SAFE"


@pytest.mark.parametrize(
    ("draw", "confidence", "accuracy"),
    [(_second(10, (0.7, 0.2), 0.5), 0.7, 0.5), (_second(100, (0.7, 0.1), 0.25), 0.7, 0.25)],
)
def test_a_likeliest_class_that_is_right_too_seldom_is_unsafe(draw: Draw, confidence: float, accuracy: float) -> None:
    result = draw(np.random.default_rng(0), 3000).evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert result.verdict.on_average == "SAFE"  # a likely tail that does not happen makes up for it
    place, *others = result.verdict.where
    assert [other.by for other in others] == ["mistakes"]
    assert place.predicted == pytest.approx(confidence)
    assert place.observed == pytest.approx(accuracy, abs=0.05)
    expected = (confidence - result.accuracy) * special.logit(confidence)  # as of two outcomes: right, or wrong
    assert place.ecd.value == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("draw", "limit"),
    [
        (_second(3, (0.45, 0.4), 0.05), 1.39), (_second(10, (0.45, 0.3), 0.05), 1.39),
        (_second(100, (0.55, 0.2), 0.1), 1.49), (_second(1000, (0.49, 0.3), 0.05), 1.43),
    ],
)  # fmt: skip
def test_a_likeliest_class_that_is_no_more_than_half_sure_may_not_be_far_off(draw: Draw, limit: float) -> None:
    result = draw(np.random.default_rng(0), 1000).evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert result.verdict.on_average == "SAFE"  # in nats a mistake is no surprise, where mistakes are announced
    place = result.verdict.where[0]
    assert place.by == "mistakes"
    assert place.limit == pytest.approx(limit, abs=0.01)
    assert f"{place.seen:.0f} mistakes for {place.announced:.0f} announced" in result.verdict.reason
    assert result.judge(threshold=1.0, local_threshold=1.0).decision == "SAFE"
    assert safecal.Evaluation.from_dict(json.loads(json.dumps(result.to_dict()))).verdict.decision == "UNSAFE"


def test_such_rows_beside_others_are_not_safe() -> None:
    rng = np.random.default_rng(2)
    vague = _second(10, (0.45, 0.3), 0.05)(rng, 1500)
    p = special.softmax(rng.normal(0, 2, (3500, 10)), axis=1)
    right = (rng.random((3500, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    predictions = np.concatenate([vague.values, p])  # type: ignore[attr-defined]
    result = safecal.evaluate(np.concatenate([vague.happened, right]), predictions)  # type: ignore[attr-defined]
    assert result.verdict.decision != "SAFE"
    assert result.verdict.where[0].by == "mistakes"
    assert result.judge(local_threshold=1.0).decision == "SAFE"


@pytest.mark.parametrize("said", [[0.25] * 4, [0.5, 0.5, 1e-9], [0.4, 0.4, 0.2]])
def test_classes_that_are_as_likely_as_each_other_are_no_claim(said: list[float], rng: np.random.Generator) -> None:
    p = np.tile(np.array(said) / sum(said), (5000, 1))
    happened = np.where(rng.random(5000) < 0.95, 1, 0) if said[-1] != 0.2 else rng.choice(3, 5000, p=[0.1, 0.7, 0.2])
    assert safecal.evaluate(happened, p).verdict.decision == "SAFE"


@pytest.mark.parametrize(("classes", "spread"), [(3, 1.0), (5, 0.6), (10, 0.5), (100, 1.5), (6, "rounded")])
def test_calibrated_models_that_are_never_sure_stay_safe(classes: int, spread: float | str) -> None:
    decisions = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = special.softmax(rng.normal(0, spread if isinstance(spread, float) else 1.0, (1000, classes)), axis=1)
        if spread == "rounded":  # many are as likely as each other
            p = np.maximum(np.round(p, 1), 0.02)
            p /= p.sum(axis=1, keepdims=True)
        y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        decisions.append(safecal.evaluate(y, p).verdict.decision)
    assert decisions.count("SAFE") >= 17
    assert "UNSAFE" not in decisions


def _beside(said: float, true: float, share: float) -> Draw:
    """Draw rows of which a part says nearly the same, and something else is true; the others are calibrated."""

    def draw(rng: np.random.Generator, n: int) -> Predictions:
        z, here = rng.normal(0.0, 3.0, n), rng.random(n) < share
        logits = np.where(here, special.logit(said) + rng.normal(0.0, 0.02, n), z)
        return safecal.bernoulli(rng.random(n) < np.where(here, true, special.expit(z)), logits=logits)

    return draw


@pytest.mark.parametrize(
    ("said", "true", "share", "decision"),
    [(0.6, 0.35, 0.5, "UNSAFE"), (0.4, 0.65, 0.5, "UNSAFE"), (0.7, 0.45, 0.2, "UNSAFE"), (0.6, 0.56, 0.5, "SAFE")],
)
def test_a_range_near_even_odds_may_not_be_far_off(said: float, true: float, share: float, decision: str) -> None:
    result = _beside(said, true, share)(np.random.default_rng(1), 20_000).evaluate()
    verdict = result.verdict
    assert verdict.decision == decision
    assert verdict.on_average == "SAFE"  # a few hundredths of a nat, beside sharp rows that are right
    if decision == "UNSAFE":
        assert verdict.where[0].by == "mistakes"
        assert verdict.where[0].limit < 1.7
        assert f"{verdict.where[0].limit:.3g} times as many are allowed" in verdict.reason
        assert result.judge(local_threshold=4.0, max_temperature=10.0).decision == "SAFE"


def test_real_predictions_with_a_floor_are_unsafe(shared_data: object) -> None:
    data = np.load(f"{shared_data}/cifar/densenet-bc-100-cifar-100.npz")
    y, p = data["ground_truth"].ravel().astype(int), data["predictions"].astype(float)
    verdict = safecal.evaluate(y, 0.95 * p / p.sum(axis=1, keepdims=True) + 0.05 / 100).verdict
    assert verdict.decision == "UNSAFE"
    assert verdict.where[0].predicted == pytest.approx(0.852, abs=0.001)
    assert verdict.where[0].observed == pytest.approx(0.754, abs=0.001)


@pytest.mark.parametrize("n", [1000, 3000])
@pytest.mark.parametrize(("mean", "spread"), [(0.0, 2.0), (4.0, 1.0), (-6.0, 1.5), (0.0, 4.0)])
def test_calibrated_models_stay_safe(mean: float, spread: float, n: int) -> None:
    decisions = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.normal(mean, spread, n)
        decisions.append(safecal.evaluate(rng.random(n) < special.expit(z), logits=z).verdict.decision)
    assert decisions.count("SAFE") >= 18
    assert "UNSAFE" not in decisions


def test_clusters_do_not_hide_the_mistakes_of_a_fine_range() -> None:
    def draw(rng: np.random.Generator, n: int = 10_000) -> tuple[np.ndarray, np.ndarray]:
        preferred = 2.5 * np.eye(50)[rng.integers(0, 50, n)]
        p = special.softmax(rng.normal(0, 1, (n, 50)) + preferred, axis=1)
        first, second = np.argsort(-p, axis=1)[:, :2].T
        low, high = np.quantile(p.max(axis=1), [0.8, 0.95])
        wrong = (p.max(axis=1) > low) & (p.max(axis=1) < high) & (rng.random(n) < 0.9)
        happened = (rng.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        return np.where(wrong & (happened == first), second, happened), p

    for seed in range(4):
        y, p = draw(np.random.default_rng(seed))
        for cluster in (None, np.arange(10_000), np.arange(10_000) // 5):  # sums of clusters are coarser
            verdict = safecal.evaluate(y, p, cluster=cluster).verdict
            assert verdict.decision != "SAFE"
            assert "mistakes" in {place.by for place in verdict.where}


def test_with_clusters_or_weights_mistakes_are_only_suspected(rng: np.random.Generator) -> None:
    predictions = _rare(0.1, 1e-6, 0.01)(rng, 20_000)
    for options in ({"cluster": np.arange(20_000) // 10}, {"sample_weight": rng.gamma(2.0, 1.0, 20_000)}):
        verdict = predictions.evaluate(**options).verdict  # type: ignore[arg-type]
        assert verdict.decision == "UNDETERMINED"
        assert [place.by for place in verdict.where] == ["mistakes"]


@pytest.mark.parametrize("outcome", [0, 2])
def test_a_model_that_says_nothing_is_not_judged_by_the_order_of_its_classes(outcome: int) -> None:
    verdict = safecal.evaluate(np.full(400, outcome), np.full((400, 3), 1 / 3)).verdict
    assert verdict.decision == "SAFE"
    assert verdict.uninformative


def test_a_class_that_happens_far_more_often_than_announced_is_not_safe(rng: np.random.Generator) -> None:
    n = 10_000
    a = special.expit(rng.normal(0.0, 3.0, n))
    p = np.column_stack([a * 0.9995, (1.0 - a) * 0.9995, np.full(n, 0.0005)])
    y = np.where(rng.random(n) < 0.01, 2, np.where(rng.random(n) < a, 0, 1))
    result = safecal.evaluate(y, p)
    seen = int((y == 2).sum())
    assert result.verdict.decision == "UNSAFE"
    assert f"class 2 was announced 5 times and happened {seen} times" in result.verdict.reason
    (place,) = result.verdict.where
    assert (place.type, place.seen, place.announced, place.limit) == ("class", seen, pytest.approx(5.0), 9.0)
    again = safecal.Evaluation.from_dict(json.loads(json.dumps(result.to_dict())))
    assert (again.verdict, again.judge().decision) == (result.verdict, "UNSAFE")
    assert result.judge(max_ratio=6.0).decision == "SAFE"
    page = report_html(result)
    assert f"Class 2 was announced 5 times and happened {seen} times." in page
    assert "as often as it announced. Up to 9 times is allowed." in page
    held: list[dict[str, Any]] = [{"cluster": np.arange(n) // 5}, {"sample_weight": rng.uniform(0.5, 1.0, n)}]
    for options in held:
        assert safecal.evaluate(y, p, **options).verdict.decision == "UNDETERMINED"
    happens = np.where(rng.random(n) < 0.0005, 2, np.where(rng.random(n) < a, 0, 1))
    assert safecal.evaluate(happens, p).verdict.decision == "SAFE"
