"""One verdict of several looks at the same rows."""

from collections.abc import Sequence
from dataclasses import replace

from .._sums.tally_parts import Look, are_ends, decide
from .._types import Decision
from ..inference.results import Interval
from .groups import GroupVerdict
from .verdict import SAFE, UNDETERMINED, UNSAFE, Late, Verdict, Words

__all__ = ["deciding", "joint_group", "joint_verdict", "smaller_end"]


def _looks(verdicts: Sequence[Verdict]) -> list[Look]:
    return [verdict.look for verdict in verdicts if verdict.look is not None]


def deciding(verdicts: Sequence[Verdict]) -> int:
    """Return the index of the look that decided: of several that condemn, one that does so on average says it best."""
    decision, index = decide(_looks(verdicts), [verdict.decision for verdict in verdicts])
    whole = [i for i, v in enumerate(verdicts) if v.look is not None and v.look.condemns and v.on_average == UNSAFE]
    return whole[0] if decision == UNSAFE and whole else index


def joint_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """Put the verdicts of all looks together; the first of them gives ECD, temperature and limits.

    The reason names the look that decided, and the places are those of that look.
    """
    looks, main = _looks(verdicts), verdicts[0]
    if not looks:
        return main
    decision, _ = decide(looks, [verdict.decision for verdict in verdicts])
    on_average, _ = decide(looks, [verdict.on_average for verdict in verdicts])
    decisive = verdicts[deciding(verdicts)]
    is_open = decision == decisive.decision == UNDETERMINED
    where = decisive.where if decision == UNSAFE else tuple(replace(place, shown=False) for place in decisive.where)

    def words() -> Words:
        # What a look shows that may not condemn is not shown, and needs no remedy.
        diagnosis = None if decisive.decision == UNSAFE and decision != UNSAFE else decisive.diagnosis
        return main.words.value._replace(reason=_joint_reason(decision, verdicts, decisive), diagnosis=diagnosis)

    return replace(
        main,
        decision=decision,
        on_average=on_average,
        where=() if decision == SAFE else where,
        rows_needed=decisive.rows_needed if is_open else None,
        clusters_needed=decisive.clusters_needed if is_open else None,
        words=Late(words),
        look=None,
        looks=tuple(verdicts),
    )


def _joint_reason(decision: Decision, verdicts: Sequence[Verdict], decisive: Verdict) -> str:
    """Say why, and which look decided."""
    look = decisive.look
    assert look is not None
    if decision == SAFE:
        reasons = [f"{v.look.seen}, {v.reason} {v.look.why}".rstrip() for v in verdicts if v.look and v.look.acquits]
        return " ".join([reasons[0], *(text[:1].upper() + text[1:] for text in reasons[1:])])
    if decision == UNDETERMINED and decisive.decision == SAFE:  # no look acquits
        return f"{look.seen}, nothing is found beyond the limits, but that does not make it safe. {look.why}".rstrip()
    if decision == UNDETERMINED and not look.condemns and (decisive.where or not decisive.ecd.high <= decisive.allowed):
        smaller = [f"{v.look.seen}, ECD is at least {v.ecd.low:.3g}; " for v in verdicts if v.look and v.look.condemns]
        return (
            f"over-confidence is neither shown nor ruled out at {100 * decisive.level:g} % confidence:"
            f" {''.join(smaller)}{look.seen}, ECD is at most {decisive.ecd.high:.3g};"
            f" {decisive.allowed:.3g} nat is allowed. {look.why}".rstrip()
        )
    acquits = any(v.look.acquits for v in verdicts if v.look)
    why = look.why if decision == UNDETERMINED and not acquits else ""
    return f"{look.seen}, {decisive.reason} {why}".rstrip()


def joint_group(looks: Sequence[Look], verdicts: Sequence[GroupVerdict]) -> GroupVerdict:
    """Put the verdicts of all looks on one group together.

    The numbers are those of the look that decided; where two looks are the ends of a bound, ECD has the outer ends of
    both. A place that a look shows counts as suspected where the look may not condemn.
    """
    decision, index = decide(looks, [verdict.decision for verdict in verdicts])
    deciding = verdicts[index]
    ecd = replace(verdicts[0].ecd, low=verdicts[1].ecd.low) if are_ends(looks) else deciding.ecd
    place = deciding.place
    if place is not None and decision != UNSAFE:
        place = replace(place, shown=False)
    return replace(deciding, decision=decision, place=place, ecd=ecd)


def smaller_end(verdicts: Sequence[Verdict]) -> Interval | None:
    """Return the smaller end of ECD, where it is known between two bounds only; None where ECD is one number.

    ``verdicts`` are those of the looks; the first is that of the larger end.
    """
    return verdicts[1].ecd if are_ends([verdict.look for verdict in verdicts]) else None
