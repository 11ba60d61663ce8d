"""The base of the metrics: what `update` refuses, states of float64 sums, and the types of safecal read off them."""

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from ..._checks import fail, show
from ..._checks.class_columns import row_tolerance
from ..._checks.classes import refuse_probabilities, telling_rows
from ..._checks.columns import spelled
from ..._optional import require
from ..._sums import Tally
from ..._sums.splits import Bins
from ..._sums.summary import Summary
from ..._sums.table import Table
from ..._types import FloatArray
from ...engines.torch.sums import Rulers, add_rows, metrics, rows_at_once, state_shapes, table_of, tally_of
from ...engines.torch.tensors import FORMS, load_torch, to_numpy, widen
from ...errors import (
    BinsError,
    DtypeError,
    EmptyError,
    InputError,
    LabelError,
    MergeError,
    MissingValueError,
    NormalisationError,
    OptionError,
    RangeError,
    SafecalError,
    ShapeError,
)
from ...judge.evaluation import Evaluation
from ...options import LimitOptions, Limits

__all__ = ["Calibration"]

try:
    from torchmetrics import Metric
except ImportError:

    class Metric:  # type: ignore[no-redef]
        """Stands in where torchmetrics is not installed."""

        def __init__(self, **kwargs: Any) -> None:
            require("torchmetrics", "these metrics need torchmetrics", "torchmetrics")


class Calibration(Metric):  # type: ignore[misc]
    """Sums of rows in float64 states; derived classes say of which family, and what `compute` returns."""

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    family = "bernoulli"
    classes = 2
    only: str | None = None  # the one metric to compute
    sums: Any
    _defaults: dict[str, Any]
    _update_count: int

    def __init__(
        self,
        *,
        from_logits: bool,
        bins: int | Bins = 10,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, value in (("from_logits", from_logits), ("validate_args", validate_args)):
            if not isinstance(value, bool):
                raise fail(OptionError, name, "must be True or False", got=show(value))
        if ignore_index is not None and (isinstance(ignore_index, bool) or not isinstance(ignore_index, int)):
            raise fail(OptionError, "ignore_index", "must be a whole number or None", got=show(ignore_index))
        self.bins = bins if isinstance(bins, Bins) else Bins.uniform(bins)
        if self.bins.edges[0] > 0.0 or self.bins.edges[-1] < 1.0:
            got = f"{self.bins.edges[0]:.6g} to {self.bins.edges[-1]:.6g}"
            raise fail(BinsError, "bins", "must cover every probability, 0 to 1", got=got)
        self.from_logits, self.ignore_index, self.validate_args = from_logits, ignore_index, validate_args
        torch = load_torch()
        home = _home(torch, self.device)
        self._rulers = Rulers.of(self.bins.edges, home)
        for name, shape in state_shapes(self.family, len(self.bins), self.classes).items():
            self.add_state(name, torch.zeros(shape, dtype=torch.float64, device=home), dist_reduce_fx="sum")

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : torch.Tensor
            Probabilities or logits, as ``from_logits`` says.
        target : torch.Tensor
            What happened.
        """
        torch = load_torch()
        binary = self.family == "bernoulli"
        values, y = _binary_rows(preds, target) if binary else _class_rows(preds, target, self.classes)
        score, step = FORMS[self.family, self.from_logits], rows_at_once(values)
        states, faults = self._states(), []
        for begin in range(0, len(values), step):
            label = y[begin : begin + step]
            columns = score(values[begin : begin + step], label)
            label = label.to(columns.excess.device)
            counted = (
                torch.ones_like(label, dtype=torch.bool) if self.ignore_index is None else label != self.ignore_index
            )
            faults.append(columns.excess.isnan() & counted)
            states = {name: states[name] + new for name, new in add_rows(columns, counted, self._rulers).items()}
        if self.validate_args and faults and bool((bad := torch.cat(faults)).any()):
            raise _refusal(bad, values, y, self.classes, self.from_logits)
        if self.validate_args and self.from_logits and not binary:
            hint = "for probabilities, say `from_logits=False` in the constructor of the metric."
            refuse_probabilities(to_numpy(values[: telling_rows(self.classes)]), "preds", hint)
        self._set_states(states)

    def compute(self) -> Any:
        """Return float64 scalars by name, or the metric that ``only`` names; NaN when there are no rows.

        Returns
        -------
        dict of torch.Tensor, or torch.Tensor
            They lie on the device, which is not waited for.
        """
        values = metrics(self.sums)
        return values if self.only is None else values[self.only]

    def _states(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._defaults}

    def _set_states(self, states: dict[str, Any]) -> None:
        for name, state in states.items():
            setattr(self, name, state)

    def forward(self, preds: Any, target: Any) -> Any:
        """Add a batch, and return the value of that batch; a batch that is refused leaves the sums as they were.

        Parameters
        ----------
        preds, target
            As in `update`.

        Returns
        -------
        torch.Tensor or dict
            What `compute` would return for this batch alone.
        """
        before, count = self._states(), self._update_count
        try:
            return super().forward(preds, target)
        except SafecalError:  # torchmetrics has put the sums aside by now, and would not bring them back
            self._set_states(before)
            self._update_count = count
            self._to_sync, self._should_unsync, self._enable_grad = self.sync_on_compute, True, False
            raise

    def merge_state(self, incoming_state: Any) -> None:
        """Add the sums of another metric that has the same bins and classes.

        Parameters
        ----------
        incoming_state : Metric or dict
            The other metric, or its ``metric_state``.
        """
        if isinstance(incoming_state, Calibration):
            same = incoming_state.bins == self.bins and incoming_state.classes == self.classes
            same = same and incoming_state.family == self.family
        else:
            same = not isinstance(incoming_state, dict) or _sizes(incoming_state) == _sizes(self._states())
        if not same:
            raise MergeError(
                "metrics must have the same bins and classes; these two do not.\n\n"
                "Hint: build both with the same `bins` and `num_classes`."
            )
        super().merge_state(incoming_state)
        self._computed = None
        self._update_count += getattr(incoming_state, "_update_count", 1)

    def _apply(self, fn: Callable[[Any], Any], exclude_state: Any = "") -> Any:
        """Move the states with the metric; their dtype stays float64, whatever that of the model."""
        this = super()._apply(fn, exclude_state=tuple(self._defaults))
        home = _home(load_torch(), self.device)
        self._set_states({name: state.to(home) for name, state in self._states().items()})
        self._defaults = {name: state.to(home) for name, state in self._defaults.items()}
        self._rulers = self._rulers.to(home)
        self._computed = None
        return this

    def _all_states(self) -> dict[str, FloatArray]:
        """Return the states of all processes, in one transfer from the device."""
        local = self._is_synced or not self.sync_on_compute
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=not local, should_unsync=not local):
            states = self._states()
            flat = load_torch().cat([state.reshape(-1) for state in states.values()]).cpu().numpy()
        ends = np.cumsum([state.numel() for state in states.values()])[:-1]
        parts = zip(states.items(), np.split(flat, ends), strict=True)
        return {name: part.reshape(tuple(state.shape)) for (name, state), part in parts}

    def table(self) -> Table:
        """Return the table of bins, of the rows of all processes; call it in each of them.

        Returns
        -------
        Table
            That of ``safecal.evaluate(...).bins`` on all rows.
        """
        return self._table(self._all_states()["sums"])

    def _table(self, sums: FloatArray) -> Table:
        if np.isnan(sums).any():
            rule = "must have seen only rows with a valid prediction and label"
            hint = "with `validate_args=True` a batch with an invalid row is refused, and the row is named."
            raise fail(MissingValueError, "metric", rule, got="NaN", hint=hint)
        return table_of(sums, self.family, self.bins)

    def summary(self) -> Summary:
        """Return the sums over all rows, of all processes; call it in each of them.

        Returns
        -------
        Summary
            That of ``safecal.evaluate(...).summary`` on all rows.
        """
        return self.table().total

    def tally(self) -> Tally:
        """Return all sums that an evaluation is made of, of all processes; call it in each of them.

        Returns
        -------
        Tally
            That of ``safecal.evaluate(...).tally`` on all rows. Tallies add up with ``+``.
        """
        states = self._all_states()
        self._table(states["sums"])  # refuses NaN
        return tally_of(states, self.family, self.bins, self.classes)

    @spelled(LimitOptions)
    def evaluation(self, **limits: Unpack[LimitOptions]) -> Evaluation:
        """Return everything about the rows of all processes; call it in each of them.

        Parameters
        ----------
        **limits
            ``threshold``, ``max_temperature``, ``level`` and the other limits of `safecal.evaluate`.

        Returns
        -------
        Evaluation
            That of `safecal.evaluate` on all rows.
        """
        checked = Limits(**limits)
        tally = self.tally()
        if tally.n == 0:
            raise fail(EmptyError, "metric", "must have seen at least one row", got="none", hint="call `update` first.")
        return Evaluation.of(tally, checked)


def _sizes(states: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(state, "shape", None) for name, state in states.items()}


def _home(torch: Any, device: Any) -> Any:
    """Return where sums can be kept: Apple's GPUs have no float64."""
    return torch.device("cpu") if device.type == "mps" else device


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


def _binary_rows(preds: Any, target: Any) -> tuple[Any, Any]:
    """Return predictions and labels as one column each; they may have any shape that they share."""
    _tensors(preds, target)
    if preds.shape != target.shape:
        got = f"{tuple(target.shape)} and {tuple(preds.shape)}"
        hint = "for one value a class, use the multiclass metric."
        raise fail(ShapeError, "target", "must have the shape of `preds`", got=got, hint=hint)
    return preds.detach().reshape(-1), target.reshape(-1) if target.is_floating_point() else target.reshape(-1).long()


def _class_rows(preds: Any, target: Any, classes: int) -> tuple[Any, Any]:
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


def _refusal(bad: Any, values: Any, y: Any, classes: int, from_logits: bool) -> InputError:
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
            hint = "a row of only -inf gives no class a probability."
        return fail(RangeError, "preds", rule, place=where, count=count, hint=hint)
    outside = row[(row < 0.0) | (row > 1.0)].reshape(-1)
    if len(outside):
        hint = "for logits, say `from_logits=True` in the constructor of the metric."
        got = show(outside[0].item())
        return fail(RangeError, "preds", "must lie in [0, 1]", got=got, place=where, count=count, hint=hint)
    rule = f"must sum to 1 in each row, within {row_tolerance(classes):.3g}"
    got = f"{float(widen(row).sum()):.9g}"
    wide = "preds.float()" if values.element_size() == 2 else "preds"
    hint = f"for logits, say `from_logits=True`; or normalise: pass `{wide} / {wide}.sum(1, keepdim=True)`."
    return fail(NormalisationError, "preds", rule, got=got, place=where, count=count, hint=hint)
