"""Everything about one set of predictions, and what follows from it."""

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any, Self, final

from . import documents
from ._checks.columns import fraction, positive
from .display import Metric, evaluation_html, evaluation_text, inference_rows, metric_rows
from .histogram import Histogram
from .inference.intervals import Bounds
from .inference.results import Interval, TestResult
from .reliability import Reliability
from .summary import Summary
from .table import Table
from .verdict import Verdict, judge

__all__ = ["Evaluation"]


@final
@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything about one set of predictions, read off its sums; it holds no raw data.

    Attributes
    ----------
    family : str
        ``"bernoulli"``, ``"categorical"``, ``"gaussian"`` or ``"density"``.
    dimension : int
        Dimension of a state; 1 for classifiers.
    most_entropy : float
        Entropy of a prediction that says nothing; infinite for states and densities.
    summary : Summary
        Sums over all rows.
    bins : Table or None
        Sums by bin; None when nothing is binned.
    groups : Table or None
        Sums by group; None when ``by`` was not given.
    histogram : Histogram
        How the excess is spread over the rows.
    n_certain : int
        Rows that give some outcome a probability of exactly 0; of two classes, predictions of exactly 0 or 1.
    reliability : Reliability or None
        What the table of bins means: the ECE of chance, the parts of the Brier score, Spiegelhalter's test.
    test : TestResult
        The two-sided test of calibration.
    bounds : Bounds
        Bounds on ECD and on the temperature, at every level.
    threshold, max_temperature, level : float
        The limits of the verdict, and the level of its intervals.

    Examples
    --------
    >>> import safecal
    >>> result = safecal.evaluate([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], bins=2)
    >>> round(result.ecd, 4), round(result.ece, 4)
    (-0.157, 0.04)
    >>> result.verdict.decision  # five rows prove nothing
    'UNDETERMINED'
    """

    family: str
    dimension: int
    most_entropy: float
    summary: Summary
    bins: Table | None
    groups: Table | None
    histogram: Histogram
    n_certain: int
    reliability: Reliability | None
    test: TestResult
    bounds: Bounds
    threshold: float
    max_temperature: float
    level: float

    @property
    def interval(self) -> Interval:
        """ECD with its confidence interval."""
        return self.bounds.interval(self.level)

    @property
    def temperature(self) -> Interval:
        """The temperature the data ask for, with its interval: above 1 over-confident, below 1 under-confident."""
        return self.bounds.temperature(self.level)

    def confidence_interval(self, level: float) -> Interval:
        """Return ECD with its confidence interval at another level.

        Parameters
        ----------
        level : float
            Between 0 and 1; from 0.998 on, intervals grow no more.

        Returns
        -------
        Interval
            As `interval`.
        """
        return self.bounds.interval(fraction(level, "level"))

    @property
    def verdict(self) -> Verdict:
        """Is the model safe? Decision and reason, by the limits that were set."""
        return self.judge()

    def judge(
        self, *, threshold: float | None = None, max_temperature: float | None = None, level: float | None = None
    ) -> Verdict:
        """Decide by other limits.

        Parameters
        ----------
        threshold : float, optional
            Largest ECD that is allowed, in nats; for states in nats a dimension.
        max_temperature : float, optional
            Largest temperature that is allowed.
        level : float, optional
            Level of the confidence intervals.

        Returns
        -------
        Verdict
            The decision, and why.
        """
        return judge(
            self.summary,
            self.bounds,
            tuple(self._tables()),
            dimension=self.dimension,
            most_entropy=self.most_entropy,
            threshold=positive(self.threshold if threshold is None else threshold, "threshold"),
            max_temperature=positive(
                self.max_temperature if max_temperature is None else max_temperature, "max_temperature"
            ),
            level=fraction(self.level if level is None else level, "level"),
            certain=self.n_certain,
            worst_share=self.histogram.worst_share(),
            reliability=self.reliability,
            what=_TEMPERATURE.get(self.family, "its temperature is {}"),
        )

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
        return evaluation_text(self._title(), str(self.verdict), self._metrics(), self._tables())

    def _repr_html_(self) -> str:
        return evaluation_html(self._title(), str(self.verdict), self._metrics(), self._tables())

    def _title(self) -> str:
        return f"safecal evaluation: {self.n} {'row' if self.n == 1 else 'rows'}, {self.family}"

    def _tables(self) -> list[Table]:
        groups = None if self.groups is None else self.groups.worst_first()
        return [table for table in (self.bins, groups) if table is not None]

    def _metrics(self) -> list[Metric]:
        verdict = self.verdict
        head = inference_rows(verdict.ecd, verdict.temperature, self.test)
        return head + metric_rows(self.summary, None if math.isnan(self.ece) else self.bins, self.reliability)

    def plot(self) -> Any:
        """Draw the verdict, the reliability diagram, ECD by bin, the temperature and the groups, in one figure.

        Returns
        -------
        matplotlib.figure.Figure
            A new figure; the classes of `safecal.plot` draw each part on axes of yours.
        """
        from .plot.dashboard import dashboard

        return dashboard(self)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write a page that explains everything: one HTML file that needs no network.

        Parameters
        ----------
        path : str or os.PathLike
            Where to.
        title : str, optional
            What the page is about.
        """
        from .report import write_report

        write_report(self, path, title=title)

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
                "dimension": self.dimension,
                "most_entropy": documents.number(self.most_entropy),
                "threshold": self.threshold,
                "max_temperature": self.max_temperature,
                "level": self.level,
                "verdict": self.verdict.to_dict(),
                "test": self.test.to_dict(),
                "bounds": self.bounds.to_dict(),
                "histogram": self.histogram.to_dict(),
                "n_certain": self.n_certain,
                "reliability": None if self.reliability is None else self.reliability.to_dict(),
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
        content = documents.body("evaluation", document, _READ)
        bins, groups, reliability = content["bins"], content["groups"], content["reliability"]
        return cls(
            content["family"],
            content["dimension"],
            float(content["most_entropy"]),
            Summary.from_dict(content["summary"]),
            None if bins is None else Table.from_dict(bins),
            None if groups is None else Table.from_dict(groups),
            Histogram.from_dict(content["histogram"]),
            content["n_certain"],
            None if reliability is None else Reliability.from_dict(reliability),
            TestResult.from_dict(content["test"]),
            Bounds.from_dict(content["bounds"]),
            content["threshold"],
            content["max_temperature"],
            content["level"],
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


# What a temperature means, by family.
_TEMPERATURE = {
    "bernoulli": "its logits are {} times too large",
    "categorical": "its logits are {} times too large",
    "gaussian": "its covariances are {} times too small",
}
_READ = tuple(field.name for field in fields(Evaluation))
