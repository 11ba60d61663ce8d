"""The state of a monitor, and its answers: sums, evidence, thresholds, windows."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from .._checks import fail, show
from .._checks.columns import choice, fraction, steadied, whole_number
from .._sums import Tally
from .._sums.summary import Summary, as_sums
from .._sums.table_views import frame_of
from .._types import AlarmDirection, Detect, Form, Side
from ..errors import OptionError, RangeError
from ..families import family_named
from ..inference import Interval
from ..inference.sum_bounds import interval_from_sums, intervals_from_sums
from ..options import Limits
from .evidence import FORMS, shares
from .records import DETECT, Stream, Thresholds, Windows

__all__ = ["MonitorState"]


@steadied
class MonitorState(ABC):
    """Settings, sums and evidence of a monitor, and its answers about them. `Monitor` takes rows in."""

    __slots__ = (
        "_family", "_groups", "_looked", "_spent", "_total", "_windows",
        "alpha", "detect", "form", "grouped", "limits", "run_length", "share",
    )  # fmt: skip

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

    def _thresholds_of(self, key: Hashable, groups: Mapping[Hashable, Stream], family: str | None) -> Thresholds:
        share = self.share
        if self.grouped:
            place = 1 if key is None else list(groups).index(key) + 1
            share *= 0.5 if key is None else 0.5 / (place * (place + 1))
        parts = shares(shifts=self._shifts(family))
        logs = {direction: math.log(1.0 / (self.alpha * share * part)) for direction, part in parts.items()}
        detectors = len(DETECT[self.detect])
        log_run_length = math.log(self.run_length * detectors / share)
        return Thresholds(logs, log_run_length, self.form, self.detect, self.limits)

    def _shifts(self, family: str | None) -> bool:
        """Tell whether shifts are looked at: where there are log-odds, and they were from the first row on."""
        return (family is None or family_named(family).has_odds) and bool(self._total.process.up)

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
        return tuple(shares(shifts=self._shifts(self._family)))

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
            raise fail(OptionError, "group", "must be a group that has appeared", got=show(group))
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
        """Return the thresholds at which alarms are raised, after the correction for directions and groups.

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
        return self._thresholds_of(group, self._groups, self._family)

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
        intervals = intervals_from_sums(as_sums(list(kept.values())), level)
        return {name: (summary, interval) for (name, summary), interval in zip(kept.items(), intervals, strict=True)}

    def to_frame(self, library: str | None = None, *, level: float = 0.95) -> Any:
        """Return the windows that are kept as a DataFrame, one row each, in order.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.
        level : float, default 0.95
            Level of each interval by itself, as in `windows`.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            ``window``, ``n``, ``n_impossible``, ``ecd``, ``ecd_low`` and ``ecd_high``.
        """
        windows = self.windows(level)
        columns: dict[str, list[Any]] = {"window": list(windows)}
        columns |= {name: [getattr(s, name) for s, _ in windows.values()] for name in ("n", "n_impossible", "ecd")}
        columns |= {
            f"ecd_{end}": [getattr(interval, end) for _, interval in windows.values()] for end in ("low", "high")
        }
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
            Only windows all of whose rows came at this row or later, counted from 0.

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
        tally = None if name is None or name not in kept else kept[name].tally
        if tally is None:
            judged = [name for name in sorted(kept) if kept[name].tally is not None]
            rule = f"must be one of the last {self._windows.judged}, which keep all their sums"
            have = f"there are {show(judged[0])} to {show(judged[-1])}." if judged else "there is none yet."
            raise fail(OptionError, "window", rule, got=show(window), hint=f"{have} `judged_windows` keeps more.")
        return tally

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

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the state as a small JSON document."""

    def _settings(self) -> dict[str, Any]:
        names = ("alpha", "run_length", "form", "detect", "grouped")
        windows = {"max_windows": self._windows.most, "judged_windows": self._windows.judged}
        return {name: getattr(self, name) for name in names} | windows | {"limits": self.limits.to_dict()}


def _rows_above_one(value: Any) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 1.0 < value < math.inf:
        raise fail(RangeError, "run_length", "must be a finite number of rows above 1", got=show(value))
    return float(value)
