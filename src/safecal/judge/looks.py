"""The verdict of several looks at the same rows: UNSAFE by any that condemns, SAFE by all that acquit."""

from collections.abc import Sequence
from dataclasses import replace

from .._sums.looks import Look, are_ends, decide
from ..inference.results import Interval
from .groups import GroupVerdict
from .places import Place
from .reasons import Late, Words
from .verdict import SAFE, UNDETERMINED, UNSAFE, Verdict

__all__ = ["deciding", "joint_group", "joint_verdict", "smaller_end"]


def _looks(verdicts: Sequence[Verdict]) -> list[Look]:
    return [verdict.look for verdict in verdicts if verdict.look is not None]


def deciding(verdicts: Sequence[Verdict]) -> int:
    """Tell which look decided: of several that condemn, one that does so on average says it best.

    Parameters
    ----------
    verdicts : sequence of Verdict
        One for each look.

    Returns
    -------
    int
        Its place among them.
    """
    decision, which = decide(_looks(verdicts), [verdict.decision for verdict in verdicts])
    whole = [i for i, v in enumerate(verdicts) if v.look is not None and v.look.condemns and v.on_average == UNSAFE]
    return whole[0] if decision == UNSAFE and whole else which


def smaller_end(verdicts: Sequence[Verdict]) -> Interval | None:
    """Return the smaller end of ECD, where it is known between two bounds only.

    Parameters
    ----------
    verdicts : sequence of Verdict
        One for each look; the first is that of the larger end.

    Returns
    -------
    Interval or None
        None where ECD is one number.
    """
    return verdicts[1].ecd if are_ends([verdict.look for verdict in verdicts]) else None


def joint_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """Put the verdicts of all looks together.

    Parameters
    ----------
    verdicts : sequence of Verdict
        One for each look; the first gives ECD, temperature and limits.

    Returns
    -------
    Verdict
        The decision of all of them. Its reason names the look that decided; its places are those of that look.
    """
    looks, main = _looks(verdicts), verdicts[0]
    if not looks:
        return main
    decision, which = decide(looks, [verdict.decision for verdict in verdicts])[0], deciding(verdicts)
    on_average, _ = decide(looks, [verdict.on_average for verdict in verdicts])
    one = verdicts[which]
    open_ = decision == one.decision == UNDETERMINED

    def words() -> Words:
        reason = _reason(decision, list(verdicts), which)
        mended = one.decision != UNSAFE or decision == UNSAFE  # what is not shown needs no remedy
        found = main.words.value
        return Words(reason, one.diagnosis if mended else None, found.worst, found.worst_share)

    return replace(
        main,
        decision=decision,
        on_average=on_average,
        where=() if decision == SAFE else tuple(_doubted(place, decision) for place in one.where),
        rows_needed=one.rows_needed if open_ else None,
        clusters_needed=one.clusters_needed if open_ else None,
        words=Late(words),
        look=None,
        looks=tuple(verdicts),
    )


def _doubted(place: Place, decision: str) -> Place:
    """Return a place as it counts: what a look shows that may not condemn is suspected."""
    return place if decision == UNSAFE else replace(place, shown=False)


def _reason(decision: str, verdicts: list[Verdict], which: int) -> str:
    """Say why, and which look decided."""
    one = verdicts[which]
    look = one.look
    assert look is not None
    if decision == SAFE:
        said = [f"{v.look.seen}, {v.reason} {v.look.why}".rstrip() for v in verdicts if v.look and v.look.acquits]
        return " ".join([said[0], *(text[:1].upper() + text[1:] for text in said[1:])])
    if decision == UNDETERMINED and one.decision == SAFE:  # no look acquits
        return f"{look.seen}, nothing is found beyond the limits, but that does not make it safe. {look.why}".rstrip()
    if decision == UNDETERMINED and not look.condemns:
        least = [f"{v.look.seen}, ECD is at least {v.ecd.low:.3g}; " for v in verdicts if v.look and v.look.condemns]
        return (
            f"over-confidence is neither shown nor ruled out at {100 * one.level:g} % confidence: {''.join(least)}"
            f"{look.seen}, ECD is at most {one.ecd.high:.3g}; {one.allowed:.3g} nat is allowed. {look.why}".rstrip()
        )
    return f"{look.seen}, {one.reason}"


def joint_group(looks: Sequence[Look], verdicts: Sequence[GroupVerdict]) -> GroupVerdict:
    """Put the verdicts of all looks on one group together.

    Parameters
    ----------
    looks : sequence of Look
        The looks.
    verdicts : sequence of GroupVerdict
        What each says of the group.

    Returns
    -------
    GroupVerdict
        The numbers of the look that decided; where two looks are the ends of a bound, ECD with the outer ends of both.
    """
    decision, which = decide(looks, [verdict.decision for verdict in verdicts])
    one = verdicts[which]
    ecd = replace(verdicts[0].ecd, low=verdicts[1].ecd.low) if are_ends(looks) else one.ecd
    place = None if one.place is None else _doubted(one.place, decision)
    return replace(one, decision=decision, place=place, ecd=ecd)
