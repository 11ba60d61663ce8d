"""The front door: from predictions and features to the slices for which the model is over-confident."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, final

import numpy as np

from .._checks.columns import choice, cluster_codes, fraction, same_labels, spelled, weights, whole_number
from .._checks.message import fail
from .._steady import steady
from .._sums.clusters import Clusters
from .._sums.tally import Tally
from .._types import AnyArray, ArrayLike
from ..errors import EngineError, FormError, ShapeError
from ..families.predictions import Predictions
from . import draw
from .draw import Draw, Halves, drawn_of, seeds
from .features import Feature, Kinds, Unreadable, columns_of, read_feature
from .results import Slices
from .seeking import Candidates, Progress, Wanted

__all__ = ["SliceStream", "find_slices"]


@steady
@spelled()
def find_slices(
    predictions: Predictions,
    features: Any,
    *,
    depth: int = 2,
    min_share: float = 0.02,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    direction: Literal["over", "under"] = "over",
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> Slices:
    """Find the slices of the rows for which a model is over-confident, with intervals that hold.

    Rows, or clusters, are halved. The best three slices of each half are looked for there, and estimated on the other
    half, which had no part in the choice. So a printed ECD is not flattered by the search, and the intervals of all
    slices hold together: a calibrated model has none in ``level`` of all samples at least.

    Parameters
    ----------
    predictions : Predictions
        What was predicted, and what happened: `bernoulli`, `categorical`, `gaussian` and so on.
    features : DataFrame, Table, relation, or mapping of names to columns
        What is known of each row: numbers, categories, dates, truths. A missing value is a value of its own. Frames of
        pandas, Polars, PyArrow and DuckDB will do.
    depth : int, default 2
        Conditions of a slice, at most.
    min_share : float, default 0.02
        Smallest share of the rows that a slice holds.
    level : float, default 0.95
        Level at which all intervals hold together.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a patient, a track, a day.
    sample_weight : array-like of shape (n,), optional
        Weight of each row in the means.
    direction : {"over", "under"}, default "over"
        Look for over-confidence, or for under-confidence.
    rng : numpy.random.Generator or int, optional
        For the halves. By default the same data give the same answer.
    progress : callable, optional
        Is called with the share of the search that is done. Ctrl-C ends the search, and leaves what was found.

    Returns
    -------
    Slices
        Print it for a table; it is empty where nothing was found, and says what would have been.

    Warns
    -----
    UserWarning
        A feature tells what happened. It is left out: those for whom it went wrong are no slice.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(1)
    >>> z, age, site = rng.normal(0, 2, 10_000), rng.integers(20, 90, 10_000), rng.choice(list("abcd"), 10_000)
    >>> wrong = (age >= 65) & (site == "c")
    >>> happened = rng.random(10_000) < 1 / (1 + np.exp(-z / np.where(wrong, 3, 1)))
    >>> for s in safecal.find_slices(safecal.bernoulli(happened, logits=z), {"age": age, "site": site}):
    ...     print(s.condition, s.n, round(s.ecd.value, 2))
    age >= 62 and site is c 914 0.22
    """
    if not isinstance(predictions, Predictions):
        hint = "make them with `safecal.bernoulli(y_true, y_prob)`, `categorical`, `gaussian` or `density`."
        raise fail(FormError, "predictions", "must be predictions", got=f"a {type(predictions).__name__}", hint=hint)
    whole_number(depth, "depth", 1)
    min_share, level = fraction(min_share, "min_share"), fraction(level, "level")
    choice(direction, "direction", ("over", "under"))
    columns = columns_of(features)
    same_labels(predictions.row_labels, features=features, cluster=cluster, sample_weight=sample_weight)
    n, reference = predictions.n, predictions.outcome
    weight = weights(sample_weight, n, reference)
    keys, codes = ((), None) if cluster is None else cluster_codes(cluster, n, reference)
    coins, lots = seeds(rng)
    halves = Halves(coins, keys, None if codes is None else np.bincount(codes, minlength=len(keys)))
    if (n if codes is None else len(keys)) < 2:
        raise fail(ShapeError, "predictions", "must have rows in two halves", got=f"{n} row{'' if n == 1 else 's'}")
    second = halves.of_rows(np.arange(n), cluster, reference)
    known = {name: _read(raw, name, n, reference) for name, raw in columns.items()}
    drawn = drawn_of(n, lots, draw.DRAWN)
    rows, weight_of_drawn, of_drawn = predictions, weight, known
    if len(drawn) < n:
        rows, weight_of_drawn = predictions.take(drawn), None if weight is None else weight[drawn]
        of_drawn = {
            name: x._replace(values=x.values[drawn]) if isinstance(x, Feature) else x for name, x in known.items()
        }
    wanted = Wanted(depth, min_share, level, direction, progress)
    found = Candidates(wanted, rows, weight_of_drawn, second[drawn], of_drawn)
    numbers = found.numbers({name: x for name, x in known.items() if isinstance(x, Feature)}, second)
    return found.slices(Tally.of_checked(predictions, None, weight, numbers, cluster))


def _read(raw: Any, name: str, n: int, reference: str) -> Feature | Unreadable:
    try:
        return read_feature(raw, name, n, reference)
    except Unreadable as reason:
        return reason


@final
class SliceStream:
    """Slices of rows that come in parts, twice: they are drawn from, and searched; then all are estimated.

    What it finds is what `find_slices` finds in the same rows, where as many are drawn.

    Parameters
    ----------
    level : float
        As in `find_slices`.
    most : int
        Rows that are drawn and held, at most.
    plain : callable
        Reads a column of text as what it spells.
    progress : callable, optional
        As in `find_slices`.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.slices.front_door import SliceStream
    >>> rng = np.random.default_rng(0)
    >>> z, age = rng.normal(0, 2, 4000), rng.integers(20, 90, 4000)
    >>> happened = rng.random(4000) < 1 / (1 + np.exp(-z / np.where(age >= 70, 3, 1)))
    >>> whole = safecal.bernoulli(happened, logits=z)
    >>> parts = [(whole.take(rows), {"age": age[rows]}) for rows in np.split(np.arange(4000), 4)]
    >>> stream = SliceStream(0.95, 1_000_000, np.asarray)
    >>> for predictions, features in parts:
    ...     stream.add(predictions, None, None, features)
    >>> stream.search(None)
    >>> numbers = [stream.numbers(predictions, None, features) for predictions, features in parts]
    >>> tally = sum(rows.tally(by=codes) for (rows, _), codes in zip(parts, numbers))
    >>> stream.slices(tally)[0].condition == safecal.find_slices(whole, {"age": age})[0].condition
    True
    """

    def __init__(
        self, level: float, most: int, plain: Callable[[AnyArray], AnyArray], progress: Progress | None = None
    ) -> None:
        self._wanted = Wanted(2, 0.02, level, "over", progress)
        self._coins, lots = seeds(None)
        self._draw = Draw(lots, min(most, draw.DRAWN))
        self._kinds: dict[str, Kinds] = {}
        self._plain = plain
        self._row = 0

    def add(
        self, predictions: Predictions, weight: AnyArray | None, cluster: AnyArray | None,
        features: Mapping[str, AnyArray],
    ) -> None:  # fmt: skip
        """Draw from some rows."""
        for name, values in features.items():
            self._kinds.setdefault(name, Kinds(name, self._plain)).add(values)
        self._draw.add(predictions, weight, cluster, features)

    def search(self, clusters: Clusters | None) -> None:
        """Search the rows that were drawn; ``clusters`` are the sums of those of all rows."""
        self._halves = Halves.of_sums(self._coins, clusters)
        drawn = self._draw.drawn()
        del self._draw
        self._found = Candidates.of_drawn(self._wanted, drawn, self._halves, self._kinds)
        self._drawn, self._excess = drawn.rows, drawn.predictions.score().excess

    def numbers(self, predictions: Predictions, cluster: AnyArray | None, features: Mapping[str, AnyArray]) -> AnyArray:
        """Number some rows by their half and their slices; all must come again, in the same order."""
        rows = np.arange(self._row, self._row + predictions.n)
        self._row += predictions.n
        first, last = np.searchsorted(self._drawn, [rows[0], rows[-1] + 1])
        again = predictions.take(self._drawn[first:last] - rows[0]).score().excess
        if not np.array_equal(again, self._excess[first:last], equal_nan=True):
            raise EngineError(
                "the rows came in another order when they were read again, so that slices cannot be estimated on rows "
                "other than those they were found on.\n\nHint: sort them by a column that tells them apart, or write "
                "them to a file first."
            )
        second = self._halves.of_rows(rows, cluster, predictions.outcome)
        known = {name: self._kinds[name].column(features[name]) for name in self._found.features}
        return self._found.numbers(known, second)

    def slices(self, tally: Tally) -> Slices:
        """Say what was found, by the sums of all rows, grouped by `numbers`."""
        return self._found.slices(tally)
