"""What every family offers. To add a family, fill in the abstract methods in a file of its own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Unpack

import numpy as np

from .._checks.arrays import block
from .._checks.columns import spelled, weights, whole_number
from .._checks.message import fail, show
from .._checks.rows import RowLabels, same_labels
from .._kernels.compiled import Sums
from .._kernels.spectrum import NODES, spread_cells
from .._steady import steadied
from .._sums.bins import Bins
from .._sums.causes import ClassSums
from .._sums.cells import Cells, WeightedCells
from .._sums.clusters import NEAR, Near
from .._sums.nodes import Nodes
from .._sums.scored import Scored, possible_weight
from .._sums.splits import Plan, bins_for, by_bin
from .._sums.summary import Summary
from .._sums.sweep import sweep, tabulate
from .._sums.table import Table
from .._sums.tally import Tally
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, IndexArray, Rows, Strategy
from ..errors import OptionError, RangeError, UnavailableError
from ..options import EvaluateOptions

if TYPE_CHECKING:
    from ..judge.evaluation import Evaluation

__all__ = ["Cumulants", "Partition", "Predictions", "Spectral"]

BLOCK = 65_536
AT_NEAR = [NODES.index(beta) for beta in NEAR]
_FEW, _FEW_BLOCK = 500_000, 15_000  # for few rows, blocks whose columns malloc need not map anew each time


class Cumulants(NamedTuple):
    """``A(beta)``, the log of the sum or integral of ``p**beta``, and its first three derivatives, one value a row."""

    value: FloatArray
    mean: FloatArray
    variance: FloatArray
    third: FloatArray


class Spectral(NamedTuple):
    """The spectrum of some rows, where there is one, and what clusters of them need, made when it is asked for.

    ``order`` numbers the cell of each row in the order of the predictions, where the spectrum does not tell; where it
    does, ``coarse`` numbers the coarse one, with -1 for rows that are in none. ``nodes`` makes ``R`` and its
    derivatives at the nodes for each row, as `node_rows` gives them; Gaussian states need none.
    """

    spectrum: Cells | WeightedCells | Nodes | None
    near: Callable[[], Near] | None
    order: IndexArray | None = None
    nodes: Callable[[], FloatArray] | None = None
    coarse: Callable[[], IndexArray] | None = None


# beta, one for all rows or one a row -> the cumulants at it
Partition = Callable[[AnyArray | float], Cumulants]


@steadied
class Predictions(ABC):
    """Checked outcomes and predictions of one family, ready to be scored.

    Build them with `bernoulli`, `categorical`, `gaussian` or `density`. Nothing row-sized is made until it is asked
    for: sums run over blocks of rows.

    A new family subclasses this, names itself in ``family``, and fills in ``n``, ``_score`` and ``_partition``;
    `safecal.testing.assert_family_laws` checks the result.

    Examples
    --------
    >>> import safecal
    >>> predictions = safecal.bernoulli([1, 0, 1, 1], [0.8, 0.3, 0.6, 0.9])
    >>> predictions
    bernoulli predictions: 4 rows
    >>> round(predictions.ecd, 4)
    -0.2283
    """

    __slots__ = ()

    #: Name of the family, as it stands in tables and documents.
    family: ClassVar[str]
    #: Name of the argument that holds the outcomes, for messages.
    outcome: ClassVar[str] = "x_true"
    #: What rows can be binned on, the default first; empty when the family has no natural bins.
    bin_choices: ClassVar[tuple[BinOn, ...]] = ()
    #: What uniform bins can be of in `quick_sums`.
    quick_bins: ClassVar[tuple[str, ...]] = ()
    #: Whether outcomes can be listed, so that `gaps` exists.
    discrete: ClassVar[bool] = False
    #: Whether an evaluation makes a table of bins unless told otherwise.
    binned_by_default: ClassVar[bool] = False

    def axis_errors(self, rows: Rows) -> FloatArray | None:
        """Return the errors of states over the standard deviations stated for their axes, (n, d); None for others."""
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
        """What the classes are called; empty where they have numbers alone."""
        return ()

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
        raise fail(
            OptionError,
            "bins",
            f"of {self.family} predictions cannot be uniform: {bin_on} has no bounds",
            hint='pass `strategy="quantile"`, or edges: `bins=Bins.from_edges([...])`.',
        )

    def _rows(self, size: int) -> Iterator[slice]:
        for start in range(0, self.n, size):
            yield slice(start, min(start + size, self.n))

    def blocks(self, size: int = BLOCK) -> Iterator[Scored]:
        """Score the rows a block at a time.

        Parameters
        ----------
        size : int, default 65536
            Rows in a block.

        Yields
        ------
        Scored
            The columns of the next rows.
        """
        for rows in self._rows(whole_number(size, "size", 1)):
            yield self._score(rows)

    def score(self) -> Scored:
        """Score all rows at once.

        Returns
        -------
        Scored
            Columns as long as the data.
        """
        return Scored.concatenate(list(self.blocks(self._block_rows)))

    def row_blocks(self) -> Iterator[slice]:
        """Cut the rows into blocks that fit comfortably into memory."""
        return self._rows(self._block_rows)

    def gaps(self, rows: Rows) -> FloatArray:
        """Return how much less likely each other outcome is than the most likely one, where outcomes can be listed.

        Parameters
        ----------
        rows : slice or ndarray
            Which rows, or their numbers.

        Returns
        -------
        ndarray of shape (rows, outcomes)
            ``log p(most likely outcome) - log p(outcome)``; +inf where an outcome is impossible, and in the place of
            the most likely one.
        """
        raise UnavailableError(f"outcomes of {self.family} predictions cannot be listed.")

    def certain(self, rows: Rows) -> int:
        """Count the rows that give some outcome a probability of exactly 0.

        Parameters
        ----------
        rows : slice or ndarray
            Which rows, or their numbers.

        Returns
        -------
        int
            How many there are; 0 where outcomes cannot be listed.
        """
        return 0

    def decimals(self, rows: Rows) -> int:
        """Tell to how many decimals the probabilities of some rows were rounded.

        Parameters
        ----------
        rows : slice or ndarray
            Which rows, or their numbers.

        Returns
        -------
        int
            0 where they were not, or where there are none.
        """
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
    ) -> Sums | None:
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
        Sums or None
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
        found = np.full((len(NODES), 4, len(scored)), np.nan)
        for k, beta in enumerate(NODES):
            try:
                found[k] = partition(beta)
            except UnavailableError:
                continue
        w = possible_weight(scored, weight)
        surprises = len(scored) - int(scored.impossible.sum())
        possible = np.where(scored.impossible, 0.0, found)
        spectrum = Nodes.of(possible, w, surprises, classes=False)
        return Spectral(spectrum, lambda: Near(-found[AT_NEAR, 1], found[AT_NEAR, 2]), order, lambda: possible)

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

    def summary(self, weight: ArrayLike | None = None) -> Summary:
        """Sum all rows.

        Parameters
        ----------
        weight : array-like of shape (n,), optional
            Weight of each row.

        Returns
        -------
        Summary
            Sums that merge with ``+``.
        """
        return sweep(self, [], self._weights(weight))[0]

    @property
    def ecd(self) -> float:
        """Entropic calibration difference in nats: positive over-confident, negative under-confident."""
        return self.summary().ecd

    def log_partition(self, beta: float, *, deriv: int = 0) -> FloatArray:
        """Return ``A(beta) = log sum p**beta`` of each row, or a derivative of it.

        The first derivative at 1 is minus the entropy, the second is the varentropy. ``A`` is normalised to be 0 at 1.

        Parameters
        ----------
        beta : float
            Inverse temperature: below 1 the tempered model is less confident.
        deriv : {0, 1, 2, 3}, default 0
            Order of the derivative.

        Returns
        -------
        ndarray of shape (n,)
            One value a row.

        Raises
        ------
        UnavailableError
            Where the sum or integral does not exist.
        """
        if isinstance(deriv, bool) or deriv not in (0, 1, 2, 3):
            raise fail(OptionError, "deriv", "must be 0, 1, 2 or 3", got=show(deriv))
        if not np.isfinite(beta):
            raise fail(RangeError, "beta", "must be finite", got=show(beta))
        parts = [self._partition(rows)(float(beta))[deriv] for rows in self.row_blocks()]
        return np.concatenate(parts)

    def table(
        self,
        bins: int | Bins = 10,
        *,
        bin_on: BinOn | None = None,
        strategy: Strategy = "uniform",
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """Sum the rows by bin: every metric, without tests and intervals, in one fast pass.

        Parameters
        ----------
        bins : int or Bins, default 10
            How many bins, or the bins themselves.
        bin_on : str, optional
            What rows are binned on; one of ``bin_choices``.
        strategy : {"uniform", "quantile"}, default "uniform"
            Bins of equal width, or of about equally many rows.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.

        Returns
        -------
        Table
            A `Summary` for each bin; ``.total`` for all rows.
        """
        split = by_bin(self, *bins_for(self, bins, bin_on, strategy))
        return tabulate(self, [split], self._weights(sample_weight))[0]

    def _weights(self, sample_weight: ArrayLike | None) -> AnyArray | None:
        same_labels(self.row_labels, sample_weight=sample_weight)
        return weights(sample_weight, self.n, self.outcome)

    @spelled()
    def tally(
        self,
        *,
        bins: int | Bins | Literal["auto"] | None = "auto",
        bin_on: BinOn | None = None,
        strategy: Strategy = "uniform",
        by: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Tally:
        """Sum these predictions: all that an evaluation is made of, without a row.

        Parameters
        ----------
        bins : int, Bins, "auto" or None, default "auto"
            The bins of the table; ``"auto"`` is ten bins for classifiers, none for states and densities.
        bin_on, strategy, by, cluster, sample_weight
            As in `safecal.evaluate`.

        Returns
        -------
        Tally
            Sums that merge with ``+``.
        """
        same_labels(self.row_labels, by=by, cluster=cluster, sample_weight=sample_weight)
        plan = Plan.of(self, bins, bin_on, strategy)
        return Tally.of(self, plan, sample_weight=sample_weight, by=by, cluster=cluster)

    @spelled(EvaluateOptions)
    def evaluate(self, **options: Unpack[EvaluateOptions]) -> Evaluation:
        """Evaluate these predictions: every metric, the table of bins, groups.

        Parameters
        ----------
        **options
            ``bins``, ``bin_on``, ``strategy``, ``by``, ``cluster``, ``sample_weight``, ``threshold``,
            ``max_temperature``, ``max_ratio``, ``local_threshold``, ``min_share``, ``level``, ``rule`` and ``rng``, as
            in `safecal.evaluate`; ``bins="auto"``, the default, is ten for classifiers, none for states and densities.

        Returns
        -------
        Evaluation
            What `safecal.evaluate` returns.
        """
        from ..judge.front_door import evaluate_predictions

        return evaluate_predictions(self, **options)

    def __repr__(self) -> str:
        return f"{self.family} predictions: {self.n} rows"


def partition_surprisal(scored: Scored) -> FloatArray:
    """Return the surprisals; only normalised predictions, which have them, have a log-partition."""
    assert scored.surprisal is not None
    return scored.surprisal
