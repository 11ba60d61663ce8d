"""A family that is looked at in several ways has one verdict, and every surface says which look decided."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import jsonschema
import numpy as np
import pytest

import safecal
from safecal._sums.tally_parts import Look, decide
from safecal.errors import DocumentError, MergeError
from safecal.families import Predictions
from safecal.families.family import Partition
from safecal.families.gaussian import Gaussian
from safecal.report import report_html

LOW = Look("wide", "with the widest spread", acquits=False, why="What is narrower is not seen.")
HIGH = Look("narrow", "with the narrowest spread", condemns=False)
SEEN = {"wide": LOW.seen, "narrow": HIGH.seen}
BOTH = Look("middle", "with the spread in the middle")


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Bracketed(Predictions):
    """States whose spread is known to lie between two values: a family of two looks."""

    family: ClassVar[str] = "bracketed states"

    own: Predictions
    role: Look | None
    rest: tuple[Predictions, ...] = ()

    @property
    def n(self) -> int:
        return self.own.n

    @property
    def look(self) -> Look | None:
        return self.role

    @property
    def others(self) -> tuple[Predictions, ...]:
        return self.rest

    def _score(self, rows: Any) -> safecal.Scored:
        return self.own._score(rows)

    def _partition(self, rows: slice) -> Partition:
        return self.own._partition(rows)


def bracketed(x: np.ndarray, wide: float, narrow: float, looks: tuple[Look, Look] = (LOW, HIGH)) -> Bracketed:
    def at(std: float) -> Gaussian:
        return safecal.gaussian(x, 0.0 * x, std=np.full(len(x), std))

    return Bracketed(at(wide), looks[0], (Bracketed(at(narrow), looks[1]),))


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(3000)


def test_unsafe_by_any_look_that_condemns_and_safe_by_all_that_acquit() -> None:
    looks = [LOW, HIGH, BOTH]
    assert decide(looks, ["SAFE", "SAFE", "SAFE"]) == ("SAFE", 1)
    assert decide(looks, ["UNDETERMINED", "SAFE", "SAFE"]) == ("SAFE", 1)  # the first one does not acquit
    assert decide(looks, ["SAFE", "UNSAFE", "SAFE"]) == ("UNDETERMINED", 1)  # the second one does not condemn
    assert decide(looks, ["SAFE", "SAFE", "UNSAFE"]) == ("UNSAFE", 2)
    assert decide(looks, ["UNSAFE", "SAFE", "SAFE"]) == ("UNSAFE", 0)
    assert decide([LOW], ["SAFE"]) == ("UNDETERMINED", 0)  # nothing acquits


@pytest.mark.parametrize(
    ("wide", "narrow", "decision", "look"),
    [(1.1, 1.0, "SAFE", "narrow"), (0.6, 0.55, "UNSAFE", "wide"), (1.1, 0.55, "UNDETERMINED", "narrow")],
)
def test_every_surface_says_which_look_decided(
    x: np.ndarray, wide: float, narrow: float, decision: str, look: str
) -> None:
    result = bracketed(x, wide, narrow).evaluate()
    verdict = result.verdict
    assert verdict.decision == decision
    assert result.deciding.tally.look is not None
    assert result.deciding.tally.look.name == look
    assert SEEN[look] in verdict.reason
    document = result.to_dict()
    jsonschema.validate(document, safecal.Evaluation.json_schema())
    again = safecal.Evaluation.from_dict(document)
    assert again == result
    assert str(again) == str(result)
    for shown in (str(result), result._repr_html_(), report_html(result)):
        assert decision in shown
        assert SEEN[look] in " ".join(shown.lower().split())
        assert "cannot make it SAFE" in " ".join(shown.split())
        assert "cannot make it UNSAFE" in " ".join(shown.split())
    assert result.judge(threshold=9.0, max_temperature=99.0, local_threshold=99.0).decision == "SAFE"


def test_nothing_that_was_found_acquits_where_no_look_may(x: np.ndarray) -> None:
    result = Bracketed(bracketed(x, 1.0, 1.0).own, LOW).evaluate()
    assert result.verdict.decision == "UNDETERMINED"
    assert result.verdict.reason.endswith("does not make it safe. What is narrower is not seen.")
    page = report_html(result)
    assert "These numbers alone cannot show that it is safe" in page
    assert "as far as this look can see" in page
    assert Bracketed(bracketed(x, 0.5, 1.0).own, LOW).evaluate().verdict.decision == "UNSAFE"


def test_the_places_of_the_look_that_decided_are_named(x: np.ndarray) -> None:
    site = np.repeat(["north", "south", "west"], 1000)
    x = np.where(site == "north", 2.0 * x, x)
    groups = bracketed(x, 2.2, 1.1).evaluate(by=site)
    assert groups.verdict.decision == "UNDETERMINED"
    assert not any(place.shown for place in groups.verdict.where)  # the look that shows it may not condemn
    assert groups.group_verdict("north").decision == "UNDETERMINED"
    assert groups.group_verdict("south").decision == "SAFE"
    shown = bracketed(x, 2.2, 1.1, (BOTH, BOTH)).evaluate(by=site)
    assert shown.verdict.decision == "UNSAFE"
    assert shown.group_verdict("north").decision == "UNSAFE"
    assert "over-confident, by middle" in report_html(shown)


def test_looks_merge_with_their_sums(x: np.ndarray) -> None:
    whole = bracketed(x, 1.1, 0.5).evaluate()
    parts = [bracketed(part, 1.1, 0.5).tally() for part in np.split(x, 3)]
    merged = safecal.Evaluation.of(sum(parts[1:], parts[0]))
    assert merged.verdict.decision == whole.verdict.decision
    assert merged.looks[0].ecd == pytest.approx(whole.looks[0].ecd, rel=1e-12)
    with pytest.raises(MergeError, match="in the same ways"):
        parts[0] + bracketed(x, 1.1, 0.5, (BOTH, BOTH)).tally()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["verdict"].update(decision="SAFE", where=[], on_average="SAFE"), "of its `looks`"),
        (lambda d: d["verdict"]["looks"][1].pop("look"), "a `look` in each of its `looks`"),
        (lambda d: d["verdict"].pop("looks"), "must have the looks of its tally"),
        (lambda d: d["tally"].pop("look"), "has no `look` of its own"),
        (lambda d: d["tally"]["others"][0].pop("look"), "a `look` each"),
        (lambda d: d["tally"]["others"][0].update(dimension=2), "the same `dimension`"),
    ],
)
def test_a_document_whose_looks_disagree_is_refused(x: np.ndarray, change: Any, message: str) -> None:
    document = bracketed(x, 1.1, 0.5).evaluate().to_dict()
    change(document)
    with pytest.raises(DocumentError, match=message):
        safecal.Evaluation.from_dict(document)


def test_the_looks_of_one_verdict_are_shown_where_there_is_more_than_one(x: np.ndarray) -> None:
    alone = Bracketed(bracketed(x, 1.0, 1.0).own, replace(BOTH)).evaluate()
    assert alone.verdict.decision == "SAFE"
    assert len(alone.verdict.looks) == 1
    assert "middle " not in str(alone).partition("\n\nECD")[2]
