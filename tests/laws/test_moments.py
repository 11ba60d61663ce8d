"""If a prediction is right, its excess has mean 0, the varentropy for variance, and the third cumulant it claims."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

import safecal
from safecal.testing import assert_family_laws

from .cases import CLASSIFIERS, DENSITIES, FAMILIES, PARTITIONED, STATES, examples, rows_of, size, take

pytestmark = pytest.mark.no_cover  # the formulas of every family, very often
# Sums of powers of the excess lose digits to sharp predictions, where a rare outcome has a large excess.
RTOL = 1e-9


@pytest.mark.parametrize("name", CLASSIFIERS)
@examples(50)
@given(data=st.data())
def test_classifiers_obey_the_laws_by_enumeration_of_their_outcomes(name: str, data: st.DataObject) -> None:
    family = FAMILIES[name]
    columns = data.draw(rows_of(name))
    n = size(columns)
    outcomes = [family.make(columns | {"y_true": np.full(n, k)}) for k in range(family.outcomes)]
    assert_family_laws(family.make(columns), outcomes=outcomes, rtol=RTOL)


@pytest.mark.parametrize("name", STATES + DENSITIES)
@examples(50)
@given(data=st.data())
def test_states_obey_the_laws(name: str, data: st.DataObject) -> None:
    assert_family_laws(FAMILIES[name].make(data.draw(rows_of(name))), rtol=RTOL)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_states_have_the_moments_they_claim_by_quadrature(d: int) -> None:
    # A product rule of Gauss and Hermite integrates these polynomials exactly.
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    weights = weights / weights.sum()
    grid = np.stack(np.meshgrid(*[nodes] * min(d, 3), indexing="ij"), axis=-1).reshape(-1, min(d, 3))
    mass = np.prod(np.stack(np.meshgrid(*[weights] * min(d, 3), indexing="ij"), axis=-1).reshape(grid.shape), axis=1)
    d = min(d, 3)
    factor = np.tril(np.full((d, d), 0.5)) + np.eye(d)
    scored = safecal.gaussian(grid @ factor.T + 7.0, np.full(grid.shape, 7.0), chol=factor).score()
    assert mass @ scored.excess == pytest.approx(0.0, abs=1e-12)
    assert mass @ scored.excess**2 == pytest.approx(d / 2)
    assert mass @ scored.excess**3 == pytest.approx(d)
    assert scored.varentropy == pytest.approx(d / 2)
    assert scored.third_cumulant == pytest.approx(d)


@pytest.mark.parametrize("name", FAMILIES)
@examples(50)
@given(data=st.data())
def test_the_excess_has_a_lower_bound(name: str, data: st.DataObject) -> None:
    scored = FAMILIES[name].make(data.draw(rows_of(name))).score()
    assert (scored.excess >= FAMILIES[name].least - 1e-12).all()
    assert not np.isnan(scored.excess).any()
    assert (scored.varentropy >= 0).all()
    if FAMILIES[name].classes:
        assert (scored.entropy >= 0).all()
        assert (scored.entropy <= math.log(FAMILIES[name].outcomes) + 1e-12).all()
        assert (scored.surprisal >= 0).all()
        assert ((scored.brier >= 0) & (scored.brier <= 2)).all()
        assert ((scored.confidence <= 1) & (scored.confidence >= 1 / FAMILIES[name].outcomes - 1e-12)).all()


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_the_lower_bound_of_the_excess_is_reached(classes: int) -> None:
    # One class has probability p, the others share the rest; the best has log-odds 1 + W((K - 1)/e).
    w = float(lambertw((classes - 1) / math.e).real)
    logits = np.zeros((1, classes))
    logits[0, 0] = 1.0 + w
    assert safecal.categorical([0], logits=logits).ecd == pytest.approx(-w, abs=1e-13)
    if classes == 2:
        assert -w == pytest.approx(-0.2784645427610738)
        assert safecal.bernoulli([1], logits=[1.0 + w]).ecd == pytest.approx(-w, abs=1e-15)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_equal_probabilities_have_no_excess_and_no_variance(classes: int) -> None:
    scored = safecal.categorical([0, 1], logits=np.full((2, classes), 3.7)).score()
    assert scored.excess.tolist() == [0.0, 0.0]
    assert scored.varentropy.tolist() == [0.0, 0.0]
    half = safecal.bernoulli([0, 1], [0.5, 0.5]).score()
    assert half.excess.tolist() == [0.0, 0.0]
    assert half.varentropy.tolist() == [0.0, 0.0]


@examples(50)
@given(columns=rows_of("categorical 2"))
def test_two_columns_say_the_same_as_one_probability(columns: dict[str, np.ndarray]) -> None:
    p = columns["y_prob"]
    exact = p[:, 0] == 1.0 - p[:, 1]
    if not exact.any():
        return
    columns = take(columns, exact)
    two = safecal.categorical(**columns).score()
    one = safecal.bernoulli(columns["y_true"], columns["y_prob"][:, 1]).score()
    for name in ("excess", "varentropy", "third_cumulant", "surprisal", "entropy", "brier", "confidence", "correct"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", PARTITIONED)
@examples(25)
@given(data=st.data())
def test_the_log_partition_is_convex_and_its_derivatives_are_derivatives(name: str, data: st.DataObject) -> None:
    predictions = FAMILIES[name].make(data.draw(rows_of(name, most=8)))
    beta, step = data.draw(st.floats(0.3, 3.0)), 1e-4
    for deriv in range(3):
        below, above = (predictions.log_partition(b, deriv=deriv) for b in (beta - step, beta + step))
        slope = predictions.log_partition(beta, deriv=deriv + 1)
        # The error of the difference is of the order of step^2 times the derivative two orders up, of size spread^k.
        spread = 11.0 + np.abs(predictions.score().entropy)
        bound = 1e-8 * spread ** (deriv + 3) + 1e-11 * spread ** (deriv + 1) / step
        assert (np.abs((above - below) / (2 * step) - slope) <= bound).all(), deriv
    assert (predictions.log_partition(beta, deriv=2) >= 0).all()


@pytest.mark.parametrize("name", PARTITIONED)
@examples(25)
@given(data=st.data())
def test_the_tempered_excess_increases_with_beta_and_is_ecd_at_one(name: str, data: st.DataObject) -> None:
    predictions = FAMILIES[name].make(data.draw(rows_of(name, most=8)))
    scored = predictions.score()
    possible = ~scored.impossible
    if not possible.any():
        return
    surprisal = scored.surprisal[possible].mean()
    betas = 2.0 ** np.arange(-4.0, 4.25, 0.25)
    g = np.array([surprisal + predictions.log_partition(beta, deriv=1)[possible].mean() for beta in betas])
    summary = predictions.summary()
    size = 1.0 + abs(surprisal) + abs(summary.mean_entropy)
    assert (np.diff(g) >= -1e-11 * size).all()
    assert abs(g[betas == 1.0][0] - summary.ecd_possible) <= 1e-11 * size
