"""lm-evaluation-harness itself, on tiny models that are made here: safecal reads off its logs what the harness says.

Each model answers questions whose right answers are drawn at half of its log-likelihoods, so that these are twice too
large. Nothing is fetched.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from safecal.cli import main
from safecal.compat.lm_eval import read_samples

pytestmark = [pytest.mark.apart, pytest.mark.filterwarnings("ignore")]

QUESTIONS = 200
COLOURS = ["red", "blue", "green", "black", "white"]
ANIMALS = ["cat", "dog", "eel", "fox", "cow", "pig", "hen", "owl"]
RECORDED = Path(__file__).parents[1] / "compat" / "lm_eval"

TASK = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: choices
doc_to_target: answer
"""
OWN = """process_results: !function safecal.compat.lm_eval.process_results
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: ecd
    aggregation: mean
    higher_is_better: false
  - metric: temperature
    aggregation: !function safecal.compat.lm_eval.temperature
    higher_is_better: false
"""
PLAIN = """metric_list:
  - metric: acc
  - metric: acc_norm
  - metric: brier_score
"""
TASKS = {"ragged": ([2, 3, 4, 5], OWN), "four": ([4], OWN), "plain": ([4], PLAIN)}


class Run(NamedTuple):
    """What the harness says of each task, the logs that it wrote, and the table that it printed."""

    results: dict[str, dict[str, float]]
    logs: dict[str, Path]
    table: str


def questions(rng: np.random.Generator, sizes: list[int]) -> list[dict[str, Any]]:
    """Return questions with so many choices."""
    found = []
    for number in range(QUESTIONS):
        question = f"What colour is the {rng.choice(ANIMALS)} number {number}?"
        choices = rng.permutation(COLOURS)[: rng.choice(sizes)].tolist()
        found.append({"question": question, "choices": choices, "subject": str(rng.choice(["pets", "farm"]))})
    return found


def likelihoods(model: Any, tokenizer: Any, doc: dict[str, Any]) -> np.ndarray:
    """Return the log-likelihood of each choice behind the question."""
    import torch

    start = tokenizer(doc["question"])["input_ids"]
    ends = [tokenizer(f" {choice}")["input_ids"] for choice in doc["choices"]]
    most = max(map(len, ends))
    # What fills up the shorter ones stands behind them, and changes nothing.
    ids = torch.tensor([start + end + [0] * (most - len(end)) for end in ends])
    with torch.no_grad():
        log_p = torch.log_softmax(model(ids).logits[:, :-1].double(), dim=-1)
    each = log_p.gather(2, ids[:, 1:, None])[:, len(start) - 1 :, 0].numpy()
    return np.array([row[: len(end)].sum() for row, end in zip(each, ends, strict=True)])


def made(folder: Path, name: str) -> Path:
    """Save a model, its tokenizer, three tasks and their questions."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    rng = np.random.default_rng(0)
    docs = {task: questions(rng, sizes) for task, (sizes, _) in TASKS.items()}
    parts = Tokenizer(models.BPE())
    parts.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    parts.decoder = decoders.ByteLevel()
    alphabet, end = pre_tokenizers.ByteLevel.alphabet(), "<|endoftext|>"
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=[end], initial_alphabet=alphabet, show_progress=False
    )  # fmt: skip
    parts.train_from_iterator((f"{doc['question']} {' '.join(doc['choices'])}" for doc in docs["ragged"]), trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=parts, eos_token=end, bos_token=end, pad_token=end)
    size = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 0}
    torch.manual_seed(1)
    if name == "gpt2":
        model: Any = GPT2LMHeadModel(GPT2Config(n_positions=128, n_embd=32, n_layer=2, n_head=2, **size))
    else:
        about = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        model = LlamaForCausalLM(LlamaConfig(**about, max_position_embeddings=128, **size))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)  # random weights of the usual size say almost nothing
    model.eval().save_pretrained(folder / name)
    tokenizer.save_pretrained(folder / name)
    for task, (_, metrics) in TASKS.items():
        for doc in docs[task]:
            half = 0.5 * likelihoods(model, tokenizer, doc)
            doc["answer"] = int((half + rng.gumbel(size=len(half))).argmax())
        path = folder / f"{task}.jsonl"
        path.write_text("".join(f"{json.dumps(doc)}\n" for doc in docs[task]), encoding="utf-8")
        (folder / f"{task}.yaml").write_text(TASK.format(name=task, file=path) + metrics, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Run the harness on both models, at the same time: each takes a while to start."""
    folders = {name: made(tmp_path_factory.mktemp(name), name) for name in ("gpt2", "llama")}
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    started = {}
    for name, folder in folders.items():
        command = [
            sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={folder / name}", "--tasks",
            ",".join(TASKS), "--include_path", str(folder), "--device", "cpu", "--batch_size", "32", "--log_samples",
            "--output_path", str(folder / "out"),
        ]  # fmt: skip
        own = os.environ | offline | {"HF_HOME": str(folder / "cache")}
        with (folder / "said").open("wb") as said, (folder / "log").open("wb") as log:
            started[name] = subprocess.Popen(command, cwd=folder, env=own, stdout=said, stderr=log)
    found = {}
    for name, process in started.items():
        folder = folders[name]
        assert process.wait(300) == 0, (folder / "log").read_text(encoding="utf-8")[-3000:]
        results = next((folder / "out").rglob("results_*.json"))
        logs = {path.name.split("_")[1]: path for path in results.parent.glob("samples_*.jsonl")}
        text = results.read_text(encoding="utf-8")
        found[name] = Run(json.loads(text)["results"], logs, (folder / "said").read_text(encoding="utf-8"))
    return found


@pytest.fixture(params=["gpt2", "llama"])
def run(request: pytest.FixtureRequest, runs: dict[str, Run]) -> Run:
    return runs[request.param]


def evaluated(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the document that ``safecal evaluate`` prints."""
    assert main(["evaluate", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("task", ["ragged", "four"])
def test_logs_give_what_the_metrics_in_the_harness_give(
    task: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    document, said = evaluated(capsys, str(run.logs[task])), run.results[task]
    assert document["metrics"]["accuracy"] == pytest.approx(said["acc,none"], abs=1e-9)
    assert document["metrics"]["ecd"] == pytest.approx(said["ecd,none"], abs=1e-9)
    temperature = document["temperature"]
    assert temperature["value"] == pytest.approx(said["temperature,none"], abs=1e-9)
    assert temperature["low"] < 2.0 < temperature["high"]  # as the answers were drawn
    assert document["verdict"]["decision"] != "SAFE"


def test_logs_give_brier_score_and_accuracy_of_the_harness(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    path, said = str(run.logs["plain"]), run.results["plain"]
    metrics = evaluated(capsys, path)["metrics"]
    assert metrics["accuracy"] == pytest.approx(said["acc,none"], abs=1e-9)
    assert metrics["brier"] == pytest.approx(said["brier_score,none"], abs=1e-9)
    by_length = evaluated(capsys, path, "--normalise", "characters")["metrics"]
    assert by_length["accuracy"] == pytest.approx(said["acc_norm,none"], abs=1e-9)


def test_the_table_of_the_harness_prints_ecd_and_temperature(run: Run) -> None:
    printed = re.findall(r"\|\s*(ecd|temperature)\s*\|↓\s*\|\s*([0-9.]+)\|", run.table)
    assert printed == [
        (metric, f"{run.results[task][f'{metric},none']:.4f}")
        for task in ("four", "ragged")
        for metric in ("ecd", "temperature")
    ]


def test_all_logs_of_a_run_are_one_table_with_a_row_a_task(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(path) for path in sorted(run.logs.values())]
    assert main(["evaluate", *paths]) == 0
    text = capsys.readouterr().out
    for task in ("four", "ragged"):
        assert re.search(rf"^{task}\s+{QUESTIONS}\s.*\{run.results[task]['ecd,none']:+.4f}$", text, re.MULTILINE)
    found = read_samples(paths).evaluate(by="subject")
    assert found.groups is not None
    assert found.groups.keys == ("farm", "pets")
    assert found.n == 3 * QUESTIONS


def test_recorded_logs_look_as_those_of_today(runs: dict[str, Run]) -> None:
    """The fast tests read logs that were kept: if this fails, take those of tasks `plain` and `ragged` anew."""
    for task in ("plain", "ragged"):
        lines = [
            json.loads(path.read_text(encoding="utf-8").splitlines()[0])
            for path in (next(RECORDED.glob(f"samples_{task}_*.jsonl")), runs["gpt2"].logs[task])
        ]
        assert set(lines[0]) == set(lines[1])
        assert {key: type(value) for key, value in lines[0].items()} == {
            key: type(value) for key, value in lines[1].items()
        }
