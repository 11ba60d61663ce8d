"""``safecal evaluate``: every format and option, and the same numbers as the library."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import safecal as library
from safecal import Evaluation

pl = pytest.importorskip("polars", minversion="1.38")

Safecal = Callable[..., Any]

RNG = np.random.default_rng(5)
N = 4000
LOG_ODDS = RNG.normal(0, 2, N)
P = 1 / (1 + np.exp(-LOG_ODDS))
Y = (RNG.random(N) < P).astype(np.int64)
SITE = RNG.choice(["Oslo", "Rome", "Ürümqi"], N)
DAY = RNG.integers(0, 40, N)
WEIGHT = RNG.random(N) + 0.5
FRAME = pl.DataFrame({"y": Y, "p": P, "site": SITE, "day": DAY, "weight": WEIGHT, "logit_": 2 * LOG_ODDS})


def _write(folder: Path, kind: str, frame: Any = FRAME) -> Path:
    path = folder / f"rows.{kind}"
    if kind == "npz":
        np.savez(path, **{c: frame[c].to_numpy() for c in frame.columns if c != "site"})
        return path
    write = {
        "csv": frame.write_csv,
        "tsv": lambda p: frame.write_csv(p, separator="\t"),
        "parquet": frame.write_parquet,
        "jsonl": frame.write_ndjson,
        "arrow": frame.write_ipc,
    }
    write[kind](path)
    return path


WHOLE = library.evaluate(Y, P)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl", "arrow", "npz"])
def test_every_format_gives_the_numbers_of_the_library(kind: str, tmp_path: Path, safecal: Safecal) -> None:
    said = safecal("evaluate", _write(tmp_path, kind), "--json")
    assert (said.status, said.err) == (0, "")
    document = json.loads(said.out)
    jsonschema.Draft202012Validator(Evaluation.json_schema()).validate(document)
    assert Evaluation.from_dict(document) == WHOLE


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "arrow", "npz"])
def test_standard_input_tells_its_format_by_its_first_bytes(
    kind: str, tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = _write(tmp_path, kind).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    words = ["--format", "jsonl"] if kind == "jsonl" else []
    said = safecal("evaluate", "-", "--json", *words)
    assert Evaluation.from_dict(json.loads(said.out)) == WHOLE


def test_the_text_is_the_verdict_the_numbers_and_the_tables(tmp_path: Path, safecal: Safecal) -> None:
    said = safecal("evaluate", _write(tmp_path, "csv"), "--by", "site")
    lines = said.out.splitlines()
    assert lines[2].startswith("SAFE: over-confidence beyond 0.1 nat is ruled out")
    assert max(map(len, lines)) <= 80
    groups = library.evaluate(Y, P, by=SITE).groups
    assert groups is not None
    worst = groups.worst_first().labels
    groups = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in worst]
    assert groups == list(worst)
    assert "Interval of ECD: skewness-corrected t" in said.out


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--bins", "5"], {"bins": 5}),
        (["--bins", "7", "--strategy", "quantile"], {"bins": 7, "strategy": "quantile"}),
        (["--bin-on", "confidence"], {"bin_on": "confidence"}),
        (["--by", "site"], {"by": {"site": SITE}}),
        (["--by", "site", "--by", "day"], {"by": {"site": SITE, "day": DAY}}),
        (["--cluster", "day"], {"cluster": DAY}),
        (["--sample-weight", "weight"], {"sample_weight": WEIGHT}),
        (["--threshold", "0.01"], {"threshold": 0.01}),
        (["--max-temperature", "1.01"], {"max_temperature": 1.01}),
        (["--level", "0.99"], {"level": 0.99}),
        (["--clip", "0.02"], {"clip": 0.02}),
    ],
)
def test_every_option_is_that_of_the_library(
    words: list[str], options: dict[str, Any], tmp_path: Path, safecal: Safecal
) -> None:
    said = safecal("evaluate", _write(tmp_path, "parquet"), "--json", *words)
    assert said.status == 0, said.err
    assert Evaluation.from_dict(json.loads(said.out)) == library.evaluate(Y, P, **options)


def test_log_odds(tmp_path: Path, safecal: Safecal) -> None:
    said = safecal("evaluate", _write(tmp_path, "parquet"), "--logits", "logit_", "--json")
    assert Evaluation.from_dict(json.loads(said.out)) == library.evaluate(Y, logits=2 * LOG_ODDS)


@pytest.mark.parametrize(("scale", "status"), [(1.0, 0), (3.0, 3)])
def test_the_gate(scale: float, status: int, tmp_path: Path, safecal: Safecal) -> None:
    frame = pl.DataFrame({"y": Y, "z": scale * LOG_ODDS})
    path = _write(tmp_path, "csv", frame)
    assert safecal("evaluate", path, "--logits", "z", "--gate").status == status
    assert safecal("evaluate", path, "--logits", "z").status == 0
    few = _write(tmp_path, "csv", frame.head(20))
    assert safecal("evaluate", few, "--logits", "z", "--gate").status == 4


def test_the_gate_looks_at_groups_and_ranges(tmp_path: Path, safecal: Safecal) -> None:
    few = np.arange(N) % 20 == 0
    z = np.where(few, 3.0, 0.9) * LOG_ODDS
    path = tmp_path / "rows.csv"
    pl.DataFrame({"y": Y, "z": z, "site": np.where(few, "few", "most")}).write_csv(path)
    said = safecal("evaluate", path, "--logits", "z", "--gate")
    assert said.status == 4  # a range is suspected
    assert "?  suspected: the estimate is beyond the limit, but its lower bound, which\n" in said.out
    said = safecal("evaluate", path, "--logits", "z", "--by", "site", "--gate")
    assert said.status == 3
    assert "UNSAFE" in said.out
    assert "in site few it is over-confident (200 rows" in " ".join(said.out.split())
    assert said.out.split("\n\n")[2].splitlines()[2].startswith("site few")
    assert max(map(len, said.out.split("\n\n")[2].splitlines())) <= 80
    average = safecal("evaluate", path, "--logits", "z", "--by", "site", "--gate", "--rule", "average")
    assert average.status == 0
    assert "Only averages were judged" in " ".join(average.out.split())


def test_the_gate_looks_at_the_temperature_of_groups(tmp_path: Path, safecal: Safecal) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 0.4, 24_000)
    y = (rng.random(24_000) < 1 / (1 + np.exp(-z))).astype(int)
    few = np.arange(24_000) % 6 == 0
    site = np.where(np.arange(24_000) < 12, "tiny", np.where(few, "vague", "most"))
    path = tmp_path / "rows.csv"
    pl.DataFrame({"y": y, "z": np.where(few, 2.0, 0.8) * z, "site": site}).write_csv(path)
    wide = ("evaluate", path, "--logits", "z", "--local-threshold", "4", "--gate")
    assert safecal(*wide).status == 0
    said = safecal(*wide, "--by", "site")
    text = " ".join(said.out.split())
    assert said.status == 3
    assert "in site vague its logits are too large (3998 rows; at least 1." in text
    assert "1 group is too small to judge: site tiny (12 rows)." in text
    hotter = safecal(*wide, "--by", "site", "--max-temperature", "3")
    assert hotter.status == 0


@pytest.mark.proof
def test_a_recalibrated_model_that_is_wrong_in_places_does_not_pass(
    tmp_path: Path, safecal: Safecal, shared_data: Path
) -> None:
    tweets, better, page = shared_data / "toxicity" / "bilstm_tweets.csv", tmp_path / "better.csv", tmp_path / "r.html"
    words = ["recalibrate", tweets, "--y", "y", "--logits", "logit", "--out", better]
    assert safecal(*words).status == 0
    mended = safecal("evaluate", better, "--y", "y", "--prob", "calibrated", "--gate")
    assert mended.status == 0  # by the right map
    assert safecal(*words, "--method", "safe").status == 0
    said = safecal("evaluate", better, "--y", "y", "--prob", "calibrated", "--gate", "--report", page)
    assert said.status == 3
    assert "where it says 7.6 to 14 %, it happens in 46 % of the cases (1641 rows" in " ".join(said.out.split())
    assert "\nsays 7.6 to 14 %   1641   10.8 %     46 %    +0.656      0.2\n" in said.out
    html = page.read_text(encoding="utf-8")
    assert len(html.encode()) < 150_000
    assert "can be trusted" not in html
    assert '<body class="unsafe">' in html


CLASSES = ["cat", "dog", "eel"]
LOGITS = RNG.normal(0, 2, (N, 3))
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
KIND = np.array([RNG.choice(3, p=row) for row in PROBS])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("prefix", ["p_", ""])
def test_one_column_a_class_with_words_as_labels(kind: str, prefix: str, tmp_path: Path, safecal: Safecal) -> None:
    names = [f"{prefix}{c}" for c in CLASSES]
    frame = pl.DataFrame(dict(zip(names, PROBS.T, strict=True)) | {"kind": np.array(CLASSES)[KIND]})
    words = [word for name in names for word in ("--prob", name)]
    said = safecal("evaluate", _write(tmp_path, kind, frame), "--y", "kind", *words, "--json")
    assert said.status == 0, said.err
    assert Evaluation.from_dict(json.loads(said.out)) == library.evaluate(KIND, PROBS)
    if prefix:  # what their names have in common is enough, and the hint says so
        hint = safecal("evaluate", tmp_path / f"rows.{kind}").err
        assert "--prob 'p_*'" in hint
        assert safecal("evaluate", tmp_path / f"rows.{kind}", "--y", "kind", "--prob", "p_*", "--json").out == said.out


def test_keys_that_are_no_text(tmp_path: Path, safecal: Safecal) -> None:
    keys = [bytes([240 + k % 3]) * 16 if k % 3 else b"plain" for k in range(N)]  # as UUIDs of 16 bytes
    FRAME.with_columns(pl.Series("key", keys)).write_parquet(tmp_path / "rows.parquet")
    words = ["evaluate", tmp_path / "rows.parquet", "--y", "y", "--prob", "p"]
    groups = Evaluation.from_dict(json.loads(safecal(*words, "--by", "key", "--json").out)).groups
    assert set(groups) == {"plain", "f1" * 16, "f2" * 16}
    assert safecal(*words, "--features", "all").status == 0


def test_what_was_recalibrated_is_found_beside_what_it_was_made_of(tmp_path: Path, safecal: Safecal) -> None:
    frame = pl.DataFrame({f"p_{c}": PROBS[:, k] for k, c in enumerate(CLASSES)} | {"label": np.array(CLASSES)[KIND]})
    better = tmp_path / "better.csv"
    assert safecal("recalibrate", _write(tmp_path, "csv", frame), "--prob", "p_*", "--out", better).status == 0
    hint = safecal("evaluate", better).err.rpartition("Hint: ")[2]
    assert hint == f"safecal evaluate {better} --y label --prob 'calibrated_*'\n"
    assert safecal("evaluate", better, "--y", "label", "--prob", "calibrated_*").status == 0


def test_classes_named_one_by_one(tmp_path: Path, safecal: Safecal) -> None:
    frame = pl.DataFrame({"a": PROBS[:, 0], "b": PROBS[:, 1], "c": PROBS[:, 2], "kind": np.array(CLASSES)[KIND]})
    path = _write(tmp_path, "csv", frame)
    columns = ["--prob", "a", "--prob", "b", "--prob", "c"]
    assert "with one `--label` for each" in safecal("evaluate", path, "--y", "kind", *columns).err
    named = [word for name in CLASSES for word in ("--label", name)]
    said = safecal("evaluate", path, "--y", "kind", *columns, *named, "--json")
    assert Evaluation.from_dict(json.loads(said.out)) == library.evaluate(KIND, PROBS)


def test_a_matrix_in_one_column(tmp_path: Path, safecal: Safecal) -> None:
    frame = pl.DataFrame({"y": KIND, "probs": PROBS.tolist()})
    want = library.evaluate(KIND, PROBS)
    for kind in ("parquet", "jsonl"):
        said = safecal("evaluate", _write(tmp_path, kind, frame), "--json")
        assert Evaluation.from_dict(json.loads(said.out)) == want, said.err
    np.savez(tmp_path / "m.npz", y=KIND, probs=PROBS)
    said = safecal("evaluate", tmp_path / "m.npz", "--json")
    assert Evaluation.from_dict(json.loads(said.out)) == want


@pytest.mark.parametrize(
    ("outcome", "label"),
    [
        (np.where(Y == 1, "yes", "no"), "yes"),
        (np.where(Y == 1, 2, 1), "2"),
        (Y == 1, "true"),
        (pl.Series(np.where(Y == 1, "a", "b")).cast(pl.Categorical), "a"),
    ],
)
def test_the_positive_label(outcome: Any, label: str, tmp_path: Path, safecal: Safecal) -> None:
    path = _write(tmp_path, "parquet", pl.DataFrame({"y": outcome, "p": P}))
    said = safecal("evaluate", path, "--pos-label", label, "--json")
    assert said.status == 0, said.err
    assert Evaluation.from_dict(json.loads(said.out)) == WHOLE


def test_rows_with_missing_values_are_left_out_when_asked_and_counted(tmp_path: Path, safecal: Safecal) -> None:
    holes = [None if k % 100 == 7 else float(p) for k, p in enumerate(P)]
    path = _write(tmp_path, "csv", pl.DataFrame({"y": Y, "p": holes}))
    said = safecal("evaluate", path)
    assert said.status == 2
    assert "`p` must not hold missing values" in said.err
    assert "row 7, counting from 0 (40 of 4000 rows)" in said.err
    assert "--drop-missing" in said.err
    said = safecal("evaluate", path, "--drop-missing", "--json", "--report", tmp_path / "page.html")
    assert said.err == f"safecal: {LEFT_OUT}\n"
    keep = np.arange(N) % 100 != 7
    _same_but_for_the_note(Evaluation.from_dict(json.loads(said.out)), library.evaluate(Y[keep], P[keep]))
    assert f"Note: {LEFT_OUT}" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert LEFT_OUT in " ".join(safecal("evaluate", path, "--drop-missing").out.split())


@pytest.mark.parametrize("command", ["compare", "recalibrate", "plan"])
def test_other_commands_count_them_too(command: str, tmp_path: Path, safecal: Safecal) -> None:
    holes = [None if k % 100 == 7 else float(p) for k, p in enumerate(P)]
    path = _write(tmp_path, "csv", pl.DataFrame({"y": Y, "p": holes}))
    said = safecal(command, *([path] * (2 if command == "compare" else 1)), "--drop-missing")
    assert f"safecal: {LEFT_OUT}\n" in said.err


LEFT_OUT = "left out 40 of 4000 rows with missing values, the first at row 7."


def _same_but_for_the_note(evaluation: Evaluation, other: Evaluation) -> None:
    assert evaluation.notes == (LEFT_OUT,)
    assert replace(evaluation, tally=replace(evaluation.tally, notes=())) == other


def test_rows_without_a_cluster_are_left_out_when_asked(tmp_path: Path, safecal: Safecal) -> None:
    holes = [None if k % 100 == 7 else int(day) for k, day in enumerate(DAY)]
    path = _write(tmp_path, "parquet", pl.DataFrame({"y": Y, "p": P, "day": holes}))
    said = safecal("evaluate", path, "--cluster", "day", "--drop-missing", "--json")
    assert said.err == f"safecal: {LEFT_OUT}\n"
    keep = np.arange(N) % 100 != 7
    wanted = library.evaluate(Y[keep], P[keep], cluster=DAY[keep])
    _same_but_for_the_note(Evaluation.from_dict(json.loads(said.out)), wanted)


def _approx(evaluation: Evaluation, whole: Evaluation) -> None:
    assert evaluation.n == whole.n
    assert evaluation.bins is not None
    assert whole.bins is not None
    assert [s.n for s in evaluation.bins.summaries] == [s.n for s in whole.bins.summaries]
    for name in ("ecd", "nll", "ece", "esce", "brier", "accuracy", "bias"):
        assert getattr(evaluation, name) == pytest.approx(getattr(whole, name), rel=1e-9), name
    assert evaluation.histogram.median == pytest.approx(whole.histogram.median)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_beyond_max_rows_sums_give_the_same_answers(
    kind: str, tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safecal.inputs.sources.BATCH", 1000)
    path = _write(tmp_path, kind)
    evaluation = Evaluation.from_dict(json.loads(safecal("evaluate", path, "--max-rows", 1500, "--json").out))
    _approx(evaluation, WHOLE)
    assert evaluation.verdict.decision == WHOLE.verdict.decision
    assert (evaluation.test.method, evaluation.test.reason) == (WHOLE.test.method, WHOLE.test.reason)
    assert evaluation.test.p_value == pytest.approx(WHOLE.test.p_value, rel=1e-6)
    for name in ("interval", "temperature"):
        a, b = getattr(evaluation, name), getattr(WHOLE, name)
        assert a.method == b.method
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-6)
    assert evaluation.reliability is not None
    assert WHOLE.reliability is not None
    assert evaluation.reliability.ece_quantile == pytest.approx(WHOLE.reliability.ece_quantile, rel=1e-9)


@pytest.mark.proof
def test_beyond_max_rows_groups_weights_and_clusters(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safecal.inputs.sources.BATCH", 1000)
    path = _write(tmp_path, "parquet")
    words = ["--by", "site", "--cluster", "day", "--sample-weight", "weight", "--json", "--max-rows", 1500]
    evaluation = Evaluation.from_dict(json.loads(safecal("evaluate", path, *words).out))
    whole = library.evaluate(Y, P, by={"site": SITE}, cluster=DAY, sample_weight=WEIGHT)
    _approx(evaluation, whole)
    assert evaluation.groups is not None
    assert whole.groups is not None
    assert {k: s.n for k, s in evaluation.groups.items()} == {k: s.n for k, s in whole.groups.items()}
    assert evaluation.test.method == whole.test.method == "cluster"
    assert evaluation.test.p_value == pytest.approx(whole.test.p_value, rel=1e-9)
    assert evaluation.interval.low == pytest.approx(whole.interval.low, rel=0.2)


def test_quantile_bins_beyond_max_rows_take_a_second_pass(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safecal.inputs.sources.BATCH", 1000)
    path = _write(tmp_path, "parquet")
    words = ["--strategy", "quantile", "--bins", 8, "--json", "--max-rows", 1500]
    evaluation = Evaluation.from_dict(json.loads(safecal("evaluate", path, *words).out))
    assert evaluation.bins is not None
    assert [s.n for s in evaluation.bins.summaries] == pytest.approx([500] * 8, abs=2)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    said = safecal("evaluate", "-", *words)
    assert said.status == 2
    assert "save the rows to a file first" in said.err


def test_many_groups_are_cut_with_a_word(tmp_path: Path, safecal: Safecal) -> None:
    path = _write(tmp_path, "csv", FRAME.with_columns(many=pl.int_range(N) % 57))
    said = safecal("evaluate", path, "--by", "many")
    assert "and 37 more groups: all of them are in `--json`." in said.out


def test_report_and_plot(tmp_path: Path, safecal: Safecal) -> None:
    pytest.importorskip("matplotlib")
    words = ["--report", tmp_path / "page.html", "--plot", tmp_path / "page.svg"]
    said = safecal("evaluate", _write(tmp_path, "csv"), *words, "--by", "site")
    assert said.status == 0, said.err
    assert f"report: {tmp_path / 'page.html'}" in said.out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert "Ürümqi" in page
    assert (tmp_path / "page.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.proof
@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_other_pictures(kind: str, start: bytes, tmp_path: Path, safecal: Safecal) -> None:
    pytest.importorskip("matplotlib")
    safecal("evaluate", _write(tmp_path, "csv"), "--plot", tmp_path / f"page.{kind}")
    assert (tmp_path / f"page.{kind}").read_bytes().startswith(start)


@pytest.mark.proof
def test_the_real_files(shared_data: Path, safecal: Safecal) -> None:
    def decision(*words: object) -> str:
        said = safecal("evaluate", *words, "--json")
        assert said.status == 0, said.err
        return str(json.loads(said.out)["verdict"]["decision"])

    assert decision(shared_data / "cifar/wideresnet-16-4-cifar-10.npz", "--prob", "predictions") == "UNSAFE"
    assert decision(shared_data / "cifar/densenet-bc-100-cifar-100.npz", "--prob", "predictions") == "UNSAFE"
    assert decision(shared_data / "toxicity/bilstm_tweets.csv", "--prob", "p") == "UNSAFE"
    cells = shared_data / "cells/segment_logistic.csv"
    columns = ["--prob", ".pred_poor", "--prob", ".pred_good"]
    assert decision(cells, "--y", "Class", "--prob", ".pred_poor", "--pos-label", "poor") == "UNDETERMINED"
    assert decision(cells, "--y", "Class", *columns) == "UNDETERMINED"
    bayes = shared_data / "cells/segment_naive_bayes.csv"
    assert decision(bayes, "--y", "Class", "--prob", ".pred_poor", "--pos-label", "poor") == "UNSAFE"
    ties = safecal("evaluate", shared_data / "football/nfl_games.csv", "--y", "prob1_outcome", "--prob", "prob1")
    assert ties.status == 2
    assert "got 0.5 at row 145, counting from 0 (7 of 1889 rows)" in ties.err


def _shell(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "safecal", *map(str, words)], text=True, **options)


@pytest.mark.proof
def test_in_a_shell_output_and_messages_go_their_own_ways(tmp_path: Path) -> None:
    path = _write(tmp_path, "csv")
    said = _shell("evaluate", path, "--gate", capture_output=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")  # no progress in a pipe
    said = _shell("evaluate", tmp_path / "nothing.csv", capture_output=True, check=False)
    assert (said.returncode, said.stdout) == (2, "")
    assert "Traceback" not in said.stderr


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from safecal.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print(sorted({'numpy', 'scipy', 'polars', 'matplotlib'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert said.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["", "evaluate", "compare", "recalibrate", "demo"])
def test_help_has_examples(command: str, safecal: Safecal) -> None:
    said = safecal(*command.split(), "--help")
    assert said.status == 0
    assert max(map(len, said.out.splitlines())) <= 120
    if command != "demo":
        assert "examples:" in said.out
        assert f"safecal {command}".strip() in said.out


def test_version(safecal: Safecal) -> None:
    assert safecal("--version").out == f"safecal {library.__version__}\n"
