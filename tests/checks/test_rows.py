"""Rows and labels that do not belong together are refused at every front door, with the line that is right."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import safecal
from safecal.engines.frames import evaluate_frame
from safecal.errors import AlignmentError, LabelError, ShapeError
from safecal.monitor import Monitor

Door = Callable[..., Any]
BINARY: dict[str, Door] = {
    "evaluate": safecal.evaluate,
    "ecd": safecal.ecd,
    "nll": safecal.nll,
    "brier": safecal.brier,
    "ece": safecal.ece,
    "esce": safecal.esce,
    "bernoulli": safecal.bernoulli,
    "fit": safecal.Temperature().fit,
}
CLASSES: dict[str, Door] = {**BINARY, "bernoulli": safecal.categorical}
CLASSES["categorical"] = CLASSES.pop("bernoulli")
binary = pytest.mark.parametrize("door", BINARY.values(), ids=BINARY)
classes = pytest.mark.parametrize("door", CLASSES.values(), ids=CLASSES)

Y = pd.Series([0, 1, 1, 0], index=[7, 3, 9, 4])
P = pd.Series([0.2, 0.7, 0.9, 0.6], index=[7, 3, 9, 4])
K3 = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6]])


@binary
@pytest.mark.parametrize("name", ["y_prob", "logits"])
def test_other_labels_of_rows_are_refused(door: Door, name: str) -> None:
    given = {name: P.set_axis([7, 3, 9, 5])}
    with pytest.raises(AlignmentError) as caught:
        door(Y, **given)
    assert str(caught.value) == (
        f"`{name}` must have the same index as `y_true`; got 5 where `y_true` has 4 at row 3 (1 of 4 rows).\n\n"
        f"Hint: if rows belong together by their position, pass `{name}.to_numpy()`."
    )


def test_the_same_labels_in_another_order_are_refused_with_the_order_that_is_right() -> None:
    y_prob = P.sort_index()
    with pytest.raises(AlignmentError) as caught:
        safecal.evaluate(Y, y_prob)
    assert str(caught.value) == (
        "`y_prob` must have the same index as `y_true`; got 3 where `y_true` has 7 at row 0 (4 of 4 rows).\n\n"
        "Hint: the labels are the same in another order: pass `y_prob.loc[y_true.index]`."
    )
    assert safecal.ecd(Y, y_prob.loc[Y.index]) == safecal.ecd(Y, P)


def test_more_rows_than_outcomes_are_picked_by_their_labels() -> None:
    with pytest.raises(ShapeError, match=r"got 4 and 2\.\n\nHint: .* pass `y_prob\.loc\[y_true\.index\]`"):
        safecal.ecd(Y[:2], P)
    with pytest.raises(ShapeError, match=r"got 2 and 4\.\n\nHint: both must come from the same rows"):
        safecal.ecd(Y, P[:2])


@pytest.mark.parametrize("name", ["sample_weight", "by", "cluster"])
@pytest.mark.parametrize("first", ["y_true", "y_prob"])
def test_columns_beside_them_must_have_the_same_labels(name: str, first: str) -> None:
    y, p = (Y, P.to_numpy()) if first == "y_true" else (Y.to_numpy(), P)
    column = pd.Series([1, 2, 1, 2], index=[3, 7, 9, 4])
    for call in (safecal.bernoulli(y, p).evaluate, lambda **given: safecal.evaluate(y, p, **given)):
        with pytest.raises(AlignmentError, match=rf"^`{name}` must have the same index as `{first}`; got 3 where"):
            call(**{name: column})
        call(**{name: column.set_axis(Y.index)})
        call(**{name: column.to_numpy()})


def test_weights_of_sums_and_columns_of_mappings_are_held_to_it() -> None:
    other = pd.Series([1.0, 2.0, 1.0, 2.0])
    rows = safecal.bernoulli(Y, P)
    calls: list[Callable[[], Any]] = [
        lambda: safecal.ecd(Y, P, sample_weight=other),
        lambda: safecal.ece(Y, P, sample_weight=other),
        lambda: rows.summary(other),
        lambda: rows.tally(cluster=other),
        lambda: safecal.assess_reliability(rows, sample_weight=other),
        lambda: safecal.compare(rows, rows, cluster=other),
        lambda: safecal.Temperature().fit(Y, P, by=other),
        lambda: safecal.gaussian(P, P, std=1.0).evaluate(by=other),
        lambda: safecal.gaussian(P, other, std=1.0),
        lambda: safecal.nees(P, P, std=1.0, sample_weight=other),
    ]
    for call in calls:
        with pytest.raises(AlignmentError):
            call()
    with pytest.raises(AlignmentError, match=r"^`by\['site'\]` must have the same index as `y_true`"):
        safecal.evaluate(Y, P, by={"site": other})


def test_equal_labels_and_columns_without_labels_are_taken() -> None:
    wanted = safecal.ecd(Y.to_numpy(), P.to_numpy())
    assert safecal.ecd(Y, P) == safecal.ecd(Y, P.to_numpy()) == safecal.ecd(Y.tolist(), P) == wanted
    frame = pd.DataFrame(K3, index=list("abcd"))
    assert safecal.ecd(pd.Series([0, 2, 2, 1], index=list("abcd")), frame) == safecal.ecd([0, 2, 2, 1], K3)
    with pytest.raises(AlignmentError, match="`y_prob` must have the same index"):
        safecal.ecd(pd.Series([0, 2, 2, 1]), frame)


def test_two_models_must_have_the_same_labels() -> None:
    a = safecal.bernoulli(Y, P)
    with pytest.raises(AlignmentError, match=r"^`b` must have the same index as `a`; got another one\."):
        safecal.compare(a, safecal.bernoulli(Y.reset_index(drop=True), P.reset_index(drop=True)))
    assert safecal.compare(a, safecal.bernoulli(Y, P.to_numpy())).n == 4


def test_labels_that_occur_twice_have_no_order_to_restore() -> None:
    with pytest.raises(AlignmentError, match=r"pass `y_prob\.to_numpy\(\)`"):
        safecal.ecd(Y.set_axis([0, 0, 1, 1]), P.set_axis([0, 1, 0, 1]))


def test_looking_at_the_labels_of_many_rows_costs_nothing() -> None:
    from safecal._checks.arrays import row_labels

    n = 10**7
    y, p = pd.Series(np.zeros(n, dtype=bool)), pd.Series(np.full(n, 0.25, dtype=np.float32))
    start = time.process_time()
    assert row_labels(y_true=y, y_prob=p) is not None
    assert time.process_time() - start < 0.01


@binary
def test_a_positive_label_that_never_occurs_is_refused(door: Door) -> None:
    with pytest.raises(LabelError) as caught:
        door(["well", "well"], [0.2, 0.7], pos_label="sikc")
    assert str(caught.value) == (
        "`pos_label` must be one of the labels in `y_true`; got 'sikc', which never occurs.\n\n"
        "Hint: the labels that occur: 'well'. If yours never happened here, pass `y_true == 'sikc'` as outcomes, "
        "without `pos_label`."
    )


def test_batches_without_a_positive_are_normal_and_frames_without_one_are_not() -> None:
    watched = Monitor()
    watched.update(["well", "well"], [0.2, 0.3], pos_label="sick")
    table = pa.table({"y": ["well"] * 4, "p": [0.1, 0.2, 0.3, 0.4]})
    for max_rows in (0, 1000):
        with pytest.raises(LabelError, match=r"got 'sikc', which never occurs\.\n\nHint: .* occur: 'well'\."):
            evaluate_frame(table, y_true="y", y_prob="p", pos_label="sikc", max_rows=max_rows)
    late = pa.table({"y": pa.chunked_array([["well"] * 4, ["sick"]]), "p": [0.1, 0.2, 0.3, 0.4, 0.9]})
    assert evaluate_frame(late, y_true="y", y_prob="p", pos_label="sick", max_rows=0).n == 5


@classes
def test_classes_numbered_from_one_are_refused_with_a_hint(door: Door) -> None:
    with pytest.raises(LabelError) as caught:
        door([1, 3, 3, 2], K3)
    assert str(caught.value).endswith(
        "Hint: these seem to be numbered from 1: pass `y_true - 1`, or `labels=[1, 2, 3]`."
    )
    with pytest.raises(LabelError, match=r"pass `y_true - 1`, or `labels=\[1, 2\]`"):
        door(np.array([1, 2, 2, 1]), np.full((4, 2), 0.5))


@pytest.mark.parametrize("door", [d for k, d in CLASSES.items() if k != "categorical"])
@pytest.mark.parametrize("form", ["y_prob", "logits"])
def test_labels_one_and_two_for_three_columns_are_refused_with_a_hint(door: Door, form: str) -> None:
    given = {form: K3 if form == "y_prob" else np.log(K3)}
    with pytest.raises(LabelError) as caught:
        door([1, 2, 1, 2], **given)
    assert str(caught.value) == (
        f"`y_true` must be a class number from 0 to 2; got 1, 2 and never 0, which `{form}` expects 1.3 times.\n\n"
        "Hint: if classes are numbered from 1, pass `y_true - 1`; if 0 never happened, `labels=[0, 1, 2]`."
    )
    assert safecal.evaluate([1, 2, 1, 2], **given, labels=[0, 1, 2]).n == 4
    assert safecal.categorical([1, 2, 1, 2], **given).n == 4  # it may be a batch, of which others hold class 0


def test_a_class_that_merely_never_happened_is_no_reason_to_refuse(rng: np.random.Generator) -> None:
    p = rng.dirichlet([0.5, 3.0, 3.0], 5000)
    kept = (p.cumsum(axis=1) < rng.random((5000, 1))).sum(axis=1)
    p, y = p[kept > 0], kept[kept > 0]
    assert set(y) == {1, 2}
    assert p[:, 0].sum() > 100.0  # the model is wrong about class 0, and that is for the evaluation to say
    assert safecal.evaluate(y, p).n == len(y)
    with pytest.raises(LabelError, match="numbered from 1"):
        safecal.evaluate(y, np.roll(p, -1, axis=1))
    rare = np.array([[0.01, 0.2, 0.79], [0.02, 0.9, 0.08]] * 10)
    assert safecal.evaluate([1, 2] * 10, rare).n == 20


SWAPPED = [
    pytest.param([0.2, 0.7, 0.9], [0, 1, 1], id="whole numbers"),
    pytest.param([0.2, 1.0, 0.0], [0.0, 1.0, 1.0], id="floats"),
    pytest.param(pd.Series([0.2, 0.7, 0.9]), np.array([0, 1, 1]), id="Series"),
    pytest.param([[0.2, 0.8, 0.0], [0.5, 0.25, 0.25]], [2, 1], id="classes"),
]


@pytest.mark.parametrize(("first", "second"), SWAPPED)
@binary
def test_swapped_arguments_are_recognised(door: Door, first: Any, second: Any) -> None:
    with pytest.raises(LabelError) as caught:
        door(first, second)
    assert str(caught.value) == (
        "`y_true` must hold what happened; got numbers between 0 and 1, and whole numbers as `y_prob`.\n\n"
        "Hint: the arguments seem swapped: outcomes come first, as in `evaluate(y_true, y_prob)`."
    )


def test_hard_predictions_and_shares_are_not_taken_for_swapped_arguments() -> None:
    assert safecal.brier([0.0, 1.0, 1.0], [0, 1, 1]) == 0.0
    with pytest.raises(LabelError, match="a tie or a share is not an outcome"):
        safecal.ecd([0.0, 0.5, 1.0], [0.2, 0.5, 0.6])


MULTI = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]])


@pytest.mark.parametrize("y_prob", [np.full((4, 3), 0.9), np.full((4, 2), 0.9), np.full(4, 0.9)], ids=["L", "K", "n"])
@classes
def test_several_labels_a_row_are_recognised_before_anything_else(door: Door, y_prob: np.ndarray) -> None:
    for y_true in (MULTI, MULTI.astype(float), MULTI.astype(bool)):
        with pytest.raises(ShapeError) as caught:
            door(y_true, y_prob)
        assert str(caught.value) == (
            "`y_true` must be one label for each row, shape (n,); got shape (4, 3) with 3 ones in row 2: several "
            "labels a row.\n\n"
            "Hint: evaluate every label with `evaluate(y_true, y_prob, by_label=True)`."
        )


def test_the_hint_for_several_labels_is_a_line_that_runs() -> None:
    y_prob = np.full((4, 3), 0.75)
    assert safecal.evaluate(MULTI, y_prob, by_label=True).n == 12
    with pytest.raises(ShapeError, match=r"`evaluate\(y_true, logits=logits, by_label=True\)`"):
        safecal.evaluate(pd.DataFrame(MULTI), logits=y_prob)


@classes
def test_one_hot_rows_are_recognised_before_sums_of_rows(door: Door) -> None:
    with pytest.raises(ShapeError, match=r"Hint: for one-hot rows pass `y_true\.argmax\(axis=1\)`\.$"):
        door(np.eye(3), np.full((3, 3), 0.9))
