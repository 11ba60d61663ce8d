"""Columns of a table become batches of checked predictions; what no batch can see alone is checked across them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any, final

import numpy as np

from .._checks.arrays import spelled_labels
from .._checks.columns import weights
from .._checks.labels import equal_labels, never_occurs
from .._checks.message import Complaint, alike, fail, phrase, show, worded
from .._types import AnyArray, BoolArray
from ..errors import InputError, LabelError, MissingValueError, ShapeError
from ..families.bernoulli import Bernoulli
from ..families.bounded import Bounded, bounded
from ..families.categorical import Categorical
from ..families.classifier import Labelled, classifier
from ..families.ensemble import ensemble
from ..families.forecasts import intervals, quantiles
from ..families.predictions import Predictions
from .columns import Columns
from .states import states_of
from .values import Column, keys, known, labels, not_numbers, numbers, truths

__all__ = ["Batch", "Reader", "Rows", "join_batches", "prediction_values", "refuse_labels"]


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: checked predictions, and the columns beside them.

    Attributes
    ----------
    predictions : Predictions
        Of a classifier.
    sample_weight : ndarray of shape (n,) or None
        Weight of each row.
    by : mapping of names to ndarrays, or None
        The columns to group by.
    cluster : ndarray of shape (n,) or None
        The cluster of each row.
    features : mapping of names to ndarrays, or None
        What is known of each row, beside predictions and outcomes.

    Examples
    --------
    >>> import safecal
    >>> from safecal.engines.batches import Batch
    >>> Batch(safecal.bernoulli([1, 0], [0.9, 0.4])).predictions.n
    2
    """

    predictions: Predictions
    sample_weight: AnyArray | None = None
    by: Mapping[str, AnyArray] | None = None
    cluster: AnyArray | None = None
    features: Mapping[str, AnyArray] | None = None


def join_batches(parts: list[Batch]) -> Batch:
    """Put the rows of batches under each other.

    Parameters
    ----------
    parts : list of Batch
        At least one; all with the same columns.

    Returns
    -------
    Batch
        All rows, in their order.

    Examples
    --------
    >>> import safecal
    >>> from safecal.engines.batches import Batch, join_batches
    >>> join_batches([Batch(safecal.bernoulli([1, 0], [0.9, 0.4])), Batch(safecal.bernoulli([1], [0.7]))]).predictions.n
    3
    """

    def column(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else np.concatenate(found)

    def columns(name: str) -> dict[str, AnyArray] | None:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else {key: np.concatenate([one[key] for one in found]) for key in found[0]}

    predictions = type(parts[0].predictions).concatenate([part.predictions for part in parts])
    return Batch(predictions, column("sample_weight"), columns("by"), column("cluster"), columns("features"))


Rows = Mapping[str, Any]  # name -> a column of some rows: of NumPy, Polars or PyArrow


@final
class Reader:
    """Reads some columns of a stream of rows as batches.

    A missing outcome, prediction, weight or cluster is refused, or left out where ``columns.drop_missing`` says so; a
    missing group is a group of its own. Weights of a batch may all be zero, since other rows may follow. Where rows are
    refused, the rest of the stream is read to count how many are.

    Parameters
    ----------
    columns : Columns
        What is where.
    positive : bool, default False
        Whether the positive label has been met before these rows.
    others : iterable
        The labels that were met beside it.

    Attributes
    ----------
    rows, dropped : int
        How many rows were read so far, and how many of them were left out.
    first_dropped : int or None
        The first of those.
    positive : bool
        Whether ``pos_label`` was met.
    others : dict
        The labels that were met beside it, as they are typed, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.inputs.columns import Columns
    >>> from safecal.inputs.reader import Reader
    >>> rows = {"outcome": np.array([1, 0]), "p": np.array([0.9, 0.4])}
    >>> reader = Reader(Columns("outcome", ("p",), "y_prob"))
    >>> [batch.predictions.ecd for batch in reader.batches([rows])]
    [-0.1909...]
    """

    def __init__(self, columns: Columns, *, positive: bool = False, others: Iterable[Any] = ()) -> None:
        self.columns = columns
        self.rows = self.dropped = 0
        self.first_dropped: int | None = None
        self.positive = positive
        self.others: dict[Any, None] = dict.fromkeys(others)
        self._width: int | None = None
        named = [name for name in (columns.pos_label, *(columns.labels or ())) if isinstance(name, str)]
        self._words = bool(named) and spelled_labels(np.array(named)) is None  # then no label is a number
        self._kind: str | None = None

    def batches(self, stream: Iterable[Rows]) -> Iterator[Batch]:
        """Yield the rows of a stream, batch by batch; those without any row that is kept are skipped."""
        source = iter(stream)
        try:
            for rows in source:
                size = _size(rows)
                if size == 0:
                    continue
                try:
                    found = self.batch(rows)
                except InputError as error:
                    raise self._counted(error, size, source) from error
                self.rows += size
                if found is not None:
                    yield found
        finally:
            close = getattr(source, "close", None)
            if close is not None:  # a database waits for it
                close()

    def batch(self, rows: Rows, *, whole: bool = False) -> Batch | None:
        """Check some rows, to which others follow unless they are the ``whole``; None where all are left out."""
        columns = self.columns
        size = _size(rows)
        several = {name: truths(rows[name], name) for name in columns.outcomes}
        axes = {name: numbers(rows[name], name) for name in columns.axes}
        outcome = _beside(several or axes) if several or axes else self._outcome(rows)
        each = {name: numbers(rows[name], name) for name in columns.values}
        values = _beside(each)
        spreads = {name: numbers(rows[name], name) for name in (columns.spread or ())[1:]}
        spread = _beside(spreads) if spreads else None
        weight = None if columns.sample_weight is None else numbers(rows[columns.sample_weight], columns.sample_weight)
        cluster = None if columns.cluster is None else keys(rows[columns.cluster], columns.cluster)
        used: dict[Any, Column | None] = {**(several or axes or {columns.y_true: outcome}), **each, **spreads}
        used |= {columns.sample_weight: weight, columns.cluster: cluster}
        kept = self._kept({str(name): column for name, column in used.items() if column is not None}, size)
        if kept is not None and not kept.any():
            return None
        part: Any = slice(None) if kept is None else kept
        predictions = self._predictions(outcome, values, spread, part, whole)
        if isinstance(predictions, Categorical) and columns.choices is not None:
            predictions = replace(predictions, choices=np.asarray(rows[columns.choices])[part])
        if isinstance(predictions, Bernoulli | Categorical | Bounded) and columns.notes:
            predictions = replace(predictions, notes=(*predictions.notes, *columns.notes))
        w = None if weight is None else weight.values[part]
        if w is not None and w.any():
            w = weights(w, len(w), predictions.outcome)
        by = {name: keys(rows[name], name).values[part] for name in columns.by} or None
        features = {name: known(rows[name], name)[part] for name in columns.features} or None
        row = None if cluster is None else cluster.values[part]
        if columns.outcomes:
            row = np.arange(self.rows, self.rows + size)[part] if row is None else row
            return self._each_label(predictions, w, by or {}, row)
        return Batch(predictions, w, by, row, features)

    def finish(self) -> None:
        """Refuse a positive label that was met in no row of all."""
        if self.rows > self.dropped:
            refuse_labels(self.columns, self.positive, self.others)

    def _outcome(self, rows: Rows) -> Column | None:
        columns = self.columns
        if columns.y_true is None:
            return None
        if not columns.of_classes:
            return numbers(rows[columns.y_true], columns.y_true)
        found = labels(rows[columns.y_true], columns.y_true, words=self._words)
        kind = "words" if found.values.dtype.kind in "UO" else "numbers"
        if found.missing is not None and found.missing.all():
            return found
        if self._kind is not None and self._kind != kind:
            raise fail(LabelError, columns.y_true, "must hold either numbers or words", got="both, in different rows")
        self._kind = kind
        return found

    def _each_label(
        self, predictions: Predictions, weight: AnyArray | None, by: Mapping[str, AnyArray], row: AnyArray
    ) -> Batch:
        """Return the columns beside predictions for every label of every row; labels of a row depend on each other."""
        names = self.columns.labels or self.columns.outcomes
        groups = {"label": np.tile(np.array(names, dtype=object), len(row))} | {
            name: np.repeat(c, len(names)) for name, c in by.items()
        }
        each = None if weight is None else np.repeat(weight, len(names))
        return Batch(predictions, each, groups, np.repeat(row, len(names)))

    def _kept(self, used: Mapping[str, Column], size: int) -> BoolArray | None:
        """Return which rows have no missing value; None where all have none."""
        holes = [column.missing for column in used.values() if column.missing is not None]
        if not holes:
            return None
        missing: BoolArray = np.logical_or.reduce(holes)
        if not missing.any():
            return None
        first = int(missing.argmax())
        if not self.columns.drop_missing:
            name = next(name for name, c in used.items() if c.missing is not None and c.missing[first])
            raise fail(
                MissingValueError, name, "must not hold missing values", got="none", place=f"row {first}",
                count=(int(missing.sum()), size), hint=phrase("drop"),
            )  # fmt: skip
        self.dropped += int(missing.sum())
        self.first_dropped = self.rows + first if self.first_dropped is None else self.first_dropped
        return ~missing

    def _predictions(
        self, outcome: Column | None, values: Column, spread: Column | None, part: Any, whole: bool
    ) -> Predictions:
        columns = self.columns
        assert outcome is not None
        y, v = outcome.values[part], values.values[part]
        if columns.form == "gaussian":
            assert spread is not None
            self._look_across(y, v)
            return states_of(columns, y, v, spread.values[part])
        if columns.outcomes:
            both: dict[str, Any] = {"y_prob": None, "logits": None, columns.form: v}
            return Labelled.of(y, **both, labels=columns.outcomes, clip=columns.clip, fewest=1).predictions
        self._look_across(y, v)
        if columns.form == "intervals":
            return intervals(y, v[:, 0], v[:, 1], level=columns.levels[0])
        if columns.form == "quantiles":
            return quantiles(y, v, levels=columns.levels)
        if columns.form == "ensemble":
            return ensemble(y, v)
        if columns.vocabulary is not None:
            return bounded(y, [row[row > -np.inf] for row in v], vocabulary=columns.vocabulary, text="given")
        v = v if columns.grid is None else columns.grid.moved(v)
        given: dict[str, Any] = {columns.form: v}
        names = None if columns.labels is None else _alike_typed(columns.labels, y)
        if names is None and v.ndim == 2 and y.dtype.kind == "b" and (ends := self._truths()) is not None:
            y, names = np.where(y, "true", "false"), ends
        elif names is None and v.ndim == 2 and len(columns.values) > 1 and y.dtype.kind != "b":
            names = self._classes(y)
        return classifier(
            y, **given, pos_label=self._positive(y), labels=names, clip=columns.clip, whole=whole
        )  # fmt: skip

    def _positive(self, y: AnyArray) -> Any:
        """Return the positive label as the column has it, and remember which labels occur."""
        wanted = self.columns.pos_label
        if wanted is None:
            return None
        if y.dtype.kind == "b" and isinstance(wanted, str):
            wanted = {"true": True, "false": False, "1": True, "0": False}.get(wanted.lower(), wanted)
        else:
            wanted = _alike_typed((wanted,), y)[0]
        found = equal_labels(y, wanted)
        self.positive = self.positive or bool(found.any())
        self.others |= dict.fromkeys(np.unique(y[~found]).tolist())
        if self.positive:
            refuse_labels(self.columns, True, self.others)
        return wanted

    def _truths(self) -> list[str] | None:
        """Return "true" and "false" in the order of two columns that are named so; None where they are not."""
        names = [name.lower() for name in self.columns.values]
        found = [next((end for end in ("true", "false") if name.endswith(end)), "") for name in names]
        return found if sorted(found) == ["false", "true"] else None

    def _classes(self, y: AnyArray) -> list[Any] | None:
        """Name the classes after their columns, less what all of them begin with; None where that names not all."""
        names = list(self.columns.values)
        common = commonprefix(names)  # noqa: RUF071 (character by character is what is meant)
        ends = [name[len(common) :] for name in names]
        seen = set(np.unique(y).tolist())
        if y.dtype.kind in "iuf":  # columns that end in the number of their class, in whatever order
            parts = [re.fullmatch(r"(.*?)([0-9]+)", name) for name in names]
            stems = {None if part is None else part[1] for part in parts}
            numbered = [int(part[2]) for part in parts if part is not None]
            alike = len(stems) == 1 and len(set(numbered)) == len(names)
            return numbered if alike and seen <= set(numbered) else None
        for found in (ends, names):
            if seen <= set(found) and len(set(found)) == len(found):
                return found
        return None

    def _look_across(self, y: AnyArray, values: AnyArray) -> None:
        if values.ndim != 2:
            return
        self._width = self._width or values.shape[1]
        if values.shape[1] != self._width:
            rule = f"must hold lists of one length, {self._width}"
            name = self.columns.form if self.columns.of_classes else self.columns.values[0]
            raise fail(ShapeError, name, rule, got=f"{values.shape[1]}", place="row 0")

    def _counted(self, error: InputError, size: int, rest: Iterator[Rows]) -> InputError:
        """Name the row of the stream, and count all rows that break the same rule."""
        complaint: Complaint | None = error.complaint
        if complaint is None or complaint.place is None:
            return error
        place = re.sub(r"row (\d+)", lambda m: f"row {int(m[1]) + self.rows}", complaint.place)
        if complaint.count is None:
            return worded(error, replace(complaint, place=place))
        bad, total = complaint.count[0], self.rows + size
        for rows in rest:
            here = _size(rows)
            total += here
            try:
                if here:
                    self.batch(rows)
            except InputError as another:
                said = another.complaint
                bad += said.count[0] if said is not None and said.count is not None and alike(said, complaint) else 0
        self.rows = total
        return worded(error, replace(complaint, place=place, count=(bad, total)))


def prediction_values(rows: Rows, columns: Columns) -> Column:
    """Return one column, or a matrix of several or of lists."""
    return _beside({name: numbers(rows[name], name) for name in columns.values})


def _beside(each: Mapping[str, Column]) -> Column:
    found = list(each.values())
    if len(found) == 1:
        return found[0]
    for name, column in each.items():
        if column.values.ndim != 1:
            raise not_numbers(name, "list")
    matrix = np.empty((len(found[0].values), len(found)), dtype=np.result_type(*(c.values for c in found)))
    for k, column in enumerate(found):
        matrix[:, k] = column.values
    holes = [c.missing for c in found if c.missing is not None]
    return Column(matrix, np.logical_or.reduce(holes) if holes else None)


def _size(rows: Rows) -> int:
    return len(next(iter(rows.values())))


def _alike_typed(names: tuple[Any, ...], y: AnyArray) -> list[Any]:
    """Return labels that were typed as text as numbers, where the column holds numbers and all of them are some."""
    if y.dtype.kind in "iuf" and all(isinstance(name, str) for name in names):
        found = spelled_labels(np.array(names))
        return list(names) if found is None else found.tolist()
    return list(names)


def refuse_labels(columns: Columns, positive: bool, others: Collection[Any]) -> None:
    """Refuse a third label, and a positive one that was met in no row of all."""
    if columns.pos_label is None:
        return
    if not positive:
        raise never_occurs(columns.pos_label, list(map(show, others)))
    if len(others) > 1:
        shown = ", ".join(map(show, list(others)[:5]))
        raise fail(
            LabelError, "y_true", phrase("one other label", label=show(columns.pos_label)),
            got=f"{len(others)} others: {shown}", hint=phrase("a column a class"),
        )  # fmt: skip
