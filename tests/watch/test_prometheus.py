"""The endpoint, read by the parser of the Prometheus client over real HTTP."""

import http.client
import math
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from safecal.errors import InputError, NotifyError, SafecalError
from safecal.monitor import Monitor
from safecal.watch.history import History
from safecal.watch.prometheus import Server, exposition

from .histories import HOSTILE, history_of, watched

parser = pytest.importorskip("prometheus_client.parser")

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


def read(text: str) -> tuple[Samples, dict[str, Any]]:
    """Return the samples and the families of a text, each sample once."""
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    parsed: Samples = {}
    for family in families.values():
        assert family.documentation
        assert family.type in ("counter", "gauge")
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in parsed, key
            parsed[key] = sample.value
    return parsed, families


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"safecal_{name}", frozenset(labels.items())]


def get(port: int, path: str = "/metrics") -> tuple[int, str | None, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_the_endpoint_over_http() -> None:
    history = watched([1.0, 1.0, 3.0], quarantined=3)
    with Server(0, snapshot=lambda: history) as server:
        assert server.port > 0
        status, kind, text = get(server.port)
        assert get(server.port, "/metrics?name=x")[2] == text
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    samples, families = read(text)
    monitor = history.monitor
    assert value(samples, "rows_total") == 1200
    assert value(samples, "ecd_nats") == monitor.ecd
    assert value(samples, "log10_e_value", direction="over-confident") == monitor.log_e_value() / math.log(10)
    assert value(samples, "log10_e_value_threshold", direction="over-confident") == pytest.approx(math.log10(50))
    assert value(samples, "log10_e_value_threshold", direction="shifted up") == pytest.approx(2.0)
    assert value(samples, "log10_e_value", direction="shifted up") == monitor.log_e_value("shifted up") / math.log(10)
    assert value(samples, "alarm_active", kind="since the start", direction="shifted down") == 0
    assert value(samples, "log10_change") == monitor.log_change() / math.log(10)
    assert value(samples, "log10_change_threshold") == pytest.approx(5)
    assert value(samples, "impossible_total") == 0
    assert value(samples, "quarantined_total") == 3
    assert value(samples, "last_update_timestamp_seconds") == 1767225600 + 12 * 3600
    assert value(samples, "window_rows") == 400
    ends = [value(samples, f"window_ecd_{end}nats") for end in ("low_", "", "high_")]
    summary, at = monitor.windows()["2026-01-03"]
    assert ends == [at.low, summary.ecd, at.high]
    kinds = {"kind": "change", "direction": "over-confident"}
    assert value(samples, "alarms_total", **kinds) == value(samples, "alarm_active", **kinds) == 1
    assert value(samples, "alarms_total", kind="since the start", direction="under-confident") == 0
    assert families["safecal_rows"].type == "counter"
    assert not any("group" in name for name in families)


def test_a_change_to_under_confidence_is_shown_where_it_is_looked_for() -> None:
    history = history_of("relaxed")
    samples, _ = read(exposition(history))
    assert value(samples, "log10_other_change") == history.monitor.log_change("under-confident") / math.log(10)
    assert value(samples, "log10_change_threshold") == pytest.approx(math.log10(20_000))
    assert value(samples, "alarm_active", kind="change", direction="under-confident") == 1
    assert value(samples, "alarm_active", kind="change", direction="over-confident") == 0
    assert "log10_other_change" not in exposition(watched([1.0]))


def test_groups_are_capped_and_the_rest_is_counted() -> None:
    history = watched([1.0, 1.0], names=[f"g{k}" for k in range(8)])
    samples, _ = read(exposition(history, max_groups=3))
    assert value(samples, "groups") == 8
    assert value(samples, "groups_not_shown") == 5
    shown = {dict(labels)["group"] for name, labels in samples if name == "safecal_group_rows_total"}
    assert len(shown) == 3
    margins = {
        g: max(
            history.monitor.log_e_value(group=g) - history.monitor.threshold(group=g).log_threshold,
            history.monitor.log_change(group=g) - history.monitor.threshold(group=g).log_run_length,
        )
        for g in history.monitor.groups
    }
    assert shown == set(sorted(margins, key=margins.__getitem__)[-3:])
    assert value(read(exposition(history))[0], "groups_not_shown") == 0
    every, _ = read(exposition(history, max_groups=0))
    assert value(every, "groups_not_shown") == 8


def test_hostile_names_come_back_as_they_were() -> None:
    history = watched([1.0], names=HOSTILE)
    samples, _ = read(exposition(history))
    groups = {dict(labels)["group"] for name, labels in samples if name == "safecal_group_rows_total"}
    whole = {name for name in HOSTILE if not name.startswith("\ud800")}
    assert groups == {*whole, r"\ud800 half"}


def test_groups_that_read_alike_stay_apart() -> None:
    monitor = Monitor(grouped=True)
    monitor.update([0, 1], [0.2, 0.7], by=[1, 2])
    monitor.update([0, 1], [0.2, 0.7], by=["1", "2"])
    samples, _ = read(exposition(History(monitor)))
    groups = {dict(labels)["group"] for name, labels in samples if name == "safecal_group_rows_total"}
    assert groups == {"1", "2", "'1'", "'2'"}


def test_nothing_yet() -> None:
    samples, families = read(exposition(History(Monitor())))
    assert value(samples, "rows_total") == 0
    assert math.isnan(value(samples, "ecd_nats"))
    assert value(samples, "log10_change") == -math.inf
    assert "safecal_last_update_timestamp_seconds" not in families


def test_an_impossible_outcome_is_infinite() -> None:
    text = exposition(watched([1.0, 1.0], impossible_at=1))
    samples, _ = read(text)
    assert value(samples, "impossible_total") == 1
    assert value(samples, "ecd_nats") == math.inf
    assert value(samples, "window_ecd_nats") == math.inf
    assert value(samples, "log10_e_value", direction="over-confident") == math.inf
    assert value(samples, "log10_e_value", direction="under-confident") == -math.inf
    assert value(samples, "log10_change") == math.inf
    assert "+Inf" in text


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metric", "/etc/passwd"])
def test_only_metrics_are_there(path: str) -> None:
    with Server(0, snapshot=lambda: History(Monitor())) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(server.port, path)
        with refused.value:
            assert refused.value.code == 404
        asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        asked.request("POST", "/metrics", b"x")
        assert asked.getresponse().status == 501
        asked.close()


def test_a_failure_is_a_failed_scrape_and_the_server_goes_on() -> None:
    broken = True

    def snapshot() -> History:
        if broken:
            raise RuntimeError("a secret")
        return History(Monitor())

    with Server(0, snapshot=snapshot) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(server.port)
        with refused.value:
            assert (refused.value.code, refused.value.read()) == (500, b"RuntimeError\n")
        broken = False
        assert get(server.port)[0] == 200


def test_it_listens_on_this_machine_alone_and_lets_go_of_its_port() -> None:
    with Server(0, snapshot=lambda: History(Monitor())) as server:
        assert server._http.server_address[0] == "127.0.0.1"
        with pytest.raises(NotifyError, match=rf"127\.0\.0\.1 port {server.port}.*in use.*\n\nHint: "):
            Server(server.port, snapshot=lambda: History(Monitor()))
    with Server(server.port, snapshot=lambda: History(Monitor())) as again:
        assert get(again.port)[0] == 200
    assert "safecal" not in {thread.name for thread in threading.enumerate()}


def test_a_bad_address() -> None:
    for port in (-1, 65536, 80.0):
        with pytest.raises(InputError, match="`port` must be"):
            Server(port, snapshot=lambda: History(Monitor()))  # type: ignore[arg-type]
    with pytest.raises(SafecalError, match="cannot listen on"):
        Server(0, "192.0.2.1", snapshot=lambda: History(Monitor()))
    with pytest.raises(InputError, match="`max_groups` must be"):
        exposition(History(Monitor()), max_groups=-1)


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6")
def test_ipv6() -> None:
    try:
        server = Server(0, "::1", snapshot=lambda: History(Monitor()))
    except NotifyError:
        pytest.skip("IPv6 is switched off")
    with server, urllib.request.urlopen(f"http://[::1]:{server.port}/metrics", timeout=10) as answer:
        assert answer.status == 200


def test_scrapes_at_once_get_one_snapshot_at_a_time() -> None:
    busy = threading.Lock()
    history = watched([1.0])

    def snapshot() -> History:
        assert busy.acquire(blocking=False)
        try:
            return history
        finally:
            busy.release()

    with Server(0, snapshot=snapshot) as server:
        answers: list[int] = []
        askers = [threading.Thread(target=lambda: answers.append(get(server.port)[0])) for _ in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
    assert answers == [200] * 8


@pytest.fixture
def clients() -> Iterator[Callable[..., socket.socket]]:
    """Return a function that connects to a port, sends some bytes, and leaves the connection open."""
    held: list[socket.socket] = []

    def connect(port: int, sent: bytes = b"") -> socket.socket:
        held.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        held[-1].sendall(sent)
        return held[-1]

    yield connect
    for one in held:
        one.close()


def _answered(one: socket.socket) -> bytes:
    """Return all that a connection brings until it is closed."""
    received = b""
    try:
        while piece := one.recv(1 << 16):
            received += piece
    except ConnectionResetError:
        pass
    return received


def _drip(one: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        one.sendall(b"x")
        time.sleep(0.05)


def test_clients_that_sit_there_take_no_place_and_no_threads(clients: Callable[..., socket.socket]) -> None:
    before = threading.active_count()
    with Server(0, snapshot=lambda: History(Monitor())) as server:
        for k in range(200):
            clients(server.port, (b"", b"GET /metrics HTTP/1.1\r\nX: ")[k % 2])
        assert get(server.port)[0] == 200
        assert threading.active_count() - before <= 40


def test_a_client_that_drips_is_closed_in_time(
    clients: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safecal.watch.prometheus._CONNECTION_SECONDS", 0.5)
    with Server(0, snapshot=lambda: History(Monitor())) as server:
        one = clients(server.port, b"GET /metrics HTTP/1.1\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            _drip(one, 10.0)
        assert get(server.port)[0] == 200


def test_a_client_that_reads_nothing_is_closed_in_time(
    clients: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safecal.watch.prometheus._CONNECTION_SECONDS", 0.5)
    monkeypatch.setattr("safecal.watch.prometheus.exposition", lambda *_, **__: "x" * 50_000_000)
    before = threading.active_count()
    with Server(0, snapshot=lambda: History(Monitor())) as server:
        clients(server.port, b"GET /metrics HTTP/1.0\r\n\r\n")
        time.sleep(0.1)
        for _ in range(100):
            if threading.active_count() <= before + 1:  # the server itself is left
                return
            time.sleep(0.05)
    pytest.fail("the client keeps its thread")


@pytest.mark.parametrize("sent", [b"X: " + b"y" * 10**6, b"X: y\r\n" * 10**5, b"\0" * 10**6])
def test_headers_without_end_are_refused(sent: bytes, clients: Callable[..., socket.socket]) -> None:
    with Server(0, snapshot=lambda: History(Monitor())) as server:
        try:
            one = clients(server.port, b"GET /metrics HTTP/1.1\r\n" + sent)
            assert _answered(one)[9:12] in (b"", b"400", b"431")
        except (BrokenPipeError, ConnectionResetError):  # it hung up before it had heard everything
            pass
        assert get(server.port)[0] == 200
