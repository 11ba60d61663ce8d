"""Sums by cluster and key: in any parts and any order they are those of all rows."""

import itertools
from collections.abc import Hashable

import numpy as np
import pytest

import safecal
from safecal._kernels.spectrum import COARSE, LOWEST, STARTS, cell_numbers, coarse_odds
from safecal._sums import Tally, cluster_pairs
from safecal._sums.cells import WeightedCells
from safecal._sums.cluster_pairs import PAIRS, CellPairBlocks, CellPairs, PairBlocks, Pairs
from safecal._sums.clusters import BASE, RARE
from safecal._sums.splits import Plan
from safecal.engines.batches import Batch, tally_batches
from safecal.errors import ShapeError
from safecal.inference.local import Local

N = 600
RNG = np.random.default_rng(6)
Z = RNG.normal(0, 2, N)
Y = RNG.random(N) < 1 / (1 + np.exp(-Z))
W = RNG.gamma(2.0, 1.0, N)
CLUSTER = np.array([f"p{k}" for k in RNG.integers(0, 40, N)])
GROUP = np.array(["x", "y", None], dtype=object)[RNG.integers(0, 3, N)]


def _tally(rows: slice, *, weighted: bool = False) -> Tally:
    weight = W[rows] if weighted else None
    return Tally.of(
        safecal.bernoulli(Y[rows], logits=Z[rows]), by=GROUP[rows], cluster=CLUSTER[rows], sample_weight=weight
    )


def _named(pairs: Pairs | None) -> dict[tuple[Hashable, Hashable], np.ndarray]:
    assert pairs is not None
    rows = zip(pairs.cluster, pairs.key, pairs.sums, strict=True)
    return {(pairs.clusters[c], pairs.keys[k]): row for c, k, row in rows}


def _same(a: Pairs | None, b: Pairs | None) -> None:
    sums, wanted = _named(a), _named(b)
    assert set(sums) == set(wanted)
    for pair, row in wanted.items():
        np.testing.assert_allclose(sums[pair], row, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_each_sum_is_that_of_the_rows(weighted: bool) -> None:
    scored = safecal.bernoulli(Y, logits=Z).score()
    w = W if weighted else np.ones(N)
    e, v = scored.excess, scored.varentropy
    q, d = 1 / (1 + np.exp(np.abs(Z))), np.sqrt(v)
    wrong = (Z > 0) != Y
    base = (np.ones(N), w, w * e, w**2, w**2 * e, w**2 * v, w * d, (w * e) ** 2, w * wrong, w * q)
    rare = (w * d * q, w * d * np.sqrt(q), w * d * (1 - q), w * d * np.sqrt(1 - q))
    columns = dict(zip(BASE + RARE, base + rare, strict=True))
    pairs = _tally(slice(None), weighted=weighted).pairs
    assert pairs is not None
    seen = 0
    for c, k, row in zip(pairs.cluster, pairs.key, pairs.sums, strict=True):
        some = (pairs.clusters[c] == CLUSTER) & np.array([g == pairs.keys[k] for g in GROUP])
        np.testing.assert_allclose(row, [columns[name][some].sum() for name in PAIRS], rtol=1e-11)
        seen += int(some.sum())
    assert seen == N
    places = list(zip(pairs.cluster, pairs.key, strict=True))
    assert places == sorted(places)


@pytest.mark.proof
def test_parts_add_up_in_any_order() -> None:
    whole = _tally(slice(None)).pairs
    cuts = [slice(0, 10), slice(10, 300), slice(300, 301), slice(301, N)]
    parts = [_tally(rows).pairs for rows in cuts]
    for order in itertools.permutations(parts):
        a, b, c, d = order
        assert a is not None
        _same(a + b + c + d, whole)
        _same((a + b) + (c + d), whole)


def test_tallies_and_batches_carry_them() -> None:
    whole = _tally(slice(None), weighted=True).pairs
    _same((_tally(slice(0, 250), weighted=True) + _tally(slice(250, N), weighted=True)).pairs, whole)

    def batch(rows: slice) -> Batch:
        return Batch(safecal.bernoulli(Y[rows], logits=Z[rows]), W[rows], {"group": GROUP[rows]}, CLUSTER[rows])

    _same(tally_batches([batch(slice(k, k + 37)) for k in range(0, N, 37)], Plan()).pairs, whole)


def test_only_groups_with_clusters_have_pairs_and_no_document_holds_them() -> None:
    predictions = safecal.bernoulli(Y, logits=Z)
    assert Tally.of(predictions, by=GROUP).pairs is None
    assert Tally.of(predictions, cluster=CLUSTER).pairs is None
    tally = _tally(slice(None))
    document = tally.to_dict()
    assert "pairs" not in document
    assert "p7" not in str(document)
    read = Tally.from_dict(document)
    assert read == tally
    assert read.pairs is None


def test_states_have_no_mistakes_and_are_never_rare() -> None:
    pairs = Tally.of(safecal.gaussian(Z, np.zeros(N), std=1.0), by=GROUP, cluster=CLUSTER).pairs
    assert pairs is not None
    assert np.isnan(pairs.column("seen")).all()
    for name in RARE:
        np.testing.assert_array_equal(pairs.column(name), pairs.column("deviation"))


def test_an_impossible_outcome_counts_in_weights_and_mistakes_alone() -> None:
    pairs = Tally.of(safecal.bernoulli([1, 1, 0], [0.0, 0.8, 0.4]), by=["a"] * 3, cluster=["c", "c", "d"]).pairs
    assert pairs is not None
    assert np.isfinite(pairs.sums).all()
    first = dict(zip(PAIRS, pairs.sums[0], strict=True))
    assert (first["n"], first["weight"], first["weight2"], first["seen"]) == (2.0, 2.0, 1.0, 1.0)


@pytest.mark.proof
def test_many_blocks_are_gathered_like_one() -> None:
    rng = np.random.default_rng(1)
    cluster, key = rng.integers(0, 300, 5000), rng.integers(0, 50, 5000)
    columns = [rng.random(5000) for _ in PAIRS]
    whole, parts = PairBlocks(50), PairBlocks(50)
    whole.absorb(whole.of_block(cluster, key, columns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("safecal._sums.cluster_pairs._WAITING", 100)
        for k in range(0, 5000, 250):
            rows = slice(k, k + 250)
            parts.absorb(parts.of_block(cluster[rows], key[rows], [c[rows] for c in columns]))
    _same(parts.pairs(tuple(range(300)), tuple(range(50))), whole.pairs(tuple(range(300)), tuple(range(50))))


def test_rows_that_come_cluster_by_cluster_are_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    cluster, key = np.sort(rng.integers(0, 300, 5000)), rng.integers(0, 5, 5000)
    rows = [rng.random(5000) for _ in PAIRS]
    order = np.lexsort((key, cluster))
    times = []
    add_up = cluster_pairs.added_up_parts
    monkeypatch.setattr(cluster_pairs, "_WAITING", 100)
    monkeypatch.setattr(cluster_pairs, "added_up_parts", lambda parts: times.append(len(parts)) or add_up(parts))

    def gathered(size: int) -> tuple[Pairs, list[int]]:
        blocks, counts = PairBlocks(5), []
        for k in range(0, 5000, size):
            some = order[k : k + size]
            counts.append(blocks.absorb(blocks.of_block(cluster[some], key[some], [column[some] for column in rows])))
        return blocks.pairs(tuple(range(300)), tuple(range(5))), counts

    whole, _ = gathered(5000)
    times.clear()
    parts, counts = gathered(250)
    _same(parts, whole)
    assert times == [21]
    assert len(whole) - 21 <= counts[-1] <= len(whole)


def test_one_class_has_too_many_pairs_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = Tally.of(safecal.bernoulli(Y, logits=Z), cluster=np.arange(N)).cell_pairs
    assert pairs is not None
    assert pairs.classes
    monkeypatch.setattr(cluster_pairs, "MAX_CELL_PAIRS", N - 10)
    monkeypatch.setattr(cluster_pairs, "_without_classes", lambda part: pytest.fail("there is but one"))
    assert Tally.of(safecal.bernoulli(Y, logits=Z), cluster=np.arange(N)).cell_pairs is None


def test_equality() -> None:
    a, b = _tally(slice(0, 300)).pairs, _tally(slice(0, 300)).pairs
    assert a == b
    assert a != _tally(slice(0, 299)).pairs
    assert a != "pairs"
    with pytest.raises(TypeError):
        hash(a)
    with pytest.raises(TypeError):
        a + 1  # type: ignore[operator]
    assert repr(a) == f"Pairs({len(a or ())} of 40 clusters and 3 keys)"


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _tally(slice(0, 300)), _tally(slice(300, N))
    monkeypatch.setattr(cluster_pairs, "MAX_PAIRS", 100)
    wanted = r"`cluster` must form at most 100 different pairs with `by`; got 1\d\d"
    with pytest.raises(ShapeError, match=wanted):
        _tally(slice(None))
    with pytest.raises(ShapeError, match=wanted):
        first + second


# Clusters and coarse cells of the predictions

CLASSES = RNG.normal(0, 2, (N, 4))
TOP = (CLASSES + RNG.gumbel(size=CLASSES.shape)).argmax(axis=1)


def _cells(rows: slice) -> CellPairs | None:
    return Tally.of(safecal.categorical(TOP[rows], logits=CLASSES[rows]), cluster=CLUSTER[rows]).cell_pairs


@pytest.mark.parametrize("weighted", [False, True])
def test_coarse_cells_are_unions_of_cells_and_keep_the_order(weighted: bool) -> None:
    rng = np.random.default_rng(4)
    size = np.concatenate([[0.0], LOWEST, 2.0 ** rng.uniform(-10, 22, 20_000)])
    z = np.sort(np.concatenate([-size, size]))
    L, positive = np.abs(z), z > 0
    cell = WeightedCells.numbers(L) if weighted else cell_numbers(L)
    coarse = coarse_odds(cell, positive, weighted=weighted)
    assert (np.diff(coarse) >= 0).all()
    assert len(np.unique(coarse)) == 2 * len(STARTS) <= COARSE
    parts = {(c, p): k for c, p, k in zip(cell, positive, coarse, strict=True)}
    assert all(parts[c, p] == k for c, p, k in zip(cell, positive, coarse, strict=True))
    inside = (L > 0.3) & (L < 50) & ~np.isin(L, LOWEST)
    other = coarse_odds(WeightedCells.numbers(L), positive, weighted=True)
    np.testing.assert_array_equal(coarse[inside], other[inside])


def test_pairs_of_coarse_cells_hold_all_rows_and_add_up_in_any_order() -> None:
    whole = _cells(slice(None))
    assert whole is not None
    assert whole.classes
    assert whole.pairs.column("n").sum() == N
    parts = [_cells(rows) for rows in (slice(0, 10), slice(10, 300), slice(300, N))]
    for a, b, c in itertools.permutations(parts):
        assert a is not None
        first = a + b
        assert first is not None
        total = first + c
        assert total is not None
        _same(total.pairs, whole.pairs)
    with pytest.raises(TypeError):
        whole + 1  # type: ignore[operator]


def test_certain_rows_and_rows_without_weight_are_in_no_coarse_cell() -> None:
    predictions = safecal.bernoulli([1, 0, 1, 1], [1.0, 0.2, 0.6, 0.7])
    pairs = Tally.of(predictions, cluster=list("abab"), sample_weight=[1.0, 1.0, 0.0, 2.0]).cell_pairs
    assert pairs is not None
    assert pairs.pairs.column("weight").tolist() == [1.0, 2.0]
    assert Tally.of(predictions).cell_pairs is None
    assert Tally.from_dict(_tally(slice(None)).to_dict()).cell_pairs is None


def test_beyond_so_many_pairs_classes_are_not_told_apart_and_then_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, alone = _cells(slice(None)), _cells(slice(0, 40))
    assert whole is not None
    assert alone is not None
    fewer = whole.without_classes()
    assert len(fewer.pairs) < len(whole.pairs)
    monkeypatch.setattr(cluster_pairs, "MAX_CELL_PAIRS", len(fewer.pairs))
    cuts = [slice(k, k + 60) for k in range(0, N, 60)]
    for order in (cuts, cuts[::-1], [slice(None)], [slice(0, 500), slice(500, N)]):
        parts = [_cells(rows) for rows in order]
        total = parts[0]
        for part in parts[1:]:
            assert total is not None
            assert part is not None
            total += part
        assert total is not None
        assert not total.classes
        _same(total.pairs, fewer.pairs)
    assert alone.classes
    assert not (alone + fewer or alone).classes
    local = Local.of(Tally.of(safecal.categorical(TOP, logits=CLASSES), cluster=CLUSTER))
    assert len(local)
    assert np.isnan(local.column("label")).all()
    monkeypatch.setattr(cluster_pairs, "MAX_CELL_PAIRS", len(fewer.pairs) - 1)
    tally = Tally.of(safecal.categorical(TOP, logits=CLASSES), cluster=CLUSTER)
    assert tally.cell_pairs is None
    assert len(Local.of(tally)) > len(local)
    first, second = _cells(slice(0, 500)), _cells(slice(500, N))
    assert first is not None
    assert first + second is None


def test_blocks_are_gathered_until_there_are_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    cluster, cell = rng.integers(0, 30, 5000), rng.integers(0, 3, 5000) * COARSE + rng.integers(-1, 20, 5000)
    columns = [rng.random(5000) for _ in PAIRS]
    monkeypatch.setattr("safecal._sums.cluster_pairs._WAITING", 100)

    def gathered() -> CellPairs | None:
        blocks = CellPairBlocks()
        for k in range(0, 5000, 250):
            rows = slice(k, k + 250)
            part = blocks.of_block(cluster[rows], cell[rows], [c[rows] for c in columns])
            if part is not None:
                blocks.absorb(part)
        return blocks.pairs(tuple(range(30)))

    whole = gathered()
    assert whole is not None
    assert whole.pairs.column("n").sum() == pytest.approx(columns[0][cell >= 0].sum())
    fewer = whole.without_classes()
    monkeypatch.setattr(cluster_pairs, "MAX_CELL_PAIRS", len(whole.pairs) - 1)
    merged = gathered()
    assert merged is not None
    assert not merged.classes
    _same(merged.pairs, fewer.pairs)
    monkeypatch.setattr(cluster_pairs, "MAX_CELL_PAIRS", 300)
    assert gathered() is None
