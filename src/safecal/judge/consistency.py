"""Is a filter consistent, over time and over runs?

States of one run depend on each other, so nothing here pools over time: bands compare the runs at one step, and the
overall test compares the means of runs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack, final, get_args

import numpy as np
from scipy import special

from .. import documents
from .._checks import fail
from .._checks.arrays import different_runs, same_labels
from .._checks.columns import choice, expected_rows, fraction, run_column, spelled, steadied, steady, step_keys
from .._sums import Tally
from .._sums.splits import Plan, by_group
from .._sums.summary import Summary
from .._sums.sweep import tabulate
from .._sums.table import Table
from .._sums.table_views import arrow_stream, frame_of, key_columns
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike, BoolArray, FloatArray, Quantity
from ..errors import FormError
from ..families import Predictions
from ..inference import Interval, TestResult
from ..options import LimitOptions, Limits
from .display import Metric, evaluation_text, inference_rows, look_rows, number
from .evaluation import Evaluation
from .verdict import UNSAFE, Verdict

__all__ = ["Consistency", "assess_consistency", "evaluate_runs"]

_MOST_LOST = 0.05  # share of the rows beyond which those that are left cannot acquit
_PARTS = 8  # of the steps: the first eighth to the last
_BY_DESIGN = "Where runs differ in their steps by design, pass `expected=`, the number of rows there should be."


@final
@steadied
@dataclass(frozen=True, slots=True)
class Consistency:
    """How a filter's stated uncertainty compares with its errors: at each step, in each run, and overall.

    ``NEES = d + 2 ECD`` of d-dimensional Gaussian states: both say the same on two scales. For states that are not
    Gaussian, NEES is computed from ECD by this formula.

    Attributes
    ----------
    quantity : {"NEES", "NIS"}
        Whether the rows are errors of states, or innovations.
    evaluation : Evaluation
        Everything about all rows, with runs as clusters.
    steps, runs : Table
        Sums by step, and by run.
    step_medians : tuple of float
        Median excess of the runs at each step.
    expected : int
        How many rows there should be; those that are missing were lost.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> run, step = np.repeat(np.arange(50), 20), np.tile(np.arange(20), 50)
    >>> errors = rng.normal(size=(1000, 2))
    >>> consistency = safecal.assess_consistency(safecal.gaussian(errors, 0 * errors, std=0.7), run=run, step=step)
    >>> round(consistency.nees, 1), consistency.share_inside, consistency.verdict.decision
    (4.1, 0.0, 'UNSAFE')
    """

    quantity: str
    evaluation: Evaluation
    steps: Table
    runs: Table
    step_medians: tuple[float, ...]
    expected: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.evaluation.n

    @property
    def dimension(self) -> int:
        """Dimension of the states, or of the measurements."""
        return self.evaluation.dimension

    @property
    def ecd(self) -> float:
        """Mean excess of all rows, in nats: ``> 0`` over-confident, ``< 0`` under-confident, 0 consistent."""
        return self.evaluation.ecd

    @property
    def nees(self) -> float:
        """Mean NEES (or NIS) of all rows; the dimension, if consistent."""
        return self.dimension + 2.0 * self.ecd

    @property
    def median_run(self) -> float:
        """ECD of the median run. Where it lies far below `ecd`, a few runs make the mean."""
        return float(np.median(self.runs.ecd))

    @property
    def interval(self) -> Interval:
        """ECD with its confidence interval, from the means of runs."""
        return self.evaluation.interval

    @property
    def temperature(self) -> Interval:
        """By what factor covariances are too small, with its interval."""
        return self.evaluation.temperature

    @property
    def test(self) -> TestResult:
        """The test of calibration on the means of runs."""
        return self.evaluation.test

    @property
    def verdict(self) -> Verdict:
        """Is the filter safe? Decision and reason."""
        return self.evaluation.verdict

    @property
    def lost(self) -> int:
        """Rows that should be there and are not: gated, dropped or diverged."""
        return self.expected - self.n

    @property
    def share_lost(self) -> float:
        """Share of the expected rows that was lost. What is lost is rarely lost by chance: read ECD beside it."""
        return self.lost / self.expected

    def bands(self, level: float | None = None) -> FloatArray:
        """Return where the ECD of each step lies if the filter is consistent.

        For Gaussian states these are quantiles of the chi-square with as many degrees of freedom as the runs have
        dimensions at that step. Else they are those of the gamma law with the cumulants that the predictions state.

        Parameters
        ----------
        level : float, optional
            Probability of lying inside, at each step by itself; by default the level of the evaluation.

        Returns
        -------
        ndarray of shape (steps, 2)
            Lower and upper end, in nats; ``d + 2 *`` them for NEES.
        """
        level = self.evaluation.level if level is None else fraction(level, "level")
        tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
        return np.array([[_quantile(s, p) for p in tails] for s in self.steps.summaries])

    @property
    def inside(self) -> BoolArray:
        """True for steps whose ECD lies in the band."""
        band, ecd = self.bands(), self.steps.ecd
        return (ecd >= band[:, 0]) & (ecd <= band[:, 1])

    @property
    def share_inside(self) -> float:
        """Share of the steps inside their band; about the level, if the filter is consistent."""
        return float(self.inside.mean())

    @property
    def share_above(self) -> float:
        """Share of the steps above their band: over-confident."""
        return float((self.steps.ecd > self.bands()[:, 1]).mean())

    def to_frame(self, library: str | None = None) -> Any:
        """Return the steps as a DataFrame, one row each.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            ``step``, ``n``, ``ecd`` and ``median`` over the runs, ``low`` and ``high`` of the band in which a
            consistent filter stays, and ``inside``.
        """
        return frame_of(self._columns(), library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream(self._columns(), requested_schema)

    def _columns(self) -> dict[str, Any]:
        low, high = self.bands().T.tolist()
        steps = key_columns("step", self.steps.keys, self.steps.labels)
        means = {"n": self.steps.n.tolist(), "ecd": self.steps.ecd.tolist(), "median": list(self.step_medians)}
        return {**steps, **means, "low": low, "high": high, "inside": self.inside.tolist()}

    def plot(self) -> Any:
        """Draw ECD over the steps with its band, the median run beside the mean.

        Returns
        -------
        matplotlib.figure.Figure
            A new figure; `safecal.plot.ConsistencyDisplay` draws on axes of yours.
        """
        from ..plot.course import ConsistencyDisplay

        return ConsistencyDisplay.from_consistency(self).figure_

    def __repr__(self) -> str:
        rows = "states" if self.quantity == "NEES" else "innovations"
        title = f"safecal consistency: {self.n} {rows} in {len(self.runs)} runs of {len(self.steps)} steps"
        return evaluation_text(title, str(self.verdict), self._metrics(), [])

    def _metrics(self) -> list[Metric]:
        head = inference_rows(self.interval, self.temperature, self.test)
        above = 100.0 * self.share_above
        below = abs(100.0 * (1.0 - self.share_inside) - above)
        inside = f"of {len(self.steps)} steps, {100 * self.evaluation.level:g} % are expected;"
        median = self.dimension + 2.0 * self.median_run
        missing = " are missing, and nothing above covers them" if self.lost else ""
        return [
            head[0],
            ("median run", number(self.median_run, signed=True), "nat: half of the runs are above it"),
            (self.quantity, number(self.nees), f"{self.dimension} is consistent; median run {number(median)}"),
            *head[1:],
            *look_rows(self.verdict.looks),
            ("in the band", f"{100.0 * self.share_inside:.0f} %", f"{inside} {above:.0f} % above, {below:.0f} % below"),
            ("lost", f"{100.0 * self.share_lost:.1f} %", f"{self.lost} of {self.expected} rows{missing}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        medians = [documents.number(value) for value in self.step_medians]
        parts = {name: getattr(self, name).to_dict() for name in ("evaluation", "steps", "runs")}
        content = {"quantity": self.quantity, "step_medians": medians, "expected": self.expected}
        return documents.document("consistency", content | parts)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = {
            "quantity": documents.choice("NEES", "NIS"),
            "evaluation": Evaluation.from_dict,
            "steps": Table.from_dict,
            "runs": Table.from_dict,
            "step_medians": lambda value: tuple(documents.list_of(documents.numbers)(value)),
            "expected": documents.count(1),
        }
        values = documents.read("consistency", document, fields)
        n, tables = values["evaluation"].n, (values["steps"], values["runs"])
        documents.every((
            (len(values["step_medians"]) == len(values["steps"]), "must have a median for each of its `steps`"),
            (values["expected"] >= n, "must have an `expected` that is at least its number of rows"),
            (all(table.total.n == n for table in tables), "must have as many rows in `steps` and `runs` as in all"),
            (all(bool((table.n > 0).all()) for table in tables), "must have rows in each of its `steps` and `runs`"),
        ))  # fmt: skip
        return cls(**values)


def _quantile(s: Summary, probability: float) -> float:
    """Return a quantile of the mean excess if the predictions are right: a shifted gamma law (Pearson III)."""
    variance = s.sum_varentropy_weight2 + s.sum_numerical_variance_weight2
    skew = s.sum_third_cumulant_weight3 / variance**1.5 if variance > 0.0 else 0.0
    if abs(skew) < 1e-6:
        return math.sqrt(variance) * float(special.ndtri(probability)) / s.weight
    shape, scale = 4.0 / skew**2, s.sum_third_cumulant_weight3 / (2.0 * variance)
    tail = probability if skew > 0.0 else 1.0 - probability
    return scale * (float(special.gammaincinv(shape, tail)) - shape) / s.weight


@steady
@spelled(LimitOptions)
def assess_consistency(
    predictions: Predictions,
    *,
    run: ArrayLike,
    step: ArrayLike,
    quantity: Quantity = "NEES",
    expected: int | None = None,
    rng: np.random.Generator | int | None = None,
    **limits: Unpack[LimitOptions],
) -> Consistency:
    """Assess a filter from many runs: ECD and NEES at each step, in each run and overall.

    Parameters
    ----------
    predictions : Predictions
        States of all runs and steps: `gaussian`, `gaussian_mixture`, `particles` or `density`; or innovations,
        ``gaussian(measurement, predicted_measurement, cov=innovation_covariance)``.
    run : array-like of shape (n,)
        Which run, or which independent track, each row belongs to.
    step : array-like of shape (n,)
        Which step of it: a number, or a time.
    quantity : {"NEES", "NIS"}, default "NEES"
        What the rows are: errors of states, or innovations.
    expected : int, optional
        How many rows there should be, to tell how many were lost to gating or divergence. By default one in each run
        at each step; a run that is missing completely is not noticed. Where more than 5 % are lost, the verdict
        is never SAFE.
    rng : numpy.random.Generator or int, optional
        As in `evaluate`.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `evaluate`.

    Returns
    -------
    Consistency
        Print it for the verdict.

    See Also
    --------
    evaluate : For rows that are not a matter of time.

    Notes
    -----
    Chi-square tests that pool over the steps of correct filters reject 12 to 69 % of them at a nominal 5 %, since
    errors persist from step to step. A t-test on the means of 50 runs or more holds its level.

    Each eighth of the steps is judged as a group is, by bounds that compare runs: a filter that diverges late is not
    SAFE because it was too cautious before.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(1)
    >>> run, step = np.repeat(np.arange(100), 10), np.tile(np.arange(10), 100)
    >>> x_true = rng.normal(size=(1000, 4))
    >>> safecal.assess_consistency(safecal.gaussian(x_true, 0 * x_true, std=1.0), run=run, step=step)
    safecal consistency: 1000 states in 100 runs of 10 steps
    ...
    """
    if not isinstance(predictions, Predictions):
        hint = "build them with `safecal.gaussian(x_true, mean, cov=cov)`, or another family of states."
        raise fail(FormError, "predictions", "must be predictions", got=f"a {type(predictions).__name__}", hint=hint)
    choice(quantity, "quantity", get_args(Quantity))
    runs = run_column(run, predictions.n, predictions.outcome)
    keys, steps = step_keys(step, predictions.n, predictions.outcome)
    excess = different_runs((s.excess for s in predictions.blocks()), runs[0], steps, predictions.discrete)
    count = expected_rows(expected, runs, (steps, len(keys)))
    advice = _BY_DESIGN if expected is None else ""
    evaluation = evaluate_runs(predictions, run=run, step=step, expected=count, advice=advice, rng=rng, **limits)
    by_step, by_run = tabulate(predictions, [by_group(predictions, by) for by in ({"step": step}, {"run": run})], None)
    parts = np.split(excess[np.argsort(steps, kind="stable")], np.cumsum(np.bincount(steps))[:-1])
    return Consistency(quantity, evaluation, by_step, by_run, tuple(float(np.median(p)) for p in parts), count)


def evaluate_runs(
    predictions: Predictions,
    *,
    run: ArrayLike,
    step: ArrayLike,
    expected: int,
    advice: str = "",
    rng: np.random.Generator | int | None = None,
    **limits: Unpack[LimitOptions],
) -> Evaluation:
    """Evaluate rows of many runs, with runs as clusters.

    Each eighth of the steps is judged as a group is. The evaluation has these groups where one of them is
    over-confident beyond a limit, or suspected to be. Where too many of the ``expected`` rows are lost, nothing
    acquits; ``advice`` is what else to say then.
    """
    checked = Limits(**limits)
    same_labels(predictions.row_labels, cluster=run)
    parts = {"steps": _parts(step, predictions)}
    tally = Tally.of(predictions, Plan.of(predictions, "auto", None, "uniform"), by=parts, cluster=run)
    missing = 1.0 - predictions.n / expected
    if missing > _MOST_LOST:
        rows = f"{100 * missing:.3g} % of the {expected} rows are missing"
        tally = _left(tally, f"{rows}: what is dropped is rarely dropped by chance. {advice}".rstrip())
    whole = Evaluation.of(_without_groups(tally), checked, rows=predictions, rng=rng)
    if whole.verdict.decision == UNSAFE or not checked.everywhere:
        return whole
    by_parts = Evaluation.of(tally, checked, rows=predictions, rng=rng)
    return by_parts if any(place.type == "group" for place in by_parts.verdict.where) else whole


def _parts(step: ArrayLike, predictions: Predictions) -> AnyArray:
    """Return for each row which part of the steps it belongs to: ``"20 to 24"``."""
    keys, codes = step_keys(step, predictions.n, predictions.outcome)
    names = np.empty(len(keys), dtype=object)
    for steps in np.array_split(np.arange(len(keys)), min(_PARTS, len(keys))):
        ends = (keys[k] for k in (steps[0], steps[-1]))
        first, last = (f"{key:.10g}" if isinstance(key, float) else str(key) for key in ends)
        names[steps] = first if first == last else f"{first} to {last}"
    return np.asarray(names[codes])


def _left(tally: Tally, why: str) -> Tally:
    """Return sums that do not acquit, because of the rows that are missing."""
    look = tally.look or Look("left", "in the rows that are left")
    others = tuple(_left(other, why) for other in tally.others)
    return replace(tally, look=replace(look, acquits=False, why=f"{look.why} {why}".lstrip()), others=others)


def _without_groups(tally: Tally) -> Tally:
    return replace(tally, groups=None, pairs=None, group_nodes=None, others=tuple(map(_without_groups, tally.others)))
