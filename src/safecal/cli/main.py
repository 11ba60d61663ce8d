"""Start here: read the command, run it, turn errors into one message and an exit status."""

import os
import signal
import sys
from collections.abc import Sequence

from ..errors import SafecalError
from .parser import build_parser

__all__ = ["ERROR", "entry", "main"]

ERROR = 2
INTERRUPTED = 130  # what a shell expects after Ctrl-C


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = build_parser().parse_args(argv)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except SafecalError as error:
        print(f"safecal: {error}", file=sys.stderr)
        return ERROR
    except BrokenPipeError:  # whoever read our output has gone: nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" {error.filename!r}" if error.filename is not None else ""
        print(f"safecal: the system refused{where}: {error.strerror or error}.", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("safecal: interrupted; nothing was written.", file=sys.stderr)
        return INTERRUPTED


def entry() -> None:
    """Run as a program of its own: a request to stop lets go of unfinished files first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())


if __name__ == "__main__":
    entry()
