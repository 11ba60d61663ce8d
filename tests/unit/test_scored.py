"""Per-row columns."""

import dataclasses

import numpy as np
import pytest

import safecal
from safecal import Scored


def test_columns_are_as_long_as_the_data_and_frozen() -> None:
    scored = safecal.bernoulli([0, 1, 1], [0.2, 0.7, 0.9]).score()
    assert len(scored) == 3
    for field in dataclasses.fields(Scored):
        column = getattr(scored, field.name)
        assert column is None or len(column) == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        scored.excess = np.zeros(3)


def test_the_text_names_the_columns_that_exist() -> None:
    assert repr(safecal.gaussian([1.0], [0.0], std=1.0).score()) == (
        "Scored(1 rows: excess, varentropy, third_cumulant, surprisal, entropy)"
    )


def test_impossible_marks_the_rows_of_probability_zero() -> None:
    scored = safecal.bernoulli([1, 1, 0, 0], [0.0, 1.0, 0.0, 1.0]).score()
    assert scored.impossible.tolist() == [True, False, False, True]
    assert scored.excess.tolist() == [np.inf, 0.0, 0.0, np.inf]
    assert scored.surprisal.tolist() == [np.inf, 0.0, 0.0, np.inf]
    assert scored.entropy.tolist() == [0.0] * 4


def test_concatenate_puts_blocks_below_each_other() -> None:
    predictions = safecal.categorical([0, 1, 1], [[0.2, 0.8], [0.7, 0.3], [0.5, 0.5]])
    joined = Scored.concatenate(list(predictions.blocks(1)))
    whole = predictions.score()
    for field in dataclasses.fields(Scored):
        a, b = getattr(joined, field.name), getattr(whole, field.name)
        assert (a is None and b is None) or np.array_equal(a, b), field.name
