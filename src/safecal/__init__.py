"""safecal tells whether a probabilistic model is safe: not over-confident.

Start with `evaluate` for classifiers, and with `gaussian` and `density` for everything else. Names are loaded when they
are first used, so that ``import safecal`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._versions import show_versions
    from .baseline import Baseline
    from .bins import Bins
    from .comparison import Comparison, Difference, SideBySide
    from .consistency import Consistency, assess_consistency
    from .diagnosis import Diagnosis
    from .errors import SafecalError
    from .evaluation import Evaluation
    from .families.bernoulli import bernoulli
    from .families.categorical import categorical
    from .families.density import density
    from .families.gaussian import gaussian
    from .families.mixture import gaussian_mixture
    from .families.particles import particles
    from .families.predictions import Predictions
    from .front_door import evaluate
    from .groups import GroupVerdict, TooSmall
    from .histogram import Histogram
    from .inference.calibration import calibration_test
    from .inference.cox import Cox
    from .inference.local import Local, Range
    from .inference.mistakes import Mistakes
    from .inference.results import Interval, TestResult
    from .inference.shifts import ClassShift, ClassShifts
    from .inference.temperature import implied_temperature
    from .limits import Limits
    from .metrics import brier, ecd, ece, esce, nees, nll
    from .paired import compare
    from .places import Place
    from .planning import RowsNeeded, rows_needed
    from .recalibrate.temperature import SafeTemperature, Temperature
    from .reliability import Reliability, assess_reliability
    from .scored import Scored
    from .summary import Summary
    from .table import Table
    from .tally import Tally
    from .verdict import Verdict

    __version__: str

_HOMES = {
    "Baseline": "baseline",
    "Bins": "bins",
    "ClassShift": "inference.shifts",
    "ClassShifts": "inference.shifts",
    "Comparison": "comparison",
    "Consistency": "consistency",
    "Cox": "inference.cox",
    "Diagnosis": "diagnosis",
    "Difference": "comparison",
    "Evaluation": "evaluation",
    "GroupVerdict": "groups",
    "Histogram": "histogram",
    "Interval": "inference.results",
    "Limits": "limits",
    "Local": "inference.local",
    "Mistakes": "inference.mistakes",
    "Place": "places",
    "Predictions": "families.predictions",
    "Range": "inference.local",
    "Reliability": "reliability",
    "RowsNeeded": "planning",
    "SafeTemperature": "recalibrate.temperature",
    "SafecalError": "errors",
    "Scored": "scored",
    "SideBySide": "comparison",
    "Summary": "summary",
    "Table": "table",
    "Tally": "tally",
    "Temperature": "recalibrate.temperature",
    "TestResult": "inference.results",
    "TooSmall": "groups",
    "Verdict": "verdict",
    "assess_consistency": "consistency",
    "assess_reliability": "reliability",
    "bernoulli": "families.bernoulli",
    "brier": "metrics",
    "calibration_test": "inference.calibration",
    "categorical": "families.categorical",
    "compare": "paired",
    "density": "families.density",
    "ecd": "metrics",
    "ece": "metrics",
    "esce": "metrics",
    "evaluate": "front_door",
    "gaussian": "families.gaussian",
    "gaussian_mixture": "families.mixture",
    "implied_temperature": "inference.temperature",
    "nees": "metrics",
    "nll": "metrics",
    "particles": "families.particles",
    "rows_needed": "planning",
    "show_versions": "_versions",
}

_MODULES = ("compat", "engines", "errors", "monitor", "paper", "plot", "report", "testing")

__all__ = [
    "Baseline",
    "Bins",
    "ClassShift",
    "ClassShifts",
    "Comparison",
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
    "Reliability",
    "RowsNeeded",
    "SafeTemperature",
    "SafecalError",
    "Scored",
    "SideBySide",
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
    "brier",
    "calibration_test",
    "categorical",
    "compare",
    "density",
    "ecd",
    "ece",
    "esce",
    "evaluate",
    "gaussian",
    "gaussian_mixture",
    "implied_temperature",
    "nees",
    "nll",
    "particles",
    "rows_needed",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("._versions", __name__).version()
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
