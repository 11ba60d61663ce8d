"""Compare two models row by row: the differences, and what they do by chance if both models are equally good.

A row of two classes with differences ``d1`` and ``d0`` of opposite sign has mean difference 0 under exactly one law; it
has variance ``|d1 d0|`` and third cumulant ``|d1 d0| (d1 + d0)``. For K classes the law is ``sqrt(p_a p_b)`` tilted by
the differences until their mean is 0, for surprisals ``p_a^w p_b^(1-w)``. Unlike the spread of the data, it knows of
surprises that have not happened yet.
"""

import math
from dataclasses import replace
from typing import NamedTuple, Self, overload

import numpy as np

from .._checks import fail, show
from .._checks.arrays import same_labels, same_outcomes, same_rows, same_rows_of_both
from .._checks.columns import clusters, fraction, spelled, steady, weights
from .._types import AnyArray, ArrayLike, BoolArray, FloatArray, IndexArray
from ..errors import FormError, LabelError, OptionError
from ..families import Predictions
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..inference import Interval
from ..inference.law import FEW, Spread, pearson3
from ..inference.tails import pearson3_quantile, tilted_to_zero
from .comparison import Comparison, Difference, SideBySide
from .display import ece_of
from .evaluation import Evaluation

__all__ = ["compare", "equality", "rows_of_law"]

_NAMES = ("excess", "surprisal", "brier")
_ELEMENTS = 1 << 18  # of a block: rows times classes
_FEW = 5.0  # surprises, by one over the squared skewness, below which their dependence cannot be seen


@overload
def compare(
    a: Predictions,
    b: Predictions,
    *,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> Comparison: ...
@overload
def compare(a: Evaluation, b: Evaluation) -> SideBySide: ...


@steady
@spelled()
def compare(
    a: Predictions | Evaluation,
    b: Predictions | Evaluation,
    *,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> Comparison | SideBySide:
    """Compare two models on the same rows: differences in ECD, NLL and Brier score, with intervals and tests.

    Each row gives one difference, so what makes a row hard for both models cancels. Intervals and p-values come from
    a t statistic corrected for the skewness of the differences (Hall 1992); with fewer than 200 rows or clusters, each
    end is the wider of that one and of plain t. For classes an end is also never nearer than what two models that are
    equal in every row do by chance: a surprise that has not happened yet is in no spread of the data.

    Parameters
    ----------
    a, b : Predictions, or Evaluation
        Two models on the same rows, in the same order. Two evaluations, which hold no rows, stand side by side with
        their own intervals, without a test.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a track, a patient, a day.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    level : float, default 0.95
        Confidence of the intervals.

    Returns
    -------
    Comparison
        Print it for a table and a verdict in words. `SideBySide` for two evaluations.

    See Also
    --------
    evaluate : One model.

    Notes
    -----
    A difference in ECD alone ranks nothing. ``NLL = ECD + mean entropy``: a model can lower its ECD by saying less.

    Tests of NLL at 5 % reject at most 5.2 % of two-class models that are equal in every row, from 20 rows on: 0.999
    against 0.99 in 0 to 3.9 %, where the t statistic alone gave 80 % at 50 rows. Those of the Brier score reject at
    most 6.1 %. The verdict then says that these rows cannot tell. States and densities have the t statistic alone. Rows
    that give an outcome a probability of 0 are left out of the law of chance, and the method says so. Rows of a cluster
    are taken to surprise together unless enough surprises are expected to see that they do not: with few clusters, or
    sharp models, the rows show little.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 1000)
    >>> y_true = rng.random(1000) < 1 / (1 + np.exp(-log_odds))
    >>> honest = safecal.bernoulli(y_true, logits=log_odds)
    >>> print(safecal.compare(honest, safecal.bernoulli(y_true, logits=0.5 * log_odds)).verdict)
    b is less over-confident (ECD +0.0349 ...) only because it says less: its NLL is higher (NLL 0.5043 ...).
    """
    if isinstance(a, Evaluation) and isinstance(b, Evaluation):
        return _side_by_side(a, b, cluster, sample_weight)
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Predictions):
            hint = "build both, as in `compare(safecal.bernoulli(y_true, p_a), safecal.bernoulli(y_true, p_b))`."
            raise fail(FormError, name, "must be predictions", got=f"a {type(value).__name__}", hint=hint)
    assert isinstance(a, Predictions)
    assert isinstance(b, Predictions)
    level = fraction(level, "level")
    _check_pair(a, b)
    same_labels(a.row_labels, sample_weight=sample_weight, cluster=cluster)
    weight = weights(sample_weight, a.n, a.outcome)
    codes, size = (None, None) if cluster is None else clusters(cluster, a.n, a.outcome)
    w = np.ones(a.n) if weight is None else np.asarray(weight, dtype=np.float64)
    rows, laws = _columns(a, b), rows_of_law(a, b)
    impossible_a, impossible_b = (int((np.isposinf(x) & (w > 0.0)).sum()) for x in rows["excess"])
    ecd, *others = (
        _difference(*rows[name], w, codes, level, laws.get(name)) if name in rows else None for name in _NAMES
    )
    assert ecd is not None
    return Comparison(a.n, size, impossible_a, impossible_b, ecd, *others)


def _side_by_side(
    a: Evaluation, b: Evaluation, cluster: ArrayLike | None, sample_weight: ArrayLike | None
) -> SideBySide:
    for name, value in (("cluster", cluster), ("sample_weight", sample_weight)):
        if value is not None:
            hint = "pass it to `evaluate`, or compare predictions."
            raise fail(OptionError, name, "belongs to rows", got="two evaluations, which hold no rows", hint=hint)
    compared = {ece_of(e.bins) for e in (a, b) if e.bins is not None}  # two that differ cannot stand side by side
    ratios = [math.nan if e.mistakes is None else e.mistakes.ratio for e in (a, b)]
    pairs: dict[str, tuple[Interval | float, Interval | float]] = {
        "ECD": (a.interval, b.interval),
        "temperature": (a.temperature, b.temperature),
        "mistakes": (ratios[0], ratios[1]),
        "NLL": (a.nll, b.nll),
        **({f"ECE ({', '.join(compared)})": (a.ece, b.ece)} if len(compared) == 1 else {}),
        "Brier": (a.brier, b.brier),
    }
    metrics = {
        name: pair
        for name, pair in pairs.items()
        if not all(math.isnan(x.value if isinstance(x, Interval) else x) for x in pair)
    }
    levels = (a.interval.level, b.interval.level)
    return SideBySide((a.n, b.n), (a.verdict.decision, b.verdict.decision), levels, metrics)


def _check_pair(a: Predictions, b: Predictions) -> None:
    same_rows("b", b.n, a.n, "a")
    same_rows_of_both(a.row_labels, b.row_labels)
    if a.discrete != b.discrete:
        got = f"{a.family} and {b.family} predictions"
        raise fail(FormError, "b", "must predict the same kind of outcome as `a`, classes or states", got=got)
    if a.class_names and b.class_names and a.class_names != b.class_names:
        got = f"{show(list(b.class_names))} where `a` has {show(list(a.class_names))}"
        hint = "give both the same classes, with columns in the same order."
        raise fail(LabelError, "b", "must have the classes of `a`, in the same order", got=got, hint=hint)
    first, second = a.what_happened, b.what_happened
    if a.family != b.family:  # outcomes of two families are coded differently, but for two classes
        first, second = a.as_odds().what_happened, b.as_odds().what_happened
        if not a.classes == b.classes == 2 or first is None or second is None or (first != second).all():
            return
    if first is not None and second is not None:
        same_outcomes(first, second, a.outcome)


def _columns(a: Predictions, b: Predictions) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the columns that both have, of both."""
    parts: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for block_a, block_b in zip(a.blocks(), b.blocks(), strict=True):
        for name in _NAMES:
            x, y = getattr(block_a, name), getattr(block_b, name)
            if x is not None and y is not None:
                parts.setdefault(name, []).append((x, y))
    return {
        name: (np.concatenate([x for x, _ in pairs]), np.concatenate([y for _, y in pairs]))
        for name, pairs in parts.items()
    }


class EqualLaw(NamedTuple):
    """For each row, the cumulants of its difference if both models are equal in it, and the ends of what it may be.

    Where no law makes them equal, because every outcome favours the same model, both cumulants are 0.
    """

    variance: FloatArray
    third: FloatArray
    lowest: FloatArray
    highest: FloatArray
    certain: BoolArray  # whether the difference may be beyond every float; its cumulants are then 0

    def of(self, rows: BoolArray) -> Self:
        """Return the law of some rows."""
        return type(self)._make(column[rows] for column in self)


def _difference(
    a: FloatArray, b: FloatArray, w: FloatArray, codes: AnyArray | None, level: float, law: EqualLaw | None
) -> Difference:
    """Compare two columns; ``codes`` numbers the cluster of each row, ``law`` is that of equal models."""
    share = w / w.sum()
    bad_a, bad_b = (np.isposinf(x) & (w > 0.0) for x in (a, b))
    mean_a, mean_b = (
        math.inf if bad.any() else float(np.dot(share, np.where(w > 0.0, x, 0.0)))
        for x, bad in ((a, bad_a), (b, bad_b))
    )
    if math.isinf(mean_a) != math.isinf(mean_b):
        sign = math.inf if math.isinf(mean_a) else -math.inf
        method = f"none: something happened that {'a' if sign > 0 else 'b'} had called impossible"
        return Difference(mean_a, mean_b, Interval(sign, sign, sign, level, method), sign, 0.0)
    kept = (w > 0.0) & ~bad_a & ~bad_b
    if not kept.all():
        a, b, w, codes = a[kept], b[kept], w[kept], None if codes is None else codes[kept]
        law = None if law is None else law.of(kept)
    if len(w) == 0:
        nothing = Interval(0.0, -math.inf, math.inf, level, "none: no row is possible for both")
        return Difference(mean_a, mean_b, nothing, 0.0, 1.0)
    share, d = w / w.sum(), _subtracted(a, b)
    value = float(np.dot(share, d))
    parts = share * (d - value)
    if codes is not None:
        parts = np.bincount(codes, weights=parts)[np.bincount(codes) > 0].astype(np.float64)
    spread = Spread.of(parts, float(np.abs(share * d).max()))
    if spread is None:
        nothing = Interval(value, -math.inf, math.inf, level, "none: a single row or cluster has no spread")
        return Difference(mean_a, mean_b, nothing, 0.0, 1.0)
    equal = None if law is None else _equal_models(value, level, law, share, d, codes)
    if spread.error == 0.0 and value != 0.0:  # no spread to measure with: all that is left is the law
        interval, p_value = equal or _cannot_tell(value, level, share, law)
        return Difference(mean_a, mean_b, interval, math.copysign(math.inf, value), p_value)
    (low, high), p_value = spread.interval(value, level), spread.p_value(value)
    method = "t, " if codes is None else f"t on {spread.units} clusters, "
    method += "the wider of plain and skewness-corrected" if spread.units < FEW else "skewness-corrected"
    if equal is not None:
        low, high, p_value = min(low, equal[0].low), max(high, equal[0].high), max(p_value, equal[1])
        method += f", and {equal[0].method}"
    return Difference(mean_a, mean_b, Interval(value, low, high, level, method), spread.statistic(value), p_value)


def _equal_models(
    value: float, level: float, law: EqualLaw, share: FloatArray, d: FloatArray, codes: AnyArray | None
) -> tuple[Interval, float] | None:
    """Hold a difference against what equal models do by chance; None where no row could have gone either way."""
    if not law.variance.any():
        return None
    chance, tail = equality(law, share, d, codes), 0.5 * (1.0 - level)
    upper, lower = pearson3(value, *chance)
    low, high = (pearson3_quantile(probability, *chance) for probability in (tail, 1.0 - tail))
    method = "what equal models do by chance"
    certain = int(law.certain.sum())
    if certain:
        method += f" ({certain} {'row' if certain == 1 else 'rows'} with a probability of 0 left out)"
    return Interval(value, value - high, value - low, level, method), min(1.0, 2.0 * min(upper, lower))


def _cannot_tell(value: float, level: float, share: FloatArray, law: EqualLaw | None) -> tuple[Interval, float]:
    """Return all that is known of a difference that is the same in every row, and not by chance."""
    method = "none: every difference is the same"
    if law is None or law.certain.any():
        return Interval(value, -math.inf, math.inf, level, method), 1.0
    low, high = (float(np.dot(share, end)) for end in (law.lowest, law.highest))
    return Interval(value, low, high, level, "the same sign whatever happens"), 0.0


def _subtracted(a: FloatArray, b: FloatArray) -> FloatArray:
    """Subtract; the same model in two forms differs by rounding, and that is no difference."""
    d = a - b
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return np.where(np.abs(d) <= 1e-14 * largest, 0.0, d)


class Equality(NamedTuple):
    """The cumulants of a mean difference between equal models."""

    variance: float
    third: float


def rows_of_law(a: Predictions, b: Predictions) -> dict[str, EqualLaw]:
    """Return the law of each column that compares classes; nothing where outcomes cannot be listed."""
    if not isinstance(a, Bernoulli | Categorical) or not isinstance(b, Bernoulli | Categorical):
        return {}
    width = [2 if isinstance(p, Bernoulli) else p.classes for p in (a, b)]
    if width[0] != width[1]:
        return {}
    parts = _two_classes(a, b) if width[0] == 2 else _many_classes(a, b)
    return {
        name: EqualLaw(*(np.concatenate(column) for column in zip(*laws, strict=True))) for name, laws in parts.items()
    }


def _other_outcome(p: Bernoulli | Categorical) -> Predictions:
    """Return the same predictions as if the other outcome had happened."""
    return replace(p, happened=~p.happened) if isinstance(p, Bernoulli) else replace(p, happened=1 - p.happened)


@np.errstate(all="ignore")
def _two_classes(a: Bernoulli | Categorical, b: Bernoulli | Categorical) -> dict[str, list[EqualLaw]]:
    parts: dict[str, list[EqualLaw]] = {name: [] for name in _NAMES}
    for blocks in zip(*(p.blocks() for p in (a, b, _other_outcome(a), _other_outcome(b))), strict=True):
        for name in _NAMES:
            happened_a, happened_b, other_a, other_b = (getattr(block, name) for block in blocks)
            d = happened_a - happened_b
            e = np.where(other_a == other_b, d, other_a - other_b)  # what is impossible for both makes no difference
            variance = np.maximum(-d * e, 0.0)
            third = variance * (d + e)
            certain = ~np.isfinite(third)
            variance, third = (np.where(certain, 0.0, x) for x in (variance, third))
            parts[name].append(EqualLaw(variance, third, np.minimum(d, e), np.maximum(d, e), certain))
    return parts


@np.errstate(all="ignore")
def _many_classes(a: Bernoulli | Categorical, b: Bernoulli | Categorical) -> dict[str, list[EqualLaw]]:
    assert isinstance(a, Categorical)
    assert isinstance(b, Categorical)
    step = max(1, _ELEMENTS // a.classes)
    parts: dict[str, list[EqualLaw]] = {name: [] for name in _NAMES}
    for start in range(0, a.n, step):
        rows = slice(start, min(start + step, a.n))
        (log_a, columns_a), (log_b, columns_b) = (_columns_by_class(p, rows) for p in (a, b))
        for name in _NAMES:
            base = np.logaddexp(log_a, log_b) if name == "brier" else 0.5 * (log_a + log_b)
            parts[name].append(EqualLaw(*tilted_to_zero(columns_a[name] - columns_b[name], base)))
    return parts


def _columns_by_class(p: Categorical, rows: slice) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the log-probability of each class, and each column as it is if that class happens."""
    gaps = p.log_gaps(rows)
    q = np.exp(-gaps)
    total = q.sum(axis=1, keepdims=True)
    q /= total
    surprisal = gaps + np.log(total)
    entropy = np.where(q > 0.0, q * surprisal, 0.0).sum(axis=1, keepdims=True)
    brier = (q * q).sum(axis=1, keepdims=True) + 1.0 - 2.0 * q
    return -surprisal, {"excess": surprisal - entropy, "surprisal": surprisal, "brier": brier}


def equality(law: EqualLaw, share: FloatArray, d: FloatArray, codes: IndexArray | None) -> Equality:
    """Return the cumulants of ``sum(share * d)`` between equal models; ``codes`` numbers the cluster of each row.

    Rows of a cluster may surprise together. They are taken to, unless enough surprises are expected to see how far they
    do: then by the correlation within clusters, and two standard errors.
    """
    variance, third = float(np.dot(share**2, law.variance)), float(np.dot(share**3, law.third))
    if codes is None:
        return Equality(variance, third)
    together = _by_cluster(codes, share * np.sqrt(law.variance)) ** 2
    skewed = _by_cluster(codes, share * np.cbrt(law.third)) ** 3
    most_variance, most_third = float(together.sum()), float(skewed.sum())
    if most_variance <= variance * (1.0 + 1e-12) or abs(most_third) * np.sqrt(_FEW) > most_variance**1.5:
        return Equality(most_variance, most_third)
    own = _by_cluster(codes, share**2 * law.variance)
    products = _by_cluster(codes, share * d) ** 2 - _by_cluster(codes, (share * d) ** 2)
    room = float((together - own).sum())
    correlation = float(products.sum()) / room
    error = float(np.sqrt(np.sum((products - correlation * (together - own)) ** 2))) / room
    rho = min(1.0, max(0.0, correlation + 2.0 * error))
    return Equality(variance + rho * (most_variance - variance), third + rho * (most_third - third))


def _by_cluster(codes: IndexArray, column: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(codes, weights=column), dtype=np.float64)
