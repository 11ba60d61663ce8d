"""Strange states, clouds, densities, runs and frames: a right answer, or one of safecal's own errors; nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal.errors import SafecalError

from .fuzzing import fuzz

STATES: list[Callable[[np.random.Generator, Any], Any]] = [
    lambda r, shape: r.normal(0, 1, shape), lambda r, shape: r.normal(0, 1e150, shape),
    lambda r, shape: np.zeros(shape),
    lambda r, shape: np.where(r.random(shape) < 0.1, np.nan, 1.0), lambda r, shape: np.full(shape, 1e-300),
    lambda r, shape: np.where(r.random(shape) < 0.1, np.inf, 1.0), lambda r, shape: r.integers(-3, 4, shape),
    lambda r, shape: r.normal(0, 1, shape).astype(np.float16), lambda r, shape: r.normal(0, 1, shape).astype(">f8"),
    lambda r, shape: r.normal(0, 1, shape).tolist(), lambda r, shape: r.normal(0, 1, shape).astype(complex),
    lambda r, shape: np.full(shape, "one"), lambda r, shape: None, lambda r, shape: 3.0, lambda r, shape: [],
]  # fmt: skip
SPREADS: list[Callable[[np.random.Generator, Any], Any]] = [
    lambda r, n: r.uniform(0.5, 2, n), lambda r, n: 1.5, lambda r, n: np.full(n, 1e-160),
    lambda r, n: np.full(n, 1e160),
    lambda r, n: np.zeros(n), lambda r, n: -np.ones(n), lambda r, n: np.full(n, np.nan),
    lambda r, n: np.full(n, np.inf),
    lambda r, n: np.full(n, 5e-324), lambda r, n: r.integers(1, 4, n), lambda r, n: None,
]  # fmt: skip


def _pick(rng: np.random.Generator, makers: Any, shape: Any, plain: float = 0.6) -> Any:
    return makers[0 if rng.random() < plain else int(rng.integers(len(makers)))](rng, shape)


def _agree(found: float, wanted: float) -> bool:
    if not math.isfinite(wanted) or abs(wanted) > 1e290:
        return True  # the slow formula has no digits left there
    return abs(found - wanted) <= 1e-7 * max(abs(wanted), 1.0)


def _excess(x: Any, mean: Any, std: Any) -> float:
    """Return the ECD of scalar Gaussians, by the textbook."""
    x, mean, std = (np.asarray(a, dtype=np.longdouble) for a in (x, mean, std))
    with np.errstate(all="ignore"):
        return float(np.mean((((x - mean) / std) ** 2 - 1) / 2))


def _call(rng: np.random.Generator) -> tuple[str, Callable[[], bool]]:
    n = int(rng.choice([0, 1, 3, 30], p=[0.05, 0.1, 0.25, 0.6]))
    x, mean, std = _pick(rng, STATES, n), _pick(rng, STATES, n, 0.8), _pick(rng, SPREADS, n)
    own = rng.normal(size=n), rng.uniform(0.5, 2, n) * rng.choice([1.0, 1e-100, 1e100])  # of functions of the user's

    def mixture() -> bool:
        centres, widths = np.asarray(mean)[..., None], np.asarray(std)[..., None]
        found = safecal.gaussian_mixture(x, np.ones(np.shape(centres)), centres, std=widths, rng=0).evaluate()
        return math.isfinite(found.ecd) or abs(_excess(x, mean, std)) > 1e290

    def cloud() -> bool:
        size = int(rng.choice([1, 2, 20, 200]))
        drawn = _pick(rng, STATES, (n, size, 1))
        found = safecal.particles(np.asarray(x)[:, None] if np.ndim(x) == 1 else x, drawn, rng=0).evaluate()
        return not math.isnan(found.ecd) and bool(repr(found))

    def density() -> bool:
        found = safecal.density(x, stats.norm(*own)).evaluate()
        return _agree(found.ecd, _excess(x, *own)) and bool(repr(found))

    def pair() -> bool:
        def log_density(at: Any) -> Any:
            return -0.5 * ((np.asarray(at) - own[0]) / own[1]) ** 2

        def sampler(r: np.random.Generator) -> Any:
            return own[0] + own[1] * r.normal(size=n)

        return bool(repr(safecal.density(x, log_density=log_density, sampler=sampler, rng=0).evaluate()))

    def consistency() -> bool:
        run, step = np.repeat(np.arange(max(n // 5, 1)), 5)[:n], np.tile(np.arange(5), max(n // 5, 1))[:n]
        if rng.random() < 0.2:
            step = rng.integers(0, 3, n)
        found = safecal.assess_consistency(safecal.gaussian(x, mean, std=std), run=run, step=step)
        return bool(repr(found))

    def frame() -> bool:
        from safecal.engines.frames import evaluate_frame

        library = pytest.importorskip(str(rng.choice(["polars", "pandas"])))
        try:
            table = library.DataFrame({"x": x, "m": mean, "s": std})
        except Exception:  # noqa: BLE001 - no such frame can be made
            raise SafecalError("no frame") from None
        found = evaluate_frame(table, x_true="x", mean="m", std="s")
        direct = safecal.gaussian(*(table[name].to_numpy() for name in "xm"), std=table["s"].to_numpy()).evaluate()
        return found.ecd == direct.ecd or math.isclose(found.ecd, direct.ecd, rel_tol=1e-12)

    def compared() -> bool:
        one, other = safecal.gaussian(x, mean, std=std), safecal.gaussian(x, *own[:1], std=own[1])
        return bool(repr(safecal.compare(one, other)))

    doors = {"mixture": mixture, "particles": cloud, "density": density, "log-density": pair}
    doors |= {"consistency": consistency, "frame": frame, "compare": compared}
    name = list(doors)[int(rng.integers(len(doors)))]
    return name, doors[name]


def test_a_few_strange_states_are_answered_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz(_call, 0, 60, capsys)


@pytest.mark.proof
@pytest.mark.no_cover
def test_strange_states_are_answered_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz(_call, 1, 1000, capsys)
