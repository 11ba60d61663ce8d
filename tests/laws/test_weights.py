"""What a weight means: weight 2 is the row twice for every mean; weight 0 is no row at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .cases import FAMILIES, FIRST, examples, metrics_of, rows_of, same, scale, size, take, weights_of

pytestmark = pytest.mark.no_cover  # the formulas of every family, very often


@pytest.mark.parametrize("name", FIRST)
@examples(25)
@given(data=st.data())
def test_weight_two_is_the_row_twice(name: str, data: st.DataObject) -> None:
    family = FAMILIES[name]
    columns = data.draw(rows_of(name))
    n = size(columns)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)))
    repeated = take(columns, np.repeat(np.arange(n), times))
    bound = scale(family, columns)
    for metric, read in metrics_of(name).items():
        assert same(read(family, columns, times.astype(float)), read(family, repeated, None), bound), metric


@pytest.mark.parametrize("name", FIRST)
@examples(25)
@given(data=st.data())
def test_rows_of_weight_zero_change_no_value(name: str, data: st.DataObject) -> None:
    family = FAMILIES[name]
    columns = data.draw(rows_of(name))
    w = data.draw(weights_of(size(columns)))
    kept = take(columns, w > 0)
    bound = scale(family, columns)
    for metric, read in metrics_of(name).items():
        assert same(read(family, columns, w), read(family, kept, w[w > 0]), bound), metric


@pytest.mark.parametrize("name", FIRST)
@examples(25)
@given(data=st.data())
def test_the_unit_of_the_weights_changes_no_value(name: str, data: st.DataObject) -> None:
    family = FAMILIES[name]
    columns = data.draw(rows_of(name))
    w = data.draw(weights_of(size(columns)))
    bound = scale(family, columns)
    for metric, read in metrics_of(name).items():
        assert same(read(family, columns, w), read(family, columns, 1024.0 * w), bound), metric


@pytest.mark.parametrize("name", FIRST)
@examples(25)
@given(data=st.data())
def test_the_order_of_the_rows_changes_no_value(name: str, data: st.DataObject) -> None:
    family = FAMILIES[name]
    columns = data.draw(rows_of(name))
    n = size(columns)
    w = data.draw(st.none() | weights_of(n))
    order = np.array(data.draw(st.permutations(range(n))))
    moved = take(columns, order)
    bound = scale(family, columns)
    for metric, read in metrics_of(name).items():
        again = read(family, moved, None if w is None else w[order])
        assert same(read(family, columns, w), again, bound), metric


def test_weight_two_is_not_the_row_twice_for_the_sums_that_tests_use() -> None:
    # A weight says how much a row counts, not how often it was seen: the null variance is sum(w^2 v), and one row of
    # weight 2 varies twice as much as two rows.
    columns = {"y_true": np.array([1, 0]), "y_prob": np.array([0.9, 0.3])}
    family = FAMILIES["bernoulli"]
    weighted = family.make(columns).summary([2.0, 2.0])
    twice = family.make(take(columns, [0, 0, 1, 1])).summary()
    assert weighted.ecd == pytest.approx(twice.ecd)
    assert weighted.sum_varentropy == pytest.approx(twice.sum_varentropy)
    for name in ("weight2", "sum_excess_weight2", "sum_excess2_weight2", "sum_varentropy_weight2"):
        assert getattr(weighted, name) == pytest.approx(2.0 * getattr(twice, name)), name
    for name in (
        "weight3",
        "sum_excess_weight3",
        "sum_excess2_weight3",
        "sum_excess3_weight3",
        "sum_third_cumulant_weight3",
    ):
        assert getattr(weighted, name) == pytest.approx(4.0 * getattr(twice, name)), name


def test_an_impossible_row_of_weight_zero_is_counted_and_changes_nothing_else() -> None:
    summary = FAMILIES["bernoulli"].make({"y_true": np.array([1, 1]), "y_prob": np.array([0.0, 0.9])}).summary([0, 1])
    assert (summary.n, summary.n_impossible, summary.weight_impossible) == (2, 1, 0.0)
    assert summary.ecd == summary.ecd_possible == pytest.approx(-0.1 * np.log(9))
