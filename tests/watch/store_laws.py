"""What every store must do, whatever keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from safecal.errors import FileError, LockedError, OptionError
from safecal.monitor import Monitor
from safecal.watch.history import WHOLE, Aside, Point, Raised, Taken
from safecal.watch.store import Store

from .feeding import columns

Opener = Callable[..., Store]
SETTINGS: dict[str, Any] = {"alpha": None, "run_length": None, "y": None, "by": ["site"], "window_column": None}


def taken(store: Store, batch: str, *, drift: float = 1.0, asides: int = 0) -> Taken:
    """Return a batch that follows the state of the store."""
    monitor = store.monitor()
    rows = columns(np.random.default_rng(len(batch)), 500, drift=drift)
    alarms = monitor.update(rows["y"], logits=rows["logit"], by={"site": rows["site"]}, window=f"day of {batch}")
    before = Monitor()
    before.update(rows["y"], logits=rows["logit"])
    logs = (monitor.log_e_value(), monitor.log_e_value("under-confident"), monitor.log_change())
    point = Point(batch, f"day of {batch}", "2026-01-01T00:00:00+00:00", before.summary, *logs)
    raised = tuple(Raised(alarm, "2026-01-01T00:00:00+00:00", batch) for alarm in alarms)
    apart = tuple(Aside(batch, "digest", f"row {k}", "no number") for k in range(asides))
    settings = {**store.settings, "y": "label"}
    return Taken(batch, f"digest of {batch}", "1:2:3", monitor, settings, (point,), raised, apart)


def _open(opener: Opener, **more: Any) -> Store:
    return opener(settings=SETTINGS, monitor=Monitor(run_length=5000, grouped=True), **more)


def round_trip(opener: Opener) -> None:
    """What is committed is there after closing, all of it, in its order."""
    with _open(opener) as store:
        assert store.settings == {**SETTINGS, "alpha": 0.05, "run_length": 5000.0}
        assert store.last() is None
        batches = []
        for name, drift in (("b", 1.0), ("aa", 1.0), ("c x y z", 3.0)):
            batches.append(taken(store, name, drift=drift, asides=len(name) - 1))
            store.commit(batches[-1])
    with _open(opener) as store:
        assert store.settings["y"] == "label"
        history = store.history()
        assert history.monitor.to_dict() == batches[-1].monitor.to_dict()
        assert history.points == tuple(point for batch in batches for point in batch.points)
        assert history.alarms == tuple(raised for batch in batches for raised in batch.alarms)
        assert len(history.alarms) > 0
        assert history.quarantined == store.count() == len(store.asides()) == 1 + 6
        assert store.last() == batches[-1].points[-1]
        assert list(store.batches("")) == ["b", "aa", "c x y z"]
        assert list(store.batches("a")) == ["aa"]
        known = store.known("aa")
        assert known is not None
        assert (known.digest, known.stamp) == ("digest of aa", "1:2:3")
        store.restamp("aa", "4:5:6")
        known = store.known("aa")
        assert known is not None
        assert known.stamp == "4:5:6"
        assert store.known("a") is None


def once(opener: Opener) -> None:
    """A batch that was counted is refused, and nothing of it stays."""
    with _open(opener) as store:
        store.commit(taken(store, "a"))
        before = store.history()
        with pytest.raises(FileError, match="has counted the batch 'a' before"):
            store.commit(taken(store, "a", drift=3.0, asides=2))
        after = store.history()
        assert after.monitor.to_dict() == before.monitor.to_dict()
        assert after.points == before.points
        assert after.quarantined == 0


def stale(opener: Opener) -> None:
    """A watcher whose lock was lost does not write over what another has written."""
    with _open(opener) as store:
        store.commit(taken(store, "a"))
        late = taken(store, "b")
        with store._transaction():
            store._execute("UPDATE safecal_state SET changes = changes + 1")
        with pytest.raises(FileError, match="was changed by another watcher"):
            store.commit(late)
        assert list(store.batches("")) == ["a"]
        store.commit(taken(store, "b"))
        assert store.monitor().summary.n == 1000


def set_aside(opener: Opener) -> None:
    """What is set aside is counted once; taken in after all, it no longer is."""
    with _open(opener) as store:
        aside = Aside("a", "one", WHOLE, "garbage")
        store.quarantine(aside)
        store.quarantine(aside)
        assert store.asides() == (aside,)
        assert store.quarantined("a", "one")
        assert not store.quarantined("a", "two")
        store.commit(taken(store, "a"))
        assert store.count() == 0


def outbox(opener: Opener) -> None:
    """An alarm waits for each channel until that has delivered it."""
    with _open(opener) as store:
        store.commit(taken(store, "a long name", drift=4.0))
        waiting = store.undelivered("webhook")
        assert [raised for _, raised in waiting] == list(store.alarms())
        assert len(waiting) >= 2
        store.delivered(waiting[0][0], "webhook")
        store.delivered(waiting[0][0], "webhook")
    with _open(opener) as store:
        assert store.undelivered("webhook") == waiting[1:]
        assert store.undelivered("command") == waiting


def requests(opener: Opener) -> None:
    """Someone else asks for a detector to be started anew; the watcher does it, once."""
    with _open(opener) as store:
        store.commit(taken(store, "a long name", drift=4.0))
        assert store.monitor().stream().changed
        with opener() as other:
            other.request(None)
            other.request("north")
            other.request("a group that never was")
        assert store.grant() == (None, "north")
        assert store.grant() == ()
        monitor = store.monitor()
        assert not monitor.stream().changed
        assert not monitor.stream("north").changed


def settings_stay(opener: Opener) -> None:
    """Other settings are refused, and those that were found by name are kept."""
    with _open(opener) as store:
        store.commit(taken(store, "a"))
    with pytest.raises(OptionError, match=r"was begun with `--alpha 0.05`; got `--alpha 0.1`"):
        opener(settings={**SETTINGS, "alpha": 0.1})
    with pytest.raises(OptionError, match=r"was begun with `--by site`; got `--by site --by age`"):
        opener(settings={**SETTINGS, "by": ["site", "age"]})
    with pytest.raises(OptionError, match=r"was begun with no `--window-column`; got `--window-column day`"):
        opener(settings={**SETTINGS, "window_column": "day"})
    with opener(settings={"alpha": None}) as store:
        assert store.settings["y"] == "label"


def one_watcher(opener: Opener) -> None:
    """Two watchers of one model are one too many; readers are welcome."""
    with _open(opener) as store:
        with pytest.raises(LockedError, match="another watcher is at work"):
            _open(opener)
        with opener() as reader:
            store.commit(taken(store, "a"))
            assert reader.monitor().summary.n == 500
    with _open(opener) as store:
        assert store.monitor().summary.n == 500


# What a row may have become, the table and the column it is in, and what is then said of it.
DAMAGED: tuple[tuple[str, str, str, str], ...] = (
    ("safecal_state", "settings", "{", "`settings` in safecal_state"),
    ("safecal_state", "settings", "[1]", "`settings` in safecal_state"),
    ("safecal_state", "settings", '{"y": {}}', r"`y` must be a number"),
    ("safecal_state", "monitor", "", "`monitor` in safecal_state"),
    ("safecal_state", "monitor", "null", r"`document` must be a safecal\.monitor document; got 'NoneType'"),
    ("safecal_state", "monitor", '{"kind": "safecal.monitor", "version": 1}', "it lacks alpha"),
    ("safecal_points", "document", "[" * 100_000, "row 1 of safecal_points.*nested too deeply"),
    ("safecal_points", "document", "NaN", "row 1 of safecal_points.*has no NaN"),
    ("safecal_points", "document", '{"a": 1, "a": 2}', "row 1 of safecal_points.*different names of fields; got 'a'"),
    ("safecal_alarms", "document", "{}", "row 1 of safecal_alarms.*it lacks alarm, at, batch"),
    ("safecal_alarms", "document", '{"alarm": 3, "at": "now", "batch": ""}', "`alarm` must be a safecal"),
    ("safecal_requests", "wanted", "{}", "row [0-9]+ of safecal_requests"),
)


def damaged_rows(opener: Opener) -> None:
    """A row that is no longer what was written is named, with its table, and left as it is."""
    with _open(opener) as store:
        store.commit(taken(store, "a", drift=5.0))
        assert store.alarms()
    for table, column, text, message in DAMAGED:
        with _open(opener) as store:
            store.request("north")
        kept = exchange(opener, table, column, text)
        with pytest.raises(FileError, match=message) as caught:
            _ask(opener)
        assert " is damaged: " in str(caught.value)
        assert "of the model 'model'" in str(caught.value)
        assert "Hint: restore the store from a copy" in str(caught.value)
        assert exchange(opener, table, column, kept) == text
    with _open(opener) as store:
        assert set(store.grant()) == {"north"}
        assert len(store.history().points) == 1


def _ask(opener: Opener) -> None:
    with _open(opener) as store:
        store.grant()
        store.history()


def exchange(opener: Opener, table: str, column: str, text: Any) -> Any:
    """Put something in the first row of a table, as a watcher of another model can, and return what was there."""
    with opener(settings={}, model="another") as store, store._transaction():
        kept = store._execute(f"SELECT {column} FROM {table} WHERE model = 'model'")[0][0]
        store._execute(f"UPDATE {table} SET {column} = ? WHERE model = 'model'", (text,))
    return kept


LAWS: dict[str, Callable[[Opener], None]] = {
    law.__name__: law
    for law in (round_trip, once, stale, set_aside, outbox, requests, settings_stay, one_watcher, damaged_rows)
}
