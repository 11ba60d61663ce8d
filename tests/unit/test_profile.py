"""Sums on the grid of inverse temperatures, against direct computing."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

import safecal
from safecal import Profile
from safecal.profile import BETAS

RNG = np.random.default_rng(8)
LOGITS = RNG.normal(0, 2, (50, 4))
Y = RNG.integers(0, 4, 50)


def test_the_grid_holds_one_and_goes_four_to_the_octave() -> None:
    assert len(BETAS) == 33
    assert BETAS[0] == 1 / 16
    assert BETAS[16] == 1.0
    assert BETAS[-1] == 16.0
    assert np.allclose(np.diff(np.log2(BETAS)), 0.25)


def test_the_log_likelihood_is_that_of_the_tempered_model() -> None:
    profile = safecal.categorical(Y, logits=LOGITS).profile()
    for j, beta in enumerate(profile.betas):
        tempered = beta * LOGITS
        wanted = (tempered[np.arange(50), Y] - logsumexp(tempered, axis=1)).sum()
        assert profile.log_likelihood[j] == pytest.approx(wanted, rel=1e-12)


def test_the_tempered_excess_is_what_it_says_and_has_the_sign_of_the_tempered_ecd() -> None:
    profile = safecal.categorical(Y, logits=LOGITS).profile()
    log_p = LOGITS - logsumexp(LOGITS, axis=1, keepdims=True)
    for j, beta in enumerate(profile.betas):
        p_beta = np.exp(beta * LOGITS - logsumexp(beta * LOGITS, axis=1, keepdims=True))
        wanted = ((p_beta * log_p).sum(axis=1) - log_p[np.arange(50), Y]).mean()
        assert profile.tempered_excess[j] == pytest.approx(wanted, abs=1e-12)
        tempered = safecal.categorical(Y, logits=beta * LOGITS).ecd
        assert tempered == pytest.approx(beta * wanted, abs=1e-10)


def test_weights_and_impossible_rows() -> None:
    profile = safecal.bernoulli([1, 1, 0], [0.0, 0.8, 0.3]).profile([5.0, 1.0, 2.0])
    assert (profile.n, profile.n_impossible, profile.weight) == (3, 1, 3.0)
    assert profile.sum_surprisal == pytest.approx(-math.log(0.8) - 2 * math.log(0.7))
    half = profile.betas.index(0.5)
    wanted = math.log(0.8**0.5 + 0.2**0.5) + 2 * math.log(0.3**0.5 + 0.7**0.5)
    assert profile.sum_log_partition[half] == pytest.approx(wanted)


def test_the_empty_profile_has_no_tempered_excess() -> None:
    assert np.isnan(Profile().tempered_excess).all()
    assert repr(Profile()) == "Profile(n=0, 33 betas from 0.0625 to 16)"


def test_gaussian_states_ask_for_the_temperature_nees_over_d(rng: np.random.Generator) -> None:
    x = rng.normal(0, 2.0, (4000, 1))
    profile = safecal.gaussian(x, np.zeros_like(x), std=1.0).profile()
    best = profile.betas[int(profile.log_likelihood.argmax())]
    assert abs(math.log2(best * (x**2).mean())) <= 0.125 + 1e-9
