"""A monitor as OpenTelemetry metrics, collected by the SDK."""

import math
import sys
from typing import Any

import numpy as np
import pytest

from safecal.compat.opentelemetry import observe
from safecal.errors import InputError, MissingExtraError
from safecal.monitor import Monitor

Points = dict[str, dict[frozenset[tuple[str, Any]], float]]


class Collector:
    """A provider of meters with its reader."""

    def __init__(self) -> None:
        sdk = pytest.importorskip("opentelemetry.sdk.metrics")
        export = pytest.importorskip("opentelemetry.sdk.metrics.export")
        self.reader = export.InMemoryMetricReader()
        self.provider = sdk.MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False)
        self.meter = self.provider.get_meter("test")

    def collect(self) -> tuple[Points, dict[str, Any]]:
        values: Points = {}
        metrics: dict[str, Any] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    metrics[metric.name] = metric
                    points = metric.data.data_points
                    values[metric.name] = {frozenset(p.attributes.items()): p.value for p in points}
        return values, metrics


def rows(monitor: Monitor, drift: float, names: list[str] | None = None, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, 600)
    y = (rng.random(600) < 1 / (1 + np.exp(-z))).astype(int)
    by = None if names is None else np.array(names)[np.arange(600) % len(names)]
    monitor.update(y, logits=drift * z, by=by)


NONE: frozenset[tuple[str, Any]] = frozenset()


def test_all_rows() -> None:
    collector, monitor = Collector(), Monitor(run_length=1e4)
    observe(monitor, collector.meter)
    values, _ = collector.collect()
    assert values["safecal.rows"] == {NONE: 0}
    assert not values.get("safecal.ecd")  # there is none yet
    rows(monitor, 3.0)
    values, metrics = collector.collect()
    assert values["safecal.rows"] == {NONE: 600}
    assert metrics["safecal.rows"].data.is_monotonic
    assert values["safecal.ecd"] == {NONE: monitor.ecd}
    assert metrics["safecal.ecd"].unit == "{nat}"
    over = frozenset({("direction", "over-confident")})
    assert values["safecal.log10_e_value"][over] == pytest.approx(monitor.log_e_value() / math.log(10))
    assert values["safecal.log10_e_value_threshold"][over] == pytest.approx(math.log10(50))
    assert values["safecal.log10_e_value_threshold"][frozenset({("direction", "shifted up")})] == pytest.approx(2.0)
    assert values["safecal.log10_change_threshold"] == {NONE: pytest.approx(4)}
    active = values["safecal.alarm_active"]
    assert active[over | {("kind", "change")}] == 1
    assert active[frozenset({("kind", "since the start"), ("direction", "under-confident")})] == 0
    assert "safecal.group.rows" not in values
    assert values["safecal.groups_not_shown"] == {NONE: 0}


def test_groups_are_capped() -> None:
    collector, monitor = Collector(), Monitor(grouped=True)
    observe(lambda: monitor, collector.meter, max_groups=2)
    rows(monitor, 1.0, ["a", "b", "c", "\ud800"])
    values, _ = collector.collect()
    assert values["safecal.groups_not_shown"] == {NONE: 2}
    assert len(values["safecal.group.rows"]) == 2
    assert set(values["safecal.group.rows"].values()) == {150}
    every = Collector()
    observe(monitor, every.meter)
    names = {dict(key)["group"] for key in every.collect()[0]["safecal.group.ecd"]}
    assert names == {"a", "b", "c", r"\ud800"}


def test_every_collection_shows_the_state_of_its_moment() -> None:
    collector, monitor = Collector(), Monitor(grouped=True, run_length=1e3)
    observe(monitor, collector.meter)
    key = frozenset({("group", "a")})
    for seed in range(3):
        rows(monitor, 3.0, ["a", "b"], seed=seed)
        values, _ = collector.collect()
        assert values["safecal.group.rows"][key] == 300 * (seed + 1)
        assert values["safecal.group.ecd"][key] == monitor.stream("a").summary.ecd
    active = frozenset({("group", "a"), ("kind", "change"), ("direction", "over-confident")})
    assert values["safecal.group.alarm_active"][active] == 1
    monitor.acknowledge(group="a")
    assert collector.collect()[0]["safecal.group.alarm_active"][active] == 0


def test_infinite_values_are_not_sent_and_an_impossible_outcome_shows_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    collector, monitor = Collector(), Monitor()
    observe(monitor, collector.meter)
    monitor.update([0, 1], [1.0, 0.5])
    assert monitor.ecd == math.inf
    values, _ = collector.collect()
    assert values["safecal.impossible"] == {NONE: 1}
    assert values["safecal.alarm_active"][frozenset({("kind", "change"), ("direction", "over-confident")})] == 1
    assert not {"safecal.ecd", "safecal.log10_change", "safecal.log10_e_value"} & set(values)
    assert caplog.records == []


def test_the_global_meter() -> None:
    pytest.importorskip("opentelemetry.metrics")
    observe(Monitor())


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="`monitor` must be a Monitor"):
        observe(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`max_groups`"):
        observe(Monitor(), max_groups=-1)
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    with pytest.raises(MissingExtraError, match=r"safecal\[opentelemetry\]"):
        observe(Monitor())
