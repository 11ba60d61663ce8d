"""Rows in batches: whole while they fit, sums beyond."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Evaluation, _sums
from safecal.engines import batches as engine
from safecal.engines.batches import Batch, add_in_pairs, evaluate_batches
from safecal.errors import FormError, LabelError, MergeError, OptionError, ShapeError

RNG = np.random.default_rng(2)
N = 6000
LOGITS = RNG.normal(0, 2, N)
Y = RNG.random(N) < 1 / (1 + np.exp(-LOGITS))
MANY = RNG.normal(0, 2, (N, 4))
KIND = (MANY + RNG.gumbel(size=(N, 4))).argmax(axis=1)
SITE = RNG.choice(["a", "b", "c"], N)
DAY = RNG.integers(0, 30, N)
WEIGHT = RNG.random(N)


def cut(size: int, scale: float = 1.0, classes: bool = False, **columns: Any) -> Iterator[Batch]:
    for start in range(0, N, size):
        rows = slice(start, start + size)
        predictions = (
            safecal.categorical(KIND[rows], logits=scale * MANY[rows])
            if classes
            else safecal.bernoulli(Y[rows], logits=scale * LOGITS[rows])
        )
        by = {"site": columns["by"][rows]} if "by" in columns else None
        weight = columns["weight"][rows] if "weight" in columns else None
        cluster = columns["cluster"][rows] if "cluster" in columns else None
        yield Batch(predictions, weight, by, cluster)


@pytest.mark.no_cover
@pytest.mark.proof  # of a few rows, `test_one_verdict` holds the same
@pytest.mark.parametrize("size", [50, 999, 6000, 10_000])
def test_what_fits_is_evaluated_whole(size: int) -> None:
    evaluation = evaluate_batches(lambda: cut(size))
    assert evaluation == safecal.evaluate(Y, logits=LOGITS)
    evaluation = evaluate_batches(lambda: cut(size, by=SITE, cluster=DAY, weight=WEIGHT))
    assert evaluation == safecal.evaluate(Y, logits=LOGITS, by={"site": SITE}, cluster=DAY, sample_weight=WEIGHT)


def _same_sums(actual: Evaluation, whole: Evaluation) -> None:
    for name in ("ecd", "nll", "ece", "esce", "brier", "accuracy"):
        assert getattr(actual, name) == pytest.approx(getattr(whole, name), rel=1e-10)
    assert actual.histogram.counts == pytest.approx(whole.histogram.counts)
    assert actual.n_certain == whole.n_certain
    assert actual.family == whole.family
    assert actual.tally.most_entropy == whole.tally.most_entropy


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("size", [100, 1700])
def test_sums_beyond_give_the_same_metrics_and_the_same_verdict(size: int, scale: float, classes: bool) -> None:
    evaluation = evaluate_batches(lambda: cut(size, scale, classes), max_rows=2000)
    whole = safecal.evaluate(KIND, logits=scale * MANY) if classes else safecal.evaluate(Y, logits=scale * LOGITS)
    _same_sums(evaluation, whole)
    assert evaluation.verdict.decision == whole.verdict.decision == ("SAFE" if scale == 1.0 else "UNSAFE")
    for a, b in ((evaluation.interval, whole.interval), (evaluation.temperature, whole.temperature)):
        assert a.method == b.method
        for name in ("value", "low", "high"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-9, abs=1e-12)


def test_the_result_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate_batches(lambda: cut(100), max_rows=1000)
    monkeypatch.setattr(engine, "_THREADS", 7)
    assert evaluate_batches(lambda: cut(100), max_rows=1000) == first


@pytest.mark.parametrize("size", [1, 2, 3, 8, 100])
def test_parts_are_added_in_their_order_and_copied_seldom(size: int) -> None:
    copied = 0

    def add(a: str, b: str) -> str:
        nonlocal copied
        copied += len(a) + len(b)
        return a + b

    parts = [chr(k) for k in range(40, 40 + size)]
    assert add_in_pairs(parts, add) == "".join(parts)
    assert copied <= size * np.ceil(np.log2(size))
    assert add_in_pairs([], add) is None


@pytest.mark.proof
def test_weights_groups_and_clusters_beyond() -> None:
    columns = {"by": SITE, "weight": WEIGHT, "cluster": DAY}
    evaluation = evaluate_batches(lambda: cut(700, **columns), max_rows=1000)
    whole = safecal.evaluate(Y, logits=LOGITS, by={"site": SITE}, cluster=DAY, sample_weight=WEIGHT)
    _same_sums(evaluation, whole)
    assert evaluation.groups is not None
    assert whole.groups is not None
    assert {k: s.n for k, s in evaluation.groups.items()} == {k: s.n for k, s in whole.groups.items()}
    assert evaluation.test.p_value == pytest.approx(whole.test.p_value, rel=1e-9)
    assert "on 30 clusters" in evaluation.interval.method


def test_quantile_bins_beyond() -> None:
    evaluation = evaluate_batches(lambda: cut(700), bins=6, strategy="quantile", max_rows=1000)
    assert evaluation.bins is not None
    assert [s.n for s in evaluation.bins.summaries] == pytest.approx([1000] * 6, abs=3)
    assert evaluation.ecd == pytest.approx(safecal.evaluate(Y, logits=LOGITS).ecd, rel=1e-10)
    with pytest.raises(OptionError, match="can be read only once"):
        evaluate_batches(lambda: cut(700), strategy="quantile", max_rows=1000, once=True)


def test_values_are_capped_as_well_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_VALUES", 4000)
    held = []
    monkeypatch.setattr(engine, "join_batches", lambda batches: held.append(batches))
    assert evaluate_batches(lambda: cut(500, classes=True)).n == 6000
    assert not held  # the rows were summed, not joined


def test_keys_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sums, "MAX_KEYS", 20)
    with pytest.raises(ShapeError, match="`cluster` must have at most 20 different values; got 30"):
        evaluate_batches(lambda: cut(700, cluster=DAY), max_rows=1000)
    with pytest.raises(ShapeError, match="`by` must have at most 20 different values"):
        evaluate_batches(lambda: cut(700, by=DAY), max_rows=1000)


ROWS = safecal.bernoulli([1, 0], [0.9, 0.4])


ANYTHING: Any = Batch  # whatever it is given


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([ANYTHING(ROWS, by=SITE[:2])], r"`by` must map names to columns; got ndarray.*by=\{\"site\": site\}"),
        ([ANYTHING(ROWS, features=[1, 2])], "`features` must map names to columns; got list"),
        ([ANYTHING([1, 0])], r"must return `Batch` objects; got Batch of list"),
        ([Batch(ROWS, by={"a": SITE[:2]}), Batch(ROWS)], r"columns of the first batch; got none after by\['a'\]"),
        ([Batch(ROWS, by={"a": SITE[:2]}), Batch(ROWS, by={"b": SITE[:2]})], r"got by\['b'\] after by\['a'\]"),
        ([Batch(ROWS, np.ones(2)), Batch(ROWS)], "got none after sample_weight"),
    ],
)
@pytest.mark.parametrize("max_rows", [1, 100])
def test_batches_must_have_the_same_columns(batches: list[Any], message: str, max_rows: int) -> None:
    with pytest.raises(FormError, match=f"(?s){message}"):
        evaluate_batches(lambda: batches, max_rows=max_rows)


def test_nothing_is_refused() -> None:
    with pytest.raises(ShapeError, match="at least one batch"):
        evaluate_batches(lambda: iter(()))
    with pytest.raises(ShapeError, match="two clusters"):
        evaluate_batches(lambda: cut(700, cluster=np.zeros(N)), max_rows=1000)


def test_an_impossible_outcome_beyond() -> None:
    def with_one() -> Iterator[Batch]:
        yield from cut(700)
        yield Batch(safecal.bernoulli([1], logits=[-np.inf]))

    evaluation = evaluate_batches(with_one, max_rows=1000)
    assert evaluation.ecd == np.inf
    assert evaluation.verdict.decision == "UNSAFE"
    assert evaluation.verdict.n_impossible == 1


def test_rows_are_taken_and_joined() -> None:
    whole = safecal.categorical(KIND, logits=MANY)
    parts = [whole.take(np.arange(0, 10)), whole.take(np.arange(10, N))]
    assert type(parts[0]).concatenate(parts).ecd == whole.ecd
    with pytest.raises(MergeError, match="of one form"):
        type(whole).concatenate([whole, safecal.bernoulli(Y, logits=LOGITS)])
    with pytest.raises(MergeError, match="of one form"):
        type(whole).concatenate([whole, safecal.categorical(KIND % 3, logits=MANY[:, :3])])


@pytest.mark.parametrize("max_rows", [10**6, 100])
@pytest.mark.parametrize("form", ["logits", "y_prob"])
def test_classes_numbered_from_one_are_refused_at_the_end_of_a_stream(max_rows: int, form: str) -> None:
    some = KIND < 3
    values = MANY[some] if form == "logits" else special.softmax(MANY[some], axis=1)

    def cut_up(y: Any, labels: Any = None) -> Iterator[Batch]:
        for start in range(0, len(y), 500):
            rows = slice(start, start + 500)
            yield Batch(safecal.categorical(y[rows], **{form: values[rows]}, labels=labels))

    counted = KIND[some] + 1
    with pytest.raises(LabelError, match=r"and never 0.*\n\nHint: if classes are numbered from 1, pass `y_true - 1`"):
        evaluate_batches(lambda: cut_up(counted), max_rows=max_rows)
    assert evaluate_batches(lambda: cut_up(counted, labels=range(4)), max_rows=max_rows).n == len(counted)
    late = counted.copy()
    late[-1] = 0
    assert evaluate_batches(lambda: cut_up(late), max_rows=max_rows).n == len(counted)


def test_what_is_no_batch_is_refused_with_what_to_type() -> None:
    rows = safecal.bernoulli([0, 1], [0.2, 0.6])
    with pytest.raises(FormError, match=r"must be a function that returns batches; got list\.\n\nHint: .*lambda"):
        evaluate_batches([Batch(rows)])  # type: ignore[arg-type]
    with pytest.raises(FormError, match=r"must return `Batch` objects; got Bernoulli\.\n\nHint: wrap each"):
        evaluate_batches(lambda: [rows])  # type: ignore[list-item, return-value]
