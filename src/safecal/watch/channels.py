"""Who is told of an alarm: a command of yours, or an address on the web; at least once, whatever fails or dies.

A delivery runs beside the watch, one for each channel at a time: a slow command or webhook holds up no row. The store
is the queue: what is not delivered stands there, and is tried again.
"""

import base64
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, final
from urllib.parse import unquote, unquote_to_bytes, urlsplit, urlunsplit

from .. import documents
from .._checks import fail
from .._checks.columns import whole_number
from .._optional import version
from ..errors import NotifyError, OptionError, SafecalError, shortened
from .history import Raised, group_names, log10
from .store import Store

__all__ = ["Notifier", "body", "channels", "check_url", "post", "run_command"]

_RETRIED = {408, 425, 429}  # answers that ask to come back later, beside 500 and above
_VARIABLE_LENGTH = 1000  # characters of an environment variable
_ANSWER_LENGTH = 200  # characters of an answer that are shown
_DELIVERY_SIZE = 100  # alarms that a delivery takes along at most
_POLL = 0.1  # seconds between two looks at a delivery


def channels(command: str | None, webhook: str | None) -> dict[str, Callable[[Raised], None]]:
    """Return the channels that were asked for."""
    senders: dict[str, Callable[[Raised], None]] = {}
    if command is not None:
        senders["command"] = lambda raised: run_command(command, raised, timeout=60.0)
    if webhook is not None:
        senders["webhook"] = lambda raised: post(webhook, raised, attempts=3, timeout=10.0)
    return senders


def body(raised: Raised) -> dict[str, Any]:
    """Return an alarm as the JSON object that a command reads and a webhook is sent.

    ``ecd``, ``allowed`` and ``within`` (the limits) are of the rows that it speaks of. An infinite number is written as
    ``"inf"``.

    Examples
    --------
    >>> from safecal.monitor import Alarm
    >>> from safecal.watch.history import Raised
    >>> alarm = Alarm("change", "over-confident", None, 5200, 15.2, 13.8, 4990, "2026-11-14")
    >>> body(Raised(alarm, "2026-11-14T09:30:00+00:00", "part-7.csv"))["text"]
    'changed at about row 4990, too sharp: e-value 3.99e+06 at row 5200, threshold 9.85e+05 (window 2026-11-14)'
    """
    alarm = raised.alarm
    size = alarm.size
    return {
        "source": "safecal",
        "version": documents.SCHEMA_VERSION,
        "kind": alarm.kind,
        "direction": alarm.direction,
        "group": documents.plain(alarm.group),
        "row": alarm.row,
        "began": alarm.began,
        "window": alarm.window,
        "log10_e_value": documents.number(log10(alarm.log_e_value)),
        "log10_threshold": documents.number(log10(alarm.log_threshold)),
        "ecd": None if size is None else documents.number(size.ecd),
        "allowed": None if size is None else size.allowed,
        "within": None if size is None else size.within,
        "at": raised.at,
        "batch": raised.batch,
        "text": str(alarm),
    }


def run_command(command: str, raised: Raised, *, timeout: float = 30) -> None:
    """Run a command through the shell, and tell it about an alarm.

    The alarm comes as one line of JSON on its standard input, as `body` gives it, and by parts in environment
    variables: ``SAFECAL_ALARM_KIND``, ``…_DIRECTION``, ``…_GROUP`` and so on, empty where there is none and cut
    after 1000 characters. What it prints goes to standard error. After ``timeout`` seconds it is ended, with everything
    that it started; that, or another status than 0, is an error.
    """
    content = body(raised)
    environment = {f"SAFECAL_ALARM_{name.upper()}": _variable_text(value) for name, value in content.items()}
    if isinstance(raised.alarm.group, tuple):
        environment["SAFECAL_ALARM_GROUP"] = _variable_text(group_names([raised.alarm.group])[raised.alarm.group])
    with subprocess.Popen(
        command, shell=True, stdin=subprocess.PIPE, stdout=2, env=os.environ | environment, start_new_session=True
    ) as process:
        try:
            process.communicate(json.dumps(content).encode() + b"\n", timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise NotifyError(f"the alarm command was ended: it took more than {timeout:g} s: {command}") from None
        except BaseException:
            _kill(process)
            raise
    if process.returncode != 0:
        how = f"ended with status {process.returncode}"
        if process.returncode < 0:
            how = f"was ended by signal {-process.returncode}"
        raise NotifyError(f"the alarm command {how}: {command}")


def _variable_text(value: Any) -> str:
    return "" if value is None else shortened(str(value), _VARIABLE_LENGTH)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def check_url(url: str) -> str:
    """Return an http or https address; refuse any other, without showing it: it may hold a secret."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        (parts.hostname or "").encode("idna")
    except (ValueError, AttributeError, TypeError):
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        hint = "such as https://example.org/hooks/1; write characters other than ASCII as %XX."
        raise fail(OptionError, "url", "must be an http or https address", hint=hint)
    return url


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: what was posted would be lost on the way, and a password might go to a stranger."""

    def redirect_request(self, *_: Any) -> None:
        return None


@final
class _TimedConnection:
    """The connection of one attempt, which is cut when its time is up, however busily the other side drips."""

    def __init__(self, seconds: float) -> None:
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self.cut = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None

    def take(self, connection: socket.socket) -> None:
        """Keep a second handle: it reaches the connection through TLS, a proxy and a half-read answer alike."""
        with self._lock:
            if self._socket is None:
                self._socket = connection.dup()
            if self.cut:
                self._hang_up()

    def _end(self) -> None:
        with self._lock:
            self.cut = True
            self._hang_up()

    def _hang_up(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # the other side may have gone already
                self._socket.shutdown(socket.SHUT_RDWR)

    def opener(self) -> urllib.request.OpenerDirector:
        """Return an opener of addresses, whose connections this one can cut."""
        timed = self

        class Tracked:
            def __setattr__(self, name: str, value: Any) -> None:
                super().__setattr__(name, value)
                if name == "sock" and value is not None:
                    timed.take(value)

        class Plain(Tracked, http.client.HTTPConnection): ...

        class Secure(Tracked, http.client.HTTPSConnection): ...

        class Http(urllib.request.HTTPHandler):
            def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Plain, request)

        class Https(urllib.request.HTTPSHandler):
            def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Secure, request)

        return urllib.request.build_opener(_NoRedirect, Http, Https)


def post(url: str, raised: Raised, *, attempts: int = 4, timeout: float = 10, pause: float = 1.0) -> None:
    """Post an alarm to an address as JSON, as `body` gives it; try again where that may help.

    Answers of 500 and above, 408, 425, 429, a refused or broken connection and silence are tried again, after
    ``pause`` seconds and then twice as long each time. Every other answer than 2xx is final. Redirections are not
    followed, and what stands in an answer is not read. An attempt may take ``timeout`` seconds, from the first byte to
    the last, however slowly the answer comes.

    A name and a password before the host, ``https://me:secret@example.org/``, are sent as basic authorisation. The
    address may hold a secret: messages name its host only.
    """
    check_url(url)
    whole_number(attempts, "attempts", 1)
    address, headers = _split_credentials(url)
    headers |= {"Content-Type": "application/json", "User-Agent": f"safecal/{version()}"}
    data = json.dumps(body(raised)).encode()
    failure = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        request = urllib.request.Request(address, data, headers, method="POST")
        with _TimedConnection(timeout) as connection:
            try:
                with connection.opener().open(request, timeout=timeout):
                    if not connection.cut:  # an answer that was cut short may look like a whole one
                        return
            except urllib.error.HTTPError as error:
                with error:
                    failure = _without_secrets(f"{error.code} {error.reason}", url)
                if error.code < 500 and error.code not in _RETRIED:
                    raise NotifyError(f"the webhook at {_host(url)} refused the alarm: {failure}.") from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                failure = _without_secrets(str(getattr(error, "reason", error)) or type(error).__name__, url)
            if connection.cut:
                failure = f"no complete answer came within {timeout:g} s"
    times = "once" if attempts == 1 else f"{attempts} times"
    raise NotifyError(f"the webhook at {_host(url)} was tried {times}, and failed; the last failure: {failure}.")


def _split_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Return the address without name and password, and the header that carries them."""
    parts = urlsplit(url)
    user, at_sign, host = parts.netloc.rpartition("@")
    if not at_sign:
        return url, {}
    name, _, password = user.partition(":")
    token = base64.b64encode(unquote_to_bytes(name) + b":" + unquote_to_bytes(password)).decode("ascii")
    return urlunsplit(parts._replace(netloc=host)), {"Authorization": f"Basic {token}"}


def _without_secrets(text: str, url: str) -> str:
    """Return an error in one short line, without the secrets that a rude server can have sent back."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    password = user.partition(":")[2]
    token = _split_credentials(url)[1].get("Authorization", "").removeprefix("Basic ")
    secrets = {user, password, unquote(password), parts.path, parts.query, token}
    for secret in sorted(secrets - {"", "/"}, key=len, reverse=True):
        text = text.replace(secret, "...")
    return shortened(text.strip(), _ANSWER_LENGTH)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


@final
class _Delivery:
    """Some alarms on their way through a channel, in a thread of their own, which never touches the store."""

    def __init__(self, waiting: tuple[tuple[int, Raised], ...], send: Callable[[Raised], None]) -> None:
        self._waiting, self._send = waiting, send
        self.sent: list[int] = []  # grows from the other thread
        self.noted = 0  # of these, how many stand in the store as delivered
        self.error: Exception | None = None
        # Left behind where it does not end: at the end of the program it must not hold up the last words.
        self._thread = threading.Thread(target=self._run, name="safecal-delivery", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for number, raised in self._waiting:
            try:
                self._send(raised)
            except Exception as error:  # noqa: BLE001 - it is told of, in the thread of the watch
                self.error = error
                return
            self.sent.append(number)

    def wait(self, seconds: float = 0.0) -> bool:
        """Wait so many seconds for its end, and tell whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


@final
@dataclass(slots=True)
class Notifier:
    """Delivers the alarms that the store says have not been delivered.

    Attributes
    ----------
    store : Store
        Alarms stand in it before anyone is told. Only the thread that calls the methods speaks to it.
    channels : dict of str to callable
        By name, what tells of an alarm, and raises when it could not.
    tell : callable
        Takes one line about what went wrong.
    pause : float
        Seconds after a failure before the channel is tried again.
    """

    store: Store
    channels: dict[str, Callable[[Raised], None]]
    tell: Callable[[str], None]
    pause: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _retry_at: dict[str, float] = field(default_factory=dict)
    _under_way: dict[str, _Delivery] = field(default_factory=dict)

    def deliver(self) -> None:
        """Note the alarms that were delivered, and send the others on their way; wait for nothing."""
        for name in self.channels:
            self._collect(name)
            if name not in self._under_way and self.clock() >= self._retry_at.get(name, -math.inf):
                self._start(name)

    def due(self) -> float | None:
        """Return the seconds after which `deliver` has something to do; None where it has not."""
        if self._under_way:
            return _POLL
        return max(_POLL, min(self._retry_at.values()) - self.clock()) if self._retry_at else None

    def finish(self, seconds: float, *, stopped: Callable[[], bool] = lambda: False, leave: float = 5.0) -> int:
        """Try everything once more, wait for all of it together, and return how many deliveries the next run must try.

        Once someone has asked to stop (``stopped``), nothing more is begun, and it ends after ``leave`` seconds.
        """
        end = self.clock() + seconds
        for name in self.channels:
            self._retry_at.pop(name, None)
            while True:
                self._collect(name)
                if name not in self._under_way and (stopped() or name in self._retry_at or not self._start(name)):
                    break
                if stopped():
                    end, leave = min(end, self.clock() + leave), math.inf
                if self.clock() >= end:
                    break
                self._under_way[name].wait(_POLL)
        return sum(self._left(name) for name in self.channels)

    def _start(self, name: str) -> bool:
        """Send the alarms that wait for a channel; tell whether there were any."""
        self._retry_at.pop(name, None)
        waiting = self.store.undelivered(name)[:_DELIVERY_SIZE]
        if waiting:
            self._under_way[name] = _Delivery(waiting, self.channels[name])
        return bool(waiting)

    def _collect(self, name: str) -> None:
        """Note in the store which alarms a delivery has sent so far, and tell how it failed."""
        delivery = self._under_way.get(name)
        if delivery is None:
            return
        ended = delivery.wait()
        for number in delivery.sent[delivery.noted :]:
            self.store.delivered(number, name)
            delivery.noted += 1
        if not ended:
            return
        del self._under_way[name]
        if delivery.error is not None:
            self._retry_at[name] = self.clock() + self.pause
            failure = delivery.error if isinstance(delivery.error, SafecalError | OSError) else repr(delivery.error)
            self.tell(f"an alarm was not delivered by {name}, and will be tried again: {failure}")

    def _left(self, name: str) -> int:
        left = len(self.store.undelivered(name))
        if left:
            alarms = "1 alarm was" if left == 1 else f"{left} alarms were"
            self.tell(f"{alarms} not delivered by {name}; the next run tries again.")
        return left
