"""Row formulas of K outcomes as Triton kernels: each logit is read once, and nothing but the results is written.

With ``M`` the largest logit of a row, ``d = z - M <= 0`` and ``u = exp(d)``, a row keeps the number ``C`` of logits
that equal ``M``, and over all others the sums ``T`` of ``u`` and ``S1, S2, S3`` of ``u d``, ``u d^2``, ``u d^3``; on
demand the same of ``u`` to the power of each other node. When a larger ``M`` comes, all of them shift without
cancellation. ``1 - p_top`` is a sum without the largest, so that it never cancels.

Long rows keep one state for each lane of a tile, rescaled once a tile; short rows are held in registers.
This module stays importable without Triton, which `AVAILABLE` tells.
"""

# Kernels are written in a language of its own, which has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from typing import Any

from ._triton import AVAILABLE, jit, tl

__all__ = ["AVAILABLE", "launch"]

_TINY = 31  # longest row of which each thread takes one
_NARROW = 512  # longest row that is held in registers
_HELD = 1024  # logits that short rows fill a program with
# Of a longer row, by level, up to a length: lines, lanes, warps.
_SIMPLE = ((1024, (8, 128, 1)), (1 << 62, (8, 256, 1)))
_TILES = (_SIMPLE, _SIMPLE, ((1 << 62, (4, 128, 1)),))


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
def _shift(f, a, C, T, S1, S2, S3, THIRD: tl.constexpr):
    # The sums at one node after the largest logit grew by -a, with f = exp(beta a): C equals of the old one join the
    # others. All terms of a sum have one sign.
    T += C
    aT = a * T
    if THIRD:
        S3 = f * (S3 + a * (3.0 * S2 + a * (3.0 * S1 + aT)))
    return f * T, f * (S1 + aT), f * (S2 + a * (2.0 * S1 + aT)), S3


@jit
def _rescale(
    a, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd,
    LEVEL: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    # T, S1, S2, S3 at beta = 1; Q at 2; R, X, Y at 1/4, 1/2, 4.
    C = tl.where(a < 0.0, C, 0.0)
    if LEVEL == 2:
        r = _exp(0.25 * a, FAST)
        x = r * r
        f = x * x
        q = f * f
        Ra, Rb, Rc, Rd = _shift(r, a, C, Ra, Rb, Rc, Rd, True)
        Xa, Xb, Xc, Xd = _shift(x, a, C, Xa, Xb, Xc, Xd, True)
        Q, Qa, Qb, Qc = _shift(q, a, C, Q, Qa, Qb, Qc, True)
        Ya, Yb, Yc, Yd = _shift(q * q, a, C, Ya, Yb, Yc, Yd, True)
    else:
        f = _exp(a, FAST)
        if LEVEL == 1:
            Q = f * f * (Q + C)
    T, S1, S2, S3 = _shift(f, a, C, T, S1, S2, S3, LEVEL > 0)
    return T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd


@jit
def _moments(u, d, square, cube, AXIS: tl.constexpr):
    return tl.sum(u, axis=AXIS), tl.sum(u * d, axis=AXIS), tl.sum(u * square, axis=AXIS), tl.sum(u * cube, axis=AXIS)


@jit
def _step(
    z, m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd,
    LEVEL: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    # Add a (lines, lanes) tile to the states of its lanes.
    larger = tl.maximum(m, tl.max(z, axis=0))
    a = _gap(m, larger)
    T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _rescale(
        a, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, LEVEL, FAST
    )
    d = _gap(z, larger[None, :])
    top = d == 0.0
    C = tl.where(a < 0.0, 0.0, C) + tl.sum(tl.where(top, 1.0, 0.0), axis=0)
    if LEVEL == 2:
        square = d * d
        cube = square * d
        r = tl.where(top, 0.0, _exp(0.25 * d, FAST))
        x = r * r
        u = x * x
        q = u * u
        t, s1, s2, s3 = _moments(r, d, square, cube, 0)
        Ra, Rb, Rc, Rd = Ra + t, Rb + s1, Rc + s2, Rd + s3
        t, s1, s2, s3 = _moments(x, d, square, cube, 0)
        Xa, Xb, Xc, Xd = Xa + t, Xb + s1, Xc + s2, Xd + s3
        t, s1, s2, s3 = _moments(q, d, square, cube, 0)
        Q, Qa, Qb, Qc = Q + t, Qa + s1, Qb + s2, Qc + s3
        t, s1, s2, s3 = _moments(q * q, d, square, cube, 0)
        Ya, Yb, Yc, Yd = Ya + t, Yb + s1, Yc + s2, Yd + s3
        t, s1, s2, s3 = _moments(u, d, square, cube, 0)
        T, S1, S2, S3 = T + t, S1 + s1, S2 + s2, S3 + s3
        low = tl.minimum(low, tl.min(z, axis=0))
    else:
        u = tl.where(top, 0.0, _exp(d, FAST))
        ud = u * d
        T += tl.sum(u, axis=0)
        S1 += tl.sum(ud, axis=0)
        S2 += tl.sum(ud * d, axis=0)
        if LEVEL == 1:
            S3 += tl.sum(ud * d * d, axis=0)
            Q += tl.sum(u * u, axis=0)
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
    Ya, Yb, Yc, Yd, LEVEL: tl.constexpr, FAST: tl.constexpr,
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
    if LEVEL > 0:
        square = Q + extra
        u_y = _exp(_gap(d_y, 0.0), FAST)
        wrong = square + 1.0 - u_y * u_y + (total - u_y) * (total - u_y)
        brier = tl.where(d_y == 0.0, square + rest * rest, wrong) / (total * total)
        k3 = mean * (3.0 * second - 2.0 * mean * mean) - S3 / total
        tl.store(out_ptr + 4 * n + row, tl.where(fine, k3, nan), mask=keep)
        tl.store(out_ptr + 5 * n + row, tl.where(fine, brier, nan), mask=keep)
        tl.store(out_ptr + 6 * n + row, tl.where(fine, 1.0 / total, nan), mask=keep)
        tl.store(out_ptr + 7 * n + row, tl.where((d_y == 0.0) & first, 1.0, 0.0), mask=keep)
    if LEVEL == 2:
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
    G: tl.constexpr, LINES: tl.constexpr, LANES: tl.constexpr, LEVEL: tl.constexpr, FAST: tl.constexpr,
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
        tile = tl.arange(0, LINES)[:, None] * LANES + tl.arange(0, LANES)[None, :]
        whole = V // (LINES * LANES)
        for t in range(whole):
            z = tl.load(z_row + t * (LINES * LANES) + tile).to(tl.float32)
            m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _step(
                z, m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, LEVEL, FAST
            )
        if whole * (LINES * LANES) < V:
            place = whole * (LINES * LANES) + tile
            z = tl.load(z_row + place, mask=place < V, other=float("-inf")).to(tl.float32)
            before = low
            m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _step(
                z, m, low, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, LEVEL, FAST
            )
            if LEVEL == 2:  # places beyond the row are no classes
                low = tl.minimum(before, tl.min(tl.where(place < V, z, float("inf")), axis=0))
    M = tl.max(m, axis=0)
    a = _gap(m, M)
    T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = _rescale(
        a, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, LEVEL, FAST
    )
    C = tl.sum(tl.where(a < 0.0, 0.0, C), axis=0)
    T, S1, S2, S3, Q = tl.sum(T), tl.sum(S1), tl.sum(S2), tl.sum(S3), tl.sum(Q)
    if LEVEL == 2:
        Qa, Qb, Qc = tl.sum(Qa), tl.sum(Qb), tl.sum(Qc)
        Ra, Rb, Rc, Rd = tl.sum(Ra), tl.sum(Rb), tl.sum(Rc), tl.sum(Rd)
        Xa, Xb, Xc, Xd = tl.sum(Xa), tl.sum(Xb), tl.sum(Xc), tl.sum(Xd)
        Ya, Yb, Yc, Yd = tl.sum(Ya), tl.sum(Yb), tl.sum(Yc), tl.sum(Yd)
    else:
        Qa, Qb, Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd = T, T, T, T, T, T, T, T, T, T, T, T, T, T, T
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    first = C > 0.0
    if LEVEL > 0:  # noqa: SIM102 (the first is decided by the compiler)
        if (d_y == 0.0) & (C > 1.0):  # of equals the first counts: is there one before the outcome?
            earlier = tl.zeros((LANES,), tl.float32)
            for begin in range(0, y, LANES):
                place = begin + tl.arange(0, LANES)
                z = tl.load(z_row + place, mask=place < y, other=float("-inf")).to(tl.float32)
                earlier += tl.where(z == M, 1.0, 0.0)
            first = tl.sum(earlier, axis=0) == 0.0
    _finish(
        out_ptr, row, n, row < n, fine & (C > 0.0), d_y, first, tl.min(low, axis=0), 0.0, C, T, S1, S2, S3, Q, Qa, Qb,
        Qc, Ra, Rb, Rc, Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, LEVEL, FAST,
    )  # fmt: skip


@jit
def _narrow(
    z_ptr, y_ptr, out_ptr, n, inner, units, outer_step, inner_step, ignored,
    G: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, LEVEL: tl.constexpr, FAST: tl.constexpr,
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
    Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd = C, C, C, C, C, C, C, C
    Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, S3, low = C, C, C, C, C, C, C, C, C, C
    top = tl.zeros((ROWS,), tl.float32)
    first = C > 0.0
    if LEVEL == 2:
        cube = square * d
        r = tl.where(equal, 0.0, _exp(0.25 * d, FAST))
        x = r * r
        u = x * x
        q = u * u
        Ra, Rb, Rc, Rd = _moments(r, d, square, cube, 1)
        Xa, Xb, Xc, Xd = _moments(x, d, square, cube, 1)
        T, S1, S2, S3 = _moments(u, d, square, cube, 1)
        Q, Qa, Qb, Qc = _moments(q, d, square, cube, 1)
        Ya, Yb, Yc, Yd = _moments(q * q, d, square, cube, 1)
        low = tl.min(tl.where(place < V, z, float("inf")), axis=1)
    else:
        u = tl.where(equal, 0.0, _exp(d, FAST))
        T, S1, S2 = tl.sum(u, axis=1), tl.sum(u * d, axis=1), tl.sum(u * square, axis=1)
        if LEVEL == 1:
            S3, Q = tl.sum(u * square * d, axis=1), tl.sum(u * u, axis=1)
    if LEVEL > 0:
        likeliest = tl.min(tl.where(equal, place, WIDTH), axis=1)
        top = likeliest.to(tl.float32)
        first = likeliest == y
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    _finish(
        out_ptr, row, n, keep, fine & (C > 0.0), d_y, first, low, top, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc, Rd,
        Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, LEVEL, FAST,
    )  # fmt: skip


@jit
def _tiny(
    z_ptr, y_ptr, out_ptr, n, inner, outer_step, inner_step, ignored,
    V: tl.constexpr, ROWS: tl.constexpr, LEVEL: tl.constexpr, FAST: tl.constexpr,
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
        if LEVEL > 0:
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
        if LEVEL == 2:
            r = tl.where(equal, 0.0, _exp(0.25 * d, FAST))
            x = r * r
            u = x * x
            q = u * u
            w = q * q
            Ra, Rb, Rc, Rd = Ra + r, Rb + r * d, Rc + r * square, Rd + r * cube
            Xa, Xb, Xc, Xd = Xa + x, Xb + x * d, Xc + x * square, Xd + x * cube
            Qa, Qb, Qc = Qa + q * d, Qb + q * square, Qc + q * cube
            Ya, Yb, Yc, Yd = Ya + w, Yb + w * d, Yc + w * square, Yd + w * cube
        else:
            u = tl.where(equal, 0.0, _exp(d, FAST))
            q = u * u
        T += u
        S1 += u * d
        S2 += u * square
        S3 += u * cube
        Q += q
    d_y = tl.load(z_row + y, mask=fine, other=0.0).to(tl.float32) - M
    _finish(
        out_ptr, row, n, keep, fine & (C > 0.0), d_y, top == y, low, top, C, T, S1, S2, S3, Q, Qa, Qb, Qc, Ra, Rb, Rc,
        Rd, Xa, Xb, Xc, Xd, Ya, Yb, Yc, Yd, LEVEL, FAST,
    )  # fmt: skip


def launch(logits: Any, y_true: Any, out: Any, ignored: int, level: int) -> None:
    """Score rows on the device of the tensors.

    Parameters
    ----------
    logits : torch.Tensor of shape (outer, inner, V)
        In fp32, bf16 or fp16; steps are free but for the last, which is 1.
    y_true : torch.Tensor of shape (outer * inner,)
        Contiguous integers.
    out : torch.Tensor of shape (columns, outer * inner)
        Contiguous float32: the columns of that level, as `tensors.COLUMNS` has them. Rows without an answer are NaN.
    ignored : int
        Rows with this label are not read.
    level : int
        Which columns to write: 0, 1 or 2.
    """
    outer, inner, V = logits.shape
    n = outer * inner
    steps = (logits.stride(0) if outer > 1 else 0, logits.stride(1) if inner > 1 else 0)
    fast = logits.is_cuda
    if V <= _TINY:
        grid = ((n + 127) // 128,)
        _tiny[grid](logits, y_true, out, n, inner, *steps, ignored, V=V, ROWS=128, LEVEL=level, FAST=fast, num_warps=4)
        return
    G = 16 // logits.element_size()
    while any(length % G for length in (V, *steps)):
        G //= 2
    sizes = (n, inner, V // G, steps[0] // G, steps[1] // G, ignored)
    if V > _NARROW:
        lines, lanes, warps = next(tile for length, tile in _TILES[level] if length >= V)
        _wide[(n,)](
            logits, y_true, out, *sizes, G=G, LINES=lines, LANES=lanes, LEVEL=level, FAST=fast, num_warps=warps
        )  # fmt: skip
        return
    width = 1 << (V - 1).bit_length()
    rows, warps = _HELD // width, 1 if width >= 512 else 2
    grid = ((n + rows - 1) // rows,)
    _narrow[grid](logits, y_true, out, *sizes, G=G, ROWS=rows, WIDTH=width, LEVEL=level, FAST=fast, num_warps=warps)
