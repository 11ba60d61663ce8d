"""The compiled kernel sums rows by cell of their log-odds as NumPy does, however arrays lie in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

import safecal
from safecal._kernels import classes as kernel
from safecal._kernels import compiled
from safecal._kernels.compiled import bernoulli_sums, floats
from safecal._kernels.spectrum import CELLS, CENTRES, LOWEST, cell_moments, cell_numbers

from .test_compiled import LOGITS, RNG, ROWS, both, chance, needs_kernel
from .test_compiled import _all_agree as all_agree

#: The largest distance from the centre of a cell; of the last one, which has no end, a size to compare with.
REACH = np.append(CENTRES[:-1] - LOWEST[:-1], LOWEST[-1])[:, None, None]


def by_numpy(values: np.ndarray, happened: np.ndarray, *, logits: bool) -> np.ndarray:
    """Return the moments of all rows that are not certain."""
    wide = np.asarray(values, dtype=np.float64)
    odds = kernel.odds_of_logit(wide) if logits else kernel.odds_of_probability(wide)
    positive = wide > (0.0 if logits else 0.5)
    inside = np.isfinite(wide) if logits else odds.m > 0.0
    return cell_moments(odds.L[inside], (positive != happened)[inside], positive[inside])


def assert_same_spectrum(values: np.ndarray, happened: np.ndarray, *, logits: bool, **by: object) -> np.ndarray:
    """Compare the counts exactly, and the sums to 1e-12 of the sizes of their terms."""
    needs_kernel()
    sums = bernoulli_sums(floats(values), happened, logits=logits, spectrum=True, **by)
    assert sums is not None
    assert sums.spectrum is not None
    wanted = by_numpy(values, happened, logits=logits)
    counts = wanted[..., 0]
    assert (sums.spectrum[..., 0] == counts).all()
    for power in (1, 2, 3):
        last = np.abs(wanted[-1, ..., power])
        terms = counts * REACH**power
        terms[-1] = np.maximum(terms[-1], last) if power == 1 else 0.0
        assert (np.abs(sums.spectrum[..., power] - wanted[..., power]) <= 1e-12 * terms).all(), power
    return sums.spectrum


@pytest.mark.parametrize("name", [name for name in ROWS if name != "smaller than the formulas allow"])
def test_probabilities_have_the_spectrum_of_numpy(name: str) -> None:
    p = ROWS[name]
    happened = RNG.random(len(p)) < p
    edges = np.linspace(0.0, 1.0, 11)
    for by in ({}, {"keys": 10, "edges": edges}, {"keys": 3, "index": RNG.integers(0, 3, len(p))}):
        assert_same_spectrum(p, happened, logits=False, **by)
        assert_same_spectrum(p, ~happened, logits=False, **by)


@pytest.mark.parametrize("name", [name for name in LOGITS if name != "infinite"])
def test_log_odds_have_the_spectrum_of_numpy(name: str) -> None:
    z = LOGITS[name]
    happened = RNG.random(len(z)) < chance(z)
    edges = np.linspace(0.5, 1.0, 21)
    for by in ({}, {"keys": 20, "edges": edges, "confidence": True}):
        assert_same_spectrum(z, happened, logits=True, **by)


def lattices() -> dict[str, np.ndarray]:
    """Return probabilities of the kinds that people round to, or make from round log-odds."""
    round_odds = LOWEST[(LOWEST > 0.0) & (LOWEST < 11.0)]
    predictions = {
        "hundredths": np.arange(1, 100) / 100,
        "thousandths": np.arange(1, 1000) / 1000,
        "dyadic": np.arange(1, 4096) / 4096,
        "four fifths": np.full(100, 0.8),
        "float32 hundredths": (np.arange(1, 100) / 100).astype(np.float32),
        "float32 of round log-odds": (1.0 / (1.0 + np.exp(-round_odds))).astype(np.float32),
    }
    ways = {
        "1 / (1 + exp(-z))": 1.0 / (1.0 + np.exp(-round_odds)),
        "1 / (1 + exp(z))": 1.0 / (1.0 + np.exp(round_odds)),
        "exp(-z) / (1 + exp(-z))": np.exp(-round_odds) / (1.0 + np.exp(-round_odds)),
        "1/2 + tanh(z/2)/2": 0.5 + 0.5 * np.tanh(0.5 * round_odds),
    }
    for way, p in ways.items():
        predictions[way] = np.concatenate([p, np.nextafter(p, 0.0), np.nextafter(p, 1.0)])
    return predictions


@pytest.mark.parametrize("name", lattices())
def test_lattices_fall_into_the_same_cells(name: str) -> None:
    p = lattices()[name]
    for happened in (np.ones(len(p), dtype=bool), np.arange(len(p)) % 2 == 0):
        assert_same_spectrum(p, happened, logits=False)


def test_probabilities_made_from_round_log_odds_are_in_the_cell_that_begins_there() -> None:
    """Although half of them have log-odds whose last digits fall short of it."""
    cells = np.flatnonzero((LOWEST > 0.0) & (LOWEST < 11.0))
    odds = kernel.odds_of_probability(1.0 / (1.0 + np.exp(LOWEST[cells])))
    assert (LOWEST[cells] > odds.L).any()
    assert cell_numbers(odds.L).tolist() == cells.tolist()


def test_round_log_odds_fall_into_the_same_cells() -> None:
    powers = 2.0 ** np.arange(-30.0, 40.0)
    edges = np.concatenate([LOWEST, np.nextafter(LOWEST, np.inf), np.nextafter(LOWEST[1:], 0.0), LOWEST * (1 - 1e-11)])
    for z in (powers, -powers, edges, -edges, powers.astype(np.float32), LOWEST.astype(np.float32)):
        assert_same_spectrum(z, np.arange(len(z)) % 3 == 0, logits=True)
    assert cell_numbers(LOWEST).tolist() == list(range(CELLS))


def test_the_last_cell_keeps_the_mean_alone() -> None:
    z = np.array([2.0**20, -(2.0**20) - 0.5, 1e200, 1e300, 3.0])
    moments = assert_same_spectrum(z, np.array([True, True, True, False, True]), logits=True)
    assert moments[-1, 0, 1].tolist() == [2.0, 1e200, 0.0, 0.0]
    assert moments[-1, 1, 0].tolist() == [1.0, 0.5, 0.0, 0.0]
    assert moments[-1, 1, 1].tolist() == [1.0, 1e300, 0.0, 0.0]


@pytest.mark.parametrize("bins", [1, 10, 40])
def test_certain_and_impossible_rows_are_in_no_cell(bins: int) -> None:
    p = RNG.choice([0.0, 1.0, 0.5, 0.3], 5000)
    happened = RNG.random(5000) < 0.5
    edges = np.linspace(0.0, 1.0, bins + 1)
    moments = assert_same_spectrum(p, happened, logits=False, keys=bins, edges=edges)
    assert moments[..., 0].sum() == ((p > 0.0) & (p < 1.0)).sum()


def test_many_equal_rows_keep_their_digits() -> None:
    needs_kernel()
    n = 3_000_000
    sums = bernoulli_sums(np.full(n, 0.8), np.ones(n, dtype=bool), spectrum=True)
    assert sums is not None
    assert sums.spectrum is not None
    (cell,) = cell_numbers(np.array([math.log(4.0)]))
    d = math.log(4.0) - CENTRES[cell]
    for power in range(4):
        assert sums.spectrum[cell, 0, 1, power] == pytest.approx(n * d**power, rel=1e-12)


def test_the_spectrum_is_there_when_it_is_asked_for_without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_kernel()
    p, happened = np.array([0.2, 0.7]), np.array([False, True])
    for given, there in (({}, False), ({"spectrum": True}, True), ({"spectrum": True, "weight": np.ones(2)}, False)):
        sums = bernoulli_sums(p, happened, **given)
        assert sums is not None
        assert (sums.spectrum is not None) == there
    monkeypatch.setattr(compiled, "_module", None)
    assert bernoulli_sums(p, happened, spectrum=True) is None


def unaligned(array: np.ndarray) -> np.ndarray:
    """Return an equal array that begins at an odd address."""
    room = np.zeros(array.nbytes + 1, dtype=np.uint8)
    odd = room[1:].view(array.dtype).reshape(array.shape)
    odd[...] = array
    assert not odd.flags.aligned or array.itemsize == 1
    return odd


def field(array: np.ndarray) -> np.ndarray:
    """Return an equal array that is a field of a structured one."""
    rows = np.zeros(len(array), dtype=[("mark", np.int8), ("value", array.dtype, array.shape[1:])])
    rows["value"] = array
    return rows["value"]


@pytest.mark.parametrize("moved", [unaligned, field])
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.proof)])
@pytest.mark.parametrize("form", [pytest.param("y_prob", marks=pytest.mark.proof), "logits"])
def test_arrays_may_lie_anywhere_in_memory(moved: object, dtype: type, form: str) -> None:
    assert callable(moved)
    p = RNG.random(5000).astype(dtype)
    y, weight, by = RNG.random(5000) < p, RNG.random(5000), RNG.integers(0, 3, 5000)
    plain = safecal.evaluate(y, **{form: p}, sample_weight=weight, by=by)
    assert safecal.evaluate(moved(y), **{form: moved(p)}, sample_weight=moved(weight), by=moved(by)) == plain
    z, classes = RNG.normal(0.0, 2.0, (300, 4)).astype(dtype), RNG.integers(0, 4, 300)
    one, other = (
        safecal.categorical(labels, logits=logits).score()
        for labels, logits in ((classes, z), (moved(classes), moved(z)))
    )
    assert one.excess.tolist() == other.excess.tolist()


def test_the_kernel_itself_takes_them_or_refuses_them() -> None:
    needs_kernel()
    p, index, weight = RNG.random(2000), RNG.integers(0, 3, 2000), RNG.random(2000)
    y = RNG.random(2000) < p
    one = bernoulli_sums(p, y, keys=3, index=index, weight=weight)
    other = bernoulli_sums(unaligned(p), unaligned(y), keys=3, index=unaligned(index), weight=unaligned(weight))
    assert one is not None
    assert other is not None
    for name, sums in one.by_key.items():
        assert sums.tolist() == other.by_key[name].tolist(), name
    column = compiled.key_sums(unaligned(p), unaligned(index), 3)
    assert column is not None
    assert column.tolist() == compiled.key_sums(p, index, 3).tolist()  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="values must be aligned"):
        compiled._module.binary_sums(2000, 1, 8, 0, 0, unaligned(p), y, None, None, None, np.zeros((1, 13)), None)


@pytest.mark.parametrize("byte", [2, 128, 255])
def test_every_true_is_true(byte: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy writes 0 and 1; a buffer read as bool may hold other bytes."""
    p = RNG.random(3000)
    y = RNG.random(3000) < p
    odd = np.frombuffer((y * np.uint8(byte)).tobytes(), dtype=bool)
    quick, _ = both(monkeypatch, p, y)
    strange, _ = both(monkeypatch, p, odd)
    all_agree(strange, quick, p)
    assert strange.summary == quick.summary
    assert_same_spectrum(p, y, logits=False)
    a, b = (bernoulli_sums(p, given, spectrum=True) for given in (y, odd))
    assert a is not None
    assert b is not None
    assert np.array_equal(np.asarray(a.spectrum), np.asarray(b.spectrum))
