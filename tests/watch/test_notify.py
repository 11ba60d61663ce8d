"""Commands and webhooks: real processes, and a real server that fails on purpose."""

import base64
import json
import math
import os
import shlex
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from safecal.errors import NotifyError, OptionError, SafecalError
from safecal.monitor import Alarm
from safecal.monitor.alarm import Size
from safecal.watch.channels import body, check_url, post, run_command
from safecal.watch.history import Raised

from .histories import HOSTILE
from .rude import RUDE, Rude

AT = "2026-11-14T09:30:00+00:00"
SIZE = Size(210, 0.078, 0.1, 30.0, 25.0, 3.0, 0.4, 0.41)
ALARM = Alarm("change", "over-confident", ("north", 2), 5200, math.log(1e7), math.log(1e6), 4990, "2026-11-14", SIZE)
RAISED = Raised(ALARM, AT, "part-7.csv")


# What is told


def test_the_body() -> None:
    assert body(RAISED) == {
        "source": "safecal",
        "version": 1,
        "kind": "change",
        "direction": "over-confident",
        "group": ["north", 2],
        "row": 5200,
        "began": 4990,
        "window": "2026-11-14",
        "log10_e_value": pytest.approx(7.0),
        "log10_threshold": pytest.approx(6.0),
        "ecd": 0.078,
        "allowed": 0.1,
        "within": True,
        "at": AT,
        "batch": "part-7.csv",
        "text": str(ALARM),
    }


def test_the_text_tells_the_size_beside_the_limit() -> None:
    text = body(RAISED)["text"]
    assert "changed at about row 4990, too sharp: ECD 0.078, within the limit of 0.1; e-value 1e+07 at row 5200" in text


def test_an_infinite_e_value_is_valid_json() -> None:
    size = Size(3, math.inf, 0.1, 1.0, 1.0, 3.0, 0.4, 0.41)
    alarm = Alarm("since the start", "over-confident", None, 3, math.inf, 3.7, 0, size=size)
    text = json.dumps(body(Raised(alarm, AT, "1")), allow_nan=False)
    assert json.loads(text)["log10_e_value"] == json.loads(text)["ecd"] == "inf"
    assert json.loads(text)["within"] is False
    assert json.loads(text)["group"] is None


# Commands


def test_a_command_is_told_everything(tmp_path: Path) -> None:
    script = "import json, os, sys; names = {k: v for k, v in os.environ.items() if k.startswith('SAFECAL_ALARM_')}; "
    script += "print(json.dumps([json.load(sys.stdin), names]))"
    output = tmp_path / "told.json"
    run_command(f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} > {shlex.quote(str(output))}", RAISED)
    document, names = json.loads(output.read_text())
    assert document == json.loads(json.dumps(body(RAISED)))
    assert names["SAFECAL_ALARM_KIND"] == "change"
    assert names["SAFECAL_ALARM_GROUP"] == "north / 2"
    assert names["SAFECAL_ALARM_ROW"] == "5200"
    assert names["SAFECAL_ALARM_WINDOW"] == "2026-11-14"
    assert float(names["SAFECAL_ALARM_LOG10_E_VALUE"]) == pytest.approx(7.0)
    assert set(names) == {f"SAFECAL_ALARM_{name.upper()}" for name in document}


@pytest.mark.parametrize("group", [None, *HOSTILE])
def test_no_name_breaks_a_command(group: str | None, tmp_path: Path) -> None:
    output = tmp_path / "told"
    raised = Raised(Alarm("change", "over-confident", group, 1, 2.0, 1.0, 0), AT, "$(touch hacked)`touch hacked`")
    run_command(f'cd {shlex.quote(str(tmp_path))}; cat > told; test -n "$SAFECAL_ALARM_BATCH"', raised)
    assert json.loads(output.read_text())["group"] == group
    assert sorted(path.name for path in tmp_path.iterdir()) == ["told"]


def test_what_a_command_prints_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    run_command("echo hello", RAISED)
    assert capfd.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("exit 3", "ended with status 3: exit 3"),
        ("no-such-command-anywhere 2> /dev/null", "ended with status 127"),
        ("kill -9 $$", "was ended by signal 9"),
    ],
)
def test_a_command_that_fails(command: str, message: str) -> None:
    with pytest.raises(NotifyError, match=message.replace("$", r"\$")):
        run_command(command, RAISED)
    assert issubclass(NotifyError, SafecalError)


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(NotifyError, match=r"took more than 0\.5 s"):
            run_command(f"sleep 600 > {shlex.quote(str(pipe))} & wait", RAISED, timeout=0.5)
        for _ in range(200):  # as long as anyone holds the other end, there is nothing to read, and no end
            try:
                assert os.read(reading, 1) == b""
                return
            except BlockingIOError:
                time.sleep(0.05)
        pytest.fail("the child lives on")
    finally:
        os.close(reading)


def test_a_command_need_not_read_and_names_may_be_long() -> None:
    long = Raised(Alarm("change", "over-confident", "x" * 500_000, 1, 2.0, 1.0, 0), AT, "1")
    run_command("true", long)
    run_command('test "${#SAFECAL_ALARM_GROUP}" -ge 1000 && test "$(wc -c)" -gt 1000000', long)


# Webhooks


class _Hook(HTTPServer):
    """A server that gives the answers of a list, one after the other; "slow" is silence, "cut" hangs up."""

    def __init__(self, answers: list[int | str]) -> None:
        self.answers, self.posted, self.headers = answers, [], []  # type: list[int | str], list[Any], list[Any]
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Answer)

    def handle_error(self, *_: Any) -> None:
        """Clients hang up here, on purpose."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/secret"


class _Answer(BaseHTTPRequestHandler):
    server: _Hook

    def do_POST(self) -> None:
        self.server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.headers.append(dict(self.headers))
        answer = self.server.answers.pop(0)
        if answer == "slow":
            self.server.over.wait(0.8)
        if isinstance(answer, str):
            self.close_connection = True
            return
        self.send_response(answer)
        if answer // 100 == 3:
            self.send_header("Location", self.server.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def hook(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Hook]:
    monkeypatch.setenv("NO_PROXY", "*")
    server = _Hook(list(request.param))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("hook", [[200], [204], [503, 200], [500, 429, "cut", 201]], indirect=True)
def test_it_arrives_even_if_not_at_once(hook: _Hook) -> None:
    attempts = len(hook.answers)
    post(hook.url, RAISED, pause=0.01)
    assert hook.posted == [json.loads(json.dumps(body(RAISED)))] * attempts
    assert hook.headers[0]["Content-Type"] == "application/json"
    assert hook.headers[0]["User-Agent"].startswith("safecal/")


@pytest.mark.proof
@pytest.mark.parametrize("hook", [["slow", 200]], indirect=True)
def test_silence_is_tried_again(hook: _Hook) -> None:
    post(hook.url, RAISED, timeout=0.2, pause=0.9)
    assert len(hook.posted) == 2


@pytest.mark.parametrize("hook", [[400], [401], [404], [410]], indirect=True)
def test_a_refusal_is_final(hook: _Hook) -> None:
    code = hook.answers[0]
    with pytest.raises(NotifyError, match=rf"at 127\.0\.0\.1:\d+ refused the alarm: {code}") as failed:
        post(hook.url, RAISED, pause=0.01)
    assert len(hook.posted) == 1
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("hook", [[301], [302], [307]], indirect=True)
def test_redirections_are_not_followed(hook: _Hook) -> None:
    with pytest.raises(NotifyError, match="refused the alarm: 30"):
        post(hook.url, RAISED, pause=0.01)
    assert len(hook.posted) == 1


@pytest.mark.parametrize("hook", [[500, 502, 503]], indirect=True)
def test_it_gives_up_in_the_end(hook: _Hook) -> None:
    with pytest.raises(NotifyError, match="tried 3 times, and failed; the last failure: 503"):
        post(hook.url, RAISED, attempts=3, pause=0.01)
    assert hook.answers == []


def test_pauses_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with socket.socket() as taken:  # bound and not listening: refused
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(NotifyError, match=r"tried 4 times, and failed; the last failure: .*refused"):
            post(f"http://127.0.0.1:{taken.getsockname()[1]}/", RAISED)
    assert slept == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "file:///etc/passwd", "ftp://example.org", "http://", "http:///path", "http://a:port/",
     "http://a:99999/", "http://a/b c", "http://a/é", "http://a/\n", "http://[", None, 3],
)  # fmt: skip
def test_only_web_addresses(url: Any) -> None:
    with pytest.raises(OptionError, match="`url` must be an http or https address"):
        post(url, RAISED)


def test_an_address_that_is_one() -> None:
    assert check_url("https://example.org:8443/hook?key=1") == "https://example.org:8443/hook?key=1"
    with pytest.raises(OptionError, match="`attempts`"):
        post("https://example.org", RAISED, attempts=0)


# Rude servers, and secrets


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.mark.parametrize("way", ["silent", *RUDE])
def test_however_rude_the_server_an_attempt_ends_in_time_with_one_short_line(way: str) -> None:
    with Rude(way) as server:
        began = time.monotonic()
        with pytest.raises(NotifyError) as failed:
            post(f"http://127.0.0.1:{server.port}/", RAISED, attempts=1, timeout=0.4)
        assert time.monotonic() - began < 3.0
        assert str(failed.value).isprintable()
        assert len(str(failed.value)) < 400
        assert server.heard


@pytest.mark.parametrize("way", ["silent", "drips", "answers with bytes"])
def test_a_server_that_speaks_no_tls_ends_an_attempt_in_time(way: str) -> None:
    with Rude(way) as server:
        began = time.monotonic()
        with pytest.raises(NotifyError, match="was tried once, and failed"):
            post(f"https://127.0.0.1:{server.port}/", RAISED, attempts=1, timeout=0.4)
        assert time.monotonic() - began < 3.0


@pytest.mark.proof
def test_a_certificate_that_no_one_has_signed_is_refused(tmp_path: Path) -> None:
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = [str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")]
    subprocess.run([*words, "-keyout", names[0], "-out", names[1]], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(names[1], names[0])
    server = _Hook([200])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        with pytest.raises(NotifyError, match="self-signed certificate"):
            post(f"https://me:secret@127.0.0.1:{server.server_address[1]}/", RAISED, attempts=1)
        assert server.posted == []
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("hook", [[200]], indirect=True)
def test_name_and_password_are_sent_as_basic_authorisation(hook: _Hook) -> None:
    post(hook.url.replace("://", "://me%40home:se%2Fcr%C3%A9t@"), RAISED)
    token = base64.b64encode("me@home:se/crét".encode()).decode()
    assert hook.headers[0]["Authorization"] == f"Basic {token}"
    assert "@" not in hook.headers[0]["Host"]


@pytest.mark.parametrize("way", ["silent", *RUDE])
def test_no_password_is_ever_told(way: str) -> None:
    with Rude(way) as server, pytest.raises(NotifyError) as failed:
        post(f"http://me:s3cr3t@127.0.0.1:{server.port}/", RAISED, attempts=1, timeout=0.3)
    assert "s3cr3t" not in f"{failed.value}{failed.value.__cause__}"
    assert f"127.0.0.1:{server.port}" in str(failed.value)


@pytest.mark.parametrize("secret", ["s3cr3t%21", "s3cr3t!", "bWU6czNjcjN0IQ==", "/hooks/t0ken"])
def test_a_secret_that_the_server_sends_back_is_not_told(secret: str) -> None:
    with Rude(f"HTTP/1.1 401 not {secret} here\r\n\r\n".encode()) as server, pytest.raises(NotifyError) as failed:
        post(f"http://me:s3cr3t%21@127.0.0.1:{server.port}/hooks/t0ken", RAISED)
    assert str(failed.value).endswith("refused the alarm: 401 not ... here.")


def test_a_redirection_takes_no_password_to_another_host() -> None:
    with Rude(b"HTTP/1.1 200 OK\r\n\r\n") as other:
        away = f"HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:{other.port}/\r\n\r\n".encode()
        with Rude(away) as server, pytest.raises(NotifyError, match="refused the alarm: 307"):
            post(f"http://me:secret@127.0.0.1:{server.port}/", RAISED)
        assert other.heard == []


@pytest.mark.parametrize(
    "url", ["http://me:s3cr3t@", "http://me:s3cr3t@host:port/", f"http://me:s3cr3t@{'a' * 64}.org"]
)
def test_an_address_that_is_refused_is_not_shown(url: str) -> None:
    with pytest.raises(OptionError) as failed:
        check_url(url)
    assert "s3cr3t" not in str(failed.value)
