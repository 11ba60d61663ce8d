"""Optional libraries, imported when they are needed: where one is missing, the error names the extra that brings it."""

from importlib import import_module
from typing import Any

from .errors import MissingExtraError

__all__ = ["narwhals", "polars", "pyarrow", "require"]


def require(module: str, need: str, extra: str) -> Any:
    """Import a module, or say what to install.

    Parameters
    ----------
    module : str
        The module.
    need : str
        What it is needed for, as the beginning of a sentence that ends with the name of the library.
    extra : str
        The extra of safecal that installs it.

    Returns
    -------
    module
        What was imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f'{need}, which is not installed.\n\nHint: pip install "safecal[{extra}]"') from error


def narwhals() -> Any:
    """Import narwhals."""
    return require("narwhals", "frames are read through narwhals", "frames")


def pyarrow() -> Any:
    """Import PyArrow."""
    return require("pyarrow", "frames are read through PyArrow", "frames")


def polars(what: str = "such files are read") -> Any:
    """Import Polars."""
    return require("polars", f"{what} with Polars", "cli")
