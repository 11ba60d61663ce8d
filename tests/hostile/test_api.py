"""A seeded fuzzer of inputs times entry points: a right answer, or one of safecal's own errors; nothing else."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import safecal
from safecal.engines.batches import Batch, evaluate_batches
from safecal.errors import SafecalError
from safecal.monitor import Monitor

from .fuzzing import fuzz

Values = Callable[[np.random.Generator, int], Any]


def _object(values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _unaligned(array: np.ndarray) -> np.ndarray:
    raw = bytearray(array.nbytes + 1)
    raw[1:] = array.tobytes()
    return np.frombuffer(raw, dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _pandas(array: np.ndarray) -> Any:
    pd = sys.modules.get("pandas")
    return array if pd is None or array.ndim > 1 else pd.Series(array).convert_dtypes()


# What memory an array may lie in: every one of them holds the same numbers.
LAYOUTS: list[Callable[[np.ndarray], Any]] = [
    lambda a: a, np.ndarray.tolist, lambda a: a[::-1].copy()[::-1], lambda a: np.repeat(a, 3, axis=0)[::3], _unaligned,
    _read_only, np.asfortranarray, lambda a: a.astype(a.dtype.newbyteorder()), lambda a: np.ma.array(a), _pandas,
    lambda a: a.astype(np.float32), lambda a: a.astype(np.float16), lambda a: a.astype(np.longdouble),
    lambda a: a.astype(object), lambda a: a.astype(complex), lambda a: a.astype(str), lambda a: a[:, None],
    lambda a: a[:0], lambda a: np.lib.stride_tricks.as_strided(a[:1], a.shape, (0,) * a.ndim, writeable=False),
    lambda a: np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == 0), lambda a: a.reshape(-1)[0], lambda a: None,
    lambda a: _object([Decimal(str(v)) for v in a.reshape(-1)]), lambda a: _object([Fraction(1, 3)] * len(a)),
]  # fmt: skip
PROBABILITIES: list[Values] = [
    lambda r, n: r.uniform(0.01, 0.99, n), lambda r, n: r.beta(0.1, 0.1, n), lambda r, n: r.integers(0, 2, n) * 1.0,
    lambda r, n: r.choice([0.0, 1.0, 0.5, 5e-324, 1e-310, 1 - 2**-53, 2**-1022], n), lambda r, n: np.full(n, 0.5),
    lambda r, n: np.where(r.random(n) < 0.05, np.nan, 0.3), lambda r, n: r.normal(0, 1, n),
    lambda r, n: np.full(n, -0.0), lambda r, n: np.round(r.random(n), 1),
]  # fmt: skip
ODDS: list[Values] = [
    lambda r, n: r.normal(0, 2, n), lambda r, n: r.normal(0, 300, n),
    lambda r, n: r.choice([1e9, -1e9, 3.0, -2.0, 0.0, 5e-324, 1e250, -1e250], n),
    lambda r, n: r.choice([np.inf, -np.inf, 0.5], n), lambda r, n: np.full(n, np.nan),
    lambda r, n: r.normal(0, 1e-300, n),
    lambda r, n: r.integers(-800, 800, n),
]  # fmt: skip
OUTCOMES: list[Values] = [
    lambda r, n: r.integers(0, 2, n), lambda r, n: r.random(n) < 0.5, lambda r, n: r.integers(0, 2, n).astype(float),
    lambda r, n: np.frombuffer(r.integers(0, 256, n, dtype=np.uint8).tobytes(), dtype=np.bool_),
    lambda r, n: r.choice([0, 1, 2], n), lambda r, n: r.choice(["a", "b"], n), lambda r, n: r.choice([0, 1, np.nan], n),
    lambda r, n: r.integers(0, 2, n).astype(">i4"), lambda r, n: r.integers(0, 2, n).astype("u8"),
    lambda r, n: _object([True, 0, 1.0, None][:n] + [1] * (n - 4)), lambda r, n: r.integers(0, 2, n).astype("M8[s]"),
    lambda r, n: _object([(1,)] * n), lambda r, n: np.zeros(n, dtype="V2"), lambda r, n: [[0]] * n,
    lambda r, n: "01" * n,
]  # fmt: skip
WEIGHTS: list[Values] = [
    lambda r, n: None, lambda r, n: None, lambda r, n: r.random(n), lambda r, n: r.pareto(0.5, n) + 1e-9,
    lambda r, n: np.where(np.arange(n) == 0, 1e300, 1.0), lambda r, n: np.full(n, 1e-300), lambda r, n: np.zeros(n),
    lambda r, n: np.where(np.arange(n) == 0, np.inf, 1.0), lambda r, n: (np.arange(n) % 3 == 0) * 1.0,
    lambda r, n: -r.random(n),
    lambda r, n: np.where(np.arange(n) == 0, 1e75, 1e-75), lambda r, n: r.integers(0, 9, n),
    lambda r, n: r.random(n) < 0.5,
]  # fmt: skip
KEYS: list[Values] = [
    lambda r, n: None, lambda r, n: None, lambda r, n: r.integers(0, 3, n),
    lambda r, n: r.integers(2**53, 2**53 + 3, n),
    lambda r, n: _object([[None, math.nan, (1, 2), b"x", "x", 1, 1.5, True, math.inf][k % 9] for k in range(n)]),
    lambda r, n: r.integers(0, 3, n).astype("M8[D]"), lambda r, n: r.choice(["a", "", "\0", "é"], n),
    lambda r, n: [[]] * n,
    lambda r, n: {"a": r.integers(0, 2, n), "b": r.choice(["x", "y"], n)}, lambda r, n: np.arange(n),
    lambda r, n: np.zeros(n),
    lambda r, n: _object([[1]] * n), lambda r, n: _object([{}] * n),
]  # fmt: skip


def _pick(rng: np.random.Generator, makers: list[Values], n: int, plain: float = 0.6) -> Any:
    made = makers[0 if rng.random() < plain / 2 else int(rng.integers(len(makers)))](rng, n)
    if isinstance(made, np.ndarray) and made.dtype.kind in "fi" and rng.random() > plain:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = LAYOUTS[int(rng.integers(len(LAYOUTS)))](made)
            except (TypeError, ValueError, ArithmeticError, IndexError):
                return made
    return made


def _classes(rng: np.random.Generator, n: int) -> tuple[Any, Any, str]:
    k = int(rng.choice([2, 3, 10, 200]))
    z = rng.normal(0, rng.choice([0.1, 2.0, 300.0]), (n, k))
    if rng.random() < 0.2:
        z[rng.random(z.shape) < 0.1] = rng.choice([-np.inf, np.inf, np.nan, 1e200, -1e200, 1e9])
    y: Any = rng.integers(0, k + (rng.random() < 0.1), n)
    if rng.random() < 0.5:
        return y, z, "logits"
    with np.errstate(all="ignore"):
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return y, p / p.sum(axis=1, keepdims=True), "y_prob"


# Slow and obvious, at 60 digits.
def _reference(y: np.ndarray, v: np.ndarray, form: str, w: np.ndarray | None) -> tuple[Any, Any]:
    """Return mean excess and mean surprisal over possible rows; +inf where an impossible one has weight."""
    total = excess = surprisal = mpmath.mpf(0)
    for i in range(len(v)):
        weight = mpmath.mpf(1.0 if w is None else float(w[i]))
        row = [mpmath.mpf(float(x)) for x in np.atleast_1d(v[i])]
        if len(row) == 1 and form == "y_prob":
            logs = [mpmath.log(x) if x > 0 else -mpmath.inf for x in (1 - row[0], row[0])]
        else:
            if len(row) == 1:
                row = [mpmath.mpf(0), row[0]] if row[0] != mpmath.inf else [-mpmath.inf, mpmath.mpf(0)]
            if form == "y_prob":
                logs = [mpmath.log(x) if x > 0 else -mpmath.inf for x in row]
            else:
                top = max(row)
                norm = top + mpmath.log(mpmath.fsum(mpmath.exp(x - top) for x in row if x != -mpmath.inf))
                logs = [x - norm if x != -mpmath.inf else -mpmath.inf for x in row]
        s = -logs[int(y[i])]
        if weight == 0:
            continue
        if s == mpmath.inf:
            return mpmath.inf, mpmath.inf
        h = -mpmath.fsum(mpmath.exp(g) * g for g in logs if g != -mpmath.inf)
        total, excess, surprisal = total + weight, excess + weight * (s - h), surprisal + weight * s
    return excess / total, surprisal / total


def _agree(found: float, wanted: Any, scale: float) -> bool:
    if mpmath.isinf(wanted) or 100 * wanted > sys.float_info.max:  # the sum of the rows is no float
        return found == math.inf or bool(abs(mpmath.mpf(found) - wanted) <= 1e-9 * wanted)
    return bool(abs(mpmath.mpf(found) - wanted) <= 1e-9 * max(abs(wanted), scale) + 1e-300)


def _checked(predictions: safecal.Predictions, found: safecal.Evaluation, w: Any) -> bool:
    """Compare an accepted answer with the reference."""
    v = np.asarray(predictions.values, dtype=np.float64)  # type: ignore[attr-defined]
    y = np.asarray(predictions.happened).astype(int)  # type: ignore[attr-defined]
    weight = None if w is None else np.asarray(w, dtype=np.float64)
    form = "logits" if predictions.logits else "y_prob"  # type: ignore[attr-defined]
    ecd, nll = _reference(y, v, form, weight)
    if form == "y_prob" and v.ndim == 2:  # values are used as given, and rows sum to one within what was allowed
        return bool(math.isinf(found.ecd) == mpmath.isinf(ecd)) and (
            math.isinf(found.ecd) or abs(found.ecd - ecd) < 0.006
        )
    scale = 0.0 if v.size == 0 else 1.0
    return _agree(found.ecd, ecd, scale) and _agree(found.nll, nll, scale) and math.isfinite(found.brier)


def _call(rng: np.random.Generator) -> tuple[str, Callable[[], bool]]:
    """Draw an entry point and what it is given; the call tells whether its answer is right."""
    mpmath.mp.dps = 60
    n = int(rng.choice([0, 1, 2, 5, 40], p=[0.05, 0.1, 0.1, 0.25, 0.5]))
    w = _pick(rng, WEIGHTS, n)
    by, cluster = _pick(rng, KEYS, n, 1.0), _pick(rng, KEYS, n, 1.0)
    many = rng.random() < 0.3
    if many:
        y, v, form = _classes(rng, n)
    else:
        form = "logits" if rng.random() < 0.5 else "y_prob"
        y, v = _pick(rng, OUTCOMES, n), _pick(rng, ODDS if form == "logits" else PROBABILITIES, n)
    given = {form: v}
    made = safecal.categorical if many else safecal.bernoulli
    doors: dict[str, Callable[[], bool]] = {}

    def evaluate() -> bool:
        found = safecal.evaluate(y, **given, sample_weight=w, by=by, cluster=cluster)
        str(found), found.to_dict()
        return _checked(made(y, **given), found, w)

    def batches() -> bool:
        one = made(y, **given)
        found = evaluate_batches(lambda: iter([Batch(one), Batch(one)]), max_rows=int(rng.integers(0, 2)) * 100)
        return found.n == 2 * one.n and _checked(one, found, None)

    def metrics() -> bool:
        one = made(y, **given)
        found = safecal.ecd(y, **given, sample_weight=w)
        safecal.nll(y, **given, sample_weight=w), safecal.brier(y, **given, sample_weight=w)
        form_, values = ("logits" if one.logits else "y_prob"), np.asarray(one.values, dtype=np.float64)
        weight = None if w is None else np.asarray(w, dtype=np.float64)
        wanted, _ = _reference(np.asarray(one.happened).astype(int), values, form_, weight)
        if form_ == "y_prob" and many:
            return True
        return _agree(found, wanted, 1.0)

    def temperature() -> bool:
        kind = safecal.SafeTemperature if rng.random() < 0.5 else safecal.Temperature
        model = kind().fit(y, **given, sample_weight=w, by=by, cluster=cluster)
        p = model.apply(**given, by=by)
        return bool(((p >= 0) & (p <= 1)).all()) and model.beta_ > 0

    def monitor() -> bool:
        one = made(y, **given)
        watched = Monitor(grouped=by is not None, detect="both")
        watched.update(y, **given, by=by, window="a", batch="1")
        again = Monitor.from_dict(watched.to_dict())
        return watched.summary.n == one.n == again.summary.n and repr(again) == repr(watched)

    def states() -> bool:
        x, spread = _pick(rng, ODDS, n), _pick(rng, PROBABILITIES, n)
        found = safecal.gaussian(x, np.zeros(n), std=spread).evaluate(sample_weight=w, by=by, cluster=cluster)
        xs, ss = np.asarray(x, dtype=np.float64), np.broadcast_to(np.asarray(spread, dtype=np.float64), n)
        weight = np.ones(n) if w is None else np.asarray(w, dtype=np.float64)
        squares = [mpmath.mpf(a) ** 2 / mpmath.mpf(b) ** 2 for a, b in zip(xs.tolist(), ss.tolist(), strict=True)]
        sums = mpmath.fsum(mpmath.mpf(float(k)) * (e - 1) / 2 for k, e in zip(weight, squares, strict=True))
        return _agree(found.ecd, sums / mpmath.fsum(map(float, weight)), 1.0)

    def others() -> bool:
        one = made(y, **given)
        for call in (
            safecal.assess_reliability,
            safecal.calibration_test,
            safecal.implied_temperature,
            safecal.rows_needed,
        ):
            try:
                repr(call(one))  # type: ignore[operator]
            except SafecalError:
                continue
        try:
            found = safecal.compare(one, one, sample_weight=w, cluster=cluster)
        except SafecalError:
            return True
        return found.ecd.interval.value == 0.0 or math.isnan(found.ecd.interval.value)

    doors |= {"evaluate": evaluate, "metrics": metrics, "batches": batches, "temperature": temperature}
    doors |= {"monitor": monitor, "gaussian": states, "others": others}
    name = list(doors)[int(rng.integers(len(doors)))]
    return name, doors[name]


def test_a_few_strange_calls_are_answered_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz(_call, 0, 30, capsys)


@pytest.mark.proof
@pytest.mark.no_cover
def test_strange_calls_are_answered_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz(_call, 1, 1200, capsys)
