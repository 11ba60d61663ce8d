"""safecal tells whether a probabilistic model is safe: not over-confident.

Start with `evaluate` for classifiers, and with `gaussian` and `density` for everything else. Names are loaded when they
are first used, so that ``import safecal`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._optional import show_versions
    from ._sums import Tally
    from ._sums.scored import Histogram, Scored
    from ._sums.splits import Bins
    from ._sums.summary import Summary
    from ._sums.table import Table
    from .errors import SafecalError
    from .families import Predictions
    from .families.bernoulli import bernoulli
    from .families.bounded import bounded
    from .families.categorical import categorical
    from .families.density import density
    from .families.ensemble import ensemble
    from .families.forecasts import intervals, quantiles
    from .families.gaussian import gaussian
    from .families.mixtures import gaussian_mixture, particles
    from .families.poses import poses
    from .inference import Interval, TestResult
    from .inference.bounds import Mistakes
    from .inference.calibration import calibration_test, implied_temperature
    from .inference.cox import Cox
    from .inference.local import Local, Range
    from .inference.shifts import ClassShift, ClassShifts
    from .judge import evaluate
    from .judge.baseline import Baseline
    from .judge.comparison import Comparison, Difference, SideBySide
    from .judge.consistency import Consistency, assess_consistency
    from .judge.diagnosis import Diagnosis
    from .judge.evaluation import Evaluation
    from .judge.groups import GroupVerdict, TooSmall
    from .judge.paired import compare
    from .judge.places import Place
    from .judge.planning import RowsNeeded, rows_needed
    from .judge.reliability import Reliability
    from .judge.row_reliability import assess_reliability
    from .judge.verdict import Verdict
    from .maps import recalibrate
    from .maps.temperature import SafeTemperature, Temperature
    from .metrics import brier, ecd, ece, esce, nees, nll
    from .options import Limits
    from .slices import find_slices
    from .slices.conditions import Condition
    from .slices.estimation import Reach
    from .slices.results import Slice, Slices

    __version__: str

_HOMES = {
    "Baseline": "judge.baseline",
    "Bins": "_sums.splits",
    "ClassShift": "inference.shifts",
    "ClassShifts": "inference.shifts",
    "Comparison": "judge.comparison",
    "Condition": "slices.conditions",
    "Consistency": "judge.consistency",
    "Cox": "inference.cox",
    "Diagnosis": "judge.diagnosis",
    "Difference": "judge.comparison",
    "Evaluation": "judge.evaluation",
    "GroupVerdict": "judge.groups",
    "Histogram": "_sums.scored",
    "Interval": "inference",
    "Limits": "options",
    "Local": "inference.local",
    "Mistakes": "inference.bounds",
    "Place": "judge.places",
    "Predictions": "families",
    "Range": "inference.local",
    "Reach": "slices.estimation",
    "Reliability": "judge.reliability",
    "RowsNeeded": "judge.planning",
    "SafeTemperature": "maps.temperature",
    "SafecalError": "errors",
    "Scored": "_sums.scored",
    "SideBySide": "judge.comparison",
    "Slice": "slices.results",
    "Slices": "slices.results",
    "Summary": "_sums.summary",
    "Table": "_sums.table",
    "Tally": "_sums",
    "Temperature": "maps.temperature",
    "TestResult": "inference",
    "TooSmall": "judge.groups",
    "Verdict": "judge.verdict",
    "assess_consistency": "judge.consistency",
    "assess_reliability": "judge.row_reliability",
    "bernoulli": "families.bernoulli",
    "brier": "metrics",
    "calibration_test": "inference.calibration",
    "categorical": "families.categorical",
    "compare": "judge.paired",
    "bounded": "families.bounded",
    "density": "families.density",
    "ecd": "metrics",
    "ece": "metrics",
    "ensemble": "families.ensemble",
    "esce": "metrics",
    "evaluate": "judge",
    "find_slices": "slices",
    "gaussian": "families.gaussian",
    "gaussian_mixture": "families.mixtures",
    "implied_temperature": "inference.calibration",
    "intervals": "families.forecasts",
    "nees": "metrics",
    "nll": "metrics",
    "particles": "families.mixtures",
    "poses": "families.poses",
    "quantiles": "families.forecasts",
    "recalibrate": "maps",
    "rows_needed": "judge.planning",
    "show_versions": "_optional",
}

_MODULES = ("compat", "engines", "errors", "maps", "monitor", "paper", "plot", "report", "testing")

__all__ = [
    "Baseline",
    "Bins",
    "ClassShift",
    "ClassShifts",
    "Comparison",
    "Condition",
    "Consistency",
    "Cox",
    "Diagnosis",
    "Difference",
    "Evaluation",
    "GroupVerdict",
    "Histogram",
    "Interval",
    "Limits",
    "Local",
    "Mistakes",
    "Place",
    "Predictions",
    "Range",
    "Reach",
    "Reliability",
    "RowsNeeded",
    "SafeTemperature",
    "SafecalError",
    "Scored",
    "SideBySide",
    "Slice",
    "Slices",
    "Summary",
    "Table",
    "Tally",
    "Temperature",
    "TestResult",
    "TooSmall",
    "Verdict",
    "assess_consistency",
    "assess_reliability",
    "bernoulli",
    "bounded",
    "brier",
    "calibration_test",
    "categorical",
    "compare",
    "density",
    "ecd",
    "ece",
    "ensemble",
    "esce",
    "evaluate",
    "find_slices",
    "gaussian",
    "gaussian_mixture",
    "implied_temperature",
    "intervals",
    "nees",
    "nll",
    "particles",
    "poses",
    "quantiles",
    "recalibrate",
    "rows_needed",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("._optional", __name__).version()
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
