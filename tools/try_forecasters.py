"""Give safecal the distributions of NGBoost and skpro, and see that a factor that was planted is found.

    python tools/try_forecasters.py            in an environment of its own, made in a temporary folder
    python tools/try_forecasters.py --here     in this one, where both are installed

They ask for older versions of pandas than the tests do, so that the tests use objects that offer the same. Ends with
status 1 where a factor is not found.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("ngboost>=0.5", "skpro>=2.9")
FACTOR = 1.46


def forecasts() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of a library, outcomes as its distributions say but FACTOR times as far out, and these."""
    import numpy as np
    import pandas as pd
    from ngboost import NGBRegressor
    from sklearn.linear_model import LinearRegression
    from skpro.regression.residual import ResidualDouble

    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (4000, 1))
    y, far = 2.0 * x[:, 0] + rng.standard_normal(4000), FACTOR * rng.standard_normal(2000)
    boosted = NGBRegressor(n_estimators=60, verbose=False, random_state=0).fit(x[:2000], y[:2000])
    dist = boosted.pred_dist(x[2000:])
    yield "NGBoost", dist.loc + far * dist.scale, dist
    frame, outcome = pd.DataFrame(x, columns=["x"]), pd.DataFrame(y, columns=["y"])
    model = ResidualDouble(LinearRegression(), LinearRegression()).fit(frame[:2000], outcome[:2000])
    dist = model.predict_proba(frame[2000:])
    mean, deviation = (np.asarray(part).reshape(-1) for part in (dist.mean(), np.sqrt(dist.var())))
    yield "skpro", mean + far * deviation, dist


def tried() -> int:
    """Evaluate each, print its temperature, and count those whose factor is not found."""
    import safecal

    wrong = 0
    for name, y_true, dist in forecasts():
        result = safecal.density(y_true, dist).evaluate()
        low, high = result.temperature.low**0.5, result.temperature.high**0.5
        found = result.verdict.decision == "UNSAFE" and low <= FACTOR <= high
        wrong += not found
        print(f"{name}: {result.verdict.decision}, {low:.3g} to {high:.3g} times, {FACTOR} planted")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--here", action="store_true", help="in this environment")
    if parser.parse_args().here:
        return int(tried() > 0)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT), *NEEDED], check=True)
        return subprocess.run([python, __file__, "--here"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
