"""Every code block of the documentation runs.

``python`` blocks of one page share a namespace, in order. Blocks with a ``>>>`` prompt are compared with what they
print. ``sh`` blocks may name only make targets that exist; their lines that call ``safecal`` are run in a folder
of the page's own, and must end with status 0 or the one that a comment names: ``# status 3``. What stands below a
command of a ``console`` block is compared with what it says, and ``...`` there stands for anything. A block is left out
only by a line above it that says why: ``<!-- not run: reason -->``.
"""

import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

LONG = {
    ROOT / "docs" / "command-line.md",
    ROOT / "docs" / "language-models.md",
    ROOT / "docs" / "monitoring.md",
    ROOT / "docs" / "forecasts.md",
    ROOT / "docs" / "plots.md",
    ROOT / "docs" / "poses.md",
    ROOT / "docs" / "regression.md",
    ROOT / "docs" / "scikit-learn.md",
    *(ROOT / "docs" / "explanation").glob("*.md"),
    *(ROOT / "docs" / "paper").glob("*.md"),
    *(ROOT / "docs" / "tutorials").glob("*.md"),
}

# Pages whose blocks need what only the `test-all` extra installs.
EXTRA = {
    ROOT / "docs" / "running-language-models.md": [pytest.mark.extra],
    ROOT / "docs" / "tutorials" / "pytorch.md": [pytest.mark.extra],
    ROOT / "docs" / "tutorials" / "spark.md": [
        pytest.mark.extra,
        pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
        pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of Spark, which lives on
    ],
}

PYTHON = {"python", "py", "pycon"}
SHELL = {"sh", "bash", "shell", "console"}
DATA = {"json"}
INERT = {"text", "toml", "yaml", "bibtex", "mermaid", "html", "math"}


class Block(NamedTuple):
    language: str
    code: str
    line: int  # of the first line of code, from 1
    not_run: str | None  # the reason, where a comment excludes the block


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a Markdown page."""
    found = []
    lines = text.splitlines()
    at = 0
    comment: str | None = None
    while at < len(lines):
        line = lines[at]
        at += 1
        if fence := re.match(r"^(\s*)(`{3,}|~{3,})\s*([\w+-]*)", line):
            indent, mark, language = fence.groups()
            start = at
            while at < len(lines) and not re.match(rf"^\s*{mark}{mark[0]}*\s*$", lines[at]):
                at += 1
            assert at < len(lines), f"line {start}: the block has no end"
            code = "\n".join(body.removeprefix(indent) for body in lines[start:at]) + "\n"
            found.append(Block(language.lower(), code, start + 1, comment))
            at += 1
            comment = None
        elif excluded := re.match(r"^\s*<!--\s*not run:?(.*?)-->\s*$", line):
            comment = excluded[1].strip()
        elif line.strip():
            comment = None
    return found


def make_targets() -> set[str]:
    """Return the targets of the Makefile that a person may name."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][\w-]*)(?:[ \t]+[\w-]+)*:(?!=)", text, flags=re.MULTILINE))


def made(code: str) -> list[str]:
    """Return the targets that a shell block makes."""
    targets: list[str] = []
    for line in code.splitlines():
        for command in re.split(r"&&|\|\||;|\|", line.strip().removeprefix("$ ")):
            words = shlex.split(command, comments=True)
            while words and re.match(r"^\w+=", words[0]):
                words = words[1:]
            if words and words[0] == "make":
                targets += [word for word in words[1:] if "=" not in word and not word.startswith("-")]
    return targets


def run_page(text: str, name: str) -> None:
    """Run the blocks of one page, in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        place = f"{name}:{block.line}"
        known = PYTHON | SHELL | DATA | INERT
        assert block.language in known, f"{place}: name the language of the block, one of {sorted(known)}"
        if block.not_run is not None:
            assert block.not_run, f"{place}: say why the block is not run: <!-- not run: reason -->"
        elif block.language in SHELL:
            missing = set(made(block.code)) - make_targets()
            assert not missing, f"{place}: the Makefile has no target {sorted(missing)}"
            for command, expected in _commands(block):
                _run_safecal(command, expected, place)
        elif block.language in DATA:
            json.loads(block.code)
        elif block.language in PYTHON and block.code.lstrip().startswith(">>>"):
            _compare(block, namespace, name)
        elif block.language in PYTHON:
            # Blank lines in front, so that a traceback names the line of the page.
            exec(compile("\n" * (block.line - 1) + block.code, name, "exec"), namespace)


def _commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a shell block, and what a console shows below each of them."""
    if block.language != "console":
        return [(line, "") for line in block.code.splitlines()]
    parts = re.split(r"^\$ (.*\n)", block.code, flags=re.MULTILINE)
    assert not parts[0].strip(), f"line {block.line}: a console begins with a command, $ ..."
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _run_safecal(line: str, shown: str, place: str) -> None:
    """Run a line of a shell block, if it calls safecal."""
    command = line.strip().removeprefix("$ ")
    if not re.search(r"(^|[|;] )safecal ", command):
        return
    pytest.importorskip("polars", minversion="1.38")
    comment = re.search(r"# status (\d+)", command)
    expected = int(comment[1]) if comment else 0
    found, said = _called(command) if re.fullmatch(r"safecal [^|<>;&$*`~]*", command) else _in_a_shell(command)
    assert found == expected, f"{place}: {command}\n{said}"
    same = not shown or doctest.OutputChecker().check_output(shown, said, doctest.ELLIPSIS)
    assert same, f"{place}: {command}\nis shown to say\n{shown}\nand says\n{said}"


def _called(command: str) -> tuple[int, str]:
    """Call the command line as the shell would, without another process; return its status and all that it said."""
    from safecal.cli import main

    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main(shlex.split(command, comments=True)[1:])
    return status, said.getvalue()


def _in_a_shell(command: str) -> tuple[int, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    return said.returncode, f"{said.stdout}{said.stderr}"


def _compare(block: Block, namespace: dict[str, object], name: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, {}, name, name, block.line - 1)
    test.globs = namespace  # the page's own, not a copy
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    failed = runner.run(test, out=report.append, clear_globs=False).failed
    assert not failed, "".join(report)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=EXTRA.get(page, [pytest.mark.proof] if page in LONG else [])) for page in PAGES],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name == "spark.md":
        _end_spark()
        # It runs too shortly for a thorough compiler, or for a second thread of a garbage collector.
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    run_page(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix())


def _end_spark() -> None:
    """End a Java process that other tests of this worker started: it reads files from where they were."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    if SparkContext._gateway is not None:
        SparkContext._gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None


def test_pages_are_found() -> None:
    assert {ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "stability.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_inside_the_repository_exist(page: Path) -> None:
    prose = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


GOOD = """
```python
x = 1
```

Some words.

```pycon
>>> x + 1
2
>>> y = x
```

- in a list

  ```python
  assert y == 1
  ```

<!-- not run: it would take an hour -->

```python
raise RuntimeError
```

```console
$ SAFECAL_NO_SKIP=1 make test JOBS=2 && echo done  # make nothing
```
"""


def test_a_good_page_runs() -> None:
    run_page(GOOD, "good.md")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nassert 1 == 2, 'two'\n```", "two"),
        ("```python\n>>> 1 + 1\n3\n```", "Got:"),
        ("```pycon\n>>> undefined\n1\n```", "NameError"),
        ("```\nplain\n```", "bad.md:2: name the language"),
        ("```sh\nmake nonsense\n```", "no target"),
        ("```sh\nsafecal evaluate none.csv\n```", "none.csv does not exist"),
        ("```console\n$ safecal evaluate none.csv  # status 2\nSAFE\n```", "is shown to say"),
        ("```console\nsafecal --version\n```", "begins with a command"),
        ("```json\n{\n```", "Expecting"),
        ("```python\nx = 1\n", "no end"),
        ("<!-- not run: -->\n```python\nx = 1\n```", "say why"),
        ("<!-- not run: far above -->\nWords.\n```python\nassert 1 == 2, 'two'\n```", "two"),
    ],
)
def test_a_bad_page_is_seen(text: str, message: str) -> None:
    with pytest.raises((AssertionError, ValueError), match=re.escape(message)):
        run_page(text, "bad.md")


def test_the_error_names_the_line_of_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("# Title\n\n```python\nx = 1\nx / 0\n```\n", "page.md")
    assert caught.traceback[-1].lineno + 1 == 5
