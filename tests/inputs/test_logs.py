"""Logs of language models: what they say is read as it was meant, or refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import safecal
from safecal._checks.forecasts import Grid
from safecal.cli import main
from safecal.compat.lm_eval import process_results, read_samples, scored, temperature
from safecal.errors import FileError, LabelError, MergeError, MissingValueError, OptionError
from safecal.inputs.logs import SampleLogs
from safecal.inputs.questions import LengthScale
from safecal.inputs.text_files import log_kind

COLOURS = ["red", "green", "blue", "black", "white"]


def sample(number: int, values: list[float], right: Any, **more: Any) -> dict[str, Any]:
    """Return a line as lm_eval writes it."""
    asked = {f"gen_args_{k}": {"arg_0": "What?", "arg_1": f" {COLOURS[k]}"} for k in range(len(values))}
    doc = {"question": "What?", "answer": right, **more.pop("doc", {})}
    said = [[str(value), "False"] for value in values]
    return {"doc_id": number, "doc": doc, "target": str(right), "arguments": asked, "resps": [said],
            "filtered_resps": said, "filter": "none", "metrics": ["acc"], **more}  # fmt: skip


def written(folder: Path, rows: list[Any], name: str = "samples_quiz_2026-01-02T03-04-05.678.jsonl") -> str:
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def drawn(rng: np.random.Generator, n: int, times: float = 1.0) -> list[dict[str, Any]]:
    """Return questions of two to five choices, and logits so many times too large."""
    rows = []
    for number in range(n):
        size = int(rng.integers(2, 6))
        z = np.log(rng.dirichlet(np.ones(size)))
        right = int(rng.choice(size, p=np.exp(z)))
        values = (times * z - 20.0).tolist()
        acc = float(int(np.argmax(values)) == right)
        rows.append(sample(number, values, right, acc=acc, doc={"subject": "ab"[number % 2]}))
    return rows


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["evaluate", *words]) == 0
    return capsys.readouterr().out


def test_ragged_choices_are_those_that_each_question_has(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = drawn(rng, 300, 2.0)
    samples = read_samples(written(tmp_path, rows))
    excess = []
    for row in rows:
        z = np.array([float(pair[0]) for pair in row["filtered_resps"]])
        log_p = z - np.logaddexp.reduce(z)
        excess.append(np.exp(log_p) @ log_p - log_p[int(row["target"])])
    assert samples.predictions.ecd == pytest.approx(np.mean(excess), abs=1e-12)
    evaluation = samples.evaluate(by="subject")
    assert evaluation.n_certain == 0
    assert evaluation.accuracy == np.mean([row["acc"] for row in rows])
    assert evaluation.groups is not None
    assert evaluation.groups.keys == ("a", "b")
    low, high = evaluation.temperature.low, evaluation.temperature.high
    assert low < 2.0 < high


def test_questions_that_say_nothing_are_uninformative_whatever_their_number_of_choices(tmp_path: Path) -> None:
    rows = [sample(k, [-3.0] * (2 + k % 4), 0) for k in range(400)]
    verdict = read_samples(written(tmp_path, rows)).evaluate().verdict
    assert verdict.uninformative
    assert verdict.decision == "SAFE"


def test_a_choice_that_is_ruled_out_is_certain_and_one_that_is_not_there_is_not(tmp_path: Path) -> None:
    rows = [sample(0, [-1.0, -math.inf, -2.0], 0), sample(1, [-1.0, -2.0], 1)]
    assert read_samples(written(tmp_path, rows)).evaluate().n_certain == 1


def test_the_command_line_knows_logs_and_names_how_they_were_normalised(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, drawn(rng, 60))
    whole = read_samples(path).evaluate()
    page = tmp_path / "report.html"
    assert "normalise: none" in said(capsys, path, "--report", str(page))
    assert "normalise: none" in page.read_text(encoding="utf-8")
    assert "normalise: none" in whole._repr_html_()
    document = json.loads(said(capsys, path, "--json"))
    assert document["tally"]["notes"] == list(whole.notes)
    assert document["metrics"]["ecd"] == pytest.approx(whole.ecd, abs=1e-12)
    assert safecal.Evaluation.from_dict(document) == whole
    streamed = json.loads(said(capsys, path, "--json", "--max-rows", "0"))
    assert streamed["metrics"]["ecd"] == pytest.approx(whole.ecd, abs=1e-12)
    assert streamed["tally"]["room"] == pytest.approx(whole.tally.room, abs=1e-9)
    assert "normalise: bytes" in said(capsys, path, "--normalise", "bytes")


def test_every_task_has_a_row_and_names_of_fields_are_told(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [written(tmp_path, drawn(rng, 100), f"samples_{name}.jsonl") for name in ("art", "law")]
    text = said(capsys, *paths)
    assert "\nart " in text
    assert "\nlaw " in text
    assert "b / law" in said(capsys, *paths, "--by", "subject", "--by", "task")
    assert main(["evaluate", *paths, "--by", "subjekt"]) == 2
    assert "did you mean 'subject'?" in capsys.readouterr().err
    with pytest.raises(OptionError, match="did you mean 'subject'"):
        read_samples(paths).evaluate(by="subjekt")
    assert repr(read_samples(paths)) == "200 questions of art, law"


@pytest.mark.proof
def test_logs_of_one_model_compare_recalibrate_and_plan_as_tables_do(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, drawn(rng, 400, 3.0))
    saved = tmp_path / "map.json"
    assert main(["recalibrate", path, "--save", str(saved), "--method", "temperature"]) == 0
    assert saved.exists()
    page = tmp_path / "report.html"
    said(capsys, path, "--report", str(page), "--normalise", "characters")
    assert f"safecal recalibrate {path} --normalise characters" in page.read_text(encoding="utf-8")
    assert main(["compare", path, path]) == 0
    assert main(["plan", path]) == 0
    assert main(["recalibrate", path, "--out", str(tmp_path / "out.csv")]) == 2
    assert "rows of logs are not written" in capsys.readouterr().err
    assert main(["evaluate", path, "--y", "target"]) == 2
    assert "leave `--y` out" in capsys.readouterr().err


def test_lengths_are_those_of_the_choice_alone(tmp_path: Path) -> None:
    row = sample(0, [-6.0, -10.0], 0)
    row["arguments"] = {"gen_args_0": {"arg_0": "Q", "arg_1": " né"}, "gen_args_1": {"arg_0": "Q", "arg_1": " white"}}
    path = written(tmp_path, [row])

    def gap(**options: Any) -> float:
        return float(np.diff(read_samples(path, **options).predictions.values[0])[0])  # type: ignore[attr-defined]

    assert gap() == pytest.approx(-4.0)
    assert gap(normalise="characters") == pytest.approx(-2.0 + 3.0)
    assert gap(normalise="bytes") == pytest.approx(-2.0 + 2.0)
    assert gap(normalise="tokens", tokenizer=str.split) == pytest.approx(-4.0)
    with pytest.raises(FileError, match="needs the tokenizer"):
        gap(normalise="tokens")
    with pytest.raises(FileError, match="must be one of none"):
        gap(normalise="words")
    with pytest.raises(FileError, match="has no `arguments`"):
        read_samples(written(tmp_path, [row | {"arguments": None}]), normalise="bytes")


def test_targets_are_numbers_texts_or_what_a_metric_logged(tmp_path: Path) -> None:
    values = [-3.0, -1.0, -2.0]

    def right(row: dict[str, Any]) -> int:
        return int(read_samples(written(tmp_path, [row])).predictions.happened[0])  # type: ignore[attr-defined]

    assert right(sample(0, values, 2)) == 2
    assert right(sample(0, values, "blue")) == 2
    assert right(sample(0, values, " green")) == 1
    assert right(sample(0, values, "[1]")) == 1
    assert right(sample(0, values, "x", brier_score=[2, [0.1, 0.6, 0.3]])) == 2
    row = sample(0, values, 1)
    row["filtered_resps"] += [["-9.0", "False"]] * 3
    row["arguments"] |= {f"gen_args_{k}": {"arg_0": "", "arg_1": " x"} for k in (3, 4, 5)}
    assert right(row) == 1  # the second half is of the choices without the question


def test_digits_are_read_as_the_harness_graded_them(tmp_path: Path) -> None:
    def digits(number: int, acc: float | None) -> dict[str, Any]:
        row = sample(number, [-1.0, -2.0, -3.0], "1")
        row["arguments"] = {f"gen_args_{k}": {"arg_0": "Q", "arg_1": f" {k + 1}"} for k in range(3)}
        return row if acc is None else row | {"acc": acc}

    with pytest.raises(FileError, match="could be the numbers of choices or their texts"):
        read_samples(written(tmp_path, [digits(0, None)]))
    by_text = read_samples(written(tmp_path, [digits(0, None), digits(1, 1.0)])).predictions
    assert by_text.what_happened.tolist() == [0, 0]  # type: ignore[union-attr]
    by_number = read_samples(written(tmp_path, [digits(0, None), digits(1, 0.0)])).predictions
    assert by_number.what_happened.tolist() == [1, 1]  # type: ignore[union-attr]
    with pytest.raises(FileError, match="does not fit its `target`"):
        read_samples(written(tmp_path, [sample(0, [-1.0, -2.0], 1, acc=1.0)]))


def test_of_two_choices_in_the_question_the_grade_tells_the_right_one(tmp_path: Path) -> None:
    row = sample(0, [-1.0, -2.0], "went home", acc=0.0)
    row["arguments"] = {
        f"gen_args_{k}": {"arg_0": f"{who} left and", "arg_1": " went home"} for k, who in enumerate("AB")
    }
    assert read_samples(written(tmp_path, [row])).predictions.what_happened.tolist() == [1]  # type: ignore[union-attr]
    del row["acc"]
    with pytest.raises(FileError, match="stand in the question"):
        read_samples(written(tmp_path, [row]))


GOOD = sample(0, [-1.0, -2.0], 0)
HOSTILE: dict[str, tuple[list[Any], str]] = {
    "a line that was cut": ([GOOD, json.dumps(sample(1, [-1.0, -2.0], 0))[:60]], "line 2 is not JSON"),
    "a line that is no object": ([GOOD, "[1]"], "line 2 is not a JSON object"),
    "no likelihoods": ([GOOD, {"doc_id": 1, "doc": {}, "target": "0"}], "line 2: .* must have `filtered_resps`"),
    "a doc that is none": ([GOOD | {"doc": 3}], "must have `doc`"),
    "an empty list": ([GOOD | {"filtered_resps": []}], "must be a list"),
    "a likelihood that is a word": ([GOOD | {"filtered_resps": [["a", "b"], ["c", "d"]]}], "must be a number; got 'a'"),
    "the same question twice": ([GOOD, GOOD], "1 of 2 questions of quiz are there more than once in "),
    "generated text": ([GOOD | {"filtered_resps": ["So it is red."]}], "text that the model wrote"),
    "a document's likelihood": ([GOOD | {"filtered_resps": ["-1234.5"]}], "loglikelihood_rolling"),
    "one choice": ([sample(0, [-1.0], 0)], "of no other choice"),
    "two right choices": ([sample(0, [-1.0, -2.0], "[0, 1]")], "has 2 right choices"),
    "a grade between right and wrong": ([GOOD | {"acc": 0.4}], "more than one choice may be right"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_logs_are_refused_with_the_place(name: str, tmp_path: Path) -> None:
    rows, message = HOSTILE[name]
    with pytest.raises(FileError, match=message):
        read_samples(written(tmp_path, rows))


def test_missing_targets_and_nan_are_refused_or_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [sample(0, [-1.0, -2.0], 0), sample(1, [-1.0, math.nan], 0, acc=1.0), sample(2, [-1.0, -2.0], -1)]
    path = written(tmp_path, rows)
    with pytest.raises(MissingValueError, match=r"row 1 .*2 of 3"):
        read_samples(path)
    kept = read_samples(path, drop_missing=True).predictions
    assert kept.n == 1
    assert kept.notes[0] == "left out 2 of 3 rows with missing values, the first at row 1."
    assert main(["evaluate", path, "--drop-missing"]) == 0
    assert "left out 2 of 3 rows" in capsys.readouterr().err
    with pytest.raises(FileError, match="nothing is left"):
        read_samples(written(tmp_path, rows[1:]), drop_missing=True)


def test_two_runs_of_one_task_are_not_one_run(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = drawn(rng, 10)
    paths = [written(tmp_path, rows, f"samples_quiz_2026-01-0{day}T00-00-00.0.jsonl") for day in (1, 2)]
    with pytest.raises(FileError, match=r"10 of 20 questions of quiz are there more than once: .* hold the same"):
        read_samples(paths)


def test_files_that_are_no_logs_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "p.csv"
    table.write_text("y,p\n1,0.7\n", encoding="ascii")
    path = written(tmp_path, [GOOD])
    assert main(["evaluate", path, str(table)]) == 2
    assert "p.csv is not a log" in capsys.readouterr().err
    with pytest.raises(FileError, match="does not exist"):
        read_samples(tmp_path / "none.jsonl")
    with pytest.raises(FileError, match="must name a file"):
        read_samples([])
    with pytest.raises(FileError, match="is not a log"):
        read_samples(tmp_path)


def test_questions_that_share_a_passage_are_clusters(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row | {"doc": row["doc"] | {"passage": f"story {row['doc_id'] // 5}"}} for row in drawn(rng, 100)]
    path = written(tmp_path, rows)
    evaluation = read_samples(path).evaluate()
    assert evaluation.tally.clusters is not None
    assert len(evaluation.tally.clusters) == 20
    assert "share a `passage` are clusters" in said(capsys, path)
    text = said(capsys, path, "--cluster", "doc_id")
    assert "clusters;" not in text
    alone = [row | {"doc": row["doc"] | {"passage": f"story {row['doc_id']}"}} for row in rows]
    assert read_samples(written(tmp_path, alone)).evaluate().tally.clusters is None


def test_many_choices_have_numbers_instead_of_letters(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = []
    for number in range(20):
        row = sample(number, [-1.0, -2.0], 1)
        rows.append(row | {"filtered_resps": [[str(-x), "False"] for x in rng.random(30)], "arguments": {}})
    predictions = read_samples(written(tmp_path, rows)).predictions
    assert predictions.class_names == ()
    assert predictions.what_happened.tolist() == [1] * 20  # type: ignore[union-attr]


def test_fields_of_a_document_never_hide_what_the_log_says(tmp_path: Path) -> None:
    rows = [sample(k, [-1.0, -2.0], 0, doc={"task": "inner", "options": ["x"]}) for k in range(2)]
    columns = read_samples(written(tmp_path, rows)).columns
    assert set(columns["task"]) == {"quiz"}
    assert set(columns["doc.task"]) == {"inner"}
    assert set(columns["options"]) == {'["x"]'}


def test_the_harness_can_score_by_itself(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = drawn(rng, 200, 1.5)
    items = [
        process_results({"answer": int(row["target"])}, [(float(a), False) for a, _ in row["filtered_resps"]])
        for row in rows
    ]
    evaluation = read_samples(written(tmp_path, rows)).evaluate()
    assert np.mean([item["ecd"] for item in items]) == pytest.approx(evaluation.ecd, abs=1e-9)
    assert temperature([item["temperature"] for item in items]) == pytest.approx(evaluation.temperature.value, abs=1e-9)
    assert np.mean([item["acc"] for item in items]) == evaluation.accuracy
    unlisted = [item["temperature"] for item in items]
    assert math.isnan(sum(unlisted) / len(unlisted))  # as the harness aggregates what no task lists
    assert math.isnan(unlisted[0] - 1.0)
    logged = [row | {"target": "?", "temperature": item["temperature"]} for row, item in zip(rows, items, strict=True)]
    assert read_samples(written(tmp_path, logged)).predictions.ecd == pytest.approx(evaluation.ecd, abs=1e-12)


@pytest.mark.parametrize(
    ("doc", "right"),
    [
        ({"gold": 1}, 1),
        ({"answerKey": "B"}, 1),
        ({"label": "2"}, 2),
        ({"answer": "red", "choices": ["blue", "red", "green"]}, 1),
        ({"answerKey": "3", "choices": {"text": ["x", "y", "z"], "label": ["1", "2", "3"]}}, None),
        ({"answerKey": "C", "choices": {"text": ["x", "y", "z"], "label": ["A", "B", "C"]}}, 2),
        ({"answer": "1", "choices": ["1", "2", "3"]}, None),
        ({"answer": "1", "choices": ["0", "1", "2"]}, 1),
        ({"answer": 3}, None),
        ({"answer": True}, None),
        ({"answer": "neither"}, None),
        ({"question": "?"}, None),
    ],
)
def test_a_document_names_the_right_choice_or_is_refused(doc: dict[str, Any], right: int | None) -> None:
    results = [(-1.0, False), (-2.0, False), (-3.0, False)]
    if right is None:
        with pytest.raises(LabelError, match=r"scored\(results, right\)"):
            process_results(doc, results)
    else:
        assert process_results(doc, results) == scored(results, right)


def test_ragged_predictions_cannot_be_mixed_with_others() -> None:
    one = safecal.categorical([0, 1], logits=[[0.0, 1.0, -np.inf], [0.0, 1.0, 2.0]])
    ragged = replace(one, choices=np.array([2, 3]))
    with pytest.raises(MergeError, match="of one form"):
        type(one).concatenate([one, ragged])
    both = ragged.tally() + replace(one, values=np.zeros((2, 3))).tally()
    assert both.room == pytest.approx(math.log(2) + 3 * math.log(3))
    assert both.vague_entropy < both.most_entropy
    with pytest.raises(safecal.errors.DocumentError, match="must not exceed `most_entropy`"):
        safecal.Tally.from_dict(ragged.tally().to_dict() | {"room": 100.0})


PEAK = """
import sys
from safecal.cli import main
assert main(["evaluate", sys.argv[1], "--max-rows", "0", "--json"]) == 0
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0], file=sys.stderr)
"""


@pytest.mark.proof
@pytest.mark.no_cover
def test_long_logs_take_no_more_memory_than_short_ones(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = drawn(rng, 3000)

    def peak(times: int) -> int:
        """Return the bytes that a process of its own had at most; tracing allocations takes three times as long.

        The same process takes a megabyte more or less from run to run, so the smaller of two counts.
        """
        path = tmp_path / "samples_long.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for block in range(times):
                file.writelines(json.dumps(row | {"doc_id": block * 3000 + k}) + "\n" for k, row in enumerate(rows))
        run = [sys.executable, "-c", PEAK, str(path)]
        peaks = [int(subprocess.run(run, check=True, capture_output=True, text=True).stderr) for _ in range(2)]
        return 1024 * min(peaks)

    # Buffers have their full size after about 20 000 lines. The 30 000 further ones, if held, would take 11 MB.
    assert peak(20) < peak(10) + 2_000_000


def letters(shown: dict[str, float], said: str = "A") -> Any:
    top = [SimpleNamespace(token=token, logprob=value) for token, value in shown.items()]
    content = [SimpleNamespace(token="So", top_logprobs=[]), SimpleNamespace(token=f" {said}", top_logprobs=top)]
    return SimpleNamespace(choices=[SimpleNamespace(logprobs=SimpleNamespace(content=content))])


def asked(output: Any, **more: Any) -> Any:
    about: dict[str, Any] = {"id": 1, "epoch": 1, "error": None, "choices": ["x", "y"], "target": "B", "scores": {}}
    return SimpleNamespace(output=output, **(about | {"metadata": {"subject": "art"}} | more))


def read_inspect(folder: Path, monkeypatch: pytest.MonkeyPatch, *samples: Any, **options: Any) -> Any:
    log = SimpleNamespace(read_eval_log_samples=lambda path, all_samples_required: samples)
    monkeypatch.setitem(sys.modules, "inspect_ai", SimpleNamespace(log=log))
    monkeypatch.setitem(sys.modules, "inspect_ai.log", log)
    path = folder / "2026-01-02T03-04-05-00-00_quiz_abcdefghijklmnopqrstuv.json"
    path.write_text('{\n  "version": 2,\n  "status": "success",\n  "eval": {}}', encoding="utf-8")
    return read_samples(path, **options)


def test_letters_of_inspect_are_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = SimpleNamespace(value="I")
    shown = {"A": math.log(0.4), " A": math.log(0.2), "B": math.log(0.3), "the": -5.0}
    one = asked(letters(shown), scores={"choice": wrong})
    samples = read_inspect(tmp_path, monkeypatch, one, asked(letters(shown), id=2, target=["A"]))
    assert samples.columns["task"].tolist() == ["quiz"] * 2
    assert samples.columns["subject"].tolist() == ["art"] * 2
    np.testing.assert_allclose(samples.predictions.values[0], np.log([0.6, 0.3]))
    assert samples.predictions.what_happened.tolist() == [1, 0]


INSPECT: dict[str, tuple[dict[str, Any], str]] = {
    "a sample that failed": ({"error": "timeout"}, "failed"),
    "no choices": ({"choices": None}, "has no choices"),
    "two right choices": ({"target": ["A", "B"]}, "more than one right choice"),
    "no log-probabilities": ({"output": SimpleNamespace(choices=[])}, "has no log-probabilities"),
    "no letter": ({"output": letters({"A": -1.0, "B": -1.0}, said="yes")}, "no token that is the letter"),
    "a letter that is not shown": ({"output": letters({"A": -0.1})}, "does not show the probability of B"),
    "another grade": ({"scores": {"choice": SimpleNamespace(value="C")}}, "does not fit its `target`"),
}


@pytest.mark.parametrize("name", INSPECT)
def test_logs_of_inspect_that_do_not_tell_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, message = INSPECT[name]
    given = {"output": letters({"A": -0.3, "B": -1.4})} | changed
    with pytest.raises(FileError, match=message):
        read_inspect(tmp_path, monkeypatch, asked(**given))


def test_letters_are_not_normalised_and_no_target_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = asked(letters({"A": -0.3, "B": -1.4}))
    with pytest.raises(FileError, match="are letters"):
        read_inspect(tmp_path, monkeypatch, one, normalise="bytes")
    with pytest.raises(MissingValueError):
        read_inspect(tmp_path, monkeypatch, asked(letters({"A": -0.3, "B": -1.4}), target=""))
    with pytest.raises(FileError, match="has no samples"):
        read_inspect(tmp_path, monkeypatch)


def test_a_log_is_known_by_its_content(tmp_path: Path) -> None:
    for name, kind in (("header.json", "inspect"), ("y.npy", None)):
        path = tmp_path / "log.eval"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "{}")
        assert log_kind(str(path)) == kind
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    assert log_kind(str(tmp_path / "bytes")) is None
    assert log_kind("-") is None


def test_a_log_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [GOOD])
    source = SampleLogs([path], LengthScale())
    written(tmp_path, [GOOD, sample(1, [-1.0, -2.0], 0)])
    with pytest.raises(FileError, match="changed while it was read"):
        list(source.batches(["logits", "target"]))


def test_who_says_a_hundred_percent_does_not_call_failure_impossible(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    confidence = rng.choice([0.5, 0.75, 0.9, 1.0], 400)
    right = (rng.random(400) < 0.8).astype(int)
    said_ = safecal.bernoulli(right, confidence, verbalised=True)
    assert sorted(set(said_.values.tolist())) == [0.5, 0.75, 0.9, 0.975]  # steps of 5 %
    evaluation = said_.evaluate()
    assert evaluation.summary.n_impossible == 0
    assert "100 % is read as at least 97.5 %" in evaluation.notes[0]
    assert said_.take(np.arange(3)).notes == said_.notes
    path = tmp_path / "answers.csv"
    rows = "".join(f"{y},{p}\n" for y, p in zip(right, confidence, strict=True))
    path.write_text(f"right,confidence\n{rows}", encoding="ascii")
    words = [str(path), "--y", "right", "--prob", "confidence", "--verbalised", "--json"]
    document = json.loads(said(capsys, *words))
    assert document["metrics"]["ecd"] == pytest.approx(evaluation.ecd, abs=1e-12)
    assert document["tally"]["notes"] == list(evaluation.notes)
    streamed = json.loads(said(capsys, *words, "--max-rows", "0"))
    assert streamed["metrics"]["ecd"] == pytest.approx(evaluation.ecd, abs=1e-12)
    assert "impossible" in said(capsys, *words[:-2])


def test_steps_of_confidences_are_found_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def step(values: list[Any]) -> float:
        return 2.0 * Grid().add(np.asarray(values)).half

    assert step([0.0, 0.5, 1.0]) == pytest.approx(0.1)  # never coarser than that
    assert step([0.7, 0.25]) == pytest.approx(0.05)
    assert step([0.7, 0.33]) == pytest.approx(0.01)
    assert step([0.999, 1.0]) == pytest.approx(0.001)
    assert step([1, 0]) == pytest.approx(0.1)
    assert 2.0 * Grid().add(np.array([0.9, 0.35], dtype=np.float32)).half == pytest.approx(0.05)
    with pytest.raises(OptionError, match="these were not"):
        safecal.bernoulli([1, 0], [0.123456, 0.4], verbalised=True)
    with pytest.raises(OptionError, match="without `clip`"):
        safecal.bernoulli([1, 0], [0.1, 0.4], clip=0.01, verbalised=True)
    path = tmp_path / "p.csv"
    path.write_text("y,p,q\n1,0.123456,0.1\n0,90,0.9\n", encoding="ascii")
    assert main(["evaluate", str(path), "--prob", "p", "--verbalised"]) == 2
    assert "these were not" in capsys.readouterr().err
    assert main(["evaluate", str(path), "--prob", "p", "--prob", "q", "--verbalised"]) == 2
    assert "belongs to one column" in capsys.readouterr().err
    assert main(["evaluate", str(path), "--prob", "q", "--y", "y", "--by-label", "--verbalised"]) == 2
    assert "without `--by-label`" in capsys.readouterr().err
    path.write_text("y,p\n1,90\n0,100\n1,70\n", encoding="ascii")
    assert main(["evaluate", str(path), "--verbalised"]) == 2
    assert "these look like percentages" in capsys.readouterr().err
