"""What is written can be read, and is equal; what safecal did not write is refused."""

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import safecal
from safecal import Bins, Evaluation, Histogram, Interval, Limits, Summary, Table, Tally, TestResult, Verdict
from safecal._sums.cells import Cells, WeightedCells
from safecal._sums.clusters import Clusters
from safecal._sums.nodes import Nodes
from safecal.errors import DocumentError, MergeError

from .cases import BINS, FAMILIES, FIRST, FIRST_CLASSIFIERS, examples, rows_of, size, weights_of

VALIDATOR = jsonschema.Draft202012Validator(Evaluation.json_schema())


def _again(document: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(document, allow_nan=False))


@cache
def _part(name: str) -> jsonschema.Draft202012Validator:
    schema = Evaluation.json_schema()
    return jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{name}", "$id": f"urn:part:{name}"})


def first_of(names: list[str]) -> list[Any]:
    """Keep the first in the fast tier: to hold a document to the schema takes long."""
    return [names[0], *(pytest.param(name, marks=pytest.mark.proof) for name in names[1:])]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(Evaluation.json_schema())


@pytest.mark.parametrize("name", FIRST)
@examples(25)
@given(data=st.data())
def test_summaries_make_the_round_trip(name: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name))
    w = data.draw(st.none() | weights_of(size(columns)))
    summary = FAMILIES[name].make(columns).summary(w)
    document = _again(summary.to_dict())
    _part("summary").validate(document)
    assert Summary.from_dict(document) == summary


def test_empty_sums_make_the_round_trip() -> None:
    assert Summary.from_dict(_again(Summary().to_dict())) == Summary()


KEYS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=True),
    st.text(max_size=5),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.binary(max_size=3),
    st.sampled_from([np.int64(3), np.float32(0.5), np.str_("x"), np.datetime64("2024-05-06"), np.bool_(True)]),
    st.tuples(st.text(max_size=2), st.none() | st.integers(0, 3)),
)


@pytest.mark.parametrize("name", first_of(["bernoulli", "categorical 4", "density by draws"]))
@examples(15)
@given(data=st.data())
def test_evaluations_with_groups_of_any_key_make_the_round_trip(name: str, data: st.DataObject) -> None:
    columns = data.draw(rows_of(name, most=12))
    n = size(columns)
    by = np.empty(n, dtype=object)
    by[:] = data.draw(st.lists(KEYS, min_size=n, max_size=n))
    evaluation = FAMILIES[name].make(columns).evaluate(by=by)
    document = _again(evaluation.to_dict())
    VALIDATOR.validate(document)
    assert Evaluation.from_dict(document) == evaluation
    assert sum(s.n for s in evaluation.groups.summaries) == n
    assert repr(Evaluation.from_dict(document)) == repr(evaluation)


@pytest.mark.parametrize("name", first_of(FIRST_CLASSIFIERS))
@examples(2)
@given(data=st.data())
def test_evaluations_and_tables_of_bins_make_the_round_trip(name: str, data: st.DataObject) -> None:
    predictions = FAMILIES[name].make(data.draw(rows_of(name)))
    for rule, options in BINS.items():
        evaluation = predictions.evaluate(**options)
        document = _again(evaluation.to_dict())
        VALIDATOR.validate(document)
        assert Evaluation.from_dict(document) == evaluation, rule
        assert Table.from_dict(_again(evaluation.bins.to_dict())) == evaluation.bins, rule
        assert Bins.from_dict(_again(evaluation.bins.bins.to_dict())) == evaluation.bins.bins, rule
        assert document["metrics"]["ecd"] == ("inf" if math.isinf(evaluation.ecd) else evaluation.ecd)
        _part("table").validate(document["tally"]["bins"])


@pytest.mark.parametrize("name", ["gaussian cov", "density"])
@examples(4)
@given(data=st.data())
def test_evaluations_of_states_make_the_round_trip(name: str, data: st.DataObject) -> None:
    evaluation = FAMILIES[name].make(data.draw(rows_of(name, most=8))).evaluate(bins=3, strategy="quantile")
    document = _again(evaluation.to_dict())
    VALIDATOR.validate(document)
    assert Evaluation.from_dict(document) == evaluation
    assert document["metrics"]["ece"] is None
    assert document["metrics"]["brier"] is None


@pytest.mark.parametrize("edges", [[0, 1], [-math.inf, 0.5, math.inf], [0.1, 0.1 + 0.2, 1e300]])
def test_bins_make_the_round_trip(edges: list[float]) -> None:
    bins = Bins.from_edges(edges)
    document = _again(bins.to_dict())
    _part("bins").validate(document)
    assert Bins.from_dict(document) == bins


# What an evaluation can meet: an infinite ECD, no spread, nothing to learn, temperatures of 0, infinity and NaN.
EDGES: dict[str, Callable[[], Evaluation]] = {
    "impossible": lambda: safecal.evaluate([1, 0, 1], [0.0, 0.3, 0.8]),
    "all impossible": lambda: safecal.evaluate([1, 1], [0.0, 0.0]),
    "coin tosses": lambda: safecal.evaluate([1, 0, 1, 1], [0.5] * 4),
    "certain and right": lambda: safecal.evaluate([1, 0], [1.0, 0.0]),
    "one row": lambda: safecal.evaluate([1], [0.9]),
    "one surprise": lambda: safecal.evaluate([0], [0.9]),
    "no surprise: T = 0": lambda: safecal.evaluate([1] * 5, [0.9, 0.8, 0.7, 0.99, 0.6]),
    "nothing but surprises: T = inf": lambda: safecal.evaluate([0] * 5, [0.9, 0.8, 0.7, 0.99, 0.6]),
    "equal clusters": lambda: safecal.evaluate([1, 1], [0.9, 0.9], cluster=[0, 1]),
    "clusters": lambda: safecal.evaluate([1, 0, 1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.2, 0.3], cluster=list("aabbcc")),
    "weights": lambda: safecal.evaluate([1, 0, 1], [0.9, 0.8, 0.3], sample_weight=[0.0, 2.0, 0.5]),
    "three even classes": lambda: safecal.evaluate([0, 1, 2], np.full((3, 3), 1 / 3)),
    "impossible class": lambda: safecal.evaluate([2, 1], [[0.5, 0.5, 0.0], [0.1, 0.8, 0.1]]),
    "masked logits": lambda: safecal.evaluate([0, 1], logits=[[1.0, 2.0, -math.inf], [0.0, 1.0, -1e300]]),
    "one state": lambda: safecal.gaussian([[1.0, 2.0]], [[0.0, 0.0]], std=1.0).evaluate(),
    "a state at its mean": lambda: safecal.gaussian([0.0, 0.0], [0.0, 0.0], std=1.0).evaluate(),
    "outside its support": lambda: safecal.density([-1.0, 2.0], stats.expon()).evaluate(),
    "no log-partition": lambda: safecal.density(
        [0.1, 0.2, 0.9],
        log_density=lambda x: -0.5 * x**2,
        sampler=lambda rng: rng.normal(size=3),
        rng=0,
    ).evaluate(),
}


@pytest.mark.parametrize("edge", EDGES)
def test_evaluations_at_the_edge_make_the_round_trip(edge: str) -> None:
    evaluation = EDGES[edge]()
    document = _again(evaluation.to_dict())
    VALIDATOR.validate(document)
    again = Evaluation.from_dict(document)
    assert again == evaluation
    assert repr(again) == repr(evaluation)
    assert _again(again.to_dict()) == document
    for part in ("verdict", "test", "tally", "limits"):
        _part(part).validate(document[part])


def test_temperatures_at_the_edge_are_written() -> None:
    written = {edge: EDGES[edge]().to_dict()["verdict"]["temperature"] for edge in EDGES}
    assert written["no surprise: T = 0"]["value"] == 0.0
    assert written["nothing but surprises: T = inf"]["value"] == "inf"
    assert written["coin tosses"]["value"] is None
    assert written["no log-partition"]["value"] is None


@pytest.mark.proof
def test_the_schema_is_strict() -> None:
    document = EDGES["clusters"]().to_dict()
    parts = [document, *(document[name] for name in ("verdict", "test", "tally", "limits", "interval", "metrics"))]
    parts += [document["tally"][name] for name in ("summary", "bins", "spectrum", "clusters")]
    parts += [document["verdict"]["ecd"], document["reliability"]]
    for part in parts:
        part["surprise"] = 1
        assert not VALIDATOR.is_valid(document), part
        del part["surprise"]
        for name in list(part):
            value = part.pop(name)
            assert not VALIDATOR.is_valid(document), name
            part[name] = value
    VALIDATOR.validate(document)


_EVALUATION = safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9], by=["a", "b", "a"])

OBJECTS = {
    "bins": Bins.uniform(3),
    "cells": _EVALUATION.tally.spectrum,
    "clusters": safecal.bernoulli([0, 1], [0.3, 0.8]).tally(cluster=["a", "b"]).clusters,
    "evaluation": _EVALUATION,
    "histogram": _EVALUATION.histogram,
    "limits": Limits(),
    "nodes": safecal.categorical([0, 1], [[0.3, 0.7], [0.2, 0.8]]).tally().spectrum,
    "tally": _EVALUATION.tally,
    "weighted_cells": safecal.bernoulli([0, 1], [0.3, 0.8]).tally(sample_weight=[1.0, 2.0]).spectrum,
    "interval": Interval(0.1, -math.inf, math.inf, 0.9, "none"),
    "test": _EVALUATION.test,
    "verdict": _EVALUATION.verdict,
    "node_table": safecal.bernoulli([0, 1], [0.3, 0.8]).tally(by=["a", "b"]).group_nodes,
    "too_small": safecal.evaluate([0, 1], [0.3, 0.8], by=["a", "b"]).verdict.too_small,
    "summary": safecal.bernoulli([0, 1], [0.3, 0.8]).summary(),
    "table": safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9]).bins,
}


def test_every_kind_has_its_class() -> None:
    classes = {type(value) for value in OBJECTS.values()}
    assert classes >= {Cells, Clusters, Histogram, Interval, Limits, Nodes, Tally, TestResult, Verdict, WeightedCells}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("other", [*OBJECTS, None, "text", "list"])
def test_a_document_of_another_kind_is_refused(kind: str, other: str | None) -> None:
    document = {"text": "x", "list": [1]}.get(other, OBJECTS[other].to_dict() if other in OBJECTS else None)
    if kind == other:
        assert type(OBJECTS[kind]).from_dict(document) == OBJECTS[kind]
        return
    with pytest.raises(DocumentError, match=rf"^`document` must be a safecal\.{kind} document; got '"):
        type(OBJECTS[kind]).from_dict(document)


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("version", [0, 3, "1", None])
def test_a_document_of_another_version_is_refused(kind: str, version: object) -> None:
    written = OBJECTS[kind].to_dict()["version"]
    with pytest.raises(DocumentError) as caught:
        type(OBJECTS[kind]).from_dict(OBJECTS[kind].to_dict() | {"version": version})
    assert str(caught.value) == (
        f"`document` must be of version {written}; got {version!r}.\n\n"
        "Hint: it was written by another release of safecal; read it with that one."
    )


def _required() -> list[tuple[str, str]]:
    derived = {"n", "metrics", "family", "class_shifts"}  # what an evaluation computes anew is not needed to read it
    names = {kind: [k for k in value.to_dict() if k not in ("kind", "version")] for kind, value in OBJECTS.items()}
    later = {("tally", "group_nodes"), ("tally", "class_sums"), ("place", "temperature")}  # early documents lack them
    pairs = [(k, n) for k, fields in names.items() for n in fields if not (k == "evaluation" and n in derived)]
    return [pair for pair in pairs if pair not in later]


@pytest.mark.parametrize(("kind", "name"), _required())
def test_a_document_that_lacks_a_field_is_refused(kind: str, name: str) -> None:
    document = OBJECTS[kind].to_dict()
    del document[name]
    with pytest.raises(DocumentError, match=rf"\b{name}\b"):
        type(OBJECTS[kind]).from_dict(document)


def test_sums_that_do_not_belong_together_do_not_merge() -> None:
    binary = safecal.evaluate([0, 1], [0.3, 0.8], by=["a", "b"])
    states = safecal.gaussian([0.0, 1.0], [0.0, 0.0], std=1.0)
    with pytest.raises(
        MergeError, match=r"^summaries must come from the same family; `sum_predicted` exists in one of"
    ):
        binary.summary + states.summary()
    with pytest.raises(MergeError, match=r"^tables must have the same bins or the same grouping; these two do not"):
        binary.bins + safecal.evaluate([0, 1], [0.3, 0.8], bins=5).bins
    with pytest.raises(MergeError, match=r"^tables must have the same bins or the same grouping"):
        binary.bins + binary.groups
    with pytest.raises(MergeError, match=r"^tables must have the same bins or the same grouping"):
        binary.bins + safecal.evaluate([0, 1], [0.3, 0.8], bin_on="confidence").bins


@pytest.mark.parametrize("kind", ["summary", "table", "histogram"])
@pytest.mark.parametrize("other", [1, "text", None, [1]])
def test_sums_add_to_nothing_else(kind: str, other: object) -> None:
    with pytest.raises(TypeError):
        OBJECTS[kind] + other
    with pytest.raises(TypeError):
        other + OBJECTS[kind]


def test_evaluations_can_be_compared_and_are_not_equal_when_a_row_differs() -> None:
    again = safecal.evaluate([0, 1, 1], [0.2, 0.7, 0.9], by=["a", "b", "a"])
    assert again == OBJECTS["evaluation"]
    assert again != safecal.evaluate([0, 1, 0], [0.2, 0.7, 0.9], by=["a", "b", "a"])
