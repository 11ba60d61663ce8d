"""All that a Tally needs of rows of K outcomes, as Triton kernels that read each logit once.

With ``M`` the largest logit of a row, ``d = z - M <= 0`` and ``u = exp(d)``, a row keeps the number ``C`` of logits
that equal ``M``, and over all others, for ``u`` to the power of each node, the sums of ``u``, ``u d``, ``u d^2`` and
``u d^3``: T, S1, S2, S3 at 1, and Q, R, X, Y at 2, 1/4, 1/2 and 4. One exponential and squares of it give all powers.
When a larger ``M`` comes, all sums shift without cancellation; ``1 - p_top`` is a sum without the largest, and never
cancels.

Each thread keeps one state of a long row; short rows are held in registers. This module stays importable without
Triton, which `triton_binary.AVAILABLE` tells.
"""

# Kernels are written in a language of its own, which has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from typing import Any

from .triton_binary import jit, tl

__all__ = ["NARROW", "TINY", "launch_nodes", "strides"]

TINY = 31  # longest row of which each thread takes one
NARROW = 512  # longest row that is held in registers
_HELD = 512  # logits that short rows fill a program with
_LANES = 32  # of a long row: the threads of one warp, each with 16 bytes


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
def _shift(f, a, C, T, S1, S2, S3):
    # The sums at one node after the largest logit grew by -a, with f = exp(beta a): C equals of the old one join the
    # others. All terms of a sum have one sign.
    T += C
    aT = a * T
    third = S3 + a * (3.0 * S2 + a * (3.0 * S1 + aT))
    return f * T, f * (S1 + aT), f * (S2 + a * (2.0 * S1 + aT)), f * third


@jit
def _rescale(
    a, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd,
    FAST: tl.constexpr,
):  # fmt: skip
    C = tl.where(a < 0.0, C, 0.0)
    r = _exp(0.25 * a, FAST)
    x = r * r
    f = x * x
    q = f * f
    Ra, Rb, Rc, Rd = _shift(r, a, C, Ra, Rb, Rc, Rd)
    Xa, Xb, Xc, Xd = _shift(x, a, C, Xa, Xb, Xc, Xd)
    T, S1, S2, S3 = _shift(f, a, C, T, S1, S2, S3)
    Q, Qa, Qb, Qc = _shift(q, a, C, Q, Qa, Qb, Qc)
    Ya, Yb, Yc, Yd = _shift(q * q, a, C, Ya, Yb, Yc, Yd)
    return T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd


@jit
def _lane(x):
    # What a thread holds of a tile, summed. The first axis has length 1: a pass of the compiler fails on two axes.
    return tl.sum(tl.sum(x, axis=2), axis=0)


@jit
def _moments(u, d, square, cube):
    return _lane(u), _lane(u * d), _lane(u * square), _lane(u * cube)


@jit
def _step(
    z, m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd,
    FAST: tl.constexpr,
):  # fmt: skip
    # Add a (1, lanes, side by side) tile to the states of its lanes.
    larger = tl.maximum(m, tl.max(tl.max(z, axis=2), axis=0))
    a = _gap(m, larger)
    T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _rescale(
        a, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, FAST
    )
    d = _gap(z, larger[None, :, None])
    top = d == 0.0
    C = tl.where(a < 0.0, 0.0, C) + _lane(tl.where(top, 1.0, 0.0))
    square = d * d
    cube = square * d
    r = tl.where(top, 0.0, _exp(0.25 * d, FAST))
    x = r * r
    u = x * x
    q = u * u
    t, s1, s2, s3 = _moments(r, d, square, cube)
    Ra, Rb, Rc, Rd = Ra + t, Rb + s1, Rc + s2, Rd + s3
    t, s1, s2, s3 = _moments(x, d, square, cube)
    Xa, Xb, Xc, Xd = Xa + t, Xb + s1, Xc + s2, Xd + s3
    t, s1, s2, s3 = _moments(q, d, square, cube)
    Q, Qa, Qb, Qc = Q + t, Qa + s1, Qb + s2, Qc + s3
    t, s1, s2, s3 = _moments(q * q, d, square, cube)
    Ya, Yb, Yc, Yd = Ya + t, Yb + s1, Yc + s2, Yd + s3
    t, s1, s2, s3 = _moments(u, d, square, cube)
    T, S1, S2, S3 = T + t, S1 + s1, S2 + s2, S3 + s3
    low = tl.minimum(low, tl.min(tl.min(z, axis=2), axis=0))
    return larger, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd


@jit
def _log1p(x):
    total = 1.0 + x
    return tl.where(total == 1.0, x, tl.log(total) * (x / (total - 1.0)))


@jit
def _node(out_ptr, row, n, keep, fine, extra, at, T, S1, S2, S3):
    # The log-partition at one node and its derivatives: differences of like numbers are taken in float64.
    T += extra
    total = 1.0 + T.to(tl.float64)
    mean, second, third = S1 / total, S2 / total, S3 / total
    nan = float("nan")
    tl.store(out_ptr + at * n + row, tl.where(fine, _log1p(T), nan), mask=keep)
    tl.store(out_ptr + (at + 1) * n + row, tl.where(fine, mean.to(tl.float32), nan), mask=keep)
    variance = tl.maximum(second - mean * mean, 0.0)
    tl.store(out_ptr + (at + 2) * n + row, tl.where(fine, variance.to(tl.float32), nan), mask=keep)
    skew = third - mean * (3.0 * second - 2.0 * mean * mean)
    tl.store(out_ptr + (at + 3) * n + row, tl.where(fine, skew.to(tl.float32), nan), mask=keep)


@jit
def _finish(
    out_ptr, row, n, keep, fine, d_y, first, low, top, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd,
    Ya, Yb, Yc, Yd, FAST: tl.constexpr,
):  # fmt: skip
    # `first` tells whether no earlier class is as likely as the outcome; one of the C likeliest is not among the rest.
    nan = float("nan")
    extra = C - 1.0
    rest = T + extra
    total = 1.0 + rest
    mean, second = S1 / total, S2 / total
    fine = fine & (total > 0.0)
    log_total = _log1p(rest)
    tl.store(out_ptr + row, tl.where(fine, log_total - d_y, nan), mask=keep)
    tl.store(out_ptr + n + row, tl.where(fine, log_total - mean, nan), mask=keep)
    tl.store(out_ptr + 2 * n + row, tl.where(fine, tl.maximum(second - mean * mean, 0.0), nan), mask=keep)
    tl.store(out_ptr + 3 * n + row, tl.where(fine, mean - d_y, nan), mask=keep)
    square = Q + extra
    u_y = _exp(_gap(d_y, 0.0), FAST)
    wrong = square + 1.0 - u_y * u_y + (total - u_y) * (total - u_y)
    brier = tl.where(d_y == 0.0, square + rest * rest, wrong) / (total * total)
    k3 = mean * (3.0 * second - 2.0 * mean * mean) - S3 / total
    tl.store(out_ptr + 4 * n + row, tl.where(fine, k3, nan), mask=keep)
    tl.store(out_ptr + 5 * n + row, tl.where(fine, brier, nan), mask=keep)
    tl.store(out_ptr + 6 * n + row, tl.where(fine, 1.0 / total, nan), mask=keep)
    tl.store(out_ptr + 7 * n + row, tl.where((d_y == 0.0) & first, 1.0, 0.0), mask=keep)
    tl.store(out_ptr + 8 * n + row, tl.where(d_y < 0.0, 1.0, 0.0), mask=keep)
    tl.store(out_ptr + 9 * n + row, tl.where(low == float("-inf"), 1.0, 0.0), mask=keep)
    tl.store(out_ptr + 10 * n + row, top, mask=keep)
    _node(out_ptr, row, n, keep, fine, extra, 11, Ra, Rb, Rc, Rd)
    _node(out_ptr, row, n, keep, fine, extra, 15, Xa, Xb, Xc, Xd)
    _node(out_ptr, row, n, keep, fine, extra, 19, T, S1, S2, S3)
    _node(out_ptr, row, n, keep, fine, extra, 23, Q, Qa, Qb, Qc)
    _node(out_ptr, row, n, keep, fine, extra, 27, Ya, Yb, Yc, Yd)


@jit
def _wide(
    z_ptr, y_ptr, out_ptr, n, inner, units, outer_step, inner_step, ignored,
    G: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    # One long row. Lengths and steps come in units of G, which tells the compiler how wide loads may be.
    row = tl.program_id(0).to(tl.int64)
    V = units * G
    y = tl.load(y_ptr + row).to(tl.int64)
    fine = (y >= 0) & (y < V) & (y != ignored)
    z_row = z_ptr + (row // inner) * outer_step * G + (row % inner) * inner_step * G
    m = tl.full((LANES,), -3.4028234663852886e38, tl.float32)
    low = -m
    C = tl.zeros((LANES,), tl.float32)
    T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb = C, C, C, C, C, C, C, C, C, C
    Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = C, C, C, C, C, C, C, C, C, C
    if fine:
        lane, side = tl.arange(0, LANES)[:, None], tl.arange(0, WIDE)[None, :]
        if G == 1:  # noqa: SIM108 (the compiler decides); rows begin anywhere: threads read one logit each, side by side
            tile = (side * LANES + lane)[None, :, :]
        else:
            tile = (lane * WIDE + side)[None, :, :]
        whole = V // (LANES * WIDE)
        for t in range(whole):
            z = tl.load(z_row + t * (LANES * WIDE) + tile).to(tl.float32)
            m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _step(
                z, m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, FAST
            )
        if whole * (LANES * WIDE) < V:
            place = whole * (LANES * WIDE) + tile
            z = tl.load(z_row + place, mask=place < V, other=float("-inf")).to(tl.float32)
            before = low
            m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _step(
                z, m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, FAST
            )
            # Places beyond the row are no classes.
            low = tl.minimum(before, tl.min(tl.min(tl.where(place < V, z, float("inf")), axis=2), axis=0))
    M = tl.max(m, axis=0)
    a = _gap(m, M)
    T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _rescale(
        a, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, FAST
    )
    C = tl.sum(tl.where(a < 0.0, 0.0, C), axis=0)
    T, S1, S2, S3, Q = tl.sum(T), tl.sum(S1), tl.sum(S2), tl.sum(S3), tl.sum(Q)
    Qa, Qb, Qc = tl.sum(Qa), tl.sum(Qb), tl.sum(Qc)
    Ra, Rb, Rc, Rd = tl.sum(Ra), tl.sum(Rb), tl.sum(Rc), tl.sum(Rd)
    Xa, Xb, Xc, Xd = tl.sum(Xa), tl.sum(Xb), tl.sum(Xc), tl.sum(Xd)
    Ya, Yb, Yc, Yd = tl.sum(Ya), tl.sum(Yb), tl.sum(Yc), tl.sum(Yd)
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    first = C > 0.0
    if (d_y == 0.0) & (C > 1.0):  # of equals the first counts: is there one before the outcome?
        earlier = tl.zeros((LANES,), tl.float32)
        for begin in range(0, y, LANES):
            place = begin + tl.arange(0, LANES)
            z = tl.load(z_row + place, mask=place < y, other=float("-inf")).to(tl.float32)
            earlier += tl.where(z == M, 1.0, 0.0)
        first = tl.sum(earlier, axis=0) == 0.0
    _finish(
        out_ptr, row, n, row < n, fine & (C > 0.0), d_y, first, tl.min(low, axis=0), 0.0, C, T, S1, S2, S3, Q, Qa, Qb,
        Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, FAST,
    )  # fmt: skip


@jit
def _across(u, d, square, cube):
    return tl.sum(u, axis=1), tl.sum(u * d, axis=1), tl.sum(u * square, axis=1), tl.sum(u * cube, axis=1)


@jit
def _narrow(
    z_ptr, y_ptr, out_ptr, n, inner, units, outer_step, inner_step, ignored,
    G: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, FAST: tl.constexpr,
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
    equal = d == 0.0
    C = tl.sum(tl.where(equal, 1.0, 0.0), axis=1)
    square = d * d
    cube = square * d
    r = tl.where(equal, 0.0, _exp(0.25 * d, FAST))
    x = r * r
    u = x * x
    q = u * u
    Ra, Rb, Rc, Rd = _across(r, d, square, cube)
    Xa, Xb, Xc, Xd = _across(x, d, square, cube)
    T, S1, S2, S3 = _across(u, d, square, cube)
    Q, Qa, Qb, Qc = _across(q, d, square, cube)
    Ya, Yb, Yc, Yd = _across(q * q, d, square, cube)
    low = tl.min(tl.where(place < V, z, float("inf")), axis=1)
    likeliest = tl.min(tl.where(equal, place, WIDTH), axis=1)
    top = likeliest.to(tl.float32)
    first = likeliest == y
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    _finish(
        out_ptr, row, n, keep, fine & (C > 0.0), d_y, first, low, top, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd,
        Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, FAST,
    )  # fmt: skip


@jit
def _tiny(
    z_ptr, y_ptr, out_ptr, n, inner, outer_step, inner_step, ignored,
    V: tl.constexpr, ROWS: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    # A row for each thread, class by class: first the largest, then the sums, read again from the cache.
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    keep = row < n
    y = tl.load(y_ptr + row, mask=keep, other=-1).to(tl.int64)
    fine = (y >= 0) & (y < V) & (y != ignored)
    z_row = z_ptr + (row // inner) * outer_step + (row % inner) * inner_step
    M = tl.full((ROWS,), -3.4028234663852886e38, tl.float32)
    low = -M
    top = tl.zeros((ROWS,), tl.float32)
    for k in tl.static_range(V):
        z = tl.load(z_row + k, mask=fine, other=float("-inf")).to(tl.float32)
        top = tl.where(z > M, k * 1.0, top)
        low = tl.minimum(low, z)
        M = tl.maximum(M, z)
    C = tl.zeros((ROWS,), tl.float32)
    T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb = C, C, C, C, C, C, C, C, C, C
    Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = C, C, C, C, C, C, C, C, C, C
    for k in tl.static_range(V):
        d = _gap(tl.load(z_row + k, mask=fine, other=float("-inf")).to(tl.float32), M)
        equal = d == 0.0
        C += tl.where(equal, 1.0, 0.0)
        square = d * d
        cube = square * d
        r = tl.where(equal, 0.0, _exp(0.25 * d, FAST))
        x = r * r
        u = x * x
        q = u * u
        w = q * q
        Ra, Rb, Rc, Rd = Ra + r, Rb + r * d, Rc + r * square, Rd + r * cube
        Xa, Xb, Xc, Xd = Xa + x, Xb + x * d, Xc + x * square, Xd + x * cube
        Qa, Qb, Qc = Qa + q * d, Qb + q * square, Qc + q * cube
        Ya, Yb, Yc, Yd = Ya + w, Yb + w * d, Yc + w * square, Yd + w * cube
        T += u
        S1 += u * d
        S2 += u * square
        S3 += u * cube
        Q += q
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    _finish(
        out_ptr, row, n, keep, fine & (C > 0.0), d_y, top == y, low, top, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc,
        Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, FAST,
    )  # fmt: skip


def strides(logits: Any) -> tuple[tuple[int, int], int]:
    """Return the steps between rows, and how many logits can be read at once wherever a row begins."""
    outer, inner, V = logits.shape
    steps = (logits.stride(0) if outer > 1 else 0, logits.stride(1) if inner > 1 else 0)
    G = 16 // logits.element_size()
    while any(length % G for length in (V, *steps)):
        G //= 2
    return steps, G


def launch_nodes(logits: Any, y_true: Any, out: Any, ignored: int) -> None:
    """Score rows as `triton_categorical.launch` does, with all of `tensors.COLUMNS`.

    Of more than 512 classes the likeliest is not told.
    """
    outer, inner, V = logits.shape
    n, fast = outer * inner, logits.is_cuda
    steps, G = strides(logits)
    if V <= TINY:
        _tiny[((n + 127) // 128,)](
            logits, y_true, out, n, inner, *steps, ignored, V=V, ROWS=128, FAST=fast, num_warps=4
        )
        return
    sizes = (n, inner, V // G, steps[0] // G, steps[1] // G, ignored)
    if V > NARROW:
        wide = 16 // logits.element_size()
        _wide[(n,)](logits, y_true, out, *sizes, G=G, LANES=_LANES, WIDE=wide, FAST=fast, num_warps=1)
        return
    width = 1 << (V - 1).bit_length()
    rows = max(1, _HELD // width)
    _narrow[((n + rows - 1) // rows,)](
        logits, y_true, out, *sizes, G=G, ROWS=rows, WIDTH=width, FAST=fast, num_warps=1 if width >= 256 else 2
    )
