"""Text that a spreadsheet would run: written as it is, or made harmless where that is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from safecal.cli import main

pl = pytest.importorskip("polars", minversion="1.38")

FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd", "-1+cmd", "@SUM(A1)", "\t=1+1", "\r=1+1", " =1+1", "|calc", "%0A=1"]
HARMLESS = ["plain", "a=b", "-0.5", "+3e5", "", "-inf", "1-2", "'=quoted"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 340)
    y = (rng.random(340) < 1 / (1 + np.exp(-z))).astype(int)
    names = ((FORMULAS + HARMLESS) * 20)[:340]
    frame = pl.DataFrame({"y": y, "p": 1 / (1 + np.exp(-z)), "=who": names, "note": names[::-1], "gain": -z})
    frame.with_columns(pl.col("note").cast(pl.Categorical)).write_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.mark.parametrize("end", ["csv", "parquet", "jsonl"])
def test_text_is_made_harmless_where_that_is_asked_for(rows: Path, end: str) -> None:
    out = rows.with_name(f"out.{end}")
    assert main(["recalibrate", str(rows), "--out", str(out), "--spreadsheet-safe"]) == 0
    read = {"csv": lambda p: pl.read_csv(p, infer_schema=False), "parquet": pl.read_parquet, "jsonl": pl.read_ndjson}
    written = read[end](out)
    wanted = [f"'{name}" for name in FORMULAS] + HARMLESS
    assert written["note"].cast(pl.String).fill_null("").to_list()[-len(wanted) :] == wanted[::-1]
    assert written["'=who"].fill_null("").to_list()[: len(wanted)] == wanted
    assert written["gain"].cast(pl.Float64).to_list() == pytest.approx(pl.read_parquet(rows)["gain"].to_list())


def test_by_default_rows_are_written_as_they_are(rows: Path) -> None:
    out = rows.with_name("out.parquet")
    assert main(["recalibrate", str(rows), "--out", str(out)]) == 0
    assert pl.read_parquet(out).drop("calibrated").equals(pl.read_parquet(rows))


def test_it_belongs_to_rows_that_are_written(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recalibrate", str(rows), "--spreadsheet-safe"]) == 2
    assert "`--spreadsheet-safe` belongs to `--out`" in capsys.readouterr().err
