"""What messages about tables tell people to type: the column's name, and the options of the surface they are at."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._checks.message import PYTHON, Complaint, Phrase
from ..errors import InputError
from .columns import Columns

__all__ = ["FRAME", "SHELL", "about_columns", "alike", "in_options", "worded"]

# The same keys as in Python, where someone types something else. A phrase that is not here is the same everywhere.
FRAME = {
    "drop": PYTHON["drop"],
    "log-odds": "these look like log-odds: name the column with `logits=`.",
    "percentages": "these look like percentages: divide the column by 100.",
    "out by rounding": "if that is rounding, clip the column to [0, 1].",
    "swapped": "the columns seem swapped: `y_true=` names what happened.",
    "never happened": "the labels that occur: {shown}. Is it spelled as in the column?",
    "a column a class": "for more than two classes name one column for each class.",
    "name the classes": "name the classes in the order of the columns, for example `labels={names}`.",
    "from 1": "these seem to be numbered from 1: subtract 1, or pass `labels={numbers}`.",
    "from 1, or never 0": "if classes are numbered from 1, subtract 1; if 0 never happened, pass `labels={numbers}`.",
    "rounded sums": "these look rounded to {decimals} decimals: divide each row by its sum.",
    "rounded sums and zeros": "these look rounded to {decimals} decimals: divide each row by its sum, and pass"
    " `clip={clip:g}`, because a rounded 0 is not impossible.",
    "short floats": "{dtype} rounds too much for this: store logits, or divide each row by its sum in float32.",
    "other sums": "if they are unnormalised, divide each row by its sum; if they are log-probabilities or scores, name"
    " the columns with `logits=`.",
    "ratios of weights": "only their ratios matter: divide the column by its mean.",
    "convert": "convert the column to numbers first.",
}
SHELL = FRAME | {
    "names columns": "names the classes of several columns",
    "a value a row": "one column",
    "belongs to one": "belongs to one column",
    "a value a class": "several",
    "zero or one": "must be 0 or 1 when `--pos-label` is not given",
    "class number": "must be a class number from 0 to {last} when `--label` is not given",
    "one of labels": "must be one of the classes ({names})",
    "one other label": "must hold the label of `--pos-label` ({label}) and at most one other",
    "a label that occurs": "must be one of the labels in the column of `--y`",
    "drop": "`--drop-missing` leaves such rows out, and says how many.",
    "a form": "`--prob` names probabilities, `--logits` log-odds or logits.",
    "log-odds": "these look like log-odds: name the column with `--logits`.",
    "nothing to clip": "logits never saturate, so there is nothing to clip: leave `--clip` out.",
    "swapped": "the columns seem swapped: `--y` names what happened.",
    "positive, for example": "say which outcome is the positive one, for example `--pos-label {label}`.",
    "positive": "say which outcome is the positive one with `--pos-label`.",
    "never happened": "the labels that occur: {shown}. Is it spelled as in the file?",
    "a column a class": "for more than two classes give one `--prob` a class.",
    "name the classes": "name the classes in the order of their columns, with one `--label` for each.",
    "other names": "classes are numbered from 0; if yours have other names, name them with `--label`, in the order of"
    " the columns.",
    "from 1": "these seem to be numbered from 1: subtract 1, or name the classes with `--label`, in their order.",
    "from 1, or never 0": "if classes are numbered from 1, subtract 1; if 0 never happened, name the classes with"
    " `--label`, in their order.",
    "names of columns": "for one column, `--pos-label` names its class.",
    "one column": "for one column a class, name the classes with `--label`.",
    "rounded sums and zeros": "these look rounded to {decimals} decimals: divide each row by its sum, and give"
    " `--clip {clip:g}`, because a rounded 0 is not impossible.",
    "other sums": "if they are unnormalised, divide each row by its sum; if they are log-probabilities or scores, name"
    " the columns with `--logits`.",
}
_ARGUMENTS = {"pos_label": "--pos-label", "labels": "--label", "clip": "--clip"}


def in_options(text: str) -> str:
    """Name options instead of arguments, in what a result says."""
    return text.replace("`logits=`", "`--logits`").replace("`clip=", "`--clip ").replace("`by=`", "`--by`")


def about_columns(error: InputError, columns: Columns, surface: Mapping[str, str]) -> InputError:
    """Return an error that names the column where it named an argument, in the words of a surface."""
    complaint: Complaint | None = error.complaint
    if complaint is None:
        return error
    named: dict[str, Any] = {
        "y_true": columns.y_true, "x_true": columns.y_true, "cluster": columns.cluster,
        "sample_weight": columns.sample_weight,
    }  # fmt: skip
    values = " ".join(columns.values[:4])
    named |= dict.fromkeys(("y_prob", "logits", "mean", "values", "draws"), values)
    named |= dict(zip(("lower", "upper"), columns.values, strict=False)) if columns.form == "intervals" else {}
    if columns.spread is not None:
        named[columns.spread[0]] = columns.spread[1]
    if surface is SHELL:
        named |= _ARGUMENTS
    place = complaint.place
    if surface is SHELL and place is not None and place.startswith("row") and "counting" not in place:
        place = f"{place}, counting from 0"
    found = replace(
        complaint,
        argument=named.get(complaint.argument) or complaint.argument,
        rule=_said(complaint.rule, surface),
        hint=None if complaint.hint is None else _said(complaint.hint, surface),
        place=place,
        got=None if complaint.got is None else _said(complaint.got, surface),
    )
    return worded(error, found)


def _said(text: str, surface: Mapping[str, str]) -> str:
    if not isinstance(text, Phrase) or text.key not in surface:
        return text
    return Phrase(surface[text.key].format(**text.values), text.key, text.values)


def alike(a: Complaint, b: Complaint) -> bool:
    """Tell whether two complaints are about the same rule."""
    return (a.argument, a.rule) == (b.argument, b.rule)


def worded(error: InputError, complaint: Complaint) -> InputError:
    """Return the error with another complaint."""
    found = type(error)(str(complaint))
    found.complaint = complaint
    return found
