"""Components of states: those that matter, and those that are angles."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import OptionError
from .message import fail, show

__all__ = ["component_choice", "components"]


def components(value: Any, name: str, d: int) -> tuple[int, ...]:
    """Require distinct numbers of components of a d-dimensional state."""
    rule = f"must be distinct whole numbers from 0 to {d - 1}, components of the state"
    items = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        hint = f"wrap it in a list: `{name}=[{items}]`." if isinstance(items, int) else None
        raise fail(OptionError, name, rule, got=show(value), hint=hint)
    found = list(items)
    whole = all(isinstance(i, int | np.integer) and not isinstance(i, bool) and 0 <= i < d for i in found)
    if not whole or len(set(found)) != len(found):
        raise fail(OptionError, name, rule, got=show(found))
    return tuple(int(i) for i in found)


def component_choice(mapping: Any, angles: Any, d: int) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """Return the components that matter (None for all), and where among those the angles stand."""
    wrapped = () if angles is None else components(angles, "angles", d)
    if mapping is None:
        return None, wrapped
    kept = components(mapping, "mapping", d)
    if not kept:
        raise fail(OptionError, "mapping", "must name at least one component", got="none", hint="leave it out for all.")
    return kept, tuple(kept.index(i) for i in wrapped if i in kept)
