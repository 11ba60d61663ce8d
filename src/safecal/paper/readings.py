"""ECE, ESCE and ECD read together, for each published block."""

from collections.abc import Sequence

import numpy as np

from .layout import rule
from .published import BINS, PublishedColumn, published_table1, published_table2

__all__ = ["joint_reading", "readings_text"]

# Published blocks have no intervals, so each metric is compared with one limit. For ECD it is the default of a verdict.
# For ECE the paper itself calls 0.08 very well calibrated and 0.17 locally miscalibrated.
GAP, NATS, CANCELS = 0.1, 0.1, 0.25


def joint_reading(column: PublishedColumn) -> str:
    """Say what the three weighted sums mean together, and which bins are over-confident.

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
    if ece <= GAP:
        return (
            "small gaps, and safe"
            if ecd <= NATS
            else "small gaps, but unsafe: confident mistakes that bins average away"
        )
    cancels = "; ESCE cancels" if abs(esce) < CANCELS * ece else ""
    return ("large gaps, but safe" if ecd <= NATS else "large gaps, and unsafe") + cancels


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
    head = f"{'block':<14}{'ECE':>8}{'ESCE':>9}{'ECD':>9}  bins with ECD above {NATS:g}"
    lines = [head, rule(len(head))]
    for column in (*published_table1(), *published_table2()) if columns is None else columns:
        over = np.flatnonzero(np.nan_to_num(column.values[2, :BINS]) > NATS) + 1
        cells = f"{column.ece[BINS]:>8}{column.esce[BINS]:>9}{column.ecd[BINS]:>9}"
        lines.append(f"{column.name:<14}{cells}  {', '.join(map(str, over)) or 'none'}")
        lines += [f"  ours:  {joint_reading(column)}", f"  paper: {column.reading}"]
    return "\n".join(lines)
