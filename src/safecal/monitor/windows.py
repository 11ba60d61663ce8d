"""ECD by window of time: sums of each of the last windows, and a summary of all before them.

The last few windows keep all sums of their rows, so that they can be judged as any evaluation is. Those before them
keep a summary: all sums of a window are tens of kilobytes, and the state is written down after every batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, final

from .. import documents
from .._checks.message import fail, show
from .._sums.summary import Summary
from .._sums.tally import Tally
from ..errors import OptionError

__all__ = ["Window", "Windows"]


@final
@dataclass(slots=True)
class Window:
    """The rows of one window: their sums, the number of the first of them to arrive, and the batches that were told.

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

    A batch may come late, as long as its window is among the last ``most``. A batch with an id counts once. The last
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
        """Return the windows of both; batches that both were told would count twice, so none may be."""
        found = type(self)(self.most, self.judged, earlier=self.earlier + other.earlier)
        found.closed = max((x for x in (self.closed, other.closed) if x is not None), default=None)
        for name in sorted({*self.kept, *other.kept}):
            both = [side.kept[name] for side in (self, other) if name in side.kept]
            twice = set.intersection(*(w.batches for w in both)) if len(both) == 2 else set()
            if twice:
                hint = "each batch belongs to one of the two."
                got = f"{show(min(twice))} in both"
                raise fail(OptionError, "other", "must not hold a batch that this one holds", got=got, hint=hint)
            joined = Window(sum((w.summary for w in both), Summary()), min(w.first for w in both))
            joined.batches.update(*(w.batches for w in both))
            tallies = [w.tally for w in both if w.tally is not None]
            joined.tally = sum(tallies, Tally()) if len(tallies) == len(both) else None
            found.kept[name] = joined
        found._trim()
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        kept = {
            name: {"summary": w.summary.to_dict(), "first": w.first, "batches": sorted(w.batches)}
            | ({} if w.tally is None else {"tally": w.tally.to_dict()})
            for name, w in sorted(self.kept.items())
        }
        content = {
            "most": self.most,
            "judged": self.judged,
            "kept": kept,
            "earlier": self.earlier.to_dict(),
            "closed": self.closed,
        }
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
        found = documents.read("windows", document, fields, {"judged": documents.count()})
        found["kept"] = {name: Window(**content) for name, content in found["kept"].items()}
        windows = cls(**found)
        kept, first = windows.kept.values(), min(windows.kept, default=None)
        documents.every((
            (len(kept) <= windows.most, f"must have at most {windows.most} windows `kept`, as `most` says"),
            (
                windows.closed is None or first is None or windows.closed < first,
                "must keep windows that are later than the last that was `closed`",
            ),
            (
                all(w.tally is None or w.tally.n == w.summary.n for w in kept),
                "must have as many rows in each `tally` as in its `summary`",
            ),
        ))  # fmt: skip
        return windows


def _read_batches(value: Any) -> set[str]:
    found = documents.list_of(documents.text)(value)
    if found != sorted(set(found)):
        documents.refuse("must be in order, each batch once")
    return set(found)
