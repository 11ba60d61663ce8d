"""The inverse temperature of some rows, or why they have none.

The maximum of likelihood is that of `tempered`. The safe one is found by tests. With

    g(beta) = E[ E_{p_beta} log p - log p(y) ]

which grows with beta and has the sign of the tempered model's ECD, the hypothesis ``g(beta) >= 0`` is tested at one
beta after another, upward from 0, and the last beta that is still rejected is returned. It lies above the root of g
only if the test rejected at the root itself: so one level serves all the tests.

The test is Student's, with the larger of two variances of the mean: the one that the model at beta gives itself, and
the one seen in the rows. The latter alone misses large surprises that have not happened yet, and fails in small
samples; the former alone trusts the model. Where rows come in clusters, it is the test of `inference.dependence`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import optimize, special

from ..families.family import partition_surprisal
from ..inference.law import LARGEST, SMALLEST, normal_score
from .dependent import Dependent
from .tempered import Tempered

__all__ = ["FEWEST", "FEWEST_IN_GROUP", "Refusal", "effective_rows", "likeliest", "safe", "unfit"]

FEWEST = 10  # rows below which no temperature is fitted
FEWEST_IN_GROUP = 30  # rows below which a group has none of its own

Margin = Callable[..., list[float]]  # betas -> by how much the test rejects at each

# Where the test is first looked at. Below, every prediction is flat; few have logits in the thousands.
_GRID = (SMALLEST, *(2.0 ** np.arange(-18.0, -8.0, 2.0)).tolist(), *(2.0 ** np.arange(-8.0, 20.0)).tolist())


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """Why some rows have no temperature."""

    text: str
    hint: str | None
    short: str  # the same within a list of groups


def effective_rows(rows: Tempered) -> float:
    """Return the number of equally weighted rows that would tell as much (Kish)."""
    if rows.weight is None:
        return float(rows.possible.sum())
    w = np.asarray(rows.weight, dtype=np.float64)
    return float(w.sum() ** 2 / np.square(w).sum())


def unfit(rows: Tempered, fewest: int) -> Refusal | None:
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
        text = "confidence carries no information here: the less of it, the likelier the outcomes, down to T = infinity"
        hint = "are outcomes and predictions rows of the same data, in the same order? Is `pos_label` the right one?"
        return Refusal(text, hint, "confidence carries no information, T = infinity")
    return None


def likeliest(rows: Tempered) -> float | Refusal:
    """Return the likeliest beta, unless it is infinite."""
    if math.isinf(rows.beta):
        return Refusal(
            "the most likely outcome happened in every row: the sharper the likelier, down to T = 0",
            "more rows would show a surprise; `SafeTemperature` finds how sharp these rows allow to be.",
            "no outcome surprised",
        )
    return rows.beta


def safe(rows: Tempered, alpha: float, clusters: Dependent | None = None) -> float | Refusal:
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
    many = (rows.predictions.n, "rows") if clusters is None else (clusters.size, "clusters")
    return _not_ruled_out(*many, alpha, critical, best + critical)


def _statistics(rows: Tempered, betas: tuple[float, ...]) -> list[float]:
    """Return Student's t of ``-g`` at each beta, with the larger of the two variances."""
    sums = np.zeros((len(betas), 4))
    square = 0.0
    for part in rows.predictions.row_blocks():
        partition = rows.predictions._partition(part)
        scored, _ = rows.predictions.weighted(part, None)
        s = np.where(rows.possible[part], partition_surprisal(scored), 0.0)
        w = rows.row_weights(part)
        w2 = w * w
        square += float(w2.sum())
        for j, beta in enumerate(betas):
            a = partition(beta)
            g = s + a.mean
            sums[j] += [np.dot(w, g), np.dot(w2, a.variance), np.dot(w2, g), np.dot(w2, g * g)]
    n = effective_rows(rows)
    out = []
    for total, model, first, second in sums.tolist():
        mean = total / rows.mass
        seen = (second - 2.0 * mean * first + mean * mean * square) * n / (n - 1.0)
        variance = max(model, seen)
        out.append(-total / math.sqrt(variance) if variance > 0.0 else math.copysign(math.inf, -total))
    return out


def _crossing(margin: Margin, low: float, high: float) -> float:
    """Return where the margin falls to 0 between two betas, the first time as far as ten points show it."""
    points = np.geomspace(low, high, 10).tolist()
    points[0], points[-1] = low, high
    values = np.array([1.0, *margin(*points[1:-1]), -1.0])
    first = int((values <= 0.0).argmax())
    return float(optimize.brentq(lambda beta: margin(beta)[0], points[first - 1], points[first], rtol=1e-12))


def _not_ruled_out(n: int, unit: str, alpha: float, critical: float, best: float) -> Refusal:
    needed = max(n + 1, math.ceil(1.1 * n * (critical / best) ** 2)) if best > 0.0 else 0
    many = f"about {needed} {unit} like these would do" if 0 < needed < 1_000_000 else f"many more {unit} are needed"
    return Refusal(
        f"over-confidence cannot be ruled out at level {alpha:g} with these {n} {unit}, at any temperature",
        f"{many}, or a larger `alpha`.",
        f"needs about {needed}{'' if unit == 'rows' else ' clusters'}" if 0 < needed < 1_000_000 else "needs many more",
    )
