"""The history of a watched model as one HTML page."""

from .document import history_page

__all__ = ["history_page"]
