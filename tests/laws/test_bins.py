"""Each row lies in exactly one bin, and ECD does not know about bins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safecal
from safecal import Bins
from safecal.errors import UnavailableError

from .cases import BINS, FAMILIES, FIRST_CLASSIFIERS, examples, rows_of, same, scale, size, weights_of


def _slow(edges: tuple[float, ...], value: float) -> int:
    """``[a, b)``, the last bin closed: slow and obvious."""
    last = len(edges) - 2
    holding = [k for k in range(last + 1) if edges[k] <= value < edges[k + 1] or (k == last and value == edges[-1])]
    assert len(holding) == 1
    return holding[0]


def _around(edges: tuple[float, ...]) -> list[float]:
    inside = [e for edge in edges for e in (np.nextafter(edge, -np.inf), edge, np.nextafter(edge, np.inf))]
    return [float(v) for v in inside if edges[0] <= v <= edges[-1]]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1.0), (0.5, 1.0), (0.0, math.log(2)), (0.0, math.log(1000)), (-3.0, 7.0), (1e9, 1e9 + 1), (1e-9, 3e-9)],
)
def test_uniform_bins_agree_with_a_loop_on_and_next_to_their_edges(low: float, high: float) -> None:
    rng = np.random.default_rng(1)
    for count in [*range(1, 41), 64, 99, 100, 101, 128, 150, 199, 200]:
        bins = Bins.uniform(count, low, high)
        values = _around(bins.edges) + rng.uniform(low, high, 20).tolist()
        assert bins.index(values).tolist() == [_slow(bins.edges, v) for v in values], count


def test_uniform_bins_of_the_unit_interval_agree_with_a_loop_for_every_count_to_200() -> None:
    for count in range(1, 201):
        bins = Bins.uniform(count)
        values = np.array(_around(bins.edges))
        edges = np.array(bins.edges)
        inside = (edges[:-1] <= values[:, None]) & (values[:, None] < edges[1:])
        inside[values == 1.0, -1] = True
        assert (inside.sum(axis=1) == 1).all()
        assert (bins.index(values) == inside.argmax(axis=1)).all(), count


@pytest.mark.parametrize("count", range(1, 201))
def test_the_decimal_edges_a_person_types_start_their_bin(count: int) -> None:
    # k / count is the float nearest to the fraction: the one that the literal gives.
    bins = Bins.uniform(count)
    assert bins.edges == tuple(k / count for k in range(count + 1))
    assert bins.index([k / count for k in range(count)]).tolist() == list(range(count))


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (0.0, "[0, 0.1)"),
        (0.1, "[0.1, 0.2)"),
        (0.2, "[0.2, 0.3)"),
        (0.3, "[0.3, 0.4)"),
        (0.6, "[0.6, 0.7)"),
        (0.7, "[0.7, 0.8)"),
        (0.9, "[0.9, 1]"),
        (1.0, "[0.9, 1]"),
        (0.1 + 0.2, "[0.3, 0.4)"),
        (float(np.nextafter(0.3, 0)), "[0.2, 0.3)"),
        (float(np.nextafter(0.7, 0)), "[0.6, 0.7)"),
        (float(np.nextafter(1.0, 0)), "[0.9, 1]"),
    ],
)
def test_ten_bins_hold_the_literals_a_person_expects(value: float, label: str) -> None:
    bins = Bins.uniform(10)
    assert bins.labels[bins.index([value])[0]] == label


@given(
    edges=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12, unique=True).map(sorted),
    ends=st.tuples(st.booleans(), st.booleans()),
    data=st.data(),
)
def test_given_edges_agree_with_a_loop(edges: list[float], ends: tuple[bool, bool], data: st.DataObject) -> None:
    whole = [-math.inf] * ends[0] + edges + [math.inf] * ends[1]
    bins = Bins.from_edges(whole)
    values = _around(bins.edges) + data.draw(st.lists(st.floats(edges[0], edges[-1]), max_size=10))
    assert bins.index(values).tolist() == [_slow(bins.edges, v) for v in values]
    assert len(bins) == len(bins.labels) == len(whole) - 1


@given(
    values=st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.5, 0.5, 0.9, 1.0]) | st.floats(0.0, 1.0), min_size=1),
    count=st.integers(1, 12),
)
def test_quantile_bins_hold_every_value_once_and_keep_ties_together(values: list[float], count: int) -> None:
    bins = Bins.quantile(values, count)
    index = bins.index(values)
    assert ((index >= 0) & (index < len(bins))).all()
    assert 1 <= len(bins) <= count
    assert set(bins.edges) <= set(values)
    assert all(len({int(k) for k, v in zip(index, values, strict=True) if v == value}) == 1 for value in values)
    assert len(set(index.tolist())) == len(bins)  # none of them is empty


@given(n=st.integers(1, 60), count=st.integers(1, 60), shift=st.floats(-10, 10))
def test_quantile_bins_of_distinct_values_hold_equally_many_rows(n: int, count: int, shift: float) -> None:
    bins = Bins.quantile(np.arange(n) / 7 + shift, count)
    counts = np.bincount(bins.index(np.arange(n) / 7 + shift), minlength=len(bins))
    assert len(bins) == min(n, count)
    assert counts.max() - counts.min() <= 1


def test_quantile_bins_separate_two_values_that_are_equally_common() -> None:
    assert Bins.quantile([0, 1, 0, 1], 2).index([0, 1]).tolist() == [0, 1]


@pytest.mark.parametrize("name", FIRST_CLASSIFIERS)
@examples(25)
@given(data=st.data())
def test_counts_and_weights_of_the_bins_add_up(name: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name))
    n = size(columns)
    w = data.draw(st.none() | weights_of(n))
    predictions = FAMILIES[name].make(columns)
    for rule, options in BINS.items():
        table = predictions.table(**options, sample_weight=w)
        assert sum(s.n for s in table.summaries) == n == table.total.n, rule
        weight = sum(s.weight for s in table.summaries)
        assert weight == pytest.approx(n if w is None else w.sum(), rel=1e-12), rule
        assert len(table) == len(table.bins), rule


@pytest.mark.parametrize("name", FIRST_CLASSIFIERS)
@examples(25)
@given(data=st.data())
def test_bins_never_change_ecd_nor_the_bias_and_the_sides_of_ece_add_up(name: str, data: st.DataObject) -> None:
    family = FAMILIES[name]
    columns = data.draw(rows_of(name))
    w = data.draw(st.none() | weights_of(size(columns)))
    whole = family.make(columns).summary(w)
    bound = scale(family, columns)
    for rule, options in BINS.items():
        table = family.make(columns).table(**options, sample_weight=w)
        assert same(table.total.ecd, whole.ecd, bound), rule
        assert same(table.total.nll, whole.nll, bound), rule

        shares, ecd = table.weights, table.ecd
        filled = shares > 0
        assert np.isclose(shares.sum(), 1.0, rtol=0, atol=1e-12), rule
        assert same(float((shares[filled] * ecd[filled]).sum()), whole.ecd, bound), rule

        by_class = whole.accuracy - whole.mean_confidence if table.top_label else whole.bias
        assert same(table.esce(), by_class), rule
        over, under = (table.ece(side) for side in ("overconfident", "underconfident"))
        assert over >= 0.0, rule
        assert under >= 0.0, rule
        assert same(over + under, table.ece()), rule
        assert 0.0 <= table.ece() <= 1.0 + 1e-12, rule
        assert abs(table.esce()) <= table.ece() + 1e-12, rule


@pytest.mark.parametrize("rule", ["quantile", "infinite edges"])
@pytest.mark.parametrize("name", ["gaussian std", "gaussian cov"])
@examples(7)
@given(data=st.data())
def test_bins_of_states_hold_every_row_and_never_change_ecd(name: str, rule: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name))
    options = BINS[rule] | {"bin_on": "entropy"}
    table = FAMILIES[name].make(columns).table(**options)
    assert sum(s.n for s in table.summaries) == size(columns)
    assert same(table.total.ecd, FAMILIES[name].make(columns).ecd, scale(FAMILIES[name], columns))
    for metric in (table.ece, table.esce):
        with pytest.raises(UnavailableError, match="these predictions have none"):
            metric()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 3, 5, 6, 7, 10, 41, 100])
def test_the_largest_entropy_lies_in_the_last_bin(classes: int, dtype: type) -> None:
    # Rounded rows sum to a little more than 1, so that their entropy exceeds log K by as much.
    y_prob = np.full((3, classes), 1.0 / classes, dtype=dtype)
    result = safecal.evaluate([0, 1, 1], y_prob, bins=4, bin_on="entropy")
    assert [s.n for s in result.bins.summaries] == [0, 0, 0, 3]
