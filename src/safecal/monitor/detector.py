"""Evidence for "became over-confident at some row", or under-confident: an e-detector.

At each beta the Shiryaev-Roberts statistic ``R`` is the sum, over every row at which a change may have begun, of the
product of the e-values since; the CUSUM statistic ``C`` is the largest of these products. With a new e-value ``L``,

    R <- L (R + 1)        C <- L max(C, 1)

While the model is calibrated, ``R`` grows on average by 1 with each row, and ``C <= R``. So the average number of rows
until the mean over the grid first reaches ``run_length`` is at least ``run_length``. Two detectors, one for each
direction, keep that promise together if each asks for twice as much: when the first of them gets there, the mean of
both has reached ``run_length``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._types import BoolArray, FloatArray, Form, IndexArray
from .alarm import COLUMNS
from .process import OVER, mixed

__all__ = ["FORMS", "Detector", "Found"]

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
        At each beta, the sums of the columns of a size (`safecal.monitor.alarm`) since that row; NaN where these are
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
