"""torchmetrics: calibration as metrics of a training loop, with states that never grow.

It needs ``pip install "safecal[torchmetrics]"``. Predictions come first here, as in every metric of torchmetrics.
"""

from .metrics import BinaryCalibration, BinaryECD, MulticlassCalibration, MulticlassECD

__all__ = ["BinaryCalibration", "BinaryECD", "MulticlassCalibration", "MulticlassECD"]
