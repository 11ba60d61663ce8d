"""Which column of a table holds what: as the caller says, or by its name where only one reading is possible."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, final

from .._checks import SHELL, Complaint, fail, said_at, show, worded
from .._checks.forecasts import Grid
from ..errors import FormError, InputError, OptionError, ShapeError

__all__ = [
    "Columns", "Stated", "Unclear", "about_columns", "check_by_label", "class_pattern", "find_columns",
    "is_outcome", "is_score", "label_pairs", "matching", "near_names",
]  # fmt: skip

_OUTCOMES = (
    "y", "y_true", "y_test", "label", "labels", "class", "target", "outcome", "truth", "ground_truth", "actual",
)  # fmt: skip
_PROBABILITIES = (
    "p", "prob", "proba", "probs", "probability", "probabilities", "y_prob", "y_proba", "predict_proba", "predictions",
    "calibrated",  # as `safecal recalibrate --out` writes it
)  # fmt: skip
_SCORES = ("score", "scores", "confidence", "risk")  # probabilities or log-odds: the name does not tell
_LOGITS = ("logit", "logits", "log_odds", "logodds")
_PREDICTED = tuple(f"{word}_" for word in (*_PROBABILITIES, *_LOGITS))  # how columns of predictions begin
_MEANS = ("mean", "mu", "y_mean", "pred_mean")
_SPREADS = {"std": ("std", "sd", "sigma", "stddev", "y_std", "pred_std"), "var": ("var", "variance")}
_NUMBERED = re.compile(r"(.*?)_?([0-9]+)")
_TIDY = ".pred_"  # as tidymodels names the probability of each class
_NO_CLASS = (".pred_class", ".pred_lower", ".pred_upper", ".pred_time")


@final
@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table hold what.

    Examples
    --------
    >>> from safecal.inputs.columns import Columns
    >>> Columns("outcome", ("p",), "y_prob", by=("site",)).names
    ('outcome', 'p', 'site')
    """

    y_true: str | None  # what happened; the true state for Gaussians. None where only predictions are read
    # Probabilities or logits: one column for two classes, one a class for more, or a single column of lists. For
    # Gaussians the mean; for intervals their two ends; quantiles; draws; lists of the most likely log-probabilities.
    values: tuple[str, ...]
    form: str  # of the values: "y_prob", "logits", "gaussian", "intervals", "quantiles", "ensemble" or "bounded"
    # For Gaussians "std", "var" or "cov", then the columns: one a component; or those of the covariance matrix row by
    # row, those of its lower triangle row by row, or one column of lists.
    spread: tuple[str, ...] | None = None
    by: tuple[str, ...] = ()  # to group by
    cluster: str | None = None
    sample_weight: str | None = None
    pos_label: Any = None  # of the positive class, for one column
    labels: tuple[Any, ...] | None = None  # the names of the classes, in the order of the columns
    clip: float | None = None  # as in `evaluate`
    drop_missing: bool = False  # whether rows with missing values are left out, and counted, instead of refused
    features: tuple[str, ...] = ()  # in which slices are looked for
    outcomes: tuple[str, ...] = ()  # where a row has several labels: what happened for each, instead of `y_true`
    choices: str | None = None  # how many choices each row has, where rows have different numbers of them
    notes: tuple[str, ...] = ()  # that every result carries
    levels: tuple[float, ...] = ()  # of intervals, or of quantiles
    grid: Grid | None = None  # the steps in which people or models said how sure they were, if they used steps
    axes: tuple[str, ...] = ()  # where a state has several components: what happened of each, instead of `y_true`
    vocabulary: int | None = None  # how many tokens a language model knows, of which the most likely ones are listed

    @property
    def of_classes(self) -> bool:
        """Whether outcomes are classes, and not numbers."""
        return self.form in ("y_prob", "logits")

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is needed, each once."""
        cluster = () if self.cluster is None else (self.cluster,)
        return tuple(dict.fromkeys((*self.measured, *self.by, *cluster, *self.features)))

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns of outcomes, predictions and weights, each once."""
        outcome = () if self.y_true is None else (self.y_true,)
        spread = () if self.spread is None else self.spread[1:]
        optional = (name for name in (self.sample_weight, self.choices) if name is not None)
        return tuple(dict.fromkeys((*outcome, *self.outcomes, *self.axes, *self.values, *spread, *optional)))


@final
@dataclass(frozen=True, slots=True)
class Stated:
    """How a forecast is stated: which columns, in which form. Its fields are those of `Columns` of the same name."""

    values: tuple[str, ...]
    form: str
    spread: tuple[str, ...] | None = None
    levels: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        mean: Sequence[str] | None = None,
        std: Sequence[str] | None = None,
        var: Sequence[str] | None = None,
        cov: Sequence[str] | None = None,
        lower: str | None = None,
        upper: str | None = None,
        coverage: float | None = None,
        quantile: Mapping[float, str] | None = None,
        draws: Sequence[str] | None = None,
    ) -> "Stated | None":
        """Return the one form that was given; None where none was.

        Examples
        --------
        >>> Stated.of(quantile={0.95: "high", 0.05: "low"}).values
        ('low', 'high')
        """
        spreads = [(name, *names) for name, names in (("std", std), ("var", var), ("cov", cov)) if names]
        parts: dict[str, dict[str, Any]] = {
            "gaussian": {"mean": mean or None, "std, var or cov": spreads or None},
            "intervals": {"lower": lower, "upper": upper, "coverage": coverage},
            "quantiles": {"quantile": quantile or None},
            "ensemble": {"draws": draws or None},
        }
        given_forms = [form for form, needs in parts.items() if any(value is not None for value in needs.values())]
        if not given_forms:
            return None
        form = given_forms[0]
        missing = [name for name, value in parts[form].items() if value is None]
        if len(given_forms) > 1 or missing or len(spreads) > 1:
            rule = "must be stated in one way: mean and std, var or cov; lower, upper and coverage; quantile; or draws"
            several = given_forms if len(given_forms) > 1 else [spread[0] for spread in spreads]
            got = f"no {' and no '.join(missing)}" if missing else " and ".join(several)
            raise fail(FormError, "forecast", rule, got=got)
        if mean:
            return cls(tuple(mean), form, spreads[0])
        if lower is not None and upper is not None and coverage is not None:
            return cls((lower, upper), form, None, (coverage,))
        if quantile:
            levels = tuple(sorted(quantile))
            return cls(tuple(quantile[level] for level in levels), form, None, levels)
        return cls(tuple(draws or ()), form)


@final
@dataclass(frozen=True, slots=True)
class Unclear(Exception):
    """No column, or more than one, fits; the caller writes the message."""

    what: str
    candidates: tuple[str, ...]
    option: str = "--prob"  # by which the prediction is named in a shell
    value: str | None = None  # the prediction, where that is clear


def matching(available: Sequence[str], patterns: Sequence[str], argument: str) -> tuple[str, ...]:
    """Return the columns that patterns such as ``draw_*`` match, in the order of the table; a plain name is itself.

    Examples
    --------
    >>> matching(["y", "draw_0", "draw_1"], ["draw_*"], "draws")
    ('draw_0', 'draw_1')
    """
    repeated = [name for name, count in Counter(patterns).items() if count > 1]
    if repeated:
        raise fail(FormError, argument, "must name each column once", got=f"{repeated[0]!r} twice")
    names: dict[str, None] = {}
    for pattern in patterns:
        matches = [] if pattern in available else [column for column in available if fnmatchcase(column, pattern)]
        names |= dict.fromkeys(matches or [pattern])
    return tuple(names)


def find_columns(
    available: Sequence[str],
    y: str | None,
    prob: Sequence[str] | None,
    logits: Sequence[str] | None,
    *,
    outcome: bool = True,
    stated: Stated | None = None,
    of_numbers: bool = False,
) -> tuple[str | None, Stated]:
    """Return the column of outcomes, and how predictions are stated; what is not given is found by name.

    Raises
    ------
    Unclear
        Where no name tells, or more than one does.

    Examples
    --------
    >>> find_columns(["id", "label", "prob"], None, None, None)
    ('label', Stated(values=('prob',), form='y_prob', spread=None, levels=()))
    """
    forms = {"`--prob`": prob, "`--logits`": logits, "a forecast": stated}
    given_forms = [name for name, value in forms.items() if value]
    if len(given_forms) > 1:
        raise FormError(f"{given_forms[0]} and {given_forms[1]} are two forms of one prediction; give one of them.")
    if prob or logits:
        option, form = ("--prob", "y_prob") if prob else ("--logits", "logits")
        stated = Stated(matching(available, prob or logits or (), option), form)
    elif stated is None:
        candidates = _predictions(available)
        if of_numbers and not candidates and len(mean := _named(available, _MEANS)) == 1:
            spreads = [(form, c) for form, names in _SPREADS.items() for c in _named(available, names)]
            candidates = [Stated((mean[0],), "gaussian", spread) for spread in spreads]
        if len(candidates) != 1:
            what = "the prediction" if candidates else "the probability"
            raise Unclear(what, tuple(candidate.values[0] for candidate in candidates))
        stated = candidates[0]
    if y is None and outcome:
        pair = f"{stated.values[0]}_outcome"
        outcomes = [pair] if pair in available else _named(available, _OUTCOMES)
        if len(outcomes) != 1:
            option = "--logits" if stated.form == "logits" else "--prob"
            value = stated.values[0] if stated.form in ("y_prob", "logits") and len(stated.values) == 1 else None
            raise Unclear("what happened", tuple(outcomes), option, value)
        y = outcomes[0]
    return (y if outcome else None), stated


def _named(available: Sequence[str], names: Sequence[str]) -> list[str]:
    return [column for column in available if column.lower() in names]


def is_outcome(name: str) -> bool:
    """Tell whether a name says that a column is what happened.

    Examples
    --------
    >>> is_outcome("Outcome"), is_outcome("outcome_of_game")
    (True, False)
    """
    return name.lower() in _OUTCOMES


def is_score(name: str) -> bool:
    """Tell whether a name says that a column is a prediction, and not in which form.

    Examples
    --------
    >>> is_score("model_score"), is_score("scoreboard")
    (True, False)
    """
    return name.lower().split("_")[-1] in _SCORES


def _predictions(available: Sequence[str]) -> list[Stated]:
    """Return every set of columns whose names say that they are a prediction, with its form."""
    candidates = [Stated((name,), "y_prob") for name in _named(available, _PROBABILITIES)]
    candidates += [Stated((name,), "logits") for name in _named(available, _LOGITS)]
    tidy = tuple(name for name in available if name.startswith(_TIDY) and name not in _NO_CLASS)
    if len(tidy) > 1:
        candidates.append(Stated(tidy, "y_prob"))
    stems: dict[str, dict[int, str]] = {}
    for name in available:
        match = _NUMBERED.fullmatch(name)
        if match is not None and match[1].lower() in (*_PROBABILITIES, *_LOGITS):
            stems.setdefault(match[1], {})[int(match[2])] = name
    for stem, numbered in stems.items():
        if len(numbered) > 1 and sorted(numbered) == list(range(len(numbered))):
            columns = tuple(numbered[k] for k in range(len(numbered)))
            candidates.append(Stated(columns, "logits" if stem.lower() in _LOGITS else "y_prob"))
    return candidates


def class_pattern(available: Sequence[str]) -> str | None:
    """Return the pattern of columns that may be one a class: their names begin alike, and say what they are.

    Examples
    --------
    >>> class_pattern(["label", "p_cat", "p_dog", "p_eel"])
    'p_*'
    """
    for word in (*reversed(_PROBABILITIES), *_LOGITS):  # what was recalibrated, before what it was made of
        starts = Counter(name[: len(word) + 1] for name in available if name.lower().startswith(f"{word}_"))
        pattern = next((f"{start}*" for start, count in starts.items() if count > 1), None)
        if pattern is not None:
            return pattern
    return None


def label_pairs(available: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], str] | None:
    """Return columns of outcomes and of predictions that their names pair, one pair a label, and the form.

    None where fewer than two pairs are there, or where they are of both forms.

    Examples
    --------
    >>> label_pairs(["day", "y_rain", "p_rain", "y_fog", "p_fog"])
    (('y_rain', 'y_fog'), ('p_rain', 'p_fog'), 'y_prob')
    """
    pairs: dict[str, list[tuple[str, str]]] = {"y_prob": [], "logits": []}
    for form, words in (("y_prob", _PROBABILITIES), ("logits", _LOGITS)):
        for name in available:
            labels = [name[len(w) + 1 :] for w in words if name.lower().startswith(f"{w}_")]
            labels += [name[: -len(w) - 1] for w in words if name.lower().endswith(f"_{w}")]
            expected = [candidate for s in labels if s for candidate in (*(f"{o}_{s}" for o in _OUTCOMES), s)]
            expected += [f"{s}_{o}" for s in labels if s for o in _OUTCOMES]
            there = (candidate for candidate in expected if candidate in available and candidate != name)
            outcome = next((candidate for candidate in there if not candidate.lower().startswith(_PREDICTED)), None)
            if outcome is not None:
                pairs[form].append((outcome, name))
    given_forms = [form for form in pairs if pairs[form]]
    if len(given_forms) != 1:
        return None
    outcomes, values = zip(*pairs[given_forms[0]], strict=True)
    distinct = len({*outcomes, *values}) == 2 * len(outcomes)
    return (outcomes, values, given_forms[0]) if len(outcomes) > 1 and distinct else None


def check_by_label(columns: Columns) -> Columns:
    """Refuse what does not go together with several labels a row."""
    if len(columns.outcomes) < 2 or len(columns.outcomes) != len(columns.values):
        got = f"{len(columns.outcomes)} and {len(columns.values)}"
        raise fail(ShapeError, "y_true", "must name two columns or more, each with a column of predictions", got=got)
    if columns.pos_label is not None:
        words = "belongs to one column; where a row has several labels, the positive outcome is 1"
        raise fail(OptionError, "pos_label", words, got=show(columns.pos_label))
    if columns.features:
        hint = "evaluate the column of one label, with its features."
        raise fail(OptionError, "features", "cannot be searched where a row has several labels", hint=hint)
    if columns.labels is not None and len(columns.labels) != len(columns.outcomes):
        rule = f"must name each of the {len(columns.outcomes)} labels"
        raise fail(ShapeError, "labels", rule, got=f"{len(columns.labels)} names")
    if "label" in columns.by:
        raise fail(OptionError, "by", "must not have a column `label`: each label is a group already",
                   hint="name yours otherwise.")  # fmt: skip
    return columns


def near_names(name: str, available: Sequence[str], limit: int = 10) -> str:
    """Return a hint: the columns with a name like this one, or else the first of them."""
    names = [str(column) for column in available]
    near = [c for c in names if c.lower() == name.lower()] or get_close_matches(name, names, n=3)
    listed = ", ".join(map(repr, near or names[:limit])) + (", ..." if not near and len(names) > limit else "")
    return f"{'did you mean' if near else 'there are'} {listed}{'?' if near else '.'}"


def _joined(names: Sequence[str]) -> str:
    return " ".join((*names[:4], "...") if len(names) > 4 else names)


_ARGUMENTS = {"pos_label": "--pos-label", "labels": "--label", "clip": "--clip", "vocabulary": "--vocabulary"}


def about_columns(error: InputError, columns: Columns, surface: Mapping[str, str]) -> InputError:
    """Return an error that names the column where it named an argument, in the words of a surface."""
    complaint: Complaint | None = error.complaint
    if complaint is None:
        return error
    column_of: dict[str, Any] = {
        "y_true": columns.y_true, "x_true": columns.y_true or _joined(columns.axes), "cluster": columns.cluster,
        "sample_weight": columns.sample_weight,
    }  # fmt: skip
    column_of |= dict.fromkeys(("y_prob", "logits", "mean", "values", "draws", "top_logprobs"), _joined(columns.values))
    column_of["y_logprob"] = columns.y_true
    column_of |= dict(zip(("lower", "upper"), columns.values, strict=False)) if columns.form == "intervals" else {}
    if columns.spread is not None:
        column_of[columns.spread[0]] = _joined(columns.spread[1:])
    if surface is SHELL:
        column_of |= _ARGUMENTS
    place = complaint.place
    if surface is SHELL and place is not None and place.startswith("row") and "counting" not in place:
        place = f"{place}, counting from 0"
    argument = column_of.get(complaint.argument) or complaint.argument
    parts = {name: getattr(complaint, name) for name in ("rule", "hint", "got")}
    parts = {name: None if part is None else said_at(surface, part) for name, part in parts.items()}
    return worded(error, replace(complaint, argument=argument, place=place, **parts))
