"""Names for the array types that signatures use."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IndexArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]

# Some rows: a slice of them, or their numbers.
Rows: TypeAlias = slice | npt.NDArray[np.intp]

# What a caller may pass as a column or a matrix. NumPy, pandas, Polars, PyArrow and torch objects are all
# accepted; most of them declare no common type, hence Any.
ArrayLike: TypeAlias = Any
Labels: TypeAlias = Sequence[Any]
