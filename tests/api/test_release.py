"""What a release rests on, as far as it can be seen without making one: workflows, versions, the recipe of conda."""

import ast
import importlib.util
import re
import shutil
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

import safecal

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: YAML(typ="safe", pure=True).load(path) for path in FILES}
JOBS = {(name, job): body for name, flow in WORKFLOWS.items() for job, body in flow["jobs"].items()}


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_release", ROOT / "tools" / "check_release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load()


def commands() -> list[str]:
    return [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]


def test_workflows_call_only_targets_and_tools_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*)[a-z -]*:(?!=).*## ", makefile, re.MULTILINE))
    called = {target for line in commands() for target in re.findall(r"\bmake ([\w-]+)", line)}
    assert {"lint", "test-oldest", "wheel"} <= called <= targets
    tools = {tool for line in commands() for tool in re.findall(r"\btools/\S+\.py", line)}
    tools |= set(re.findall(r"\btools/\S+\.py", PYPROJECT["tool"]["cibuildwheel"]["test-command"]))
    assert tools == {"tools/check_release.py", "tools/check_wheel.py", "tools/readme_for_pypi.py"}
    assert all((ROOT / tool).is_file() for tool in tools)


def test_every_action_is_pinned_by_its_commit_and_one_version_of_each_is_in_use() -> None:
    lines = [line.strip(" -") for path in FILES for line in path.read_text(encoding="utf-8").splitlines()]
    uses = {line for line in lines if line.startswith("uses:")}
    assert all(re.fullmatch(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in uses), uses
    assert len({line.partition("@")[0] for line in uses}) == len(uses)


def test_every_python_that_we_claim_is_tested_on_three_systems() -> None:
    matrix = JOBS["tests", "fast"]["strategy"]["matrix"]
    claimed = {line.rpartition(" ")[2] for line in PYPROJECT["project"]["classifiers"] if ":: Python :: 3." in line}
    assert claimed <= set(matrix["python"])
    assert [name.partition("-")[0] for name in matrix["system"]] == ["ubuntu", "macos", "windows"]


def test_the_wheel_is_built_for_the_oldest_python_and_serves_the_newest() -> None:
    oldest, newest = PYPROJECT["tool"]["cibuildwheel"]["build"]
    tag = PYPROJECT["project"]["requires-python"].replace(">=", "cp").replace(".", "")
    assert oldest == f"{tag}-*"
    assert newest == f"cp{JOBS['tests', 'fast']['strategy']['matrix']['python'][-1].replace('.', '')}-*"
    constants = [
        node.value for node in ast.walk(ast.parse((ROOT / "setup.py").read_text())) if isinstance(node, ast.Constant)
    ]
    assert tag in constants


def test_only_a_tag_publishes_and_only_after_every_archive_was_checked() -> None:
    may = [name for name, job in JOBS.items() if "id-token" in job["permissions"]]
    assert may == [("release", "publish")]
    publish = JOBS[may[0]]
    assert set(publish["needs"]) == {job for flow, job in JOBS if flow == "release"} - {"publish"}
    assert publish["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"
    assert all(flow["permissions"] == {} for flow in WORKFLOWS.values())
    assert not any("secrets." in path.read_text(encoding="utf-8") for path in FILES)


def test_every_place_names_the_version_of_pyproject() -> None:
    assert TOOL.faults() == []
    assert safecal.__version__ == PYPROJECT["project"]["version"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "conda").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md", *TOOL.PLACES):
        shutil.copy(ROOT / name, tmp_path / name)
    text = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(re.sub(r'^version = ".*"', 'version = "7.0.0"', text, flags=re.MULTILINE))
    return tmp_path


def test_a_place_that_was_forgotten_is_named(tree: Path) -> None:
    now = PYPROJECT["project"]["version"]
    assert TOOL.faults(tree)[:2] == [f"{place} names version {now}, not 7.0.0" for place in TOOL.PLACES]


def test_a_tag_needs_a_dated_heading_of_the_changelog(tree: Path) -> None:
    for place in TOOL.PLACES:
        text = (tree / place).read_text(encoding="utf-8")
        (tree / place).write_text(text.replace(PYPROJECT["project"]["version"], "7.0.0"), encoding="utf-8")
    log = tree / "CHANGELOG.md"
    log.write_text("# Changelog\n\n## [Unreleased]\n", encoding="utf-8")
    assert TOOL.faults(tree) == []
    assert TOOL.faults(tree, "v7.0.0") == ["CHANGELOG.md names version None, not 7.0.0"]
    log.write_text("# Changelog\n\n## [Unreleased]\n\n## [7.0.0] - 2030-01-01\n", encoding="utf-8")
    assert TOOL.faults(tree, "v7.0.0") == []
    assert TOOL.faults(tree, "v7.0.1") == ["the tag names version 7.0.1, not 7.0.0"]


def test_what_a_release_brings_is_read_in_minutes() -> None:
    _, *sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sections[0].startswith("[Unreleased]")
    for section in sections[1:]:
        assert len(section.splitlines()) <= 130, section[:40]
        assert set(re.findall(r"^### (\w+)", section, re.MULTILINE)) <= {"Added", "Changed", "Fixed", "Removed"}


def test_the_recipe_of_conda_requires_what_the_package_requires() -> None:
    recipe: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "conda" / "recipe.yaml")
    required = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    project = PYPROJECT["project"]
    assert required == {f"python{project['requires-python']}", *project["dependencies"]}
    assert set(PYPROJECT["build-system"]["requires"]) <= {
        line.replace(" ", "") for line in recipe["requirements"]["host"]
    }
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["summary"] == project["description"]
