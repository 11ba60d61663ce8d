"""Do the published cells fit together?"""

from dataclasses import replace

import numpy as np
import pytest

from safecal.paper import (
    ColumnCheck,
    check_column,
    checks_text,
    published_table1,
    published_table2,
    table1,
)

BLOCKS = (*published_table1(), *published_table2())

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def checks() -> dict[str, ColumnCheck]:
    return {column.name: check_column(column) for column in BLOCKS}


def test_every_block_is_possible(checks: dict[str, ColumnCheck]) -> None:
    assert all(one.possible and one.signs and one.sums and not one.impossible_bins for one in checks.values())
    assert max(one.misfit for one in checks.values()) < 1e-9
    text = checks_text(checks.values())
    assert text.count("yes") == 12
    assert max(map(len, text.splitlines())) <= 100


def test_shares_of_the_outer_bins(checks: dict[str, ColumnCheck]) -> None:
    assert checks["ε ~ N(0, 0.5²)"].outer == pytest.approx((0.569, 0.587), abs=0.0006)
    assert checks["ε ~ N(0, 2²)"].outer == pytest.approx((0.855, 0.861), abs=0.0006)
    assert checks["ε = 0"].outer[1] > 0.8  # without noise the sums tell little
    rows = table1().rows
    for name, counts in zip(list(checks)[:3], rows, strict=True):
        shares = np.array(counts) / 10_000
        assert checks[name].outer[0] <= shares[0] + shares[9] <= checks[name].outer[1]
        assert (checks[name].shares[:, 0] <= shares).all()
        assert (shares <= checks[name].shares[:, 1]).all()


def test_shares_of_positive_labels_hold_those_of_the_draws(checks: dict[str, ColumnCheck]) -> None:
    for cells, name in zip(table1().cells, checks, strict=False):
        low, high = checks[name].observed.T
        gap = cells[1, :10]
        assert (low >= gap - 1e-3).all()  # observed is at least the gap, since predictions are not negative
        assert (high - low < 0.1 + 1e-3).all()  # and the predictions of a bin span 0.1


def test_resnet_is_known_almost_exactly(checks: dict[str, ColumnCheck]) -> None:
    resnet = checks["ResNet18"]
    assert resnet.observed[[6, 7]].min() > 0.9999
    assert resnet.shares[[0, 6, 7, 9]].mean(axis=1).sum() == pytest.approx(1.0, abs=0.01)
    assert np.ptp(resnet.shares[[0, 6, 7, 9]], axis=1).max() < 0.02
    assert np.isnan(resnet.shares[[1, 2, 3, 4, 5, 8]]).all()
    assert checks["RoBERTa"].observed[5].max() < 0.001  # bin 6 holds negative labels only


def test_a_block_that_does_not_fit_is_seen() -> None:
    column = published_table1()[1]
    sums = replace(column, ecd=(*column.ecd[:10], "2.2901"))  # more than any bin has
    assert not check_column(sums).possible
    assert check_column(sums).misfit > 0.1
    assert np.isnan(check_column(sums).outer).all()
    signs = replace(column, esce=("0.2195", *column.esce[1:]))
    assert not check_column(signs).signs
    bins = replace(column, ecd=(*column.ecd[:5], "0.5", *column.ecd[6:]))  # no row of bin 6 has so much
    assert check_column(bins).impossible_bins == (6,)
    text = checks_text([check_column(sums), check_column(bins)])
    assert "off by" in text
    assert "  6" in text
