"""What `safecal.compat` offers is listed."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPAT = ROOT / "src" / "safecal" / "compat"
MODULES = {path.stem if path.is_file() else path.name: path for path in COMPAT.glob("[!_]*")}


def test_the_page_of_promises_names_every_module() -> None:
    text = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    listed = re.search(r"`__all__` of its modules lists: (.*?)\. ", text, re.DOTALL)
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
