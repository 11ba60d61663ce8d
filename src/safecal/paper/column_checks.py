"""Do the cells of a published block fit together? Linear programming tells, up to their rounding.

The weighted sums are means of the bins with the shares of rows as weights. The shares are not published, but they are
not negative and add up to one, and three weighted sums must come out of them. Inside a bin, ESCE and ECD are means over
rows with probabilities of that bin and labels 0 or 1. Where no shares, or no rows, could give the cells, something is
wrong with them. Where some can, their range is what the published numbers tell about them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import optimize, special

from .._types import BoolArray, FloatArray
from .published import BINS, PublishedColumn

__all__ = ["ColumnCheck", "check_column", "checks_text"]

_GRID = 400  # probabilities in a bin
_NEAREST = 1e-15  # to 0 and to 1


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnCheck:
    """What the cells of a block say about each other.

    Attributes
    ----------
    name : str
        The block.
    signs : bool
        Whether ECE is the size of ESCE in every bin.
    misfit : float
        By how much the weighted sums as printed must be moved, at least, for some shares to give them; 0 when none
        need be.
    shares : ndarray of shape (10, 2)
        Smallest and largest share of rows that each bin can have, given the rounding of every cell; NaN where the bin
        is empty, or no shares give the sums.
    outer : tuple of float
        The same for the first and the last bin together.
    observed : ndarray of shape (10, 2)
        Smallest and largest share of positive labels in each bin; NaN where it is empty, or no rows could give its
        cells.
    impossible_bins : tuple of int
        Bins, from 1, whose ESCE and ECD no rows could give.

    Examples
    --------
    >>> from safecal.paper import check_column, published_table2
    >>> resnet = check_column(published_table2()[1])
    >>> resnet.possible
    True
    >>> resnet.observed[[6, 7]].round(3).tolist()  # bins 7 and 8 hold positive labels only
    [[1.0, 1.0], [1.0, 1.0]]
    """

    name: str
    signs: bool
    misfit: float
    shares: FloatArray
    outer: tuple[float, float]
    observed: FloatArray

    impossible_bins: tuple[int, ...]

    @property
    def sums(self) -> bool:
        """Whether some shares of rows give the weighted sums, up to rounding."""
        return not np.isnan(self.outer[0])

    @property
    def possible(self) -> bool:
        """Whether everything fits together, up to rounding."""
        return self.signs and self.sums and not self.impossible_bins


def check_column(column: PublishedColumn) -> ColumnCheck:
    """Check the cells of a published block against each other.

    Parameters
    ----------
    column : PublishedColumn
        A block of Table 1 or 2.

    Returns
    -------
    ColumnCheck
        What fits, and what they say about the rows.

    Examples
    --------
    >>> from safecal.paper import check_column, published_table1
    >>> some, much = (check_column(column) for column in published_table1()[1:])
    >>> [round(end, 3) for end in some.outer + much.outer]  # share of rows in the two outer bins
    [0.569, 0.587, 0.855, 0.861]
    """
    values, rounding = column.values, column.rounding
    full = ~np.isnan(values[0, :BINS])
    places = np.flatnonzero(full)
    bins, bins_rounding = values[:, :BINS][:, full], rounding[:, :BINS][:, full]
    sums, sums_rounding = values[:, BINS], rounding[:, BINS]
    shares, observed = np.full((2, BINS, 2), np.nan)
    for k, place in enumerate(places):
        shares[place] = _range(bins, bins_rounding, sums, sums_rounding, np.arange(len(places)) == k)
        observed[place] = _observed(int(place), values[1:, place], rounding[1:, place])
    return ColumnCheck(
        column.name,
        bool(np.array_equal(np.abs(bins[1]), bins[0])),
        _misfit(bins, sums),
        shares,
        _range(bins, bins_rounding, sums, sums_rounding, np.isin(places, (0, BINS - 1))),
        observed,
        tuple(int(place) + 1 for place in places if np.isnan(observed[place, 0])),
    )


def _range(
    cells: FloatArray,
    rounding: FloatArray | float,
    target: FloatArray,
    target_rounding: FloatArray,
    counted: FloatArray | BoolArray,
) -> tuple[float, float]:
    """Return the least and the most that weights can put on the counted columns, when they give the target.

    ``rounding`` and ``target_rounding`` are the most by which cells and target may be rounded. Whatever the weights,
    the true mean lies within the weighted mean of ``rounding``, so the program stays linear.
    """
    ends = []
    for sign in (1.0, -1.0):
        program = optimize.linprog(
            sign * np.asarray(counted, dtype=float),
            A_ub=np.vstack([cells - rounding, -cells - rounding]),
            b_ub=np.concatenate([target_rounding + target, target_rounding - target]),
            A_eq=np.ones((1, cells.shape[1])),
            b_eq=[1.0],
            bounds=(0.0, 1.0),
        )
        ends.append(sign * float(program.fun) if program.status == 0 else np.nan)
    return ends[0] + 0.0, ends[1] + 0.0  # no minus zero


def _misfit(cells: FloatArray, target: FloatArray) -> float:
    """Return the smallest deviation from the target that some weights achieve."""
    size = cells.shape[1]
    ones = np.ones((len(cells), 1))
    program = optimize.linprog(
        np.eye(size + 1)[size],
        A_ub=np.vstack([np.hstack([cells, -ones]), np.hstack([-cells, -ones])]),
        b_ub=np.concatenate([target, -target]),
        A_eq=np.append(np.ones(size), 0.0)[None, :],
        b_eq=[1.0],
        bounds=(0.0, None),
    )
    return float(program.fun)


def _observed(place: int, cells: FloatArray, rounding: FloatArray) -> tuple[float, float]:
    """Return the range of the share of positive labels, over all rows that a bin could hold."""
    low, high = max(place / BINS, _NEAREST), min((place + 1) / BINS, 1.0 - _NEAREST)
    # Even steps in p in the middle, even steps in log-odds at the ends, where they have no bounds.
    p = special.expit(np.linspace(special.logit(low), special.logit(high), _GRID))
    p = np.concatenate([p, np.linspace(low, high, _GRID)])
    odds = special.logit(p)
    rows = np.hstack([np.stack([y - p, (p - y) * odds]) for y in (0.0, 1.0)])
    return _range(rows, 0.0, cells, rounding, np.repeat([0.0, 1.0], len(p)))


def checks_text(checks: Iterable[ColumnCheck]) -> str:
    """Return the checks of several blocks as text.

    Parameters
    ----------
    checks : iterable of ColumnCheck
        From `check_column`.

    Returns
    -------
    str
        A line for each block.

    Examples
    --------
    >>> from safecal.paper import check_column, checks_text, published_table2
    >>> print(checks_text([check_column(published_table2()[1])]))
    block            |ESCE| = ECE  sums fit  impossible bins   share of rows in bins 1 and 10
    -----------------------------------------------------------------------------------------
    ResNet18                  yes       yes             none                   0.985 to 0.986
    """
    head = f"{'block':<16}{'|ESCE| = ECE':>13}{'sums fit':>10}{'impossible bins':>17}"
    head += f"{'share of rows in bins 1 and 10':>33}"
    lines = [head, "-" * len(head)]
    for check in checks:
        fits = "yes" if check.sums else f"off by {check.misfit:.4f}"
        impossible = ", ".join(map(str, check.impossible_bins)) or "none"
        outer = f"{check.outer[0]:.3f} to {check.outer[1]:.3f}"
        lines.append(f"{check.name:<16}{'yes' if check.signs else 'no':>13}{fits:>10}{impossible:>17}{outer:>33}")
    return "\n".join(lines)
