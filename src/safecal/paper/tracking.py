"""Where ECD comes from: filters that track a target by range and bearing, and how sure they are of it.

The posterior is bent like a banana, and the extended Kalman filter does not see the bend. Its errors are those of the
others, and its innovations look right; its covariances are far too small.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._checks.columns import choice, whole_number
from .tracking_filters import FILTERS, SETTINGS, Setting, filtered, simulated
from .tracking_results import Banana, Filtered, TrackingStudy, inflate

__all__ = ["SEED", "run_tracking"]

_D = 4
SEED = 4  # the most typical of the first ten: see docs/tracking.md


def run_tracking(
    setting: str = "standard",
    *,
    runs: int = 100,
    particles: int = 20_000,
    seed: int = SEED,
    filters: Iterable[str] = FILTERS,
    inflated: bool = True,
    progress: Callable[[int], None] | None = None,
) -> TrackingStudy:
    """Track simulated targets by range and bearing, with each filter, in many runs.

    Parameters
    ----------
    setting : {"standard", "hard"}, default "standard"
        2 km away with a bearing good to 2 degrees, or 1 km away with one good to 5 degrees and a range good to 1 m.
    runs : int, default 100
        How many targets; at least 2.
    particles : int, default 20000
        Of the particle filter.
    seed : int, default 4
        Each run has draws of its own that depend on it and on the number of the run alone.
    filters : iterable of {"EKF", "UKF", "PF", "KF"}
        Which to run; by default all.
    inflated : bool, default True
        Whether to inflate the covariances of the EKF, too, and judge them on as many fresh runs.
    progress : callable, optional
        Called with the number of states after each run of a filter.

    Returns
    -------
    TrackingStudy
        `safecal.paper.tracking_words.tracking_text` words it.

    Examples
    --------
    >>> from safecal.paper.tracking import run_tracking
    >>> study = run_tracking(runs=3, filters=["EKF"], inflated=False)
    >>> study.filters["EKF"].consistency().runs.ecd.shape
    (3,)
    """
    choice(setting, "setting", tuple(SETTINGS))
    whole_number(runs, "runs", 2)
    whole_number(particles, "particles", 100)
    chosen, names = SETTINGS[setting], [choice(name, "filters", FILTERS) for name in filters]
    tick = progress or (lambda rows: None)
    found = {name: _filtered(chosen, name, range(runs), particles, seed, tick) for name in names}
    banana = _banana(chosen, found, particles, seed) if {"EKF", "UKF", "PF"} <= set(names) else None
    inflation = None
    if inflated and "EKF" in names and runs >= 30:
        fresh = _filtered(chosen, "EKF", range(runs, 2 * runs), particles, seed, tick)
        inflation = inflate(found["EKF"], fresh)
    return TrackingStudy(chosen, runs, particles, seed, found, banana, inflation)


def _filtered(
    setting: Setting, name: str, runs: range, particles: int, seed: int, tick: Callable[[int], None]
) -> Filtered:
    shape = (len(runs), setting.steps)
    truth, mean, cov, nis = (np.empty((*shape, *rest)) for rest in ((_D,), (_D,), (_D, _D), ()))
    began = time.perf_counter()
    for i, number in enumerate(runs):
        run = simulated(setting, np.random.default_rng([seed, number]))
        truth[i] = run.truth
        states = filtered(setting, name, run, particles, np.random.default_rng([seed, number, 1]))
        for k, state in enumerate(states):
            mean[i, k] = np.asarray(state.mean, dtype=np.float64).reshape(-1)
            cov[i, k] = np.asarray(state.covar, dtype=np.float64)
            nis[i, k] = _nis(state)
        tick(setting.steps)
    return Filtered(name, truth, mean, (cov + np.swapaxes(cov, -1, -2)) / 2.0, nis, time.perf_counter() - began)


def _nis(state: Any) -> float:
    predicted = getattr(getattr(state, "hypothesis", None), "measurement_prediction", None)
    if predicted is None:
        return float("nan")
    measured = state.hypothesis.measurement.state_vector
    gap = np.asarray(measured - predicted.state_vector, dtype=np.float64).reshape(-1)  # bearings wrap themselves
    return float(gap @ np.linalg.solve(np.asarray(predicted.covar, dtype=np.float64), gap))


def _banana(setting: Setting, found: dict[str, Filtered], particles: int, seed: int) -> Banana:
    """Return the first posterior of the run in which the EKF was as wrong as it was on average."""
    first = found["EKF"].nees[:, 0]
    number = int(np.abs(np.log(first / first.mean())).argmin())
    run = simulated(setting, np.random.default_rng([seed, number]))
    state = next(filtered(setting, "PF", run, particles, np.random.default_rng([seed, number, 1])))
    points = np.asarray(state.state_vector, dtype=np.float64)[(0, 2), :].T
    here = np.ix_((0, 2), (0, 2))
    gaussians = {
        name: (found[name].mean[number, 0, (0, 2)], found[name].cov[number, 0][here]) for name in ("EKF", "UKF")
    }
    return Banana(number, run.truth[0, (0, 2)], points, np.exp(state.log_weight), gaussians)
