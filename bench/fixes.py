"""What fixes it: the maps of safecal, alone and safe, beside those of scikit-learn, netcal and probmetrics.

    python bench/fixes.py DATA                 every data set of the folder DATA, six simulated truths, 20 splits
    python bench/fixes.py DATA --splits 2      a quick look

Each map is fitted to half of the rows of a data set, and judged on the other half; a simulated truth is drawn anew for
each split, and judged on rows whose probabilities are known. Results go to bench/results/fixes.json after each data
set, which a second run does not measure again, and from there into docs/fixes.md. Peers that are not installed are left
out.
"""

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from fix_methods import methods
from scipy import special

import safecal
from safecal import maps

HERE = Path(__file__).parent
ROWS = 1000  # of a simulated truth
POPULATION = 20_000


# Data


def _column(path: Path, name: str) -> np.ndarray:
    with path.open(newline="", encoding="utf-8") as file:
        return np.array([row[name] for row in csv.DictReader(file)])


def _columns(odds: np.ndarray) -> np.ndarray:
    return np.stack([np.zeros(len(odds)), odds], axis=1)


def _log_odds(p: np.ndarray) -> np.ndarray:
    return np.asarray(special.logit(np.clip(p, 1e-6, 1 - 1e-6)))


def real(folder: Path) -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    """Return the data sets of the folder: logits of each class, and what happened."""

    def games(path: str) -> tuple[np.ndarray, np.ndarray]:
        p, y = (_column(folder / path, name) for name in ("prob1", "prob1_outcome"))
        played = np.array([a != "" and b in ("0", "1", "0.0", "1.0") for a, b in zip(p, y, strict=True)])
        return _columns(_log_odds(p[played].astype(float))), y[played].astype(float).astype(int)

    def cells(name: str) -> tuple[np.ndarray, np.ndarray]:
        path = folder / "cells" / f"segment_{name}.csv"
        good = (_column(path, "Class") == "good").astype(int)
        return _columns(_log_odds(_column(path, ".pred_good").astype(float))), good

    def images(name: str) -> tuple[np.ndarray, np.ndarray]:
        with np.load(folder / "cifar" / f"{name}.npz") as file:
            p, y = file["predictions"].astype(float), file["ground_truth"].astype(int).ravel()
        return np.log(np.maximum(p, 1e-12)), y

    def tweets() -> tuple[np.ndarray, np.ndarray]:
        path = folder / "toxicity" / "bilstm_tweets.csv"
        return _columns(_column(path, "logit").astype(float)), _column(path, "y").astype(int)

    return {
        "tweets": tweets,
        "MLB": lambda: games("baseball/mlb_games.csv"),
        "NFL": lambda: games("football/nfl_games.csv"),
        "cells, logistic": lambda: cells("logistic"),
        "cells, naive Bayes": lambda: cells("naive_bayes"),
        "CIFAR-10": lambda: images("wideresnet-16-4-cifar-10"),
        "CIFAR-100": lambda: images("densenet-bc-100-cifar-100"),
    }


def _hidden(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(special.expit(np.where(rng.random(len(z)) < 0.3, z / 3.0, z)))


Truth = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def _truth(mean: float, probability: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Truth:
    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        z = rng.normal(mean, 2.5, n)
        return z, probability(z, rng)

    return draw


TRUTHS: dict[str, Truth] = {
    "temperature 1.7": _truth(0.0, lambda z, rng: special.expit(z / 1.7)),
    "shift -1.5": _truth(0.0, lambda z, rng: special.expit(z - 1.5)),
    "T = 3 above 1/2": _truth(0.0, lambda z, rng: special.expit(np.where(z > 0.0, z / 3.0, z))),
    "5 % of labels wrong": _truth(0.0, lambda z, rng: 0.95 * special.expit(z / 1.3) + 0.025),
    "T = 3 in a hidden 30 %": _truth(0.0, _hidden),
    "rare events, shift 1": _truth(-4.0, lambda z, rng: special.expit(z + 1.0)),
}


# Measures: NLL, ECE, the worst range, whether it is over-confident


def judged(y: np.ndarray, p: np.ndarray) -> list[float]:
    """Judge probabilities by outcomes: over-confidence is what the data show of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = np.clip(p, 0.0, 1.0)
        p = p / p.sum(axis=1, keepdims=True)
        evaluation = safecal.evaluate(y, p[:, 1]) if p.shape[1] == 2 else safecal.evaluate(y, p)
    worst = max((r.ecd.value for r in evaluation.local), default=0.0)
    return [
        evaluation.nll,
        evaluation.ece,
        worst,
        float(evaluation.interval.low > 0.0),
        float(evaluation.verdict.decision == "UNSAFE"),
    ]


def known(q: np.ndarray, p: np.ndarray) -> list[float]:
    """Judge probabilities by the true ones: it is over-confident where its ECD in the population is above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = special.logit(p[:, 1])
        nll = float(-(special.xlogy(q, p[:, 1]) + special.xlogy(1.0 - q, p[:, 0])).mean())
        excess = np.where(np.isfinite(z), (p[:, 1] - q) * z, np.inf)
    edges = np.linspace(0, len(q), 21).astype(int)
    order = np.argsort(p[:, 1], kind="stable")
    sums = np.append(0.0, np.cumsum(excess[order]))[edges]
    apart = np.append(0.0, np.cumsum((p[:, 1] - q)[order]))[edges]
    i, j = np.triu_indices(21, 1)
    worst = float(((sums[j] - sums[i]) / (edges[j] - edges[i])).max()) if np.isfinite(sums).all() else float("inf")
    over = float(excess.mean())
    return [nll, float(np.abs(np.diff(apart)).sum() / len(q)), worst, float(over > 1e-9), float(over > 0.1)]


def measure(draw: Callable[[int], tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], list[float]], np.ndarray]],
            classes: int, splits: int) -> dict[str, list[float]]:  # fmt: skip
    """Return the means over all splits, and how many of them could not be fitted."""
    means: dict[str, list[float]] = {}
    for name, method in methods(classes).items():
        rows, failed, start = [], 0, time.monotonic()
        for split in range(splits):
            z, y, judge, rest = draw(split)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    p = method(z, y)(rest)
                rows.append(judge(p))
            except Exception as error:  # noqa: BLE001  # a peer may raise anything
                failed += 1
                print(f"  {name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
        mean = np.mean(rows, axis=0).tolist() if rows else [float("nan")] * 5
        means[name] = [*mean, failed, (time.monotonic() - start) / splits]
        print(f"  {name}: " + " ".join(f"{x:.4f}" for x in means[name]), flush=True)
    return means


def halves(z: np.ndarray, y: np.ndarray) -> Callable[[int], Any]:
    """Return what cuts rows into halves."""

    def draw(split: int) -> Any:
        order = np.random.default_rng(split).permutation(len(y))
        a, b = order[: len(y) // 2], order[len(y) // 2 :]
        return z[a], y[a], lambda p: judged(y[b], p), z[b]

    return draw


def drawn(truth: Truth) -> Callable[[int], Any]:
    """Return what draws rows of a truth anew."""
    rest, q = truth(np.random.default_rng(7), POPULATION)

    def draw(split: int) -> Any:
        rng = np.random.default_rng([split, 1])
        z, p = truth(rng, ROWS)
        y = (rng.random(ROWS) < p).astype(int)
        return _columns(z), y, lambda calibrated: known(q, calibrated), _columns(rest)

    return draw


# Speed

SPEED = "speed"
SPEED_ROWS, SPEED_CLASSES = 1_000_000, 10


def speed(rounds: int = 3) -> dict[str, float]:
    """Return the CPU seconds of fits to a million rows of ten classes, the fewest of some rounds.

    CPU time of one thread, because a machine may have other work; what is imported is imported before.
    """
    from sklearn.calibration import _SigmoidCalibration, _TemperatureScaling

    rng = np.random.default_rng(0)
    z = 3.0 * rng.standard_normal((SPEED_ROWS, SPEED_CLASSES))
    y = (z / 1.5 + rng.gumbel(size=z.shape)).argmax(axis=1)

    def sigmoid() -> None:  # as CalibratedClassifierCV does: one class against the rest, for each
        for k in range(SPEED_CLASSES):
            _SigmoidCalibration().fit(z[:, k], (y == k).astype(int))

    works: dict[str, Callable[[], object]] = {
        "Temperature": lambda: maps.Temperature().fit(y, logits=z),
        "Affine": lambda: maps.Affine().fit(y, logits=z),
        "scikit-learn temperature": lambda: _TemperatureScaling().fit(z, y),
        "scikit-learn sigmoid": sigmoid,
    }
    seconds = {}
    for name, work in works.items():
        times = []
        for _ in range(rounds):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        seconds[name] = min(times)
        print(f"  {name}: {seconds[name]:.2f} s", flush=True)
    return seconds


def _speed_text(seconds: dict[str, float]) -> str:
    lines = ["| fit | CPU seconds | beside scikit-learn's |", "|---|---:|---:|"]
    for name, peer in (("Temperature", "temperature"), ("Affine", "sigmoid")):
        other = seconds[f"scikit-learn {peer}"]
        lines.append(f"| `{name}` | {seconds[name]:.2f} | {other / seconds[name]:.1f} times faster than {peer} |")
        lines.append(f"| scikit-learn {peer} | {other:.2f} | |")
    rows = f"{SPEED_ROWS:,} rows of {SPEED_CLASSES} classes".replace(",", " ")
    return f"## Speed\n\n{rows}, one thread, the fewest of three rounds, without imports.\n\n" + "\n".join(lines) + "\n"


# The page

HEAD = """# What fixes it, measured

The maps of safecal beside those of scikit-learn {sklearn}, netcal {netcal} and probmetrics {probmetrics}. Made by
`make bench-fixes`. Each is fitted to half of the rows of a data set and judged on the other half, {splits} times;
numbers are means. A simulated truth is drawn anew each time, {rows} rows, and judged on rows whose probabilities are
known.

*over-confident* is the share of splits in which ECD is above 0: shown by held-out rows at 95 %, or true of the
population. *UNSAFE* is the share with that verdict; of a simulated truth, with an ECD above 0.1 nat. Probabilities of
the cells are kept off 0 and 1 by 1e-6, for every method. An NLL in bold is the smallest of all, or within 1 % of it.
Of 100 classes, the logistic calibration of netcal and the maps of probmetrics are left out: they take very long.

Where `auto` is not within 1 %, it is for one of two reasons. Safety has a price: a temperature at which
over-confidence is ruled out at level alpha costs about z² / (2n) nats of NLL, with z = 1.64 at 5 %: 0.0014 with the
941 rows of NFL, 0.0001 with 10 000. No other bound of a temperature that keeps that level, whatever the truth, costs
less; so on NFL, where nothing better than the given predictions is found, `auto` loses 0.0018, and `safe=False` does
not pay it. And of maps whose difference is smaller than its standard error, the simplest is taken; a map with a number
for each pair of classes, as that of probmetrics, is not among them.
"""


def page(results: dict[str, Any], splits: int) -> str:
    """Return the page."""
    versions = {}
    for name in ("scikit-learn", "netcal", "probmetrics"):
        try:
            versions[name.replace("scikit-learn", "sklearn")] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "(not installed)"
    parts = [HEAD.format(**versions, splits=splits, rows=ROWS)]
    for data, measured in results.items():
        if data == SPEED:
            parts.append(_speed_text(measured))
            continue
        best = min(row[0] for row in measured.values() if row[0] == row[0])
        lines = ["| method | NLL | ECE | worst range | over-confident | UNSAFE | not fitted |", "|---" * 7 + "|"]
        for name, row in measured.items():
            if row[5] == splits:
                lines.append(f"| {name} | | | | | | {row[5]:.0f} |")
                continue
            nll, ece, worst, over, unsafe, failed = row[:6]
            text = f"**{nll:.4f}**" if nll <= 1.01 * best else f"{nll:.4f}"
            shares = f"{100 * over:.0f} % | {100 * unsafe:.0f} %"
            lines.append(f"| {name} | {text} | {ece:.4f} | {worst:+.3f} | {shares} | {failed:.0f} |")
        parts.append(f"## {data}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Measure what was not measured yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the data sets")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "fixes.json")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "fixes.md")
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    for name, read in real(options.data).items():
        if name not in results:
            print(name, flush=True)
            z, y = read()
            results[name] = measure(halves(z, y), z.shape[1], options.splits)
            options.results.write_text(json.dumps(results, indent=1) + "\n")
    if SPEED not in results:
        print(SPEED, flush=True)
        results[SPEED] = speed()
        options.results.write_text(json.dumps(results, indent=1) + "\n")
    for name, truth in TRUTHS.items():
        if name not in results:
            print(name, flush=True)
            results[name] = measure(drawn(truth), 2, options.splits)
            options.results.write_text(json.dumps(results, indent=1) + "\n")
    order = [*real(options.data), *TRUTHS, SPEED]
    results = {name: results[name] for name in order}
    options.page.write_text(page(results, options.splits), encoding="utf-8")


if __name__ == "__main__":
    main()
