"""safecal tells whether a probabilistic model is safe: not over-confident.

Start with `evaluate` for classifiers, and with `gaussian` and `density` for everything else. Names are loaded when they
are first used, so that ``import safecal`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._versions import show_versions
    from .bins import Bins
    from .errors import SafecalError
    from .evaluation import Evaluation, evaluate
    from .families.bernoulli import bernoulli
    from .families.categorical import categorical
    from .families.density import density
    from .families.gaussian import gaussian
    from .families.predictions import Predictions
    from .metrics import brier, ecd, ece, esce, nees, nll
    from .profile import Profile
    from .scored import Scored
    from .summary import Summary
    from .table import Table

    __version__: str

_HOMES = {
    "Bins": "bins",
    "Evaluation": "evaluation",
    "Predictions": "families.predictions",
    "Profile": "profile",
    "SafecalError": "errors",
    "Scored": "scored",
    "Summary": "summary",
    "Table": "table",
    "bernoulli": "families.bernoulli",
    "brier": "metrics",
    "categorical": "families.categorical",
    "density": "families.density",
    "ecd": "metrics",
    "ece": "metrics",
    "esce": "metrics",
    "evaluate": "evaluation",
    "gaussian": "families.gaussian",
    "nees": "metrics",
    "nll": "metrics",
    "show_versions": "_versions",
}

_MODULES = ("errors", "testing")

__all__ = [
    "Bins",
    "Evaluation",
    "Predictions",
    "Profile",
    "SafecalError",
    "Scored",
    "Summary",
    "Table",
    "bernoulli",
    "brier",
    "categorical",
    "density",
    "ecd",
    "ece",
    "esce",
    "evaluate",
    "gaussian",
    "nees",
    "nll",
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
