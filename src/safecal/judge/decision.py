"""The decision: one rule on average and in every place that can be seen, and one for several looks at the same rows.

In nats a rare mistake costs little: "one in a million" that happens once in a hundred loses about a tenth of a nat. So
do mistakes near even odds: 60 % that happen in 35 %. And of several classes, faults cancel inside a row: the likeliest
class is said too often, and the tail as well. So two more things are looked at, where nothing else is shown: the
mistakes of each range, and how often the likeliest class is right. They have a fiftieth of the error that the level
leaves, on top of the others. A rare class is never the likeliest, so mistakes do not show it: classes that happen far
more often than announced are looked for by themselves.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._sums import Tally
from .._sums.nodes import Nodes
from .._sums.summary import COLUMN
from .._sums.tally_parts import Look, are_ends, decide, tallies_by_column
from .._types import Decision, FloatArray, IndexArray
from ..inference import Interval
from ..inference.bounds import Mistakes, costly_ratio, divergence, ratio_at_least
from ..inference.directions import judged_directions, shows_directions
from ..inference.forecasts import seldom_held
from ..inference.local import Local, Range
from ..inference.shifts import frequent_classes
from ..inference.sum_bounds import firm_and_weak_bounds
from ..options import Limits, allowed_ratio
from ..slices.results import Slices
from .groups import GroupVerdict, TooSmall, group_places, judge_groups
from .places import Place, degree_of, range_ends
from .reasons import Findings, clusters_needed, joint_reason, rows_needed, words_of
from .verdict import SAFE, UNDETERMINED, UNSAFE, Average, Late, Verdict, Words, direction

__all__ = [
    "deciding", "joint_group", "joint_verdict", "judge", "range_places", "ranges_beyond", "slice_places", "smaller_end",
]  # fmt: skip

_SAYS_NOTHING = 0.98  # of the largest possible entropy
_ERROR, _SUSPECTED = 0.02, 0.4  # of what the level leaves to right and wrong: what firm bounds may miss, and weak ones
_VAGUE = 0.4  # of the rows are announced to be wrong: nats of right and wrong hardly tell, or turn round
_SEVERAL = math.log(2.5)  # nats of entropy: more than two classes have more
_MISTAKES = 2.0  # among sure rows that may still come: those seen say nothing of them


def judge(
    tally: Tally,
    *,
    ecd: Interval,
    temperature: Interval,
    mistakes: Mistakes | None,
    local: Local,
    limits: Limits,
    slices: Slices | None = None,
) -> Verdict:
    """Decide, by the intervals of the averages at the level of the limits, and by places."""
    summary, certain = tally.summary, tally.n_certain
    average = Average.of(tally, ecd, temperature, mistakes, limits)
    on_average: Decision = UNSAFE if average.beyond else SAFE if average.within else UNDETERMINED
    clustered = tally.clusters is not None
    places: tuple[Place, ...] = ()
    too_small, groups_differ = TooSmall(), False
    other_groups: tuple[float, float] | None = None
    if limits.everywhere:
        beyond = range_places(local, limits)
        if tally.directions is not None:
            beyond = _direction_places(tally, limits) + beyond
        if tally.groups is not None:
            judged = judge_groups(tally.groups, limits, tally)
            beyond += group_places(tally.groups, judged, limits, tally)
            too_small, groups_differ = TooSmall.of(tally.groups, judged, tally), judged.uneven
            by_column = tallies_by_column(tally)
            for column in by_column:
                assert column.groups is not None
                of_column = judge_groups(column.groups, limits, column, len(by_column) + 1)
                beyond += group_places(column.groups, of_column, limits, column)
            sums = tally.groups.sums[judged.degree < 2]
            other_groups = (sums[:, COLUMN["sum_excess"]].sum(), sums[:, COLUMN["sum_varentropy_weight2"]].sum())
        if slices is not None:
            beyond += slice_places(slices, limits)
        if on_average != UNSAFE and not any(place.shown for place in beyond):
            beyond += _rare_places(tally, local, ecd, limits)
        if tally.cell_pairs is not None and not beyond:  # sums of clusters are coarse, and fine ranges can be suspected
            fine = Local.of(replace(tally, cell_pairs=None), limits.level, limits.min_share)
            beyond += range_places(fine, limits) or _of_mistakes(tally, fine, limits, firm=False)
        places = tuple(sorted(beyond, key=lambda place: not place.shown))
    decision = on_average
    if on_average != UNSAFE and places:
        decision = UNSAFE if any(place.shown for place in places) else UNDETERMINED
    says_nothing = summary.mean_entropy >= _SAYS_NOTHING * tally.vague_entropy
    # Logits so large that no temperature lets them fail: that they did not is no evidence.
    too_sure = math.isnan(temperature.value) and math.isfinite(tally.most_entropy) and not says_nothing
    single_row = summary.n - summary.n_impossible < 2 and not says_nothing
    # The same of a few of them: one mistake there would outweigh all other rows.
    far = getattr(tally.spectrum, "far", 0) if tally.top is None else tally.top.far
    bold = _bold_rows(tally, average.ecd.limit)
    # States that are few beside their axes leave some direction unseen.
    unseen = tally.dimension > 1 and limits.everywhere and not shows_directions(tally, limits.level)
    stopped = limits.everywhere and slices is not None and slices.interrupted
    held = seldom_held(tally) if limits.everywhere and tally.forecast is not None else math.nan
    if decision == SAFE and (certain or too_sure or single_row or far or bold[0] or unseen or stopped or held < 1.0):
        decision = UNDETERMINED
    undecided = on_average == decision == UNDETERMINED and not places
    hopeless = decision == UNDETERMINED and not places and bool(certain or too_sure or (far and on_average == SAFE))
    more_rows = rows_needed(summary.n, average) if undecided and not clustered and not hopeless else None
    more_clusters = clusters_needed(tally, average, limits) if undecided and clustered else None
    findings = Findings(
        tally=tally, limits=limits, average=average, local=local, slices=slices, decision=decision,
        on_average=on_average, places=places, other_groups=other_groups, too_small=too_small,
        groups_differ=groups_differ, says_nothing=says_nothing, single_row=single_row, unseen_direction=unseen,
        held=held, search_stopped=stopped, hopeless=hopeless, far=0 if too_sure else far, bold=bold,
        rows_needed=more_rows, clusters_needed=more_clusters,
    )  # fmt: skip
    return Verdict(
        decision=decision, on_average=on_average, where=places, ecd=ecd, temperature=temperature, mistakes=mistakes,
        limits=limits, dimensions=average.dimensions, rows_needed=more_rows, clusters_needed=more_clusters,
        uninformative=says_nothing, direction=direction(ecd), n_impossible=summary.n_impossible, bias=summary.bias,
        words=Late(lambda: words_of(findings)), too_small=too_small, look=tally.look,
    )  # fmt: skip


def _bold_rows(tally: Tally, limit: float) -> tuple[int, float]:
    """Count rows so sure that two mistakes would exceed the limit, and find the farthest log-odds.

    Of more than two classes, any mistake surprises by the log-odds of the likeliest one at least.
    """
    points = tally.points if tally.top is None else tally.top.points()
    if points is None:
        return 0, 0.0
    cost, most = points.L * points.w, limit * tally.summary.weight / _MISTAKES
    if not cost.max(initial=0.0) > most:
        return 0, 0.0
    return round(float(points.n[cost > most].sum())), float(points.L[cost > most].max())


def range_places(local: Local, limits: Limits) -> list[Place]:
    """Return ranges that are over-confident beyond the limit, or suspected to be, the worst first; no row is in two."""
    limit = limits.local_threshold * local.column("dimensions")
    beyond, degree, low = ranges_beyond(local, limits.local_threshold)
    if not degree.any():
        return []
    order = np.lexsort((-(low / limit[beyond]), -degree))
    beyond = beyond[order[degree[order] > 0]]
    label, first, last = (local.column(name).tolist() for name in ("label", "low", "high"))
    kept: list[int] = []
    for k in beyond.tolist():
        ends = label[k], first[k], last[k]
        if not any(_may_share_rows(ends, (label[j], first[j], last[j])) for j in kept):
            kept.append(k)
    return [_range_place(one_range, float(limit[k])) for k, one_range in zip(kept, local.some(kept), strict=True)]


def ranges_beyond(local: Local, local_threshold: float) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return the ranges whose ECD is beyond the limit, how sure that is (`degree_of`), and their lower bounds.

    Where the bounds of none of them show anything, but calibration is uneven along the predictions, all are suspected
    that are no small ones: in those, an estimate beyond the limit is common by chance.
    """
    limit, value = local_threshold * local.column("dimensions"), local.column("ecd")
    beyond = np.flatnonzero(value > limit)  # no lower bound lies above the estimate: the others need none
    if not len(beyond):
        return beyond, beyond, value[beyond]
    low, at_least = local.lower(beyond)
    degree = degree_of(low, at_least > 0.0, value[beyond], limit[beyond])
    if not degree.any() and local.uneven:
        degree = local.is_wide()[beyond].astype(degree.dtype)
    return beyond, degree, low


def _direction_places(tally: Tally, limits: Limits) -> list[Place]:
    """Return the direction of states that is over-confident beyond the limit, or suspected to be.

    It is one dimension. Where all directions together are beyond their limit, and it is not worse, they say it already.
    """
    limit, beyond = limits.local_threshold, []
    for judged in judged_directions(tally, limits.level):
        low, at_least, everywhere = judged.ecd.low, judged.at_least, judged.everywhere
        shown, suspected = low > limit, at_least > 0.0 and judged.ecd.value > limit
        alike = everywhere > limits.threshold and not max(low, at_least) > everywhere
        if (shown or suspected) and not alike:
            beyond.append((shown, low, at_least, judged))
    if not beyond:
        return []
    shown, *_, worst = max(beyond, key=lambda place: place[:3])
    return [Place(
        type="direction", name=worst.name, shown=shown, by="ecd", limit=limit, n=tally.n, share=1.0,
        predicted=math.nan, observed=math.nan, ecd=worst.ecd, seen=math.nan, announced=math.nan, on="spread",
        low=math.nan, high=math.nan,
    )]  # fmt: skip


def slice_places(slices: Slices, limits: Limits) -> list[Place]:
    """Return slices that are over-confident beyond the limit, or suspected to be.

    Their bounds were made at one level. They prove nothing at a higher one; at a lower one they could be closer, so
    every estimate beyond the limit is suspected. A candidate that is not listed, because it is much like another one,
    is named where it is worse than all that are.
    """
    places: list[Place] = []
    if slices.direction != "over":
        return places
    unlisted = [s for s in slices.candidates if s not in slices.found]
    for s in (*slices.found, *unlisted):
        limit = limits.local_threshold * s.dimensions
        shown = s.firm > limit and limits.level <= slices.level
        suspected = s.ecd.value > limit and (s.ecd.low > 0.0 or limits.level < slices.level)
        is_repeated = places and (s not in slices.found) and (not shown or any(place.shown for place in places))
        if (shown or suspected) and not is_repeated:
            ecd = replace(s.ecd, low=s.firm) if shown else s.ecd
            places.append(Place(
                type="slice", name=s.condition, shown=shown, by="ecd", limit=limit, n=s.n, share=s.share,
                predicted=s.predicted, observed=s.observed, ecd=ecd, seen=math.nan, announced=math.nan, on=slices.on,
                low=math.nan, high=math.nan,
            ))  # fmt: skip
    return places


def _may_share_rows(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Tell whether two ranges may have rows in common, by their labels, NaN for all of them, and their ends."""
    (label, low, high), (other, first, last) = a, b
    inside = (first <= low and high <= last) or (low <= first and last <= high)
    together = label == other or math.isnan(label) or math.isnan(other)
    return together and (inside or (low < last and first < high))


def _range_place(r: Range, limit: float) -> Place:
    of_class = "" if r.label is None else f", class {r.label} predicted"
    unit = "standard deviation" if r.on == "spread" else r.on
    name = f"{unit} {range_ends(r.low, r.high)}{of_class}"
    return Place(
        type="range", name=name, shown=r.ecd.low > limit, by="ecd", limit=limit, n=r.n, share=r.share,
        predicted=r.predicted, observed=r.observed, ecd=r.ecd, seen=math.nan, announced=math.nan, on=r.on,
        low=r.low, high=r.high,
    )  # fmt: skip


def _rare_places(tally: Tally, local: Local, ecd: Interval, limits: Limits) -> list[Place]:
    """Return the likeliest class, the range with too many mistakes, and rare classes, where they are beyond limits."""
    if tally.summary.weight_impossible > 0.0:
        return []
    firm = tally.clusters is None and not tally.weighted  # else the bounds are those of other rows, and prove nothing
    places = []
    if tally.summary.sum_confidence is not None:
        places = _of_likeliest_class(tally, limits, firm) + _of_mistakes(tally, local, limits, firm)
    return places if tally.class_sums is None else places + _of_frequent_classes(tally, ecd, limits, firm)


def _of_mistakes(tally: Tally, local: Local, limits: Limits, firm: bool) -> list[Place]:
    """Return the worst range with more mistakes than a range may have."""
    if local.on not in ("probability", "confidence") or tally.summary.weight_impossible > 0.0:
        return []
    low, high, said, seen = (local.column(name) for name in ("low", "high", "predicted", "observed"))
    right = one_sided = np.ones(len(local), dtype=bool)
    if local.on == "probability":  # the likelier outcome is the same for all rows of a range on one side of 1/2
        right = low >= 0.5
        one_sided = right | (high <= 0.5)
    wrong_said, wrong_seen = (np.maximum(np.where(right, 1.0 - x, x), 0.0) for x in (said, seen))
    allowed = allowed_ratio(wrong_said, limits)
    if tally.most_entropy >= _SEVERAL:
        untied = wrong_seen - _tied(tally) / local.column("n")
        seldom = (wrong_said > _VAGUE) & (untied > wrong_said)
        seldom &= divergence(np.maximum(untied, 0.0), wrong_said) > limits.local_threshold
        if seldom.any():
            wrong_seen = np.where(seldom, untied, wrong_seen)
            allowed[seldom] = np.fmin(allowed[seldom], costly_ratio(wrong_said[seldom], limits.local_threshold))
    places = np.flatnonzero(one_sided & (wrong_seen > allowed * wrong_said))
    if not len(places):
        return []
    n, limit = local.column("n")[places], allowed[places]
    announced, made = n * wrong_said[places], np.round(n * wrong_seen[places])
    error = (1.0 - limits.level) / len(local)
    suspected = ratio_at_least(made, announced, _SUSPECTED * error) > 1.0
    if not suspected.any():
        return []
    bounds = ratio_at_least(made, announced, _ERROR * error)
    degree = degree_of(bounds, suspected, made / announced, limit)
    worst = int(np.lexsort((bounds / limit, degree))[-1])
    if not degree[worst]:
        return []
    (worst_range,) = local.some([int(places[worst])])
    shown, seen_there, announced_there = bool(firm and degree[worst] == 2), made[worst], announced[worst]
    place = _range_place(worst_range, float(limit[worst]))
    return [replace(place, shown=shown, by="mistakes", seen=float(seen_there), announced=float(announced_there))]


def _of_likeliest_class(tally: Tally, limits: Limits, firm: bool) -> list[Place]:
    """Return all rows as one place, if the likeliest of three or more classes is right less often than it says."""
    if tally.most_entropy < _SEVERAL:
        return []
    order = next((order for order in tally.orders if order.label is None and order.on == "confidence"), None)
    if order is None:
        return []
    level = 1.0 - limits.level
    sums = order.right_or_wrong()
    (value,) = sums[:, COLUMN["sum_excess"]] / sums[:, COLUMN["weight"]]
    s, first, last = tally.summary, float(order.low[0]), float(order.high[-1])
    said, seen = np.array([1.0 - s.mean_confidence]), np.array([1.0 - s.accuracy - _tied(tally) / s.n])
    often = bool(seen > said > _VAGUE and divergence(seen, said) > limits.threshold)
    if not (value > limits.threshold or often):
        return []
    low, high, at_least = (float(x[0]) for x in firm_and_weak_bounds(sums, _ERROR * level, level))
    ecd = Interval(float(value), low, high, 1.0 - 2.0 * _ERROR * level, "right or wrong")
    place = Place(
        type="range", name=f"confidence {range_ends(first, last)}", shown=firm and low > limits.threshold, by="ecd",
        limit=limits.threshold, n=s.n, share=1.0, predicted=s.mean_confidence, observed=s.accuracy, ecd=ecd,
        seen=math.nan, announced=math.nan, on="confidence", low=first, high=last,
    )  # fmt: skip
    places = [place] if value > limits.threshold and at_least > 0.0 else []
    if often and not place.shown:  # below one half no mistake is a surprise: they are counted
        limit, announced, made = costly_ratio(said, limits.threshold), s.n * said, np.round(s.n * seen)
        firmly, suspected = (ratio_at_least(made, announced, error) for error in (_ERROR * level, level))
        if suspected > 1.0:
            counted, shown = replace(place, seen=float(made[0]), announced=float(announced[0])), firm and firmly > limit
            places = [replace(counted, shown=bool(shown), by="mistakes", limit=float(limit[0]))]
    return places


def _tied(tally: Tally) -> float:
    """Return rows whose outcome was as likely as the likeliest one, and not it: of these, no class was preferred."""
    wrong = tally.n * (1.0 - tally.summary.accuracy)
    return max(wrong - tally.spectrum.surprises, 0.0) if isinstance(tally.spectrum, Nodes) else wrong


def _of_frequent_classes(tally: Tally, ecd: Interval, limits: Limits, firm: bool) -> list[Place]:
    """Return classes that happen more often than the square of ``max_ratio`` allows, the worst first."""
    weight, limit = tally.summary.weight, limits.max_ratio**2
    return [
        Place(
            type="class", name=f"class {name}", shown=firm, by="mistakes", limit=limit, n=tally.n, share=1.0,
            predicted=announced / weight, observed=seen / weight, ecd=ecd, seen=seen, announced=announced,
            on="probability", low=math.nan, high=math.nan,
        )
        for name, announced, seen, _ in frequent_classes(tally, limit, limits.level)
    ]  # fmt: skip


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
        return main.words.value._replace(reason=joint_reason(decision, verdicts, decisive), diagnosis=diagnosis)

    return replace(
        main, decision=decision, on_average=on_average, where=() if decision == SAFE else where,
        rows_needed=decisive.rows_needed if is_open else None,
        clusters_needed=decisive.clusters_needed if is_open else None,
        words=Late(words), look=None, looks=tuple(verdicts),
    )  # fmt: skip


def joint_group(looks: Sequence[Look], verdicts: Sequence[GroupVerdict]) -> GroupVerdict:
    """Put the verdicts of all looks on one group together.

    The numbers are those of the look that decided; where two looks are the ends of a bound, ECD has the outer ends of
    both. A place that a look shows counts as suspected where the look may not condemn.
    """
    decision, index = decide(looks, [verdict.decision for verdict in verdicts])
    decisive = verdicts[index]
    ecd = replace(verdicts[0].ecd, low=verdicts[1].ecd.low) if are_ends(looks) else decisive.ecd
    place = decisive.place
    if place is not None and decision != UNSAFE:
        place = replace(place, shown=False)
    return replace(decisive, decision=decision, place=place, ecd=ecd)


def smaller_end(verdicts: Sequence[Verdict]) -> Interval | None:
    """Return the smaller end of ECD, where it is known between two bounds only; None where ECD is one number.

    ``verdicts`` are those of the looks; the first is that of the larger end.
    """
    return verdicts[1].ecd if are_ends([verdict.look for verdict in verdicts]) else None
