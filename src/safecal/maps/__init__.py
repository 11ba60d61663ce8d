"""Maps that recalibrate predictions, and `Safe`, which rules over-confidence out after any of them.

Every map is fitted with ``fit``, ``fit_states`` or ``fit_predictions``, and applied with ``apply``, ``apply_states`` or
``apply_predictions``; ``to_dict`` and `from_dict` write and read it, ``to_python``, ``to_sql`` and ``to_torch`` take it
to where it is used. `safecal.recalibrate` tries several, and takes the simplest that is as good as the best.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack, final

import numpy as np

from .._checks import refused
from .._checks.columns import between, choice, spelled, steady, whole_number, yes_or_no
from .._types import ArrayLike, By, FloatArray, IndexArray, Labels
from ..errors import UnavailableError
from ..families import Predictions, predictions_of
from ..inference.local import Local
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..options import LimitOptions
from .base import FitRows, Grouping, Map, checked_rows
from .classes import Affine, Beta, Isotonic, Vector
from .result import Candidate, Recalibration
from .safe import PLAIN_MAPS, Identity, Safe, cross_fitted, folds_of, from_dict
from .states import Axes
from .temperature import SafeTemperature, Temperature

__all__ = [
    "Affine",
    "Axes",
    "Beta",
    "Candidate",
    "Identity",
    "Isotonic",
    "Map",
    "Recalibration",
    "Safe",
    "SafeTemperature",
    "Temperature",
    "Vector",
    "from_dict",
]

METHODS = ("auto", *(name for name in PLAIN_MAPS if name != SafeTemperature._kind))
_FEWEST = 20  # rows below which no map is tried
_FEWEST_A_CLASS = 10  # rows per class below which no map with a number for each class is tried
# By how much a number can become worse before a warning says so: nats of NLL, of a range, of a group; shares.
_NLL_SLACK, _RANGE_SLACK, _GROUP_SLACK, _SHARE_SLACK = 1e-3, 0.01, 5e-3, 5e-3


@final
@dataclass(frozen=True, slots=True)
class _Trial:
    """A map that was tried: fitted to all rows, with the rows as recalibrated by maps fitted to the other folds."""

    name: str
    map: Map
    held_out: Predictions | None  # None where the map could not be fitted
    refusal: str = ""


@steady
@spelled(LimitOptions)
def recalibrate(
    y_true: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    method: str = "auto",
    safe: bool = True,
    alpha: float = 0.05,
    folds: int = 5,
    by: By | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **limits: Unpack[LimitOptions],
) -> Recalibration:
    r"""Fix a model: try the maps on rows they were not fitted to, and take the simplest that is as good as the best.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Predictions
        What happened, as in `evaluate`; or predictions of any family, and nothing for ``y_prob``.
    y_prob : array-like of shape (n,) or (n, K)
        Probability of the positive class, or of each of K classes, of rows the model was not trained on.
    logits : array-like of shape (n,) or (n, K)
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``. They never saturate: prefer them.
    pos_label : object, optional
        The label of the positive class, for shape (n,).
    labels : sequence of K hashables, optional
        The names of the columns in their order, for shape (n, K).
    method : {"auto", "identity", "temperature", "affine", "beta", "isotonic", "vector", "axes"}, default "auto"
        A map of `safecal.maps`; with ``"auto"`` the simplest one whose held-out NLL is within one standard error of
        the best; the error is that of the difference, row by row. With too few rows it is the identity.
    safe : bool, default True
        Whether over-confidence is ruled out after the map, as `safecal.maps.Safe` does.
    alpha : float, default 0.05
        Accepted probability that the recalibrated predictions are over-confident.
    folds : int, default 5
        How many parts the rows are cut into. Clusters are never cut.
    by : array-like of shape (n,), or mapping of names to such, optional
        Fit a separate map to each group; that of a small group stays near the common map.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a patient, a track, a day.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    **limits : float
        The limits of the verdicts, as in `evaluate`.

    Returns
    -------
    Recalibration
        ``map``, ready to be applied; the ``table`` of all maps that were tried; the ``reason``; evaluations of held-out
        rows ``before`` and ``after``; and ``warnings`` where something becomes worse.

    See Also
    --------
    safecal.maps : The maps.
    evaluate : Says whether anything is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 4000)
    >>> happened = rng.random(4000) < 1 / (1 + np.exp(-(0.8 * z + 1.3)))
    >>> fixed = safecal.recalibrate(happened, logits=z)
    >>> print(fixed.reason.replace(". ", ".\n"))
    It happens more often than predicted.
    Affine is the simplest map within one standard error of the best held-out NLL.
    Log-odds are shrunk by a factor of 0.82 and moved up by 1.3.
    Then log-odds are multiplied by 0.946, so that over-confidence is ruled out.
    >>> fixed.map.apply([0.1, 0.5]).round(2).tolist()
    [0.38, 0.77]
    """
    predictions = predictions_of(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels)
    choice(method, "method", METHODS)
    yes_or_no(safe, "safe")
    between(alpha, "alpha", 0.0, 0.5)
    whole_number(folds, "folds", 2)
    rows, grouping = checked_rows(predictions, sample_weight, by, cluster)
    before = evaluate_predictions(predictions, by=by, cluster=cluster, sample_weight=sample_weight, **limits)
    names = _candidate_names(predictions) if method == "auto" else list(dict.fromkeys(("identity", method)))
    if rows.n < _FEWEST and method == "auto":
        count = "1 row is" if rows.n == 1 else f"{rows.n} rows are"
        return _leave_as_they_are(before, [], f"{count} too few to try maps on; {_FEWEST} are needed", rows)
    fold = folds_of(rows, folds)
    trials = [
        _Trial(name, Identity(), None, _too_few(rows))
        if method == "auto" and name in ("affine", "vector") and _too_few(rows)
        else _try_map(name, rows, grouping, fold)
        for name in names
    ]
    if method != "auto" and trials[-1].held_out is None:
        refused(trials[-1].refusal, None)
    evaluate = partial(evaluate_predictions, by=by, cluster=rows.cluster, sample_weight=rows.weight, **limits)
    chosen, table, evaluations = _choose(trials, rows, evaluate)
    if method != "auto":
        chosen = trials[-1]
    fix, after = chosen.map, evaluations[chosen.name]
    nll_of_map = after.nll
    if safe:
        assert chosen.held_out is not None
        safe_map = Safe(chosen.map._copy(), alpha, folds=folds)
        try:
            safe_map._follow(chosen.map, rows._replace(predictions=chosen.held_out), grouping)
            fix, after = safe_map, evaluate(safe_map.safe_.apply_predictions(chosen.held_out, by=by))
        except UnavailableError as error:
            if method != "auto":
                raise
            why = str(error).split("\n", maxsplit=1)[0].removesuffix(".")
            move = "" if grouping is None else ". Put small groups together under one name, or leave groups out"
            return _leave_as_they_are(before, table, why + move, rows)
    why = ""
    if method == "auto":
        name = type(chosen.map).__name__
        why = f"{name} is the simplest map within one standard error of the best held-out NLL. "
    reason = f"{_say_what_is_wrong(before)} {why}{fix.sentence_}"
    return Recalibration(fix, tuple(table), reason, before, after, _list_what_is_worse(before, after, nll_of_map))


def _leave_as_they_are(before: Evaluation, table: list[Candidate], why: str, rows: FitRows) -> Recalibration:
    """Return the identity, and why nothing else is taken."""
    identity = Identity().fit_predictions(rows.predictions)
    reason = f"Predictions are left as they are: {why}."
    return Recalibration(identity, tuple(table), reason, before, before, ())


def _candidate_names(predictions: Predictions) -> list[str]:
    """Return the maps for some predictions, the simplest first."""
    classes = predictions.classes
    if classes is None:
        return ["identity", "temperature", *(["axes"] if predictions.mapped == "states" else [])]
    more = ["beta", "isotonic"] if classes == 2 else ["vector"]
    return ["identity", "temperature", "affine", *more]


def _too_few(rows: FitRows) -> str:
    """Say so where a map with a number for each of three classes or more has too few rows in each."""
    classes = rows.predictions.classes or 2
    if classes == 2 or rows.n >= _FEWEST_A_CLASS * classes:
        return ""
    return f"{rows.n / classes:.2g} rows per class are too few; {_FEWEST_A_CLASS} are needed"


def _try_map(name: str, rows: FitRows, grouping: Grouping | None, fold: IndexArray) -> _Trial:
    """Try a map."""
    map_ = PLAIN_MAPS[name]()
    try:
        map_._fit_checked(rows, grouping)
        if isinstance(map_, Identity):
            return _Trial(name, map_, rows.predictions)
        return _Trial(name, map_, cross_fitted(map_, rows, grouping, fold))
    except UnavailableError as error:
        return _Trial(name, map_, None, str(error).split("\n", maxsplit=1)[0].removesuffix("."))


def _choose(
    trials: Sequence[_Trial], rows: FitRows, evaluate: Callable[[Predictions], Evaluation]
) -> tuple[_Trial, list[Candidate], dict[str, Evaluation]]:
    """Return the simplest trial within one standard error of the best, the table of all, and their evaluations."""
    surprisals = {t.name: _surprisal(t.held_out) for t in trials if t.held_out is not None}
    w = rows.weights
    means = {name: float(np.average(s, weights=w)) for name, s in surprisals.items()}
    best = min(means, key=lambda name: (not math.isfinite(means[name]), means[name]))
    table, evaluations, chosen = [], {}, None
    for trial in trials:
        if trial.held_out is None:
            table.append(Candidate(trial.name, refusal=trial.refusal))
            continue
        difference, error = _paired_difference(surprisals[trial.name], surprisals[best], w, rows.cluster)
        if chosen is None and difference <= error:
            chosen = trial
        evaluations[trial.name] = evaluation = evaluate(trial.held_out)
        table.append(
            Candidate(
                trial.name,
                nll=means[trial.name],
                difference=difference,
                error=error,
                ecd=evaluation.ecd,
                worst=_worst_estimate(evaluation.local, math.nan),
                ece=evaluation.ece,
                decision=evaluation.verdict.decision,
                n=rows.n,
                parameters=trial.map.parameters_,
            )
        )
    assert chosen is not None
    return chosen, table, evaluations


def _worst_estimate(local: Local, default: float) -> float:
    """Return the largest ECD of the ranges that are no small ones."""
    return float(max(local.column("ecd")[local.is_wide()], default=default))


def _surprisal(predictions: Predictions) -> FloatArray:
    surprisal = predictions.score().surprisal
    if surprisal is None:
        raise UnavailableError("an unnormalised density has no NLL, by which maps are compared.")
    return surprisal


def _paired_difference(a: FloatArray, b: FloatArray, w: FloatArray, cluster: IndexArray | None) -> tuple[float, float]:
    """Return the weighted mean difference and its standard error; infinite where only one of them is finite."""
    if not np.isfinite(a[w > 0.0]).all():
        infinite_too = bool((~np.isfinite(a) <= ~np.isfinite(b)).all())
        return (0.0, math.inf) if infinite_too else (math.inf, math.nan)
    share = w / w.sum()
    d = np.where(w > 0.0, a - b, 0.0)
    mean = float(share @ d)
    deviation = share * (d - mean)
    if cluster is not None:
        deviation = np.bincount(cluster, weights=deviation)
    size = int((deviation != 0.0).sum())
    return mean, math.sqrt(float(np.square(deviation).sum()) * size / (size - 1)) if size > 1 else 0.0


def _say_what_is_wrong(before: Evaluation) -> str:
    """Say what is wrong with predictions, as far as it is shown."""
    cox = before.cox
    # Without a slope, as of predictions that are all alike, its test is that of the shift once more.
    slope = cox.p_slope if cox is not None and math.isfinite(cox.slope.value) else 1.0
    if cox is not None and min(cox.p_shift, slope) < 0.05:
        diagnosis = before.verdict.diagnosis  # the reason must agree with it
        cause = "" if diagnosis is None else diagnosis.cause
        if cause == "shifted" or (cause not in ("too sharp", "too vague") and cox.p_shift <= slope):
            return f"It happens {'more' if before.esce > 0.0 else 'less'} often than predicted."
        return f"Its log-odds are too {'large' if cox.slope.value < 1.0 else 'small'}."
    if before.interval.low > 0.0:
        return "It is over-confident."
    if before.interval.high < 0.0:
        return "It is under-confident."
    if before.verdict.where:
        return "It is over-confident in places."
    return "Nothing is shown to be wrong on average."


def _list_what_is_worse(before: Evaluation, after: Evaluation, nll_of_map: float) -> tuple[str, ...]:
    """Say what a fix makes worse; ``nll_of_map`` is the NLL without a safe temperature."""
    warnings = []
    if after.nll > before.nll + _NLL_SLACK:
        price = ""
        if after.nll > nll_of_map:
            cost = after.nll - nll_of_map
            price = f" Ruling over-confidence out costs {cost:.4f} of it; with more rows it costs less."
        warnings.append(f"NLL becomes worse: {before.nll:.4f} before, {after.nll:.4f} after.{price}")
    chance = after.reliability
    if after.ece > before.ece + _SHARE_SLACK and chance is not None and after.ece > chance.ece_quantile:
        warnings.append(f"ECE becomes worse: {before.ece:.4f} before, {after.ece:.4f} after.")
    if after.accuracy < before.accuracy - _SHARE_SLACK:
        warnings.append(f"accuracy falls: {before.accuracy:.4f} before, {after.accuracy:.4f} after.")
    worst_before = _worst_estimate(before.local, 0.0)
    worst_after = max((r.ecd.value for r in after.local if r.at_least > 0.0), default=0.0)  # beyond what chance makes
    if worst_after > max(worst_before, 0.0) + _RANGE_SLACK:
        warnings.append(f"the worst range becomes worse: {worst_before:+.4f} nat before, {worst_after:+.4f} after.")
    ranks = ("SAFE", "UNDETERMINED", "UNSAFE")
    if ranks.index(after.verdict.decision) > ranks.index(before.verdict.decision):
        warnings.append(f"the verdict was {before.verdict.decision} and becomes {after.verdict.decision}.")
    if before.groups is not None and after.groups is not None:
        for key, summary in before.groups.items():
            nll = after.groups[key].nll
            if nll > summary.nll + _GROUP_SLACK:
                warnings.append(f"NLL of group {key!r} becomes worse: {summary.nll:.4f} before, {nll:.4f} after.")
    return tuple(warnings)
