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


def version() -> str:
    """Return the installed version of safecal."""
    try:
        return metadata.version("safecal")
    except metadata.PackageNotFoundError:
        return "not installed"


def _kernel() -> str:
    """Say which kernel does the sums."""
    from ._kernels.compiled import instructions

    instruction_set = instructions()
    return "NumPy (the compiled one is not there)" if instruction_set is None else f"compiled, {instruction_set}"


def show_versions() -> None:
    """Print the versions of Python, of the system, of the libraries safecal works with, and which kernel is at work.

    Examples
    --------
    >>> import safecal
    >>> safecal.show_versions()
    python ...
    """
    lines = [("python", sys.version.split()[0]), ("system", platform.platform())]
    for name in _LIBRARIES:
        try:
            lines.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            lines.append((name, "not installed"))
    lines.append(("kernel", _kernel()))
    width = max(len(name) for name, _ in lines)
    print("\n".join(f"{name.ljust(width)}  {value}" for name, value in lines))  # noqa: T201  (its purpose)
