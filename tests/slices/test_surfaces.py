"""Slices on the command line and in the report."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.cli import main
from safecal.cli.outputs import searching
from safecal.inputs.values import feature_column, from_text

N = 8000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table whose model is over-confident for those of 60 and more."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    z, age = rng.normal(0, 2, N), rng.integers(20, 90, N)
    y = rng.random(N) < 1 / (1 + np.exp(-z / np.where(age >= 60, 5, 1)))
    frame = pl.DataFrame({
        "y": y.astype(int),
        "p": 1 / (1 + np.exp(-z)),
        "age": age,
        "seen": np.datetime64("2024-01-01") + rng.integers(0, 365, N),
        "site": rng.choice(["north", "south", None], N),
        "note": [f"remark {k}" for k in range(N)],
    })  # fmt: skip
    path = tmp_path_factory.mktemp("slices")
    frame.write_parquet(path / "rows.parquet")
    frame.write_csv(path / "rows.csv")
    return path


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
def test_features_are_named_on_the_command_line(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(folder / name), "--features", "all", "--json"]) == 0
    evaluation = safecal.Evaluation.from_dict(json.loads(capsys.readouterr().out))
    assert evaluation.slices is not None
    assert evaluation.slices.features == ("age", "seen", "site")
    assert evaluation.slices.left_out == (("note", "none of its 8000 values is frequent enough"),)
    assert evaluation.slices[0].conditions[0].feature == "age"
    assert evaluation.verdict.decision == "UNSAFE"
    assert main(["evaluate", str(folder / name), "--features", "site,seen"]) == 0
    text = capsys.readouterr().out
    assert "intervals hold together at 95 %" in text  # everybody is worse off, so something is found there, too
    assert "age" not in text


def test_a_name_that_is_no_column_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(folder / "rows.csv"), "--features", "age,sit"]) == 2
    assert "did you mean 'site'?" in capsys.readouterr().err
    assert main(["evaluate", str(folder / "rows.csv"), "--features", "age,,site"]) == 2
    assert "names that differ, separated by commas" in capsys.readouterr().err


def test_the_report_says_for_whom(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["evaluate", str(folder / "rows.csv"), "--features", "all", "--report", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert ">For whom</h2>" in text
    assert "Slices, the worst first" in text
    assert "Features that were left out: note: none of its 8000 values is frequent enough." in text


def test_the_report_of_a_safe_model_names_its_slices_first(tmp_path: Path, rng: np.random.Generator) -> None:
    z, site = rng.normal(0, 2, 20_000), rng.integers(0, 10, 20_000)
    happened = rng.random(20_000) < 1 / (1 + np.exp(-z / np.where(site == 3, 1.7, 1.0)))
    evaluation = safecal.bernoulli(happened, logits=z).evaluate(features={"site": site.astype(str)})
    assert evaluation.verdict.decision == "SAFE"
    evaluation.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Its confidence can be trusted, but less so in a slice of the rows" in text
    assert "Rely on it less in these slices." in text
    assert "It is over-confident where site is 3 (ECD" in text


def test_a_report_without_slices_says_so_or_nothing(tmp_path: Path, rng: np.random.Generator) -> None:
    p = rng.random(1000)
    predictions = safecal.bernoulli(rng.random(1000) < p, p)
    many: dict[str, Any] = {f"same {k}": np.zeros(1000) for k in range(12)}
    predictions.evaluate(features=many | {"x": rng.normal(size=1000)}).report(tmp_path / "with.html")
    text = (tmp_path / "with.html").read_text(encoding="utf-8")
    assert "no over-confident slice found" in text.replace("No over", "no over")
    assert "; and 2 more." in text
    predictions.evaluate().report(tmp_path / "without.html")
    assert "For whom</h2>" not in (tmp_path / "without.html").read_text(encoding="utf-8")


def test_columns_of_features_keep_what_they_hold() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    days = [dt.date(2024, 1, 1), None]
    for raw in (pl.Series(days), pa.array(days), np.array(["2024-01-01", "NaT"], "M8[D]")):
        feature = feature_column(raw, "day")
        assert feature.dtype.kind == "M"
        assert np.isnat(feature).tolist() == [False, True]
    assert feature_column(pl.Series([1, None]), "x").tolist() == [1, None]
    assert feature_column(np.array([1.5, 2.5]), "x").tolist() == [1.5, 2.5]
    assert feature_column(pl.Series([[1.0, 2.0], [3.0, 4.0]]), "x").tolist() == [(1.0, 2.0), (3.0, 4.0)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (["1", "2"], [1, 2]),
        (["1.5", None], [1.5, None]),
        (["true", "false"], [True, False]),
        (["007", "1"], ["007", "1"]),
        (["a", None], ["a", None]),
        ([None, None], [None, None]),
        ([1, None], [1, None]),
        (["2024-01-01", "2024-13-45"], ["2024-01-01", "2024-13-45"]),
    ],
)
def test_text_of_a_file_becomes_what_it_spells(text: list[Any], wanted: list[Any]) -> None:
    assert from_text(np.array(text, dtype=object)).tolist() == wanted


def test_text_of_dates_becomes_dates() -> None:
    dates = from_text(np.array(["2024-01-01", None, "2024-01-02 12:30"], dtype=object))
    assert dates.astype("M8[m]").astype(str).tolist() == ["2024-01-01T00:00", "NaT", "2024-01-02T12:30"]
    assert from_text(np.array(["2024-01-01", "2024-01-02"])).dtype.kind == "M"
    plain = np.arange(3)
    assert from_text(plain) is plain


def test_the_search_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr("safecal.cli.outputs.draw", drawn.append)
    now = [0.0]
    monkeypatch.setattr("safecal.cli.outputs.time.monotonic", lambda: now[0])
    show = searching()
    now[0] = 2.0
    show(0.5)
    assert not drawn
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show(0.5)
    show(1.0)
    assert "50% of the search for slices" in drawn[0]
    assert drawn[1] == "\r\x1b[K"
