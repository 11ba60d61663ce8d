"""What every family offers."""

import numpy as np
import pytest

import safecal
from safecal import Predictions

SOME: dict[str, Predictions] = {
    "bernoulli": safecal.bernoulli([0, 1, 1], [0.2, 0.7, 0.9]),
    "categorical": safecal.categorical([0, 1, 2], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]),
    "gaussian": safecal.gaussian([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], std=1.0),
}


@pytest.mark.parametrize("family", SOME)
def test_predictions_know_their_family_and_size(family: str) -> None:
    predictions = SOME[family]
    assert isinstance(predictions, Predictions)
    assert predictions.family == family
    assert predictions.n == 3
    assert repr(predictions) == f"{family} predictions: 3 rows"
    assert repr(predictions.take(np.array([1]))) == f"{family} predictions: 1 row"
    assert predictions.ecd == predictions.summary().ecd


@pytest.mark.parametrize("family", SOME)
def test_blocks_have_the_size_that_was_asked_for(family: str) -> None:
    assert [len(block) for block in SOME[family].blocks(2)] == [2, 1]
    assert [len(block) for block in SOME[family].blocks()] == [3]


@pytest.mark.parametrize("family", SOME)
def test_families_are_final_and_frozen(family: str) -> None:
    with pytest.raises((AttributeError, TypeError)):
        SOME[family].values = np.zeros(3)
    assert getattr(type(SOME[family]), "__final__", False)


def test_the_protocol_is_abstract() -> None:
    with pytest.raises(TypeError):
        Predictions()


@pytest.mark.parametrize("family", SOME)
@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
def test_the_log_partition_of_all_rows_is_that_of_each_row(family: str, beta: float) -> None:
    for deriv in range(4):
        assert SOME[family].log_partition(beta, deriv=deriv).shape == (3,)
    assert SOME[family].log_partition(1.0) == pytest.approx([0.0] * 3, abs=1e-12)
