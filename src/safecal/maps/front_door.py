"""The front door of recalibration: from rows to the map that mends them, and why it was taken."""

from collections.abc import Mapping
from typing import Any, Unpack

from .._checks.columns import choice, clusters, group_codes, weights, whole_number
from .._checks.maps import between, refused, yes_or_no
from .._checks.rows import same_labels
from .._steady import steady
from .._types import ArrayLike, Labels
from ..errors import UnavailableError
from ..families.classifier import predictions_of
from ..families.predictions import Predictions
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate_predictions
from ..options import LimitOptions
from .base import Grouping, Map, Rows
from .folds import folds_of
from .identity import Identity
from .result import Recalibration
from .safe import Safe
from .sentences import worse, wrong
from .trials import MAPS, Candidate, Trial, candidates, chosen, tried

__all__ = ["METHODS", "recalibrate"]

METHODS = ("auto", *MAPS)
_FEWEST = 20  # rows below which no map is tried


@steady
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
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    **limits: Unpack[LimitOptions],
) -> Recalibration:
    r"""Find what fixes a model: try the maps on rows they were not fitted to, and take the simplest that is as good.

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
        A map of `safecal.maps`; with ``"auto"`` the simplest whose held-out NLL is within one standard error, of the
        difference row by row, of the best. That is the identity where rows are too few to do good.
    safe : bool, default True
        Whether over-confidence is ruled out after the map, as `safecal.maps.Safe` does.
    alpha : float, default 0.05
        Accepted probability that what comes out is over-confident.
    folds : int, default 5
        How many parts the rows are cut into. Clusters are never cut.
    by : array-like of shape (n,), or mapping of names to such, optional
        Fit each group a map of its own, near the common one where the group is small.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a patient, a track, a day.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    **limits : float
        The limits of the verdicts, as in `evaluate`.

    Returns
    -------
    Recalibration
        ``map``, ready to be applied; ``table`` of what was tried; ``reason``; what held-out rows look like before and
        after; and ``warnings`` where something becomes worse.

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
    Then logits are multiplied by 0.946, so that over-confidence is ruled out.
    >>> fixed.map.apply([0.1, 0.5]).round(2).tolist()
    [0.38, 0.77]
    """
    predictions = predictions_of(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels)
    choice(method, "method", METHODS)
    yes_or_no(safe, "safe")
    between(alpha, "alpha", 0.0, 0.5)
    whole_number(folds, "folds", 2)
    columns = by if isinstance(by, Mapping) else {"by": by}
    same_labels(predictions.row_labels, sample_weight=sample_weight, cluster=cluster, **columns)
    n, reference = predictions.n, predictions.outcome
    codes = None if cluster is None else clusters(cluster, n, reference)[0]
    rows = Rows(predictions, weights(sample_weight, n, reference), codes)
    grouping = None if by is None else Grouping(*group_codes(by, n, reference)[1:])
    before = evaluate_predictions(predictions, by=by, cluster=cluster, sample_weight=sample_weight, **limits)
    names = candidates(predictions) if method == "auto" else list(dict.fromkeys(("identity", method)))
    if n < _FEWEST and method == "auto":
        return _left(before, [], f"{n} rows are too few to try maps on; {_FEWEST} are needed", rows)
    fold = folds_of(rows, folds)
    trials = [tried(name, rows, grouping, fold) for name in names]
    if method != "auto" and trials[-1].held_out is None:
        refused(trials[-1].refusal, None)
    taken, table, evaluations = chosen(trials, rows, by, **limits)
    if method != "auto":
        taken = trials[-1]
    found, after = taken.map, evaluations[taken.name]
    if safe:
        try:
            found, after = _made_safe(taken, rows, grouping, alpha, folds, by, **limits)
        except UnavailableError as error:
            if method != "auto":
                raise
            return _left(before, table, str(error).split("\n", maxsplit=1)[0].removesuffix("."), rows)
    why = ""
    if method == "auto":
        name = type(taken.map).__name__
        why = f"{name} is the simplest map within one standard error of the best held-out NLL. "
    reason = f"{wrong(before)} {why}{found.sentence_}"
    return Recalibration(found, tuple(table), reason, before, after, worse(before, after))


def _made_safe(
    taken: Trial,
    rows: Rows,
    grouping: Grouping | None,
    alpha: float,
    folds: int,
    by: Any,
    **limits: Unpack[LimitOptions],
) -> tuple[Map, Evaluation]:
    """Return the map with its safe temperature, and what both make of rows that the map was not fitted to."""
    assert taken.held_out is not None
    made = Safe(taken.map._copy(), alpha, folds=folds)
    made._follow(taken.map, rows._replace(predictions=taken.held_out), grouping)
    after = made.safe_.apply_predictions(taken.held_out, by=by)
    found = evaluate_predictions(after, by=by, cluster=rows.cluster, sample_weight=rows.weight, **limits)
    return made, found


def _left(before: Evaluation, table: list[Candidate], why: str, rows: Rows) -> Recalibration:
    """Return predictions as they are, and why."""
    same = Identity().fit_predictions(rows.predictions)
    reason = f"Predictions are left as they are: {why}."
    return Recalibration(same, tuple(table), reason, before, before, ())
