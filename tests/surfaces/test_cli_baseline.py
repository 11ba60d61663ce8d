"""``safecal evaluate --baseline``: is this release worse than the last one?"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Safecal = Callable[..., Any]


def _rows(path: Path, scale: float, seed: int, n: int = 4000) -> Path:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    path.write_text("y,z\n" + "".join(f"{a:d},{scale * b:.17g}\n" for a, b in zip(y, z, strict=True)), encoding="ascii")
    return path


@pytest.fixture
def before(tmp_path: Path, safecal: Safecal) -> Path:
    said = safecal("evaluate", _rows(tmp_path / "before.csv", 1.0, 1), "--y", "y", "--logits", "z", "--json")
    path = tmp_path / "before.json"
    path.write_text(said.out, encoding="utf-8")
    return path


@pytest.mark.parametrize(("scale", "status"), [(1.0, 0), (1.25, 5), (3.0, 3)])
def test_the_gate_has_a_status_for_it(
    tmp_path: Path, safecal: Safecal, before: Path, scale: float, status: int
) -> None:
    rows = _rows(tmp_path / "now.csv", scale, 2)
    said = safecal("evaluate", rows, "--y", "y", "--logits", "z", "--gate", "--baseline", before)
    assert said.status == status
    assert ("\nWORSE than the baseline: it is more over-confident than before: " in said.out) == (scale > 1.0)
    document = safecal("evaluate", rows, "--y", "y", "--logits", "z", "--json", "--baseline", before).out
    assert json.loads(document)["baseline"]["decision"] == ("WORSE" if scale > 1.0 else "NOT WORSE")


def test_what_is_no_evaluation_is_refused(tmp_path: Path, safecal: Safecal) -> None:
    rows = _rows(tmp_path / "now.csv", 1.0, 2, 50)
    words = ("evaluate", rows, "--y", "y", "--logits", "z", "--gate", "--baseline")
    said = safecal(*words, rows)
    assert said.status == 2
    assert f"{rows} must be JSON; it is not" in said.err
    assert "Hint: write it with `safecal evaluate FILE --json" in said.err
    assert "nothing.json cannot be read: No such file" in safecal(*words, tmp_path / "nothing.json").err
    old = tmp_path / "old.json"
    old.write_text('{"kind": "safecal.evaluation", "version": 1}', encoding="ascii")
    assert "must be of version 2; got 1" in safecal(*words, old).err
