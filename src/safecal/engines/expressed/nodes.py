"""Nodes of two outcomes as expressions: the columns of `safecal._sums.node_table`.

With ``q`` the tempered probability of the less likely outcome, the derivatives of ``R = log(1 + exp(-beta L))`` are
``-L q``, ``L**2 q (1 - q)`` and ``-L**3 q (1 - q) (1 - 2q)``. Each node has an exponential of its own: an engine that
writes columns into each other would repeat a chain of squares many times.
"""

from typing import Any

from ..._kernels.nodes import NODES
from ..libraries import narwhals
from .formulas import log1p

__all__ = ["node_columns"]


def node_columns(frame: Any, weighted: bool) -> tuple[Any, list[str]]:
    """Add the columns of `NodeTable`, and return their names; certain and impossible rows give 0."""
    nw = narwhals()
    zero, odds, w = nw.lit(0.0), nw.col("odds"), nw.col("w1")
    powers = {
        f"n{k}_t": nw.when(nw.col("certain")).then(zero).otherwise((odds * (0.0 - beta)).exp())
        for k, beta in enumerate(NODES)
    }
    frame = frame.with_columns(**powers)
    frame = frame.with_columns(**{f"n{k}_u": 1.0 + nw.col(f"n{k}_t") for k in range(len(NODES))})
    frame = frame.with_columns(**{f"n{k}_q": nw.col(f"n{k}_t") / nw.col(f"n{k}_u") for k in range(len(NODES))})
    spread = {
        f"n{k}_v": odds * nw.col(f"n{k}_q") * (odds / nw.col(f"n{k}_u"))  # L * L may overflow where q is 0
        for k in range(len(NODES))
    }
    frame = frame.with_columns(**spread)
    columns: dict[str, Any] = {}
    for k in range(len(NODES)):
        t, u, q, v = (nw.col(f"n{k}_{name}") for name in "tuqv")
        third = zero - v * (odds * (1.0 - 2.0 * q))
        columns |= {
            f"n{k}_0": w * log1p(t, u),
            f"n{k}_1": zero - w * (odds * q),
            f"n{k}_2": w * v,
            f"n{k}_3": w * third,
        }
        if weighted:
            columns |= {f"n{k}_4": w * w * v, f"n{k}_5": w * w * w * third}
    if weighted:
        weight = nw.col("weight")
        columns["n_mistakes"] = weight * weight * (1.0 - nw.col("correct"))
    return frame.with_columns(**columns), list(columns)
