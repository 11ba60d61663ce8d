"""An alarm is told at least once: what fails is tried again, in its order, and not all the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from safecal.errors import FileError
from safecal.monitor import Monitor
from safecal.watch.channels import Notifier, channels
from safecal.watch.databases import SqliteStore
from safecal.watch.history import Raised

from .store_laws import SETTINGS, taken

pytest.importorskip("polars", minversion="1.38")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Return a store in which there are some alarms."""
    settings = {"settings": SETTINGS, "monitor": Monitor(run_length=5000, grouped=True)}
    with SqliteStore(tmp_path / "watch.sqlite", **settings) as store:
        store.commit(taken(store, "a long name", drift=4.0))
        assert len(store.alarms()) > 1
        yield store


def _settled(teller: Notifier) -> None:
    """Let every delivery end, and note what it did."""
    teller.deliver()
    for delivery in list(teller._under_way.values()):
        assert delivery.wait(10.0)
        teller.deliver()


def test_a_channel_that_fails_is_tried_again_later(store: SqliteStore) -> None:
    now, broken, messages = [0.0], [True], []
    heard: dict[str, list[Raised]] = {"good": [], "bad": []}

    def fails(raised: Raised) -> None:
        if broken[0] and len(heard["bad"]) == 1:
            raise FileError("no one is at home.")
        heard["bad"].append(raised)

    alarms = list(store.alarms())
    teller = Notifier(
        store, {"bad": fails, "good": heard["good"].append}, messages.append, pause=30.0, clock=lambda: now[0]
    )
    _settled(teller)
    assert heard == {"good": alarms, "bad": alarms[:1]}
    assert "not delivered by bad, and will be tried again: no one is at home." in messages[0]
    assert teller.due() == 30.0
    broken[0] = False
    _settled(teller)
    assert heard["bad"] == alarms[:1]  # too soon
    now[0] = 31.0
    _settled(teller)
    assert heard == {"good": alarms, "bad": alarms}
    assert store.undelivered("bad") == ()
    assert teller.due() is None


def test_at_the_end_it_is_tried_at_once_and_what_is_left_is_told(store: SqliteStore) -> None:
    tries, messages = [], []

    def fails(raised: Raised) -> None:
        tries.append(raised)
        raise OSError("no")

    teller = Notifier(store, {"bad": fails}, messages.append)
    _settled(teller)
    _settled(teller)
    assert len(tries) == 1
    alarms = len(store.alarms())
    assert teller.finish(10.0) == alarms
    assert len(tries) == 2
    assert messages[-1] == f"{alarms} alarms were not delivered by bad; the next run tries again."


def test_a_delivery_holds_up_nothing_and_one_is_under_way_at_a_time(store: SqliteStore) -> None:
    gate, tries = threading.Event(), []

    def waits(raised: Raised) -> None:
        tries.append(raised)
        gate.wait(30.0)

    teller = Notifier(store, {"slow": waits}, lambda line: None)
    began = time.monotonic()
    for _ in range(100):
        teller.deliver()
    assert teller.finish(0.2) == len(store.alarms())
    assert time.monotonic() - began < 5.0
    assert len(tries) == 1
    gate.set()
    assert teller.finish(10.0) == 0
    assert tries == list(store.alarms())


def test_what_goes_wrong_in_a_delivery_is_told_and_not_lost(store: SqliteStore) -> None:
    messages: list[str] = []

    def odd(raised: Raised) -> None:
        raise LookupError("odd")

    assert Notifier(store, {"odd": odd}, messages.append).finish(10.0) == len(store.alarms())
    assert "LookupError('odd')" in messages[0]


def test_a_request_to_stop_waits_for_a_delivery_for_a_while_and_begins_none(store: SqliteStore) -> None:
    gate = threading.Event()
    teller = Notifier(store, {"slow": lambda raised: gate.wait(30.0)}, lambda line: None)
    assert teller.finish(10.0, stopped=lambda: True) == len(store.alarms())
    assert not teller._under_way
    teller.deliver()
    began = time.monotonic()
    assert teller.finish(60.0, stopped=lambda: True, leave=0.2) == len(store.alarms())
    assert time.monotonic() - began < 5.0
    gate.set()


def test_channels_are_those_that_were_asked_for() -> None:
    assert set(channels(None, None)) == set()
    assert set(channels("true", "http://127.0.0.1:1/")) == {"command", "webhook"}
