"""Every check of what a caller passes in. Nothing else raises for bad input.

``arrays``         anything array-like to NumPy, without a change of value; rows that belong together
``columns``        weights, groups, clusters, runs and steps; values of options; what stands around every door
``classes``        probabilities and logits, their range and clips; what happened of two outcomes
``class_columns``  a column a class, or a label: sums of rows, class numbers, names; predictions that are certain
``states``         true states, means and covariances; components that matter or are angles; poses
``mixtures``       components of mixtures, and clouds of particles
``forecasts``      intervals, quantiles, draws, densities with their samplers, and confidences said in steps

Here is the one template of an input error: argument, rule, value, place, count, then one move to make. And its phrases:
a phrase says what to type. In Python that is an argument, at a frame a column, in a shell an option. What a map cannot
do has words here, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self, final

import numpy as np

from ..errors import InputError, OptionError, UnavailableError, visible

PYTHON = {
    # rules
    "zero or one": "must be 0 or 1 when `pos_label` is not given",
    "class number": "must be a class number from 0 to {last} when `labels` is not given",
    "one of labels": "must be one of `labels` ({names})",
    "one other label": "must hold `pos_label` ({label}) and at most one other label",
    "a label that occurs": "must be one of the labels in `y_true`",
    "names columns": "names the columns of an (n, K) prediction",
    "a value a row": "`{name}` of shape (n,)",
    "belongs to one": "belongs to a prediction of shape (n,)",
    "a value a class": "`{name}` of shape {shape}",
    "as many columns": "must name as many columns as `x_true`",
    # hints
    "drop": "drop or fill those rows first: safecal drops nothing by itself.",
    "a form": "`y_prob` for probabilities, `logits=` for log-odds or unnormalised log-probabilities.",
    "log-odds": "these look like log-odds: pass them as `logits=`.",
    "probabilities": "these look like probabilities: pass them as `y_prob`.",
    "percentages": "these look like percentages: pass `{name} / 100`.",
    "out by rounding": "if that is rounding, pass `np.clip({name}, 0, 1)`.",
    "nothing to clip": "logits never saturate, so there is nothing to clip: leave `clip` out.",
    "smaller clip": "pass `logits=`, or probabilities with all their digits; else `clip={most}`, and no more.",
    "swapped": "the arguments seem swapped: outcomes come first, as in `evaluate(y_true, {argument})`.",
    "positive, for example": "say which outcome is the positive one, for example `pos_label={label!r}`.",
    "positive": "say which outcome is the positive one with `pos_label=`.",
    "a tie": "a tie or a share is not an outcome: drop those rows first.",
    "never occurs": "the labels that occur: {shown}.",
    "never happened": "the labels that occur: {shown}. If yours never happened here, pass `y_true == {label}` as"
    " outcomes, without `pos_label`.",
    "a column a class": "for more than two classes pass `y_prob` with one column for each class.",
    "name the classes": "name the columns of `{name}` in their order, for example `labels={names}`.",
    "other names": "classes are numbered from 0; if yours have other names, pass `labels=` in the order of the"
    " columns.",
    "from 1": "these seem to be numbered from 1: pass `y_true - 1`, or `labels={numbers}`.",
    "from 1, or never 0": "if classes are numbered from 1, pass `y_true - 1`; if 0 never happened, `labels={numbers}`.",
    "names of columns": "for one probability a row, name the positive class with `pos_label=`.",
    "one column": "for one column a class, name the columns with `labels=`.",
    "rounded sums": "these look rounded to {decimals} decimals: pass {divided}.",
    "rounded sums and zeros": "these look rounded to {decimals} decimals: pass {divided}, with `clip={clip:g}`, because"
    " a rounded 0 is not impossible.",
    "coarse sums and zeros": "these look rounded to {decimals} decimals, too few for {classes} classes, because a"
    " rounded 0 is not impossible: pass all digits, or `logits=`.",
    "short floats": "{dtype} rounds too much for this: pass `logits=`, or normalise in float32: {divided}.",
    "other sums": "if they are unnormalised, pass {divided}; if they are log-probabilities or scores, pass them as"
    " `logits=`.",
    "reversed": "swap them, `{name}[[{first!r}, {second!r}]]`; or say which is which with `labels=`.",
    "ratios of weights": "only their ratios matter: pass `{name} / {name}.mean()`.",
    "decisions": "these are decisions; a probability is a number such as 0.83.",
    "convert": "convert the column first, for example `{name}.astype(float)`.",
    "not its mirror": "if that is rounding, pass `({name} + np.swapaxes({name}, -1, -2)) / 2`.",
}
# The same keys as in Python, where someone types something else. A phrase that is not here is the same everywhere.
FRAME = {
    "as many columns": "must be as many columns as `x_true` names",
    "drop": PYTHON["drop"],
    "log-odds": "these look like log-odds: name the column with `logits=`.",
    "probabilities": "these look like probabilities: name the columns with `y_prob=`.",
    "percentages": "these look like percentages: divide the column by 100.",
    "out by rounding": "if that is rounding, clip the column to [0, 1].",
    "smaller clip": "name columns with `logits=`, or store all digits; else `clip={most}`, and no more.",
    "swapped": "the columns seem swapped: `y_true=` names what happened.",
    "never happened": "the labels that occur: {shown}. Is it spelled as in the column?",
    "a column a class": "for more than two classes name one column for each class.",
    "name the classes": "name the classes in the order of the columns, for example `labels={names}`.",
    "from 1": "these seem to be numbered from 1: subtract 1, or pass `labels={numbers}`.",
    "from 1, or never 0": "if classes are numbered from 1, subtract 1; if 0 never happened, pass `labels={numbers}`.",
    "rounded sums": "these look rounded to {decimals} decimals: divide each row by its sum.",
    "rounded sums and zeros": "these look rounded to {decimals} decimals: divide each row by its sum, and pass"
    " `clip={clip:g}`, because a rounded 0 is not impossible.",
    "coarse sums and zeros": "these look rounded to {decimals} decimals, too few for {classes} classes, because a"
    " rounded 0 is not impossible: store all digits, or logits.",
    "short floats": "{dtype} rounds too much for this: store logits, or divide each row by its sum in float32.",
    "other sums": "if they are unnormalised, divide each row by its sum; if they are log-probabilities or scores, name"
    " the columns with `logits=`.",
    "reversed": "swap them, `{name}=[{first!r}, {second!r}]`; or say which is which with `labels=`.",
    "ratios of weights": "only their ratios matter: divide the column by its mean.",
    "convert": "convert the column to numbers first.",
    "not its mirror": "if that is rounding, name the lower triangle alone, row by row.",
}
SHELL = FRAME | {
    "names columns": "names the classes of several columns",
    "a value a row": "one column",
    "belongs to one": "belongs to one column",
    "a value a class": "several",
    "as many columns": "must be as many columns as `--x` names",
    "zero or one": "must be 0 or 1 when `--pos-label` is not given",
    "class number": "must be a class number from 0 to {last} when `--label` is not given",
    "one of labels": "must be one of the classes ({names})",
    "one other label": "must hold the label of `--pos-label` ({label}) and at most one other",
    "a label that occurs": "must be one of the labels in the column of `--y`",
    "drop": "`--drop-missing` leaves such rows out, and says how many.",
    "a form": "`--prob` names probabilities, `--logits` log-odds or logits.",
    "log-odds": "these look like log-odds: name the column with `--logits`.",
    "probabilities": "these look like probabilities: name the columns with `--prob`.",
    "nothing to clip": "logits never saturate, so there is nothing to clip: leave `--clip` out.",
    "smaller clip": "name columns of `--logits`, or store all digits; else `--clip {most}`, and no more.",
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
    "reversed": "swap them, `{option} {first} {option} {second}`; or say which is which with `--label`.",
    "other sums": "if they are unnormalised, divide each row by its sum; if they are log-probabilities or scores, name"
    " the columns with `--logits`.",
}


def show(value: Any) -> str:
    """Return a value as a person would type it, without NumPy's wrappers and at most 60 characters."""
    text = repr(value.tolist() if isinstance(value, np.generic | np.ndarray) else value)
    return text if len(text) <= 60 else text[:57] + "..."


@final
class Phrase(str):
    """A part of a message that names arguments; it keeps its key, so that another surface can name its options instead.

    As text it speaks to someone who writes Python.
    """

    key: str
    values: dict[str, Any]

    def __new__(cls, text: str, key: str = "", values: dict[str, Any] | None = None) -> Self:
        words = super().__new__(cls, text)
        words.key, words.values = key, values or {}
        return words

    def __reduce__(self) -> tuple[Any, ...]:
        return Phrase, (str(self), self.key, self.values)


def phrase(key: str, **values: Any) -> Phrase:
    """Return a phrase of the dictionary, in the words of Python."""
    return Phrase(PYTHON[key].format(**values), key, values)


@final
@dataclass(frozen=True, slots=True)
class Complaint:
    """The parts of an input error, for a program that words it anew."""

    argument: str
    rule: str
    got: str | None
    place: str | None
    count: tuple[int, int] | None
    hint: str | None

    def __str__(self) -> str:
        text = f"`{visible(self.argument)}` {self.rule}"
        if self.got is not None:
            text += f"; got {self.got}"
        if self.place is not None:
            text += f" at {self.place}"
        if self.count is not None:
            text += f" ({self.count[0]} of {self.count[1]} {'row' if self.count[1] == 1 else 'rows'})"
        return f"{text}." if self.hint is None else f"{text}.\n\nHint: {self.hint}"


def fail(
    error: type[InputError],
    argument: str,
    rule: str,
    *,
    got: str | None = None,
    place: str | None = None,
    count: tuple[int, int] | None = None,
    hint: str | None = None,
) -> InputError:
    """Build (not raise) the error for ``argument``.

    ``count`` is ``(how many rows break the rule, of how many)``.
    """
    return _with_complaint(error, Complaint(argument, rule, got, place, count, hint))


def _with_complaint(error: type[InputError], complaint: Complaint) -> InputError:
    refusal = error(str(complaint))
    refusal.complaint = complaint
    return refusal


def said_at(surface: Mapping[str, str], text: str) -> str:
    """Return a part of a message in the words of a surface."""
    if not isinstance(text, Phrase) or text.key not in surface:
        return text
    return Phrase(surface[text.key].format(**text.values), text.key, text.values)


def alike(a: Complaint, b: Complaint) -> bool:
    """Tell whether two complaints are about the same rule."""
    return (a.argument, a.rule) == (b.argument, b.rule)


def worded(error: InputError, complaint: Complaint) -> InputError:
    """Return the error with another complaint."""
    return _with_complaint(type(error), complaint)


# What results and hints say in Python, and what a shell types instead. Lines may be broken where there is a space.
_TYPED = (
    (r"`logits=`", r"`--logits`"),
    (r"`clip=", r"`--clip "),
    (r"`by=`", r"`--by`"),
    (r"`np\.clip\(y_prob,\s1e-6,\s1\s-\s1e-6\)`", r"`--clip 1e-6`"),
    (r"an(\s)evaluation(\s)with(\s)`cluster=`", r"`safecal evaluate`\1with\2`--cluster`"),
    (r"would(\s)decide:(\s)`verdict\.clusters_needed`", r"would\1decide"),
)
_RECALIBRATED = (
    (r"Fit(\s)`safecal\.SafeTemperature`", r"Run\1`safecal recalibrate`"),
    (r"`safecal\.SafeTemperature`", r"`safecal recalibrate`"),
    (r"`safecal\.recalibrate\(y_true,(\s)y_prob\)`", r"`safecal\1recalibrate`"),
)


def in_options(text: str, *, recalibrates: bool = True) -> str:
    """Name options and commands instead of arguments and functions, in what a result or a hint says.

    Without ``recalibrates``, what mends a model keeps its name in Python: no command does it for that family.
    """
    for python, shell in (*_TYPED, *(_RECALIBRATED if recalibrates else ())):
        text = re.sub(python, shell, text)
    return text


# What cannot be done with a map


def refused(text: str, hint: str | None) -> NoReturn:
    """Raise for what does not exist, with one move to make where there is one."""
    raise UnavailableError(f"{text}." + (f"\n\nHint: {hint}" if hint else ""))


def plain_map(value: Any, safe: tuple[type, ...], kind: type) -> Any:
    """Require a map that is not safe by itself already."""
    if not isinstance(value, kind) or isinstance(value, safe):
        hint = "pass one of `safecal.maps`, such as `Safe(Affine())`."
        raise fail(OptionError, "map", "must be a map, and not one that is safe already", got=show(value), hint=hint)
    return value


def unfitted() -> NoReturn:
    """Raise for a map that was not fitted."""
    refused("the map is not fitted yet", "call `fit` first, or `fit_states` for states.")


def other_kind(family: str, wanted: str, instead: str) -> NoReturn:
    """Raise for a fit to another kind of prediction than the one it shall be applied to; ``instead`` is what to do."""
    refused(f"a map of {family} predictions does not apply to {wanted}", instead)


def other_classes(classes: int, fitted: int) -> NoReturn:
    """Raise for predictions of another number of classes than were fitted."""
    refused(f"a map of {fitted} classes does not apply to {classes} classes", None)
