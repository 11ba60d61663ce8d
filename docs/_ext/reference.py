"""Write the reference: every public name, command, document and error has its page, and nobody lists them by hand."""

import argparse
import importlib
import inspect
import json
import pkgutil
import re
import shutil
import textwrap
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.ext.autodoc.mock import mock

import safecal
from safecal.cli import build_parser

MOCKED = ["torch", "torchmetrics", "transformers", "datasets", "mlflow"]  # large, and only their names are read
FOLDERS = ("api", "commands", "documents")

# The sections of `safecal` itself, by the room in which a name lives.
SECTIONS = {
    "judge": "To judge",
    "families": "Kinds of prediction",
    "metrics": "Metrics in one line",
    "maps": "What fixes it",
    "slices": "For whom",
    "inference": "How sure",
    "_sums": "Sums that merge",
    "": "And",
}
# Packages whose modules are doors of their own; of `engines` those that the page on stability promises.
DOORS = {"safecal.compat": None, "safecal.engines": {"batches", "frames", "torch"}}


def write(folder: Path) -> None:
    """Write all pages below ``folder``; those that did not change keep their date, so that a second build is quick."""
    with mock(MOCKED):
        pages = {**dict(api()), **dict(commands()), **dict(documents()), "errors.rst": errors()}
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for made in FOLDERS:
        for path in (folder / made).glob("*.rst"):
            if path.relative_to(folder).as_posix() not in pages:
                path.unlink()
    for file in resources.files("safecal").joinpath("schemas").iterdir():
        with resources.as_file(file) as source:
            shutil.copy2(source, folder / "documents" / source.name)


def title(text: str, mark: str = "=") -> str:
    """Return a heading."""
    return f"{text}\n{mark * len(text)}\n"


def tree(names: list[str]) -> str:
    """Return a toctree that shows in the sidebar alone."""
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in names)


def plain(text: str) -> str:
    """Return text as reStructuredText: what stands in backticks is code, and nothing else is markup."""
    parts = re.split(r"`+([^`]+)`+", text)
    parts[::2] = [re.sub(r"([\\*_|`<>])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"``{part}``" for part in parts[1::2]]
    return "".join(parts)


def indented(text: str, by: int = 3) -> str:
    """Return text with spaces before each line that is not empty."""
    return "".join(f"{' ' * by}{line}\n" if line else "\n" for line in text.splitlines())


# Names


def modules() -> Iterator[ModuleType]:
    """Yield the modules that offer public names: safecal itself first."""
    yield safecal
    for name in sorted(set(safecal._MODULES) - {"errors"}):
        module = importlib.import_module(f"safecal.{name}")
        if module.__name__ not in DOORS:
            yield module
            continue
        promised = DOORS[module.__name__]
        for found in pkgutil.iter_modules(module.__path__):
            if not found.name.startswith("_") and (promised is None or found.name in promised):
                yield importlib.import_module(f"{module.__name__}.{found.name}")


def api() -> Iterator[tuple[str, str]]:
    """Yield the page of each module, and of each of its names."""
    first: dict[int, str] = {}  # an object that has two names is described under the first
    rows = []
    for module in modules():
        here = []
        for name in module.__all__:
            value = getattr(module, name)
            full = f"{module.__name__}.{name}"
            if inspect.isclass(value) and issubclass(value, safecal.SafecalError):
                continue  # errors have a page of their own
            described = first.setdefault(id(value), full) if inspect.isclass(value) or callable(value) else full
            here.append((name, described))
            if described == full:
                yield f"api/{full}.rst", described_name(module, name, value)
        yield f"api/{module.__name__}.rst", module_page(module, here)
        rows.append((module.__name__, (module.__doc__ or "").strip().partition("\n")[0]))
    listed = "".join(f":doc:`{name} <{name}>`\n    {plain(about)}\n\n" for name, about in rows)
    intro = "What a program may import, and what the :doc:`promise of stability </stability>` covers.\n"
    yield "api/index.rst", "\n".join([title("Python"), intro, listed, tree([name for name, _ in rows])])


def described_name(module: ModuleType, name: str, value: Any) -> str:
    """Return the page of one name."""
    head = f"{title(f'{module.__name__}.{name}')}\n.. currentmodule:: {module.__name__}\n\n"
    if inspect.isclass(value):
        found = ", ".join(members(value))
        return head + f".. autoclass:: {name}\n" + (f"   :members: {found}\n" if found else "")
    return head + f".. auto{'function' if inspect.isroutine(value) else 'data'}:: {name}\n"


def members(cls: type) -> list[str]:
    """Return the public methods and properties that safecal itself defines for a class, its own first."""
    found = [
        name
        for base in cls.__mro__
        if base.__module__.split(".")[0] == "safecal"
        for name, value in vars(base).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))
        and inspect.getdoc(getattr(cls, name))
    ]
    return list(dict.fromkeys(found))


def module_page(module: ModuleType, names: list[tuple[str, str]]) -> str:
    """Return the page of a module: what it is for, and a table of its names."""
    about = inspect.cleandoc(module.__doc__ or "").replace("`__all__`", "``__all__``")
    parts = [title(module.__name__), f".. py:module:: {module.__name__}\n", about, ""]
    sections: dict[str, list[str]] = {}
    for name, described in names:
        room = safecal._HOMES[name].partition(".")[0] if module is safecal else ""
        sections.setdefault(room if room in SECTIONS else "", []).append(described)
    for room, heading in SECTIONS.items():
        if room in sections:
            # Doors, which begin with a small letter, before what they return.
            here = sorted(sections[room], key=lambda full: (full.rpartition(".")[2][0].isupper(), full))
            parts += [title(heading, "-")] if module is safecal else []
            parts += [".. list-table::\n   :widths: 30 70\n", "".join(map(summary_row, here))]
    own = [described for name, described in names if described == f"{module.__name__}.{name}"]
    return "\n".join([*parts, tree(own)])


def summary_row(full: str) -> str:
    """Return the row of a table that names something, and says in a line what it is."""
    module, _, name = full.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    told = (inspect.getdoc(value) or "").partition("\n\n")[0] if callable(value) else f"``{value!r}``"
    return f"   * - :py:obj:`~{full}`\n     - {' '.join(told.split())}\n"


# Commands


def commands() -> Iterator[tuple[str, str]]:
    """Yield the page of each command, in the order of ``safecal --help``."""
    parser = build_parser()
    rows = []
    for name, about, one in subcommands(parser):
        rows.append((name, about))
        yield f"commands/{name}.rst", command_page(one)
    listed = "".join(f":doc:`safecal {name} <{name}>`\n    {plain(about)}\n\n" for name, about in rows)
    head = f"{title('Commands')}\n{plain(parser.description or '')} The :doc:`guide </command-line>` explains more.\n\n"
    yield "commands/index.rst", f"{head}{listed}{examples(parser)}\n{tree([name for name, _ in rows])}"


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield name, line and parser of the commands of a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield choice.dest, choice.help or "", action.choices[choice.dest]


def command_page(parser: argparse.ArgumentParser, mark: str = "=") -> str:
    """Return the words of one command: what it does, how it is typed, its examples, its options."""
    usage = parser.format_usage().removeprefix("usage: ").replace("\n       ", "\n")
    parts = [title(parser.prog, mark), plain(parser.description or ""), "", ".. code-block:: text\n", indented(usage)]
    parts += [examples(parser), f".. program:: {parser.prog}\n"]
    for group in parser._action_groups:
        shown = [action for action in group._group_actions if not isinstance(action, argparse._SubParsersAction)]
        shown = [action for action in shown if action.help != argparse.SUPPRESS]
        if shown:
            parts += [f".. rubric:: {(group.title or '').capitalize()}\n", plain(group.description or ""), ""]
            parts += [option(parser, action) for action in shown]
    parts += [command_page(one, "-") for _, _, one in subcommands(parser)]
    return "\n".join(parts)


def examples(parser: argparse.ArgumentParser) -> str:
    """Return what stands below the options: examples as code, and the words after them."""
    text = parser.epilog or ""
    shown, _, words = text.partition("\n\n") if text.startswith("examples:") else ("", "", text)
    lines = indented(textwrap.dedent(shown.partition("\n")[2]))
    code = f".. rubric:: Examples\n\n.. code-block:: text\n\n{lines}\n" if shown else ""
    return f"{code}{plain(words)}\n"


def option(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return one option, with its words and its default."""
    formatter = parser._get_formatter()
    if action.option_strings:
        value = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
        shown = ", ".join(f"{word} {value}".strip() for word in action.option_strings)
    else:
        shown = action.metavar if isinstance(action.metavar, str) else action.dest
    return f".. option:: {shown}\n\n{indented(plain(formatter._expand_help(action) if action.help else ''))}"


# Documents


def documents() -> Iterator[tuple[str, str]]:
    """Yield the page of each JSON schema."""
    names = []
    schemas = resources.files("safecal").joinpath("schemas")
    known: dict[str, str] = {}  # what the later share with the earlier
    for file in sorted(schemas.iterdir(), key=lambda file: file.name):
        schema = json.loads(file.read_text(encoding="utf-8"))
        stem = file.name.removesuffix(".json")
        known |= dict.fromkeys(schema["$defs"], stem)
        names.append((stem, schema["title"]))
        parts = [title(schema["title"]), f"The schema itself: :download:`{file.name}`.\n"]
        for name, body in schema["$defs"].items():
            parts += [f".. _{stem}-{name}:\n", title(name, "-"), definition(body, known)]
        yield f"documents/{stem}.rst", "\n".join(parts)
    listed = "".join(f":doc:`{name} <{name}>`\n    {plain(about)}\n\n" for name, about in names)
    intro = "What is written as JSON, field by field. The page on :doc:`stability </stability>` says what may change.\n"
    yield "documents/index.rst", "\n".join([title("Documents"), intro, listed, tree([name for name, _ in names])])


def definition(body: dict[str, Any], known: dict[str, str]) -> str:
    """Return a definition of a schema: its description, and its fields with theirs."""
    fields = body.get("properties", {})
    parts = [plain(body.get("description", "")), ""]
    if not fields:
        return "\n".join([*parts, kind(body, known).capitalize() + ".", ""])
    required = set(body.get("required", ()))
    for name, field in fields.items():
        optional = "" if name in required else ", may be missing"
        about = plain(field.get("description", ""))
        parts += [f"``{name}`` : {kind(field, known)}{optional}", indented(about) if about else "   \\", ""]
    return "\n".join(parts)


def kind(body: Any, known: dict[str, str]) -> str:
    """Return what a value may be, in words."""
    if not isinstance(body, dict):
        return "anything" if body else "nothing"
    if "$ref" in body:
        name = body["$ref"].rpartition("/")[2]
        return f":ref:`{name} <{known[name]}-{name}>`"
    for key in ("anyOf", "oneOf"):
        if key in body:
            return " or ".join(dict.fromkeys(kind(part, known) for part in body[key]))
    if "const" in body:
        return f"``{json.dumps(body['const'])}``"
    if "enum" in body:
        return " or ".join(f"``{json.dumps(value)}``" for value in body["enum"])
    types = body.get("type", "anything")
    words = " or ".join([types] if isinstance(types, str) else types)
    if "prefixItems" in body:
        words += " of " + ", ".join(kind(part, known) for part in body["prefixItems"])
    elif isinstance(body.get("items"), dict):
        words += f" of {kind(body['items'], known)}"
    elif isinstance(body.get("additionalProperties"), dict):
        words += f" of {kind(body['additionalProperties'], known)}"
    return words + limits(body)


def limits(body: dict[str, Any]) -> str:
    """Return the range of a number, where it has one."""
    said = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{words} {body[key]}" for key, words in said.items() if key in body]
    return f" ({', '.join(found)})" if found else ""


# Errors


def exists(full: str) -> bool:
    """Tell whether a name is one of safecal's, public or not."""
    module, _, name = full.rpartition(".")
    return module.startswith("safecal") and hasattr(importlib.import_module(module), name)


def errors() -> str:
    """Return the page of errors: the tree, and the cause of each."""
    module = importlib.import_module("safecal.errors")
    parts = [title("Errors"), ".. py:module:: safecal.errors\n", inspect.cleandoc(module.__doc__ or ""), ""]
    for name in module.__all__:
        parts += [title(name, "-"), f".. autoexception:: {name}\n   :show-inheritance:\n"]
    return "\n".join(parts)
