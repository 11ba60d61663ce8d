"""What a person reads when an argument is wrong: the type and the exact text of every message."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import Bins
from safecal.errors import (
    BinsError,
    CovarianceError,
    DtypeError,
    EmptyError,
    FormError,
    LabelError,
    MissingValueError,
    NormalisationError,
    OptionError,
    RangeError,
    ShapeError,
    UnavailableError,
    WeightError,
)

nan, inf = float("nan"), float("inf")
Y, P = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]
K3 = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]
X2 = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
I2 = [[1.0, 0.0], [0.0, 1.0]]

Case = tuple[str, Callable[[], Any], type[safecal.SafecalError], str]

# What was done, the call, the error, its text. "..." stands for what NumPy says in its own words.
CASES: list[Case] = [
    # lengths and shapes
    (
        "labels are fewer than predictions",
        lambda: safecal.evaluate([0, 1], P),
        ShapeError,
        (
            "`y_true` must have as many rows as `y_prob`; got 2 and 4.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "labels are fewer than rows of classes",
        lambda: safecal.evaluate([0, 1], K3),
        ShapeError,
        (
            "`y_true` must have as many rows as `y_prob`; got 2 and 3.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "weights of another length",
        lambda: safecal.evaluate(Y, P, sample_weight=[1.0]),
        ShapeError,
        (
            "`sample_weight` must have as many rows as `y_true`; got 1 and 4.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "weights of states of another length",
        lambda: safecal.nees([1.0, 2.0], [0.0, 0.0], std=1.0, sample_weight=[1.0]),
        ShapeError,
        (
            "`sample_weight` must have as many rows as `x_true`; got 1 and 2.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "groups of another length",
        lambda: safecal.evaluate(Y, P, by=["a"]),
        ShapeError,
        (
            "`by` must have as many rows as `y_true`; got 1 and 4.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "groups of a mapping of another length",
        lambda: safecal.evaluate(Y, P, by={"site": ["a"] * 4, "year": [1]}),
        ShapeError,
        (
            "`by['year']` must have as many rows as `y_true`; got 1 and 4.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "groups in two dimensions",
        lambda: safecal.evaluate(Y, P, by=[["a", "b"]] * 4),
        ShapeError,
        (
            "`by` must be one key for each row, shape (n,); got shape (4, 2).\n\n"
            'Hint: group by several columns with a mapping: `by={"site": site, "year": year}`.'
        ),
    ),
    (
        "a mapping of no groups",
        lambda: safecal.evaluate(Y, P, by={}),
        ShapeError,
        "`by` must name at least one column; got an empty mapping.",
    ),
    (
        "one column",
        lambda: safecal.evaluate(Y, [[p] for p in P]),
        ShapeError,
        (
            "`y_prob` must have shape (n,) for two classes or (n, K) with K >= 2; got shape (4, 1).\n\n"
            "Hint: if it belongs to the positive class, pass `y_prob[:, 0]`."
        ),
    ),
    (
        "one column of logits",
        lambda: safecal.evaluate(Y, logits=[[p] for p in P]),
        ShapeError,
        (
            "`logits` must have shape (n,) for two classes or (n, K) with K >= 2; got shape (4, 1).\n\n"
            "Hint: if it belongs to the positive class, pass `logits[:, 0]`."
        ),
    ),
    (
        "three dimensions",
        lambda: safecal.evaluate(Y, np.zeros((4, 2, 2))),
        ShapeError,
        "`y_prob` must have shape (n,) for two classes or (n, K) with K >= 2; got shape (4, 2, 2).",
    ),
    (
        "no columns",
        lambda: safecal.evaluate(Y, np.zeros((4, 0))),
        ShapeError,
        "`y_prob` must have one column for each of two or more classes, shape (n, K); got shape (4, 0).",
    ),
    (
        "a scalar prediction",
        lambda: safecal.evaluate([1], 0.3),
        ShapeError,
        (
            "`y_prob` must be a column of values, one for each row; got 0.3 of type float.\n\n"
            "Hint: wrap one row in a list: `[y_prob]`."
        ),
    ),
    (
        "a scalar label",
        lambda: safecal.evaluate(1, [0.3]),
        ShapeError,
        (
            "`y_true` must be a column of values, one for each row; got 1 of type int.\n\n"
            "Hint: wrap one row in a list: `[y_true]`."
        ),
    ),
    (
        "labels in two dimensions",
        lambda: safecal.evaluate([[0], [1], [1], [0]], P),
        ShapeError,
        ("`y_true` must be one label for each row, shape (n,); got shape (4, 1).\n\nHint: pass `y_true[:, 0]`."),
    ),
    (
        "one-hot labels",
        lambda: safecal.evaluate(np.eye(3), K3),
        ShapeError,
        (
            "`y_true` must be one label for each row, shape (n,); got shape (3, 3).\n\n"
            "Hint: for one-hot rows pass `y_true.argmax(axis=1)`."
        ),
    ),
    (
        "labels in three dimensions",
        lambda: safecal.evaluate(np.zeros((4, 1, 1)), P),
        ShapeError,
        "`y_true` must be one label for each row, shape (n,); got shape (4, 1, 1).",
    ),
    (
        "weights in two dimensions",
        lambda: safecal.evaluate(Y, P, sample_weight=[[1.0]] * 4),
        ShapeError,
        "`sample_weight` must be one weight for each row, shape (n,); got shape (4, 1).",
    ),
    (
        "a matrix for bernoulli",
        lambda: safecal.bernoulli([0, 1, 1], K3),
        ShapeError,
        (
            "`y_prob` must be one value for each row, shape (n,); got shape (3, 3).\n\n"
            "Hint: pass the positive class alone, `y_prob[:, 2]`, or use `categorical` for one column a "
            "class."
        ),
    ),
    (
        "a column for categorical",
        lambda: safecal.categorical(Y, P),
        ShapeError,
        (
            "`y_prob` must have one column for each of two or more classes, shape (n, K); got shape (4,).\n\n"
            "Hint: for one probability a row, of the positive class, use `bernoulli`."
        ),
    ),
    (
        "one column for categorical",
        lambda: safecal.categorical(Y, [[p] for p in P]),
        ShapeError,
        (
            "`y_prob` must have one column for each of two or more classes, shape (n, K); got shape (4, 1).\n\n"
            "Hint: if it belongs to the positive class, pass `y_prob[:, 0]` to `bernoulli`."
        ),
    ),
    (
        "ragged rows",
        lambda: safecal.evaluate(Y, [[0.5, 0.5], [1.0]]),
        ShapeError,
        ("`y_prob` must be an array or a list of rows of equal length; got a list that NumPy cannot read."),
    ),
    ("nothing at all", lambda: safecal.evaluate([], []), EmptyError, "`y_prob` must have at least one row; got none."),
    (
        "no rows of classes",
        lambda: safecal.evaluate([], np.zeros((0, 3))),
        EmptyError,
        "`y_prob` must have at least one row; got none.",
    ),
    (
        "no states",
        lambda: safecal.gaussian([], [], std=1.0),
        EmptyError,
        "`x_true` must have at least one row; got none.",
    ),
    # values
    (
        "NaN",
        lambda: safecal.evaluate(Y, [0.2, nan, 0.9, nan]),
        MissingValueError,
        (
            "`y_prob` must not be NaN; got nan at row 1 (2 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "NaN among classes",
        lambda: safecal.evaluate([0, 1, 2], [[0.7, 0.2, 0.1], [0.1, nan, 0.8], [0.3, 0.3, 0.4]]),
        MissingValueError,
        (
            "`y_prob` must not be NaN; got nan at row 1, column 1 (1 of 3 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "NaN among logits",
        lambda: safecal.evaluate(Y, logits=[0.2, 1.0, nan, 3.0]),
        MissingValueError,
        (
            "`logits` must not be NaN; got nan at row 2 (1 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "infinite probability",
        lambda: safecal.evaluate(Y, [0.2, inf, 0.9, 0.1]),
        RangeError,
        "`y_prob` must lie in [0, 1]; got inf at row 1 (1 of 4 rows).",
    ),
    (
        "log-odds as probabilities",
        lambda: safecal.evaluate(Y, [-1.2, 0.3, 1.7, 2.0]),
        RangeError,
        (
            "`y_prob` must lie in [0, 1]; got -1.2 at row 0 (3 of 4 rows).\n\n"
            "Hint: these look like log-odds: pass them as `logits=`."
        ),
    ),
    (
        "percentages",
        lambda: safecal.evaluate(Y, [20, 70, 90, 60]),
        RangeError,
        (
            "`y_prob` must lie in [0, 1]; got 20 at row 0 (4 of 4 rows).\n\n"
            "Hint: these look like percentages: pass `y_prob / 100`."
        ),
    ),
    (
        "a probability above one by rounding",
        lambda: safecal.evaluate(Y, [0.2, 1.0000001, 0.9, 0.1]),
        RangeError,
        (
            "`y_prob` must lie in [0, 1]; got 1.0000001 at row 1 (1 of 4 rows).\n\n"
            "Hint: if that is rounding, pass `np.clip(y_prob, 0, 1)`."
        ),
    ),
    (
        "a probability below zero by rounding",
        lambda: safecal.evaluate(Y, [0.2, -1e-9, 0.9, 0.1]),
        RangeError,
        (
            "`y_prob` must lie in [0, 1]; got -1e-09 at row 1 (1 of 4 rows).\n\n"
            "Hint: if that is rounding, pass `np.clip(y_prob, 0, 1)`."
        ),
    ),
    (
        "a probability far above one",
        lambda: safecal.evaluate(Y, [0.2, 1000.0, 0.9, 0.1]),
        RangeError,
        (
            "`y_prob` must lie in [0, 1]; got 1000.0 at row 1 (1 of 4 rows).\n\n"
            "Hint: these look like log-odds: pass them as `logits=`."
        ),
    ),
    (
        "logits as probabilities of classes",
        lambda: safecal.evaluate([0, 1, 2], [[1.0, -2.0, 0.5]] * 3),
        RangeError,
        (
            "`y_prob` must lie in [0, 1]; got -2.0 at row 0, column 1 (3 of 3 rows).\n\n"
            "Hint: these look like log-odds: pass them as `logits=`."
        ),
    ),
    (
        "probabilities as logits of classes",
        lambda: safecal.evaluate([0, 1, 2] * 11, logits=[[0.7, 0.2, 0.1], [0.98, 0.01, 0.01], [0.5, 0.5, 0.0]] * 11),
        FormError,
        (
            "`logits` must be unnormalised log-probabilities; got rows that lie in [0, 1] and sum to 1.\n\n"
            "Hint: these look like probabilities: pass them as `y_prob`."
        ),
    ),
    (
        "rows that do not sum to one",
        lambda: safecal.evaluate([0, 1, 2], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.9], [0.3, 0.3, 0.5]]),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.00451; got 1.1 (off by +0.1, the farthest) at row 1 "
            "(2 of 3 rows).\n\n"
            "Hint: if they are unnormalised, pass `y_prob / y_prob.sum(axis=1, keepdims=True)`; if they are "
            "log-probabilities or scores, pass them as `logits=`."
        ),
    ),
    (
        "one row that does not sum to one",
        lambda: safecal.evaluate([0], [[0.2, 0.2, 0.2]]),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.00451; got 0.6 (off by -0.4, the farthest) at row 0 "
            "(1 of 1 row).\n\n"
            "Hint: if they are unnormalised, pass `y_prob / y_prob.sum(axis=1, keepdims=True)`; if they are "
            "log-probabilities or scores, pass them as `logits=`."
        ),
    ),
    (
        "rows rounded to two decimals",
        lambda: safecal.evaluate([0, 1, 2], [[0.33, 0.33, 0.33], [0.7, 0.2, 0.1], [0.14, 0.28, 0.57]]),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.00451; got 0.99 (off by -0.01, the farthest) at row 0 "
            "(2 of 3 rows).\n\n"
            "Hint: these look rounded to 2 decimals: pass `y_prob / y_prob.sum(axis=1, keepdims=True)`."
        ),
    ),
    (
        "rows rounded to three decimals, with zeros",
        lambda: safecal.evaluate([0, 1], np.array([[0.071] * 14, [1.0] + [0.0] * 13], dtype=np.float32)),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.00189; got 0.994000033 (off by -0.006, the farthest) at row "
            "0 (1 of 2 rows).\n\n"
            "Hint: these look rounded to 3 decimals: pass `y_prob / y_prob.sum(axis=1, keepdims=True)`, "
            "with `clip=0.0005`, because a rounded 0 is not impossible."
        ),
    ),
    (
        "rows rounded to two decimals, with zeros, of too many classes to clip them",
        lambda: safecal.evaluate([0, 1], [[0.07] * 14, [1.0] + [0.0] * 13]),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.00189; got 0.98 (off by -0.02, the farthest) at row 0 "
            "(1 of 2 rows).\n\n"
            "Hint: these look rounded to 2 decimals, too few for 14 classes, because a rounded 0 is not impossible: "
            "pass all digits, or `logits=`."
        ),
    ),
    (
        "rows of multiples of a hundredth that were not rounded",
        lambda: safecal.evaluate([0], [[0.25, 0.25, 0.45]]),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.00451; got 0.95 (off by -0.05, the farthest) at row 0 "
            "(1 of 1 row).\n\n"
            "Hint: if they are unnormalised, pass `y_prob / y_prob.sum(axis=1, keepdims=True)`; if they are "
            "log-probabilities or scores, pass them as `logits=`."
        ),
    ),
    (
        "rows in float16",
        lambda: safecal.evaluate([0], np.array([[0.25, 0.25, 0.25, 0.255]], dtype=np.float16)),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.00358; got 1.00488281 (off by +0.00488, the farthest) at row "
            "0 (1 of 1 row).\n\n"
            "Hint: float16 rounds too much for this: pass `logits=`, or normalise in float32: "
            "`y_prob.astype('float32') / y_prob.astype('float32').sum(axis=1, keepdims=True)`."
        ),
    ),
    (
        "unnormalised rows in float16",
        lambda: safecal.evaluate([0], np.full((1, 1000), 0.0015, dtype=np.float16)),
        NormalisationError,
        (
            "`y_prob` must sum to 1 in each row, within 0.000723; got 1.5001297 (off by +0.5, the farthest) at row 0 "
            "(1 of 1 row).\n\n"
            "Hint: if they are unnormalised, pass "
            "`y_prob.astype('float32') / y_prob.astype('float32').sum(axis=1, keepdims=True)`; if they are "
            "log-probabilities or scores, pass them as `logits=`."
        ),
    ),
    (
        "a logit of plus infinity among classes",
        lambda: safecal.evaluate([0, 1, 2], logits=[[1.0, 2.0, 3.0], [1.0, inf, 2.0], [0.0, 0.0, 0.0]]),
        RangeError,
        (
            "`logits` must be finite or -inf; got inf at row 1, column 1 (1 of 3 rows).\n\n"
            "Hint: a +inf logit has no softmax."
        ),
    ),
    (
        "a row of minus infinity",
        lambda: safecal.evaluate([0, 1], logits=[[1.0, 2.0], [-inf, -inf]]),
        RangeError,
        (
            "`logits` must have a finite value in each row; got -inf at row 1, column 0 (1 of 2 rows).\n\n"
            "Hint: a row of only -inf gives no class a probability."
        ),
    ),
    # labels
    (
        "a share as a label",
        lambda: safecal.evaluate([0, 0.5, 1, 0.5], P),
        LabelError,
        (
            "`y_true` must be 0 or 1; got 0.5 at row 1 (2 of 4 rows).\n\n"
            "Hint: a tie or a share is not an outcome: drop those rows first."
        ),
    ),
    (
        "labels one and two",
        lambda: safecal.evaluate([1, 2, 2, 1], P),
        LabelError,
        (
            "`y_true` must be 0 or 1; got 2 at row 1 (2 of 4 rows).\n\n"
            "Hint: say which outcome is the positive one with `pos_label=`."
        ),
    ),
    (
        "labels minus one and one",
        lambda: safecal.evaluate([-1, 1, 1, -1], P),
        LabelError,
        (
            "`y_true` must be 0 or 1; got -1 at row 0 (2 of 4 rows).\n\n"
            "Hint: say which outcome is the positive one with `pos_label=`."
        ),
    ),
    (
        "text without pos_label",
        lambda: safecal.evaluate(["sick", "well", "sick", "well"], P),
        LabelError,
        (
            "`y_true` must be 0 or 1 when `pos_label` is not given; got 'sick' at row 0 (4 of 4 rows).\n\n"
            "Hint: say which outcome is the positive one, for example `pos_label='well'`."
        ),
    ),
    (
        "three labels with pos_label",
        lambda: safecal.evaluate(["a", "b", "c", "a"], P, pos_label="a"),
        LabelError,
        (
            "`y_true` must hold `pos_label` ('a') and at most one other label; got 2 others: 'b', 'c'.\n\n"
            "Hint: for more than two classes pass `y_prob` with one column for each class."
        ),
    ),
    (
        "a pos_label that does not occur",
        lambda: safecal.evaluate(["a", "b", "b", "a"], P, pos_label="A"),
        LabelError,
        (
            "`pos_label` must be one of the labels in `y_true`; got 'A', which never occurs.\n\n"
            "Hint: the labels that occur: 'a', 'b'. If yours never happened here, pass `y_true == 'A'` as outcomes, "
            "without `pos_label`."
        ),
    ),
    (
        "a pos_label of another type",
        lambda: safecal.evaluate(["a", "b", "b", "a"], P, pos_label=1),
        LabelError,
        (
            "`pos_label` must be one of the labels in `y_true`; got 1, which never occurs.\n\n"
            "Hint: the labels that occur: 'a', 'b'."
        ),
    ),
    (
        "a text as pos_label for numbers",
        lambda: safecal.evaluate(Y, P, pos_label="1"),
        LabelError,
        (
            "`pos_label` must be one of the labels in `y_true`; got '1', which never occurs.\n\n"
            "Hint: the labels that occur: 0, 1."
        ),
    ),
    (
        "a class number too large",
        lambda: safecal.evaluate([0, 1, 3], K3),
        LabelError,
        (
            "`y_true` must be a class number from 0 to 2; got 3 at row 2 (1 of 3 rows).\n\n"
            "Hint: classes are numbered from 0; if yours have other names, pass `labels=` in the order of "
            "the columns."
        ),
    ),
    (
        "a negative class number",
        lambda: safecal.evaluate([0, -1, 2], K3),
        LabelError,
        (
            "`y_true` must be a class number from 0 to 2; got -1 at row 1 (1 of 3 rows).\n\n"
            "Hint: classes are numbered from 0; if yours have other names, pass `labels=` in the order of "
            "the columns."
        ),
    ),
    (
        "a class number between two",
        lambda: safecal.evaluate([0, 1.5, 2], K3),
        LabelError,
        (
            "`y_true` must be a class number from 0 to 2; got 1.5 at row 1 (1 of 3 rows).\n\n"
            "Hint: classes are numbered from 0; if yours have other names, pass `labels=` in the order of "
            "the columns."
        ),
    ),
    (
        "a class number beyond 64 bits",
        lambda: safecal.evaluate([0, 2**70, 2], K3),
        LabelError,
        (
            "`y_true` must be a class number from 0 to 2; got 1180591620717411303424 at row 1 (1 of 3 rows).\n\n"
            "Hint: classes are numbered from 0; if yours have other names, pass `labels=` in the order of "
            "the columns."
        ),
    ),
    (
        "text without labels",
        lambda: safecal.evaluate(["cat", "dog", "eel"], K3),
        LabelError,
        (
            "`y_true` must be a class number from 0 to 2 when `labels` is not given; got 'cat' at row 0 (3 "
            "of 3 rows).\n\n"
            "Hint: name the columns of `y_prob` in their order, for example `labels=['cat', 'dog', 'eel']`."
        ),
    ),
    (
        "an unknown label",
        lambda: safecal.evaluate(["cat", "dog", "Eel"], K3, labels=["cat", "dog", "eel"]),
        LabelError,
        (
            "`y_true` must be one of `labels` (['cat', 'dog', 'eel']); got 'Eel' at row 2 (1 of 3 rows).\n\n"
            "Hint: every label that occurs needs a column; is it spelled alike in both?"
        ),
    ),
    (
        "labels named twice",
        lambda: safecal.evaluate([0, 1, 2], K3, labels=["a", "b", "a"]),
        LabelError,
        "`labels` must be distinct; got 'a' more than once.",
    ),
    (
        "too few labels",
        lambda: safecal.evaluate([0, 1, 2], K3, labels=["a", "b"]),
        ShapeError,
        "`labels` must name each of the 3 columns of `y_prob`; got 2 names.",
    ),
    (
        "NaN as a label",
        lambda: safecal.evaluate([0, nan, 1, 0], P),
        MissingValueError,
        (
            "`y_true` must not hold missing values; got nan at row 1 (1 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "None as a label",
        lambda: safecal.evaluate([0, None, 1, None], P),
        MissingValueError,
        (
            "`y_true` must not hold missing values; got None at row 1 (2 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "None among text",
        lambda: safecal.evaluate(["a", None, "b", "a"], P, pos_label="a"),
        MissingValueError,
        (
            "`y_true` must not hold missing values; got None at row 1 (1 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "None as a class",
        lambda: safecal.evaluate(["a", None, "b"], K3, labels=["a", "b", "c"]),
        MissingValueError,
        (
            "`y_true` must not hold missing values; got None at row 1 (1 of 3 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "labels for a column",
        lambda: safecal.evaluate(Y, P, labels=["a", "b"]),
        OptionError,
        (
            "`labels` names the columns of an (n, K) prediction; got `y_prob` of shape (n,).\n\n"
            "Hint: for one probability a row, name the positive class with `pos_label=`."
        ),
    ),
    (
        "pos_label for a matrix",
        lambda: safecal.evaluate([0, 1, 2], K3, pos_label=1),
        OptionError,
        (
            "`pos_label` belongs to a prediction of shape (n,); got `y_prob` of shape (3, 3).\n\n"
            "Hint: for one column a class, name the columns with `labels=`."
        ),
    ),
    # forms
    (
        "no prediction",
        lambda: safecal.evaluate(Y),
        FormError,
        (
            "`y_prob` or `logits` must be given, exactly one of them; got neither.\n\n"
            "Hint: `y_prob` for probabilities, `logits=` for log-odds or unnormalised log-probabilities."
        ),
    ),
    (
        "probabilities and logits",
        lambda: safecal.evaluate(Y, P, logits=P),
        FormError,
        (
            "`y_prob` or `logits` must be given, exactly one of them; got both.\n\n"
            "Hint: `y_prob` for probabilities, `logits=` for log-odds or unnormalised log-probabilities."
        ),
    ),
    (
        "clip with logits",
        lambda: safecal.evaluate(Y, logits=P, clip=0.01),
        FormError,
        (
            "`clip` applies to `y_prob` only; got `logits`.\n\n"
            "Hint: logits never saturate, so there is nothing to clip: leave `clip` out."
        ),
    ),
    (
        "clip of zero",
        lambda: safecal.evaluate(Y, P, clip=0),
        RangeError,
        "`clip` must lie strictly between 0 and 1/2; got 0.",
    ),
    (
        "clip of one half",
        lambda: safecal.evaluate(Y, P, clip=0.5),
        RangeError,
        "`clip` must lie strictly between 0 and 1/2; got 0.5.",
    ),
    (
        "clip too large for three classes",
        lambda: safecal.evaluate([0, 1, 2], K3, clip=0.4),
        RangeError,
        "`clip` must lie strictly between 0 and 1/3; got 0.4.",
    ),
    (
        "clip that makes another model",
        lambda: safecal.evaluate([0, 1, 2], K3, clip=0.011),
        RangeError,
        (
            "`clip` must be at most 0.01 for 3 classes, because more would move over 2 % of the probability of a row, "
            "and judge another, vaguer model; got 0.011.\n\n"
            "Hint: pass `logits=`, or probabilities with all their digits; else `clip=0.01`, and no more."
        ),
    ),
    (
        "clip that is NaN",
        lambda: safecal.evaluate(Y, P, clip=nan),
        RangeError,
        "`clip` must lie strictly between 0 and 1/2; got nan.",
    ),
    (
        "clip that is text",
        lambda: safecal.evaluate(Y, P, clip="0.1"),
        RangeError,
        "`clip` must lie strictly between 0 and 1/2; got '0.1'.",
    ),
    (
        "no spread",
        lambda: safecal.gaussian([1.0], [0.0]),
        FormError,
        (
            "`std` or `var`, `cov`, `chol`, `precision` must be given, exactly one of them; got none.\n\n"
            "Hint: `std=` or `var=` for independent components, `cov=` for a covariance matrix."
        ),
    ),
    (
        "two spreads",
        lambda: safecal.gaussian([1.0], [0.0], std=1.0, var=1.0),
        FormError,
        (
            "`std` or `var`, `cov`, `chol`, `precision` must be given, exactly one of them; got `std` and "
            "`var`.\n\n"
            "Hint: `std=` or `var=` for independent components, `cov=` for a covariance matrix."
        ),
    ),
    # weights
    (
        "negative weights",
        lambda: safecal.evaluate(Y, P, sample_weight=[1.0, -1.0, 2.0, -3.0]),
        WeightError,
        "`sample_weight` must not be negative; got -1.0 at row 1 (2 of 4 rows).",
    ),
    (
        "weights that are all zero",
        lambda: safecal.evaluate(Y, P, sample_weight=[0, 0, 0, 0]),
        WeightError,
        "`sample_weight` must not be all zero; got 4 zeros.",
    ),
    (
        "NaN among weights",
        lambda: safecal.evaluate(Y, P, sample_weight=[1.0, nan, 2.0, 3.0]),
        MissingValueError,
        ("`sample_weight` must not be NaN; got nan at row 1 (1 of 4 rows).\n\nHint: give such rows the weight 0."),
    ),
    (
        "infinite weights",
        lambda: safecal.evaluate(Y, P, sample_weight=[1.0, inf, 2.0, 3.0]),
        RangeError,
        "`sample_weight` must be finite; got inf at row 1 (1 of 4 rows).",
    ),
    (
        "weights that are decisions",
        lambda: safecal.evaluate(Y, P, sample_weight=[True, False, True, True]),
        DtypeError,
        (
            "`sample_weight` must be real numbers of at most 64 bits; got dtype bool.\n\n"
            "Hint: convert the column first, for example `sample_weight.astype(float)`."
        ),
    ),
    # dtypes
    (
        "text as probabilities",
        lambda: safecal.evaluate(Y, ["low", "0.7", "0.9", "0.6"]),
        DtypeError,
        (
            "`y_prob` must be real numbers of at most 64 bits; got dtype <U3.\n\n"
            "Hint: the column holds text: is it the right column?"
        ),
    ),
    (
        "objects as probabilities",
        lambda: safecal.evaluate(Y, np.array(P, dtype=object)),
        DtypeError,
        (
            "`y_prob` must be real numbers of at most 64 bits; got dtype object.\n\n"
            "Hint: convert the column first, for example `y_prob.astype(float)`."
        ),
    ),
    (
        "None among probabilities",
        lambda: safecal.evaluate(Y, [0.2, None, 0.9, None]),
        MissingValueError,
        (
            "`y_prob` must not hold missing values; got None at row 1 (2 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "decisions as probabilities",
        lambda: safecal.evaluate(Y, [False, True, True, False]),
        DtypeError,
        (
            "`y_prob` must be real numbers of at most 64 bits; got dtype bool.\n\n"
            "Hint: these are decisions; a probability is a number such as 0.83."
        ),
    ),
    (
        "complex probabilities",
        lambda: safecal.evaluate(Y, np.array(P, dtype=complex)),
        DtypeError,
        ("`y_prob` must be real numbers of at most 64 bits; got dtype complex128.\n\nHint: is it the right column?"),
    ),
    (
        "long doubles",
        lambda: safecal.evaluate(Y, np.array(P, dtype=np.longdouble)),
        DtypeError,
        (
            "`y_prob` must be real numbers of at most 64 bits; got dtype float128.\n\n"
            "Hint: convert it yourself, for example `y_prob.astype(float)`, if the rounding is what you want."
        ),
    ),
    (
        "dates as probabilities",
        lambda: safecal.evaluate(Y, np.array(["2024-01-01"] * 4, dtype="M8[D]")),
        DtypeError,
        ("`y_prob` must be real numbers of at most 64 bits; got dtype datetime64[D].\n\nHint: is it the right column?"),
    ),
    (
        "masked values",
        lambda: safecal.evaluate(Y, np.ma.masked_greater(P, 0.65)),
        MissingValueError,
        (
            "`y_prob` must not hold masked values; got a masked value at row 1 (2 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "masked labels",
        lambda: safecal.evaluate(np.ma.masked_equal(Y, 1), P),
        MissingValueError,
        (
            "`y_true` must not hold masked values; got a masked value at row 1 (2 of 4 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "text as a spread",
        lambda: safecal.gaussian([1.0], [0.0], std="wide"),
        DtypeError,
        (
            "`std` must be real numbers of at most 64 bits; got dtype <U4.\n\n"
            "Hint: the column holds text: is it the right column?"
        ),
    ),
    (
        "decisions as a spread",
        lambda: safecal.gaussian([1.0], [0.0], std=True),
        DtypeError,
        (
            "`std` must be real numbers of at most 64 bits; got dtype bool.\n\n"
            "Hint: convert the column first, for example `std.astype(float)`."
        ),
    ),
    # states
    (
        "means of another shape",
        lambda: safecal.gaussian([1.0, 2.0, 3.0], [0.0, 0.0], std=1.0),
        ShapeError,
        (
            "`mean` must have as many rows as `x_true`; got 2 and 3.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "one mean for all",
        lambda: safecal.gaussian(X2, [0.0, 0.0], std=1.0),
        ShapeError,
        (
            "`mean` must have the shape of `x_true`; got (2,) and (3, 2).\n\n"
            "Hint: one mean a row: repeat a shared one with `np.broadcast_to(mean, x_true.shape)`."
        ),
    ),
    (
        "states in three dimensions",
        lambda: safecal.gaussian(np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), std=1.0),
        ShapeError,
        "`x_true` must have shape (n,) or (n, d) with d >= 1; got shape (2, 2, 2).",
    ),
    (
        "NaN among states",
        lambda: safecal.gaussian([1.0, nan], [0.0, 0.0], std=1.0),
        MissingValueError,
        (
            "`x_true` must not be NaN; got nan at row 1 (1 of 2 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "an infinite mean",
        lambda: safecal.gaussian([1.0, 2.0], [0.0, inf], std=1.0),
        RangeError,
        "`mean` must be finite; got inf at row 1 (1 of 2 rows).",
    ),
    (
        "a spread of zero",
        lambda: safecal.gaussian([1.0, 2.0], [0.0, 0.0], std=[1.0, 0.0]),
        RangeError,
        (
            "`std` must be greater than 0; got 0.0 at row 1 (1 of 2 rows).\n\n"
            "Hint: a state known without error has no density."
        ),
    ),
    (
        "a negative scalar spread",
        lambda: safecal.gaussian([1.0, 2.0], [0.0, 0.0], std=-1.0),
        RangeError,
        ("`std` must be greater than 0; got -1.0.\n\nHint: a state known without error has no density."),
    ),
    (
        "a negative variance of a component",
        lambda: safecal.gaussian(X2, X2, var=[1.0, -2.0]),
        RangeError,
        (
            "`var` must be greater than 0; got -2.0 at row 0, column 1 (1 of 1 row).\n\n"
            "Hint: a state known without error has no density."
        ),
    ),
    (
        "a spread of another shape",
        lambda: safecal.gaussian([1.0, 2.0], [0.0, 0.0], std=[1.0, 1.0, 1.0]),
        ShapeError,
        "`std` must be a number or shape (n,), here (2,); got shape (3,).",
    ),
    (
        "a spread of another shape for vectors",
        lambda: safecal.gaussian(X2, X2, std=[1.0, 1.0, 1.0]),
        ShapeError,
        "`std` must be a number, shape (d,) or shape (n, d), here (2,) or (3, 2); got shape (3,).",
    ),
    (
        "NaN as a spread",
        lambda: safecal.gaussian([1.0], [0.0], std=nan),
        MissingValueError,
        (
            "`std` must not be NaN; got nan at row 0 (1 of 1 row).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "a covariance for scalars",
        lambda: safecal.gaussian([1.0], [0.0], cov=[[1.0]]),
        ShapeError,
        (
            "`cov` needs states of shape (n, d); got `x_true` of shape (1,).\n\n"
            "Hint: for scalar states pass `std=` or `var=`; or make the states (n, 1)."
        ),
    ),
    (
        "a covariance of another shape",
        lambda: safecal.gaussian(X2, X2, cov=np.eye(3)),
        ShapeError,
        "`cov` must be one (2, 2) matrix, or one for each row, (3, 2, 2); got shape (3, 3).",
    ),
    (
        "a covariance that is not symmetric",
        lambda: safecal.gaussian(X2, X2, cov=[[1.0, 0.5], [0.2, 1.0]]),
        CovarianceError,
        (
            "`cov` must be symmetric; got entries that differ by 0.3 from their mirror.\n\n"
            "Hint: if that is rounding, pass `(cov + np.swapaxes(cov, -1, -2)) / 2`."
        ),
    ),
    (
        "a batch with one that is not symmetric",
        lambda: safecal.gaussian(X2, X2, cov=[I2, [[1.0, 0.5], [0.2, 1.0]], I2]),
        CovarianceError,
        (
            "`cov` must be symmetric; got entries that differ by 0.3 from their mirror at row 1 (1 of 3 "
            "rows).\n\n"
            "Hint: if that is rounding, pass `(cov + np.swapaxes(cov, -1, -2)) / 2`."
        ),
    ),
    (
        "a covariance with NaN",
        lambda: safecal.gaussian(X2, X2, cov=[I2, I2, [[1.0, nan], [nan, 1.0]]]),
        MissingValueError,
        (
            "`cov` must not be NaN; got nan at row 2, line 0, column 1 (1 of 3 rows).\n\n"
            "Hint: drop or fill those rows first: safecal drops nothing by itself."
        ),
    ),
    (
        "an infinite covariance",
        lambda: safecal.gaussian(X2, X2, cov=[[inf, 0.0], [0.0, 1.0]]),
        RangeError,
        "`cov` must be finite; got inf at row 0, line 0, column 0 (1 of 1 row).",
    ),
    (
        "a covariance that is not positive definite",
        lambda: safecal.gaussian(X2, X2, cov=[[1.0, 2.0], [2.0, 1.0]]),
        CovarianceError,
        (
            "`cov` must be positive definite; got a matrix whose smallest eigenvalue is -1.\n\n"
            "Hint: safecal never uses a pseudo-inverse: drop the components that are known exactly, or fix "
            "the filter."
        ),
    ),
    (
        "a batch with two that are not positive definite",
        lambda: safecal.gaussian(X2, X2, cov=[I2, [[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]]]),
        CovarianceError,
        (
            "`cov` must be positive definite; got a matrix whose smallest eigenvalue is -1 at row 1 (2 of 3 "
            "rows).\n\n"
            "Hint: safecal never uses a pseudo-inverse: drop the components that are known exactly, or fix "
            "the filter."
        ),
    ),
    (
        "a precision that is not positive definite",
        lambda: safecal.gaussian(X2, X2, precision=[[1.0, 2.0], [2.0, 1.0]]),
        CovarianceError,
        (
            "`precision` must be positive definite; got a matrix whose smallest eigenvalue is -1.\n\n"
            "Hint: safecal never uses a pseudo-inverse: drop the components that are known exactly, or fix "
            "the filter."
        ),
    ),
    (
        "a singular factor",
        lambda: safecal.gaussian(X2, X2, chol=[[1.0, 0.0], [1.0, 0.0]]),
        CovarianceError,
        "`chol` must have no 0 on its diagonal; got a singular factor.",
    ),
    (
        "a batch with a singular factor",
        lambda: safecal.gaussian(X2, X2, chol=[I2, I2, [[0.0, 0.0], [1.0, 1.0]]]),
        CovarianceError,
        "`chol` must have no 0 on its diagonal; got a singular factor at row 2 (1 of 3 rows).",
    ),
    (
        "an upper factor",
        lambda: safecal.gaussian(X2, X2, chol=[[1.0, 0.5], [0.0, 1.0]]),
        CovarianceError,
        (
            "`chol` must be lower triangular; got 0.5 above the diagonal.\n\n"
            "Hint: for an upper factor pass `np.swapaxes(chol, -1, -2)`."
        ),
    ),
    (
        "a batch with an upper factor",
        lambda: safecal.gaussian(X2, X2, chol=[I2, [[1.0, 0.5], [0.0, 1.0]], I2]),
        CovarianceError,
        (
            "`chol` must be lower triangular; got 0.5 above the diagonal at row 1 (1 of 3 rows).\n\n"
            "Hint: for an upper factor pass `np.swapaxes(chol, -1, -2)`."
        ),
    ),
    (
        "a ragged covariance",
        lambda: safecal.gaussian(X2, X2, cov=[[1.0, 0.0], [1.0]]),
        ShapeError,
        ("`cov` must be an array or a list of rows of equal length; got a list that NumPy cannot read."),
    ),
    # bins
    (
        "no bins",
        lambda: safecal.evaluate(Y, P, bins=0),
        BinsError,
        "`bins` must be a whole number, at least 1; got 0.",
    ),
    (
        "fewer than no bins",
        lambda: safecal.evaluate(Y, P, bins=-1),
        BinsError,
        "`bins` must be a whole number, at least 1; got -1.",
    ),
    (
        "labels that are no list",
        lambda: safecal.categorical([0, 1], [[0.5, 0.5], [0.1, 0.9]], labels=5),
        LabelError,
        "`labels` must be a list of names; got 5.",
    ),
    (
        "half a bin",
        lambda: safecal.evaluate(Y, P, bins=2.5),
        BinsError,
        ("`bins` must be a number of bins or a Bins; got 2.5.\n\nHint: for edges pass `bins=Bins.from_edges(edges)`."),
    ),
    (
        "True bins",
        lambda: safecal.evaluate(Y, P, bins=True),
        BinsError,
        ("`bins` must be a number of bins or a Bins; got True.\n\nHint: for edges pass `bins=Bins.from_edges(edges)`."),
    ),
    (
        "bins in words",
        lambda: safecal.evaluate(Y, P, bins="ten"),
        BinsError,
        (
            "`bins` must be a number of bins or a Bins; got 'ten'.\n\n"
            "Hint: for edges pass `bins=Bins.from_edges(edges)`."
        ),
    ),
    (
        "edges as a list",
        lambda: safecal.evaluate(Y, P, bins=[0, 0.5, 1]),
        BinsError,
        (
            "`bins` must be a number of bins or a Bins; got [0, 0.5, 1].\n\n"
            "Hint: for edges pass `bins=Bins.from_edges(edges)`."
        ),
    ),
    (
        "edges as an array",
        lambda: safecal.evaluate(Y, P, bins=np.array([0, 0.5, 1])),
        BinsError,
        (
            "`bins` must be a number of bins or a Bins; got [0.0, 0.5, 1.0].\n\n"
            "Hint: for edges pass `bins=Bins.from_edges(edges)`."
        ),
    ),
    (
        "no bins for a binned metric",
        lambda: safecal.ece(Y, P, bins=None),
        BinsError,
        ("`bins` must be a number of bins or a Bins; got None.\n\nHint: for edges pass `bins=Bins.from_edges(edges)`."),
    ),
    (
        "edges that do not increase",
        lambda: Bins.from_edges([0.0, 0.5, 0.5, 1.0]),
        BinsError,
        "`edges` must increase strictly; got 0.5 before 0.5 at position 1.",
    ),
    (
        "edges with NaN",
        lambda: Bins.from_edges([0.0, nan, 1.0]),
        BinsError,
        "`edges` must increase strictly; got 0.0 before nan at position 0.",
    ),
    (
        "one edge",
        lambda: Bins.from_edges([0.0]),
        BinsError,
        "`edges` must be a list of at least two numbers; got shape (1,).",
    ),
    (
        "edges that do not cover",
        lambda: safecal.evaluate(Y, P, bins=Bins.from_edges([0.3, 1.0])),
        BinsError,
        (
            "`values` must lie within the bins, 0.3 to 1; got 0.2 at row 0 (1 of 4 rows).\n\n"
            "Hint: add edges that cover every value; `-inf` and `inf` are allowed."
        ),
    ),
    (
        "uniform bins of nothing",
        lambda: Bins.uniform(3, 1.0, 1.0),
        BinsError,
        "`low` must be finite and smaller than `high`; got 1.0 and 1.0.",
    ),
    (
        "uniform bins of the half-line",
        lambda: Bins.uniform(3, 0.0, inf),
        BinsError,
        "`low` must be finite and smaller than `high`; got 0.0 and inf.",
    ),
    (
        "quantile bins of nothing",
        lambda: Bins.quantile([], 3),
        EmptyError,
        "`values` must have at least one row; got none.",
    ),
    ("quantile bins of NaN", lambda: Bins.quantile([0.0, nan], 3), MissingValueError, "`values` must not be NaN."),
    (
        "bins on the probability of more classes",
        lambda: safecal.evaluate([0, 1, 2], K3, bin_on="probability"),
        OptionError,
        (
            "`bin_on` must be one of 'confidence', 'entropy'; got 'probability'.\n\n"
            "Hint: only two classes have a positive one; leave `bin_on` out."
        ),
    ),
    (
        "bins on an unknown value",
        lambda: safecal.evaluate(Y, P, bin_on="score"),
        OptionError,
        "`bin_on` must be one of 'probability', 'confidence', 'entropy'; got 'score'.",
    ),
    (
        "an unknown strategy",
        lambda: safecal.evaluate(Y, P, strategy="equal"),
        OptionError,
        "`strategy` must be one of 'uniform', 'quantile'; got 'equal'.",
    ),
    (
        "uniform bins for states",
        lambda: safecal.gaussian([1.0], [0.0], std=1.0).evaluate(bins=10),
        OptionError,
        (
            "`bins` of gaussian predictions cannot be uniform: entropy has no bounds.\n\n"
            'Hint: pass `strategy="quantile"`, edges: `bins=Bins.from_edges([...])`, or `bins=None`.'
        ),
    ),
    (
        "bins on the confidence of states",
        lambda: safecal.gaussian([1.0], [0.0], std=1.0).evaluate(bins=10, bin_on="confidence"),
        OptionError,
        "`bin_on` must be 'entropy'; got 'confidence'.",
    ),
    (
        "an unknown side",
        lambda: safecal.ece(Y, P, side="both"),
        OptionError,
        "`side` must be one of 'over-confident', 'under-confident'; got 'both'.",
    ),
    (
        "blocks of no rows",
        lambda: list(safecal.bernoulli(Y, P).blocks(0)),
        OptionError,
        "`size` must be a whole number, at least 1; got 0.",
    ),
    # log-partition
    (
        "a fourth derivative",
        lambda: safecal.bernoulli(Y, P).log_partition(1.0, deriv=4),
        OptionError,
        "`deriv` must be 0, 1, 2 or 3; got 4.",
    ),
    (
        "a derivative in words",
        lambda: safecal.bernoulli(Y, P).log_partition(1.0, deriv="2"),
        OptionError,
        "`deriv` must be 0, 1, 2 or 3; got '2'.",
    ),
    (
        "an infinite beta",
        lambda: safecal.bernoulli(Y, P).log_partition(inf),
        RangeError,
        "`beta` must be finite; got inf.",
    ),
    (
        "beta below zero at certainty",
        lambda: safecal.bernoulli([0, 1], [0.0, 0.5]).log_partition(-1.0),
        UnavailableError,
        "log_partition at beta < 0 is infinite where a probability is 0.",
    ),
    (
        "beta below zero at certainty of classes",
        lambda: safecal.categorical([0], [[1.0, 0.0]]).log_partition(-1.0),
        UnavailableError,
        "log_partition at beta < 0 is infinite where a probability is 0.",
    ),
    (
        "beta of zero for states",
        lambda: safecal.gaussian([1.0], [0.0], std=1.0).log_partition(0.0),
        UnavailableError,
        "log_partition of a Gaussian exists for beta > 0 only; got 0.0.",
    ),
    # tests, intervals, verdicts
    (
        "an alternative that is none",
        lambda: safecal.calibration_test(safecal.bernoulli(Y, P), alternative="greater"),
        OptionError,
        "`alternative` must be one of 'over-confident', 'under-confident', 'two-sided'; got 'greater'.",
    ),
    (
        "a method of testing that is none",
        lambda: safecal.calibration_test(safecal.bernoulli(Y, P), method="bootstrap"),
        OptionError,
        (
            "`method` must be one of 'auto', 'exact', 'saddlepoint', 'pearson3', 'normal', 'montecarlo', 'cluster'; "
            "got 'bootstrap'."
        ),
    ),
    (
        "an exact test from sums",
        lambda: safecal.calibration_test(safecal.bernoulli(Y, P).summary(), method="exact"),
        OptionError,
        (
            "`y_true` must be rows, not sums, for this test; got a Summary.\n\n"
            "Hint: pass the predictions themselves: "
            "`bernoulli(...)`, `categorical(...)`, `gaussian(...)` or `density(...)`."
        ),
    ),
    (
        "a test of clusters without clusters",
        lambda: safecal.calibration_test(safecal.bernoulli(Y, P), method="cluster"),
        OptionError,
        "`method` must be \"cluster\" exactly when `cluster` is given; got 'cluster' without `cluster`.",
    ),
    (
        "clusters with another method",
        lambda: safecal.calibration_test(safecal.bernoulli(Y, P), method="normal", cluster=[0, 0, 1, 1]),
        OptionError,
        "`method` must be \"cluster\" exactly when `cluster` is given; got 'normal' with `cluster`.",
    ),
    (
        "one cluster",
        lambda: safecal.calibration_test(safecal.bernoulli(Y, P), cluster=["a"] * 4),
        ShapeError,
        (
            "`cluster` must name at least two clusters; got 1.\n\n"
            "Hint: one track alone has no test of this kind; test its innovations (NIS), "
            "which do not depend on each other."
        ),
    ),
    (
        "one cluster of an evaluation",
        lambda: safecal.evaluate(Y, P, cluster=[7, 7, 7, 7]),
        ShapeError,
        (
            "`cluster` must name at least two clusters; got 1.\n\n"
            "Hint: one track alone has no test of this kind; test its innovations (NIS), "
            "which do not depend on each other."
        ),
    ),
    (
        "clusters of another length",
        lambda: safecal.evaluate(Y, P, cluster=[0, 1]),
        ShapeError,
        (
            "`cluster` must have as many rows as `y_true`; got 2 and 4.\n\n"
            "Hint: both must come from the same rows, in the same order."
        ),
    ),
    (
        "too many values to list",
        lambda: safecal.calibration_test(safecal.bernoulli(np.ones(100), np.linspace(0.1, 0.9, 100)), method="exact"),
        OptionError,
        (
            '`method` cannot be "exact" here: the sum has too many values to list.\n\n'
            'Hint: `method="auto"` chooses among the others.'
        ),
    ),
    (
        "drawn tails of states",
        lambda: safecal.calibration_test(safecal.gaussian([1.0, 2.0], [0.0, 0.0], std=1.0), method="montecarlo"),
        OptionError,
        '`method` cannot be "montecarlo" for these predictions.\n\nHint: leave `method` out.',
    ),
    (
        "a temperature from sums, with weights",
        lambda: safecal.implied_temperature(safecal.bernoulli(Y, P).tally(), sample_weight=[1.0] * 4),
        OptionError,
        (
            "`y_true` must be rows, not sums, for clusters or weights.\n\n"
            "Hint: give them to the tally: `predictions.tally(cluster=..., sample_weight=...)`."
        ),
    ),
    (
        "a level of 95",
        lambda: safecal.evaluate(Y, P, level=95),
        RangeError,
        "`level` must lie strictly between 0 and 1; got 95.",
    ),
    (
        "a level of 1 for a temperature",
        lambda: safecal.implied_temperature(safecal.bernoulli(Y, P), level=1.0),
        RangeError,
        "`level` must lie strictly between 0 and 1; got 1.0.",
    ),
    (
        "a level of 0 afterwards",
        lambda: safecal.evaluate(Y, P).confidence_interval(0),
        RangeError,
        "`level` must lie strictly between 0 and 1; got 0.",
    ),
    (
        "a threshold of 0",
        lambda: safecal.evaluate(Y, P, threshold=0),
        RangeError,
        "`threshold` must be greater than 0; got 0.",
    ),
    (
        "a threshold below 0 afterwards",
        lambda: safecal.evaluate(Y, P).judge(threshold=-0.1),
        RangeError,
        "`threshold` must be greater than 0; got -0.1.",
    ),
    (
        "a largest temperature that is no number",
        lambda: safecal.evaluate(Y, P, max_temperature="1.5"),
        RangeError,
        "`max_temperature` must be greater than 0; got '1.5'.",
    ),
    (
        "the temperature of an unnormalised density",
        lambda: safecal.implied_temperature(
            safecal.density([0.5], log_density=lambda x: -(x**2), sampler=lambda rng: rng.normal(size=1), rng=0)
        ),
        UnavailableError,
        "an unnormalised density has no temperature.",
    ),
    # what does not exist
    (
        "ECE of states",
        lambda: safecal.gaussian([1.0], [0.0], std=1.0).evaluate(bins=2, strategy="quantile").bins.ece(),
        UnavailableError,
        "ECE and ESCE compare probabilities of classes; these predictions have none.",
    ),
]


def test_no_case_stands_twice() -> None:
    names = [name for name, *_ in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("call", "error", "text"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_message(call: Callable[[], Any], error: type[safecal.SafecalError], text: str) -> None:
    with pytest.raises(safecal.SafecalError) as caught:
        call()
    assert type(caught.value) is error
    assert isinstance(caught.value, ValueError)
    start, _, end = text.partition("...")
    message = str(caught.value)
    assert message == text if not end else message.startswith(start) and message.endswith(end)


@pytest.mark.parametrize("text", [case[3] for case in CASES], ids=[case[0] for case in CASES])
def test_messages_follow_the_template(text: str) -> None:
    first, _, hint = text.partition("\n\n")
    assert first.endswith(".")
    assert "\n" not in first
    assert not hint or (hint.startswith("Hint: ") and hint.endswith((".", "?")))
    for wrapper in ("np.float64", "np.int64", "np.str_", "array("):
        assert wrapper not in text
