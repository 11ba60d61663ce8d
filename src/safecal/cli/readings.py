"""Which column is what: as the options say, or by name where only one reading is possible."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ..errors import FormError
from .sources import Source

__all__ = ["Reading", "choose"]

_OUTCOMES = ("y", "y_true", "label", "labels", "target", "outcome", "truth", "ground_truth")
_PROBABILITIES = ("p", "prob", "proba", "probs", "probability", "probabilities", "y_prob", "y_proba")
_LOGITS = ("logit", "logits", "log_odds", "logodds")


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """The columns of a file and what they mean."""

    y: str | None
    values: tuple[str, ...]
    logits: bool
    pos_label: str | None = None
    labels: tuple[str, ...] | None = None
    by: tuple[str, ...] = ()
    cluster: str | None = None
    weight: str | None = None
    drop_missing: bool = False
    clip: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        single = (c for c in (self.y, self.cluster, self.weight) if c is not None)
        return tuple(dict.fromkeys((*single, *self.values, *self.by)))


def choose(
    source: Source,
    options: argparse.Namespace,
    *,
    prob: Sequence[str] | None = None,
    logits: Sequence[str] | None = None,
    outcome: bool = True,
) -> Reading:
    """Return the reading; ``prob`` and ``logits`` stand for the options of these names."""
    if prob and logits:
        raise FormError("`--prob` and `--logits` are two forms of one prediction; give one of them.")
    if not prob and not logits:
        prob, logits = _found_values(source, options)
    y = options.y
    if y is None and outcome:
        y = _found(source, options, _OUTCOMES, "--y", "what happened")
    reading = Reading(
        y if outcome else None,
        tuple(prob or logits or ()),
        bool(logits),
        options.pos_label,
        None if options.label is None else tuple(options.label),
        tuple(getattr(options, "by", None) or ()),
        options.cluster,
        options.weight,
        options.drop_missing,
        options.clip,
    )
    missing = [c for c in reading.columns if c not in source.columns]
    if missing:
        near = [c for c in source.columns if c.lower() == missing[0].lower()]
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise FormError(
            f"{source.name} has no column {missing[0]!r}.{hint}\n\nHint: its columns are {_listed(source)}."
        )
    twice = [c for c in reading.columns if source.columns.count(c) > 1]
    if twice:
        raise FormError(
            f"{source.name} has {source.columns.count(twice[0])} columns {twice[0]!r}.\n\n"
            "Hint: give each column a name of its own: which of them is meant is not for safecal to guess."
        )
    return reading


def _found_values(source: Source, options: argparse.Namespace) -> tuple[list[str] | None, list[str] | None]:
    probabilities = [c for c in source.columns if c.lower() in _PROBABILITIES]
    logits = [c for c in source.columns if c.lower() in _LOGITS]
    if len(probabilities) == 1 and not logits:
        return probabilities, None
    if len(logits) == 1 and not probabilities:
        return None, logits
    what = "the probability" if not probabilities and not logits else "the prediction"
    raise _unclear(source, options, what, [*probabilities, *logits])


def _found(source: Source, options: argparse.Namespace, names: Sequence[str], option: str, what: str) -> str:
    found = [c for c in source.columns if c.lower() in names]
    if len(found) == 1:
        return found[0]
    raise _unclear(source, options, what, found)


def _unclear(source: Source, options: argparse.Namespace, what: str, found: Sequence[str]) -> FormError:
    text = f"which column of {source.name} is {what}? "
    text += f"{', '.join(map(repr, found))} could be." if found else "None has a name that says so."
    y = options.y or next((c for c in source.columns if c.lower() in _OUTCOMES), "COLUMN")
    value = found[0] if found and what != "what happened" else "COLUMN"
    file = "-" if source.once else shlex.quote(source.name)
    option = "--logits" if value.lower() in _LOGITS else "--prob"
    command = f"safecal {options.command} {file} --y {shlex.quote(y)} {option} {shlex.quote(value)}"
    return FormError(f"{text} Its columns are {_listed(source)}.\n\nHint: {command}")


def _listed(source: Source) -> str:
    shown = ", ".join(map(repr, source.columns[:20]))
    return shown if len(source.columns) <= 20 else f"{shown} and {len(source.columns) - 20} more"
