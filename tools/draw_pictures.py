"""Draw the pictures of the README and the documentation, from models with fixed seeds.

python tools/draw_pictures.py    # writes docs/pictures/*.png; that of the report needs Chromium
"""

import os
import runpy
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from PIL import Image

import safecal
from safecal import paper
from safecal.plot import ReliabilityDisplay

mpl.use("agg")

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
CHROMIUM = os.environ.get("SAFECAL_CHROMIUM") or shutil.which("chromium")


def demo() -> safecal.Evaluation:
    """Return the evaluation of the demonstration's over-confident model."""
    rng = np.random.default_rng(2025)
    log_odds = rng.uniform(-5.0, 5.0, 10_000)
    y_true = rng.random(10_000) < 1.0 / (1.0 + np.exp(-log_odds))
    return safecal.evaluate(y_true, logits=2.0 * log_odds)


def hidden() -> safecal.Evaluation:
    """Return the evaluation of a model that is right on average, and too sure of its surest predictions."""
    rng = np.random.default_rng(2025)
    log_odds = rng.normal(0.0, 2.0, 40_000)
    y_true = rng.random(40_000) < 1.0 / (1.0 + np.exp(-log_odds))
    return safecal.evaluate(y_true, logits=np.where(rng.random(40_000) < 0.3, 2.0, 0.45) * log_odds)


def two_models() -> Any:
    """Draw the dangerous and the cautious model of the three, which have the same ECE."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 5.2), layout="constrained")
    for ax, one in zip(axes, paper.three_models(), strict=False):
        evaluation = one.evaluation
        ReliabilityDisplay.from_evaluation(evaluation, ax=ax)
        name = f"{one.name[0].upper()}{one.name[1:]}"
        words = f"{name}: {evaluation.verdict.direction}\nECE {evaluation.ece:.2f}   ECD {evaluation.ecd:+.2f}"
        ax.set_title(words, loc="left", weight="bold", pad=40)  # above the legend
    return figure


def example(name: str) -> Any:
    """Return the picture of an example of the gallery."""
    runpy.run_path(str(ROOT / "examples" / f"plot_{name}.py"))
    return plt.gcf()


def report(path: Path) -> None:
    """Write what one sees first of a report."""
    if CHROMIUM is None:
        raise SystemExit("There is no Chromium on the path, which draws the report; set SAFECAL_CHROMIUM.")
    with tempfile.TemporaryDirectory() as folder:
        page, seen = Path(folder) / "report.html", Path(folder) / "seen.png"
        paper.three_models()[0].evaluation.report(page, title="Naive Bayes: is the digit 5 or more?")
        size = ["--hide-scrollbars", "--force-device-scale-factor=1.5", "--window-size=1000,1050"]
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", f"--screenshot={seen}"]
        subprocess.run([CHROMIUM, *quiet, *size, page.as_uri()], check=True, capture_output=True)
        Image.open(seen).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    figures = {"dashboard": demo().plot(), "local": hidden().local.plot().figure_, "two-models": two_models()}
    figures["six-models"] = example("six_models")
    for name, figure in figures.items():
        figure.savefig(FOLDER / f"{name}.png", dpi=110, bbox_inches="tight", metadata={"Software": None})
    report(FOLDER / "report.png")


if __name__ == "__main__":
    main()
