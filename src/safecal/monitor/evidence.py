"""Evidence of one stream of rows, or of one group: since the start, and an e-detector of a change at some row."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums.scored import summaries, summed
from .._sums.summary import Summary
from .._types import AlarmDirection, BoolArray, Detect, FloatArray, Form, IndexArray, Side
from ..errors import MergeError
from ..options import Limits
from .alarm import Alarm, Size
from .process import COLUMNS, DIRECTIONS, OVER, SHIFTED, UNDER, Block, Process, mixed, size_columns, sums_of

__all__ = ["DETECT", "Detector", "FORMS", "Found", "Stream", "Thresholds"]

FORMS: tuple[Form, ...] = ("shiryaev-roberts", "cusum")
_NO_SUMS = (0.0,) * len(COLUMNS)
_UNKNOWN = (math.nan,) * len(COLUMNS)
_PIECE = 1024  # rows over which the logarithms seldom leave the range
_RANGE = 600.0  # of logarithms whose exponentials a float can hold side by side


class Found(NamedTuple):
    """A row at which a threshold was reached, counted within its block, and the row at which the change began.

    ``sums`` are those of the columns of a size, of the rows from there to here.
    """

    row: int
    log_e_value: float
    began: int
    sums: tuple[float, ...]


def _log_sums(logs: FloatArray, first: FloatArray) -> FloatArray:
    """Return the logarithm of the running sum of ``exp(logs)`` along each row, with ``exp(first)`` at its head."""
    found = np.empty_like(logs)
    for start in range(0, logs.shape[1], _PIECE):
        part = logs[:, start : start + _PIECE]
        top = np.maximum(part.max(axis=1), first)[:, None]
        if (top[:, 0] - part.min(axis=1)).max() < _RANGE:
            terms = np.exp(part - top)
            terms[:, 0] += np.exp(first - top[:, 0])
            sums = np.log(np.cumsum(terms, axis=1)) + top
        else:  # some terms would vanish beside the largest
            sums = np.logaddexp(np.logaddexp.accumulate(part, axis=1), first[:, None])
        found[:, start : start + _PIECE] = sums
        first = sums[:, -1]
    return found


@final
@dataclass(frozen=True, slots=True)
class Detector:
    """The statistics after some rows; rows are numbered from the start, and across restarts.

    Attributes
    ----------
    n : int
        Rows seen.
    log_r, log_c : tuple of float
        Logarithms of the Shiryaev-Roberts and the CUSUM statistic at each beta of the grid: below 1 by default.
    began : tuple of int
        At each beta, the number of the row at which a change most likely began, if there was one.
    sums : tuple of tuple of float
        At each beta, the sums of the columns of a size (`safecal.monitor.process`) since that row; NaN where these are
        not known.
    """

    n: int = 0
    log_r: tuple[float, ...] = (-math.inf,) * len(OVER)
    log_c: tuple[float, ...] = (-math.inf,) * len(OVER)
    began: tuple[int, ...] = (0,) * len(OVER)
    sums: tuple[tuple[float, ...], ...] = (_NO_SUMS,) * len(OVER)

    @classmethod
    def start(cls, betas: int, n: int = 0) -> Self:
        """Return a detector on a grid of so many betas that has seen so many rows, and knows nothing of them."""
        return cls(n, (-math.inf,) * betas, (-math.inf,) * betas, (n,) * betas, (_NO_SUMS,) * betas)

    def __add__(self, other: Self) -> Self:
        """Join detectors that saw different rows; their expected growth adds up, and so do they."""
        if not isinstance(other, Detector):
            return NotImplemented
        first, second = np.array(self.log_c), np.array(other.log_c)
        mine = first >= second
        began = np.where(mine, np.array(self.began), np.array(other.began))
        sums = np.where(mine[:, None], np.array(self.sums), np.array(other.sums))
        return type(self)(
            self.n + other.n,
            tuple(map(float, np.logaddexp(self.log_r, other.log_r))),
            tuple(map(float, np.logaddexp(first, second))),
            tuple(map(int, began)),
            tuple(map(tuple, sums.tolist())),
        )

    def restarted(self) -> Self:
        """Return a detector that has seen as many rows, and forgotten them."""
        return type(self).start(len(self.log_r), self.n)

    def log_e_value(self, form: Form) -> float:
        """Return the logarithm of the mean of a statistic over the grid."""
        return float(mixed(np.array(self.log_r if form == "shiryaev-roberts" else self.log_c)))

    def advance(
        self, logs: FloatArray, form: Form, log_threshold: float, columns: FloatArray | None = None
    ) -> tuple[Self, Found | None]:
        """Take in the next rows up to the first at which the threshold is reached.

        Parameters
        ----------
        logs : ndarray of shape (betas, rows)
            Logarithms of e-values; at least one row.
        form : {"shiryaev-roberts", "cusum"}
            Which statistic is compared.
        log_threshold : float
            With what.
        columns : ndarray of shape (columns, rows), optional
            Those of a size of the same rows.

        Returns
        -------
        detector : Detector
            After these rows, or after the one that reached the threshold.
        found : Found or None
            That row, if there is one.
        """
        total = np.cumsum(logs, axis=1)
        held = np.zeros_like(total)  # minus the sums before each row
        np.negative(total[:, :-1], out=held[:, 1:])
        log_c = total + np.maximum(np.maximum.accumulate(held, axis=1), np.array(self.log_c)[:, None])
        log_r = None
        if form == "shiryaev-roberts":
            log_r = total + _log_sums(held, np.array(self.log_r))
        compared = log_c if log_r is None else log_r
        last = logs.shape[1] - 1
        found = None
        if compared.max() >= log_threshold:  # a mean is never larger than the largest
            hit = mixed(compared) >= log_threshold
            if hit.any():
                last = int(hit.argmax())
        if log_r is None:  # kept as well, so that forms can be changed
            sums = special.logsumexp(held[:, : last + 1], axis=1)
            new_r = total[:, last] + np.logaddexp(sums, np.array(self.log_r))
        else:
            new_r = log_r[:, last]
        starts = held[:, : last + 1].argmax(axis=1)
        fresh = held[np.arange(len(held)), starts] >= np.array(self.log_c)
        began = np.where(fresh, self.n + starts, np.array(self.began))
        after = type(self)(
            self.n + last + 1,
            tuple(map(float, new_r)),
            tuple(map(float, log_c[:, last])),
            tuple(map(int, began)),
            self._since(columns, starts, fresh, last + 1),
        )
        if after.log_e_value(form) >= log_threshold:
            best = int(log_c[:, last].argmax())
            found = Found(last, after.log_e_value(form), after.began[best], after.sums[best])
        return after, found

    def _since(
        self, columns: FloatArray | None, starts: IndexArray, fresh: BoolArray, end: int
    ) -> tuple[tuple[float, ...], ...]:
        """Sum the rows since the change at each beta: from its start in this block, or all of it and those before."""
        if columns is None:
            return (_UNKNOWN,) * len(self.sums)
        found = []
        for before, start, new in zip(self.sums, starts, fresh, strict=True):
            sums = columns[:, start if new else 0 : end].sum(axis=1)
            found.append(tuple((sums if new else sums + before).tolist()))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        numbers = {name: [documents.number(x) for x in getattr(self, name)] for name in ("log_r", "log_c")}
        sums = [[documents.number(x) for x in part] for part in self.sums]
        return documents.document("detector", {"n": self.n, **numbers, "began": list(self.began), "sums": sums})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, now or before sizes were told."""
        logs = documents.list_of(documents.between(infinite=True), 1)
        fields = {"n": documents.count(), "log_r": logs, "log_c": logs, "began": documents.list_of(documents.count())}
        sums = documents.list_of(documents.list_of(documents.numbers, len(COLUMNS), len(COLUMNS)))
        found = documents.read("detector", document, fields, {"sums": sums})
        betas = len(found["log_r"])
        parts = [found[name] for name in ("log_r", "log_c", "began")]
        parts.append([tuple(part) for part in found.get("sums", [_UNKNOWN] * betas)])
        documents.every((
            (all(len(part) == betas for part in parts), "must have lists as long as `log_r`"),
            (max(found["began"], default=0) <= found["n"], "must have `began` no later than it has rows"),
            (math.inf not in (*found["log_r"], *found["log_c"]), "must have evidence that is not infinite"),
        ))  # fmt: skip
        return cls(found["n"], *map(tuple, parts))


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
