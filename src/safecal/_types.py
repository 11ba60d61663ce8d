"""Names for the types that signatures use: arrays, and options with a few choices."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IndexArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]

# Some rows: a slice of them, or their numbers.
Rows: TypeAlias = slice | npt.NDArray[np.intp]


class SupportsArray(Protocol):
    """What turns into an array by itself: objects of NumPy, pandas, Polars, PyArrow, torch and JAX."""

    def __array__(self) -> AnyArray:
        """Return the values."""
        ...


# What a caller may pass as a column or a matrix; lists of lists are sequences, too. One number is none.
ArrayLike: TypeAlias = SupportsArray | Sequence[Any]
# Standard deviations or variances; one number is for all rows.
SpreadLike: TypeAlias = ArrayLike | float
# The particles of every row, or their weights: one array, or one for each row, read once.
Clouds: TypeAlias = ArrayLike | Iterable[ArrayLike]
# A column whose values name groups, or several, whose combinations do.
By: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
Labels: TypeAlias = Sequence[Any]

# Options with a few choices. The checks at run time read the same names.
Strategy: TypeAlias = Literal["uniform", "quantile"]
BinOn: TypeAlias = Literal["probability", "confidence", "entropy"]
Rule: TypeAlias = Literal["everywhere", "average"]
Quantity: TypeAlias = Literal["NEES", "NIS"]
Mapped: TypeAlias = Literal["classes", "states", "nothing"]
ParticleMethod: TypeAlias = Literal["moments", "neighbours", "density"]
TestMethod: TypeAlias = Literal["auto", "exact", "saddlepoint", "pearson3", "normal", "montecarlo", "cluster"]

# The side of a model. Documents hold the words without a hyphen, which are accepted, too.
Side: TypeAlias = Literal["over-confident", "under-confident"]
SideGiven: TypeAlias = Side | Literal["overconfident", "underconfident"]
Alternative: TypeAlias = Side | Literal["two-sided"]
AlternativeGiven: TypeAlias = SideGiven | Literal["two-sided"]
TestDirection: TypeAlias = Side | Literal["neither"]
Direction: TypeAlias = Literal[
    "no rows",
    "an outcome the model called impossible happened",
    "over-confident",
    "under-confident",
    "no clear direction",
]
AlarmDirection: TypeAlias = Side | Literal["shifted up", "shifted down"]
AlarmKind: TypeAlias = Literal["since the start", "change"]
Detect: TypeAlias = Literal["over", "both"]
Form: TypeAlias = Literal["shiryaev-roberts", "cusum"]
Decision: TypeAlias = Literal["SAFE", "UNSAFE", "UNDETERMINED"]
