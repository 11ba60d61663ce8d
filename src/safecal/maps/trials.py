"""Which map to take: each is tried on rows that it was not fitted to, and the simplest that is good enough is taken."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack, final

import numpy as np

from .._types import FloatArray, IndexArray
from ..errors import UnavailableError
from ..families.predictions import Predictions
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate_predictions
from ..options import LimitOptions
from .affine import Affine
from .base import Grouping, Map, Rows, class_count
from .beta import Beta
from .folds import cross_fitted
from .identity import Identity
from .isotonic import Isotonic
from .states import Axes
from .temperature import Temperature
from .vector import Vector

__all__ = ["MAPS", "Candidate", "Trial", "candidates", "chosen", "tried"]

MAPS: dict[str, type[Map]] = {
    "identity": Identity,
    "temperature": Temperature,
    "affine": Affine,
    "beta": Beta,
    "isotonic": Isotonic,
    "vector": Vector,
    "axes": Axes,
}


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """What a map does on rows that it was not fitted to.

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
        Why the map could not be fitted; empty where it could, and then the numbers above are NaN.
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
@dataclass(frozen=True, slots=True)
class Trial:
    """A map that was tried: fitted to all rows, and what maps fitted to other folds make of each row."""

    name: str
    map: Map
    held_out: Predictions | None  # None where the map could not be fitted
    refusal: str = ""


def candidates(predictions: Predictions) -> list[str]:
    """Return the maps for some predictions, the simplest first."""
    classes = class_count(predictions)
    if classes is None:
        return ["identity", "temperature", "axes"] if predictions.family == "gaussian" else ["identity", "temperature"]
    more = ["beta", "isotonic"] if classes == 2 else ["vector"]
    return ["identity", "temperature", "affine", *more]


def tried(name: str, rows: Rows, grouping: Grouping | None, fold: IndexArray) -> Trial:
    """Try a map."""
    one = MAPS[name]()
    try:
        one._fit_rows(rows, grouping)
        one.family_, one.classes_, one.n_ = rows.predictions.family, class_count(rows.predictions), rows.n
        if isinstance(one, Identity):
            return Trial(name, one, rows.predictions)
        return Trial(name, one, cross_fitted(one, rows, grouping, fold))
    except UnavailableError as error:
        return Trial(name, one, None, str(error).split("\n", maxsplit=1)[0].removesuffix("."))


def chosen(
    trials: Sequence[Trial], rows: Rows, by: Any, **limits: Unpack[LimitOptions]
) -> tuple[Trial, list[Candidate], dict[str, Evaluation]]:
    """Return the simplest trial within one standard error of the best, the table of all, and their evaluations."""
    surprisals = {t.name: _surprisal(t.held_out) for t in trials if t.held_out is not None}
    w = np.ones(rows.n) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
    means = {name: float(np.average(s, weights=w)) for name, s in surprisals.items()}
    best = min(means, key=lambda name: (not math.isfinite(means[name]), means[name]))
    table, evaluations, taken = [], {}, None
    for trial in trials:
        if trial.held_out is None:
            table.append(Candidate(trial.name, refusal=trial.refusal))
            continue
        difference, error = _paired(surprisals[trial.name], surprisals[best], w, rows.cluster)
        if taken is None and difference <= error:
            taken = trial
        found = evaluate_predictions(trial.held_out, by=by, cluster=rows.cluster, sample_weight=rows.weight, **limits)
        evaluations[trial.name] = found
        worst = max((r.ecd.value for r in found.local), default=math.nan)
        table.append(
            Candidate(
                trial.name,
                means[trial.name],
                difference,
                error,
                found.ecd,
                worst,
                found.ece,
                found.verdict.decision,
                rows.n,
                trial.map.parameters_,
            )
        )
    assert taken is not None
    return taken, table, evaluations


def _surprisal(predictions: Predictions) -> FloatArray:
    found = predictions.score().surprisal
    if found is None:
        raise UnavailableError("an unnormalised density has no NLL, by which maps are compared.")
    return found


def _paired(a: FloatArray, b: FloatArray, w: FloatArray, cluster: IndexArray | None) -> tuple[float, float]:
    """Return the weighted mean difference and its standard error; infinite where only one of them is finite."""
    if not np.isfinite(a[w > 0.0]).all():
        same = bool((~np.isfinite(a) <= ~np.isfinite(b)).all())
        return (0.0, math.inf) if same else (math.inf, math.nan)
    share = w / w.sum()
    d = np.where(w > 0.0, a - b, 0.0)
    mean = float(share @ d)
    apart = share * (d - mean)
    if cluster is not None:
        apart = np.bincount(cluster, weights=apart)
    size = int((apart != 0.0).sum())
    return mean, math.sqrt(float(np.square(apart).sum()) * size / (size - 1)) if size > 1 else 0.0
