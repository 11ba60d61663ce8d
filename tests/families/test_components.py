"""Components that matter, and components that are angles."""

import math

import numpy as np
import pytest

import safecal
from safecal.errors import CovarianceError, MissingValueError, OptionError

RNG = np.random.default_rng(31)
N, D = 30, 4
X, M = RNG.normal(0, 2, (N, D)), RNG.normal(0, 1, (N, D))
L = np.tril(RNG.normal(0, 1, (N, D, D))) + 3 * np.eye(D)
C = L @ L.transpose(0, 2, 1)
C = (C + C.transpose(0, 2, 1)) / 2


@pytest.mark.parametrize("mapping", [(0, 2), (3, 1), (2,), (0, 1, 2, 3), (3, 2, 1, 0)])
@pytest.mark.parametrize("one", [False, True])
def test_every_form_keeps_the_marginal_of_the_components_that_matter(mapping: tuple[int, ...], one: bool) -> None:
    pick = 0 if one else slice(None)
    cov, chol = C[pick], L[pick]
    precision = np.linalg.inv(cov)
    block = C[np.ix_(range(N), mapping, mapping)][pick]
    wanted = safecal.gaussian(X[:, mapping], M[:, mapping], cov=block).score()
    forms = {"cov": cov, "chol": chol, "precision": (precision + np.swapaxes(precision, -1, -2)) / 2}
    for form, value in forms.items():
        checked = safecal.gaussian(X, M, **{form: value}, mapping=mapping)
        assert checked.dimension == len(mapping)
        np.testing.assert_allclose(checked.score().excess, wanted.excess, rtol=1e-9, atol=1e-9, err_msg=form)
        np.testing.assert_allclose(checked.score().entropy, wanted.entropy, rtol=1e-9, err_msg=form)


def test_independent_components_keep_theirs(rng: np.random.Generator) -> None:
    std = np.exp(rng.normal(0, 1, (N, D)))
    for value in (std, std[0], 2.0):
        kept = value if np.ndim(value) == 0 else value[..., [1, 3]]
        wanted = safecal.gaussian(X[:, [1, 3]], M[:, [1, 3]], std=kept).score().excess
        np.testing.assert_allclose(safecal.gaussian(X, M, std=value, mapping=[1, 3]).score().excess, wanted, rtol=1e-12)


def test_components_that_do_not_matter_may_hold_anything() -> None:
    x, m, c = X.copy(), M.copy(), C.copy()
    x[:, 1], m[:, 3] = np.nan, np.inf
    c[:, 1], c[:, :, 1] = np.nan, 0.0
    c[:, 3, 3] = -1.0
    ecd = safecal.gaussian(x, m, cov=c, mapping=[0, 2]).ecd
    assert ecd == pytest.approx(safecal.gaussian(X, M, cov=C, mapping=[0, 2]).ecd, rel=1e-12)
    with pytest.raises(MissingValueError):
        safecal.gaussian(x, m, cov=c)
    with pytest.raises(CovarianceError, match=r"`cov` must be positive definite.* at row 0 \(30 of 30 rows\)"):
        safecal.gaussian(X, M, cov=c, mapping=[0, 3])


def test_angles_are_wrapped(rng: np.random.Generator) -> None:
    turned = X + 2 * math.pi * rng.integers(-3, 4, (N, D)) * [0, 1, 0, 1]
    near = M + rng.normal(0, 0.3, (N, D))
    a = safecal.gaussian(near, M, cov=C, angles=[1, 3])
    b = safecal.gaussian(near + (turned - X), M, cov=C, angles=[1, 3])
    plain = safecal.gaussian(near, M, cov=C)
    np.testing.assert_allclose(b.score().excess, a.score().excess, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(a.score().excess, plain.score().excess, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("degrees", "error"), [(358.0, -2.0), (-358.0, 2.0), (180.0, 180.0), (-180.0, 180.0), (540.0, 180.0), (0.0, 0.0)]
)
def test_errors_lie_in_the_half_open_circle(degrees: float, error: float) -> None:
    excess = safecal.gaussian([math.radians(degrees)], [0.0], std=1.0, angles=[0]).score().excess[0]
    assert excess == pytest.approx((math.radians(error) ** 2 - 1) / 2, abs=1e-12)


def test_angles_are_counted_in_the_state_as_given() -> None:
    x = M.copy()
    x[:, 2] += 2 * math.pi
    kept = safecal.gaussian(x, M, cov=C, mapping=[2, 0], angles=[2]).score().excess
    np.testing.assert_allclose(kept, -1.0, atol=1e-12)
    dropped = safecal.gaussian(x, M, cov=C, mapping=[0, 1], angles=[2, 3]).score().excess
    np.testing.assert_allclose(dropped, -1.0, atol=1e-12)


def test_groups_keep_their_angles(rng: np.random.Generator) -> None:
    x = np.tile(M, (4, 1))
    x[:, 1] += 2 * math.pi
    x += rng.normal(0, 3, x.shape) * [1, 0, 1, 1]
    groups = np.arange(len(x)) % 2
    predictions = safecal.gaussian(x, np.tile(M, (4, 1)), std=3.0, angles=[1])
    fitted = safecal.Temperature().fit_predictions(predictions, by=groups)
    assert all(fit.temperature < 2 for fit in fitted.groups_.values())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"mapping": [0, 4]},
            "`mapping` must be distinct whole numbers from 0 to 3, components of the state; got [0, 4].",
        ),
        (
            {"mapping": [1, 1]},
            "`mapping` must be distinct whole numbers from 0 to 3, components of the state; got [1, 1].",
        ),
        ({"mapping": [-1]}, "`mapping` must be distinct whole numbers from 0 to 3, components of the state; got [-1]."),
        (
            {"mapping": [True]},
            "`mapping` must be distinct whole numbers from 0 to 3, components of the state; got [True].",
        ),
        ({"mapping": []}, "`mapping` must name at least one component; got none.\n\nHint: leave it out for all."),
        (
            {"angles": 2},
            "`angles` must be distinct whole numbers from 0 to 3, components of the state; got 2.\n\n"
            "Hint: wrap it in a list: `angles=[2]`.",
        ),
        ({"angles": "02"}, "`angles` must be distinct whole numbers from 0 to 3, components of the state; got '02'."),
    ],
)
def test_bad_components_are_refused(options: dict, text: str) -> None:
    with pytest.raises(OptionError) as caught:
        safecal.gaussian(X, M, cov=C, **options)
    assert str(caught.value) == text
