"""What mends a model, and what it mends: a map that was chosen on held-out rows; poses, and factors for their axes."""

import math
import textwrap
from dataclasses import dataclass, fields, replace
from typing import Any, Self, Unpack, final

import numpy as np

from .. import documents
from .._checks.columns import steadied
from .._sums.table_views import frame_of
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike, By, FloatArray
from ..errors import SafecalError
from ..families.gaussian import Gaussian
from ..families.poses import Convention, axis_names
from ..inference import Interval
from ..judge.consistency import Consistency, assess_consistency, evaluate_runs
from ..judge.display import kind_of, number
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..options import LimitOptions, Limits
from .base import Map
from .safe import Safe
from .states import Axes

__all__ = ["AxisFinding", "Candidate", "PoseStudy", "Recalibration"]

_WIDTH = 80
_HEAD = ("map", "NLL", "above best", "ECD", "worst", "ECE", "size", "verdict")
_MOST_STEPS = 1000  # beyond which steps are not judged one by one
_LARGE = 0.2  # radians of a standard deviation beyond which first-order covariances of positions are too small


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """How a map does on rows that it was not fitted to.

    Attributes
    ----------
    name : str
        The map.
    nll : float
        Held-out NLL, in nats.
    difference, error : float
        By how much that is above the smallest one, and the standard error of this difference, row by row.
    ecd : float
        Held-out ECD, in nats.
    worst : float
        The largest ECD in a range of the held-out predictions.
    ece : float
        Held-out ECE; NaN for states.
    decision : str
        Verdict on the held-out predictions.
    n : int
        Rows that were used.
    parameters : int
        How many numbers are fitted.
    refusal : str
        Why the map could not be fitted: then the numbers above are NaN. Empty where it could.
    """

    name: str
    nll: float = math.nan
    difference: float = math.nan
    error: float = math.nan
    ecd: float = math.nan
    worst: float = math.nan
    ece: float = math.nan
    decision: str = ""
    n: int = 0
    parameters: int = 0
    refusal: str = ""


@final
@steadied
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Recalibration:
    """A map that corrects predictions, why it was taken, and how it does on rows that it was not fitted to.

    Attributes
    ----------
    map : Map
        Fitted to all rows: `apply` it.
    table : tuple of Candidate
        The maps that were tried: the held-out NLL of each, and more.
    reason : str
        What was wrong, which map was taken and what it does, in sentences.
    before, after : Evaluation
        The rows as they were given, and the same rows recalibrated by maps that were fitted to the other rows.
    warnings : tuple of str
        Numbers that become worse; empty where none does.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 2000)
    >>> happened = rng.random(2000) < 1 / (1 + np.exp(-z))
    >>> fixed = safecal.recalibrate(happened, logits=3 * z)
    >>> [row.name for row in fixed.table]
    ['identity', 'temperature', 'affine', 'beta', 'isotonic']
    >>> fixed.before.verdict.decision, fixed.after.verdict.decision
    ('UNSAFE', 'SAFE')
    """

    map: Map
    table: tuple[Candidate, ...]
    reason: str
    before: Evaluation
    after: Evaluation
    warnings: tuple[str, ...]

    def apply(
        self,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        by: By | None = None,
    ) -> FloatArray:
        """Return recalibrated probabilities, as the map's own `apply` does.

        Parameters
        ----------
        y_prob : array-like of shape (n,) or (n, K)
            Probabilities.
        logits : array-like of shape (n,) or (n, K)
            Log-odds or unnormalised log-probabilities, instead of ``y_prob``.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row: needed if groups were fitted, and only then.

        Returns
        -------
        ndarray of float64
            Probabilities of the shape that was given.
        """
        return self.map.apply(y_prob, logits=logits, by=by)

    def to_frame(self, library: str | None = None) -> Any:
        """Return the table as a DataFrame, one row for each map.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            The attributes of a `Candidate`.
        """
        names = [field.name for field in fields(Candidate)]
        return frame_of({name: [getattr(row, name) for row in self.table] for name in names}, library)

    def plot(self, *, figure: Any = None) -> Any:
        """Draw held-out rows before and after; needs matplotlib.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            An empty one to fill; by default a new one.

        Returns
        -------
        safecal.plot.RecalibrationDisplay
            The display, drawn.
        """
        from ..plot import RecalibrationDisplay

        return RecalibrationDisplay.from_evaluations(self.before, self.after, figure=figure)

    def __repr__(self) -> str:
        parts = [f"safecal recalibration: {self.before.n} rows, {kind_of(self.before.tally)}", *self._paragraphs()]
        rows = self._rows()
        if len(rows) > 1:
            refused = {c.name for c in self.table if c.refusal}
            fitted_rows = [row for row in rows if row[0] not in refused]
            widths = [
                max(len(row[0]) for row in rows),
                *(max(len(row[j]) for row in fitted_rows) for j in range(1, len(_HEAD))),
            ]
            lines = [_refused(row, widths[0]) if row[0] in refused else _line(row, widths) for row in rows]
            parts.append("\n".join([lines[0], "-" * len(_line(fitted_rows[0], widths)), *lines[1:]]))
            parts.append(
                "Each map is judged on rows that it was not fitted to. Worst: ECD of the worst\n"
                "range. Size: how many numbers are fitted."
            )
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        from ..html.notebook import recalibration_html

        return recalibration_html(self.after.verdict, self._paragraphs(wrap=False), self._rows())

    def _paragraphs(self, *, wrap: bool = True) -> list[str]:
        paragraphs = [self.reason]
        if self.table:
            paragraphs.append(
                f"Held-out rows: NLL {number(self.before.nll)} before and {number(self.after.nll)} after, "
                f"{self.before.verdict.decision} before and {self.after.verdict.decision} after. Evaluate the map on "
                "other rows, too: these chose it."
            )
        paragraphs += [f"Warning: {text}" for text in self.warnings]
        return [textwrap.fill(text, _WIDTH, break_on_hyphens=False) for text in paragraphs] if wrap else paragraphs

    def _rows(self) -> list[list[str]]:
        rows = [list(_HEAD)]
        for c in self.table:
            if c.refusal:
                rows.append([c.name, *[""] * 6, f"not fitted: {c.refusal}"])
                continue
            above = f"{number(c.difference)}±{number(c.error)}"
            numbers = [number(c.nll), above, number(c.ecd, signed=True), number(c.worst, signed=True), number(c.ece)]
            rows.append([c.name, *numbers, str(c.parameters), c.decision])
        return rows


def _line(row: list[str], widths: list[int]) -> str:
    first, *cells, last = (
        text.ljust(width) if j in (0, len(row) - 1) else text.rjust(width)
        for j, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *cells, last]).rstrip()


def _refused(row: list[str], width: int) -> str:
    """Write why a map was not fitted behind its name, in lines of the usual width."""
    indent = " " * (width + 2)
    return textwrap.fill(f"{row[0].ljust(width)}  {row[-1]}", _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


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
        consistency = None
        if runs is None:
            evaluation = _evaluate_poses(predictions, None, limits)
        elif len(np.unique(np.asarray(step))) <= _MOST_STEPS:
            consistency = assess_consistency(predictions, run=run, step=step, expected=expected, **limits)
            evaluation = consistency.evaluation
        else:
            count = predictions.n if expected is None else expected
            evaluation = evaluate_runs(predictions, run=runs, step=step, expected=count, **limits)
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
            {"name": a.name, "temperature": a.temperature.to_dict(), "factor": documents.number(a.factor)}
            for a in self.axes
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
    share = float((np.sqrt(variances.max(axis=-1)) > _LARGE).mean())
    if not share:
        return ()
    return (
        f"{100 * share:.3g} % of the poses have rotations uncertain by more than {_LARGE} rad, where covariances of the"
        " first order are too small by themselves: a turn bends the path",
    )
