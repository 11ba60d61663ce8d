"""A verdict looks everywhere: over-confidence in a range or in a group is found, named, and never explained away."""

import pickle

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Local, Place
from safecal.errors import MergeError
from safecal.inference.ranges import bounded_ranges
from safecal.inference.sum_bounds import firm_and_weak_bounds
from safecal.judge.decision import range_places
from safecal.judge.verdict import SAFE, UNDETERMINED, UNSAFE
from safecal.options import Limits

N = 20_000


def _calibrated(n: int, seed: int, spread: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, spread, n)
    return rng.random(n) < special.expit(logits), logits


# Ranges of the predictions


def test_ranges_that_cancel_are_unsafe(rng: np.random.Generator) -> None:
    y, logits = _calibrated(2 * N, 0)
    verdict = safecal.evaluate(y, logits=np.where(rng.random(2 * N) < 0.3, 2.0, 0.45) * logits).verdict
    assert verdict.on_average == SAFE
    assert verdict.decision == UNSAFE
    worst = verdict.where[0]
    assert worst.predicted < 0.1 or worst.predicted > 0.9
    assert worst.ecd.low > 0.2
    assert verdict.reason.startswith("its confidence is right on average, but not everywhere: where it says ")


def test_a_changed_base_rate_is_unsafe(rng: np.random.Generator) -> None:
    logits = rng.normal(0, 2, N)
    verdict = safecal.evaluate(rng.random(N) < special.expit(logits - 1.0), logits=logits).verdict
    assert verdict.on_average == SAFE
    assert verdict.decision == UNSAFE
    assert 0.75 < verdict.where[0].low < verdict.where[0].high < 0.95
    assert verdict.where[0].observed < 0.75


def test_rare_events_that_happen_eighteen_times_too_often_are_unsafe() -> None:
    y = np.arange(10**6) < 1921
    result = safecal.evaluate(y, np.full(10**6, 105e-6), bins=None)
    assert result.ecd < 0.1
    assert result.verdict.decision == UNSAFE
    assert "it announced 105 mistakes and made 1921, at least 17" in result.verdict.reason
    assert result.mistakes is not None
    assert result.mistakes.ratio.low > 17


@pytest.mark.parametrize("p", [0.8, 0.2])
def test_equal_predictions_never_part(p: float) -> None:
    y = np.arange(2000) < 2000 * p  # sorted by what happened
    result = safecal.evaluate(y, np.full(2000, p))
    assert len(result.local) == 0
    assert result.verdict.decision == SAFE


def test_the_order_of_rows_does_not_matter(rng: np.random.Generator) -> None:
    y, logits = _calibrated(3000, 1)
    order = rng.permutation(3000)
    a, b = safecal.evaluate(y, logits=1.6 * logits), safecal.evaluate(y[order], logits=1.6 * logits[order])
    assert [(r.low, r.high, r.n) for r in a.local] == [(r.low, r.high, r.n) for r in b.local]
    np.testing.assert_allclose([r.ecd.low for r in a.local], [r.ecd.low for r in b.local], rtol=1e-9)
    assert a.verdict.decision == b.verdict.decision == UNSAFE


def test_a_suspected_range_withholds_safe_and_is_named(rng: np.random.Generator) -> None:
    logits = rng.normal(0, 2, 1500)
    verdict = safecal.evaluate(rng.random(1500) < special.expit(logits - 0.9), logits=logits).verdict
    assert verdict.decision == UNDETERMINED
    assert verdict.where
    assert not verdict.shown
    assert "perhaps not everywhere" in verdict.reason or "may be over-confident" in verdict.reason
    assert "Its calibration differs along its predictions: more rows would show where." in verdict.reason


def test_bins_decide_nothing() -> None:
    y, logits = _calibrated(3000, 2)
    reasons = {safecal.evaluate(y, logits=1.3 * logits, bins=bins).verdict.reason for bins in (None, 2, 10, 50)}
    assert len(reasons) == 1


def test_one_bad_class_is_found(rng: np.random.Generator) -> None:
    z = rng.normal(0, 1.5, (N, 10))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    z[:, 3] += 2.5
    verdict = safecal.evaluate(y, logits=z).verdict
    assert verdict.decision == UNSAFE
    assert any("class 3 predicted" in place.name for place in verdict.where)


def test_of_many_classes_each_predicted_one_is_a_range(rng: np.random.Generator) -> None:
    """80 % is said of 30 classes of 3 % of the rows each: half of them are always right, half in half of the cases."""
    for classes in (30, 6):
        top = rng.integers(0, classes, N // 2)
        p = np.full((N // 2, classes), 0.2 / (classes - 1))
        p[np.arange(N // 2), top] = 0.8
        wrong = (top + rng.integers(1, classes, N // 2)) % classes
        uneven = np.where(rng.random(N // 2) < np.where(2 * top < classes, 0.5, 1.0), top, wrong)
        verdict = safecal.evaluate(uneven, p).verdict
        assert verdict.on_average == SAFE
        assert verdict.decision == UNSAFE
        assert all(place.observed < 0.6 for place in verdict.where)
        even = safecal.evaluate(np.where(rng.random(N // 2) < 0.8, top, wrong), p)
        assert even.verdict.decision == SAFE
        assert len(even.local) == classes


def test_predicted_classes_of_few_rows_are_no_ranges(rng: np.random.Generator) -> None:
    top = np.repeat([0, 1, 2, 3], [970, 4, 19, 7 + 1000])
    p = np.full((2000, 4), 0.1)
    p[np.arange(2000), top] = 0.7
    assert {r.label for r in safecal.evaluate(top, p).local} == {0, 3}
    top[:20] = 1
    p = np.full((2000, 4), 0.1)
    p[np.arange(2000), top] = 0.7
    assert {r.label for r in safecal.evaluate(top, p).local} == {0, 1, 3}


def test_confidences_of_classes_are_told_apart_finely(rng: np.random.Generator) -> None:
    """Ten classes: a narrow range of vague confidences that are nearly never right, between others that are."""
    said, top = rng.uniform(0.15, 0.6, N), rng.integers(0, 10, N)
    p = np.repeat((1 - said[:, None]) / 9, 10, axis=1)
    p[np.arange(N), top] = said
    right = rng.random(N) < np.where((said > 0.245) & (said < 0.27), 0.01, said)
    verdict = safecal.evaluate(np.where(right, top, (top + 1) % 10), p).verdict
    assert verdict.decision == UNSAFE
    assert (verdict.where[0].low, verdict.where[0].high) == pytest.approx((0.245, 0.269), abs=1e-3)


def test_the_surest_rows_are_looked_at_though_they_are_few(rng: np.random.Generator) -> None:
    """Rare events: of 20 000 rows 100 are flagged, with 95 % each, and half of them happen."""
    flagged, logits = np.arange(N) < N // 200, rng.normal(-5, 1, N)
    logits[flagged] = np.log(19.0) + rng.normal(0, 0.2, N // 200)
    for form in (logits, np.stack([np.zeros(N), logits], axis=1)):
        for true, decision in ((0.5, UNSAFE), (0.95, SAFE)):
            y = np.random.default_rng(1).random(N) < np.where(flagged, true, special.expit(logits))
            verdict = safecal.evaluate(y.astype(int), logits=form).verdict
            assert verdict.on_average == SAFE
            assert verdict.decision == decision
            assert all(place.share < 0.02 for place in verdict.where)
    few = safecal.evaluate(y[:3800].astype(int), logits=logits[:3800], min_share=0.5)
    assert {r.n >= 20 for r in few.local} == {True}
    assert min(r.n for r in few.local) < 50


def test_the_surest_states_are_looked_at_though_they_are_few(rng: np.random.Generator) -> None:
    std = np.exp(rng.normal(0, 1, N))
    sharp = std < np.quantile(std, 0.01)
    x = rng.normal(0, 1, N) * std * np.where(sharp, 2.5, 1.0)
    verdict = safecal.gaussian(x, np.zeros(N), std=std).evaluate().verdict
    assert verdict.on_average == SAFE
    assert verdict.decision == UNSAFE
    assert verdict.where[0].share < 0.02


def test_the_surest_rows_of_calibrated_models_are_no_reason_to_withhold_safe() -> None:
    decisions = [safecal.evaluate(y, logits=z).verdict.decision for y, z in (_calibrated(10_000, k) for k in range(20))]
    assert decisions == [SAFE] * 20


def test_states_that_are_too_sure_where_they_are_sharp(rng: np.random.Generator) -> None:
    std = np.exp(rng.normal(0, 1, N))
    x = rng.normal(0, 1, N) * std * np.where(std < 0.3, 1.4, 1.0)
    verdict = safecal.gaussian(x, np.zeros(N), std=std).evaluate().verdict
    assert verdict.on_average == SAFE
    assert verdict.decision == UNSAFE
    assert verdict.where[0].on == "spread"
    assert verdict.where[0].high < 0.4


def test_states_of_one_spread_have_no_ranges(rng: np.random.Generator) -> None:
    assert safecal.gaussian(rng.normal(size=300), np.zeros(300), std=1.0).evaluate().local.on == ""


# Groups that were named


def _one_bad_group(share: float, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a group that is too sure, but never very sure: among the rows of its probabilities it does not show."""
    rng = np.random.default_rng(10)
    bad, most = rng.random(n) < share, rng.normal(0.0, 2.0, n)
    few = rng.uniform(-1.8, 1.8, n)
    y = rng.random(n) < special.expit(np.where(bad, 0.2 * few, most))
    return y, np.where(bad, few, 0.9 * most), np.where(bad, "few", "most")


def test_a_small_group_beyond_its_limit_is_unsafe_though_the_average_is_safe() -> None:
    y, logits, group = _one_bad_group(0.03)
    assert safecal.evaluate(y, logits=logits).verdict.decision == SAFE
    result = safecal.evaluate(y, logits=logits, by={"site": group})
    verdict = result.verdict
    assert verdict.decision == UNSAFE
    assert [place.name for place in verdict.where] == ["site few"]
    assert "right on average, but not everywhere: in site few its logits are too large (" in verdict.reason
    assert verdict.on_average == SAFE
    assert result.judge(threshold=1.0, max_temperature=10.0).decision == SAFE
    assert result.judge(rule="average").decision == SAFE


@pytest.mark.parametrize("times", [2, 700])
def test_more_groups_never_take_an_unsafe_away(times: int) -> None:
    y, logits = _calibrated(3000, 12)
    assert safecal.evaluate(y, logits=3.0 * logits, by=np.arange(3000) % times).verdict.decision == UNSAFE


def _one_among(right: int, others: int) -> safecal.Evaluation:
    """Return a group that says 80 % and is right in some of 300 rows, among others that are calibrated."""
    y = np.concatenate([np.arange(300) < right, np.tile([0, 1, 1, 1], others)])
    p = np.concatenate([np.full(300, 0.8), np.full(4 * others, 0.75)])
    by = np.concatenate([np.zeros(300, dtype=int), np.repeat(np.arange(1, others + 1), 4)])
    return safecal.evaluate(y, p, by=by, bins=None, max_temperature=10.0, local_threshold=10.0)


def _names(verdict: safecal.Verdict) -> list[str]:
    return [place.name for place in verdict.shown]


def test_with_many_groups_each_of_them_has_to_be_proved_more_firmly() -> None:
    # Chance alone shows as much in one of 20 000 groups, but not in one of 100.
    few, many = _one_among(182, 100).verdict, _one_among(182, 20_000).verdict
    assert _names(few) == ["group 0"]
    assert _names(many) == []
    assert _names(_one_among(140, 20_000).verdict) == ["group 0"]


def test_a_verdict_names_no_group_that_it_does_not_find(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = _one_among(140, 5000)
    named: list[int] = []
    label = safecal.Table.label
    monkeypatch.setattr(safecal.Table, "label", lambda table, k: named.append(k) or label(table, k))
    for name in ("labels", "summaries"):
        monkeypatch.setattr(safecal.Table, name, property(lambda table: pytest.fail("every group was looked at")))
    verdict = evaluation.judge(level=0.9)
    assert _names(verdict) == ["group 0"]
    assert len(named) <= 30  # the place, the worst, and some that are too small


def test_places_come_worst_first() -> None:
    p = np.full(4000, 0.9)
    right = np.concatenate([np.arange(1000) < k for k in (600, 500, 900, 500)])
    verdict = safecal.evaluate(right, p, by=np.repeat(list("abcd"), 1000), bins=None).verdict
    assert set(_names(verdict)[:2]) == {"group b", "group d"}  # alike, but for the rounding of their sums
    assert _names(verdict)[2:] == ["group a"]
    assert verdict.worst in ("group b", "group d")
    safe = safecal.evaluate([1, 1, 1], [0.9, 0.8, 0.7], by=list("abc"), bins=None).verdict
    assert safe.worst is None


def test_mistakes_in_a_group_are_counted(rng: np.random.Generator) -> None:
    n = 50_000
    group = np.arange(n) % 5
    y = rng.random(n) < np.where(group == 1, 0.006, 0.001)
    verdict = safecal.evaluate(y, np.full(n, 0.001), by={"ward": group}, bins=None).verdict
    assert verdict.decision == UNSAFE
    assert verdict.where[0].name == "ward 1"
    assert verdict.where[0].by == "mistakes"
    assert "in ward 1 it announced 10 mistakes and made " in verdict.reason


def test_names_of_places_cannot_write_to_the_terminal() -> None:
    y, logits, group = _one_bad_group(0.03)
    names = np.where(group == "few", "\x1b[2J`rm`" + "x" * 100, "most")
    reason = safecal.evaluate(y, logits=logits, bins=None, by=names).verdict.reason
    assert "\x1b" not in reason
    assert "`rm`" not in reason
    assert "\\x1b[2J" in reason
    assert "x" * 41 not in reason


def test_a_group_without_a_name_is_quoted() -> None:
    y, logits, group = _one_bad_group(0.03)
    verdict = safecal.evaluate(y, logits=logits, bins=None, by={"site": np.where(group == "few", "", "most")}).verdict
    assert "in site '' its logits are" in verdict.reason


# How it is said


@pytest.mark.parametrize("share", [0.06, 0.0])
def test_every_surface_tells_the_same_decision(share: float) -> None:
    y, logits, group = _one_bad_group(share)
    result = safecal.evaluate(y, logits=logits, by={"site": group})
    verdict = result.verdict
    assert str(verdict) in " ".join(repr(result).split())
    assert verdict.decision in result._repr_html_()
    document = result.to_dict()
    assert document["verdict"]["decision"] == verdict.decision
    assert safecal.Evaluation.from_dict(document).verdict == verdict
    assert [Place.from_dict(place.to_dict()) for place in verdict.where] == list(verdict.where)


def test_the_rule_of_averages_says_so(rng: np.random.Generator) -> None:
    y, logits = _calibrated(N, 0)
    mixed = np.where(rng.random(N) < 0.3, 2.0, 0.45) * logits
    verdict = safecal.evaluate(y, logits=mixed, rule="average").verdict
    assert verdict.decision == SAFE
    assert verdict.where == ()
    assert "Only averages were judged (rule: average)" in verdict.reason


@pytest.mark.parametrize(("classes", "limit"), [(3, 0.1), (1000, 0.8)])
def test_the_limit_grows_with_what_there_is_to_say(rng: np.random.Generator, classes: int, limit: float) -> None:
    z = rng.normal(0, 2.5, (1500, classes))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    verdict = safecal.evaluate(y, logits=1.02 * z).verdict
    assert verdict.allowed == pytest.approx(limit, rel=0.1)
    assert verdict.decision == SAFE
    assert ("dimensions)" in verdict.reason) == (limit > 0.1)


# Clusters


def test_groups_with_clusters_are_judged_by_their_clusters() -> None:
    y, logits, group = _one_bad_group(0.1)
    verdict = safecal.evaluate(y, logits=logits, by={"site": group}, cluster=np.arange(N) // 20).verdict
    assert verdict.decision == UNSAFE
    assert _names(verdict) == ["site few"]
    few = safecal.evaluate(
        y[:400], logits=logits[:400], by={"site": group[:400]}, cluster=np.arange(400) // 100
    ).verdict
    assert few.shown == ()


@pytest.mark.proof
@pytest.mark.no_cover
def test_shocks_that_clusters_share_make_no_group_unsafe(rng: np.random.Generator) -> None:
    alarms = 0
    for _ in range(30):
        group, cluster = np.repeat(np.arange(6), 400), np.repeat(np.arange(48), 50)
        z = rng.normal(0, 2, 2400)
        shock = rng.random(48)[cluster]  # all rows of a cluster are lucky, or none is
        verdict = safecal.evaluate(shock < special.expit(z), logits=z, by=group, cluster=cluster).verdict
        alarms += bool(verdict.shown)
    assert alarms == 0


def test_too_few_clusters_say_how_many_are_needed() -> None:
    y, logits = _calibrated(1500, 3)
    verdict = safecal.evaluate(y, logits=logits, cluster=np.arange(1500) // 50).verdict
    assert verdict.decision == UNDETERMINED
    assert verdict.rows_needed is None
    assert verdict.clusters_needed is not None
    assert "more clusters would decide." in verdict.reason
    many = safecal.evaluate(*_repeated(y, logits, 4), cluster=np.arange(6000) // 50).verdict
    assert many.decision == SAFE


def _repeated(y: np.ndarray, logits: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    z = rng.normal(0, 2, times * len(y))
    return rng.random(len(z)) < special.expit(z), special.expit(z)


def _shifted(clusters: int, seed: int, rows: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that happen less often than predicted, in clusters."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, clusters * rows)
    return rng.random(len(logits)) < special.expit(logits - 1.0), logits, np.arange(len(logits)) // rows


def test_a_range_is_shown_by_its_clusters_and_named() -> None:
    y, logits, cluster = _shifted(300, 1)
    result = safecal.evaluate(y, logits=logits, cluster=cluster)
    verdict = result.verdict
    assert (verdict.on_average, verdict.decision) == (SAFE, UNSAFE)
    worst = verdict.shown[0]
    assert worst.type == "range"
    assert 0.6 < worst.low < worst.high < 0.97
    assert worst.observed < worst.predicted - 0.1
    assert verdict.reason.startswith("its confidence is right on average, but not everywhere: where it says ")
    assert result.local.worst is not None
    assert result.local.worst.low == worst.low


def test_the_order_of_rows_in_clusters_does_not_matter(rng: np.random.Generator) -> None:
    y, logits, cluster = _shifted(300, 2)
    order = rng.permutation(len(y))
    a = safecal.evaluate(y, logits=logits, cluster=cluster)
    b = safecal.evaluate(y[order], logits=logits[order], cluster=cluster[order])
    assert a.verdict.decision == b.verdict.decision == UNSAFE
    assert a.verdict.reason == b.verdict.reason
    np.testing.assert_allclose(a.local.numbers, b.local.numbers, rtol=1e-9, atol=1e-12)


def test_few_clusters_show_no_range_and_say_how_little_is_known() -> None:
    y, logits, cluster = _shifted(6, 3, rows=2500)
    result = safecal.evaluate(y, logits=logits, cluster=cluster)
    assert safecal.evaluate(y, logits=logits).verdict.decision == UNSAFE  # if rows were independent
    assert result.verdict.decision == UNDETERMINED
    assert result.verdict.where
    assert result.verdict.shown == ()
    assert "; ECD lies above " in result.verdict.reason
    assert "Its calibration differs along its predictions: more clusters would show where." in result.verdict.reason


@pytest.mark.proof
def test_clusters_that_share_a_shock_show_no_range(rng: np.random.Generator) -> None:
    for _ in range(10):
        z, cluster = rng.normal(0, 2, 2400), np.repeat(np.arange(48), 50)
        shock = rng.random(48)[cluster]  # all rows of a cluster are lucky, or none is
        assert not safecal.evaluate(shock < special.expit(z), logits=z, cluster=cluster).verdict.shown


def test_where_two_clusters_hold_all_rows_the_worst_range_is_that_of_the_largest_ecd() -> None:
    y, logits, _ = _shifted(4, 4)
    local = safecal.evaluate(y, logits=logits, cluster=np.arange(len(y)) % 2).local
    assert local.worst is not None
    assert (local.column("ecd_high") == np.inf).all()
    assert local.worst.ecd.value == local.column("ecd").max()


def test_something_impossible_in_a_range_with_clusters_is_infinite() -> None:
    p = np.repeat([[0.6, 0.3, 0.1], [0.2, 0.8, 0.0], [0.1, 0.2, 0.7]], 100, axis=0)
    y = np.repeat([0, 1, 2], 100)
    y[150] = 2
    local = safecal.evaluate(y, p, cluster=np.arange(300) % 30).local
    infinite = local.column("ecd") == np.inf
    assert 0 < infinite.sum() < len(local)
    for name in ("ecd_low", "ecd_high", "at_least"):
        np.testing.assert_array_equal(local.column(name) == np.inf, infinite)


def test_documents_keep_ranges_of_clusters_as_they_were_and_prove_no_others() -> None:
    y, logits, cluster = _shifted(300, 1)
    result = safecal.evaluate(y, logits=logits, cluster=cluster)
    read = safecal.Evaluation.from_dict(result.to_dict())
    assert read.local == result.local
    assert read.judge(threshold=0.3).decision == UNSAFE
    again = safecal.Evaluation.of(read.tally)
    assert (again.local.column("ecd_low") <= 0.0).all()
    assert again.verdict.decision == UNDETERMINED


def test_classes_are_called_by_their_labels_at_every_step(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, (6000, 4))
    names = np.array(["ant", "bee", "cat", "dog"])
    y = names[(z + rng.gumbel(size=z.shape)).argmax(axis=1)]
    z[:, 2] += 1.5
    result = safecal.evaluate(y, logits=z, labels=names.tolist())
    place = next(p for p in result.verdict.where if "class" in p.name)
    assert "class cat predicted" in place.name
    assert "class cat" in result.verdict.reason
    assert "class cat happens 0.5" in str(result.verdict.diagnosis)
    read = safecal.Evaluation.from_dict(result.to_dict())
    assert read.local.to_rows() == result.local.to_rows()
    assert "cat" in {row["label"] for row in read.local.to_rows()}
    halves = [
        safecal.categorical(y[part], logits=z[part], labels=names.tolist()).tally()
        for part in (slice(3000), slice(3000, None))
    ]
    assert sum(halves).class_names == ("ant", "bee", "cat", "dog")
    other = safecal.categorical(y, logits=z, labels=names[::-1].tolist()).tally()
    with pytest.raises(MergeError, match="the same classes in the same order"):
        halves[0] + other


def test_bounds_of_ranges_are_found_when_they_are_asked_for(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, 3000)
    tally = safecal.bernoulli(rng.random(3000) < special.expit(z), logits=z).tally()
    local = Local.of(tally)
    untouched = pickle.loads(pickle.dumps(local))
    waiting = bounded_ranges(tally, local.error, local.min_share, 2.0 * (1.0 - 0.95)).waiting
    assert waiting is not None
    assert (waiting.alpha, waiting.weaker) == pytest.approx((0.01 / len(local), 0.1 / len(local)))
    low, high, at_least = firm_and_weak_bounds(waiting.sums, waiting.alpha, waiting.weaker)
    some = local.some([7, 3])
    assert [(one.ecd.low, one.ecd.high, one.at_least) for one in some] == [
        (low[k], high[k], at_least[k]) for k in (7, 3)
    ]
    assert local.some([]) == []
    places = np.array([5, 2])
    np.testing.assert_array_equal(local.lower(places), (low[places], at_least[places]))
    for name, wanted in (("ecd_low", low), ("ecd_high", high), ("at_least", at_least)):
        np.testing.assert_array_equal(local.column(name), wanted)
    np.testing.assert_array_equal(local.lower(places), (low[places], at_least[places]))
    assert untouched[3].ecd.high == high[3]
    assert untouched == local
    assert local.some([7, 3]) == some == [local[7], local[3]]


@pytest.mark.parametrize("level", [0.1, 0.95])
def test_a_range_that_is_not_beyond_its_limit_needs_no_bound(level: float, rng: np.random.Generator) -> None:
    for n, scale, temperature in ((12, 3.0, 2.0), (300, 6.0, 1.5), (5000, 2.0, 1.3)):
        z = rng.normal(0, scale, n)
        tally = safecal.bernoulli(rng.random(n) < special.expit(z / temperature), logits=z).tally()
        local = Local.of(tally, level)
        dimensions = local.column("dimensions")
        assert (local.column("ecd_low") <= local.column("ecd")).all()
        for limit in (0.001, 0.05, 0.2):
            far = (local.column("at_least") > 0.0) & (local.column("ecd") > limit * dimensions)
            far |= local.column("ecd_low") > limit * dimensions
            places = range_places(Local.of(tally, level), Limits(local_threshold=limit, level=level))
            some = bool((local.column("ecd") > limit * dimensions).any())
            assert bool(places) == (far.any() or (some and local.uneven))


def test_a_rare_value_among_few_is_a_range_of_its_own() -> None:
    """3 % of the rows say 99 %, and half of them fail; more than half of all rows say 95 %, and are right."""
    said, chance = np.array([0.99, 0.95, 0.3]), np.array([0.5, 0.95, 0.3])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        kind = rng.choice(3, 3000, p=[0.03, 0.55, 0.42])
        result = safecal.evaluate(rng.random(3000) < chance[kind], said[kind])
        assert result.verdict.decision == UNSAFE
        assert result.verdict.where[0].predicted == pytest.approx(0.99)
        right = safecal.evaluate(rng.random(3000) < said[kind], said[kind])
        assert right.verdict.decision == SAFE
        assert len(right.local) == len({(r.low, r.high) for r in right.local})


def test_rare_values_of_few_rows_are_no_ranges() -> None:
    p = np.repeat([0.1, 0.3, 0.6, 0.9], [1, 40, 40, 40])
    assert min(r.n for r in safecal.evaluate(np.arange(121) % 2, p).local) == 40
