"""The optional libraries, imported when they are needed."""

from importlib import import_module
from typing import Any

from ...errors import MissingExtraError

__all__ = ["library"]

_NAMES = {
    "transformers": "Transformers",
    "torch": "PyTorch",
    "datasets": "Datasets",
    "polars": "Polars",
    "PIL.Image": "Pillow",
}


def library(module: str, purpose: str) -> Any:
    """Import a library, or say what it is needed for and what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f'{purpose} needs {_NAMES[module]}, which is not installed.\n\nHint: pip install "safecal[huggingface]"'
        ) from error
