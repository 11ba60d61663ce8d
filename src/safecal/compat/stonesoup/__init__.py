"""Stone Soup: a metric generator for ECD and NEES, and Monte-Carlo studies with one manager a run.

It is also registered as a plug-in: ``from stonesoup.plugins.safecal import ECDMetric``. It needs
``pip install "safecal[stonesoup]"``.
"""

from ...errors import MissingExtraError

try:
    import stonesoup  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        'this module plugs into Stone Soup, which is not installed.\n\nHint: pip install "safecal[stonesoup]"'
    ) from error

from .metric import ECDMetric, innovations, monte_carlo

__all__ = ["ECDMetric", "innovations", "monte_carlo"]
