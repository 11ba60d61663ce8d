"""Torch itself, where a kernel may run, and rows of K logits: their columns, by the Triton kernel or in blocks."""

from typing import Any, NamedTuple

from ..._checks.message import fail, show
from ..._optional import require
from ...errors import RangeError

__all__ = ["IGNORED", "RowScores", "block_rows", "formulas", "load_torch", "on_cuda", "scored_columns", "widened"]

_ELEMENTS = {"cpu": 1 << 18}  # of a block: what a cache holds
_ELEMENTS_ELSEWHERE = 1 << 26


class RowScores(NamedTuple):
    """What each row says, in nats; tensors of the shape of ``y_true``, on its device.

    ``excess`` is surprisal minus entropy, taken without their difference. Where the outcome was impossible, surprisal
    and excess are ``+inf``. Ignored rows are NaN in all of them.

    Examples
    --------
    The ten most surprising tokens, given what the model announced::

        row_scores(tokens, logits).excess.topk(10)
    """

    surprisal: Any
    entropy: Any
    varentropy: Any
    excess: Any


def load_torch() -> Any:
    """Import torch, or name the extra that brings it."""
    return require("torch", "scoring tensors needs torch", "torch")


def widened(values: Any) -> Any:
    """Return float64, on the CPU where the device has none."""
    return values.cpu().double() if values.device.type == "mps" else values.double()


def on_cuda(values: Any) -> bool:
    """Tell whether a Triton kernel may read the tensor: it lies on CUDA, and is float32 or shorter."""
    return bool(values.device.type == "cuda" and values.element_size() <= 4)


def block_rows(device: Any, width: int) -> int:
    """Return how many rows of so many values to work on at once."""
    return max(1, _ELEMENTS.get(device.type, _ELEMENTS_ELSEWHERE) // width)


IGNORED = -1  # a label that never counts


def formulas(z: Any, y: Any, more: bool) -> list[Any]:
    """Return the columns of a block of rows, as `triton_categorical` orders them; gradients pass through."""
    torch = load_torch()
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
    found = [log_total - d_y, log_total - mean, weighted.sum(-1) / total, mean - d_y]
    if more:
        u_y = d_y.exp()
        square = (others * others).sum(-1) + (tops - 1)
        wrong = square + 1.0 - u_y * u_y + (total - u_y) ** 2
        brier = torch.where(d_y == 0.0, square + rest * rest, wrong) / (total * total)
        found += [-(weighted * centred).sum(-1) / total, brier, 1.0 / total]
    found = [torch.where(fine, column, torch.nan) for column in found]
    if more:
        found.append(torch.where(d_y == 0.0, torch.where(tops == 1, 1.0, 2.0), 0.0).to(z.dtype))
    return found


def _planes(logits: Any) -> Any:
    """View the logits as (outer, inner, V); copies where four or more dimensions cannot be merged."""
    if logits.ndim <= 3:
        return logits.reshape((1,) * (3 - logits.ndim) + tuple(logits.shape))
    try:
        return logits.view(-1, *logits.shape[-2:])
    except RuntimeError:
        return logits.reshape(-1, *logits.shape[-2:])


def scored_columns(y_true: Any, logits: Any, ignore_index: int | None, chunk: int | None, more: bool) -> Any:
    """Return the columns as one (columns, rows) tensor."""
    torch = load_torch()
    ignored = IGNORED if ignore_index is None else ignore_index
    y, planes = y_true.reshape(-1), _planes(logits.detach())
    outer, inner, V = planes.shape
    n, device = y.numel(), logits.device
    if chunk is not None and chunk < 1:
        raise fail(RangeError, "chunk", "must be 1 or more rows", got=show(chunk))
    step = chunk or block_rows(device, V)
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
        y = torch.where(y == ignored, IGNORED, y.long())
        for i in range(outer):  # never across planes, which need not lie in one step
            for begin in range(0, inner, step):
                rows = slice(i * inner + begin, i * inner + min(begin + step, inner))
                z = planes[i, begin : begin + step]
                if kernel is None:
                    for k, column in enumerate(formulas(z, y[rows], more)):
                        out[k, rows] = column
                else:
                    part = torch.empty((len(out), len(z)), dtype=dtype, device=device)
                    with torch.cuda.device(device):
                        kernel(z.contiguous()[None], y[rows], part, IGNORED, more)
                    out[:, rows] = part
    return out


def _kernel(logits: Any) -> Any:
    """Return the launcher of the Triton kernel where it can run, else None."""
    if not on_cuda(logits):
        return None
    from . import triton_categorical

    return triton_categorical.launch if triton_categorical.AVAILABLE else None
