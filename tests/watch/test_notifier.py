"""An alarm is told at least once: what fails is tried again, in its order, and not all the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from safecal.errors import FileError
from safecal.monitor import Monitor
from safecal.watch.history import Raised
from safecal.watch.notify import Notifier, channels
from safecal.watch.stores.sqlite import SqliteStore

from .store_laws import SETTINGS, taken

pytest.importorskip("polars", minversion="1.38")


def test_a_channel_that_fails_is_tried_again_later(tmp_path: Path) -> None:
    now, broken, told = [0.0], [True], []
    heard: dict[str, list[Raised]] = {"good": [], "bad": []}

    def fails(raised: Raised) -> None:
        if broken[0] and len(heard["bad"]) == 1:
            raise FileError("no one is at home.")
        heard["bad"].append(raised)

    settings = {"settings": SETTINGS, "monitor": Monitor(run_length=5000, grouped=True)}
    with SqliteStore(tmp_path / "watch.sqlite", **settings) as store:
        store.commit(taken(store, "a long name", drift=4.0))
        alarms = list(store.alarms())
        teller = Notifier(
            store, {"bad": fails, "good": heard["good"].append}, told.append, pause=30.0, clock=lambda: now[0]
        )
        assert teller.deliver() == len(alarms) - 1
        assert heard == {"good": alarms, "bad": alarms[:1]}
        assert "not delivered by bad, and will be tried again: no one is at home." in told[0]
        broken[0] = False
        assert teller.deliver() == 0
        assert heard["bad"] == alarms[:1]  # too soon
        now[0] = 31.0
        assert teller.deliver() == 0
        assert heard == {"good": alarms, "bad": alarms}


def test_asked_for_it_is_tried_at_once(tmp_path: Path) -> None:
    tries = []

    def fails(raised: Raised) -> None:
        tries.append(raised)
        raise OSError("no")

    settings = {"settings": SETTINGS, "monitor": Monitor(run_length=5000, grouped=True)}
    with SqliteStore(tmp_path / "watch.sqlite", **settings) as store:
        store.commit(taken(store, "a long name", drift=4.0))
        teller = Notifier(store, {"bad": fails}, lambda line: None)
        for now, count in ((False, 1), (False, 1), (True, 2)):
            teller.deliver(now=now)
            assert len(tries) == count


def test_channels_are_those_that_were_asked_for() -> None:
    assert set(channels(None, None)) == set()
    assert set(channels("true", "http://127.0.0.1:1/")) == {"command", "webhook"}
