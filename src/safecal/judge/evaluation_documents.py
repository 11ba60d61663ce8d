"""Documents of an Evaluation: what they hold, how they are read, and whether their parts are of one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import documents
from .._sums.tally import Tally
from ..inference.cox import Cox
from ..inference.local import Local
from ..inference.mistakes import Mistakes
from ..inference.results import Interval, TestResult
from ..inference.shifts import ClassShifts
from ..options import Limits
from .reliability import Reliability
from .verdict import Verdict

if TYPE_CHECKING:
    from .evaluation import Evaluation

__all__ = ["DERIVED", "FIELDS", "METRICS", "PARTS", "check"]


def check(evaluation: Evaluation, derived: Mapping[str, Any]) -> None:
    """Refuse parts that are not of one evaluation, and numbers that its sums do not give."""
    e, v, own = evaluation, evaluation.verdict, {"family": evaluation.family, "n": evaluation.n}
    parts = {"ecd": e.interval, **{name: getattr(e, name) for name in ("limits", "temperature", "mistakes")}}
    documents.every((
        *((getattr(v, name) == x, f"must have the same `{name}` in its `verdict`") for name, x in parts.items()),
        (v.n_impossible == e.summary.n_impossible, "must have the same `n_impossible` in its `verdict`"),
        (documents.agrees(e.interval.value, e.ecd), "must have the ECD of its sums in its `interval`"),
        (e.slices is None or e.slices.n == e.n, "must have as many rows in its `slices`"),
        (e.interval.level == e.limits.level, "must have the `level` of its limits in its `interval`"),
        (_same_looks(e), "must have the looks of its tally in its `verdict`, with their ECD"),
        *((derived.get(name, mine) == mine, f"must have the `{name}` of its tally") for name, mine in own.items()),
    ))  # fmt: skip
    with documents.at("metrics"):
        for name, value in derived.get("metrics", {}).items():
            if name not in METRICS or not documents.agrees(value, getattr(e, name)):
                documents.refuse(f"must be what the sums give; `{name}` is not")


def _same_looks(evaluation: Evaluation) -> bool:
    tally, said = evaluation.tally, evaluation.verdict.looks
    looks = [one for one in (tally, *tally.others) if one.look is not None]
    return len(looks) == len(said) and all(
        found.look == one.look and documents.agrees(found.ecd.value, one.summary.ecd)
        for found, one in zip(said, looks, strict=True)
    )


PARTS: dict[str, Any] = {
    "verdict": Verdict.from_dict,
    "test": TestResult.from_dict,
    "interval": Interval.from_dict,
    "temperature": Interval.from_dict,
    "mistakes": documents.optional(Mistakes.from_dict),
    "local": Local.from_dict,
    "reliability": documents.optional(Reliability.from_dict),
    "tally": Tally.from_dict,
}
METRICS = ("ecd", "nll", "ece", "ece_overconfident", "ece_underconfident", "esce", "brier", "accuracy", "bias")
FIELDS: dict[str, Any] = {"limits": Limits.from_dict, "cox": documents.optional(Cox.from_dict), **PARTS}


def _aside(kind: str) -> Callable[[Any], None]:
    """Pass over what is not read back: it is found anew, or was added by the command line."""

    def reader(value: Any) -> None:
        if not isinstance(value, Mapping) or value.get("kind") != f"safecal.{kind}":
            documents.refuse(f"must be a safecal.{kind} document", value)

    return reader


DERIVED: dict[str, Any] = {
    "class_shifts": documents.optional(ClassShifts.from_dict),  # found anew, where it is asked for
    "family": documents.text,
    "n": documents.count(1),
    "metrics": documents.mapping_of(documents.numbers),
    "baseline": _aside("baseline"),  # how it compares with an earlier one
    "forecast": _aside("forecast"),
}
