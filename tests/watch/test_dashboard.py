"""The dashboard for Grafana: it asks for nothing that the endpoint does not have, and leaves nothing out."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from safecal.watch.prometheus import exposition

from .histories import watched

FILE = Path(__file__).resolve().parents[2] / "docs" / "grafana-dashboard.json"
OF_PROMETHEUS = {"job", "instance"}  # labels that a scrape adds


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return dashboard


@pytest.fixture(scope="module")
def labels() -> dict[str, set[str]]:
    """Return the names of the labels of every metric there is."""
    labels: dict[str, set[str]] = {}
    for line in exposition(watched([1.0, 3.0], names=["a", "b"], detect="both")).splitlines():
        if not line.startswith("#"):
            name, inside = re.match(r"(\w+)(?:\{(.*)\})?", line).groups()  # type: ignore[union-attr]
            labels.setdefault(name, set()).update(re.findall(r'(\w+)="', inside or ""))
    return labels


def _queries(board: dict[str, Any]) -> list[tuple[str, str]]:
    """Return each query, and the legend of what it finds."""
    asked = [(one["expr"], one["legendFormat"]) for panel in board["panels"] for one in panel["targets"]]
    return asked + [(v["query"]["query"], "") for v in board["templating"]["list"] if v["type"] == "query"]


def test_every_query_names_a_metric_that_the_endpoint_has(board: dict[str, Any], labels: dict[str, set[str]]) -> None:
    for query, legend in _queries(board):
        named = re.findall(r"safecal_\w+", query)
        assert len(named) == 1, query
        assert named[0] in labels, query
        known = labels[named[0]] | OF_PROMETHEUS
        inside = re.findall(r"(\w+)=~?\"", query) + re.findall(r"\{\{(\w+)\}\}", legend)
        inside += [word for words in re.findall(r"by \((.*?)\)", query) for word in words.split(", ")]
        assert set(inside) <= known, query


def test_every_metric_of_all_rows_has_its_place(board: dict[str, Any], labels: dict[str, set[str]]) -> None:
    shown = {name for query, _ in _queries(board) for name in re.findall(r"safecal_\w+", query)}
    assert {name for name in labels if not name.startswith("safecal_group_")} <= shown


def test_every_variable_is_one_of_its_own_and_panels_do_not_overlap(board: dict[str, Any]) -> None:
    variables = {one["name"] for one in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]\w*)", FILE.read_text(encoding="utf-8"))) == variables
    places = [panel["gridPos"] for panel in board["panels"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in itertools.combinations(places, 2):
        apart = [a[x] + a[w] <= b[x] or b[x] + b[w] <= a[x] for x, w in (("x", "w"), ("y", "h"))]
        assert any(apart), (a, b)
