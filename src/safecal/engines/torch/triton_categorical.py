"""K outcomes as Triton kernels: scores of rows from their logits, each read once; and all sums of scored rows.

With ``M`` the largest logit of a row, ``d = z - M <= 0`` and ``u = exp(d)``, a row keeps the sums ``T`` of ``u`` and
``S1, S2, S3`` of ``u d``, ``u d^2``, ``u d^3``; in the further columns also ``Q`` of ``u^2`` and the number ``C`` of
logits that equal ``M``. When a larger ``M`` comes, all of them shift without cancellation. ``1 - p_top`` is a sum
without the largest, never ``T - 1`` where that would cancel.

Long rows keep one state for each lane of a tile, rescaled once a tile; short rows are held in registers. Sums are kept
as `triton_binary` says; a thread adds up its own few rows in float32.
This module stays importable without Triton, which `AVAILABLE` tells.
"""

# Kernels are written in a language of its own, which has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, assignment, var-annotated, attr-defined"

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._kernels.spectrum import BY_CLASS, CELLS, CONFIDENCE_STEPS, CONFIDENCES, HAIR, NODES
from ..._sums.scored import CELLS as SPREAD_CELLS
from ..._sums.scored import FIRST, SIDE
from ..._types import FloatArray
from .tensors import LEAST_ENTROPY, load_torch
from .triton_binary import _CELLS, _FAR, AVAILABLE, _add, _add_odds, _bin, _four, constant, copies_of, jit, tl
from .triton_nodes import NARROW, TINY, _exp, _gap, strides

__all__ = ["AVAILABLE", "launch", "split_classes", "sum_classes"]

_HELD = 1024  # logits that short rows fill a program with
_TILES = ((1024, (8, 128, 1)), (1 << 62, (8, 256, 1)))  # of a longer row, up to a length: lines, lanes, warps

_ROWS, _PROGRAMS = 128, 1056  # rows that a program adds up at once; results do not depend on the device
_SIDE = constant(SIDE)
_FIRST = constant(FIRST - 8 * (1023 - 127))  # in the exponents of float32
_STEPS = constant(CONFIDENCE_STEPS)
_CONFIDENCES = constant(CONFIDENCES)
_HAIR = constant(HAIR)
_LEAST_ENTROPY = constant(LEAST_ENTROPY)


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


def launch(logits: Any, y_true: Any, out: Any, ignored: int, more: bool) -> None:
    """Score rows on the device of the tensors; those without an answer become NaN, and ignored ones are not read.

    Logits (outer, inner, V) are fp32, bf16 or fp16; their steps are free but for the last, which is 1. Labels are
    contiguous integers. ``out`` is contiguous float32: the first 4 of `tensors.COLUMNS`, or 8 where ``more`` is true.
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


@jit
def _sixteen(a, b, c, d):
    # Four tiles of four columns side by side.
    joined = tl.join(tl.join(a, c), tl.join(b, d))  # row, column, and two axes that number the tiles
    return tl.reshape(tl.permute(joined, (0, 2, 3, 1)), (a.shape[0], 16))


@jit
def _classes(
    columns_ptr, y_ptr, edges_ptr, centres_ptr, cells_ptr, out_ptr, n, bins, classes, ignored, size,
    IGNORES: tl.constexpr, BY_CLASS: tl.constexpr, BRIER: tl.constexpr, COPIES: tl.constexpr, PROGRAMS: tl.constexpr,
    BINS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    cells_ptr += (program % COPIES) * size
    total = tl.zeros((BINS, 16), tl.float64)
    none = tl.zeros((ROWS,), tl.int32)
    bad, far, surprises = none, none, none
    zero = tl.zeros((ROWS,), tl.float64)
    nodes = (
        zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero,
        zero, zero,
    )  # fmt: skip
    for tile in range(program, (n + ROWS - 1) // ROWS, PROGRAMS):
        row = tile * ROWS + tl.arange(0, ROWS)
        counted = row < n
        at = columns_ptr + row
        if IGNORES:
            counted = counted & (tl.load(y_ptr + row, mask=counted, other=0) != ignored)
        e = tl.load(at + 3 * n, mask=counted, other=0.0)
        unknown = e != e
        bad += (counted & unknown).to(tl.int32)
        counted = counted & (unknown == 0)
        impossible = counted & (e == float("inf"))
        possible = counted & (impossible == 0)
        e = tl.where(possible, e, 0.0)
        far += (e > _FAR).to(tl.int32)
        entropy = tl.load(at + n, mask=possible, other=0.0)
        varentropy = tl.load(at + 2 * n, mask=possible, other=0.0)
        third = tl.load(at + 4 * n, mask=possible, other=0.0)
        brier = tl.load(at + 5 * n, mask=counted, other=0.0) * BRIER
        confidence = tl.load(at + 6 * n, mask=counted, other=0.0)
        correct = tl.load(at + 7 * n, mask=counted, other=0.0)
        surprises += tl.load(at + 8 * n, mask=possible, other=0.0).to(tl.int32)
        certain = tl.load(at + 9 * n, mask=counted, other=0.0)
        more = ()
        for k in tl.static_range(20):
            more = more + (nodes[k] + tl.load(at + (11 + k) * n, mask=possible, other=0.0),)
        nodes = more
        a = _four(counted.to(tl.float32), impossible.to(tl.float32), certain, e)
        b = _four(e * e, e * e * e, varentropy, third)
        c = _four(entropy, confidence, correct, confidence)
        d = _four(correct, brier, brier * 0.0, brier * 0.0)
        wide = confidence.to(tl.float64)
        same = (tl.arange(0, BINS)[:, None] == _bin(wide, edges_ptr, bins)[None, :]).to(tl.float32)
        total += tl.dot(same, _sixteen(a, b, c, d), input_precision="ieee").to(tl.float64)
        odds = tl.log(wide) - tl.log(tl.maximum(1.0 - wide, 0.0))
        cell = tl.where(counted, _STEPS * odds + (_HAIR + _CONFIDENCES // 2), 0.0)
        cell = tl.minimum(tl.maximum(cell, 0.0), _CONFIDENCES - 1.0).to(tl.int32)  # no less than 0, so it rounds down
        if BY_CLASS:
            cell += _CONFIDENCES * tl.load(at + 10 * n, mask=counted, other=0.0).to(tl.int32)
        ordered = cells_ptr + 16 * _CELLS
        _add(ordered, 16 * cell, counted, a)
        _add(ordered, 16 * cell + 4, counted, b)
        _add(ordered, 16 * cell + 8, counted, c)
        _add(ordered, 16 * cell + 12, counted, d)
        # As `top_moments` has it: where the confidence is rounded to 1, the entropy tells the log-odds.
        left = -tl.log(tl.maximum(entropy.to(tl.float64), _LEAST_ENTROPY))
        left += tl.log(1.0 + left)
        rounded = tl.abs(odds) == float("inf")
        inside = counted & ((rounded == 0) | possible)
        positive = wide >= 0.5
        L = tl.where(inside, tl.where(rounded, left, tl.abs(odds)), 0.0)
        _add_odds(cells_ptr, L, positive != (correct > 0.0), positive, inside, centres_ptr)
        bits = e.to(tl.int32, bitcast=True)
        step = tl.minimum(tl.maximum(((bits & 0x7FFFFFFF) >> 20) - _FIRST, 0), _SIDE)
        step = _SIDE + tl.where(bits < 0, -step, step)
        spread = ordered + 16 * _CONFIDENCES * (classes if BY_CLASS else 1)
        _add(spread, 4 * step, possible, _four(possible.to(tl.float32), e, e * 0.0, e * 0.0))
    place = tl.arange(0, BINS)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.atomic_add(out_ptr + 23 + place, total, mask=place < 16 * bins, sem="relaxed")
    tl.atomic_add(out_ptr, tl.sum(bad, axis=0).to(tl.float64), sem="relaxed")
    tl.atomic_add(out_ptr + 1, tl.sum(far, axis=0).to(tl.float64), sem="relaxed")
    tl.atomic_add(out_ptr + 2, tl.sum(surprises, axis=0).to(tl.float64), sem="relaxed")
    for k in tl.static_range(20):
        tl.atomic_add(out_ptr + 3 + k, tl.sum(nodes[k], axis=0), sem="relaxed")


def sum_classes(columns: Any, y_true: Any, edges: Any, centres: Any, classes: int, ignored: int | None) -> Any:
    """Sum rows on the device, and return all sums in float64, side by side; nothing is waited for.

    Columns are contiguous float32, `tensors.COLUMNS`; ends of bins and centres of cells are float64.
    """
    torch, n, bins = load_torch(), columns.shape[1], len(edges) - 1
    size = sum(_sizes(classes))
    copies = copies_of(n, size)
    cells = torch.zeros((copies, size), dtype=torch.float32, device=columns.device)
    out = torch.zeros(23 + 16 * bins, dtype=torch.float64, device=columns.device)
    programs = min(_PROGRAMS, math.ceil(n / _ROWS))
    _classes[(programs,)](
        columns, y_true, edges, centres, cells, out, n, bins, classes, ignored or 0, size, IGNORES=ignored is not None,
        BY_CLASS=classes <= BY_CLASS, BRIER=0.5 if classes == 2 else 1.0, COPIES=copies, PROGRAMS=programs,
        BINS=max(16, 1 << (bins - 1).bit_length()), ROWS=_ROWS, num_warps=4,
    )  # fmt: skip
    return torch.cat([out, cells.sum(0, dtype=torch.float64)])


def _sizes(classes: int) -> tuple[int, int, int]:
    """Return the lengths of the sums by cell of K outcomes: by log-odds, by confidence, by excess."""
    return 16 * CELLS, 16 * CONFIDENCES * (classes if classes <= BY_CLASS else 1), 4 * SPREAD_CELLS


def split_classes(summed: FloatArray, bins: int, classes: int) -> dict[str, FloatArray]:
    """Split sums as `split_outcomes` does; those by class are not among them."""
    ends = np.cumsum((3, 4 * len(NODES), 16 * bins, *_sizes(classes)))[:-1]
    _, nodes, sums, top, ordered, spread = np.split(summed, ends)
    return {
        "bad": summed[0], "far": summed[1], "surprises": summed[2], "nodes": nodes.reshape(-1, 4),
        "sums": sums.reshape(bins, 16)[:, :14], "top": top.reshape(CELLS, 2, 2, 4),
        "ordered": ordered.reshape(-1, 16)[:, :14], "spread": spread.reshape(SPREAD_CELLS, 4)[:, :2],
    }  # fmt: skip
