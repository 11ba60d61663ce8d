"""What a family fills in, in a file of its own: its rows, its formulas, and the words that people read of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from .._checks import fail
from .._checks.arrays import RowLabels, block
from .._checks.columns import steadied
from .._kernels.compiled import KernelSums
from .._kernels.spectrum import NODES, spread_cells
from .._sums.causes import ClassSums, DirectionColumns
from .._sums.clusters import Near
from .._sums.forecasts import DrawColumns, ForecastColumns, VectorColumns
from .._sums.nodes import AT_NEAR, Cumulants, Nodes, Partition, Spectral
from .._sums.scored import Scored, possible_weight
from .._types import AnyArray, BinOn, FloatArray, IndexArray, Mapped, Rows
from ..errors import OptionError, UnavailableError

__all__ = ["AT_NEAR", "BLOCK", "Cumulants", "Family", "FamilyWords", "Partition", "Spectral"]

BLOCK = 65_536
_FEW, _FEW_BLOCK = 500_000, 15_000  # for few rows, blocks whose columns malloc need not map anew each time


@final
@dataclass(frozen=True, slots=True)
class FamilyWords:
    """What people read of a family, in verdicts, reports and hints."""

    kind: str = ""  # what is predicted; ``{classes}`` is how many classes there are
    scaled: str = "densities"  # what a temperature acts on
    sense: Literal["large", "small", "sharp"] = "sharp"  # so many times too large or small, or just too sharp, above 1
    right: str = ""  # what they are compared with, where they are so many times too large or too small
    call: str = "predictions.evaluate({})"  # Python that evaluates such predictions; ``{}`` stands for the options
    tempered: str = "use `beta_` yourself: the tempered density is `p**beta_`."  # how a fitted temperature is used
    alone: FamilyWords | None = None  # what people read of predictions of one number, where that is something else
    mends: str = ""  # what corrects such predictions, where no map of safecal does
    root: bool = False  # whether ``scaled`` is off by the root of a temperature, and not by the temperature itself
    wrong: str = ""  # what is wrong where they are over-confident, in a sentence

    def of(self, dimension: int) -> FamilyWords:
        """Return the words for predictions of that dimension."""
        return self if dimension > 1 or self.alone is None else self.alone

    def multiple(self, temperature: float) -> float:
        """Return how many times what is scaled is off, where a temperature is what the data ask for."""
        return math.sqrt(temperature) if self.root and temperature > 0.0 else temperature

    @property
    def factor(self) -> str | None:
        """What a temperature above 1 means, with ``{}`` for how many times; None where nothing is multiplied."""
        return None if self.sense == "sharp" else f"its {self.scaled} {{}} too {self.sense}"

    def times(self, temperature: float) -> str:
        """Say what a temperature of which something is a multiple means.

        Examples
        --------
        >>> FamilyWords(scaled="covariances", sense="small").times(0.25)
        '4 times too large'
        """
        hot, cold = ("small", "large") if self.sense == "small" else ("large", "small")
        times = self.multiple(temperature if temperature > 1.0 else 1.0 / temperature if temperature else math.inf)
        return f"{times:.3g} times too {hot if temperature > 1.0 else cold}"


@steadied
class Family(ABC):
    """What inference, tables and documents need of a family: the part of `Predictions` that a new family fills in.

    Only ``family``, ``n``, ``_score`` and ``_partition`` have no default.
    """

    __slots__ = ()

    #: Name of the family, as it stands in tables and documents.
    family: ClassVar[str]
    #: What people read of it.
    words: ClassVar[FamilyWords] = FamilyWords()
    #: Name of the argument that holds the outcomes, for messages.
    outcome: ClassVar[str] = "x_true"
    #: What rows can be binned on, the default first; empty when the family has no natural bins.
    bin_choices: ClassVar[tuple[BinOn, ...]] = ()
    #: What uniform bins can be of in `quick_sums`.
    quick_bins: ClassVar[tuple[str, ...]] = ()
    #: Whether outcomes can be listed, so that `gaps` exists.
    discrete: ClassVar[bool] = False
    #: Whether the excess of calibrated rows is half a chi-square less its mean, so that there is a NEES.
    chi_square: ClassVar[bool] = False
    #: Whether an evaluation makes a table of bins unless told otherwise.
    binned_by_default: ClassVar[bool] = False
    #: Whether each row has log-odds: there are two outcomes, one of them positive, and their names are not kept.
    has_odds: ClassVar[bool] = False
    #: What maps work on: logits of classes, covariances of states, or nothing of this family.
    mapped: ClassVar[Mapped] = "nothing"

    @property
    def classes(self) -> int | None:
        """Number of classes; None for states and densities."""
        return None

    @property
    def ordered_on(self) -> str:
        """What the cells of `Spectral.order` are of: ``"confidence"``, ``"spread"``, ``"width"``, ``"perplexity"``."""
        return "confidence" if self.discrete else "spread"

    @property
    def what_happened(self) -> AnyArray | None:
        """The outcomes, row by row, which two models on the same rows have in common; None where they are not kept."""
        return None

    def direction_columns(self, rows: Rows) -> DirectionColumns | None:
        """Return what directions of states are judged by; None for others."""
        return None

    def axis_errors(self, rows: Rows) -> FloatArray | None:
        """Return the errors of states over the standard deviations stated for their axes, (n, d); None for others."""
        return None

    def forecast_columns(self, rows: Rows) -> ForecastColumns | VectorColumns | DrawColumns | None:
        """Return what forecasters look at, of forecasts of a number or of a vector; None for others."""
        return None

    def class_sums(self, rows: slice, scored: Scored, weight: FloatArray | None) -> ClassSums | None:
        """Return how often each class was predicted and happened.

        Parameters
        ----------
        rows : slice
            Which rows.
        scored : Scored
            Their columns.
        weight : ndarray of shape (rows,) or None
            Their weights.

        Returns
        -------
        ClassSums or None
            None for states, for one column of two classes, and for more than 32 classes.
        """
        return None

    @property
    def class_names(self) -> tuple[str, ...]:
        """What the classes are called, or the axes of states; empty where they have numbers alone."""
        return ()

    def room(self, weight: FloatArray | None) -> float | None:
        """Sum the largest entropy that each row can have, by the weights of all rows; None where all have the same."""
        return None

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @property
    def row_labels(self) -> RowLabels | None:
        """The pandas index that the rows came with; columns beside them must have the same."""
        return None

    @property
    def dimension(self) -> int:
        """Dimension of a state; 1 for everything else."""
        return 1

    @property
    def least_excess(self) -> float:
        """The smallest excess that any prediction of this family can have."""
        return -math.inf

    @abstractmethod
    def _score(self, rows: Rows) -> Scored:
        """Score some rows; they come as a slice, or as row numbers where there are `quick_bins`."""

    @abstractmethod
    def _partition(self, rows: slice) -> Partition:
        """Prepare ``log sum p**beta`` and its derivatives of some rows; raise UnavailableError where it is infinite."""

    def _log_partitions(self, rows: slice, betas: Sequence[float]) -> FloatArray:
        """Return ``log sum p**beta`` of some rows, of shape (betas, rows)."""
        partition = self._partition(rows)
        return np.stack([partition(beta).value for beta in betas])

    @property
    def _block_rows(self) -> int:
        """Rows that fit comfortably into memory at once."""
        return BLOCK if self.n > _FEW else _FEW_BLOCK

    def bin_range(self, bin_on: str) -> tuple[float, float]:
        """Return the range of the value that rows are binned on; uniform bins cut it into equal parts."""
        rule = f"of {self.family} predictions cannot be uniform: {bin_on} has no bounds"
        hint = 'pass `strategy="quantile"`, edges: `bins=Bins.from_edges([...])`, or `bins=None`.'
        raise fail(OptionError, "bins", rule, hint=hint)

    def gaps(self, rows: Rows) -> FloatArray:
        """Return how much less likely each other outcome is than the most likely one, where outcomes can be listed.

        Of shape (rows, outcomes): ``log p(most likely outcome) - log p(outcome)``; +inf where an outcome is impossible,
        and in the place of the most likely one.
        """
        raise UnavailableError(f"outcomes of {self.family} predictions cannot be listed.")

    def certain(self, rows: Rows) -> int:
        """Count the rows that give some outcome a probability of exactly 0; none where outcomes cannot be listed."""
        return 0

    def decimals(self, rows: Rows) -> int:
        """Tell to how many decimals the probabilities of some rows were rounded; 0 where they were not."""
        return 0

    def quick_sums(
        self,
        rows: slice,
        weight: FloatArray | None = None,
        *,
        keys: int = 1,
        edges: FloatArray | None = None,
        bin_on: str = "probability",
        index: IndexArray | None = None,
        spectrum: bool = False,
        nodes: bool = False,
    ) -> KernelSums | None:
        """Sum some rows in one compiled pass; None where there is none for them.

        Parameters
        ----------
        rows : slice
            Which rows.
        weight : ndarray of shape (rows,), optional
            Their weights.
        keys : int, default 1
            How many keys there are.
        edges : ndarray of shape (keys + 1,), optional
            Edges of uniform bins.
        bin_on : str, default "probability"
            What those bins are of; one of ``quick_bins``.
        index : ndarray of shape (rows,), optional
            The number of the key of each row, instead.
        spectrum : bool, default False
            Whether the moments by cell of the log-odds are wanted; for rows without weights.
        nodes : bool, default False
            Whether sums at the nodes of the log-partition are wanted, by key; for rows without weights.

        Returns
        -------
        KernelSums or None
            As the compiled kernel gives them.
        """
        return None

    def known_value(self, bin_on: str, rows: slice) -> FloatArray | None:
        """Return the value that rows are binned on, where it is known without scoring them.

        Parameters
        ----------
        bin_on : str
            One of ``bin_choices``.
        rows : slice
            Which rows.

        Returns
        -------
        ndarray or None
            One value a row. A family that returns them, or has ``quick_bins``, must score rows by their numbers, too.
        """
        return None

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        """Return what inference needs of some rows beside their sums.

        Parameters
        ----------
        rows : slice or ndarray
            Which rows.
        scored : Scored
            Their columns.
        weight : ndarray of shape (rows,) or None
            Their weights.

        Returns
        -------
        Spectral
            By default the log-partition at fixed nodes, as far as it exists.
        """
        order = None if scored.entropy is None else spread_cells(scored.entropy, self.dimension)
        if scored.surprisal is None:
            return Spectral(None, None, order)
        assert isinstance(rows, slice)
        try:
            partition = self._partition(rows)
        except UnavailableError:
            return Spectral(None, None, order)
        at_nodes = np.full((len(NODES), 4, len(scored)), np.nan)
        for k, beta in enumerate(NODES):
            try:
                at_nodes[k] = partition(beta)
            except UnavailableError:
                continue
        w = possible_weight(scored, weight)
        surprises = len(scored) - int(scored.impossible.sum())
        possible = np.where(scored.impossible, 0.0, at_nodes)
        spectrum = Nodes.of(possible, w, surprises, classes=False)
        return Spectral(spectrum, lambda: Near(-at_nodes[AT_NEAR, 1], at_nodes[AT_NEAR, 2]), order, lambda: possible)

    def weighted(self, rows: Rows, weight: AnyArray | None) -> tuple[Scored, FloatArray | None]:
        """Score some rows, and cut out their weights.

        Parameters
        ----------
        rows : slice or ndarray
            Which rows; numbers where there are ``quick_bins``.
        weight : ndarray of shape (n,) or None
            Checked weights of all rows.

        Returns
        -------
        scored : Scored
            Columns of these rows.
        weight : ndarray or None
            Their weights.
        """
        return self._score(rows), None if weight is None else block(weight, rows)

    def scored_with_spectrum(self, rows: slice, weight: AnyArray | None) -> tuple[Scored, FloatArray | None, Spectral]:
        """Score some rows, and return what inference needs of them beside their sums.

        Parameters
        ----------
        rows : slice
            Which rows.
        weight : ndarray of shape (n,) or None
            Checked weights of all rows.

        Returns
        -------
        scored : Scored
            Columns of these rows.
        weight : ndarray or None
            Their weights.
        spectral : Spectral
            Their spectrum.
        """
        scored, w = self.weighted(rows, weight)
        return scored, w, self.spectral(rows, scored, w)
