"""Tokens of which only the most likely alternatives are known: bounds that hold, are tight, and never mislead."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import optimize

import safecal
from safecal.errors import FormError, InputError, MergeError, UnavailableError
from safecal.families.bounded import Bounded
from safecal.html.course import Course
from safecal.plot import LocalDisplay


def normalised(z: np.ndarray) -> np.ndarray:
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def ends(predictions: Bounded) -> tuple[np.ndarray, np.ndarray]:
    """Return the smaller and the larger excess of each row."""
    return predictions.others[0].score().excess, predictions.score().excess


def shown(log_p: np.ndarray, y: np.ndarray, k: int) -> Bounded:
    top = -np.sort(-log_p, axis=1)[:, :k]
    return safecal.bounded(log_p[np.arange(len(y)), y], top, vocabulary=log_p.shape[1], text="given")


def drawn(rng: np.random.Generator, n: int, size: int, times: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return log-probabilities so many times too sharp, and what happens."""
    z = rng.normal(0.0, 2.5, (n, size))
    p = np.exp(normalised(z))
    y = (np.cumsum(p, axis=1) > rng.random((n, 1)) * p.sum(axis=1, keepdims=True)).argmax(axis=1)
    return normalised(times * z), y


def least_entropy(rest: float, cap: float, left: int) -> float:
    """Return the smallest entropy of a rest: at a corner, where at most one outcome is neither 0 nor the cap."""
    entropies = []
    for full in range(left + 1):
        part = rest - full * cap
        if 0.0 <= part <= cap and (full < left or part == 0.0):
            entropies.append(-full * cap * math.log(cap) - (part * math.log(part) if part else 0.0))
    return min(entropies)


def most_entropy(rest: float, cap: float, left: int) -> float:
    """Return the largest entropy of a rest, by a linear programme under tangents of -x log x, which lie above it."""
    tangents = [rest / left * scale for scale in (0.1, 0.5, 1.0, 2.0)]
    rows, limits = [], []
    for i, a in itertools.product(range(left), tangents):  # variables: x, then t <= -a log a - (1 + log a) (x - a)
        row = np.zeros(2 * left)
        row[left + i], row[i] = 1.0, 1.0 + math.log(a)
        rows.append(row)
        limits.append(a)
    equal = np.concatenate([np.ones(left), np.zeros(left)])[None]
    cost = np.concatenate([np.zeros(left), -np.ones(left)])
    ranges = [(0.0, cap)] * left + [(None, None)] * left
    solved = optimize.linprog(cost, np.array(rows), limits, equal, [rest], ranges, method="highs")
    return float(-solved.fun)


@pytest.mark.parametrize("outside", [False, True])
def test_no_tighter_bounds_exist(outside: bool) -> None:
    p = np.array([0.4, 0.17, 0.13, 0.1, 0.08, 0.07, 0.03, 0.02])
    y, k = (5 if outside else 1), 3
    low, high = ends(shown(np.log(p)[None], np.array([y]), k))
    known = [*p[:k], *([p[y]] if outside else [])]
    rest, left = 1.0 - sum(known), len(p) - len(known)
    entropy = -sum(a * math.log(a) for a in known)
    surprisal = -math.log(p[y])
    assert low[0] == pytest.approx(surprisal - entropy - most_entropy(rest, p[k - 1], left), abs=1e-9)
    assert high[0] == pytest.approx(surprisal - entropy - least_entropy(rest, p[k - 1], left), abs=1e-9)


@pytest.mark.parametrize("size", [3, 7, 20])
def test_no_tighter_bounds_exist_for_predictions_of_any_kind(size: int, rng: np.random.Generator) -> None:
    for spread in (0.1, 0.5, 2.0, 20.0):
        p = -np.sort(-rng.dirichlet(np.full(size, spread)))
        k = int(rng.integers(1, size - 1))
        low, high = ends(shown(np.log(p)[None], np.array([0]), k))
        rest, left = 1.0 - p[:k].sum(), size - k
        known = p[:k] @ np.log(p[:k]) - np.log(p[0])
        assert low[0] == pytest.approx(known - most_entropy(rest, p[k - 1], left), abs=1e-9)
        assert high[0] == pytest.approx(known - least_entropy(rest, p[k - 1], left), abs=1e-9)


def test_the_truth_lies_between_the_bounds(rng: np.random.Generator) -> None:
    log_p, y = drawn(rng, 300, 2000)
    truth = safecal.categorical(y, logits=log_p).score().excess
    width = math.inf
    for k in (1, 5, 20, 100, 1000):
        low, high = ends(shown(log_p, y, k))
        assert (low <= truth + 1e-9).all()
        assert (truth <= high + 1e-9).all()
        assert (high - low).mean() < width
        width = float((high - low).mean())
    low, high = ends(shown(log_p, y, 1999))
    np.testing.assert_allclose(low, truth, atol=1e-9)
    np.testing.assert_allclose(high, truth, atol=1e-9)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("size", [32_000, 128_256])
def test_the_truth_lies_between_the_bounds_of_ten_thousand_tokens(size: int, rng: np.random.Generator) -> None:
    for sharpness in np.linspace(0.5, 5.0, 40):  # 250 outcomes of each prediction
        log_p = normalised(sharpness * rng.normal(size=size))
        y = np.concatenate(
            [np.argsort(-log_p)[:50], rng.choice(size, 100, p=np.exp(log_p)), rng.integers(0, size, 100)]
        )
        truth = np.exp(log_p) @ log_p - log_p[y]
        top = -np.sort(-log_p)[:1000]
        for k in (1, 5, 20, 100, 1000):
            shown_top = np.broadcast_to(top[:k], (len(y), k))
            low, high = ends(safecal.bounded(log_p[y], shown_top, vocabulary=size, text="given"))
            assert (low <= truth + 1e-9).all(), (sharpness, k)
            assert (truth <= high + 1e-9).all(), (sharpness, k)


def test_a_verdict_takes_the_safe_end_of_each_bound(rng: np.random.Generator) -> None:
    log_p, y = drawn(rng, 3000, 500, 1.0)
    few, many = shown(log_p, y, 3).evaluate(), shown(log_p, y, 250).evaluate()
    assert few.verdict.decision == "UNDETERMINED"  # calibrated, and not to be told from that
    assert many.verdict.decision == "SAFE"
    sharp = shown(*drawn(rng, 3000, 500, 2.0), 20).evaluate()
    assert sharp.verdict.decision == "UNSAFE"
    assert sharp.ecd == pytest.approx(max(look.ecd.value for look in sharp.verdict.looks))
    vague = shown(*drawn(rng, 3000, 500, 0.4), 3).evaluate()
    assert vague.verdict.decision != "UNSAFE"


def test_every_surface_shows_both_bounds_and_that_no_temperature_was_judged(
    rng: np.random.Generator, tmp_path: Any
) -> None:
    result = shown(*drawn(rng, 500, 200, 2.0), 5).evaluate(by=np.repeat(["a", "b"], 250))
    page = tmp_path / "report.html"
    result.report(page)
    for text in (repr(result), result._repr_html_(), page.read_text(encoding="utf-8")):
        assert "at most" in text
        assert "at least" in text
        assert "draws" not in text.split("glossary")[0]
        assert "spread is about" not in text
        assert "temperature is not known, and was not judged" in " ".join(text.split())
    assert safecal.Evaluation.from_dict(result.to_dict()) == result
    assert math.isnan(result.temperature.value)
    with pytest.raises(UnavailableError, match="most likely outcomes"):
        shown(*drawn(rng, 5, 20), 5).log_partition(2.0)


def test_a_sign_that_is_not_known_is_not_claimed_and_groups_have_both_ends(
    rng: np.random.Generator, tmp_path: Any
) -> None:
    result = shown(*drawn(rng, 3000, 500), 30).evaluate(by=np.repeat(["a", "b"], 1500))
    most, least = (one.ecd for one in result.verdict.looks)
    assert most.low > 0.0 > least.high  # calibrated, and known between the two
    said = " ".join(repr(result).split())
    assert f"nat at most, 95 % interval {least.low:+.4f} to {most.high:+.4f}: no clear direction" in said
    page = tmp_path / "report.html"
    result.report(page)
    text = page.read_text(encoding="utf-8")
    assert f"{least.value:+.4f} at least. The true value may lie on either side of 0." in text
    assert "test, with the larger ECD" in text
    for key in ("a", "b"):
        ends = result.group_verdict(key).ecd
        rows = [look.groups[key].ecd for look in (result, *result.looks)]
        assert ends.low < rows[1] < 0.0 < rows[0] < ends.high
        assert f"{ends.low:+.4f}" in text
        for value in rows:
            assert f"{value:+.4f}" in repr(result)
    assert "group, ECD at most" in repr(result)
    assert "group, ECD at least" in result._repr_html_()


def test_a_report_of_tokens_says_between_what_the_surprise_lies_and_draws_the_look_that_decided(
    rng: np.random.Generator, tmp_path: Any
) -> None:
    result = shown(*drawn(rng, 3000, 500, 2.0), 20).evaluate()
    page = tmp_path / "report.html"
    result.report(page)
    most, least = (f"{one.ecd.value:.3g}" for one in result.verdict.looks)
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert f"each row surprised it by {least} to {most} nat more" in text
    assert result.deciding is result.looks[0]
    display = LocalDisplay.from_evaluation(result)
    plt.close(display.figure_)
    limits = [step.limit for step in display.course.steps]
    one, other = (Course.of(e.local, result.limits.local_threshold).steps for e in (result.looks[0], result))
    assert limits == [step.limit for step in one] != [step.limit for step in other]


def test_shortcuts_would_call_an_over_confident_model_safe(rng: np.random.Generator) -> None:
    log_p, y = drawn(rng, 600, 2000, 1.4)
    truth = safecal.categorical(y, logits=log_p).ecd
    top = -np.sort(-log_p, axis=1)[:, :5]
    rest = np.log1p(-np.exp(top).sum(axis=1))
    own = log_p[np.arange(len(y)), y]
    other = np.column_stack([top, rest])
    place = np.where(own[:, None] == other, np.arange(6), 5).min(axis=1)
    assert truth > 0.5
    assert safecal.categorical(place, logits=other).ecd < 0.5 * truth
    low, high = ends(shown(log_p, y, 5))
    assert low.mean() <= truth <= high.mean()


def test_parts_are_those_of_all_rows(rng: np.random.Generator) -> None:
    log_p, y = drawn(rng, 60, 50)
    whole = shown(log_p, y, 4)
    parts = [shown(log_p[k], y[k], 4) for k in np.split(np.arange(60), 3)]
    joined = Bounded.concatenate(parts)
    assert joined.evaluate() == whole.evaluate()
    assert sum(part.tally() for part in parts).summary.ecd == pytest.approx(whole.ecd)
    np.testing.assert_array_equal(whole.take(np.array([3, 1])).score().excess, whole.score().excess[[3, 1]])
    assert repr(whole) == "bounded predictions: 60 rows of 50 tokens"
    other = safecal.bounded([-1.0], [[-1.0]], vocabulary=51, text="given")
    with pytest.raises(MergeError):
        Bounded.concatenate([whole, other])


def test_lists_of_any_length_are_read_as_they_are(rng: np.random.Generator) -> None:
    top = [[math.log(0.5), math.log(0.2)], [math.log(0.9)], [0.0]]
    predictions = safecal.bounded([math.log(0.5), math.log(0.01), -math.inf], top, vocabulary=100, text="given")
    alone = safecal.bounded([math.log(0.01)], [[math.log(0.9)]], vocabulary=100, text="given")
    assert predictions.score().excess[1] == alone.score().excess[0]
    assert predictions.score().excess[2] == math.inf
    assert predictions.evaluate().verdict.decision == "UNSAFE"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "generated text": ({"text": "generated"}, "calibrated on its own samples"),
    "nothing said of the text": ({"text": "mine"}, 'must be "given"'),
    "probabilities": ({"y_logprob": [0.5]}, "must be log-probabilities"),
    "probabilities in the list": ({"top_logprobs": [[0.5]]}, "Take their logarithm"),
    "no outcome": ({"y_logprob": [math.nan]}, "own log-probability must be there"),
    "words": ({"y_logprob": ["a"]}, "must be numbers"),
    "words in the list": ({"top_logprobs": [["a"]]}, "lists of numbers"),
    "a hole in the list": ({"top_logprobs": [[math.nan]]}, "missing values"),
    "a matrix of outcomes": ({"y_logprob": [[-1.0]]}, "one number a row"),
    "other rows": ({"top_logprobs": [[-1.0], [-1.0]]}, "as many rows"),
    "no list": ({"top_logprobs": [[]]}, "at least one token"),
    "not the largest": ({"y_logprob": [-0.5], "top_logprobs": [[-0.7, -3.0]]}, "must hold the largest"),
    "more than 1": ({"y_logprob": [-0.1], "top_logprobs": [[-0.1, -0.1]]}, "sum to at most 1"),
    "a vocabulary that is too small": (
        {"y_logprob": [-3.0], "top_logprobs": [[-3.0]], "vocabulary": 10},
        "large enough for",
    ),
    "all outcomes": ({"vocabulary": 2, "top_logprobs": [[-0.7, -0.7]]}, "fewer than the vocabulary"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_list_of_log_probabilities_is_refused(name: str) -> None:
    changed, message = WRONG[name]
    given: dict[str, Any] = {"y_logprob": [-0.7], "top_logprobs": [[-0.7]], "vocabulary": 100, "text": "given"}
    given |= changed
    with pytest.raises(InputError, match=message):
        safecal.bounded(given.pop("y_logprob"), given.pop("top_logprobs"), **given)
    if name.startswith("generated"):
        with pytest.raises(FormError, match="known"):
            safecal.bounded([-0.7], [[-0.7]], vocabulary=100, text="generated")


def test_an_outcome_that_is_listed_because_it_happened_narrows_nothing(rng: np.random.Generator) -> None:
    log_p, y = drawn(rng, 200, 300)
    own = log_p[np.arange(200), y]
    top = -np.sort(-log_p, axis=1)[:, :5]
    listed = [[*row, *([] if at in row else [at])] for row, at in zip(top.tolist(), own.tolist(), strict=True)]
    truth = safecal.categorical(y, logits=log_p).score().excess
    low, high = ends(safecal.bounded(own, listed, vocabulary=300, text="given"))
    assert (low <= truth + 1e-9).all()
    assert (truth <= high + 1e-9).all()


@pytest.mark.parametrize("times", [1.0, 1.5, 2.0])
def test_a_temperature_is_found_on_given_text_and_none_on_generated_text(
    times: float, rng: np.random.Generator
) -> None:
    log_p, y = drawn(rng, 1500, 200, times)
    temperature = safecal.categorical(y, logits=log_p).evaluate().temperature
    assert temperature.low < times < temperature.high
    own = (np.cumsum(np.exp(log_p), axis=1) > rng.random((1500, 1))).argmax(axis=1)  # what the model would write
    assert abs(safecal.categorical(own, logits=log_p).ecd) < 0.1  # calibrated by construction
    with pytest.raises(FormError, match="by construction"):
        safecal.bounded(log_p[np.arange(1500), own], log_p[:, :5], vocabulary=200, text="generated")


def test_ranges_of_tokens_are_of_perplexity(rng: np.random.Generator) -> None:
    p = rng.dirichlet(np.full(50, 0.3), 3000)
    logits = np.log(p)
    token = np.array([rng.choice(50, p=row) for row in p**0.4 / (p**0.4).sum(axis=1, keepdims=True)])
    result = safecal.bounded(
        logits[np.arange(3000), token], np.sort(logits)[:, ::-1][:, :30], vocabulary=50, text="given"
    ).evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert "standard deviation" not in str(result)
    assert "spread 1" not in str(result)
    assert any(place.on == "perplexity" and "its perplexity is" in str(place) for place in result.verdict.where)
    assert safecal.Evaluation.from_dict(result.to_dict()).verdict == result.verdict


def sure(n: int, said: float, wrong: int) -> safecal.Predictions:
    """Return tokens of which the likeliest has the probability ``said`` and is not there ``wrong`` times."""
    top = np.log(np.tile([said, *((1.0 - said) * np.array([0.5, 0.2, 0.1, 0.05]))], (n, 1)))
    return safecal.bounded(top[np.arange(n), (np.arange(n) < wrong) * 1], top, vocabulary=50_000, text="given")


def test_mistakes_are_known_exactly_and_judged(rng: np.random.Generator) -> None:
    log_p, y = drawn(rng, 500, 100)
    top = -np.sort(-log_p, axis=1)[:, :4]
    found = safecal.bounded(log_p[np.arange(500), y], top, vocabulary=100, text="given").evaluate().mistakes
    whole = safecal.categorical(y, logits=log_p).evaluate().mistakes
    assert found is not None
    assert whole is not None
    assert found.seen == pytest.approx(whole.seen, abs=1)  # two tokens may be as good as equally likely
    assert found.announced == pytest.approx(whole.announced, abs=1)
    seldom = sure(3000, 0.9999, 15).evaluate()
    assert seldom.verdict.decision == "UNSAFE"
    assert "it announced 0.3 mistakes and made 15" in seldom.verdict.reason
    assert sure(100_000, 0.9999, 10).evaluate().verdict.decision == "SAFE"
    few = sure(3000, 0.9999, 0).evaluate().verdict
    assert few.decision == "UNDETERMINED"
    assert "it announced 0.3 mistakes and made 0" in few.reason


def test_tokens_that_are_equally_likely_are_the_likeliest_together() -> None:
    top = np.log([[0.4, 0.4, 0.1]] * 10)
    outcome = np.log([0.4] * 8 + [0.1, 0.02])
    scored = safecal.bounded(outcome, top, vocabulary=100, text="given").score()
    assert scored.confidence == pytest.approx(np.full(10, 0.8))
    assert scored.correct.tolist() == [True] * 8 + [False] * 2


def test_documents_without_mistakes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Bounded, "_score", lambda self, rows: safecal.Scored(*self.columns[:5, rows]))
        document = json.dumps(sure(400, 0.9, 40).evaluate(by=np.arange(400) % 2).to_dict())
    early = safecal.Evaluation.from_dict(json.loads(document))
    assert early.mistakes is None
    assert early.judge().decision == "SAFE"


def test_a_report_draws_the_limit_that_its_reason_names(rng: np.random.Generator, tmp_path: Path) -> None:
    log_p, y = drawn(rng, 2000, 100, times=1.8)
    result = shown(log_p, y, 30).evaluate()
    result.report(tmp_path / "report.html")
    (drawn_limit,) = re.findall(r"limit of ([0-9.]+) nat", (tmp_path / "report.html").read_text())
    assert f"where {drawn_limit} nat" in result.verdict.reason
    assert drawn_limit != f"{result.verdict.allowed:.3g}"  # that of the other end
