"""What JSON can hold."""

import math

import pytest

from safecal import documents
from safecal.errors import DocumentError


@pytest.mark.parametrize(("value", "written"), [(1.5, 1.5), (math.inf, "inf"), (math.nan, None), (-0.25, -0.25)])
def test_numbers(value: float, written: object) -> None:
    assert documents.number(value) == written


def test_keys_become_lists() -> None:
    assert documents.plain(("a", (1, None))) == ["a", [1, None]]
    assert documents.plain("a") == "a"
    assert documents.plain((-math.inf, 0.5)) == ["-inf", 0.5]


def test_a_document_carries_its_kind_and_version() -> None:
    document = documents.document("bins", {"edges": [0, 1]})
    assert document == {"kind": "safecal.bins", "version": 1, "edges": [0, 1]}
    assert documents.read("bins", document, {"edges": documents.list_of(documents.read_number)}) == {"edges": [0, 1]}
    with pytest.raises(DocumentError, match=r"^`document` must be a safecal\.table document; got 'safecal\.bins'\.$"):
        documents.read("table", document, {})
