"""Which label is which class: from labels of the data and classes of the model to outcomes and log-odds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import special

from ..._checks.message import fail, show
from ..._types import AnyArray, FloatArray
from ...errors import LabelError, OptionError
from .data import Rows

__all__ = ["Classes", "Outcomes", "log_odds", "read_outcomes"]


@final
@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a model, and how its logits are read."""

    names: tuple[str, ...]
    sigmoid: bool  # each column by itself, not against the others

    @property
    def generic(self) -> bool:
        """Whether the names say nothing: LABEL_0, LABEL_1 and so on."""
        return all(name.upper() == f"LABEL_{k}" for k, name in enumerate(self.names))

    def number(self, label: Any) -> int | None:
        """Return the class that a label names, by its name or else by its number."""
        word = canonical(label)
        names = [canonical(name) for name in self.names]
        if word in names:
            return names.index(word)
        count = max(len(names), 2)  # one logit stands for two classes
        return int(word) if word.isascii() and word.isdigit() and int(word) < count else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What happened, and the class whose log-odds are asked for; None where all classes count."""

    y_true: AnyArray
    column: int | None


def canonical(label: Any) -> str:
    """Return a label as a word: ``True``, ``1``, ``1.0`` and ``"true"`` are one, capitals do not matter."""
    if isinstance(label, bool | np.bool_):
        return str(int(label))
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    word = str(label).strip().casefold()
    return {"true": "1", "false": "0"}.get(word, word)


def read_outcomes(rows: Rows, classes: Classes, positive: Any, negative: Any, positive_class: Any) -> Outcomes:
    """Read the labels of the data, before any prediction is made.

    Parameters
    ----------
    rows : Rows
        The data.
    classes : Classes
        Those of the model.
    positive, negative : object or None
        The label that is positive; or the one that is not, all others being so.
    positive_class : object or None
        The class of the model that speaks of the positive label; by default the one that it names.
    """
    if positive is not None and negative is not None:
        raise fail(OptionError, "negative", "cannot be given together with `positive`")
    binary = len(classes.names) <= 2 or any(x is not None for x in (positive, negative, positive_class))
    if len(classes.names) == 1 and not classes.sigmoid and positive is None and negative is None:
        hint = "name the label that is positive, if the output is its log-odds."
        raise fail(OptionError, "positive", "is needed for a model with one output: it may be a regression", hint=hint)
    if classes.sigmoid and len(classes.names) > 1 and not binary:
        hint = "name the label that is positive, and `positive_class` where the model calls it otherwise."
        raise fail(OptionError, "positive", "is needed for a model that judges each class by itself", hint=hint)
    if not binary:
        return Outcomes(_numbers(rows, classes), None)
    column = _column(classes, positive, positive_class)
    if positive is None and negative is None:
        return Outcomes((_numbers(rows, classes) == column).astype(np.int64), column)
    argument, wanted = ("positive", positive) if negative is None else ("negative", negative)
    words = [canonical(label) for label in rows.labels]
    if canonical(wanted) not in words:
        known = ", ".join(map(repr, sorted(set(words))[:10]))
        raise fail(LabelError, argument, "must be a label of the data", got=show(wanted), hint=f"they are {known}.")
    same = np.array([word == canonical(wanted) for word in words])
    return Outcomes((same if negative is None else ~same).astype(np.int64), column)


def _column(classes: Classes, positive: Any, positive_class: Any) -> int:
    """Find the class of the model that is positive; without a word about it, number 1."""
    if len(classes.names) == 1:
        return 1  # its only logit speaks of it, whatever its name
    asked = positive if positive_class is None else positive_class
    if asked is None and len(classes.names) == 2:
        return 1
    found = None if asked is None else classes.number(asked)
    if found is None:
        raise fail(
            LabelError, "positive_class", "must be a class of the model, by name or by number", got=show(asked),
            hint=f"they are {_listed(classes.names)}.",
        )  # fmt: skip
    return found


def _numbers(rows: Rows, classes: Classes) -> AnyArray:
    """Return the class of each row."""
    if rows.numbers is not None and classes.generic and max(rows.numbers) < max(len(classes.names), 2):
        return np.array(rows.numbers, dtype=np.int64)
    known = {word: classes.number(word) for word in {canonical(label) for label in rows.labels}}
    found = [known[canonical(label)] for label in rows.labels]
    strange = [k for k, number in enumerate(found) if number is None]
    if strange:
        raise fail(
            LabelError, "label_column", "must hold classes of the model, by name or by number",
            got=show(rows.labels[strange[0]]), place=f"row {strange[0]}", count=(len(strange), rows.n),
            hint=f"they are {_listed(classes.names)}; or name the `positive` label and its `positive_class`.",
        )  # fmt: skip
    return np.array(found, dtype=np.int64)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!r} ({k})" for k, name in enumerate(names[:10]))
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown


def log_odds(logits: FloatArray, column: int, classes: Classes) -> FloatArray:
    """Return the log-odds of one class; no probability is formed, so nothing saturates."""
    if logits.shape[1] == 1:
        return logits[:, 0]
    if classes.sigmoid:
        return logits[:, column]
    rest = np.delete(logits, column, axis=1)
    others: FloatArray = rest[:, 0] if rest.shape[1] == 1 else special.logsumexp(rest, axis=1)
    return logits[:, column] - others
