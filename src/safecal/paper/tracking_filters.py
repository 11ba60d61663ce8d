"""The filters of the tracking experiment, in Stone Soup: range and bearing of a target at constant velocity."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, final

import numpy as np

from .._optional import require
from .._types import FloatArray

__all__ = ["FILTERS", "SETTINGS", "Run", "Setting", "filtered", "simulated"]

FILTERS = ("EKF", "UKF", "PF", "KF")
_START = datetime(2025, 1, 1)
_POSITION = (0, 2)


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """What is tracked, and by which sensor at the origin.

    Attributes
    ----------
    name : str
        How it is called.
    mean, std : tuple of float
        Prior of the state [x, vx, y, vy], in metres and metres a second; truths are drawn from it.
    q : float
        Intensity of the white noise that accelerates the target.
    bearing, range : float
        Standard deviations of the measurements, in degrees and metres.
    position : float
        Standard deviation of x and y of the linear sensor, in metres: the sanity case, where a Kalman filter is exact.
    steps : int
        How many measurements, a second apart.
    """

    name: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    q: float
    bearing: float
    range: float
    position: float = 20.0
    steps: int = 40

    @property
    def noise(self) -> FloatArray:
        """Covariance of bearing, in radians, and range."""
        return np.diag([np.deg2rad(self.bearing) ** 2, self.range**2])


SETTINGS = {
    "standard": Setting("standard", (2000.0, -5.0, 0.0, 10.0), (200.0, 10.0, 200.0, 10.0), 1.0, 2.0, 2.0),
    "hard": Setting("hard", (1000.0, -5.0, 0.0, 10.0), (200.0, 5.0, 200.0, 5.0), 0.1, 5.0, 1.0),
}


@final
@dataclass(frozen=True, slots=True)
class Run:
    """One simulated target.

    Attributes
    ----------
    truth : ndarray of shape (steps, 4)
        True states.
    polar, linear : ndarray of shape (steps, 2)
        Bearing and range, and x and y, as two sensors measured them.
    """

    truth: FloatArray
    polar: FloatArray
    linear: FloatArray


def _stonesoup() -> None:
    require("stonesoup", "the filters are those of Stone Soup", "stonesoup")


def _transition(setting: Setting) -> Any:
    from stonesoup.models.transition.linear import (
        CombinedLinearGaussianTransitionModel,
        ConstantVelocity,
        LinearGaussianTimeInvariantTransitionModel,
    )

    model = CombinedLinearGaussianTransitionModel([ConstantVelocity(setting.q)] * 2)
    second = timedelta(seconds=1)  # each step: so its matrices are made once
    return LinearGaussianTimeInvariantTransitionModel(
        transition_matrix=model.matrix(time_interval=second), covariance_matrix=model.covar(time_interval=second)
    )


def simulated(setting: Setting, rng: np.random.Generator) -> Run:
    """Draw a target from the prior that the filters start from, let it move, and measure it at each step."""
    _stonesoup()
    second = timedelta(seconds=1)
    model = _transition(setting)
    step, root = model.matrix(time_interval=second), np.linalg.cholesky(model.covar(time_interval=second))
    state = rng.normal(setting.mean, setting.std)
    states = []
    for _ in range(setting.steps):
        state = step @ state + root @ rng.standard_normal(4)
        states.append(state)
    truth = np.array(states)
    x, y = truth[:, _POSITION].T
    polar = np.stack([np.arctan2(y, x), np.hypot(x, y)], axis=1)
    polar += rng.standard_normal(polar.shape) * np.sqrt(np.diag(setting.noise))
    linear = truth[:, _POSITION] + setting.position * rng.standard_normal((setting.steps, 2))
    return Run(truth, polar, linear)


def filtered(setting: Setting, name: str, run: Run, particles: int, rng: np.random.Generator) -> Iterator[Any]:
    """Yield the posterior of one of `FILTERS` at each step, as a state of Stone Soup; particles not yet resampled."""
    _stonesoup()
    times = [_START + timedelta(seconds=k + 1) for k in range(setting.steps)]
    if name == "PF":
        return _particle(setting, _detections(setting, run, times), particles, rng)
    return _kalman(setting, name, _detections(setting, run, times, linear=name == "KF"))


def _detections(setting: Setting, run: Run, times: list[datetime], linear: bool = False) -> list[Any]:
    from stonesoup.models.measurement.linear import LinearGaussian
    from stonesoup.models.measurement.nonlinear import CartesianToBearingRange
    from stonesoup.types.angle import Bearing
    from stonesoup.types.array import StateVector
    from stonesoup.types.detection import Detection

    if linear:
        model = LinearGaussian(4, _POSITION, setting.position**2 * np.eye(2))
        vectors = [StateVector(z) for z in run.linear]
    else:
        model = CartesianToBearingRange(4, _POSITION, setting.noise)
        vectors = [StateVector([Bearing(z[0]), z[1]]) for z in run.polar]
    return [Detection(z, timestamp=t, measurement_model=model) for z, t in zip(vectors, times, strict=True)]


def _kalman(setting: Setting, name: str, detections: list[Any]) -> Iterator[Any]:
    from stonesoup.predictor.kalman import KalmanPredictor
    from stonesoup.types.hypothesis import SingleHypothesis
    from stonesoup.types.state import GaussianState
    from stonesoup.updater.kalman import ExtendedKalmanUpdater, KalmanUpdater, UnscentedKalmanUpdater

    predictor = KalmanPredictor(_transition(setting))  # the motion is linear: all three predict alike
    options: dict[str, Any] = {"force_symmetric_covariance": True}
    updater = {
        "EKF": lambda: ExtendedKalmanUpdater(None, **options),
        "UKF": lambda: UnscentedKalmanUpdater(None, alpha=1.0, kappa=0.0, **options),
        "KF": lambda: KalmanUpdater(None, **options),
    }[name]()
    state = GaussianState(list(setting.mean), np.diag(np.square(setting.std)), timestamp=_START)
    for detection in detections:
        prediction = predictor.predict(state, timestamp=detection.timestamp)
        state = updater.update(SingleHypothesis(prediction, detection))
        yield state


def _particle(setting: Setting, detections: list[Any], count: int, rng: np.random.Generator) -> Iterator[Any]:
    from stonesoup.predictor.particle import ParticlePredictor
    from stonesoup.types.array import StateVectors
    from stonesoup.types.hypothesis import SingleHypothesis
    from stonesoup.types.state import ParticleState
    from stonesoup.updater.particle import ParticleUpdater

    transition = _transition(setting)
    transition.random_state = rng  # so that its draws are those of the run
    predictor, updater = ParticlePredictor(transition), ParticleUpdater(None)
    equal = np.full(count, -np.log(count))
    points, log_weight = _from_measurement(setting, transition, detections[0], count, rng)
    state = ParticleState(StateVectors(points), log_weight=log_weight, timestamp=detections[0].timestamp)
    yield state
    for detection in detections[1:]:
        if 1.0 / np.exp(2.0 * state.log_weight).sum() < count / 2.0:
            edges = np.cumsum(np.exp(state.log_weight))
            picked = np.searchsorted(edges / edges[-1], (rng.random() + np.arange(count)) / count)
            vectors = StateVectors(np.asarray(state.state_vector)[:, picked])
            state = ParticleState(vectors, log_weight=equal, timestamp=state.timestamp)
        prediction = predictor.predict(state, timestamp=detection.timestamp)
        state = updater.update(SingleHypothesis(prediction, detection))
        yield state


def _from_measurement(
    setting: Setting, transition: Any, detection: Any, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw particles where the first measurement says the target is, and weigh them by the prior: exact importance.

    Positions come from the measurement turned around, so their density is that of the measurement times the Jacobian
    ``1 / range``; velocities come from the prior given the position. What is left of the posterior is the weight.
    """
    second = timedelta(seconds=1)
    step = transition.matrix(time_interval=second)
    mean = step @ np.array(setting.mean)
    cov = step @ np.diag(np.square(setting.std)) @ step.T + np.asarray(transition.covar(time_interval=second))
    bearing, reach = (float(value) for value in np.asarray(detection.state_vector).reshape(-1))
    noise = rng.standard_normal((2, count)) * np.sqrt(np.diag(setting.noise))[:, None]
    angle, reach_drawn = bearing + noise[0], reach + noise[1]
    position = np.stack([reach_drawn * np.cos(angle), reach_drawn * np.sin(angle)])
    xy, velocity = list(_POSITION), [1, 3]
    gap = position - mean[xy, None]
    gain = np.linalg.solve(cov[np.ix_(xy, xy)], cov[np.ix_(xy, velocity)]).T
    spread = np.linalg.cholesky(cov[np.ix_(velocity, velocity)] - gain @ cov[np.ix_(xy, velocity)])
    points = np.empty((4, count))
    points[xy] = position
    points[velocity] = mean[velocity, None] + gain @ gap + spread @ rng.standard_normal((2, count))
    square = np.einsum("in,in->n", gap, np.linalg.solve(cov[np.ix_(xy, xy)], gap))
    log_weight = -0.5 * square + np.log(np.maximum(reach_drawn, np.finfo(float).tiny))
    top = log_weight.max()
    return points, log_weight - top - np.log(np.exp(log_weight - top).sum())
