"""Libraries beside safecal: imported where they are needed, or the extra that brings one is named; their versions."""

import platform
import sys
from importlib import import_module, metadata
from typing import Any

from .errors import MissingExtraError

__all__ = ["narwhals", "polars", "pyarrow", "require", "show_versions", "version"]


def require(module: str, need: str, extra: str) -> Any:
    """Import a module, or say which ``extra`` to install; ``need`` begins a sentence that ends with the library."""
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


_LIBRARIES = (
    "safecal",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "stonesoup",
    "torch",
)


def version(library: str = "safecal") -> str:
    """Return the installed version of safecal, or of another library."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print the versions of Python, of the system, of the libraries safecal works with, and which kernel is used.

    Examples
    --------
    >>> import safecal
    >>> safecal.show_versions()
    python ...
    """
    from ._kernels.compiled import instructions

    loops = instructions()
    kernel = "NumPy (the compiled one is not there)" if loops is None else f"compiled, {loops}"
    lines = [("python", sys.version.split()[0]), ("system", platform.platform())]
    lines += [*((name, version(name)) for name in _LIBRARIES), ("kernel", kernel)]
    width = max(len(name) for name, _ in lines)
    print("\n".join(f"{name.ljust(width)}  {value}" for name, value in lines))  # noqa: T201  (its purpose)
