"""The limits of a verdict, as they were typed."""

import argparse

from ..options import LimitOptions

__all__ = ["limit_options"]


def limit_options(options: argparse.Namespace) -> LimitOptions:
    """Return the limits as keyword arguments of a front door."""
    return {
        "threshold": options.threshold,
        "max_temperature": options.max_temperature,
        "max_ratio": options.max_ratio,
        "local_threshold": options.local_threshold,
        "min_share": options.min_share,
        "level": options.level,
        "rule": options.rule,
    }
