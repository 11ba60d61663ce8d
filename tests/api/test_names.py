"""A name says what it holds: none is a word that would fit whatever was computed last."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import safecal

PACKAGE = Path(safecal.__file__).parent
WORDS_THAT_SAY_NOTHING = {"found", "_found", "told", "_told", "_there", "_apart", "bent", "ground"}
PUBLIC = {("slices/results.py", "found")}  # names that users know, from documents or the reference


def _names_given(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each name that is given to something, with its line; names that are only used are left out."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.MatchMapping(rest=str(name)):
                yield node.lineno, name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((node.lineno, alias.asname) for alias in aliases if alias.asname is not None)


def _empty_names(source: str) -> list[tuple[int, str]]:
    return sorted(place for place in _names_given(ast.parse(source)) if place[1] in WORDS_THAT_SAY_NOTHING)


def test_every_name_says_what_it_holds() -> None:
    places = [
        (path.relative_to(PACKAGE).as_posix(), line, name)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in _empty_names(path.read_text(encoding="utf-8"))
    ]
    faults = [f"src/safecal/{file}:{line}: `{name}`" for file, line, name in places if (file, name) not in PUBLIC]
    assert not faults, "\n".join(["call each of these by what it holds:", *faults])
    assert sorted((file, name) for file, _, name in places) == sorted(PUBLIC)  # each once: as the field that it is


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "a, (b, *found) = x",
        "found: int = 1",
        "found += 1",
        "self.found = 1",
        "class A:\n    found: int",
        "def found(): pass",
        "async def _told(): pass",
        "class bent: pass",
        "def f(found): pass",
        "def f(*, found=1): pass",
        "def f(*found): pass",
        "def f(**found): pass",
        "f = lambda found: found",
        "[x for found in y]",
        "for found in y: pass",
        "with a as found: pass",
        "if (found := a): pass",
        "try: pass\nexcept E as found: pass",
        "import a as found",
        "from a import b as found",
        "match a:\n    case [found, 1]: pass",
        "match a:\n    case [*found]: pass",
        "match a:\n    case {**found}: pass",
    ],
)
def test_the_law_sees_each_way_to_give_a_name(source: str) -> None:
    assert [name for _, name in _empty_names(source)] in (["found"], ["_told"], ["bent"])


@pytest.mark.parametrize("source", ["'found'", "# found\nx = 1", "f(found=1)", "x.found", "places_found = 1"])
def test_the_law_leaves_english_and_uses_alone(source: str) -> None:
    assert not _empty_names(source)
