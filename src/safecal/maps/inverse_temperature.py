"""The inverse temperature of some rows, or why they have none: the likeliest one, and the largest one that is safe.

Under ``p_beta``, proportional to ``p**beta``, the summed surprisal has the cumulants that the log-partition functions
give. The likeliest beta is found to all digits, so that the ECD of the rows fitted to becomes 0. Impossible rows are
left out: no temperature explains them.

The safe one is found by tests. With

    g(beta) = E[ E_{p_beta} log p - log p(y) ]

which grows with beta and has the sign of the tempered model's ECD, the hypothesis ``g(beta) >= 0`` is tested at one
beta after another, upward from 0, and the last beta that is still rejected is returned. It lies above the root of g
only if the test rejected at the root itself: so one level serves all the tests.

The test is Student's, with the larger of two variances of the mean: the one that the model at beta gives itself, and
the one seen in the rows. The latter alone misses large surprises that have not happened yet, and fails in small
samples; the former alone trusts the model. Where rows come in clusters, it is the test of `inference.clustered`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, final

import numpy as np
from scipy import optimize, special

from .._checks.arrays import block
from .._kernels.classes import gap_moments
from .._sums.scored import known_surprisal
from .._types import AnyArray, FloatArray, IndexArray
from ..errors import UnavailableError
from ..families import Predictions
from ..families.categorical import Categorical
from ..inference.clustered import ALIKE, ClusterSums, Rarity, rarest_half
from ..inference.law import LARGEST, SMALLEST, Tilt, fitted, normal_score

__all__ = [
    "FEWEST", "FEWEST_IN_GROUP", "ClusteredRows", "Refusal", "TemperedRows", "effective_rows", "likeliest_beta",
    "safe_beta", "temper", "why_unfit",
]  # fmt: skip

FEWEST = 10  # rows below which no temperature is fitted
FEWEST_IN_GROUP = 30  # rows below which a group has none of its own

_SAMPLE, _MANY = 20_000, 100_000  # rows of a first fit, where there are many more
_BLOCK = 1 << 16  # elements that fit into a cache
_NEAR = 1e-4  # in log beta: what is left after a step of this length is its cube

# Where the test is first looked at. Below, every prediction is flat; few have logits in the thousands.
_GRID = (SMALLEST, *(2.0 ** np.arange(-18.0, -8.0, 2.0)).tolist(), *(2.0 ** np.arange(-8.0, 20.0)).tolist())

Margin = Callable[..., list[float]]  # betas -> by how much the test rejects at each


def _row_weights(possible: AnyArray, weight: AnyArray | None, rows: slice) -> FloatArray:
    """Return the weights of some rows, 0 for impossible ones."""
    return possible.astype(np.float64) if weight is None else possible * block(weight, rows)


class GapSums(NamedTuple):
    """Sums over rows of classes at one beta; a gap is how much less likely a class is than the likeliest one."""

    gaps: FloatArray  # of what happened, in each row; infinite where that was impossible
    seen: float  # the weighted sum of those of possible rows
    mass: float
    mean: float  # of the gaps that are expected, as the next three: w, w**2 and w times their cumulants
    information: float
    variance: float
    third: float


class ClassRows(NamedTuple):
    """Rows of K classes: logits, what happened, and weights where there are any."""

    z: AnyArray
    happened: IndexArray
    weight: AnyArray | None

    def take(self, rows: IndexArray | slice) -> "ClassRows":
        """Return some of the rows."""
        return ClassRows(self.z[rows], self.happened[rows], None if self.weight is None else self.weight[rows])

    def at(self, beta: float) -> GapSums:
        """Sum at one beta; a few rows at a time, so that what is made of them stays in a cache."""
        gaps, totals = np.empty(len(self.z)), np.zeros(6)
        step = max(1, _BLOCK // self.z.shape[1])
        for start in range(0, len(self.z), step):
            rows = slice(start, min(start + step, len(self.z)))
            moments = gap_moments(self.z[rows], beta)
            with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
                gaps[rows] = moments.largest - self.z[np.arange(rows.start, rows.stop), self.happened[rows]]
            possible = np.isfinite(gaps[rows])
            w = _row_weights(possible, self.weight, rows)
            v = w * moments.variance
            seen = w * np.where(possible, gaps[rows], 0.0)
            columns = seen, w, w * moments.mean, v, w * v, w * moments.third
            totals += [column.sum() for column in columns]
        return GapSums(gaps, *totals.tolist())

    def solved(self, start: float) -> float:
        """Return the beta at which the mean gap is the one seen, sought from ``start``."""
        first = self.at(start)

        def at(ratio: float) -> Tilt:
            sums = first if ratio == 1.0 else self.at(ratio * start)
            return Tilt(math.nan, sums.mean, start * sums.information, math.nan, math.nan)

        return start * fitted(at, first.seen, SMALLEST / start, LARGEST / start)


@final
@dataclass(frozen=True, slots=True)
class TemperedRows:
    """Rows, and the inverse temperature that makes their outcomes the likeliest."""

    predictions: Predictions
    weight: AnyArray | None
    possible: AnyArray
    mass: float  # sum of the weights of the possible rows
    beta: float = math.nan  # beta-hat; NaN where every prediction is a coin toss or a certainty
    spread: tuple[float, float] | None = None  # information and variance there, where they are known already

    def at(self, beta: float) -> Tilt:
        """Return the sums of surprisals at one beta."""
        totals = np.zeros(5)
        for rows in self.predictions.row_blocks():
            a, w = self.predictions._partition(rows)(beta), self.row_weights(rows)
            v = w * a.variance
            # Plain sums: BLAS would wake its threads for each of these short products.
            totals += [(w * a.value).sum(), (w * a.mean).sum(), v.sum(), (w * v).sum(), (w**3 * a.third).sum()]
        value, mean, information, variance, third = totals.tolist()
        return Tilt(value, -mean, information, variance, -third)

    def row_weights(self, rows: slice) -> FloatArray:
        return _row_weights(self.possible[rows], self.weight, rows)


def temper(predictions: Predictions, weight: AnyArray | None = None) -> TemperedRows:
    """Fit the inverse temperature by maximum likelihood.

    Raises UnavailableError for predictions without a log-partition function.
    """
    if isinstance(predictions, Categorical):
        return _tempered_classes(predictions, weight)
    surprisal = mass = above = 0.0
    possible = np.ones(predictions.n, dtype=bool)
    for rows in predictions.row_blocks():
        scored, _ = predictions.weighted(rows, None)
        if scored.surprisal is None:
            raise UnavailableError("an unnormalised density has no temperature.")
        possible[rows] = ~scored.impossible
        w = _row_weights(possible[rows], weight, rows)
        s = np.where(possible[rows], scored.surprisal, 0.0)
        surprisal += float((w * s).sum())
        mass += float(w.sum())
        if scored.confidence is None or scored.correct is None:
            above = math.inf
        else:  # an outcome as likely as the most likely one is no surprise either
            above += float((w * (~scored.correct & (s > -np.log(scored.confidence) * (1.0 + 1e-9)))).sum())
    tempered_rows = TemperedRows(predictions, weight, possible, mass)
    if tempered_rows.at(1.0).variance == 0.0:
        return tempered_rows
    beta = math.inf if above == 0.0 else fitted(tempered_rows.at, surprisal, SMALLEST, LARGEST)
    return replace(tempered_rows, beta=beta)


def _tempered_classes(predictions: Categorical, weight: AnyArray | None) -> TemperedRows:
    """Fit the inverse temperature of classes, from how much less likely each is than the likeliest one."""
    z = predictions.values
    if not predictions.logits:
        z = np.concatenate([predictions.log_values(part) for part in predictions.row_blocks()])
    rows, start = ClassRows(z, predictions.happened, weight), 1.0
    if len(z) > _MANY:
        sampled_beta = rows.take(np.random.default_rng(0).choice(len(z), _SAMPLE, replace=False)).solved(1.0)
        start = sampled_beta if 0.0 < sampled_beta < math.inf else 1.0
    sums = rows.at(start)
    possible = np.isfinite(sums.gaps)
    tempered_rows = TemperedRows(predictions, weight, possible, sums.mass)
    if not any(part.at(1.0).information > 0.0 for part in (rows.take(slice(0, 1000)), rows)):
        return tempered_rows
    surprised = possible & (sums.gaps > 1e-9)  # as likely as the likeliest one is no surprise either
    if not (surprised if weight is None else surprised & (weight > 0.0)).any():
        return replace(tempered_rows, beta=math.inf)
    beta = start
    for _ in range(2 if len(z) > _MANY else 0):  # so near to the end two steps of Halley's method do
        newton = (sums.mean - sums.seen) / (beta * sums.information) if sums.information > 0.0 else math.inf
        if not abs(newton) < 0.5:
            break
        step = newton / (1.0 + 0.5 * newton * (1.0 - beta * sums.third / sums.information))
        beta *= math.exp(step)
        if abs(step) < _NEAR:
            return replace(tempered_rows, beta=beta, spread=(sums.information, sums.variance))
        sums = rows.at(beta)
    return replace(tempered_rows, beta=rows.solved(beta))


class _ClusterBlock(NamedTuple):
    """Sums by cluster, and the chance of a surprise, of a block of rows at one beta."""

    sums: FloatArray  # by cluster: of surprises less those expected, variance, deviation and square
    chance: FloatArray | None  # of a surprise, a row
    deviation: FloatArray


class ClusteredRows(NamedTuple):
    """Rows and the number of the cluster of each: tests from the rows, at any beta."""

    rows: TemperedRows
    codes: IndexArray
    size: int

    def scores(self, betas: tuple[float, ...], critical: float) -> list[float]:
        """Return by how much each beta is ruled out as too small, in normal scores beyond the one that is critical."""
        return [normal_score(float(sums.tails(rarity)[2][0])) - critical for sums, rarity in self.at(*betas)]

    def at(self, *betas: float) -> list[tuple[ClusterSums, Rarity]]:
        """Return how sums of clusters spread at each beta, and how rare surprises are."""
        blocks = [self._block(part, betas) for part in self.rows.predictions.row_blocks()]
        return [self._combine(parts) for parts in zip(*blocks, strict=True)]

    def _block(self, part: slice, betas: tuple[float, ...]) -> list[_ClusterBlock]:
        rows = self.rows
        partition = rows.predictions._partition(part)
        scored, _ = rows.predictions.weighted(part, None)
        s = np.where(rows.possible[part], known_surprisal(scored), 0.0)
        w = rows.row_weights(part) / (1.0 if rows.weight is None else float(rows.weight.max()))
        blocks = []
        for beta in betas:
            a = partition(beta)
            g, deviation = w * (s + a.mean), w * np.sqrt(a.variance)
            columns = (g, w * w * a.variance, deviation, g * g)
            sums = [np.bincount(self.codes[part], weights=c, minlength=self.size) for c in columns]
            chance = None
            if scored.confidence is not None:
                chance = -np.expm1(np.minimum(beta * np.log(scored.confidence) - a.value, 0.0))
            blocks.append(_ClusterBlock(np.stack(sums), chance, deviation))
        return blocks

    @staticmethod
    def _combine(parts: Sequence[_ClusterBlock]) -> tuple[ClusterSums, Rarity]:
        sums = ClusterSums.of(*reduce(np.add, [part.sums for part in parts]))
        chances = [part.chance for part in parts if part.chance is not None]
        if not chances:
            return sums, ALIKE
        chance, deviation = np.concatenate(chances), np.concatenate([part.deviation for part in parts])
        rarity = rarest_half(chance, deviation), rarest_half(1.0 - chance, deviation)
        return sums, Rarity(*(np.array([x]) for x in rarity))


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """Why some rows have no temperature."""

    text: str
    hint: str | None
    short: str  # the same within a list of groups


def effective_rows(rows: TemperedRows) -> float:
    """Return the number of equally weighted rows that would tell as much (Kish)."""
    if rows.weight is None:
        return float(rows.possible.sum())
    w = np.asarray(rows.weight, dtype=np.float64)
    return float(w.sum() ** 2 / np.square(w).sum())


def why_unfit(rows: TemperedRows, fewest: int) -> Refusal | None:
    """Return why no temperature can be fitted at all, if so."""
    n = effective_rows(rows)
    counts = rows.possible if rows.weight is None else rows.possible | (np.asarray(rows.weight) == 0.0)
    if not counts.all():
        bad = np.flatnonzero(~counts)
        return Refusal(
            "no temperature explains an outcome of probability 0: that happened at row "
            f"{bad[0]} ({len(bad)} of {len(counts)} rows)",
            "pass `logits=`, which never saturate; or keep probabilities off 0 in the fit and when applying it, for "
            "example `np.clip(y_prob, 1e-6, 1 - 1e-6)`.",
            f"an outcome of probability 0 happened, {len(bad)} times",
        )
    if n < fewest * (1.0 - 1e-9):
        worth = f"got {rows.predictions.n}" if rows.weight is None else f"got weights worth {n:.3g}"
        return Refusal(f"a temperature needs at least {fewest} rows; {worth}", None, f"needs {fewest}")
    if math.isnan(rows.beta):
        text = "every prediction is a coin toss or a certainty, and no temperature changes those"
        return Refusal(text, None, "every prediction is a coin toss or a certainty")
    if rows.beta == 0.0:
        text = "confidence carries no information here: the outcomes are likelier without it, at T = infinity"
        hint = "are outcomes and predictions rows of the same data, in the same order? Is `pos_label` the right one?"
        return Refusal(text, hint, "confidence carries no information, T = infinity")
    return None


def likeliest_beta(rows: TemperedRows) -> float | Refusal:
    """Return the likeliest beta, unless it is infinite."""
    if math.isinf(rows.beta):
        return Refusal(
            "the most likely outcome happened in every row, so that no temperature is sharp enough: T = 0",
            "more rows would show a surprise; `SafeTemperature` finds how sharp predictions can safely be.",
            "no outcome surprised",
        )
    return rows.beta


def safe_beta(rows: TemperedRows, alpha: float, clusters: ClusteredRows | None = None) -> float | Refusal:
    """Return the largest beta up to which ``g(beta) >= 0`` is rejected at level ``alpha``."""
    critical = float(special.stdtrit(effective_rows(rows) - 1.0, 1.0 - alpha))
    if clusters is not None:
        critical = normal_score(alpha)

    def margin(*betas: float) -> list[float]:
        if clusters is not None:
            return clusters.scores(betas, critical)
        return [t - critical for t in _statistics(rows, betas)]

    end = min(rows.beta, LARGEST)  # at the likeliest beta, g is 0 in the sample and nothing is rejected
    grid = [beta for beta in _GRID if beta < end]
    low, best = 0.0, -math.inf
    for start in range(0, len(grid), 6):
        part = grid[start : start + 6]
        for beta, value in zip(part, margin(*part), strict=True):
            best = max(best, value)
            if value > 0.0:
                low = beta
            elif low > 0.0:
                return _crossing(margin, low, beta)
    if low > 0.0:  # without a surprise, predictions may be so flat that no beta is too sharp
        return end if math.isinf(rows.beta) and margin(end)[0] > 0.0 else _crossing(margin, low, end)
    size_and_unit = (rows.predictions.n, "rows") if clusters is None else (clusters.size, "clusters")
    return _not_ruled_out(*size_and_unit, alpha, critical, best + critical)


def _statistics(rows: TemperedRows, betas: tuple[float, ...]) -> list[float]:
    """Return Student's t of ``-g`` at each beta, with the larger of the two variances."""
    sums = np.zeros((len(betas), 4))
    square = 0.0
    for part in rows.predictions.row_blocks():
        w = rows.row_weights(part)
        w2 = w * w
        square += float(w2.sum())
        for j, (g, v) in enumerate(_surprises(rows, part, betas)):
            sums[j] += [np.dot(w, g), np.dot(w2, v), np.dot(w2, g), np.dot(w2, g * g)]
    n = effective_rows(rows)
    statistics = []
    for total, model, first, second in sums.tolist():
        mean = total / rows.mass
        seen = (second - 2.0 * mean * first + mean * mean * square) * n / (n - 1.0)
        variance = max(model, seen)
        statistics.append(-total / math.sqrt(variance) if variance > 0.0 else math.copysign(math.inf, -total))
    return statistics


def _surprises(rows: TemperedRows, part: slice, betas: tuple[float, ...]) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield for each beta how much more surprised than expected each row is, and the variance of that."""
    p, possible = rows.predictions, rows.possible[part]
    if isinstance(p, Categorical):
        z = p.log_values(part)
        outcome = np.where(possible, z[np.arange(len(z)), p.happened[part]], 0.0)
        for beta in betas:
            moments = gap_moments(z, beta)
            yield np.where(possible, moments.largest - outcome, 0.0) - moments.mean, moments.variance
        return
    partition = p._partition(part)
    scored, _ = p.weighted(part, None)
    s = np.where(possible, known_surprisal(scored), 0.0)
    for beta in betas:
        a = partition(beta)
        yield s + a.mean, a.variance


def _crossing(margin: Margin, low: float, high: float) -> float:
    """Return where the margin falls to 0 between two betas, the first time as far as ten points show it."""
    points = np.geomspace(low, high, 10).tolist()
    points[0], points[-1] = low, high
    values = np.array([1.0, *margin(*points[1:-1]), -1.0])
    first = int((values <= 0.0).argmax())
    return float(optimize.brentq(lambda beta: margin(beta)[0], points[first - 1], points[first], rtol=1e-12))


def _not_ruled_out(n: int, unit: str, alpha: float, critical: float, best: float) -> Refusal:
    needed = max(n + 1, math.ceil(1.1 * n * (critical / best) ** 2)) if best > 0.0 else 0
    enough = f"about {needed} {unit} like these would do" if 0 < needed < 1_000_000 else f"many more {unit} are needed"
    return Refusal(
        f"over-confidence cannot be ruled out at level {alpha:g} with these {n} {unit}, at any temperature",
        f"{enough}, or a larger `alpha`.",
        f"needs about {needed}{'' if unit == 'rows' else ' clusters'}" if 0 < needed < 1_000_000 else "needs many more",
    )
