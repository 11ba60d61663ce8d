"""The front door: everything about one set of predictions."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Self, final

from . import documents
from ._checks.classes import one_form
from ._checks.columns import weights
from ._checks.message import fail
from ._types import ArrayLike, Labels
from .bins import Bins
from .display import Metric, evaluation_html, evaluation_text, metric_rows
from .errors import OptionError, ShapeError
from .families.bernoulli import bernoulli
from .families.categorical import categorical
from .families.predictions import Predictions
from .summary import Summary
from .table import Table
from .tabulate import bins_for, by_bin, by_group, tabulate

__all__ = ["Evaluation", "classifier", "evaluate", "evaluate_predictions"]


@final
@dataclass(frozen=True, slots=True)
class Evaluation:
    """Every metric of one set of predictions, read off its sums; it holds no raw data.

    Attributes
    ----------
    family : str
        ``"bernoulli"``, ``"categorical"``, ``"gaussian"`` or ``"density"``.
    summary : Summary
        Sums over all rows.
    bins : Table or None
        Sums by bin; None when nothing is binned.
    groups : Table or None
        Sums by group; None when ``by`` was not given.

    Examples
    --------
    >>> import safecal
    >>> result = safecal.evaluate([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], bins=2)
    >>> round(result.ecd, 4), round(result.ece, 4)
    (-0.157, 0.04)
    """

    family: str
    summary: Summary
    bins: Table | None
    groups: Table | None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.summary.n

    @property
    def ecd(self) -> float:
        """Entropic calibration difference in nats: ``> 0`` over-confident, ``< 0`` under-confident."""
        return self.summary.ecd

    def _reliability(self, read: Callable[[Table], float]) -> float:
        return math.nan if self.bins is None or self.summary.sum_predicted is None else read(self.bins)

    @property
    def ece(self) -> float:
        """Expected calibration error over the bins, 0 is best; NaN where there are no bins or no classes."""
        return self._reliability(lambda table: table.ece())

    @property
    def ece_overconfident(self) -> float:
        """The part of ECE from bins that are over-confident."""
        return self._reliability(lambda table: table.ece("overconfident"))

    @property
    def ece_underconfident(self) -> float:
        """The part of ECE from bins that are under-confident."""
        return self._reliability(lambda table: table.ece("underconfident"))

    @property
    def esce(self) -> float:
        """Expected signed calibration error, observed minus predicted; NaN as for `ece`."""
        return self._reliability(lambda table: table.esce())

    @property
    def brier(self) -> float:
        """Brier score, smaller is better; NaN for states and densities."""
        return self.summary.brier

    @property
    def nll(self) -> float:
        """Negative log-likelihood a row in nats, smaller is better; NaN for unnormalised densities."""
        return self.summary.nll

    @property
    def accuracy(self) -> float:
        """Share of rows in which the most likely class happened; NaN for states and densities."""
        return self.summary.accuracy

    @property
    def bias(self) -> float:
        """Observed minus predicted over all rows; NaN for states and densities."""
        return self.summary.bias

    def __repr__(self) -> str:
        return evaluation_text(self._title(), self._metrics(), self._tables())

    def _repr_html_(self) -> str:
        return evaluation_html(self._title(), self._metrics(), self._tables())

    def _title(self) -> str:
        return f"safecal evaluation: {self.n} {'row' if self.n == 1 else 'rows'}, {self.family}"

    def _tables(self) -> list[Table]:
        return [table for table in (self.bins, self.groups) if table is not None]

    def _metrics(self) -> list[Metric]:
        return metric_rows(self.summary, None if math.isnan(self.ece) else self.bins)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the sums, and the metrics they give.

        Returns
        -------
        dict
            It follows `json_schema`. An infinite metric is written as ``"inf"``, an absent one as None.
        """
        names = ("ecd", "nll", "ece", "ece_overconfident", "ece_underconfident", "esce", "brier", "accuracy", "bias")
        return documents.document(
            "evaluation",
            {
                "family": self.family,
                "n": self.n,
                "metrics": {name: documents.number(getattr(self, name)) for name in names},
                "summary": self.summary.to_dict(),
                "bins": None if self.bins is None else self.bins.to_dict(),
                "groups": None if self.groups is None else self.groups.to_dict(),
            },
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote; metrics are computed anew from the sums.

        Parameters
        ----------
        document : mapping
            The document.

        Returns
        -------
        Evaluation
            Equal to the one that was written.
        """
        content = documents.body("evaluation", document, ("family", "summary", "bins", "groups"))
        bins, groups = content["bins"], content["groups"]
        return cls(
            content["family"],
            Summary.from_dict(content["summary"]),
            None if bins is None else Table.from_dict(bins),
            None if groups is None else Table.from_dict(groups),
        )

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of the documents that `to_dict` writes.

        Returns
        -------
        dict
            A schema of draft 2020-12.
        """
        text = resources.files("safecal").joinpath("schemas", "evaluation-1.json").read_text(encoding="utf-8")
        schema: dict[str, Any] = json.loads(text)
        return schema


def classifier(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
) -> Predictions:
    """Return Bernoulli predictions for a column, categorical ones for a matrix."""
    values, name = one_form(y_prob, logits)
    if values.ndim == 2 and values.shape[1] == 1:
        rule = "must have shape (n,) for two classes or (n, K) with K >= 2"
        hint = f"if it belongs to the positive class, pass `{name}[:, 0]`."
        raise fail(ShapeError, name, rule, got=f"shape {values.shape}", hint=hint)
    if values.ndim not in (1, 2):
        rule = "must have shape (n,) for two classes or (n, K) with K >= 2"
        raise fail(ShapeError, name, rule, got=f"shape {values.shape}")
    form: dict[str, Any] = {name: values}
    if values.ndim == 1:
        if labels is not None:
            hint = "for one probability a row, name the positive class with `pos_label=`."
            raise fail(
                OptionError,
                "labels",
                "names the columns of an (n, K) prediction",
                got=f"`{name}` of shape (n,)",
                hint=hint,
            )
        return bernoulli(y_true, **form, pos_label=pos_label, clip=clip)
    if pos_label is not None:
        hint = "for one column a class, name the columns with `labels=`."
        raise fail(
            OptionError,
            "pos_label",
            "belongs to a prediction of shape (n,)",
            got=f"`{name}` of shape {values.shape}",
            hint=hint,
        )
    return categorical(y_true, **form, labels=labels, clip=clip)


def evaluate(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    bins: int | Bins | None = 10,
    bin_on: str | None = None,
    strategy: str = "uniform",
    by: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    clip: float | None = None,
) -> Evaluation:
    """Evaluate a classifier: every metric, the table of bins, groups.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        What happened. For two classes 0 or 1, or any two labels with ``pos_label``; for more the column number, or one
        of ``labels``.
    y_prob : array-like of shape (n,) or (n, K)
        Probability of the positive class, or of each of K classes.
    logits : array-like of shape (n,) or (n, K)
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
    pos_label : object, optional
        The label of the positive class, for shape (n,).
    labels : sequence of K hashables, optional
        The names of the columns in their order, for shape (n, K).
    bins : int, Bins or None, default 10
        The bins of the table; None for no table. Bins move ECE; they never move ECD.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on: by default the probability of the positive class for two classes, the confidence in
        the most likely class for more.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows.
    by : array-like of shape (n,), or mapping of names to such, optional
        Evaluate each group by itself, too. Missing values form a group of their own.
    sample_weight : array-like of shape (n,), optional
        Weight of each row in the means.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.

    Returns
    -------
    Evaluation
        Print it for the table; ``.ecd > 0`` means over-confident.

    See Also
    --------
    gaussian : State estimates; call ``.evaluate()`` on the result.
    density : Any distribution with a log-density; call ``.evaluate()`` on the result.

    Examples
    --------
    >>> import safecal
    >>> safecal.evaluate([0, 1, 1, 0, 1, 0], [0.1, 0.7, 0.9, 0.8, 0.6, 0.2], bins=2)
    safecal evaluation: 6 rows, bernoulli
    <BLANKLINE>
    ECD       -0.0040  nat: under-confident
    NLL        0.4851  nat, smaller is better; the model expected 0.4891
    ECE        0.0500  over-confident part 0.0000, under-confident 0.0500
    ESCE      -0.0500  observed minus predicted
    Brier      0.1583  smaller is better
    accuracy   0.8333  at a mean confidence of 0.7833
    <BLANKLINE>
    probability   rows  predicted  observed     ECE     ESCE      ECD
    -----------------------------------------------------------------
    [0, 0.5)         2     0.1500    0.0000  0.1500  -0.1500  -0.2485
    [0.5, 1]         4     0.7500    0.7500  0.0000   0.0000  +0.1182
    -----------------------------------------------------------------
    weighted sum     6     0.5500    0.5000  0.0500  -0.0500  -0.0040
    """
    predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
    return evaluate_predictions(
        predictions, bins=bins, bin_on=bin_on, strategy=strategy, by=by, sample_weight=sample_weight
    )


def evaluate_predictions(
    predictions: Predictions,
    *,
    bins: int | Bins | str | None = "auto",
    bin_on: str | None = None,
    strategy: str = "uniform",
    by: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Evaluation:
    """Evaluate predictions of any family; ``"auto"`` is ten bins for classifiers, none for states and densities."""
    if isinstance(bins, str) and bins == "auto":
        wanted = predictions.binned_by_default or bin_on is not None or strategy != "uniform"
        bins = 10 if wanted else None
    splits = []
    if bins is not None:
        splits.append(by_bin(predictions, *bins_for(predictions, bins, bin_on, strategy)))
    if by is not None:
        splits.append(by_group(predictions, by))
    if not splits:
        return Evaluation(predictions.family, predictions.summary(sample_weight), None, None)
    tables = tabulate(predictions, splits, weights(sample_weight, predictions.n, predictions.outcome))
    return Evaluation(
        predictions.family,
        tables[0].total,
        tables[0] if bins is not None else None,
        tables[-1] if by is not None else None,
    )
