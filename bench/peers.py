"""What is measured: the table of safecal in its forms, and the ECE of every peer, each with the same uniform bins.

A work takes labels and probabilities, and returns the ECE where it gives one. Libraries are imported in `load`, in the
process that measures them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata, util
from typing import Any

import numpy as np

BINS = 10

Work = Callable[[np.ndarray, np.ndarray], float | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the table.

    ``module`` is what is imported, ``distribution`` what is installed; ``gives`` says in words what comes out.
    """

    name: str
    module: str
    distribution: str
    gives: str
    load: Callable[[], Work]
    ours: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def installed(self) -> bool:
        """Whether the library is there."""
        return util.find_spec(self.module) is not None

    @property
    def description(self) -> dict[str, Any]:
        """What it is."""
        version = "" if self.ours else metadata.version(self.distribution)
        return {"name": self.name, "ours": self.ours, "version": version, "gives": self.gives}


def _on(threads: int | None) -> Any:
    """Return safecal, on so many threads."""
    import safecal
    from safecal._sums import sweep

    assert hasattr(sweep, "_THREADS")
    if threads is not None:
        sweep._THREADS = threads
    return safecal


def _table(threads: int | None = None) -> Work:
    safecal = _on(threads)
    return lambda y, p: safecal.bernoulli(y, p).table(BINS).ece()


def _evaluate(threads: int | None = None) -> Work:
    safecal = _on(threads)

    def work(y: np.ndarray, p: np.ndarray) -> float:
        evaluation = safecal.evaluate(y, p, bins=BINS)
        assert evaluation.verdict.reason  # words are found when they are read, and people read them
        return float(evaluation.ece)

    return work


def _calibration_curve() -> Work:
    from sklearn.calibration import calibration_curve

    def work(y: np.ndarray, p: np.ndarray) -> None:
        calibration_curve(y, p, n_bins=BINS)

    return work


def _three_of_sklearn() -> Work:
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, log_loss

    def work(y: np.ndarray, p: np.ndarray) -> None:
        log_loss(y, p)
        brier_score_loss(y, p)
        calibration_curve(y, p, n_bins=BINS)

    return work


def _netcal() -> Work:
    from netcal.metrics import ECE

    return lambda y, p: float(ECE(BINS).measure(p, y))


def _torchmetrics() -> Work:
    import torch
    from torchmetrics.classification import BinaryCalibrationError

    def work(y: np.ndarray, p: np.ndarray) -> float:
        metric = BinaryCalibrationError(n_bins=BINS, norm="l1")
        metric.update(torch.from_numpy(p), torch.from_numpy(y))
        return float(metric.compute())

    return work


def _mapie() -> Work:
    from mapie.metrics.calibration import expected_calibration_error

    # `num_bins` counts edges: one more gives as many bins as the others have.
    return lambda y, p: expected_calibration_error(y, p, num_bins=BINS + 1, split_strategy="uniform")


def _pycalib() -> Work:
    from pycalib.metrics import binary_ECE

    return lambda y, p: float(binary_ECE(y, p, bins=BINS))


def _uncertainty_calibration() -> Work:
    import calibration

    return lambda y, p: float(calibration.get_ece(p, y, num_bins=BINS, mode="marginal"))


def _relplot_binned() -> Work:
    from relplot.metrics import binnedECE

    return lambda y, p: float(binnedECE(p, y, nbins=BINS))


def _relplot_smooth() -> Work:
    from relplot import smECE

    def work(y: np.ndarray, p: np.ndarray) -> None:
        smECE(p, y)

    return work


TABLE, EVALUATE_ONE, EVALUATE = "safecal, one thread", "safecal.evaluate, one thread", "safecal.evaluate"
CURVE, THREE, RELPLOT = "scikit-learn calibration_curve", "scikit-learn, three functions", "relplot binnedECE"

_SUMS = "all sums by bin: ECD, its null variance and skewness, NLL, Brier, accuracy, ECE, ESCE; input checked"
_ALL = "the table, a test, intervals, temperature, verdict and reason"
_ONE = {"OMP_NUM_THREADS": "1"}  # of NumPy's linear algebra
OURS = (
    Entry(TABLE, "safecal", "safecal", _SUMS, lambda: _table(1), ours=True, environment=_ONE),
    Entry("safecal, all threads", "safecal", "safecal", _SUMS, _table, ours=True),
    Entry("safecal, NumPy alone", "safecal", "safecal", _SUMS, _table, ours=True, environment={"SAFECAL_PURE": "1"}),
    Entry(EVALUATE_ONE, "safecal", "safecal", _ALL, lambda: _evaluate(1), ours=True, environment=_ONE),
    Entry(EVALUATE, "safecal", "safecal", _ALL, _evaluate, ours=True),
)
PEERS = (
    Entry(CURVE, "sklearn", "scikit-learn", "the curve, no ECE", _calibration_curve),
    Entry(
        THREE, "sklearn", "scikit-learn", "log_loss, brier_score_loss, calibration_curve",
        _three_of_sklearn,
    ),
    Entry("netcal ECE", "netcal", "netcal", "ECE", _netcal),
    Entry("torchmetrics BinaryCalibrationError", "torchmetrics", "torchmetrics", "ECE", _torchmetrics),
    Entry("MAPIE expected_calibration_error", "mapie", "MAPIE", "ECE", _mapie),
    Entry("pycalib binary_ECE", "pycalib", "pycalib", "ECE", _pycalib),
    Entry("uncertainty-calibration get_ece", "calibration", "uncertainty-calibration", "ECE", _uncertainty_calibration),
    Entry(RELPLOT, "relplot", "relplot", "ECE; input not checked", _relplot_binned),
    Entry("relplot smECE", "relplot", "relplot", "a smoothed ECE, without bins", _relplot_smooth),
)  # fmt: skip
ENTRIES = {entry.name: entry for entry in OURS + PEERS}


# What each makes of a few rows: (what they are, labels, probabilities).
CASES: tuple[tuple[str, list[int], list[float]], ...] = (
    ("p = 1 beside 0.95", [0, 1], [1.0, 0.95]),
    ("p = 0 beside 0.05", [1, 0], [0.0, 0.05]),
    ("p = 0.3 beside 0.35", [0, 1], [0.3, 0.35]),
    ("labels 1 and 2", [1, 2], [0.3, 0.35]),
    ("p = NaN", [0, 1], [0.3, float("nan")]),
    ("p = 1.7", [0, 1], [0.3, 1.7]),
)


def answers(work: Work) -> dict[str, float | str | None]:
    """Return what a work makes of each case: a number, or the name of the exception."""
    by_case: dict[str, float | str | None] = {}
    for name, y, p in CASES:
        try:
            by_case[name] = work(np.array(y), np.array(p))
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
            by_case[name] = type(error).__name__
    return by_case


def rows(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Draw labels and probabilities of an over-confident model: its logits are a third too large."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, count)
    happened = rng.random(count) < 1.0 / (1.0 + np.exp(-0.75 * z))
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += 1.0
    return happened.astype(np.int64), np.reciprocal(z, out=z)
