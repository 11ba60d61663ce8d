"""Groups whose temperature is just the one allowed are called UNSAFE as rarely as groups may be, whatever they say."""

import math

import numpy as np
import pytest
from models import error
from scipy import special

import safecal
from safecal import Limits, Predictions
from safecal.judge.groups import judge_groups

GROUPS, SHARE = 10, 0.01  # what the groups may add to false alarms, all scales together
T = 1.5
LOG_ODDS = {"N(0, 2)": (0.0, 2.0), "N(4, 1)": (4.0, 1.0), "N(0, .5)": (0.0, 0.5)}
LAWS = [*LOG_ODDS, "ten classes", "states"]


def _draw(law: str, n: int, rng: np.random.Generator, temperature: float = T) -> Predictions:
    """Draw outcomes, and predictions so many times too sure."""
    if law == "states":
        return safecal.gaussian(rng.normal(0.0, math.sqrt(temperature), n), np.zeros(n), std=1.0)
    if law == "ten classes":
        z = rng.normal(0.0, 2.0, (n, 10))
        return safecal.categorical((z + rng.gumbel(size=z.shape)).argmax(axis=1), logits=temperature * z)
    z = rng.normal(*LOG_ODDS[law], n)
    return safecal.bernoulli(rng.random(n) < special.expit(z), logits=temperature * z)


def _rate(law: str, n: int, repeats: int, weighted: bool = False, temperature: float = T) -> float:
    """Return how often the temperature of some group is called too high."""
    rng = np.random.default_rng([n, LAWS.index(law), weighted])
    by = np.repeat(np.arange(GROUPS), n)
    alarms = 0
    for _ in range(repeats):
        weight = rng.gamma(2.0, 0.5, len(by)) if weighted else None
        tally = _draw(law, len(by), rng, temperature).tally(by=by, sample_weight=weight)
        assert tally.groups is not None
        alarms += bool((judge_groups(tally.groups, Limits(), tally).by_temperature == 2).any())
    return alarms / repeats


@pytest.mark.proof
def test_ten_groups_at_the_limit_raise_no_false_alarm() -> None:
    assert _rate("N(0, .5)", 500, 60) <= SHARE + error(SHARE, 60)  # more of them below


def test_groups_far_beyond_the_limit_are_found() -> None:
    assert _rate("N(0, .5)", 5000, 10, temperature=3.0) == 1.0
    assert _rate("states", 500, 10, temperature=3.0) == 1.0


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("n", [50, 500, 5000])
@pytest.mark.parametrize("law", LAWS)
def test_the_share_of_groups_is_kept(law: str, n: int) -> None:
    repeats = 100 if n == 5000 else 300
    assert _rate(law, n, repeats) <= SHARE + error(SHARE, repeats)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("law", LAWS)
def test_it_is_kept_with_weights(law: str) -> None:
    assert _rate(law, 500, 400, weighted=True) <= SHARE + error(SHARE, 400)
