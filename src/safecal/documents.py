"""JSON documents: what is written carries its kind and version, and what is read is checked field by field.

A reader takes a JSON value and returns what it stands for, or raises a `DocumentError` that says what the value must
be. Readers are made of readers: `list_of(number)`, `optional(text)`; each ``from_dict`` is one, too. A complaint gets
the path of its field on the way out, so that a reader need not know where it is used.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from .errors import DocumentError, SafecalError

__all__ = [
    "LEVEL", "LARGEST_COUNT", "SCHEMA_VERSION", "agrees", "at", "between", "by_number", "choice", "count", "distinct",
    "document", "every", "flag", "key", "list_of", "mapping_of", "number", "numbers", "of_file", "optional", "plain",
    "read", "read_number", "record", "refuse", "text", "version_of", "words",
]  # fmt: skip

T = TypeVar("T")
W = TypeVar("W", bound=str)
FieldReader = Callable[[Any], T]

SCHEMA_VERSION = 1
_NEWER_VERSIONS = {"evaluation": 2, "verdict": 2, "clusters": 2}  # kinds whose documents have changed since
LARGEST_COUNT = 2**53  # the largest count: floats hold every whole number up to it
_DEEPEST = 8  # lists inside each other, in a key
_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_ABSENT: Any = object()


def version_of(kind: str) -> int:
    """Return the version in which documents of a kind are written."""
    return _NEWER_VERSIONS.get(kind, SCHEMA_VERSION)


def document(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Wrap ``content`` with its kind and version."""
    return {"kind": f"safecal.{kind}", "version": version_of(kind), **content}


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


# Complaints


def refuse(rule: str, value: Any = _ABSENT, *, hint: str | None = None) -> NoReturn:
    """Raise for a value that breaks a rule; `at` adds where it stands."""
    raise _error("", rule if value is _ABSENT else f"{rule}; got {_shown(value)}", hint)


def _error(path: str, rule: str, hint: str | None) -> DocumentError:
    error = DocumentError(f"`{path or 'document'}` {rule}." + ("" if hint is None else f"\n\nHint: {hint}"))
    error.path, error.rule, error.hint = path, rule, hint
    return error


@contextmanager
def at(place: str | int) -> Iterator[None]:
    """Say of complaints that they are about a field, or about an item of a list."""
    try:
        yield
    except SafecalError as error:
        raise _within(place, error) from error.__cause__


@contextmanager
def of_file(name: object) -> Iterator[None]:
    """Say of complaints which file they are about."""
    try:
        yield
    except DocumentError as error:
        complaint = _error(error.path, f"of {name} {error.rule}", error.hint)
        raise complaint from error.__cause__


def _within(place: str | int, error: SafecalError) -> DocumentError:
    """Return a complaint about what stands at a place; an object that would not be made complains of it, too."""
    if not isinstance(error, DocumentError):
        rule, _, hint = str(error).removesuffix(".").partition(".\n\nHint: ")
        return _error(_joined(place, ""), f"must be as safecal writes it: {rule}", hint or None)
    return _error(_joined(place, error.path), error.rule or str(error), error.hint)


def _joined(place: str | int, rest: str) -> str:
    name = f"[{place}]" if isinstance(place, int) else place
    if isinstance(place, str) and not re.fullmatch(r"[\w-]{1,40}", place, re.ASCII):
        name = f"[{_shown(place)}]"
    return f"{name}{'' if not rest or rest.startswith('[') else '.'}{rest}"


def _shown(value: Any) -> str:
    """Return a value in a few words: a document may be long, deep, and full of control characters."""
    if isinstance(value, Mapping):
        return f"an object of {len(value)} fields" if len(value) != 1 else "an object of 1 field"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return "a whole number of more than 40 digits"
    shown = ascii(value[:80]) if isinstance(value, str) else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


# Documents and records


def read(
    kind: str, content: Any, fields: Mapping[str, FieldReader[Any]], later: Mapping[str, FieldReader[Any]] | None = None
) -> dict[str, Any]:
    """Read what may be a document of a kind: by name each of its fields, those that came ``later``, and no other."""
    if not isinstance(content, Mapping) or content.get("kind") != f"safecal.{kind}":
        other_kind = content.get("kind") if isinstance(content, Mapping) else type(content).__name__
        refuse(f"must be a safecal.{kind} document", other_kind)
    version = content.get("version")
    if version != version_of(kind) or isinstance(version, bool):
        hint = "it was written by another release of safecal; read it with that one."
        refuse(f"must be of version {version_of(kind)}", version, hint=hint)
    return _fields(f"a whole safecal.{kind} document", content, fields, later or {}, ("kind", "version"))


def record(
    fields: Mapping[str, FieldReader[Any]], later: Mapping[str, FieldReader[Any]] | None = None
) -> FieldReader[dict[str, Any]]:
    """Return the reader of an object with these fields, which has no kind of its own."""

    def reader(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            refuse(f"must be an object{' with ' if fields else ''}{_listed(fields)}", value)
        return _fields("whole", value, fields, later or {}, ())

    return reader


def _fields(
    what: str,
    content: Mapping[str, Any],
    fields: Mapping[str, FieldReader[Any]],
    later: Mapping[str, FieldReader[Any]],
    known: Sequence[str],
) -> dict[str, Any]:
    """Read the fields of an object, each of them and no other."""
    missing = [name for name in fields if name not in content]
    if missing:
        refuse(f"must be {what}; it lacks {', '.join(missing)}")
    unknown = [name for name in content if name not in fields and name not in later and name not in known]
    if unknown:
        hint = "it was changed by hand, or written by a newer release of safecal."
        refuse(f"must be {what}; this release knows no field {_shown(unknown[0])} of it", hint=hint)
    values: dict[str, Any] = {}
    name = ""
    try:
        for name, reader in fields.items():
            values[name] = reader(content[name])
        for name, reader in later.items():
            if name in content:
                values[name] = reader(content[name])
    except SafecalError as error:
        raise _within(name, error) from error.__cause__
    return values


def _listed(names: Iterable[str]) -> str:
    *first, last = [*names] or [""]
    return ", ".join(first) + (" and " if first else "") + last


# Readers


def between(
    least: float = -math.inf,
    most: float = math.inf,
    *,
    inside: bool = False,
    infinite: bool = False,
    missing: bool = False,
) -> FieldReader[float]:
    """Return the reader of a number in a range, whose ends are excluded where it must lie ``inside``.

    It may be ``infinite``: ``"inf"`` or ``"-inf"``; and ``missing``: null, which is read as NaN.
    """
    rule = "must be a number"
    if least == 0.0 and most == math.inf:
        rule += " above 0" if inside else " of at least 0"
    elif math.isfinite(most):
        rule += f" strictly between {least:g} and {most:g}" if inside else f" from {least:g} to {most:g}"
    elif math.isfinite(least):
        rule += f" above {least:g}" if inside else f" of at least {least:g}"
    ends = [f'"{name}"' for name, end in _INFINITE.items() if least <= end <= most] if infinite else []
    rule += "".join(f" or {end}" for end in [*ends, *(["null"] * missing)])

    def reader(value: Any) -> float:
        if type(value) is not float:
            if value is None and missing:
                return math.nan
            if infinite and isinstance(value, str) and value in _INFINITE:
                value = _INFINITE[value]
            elif isinstance(value, bool) or not isinstance(value, int | float) or not _fits(value):
                refuse(rule, value)
            checked = float(value)
        else:
            checked = value
            if not math.isfinite(checked):
                refuse(rule, value)
        if not (least < checked < most if inside and math.isfinite(checked) else least <= checked <= most):
            refuse(rule, value)
        return checked

    return reader


def _fits(value: float) -> bool:
    """Tell whether a float holds a finite number as it is."""
    try:
        return math.isfinite(value) and float(value) == value
    except OverflowError:
        return False


read_number = between()
numbers = between(infinite=True, missing=True)  # what `number` writes
LEVEL = between(0.0, 1.0, inside=True)


def count(least: int = 0) -> FieldReader[int]:
    """Return the reader of a whole number."""
    rule = f"must be a whole number of at least {least}"

    def reader(value: Any) -> int:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or not least <= value <= LARGEST_COUNT:
            refuse(rule, value)
        return int(value)

    return reader


def text(value: Any) -> str:
    """Read text, which may be empty."""
    if not isinstance(value, str):
        refuse("must be text", value)
    return value


def words(value: Any) -> str:
    """Read text that says something."""
    if not isinstance(value, str) or not value:
        refuse("must be text that is not empty", value)
    return value


def flag(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        refuse("must be true or false", value)
    return value


def choice(*choices: W) -> FieldReader[W]:
    """Return the reader of one of a few words."""
    rule = f"must be {'one of ' if len(choices) > 1 else ''}{', '.join(map(repr, choices))}"

    def reader(value: Any) -> W:
        if not isinstance(value, str) or value not in choices:
            refuse(rule, value)
        return choices[choices.index(value)]

    return reader


def optional(reader: FieldReader[T]) -> FieldReader[T | None]:
    """Return the reader of what may be null."""
    return lambda value: None if value is None else reader(value)


def list_of(reader: FieldReader[T], least: int = 0, most: int | None = None) -> FieldReader[list[T]]:
    """Return the reader of a list."""
    size = f" of {least}" if least == most else f" of at least {least}" if least and most is None else ""
    size = size or (f" of {least} to {most}" if most is not None else "")

    def checked(value: Any) -> list[T]:
        if not isinstance(value, list | tuple) or not least <= len(value) <= (len(value) if most is None else most):
            refuse(f"must be a list{size}", value)
        items: list[T] = []
        try:
            for item in value:
                items.append(reader(item))
        except SafecalError as error:
            raise _within(len(items), error) from error.__cause__
        return items

    return checked


def mapping_of(reader: FieldReader[T]) -> FieldReader[dict[str, T]]:
    """Return the reader of an object whose names are data."""

    def checked(value: Any) -> dict[str, T]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            refuse("must be an object", value)
        items: dict[str, T] = {}
        name = ""
        try:
            for name, item in value.items():
                items[name] = reader(item)
        except SafecalError as error:
            raise _within(name, error) from error.__cause__
        return items

    return checked


def by_number(reader: FieldReader[T], size: int) -> FieldReader[dict[int, T]]:
    """Return the reader of an object whose names are whole numbers below ``size``, as cells have."""
    every_cell = mapping_of(reader)

    def checked(value: Any) -> dict[int, T]:
        cells = every_cell(value)
        for name in cells:
            if not re.fullmatch("0|[1-9][0-9]{0,18}", name) or int(name) >= size:
                refuse(f"must have the names of cells, whole numbers below {size}", name)
        return {int(name): item for name, item in cells.items()}

    return checked


def key(value: Any) -> Hashable:
    """Read the key of a group: text, a number, true or false, null, or a list of such, which is a tuple."""
    return _key_of(value)


def _key_of(value: Any, deep: int = _DEEPEST) -> Hashable:
    if isinstance(value, list) and deep:
        return tuple(_key_of(item, deep - 1) for item in value)
    if value is None or isinstance(value, str | bool) or (isinstance(value, int | float) and _shows(value)):
        return value
    refuse("must be text, a number, true, false, null, or a list of such", value)


def _shows(value: float) -> bool:
    """Tell whether a number can be a key: finite, and not so long that it cannot be written."""
    return abs(value) < 10**40 if isinstance(value, int) else math.isfinite(value)


def distinct(keys: Sequence[Hashable], what: str = "keys") -> None:
    """Refuse what stands there twice."""
    if len(set(keys)) != len(keys):
        seen: set[Hashable] = set()
        twice = next(k for k in keys if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        refuse(f"must have different {what}", twice)


def agrees(written: float, wanted: float) -> bool:
    """Compare a number that was written with the one that is found, on another machine perhaps."""
    both = written == wanted or (math.isnan(written) and math.isnan(wanted))
    return both or (math.isfinite(wanted) and abs(written - wanted) <= 1e-6 * abs(wanted) + 1e-9)


def every(checks: Iterable[tuple[bool, str]]) -> None:
    """Refuse a document whose parts do not fit together: the first rule that does not hold is named."""
    for holds, rule in checks:
        if not holds:
            refuse(rule)
