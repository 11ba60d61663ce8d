"""Check every public docstring against the numpydoc standard.

Public is what `safecal.__all__` and `safecal.testing.__all__` name, with the public methods and properties of classes.
Prints one line for each fault and exits with 1 if there is any.
"""

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from numpydoc.docscrape import NumpyDocString, get_doc_object
from numpydoc.validate import validate

MODULES = (
    "safecal",
    "safecal.compat.sklearn",
    "safecal.compat.torchmetrics",
    "safecal.engines.batches",
    "safecal.engines.frames",
    "safecal.engines.torch",
    "safecal.monitor",
    "safecal.plot",
    "safecal.report",
    "safecal.testing",
)

IGNORED = {
    "ES01": "one good line is often enough",
    "SA01": "not everything has a neighbour worth naming",
    "PR04": "types stand in the signature; arguments that are those of a sibling point to it",
    "RT02": "a single returned value may have a name",
}
IGNORED_FOR_MEMBERS = {
    "EX01": "the example of the class shows its members",
}


def public_objects() -> Iterator[tuple[str, Any, bool]]:
    """Yield name, object and whether it is a member of a class."""
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            yield f"{module.__name__}.{name}", value, False
            if inspect.isclass(value):
                for member, inner in members(value):
                    yield f"{module.__name__}.{name}.{member}", inner, True


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that safecal itself defines for a class."""
    for base in cls.__mro__:
        if base.__module__.split(".")[0] != "safecal":
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name not in dir(cls):
                continue
            if inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod):
                overridden = next(b for b in cls.__mro__ if name in vars(b)) is not base
                if not overridden:
                    yield name, value if isinstance(value, property) else getattr(cls, name)


def faults(value: Any, is_member: bool) -> Iterator[str]:
    """Yield what is wrong with one docstring."""
    ignored = IGNORED | (IGNORED_FOR_MEMBERS if is_member else {})
    for code, message in validate(get_doc_object(inspect.unwrap(getattr(value, "__func__", value))))["errors"]:
        if code in ignored:
            continue
        if code in {"PR01", "RT01", "YD01"} and is_member and is_told_in_prose(value):
            continue
        if code == "PR01" and inspect.isclass(value):
            continue  # below: a class may describe its fields as Attributes
        if code in {"EX01", "PR01"} and inspect.isclass(value) and issubclass(value, Exception):
            continue  # the tree in safecal.errors shows when each is raised
        yield f"{code} {message}"
    if inspect.isclass(value) and not issubclass(value, Exception) and (missing := undocumented_fields(value)):
        yield f"PR01 neither Parameters nor Attributes describe {', '.join(missing)}"


def is_told_in_prose(value: Any) -> bool:
    """Tell whether a member is so small, with one argument at most, that a summary without sections describes it."""
    arguments = set(inspect.signature(value).parameters) - {"self", "cls"} if callable(value) else set()
    return len(arguments) <= 1 and "\n----" not in (inspect.getdoc(value) or "")


def undocumented_fields(cls: type) -> list[str]:
    """Return the constructor arguments or fields that the docstring of a class does not describe."""
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")]
    elif "__init__" in vars(cls):
        names = list(inspect.signature(cls).parameters)
    else:
        return []
    doc = NumpyDocString(inspect.getdoc(cls) or "")
    described = {
        name.strip().lstrip("*")
        for section in ("Parameters", "Other Parameters", "Attributes")
        for entry in doc[section]
        for name in entry.name.split(",")
    }
    return [name for name in names if name not in described]


def main() -> int:
    """Check everything; return the exit status."""
    checked = 0
    all_faults: list[str] = []
    for name, value, is_member in public_objects():
        checked += 1
        all_faults += [f"{name}: {fault}" for fault in faults(value, is_member)]
    print(*all_faults, sep="\n", end="\n" if all_faults else "")
    print(f"{checked} docstrings, {len(all_faults)} faults")
    return 1 if all_faults or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
