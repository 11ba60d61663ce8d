"""Measure the size, power and coverage of the tests and intervals, and publish them.

Draws many data sets from a known truth and counts how often each test rejects and each interval misses. The counts go
to ``docs/validation/*.json`` and from there, as tables, between the markers of ``docs/validation.md``. A cell of a
table has a seed of its own, and its counts are kept in ``.validate/`` as soon as it is finished: a run that was stopped
goes on where it was, and ends with the same numbers.

    python tools/validate.py                   # every table; an hour on one core
    python tools/validate.py --only coverage   # one of them
    python tools/validate.py --quick           # a look, in two minutes; leaves docs/ alone
    python tools/validate.py --render          # the tables again, from the counts in docs/validation/
"""

import argparse
import ast
import hashlib
import json
import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate, special

import safecal
from safecal.inference.bounds import Bounds
from safecal.inference.sum_bounds import interval_from_sums

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("size", "lattice", "equality", "power", "dependence", "coverage")  # the longest last
VERSIONS = {
    "size": 2,
    "lattice": 1,
    "equality": 1,
    "power": 1,
    "dependence": 2,
    "coverage": 3,
}  # raise one when what its cells do changes
QUICK = 20  # replications

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
            found = safecal.calibration_test(predictions, method=method, rng=seed)
            if method == "auto":
                used[found.method] += 1
            if found.p_value / 2.0 <= max(LEVELS):  # some side rejects: ask which, with the same draws
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
    told = {f"{name} {level:g}": 0.0 for name in COMPARED for level in LEVELS}
    for mistakes in range(n + 1):
        likely = {name: _binomial(mistakes, n, 1.0 - q) for name, q in chance.items()}
        if max(likely.values()) < 1e-9:
            continue
        y = np.arange(n) >= mistakes
        found = safecal.compare(safecal.bernoulli(y, np.full(n, a)), safecal.bernoulli(y, np.full(n, b)))
        for name, difference in zip(COMPARED, (found.nll, found.brier), strict=True):
            assert difference is not None
            for level in LEVELS:
                told[f"{name} {level:g}"] += likely[name] * (difference.p_value <= level)
    tick()
    return {"told apart": told}


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
        found = safecal.calibration_test(safecal.bernoulli(y, logits=logits), rng=rng)
        one_sided = found.p_value / 2.0 if found.statistic > 0.0 else 1.0
        p_values = (found.p_value, spiegelhalter(y, p), brier_t(y, p), ece_test(y, p, rng), one_sided)
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
        found = [(i.low, i.high) for i in (rows.interval(level), sums)]
        found += [_naive(predictions.score().excess), (rows.temperature(level).low, rows.temperature(level).high)]
        for name, (low, high) in zip(INTERVALS, found, strict=True):
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


# Running: a cache that survives, and a line that says how long it will take.


def settings(kind: str, replications: int | None) -> dict[str, Any]:
    """Return what the numbers depend on besides the cell."""
    package = Path(safecal.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for room in ("inference", "families", "_kernels") for p in (package / room).glob("*.py")):
        digest.update(_meaning(path.read_text(encoding="utf-8")).encode())
    return {
        "version": VERSIONS[kind], "safecal": safecal.__version__, "source": digest.hexdigest()[:16], "levels": LEVELS,
        "miss on each side": TAIL, "ECE redraws": REDRAWN, "steps": STEPS, "replications": replications or "usual",
    }  # fmt: skip


def _meaning(source: str) -> str:
    """Return source code without comments, layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = ""
    return ast.dump(tree)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


class Progress:
    """A line on the terminal; nothing when the output is piped."""

    def __init__(self, todo: Sequence[Cell]) -> None:
        self.shown = sys.stderr.isatty()
        self.total = sum(map(self.cost, todo))
        self.done, self.start, self.last, self.title, self.step = 0.0, time.monotonic(), 0.0, "", 0.0

    @staticmethod
    def cost(cell: Cell) -> float:
        """Guess the seconds a cell takes."""
        n = int(cell.params.get("n", 1000))
        slow = 0.04 if drawn(cell.params.get("predictions", ""), n) else 0.0
        each = {"size": 0.004 + 3e-6 * n, "power": 0.003 + 5e-6 * n, "coverage": 0.03 + 6e-5 * n, "dependence": 0.01}
        each |= {"lattice": each["size"], "equality": 1.0}
        return cell.replications * (each[cell.kind] + slow)

    def begin(self, number: int, count: int, cell: Cell) -> None:
        """Say which cell is next."""
        self.title, self.step = f"[{number}/{count}] {cell.key}", self.cost(cell) / cell.replications

    def tick(self) -> None:
        """Count one replication."""
        self.done += self.step
        now = time.monotonic()
        if self.shown and now - self.last > 0.2:
            left = (now - self.start) * (self.total / self.done - 1.0)
            sys.stderr.write(f"\r\033[K{self.title[:90]}  {100 * self.done / self.total:.0f} %, {clock(left)} left")
            sys.stderr.flush()
            self.last = now

    def end(self) -> None:
        """Clear the line."""
        if self.shown:
            sys.stderr.write("\r\033[K")


def clock(seconds: float) -> str:
    """Write a duration."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def run(todo: Sequence[Cell], cache: Path, found: dict[str, list[Counts]], chosen: dict[str, dict[str, Any]]) -> None:
    """Add the result of each cell to ``found``, from the cache where it is there."""
    names = {k: hashlib.sha256(json.dumps(v, sort_keys=True).encode()).hexdigest()[:12] for k, v in chosen.items()}

    def place(cell: Cell) -> Path:
        name = hashlib.sha256(f"{cell.key}, {cell.replications}".encode()).hexdigest()[:16]
        return cache / names[cell.kind] / f"{name}.json"

    progress = Progress([cell for cell in todo if not place(cell).exists()])
    for number, cell in enumerate(todo, 1):
        path = place(cell)
        if not path.exists():
            progress.begin(number, len(todo), cell)
            start = time.monotonic()
            counts = RUN[cell.kind](cell, progress.tick)
            result = {**cell.params, "replications": cell.replications, **counts}
            write(path, json.dumps({"key": cell.key, "seconds": time.monotonic() - start, "result": result}))
        found[cell.kind].append(json.loads(path.read_text(encoding="utf-8"))["result"])
    progress.end()


# Publishing: counts as JSON, tables between markers.


def percent(count: int, result: Counts, nominal: float | None) -> str:
    """Write a rate in percent, bold where it is beyond nominal plus three standard errors."""
    of = result["replications"]
    text = f"{100 * count / of:.1f}"
    return f"**{text}**" if nominal and count / of > nominal + 3.0 * error(nominal, of) else text


def error(rate: float, replications: int) -> float:
    """Return the standard error of a rate."""
    return math.sqrt(rate * (1.0 - rate) / replications)


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(x) for x in row) + " |" for row in rows)


def about(results: Sequence[Counts], *rates: float) -> str:
    """Say how many replications there were, and what they are worth."""
    counts = sorted({r["replications"] for r in results}, reverse=True)
    words = " or ".join(f"{c} ({', '.join(f'{100 * error(rate, c):.1f}' for rate in rates)})" for c in counts)
    at = " and ".join(f"{100 * rate:g} %" for rate in rates)
    return f"Replications, with the standard error in percentage points of a rate of {at}: {words}."


def size_tables(results: Sequence[Counts]) -> str:
    parts = []
    for level in LEVELS:
        head = ["predictions", "n", *METHODS, *(["auto took"] if level == LEVELS[0] else [])]
        lines = []
        for r in results:
            rates = (
                [percent(r["rejected"].get(f"{m} {level:g} {side}", 0), r, level) for side in ("over", "under")]
                for m in METHODS
            )
            line = [r["predictions"], r["n"], *(" / ".join(pair) for pair in rates)]
            shares = [f"{m} {100 * c / r['replications']:.0f} %" for m, c in r["used"].items()]
            took = ", ".join(shares) if len(shares) > 1 else next(iter(r["used"]))
            lines.append([*line, took] if level == LEVELS[0] else line)
        text = (
            f"**Nominal {100 * level:g} %.** Each pair is the percentage of calibrated samples that a one-sided test "
            f"calls over-confident / under-confident. It should be {100 * level:g} or less; bold is more than "
            f"three standard errors above. {about(results, level)} Made by `make validate`."
        )
        parts.append(f"{text}\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def equality_table(results: Sequence[Counts]) -> str:
    lines = []
    for r in results:
        pairs = (
            " / ".join(_exact(r["told apart"][f"{name} {level:g}"], level) for level in LEVELS) for name in COMPARED
        )
        lines.append([f"{r['a']:g}", f"{r['b']:g}", r["n"], *pairs])
    text = (
        "Each pair is the percentage of samples in which `compare` tells two models apart, at 5 % / at 1 %, that are "
        "equal in expectation: one says a in every row, the other b, and outcomes are as probable as makes their NLL, "
        "or their Brier score, the same. It should be 5 / 1 or less; bold is more. The rates are exact: every "
        "number of mistakes is tried, and counted by its probability. Made by `make validate`."
    )
    return f"{text}\n\n{table(['a', 'b', 'n', *COMPARED], lines)}"


def _exact(rate: float, level: float) -> str:
    text = f"{100.0 * rate:.1f}"
    return f"**{text}**" if rate > level + 1e-9 else text


def power_table(results: Sequence[Counts]) -> str:
    lines = []
    for r in results:
        null = 0.05 if r["truth"] == "T = 1" else None
        lines.append(
            [r["predictions"], r["truth"], r["n"], *(percent(r["rejected"].get(t, 0), r, null) for t in TESTS)]
        )
    text = (
        "Percentage of samples in which each test rejects at 5 %, two-sided but for the last column. Larger is better, "
        "except in the lines T = 1, where the model is calibrated: there it should be 5 or less, and bold is more than "
        f"three standard errors above. {about(results, 0.05, 0.5)} Made by `make validate`."
    )
    return f"{text}\n\n{table(['predictions', 'truth', 'n', *TESTS], lines)}"


def coverage_table(results: Sequence[Counts]) -> str:
    order = {model: k for k, model in enumerate(MODELS)}
    lines = []
    for r in sorted(results, key=lambda r: (order[r["predictions"]], r["T"], r["n"])):
        pairs = (" / ".join(percent(c, r, TAIL) for c in r["missed"][name]) for name in INTERVALS)
        lines.append([r["predictions"], f"{r['T']:g}", f"{r['truth']:.3f}", r["n"], *pairs])
    text = (
        "Each pair is the percentage of 90 % intervals that lie wholly above the truth / wholly below it. Each should "
        "be 5 or less; bold is more than three standard errors above. The second number matters for safety: it is how "
        f"often the upper bound is too low. {about(results, TAIL)} Made by `make validate`."
    )
    return f"{text}\n\n{table(['predictions', 'true T', 'true ECD', 'n', *INTERVALS], lines)}"


def dependence_table(results: Sequence[Counts]) -> str:
    lines = [
        [r["process noise"], r["runs"], *(percent(r["rejected"].get(k, 0), r, 0.05) for k in ("pooled", "clustered"))]
        for r in results
    ]
    text = (
        f"Percentage of correct Kalman filters, {STEPS} steps a run, that a two-sided test at 5 % calls wrong. It "
        f"should be 5 or less; bold is more than three standard errors above. {about(results, 0.05)} "
        "Made by `make validate`."
    )
    return f"{text}\n\n{table(['process noise', 'runs', 'pooled chi-square', '`cluster=` run'], lines)}"


RENDER: dict[str, Callable[[Sequence[Counts]], str]] = {
    "size": size_tables,
    "lattice": size_tables,
    "equality": equality_table,
    "power": power_table,
    "coverage": coverage_table,
    "dependence": dependence_table,
}


def markers(kind: str) -> tuple[str, str]:
    """Return the comments between which a table stands."""
    return f"<!-- validate: {kind} -->", f"<!-- end: {kind} -->"


def publish(out: Path, found: dict[str, list[Counts]], chosen: dict[str, dict[str, Any]]) -> None:
    """Write the counts of each kind, and every table for which there are counts."""
    for kind, results in found.items():
        if results:
            counted = {"settings": chosen[kind], "cells": f"{len(results)} of {len(cells(kind))}", "results": results}
            text = json.dumps(counted, indent=1, ensure_ascii=False)
            write(out / "validation" / f"{kind}.json", text + "\n")
    page = out / "validation.md"
    blank = "# Validation\n\n" + "".join("{}\n{}\n\n".format(*markers(kind)) for kind in KINDS)
    text = page.read_text(encoding="utf-8") if page.exists() else blank
    for kind in KINDS:
        source = out / "validation" / f"{kind}.json"
        begin, end = markers(kind)
        if source.exists():
            counted = json.loads(source.read_text(encoding="utf-8"))
            before, rest = text.split(begin)
            done, whole = counted["cells"].split(" of ")
            note = "" if done == whole else f"Finished so far: {done} of {whole} cells.\n\n"
            text = f"{before}{begin}\n\n{note}{RENDER[kind](counted['results'])}\n\n{end}{rest.split(end)[1]}"
    write(page, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and publish it, also when stopped half-way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} replications, written to .validate/quick")
    parser.add_argument("--replications", type=int, metavar="N", help="in every cell, instead of the usual number")
    parser.add_argument("--only", choices=KINDS, help="one kind of table")
    parser.add_argument("--match", default="", metavar="TEXT", help="only cells whose name contains it, as in 'n = 30'")
    parser.add_argument("--out", type=Path, help="folder of validation.md and validation/; docs by default")
    parser.add_argument("--cache", type=Path, default=ROOT / ".validate", help="where finished cells are kept")
    parser.add_argument("--render", action="store_true", help="run nothing: write the tables from the counts")
    asked = parser.parse_args(arguments)
    replications = asked.replications or (QUICK if asked.quick else None)
    out = asked.out or (ROOT / ".validate" / "quick" if asked.quick else ROOT / "docs")
    kinds = [asked.only] if asked.only else KINDS
    chosen = {kind: settings(kind, replications) for kind in kinds}
    found: dict[str, list[Counts]] = {kind: [] for kind in kinds}
    todo = [cell for kind in kinds for cell in cells(kind, replications) if asked.match in f"{cell.key},"]
    stopped = False
    try:
        if not asked.render:
            run(todo, asked.cache, found, chosen)
    except KeyboardInterrupt:
        stopped = True
    publish(out, found, chosen)
    if stopped:
        print("\nStopped: what was finished is published. Run it again to go on.", file=sys.stderr)
    return 130 if stopped else 0


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main())
