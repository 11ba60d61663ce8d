"""Each group that was named is held to the three limits of the average, and what is said of it names the scale."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Evaluation, Tally
from safecal._sums.tally_parts import tallies_by_column
from safecal.errors import OptionError, TruthError
from safecal.judge.groups import judge_groups
from safecal.judge.verdict import SAFE, UNDETERMINED, UNSAFE
from safecal.options import Limits

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def _vague(n: int, seed: int = 0, times: float = 2.0) -> Rows:
    """Return forecasts near one half; those of site B have too large logits: few nats, but a high temperature."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 0.4, n)
    y = rng.random(n) < special.expit(z)
    site = np.where(np.arange(n) % 6 == 0, "B", "A")
    z[site == "A"] = 0.8 * z[site == "A"]
    return y, np.where(site == "B", times * z, z), site


def _judged(n: int = 24_000, times: float = 2.0, **more: object) -> Evaluation:
    y, logits, site = _vague(n, times=times)
    return safecal.evaluate(y, logits=logits, by={"site": site}, **more)


def test_a_group_of_vague_predictions_is_unsafe_by_its_temperature() -> None:
    result = _judged()
    y, logits, _ = _vague(24_000)
    alone = safecal.evaluate(y, logits=logits)
    assert alone.verdict.on_average == SAFE
    assert not alone.verdict.shown
    assert result.groups is not None
    assert result.groups["B"].ecd < 0.1
    verdict = result.verdict
    assert verdict.decision == UNSAFE
    place = verdict.where[0]
    assert (place.name, place.by, place.shown, place.limit) == ("site B", "temperature", True, 1.5)
    assert place.temperature is not None
    assert 1.5 < place.temperature.low < 2.0 < place.temperature.high
    said = f"its logits are too large (4000 rows; at least {place.temperature.low:.3g} times, where 1.5 is allowed)"
    assert f"in site B {said}" in verdict.reason
    assert result.judge(max_temperature=3.0, local_threshold=1.0).decision == SAFE


def test_every_surface_names_the_scale(tmp_path: Path) -> None:
    result = _judged()
    place = result.verdict.where[0]
    assert place.temperature is not None
    assert f"T {place.temperature.low:.3g}" in repr(result)
    assert f"T {place.temperature.low:.3g}" in result._repr_html_()
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["verdict"]["where"][0]["by"] == "temperature"
    assert document["verdict"]["where"][0]["temperature"]["low"] == place.temperature.low
    assert Evaluation.from_dict(document) == result
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "its logits are too large" in page
    assert "temperature too high" in page


def test_states_are_held_to_their_temperature_too(rng: np.random.Generator) -> None:
    n = 30_000
    site = np.where(np.arange(n) % 10 == 0, "B", "A")
    x = rng.normal(0.0, np.where(site == "B", math.sqrt(1.7), 0.98), n)
    result = safecal.gaussian(x, np.zeros(n), std=1.0).evaluate(by={"site": site}, threshold=1.0)
    assert result.verdict.decision == UNSAFE
    assert result.verdict.where[0].by == "temperature"
    assert "outcomes lie farther out than it says (3000 rows; its temperature is at least 1." in result.verdict.reason


@pytest.mark.parametrize("classes", [3, 10])
def test_many_classes_are_held_to_their_temperature_too(classes: int, rng: np.random.Generator) -> None:
    z = rng.normal(0.0, 0.4, (12_000, classes))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    site = np.where(np.arange(len(z)) % 3 == 0, "B", "A")
    logits = z * np.where(site == "B", 2.5, 0.9)[:, None]
    verdict = safecal.evaluate(y, logits=logits, by=site, threshold=1.0, local_threshold=1.0).verdict
    assert [(place.name, place.by) for place in verdict.shown] == [("group B", "temperature")]


def test_a_small_hot_group_is_suspected_and_withholds_safe() -> None:
    y, logits, site = _vague(24_000, seed=3)
    kept = (site == "A") | (np.arange(24_000) % 36 == 0)
    verdict = safecal.evaluate(y[kept], logits=logits[kept], by={"site": site[kept]}, local_threshold=1.0).verdict
    assert verdict.decision == UNDETERMINED
    assert [(place.name, place.by, place.shown) for place in verdict.where] == [("site B", "temperature", False)]
    assert "in site B its logits may be too large (667 rows; about " in verdict.reason
    assert "More rows would decide." in verdict.reason


def test_with_clusters_a_temperature_is_suspected_at_most() -> None:
    result = _judged(cluster=np.arange(24_000) // 12, local_threshold=4.0)
    assert result.verdict.decision == UNDETERMINED
    assert [(place.name, place.by, place.shown) for place in result.verdict.where] == [("site B", "temperature", False)]
    assert "a temperature of a group that is too high can be suspected, but not shown." in result.verdict.reason
    assert result.group_verdict("B").temperature.low == 0.0
    assert result.group_verdict("A").decision == SAFE


def test_nothing_is_kept_for_groups_that_were_not_named() -> None:
    y, logits, _ = _vague(600)
    assert safecal.bernoulli(y, logits=logits).tally().group_nodes is None


def test_an_infinite_limit_of_temperature_is_never_reached() -> None:
    assert _judged(max_temperature=math.inf).verdict.shown == ()


# Groups one by one


def test_a_group_has_a_verdict_of_its_own_at_the_level_that_all_share() -> None:
    result = _judged()
    bad, good = result.group_verdict("B"), result.group_verdict("A")
    assert (bad.decision, good.decision) == (UNSAFE, SAFE)
    assert bad.place == result.verdict.where[0]
    assert good.place is None
    assert bad.ecd.level == bad.temperature.level == pytest.approx(1.0 - 2.0 * 0.01 / 2 / 3)
    assert good.temperature.high < 1.5
    assert good.ratio is not None
    assert good.ratio.high < 3.0
    assert str(good) == "SAFE: in site A over-confidence beyond the limits is ruled out (20000 rows)."
    assert str(bad).startswith("UNSAFE: in site B its logits are too large (4000 rows; at least 1.")


def test_the_temperature_of_a_group_is_that_of_its_rows_alone() -> None:
    y, logits, site = _vague(24_000)
    temperature = _judged().group_verdict("B").temperature
    rows = safecal.implied_temperature(
        safecal.bernoulli(y[site == "B"], logits=logits[site == "B"]), level=temperature.level
    )
    assert temperature.value == pytest.approx(rows.value, rel=1e-6)
    assert temperature.low == pytest.approx(rows.low, rel=0.02)
    assert temperature.high == pytest.approx(rows.high, rel=0.03)


def test_a_verdict_of_a_group_is_neither_true_nor_false() -> None:
    with pytest.raises(TruthError, match=r"group_verdict\(key\)\.decision"):
        bool(_judged(600).group_verdict("A"))


def test_groups_that_are_not_there_are_refused() -> None:
    with pytest.raises(OptionError, match="must be one of the groups: 'A', 'B'; got 'C'"):
        _judged(600).group_verdict("C")
    with pytest.raises(OptionError, match="by="):
        safecal.evaluate([1, 0], [0.7, 0.4]).group_verdict("A")


def test_certain_predictions_withhold_safe_from_groups() -> None:
    p = np.tile([0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7], 2000)
    y = np.tile([1, 1, 1, 0, 0, 0, 1, 1, 1, 1], 2000)
    by = np.arange(len(p)) % 2
    assert safecal.evaluate(y, p, by=by).group_verdict(0).decision == SAFE
    assert safecal.evaluate(np.append(y, 1), np.append(p, 1.0), by=np.append(by, 0)).group_verdict(0).decision != SAFE


# Groups that are too small


def test_groups_too_small_to_judge_are_listed() -> None:
    y, logits, site = _vague(24_000, times=0.8)
    site = site.astype(object)
    site[1:13], site[13:53], site[53:108] = "X", "Y", "Z"
    verdict = safecal.evaluate(y, logits=logits, by={"site": site}).verdict
    assert verdict.decision == SAFE
    assert verdict.too_small.count == 3
    assert verdict.too_small.names == ("site X", "site Y", "site Z")
    assert verdict.too_small.rows == (12, 40, 55)
    said = "3 groups are too small to judge: site X (12 rows), site Y (40 rows), site Z (55 rows)."
    assert said in verdict.reason


def test_very_many_groups_that_are_too_small_make_a_short_text(tmp_path: Path) -> None:
    y, logits, _ = _vague(24_000, times=0.8)
    result = safecal.evaluate(y, logits=logits, by=np.arange(24_000) // 4)
    small = result.verdict.too_small
    assert small.count == 6000
    assert len(small.names) == 20
    said = "6000 groups are too small to judge: group 0 (4 rows), group 1 (4 rows), group 2 (4 rows) and 5997 more."
    assert said in result.verdict.reason
    assert len(str(result.verdict)) < 500
    result.report(tmp_path / "page.html")
    assert "6000 groups are too small to judge" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_averages_alone_name_no_group_that_is_too_small() -> None:
    verdict = safecal.evaluate([1, 0, 1], [0.8, 0.3, 0.6], by=list("aab"), rule="average").verdict
    assert verdict.too_small.count == 0


# Sums


def test_tallies_of_parts_add_up_to_the_same_groups() -> None:
    y, logits, site = _vague(6000)
    whole = safecal.bernoulli(y, logits=logits).tally(by={"site": site}).in_order()
    parts = [slice(0, 1), slice(1, 2500), slice(2500, 6000)]
    tallies = [safecal.bernoulli(y[p], logits=logits[p]).tally(by={"site": site[p]}) for p in parts]
    merged = sum(tallies[1:], tallies[0]).in_order()
    assert merged.group_nodes is not None
    assert whole.group_nodes is not None
    assert merged.group_nodes.keys == whole.group_nodes.keys
    np.testing.assert_allclose(merged.group_nodes.sums, whole.group_nodes.sums, rtol=1e-12)
    assert pickle.loads(pickle.dumps(merged)) == merged


def test_an_early_document_without_nodes_is_read_and_its_groups_are_not_called_safe() -> None:
    result = _judged()
    document = result.to_dict()
    del document["tally"]["group_nodes"]
    for place in document["verdict"]["where"]:
        del place["temperature"]
    early = Evaluation.from_dict(document)
    again = early.judge()
    assert again.shown == ()
    assert "The temperature of groups is not known, and was not judged." in again.reason
    assert early.group_verdict("A").decision == UNDETERMINED
    assert math.isnan(early.group_verdict("A").temperature.value)
    assert (result.tally + Tally.from_dict(document["tally"])).group_nodes is None


# Weights


def _seldom(rng: np.random.Generator, times: float) -> dict[str, np.ndarray]:
    """Return rare events, announced as often as they happen but in one ward, with weights."""
    n = 60_000
    ward = np.arange(n) % 5
    y = rng.random(n) < np.where(ward == 1, times, 1.0) * 0.002
    return {"y_true": y, "y_prob": np.full(n, 0.002), "by": ward, "sample_weight": rng.gamma(4.0, 0.25, n)}


def test_mistakes_of_a_weighted_group_are_counted(rng: np.random.Generator) -> None:
    limits = {"max_temperature": 100.0, "bins": None}
    verdict = safecal.evaluate(**_seldom(rng, 6.0), **limits).verdict
    assert verdict.decision == UNSAFE
    assert [(place.name, place.by) for place in verdict.shown] == [("group 1", "mistakes")]
    assert not safecal.evaluate(**_seldom(rng, 1.0), **limits).verdict.where


def test_weights_that_are_all_one_change_nothing() -> None:
    y, logits, site = _vague(6000)
    plain = safecal.evaluate(y, logits=logits, by=site)
    weighted = safecal.evaluate(y, logits=logits, by=site, sample_weight=np.ones(6000))
    for key in "AB":
        a, b = plain.group_verdict(key), weighted.group_verdict(key)
        assert a.decision == b.decision
        for name in ("ecd", "temperature", "ratio"):
            for end in ("value", "low", "high"):
                assert getattr(getattr(a, name), end) == pytest.approx(getattr(getattr(b, name), end), rel=1e-6), name


def test_of_an_early_document_every_mistake_weighs_as_much_as_the_heaviest(rng: np.random.Generator) -> None:
    result = safecal.evaluate(**_seldom(rng, 6.0), bins=None, max_temperature=100.0)
    document = result.to_dict()
    del document["tally"]["group_nodes"]
    early = Evaluation.from_dict(document).group_verdict(1).ratio
    now = result.group_verdict(1).ratio
    assert early is not None
    assert now is not None
    assert early.low < now.low
    assert early.high >= now.high


def test_the_degrees_of_groups_are_found_once_and_not_for_each_group_anew() -> None:
    tally = safecal.bernoulli([1, 0, 1, 1], [0.8, 0.3, 0.6, 0.9]).evaluate(by=["a", "a", "b", "b"]).tally
    assert tally.groups is not None
    judged = judge_groups(tally.groups, Limits(), tally)
    assert judged.degree is judged.degree


def test_a_document_with_clusters_is_never_judged_better_than_it_was(rng: np.random.Generator) -> None:
    n = 15_000
    z = rng.normal(0, 2, n)
    y, site = rng.random(n) < 1 / (1 + np.exp(-z)), np.where(rng.random(n) < 0.1, "north", "south")
    said = np.where(site == "north", 2.5, 0.9) * z
    std = np.where(site == "north", 0.6, 1.05)
    for predictions in (safecal.bernoulli(y, logits=said), safecal.gaussian(rng.normal(size=n), np.zeros(n), std=std)):
        result = predictions.evaluate(by=site, cluster=np.arange(n) // 50)
        assert result.verdict.decision == "UNSAFE"
        again = safecal.Evaluation.from_dict(json.loads(json.dumps(result.to_dict())))
        assert again.verdict.decision == "UNSAFE"
        for verdict in (again.judge(), again.judge(max_ratio=2.0), safecal.Evaluation.of(again.tally).verdict):
            assert verdict.decision != "SAFE"
            assert "group north" in [place.name for place in verdict.where]
            assert "Groups have no bounds: a document does not tell their clusters apart." in verdict.reason
            assert "no group" not in verdict.reason


def test_each_of_several_columns_is_judged_by_itself(rng: np.random.Generator) -> None:
    n = 12_000
    z, site, ward = rng.normal(0, 2, n), rng.integers(0, 10, n), rng.integers(0, 40, n)
    y, said = rng.random(n) < special.expit(z), np.where(site == 3, 1.9, 0.93) * z
    for more in ({}, {"cluster": np.arange(n) // 4}, {"sample_weight": rng.uniform(0.5, 1.5, n)}):
        one = safecal.evaluate(y, logits=said, by={"site": site}, **more).verdict
        both = safecal.evaluate(y, logits=said, by={"site": site, "ward": ward}, **more)
        assert one.decision == both.verdict.decision == UNSAFE
        assert both.verdict.where[0].name == one.where[0].name == "site 3"
        assert both.verdict.where[0].n == int((site == 3).sum())
    again = Evaluation.from_dict(json.loads(json.dumps(both.to_dict())))
    assert again.judge().decision == UNSAFE


def test_a_comma_in_the_name_of_a_column_hides_none(rng: np.random.Generator) -> None:
    n = 12_000
    z, site, ward = rng.normal(0, 2, n), rng.integers(0, 10, n), rng.integers(0, 40, n)
    y, said = rng.random(n) < special.expit(z), np.where(site == 3, 1.9, 0.93) * z
    verdict = safecal.evaluate(y, logits=said, by={"site, old": site, "ward": ward}).verdict
    assert verdict.decision == UNSAFE
    assert verdict.where[0].name == "column 1 of site, old, ward 3"


def test_labels_are_judged_by_themselves_beside_other_groups(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, (3000, 6))
    y = (rng.random(z.shape) < special.expit(z)).astype(int)
    said = z * [1.9, 0.93, 0.93, 0.93, 0.93, 0.93]
    for by in (None, {"site": rng.integers(0, 60, 3000)}):
        verdict = safecal.evaluate(y, logits=said, by_label=True, labels=list("ABCDEF"), by=by).verdict
        assert verdict.decision == UNSAFE
        assert "label A" in [place.name for place in verdict.shown]


def test_columns_of_groups_add_up(rng: np.random.Generator) -> None:
    n = 500
    z = rng.normal(0, 2, n)
    site = np.array(["a", "b", None], dtype=object)[rng.integers(0, 3, n)]
    by = {"site": site, "day": rng.integers(0, 4, n)}
    options = {"cluster": np.arange(n) // 2, "sample_weight": rng.gamma(2.0, 1.0, n)}
    predictions = safecal.bernoulli(rng.random(n) < special.expit(z), logits=z)
    for name, column in zip(by, tallies_by_column(Tally.of(predictions, by=by, **options)), strict=True):
        alone = Tally.of(predictions, by={name: by[name]}, **options)
        assert column.groups is not None
        assert alone.groups is not None
        assert column.groups.name == alone.groups.name == name
        order = [column.groups.keys.index(key) for key in alone.groups.keys]
        np.testing.assert_allclose(column.groups.sums[order], alone.groups.sums, rtol=1e-12)
        assert column.pairs is not None
        assert alone.pairs is not None
        np.testing.assert_allclose(column.pairs.sums.sum(axis=0), alone.pairs.sums.sum(axis=0), rtol=1e-12)
        assert len(column.pairs) == len(alone.pairs)
    assert tallies_by_column(Tally.of(predictions)) == tallies_by_column(alone) == []


def test_adding_clusters_takes_no_suspicion_away() -> None:
    for seed in range(3):  # a tenth says 97 %, and 85 % happen; many others say 96 %, and are right
        rng = np.random.default_rng(seed)
        kind, z = rng.choice(3, 10_000, p=[0.1, 0.4, 0.5]), rng.normal(0, 1.5, 10_000)
        chance = special.expit(z)
        said = np.select([kind == 0, kind == 1], [0.97, 0.96], chance)
        y = rng.random(10_000) < np.select([kind == 0, kind == 1], [0.85, 0.96], chance)
        assert safecal.evaluate(y, said).verdict.decision == UNSAFE
        for rows in (1, 5):
            assert safecal.evaluate(y, said, cluster=np.arange(10_000) // rows).verdict.decision != SAFE
