"""Weighted particles."""

import math
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import safecal
from safecal.errors import (
    CovarianceError,
    FormError,
    MissingValueError,
    NormalisationError,
    OptionError,
    RangeError,
    ShapeError,
)
from safecal.families.mixtures import particles

RNG = np.random.default_rng(9)
N, S, D = 12, 400, 3
CLOUD = RNG.normal(0, 1, (N, S, D)) * [1.0, 2.0, 0.5] + RNG.normal(0, 3, (N, 1, D))
WEIGHT = RNG.dirichlet(np.ones(S), N)
X = CLOUD.mean(axis=1) + RNG.normal(0, 1, (N, D))


def banana(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Draw points that are bent: the second coordinate follows the square of the first."""
    z = rng.normal(size=(*size, 2))
    return np.stack([z[..., 0], z[..., 0] ** 2 + 0.3 * z[..., 1]], axis=-1)


def test_moments_are_those_of_the_weighted_particles() -> None:
    predictions = particles(X, CLOUD, WEIGHT)
    mean = np.array([np.average(c, axis=0, weights=w) for c, w in zip(CLOUD, WEIGHT, strict=True)])
    cov = np.array([np.cov(c.T, ddof=0, aweights=w) for c, w in zip(CLOUD, WEIGHT, strict=True)])
    np.testing.assert_allclose(predictions.score().excess, safecal.gaussian(X, mean, cov=cov).score().excess, rtol=1e-9)
    assert repr(predictions) == "gaussian predictions: 12 rows (moment match of particles)"
    assert predictions.dimension == D


def test_weights_come_in_any_form_and_particles_row_by_row() -> None:
    wanted = particles(X, CLOUD, WEIGHT).score().excess
    again = [
        particles(X, CLOUD, log_weight=np.log(WEIGHT) + 700.0),
        particles(X, list(CLOUD), list(WEIGHT)),
        particles(X, (c for c in CLOUD), (w for w in WEIGHT)),
        particles(X, [c.tolist() for c in CLOUD], log_weight=[np.log(w) for w in WEIGHT]),
    ]
    for predictions in again:
        np.testing.assert_allclose(predictions.score().excess, wanted, rtol=1e-12)
    equal = particles(X, CLOUD).score().excess
    np.testing.assert_allclose(particles(X, CLOUD, np.full((N, S), 1 / S)).score().excess, equal, rtol=1e-12)


def test_clouds_may_differ_in_size(rng: np.random.Generator) -> None:
    sizes = rng.integers(50, S, N)
    excess = particles(X, [c[:s] for c, s in zip(CLOUD, sizes, strict=True)]).score().excess
    for i, s in enumerate(sizes):
        assert excess[i] == pytest.approx(particles(X[i : i + 1], CLOUD[i : i + 1, :s]).ecd, rel=1e-12)


def test_a_stream_of_clouds_is_never_held_together() -> None:
    def clouds() -> Iterator[np.ndarray]:
        rng = np.random.default_rng(0)
        for _ in range(50):
            yield rng.normal(size=(20_000, 4))

    tracemalloc.start()
    try:
        particles(np.zeros((50, 4)), clouds())
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20  # one cloud is 0.6 MB, all of them 32
    finally:
        tracemalloc.stop()


def test_scalar_states_are_states_of_one_dimension() -> None:
    for method in ("moments", "neighbours"):
        a = particles(X[:, 0], CLOUD[..., 0], WEIGHT, method=method, rng=0).score().excess
        b = particles(X[:, :1], CLOUD[..., :1], WEIGHT, method=method, rng=0).score().excess
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_components_that_matter_and_angles(rng: np.random.Generator) -> None:
    for method in ("moments", "neighbours"):
        a = particles(X, CLOUD, WEIGHT, mapping=[2, 0], method=method, rng=0).score().excess
        b = particles(X[:, [2, 0]], CLOUD[..., [2, 0]], WEIGHT, method=method, rng=0).score().excess
        np.testing.assert_allclose(a, b, rtol=1e-12)
        turns = 2 * math.pi * rng.integers(-2, 3, (N, S))
        near = 0.2 * (CLOUD - CLOUD.mean(axis=1, keepdims=True)) + [math.pi, 0.0, 0.0]
        x = 0.2 * (X - CLOUD.mean(axis=1)) + [math.pi, 0.0, 0.0]
        turned = near.copy()
        turned[..., 0] += turns
        c = particles(x, near, WEIGHT, method=method, rng=0).score().excess
        d = particles(x, turned, WEIGHT, angles=[0], method=method, rng=0).score().excess
        np.testing.assert_allclose(d, c, rtol=1e-8, atol=1e-8)


@pytest.mark.proof
def test_a_moment_match_has_mean_0_and_the_wrong_variance_where_the_posterior_is_bent() -> None:
    rng = np.random.default_rng(3)
    x, cloud = banana(rng, (4000,)), banana(rng, (1, 4000))
    excess = particles(x, np.broadcast_to(cloud, (4000, 4000, 2)).copy()[:, ::8]).score().excess
    assert abs(excess.mean()) < 5 * excess.std() / math.sqrt(4000)
    assert excess.var() > 3.0  # where the Gaussian it stands for has d / 2 = 1


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("weighted", [False, True])
def test_neighbours_have_the_null_distribution_they_claim_even_of_a_banana(weighted: bool) -> None:
    rng = np.random.default_rng(4)
    x, cloud = banana(rng, (1500,)), banana(rng, (1500, 300))
    weight = None
    if weighted:  # particles that are too wide, and weights that make up for it
        z = 1.3 * rng.normal(size=(1500, 900, 2))
        cloud = np.stack([z[..., 0], z[..., 0] ** 2 + 0.3 * z[..., 1]], axis=-1)
        weight = np.exp(-0.5 * np.square(z).sum(axis=-1) * (1.0 - 1.3**-2))
        weight /= weight.sum(axis=1, keepdims=True)
    scored = particles(x, cloud, weight, method="neighbours", neighbours=5, rng=0).score()
    z = scored.excess.sum() / math.sqrt((scored.varentropy + scored.numerical_variance).sum())
    assert abs(z) < 3.0
    ratio = scored.excess.var() / (scored.varentropy + scored.numerical_variance).mean()
    assert ratio == pytest.approx(1.0, abs=0.2)


@pytest.mark.proof
def test_neighbours_see_overconfidence_on_the_right_side() -> None:
    rng = np.random.default_rng(5)
    cloud = rng.normal(size=(300, 500, 2))
    over = particles(2.0 * rng.normal(size=(300, 2)), cloud, method="neighbours").ecd
    under = particles(0.5 * rng.normal(size=(300, 2)), cloud, method="neighbours").ecd
    assert over > 1.0
    assert under < -0.3
    assert repr(particles(X, CLOUD, method="neighbours", neighbours=3)) == (
        "density predictions: 12 rows (particles, 3 nearest neighbours)"
    )


def test_units_do_not_change_the_distances() -> None:
    units = np.array([1e-6, 1.0, 1e8])
    a = particles(X, CLOUD, WEIGHT, method="neighbours", rng=0).score().excess
    b = particles(X * units, CLOUD * units, WEIGHT, method="neighbours", rng=0).score().excess
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_the_posterior_density_needs_no_estimator() -> None:
    rng = np.random.default_rng(6)
    mean, n = rng.normal(size=(200, 2)), 200
    x, cloud = mean + rng.normal(size=(n, 2)), mean[:, None] + 1.5 * rng.normal(size=(n, 500, 2))
    square = np.square(cloud - mean[:, None]).sum(axis=-1)
    weight = np.exp(-square / 2 + square / 4.5)
    weight /= weight.sum(axis=1, keepdims=True)
    predictions = particles(x, cloud, weight, log_density=lambda at: 7.0 - np.square(at - mean).sum(axis=1) / 2)
    wanted = safecal.gaussian(x, mean, std=1.0).score()
    scored = predictions.score()
    error = scored.excess - wanted.excess
    assert np.std(error / np.sqrt(scored.numerical_variance)) == pytest.approx(1.0, abs=0.2)
    assert abs(error.mean()) < 0.02
    assert scored.varentropy.mean() == pytest.approx(1.0, rel=0.05)
    assert repr(predictions) == "density predictions: 200 rows (particles, log-density)"
    assert scored.entropy is None


def test_a_truth_beyond_every_particle_has_a_large_but_finite_excess() -> None:
    far = X + 1e6
    assert (particles(far, CLOUD, method="neighbours").score().excess > 20).all()


THIN = CLOUD.copy()
THIN[5, :, 2] = 1.0
COPIES = np.repeat(CLOUD[:, :20], 20, axis=1)
HEAVY = np.full((N, S), 0.1 / (S - 1))
HEAVY[:, 0] = 0.9
BAD = [
    (lambda: particles(X, THIN), CovarianceError,
     "`cloud` must spread in every direction; got particles that lie on a line or a plane at row 5 (1 of 12 rows).\n\n"
     "Hint: the particles have collapsed, or are fewer than components; `mapping=` keeps the components that matter."),
    (lambda: particles(X, CLOUD[:, :3]), CovarianceError,
     "`cloud` must spread in every direction; got particles that lie on a line or a plane at row 0 (12 of 12 rows).\n\n"
     "Hint: the particles have collapsed, or are fewer than components; `mapping=` keeps the components that matter."),
    (lambda: particles(X, COPIES, method="neighbours"), RangeError,
     "`cloud` must not hold more than 10 copies of one particle at row 0.\n\n"
     "Hint: resampling copies particles: pass those before it, with their weights; or move them afterwards."),
    (lambda: particles(X, CLOUD, HEAVY, method="neighbours"), RangeError,
     "`cloud` must allow 12 particles to be drawn, none of them twice; got 1 at row 0.\n\n"
     "Hint: one particle holds most of the weight: use more particles, a better proposal, or fewer `neighbours`."),
    (lambda: particles(X, CLOUD[:, :, :2]), ShapeError,
     "`cloud` must have shape (12, S, 3); got shape (12, 400, 2).\n\n"
     "Hint: clouds of different sizes come as a list, one array a row."),
    (lambda: particles(X, CLOUD, WEIGHT[:, :5]), ShapeError,
     "`weight` must have shape (12, 400), one a particle; got shape (12, 5)."),
    (lambda: particles(X, CLOUD, WEIGHT, log_weight=WEIGHT), FormError,
     "`weight` or `log_weight` must be given, not both; got `weight` and `log_weight`."),
    (lambda: particles(X, list(CLOUD)[:5]), ShapeError,
     "`cloud` must hold particles for each of the 12 rows of `x_true`; got 5."),
    (lambda: particles(X, [*CLOUD, CLOUD[0]]), ShapeError,
     "`cloud` must hold particles for each of the 12 rows of `x_true`; got more than 12."),
    (lambda: particles(X, list(CLOUD), list(WEIGHT)[:3]), ShapeError,
     "`weight` must have shape (400,), one a particle; got shape (0,) at row 3."),
    (lambda: particles(X, [*CLOUD[:-1], CLOUD[0, :, :2]]), ShapeError,
     "`cloud` must have shape (S, 3) in each row; got shape (400, 2) at row 11."),
    (lambda: particles(X, list(CLOUD), [*WEIGHT[:4], 2 * WEIGHT[4], *WEIGHT[5:]]), NormalisationError,
     "`weight` must sum to one in each row; got 2.0 at row 4.\n\n"
     "Hint: pass `weight / weight.sum(axis=-1, keepdims=True)` if that is meant."),
    (lambda: particles(X, CLOUD, log_weight=np.full((N, S), -np.inf)), RangeError,
     "`log_weight` must have a largest value that is finite; got -inf at row 0."),
    (lambda: particles(X, CLOUD, method="kde"), OptionError,
     "`method` must be one of 'moments', 'neighbours', 'density'; got 'kde'."),
    (lambda: particles(X, CLOUD, method="density"), FormError,
     '`log_density` must be given exactly for `method="density"`.\n\n'
     "Hint: `log_density(x)` returns one value for each row."),
    (lambda: particles(X, CLOUD, method="neighbours", most=11), OptionError,
     "`most` must exceed `neighbours` by 2 or more; got 11 and 10."),
    (lambda: particles(X, CLOUD, method="neighbours", neighbours=0), OptionError,
     "`neighbours` must be a whole number, at least 1; got 0."),
    (lambda: particles(X, list(CLOUD), log_density=len), FormError,
     "`log_density` needs all components and one array of particles, since it takes them as they are; got particles "
     "row by row."),
    (lambda: particles(X, 3), ShapeError, "`cloud` must be an array, or one array for each row; got 3."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_bad_input_is_refused(call, error: type[Exception], text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_particles_must_be_finite(value: float) -> None:
    cloud = CLOUD.copy()
    cloud[7, 33, 1] = value
    error = MissingValueError if math.isnan(value) else RangeError
    for form in (cloud, list(cloud)):
        with pytest.raises(error, match=r"at row 7, particle 33\.$"):
            particles(X, form)
