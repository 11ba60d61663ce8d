"""Documents that were changed by anything: each is refused by an error of ours, or read as it is and of use."""

import json
import math
from typing import Any

import jsonschema
import pytest

import safecal
from safecal import documents
from safecal.errors import DocumentError
from safecal.files import parsed_json
from safecal.monitor import Monitor
from safecal.monitor.evidence import Process

from .documents import DEEP, Counts, attack, originals, same, written

_SLOW = {"classes": 20, "weighted": 20, "clustered": 20}  # to use such an evaluation takes long
_MANY = 60


def _attacked(tries: int, seed: int) -> Counts:
    counts = Counts()
    for name in originals():
        attack(name, min(tries, _SLOW.get(name, tries)) if tries > 2 else tries * (name not in _SLOW), seed, counts)
    print(f"\n{counts}")
    return counts


@pytest.mark.proof
def test_real_documents_are_read_as_they_are() -> None:
    for name, thing in originals().items():
        document = written(thing)
        assert same(document, written(type(thing).from_dict(document))), name


def test_a_few_changed_documents_do_no_harm() -> None:
    counts = _attacked(2, 3)
    assert counts.tried > 100
    assert counts.refused > counts.accepted > 0
    assert counts.tracebacks == []
    assert counts.wrong == []


@pytest.mark.proof
@pytest.mark.no_cover
def test_thousands_of_changed_documents_do_no_harm() -> None:
    counts = _attacked(_MANY, 0)
    assert counts.tried > 4000
    assert counts.refused > counts.accepted > 300
    assert counts.tracebacks == []
    assert counts.wrong == []


EVALUATION = "sharp"
MONITORED = {
    "monitor": "monitor", "monitor of states": "monitor", "new monitor": "monitor", "alarm": "alarm",
    "alarm since the start": "alarm", "stream": "stream", "process": "process", "detector": "detector",
    "windows": "windows", "size": "size",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["tally"]["summary"].update(n=-3),
         "`tally.summary.n` must be a whole number of at least 0; got -3."),
        (lambda d: d["tally"]["summary"].update(n="300"),
         "`tally.summary.n` must be a whole number of at least 0; got '300'."),
        (lambda d: d["tally"]["groups"]["rows"][1]["summary"].update(weight=None),
         "`tally.groups.rows[1].summary.weight` must be a number of at least 0; got None."),
        (lambda d: d["verdict"].update(decision="FINE"),
         "`verdict.decision` must be one of 'SAFE', 'UNSAFE', 'UNDETERMINED'; got 'FINE'."),
        (lambda d: d["verdict"]["where"][0]["ecd"].update(level=95),
         "`verdict.where[0].ecd.level` must be a number strictly between 0 and 1; got 95."),
        (lambda d: d["tally"].update(weighted=0), "`tally.weighted` must be true or false; got 0."),
        (lambda d: d["tally"].update(bins=[]), "`tally.bins` must be a safecal.table document; got 'list'."),
        (lambda d: d["limits"].update(version=9), "`limits` must be of version 1; got 9.\n\n"
         "Hint: it was written by another release of safecal; read it with that one."),
        (lambda d: d["limits"].pop("rule"),
         "`limits` must be a whole safecal.limits document; it lacks rule."),
        (lambda d: d["interval"].update(surprise=1),
         "`interval` must be a whole safecal.interval document; this release knows no field 'surprise' of it.\n\n"
         "Hint: it was changed by hand, or written by a newer release of safecal."),
        (lambda d: d["tally"]["spectrum"]["cells"].update({"9\n\x1b": [1.0, 0.0, 0.0, 0.0]}),
         "`tally.spectrum.cells` must have the names of cells, whole numbers below 1800; got '9\\n\\x1b'."),
        (lambda d: d["metrics"].update(ecd=0.0), "`metrics` must be what the sums give; `ecd` is not."),
        (lambda d: d.update(n=3), "`document` must have the `n` of its tally."),
        (lambda d: d["tally"]["groups"]["rows"].pop(),
         "`tally.groups` must add up to `summary`; `n` does not."),
        (lambda d: d["tally"]["bins"]["rows"][9]["summary"].update(sum_brier=0.0),
         "`tally.bins` must add up to `summary`; `sum_brier` does not."),
        (lambda d: d["tally"]["summary"].update(sum_excess=1e9),
         "`tally.summary` must add up: `sum_excess` must be what these squares allow."),
        (lambda d: d["verdict"].update(decision="SAFE", on_average="SAFE"),
         "`verdict` must not be SAFE where a place is suspected."),
        (lambda d: d["verdict"]["limits"].update(threshold=9.0),
         "`document` must have the same `limits` in its `verdict`."),
    ],
)  # fmt: skip
def test_a_complaint_names_the_field_and_the_rule(change: Any, message: str) -> None:
    document = written(originals()[EVALUATION])
    change(document)
    with pytest.raises(DocumentError) as caught:
        safecal.Evaluation.from_dict(document)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [None, True, 0, -1.5, "", "text", [], [1], {}, {"kind": None}, DEEP, {"kind": DEEP}])
def test_what_is_no_document_is_refused_by_every_reader(value: Any) -> None:
    for thing in originals().values():
        with pytest.raises(DocumentError, match=r"^`document` must be a safecal\."):
            type(thing).from_dict(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        '{"a": 1, "a": 1}',
        "[NaN]",
        "[Infinity]",
        "[-Infinity]",
        "1" * 5000,
        b"\xff",
        b"\xff\xfe{",
    ],
)
def test_text_that_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(DocumentError, match="`document` must"):
        parsed_json(text)


def test_a_number_is_finite_and_no_text() -> None:
    assert documents.read_number(3) == 3.0
    assert documents.numbers("inf") == math.inf
    assert math.isnan(documents.numbers(None))
    for value in (math.nan, math.inf, True, "1", "inf", None, 10**400, 2**53 + 1):
        with pytest.raises(DocumentError, match="must be a number"):
            documents.read_number(value)


def test_evidence_without_rows_is_refused_and_not_forgotten() -> None:
    document = Process().to_dict()
    document["over"][0] = 9.0
    with pytest.raises(DocumentError, match="must have no evidence where it has no rows"):
        Process.from_dict(document)


def test_documents_of_a_monitor_follow_their_schema() -> None:
    schema = Monitor.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, kind in MONITORED.items():
        part = {**schema, "$ref": f"#/$defs/{kind}", "$id": f"urn:part:{kind}"}
        jsonschema.Draft202012Validator(part).validate(written(originals()[name]))


@pytest.mark.parametrize("name", ["new monitor", "alarm"])
def test_the_schema_of_a_monitor_is_strict(name: str) -> None:
    schema = {**Monitor.json_schema(), "$ref": f"#/$defs/{MONITORED[name]}"}
    validator = jsonschema.Draft202012Validator(schema)
    document = written(originals()[name])
    for part in [document, *(x for x in document.values() if isinstance(x, dict))]:
        part["surprise"] = 1
        assert not validator.is_valid(document)
        del part["surprise"]
        for field in list(part):
            value = part.pop(field)
            assert not validator.is_valid(document), field
            part[field] = value
    validator.validate(document)


def test_the_state_of_a_monitor_is_of_one_set_of_rows() -> None:
    document = json.loads(json.dumps(originals()["monitor"].to_dict()))
    document["groups"].pop()
    with pytest.raises(DocumentError, match="must have each of its rows in one of the `groups`"):
        Monitor.from_dict(document)
