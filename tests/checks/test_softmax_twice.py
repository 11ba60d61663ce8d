"""Probabilities that are passed as logits: their softmax is vague, so that a model that is far too sure was SAFE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import special

import safecal
from safecal.cli import main
from safecal.engines.batches import Batch, evaluate_batches
from safecal.errors import FormError

CLASSES = (2, 3, 10, 1000)


def _too_sure(classes: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes, and logits that are three times too large."""
    rng = np.random.default_rng(classes)
    true = rng.normal(0, 2, (n, classes))
    chance = special.softmax(true, axis=1)
    return (rng.random((n, 1)) > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1), 3.0 * true


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", CLASSES)
def test_are_refused_in_every_dtype(classes: int, dtype: type) -> None:
    y, z = _too_sure(classes)
    assert safecal.evaluate(y, logits=z).verdict.decision == "UNSAFE"
    twice = special.softmax(z, axis=1).astype(dtype)
    with pytest.raises(FormError, match="look like probabilities: pass them as `y_prob`"):
        safecal.evaluate(y, logits=twice)
    with pytest.raises(FormError, match="look like probabilities"):
        safecal.SafeTemperature().fit(y, logits=twice)


@pytest.mark.parametrize("classes", CLASSES)
def test_are_told_from_logits(classes: int) -> None:
    y, z = _too_sure(classes)
    p = special.softmax(z, axis=1)
    with np.errstate(divide="ignore"):
        others = (z, np.log(p), np.abs(z), p - p.mean(axis=1, keepdims=True), 1.05 * p, np.zeros_like(z))
    for logits in others:
        safecal.evaluate(y, logits=logits)
    p[-1] += 0.1  # one row that is none
    safecal.evaluate(y, logits=p)


@pytest.mark.parametrize("clustered", [False, True])
def test_one_column_of_probabilities_is_asked_about(clustered: bool) -> None:
    rng, question = np.random.default_rng(3), "All its log-odds lie between 0 and 1: are they probabilities?"
    z = rng.normal(3, 2, 1000)
    beside = {"cluster": np.arange(1000) // 2} if clustered else {}
    y, p = rng.random(1000) < special.expit(z / 2), special.expit(z)
    assert safecal.evaluate(y, p, **beside).verdict.decision == "UNSAFE"  # type: ignore[arg-type]
    assert question in safecal.evaluate(y, logits=p, **beside).verdict.reason  # type: ignore[arg-type]
    others = ({"y_prob": p}, {"logits": z}, {"logits": 1.2 * p}, {"logits": p - 0.2}, {"logits": 0.5 * p})
    for form in others:
        assert question not in safecal.evaluate(y, **form, **beside).verdict.reason  # type: ignore[arg-type]
    assert question not in safecal.evaluate(y[:50], logits=p[:50]).verdict.reason


def test_a_few_rows_may_look_like_it_by_chance() -> None:
    assert safecal.evaluate([0, 1, 0], logits=[[0.3, 0.7], [0.6, 0.4], [1.0, 0.0]]).n == 3


def test_are_refused_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y, z = _too_sure(3)
    p = special.softmax(z, axis=1)
    path = tmp_path / "rows.csv"
    rows = (",".join(map(str, (label, *row))) for label, row in zip(y, p, strict=True))
    path.write_text("\n".join(["y,a,b,c", *rows]))
    options = [word for name in "abc" for word in ("--logits", name)]
    assert main(["evaluate", str(path), *options, "--gate"]) == 2
    assert "look like probabilities: name the columns with `--prob`" in capsys.readouterr().err


@pytest.mark.parametrize("size", [1, 4, 100])
def test_are_refused_in_small_batches(size: int) -> None:
    y, z = _too_sure(3)

    def evaluated(logits: np.ndarray) -> safecal.Evaluation:
        parts = [slice(k, k + size) for k in range(0, len(y), size)]
        return evaluate_batches(lambda: (Batch(safecal.categorical(y[part], logits=logits[part])) for part in parts))

    assert evaluated(z).verdict.decision == "UNSAFE"
    with pytest.raises(FormError, match="look like probabilities"):
        evaluated(special.softmax(z, axis=1))


@pytest.mark.extra
def test_are_refused_by_torch() -> None:
    import torch

    from safecal.compat.torchmetrics import MulticlassCalibration
    from safecal.engines.torch import evaluate

    y, z = _too_sure(10)
    twice, label = torch.softmax(torch.from_numpy(z), -1), torch.from_numpy(y)
    for logits in (twice, twice.float(), twice.bfloat16()):
        with pytest.raises(FormError, match="look like probabilities"):
            evaluate(label, logits)
        with pytest.raises(FormError, match="say `from_logits=False`"):
            MulticlassCalibration(10, from_logits=True).update(logits, label)
    MulticlassCalibration(10, from_logits=True).update(torch.from_numpy(z), label)
