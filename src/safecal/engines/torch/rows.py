"""What each row says: of two outcomes, or of K, from logits or from the hidden states of a language model.

Before that stand the checks, and the refusals that name a row.
"""

from typing import Any, NoReturn

import numpy as np

from ..._checks import fail, show
from ...errors import (
    DtypeError,
    EmptyError,
    FormError,
    InputError,
    LabelError,
    MissingValueError,
    RangeError,
    ShapeError,
)
from .tensors import (
    IGNORED,
    WIDTHS,
    RowScores,
    bad_outcomes,
    binary_columns,
    counted_rows,
    flatten,
    formulas,
    load_torch,
    on_cuda,
    outcome_blocks,
    score_columns,
    triton_kernels,
    widen,
)

__all__ = [
    "binary_row_scores", "check_classes", "check_hidden", "check_outcomes", "differentiable_row_scores", "ecd",
    "hidden_columns", "named_form", "nll", "refuse_classes", "refuse_outcomes", "row_scores",
]  # fmt: skip

_CHUNK = 1024  # rows whose logits exist at once, where they are made from hidden states


def _check_tensors(torch: Any, name: str, values: Any, y_true: Any, function: str) -> None:
    for argument, value in ((name, values), ("y_true", y_true)):
        if not isinstance(value, torch.Tensor):
            hint = f"for arrays, use `safecal.{function}`."
            raise fail(DtypeError, argument, "must be a torch tensor", got=type(value).__name__, hint=hint)
    if values.dtype not in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        raise fail(DtypeError, name, "must be float64, float32, bfloat16 or float16", got=str(values.dtype))


def named_form(logits: Any, y_prob: Any, hidden: Any, weight: Any) -> str:
    """Name the one form in which predictions were given."""
    given_forms = [n for n, x in (("logits", logits), ("y_prob", y_prob), ("hidden", hidden)) if x is not None]
    if len(given_forms) != 1:
        rule = "or `y_prob` or `hidden` must be given, and only one of them"
        raise fail(FormError, "logits", rule, got=" and ".join(given_forms) or "none")
    if (hidden is None) != (weight is None):
        hint = "pass `hidden=states, weight=model.lm_head.weight`."
        raise fail(FormError, "weight", "belongs to `hidden`: the logits are `hidden @ weight.T + bias`", hint=hint)
    return given_forms[0]


def check_classes(y_true: Any, logits: Any) -> None:
    """Check all that can be told without looking at values."""
    torch = load_torch()
    _check_tensors(torch, "logits", logits, y_true, "categorical")
    if y_true.is_floating_point() or y_true.is_complex() or y_true.dtype == torch.bool:
        hint = "classes are numbered from 0: pass `y_true.long()`."
        raise fail(DtypeError, "y_true", "must hold integers", got=str(y_true.dtype), hint=hint)
    if logits.ndim < 1 or logits.shape[-1] < 2:
        rule = "must have a last dimension of two or more classes"
        raise fail(ShapeError, "logits", rule, got=f"shape {tuple(logits.shape)}")
    if y_true.shape != logits.shape[:-1]:
        rule = "must have the shape of `logits` without its last dimension"
        raise fail(ShapeError, "y_true", rule, got=f"{tuple(y_true.shape)} and {tuple(logits.shape)}")
    if y_true.device != logits.device:
        hint = "pass `y_true.to(logits.device)`."
        got = f"{y_true.device} and {logits.device}"
        raise fail(InputError, "y_true", "must be on the device of `logits`", got=got, hint=hint)


def _place(y_true: Any, row: int) -> tuple[tuple[int, ...], str]:
    """Return where a row lies in the tensor, as numbers and in words."""
    place = tuple(int(i) for i in np.unravel_index(row, tuple(y_true.shape) or (1,)))
    return place, f"row {place[0] if len(place) == 1 else place}"


def refuse_classes(surprisal: Any, y_true: Any, logits: Any, ignore_index: int | None) -> None:
    """Raise for the first row without an answer, if there is one."""
    bad = surprisal.isnan()
    if ignore_index is not None:
        bad &= y_true.reshape(-1) != ignore_index
    if not bool(bad.any()):
        return
    count, first, n, V = int(bad.sum()), int(bad.int().argmax()), bad.numel(), logits.shape[-1]
    place, where = _place(y_true, first)
    label = int(y_true.reshape(-1)[first])
    if not 0 <= label < V:
        hint = f"to leave such rows out, pass `ignore_index={label}`."
        rule = f"must be a class number from 0 to {V - 1}"
        raise fail(LabelError, "y_true", rule, got=show(label), place=where, count=(count, n), hint=hint)
    row = logits[place] if y_true.ndim else logits
    if bool(row.isnan().any()):
        raise fail(MissingValueError, "logits", "must not be NaN", place=where, count=(count, n))
    if bool((row == float("inf")).any()):
        rule, hint = "must be finite or -inf", "a +inf logit has no softmax."
    else:
        rule, hint = "must have a finite value in each row", "a row of only -inf gives no class a probability."
    raise fail(RangeError, "logits", rule, place=where, count=(count, n), hint=hint)


def check_outcomes(y_true: Any, y_prob: Any, logits: Any) -> tuple[Any, bool]:
    """Check all that can be told without looking at values; return the prediction, and whether it is a logit."""
    torch = load_torch()
    if (y_prob is None) == (logits is None):
        raise fail(
            FormError, "y_prob", "or `logits` must be given, and not both", got="none" if y_prob is None else "both"
        )  # fmt: skip
    name, values = ("y_prob", y_prob) if logits is None else ("logits", logits)
    _check_tensors(torch, name, values, y_true, "bernoulli")
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


def refuse_outcomes(bad: Any, y_true: Any, values: Any, name: str) -> NoReturn:
    """Raise for the first bad row."""
    first, count = int(bad.int().argmax()), (int(bad.sum()), bad.numel())
    _, where = _place(y_true, first)
    value, label = values.reshape(-1)[first].item(), y_true.reshape(-1)[first].item()
    if value != value:
        raise fail(MissingValueError, name, "must not be NaN", place=where, count=count)
    if name == "y_prob" and not 0.0 <= value <= 1.0:
        rule, hint = "must lie between 0 and 1", "log-odds go into `logits=`."
        raise fail(RangeError, name, rule, got=show(value), place=where, count=count, hint=hint)
    hint = "pass `y_true == label`."
    raise fail(LabelError, "y_true", "must be 0 or 1", got=show(label), place=where, count=count, hint=hint)


def row_scores(
    y_true: Any, logits: Any, *, ignore_index: int | None = None, chunk: int | None = None, check: bool = True
) -> RowScores:
    """Score each row of logits in one pass.

    Large ``excess`` means a surprise that the prediction did not announce. Results carry no gradient; see
    `differentiable_row_scores`.

    Parameters
    ----------
    y_true : torch.Tensor of shape (...)
        The class that happened, from 0 to V - 1.
    logits : torch.Tensor of shape (..., V)
        Unnormalised log-probabilities in float64, float32, bfloat16 or float16; ``-inf`` is a probability of 0.
    ignore_index : int, optional
        Rows with this label are left out: NaN in the results.
    chunk : int, optional
        Rows worked on at once where the Triton kernel does not run, or the classes do not lie side by side.
    check : bool, default True
        Whether to refuse NaN, ``+inf``, rows of nothing but ``-inf`` and unknown labels. Without, such rows are NaN,
        and the device is not waited for.

    Returns
    -------
    RowScores
        Surprisal, entropy, varentropy and excess, float64 for float64 logits, else float32.

    Examples
    --------
    With the logits of a language model, of shape (batch, length, vocabulary)::

        scores = row_scores(tokens[:, 1:], logits[:, :-1], ignore_index=-100)
        scores.excess.nanmean()
    """
    check_classes(y_true, logits)
    out = score_columns(y_true, logits, ignore_index, chunk, 0)
    if check:
        refuse_classes(out[0], y_true, logits, ignore_index)
    return RowScores(*(column.reshape(y_true.shape) for column in out))


def differentiable_row_scores(y_true: Any, logits: Any, *, ignore_index: int | None = None) -> RowScores:
    """Score each row in plain torch, so that gradients flow back to the logits.

    It holds several tensors of the size of ``logits``: meant for a few thousand classes, not for a vocabulary.

    Parameters
    ----------
    y_true, logits, ignore_index
        As in `row_scores`.

    Returns
    -------
    RowScores
        The numbers of `row_scores`, with gradients. Rows without an answer are NaN.

    Examples
    --------
    A penalty on over-confidence beside the loss::

        scores = differentiable_row_scores(y_true, logits)
        (scores.surprisal.mean() + scores.excess.mean().relu()).backward()
    """
    check_classes(y_true, logits)
    torch = load_torch()
    y = y_true.reshape(-1).long()
    if ignore_index is not None:
        y = torch.where(y == ignore_index, IGNORED, y)
    columns = formulas(logits.reshape(-1, logits.shape[-1]), y, 0)
    return RowScores(*(column.reshape(y_true.shape) for column in columns))


def _mean(y_true: Any, logits: Any, ignore_index: int | None, chunk: int | None, check: bool, column: int) -> Any:
    check_classes(y_true, logits)
    out = score_columns(y_true, logits, ignore_index, chunk, 0)
    counted = counted_rows(y_true, ignore_index)
    if check:
        refuse_classes(out[0], y_true, logits, ignore_index)
        if not bool(counted.any()):
            got = f"{y_true.numel()}, all ignored" if y_true.numel() else "none"
            raise fail(EmptyError, "y_true", "must have at least one row that counts", got=got)
    values = widen(out[column])
    return values.masked_fill(~counted, 0.0).sum() / counted.sum()


def ecd(
    y_true: Any, logits: Any, *, ignore_index: int | None = None, chunk: int | None = None, check: bool = True
) -> Any:
    """Return the Entropic Calibration Difference: the mean of surprisal minus entropy, in nats.

    Above 0 the model is over-confident, below 0 under-confident; read it beside `nll`.

    Parameters
    ----------
    y_true, logits, ignore_index, chunk, check
        As in `row_scores`.

    Returns
    -------
    torch.Tensor
        A float64 scalar on the device: ``+inf`` where an impossible outcome happened. Without ``check``, NaN where
        there are no rows.

    Examples
    --------
    As a float, which waits for the device::

        float(ecd(y_true, logits))
    """
    return _mean(y_true, logits, ignore_index, chunk, check, 3)


def nll(
    y_true: Any, logits: Any, *, ignore_index: int | None = None, chunk: int | None = None, check: bool = True
) -> Any:
    """Return the mean surprisal in nats; smaller is better.

    Parameters
    ----------
    y_true, logits, ignore_index, chunk, check
        As in `row_scores`.

    Returns
    -------
    torch.Tensor
        A float64 scalar on the device, as from `ecd`.

    Examples
    --------
    The perplexity of a language model::

        nll(y_true, logits).exp()
    """
    return _mean(y_true, logits, ignore_index, chunk, check, 0)


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
    kernel = triton_kernels("triton_binary", on_cuda(x))
    if kernel is not None and x.numel():
        with torch.cuda.device(x.device):
            kernel.launch_rows(x, y, out, as_logits)
    else:
        for rows, y_block, x_block in outcome_blocks(y, x):
            columns = binary_columns(y_block, x_block, as_logits)
            for k, column in enumerate(("surprisal", "entropy", "varentropy", "excess")):
                score = columns[column]
                if column in ("surprisal", "excess"):
                    score = torch.where(columns["impossible"], torch.inf, score)
                out[k, rows] = torch.where(columns["bad"], torch.nan, score).to(out.device, dtype)
    if check and bool(out[0].isnan().any()):
        refuse_outcomes(bad_outcomes(y, x, name), y_true, values, name)
    return RowScores(*(column.reshape(y_true.shape) for column in out))


def hidden_columns(
    y_true: Any,
    hidden: Any,
    weight: Any,
    bias: Any = None,
    *,
    ignore_index: int | None = None,
    chunk: int | None = None,
    check: bool = True,
) -> Any:
    """Return all columns of rows, from the states before the last layer: logits of ``chunk`` rows exist at a time.

    Rows without an answer are refused, which waits for the device; without ``check`` they are NaN.
    """
    check_hidden(y_true, hidden, weight)
    torch = load_torch()
    y, h = y_true.reshape(-1), hidden.detach().reshape(-1, hidden.shape[-1])
    step = chunk or (_CHUNK if on_cuda(h) else _CHUNK // 4)
    out = []
    with torch.no_grad():
        for begin in range(0, len(y), step):
            z = torch.nn.functional.linear(h[begin : begin + step], weight, bias)
            label = y[begin : begin + step]
            check_classes(label, z)
            out.append(score_columns(label, z if on_cuda(z) else widen(z), ignore_index, None, 2))
        columns = torch.cat(out, dim=1) if out else hidden.new_empty((WIDTHS[2], 0), dtype=torch.float32)
        bad = columns[0].isnan() & counted_rows(y, ignore_index).to(columns.device)
        if check and bool(bad.any()):  # asked once: each time the device is waited for
            first = int(bad.int().argmax())
            z = torch.nn.functional.linear(h[first : first + 1], weight, bias)
            refuse_classes(columns[0][first : first + 1], y[first : first + 1], z, ignore_index)
    return columns


def check_hidden(y_true: Any, hidden: Any, weight: Any) -> None:
    torch = load_torch()
    for name, value in (("hidden", hidden), ("weight", weight), ("y_true", y_true)):
        if not isinstance(value, torch.Tensor):
            raise fail(DtypeError, name, "must be a torch tensor", got=type(value).__name__)
    if weight.ndim != 2 or hidden.shape[-1] != weight.shape[1] or hidden.shape[:-1] != y_true.shape:
        rule = "must have shape (..., D), where `y_true` has (...) and `weight` (V, D)"
        got = f"{tuple(hidden.shape)}, {tuple(y_true.shape)} and {tuple(weight.shape)}"
        raise fail(ShapeError, "hidden", rule, got=got)
