"""Stone Soup: a metric generator for ECD and NEES, and Monte-Carlo studies with one manager a run.

It is also registered as a plug-in: ``from stonesoup.plugins.safecal import ECDMetric``. It needs
``pip install "safecal[stonesoup]"``.
"""

from ..._optional import require

require("stonesoup", "this module plugs into Stone Soup", "stonesoup")

from .metric import ECDMetric, innovations, monte_carlo  # noqa: E402

__all__ = ["ECDMetric", "innovations", "monte_carlo"]
