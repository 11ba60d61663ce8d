"""One dictionary of families, one of metrics, one of bins: the laws run over them.

A family here is a way to build predictions from columns, so that rows can be split, repeated and put in any order.
The laws of rows run over every spelling; those of sums over one spelling of each family, to which `test_spellings.py`
holds the others.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import lambertw

import safecal
from safecal import Bins, Predictions, Scored, Summary
from safecal.families.density import Density
from safecal.families.mixtures import gaussian_mixture, particles

Columns = dict[str, np.ndarray]
RTOL = 1e-12
TINY = 2.0**-1022  # the smallest normal float: below it, numbers have fewer than 12 digits


def examples(count: int) -> settings:
    """Ask for so many examples, or for as many as the profile allows: the fast tier takes few."""
    return settings(max_examples=min(count, settings.default.max_examples))


@dataclass(frozen=True)
class Family:
    """How to draw rows, and how to make predictions of them."""

    build: Callable[..., Predictions]
    names: tuple[str, ...]
    row: st.SearchStrategy[tuple[Any, ...]]
    fixed: dict[str, Any] = field(default_factory=dict)
    outcomes: int | None = None  # how many there are; None when they are continuous
    least: float = -math.inf  # the lower bound of the excess
    partition: bool = True  # whether the log-partition function exists

    def columns(self, rows: list[tuple[Any, ...]]) -> Columns:
        return {name: np.array(values) for name, values in zip(self.names, zip(*rows, strict=True), strict=True)}

    def make(self, columns: Columns) -> Predictions:
        return self.build(**columns, **self.fixed)

    @property
    def classes(self) -> bool:
        return self.outcomes is not None


def take(columns: Columns, index: Any) -> Columns:
    return {name: values[index] for name, values in columns.items()}


def size(columns: Columns) -> int:
    return len(next(iter(columns.values())))


_label = st.integers(0, 1)
_special = st.sampled_from([0.0, 1.0, 0.5, 0.3, 0.7, 1e-300, 5e-324, 1e-9, 1 - 2**-53, 1 - 1e-9])
_probability = st.one_of(_special, st.floats(0.0, 1.0))
_logit = st.one_of(st.sampled_from([0.0, -0.0, 1e-9, 40.0, -745.0, 800.0]), st.floats(-50.0, 50.0))
_real = st.floats(-100.0, 100.0)
_positive = st.floats(1e-3, 1e3)


def _normalised(parts: list[float]) -> np.ndarray:
    return np.array(parts) / math.fsum(parts)


def _simplex(classes: int) -> st.SearchStrategy[np.ndarray]:
    part = st.one_of(st.sampled_from([0.0, 1.0, 1e-12]), st.floats(1e-6, 1.0))
    return st.lists(part, min_size=classes, max_size=classes).filter(any).map(_normalised)


def _logits(classes: int) -> st.SearchStrategy[list[float]]:
    one = st.one_of(_logit, st.just(-math.inf))
    return st.lists(one, min_size=classes, max_size=classes).filter(lambda z: max(z) > -math.inf)


def _covariance(parts: tuple[float, float, float]) -> np.ndarray:
    a, b, c = parts
    factor = np.array([[a, 0.0], [c, b]])
    return factor @ factor.T


def _factor(parts: tuple[float, float, float]) -> np.ndarray:
    a, b, c = parts
    return np.array([[a, 0.0], [c, b]])


_triple = st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.floats(-10.0, 10.0))
_pair = st.lists(_real, min_size=2, max_size=2)


def _least(classes: int) -> float:
    """The smallest excess there is over K classes, ``-W((K - 1)/e)``."""
    return -float(lambertw((classes - 1) / math.e).real)


FAMILIES: dict[str, Family] = {
    "bernoulli": Family(
        safecal.bernoulli, ("y_true", "y_prob"), st.tuples(_label, _probability), outcomes=2, least=_least(2)
    ),
    "bernoulli logits": Family(
        safecal.bernoulli,
        ("y_true", "logits"),
        st.tuples(_label, st.one_of(_logit, st.sampled_from([math.inf, -math.inf]))),
        outcomes=2,
        least=_least(2),
    ),
    "bernoulli clipped": Family(
        safecal.bernoulli,
        ("y_true", "y_prob"),
        st.tuples(_label, _probability),
        {"clip": 0.01},
        outcomes=2,
        least=_least(2),
    ),
    "categorical 2": Family(
        safecal.categorical, ("y_true", "y_prob"), st.tuples(_label, _simplex(2)), outcomes=2, least=_least(2)
    ),
    "categorical 4": Family(
        safecal.categorical,
        ("y_true", "y_prob"),
        st.tuples(st.integers(0, 3), _simplex(4)),
        outcomes=4,
        least=_least(4),
    ),
    "categorical logits": Family(
        safecal.categorical,
        ("y_true", "logits"),
        st.tuples(st.integers(0, 2), _logits(3)),
        outcomes=3,
        least=_least(3),
    ),
    "categorical clipped": Family(
        safecal.categorical,
        ("y_true", "y_prob"),
        st.tuples(st.integers(0, 2), _simplex(3)),
        {"clip": 0.01},
        outcomes=3,
        least=_least(3),
    ),
    "gaussian std": Family(safecal.gaussian, ("x_true", "mean", "std"), st.tuples(_real, _real, _positive), least=-0.5),
    "gaussian var": Family(
        safecal.gaussian, ("x_true", "mean"), st.tuples(_pair, _pair), {"var": [0.5, 30.0]}, least=-1.0
    ),
    "gaussian cov": Family(
        safecal.gaussian,
        ("x_true", "mean", "cov"),
        st.tuples(_pair, _pair, _triple.map(_covariance)),
        least=-1.0,
    ),
    "gaussian chol": Family(
        safecal.gaussian, ("x_true", "mean", "chol"), st.tuples(_pair, _pair, _triple.map(_factor)), least=-1.0
    ),
    "gaussian precision": Family(
        safecal.gaussian,
        ("x_true", "mean"),
        st.tuples(_pair, _pair),
        {"precision": [[2.0, 0.5], [0.5, 1.0]]},
        least=-1.0,
    ),
}


def _normal(x_true: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Predictions:
    return safecal.density(x_true, stats.norm(mean, std))


def _poisson(x_true: np.ndarray, mean: np.ndarray) -> Predictions:
    return safecal.density(x_true, stats.poisson(mean))


# Draws that depend on nothing but the row and the number of the draw, so that rows can be split and put in any order.
_DRAWS = stats.norm.ppf((np.arange(16) + 0.5) / 16)


def _drawn(x_true: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Predictions:
    calls = itertools.count()
    return safecal.density(
        x_true,
        log_density=lambda x: -0.5 * ((x - mean) / std) ** 2,
        sampler=lambda rng: mean + std * _DRAWS[next(calls) % 16],
        draws=16,
        rng=0,
    )


FAMILIES |= {
    "density": Family(_normal, ("x_true", "mean", "std"), st.tuples(_real, _real, _positive), least=-0.5),
    "density of counts": Family(_poisson, ("x_true", "mean"), st.tuples(st.integers(0, 30), st.floats(0.1, 20.0))),
    "density by draws": Family(
        _drawn, ("x_true", "mean", "std"), st.tuples(_real, _real, _positive), least=-0.5, partition=False
    ),
}


def _rows_of_a_mixture(x_true: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Predictions:
    """Make each row by itself, with draws that depend on nothing but the row."""
    parts = []
    for x, m, s in zip(x_true, mean, std, strict=True):
        seed = np.frombuffer(np.array([x, m, s], dtype=np.float64).tobytes(), dtype=np.uint32)
        parts.append(gaussian_mixture([x], [0.3, 0.7], [m, m + 2.0 * s], std=s, draws=8, rng=seed))
    names = ("excess", "varentropy", "third_cumulant", "surprisal", "entropy", "numerical_variance")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Density(**columns, method="mixture, draws", draws=8, components=1)


def _clouds(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    return mean[:, None] + std[:, None] * stats.norm.ppf((np.arange(40) + 0.5) / 40)


def _matched(x_true: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Predictions:
    return particles(x_true, _clouds(mean, std))


def _neighbours(x_true: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Predictions:
    return particles(x_true, _clouds(mean, std), method="neighbours", neighbours=3)


_state = st.tuples(_real, _real, _positive)
FAMILIES |= {
    "density of a mixture": Family(_rows_of_a_mixture, ("x_true", "mean", "std"), _state, partition=False),
    "density by neighbours": Family(_neighbours, ("x_true", "mean", "std"), _state, partition=False),
    "density by moments of particles": Family(_matched, ("x_true", "mean", "std"), _state, least=-0.5),
}

CLASSIFIERS = [name for name, family in FAMILIES.items() if family.classes]
STATES = [name for name in FAMILIES if name.startswith("gaussian")]
DENSITIES = [name for name in FAMILIES if name.startswith("density")]
PARTITIONED = [name for name, family in FAMILIES.items() if family.partition]

# One spelling of each family. Two classes have a Brier score of their own, and what is drawn has an error and no
# log-partition function: each counts as a family.
FIRST = ["bernoulli", "categorical 2", "categorical 4", "gaussian cov", "density", "density by draws"]
FIRST_CLASSIFIERS = [name for name in FIRST if name in CLASSIFIERS]


def rows_of(name: str, least: int = 1, most: int = 25) -> st.SearchStrategy[Columns]:
    family = FAMILIES[name]
    return st.lists(family.row, min_size=least, max_size=most).map(family.columns)


def weights_of(n: int, *, zeros: bool = True) -> st.SearchStrategy[np.ndarray]:
    one = st.one_of(st.sampled_from([0.0, 1.0, 2.0] if zeros else [1.0, 2.0]), st.floats(0.05, 20.0))
    return st.lists(one, min_size=n, max_size=n).filter(any).map(np.array)


# The bin rules, by what `ece` and `evaluate` take. Quantile bins come from the rows, so they are not in the laws that
# repeat rows.
FIXED_BINS: dict[str, dict[str, Any]] = {
    "10 uniform": {"bins": 10},
    "1 uniform": {"bins": 1},
    "37 uniform": {"bins": 37},
    "confidence": {"bins": 7, "bin_on": "confidence"},
    "entropy": {"bins": 5, "bin_on": "entropy"},
    "edges": {"bins": Bins.from_edges([0.0, 0.3, 0.5, 0.9, 1.0])},
    "infinite edges": {"bins": Bins.from_edges([-math.inf, 0.3, 0.7, math.inf]), "bin_on": "entropy"},
}
BINS = FIXED_BINS | {
    "quantile": {"bins": 4, "strategy": "quantile"},
    "quantile entropy": {"bins": 3, "strategy": "quantile", "bin_on": "entropy"},
}

Metric = Callable[[Family, Columns, np.ndarray | None], float]


def _of_summary(read: Callable[[Summary], float]) -> Metric:
    return lambda family, columns, w: read(family.make(columns).summary(w))


def _function(function: Callable[..., float], **options: Any) -> Metric:
    def read(family: Family, columns: Columns, w: np.ndarray | None) -> float:
        # Rows are drawn anyhow: where class 0 never happens, `labels` says that classes are numbered from 0 still.
        wide = next((v for k, v in columns.items() if k in ("y_prob", "logits") and v.ndim == 2), None)
        names = {} if wide is None else {"labels": range(wide.shape[1])}
        return function(**columns, **family.fixed, **options, **names, sample_weight=w)

    return read


# name -> (metric, the families it exists for)
METRICS: dict[str, tuple[Metric, list[str]]] = {
    "ecd": (_function(safecal.ecd), CLASSIFIERS),
    "nll": (_function(safecal.nll), CLASSIFIERS),
    "brier": (_function(safecal.brier), CLASSIFIERS),
    "nees": (_function(safecal.nees), STATES),
    "ecd of states": (_of_summary(lambda s: s.ecd), STATES + DENSITIES),
    "nll of states": (_of_summary(lambda s: s.nll), STATES + DENSITIES),
    "accuracy": (_of_summary(lambda s: s.accuracy), CLASSIFIERS),
    "bias": (_of_summary(lambda s: s.bias), CLASSIFIERS),
    "ecd of the possible": (_of_summary(lambda s: s.ecd_possible), list(FAMILIES)),
    **{f"ece, {name}": (_function(safecal.ece, **options), CLASSIFIERS) for name, options in FIXED_BINS.items()},
    **{f"esce, {name}": (_function(safecal.esce, **options), CLASSIFIERS) for name, options in FIXED_BINS.items()},
    "ece, over-confident": (_function(safecal.ece, side="overconfident"), CLASSIFIERS),
    "ece, under-confident": (_function(safecal.ece, side="underconfident"), CLASSIFIERS),
}


def metrics_of(name: str) -> dict[str, Metric]:
    return {metric: read for metric, (read, names) in METRICS.items() if name in names}


def terms(scored: Scored, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the term of each row in each sum of a Summary: slow and obvious."""
    n = len(scored)
    w = np.ones(n) if weight is None else weight
    possible = ~np.isposinf(scored.excess)
    e = np.where(possible, scored.excess, 0.0)
    zero = np.zeros(n)
    columns = {
        "weight": w,
        "weight_impossible": np.where(possible, 0.0, w),
        "weight2": np.where(possible, w**2, 0.0),
        "weight3": np.where(possible, w**3, 0.0),
        "sum_excess": w * e,
        "sum_excess_weight2": w**2 * e,
        "sum_excess_weight3": w**3 * e,
        "sum_excess2_weight2": w**2 * e**2,
        "sum_excess2_weight3": w**3 * e**2,
        "sum_excess3_weight3": w**3 * e**3,
        "sum_varentropy": np.where(possible, w * scored.varentropy, 0.0),
        "sum_varentropy_weight2": np.where(possible, w**2 * scored.varentropy, 0.0),
        "sum_third_cumulant_weight3": np.where(possible, w**3 * scored.third_cumulant, 0.0),
        "sum_numerical_variance_weight2": zero
        if scored.numerical_variance is None
        else np.where(possible, w**2 * scored.numerical_variance, 0.0),
    }
    if scored.entropy is not None:
        columns["sum_entropy"] = np.where(possible, w * scored.entropy, 0.0)
    for name in ("predicted", "observed", "confidence", "correct", "brier"):
        column = getattr(scored, name)
        if column is not None:
            columns[f"sum_{name}"] = w * column
    return columns


def assert_sums(summary: Summary, scored: Scored, weight: np.ndarray | None) -> None:
    """Hold each sum to the exact sum of its terms, within RTOL times the sum of their absolute values."""
    wanted = terms(scored, weight)
    assert summary.n == len(scored)
    assert summary.n_impossible == int(np.isposinf(scored.excess).sum())
    for f in fields(Summary):
        value = getattr(summary, f.name)
        if f.name in ("n", "n_impossible"):
            assert isinstance(value, int)
        elif f.name not in wanted:
            assert value is None, f.name
        else:
            column = wanted[f.name]
            assert abs(value - math.fsum(column)) <= RTOL * math.fsum(np.abs(column)) + TINY, f.name


def scale(family: Family, columns: Columns) -> float:
    """Return the size of the rows, to which the rounding of a mean is held."""
    scored = family.make(columns).score()
    parts = [np.abs(column) for column in (scored.excess, scored.surprisal, scored.entropy) if column is not None]
    return 1.0 + float(sum(np.where(np.isfinite(part), part, 0.0).max() for part in parts))


def same(a: float, b: float, size: float = 1.0) -> bool:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return (math.isnan(a) and math.isnan(b)) or a == b
    return abs(a - b) <= RTOL * size + TINY
