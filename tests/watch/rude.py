"""Servers that answer a webhook as no server should."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Self

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def _drip() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"x"


def _again() -> Iterator[bytes]:
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n"


def _endless() -> Iterator[bytes]:
    yield b"HTTP/1.1 500 " + b"no " * 10_000 + b"\r\n\r\n"
    while True:
        yield bytes(100_000)


# What comes back, piece by piece, with a short pause between two. After the last the connection is closed.
RUDE = {
    "drips": _drip,
    "says to go on, for ever": _again,
    "closes at once": lambda: iter(()),
    "answers without end": _endless,
    "answers with bytes": lambda: iter([bytes(range(256)) * 40 + b"\r\n\r\n"]),
    "answers with escapes": lambda: iter([b"HTTP/1.1 503 \x1b[31m\x9b2Jgone\xe2\x80\xae\r\n\r\n"]),
    "is down": lambda: iter([b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"]),
    "has too many headers": lambda: iter([b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n"]),
    "has a status of its own": lambda: iter([b"HTTP/1.1 9999999 ok\r\n\r\n"]),
}


class Rude:
    """A server on this machine that answers every request in one way, and keeps what it was sent.

    Parameters
    ----------
    answer : bytes or str
        What it sends; or the name of a way in `RUDE`; or "silent", which never answers.
    pause : float
        Seconds between two pieces.
    """

    def __init__(self, answer: bytes | str, pause: float = 0.02) -> None:
        self._answer, self._pause = answer, pause
        self.heard: list[bytes] = []
        self.over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(10.0)
                self.heard.append(connection.recv(1 << 16))
                if self._answer == "silent":
                    self.over.wait(30.0)
                    return
                pieces = iter([self._answer]) if isinstance(self._answer, bytes) else RUDE[self._answer]()
                for piece in pieces:
                    connection.sendall(piece)
                    if self.over.wait(self._pause):
                        return
            except OSError:  # the client hung up, as it should
                return
