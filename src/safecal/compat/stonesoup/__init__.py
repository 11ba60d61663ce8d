"""Stone Soup: a metric generator for ECD and NEES of tracks, Monte-Carlo studies with one manager a run, innovations.

It is also registered as a plug-in: ``from stonesoup.plugins.safecal import ECDMetric``. It needs
``pip install "safecal[stonesoup]"``.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Unpack

import numpy as np

from ..._checks import fail
from ..._checks.columns import choice, spelled, whole_number
from ..._checks.forecasts import generator as random_generator
from ..._optional import require
from ..._types import FloatArray, IndexArray
from ...errors import EmptyError, FormError
from ...families import Predictions
from ...judge.consistency import Consistency, assess_consistency
from ...options import LimitOptions

require("stonesoup", "this module plugs into Stone Soup", "stonesoup")

from stonesoup.base import Property  # noqa: E402
from stonesoup.metricgenerator.base import MetricGenerator  # noqa: E402
from stonesoup.types.metric import SingleTimeMetric, TimeRangeMetric  # noqa: E402
from stonesoup.types.state import GaussianState  # noqa: E402
from stonesoup.types.time import TimeRange  # noqa: E402

from .states import States  # noqa: E402

__all__ = ["ECDMetric", "innovations", "monte_carlo"]


class _Pair(NamedTuple):
    """A true state, and the estimate of it by a track that was associated with it."""

    timestamp: datetime
    truth: Any
    state: Any
    where: str


class ECDMetric(MetricGenerator):  # type: ignore[misc]
    """ECD and NEES of tracks, at each time and overall.

    At each time it averages over the pairs of track and truth that the manager's associator found; without an
    associator there must be one track and one truth. Five metrics come out. ``"ECD at times"`` and ``"NEES at times"``
    can be drawn with Stone Soup's ``MetricPlotter``, one line for each generator. ``"ECD"``, ``"NEES"`` and
    ``"ECD share lost"`` are numbers: the means over all times, and the share of true states without an estimate.

    ECD is taken of each state in its own shape. Gaussian mixtures count as mixtures; particles by ``particles``. NEES
    is that of mean and covariance, whatever the shape. Components that are bearings or other angles of Stone Soup are
    wrapped. Estimates that have no density, such as those of a kernel Kalman filter, are refused with an error.

    Parameters
    ----------
    mapping : sequence of int, optional
        The components of the estimates that matter; by default all.
    truth_mapping : sequence of int, optional
        The components of the truths that correspond to them; by default the same.
    particles : {"moments", "neighbours"}, default "moments"
        How particles are scored, as in `safecal.particles`. Weights are those of the states in the track: leave the
        resampler out of the updater and resample afterwards, so that they are the weights before resampling.
    draws : int, default 64
        Draws for each mixture.
    seed : int, optional
        Seed of the draws.
    generator_name : str, default "ecd_generator"
        Name by which a ``MultiManager`` files the metrics.
    tracks_key, truths_key : str
        Names of tracks and truths in the manager.

    See Also
    --------
    monte_carlo : The same over many runs, with bands and tests.

    Examples
    --------
    >>> from datetime import datetime
    >>> from stonesoup.metricgenerator.manager import MultiManager
    >>> from stonesoup.types.groundtruth import GroundTruthPath, GroundTruthState
    >>> from stonesoup.types.state import GaussianState
    >>> from stonesoup.types.track import Track
    >>> from safecal.compat.stonesoup import ECDMetric
    >>> noon = datetime(2025, 1, 1, 12)
    >>> truth = GroundTruthPath([GroundTruthState([3.0, 0.0], timestamp=noon)])
    >>> track = Track([GaussianState([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], timestamp=noon)])
    >>> manager = MultiManager([ECDMetric()])
    >>> manager.add_data({"tracks": {track}, "groundtruth_paths": {truth}})
    >>> metrics = manager.generate_metrics()["ecd_generator"]
    >>> metrics["NEES"].value, metrics["ECD"].value
    (9.0, 3.5)
    """

    mapping: Sequence[int] = Property(default=None, doc="Components of the estimates that matter. Default all.")
    truth_mapping: Sequence[int] = Property(
        default=None, doc="Components of the truths that correspond to :attr:`mapping`. Default the same."
    )
    particles: str = Property(default="moments", doc='How particles are scored: "moments" or "neighbours".')
    draws: int = Property(default=64, doc="Draws for each Gaussian mixture.")
    seed: int = Property(default=None, doc="Seed of the draws.")
    generator_name: str = Property(
        default="ecd_generator", doc="Unique identifier to use when accessing generated metrics from MultiManager."
    )
    tracks_key: str = Property(default="tracks", doc="Key to access set of tracks added to MetricManager.")
    truths_key: str = Property(
        default="groundtruth_paths", doc="Key to access set of ground truths added to MetricManager."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice(self.particles, "particles", ("moments", "neighbours"))
        whole_number(self.draws, "draws", 3)

    def states(self) -> States:
        """Return an empty collection of pairs that are scored as this generator does."""
        return States(self.mapping, self.truth_mapping, self.particles, self.draws, random_generator(self.seed))

    def pairs(self, manager: Any) -> Iterator[_Pair]:
        """Pair true states with the estimates that the manager's association assigns to them, in the order of time.

        Parameters
        ----------
        manager : stonesoup MetricManager
            Holds tracks, truths and their association.

        Yields
        ------
        tuple
            Timestamp, true state, estimate, and words that name them.
        """
        pairs = []
        for track, truth, times in self._associated(manager):
            truth_at = {state.timestamp: state for state in last_states(truth)}
            for state in last_states(track):
                if state.timestamp in truth_at and (times is None or state.timestamp in times):
                    where = f"track {getattr(track, 'id', '?')} at {state.timestamp}"
                    pairs.append(_Pair(state.timestamp, truth_at[state.timestamp], state, where))
        yield from sorted(pairs, key=lambda pair: pair.timestamp)

    def _associated(self, manager: Any) -> Iterator[tuple[Any, Any, Any]]:
        tracks, truths = (manager.states_sets[key] for key in (self.tracks_key, self.truths_key))
        if manager.associator is None:
            if len(tracks) != 1 or len(truths) != 1:
                got = f"{len(tracks)} tracks and {len(truths)} truths"
                hint = "give the manager one, for example `MultiManager([...], associator=TrackToTruth(...))`."
                rule = "must have an associator, unless there is one track and one truth"
                raise fail(FormError, "manager", rule, got=got, hint=hint)
            yield next(iter(tracks)), next(iter(truths)), None
            return
        manager.associate_tracks(self)
        for association in manager.association_set:
            track = [item for item in association.objects if item in tracks]
            truth = [item for item in association.objects if item in truths]
            if track and truth:
                yield track[0], truth[0], _times(association)

    def expected(self, manager: Any) -> int:
        """Return how many true states there are in a manager."""
        return sum(len(last_states(truth)) for truth in manager.states_sets[self.truths_key])

    def compute_metric(self, manager: Any, **kwargs: Any) -> list[Any]:
        """Compute the metrics of the tracks and truths in a manager.

        Parameters
        ----------
        manager : stonesoup MetricManager
            Holds tracks, truths and their association.
        **kwargs : Any
            Not used.

        Returns
        -------
        list of stonesoup TimeRangeMetric
            ECD and NEES at times, their means, and the share of true states that was lost.
        """
        states, pairs = self.states(), list(self.pairs(manager))
        for pair in pairs:
            states.add(pair.truth, pair.state, pair.where)
        expected = self.expected(manager)
        lost = 1.0 - len({id(pair.truth) for pair in pairs}) / expected if expected else 0.0
        times = manager.list_timestamps(generator=self)
        span = TimeRange(min(times), max(times)) if len(times) > 1 else None  # one instant is no range
        metrics = [self._metric("ECD share lost", lost, span)]
        excess = nees = np.empty(0)
        if pairs:
            gaussian = states.gaussian()
            excess = states.predictions().score().excess
            nees = gaussian.dimension + 2.0 * gaussian.score().excess
        for name, values in (("ECD", excess), ("NEES", nees)):
            at_times = self._at_times(name, [pair.timestamp for pair in pairs], values)
            mean = float(values.mean()) if pairs else float("nan")
            metrics += [self._metric(f"{name} at times", at_times, span), self._metric(name, mean, span)]
        return metrics

    def _metric(self, title: str, value: Any, span: Any) -> Any:
        return TimeRangeMetric(title=title, value=value, time_range=span, generator=self)

    def _at_times(self, name: str, times: list[datetime], values: FloatArray) -> list[Any]:
        by_time: dict[datetime, list[float]] = {}
        for time, value in zip(times, values.tolist(), strict=True):
            by_time.setdefault(time, []).append(value)
        return [
            SingleTimeMetric(title=f"{name} at timestamp", value=float(np.mean(v)), timestamp=time, generator=self)
            for time, v in by_time.items()
        ]


def _times(association: Any) -> Any:
    """Return when an association holds: something that a timestamp can be looked up in, or None for always."""
    timestamp = getattr(association, "timestamp", None)
    return getattr(association, "time_range", None) if timestamp is None else {timestamp}


def last_states(path: Any) -> list[Any]:
    """Return the states of a track or a truth, the last one of each time."""
    by_time = {state.timestamp: state for state in path}
    return list(by_time.values())


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
    >>> study = monte_carlo(one_run() for _ in range(50))
    >>> study.runs.total.n, study.lost, abs(study.ecd) < 0.2
    (250, 0, True)
    """
    generator = ECDMetric() if generator is None else generator
    states, run, step, expected = generator.states(), [], [], 0
    for number, manager in enumerate(managers):
        expected += generator.expected(manager)
        first = min(s.timestamp for truth in manager.states_sets[generator.truths_key] for s in last_states(truth))
        for pair in generator.pairs(manager):
            states.add(pair.truth, pair.state, f"run {number}, {pair.where}")
            run.append(number)
            step.append((pair.timestamp - first).total_seconds())
    if not run:
        raise fail(EmptyError, "managers", "must hold a track that is associated with a truth", got="none")
    count = max(expected, len(run))
    return assess_consistency(states.predictions(), run=run, step=step, expected=count, rng=rng, **limits)


def innovations(tracks: Sequence[Any]) -> tuple[Predictions, IndexArray]:
    """Return the measurements that updated some tracks, with their predictions, and the track of each.

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
    states = States(None, None, "moments", 64, np.random.default_rng(0))
    owner = []
    for number, track in enumerate(tracks):
        for state in track:
            hypothesis = getattr(state, "hypothesis", None)
            predicted = getattr(hypothesis, "measurement_prediction", None)
            if hypothesis and isinstance(predicted, GaussianState):
                states.add(hypothesis.measurement, predicted, f"track {number} at {state.timestamp}")
                owner.append(number)
    if not owner:
        raise fail(FormError, "tracks", "must hold updates with a Gaussian prediction of the measurement", got="none")
    return states.gaussian(), np.array(owner, dtype=np.intp)
