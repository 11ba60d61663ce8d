"""What a monitor keeps of its rows: sums and evidence of each stream, and sums by window of time.

A stream is all rows, or those of a group. The last few windows keep all sums of their rows, so that they can be judged
as any evaluation is. Those before them keep a summary: all sums of a window are tens of kilobytes, and the state is
written down after every batch.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._checks import fail, show
from .._sums import Tally
from .._sums.scored import summed
from .._sums.summary import Summary, summaries
from .._types import AlarmDirection, Detect, FloatArray, Form, Side
from ..errors import MergeError, OptionError
from ..options import Limits
from .alarm import Alarm, Size, size_columns, size_sums
from .evidence import DIRECTIONS, OVER, SHIFTED, UNDER, Block, Detector, Process, log_mean

__all__ = ["DETECT", "Stream", "Thresholds", "Window", "Windows"]

# The directions in which changes are looked for.
DETECT: dict[Detect, tuple[Side, ...]] = {"over": ("over-confident",), "both": ("over-confident", "under-confident")}


@final
@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds at which alarms are raised."""

    log_thresholds: Mapping[AlarmDirection, float]  # of the e-process, by direction
    log_run_length: float  # of each detector
    form: Form
    detect: Detect = "over"
    allowed: Limits = field(default_factory=Limits)  # of a verdict, beside which an alarm tells its size

    @property
    def log_threshold(self) -> float:
        """Of the e-process for over-confidence."""
        return self.log_thresholds["over-confident"]


@final
@dataclass(slots=True)
class Stream:
    """Sums and evidence of the rows so far.

    ``raised`` names the directions whose e-process has raised its alarm. ``changes`` names those whose detector has
    raised one since it was last restarted: until then it raises no other. ``other`` is the detector of
    under-confidence, where that is looked for.
    """

    summary: Summary = field(default_factory=Summary)
    process: Process = field(default_factory=Process)
    detector: Detector = field(default_factory=Detector)
    raised: tuple[AlarmDirection, ...] = ()
    changes: tuple[AlarmDirection, ...] = ()
    other: Detector | None = None

    @property
    def changed(self) -> bool:
        """Whether the detector of over-confidence has raised an alarm since it was last restarted."""
        return "over-confident" in self.changes

    def take(self, block: Block, thresholds: Thresholds, group: Hashable, window: str | None) -> list[Alarm]:
        """Take in the next rows, look after each of them, and return the alarms that they raise."""
        columns = size_columns(block.scored)
        alarms = self._since_the_start(block, columns, thresholds)
        self.process += Process.of(block)
        self.summary += summaries(summed(block.scored))[0]
        self.detector, change = self._change("over-confident", self.detector, block, columns, thresholds)
        alarms.append(change)
        if "under-confident" in DETECT[thresholds.detect]:
            other = Detector.start(len(UNDER)) if self.other is None else self.other
            self.other, change = self._change("under-confident", other, block, columns, thresholds)
            alarms.append(change)
        return [replace(alarm, group=group, window=window) for alarm in alarms if alarm is not None]

    def _since_the_start(self, block: Block, columns: FloatArray, thresholds: Thresholds) -> list[Alarm | None]:
        """Compare the e-process after each row with its threshold; each direction raises one alarm in all.

        A shift raises none while over-confidence explains the rows better.
        """
        alarms: list[Alarm | None] = []
        logs_by_direction = zip(DIRECTIONS, (block.over, block.under, block.up, block.down), strict=True)
        for direction, logs in logs_by_direction:
            if not len(logs) or direction in self.raised or self.process.n_impossible:
                continue
            log_threshold = thresholds.log_thresholds[direction]
            path = np.cumsum(logs, axis=1)
            start = np.array(self.process.logs(direction))
            if (path.max(axis=1) + start).max() < log_threshold:  # a mean is never larger than the largest
                continue
            path += start[:, None]
            log_e_values = log_mean(path)
            hit = log_e_values >= log_threshold
            if direction in SHIFTED and hit.any():
                # What is too sharp scatters more than it says, which in the long run looks like a shift as well.
                over = np.array(self.process.over)[:, None] + np.cumsum(block.over, axis=1)
                hit &= log_e_values >= log_mean(over)
            if hit.any():
                row = int(hit.argmax())
                log_e_value = math.inf if block.impossible[row] else float(log_e_values[row])
                self.raised += (direction,)
                size = Size.of(size_sums(self.summary) + columns[:, : row + 1].sum(axis=1), thresholds.allowed)
                row += self.process.n
                alarms.append(Alarm("since the start", direction, None, row, log_e_value, log_threshold, 0, size=size))
        return alarms

    def _change(
        self, direction: Side, detector: Detector, block: Block, columns: FloatArray, thresholds: Thresholds
    ) -> tuple[Detector, Alarm | None]:
        """Advance a detector through the block, and tell where it first reaches its threshold."""
        logs = block.over if direction == "over-confident" else block.under
        log_threshold = math.inf if direction in self.changes else thresholds.log_run_length
        detector, crossing = detector.advance(logs, thresholds.form, log_threshold, columns)
        if crossing is None:
            return detector, None
        row = detector.n - 1
        self.changes += (direction,)
        log_e_value = math.inf if block.impossible[crossing.row] else crossing.log_e_value
        size = Size.of(crossing.sums, thresholds.allowed)
        alarm = Alarm("change", direction, None, row, log_e_value, thresholds.log_run_length, crossing.began, size=size)
        after = crossing.row + 1
        if after < logs.shape[1]:
            detector, _ = detector.advance(logs[:, after:], thresholds.form, math.inf, columns[:, after:])
        return detector, alarm

    def acknowledged(self) -> Self:
        """Return the stream with its detectors started anew."""
        other = None if self.other is None else self.other.restarted()
        return replace(self, detector=self.detector.restarted(), other=other, changes=())

    def merged(self, other: Self) -> Self:
        """Return the stream of the rows of both."""
        if not isinstance(other, Stream):
            raise MergeError("a stream merges with a stream.")
        raised, changes = (
            tuple(d for d in DIRECTIONS if d in getattr(self, name) or d in getattr(other, name))
            for name in ("raised", "changes")
        )
        others = [detector for detector in (self.other, other.other) if detector is not None]
        return type(self)(
            self.summary + other.summary,
            self.process + other.process,
            self.detector + other.detector,
            raised,
            changes,
            sum(others[1:], others[0]) if others else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        parts = {name: getattr(self, name).to_dict() for name in ("summary", "process", "detector")}
        if self.other is not None:
            parts["other"] = self.other.to_dict()
        return documents.document("stream", {**parts, "raised": list(self.raised), "changed": list(self.changes)})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, now or when there was one detector."""
        fields = {
            "summary": Summary.from_dict,
            "process": Process.from_dict,
            "detector": Detector.from_dict,
            "raised": documents.list_of(documents.choice(*DIRECTIONS)),
            "changed": _read_changes,
        }
        content = documents.read("stream", document, fields, {"other": Detector.from_dict})
        raised, changes, other = tuple(content["raised"]), content.pop("changed"), content.get("other")
        stream = cls(**content | {"raised": raised, "changes": changes})
        s, process, detector = stream.summary, stream.process, stream.detector
        documents.every((
            (len(set(raised)) == len(raised), "must have `raised` each alarm once"),
            (s.n == process.n == detector.n, "must have as many rows in `summary`, `process` and `detector`"),
            (s.n_impossible == process.n_impossible, "must have as many impossible rows in `summary` and `process`"),
            (len(detector.log_r) == len(OVER), f"must have a `detector` of {len(OVER)} inverse temperatures"),
            (other is None or (len(other.log_r) == len(UNDER) and other.n <= s.n),
             f"must have an `other` detector of {len(UNDER)} inverse temperatures, of no more rows"),
        ))  # fmt: skip
        return stream


def _read_changes(value: Any) -> tuple[AlarmDirection, ...]:
    """Read which detectors have raised an alarm; early documents had one, and said yes or no."""
    if isinstance(value, bool):
        return DETECT["over"] if value else ()
    directions = documents.list_of(documents.choice(*DETECT["both"]))(value)
    documents.distinct(directions, "directions")
    return tuple(directions)


@final
@dataclass(slots=True)
class Window:
    """The rows of one window: their sums, the number of the first row to arrive, and the batches they came in.

    ``tally`` is None where the window keeps its summary alone.
    """

    summary: Summary = field(default_factory=Summary)
    first: int = 0
    batches: set[str] = field(default_factory=set)
    tally: Tally | None = None


@final
@dataclass(slots=True)
class Windows:
    """The last windows by name, in the order of their names, and the sum of those that were closed before.

    A batch can come late, as long as its window is among the last ``most``. A batch with an id counts once. The last
    ``judged`` windows keep a tally.
    """

    most: int = 366
    judged: int = 7
    kept: dict[str, Window] = field(default_factory=dict)
    earlier: Summary = field(default_factory=Summary)
    closed: str | None = None  # the last window that was closed

    def admits(self, name: str, batch: str | None) -> bool:
        """Tell whether a batch is new to its window; refuse it where the window was closed."""
        if self.closed is not None and name <= self.closed:
            raise fail(
                OptionError, "window", f"must be later than {self.closed!r}, the last that was closed", got=show(name),
                hint=f"the last {self.most} windows take late batches; raise `max_windows` for more.",
            )  # fmt: skip
        return batch is None or name not in self.kept or batch not in self.kept[name].batches

    def add(self, name: str, tally: Tally, first: int, batch: str | None) -> None:
        """Add the rows of a batch to its window; close the first windows where there are too many.

        Raises MergeError, and adds nothing, where the rows are not of the kind that the window holds.
        """
        window = self.kept.get(name, Window(first=first, tally=Tally()))
        if window.tally is not None:
            window.tally += tally
        self.kept[name] = window
        window.summary += tally.summary
        if batch is not None:
            window.batches.add(batch)
        self._trim()

    def _trim(self) -> None:
        """Reduce windows that are not among the last to summaries, and close the first."""
        for name in sorted(self.kept)[: max(len(self.kept) - self.judged, 0)]:
            self.kept[name].tally = None
        while len(self.kept) > self.most:
            self.closed = min(self.kept)
            self.earlier += self.kept.pop(self.closed).summary

    def at(self, row: int) -> str | None:
        """Return the window in which a row arrived, where it is known."""
        before = [(window.first, name) for name, window in self.kept.items() if window.first <= row]
        return max(before)[1] if before else None

    def merged(self, other: Self) -> Self:
        """Return the windows of both; a batch that both have seen would count twice, and is refused."""
        merged = type(self)(self.most, self.judged, earlier=self.earlier + other.earlier)
        merged.closed = max((x for x in (self.closed, other.closed) if x is not None), default=None)
        for name in sorted({*self.kept, *other.kept}):
            same_windows = [side.kept[name] for side in (self, other) if name in side.kept]
            if len(same_windows) == 2 and (twice := same_windows[0].batches & same_windows[1].batches):
                hint = "each batch belongs to one of the two."
                got = f"{show(min(twice))} in both"
                raise fail(OptionError, "other", "must not hold a batch that this one holds", got=got, hint=hint)
            joined = Window(sum((w.summary for w in same_windows), Summary()), min(w.first for w in same_windows))
            joined.batches.update(*(w.batches for w in same_windows))
            tallies = [w.tally for w in same_windows if w.tally is not None]
            joined.tally = sum(tallies, Tally()) if len(tallies) == len(same_windows) else None
            merged.kept[name] = joined
        merged._trim()
        return merged

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        kept = {
            name: {"summary": w.summary.to_dict(), "first": w.first, "batches": sorted(w.batches)}
            | ({} if w.tally is None else {"tally": w.tally.to_dict()})
            for name, w in sorted(self.kept.items())
        }
        content = {"most": self.most, "judged": self.judged, "kept": kept}
        content |= {"earlier": self.earlier.to_dict(), "closed": self.closed}
        return documents.document("windows", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        window = documents.record(
            {"summary": Summary.from_dict, "first": documents.count(), "batches": _read_batches},
            {"tally": Tally.from_dict},
        )
        fields = {
            "most": documents.count(1),
            "kept": documents.mapping_of(window),
            "earlier": Summary.from_dict,
            "closed": documents.optional(documents.text),
        }
        content = documents.read("windows", document, fields, {"judged": documents.count()})
        content["kept"] = {name: Window(**window_content) for name, window_content in content["kept"].items()}
        windows = cls(**content)
        kept, first = windows.kept.values(), min(windows.kept, default=None)
        documents.every((
            (len(kept) <= windows.most, f"must have at most {windows.most} windows `kept`, as `most` says"),
            (windows.closed is None or first is None or windows.closed < first,
             "must keep windows that are later than the last that was `closed`"),
            (all(w.tally is None or w.tally.n == w.summary.n for w in kept),
             "must have as many rows in each `tally` as in its `summary`"),
        ))  # fmt: skip
        return windows


def _read_batches(value: Any) -> set[str]:
    batches = documents.list_of(documents.text)(value)
    if batches != sorted(set(batches)):
        documents.refuse("must be in order, each batch once")
    return set(batches)
