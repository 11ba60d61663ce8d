"""What every test shares: the data folder, the Hypothesis profile, and the rule that no test may be skipped.

Three environment variables matter:

``SAFECAL_SHARED_DATA``
    Where the real predictions lie. The default is ``../shared/data`` beside the repository.
``SAFECAL_REQUIRE_SHARED_DATA=1``
    Missing data fail the tests that need them, instead of skipping them.
``SAFECAL_NO_SKIP=1``
    Any skip, of a test or of a whole module, is a failure.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]

# `make test-all` asks for the second by `--hypothesis-profile`.
hypothesis.settings.register_profile("fast", derandomize=True, deadline=None, database=None, max_examples=3)
hypothesis.settings.register_profile("proof", derandomize=True, deadline=None, database=None, max_examples=100)
hypothesis.settings.load_profile("fast")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real predictions, or skip the test where there is none."""
    folder = Path(os.environ.get("SAFECAL_SHARED_DATA") or ROOT.parent / "shared" / "data")
    if folder.is_dir():
        return folder
    message = f"the shared data are not at {folder}; set SAFECAL_SHARED_DATA"
    if os.environ.get("SAFECAL_REQUIRE_SHARED_DATA") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of the test's own: what it draws does not depend on the tests before it."""
    return np.random.default_rng(0)


class _FastTier:
    """Imports no module of another tier, and no torch: that alone takes seconds."""

    other = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(proof|extra)\b", re.MULTILINE)
    torch = importlib.util.find_spec("torch") is not None

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path.suffix != ".py":
            return None
        text = collection_path.read_text(encoding="utf-8")
        without_examples = self.torch and "torch" in str(collection_path.relative_to(ROOT)) and ">>>" not in text
        return True if self.other.search(text) or without_examples else None


class _Apart:
    """Collects the tests that have an environment of their own where they are asked for, and then nothing else."""

    folder = ROOT / "tests" / "apart"

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        inside = collection_path.is_relative_to(self.folder)
        leads_there = self.folder.is_relative_to(collection_path)
        return None if inside == self.wanted or (self.wanted and leads_there) else True


# Docstring examples that take long; tests in `tests/paper` hold what they say.
_LONG_EXAMPLES = {
    "safecal.paper.column_checks.check_column",
    "safecal.paper.figures.paper_figures",
    "safecal.paper.demonstrations.three_models",
    "safecal.paper.demonstrations.nees_demonstration",
    "safecal.paper.study.Score",
}


@hypothesis.settings(max_examples=1)
@hypothesis.given(hypothesis.strategies.none())
def _first_example(nothing: None) -> None:
    """Let Hypothesis find its generators of random numbers: it looks for their owners, and sees no frozen ones."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage neither while modules are imported nor, later on, among what they hold: millions of objects.

    Each full look takes half a second, and a run has hundreds. A test that asks for one by `gc.collect` has it still.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        _first_example()
        gc.freeze()
        gc.set_threshold(5000, 10, 10)
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)  # before the tests of other tiers are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in _LONG_EXAMPLES:
            item.add_marker(pytest.mark.proof)
        # One of the cases stays fast: the others run the same lines.
        if any(mark.name == "proof" for mark in getattr(getattr(item, "callspec", None), "marks", ())):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure neither the fixtures nor the processes of a test whose own lines are not measured."""
    if item.get_closest_marker("no_cover") is None:
        return (yield)
    coverage = getattr(item.config.pluginmanager.getplugin("_cov"), "cov_controller", None)
    told = os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    if coverage is not None:
        coverage.pause()
    try:
        return (yield)
    finally:
        if coverage is not None and not coverage.started:  # pytest-cov itself goes on after the call
            coverage.resume()
        if told is not None:
            os.environ["COVERAGE_PROCESS_CONFIG"] = told


@pytest.hookimpl(optionalhook=True)  # where pytest-xdist is not installed, no one calls it
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use every core; where every tier runs, one worker more: some tests wait for a kill, a server or a browser."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (config.option.markexpr == "")


# What takes a worker longest, and mostly lets it wait for processes that it started: begun first. The others follow by
# their number of tests, so that at the end of the run no worker is left alone with minutes of work.
_LONG_SCOPES = (
    "spark",
    "tests/docs/test_site.py",
    "tests/engines/test_one_verdict.py",
    "tests/docs/test_blocks.py",
    "tests/compat/test_huggingface.py",
    "tests/hostile/test_watch.py",
    "tests/surfaces/test_cli_streams.py",
    "tests/tracking/test_experiment.py",
    "tests/reference/test_compiled_builds.py",
    "tests/engines/test_workers_killed.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a module to one worker, so that its fixtures are built once, and what asks Spark too: one session for all.

    The cells of `statistics/` share nothing, and each takes long: they are dealt out one by one, at the end.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneModuleOneWorker(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            module, _, test = nodeid.partition("::")
            if module.startswith("tests/engines/") and ("spark" in test or "OnClusters" in test):
                return "spark"
            return f"{module}[{test.partition('[')[2]}" if module.startswith("tests/statistics/") else module

        def _assign_work_unit(self, node: Any) -> None:
            for scope in _LONG_SCOPES:
                if scope in self.workqueue:
                    self.workqueue.move_to_end(scope, last=False)
                    break
            super()._assign_work_unit(node)

    return OneModuleOneWorker(config, log) if config.getoption("dist") == "load" else None


class _FewCases:
    """Of a test with many cases, runs a few from all over the list."""

    def __init__(self, n: int) -> None:
        self.n = n

    @pytest.hookimpl(trylast=True)  # after the tests of other tiers are left out
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        tests: dict[str, list[pytest.Item]] = {}
        for item in items:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
        taken = {item for cases in tests.values() for item in self._telling(cases)}
        config.hook.pytest_deselected(items=[item for item in items if item not in taken])
        items[:] = [item for item in items if item in taken]

    def _telling(self, cases: list[pytest.Item]) -> list[pytest.Item]:
        """Return the first, and of the others those whose arguments have values that are not among them yet."""
        if len(cases) <= self.n:
            return cases
        left = sorted(range(len(cases)), key=lambda i: i * 0.618 % 1.0)  # neighbours in the list stand far apart
        values = [set(getattr(case, "callspec").indices.items()) for case in cases]  # noqa: B009 (of functions alone)
        seen: set[tuple[str, int]] = set()
        taken = []
        for _ in range(self.n):
            best = max(left, key=lambda i: len(values[i] - seen))
            left.remove(best)
            seen |= values[best]
            taken.append(cases[best])
        return taken


class _NoSkips:
    """Turns each skip into a failure, in the process that saw it, so that it holds under pytest-xdist too."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if not hasattr(report, "wasxfail"):
            _fail_if_skipped(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        _fail_if_skipped(report)
        return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"SAFECAL_NO_SKIP=1 allows no skip: {reason}"


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "of a test with more cases, run N from all over the list, as `make test` does (default: all)"
    parser.addoption("--cases", type=int, metavar="N", help=text)


def pytest_configure(config: pytest.Config) -> None:
    # Registered by hand: a conftest's own hooks would not see the docstring examples under src/.
    if cases := config.getoption("cases", None):
        config.pluginmanager.register(_FewCases(cases))
    if config.option.markexpr == "not proof and not extra":
        config.pluginmanager.register(_FastTier())
    config.pluginmanager.register(_Apart(config.option.markexpr == "apart"))
    if os.environ.get("SAFECAL_NO_SKIP") == "1":
        config.pluginmanager.register(_NoSkips())
