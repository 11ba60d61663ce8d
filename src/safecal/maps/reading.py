"""Reading any map."""

from collections.abc import Mapping
from typing import Any

from .base import Map
from .kinds import kind_of, read_plain
from .safe import Safe

__all__ = ["from_dict"]


def from_dict(document: Mapping[str, Any]) -> Map:
    """Read a map that any ``to_dict`` of a map wrote.

    Parameters
    ----------
    document : mapping
        The JSON document.

    Returns
    -------
    Map
        Fitted, and of the kind that was written.

    Examples
    --------
    >>> from safecal import maps
    >>> written = maps.Identity().fit([0, 1, 1], [0.2, 0.7, 0.9]).to_dict()
    >>> maps.from_dict(written)
    Identity(): nothing changed from 3 rows
    """
    return Safe.from_dict(document) if kind_of(document) == Safe._kind else read_plain(document)
