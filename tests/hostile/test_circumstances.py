"""The same call in a forked child, beside a thread that changes its input, and with very many classes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import safecal
from safecal.engines.batches import Batch, evaluate_batches

ROOT = Path(__file__).resolve().parents[2]


def _rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, n)
    return rng.random(n) < special.expit(z), z


def _in_threads(y: np.ndarray, z: np.ndarray) -> float:
    parts = [Batch(safecal.bernoulli(y[k::4], logits=z[k::4])) for k in range(4)]
    return evaluate_batches(lambda: iter(parts), max_rows=1).ecd


# Runs in an interpreter of its own: libraries that other tests have imported object to a fork.
FORKED = """
import os, sys
from tests.hostile.test_circumstances import _in_threads, _rows
import safecal

y, z = _rows(4000)
wanted = safecal.evaluate(y, logits=z).ecd, _in_threads(y, z)
child = os.fork()
if child == 0:
    same = False
    try:
        same = (safecal.evaluate(y, logits=z).ecd, _in_threads(y, z)) == wanted
    finally:
        os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_what_its_parent_did() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["two classes", pytest.param("classes", marks=pytest.mark.proof)])
def test_input_that_another_thread_changes_meanwhile_ends_in_an_answer_or_an_error(kind: str) -> None:
    """Which of both values a row had does not matter; memory outside the arrays is never touched."""
    y, z = _rows(5000)
    values = z.copy() if kind == "two classes" else np.stack([0 * z, z, -z], axis=1)
    outcomes = y.astype(np.int64)
    done = threading.Event()

    def change() -> None:
        rng = np.random.default_rng(1)
        while not done.is_set():
            values[rng.integers(0, len(z), 500)] = rng.choice([0.0, np.nan, np.inf, -np.inf, 1e308])
            outcomes[rng.integers(0, len(z), 500)] = rng.choice([0, 1, 2**40, -5])
            values[...], outcomes[...] = (z if values.ndim == 1 else z[:, None]), y

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(5):
            try:
                safecal.evaluate(outcomes, logits=values, by=outcomes, bins=7)
            except (safecal.SafecalError, ValueError, IndexError, FloatingPointError, RuntimeWarning):
                continue  # a check passed, and then the values were others
    finally:
        done.set()
        thread.join()


@pytest.mark.proof
def test_a_hundred_thousand_classes_are_as_many_as_ten() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 3, (12, 100_000)).astype(np.float32)
    y = z.argmax(axis=1)
    y[::3] = rng.integers(0, 100_000, 4)
    found = safecal.evaluate(y, logits=z)
    wide = z.astype(np.longdouble)
    logs = wide - wide.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    s, h = -logs[np.arange(12), y], -(np.exp(logs) * logs).sum(axis=1)
    assert found.ecd == pytest.approx(float((s - h).mean()), rel=1e-9)
    assert found.nll == pytest.approx(float(s.mean()), rel=1e-9)
    p = np.exp(logs).astype(np.float64)
    assert safecal.evaluate(y, p / p.sum(axis=1, keepdims=True)).ecd == pytest.approx(found.ecd, rel=1e-6)
