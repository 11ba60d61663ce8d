"""`assert_family_laws` names the law that a family breaks; `assert_safe` fails unless a model is shown to be safe."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import safecal
from safecal import Predictions, Scored, Summary
from safecal.errors import UnavailableError
from safecal.families.family import Cumulants
from safecal.maps import Temperature
from safecal.testing import assert_family_laws, assert_safe

SUPPORT = 200  # of the geometric distribution below: the rest weighs less than 1e-17


@dataclass(frozen=True, eq=False, repr=False)
class Geometric(Predictions):
    """A family of a third party: the number of failures before a success of probability r."""

    family: ClassVar[str] = "geometric"

    y: np.ndarray
    r: np.ndarray

    @property
    def n(self) -> int:
        return len(self.y)

    def _score(self, rows: Any) -> Scored:
        y, r = self.y[rows], self.r[rows]
        step = -np.log1p(-r)
        mean = (1 - r) / r
        variance = (1 - r) / r**2
        third = (1 - r) * (2 - r) / r**3
        surprisal = y * step - np.log(r)
        entropy = mean * step - np.log(r)
        return Scored((y - mean) * step, variance * step**2, third * step**3, surprisal, entropy)

    def _partition(self, rows: Any) -> Callable[[float], Cumulants]:
        r = self.r[rows]
        step = -np.log1p(-r)

        def at(beta: float) -> Cumulants:
            if beta <= 0:
                raise UnavailableError("no sum")
            u = np.exp(-beta * step)
            return Cumulants(
                beta * np.log(r) - np.log1p(-u),
                np.log(r) - step * u / (1 - u),
                step**2 * u / (1 - u) ** 2,
                -(step**3) * u * (1 + u) / (1 - u) ** 3,
            )

        return at


R = np.array([0.3, 0.5, 0.9, 0.25, 0.7, 0.41, 0.6, 0.33, 0.8])
Y = np.array([0, 3, 1, 7, 0, 2, 1, 1, 0])
GOOD = Geometric(Y, R)
ALL = [Geometric(np.full(len(R), k), R) for k in range(SUPPORT)]


def test_a_right_family_of_a_third_party_passes() -> None:
    assert_family_laws(GOOD)
    assert_family_laws(GOOD, outcomes=ALL)


def test_its_temperature_is_not_applied_to_probabilities_of_classes() -> None:
    rng = np.random.default_rng(0)
    r = rng.uniform(0.2, 0.8, 60)
    model = Temperature().fit_predictions(Geometric(rng.geometric(r) - 1, r))
    with pytest.raises(UnavailableError, match="geometric predictions does not apply to classes"):
        model.apply([0.5])
    with pytest.raises(UnavailableError, match="a map does not apply to geometric predictions"):
        model.apply_predictions(GOOD)
    with pytest.raises(UnavailableError, match="a map does not apply to geometric predictions"):
        GOOD.with_logits(R)


def test_it_can_be_evaluated_like_any_other() -> None:
    result = GOOD.evaluate(by=Y > 0)
    assert result.family == "geometric"
    assert result.bins is None
    assert result.groups.keys == (False, True)
    assert result.ecd == pytest.approx(GOOD.score().excess.mean())
    assert "geometric" in repr(result)
    with pytest.raises(ValueError, match=r"^`bins` do not exist for geometric predictions"):
        GOOD.evaluate(bins=10)


class Broken(Geometric):
    """A family whose columns are spoiled on the way out."""

    __slots__ = ()
    spoil: ClassVar[Callable[[Scored], Scored]] = staticmethod(lambda scored: scored)

    def _score(self, rows: Any) -> Scored:
        return type(self).spoil(super()._score(rows))


def _broken(spoil: Callable[[Scored], Scored]) -> type[Broken]:
    return type("Broken", (Broken,), {"spoil": staticmethod(spoil)})


def _first(column: np.ndarray, value: float) -> np.ndarray:
    spoiled = column.copy()
    spoiled[0] = value
    return spoiled


SPOILED: dict[str, tuple[Callable[[Scored], Scored], str]] = {
    "excess is NaN": (lambda s: replace(s, excess=_first(s.excess, np.nan)), "excess is never NaN"),
    "varentropy is negative": (lambda s: replace(s, varentropy=-s.varentropy), "varentropy is not negative"),
    "varentropy is wrong": (lambda s: replace(s, varentropy=1.01 * s.varentropy), "A''(1) = varentropy"),
    "third cumulant is wrong": (
        lambda s: replace(s, third_cumulant=1.01 * s.third_cumulant),
        "A'''(1) = -third cumulant",
    ),
    "entropy is wrong": (lambda s: replace(s, entropy=s.entropy + 0.01), "excess = surprisal - entropy"),
    "entropy and surprisal are wrong": (
        lambda s: replace(s, entropy=s.entropy + 0.01, surprisal=s.surprisal + 0.01),
        "A'(1) = -entropy",
    ),
    "surprisal is absent": (lambda s: replace(s, surprisal=None), "surprisal and entropy exist together"),
    "excess depends on the block": (
        lambda s: replace(s, excess=s.excess + 0.1 * (len(s) == 1), surprisal=s.surprisal + 0.1 * (len(s) == 1)),
        "blocks of any size agree",
    ),
    "varentropy depends on the block": (
        lambda s: replace(s, varentropy=s.varentropy + 0.1 * (len(s) == 1)),
        "blocks of any size agree",
    ),
    "a row is lost": (
        lambda s: Scored(*(c if c is None else c[1:] for c in (s.excess, s.varentropy, s.third_cumulant))),
        "score() has one row for each prediction",
    ),
}


@pytest.mark.parametrize("fault", SPOILED)
def test_a_broken_family_is_named(fault: str) -> None:
    spoil, law = SPOILED[fault]
    with pytest.raises(AssertionError) as caught:
        assert_family_laws(_broken(spoil)(Y, R))
    assert str(caught.value).startswith(f"family law broken: {law}")


def _shifted(s: Scored) -> Scored:
    return replace(s, excess=s.excess + 0.01, entropy=s.entropy - 0.01)


class Unpartitioned(Broken):
    __slots__ = ()

    def _partition(self, rows: Any) -> Any:
        raise UnavailableError("none")


ENUMERATED: dict[str, tuple[Callable[[Scored], Scored], str]] = {
    "mean": (_shifted, "mean excess is 0 under calibration"),
    "variance": (lambda s: replace(s, varentropy=1.01 * s.varentropy), "its variance is the varentropy"),
    "third cumulant": (
        lambda s: replace(s, third_cumulant=1.01 * s.third_cumulant),
        "its third cumulant is the third cumulant",
    ),
}


@pytest.mark.parametrize("fault", ENUMERATED)
def test_enumeration_finds_what_no_log_partition_would(fault: str) -> None:
    spoil, law = ENUMERATED[fault]
    family = type("Broken", (Unpartitioned,), {"spoil": staticmethod(spoil)})
    assert_family_laws(family(Y, R))  # without outcomes nothing can be seen
    with pytest.raises(AssertionError, match=f"^family law broken: {law}$"):
        assert_family_laws(family(Y, R), outcomes=[family(np.full(len(R), k), R) for k in range(SUPPORT)])


def test_outcomes_that_are_not_all_there_are_are_named() -> None:
    with pytest.raises(AssertionError, match=r"^family law broken: the outcomes are all there are$"):
        assert_family_laws(GOOD, outcomes=ALL[:3])


def test_a_log_partition_that_is_not_normalised_is_named() -> None:
    class Off(Geometric):
        __slots__ = ()

        def _partition(self, rows: Any) -> Any:
            good = super()._partition(rows)
            return lambda beta: good(beta)._replace(value=good(beta).value + 0.01)

    with pytest.raises(AssertionError, match=r"^family law broken: A\(1\) = 0$"):
        assert_family_laws(Off(Y, R))


@pytest.mark.parametrize(
    ("spoil", "law"),
    [
        (lambda s: replace(s, n=s.n + 1), "counts add up to n"),
        (lambda s: replace(s, sum_excess=s.sum_excess + 0.1), "summaries merge"),
    ],
)
def test_a_summary_of_its_own_that_loses_something_is_named(spoil: Callable[[Summary], Summary], law: str) -> None:
    class Lossy(Geometric):
        __slots__ = ()

        def summary(self, weight: Any = None) -> Summary:
            return spoil(super().summary(weight))

    with pytest.raises(AssertionError, match=f"^family law broken: {law}"):
        assert_family_laws(Lossy(Y, R))


def test_impossible_outcomes_obey_the_laws() -> None:
    p = [0.0, 1.0, 0.5]
    both = [safecal.bernoulli([y] * 3, p) for y in (0, 1)]
    assert_family_laws(safecal.bernoulli([1, 0, 1], p), outcomes=both)


def _outcomes(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(21)
    log_odds = rng.normal(0, 2, n)
    return rng.random(n) < 1 / (1 + np.exp(-log_odds)), log_odds


def test_a_safe_model_passes() -> None:
    y, log_odds = _outcomes(2000)
    assert_safe(y, 1 / (1 + np.exp(-log_odds)))
    assert_safe(y, logits=log_odds, threshold=0.2, by=np.arange(2000) % 2)


@pytest.mark.parametrize(("n", "scale", "decision"), [(2000, 3.0, "UNSAFE"), (10, 1.0, "UNDETERMINED")])
def test_another_decision_fails_with_its_reason(n: int, scale: float, decision: str) -> None:
    y, log_odds = _outcomes(n)
    with pytest.raises(AssertionError) as caught:
        assert_safe(y, logits=scale * log_odds)
    assert str(caught.value) == str(safecal.evaluate(y, logits=scale * log_odds).verdict)
    assert str(caught.value).startswith(f"{decision}: ")


def test_a_group_beyond_its_limit_fails_a_test_of_the_model() -> None:
    _, logits = _outcomes(20_000)
    few = np.arange(20_000) % 40 == 0
    logits = np.where(few, np.clip(logits, -1.5, 1.5), logits)
    y = np.random.default_rng(1).random(20_000) < 1 / (1 + np.exp(-np.where(few, 0.2, 1.0) * logits))
    assert_safe(y, logits=logits, bins=None)
    with pytest.raises(AssertionError, match="in group True"):
        assert_safe(y, logits=logits, bins=None, by=few)
