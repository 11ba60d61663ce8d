"""Plots of evaluations, with matplotlib: ``pip install "safecal[plot]"``.

`dashboard` draws everything about one evaluation. The displays draw one thing each, as in scikit-learn: made by
``from_evaluation``, ``from_predictions``, ``from_estimator`` or ``from_cv_results``, they hold the numbers that they
draw. They draw on the axes they are given, and change none of matplotlib's settings.
"""

from .consistency import ConsistencyDisplay
from .dashboard import dashboard
from .ecd import ECDDisplay
from .excess import ContributionDisplay, ExcessDisplay
from .groups import GroupsDisplay
from .places import LocalDisplay, SlicesDisplay
from .recalibration import RecalibrationDisplay, TemperatureDisplay
from .reliability import ReliabilityDisplay

__all__ = [
    "ConsistencyDisplay",
    "ContributionDisplay",
    "ECDDisplay",
    "ExcessDisplay",
    "GroupsDisplay",
    "LocalDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "SlicesDisplay",
    "TemperatureDisplay",
    "dashboard",
]
