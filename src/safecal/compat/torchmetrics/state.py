"""The base of the metrics: a (bins, columns) state of float64 sums, and the types of safecal read off it."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._checks.columns import fraction, positive
from ..._checks.message import fail, show
from ..._types import FloatArray
from ...bins import Bins
from ...engines.torch.tensors import load_torch
from ...errors import BinsError, EmptyError, MergeError, MissingExtraError, OptionError, SafecalError
from ...evaluation import Evaluation
from ...inference.calibration import calibration_test
from ...inference.intervals import bounds_from_sums
from ...summary import Summary
from ...table import Table, bin_keys
from .checks import refuse
from .rows import FORMS
from .sums import WIDTH, add_rows, histogram, rows_at_once, summary_columns

try:
    from torchmetrics import Metric
except ImportError:

    class Metric:  # type: ignore[no-redef]
        """Stands in where torchmetrics is not installed."""

        def __init__(self, **kwargs: Any) -> None:
            raise MissingExtraError(
                'these metrics need torchmetrics, which is not installed.\n\nHint: pip install "safecal[torchmetrics]"'
            )


__all__ = ["Calibration"]


class Calibration(Metric):  # type: ignore[misc]
    """Sums by bin, in one float64 state; the classes that derive from it say of what, and what `compute` returns."""

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    family: str
    sums: Any
    _update_count: int

    def __init__(
        self,
        bins: int | Bins,
        from_logits: bool,
        classes: int,
        ignore_index: int | None,
        validate_args: bool,
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
        self.from_logits, self.classes = from_logits, classes
        self.ignore_index, self.validate_args = ignore_index, validate_args
        torch = load_torch()
        home = _home(torch, self.device)
        self._edges = torch.tensor(self.bins.edges, dtype=torch.float64, device=home)
        zeros = torch.zeros((len(self.bins), WIDTH), dtype=torch.float64, device=home)
        self.add_state("sums", zeros, dist_reduce_fx="sum")

    @abstractmethod
    def _rows(self, preds: Any, target: Any) -> tuple[Any, Any]:
        """Check what can be told without looking at values, and return rows."""

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
        values, y = self._rows(preds, target)
        score, step = FORMS[self.family, self.from_logits], rows_at_once(values)
        sums, faults = self.sums, []
        for begin in range(0, len(values), step):
            label = y[begin : begin + step]
            columns = score(values[begin : begin + step], label)
            label = label.to(columns.excess.device)
            counted = (
                torch.ones_like(label, dtype=torch.bool) if self.ignore_index is None else label != self.ignore_index
            )
            faults.append(columns.excess.isnan() & counted)
            sums = sums + add_rows(columns, counted, self._edges)
        if self.validate_args and faults and bool((bad := torch.cat(faults)).any()):
            raise refuse(bad, values, y, self.classes, self.from_logits)
        self.sums = sums

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
        before, count = self.sums, self._update_count
        try:
            return super().forward(preds, target)
        except SafecalError:  # torchmetrics has put the sums aside by now, and would not bring them back
            self.sums, self._update_count = before, count
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
            shape = getattr(incoming_state.get("sums"), "shape", None) if isinstance(incoming_state, dict) else None
            same = shape is None or shape == self.sums.shape
        if not same:
            raise MergeError(
                "metrics must have the same bins and classes; these two do not.\n\n"
                "Hint: build both with the same `bins` and `num_classes`."
            )
        super().merge_state(incoming_state)
        self._computed = None
        self._update_count += getattr(incoming_state, "_update_count", 1)

    def _apply(self, fn: Callable[[Any], Any], exclude_state: Any = "") -> Any:
        """Move the state with the metric; its dtype stays float64, whatever that of the model."""
        this = super()._apply(fn, exclude_state=("sums",))
        home = _home(load_torch(), self.device)
        self.sums, self._edges = self.sums.to(home), self._edges.to(home)
        self._defaults["sums"] = self._defaults["sums"].to(home)
        self._computed = None
        return this

    def _all_sums(self) -> FloatArray:
        """Return the sums of all processes."""
        local = self._is_synced or not self.sync_on_compute
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=not local, should_unsync=not local):
            return np.asarray(self.sums.cpu().numpy())

    def table(self) -> Table:
        """Return the table of bins, of the rows of all processes; call it in each of them.

        Returns
        -------
        Table
            That of ``safecal.evaluate(...).bins`` on all rows.
        """
        return self._table(self._all_sums())

    def _table(self, sums: FloatArray) -> Table:
        name = "probability" if self.family == "bernoulli" else "confidence"
        return Table(name, bin_keys(self.bins), summary_columns(sums), self.bins, self.family != "bernoulli")

    def summary(self) -> Summary:
        """Return the sums over all rows, of all processes; call it in each of them.

        Returns
        -------
        Summary
            That of ``safecal.evaluate(...).summary`` on all rows.
        """
        return self.table().total

    def evaluation(self, *, threshold: float = 0.1, max_temperature: float = 1.5, level: float = 0.95) -> Evaluation:
        """Return everything about the rows of all processes; call it in each of them.

        Parameters
        ----------
        threshold, max_temperature, level : float
            As in `safecal.evaluate`.

        Returns
        -------
        Evaluation
            Its test, its intervals and its temperature come from sums, and say so; ``reliability`` is None.
        """
        sums = self._all_sums()
        table = self._table(sums)
        total = table.total
        if total.n == 0:
            raise fail(EmptyError, "metric", "must have seen at least one row", got="none", hint="call `update` first.")
        spread, certain = histogram(sums)
        return Evaluation(
            self.family, 1, float(np.log(self.classes)), total, table, None, spread, certain, None,
            calibration_test(total), bounds_from_sums(total),
            positive(threshold, "threshold"), positive(max_temperature, "max_temperature"), fraction(level, "level"),
        )  # fmt: skip


def _home(torch: Any, device: Any) -> Any:
    """Return where sums can be kept: Apple's GPUs have no float64."""
    return torch.device("cpu") if device.type == "mps" else device
