"""Words, units and rows of a family live on the family: results and documents find them by its name."""

from typing import ClassVar

import numpy as np
import pytest

import safecal
from safecal.errors import MergeError, UnavailableError
from safecal.families import FAMILIES, Predictions, family_named
from safecal.families.family import FamilyWords, Partition
from safecal.judge.display import kind_of
from safecal.report.words import temperature_in_words

CLASSES = ("bernoulli", "categorical", "intervals", "quantiles")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_found_by_its_name(name: str) -> None:
    family = family_named(name)
    assert family.family == name
    assert family.discrete == (name in CLASSES)
    assert family.words.kind
    compile(family.words.call.format("bins=5"), name, "eval")


def test_a_family_of_your_own_brings_its_words() -> None:
    class Angles(Predictions):
        family: ClassVar[str] = "angles of a test"
        words: ClassVar[FamilyWords] = FamilyWords(
            "directions", "concentrations", "large", "the concentration that it states"
        )

        @property
        def n(self) -> int:
            return 0

        def _score(self, rows: object) -> safecal.Scored:
            raise NotImplementedError

        def _partition(self, rows: slice) -> Partition:
            raise NotImplementedError

    assert family_named(Angles.family) is Angles
    assert temperature_in_words(Angles.family, 2.0) == "its concentrations are about 2 times too large"
    assert family_named("no such family") is Predictions


def test_a_density_is_not_said_to_have_logits(rng: np.random.Generator) -> None:
    stats = pytest.importorskip("scipy.stats")
    result = safecal.density(1.6 * rng.standard_normal(400), stats.norm(0.0, 1.0)).evaluate()
    assert kind_of(result.tally) == "densities"
    diagnosis = result.verdict.diagnosis
    assert diagnosis is not None
    assert "its temperature is about" in diagnosis.evidence
    assert "logits" not in str(diagnosis)


def test_rows_of_another_form_are_not_put_together() -> None:
    probabilities = safecal.bernoulli([1, 0], [0.9, 0.2])
    logits = safecal.bernoulli([1, 0], logits=[2.0, -1.0])
    for parts in ([probabilities, logits], [logits, probabilities]):
        with pytest.raises(MergeError, match="of one form"):
            type(parts[0]).concatenate(parts)
    both = type(logits).concatenate([logits, logits.take(np.array([1]))])
    assert both.what_happened is not None
    assert both.what_happened.tolist() == [True, False, False]


def test_a_family_whose_rows_go_together_says_so() -> None:
    stats = pytest.importorskip("scipy.stats")
    density = safecal.density([0.1, 0.2], stats.norm(0.0, 1.0))
    with pytest.raises(UnavailableError, match="one map for all rows"):
        density.take(np.array([0]))
    assert type(density).concatenate([density]) is density
    with pytest.raises(MergeError, match="of one form"):
        type(density).concatenate([density, density])
    assert density.what_happened is None
