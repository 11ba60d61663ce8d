"""ECD by window of time: a summary for each of the last windows, and one for all before them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, final

from .. import documents
from .._checks.message import fail, show
from ..errors import OptionError
from ..summary import Summary

__all__ = ["Window", "Windows"]


@final
@dataclass(slots=True)
class Window:
    """The rows of one window: their sums, the number of the first of them to arrive, and the batches that were told."""

    summary: Summary = field(default_factory=Summary)
    first: int = 0
    batches: set[str] = field(default_factory=set)


@final
@dataclass(slots=True)
class Windows:
    """The last windows by name, in the order of their names, and the sum of those that were closed before.

    A batch may come late, as long as its window is among the last ``most``. A batch with an id counts once.
    """

    most: int = 366
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

    def add(self, name: str, summary: Summary, first: int, batch: str | None) -> None:
        """Add the rows of a batch to its window; close the first windows where there are too many."""
        window = self.kept.setdefault(name, Window(first=first))
        window.summary += summary
        if batch is not None:
            window.batches.add(batch)
        while len(self.kept) > self.most:
            self.closed = min(self.kept)
            self.earlier += self.kept.pop(self.closed).summary

    def at(self, row: int) -> str | None:
        """Return the window in which a row arrived, where it is known."""
        before = [(window.first, name) for name, window in self.kept.items() if window.first <= row]
        return max(before)[1] if before else None

    def merged(self, other: Self) -> Self:
        """Return the windows of both; batches that both were told would count twice, so none may be."""
        found = type(self)(max(self.most, other.most), earlier=self.earlier + other.earlier)
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
            found.kept[name] = joined
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        kept = {
            name: {"summary": w.summary.to_dict(), "first": w.first, "batches": sorted(w.batches)}
            for name, w in sorted(self.kept.items())
        }
        content = {"most": self.most, "kept": kept, "earlier": self.earlier.to_dict(), "closed": self.closed}
        return documents.document("windows", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("windows", document, ("most", "kept", "earlier", "closed"))
        kept = {
            name: Window(Summary.from_dict(w["summary"]), w["first"], set(w["batches"]))
            for name, w in content["kept"].items()
        }
        return cls(content["most"], kept, Summary.from_dict(content["earlier"]), content["closed"])
