"""Any split, order and merge tree gives the same sums."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safecal
from safecal import Predictions, Summary, Table
from safecal._sums.splits import by_group
from safecal._sums.sweep import tabulate

from .cases import (
    BINS,
    CLASSIFIERS,
    DENSITIES,
    FAMILIES,
    FIRST,
    FIRST_CLASSIFIERS,
    RTOL,
    STATES,
    TINY,
    Columns,
    assert_sums,
    examples,
    rows_of,
    size,
    take,
    weights_of,
)

pytestmark = pytest.mark.no_cover  # the formulas of every family, very often
FEW = examples(40)


def _merge(data: st.DataObject, parts: list) -> object:
    """Merge in any order and along any tree."""
    parts = list(data.draw(st.permutations(parts), label="order"))
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2), label="merge")
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0]


def _cut(data: st.DataObject, n: int) -> list[np.ndarray]:
    """Deal the rows out to at most five hands, some of them perhaps of one row."""
    hand = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n), label="hands"))
    return [np.flatnonzero(hand == k) for k in range(5) if (hand == k).any()]


def _weights(data: st.DataObject, n: int) -> np.ndarray | None:
    return data.draw(st.none() | weights_of(n, zeros=False), label="weights")


@pytest.mark.parametrize("name", FAMILIES)
@FEW
@given(data=st.data())
def test_summaries_of_any_split_order_and_tree_agree(name: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name))
    w = _weights(data, size(columns))
    family = FAMILIES[name]
    parts = [
        family.make(take(columns, rows)).summary(None if w is None else w[rows]) for rows in _cut(data, size(columns))
    ]
    scored = family.make(columns).score()
    assert_sums(family.make(columns).summary(w), scored, w)
    assert_sums(_merge(data, parts), scored, w)


def _tables_agree(a: Table, b: Table, columns: Columns, name: str) -> None:
    assert (a.name, a.bins, a.top_label) == (b.name, b.bins, b.top_label)
    assert set(a.keys) == set(b.keys)
    scored = FAMILIES[name].make(columns).score()
    bound = np.where(scored.impossible, 0.0, np.abs(scored.excess)).sum() + len(scored)
    for key in a.keys:
        for f in fields(Summary):
            x, y = getattr(a[key], f.name), getattr(b[key], f.name)
            if f.name in ("n", "n_impossible") or x is None or y is None:
                assert x == y, (key, f.name)
    assert math.isclose(a.total.sum_excess, b.total.sum_excess, rel_tol=0.0, abs_tol=RTOL * bound + TINY)


# Quantile edges are values of the rows. A value that is computed, such as an entropy, may differ in its last digit from
# block to block, and then cross an edge: only values that are given can be held to their bin.
@pytest.mark.parametrize("name", FIRST_CLASSIFIERS)
@examples(15)
@given(data=st.data())
def test_tables_of_bins_merge_to_the_table_of_all_rows(name: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name))
    family, hands = FAMILIES[name], _cut(data, size(columns))
    scored = family.make(columns).score()
    by_name = {"probability": scored.predicted, "confidence": scored.confidence, "entropy": scored.entropy}
    for rule in [rule for rule in BINS if rule != "quantile entropy"]:
        whole = family.make(columns).table(**BINS[rule])
        assert whole is not None
        options = BINS[rule] | {"bins": whole.bins, "strategy": "uniform"}
        merged = _merge(data, [family.make(take(columns, rows)).table(**options) for rows in hands])
        _tables_agree(merged, whole, columns, name)
        assert merged.keys == whole.keys, rule
        index = whole.bins.index(np.minimum(by_name[whole.name], whole.bins.edges[-1]))
        for k, (a, b) in enumerate(zip(whole.summaries, merged.summaries, strict=True)):
            if not (index == k).any():
                assert a == b == Summary(), rule
                continue
            inside = family.make(take(columns, index == k)).score()
            assert_sums(a, inside, None)
            assert_sums(b, inside, None)
        assert merged.ece() == pytest.approx(whole.ece(), abs=1e-12), rule
        assert merged.esce() == pytest.approx(whole.esce(), abs=1e-12), rule


def _grouped(predictions: Predictions, by: np.ndarray) -> Table:
    return tabulate(predictions, [by_group(predictions, by)], None)[0]


@pytest.mark.parametrize("name", ["bernoulli", "categorical 4", "gaussian cov", "density by draws"])
@FEW
@given(data=st.data())
def test_tables_of_groups_merge_to_the_table_of_all_rows(name: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name))
    n = size(columns)
    by = np.array(data.draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n)))
    whole = _grouped(FAMILIES[name].make(columns), by)
    parts = [_grouped(FAMILIES[name].make(take(columns, rows)), by[rows]) for rows in _cut(data, n)]
    merged = _merge(data, parts)
    _tables_agree(merged, whole, columns, name)
    for key in whole.keys:
        scored = FAMILIES[name].make(take(columns, by == key)).score()
        assert_sums(whole[key], scored, None)
        assert_sums(merged[key], scored, None)


@pytest.mark.parametrize("name", FIRST)
@FEW
@given(data=st.data())
def test_the_empty_summary_is_an_identity_on_both_sides_and_sum_works(name: str, data: st.DataObject) -> None:
    summary = FAMILIES[name].make(data.draw(rows_of(name))).summary()
    assert Summary() + summary == summary == summary + Summary()
    assert sum([summary]) == summary
    assert sum([Summary(), summary, Summary()], Summary()) == summary
    assert sum([summary, summary]) == summary + summary


def test_empty_sums_are_identities_of_each_other() -> None:
    assert Summary() + Summary() == Summary()


def test_tables_work_with_sum() -> None:
    table = safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9]).bins
    assert sum([table]) == table
    assert sum([table, table]) == table + table


@pytest.mark.parametrize("name", FIRST)
@FEW
@given(data=st.data())
def test_any_order_of_rows_gives_the_same_sums(name: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name))
    n = size(columns)
    w = _weights(data, n)
    order = np.array(data.draw(st.permutations(range(n))))
    again = FAMILIES[name].make(take(columns, order)).summary(None if w is None else w[order])
    assert_sums(again, FAMILIES[name].make(columns).score(), w)


@pytest.mark.parametrize("name", [*CLASSIFIERS, *STATES, "density", "density by draws"])
def test_a_summary_over_many_blocks_is_the_sum_of_its_rows(name: str) -> None:
    # The sums neither drift nor lose a row.
    columns = _fixed_rows(name)
    repeated = take(columns, np.arange(5000) % size(columns))
    predictions = FAMILIES[name].make(repeated)
    scored = predictions.score()
    assert_sums(predictions.summary(), scored, None)
    w = 0.5 + (np.arange(5000) % 7)
    assert_sums(predictions.summary(w), scored, w)


def _fixed_rows(name: str) -> Columns:
    rng = np.random.default_rng(5)
    family = FAMILIES[name]
    n = 11
    if name.startswith("bernoulli"):
        values = rng.random(n) if "y_prob" in family.names else rng.normal(0, 4, n)
        return dict(zip(family.names, (rng.integers(0, 2, n), values), strict=True))
    if family.classes:
        z = rng.normal(0, 2, (n, family.outcomes))
        values = z if "logits" in family.names else np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        return dict(zip(family.names, (rng.integers(0, family.outcomes, n), values), strict=True))
    if name == "density of counts":
        return {"x_true": rng.integers(0, 9, n), "mean": rng.uniform(1.0, 5.0, n)}
    shape = (n,) if "std" in family.names else (n, 2)
    columns = {"x_true": rng.normal(0, 3, shape), "mean": rng.normal(0, 1, shape)}
    factor = np.tril(rng.normal(0, 1, (n, 2, 2))) + 2 * np.eye(2)
    spreads = {"std": np.exp(rng.normal(0, 1, n)), "chol": factor, "cov": factor @ factor.transpose(0, 2, 1)}
    return columns | {k: v for k, v in spreads.items() if k in family.names}


@pytest.mark.parametrize("name", STATES + DENSITIES)
def test_states_have_no_columns_of_classes(name: str) -> None:
    summary = FAMILIES[name].make(_fixed_rows(name)).summary()
    assert summary.sum_brier is None
    assert math.isnan(summary.brier)
    assert math.isnan(summary.accuracy)
    assert math.isnan(summary.bias)
