"""``safecal compare``, ``recalibrate`` and ``demo``; and what is left when one of them is killed."""

from __future__ import annotations

import csv
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import safecal as library

pl = pytest.importorskip("polars", minversion="1.38")

Safecal = Callable[..., Any]
RNG = np.random.default_rng(8)
N = 2000
LOG_ODDS = RNG.normal(0, 2, N)
Y = (RNG.random(N) < 1 / (1 + np.exp(-LOG_ODDS))).astype(np.int64)
P = 1 / (1 + np.exp(-2 * LOG_ODDS))
SITE = np.where(np.arange(N) % 2 == 0, "north", "south")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    columns = {"y": Y, "p": P, "z": 2 * LOG_ODDS, "honest": LOG_ODDS, "site": SITE, "day": np.arange(N) // 20}
    pl.DataFrame(columns).write_csv(path)
    return path


def test_compare(rows: Path, safecal: Safecal) -> None:
    want = library.compare(library.bernoulli(Y, logits=2 * LOG_ODDS), library.bernoulli(Y, logits=LOG_ODDS))
    words = [rows, rows, "--logits", "z", "--logits-b", "honest"]
    said = safecal("compare", *words)
    assert said.out.rstrip("\n") == repr(want)
    said = safecal("compare", *words, "--json", "--cluster", "day", "--level", "0.9")
    clustered = library.compare(
        library.bernoulli(Y, logits=2 * LOG_ODDS),
        library.bernoulli(Y, logits=LOG_ODDS),
        cluster=[str(k // 20) for k in range(N)],  # as the file has them: the order of the clusters is that of the sums
        level=0.9,
    )
    assert library.Comparison.from_dict(json.loads(said.out)) == clustered


@pytest.mark.parametrize(("option", "column"), [("--cluster", "day"), ("--sample-weight", "w")])
def test_compare_refuses_rows_of_other_clusters_or_weights(
    option: str, column: str, tmp_path: Path, safecal: Safecal
) -> None:
    columns = {"y": np.zeros(N, dtype=int), "p": P / 100, "day": np.arange(N) // 20, "w": 1 + np.arange(N) % 7}
    pl.DataFrame(columns).write_csv(tmp_path / "a.csv")
    pl.DataFrame(columns).reverse().write_csv(tmp_path / "b.csv")  # nothing happened: outcomes agree in any order
    words = ["compare", tmp_path / "a.csv", tmp_path / "b.csv", "--y", "y", "--prob", "p"]
    said = safecal(*words, option, column)
    assert said.status == 2
    assert f"must have the same `{column}` as" in said.err
    assert "same rows in the same order" in said.err


def test_the_command_that_evaluate_offers_fixes_it(
    rows: Path, tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    *_, what, last = safecal("evaluate", "rows.csv", "--prob", "p").out.splitlines()
    offered = "safecal recalibrate rows.csv --y y --prob p --save calibrator.json"
    assert (what, last) == ("what fixes it:", offered)  # alone on its line, to be copied
    assert safecal(*offered.split()[1:], "--out", "fixed.csv").status == 0

    pl.read_csv("fixed.csv").drop("p").write_csv("alone.csv")  # what it wrote is found by its name
    said = safecal("evaluate", "alone.csv", "--gate")
    assert said.status == 0
    assert "what fixes it" not in said.out
    both = safecal("evaluate", "fixed.csv")  # and nobody is told of the old predictions for the new ones
    assert "'p', 'calibrated' could be" in both.err


def test_evaluate_offers_no_command_that_would_fail(
    rows: Path, safecal: Safecal, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv(rows)
    certain = table.with_columns(p=pl.when(pl.int_range(pl.len()) < 1).then(1.0 - pl.col("y")).otherwise("p"))
    certain.write_csv(rows)
    said = safecal("evaluate", rows, "--prob", "p")
    assert "UNSAFE" in said.out
    assert "what fixes it" not in said.out
    pl.DataFrame({"x": LOG_ODDS, "mean": 0.0 * LOG_ODDS, "std": 0.5}).write_csv(rows)
    said = safecal("evaluate", rows, "--x", "x")
    assert "UNSAFE" in said.out
    assert "what fixes it:" not in said.out
    *_, what, imported, read, fitted = said.out.splitlines()  # no command: lines of Python, which run
    assert what == "what fixes it, in Python:"
    exec(f"{imported}\n{read}\n{fitted}", {})
    assert "safecal recalibration: 2000 rows, forecasts of a number" in capsys.readouterr().out


def test_compare_names_files_and_columns(rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    other = tmp_path / "other.csv"
    pl.read_csv(rows).with_columns(y=1 - pl.col("y")).write_csv(other)
    said = safecal("compare", rows, other, "--y", "y", "--prob", "p").err
    got = f"got {1 - Y[0]:d} where `{rows}` has {Y[0]:d} at row 0, counting from 0 ({N} of {N} rows)."
    assert f"safecal: `{other}` must have the same `y` as `{rows}`; {got}\n" in said
    assert "`a`" not in said


def test_compare_writes_a_page_and_a_picture(rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    page, picture = tmp_path / "compared.html", tmp_path / "compared.svg"
    words = [rows, rows, "--logits", "z", "--logits-b", "honest", "--cluster", "day"]
    said = safecal("compare", *words, "--report", page, "--plot", picture)
    assert said.status == 0
    assert said.out.endswith(f"report: {page}\npicture: {picture}\n")
    text = page.read_text(encoding="utf-8")
    assert "Side by side" in text
    assert "100 clusters" in text
    assert "<svg" in picture.read_text(encoding="utf-8")
    assert json.loads(safecal("compare", *words, "--json", "--report", page).out)["n"] == N


def test_compare_refuses_a_page_that_is_an_input(rows: Path, safecal: Safecal) -> None:
    said = safecal("compare", rows, rows, "--prob", "p", "--report", rows)
    assert said.status == 2
    assert "must not be the same file as `a`" in said.err


def test_compare_refuses_other_rows(rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    fewer = tmp_path / "fewer.csv"
    pl.read_csv(rows).head(99).write_csv(fewer)
    said = safecal("compare", rows, fewer, "--prob", "p")
    assert said.status == 2
    assert "as many rows" in said.err
    other = tmp_path / "other.csv"
    pl.read_csv(rows).with_columns(y=1 - pl.col("y")).write_csv(other)
    said = safecal("compare", rows, other, "--prob", "p")
    assert said.status == 2
    assert "same" in said.err


@pytest.mark.parametrize(("method", "kind"), [("safe", library.SafeTemperature), ("likelihood", library.Temperature)])
@pytest.mark.parametrize(("option", "form"), [("--prob", {"y_prob": P}), ("--logits", {"logits": 2 * LOG_ODDS})])
def test_recalibrate_fits_shows_saves_and_applies(
    method: str, kind: type, option: str, form: dict[str, Any], rows: Path, tmp_path: Path, safecal: Safecal
) -> None:
    column = "p" if option == "--prob" else "z"
    saved, out, again = tmp_path / "c.json", tmp_path / "out.csv", tmp_path / "again.parquet"
    words = [rows, option, column]
    said = safecal("recalibrate", *words, "--method", method, "--save", saved, "--out", out)
    assert said.status == 0, said.err
    assert "before" in said.out
    assert "UNSAFE" in said.out
    calibrator = kind().fit(Y, **form)
    assert repr(calibrator) in said.out
    written = pl.read_csv(out)
    assert written.columns == ["y", "p", "z", "honest", "site", "day", "calibrated"]
    assert np.allclose(written["calibrated"], calibrator.apply(**form), rtol=1e-12, atol=0)
    said = safecal("recalibrate", *words, "--apply", saved, "--out", again)
    assert said.status == 0, said.err
    assert np.allclose(pl.read_parquet(again)["calibrated"], calibrator.apply(**form), rtol=1e-12, atol=0)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["0", "1", "2"], ["no", "yes"]])
def test_a_saved_map_finds_each_class_by_its_name(
    names: list[str], tmp_path: Path, safecal: Safecal, rng: np.random.Generator
) -> None:
    z = rng.normal(0, 2, (N, len(names)))
    p = special.softmax(z, axis=1)
    y = (z + [1.5, *[0.0] * (len(names) - 1)] + rng.gumbel(size=z.shape)).argmax(axis=1)  # the first is said too seldom
    frame = pl.DataFrame({"y": [names[k] for k in y], **{f"p_{name}": p[:, k] for k, name in enumerate(names)}})
    frame.write_csv(tmp_path / "rows.csv")
    frame.select("y", *[f"p_{name}" for name in reversed(names)]).write_csv(tmp_path / "turned.csv")
    frame.rename({f"p_{name}": f"x{chr(97 + k) * 3}" for k, name in enumerate(names)}).write_csv(tmp_path / "other.csv")
    saved, out, again = tmp_path / "c.json", tmp_path / "out.csv", tmp_path / "again.csv"
    words = ["--prob", "p_*", "--method", "affine", "--save", saved, "--out", out]
    said = safecal("recalibrate", tmp_path / "rows.csv", "--y", "y", *words)
    assert said.status == 0, said.err
    said = safecal("recalibrate", tmp_path / "turned.csv", "--prob", "p_*", "--apply", saved, "--out", again)
    assert said.status == 0, said.err
    columns = [f"calibrated_p_{name}" for name in names]
    assert pl.read_csv(again).columns[-len(names) :] == columns[::-1]
    assert np.array_equal(pl.read_csv(again).select(columns), pl.read_csv(out).select(columns))
    words = ["recalibrate", tmp_path / "other.csv", "--prob", "x*", "--apply", saved, "--out", again]
    said = safecal(*words)
    assert said.status == 2
    labels = [word for name in names for word in ("--label", name)]
    assert " ".join(labels) in said.err
    assert safecal(*words, *labels).status == 0
    written = pl.read_csv(again)
    for k, column in enumerate(columns):
        assert np.array_equal(written[f"calibrated_x{chr(97 + k) * 3}"], pl.read_csv(out)[column])


@pytest.mark.parametrize(
    ("moving", "classes"), [(["--verbalised"], 1), (["--clip", "0.02"], 1), (["--clip", "0.02"], 2)]
)
def test_what_is_written_was_moved_as_for_the_fit(
    moving: list[str], classes: int, tmp_path: Path, safecal: Safecal
) -> None:
    said_p = np.round(P, 1)
    frame = {"y": Y, "p": said_p} if classes == 1 else {"y": Y, "p_0": 1 - said_p, "p_1": said_p}
    pl.DataFrame(frame).write_csv(tmp_path / "rows.csv")
    names = ["--prob", "p"] if classes == 1 else ["--prob", "p_0", "--prob", "p_1"]
    out, again, saved = tmp_path / "out.csv", tmp_path / "again.csv", tmp_path / "c.json"
    words = ["recalibrate", tmp_path / "rows.csv", "--method", "temperature", *names]
    assert safecal(*words, *moving, "--save", saved, "--out", out).status == 0
    column = "calibrated" if classes == 1 else "calibrated_p_1"
    written = pl.read_csv(out)[column].to_numpy()
    assert written.min() > 0.005
    assert written.max() < 0.995
    said = safecal(*words, *moving, "--apply", saved, "--out", again)
    assert not said.err
    assert np.array_equal(pl.read_csv(again)[column].to_numpy(), written)
    certain = int(((said_p == 0) | (said_p == 1)).sum())
    said = safecal(*words, "--apply", saved, "--out", again)
    assert f"{certain} of {N} rows say exactly 0 or 1" in said.err
    assert "must be at most 0.02" in safecal(*words, "--clip", "0.3", "--apply", saved, "--out", again).err


@pytest.mark.parametrize("method", ["auto", "affine"])
@pytest.mark.parametrize("plain", [False, True])
def test_recalibrate_tries_maps(method: str, plain: bool, rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    saved, out = tmp_path / "c.json", tmp_path / "out.csv"
    words = ["--logits", "z", "--method", method, "--save", saved, "--out", out, *["--plain"] * plain]
    said = safecal("recalibrate", rows, *words)
    assert said.status == 0, said.err
    want = library.recalibrate(Y, logits=2 * LOG_ODDS, method=method, safe=not plain)
    assert repr(want) in said.out
    assert all(len(line) <= 80 for line in said.out.splitlines() if str(tmp_path) not in line)
    assert library.maps.from_dict(json.loads(saved.read_text())).to_dict() == want.map.to_dict()
    assert np.allclose(pl.read_csv(out)["calibrated"], want.apply(logits=2 * LOG_ODDS), rtol=1e-12, atol=0)


def test_recalibrate_writes_csv_without_polars(
    rows: Path, tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["recalibrate", rows, "--prob", "p", "--method", "safe", "--out"]
    assert safecal(*words, tmp_path / "with.csv").status == 0
    monkeypatch.setitem(sys.modules, "polars", None)
    said = safecal(*words, tmp_path / "without.csv")
    assert said.status == 0, said.err
    one, other = (list(csv.reader((tmp_path / f"{name}.csv").read_text().splitlines())) for name in ("with", "without"))
    assert [row[:-1] for row in one] == [row[:-1] for row in other]
    assert [float(row[-1]) for row in one[1:]] == [float(row[-1]) for row in other[1:]]
    (tmp_path / "odd.csv").write_text(rows.read_text().replace("north", "=1+1").replace("site", "-site"))
    words[1] = tmp_path / "odd.csv"
    assert safecal(*words, tmp_path / "harmless.csv", "--spreadsheet-safe").status == 0
    text = (tmp_path / "harmless.csv").read_text()
    assert "'=1+1" in text
    assert "'-site" in text
    assert ",'-" not in text.replace("'-site", "")
    said = safecal(*words, tmp_path / "without.parquet")
    assert said.status == 2
    assert "rows are written with Polars" in said.err


def test_recalibrate_by_group(rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    saved, out = tmp_path / "c.json", tmp_path / "out.jsonl"
    said = safecal(
        "recalibrate", rows, "--prob", "p", "--by", "site", "--method", "safe", "--save", saved, "--out", out
    )
    assert said.status == 0, said.err
    assert "in 2 groups" in said.out
    want = library.SafeTemperature().fit(Y, P, by=SITE)
    assert np.allclose(pl.read_ndjson(out)["calibrated"], want.apply(P, by=SITE), rtol=1e-12, atol=0)


def test_recalibrate_by_several_columns_in_any_order(rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    frame = pl.read_csv(rows).with_columns(
        half=pl.when(pl.col("day") < 50).then(pl.lit("south")).otherwise(pl.lit("north"))
    )
    frame.write_csv(rows)  # the names of sites are those of halves: by place, they could be taken for each other
    saved, out, again = tmp_path / "c.json", tmp_path / "out.csv", tmp_path / "again.csv"
    words = ["recalibrate", rows, "--prob", "p"]
    fit = ["--by", "site", "--by", "half", "--method", "affine", "--save", saved, "--out", out]
    assert safecal(*words, *fit).status == 0
    said = safecal(*words, "--by", "half", "--by", "site", "--apply", saved, "--out", again)
    assert said.status == 0, said.err
    assert np.array_equal(pl.read_csv(again)["calibrated"], pl.read_csv(out)["calibrated"])


def test_recalibrate_rows_that_depend_on_each_other(rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    saved = tmp_path / "c.json"
    day = pl.read_csv(rows)["day"].to_numpy()
    said = safecal(
        "recalibrate", rows, "--prob", "p", "--cluster", "day", "--alpha", "0.3", "--method", "safe", "--save", saved
    )
    assert said.status == 0, said.err
    want = library.SafeTemperature(0.3).fit(Y, P, cluster=day)
    assert want.temperature_ > library.SafeTemperature(0.3).fit(Y, P).temperature_
    assert repr(want) in said.out


@pytest.mark.proof
def test_recalibrate_many_classes(tmp_path: Path, safecal: Safecal, rng: np.random.Generator) -> None:
    logits = rng.normal(0, 2, (N, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=row) for row in p])
    np.savez(tmp_path / "rows.npz", y=y, logits=3 * logits)
    out = tmp_path / "out.arrow"
    said = safecal("recalibrate", tmp_path / "rows.npz", "--out", out, "--plot", tmp_path / "picture.png")
    assert said.status == 0, said.err
    written = pl.read_ipc(out)
    assert written.columns[-3:] == ["calibrated_0", "calibrated_1", "calibrated_2"]
    assert np.allclose(written.select(pl.sum_horizontal(written.columns[-3:])).to_series(), 1.0)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--apply", "none.json", "--out", "x.csv"], "none.json cannot be read"),
        (["--apply", "c.json"], "say where with `--out FILE`"),
        (["--out", "x.txt"], "`--out` must end in .csv"),
        (["--out", "x.csv", "--drop-missing"], "`--out` writes every row"),
        (["--alpha", "2"], "alpha"),
        (["--method", "safe", "--plain"], "`--plain` belongs to `--method auto`"),
        (["--method", "vector"], "Vector is for three classes or more"),
    ],
)
def test_recalibrate_refuses(words: list[str], message: str, rows: Path, safecal: Safecal) -> None:
    said = safecal("recalibrate", rows, "--prob", "p", *words)
    assert said.status == 2
    assert message in said.err


def test_recalibrate_refuses_what_is_no_calibrator(rows: Path, tmp_path: Path, safecal: Safecal) -> None:
    for content, message in (("{}", "not a calibrator that safecal wrote"), ("{", "must be JSON; it is not")):
        (tmp_path / "c.json").write_text(content)
        words = ["--apply", tmp_path / "c.json", "--out", tmp_path / "x.csv"]
        said = safecal("recalibrate", rows, "--prob", "p", *words)
        assert (said.status, message in said.err) == (2, True)
        assert not (tmp_path / "x.csv").exists()
    pl.read_csv(rows).with_columns(calibrated=0.5).write_csv(tmp_path / "twice.csv")
    said = safecal("recalibrate", tmp_path / "twice.csv", "--prob", "p", "--out", tmp_path / "x.csv")
    assert "already has a column 'calibrated'" in said.err


@pytest.mark.parametrize("beta", [-1, 0, "1", None, 5e-324, 1e400])
def test_recalibrate_applies_no_temperature_that_turns_predictions_round(
    beta: Any, rows: Path, tmp_path: Path, safecal: Safecal
) -> None:
    words = ["--method", "safe", "--save", tmp_path / "c.json"]
    assert safecal("recalibrate", rows, "--prob", "p", *words).status == 0
    document = json.loads((tmp_path / "c.json").read_text())
    document["fit"]["beta"] = beta
    (tmp_path / "c.json").write_text(json.dumps(document))
    said = safecal("recalibrate", rows, "--prob", "p", "--apply", tmp_path / "c.json", "--out", tmp_path / "x.csv")
    assert (said.status, said.out) == (2, "")
    assert f"of {tmp_path / 'c.json'} must be" in said.err or "which has no Infinity" in said.err
    assert not (tmp_path / "x.csv").exists()


def test_the_demo_writes_a_report_and_says_where(tmp_path: Path, safecal: Safecal) -> None:
    said = safecal("demo", "--report", tmp_path / "demo.html")
    assert said.status == 0, said.err
    assert said.out.index("\nSAFE: ") < said.out.index("\nUNSAFE: ") < said.out.index(str(tmp_path / "demo.html"))
    assert "</html>" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    first, second = (float(value) for value in re.findall(r"^ECD +([+-]\d\.\d+)", said.out, re.MULTILINE))
    assert abs(first) < 0.02
    assert second > 0.05
    assert max(map(len, said.out.partition("\nThe report of")[0].splitlines())) <= 80


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_whatever_stops_it_outputs_are_whole_or_absent(how: signal.Signals, rows: Path, tmp_path: Path) -> None:
    """The moments are spread over the whole life of the process; the last is left to end."""
    folder = tmp_path / "out"
    folder.mkdir()
    names = ("out.csv", "c.json")
    words = ["recalibrate", rows, "--prob", "p", "--out", folder / "out.csv", "--save", folder / "c.json"]
    command = [sys.executable, "-m", "safecal", *map(str, words)]
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole = {name: (folder / name).read_bytes() for name in names}
    life = time.monotonic() - began
    chance = random.Random(1)
    for _ in range(6):
        for name in names:
            (folder / name).unlink(missing_ok=True)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(chance.uniform(0.3, 1.05) * life)
        process.send_signal(how)
        process.communicate()
        for name in names:
            if (folder / name).exists():
                assert (folder / name).read_bytes() == whole[name]
        if how != signal.SIGKILL:  # a killed process may leave a hidden temporary file, never a broken output
            assert {p.name for p in folder.iterdir()} <= set(names)


def test_a_report_that_cannot_be_finished_leaves_the_old_one(
    rows: Path, tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(page))

    monkeypatch.setattr("os.fsync", full)
    said = safecal("evaluate", rows, "--prob", "p", "--report", page)
    assert said.status == 2
    assert "No space left on device" in said.err
    assert page.read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} == {"rows.csv", "page.html"}
