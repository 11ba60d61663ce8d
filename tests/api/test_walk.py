"""How many files lie between a front door and the verdict: CONTRIBUTING.md tells what `tools/walk.py` counts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from safecal._kernels.compiled import available

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (`.+`) \| (\d+) \| (\d+) \|$", re.MULTILINE)
MOST = {"`evaluate(y, p)`": 22, "`safecal evaluate rows.parquet`": 32, "`safecal watch`": 45}


@pytest.mark.proof
@pytest.mark.skipif(not available(), reason="without the compiled kernel rows take another way")
def test_contributing_tells_how_many_files_a_datum_passes() -> None:
    pytest.importorskip("polars", minversion="1.38")
    # A process of its own: what earlier tests left in memory would not be passed again.
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "walk.py")], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    counted = ROW.findall(done.stdout)
    assert len(counted) == 4
    page = ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert page == counted, "copy the table that `python tools/walk.py` prints into CONTRIBUTING.md"
    assert not {name: before for name, before, _ in counted if int(before) > MOST.get(name, 32)}
