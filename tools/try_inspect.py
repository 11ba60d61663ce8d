"""Write logs with inspect_ai, as `.eval` and as JSON, and read them: with `safecal[inspect]` installed."""

import math
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

from safecal.compat.lm_eval import read_samples
from safecal.errors import FileError

LETTERS = "ABCD"


def answer(p: list[float], shown: int = 4) -> ModelOutput:
    """Return what a model says that finds the letters so likely."""
    letter = LETTERS[p.index(max(p))]
    top = [TopLogprob(token=a, logprob=math.log(b)) for a, b in zip(LETTERS, p, strict=True)]
    top.sort(key=lambda one: -one.logprob)
    content = [
        Logprob(token="ANSWER:", logprob=-0.01, top_logprobs=[]),
        Logprob(token=f" {letter}", logprob=top[0].logprob, top_logprobs=top[:shown]),
    ]
    message = ChatMessageAssistant(content=f"ANSWER: {letter}", source="generate")
    choices = [ChatCompletionChoice(message=message, logprobs=Logprobs(content=content))]
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # without it, a tokenizer would be fetched
    return ModelOutput(model="mock", choices=choices, usage=usage)


def run(folder: Path, outputs: list[ModelOutput], targets: list[str]) -> str:
    """Let inspect_ai ask, grade and write; return the path of its log."""
    samples = [
        Sample(input=f"Question {k}?", choices=["w", "x", "y", "z"], target=target, metadata={"subject": "ab"[k % 2]})
        for k, target in enumerate(targets)
    ]
    task = inspect_ai.Task(dataset=samples, solver=multiple_choice(), scorer=choice(), name="quiz")
    model: Any = get_model("mockllm/model", custom_outputs=outputs)
    return str(inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", max_samples=1)[0].location)


def main() -> int:
    """Run, read both forms, and compare with what was drawn."""
    rng = random.Random(0)
    drawn = [[rng.random() + 0.05 for _ in LETTERS] for _ in range(60)]
    ps = [[x / sum(p) for x in p] for p in drawn]
    targets = [rng.choices(LETTERS, p)[0] for p in ps]
    ecd = sum(
        sum(x * math.log(x) for x in p) - math.log(p[LETTERS.index(t)]) for p, t in zip(ps, targets, strict=True)
    ) / len(ps)  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = run(folder, [answer(p) for p in ps], targets)
        log = read_eval_log(path)
        as_json = str(folder / "quiz.json")
        write_eval_log(log, as_json)
        for one in (path, as_json):
            found = read_samples(one)
            result = found.evaluate(by="subject")
            assert abs(result.ecd - ecd) < 1e-9, (one, result.ecd, ecd)
            assert abs(result.accuracy - log.results.scores[0].metrics["accuracy"].value) < 1e-9
            assert len(result.groups) == 2
            print(one, found, result.ecd)
        try:
            read_samples(run(folder, [answer(p, shown=2) for p in ps], targets))
        except FileError as error:
            print(error)
        else:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
