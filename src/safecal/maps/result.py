"""The result of `recalibrate`: the map, and how each map that was tried does on held-out rows."""

import math
import textwrap
from dataclasses import dataclass, fields
from typing import Any, final

from .._checks.columns import steadied
from .._sums.table_views import frame_of
from .._types import ArrayLike, By, FloatArray
from ..judge.display import kind_of, number
from ..judge.evaluation import Evaluation
from .base import Map

__all__ = ["Candidate", "Recalibration"]

_WIDTH = 80
_HEAD = ("map", "NLL", "above best", "ECD", "worst", "ECE", "size", "verdict")


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
    """A map that mends predictions, why it was taken, and how it does on rows that it was not fitted to.

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
        from ..plot.recalibration import RecalibrationDisplay

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
