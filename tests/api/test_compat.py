"""What `safecal` and `safecal.compat` offer is listed."""

import ast
import re
from pathlib import Path

import pytest

import safecal

ROOT = Path(__file__).resolve().parents[2]
COMPAT = ROOT / "src" / "safecal" / "compat"
MODULES = {path.stem if path.is_file() else path.name: path for path in COMPAT.glob("[!_]*")}


PROMISES = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")


def test_the_page_of_promises_names_every_public_module() -> None:
    promised, outside = PROMISES.split("## Outside the promise")
    assert set(re.findall(r"`safecal\.(\w+)`", promised)) == {*safecal._MODULES, "__all__"} - {"paper"}
    assert "`safecal.paper`" in outside


@pytest.mark.parametrize("name", safecal._MODULES)
def test_a_public_module_is_reachable_after_the_import(name: str) -> None:
    assert getattr(safecal, name).__name__ == f"safecal.{name}"
    assert name in dir(safecal)


def test_the_page_of_promises_names_every_module_of_compat() -> None:
    listed = re.search(r"`__all__` of its modules lists: (.*?)\. ", PROMISES, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_offers(name: str) -> None:
    path = MODULES[name] if MODULES[name].is_file() else MODULES[name] / "__init__.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    offered = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert len(offered) == 1
    assert ast.literal_eval(offered[0])
