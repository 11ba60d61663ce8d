"""JSON documents: what is written carries its kind and version, what is read is checked for both."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import DocumentError

__all__ = ["SCHEMA_VERSION", "body", "document", "number", "plain", "version_of"]

SCHEMA_VERSION = 1
_NEWER = {"evaluation": 2, "verdict": 2, "clusters": 2}  # kinds whose documents have changed since


def version_of(kind: str) -> int:
    """Return the version in which documents of a kind are written."""
    return _NEWER.get(kind, SCHEMA_VERSION)


def document(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Wrap ``content`` with its kind and version."""
    return {"kind": f"safecal.{kind}", "version": version_of(kind), **content}


def body(kind: str, content: Mapping[str, Any], names: Iterable[str] = ()) -> Mapping[str, Any]:
    """Check kind, version and that each of ``names`` is there, and return the document."""
    if not isinstance(content, Mapping) or content.get("kind") != f"safecal.{kind}":
        found = content.get("kind") if isinstance(content, Mapping) else type(content).__name__
        raise DocumentError(f"`document` must be a safecal.{kind} document; got {found!r}.")
    if content.get("version") != version_of(kind):
        raise DocumentError(
            f"`document` must be of version {version_of(kind)}; got {content.get('version')!r}.\n\n"
            "Hint: it was written by another release of safecal; read it with that one."
        )
    missing = [name for name in names if name not in content]
    if missing:
        raise DocumentError(f"`document` must be a whole safecal.{kind} document; it lacks {', '.join(missing)}.")
    return content


def plain(value: Any) -> Any:
    """Return a key as JSON can hold it: tuples become lists, infinite edges text."""
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def number(value: float) -> float | str | None:
    """Return a number as JSON can hold it: infinite ones as ``"inf"`` and ``"-inf"``, an undefined one as None."""
    if value != value:
        return None
    return str(value) if math.isinf(value) else value
