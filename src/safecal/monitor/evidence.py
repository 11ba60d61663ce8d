"""Evidence from the e-values of rows: the process since the start, and the detector of a change at some row.

E-values lie on a grid of inverse temperatures, and for two classes on a grid of shifts in log-odds.

If a model is calibrated, ``p(y)**(beta - 1) / exp A(beta)`` has the mean 1 for every prediction made before its
outcome. So its logarithm, ``(1 - beta) * surprisal - A(beta)``, adds up to evidence that may be looked at after every
row. Where ``beta < 1`` it grows when the model is over-confident, where ``beta > 1`` when it is under-confident.

For two classes, so has the likelihood of the same log-odds plus ``c`` over that of the model. Its logarithm is
``c y - log(1 - p + p exp(c))``. It grows when the event happens more often than the model says (``c > 0``), or less
often; a temperature does not see that.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums.scored import Scored
from .._types import AlarmDirection, BoolArray, FloatArray, Form, IndexArray
from ..errors import MergeError, UnavailableError
from ..families import Predictions
from .alarm import COLUMNS

__all__ = [
    "DIRECTIONS", "FORMS", "OVER", "SHIFTED", "SHIFTS", "UNDER", "Block", "Crossing", "Detector", "Process", "blocks",
    "log_mean", "shares",
]  # fmt: skip

# Logits that are 1.19 to 16 times too large, or too small.
OVER: tuple[float, ...] = tuple(2.0 ** (-k / 4) for k in (1, 2, 3, 4, 6, 8, 16))
UNDER: tuple[float, ...] = tuple(2.0 ** (k / 4) for k in (1, 2, 3, 4, 6, 8))
SHIFTS: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0)  # in log-odds, upward and downward
_ROWS = 16_384
_IMPOSSIBLE = 1e6  # the logarithm of an e-value: beyond every threshold, and still a number that adds up
_LARGEST = 1e290  # of other rows: no number of rows that a file holds adds up to infinity
_NO_SUMS = (0.0,) * len(COLUMNS)
_UNKNOWN = (math.nan,) * len(COLUMNS)
_PIECE = 1024  # rows over which the logarithms seldom leave the range
_RANGE = 600.0  # of logarithms whose exponentials a float can hold side by side


class Block(NamedTuple):
    """Some rows: their columns, and the logarithms of their e-values, of shape (betas or shifts, rows).

    ``up`` and ``down`` have no shifts where the predictions have no log-odds.
    """

    rows: slice
    scored: Scored
    over: FloatArray
    under: FloatArray
    up: FloatArray
    down: FloatArray
    impossible: BoolArray


def blocks(predictions: Predictions, *, shifts: bool = True) -> Iterator[Block]:
    """Yield the rows a block at a time, in their order; ``shifts``: where they have log-odds, shift them."""
    shifts = shifts and predictions.has_odds
    for start in range(0, predictions.n, _ROWS):
        rows = slice(start, min(start + _ROWS, predictions.n))
        yield _block(predictions, rows, shifts)


def _block(predictions: Predictions, rows: slice, shifts: bool) -> Block:
    scored, _ = predictions.weighted(rows, None)
    if scored.surprisal is None:
        raise UnavailableError("an unnormalised density has no e-value; give a normalised one.")
    impossible = scored.impossible
    surprisal = np.where(impossible, 0.0, scored.surprisal) if impossible.any() else scored.surprisal
    betas = (*OVER, *UNDER)
    logs = np.outer(1.0 - np.array(betas), surprisal) - predictions._log_partitions(rows, betas)
    np.clip(logs, -_LARGEST, _LARGEST, out=logs)
    over, under = logs[: len(OVER)], logs[len(OVER) :]
    up, down = _shifted(scored) if shifts else (np.empty((0, len(impossible))),) * 2
    if impossible.any():
        over[:, impossible] = _IMPOSSIBLE
        for other in (under, up, down):
            other[:, impossible] = -_IMPOSSIBLE
    return Block(rows, scored, over, under, up, down, impossible)


def _shifted(scored: Scored) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the e-values of each shift, upward and downward."""
    assert scored.predicted is not None
    assert scored.observed is not None
    c = np.array([SHIFTS, [-c for c in SHIFTS]])[:, :, None]
    # log, not log1p: an error of 1e-16 in a row that adds up is no matter, and it takes a third of the time.
    logs = np.multiply(np.expm1(c), scored.predicted)
    logs += 1.0
    np.log(logs, out=logs)
    np.subtract(c * scored.observed, logs, out=logs)
    return logs[0], logs[1]


DIRECTIONS: tuple[AlarmDirection, ...] = ("over-confident", "under-confident", "shifted up", "shifted down")
SHIFTED = DIRECTIONS[2:]
FORMS: tuple[Form, ...] = ("shiryaev-roberts", "cusum")
_PARTS = dict(zip(DIRECTIONS, ("over", "under", "up", "down"), strict=True))
_SHARES = dict(zip(DIRECTIONS, (0.4, 0.2, 0.2, 0.2), strict=True))
_TEMPERATURES = dict.fromkeys(DIRECTIONS[:2], 0.5)


def shares(*, shifts: bool) -> dict[AlarmDirection, float]:
    """Return the share of ``alpha`` that each direction has; without shifts there are two directions."""
    return dict(_SHARES if shifts else _TEMPERATURES)


def log_mean(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of e-values over the first axis, given their logarithms."""
    return np.asarray(special.logsumexp(logs, axis=0) - math.log(len(logs)))


@final
@dataclass(frozen=True, slots=True)
class Process:
    """The product of the e-values of all rows, at each point of a fixed grid, and its mean over the grid.

    If the model has been calibrated since the start, the probability that the e-value of a direction ever reaches
    ``1 / alpha`` is at most ``alpha``, however often one looks. Large means evidence, 1 means none, and below 1 the
    data speak for calibration. Processes of different rows add up to the process of all.

    Attributes
    ----------
    n, n_impossible : int
        Rows, and rows whose outcome had probability zero: after one of them, over-confidence is certain.
    over, under : tuple of float
        Logarithms of the products, at each beta of the grid below 1, and above.
    up, down : tuple of float
        The same at each shift of the log-odds; empty where shifts are not looked at.
    """

    n: int = 0
    n_impossible: int = 0
    over: tuple[float, ...] = (0.0,) * len(OVER)
    under: tuple[float, ...] = (0.0,) * len(UNDER)
    up: tuple[float, ...] = (0.0,) * len(SHIFTS)
    down: tuple[float, ...] = (0.0,) * len(SHIFTS)

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Process):
            return NotImplemented
        if other.n == 0:
            return self
        if self.n == 0:
            return other
        if len(self.up) != len(other.up):
            raise MergeError("evidence with and without shifts does not merge.")
        sums = (map(float.__add__, getattr(self, part), getattr(other, part)) for part in _PARTS.values())
        return type(self)(self.n + other.n, self.n_impossible + other.n_impossible, *map(tuple, sums))

    @classmethod
    def of(cls, block: Block) -> Self:
        """Return the process of a block of rows."""
        possible = ~block.impossible
        n_impossible = int(block.impossible.sum())
        logs = (getattr(block, part) for part in _PARTS.values())
        sums = ((x[:, possible] if n_impossible else x).sum(axis=1) for x in logs)
        return cls(len(possible), n_impossible, *(tuple(map(float, x)) for x in sums))

    @property
    def directions(self) -> tuple[AlarmDirection, ...]:
        """The directions that are looked at."""
        return tuple(direction for direction in DIRECTIONS if self.logs(direction))

    def logs(self, direction: AlarmDirection) -> tuple[float, ...]:
        """Return the logarithms of the products for a direction: one of `DIRECTIONS`."""
        logs: tuple[float, ...] = getattr(self, _PARTS[direction])
        return logs

    def log_e_value(self, direction: AlarmDirection) -> float:
        """Return the logarithm of the e-value for a direction: one of `directions`."""
        if self.n_impossible:
            return math.inf if direction == "over-confident" else -math.inf
        return float(log_mean(np.array(self.logs(direction))))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        logs = {part: [documents.number(x) for x in getattr(self, part)] for part in _PARTS.values()}
        return documents.document("process", {"n": self.n, "n_impossible": self.n_impossible, **logs})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, now or before there were shifts."""
        logs = documents.between(infinite=True)
        fields: dict[str, Any] = dict.fromkeys(("n", "n_impossible"), documents.count())
        fields |= {part: documents.list_of(logs, len(x), len(x)) for part, x in (("over", OVER), ("under", UNDER))}
        shifts = documents.list_of(logs, 0, len(SHIFTS))
        content = documents.read("process", document, fields, {"up": shifts, "down": shifts})
        # Rows were compared with thresholds that left nothing of alpha for shifts: so it goes on without them.
        logs_by_part = [tuple(content.get(part, ())) for part in _PARTS.values()]
        process = cls(content["n"], content["n_impossible"], *logs_by_part)
        documents.every((
            (process.n_impossible <= process.n, "must not have more impossible rows than rows"),
            (len(process.up) == len(process.down), "must look at as many shifts `up` as `down`"),
            (len(process.up) in (0, len(SHIFTS)), f"must look at {len(SHIFTS)} shifts, or at none"),
            (process.n > 0 or not any(map(any, map(process.logs, DIRECTIONS))),
             "must have no evidence where it has no rows"),
        ))  # fmt: skip
        return process if process.n else cls()


class Crossing(NamedTuple):
    """A row at which a threshold was reached, counted within its block, and the row at which the change began.

    ``sums`` are those of the columns of a size, of the rows from there to here.
    """

    row: int
    log_e_value: float
    began: int
    sums: tuple[float, ...]


def _log_sums(logs: FloatArray, first: FloatArray) -> FloatArray:
    """Return the logarithm of the running sum of ``exp(logs)`` along each row, with ``exp(first)`` at its head."""
    log_sums = np.empty_like(logs)
    for start in range(0, logs.shape[1], _PIECE):
        part = logs[:, start : start + _PIECE]
        top = np.maximum(part.max(axis=1), first)[:, None]
        if (top[:, 0] - part.min(axis=1)).max() < _RANGE:
            terms = np.exp(part - top)
            terms[:, 0] += np.exp(first - top[:, 0])
            sums = np.log(np.cumsum(terms, axis=1)) + top
        else:  # some terms would vanish beside the largest
            sums = np.logaddexp(np.logaddexp.accumulate(part, axis=1), first[:, None])
        log_sums[:, start : start + _PIECE] = sums
        first = sums[:, -1]
    return log_sums


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
        return float(log_mean(np.array(self.log_r if form == "shiryaev-roberts" else self.log_c)))

    def advance(
        self, logs: FloatArray, form: Form, log_threshold: float, columns: FloatArray | None = None
    ) -> tuple[Self, Crossing | None]:
        """Take in the next rows up to the first at which the threshold is reached.

        Parameters
        ----------
        logs : ndarray of shape (betas, rows)
            Logarithms of e-values; at least one row.
        form : {"shiryaev-roberts", "cusum"}
            Which statistic is compared.
        log_threshold : float
            The threshold that it is compared with.
        columns : ndarray of shape (columns, rows), optional
            Those of a size of the same rows.

        Returns
        -------
        detector : Detector
            After these rows, or after the one that reached the threshold.
        crossing : Crossing or None
            That row, if there is one.
        """
        total = np.cumsum(logs, axis=1)
        minus_before = np.zeros_like(total)  # minus the sums before each row
        np.negative(total[:, :-1], out=minus_before[:, 1:])
        log_c = total + np.maximum(np.maximum.accumulate(minus_before, axis=1), np.array(self.log_c)[:, None])
        log_r = None
        if form == "shiryaev-roberts":
            log_r = total + _log_sums(minus_before, np.array(self.log_r))
        compared = log_c if log_r is None else log_r
        last = logs.shape[1] - 1
        crossing = None
        if compared.max() >= log_threshold:  # a mean is never larger than the largest
            hit = log_mean(compared) >= log_threshold
            if hit.any():
                last = int(hit.argmax())
        if log_r is None:  # kept as well, so that forms can be changed
            sums = special.logsumexp(minus_before[:, : last + 1], axis=1)
            new_r = total[:, last] + np.logaddexp(sums, np.array(self.log_r))
        else:
            new_r = log_r[:, last]
        starts = minus_before[:, : last + 1].argmax(axis=1)
        fresh = minus_before[np.arange(len(minus_before)), starts] >= np.array(self.log_c)
        began = np.where(fresh, self.n + starts, np.array(self.began))
        detector = type(self)(
            self.n + last + 1,
            tuple(map(float, new_r)),
            tuple(map(float, log_c[:, last])),
            tuple(map(int, began)),
            self._since(columns, starts, fresh, last + 1),
        )
        if detector.log_e_value(form) >= log_threshold:
            best = int(log_c[:, last].argmax())
            crossing = Crossing(last, detector.log_e_value(form), detector.began[best], detector.sums[best])
        return detector, crossing

    def _since(
        self, columns: FloatArray | None, starts: IndexArray, fresh: BoolArray, end: int
    ) -> tuple[tuple[float, ...], ...]:
        """Sum the rows since the change at each beta: from its start in this block, or all of it and those before."""
        if columns is None:
            return (_UNKNOWN,) * len(self.sums)
        sums_by_beta = []
        for sums_before, start, is_fresh in zip(self.sums, starts, fresh, strict=True):
            sums = columns[:, start if is_fresh else 0 : end].sum(axis=1)
            sums_by_beta.append(tuple((sums if is_fresh else sums + sums_before).tolist()))
        return tuple(sums_by_beta)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        numbers = {name: [documents.number(x) for x in getattr(self, name)] for name in ("log_r", "log_c")}
        sums = [[documents.number(x) for x in part] for part in self.sums]
        return documents.document("detector", {"n": self.n, **numbers, "began": list(self.began), "sums": sums})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, now or before there were sizes."""
        logs = documents.list_of(documents.between(infinite=True), 1)
        fields = {"n": documents.count(), "log_r": logs, "log_c": logs, "began": documents.list_of(documents.count())}
        sums = documents.list_of(documents.list_of(documents.numbers, len(COLUMNS), len(COLUMNS)))
        content = documents.read("detector", document, fields, {"sums": sums})
        betas = len(content["log_r"])
        parts = [content[name] for name in ("log_r", "log_c", "began")]
        parts.append([tuple(part) for part in content.get("sums", [_UNKNOWN] * betas)])
        documents.every((
            (all(len(part) == betas for part in parts), "must have lists as long as `log_r`"),
            (max(content["began"], default=0) <= content["n"], "must have `began` no later than it has rows"),
            (math.inf not in (*content["log_r"], *content["log_c"]), "must have evidence that is not infinite"),
        ))  # fmt: skip
        return cls(content["n"], *map(tuple, parts))
