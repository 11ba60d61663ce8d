"""Row formulas as expressions that a dataframe engine runs by itself.

They are those of the NumPy kernels, step by step: each function adds columns that the next one reads. Names are in
lower case, because SQL engines take ``m`` and ``M`` for the same column. Values are valid by then; functions that
engines lack, or refuse at the edge of their range, are made from those that every engine has. At the end stand the
queries that sum such columns by key.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._checks.message import fail
from ..._kernels.spectrum import NODES
from ..._kernels.states import LOG_2PI
from ..._sums import tally
from ..._sums.clusters import BASE, NEAR, RARE
from ..._types import AnyArray, FloatArray
from ...errors import ShapeError
from .language import language

__all__ = [
    "add_cluster_columns", "add_pair_columns", "add_summary_columns", "as_arrays", "as_number", "collect_limited",
    "collect_numbers", "log1p", "node_query", "node_sums_of", "one_minus_exp", "score_binary", "score_gaussian",
    "sums_by",
]  # fmt: skip

_TINY = 1e-300  # below it, |2p - 1| / m could overflow
_ROOT = 1.3407807929942596e154  # its square is the largest float
ALL_ROWS = ("predicted", "observed", "confidence", "correct", "brier")


def log1p(x: Any, u: Any) -> Any:
    """Return ``log(1 + x)`` where ``u = 1 + x``, to the last digit or two also where x is small."""
    nw = language()
    return u.log() + nw.when(x < 1.0).then(x - (u - 1.0)).otherwise(nw.lit(0.0))  # what rounding took from u


def one_minus_exp(x: Any, t: Any, log_t: Any) -> Any:
    """Return ``1 - exp(-x)`` where ``t = exp(-x)``, to the last digit or two also where x is small.

    ``log_t`` is ``log(t)``; it matters above one half only.
    """
    nw = language()
    return 1.0 - t + nw.when(t > 0.5).then(t * (x + log_t)).otherwise(nw.lit(0.0))


def _odds_from_probability(frame: Any) -> Any:
    """Add the smaller probability, the larger one, their difference, the log-odds and ``-log`` of the larger one."""
    nw = language()
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
    nw = language()
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
    nw = language()
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


def score_binary(frame: Any, form: str, clip: float | None) -> Any:
    """Score predictions of two outcomes: ``value`` and ``happened`` become the columns of a scored row."""
    nw = language()
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
        observed=as_number(nw.col("happened")),
        confidence=large,
        correct=as_number(nw.col("agree")),
        brier=residual * residual,
    )


def score_gaussian(frame: Any, form: str) -> Any:
    """Score scalar Gaussians: ``outcome``, ``value`` (the mean) and ``spread`` become the columns of a scored row."""
    nw = language()
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


def as_number(condition: Any) -> Any:
    """Return 1 where a condition holds, else 0."""
    nw = language()
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def add_summary_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add a column for each sum of a Summary, and return their names; impossible rows give 0 in nats."""
    nw = language()
    possible = nw.when(nw.col("impossible")).then(nw.lit(0.0)).otherwise(nw.lit(1.0))
    frame = frame.with_columns(possible=possible)
    w = nw.col("possible") * nw.col("weight") if weighted else nw.col("possible")
    frame = frame.with_columns(w1=w)
    w1, e, v, k3 = (nw.col(name) for name in ("w1", "excess", "varentropy", "third"))
    frame = frame.with_columns(w2=w1 * w1, we=w1 * e)
    w2, we = nw.col("w2"), nw.col("we")
    columns: dict[str, Any] = {
        "n_impossible": 1.0 - nw.col("possible"),
        "n_certain": as_number(nw.col("certain")),
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


_FAR = (0, 2)  # the betas of `NEAR` other than 1


def _based(frame: Any, weighted: bool, classes: bool) -> Any:
    """Add the columns of `BASE` but the number of rows, which every query counts; mistakes of states are 0."""
    nw = language()
    one = nw.lit(1.0)
    w = nw.col("weight") if weighted else one
    frame = frame.with_columns(root=nw.col("varentropy").sqrt(), c_weight=w)
    w1, we, all_rows = nw.col("w1"), nw.col("we"), nw.col("c_weight")
    return frame.with_columns(
        c_excess=we,
        c_weight2=w1 * w1,
        c_excess_weight2=w1 * we,
        c_variance=w1 * w1 * nw.col("varentropy"),
        c_deviation=w1 * nw.col("root"),
        c_square=we * we,
        c_seen=all_rows * (one - nw.col("correct")) if classes else nw.lit(0.0),
        c_announced=all_rows * (one - nw.col("confidence")) if classes else nw.lit(0.0),
    )


def add_pair_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add the columns of `PAIRS` but the number of rows, and return their names."""
    nw = language()
    frame = _based(frame, weighted, classes)
    wd = nw.col("c_deviation")
    if classes:
        q, rest = 1.0 - nw.col("confidence"), nw.col("confidence")
        rare = (wd * q, wd * q.sqrt(), wd * rest, wd * rest.sqrt())
    else:
        rare = (wd, wd, wd, wd)
    columns = {f"c_{name}": column for name, column in zip(RARE, rare, strict=True)}
    return frame.with_columns(**columns), [f"c_{name}" for name in (*BASE[1:], *RARE)]


def add_cluster_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add the columns of `Clusters` but the number of rows, and return their names.

    The surprise expected of two outcomes is ``L / (1 + exp(beta L))``, that of scalar Gaussians ``1 / (2 beta)``.
    """
    nw = language()
    frame = _based(frame, weighted, classes)
    w, odds = nw.col("w1"), nw.col("odds")
    if classes:
        t = nw.col("m_small") / nw.col("m_large")  # exp(-L)
        powers = dict(zip(("t0", "t1", "t2"), (t.sqrt(), t, t * t), strict=True))
        assert NEAR == (0.5, 1.0, 2.0)
        frame = frame.with_columns(**powers)
        frame = frame.with_columns(**{f"q{k}": nw.col(f"t{k}") / (1.0 + nw.col(f"t{k}")) for k in range(3)})
        frame = frame.with_columns(**{f"mean{k}": odds * nw.col(f"q{k}") for k in range(3)})
        spread = {f"var{k}": nw.col(f"mean{k}") * (odds * (1.0 - nw.col(f"q{k}"))) for k in _FAR}
    else:
        frame = frame.with_columns(**{f"mean{k}": nw.lit(0.5 / beta) for k, beta in enumerate(NEAR)})
        spread = {f"var{k}": nw.lit(0.5 / NEAR[k] ** 2) for k in _FAR}
    frame = frame.with_columns(**spread)
    frame = frame.with_columns(**{f"beyond{k}": w * (nw.col("mean1") - nw.col(f"mean{k}")) for k in _FAR})
    columns: dict[str, Any] = {"near1": w * nw.col("mean1")}
    for k in _FAR:
        e = nw.col("we") + nw.col(f"beyond{k}")
        columns |= {
            f"near{k}": w * nw.col(f"mean{k}"),
            f"variance{k}": w * w * nw.col(f"var{k}"),
            f"deviation{k}": w * nw.col(f"var{k}").sqrt(),
            f"square{k}": e * e,
        }
    return frame.with_columns(**columns), [*(f"c_{name}" for name in BASE[1:]), *columns]


_SUMS = ("n_value", "n_first", "n_second", "n_third")
_WEIGHTED = ("n_second_weight2", "n_third_weight3")
_MISTAKES = "n_mistakes"


def node_query(rows: Any, keys: list[str], weighted: bool) -> Any:
    """Return the lazy query of the sums of `NodeTable`, by key and by node.

    With ``q`` the tempered probability of the less likely outcome, the derivatives of ``R = log(1 + exp(-beta L))`` are
    ``-L q``, ``L**2 q (1 - q)`` and ``-L**3 q (1 - q) (1 - 2q)``. Each node is a pass of its own over the rows, and one
    query has them all. Twenty sums in one pass are more code than Spark compiles, and took it many times as long.
    """
    names = [*_SUMS, *((*_WEIGHTED, _MISTAKES) if weighted else ())]
    parts = [_at_node(rows, keys, weighted, k) for k in range(len(NODES))]
    return sums_by(language().concat(parts, how="vertical"), [*keys, "node"], names)


def _at_node(rows: Any, keys: list[str], weighted: bool, k: int) -> Any:
    """Add the columns of one node; certain and impossible rows give 0."""
    nw = language()
    zero, odds, w = nw.lit(0.0), nw.col("odds"), nw.col("w1")
    frame = rows.select(*keys, "odds", "w1", "certain", *(("weight", "correct") if weighted else ()))
    t = nw.when(nw.col("certain")).then(zero).otherwise((odds * (0.0 - NODES[k])).exp())
    frame = frame.with_columns(n_t=t, node=nw.lit(float(k)))
    frame = frame.with_columns(n_u=1.0 + nw.col("n_t"))
    frame = frame.with_columns(n_q=nw.col("n_t") / nw.col("n_u"))
    q = nw.col("n_q")
    frame = frame.with_columns(n_v=odds * q * (odds / nw.col("n_u")))  # L * L may overflow where q is 0
    v = nw.col("n_v")
    third = zero - v * (odds * (1.0 - 2.0 * q))
    columns = dict(
        zip(_SUMS, (w * log1p(nw.col("n_t"), nw.col("n_u")), zero - w * (odds * q), w * v, w * third), strict=True)
    )
    if weighted:
        weight = nw.col("weight")
        columns |= dict(zip(_WEIGHTED, (w * w * v, w * w * w * third), strict=True))
        columns[_MISTAKES] = weight * weight * (1.0 - nw.col("correct"))
    return frame.with_columns(**columns).select(*keys, "node", *columns)


def node_sums_of(result: Any, codes: Any, size: int, weighted: bool) -> FloatArray:
    """Return the sums of `NodeTable`, from what the query gave and the number of the key of each of its rows."""
    names = [*_SUMS, *(_WEIGHTED if weighted else ())]
    table = as_arrays(result, ["node", *names, *([_MISTAKES] if weighted else [])])
    place = codes * len(NODES) + table["node"].astype(np.intp)
    parts = [np.bincount(place, weights=table[name], minlength=size * len(NODES)) for name in names]
    sums: FloatArray = np.stack(parts, axis=1).astype(np.float64).reshape(size, -1)
    if not weighted:
        return sums
    mistakes = np.bincount(codes, weights=table[_MISTAKES] * (table["node"] == 0.0), minlength=size)
    return np.concatenate([sums, mistakes[:, None]], axis=1)


def sums_by(rows: Any, keys: list[str], names: list[str]) -> Any:
    """Return the lazy query that counts rows, as ``n``, and sums columns by key."""
    nw = language()
    chosen = rows.select(*keys, *names)
    return chosen.group_by(*keys).agg(nw.len().alias("n"), *(nw.col(name).sum() for name in names))


def collect_limited(query: Any, name: str) -> Any:
    """Run a query by key, if the keys are not too many, and return an Arrow table."""
    table = query.head(tally.MAX_KEYS + 1).collect("pyarrow").to_native()
    if table.num_rows > tally.MAX_KEYS:
        raise fail(
            ShapeError, name, f"must have at most {tally.MAX_KEYS} different values", got="more",
            hint="sums are kept for each of them; is it the right column?",
        )  # fmt: skip
    return table


def collect_numbers(query: Any) -> dict[str, AnyArray]:
    """Run a query, and return its columns of numbers."""
    table = query.collect("pyarrow").to_native()
    return as_arrays(table, table.column_names)


def as_arrays(table: Any, names: list[str]) -> dict[str, AnyArray]:
    """Return columns of numbers of an Arrow table."""
    return {name: np.asarray(table.column(name).to_numpy(), dtype=np.float64) for name in names}
