"""A first answer: `safecal evaluate` on four hundred rows of CSV, beside importing the libraries that it stands on.

    python bench/first.py [--rounds 20]

Whole commands, from the start of Python to its end; seconds are those of the processor.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import command, in_rounds, safecal
from peers import rows

_ROWS = 400
OURS, PEER = "safecal evaluate small.csv", 'python -c "import numpy, scipy.special, polars"'


def results(rounds: int) -> list[dict[str, Any]]:
    """Measure both; a first run of each writes what Python keeps of its modules."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.csv"
        text = "".join(f"{y},{p}\n" for y, p in zip(*rows(_ROWS), strict=True))
        path.write_text(f"y,p\n{text}", encoding="ascii")
        words = {
            OURS: safecal("evaluate", str(path)),
            PEER: [sys.executable, "-c", "import numpy, scipy.special, polars"],
        }
        for name in words:
            command(words[name])
        measurements = in_rounds(list(words), lambda name: command(words[name]), rounds)
    return [{"name": name, **one} for name, one in measurements.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    print(json.dumps(results(parser.parse_args().rounds)))
