"""Two outcomes: probabilities or log-odds."""

from typing import Any

import numpy as np

from ..._checks.message import fail, show
from ..._sums.summary import Summary, completed, summaries
from ...errors import DtypeError, FormError, InputError, LabelError, MissingValueError, RangeError, ShapeError
from .tensors import RowScores, block_rows, load_torch, on_cuda, widen

__all__ = [
    "bad_outcomes", "binary_columns", "binary_row_scores", "binary_summary", "check_outcomes", "flatten",
    "refuse_outcomes",
]  # fmt: skip

_SUMMED = (
    "excess", "varentropy", "third_cumulant", "entropy", "confidence", "brier", "predicted", "observed", "correct",
    "impossible", "bad",
)  # fmt: skip


def check_outcomes(y_true: Any, y_prob: Any, logits: Any) -> tuple[Any, bool]:
    """Check all that can be told without looking at values; return the prediction, and whether it is a logit."""
    torch = load_torch()
    if (y_prob is None) == (logits is None):
        raise fail(
            FormError, "y_prob", "or `logits` must be given, and not both", got="none" if y_prob is None else "both"
        )  # fmt: skip
    name, values = ("y_prob", y_prob) if logits is None else ("logits", logits)
    for argument, value in ((name, values), ("y_true", y_true)):
        if not isinstance(value, torch.Tensor):
            hint = "for arrays, use `safecal.bernoulli`."
            raise fail(DtypeError, argument, "must be a torch tensor", got=type(value).__name__, hint=hint)
    if values.dtype not in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        raise fail(DtypeError, name, "must be float64, float32, bfloat16 or float16", got=str(values.dtype))
    if y_true.is_floating_point() or y_true.is_complex():
        raise fail(DtypeError, "y_true", "must be booleans or integers", got=str(y_true.dtype), hint="`y_true == 1`?")
    if values.shape != y_true.shape:
        wide = "for one column a class use `row_scores` and `summary`." if values.ndim > y_true.ndim else None
        got = f"{tuple(y_true.shape)} and {tuple(values.shape)}"
        raise fail(ShapeError, "y_true", f"must have the shape of `{name}`", got=got, hint=wide)
    if y_true.device != values.device:
        got = f"{y_true.device} and {values.device}"
        raise fail(InputError, "y_true", f"must be on the device of `{name}`", got=got, hint="move it with `.to`.")
    return values.detach(), logits is not None


def flatten(y_true: Any, values: Any) -> tuple[Any, Any]:
    """Return both as contiguous columns, booleans as bytes."""
    torch = load_torch()
    y = y_true.reshape(-1).contiguous()
    return y.view(torch.uint8) if y.dtype == torch.bool else y, values.reshape(-1).contiguous()


def _kernel(values: Any) -> Any:
    """Return the Triton kernels where they can run, else None."""
    if not on_cuda(values):
        return None
    from . import triton_binary

    return triton_binary if triton_binary.AVAILABLE else None


def binary_columns(y: Any, values: Any, logits: bool) -> dict[str, Any]:
    """Return the columns of a block in float64; ``bad`` tells the rows without an answer.

    ``log_odds`` are those of the likelier outcome, 0 where it is ``certain``; ``positive`` tells whether it is the
    positive one.
    """
    torch = load_torch()
    x = widen(values)
    y = y.to(x.device)
    if logits:
        L = x.abs()
        certain = L.isinf()
        t = (-L).exp()
        M = 1.0 / (1.0 + t)
        m, c, contrast, positive = t * M, t.log1p(), -(-L).expm1() * M, x > 0.0
        L = torch.where(certain, 0.0, L)
        p, bad = torch.where(positive, M, m), x.isnan()
    else:
        p, positive, bad = x, x > 0.5, ~((x >= 0.0) & (x <= 1.0))
        m, M = torch.minimum(p, 1.0 - p), torch.maximum(p, 1.0 - p)
        certain, contrast, c = m == 0.0, (2.0 * p - 1.0).abs(), -(-m).log1p()
        tiny = m < 1e-300  # there the quotient could overflow
        L = torch.where(tiny, -m.log(), (contrast / torch.where(tiny, 1.0, m)).log1p())
        L = torch.where(certain, 0.0, L)
    agree = positive == (y == 1)
    r, mL = torch.where(agree, -m, M), m * L
    v, impossible = mL * L * M, certain & ~agree
    return {
        "excess": r * L, "varentropy": v, "third_cumulant": v * L * contrast, "entropy": mL + c,
        "surprisal": torch.where(agree, c, L + c), "confidence": M, "brier": r * r, "predicted": p,
        "observed": y == 1, "correct": agree, "impossible": impossible, "bad": bad | ((y != 0) & (y != 1)),
        "log_odds": L, "positive": positive, "certain": certain,
    }  # fmt: skip


def _blocks(y: Any, values: Any) -> Any:
    step = block_rows(values.device, 1)
    for start in range(0, y.numel(), step):
        yield slice(start, start + step), y[start : start + step], values[start : start + step]


def refuse_outcomes(bad: Any, y_true: Any, values: Any, name: str) -> None:
    """Raise for the first bad row."""
    first, count = int(bad.int().argmax()), (int(bad.sum()), bad.numel())
    place = tuple(int(i) for i in np.unravel_index(first, tuple(y_true.shape) or (1,)))
    where = f"row {place[0] if len(place) == 1 else place}"
    value, label = values.reshape(-1)[first].item(), y_true.reshape(-1)[first].item()
    if value != value:
        raise fail(MissingValueError, name, "must not be NaN", place=where, count=count)
    if name == "y_prob" and not 0.0 <= value <= 1.0:
        rule, hint = "must lie between 0 and 1", "log-odds go into `logits=`."
        raise fail(RangeError, name, rule, got=show(value), place=where, count=count, hint=hint)
    hint = "pass `y_true == label`."
    raise fail(LabelError, "y_true", "must be 0 or 1", got=show(label), place=where, count=count, hint=hint)


def bad_outcomes(y: Any, values: Any, name: str) -> Any:
    bad = values.isnan() | ((y != 0) & (y != 1))
    return bad | (values < 0.0) | (values > 1.0) if name == "y_prob" else bad


def binary_row_scores(y_true: Any, y_prob: Any = None, *, logits: Any = None, check: bool = True) -> RowScores:
    """Score each two-outcome prediction.

    Large ``excess`` means a surprise that the prediction did not announce. Results carry no gradient.

    Parameters
    ----------
    y_true : torch.Tensor
        Whether the positive outcome happened: booleans, or integers 0 and 1.
    y_prob : torch.Tensor of the same shape
        Probability of the positive outcome, in float64, float32, bfloat16 or float16.
    logits : torch.Tensor of the same shape
        Log-odds, instead of ``y_prob``.
    check : bool, default True
        Whether to refuse NaN, values outside [0, 1] and other labels. Without, such rows are NaN, and the device is not
        waited for.

    Returns
    -------
    RowScores
        Surprisal, entropy, varentropy and excess; float64 for float64 predictions, else float32.

    Examples
    --------
    The mean, as `safecal.metrics.ecd` gives it::

        binary_row_scores(y_true, y_prob).excess.mean(dtype=torch.float64)
    """
    values, as_logits = check_outcomes(y_true, y_prob, logits)
    torch, name = load_torch(), "logits" if as_logits else "y_prob"
    y, x = flatten(y_true, values)
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    out = torch.empty((4, x.numel()), dtype=dtype, device=x.device)
    kernel = _kernel(x)
    if kernel is not None and x.numel():
        with torch.cuda.device(x.device):
            kernel.launch_rows(x, y, out, as_logits)
    else:
        for rows, y_block, x_block in _blocks(y, x):
            columns = binary_columns(y_block, x_block, as_logits)
            for k, column in enumerate(("surprisal", "entropy", "varentropy", "excess")):
                score = columns[column]
                if column in ("surprisal", "excess"):
                    score = torch.where(columns["impossible"], torch.inf, score)
                out[k, rows] = torch.where(columns["bad"], torch.nan, score).to(out.device, dtype)
    if check and bool(out[0].isnan().any()):
        refuse_outcomes(bad_outcomes(y, x, name), y_true, values, name)
    return RowScores(*(column.reshape(y_true.shape) for column in out))


def binary_summary(y_true: Any, y_prob: Any = None, *, logits: Any = None) -> Summary:
    """Sum all rows to a `Summary`, the one that ``safecal.bernoulli(y_true, y_prob).summary()`` gives.

    Summaries of batches, or of other devices, add up with ``+``. Only a few numbers leave the device.

    Parameters
    ----------
    y_true, y_prob, logits
        As in `binary_row_scores`.

    Returns
    -------
    Summary
        The sums over all rows.

    Examples
    --------
    Over the batches of a loader::

        total = sum((binary_summary(y, logits=model(x)) for x, y in loader), start=safecal.Summary())
        total.ecd, total.nll
    """
    values, as_logits = check_outcomes(y_true, y_prob, logits)
    torch, name = load_torch(), "logits" if as_logits else "y_prob"
    y, x = flatten(y_true, values)
    n, kernel = x.numel(), _kernel(x)
    if n == 0:
        return Summary()
    if kernel is not None:
        parts = torch.empty((kernel.programs(n), len(kernel.SUMS)), dtype=torch.float64, device=x.device)
        with torch.cuda.device(x.device):
            kernel.launch_sums(x, y, parts, as_logits)
        sums = dict(zip(kernel.SUMS, parts.sum(0).tolist(), strict=True))
    else:
        sums = _sums_of_blocks(y, x, as_logits)
    if sums["mislabelled"] or sums["excess"] != sums["excess"]:
        refuse_outcomes(bad_outcomes(y, x, name), y_true, values, name)
    return _summary(sums, n)


def _sums_of_blocks(y: Any, values: Any, logits: bool) -> dict[str, float]:
    totals: dict[str, float] = {}
    for _, y_block, x_block in _blocks(y, values):
        scored = binary_columns(y_block, x_block, logits)
        e = scored["excess"]
        columns = {name: scored[name] for name in _SUMMED} | {"excess2": e * e, "excess3": e * e * e}
        for name, column in columns.items():
            totals[name] = totals.get(name, 0.0) + float(column.double().sum())
    return totals | {"mislabelled": totals["bad"]}


def _summary(sums: dict[str, float], n: int) -> Summary:
    named = {
        "n": n, "n_impossible": sums["impossible"], "weight_impossible": sums["impossible"],
        "weight2": n - sums["impossible"], "weight3": n - sums["impossible"], "sum_excess": sums["excess"],
        "sum_excess2_weight2": sums["excess2"], "sum_excess3_weight3": sums["excess3"],
        "sum_third_cumulant_weight3": sums["third_cumulant"],
    }  # fmt: skip
    same = ("varentropy", "entropy", "confidence", "brier", "predicted", "observed", "correct")
    named |= {f"sum_{name}": sums[name] for name in same}
    return summaries(completed({name: np.array([float(value)]) for name, value in named.items()}))[0]
