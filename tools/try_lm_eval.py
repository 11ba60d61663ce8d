"""Run lm-evaluation-harness on tiny models, and compare its numbers with those that safecal reads off its logs.

    python tools/try_lm_eval.py                          with `safecal[lm-eval]` installed
    python tools/try_lm_eval.py --record tests/compat/lm_eval     keep the logs, for tests that run without it

The models are random, made and saved here, with a tokenizer of their own: nothing is fetched. Ends with status 1 where
a number differs.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTIONS = 40
COLOURS = ["red", "blue", "green", "black", "white"]
ANIMALS = ["cat", "dog", "eel", "fox", "cow", "pig", "hen", "owl"]

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


def documents(sizes: list[int]) -> str:
    """Return questions with so many choices, as JSON Lines."""
    lines = []
    for number in range(QUESTIONS):
        size = random.choice(sizes)
        question = f"What colour is the {random.choice(ANIMALS)} number {number}?"
        subject = random.choice(["pets", "farm"])
        doc = {"question": question, "choices": random.sample(COLOURS, size), "answer": random.randrange(size)}
        lines.append(json.dumps(doc | {"subject": subject}))
    return "\n".join(lines) + "\n"


def make(folder: Path) -> None:
    """Save two models, three tasks and their questions."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    random.seed(0)
    for name, sizes in (("ragged", [2, 3, 4, 5]), ("four", [4])):
        (folder / f"{name}.jsonl").write_text(documents(sizes), encoding="utf-8")
    for name, file, metrics in (("ragged", "ragged", OWN), ("four", "four", OWN), ("plain", "four", PLAIN)):
        text = TASK.format(name=name, file=folder / f"{file}.jsonl") + metrics
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet, end = pre_tokenizers.ByteLevel.alphabet(), "<|endoftext|>"
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[end], initial_alphabet=alphabet)
    made.train_from_iterator((folder / "ragged.jsonl").read_text(encoding="utf-8").splitlines(), trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=end, bos_token=end, pad_token=end)
    size = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 0}
    gpt2 = GPT2Config(n_positions=128, n_embd=32, n_layer=2, n_head=2, **size)
    llama = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=128,
        **size,
    )  # fmt: skip
    torch.manual_seed(1)
    for name, model in (("gpt2", GPT2LMHeadModel(gpt2)), ("llama", LlamaForCausalLM(llama))):
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(3.0)  # random weights of the usual size say almost nothing
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)


def run(folder: Path, model: str) -> tuple[dict[str, dict[str, float]], dict[str, Path]]:
    """Run the harness; return its results and its logs, by task."""
    command = [
        sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={folder / model}", "--tasks",
        "ragged,four,plain", "--include_path", str(folder), "--device", "cpu", "--batch_size", "16", "--log_samples",
        "--output_path", str(folder / "out" / model),
    ]  # fmt: skip
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
    subprocess.run(command, check=True, cwd=folder, env=os.environ | offline)
    results = next((folder / "out" / model).rglob("results_*.json"))
    logs = {path.name.split("_")[1]: path for path in results.parent.glob("samples_*.jsonl")}
    return json.loads(results.read_text(encoding="utf-8"))["results"], logs


def differences(results: dict[str, dict[str, float]], logs: dict[str, Path]) -> list[str]:
    """Return the numbers of the harness that safecal does not read off its logs."""
    from safecal.compat.lm_eval import read_samples

    found = []
    for task, path in logs.items():
        result = read_samples(path).evaluate()
        by_length = read_samples(path, normalise="characters").evaluate()
        own = {"acc": result.accuracy, "ecd": result.ecd, "temperature": result.temperature.value}
        own |= {"brier_score": result.brier, "acc_norm": by_length.accuracy}
        for metric, value in own.items():
            theirs = results[task].get(f"{metric},none")
            if theirs is not None:
                same = theirs == value or abs(theirs - value) < 1e-9
                print(f"{path.parents[1].name:6} {task:7} {metric:12} {theirs:<20.17g} {value:<20.17g} {same}")
                found += [] if same else [f"{task} {metric}"]
    return found


def main() -> int:
    """Make, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--record", type=Path, help="folder to copy the logs of the first model to")
    options = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        for model in ("gpt2", "llama"):
            results, logs = run(folder, model)
            wrong += differences(results, logs)
            if options.record is not None and model == "gpt2":
                options.record.mkdir(parents=True, exist_ok=True)
                for task in ("plain", "ragged"):
                    shutil.copy(logs[task], options.record / f"samples_{task}_2026-01-02T03-04-05.678901.jsonl")
                (options.record / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("they differ: " + ", ".join(wrong) if wrong else "the numbers are the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
