"""Tables: key to Summary."""

import numpy as np
import pytest

import safecal
from safecal import Summary

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
