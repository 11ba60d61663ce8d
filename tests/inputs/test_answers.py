"""Answers of language models' servers at the command line: the same as in Python, and what is missing is asked for."""

from __future__ import annotations

import gzip
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.cli import main
from safecal.compat.completions import read_answers, read_prompts
from safecal.inputs.text_files import log_kind

V = 60


def place(own: int, row: np.ndarray, k: int) -> dict[str, Any]:
    """Return what vLLM shows for one place: the token that is there, then the most likely ones."""
    ranks = np.argsort(-row)
    shown = dict.fromkeys([own, *ranks[:k].tolist()])
    return {str(t): {"logprob": float(row[t]), "rank": int((row > row[t]).sum()) + 1} for t in shown}


def prompt(number: int, own: list[int], log_p: np.ndarray, k: int = 5) -> dict[str, Any]:
    """Return the answer of vLLM about a text."""
    places = [None, *(place(token, row, k) for token, row in zip(own, log_p, strict=True))]
    return {
        "id": f"cmpl-{number}", "object": "text_completion", "model": "tiny", "source": "ab"[number % 2],
        "choices": [{"index": 0, "text": "", "logprobs": None, "prompt_logprobs": places}],
    }  # fmt: skip


def prompts(rng: np.random.Generator, n: int = 40, times: float = 1.0, k: int = 5) -> list[dict[str, Any]]:
    answers = []
    for number in range(n):
        z = rng.normal(0.0, 2.0, (12, V))
        y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        z = times * z
        answers.append(prompt(number, y.tolist(), z - np.logaddexp.reduce(z, axis=1, keepdims=True), k))
    return answers


def chat(number: int, shown: dict[str, float], right: str | None = "A", **more: Any) -> dict[str, Any]:
    """Return a line of OpenAI's batches, with the right answer beside it."""
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in shown.items()]
    choice = {"index": 0, "message": {"content": "A"}, "logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    body = {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "tiny", "choices": [choice]}
    line = {"custom_id": f"q{number}", "response": {"status_code": 200, "body": body}, "error": None, **more}
    return line if right is None else line | {"answer": right}


def chats(rng: np.random.Generator, n: int = 200, times: float = 1.0) -> list[dict[str, Any]]:
    answers = []
    for number in range(n):
        z = rng.normal(0.0, 1.5, 4)
        right = "ABCD"[(z + rng.gumbel(size=4)).argmax()]
        log_p = times * z - np.logaddexp.reduce(times * z) - 0.01
        shown = {"ABCD"[k]: float(log_p[k]) for k in np.argsort(-log_p)}
        answers.append(chat(number, shown, right, subject="xy"[number % 2]))
    return answers


def written(folder: Path, rows: list[Any], name: str = "answers.jsonl") -> str:
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["evaluate", *words, "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["evaluate", *words]) == 2
    return capsys.readouterr().err


GIVEN = ("--vocabulary", str(V), "--text", "given")


def test_given_text_has_the_same_answer_as_in_python_on_every_surface(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = prompts(rng, times=3.0)
    path, page, summary = written(tmp_path, rows), tmp_path / "report.html", tmp_path / "summary.md"
    wanted = read_prompts(rows, vocabulary=V).evaluate()
    evaluation = safecal.Evaluation.from_dict(document(capsys, path, *GIVEN))
    assert evaluation.tally.summary == wanted.tally.summary
    assert [one.ecd for one in evaluation.verdict.looks] == [one.ecd for one in wanted.verdict.looks]
    assert evaluation.notes == (*wanted.notes, "tokens of one text depend on each other: each text is a cluster.")
    streamed = document(capsys, path, *GIVEN, "--max-rows", "0")
    assert streamed["metrics"]["ecd"] == pytest.approx(wanted.ecd, abs=1e-12)
    assert main(["evaluate", path, *GIVEN, "--gate", "--report", str(page), "--summary", str(summary)]) == 3
    most, least = (f"{one.ecd.value:+.4f}" for one in wanted.verdict.looks)
    for text in (capsys.readouterr().out, page.read_text(encoding="utf-8"), summary.read_text(encoding="utf-8")):
        assert "UNSAFE" in text
        assert "at most" in text
        assert "at least" in text
        assert most in text.replace("\N{MINUS SIGN}", "-")
        assert least in text.replace("\N{MINUS SIGN}", "-")
        assert "temperature is not known, and was not judged" in " ".join(text.split())


def test_right_answers_of_chat_have_the_same_answer_as_in_python(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = chats(rng)
    path = written(tmp_path, rows)
    wanted = read_answers(path, [row["answer"] for row in rows], vocabulary=V).evaluate()
    evaluated = document(capsys, path, "--y", "answer", "--vocabulary", str(V))
    assert evaluated["metrics"]["ecd"] == wanted.ecd
    assert safecal.Evaluation.from_dict(evaluated) == wanted
    text = document(capsys, path, "--y", "answer", *GIVEN, "--by", "subject")
    assert [group["key"] for group in text["tally"]["groups"]["rows"]] == ["x", "y"]


def test_fields_positions_and_models_are_groups_and_a_field_may_be_the_cluster(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    z = rng.normal(size=(20, V))
    log_p = z - np.logaddexp.reduce(z, axis=1, keepdims=True)
    rows = [prompt(k, rng.integers(0, V, 20).tolist(), log_p + 0.0) | {"text": f"no {k // 3}"} for k in range(12)]
    path = written(tmp_path, rows)
    assert main(["evaluate", path, *GIVEN, "--by", "position", "--by", "model"]) == 0
    text = capsys.readouterr().out
    assert "1 to 15 / tiny" in text
    assert "16 to 127 / tiny" in text
    assert "on 12 clusters" in text
    assert main(["evaluate", path, *GIVEN, "--cluster", "line.text"]) == 0
    text = capsys.readouterr().out
    assert "on 4 clusters" in text
    assert "each text is a cluster" not in text
    assert "did you mean 'source'?" in refused(capsys, path, *GIVEN, "--by", "sorce")


def test_what_is_not_said_is_asked_for_with_the_line_to_type(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    given, said = written(tmp_path, prompts(rng, 3)), written(tmp_path, chats(rng, 3), "chat.jsonl")
    alone = written(tmp_path, [chat(0, {"A": -0.5, "B": -1.0}, None)], "alone.jsonl")
    asked = {
        (given,): ("how many tokens", "whose text", f"{given} --vocabulary SIZE --text given"),
        (given, "--vocabulary", "60"): ("whose text", f"{given} --vocabulary 60 --text given"),
        (given, "--text", "given"): ("how many tokens", f"{given} --vocabulary SIZE --text given"),
        (said,): ("what the model wrote", f"name the field of the right answer: safecal evaluate {said}", "--y answer"),
        (said, *GIVEN): ("what the model wrote", f"safecal evaluate {said} --vocabulary 60 --y answer"),
        (said, "--y", "answer"): ("how many tokens", f"{said} --vocabulary SIZE --y answer"),
        (said, "--y", "anser", *GIVEN): ("has no field 'anser'", "did you mean 'answer'?"),
        (alone, *GIVEN): ("put the right answer into each line", "--y answer"),
        (*[given] * 4,): (f"safecal evaluate {given} ... --vocabulary SIZE",),
    }
    for words, told in asked.items():
        text = refused(capsys, *words)
        for part in told:
            assert part in text, words


def test_generated_text_is_refused_in_two_sentences(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused(capsys, written(tmp_path, prompts(rng, 3)), "--vocabulary", "60", "--text", "generated")
    assert text.startswith(
        "safecal: `--text` must be given to the model, not generated by it: a model is calibrated on"
    )
    assert text.partition("\n\n")[0].count(". ") == 1
    assert "Hint: score text that people wrote" in text


def test_options_of_other_predictions_and_other_commands_are_refused(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, prompts(rng, 3))
    assert "leave `--prob` out" in refused(capsys, path, *GIVEN, "--prob", "p")
    assert "leave `--by-label` out" in refused(capsys, path, *GIVEN, "--by-label")
    assert "leave `--mean` out" in refused(capsys, path, *GIVEN, "--mean", "m")
    assert "name groups with `--by`" in refused(capsys, path, *GIVEN, "--features", "source")
    assert "names 2 fields" in refused(capsys, path, *GIVEN, "--y", "a", "--y", "b")
    for command in ("plan", "recalibrate"):
        assert main([command, path]) == 2
        assert f"`safecal {command}` takes none" in capsys.readouterr().err
    table = tmp_path / "p.csv"
    table.write_text("y,p\n1,0.7\n", encoding="ascii")
    assert "p.csv is not" in refused(capsys, str(table), *GIVEN)
    assert "does not exist" in refused(capsys, str(tmp_path / "none.jsonl"), *GIVEN)
    assert "is a folder" in refused(capsys, str(tmp_path), *GIVEN)
    samples = written(tmp_path, [{"doc_id": 0, "doc": {}}], "samples_x.jsonl")
    assert "several files are read together only" in refused(capsys, samples, path)


def test_one_answer_a_list_and_several_files_are_read_as_lines_are(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = prompts(rng, 6)
    wanted = document(capsys, written(tmp_path, rows), *GIVEN)["tally"]
    each = [written(tmp_path, [row], f"{number}.json") for number, row in enumerate(rows)]
    packed = tmp_path / "answers.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    for name, text in (("list.json", json.dumps(rows)), ("pretty.json", json.dumps(rows, indent=2))):
        (tmp_path / name).write_text(text, encoding="utf-8")
    for words in (each, [str(tmp_path / "list.json")], [str(tmp_path / "pretty.json")], [str(packed)]):
        assert document(capsys, *words, *GIVEN)["tally"] == wanted
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(map(json.dumps, rows)).encode())))
    assert document(capsys, "-", *GIVEN)["tally"] == wanted
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(rows[0]).encode())))
    assert "add `--vocabulary SIZE --text given`" in refused(capsys, "-")
    (tmp_path / "one.json").write_text(json.dumps(rows[0], indent=2), encoding="utf-8")
    assert "holds one text" in refused(capsys, str(tmp_path / "one.json"), *GIVEN)
    with pytest.raises(safecal.errors.InputError, match="must hold two texts or more"):
        read_prompts(tmp_path / "one.json", vocabulary=V).evaluate()
    assert document(capsys, str(tmp_path / "one.json"), *GIVEN, "--cluster", "logprob")["tally"]["summary"]["n"] == 12


def test_other_servers_answers_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {"B": math.log(0.7), "A": math.log(0.2)}
    wanted = read_answers([chat(0, shown)], ["A"], vocabulary=V).score().excess
    top = [{"token": token, "logprob": value} for token, value in shown.items()]
    message = {"type": "message", "content": [{"type": "output_text", "logprobs": [{**top[0], "top_logprobs": top}]}]}
    responses = {"object": "response", "output": [{"type": "reasoning"}, message]}
    completion = {"choices": [{"logprobs": {"token_logprobs": [shown["B"]], "top_logprobs": [shown]}}]}
    for answer in (responses, completion):
        np.testing.assert_array_equal(read_answers([answer], ["A"], vocabulary=V).score().excess, wanted)
        path = written(tmp_path, [{"right": "A", "response": answer}])
        assert document(capsys, path, "--y", "right", "--vocabulary", str(V))["metrics"]["ecd"] == wanted[0]


def changed(row: dict[str, Any], number: int, place: Any) -> dict[str, Any]:
    """Return an answer with another place."""
    places = list(row["choices"][0]["prompt_logprobs"])
    places[number] = place
    return row | {"choices": [{"prompt_logprobs": places}]}


ROW = prompt(7, [3, 4, 5], np.log(np.random.default_rng(0).dirichlet(np.ones(V), 3)))
OTHER = prompt(8, [3, 4, 5], np.log(np.random.default_rng(1).dirichlet(np.ones(V), 3)))


def echo(top: list[Any]) -> dict[str, Any]:
    """Return what the completions API repeats of a text of two tokens."""
    choice = {"logprobs": {"token_logprobs": [None, -1.0], "top_logprobs": top}}
    return {"choices": [choice], "usage": {"prompt_tokens": 2}}


def shown(**values: Any) -> dict[str, Any]:
    """Return what is shown for one place."""
    return {name.removeprefix("t"): {"logprob": value} for name, value in values.items()}


HOSTILE: dict[str, tuple[list[Any], str]] = {
    "a line that was cut": ([ROW, json.dumps(OTHER)[:80]], "line 2 is not JSON"),
    "a line that is no object": ([ROW, "[1]"], "line 2 is not a JSON object"),
    "no answer": ([ROW, {"error": "quota"}], "of chat completions, or of vLLM at line 2"),
    "no choices": ([ROW, {"choices": []}], "must be answers of completions"),
    "choices that are none": ([ROW, {"choices": 3}], "must be answers of completions"),
    "nothing of the prompt": ([ROW, {"choices": [{"logprobs": None}]}], "must hold log-probabilities at line 2"),
    "a place that is no object": (
        [changed(ROW, 2, [1])],
        "must hold the most likely tokens of each place at line 1, token 2",
    ),
    "an empty place": ([changed(ROW, 2, {})], "must hold the most likely tokens of each place"),
    "no list of places": ([ROW, {"prompt_logprobs": {"a": 1}}], "must hold `prompt_logprobs` as a list at line 2"),
    "a place without numbers": ([changed(ROW, 1, shown(t3="x"))], "that are numbers, not 'x' at line 1, token 1"),
    "a number that is too large": ([changed(ROW, 1, shown(t3=-(10**400)))], "that are numbers"),
    "a truth": ([changed(ROW, 1, shown(t3=True))], "that are numbers, not True"),
    "a null": (
        [changed(ROW, 2, None), OTHER],
        "must not hold missing values; got nothing at line 1, token 2 (1 of 6 rows)",
    ),
    "a null number": ([changed(ROW, 1, shown(t3=None, t4=-1.0)), OTHER], "must not hold missing values"),
    "NaN": ([json.dumps(changed(ROW, 1, shown(t3=math.nan, t4=-1.0))), OTHER], "missing values"),
    "what the server does not tell": ([changed(ROW, 1, shown(t3=-9999.0, t4=-1.0))], "-9999 stands"),
    "the token alone": ([changed(ROW, 1, {"3": {"logprob": -2.0, "rank": 7}})], "must show other likely tokens"),
    "sorted keys": ([json.dumps(OTHER, sort_keys=True)], "were its keys sorted?"),
    "a token that is not shown": (
        [{"prompt_token_ids": [1, 9], "prompt_logprobs": [None, shown(t3=-1.0)]}],
        "must show each token of the text",
    ),
    "too few token ids": (
        [{"prompt_token_ids": [1], "prompt_logprobs": [None, shown(t3=-1.0)]}],
        "as many `prompt_token_ids`",
    ),
    "more than 1": (
        [changed(ROW, 2, shown(t4=-0.1, t5=-0.1)), OTHER],
        "must sum to at most 1, as probabilities; got 1.80967 at line 1, token 2",
    ),
    "probabilities": ([changed(ROW, 3, shown(t4=0.3, t5=0.2)), OTHER], "at most 0; got 0.3 at line 1, token 3"),
    "the same answer twice": ([ROW, ROW], "1 of 2 answers of "),
    "what was written, too": (
        [echo([None, {"a": -0.9, "b": -1.0}]) | {"usage": None}],
        "must say how many tokens were given",
    ),
    "lists of other lengths": ([echo([None])], "as many `token_logprobs`"),
    "a list that is none": ([echo([None, 3])], "must hold the most likely tokens of each place"),
    "what the model wrote, too": ([ROW, chat(0, {"A": -0.1})], "would mean anything at line 2."),
    "one token": ([{"prompt_logprobs": [None]}], "has no text of two tokens or more"),
    "nothing": (["[]"], "has no answers"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_refused_with_the_place(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, message = HOSTILE[name]
    text = refused(capsys, written(tmp_path, rows), *GIVEN)
    assert message in text
    assert "Traceback" not in text


def test_texts_that_were_asked_for_twice_are_refused(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    row = prompts(rng, 1)[0]
    again = [row, row | {"id": "cmpl-other"}]
    assert "1 of 2 texts of" in refused(capsys, written(tmp_path, again), *GIVEN)
    with pytest.raises(safecal.errors.InputError, match="must hold each of its texts once"):
        read_prompts(again, vocabulary=V)
    with pytest.raises(safecal.errors.InputError, match="must hold each of its answers once"):
        read_answers([chat(0, {"A": -0.1})] * 2, ["A", "A"], vocabulary=V)


CHAT: dict[str, tuple[list[Any], str]] = {
    "a right answer that is not shown": (
        [chat(0, {"A": -0.1}), chat(1, {"A": -0.1}, "C"), chat(2, {"B": -0.1}, "C")],
        "got 'C' at line 2 (2 of 3 rows)",
    ),
    "no right answer": ([chat(0, {"A": -0.1}), chat(1, {"A": -0.1}, None)], "got nothing at line 2 (1 of 2 rows)"),
    "no tokens": ([chat(0, {"A": -0.1}), {"answer": "A", "choices": [{"logprobs": {"content": []}}]}], "at line 2"),
    "tokens without a name": (
        [{"answer": "A", "choices": [{"logprobs": {"content": [{"top_logprobs": [{"logprob": -1.0}]}]}}]}],
        "must hold the most likely tokens at line 1",
    ),
    "content that is no list": ([{"answer": "A", "choices": [{"logprobs": {"content": 3}}]}], "most likely tokens"),
    "no messages": ([{"answer": "A", "object": "response", "output": []}], "must hold the most likely tokens"),
}


@pytest.mark.parametrize("name", CHAT)
def test_hostile_chat_is_refused_with_the_place(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, message = CHAT[name]
    assert message in refused(capsys, written(tmp_path, rows), "--y", "answer", "--vocabulary", str(V))


def test_missing_values_are_left_out_and_counted_where_one_asks_for_it(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = prompts(rng, 4)
    path = written(tmp_path, [*rows, changed(prompts(rng, 1)[0] | {"id": "x"}, 2, None)])
    assert main(["evaluate", path, *GIVEN, "--drop-missing"]) == 0
    assert "left out 1 of 60 rows with missing values, the first at line 5, token 2." in capsys.readouterr().err
    unknown = written(tmp_path, [chat(0, {"A": -0.1}), chat(1, {"A": -0.1}, "C")])
    text = refused(capsys, unknown, "--y", "answer", "--vocabulary", str(V), "--drop-missing")
    assert "leaving such answers out would leave out the worst ones" in text


def test_token_ids_tell_the_token_that_is_there_whatever_the_order(rng: np.random.Generator) -> None:
    row = prompts(rng, 1)[0]
    ids = [0, *(int(next(iter(one))) for one in row["choices"][0]["prompt_logprobs"][1:])]
    mixed = json.loads(json.dumps(row | {"prompt_token_ids": ids}, sort_keys=True))
    wanted = read_prompts([row], vocabulary=V).predictions
    np.testing.assert_allclose(read_prompts([mixed], vocabulary=V).predictions.score().excess, wanted.score().excess)


def test_a_vocabulary_that_lacks_tokens_that_are_shown_is_refused(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = prompts(rng, 3)
    text = refused(capsys, written(tmp_path, rows), "--vocabulary", "59", "--text", "given")
    assert "`--vocabulary` must be the number of all tokens" in text
    assert "got 59, and token 59." in text
    with pytest.raises(safecal.errors.RangeError, match="length of the tokenizer"):
        read_prompts(rows, vocabulary=59)


def test_a_baseline_of_answers_compares_what_is_known(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    honest, sharp = (written(tmp_path, prompts(rng, 60, times), f"{times}.jsonl") for times in (1.0, 3.0))
    for path in (honest, sharp):
        Path(f"{path}.json").write_text(json.dumps(document(capsys, path, *GIVEN)), encoding="utf-8")
    said = {}
    for now, before in ((honest, sharp), (sharp, honest), (honest, honest)):
        assert main(["evaluate", now, *GIVEN, "--baseline", f"{before}.json"]) == 0
        said[now, before] = capsys.readouterr().out
        assert "nan" not in said[now, before]
    assert "\nNOT WORSE than the baseline" in said[honest, sharp]
    assert "\nWORSE than the baseline" in said[sharp, honest]
    assert "\nUNCLEAR whether it is worse" in said[honest, honest]  # five tokens tell too little of either


def test_several_texts_of_one_request_are_several_texts(rng: np.random.Generator) -> None:
    a, b = prompts(rng, 2)
    both = a | {"choices": [*a["choices"], *b["choices"]]}
    assert repr(read_prompts([both], vocabulary=V)) == "24 tokens of 2 texts"
    one = echo([None, {"a": -0.9, "b": -1.0}])["choices"][0]
    two = {"choices": [one, one], "usage": {"prompt_tokens": 4, "total_tokens": 4}}
    assert repr(read_prompts([two], vocabulary=V)) == "2 tokens of 2 texts"
    with pytest.raises(safecal.errors.FormError, match="how many tokens were given at answer 0, choice 0"):
        read_prompts([two | {"usage": {"prompt_tokens": 4, "completion_tokens": 2}}], vocabulary=V)


def test_only_answers_are_taken_for_answers(tmp_path: Path, rng: np.random.Generator) -> None:
    assert log_kind(written(tmp_path, prompts(rng, 1))) == "answers"
    assert log_kind(written(tmp_path, chats(rng, 1))) == "answers"
    assert log_kind(written(tmp_path, [json.dumps(prompts(rng, 1), indent=1)])) == "answers"
    assert log_kind(written(tmp_path, [{"question": "?", "choices": ["a"], "y": 1, "p": 0.5}])) is None
    assert log_kind(written(tmp_path, ["top_logprobs,y"], "table.csv")) is None


def test_a_file_that_changes_is_refused(
    tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stamps = iter(range(100))
    monkeypatch.setattr("safecal.inputs.logs.stamp_of", lambda _: str(next(stamps)))
    assert "changed while it was read" in refused(capsys, written(tmp_path, prompts(rng, 2)), *GIVEN)


PEAK = """
import sys
from safecal.cli import main
assert main(["evaluate", *sys.argv[1:], "--max-rows", "0", "--json"]) == 0
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0], file=sys.stderr)
"""


@pytest.mark.proof
@pytest.mark.no_cover
def test_a_hundred_thousand_answers_take_no_more_memory_than_ten_thousand(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    """It takes long to read so many lines, and only so many show it."""
    lines = [json.dumps(row) for row in chats(rng, 1000)]

    def peak(times: int) -> int:
        path = tmp_path / "answers.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for block in range(times):
                file.writelines(line.replace('"custom_id": "q', f'"custom_id": "{block}-') + "\n" for line in lines)
        run = [sys.executable, "-c", PEAK, str(path), "--y", "answer", "--vocabulary", str(V)]
        return 1024 * int(subprocess.run(run, check=True, capture_output=True, text=True).stderr)

    # Of each answer eight bytes are kept, which tell whether it was there before. Rows that are held take 15 MB more.
    assert peak(100) < peak(10) + 6_000_000
