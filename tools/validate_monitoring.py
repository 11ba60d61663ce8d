"""Measure false alarms, run lengths and delays of `safecal.monitor`, beside what people do instead.

Streams of a two-outcome model are simulated; their logits are normal, with the standard deviation 2. Prints the tables
of docs/validation/monitoring.md; the same seeds give the same tables.

    python tools/validate_monitoring.py            # the published tables, some minutes
    python tools/validate_monitoring.py --quick    # a tenth of the repetitions
    python tools/validate_monitoring.py --only seen
"""

import argparse
import math
import sys
from collections.abc import Iterator

import numpy as np
from scipy import special

from safecal import bernoulli
from safecal.monitor import Monitor
from safecal.monitor.evidence import blocks, log_mean

ALPHA = 0.05
ROWS = 10_000  # of a calibrated stream
RUN_LENGTH = 10_000
BEFORE = 2000  # calibrated rows before the change
WINDOWS = (200, 500, 1000, 2000)
STEP = 20  # rows between two looks of a peer
BINS = 10
LONGEST = 6000  # rows in which a fault since the start is looked for
# What happens, as a function of the logits: where they lie, slope, shift.
FAULTS = (
    ("shifted by +1/4", 0.0, 2.0, 1.0, 0.25),
    ("shifted by +1/2", 0.0, 2.0, 1.0, 0.5),
    ("shifted by -1/2", 0.0, 2.0, 1.0, -0.5),
    ("shifted by +1", 0.0, 2.0, 1.0, 1.0),
    ("rare, shifted by +1/2", -4.0, 1.0, 1.0, 0.5),
    ("rare, shifted by -1", -4.0, 1.0, 1.0, -1.0),
    ("1.5 times too large", 0.0, 2.0, 1 / 1.5, 0.0),
    ("twice too large", 0.0, 2.0, 0.5, 0.0),
    ("0.7 times as large as they should be", 0.0, 2.0, 1 / 0.7, 0.0),
    ("1.5 times too large, shifted by +1/2", 0.0, 2.0, 1 / 1.5, 0.5),
)


def stream(
    rng: np.random.Generator,
    rows: int,
    spread: float = 2.0,
    centre: float = 0.0,
    slope: float = 1.0,
    shift: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes of a model, and its logits; it is calibrated unless what happens has another slope or a shift."""
    z = rng.normal(centre, spread, rows)
    return (rng.random(rows) < special.expit(slope * z + shift)).astype(np.int64), z


def first_alarm(y: np.ndarray, z: np.ndarray, kind: str, **settings: object) -> float:
    """Return the row of the first alarm of a kind; infinite where there is none."""
    monitor = Monitor(**settings)  # type: ignore[arg-type]
    rows = [alarm.row for alarm in monitor.update(y, logits=z) if alarm.kind == kind]
    return min(rows, default=math.inf)


def temperatures_alone(y: np.ndarray, z: np.ndarray) -> float:
    """Return the first row at which the evidence of over- or under-confidence, at half of alpha each, is enough."""
    (block,) = blocks(bernoulli(y, logits=z))
    both = [log_mean(np.cumsum(logs, axis=1)) for logs in (block.over, block.under)]
    hit = np.maximum(*both) >= math.log(2.0 / ALPHA)
    return float(hit.argmax()) if hit.any() else math.inf


def peeked_z(y: np.ndarray, z: np.ndarray) -> float:
    """Return the first row, from the thirtieth on, at which the two-sided z-test of all rows so far rejects."""
    p = special.expit(z)
    excess, varentropy = (p - y) * z, p * (1.0 - p) * z * z
    score = np.abs(np.cumsum(excess)) / np.sqrt(np.cumsum(varentropy))
    hit = score[30:] > special.ndtri(1.0 - ALPHA / 2.0)
    return 30 + float(hit.argmax()) if hit.any() else math.inf


def window_statistic(y: np.ndarray, z: np.ndarray, window: int, statistic: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of sliding windows, and the ECE or the mean log-loss in each."""
    p = special.expit(z)
    ends = np.arange(window, len(y) + 1, STEP)
    if statistic == "NLL":
        total = np.concatenate([[0.0], np.cumsum(np.logaddexp(0.0, np.where(y == 1, -z, z)))])
        return ends, (total[ends] - total[ends - window]) / window
    gap = np.zeros((len(y) + 1, BINS))
    gap[np.arange(len(y)) + 1, np.minimum((p * BINS).astype(int), BINS - 1)] = p - y
    total = np.cumsum(gap, axis=0)
    return ends, np.abs(total[ends] - total[ends - window]).sum(axis=1) / window


def first_above(ends: np.ndarray, values: np.ndarray, limit: float) -> float:
    hit = values > limit
    return float(ends[hit.argmax()]) if hit.any() else math.inf


def run_length(first: np.ndarray, cap: int) -> float:
    """Estimate the mean of run lengths that were watched for so many rows at most."""
    alarms = (first <= cap).sum()
    return float(np.minimum(first, cap).sum() / alarms) if alarms else math.inf


def limit_for(paths: list[tuple[np.ndarray, np.ndarray]], cap: int) -> float:
    """Return the limit of a peer under which its average run length is RUN_LENGTH."""
    low, high = 0.0, max(float(values.max()) for _, values in paths)
    for _ in range(40):
        middle = 0.5 * (low + high)
        length = run_length(np.array([first_above(*path, middle) for path in paths]), cap)
        low, high = (middle, high) if length < RUN_LENGTH else (low, middle)
    return high


def false_alarms(streams: int) -> Iterator[str]:
    yield f"## False alarms of {streams} calibrated streams of {ROWS} rows, looked at after every row"
    yield ""
    yield "| method | logits | promised | alarms | of streams |"
    yield "|---|---|---:|---:|---:|"
    for centre, spread in ((0.0, 2.0), (-4.0, 1.0)):
        rng = np.random.default_rng(1)
        firsts: dict[str, list[float]] = {"e-process, four directions": [], "z-test at every row": []}
        for _ in range(streams):
            y, z = stream(rng, ROWS, spread, centre)
            firsts["e-process, four directions"].append(first_alarm(y, z, "since the start", alpha=ALPHA))
            firsts["z-test at every row"].append(peeked_z(y, z))
        for name, first in firsts.items():
            count = int(np.isfinite(first).sum())
            share = f"{100 * count / streams:.1f} %"
            yield f"| {name} | N({centre:.0f}, {spread:.0f}²) | {100 * ALPHA:.0f} % | {count} | {share} |"


def seen(streams: int) -> Iterator[str]:
    yield f"## Rows until the alarm since the start, {streams} streams of {LONGEST} rows"
    yield ""
    yield "The fault is there from the first row on. Beside it, what temperatures alone see, at half of `alpha` each. A"
    yield "dash: most streams are never seen to be wrong. Rare: logits N(-4, 1²), events of about 3 %."
    yield ""
    yield "| logits | median | seen | temperatures alone: median | seen |"
    yield "|---|---:|---:|---:|---:|"
    for name, centre, spread, slope, shift in FAULTS:
        rng = np.random.default_rng(4)
        four, two = [], []
        for _ in range(streams):
            y, z = stream(rng, LONGEST, spread, centre, slope, shift)
            four.append(first_alarm(y, z, "since the start", alpha=ALPHA, run_length=1e300) + 1.0)
            two.append(temperatures_alone(y, z) + 1.0)
        cells = []
        for first in (np.array(four), np.array(two)):
            middle = float(np.median(np.where(np.isfinite(first), first, 1e9)))
            cells += ["-" if middle > LONGEST else f"{middle:.0f}", f"{100 * np.isfinite(first).mean():.0f} %"]
        yield f"| {name} | {' | '.join(cells)} |"


def run_lengths(streams: int) -> Iterator[str]:
    yield f"## Rows until a false alarm of the detector, {streams} calibrated streams"
    yield ""
    yield "Watched for at most twenty times the promise."
    yield ""
    yield "| form | looks for | logits | promised | measured |"
    yield "|---|---|---|---:|---:|"
    for spread in (2.0, 6.0):
        for form in ("shiryaev-roberts", "cusum"):
            for detect, promised in [(detect, n) for detect in ("over", "both") for n in (200, 1000)]:
                if detect == "both" and spread != 2.0:
                    continue
                rng = np.random.default_rng(2)
                cap = 20 * promised
                first = [
                    first_alarm(*stream(rng, cap, spread), "change", run_length=promised, form=form, detect=detect)
                    for _ in range(streams)
                ]
                length = run_length(np.array(first) + 1.0, cap)
                shown = "none in all" if math.isinf(length) else f"{length:,.0f}".replace(",", " ")
                yield f"| {form} | {detect} | N(0, {spread:.0f}²) | {promised} | {shown} |"


def delays(streams: int) -> Iterator[str]:
    yield f"## Rows from the change to the alarm, {streams} streams"
    yield ""
    yield f"The change comes after {BEFORE} calibrated rows. Every method has at most one false alarm in {RUN_LENGTH}"
    yield "rows: ours promises it, the limits of the others were tuned to it on calibrated streams. Those with an alarm"
    yield "before the change are left out; their share is given. The windows slide, and are looked at every 20 rows."
    yield ""
    yield "| method | logits × 1.5: median | mean | logits × 3: median | mean | too early |"
    yield "|---|---:|---:|---:|---:|---:|"
    rng = np.random.default_rng(3)
    cap = 4 * RUN_LENGTH
    calm = [stream(rng, cap) for _ in range(max(streams // 3, 20))]
    peers = [(statistic, window) for statistic in ("ECE", "NLL") for window in WINDOWS]
    limits = {}
    for statistic, window in peers:
        paths = [window_statistic(y, z, window, statistic) for y, z in calm]
        limits[statistic, window] = limit_for(paths, cap)
    methods = [("detector, Shiryaev-Roberts", "shiryaev-roberts"), ("detector, CUSUM", "cusum")]
    rows = {name: [] for name, _ in methods} | {f"{s} of {w} rows": [] for s, w in peers}
    early = dict.fromkeys(rows, 0)
    for factor, length in ((1.5, 12_000), (3.0, 4000)):
        firsts = {name: [] for name in rows}
        for _ in range(streams):
            y, z = stream(rng, BEFORE + length)
            z[BEFORE:] *= factor
            for name, form in methods:
                firsts[name].append(first_alarm(y, z, "change", run_length=RUN_LENGTH, form=form) + 1.0)
            for s, w in peers:
                firsts[f"{s} of {w} rows"].append(first_above(*window_statistic(y, z, w, s), limits[s, w]))
        for name, first in firsts.items():
            wait = np.array(first) - BEFORE
            early[name] += int((wait <= 0).sum())
            wait = np.minimum(wait[wait > 0], length)
            rows[name] += [f"{np.median(wait):.0f}", f"{wait.mean():.0f}"]
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(cells)} | {50 * early[name] / streams:.1f} % |"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--only", choices=("false_alarms", "seen", "run_lengths", "delays"), help="one of the tables")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    tables = {
        "false_alarms": false_alarms(2000 // part),
        "seen": seen(400 // part),
        "run_lengths": run_lengths(500 // part),
        "delays": delays(900 // part),
    }
    for name, table in tables.items():
        if options.only not in (None, name):
            continue
        for line in table:
            print(line, flush=True)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
