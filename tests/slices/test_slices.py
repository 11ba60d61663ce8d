"""Slices are found where they are, not where they are not, and say what is known of them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import safecal
from safecal._sums.summary import as_sums
from safecal.errors import DocumentError, FormError, OptionError, RangeError, ShapeError
from safecal.inference.sum_bounds import Keys
from safecal.judge.decision import slice_places
from safecal.judge.reasons import below_limit
from safecal.options import Limits
from safecal.slices import Halves, _merge_alike, discovery
from safecal.slices.estimation import Reach, membership, shares_of_error

N = 4000


def _drawn(rng: np.random.Generator, times: float = 4.0, n: int = N) -> tuple[Any, dict[str, Any], Any]:
    """Draw a model that is over-confident where age is at least 60 and the site is c."""
    z = rng.normal(0, 2, n)
    columns: dict[str, Any] = {
        "age": rng.integers(20, 90, n),
        "site": rng.choice(list("abcd"), n).tolist(),
        "dose": rng.normal(size=n),
    }
    inside = (columns["age"] >= 60) & (np.array(columns["site"]) == "c")
    happened = rng.random(n) < 1 / (1 + np.exp(-z / np.where(inside, times, 1.0)))
    return safecal.bernoulli(happened, logits=z), columns, inside


def _second(seed: int) -> Any:
    """Return which rows are in the second half."""
    return Halves(int(np.random.default_rng(seed).integers(0, 1 << 63))).of_rows(np.arange(N), None, "y_true")


@pytest.fixture
def slices(rng: np.random.Generator) -> safecal.Slices:
    predictions, columns, _ = _drawn(rng)
    return safecal.find_slices(predictions, columns)


def test_a_planted_slice_is_found_and_said(rng: np.random.Generator) -> None:
    predictions, columns, inside = _drawn(rng)
    slices = safecal.find_slices(predictions, columns)
    worst = slices[0]
    assert {c.feature for c in worst.conditions} == {"age", "site"}
    assert worst.ecd.low > 0.1
    assert worst.temperature.low > 2.0
    assert worst.contribution == pytest.approx(worst.share * worst.ecd.value)
    assert worst.share == pytest.approx(worst.n / N)
    assert worst.estimated_on < 0.6 * worst.n
    assert worst.firm < worst.ecd.low
    assert len(slices) == len(list(slices)) <= len(slices.candidates) <= 6
    assert inside.sum() == pytest.approx(worst.n, rel=0.3)
    assert worst.condition in repr(slices)
    assert str(worst).startswith(worst.condition)


def test_the_numbers_of_a_slice_are_those_of_the_half_on_which_it_was_not_found(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng)
    frame = pytest.importorskip("pandas").DataFrame(columns)
    slices = safecal.find_slices(predictions, columns, rng=7)
    second = _second(7)
    excess, predicted = predictions.score().excess, predictions.score().predicted
    for place, s in enumerate(slices.candidates):
        rows = eval(s.pandas, {"frame": frame}).to_numpy()
        assert s.n == rows.sum()
        other_half = rows & (second if place < 3 else ~second)
        assert s.estimated_on == other_half.sum()
        assert s.ecd.value == pytest.approx(excess[other_half].mean(), rel=1e-9)
        assert s.predicted == pytest.approx(predicted[other_half].mean(), rel=1e-9)


def test_rows_of_the_other_half_have_no_part_in_the_search(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng)
    before = safecal.find_slices(predictions, columns, rng=7)
    second = _second(7)
    y = predictions.happened.copy()
    y[second] = rng.random(int(second.sum())) < 0.5
    after = safecal.find_slices(safecal.bernoulli(y, logits=predictions.values), columns, rng=7)
    assert [s.conditions for s in after.candidates[:3]] == [s.conditions for s in before.candidates[:3]]
    assert [s.conditions for s in after.candidates[3:]] != [s.conditions for s in before.candidates[3:]]
    assert [s.ecd for s in after.candidates[:3]] != [s.ecd for s in before.candidates[:3]]


def test_under_confident_slices_are_found_the_other_way_round(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng, times=0.3)
    assert not len(safecal.find_slices(predictions, columns))
    slices = safecal.find_slices(predictions, columns, direction="under")
    assert slices[0].ecd.high < 0.0
    assert slices[0].firm > slices[0].ecd.high
    assert "under-confident slice" in slices.sentence
    calm = safecal.find_slices(_drawn(rng, 1.0)[0], columns, direction="under")
    assert "logits 2 times too small" in calm.sentence


def test_finding_none_says_what_would_have_been_found(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng, 1.0)
    slices = safecal.find_slices(predictions, columns)
    assert not len(slices)
    assert slices.reach is not None
    assert slices.reach.chance >= 0.9
    assert str(slices.reach) in slices.sentence
    larger = safecal.find_slices(predictions, columns, min_share=0.3)
    assert larger.reach is None or larger.reach.share >= 0.3
    fewer = safecal.find_slices(*_drawn(rng, 1.0, 1500)[:2])
    assert fewer.reach is None or fewer.reach.share > slices.reach.share
    few = safecal.find_slices(*_drawn(rng, 1.0, 60)[:2])
    assert few.sentence.endswith("is not known: there are too few rows, or too vague predictions.")
    assert "a temperature of 3" in str(Reach(0.1, 3.0, 0.95, False))
    assert "a temperature of 0.33" in str(Reach(0.1, 1 / 3, 0.95, False))


def test_rows_without_weight_make_no_promise(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng, 1.0)
    assert safecal.find_slices(predictions, columns).reach is not None
    few = np.where(np.arange(N) < 50, 1.0, 0.0)
    assert safecal.find_slices(predictions, columns, sample_weight=few).reach is None


def test_a_few_rows_are_not_told_that_a_feature_is_their_outcome() -> None:
    slices = safecal.find_slices(safecal.bernoulli([0, 1], [0.3, 0.4]), {"x": [1, 2]})
    assert slices.features == ("x",)


def test_depth_one_has_one_condition_and_depth_three_may_have_three(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng)
    for depth in (1, 3):
        slices = safecal.find_slices(predictions, columns, depth=depth)
        assert max(len(s.conditions) for s in slices.candidates) <= depth
        assert len(slices)


def test_a_global_temperature_is_not_taken_for_a_slice(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, 20_000)
    columns = {"site": rng.choice(list("abcd"), 20_000).tolist(), "x": rng.normal(size=20_000)}
    wrong = np.where(np.array(columns["site"]) == "c", 5.0, 1.6)
    predictions = safecal.bernoulli(rng.random(20_000) < 1 / (1 + np.exp(-z / wrong)), logits=z)
    assert safecal.find_slices(predictions, columns)[0].condition == "site is c"


def test_clusters_stay_in_one_half_and_widen_the_intervals(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng)
    clusters = np.arange(N) // 5
    second = Halves(3, range(N // 5), np.full(N // 5, 5)).of_rows(np.arange(N), clusters, "y_true")
    assert (second.reshape(-1, 5) == second.reshape(-1, 5)[:, :1]).all()
    assert second.mean() == pytest.approx(0.5, abs=0.01)
    slices = safecal.find_slices(predictions, columns, cluster=clusters)
    assert slices[0].ecd.method == "t on clusters, together"
    assert slices.clustered
    calm = safecal.find_slices(_drawn(rng, 1.0)[0], columns, cluster=clusters)
    assert calm.sentence.endswith("is not known: rows come in clusters.")


def test_weights_count(rng: np.random.Generator) -> None:
    predictions, columns, inside = _drawn(rng)
    weight = np.where(inside, 0.5, 2.0)
    slices = safecal.find_slices(predictions, columns, sample_weight=weight)
    assert slices[0].share < 0.5 * slices[0].n / N
    assert slices.ecd == pytest.approx(safecal.evaluate(
        predictions.happened, logits=predictions.values, sample_weight=weight).ecd)  # fmt: skip


def test_states_and_classes_and_densities_have_slices(rng: np.random.Generator) -> None:
    n = 4000
    site = rng.choice(list("ab"), n)
    spread = np.where(site == "b", 2.0, 1.0)[:, None]
    x = rng.normal(size=(n, 2)) * spread
    slices = safecal.find_slices(safecal.gaussian(x, np.zeros((n, 2)), std=np.ones(2)), {"site": site})
    assert slices[0].condition == "site is b"
    assert slices[0].temperature.value == pytest.approx(4.0, rel=0.2)
    assert slices.on == "spread"
    assert json.dumps(slices.to_dict(), allow_nan=False)
    z = rng.normal(0, 2, (n, 4))
    p = np.exp(z / np.where(site == "b", 4.0, 1.0)[:, None])
    y = (np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1) < rng.random((n, 1))).sum(axis=1)
    slices = safecal.find_slices(safecal.categorical(y, logits=z), {"site": site})
    assert slices[0].condition == "site is b"
    assert slices.on == "confidence"


def test_an_impossible_outcome_makes_its_slice_infinite(rng: np.random.Generator) -> None:
    n = 2000
    site = rng.choice(list("ab"), n)
    p = np.where(site == "b", 1.0, 0.5)
    y = rng.random(n) < np.where(site == "b", 0.9, 0.5)
    for cluster in (None, np.arange(n) // 2):
        slices = safecal.find_slices(safecal.bernoulli(y, p), {"site": site}, cluster=cluster)
        assert slices[0].condition == "site is b"
        assert slices[0].ecd.value == slices[0].ecd.low == np.inf
        assert safecal.Slices.from_dict(json.loads(json.dumps(slices.to_dict()))) == slices


def test_same_rows_are_told_by_the_simplest_description(slices: safecal.Slices) -> None:
    assert len({s.conditions for s in slices}) == len(slices)
    s = slices.candidates[0]
    longer = replace(s, conditions=(*s.conditions, safecal.Condition("x", "<", 3, "number")))
    assert _merge_alike([longer, s], [0, 1], lambda a, b: 0.98, over=True) == [1]
    assert _merge_alike([longer, s], [0, 1], lambda a, b: 0.4, over=True) == [1, 0]


def test_documents_are_read_back_and_checked(slices: safecal.Slices) -> None:
    document = json.loads(json.dumps(slices.to_dict(), allow_nan=False))
    assert safecal.Slices.from_dict(document) == slices
    for change in (
        {"found": [99]}, {"found": [0, 0]}, {"searched": N + 1}, {"direction": "under"}, {"reach": 3}, {"depth": 0}
    ):  # fmt: skip
        with pytest.raises(DocumentError):
            safecal.Slices.from_dict(document | change)
    one = slices[0].to_dict()
    for change in ({"condition": "age >= 3"}, {"sql": "TRUE"}, {"estimated_on": N + 1}, {"conditions": []}):
        with pytest.raises(DocumentError):
            safecal.Slice.from_dict(one | change)


def test_slices_are_frames_and_arrow_streams_and_pages(slices: safecal.Slices) -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    assert slices.to_frame("pandas")["condition"].tolist() == [s.condition for s in slices]
    assert slices.to_frame("polars").equals(pl.DataFrame(pa.table(slices)))
    page = slices._repr_html_()
    assert "<svg" in page
    assert ">elsewhere</th>" in page
    assert slices[0].condition.replace(">=", "&gt;=") in page
    display = slices.plot()
    assert repr(display).startswith("SlicesDisplay: ")
    pytest.importorskip("matplotlib.pyplot").close(display.figure_)


def test_the_picture_names_a_long_condition_whole(rng: np.random.Generator) -> None:
    n = 4000
    z, age = rng.normal(0, 2, n), rng.integers(18, 90, n)
    site = rng.choice(["north", "the hospital in the south"], n)
    happened = rng.random(n) < 1 / (1 + np.exp(-z))
    odds = np.where((age >= 55) & (site != "north"), 3.0, 1.0) * z
    found = safecal.find_slices(safecal.bernoulli(happened, logits=odds), {"age": age, "site": site}, rng=0)
    long = [s.condition for s in found if 22 < len(s.condition) <= 58]
    assert long
    assert all(f">{condition.replace('>=', '&gt;=')}</text>" in found._repr_html_() for condition in long)


def test_no_slice_is_a_sentence_in_every_form(rng: np.random.Generator) -> None:
    calm = safecal.find_slices(*_drawn(rng, 1.0)[:2])
    assert "no over-confident slice found" in calm._repr_html_()
    assert calm.to_frame("pandas").empty
    display = calm.plot()
    assert [text.get_text() for text in display.ax_.texts] == ["No slice was found."]
    pytest.importorskip("matplotlib.pyplot").close(display.figure_)


def test_a_search_tells_how_far_it_is_and_ctrl_c_leaves_what_was_found(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng)
    seen: list[float] = []
    safecal.find_slices(predictions, columns, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0

    def stop(done: float) -> None:
        if done > 0.2:
            raise KeyboardInterrupt

    slices = safecal.find_slices(predictions, columns, progress=stop)
    assert slices.interrupted
    assert 0 < len(slices.candidates) <= 3  # of the first half alone
    assert slices[0].ecd.low > 0.0
    assert "stopped before its end" in repr(slices)


def test_beyond_a_million_rows_some_are_drawn_and_all_are_estimated(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "DRAWN", 3000)
    predictions, columns, _ = _drawn(rng)
    slices = safecal.find_slices(predictions, columns)
    assert slices.searched == 3000
    assert "3000 of them drawn for the search" in slices.sentence
    assert slices[0].estimated_on > 0.4 * slices[0].n


def test_without_a_feature_there_is_no_slice(rng: np.random.Generator) -> None:
    predictions, _, _ = _drawn(rng)
    slices = safecal.find_slices(predictions, {"same": np.zeros(N)})
    assert not slices.candidates
    assert repr(slices).endswith("left out: same (its values are all alike)")
    assert slices.sentence.endswith("there is no feature to look at.")


def test_wrong_arguments_are_refused(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng)
    with pytest.raises(FormError, match="must be predictions"):
        safecal.find_slices([0, 1], columns)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="`depth`"):
        safecal.find_slices(predictions, columns, depth=0)
    with pytest.raises(RangeError, match="`min_share`"):
        safecal.find_slices(predictions, columns, min_share=2.0)
    with pytest.raises(OptionError, match="`direction`"):
        safecal.find_slices(predictions, columns, direction="up")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="two halves"):
        safecal.find_slices(safecal.bernoulli([1], [0.5]), {"x": [1]})
    with pytest.raises(ShapeError, match="two halves"):
        safecal.find_slices(predictions, columns, cluster=np.zeros(N))


def test_what_may_go_wrong_is_shared_out_once() -> None:
    for firsts, seconds in ((3, 3), (1, 3), (2, 1)):
        assert sum(shares_of_error(firsts, seconds)) == pytest.approx(1.0)
    assert shares_of_error(3, 0) == [0.25, 0.125, 0.125]
    masks = [np.array([True, True, False, False]), np.array([True, False, True, False])]
    second = np.array([False, True, True, False])
    assert membership(masks, second).tolist() == [3, 65, 66, 0]


def test_an_evaluation_with_features_is_judged_by_its_slices(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng, 5.0, 20_000)
    y, z = predictions.happened, predictions.values
    plain = safecal.evaluate(y, logits=z)
    evaluation = safecal.evaluate(y, logits=z, features=columns)
    assert plain.verdict.decision != "UNSAFE"
    assert evaluation.verdict.decision == "UNSAFE"
    place = evaluation.verdict.where[0]
    assert (place.type, place.shown, place.by) == ("slice", True, "ecd")
    assert place.ecd.low > place.limit == 0.2
    assert f"where {place.label} it is over-confident" in evaluation.verdict.reason
    assert evaluation.verdict.diagnosis is not None
    assert evaluation.verdict.diagnosis.cause == "only a slice"
    assert evaluation.slices is not None
    assert evaluation.slices.sentence in repr(evaluation)
    page = evaluation._repr_html_()
    assert ">For whom</figcaption>" in page
    assert "intervals hold together at 95" in page
    document = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert safecal.Evaluation.from_dict(document) == evaluation
    assert evaluation.judge(local_threshold=2.0).decision == plain.verdict.decision
    higher = evaluation.judge(level=0.99)
    assert higher.decision == "UNDETERMINED"  # the bounds were made at 95 %
    assert not higher.where[0].shown
    average = evaluation.judge(rule="average")
    assert not average.where
    with pytest.raises(DocumentError, match="as many rows in its `slices`"):
        safecal.Evaluation.from_dict(document | {"slices": document["slices"] | {"n": 20_001}})


def test_a_lower_level_does_not_make_safe_what_was_never_looked_at_closely(rng: np.random.Generator) -> None:
    """Bounds at 99.9999 % show nothing of a slice that those at 95 % show to be beyond the limit."""
    predictions, columns, _ = _drawn(rng, 5.0, 10_000)
    firm = predictions.evaluate(features=columns, level=0.9999999999)
    assert predictions.evaluate(features=columns).verdict.decision == "UNSAFE"
    assert firm.slices is not None
    assert not [s for s in firm.slices if s.firm > 0.2]
    again = firm.judge(level=0.95)
    assert again.decision == "UNDETERMINED"
    assert "slice" in {place.type for place in again.where}
    assert not again.shown


def test_a_candidate_that_is_not_listed_is_judged(slices: safecal.Slices) -> None:
    """Of two with about the same rows the simpler one is listed; the other may be the one beyond the limit."""
    worst = max(slices.candidates, key=lambda s: s.firm)
    assert worst.firm > 0.1
    limits = Limits(local_threshold=0.1)
    mild = replace(worst, ecd=replace(worst.ecd, value=0.05, low=0.01, high=0.09), firm=0.005)
    listed = replace(slices, found=(mild,), candidates=(mild, worst))
    assert [(place.name, place.shown) for place in slice_places(listed, limits)] == [(worst.condition, True)]
    both = replace(slices, found=(worst,), candidates=(mild, worst))
    assert [place.name for place in slice_places(both, limits)] == [worst.condition]
    assert not slice_places(replace(both, direction="under"), limits)


def test_a_search_that_was_stopped_is_not_safe(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng, 1.0)

    def stop(done: float) -> None:
        raise KeyboardInterrupt

    evaluation = predictions.evaluate(features=columns, progress=stop)
    assert evaluation.verdict.on_average == "SAFE"
    assert evaluation.verdict.decision == "UNDETERMINED"
    assert "the search for slices was stopped before its end" in evaluation.verdict.reason


def test_slices_of_a_model_that_is_wrong_everywhere_are_not_shown_to_be_worse(rng: np.random.Generator) -> None:
    z, columns = rng.normal(0, 2, 6000), {"site": rng.choice(list("abcd"), 6000), "x": rng.normal(size=6000)}
    predictions = safecal.bernoulli(rng.random(6000) < 1 / (1 + np.exp(-z / 2.5)), logits=z)
    slices = safecal.find_slices(predictions, columns)
    assert len(slices)
    assert {s.compared for s in slices} == {"alike"}
    assert "shown to be worse than the other rows." in slices.sentence
    assert f"not shown to be worse than the other rows, whose ECD is {slices[0].elsewhere:+.3f}" in repr(slices)
    worse = np.where(columns["site"] == "c", 8.0, 1.6)
    slices = safecal.find_slices(
        safecal.bernoulli(rng.random(6000) < 1 / (1 + np.exp(-z / worse)), logits=z), columns
    )  # fmt: skip
    assert slices[0].condition == "site is c"
    assert slices[0].compared == "above"
    assert slices[0].beyond.low > 0.0
    assert "shown to be worse" not in slices.sentence
    below = replace(slices[0], beyond=replace(slices[0].beyond, value=-0.2, low=-0.3, high=-0.1))
    assert "no worse than the other rows" in repr(replace(slices, found=(below,)))


def test_a_slice_of_two_percent_at_the_end_of_a_number_is_found(rng: np.random.Generator) -> None:
    n = 20_000
    z, x = rng.normal(0, 2, n), rng.normal(size=n)
    wrong = np.where(x >= np.quantile(x, 0.98), 5.0, 1.0)
    slices = safecal.find_slices(safecal.bernoulli(rng.random(n) < 1 / (1 + np.exp(-z / wrong)), logits=z), {"x": x})
    assert slices[0].conditions[0].operator == ">="
    assert slices[0].share < 0.03


def test_few_rows_are_bounded_by_their_skewness_and_by_the_spread_of_the_model(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, 100)
    tally = safecal.bernoulli(rng.random(100) < 1 / (1 + np.exp(-z / 2.5)), logits=z).tally()
    keys = Keys.of(as_sums([tally.summary]))
    assert keys.bounds((0.01, -1), cautious=0)[0][0] > keys.bounds((0.01, -1))[0][0]


def test_slices_below_the_limit_are_named_beside_safe(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng, 2.0, 20_000)
    evaluation = predictions.evaluate(features=columns)
    assert evaluation.verdict.decision == "SAFE"
    assert evaluation.slices is not None
    worst = max(evaluation.slices, key=lambda s: s.ecd.value)
    reason = evaluation.verdict.reason
    assert "no slice" not in reason
    many = len(evaluation.slices)
    start = "1 slice is" if many == 1 else f"{many} slices are"
    assert f"But {start} over-confident, below the limit of 0.2 nat" in reason
    assert f"where {worst.condition}, ECD is {worst.ecd.value:.3g} nat" in reason
    assert f"and T is {worst.temperature.value:.3g}." in reason
    assert "2 slices are over-confident, below the limit of 0.2 nat; the worst: where " in below_limit(
        replace(evaluation.slices, found=(worst, worst)), evaluation.verdict.limits
    )
    text = repr(evaluation.slices).splitlines()
    assert max(map(len, text)) < 80
    whole = f"{worst.condition} and {worst.condition} and {worst.condition}"
    wrapped = repr(replace(evaluation.slices, found=(replace(worst, conditions=worst.conditions * 3),))).splitlines()
    assert max(map(len, wrapped)) < 80
    first, *rest = wrapped[wrapped.index(next(line for line in wrapped if line.startswith("---"))) + 1 :]
    below = rest[: rest.index(next(line for line in rest if line.startswith("---")))]
    assert " ".join([first.split("  ")[0], *below]) == whole


def test_a_calibrated_evaluation_with_features_stays_safe(rng: np.random.Generator) -> None:
    predictions, columns, _ = _drawn(rng, 1.0)
    evaluation = predictions.evaluate(features=columns)
    assert evaluation.verdict.decision == "SAFE"
    assert "no slice of its features shows it" in evaluation.verdict.reason
    with pytest.raises(OptionError, match="by_label"):
        safecal.evaluate([[1, 0]] * 4, [[0.5, 0.5]] * 4, by_label=True, features={"x": range(4)})


def test_a_display_of_an_evaluation_needs_slices(rng: np.random.Generator) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    from safecal.plot import SlicesDisplay

    predictions, columns, _ = _drawn(rng)
    display = SlicesDisplay.from_evaluation(predictions.evaluate(features=columns), name="a model")
    assert display.limits == tuple(0.2 * s.dimensions for s in display.slices)
    plt.close(display.figure_)
    with pytest.raises(OptionError, match="must have slices"):
        SlicesDisplay.from_evaluation(predictions.evaluate())


def test_the_shadow_of_a_better_slice_is_not_printed(rng: np.random.Generator) -> None:
    n = 40_000
    z = rng.normal(0, 2, n)
    columns = {name: rng.choice(list("abcd"), n).tolist() for name in ("site", "device", "ward")}
    inside = (np.array(columns["site"]) == "c") & (np.array(columns["device"]) == "a")
    predictions = safecal.bernoulli(rng.random(n) < 1 / (1 + np.exp(-z / np.where(inside, 6.0, 1.0))), logits=z)
    slices = safecal.find_slices(predictions, columns)
    assert [s.condition for s in slices] == ["site is c and device is a"]
