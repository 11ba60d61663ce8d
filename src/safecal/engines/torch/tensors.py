"""Torch itself, where a kernel may run, and row formulas: the columns of two outcomes, and of K.

Of rows of logits the columns come from the Triton kernel, or in blocks from torch. A row without an answer (NaN, a
value out of range, an unknown label) has NaN in them: the device is not waited for.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..._checks import fail, show
from ..._checks.class_columns import row_tolerance
from ..._kernels.spectrum import NODES
from ..._optional import require
from ..._sums.causes import MOST_CLASSES
from ..._types import AnyArray, BoolArray
from ...errors import RangeError

__all__ = [
    "COLUMNS", "FORMS", "IGNORED", "LEAST_ENTROPY", "WIDTHS", "ClassColumns", "OddsColumns", "RowScores",
    "ScoredColumns", "bad_outcomes", "beside_counted", "binary_columns", "block_rows", "class_columns", "counted_rows",
    "flatten", "formulas", "load_torch", "node_columns", "on_cuda", "outcome_blocks", "score_columns", "to_numpy",
    "triton_kernels", "widen",
]  # fmt: skip

_ELEMENTS = {"cpu": 1 << 18}  # of a block: what a cache holds
_ELEMENTS_ELSEWHERE = 1 << 26
LEAST_ENTROPY = 1e-38  # that a device tells from 0
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


def triton_kernels(module: str, cuda: bool) -> Any:
    """Return a module of Triton kernels where they can run, else None."""
    if not cuda:
        return None
    from .triton_binary import AVAILABLE

    return import_module(f".{module}", __package__) if AVAILABLE else None


def block_rows(device: Any, width: int) -> int:
    """Return how many rows of so many values to work on at once."""
    return max(1, _ELEMENTS.get(device.type, _ELEMENTS_ELSEWHERE) // width)


def counted_rows(y_true: Any, ignore_index: int | None) -> Any:
    torch = load_torch()
    y = y_true.reshape(-1)
    return torch.ones_like(y, dtype=torch.bool) if ignore_index is None else y != ignore_index


def to_numpy(x: Any) -> AnyArray:
    torch = load_torch()
    x = x.detach().cpu()
    return np.asarray((x.float() if x.dtype == torch.bfloat16 else x).numpy())


def beside_counted(x: Any, shape: tuple[int, ...], kept: BoolArray) -> Any:
    """Bring groups, clusters or weights to the rows that count; they may have the shape of the labels."""
    if x is None:
        return None
    if isinstance(x, Mapping):
        return {name: beside_counted(column, shape, kept) for name, column in x.items()}
    values = to_numpy(x) if hasattr(x, "detach") else np.asarray(x)
    values = values.reshape(-1) if values.shape == shape else values
    return values[kept] if values.shape == kept.shape else values  # else the check of its length refuses it


def flatten(y_true: Any, values: Any) -> tuple[Any, Any]:
    """Return both as contiguous columns, booleans as bytes."""
    torch = load_torch()
    y = y_true.reshape(-1).contiguous()
    return y.view(torch.uint8) if y.dtype == torch.bool else y, values.reshape(-1).contiguous()


def outcome_blocks(y: Any, values: Any) -> Iterator[tuple[slice, Any, Any]]:
    """Yield rows of two outcomes, as many as a cache holds, and which they are."""
    step = block_rows(values.device, 1)
    for start in range(0, y.numel(), step):
        yield slice(start, start + step), y[start : start + step], values[start : start + step]


def bad_outcomes(y: Any, values: Any, name: str) -> Any:
    bad = values.isnan() | ((y != 0) & (y != 1))
    return bad | (values < 0.0) | (values > 1.0) if name == "y_prob" else bad


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
    kernels = triton_kernels("triton_nodes" if level == 2 else "triton_categorical", on_cuda(logits))
    kernel = kernels and (kernels.launch_nodes if level == 2 else partial(kernels.launch, more=level == 1))
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


class OddsColumns(NamedTuple):
    """What inference needs of two-class rows beside the columns; tensors of shape (n,)."""

    log_odds: Any  # of the likelier class; 0 where it is certain
    positive: Any  # whether that is the positive one


class ClassColumns(NamedTuple):
    """What inference needs of rows of K classes beside the columns; of shape (n,) where nothing else is said."""

    nodes: Any  # the log-partition and three derivatives at each node, (20, n)
    surprised: Any  # whether the outcome was less likely than another
    top: Any  # the likeliest class
    happened: Any  # the class that happened
    classes: int
    log_p: Any  # of every class, (n, K); None where classes are many


class ScoredColumns(NamedTuple):
    """What each row adds to the sums; tensors of shape (n,)."""

    excess: Any
    varentropy: Any
    third_cumulant: Any
    entropy: Any
    predicted: Any
    observed: Any
    confidence: Any
    correct: Any
    brier: Any
    certain: Any  # whether some class has a probability of exactly 0
    spectral: OddsColumns | ClassColumns


def _outcome_columns(values: Any, y: Any, *, logits: bool) -> ScoredColumns:
    torch = load_torch()
    named = binary_columns(y, values, logits)
    excess = torch.where(named["impossible"], torch.inf, named["excess"])
    named["excess"] = torch.where(named["bad"], torch.nan, excess)
    return ScoredColumns(
        **{name: named[name] for name in ScoredColumns._fields if name != "spectral"},
        spectral=OddsColumns(named["log_odds"], named["positive"]),
    )


def _class_probabilities(values: Any, y: Any) -> ScoredColumns:
    """Name the columns of (n, K) probabilities, used as given."""
    torch = load_torch()
    p = widen(values)
    y = y.to(p.device)
    K = p.shape[-1]
    known = (y >= 0) & (y < K)
    at = torch.where(known, y, 0)[:, None]
    z = torch.where(p > 0.0, p, 1.0).log()
    entropy = -(p * z).sum(-1)
    p_y, z_y = p.gather(-1, at)[:, 0], z.gather(-1, at)[:, 0]
    others = p.scatter(-1, at, 0.0)
    # Where p_y is near 1 the shorter formula cancels.
    confident = (others * others).sum(-1) + (1.0 - p_y) ** 2
    brier = torch.where(p_y > 0.5, confident, (p * p).sum(-1) - 2.0 * p_y + 1.0)
    centred = z + entropy[:, None]
    weighted = p * centred * centred
    normal = (p.sum(-1) - 1.0).abs() <= row_tolerance(K)
    fine = known & normal & (p.amin(-1) >= 0.0) & (p.amax(-1) <= 1.0)
    excess = torch.where(p_y == 0.0, torch.inf, -entropy - z_y)
    confidence, top = p.amax(-1), p.argmax(-1)
    correct = top == y
    log_top = confidence.log()
    gaps = torch.where(p > 0.0, log_top[:, None] - z, torch.inf).scatter(-1, top[:, None], torch.inf)
    # An outcome as likely as the most likely one is no surprise.
    surprised = ~correct & (-z_y > -log_top * (1.0 + 1e-9))
    log_p = torch.where(p > 0.0, z, -torch.inf) if K <= MOST_CLASSES else None
    return ScoredColumns(
        torch.where(fine, excess, torch.nan), weighted.sum(-1), -(weighted * centred).sum(-1), entropy,
        confidence, correct, confidence, correct, brier / 2.0 if K == 2 else brier, (p == 0.0).any(-1),
        ClassColumns(node_columns(gaps), surprised, top, y, K, log_p),
    )  # fmt: skip


def _class_logits(values: Any, y: Any) -> ScoredColumns:
    z = values if on_cuda(values) else widen(values)
    y = y.to(z.device)
    return class_columns(score_columns(y, z, None, None, 2), y, z.shape[-1], z)


def class_columns(scored: Any, y: Any, classes: int, z: Any = None) -> ScoredColumns:
    """Name the columns of `score_columns`; ``z`` are the logits, which sums by class need where classes are few."""
    scored = widen(scored)
    y = y.to(scored.device)
    _, entropy, varentropy, excess, third, brier, confidence, correct, surprised, certain, top, *_ = scored
    brier = brier / 2.0 if classes == 2 else brier
    log_p = widen(z).log_softmax(-1) if classes <= MOST_CLASSES and z is not None else None
    spectral = ClassColumns(scored[len(scored) - 4 * len(NODES) :], surprised.bool(), top.long(), y, classes, log_p)
    return ScoredColumns(
        excess, varentropy, third, entropy, confidence, correct.bool(), confidence, correct.bool(), brier,
        certain.bool(), spectral,
    )  # fmt: skip


#: How predictions are scored, by their family and whether they are logits.
FORMS: dict[tuple[str, bool], Callable[[Any, Any], ScoredColumns]] = {
    ("bernoulli", False): partial(_outcome_columns, logits=False),
    ("bernoulli", True): partial(_outcome_columns, logits=True),
    ("categorical", False): _class_probabilities,
    ("categorical", True): _class_logits,
}
