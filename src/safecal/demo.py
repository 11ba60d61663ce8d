"""A minute with safecal: simulate a well-calibrated and an over-confident model, and evaluate both."""

import numpy as np

from .judge.evaluation import Evaluation
from .judge.front_door import evaluate
from .maps.front_door import recalibrate
from .maps.result import Recalibration

__all__ = ["main"]


def main() -> tuple[Evaluation, Recalibration]:
    """Simulate 10 000 labels and two models, print both evaluations, and return the second with what fixes it."""
    rng = np.random.default_rng(2025)
    log_odds = rng.uniform(-5.0, 5.0, 10_000)
    y_true = rng.random(10_000) < 1.0 / (1.0 + np.exp(-log_odds))
    print("A model that knows the true log-odds of every label.\n")
    print(evaluate(y_true, logits=log_odds))
    print("\n\nThe same model with its log-odds doubled: as accurate, and unsafe.\n")
    unsafe = evaluate(y_true, logits=2.0 * log_odds)
    print(unsafe)
    return unsafe, recalibrate(y_true, logits=2.0 * log_odds)


if __name__ == "__main__":
    main()
