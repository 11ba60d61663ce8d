"""What `validate.py` measures: truths to draw from, and cells, one truth at one size each, which return counts."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import integrate, special

import safecal
from safecal.inference.bounds import Bounds
from safecal.inference.sum_bounds import interval_from_sums

Array = np.ndarray
Counts = dict[str, Any]
Tick = Callable[[], None]


# Truths: what is predicted, and what happens when the logits are T times too large.


def _logit_beta(a: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: np.log(rng.gamma(a, size=n)) - np.log(rng.gamma(a, size=n))


def _normal(mean: float, spread: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: rng.normal(mean, spread, n)


def _constant(p: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: np.full(n, float(special.logit(p)))


BINARY: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "binary, p ~ U(0, 1)": _logit_beta(1.0),
    "binary, p ~ Beta(.3, .3)": _logit_beta(0.3),
    "binary, logits N(4, 1)": _normal(4.0, 1.0),
    "binary, p = .999": _constant(0.999),
    "binary, p = .001": _constant(0.001),
}
CLASSES, STATES = "10 classes, logits N(0, 2.5²)", "Gaussian, d = 4"
MODELS = (*BINARY, CLASSES, STATES)

# Rows near one half, which are no surprise, and sharp ones: how many of each, and their log-odds.
LATTICES = {
    f"{vague} near one half, {sharp} at {log_odds:g}": (vague, sharp, log_odds)
    for vague, sharp, log_odds in (
        (50, 54, 7.0), (10, 54, 7.0), (200, 54, 7.0), (500, 54, 7.0), (50, 20, 7.0), (50, 200, 7.0), (50, 500, 7.0),
        (50, 20, 5.0), (50, 54, 5.0), (50, 54, 9.0),
    )
}  # fmt: skip


def draw(model: str, n: int, t: float, rng: np.random.Generator) -> safecal.Predictions:
    """Draw predictions whose implied temperature is ``t``, and their outcomes."""
    if model == STATES:
        return safecal.gaussian(rng.normal(size=(n, 4)) * math.sqrt(t), np.zeros((n, 4)), std=1.0)
    if model == CLASSES:
        z = rng.normal(0.0, 2.5, (n, 10))
        chance = np.cumsum(special.softmax(z / t, axis=1), axis=1)
        return safecal.categorical((chance < rng.random((n, 1))).sum(axis=1).clip(max=9), logits=z)
    if model in LATTICES:
        vague, sharp, log_odds = LATTICES[model]
        logits = np.concatenate([rng.normal(0.0, 0.1, vague), np.full(sharp, log_odds)])
    else:
        logits = BINARY[model](rng, n)
    return safecal.bernoulli(rng.random(n) < special.expit(logits / t), logits=logits)


@lru_cache
def true_ecd(model: str, t: float) -> float:
    """Return the ECD of the population: in closed form, by quadrature, or for ten classes from a million rows."""
    if model == STATES:
        return 2.0 * (t - 1.0)
    if model == CLASSES:
        rng = np.random.default_rng(0)
        z = rng.normal(0.0, 2.5, (1_000_000, 10))
        return float(((special.softmax(z, axis=1) - special.softmax(z / t, axis=1)) * z).sum(axis=1).mean())

    def excess(x: float) -> float:
        return float((special.expit(x) - special.expit(x / t)) * x)

    if "=" in model:
        return excess(float(special.logit(0.999)))  # and of .001, by symmetry
    if "N(4" in model:
        return float(integrate.quad(lambda x: excess(x) * math.exp(-0.5 * (x - 4.0) ** 2), -8, 16)[0]) / math.sqrt(
            2.0 * math.pi
        )
    a = 0.3 if "Beta" in model else 1.0

    def density(x: float) -> float:
        return math.exp(a * float(special.log_expit(x) + special.log_expit(-x)) - float(special.betaln(a, a)))

    return 2.0 * float(integrate.quad(lambda x: excess(x) * density(x), 0.0, 200.0, limit=200)[0])


# Cells: one truth at one size each. Each returns counts.


@dataclass(frozen=True)
class Cell:
    """One line of a table: what is drawn, and how often."""

    kind: str
    params: dict[str, Any]
    replications: int

    @property
    def key(self) -> str:
        """Name the cell; its seed depends on nothing else."""
        return f"{self.kind}: " + ", ".join(f"{name} = {value}" for name, value in self.params.items())

    def generators(self) -> list[np.random.Generator]:
        """Return a generator for the data and one for the methods."""
        seed = int.from_bytes(hashlib.sha256(self.key.encode()).digest()[:16], "big")
        return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)]


METHODS = ("auto", "normal", "saddlepoint", "pearson3")
LEVELS = (0.05, 0.01)
SIDES = ("over", "under")


def size_cell(cell: Cell, tick: Tick) -> Counts:
    """Count rejections on each side, of a calibrated model."""
    data, rng = cell.generators()
    rejected: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for _ in range(cell.replications):
        predictions = draw(cell.params["predictions"], cell.params["n"], 1.0, data)
        for method in METHODS:
            seed = int(rng.integers(1 << 62))
            test = safecal.calibration_test(predictions, method=method, rng=seed)
            if method == "auto":
                used[test.method] += 1
            if test.p_value / 2.0 <= max(LEVELS):  # some side rejects: ask which, with the same draws
                for side in SIDES:
                    one = safecal.calibration_test(
                        predictions, alternative=f"{side}confident", method=method, rng=seed
                    ).p_value
                    rejected.update(f"{method} {level:g} {side}" for level in LEVELS if one <= level)
        tick()
    return {"rejected": dict(rejected), "used": dict(used.most_common())}


COMPARED = ("NLL", "Brier")


def equality_cell(cell: Cell, tick: Tick) -> Counts:
    """Return how often models that say a and b are told apart, if they have the same mean: exactly, by enumeration."""
    n, a, b = (cell.params[name] for name in ("n", "a", "b"))
    right, wrong = math.log(b / a), math.log((1.0 - b) / (1.0 - a))
    chance = {"NLL": wrong / (wrong - right), "Brier": 0.5 * (a + b)}  # of the likelier class
    told_apart = {f"{name} {level:g}": 0.0 for name in COMPARED for level in LEVELS}
    for mistakes in range(n + 1):
        likely = {name: _binomial(mistakes, n, 1.0 - q) for name, q in chance.items()}
        if max(likely.values()) < 1e-9:
            continue
        y = np.arange(n) >= mistakes
        comparison = safecal.compare(safecal.bernoulli(y, np.full(n, a)), safecal.bernoulli(y, np.full(n, b)))
        for name, difference in zip(COMPARED, (comparison.nll, comparison.brier), strict=True):
            assert difference is not None
            for level in LEVELS:
                told_apart[f"{name} {level:g}"] += likely[name] * (difference.p_value <= level)
    tick()
    return {"told apart": told_apart}


def _binomial(k: int, n: int, p: float) -> float:
    return float(np.exp(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
                        + special.xlogy(k, p) + special.xlog1py(n - k, -p)))  # fmt: skip


NOISE = "5 % of labels flipped"
TESTS = ("ECD", "Spiegelhalter z", "Brier t", "ECE", "ECD, one-sided")
REDRAWN = 199


def power_cell(cell: Cell, tick: Tick) -> Counts:
    """Count rejections at 5 %, two-sided, of a model that may be wrong."""
    data, rng = cell.generators()
    n, truth = cell.params["n"], cell.params["truth"]
    rejected: Counter[str] = Counter()
    for _ in range(cell.replications):
        logits = BINARY[cell.params["predictions"]](data, n)
        p = special.expit(logits)
        q = 0.95 * p + 0.05 * (1.0 - p) if truth == NOISE else special.expit(logits / float(truth.split()[-1]))
        y = data.random(n) < q
        test = safecal.calibration_test(safecal.bernoulli(y, logits=logits), rng=rng)
        one_sided = test.p_value / 2.0 if test.statistic > 0.0 else 1.0
        p_values = (test.p_value, spiegelhalter(y, p), brier_t(y, p), ece_test(y, p, rng), one_sided)
        rejected.update(name for name, value in zip(TESTS, p_values, strict=True) if value <= 0.05)
        tick()
    return {"rejected": dict(rejected)}


def spiegelhalter(y: Array, p: Array) -> float:
    """Return the p-value of Spiegelhalter's z: the Brier score minus its expectation, over its null spread."""
    gap = ((y - p) * (1.0 - 2.0 * p)).sum()  # = sum of (y - p)^2 - p (1 - p)
    return float(2.0 * special.ndtr(-abs(gap) / math.sqrt(((1.0 - 2.0 * p) ** 2 * p * (1.0 - p)).sum())))


def brier_t(y: Array, p: Array) -> float:
    """Return the p-value of a t-test that the Brier score minus its expectation has mean 0."""
    gap = (y - p) * (1.0 - 2.0 * p)
    return float(2.0 * special.stdtr(len(y) - 1, -abs(gap.mean()) / (gap.std(ddof=1) / math.sqrt(len(y)))))


def ece_test(y: Array, p: Array, rng: np.random.Generator) -> float:
    """Return the Monte Carlo p-value of ECE in ten equal bins: is it larger than if labels came from the model?"""
    labels = np.vstack([y, rng.random((REDRAWN, len(p))) < p])
    order = np.argsort(p)
    starts = np.unique(np.searchsorted(np.minimum((10.0 * p[order]).astype(int), 9), np.arange(10)))
    gaps = np.abs(np.add.reduceat((labels - p)[:, order], starts[starts < len(p)], axis=1)).sum(axis=1)
    return float((gaps >= gaps[0] * (1.0 - 1e-12)).sum()) / (REDRAWN + 1)


TAIL = 0.05
INTERVALS = ("ECD, rows", "ECD, sums", "ECD, naive t", "T, rows")


def coverage_cell(cell: Cell, tick: Tick) -> Counts:
    """Count intervals that lie above the truth, and below it."""
    data, _ = cell.generators()
    model, n, t = (cell.params[name] for name in ("predictions", "n", "T"))
    ecd = true_ecd(model, t)
    missed = {name: [0, 0] for name in INTERVALS}
    for _ in range(cell.replications):
        predictions = draw(model, n, t, data)
        summary = predictions.summary()
        rows, level = Bounds(predictions.tally(bins=None)), 1.0 - 2.0 * TAIL
        sums = interval_from_sums(summary, level)
        intervals = [(i.low, i.high) for i in (rows.interval(level), sums)]
        intervals += [_naive(predictions.score().excess), (rows.temperature(level).low, rows.temperature(level).high)]
        for name, (low, high) in zip(INTERVALS, intervals, strict=True):
            truth = ecd if name.startswith("ECD") else t
            slack = 1e-9 * (1.0 + abs(truth))
            missed[name][0] += not low <= truth + slack
            missed[name][1] += not high >= truth - slack
        tick()
    return {"missed": missed, "truth": ecd}


def _naive(excess: Array) -> tuple[float, float]:
    half = float(special.stdtrit(len(excess) - 1, 1.0 - TAIL)) * excess.std(ddof=1) / math.sqrt(len(excess))
    return excess.mean() - half, excess.mean() + half


STEPS = 100


def dependence_cell(cell: Cell, tick: Tick) -> Counts:
    """Count rejections of a correct Kalman filter: constant velocity, position measured with variance 1."""
    data, _ = cell.generators()
    runs = cell.params["runs"]
    covariances, errors_of = _filter(cell.params["process noise"])
    cov = np.tile(covariances, (runs, 1, 1))
    cluster = np.repeat(np.arange(runs), STEPS)
    rejected: Counter[str] = Counter()
    for _ in range(cell.replications):
        predictions = safecal.gaussian(errors_of(runs, data).reshape(-1, 2), np.zeros((runs * STEPS, 2)), cov=cov)
        pooled = safecal.calibration_test(predictions)  # exact: the chi-square of the summed NEES
        clustered = safecal.calibration_test(predictions, cluster=cluster)
        rejected.update(name for name, r in (("pooled", pooled), ("clustered", clustered)) if r.p_value <= 0.05)
        tick()
    return {"rejected": dict(rejected)}


def _filter(noise: float) -> tuple[Array, Callable[[int, np.random.Generator], Array]]:
    """Return the covariance the filter claims at each step, and a way to draw its errors, which have it."""
    step = np.array([[1.0, 1.0], [0.0, 1.0]])
    process = noise * np.array([[1.0 / 3.0, 0.5], [0.5, 1.0]])
    cov = start = np.diag([1.0, 1.0])
    gains, covariances = [], []
    for _ in range(STEPS):
        ahead = step @ cov @ step.T + process
        gain = ahead[:, 0] / (ahead[0, 0] + 1.0)
        cov = ahead - np.outer(gain, gain) * (ahead[0, 0] + 1.0)
        gains.append(gain)
        covariances.append((cov + cov.T) / 2.0)
    root = np.linalg.cholesky(process)

    def errors_of(runs: int, rng: np.random.Generator) -> Array:
        error = rng.normal(size=(runs, 2)) @ np.sqrt(start)
        out = np.empty((runs, STEPS, 2))
        for k, gain in enumerate(gains):
            error = error @ step.T + rng.normal(size=(runs, 2)) @ root.T
            error = error - np.outer(error[:, 0] + rng.normal(size=runs), gain)
            out[:, k] = error
        return out

    return np.array(covariances), errors_of


RUN: dict[str, Callable[[Cell, Tick], Counts]] = {
    "size": size_cell,
    "lattice": size_cell,
    "equality": equality_cell,
    "power": power_cell,
    "coverage": coverage_cell,
    "dependence": dependence_cell,
}


# Surprises expected in a row. Where less than ten are expected in all, tails are drawn, which takes ten times as long.
SURPRISES = {"binary, p ~ U(0, 1)": 0.25, "binary, p ~ Beta(.3, .3)": 0.15, "binary, logits N(4, 1)": 0.028}


def drawn(model: str, n: int) -> bool:
    """Tell whether the test will draw its tails."""
    return model in LATTICES or n * SURPRISES.get(model, math.inf) < 10.0


def cells(kind: str, replications: int | None = None) -> list[Cell]:
    """Return the cells of a table; those that take long are repeated less often, to end in time."""

    def cell(usual: int, **params: Any) -> Cell:
        return Cell(kind, params, replications or usual)

    if kind == "size":
        sizes = (30, 50, 100, 200, 1000, 10_000)
        return [
            cell(600 if n > 1000 or drawn(model, n) else 2000, predictions=model, n=n)
            for model in MODELS
            for n in sizes
        ]
    if kind == "lattice":
        return [cell(2000, predictions=model, n=vague + sharp) for model, (vague, sharp, _) in LATTICES.items()]
    if kind == "equality":
        pairs = ((0.999, 0.99), (0.99, 0.9), (0.9999, 0.999), (0.999, 0.9), (0.95, 0.8))
        return [Cell(kind, {"a": a, "b": b, "n": n}, 1) for a, b in pairs for n in (20, 50, 100, 200, 500, 1000)]
    if kind == "power":
        models: tuple[str, ...] = ("binary, p ~ U(0, 1)", "binary, logits N(4, 1)")
        truths = ("T = 1", "T = 1.2", "T = 1.5", "T = 2", NOISE)
        return [
            cell(400 if drawn(m, n) else 1000, predictions=m, truth=q, n=n)
            for m in models
            for q in truths
            for n in (100, 300, 1000)
        ]
    if kind == "coverage":
        models = tuple(model for model in MODELS if model != "binary, p = .001")
        usual = {50: 600, 200: 600, 1000: 300}
        every = [cell(usual[n], predictions=m, T=t, n=n) for m in models for t in (1.0, 1.5, 3.0) for n in usual]
        return sorted(every, key=lambda c: int(c.params["n"]))  # the long ones last
    return [
        cell(2000, **{"process noise": q, "runs": runs}) for q in (0.001, 0.01, 0.1, 1.0, 10.0) for runs in (10, 50)
    ]
