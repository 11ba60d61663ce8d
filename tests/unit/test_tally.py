"""A Tally merges, has an identity, makes the round trip, and holds no row."""

import json
import pickle

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Evaluation, Limits, Predictions, Tally
from safecal._sums.splits import Plan
from safecal.errors import DocumentError, EmptyError, MergeError, RangeError, WeightError


def _two_classes(rows: slice, n: int = 900) -> Predictions:
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, n)
    y = rng.random(n) < special.expit(z / 1.2)
    return safecal.bernoulli(y[rows], logits=z[rows])


def _classes(rows: slice, n: int = 900) -> Predictions:
    rng = np.random.default_rng(2)
    z = rng.normal(0, 2, (n, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return safecal.categorical(y[rows], logits=1.2 * z[rows])


def _states(rows: slice, n: int = 900) -> Predictions:
    x = np.random.default_rng(3).normal(0, 1.1, (n, 2))
    return safecal.gaussian(x[rows], np.zeros_like(x[rows]), std=1.0)


FAMILIES = {"two classes": _two_classes, "four classes": _classes, "states": _states}
EVERY = slice(None)
PARTS = (slice(0, 100), slice(100, 101), slice(101, 640), slice(640, None))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_parts_in_any_order_give_the_answers_of_all_rows(name: str, weighted: bool) -> None:
    w, groups, clusters = np.random.default_rng(4).uniform(0.5, 2, 900), np.arange(900) % 3, np.arange(900) // 15

    def tally(rows: slice) -> Tally:
        predictions = FAMILIES[name](rows)
        return Tally.of(
            predictions,
            Plan.of(predictions),
            sample_weight=w[rows] if weighted else None,
            by=groups[rows],
            cluster=clusters[rows] if name == "states" else None,
        )

    whole = Evaluation.of(tally(EVERY))
    for order in (PARTS, PARTS[::-1]):
        result = Evaluation.of(sum(map(tally, order)))
        assert result.verdict.decision == whole.verdict.decision
        assert result.groups is not None
        assert whole.groups is not None
        assert result.groups.keys == whole.groups.keys
        for a, b in ((result.interval, whole.interval), (result.temperature, whole.temperature)):
            assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-8)
        assert result.test.p_value == pytest.approx(whole.test.p_value, rel=1e-7)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_empty_tally_is_an_identity(name: str) -> None:
    tally = FAMILIES[name](EVERY).tally()
    assert Tally() + tally == tally == tally + Tally()
    assert sum([tally]) == tally
    assert pickle.loads(pickle.dumps(tally)) == tally
    assert tally != FAMILIES[name](slice(1, None)).tally()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_document_gives_the_same_answers_and_holds_no_row_and_no_name(name: str) -> None:
    patients = np.array([f"patient-{k // 9}" for k in range(900)])
    tally = FAMILIES[name](EVERY).tally(cluster=patients)
    text = json.dumps(tally.to_dict(), allow_nan=False)
    again = Tally.from_dict(json.loads(text))
    assert again == tally
    assert Evaluation.of(again).temperature == Evaluation.of(tally).temperature
    assert "patient" not in text
    with pytest.raises(MergeError, match="clusters must have names to be merged"):
        again + again


def test_a_document_with_wider_cells_of_confidences_is_read_and_added_to() -> None:
    """Documents that say no `size` have 128 cells a class: the ranges are fewer, and the sums the same."""
    tally = Tally.of(_classes(EVERY), Plan())
    document = tally.to_dict()
    cells: dict[int, np.ndarray] = {}
    for number, sums in document["ordered"]["cells"].items():
        cells[int(number) // 2] = cells.get(int(number) // 2, 0.0) + np.array(sums)
    del document["ordered"]["size"]
    document["ordered"]["cells"] = {str(number): sums.tolist() for number, sums in cells.items()}
    early = Tally.from_dict(document)
    assert early.ordered is not None
    assert tally.ordered is not None
    assert early.ordered.size == 128
    assert len(early.ordered) < len(tally.ordered)
    assert early.to_dict()["ordered"]["size"] == 128
    narrow, wide_ones = tally.orders[0], early.orders[0]
    assert set(wide_ones.low) <= {0.0, *narrow.low, *narrow.high}
    for both in (early + tally, tally + early):
        assert both.ordered is not None
        assert both.ordered.size == 128
        assert np.array_equal(both.ordered.keys, early.ordered.keys)
        np.testing.assert_allclose(both.ordered.sums, 2.0 * early.ordered.sums, rtol=1e-12, atol=1e-12)
    document["ordered"]["size"] = 64
    with pytest.raises(DocumentError, match=r"ordered.*must have 256 cells of confidence"):
        Tally.from_dict(document)


def test_what_does_not_belong_together_does_not_merge() -> None:
    two, four = _two_classes(EVERY), _classes(EVERY)
    for a, b in (
        (two.tally(), four.tally()),
        (two.tally(), two.tally(sample_weight=np.ones(900))),
        (two.tally(), two.tally(by=np.arange(900) % 2)),
        (two.tally(bins=5), two.tally(bins=10)),
    ):
        with pytest.raises(MergeError):
            a + b
    with pytest.raises(TypeError):
        two.tally() + 1


def test_sums_of_nothing_are_refused() -> None:
    with pytest.raises(EmptyError, match="must hold at least one row"):
        Evaluation.of(Tally())
    nothing = Tally.of_checked(_two_classes(EVERY), None, np.zeros(900), None, None)
    with pytest.raises(WeightError, match="must not be all zero"):
        Evaluation.of(nothing)


def test_limits_are_checked_when_they_are_set() -> None:
    assert Limits() == Limits(0.1, 1.5, 3.0, 0.2, 0.05, 0.95)
    for bad in ({"threshold": 0.0}, {"max_temperature": -1.0}, {"level": 1.0}):
        with pytest.raises(RangeError):
            Limits(**bad)


def test_the_verdict_is_computed_once() -> None:
    result = _two_classes(EVERY).evaluate()
    assert result.verdict is result.verdict


def test_auto_bins_are_ten_for_classifiers_and_none_for_states() -> None:
    plan = Plan.of(_two_classes(EVERY))
    assert plan.bins is not None
    assert (len(plan.bins), plan.bin_on) == (10, "probability")
    assert Plan.of(_states(EVERY)) == Plan()
    assert Plan.of(_states(EVERY), strategy="quantile").bins is not None
