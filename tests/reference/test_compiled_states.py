"""The compiled kernel scores states as NumPy does, and leaves every doubtful matrix to it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import safecal
from safecal._kernels import compiled
from safecal.errors import InputError


def needs_kernel() -> None:
    if not compiled.available():
        pytest.skip("the kernel was not built")


def states(n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    root = rng.normal(size=(n, d, d + 3)) * 10.0 ** rng.uniform(-3.0, 3.0, (n, d, 1))
    cov = root @ root.transpose(0, 2, 1)
    return rng.normal(size=(n, d)), (cov + cov.transpose(0, 2, 1)) / 2.0


def by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_module", None)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 7, 8, 9])
def test_both_paths_score_states_alike(d: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    for n in (1, 7, 8, 9, 100):
        x, cov = states(n, d, rng)
        one = safecal.gaussian(x, 0 * x, cov=cov).score()
        with monkeypatch.context() as patch:
            by_numpy(patch)
            other = safecal.gaussian(x, 0 * x, cov=cov).score()
        for name in ("excess", "surprisal", "entropy"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-11, atol=1e-11)


def test_the_lower_triangle_is_the_one_that_counts(rng: np.random.Generator) -> None:
    needs_kernel()
    x, cov = states(20, 4, rng)
    whole, lower = compiled.state_scores(x, cov), compiled.state_scores(x, np.tril(cov))
    assert whole is not None
    assert lower is not None
    assert [a.tolist() for a in whole] == [a.tolist() for a in lower]


def test_the_smallest_and_the_largest_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = np.array([5e-324, 1e-310, 1e-160, 1.0, 1e160, 1e300])
    cov = scale[:, None, None] * np.eye(2)
    x = np.sqrt(scale)[:, None] * np.array([1.0, 2.0])
    one = safecal.gaussian(x, 0 * x, cov=cov).score()
    by_numpy(monkeypatch)
    other = safecal.gaussian(x, 0 * x, cov=cov).score()
    np.testing.assert_allclose(one.excess, other.excess, rtol=1e-13)
    np.testing.assert_allclose(one.surprisal, other.surprisal, rtol=1e-13)


@pytest.mark.parametrize("built", [True, False])
def test_errors_beyond_every_float_are_impossible(built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not built:
        by_numpy(monkeypatch)
    far = safecal.gaussian(np.full((1, 2), 1e300), np.full((1, 2), -1e300), cov=1e-300 * np.eye(2)[None])
    assert far.score().impossible.all()  # the second line of the factor multiplies infinity by 0
    assert far.ecd == math.inf


def doubtful(rng: np.random.Generator) -> list[np.ndarray]:
    """Return matrices at the limits of what passes, some of them beyond."""
    matrices = []
    for d in (2, 6):
        limit = 10 * d * np.finfo(float).eps
        for share in (0.0, 0.3, 0.99, 1.01, 1.7, 2.5, 10.0):
            last = math.sqrt(1.0 - share * limit)
            cov = np.eye(d)
            cov[-1, 0] = cov[0, -1] = last
            matrices.append(cov)
        for gap in (0.3e-9, 0.7e-9, 0.99e-9, 1.01e-9, 1e-3):
            cov = np.diag(10.0 ** rng.uniform(-80, 80, d))
            cov[0, -1] = gap * math.sqrt(cov[0, 0] * cov[-1, -1])
            matrices.append(cov)
        for bad in (math.nan, math.inf, -math.inf, -1.0, 0.0):
            for place in ((0, 0), (d - 1, d - 1), (0, d - 1)):
                cov = np.eye(d)
                cov[place] = bad
                matrices.append(cov)
    return matrices


def said(cov: np.ndarray) -> str:
    d = len(cov)
    batch = np.tile(np.eye(d), (11, 1, 1))
    batch[9] = cov
    try:
        return str(safecal.gaussian(np.ones((11, d)), np.zeros((11, d)), cov=batch).score().excess.round(9).tolist())
    except InputError as error:
        return str(error)


def test_both_paths_accept_and_refuse_the_same_matrices(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    needs_kernel()
    matrices = doubtful(rng)
    one = [said(cov) for cov in matrices]
    by_numpy(monkeypatch)
    assert one == [said(cov) for cov in matrices]
    assert 10 < sum(text.startswith("`cov`") for text in one) < len(one) - 10


@pytest.mark.parametrize("layout", ["float32", "big-endian", "strided", "unaligned"])
def test_any_layout_of_covariances(layout: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(30, 3))
    cov = np.round(np.eye(3) * rng.integers(1, 9, (30, 1, 1))) * 4.0
    room = np.zeros(cov.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(cov.shape)
    room[...] = cov
    forms = {
        "float32": cov.astype("f4"),
        "big-endian": cov.astype(">f8"),
        "strided": np.repeat(cov, 2, axis=2)[..., ::2],
    }
    given = forms.get(layout, room)
    one, other = (safecal.gaussian(x, 0 * x, cov=c).score().excess for c in (cov, given))
    assert one.tolist() == other.tolist()


def test_the_kernel_refuses_what_does_not_fit() -> None:
    needs_kernel()
    sound, score = compiled._module.sound, compiled._module.state_scores
    x, cov, out = np.zeros((3, 2)), np.tile(np.eye(2), (3, 1, 1)), np.zeros(3)
    for n, d in ((3, 0), (3, 9), (-1, 2), (3, 2**60)):
        with pytest.raises(ValueError, match="1 to 8 dimensions"):
            sound(n, d, 1e-9, 1e-12, cov)
        with pytest.raises(ValueError, match="1 to 8 dimensions"):
            score(n, d, x, cov, out, out.copy())
    for n in (2, 4, 2**62):
        with pytest.raises(ValueError, match="matrices must hold"):
            sound(n, 2, 1e-9, 1e-12, cov)
        with pytest.raises(ValueError, match="residual must hold"):
            score(n, 2, x, cov, out, out.copy())
    with pytest.raises(ValueError, match="logdet must hold 3 items of 8 bytes"):
        score(3, 2, x, cov, out, np.zeros(2))
    assert score(3, 2, x, -cov, out, out.copy()) is False
