"""Draw the pictures of the README and the documentation, from simulated models with fixed seeds.

python tools/draw_pictures.py    # writes docs/pictures/*.png
"""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import safecal

mpl.use("agg")

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"


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


def example(name: str) -> Figure:
    """Return the picture of an example of the gallery."""
    runpy.run_path(str(ROOT / "examples" / f"plot_{name}.py"))
    return plt.gcf()


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    figures = {"dashboard": demo().plot(), "local": hidden().local.plot().figure_}
    figures["six-models"] = example("six_models")
    for name, figure in figures.items():
        figure.savefig(FOLDER / f"{name}.png", dpi=110, bbox_inches="tight", metadata={"Software": None})


if __name__ == "__main__":
    main()
