"""Row formulas as expressions that a dataframe engine runs by itself.

They are those of the NumPy kernels, step by step: each function adds columns that the next one reads. Names are in
lower case, because SQL engines take ``m`` and ``M`` for the same column. Values are valid by then; functions that
engines lack, or refuse at the edge of their range, are made from those that every engine has.
"""

from collections.abc import Callable
from typing import Any

from ..._kernels.gaussian import LOG_2PI
from ..libraries import narwhals

__all__ = ["binary_rows", "gaussian_rows", "information", "log1p", "one_minus_exp"]

_TINY = 1e-300  # below it, |2p - 1| / m could overflow
_ROOT = 1.3407807929942596e154  # its square is the largest float
ALL_ROWS = ("predicted", "observed", "confidence", "correct", "brier")


def log1p(x: Any, u: Any) -> Any:
    """Return ``log(1 + x)`` where ``u = 1 + x``, to the last digit or two also where x is small."""
    nw = narwhals()
    return u.log() + nw.when(x < 1.0).then(x - (u - 1.0)).otherwise(nw.lit(0.0))  # what rounding took from u


def one_minus_exp(x: Any, t: Any, log_t: Any) -> Any:
    """Return ``1 - exp(-x)`` where ``t = exp(-x)``, to the last digit or two also where x is small.

    ``log_t`` is ``log(t)``; it matters above one half only.
    """
    nw = narwhals()
    return 1.0 - t + nw.when(t > 0.5).then(t * (x + log_t)).otherwise(nw.lit(0.0))


def _odds_from_probability(frame: Any) -> Any:
    """Add the smaller probability, the larger one, their difference, the log-odds and ``-log`` of the larger one."""
    nw = narwhals()
    p = nw.col("value")
    frame = frame.with_columns(
        predicted=p,
        likely=p > 0.5,
        m_small=nw.when(p > 0.5).then(1.0 - p).otherwise(p),
        m_large=nw.when(p > 0.5).then(p).otherwise(1.0 - p),
        contrast=(2.0 * p - 1.0).abs(),
    )
    m = nw.col("m_small")
    frame = frame.with_columns(certain=m == 0.0, divisor=nw.when(m < _TINY).then(nw.lit(1.0)).otherwise(m))
    frame = frame.with_columns(ratio=nw.col("contrast") / nw.col("divisor"))
    return _log_odds(frame)


def _log_odds(frame: Any) -> Any:
    nw = narwhals()
    m, ratio = nw.col("m_small"), nw.col("ratio")
    tiny = (m < _TINY) & (m > 0.0)
    frame = frame.with_columns(
        whole=1.0 + ratio,
        tiny_log=nw.when(tiny)
        .then(nw.lit(0.0) - nw.when(tiny).then(m).otherwise(nw.lit(1.0)).log())
        .otherwise(nw.lit(0.0)),
    )
    return frame.with_columns(
        odds=nw.when(m < _TINY).then(nw.col("tiny_log")).otherwise(log1p(ratio, nw.col("whole"))),
        loss=0.0 - log1p(0.0 - m, nw.col("m_large")),
    )


def _odds_from_logit(frame: Any) -> Any:
    """Add the same columns from log-odds, infinite ones included."""
    nw = narwhals()
    z = nw.col("value")
    frame = frame.with_columns(certain=z.abs() == float("inf"), likely=z > 0.0)
    certain = nw.col("certain")
    frame = frame.with_columns(odds=nw.when(certain).then(nw.lit(0.0)).otherwise(z.abs()))
    odds = nw.col("odds")
    frame = frame.with_columns(t=nw.when(certain).then(nw.lit(0.0)).otherwise((0.0 - odds).exp()))
    t = nw.col("t")
    frame = frame.with_columns(whole=1.0 + t, upper=nw.when(t > 0.5).then(t).otherwise(nw.lit(1.0)))
    whole = nw.col("whole")
    frame = frame.with_columns(
        m_large=1.0 / whole, gap=one_minus_exp(odds, t, nw.col("upper").log()), loss=log1p(t, whole)
    )
    large = nw.col("m_large")
    frame = frame.with_columns(m_small=t * large, contrast=nw.col("gap") * large)
    return frame.with_columns(predicted=nw.when(nw.col("likely")).then(large).otherwise(nw.col("m_small")))


def binary_rows(frame: Any, form: str, clip: float | None) -> Any:
    """Score predictions of two outcomes: ``value`` and ``happened`` become the columns of a scored row."""
    nw = narwhals()
    if clip is not None:
        frame = frame.with_columns(value=nw.col("value").clip(clip, 1.0 - clip))
    frame = _odds_from_probability(frame) if form == "y_prob" else _odds_from_logit(frame)
    agree = nw.col("likely") == nw.col("happened")
    m, large, odds = nw.col("m_small"), nw.col("m_large"), nw.col("odds")
    frame = frame.with_columns(agree=agree, residual=nw.when(agree).then(0.0 - m).otherwise(large), mixed=m * odds)
    residual, mixed = nw.col("residual"), nw.col("mixed")
    varentropy = mixed * odds * large
    return frame.with_columns(
        impossible=nw.col("certain") & ~nw.col("agree"),
        excess=residual * odds,
        varentropy=varentropy,
        third=varentropy * odds * nw.col("contrast"),
        entropy=mixed + nw.col("loss"),
        observed=_number(nw.col("happened")),
        confidence=large,
        correct=_number(nw.col("agree")),
        brier=residual * residual,
    )


def gaussian_rows(frame: Any, form: str) -> Any:
    """Score scalar Gaussians: ``outcome``, ``value`` (the mean) and ``spread`` become the columns of a scored row."""
    nw = narwhals()
    spread = nw.col("spread")
    frame = frame.with_columns(deviation=spread if form == "std" else spread.sqrt())
    frame = frame.with_columns(white=(nw.col("outcome") - nw.col("value")).abs() / nw.col("deviation"))
    white = nw.col("white")
    frame = frame.with_columns(impossible=white > _ROOT)
    white = nw.when(nw.col("impossible")).then(nw.lit(1.0)).otherwise(white)
    return frame.with_columns(
        certain=nw.col("impossible") & ~nw.col("impossible"),
        excess=(white * white - 1.0) * 0.5,
        error=nw.when(nw.col("outcome") < nw.col("value")).then(0.0 - white).otherwise(white),
        varentropy=nw.lit(0.5),
        third=nw.lit(1.0),
        entropy=(LOG_2PI + 2.0 * nw.col("deviation").log() + 1.0) * 0.5,
    )


def _number(flag: Any) -> Any:
    nw = narwhals()
    return nw.when(flag).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def information(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add a column for each sum of a Summary, and return their names; impossible rows give 0 in nats."""
    nw = narwhals()
    possible = nw.when(nw.col("impossible")).then(nw.lit(0.0)).otherwise(nw.lit(1.0))
    frame = frame.with_columns(possible=possible)
    w = nw.col("possible") * nw.col("weight") if weighted else nw.col("possible")
    frame = frame.with_columns(w1=w)
    w1, e, v, k3 = (nw.col(name) for name in ("w1", "excess", "varentropy", "third"))
    frame = frame.with_columns(w2=w1 * w1, we=w1 * e)
    w2, we = nw.col("w2"), nw.col("we")
    columns: dict[str, Any] = {
        "n_impossible": 1.0 - nw.col("possible"),
        "n_certain": _number(nw.col("certain")),
        "sum_excess": we,
        "sum_excess2_weight2": we * we,
        "sum_excess3_weight3": we * we * we,
        "sum_varentropy": w1 * v,
        "sum_third_cumulant_weight3": w2 * w1 * k3,
        "sum_entropy": w1 * nw.col("entropy"),
    }
    if weighted:
        weight = nw.col("weight")
        columns |= {
            "weight": weight,
            "weight_impossible": weight - w1,
            "weight2": w2,
            "weight3": w2 * w1,
            "sum_excess_weight2": w1 * we,
            "sum_excess_weight3": w2 * we,
            "sum_excess2_weight3": w1 * we * we,
            "sum_varentropy_weight2": w2 * v,
        }
    if classes:
        scale: Callable[[Any], Any] = (
            (lambda column: nw.col("weight") * column) if weighted else (lambda column: column)
        )
        columns |= {f"sum_{name}": scale(nw.col(name)) for name in ALL_ROWS}
    else:
        columns["sum_error"] = w1 * nw.col("error")
    return frame.with_columns(**columns), list(columns)
