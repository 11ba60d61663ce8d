"""Some rows that came together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._types import AnyArray
from ..families.predictions import Predictions

__all__ = ["Batch", "join_batches"]


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: checked predictions, and the columns beside them.

    Attributes
    ----------
    predictions : Predictions
        Of a classifier.
    sample_weight : ndarray of shape (n,) or None
        Weight of each row.
    by : mapping of names to ndarrays, or None
        The columns to group by.
    cluster : ndarray of shape (n,) or None
        The cluster of each row.

    Examples
    --------
    >>> import safecal
    >>> from safecal.engines.batches import Batch
    >>> Batch(safecal.bernoulli([1, 0], [0.9, 0.4])).predictions.n
    2
    """

    predictions: Predictions
    sample_weight: AnyArray | None = None
    by: Mapping[str, AnyArray] | None = None
    cluster: AnyArray | None = None


def join_batches(parts: list[Batch]) -> Batch:
    """Put the rows of batches under each other.

    Parameters
    ----------
    parts : list of Batch
        At least one; all with the same columns.

    Returns
    -------
    Batch
        All rows, in their order.

    Examples
    --------
    >>> import safecal
    >>> from safecal.engines.batches import Batch, join_batches
    >>> parts = [Batch(safecal.bernoulli([1, 0], [0.9, 0.4])), Batch(safecal.bernoulli([1], [0.7]))]
    >>> join_batches(parts).predictions.n
    3
    """

    def column(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else np.concatenate(found)

    by = parts[0].by
    if by is not None:
        by = {name: np.concatenate([part.by[name] for part in parts if part.by is not None]) for name in by}
    return Batch(
        type(parts[0].predictions).concatenate([part.predictions for part in parts]),
        column("sample_weight"),
        by,
        column("cluster"),
    )
