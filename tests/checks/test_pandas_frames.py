"""Frames of pandas whose dtypes NumPy does not know."""

import numpy as np
import pandas as pd
import pytest

import safecal
from safecal.errors import DtypeError, LabelError, MissingValueError

P = np.array([[0.7, 0.3], [0.2, 0.8]])


@pytest.mark.parametrize("dtype", ["Float64", "float64[pyarrow]"])
def test_frames_of_extension_dtypes_are_taken_as_they_are(dtype: str) -> None:
    frame = pd.DataFrame(P).astype(dtype)
    assert safecal.ecd([0, 1], frame) == safecal.ecd([0, 1], P)


def test_a_missing_value_in_such_a_frame_is_refused() -> None:
    frame = pd.DataFrame(P).astype("Float64")
    frame.iloc[1, 0] = pd.NA
    with pytest.raises(MissingValueError, match=r"^`y_prob` must not be NaN; got nan at row 1, column 0"):
        safecal.ecd([0, 1], frame)


def test_a_frame_of_text_is_still_refused() -> None:
    with pytest.raises(DtypeError):
        safecal.ecd([0, 1], pd.DataFrame(P).astype(object))


def test_columns_that_name_the_classes_in_another_order_are_refused() -> None:
    y_prob = pd.DataFrame({"dog": [0.7, 0.2, 0.1], "cat": [0.2, 0.7, 0.2], "eel": [0.1, 0.1, 0.7]})
    y = ["dog", "cat", "eel"]
    right = safecal.evaluate(y, y_prob, labels=["dog", "cat", "eel"]).ecd
    for frame in (y_prob, y_prob.add_prefix("p_")):
        with pytest.raises(LabelError, match="`labels` must name the classes in the order of the columns of `y_prob`"):
            safecal.evaluate(y, frame, labels=["cat", "dog", "eel"])
        turned = frame[[frame.columns[k] for k in (1, 0, 2)]]
        assert safecal.evaluate(y, turned, labels=["cat", "dog", "eel"]).ecd == pytest.approx(right)
    assert safecal.evaluate(y, y_prob.set_axis(list("abc"), axis=1), labels=["dog", "cat", "eel"]).ecd == right
    two = pd.DataFrame({"p_yes": [0.9, 0.2], "p_no": [0.1, 0.8]})
    with pytest.raises(LabelError, match=r"swap them, `y_prob\[\['p_no', 'p_yes'\]\]`"):
        safecal.evaluate([1, 0], two)
    assert safecal.evaluate([1, 0], two[["p_no", "p_yes"]]).ecd == safecal.evaluate([1, 0], two, labels=[1, 0]).ecd
