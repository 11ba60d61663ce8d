"""Many bins as fewer: neighbours are added up, so that nothing is left out."""

import numpy as np

from ..bins import Bins
from ..table import Table, bin_keys

__all__ = ["MOST", "coarser"]

MOST = 50  # bins that a page shows


def coarser(table: Table, most: int = MOST) -> Table:
    """Return a table of at most so many bins; one that has no more is returned as it is.

    Examples
    --------
    >>> import safecal
    >>> table = safecal.evaluate([0, 1, 1, 0], [0.1, 0.7, 0.9, 0.6], bins=100).bins
    >>> coarser(table, 10).bins == safecal.Bins.uniform(10), coarser(table, 10).total == table.total
    (True, True)
    """
    if table.bins is None or len(table) <= most:
        return table
    step = -(-len(table) // most)
    starts = range(0, len(table), step)
    bins = Bins((*(table.bins.edges[k] for k in starts), table.bins.edges[-1]))
    merged = np.add.reduceat(table.sums, list(starts), axis=0)
    return Table(table.name, bin_keys(bins), merged, bins, table.top_label)
