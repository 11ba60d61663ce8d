"""Names come from strangers: whatever stands in them, a terminal shows it and obeys nothing."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.errors import visible
from safecal.judge.baseline import Baseline
from safecal.monitor import Alarm, Monitor
from safecal.report import report_html

pl = pytest.importorskip("polars", minversion="1.38")

# A colour, a title, a bell, a line and a return of its own, C1 controls, writing turned around, a separator of lines.
EVIL = "\x1b[31mred\x1b]0;owned\x07\r\nSAFE\x9b2J\x85\u202egnp.exe\u2028\u2066\x7f"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> bool:
    """Tell whether a terminal shows a text as it is, and no name has begun a line of its own."""
    return UNSEEN.search(text) is None and not any(line.startswith("SAFE\\x9b") for line in text.splitlines())


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a command and returns its status and all that it wrote."""
    from safecal.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str]:
        capsys.readouterr()
        status = main([*map(str, words)])
        out = capsys.readouterr()
        return status, out.out + out.err

    return run


def _file(path: str, columns: dict[str, Any], rows: int = 600) -> Path:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, rows)
    y = rng.random(rows) < 1 / (1 + np.exp(-z))
    frame = {"y": y.astype(int), "p": 1 / (1 + np.exp(-4 * z))} | columns
    pl.DataFrame(frame).write_parquet(path)
    return Path(path)


def test_the_function_leaves_nothing_that_a_terminal_obeys() -> None:
    assert visible("\x1b") == r"\x1b"
    every = "".join(map(chr, range(0x2100)))
    assert UNSEEN.search(visible(every)) is None
    assert visible("naïve 中文 ✓ 👩‍🔬 ا") == "naïve 中文 ✓ 👩‍🔬 ا"
    assert not any(unicodedata.category(c) == "Cc" for c in visible(EVIL))


def test_an_evaluation_and_its_parts_show_every_name() -> None:
    y, p = [0, 1] * 300, [0.99, 0.01] * 150 + [0.01, 0.99] * 150
    by = {f"{EVIL}1": [EVIL] * 300 + ["b"] * 300, f"{EVIL}2": [EVIL, "d"] * 300}
    for given in (by, {EVIL: by[f"{EVIL}1"]}):
        evaluation = safecal.evaluate(y, p, by=given)
        key = (EVIL, EVIL) if len(given) == 2 else EVIL
        texts = [
            evaluation,
            evaluation.verdict,
            evaluation.groups,
            evaluation.group_verdict(key),
            *evaluation.verdict.where,
        ]
        texts += [evaluation.verdict.too_small, Baseline.of(evaluation, evaluation)]
        for one in texts:
            assert plain(str(one)), one
            assert plain(repr(one)), one
        assert UNSEEN.search(evaluation._repr_html_()) is None


def test_class_names_are_shown() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.3), 600)
    evaluation = safecal.evaluate([EVIL, "b", "c"] * 200, p, labels=[EVIL, "b", "c"])
    assert evaluation.verdict.decision == "UNSAFE"
    assert plain(str(evaluation))
    assert plain(str(evaluation.verdict))


def test_alarms_and_refusals_show_every_name() -> None:
    alarm = Alarm("change", "over-confident", EVIL, 1, 2.0, 1.0, 0, EVIL)
    assert plain(str(alarm))
    monitor = Monitor(grouped=True)
    monitor.update([0, 1], [0.2, 0.7], by=[EVIL, EVIL])
    assert plain(repr(monitor))
    with pytest.raises(safecal.errors.SafecalError) as refused:
        safecal.evaluate([0, 1, 2], [0.1, 0.2, 0.3], by={EVIL: [1, 2]})
    assert plain(str(refused.value))


def test_evaluate_shows_groups_columns_and_files(said: Any) -> None:
    name = EVIL.replace("/", "")
    file = _file(f"{name}.parquet", {EVIL: [EVIL, "b"] * 300})
    words = ("--by", EVIL, "--report", f"{name}.html", "--plot", f"{name}.svg", "--json")
    for more in (words[:6], words[:2] + words[6:]):
        status, text = said("evaluate", file, *more)
        assert status == 0, text
        assert plain(text), text
    page = Path(f"{name}.html").read_text()
    assert UNSEEN.search(page) is None
    assert UNSEEN.search(Path(f"{name}.svg").read_text()) is None


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "FILE", "--by", "BAD"),
        ("evaluate", "FILE", "--y", "EVIL"),
        ("evaluate", "FILE", "--prob", "EVIL"),
        ("evaluate", "FILE", "--pos-label", "BAD"),
        ("evaluate", "FILE", "--format", "BAD"),
        ("evaluate", "FILE", "--bins", "BAD"),
        ("evaluate", "FILE", "--BAD"),
        ("evaluate", "FILE", "BAD"),
        ("evaluate", "BAD.csv"),
        ("evaluate", "FILE", "--baseline", "BAD"),
        ("evaluate", "FILE", "--report", "BAD/x.html"),
        ("evaluate", "FILE", "--plot", "BAD"),
        ("recalibrate", "FILE", "--out", "BAD"),
        ("recalibrate", "FILE", "--apply", "BAD", "--out", "x.csv"),
        ("recalibrate", "FILE", "--by", "EVIL", "--out", "BAD.csv", "--save", "BAD.json"),
        ("compare", "FILE", "BAD"),
        ("plan", "BAD"),
        ("demo", "--report", "BAD/x.html"),
        ("watch", "BAD"),
        ("watch", "status", "--store", "BAD"),
        ("watch", ".", "--store", "BAD/x"),
        ("watch", ".", "--webhook", "BAD"),
        ("BAD",),
    ],
)
def test_no_message_hands_a_name_to_the_terminal(words: tuple[str, ...], said: Any) -> None:
    _file("FILE.parquet", {EVIL: [EVIL, "b"] * 300})
    given = [w.replace("FILE", "FILE.parquet").replace("EVIL", EVIL).replace("BAD", f"x{EVIL}") for w in words]
    status, text = said(*given)
    assert status in (0, 2), text
    assert plain(text), text


def test_watch_and_its_status_show_every_name(said: Any) -> None:
    folder = Path("in")
    folder.mkdir()
    _file(str(folder / f"{EVIL.replace('/', '')}.parquet"), {"site": [EVIL, "b"] * 300, "day": [EVIL] * 600})
    (folder / f"bad{EVIL}.csv").write_text("y,p\nx\x1b[2J,3\n")
    words = ("watch", "in", "--once", "--poll", "0.01", "--y", "y", "--prob", "p", "--by", "site", "--window-column")
    status, text = said(*words, "day", "--report", "page.html")
    assert status == 3, text
    assert plain(text), text
    assert "ALARM" in text
    for more in (("status",), ("acknowledge", "--group", EVIL), ("acknowledge", "--group", f"x{EVIL}")):
        status, text = said("watch", *more)
        assert plain(text), text
    assert UNSEEN.search(Path("page.html").read_text()) is None


def test_pages_hold_names_in_titles_attributes_and_documents() -> None:
    names = ["</title><script>alert(1)</script>", "</script><script>alert(1)</script>", '"><svg onload=alert(1)>', EVIL]
    by = list(itertools.islice(itertools.cycle(names), 600))
    evaluation = safecal.evaluate([0, 1] * 300, [0.99, 0.01] * 300, by={names[1]: by})
    page = report_html(evaluation, title=names[0] + EVIL, source=names[2], command=names[1])
    assert "alert(1)</script>" not in page
    assert "<svg onload" not in page
    assert UNSEEN.search(page) is None
    inside = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert inside is not None
    assert all(json.dumps(name) in json.dumps(json.loads(inside[1])) for name in names)
