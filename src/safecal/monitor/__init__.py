"""A deployed model, watched: evidence of over-confidence that survives looking after every row."""

from .alarm import Alarm
from .monitor import Monitor

__all__ = ["Alarm", "Monitor"]
