"""A clip so large that another model would be judged is refused at every door, and never offered."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import safecal
from safecal._checks.class_columns import certain_reason
from safecal._checks.classes import clip_for, clips_little, largest_clip
from safecal.engines.batches import Batch, evaluate_batches
from safecal.engines.frames import evaluate_frame
from safecal.errors import RangeError
from safecal.monitor import Monitor
from safecal.report import report_html

CLASSES = 10
NAMES = [f"p_{k}" for k in range(CLASSES)]
NOTE = "probabilities were clipped to [0.001, 1 - 0.001]."


def _sure(n: int = 600) -> tuple[Any, Any]:
    """Return outcomes and predictions of a network that is far too sure."""
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (n, CLASSES))
    p, q = (np.exp(scale * z) / np.exp(scale * z).sum(axis=1, keepdims=True) for scale in (3.0, 1.0))
    return (rng.random((n, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1), p


Y, P = _sure()
FRAME = pl.DataFrame({"y": Y} | dict(zip(NAMES, P.T, strict=True)))

DOORS: dict[str, Callable[[float], Any]] = {
    "arrays": lambda clip: safecal.evaluate(Y, P, clip=clip),
    "categorical": lambda clip: safecal.categorical(Y, P, clip=clip).evaluate(),
    "a metric": lambda clip: safecal.ecd(Y, P, clip=clip),
    "two classes": lambda clip: safecal.evaluate(Y == 0, P[:, 0], clip=10 * clip),
    "labels": lambda clip: safecal.evaluate(np.eye(CLASSES)[Y], P, by_label=True, clip=10 * clip),
    "a frame": lambda clip: evaluate_frame(FRAME, y_true="y", y_prob=NAMES, clip=clip),
    "a column": lambda clip: evaluate_frame(FRAME.with_columns(y=pl.col("y") == 0), y_true="y", y_prob="p_0",
                                            clip=10 * clip),
    "a column of lists": lambda clip: evaluate_frame(pl.DataFrame({"y": Y, "p": P.tolist()}), y_true="y", y_prob="p",
                                                     clip=clip),
    "batches": lambda clip: evaluate_batches(lambda: [Batch(safecal.categorical(Y, P, clip=clip))]),
    "a monitor": lambda clip: Monitor().update(Y, P, clip=clip),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_a_clip_that_makes_another_model_is_refused(door: str) -> None:
    with pytest.raises(RangeError, match=r"`clip` must be at most 0\.0\d* for .*another, vaguer model"):
        DOORS[door](0.005)
    DOORS[door](0.001)


def test_so_it_is_on_the_command_line(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "rows.csv")
    columns = ["--y", "y", *(word for name in NAMES for word in ("--prob", name)), "--clip", "0.005"]
    for command, status in (("evaluate rows.csv", 2), ("watch . --once --store history", 4)):
        words = [sys.executable, "-m", "safecal", *command.split(), *columns]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True)
        assert done.returncode == status
        said = " ".join(done.stderr.decode().split())
        assert "`--clip` must be at most 0.0022 for 10 classes" in said
        if status == 2:
            assert "name columns of `--logits`, or store all digits; else `--clip 0.0022`, and no more." in said


def test_the_clip_stands_beside_the_result() -> None:
    result = safecal.evaluate(Y, P, clip=0.001)
    assert result.notes == (NOTE,)
    assert NOTE in " ".join(str(result).split())
    assert NOTE in report_html(result)
    assert NOTE in json.dumps(result.to_dict())
    assert safecal.evaluate(Y, P, clip=1e-7).notes == ("probabilities were clipped to [1e-7, 1 - 1e-7].",)
    assert safecal.evaluate(Y, P).notes == ()


@pytest.mark.parametrize("door", [door for door in DOORS if door not in ("a metric", "a monitor")])
def test_it_does_at_every_door(door: str) -> None:
    assert len(DOORS[door](0.001).notes) == 1


@pytest.mark.parametrize("classes", [2, 3, 4, 5, 10, 11, 100, 1000, 32_000, 128_256])
def test_what_is_offered_is_allowed(classes: int) -> None:
    assert clips_little(float(largest_clip(classes)), classes)
    assert not clips_little(1.1 * float(largest_clip(classes)), classes)
    for decimals in range(10):
        clip = clip_for(classes, decimals)
        assert clip is None or clips_little(float(clip), classes)
        reason = certain_reason(3, 9, classes, decimals)
        assert reason.endswith(
            f"`clip={clip}`." if clip else "Pass finite `logits=`, or probabilities with all their digits."
        )
