"""Answers of OpenAI's and vLLM's servers: what was given is read, what was generated is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.compat.completions import read_answers, read_prompts
from safecal.errors import FileError, FormError, InputError, MissingValueError

V = 50


def vllm(own: list[int], log_p: np.ndarray, k: int = 4) -> dict[str, Any]:
    """Return the answer of vLLM about a text: its own token first, then the most likely ones."""
    places: list[Any] = [None]
    for token, row in zip(own, log_p, strict=True):
        ranks = np.argsort(-row)
        shown = dict.fromkeys([token, *ranks[:k].tolist()])
        rank = {int(t): int(np.flatnonzero(ranks == t)[0]) + 1 for t in shown}
        places.append({str(t): {"logprob": float(row[t]), "rank": rank[t], "decoded_token": f"t{t}"} for t in shown})
    return {"choices": [{"prompt_logprobs": places}]}


def texts(rng: np.random.Generator, n: int = 60, length: int = 12) -> tuple[list[list[int]], list[np.ndarray]]:
    owns, rows = [], []
    for _ in range(n):
        z = rng.normal(0.0, 2.0, (length, V))
        log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        owns.append([int(rng.choice(V, p=np.exp(row))) for row in log_p])
        rows.append(log_p)
    return owns, rows


def test_prompts_of_vllm_are_given_text(tmp_path: Path, rng: np.random.Generator) -> None:
    owns, rows = texts(rng)
    answers = [vllm(own, log_p) for own, log_p in zip(owns, rows, strict=True)]
    tokens = read_prompts(answers, vocabulary=V)
    assert repr(tokens) == "720 tokens of 60 texts"
    truth = safecal.categorical(np.concatenate(owns), logits=np.concatenate(rows)).score().excess
    assert (tokens.predictions.others[0].score().excess <= truth + 1e-9).all()
    assert (truth <= tokens.predictions.score().excess + 1e-9).all()
    evaluation = tokens.evaluate()
    assert evaluation.tally.clusters is not None
    assert len(evaluation.tally.clusters) == 60
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")
    assert read_prompts(path, vocabulary=V).predictions.ecd == tokens.predictions.ecd
    path.write_text(json.dumps(answers[0]), encoding="utf-8")
    assert read_prompts(str(path), vocabulary=V).predictions.n == 12
    outputs = [
        SimpleNamespace(
            prompt_token_ids=[0, *own],
            prompt_logprobs=[
                None if place is None else {int(t): SimpleNamespace(**one) for t, one in place.items()}
                for place in answer["choices"][0]["prompt_logprobs"]
            ],
        )
        for own, answer in zip(owns, answers, strict=True)
    ]
    assert read_prompts(outputs, vocabulary=V).predictions.ecd == tokens.predictions.ecd


def test_an_echo_is_given_text_and_what_follows_is_not(rng: np.random.Generator) -> None:
    owns, rows = texts(rng, 1)
    values = [float(row[token]) for token, row in zip(owns[0], rows[0], strict=True)]
    lists = [{f"t{t}": float(row[t]) for t in [*np.argsort(-row)[:3].tolist(), token]}
             for token, row in zip(owns[0], rows[0], strict=True)]  # fmt: skip
    logprobs = {"token_logprobs": [None, *values], "top_logprobs": [None, *lists]}
    answer = {"choices": [{"logprobs": logprobs}], "usage": {"prompt_tokens": 10}}
    assert read_prompts(answer, vocabulary=V).predictions.n == 9
    for usage in ({"prompt_tokens": 13, "total_tokens": 13}, {"prompt_tokens": 13, "completion_tokens": 0}):
        assert read_prompts(answer | {"usage": usage}, vocabulary=V).predictions.n == 12
    with pytest.raises(FormError, match="must say how many tokens were given"):
        read_prompts({"choices": answer["choices"]}, vocabulary=V)
    alone = {"token_logprobs": [None, -1.0, -2.0], "top_logprobs": [None, {"a": -1.0}, {"b": -2.0}]}
    with pytest.raises(FormError, match="must show other likely tokens"):
        read_prompts({"choices": [{"logprobs": alone}], "usage": {"prompt_tokens": 3}}, vocabulary=V)


def chat(shown: dict[str, float]) -> dict[str, Any]:
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in shown.items()]
    return {"choices": [{"message": {"content": "A"}, "logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}


def test_chat_is_compared_with_the_right_answer() -> None:
    answers = [chat({"A": math.log(0.7), " B": math.log(0.2)}), chat({"A": math.log(0.6), "B": -3.0, "C": -9999.0})]
    predictions = read_answers(answers, ["B", "A"], vocabulary=V)
    wanted = safecal.bounded(
        [math.log(0.2), math.log(0.6)],
        [[math.log(0.7), math.log(0.2)], [math.log(0.6), -3.0]],
        vocabulary=V,
        text="given",
    )
    np.testing.assert_array_equal(predictions.score().excess, wanted.score().excess)
    with pytest.raises(MissingValueError, match="'C' at answer 1"):
        read_answers(answers, ["B", "C"], vocabulary=V)
    with pytest.raises(InputError, match="as many rows"):
        read_answers(answers, ["B"], vocabulary=V)


def test_generated_text_and_other_answers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormError, match="calibrated on its own samples"):
        read_prompts([chat({"A": -0.1})], vocabulary=V)
    completion = {"token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5}]}
    with pytest.raises(FormError, match="calibrated on its own samples"):
        read_prompts([{"choices": [{"logprobs": completion}]}], vocabulary=V)
    with pytest.raises(FormError, match="ask vLLM for"):
        read_prompts([{"choices": [{"logprobs": None}]}], vocabulary=V)
    with pytest.raises(FormError, match="must be answers of completions"):
        read_prompts([{"error": "quota"}], vocabulary=V)
    with pytest.raises(FormError, match="must hold the most likely tokens"):
        read_answers([{"choices": [{"logprobs": None}]}], ["A"], vocabulary=V)
    with pytest.raises(FormError, match="must show other likely tokens"):
        read_prompts([{"prompt_logprobs": [None, {"3": {"logprob": -2.0, "rank": 7}}]}], vocabulary=V)
    with pytest.raises(InputError, match="a text of two tokens"):
        read_prompts([{"prompt_logprobs": [None]}], vocabulary=V)
    with pytest.raises(FileError, match="is not a file"):
        read_prompts(tmp_path / "none.json", vocabulary=V)
