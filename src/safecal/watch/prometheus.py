"""Prometheus: the state of a watched model in its text format, 0.0.4, and a small server that hands it out."""

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, NamedTuple, Self, final

from .._checks import fail, show
from .._checks.columns import whole_number
from ..errors import NotifyError, OptionError
from .history import History, Reading, group_names, shown_groups

__all__ = ["Server", "exposition"]

_CONNECTIONS = 16  # at a time
_CONNECTION_SECONDS = 10.0  # that a connection may last
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


class _Metric(NamedTuple):
    """A metric: its name after ``safecal_``, its kind, its help text, and its samples."""

    name: str
    kind: str
    about: str
    samples: Sequence[tuple[Labels, float]]


def exposition(history: History, *, max_groups: int = 50) -> str:
    """Return the state in the text format of Prometheus.

    Parameters
    ----------
    history : History
        What is known of the model.
    max_groups : int, default 50
        Groups that get series of their own: those with the strongest evidence of over-confidence. The others are
        counted in ``safecal_groups_not_shown``.

    Returns
    -------
    str
        Format 0.0.4. Metrics of all rows are named ``safecal_…``, those of groups ``safecal_group_…``, so that a sum
        over a metric counts no row twice.

    Examples
    --------
    >>> from safecal.monitor import Monitor
    >>> from safecal.watch.history import History
    >>> monitor = Monitor()
    >>> monitor.update([0, 1, 1], [0.2, 0.7, 0.9])
    ()
    >>> print(exposition(History(monitor)).splitlines()[2])
    safecal_rows_total 3
    """
    group_limit = whole_number(max_groups, "max_groups", 0)
    monitor = history.monitor
    alarm_counts: dict[Hashable, dict[tuple[str, ...], int]] = {}
    for entry in history.alarms:
        counts = alarm_counts.setdefault(entry.alarm.group, {})
        key = (entry.alarm.kind, entry.alarm.direction)
        counts[key] = counts.get(key, 0) + 1
    metrics = _reading_metrics("", [({}, Reading.of(monitor), alarm_counts.get(None, {}))])
    metrics += [*_window_metrics(history), *_upkeep_metrics(history)]
    if monitor.grouped:
        names = group_names(monitor.groups)
        worst, left = shown_groups(monitor, group_limit)
        metrics.append(_Metric("groups", "gauge", "Groups that have appeared.", [({}, len(names))]))
        metrics.append(_Metric("groups_not_shown", "gauge", "Groups that have no series here.", [({}, left)]))
        readings = [({"group": names[k]}, reading, alarm_counts.get(k, {})) for k, reading in worst]
        metrics += _reading_metrics("group_", readings)
    return "".join(_metric_text(metric) for metric in metrics if metric.samples)


def _reading_metrics(
    prefix: str, readings: Sequence[tuple[Labels, Reading, dict[tuple[str, ...], int]]]
) -> list[_Metric]:
    """Return the metrics that exist for all rows and for each group."""

    def each(name: str, kind: str, about: str, value: Callable[[Reading], Mapping[tuple[str, ...], float]]) -> _Metric:
        names = {1: ("direction",), 2: ("kind", "direction")}
        samples = [
            ({**labels, **dict(zip(names.get(len(key), ()), key, strict=True))}, number)
            for labels, reading, _ in readings
            for key, number in value(reading).items()
        ]
        return _Metric(prefix + name, kind, about, samples)

    alarms = [
        ({**labels, "kind": kind, "direction": direction}, float(number))
        for labels, reading, counts in readings
        for (kind, direction), number in (dict.fromkeys(_standing_alarms(reading), 0) | counts).items()
    ]
    return [
        each("rows_total", "counter", "Rows taken in.", lambda r: {(): r.summary.n}),
        each(
            "impossible_total", "counter", "Rows whose outcome had probability 0.",
            lambda r: {(): r.summary.n_impossible},
        ),
        each(
            "ecd_nats", "gauge", "Mean excess surprise of all rows; above 0 over-confident.",
            lambda r: {(): r.summary.ecd},
        ),
        each(
            "log10_e_value", "gauge", "Evidence against calibration since the start.",
            lambda r: {(direction,): log for direction, log in r.evidence.items()},
        ),
        each(
            "log10_e_value_threshold", "gauge", "Evidence since the start that raises an alarm.",
            lambda r: {(direction,): log for direction, log in r.thresholds.items()},
        ),
        each("log10_change", "gauge", "Evidence that it became over-confident.", lambda r: {(): r.change}),
        each(
            "log10_other_change", "gauge", "Evidence that it became under-confident, where that is looked for.",
            lambda r: {} if r.other_change is None else {(): r.other_change},
        ),
        each(
            "log10_change_threshold", "gauge", "Evidence of a change that raises an alarm.",
            lambda r: {(): r.change_threshold},
        ),
        each("alarm_active", "gauge", "1 where an alarm was raised and still stands.", _standing_alarms),
        _Metric(f"{prefix}alarms_total", "counter", "Alarms raised.", alarms),
    ]  # fmt: skip


def _standing_alarms(reading: Reading) -> dict[tuple[str, ...], float]:
    """Return which alarms stand, by kind and direction."""
    since_start: dict[tuple[str, ...], float] = {
        ("since the start", direction): direction in reading.raised for direction in reading.evidence
    }
    return since_start | {("change", direction): direction in reading.changes for direction in reading.changing}


def _window_metrics(history: History) -> list[_Metric]:
    """Return ECD of the last window, with its interval; nothing where there are no windows."""
    last = history.monitor.last_window()
    if last is None:
        return []
    _, summary, at = last
    about = "ECD of the last window"
    return [
        _Metric("window_ecd_nats", "gauge", f"{about}.", [({}, at.value)]),
        _Metric("window_ecd_low_nats", "gauge", f"{about}: lower end of its 95 % interval.", [({}, at.low)]),
        _Metric("window_ecd_high_nats", "gauge", f"{about}: upper end of its 95 % interval.", [({}, at.high)]),
        _Metric("window_rows", "gauge", "Rows in the last window.", [({}, summary.n)]),
    ]


def _upkeep_metrics(history: History) -> list[_Metric]:
    about = "Rows or files set aside because they could not be read."
    metrics = [_Metric("quarantined_total", "counter", about, [({}, history.quarantined)])]
    if history.points:
        at = datetime.fromisoformat(history.points[-1].received).timestamp()
        about = "When the last batch was taken in."
        metrics.append(_Metric("last_update_timestamp_seconds", "gauge", about, [({}, at)]))
    return metrics


def _metric_text(metric: _Metric) -> str:
    name = f"safecal_{metric.name}"
    lines = [f"# HELP {name} {metric.about}", f"# TYPE {name} {metric.kind}"]
    lines += [f"{name}{_labels_text(labels)} {_number_text(value)}" for labels, value in metric.samples]
    return "\n".join(lines) + "\n"


def _labels_text(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}" if labels else ""


def _escaped(text: str) -> str:
    """Return a label value with reserved characters escaped."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0.0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


@final
class Server:
    """A server for Prometheus: ``GET /metrics``, and nothing else.

    Parameters
    ----------
    port : int
        Where to listen; 0 takes a free one.
    host : str, default "127.0.0.1"
        The address to listen on; by default this machine alone. There is no password.
    snapshot : callable
        Returns the `History` to show. It is called at each request, from another thread, never twice at a time.
    max_groups : int, default 50
        As in `exposition`.

    Attributes
    ----------
    port : int
        Where it listens.

    Raises
    ------
    NotifyError
        When the port is taken, or the address is not one of this machine.

    Examples
    --------
    >>> import urllib.request
    >>> from safecal.monitor import Monitor
    >>> from safecal.watch.history import History
    >>> with Server(0, snapshot=lambda: History(Monitor())) as server:
    ...     text = urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics").read()
    >>> b"safecal_rows_total 0" in text
    True
    """

    __slots__ = ("_http", "_thread", "port")

    def __init__(
        self, port: int, host: str = "127.0.0.1", *, snapshot: Callable[[], History], max_groups: int = 50
    ) -> None:
        if whole_number(port, "port", 0) > 65535:
            raise fail(OptionError, "port", "must be at most 65535", got=show(port))
        whole_number(max_groups, "max_groups", 0)
        try:
            self._http = _Http((host, port), _handler(snapshot, max_groups))
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise NotifyError(
                f"the Prometheus endpoint cannot listen on {host} port {port}: {reason}.\n\n"
                "Hint: choose another port; 0 takes one that is free."
            ) from error
        self.port: int = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), name="safecal", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    """A thread for each of a few connections, none for longer than a few seconds.

    Where there are too many, the oldest is closed: a scrape that is new and quick finds a place, whoever sits there.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # those who are not let in at once try again after a second
    allow_reuse_address = os.name == "posix"  # elsewhere two servers would share a port

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._open: dict[socket.socket, float] = {}  # connections, the oldest first, and since when
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(2 * _CONNECTIONS)
        super().__init__(address, handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # without asking for the name of the machine, which may take long

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= _CONNECTIONS:
                self._end(next(iter(self._open)))
        if not self._places.acquire(timeout=2.0):  # those that were closed end in a moment
            return self.shutdown_request(request)
        with self._lock:
            self._open[request] = time.monotonic()
        try:
            return super().process_request(request, client_address)
        except BaseException:  # no thread was begun
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def shutdown_request(self, request: Any) -> None:
        with self._lock:  # before it is closed: a closed number may belong to another connection by then
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections that have been open for too long; called a few times a second."""
        with self._lock:
            for request in [r for r, since in self._open.items() if time.monotonic() - since > _CONNECTION_SECONDS]:
                self._end(request)

    def _end(self, request: socket.socket) -> None:
        """Let the thread of a connection find that the client is gone."""
        del self._open[request]
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: Any) -> None:
        """Say nothing when a client goes away."""


def _handler(snapshot: Callable[[], History], max_groups: int) -> type[BaseHTTPRequestHandler]:
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = _CONNECTION_SECONDS
        server_version = "safecal"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                return self._answer(404, "text/plain; charset=utf-8", "Only /metrics is here.\n")
            try:
                with turn:
                    text = exposition(snapshot(), max_groups=max_groups)
            except Exception as error:  # noqa: BLE001 - whatever it is, Prometheus must see a failed scrape
                return self._answer(500, "text/plain; charset=utf-8", f"{type(error).__name__}\n")
            return self._answer(200, _CONTENT_TYPE, text)

        def _answer(self, status: int, kind: str, text: str) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Library code never prints."""

    return Handler
