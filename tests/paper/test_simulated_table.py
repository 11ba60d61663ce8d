"""Table 1, made again."""

import numpy as np
import pytest

import safecal
from safecal.errors import OptionError
from safecal.paper import replicate_table1, simulate, table1
from safecal.paper.cells import cells_of, cells_of_table, outer_share
from safecal.paper.simulated_table import simulations


def test_from_the_draws_of_the_paper_every_cell_agrees() -> None:
    table = table1()
    assert table.agreeing == 99
    text = repr(table)
    assert text.count("33 of 33 cells agree to the printed digits.") == 3
    assert text.endswith("In all: 99 of 99 cells agree to the printed digits.")
    assert [sum(rows) for rows in table.rows] == [10_000] * 3


def test_every_published_cell_is_shown_beside_ours() -> None:
    table = table1(seed=3)
    lines = [line.split() for line in repr(table).splitlines()]
    for column, cells in zip(table.published, table.cells, strict=True):
        for k in range(11):
            pairs = [
                x for m in range(3) for x in (column.printed[m][k], f"{cells[m, k]:.4f}".replace("-0.0000", "0.0000"))
            ]
            assert any(line[-6:] == pairs for line in lines), (column.name, k)


@pytest.mark.parametrize("noise_on", ["both", "logit", "probability"])
def test_the_same_seed_gives_the_same_table(noise_on: str) -> None:
    first = repr(table1(seed=11, noise_on=noise_on))
    assert repr(table1(seed=11, noise_on=noise_on)) == first
    assert repr(table1(seed=12, noise_on=noise_on)) != first
    assert max(map(len, first.splitlines())) <= 100


@pytest.mark.proof
def test_without_noise_the_published_sums_are_within_monte_carlo_error() -> None:
    replications = replicate_table1(300, noise_on="logit", seed=1)
    z = (replications.published[0].values - replications.mean[0]) / replications.sd[0]
    assert np.abs(z[:, -1]).max() < 2.0
    assert replications.mean[0][:, -1] == pytest.approx([0.0079, 0.0, 0.0], abs=0.001)
    assert replications.within[0].all()
    for seed in range(5):
        cells = table1(seed=seed).cells[0]
        assert np.abs(cells[:, -1] - [0.0077, 0.0003, 0.0057]).max() < 0.02


@pytest.mark.proof
def test_the_process_behind_the_table_explains_it_and_the_text_does_not() -> None:
    both, logit = replicate_table1(200), replicate_table1(200, noise_on="logit")
    assert sum(int(within.sum()) for within in both.within) >= 97
    assert [int(within.sum()) for within in logit.within][1:] < [10, 10]
    assert logit.mean[1][[0, 2], -1] == pytest.approx([0.010, 0.013], abs=0.002)  # published: .1702 and 1.2901
    assert logit.mean[2][[0, 2], -1] == pytest.approx([0.081, 0.212], abs=0.005)  # published: .4042 and 4.2405
    probability = replicate_table1(200, noise_on="probability")
    assert probability.mean[1][[0, 2], -1] == pytest.approx([0.143, 1.02], abs=0.01)
    assert probability.mean[2][[0, 2], -1] == pytest.approx([0.392, 4.07], abs=0.02)


@pytest.mark.proof
@pytest.mark.no_cover
def test_a_thousand_tables() -> None:
    replications = replicate_table1(1000)
    assert all(within.all() for within in replications.within)
    assert repr(replications).endswith("In all: 99 of 99 published cells lie inside.")


def test_replications_are_shown() -> None:
    ticks: list[int] = []
    replications = replicate_table1(20, n=2000, noise_on="logit", tick=lambda: ticks.append(1))
    text = repr(replications)
    assert len(ticks) == 60
    assert max(map(len, text.splitlines())) <= 100
    assert "20 times" in text
    assert "1.2901*" in text
    assert repr(replicate_table1(20, n=2000, noise_on="logit")) == text
    assert "N/A" in repr(replicate_table1(2, n=2))  # bins that are empty every time
    with pytest.raises(OptionError, match="replications"):
        replicate_table1(1)


@pytest.mark.parametrize("noise_on", ["both", "logit"])
def test_fast_cells_are_those_of_the_library(noise_on: str) -> None:
    for sd in (0.0, 0.5, 2.0):
        rows = simulate(3000, sd=sd, noise_on=noise_on, rng=8)
        table = safecal.evaluate(rows.labels, logits=rows.logits).bins
        assert table is not None
        np.testing.assert_allclose(cells_of(rows.labels, rows.y_prob, rows.logits), cells_of_table(table), atol=1e-12)
        outer = (table.summaries[0].n + table.summaries[9].n) / 3000
        assert outer_share(rows.y_prob) == pytest.approx(outer)
    empty = cells_of(np.array([1, 0]), np.array([0.05, 0.1]))
    assert np.isnan(empty[:, 2:10]).all()
    assert not np.isnan(empty[:, :2]).any()


def test_three_simulations() -> None:
    assert [rows.sd for rows in simulations(1, n=50)] == [0.0, 0.5, 2.0]
