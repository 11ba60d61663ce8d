"""An endpoint for Prometheus: a small server that hands out the state of a watched model."""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self, final

from .._checks.columns import whole_number
from .._checks.message import fail, show
from ..errors import NotifyError, OptionError
from .exposition import exposition
from .history import History

__all__ = ["Server", "exposition"]

_CONNECTIONS = 16  # at a time
_SECONDS = 10.0  # that a connection may last
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@final
class Server:
    """A server for Prometheus: ``GET /metrics``, and nothing else.

    Parameters
    ----------
    port : int
        Where to listen; 0 takes a free one.
    host : str, default "127.0.0.1"
        The address to listen on: this machine alone, unless told otherwise. There is no password.
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
            said = getattr(error, "strerror", None) or str(error)
            raise NotifyError(
                f"the Prometheus endpoint cannot listen on {host} port {port}: {said}.\n\n"
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
        """Close what has been open for too long; called a few times a second."""
        with self._lock:
            for request in [r for r, since in self._open.items() if time.monotonic() - since > _SECONDS]:
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
        timeout = _SECONDS
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
            return self._answer(200, _TYPE, text)

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
