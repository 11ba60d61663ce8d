"""Files that were cut: what is missing shows, or a note says that it may be."""

import json
from pathlib import Path

import numpy as np
import pytest

from safecal.cli import main

NOTE = "the file ends within a line: if it was cut, rows are missing, and its last number may be a part of one."


def _written(folder: Path, less: int) -> str:
    p = np.random.default_rng(0).random(300)
    text = "id,y,p\n" + "".join(f"{k},{int(x > 0.5)},{x:.6f}\n" for k, x in enumerate(p))
    path = folder / "rows.csv"
    path.write_text(text[: len(text) - less])
    return str(path)


@pytest.mark.parametrize("polars", [True, False])
@pytest.mark.parametrize("less", [7, 9, 11])
def test_a_row_that_lacks_a_field_is_refused(
    less: int, polars: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not polars:
        monkeypatch.setattr("safecal.inputs.sources.has_polars", lambda: False)
    path = _written(tmp_path, less + 2)
    assert main(["evaluate", path]) == 2
    assert "must not hold missing values" in capsys.readouterr().err


@pytest.mark.parametrize("less", [0, 1, 4])
def test_a_number_that_may_be_a_part_of_one_is_told_of(
    less: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", _written(tmp_path, less), "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["tally"].get("notes", [])
    assert notes == ([NOTE] if less else [])
