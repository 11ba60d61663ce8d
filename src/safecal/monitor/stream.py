"""The evidence of one stream of rows: all of them, or those of one group."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._sums.scored import summaries, summed
from .._sums.summary import Summary
from .._types import AlarmDirection, Detect, FloatArray, Form, Side
from ..errors import MergeError
from ..options import Limits
from .alarm import Alarm, Size, size_columns, sums_of
from .detector import Detector
from .process import DIRECTIONS, OVER, SHIFTED, UNDER, Block, Process, mixed

__all__ = ["DETECT", "Stream", "Thresholds"]

# The directions in which changes are looked for.
DETECT: dict[Detect, tuple[Side, ...]] = {"over": ("over-confident",), "both": ("over-confident", "under-confident")}


@final
@dataclass(frozen=True, slots=True)
class Thresholds:
    """What it takes to raise an alarm."""

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

    def take(self, block: Block, limits: Thresholds, group: Hashable, window: str | None) -> list[Alarm]:
        """Take in the next rows, look after each of them, and return the alarms that they raise."""
        columns = size_columns(block.scored)
        found = self._since_the_start(block, columns, limits)
        self.process += Process.of(block)
        self.summary += summaries(summed(block.scored))[0]
        self.detector, change = self._change("over-confident", self.detector, block, columns, limits)
        found.append(change)
        if "under-confident" in DETECT[limits.detect]:
            other = Detector.start(len(UNDER)) if self.other is None else self.other
            self.other, change = self._change("under-confident", other, block, columns, limits)
            found.append(change)
        return [replace(alarm, group=group, window=window) for alarm in found if alarm is not None]

    def _since_the_start(self, block: Block, columns: FloatArray, limits: Thresholds) -> list[Alarm | None]:
        """Compare the e-process after each row with its threshold; each direction raises one alarm in all.

        A shift raises none while over-confidence explains the rows better.
        """
        found: list[Alarm | None] = []
        every = zip(DIRECTIONS, (block.over, block.under, block.up, block.down), strict=True)
        for direction, logs in every:
            if not len(logs) or direction in self.raised or self.process.n_impossible:
                continue
            asked = limits.log_thresholds[direction]
            path = np.cumsum(logs, axis=1)
            start = np.array(self.process.logs(direction))
            if (path.max(axis=1) + start).max() < asked:  # a mean is never larger than the largest
                continue
            path += start[:, None]
            mean = mixed(path)
            hit = mean >= asked
            if direction in SHIFTED and hit.any():
                # What is too sharp scatters more than it says, which in the long run looks like a shift as well.
                over = np.array(self.process.over)[:, None] + np.cumsum(block.over, axis=1)
                hit &= mean >= mixed(over)
            if hit.any():
                row = int(hit.argmax())
                at = math.inf if block.impossible[row] else float(mean[row])
                self.raised += (direction,)
                size = Size.of(sums_of(self.summary) + columns[:, : row + 1].sum(axis=1), limits.allowed)
                found.append(Alarm("since the start", direction, None, self.process.n + row, at, asked, 0, size=size))
        return found

    def _change(
        self, direction: Side, detector: Detector, block: Block, columns: FloatArray, limits: Thresholds
    ) -> tuple[Detector, Alarm | None]:
        """Advance a detector through the block, and tell where it first reaches its threshold."""
        logs = block.over if direction == "over-confident" else block.under
        most = math.inf if direction in self.changes else limits.log_run_length
        detector, hit = detector.advance(logs, limits.form, most, columns)
        if hit is None:
            return detector, None
        row = detector.n - 1
        self.changes += (direction,)
        at = math.inf if block.impossible[hit.row] else hit.log_e_value
        size = Size.of(hit.sums, limits.allowed)
        alarm = Alarm("change", direction, None, row, at, limits.log_run_length, hit.began, size=size)
        rest = slice(hit.row + 1, None)
        if hit.row + 1 < logs.shape[1]:
            detector, _ = detector.advance(logs[:, rest], limits.form, math.inf, columns[:, rest])
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
            tuple(d for d in DIRECTIONS if d in mine or d in theirs)
            for mine, theirs in ((self.raised, other.raised), (self.changes, other.changes))
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
        found = documents.read("stream", document, fields, {"other": Detector.from_dict})
        raised, changes, other = tuple(found["raised"]), found.pop("changed"), found.get("other")
        stream = cls(**found | {"raised": raised, "changes": changes})
        s, process, detector = stream.summary, stream.process, stream.detector
        documents.every((
            (len(set(raised)) == len(raised), "must have `raised` each alarm once"),
            (s.n == process.n == detector.n, "must have as many rows in `summary`, `process` and `detector`"),
            (s.n_impossible == process.n_impossible, "must have as many impossible rows in `summary` and `process`"),
            (len(detector.log_r) == len(OVER), f"must have a `detector` of {len(OVER)} inverse temperatures"),
            (
                other is None or (len(other.log_r) == len(UNDER) and other.n <= s.n),
                f"must have an `other` detector of {len(UNDER)} inverse temperatures, of no more rows",
            ),
        ))  # fmt: skip
        return stream


def _read_changes(value: Any) -> tuple[AlarmDirection, ...]:
    """Read which detectors have raised an alarm; early documents had one, and said yes or no."""
    if isinstance(value, bool):
        return DETECT["over"] if value else ()
    found = documents.list_of(documents.choice(*DETECT["both"]))(value)
    documents.distinct(found, "directions")
    return tuple(found)
