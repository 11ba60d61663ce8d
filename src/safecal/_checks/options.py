"""Options by their names: one that a function does not have is refused, and the nearest that it has is named."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["spelled"]

F = TypeVar("F", bound=Callable[..., Any])


def spelled(*options: type) -> Callable[[F], F]:
    """Let a function refuse names that it does not take; ``options`` are the typed dictionaries of its ``**``.

    Without that, the name of a function deep inside stands in the error.
    """

    def decorate(function: F) -> F:
        code = function.__code__
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known = frozenset(own).union(*(kind.__annotations__ for kind in options)) - {"self", "cls"}

        @wraps(function)
        def inside(*given: Any, **named: Any) -> Any:
            __tracebackhide__ = True
            if not named.keys() <= known:
                owner = given[0] if given and own[:1] == ("cls",) else None
                door = function.__qualname__ if owner is None else f"{owner.__name__}.{function.__name__}"
                raise _unknown(next(name for name in named if name not in known), door, known)
            return function(*given, **named)

        return inside  # type: ignore[return-value]

    return decorate


def _unknown(name: str, door: str, known: Iterable[str]) -> TypeError:
    from difflib import get_close_matches  # a first answer does without it

    near = get_close_matches(name, sorted(known), n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(f'`{word}`' for word in sorted(known))}."
    return TypeError(f"`{name}` is no argument of `{door}`.\n\nHint: {hint}")
