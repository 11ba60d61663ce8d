"""However the same predictions are spelled, they say the same: what holds for one spelling holds for all."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import softmax

import safecal
from safecal.families.density import Density

from .cases import BINS, DENSITIES, FAMILIES, FIRST, PARTITIONED, Columns, _clouds, metrics_of, same, scale

N = 200


def _binary(rng: np.random.Generator) -> Columns:
    p = rng.random(N)
    return {"y_true": (rng.random(N) < p).astype(int), "y_prob": p}


def _many(rng: np.random.Generator, classes: int) -> Columns:
    return {"y_true": rng.integers(0, classes, N), "y_prob": softmax(rng.normal(0.0, 2.0, (N, classes)), axis=1)}


def _states(rng: np.random.Generator, d: int) -> Columns:
    return {"x_true": rng.normal(0.0, 2.0, (N, d)), "mean": rng.normal(size=(N, d))}


def _log_odds(rng: np.random.Generator) -> tuple[Columns, Columns]:
    z = rng.normal(0.0, 2.0, N)
    y = rng.integers(0, 2, N)
    return {"y_true": y, "logits": z}, {"y_true": y, "y_prob": safecal.bernoulli(y, logits=z).score().predicted}


def _clipped(rng: np.random.Generator) -> tuple[Columns, Columns]:
    columns = _binary(rng)
    return columns, columns | {"y_prob": np.clip(columns["y_prob"], 0.01, 0.99)}


def _class_logits(rng: np.random.Generator) -> tuple[Columns, Columns]:
    z, y = rng.normal(0.0, 2.0, (N, 3)), rng.integers(0, 3, N)
    return {"y_true": y, "logits": z}, {"y_true": y, "y_prob": softmax(z, axis=1)}


def _clipped_classes(rng: np.random.Generator) -> tuple[Columns, Columns]:
    columns = _many(rng, 3)
    moved = np.clip(columns["y_prob"], 0.01, 0.99)
    return columns, columns | {"y_prob": moved / moved.sum(axis=1, keepdims=True)}


def _std(rng: np.random.Generator) -> tuple[Columns, Columns]:
    wide = _states(rng, 1)
    std = np.exp(rng.normal(size=N))
    flat = {name: values[:, 0] for name, values in wide.items()}
    return flat | {"std": std}, wide | {"cov": np.square(std)[:, None, None]}


def _shared(matrix: np.ndarray) -> Callable[[np.random.Generator], tuple[Columns, Columns]]:
    def make(rng: np.random.Generator) -> tuple[Columns, Columns]:
        columns = _states(rng, 2)
        return columns, columns | {"cov": np.tile(matrix, (N, 1, 1))}

    return make


def _chol(rng: np.random.Generator) -> tuple[Columns, Columns]:
    columns = _states(rng, 2)
    factor = np.tril(rng.normal(0.0, 0.5, (N, 2, 2))) + np.eye(2)
    return columns | {"chol": factor}, columns | {"cov": factor @ factor.transpose(0, 2, 1)}


def _particles(rng: np.random.Generator) -> tuple[Columns, Columns]:
    wide = _states(rng, 1)
    flat = {name: values[:, 0] for name, values in wide.items()}
    std = np.exp(rng.normal(size=N))
    clouds = _clouds(flat["mean"], std)
    variance = np.square(clouds - clouds.mean(axis=1, keepdims=True)).mean(axis=1)
    return flat | {"std": std}, wide | {"mean": clouds.mean(axis=1)[:, None], "cov": variance[:, None, None]}


# spelling -> (the first spelling of its family, how to make the columns of both)
SPELLINGS: dict[str, tuple[str, Callable[[np.random.Generator], tuple[Columns, Columns]]]] = {
    "bernoulli logits": ("bernoulli", _log_odds),
    "bernoulli clipped": ("bernoulli", _clipped),
    "categorical logits": ("categorical 4", _class_logits),
    "categorical clipped": ("categorical 4", _clipped_classes),
    "gaussian std": ("gaussian cov", _std),
    "gaussian var": ("gaussian cov", _shared(np.diag([0.5, 30.0]))),
    "gaussian chol": ("gaussian cov", _chol),
    "gaussian precision": ("gaussian cov", _shared(np.linalg.inv([[2.0, 0.5], [0.5, 1.0]]))),
    "density by moments of particles": ("gaussian cov", _particles),
}


def _agree(scored: object, wanted: object) -> None:
    """Hold every number of two results of one kind equal, to nine digits of the sizes they are made of."""
    for field in dataclasses.fields(wanted):  # type: ignore[arg-type]
        a, b = getattr(scored, field.name), getattr(wanted, field.name)
        if b is None or isinstance(b, str):
            assert a == b, field.name
        else:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=field.name)


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_says_the_same(name: str, rng: np.random.Generator) -> None:
    first, make = SPELLINGS[name]
    assert first in FIRST
    columns, others = make(rng)
    predictions, wanted = FAMILIES[name].make(columns), FAMILIES[first].make(others)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], N)
    assert type(predictions) is type(wanted)
    assert (predictions.family, predictions.dimension, predictions.n) == (wanted.family, wanted.dimension, wanted.n)
    _agree(predictions.score(), wanted.score())
    for w in (None, weight):
        _agree(predictions.summary(w), wanted.summary(w))
    for beta in (0.5, 2.0):
        np.testing.assert_allclose(predictions.log_partition(beta), wanted.log_partition(beta), rtol=1e-10, atol=1e-10)
    # There are no other rules for an entropy without bounds.
    for rule in BINS if FAMILIES[name].classes else ("infinite edges", "quantile entropy"):
        a, b = (p.table(**BINS[rule], sample_weight=weight) for p in (predictions, wanted))
        assert (a.name, a.top_label) == (b.name, b.top_label), rule
        np.testing.assert_allclose(a.bins.edges, b.bins.edges, rtol=1e-12, atol=1e-12)
        for one, other in zip(a.summaries, b.summaries, strict=True):
            _agree(one, other)
    for metric, read in metrics_of(name).items():
        values = read(FAMILIES[name], columns, weight), read(FAMILIES[first], others, weight)
        assert same(*values, 1e3 * scale(FAMILIES[name], columns)), metric


@pytest.mark.parametrize("name", [name for name in DENSITIES if name not in SPELLINGS])
def test_a_density_is_its_columns_however_they_were_found(name: str, rng: np.random.Generator) -> None:
    state = {"x_true": rng.normal(size=9), "mean": rng.uniform(1.0, 3.0, 9), "std": rng.uniform(0.5, 2.0, 9)}
    if name == "density of counts":
        state = {"x_true": rng.integers(0, 9, 9), "mean": state["mean"]}
    density = FAMILIES[name].make(state)
    assert type(density) is Density
    scored = density.score()
    names = ("excess", "varentropy", "third_cumulant", "surprisal", "entropy", "numerical_variance")
    for column in names:
        assert getattr(scored, column) is None or np.array_equal(getattr(scored, column), getattr(density, column))
    assert (density.integral is not None) == (name in PARTITIONED)


def test_every_spelling_is_held() -> None:
    assert {*FIRST, *SPELLINGS, *DENSITIES} == set(FAMILIES)
