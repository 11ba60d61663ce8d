"""All sums of a Tally as Triton kernels: rows of K outcomes from their columns, two outcomes from the predictions.

Sums by cell are float32 and lie in copies that programs take turns with, so that few rows meet and no sum has many
terms; a thread adds up its own few rows in float32. All of these are added in float64. Cells and bins are chosen in
float64, as they are everywhere else. Rows whose powers float32 does not hold are counted as ``far``, and the sums are
then of no use.
This module stays importable without Triton, which `AVAILABLE` tells.
"""

# Kernels are written in a language of its own, which has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, assignment, var-annotated, attr-defined"

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._kernels.spectrum import BY_CLASS, CELLS, CONFIDENCE_STEPS, CONFIDENCES, HAIR, LOWEST, NODES
from ..._sums.scored import CELLS as SPREAD_CELLS
from ..._sums.scored import FIRST, SIDE
from ..._types import FloatArray
from .tensors import load_torch
from .triton_binary import AVAILABLE, _odds, jit, tl

__all__ = ["AVAILABLE", "split_sums", "sum_classes", "sum_outcomes"]

_ROWS = 128  # of K outcomes, that a program adds up at once
_LANES, _PER_LANE = 128, 4  # threads of a program, and rows of two outcomes that each reads at once
_PROGRAMS = 1056  # results do not depend on the device
_COPIES = 512
_FLOATS = 1 << 22  # of all copies, at most: they must stay in the cache
_AT_ONCE = 10  # bins whose sums a thread holds

_constant: Any = tl.constexpr if AVAILABLE else float
_BEFORE = _constant(int(LOWEST[1:2].view(np.int64)[0] >> 48) - 1)  # the number before the first cell of log-odds
_CELLS = _constant(CELLS)
_SIDE = _constant(SIDE)
_FIRST = _constant(FIRST - 8 * (1023 - 127))  # in the exponents of float32
_STEPS = _constant(CONFIDENCE_STEPS)
_CONFIDENCES = _constant(CONFIDENCES)
_HAIR = _constant(HAIR)
_FAR = _constant(1e12)  # its cube is a float32


@jit
def _four(a, b, c, d):
    # Four columns side by side, on a new last axis.
    joined = tl.join(tl.join(a, c), tl.join(b, d))
    return tl.reshape(joined, a.shape + [4])


@jit
def _sixteen(a, b, c, d):
    # Four tiles of four columns side by side.
    joined = tl.join(tl.join(a, c), tl.join(b, d))  # row, column, and two axes that number the tiles
    return tl.reshape(tl.permute(joined, (0, 2, 3, 1)), (a.shape[0], 16))


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
        inside = counted & (tl.abs(odds) < float("inf"))
        positive = wide >= 0.5
        L = tl.where(inside, tl.abs(odds), 0.0)
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


# Where the columns of `sums.NAMES` stand in the sums of two outcomes.
_PLACES = (9, 13, 12, 0, 1, 2, 3, 4, 5, 6, 10, 7, 11, 8)


def _copies(n: int, size: int) -> int:
    """Return how many copies of so many sums by cell are worth their place."""
    return max(1, min(_COPIES, _FLOATS // size, n // 2048))


def sum_classes(columns: Any, y_true: Any, edges: Any, centres: Any, classes: int, ignored: int | None) -> Any:
    """Sum rows of K outcomes on the device; nothing is waited for.

    Parameters
    ----------
    columns : torch.Tensor of shape (31, n)
        Contiguous float32: `tensors.COLUMNS`.
    y_true : torch.Tensor of shape (n,)
        Contiguous labels.
    edges, centres : torch.Tensor
        Of the bins and of the cells of log-odds, in float64.
    classes : int
        Number of classes.
    ignored : int, optional
        Rows with this label are left out.

    Returns
    -------
    torch.Tensor
        All sums in float64, side by side: `split_sums` takes them apart.
    """
    torch, n, bins = load_torch(), columns.shape[1], len(edges) - 1
    size = sum(_sizes(classes))
    copies = _copies(n, size)
    cells = torch.zeros((copies, size), dtype=torch.float32, device=columns.device)
    out = torch.zeros(23 + 16 * bins, dtype=torch.float64, device=columns.device)
    programs = min(_PROGRAMS, math.ceil(n / _ROWS))
    _classes[(programs,)](
        columns, y_true, edges, centres, cells, out, n, bins, classes, ignored or 0, size, IGNORES=ignored is not None,
        BY_CLASS=classes <= BY_CLASS, BRIER=0.5 if classes == 2 else 1.0, COPIES=copies, PROGRAMS=programs,
        BINS=max(16, 1 << (bins - 1).bit_length()), ROWS=_ROWS, num_warps=4,
    )  # fmt: skip
    return torch.cat([out, cells.sum(0, dtype=torch.float64)])


def sum_outcomes(values: Any, y_true: Any, edges: Any, centres: Any, logits: bool, ignored: int | None) -> Any:
    """Sum rows of two outcomes, as `sum_classes` does; ``edges`` are log-odds where the values are."""
    torch, n, bins = load_torch(), values.numel(), len(edges) - 1
    size = 16 * CELLS
    copies = _copies(n, size)
    cells = torch.zeros((copies, size), dtype=torch.float32, device=values.device)
    out = torch.zeros(2 + 16 * bins, dtype=torch.float64, device=values.device)
    programs = min(2 * _PROGRAMS, math.ceil(n / (_LANES * _PER_LANE)))
    for begin in range(0, bins, _AT_ONCE):
        _outcomes[(programs,)](
            values, y_true, edges, centres, cells, out, n, bins, ignored or 0, size, BEGIN=begin,
            BINS=min(_AT_ONCE, bins - begin), IGNORES=ignored is not None, LOGITS=logits, FAST=values.is_cuda,
            COPIES=copies, PROGRAMS=programs, LANES=_LANES, PER_LANE=_PER_LANE, num_warps=4, enable_fp_fusion=True,
        )  # fmt: skip
    return torch.cat([out, cells.sum(0, dtype=torch.float64)])


def _sizes(classes: int) -> tuple[int, int, int]:
    """Return the lengths of the sums by cell of K outcomes: by log-odds, by confidence, by excess."""
    return 16 * CELLS, 16 * CONFIDENCES * (classes if classes <= BY_CLASS else 1), 4 * SPREAD_CELLS


def split_sums(summed: FloatArray, bins: int, classes: int | None) -> dict[str, FloatArray]:
    """Split sums into the states of `sums.state_shapes`, without those by class, and the counts of ``bad`` and ``far``.

    ``classes`` is None for two outcomes.
    """
    counts = {"bad": summed[0], "far": summed[1]}
    if classes is None:
        sums, cells = np.split(summed[2:], [16 * bins])
        return counts | {"sums": sums.reshape(bins, 16)[:, _PLACES], "cells": cells.reshape(CELLS, 2, 2, 4)}
    ends = np.cumsum((3, 4 * len(NODES), 16 * bins, *_sizes(classes)))[:-1]
    _, nodes, sums, top, ordered, spread = np.split(summed, ends)
    return counts | {
        "surprises": summed[2], "nodes": nodes.reshape(-1, 4), "sums": sums.reshape(bins, 16)[:, :14],
        "top": top.reshape(CELLS, 2, 2, 4), "ordered": ordered.reshape(-1, 16)[:, :14],
        "spread": spread.reshape(SPREAD_CELLS, 4)[:, :2],
    }  # fmt: skip
