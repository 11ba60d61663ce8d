"""Rows of tensors, added up to a `Tally` where they lie: by Triton kernels where those run, else with torch."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..._checks.message import fail
from ..._sums.bins import Bins
from ..._sums.causes import MOST
from ..._sums.tally import Tally
from ...errors import DtypeError, ShapeError
from .binary import bad_outcomes, flat, refuse_outcomes
from .categorical import checked_classes, counted_rows, refuse_classes
from .sums import FORMS, Rulers, add_rows, class_columns, class_sums, rows_at_once, tally_of
from .tensors import WIDTHS, load_torch, on_cuda, scored_columns, widened

__all__ = ["ClassRows", "checked_hidden", "class_tally", "hidden_columns", "hidden_rows", "logit_rows", "outcome_tally"]

_AT_ONCE = 1 << 20  # rows whose columns are held at once
_OUTCOMES = 1 << 31  # rows of two outcomes that a kernel counts at once
_CHUNK = 1024  # rows whose logits exist at once, where they are made from hidden states


class ClassRows(NamedTuple):
    """Some of the rows of K outcomes."""

    found: Any  # as `scored_columns` gives them
    y: Any
    logits: Any  # of few classes, (n, K): sums by class need them; else None


def logit_rows(
    y_true: Any, logits: Any, ignore_index: int | None, chunk: int | None, check: bool
) -> Iterator[ClassRows]:
    """Score rows of logits, some at a time; with ``check`` those without an answer are refused."""
    classes = logits.shape[-1]
    step = _AT_ONCE if logits.ndim == 2 else max(1, y_true.numel())  # rows of one matrix can be cut anywhere
    for begin in range(0, y_true.numel(), step):
        y, z = (y_true[begin : begin + step], logits[begin : begin + step]) if logits.ndim == 2 else (y_true, logits)
        found = scored_columns(y, z if on_cuda(z) else widened(z), ignore_index, chunk, 2)
        if check:
            refuse_classes(found[0], y, z, ignore_index)
        yield ClassRows(found, y.reshape(-1), z.reshape(-1, classes) if classes <= MOST else None)


def hidden_rows(
    y_true: Any, hidden: Any, weight: Any, bias: Any, ignore_index: int | None, chunk: int | None, check: bool
) -> Iterator[ClassRows]:
    """Score rows of hidden states, as `logit_rows` does."""
    if len(weight) <= MOST:  # sums by class need the logits themselves, which are few
        z = load_torch().nn.functional.linear(hidden, weight, bias)
        yield from logit_rows(y_true, z, ignore_index, chunk, check)
        return
    found = hidden_columns(y_true, hidden, weight, bias, ignore_index=ignore_index, chunk=chunk, check=check)
    yield ClassRows(found, y_true.reshape(-1), None)


def hidden_columns(
    y_true: Any,
    hidden: Any,
    weight: Any,
    bias: Any = None,
    *,
    ignore_index: int | None = None,
    chunk: int | None = None,
    check: bool = True,
) -> Any:
    """Return all columns of rows, from the states before the last layer: logits of ``chunk`` rows exist at a time.

    Rows without an answer are refused, which waits for the device; without ``check`` they are NaN.
    """
    checked_hidden(y_true, hidden, weight)
    torch = load_torch()
    y, h = y_true.reshape(-1), hidden.detach().reshape(-1, hidden.shape[-1])
    step = chunk or (_CHUNK if on_cuda(h) else _CHUNK // 4)
    out = []
    with torch.no_grad():
        for begin in range(0, len(y), step):
            z = torch.nn.functional.linear(h[begin : begin + step], weight, bias)
            label = y[begin : begin + step]
            checked_classes(label, z)
            out.append(scored_columns(label, z if on_cuda(z) else widened(z), ignore_index, None, 2))
        found = torch.cat(out, dim=1) if out else hidden.new_empty((WIDTHS[2], 0), dtype=torch.float32)
        bad = found[0].isnan() & counted_rows(y, ignore_index).to(found.device)
        if check and bool(bad.any()):  # asked once: each time the device is waited for
            first = int(bad.int().argmax())
            z = torch.nn.functional.linear(h[first : first + 1], weight, bias)
            refuse_classes(found[0][first : first + 1], y[first : first + 1], z, ignore_index)
    return found


def checked_hidden(y_true: Any, hidden: Any, weight: Any) -> None:
    torch = load_torch()
    for name, value in (("hidden", hidden), ("weight", weight), ("y_true", y_true)):
        if not isinstance(value, torch.Tensor):
            raise fail(DtypeError, name, "must be a torch tensor", got=type(value).__name__)
    if weight.ndim != 2 or hidden.shape[-1] != weight.shape[1] or hidden.shape[:-1] != y_true.shape:
        rule = "must have shape (..., D), where `y_true` has (...) and `weight` (V, D)"
        got = f"{tuple(hidden.shape)}, {tuple(y_true.shape)} and {tuple(weight.shape)}"
        raise fail(ShapeError, "hidden", rule, got=got)


@lru_cache(maxsize=16)
def _rulers(edges: tuple[float, ...], device: Any) -> Rulers:
    return Rulers.of(edges, device)


@lru_cache(maxsize=16)
def _log_odds(edges: tuple[float, ...], device: Any) -> Any:
    return _rulers(edges, device).edges.logit()


def _kernel(cuda: bool) -> Any:
    """Return the Triton kernels that sum rows, where they can run, else None."""
    if not cuda:
        return None
    from . import triton_sums

    return triton_sums if triton_sums.AVAILABLE else None


def _added(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Add up the states of parts of the rows, and bring them here in one piece."""
    total: dict[str, Any] = {}
    for part in parts:
        total = {name: total[name] + found for name, found in part.items()} if total else part
    if not total:
        return {}
    values = load_torch().cat([found.reshape(-1) for found in total.values()]).cpu().numpy()
    pieces = np.split(values, np.cumsum([found.numel() for found in total.values()])[:-1])
    return {name: piece.reshape(tuple(found.shape)) for (name, found), piece in zip(total.items(), pieces, strict=True)}


def _tally(states: dict[str, Any], family: str, bins: Bins, classes: int) -> Tally:
    total = tally_of(states, family, bins, classes) if states else Tally()
    return total if total.n else Tally()


def class_tally(
    rows: Callable[[bool], Iterator[ClassRows]], bins: Bins, classes: int, ignore_index: int | None, cuda: bool
) -> Tally:
    """Add up rows of K outcomes; ``rows`` takes whether to refuse those without an answer."""
    kernel = _kernel(cuda)

    def by_kernel() -> Iterator[dict[str, Any]]:
        for found, y, z in rows(False):
            rulers = _rulers(bins.edges, found.device)
            with load_torch().cuda.device(found.device):
                states = {"all": kernel.sum_classes(found, y.contiguous(), *rulers, classes, ignore_index)}
            if z is not None:
                log_p, counted = widened(z).log_softmax(-1), counted_rows(y, ignore_index)
                states["by_class"] = class_sums(log_p, widened(found[1]), y, counted)
            yield states

    def by_torch() -> Iterator[dict[str, Any]]:
        for found, y, z in rows(True):
            columns = class_columns(found, y, classes, z)
            home = columns.excess.device
            yield add_rows(columns, counted_rows(y, ignore_index).to(home), _rulers(bins.edges, home))

    if kernel is not None:
        states = _added(by_kernel())
        states |= kernel.named(states.pop("all"), len(bins), classes) if states else {}
        if not states or not (states.pop("bad") or states.pop("far")):
            return _tally(states, "categorical", bins, classes)
    return _tally(_added(by_torch()), "categorical", bins, classes)


def outcome_tally(y_true: Any, values: Any, bins: Bins, form: str, ignore_index: int | None) -> Tally:
    """Add up rows of two outcomes: probabilities or log-odds, as ``form`` says."""
    y, x = flat(y_true, values.detach())
    kernel, logits = _kernel(on_cuda(x)), form == "logits"

    def by_kernel() -> Iterator[dict[str, Any]]:
        rulers = _rulers(bins.edges, x.device)
        edges = _log_odds(bins.edges, x.device) if logits else rulers.edges
        for begin in range(0, y.numel(), _OUTCOMES):
            some = slice(begin, begin + _OUTCOMES)
            with load_torch().cuda.device(x.device):
                yield {"all": kernel.sum_outcomes(x[some], y[some], edges, rulers.centres, logits, ignore_index)}

    def by_torch() -> Iterator[dict[str, Any]]:
        step = rows_at_once(x)
        for begin in range(0, y.numel(), step):
            some_y, some_x = y[begin : begin + step], x[begin : begin + step]
            counted = counted_rows(some_y, ignore_index)
            columns = FORMS["bernoulli", logits](some_x, some_y)
            home = columns.excess.device
            if bool((columns.excess.isnan() & counted.to(home)).any()):
                bad = bad_outcomes(y, x, form)
                refuse_outcomes(bad & counted_rows(y, ignore_index), y_true, values, form)
            yield add_rows(columns, counted.to(home), _rulers(bins.edges, home))

    if kernel is not None:
        states = _added(by_kernel())
        states = kernel.named(states["all"], len(bins), None) if states else {}
        if not states or not (states.pop("bad") or states.pop("far")):
            return _tally(states, "bernoulli", bins, 2)
    return _tally(_added(by_torch()), "bernoulli", bins, 2)
