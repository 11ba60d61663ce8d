"""Triton, where it is there: kernels are written against these names, and stay importable without it."""

from typing import Any

__all__ = ["AVAILABLE", "jit", "tl", "triton"]

triton: Any = None
tl: Any = None
try:
    import triton  # type: ignore[no-redef]
    import triton.language as tl  # type: ignore[no-redef]
except ImportError:  # torch for the CPU comes without it
    pass

AVAILABLE = triton is not None


def _as_it_is(function: Any) -> Any:
    return function


jit: Any = triton.jit if AVAILABLE else _as_it_is
