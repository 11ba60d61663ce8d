"""The published values of Tables 1 and 2, digit by digit, and what the three metrics of each block say together.

Cells are kept as they are printed, because what a printed number says depends on how many of its digits are printed:
one cell of Table 1 has three decimals, all others four.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from .._types import BoolArray, FloatArray

__all__ = [
    "BINS",
    "METRICS",
    "PublishedColumn",
    "joint_reading",
    "published_table1",
    "published_table2",
    "readings_text",
]

METRICS = ("ECE", "ESCE", "ECD")
BINS = 10

# Published blocks have no intervals, so each metric is compared with one limit. For ECD it is the default of a verdict.
# For ECE the paper itself calls 0.08 very well calibrated and 0.17 locally miscalibrated.
_LARGEST_ECE, _LARGEST_ECD = 0.1, 0.1
_CANCELS = 0.25  # where ESCE is below this share of ECE, the signs of its bins cancel


@final
@dataclass(frozen=True, slots=True)
class PublishedColumn:
    """One block of a published table: three metrics in ten bins, unweighted, and their weighted sums.

    Attributes
    ----------
    name : str
        What the block is about: a noise, or a model.
    sd : float or None
        Standard deviation of the noise, for Table 1.
    ece, esce, ecd : tuple of str
        The ten bins and then the weighted sum, as printed; ``"N/A"`` where a bin is empty.
    reading : str
        What the paper concludes from the block.

    Examples
    --------
    >>> from safecal.paper import published_table1
    >>> clean = published_table1()[0]
    >>> clean.name, clean.ecd[-1]
    ('ε = 0', '0.0057')
    >>> clean.values[2, :3]
    array([ 0.0231, -0.0334,  0.0069])
    """

    name: str
    sd: float | None
    ece: tuple[str, ...]
    esce: tuple[str, ...]
    ecd: tuple[str, ...]
    reading: str

    @property
    def printed(self) -> tuple[tuple[str, ...], ...]:
        """The cells as printed: one row for each metric, ten bins and the weighted sum."""
        return (self.ece, self.esce, self.ecd)

    @property
    def values(self) -> FloatArray:
        """The cells as numbers, shape (3, 11); NaN where a bin is empty."""
        return np.array([[np.nan if cell == "N/A" else float(cell) for cell in row] for row in self.printed])

    @property
    def rounding(self) -> FloatArray:
        """The most by which each cell may be rounded: half a unit of its last printed digit, shape (3, 11)."""
        return np.array([[0.5 * 10.0 ** -len(cell.partition(".")[2]) for cell in row] for row in self.printed])

    def agreeing(self, values: FloatArray) -> BoolArray:
        """Tell which of our values, shape (3, 11), give the published cell when they are rounded as it was.

        Parameters
        ----------
        values : ndarray of shape (3, 11)
            Ours; NaN where a bin is empty.

        Returns
        -------
        ndarray of shape (3, 11)
            Whether they agree. Empty bins agree with empty bins.
        """
        slack = 1e-9  # a rounding half-way may go either way
        near: BoolArray = np.abs(values - self.values) <= self.rounding + slack
        return near | (np.isnan(values) & np.isnan(self.values))


def _cells(text: str) -> tuple[str, ...]:
    cells = tuple(text.split())
    assert len(cells) == BINS + 1
    return cells


def published_table1() -> tuple[PublishedColumn, ...]:
    """Return Table 1, simulated data: one block for each of three noises.

    Returns
    -------
    tuple of PublishedColumn
        For ε = 0, ε ~ N(0, 0.5²) and ε ~ N(0, 2²).

    Examples
    --------
    >>> from safecal.paper import published_table1
    >>> [column.ecd[-1] for column in published_table1()]
    ['0.0057', '1.2901', '4.2405']
    """
    return _TABLE_1


def published_table2() -> tuple[PublishedColumn, ...]:
    """Return Table 2, real data: one block for each of three models.

    Returns
    -------
    tuple of PublishedColumn
        BERTimbau, ResNet18 and RoBERTa.

    Examples
    --------
    >>> from safecal.paper import published_table2
    >>> [(column.name, column.ecd[-1]) for column in published_table2()]
    [('BERTimbau', '0.4767'), ('ResNet18', '0.0602'), ('RoBERTa', '0.1629')]
    """
    return _TABLE_2


def joint_reading(column: PublishedColumn) -> str:
    """Say what the three weighted sums of a block mean together.

    Parameters
    ----------
    column : PublishedColumn
        A block of Table 1 or 2.

    Returns
    -------
    str
        In words.

    Examples
    --------
    >>> from safecal.paper import joint_reading, published_table2
    >>> joint_reading(published_table2()[0])
    'small gaps, but unsafe: confident mistakes that bins average away'
    """
    ece, esce, ecd = column.values[:, BINS]
    if ece <= _LARGEST_ECE:
        return (
            "small gaps, and safe"
            if ecd <= _LARGEST_ECD
            else "small gaps, but unsafe: confident mistakes that bins average away"
        )
    cancels = "; ESCE cancels" if abs(esce) < _CANCELS * ece else ""
    return ("large gaps, but safe" if ecd <= _LARGEST_ECD else "large gaps, and unsafe") + cancels


def readings_text(columns: Sequence[PublishedColumn] | None = None) -> str:
    """Return the joint readings of published blocks, beside what the paper says.

    Parameters
    ----------
    columns : sequence of PublishedColumn, optional
        By default all six.

    Returns
    -------
    str
        Three lines for each block.

    Examples
    --------
    >>> from safecal.paper import published_table1, readings_text
    >>> print(readings_text(published_table1()[:1]))
    block              ECE     ESCE      ECD  bins with ECD above 0.1
    -----------------------------------------------------------------
    ε = 0           0.0077   0.0003   0.0057  none
      ours:  small gaps, and safe
      paper: well calibrated and safe
    """
    head = f"{'block':<14}{'ECE':>8}{'ESCE':>9}{'ECD':>9}  bins with ECD above {_LARGEST_ECD:g}"
    lines = [head, "-" * len(head)]
    for column in (*published_table1(), *published_table2()) if columns is None else columns:
        over = np.flatnonzero(np.nan_to_num(column.values[2, :BINS]) > _LARGEST_ECD) + 1
        cells = f"{column.ece[BINS]:>8}{column.esce[BINS]:>9}{column.ecd[BINS]:>9}"
        lines.append(f"{column.name:<14}{cells}  {', '.join(map(str, over)) or 'none'}")
        lines += [f"  ours:  {joint_reading(column)}", f"  paper: {column.reading}"]
    return "\n".join(lines)


_TABLE_1 = (
    PublishedColumn(
        "ε = 0",
        0.0,
        _cells("0.0074 0.0181 0.0066 0.0306 0.0059 0.0193 0.0011 0.0015 0.0131 0.0007 0.0077"),
        _cells("0.0074 -0.0181 0.0066 0.0306 -0.0059 -0.0193 0.0011 0.0015 -0.0131 0.0007 0.0003"),
        _cells("0.0231 -0.0334 0.0069 0.0153 0.0019 0.0036 -0.0057 0.0012 0.0242 -0.0037 0.0057"),
        "well calibrated and safe",
    ),
    PublishedColumn(
        "ε ~ N(0, 0.5²)",
        0.5,
        _cells("0.2194 0.2214 0.1432 0.0743 0.0399 0.0294 0.0911 0.1010 0.1574 0.2171 0.1702"),
        _cells("0.2194 0.2214 0.1432 0.0743 0.0399 -0.0294 -0.0911 -0.1010 -0.1574 -0.2171 0.0035"),
        _cells("2.1406 0.3860 0.1582 0.0488 0.0099 0.0045 0.0597 0.1143 0.2771 2.1415 1.2901"),
        "globally calibrated, some local gaps, not safe: bins 1 and 10",
    ),
    PublishedColumn(
        "ε ~ N(0, 2²)",
        2.0,
        _cells("0.4473 0.3115 0.2158 0.1749 0.0936 0.0817 0.0803 0.2672 0.3439 0.4287 0.4042"),
        _cells("0.4473 0.3115 0.2158 0.1749 0.0936 -0.0817 -0.0803 -0.2672 -0.3439 -0.4287 0.0064"),
        _cells("4.995 0.5701 0.2529 0.1148 0.0264 0.0246 0.0534 0.3034 0.6044 4.8069 4.2405"),
        "badly calibrated, not safe; ESCE is small because signs cancel",
    ),
)

_TABLE_2 = (
    PublishedColumn(
        "BERTimbau",
        None,
        _cells("0.0504 0.2234 0.1548 0.2265 0.0723 0.0792 0.1515 0.2721 0.4006 0.2953 0.0772"),
        _cells("0.0504 0.2234 0.1548 0.2265 -0.0723 -0.0792 -0.1515 -0.2721 -0.4006 -0.2953 0.0203"),
        _cells("0.3927 0.3900 0.1718 0.1417 -0.0213 0.0019 0.0952 0.3014 0.7424 1.5816 0.4767"),
        "ECE and ESCE small, yet bins 1 and 10 a cause for concern",
    ),
    PublishedColumn(
        "ResNet18",
        None,
        _cells("0.0252 N/A N/A N/A N/A N/A 0.3800 0.2132 N/A 0.0127 0.0231"),
        _cells("0.0252 N/A N/A N/A N/A N/A 0.3800 0.2132 N/A -0.0127 0.0109"),
        _cells("0.0640 N/A N/A N/A N/A N/A -0.1860 -0.2784 N/A 0.0649 0.0602"),
        "well calibrated and safe",
    ),
    PublishedColumn(
        "RoBERTa",
        None,
        _cells("0.0384 0.4531 0.0882 0.0192 0.2952 0.5455 0.0880 0.2696 0.0266 0.0439 0.0456"),
        _cells("0.0384 0.4531 -0.0882 0.0192 0.2952 -0.5455 0.0880 -0.2696 -0.0266 -0.0439 -0.0049"),
        _cells("0.1407 0.7836 -0.0476 -0.0006 0.0408 0.1008 -0.0239 0.2623 0.0105 0.1799 0.1629"),
        "ECE and ESCE small, some concern in bins 1 and 10",
    ),
)
