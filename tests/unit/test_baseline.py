"""No worse than the last release: what rose, where, and by how much."""

import json
import math

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Baseline
from safecal.errors import InputError


def _evaluated(scale: float, n: int = 6000, seed: int = 0, **more: object) -> safecal.Evaluation:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return safecal.evaluate(rng.random(n) < special.expit(z), logits=scale * z, **more)


@pytest.mark.parametrize(
    ("before", "now", "n", "decision"),
    [
        (1.0, 1.0, 20_000, "NOT WORSE"),
        (1.0, 1.4, 6000, "WORSE"),
        (1.0, 1.0, 100, "UNCLEAR"),
        (1.4, 1.0, 6000, "NOT WORSE"),
    ],
)
def test_the_decision(before: float, now: float, n: int, decision: str) -> None:
    baseline = Baseline.of(_evaluated(now, n, 1), _evaluated(before, n, 2))
    assert baseline.decision == decision
    assert baseline.reason.endswith("The intervals hold together at 95 % confidence.")
    assert Baseline.from_dict(json.loads(json.dumps(baseline.to_dict(), allow_nan=False))) == baseline


def test_the_same_evaluation_is_never_worse() -> None:
    one = _evaluated(1.5, 500)
    baseline = Baseline.of(one, one)
    assert baseline.decision != "WORSE"
    assert [change.change.value for change in baseline.changes[:3]] == pytest.approx([0.0, 1.0, 1.0])


def test_a_place_that_got_worse_is_named(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, 20_000)
    y, later = (rng.random(20_000) < special.expit(z - shift) for shift in (0.0, 1.1))
    baseline = Baseline.of(safecal.evaluate(later, logits=z), safecal.evaluate(y, logits=z))
    named = [change for change in baseline.changes if change.name.startswith("probability ")]
    assert baseline.decision == "WORSE"
    assert named[0].decision == "WORSE"
    assert named[0].before == pytest.approx(0.0, abs=0.05)
    assert named[0].name in baseline.reason


def test_a_group_that_got_worse_is_named() -> None:
    site = np.arange(6000) % 3
    before, now = _evaluated(1.0, by={"site": site}), _evaluated(np.where(site == 1, 3.0, 0.9), by={"site": site})
    baseline = Baseline.of(now, before)
    assert "site 1" in [change.name for change in baseline.changes if change.decision == "WORSE"]
    without = Baseline.of(now, _evaluated(1.0))
    assert "site 1" not in [change.name for change in without.changes]


def test_models_of_another_kind_are_refused() -> None:
    three = safecal.evaluate([0, 1, 2], np.full((3, 3), 1 / 3))
    with pytest.raises(InputError, match=r"`baseline` must be of the same kind; its `family`[\s\S]*Hint: "):
        Baseline.of(_evaluated(1.0), three)


@pytest.mark.proof
def test_false_alarms_are_rare() -> None:
    alarms = sum(
        Baseline.of(_evaluated(1.2, 800, s), _evaluated(1.2, 800, 1000 + s)).decision == "WORSE" for s in range(40)
    )
    assert alarms <= 3


def test_an_impossible_outcome_is_worse(rng: np.random.Generator) -> None:
    before = _evaluated(1.0)
    now = safecal.evaluate([1, *(rng.random(500) < 0.6)], [0.0, *np.full(500, 0.6)])
    assert Baseline.of(now, before).decision == "WORSE"
    assert Baseline.of(before, now).changes[0].decision == "NOT WORSE"


def test_what_is_no_evaluation_is_refused() -> None:
    with pytest.raises(InputError, match=r"`before` must be an Evaluation; got dict[\s\S]*Hint: read a document"):
        Baseline.of(_evaluated(1.0), {})  # type: ignore[arg-type]


def test_what_cannot_be_told_is_said_in_words() -> None:
    assert str(Baseline.of(_evaluated(1.0, 50), _evaluated(1.0, 50, 1))).startswith(
        "UNCLEAR whether it is worse than the"
    )


def _days(days: int, **more: object) -> safecal.Evaluation:
    """Evaluate days of 50 rows each, all rows of a day alike; the logits are 2.5 times too large."""
    rng = np.random.default_rng(3)
    z = np.repeat(rng.normal(0, 2, days), 50)
    y = np.repeat(rng.random(days) < special.expit(z[::50]), 50)
    return safecal.evaluate(y, logits=2.5 * z, **more)


@pytest.mark.parametrize("group", [False, True])
def test_a_place_of_a_baseline_with_clusters_is_bounded_by_its_clusters(group: bool) -> None:
    day, site = np.repeat(np.arange(120), 50), np.arange(6000) % 2
    now = _evaluated(np.where(site == 1, 3.0, 0.9), by={"site": site}) if group else _evaluated(3.0)
    baselines = [Baseline.of(now, _days(120, by={"site": day % 2}, cluster=c)) for c in (None, day)]
    rows, days = ({c.name: c for c in one.changes if c.name.startswith(("site", "prob"))} for one in baselines)
    assert rows.keys() == days.keys()
    assert ("site 1" in rows) == group
    for name, change in rows.items():  # each day is one throw of the dice, not fifty
        assert days[name].change.high - days[name].change.low > 2.0 * (change.change.high - change.change.low)
        assert math.isfinite(days[name].change.high)
    assert {c.decision for c in days.values()} == {"UNCLEAR"}
    assert group or "WORSE" in {c.decision for c in rows.values()}


def test_a_document_does_not_tell_the_clusters_of_a_place() -> None:
    day = np.repeat(np.arange(120), 50)
    before = _days(120, by={"site": day % 2}, cluster=day)
    read = safecal.Evaluation.from_dict(json.loads(json.dumps(before.to_dict(), allow_nan=False)))
    baseline = Baseline.of(_evaluated(3.0, by={"site": np.arange(6000) % 2}), read)
    places = baseline.changes[3:]
    assert places
    assert all(change.decision == "UNCLEAR" and "without bounds: unclear" in str(change) for change in places)
    assert Baseline.from_dict(json.loads(json.dumps(baseline.to_dict(), allow_nan=False))) == baseline
