"""The command line. Start here: read the command, run it with streams that never fail, turn errors into a message.

What a command does is imported when it runs, and nothing here imports NumPy, so that ``--help`` is quick.
"""

import argparse
import errno
import gc
import io
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, TextIO, final

from ..errors import OptionError, SafecalError, visible
from .options import Formatter, add_compare, add_demo, add_evaluate, add_plan, add_recalibrate
from .outputs import INTERRUPTED

__all__ = ["ERROR", "build_parser", "entry", "main"]

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
    width = min(_WIDTH, max(shutil.get_terminal_size().columns - 1, 40))
    fill = partial(textwrap.fill, width=width, break_on_hyphens=False, break_long_words=False)
    return "\n".join(line if line.startswith("Hint: safecal ") else fill(line) for line in text.split("\n"))


def _worded(error: SafecalError) -> str:
    """Return a message and its hint on lines of their own, whatever characters stand in the names that they quote."""
    from .._checks import in_options

    start = str(error).rfind(_HINT)
    parts = (str(error),) if start < 0 else (str(error)[:start], in_options(str(error)[start + len(_HINT) :]))
    return _HINT.join(map(visible, parts))


@final
class Guarded:
    """A stream that never raises for the system: after its first failure it drops what is written, and knows why.

    What a terminal would obey, and not show, is written out: names and texts come from files of strangers.
    """

    def __init__(self, stream: TextIO | None, on_loss: Callable[[OSError], object] = lambda _: None) -> None:
        self._stream: TextIO = io.StringIO() if stream is None else stream  # never written to where it stands in
        self._closed = stream is None
        self._on_loss = on_loss
        self.lost: OSError | None = None  # the first failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop."""
        self.draw(visible(text, keep="\n\t"))
        return len(text)

    def draw(self, text: str) -> None:
        """Write what the terminal shall obey: a line that is drawn anew."""
        if text and self._closed:
            self._lose(OSError(errno.EBADF, "it is closed"))
        self._try(lambda: self._written(text))

    def flush(self) -> None:
        """Hand on what was written, or drop it."""
        self._try(self._stream.flush)

    def _written(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:  # a name that the encoding of the terminal lacks is no reason to fail
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def _try(self, action: Callable[[], object]) -> None:
        if self.lost is not None or self._closed:
            return
        try:
            action()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        if self.lost is not None:
            return
        self.lost = error
        if not self._closed:
            _drain(self._stream)
        self._on_loss(error)


def _drain(stream: TextIO) -> None:
    """Let what is still held go nowhere; else Python would try again at its end, and set a status of its own."""
    try:
        number = stream.fileno()
    except (OSError, ValueError, AttributeError):  # a stream of someone who called us from Python
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, number)
    finally:
        os.close(null)


def _report_loss(error: OSError) -> None:
    if not isinstance(error, BrokenPipeError):  # whoever read our output has what they wanted
        print(f"safecal: standard output could not be written: {error.strerror or error}.", file=sys.stderr)


@contextmanager
def guarded() -> Iterator[Guarded]:
    """Guard both streams as long as the context lives, and yield standard output."""
    out: Any = Guarded(sys.stdout, _report_loss)
    err: Any = Guarded(sys.stderr)
    with redirect_stderr(err), redirect_stdout(out):
        try:
            yield out
        finally:
            out.flush()
            err.flush()


def open_closed() -> None:
    """Open those of the first three descriptors that are closed, on nothing.

    Else the next file that is opened would take the number, and receive what others write to it. Standard input, too,
    is opened to write: reading from it stays an error, not an empty file.
    """
    while (number := os.open(os.devnull, os.O_WRONLY)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)


_ABOUT = "Find out whether a probabilistic model is safe, that is, not over-confident."
_EXAMPLES = """examples:
  safecal demo                                        one minute with safecal: simulate, evaluate, report
  safecal evaluate predictions.csv                    finds the columns `y` and `p` by their names
  safecal evaluate scores.parquet --y label --prob score --by country --report report.html
  safecal evaluate model.csv --y label --prob score --gate      status 0 SAFE, 3 UNSAFE, 4 UNDETERMINED
  safecal compare new.csv old.csv --y label --prob score
  safecal recalibrate model.csv --y label --prob score --out calibrated.csv --save calibrator.json
  safecal poses runs/*/estimate.tum --truth truth.tum --cov runs/*/cov.csv --side right --first rotation
  safecal watch incoming/ --y label --prob score      raise an alarm when a model becomes over-confident

`safecal COMMAND --help` explains each command."""


class _Command(NamedTuple):
    """A command: what the list of commands says of it, what adds its options, and what runs it."""

    about: str
    add_options: Callable[[argparse.ArgumentParser], object]
    run: Callable[[argparse.Namespace], int]


def _later(function: str) -> Callable[[Any], int]:
    """Return a function of a module that is imported only when it is called, so that ``--help`` is quick."""
    module, _, name = function.partition(".")

    def call(argument: Any) -> int:
        result: int = getattr(import_module(f"safecal.cli.{module}"), name)(argument)
        return result

    return call


class _Version(argparse.Action):
    def __init__(self, option_strings: Any, dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .._optional import version

        print(f"safecal {version()}")
        parser.exit()


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands; where one is named, the others are listed, and cannot be parsed."""
    parser = Parser("safecal", description=_ABOUT, epilog=_EXAMPLES, formatter_class=Formatter)
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for name, listed in _COMMANDS.items():
        about = f"{listed.about[0].upper()}{listed.about[1:]}."
        subparser = commands.add_parser(name, help=listed.about, description=about, formatter_class=Formatter)
        if command in (None, name):
            subparser.set_defaults(run=listed.run, command=name)
            listed.add_options(subparser)
        if command == name:
            parser.known_options, parser.command = tuple(subparser._option_string_actions), command
    return parser


class Parser(argparse.ArgumentParser):
    """A parser that says which word one may have meant."""

    known_options: Sequence[str] = ()  # those of the command that was typed
    command: str | None = None

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.color = False  # of Python 3.14: what is written to a terminal is shown, not obeyed

    def error(self, message: str) -> NoReturn:
        refused = re.fullmatch(r"argument (\S+): (must .*)", message, re.DOTALL)
        if refused is not None:  # a value that is refused is worded as every other
            raise OptionError(f"`{refused[1]}` {refused[2]}.")
        command = f"{self.prog} {self.command}" if self.command else self.prog
        hint = _way_out(message, self.command, self.known_options or tuple(self._option_string_actions), command)
        for pattern, words in _REWORDED.items():
            message = re.sub(pattern, words, message, flags=re.DOTALL)
        self.exit(2, f"safecal: {visible(message)}.\n\nHint: {hint}\n")


_REWORDED = {  # what argparse says, and what we say
    r"^unrecognized arguments: (.*)": r"not known here: \1",
    r"^the following arguments are required: (.*)": r"missing: \1",
    r"^argument (\S+): expected (?:one|at least one) argument$": r"`\1` needs a value",
    r"^argument (\S+): invalid choice: (.*?) \(choose from (.*)\)$": r"`\1` must be one of \3; got \2",
}
_FORECASTS = ("--x", "--mean", "--std", "--var", "--cov", "--lower", "--upper", "--coverage", "--quantile", "--draws")
_IN_PYTHON = {
    "watch": "`safecal.monitor.Monitor` watches means with a spread",
    "compare": "`safecal.compare` compares such forecasts",
    "plan": "`safecal.rows_needed` plans for means with a spread",
    "recalibrate": "`safecal.recalibrate` fixes means with a spread",
}


def _way_out(message: str, command: str | None, options: Sequence[str], prog: str) -> str:
    """Return a hint for what the parser does not know."""
    wrong, choices = _mistyped(message, options)
    if wrong in _FORECASTS and wrong not in options and command in _IN_PYTHON:
        return f"`{wrong}` belongs to `safecal evaluate`. In Python {_IN_PYTHON[command]}."
    nearest = get_close_matches(wrong, choices, n=1) if wrong else []
    return f"did you mean `{nearest[0]}`?" if nearest else f"{prog} --help"


def _mistyped(message: str, options: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the word that is not known, and what it could have been."""
    if message.startswith("unrecognized arguments: "):
        wrong = next((word for word in message.split(": ", 1)[1].split() if word.startswith("-")), "")
        return wrong.split("=")[0], options
    choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
    return ("", ()) if choice is None else (choice[1], [word.strip("' ") for word in choice[2].split(",")])


_COMMANDS = {
    "evaluate": _Command(
        "judge a model by a file of its predictions: SAFE, UNSAFE or UNDETERMINED",
        add_evaluate, _later("commands.run_evaluate"),
    ),
    "compare": _Command("compare two models on the same rows", add_compare, _later("commands.run_compare")),
    "plan": _Command(
        "estimate how many rows a verdict needs, from a sample of the predictions",
        add_plan, _later("commands.run_plan"),
    ),
    "recalibrate": _Command(
        "find the map that fixes a model, or apply one", add_recalibrate, _later("recalibrate.run")
    ),
    "lm": _Command(
        "judge a language model by texts that people wrote",
        _later("language_models.add_options"), _later("language_models.run"),
    ),
    "poses": _Command(
        "judge the covariances of estimated poses: TUM text or nav_msgs/Odometry, one run or many",
        _later("poses.add_options"), _later("poses.run"),
    ),
    "watch": _Command(
        "watch a model in use, and raise an alarm when it becomes over-confident",
        _later("watch.add_options"), _later("watch.run"),
    ),
    "demo": _Command(
        "try safecal on two simulated models, one safe and one unsafe", add_demo, _later("commands.run_demo")
    ),
    "paper": _Command(
        "reproduce the tables and figures of the paper (arXiv 2502.14545)",
        _later("paper.add_options"), _later("paper.run"),
    ),
}  # fmt: skip


def entry() -> None:
    """Run as a program of its own: a request to stop lets go of unfinished files first."""
    gc.set_threshold(50_000)  # modules make many objects, and all of them stay
    open_closed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
