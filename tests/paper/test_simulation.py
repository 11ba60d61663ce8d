"""The simulation: the process as written, and the one behind the published table."""

import numpy as np
import pytest
from scipy import special

import safecal
from safecal.errors import OptionError, RangeError
from safecal.paper import paper_draws, simulate


def test_as_written() -> None:
    rng = np.random.default_rng(5)
    u = 0.5 * rng.uniform(-10.0, 10.0, 1000)
    noise = rng.normal(0.3, 2.0, 1000)
    rows = simulate(1000, mean=0.3, sd=2.0, rng=5)
    np.testing.assert_array_equal(rows.truth, special.expit(u))
    np.testing.assert_array_equal(rows.logits, u + noise)
    np.testing.assert_allclose(rows.y_prob, special.expit(u + noise))
    assert set(rows.labels.tolist()) == {0, 1}
    assert rows.evaluate().ecd == pytest.approx(safecal.ecd(rows.labels, rows.y_prob))


@pytest.mark.parametrize("noise_on", ["probability", "both"])
@pytest.mark.parametrize("clip", [1e-5, 1e-3])
def test_noise_on_the_probability_is_clipped(noise_on: str, clip: float) -> None:
    logit = simulate(2000, sd=0.5, rng=1)
    rows = simulate(2000, sd=0.5, noise_on=noise_on, clip=clip, rng=1)
    np.testing.assert_array_equal(rows.labels, logit.labels)
    noise = logit.logits - special.logit(logit.truth)
    base = logit.y_prob if noise_on == "both" else logit.truth
    np.testing.assert_allclose(rows.y_prob, np.clip(base + noise, clip, 1.0 - clip), atol=1e-12)
    assert rows.y_prob.min() == clip
    np.testing.assert_allclose(rows.logits, special.logit(rows.y_prob))


def test_draws_are_those_of_the_generator_that_is_given() -> None:
    first, second = simulate(100, sd=1.0), simulate(100, sd=1.0)
    np.testing.assert_array_equal(first.y_prob, second.y_prob)
    assert not np.array_equal(first.y_prob, simulate(100, sd=1.0, rng=1).y_prob)
    rng = np.random.default_rng(3)
    assert not np.array_equal(simulate(100, rng=rng).truth, simulate(100, rng=rng).truth)
    np.testing.assert_array_equal(
        simulate(100, rng=(3, 1)).truth, simulate(100, rng=np.random.default_rng((3, 1))).truth
    )


def test_without_noise_the_estimate_is_the_truth() -> None:
    for noise_on in ("logit", "both", "probability"):
        rows = simulate(500, noise_on=noise_on, rng=2)
        np.testing.assert_allclose(rows.y_prob, rows.truth, rtol=1e-12)
    assert simulate(500, W=1.0, rng=2).truth.min() < simulate(500, W=0.25, rng=2).truth.min()


def test_the_mean_of_the_noise_shifts_the_log_odds() -> None:
    rows = simulate(500, mean=1.0, rng=2)
    np.testing.assert_allclose(rows.logits - special.logit(rows.truth), 1.0)


def test_the_draws_of_the_paper_in_plain_numpy() -> None:
    draws = np.random.RandomState(99)
    u = 0.5 * draws.uniform(-10, 10, 10_000)
    noise = draws.normal(0, 0.5, 10_000)
    labels = draws.binomial(1, 1 / (1 + np.exp(-u)))
    estimate = np.clip(1 / (1 + np.exp(-(u + noise))) + noise, 1e-5, 1 - 1e-5)
    rows = simulate(sd=0.5, noise_on="both", rng=paper_draws())
    np.testing.assert_array_equal(rows.labels, labels)
    np.testing.assert_allclose(rows.y_prob, estimate, rtol=1e-12)
    assert round(float(np.mean((estimate - labels) * np.log(estimate / (1 - estimate)))), 4) == 1.2901


def test_it_says_what_it_is() -> None:
    assert repr(simulate(10, sd=0.5, noise_on="both")) == "Simulation: 10 rows, noise of standard deviation 0.5 on both"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 0}, OptionError, "`n` must be a whole number, at least 1"),
        ({"W": 0.0}, RangeError, "`W` must be greater than 0"),
        ({"sd": -1.0}, RangeError, "`sd` must not be negative; got -1.0"),
        ({"noise_on": "labels"}, OptionError, "`noise_on` must be one of"),
        ({"clip": 0.0}, RangeError, "`clip` must lie strictly between 0 and 1"),
    ],
)
def test_bad_options(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        simulate(**options)  # type: ignore[arg-type]
