"""Every extra has a job that shows that it installs enough; CI tries those that a change has changed."""

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("try_extras", ROOT / "tools" / "try_extras.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load()


def project(**extras: list[str]) -> dict[str, Any]:
    return {"dependencies": ["numpy"], "optional-dependencies": extras}


def test_every_extra_has_a_job() -> None:
    extras = set(PROJECT["optional-dependencies"])
    assert set(TOOL.OURS) <= extras
    assert set(TOOL.JOBS) == extras - set(TOOL.OURS) | {"base"}
    for job in TOOL.JOBS.values():
        compile(TOOL.ROWS + job, "job", "exec")


def test_an_extra_needs_what_those_that_it_names_need() -> None:
    made = project(a=["x", "safecal[b,c]"], b=["y"], c=["safecal[d]"], d=["z>=1"])
    assert TOOL.needs(made, "a") == {"numpy", "x", "y", "z>=1"}
    assert TOOL.needs(PROJECT, "cli") >= TOOL.needs(PROJECT, "plot") > TOOL.needs(PROJECT, "base")


@pytest.mark.parametrize(
    ("before", "after", "tried"),
    [
        (project(a=["x"], test=["t"]), project(a=["x"], test=["u"]), []),
        (project(a=["x"], b=["safecal[a]"], c=["z"]), project(a=["x>=2"], b=["safecal[a]"], c=["z"]), ["a", "b"]),
        (project(a=["x"]), project(a=["x"], b=["y"]), ["b"]),
        (project(a=["x"], b=["y"]), project(a=["x"]), []),
        (project(a=["x"]), project(a=["x"]) | {"dependencies": ["numpy>=2"]}, ["base", "a"]),
    ],
)
def test_what_installs_something_else_is_tried(before: Any, after: Any, tried: list[str]) -> None:
    assert TOOL.changed(before, after) == tried


def test_without_git_the_common_ones_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert TOOL.to_try(["--changed"]) == list(TOOL.COMMON)
    assert TOOL.to_try([]) == list(TOOL.SMALL)
    assert TOOL.to_try(["spark"]) == ["spark"]
