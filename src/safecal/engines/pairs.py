"""Sums of many parts that grow as they are added up: neighbours first, then the sums of neighbours."""

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["in_pairs"]

_T = TypeVar("_T")


def in_pairs(parts: Iterable[_T], add: Callable[[_T, _T], _T]) -> _T | None:
    """Add up parts in their order, as a tree; None where there are none.

    Parameters
    ----------
    parts : iterable
        The parts. As many sums are held at a time as their number has binary digits.
    add : callable
        Adds two neighbours.

    Returns
    -------
    object or None
        The sum. Each of n parts was copied about log2(n) times; one after the other, it would be n / 2 times.

    Examples
    --------
    >>> from safecal.engines.pairs import in_pairs
    >>> in_pairs("abcde", lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    """
    held: list[tuple[int, _T]] = []  # how many parts each sum is of, decreasing
    for part in parts:
        size, total = 1, part
        while held and held[-1][0] == size:
            before = held.pop()[1]
            size, total = 2 * size, add(before, total)
        held.append((size, total))
    if not held:
        return None
    total = held.pop()[1]
    while held:
        total = add(held.pop()[1], total)
    return total
