"""Classifiers and language models whose logits lie in torch tensors: they are scored where they are.

On CUDA a Triton kernel reads each logit once; elsewhere, and for float64, torch works on blocks of rows. No softmax is
stored. Numbers are in nats; float32 and shorter logits are worked on in float32, float64 in float64, and sums over rows
are float64.
"""

from typing import Any, NamedTuple

import numpy as np

from .._checks.message import fail, show
from ..errors import DtypeError, InputError, LabelError, MissingExtraError, MissingValueError, RangeError, ShapeError
from ..summary import Summary, completed, summaries

__all__ = ["RowScores", "differentiable_row_scores", "ecd", "nll", "row_scores", "summary"]

_ELEMENTS = {"cpu": 1 << 18}  # of a block: what a cache holds
_ELEMENTS_ELSEWHERE = 1 << 26
_NOTHING = -1  # a label that never counts


class RowScores(NamedTuple):
    """What each row says, in nats; tensors of the shape of ``y_true``, on its device.

    ``excess`` is surprisal minus entropy, taken without their difference. Where the outcome was impossible, surprisal
    and excess are ``+inf``. Ignored rows are NaN in all of them.

    Examples
    --------
    The ten most surprising tokens, given what the model announced::

        row_scores(logits, tokens).excess.topk(10)
    """

    surprisal: Any
    entropy: Any
    varentropy: Any
    excess: Any


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            'scoring tensors needs torch, which is not installed.\n\nHint: pip install "safecal[torch]"'
        ) from error
    return torch


def _checked(logits: Any, y_true: Any) -> None:
    """Check all that can be told without looking at values."""
    torch = _torch()
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


def _block(z: Any, y: Any, more: bool) -> list[Any]:
    """Return the columns of a block of rows, as `triton_rows.MORE_COLUMNS` orders them; gradients pass through."""
    torch = _torch()
    z = z.float() if z.dtype != torch.float64 else z
    known = (y >= 0) & (y < z.shape[-1])
    z_y = z.gather(-1, torch.where(known, y, 0)[:, None])[:, 0]
    M = z.amax(-1, keepdim=True)
    largest = M[:, 0]
    fine = known & largest.isfinite()  # NaN, +inf, or nothing but -inf: no softmax
    d = (z - M).clamp(min=-1e4)  # a gap whose exp is 0, so that 0 * inf does not arise
    u = d.exp()
    top = d == 0.0
    others = u.masked_fill(top, 0.0)
    tops = top.sum(-1)
    rest = others.sum(-1) + (tops - 1)
    total = 1.0 + rest
    mean = (u * d).sum(-1) / total
    centred = d - mean[:, None]
    weighted = u * centred * centred
    d_y, log_total = z_y - largest, rest.log1p()
    columns = [log_total - d_y, log_total - mean, weighted.sum(-1) / total, mean - d_y]
    if more:
        u_y = d_y.exp()
        square = (others * others).sum(-1) + (tops - 1)
        wrong = square + 1.0 - u_y * u_y + (total - u_y) ** 2
        brier = torch.where(d_y == 0.0, square + rest * rest, wrong) / (total * total)
        columns += [-(weighted * centred).sum(-1) / total, brier, 1.0 / total]
    columns = [torch.where(fine, column, torch.nan) for column in columns]
    if more:
        columns.append(torch.where(d_y == 0.0, torch.where(tops == 1, 1.0, 2.0), 0.0).to(z.dtype))
    return columns


def _planes(logits: Any) -> Any:
    """View the logits as (outer, inner, V); copies where four or more dimensions cannot be merged."""
    if logits.ndim <= 3:
        return logits.reshape((1,) * (3 - logits.ndim) + tuple(logits.shape))
    try:
        return logits.view(-1, *logits.shape[-2:])
    except RuntimeError:
        return logits.reshape(-1, *logits.shape[-2:])


def _columns(logits: Any, y_true: Any, ignore_index: int | None, chunk: int | None, more: bool) -> Any:
    """Return the columns as one (columns, rows) tensor."""
    torch = _torch()
    ignored = _NOTHING if ignore_index is None else ignore_index
    y, planes = y_true.reshape(-1), _planes(logits.detach())
    outer, inner, V = planes.shape
    n, device = y.numel(), logits.device
    if chunk is not None and chunk < 1:
        raise fail(RangeError, "chunk", "must be 1 or more rows", got=show(chunk))
    step = chunk or max(1, _ELEMENTS.get(device.type, _ELEMENTS_ELSEWHERE) // V)
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    out = torch.empty((8 if more else 4, n), dtype=dtype, device=device)
    if n == 0:
        return out
    kernel = _kernel(logits)
    if kernel is not None and planes.stride(-1) == 1:
        with torch.cuda.device(device):
            kernel(planes, y.contiguous(), out, ignored, more)
        return out
    with torch.no_grad():
        y = torch.where(y == ignored, _NOTHING, y.long())
        for i in range(outer):  # never across planes, which need not lie in one step
            for begin in range(0, inner, step):
                rows = slice(i * inner + begin, i * inner + min(begin + step, inner))
                z = planes[i, begin : begin + step]
                if kernel is None:
                    for k, column in enumerate(_block(z, y[rows], more)):
                        out[k, rows] = column
                else:
                    part = torch.empty((len(out), len(z)), dtype=dtype, device=device)
                    with torch.cuda.device(device):
                        kernel(z.contiguous()[None], y[rows], part, _NOTHING, more)
                    out[:, rows] = part
    return out


def _kernel(logits: Any) -> Any:
    """Return the launcher of the Triton kernel where it can run, else None."""
    if logits.device.type != "cuda" or logits.element_size() > 4:
        return None
    from . import triton_rows

    return triton_rows.launch if triton_rows.AVAILABLE else None


def _counted(y_true: Any, ignore_index: int | None) -> Any:
    torch = _torch()
    y = y_true.reshape(-1)
    return torch.ones_like(y, dtype=torch.bool) if ignore_index is None else y != ignore_index


def _refuse(surprisal: Any, logits: Any, y_true: Any, ignore_index: int | None) -> None:
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
    logits: Any, y_true: Any, *, ignore_index: int | None = None, chunk: int | None = None, check: bool = True
) -> RowScores:
    """Score each row of logits in one pass.

    Large ``excess`` means a surprise that the prediction did not announce. Results carry no gradient; see
    `differentiable_row_scores`.

    Parameters
    ----------
    logits : torch.Tensor of shape (..., V)
        Unnormalised log-probabilities in float64, float32, bfloat16 or float16; ``-inf`` is a probability of 0.
    y_true : torch.Tensor of shape (...)
        The class that happened, from 0 to V - 1.
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

        scores = row_scores(logits[:, :-1], tokens[:, 1:], ignore_index=-100)
        scores.excess.nanmean()
    """
    _checked(logits, y_true)
    out = _columns(logits, y_true, ignore_index, chunk, False)
    if check:
        _refuse(out[0], logits, y_true, ignore_index)
    return RowScores(*(column.reshape(y_true.shape) for column in out))


def differentiable_row_scores(logits: Any, y_true: Any, *, ignore_index: int | None = None) -> RowScores:
    """Score each row in plain torch, so that gradients flow back to the logits.

    It holds several tensors of the size of ``logits``: meant for a few thousand classes, not for a vocabulary.

    Parameters
    ----------
    logits, y_true, ignore_index
        As in `row_scores`.

    Returns
    -------
    RowScores
        The numbers of `row_scores`, with gradients. Rows without an answer are NaN.

    Examples
    --------
    A penalty on over-confidence beside the loss::

        scores = differentiable_row_scores(logits, y_true)
        (scores.surprisal.mean() + scores.excess.mean().relu()).backward()
    """
    _checked(logits, y_true)
    torch = _torch()
    y = y_true.reshape(-1).long()
    if ignore_index is not None:
        y = torch.where(y == ignore_index, _NOTHING, y)
    columns = _block(logits.reshape(-1, logits.shape[-1]), y, False)
    return RowScores(*(column.reshape(y_true.shape) for column in columns))


def _mean(logits: Any, y_true: Any, ignore_index: int | None, chunk: int | None, check: bool, column: int) -> Any:
    _checked(logits, y_true)
    out = _columns(logits, y_true, ignore_index, chunk, False)
    counted = _counted(y_true, ignore_index)
    if check:
        _refuse(out[0], logits, y_true, ignore_index)
    values = _wide(out[column])
    return values.masked_fill(~counted, 0.0).sum() / counted.sum()


def _wide(values: Any) -> Any:
    """Return float64, on the CPU where the device has none."""
    return values.cpu().double() if values.device.type == "mps" else values.double()


def ecd(
    logits: Any, y_true: Any, *, ignore_index: int | None = None, chunk: int | None = None, check: bool = True
) -> Any:
    """Return the Entropic Calibration Difference: the mean of surprisal minus entropy, in nats.

    Above 0 the model is over-confident, below 0 under-confident; read it beside `nll`.

    Parameters
    ----------
    logits, y_true, ignore_index, chunk, check
        As in `row_scores`.

    Returns
    -------
    torch.Tensor
        A float64 scalar on the device: ``+inf`` where an impossible outcome happened, NaN where there are no rows.

    Examples
    --------
    As a float, which waits for the device::

        float(ecd(logits, y_true))
    """
    return _mean(logits, y_true, ignore_index, chunk, check, 3)


def nll(
    logits: Any, y_true: Any, *, ignore_index: int | None = None, chunk: int | None = None, check: bool = True
) -> Any:
    """Return the mean surprisal in nats; smaller is better.

    Parameters
    ----------
    logits, y_true, ignore_index, chunk, check
        As in `row_scores`.

    Returns
    -------
    torch.Tensor
        A float64 scalar on the device, as from `ecd`.

    Examples
    --------
    The perplexity of a language model::

        nll(logits, y_true).exp()
    """
    return _mean(logits, y_true, ignore_index, chunk, check, 0)


def summary(logits: Any, y_true: Any, *, ignore_index: int | None = None, chunk: int | None = None) -> Summary:
    """Sum all rows to a `Summary`, the one that ``safecal.categorical(y_true, logits=logits).summary()`` gives.

    Summaries of batches, or of other devices, add up with ``+``. Only a few numbers leave the device.

    Parameters
    ----------
    logits, y_true, ignore_index, chunk
        As in `row_scores`.

    Returns
    -------
    Summary
        The sums over all rows that are not ignored.

    Examples
    --------
    Over the batches of a loader::

        total = sum((summary(model(x), y) for x, y in loader), start=safecal.Summary())
        total.ecd, total.nll
    """
    _checked(logits, y_true)
    torch = _torch()
    counted = _counted(y_true, ignore_index)
    out = _columns(logits, y_true, ignore_index, chunk, True)
    _refuse(out[0], logits, y_true, ignore_index)
    correct = _correct(out[7], logits, y_true, counted)
    _, h, v, e, k3, brier, confidence, _ = _wide(out)
    counted, correct = counted.to(e.device), correct.to(e.device)
    impossible = e.isposinf() & counted
    possible = counted & ~impossible
    e, h, v, k3 = (torch.where(possible, x, 0.0) for x in (e, h, v, k3))
    brier, confidence = (torch.where(counted, x, 0.0) for x in (brier, confidence))
    if logits.shape[-1] == 2:
        brier = brier / 2.0  # two classes: the binary definition
    columns = {
        "n": counted, "n_impossible": impossible, "weight2": possible, "sum_excess": e, "sum_excess2_weight2": e * e,
        "sum_excess3_weight3": e * e * e, "sum_varentropy": v, "sum_third_cumulant_weight3": k3, "sum_entropy": h,
        "sum_confidence": confidence, "sum_correct": correct & counted, "sum_brier": brier,
    }  # fmt: skip
    found = torch.stack([column.sum(dtype=torch.float64) for column in columns.values()]).tolist()
    sums = {name: np.array([value]) for name, value in zip(columns, found, strict=True)}
    sums |= {"weight_impossible": sums["n_impossible"], "weight3": sums["weight2"]}
    sums |= {"sum_predicted": sums["sum_confidence"], "sum_observed": sums["sum_correct"]}
    return summaries(completed(sums))[0]


def _correct(rank: Any, logits: Any, y_true: Any, counted: Any) -> Any:
    """Return where the most likely class happened; of equals, the first counts, as in `safecal.categorical`."""
    correct = rank == 1.0
    for shared in ((rank == 2.0) & counted).nonzero()[:, 0].split(256):
        places = _torch().unravel_index(shared, y_true.shape) if y_true.ndim else ()
        first = logits[places].reshape(-1, logits.shape[-1]).argmax(-1)
        correct[shared] = first[: len(shared)] == y_true.reshape(-1)[shared]
    return correct
