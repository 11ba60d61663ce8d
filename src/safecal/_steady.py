"""The same arithmetic whatever the caller chose with ``np.seterr``.

An underflow is no error here: it is what a probability of e^-800 is; nor is the square of a log-odds of 1e200, which
is infinite and is looked at as that. What is invalid, or a division by 0, warns, and the tests turn that into an error.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, wraps
from inspect import isgeneratorfunction
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

__all__ = ["steadied", "steady"]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_DUNDERS = ("__init__", "__add__", "__getitem__", "__repr__", "__str__", "_repr_html_")


_inside: ContextVar[bool] = ContextVar("safecal_inside", default=False)


@contextmanager
def _own_errstate() -> Iterator[None]:
    """Enter from outside; within safecal, what a caller of ours chose for some lines stays."""
    if _inside.get():
        yield
        return
    token = _inside.set(True)
    try:
        with np.errstate(divide="warn", over="ignore", under="ignore", invalid="warn"):
            yield
    finally:
        _inside.reset(token)


def steady(function: F) -> F:
    """Let a function, or each step of a generator, compute with safecal's choice."""
    if isgeneratorfunction(function):

        @wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
            generator = function(*args, **kwargs)
            while True:
                with _own_errstate():
                    try:
                        step = next(generator)
                    except StopIteration:
                        return
                yield step

        return steps  # type: ignore[return-value]

    @wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        if _inside.get():  # most calls are; what `_own_errstate` does then is nothing, slowly
            return function(*args, **kwargs)
        with _own_errstate():
            return function(*args, **kwargs)

    return inside  # type: ignore[return-value]


def steadied(cls: C) -> C:
    """Let everything public of a class do so, its properties included."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in _DUNDERS:
            continue
        if isinstance(value, FunctionType):
            setattr(cls, name, steady(value))
        elif isinstance(value, classmethod | staticmethod):
            setattr(cls, name, type(value)(steady(value.__func__)))
        elif isinstance(value, property) and value.fget is not None:
            setattr(cls, name, property(steady(value.fget), value.fset, value.fdel, value.__doc__))
        elif isinstance(value, cached_property):
            value.func = steady(value.func)
    return cls
