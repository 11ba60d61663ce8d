"""Triton, where it is installed, and row formulas of two outcomes as its kernels: each number is read once.

In the notation of `_kernels/classes.py`: the smaller probability ``m``, the larger ``M``, the log-odds ``L`` of the
larger, and ``c = -log M``. Rows are worked on in float32; sums leave the registers of a thread in float64.
This module stays importable without Triton, which `AVAILABLE` tells.
"""

# Kernels are written in a language of its own, which has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from typing import Any

__all__ = ["AVAILABLE", "SUMS", "jit", "launch_rows", "launch_sums", "programs", "tl"]

triton: Any = None
tl: Any = None
try:
    import triton  # type: ignore[no-redef]
    import triton.language as tl  # type: ignore[no-redef]
except ImportError:  # torch for the CPU comes without it
    pass

AVAILABLE = triton is not None


def _as_it_is(function: Any) -> Any:
    return function


jit: Any = triton.jit if AVAILABLE else _as_it_is

SUMS = (
    "excess", "excess2", "excess3", "varentropy", "third_cumulant", "entropy", "confidence", "brier", "predicted",
    "observed", "correct", "impossible", "mislabelled",
)  # fmt: skip

_LANES, _PER_LANE, _STEPS, _WARPS = 128, 8, 1, 4  # a program adds up LANES x PER_LANE rows at once, STEPS times
_PROGRAMS = 4224  # results do not depend on the device
_LN2 = tl.constexpr(0.6931471805599453) if AVAILABLE else 0.0


@jit
def _log2(x, FAST: tl.constexpr, NORMAL: tl.constexpr):
    # One instruction, where the library's logarithm is a polynomial; two more where x may be subnormal.
    if not FAST:
        return tl.log2(x)
    if NORMAL:
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return tl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@jit
def _odds(x, LOGITS: tl.constexpr, FAST: tl.constexpr):
    # m, M, L, c, p, whether the positive outcome is the more likely one, whether the other is impossible.
    # Of c = -log M the logarithm keeps too few digits where M is near 1; there its series has them.
    if LOGITS:
        size = tl.abs(x)
        certain = size == float("inf")
        t = tl.exp2(size * (-1.0 / _LN2))
        M = 1.0 / (1.0 + t)
        m = t * M
        series = t * (1.0 - t * (0.5 - t * (0.33333334 - 0.25 * t)))
        c = tl.where(t < 0.015625, series, _LN2 * _log2(1.0 + t, FAST, True))
        L = tl.where(certain, 0.0, size)
        positive = x > 0.0
        p = tl.where(positive, M, m)
    else:
        p, q = x, 1.0 - x
        positive = p > 0.5
        m, M = tl.minimum(p, q), tl.maximum(p, q)
        certain = m == 0.0
        a, b = _log2(m, FAST, False), _log2(M, FAST, True)
        series = m * (1.0 + m * (0.5 + m * (0.33333334 + 0.25 * m)))
        c = tl.where(m < 0.015625, series, -_LN2 * b)
        L = tl.where(certain, 0.0, _LN2 * (b - a))
    return m, M, L, c, p, positive, certain


@jit
def _tile(x, y, LOGITS: tl.constexpr, FAST: tl.constexpr):
    # The columns of some rows. What is no probability, and NaN, makes NaN of them.
    m, M, L, c, p, positive, certain = _odds(x, LOGITS, FAST)
    happened = (y & 1) != 0
    agree = positive == happened
    r = tl.where(agree, -m, M)
    e = r * L
    v = m * M * (L * L)
    impossible = certain & (agree == 0)
    return (
        e, e * e, e * e * e, v, v * L * (M - m), m * L + c, M, r * r, p,
        happened.to(tl.int32), agree.to(tl.int32), impossible.to(tl.int32), y,
    )  # fmt: skip


@jit
def _join(a, b):
    return (
        a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5], a[6] + b[6],
        a[7] + b[7], a[8] + b[8], a[9] + b[9], a[10] + b[10], a[11] + b[11], a[12] | b[12],
    )  # fmt: skip


@jit
def _lane(a):
    return tl.sum(a, axis=1).to(tl.float64)


@jit
def _add(total, a):
    # Add the rows of each lane to its totals. Of the labels, any bit but the first is wrong.
    wrong = ((a[12] >> 1) != 0).to(tl.int32)
    return (
        total[0] + _lane(a[0]), total[1] + _lane(a[1]), total[2] + _lane(a[2]), total[3] + _lane(a[3]),
        total[4] + _lane(a[4]), total[5] + _lane(a[5]), total[6] + _lane(a[6]), total[7] + _lane(a[7]),
        total[8] + _lane(a[8]), total[9] + _lane(a[9]), total[10] + _lane(a[10]), total[11] + _lane(a[11]),
        total[12] + _lane(wrong),
    )  # fmt: skip


@jit
def _kept(a, keep):
    return (
        tl.where(keep, a[0], 0.0), tl.where(keep, a[1], 0.0), tl.where(keep, a[2], 0.0), tl.where(keep, a[3], 0.0),
        tl.where(keep, a[4], 0.0), tl.where(keep, a[5], 0.0), tl.where(keep, a[6], 0.0), tl.where(keep, a[7], 0.0),
        tl.where(keep, a[8], 0.0), tl.where(keep, a[9], 0), tl.where(keep, a[10], 0), tl.where(keep, a[11], 0),
        tl.where(keep, a[12], 0),
    )  # fmt: skip


@jit
def _sums(
    x_ptr, y_ptr, out_ptr, n,
    LOGITS: tl.constexpr, FAST: tl.constexpr,
    LANES: tl.constexpr, PER_LANE: tl.constexpr, STEPS: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, LANES)[:, None] * PER_LANE + tl.arange(0, PER_LANE)[None, :]
    size: tl.constexpr = LANES * PER_LANE
    zero = tl.zeros((LANES,), tl.float64)
    total = (zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero)
    whole = n // (size * STEPS)
    for k in range(program, whole, PROGRAMS):
        start = k * (size * STEPS)
        x = tl.load(x_ptr + start + place).to(tl.float32)
        y = tl.load(y_ptr + start + place)
        some = _tile(x, y, LOGITS, FAST)
        for step in tl.static_range(1, STEPS):
            x = tl.load(x_ptr + start + step * size + place).to(tl.float32)
            y = tl.load(y_ptr + start + step * size + place)
            some = _join(some, _tile(x, y, LOGITS, FAST))
        total = _add(total, some)
    rest = whole * (size * STEPS) + program * size
    if rest < n:  # the last rows, fewer than a whole step: a tile for each of the first programs
        keep = rest + place < n
        x = tl.load(x_ptr + rest + place, mask=keep, other=0.5).to(tl.float32)
        y = tl.load(y_ptr + rest + place, mask=keep, other=0)
        total = _add(total, _kept(_tile(x, y, LOGITS, FAST), keep))
    for column in tl.static_range(13):
        tl.store(out_ptr + program * 13 + column, tl.sum(total[column], axis=0))


@jit
def _rows(x_ptr, y_ptr, out_ptr, n, LOGITS: tl.constexpr, FAST: tl.constexpr, SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    keep = row < n
    x = tl.load(x_ptr + row, mask=keep, other=0.5).to(tl.float32)
    y = tl.load(y_ptr + row, mask=keep, other=0)
    m, M, L, c, p, positive, certain = _odds(x, LOGITS, FAST)
    agree = positive == (y == 1)
    fine = (p >= 0.0) & (p <= 1.0) & ((y == 0) | (y == 1))  # p is NaN where the logit is
    nan, infinite = float("nan"), certain & (agree == 0)
    mL = m * L
    surprisal = tl.where(infinite, float("inf"), tl.where(agree, c, L + c))
    excess = tl.where(infinite, float("inf"), tl.where(agree, -mL, M * L))
    tl.store(out_ptr + row, tl.where(fine, surprisal, nan), mask=keep)
    tl.store(out_ptr + n + row, tl.where(fine, mL + c, nan), mask=keep)
    tl.store(out_ptr + 2 * n + row, tl.where(fine, mL * L * M, nan), mask=keep)
    tl.store(out_ptr + 3 * n + row, tl.where(fine, excess, nan), mask=keep)


def launch_sums(values: Any, y_true: Any, out: Any, logits: bool) -> None:
    """Sum the columns of all rows, each program for itself.

    Parameters
    ----------
    values, y_true : torch.Tensor of shape (n,)
        Probabilities or logits in fp32, bf16 or fp16, and integers; contiguous.
    out : torch.Tensor of shape (programs, 13)
        Contiguous float64, as `programs` makes it; the sums of `SUMS`.
    logits : bool
        Whether the values are log-odds.
    """
    _sums[(len(out),)](
        values, y_true, out, values.numel(), LOGITS=logits, FAST=values.is_cuda, LANES=_LANES, PER_LANE=_PER_LANE,
        STEPS=_STEPS, PROGRAMS=len(out), num_warps=_WARPS, enable_fp_fusion=True,
    )  # fmt: skip


def programs(n: int) -> int:
    """Return how many programs share n rows; at least as many as the last, incomplete step needs."""
    return max(_STEPS, min(_PROGRAMS, n // (_LANES * _PER_LANE * _STEPS)))


def launch_rows(values: Any, y_true: Any, out: Any, logits: bool) -> None:
    """Write surprisal, entropy, varentropy and excess of each row, as the rows of ``out``; NaN for a bad row."""
    n = values.numel()
    _rows[((n + 1023) // 1024,)](
        values, y_true, out, n, LOGITS=logits, FAST=values.is_cuda, SIZE=1024, num_warps=4, enable_fp_fusion=True
    )
