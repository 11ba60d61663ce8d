"""K outcomes: rows of logits, or of the hidden states of a language model, and their scores."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..._checks.message import fail, show
from ..._sums.causes import MOST_CLASSES
from ..._sums.summary import Summary, completed, summaries
from ...errors import DtypeError, EmptyError, InputError, LabelError, MissingValueError, RangeError, ShapeError
from .tensors import IGNORED, WIDTHS, RowScores, formulas, load_torch, on_cuda, score_columns, widen

__all__ = [
    "ScoredBlock", "check_classes", "check_hidden", "counted_rows", "differentiable_row_scores", "ecd",
    "hidden_columns", "hidden_rows", "logit_rows", "nll", "refuse_classes", "row_scores", "summary",
]  # fmt: skip

_ROWS_AT_ONCE = 1 << 20  # rows whose columns are held at once
_CHUNK = 1024  # rows whose logits exist at once, where they are made from hidden states


def check_classes(y_true: Any, logits: Any) -> None:
    """Check all that can be told without looking at values."""
    torch = load_torch()
    for name, value in (("logits", logits), ("y_true", y_true)):
        if not isinstance(value, torch.Tensor):
            hint = "for arrays, use `safecal.categorical`."
            raise fail(DtypeError, name, "must be a torch tensor", got=type(value).__name__, hint=hint)
    if logits.dtype not in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        raise fail(DtypeError, "logits", "must be float64, float32, bfloat16 or float16", got=str(logits.dtype))
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


def counted_rows(y_true: Any, ignore_index: int | None) -> Any:
    torch = load_torch()
    y = y_true.reshape(-1)
    return torch.ones_like(y, dtype=torch.bool) if ignore_index is None else y != ignore_index


def refuse_classes(surprisal: Any, y_true: Any, logits: Any, ignore_index: int | None) -> None:
    """Raise for the first row without an answer, if there is one."""
    bad = surprisal.isnan()
    if ignore_index is not None:
        bad &= y_true.reshape(-1) != ignore_index
    if not bool(bad.any()):
        return
    count, first, n, V = int(bad.sum()), int(bad.int().argmax()), bad.numel(), logits.shape[-1]
    place = tuple(int(i) for i in np.unravel_index(first, tuple(y_true.shape) or (1,)))
    where = f"row {place[0] if len(place) == 1 else place}"
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
        rule, hint = "must have a finite value in each row", "a row of nothing but -inf gives no class a probability."
    raise fail(RangeError, "logits", rule, place=where, count=(count, n), hint=hint)


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


def summary(y_true: Any, logits: Any, *, ignore_index: int | None = None, chunk: int | None = None) -> Summary:
    """Sum all rows to a `Summary`, the one that ``safecal.categorical(y_true, logits=logits).summary()`` gives.

    Summaries of batches, or of other devices, add up with ``+``. Only a few numbers leave the device.

    Parameters
    ----------
    y_true, logits, ignore_index, chunk
        As in `row_scores`.

    Returns
    -------
    Summary
        The sums over all rows that are not ignored.

    Examples
    --------
    Over the batches of a loader::

        total = sum((summary(y, model(x)) for x, y in loader), start=safecal.Summary())
        total.ecd, total.nll
    """
    check_classes(y_true, logits)
    torch = load_torch()
    counted = counted_rows(y_true, ignore_index)
    out = score_columns(y_true, logits, ignore_index, chunk, 1)
    refuse_classes(out[0], y_true, logits, ignore_index)
    _, h, v, e, k3, brier, confidence, correct = widen(out)
    counted = counted.to(e.device)
    impossible = e.isposinf() & counted
    possible = counted & ~impossible
    e, h, v, k3 = (torch.where(possible, x, 0.0) for x in (e, h, v, k3))
    brier, confidence = (torch.where(counted, x, 0.0) for x in (brier, confidence))
    if logits.shape[-1] == 2:
        brier = brier / 2.0  # two classes: the binary definition
    columns = {
        "n": counted, "n_impossible": impossible, "weight2": possible, "sum_excess": e, "sum_excess2_weight2": e * e,
        "sum_excess3_weight3": e * e * e, "sum_varentropy": v, "sum_third_cumulant_weight3": k3, "sum_entropy": h,
        "sum_confidence": confidence, "sum_correct": correct.bool() & counted, "sum_brier": brier,
    }  # fmt: skip
    totals = torch.stack([column.sum(dtype=torch.float64) for column in columns.values()]).tolist()
    sums = {name: np.array([value]) for name, value in zip(columns, totals, strict=True)}
    sums |= {"weight_impossible": sums["n_impossible"], "weight3": sums["weight2"]}
    sums |= {"sum_predicted": sums["sum_confidence"], "sum_observed": sums["sum_correct"]}
    return summaries(completed(sums))[0]


class ScoredBlock(NamedTuple):
    """Some of the rows of K outcomes."""

    columns: Any  # as `score_columns` gives them
    y: Any
    logits: Any  # of few classes, (n, K): sums by class need them; else None


def logit_rows(
    y_true: Any, logits: Any, ignore_index: int | None, chunk: int | None, check: bool
) -> Iterator[ScoredBlock]:
    """Score rows of logits, some at a time; with ``check`` those without an answer are refused."""
    classes = logits.shape[-1]
    step = _ROWS_AT_ONCE if logits.ndim == 2 else max(1, y_true.numel())  # rows of one matrix can be cut anywhere
    for begin in range(0, y_true.numel(), step):
        y, z = (y_true[begin : begin + step], logits[begin : begin + step]) if logits.ndim == 2 else (y_true, logits)
        columns = score_columns(y, z if on_cuda(z) else widen(z), ignore_index, chunk, 2)
        if check:
            refuse_classes(columns[0], y, z, ignore_index)
        yield ScoredBlock(columns, y.reshape(-1), z.reshape(-1, classes) if classes <= MOST_CLASSES else None)


def hidden_rows(
    y_true: Any, hidden: Any, weight: Any, bias: Any, ignore_index: int | None, chunk: int | None, check: bool
) -> Iterator[ScoredBlock]:
    """Score rows of hidden states, as `logit_rows` does."""
    if len(weight) <= MOST_CLASSES:  # sums by class need the logits themselves, which are few
        z = load_torch().nn.functional.linear(hidden, weight, bias)
        yield from logit_rows(y_true, z, ignore_index, chunk, check)
        return
    columns = hidden_columns(y_true, hidden, weight, bias, ignore_index=ignore_index, chunk=chunk, check=check)
    yield ScoredBlock(columns, y_true.reshape(-1), None)


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
