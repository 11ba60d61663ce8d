"""Measure how often what `Safe` makes of a map is over-confident, and what it costs.

Draws many calibration sets from known truths, fits each map plain, with a safe temperature of the same rows, and
`Safe`, and counts how often ECD is positive in the population, which is known. Writes docs/validation/maps.md; what was
counted is kept in docs/validation/maps.json, line by line, so that a run goes on where it was stopped. Each line has a
seed of its own, made from its name.

    python tools/validate_maps.py            # about ten minutes on one core
    python tools/validate_maps.py --quick    # a tenth of the repetitions, printed and not kept
"""

import argparse
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import special

from safecal import maps, recalibrate
from safecal.errors import UnavailableError

HERE = Path(__file__).resolve().parent.parent / "docs" / "validation"
SIZES = (100, 300, 1000, 5000)
POPULATION = 4000
REPETITIONS = {"two": 200, "many": 150, "clusters": 150, "auto": 60}
SAME_ROWS = 300  # rows at which a safe temperature of the same rows is tried, too
MAPS: dict[str, Callable[[], maps.Map]] = {
    "Affine": maps.Affine,
    "Beta": maps.Beta,
    "Isotonic": maps.Isotonic,
    "Vector": maps.Vector,
}


@dataclass(frozen=True)
class Truth:
    """Log-odds of a model, normal with a mean, and the probability of what it predicts, given them."""

    mean: float
    probability: Callable[[np.ndarray], np.ndarray]
    inside: tuple[str, ...]  # the maps that are able to mend it

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        z = rng.normal(self.mean, 2.5, n)
        return z, rng.random(n) < self.probability(z)

    def population(self) -> tuple[np.ndarray, np.ndarray]:
        """Return equally likely log-odds and their probabilities."""
        z = self.mean + 2.5 * special.ndtri((np.arange(POPULATION) + 0.5) / POPULATION)
        return z, self.probability(z)


def _bent(z: np.ndarray) -> np.ndarray:
    up, down = np.logaddexp(0.0, z), np.logaddexp(0.0, -z)
    return np.asarray(special.expit(up / 3.0 - down + math.log(2.0) * 2.0 / 3.0))


EVERY = ("Affine", "Beta", "Isotonic")
TRUTHS = {
    "T = 1.7": Truth(0.0, lambda z: special.expit(z / 1.7), EVERY),
    "shift -1.5": Truth(0.0, lambda z: special.expit(z - 1.5), EVERY),
    "rare events, shift 1": Truth(-4.0, lambda z: special.expit(z + 1.0), EVERY),
    "T = 3 far above 1/2, 1 far below": Truth(0.0, _bent, EVERY[1:]),
    "5 % of labels wrong": Truth(0.0, lambda z: 0.95 * special.expit(z / 1.3) + 0.025, EVERY[2:]),
    "T = 3 in a hidden 30 %": Truth(0.0, lambda z: 0.7 * special.expit(z) + 0.3 * special.expit(z / 3.0), EVERY[2:]),
}


@dataclass(frozen=True)
class ManyTruth:
    """Logits of five classes, normal, and what they have to be multiplied by and moved by."""

    weights: tuple[float, ...]
    shifts: tuple[float, ...]
    inside: tuple[str, ...]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        z = self.logits(rng, n)
        return z, np.asarray((self.right(z) + rng.gumbel(size=z.shape)).argmax(axis=1))

    def population(self) -> tuple[np.ndarray, np.ndarray]:
        z = self.logits(np.random.default_rng(7), 2 * POPULATION)
        return z, special.softmax(self.right(z), axis=1)

    @staticmethod
    def logits(rng: np.random.Generator, n: int) -> np.ndarray:
        return np.asarray(special.log_softmax(rng.normal(0.0, 2.0, (n, 5)), axis=1))

    def right(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(z * self.weights + self.shifts)


MANY_TRUTHS = {
    "5 classes, one T and shifts": ManyTruth((0.6,) * 5, (-1.0, -0.5, 0.0, 0.5, 1.0), ("Affine", "Vector")),
    "5 classes, each its own T": ManyTruth((0.4, 0.55, 0.7, 0.85, 1.0), (0.0,) * 5, ("Vector",)),
}


@dataclass(frozen=True)
class Rates:
    """Shares of calibration sets after which predictions are over-confident, and the NLL above that of the truth."""

    plain: float
    same_rows: float | None  # at one size alone
    safe: float
    refused: float
    price: float


def _population(logits: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """Return ECD and NLL, of two classes or more."""
    if logits.ndim == 1:
        p = special.expit(logits)
        nll = q * np.logaddexp(0.0, -logits) + (1.0 - q) * np.logaddexp(0.0, logits)
        return float(((p - q) * logits).mean()), float(nll.mean())
    z = special.log_softmax(logits, axis=1)
    return float(((np.exp(z) - q) * z).sum(axis=1).mean()), float(-(q * z).sum(axis=1).mean())


def _seed(name: str, n: int) -> np.random.Generator:
    return np.random.default_rng([n, zlib.crc32(name.encode())])


def measure(truth: str, name: str, n: int, repetitions: int) -> Rates:
    """Fit a map to many calibration sets; a refusal is not over-confident."""
    source = TRUTHS[truth] if truth in TRUTHS else MANY_TRUTHS[truth]
    rest, q = source.population()
    best = _population(special.logit(q) if q.ndim == 1 else np.log(q), q)[1]
    rng = _seed(f"{truth} {name}", n)
    over, refused, price = np.zeros(3), 0, []
    for _ in range(repetitions):
        z, y = source.draw(rng, n)
        try:
            model = maps.Safe(MAPS[name]()).fit(y, logits=z)
            same = math.nan
            if n == SAME_ROWS:
                same = maps.SafeTemperature().fit(y, logits=model.map_.apply_logits(logits=z)).beta_
        except UnavailableError:
            refused += 1
            continue
        mapped = model.map_.apply_logits(logits=rest)
        population = [_population(beta * mapped, q) for beta in (1.0, same, model.beta_)]
        over += [ecd > 1e-9 for ecd, _ in population]
        price.append(population[2][1] - best)
    cost = float(np.mean(price)) if price else math.nan
    plain, same, safe = (over / repetitions).tolist()
    return Rates(plain, same if n == SAME_ROWS else None, safe, refused / repetitions, cost)


def measure_auto(truth: str, n: int, repetitions: int) -> dict[str, float]:
    """Return how often what `recalibrate` takes is over-confident, how often it is no `Safe` map, and the price."""
    source = TRUTHS[truth]
    rest, q = source.population()
    best = _population(np.asarray(special.logit(q)), q)[1]
    rng = _seed(truth, n)
    over, left, price = 0, 0, []
    for _ in range(repetitions):
        z, y = source.draw(rng, n)
        model = recalibrate(y, logits=z).map
        ecd, nll = _population(model.apply_logits(logits=rest), q)
        over += ecd > 1e-9
        left += not isinstance(model, maps.Safe)
        price.append(nll - best)
    return {"over": over / repetitions, "left": left / repetitions, "price": float(np.mean(price))}


def measure_clusters(repetitions: int, clusters: int = 30, size: int = 50) -> tuple[float, float, float]:
    """Return how often `Safe(Affine())` is over-confident where clusters share a shock, as rows and as clusters.

    The third number is how often it is refused with `cluster=`.
    """
    rng = np.random.default_rng([4, clusters])
    code = np.repeat(np.arange(clusters), size)
    rest = 2.0 * special.ndtri((np.arange(POPULATION) + 0.5) / POPULATION)
    q = special.expit(rest / 1.5 - 1.0)
    over, refused = np.zeros(2), 0
    for _ in range(repetitions):
        z = rng.normal(0.0, 2.0, clusters * size)
        truth, u = z / 1.5 - 1.0, rng.random(clusters)[code]
        likely = u < special.expit(np.abs(truth))
        y = np.where(truth > 0.0, likely, ~likely)
        for j, cluster in enumerate((None, code)):
            try:
                model = maps.Safe(maps.Affine()).fit(y, logits=z, cluster=cluster)
            except UnavailableError:
                refused += j
                continue
            over[j] += _population(model.apply_logits(logits=rest), q)[0] > 1e-9
    alone, clustered = (over / repetitions).tolist()
    return alone, clustered, refused / repetitions


Line = tuple[str, Callable[[int], object]]


def _lines() -> Iterator[tuple[str, Line]]:
    """Yield each line: its table, its name, and what counts it."""
    for truth in TRUTHS:
        for name in EVERY:
            for n in SIZES:
                yield "two", (f"{truth} | {name} | {n}", lambda r, t=truth, m=name, n=n: asdict(measure(t, m, n, r)))  # type: ignore[misc]
    for truth in MANY_TRUTHS:
        for name in ("Affine", "Vector"):
            for n in SIZES[1:3]:
                yield "many", (f"{truth} | {name} | {n}", lambda r, t=truth, m=name, n=n: asdict(measure(t, m, n, r)))  # type: ignore[misc]
    for clusters in (15, 30, 60):
        yield "clusters", (f"{clusters}", lambda r, c=clusters: measure_clusters(r, c))  # type: ignore[misc]
    for truth in TRUTHS:
        yield "auto", (f"{truth} | 1000", lambda r, t=truth: measure_auto(t, 1000, r))  # type: ignore[misc]


def _percent(*shares: float | None) -> str:
    return " | ".join("" if x is None else f"{100 * x:.1f}" for x in shares)


def _error(repetitions: int) -> float:
    return 100.0 * math.sqrt(0.05 * 0.95 / repetitions)


def page(results: dict[str, dict[str, object]], repetitions: dict[str, int]) -> str:
    """Return the page."""
    errors = {f"{name}_error": _error(r) for name, r in repetitions.items()}
    rows: dict[str, list[str]] = {name: [] for name in repetitions}
    inside = []
    for table, (name, _) in _lines():
        one = results[table][name]
        if table in ("two", "many"):
            assert isinstance(one, dict)
            truth, kind, _n = name.split(" | ")
            source = TRUTHS[truth] if truth in TRUTHS else MANY_TRUTHS[truth]
            able = kind in source.inside
            inside += [one["safe"]] if able else []
            rates = _percent(one["plain"], one["same_rows"], one["safe"], one["refused"])
            rows[table].append(f"| {name} | {'yes' if able else 'no'} | {rates} | {one['price']:.4f} |")
        elif table == "clusters":
            assert isinstance(one, list | tuple)
            rows[table].append(f"| {name} | {_percent(*one)} |")
        else:
            assert isinstance(one, dict)
            rows[table].append(f"| {name} | {_percent(one['over'], one['left'])} | {one['price']:.4f} |")
    tables = {name: "\n".join(lines) for name, lines in rows.items()}
    largest = 100 * max(inside)
    counts = {f"{name}_repetitions": r for name, r in repetitions.items()}
    return PAGE.format(
        **tables, **errors, **counts, largest=largest, mean=100 * float(np.mean(inside)), cells=len(inside)
    )


PAGE = """# Maps that are safe, validated

How often predictions are over-confident in a population that is known, after a map; and what safety costs. Made by
`make validate` with alpha = 0.05. Rates are in percent. *plain* is the map alone, *same rows* the map with a safe
temperature of the rows that it was fitted to (tried at one size), *Safe* the cross-fitted one. *able* says whether the
map can mend that truth: *Safe* promises a rate of about 5 there, and nothing elsewhere. A fit that is refused counts as
not over-confident. The price is the NLL of *Safe* above that of the truth, in nats.

Where the map is able, the rate of *Safe* is {mean:.1f} on average, and at most {largest:.1f}, of {cells} lines.

## Two classes

{two_repetitions} repetitions: the standard error of a rate of 5 is {two_error:.1f}.

| truth | map | rows | able | plain | same rows | Safe | refused | price |
|---|---|---:|---|---:|---:|---:|---:|---:|
{two}

## More classes

{many_repetitions} repetitions: the standard error of a rate of 5 is {many_error:.1f}.

| truth | map | rows | able | plain | same rows | Safe | refused | price |
|---|---|---:|---|---:|---:|---:|---:|---:|
{many}

## Clusters

Clusters of 50 rows, each with one shock for all of its rows; `Safe(Affine())`, which is able. Over-confident where rows
are taken for independent, and with `cluster=`; the last column says how often `cluster=` is refused, which counts as
not over-confident. {clusters_repetitions} repetitions: the standard error of a rate of 5 is {clusters_error:.1f}.

| clusters | as rows | with `cluster=` | refused |
|---:|---:|---:|---:|
{clusters}

## The map that is chosen

`recalibrate(...)` with `method="auto"`: the same rows choose the map and its safe temperature. *left* says how often
predictions are left as they are, because over-confidence cannot be ruled out; over-confident ones count.
{auto_repetitions} repetitions: the standard error of a rate of 5 is {auto_error:.1f}.

| truth | rows | over-confident | left | price |
|---|---:|---:|---:|---:|
{auto}
"""


def main() -> int:
    """Count what was not counted yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions, printed and not kept")
    quick = parser.parse_args().quick
    repetitions = {name: r // 10 if quick else r for name, r in REPETITIONS.items()}
    kept = HERE / "maps.json"
    results: dict[str, dict[str, object]] = {name: {} for name in repetitions}
    if kept.exists() and not quick:
        results = json.loads(kept.read_text(encoding="utf-8"))
    for table, (name, count) in _lines():
        if name not in results[table]:
            results[table][name] = count(repetitions[table])
            print(table, "|", name, "|", json.dumps(results[table][name]), flush=True, file=sys.stderr)
            if not quick:
                kept.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if quick:
        print(page(results, repetitions))
    else:
        (HERE / "maps.md").write_text(page(results, repetitions), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
