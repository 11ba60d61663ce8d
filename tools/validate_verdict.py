"""Measure how often each decision is reached, by what is true and by the number of rows.

Draws many data sets from a known truth, evaluates each, and counts SAFE, UNDETERMINED and UNSAFE. Prints a page in
Markdown; the same seeds give the same page.

    python tools/validate_verdict.py                    # the published page, about fifteen minutes
    python tools/validate_verdict.py --quick            # a tenth of the repetitions
    python tools/validate_verdict.py --only clusters    # the table of clusters alone, about five minutes
    python tools/validate_verdict.py --only directions  # that of directions of states, about three minutes
"""

import argparse
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import integrate, optimize, special

import safecal

Array = np.ndarray
Draw = Callable[[np.random.Generator, int], tuple[safecal.Predictions, dict[str, Any]]]
SIZES = (300, 1000, 3000, 10_000, 40_000)
REPETITIONS = {300: 200, 1000: 200, 3000: 200, 10_000: 100, 40_000: 50}


@dataclass(frozen=True)
class Truth:
    """What is drawn, what is true of it, and what must not happen more often than 5 % of the time."""

    name: str
    draw: Draw
    never: str = ""  # a decision that is wrong
    sizes: tuple[int, ...] = SIZES


def two(mean: float, spread: float, said: Callable[[np.random.Generator, Array], Array]) -> Draw:
    """Draw true log-odds, and what a model says of them."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        z = rng.normal(mean, spread, n)
        return safecal.bernoulli(rng.random(n) < special.expit(z), logits=said(rng, z)), {}

    return draw


def times(factor: float) -> Callable[[np.random.Generator, Array], Array]:
    """Say log-odds that are too large."""
    return lambda rng, z: factor * z


def mixed(rng: np.random.Generator, z: Array) -> Array:
    """Say twice the log-odds in 30 % of the rows, and less than half in the others."""
    return np.where(rng.random(len(z)) < 0.3, 2.0, 0.45) * z


def cancelling(rng: np.random.Generator, z: Array) -> Array:
    """Say too much beyond log-odds of 2.2, and too little between."""
    return np.where(np.abs(z) > 2.2, 1.9, 0.45) * z


def one_sided(rng: np.random.Generator, z: Array) -> Array:
    """Say too much where the event is unlikely, and too little elsewhere."""
    return np.where(z < -1.0, 1.8, 0.7) * z


def atoms(*parts: tuple[float, float, float]) -> Draw:
    """Draw rows of a few kinds: share, what is said, what is true."""
    shares, said, true = (np.array(column) for column in zip(*parts, strict=True))

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        kind = np.minimum(np.searchsorted(np.cumsum(shares), rng.random(n)), len(parts) - 1)
        return safecal.bernoulli(rng.random(n) < true[kind], said[kind]), {}

    return draw


def classes(count: int, factor: float) -> Draw:
    """Draw rows of K classes whose logits are too large."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        z = rng.normal(0.0, 2.5, (n, count))
        return safecal.categorical((z + rng.gumbel(size=z.shape)).argmax(axis=1), logits=factor * z), {}

    return draw


def beside(share: float, said: float, true: float, mean: float = 0.0, spread: float = 2.0, noise: float = 0.1) -> Draw:
    """Draw rows of which a part says something else than what is true; the others are calibrated."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        z, wrong = rng.normal(mean, spread, n), rng.random(n) < share
        logits = np.where(wrong, special.logit(said) + rng.normal(0.0, noise, n), z)
        return safecal.bernoulli(rng.random(n) < np.where(wrong, true, special.expit(z)), logits=logits), {}

    return draw


def sure_tenth(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
    """Draw rows of which a tenth has log-odds of 500, and is wrong once in 200."""
    z, sure = rng.normal(0.0, 2.0, n), rng.random(n) < 0.1
    happened = rng.random(n) < np.where(sure, 0.995, special.expit(z))
    return safecal.bernoulli(happened, logits=np.where(sure, 500.0, z)), {}


def second_class(count: int, said: tuple[float, float], true: float) -> Draw:
    """Draw rows that name a first and a second class, and share the rest among the others; one of the two happens."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        rows, first = np.arange(n), rng.integers(0, count, n)
        second = (first + rng.integers(1, count, n)) % count
        p = np.full((n, count), (1.0 - sum(said)) / (count - 2))
        p[rows, first], p[rows, second] = said
        return safecal.categorical(np.where(rng.random(n) < true, first, second), p), {}

    return draw


def mixed_classes(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
    """Draw rows of ten classes, whose logits are twice too large in 30 % of the rows and too small in the others."""
    z = rng.normal(0.0, 2.5, (n, 10))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return safecal.categorical(y, logits=np.where(rng.random((n, 1)) < 0.3, 2.0, 0.6) * z), {}


def cancelling_states(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
    """Draw numbers whose squared errors are larger than stated where little is stated, and smaller elsewhere."""
    std = np.exp(rng.normal(0.0, 0.7, n))
    error = np.sqrt(np.where(std < 0.6, 2.0, 0.75)) * std * rng.normal(size=n)
    return safecal.gaussian(error, np.zeros(n), std=std), {}


def sharp_states(factor: float) -> Draw:
    """Draw numbers whose squared errors are larger than stated in the hundredth of the rows that states least."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        log_std = rng.normal(0.0, 0.7, n)
        squared = np.where(log_std < 0.7 * special.ndtri(0.01), factor, 1.0)
        error = np.sqrt(squared) * np.exp(log_std) * rng.normal(size=n)
        return safecal.gaussian(error, np.zeros(n), std=np.exp(log_std)), {}

    return draw


def states(factor: float) -> Draw:
    """Draw states of four dimensions whose covariances are too small; they differ in size."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        std = np.exp(rng.normal(0.0, 0.7, (n, 1))) * np.ones(4)
        x = rng.normal(size=(n, 4)) * std * np.sqrt(factor)
        return safecal.gaussian(x, np.zeros((n, 4)), std=std), {}

    return draw


def grouped(count: int) -> Draw:
    """Draw calibrated rows in groups."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        predictions, _ = two(0.0, 2.0, times(1.0))(rng, n)
        return predictions, {"by": rng.integers(0, count, n)}

    return draw


def differing_groups(count: int) -> Draw:
    """Draw rows of which 90 % is said: 98 % is true in one half of the groups, and 82 % in the other."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        group = rng.integers(0, count, n)
        happened = rng.random(n) < np.where(group % 2 == 0, 0.98, 0.82)
        return safecal.bernoulli(happened, np.full(n, 0.9)), {"by": group}

    return draw


def vague_groups(first: float, others: float) -> Draw:
    """Draw vague rows in ten groups, whose logits are too large: in the first of them, and in the others."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        group = rng.integers(0, 10, n)
        predictions, _ = two(0.0, 0.5, lambda rng, z: np.where(group == 0, first, others) * z)(rng, n)
        return predictions, {"by": group}

    return draw


def weighted(factor: float) -> Draw:
    """Draw rows with weights."""

    def draw(rng: np.random.Generator, n: int) -> tuple[safecal.Predictions, dict[str, Any]]:
        predictions, _ = two(0.0, 2.0, times(factor))(rng, n)
        return predictions, {"sample_weight": rng.gamma(2.0, 1.0, n)}

    return draw


@lru_cache
def factor_of(ecd: float) -> float:
    """Return how many times too large the logits are when N(0, 2) is the truth and ECD is this."""

    def ecd_of(factor: float) -> float:
        def at(z: float) -> float:
            said = factor * z
            return float((special.expit(said) - special.expit(z)) * said * np.exp(-0.125 * z * z))

        return float(integrate.quad(at, -16.0, 16.0)[0]) / np.sqrt(8.0 * np.pi)

    return float(optimize.brentq(lambda f: ecd_of(f) - ecd, 1.0, 4.0))


FEWER = SIZES[:4]
TRUTHS = (
    Truth("calibrated, logits N(0, 2)", two(0, 2, times(1)), "UNSAFE"),
    Truth("calibrated, logits N(4, 1)", two(4, 1, times(1)), "UNSAFE"),
    Truth("calibrated and rare, logits N(−6, 1.5)", two(-6, 1.5, times(1)), "UNSAFE"),
    Truth("calibrated and vague, logits N(0, .5)", two(0, 0.5, times(1)), "UNSAFE"),
    Truth("T = 1.34, within every limit", two(0, 2, times(1.34)), "UNSAFE"),
    Truth("at the limit of ECD, 0.1 nat", two(0, 2, times(factor_of(0.1))), "UNSAFE"),
    Truth("at the limit of temperature, 1.5, logits N(0, .5)", two(0, 0.5, times(1.5)), "UNSAFE"),
    Truth("at the limit of mistakes, 3 times", atoms((1.0, 0.001, 0.003)), "UNSAFE"),
    Truth("at the limit in a tenth, .97 for .9125", atoms((0.9, 0.5, 0.5), (0.1, 0.97, 0.9125)), "UNSAFE"),
    Truth("beyond in a tenth, .97 for .85", atoms((0.9, 0.5, 0.5), (0.1, 0.97, 0.85)), "SAFE"),
    Truth("logits × 2 in 30 %, × .45 in the others", two(0, 2, mixed), "SAFE"),
    Truth("logits × 1.9 beyond ±2.2, × .45 between", two(0, 2, cancelling), "SAFE"),
    Truth("logits × 1.8 below −1, × .7 above", two(0, 2, one_sided), "SAFE"),
    Truth("10 classes, logits × 2 in 30 %, × .6 in the others", mixed_classes, "SAFE", FEWER),
    Truth("numbers, squared errors × 2 where the spread is small, × .75 elsewhere", cancelling_states, "SAFE", FEWER),
    Truth("60 % said of half, at the limit: 47.7 % is true", beside(0.5, 0.6, 0.4767, 0, 3, 0), "UNSAFE"),
    Truth("60 % said of half: 35 % is true", beside(0.5, 0.6, 0.35, 0, 3), "SAFE"),
    Truth("70 % said of a fifth: 50 % is true", beside(0.2, 0.7, 0.5, 0, 3), "SAFE"),
    Truth("log-odds shifted by 0.2", two(0, 2, lambda rng, z: z + 0.2), "UNSAFE"),
    Truth("log-odds shifted by 0.5", two(0, 2, lambda rng, z: z + 0.5)),
    Truth("log-odds shifted by 1", two(0, 2, lambda rng, z: z + 1.0), "SAFE"),
    Truth("rare events eight times too many", two(-4.9, 1, lambda rng, z: z - 2.1), "SAFE"),
    Truth("one in a million that happens in 1 %, in a tenth", beside(0.1, 1e-6, 0.01), "SAFE", FEWER),
    Truth("1 in 2000 that happens in 2 %, in a tenth", beside(0.1, 0.0005, 0.02), "SAFE", FEWER),
    Truth("rare events, 97 % said of 1 %: .9125 is true, at the limit", beside(0.01, 0.97, 0.9125, -5, 1), "UNSAFE"),
    Truth("rare events, 97 % said of 1 %: .6 is true", beside(0.01, 0.97, 0.6, -5, 1), "SAFE"),
    Truth("numbers, squared errors × 4 where the spread is least, in 1 %", sharp_states(4.0), "SAFE"),
    Truth("log-odds of 500 in a tenth, wrong once in 200", sure_tenth, "SAFE", FEWER),
    Truth("99 % said of 3 %, half of them wrong, beside many 95 %",
          atoms((0.55, 0.95, 0.95), (0.42, 0.3, 0.3), (0.03, 0.99, 0.5)), "SAFE", FEWER),
    Truth("10 classes, 70 % sure and right in 50 %", second_class(10, (0.7, 0.2), 0.5), "SAFE", FEWER),
    Truth("100 classes, 70 % sure and right in 25 %", second_class(100, (0.7, 0.1), 0.25), "SAFE", SIZES[:3]),
    Truth("10 classes, 45 % sure and right in 23.6 %, at the limit", second_class(10, (0.45, 0.3), 0.2355), "UNSAFE",
          FEWER),
    Truth("10 classes, 45 % sure and right in 5 %", second_class(10, (0.45, 0.3), 0.05), "SAFE", FEWER),
    Truth("T = 2", two(0, 2, times(2)), "SAFE"),
    *(Truth(f"{k} classes, T = {t:g}", classes(k, t), "UNSAFE" if t < 1.2 else "SAFE", SIZES[:sizes])
      for k, sizes in ((10, 4), (100, 3), (1000, 2)) for t in (1.0, 1.1, 1.35, 1.6)),
    *(Truth(f"states of 4 dimensions, T = {t:g}", states(t), "UNSAFE" if t <= 1.1 else "SAFE", FEWER)
      for t in (1.0, 1.1, 1.5, 2.0)),
    *(Truth(f"calibrated, {count} groups", grouped(count), "UNSAFE", FEWER) for count in (2, 10, 100, 500)),
    *(Truth(f"90 % said: 98 % in half of {count} groups, 82 % in the others", differing_groups(count), "SAFE", FEWER)
      for count in (10, 100, 500)),
    Truth("at the limit of temperature in each of 10 groups, logits N(0, .5)", vague_groups(1.5, 1.5), "UNSAFE"),
    Truth("T = 2 in one of 10 groups, logits N(0, .5)", vague_groups(2.0, 1.0), "SAFE"),
    *(Truth(f"weights, T = {t:g}", weighted(t), "UNSAFE" if t < 1.5 else "SAFE", FEWER) for t in (1.0, 2.0)),
)  # fmt: skip

CLUSTERS = {3: 40, 5: 40, 10: 40, 30: 100, 100: 100, 300: 40}  # how many, and how often they are drawn
ROWS = 50  # of a cluster
SHAPES = ("equal", "unequal")


@dataclass(frozen=True)
class Dependent:
    """What is said of true log-odds in clusters, and which decision is wrong."""

    name: str
    said: Callable[[np.random.Generator, Array], Array]
    never: str


DEPENDENT = (
    Dependent("calibrated", times(1), "UNSAFE"),
    Dependent("T = 1.34, within every limit", times(1.34), "UNSAFE"),
    Dependent("T = 2", times(2), "SAFE"),
    Dependent("logits × 2 in 30 %, × .45 in the others", mixed, "SAFE"),
    Dependent("log-odds shifted by 1", lambda rng, z: z + 1.0, "SAFE"),
)


def cluster_sizes(rng: np.random.Generator, clusters: int, shape: str) -> Array:
    """Return how many rows each cluster has: 50, or 50 on average, most of them in a few clusters."""
    if shape == "equal":
        return np.full(clusters, ROWS)
    drawn = np.exp(rng.normal(0.0, 1.0, clusters))
    return np.maximum(np.round(ROWS * clusters * drawn / drawn.sum()), 1).astype(int)


def dependent_rows(
    truth: Dependent, rng: np.random.Generator, clusters: int, shape: str, shared: bool
) -> tuple[safecal.Predictions, Array]:
    """Draw rows in clusters, independent ones, or such that one shock surprises all rows of a cluster, or none."""
    codes = np.repeat(np.arange(clusters), cluster_sizes(rng, clusters, shape))
    z = rng.normal(0.0, 2.0, len(codes))
    luck = rng.random(clusters)[codes] if shared else rng.random(len(codes))
    likelier = luck < special.expit(np.abs(z))
    return safecal.bernoulli((z > 0.0) == likelier, logits=truth.said(rng, z)), codes


CLUSTER_HEAD = """
## Rows in clusters

The same for rows in clusters, with `cluster=`: 50 rows in each, or 50 on average and most of them in a few clusters
(*unequal*: sizes are log-normal). True log-odds are N(0, 2). Rows of a cluster are independent, or they share one
shock, which surprises all of them or none. 100 repetitions for 30 and 100 clusters and 40 for the others: a rate of 5 %
is known to ± 2.2 and 3.4 %.

With few clusters the answer is UNDETERMINED: a shock may not have come yet. Where rows share one, a cluster tells
little more than one row does.

| truth | rows | sizes | """


def cluster_lines(truth: Dependent, scale: float) -> list[str]:
    """Return the lines of one truth: SAFE / UNDETERMINED / UNSAFE in percent, by number of clusters."""
    lines = []
    for shared in (False, True):
        for shape in SHAPES:
            cells = []
            for clusters, often in CLUSTERS.items():
                rng = np.random.default_rng([zlib.crc32(truth.name.encode()), clusters, shared, len(shape)])
                repetitions = max(round(often * scale), 5)
                counts: Counter[str] = Counter()
                for _ in range(repetitions):
                    predictions, codes = dependent_rows(truth, rng, clusters, shape, shared)
                    counts[predictions.evaluate(bins=None, cluster=codes).verdict.decision] += 1
                cells.append(_cell(counts, repetitions, truth.never))
                print(f"{truth.name}, {clusters} clusters, {shape}: {cells[-1]}", file=sys.stderr, flush=True)
            kind = "one shock" if shared else "independent"
            lines.append(f"| {truth.name} | {kind} | {shape} | {' | '.join(cells)} |")
    return lines


@dataclass(frozen=True)
class Directed:
    """What squared errors of states are along each axis, where 1 is stated, and which decision is wrong."""

    name: str
    factors: tuple[float, ...]
    never: str
    freedom: float = np.inf  # of Student errors; infinite: normal ones
    correlation: float = 0.0  # of the errors of the first two axes, where none is stated
    turning: bool = False  # whether axes turn from row to row, three times as long in the first as in the others


DIRECTED = (
    Directed("right, 2 axes", (1.0,) * 2, "UNSAFE"),
    Directed("right, 6 axes", (1.0,) * 6, "UNSAFE"),
    Directed("right, 24 axes", (1.0,) * 24, "UNSAFE"),
    Directed("right, 2 axes, turning", (1.0,) * 2, "UNSAFE", turning=True),
    Directed("right, 6 axes, Student errors of 5 degrees", (1.0,) * 6, "UNSAFE", freedom=5.0),
    Directed(
        "within every limit: 1.39 along half of 6 axes, .95 along the others", (1.39,) * 3 + (0.95,) * 3, "UNSAFE"
    ),
    Directed("the same, Student errors of 5 degrees", (1.39,) * 3 + (0.95,) * 3, "UNSAFE", freedom=5.0),
    Directed("errors of 2 axes correlated by .6, 0 is stated", (1.0,) * 2, "SAFE", correlation=0.6),
    Directed("2 along one of 6 axes, .8 along the others", (2.0,) + (0.8,) * 5, "SAFE"),
    Directed("2 along one of 24 axes, .96 along the others", (2.0,) + (0.96,) * 23, "SAFE"),
    Directed("turning: .4 along the long axis, 1.6 along the short one", (0.4, 1.6), "SAFE", turning=True),
    Directed("turning: 1.6 along the long axis, .4 along the short one", (1.6, 0.4), "SAFE", turning=True),
)
STATES = {100: 400, 300: 400, 1000: 400, 3000: 200, 10_000: 100}
RUNS, STEPS = {10: 200, 30: 200, 100: 200, 300: 100}, 20


def directed_states(truth: Directed, rng: np.random.Generator, n: int, moving: int = 1) -> safecal.Predictions:
    """Draw states; of ``moving`` rows in a row, each error is nine tenths of the one before, and new noise."""
    d = len(truth.factors)
    error = rng.normal(size=(n // moving, moving, d))
    for step in range(1, moving):
        error[:, step] = 0.9 * error[:, step - 1] + np.sqrt(1.0 - 0.81) * error[:, step]
    error = error.reshape(-1, d) * np.sqrt(truth.factors)
    if np.isfinite(truth.freedom):
        error *= np.sqrt((truth.freedom - 2.0) / rng.chisquare(truth.freedom, (len(error), 1)))
    if truth.correlation:
        error[:, 1] = truth.correlation * error[:, 0] + np.sqrt(1.0 - truth.correlation**2) * error[:, 1]
    if not truth.turning:
        return safecal.gaussian(error, np.zeros_like(error), std=1.0)
    std = np.ones(d)
    std[0] = 3.0
    turn = np.linalg.qr(rng.normal(size=(len(error), d, d)))[0]
    cov = (turn * std**2) @ np.swapaxes(turn, 1, 2)
    error = np.einsum("nij,nj->ni", turn, error * std)
    return safecal.gaussian(error, np.zeros_like(error), cov=cov)


def directed_line(truth: Directed, scale: float, runs: bool) -> str:
    """Return one line: SAFE / UNDETERMINED / UNSAFE in percent, by number of rows, or of runs."""
    cells = []
    for n, often in (RUNS if runs else STATES).items():
        rng = np.random.default_rng([zlib.crc32(truth.name.encode()), n, runs])
        repetitions = max(round(often * scale), 5)
        counts: Counter[str] = Counter()
        for _ in range(repetitions):
            rows = directed_states(truth, rng, n * STEPS if runs else n, STEPS if runs else 1)
            run = {"cluster": np.repeat(np.arange(n), STEPS)} if runs else {}
            counts[rows.evaluate(bins=None, **run).verdict.decision] += 1
        cells.append(_cell(counts, repetitions, truth.never))
        print(f"{truth.name}, {n} {'runs' if runs else 'rows'}: {cells[-1]}", file=sys.stderr, flush=True)
    return f"| {truth.name} | {' | '.join(cells)} |"


DIRECTION_HEAD = """
## Directions of states

Errors too large along one direction and too small along another have the NEES of a right tracker. The numbers are
squared errors over the variance that is stated. *Turning*: the stated covariance turns from row to row, so that no
fixed direction shows what is wrong along its long or its short axis. 400 repetitions up to 1000 rows, 200 at 3000 and
100 at 10 000: a rate of 5 % is known to ± 1.1, 1.5 and 2.2 %.

| truth | """

RUN_HEAD = """
The same in runs of 20 steps, with `cluster=`; each error is .9 of the one before, and new noise. 200 repetitions, 100
for 300 runs.

| truth | """


HEAD = """# Decisions, validated

How often a model is called SAFE / UNDETERMINED / UNSAFE, in percent, by what is true of it and by the number of rows.
Made by `make validate`, with 200 repetitions up to 3000 rows, 100 at 10 000 and 50 at 40 000: a rate of 5 % is known to
± 1.5, 2.2 and 3.1 %. Decisions that are wrong are **bold** where they came more often than 5 % of the time.

SAFE claims that over-confidence is ruled out on average and shown nowhere: with few rows a bad place may not show yet.
That is why some lines have SAFE in them, and fewer with every column.

| truth | """


def decisions(truth: Truth, n: int, repetitions: int) -> Counter[str]:
    """Count the decisions."""
    rng = np.random.default_rng([zlib.crc32(truth.name.encode()), n])
    counts: Counter[str] = Counter()
    for _ in range(repetitions):
        predictions, more = truth.draw(rng, n)
        counts[predictions.evaluate(bins=None, **more).verdict.decision] += 1
    return counts


def line(truth: Truth, scale: float) -> str:
    """Return one line of the table: SAFE / UNDETERMINED / UNSAFE in percent, by number of rows."""
    cells = []
    for n in SIZES:
        if n not in truth.sizes:
            cells.append("")
            continue
        width = 20 if "classes" in truth.name and n * int(truth.name.split()[0]) > 10**6 else 1
        repetitions = max(round(REPETITIONS[n] * scale / width), 5)
        cells.append(_cell(decisions(truth, n, repetitions), repetitions, truth.never))
        print(f"{truth.name}, {n} rows: {cells[-1]}", file=sys.stderr, flush=True)
    return f"| {truth.name} | {' | '.join(cells)} |"


def _cell(counts: Counter[str], repetitions: int, never: str) -> str:
    shares = {name: 100.0 * counts[name] / repetitions for name in ("SAFE", "UNDETERMINED", "UNSAFE")}
    return " / ".join(_bold(share, name == never) for name, share in shares.items())


def _bold(share: float, wrong: bool) -> str:
    return f"**{share:.0f}**" if wrong and share > 5.0 else f"{share:.0f}"


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--match", default="", help="only truths whose name contains this")
    parser.add_argument("--only", choices=("rows", "clusters", "directions"), help="one of the tables")
    options = parser.parse_args()
    scale = 0.1 if options.quick else 1.0
    if options.only in (None, "rows"):
        lines = [line(truth, scale) for truth in TRUTHS if options.match in truth.name]
        print(_table(HEAD, [f"{n} rows" for n in SIZES], lines, 1))
    if options.only in (None, "directions"):
        for runs, head in ((False, DIRECTION_HEAD), (True, RUN_HEAD)):
            lines = [directed_line(truth, scale, runs) for truth in DIRECTED if options.match in truth.name]
            print(_table(head, [f"{n} {'runs' if runs else 'rows'}" for n in (RUNS if runs else STATES)], lines, 1))
    if options.only in (None, "clusters"):
        lines = [x for truth in DEPENDENT if options.match in truth.name for x in cluster_lines(truth, scale)]
        print(_table(CLUSTER_HEAD, [f"{n} clusters" for n in CLUSTERS], lines, 3))


def _table(head: str, names: list[str], lines: list[str], before: int) -> str:
    return f"{head}{' | '.join(names)} |\n|{'---|' * (before + len(names))}\n" + "\n".join(lines)


if __name__ == "__main__":
    main()
