"""Triton, where it is installed, and its kernels of two outcomes: their rows, and all their sums; each read once.

In the notation of `_kernels/classes.py`: the smaller probability ``m``, the larger ``M``, the log-odds ``L`` of the
larger, and ``c = -log M``. Rows are worked on in float32; sums leave the registers of a thread in float64.

Sums by cell are float32 and lie in copies that programs take turns with, so that few rows meet and no sum has many
terms; all of them are added in float64. Cells and bins are chosen in float64, as they are everywhere else. Rows whose
powers float32 does not hold are counted as ``far``, and the sums are then of no use.
This module stays importable without Triton, which `AVAILABLE` tells.
"""

# Kernels are written in a language of its own, which has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, assignment, var-annotated, attr-defined"

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._kernels.spectrum import CELLS, LOWEST
from ..._types import FloatArray
from .tensors import load_torch

__all__ = [
    "AVAILABLE", "SUMS", "constant", "copies_of", "jit", "launch_rows", "launch_sums", "programs", "split_outcomes",
    "sum_outcomes", "tl",
]  # fmt: skip

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
_COPIES = 512
_FLOATS = 1 << 22  # of all copies, at most: they must stay in the cache
_AT_ONCE = 10  # bins whose sums a thread holds
_TALLY_PER_LANE, _TALLY_PROGRAMS = 4, 2112  # as above, for all sums of a Tally

constant: Any = tl.constexpr if AVAILABLE else float
_LN2 = constant(0.6931471805599453)
_BEFORE = constant(int(LOWEST[1:2].view(np.int64)[0] >> 48) - 1)  # the number before the first cell of log-odds
_CELLS = constant(CELLS)
_FAR = constant(1e12)  # its cube is a float32


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
def _add_lanes(total, a):
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
        total = _add_lanes(total, some)
    rest = whole * (size * STEPS) + program * size
    if rest < n:  # the last rows, fewer than a whole step: a tile for each of the first programs
        keep = rest + place < n
        x = tl.load(x_ptr + rest + place, mask=keep, other=0.5).to(tl.float32)
        y = tl.load(y_ptr + rest + place, mask=keep, other=0)
        total = _add_lanes(total, _kept(_tile(x, y, LOGITS, FAST), keep))
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


@jit
def _four(a, b, c, d):
    # Four columns side by side, on a new last axis.
    joined = tl.join(tl.join(a, c), tl.join(b, d))
    return tl.reshape(joined, a.shape + [4])


@jit
def _add(sums_ptr, at, keep, values):
    # Add four neighbours at once: one instruction, where the device has it.
    place = tl.expand_dims(at, -1) + tl.arange(0, 4)
    tl.atomic_add(sums_ptr + place, values, mask=tl.expand_dims(keep, -1), sem="relaxed")


@jit
def _bin(x, edges_ptr, bins):
    # The number of inner edges at or below x.
    number = tl.zeros(x.shape, tl.int32)
    for k in range(1, bins):
        number += (x >= tl.load(edges_ptr + k)).to(tl.int32)
    return number


@jit
def _add_odds(sums_ptr, L, wrong, positive, inside, centres_ptr):
    # Powers of the distance from the centre of a cell; squares of the last cell may overflow.
    cell = (L.to(tl.int64, bitcast=True) >> 48) - _BEFORE
    cell = tl.minimum(tl.maximum(cell, 0), _CELLS - 1).to(tl.int32)
    d = (L - tl.load(centres_ptr + cell)).to(tl.float32)
    square = tl.where(cell == _CELLS - 1, 0.0, d)
    at = 16 * cell + 8 * wrong.to(tl.int32) + 4 * positive.to(tl.int32)
    _add(sums_ptr, at, inside, _four(inside.to(tl.float32), d, square * square, square * square * square))


@jit
def _outcomes(
    x_ptr, y_ptr, edges_ptr, centres_ptr, cells_ptr, out_ptr, n, bins, ignored, size,
    BEGIN: tl.constexpr, BINS: tl.constexpr, IGNORES: tl.constexpr, LOGITS: tl.constexpr, FAST: tl.constexpr,
    COPIES: tl.constexpr, PROGRAMS: tl.constexpr, LANES: tl.constexpr, PER_LANE: tl.constexpr,
):  # fmt: skip
    # Sums of BINS bins from BEGIN on; with the first of them all else.
    program = tl.program_id(0).to(tl.int64)
    cells_ptr += (program % COPIES) * size
    zero = tl.zeros((LANES,), tl.float32)
    none = tl.zeros((LANES,), tl.int32)
    bad, far = none, none
    total = ()
    for _ in tl.static_range(BINS):
        total = total + (zero, zero, zero, zero, zero, zero, zero, zero, zero, none, none, none)
    for tile in range(program, (n + LANES * PER_LANE - 1) // (LANES * PER_LANE), PROGRAMS):
        lane = tl.arange(0, LANES)[:, None] * PER_LANE + tl.arange(0, PER_LANE)[None, :]
        row = tile * (LANES * PER_LANE) + lane
        counted = row < n
        y = tl.load(y_ptr + row, mask=counted, other=0)
        x = tl.load(x_ptr + row, mask=counted, other=0.5).to(tl.float32)
        if IGNORES:
            counted = counted & (y != ignored)
        fine = ((y == 0) | (y == 1)) & (x == x)
        if not LOGITS:
            fine = fine & (x >= 0.0) & (x <= 1.0)
        bad += tl.sum((counted & (fine == 0)).to(tl.int32), axis=1)
        counted = counted & fine
        x = tl.where(counted, x, 0.5)
        m, M, L, c, p, positive, certain = _odds(x, LOGITS, FAST)
        far += tl.sum((L > _FAR).to(tl.int32), axis=1)
        happened = y == 1
        agree = positive == happened
        r = tl.where(agree, -m, M)
        e = r * L
        v = m * M * (L * L)
        entropy = m * L + c
        third = v * L * (M - m)
        wide = x.to(tl.float64)
        slot = tl.where(counted, _bin(wide, edges_ptr, bins) - BEGIN, -1)
        counts = 1 + 65536 * happened.to(tl.int32)
        sure = certain.to(tl.int32)
        others = agree.to(tl.int32) + 65536 * sure
        wrongly = sure * (agree == 0).to(tl.int32)
        more = ()
        for k in tl.static_range(BINS):
            one = (slot == k).to(tl.int32)
            w = one.to(tl.float32)
            more = more + (
                total[12 * k] + tl.sum(w * e, axis=1), total[12 * k + 1] + tl.sum(w * (e * e), axis=1),
                total[12 * k + 2] + tl.sum(w * (e * e * e), axis=1), total[12 * k + 3] + tl.sum(w * v, axis=1),
                total[12 * k + 4] + tl.sum(w * third, axis=1), total[12 * k + 5] + tl.sum(w * entropy, axis=1),
                total[12 * k + 6] + tl.sum(w * p, axis=1), total[12 * k + 7] + tl.sum(w * M, axis=1),
                total[12 * k + 8] + tl.sum(w * (r * r), axis=1), total[12 * k + 9] + tl.sum(one * counts, axis=1),
                total[12 * k + 10] + tl.sum(one * others, axis=1), total[12 * k + 11] + tl.sum(one * wrongly, axis=1),
            )  # fmt: skip
        total = more
        if BEGIN == 0:
            if LOGITS:
                odds = tl.where(certain, 0.0, tl.abs(wide))
            else:
                small = tl.minimum(wide, 1.0 - wide)
                odds = tl.where(certain, 0.0, tl.log((1.0 - small) / tl.where(certain, 1.0, small)))
            _add_odds(cells_ptr, odds, agree == 0, positive, counted & (certain == 0), centres_ptr)
    if BEGIN == 0:
        tl.atomic_add(out_ptr, tl.sum(bad, axis=0).to(tl.float64), sem="relaxed")
        tl.atomic_add(out_ptr + 1, tl.sum(far, axis=0).to(tl.float64), sem="relaxed")
    out_ptr += 2 + 16 * BEGIN
    for k in tl.static_range(BINS):
        for i in tl.static_range(9):
            tl.atomic_add(out_ptr + 16 * k + i, tl.sum(total[12 * k + i].to(tl.float64), axis=0), sem="relaxed")
        for i in tl.static_range(2):  # two counts in one number
            pair = total[12 * k + 9 + i]
            low, high = (pair & 65535).to(tl.float64), (pair >> 16).to(tl.float64)
            tl.atomic_add(out_ptr + 16 * k + 9 + 2 * i, tl.sum(low, axis=0), sem="relaxed")
            tl.atomic_add(out_ptr + 16 * k + 10 + 2 * i, tl.sum(high, axis=0), sem="relaxed")
        tl.atomic_add(out_ptr + 16 * k + 13, tl.sum(total[12 * k + 11], axis=0).to(tl.float64), sem="relaxed")


def launch_sums(values: Any, y_true: Any, out: Any, logits: bool) -> None:
    """Sum the columns of all rows, each program for itself: ``out`` (`programs` of n, 13) has the sums of `SUMS`.

    All are contiguous: values in fp32, bf16 or fp16, integers, and float64.
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


# Where the columns of `sums.NAMES` stand in the sums of two outcomes.
_PLACES = (9, 13, 12, 0, 1, 2, 3, 4, 5, 6, 10, 7, 11, 8)


def copies_of(n: int, size: int) -> int:
    """Return how many copies of so many sums by cell are worth their place."""
    return max(1, min(_COPIES, _FLOATS // size, n // 2048))


def sum_outcomes(values: Any, y_true: Any, edges: Any, centres: Any, logits: bool, ignored: int | None) -> Any:
    """Sum all that a Tally needs, as `sum_classes` does; ``edges`` are log-odds where the values are."""
    torch, n, bins = load_torch(), values.numel(), len(edges) - 1
    size = 16 * CELLS
    copies = copies_of(n, size)
    cells = torch.zeros((copies, size), dtype=torch.float32, device=values.device)
    out = torch.zeros(2 + 16 * bins, dtype=torch.float64, device=values.device)
    programs = min(_TALLY_PROGRAMS, math.ceil(n / (_LANES * _TALLY_PER_LANE)))
    for begin in range(0, bins, _AT_ONCE):
        _outcomes[(programs,)](
            values, y_true, edges, centres, cells, out, n, bins, ignored or 0, size, BEGIN=begin,
            BINS=min(_AT_ONCE, bins - begin), IGNORES=ignored is not None, LOGITS=logits, FAST=values.is_cuda,
            COPIES=copies, PROGRAMS=programs, LANES=_LANES, PER_LANE=_TALLY_PER_LANE, num_warps=4,
            enable_fp_fusion=True,
        )  # fmt: skip
    return torch.cat([out, cells.sum(0, dtype=torch.float64)])


def split_outcomes(summed: FloatArray, bins: int) -> dict[str, FloatArray]:
    """Split sums into the states of `sums.state_shapes`, and the counts of ``bad`` and ``far``."""
    sums, cells = np.split(summed[2:], [16 * bins])
    return {
        "bad": summed[0], "far": summed[1], "sums": sums.reshape(bins, 16)[:, _PLACES],
        "cells": cells.reshape(CELLS, 2, 2, 4),
    }  # fmt: skip
