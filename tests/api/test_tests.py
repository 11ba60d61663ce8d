"""What the tests themselves keep to."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).resolve().parents[1]


def shared_draws(text: str) -> list[int]:
    """Return the lines at which a function uses a generator that its module made."""
    tree = ast.parse(text)
    made = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("default_rng")
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            own = {argument.arg for argument in node.args.args}
            body = node.body if isinstance(node.body, list) else [node.body]
            names = [name for part in body for name in ast.walk(part) if isinstance(name, ast.Name)]
            own |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
            lines |= {name.lineno for name in names if name.id in made - own}
    return sorted(lines)


def test_no_test_draws_from_a_generator_of_its_module() -> None:
    """Its numbers would depend on the tests before it: `rng` is a generator of its own."""
    for path in TESTS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^\w+ = .*default_rng\(", text, re.MULTILINE):
            assert not shared_draws(text), path.name


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("RNG = np.random.default_rng(0)\nX = RNG.normal()\n", []),
        ("RNG = np.random.default_rng(0)\ndef test_x():\n    RNG.normal()\n", [3]),
        ("RNG = default_rng(0)\nCASES = {'a': lambda: RNG.normal()}\n", [2]),
        ("rng = np.random.default_rng(0)\ndef test_x(rng):\n    rng.normal()\n", []),
        ("rng = np.random.default_rng(0)\ndef test_x():\n    rng = other()\n    rng.normal()\n", []),
    ],
)
def test_a_shared_draw_is_seen(text: str, lines: list[int]) -> None:
    assert shared_draws(text) == lines


def test_few_cases_of_a_test_have_as_many_values_as_they_can(request: pytest.FixtureRequest) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    few = conftest._FewCases(4)
    cases = [SimpleNamespace(callspec=SimpleNamespace(indices={"a": a, "b": b})) for a in range(4) for b in range(3)]
    taken = [case.callspec.indices for case in few._telling(cases)]
    assert taken[0] == {"a": 0, "b": 0}
    assert {case["a"] for case in taken} == {0, 1, 2, 3}
    assert {case["b"] for case in taken} == {0, 1, 2}
    assert few._telling(cases[:4]) == cases[:4]
    one = [SimpleNamespace(callspec=SimpleNamespace(indices={"a": a})) for a in range(100)]
    taken = sorted(case.callspec.indices["a"] // 25 for case in few._telling(one))
    assert taken == [0, 1, 2, 3]  # one of each quarter


@pytest.mark.parametrize("wanted", [False, True])
def test_tests_of_an_environment_apart_are_collected_where_they_are_asked_for(
    wanted: bool, request: pytest.FixtureRequest
) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    rule = conftest._Apart(wanted)
    for path in (TESTS / "apart", TESTS / "apart" / "test_lm_eval.py"):
        assert bool(rule.pytest_ignore_collect(path)) != wanted
    for path in (TESTS / "api", TESTS / "api" / "test_tests.py", TESTS.parent / "src"):
        assert bool(rule.pytest_ignore_collect(path)) == wanted
    for path in (TESTS, TESTS.parent):  # which lead there
        assert not rule.pytest_ignore_collect(path)


def test_the_tier_apart_is_its_folder() -> None:
    for path in TESTS.rglob("test_*.py"):
        marked = re.search(r"^pytestmark = .*pytest\.mark\.apart\b", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert bool(marked) == (path.parent.name == "apart"), path.name


def test_what_begins_first_exists(request: pytest.FixtureRequest) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    missing = [scope for scope in conftest._LONG_SCOPES if not (TESTS.parent / scope).is_file()]
    assert missing == ["spark"]
