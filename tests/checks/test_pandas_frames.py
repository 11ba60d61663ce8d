"""Frames of pandas whose dtypes NumPy does not know."""

import numpy as np
import pandas as pd
import pytest

import safecal
from safecal.errors import DtypeError, MissingValueError

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
