"""The figures of the paper: what they show, and files of them."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy import special

from .._sums.table import Table
from .._types import FloatArray
from ..errors import FileError
from ..files import write_atomically
from ..plot.display import pyplot
from .drawing import draw_histograms, draw_range, draw_reliability
from .published import BINS, published_table1
from .simulated_table import simulations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FILES", "ECDRange", "ecd_range", "paper_figures", "write_figures"]

_KINDS = ("png", "svg")
_NAMES = (
    "ecd-range", "histograms-simulated", "reliability-simulated", "reliability-well-calibrated", "reliability-real",
)  # fmt: skip
FILES = tuple(f"{name}.{kind}" for name in _NAMES for kind in _KINDS)  # what `write_figures` may write


@final
@dataclass(frozen=True, slots=True, eq=False)
class ECDRange:
    """ECD of a single prediction, by the probability and by what happened.

    Attributes
    ----------
    p : ndarray of shape (points,)
        Probability of label 1, from 0.0001 to 0.9999.
    happened, failed : ndarray of shape (points,)
        ECD when the label is 1, and when it is 0.
    lowest : float
        The smallest value there is, ``-W(1/e)``.
    lowest_at : float
        Probability of label 1 at which it is taken when the label is 1; by symmetry at one minus it for label 0.

    Examples
    --------
    >>> from safecal.paper import ecd_range
    >>> found = ecd_range()
    >>> round(found.lowest, 5), round(found.lowest_at, 5)
    (-0.27846, 0.78219)
    """

    p: FloatArray
    happened: FloatArray
    failed: FloatArray
    lowest: float
    lowest_at: float


def ecd_range(points: int = 2001) -> ECDRange:
    """Return the range of ECD of a single prediction, as in the paper's figure of it.

    Parameters
    ----------
    points : int, default 2001
        How many probabilities, evenly spaced in log-odds.

    Returns
    -------
    ECDRange
        Both curves, and the smallest value.

    Examples
    --------
    >>> from safecal.paper import ecd_range
    >>> found = ecd_range()
    >>> round(float(found.failed[-1]), 4)  # 0.9999, and wrong
    9.2093
    """
    odds = np.linspace(special.logit(0.0001), special.logit(0.9999), points)
    p: FloatArray = special.expit(odds)
    w = float(special.lambertw(np.exp(-1.0)).real)
    return ECDRange(p, -special.expit(-odds) * odds, p * odds, -w, float(special.expit(1.0 + w)))


def paper_figures(
    seed: int | None = None, *, noise_on: str = "both", real: Mapping[str, Table] | None = None
) -> dict[str, Figure]:
    """Draw the figures of the paper.

    Parameters
    ----------
    seed : int, optional
        Of NumPy's generator. Without one, the draws are those of the paper.
    noise_on : {"both", "logit", "probability"}, default "both"
        The process, as for `simulate`.
    real : mapping of str to Table, optional
        Tables of bins of real models, by name, for reliability diagrams of them.

    Returns
    -------
    dict of str to matplotlib Figure
        By the name of the file that `write_figures` gives it.

    Examples
    --------
    >>> from safecal.paper import paper_figures
    >>> sorted(paper_figures())
    ['ecd-range', 'histograms-simulated', 'reliability-simulated', 'reliability-well-calibrated']
    """
    figure = new_figure()
    rows = simulations(seed, noise_on=noise_on)
    tables = [one.predictions().table(BINS) for one in rows]
    names = [column.name for column in published_table1()]
    found = {
        "ecd-range": draw_range(figure, ecd_range()),
        "histograms-simulated": draw_histograms(figure, dict(zip(names, tables, strict=True))),
        "reliability-simulated": draw_reliability(figure, dict(zip(names, tables, strict=True))),
        "reliability-well-calibrated": draw_reliability(figure, {"a well-calibrated model": tables[0]}),
    }
    if real:
        found["reliability-real"] = draw_reliability(figure, real)
    return found


def write_figures(
    folder: str | os.PathLike[str],
    seed: int | None = None,
    *,
    noise_on: str = "both",
    real: Mapping[str, Table] | None = None,
) -> tuple[Path, ...]:
    """Write the figures of the paper as PNG and as SVG.

    Parameters
    ----------
    folder : str or os.PathLike
        Where to; it is made where it does not exist.
    seed, noise_on, real
        As for `paper_figures`.

    Returns
    -------
    tuple of Path
        The files.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise FileError(f"`folder` must be a folder; {os.fspath(folder)!r} is a file, or lies in one.") from error
    written = []
    for name, drawn in paper_figures(seed, noise_on=noise_on, real=real).items():
        for kind in _KINDS:
            path = target / f"{name}.{kind}"
            write_atomically(path, picture_bytes(drawn, kind))
            written.append(path)
    return tuple(written)


def new_figure() -> Any:
    """Return a function that makes figures, which no window system hears of."""
    pyplot()  # says what to install
    from matplotlib.figure import Figure

    return lambda size: Figure(figsize=size, layout="constrained")


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as a file; the same figure gives the same bytes."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "safecal"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
    return buffer.getvalue()
