"""Studies of many runs, and innovations."""

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np
from stonesoup.types.state import GaussianState

from ..._checks.columns import spelled
from ..._checks.message import fail
from ..._types import IndexArray
from ...errors import EmptyError, FormError
from ...families.predictions import Predictions
from ...judge.consistency import Consistency, assess_consistency
from ...options import LimitOptions
from .metric import ECDMetric, states_of
from .states import States

__all__ = ["innovations", "monte_carlo"]


@spelled(LimitOptions)
def monte_carlo(
    managers: Iterable[Any],
    generator: ECDMetric | None = None,
    *,
    rng: np.random.Generator | int | None = None,
    **limits: Unpack[LimitOptions],
) -> Consistency:
    """Assess a filter from many runs, each in a manager of its own.

    Parameters
    ----------
    managers : iterable of stonesoup MultiManager
        One for each run, with tracks, truths and, where there are several, an associator. They are taken one after the
        other and not kept: a generator that runs the filter needs the memory of one run.
    generator : ECDMetric, optional
        Says what is scored and how; by default every component.
    rng : numpy.random.Generator or int, optional
        As in `safecal.assess_consistency`.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `safecal.evaluate`.

    Returns
    -------
    Consistency
        With the time since the first true state of a run, in seconds, as its steps. True states without an estimate are
        counted as lost.

    See Also
    --------
    safecal.assess_consistency : The same from arrays.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> import numpy as np
    >>> from stonesoup.metricgenerator.manager import MultiManager
    >>> from stonesoup.types.groundtruth import GroundTruthPath, GroundTruthState
    >>> from stonesoup.types.state import GaussianState
    >>> from stonesoup.types.track import Track
    >>> from safecal.compat.stonesoup import monte_carlo
    >>> rng = np.random.default_rng(0)
    >>> def one_run():
    ...     times = [datetime(2025, 1, 1) + timedelta(seconds=k) for k in range(5)]
    ...     truth = GroundTruthPath([GroundTruthState(rng.normal(size=2), timestamp=t) for t in times])
    ...     track = Track([GaussianState([0.0, 0.0], np.eye(2), timestamp=t) for t in times])
    ...     manager = MultiManager([])
    ...     manager.add_data({"tracks": {track}, "groundtruth_paths": {truth}})
    ...     return manager
    >>> found = monte_carlo(one_run() for _ in range(50))
    >>> found.runs.total.n, found.lost, abs(found.ecd) < 0.2
    (250, 0, True)
    """
    generator = ECDMetric() if generator is None else generator
    states, run, step, expected = generator.states(), [], [], 0
    for number, manager in enumerate(managers):
        expected += generator.expected(manager)
        first = min(s.timestamp for truth in manager.states_sets[generator.truths_key] for s in states_of(truth))
        for pair in generator.pairs(manager):
            states.add(pair.truth, pair.state, f"run {number}, {pair.where}")
            run.append(number)
            step.append((pair.timestamp - first).total_seconds())
    if not run:
        raise fail(EmptyError, "managers", "must hold a track that is associated with a truth", got="none")
    count = max(expected, len(run))
    return assess_consistency(states.predictions(), run=run, step=step, expected=count, rng=rng, **limits)


def innovations(tracks: Sequence[Any]) -> tuple[Predictions, IndexArray]:
    """Return the measurements that updated some tracks beside what was predicted of them, and the track of each.

    The mean of their NEES is NIS, the normalised innovation squared. Updates whose hypothesis holds no Gaussian
    prediction of the measurement, such as those of particle filters, are left out.

    Parameters
    ----------
    tracks : sequence of stonesoup Track
        Tracks made by Kalman-like updaters.

    Returns
    -------
    predictions : Predictions
        One row for each update.
    track : ndarray of int
        Which track each row belongs to, counted from 0.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> import numpy as np
    >>> from stonesoup.models.measurement.linear import LinearGaussian
    >>> from stonesoup.models.transition.linear import RandomWalk
    >>> from stonesoup.predictor.kalman import KalmanPredictor
    >>> from stonesoup.types.detection import Detection
    >>> from stonesoup.types.hypothesis import SingleHypothesis
    >>> from stonesoup.types.state import GaussianState
    >>> from stonesoup.types.track import Track
    >>> from stonesoup.updater.kalman import KalmanUpdater
    >>> from safecal.compat.stonesoup import innovations
    >>> noon = datetime(2025, 1, 1, 12)
    >>> prior = GaussianState([0.0], [[1.0]], timestamp=noon)
    >>> prediction = KalmanPredictor(RandomWalk(1.0)).predict(prior, timestamp=noon + timedelta(seconds=1))
    >>> detection = Detection([3.0], timestamp=prediction.timestamp)
    >>> updater = KalmanUpdater(LinearGaussian(1, [0], np.array([[1.0]])))
    >>> track = Track([prior, updater.update(SingleHypothesis(prediction, detection))])
    >>> predictions, _ = innovations([track])
    >>> round(1 + 2 * predictions.ecd, 12)  # an innovation of 3 with a variance of 1 + 1 + 1
    3.0
    """
    found = States(None, None, "moments", 64, np.random.default_rng(0))
    owner = []
    for number, track in enumerate(tracks):
        for state in track:
            hypothesis = getattr(state, "hypothesis", None)
            predicted = getattr(hypothesis, "measurement_prediction", None)
            if hypothesis and isinstance(predicted, GaussianState):
                found.add(hypothesis.measurement, predicted, f"track {number} at {state.timestamp}")
                owner.append(number)
    if not owner:
        raise fail(FormError, "tracks", "must hold updates with a Gaussian prediction of the measurement", got="none")
    return found.gaussian(), np.array(owner, dtype=np.intp)
