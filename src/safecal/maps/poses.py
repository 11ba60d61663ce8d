"""Poses of many runs: the verdict, the axes one by one, and the factors that mend the covariances."""

from dataclasses import dataclass, replace
from typing import Any, Self, Unpack, final

import numpy as np

from .. import documents
from .._sums.looks import Look
from .._types import AnyArray, ArrayLike, FloatArray
from ..errors import SafecalError
from ..families.gaussian import Gaussian
from ..families.poses import Convention, axis_names
from ..inference.results import Interval
from ..judge.consistency import Consistency, assess_consistency, evaluate_runs
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..options import LimitOptions, Limits
from .base import Map
from .safe import Safe
from .states import Axes

__all__ = ["AxisFinding", "PoseStudy"]

MOST_STEPS = 1000  # beyond which steps are not judged one by one
LARGE = 0.2  # radians of a standard deviation beyond which first-order covariances of positions are too small


@final
@dataclass(frozen=True, slots=True)
class AxisFinding:
    """The temperature of one axis by itself, and the factor of its standard deviation."""

    name: str
    temperature: Interval
    factor: float


@final
@dataclass(frozen=True, slots=True)
class PoseStudy:
    """Poses of some runs, judged.

    Attributes
    ----------
    evaluation : Evaluation
        Of all poses, with runs as clusters.
    consistency : Consistency or None
        Step by step; None for one run, or where there are more than 1000 steps.
    axes : tuple of AxisFinding
        Each axis: how many times too small its variance is, and the factor for its standard deviation.
    fix : Map or None
        The map that the factors come from: after it, over-confidence is ruled out. None where it cannot be fitted.
    suspicions : tuple of str
        Other readings of the numbers that explain the errors far better; where there is one, there are no factors.
    notes : tuple of str
        What else to know beside the verdict.
    """

    evaluation: Evaluation
    consistency: Consistency | None
    axes: tuple[AxisFinding, ...]
    fix: Map | None
    suspicions: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        predictions: Gaussian,
        convention: Convention,
        *,
        run: ArrayLike,
        step: ArrayLike,
        expected: int | None = None,
        suspicions: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        **limits: Unpack[LimitOptions],
    ) -> Self:
        """Judge the errors of poses, as `safecal.poses` gives them.

        Poses of one run depend on each other, and nothing tells how much: alone, they are never SAFE or UNSAFE.
        """
        runs = np.asarray(run) if len(np.unique(np.asarray(run))) > 1 else None
        stepwise = runs is not None and len(np.unique(np.asarray(step))) <= MOST_STEPS
        consistency = (
            assess_consistency(predictions, run=run, step=step, expected=expected, **limits) if stepwise else None
        )
        if consistency is not None:
            evaluation = consistency.evaluation
        elif runs is not None:
            count = predictions.n if expected is None else expected
            evaluation = evaluate_runs(predictions, run=runs, step=step, expected=count, **limits)
        else:
            evaluation = _evaluate_poses(predictions, None, limits)
        fix, no_factors = (None, ()) if suspicions else _fix_of(predictions, runs)
        factors = np.full(predictions.dimension, np.nan) if fix is None else fix._axes()[1]
        looks = {look.tally.look.name: look for look in evaluation.looks if look.tally.look is not None}
        axes = []
        for i, (name, factor) in enumerate(zip(axis_names(convention), factors.tolist(), strict=True)):
            axis = looks[name] if name in looks else _evaluate_poses(predictions.marginal((i,)), runs, limits)
            axes.append(AxisFinding(name, axis.temperature, factor))
        notes = (*notes, *no_factors, *_note_wide_rotations(predictions, convention))
        return cls(evaluation, consistency, tuple(axes), fix, suspicions, notes)

    @property
    def several(self) -> bool:
        """Whether there are several runs, so that intervals mean something."""
        return self.evaluation.tally.clusters is not None

    @property
    def factors(self) -> FloatArray:
        """The factor of each axis of the standard deviations; NaN where it is not known."""
        return np.array([axis.factor for axis in self.axes])

    @property
    def matrix(self) -> FloatArray:
        """The factor of each entry of the covariances."""
        return np.outer(self.factors, self.factors)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        axes = [
            {
                "name": axis.name,
                "temperature": axis.temperature.to_dict(),
                "factor": documents.number(axis.factor),
            }
            for axis in self.axes
        ]
        content = {
            "evaluation": self.evaluation.to_dict(),
            "consistency": None if self.consistency is None else self.consistency.to_dict(),
            "axes": axes,
            "matrix": None if self.fix is None else self.matrix.tolist(),
            "fix": None if self.fix is None else self.fix.to_dict(),
            "suspicions": list(self.suspicions),
            "notes": list(self.notes),
        }
        return documents.document("poses", content)


def _evaluate_poses(predictions: Gaussian, runs: AnyArray | None, limits: LimitOptions) -> Evaluation:
    if runs is not None:
        return evaluate_predictions(predictions, cluster=runs, **limits)
    description = "in one run, taken as if its errors did not depend on each other"
    why = "Errors of one run do depend on each other: give several runs, each in a file of its own."
    look = Look("one run", description, condemns=False, acquits=False, why=why)
    return Evaluation.of(replace(replace(predictions, parts=()).tally(), look=look), Limits(**limits))


def _fix_of(predictions: Gaussian, runs: AnyArray | None) -> tuple[Map | None, tuple[str, ...]]:
    """Find a factor for each axis after which over-confidence is ruled out; means are left where they are."""
    if runs is None:
        return None, ("factors for the covariances need several runs",)
    try:
        return Safe(Axes(bias=False)).fit_predictions(predictions, cluster=runs), ()
    except SafecalError as error:
        return None, (f"there are no factors for the covariances: {str(error).splitlines()[0].rstrip('.')}",)


def _note_wide_rotations(predictions: Gaussian, convention: Convention) -> tuple[str, ...]:
    """Say where rotations are so uncertain that the tangent space is no longer a good map of them."""
    turns = [i for i, name in enumerate(axis_names(convention)) if name.startswith("rotation")]
    variances = np.diagonal(np.asarray(predictions.spread, dtype=np.float64), axis1=-2, axis2=-1)[..., turns]
    share = float((np.sqrt(variances.max(axis=-1)) > LARGE).mean())
    if not share:
        return ()
    return (
        f"{100 * share:.3g} % of the poses have rotations uncertain by more than {LARGE} rad, where covariances of the"
        " first order are too small by themselves: a turn bends the path",
    )
