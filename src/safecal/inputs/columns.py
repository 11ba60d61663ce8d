"""Which column of a table holds what: as one says, or by name where only one reading is possible."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, final

from ..errors import FormError

__all__ = ["Columns", "find_columns"]

_OUTCOMES = (
    "y",
    "y_true",
    "y_test",
    "label",
    "labels",
    "class",
    "target",
    "outcome",
    "truth",
    "ground_truth",
    "actual",
)
_PROBABILITIES = (
    "p", "prob", "proba", "probs", "probability", "probabilities", "y_prob", "y_proba", "predict_proba", "predictions",
)  # fmt: skip
_LOGITS = ("logit", "logits", "log_odds", "logodds")
_NUMBERED = re.compile(r"(.*?)_?([0-9]+)")
_TIDY = ".pred_"  # as tidymodels names the probability of each class
_NO_CLASS = (".pred_class", ".pred_lower", ".pred_upper", ".pred_time")


@final
@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table hold what.

    Attributes
    ----------
    y_true : str or None
        What happened; the true state for Gaussians. None where only predictions are read.
    values : tuple of str
        Probabilities or logits: one column for two classes, one a class for more, or a single column of lists. For
        Gaussians the mean.
    form : {"y_prob", "logits", "gaussian"}
        What ``values`` are.
    spread : (str, str) or None
        ``("std", column)`` or ``("var", column)``, for Gaussians.
    by : tuple of str
        The columns to group by.
    cluster, sample_weight : str or None
        The columns of clusters and of weights.
    pos_label : object
        The label of the positive class, for one column.
    labels : tuple or None
        The names of the classes, in the order of the columns.
    clip : float or None
        As in `evaluate`.
    drop_missing : bool
        Whether rows with missing values are left out, and counted, instead of refused.

    Examples
    --------
    >>> from safecal.inputs.columns import Columns
    >>> Columns("outcome", ("p",), "y_prob", by=("site",)).names
    ('outcome', 'p', 'site')
    """

    y_true: str | None
    values: tuple[str, ...]
    form: str
    spread: tuple[str, str] | None = None
    by: tuple[str, ...] = ()
    cluster: str | None = None
    sample_weight: str | None = None
    pos_label: Any = None
    labels: tuple[Any, ...] | None = None
    clip: float | None = None
    drop_missing: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is needed, each once."""
        return tuple(dict.fromkeys((*self.measured, *self.by, *(() if self.cluster is None else (self.cluster,)))))

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns of outcomes, predictions and weights, each once."""
        outcome = () if self.y_true is None else (self.y_true,)
        spread = () if self.spread is None else (self.spread[1],)
        weight = () if self.sample_weight is None else (self.sample_weight,)
        return tuple(dict.fromkeys((*outcome, *self.values, *spread, *weight)))


@final
@dataclass(frozen=True, slots=True)
class Unclear(Exception):
    """No column, or more than one, could be what is wanted; whoever asked words it."""

    what: str
    candidates: tuple[str, ...]


def find_columns(
    there: Sequence[str],
    y: str | None,
    prob: Sequence[str] | None,
    logits: Sequence[str] | None,
    *,
    outcome: bool = True,
) -> tuple[str | None, tuple[str, ...], str]:
    """Return the column of outcomes, those of predictions, and their form; what is not given is found by name.

    Raises
    ------
    Unclear
        Where no name tells, or more than one does.

    Examples
    --------
    >>> find_columns(["id", "label", "prob"], None, None, None)
    ('label', ('prob',), 'y_prob')
    """
    if prob and logits:
        raise FormError("`--prob` and `--logits` are two forms of one prediction; give one of them.")
    if prob or logits:
        values, form = tuple(prob or logits or ()), "y_prob" if prob else "logits"
    else:
        known = _predictions(there)
        if len(known) != 1:
            what = "the prediction" if known else "the probability"
            raise Unclear(what, tuple(names[0] for names, _ in known))
        values, form = known[0]
    if y is None and outcome:
        pair = f"{values[0]}_outcome"
        outcomes = [pair] if pair in there else _named(there, _OUTCOMES)
        if len(outcomes) != 1:
            raise Unclear("what happened", tuple(outcomes))
        y = outcomes[0]
    return (y if outcome else None), values, form


def _named(there: Sequence[str], names: Sequence[str]) -> list[str]:
    return [column for column in there if column.lower() in names]


def _predictions(there: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return every set of columns whose names say that they are a prediction, with its form."""
    found: list[tuple[tuple[str, ...], str]] = [((name,), "y_prob") for name in _named(there, _PROBABILITIES)]
    found += [((name,), "logits") for name in _named(there, _LOGITS)]
    tidy = tuple(name for name in there if name.startswith(_TIDY) and name not in _NO_CLASS)
    if len(tidy) > 1:
        found.append((tidy, "y_prob"))
    stems: dict[str, dict[int, str]] = {}
    for name in there:
        parts = _NUMBERED.fullmatch(name)
        if parts is not None and parts[1].lower() in (*_PROBABILITIES, *_LOGITS):
            stems.setdefault(parts[1], {})[int(parts[2])] = name
    for stem, numbered in stems.items():
        if len(numbered) > 1 and sorted(numbered) == list(range(len(numbered))):
            columns = tuple(numbered[k] for k in range(len(numbered)))
            found.append((columns, "logits" if stem.lower() in _LOGITS else "y_prob"))
    return found


def near_names(name: str, there: Sequence[str], most: int = 10) -> str:
    """Return a hint: the columns with a name like this one, or else the first of them."""
    names = [str(column) for column in there]
    near = [c for c in names if c.lower() == name.lower()] or get_close_matches(name, names, n=3)
    some = ", ".join(map(repr, near or names[:most])) + (", ..." if not near and len(names) > most else "")
    return f"{'did you mean' if near else 'there are'} {some}{'?' if near else '.'}"
