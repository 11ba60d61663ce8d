"""Tables of predictions, wherever they lie: one reader of columns for files, frames, streams and `safecal watch`.

``columns``       which column holds what, named or found by name; ``states`` does the same for several components
``values``        a column of any library as an array, with its missing values
``sources``       files and standard input; ``text_files`` reads CSV and JSON Lines without Polars
``logs``          logs of language models as tables: ``questions`` reads a line with choices, ``tokens`` one answer
``trajectories``  files of poses over time
``estimators``    fitted classifiers of scikit-learn's kind

Here is the reader: columns become checked batches, and what no batch can see alone is checked across them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any, final

import numpy as np

from .._checks import Complaint, alike, fail, phrase, show, worded
from .._checks.arrays import spelled_labels
from .._checks.class_columns import refuse_reversed
from .._checks.classes import equal_labels, never_occurs
from .._checks.columns import weights
from .._types import AnyArray, BoolArray
from ..errors import InputError, LabelError, MissingValueError, ShapeError
from ..families import Predictions, classifier
from ..families.bernoulli import Bernoulli, Labelled
from ..families.bounded import Bounded, bounded
from ..families.categorical import Categorical
from ..families.ensemble import ensemble
from ..families.forecasts import intervals, quantiles
from .columns import Columns
from .states import build_states
from .values import Column, feature_column, keys, labels, numbers, side_by_side, truths

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
        Other columns, in which slices are looked for.

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
        pieces = [getattr(part, name) for part in parts]
        return None if pieces[0] is None else np.concatenate(pieces)

    def columns(name: str) -> dict[str, AnyArray] | None:
        pieces = [getattr(part, name) for part in parts]
        first = pieces[0]
        return None if first is None else {key: np.concatenate([piece[key] for piece in pieces]) for key in first}

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
    >>> from safecal.inputs import Reader
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
        """Yield the rows of a stream, batch by batch; a batch of which no row is kept is skipped."""
        source = iter(stream)
        try:
            for rows in source:
                size = _size(rows)
                if size == 0:
                    continue
                try:
                    batch = self.batch(rows)
                except InputError as error:
                    raise self._counted(error, size, source) from error
                self.rows += size
                if batch is not None:
                    yield batch
        finally:
            getattr(source, "close", lambda: None)()  # a database waits for it

    def batch(self, rows: Rows, *, whole: bool = False) -> Batch | None:
        """Check some rows; others follow unless these are the ``whole``. None where all of them are left out."""
        columns = self.columns
        size = _size(rows)
        outcome_columns = {name: truths(rows[name], name) for name in columns.outcomes}
        outcome_columns |= {name: numbers(rows[name], name) for name in columns.axes}
        outcome = side_by_side(outcome_columns) if outcome_columns else self._outcome(rows)
        value_columns = {name: numbers(rows[name], name) for name in columns.values}
        values = side_by_side(value_columns)
        spread_columns = {name: numbers(rows[name], name) for name in (columns.spread or ())[1:]}
        spread = side_by_side(spread_columns) if spread_columns else None
        weight = None if columns.sample_weight is None else numbers(rows[columns.sample_weight], columns.sample_weight)
        cluster = None if columns.cluster is None else keys(rows[columns.cluster], columns.cluster)
        used: dict[Any, Column | None] = {**outcome_columns} if outcome_columns else {columns.y_true: outcome}
        used |= value_columns | spread_columns
        used |= {columns.sample_weight: weight, columns.cluster: cluster}
        kept = self._kept({str(name): column for name, column in used.items() if column is not None}, size)
        if kept is not None and not kept.any():
            return None
        selection: Any = slice(None) if kept is None else kept
        predictions = self._predictions(outcome, values, spread, selection, whole)
        if isinstance(predictions, Categorical) and columns.choices is not None:
            predictions = replace(predictions, choices=np.asarray(rows[columns.choices])[selection])
        if isinstance(predictions, Bernoulli | Categorical | Bounded) and columns.notes:
            predictions = replace(predictions, notes=(*predictions.notes, *columns.notes))
        kept_weight = None if weight is None else weight.values[selection]
        if kept_weight is not None and kept_weight.any():
            kept_weight = weights(kept_weight, len(kept_weight), predictions.outcome)
        by = {name: keys(rows[name], name).values[selection] for name in columns.by} or None
        features = {name: feature_column(rows[name], name)[selection] for name in columns.features} or None
        cluster_keys = None if cluster is None else cluster.values[selection]
        if columns.outcomes:
            cluster_keys = np.arange(self.rows, self.rows + size)[selection] if cluster_keys is None else cluster_keys
            return self._each_label(predictions, kept_weight, by or {}, cluster_keys)
        return Batch(predictions, kept_weight, by, cluster_keys, features)

    def finish(self) -> None:
        """Refuse a positive label that occurs in no row."""
        if self.rows > self.dropped:
            refuse_labels(self.columns, self.positive, self.others)

    def _outcome(self, rows: Rows) -> Column | None:
        columns = self.columns
        if columns.y_true is None:
            return None
        if not columns.of_classes:
            return numbers(rows[columns.y_true], columns.y_true)
        outcome = labels(rows[columns.y_true], columns.y_true, words=self._words)
        if outcome.missing is not None and outcome.missing.all():
            return outcome
        kind = "words" if outcome.values.dtype.kind in "UO" else "numbers"
        if self._kind not in (None, kind):
            raise fail(LabelError, columns.y_true, "must hold either numbers or words", got="both, in different rows")
        self._kind = kind
        return outcome

    def _each_label(
        self, predictions: Predictions, weight: AnyArray | None, by: Mapping[str, AnyArray], row: AnyArray
    ) -> Batch:
        """Return the columns beside predictions for every label of every row; labels of a row depend on each other."""
        names = self.columns.labels or self.columns.outcomes
        groups = {"label": np.tile(np.array(names, dtype=object), len(row))}
        groups |= {name: np.repeat(c, len(names)) for name, c in by.items()}
        label_weight = None if weight is None else np.repeat(weight, len(names))
        return Batch(predictions, label_weight, groups, np.repeat(row, len(names)))

    def _kept(self, used: Mapping[str, Column], size: int) -> BoolArray | None:
        """Return which rows have no missing value; None where no row has one."""
        holes = [column.missing for column in used.values() if column.missing is not None]
        missing: BoolArray = np.logical_or.reduce(holes) if holes else np.zeros(1, dtype=bool)
        if not missing.any():
            return None
        first = int(missing.argmax())
        if not self.columns.drop_missing:
            name = next(name for name, c in used.items() if c.missing is not None and c.missing[first])
            raise fail(
                MissingValueError, name, "must not hold missing values", got="nothing", place=f"row {first}",
                count=(int(missing.sum()), size), hint=phrase("drop"),
            )  # fmt: skip
        self.dropped += int(missing.sum())
        self.first_dropped = self.rows + first if self.first_dropped is None else self.first_dropped
        return ~missing

    def _predictions(
        self, outcome: Column | None, values: Column, spread: Column | None, selection: Any, whole: bool
    ) -> Predictions:
        columns = self.columns
        assert outcome is not None
        y, v = outcome.values[selection], values.values[selection]
        if columns.form == "gaussian":
            assert spread is not None
            self._check_width(v)
            return build_states(columns, y, v, spread.values[selection])
        if columns.outcomes:
            forms: dict[str, Any] = {"y_prob": None, "logits": None, columns.form: v}
            return Labelled.of(y, **forms, labels=columns.outcomes, clip=columns.clip, fewest=1).predictions
        self._check_width(v)
        if columns.form == "intervals":
            return intervals(y, v[:, 0], v[:, 1], level=columns.levels[0])
        if columns.form == "quantiles":
            return quantiles(y, v, levels=columns.levels)
        if columns.form == "ensemble":
            return ensemble(y, v)
        if columns.vocabulary is not None:
            return bounded(y, [row[row > -np.inf] for row in v], vocabulary=columns.vocabulary, text="given")
        v = v if columns.grid is None else columns.grid.moved(v)
        prediction: dict[str, Any] = {columns.form: v}
        class_names = None if columns.labels is None else _typed_like(columns.labels, y)
        if class_names is None and v.ndim == 2 and y.dtype.kind == "b" and (truth_names := self._truths()) is not None:
            y, class_names = np.where(y, "true", "false"), truth_names
        elif class_names is None and v.ndim == 2 and len(columns.values) > 1 and y.dtype.kind != "b":
            class_names = self._classes(y)
        if class_names is None and v.ndim == 2 and y.dtype.kind in "biuf":
            refuse_reversed(columns.values, columns.form)
        return classifier(
            y, **prediction, pos_label=self._positive(y), labels=class_names, clip=columns.clip, whole=whole
        )  # fmt: skip

    def _positive(self, y: AnyArray) -> Any:
        """Return the positive label as the column has it, and remember which labels occur."""
        label = self.columns.pos_label
        if label is None:
            return None
        if y.dtype.kind == "b" and isinstance(label, str):
            label = {"true": True, "false": False, "1": True, "0": False}.get(label.lower(), label)
        else:
            label = _typed_like((label,), y)[0]
        is_positive = equal_labels(y, label)
        self.positive = self.positive or bool(is_positive.any())
        self.others |= dict.fromkeys(np.unique(y[~is_positive]).tolist())
        if self.positive:
            refuse_labels(self.columns, True, self.others)
        return label

    def _truths(self) -> list[str] | None:
        """Return "true" and "false" in the order of two columns that are named so; None where they are not."""
        names = [name.lower() for name in self.columns.values]
        truth_names = [next((end for end in ("true", "false") if name.endswith(end)), "") for name in names]
        return truth_names if sorted(truth_names) == ["false", "true"] else None

    def _classes(self, y: AnyArray) -> list[Any] | None:
        """Name the classes after their columns, without what all names begin with; None where a label is unnamed."""
        names = list(self.columns.values)
        common = commonprefix(names)  # noqa: RUF071 (character by character is what is meant)
        ends = [name[len(common) :] for name in names]
        seen = set(np.unique(y).tolist())
        if y.dtype.kind in "iuf":  # columns that end in the number of their class, in whatever order
            matches = [re.fullmatch(r"(.*?)([0-9]+)", name) for name in names]
            stems = {None if match is None else match[1] for match in matches}
            numbered = [int(match[2]) for match in matches if match is not None]
            consistent = len(stems) == 1 and len(set(numbered)) == len(names)
            return numbered if consistent and seen <= set(numbered) else None
        for class_names in (ends, names):
            if seen <= set(class_names) and len(set(class_names)) == len(class_names):
                return class_names
        return None

    def _check_width(self, values: AnyArray) -> None:
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
        broken, total = complaint.count[0], self.rows + size
        for rows in rest:
            size = _size(rows)
            total += size
            try:
                if size:
                    self.batch(rows)
            except InputError as another:
                other = another.complaint
                if other is not None and other.count is not None and alike(other, complaint):
                    broken += other.count[0]
        self.rows = total
        return worded(error, replace(complaint, place=place, count=(broken, total)))


def prediction_values(rows: Rows, columns: Columns) -> Column:
    """Return one column, or a matrix of several or of lists."""
    return side_by_side({name: numbers(rows[name], name) for name in columns.values})


def _size(rows: Rows) -> int:
    return len(next(iter(rows.values())))


def _typed_like(names: tuple[Any, ...], y: AnyArray) -> list[Any]:
    """Return typed labels as numbers, where the column holds numbers and every label spells one."""
    if y.dtype.kind in "iuf" and all(isinstance(name, str) for name in names):
        spelled = spelled_labels(np.array(names))
        return list(names) if spelled is None else spelled.tolist()
    return list(names)


def refuse_labels(columns: Columns, positive: bool, others: Collection[Any]) -> None:
    """Refuse a third label, and a positive label that occurs in no row."""
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
