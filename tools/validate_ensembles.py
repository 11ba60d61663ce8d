"""Count how often verdicts on ensembles are wrong, and write the tables to ``docs/validation/ensembles.md``.

Rows are drawn and scored 10 000 at a time, and judged as one sample of 10 000 rows, ten of 1000 and ten of 100. Each
such block has a seed of its own. What was counted is kept in ``.validate/`` after every ten blocks: a run that was
stopped goes on where it was, and ends with the same numbers.

    python tools/validate_ensembles.py            # half an hour on one core
    python tools/validate_ensembles.py --render   # the page again, from the counts in docs/validation/ensembles.json
    python tools/validate_ensembles.py --publish  # the page from what is finished so far
    python tools/validate_ensembles.py --quick    # a look, which leaves docs/ alone
"""

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

import safecal

ROOT = Path(__file__).resolve().parents[1]
PAGE, COUNTS = (ROOT / "docs" / "validation" / f"ensembles.{end}" for end in ("md", "json"))
KEPT = ROOT / ".validate" / "ensembles-3.json"  # raise the number when what a block does changes
BLOCK = 10_000  # rows that are drawn and scored together
SAMPLES = {100: 10, 1000: 10, 10_000: 1}  # rows of a sample, and how many samples a block gives
DECISIONS = ("SAFE", "UNDETERMINED", "UNSAFE")
FIRST = 10  # blocks of each case before any gets more

Array = np.ndarray
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
Counts = dict[str, dict[str, list[int]]]  # case -> rows of a sample -> how often each decision came


def normal(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return rng.standard_normal(size)


def skewed(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return rng.standard_exponential(size)


def heavy(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return rng.standard_t(4, size)


def bimodal(rng: np.random.Generator, size: tuple[int, ...], width: float = 0.3) -> Array:
    return 2.0 * rng.choice([-1.0, 1.0], size) + width * rng.standard_normal(size)


def narrow(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return bimodal(rng, size, 0.1)


SHAPES: dict[str, Draw] = {"normal": normal, "skewed": skewed, "heavy-tailed": heavy, "two modes": bimodal}
NARROW = "two modes, each a third as wide"


@dataclass(frozen=True)
class Case:
    """What is drawn, and how often: ``excess`` is the true ECD a dimension that normal draws would have."""

    shape: str
    excess: float
    dimension: int
    draws: int
    blocks: int

    @property
    def name(self) -> str:
        return f"{self.shape} | {self.excess:g} | {self.dimension} | {self.draws}"

    @property
    def factor(self) -> float:
        """How many times the spread of the draws is too small."""
        return float(np.sqrt(1.0 + 2.0 * self.excess))

    def block(self, number: int) -> dict[str, list[int]]:
        """Draw a block of rows, whose spreads differ, and count the decisions on its samples."""
        place = [*SHAPES, NARROW].index(self.shape)
        rng = np.random.default_rng([place, round(1000 * self.excess), self.dimension, self.draws, number])
        truth = bimodal if self.shape == NARROW else SHAPES[self.shape]
        said = narrow if self.shape == NARROW else truth
        spread = np.exp(0.5 * rng.standard_normal((BLOCK, 1)))
        y = truth(rng, (BLOCK, self.dimension)) * spread
        x = said(rng, (BLOCK, self.draws, self.dimension)) * (spread / self.factor)[:, None]
        scored = safecal.ensemble(y, x)
        counts_by_n = {}
        for n, samples in SAMPLES.items():
            parts = (scored.take(np.arange(k * n, (k + 1) * n)) for k in range(samples))
            decisions = [part.evaluate().verdict.decision for part in parts]
            counts_by_n[str(n)] = [decisions.count(decision) for decision in DECISIONS]
        return counts_by_n


def cases(shapes: Iterable[str], excess: float, dimensions: Iterable[int], blocks: dict[int, int]) -> list[Case]:
    """List cases, for so many blocks by the number of draws."""
    return [Case(shape, excess, d, m, b) for shape in shapes for d in dimensions for m, b in blocks.items()]


OTHERS = [shape for shape in SHAPES if shape != "normal"]
RIGHT = cases(["normal"], 0.0, (1, 2, 6), {20: 200, 100: 100, 1000: 20})
RIGHT += cases(OTHERS, 0.0, (1,), {20: 200, 100: 100, 1000: 20})
LIMIT = cases(["normal"], 0.1, (1, 2, 6), {20: 100, 100: 40, 1000: 10})
WRONG = [c for e in (0.15, 0.3) for c in cases(["normal"], e, (1, 2, 6), {20: 40, 100: 40, 1000: 10})]
WRONG += [c for e in (0.15, 0.3) for c in cases(OTHERS[:2], e, (1,), {20: 40, 100: 40, 1000: 10})]
WRONG += cases([NARROW], 0.0, (1,), {20: 40, 100: 40, 1000: 10})

HEAD = """# How often verdicts on ensembles are wrong

Made by `tools/validate_ensembles.py`: outcomes and draws are simulated, and each sample of rows gets a verdict. Rates
are in percent of the samples. *At most* is the one-sided 95 % bound (Clopper-Pearson) of the rate at which the wrong
decision comes: what so many samples can show. Spreads differ from row to row. Draws are numbers, or vectors of 2 or 6
components.
"""
PARTS = (
    (
        "Forecasts that are right",
        "UNSAFE is wrong here, and may come in 5 % of the samples.",
        RIGHT,
        "UNSAFE",
    ),
    (
        "Forecasts at the limit",
        "The spread of normal draws is 1.1 times too small, which is an ECD of 0.1 a dimension: the largest that counts"
        " as safe. So neither UNSAFE nor SAFE should come often. Of few draws a little less is found than is true, so"
        " that SAFE may come more often with 20 draws and many rows. *At most* is that of UNSAFE.",
        LIMIT,
        "UNSAFE",
    ),
    (
        "Forecasts whose spread is too small",
        "SAFE is wrong here. A spread that is 1.14 and 1.26 times too small is an ECD of 0.15 and 0.3 a dimension, if"
        " draws are normal. The modes of the last are a third as wide as they should be, and its spread is right.",
        WRONG,
        "SAFE",
    ),
)


def page(counts: Counts) -> str:
    """Write the page."""
    sections = [HEAD]
    for title, about, listed, wrong in PARTS:
        head = "| draws are | spread too small | dimension | draws | rows | SAFE | UNDETERMINED | UNSAFE | at most |"
        head, rule = f"{head} samples |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        known = [case for case in listed if case.name in counts]
        rows = [line(case, n, counts[case.name][str(n)], wrong) for case in known for n in SAMPLES]
        sections.append("\n".join([f"## {title}\n\n{about}\n", head, rule, *rows, ""]))
    return "\n".join(sections)


def line(case: Case, n: int, decided: list[int], wrong: str) -> str:
    """Write what was counted of one case and number of rows."""
    samples, misses = sum(decided), decided[DECISIONS.index(wrong)]
    rates = " | ".join(f"{100 * count / samples:.1f}" for count in decided)
    most = 100.0 if misses == samples else 100.0 * float(stats.beta.ppf(0.95, misses + 1, samples - misses))
    off = "no" if case.factor == 1.0 else f"{case.factor:.3g} times"
    return f"| {case.shape} | {off} | {case.dimension} | {case.draws} | {n} | {rates} | {most:.1f} | {samples} |"


def add(counts: Counts, name: str, new: dict[str, list[int]]) -> None:
    """Add what was counted in one block."""
    kept = counts.setdefault(name, {n: [0] * len(DECISIONS) for n in new})
    for n, more in new.items():
        kept[n] = [a + b for a, b in zip(kept[n], more, strict=True)]


def write(path: Path, text: str) -> None:
    """Write a file whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def read(path: Path) -> Counts:
    """Read counts; there are none where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def as_json(counts: Counts) -> str:
    """Write counts with one case a line."""
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(by_n)}" for name, by_n in counts.items()) + "\n}\n"


def run(listed: list[Case]) -> Counts:
    """Count what is not counted yet: first some of every case, then all, those that take long last."""
    counts, listed = read(KEPT), sorted(listed, key=lambda case: case.draws)
    for case, most in [*((case, FIRST) for case in listed), *((case, case.blocks) for case in listed)]:
        done = sum(counts.get(case.name, {}).get(str(BLOCK), []))  # one sample a block
        for number in range(done, min(most, case.blocks)):
            add(counts, case.name, case.block(number))
            if number % FIRST == FIRST - 1 or number == case.blocks - 1:
                write(KEPT, as_json(counts))
    return counts


def main() -> None:
    """Count, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("quick", "render", "publish"):
        parser.add_argument(f"--{name}", action="store_true")
    asked = parser.parse_args()
    listed = [case for _, _, some, _ in PARTS for case in some]
    if asked.quick:
        counts: Counts = {}
        for case in listed:
            if case.draws == 20:
                add(counts, case.name, case.block(0))
        print(page(counts))
        return
    counts = read(COUNTS) if asked.render else read(KEPT) if asked.publish else run(listed)
    counts = {case.name: counts[case.name] for case in listed if case.name in counts}
    if not asked.render:
        write(COUNTS, as_json(counts))
    write(PAGE, page(counts))


if __name__ == "__main__":
    main()
