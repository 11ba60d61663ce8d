"""The study of Table 1: which process made its noise columns?"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.columns import whole_number
from .._types import FloatArray
from .cells import INFORMATIVE, cells_of, outer_share
from .processes import CANDIDATES, Candidate, Match, N, blend, draw, find_draws
from .published import PublishedColumn, published_table1
from .simulation import paper_draws

__all__ = ["CLIPS", "ON_LOGIT", "ON_PROBABILITY", "Score", "Study", "run_study", "score", "steps"]

ON_LOGIT = (0.0, 0.5, 1.0, 1.5)
ON_PROBABILITY = (0.9, 0.95, 1.0, 1.05, 1.1, 1.13, 1.15)
CLIPS = (1e-6, 5e-6, 8e-6, 1e-5, 1.2e-5, 2e-5, 1e-4)
SEEDS = 1000


@final
@dataclass(frozen=True, slots=True)
class Score:
    """How well a process explains the two noise columns.

    Attributes
    ----------
    name, formula : str
        The process.
    fitted : int
        Constants that were chosen to fit.
    chi2 : tuple of float
        For each noise: squared distance of the 23 informative cells from their mean, in the covariance that they have
        among replications. About 23 for the true process.
    plain : tuple of float
        The same without correlations: the sum of squared standardised deviations.
    p_value : float
        Probability of cells as far off in both columns together, if the process is the true one (Hotelling).
    ece, ecd, outer : tuple of float
        Means of the weighted sums, and of the share of rows in bins 1 and 10.
    agreeing : int
        Of the 66 published cells, how many come out to the printed digits from the draws of the paper.

    Examples
    --------
    >>> from safecal.paper.processes import CANDIDATES
    >>> from safecal.paper.study import score
    >>> written = score(CANDIDATES[0], 100)
    >>> written.name, written.agreeing, written.p_value < 1e-6
    ('as written', 0, True)
    """

    name: str
    formula: str
    fitted: int
    chi2: tuple[float, ...]
    plain: tuple[float, ...]
    p_value: float
    ece: tuple[float, ...]
    ecd: tuple[float, ...]
    outer: tuple[float, ...]
    agreeing: int


@final
@dataclass(frozen=True, slots=True)
class Study:
    """All that the study found.

    Attributes
    ----------
    replications : int
        Simulations of each process and noise.
    scores : tuple of Score
        One for each candidate.
    blends : tuple of tuple of float
        χ² of both columns for ``clip(L(u + a ε) + b ε)``: a line for each a, a column for each b.
    clips : tuple of float
        χ² of both columns for the same noise on both, by the clip.
    matches : tuple of Match
        The draws that come closest to the column without noise.
    seeds : int
        Seeds that were tried.
    """

    replications: int
    scores: tuple[Score, ...]
    blends: tuple[tuple[float, ...], ...]
    clips: tuple[float, ...]
    matches: tuple[Match, ...]
    seeds: int

    @property
    def best(self) -> Score:
        """The process that gives the most published cells digit by digit."""
        return max(self.scores, key=lambda s: (s.agreeing, s.p_value))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("study", asdict(self))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        whole, pair = documents.count(), lambda value: _reals(value, 2)
        read_score = documents.record(
            dict.fromkeys(("name", "formula"), documents.text)
            | dict.fromkeys(("fitted", "agreeing"), whole)
            | dict.fromkeys(("chi2", "plain", "ece", "ecd", "outer"), pair)
            | {"p_value": documents.between(0.0, 1.0)}
        )
        read_match = documents.record(
            dict.fromkeys(("seed", "agreeing"), whole)
            | dict.fromkeys(("generator", "order"), documents.text)
            | {"largest": documents.between(0.0)}
        )
        fields = {
            "replications": documents.count(1),
            "scores": documents.list_of(read_score, 1),
            "blends": documents.list_of(lambda value: _reals(value, len(ON_PROBABILITY)), len(ON_LOGIT), len(ON_LOGIT)),
            "clips": lambda value: _reals(value, len(CLIPS)),
            "matches": documents.list_of(read_match, 1),
            "seeds": whole,
        }
        values = documents.read("study", document, fields)
        values["scores"] = tuple(Score(**entry) for entry in values["scores"])
        values["matches"] = tuple(Match(**entry) for entry in values["matches"])
        return cls(**values | {"blends": tuple(values["blends"])})


def _reals(value: Any, size: int) -> tuple[float, ...]:
    return tuple(documents.list_of(documents.read_number, size, size)(value))


def run_study(replications: int = 1000, *, seeds: int = SEEDS, tick: Callable[[str], None] | None = None) -> Study:
    """Score every candidate process against the published noise columns, and look for the draws themselves.

    Parameters
    ----------
    replications : int, default 1000
        Simulations of each candidate and noise; at least 100. Finer scans take a third of them.
    seeds : int, default 1000
        Seeds that are tried, from 0.
    tick : callable, optional
        Called before each of `steps()` steps with its name: for a progress line.

    Returns
    -------
    Study
        The same for the same arguments: seeds are fixed.
    """
    whole_number(replications, "replications", 100)
    say = tick or (lambda _: None)
    scores = []
    for candidate in CANDIDATES:
        say(candidate.name)
        scores.append(score(candidate, replications))
    fewer = max(replications // 3, 100)
    blends = []
    for a in ON_LOGIT:
        say(f"{a:g} of the noise on the log-odds")
        blends.append(tuple(_together(blend(a, b), fewer) for b in ON_PROBABILITY))
    say("clips")
    clips = tuple(_together(blend(1.0, 1.0, clip), fewer) for clip in CLIPS)
    say("seeds")
    matches = find_draws(range(seeds))[:5]
    return Study(replications, tuple(scores), tuple(blends), clips, matches, seeds)


def steps() -> int:
    """Return how often `run_study` calls its ``tick``."""
    return len(CANDIDATES) + len(ON_LOGIT) + 2


def score(candidate: Candidate, replications: int, seed: int = 0) -> Score:
    """Score one candidate against both noise columns."""
    simulated = [_simulated(candidate, column, replications, seed) for column in _noisy()]
    distances = [_distance(column, cells) for column, (cells, _) in zip(_noisy(), simulated, strict=True)]
    size = int(INFORMATIVE.sum())
    p_value = float(special.chdtrc(2 * size, sum(_hotelling(d[0], replications, size) for d in distances)))
    return Score(
        candidate.name,
        candidate.formula,
        candidate.fitted,
        tuple(d[0] for d in distances),
        tuple(d[1] for d in distances),
        p_value,
        tuple(float(cells[:, 0, -1].mean()) for cells, _ in simulated),
        tuple(float(cells[:, 2, -1].mean()) for cells, _ in simulated),
        tuple(share for _, share in simulated),
        max(_agreeing(candidate, labels_first) for labels_first in (False, True)),
    )


def _noisy() -> tuple[PublishedColumn, ...]:
    return published_table1()[1:]


def _simulated(candidate: Candidate, column: PublishedColumn, times: int, seed: int) -> tuple[FloatArray, float]:
    """Return the cells of many tables, and the mean share of rows in the outer bins."""
    assert column.sd is not None
    rng = np.random.default_rng((seed, round(10 * column.sd)))
    cells, shares = [], []
    for _ in range(times):
        rows = draw(candidate, rng, N, column.sd)
        cells.append(cells_of(*rows))
        shares.append(outer_share(rows[1]))
    return np.stack(cells), float(np.mean(shares))


def _distance(column: PublishedColumn, cells: FloatArray) -> tuple[float, float]:
    """Return the squared distance of the published cells, with their correlations and without."""
    ours = cells[:, INFORMATIVE]
    ours = ours[~np.isnan(ours).any(axis=1)]
    if len(ours) <= 2 * ours.shape[1]:  # bins that the process leaves empty
        return np.inf, np.inf
    deviation = column.values[INFORMATIVE] - ours.mean(axis=0)
    covariance = np.cov(ours, rowvar=False)
    with_correlations = float(deviation @ np.linalg.solve(covariance, deviation))
    return with_correlations, float((deviation**2 / np.diag(covariance)).sum())


def _hotelling(t2: float, times: int, size: int) -> float:
    """Shrink a distance in an estimated covariance to about a chi-square."""
    return t2 * (times - size) / ((times - 1) * (1.0 + 1.0 / times))


def _together(candidate: Candidate, times: int) -> float:
    columns = _noisy()
    return sum(_distance(column, _simulated(candidate, column, times, 1)[0])[0] for column in columns)


def _agreeing(candidate: Candidate, labels_first: bool) -> int:
    """Count the published cells that come out to the printed digits from the draws of the paper."""
    count = 0
    for column in _noisy():
        assert column.sd is not None
        rows = draw(candidate, paper_draws(), N, column.sd, labels_first=labels_first)
        count += int(column.agreeing(cells_of(*rows)).sum())
    return count
