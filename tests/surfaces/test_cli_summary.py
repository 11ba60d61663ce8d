"""``safecal evaluate --summary``: what a pull request shows is what the gate says, without markup of strangers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pl = pytest.importorskip("polars", minversion="1.38")

Safecal = Callable[..., Any]
WORDS = ("--y", "y", "--logits", "z", "--gate")
EVIL = "*a* _b_ | ~c~ <img src=x> @all #1 https://evil.org www.evil.org $x$ `d` [e](f) &lt; \\ \n\n## SAFE\x1b"


def _rows(path: Path, scale: Any, n: int = 4000, **columns: Any) -> Path:
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, n)
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    pl.DataFrame({"y": y.astype(int), "z": scale * z} | columns).write_parquet(path)
    return path


@pytest.mark.parametrize(("scale", "n", "status"), [(1.0, 4000, 0), (3.0, 4000, 3), (1.0, 20, 4)])
def test_the_first_line_is_the_verdict_of_the_gate(
    tmp_path: Path, safecal: Safecal, scale: float, n: int, status: int
) -> None:
    page = tmp_path / "summary.md"
    said = safecal("evaluate", _rows(tmp_path / "rows.parquet", scale, n), *WORDS, "--summary", page, "--json")
    text, document = page.read_text(encoding="utf-8"), json.loads(said.out)
    decision, reason = document["verdict"]["decision"], document["verdict"]["reason"]
    assert said.status == status
    assert text.startswith(f"## {decision}\n\n{reason[0].upper()}{reason[1:]}\n\n")
    assert f"| ECD | {document['metrics']['ecd']:+.4f} | nat, 95 % interval " in text
    assert f"{n} rows of " in text
    assert ("| place | rows | share |" in text) == (decision == "UNSAFE")
    assert ("What to do: " in text) == (decision == "UNSAFE")


def test_the_first_line_says_that_it_is_worse_than_the_baseline(tmp_path: Path, safecal: Safecal) -> None:
    before, page = tmp_path / "before.json", tmp_path / "summary.md"
    before.write_text(safecal("evaluate", _rows(tmp_path / "a.parquet", 1.0), *WORDS, "--json").out, encoding="utf-8")
    more = ("--threshold", 0.3, "--max-temperature", 2, "--local-threshold", 1)
    for scale, limits, status, line in (
        (1.0, (), 0, "## SAFE: v2"),
        (1.3, more, 5, "## SAFE, but WORSE than the baseline: v2"),
        (1.3, (), 5, "## UNDETERMINED, and WORSE than the baseline: v2"),
        (3.0, (), 3, "## UNSAFE, and WORSE than the baseline: v2"),
    ):
        words = (*WORDS, "--baseline", before, "--title", "v2", *limits, "--summary", page)
        said = safecal("evaluate", _rows(tmp_path / "b.parquet", scale), *words)
        assert said.status == status
        assert f"summary: {page}\n" in said.out
        first, *rest = page.read_text(encoding="utf-8").split("\n\n")
        assert first == line
        assert re.match(r"(\*\*Baseline\*\*: WORSE|Baseline: NOT WORSE) than the baseline: ", rest[1])


def test_groups_have_verdicts_and_the_worst_come_first(tmp_path: Path, safecal: Safecal) -> None:
    site = np.arange(9000) % 12
    scale = np.where(site == 7, 3.0, 1.0)
    rows, page = _rows(tmp_path / "rows.parquet", scale, 9000, site=site), tmp_path / "summary.md"
    assert safecal("evaluate", rows, *WORDS, "--by", "site", "--summary", page).status == 3
    text = page.read_text(encoding="utf-8")
    table = text.partition("| site | rows | verdict |")[2].splitlines()
    assert table[2].startswith("| 7 | 750 | UNSAFE | +")
    assert sum(" | 750 | " in line for line in table) == 10
    assert text.endswith("\n\nAnd 2 more groups.\n")


def test_rows_that_were_left_out_and_many_places_are_told_of(tmp_path: Path, safecal: Safecal) -> None:
    age = np.where(np.arange(4000) < 3, np.nan, 1.0)
    path, page = _rows(tmp_path / "rows.parquet", 4.0, age=age, kind=np.arange(4000) % 8), tmp_path / "summary.md"
    frame = pl.read_parquet(path).with_columns(
        pl.when(pl.col("age").is_nan()).then(None).otherwise(pl.col("z")).alias("z")
    )
    frame.write_parquet(path)
    said = safecal(
        "evaluate", path, *WORDS, "--by", "kind", "--features", "age", "--drop-missing", "--summary", page
    )  # fmt: skip
    text = page.read_text(encoding="utf-8")
    line = "left out 3 of 4000 rows with missing values, the first at row 0."
    assert f"safecal: {line}\n" in said.err
    assert f"\n\nNote: {line}\n\n" in text
    assert re.search(r"\n\nAnd in \d+ more places\.\n\n", text)
    assert re.search(r"\n\n(No over-confident|\d+ over-confident) slices? ", text)


def test_nothing_that_strangers_wrote_is_markup(tmp_path: Path, safecal: Safecal) -> None:
    group = np.where(np.arange(4000) % 2 == 0, EVIL, "other")
    scale = np.where(np.arange(4000) % 2 == 0, 4.0, 1.0)
    rows, page = _rows(tmp_path / "rows.parquet", scale, **{EVIL: group}), tmp_path / "summary.md"
    assert safecal("evaluate", rows, *WORDS, "--by", EVIL, "--summary", page).status == 3
    text = page.read_text(encoding="utf-8")
    assert text.count("##") == 1
    shown = text.partition("## UNSAFE")[2]
    for mark in ("@all", "#1", "://", "www.", "<img", "\x1b", " _b", " ~c", "[e]", " `d", "$x"):
        assert mark not in shown, mark
    width = {"| place": 9, "|  | value": 4, "| \\*a\\*": 7}  # bars of a row that are not escaped
    for table in shown.split("\n\n"):
        if table.startswith("| "):
            bars = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert bars == {next(count for start, count in width.items() if table.startswith(start))}
    assert r"\*a\* \_b\_ \| \~c\~ &lt;img src=x&gt; @<!-- -->all #<!-- -->1 https:<!-- -->//evil.org" in shown
