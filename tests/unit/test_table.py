"""Tables: key to Summary."""

import copy
import json
import pickle
from dataclasses import fields

import numpy as np
import pytest

import safecal
from safecal import Summary, Table, documents
from safecal._sums.splits import by_group
from safecal._sums.summary import COLUMN, as_sums
from safecal._sums.sweep import tabulate
from safecal.errors import MergeError, ShapeError, UnavailableError

RESULT = safecal.evaluate([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], bins=2, by=["b", "a", "a", "b", "b"])


def test_a_table_is_a_mapping_in_the_order_of_its_keys() -> None:
    table = RESULT.groups
    assert list(table) == ["a", "b"]
    assert len(table) == 2
    assert dict(table.items()) == {"a": table["a"], "b": table["b"]}
    assert table["a"].n == 2
    with pytest.raises(KeyError, match="'c'"):
        table["c"]


def test_keys_of_bins_are_their_ends() -> None:
    assert RESULT.bins.keys == ((0.0, 0.5), (0.5, 1.0))
    assert RESULT.bins[(0.0, 0.5)].n == 1


def test_the_columns_by_hand() -> None:
    table = RESULT.bins
    assert table.weights.tolist() == [0.2, 0.8]
    assert table.predicted == pytest.approx([0.2, 0.75])
    assert table.observed == pytest.approx([0.0, 0.75])
    assert table.gaps == pytest.approx([-0.2, 0.0])
    assert table.total.n == 5
    assert table.ece() == pytest.approx(0.2 * 0.2)
    assert table.esce() == pytest.approx(-0.04)


def test_groups_have_no_ece() -> None:
    y, p = [1, 0, 1, 0] * 5, [0.1, 0.1, 0.9, 0.9] * 5
    groups = safecal.evaluate(y, p, by=["all"] * 20).groups
    assert abs(groups.gaps[0]) < 1e-12  # where the ECE over bins is 0.4
    assert safecal.ece(y, p) == pytest.approx(0.4)
    with pytest.raises(UnavailableError, match=r"^ECE is over bins, and this is a table of groups\."):
        groups.ece()


def test_empty_bins_have_no_means_and_no_part_in_ece() -> None:
    table = safecal.evaluate([1, 1], [0.9, 0.9], bins=3).bins
    assert [s.n for s in table.summaries] == [0, 0, 2]
    assert table.summaries[0] == Summary()
    assert np.isnan(table.ecd[:2]).all()
    assert np.isnan(table.predicted[:2]).all()
    assert table.ece() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("p", "y", "over"),
    [
        (0.8, 0.6, True),  # nearer to one half than predicted
        (0.8, 0.95, False),
        (0.2, 0.4, True),
        (0.2, 0.05, False),
        (0.8, 0.2, True),  # beyond one half
        (0.5, 0.9, False),  # one half is never over-confident
    ],
)
def test_which_side_of_the_positive_class_is_over_confident(p: float, y: float, over: bool) -> None:
    n = 20
    table = safecal.evaluate(np.arange(n) < round(y * n), np.full(n, p), bins=1).bins
    assert table.overconfident().tolist() == [over]
    assert table.ece("overconfident" if over else "underconfident") == pytest.approx(abs(y - p))
    assert table.ece("underconfident" if over else "overconfident") == 0.0


def test_the_most_likely_class_is_over_confident_when_it_happens_less_often() -> None:
    table = safecal.evaluate([0, 1, 1, 1], [[0.7, 0.3]] * 4, bins=1).bins
    assert table.top_label
    assert table.overconfident().tolist() == [True]
    assert table.esce() == pytest.approx(0.25 - 0.7)


def test_groups_that_only_one_side_has_survive_a_merge() -> None:
    one = safecal.evaluate([1], [0.7], by=["a"]).groups
    two = safecal.evaluate([0], [0.7], by=["b"]).groups
    merged = one + two
    assert {key: s.n for key, s in merged.items()} == {"a": 1, "b": 1}
    assert merged["a"] == one["a"]


def _many(count: int = 3000) -> safecal.Table:
    rng = np.random.default_rng(0)
    p = rng.random(2 * count)
    return safecal.evaluate(rng.random(2 * count) < p, p, by=np.arange(2 * count) % count).groups


def test_a_table_is_one_array_with_the_columns_of_a_summary() -> None:
    table = RESULT.groups
    assert table.sums.shape == (2, len(fields(Summary)))
    assert table.sums.dtype == np.float64
    for k, f in enumerate(fields(Summary)):
        assert table.sums[:, k].tolist() == [getattr(s, f.name) for s in table.summaries], f.name
    assert table.n.tolist() == [2, 3]
    assert table.n_impossible.tolist() == [0, 0]
    assert table == Table("group", ("a", "b"), table.sums)
    assert table == Table.of_summaries("group", ["a", "b"], table.summaries)


def test_sums_that_do_not_fit_the_keys_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"`sums` must have the shape \(2, 22\); got shape \(1, 22\)") as caught:
        Table("group", ("a", "b"), RESULT.groups.sums[:1])
    assert "Table.of_summaries" in str(caught.value)
    with pytest.raises(ShapeError, match="must have the shape"):
        Table("group", ("a", "b"), RESULT.groups.summaries)


def test_nobody_writes_to_a_table() -> None:
    sums = RESULT.groups.sums.copy()
    table = Table("group", ("a", "b"), sums)
    sums[0] = 7.0
    assert table == RESULT.groups
    for each in (table, table + table, table.worst_first(), RESULT.bins, pickle.loads(pickle.dumps(table))):
        with pytest.raises(ValueError, match="read-only"):
            each.sums[0, 0] = 1.0
    table.weights[0] = 5.0  # a copy
    assert table == RESULT.groups


def test_equal_tables_have_equal_hashes_and_survive_a_pickle() -> None:
    for table in (RESULT.bins, RESULT.groups):
        again = pickle.loads(pickle.dumps(table))
        assert again == table == copy.deepcopy(table)
        assert hash(again) == hash(table)
        assert again.sums is not table.sums
    assert RESULT.bins != RESULT.groups
    assert RESULT.bins != "a table"
    assert RESULT.groups + RESULT.groups != RESULT.groups


def test_empty_rows_are_the_same_however_they_are_written() -> None:
    state = safecal.gaussian([1.0], [0.0], std=1.0).summary()
    nothing = np.full((1, len(fields(Summary))), np.nan)
    nothing[0, 0] = 0.0
    table = Table("group", ("a", "b"), np.concatenate([as_sums([state]), nothing]))
    assert table == Table.of_summaries("group", ("a", "b"), (state, Summary()))
    assert table["b"] == Summary()
    assert table.total == state
    assert (table + table)["a"] == state + state
    assert (table + Table.of_summaries("group", ("b", "a"), (state, Summary())))["b"] == state


def test_families_do_not_mix_in_a_table() -> None:
    state, classes = safecal.gaussian([1.0], [0.0], std=1.0).summary(), RESULT.summary
    message = "must come from the same family; `sum_predicted` exists in one of the two only"
    with pytest.raises(MergeError, match=message):
        Table.of_summaries("group", ("a", "b"), (state, classes))
    one, two = (Table.of_summaries("group", ("a",), (s,)) for s in (state, classes))
    for a, b in ((one, two), (two, one)):
        with pytest.raises(MergeError, match=message):
            a + b
    nothing = Table.of_summaries("group", (), ())
    assert one + nothing == nothing + one == one


def test_the_columns_are_those_of_the_summaries() -> None:
    w = np.array([0.0, 1.0, 2.0, 3.0, 1.0, 0.5])
    by = ["no weight", "a", "a", "impossible", "b", "b"]
    result = safecal.evaluate([0, 1, 0, 1, 1, 0], [0.4, 0.7, 0.2, 0.0, 0.9, 0.6], by=by, bins=7, sample_weight=w)
    classes = safecal.evaluate([0, 2, 1], [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]], bins=4)
    state = safecal.gaussian([1.0, 2.0], [0.0, 0.0], std=1.0).evaluate(by=["a", "b"])
    for table in (result.bins, result.groups, classes.bins, state.groups):
        summaries = table.summaries
        for column, wanted in (
            (table.ecd, [s.ecd for s in summaries]),
            (table.predicted, [s.mean_confidence if table.top_label else s.mean_predicted for s in summaries]),
            (table.observed, [s.accuracy if table.top_label else s.mean_observed for s in summaries]),
            (table.n_impossible, [s.n_impossible for s in summaries]),
            (table.weights, [s.weight / sum(s.weight for s in summaries) for s in summaries]),
        ):
            assert column == pytest.approx(wanted, rel=1e-15, nan_ok=True)
        assert list(table.items()) == list(zip(table.keys, summaries, strict=True))
        assert [table[key] for key in table] == list(summaries)
        assert [table.label(k) for k in range(len(table))] == list(table.labels)
        assert table.total == sum(summaries, Summary())
        assert table.to_dict()["rows"] == [
            {"key": documents.plain(key), "summary": s.to_dict()} for key, s in table.items()
        ]
        assert json.dumps(table.to_dict()) == json.dumps(Table.from_dict(table.to_dict()).to_dict())
        assert Table.from_dict(table.to_dict()) == table


def test_the_worst_come_first_and_groups_without_a_value_last() -> None:
    w = [1.0, 0.0, 1.0, 1.0, 1.0]
    table = safecal.evaluate([1, 1, 0, 1, 1], [0.0, 0.5, 0.9, 0.8, 0.5], by=list("abcde"), sample_weight=w).groups
    assert table.worst_first().keys == ("a", "c", "e", "d", "b")
    assert table.worst_first(2).keys == ("a", "c")
    assert table.worst_first()["c"] == table["c"]


def test_merging_by_key_is_the_sum_of_the_summaries() -> None:
    table = _many()
    other = table.worst_first(1000)
    merged = table + Table("group", tuple(key + 2500 for key in other.keys), other.sums)
    wanted = dict(table.items())
    for key, s in other.items():
        wanted[key + 2500] = wanted.get(key + 2500, Summary()) + s
    assert dict(merged.items()) == wanted
    assert merged.keys == tuple(wanted)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", ["bernoulli", "categorical", "gaussian"])
def test_more_groups_than_rows_of_a_block_are_summed_as_few_are(family: str, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    n = 80_000  # more than a block
    by = rng.permutation(np.arange(n) % 70_000)
    z = rng.normal(0, 2, (n, 3))
    predictions = {
        "bernoulli": lambda: safecal.bernoulli(rng.integers(0, 2, n), logits=z[:, 0]),
        "categorical": lambda: safecal.categorical(rng.integers(0, 3, n), logits=z),
        "gaussian": lambda: safecal.gaussian(z[:, 0], z[:, 1], std=1.0),
    }[family]()
    w = rng.random(n) if weighted else None
    table = tabulate(predictions, [by_group(predictions, by)], w)[0]
    assert table.keys == tuple(range(70_000))
    scored = predictions.score()
    weight = np.ones(n) if w is None else w
    for name, column in (("n", np.ones(n)), ("weight", weight), ("sum_excess", weight * scored.excess)):
        wanted = np.bincount(by, weights=column)
        assert np.abs(table.sums[:, COLUMN[name]] - wanted).max() < 1e-12 * max(np.abs(wanted).max(), 1.0), name


def test_no_summary_is_made_for_what_is_read_off_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _many()
    made: list[int] = []
    monkeypatch.setattr("safecal._sums.summary._summary", lambda row: made.append(1))
    _ = table.weights, table.predicted, table.observed, table.ecd, table.gaps, table.n, table.intervals()
    _ = table.esce(), table.overconfident(), table.worst_first(), table + table, table == table
    _ = table.to_dict(), hash(table), table + table.worst_first(5)
    assert not made
