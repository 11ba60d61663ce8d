"""Start here: read the command, run it, turn errors into one message and an exit status."""

import argparse
import gc
import signal
import sys
import textwrap
from collections.abc import Sequence
from functools import partial

from ..errors import SafecalError, visible
from .parser import build_parser
from .terminal import INTERRUPTED, guarded, open_closed

__all__ = ["ERROR", "entry", "main"]

ERROR = 2
_HINT = "\n\nHint: "
_WIDTH = 79  # columns of a terminal


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    A reader who goes away, as ``head`` does, changes no status. Output that is lost in any other way is an error,
    unless the command ends with a status other than 0 by itself.
    """
    with guarded() as out:
        status = _run(argv)
        out.flush()
        lost = out.lost is not None and not isinstance(out.lost, BrokenPipeError)
        return status or (ERROR if lost else 0)


def _run(argv: Sequence[str] | None) -> int:
    options = argparse.Namespace(decided=0)  # a gate notes its status there: it holds whatever fails afterwards
    try:
        words = sys.argv[1:] if argv is None else argv
        command = next((word for word in words if not word.startswith("-")), "")
        build_parser(command).parse_args(words, options)
        return int(options.run(options))
    except SystemExit as stop:  # --help, words that cannot be, a request to stop
        return stop.code if isinstance(stop.code, int) else ERROR
    except SafecalError as error:
        print(_for_terminal(f"safecal: {_worded(error)}"), file=sys.stderr)
    except OSError as error:
        where = f" {error.filename!r}" if error.filename is not None else ""
        print(f"safecal: the system refused{where}: {error.strerror or error}.", file=sys.stderr)
    except KeyboardInterrupt:
        print("safecal: interrupted; nothing was written.", file=sys.stderr)
        return INTERRUPTED
    return options.decided or ERROR


def _for_terminal(text: str) -> str:
    """Return a message in lines that fit a terminal, if one shows it; a command to be copied stays in one piece."""
    if not sys.stderr.isatty():
        return text
    fill = partial(textwrap.fill, width=_WIDTH, break_on_hyphens=False, break_long_words=False)
    return "\n".join(line if line.startswith("Hint: safecal ") else fill(line) for line in text.split("\n"))


def _worded(error: SafecalError) -> str:
    """Return a message and its hint on lines of their own, whatever characters stand in the names that they quote."""
    from .._checks.message import in_options

    start = str(error).rfind(_HINT)
    parts = (str(error),) if start < 0 else (str(error)[:start], in_options(str(error)[start + len(_HINT) :]))
    return _HINT.join(map(visible, parts))


def entry() -> None:
    """Run as a program of its own: a request to stop lets go of unfinished files first."""
    gc.set_threshold(50_000)  # modules make many objects, and all of them stay
    open_closed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())


if __name__ == "__main__":
    entry()
