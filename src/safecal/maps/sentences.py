"""What was wrong before a map, and what is worse after it, in sentences."""

from ..judge.evaluation import Evaluation

__all__ = ["worse", "wrong"]

# By how much a number may become worse before it is told: nats of NLL, of a range, of a group; shares.
_NLL, _RANGE, _GROUP, _SHARE = 1e-3, 0.01, 5e-3, 5e-3


def wrong(before: Evaluation) -> str:
    """Say what is wrong with predictions, as far as it is shown."""
    cox = before.cox
    if cox is not None and min(cox.p_shift, cox.p_slope) < 0.05:
        if cox.p_shift <= cox.p_slope:
            return f"It happens {'more' if cox.in_the_large.value > 0.0 else 'less'} often than predicted."
        return f"Its log-odds are too {'large' if cox.slope.value < 1.0 else 'small'}."
    if before.interval.low > 0.0:
        return "It is over-confident."
    if before.interval.high < 0.0:
        return "It is under-confident."
    if before.verdict.where:
        return "It is over-confident in places."
    return "Nothing is shown to be wrong on average."


def worse(before: Evaluation, after: Evaluation) -> tuple[str, ...]:
    """Say what a fix makes worse."""
    found = []
    if after.nll > before.nll + _NLL:
        found.append(f"NLL becomes worse: {before.nll:.4f} before, {after.nll:.4f} after.")
    chance = after.reliability
    if after.ece > before.ece + _SHARE and chance is not None and after.ece > chance.ece_quantile:
        found.append(f"ECE becomes worse: {before.ece:.4f} before, {after.ece:.4f} after.")
    if after.accuracy < before.accuracy - _SHARE:
        found.append(f"accuracy falls: {before.accuracy:.4f} before, {after.accuracy:.4f} after.")
    first = max((r.ecd.value for r in before.local), default=0.0)
    second = max((r.ecd.value for r in after.local if r.at_least > 0.0), default=0.0)  # beyond what chance makes
    if second > max(first, 0.0) + _RANGE:
        found.append(f"the worst range becomes worse: {first:+.4f} nat before, {second:+.4f} after.")
    ranks = ("SAFE", "UNDETERMINED", "UNSAFE")
    if ranks.index(after.verdict.decision) > ranks.index(before.verdict.decision):
        found.append(f"the verdict was {before.verdict.decision} and becomes {after.verdict.decision}.")
    if before.groups is not None and after.groups is not None:
        for key, summary in before.groups.items():
            then = after.groups[key].nll
            if then > summary.nll + _GROUP:
                found.append(f"NLL of group {key!r} becomes worse: {summary.nll:.4f} before, {then:.4f} after.")
    return tuple(found)
