"""What fixes it: maps that recalibrate predictions, and `Safe`, which rules over-confidence out after any of them.

Every map is fitted with ``fit``, ``fit_states`` or ``fit_predictions``, and applied with ``apply``, ``apply_states`` or
``apply_predictions``; ``to_dict`` and `from_dict` write and read it, ``to_python``, ``to_sql`` and ``to_torch`` take it
to where it is used.
"""

from .affine import Affine, Vector
from .base import Map
from .plain import Identity
from .result import Candidate, Recalibration
from .safe import Safe, from_dict
from .states import Axes
from .temperature import SafeTemperature, Temperature
from .two_classes import Beta, Isotonic

__all__ = [
    "Affine",
    "Axes",
    "Beta",
    "Candidate",
    "Identity",
    "Isotonic",
    "Map",
    "Recalibration",
    "Safe",
    "SafeTemperature",
    "Temperature",
    "Vector",
    "from_dict",
]
