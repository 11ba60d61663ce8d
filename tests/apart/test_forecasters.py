"""Distributions of NGBoost and skpro themselves: a factor that was planted is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import safecal

pytestmark = [pytest.mark.apart, pytest.mark.filterwarnings("ignore")]

FACTOR = 1.35


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what is known of 4000 rows, what happened, and how far out the last 2000 are to be."""
    x = rng.uniform(-1.0, 1.0, (4000, 1))
    return x, 2.0 * x[:, 0] + rng.standard_normal(4000), FACTOR * rng.standard_normal(2000)


def found_in(y_true: np.ndarray, dist: Any) -> None:
    result = safecal.density(y_true, dist).evaluate()
    assert result.verdict.decision == "UNSAFE"
    assert result.temperature.low**0.5 <= FACTOR <= result.temperature.high**0.5
    assert result.temperature.value**0.5 == pytest.approx(FACTOR, rel=0.05)


def test_distributions_of_ngboost(rng: np.random.Generator) -> None:
    from ngboost import NGBRegressor

    x, y, far = drawn(rng)
    boosted = NGBRegressor(n_estimators=60, verbose=False, random_state=0).fit(x[:2000], y[:2000])
    dist = boosted.pred_dist(x[2000:])
    found_in(dist.loc + far * dist.scale, dist)


def test_distributions_of_skpro(rng: np.random.Generator) -> None:
    import pandas as pd
    from sklearn.linear_model import LinearRegression
    from skpro.regression.residual import ResidualDouble

    x, y, far = drawn(rng)
    frame, outcome = pd.DataFrame(x, columns=["x"]), pd.DataFrame(y, columns=["y"])
    model = ResidualDouble(LinearRegression(), LinearRegression()).fit(frame[:2000], outcome[:2000])
    dist = model.predict_proba(frame[2000:])
    mean, deviation = (np.asarray(part).reshape(-1) for part in (dist.mean(), np.sqrt(dist.var())))
    found_in(mean + far * deviation, dist)
