"""Install each extra alone in an environment of its own, and let it do its job.

    python tools/try_extras.py              every extra that is small
    python tools/try_extras.py base spark   these

`base` is the package without extras. Ends with status 1 where one of them fails.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ROWS = """
import numpy as np, safecal
rng = np.random.default_rng(0)
p = rng.random(500)
y = (rng.random(500) < p).astype(int)
"""
FILE = "import pathlib; pathlib.Path('f.csv').write_text('y,p\\n' + ''.join(f'{a},{b}\\n' for a, b in zip(y, p)))\n"
COMMAND = "from safecal.cli.main import main\n"

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
    "lm-eval": f"import runpy; runpy.run_path({str(ROOT / 'tools' / 'try_lm_eval.py')!r}, run_name='__main__')",
    "inspect": f"import runpy; runpy.run_path({str(ROOT / 'tools' / 'try_inspect.py')!r}, run_name='__main__')",
    "postgresql": "import psycopg, safecal.watch.postgresql",
}
SMALL = ("base", "plot", "frames", "cli", "opentelemetry", "postgresql", "sklearn")


def tried(extra: str) -> bool:
    """Install an extra in a new environment, and run its job there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        what = str(ROOT) if extra == "base" else f"{ROOT}[{extra}]"
        subprocess.run([python, "-m", "pip", "install", "--quiet", what], check=True, cwd=folder)
        done = subprocess.run(
            [python, "-W", "ignore", "-c", ROWS + JOBS[extra]], cwd=folder, capture_output=True, text=True
        )
    print(f"{extra:14} {'ok' if done.returncode == 0 else 'FAILED'}")
    if done.returncode:
        print(done.stderr)
    return done.returncode == 0


def main() -> int:
    """Try the extras that are named."""
    failed = [extra for extra in (sys.argv[1:] or SMALL) if not tried(extra)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
