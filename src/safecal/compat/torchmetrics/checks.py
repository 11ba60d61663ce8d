"""What `update` refuses: shapes and dtypes without looking at values; values where a row has no answer."""

from typing import Any

from ..._checks.classes import row_tolerance
from ..._checks.message import fail, show
from ...engines.torch.tensors import load_torch, widened
from ...errors import (
    DtypeError,
    InputError,
    LabelError,
    MissingValueError,
    NormalisationError,
    RangeError,
    ShapeError,
)

__all__ = ["binary_rows", "class_rows", "refuse"]


def _tensors(preds: Any, target: Any) -> None:
    torch = load_torch()
    for name, value in (("preds", preds), ("target", target)):
        if not isinstance(value, torch.Tensor):
            hint = "for arrays, use `safecal.evaluate`, which takes what happened first."
            raise fail(DtypeError, name, "must be a torch tensor", got=type(value).__name__, hint=hint)
    if not preds.is_floating_point():
        hint = "`preds` comes first in torchmetrics, `target` second."
        raise fail(DtypeError, "preds", "must hold floating-point numbers", got=str(preds.dtype), hint=hint)
    if target.is_complex():
        raise fail(DtypeError, "target", "must hold labels", got=str(target.dtype))
    if preds.device != target.device:
        got = f"{target.device} and {preds.device}"
        hint = "pass `target.to(preds.device)`."
        raise fail(InputError, "target", "must be on the device of `preds`", got=got, hint=hint)


def binary_rows(preds: Any, target: Any) -> tuple[Any, Any]:
    """Return both as one column; any shape that they share will do."""
    _tensors(preds, target)
    if preds.shape != target.shape:
        got = f"{tuple(target.shape)} and {tuple(preds.shape)}"
        hint = "for one value a class, use the multiclass metric."
        raise fail(ShapeError, "target", "must have the shape of `preds`", got=got, hint=hint)
    return preds.detach().reshape(-1), target.reshape(-1) if target.is_floating_point() else target.reshape(-1).long()


def class_rows(preds: Any, target: Any, classes: int) -> tuple[Any, Any]:
    """Return (n, K) predictions and n labels from (N, K, ...) and (N, ...)."""
    _tensors(preds, target)
    if target.is_floating_point():
        move = "classes are numbered from 0: pass `target.long()`."
        raise fail(DtypeError, "target", "must hold integers", got=str(target.dtype), hint=move)
    if preds.ndim < 2 or preds.shape[1] != classes:
        rule = f"must have shape (N, {classes}, ...), the classes second"
        hint: str | None = None
        if preds.ndim > 2 and preds.shape[-1] == classes:
            hint = "for shape (batch, length, classes), pass `preds.flatten(0, -2)` and `target.flatten()`."
        raise fail(ShapeError, "preds", rule, got=f"shape {tuple(preds.shape)}", hint=hint)
    if target.shape != preds.shape[:1] + preds.shape[2:]:
        got = f"{tuple(target.shape)} and {tuple(preds.shape)}"
        raise fail(ShapeError, "target", "must have the shape of `preds` without its classes", got=got)
    return preds.detach().movedim(1, -1).reshape(-1, classes), target.reshape(-1).long()


def refuse(bad: Any, values: Any, y: Any, classes: int, from_logits: bool) -> InputError:
    """Return the error for the first row without an answer; ``bad`` tells which rows have none."""
    first = int(bad.int().argmax())
    count = (int(bad.sum()), len(bad))
    row, where = values[first], f"row {first}"
    label = y[first].item()
    if label not in range(classes):
        rule = "must be 0 or 1" if values.ndim == 1 else f"must be a class number from 0 to {classes - 1}"
        hint = "to leave such rows out, set `ignore_index` in the constructor of the metric."
        return fail(LabelError, "target", rule, got=show(label), place=where, count=count, hint=hint)
    if bool(row.isnan().any()):
        return fail(MissingValueError, "preds", "must not be NaN", place=where, count=count)
    if from_logits:
        if bool((row == float("inf")).any()):
            rule, hint = "must be finite or -inf", "a +inf logit has no softmax."
        else:
            rule = "must have a finite value in each row"
            hint = "a row of nothing but -inf gives no class a probability."
        return fail(RangeError, "preds", rule, place=where, count=count, hint=hint)
    outside = row[(row < 0.0) | (row > 1.0)].reshape(-1)
    if len(outside):
        hint = "for logits, say `from_logits=True` in the constructor of the metric."
        got = show(outside[0].item())
        return fail(RangeError, "preds", "must lie in [0, 1]", got=got, place=where, count=count, hint=hint)
    rule = f"must sum to 1 in each row, within {row_tolerance(classes):.3g}"
    got = f"{float(widened(row).sum()):.9g}"
    wide = "preds.float()" if values.element_size() == 2 else "preds"
    hint = f"for logits, say `from_logits=True`; or normalise: pass `{wide} / {wide}.sum(1, keepdim=True)`."
    return fail(NormalisationError, "preds", rule, got=got, place=where, count=count, hint=hint)
