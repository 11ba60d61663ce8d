"""Every exception that safecal raises on purpose.

::

    ValueError
    └── SafecalError
        ├── InputError                 an argument breaks a rule; the message names it
        │   ├── FormError              the prediction is given in no form, or in two
        │   ├── ShapeError             wrong number of dimensions, rows or columns
        │   ├── AlignmentError         rows of pandas objects whose labels differ
        │   ├── EmptyError             nothing to work on
        │   ├── DtypeError             not numbers, or numbers that would have to be rounded
        │   ├── MissingValueError      NaN, None or a masked value
        │   ├── RangeError             a number outside the range it must lie in
        │   ├── NormalisationError     class probabilities that do not sum to one
        │   ├── LabelError             a label that is not an outcome
        │   ├── WeightError            weights that are negative or all zero
        │   ├── CovarianceError        a matrix that is no covariance
        │   ├── BinsError              bins that do not exist or do not cover the data
        │   └── OptionError            an option outside its choices
        ├── MergeError                 two sums that do not belong together
        ├── TruthError                 a result was used as if it were true or false
        ├── UnavailableError           the quantity does not exist for this prediction
        ├── DocumentError              a JSON document that safecal did not write
        ├── FileError                  a file that cannot be read or written; also an OSError
        │   ├── LockedError            another watcher is at work on the store
        │   └── UnreachableError       a model or a data set that could not be fetched
        ├── EngineError                a cluster lost its workers, or was closed
        ├── NotifyError                nobody could be told: a command, a webhook or an endpoint failed
        └── MissingExtraError          an optional library is not installed; also an ImportError
"""

import typing
import unicodedata

__all__ = [
    "AlignmentError",
    "BinsError",
    "CovarianceError",
    "DocumentError",
    "DtypeError",
    "EmptyError",
    "EngineError",
    "FileError",
    "FormError",
    "InputError",
    "LabelError",
    "LockedError",
    "MergeError",
    "MissingExtraError",
    "MissingValueError",
    "NormalisationError",
    "NotifyError",
    "OptionError",
    "RangeError",
    "SafecalError",
    "ShapeError",
    "TruthError",
    "UnavailableError",
    "UnreachableError",
    "WeightError",
]


class SafecalError(ValueError):
    """Base of every exception that safecal raises on purpose."""


class InputError(SafecalError):
    """An argument breaks a rule; the message names argument, rule, value, place and count.

    Attributes
    ----------
    complaint : object or None
        The parts of the message, by name: argument, rule, got, place, count, hint; for a program that words it anew.
    """

    complaint: typing.Any = None


class FormError(InputError):
    """The prediction is given in no form, or in two forms at once."""


class ShapeError(InputError):
    """An argument has the wrong number of dimensions, rows or columns."""


class AlignmentError(InputError):
    """Two pandas objects do not have the same index, so which rows belong together is not clear."""


class EmptyError(InputError):
    """There is nothing to work on."""


class DtypeError(InputError):
    """An argument does not hold numbers, or numbers that would have to be rounded."""


class MissingValueError(InputError):
    """A value is NaN, None or masked."""


class RangeError(InputError):
    """A number lies outside the range it must lie in."""


class NormalisationError(InputError):
    """Class probabilities do not sum to one."""


class LabelError(InputError):
    """A label is not one of the outcomes that the prediction is about."""


class WeightError(InputError):
    """Weights are negative or all zero."""


class CovarianceError(InputError):
    """A matrix is not a covariance: not symmetric, or not positive definite."""


class BinsError(InputError):
    """Bins do not exist, or do not cover the data."""


class OptionError(InputError):
    """An option is outside its choices, or does not apply here."""


class MergeError(SafecalError):
    """Two sums do not belong together: other bins, another grid, another kind of key."""


class TruthError(SafecalError):
    """A result was used as if it were true or false, as in ``assert evaluate(...).verdict``: UNSAFE would pass."""


class UnavailableError(SafecalError):
    """The quantity does not exist for this prediction."""


class DocumentError(SafecalError):
    """A JSON document is not one that safecal wrote, or is of another version.

    Attributes
    ----------
    path : str
        The field that is wrong: ``"tally.summary.n"``; empty where it is the document itself.
    rule : str
        What is wrong with it.
    hint : str or None
        What to do about it.
    """

    path: str = ""
    rule: str = ""
    hint: str | None = None


class FileError(SafecalError, OSError):
    """A file is not there, is empty, is not what its name says, or cannot be written where it should be."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # an OSError would write its number and its file


class UnreachableError(FileError):
    """A model or a data set could not be fetched from the Hugging Face hub.

    The message names it, and how to point at a local copy.
    """


class LockedError(FileError):
    """Another watcher is at work on the store."""


class EngineError(SafecalError):
    """A cluster did not finish: its workers were lost too often, or lack something, or it was closed.

    The message says what the cluster said, and one move to make. Nothing is wrong with the rows.
    """


class NotifyError(SafecalError):
    """Nobody could be told: a command or a webhook failed, or an endpoint could not be opened."""


class MissingExtraError(SafecalError, ImportError):
    """An optional library is not installed; the message names what to install."""


# Text of strangers, as messages and pages may show it: nothing in it moves the cursor, colours a line or turns the
# writing around.

# They reorder the text around them.
_DIRECTIONS = {chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with what cannot be seen written out: control characters, half characters, changes of direction.

    Examples
    --------
    >>> visible("one\x00two")
    'one\\x00two'
    """
    if text.isprintable():
        return text
    # A document has a hundred thousand characters, and a hundred different ones.
    return text.translate({ord(c): ascii(c)[1:-1] for c in set(text) if c not in keep and _unseen(c)})


def _unseen(character: str) -> bool:
    return character in _DIRECTIONS or unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp", "Cn"}


def shortened(text: str, most: int) -> str:
    """Return a text in one line with nothing invisible in it; where it is long, its middle is left out.

    Examples
    --------
    >>> shortened("a name that is long", 12)
    'a name t…ong'
    """
    text = visible(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"
