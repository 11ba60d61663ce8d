"""Errors of states along each axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal._sums import Tally
from safecal.inference.directions import axes_of

N, D = 400, 3


def _states(seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    factors = np.tril(rng.normal(0, 0.3, (N, D, D)), -1) + np.eye(D) * (0.5 + rng.random((N, 1, D)))
    x = np.einsum("nij,nj->ni", factors, rng.normal([0.5, 0.0, 0.0], 1.3, (N, D)))
    return x, np.zeros((N, D)), factors


def test_every_spelling_of_the_spread_gives_the_same_errors() -> None:
    x, mean, chol = _states()
    cov = chol @ np.swapaxes(chol, 1, 2)
    deviation = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    wanted = x / deviation
    spreads = {"cov": cov, "chol": chol, "precision": np.linalg.inv(cov)}
    for name, spread in spreads.items():
        errors = safecal.gaussian(x, mean, **{name: spread}).axis_errors(slice(None))
        np.testing.assert_allclose(errors, wanted, rtol=1e-9)
    one = {"cov": cov[0], "chol": chol[0], "precision": np.linalg.inv(cov[0])}
    for name, spread in one.items():
        errors = safecal.gaussian(x, mean, **{name: spread}).axis_errors(slice(None))
        np.testing.assert_allclose(errors, x / deviation[0], rtol=1e-9)
    for name, spread in (("std", deviation), ("var", deviation**2), ("std", 2.0), ("var", deviation[0] ** 2)):
        stated = np.broadcast_to(spread if name == "std" else np.sqrt(spread), x.shape)
        errors = safecal.gaussian(x, mean, **{name: spread}).axis_errors(slice(None))
        np.testing.assert_allclose(errors, x / stated, rtol=1e-12)


def test_shift_and_factor_have_the_classical_intervals() -> None:
    rng = np.random.default_rng(1)
    u = rng.normal(0.2, 1.4, 50)
    (axis,) = safecal.gaussian(2.0 * u, np.zeros(50), std=2.0).evaluate().axes
    t = stats.ttest_1samp(u, 0.0).confidence_interval(0.95)
    assert (axis.shift.low, axis.shift.high) == pytest.approx((t.low, t.high), rel=1e-9)
    assert axis.factor.value == pytest.approx(u.var(ddof=1))
    ends = [49 * u.var(ddof=1) / stats.chi2.ppf(p, 49) for p in (0.975, 0.025)]
    assert (axis.factor.low, axis.factor.high) == pytest.approx(ends, rel=1e-9)


def test_axes_merge_and_are_written() -> None:
    x, mean, chol = _states()
    whole = Tally.of(safecal.gaussian(x, mean, chol=chol))
    parts = [Tally.of(safecal.gaussian(x[p], mean[p], chol=chol[p])) for p in (slice(150), slice(150, None))]
    together = sum(parts[1:], parts[0])
    assert together.axes is not None
    assert whole.axes is not None
    np.testing.assert_allclose(together.axes.sums, whole.axes.sums, rtol=1e-12, atol=1e-12)
    assert Tally.from_dict(whole.to_dict()).axes == whole.axes
    assert axes_of(Tally.of(safecal.bernoulli([0, 1], [0.3, 0.6])), 0.95) == ()


def test_clusters_and_impossible_rows() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(0.3, 1.0, 60)
    (axis,) = safecal.gaussian(x, np.zeros(60), std=1.0).evaluate(cluster=np.arange(60) % 12).axes
    assert axis.shift.value == pytest.approx(x.mean())
    assert (axis.shift.low, axis.shift.high) == (-np.inf, np.inf)
    (axis,) = safecal.gaussian(np.append(x, 1e200), np.zeros(61), std=1.0).evaluate().axes
    assert axis.shift.value == pytest.approx(x.mean())
    (axis,) = safecal.gaussian([0.5], [0.0], std=1.0).evaluate().axes
    assert axis.shift.method == "none: one row"
