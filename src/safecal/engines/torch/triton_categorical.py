"""Row formulas of K outcomes as Triton kernels: each logit is read once, and nothing but the results is written.

With ``M`` the largest logit of a row, ``d = z - M <= 0`` and ``u = exp(d)``, a row keeps the sums ``T`` of ``u`` and
``S1, S2, S3`` of ``u d``, ``u d^2``, ``u d^3``; in the further columns also ``Q`` of ``u^2`` and the number ``C`` of
logits that equal ``M``. When a larger ``M`` comes, all of them shift without cancellation. ``1 - p_top`` is a sum
without the largest, never ``T - 1`` where that would cancel.

Long rows keep one state for each lane of a tile, rescaled once a tile; short rows are held in registers.
This module stays importable without Triton, which `AVAILABLE` tells.
"""

# Kernels are written in a language of its own, which has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from typing import Any

from .triton_binary import AVAILABLE, jit, tl

__all__ = ["AVAILABLE", "NARROW", "TINY", "launch", "strides"]

TINY = 31  # longest row of which each thread takes one
NARROW = 512  # longest row that is held in registers
_HELD = 1024  # logits that short rows fill a program with
_TILES = ((1024, (8, 128, 1)), (1 << 62, (8, 256, 1)))  # of a longer row, up to a length: lines, lanes, warps


@jit
def _gap(z, largest):
    # -inf becomes a gap whose exp is 0, so that 0 * inf does not arise; NaN, also from inf - inf, stays.
    return tl.maximum(z - largest, -10000.0, propagate_nan=tl.PropagateNan.ALL)


@jit
def _exp(d, FAST: tl.constexpr):
    if FAST:  # one instruction: what is below the smallest normal float32 becomes 0
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [d * 1.4426950408889634], dtype=tl.float32, is_pure=True, pack=1
        )
    return tl.exp2(d * 1.4426950408889634)


@jit
def _shift(a, T, S1, S2, S3, Q, MORE: tl.constexpr, FAST: tl.constexpr):
    # The sums after the largest logit grew by -a. All terms of a sum have one sign.
    f = _exp(a, FAST)
    aT = a * T
    if MORE:
        S3 = f * (S3 + a * (3.0 * S2 + a * (3.0 * S1 + aT)))
        Q = f * f * Q
    return f * T, f * (S1 + aT), f * (S2 + a * (2.0 * S1 + aT)), S3, Q


@jit
def _step(z, m, T, S1, S2, S3, Q, C, MORE: tl.constexpr, FAST: tl.constexpr):
    # Add a (lines, lanes) tile to the states of its lanes.
    larger = tl.maximum(m, tl.max(z, axis=0))
    a = _gap(m, larger)
    T, S1, S2, S3, Q = _shift(a, T, S1, S2, S3, Q, MORE, FAST)
    d = _gap(z, larger[None, :])
    u = _exp(d, FAST)
    T += tl.sum(u, axis=0)
    ud = u * d
    S1 += tl.sum(ud, axis=0)
    S2 += tl.sum(ud * d, axis=0)
    if MORE:
        S3 += tl.sum(ud * d * d, axis=0)
        Q += tl.sum(u * u, axis=0)
        C = tl.where(a < 0.0, 0.0, C) + tl.sum(tl.where(d == 0.0, 1.0, 0.0), axis=0)
    return larger, T, S1, S2, S3, Q, C


@jit
def _finish(out_ptr, row, n, keep, fine, d_y, rest, mean, v, k3, square, first, MORE: tl.constexpr, FAST: tl.constexpr):
    # `rest` and `square` sum u and u^2 over all but one of the largest.
    nan = float("nan")
    total = 1.0 + rest
    fine = fine & (total > 0.0)
    log_total = tl.where(total == 1.0, rest, tl.log(total) * (rest / (total - 1.0)))  # log1p
    tl.store(out_ptr + row, tl.where(fine, log_total - d_y, nan), mask=keep)
    tl.store(out_ptr + n + row, tl.where(fine, log_total - mean, nan), mask=keep)
    tl.store(out_ptr + 2 * n + row, tl.where(fine, tl.maximum(v, 0.0), nan), mask=keep)
    tl.store(out_ptr + 3 * n + row, tl.where(fine, mean - d_y, nan), mask=keep)
    if MORE:
        u_y = _exp(_gap(d_y, 0.0), FAST)
        wrong = square + 1.0 - u_y * u_y + (total - u_y) * (total - u_y)
        brier = tl.where(d_y == 0.0, square + rest * rest, wrong) / (total * total)
        tl.store(out_ptr + 4 * n + row, tl.where(fine, k3, nan), mask=keep)
        tl.store(out_ptr + 5 * n + row, tl.where(fine, brier, nan), mask=keep)
        tl.store(out_ptr + 6 * n + row, tl.where(fine, 1.0 / total, nan), mask=keep)
        tl.store(out_ptr + 7 * n + row, tl.where((d_y == 0.0) & first, 1.0, 0.0), mask=keep)


@jit
def _wide(
    z_ptr, y_ptr, out_ptr, n, inner, units, outer_step, inner_step, ignored,
    G: tl.constexpr, LINES: tl.constexpr, LANES: tl.constexpr, MORE: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    # One long row. Lengths and steps come in units of G, which tells the compiler how wide loads may be.
    row = tl.program_id(0).to(tl.int64)
    V = units * G
    y = tl.load(y_ptr + row).to(tl.int64)
    fine = (y >= 0) & (y < V) & (y != ignored)
    z_row = z_ptr + (row // inner) * outer_step * G + (row % inner) * inner_step * G
    m = tl.full((LANES,), -3.4028234663852886e38, tl.float32)
    T = tl.zeros((LANES,), tl.float32)
    S1, S2, S3, Q, C = T, T, T, T, T
    if fine:
        tile = tl.arange(0, LINES)[:, None] * LANES + tl.arange(0, LANES)[None, :]
        whole = V // (LINES * LANES)
        for t in range(whole):
            z = tl.load(z_row + t * (LINES * LANES) + tile).to(tl.float32)
            m, T, S1, S2, S3, Q, C = _step(z, m, T, S1, S2, S3, Q, C, MORE, FAST)
        if whole * (LINES * LANES) < V:
            place = whole * (LINES * LANES) + tile
            z = tl.load(z_row + place, mask=place < V, other=float("-inf")).to(tl.float32)
            m, T, S1, S2, S3, Q, C = _step(z, m, T, S1, S2, S3, Q, C, MORE, FAST)
    M = tl.max(m, axis=0)
    C = tl.sum(tl.where(m == M, C, 0.0), axis=0)
    lanes, S1, S2, S3, Q = _shift(_gap(m, M), T, S1, S2, S3, Q, MORE, FAST)
    T = tl.sum(lanes, axis=0)
    rest, square = T - 1.0, tl.sum(Q, axis=0) - 1.0
    if T < 1.5:  # a sharp row, where the 1 of the largest hides the others: its lane is read again without it
        lane = tl.argmax(m, axis=0)
        others = tl.arange(0, LANES) != lane
        E = tl.zeros((LANES,), tl.float32)
        E2 = E
        for begin in range(0, V, LANES * LANES):
            place = begin + tl.arange(0, LANES) * LANES + lane
            z = tl.load(z_row + place, mask=place < V, other=float("-inf")).to(tl.float32)
            d = _gap(z, M)
            u = tl.where(d == 0.0, 0.0, _exp(d, FAST))
            E += u
            E2 += u * u
        rest = tl.sum(tl.where(others, lanes, 0.0) + E, axis=0)
        square = tl.sum(tl.where(others, Q, 0.0) + E2, axis=0)
    mean, second = tl.sum(S1, axis=0) / T, tl.sum(S2, axis=0) / T
    k3 = 0.0
    if MORE:
        k3 = mean * (3.0 * second - 2.0 * mean * mean) - tl.sum(S3, axis=0) / T
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    fine = fine & (T > 0.0)
    first = T > 0.0
    if MORE:  # noqa: SIM102 (the compiler decides the first)
        if (d_y == 0.0) & (C > 1.0):  # of equals the first counts: is there one before the outcome?
            earlier = tl.zeros((LANES,), tl.float32)
            for begin in range(0, y, LANES):
                place = begin + tl.arange(0, LANES)
                z = tl.load(z_row + place, mask=place < y, other=float("-inf")).to(tl.float32)
                earlier += tl.where(z == M, 1.0, 0.0)
            first = tl.sum(earlier, axis=0) == 0.0
    _finish(out_ptr, row, n, row < n, fine, d_y, rest, mean, second - mean * mean, k3, square, first, MORE, FAST)


@jit
def _narrow(
    z_ptr, y_ptr, out_ptr, n, inner, units, outer_step, inner_step, ignored,
    G: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, MORE: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    # Several short rows, each held whole.
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    V = units * G
    keep = row < n
    y = tl.load(y_ptr + row, mask=keep, other=-1).to(tl.int64)
    fine = (y >= 0) & (y < V) & (y != ignored)
    z_row = z_ptr + (row // inner) * outer_step * G + (row % inner) * inner_step * G
    place = tl.arange(0, WIDTH)[None, :]
    z = tl.load(z_row[:, None] + place, mask=fine[:, None] & (place < V), other=float("-inf")).to(tl.float32)
    M = tl.maximum(tl.max(z, axis=1), -3.4028234663852886e38)
    d = _gap(z, M[:, None])
    u = _exp(d, FAST)
    top = d == 0.0
    others = tl.where(top, 0.0, u)
    ud = u * d
    C = tl.sum(tl.where(top, 1.0, 0.0), axis=1)
    rest = tl.sum(others, axis=1) + (C - 1.0)
    T = 1.0 + rest
    mean, second = tl.sum(ud, axis=1) / T, tl.sum(ud * d, axis=1) / T
    v = second - mean * mean
    k3, square = v, v
    if MORE:
        k3 = mean * (3.0 * second - 2.0 * mean * mean) - tl.sum(ud * d * d, axis=1) / T
        square = tl.sum(others * others, axis=1) + (C - 1.0)
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    first = tl.min(tl.where(top, place, WIDTH), axis=1) == y
    _finish(out_ptr, row, n, keep, fine, d_y, rest, mean, v, k3, square, first, MORE, FAST)


@jit
def _tiny(
    z_ptr, y_ptr, out_ptr, n, inner, outer_step, inner_step, ignored,
    V: tl.constexpr, ROWS: tl.constexpr, MORE: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    # A row for each thread, class by class: first the largest, then the sums, read again from the cache.
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    keep = row < n
    y = tl.load(y_ptr + row, mask=keep, other=-1).to(tl.int64)
    fine = (y >= 0) & (y < V) & (y != ignored)
    z_row = z_ptr + (row // inner) * outer_step + (row % inner) * inner_step
    M = tl.full((ROWS,), -3.4028234663852886e38, tl.float32)
    likeliest = tl.zeros((ROWS,), tl.int64)
    for k in tl.static_range(V):
        z = tl.load(z_row + k, mask=fine, other=float("-inf")).to(tl.float32)
        likeliest = tl.where(z > M, k, likeliest)
        M = tl.maximum(M, z)
    C = tl.zeros((ROWS,), tl.float32)
    E, S1, S2, S3, Q = C, C, C, C, C
    for k in tl.static_range(V):
        d = _gap(tl.load(z_row + k, mask=fine, other=float("-inf")).to(tl.float32), M)
        u = _exp(d, FAST)
        C += tl.where(d == 0.0, 1.0, 0.0)
        others = tl.where(d == 0.0, 0.0, u)
        E += others
        ud = u * d
        S1 += ud
        S2 += ud * d
        S3 += ud * d * d
        Q += others * others
    rest = E + (C - 1.0)
    total = 1.0 + rest
    mean, second = S1 / total, S2 / total
    k3 = mean * (3.0 * second - 2.0 * mean * mean) - S3 / total
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    v = second - mean * mean
    _finish(out_ptr, row, n, keep, fine, d_y, rest, mean, v, k3, Q + (C - 1.0), likeliest == y, MORE, FAST)


def strides(logits: Any) -> tuple[tuple[int, int], int]:
    """Return the steps between rows, and how many logits can be read at once wherever a row begins."""
    outer, inner, V = logits.shape
    steps = (logits.stride(0) if outer > 1 else 0, logits.stride(1) if inner > 1 else 0)
    G = 16 // logits.element_size()
    while any(length % G for length in (V, *steps)):
        G //= 2
    return steps, G


def launch(logits: Any, y_true: Any, out: Any, ignored: int, more: bool) -> None:
    """Score rows on the device of the tensors.

    Parameters
    ----------
    logits : torch.Tensor of shape (outer, inner, V)
        In fp32, bf16 or fp16; steps are free but for the last, which is 1.
    y_true : torch.Tensor of shape (outer * inner,)
        Contiguous integers.
    out : torch.Tensor of shape (columns, outer * inner)
        Contiguous float32: the first 4 of `tensors.COLUMNS`, or 8 where ``more`` is true. Rows without an answer become
        NaN.
    ignored : int
        Rows with this label are not read.
    more : bool
        Whether to write the further columns.
    """
    outer, inner, V = logits.shape
    n = outer * inner
    steps, G = strides(logits)
    fast = logits.is_cuda
    if V <= TINY:
        grid = ((n + 127) // 128,)
        _tiny[grid](logits, y_true, out, n, inner, *steps, ignored, V=V, ROWS=128, MORE=more, FAST=fast, num_warps=4)
        return
    sizes = (n, inner, V // G, steps[0] // G, steps[1] // G, ignored)
    if V > NARROW:
        lines, lanes, warps = next(tile for length, tile in _TILES if length >= V)
        _wide[(n,)](
            logits, y_true, out, *sizes, G=G, LINES=lines, LANES=lanes, MORE=more, FAST=fast, num_warps=warps
        )  # fmt: skip
        return
    width = 1 << (V - 1).bit_length()
    rows, warps = _HELD // width, 1 if width >= 256 else 2
    grid = ((n + rows - 1) // rows,)
    _narrow[grid](logits, y_true, out, *sizes, G=G, ROWS=rows, WIDTH=width, MORE=more, FAST=fast, num_warps=warps)
