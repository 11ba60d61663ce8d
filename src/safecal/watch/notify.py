"""Who is told when an alarm is raised: a command of yours, or an address on the web.

Each is told at least once, also when the first try fails or the watcher dies in between.
"""

import http.client
import json
import math
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final
from urllib.parse import urlsplit

from .. import documents
from .._checks.columns import whole_number
from .._checks.message import fail
from .._versions import version
from ..errors import NotifyError, OptionError, SafecalError
from ..html.markup import visible
from .history import Raised
from .standing import group_names, log10
from .store import Store

__all__ = ["Notifier", "body", "channels", "check_url", "post", "run_command"]

_AGAIN = {408, 425, 429}  # answers that ask to come back later, beside 500 and above
_LONGEST = 1000  # characters of an environment variable


@final
@dataclass(slots=True)
class Notifier:
    """Delivers the alarms that the store says have not been delivered.

    Attributes
    ----------
    store : Store
        Alarms stand in it before anyone is told.
    channels : dict of str to callable
        By name, what tells of an alarm, and raises when it could not.
    tell : callable
        Takes one line about what went wrong.
    pause : float
        Seconds after a failure before the channel is tried again.
    clock : callable
        Seconds that pass.
    """

    store: Store
    channels: dict[str, Callable[[Raised], None]]
    tell: Callable[[str], None]
    pause: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _again: dict[str, float] = field(default_factory=dict)

    def deliver(self, *, now: bool = False) -> int:
        """Try what is still to be delivered, and return how many deliveries failed.

        Parameters
        ----------
        now : bool, default False
            Whether to try a channel that has just failed.
        """
        failed = 0
        for name, send in self.channels.items():
            if not now and self.clock() < self._again.get(name, -math.inf):
                continue
            waiting = self.store.undelivered(name)
            for place, (number, raised) in enumerate(waiting):
                try:
                    send(raised)
                except (SafecalError, OSError) as error:
                    failed += len(waiting) - place
                    self._again[name] = self.clock() + self.pause
                    self.tell(f"an alarm was not delivered by {name}, and will be tried again: {error}")
                    break
                self.store.delivered(number, name)
        return failed


def channels(command: str | None, webhook: str | None) -> dict[str, Callable[[Raised], None]]:
    """Return the channels that were asked for."""
    found: dict[str, Callable[[Raised], None]] = {}
    if command is not None:
        found["command"] = lambda raised: run_command(command, raised, timeout=60.0)
    if webhook is not None:
        found["webhook"] = lambda raised: post(webhook, raised, attempts=3, timeout=10.0)
    return found


def body(raised: Raised) -> dict[str, Any]:
    """Return an alarm as the JSON object that a command reads and a webhook is sent.

    Parameters
    ----------
    raised : Raised
        The alarm.

    Returns
    -------
    dict
        ``kind``, ``direction``, ``group``, ``row``, ``began``, ``window``, ``log10_e_value``, ``log10_threshold``,
        ``ecd`` and ``allowed`` of the rows it speaks of, ``within`` (whether they lie within the limits), ``at``,
        ``batch`` and ``text``. An infinite number is written as ``"inf"``.

    Examples
    --------
    >>> from safecal.monitor import Alarm
    >>> from safecal.watch.history import Raised
    >>> alarm = Alarm("change", "over-confident", None, 5200, 15.2, 13.8, 4990, "2026-11-14")
    >>> body(Raised(alarm, "2026-11-14T09:30:00+00:00", "part-7.csv"))["text"]
    'changed at about row 4990, too sharp: e-value 3.99e+06 at row 5200, 9.85e+05 was asked for (window 2026-11-14)'
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
        "text": visible(str(alarm)),
    }


def run_command(command: str, raised: Raised, *, timeout: float = 30) -> None:
    """Run a command through the shell, and tell it about an alarm.

    The alarm comes as one line of JSON on its standard input, as `body` gives it, and by parts in environment
    variables: ``SAFECAL_ALARM_KIND``, ``…_DIRECTION``, ``…_GROUP`` and so on, empty where there is none and cut
    after 1000 characters. What it prints goes to standard error.

    Parameters
    ----------
    command : str
        A line for the shell.
    raised : Raised
        The alarm.
    timeout : float, default 30
        Seconds after which it is ended, with everything that it started.

    Raises
    ------
    NotifyError
        When it ends with another status than 0, or not in time.
    """
    content = body(raised)
    environment = {f"SAFECAL_ALARM_{name.upper()}": _text(value) for name, value in content.items()}
    if isinstance(raised.alarm.group, tuple):
        environment["SAFECAL_ALARM_GROUP"] = _text(group_names([raised.alarm.group])[raised.alarm.group])
    with subprocess.Popen(
        command, shell=True, stdin=subprocess.PIPE, stdout=2, env=os.environ | environment, start_new_session=True
    ) as process:
        try:
            process.communicate(json.dumps(content).encode() + b"\n", timeout=timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise NotifyError(f"the alarm command was ended: it took more than {timeout:g} s: {command}") from None
        except BaseException:
            _end(process)
            raise
    if process.returncode != 0:
        how = f"ended with status {process.returncode}"
        if process.returncode < 0:
            how = f"was ended by signal {-process.returncode}"
        raise NotifyError(f"the alarm command {how}: {command}")


def _text(value: Any) -> str:
    """Return a value for an environment variable, which cannot hold everything that text can."""
    return "" if value is None else visible(str(value))[:_LONGEST]


def _end(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    else:
        process.kill()
    process.wait()


def check_url(url: str) -> str:
    """Return an address that can be posted to; refuse any other.

    Parameters
    ----------
    url : str
        It begins with ``http://`` or ``https://``.

    Returns
    -------
    str
        The same.

    Raises
    ------
    OptionError
        When it is no such address.
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (ValueError, AttributeError, TypeError):
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        hint = "such as https://example.org/hooks/1; other characters than ASCII are written as %XX."
        raise fail(OptionError, "url", "must be an http or https address", hint=hint)
    return url


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: what was posted would be lost on the way."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(url: str, raised: Raised, *, attempts: int = 4, timeout: float = 10, pause: float = 1.0) -> None:
    """Post an alarm to an address as JSON, as `body` gives it; try again where that may help.

    Answers of 500 and above, 408, 425, 429, a refused or broken connection and silence are tried again, after
    ``pause`` seconds and then twice as long each time. Every other answer than 2xx is final.

    Parameters
    ----------
    url : str
        An http or https address. It may hold a secret: messages name its host only.
    raised : Raised
        The alarm.
    attempts : int, default 4
        Times to try, in all.
    timeout : float, default 10
        Seconds to wait for an answer, each time.
    pause : float, default 1.0
        Seconds to wait before the second attempt.

    Raises
    ------
    OptionError
        When the address is none.
    NotifyError
        When it was refused, or when every attempt failed.
    """
    check_url(url)
    whole_number(attempts, "attempts", 1)
    headers = {"Content-Type": "application/json", "User-Agent": f"safecal/{version()}"}
    data = json.dumps(body(raised)).encode()
    said = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        request = urllib.request.Request(url, data, headers, method="POST")
        try:
            with urllib.request.build_opener(_Stay).open(request, timeout=timeout):
                return
        except urllib.error.HTTPError as error:
            with error:
                said = f"{error.code} {visible(str(error.reason))}".strip()
            if error.code < 500 and error.code not in _AGAIN:
                raise NotifyError(f"the webhook at {_host(url)} refused the alarm: {said}.") from None
        except (OSError, http.client.HTTPException) as error:
            said = visible(str(getattr(error, "reason", error))) or type(error).__name__
    times = "once" if attempts == 1 else f"{attempts} times"
    raise NotifyError(f"the webhook at {_host(url)} was tried {times}, and failed; at last: {said}.")


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]
