"""Table 1, made again: ours beside the published one, once and many times."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from .._checks.columns import whole_number
from .._types import BoolArray, FloatArray
from .cells import LABELS, agreement, beside, cells_of, cells_of_table, signed
from .published import BINS, METRICS, PublishedColumn, published_table1
from .simulation import Simulation, paper_draws, simulate

__all__ = ["Replications", "Table1", "replicate_table1", "simulations", "table1"]

CENTRAL = 0.99


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table1:
    """Table 1 from one simulation of each noise; print it to see it beside the published one.

    Attributes
    ----------
    published : tuple of PublishedColumn
        The published table.
    cells : tuple of ndarray of shape (3, 11)
        Ours: for each noise ECE, ESCE and ECD in ten bins, and their weighted sums.
    rows : tuple of tuple of int
        Rows in each bin.
    about : str
        Which draws and which process.

    Examples
    --------
    >>> from safecal.paper import table1
    >>> table1().agreeing, table1(seed=1).agreeing  # of 99
    (99, 0)
    """

    published: tuple[PublishedColumn, ...]
    cells: tuple[FloatArray, ...]
    rows: tuple[tuple[int, ...], ...]
    about: str

    @property
    def agreeing(self) -> int:
        """How many of the 99 cells agree to the printed digits."""
        pairs = zip(self.published, self.cells, strict=True)
        return sum(int(column.agreeing(cells).sum()) for column, cells in pairs)

    def __repr__(self) -> str:
        pairs = zip(self.published, self.cells, self.rows, strict=True)
        blocks = [beside(column, cells, rows) for column, cells, rows in pairs]
        whole = agreement(self.published, self.cells)
        return "\n\n".join([f"Table 1. {self.about}", *blocks, f"In all: {whole}"])


def simulations(
    seed: int | None = None, *, n: int = 10_000, noise_on: str = "both"
) -> tuple[Simulation, Simulation, Simulation]:
    """Simulate the three noises of Table 1; without a seed, from the draws that the paper's table was made from."""
    clean, some, much = (
        simulate(n, sd=column.sd or 0.0, noise_on=noise_on, rng=paper_draws() if seed is None else (seed, k))
        for k, column in enumerate(published_table1())
    )
    return clean, some, much


def table1(seed: int | None = None, *, n: int = 10_000, noise_on: str = "both") -> Table1:
    """Make Table 1 again.

    Parameters
    ----------
    seed : int, optional
        Of NumPy's generator. Without one, the draws are those of the paper.
    n : int, default 10000
        Rows of each simulation.
    noise_on : {"both", "logit", "probability"}, default "both"
        The process, as for `simulate`: by default the one that made the published table; ``"logit"`` as written.

    Returns
    -------
    Table1
        Print it; the same seed gives the same table.

    Examples
    --------
    >>> from safecal.paper import table1
    >>> table = table1(seed=0, noise_on="logit")
    >>> [round(float(cells[2, -1]), 2) for cells in table.cells[1:]]  # ECD of the noises; published: 1.29, 4.24
    [0.02, 0.21]
    """
    runs = simulations(seed, n=n, noise_on=noise_on)
    tables = [rows.predictions().table(BINS) for rows in runs]
    which = "The draws of the paper" if seed is None else f"Seed {seed}"
    where = {"both": "log-odds and probability", "logit": "the log-odds, as written", "probability": "the probability"}
    return Table1(
        published_table1(),
        tuple(cells_of_table(table) for table in tables),
        tuple(tuple(s.n for s in table.summaries) for table in tables),
        f"{which}, {n} rows, noise on {where[noise_on]}.",
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Replications:
    """Table 1 simulated many times: mean, spread, and where the published cells lie.

    Attributes
    ----------
    published : tuple of PublishedColumn
        The published table.
    mean, sd, low, high : tuple of ndarray of shape (3, 11)
        For each noise: mean and standard deviation of our cells, and the ends of their central 99 %.
    replications : int
        How many.
    about : str
        Which process.

    Examples
    --------
    >>> from safecal.paper import replicate_table1
    >>> replications = replicate_table1(50, noise_on="logit")
    >>> [int(column.sum()) for column in replications.within][1:]  # of 33 cells, as written
    [6, 4]
    """

    published: tuple[PublishedColumn, ...]
    mean: tuple[FloatArray, ...]
    sd: tuple[FloatArray, ...]
    low: tuple[FloatArray, ...]
    high: tuple[FloatArray, ...]
    replications: int
    about: str

    @property
    def within(self) -> tuple[BoolArray, ...]:
        """Whether each published cell, as it is rounded, lies in the central 99 % of ours."""
        return tuple(
            (column.values >= low - column.rounding) & (column.values <= high + column.rounding)
            for column, low, high in zip(self.published, self.low, self.high, strict=True)
        )

    def __repr__(self) -> str:
        head = f"Table 1 {self.replications} times. {self.about} A star: outside the central {CENTRAL:.0%} of ours."
        inside = [int(within.sum()) for within in self.within]
        total = sum(within.size for within in self.within)
        blocks = [self._block(k) for k in range(len(self.published))]
        return "\n\n".join([head, *blocks, f"In all: {sum(inside)} of {total} published cells lie inside."])

    def _block(self, which: int) -> str:
        column, within = self.published[which], self.within[which]
        lines = [f"{column.name:<14}" + "".join(f"{metric:>28}" for metric in METRICS)]
        lines.append(f"{'probability':<14}" + f"{'published':>13}{'mean':>8}{'sd':>7}" * len(METRICS))
        lines.append("-" * len(lines[1]))
        for k, label in enumerate(LABELS):
            if k == BINS:
                lines.append("-" * len(lines[1]))
            line = f"{label:<14}"
            for m, printed in enumerate(column.printed):
                mean, sd = float(self.mean[which][m, k]), float(self.sd[which][m, k])
                line += f"{printed[k] + (' ' if within[m, k] else '*'):>13}{signed(mean):>8}{signed(sd):>7}"
            lines.append(line.rstrip())
        return "\n".join(lines)


def replicate_table1(
    replications: int = 1000,
    *,
    n: int = 10_000,
    noise_on: str = "both",
    seed: int = 0,
    tick: Callable[[], None] | None = None,
) -> Replications:
    """Make Table 1 many times, and see where the published cells lie.

    Parameters
    ----------
    replications : int, default 1000
        How many times.
    n : int, default 10000
        Rows of each simulation.
    noise_on : {"both", "logit", "probability"}, default "both"
        The process, as for `simulate`.
    seed : int, default 0
        Of NumPy's generator.
    tick : callable, optional
        Called after each simulation, three for each replication: for a progress line.

    Returns
    -------
    Replications
        Print it.

    Examples
    --------
    >>> from safecal.paper import replicate_table1
    >>> replications = replicate_table1(20)
    >>> round(float(replications.mean[2][2, -1]), 1)  # ECD of the third noise; published is 4.2405
    4.2
    """
    whole_number(replications, "replications", 2)
    cells_by_noise: list[FloatArray] = []
    for k, column in enumerate(published_table1()):
        rng = np.random.default_rng((seed, k))
        tables = []
        for _ in range(replications):
            rows = simulate(n, sd=column.sd or 0.0, noise_on=noise_on, rng=rng)
            tables.append(cells_of(rows.labels, rows.y_prob, rows.logits))
            if tick is not None:
                tick()
        cells_by_noise.append(np.stack(tables))
    tail = 0.5 * (1.0 - CENTRAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a bin that is empty every time stays NaN
        return Replications(
            published_table1(),
            tuple(np.nanmean(cells, axis=0) for cells in cells_by_noise),
            tuple(np.nanstd(cells, axis=0, ddof=1) for cells in cells_by_noise),
            tuple(np.nanquantile(cells, tail, axis=0) for cells in cells_by_noise),
            tuple(np.nanquantile(cells, 1.0 - tail, axis=0) for cells in cells_by_noise),
            replications,
            f"Noise on {'the log-odds, as written' if noise_on == 'logit' else noise_on}.",
        )
