"""Measure how often what `Safe` makes of a map is over-confident, and what it costs.

Draws many calibration sets from known truths, fits each map plain, with a safe temperature of the same rows, and
`Safe`, and counts how often ECD is positive in the population, which is known. Prints tables in Markdown; the same
seeds give the same tables.

    python tools/validate_maps.py            # the published tables
    python tools/validate_maps.py --quick    # a tenth of the repetitions
"""

import argparse
import math
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from safecal import maps
from safecal.errors import UnavailableError

SIZES = (100, 300, 1000)
POPULATION = 20_000
MAPS: dict[str, Callable[[], maps.Map]] = {"Affine": maps.Affine, "Beta": maps.Beta, "Isotonic": maps.Isotonic}
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def _truth(mean: float, probability: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        z = rng.normal(mean, 2.5, n)
        return z, probability(z, rng)

    return draw


def _hidden(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(special.expit(np.where(rng.random(len(z)) < 0.3, z / 3.0, z)))


TRUTHS: dict[str, Draw] = {
    "T = 1.7": _truth(0.0, lambda z, rng: special.expit(z / 1.7)),
    "shift -1.5": _truth(0.0, lambda z, rng: special.expit(z - 1.5)),
    "T = 3 above 1/2": _truth(0.0, lambda z, rng: special.expit(np.where(z > 0.0, z / 3.0, z))),
    "5 % of labels wrong": _truth(0.0, lambda z, rng: 0.95 * special.expit(z / 1.3) + 0.025),
    "T = 3 in a hidden 30 %": _truth(0.0, _hidden),
    "rare events, shift 1": _truth(-4.0, lambda z, rng: special.expit(z + 1.0)),
}


@dataclass(frozen=True)
class Rates:
    """Shares of calibration sets after which predictions are over-confident, and the NLL above that of the truth."""

    plain: float
    same_rows: float
    safe: float
    refused: float
    price: float


def _population(logits: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """Return ECD and NLL."""
    p = special.expit(logits)
    nll = q * np.logaddexp(0.0, -logits) + (1.0 - q) * np.logaddexp(0.0, logits)
    return float(((p - q) * logits).mean()), float(nll.mean())


def measure(truth: str, name: str, n: int, repetitions: int) -> Rates:
    """Fit a map to many calibration sets; a refusal is not over-confident."""
    draw, kind = TRUTHS[truth], MAPS[name]
    rest, q = draw(np.random.default_rng(7), POPULATION)
    best = _population(np.asarray(special.logit(q)), q)[1]
    rng = np.random.default_rng([n, zlib.crc32(f"{truth} {name}".encode())])
    over, refused, price = np.zeros(3), 0, []
    for _ in range(repetitions):
        z, p = draw(rng, n)
        y = rng.random(n) < p
        try:
            model = maps.Safe(kind()).fit(y, logits=z)
            inner = model.map_.apply_logits(logits=z)
            same = maps.SafeTemperature().fit(y, logits=inner).beta_
        except UnavailableError:
            refused += 1
            continue
        mapped = model.map_.apply_logits(logits=rest)
        found = [_population(beta * mapped, q) for beta in (1.0, same, model.beta_)]
        over += [ecd > 1e-9 for ecd, _ in found]
        price.append(found[2][1] - best)
    return Rates(*(over / repetitions).tolist(), refused / repetitions, float(np.mean(price)))


def measure_clusters(repetitions: int, clusters: int = 30, size: int = 50) -> tuple[float, float]:
    """Return how often `Safe(Affine())` is over-confident where clusters share a shock: as rows, and as clusters."""
    rng = np.random.default_rng(4)
    code = np.repeat(np.arange(clusters), size)
    rest = rng.normal(0.0, 2.0, POPULATION)
    q = special.expit(rest / 1.5 - 1.0)
    over = np.zeros(2)
    for _ in range(repetitions):
        z = rng.normal(0.0, 2.0, clusters * size)
        truth, u = z / 1.5 - 1.0, rng.random(clusters)[code]
        likely = u < special.expit(np.abs(truth))
        y = np.where(truth > 0.0, likely, ~likely)
        for j, cluster in enumerate((None, code)):
            try:
                model = maps.Safe(maps.Affine()).fit(y, logits=z, cluster=cluster)
            except UnavailableError:
                continue
            over[j] += _population(model.apply_logits(logits=rest), q)[0] > 1e-9
    alone, clustered = (over / repetitions).tolist()
    return alone, clustered


PAGE = """# Maps that are safe, validated

How often predictions are over-confident in a population that is known, after a map; and what safety costs. Made by
`make validate` with alpha = 0.05 and {repetitions} repetitions: a rate of 5 % is known to ± {error:.1f} %. *plain* is
the map alone, *same rows* the map with a safe temperature of the rows that it was fitted to, *Safe* the cross-fitted
one. A fit that is refused counts as not over-confident. The price is the NLL of *Safe* above that of the truth, in
nats.

| truth | map | rows | plain | same rows | Safe | refused | price |
|---|---|---|---|---|---|---|---|"""


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50 repetitions instead of 500")
    repetitions = 50 if parser.parse_args().quick else 500
    print(PAGE.format(repetitions=repetitions, error=200 * math.sqrt(0.05 * 0.95 / repetitions)), flush=True)
    for truth in TRUTHS:
        for name in MAPS:
            for n in SIZES:
                r = measure(truth, name, n, repetitions)
                rates = " | ".join(f"{100 * x:.1f} %" for x in (r.plain, r.same_rows, r.safe, r.refused))
                print(f"| {truth} | {name} | {n} | {rates} | {r.price:.4f} |", flush=True)
    alone, clustered = measure_clusters(repetitions)
    print(
        f"\n30 clusters of 50 rows, each with one shock for all of its rows, `Safe(Affine())`: over-confident in "
        f"{100 * alone:.1f} % where they are taken for independent rows, in {100 * clustered:.1f} % with `cluster=`."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
