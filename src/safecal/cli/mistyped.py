"""What was typed and is not known: the word that was meant, or where such an option belongs."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

__all__ = ["way_out"]

_FORECASTS = ("--x", "--mean", "--std", "--var", "--cov", "--lower", "--upper", "--coverage", "--quantile", "--draws")
_IN_PYTHON = {
    "watch": "`safecal.monitor.Monitor` watches means with a spread",
    "compare": "`safecal.compare` compares such forecasts",
    "plan": "`safecal.rows_needed` plans for means with a spread",
    "recalibrate": "`safecal.recalibrate` fixes means with a spread",
}


def way_out(message: str, command: str | None, options: Sequence[str], prog: str) -> str:
    """Return a hint for what the parser does not know."""
    wrong, choices = _mistyped(message, options)
    if wrong in _FORECASTS and wrong not in options and command in _IN_PYTHON:
        return f"`{wrong}` belongs to `safecal evaluate`. In Python {_IN_PYTHON[command]}."
    near = get_close_matches(wrong, choices, n=1) if wrong else []
    return f"did you mean `{near[0]}`?" if near else f"{prog} --help"


def _mistyped(message: str, options: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the word that is not known, and what it could have been."""
    if message.startswith("unrecognized arguments: "):
        wrong = next((word for word in message.split(": ", 1)[1].split() if word.startswith("-")), "")
        return wrong.split("=")[0], options
    found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
    return ("", ()) if found is None else (found[1], [word.strip("' ") for word in found[2].split(",")])
