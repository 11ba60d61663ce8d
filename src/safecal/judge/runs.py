"""Rows of many runs: everything about them, with what is missing, and with the parts of the runs where they differ."""

from dataclasses import replace
from typing import Final, Unpack

import numpy as np

from .._checks.arrays import same_labels
from .._checks.columns import step_keys
from .._sums.splits import Plan
from .._sums.tally import Tally
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike
from ..families.predictions import Predictions
from ..options import LimitOptions, Limits
from .evaluation import Evaluation
from .verdict import UNSAFE

__all__ = ["MOST_LOST", "evaluate_runs"]

MOST_LOST: Final = 0.05  # share of the rows beyond which those that are left cannot acquit
_PARTS = 8  # of the steps: the first eighth to the last


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
    over-confident beyond a limit, or suspected to be. Where too many rows are lost, nothing acquits.

    Parameters
    ----------
    predictions : Predictions
        The rows.
    run, step : array-like of shape (n,)
        Which run, and which step of it.
    expected : int
        How many rows there should be.
    advice : str, default ""
        What else to say where rows are missing.
    rng : numpy.random.Generator or int, optional
        As in `evaluate`.
    **limits
        As in `evaluate`.

    Returns
    -------
    Evaluation
        Everything about them.
    """
    checked = Limits(**limits)
    same_labels(predictions.row_labels, cluster=run)
    plan = Plan.of(predictions, "auto", None, "uniform")
    tally = Tally.of(predictions, plan, by={"steps": _parts(step, predictions)}, cluster=run)
    missing = 1.0 - predictions.n / expected
    if missing > MOST_LOST:
        tally = _left(tally, _reason_of(missing, expected, advice))
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
        first, last = (_shown(keys[k]) for k in (steps[0], steps[-1]))
        names[steps] = first if first == last else f"{first} to {last}"
    return np.asarray(names[codes])


def _shown(key: object) -> str:
    return f"{key:.10g}" if isinstance(key, float) else str(key)


def _reason_of(missing: float, expected: int, advice: str) -> str:
    rows = f"{100 * missing:.3g} % of the {expected} rows are missing"
    return f"{rows}: what is dropped is rarely dropped by chance. {advice}".rstrip()


def _left(tally: Tally, why: str) -> Tally:
    """Return sums that do not acquit, because of the rows that are missing."""
    look = tally.look or Look("left", "in the rows that are left")
    others = tuple(_left(other, why) for other in tally.others)
    return replace(tally, look=replace(look, acquits=False, why=f"{look.why} {why}".lstrip()), others=others)


def _without_groups(tally: Tally) -> Tally:
    others = tuple(map(_without_groups, tally.others))
    return replace(tally, groups=None, pairs=None, group_nodes=None, others=others)
