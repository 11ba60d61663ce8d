"""The front door: which map is taken, why, and what is said where a fix does harm."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal import maps
from safecal.errors import OptionError, RangeError, UnavailableError


def two(n: int = 3000, slope: float = 0.8, shift: float = 1.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, n)
    return rng.random(n) < special.expit(slope * z + shift), z


def names(recalibration: maps.Recalibration) -> list[str]:
    return [row.name for row in recalibration.table]


def taken(recalibration: maps.Recalibration) -> type[maps.Map]:
    assert isinstance(recalibration.map, maps.Safe)
    return type(recalibration.map.map_)


@pytest.mark.parametrize(
    ("slope", "shift", "kind", "words"),
    [
        (1.0, 0.0, maps.Identity, "Nothing is shown to be wrong"),
        (0.5, 0.0, maps.Temperature, "Its log-odds are too large"),
        (2.0, 0.0, maps.Temperature, "Its log-odds are too small"),
        (0.8, 1.3, maps.Affine, "It happens more often than predicted"),
        (0.8, -1.3, maps.Affine, "It happens less often than predicted"),
    ],
)
def test_the_simplest_map_that_is_as_good_is_taken(slope: float, shift: float, kind: type, words: str) -> None:
    y, z = two(slope=slope, shift=shift, seed=1)
    recalibration = safecal.recalibrate(y, logits=z)
    assert taken(recalibration) is kind
    assert recalibration.reason.startswith(words)
    assert names(recalibration) == ["identity", "temperature", "affine", "beta", "isotonic"]
    assert recalibration.after.verdict.decision == "SAFE"
    assert recalibration.warnings == ()


def test_what_is_wrong_is_what_the_verdict_says(rng: np.random.Generator) -> None:
    z = rng.normal(-7.0, 1.0, 20_000)  # rare events: a shift looks like a temperature to a test of the slope alone
    happened = rng.random(20_000) < 1.0 / (1.0 + np.exp(-z - 1.6))
    fixed = safecal.recalibrate(happened, logits=z, method="affine")
    assert fixed.before.verdict.diagnosis is not None
    assert fixed.before.verdict.diagnosis.cause == "shifted"
    assert fixed.reason.startswith("It happens more often than predicted.")


def test_the_table_is_of_rows_that_no_map_was_fitted_to() -> None:
    y, z = two(600)
    recalibration = safecal.recalibrate(y, logits=z, safe=False)
    fold = np.random.default_rng(0).permutation(600) % 5
    held_out = np.empty(600)
    for k in range(5):
        model = maps.Affine().fit(y[fold != k], logits=z[fold != k])
        held_out[fold == k] = model.apply_logits(logits=z[fold == k])
    rows = {row.name: row for row in recalibration.table}
    assert rows["affine"].nll == pytest.approx(safecal.nll(y, logits=held_out))
    assert rows["affine"].ecd == pytest.approx(safecal.ecd(y, logits=held_out))
    assert (rows["affine"].n, rows["affine"].parameters) == (600, 2)
    best = min(recalibration.table, key=lambda row: row.nll)
    difference = np.logaddexp(0, np.where(y, -z, z)) - np.logaddexp(0, np.where(y, -held_out, held_out))
    if best.name == "affine":
        assert rows["identity"].difference == pytest.approx(difference.mean())
        assert rows["identity"].error == pytest.approx(stats.sem(difference))
    assert isinstance(recalibration.map, maps.Affine)
    assert recalibration.after.nll == pytest.approx(rows["affine"].nll)


def test_clusters_widen_the_standard_error_and_weights_count() -> None:
    y, z = two(500)
    cluster = np.repeat(np.arange(25), 20)
    twice = np.repeat(y, 2), np.repeat(z, 2)
    alone, clustered = (
        safecal.recalibrate(twice[0], logits=twice[1], cluster=c, method="affine", safe=False).table[0].error
        for c in (None, np.repeat(cluster, 2))
    )
    assert clustered > 1.2 * alone
    weighted = safecal.recalibrate(y, logits=z, sample_weight=np.where(z > 0, 2.0, 1.0), safe=False)
    assert weighted.table[0].nll == pytest.approx(safecal.nll(y, logits=z, sample_weight=np.where(z > 0, 2.0, 1.0)))


def test_many_classes_and_states_have_their_own_maps() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (2000, 3))
    y = (0.5 * z + [0.0, 0.0, 1.0] + rng.gumbel(size=z.shape)).argmax(axis=1)
    recalibration = safecal.recalibrate(y, logits=z)
    assert names(recalibration) == ["identity", "temperature", "affine", "vector"]
    assert taken(recalibration) is maps.Affine
    x = rng.normal(0.0, [1.0, 2.0], (1000, 2))
    states = safecal.recalibrate(safecal.gaussian(x, np.zeros((1000, 2)), std=1.0))
    assert names(states) == ["identity", "temperature", "axes"]
    assert taken(states) is maps.Axes
    assert states.reason.startswith("It is over-confident.")
    assert states.map.apply_states(std=[1.0, 1.0])[1] > 1.9


@pytest.mark.proof
def test_few_rows_are_left_as_they_are() -> None:
    y, z = two(19)
    few = safecal.recalibrate(y, logits=z)
    assert isinstance(few.map, maps.Identity)
    assert few.reason == "Predictions are left as they are: 19 rows are too few to try maps on; 20 are needed."
    assert "1 row is too few to try maps on" in safecal.recalibrate([1], [0.3]).reason
    assert few.table == ()
    assert "19 rows" in repr(few)
    assert "<table>" not in few._repr_html_()
    y, z = two(40, slope=0.0, shift=0.0, seed=3)
    some = safecal.recalibrate(y, logits=3 * z)
    assert isinstance(some.map, maps.Identity)
    assert some.reason.startswith("Predictions are left as they are: ")
    with pytest.raises(UnavailableError):
        safecal.recalibrate(y, logits=3 * z, method="identity")


def test_a_map_that_cannot_be_fitted_is_listed_with_its_reason() -> None:
    y, z = two(45)
    recalibration = safecal.recalibrate(y, logits=z)
    refused = {row.name: row.refusal for row in recalibration.table if row.refusal}
    assert refused == {"isotonic": "Isotonic needs at least 50 rows; got 45"}
    assert "not fitted: Isotonic needs" in repr(recalibration)
    y, z = two(2000, slope=0.5)
    certain = safecal.recalibrate(y, np.round(special.expit(2.0 * z), 2))
    assert "not fitted: no temperature explains an outcome of probability 0" in " ".join(repr(certain).split())
    assert max(map(len, repr(certain).splitlines())) <= 80
    with pytest.raises(UnavailableError, match="Isotonic needs at least 50 rows"):
        safecal.recalibrate(y[:45], logits=z[:45], method="isotonic")


def test_outcomes_that_were_called_impossible_leave_only_stairs() -> None:
    y, z = two(800)
    p = special.expit(z)
    p[:4] = 1.0 - y[:4]
    recalibration = safecal.recalibrate(y, p)
    assert taken(recalibration) is maps.Isotonic
    assert "an outcome of probability 0" in next(row.refusal for row in recalibration.table if row.name == "affine")


def test_a_method_may_be_named() -> None:
    y, z = two()
    recalibration = safecal.recalibrate(y, logits=z, method="beta")
    assert taken(recalibration) is maps.Beta
    assert names(recalibration) == ["identity", "beta"]
    assert "simplest" not in recalibration.reason
    plain = safecal.recalibrate(y, logits=z, method="temperature", safe=False)
    assert isinstance(plain.map, maps.Temperature)
    assert plain.apply(logits=z) == pytest.approx(plain.map.apply(logits=z))


def test_what_becomes_worse_is_told() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(2.0, 1.0, 4000)
    y = rng.random(4000) < special.expit(z - 2.0)
    recalibration = safecal.recalibrate(y, logits=z, method="temperature", safe=False, by=np.arange(4000) % 2)
    assert recalibration.warnings == ()
    z = rng.normal(0.0, 2.0, 4000)
    y = rng.random(4000) < special.expit(np.where(z > 0, 3.0 * z, 0.2 * z))
    group = np.where(z > 0, "up", "down")
    worse = safecal.recalibrate(y, logits=z, method="temperature", safe=False)
    held = maps.Temperature().fit(y, logits=z).apply_predictions(safecal.bernoulli(y, logits=z)).evaluate(by=group)
    as_given = safecal.bernoulli(y, logits=z).evaluate(by=group)
    from safecal.maps import _list_what_is_worse

    def warnings(before: safecal.Evaluation, after: safecal.Evaluation) -> tuple[str, ...]:
        return _list_what_is_worse(before, after, after.nll)

    texts = warnings(held, as_given)
    assert worse.before.nll == pytest.approx(as_given.nll)
    assert any(text.startswith("NLL of group 'up'") for text in (*texts, *warnings(as_given, held)))
    flat = safecal.evaluate(y, np.full(4000, 0.5))
    assert [text.split(":")[0] for text in warnings(safecal.evaluate(y, logits=z), flat)][:1] == ["NLL becomes worse"]
    assert any(text.startswith("accuracy falls") for text in warnings(safecal.evaluate(y, logits=z), flat))
    honest = safecal.evaluate(z > 0, logits=3 * z)
    assert any(text.startswith("the verdict was") for text in warnings(honest, safecal.evaluate(z > 0, logits=-z)))
    assert any(text.startswith("the worst range") for text in warnings(honest, safecal.evaluate(z > 0, logits=-z)))


def test_groups_have_maps_of_their_own() -> None:
    y, z = two(4000, shift=0.0, slope=1.0)
    group = np.arange(4000) % 2
    recalibration = safecal.recalibrate(y, logits=np.where(group, 3.0, 1.0) * z, by=group)
    assert recalibration.after.groups is not None
    p = recalibration.apply(logits=[3.0, 3.0], by=[0, 1])
    assert p[0] > p[1]


def test_text_and_frames() -> None:
    pytest.importorskip("pandas")
    y, z = two(1000)
    recalibration = safecal.recalibrate(y, logits=z)
    text = repr(recalibration)
    assert text.startswith("safecal recalibration: 1000 rows, two classes\n\nIt happens more often than predicted.")
    assert "map             NLL     above best" in text
    assert max(map(len, text.splitlines())) <= 80
    frame = recalibration.to_frame("pandas")
    assert list(frame["name"]) == names(recalibration)
    assert frame["parameters"].tolist()[:4] == [0, 1, 2, 3]
    assert '<th scope="col">worst</th>' in recalibration._repr_html_()


def test_options_are_checked() -> None:
    y, z = two(100)
    with pytest.raises(OptionError, match="`method` must be"):
        safecal.recalibrate(y, logits=z, method="platt")
    with pytest.raises(RangeError, match="`alpha` must lie strictly between"):
        safecal.recalibrate(y, logits=z, alpha=0.7)
    with pytest.raises(OptionError, match="`safe` must be True or False"):
        safecal.recalibrate(y, logits=z, safe="yes")  # type: ignore[arg-type]
    density = safecal.density(z, log_density=lambda v: -0.5 * v * v, sampler=lambda rng: rng.normal(size=100))
    with pytest.raises(UnavailableError, match="unnormalised density has no NLL"):
        safecal.recalibrate(density)


@pytest.mark.proof
def test_no_variation_at_all_is_no_error() -> None:
    for y in (np.zeros(100), np.ones(100), np.arange(100) % 2):
        for z in (np.zeros(100), np.full(100, 2.0), np.where(y > 0, 3.0, -3.0), np.where(y > 0, -3.0, 3.0)):
            recalibration = safecal.recalibrate(y, logits=z)
            p = recalibration.apply(logits=z)
            assert np.isfinite(p).all()
            assert ((p >= 0.0) & (p <= 1.0)).all()


def many(n: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, (n, classes))
    return (0.6 * z + rng.normal(0.0, 0.5, classes) + rng.gumbel(size=z.shape)).argmax(axis=1), z


def test_with_few_rows_a_class_no_map_with_a_number_for_each_is_tried_unless_asked_for() -> None:
    y, z = many(190, 20)
    rows = {row.name: row for row in safecal.recalibrate(y, logits=z).table}
    assert rows["affine"].refusal == rows["vector"].refusal == "9.5 rows per class are too few; 10 are needed"
    assert rows["temperature"].refusal == ""
    asked = safecal.recalibrate(y, logits=z, method="affine", safe=False)
    assert isinstance(asked.map, maps.Affine)


@pytest.mark.parametrize("classes", [5, 140])
def test_a_fit_that_begins_near_another_ends_where_it_would_end_alone(classes: int) -> None:
    # 140 classes have more numbers than those that the matrix of second derivatives is made for.
    y, z = many(1500, classes)
    whole = maps.Affine().fit(y, logits=z)
    alone = maps.Affine().fit(y[:1200], logits=z[:1200])
    near = whole._similar_copy().fit(y[:1200], logits=z[:1200])
    assert near.slope_ == pytest.approx(alone.slope_, rel=0.01)
    assert np.abs(np.subtract(near.shift_, alone.shift_)).max() < 0.03
    again = whole.fit(y[:1200], logits=z[:1200])  # what it was fitted to before leaves no trace
    assert again.shift_ == alone.shift_


def test_what_safety_costs_is_told_where_nll_becomes_worse() -> None:
    y, z = two(200, 1.0, 0.0, seed=2)
    recalibration = safecal.recalibrate(y, logits=z)
    assert taken(recalibration) is maps.Identity
    assert recalibration.reason.endswith(", so that over-confidence is ruled out.")
    (warning,) = (text for text in recalibration.warnings if text.startswith("NLL"))
    assert "Ruling over-confidence out costs 0.0" in warning
    alone = safecal.recalibrate(y, logits=z, safe=False)
    assert not [text for text in alone.warnings if text.startswith("NLL")]


def test_predictions_that_are_all_alike_are_told_to_be_too_high_or_too_low() -> None:
    rng = np.random.default_rng(0)
    rare = rng.random(500) < 0.3
    for y, p, words in ((rare, 0.7, "less"), (rare, 0.5, "less"), (np.ones(100), 0.7, "more"), (~rare, 0.5, "more")):
        recalibration = safecal.recalibrate(y, np.full(len(y), p))
        assert recalibration.reason.startswith(f"It happens {words} often than predicted.")


def test_a_group_that_is_too_small_is_named_with_what_to_do() -> None:
    y, z = two(400)
    alone = np.array(["many"] * 399 + ["one"])
    recalibration = safecal.recalibrate(y, logits=z, by=alone)
    assert isinstance(recalibration.map, maps.Identity)
    assert "'one' (1 row: needs 30)" in recalibration.reason
    assert recalibration.reason.endswith("Put small groups together under one name, or leave groups out.")
    plain = safecal.recalibrate(y, logits=z, by=alone, safe=False)
    assert plain.map.apply(logits=[0.0], by=["one"]) == pytest.approx(
        plain.map.apply(logits=[0.0], by=["many"]), abs=0.05
    )
