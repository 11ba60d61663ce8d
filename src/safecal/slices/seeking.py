"""Seeking slices: candidates of each half of the rows that were drawn, then what all rows tell of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, final

import numpy as np

from .._sums.tally import Tally
from .._types import AnyArray, BoolArray, FloatArray
from ..families.predictions import Predictions
from .coding import Coded, coded
from .conditions import Condition
from .discovery import BEAM, Search
from .draw import Drawn, Halves
from .estimation import Overlaps, estimates, membership
from .features import Feature, Kinds, Unreadable
from .outcome import tells_the_outcome
from .reach import Reach, reach_of
from .results import Slice, Slices

__all__ = ["Candidates", "Progress", "Wanted", "numbered"]

_FEWEST = 20  # rows of a slice in a half
_IMPOSSIBLE = 40.0  # nats, in the search alone, of an outcome that was called impossible
_ALIKE = 0.5  # of the rows of either, from which two slices are one

Progress = Callable[[float], None]


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for, with the meaning of `find_slices`."""

    depth: int
    min_share: float
    level: float
    direction: Literal["over", "under"]
    progress: Progress | None = None

    @property
    def over(self) -> bool:
        return self.direction == "over"


@final
class Candidates:
    """The best conditions of each half.

    Parameters
    ----------
    wanted : Wanted
        What is looked for.
    predictions : Predictions
        Rows that were drawn.
    weight : ndarray or None
        Their weights.
    second : ndarray of bool
        Which of them are in the second half.
    features : mapping of names to Feature or Unreadable
        What is known of them, or why nothing is.
    """

    def __init__(
        self, wanted: Wanted, predictions: Predictions, weight: AnyArray | None, second: BoolArray,
        features: Mapping[str, Feature | Unreadable],
    ) -> None:  # fmt: skip
        self.wanted, self._rows = wanted, predictions
        self._least = max(_FEWEST, math.ceil(wanted.min_share * predictions.n / 2))
        self.left_out: list[tuple[str, str]] = []
        self._columns = self._coded(features)
        self.interrupted = False
        self._halves = self._search(weight, second) if self._columns else [[], []]
        self.conditions: list[tuple[Condition, ...]] = [*self._halves[0], *self._halves[1]]

    @classmethod
    def of_drawn(cls, wanted: Wanted, drawn: Drawn, halves: Halves, kinds: Mapping[str, Kinds]) -> Self:
        """Search rows that were drawn from parts."""
        second = halves.of_rows(drawn.rows, drawn.cluster, drawn.predictions.outcome)
        features = {name: kinds[name].read(values) for name, values in drawn.features.items()}
        return cls(wanted, drawn.predictions, drawn.weight, second, features)

    def _coded(self, features: Mapping[str, Feature | Unreadable]) -> list[Coded]:
        """Code the features, and say why some are left out."""
        found: list[Coded] = []
        for name, feature in features.items():
            try:
                if isinstance(feature, Unreadable):
                    raise feature
                column = coded(feature, self._least)
            except Unreadable as reason:
                self.left_out.append((name, str(reason)))
                continue
            if tells_the_outcome(column, self._rows):
                self.left_out.append((name, "it tells what happened"))
                warnings.warn(
                    f"the feature `{name}` tells what happened, and is left out: among those for whom it went wrong, "
                    "every model looks over-confident.\n\nHint: features must be known before the outcome.",
                    UserWarning,
                    stacklevel=7,
                )
                continue
            found.append(column)
        return found

    def _search(self, weight: AnyArray | None, second: BoolArray) -> list[list[tuple[Condition, ...]]]:
        """Search both halves."""
        excess, variance = _columns_of_rows(self._rows, weight)
        depth = self.wanted.depth
        steps, done = 2 * (1 + (depth - 1) * BEAM), 0

        def step() -> None:
            nonlocal done
            done += 1
            if self.wanted.progress is not None:
                self.wanted.progress(done / steps)

        found: list[list[tuple[Condition, ...]]] = []
        for half in (~second, second):
            rows = np.flatnonzero(half)
            sign = 1.0 if self.wanted.over else -1.0
            search = Search(self._columns, rows, sign * excess[rows], variance[rows], self._least)
            found.append([] if self.interrupted else search.best(depth, step))
            self.interrupted |= search.interrupted
        return found

    def numbers(self, features: Mapping[str, Feature], second: BoolArray) -> AnyArray:
        """Number rows by their half and by the slices they lie in."""
        return numbered(self.conditions, features, second)

    @property
    def features(self) -> tuple[str, ...]:
        """The features that conditions are on."""
        return tuple(dict.fromkeys(one.feature for conditions in self.conditions for one in conditions))

    def slices(self, tally: Tally) -> Slices:
        """Say what was found, by the sums of all rows, which are grouped by `numbers`."""
        wanted, firsts, seconds = self.wanted, len(self._halves[0]), len(self._halves[1])
        known = estimates(tally, firsts, seconds, level=wanted.level, over=wanted.over)
        places = [k for k, estimate in enumerate(known) if estimate is not None]
        candidates = [
            Slice(
                self.conditions[k], e.rows, e.share, e.n, e.ecd, e.firm, e.temperature, e.predicted, e.observed,
                e.dimensions, e.elsewhere, e.beyond,
            )
            for k in places if (e := known[k]) is not None
        ]  # fmt: skip
        alone = [e.alone for e in known if e is not None]
        overlaps = Overlaps(tally, firsts)
        shown = [k for k, s in enumerate(candidates) if alone[k] and _shows(s, wanted.over)]
        found = _merged(candidates, shown, lambda a, b: overlaps.alike(places[a], places[b]), wanted.over)
        return Slices(
            found=tuple(candidates[k] for k in found),
            candidates=tuple(candidates),
            direction=wanted.direction,
            n=tally.n,
            searched=self._rows.n,
            ecd=tally.summary.ecd,
            level=wanted.level,
            min_share=wanted.min_share,
            depth=wanted.depth,
            features=tuple(column.feature.name for column in self._columns),
            left_out=tuple(self.left_out),
            reach=self._reach(tally) if tally.clusters is None and self._columns else None,
            interrupted=self.interrupted,
            on="spread" if not self._rows.discrete else (self._rows.bin_choices or ("confidence",))[0],
            clustered=tally.clusters is not None,
        )

    def _reach(self, tally: Tally) -> Reach | None:
        """Say what would have been found; weights that differ are worth fewer rows."""
        wanted, s = self.wanted, tally.summary
        worth = s.weight**2 / max(s.n * s.weight2, 1e-300)
        return reach_of(
            self._rows, rows=0.5 * worth * s.n, searched=0.5 * worth * self._rows.n,
            atoms=sum(column.atoms for column in self._columns), depth=wanted.depth, min_share=wanted.min_share,
            level=wanted.level, over=wanted.over,
        )  # fmt: skip


def numbered(
    candidates: Sequence[tuple[Condition, ...]], features: Mapping[str, Feature], second: BoolArray
) -> AnyArray:
    """Number rows by their half and by which conditions they fulfil."""
    masks = []
    for conditions in candidates:
        mask = np.ones(len(second), dtype=bool)
        for condition in conditions:
            mask &= features[condition.feature].where(condition)
        masks.append(mask)
    return membership(masks, second)


def _columns_of_rows(predictions: Predictions, weight: AnyArray | None) -> tuple[FloatArray, FloatArray]:
    """Return excess and variance of rows, with weights."""
    excess, variance = np.empty(predictions.n), np.empty(predictions.n)
    for rows in predictions.row_blocks():
        scored, w = predictions.weighted(rows, weight)
        e, v = scored.excess, scored.varentropy
        possible = np.isfinite(e)
        e, v = np.where(possible, e, _IMPOSSIBLE), np.where(possible & np.isfinite(v), v, 1.0)
        scale: FloatArray | float = 1.0 if w is None else w
        excess[rows], variance[rows] = scale * e, scale * scale * v
    return excess, variance


def _shows(s: Slice, over: bool) -> bool:
    return s.ecd.low > 0.0 if over else s.ecd.high < 0.0


def _merged(
    candidates: Sequence[Slice], shown: Sequence[int], alike: Callable[[int, int], float], over: bool
) -> list[int]:
    """Return those that are shown, the worst first; of two with about the same rows the simpler description."""
    # Simpler first, then larger: never by what was estimated, which would flatter it.
    order = sorted(shown, key=lambda k: (len(candidates[k].conditions), -candidates[k].n))
    found: list[int] = []
    for one in order:
        if all(alike(one, other) < _ALIKE for other in found):
            found.append(one)
    return sorted(found, key=lambda k: -candidates[k].ecd.low if over else candidates[k].ecd.high)
