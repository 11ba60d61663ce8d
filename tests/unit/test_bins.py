"""Bins as objects; which row lies in which bin is among the laws."""

import math

import pytest

from safecal import Bins


def test_labels_and_length() -> None:
    assert Bins.uniform(2).labels == ("[0, 0.5)", "[0.5, 1]")
    assert len(Bins.uniform(7)) == 7
    assert Bins.from_edges([-math.inf, 0, math.inf]).labels == ("[-inf, 0)", "[0, inf]")


def test_uniform_bins_of_another_range() -> None:
    assert Bins.uniform(4, -1.0, 1.0).edges == (-1.0, -0.5, 0.0, 0.5, 1.0)


def test_bins_are_equal_when_their_edges_are() -> None:
    assert Bins.uniform(2) == Bins.from_edges([0, 0.5, 1])
    assert hash(Bins.uniform(2)) == hash(Bins.from_edges([0, 0.5, 1]))
    assert Bins.uniform(2) != Bins.uniform(3)


def test_quantile_bins_of_one_value_hold_it() -> None:
    bins = Bins.quantile([0.3, 0.3, 0.3], 5)
    assert bins.edges == (0.3, 0.3)
    assert bins.index([0.3]).tolist() == [0]


def test_no_values_have_no_bins() -> None:
    assert Bins.uniform(3).index([]).tolist() == []


@pytest.mark.parametrize("value", [-1e-300, 1.0000000000000002, math.nan, math.inf])
def test_a_value_outside_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match=r"^`values` must lie within the bins, 0 to 1; got"):
        Bins.uniform(3).index([0.5, value])


def test_infinite_values_lie_in_infinite_bins() -> None:
    assert Bins.from_edges([-math.inf, 0, math.inf]).index([-math.inf, math.inf]).tolist() == [0, 1]
