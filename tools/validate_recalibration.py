"""Measure how often recalibrated predictions are over-confident, and what safety costs.

Draws many calibration sets from a known truth, fits `Temperature` and `SafeTemperature(alpha=0.05)` to each, and counts
how often the ECD of the recalibrated model is positive in the population, which is known. Prints a table in Markdown;
the same seeds give the same table.

    python tools/validate_recalibration.py            # the published table, a quarter of an hour
    python tools/validate_recalibration.py --quick    # a tenth of the repetitions
"""

import argparse
import math
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import interpolate, optimize, special

import safecal
from safecal.maps.inverse_temperature import FEWEST, Refusal, safe_beta, temper, why_unfit

ALPHA = 0.05
SIZES = (50, 200, 1000)
GRID = np.exp(np.linspace(math.log(1e-4), math.log(1e3), 300))


@dataclass(frozen=True)
class Case:
    """One truth: how logits and true probabilities (for states: inflations of the true covariance) are drawn."""

    model: str
    truth: str
    states: bool
    draw: Callable[[np.random.Generator, int, np.ndarray | None], tuple[np.ndarray, np.ndarray]]
    rare: float = 0.0  # share of rows that are unlike the others

    def predictions(self, rng: np.random.Generator, n: int) -> safecal.Predictions:
        z, q = self.draw(rng, n, rng.random(n) < self.rare if self.rare else None)
        if self.states:
            return safecal.gaussian(rng.normal(size=z.shape) * np.sqrt(q)[:, None], np.zeros(z.shape), std=1.0)
        y = (np.cumsum(q, axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=z.shape[1] - 1)
        return safecal.bernoulli(y, logits=z[:, 1] - z[:, 0]) if z.shape[1] == 2 else safecal.categorical(y, logits=z)


@dataclass(frozen=True)
class Population:
    """What is true of all rows: the inverse temperature at which ECD is 0, and NLL at any, up to a constant."""

    beta: float
    nll: Callable[[np.ndarray], np.ndarray]


@lru_cache
def population(case: Case, rows: int = 20_000) -> Population:
    rare = np.arange(rows) < rows * case.rare  # exactly as many as in the population
    z, q = case.draw(np.random.default_rng(7), rows, rare)
    if case.states:
        d, inflation = z.shape[1], float(q.mean())
        return Population(1.0 / inflation, lambda beta: d / 2.0 * (beta * inflation - np.log(beta)))
    z = np.ascontiguousarray((z - z.max(axis=1, keepdims=True)).T)  # so that no power leaves the range of floats
    observed = float((q.T * z).sum(axis=0).mean())

    def expected(log_beta: float) -> float:
        power = np.exp(math.exp(log_beta) * z)
        return float(((power * z).sum(axis=0) / power.sum(axis=0)).mean()) - observed

    values = [float(np.log(np.exp(beta * z).sum(axis=0)).mean()) - beta * observed for beta in GRID]
    curve = interpolate.PchipInterpolator(np.log(GRID), values)
    root = optimize.brentq(expected, math.log(GRID[0]), math.log(GRID[-1]))
    return Population(math.exp(root), lambda beta: curve(np.log(beta)))


def _binary(mean: float, spread: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: np.stack([np.zeros(n), rng.normal(mean, spread, n)], axis=1)


def _heavy(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.stack([np.zeros(n), 3.0 * rng.standard_t(2, n)], axis=1)


def _ten(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0.0, 2.5, (n, 10))


MODELS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "binary, logits N(0, 2²)": _binary(0.0, 2.0),
    "binary, logits N(4, 1)": _binary(4.0, 1.0),
    "10 classes": _ten,
}
STATES = "Gaussian, d = 4"


def temperature_case(model: str, logits: Callable[[np.random.Generator, int], np.ndarray], t: float) -> Case:
    def draw(rng: np.random.Generator, n: int, rare: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        z = logits(rng, n)
        return z, special.softmax(z / t, axis=1)

    return Case(model, f"T = {t:g}", False, draw)


def state_case(t: float) -> Case:
    return Case(STATES, f"T = {t:g}", True, lambda rng, n, rare: (np.zeros((n, 4)), np.full(n, t)))


def noisy_case(model: str, logits: Callable[[np.random.Generator, int], np.ndarray]) -> Case:
    def draw(rng: np.random.Generator, n: int, rare: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        z = logits(rng, n)
        p = special.softmax(z, axis=1)
        return z, 0.95 * p + 0.05 * (1.0 - p) / (z.shape[1] - 1)

    return Case(model, "5 % of labels wrong", False, draw)


def rare_case(model: str, logits: Callable[[np.random.Generator, int], np.ndarray]) -> Case:
    def draw(rng: np.random.Generator, n: int, rare: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        z = logits(rng, n)
        q = special.softmax(z, axis=1)
        assert rare is not None
        z[rare] = 0.0
        z[rare, rng.integers(0, z.shape[1], int(rare.sum()))] = 6.0
        q[rare] = 1.0 / z.shape[1]
        return z, q

    return Case(model, "1 % of rows confidently random", False, draw, 0.01)


def rare_states() -> Case:
    def draw(rng: np.random.Generator, n: int, rare: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((n, 4)), np.where(rare, 25.0, 1.0)

    return Case(STATES, "1 % of rows with errors 5 times larger", True, draw, 0.01)


def inside() -> list[Case]:
    """Cases in which a temperature is all that is wrong."""
    cases = [temperature_case(model, logits, t) for model, logits in MODELS.items() for t in (1.0, 1.5, 3.0)]
    return [*cases, *(state_case(t) for t in (1.0, 1.5, 3.0))]


def outside() -> list[Case]:
    """Cases that no temperature mends, and one with logits that have no variance."""
    cases = [noisy_case(model, logits) for model, logits in MODELS.items()]
    cases += [rare_case(model, logits) for model, logits in MODELS.items()]
    return [*cases, rare_states(), *(temperature_case("binary, logits 3 t(2)", _heavy, t) for t in (1.0, 3.0))]


@dataclass(frozen=True)
class Rates:
    """What was counted in one case at one size."""

    repetitions: int
    safe_over: float
    plain_over: float
    safe_refused: float
    plain_refused: float
    median: float  # of safe T over the true one
    price_given: float  # NLL above that of the best temperature, in nats
    price_plain: float
    price_safe: float


def measure(case: Case, n: int, repetitions: int) -> Rates:
    """Fit both to many calibration sets of ``n`` rows; a refusal is not over-confident."""
    truth = population(case)
    rng = np.random.default_rng([n, zlib.crc32(f"{case.model} {case.truth}".encode())])
    betas = np.full((repetitions, 2), np.nan)
    for i in range(repetitions):
        rows = temper(case.predictions(rng, n))
        if why_unfit(rows, FEWEST) is None:
            beta = safe_beta(rows, ALPHA)
            betas[i, 0] = np.nan if isinstance(beta, Refusal) else beta
            betas[i, 1] = np.nan if math.isinf(rows.beta) else rows.beta
    both = betas[~np.isnan(betas).any(axis=1)]
    best = truth.nll(np.array([truth.beta]))[0]
    cost = (truth.nll(both) - best).mean(axis=0) if len(both) else [np.nan, np.nan]
    return Rates(
        repetitions,
        float((betas[:, 0] > truth.beta).mean()), float((betas[:, 1] > truth.beta).mean()),
        *np.isnan(betas).mean(axis=0).tolist(), float(truth.beta / np.nanmedian(betas[:, 0])),
        float(truth.nll(np.ones(1))[0] - best), float(cost[1]), float(cost[0]),
    )  # fmt: skip


HEAD = (
    "| predictions | truth | rows | over-confident after SafeTemperature | after Temperature | refused, safe / plain "
    "| safe T over the true one, median | NLL above the best temperature's: as given | Temperature | SafeTemperature |"
)


def line(case: Case, n: int, r: Rates) -> str:
    """Return a line of the table."""
    rates = f"{100 * r.safe_over:.1f} % | {100 * r.plain_over:.1f} %"
    refused = f"{100 * r.safe_refused:.1f} / {100 * r.plain_refused:.1f} %"
    prices = f"{r.price_given:.4f} | {r.price_plain:.4f} | {r.price_safe:.4f}"
    return f"| {case.model} | {case.truth} | {n} | {rates} | {refused} | {r.median:.2f} | {prices} |"


PAGE = """# Recalibration, validated

How often a recalibrated model is over-confident in a population that is known, and what safety costs. Made by
`make validate` with alpha = {alpha:g} and {repetitions} repetitions: a rate of 5 % is known to ± {error:.1f} %.

Where a temperature is all that is wrong (T = 1, 1.5, 3), `SafeTemperature` should be over-confident at most 5 % of the
time. Where more is wrong, labels or a rare region, nothing is promised; those lines show what happens. The worst are
states of which 1 % have errors five times too large: few samples hold enough of them to tell. A fit that is refused
because the data cannot support it counts as not over-confident. The price is the NLL in the population above that of
the best temperature, in nats.
"""


def main() -> int:
    """Print the table, and progress to the standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 repetitions instead of 2000")
    repetitions = 200 if parser.parse_args().quick else 2000
    cases = [(case, n) for case in (*inside(), *outside()) for n in SIZES]
    error = 100 * math.sqrt(ALPHA * (1 - ALPHA) / repetitions)
    print(PAGE.format(alpha=ALPHA, repetitions=repetitions, error=2 * error))
    print(HEAD)
    print("|---" * HEAD.count(" |"), end="|\n", flush=True)
    start = time.monotonic()
    for k, (case, n) in enumerate(cases):
        print(line(case, n, measure(case, n, repetitions)), flush=True)
        if sys.stderr.isatty():
            print(f"\r{k + 1} of {len(cases)}, {time.monotonic() - start:.0f} s", end="", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
