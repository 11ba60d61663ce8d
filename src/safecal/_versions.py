"""What to paste into a bug report."""

import platform
import sys
from importlib import metadata

__all__ = ["show_versions", "version"]

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

    found = instructions()
    return "NumPy (the compiled one is not there)" if found is None else f"compiled, {found}"


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
