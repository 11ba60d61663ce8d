"""Install each extra alone in an environment of its own, and let it do its job.

    python tools/try_extras.py              every extra that is small
    python tools/try_extras.py base spark   these
    python tools/try_extras.py --changed    those whose requirements this change has changed

`base` is the package without extras. Ends with status 1 where one of them fails.

What has changed is found by Git: pyproject.toml beside the one of the commit where this branch left main, or of the one
before this where it is main. `SAFECAL_BASE` names another. Where Git cannot tell, the four that most people install are
tried.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

ROWS = """
import numpy as np, safecal
rng = np.random.default_rng(0)
p = rng.random(500)
y = (rng.random(500) < p).astype(int)
"""
FILE = "import pathlib; pathlib.Path('f.csv').write_text('y,p\\n' + ''.join(f'{a},{b}\\n' for a, b in zip(y, p)))\n"
COMMAND = "from safecal.cli import main\n"

JOBS = {
    "base": FILE + COMMAND + "assert main(['evaluate', 'f.csv', '--report', 'r.html']) == 0",
    "cli": FILE
    + COMMAND
    + "import polars as pl; pl.read_csv('f.csv').write_parquet('f.parquet')\n"
    + "assert main(['evaluate', 'f.parquet', '--plot', 'f.svg']) == 0",
    "plot": "safecal.evaluate(y, p).plot().savefig('f.png')",
    "frames": "import pyarrow as pa; from safecal.engines.frames import evaluate_frame\n"
    "assert evaluate_frame(pa.table({'y': y, 'p': p}), y_true='y', y_prob='p').n == 500",
    "dask": "import dask.dataframe as dd, pandas as pd; from safecal.engines.frames import evaluate_frame\n"
    "frame = dd.from_pandas(pd.DataFrame({'y': y, 'p': p}), npartitions=2)\n"
    "assert evaluate_frame(frame, y_true='y', y_prob='p', max_rows=0).n == 500",
    "spark": "from pyspark.sql import SparkSession; from safecal.engines.frames import evaluate_frame\n"
    "spark = SparkSession.builder.master('local[1]').getOrCreate()\n"
    "rows = [(int(a), [float(1 - b), float(b)]) for a, b in zip(y, p)]\n"
    "frame = spark.createDataFrame(rows, 'y int, p array<double>')\n"
    "assert evaluate_frame(frame, y_true='y', y_prob='p', max_rows=0).n == 500",
    "huggingface": "import pathlib, transformers; from safecal.compat.huggingface import run_classifier\n"
    "folder = pathlib.Path('model'); folder.mkdir(); words = folder / 'vocab.txt'\n"
    "words.write_text('\\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'good', 'bad']))\n"
    "transformers.BertTokenizer(str(words)).save_pretrained(folder)\n"
    "s = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)\n"
    "made = transformers.BertConfig(vocab_size=7, id2label={0: 'no', 1: 'yes'}, label2id={'no': 0, 'yes': 1}, **s)\n"
    "transformers.BertForSequenceClassification(made).save_pretrained(folder)\n"
    "pathlib.Path('rows.csv').write_text('text,label\\ngood,yes\\nbad,no\\ngood good,yes\\n')\n"
    "assert run_classifier(folder, 'rows.csv').evaluate().n == 3",
    "sklearn": "from sklearn.dummy import DummyClassifier; from safecal.compat.sklearn import neg_nll\n"
    "assert -0.7 < neg_nll(DummyClassifier().fit(p[:, None], y), p[:, None], y) < -0.6",
    "stonesoup": "from stonesoup.plugins.safecal import ECDMetric; ECDMetric(generator_name='ECD')",
    "torch": "import torch; from safecal.engines import torch as engine\n"
    "assert engine.binary_summary(torch.tensor(y), torch.tensor(p)).n == 500",
    "torchmetrics": "import torch; from safecal.compat.torchmetrics import BinaryECD\n"
    "m = BinaryECD(); m.update(torch.tensor(p), torch.tensor(y)); m.compute()",
    "mlflow": "import os; os.environ |= {'MLFLOW_ALLOW_FILE_STORE': 'true', 'MLFLOW_DISABLE_TELEMETRY': 'true'}\n"
    "import mlflow; from safecal.compat.mlflow import log_evaluation\n"
    "mlflow.set_tracking_uri('file:runs')\n"
    "run = mlflow.get_run(log_evaluation(safecal.evaluate(y, p)))\n"
    "assert run.data.metrics['safecal/n'] == 500",
    "opentelemetry": "from safecal.compat.opentelemetry import observe; from safecal.monitor import Monitor\n"
    "observe(Monitor())",
    "lm-eval": "import json, pathlib, lm_eval; from lm_eval.tasks import TaskManager\n"
    "lines = (json.dumps({'q': f'Is it {k}?', 'choices': ['yes', 'no'], 'answer': k % 2}) for k in range(20))\n"
    "pathlib.Path('quiz.jsonl').write_text('\\n'.join(lines))\n"
    "pathlib.Path('quiz.yaml').write_text('''task: quiz\ndataset_path: json\ndataset_kwargs:\n"
    "  data_files:\n    test: quiz.jsonl\ntest_split: test\noutput_type: multiple_choice\ndoc_to_text: '{{q}}'\n"
    "doc_to_choice: choices\ndoc_to_target: answer\n"
    "process_results: !function safecal.compat.lm_eval.process_results\n"
    "metric_list:\n  - metric: ecd\n    aggregation: mean\n    higher_is_better: false\n''')\n"
    "tasks = TaskManager(include_path='.', include_defaults=False)\n"
    "found = lm_eval.simple_evaluate(model='dummy', tasks=['quiz'], task_manager=tasks)\n"
    "assert 'ecd,none' in found['results']['quiz']",
    "inspect": "import inspect_ai; from inspect_ai.dataset import Sample\n"
    "from inspect_ai.model import ModelOutput, ModelUsage, get_model\n"
    "from inspect_ai.scorer import choice; from inspect_ai.solver import multiple_choice\n"
    "from safecal.compat.lm_eval import read_samples; from safecal.errors import FileError\n"
    "asked = [Sample(input='?', choices=['w', 'x'], target='A')]\n"
    "task = inspect_ai.Task(dataset=asked, solver=multiple_choice(), scorer=choice())\n"
    "said = ModelOutput.from_content('mock', 'ANSWER: A')\n"
    "said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else a tokenizer would be fetched\n"
    "model = get_model('mockllm/model', custom_outputs=[said])\n"
    "log = inspect_ai.eval(task, model=model, log_dir='logs', display='none')[0].location\n"
    "try:\n    read_samples(log)\n    raise AssertionError(log)\n"
    "except FileError as error:\n    assert 'has no log-probabilities' in str(error), error\n",
    "postgresql": "import psycopg, safecal.watch.databases",
}
SMALL = ("base", "plot", "frames", "cli", "opentelemetry", "postgresql", "sklearn")
COMMON = ("base", "cli", "frames", "sklearn")
APART = ("inspect", "lm-eval")  # with the versions of `make test-apart`
OURS = ("bench", "lint", "site", "test", "test-all", "test-apart")  # for those who change safecal


def needs(project: dict[str, Any], extra: str) -> set[str]:
    """Return all that an extra installs beside the package, through other extras, too."""
    if extra == "base":
        return set(project["dependencies"])
    needed = needs(project, "base")
    for wanted in project["optional-dependencies"].get(extra, ()):
        others = re.fullmatch(r"safecal\[(.*)\]", wanted)
        if others is None:
            needed.add(wanted)
        else:
            needed = needed.union(*(needs(project, other.strip()) for other in others[1].split(",")))
    return needed


def changed(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the extras, and `base`, that are new or install something else than before."""
    extras = [extra for extra in now["optional-dependencies"] if extra not in OURS]
    known = {"base", *before["optional-dependencies"]}
    return [x for x in ("base", *extras) if x not in known or needs(before, x) != needs(now, x)]


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def before_this_change() -> dict[str, Any] | None:
    """Return the project as it was before this change; None where Git cannot tell."""
    head = _git("rev-parse", "HEAD")
    given = os.environ.get("SAFECAL_BASE")
    left = [_git("merge-base", "HEAD", name) for name in ([given] if given else ["origin/main", "main"])]
    base = next((commit for commit in left if commit not in (None, head)), "HEAD^")
    text = _git("show", f"{base}:pyproject.toml")
    return None if text is None else tomllib.loads(text)["project"]


def to_try(words: list[str]) -> list[str]:
    """Return the extras that the words of the command mean."""
    if words != ["--changed"]:
        return words or list(SMALL)
    before = before_this_change()
    if before is None:
        return list(COMMON)
    return changed(before, tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def tried(extra: str, wheel: Path) -> bool:
    """Install an extra in a new environment, and run its job there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        what = str(wheel) if extra == "base" else f"{wheel}[{extra}]"
        versions = str(ROOT / "constraints" / ("apart.txt" if extra in APART else "ci.txt"))
        own = os.environ | {"PIP_CONSTRAINT": versions, "PIP_BUILD_CONSTRAINT": versions}
        subprocess.run([python, "-m", "pip", "install", "--quiet", what], check=True, cwd=folder, env=own)
        done = subprocess.run(
            [python, "-W", "ignore", "-c", ROWS + JOBS[extra]], cwd=folder, capture_output=True, text=True
        )
    print(f"{extra:14} {'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
    if done.returncode:
        print(done.stderr)
    return done.returncode == 0


def main() -> int:
    """Try the extras that are named."""
    extras = to_try(sys.argv[1:])
    if not extras:
        print("No extra installs anything else than before.")
        return 0
    for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):  # the versions of our own runs, wherever pip is started
        os.environ[name] = str(ROOT / "constraints" / "ci.txt")
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(ROOT)]
        subprocess.run(pip, check=True)
        (wheel,) = Path(folder).glob("safecal-*.whl")
        failed = [extra for extra in extras if not tried(extra, wheel)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
