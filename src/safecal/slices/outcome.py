"""Features that tell what happened: among those for whom it went wrong, every model looks over-confident."""

import numpy as np

from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.gaussian import Gaussian
from ..families.predictions import Predictions
from .coding import CODES, Coded

__all__ = ["tells_the_outcome"]

_FEWER = 0.1  # of the mistakes that the model announces
_MOST_CLASSES = 10_000
_ROWS = 10_000  # whose announced mistakes are counted
_FEWEST = 40  # rows, of which a feature of many values tells all outcomes by chance


def tells_the_outcome(column: Coded, predictions: Predictions) -> bool:
    """Tell whether a feature knows the outcome far better than the model does, or is the outcome."""
    if isinstance(predictions, Gaussian):
        values = column.feature.values
        same = column.feature.kind == "number" and any(np.array_equal(values, x) for x in predictions.x_true.T)
        return bool(same)
    if not isinstance(predictions, Bernoulli | Categorical) or predictions.n < _FEWEST:
        return False
    happened = np.asarray(predictions.happened).astype(np.intp)
    classes = int(happened.max()) + 1
    if classes > _MOST_CLASSES:
        return False
    counts = np.bincount(column.codes.astype(np.intp) * classes + happened, minlength=CODES * classes)
    wrong = predictions.n - int(counts.reshape(CODES, classes).max(axis=1).sum())
    plain = predictions.n - int(np.bincount(happened).max())
    # Where outcomes hardly change, every feature tells them.
    return plain > 0 and wrong < _FEWER * min(_announced(predictions), plain)


def _announced(predictions: Predictions) -> float:
    confidence = predictions.take(np.arange(0, predictions.n, max(predictions.n // _ROWS, 1))).score().confidence
    assert confidence is not None
    return float((1.0 - confidence).mean()) * predictions.n
