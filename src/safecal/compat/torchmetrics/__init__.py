"""torchmetrics: calibration as metrics of a training loop, with states that never grow.

It needs ``pip install "safecal[torchmetrics]"``. Predictions come first here, as in every metric of torchmetrics.
"""

from typing import Any, final

from ..._checks.columns import choice, whole_number
from ..._sums.splits import Bins
from ...engines.torch.sums import METRICS
from .state import Calibration

__all__ = ["BinaryCalibration", "BinaryECD", "MulticlassCalibration", "MulticlassECD"]


class _Multiclass(Calibration):
    family = "categorical"

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool,
        bins: int | Bins = 10,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        self.classes = whole_number(num_classes, "num_classes", 2)
        super().__init__(
            from_logits=from_logits, bins=bins, ignore_index=ignore_index, validate_args=validate_args, **kwargs
        )


@final
class BinaryECD(Calibration):
    """ECD of two classes in nats: above 0 over-confident, below 0 under-confident, 0 as surprised as it said.

    It is not a proper score: a model that says nothing scores 0. Log NLL beside it, or use `BinaryCalibration`.
    One outcome that the model had called impossible makes it ``+inf``.

    Parameters
    ----------
    from_logits : bool
        Whether ``preds`` are log-odds (True) or probabilities of the positive class (False). It is never guessed.
    bins : int or Bins, default 10
        Bins of the table; they do not change ECD.
    ignore_index : int, optional
        Rows with this label are left out.
    validate_args : bool, default True
        Whether to refuse NaN, values out of range and unknown labels, which waits for the device. Without, one such
        row makes the result NaN.
    **kwargs : Any
        Those of ``torchmetrics.Metric``.

    Examples
    --------
    In a validation loop::

        metric = BinaryECD(from_logits=True).to(device)
        for x, y in loader:
            metric.update(model(x), y)
        metric.compute()  # a float64 scalar
        metric.evaluation().verdict
    """

    only = "ecd"


@final
class BinaryCalibration(Calibration):
    """Every metric of two classes: a dictionary of ECD, NLL, ECE, ESCE, Brier score and accuracy.

    ECD is in nats, above 0 over-confident; ESCE is observed minus predicted. NLL, ECE and Brier are better when small.

    Parameters
    ----------
    from_logits : bool
        Whether ``preds`` are log-odds (True) or probabilities of the positive class (False). It is never guessed.
    only : {"ecd", "nll", "ece", "esce", "brier", "accuracy"}, optional
        Return this one alone: a scalar, which ``self.log`` of Lightning takes.
    bins : int or Bins, default 10
        Bins of the probability, for ECE, ESCE and the table.
    ignore_index : int, optional
        Rows with this label are left out.
    validate_args : bool, default True
        As in `BinaryECD`.
    **kwargs : Any
        Those of ``torchmetrics.Metric``.

    Examples
    --------
    What Lightning logs by ``self.log_dict``; the metrics of a collection share one state::

        names = ("ecd", "nll", "ece")
        MetricCollection({name: BinaryCalibration(from_logits=True, only=name) for name in names})
    """

    def __init__(
        self,
        *,
        from_logits: bool,
        only: str | None = None,
        bins: int | Bins = 10,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            from_logits=from_logits, bins=bins, ignore_index=ignore_index, validate_args=validate_args, **kwargs
        )
        self.only = None if only is None else choice(only, "only", METRICS)


@final
class MulticlassECD(_Multiclass):
    """ECD of two or more classes in nats: above 0 over-confident, below 0 under-confident, 0 as surprised as it said.

    It is not a proper score: a model that says nothing scores 0. Log NLL beside it, or use `MulticlassCalibration`.
    One outcome that the model had called impossible makes it ``+inf``.

    Parameters
    ----------
    num_classes : int
        The number of classes: ``preds`` have shape (N, num_classes, ...), ``target`` (N, ...).
    from_logits : bool
        Whether ``preds`` are logits (True) or probabilities that sum to 1 (False). It is never guessed.
    bins : int or Bins, default 10
        Bins of the table; they do not change ECD.
    ignore_index : int, optional
        Rows with this label are left out.
    validate_args : bool, default True
        As in `BinaryECD`.
    **kwargs : Any
        Those of ``torchmetrics.Metric``.

    Examples
    --------
    The value of a batch, while all of them are summed::

        metric = MulticlassECD(10, from_logits=True)
        metric(logits, labels)
    """

    only = "ecd"


@final
class MulticlassCalibration(_Multiclass):
    """Every metric of two or more classes: a dictionary of ECD, NLL, ECE, ESCE, Brier score and accuracy.

    ECD is in nats, above 0 over-confident; ESCE is observed minus predicted. NLL, ECE and Brier are better when small.

    Parameters
    ----------
    num_classes : int
        The number of classes: ``preds`` have shape (N, num_classes, ...), ``target`` (N, ...).
    from_logits : bool
        Whether ``preds`` are logits (True) or probabilities that sum to 1 (False). It is never guessed.
    only : {"ecd", "nll", "ece", "esce", "brier", "accuracy"}, optional
        Return this one alone: a scalar, which ``self.log`` of Lightning takes.
    bins : int or Bins, default 10
        Bins of the confidence in the most likely class, for ECE, ESCE and the table.
    ignore_index : int, optional
        Rows with this label are left out.
    validate_args : bool, default True
        As in `BinaryECD`.
    **kwargs : Any
        Those of ``torchmetrics.Metric``.

    Examples
    --------
    With a name before each number::

        MetricCollection([MulticlassCalibration(10, from_logits=True)], prefix="val_")
    """

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool,
        only: str | None = None,
        bins: int | Bins = 10,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_classes,
            from_logits=from_logits,
            bins=bins,
            ignore_index=ignore_index,
            validate_args=validate_args,
            **kwargs,
        )
        self.only = None if only is None else choice(only, "only", METRICS)
