"""A deployed model, watched: evidence that may be looked at after every row."""

import math
from collections.abc import Hashable, Mapping
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._checks.columns import choice, fraction, group_codes, whole_number
from .._checks.message import fail, show
from .._steady import steadied
from .._sums.summary import Summary, as_sums
from .._sums.tabular import frame_of
from .._sums.tally import Tally
from .._types import AlarmDirection, ArrayLike, Detect, Form, IndexArray, Labels, Side
from ..errors import MergeError, MissingValueError, OptionError, RangeError, ShapeError
from ..families.classifier import classifier
from ..families.predictions import Predictions
from ..families.rows import some_rows
from ..inference.results import Interval
from ..inference.sum_bounds import interval_from_sums, intervals_from_sums
from ..judge.limits import Limits
from .alarm import Alarm
from .detector import FORMS
from .grid import as_odds, blocks, shiftable
from .process import shares
from .stream import DETECT, Stream, Thresholds
from .windows import Windows

__all__ = ["MAX_GROUPS", "Monitor"]

MAX_GROUPS = 1000


@final
@steadied
class Monitor:
    """Watch a model: whether it is calibrated since the start, and whether that changed at some row.

    Two kinds of evidence grow with every row. The *e-process* speaks about all rows since the start. If the model has
    been calibrated all along, the probability that it ever raises an alarm is at most ``alpha``, however often one
    looks. The *detector* speaks about a change. While the model is calibrated, it raises an alarm no more often than
    once in ``run_length`` rows, on average. After an alarm it is silent until `acknowledge` starts it anew. It looks
    for over-confidence, and on request for under-confidence as well.

    The order rule: a prediction must be fixed before its outcome is known. Rows are taken in as they come; labels may
    be late, as long as what makes them late is not the outcome.

    Parameters
    ----------
    alpha : float, default 0.05
        Probability of a false alarm of the e-process, ever. All directions and all groups share it. For two classes,
        over-confidence has two fifths of it; under-confidence and a shift of the log-odds, up or down, a fifth each.
        Otherwise over- and under-confidence have a half each.
    run_length : float, default 1_000_000
        Average number of rows between false alarms of the detector, at least. All groups share it, and both directions
        where two are looked for.
    form : {"shiryaev-roberts", "cusum"}, default "shiryaev-roberts"
        Which statistic the detector compares with ``run_length``. The first reacts faster.
    detect : {"over", "both"}, default "over"
        Which changes the detector looks for: to over-confidence, or to under-confidence as well. Each of the two then
        asks for twice the ``run_length``, so that the promise holds for both together.
    grouped : bool, default False
        Whether batches come with groups. All rows then have half of ``alpha``, and the k-th group to appear
        ``alpha / 2 / (k (k + 1))``; likewise for ``run_length``.
    max_windows : int, default 366
        Windows that are kept, and take late batches. The sums of older ones are joined.
    judged_windows : int, default 7
        The last windows, of which `tally` keeps all sums: tens of kilobytes each in the state. Older ones keep what
        `windows` shows.
    limits : Limits, optional
        What a verdict allows: alarms tell their size beside it. Evidence and thresholds do not depend on it.
    share : float, default 1.0
        The part of ``alpha`` that this monitor has, where others watch other rows of the same model: at most 1.
        ``run_length`` grows by its inverse. `shards` gives each its share.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.monitor import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(run_length=100_000)
    >>> for day in range(10):
    ...     z = rng.normal(0, 2, 1000)
    ...     y = rng.random(1000) < 1 / (1 + np.exp(-z))
    ...     drift = 1.0 if day < 6 else 2.0
    ...     for alarm in monitor.update(y.astype(int), logits=drift * z, window=f"day {day}"):
    ...         print(alarm)
    changed at about row 6001, too sharp: ECD 1, beyond 0.1; e-value 1.76e+05 at row 6017, 1e+05 was asked for (...)
    not calibrated throughout, too sharp: ECD 0.027, within 0.1; e-value 56.3 at row 6813, 50 was asked for (...)
    """

    __slots__ = (
        "_family",
        "_groups",
        "_looked",
        "_spent",
        "_total",
        "_windows",
        "alpha",
        "detect",
        "form",
        "grouped",
        "limits",
        "run_length",
        "share",
    )

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        run_length: float = 1_000_000,
        form: Form = "shiryaev-roberts",
        detect: Detect = "over",
        grouped: bool = False,
        max_windows: int = 366,
        judged_windows: int = 7,
        limits: Limits | None = None,
        share: float = 1.0,
    ) -> None:
        self.alpha = fraction(alpha, "alpha")
        self.share = 1.0 if share == 1.0 and not isinstance(share, bool) else fraction(share, "share")
        self._spent, self._looked = 0.0, False
        self.run_length = _rows_above_one(run_length)
        self.form = choice(form, "form", FORMS)
        self.detect = choice(detect, "detect", tuple(DETECT))
        self.grouped = bool(grouped)
        if not isinstance(limits, Limits | None):
            hint = "pass `limits=safecal.Limits(threshold=0.05)`."
            raise fail(OptionError, "limits", "must be a Limits", got=show(limits), hint=hint)
        self.limits = limits or Limits()
        most, judged = whole_number(max_windows, "max_windows", 1), whole_number(judged_windows, "judged_windows", 0)
        self._windows = Windows(most, judged)
        self._family: str | None = None
        self._total = Stream()
        self._groups: dict[Hashable, Stream] = {}

    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Labels | None = None,
        clip: float | None = None,
        by: ArrayLike | None = None,
        window: str | None = None,
        batch: str | None = None,
    ) -> tuple[Alarm, ...]:
        """Take in the next rows of a classifier.

        Parameters
        ----------
        y_true, y_prob, logits, pos_label, labels, clip
            As in `safecal.evaluate`.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row, where the monitor is ``grouped``; none may be missing.
        window : str, optional
            The name of the window that the rows belong to, such as a date. Windows are ordered by name.
        batch : str, optional
            An id. A batch whose id the window has seen counts no second time.

        Returns
        -------
        tuple of Alarm
            The alarms that these rows raise, in their order; empty most of the time.
        """
        predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        return self.add(predictions, by=by, window=window, batch=batch)

    def add(
        self,
        predictions: Predictions,
        *,
        by: ArrayLike | None = None,
        window: str | None = None,
        batch: str | None = None,
    ) -> tuple[Alarm, ...]:
        """Take in the next rows of any family that has a log-partition function.

        Parameters
        ----------
        predictions : Predictions
            As `bernoulli`, `categorical`, `gaussian` or `density` build them.
        by, window, batch
            As in `update`.

        Returns
        -------
        tuple of Alarm
            The alarms that these rows raise.
        """
        if (by is None) == self.grouped:
            rule = "must be given, since the monitor is grouped" if self.grouped else "needs `Monitor(grouped=True)`"
            raise fail(OptionError, "by", rule)
        for name, value in (("window", window), ("batch", batch)):
            if value is not None and not isinstance(value, str):
                raise fail(OptionError, name, "must be text", got=show(value), hint=f"pass `{name}=str(...)`.")
        if batch is not None and window is None:
            raise fail(OptionError, "batch", "needs a `window`, which remembers it", hint='pass `window="all"`.')
        if self._family != "categorical":  # a monitor that was begun with columns goes on with them
            predictions = as_odds(predictions)
        if self._family not in (None, predictions.family):
            got = f"{predictions.family} after {self._family}"
            raise fail(OptionError, "predictions", "must be of one family", got=got, hint="use a monitor for each.")
        if window is not None and not self._windows.admits(window, batch):
            return ()
        parts = [] if by is None else self._split(predictions, by)
        return tuple(self._take(predictions, parts, window, batch))

    def _split(self, predictions: Predictions, by: ArrayLike) -> list[tuple[Hashable, IndexArray]]:
        _, keys, codes = group_codes(by, predictions.n, predictions.outcome)
        if None in keys:  # which stands for all rows
            missing = codes == keys.index(None)
            raise fail(
                MissingValueError, "by", "must not be missing", got="none", place=f"row {int(missing.argmax())}",
                count=(int(missing.sum()), predictions.n), hint='name such rows, for example "unknown".',
            )  # fmt: skip
        new = [key for key in keys if key not in self._groups]
        if len(self._groups) + len(new) > MAX_GROUPS:
            got = f"{len(self._groups) + len(new)}"
            raise fail(ShapeError, "by", f"must have at most {MAX_GROUPS} different values", got=got)
        return [(key, np.flatnonzero(codes == k)) for k, key in enumerate(keys)]

    def _take(
        self, predictions: Predictions, parts: list[tuple[Hashable, IndexArray]], window: str | None, batch: str | None
    ) -> list[Alarm]:
        # Everything is worked out before anything is kept, so that a refusal leaves the monitor as it was.
        total = Stream(**{name: getattr(self._total, name) for name in Stream.__slots__})
        groups = dict(self._groups)
        alarms: list[Alarm] = []
        family = predictions.family
        shifts = self._shifts(family)
        for block in blocks(predictions, shifts=shifts):
            alarms += total.take(block, self._limits_of(None, groups, family), None, window)
        for key, index in parts:
            stream = groups.get(key, Stream())
            groups[key] = stream = Stream(**{name: getattr(stream, name) for name in Stream.__slots__})
            for block in blocks(some_rows(predictions, index), shifts=shifts):
                alarms += stream.take(block, self._limits_of(key, groups, family), key, window)
        if window is not None:
            self._windows.add(window, Tally.of(predictions), self._total.process.n, batch)
        self._family, self._total, self._groups, self._looked = family, total, groups, True
        return sorted(alarms, key=lambda alarm: alarm.row)

    def _limits_of(self, key: Hashable, groups: Mapping[Hashable, Stream], family: str | None) -> Thresholds:
        share = self.share
        if self.grouped:
            place = 1 if key is None else list(groups).index(key) + 1
            share *= 0.5 if key is None else 0.5 / (place * (place + 1))
        parts = shares(shifts=self._shifts(family or "bernoulli"))
        logs = {direction: math.log(1.0 / (self.alpha * share * part)) for direction, part in parts.items()}
        detectors = len(DETECT[self.detect])
        log_run_length = math.log(self.run_length * detectors / share)
        return Thresholds(logs, log_run_length, self.form, self.detect, self.limits)

    def _shifts(self, family: str) -> bool:
        """Tell whether shifts are looked at: where there are log-odds, and they were from the first row on."""
        return shiftable(family) and bool(self._total.process.up)

    @property
    def risk(self) -> float:
        """Probability, at most, that this monitor or one that was merged into it ever raises a false alarm.

        It counts alarms of the e-process. It is ``alpha`` where a monitor watches alone, and where monitors that
        `shards` made were merged; beyond ``alpha`` where each of those that were merged had all of it.
        """
        return min(1.0, self.alpha * (self._spent + self.share))

    @property
    def summary(self) -> Summary:
        """The sums of all rows."""
        return self._total.summary

    @property
    def ecd(self) -> float:
        """Mean excess of all rows, in nats: ``> 0`` over-confident."""
        return self._total.summary.ecd

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The groups, in the order of their appearance."""
        return tuple(self._groups)

    @property
    def direction(self) -> AlarmDirection | None:
        """The direction in which the evidence since the start has raised an alarm; the first, if several have."""
        return self._total.raised[0] if self._total.raised else None

    @property
    def directions(self) -> tuple[AlarmDirection, ...]:
        """The directions in which the evidence since the start looks."""
        return tuple(shares(shifts=self._shifts(self._family or "bernoulli")))

    def stream(self, group: Hashable = None) -> Stream:
        """Return sums and evidence of a group, or of all rows.

        Parameters
        ----------
        group : hashable, optional
            One of `groups`.

        Returns
        -------
        Stream
            With ``summary``, ``process`` and ``detector``, and ``other``, the detector of under-confidence.
        """
        if group is None:
            return self._total
        if group not in self._groups:
            raise fail(OptionError, "group", "must be one that has appeared", got=show(group))
        return self._groups[group]

    def log_e_value(self, direction: AlarmDirection = "over-confident", *, group: Hashable = None) -> float:
        """Return the logarithm of the e-value against "calibrated since the start".

        Parameters
        ----------
        direction : {"over-confident", "under-confident", "shifted up", "shifted down"}, default "over-confident"
            Which way: one of `directions`. Shifted up: the event happens more often than the model says.
        group : hashable, optional
            One of `groups`; all rows by default.

        Returns
        -------
        float
            Above ``log(1 / alpha)`` there is evidence at the level ``alpha``; below 0 the data speak for calibration.
        """
        return self.stream(group).process.log_e_value(choice(direction, "direction", self.directions))

    def e_value(self, direction: AlarmDirection = "over-confident", *, group: Hashable = None) -> float:
        """Return the e-value itself; infinite where it is too large for a float.

        Parameters
        ----------
        direction, group
            As in `log_e_value`.

        Returns
        -------
        float
            A calibrated model ever reaches ``1 / alpha`` with probability at most ``alpha``.
        """
        log = self.log_e_value(direction, group=group)
        return math.exp(log) if log < 709.0 else math.inf

    def log_change(self, direction: Side = "over-confident", *, group: Hashable = None) -> float:
        """Return the logarithm of a detector's statistic since its last alarm.

        Parameters
        ----------
        direction : {"over-confident", "under-confident"}, default "over-confident"
            Of which change; the second needs ``detect="both"``.
        group : hashable, optional
            One of `groups`; all rows by default.

        Returns
        -------
        float
            At ``threshold().log_run_length`` it raises an alarm.
        """
        stream = self.stream(group)
        if choice(direction, "direction", DETECT[self.detect]) == "over-confident":
            return stream.detector.log_e_value(self.form)
        return -math.inf if stream.other is None else stream.other.log_e_value(self.form)

    def threshold(self, *, group: Hashable = None) -> Thresholds:
        """Return what it takes to raise an alarm, after the correction for directions and groups.

        Parameters
        ----------
        group : hashable, optional
            One of `groups`; all rows by default.

        Returns
        -------
        Thresholds
            With ``log_thresholds`` for the e-process by direction, ``log_threshold`` for that of over-confidence alone,
            and ``log_run_length`` for each detector.
        """
        self.stream(group)
        return self._limits_of(group, self._groups, self._family)

    def acknowledge(self, *, group: Hashable = None) -> None:
        """Start the detectors anew after an alarm: from here on, they look for the next change.

        Parameters
        ----------
        group : hashable, optional
            One of `groups`; all rows by default.
        """
        stream = self.stream(group).acknowledged()
        if group is None:
            self._total = stream
        else:
            self._groups[group] = stream

    def windows(self, level: float = 0.95) -> dict[str, tuple[Summary, Interval]]:
        """Return the summary of each window that is kept, with the interval of its ECD.

        Parameters
        ----------
        level : float, default 0.95
            Level of each interval by itself; unlike the evidence, intervals do not survive repeated looks.

        Returns
        -------
        dict
            By the name of the window, in order.
        """
        fraction(level, "level")
        kept = {name: window.summary for name, window in sorted(self._windows.kept.items())}
        found = intervals_from_sums(as_sums(list(kept.values())), level)
        return {name: (summary, at) for (name, summary), at in zip(kept.items(), found, strict=True)}

    def to_frame(self, library: str | None = None, *, level: float = 0.95) -> Any:
        """Return the windows that are kept as a DataFrame, one row each, in order.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            Whose; by default that of pandas where it is installed, else that of Polars.
        level : float, default 0.95
            Level of each interval by itself, as in `windows`.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            ``window``, ``n``, ``n_impossible``, ``ecd``, ``ecd_low`` and ``ecd_high``.
        """
        found = self.windows(level)
        sums, ends = ([pair[j] for pair in found.values()] for j in (0, 1))
        columns: dict[str, list[Any]] = {"window": list(found)}
        columns |= {name: [getattr(s, name) for s in sums] for name in ("n", "n_impossible", "ecd")}
        columns |= {f"ecd_{name}": [getattr(at, name) for at in ends] for name in ("low", "high")}
        return frame_of(columns, library)

    def last_window(self, level: float = 0.95) -> tuple[str, Summary, Interval] | None:
        """Return the last window: its name, its summary and the interval of its ECD.

        Parameters
        ----------
        level : float, default 0.95
            Level of the interval.

        Returns
        -------
        tuple of str, Summary and Interval, or None
            None where there is no window.
        """
        fraction(level, "level")
        if not self._windows.kept:
            return None
        name = max(list(self._windows.kept))  # a copy, since another thread may be adding one
        summary = self._windows.kept[name].summary
        return name, summary, interval_from_sums(summary, level)

    def judged(self, since: int = 0) -> tuple[str, ...]:
        """Return the windows that keep all their sums, so that `tally` gives them.

        Parameters
        ----------
        since : int, default 0
            Only those of whose rows none came before this one, counted from 0.

        Returns
        -------
        tuple of str
            Their names, in order.
        """
        kept = dict(self._windows.kept)  # a copy, as in `last_window`
        return tuple(sorted(name for name, w in kept.items() if w.tally is not None and w.first >= since))

    def tally(self, window: str | None = None) -> Tally:
        """Return all sums of a window, to be judged as any rows are: ``Evaluation.of(monitor.tally("2026-01-03"))``.

        Parameters
        ----------
        window : str, optional
            One of the last ``judged_windows``; by default the last.

        Returns
        -------
        Tally
            Its sums. Unlike the evidence, a verdict of them is for one look.

        Examples
        --------
        >>> import safecal
        >>> from safecal.monitor import Monitor
        >>> monitor = Monitor()
        >>> for day in ("monday", "tuesday"):
        ...     alarms = monitor.update([1, 0, 1], [0.9, 0.2, 0.6], window=day)
        >>> safecal.Evaluation.of(monitor.tally("monday") + monitor.tally("tuesday")).n
        6
        """
        kept = self._windows.kept
        name = max(list(kept), default=None) if window is None else window  # a copy, as in `last_window`
        found = None if name is None or name not in kept else kept[name].tally
        if found is None:
            judged = [name for name in sorted(kept) if kept[name].tally is not None]
            rule = f"must be one of the last {self._windows.judged}, which keep all their sums"
            have = f"there are {show(judged[0])} to {show(judged[-1])}." if judged else "there is none yet."
            raise fail(OptionError, "window", rule, got=show(window), hint=f"{have} `judged_windows` keeps more.")
        return found

    def window_of(self, row: int) -> str | None:
        """Return the window in which a row arrived, where it is kept.

        Parameters
        ----------
        row : int
            The number of the row, counted from 0.

        Returns
        -------
        str or None
            Its name.
        """
        return self._windows.at(row)

    def shards(self, count: int) -> tuple[Self, ...]:
        """Return monitors for as many parts of the rows, to be watched apart and merged later.

        Together they have half of the ``alpha`` of this one, and what they are merged into the other half. So the
        probability that any of them ever raises a false alarm is at most ``alpha``.

        Parameters
        ----------
        count : int
            How many, at least 1.

        Returns
        -------
        tuple of Monitor
            With the settings of this one, which must not have seen rows.

        Examples
        --------
        >>> from safecal.monitor import Monitor
        >>> first, second = Monitor().shards(2)
        >>> alarms = first.update([1, 0], [0.9, 0.2]) + second.update([0, 1], [0.3, 0.8])
        >>> first.share, first.risk
        (0.25, 0.0125)
        >>> first.merge(second)
        >>> first.share, first.risk
        (0.5, 0.05)
        """
        whole_number(count, "count", 1)
        if self.summary.n:
            hint = "make the shards first: `shards = Monitor(...).shards(4)`."
            raise fail(OptionError, "shards", "must be made of a monitor without rows", got=f"{self.summary.n} rows",
                       hint=hint)  # fmt: skip
        settings = {**self._settings(), "limits": self.limits}
        return tuple(type(self)(**settings, share=self.share / (2 * count)) for _ in range(count))

    def merge(self, other: Self) -> None:
        """Take over the rows of another monitor that saw other rows with the same settings.

        Evidence adds up. A threshold that is reached only by merging is found at the next update. Shares of ``alpha``
        add up, too, to at most 1; `risk` tells what all of them spend. Monitors that were not made by `shards` have
        spent all of ``alpha`` each.

        Parameters
        ----------
        other : Monitor
            It is left as it was.
        """
        if not isinstance(other, Monitor):
            raise MergeError(f"a monitor merges with a monitor; got {type(other).__name__}.")
        if self._settings() != other._settings() or self._family not in (None, other._family or self._family):
            raise MergeError("monitors must have the same settings and families to merge.")
        if self.summary.n and other.summary.n and self.directions != other.directions:
            raise MergeError(
                "monitors must look in the same directions to merge; one of them was begun before there were shifts."
            )
        self._windows = self._windows.merged(other._windows)
        self._total = self._total.merged(other._total)
        for key, stream in other._groups.items():
            self._groups[key] = self._groups[key].merged(stream) if key in self._groups else stream
        self._family = self._family or other._family
        if not other._looked and not other._spent:  # it has seen nothing
            return
        if not self._looked and not self._spent:
            self.share, self._spent, self._looked = other.share, other._spent, other._looked
            return
        self._spent += other._spent + sum(each.share for each in (self, other) if each._looked)
        self.share, self._looked = min(1.0, self.share + other.share), False

    def _settings(self) -> dict[str, Any]:
        names = ("alpha", "run_length", "form", "detect", "grouped")
        windows = {"max_windows": self._windows.most, "judged_windows": self._windows.judged}
        return {name: getattr(self, name) for name in names} | windows | {"limits": self.limits.to_dict()}

    def to_dict(self) -> dict[str, Any]:
        """Return the state as a small JSON document."""
        groups = [[documents.plain(key), stream.to_dict()] for key, stream in self._groups.items()]
        content: dict[str, Any] = {"family": self._family, "total": self._total.to_dict(), "groups": groups}
        content |= {"share": self.share, "spent": self._spent, "looked": self._looked}
        return documents.document("monitor", self._settings() | content | {"windows": self._windows.to_dict()})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, and go on from there."""
        settings: dict[str, Any] = {
            "alpha": documents.LEVEL,
            "run_length": documents.between(1.0, inside=True),
            "form": documents.choice(*FORMS),
            "grouped": documents.flag,
            "max_windows": documents.count(1),
        }
        state = {
            "family": documents.optional(documents.words),
            "total": Stream.from_dict,
            "groups": documents.list_of(_read_group, 0, MAX_GROUPS),
            "windows": Windows.from_dict,
        }
        later: dict[str, Any] = {
            "detect": documents.choice(*DETECT),
            "judged_windows": documents.count(),
            "limits": Limits.from_dict,
        }
        later |= {"share": documents.between(1e-9, 1.0), "spent": documents.between(0.0, 1e9), "looked": documents.flag}
        content = documents.read("monitor", document, settings | state, later)
        family, total, groups, windows = (content.pop(name) for name in state)
        spent, looked = content.pop("spent", 0.0), content.pop("looked", total.summary.n > 0)
        found = cls(**{"judged_windows": windows.judged} | content)
        given = found._windows
        found._family, found._total, found._groups, found._windows = family, total, dict(groups), windows
        found._spent, found._looked = spent, looked
        found._check(groups, given)
        return found

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of the documents that `to_dict` writes; ``$defs`` has that of an alarm, too.

        Returns
        -------
        dict
            A schema of draft 2020-12.
        """
        return documents.schema("monitor-1", "evaluation-2")

    def _check(self, groups: list[tuple[Hashable, Stream]], given: Windows) -> None:
        """Refuse a state whose parts are not of the same rows."""
        n, windows = self.summary.n, self._windows
        keys = [key for key, _ in groups]
        inside = windows.earlier.n + sum(window.summary.n for window in windows.kept.values())
        documents.every((
            ((given.most, given.judged) == (windows.most, windows.judged), "must keep as many `windows` as it says"),
            ((self._family is None) == (n == 0), "must have a `family` where it has rows, and none where it has none"),
            (
                n == 0 or not self._total.process.up or shiftable(self._family),
                f"must not look at shifts of {self._family} predictions",
            ),
            (len(set(keys)) == len(keys) and None not in keys, "must have different `groups`, none of them null"),
            (
                sum(stream.summary.n for _, stream in groups) == (n if self.grouped else 0),
                "must have each of its rows in one of the `groups`" if self.grouped else "must have no `groups`",
            ),
            (
                all(bool(stream.process.up) == bool(self._total.process.up) for _, stream in groups),
                "must look at shifts in all `groups`, or in none",
            ),
            (inside <= n, "must have no more rows in its `windows` than in all"),
        ))  # fmt: skip

    def __repr__(self) -> str:
        s = self.summary
        logs = {direction: self.log_e_value(direction) / math.log(10.0) for direction in self.directions}
        told = f", {self.direction}" if self.direction else ""
        changed = ", changed" if self._total.changes else ""
        names = zip(("over", "under", "up", "down"), logs.values(), strict=False)
        told += f", risk {self.risk:.3g}" if self.risk > self.alpha * (1.0 + 1e-9) else ""
        evidence = "log10 e-value " + ", ".join(f"{log:+.2f} {name}" for name, log in names)
        return f"Monitor({s.n} rows, ecd={s.ecd:+.4g}, {evidence}{told}{changed})"


def _rows_above_one(value: Any) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 1.0 < value < math.inf:
        raise fail(RangeError, "run_length", "must be a finite number of rows above 1", got=show(value))
    return float(value)


def _read_group(value: Any) -> tuple[Hashable, Stream]:
    if not isinstance(value, list) or len(value) != 2:
        documents.refuse("must be a key and a stream", value)
    with documents.at(0):
        key = documents.key(value[0])
    with documents.at(1):
        return key, Stream.from_dict(value[1])
