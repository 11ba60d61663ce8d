"""Inspect itself writes logs, as ``.eval`` and as JSON, about a model that answers as it is told to."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from safecal.cli import main
from safecal.compat.lm_eval import read_samples
from safecal.errors import FileError

pytestmark = [pytest.mark.apart, pytest.mark.filterwarnings("ignore")]

LETTERS = "ABCD"


def drawn(n: int = 60) -> tuple[list[list[float]], list[str]]:
    """Return probabilities of the letters, and the right ones."""
    rng = random.Random(0)
    rows = [[rng.random() + 0.05 for _ in LETTERS] for _ in range(n)]
    found = [[x / sum(row) for x in row] for row in rows]
    return found, [rng.choices(LETTERS, p)[0] for p in found]


def answer(p: list[float], shown: int) -> Any:
    """Return what a model says that finds the letters so likely."""
    from inspect_ai import model

    letter = LETTERS[p.index(max(p))]
    top = [model.TopLogprob(token=a, logprob=math.log(b)) for a, b in zip(LETTERS, p, strict=True)]
    top.sort(key=lambda one: -one.logprob)
    content = [
        model.Logprob(token="ANSWER:", logprob=-0.01, top_logprobs=[]),
        model.Logprob(token=f" {letter}", logprob=top[0].logprob, top_logprobs=top[:shown]),
    ]
    message = model.ChatMessageAssistant(content=f"ANSWER: {letter}", source="generate")
    choices = [model.ChatCompletionChoice(message=message, logprobs=model.Logprobs(content=content))]
    usage = model.ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else a tokenizer would be fetched
    return model.ModelOutput(model="mock", choices=choices, usage=usage)


def asked(folder: Path, shown: int = 4) -> str:
    """Let Inspect ask, grade and write; return the path of its log."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    ps, targets = drawn()
    samples = [
        Sample(input=f"Question {k}?", choices=["w", "x", "y", "z"], target=target, metadata={"subject": "ab"[k % 2]})
        for k, target in enumerate(targets)
    ]
    task = inspect_ai.Task(dataset=samples, solver=multiple_choice(), scorer=choice(), name="quiz")
    model: Any = get_model("mockllm/model", custom_outputs=[answer(p, shown) for p in ps])
    return str(inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", max_samples=1)[0].location)


def test_both_forms_of_a_log_give_what_was_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    path = asked(tmp_path)
    log = read_eval_log(path)
    as_json = str(tmp_path / "quiz.json")
    write_eval_log(log, as_json)
    capsys.readouterr()
    ps, targets = drawn()
    excess = [
        sum(x * math.log(x) for x in p) - math.log(p[LETTERS.index(right)])
        for p, right in zip(ps, targets, strict=True)
    ]
    ecd = sum(excess) / len(ps)
    assert log.results is not None
    accuracy = log.results.scores[0].metrics["accuracy"].value
    for one in (path, as_json):
        result = read_samples(one).evaluate(by="subject")
        assert result.ecd == pytest.approx(ecd, abs=1e-9)
        assert result.accuracy == pytest.approx(accuracy, abs=1e-9)
        assert result.groups is not None
        assert result.groups.keys == ("a", "b")
        assert main(["evaluate", one, "--by", "subject", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["metrics"]["ecd"] == pytest.approx(ecd, abs=1e-9)


def test_letters_that_are_not_shown_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"(?s)does not show the probability of .*--top-logprobs 20"):
        read_samples(asked(tmp_path, shown=2))
