"""Torch itself, where a kernel may run, and rows of K logits: their columns, by the Triton kernel or in blocks."""

from functools import partial
from typing import Any, NamedTuple

from ..._checks.message import fail, show
from ..._kernels.spectrum import NODES
from ..._optional import require
from ...errors import RangeError

__all__ = [
    "COLUMNS", "IGNORED", "WIDTHS", "RowScores", "block_rows", "formulas", "load_torch", "node_columns", "on_cuda",
    "score_columns", "widen",
]  # fmt: skip

_ELEMENTS = {"cpu": 1 << 18}  # of a block: what a cache holds
_ELEMENTS_ELSEWHERE = 1 << 26
_CACHE = 1 << 15  # values whose powers fit into the cache of a processor


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


def widen(values: Any) -> Any:
    """Return float64, on the CPU where the device has none."""
    return values.cpu().double() if values.device.type == "mps" else values.double()


def on_cuda(values: Any) -> bool:
    """Tell whether a Triton kernel may read the tensor: it lies on CUDA, and is float32 or shorter."""
    return bool(values.device.type == "cuda" and values.element_size() <= 4)


def block_rows(device: Any, width: int) -> int:
    """Return how many rows of so many values to work on at once."""
    return max(1, _ELEMENTS.get(device.type, _ELEMENTS_ELSEWHERE) // width)


IGNORED = -1  # a label that never counts

#: The columns of K outcomes, level by level: what `row_scores` returns; what a Summary needs beside it; and what a
#: Tally needs: whether the outcome was less likely than another, whether some class is impossible, the likeliest class,
#: and the log-partition with three derivatives at each node, as `node_rows` gives them.
COLUMNS = (
    "surprisal", "entropy", "varentropy", "excess",
    "third_cumulant", "brier", "confidence", "correct",
    "surprised", "certain", "top", *(f"node {beta:g}, {k}" for beta in NODES for k in range(4)),
)  # fmt: skip
WIDTHS = (4, 8, len(COLUMNS))
_FAR = 3000.0  # a gap whose exponential is 0 at every node


def formulas(z: Any, y: Any, level: int) -> list[Any]:
    """Return the columns of a block of rows, up to a level; gradients pass through."""
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
    columns = [log_total - d_y, log_total - mean, weighted.sum(-1) / total, mean - d_y]
    if level:
        u_y = d_y.exp()
        square = (others * others).sum(-1) + (tops - 1)
        wrong = square + 1.0 - u_y * u_y + (total - u_y) ** 2
        brier = torch.where(d_y == 0.0, square + rest * rest, wrong) / (total * total)
        columns += [-(weighted * centred).sum(-1) / total, brier, 1.0 / total]
    columns = [torch.where(fine, column, torch.nan) for column in columns]
    if level:
        first = z.argmax(-1)  # of equals the first, as in NumPy
        columns.append((first == y).to(z.dtype))
    if level == 2:
        columns += [x.to(z.dtype) for x in (d_y < 0.0, (z.amin(-1) - largest).isneginf(), first)]
        nodes = node_columns((-d).scatter(-1, first[:, None], _FAR))
        columns += [torch.where(fine, column, torch.nan) for column in nodes]
    return columns


def node_columns(gaps: Any) -> Any:
    """Return ``R`` and its first three derivatives at each node, of shape (20, n), as `node_rows` gives them.

    ``gaps`` has shape (n, K): how much less likely each class is than the likeliest one, which is itself far away.
    """
    torch = load_torch()
    n, classes = gaps.shape
    step = max(1, _CACHE // classes) if gaps.device.type == "cpu" else max(1, _ELEMENTS_ELSEWHERE // (16 * classes))
    out = gaps.new_empty((len(NODES) * 4, n))
    for begin in range(0, n, step):
        out[:, begin : begin + step] = _node_block(torch, gaps[begin : begin + step])
    return out


def _node_block(torch: Any, gaps: Any) -> Any:
    n, classes = gaps.shape
    tilts, powers = gaps.new_empty((n, len(NODES), classes)), gaps.new_empty((n, 4, classes))
    powers[:, 0] = 1.0
    powers[:, 1] = gaps.clamp(max=_FAR)
    for k in (2, 3):
        torch.mul(powers[:, k - 1], powers[:, 1], out=powers[:, k])
    torch.exp(-NODES[0] * powers[:, 1], out=tilts[:, 0])
    for k in range(1, len(NODES)):  # each node is twice the one before
        torch.mul(tilts[:, k - 1], tilts[:, k - 1], out=tilts[:, k])
    rest, first, second, third = torch.bmm(tilts, powers.transpose(1, 2)).unbind(-1)
    first, second, third = (moment / (1.0 + rest) for moment in (first, second, third))
    derivatives = [-first, second - first * first, first * (3.0 * second - 2.0 * first * first) - third]
    return torch.stack([rest.log1p(), *derivatives], dim=-1).reshape(n, -1).T


def _planes(logits: Any) -> Any:
    """View the logits as (outer, inner, V); copies where four or more dimensions cannot be merged."""
    if logits.ndim <= 3:
        return logits.reshape((1,) * (3 - logits.ndim) + tuple(logits.shape))
    try:
        return logits.view(-1, *logits.shape[-2:])
    except RuntimeError:
        return logits.reshape(-1, *logits.shape[-2:])


def score_columns(y_true: Any, logits: Any, ignore_index: int | None, chunk: int | None, level: int) -> Any:
    """Return the columns up to a level as one (columns, rows) tensor."""
    torch = load_torch()
    ignored = IGNORED if ignore_index is None else ignore_index
    y, planes = y_true.reshape(-1), _planes(logits.detach())
    outer, inner, V = planes.shape
    n, device = y.numel(), logits.device
    if chunk is not None and chunk < 1:
        raise fail(RangeError, "chunk", "must be 1 or more rows", got=show(chunk))
    step = chunk or block_rows(device, V)
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    out = torch.empty((WIDTHS[level], n), dtype=dtype, device=device)
    if n == 0:
        return out
    kernel = _kernel(logits, level)
    if kernel is not None and planes.stride(-1) == 1:
        with torch.cuda.device(device):
            kernel(planes, y.contiguous(), out, ignored)
        return out
    with torch.no_grad():
        y = torch.where(y == ignored, IGNORED, y.long())
        for i in range(outer):  # never across planes, which need not lie in one step
            for begin in range(0, inner, step):
                rows = slice(i * inner + begin, i * inner + min(begin + step, inner))
                z = planes[i, begin : begin + step]
                if kernel is None:
                    for k, column in enumerate(formulas(z, y[rows], level)):
                        out[k, rows] = column
                else:
                    part = torch.empty((len(out), len(z)), dtype=dtype, device=device)
                    with torch.cuda.device(device):
                        kernel(z.contiguous()[None], y[rows], part, IGNORED)
                    out[:, rows] = part
    return out


def _kernel(logits: Any, level: int) -> Any:
    """Return the launcher of the Triton kernel where it can run, else None."""
    if not on_cuda(logits):
        return None
    from . import triton_categorical, triton_nodes

    if not triton_categorical.AVAILABLE:
        return None
    return triton_nodes.launch_nodes if level == 2 else partial(triton_categorical.launch, more=level == 1)
