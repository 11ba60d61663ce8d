"""Optional libraries of the engines."""

from typing import Any

from ..errors import MissingExtraError

__all__ = ["narwhals"]


def narwhals() -> Any:
    """Import narwhals, or say what to install."""
    try:
        import narwhals as nw
    except ImportError as error:
        raise MissingExtraError(
            'frames are read through narwhals, which is not installed.\n\nHint: pip install "safecal[frames]"'
        ) from error
    return nw
