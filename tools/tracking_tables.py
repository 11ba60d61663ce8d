"""Make the tables and the picture of docs/tracking.md.

    python tools/tracking_tables.py                     # all of them, a few minutes; needs safecal[plot,stonesoup]
    python tools/tracking_tables.py --only mixtures     # or particles, experiment, seeds, inflation

Each table stands between two comments in the page, and is replaced. The same seeds give the same tables.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import special, stats

import safecal
from safecal.families import Predictions
from safecal.families.mixtures import gaussian_mixture, particles
from safecal.paper.tracking_filters import SETTINGS, Setting

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tracking.md"
PICTURE = ROOT / "docs" / "pictures" / "tracking.png"


def table(head: str, rows: list[str]) -> str:
    """Return a table in Markdown."""
    return "\n".join([head, "| --- " * (head.count("|") - 1) + "|", *rows])


# Gaussian mixtures


def entropy(w: np.ndarray, mean: np.ndarray, std: np.ndarray) -> tuple[float, float]:
    """Return entropy and varentropy of a mixture of one variable, by quadrature."""
    x = np.linspace(-60, 60, 48_001)
    log_f = special.logsumexp(np.log(w)[:, None] + stats.norm(mean[:, None], std[:, None]).logpdf(x), axis=0)
    integral = -np.trapezoid(np.exp(log_f) * log_f, x)
    return float(integral), float(np.trapezoid(np.exp(log_f) * np.square(log_f + integral), x))


def mixtures(rows: int = 20_000) -> str:
    """Compare error bars with the truth by quadrature, for two components that lie apart by more and more."""
    lines = []
    for apart in (0.0, 1.0, 2.0, 3.0, 4.0, 6.0):
        w, mean, std = np.array([0.6, 0.4]), np.array([0.0, apart]), np.array([1.0, 0.7])
        truth, varentropy = entropy(w, mean, std)
        cells, errors = [], ""
        for draws in (16, 64, 256):
            scored = gaussian_mixture(np.zeros(rows), w, mean, std=std, draws=draws, rng=1).score()
            z = np.abs(scored.entropy - truth) / np.sqrt(scored.numerical_variance)
            cells.append(f"{100 * np.mean(z <= stats.t(draws - 1).ppf(0.975)):.1f} %")
            if draws == 64:
                errors = f"{scored.entropy.std():.4f} | {math.sqrt(varentropy / draws):.4f}"
        lines.append(f"| {apart:g} | {truth:.4f} | {' | '.join(cells)} | {errors} |")
    cover = " | ".join(f"95 % bars cover, {draws} draws" for draws in (16, 64, 256))
    head = f"| apart | entropy | {cover} | error of 64 draws | of plain draws |"
    return table(head, lines)


# Particles


class Cloud(NamedTuple):
    """Particles of a posterior that is known: truths, particles, weights, exact excess, and the log-density."""

    x: np.ndarray
    points: np.ndarray
    weight: np.ndarray
    exact: np.ndarray
    log_density: Callable[[np.ndarray], np.ndarray]


def to_banana(z: np.ndarray) -> np.ndarray:
    """Bend the plane: a standard normal becomes a banana; volumes shrink by 0.3."""
    return np.stack([z[..., 0], np.square(z[..., 0]) + 0.3 * z[..., 1]], axis=-1)


def straight(x: np.ndarray) -> np.ndarray:
    """Undo `to_banana`."""
    return np.stack([x[..., 0], (x[..., 1] - np.square(x[..., 0])) / 0.3], axis=-1)


def clouds(kind: str, temperature: float, rows: int, count: int, rng: np.random.Generator) -> Iterator[Cloud]:
    """Draw truths whose covariance is ``temperature`` times the posterior's, and weighted particles of the posterior.

    The posterior of a linear Kalman filter is a Gaussian of 4 dimensions; the banana is one of 2 dimensions, bent. In
    coordinates in which it is a standard normal, particles are drawn 1.2 times too wide, and weights make up for it.
    """
    d, width = (4, 1.2) if kind == "Kalman" else (2, 1.2)
    back = straight if kind == "banana" else (lambda x: x)
    place = to_banana if kind == "banana" else (lambda z: z)
    for start in range(0, rows, 100):
        n = min(100, rows - start)
        truth = math.sqrt(temperature) * rng.normal(size=(n, d))
        z = width * rng.normal(size=(n, count, d))
        weight = np.exp(-0.5 * np.square(z).sum(axis=-1) * (1.0 - width**-2))
        weight /= weight.sum(axis=1, keepdims=True)
        exact = 0.5 * (np.square(truth).sum(axis=1) - d)
        yield Cloud(place(truth), place(z), weight, exact, lambda x: -0.5 * np.square(back(x)).sum(axis=1))


METHODS: dict[str, Callable[[Cloud], Predictions]] = {
    "moments": lambda c: particles(c.x, c.points, c.weight),
    "neighbours, k = 1": lambda c: particles(c.x, c.points, c.weight, method="neighbours", neighbours=1, rng=0),
    "neighbours, k = 10": lambda c: particles(c.x, c.points, c.weight, method="neighbours", neighbours=10, rng=0),
    "log-density": lambda c: particles(c.x, c.points, c.weight, log_density=c.log_density),
}


def particle_table(rows: int = 2000, count: int = 2000) -> str:
    """Measure bias, error and null variance of each way to score particles."""
    lines = []
    for kind in ("Kalman", "banana"):
        for temperature in (1.0, 2.0, 4.0):
            excesses: dict[str, list[np.ndarray]] = {name: [] for name in METHODS}
            exact: list[np.ndarray] = []
            claimed: dict[str, float] = dict.fromkeys(METHODS, 0.0)
            for cloud in clouds(kind, temperature, rows, count, np.random.default_rng(3)):
                exact.append(cloud.exact)
                for name, method in METHODS.items():
                    scored = method(cloud).score()
                    noise = 0.0 if scored.numerical_variance is None else scored.numerical_variance
                    excesses[name].append(scored.excess)
                    claimed[name] += float((scored.varentropy + noise).sum()) / rows
            truth = np.concatenate(exact)
            for name in METHODS:
                excess = np.concatenate(excesses[name])
                error = excess - truth
                ratio = f"{excess.var() / claimed[name]:.2f}" if temperature == 1.0 else ""
                lines.append(
                    f"| {kind} | {temperature:g} | {truth.mean():+.2f} | {name} | {excess.mean():+.2f} | "
                    f"{error.mean():+.2f} | {np.sqrt(np.square(error).mean()):.2f} | {ratio} |"
                )
    head = "| posterior | true T | exact ECD | method | ECD | bias | rmse of a row | variance over the claimed one |"
    return table(head, lines)


# The experiment


def experiment() -> str:
    """Run both settings as the command does, and draw the picture of the first."""
    import matplotlib as mpl

    from safecal.paper.tracking import run_tracking
    from safecal.paper.tracking_views import tracking_figure, tracking_text

    mpl.use("agg")
    parts = []
    for name in ("standard", "hard"):
        study = run_tracking(name)
        parts.append(f"```text\n{tracking_text(study)}\n```")
        if name == "standard":
            figure = tracking_figure(study)
            figure.savefig(PICTURE, dpi=100, bbox_inches="tight", metadata={"Software": None})
    return "\n\n".join(parts)


def seeds(count: int = 10, runs: int = 100) -> str:
    """Repeat the Kalman filters with other seeds: how much do 100 runs tell?"""
    from safecal.paper.tracking import run_tracking

    lines = []
    for setting in ("standard", "hard"):
        by_filter: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(count):
            study = run_tracking(setting, runs=runs, seed=seed, filters=["EKF", "UKF", "KF"], inflated=False)
            for name, f in study.filters.items():
                c = f.consistency()
                values = (c.ecd, c.median_run, float(f.nees[:, 0].mean()), 100 * c.share_inside, float(f.nis.mean()))
                by_filter.setdefault(name, []).append(values)
        for name, values in by_filter.items():
            spans = [f"{min(v):.3g} to {max(v):.3g}" for v in zip(*values, strict=True)]
            mean = np.mean([v[0] for v in values])
            lines.append(f"| {setting} | {name} | {mean:+.2f} | {' | '.join(spans)} |")
    head = "| setting | filter | mean ECD of all | ECD | median run | NEES at step 1 | % of steps in the band | NIS |"
    return table(head, lines)


def extended(setting: Setting, runs: int, seed: int) -> np.ndarray:
    """Return NEES of the extended Kalman filter in many runs at once, (runs, steps): Stone Soup's, written out."""
    rng = np.random.default_rng(seed)
    f = np.kron(np.eye(2), [[1.0, 1.0], [0.0, 1.0]])
    q = np.kron(np.eye(2), setting.q * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]]))
    x = rng.normal(setting.mean, setting.std, (runs, 4))
    m = np.broadcast_to(setting.mean, (runs, 4))
    p = np.broadcast_to(np.diag(np.square(setting.std)), (runs, 4, 4))
    out = []
    for _ in range(setting.steps):
        x = x @ f.T + rng.normal(size=(runs, 4)) @ np.linalg.cholesky(q).T
        m, p = m @ f.T, f @ p @ f.T + q
        noise = rng.normal(size=(runs, 2)) * np.sqrt(np.diag(setting.noise))
        gap = noise + np.stack([np.arctan2(v[:, 2], v[:, 0]) for v in (x, m)], axis=1) @ [[1, 0], [-1, 0]]
        gap[:, 1] += np.hypot(x[:, 0], x[:, 2]) - np.hypot(m[:, 0], m[:, 2])
        gap[:, 0] = np.pi - np.mod(np.pi - gap[:, 0], 2 * np.pi)
        far, h = np.hypot(m[:, 0], m[:, 2]), np.zeros((runs, 2, 4))
        h[:, 0, 0], h[:, 0, 2] = -m[:, 2] / far**2, m[:, 0] / far**2
        h[:, 1, 0], h[:, 1, 2] = m[:, 0] / far, m[:, 2] / far
        s = h @ p @ h.transpose(0, 2, 1) + setting.noise
        gain = np.linalg.solve(s, h @ p).transpose(0, 2, 1)
        m = m + np.einsum("nij,nj->ni", gain, gap)
        p = p - gain @ s @ gain.transpose(0, 2, 1)
        error = x - m
        out.append(np.einsum("ni,ni->n", error, np.linalg.solve(p, error[..., None])[..., 0]))
    return np.stack(out, axis=1)


def inflation(repetitions: int = 100, runs: int = 100) -> str:
    """Fit safe temperatures to many sets of runs, and count how often the population stays over-confident."""
    lines = []
    for setting in SETTINGS.values():
        nees = extended(setting, (repetitions + 200) * runs, 5)
        population = nees[repetitions * runs :]
        step = np.tile(np.arange(setting.steps), runs)
        factors, one, by_step, buys = [], [], [], []
        for k in range(repetitions):
            x = np.zeros((runs * setting.steps, 4))
            x[:, 0] = np.sqrt(nees[k * runs : (k + 1) * runs].reshape(-1))
            fitted = safecal.SafeTemperature().fit_states(x, 0 * x, std=1.0, by=step)
            each = np.array([fitted.groups_[i].temperature for i in range(setting.steps)])
            factors.append(fitted.temperature_)
            one.append(population.mean() / fitted.temperature_ > 4)
            by_step.append((population / each).mean() > 4)
            buys.append([(population * (1 - 1 / t) - 4 * np.log(t)).mean() / 2 for t in (factors[-1], each)])
        low, middle, high = np.percentile(factors, [5, 50, 95])
        gain = np.median(buys, axis=0)
        lines.append(
            f"| {setting.name} | {population.mean() / 4:.3g} | {middle:.3g} ({low:.3g} to {high:.3g}) | "
            f"{100 * np.mean(one):.0f} % | {gain[0]:.2f} | {100 * np.mean(by_step):.0f} % | {gain[1]:.2f} |"
        )
    head = (
        "| setting | true factor | one safe factor, median (90 %) | still over-confident | nat it buys "
        "| by step: still over-confident | nat it buys |"
    )
    return table(head, lines)


TABLES: dict[str, Callable[[], str]] = {
    "mixtures": mixtures,
    "particles": particle_table,
    "experiment": experiment,
    "seeds": seeds,
    "inflation": inflation,
}


def markers(name: str) -> tuple[str, str]:
    """Return the comments around a table."""
    return f"<!-- tools/tracking_tables.py: {name} -->", f"<!-- end of {name} -->"


def replaced(page: str, name: str, content: str) -> str:
    """Return the page with another table."""
    begin, end = markers(name)
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def main() -> int:
    """Replace the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(TABLES), help="one of them")
    only = parser.parse_args().only
    for name, make in TABLES.items():
        if only in (None, name):
            PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), name, make()), encoding="utf-8")
            print(f"{name}: done", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
