"""A deployed model, watched: evidence of over-confidence that survives looking after every row."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._checks import fail, show
from .._checks.columns import group_codes, steadied, whole_number
from .._sums import Tally
from .._types import ArrayLike, By, IndexArray, Labels
from ..errors import MergeError, MissingValueError, OptionError, ShapeError
from ..families import Predictions, classifier
from ..files import schema
from ..options import Limits
from .alarm import Alarm
from .evidence import FORMS, blocks
from .records import DETECT, Stream, Windows
from .state import MonitorState

__all__ = ["Alarm", "Monitor"]

MAX_GROUPS = 1000


@final
@steadied
class Monitor(MonitorState):
    """Watch a model: whether it is calibrated since the start, and whether that changed at some row.

    Two kinds of evidence grow with every row. The *e-process* speaks about all rows since the start. If the model has
    been calibrated all along, the probability that it ever raises an alarm is at most ``alpha``, however often one
    looks. The *detector* speaks about a change. While the model is calibrated, it raises an alarm no more often than
    once in ``run_length`` rows, on average. After an alarm it is silent until `acknowledge` starts it anew. It looks
    for over-confidence, and on request for under-confidence as well.

    The order rule: a prediction must be fixed before its outcome is known. Rows are taken in as they come; labels can
    be late, as long as the outcome is not the reason.

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
        The last windows, of which `tally` keeps all sums: tens of kilobytes each in the state. Older ones keep the
        sums that `windows` shows.
    limits : Limits, optional
        What a verdict allows: alarms compare their size with it. Evidence and thresholds do not depend on it.
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
    changed at about row 6001, too sharp: ECD 1, beyond the limit of 0.1; e-value 1.76e+05 at row 6017, ...
    not calibrated since the start, too sharp: ECD 0.027, within the limit of 0.1; e-value 56.3 at row 6813, ...
    """

    __slots__ = ()

    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Labels | None = None,
        clip: float | None = None,
        by: By | None = None,
        window: str | None = None,
        batch: str | None = None,
    ) -> tuple[Alarm, ...]:
        """Take in the next rows of a classifier.

        Parameters
        ----------
        y_true, y_prob, logits, pos_label, labels, clip
            As in `safecal.evaluate`.
        by : array-like of shape (n,), or mapping of names to such, optional
            The group of each row, where the monitor is ``grouped``; none must be missing.
        window : str, optional
            The name of the window that the rows belong to, such as a date. Windows are ordered by name.
        batch : str, optional
            An id. A batch whose id the window has seen before is not counted again.

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
        by: By | None = None,
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
        if predictions.family != self._family:  # a monitor that was begun with columns goes on with them
            predictions = predictions.as_odds()
        if self._family not in (None, predictions.family):
            got = f"{predictions.family} after {self._family}"
            raise fail(OptionError, "predictions", "must be of one family", got=got, hint="use a monitor for each.")
        if window is not None and not self._windows.admits(window, batch):
            return ()
        parts = [] if by is None else self._split(predictions, by)
        return tuple(self._take(predictions, parts, window, batch))

    def _split(self, predictions: Predictions, by: By) -> list[tuple[Hashable, IndexArray]]:
        name, keys, codes = group_codes(by, predictions.n, predictions.outcome)
        if None in keys:  # which stands for all rows
            missing, rule = codes == keys.index(None), "must not hold missing values"
            raise fail(
                MissingValueError, name if isinstance(by, Mapping) else "by", rule, got="nothing",
                place=f"row {int(missing.argmax())}", count=(int(missing.sum()), predictions.n),
                hint='name such rows, for example "unknown".',
            )  # fmt: skip
        if (count := len(self._groups.keys() | set(keys))) > MAX_GROUPS:
            raise fail(ShapeError, "by", f"must have at most {MAX_GROUPS} different values", got=f"{count}")
        return [(key, np.flatnonzero(codes == k)) for k, key in enumerate(keys)]

    def _take(
        self, predictions: Predictions, parts: list[tuple[Hashable, IndexArray]], window: str | None, batch: str | None
    ) -> list[Alarm]:
        # Everything is worked out before anything is kept, so that a refusal leaves the monitor as it was.
        total, groups = replace(self._total), dict(self._groups)
        alarms: list[Alarm] = []
        family = predictions.family
        shifts = self._shifts(family)
        for block in blocks(predictions, shifts=shifts):
            alarms += total.take(block, self._thresholds_of(None, groups, family), None, window)
        for key, index in parts:
            groups[key] = stream = replace(groups.get(key, Stream()))
            for block in blocks(predictions.take(index), shifts=shifts):
                alarms += stream.take(block, self._thresholds_of(key, groups, family), key, window)
        if window is not None:
            self._windows.add(window, Tally.of(predictions), self._total.process.n, batch)
        self._family, self._total, self._groups, self._looked = family, total, groups, True
        return sorted(alarms, key=lambda alarm: alarm.row)

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

    def shards(self, count: int) -> tuple[Self, ...]:
        """Return a monitor for each of some parts of the rows, to watch them separately and be merged later.

        Together they have half of the ``alpha`` of this one; the monitor that they are merged into has the other half.
        So the probability that any of them ever raises a false alarm is at most ``alpha``.

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
        add up, too, to at most 1; `risk` is the sum that all of them spend. Monitors that were not made by `shards`
        have spent all of ``alpha`` each.

        Parameters
        ----------
        other : Monitor
            It is left as it was.
        """
        if not isinstance(other, Monitor):
            raise MergeError(f"a monitor merges with a monitor; got {type(other).__name__}.")
        if other is self:
            raise MergeError("a monitor does not merge with itself: its rows would count twice.")
        if self._settings() != other._settings() or self._family not in (None, other._family or self._family):
            raise MergeError("monitors must have the same settings and families to merge.")
        if self.summary.n and other.summary.n and self.directions != other.directions:
            raise MergeError(
                "monitors must look in the same directions to merge; one of them was begun before there were shifts."
            )
        together = len(self._groups.keys() | other._groups.keys())
        if together > MAX_GROUPS:
            raise MergeError(f"monitors must have at most {MAX_GROUPS} groups together to merge; got {together}.")
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
        later_fields: dict[str, Any] = {
            "detect": documents.choice(*DETECT),
            "judged_windows": documents.count(),
            "limits": Limits.from_dict,
            "share": documents.between(1e-9, 1.0),
            "spent": documents.between(0.0, 1e9),
            "looked": documents.flag,
        }
        content = documents.read("monitor", document, settings | state, later_fields)
        family, total, groups, windows = (content.pop(name) for name in state)
        spent, looked = content.pop("spent", 0.0), content.pop("looked", total.summary.n > 0)
        monitor = cls(**{"judged_windows": windows.judged} | content)
        most, judged = monitor._windows.most, monitor._windows.judged
        with_windows = (most, judged) == (windows.most, windows.judged)
        documents.every([(with_windows, "must keep as many `windows` as it says")])
        monitor._family, monitor._total, monitor._groups, monitor._windows = family, total, dict(groups), windows
        monitor._spent, monitor._looked = spent, looked
        monitor._check(groups)
        return monitor

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of the documents that `to_dict` writes; ``$defs`` has that of an alarm, too.

        Returns
        -------
        dict
            A schema of draft 2020-12.
        """
        return schema("monitor-1", "evaluation-2")

    def _check(self, groups: list[tuple[Hashable, Stream]]) -> None:
        """Refuse a state whose parts are not of the same rows."""
        n, windows = self.summary.n, self._windows
        keys = [key for key, _ in groups]
        rows_in_windows = windows.earlier.n + sum(window.summary.n for window in windows.kept.values())
        documents.every((
            ((self._family is None) == (n == 0), "must have a `family` where it has rows, and none where it has none"),
            (n == 0 or not self._total.process.up or self._shifts(self._family),
             f"must not look at shifts of {self._family} predictions"),
            (len(set(keys)) == len(keys) and None not in keys, "must have different `groups`, none of them null"),
            (sum(stream.summary.n for _, stream in groups) == (n if self.grouped else 0),
             "must have each of its rows in one of the `groups`" if self.grouped else "must have no `groups`"),
            (all(bool(stream.process.up) == bool(self._total.process.up) for _, stream in groups),
             "must look at shifts in all `groups`, or in none"),
            (rows_in_windows <= n, "must have no more rows in its `windows` than in all"),
        ))  # fmt: skip

    def __repr__(self) -> str:
        logs = (self.log_e_value(direction) / math.log(10.0) for direction in self.directions)
        names = zip(("over", "under", "up", "down"), logs, strict=False)
        evidence = "log10 e-value " + ", ".join(f"{log:+.2f} {name}" for name, log in names)
        remarks = f", {self.direction}" if self.direction else ""
        remarks += f", risk {self.risk:.3g}" if self.risk > self.alpha * (1.0 + 1e-9) else ""
        remarks += ", changed" if self._total.changes else ""
        return f"Monitor({self.summary.n} rows, ecd={self.summary.ecd:+.4g}, {evidence}{remarks})"


def _read_group(value: Any) -> tuple[Hashable, Stream]:
    if not isinstance(value, list) or len(value) != 2:
        documents.refuse("must be a key and a stream", value)
    with documents.at(0):
        key = documents.key(value[0])
    with documents.at(1):
        return key, Stream.from_dict(value[1])
