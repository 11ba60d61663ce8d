"""Everything about one set of predictions, and what follows from it."""

import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, final

import numpy as np

from .. import documents
from .._checks import fail
from .._checks.arrays import same_labels
from .._checks.columns import choice, spelled, steadied, steady
from .._sums import Tally
from .._sums.splits import Bins, Plan
from .._sums.table import Table
from .._types import ArrayLike, BinOn, By, Strategy
from ..errors import OptionError, TruthError
from ..families import Predictions
from ..inference import Interval, TestResult
from ..inference.bounds import Bounds, Mistakes
from ..inference.calibration import calibration_test, generator, tally_test
from ..inference.local import Local
from ..options import LimitOptions, Limits
from ..slices import find_slices
from ..slices.results import Slices
from .decision import deciding, joint_group, joint_verdict, judge, smaller_end
from .display import evaluation_text
from .groups import GroupVerdict, group_verdict
from .readings import DERIVED, FIELDS, Readings, check
from .reliability import Reliability, tells_reliability
from .row_reliability import assess_reliability
from .verdict import Verdict

if TYPE_CHECKING:
    from ..maps.result import Recalibration

__all__ = ["Evaluation", "evaluate_predictions"]

_FEW = 64  # rows of more than two classes whose test is left to the rows, where they are at hand


@final
@steadied
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Readings):
    """Everything about one set of predictions, read off its sums; it holds no raw data.

    Attributes
    ----------
    tally : Tally
        All sums. ``family``, ``dimension``, ``summary``, ``bins``, ``groups``, ``histogram`` and ``n_certain`` are
        read off it.
    limits : Limits
        The limits of the verdict, and the level of its intervals.
    interval : Interval
        ECD with its confidence interval.
    temperature : Interval
        The temperature the data ask for, with its interval: above 1 over-confident, below 1 under-confident.
    mistakes : Mistakes or None
        Mistakes made and announced, for classifiers.
    local : Local
        ECD in ranges of the predictions.
    verdict : Verdict
        Is the model safe? Decision and reason, by the limits that were set.
    slices : Slices or None
        For whom it is over-confident, where features were given.
    drawn, tested : Reliability and TestResult, or None
        `reliability` and `test` as the rows give them, where sums alone do not; None otherwise.

    Examples
    --------
    >>> import safecal
    >>> result = safecal.evaluate([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], bins=2)
    >>> round(result.ecd, 4), round(result.ece, 4)
    (-0.157, 0.04)
    >>> result.verdict.decision  # five rows prove nothing
    'UNDETERMINED'
    """

    tally: Tally
    limits: Limits
    interval: Interval
    temperature: Interval
    mistakes: Mistakes | None
    local: Local
    verdict: Verdict
    slices: Slices | None = None
    drawn: Reliability | None = None
    tested: TestResult | None = None
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    @np.errstate(all="ignore")  # far log-odds overflow on the way; what becomes NaN is judged as unknown
    def of(
        cls,
        tally: Tally,
        limits: Limits | None = None,
        *,
        rows: Predictions | None = None,
        sample_weight: ArrayLike | None = None,
        slices: Slices | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> Self:
        """Evaluate sums: the one way to an evaluation, whatever door the rows came in by.

        Parameters
        ----------
        tally : Tally
            The sums.
        limits : Limits, optional
            The limits of the verdict, and the level of its intervals.
        rows : Predictions, optional
            The rows, where they are at hand, for what sums do not show: the reliability of weighted rows, and the exact
            test of few rows of more than two classes. They are not kept.
        sample_weight : array-like of shape (n,), optional
            Their weights.
        slices : Slices, optional
            Slices that were found in the same rows, at the same level.
        rng : numpy.random.Generator or int, optional
            For what is drawn from the rows. By default the same rows give the same answer.

        Returns
        -------
        Evaluation
            Everything about them.

        Examples
        --------
        >>> import safecal
        >>> week = [safecal.bernoulli([1, 0, 1], [0.9, 0.2, 0.6]).tally() for _ in range(7)]
        >>> safecal.Evaluation.of(sum(week)).n
        21
        """
        limits = Limits() if limits is None else limits
        tally = tally.in_order()
        bounds = Bounds(tally)
        interval, temperature = bounds.interval(limits.level), bounds.temperature(limits.level)
        drawn, tested = None, None
        if rows is not None and rows.discrete and (tally.weighted or tally.points is None):  # else sums tell all
            bins = tally.bins
            if not tells_reliability(tally) and bins is not None and bins.bins is not None:
                on, rng = choice(bins.name, "bin_on", rows.bin_choices), generator(rng)
                drawn = assess_reliability(rows, bins=bins.bins, bin_on=on, sample_weight=sample_weight, rng=rng)
            if tally.clusters is None and tally.points is None and tally.n <= _FEW:
                tested = calibration_test(rows, sample_weight=sample_weight, rng=rng)
                tested = None if tested == tally_test(tally, bounds.law) else tested
        mistakes = Mistakes.of(tally, limits.level)
        local = Local.of(tally, limits.level, limits.min_share)
        verdict = judge(
            tally, ecd=interval, temperature=temperature, mistakes=mistakes, local=local, limits=limits, slices=slices
        )
        looks = tuple(cls.of(other, limits) for other in tally.others)
        if tally.look is not None or looks:
            verdict = joint_verdict([verdict, *(look.verdict.looks[0] for look in looks)])
        evaluation = cls(
            tally=tally, limits=limits, interval=interval, temperature=temperature, mistakes=mistakes, local=local,
            verdict=verdict, slices=slices, drawn=drawn, tested=tested,
        )  # fmt: skip
        evaluation._cache["looks"] = looks
        return evaluation

    @property
    def looks(self) -> tuple[Self, ...]:
        """Evaluations by other looks at the same rows, where there are several; `verdict` is that of all of them."""
        return self._cached("looks", lambda: tuple(type(self).of(other, self.limits) for other in self.tally.others))

    @property
    def deciding(self) -> Self:
        """The evaluation by the look that decided: this one, where there is no other."""
        index = deciding(self.verdict.looks) if self.looks else 0
        return self.looks[index - 1] if index else self

    @property
    def groups(self) -> Table | None:
        """Sums by group; None when ``by`` was not given. ``groups["north"].verdict`` judges one of them."""
        table = self.tally.groups
        return None if table is None else table.with_verdicts(self.group_verdict)

    @np.errstate(all="ignore")
    @spelled(LimitOptions)
    def judge(self, **limits: Unpack[LimitOptions]) -> Verdict:
        """Decide by other limits, from the same sums.

        Parameters
        ----------
        **limits
            ``threshold``, ``max_temperature``, ``max_ratio``, ``local_threshold``, ``min_share``, ``level`` and
            ``rule``, as in `safecal.evaluate`; those that are left out stay as they are.

        Returns
        -------
        Verdict
            The decision, and why.
        """
        new_limits = replace(self.limits, **limits)
        ecd, temperature, mistakes, local = self.interval, self.temperature, self.mistakes, self.local
        if new_limits.level != self.limits.level:
            bounds = self.bounds
            ecd, temperature = bounds.interval(new_limits.level), bounds.temperature(new_limits.level)
            mistakes = Mistakes.of(self.tally, new_limits.level)
        if (new_limits.level, new_limits.min_share) != (self.limits.level, self.limits.min_share):
            local = Local.of(self.tally, new_limits.level, new_limits.min_share)
        verdict = judge(
            self.tally, ecd=ecd, temperature=temperature, mistakes=mistakes, local=local, limits=new_limits,
            slices=self.slices,
        )  # fmt: skip
        return joint_verdict([verdict, *(look.judge(**limits).looks[0] for look in self.looks)])

    @np.errstate(all="ignore")
    def group_verdict(self, key: Hashable) -> GroupVerdict:
        """Judge one group, by bounds that hold together with those of all other groups.

        Parameters
        ----------
        key : hashable
            One of the keys of ``groups``: a value of the column, or a tuple for several.

        Returns
        -------
        GroupVerdict
            The decision, and the three scales with their intervals: wider than those of the average.

        Examples
        --------
        >>> import safecal
        >>> result = safecal.evaluate([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], by=list("aabbb"))
        >>> result.group_verdict("b").decision  # three rows prove nothing
        'UNDETERMINED'
        """
        groups = self.tally.groups
        if groups is None:
            raise fail(OptionError, "key", "must name a group; there are none", hint="evaluate with `by=` a column.")
        if key not in groups.keys:
            keys = ", ".join(map(repr, groups.keys[:5])) + (", ..." if len(groups) > 5 else "")
            raise fail(OptionError, "key", f"must be one of the groups: {keys}", got=repr(key))
        return self._cached(("group", key), lambda: self._joint_group_verdict(key))

    def _joint_group_verdict(self, key: Hashable) -> GroupVerdict:
        tallies = (self.tally, *self.tally.others)
        verdicts = [group_verdict(tally, self.limits, key) for tally in tallies]
        looks = [tally.look for tally in tallies if tally.look is not None]
        return joint_group(looks, verdicts) if looks else verdicts[0]

    def __bool__(self) -> bool:
        raise TruthError(
            "an evaluation is neither true nor false: an UNSAFE one would pass as true.\n\n"
            'Hint: compare `evaluation.verdict.decision == "SAFE"`, or use `safecal.testing.assert_safe(...)`.'
        )

    def __repr__(self) -> str:
        v = self.verdict
        remedy = "" if v.diagnosis is None else v.diagnosis.remedy
        text = evaluation_text(
            self._title(), str(v), self._metrics(), self._tables(), v.where, self.summary.weight, remedy, self.notes
        )
        return text if self.slices is None else f"{text}\n\n{self.slices!r}"

    def _repr_html_(self) -> str:
        from ..html.notebook import evaluation_html

        return evaluation_html(self, self._title(), self._metrics(), self._tables())

    def _tables(self) -> list[Table]:
        groups = None if self.groups is None else self.groups.worst_first()
        if groups is None or smaller_end(self.verdict.looks) is None:
            return [table for table in (self.bins, groups) if table is not None]
        smaller = self.looks[0].groups
        assert smaller is not None
        ends = {"at most": groups, "at least": smaller.worst_first(len(groups))}
        return [replace(table, name=f"{table.name}, ECD {end}") for end, table in ends.items()]

    def plot(self, part: str | None = None, *, ax: Any = None, name: str | None = None) -> Any:
        """Draw the verdict, the reliability diagram, ECD by bin, the temperature and the groups, in one figure.

        Parameters
        ----------
        part : str, optional
            One part alone: "reliability", "local", "ecd", "temperature", "groups", "excess", "contributions" or, of
            forecasts of numbers and vectors, "transform", of vectors "directions". By default four of
            them under the verdict.
        ax : matplotlib Axes, optional
            Where to draw a part; by default on a new figure.
        name : str, optional
            What the model is called. Parts of several models with names can share axes, with one legend.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; the classes of `safecal.plot` hold the numbers that they draw.
        """
        from ..plot import draw_evaluation

        return draw_evaluation(self, part, ax, name)

    def report(
        self, path: str | os.PathLike[str], *, title: str | None = None, fix: "Recalibration | None" = None
    ) -> None:
        """Write a page that explains everything: one HTML file that needs no network.

        Parameters
        ----------
        path : str or os.PathLike
            Where to write it.
        title : str, optional
            What the page is about.
        fix : Recalibration, optional
            What `recalibrate` found for the same rows; the page then says what it would gain.
        """
        from ..report import write_report

        write_report(self, path, title=title, fix=fix)

    @classmethod
    @np.errstate(all="ignore")
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote; metrics are computed anew from the sums.

        Parameters
        ----------
        document : mapping
            The document.

        Returns
        -------
        Evaluation
            Equal to the one that was written. The names of clusters are not written.
        """
        fields = documents.read("evaluation", document, FIELDS, {**DERIVED, "slices": Slices.from_dict})
        derived = {name: fields.pop(name) for name in DERIVED if name in fields}
        written = {name: fields.pop(name) for name in ("reliability", "test", "cox")}
        tally: Tally = fields["tally"]
        with documents.at("tally"):
            law = Bounds(tally).law
        tested = written["test"]
        evaluation = cls(
            **fields,
            drawn=None if tells_reliability(tally) else written["reliability"],
            tested=None if tested == tally_test(tally, law) else tested,
        )
        evaluation._cache.update(written)  # what was written need not be found again
        check(evaluation, derived)
        return evaluation


@steady
@spelled(LimitOptions)
def evaluate_predictions(
    predictions: Predictions,
    *,
    bins: int | Bins | Literal["auto"] | None = "auto",
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    by: By | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    features: Any = None,
    rng: np.random.Generator | int | None = None,
    progress: Callable[[float], None] | None = None,
    **limits: Unpack[LimitOptions],
) -> Evaluation:
    """Evaluate predictions of any family; ``"auto"`` is ten bins for classifiers, none for states and densities."""
    checked = Limits(**limits)
    same_labels(predictions.row_labels, sample_weight=sample_weight, by=by, cluster=cluster)
    plan = Plan.of(predictions, bins, bin_on, strategy)
    tally = Tally.of(predictions, plan, sample_weight=sample_weight, by=by, cluster=cluster)
    slices = None
    if features is not None:
        slices = find_slices(
            predictions, features, cluster=cluster, sample_weight=sample_weight, level=checked.level, rng=rng,
            progress=progress,
        )  # fmt: skip
    return Evaluation.of(tally, checked, rows=predictions, sample_weight=sample_weight, slices=slices, rng=rng)
