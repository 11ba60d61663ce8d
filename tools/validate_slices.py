"""Measure how often `find_slices` finds what is not there, and what is; beside searches that do not split the rows.

Draws many samples in which a model is calibrated, or over-confident in one slice, and counts what is claimed. A cell
keeps its counts in ``.validate/slices/`` as soon as it is finished: a run that was stopped goes on where it was. Prints
a page in Markdown; the same seeds give the same page.

    python tools/validate_slices.py    # about twenty minutes on one core
"""

import argparse
import json
import math
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special
from sklearn.tree import DecisionTreeRegressor
from sliceline.slicefinder import Slicefinder

import safecal
from safecal.slices.discovery import Search, code_feature
from safecal.slices.features import read_feature

CACHE = Path(__file__).resolve().parents[1] / ".validate" / "slices"
VERSION = 2  # raise it when what cells do changes
Array = np.ndarray
LOGITS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "N(0, 2)": lambda rng, n: rng.normal(0, 2, n),
    "N(4, 1)": lambda rng, n: rng.normal(4, 1, n),
}


def features(rng: np.random.Generator, n: int, count: int, correlated: bool) -> dict[str, Array]:
    """Draw features: half of them numbers, half categories of four values; correlated ones share a factor."""
    common = rng.normal(size=n) if correlated else np.zeros(n)
    weight = math.sqrt(0.7) if correlated else 0.0
    columns: dict[str, Array] = {}
    for j in range(count):
        x = weight * common + math.sqrt(1.0 - weight**2) * rng.normal(size=n)
        columns[f"x{j}"] = x if j % 2 == 0 else np.digitize(x, [-0.6745, 0.0, 0.6745])
    return columns


def happens(rng: np.random.Generator, z: Array, wrong: Array | float, clusters: Array | None) -> Array:
    """Draw outcomes: of clusters, rows share a shock that leaves each of them calibrated."""
    p = special.expit(z / wrong)
    u = rng.random(len(z))
    if clusters is not None:  # half of the rows of a cluster take what its own draw says
        u = np.where(rng.random(len(z)) < 0.5, rng.random(clusters.max() + 1)[clusters], u)
    return np.asarray(u < p)


def null(name: str, n: int, count: int, correlated: bool, per_cluster: int) -> Callable[[int], dict[str, float]]:
    def one(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        z = LOGITS[name](rng, n)
        clusters = np.arange(n) // per_cluster if per_cluster else None
        columns = features(rng, n, count, correlated)
        if clusters is not None:  # features of a cluster, as of a patient
            columns = {key: x[clusters] if k % 3 == 0 else x for k, (key, x) in enumerate(columns.items())}
        y = happens(rng, z, 1.0, clusters)
        slices = safecal.find_slices(safecal.bernoulli(y, logits=z), columns, cluster=clusters, rng=rng)
        missed = any(s.ecd.low > 0.0 or s.ecd.high < 0.0 for s in slices.candidates)
        values = [s.ecd.value for s in slices.candidates]
        beyond = any(s.firm > 0.0 for s in slices.candidates)
        return {
            "found": len(slices) > 0, "missed": missed, "firm": beyond,
            "mean": float(np.mean(values)) if values else 0.0,
        }  # fmt: skip

    return one


def planted(columns: dict[str, Array], share: float, conditions: int) -> Array:
    """Return the rows of a slice of about that share, with one condition or two."""
    if conditions == 1:
        return np.asarray(columns["x2"] >= np.quantile(columns["x2"], 1.0 - share))
    part = min(4.0 * share, 0.9)
    return np.asarray((columns["x2"] >= np.quantile(columns["x2"], 1.0 - part)) & (columns["x3"] == 1))


def power(n: int, share: float, conditions: int, times: float, count: int = 20) -> Callable[[int], dict[str, float]]:
    def one(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        z, columns = rng.normal(0, 2, n), features(rng, n, count, False)
        inside = planted(columns, share, conditions)
        y = happens(rng, z, np.where(inside, times, 1.0), None)
        slices = safecal.find_slices(safecal.bernoulli(y, logits=z), columns, rng=rng)
        hit, gap = False, []
        for s in slices:
            mask = np.logical_and.reduce([_rows(columns, c) for c in s.conditions])
            hit |= 2 * int((mask & inside).sum()) >= int(mask.sum())
            truth = float(((special.expit(z) - special.expit(z / np.where(inside, times, 1.0))) * z)[mask].mean())
            gap.append(s.ecd.value - truth)
        return {"found": len(slices) > 0, "hit": hit, "gap": float(np.mean(gap)) if gap else math.nan}

    return one


def _rows(columns: dict[str, Array], c: safecal.Condition) -> Array:
    x = columns[c.feature]
    return np.asarray({"<": np.less, ">=": np.greater_equal, "is": np.equal}[c.operator](x, c.value))


def peers(n: int, times: float) -> Callable[[int], dict[str, float]]:
    """Search and test on the same rows, in three ways, beside `find_slices`; a slice of 6 % is planted."""

    def one(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        z, columns = rng.normal(0, 2, n), features(rng, n, 20, False)
        inside = planted(columns, 0.06, 2)
        y = happens(rng, z, np.where(inside, times, 1.0), None)
        predictions = safecal.bernoulli(y, logits=z)
        scored = predictions.score()
        masks = {
            "find_slices": [
                np.logical_and.reduce([_rows(columns, c) for c in s.conditions])
                for s in safecal.find_slices(predictions, columns, rng=rng)
            ],
            "same search, same rows": _same_rows(columns, scored, n),
            "decision tree": _tree(columns, scored.excess, n),
            "sliceline": _sliceline(columns, scored.excess, n),
        }
        counts: dict[str, float] = {}
        for name, shown in masks.items():
            counts[f"{name}: found"] = len(shown) > 0
            counts[f"{name}: hit"] = any(2 * int((m & inside).sum()) >= int(m.sum()) for m in shown)
            counts[f"{name}: said"] = float(scored.excess[shown[0]].mean()) if shown else math.nan
        return counts

    return one


def _shown(excess: Array, masks: list[Array]) -> list[Array]:
    """Return the slices that a one-sided t-test at 5 %, corrected for their number, calls over-confident."""
    kept = []
    for mask in masks:
        e = excess[mask]
        t = e.mean() / (e.std(ddof=1) / math.sqrt(len(e)))
        if special.stdtr(len(e) - 1, -t) <= 0.05 / len(masks):
            kept.append(mask)
    return kept


def _same_rows(columns: dict[str, Array], scored: safecal.Scored, n: int) -> list[Array]:
    least = math.ceil(0.02 * n)
    codes = [code_feature(read_feature(x, name, n, "y_true"), least) for name, x in columns.items()]
    best = Search(codes, np.arange(n), scored.excess, scored.varentropy, least).best(2, lambda: None)
    return _shown(
        scored.excess, [np.logical_and.reduce([_rows(columns, c) for c in conditions]) for conditions in best]
    )


def _tree(columns: dict[str, Array], excess: Array, n: int) -> list[Array]:
    x = np.stack(list(columns.values()), axis=1)
    leaf = DecisionTreeRegressor(max_depth=2, min_samples_leaf=math.ceil(0.02 * n)).fit(x, excess).apply(x)
    return _shown(excess, [leaf == k for k in np.unique(leaf)])


def _sliceline(columns: dict[str, Array], excess: Array, n: int) -> list[Array]:
    """Let sliceline look for the slices with most surprise beyond what was announced; what it reports is its claim."""
    names = list(columns)
    x = np.stack([np.digitize(v, np.quantile(v, np.arange(1, 8) / 8)) for v in columns.values()], axis=1)
    finder = Slicefinder(alpha=0.95, k=3, max_l=2, min_sup=math.ceil(0.02 * n), verbose=False)
    finder.fit(x, np.maximum(excess, 0.0))
    masks = []
    for row in finder.top_slices_:
        masks.append(np.logical_and.reduce([x[:, j] == row[j] for j in range(len(names)) if row[j] is not None]))
    return masks


def cell(name: str, one: Callable[[int], dict[str, float]], repetitions: int) -> dict[str, float]:
    """Count over many samples, or read what was counted; a NaN does not count."""
    path = CACHE / f"{VERSION}-{zlib.crc32(name.encode()):08x}-{repetitions}.json"
    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    start = time.perf_counter()
    seeds = np.random.SeedSequence([zlib.crc32(name.encode())]).generate_state(repetitions)
    counts = [one(int(seed)) for seed in seeds]
    result: dict[str, Any] = {"repetitions": repetitions}
    for key in counts[0]:
        values = [float(c[key]) for c in counts if not math.isnan(c[key])]
        result[key] = float(np.mean(values)) if values else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result), encoding="utf-8")
    print(f"{name}: {time.perf_counter() - start:.0f} s {result}", file=sys.stderr, flush=True)
    return result


def rate(value: float | None) -> str:
    return "" if value is None else f"{100.0 * value:.1f}"


def null_tables() -> list[str]:
    lines = [
        "## What is not there",
        "",
        "The model is calibrated. Percentage of samples in which a slice is found, in which some interval of all "
        "candidates misses 0, and in which a lower bound of a verdict is above 0 (nominal: 4, 5 and 0.5; the rest of "
        "5 % is that of upper ends). Then the mean ECD of all candidates in nat, which should be 0: the search does "
        "not flatter it. Of clusters, rows share half of their luck, and a third of the features.",
        "",
        "| logits | rows | features | | found | missed | verdict | mean ECD | samples |",
        "|---|--:|--:|---|--:|--:|--:|--:|--:|",
    ]
    cases = [("N(0, 2)", n, count, kind, 0, many) for n, count, kind, many in (
        (1000, 5, False, 300), (1000, 20, False, 200), (1000, 20, True, 200), (1000, 100, False, 60),
        (1000, 100, True, 60), (10_000, 5, False, 100), (10_000, 20, False, 160), (10_000, 20, True, 100),
        (10_000, 100, True, 40), (100_000, 20, False, 24), (100_000, 100, True, 30),
    )]  # fmt: skip
    cases += [("N(4, 1)", n, count, kind, 0, many) for n, count, kind, many in (
        (1000, 5, False, 120), (1000, 20, False, 120), (1000, 20, True, 120), (10_000, 20, False, 120),
    )]  # fmt: skip
    cases += [(name, n, 20, False, per, 120) for name, n, per in (
        ("N(0, 2)", 2000, 10), ("N(0, 2)", 10_000, 50), ("N(4, 1)", 10_000, 10),
    )]  # fmt: skip
    for name, n, count, correlated, per, many in cases:
        kind = f"clusters of {per}" if per else "correlated" if correlated else "independent"
        result = cell(f"null {name} {n} {count} {kind}", null(name, n, count, correlated, per), many)
        lines.append(
            f"| {name} | {n} | {count} | {kind} | {rate(result['found'])} | {rate(result['missed'])} | "
            f"{rate(result['firm'])} | {result['mean']:+.4f} | {result['repetitions']} |"
        )
    return lines


def power_tables() -> list[str]:
    sizes = ((2000, 40), (4000, 30), (10_000, 16))
    lines = [
        "## What is there",
        "",
        f"Logits N(0, 2), 20 features, {', '.join(f'{many} samples at n = {n}' for n, many in sizes)}; in one "
        "slice logits are T times too large. Percentage of samples in which a "
        "slice is found at least half of which lies in it. The last column is how far the printed ECD of slices that "
        "were found lies above their truth, in nat: only those that look bad on both halves are printed, so it is "
        "above 0 where power is small.",
        "",
        "| share | conditions | T | n = 2000 | n = 4000 | n = 10 000 | printed less true, n = 10 000 |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    grid = [(share, conditions, times) for share in (0.02, 0.06, 0.2) for conditions in (1, 2) for times in (1.5, 2.5)]
    for share, conditions, times in grid:
        row = []
        for n, many in sizes:
            name = f"power {n} {share} {conditions} {times}"
            row.append(cell(name, power(n, share, conditions, times), many))
        gap = row[-1]["gap"]
        lines.append(
            f"| {100 * share:g} % | {conditions} | {times:g} | {' | '.join(rate(x['hit']) for x in row)} | "
            f"{'' if gap is None else f'{gap:+.3f}'} |"
        )
    return lines


def peer_table() -> list[str]:
    many = 40
    lines = [
        "## Beside searches that do not split the rows",
        "",
        f"20 features, n = 4000, {many} samples. Percentage of samples in which a slice is claimed of a calibrated "
        "model, and in which the planted one is hit (6 % of the rows, two conditions, T = 2.5). Then the ECD that is "
        "said of the first slice of a calibrated model, where the truth is 0. The decision tree (scikit-learn) is "
        "fitted to the excess, and its leaves are tested on the same rows at 5 %, corrected for their number; so are "
        "the slices of the same search. sliceline has no test: it reports what is worst.",
        "",
        "| | claimed of a calibrated model | said ECD | planted slice hit |",
        "|---|--:|--:|--:|",
    ]
    calm, wrong = (cell(f"peers {t}", peers(4000, t), many) for t in (1.0, 2.5))
    for name in ("find_slices", "same search, same rows", "decision tree", "sliceline"):
        said = calm[f"{name}: said"]
        text = "" if said is None else f"{said:+.3f}"
        lines.append(f"| {name} | {rate(calm[f'{name}: found'])} | {text} | {rate(wrong[f'{name}: hit'])} |")
    return lines


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    parts = [
        [
            "# How often `find_slices` is right", "",
            "Made by `tools/validate_slices.py`; `make validate` makes it anew. Rates are in percent. Their standard "
            "error: of a rate of 4 %, 1.1 with 300 samples, 1.8 with 120 and 2.5 with 60; of 50 %, 8 with 40 samples "
            "and 12 with 16.",
        ],
        null_tables(), power_tables(), peer_table(),
    ]  # fmt: skip
    print("\n\n".join("\n".join(part) for part in parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
