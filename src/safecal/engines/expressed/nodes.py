"""Nodes of two outcomes as expressions: the columns of `safecal._sums.node_table`.

With ``q`` the tempered probability of the less likely outcome, the derivatives of ``R = log(1 + exp(-beta L))`` are
``-L q``, ``L**2 q (1 - q)`` and ``-L**3 q (1 - q) (1 - 2q)``. Each node is a pass of its own over the rows, and one
query has them all. Twenty sums in one pass are more code than Spark compiles, and took it many times as long.
"""

from typing import Any

import numpy as np

from ..._kernels.spectrum import NODES
from ..._types import FloatArray
from ..libraries import narwhals
from .formulas import log1p
from .queries import arrays, sums_by

__all__ = ["node_query", "node_sums_of"]

_SUMS = ("n_value", "n_first", "n_second", "n_third")
_WEIGHTED = ("n_second_weight2", "n_third_weight3")
_MISTAKES = "n_mistakes"


def node_query(rows: Any, keys: list[str], weighted: bool) -> Any:
    """Return the lazy query of the sums of `NodeTable`, by key and by node."""
    names = [*_SUMS, *((*_WEIGHTED, _MISTAKES) if weighted else ())]
    parts = [_at_node(rows, keys, weighted, k) for k in range(len(NODES))]
    return sums_by(narwhals().concat(parts, how="vertical"), [*keys, "node"], names)


def _at_node(rows: Any, keys: list[str], weighted: bool, k: int) -> Any:
    """Add the columns of one node; certain and impossible rows give 0."""
    nw = narwhals()
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


def node_sums_of(found: Any, codes: Any, size: int, weighted: bool) -> FloatArray:
    """Return the sums of `NodeTable`, from what the query gave and the number of the key of each of its rows."""
    names = [*_SUMS, *(_WEIGHTED if weighted else ())]
    table = arrays(found, ["node", *names, *([_MISTAKES] if weighted else [])])
    place = codes * len(NODES) + table["node"].astype(np.intp)
    parts = [np.bincount(place, weights=table[name], minlength=size * len(NODES)) for name in names]
    sums: FloatArray = np.stack(parts, axis=1).astype(np.float64).reshape(size, -1)
    if not weighted:
        return sums
    mistakes = np.bincount(codes, weights=table[_MISTAKES] * (table["node"] == 0.0), minlength=size)
    return np.concatenate([sums, mistakes[:, None]], axis=1)
