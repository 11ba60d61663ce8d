"""What the tracking experiment found."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._types import FloatArray
from ..families.gaussian import gaussian
from ..judge.consistency import Consistency, assess_consistency
from ..maps.temperature import SafeTemperature
from .tracking_filters import Setting

__all__ = ["GATE", "Banana", "Filtered", "Inflation", "TrackingStudy", "inflate"]

_D = 4
GATE = 9.49  # the 95 % point of a chi-square with 4 degrees of freedom


@final
@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    """What one filter said in all runs.

    Attributes
    ----------
    name : str
        One of EKF, UKF, PF and KF; the last has a sensor that is linear, and is exact.
    truth, mean : ndarray of shape (runs, steps, 4)
        True states, and estimates.
    cov : ndarray of shape (runs, steps, 4, 4)
        Covariances; those of the particle filter are moments of its particles before resampling.
    nis : ndarray of shape (runs, steps)
        Normalised innovations squared; NaN for the particle filter.
    seconds : float
        How long it took.
    """

    name: str
    truth: FloatArray
    mean: FloatArray
    cov: FloatArray
    nis: FloatArray
    seconds: float

    @property
    def columns(self) -> tuple[Any, Any, Any, Any, Any]:
        """True states, means and covariances as rows, with the run and the step of each."""
        runs, steps = self.nis.shape
        run, step = np.repeat(np.arange(runs), steps), np.tile(np.arange(1, steps + 1), runs)
        return self.truth.reshape(-1, _D), self.mean.reshape(-1, _D), self.cov.reshape(-1, _D, _D), run, step

    def consistency(self, keep: Any = None) -> Consistency:
        """Assess the filter; ``keep`` marks rows to look at, as a gate would."""
        x, mean, cov, run, step = self.columns
        keep = slice(None) if keep is None else keep
        found = gaussian(x[keep], mean[keep], cov=cov[keep])
        return assess_consistency(found, run=run[keep], step=step[keep], expected=len(x))

    @property
    def nees(self) -> FloatArray:
        """NEES of each run and step, (runs, steps)."""
        x, mean, cov, _, _ = self.columns
        return (_D + 2.0 * gaussian(x, mean, cov=cov).score().excess).reshape(self.nis.shape)

    @property
    def rmse(self) -> float:
        """Root mean squared error of the position at the last step, in metres."""
        error = (self.truth - self.mean)[:, -1, (0, 2)]
        return float(np.sqrt(np.square(error).sum(axis=1).mean()))

    @property
    def nll(self) -> float:
        """Mean surprisal of the true states in nats; smaller is better."""
        x, mean, cov, _, _ = self.columns
        return gaussian(x, mean, cov=cov).summary().nll


@final
@dataclass(frozen=True, slots=True, eq=False)
class Banana:
    """The first posterior of one run, and the Gaussians that stand in its place.

    Attributes
    ----------
    run : int
        Which run.
    truth : ndarray of shape (2,)
        The true position.
    points, weight : ndarray of shape (particles, 2) and (particles,)
        Weighted positions of the particles.
    gaussians : dict
        Mean and covariance of the position by the name of the filter.
    """

    run: int
    truth: FloatArray
    points: FloatArray
    weight: FloatArray
    gaussians: dict[str, tuple[FloatArray, FloatArray]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Inflation:
    """Covariances of a filter multiplied by a safe temperature, fitted on some runs and judged on others.

    Attributes
    ----------
    factor : float
        One for all steps.
    factors : ndarray of shape (steps,)
        One for each step, fitted to runs, which are independent.
    ecd, nll : dict
        Of fresh runs: as given, with one factor, and with one for each step.
    """

    factor: float
    factors: FloatArray
    ecd: dict[str, float]
    nll: dict[str, float]


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrackingStudy:
    """All filters in one setting; a banana; and what inflation does for the extended Kalman filter.

    Attributes
    ----------
    setting : Setting
        What is tracked.
    runs, particles, seed : int
        As they were asked for.
    filters : dict
        What each filter said, by its name.
    banana : Banana or None
        Where EKF, UKF and PF were run.
    inflation : Inflation or None
        Where it was asked for, and there were 30 runs or more.
    """

    setting: Setting
    runs: int
    particles: int
    seed: int
    filters: dict[str, Filtered]
    banana: Banana | None
    inflation: Inflation | None

    def gated(self, name: str = "EKF") -> tuple[float, float, float]:
        """Return ECD, what it would seem to be if states of NEES > 9.49 were dropped, and the share of those."""
        found = self.filters[name]
        kept = found.consistency((found.nees <= GATE).reshape(-1))
        return found.consistency().ecd, kept.ecd, kept.share_lost


def inflate(fitted: Filtered, fresh: Filtered) -> Inflation:
    """Fit safe temperatures to some runs of a filter, and judge them on others.

    Parameters
    ----------
    fitted, fresh : Filtered
        Runs to fit to, and runs to judge by.

    Returns
    -------
    Inflation
        The factors, and what they buy.
    """
    x, mean, cov, _, step = fitted.columns
    whole = SafeTemperature().fit_states(x, mean, cov=cov)
    by_step = SafeTemperature(shared=False).fit_states(x, mean, cov=cov, by=step)
    y, other, spread, _, when = fresh.columns
    forms = {
        "as given": spread,
        "one factor": whole.apply_states(cov=spread),
        "one a step": by_step.apply_states(cov=spread, by=when),
    }
    sums = {name: gaussian(y, other, cov=form).summary() for name, form in forms.items()}
    assert by_step.groups_ is not None
    factors = np.array([by_step.groups_[k].temperature for k in sorted(set(step.tolist()))])
    return Inflation(
        whole.temperature_, factors, {k: s.ecd for k, s in sums.items()}, {k: s.nll for k, s in sums.items()}
    )
