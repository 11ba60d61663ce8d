"""What is summed of rows that depend on each other, as expressions: the columns of `safecal._sums.clusters`."""

from typing import Any

from ..._sums.clusters import BASE, NEAR, RARE
from ..libraries import narwhals

__all__ = ["cluster_columns", "pair_columns"]

_FAR = (0, 2)  # the betas of `NEAR` other than 1


def _based(frame: Any, weighted: bool, classes: bool) -> Any:
    """Add the columns of `BASE` but the number of rows, which every query counts; mistakes of states are 0."""
    nw = narwhals()
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


def pair_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add the columns of `PAIRS` but the number of rows, and return their names."""
    nw = narwhals()
    frame = _based(frame, weighted, classes)
    wd = nw.col("c_deviation")
    if classes:
        q, rest = 1.0 - nw.col("confidence"), nw.col("confidence")
        found = (wd * q, wd * q.sqrt(), wd * rest, wd * rest.sqrt())
    else:
        found = (wd, wd, wd, wd)
    columns = {f"c_{name}": column for name, column in zip(RARE, found, strict=True)}
    return frame.with_columns(**columns), [f"c_{name}" for name in (*BASE[1:], *RARE)]


def cluster_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add the columns of `Clusters` but the number of rows, and return their names.

    The surprise expected of two outcomes is ``L / (1 + exp(beta L))``, that of scalar Gaussians ``1 / (2 beta)``.
    """
    nw = narwhals()
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
