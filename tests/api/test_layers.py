"""The law of the rooms: a module imports only from a room with a smaller number.

Also what follows from it: `import safecal` is lazy, the core stands on NumPy and SciPy alone, and what the package
offers is documented.
"""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import safecal

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "safecal"

# Room of each module or sub-package directly under safecal.
ROOMS = {
    "errors": 0,
    "_types": 0,
    "_optional": 1,
    "_checks": 1,
    "_kernels": 1,
    "documents": 1,
    "files": 1,
    "_sums": 2,
    "families": 3,
    "options": 3,
    "inference": 4,
    "maps": 5,
    "monitor": 5,
    "judge": 5,
    "slices": 5,
    "metrics": 6,
    "inputs": 7,
    "engines": 8,
    "html": 8,
    "plot": 8,
    "report": 8,
    "testing": 8,
    "compat": 9,
    "watch": 9,
    "paper": 10,
    "cli": 11,
    "__main__": 12,
}

# The package itself offers everything up to the front doors: only what lies above them may import it by name.
FRONT_DOOR = 6

# Steps inside one room, from the left to the right. They must form no circle.
SAME_ROOM = {
    ("_checks", "_kernels"),
    ("_optional", "_kernels"),
    ("compat", "watch"),
    ("families", "options"),
    ("files", "documents"),
    ("judge", "slices"),
    ("maps", "judge"),
    ("monitor", "judge"),
    ("plot", "html"),
    ("report", "html"),
}

# Conveniences that point upward: (module, method) -> what it may import, inside the method.
UPWARD = {
    ("families", "Predictions.evaluate"): {"judge.evaluation"},
    ("judge.comparison", "Comparison.plot"): {"plot"},
    ("judge.comparison", "Comparison.report"): {"report"},
    ("judge.consistency", "Consistency.plot"): {"plot.course"},
    ("judge.evaluation", "Evaluation.plot"): {"plot"},
    ("judge.evaluation", "Evaluation.report"): {"report"},
    ("judge.evaluation", "Evaluation._repr_html_"): {"html.notebook"},
    ("judge.verdict", "Verdict._repr_html_"): {"html.notebook"},
    ("maps.result", "Recalibration.plot"): {"plot"},
    ("maps.result", "Recalibration._repr_html_"): {"html.notebook"},
    ("inference.local", "Local.plot"): {"plot.course"},
    ("slices.results", "Slices._repr_html_"): {"html.notebook"},
    ("slices.results", "Slices.plot"): {"plot.groups"},
    ("_sums.table", "Table.intervals"): {"inference.sum_bounds"},
    ("_sums.table", "Table.__repr__"): {"judge.display"},
    ("_sums.table", "Table._repr_html_"): {"judge.display"},
}

# What their signatures name: (module, what it may import under TYPE_CHECKING).
ANNOTATED = {
    ("_sums.cluster_pairs", "families"),
    ("_sums.splits", "families"),
    ("_sums.sweep", "families"),
    ("_sums", "families"),
    ("families", "judge.evaluation"),
    ("judge.evaluation", "maps.result"),
    ("_sums.table_views", "judge.groups"),
    ("_sums.table_views", "inference"),
    ("_sums.table", "judge.groups"),
    ("_sums.table", "inference"),
}

# A function without a home is a concept without a name.
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc"}


class Import(NamedTuple):
    module: str  # who imports, without "safecal."
    target: str  # what, without "safecal."; "" is the package itself
    line: int
    inside: str  # qualified name of the function or method around it; "" at module level
    typing_only: bool


@cache
def _modules() -> list[str]:
    """Return the names of all modules; a package bears its own, and the first one has none beside it."""
    paths = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def _source(module: str) -> str:
    path = PACKAGE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text(encoding="utf-8")


def _is_typing_only(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _walk(node: ast.AST, inside: str = "", typing_only: bool = False) -> Iterator[tuple[ast.stmt, str, bool]]:
    """Yield each import statement under a node, with the function around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside, typing_only
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _walk(child, f"{inside}.{child.name}".lstrip("."), typing_only)
        elif isinstance(child, ast.If) and _is_typing_only(child):
            for part in child.body:
                yield from _walk(ast.Module([part], []), inside, True)
            for part in child.orelse:
                yield from _walk(ast.Module([part], []), inside, typing_only)
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):  # expressions hold no imports
            yield from _walk(child, inside, typing_only)


@cache
def _exists(dotted: str) -> bool:
    path = PACKAGE.joinpath(*dotted.split(".")) if dotted else PACKAGE
    return path.with_suffix(".py").is_file() or path.is_dir()


def _targets(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the modules of safecal that one statement imports, without "safecal."."""
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
        yield from (".".join(parts[1:]) for parts in names if parts[0] == "safecal")
        return
    if node.level:
        parts = [*module.split("."), "__init__"] if PACKAGE.joinpath(*module.split(".")).is_dir() else module.split(".")
        package = parts[: -node.level]
        base = [*package, *(node.module.split(".") if node.module else [])]
    elif node.module and node.module.split(".")[0] == "safecal":
        base = node.module.split(".")[1:]
    else:
        return
    for alias in node.names:
        dotted = ".".join([*base, alias.name])
        yield dotted if _exists(dotted) else ".".join(base)


@cache
def _imports(module: str, source: str | None = None) -> list[Import]:
    tree = ast.parse(_source(module) if source is None else source)
    return [
        Import(module, target, node.lineno, inside, typing_only)
        for node, inside, typing_only in _walk(tree)
        for target in _targets(module, node)
    ]


def _fault(step: Import) -> str | None:
    """Say which rule an import breaks, if any."""
    here, there = step.module.split(".")[0], step.target.split(".")[0]
    if step.target == "":
        allowed = ROOMS[here] > FRONT_DOOR
    else:
        allowed = here == there or ROOMS[there] < ROOMS[here] or (here, there) in SAME_ROOM
    if allowed:
        return None
    if step.typing_only and (step.module, step.target) in ANNOTATED:
        return None
    if step.target in UPWARD.get((step.module, step.inside), ()):
        return None
    to = f"`{step.target}` (room {ROOMS[there]})" if step.target else "the package itself"
    return f"{step.module}.py:{step.line} (room {ROOMS[here]}) imports {to}"


def test_every_module_has_a_room() -> None:
    homeless = {module.split(".")[0] for module in _modules()} - set(ROOMS) - {"__init__"}
    assert not homeless, f"give these a room: {sorted(homeless)}"


def test_every_module_can_be_read_in_one_sitting() -> None:
    long = {module: n for module in _modules() if (n := len(_source(module).splitlines())) > 400}
    assert not long, f"a file of more than 400 lines holds more than one idea: {long}"


def test_modules_are_not_too_many_to_know() -> None:
    count = sum("paper" not in module.split(".") for module in _modules())  # its command is the paper's, too
    assert count <= 190, f"{count} modules: find the two that are one idea, before there is another"


def test_no_module_is_nameless() -> None:
    nameless = [module for module in _modules() if NAMELESS & {part.strip("_") for part in module.split(".")}]
    assert not nameless


def test_imports_point_to_a_smaller_room() -> None:
    steps = [step for module in _modules() if module != "__init__" for step in _imports(module)]
    faults = [fault for step in steps if (fault := _fault(step))]
    assert not faults, "\n".join(faults)


def test_the_package_imports_nothing_of_its_own_at_run_time() -> None:
    eager = [step for step in _imports("__init__") if not step.inside and not step.typing_only]
    assert all(ROOMS[step.target.split(".")[0]] == 0 for step in eager), eager


def test_listed_conveniences_exist_and_are_used() -> None:
    for (module, method), targets in UPWARD.items():
        used = {step.target for step in _imports(module) if step.inside == method}
        assert used == targets, f"{module}.{method}"


def test_modules_form_no_circle() -> None:
    modules = set(_modules())
    steps = {
        (module, step.target)
        for module in modules
        for step in _imports(module)
        if not step.inside and not step.typing_only and step.target in modules - {module}
    }
    while steps:
        leaves = {b for _, b in steps} - {a for a, _ in steps}
        assert leaves, f"a circle among {sorted(steps)}"
        steps = {(a, b) for a, b in steps if b not in leaves}


def test_steps_inside_a_room_form_no_circle() -> None:
    assert all(ROOMS[a] == ROOMS[b] for a, b in SAME_ROOM)
    open_steps = set(SAME_ROOM)
    while open_steps:
        leaves = {b for _, b in open_steps} - {a for a, _ in open_steps}
        assert leaves, f"a circle among {sorted(open_steps)}"
        open_steps = {(a, b) for a, b in open_steps if b not in leaves}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("_sums.summary", "from ..judge.verdict import Verdict"),
        ("_sums.summary", "from safecal.judge.verdict import Verdict"),
        ("_sums.summary", "from .. import judge"),
        ("_sums.summary", "import safecal.judge.verdict"),
        ("_sums.summary", "def f():\n    from ..judge.verdict import Verdict"),
        ("_sums.summary", "if TYPE_CHECKING:\n    from ..judge.verdict import Verdict"),
        ("_sums.scored", "from ..families.gaussian import gaussian"),
        ("families.gaussian", "from ..inference.local import Local"),
        ("families.gaussian", "from .. import inference"),
        ("families", "from ..judge.evaluation import evaluate"),
        ("_kernels.compiled", "from .._checks import arrays"),
        ("_sums.table", "import safecal"),
        ("_sums.table", "from safecal import ecd"),
    ],
)
def test_the_law_sees_a_breach(module: str, source: str) -> None:
    assert [_fault(step) for step in _imports(module, source)] != [None]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("families.gaussian", "from .predictions import Predictions"),
        ("families.gaussian", "from .._sums.summary import Summary"),
        ("_sums.summary", "from .scored import Scored"),
        ("_sums.table", "import numpy as np\nfrom collections import abc"),
        ("inputs", "import safecal"),
    ],
)
def test_the_law_permits(module: str, source: str) -> None:
    assert all(_fault(step) is None for step in _imports(module, source))


def _modules_after(code: str, own: str = "") -> set[str]:
    """Return the modules that a fresh interpreter loads while it runs some code, but for its own libraries'."""
    script = f"{own}\nimport sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def _loaded_after(code: str, own: str = "") -> set[str]:
    return {name.split(".")[0] for name in _modules_after(code, own)}


def test_import_is_lazy() -> None:
    loaded = _loaded_after("import safecal; dir(safecal); safecal.__version__")
    assert "safecal" in loaded
    assert not loaded & {"numpy", "scipy"}


def test_core_stands_on_numpy_and_scipy_alone() -> None:
    code = "import safecal; safecal.ecd([0, 1, 1], [0.2, 0.7, 0.9])\n"
    code += "safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9]).to_dict()\n"
    code += "for name in safecal.__all__: getattr(safecal, name)"
    loaded = _loaded_after(code, own="import scipy.special, scipy.interpolate")  # with what SciPy itself brings along
    assert "safecal" in loaded
    others = loaded - sys.stdlib_module_names - {"safecal", "numpy", "scipy"}
    assert not {name for name in others if "cython" not in name}  # Cython's run time, inside SciPy


# What takes long to import, and what other commands need: SciPy brings all of it but its special functions only when
# asked.
NOT_FOR_A_FIRST_ANSWER = {
    "asyncio",
    "html",
    "http",
    "jinja2",
    "matplotlib",
    "multiprocessing",
    "narwhals",
    "pandas",
    "pyarrow",
    "rich",
    "sqlite3",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.spatial",
    "scipy.stats",
    "fractions",
    "safecal.inputs.logs",
    "safecal.inputs.questions",
    "safecal.judge.baseline",
    "safecal.judge.paired",
    "safecal.judge.planning",
    "safecal.cli.language_models",
    "safecal.cli.paper",
    "safecal.cli.recalibrate",
    "safecal.engines.frames",
    "safecal.maps",
    "safecal.monitor",
    "safecal.plot",
    "safecal.report",
    "safecal.watch",
}


@pytest.mark.parametrize(("slope", "decision"), [(1.0, "SAFE"), (0.1, "UNSAFE")])
def test_a_first_answer_imports_little(tmp_path: Path, slope: float, decision: str) -> None:
    pytest.importorskip("polars", minversion="1.38")
    p = (np.arange(2000) + 0.5) / 2000
    y = np.random.default_rng(0).random(2000) < 0.5 + slope * (p - 0.5)
    assert safecal.evaluate(y, p).verdict.decision == decision
    path = tmp_path / "small.csv"
    np.savetxt(path, np.column_stack([y, p]), fmt=["%d", "%.6f"], delimiter=",", header="y,p", comments="")
    code = f"from safecal.cli import main; assert main(['evaluate', {str(path)!r}]) == 0"
    loaded = _modules_after(code, own="import numpy, scipy.special, polars")
    assert "safecal.cli.commands" in loaded
    assert not loaded & NOT_FOR_A_FIRST_ANSWER


def test_public_names() -> None:
    assert set(safecal.__all__) <= set(dir(safecal))
    for name in safecal.__all__:
        value = getattr(safecal, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            doc = inspect.getdoc(value) or ""
            assert doc, f"`{name}` has no docstring"
            if not (inspect.isclass(value) and issubclass(value, Exception)):
                assert "\nExamples\n--------\n" in doc, f"the docstring of `{name}` has no Examples section"


def test_contributing_names_every_room() -> None:
    text = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|", text, re.MULTILINE)
    assert {name: int(room) for room, names in rows for name in re.findall(r"`([^`]*)`", names)} == ROOMS


def test_contributing_names_files_that_are_there() -> None:
    root = PACKAGE.parents[1]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./]+/[\w.]*)`", text)) - {"families/NAME.py", "_kernels/waiting.py"}
    assert len(named) > 20
    there = (root, root / "tests", PACKAGE)
    assert {name for name in named if not any((folder / name).exists() for folder in there)} == set()


def test_lines_of_contributing_are_not_too_long() -> None:
    text = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if len(line) > 120] == []


def test_no_name_is_hidden_by_a_module() -> None:
    # Importing a sub-module sets it as an attribute of the package: so no module may bear the name of a function.
    for module in {name.split(".")[0] for name in _modules()} - {"__init__"}:
        importlib.import_module(f"safecal.{module}")
    assert not [name for name in safecal.__all__ if inspect.ismodule(getattr(safecal, name))]


def test_all_is_complete() -> None:
    assert len(set(safecal.__all__)) == len(safecal.__all__)
    public = {name for name in dir(safecal) if not name.startswith("_")}
    modules = {name for name in public if inspect.ismodule(getattr(safecal, name))}
    assert public - modules <= set(safecal.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        safecal.no_such_name  # noqa: B018
