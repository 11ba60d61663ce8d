"""The evidence of one stream of rows: all of them, or those of one group."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import numpy as np

from .. import documents
from ..errors import MergeError
from ..summary import Summary, summaries, summed
from .alarm import Alarm
from .detector import Detector
from .grid import Block
from .process import DIRECTIONS, Process, mixed

__all__ = ["Limits", "Stream"]


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """What it takes to raise an alarm."""

    log_thresholds: Mapping[str, float]  # of the e-process, by direction
    log_run_length: float  # of the detector
    form: str

    @property
    def log_threshold(self) -> float:
        """Of the e-process for over-confidence."""
        return self.log_thresholds["over-confident"]


@final
@dataclass(slots=True)
class Stream:
    """Sums and evidence of the rows so far.

    ``raised`` names the directions whose e-process has raised its alarm. ``changed`` tells whether the detector has
    raised one since it was last restarted: until then it raises no other.
    """

    summary: Summary = field(default_factory=Summary)
    process: Process = field(default_factory=Process)
    detector: Detector = field(default_factory=Detector)
    raised: tuple[str, ...] = ()
    changed: bool = False

    def take(self, block: Block, limits: Limits, group: Hashable, window: str | None) -> list[Alarm]:
        """Take in the next rows, look after each of them, and return the alarms that they raise."""
        found = self._since_the_start(block, limits, group, window)
        self.process += Process.of(block)
        self.summary += summaries(summed(block.scored))[0]
        return found + self._change(block, limits, group, window)

    def _since_the_start(self, block: Block, limits: Limits, group: Hashable, window: str | None) -> list[Alarm]:
        """Compare the e-process after each row with its threshold; each direction raises one alarm in all."""
        found = []
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
            if (mean >= asked).any():
                row = int((mean >= asked).argmax())
                at = math.inf if block.impossible[row] else float(mean[row])
                self.raised += (direction,)
                found.append(Alarm("since the start", direction, group, self.process.n + row, at, asked, 0, window))
        return found

    def _change(self, block: Block, limits: Limits, group: Hashable, window: str | None) -> list[Alarm]:
        """Advance the detector through the block, and tell where it first reaches its threshold."""
        most = math.inf if self.changed else limits.log_run_length
        self.detector, hit = self.detector.advance(block.over, limits.form, most)
        if hit is None:
            return []
        row, self.changed = self.detector.n - 1, True
        at = math.inf if block.impossible[hit.row] else hit.log_e_value
        alarm = Alarm("change", "over-confident", group, row, at, limits.log_run_length, hit.began, window)
        if hit.row + 1 < block.over.shape[1]:
            self.detector, _ = self.detector.advance(block.over[:, hit.row + 1 :], limits.form, math.inf)
        return [alarm]

    def acknowledged(self) -> Self:
        """Return the stream with its detector started anew."""
        return replace(self, detector=self.detector.restarted(), changed=False)

    def merged(self, other: Self) -> Self:
        """Return the stream of the rows of both."""
        if not isinstance(other, Stream):
            raise MergeError("a stream merges with a stream.")
        raised = tuple(d for d in DIRECTIONS if d in self.raised or d in other.raised)
        return type(self)(
            self.summary + other.summary,
            self.process + other.process,
            self.detector + other.detector,
            raised,
            self.changed or other.changed,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        parts = {name: getattr(self, name).to_dict() for name in ("summary", "process", "detector")}
        return documents.document("stream", {**parts, "raised": list(self.raised), "changed": self.changed})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("stream", document, ("summary", "process", "detector", "raised", "changed"))
        return cls(
            Summary.from_dict(content["summary"]),
            Process.from_dict(content["process"]),
            Detector.from_dict(content["detector"]),
            tuple(content["raised"]),
            content["changed"],
        )
