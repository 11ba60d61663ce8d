"""How many rows would decide: what is promised, and how often it comes out so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import safecal
from safecal.cli import main
from safecal.errors import EmptyError, OptionError, RangeError, UnavailableError

KINDS = {"N(0, 2)": (0.0, 2.0), "N(4, 1)": (4.0, 1.0), "N(0, .5)": (0.0, 0.5), "rare": (-6.0, 1.5)}


def _drawn(kind: str, n: int, seed: int) -> safecal.Predictions:
    rng = np.random.default_rng(seed)
    z = rng.normal(*KINDS[kind], n)
    return safecal.bernoulli(rng.random(n) < special.expit(z), logits=z)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
def test_a_calibrated_model_is_safe_on_average_with_about_that_probability(kind: str) -> None:
    needed = safecal.rows_needed(_drawn(kind, 2000, 0)).on_average
    assert needed is not None
    safe = [_drawn(kind, needed, 1 + k).evaluate().verdict.on_average == "SAFE" for k in range(100)]
    assert 0.6 <= np.mean(safe) <= 0.95
    half = [_drawn(kind, needed // 2, 1 + k).evaluate().verdict.on_average == "SAFE" for k in range(50)]
    assert np.mean(half) < 0.6


def test_outcomes_of_the_example_do_not_matter() -> None:
    z = np.random.default_rng(0).normal(0, 2, 300)
    answers = {str(safecal.rows_needed(safecal.bernoulli(np.full(300, y), logits=z))) for y in (0, 1)}
    assert len(answers) == 1


def test_an_example_ten_times_as_long_says_the_same() -> None:
    z = np.random.default_rng(0).normal(0, 2, 300)
    one = safecal.rows_needed(safecal.bernoulli(z > 0, logits=z))
    ten = safecal.rows_needed(safecal.bernoulli(np.tile(z, 10) > 0, logits=np.tile(z, 10)))
    assert (one.on_average, one.in_places) == (ten.on_average, ten.in_places)
    assert (one.n, ten.n) == (300, 3000)


def test_stricter_limits_and_more_power_need_more_rows() -> None:
    example = _drawn("N(0, 2)", 500, 0)
    plain, strict, sure = (
        safecal.rows_needed(example, **options) for options in ({}, {"threshold": 0.03}, {"power": 0.95})
    )
    assert plain.on_average is not None
    assert strict.on_average is not None
    assert sure.on_average is not None
    assert plain.on_average < sure.on_average < strict.on_average
    assert safecal.rows_needed(example.evaluate(by=np.arange(500) % 2)) == plain


def test_every_family_that_has_a_temperature() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, (400, 5))
    classes = safecal.rows_needed(safecal.categorical((z + rng.gumbel(size=z.shape)).argmax(1), logits=z))
    assert 50 < (classes.on_average or 0) < 1000
    x = rng.normal(0, 1, (200, 2))
    states = safecal.rows_needed(safecal.gaussian(x, np.zeros_like(x), std=1.0))
    assert 100 < (states.on_average or 0) < 1000
    weighted = _drawn("N(0, 2)", 500, 0).tally(sample_weight=rng.gamma(1.0, 1.0, 500))
    even = safecal.rows_needed(_drawn("N(0, 2)", 500, 0)).on_average
    assert (safecal.rows_needed(weighted).on_average or 0) > 1.3 * (even or 0)


def test_where_no_number_is_enough() -> None:
    certain = safecal.rows_needed(safecal.bernoulli([0, 1, 1], [0.0, 0.5, 0.9]))
    assert certain.on_average is None
    assert "no number of rows is enough, to call it SAFE" in str(certain)
    alike = safecal.rows_needed(safecal.bernoulli([0, 1], [0.8, 0.8]))
    assert alike.in_places is None
    assert str(alike).endswith("With a probability of 80 %.")


def test_even_odds_are_safe_at_once() -> None:
    assert (safecal.rows_needed(safecal.bernoulli([0, 1], [0.5, 0.5])).on_average or 99) < 10


def test_what_is_refused() -> None:
    with pytest.raises(OptionError, match="must hold independent rows, without clusters"):
        safecal.rows_needed(_drawn("rare", 40, 0).tally(cluster=np.arange(40) // 4))
    with pytest.raises(OptionError, match="must be predictions, a Tally or an Evaluation; got list"):
        safecal.rows_needed([0.1, 0.2])  # type: ignore[arg-type]
    with pytest.raises(EmptyError):
        safecal.rows_needed(safecal.Tally())
    with pytest.raises(RangeError, match="power"):
        safecal.rows_needed(_drawn("rare", 10, 0), power=1.0)
    flat = safecal.density([0.5, 0.2], log_density=lambda x: -x * x, sampler=lambda rng: rng.normal(size=2))
    with pytest.raises(UnavailableError):
        safecal.rows_needed(flat)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(200)
    file = tmp_path / "pilot.csv"
    rows = zip((rng.random(200) < p).astype(int).tolist(), p.tolist(), strict=True)
    file.write_text("label,score\n" + "\n".join(f"{y},{q!r}" for y, q in rows))
    columns = ["--y", "label", "--prob", "score"]
    assert main(["plan", str(file), *columns]) == 0
    said = capsys.readouterr().out
    assert said.startswith("On average: ")
    assert "The sample has 200." in said
    assert main(["plan", str(file), *columns, "--json", "--threshold", "0.05", "--power", "0.9"]) == 0
    document = json.loads(capsys.readouterr().out)
    wanted = safecal.rows_needed(safecal.bernoulli(rng.random(200) < p, p), threshold=0.05, power=0.9)
    assert document["on_average"] == wanted.on_average
    assert document["in_places"] == wanted.in_places
