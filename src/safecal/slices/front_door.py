"""The front door: from predictions and features to the slices for which the model is over-confident."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .._checks.columns import choice, cluster_codes, fraction, same_labels, spelled, weights, whole_number
from .._checks.message import fail
from .._steady import steady
from .._sums.tally import Tally
from .._types import AnyArray, ArrayLike, BoolArray, FloatArray, IndexArray
from ..errors import FormError, ShapeError
from ..families.predictions import Predictions
from ..inference.calibration import generator
from .coding import Coded, coded
from .conditions import Condition
from .discovery import BEAM, Search
from .estimation import Estimate, estimates, membership
from .features import Feature, Unreadable, columns_of, read_feature
from .outcome import tells_the_outcome
from .power import reach_of
from .results import Slice, Slices

__all__ = ["find_slices"]

DRAWN = 1_000_000  # rows that are searched, of both halves
_FEWEST = 20  # rows of a slice in a half
_IMPOSSIBLE = 40.0  # nats, in the search alone, of an outcome that was called impossible
_ALIKE = 0.5  # of the rows of either, from which two slices are one

Progress = Callable[[float], None]


@steady
@spelled()
def find_slices(
    predictions: Predictions,
    features: Any,
    *,
    depth: int = 2,
    min_share: float = 0.02,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    direction: Literal["over", "under"] = "over",
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> Slices:
    """Find the slices of the rows for which a model is over-confident, with intervals that hold.

    Rows, or clusters, are halved. The best three slices of each half are looked for there, and estimated on the other
    half, which had no part in the choice. So a printed ECD is not flattered by the search, and the intervals of all
    slices hold together: a calibrated model has none in ``level`` of all samples at least.

    Parameters
    ----------
    predictions : Predictions
        What was predicted, and what happened: `bernoulli`, `categorical`, `gaussian` and so on.
    features : DataFrame, Table, relation, or mapping of names to columns
        What is known of each row: numbers, categories, dates, truths. A missing value is a value of its own. Frames of
        pandas, Polars, PyArrow and DuckDB will do.
    depth : int, default 2
        Conditions of a slice, at most.
    min_share : float, default 0.02
        Smallest share of the rows that a slice holds.
    level : float, default 0.95
        Level at which all intervals hold together.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a patient, a track, a day.
    sample_weight : array-like of shape (n,), optional
        Weight of each row in the means.
    direction : {"over", "under"}, default "over"
        Look for over-confidence, or for under-confidence.
    rng : numpy.random.Generator or int, optional
        For the halves. By default the same data give the same answer.
    progress : callable, optional
        Is called with the share of the search that is done. Ctrl-C ends the search, and leaves what was found.

    Returns
    -------
    Slices
        Print it for a table; it is empty where nothing was found, and says what would have been.

    Warns
    -----
    UserWarning
        A feature tells what happened. It is left out: those for whom it went wrong are no slice.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(1)
    >>> z, age, site = rng.normal(0, 2, 10_000), rng.integers(20, 90, 10_000), rng.choice(list("abcd"), 10_000)
    >>> wrong = (age >= 65) & (site == "c")
    >>> happened = rng.random(10_000) < 1 / (1 + np.exp(-z / np.where(wrong, 3, 1)))
    >>> for s in safecal.find_slices(safecal.bernoulli(happened, logits=z), {"age": age, "site": site}):
    ...     print(s.condition, s.n, round(s.ecd.value, 2))
    age >= 62 and site is c 914 0.2
    """
    if not isinstance(predictions, Predictions):
        hint = "make them with `safecal.bernoulli(y_true, y_prob)`, `categorical`, `gaussian` or `density`."
        raise fail(FormError, "predictions", "must be predictions", got=f"a {type(predictions).__name__}", hint=hint)
    whole_number(depth, "depth", 1)
    min_share, level = fraction(min_share, "min_share"), fraction(level, "level")
    choice(direction, "direction", ("over", "under"))
    columns = columns_of(features)
    same_labels(predictions.row_labels, features=features, cluster=cluster, sample_weight=sample_weight)
    n, reference = predictions.n, predictions.outcome
    weight = weights(sample_weight, n, reference)
    groups = None if cluster is None else cluster_codes(cluster, n, reference)[1]
    source = generator(rng)
    second = _halves(n, groups, source)
    if min(int(second.sum()), n - int(second.sum())) == 0:
        raise fail(ShapeError, "predictions", "must have rows in two halves", got=f"{n} row{'' if n == 1 else 's'}")
    drawn = _drawn(n, source)
    least = max(_FEWEST, int(np.ceil(min_share * len(drawn) / 2)))
    searched, left_out = _coded(columns, predictions, drawn, least)
    found, interrupted = _search(
        searched, predictions, weight, drawn, second, least, depth, direction == "over", progress
    )
    names = {column.feature.name: column.feature for column in searched}
    masks = [_where(names, conditions) for conditions in (*found[0], *found[1])]
    tally = Tally.of_checked(predictions, None, weight, membership(masks, second, len(found[0])), groups)
    known = estimates(tally, len(found[0]), len(found[1]), level=level, over=direction == "over")
    candidates = [
        _slice(conditions, mask, estimate, weight)
        for conditions, mask, estimate in zip((*found[0], *found[1]), masks, known, strict=True)
        if estimate is not None
    ]
    kept = [
        (mask, estimate.alone > 0.0 if direction == "over" else estimate.alone < 0.0)
        for mask, estimate in zip(masks, known, strict=True)
        if estimate is not None
    ]
    halves = n - int(second.sum()), int(second.sum())
    return Slices(
        found=_merged(candidates, kept, direction),
        candidates=tuple(candidates),
        direction=direction,
        n=n,
        searched=len(drawn),
        ecd=tally.summary.ecd,
        level=level,
        min_share=min_share,
        depth=depth,
        features=tuple(names),
        left_out=tuple(left_out),
        reach=None if groups is not None or not searched else reach_of(
            predictions, halves=halves, searched=len(drawn), atoms=sum(column.atoms for column in searched),
            depth=depth, min_share=min_share, level=level, over=direction == "over",
        ),
        interrupted=interrupted,
        on="spread" if not predictions.discrete else (predictions.bin_choices or ("confidence",))[0],
        clustered=groups is not None,
    )  # fmt: skip


def _halves(n: int, groups: IndexArray | None, source: np.random.Generator) -> BoolArray:
    """Tell which rows are in the second half; rows of a cluster stay together."""
    if groups is None:
        second = np.zeros(n, dtype=bool)
        second[source.permutation(n)[: n // 2]] = True
        return second
    sizes = np.bincount(groups)
    there = np.zeros(len(sizes), dtype=bool)
    rows = [0, 0]
    for k in source.permutation(len(sizes)).tolist():  # to the half that has fewer rows so far
        there[k] = rows[1] < rows[0]
        rows[int(there[k])] += int(sizes[k])
    return np.asarray(there[groups])


def _drawn(n: int, source: np.random.Generator) -> IndexArray:
    if n <= DRAWN:
        return np.arange(n)
    return np.sort(source.choice(n, DRAWN, replace=False, shuffle=False))


def _coded(
    columns: dict[str, Any], predictions: Predictions, drawn: IndexArray, least: int
) -> tuple[list[Coded], list[tuple[str, str]]]:
    """Code the features, and say why some are left out."""
    found: list[Coded] = []
    left_out: list[tuple[str, str]] = []
    rows: IndexArray | slice = slice(None) if len(drawn) == predictions.n else drawn
    for name, raw in columns.items():
        try:
            feature = read_feature(raw, name, predictions.n, predictions.outcome)
            column = coded(feature, rows, least)
        except Unreadable as reason:
            left_out.append((name, str(reason)))
            continue
        if tells_the_outcome(column, predictions, drawn):
            left_out.append((name, "it tells what happened"))
            warnings.warn(
                f"the feature `{name}` tells what happened, and is left out: among those for whom it went wrong, every "
                "model looks over-confident.\n\nHint: features must be known before the outcome.",
                UserWarning,
                stacklevel=6,
            )
            continue
        found.append(column)
    return found, left_out


def _search(
    columns: Sequence[Coded], predictions: Predictions, weight: AnyArray | None, drawn: IndexArray,
    second: BoolArray, least: int, depth: int, over: bool, progress: Progress | None,
) -> tuple[list[list[tuple[Condition, ...]]], bool]:  # fmt: skip
    """Search both halves; return the candidates of each, and whether that was stopped."""
    if not columns:
        return [[], []], False
    excess, variance = _columns_of_rows(predictions, weight, drawn)
    steps, done = 2 * (1 + (depth - 1) * BEAM), 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done / steps)

    found: list[list[tuple[Condition, ...]]] = []
    interrupted = False
    for half in (~second[drawn], second[drawn]):
        rows = np.flatnonzero(half)
        search = Search(columns, rows, (1.0 if over else -1.0) * excess[rows], variance[rows], least)
        found.append([] if interrupted else search.best(depth, step))
        interrupted |= search.interrupted
    return found, interrupted


def _columns_of_rows(
    predictions: Predictions, weight: AnyArray | None, drawn: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Return excess and variance of the drawn rows, with weights."""
    excess, variance = np.empty(len(drawn)), np.empty(len(drawn))
    for rows in predictions.row_blocks():
        first, last = np.searchsorted(drawn, [rows.start, rows.stop])
        inside = drawn[first:last] - rows.start
        scored, w = predictions.weighted(rows, weight)
        e, v = scored.excess[inside], scored.varentropy[inside]
        possible = np.isfinite(e)
        e, v = np.where(possible, e, _IMPOSSIBLE), np.where(possible & np.isfinite(v), v, 1.0)
        scale: FloatArray | float = 1.0 if w is None else w[inside]
        excess[first:last], variance[first:last] = scale * e, scale * scale * v
    return excess, variance


def _where(features: dict[str, Feature], conditions: tuple[Condition, ...]) -> BoolArray:
    found = features[conditions[0].feature].where(conditions[0])
    for condition in conditions[1:]:
        found &= features[condition.feature].where(condition)
    return found


class _Kept(NamedTuple):
    slice: Slice
    mask: BoolArray


def _slice(conditions: tuple[Condition, ...], mask: BoolArray, known: Estimate, weight: AnyArray | None) -> Slice:
    n = int(mask.sum())
    share = n / len(mask) if weight is None else float(weight[mask].sum() / weight.sum())
    return Slice(
        conditions, n, share, known.n, known.ecd, known.firm, known.temperature, known.predicted, known.observed,
        known.dimensions,
    )  # fmt: skip


def _merged(candidates: Sequence[Slice], masks: Sequence[tuple[BoolArray, bool]], direction: str) -> tuple[Slice, ...]:
    """Return those that are shown, the worst first; of two with about the same rows the simpler description.

    Beside its rows, ``masks`` tell of each whether it is shown without the rows that it shares with a better one.
    """
    shown = [
        _Kept(s, mask)
        for s, (mask, alone) in zip(candidates, masks, strict=True)
        if alone and (s.ecd.low > 0.0 if direction == "over" else s.ecd.high < 0.0)
    ]
    # Simpler first, then larger: never by what was estimated, which would flatter it.
    shown.sort(key=lambda kept: (len(kept.slice.conditions), -kept.slice.n))
    found: list[_Kept] = []
    for one in shown:
        if all((one.mask & other.mask).sum() < _ALIKE * (one.mask | other.mask).sum() for other in found):
            found.append(one)
    ends = {id(kept): kept.slice.ecd.low if direction == "over" else -kept.slice.ecd.high for kept in found}
    return tuple(kept.slice for kept in sorted(found, key=lambda kept: -ends[id(kept)]))
