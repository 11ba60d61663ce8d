"""Several labels a row: one row of the table a label, and rows that hold together."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import safecal
from safecal.errors import AlignmentError, LabelError, MissingValueError, OptionError, RangeError, ShapeError

NAMES = ["cat", "dog", "bird"]


def rows(rng: np.random.Generator, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    y_prob = rng.beta(0.6, 0.6, size=(n, 3))
    return (rng.random((n, 3)) < y_prob).astype(int), y_prob


def test_each_label_is_a_row_of_the_table(rng: np.random.Generator) -> None:
    y_true, y_prob = rows(rng)
    result = safecal.evaluate(y_true, y_prob, by_label=True, labels=NAMES)
    assert result.groups is not None
    assert result.groups.name == "label"
    assert set(result.groups.keys) == set(NAMES)
    assert result.n == 1200
    for j, name in enumerate(NAMES):
        alone = safecal.evaluate(y_true[:, j], y_prob[:, j])
        assert result.groups[name].n == 400
        assert result.groups[name].ecd == pytest.approx(alone.ecd, rel=1e-12)
    assert result.ecd == pytest.approx(safecal.ecd(y_true.ravel(), y_prob.ravel()), rel=1e-12)


def test_one_bad_label_is_unsafe_and_named(rng: np.random.Generator) -> None:
    y_true, y_prob = rows(rng, 1000)
    logits = np.log(y_prob / (1 - y_prob))
    logits[:, 1] *= 3
    result = safecal.evaluate(y_true, logits=logits, by_label=True, labels=NAMES)
    assert result.verdict.decision == "UNSAFE"
    assert result.verdict.where[0].label == "label dog"
    assert result.groups is not None
    assert result.groups["dog"].verdict.decision == "UNSAFE"
    assert result.groups["cat"].verdict.decision != "UNSAFE"


@pytest.mark.proof
def test_the_labels_of_one_row_are_a_cluster(rng: np.random.Generator) -> None:
    y_true, y_prob = rows(rng)
    flat = {"y_true": y_true.ravel(), "y_prob": y_prob.ravel(), "by": {"label": np.tile([0, 1, 2], 400)}}
    result = safecal.evaluate(y_true, y_prob, by_label=True)
    assert result == safecal.evaluate(**flat, cluster=np.repeat(np.arange(400), 3))
    patient = np.arange(400) // 4
    weight = rng.random(400)
    result = safecal.evaluate(y_true, y_prob, by_label=True, cluster=patient, sample_weight=weight)
    assert result == safecal.evaluate(**flat, cluster=np.repeat(patient, 3), sample_weight=np.repeat(weight, 3))
    copied = safecal.evaluate(np.repeat(y_true[:, :1], 3, 1), np.repeat(y_prob[:, :1], 3, 1), by_label=True)
    alone = safecal.evaluate(y_true[:, 0], y_prob[:, 0])
    assert copied.interval.high - copied.interval.low > 0.95 * (alone.interval.high - alone.interval.low)


def test_a_frame_names_its_labels_and_a_sparse_matrix_is_taken(rng: np.random.Generator) -> None:
    y_true, y_prob = rows(rng, 50)
    frame = pd.DataFrame(y_true, columns=NAMES)
    named = safecal.evaluate(y_true, y_prob, by_label=True, labels=np.array(NAMES))
    assert safecal.evaluate(frame, y_prob, by_label=True) == named
    assert safecal.evaluate(y_true == 1, pd.DataFrame(y_prob, columns=NAMES), by_label=True) == named
    assert safecal.evaluate(frame.astype("Int8"), y_prob, by_label=True) == named
    assert safecal.evaluate(sparse.csr_matrix(y_true), y_prob, by_label=True, labels=NAMES) == named
    with pytest.raises(LabelError, match=r"`y_prob` must have the columns of `y_true`.*\n\nHint: pass `y_prob\[list"):
        safecal.evaluate(frame, pd.DataFrame(y_prob, columns=NAMES[::-1]), by_label=True)


def test_other_groups_are_crossed_with_the_labels(rng: np.random.Generator) -> None:
    y_true, y_prob = rows(rng, 60)
    site = pd.Series(np.arange(60) % 2, name="site")
    for by in (site, {"site": site}):
        groups = safecal.evaluate(y_true, y_prob, by_label=True, labels=NAMES, by=by).groups
        assert groups is not None
        assert groups.name == "label, site"
        assert {*groups.keys} == {(name, k) for name in NAMES for k in (0, 1)}
    with pytest.raises(OptionError, match="`by` must not have a column `label`"):
        safecal.evaluate(y_true, y_prob, by_label=True, by={"label": site})
    with pytest.raises(ShapeError, match="`by` must have as many rows as `y_true`; got 59 and 60"):
        safecal.evaluate(y_true, y_prob, by_label=True, by=site.to_numpy()[1:])
    with pytest.raises(AlignmentError, match="`by` must have the same index as `y_true`"):
        safecal.evaluate(pd.DataFrame(y_true), y_prob, by_label=True, by=site.iloc[::-1])


def test_one_label_is_the_evaluation_of_its_column(rng: np.random.Generator) -> None:
    y_true, y_prob = rows(rng)
    result = safecal.evaluate(y_true[:, :1], y_prob[:, :1], by_label=True)
    assert result.ecd == pytest.approx(safecal.ecd(y_true[:, 0], y_prob[:, 0]))


Y = np.array([[1, 0], [0, 0], [1, 1]])
P = np.array([[0.9, 0.1], [0.2, 0.3], [0.6, 0.7]])


@pytest.mark.parametrize(
    ("y_true", "given", "error", "words"),
    [
        (Y[:, 0], {"y_prob": P}, ShapeError, r"`y_true` must have a column of 0 and 1 for each label.*MultiLabelBin"),
        (Y, {"y_prob": P[:, 0]}, ShapeError, r"`y_prob` must have a column for each label.*leave `by_label` out"),
        (Y, {"y_prob": P[:, :0]}, ShapeError, r"got shape \(3, 0\)"),
        (Y, {"y_prob": [np.stack([1 - p, p], 1) for p in P.T]}, ShapeError, r"np\.stack\(\[p\[:, 1\] for p in y_prob"),
        (Y[:2], {"y_prob": P}, ShapeError, "must have as many rows"),
        (Y[:, :1], {"y_prob": P}, ShapeError, "as many columns as `y_prob`; got 1 and 2"),
        (Y[:1], {"y_prob": P[:1]}, ShapeError, "at least two rows"),
        (Y * 2, {"y_prob": P}, LabelError, r"0 or 1 for each label; got 2 at row 0, column 0 \(2 of 3 rows\)"),
        (np.where(Y == 1, np.nan, Y), {"y_prob": P}, LabelError, "got nan at row 0.*nobody looked for is not a 0"),
        (pd.DataFrame(Y, dtype="Int8").replace(0, pd.NA), {"y_prob": P}, LabelError, "got None at row 0, column 1"),
        (Y, {"y_prob": P + 1}, RangeError, r"`y_prob` must lie in \[0, 1\]; got 1.9 at row 0, column 0"),
        (Y, {"logits": P * np.nan}, MissingValueError, r"`logits\[:, 0\]` must not be NaN"),
        (Y, {"y_prob": P, "labels": ["a"]}, ShapeError, "`labels` must name each of the 2 columns"),
        (Y, {"y_prob": P, "labels": ["a", "a"]}, LabelError, "`labels` must be distinct; got 'a' more than once"),
        (Y, {"y_prob": P, "labels": [["a"], ["b"]]}, LabelError, "`labels` must be a list of names"),
        (Y, {"y_prob": P, "pos_label": 1}, OptionError, "`pos_label` belongs to one column"),
    ],
)
def test_what_is_no_matrix_of_labels_is_refused(
    y_true: Any, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"(?s){words}"):
        safecal.evaluate(y_true, **given, by_label=True)


def test_log_odds_may_be_infinite() -> None:
    logits = np.where(Y == 1, np.inf, -1.0)
    assert safecal.evaluate(Y, logits=logits, by_label=True).n == 6
