"""The density family: scores, laws, draws and every error."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from safecal.errors import (
    DtypeError,
    EmptyError,
    FormError,
    MissingValueError,
    OptionError,
    RangeError,
    ShapeError,
    UnavailableError,
)
from safecal.families.density import density
from safecal.families.gaussian import gaussian
from safecal.testing import assert_family_laws


def _log_kernel(x: Any) -> Any:
    return -np.abs(x)


def _laplace(n: int) -> Any:
    return lambda rng: rng.laplace(size=n)


RNG = np.random.default_rng(20250214)
X = RNG.normal(size=40)
SCALES = RNG.uniform(0.5, 2.0, size=40)


@pytest.mark.parametrize(
    ("x", "dist", "method"),
    [
        (X, stats.norm(0.0, SCALES), "formula"),
        (X, stats.t(3.0, scale=SCALES), "formula"),
        (np.abs(X), stats.gamma(SCALES, scale=2.0), "formula"),
        (X, stats.skewnorm(2.0, scale=SCALES), "quadrature"),
        (X, stats.truncnorm(-4.0, 4.0 * SCALES), "quadrature"),
        (RNG.poisson(3.0, 40), stats.poisson(3.0 * SCALES), "summation"),
        (RNG.poisson(3.0, 40), stats.poisson(3.0), "summation"),
    ],
)
def test_laws(x: Any, dist: Any, method: str) -> None:
    predictions = density(x, dist)
    assert predictions.method == method
    assert_family_laws(predictions)


def test_laws_by_enumeration() -> None:
    n_trials = np.array([3, 5, 8])
    dist = stats.binom(n_trials, [0.2, 0.5, 0.9])
    outcomes = [density(np.full(3, k), dist) for k in range(9)]
    assert_family_laws(outcomes[1], outcomes=outcomes)


@given(
    mean=st.floats(-1e3, 1e3),
    std=st.floats(1e-3, 1e3),
    x=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5),
)
def test_normal_is_half_of_nees_minus_one(mean: float, std: float, x: list[float]) -> None:
    scored = density(x, stats.norm(mean, std)).score()
    nees = ((np.array(x) - mean) / std) ** 2
    np.testing.assert_allclose(scored.excess, (nees - 1.0) / 2.0, rtol=1e-12, atol=1e-13)
    assert (scored.varentropy == 0.5).all()
    assert (scored.third_cumulant == 1.0).all()


def test_normal_agrees_with_gaussian() -> None:
    ours, theirs = density(X, stats.norm(0.5, SCALES)), gaussian(X, np.full(40, 0.5), std=SCALES)
    for column in ("excess", "varentropy", "third_cumulant", "surprisal", "entropy"):
        np.testing.assert_allclose(getattr(ours.score(), column), getattr(theirs.score(), column), atol=1e-12)
    for beta in (0.5, 2.0):
        for deriv in range(4):
            expected = theirs.log_partition(beta, deriv=deriv)
            np.testing.assert_allclose(ours.log_partition(beta, deriv=deriv), expected, atol=1e-12)


@given(location=st.floats(-100.0, 100.0), scale=st.floats(0.01, 100.0))
def test_location_and_scale_change_nothing_but_entropy(location: float, scale: float) -> None:
    x = np.array([-1.5, 0.25, 3.0])
    plain = density(x, stats.skewnorm(3.0)).score()
    moved = density(location + scale * x, stats.skewnorm(3.0, location, scale)).score()
    np.testing.assert_allclose(moved.excess, plain.excess, atol=1e-7)
    np.testing.assert_allclose(moved.varentropy, plain.varentropy, rtol=1e-12)
    assert plain.entropy is not None
    assert moved.entropy is not None
    np.testing.assert_allclose(moved.entropy, plain.entropy + np.log(scale), atol=1e-12)


def test_uniform_is_never_surprised() -> None:
    scored = density([0.1, 0.9], stats.uniform()).score()
    assert scored.excess.tolist() == [0.0, 0.0]
    assert scored.varentropy.tolist() == [0.0, 0.0]


def test_an_unnormalised_constant_cancels() -> None:
    shift = np.linspace(-3.0, 3.0, 40)
    plain = density(X, log_density=_log_kernel, sampler=_laplace(40), rng=1).score()
    moved = density(X, log_density=lambda x: _log_kernel(x) + 5.0 + shift, sampler=_laplace(40), rng=1).score()
    np.testing.assert_allclose(moved.excess, plain.excess, atol=1e-13)
    np.testing.assert_allclose(moved.varentropy, plain.varentropy, atol=1e-12)
    np.testing.assert_allclose(moved.third_cumulant, plain.third_cumulant, atol=1e-11)


def test_draws_are_what_the_formulas_say() -> None:
    seen = np.stack([np.random.default_rng(5).laplace(size=(7, 40))])[0]
    scored = density(X, log_density=_log_kernel, sampler=_laplace(40), draws=7, rng=5).score()
    log_f = -np.abs(seen)
    variance = log_f.var(axis=0, ddof=1)
    np.testing.assert_allclose(scored.excess, log_f.mean(axis=0) + np.abs(X), atol=1e-13)
    np.testing.assert_allclose(scored.varentropy, variance, rtol=1e-12)
    assert scored.numerical_variance is not None
    np.testing.assert_allclose(scored.numerical_variance, variance / 7, rtol=1e-12)
    np.testing.assert_allclose(scored.third_cumulant, stats.kstat(-log_f, 3, axis=0), atol=1e-12)


@pytest.mark.proof
def test_null_law_with_draws() -> None:
    # A calibrated model: mean excess 0, with variance v (1 + 1/S) in each row.
    rng = np.random.default_rng(8)
    draws, rows, z = 8, 50, []
    for _ in range(400):
        scored = density(
            rng.laplace(size=rows), log_density=_log_kernel, sampler=_laplace(rows), draws=draws, rng=rng
        ).score()  # fmt: skip
        z.append(scored.excess.sum() / np.sqrt(rows * (1.0 + 1.0 / draws)))
    assert abs(np.mean(z)) < 4.0 / np.sqrt(len(z))
    assert abs(np.std(z) - 1.0) < 4.0 / np.sqrt(2 * len(z))


def test_null_law_by_quadrature() -> None:
    rng = np.random.default_rng(9)
    dist = stats.skewnorm(4.0)
    scored = density(dist.rvs(20_000, random_state=rng), dist).score()
    z = scored.excess.sum() / np.sqrt(scored.varentropy.sum())
    assert abs(z) < 3.0
    assert abs(np.var(scored.excess) / scored.varentropy[0] - 1.0) < 0.05
    assert abs(stats.kstat(scored.excess, 3) / scored.third_cumulant[0] - 1.0) < 0.15


def test_draws_agree_with_the_formula() -> None:
    x = np.zeros(2000)
    exact = density(x, stats.laplace()).summary()
    drawn = density(x, log_density=_log_kernel, sampler=_laplace(2000), draws=16, rng=3).summary()
    assert drawn.numerical_error == pytest.approx(np.sqrt(1.0 / 16 / 2000), rel=0.1)
    assert abs(drawn.ecd - exact.ecd) < 4.0 * drawn.numerical_error
    assert drawn.sum_varentropy == pytest.approx(exact.sum_varentropy, rel=0.05)
    assert drawn.sum_third_cumulant_weight3 == pytest.approx(exact.sum_third_cumulant_weight3, rel=0.2)


def test_draws_do_not_cancel() -> None:
    shift = 1e9
    scored = density(X, log_density=lambda x: _log_kernel(x) + shift, sampler=_laplace(40), rng=1).score()
    plain = density(X, log_density=_log_kernel, sampler=_laplace(40), rng=1).score()
    np.testing.assert_allclose(scored.varentropy, plain.varentropy, rtol=1e-6)
    np.testing.assert_allclose(scored.third_cumulant, plain.third_cumulant, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rng", [0, np.random.SeedSequence(0)])
def test_the_same_seed_gives_the_same_numbers(rng: Any) -> None:
    pair = {"log_density": _log_kernel, "sampler": _laplace(40)}
    first = density(X, rng=rng, **pair).score().excess
    assert (first == density(X, rng=np.random.default_rng(0), **pair).score().excess).all()


def test_unnormalised_columns_are_absent() -> None:
    predictions = density(X, log_density=_log_kernel, sampler=_laplace(40), rng=0)
    scored = predictions.score()
    assert scored.entropy is None
    assert scored.surprisal is None
    assert_family_laws(predictions)
    with pytest.raises(UnavailableError, match="unnormalised"):
        predictions.log_partition(0.5)
    with pytest.raises(UnavailableError, match="unnormalised density has none"):
        predictions.bin_range("entropy")
    assert np.isnan(predictions.summary().nll)


def test_impossible_outcomes_are_counted() -> None:
    summary = density([-1.0, 1.0, 2.0], stats.expon()).summary()
    assert summary.n_impossible == 1
    assert summary.ecd == np.inf
    assert summary.ecd_possible == pytest.approx(0.5)
    assert density([1.5], stats.poisson(2.0)).summary().n_impossible == 1
    log_density, sampler = stats.expon().logpdf, lambda rng: rng.exponential(size=2)
    assert density([-1.0, 1.0], log_density=log_density, sampler=sampler, rng=0).summary().n_impossible == 1


def test_several_variables_with_the_pair(rng: np.random.Generator) -> None:
    x = rng.normal(size=(30, 2, 3))
    predictions = density(
        x,
        log_density=lambda values: -0.5 * (values**2).sum(axis=(1, 2)),
        sampler=lambda rng: rng.normal(size=(30, 2, 3)),
        draws=2000,
        rng=0,
    )
    np.testing.assert_allclose(predictions.score().excess, (x**2).sum(axis=(1, 2)) / 2 - 3.0, atol=0.25)


def test_inputs_are_unchanged() -> None:
    x = X.copy()

    def careless(values: Any) -> Any:
        result = _log_kernel(values)
        values += 1.0
        return result

    density(x, log_density=careless, sampler=_laplace(40), rng=0)
    assert (x == X).all()


def test_repr_and_method() -> None:
    assert repr(density(X, stats.norm())) == "density predictions: 40 rows (formula)"
    assert repr(density([1.0], stats.poisson(2.0))) == "density predictions: 1 row (summation)"
    predictions = density(X, log_density=_log_kernel, sampler=_laplace(40), draws=3, rng=0)
    assert repr(predictions) == "density predictions: 40 rows (draws: 3)"


def test_uniform_bins_need_edges() -> None:
    with pytest.raises(OptionError, match="entropy has no bounds"):
        density(X, stats.norm()).bin_range("entropy")


NAN_AT_2 = np.where(np.arange(40) == 2, np.nan, X)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, FormError, "`dist` or the pair `log_density`, `sampler` must be given; got neither."),
        (
            {"dist": stats.norm(), "log_density": _log_kernel},
            FormError,
            "must be given, not both; got `dist` and `log_density`.",
        ),
        ({"log_density": _log_kernel}, FormError, "`sampler` must be given together with `log_density`; got none."),
        ({"sampler": _laplace(40)}, FormError, "`log_density` must be given together with `sampler`; got none."),
        ({"log_density": 3, "sampler": _laplace(40)}, FormError, "`log_density` must be a function; got 3."),
        ({"dist": "norm"}, FormError, "one of torch.distributions; got builtins.str."),
        ({"dist": stats.gamma}, FormError, "freeze it with its parameters: `scipy.stats.gamma(...)`."),
        (
            {"dist": stats.norm(np.zeros(3))},
            ShapeError,
            "for each of the 40 rows of `x_true`; got scipy.stats.norm with",
        ),
        ({"dist": stats.norm(), "draws": 2}, OptionError, "`draws` must be a whole number, at least 3; got 2."),
        ({"dist": stats.norm(), "rng": "now"}, OptionError, "`rng` must be None, a whole number or a"),
        (
            {"dist": stats.norm(), "x": NAN_AT_2},
            MissingValueError,
            "`x_true` must not be NaN; got nan at row 2 (1 of 40",
        ),
        ({"dist": stats.norm(), "x": [np.inf]}, RangeError, "`x_true` must be finite; got inf at row 0 (1 of 1 row)."),
        ({"dist": stats.norm(), "x": [1j]}, DtypeError, "`x_true` must be real numbers"),
        ({"dist": stats.norm(), "x": []}, EmptyError, "`x_true` must have at least one row"),
        ({"dist": stats.norm(), "x": np.zeros((2, 0))}, ShapeError, "at least one component in each row"),
        ({"dist": stats.norm(), "x": np.zeros((40, 1))}, ShapeError, "pass `x_true[:, 0]`."),
        ({"dist": stats.norm(), "x": np.zeros((40, 2))}, ShapeError, "a row of several needs a joint distribution."),
        (
            {"dist": stats.norm(0.0, np.where(np.arange(40) < 3, -1.0, 1.0))},
            MissingValueError,
            "`dist` must not give a log-density of NaN; got nan at row 0 (3 of 40 rows).",
        ),
        (
            {"dist": stats.beta(0.5, 0.5), "x": [0.5, 1.0]},
            RangeError,
            "`dist` must have a finite density at `x_true`; got inf at row 1 (1 of 2 rows).",
        ),
        (
            {"log_density": lambda x: np.full(40, np.nan), "sampler": _laplace(40)},
            MissingValueError,
            "`log_density` must not give a log-density of NaN; got nan at row 0 (40 of 40 rows).",
        ),
        (
            {"log_density": lambda x: x[:, None], "sampler": _laplace(40)},
            ShapeError,
            "`log_density` must return one value for each row, shape (40,); got shape (40, 1).",
        ),
        (
            {"log_density": lambda x: 0.0, "sampler": _laplace(40)},
            ShapeError,
            "`log_density` must return one value for each row, shape (40,); got shape ().",
        ),
        (
            {"log_density": lambda x: x * 1j, "sampler": _laplace(40)},
            DtypeError,
            "`log_density` must return real numbers; got dtype complex128.",
        ),
        (
            {"log_density": _log_kernel, "sampler": _laplace(64)},
            ShapeError,
            "`sampler` must return one draw for each row, shaped like `x_true`, shape (40,); got shape (64,).",
        ),
        (
            {"log_density": stats.expon().logpdf, "sampler": lambda rng: -rng.exponential(size=40)},
            RangeError,
            "`log_density` must have a finite density at its own draws; got -inf at row 0 (40 of 40 rows).",
        ),
        (
            {"log_density": _log_kernel, "sampler": lambda rng: NAN_AT_2},
            MissingValueError,
            "`log_density` must not give a log-density of NaN for a draw; got nan at row 2 (1 of 40 rows).",
        ),
    ],
)
def test_errors(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    arguments = dict(arguments)
    with pytest.raises(error) as caught:
        density(arguments.pop("x", X), arguments.pop("dist", None), **arguments)
    assert text in str(caught.value)


def test_a_temperature_beyond_those_that_are_known_is_told_as_a_bound(rng: np.random.Generator) -> None:
    wide, narrow = (
        density(factor * rng.normal(size=2000), stats.norm(0.0, 1.0)).evaluate(bins=None) for factor in (2.5, 0.3)
    )
    t = wide.temperature
    assert (t.value, t.low, t.high) == pytest.approx((4.0, 4.0, np.inf))
    assert t.method.endswith("at least")
    assert "its temperature is at least 4" in wide.verdict.reason
    assert "at least 4" in wide.verdict.diagnosis.evidence
    assert "train it again" not in wide.verdict.diagnosis.remedy
    assert (narrow.temperature.value, narrow.temperature.high) == pytest.approx((0.25, 0.25))
    assert narrow.verdict.decision == "SAFE"


@pytest.mark.parametrize(
    "log_density",
    [lambda x: 0.0 * x, lambda x: stats.norm.pdf(x), lambda x: -0.005 * x * x],
    ids=["constant", "density", "too flat"],
)
def test_a_log_density_that_is_not_that_of_the_draws_is_not_safe(log_density: Any, rng: np.random.Generator) -> None:
    x = 1.7 * rng.normal(size=500)
    result = density(x, log_density=log_density, sampler=lambda draw: draw.normal(size=500), rng=0).evaluate()
    assert result.verdict.on_average == "SAFE"  # it is hardly ever surprised
    assert result.verdict.decision == "UNDETERMINED"
    assert "its draws do: where they say 90 %, 7" in result.verdict.reason
    assert result.judge(rule="average").decision == "SAFE"


@pytest.mark.parametrize(
    "law", [stats.norm, stats.laplace, stats.cauchy, stats.uniform, stats.expon, stats.beta(0.5, 0.5)]
)
@pytest.mark.parametrize("n", [10, 100, 1000])
def test_draws_of_a_right_density_hold_the_outcomes(law: Any, n: int) -> None:
    for seed in range(10):
        x = law.rvs(size=n, random_state=seed)
        drawn = density(x, log_density=law.logpdf, sampler=lambda draw: law.rvs(size=n, random_state=draw), rng=seed)
        verdict = drawn.evaluate().verdict
        assert "its draws do" not in verdict.reason
        assert verdict.decision != "UNSAFE"
