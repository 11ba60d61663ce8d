"""The tables of a store, and what is said to them; SQLite and PostgreSQL understand the same words."""

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ... import documents
from ...errors import FileError, SafecalError
from ...monitor import Alarm, Monitor
from ...summary import Summary
from ..arrivals import written
from ..history import History, Point, Raised
from ..store import WHOLE, Aside, Known, Store, Taken, check_settings

__all__ = ["TABLES", "VERSION", "SqlStore"]

_LOGS = ("log_over", "log_under", "log_change")  # of every point
_MORE = ("log_up", "log_down", "log_other")  # where shifts, or changes in the other direction, are looked for

VERSION = 1

TABLES = (
    "CREATE TABLE safecal_state (model TEXT PRIMARY KEY, changes INTEGER NOT NULL, settings TEXT NOT NULL, "
    "monitor TEXT NOT NULL)",
    "CREATE TABLE safecal_batches (number {serial}, model TEXT NOT NULL, batch TEXT NOT NULL, digest TEXT NOT NULL, "
    "stamp TEXT NOT NULL, UNIQUE (model, batch))",
    "CREATE TABLE safecal_points (number {serial}, model TEXT NOT NULL, document TEXT NOT NULL)",
    "CREATE TABLE safecal_alarms (number {serial}, model TEXT NOT NULL, document TEXT NOT NULL)",
    "CREATE TABLE safecal_deliveries (alarm INTEGER NOT NULL, channel TEXT NOT NULL, PRIMARY KEY (alarm, channel))",
    "CREATE TABLE safecal_asides (number {serial}, model TEXT NOT NULL, batch TEXT NOT NULL, digest TEXT NOT NULL, "
    "place TEXT NOT NULL, reason TEXT NOT NULL, UNIQUE (model, batch, digest, place))",
    "CREATE TABLE safecal_requests (number {serial}, model TEXT NOT NULL, wanted TEXT NOT NULL)",
)

Row = Sequence[Any]


class SqlStore(Store):
    """A store in tables. Subclasses say how to connect, and what a transaction is."""

    def __init__(self, name: str, model: str) -> None:
        self.name, self.model = name, model
        self.settings: Mapping[str, Any] = {}
        self._changes = 0  # how often the state had changed when we last saw it

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Return a context: all that is said within is kept when it ends well, and nothing of it otherwise."""

    @abstractmethod
    def _rows(self, words: str, values: Sequence[Any] = ()) -> list[Row]:
        """Say one thing, with ``?`` for each value, and return the rows that come back."""

    def begin(self, settings: Mapping[str, Any], monitor: Monitor) -> None:
        """Take up the model where it was left, or begin with these settings and this monitor."""
        with self._transaction():
            found = self._rows("SELECT settings FROM safecal_state WHERE model = ?", (self.model,))
            if found:
                self.settings = check_settings(json.loads(found[0][0]), settings, self.name)
                return
            # What was not asked for is as the monitor has it.
            self.settings = {k: getattr(monitor, k, None) if v is None else v for k, v in settings.items()}
            self._rows(
                "INSERT INTO safecal_state (model, changes, settings, monitor) VALUES (?, 0, ?, ?)",
                (self.model, _text(self.settings), _text(monitor.to_dict())),
            )

    def resume(self) -> None:
        """Take up a model that was begun, whatever its settings."""
        with self._transaction():
            found = self._rows("SELECT settings FROM safecal_state WHERE model = ?", (self.model,))
        if not found:
            raise FileError(f"{self.name} knows nothing of a model named {self.model!r}.\n\nHint: `--name` names it.")
        self.settings = json.loads(found[0][0])

    def monitor(self) -> Monitor:
        with self._transaction():
            return self._monitor()

    def _monitor(self) -> Monitor:
        found = self._rows("SELECT monitor, changes FROM safecal_state WHERE model = ?", (self.model,))
        self._changes = int(found[0][1])
        return Monitor.from_dict(self._document(found[0][0]))

    def _change(self) -> int:
        """Count a change, which locks the state until the transaction ends, and return how many there were."""
        self._rows("UPDATE safecal_state SET changes = changes + 1 WHERE model = ?", (self.model,))
        return int(self._rows("SELECT changes FROM safecal_state WHERE model = ?", (self.model,))[0][0])

    def _document(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise FileError(f"{self.name} is damaged: a document in it is not JSON ({error}).") from error

    def known(self, batch: str) -> Known | None:
        words = "SELECT digest, stamp FROM safecal_batches WHERE model = ? AND batch = ?"
        with self._transaction():
            found = self._rows(words, (self.model, batch))
        return Known(*found[0]) if found else None

    def restamp(self, batch: str, stamp: str) -> None:
        words = "UPDATE safecal_batches SET stamp = ? WHERE model = ? AND batch = ?"
        with self._transaction():
            self._rows(words, (stamp, self.model, batch))

    def batches(self, start: str) -> Iterator[str]:
        words = "SELECT batch FROM safecal_batches WHERE model = ? AND substr(batch, 1, ?) = ? ORDER BY number"
        with self._transaction():
            found = self._rows(words, (self.model, len(start), start))
        yield from (row[0] for row in found)

    def commit(self, taken: Taken) -> None:
        with self._transaction():
            changes = self._change()
            words = "SELECT 1 FROM safecal_batches WHERE model = ? AND batch = ?"
            if self._rows(words, (self.model, taken.batch)):
                raise FileError(f"{self.name} has counted the batch {taken.batch!r} before; it counts once.")
            if changes != self._changes + 1:  # a lock was lost, and what we know is no longer so
                raise FileError(f"{self.name} was changed by another watcher; nothing of ours was written.")
            self._rows(
                "INSERT INTO safecal_batches (model, batch, digest, stamp) VALUES (?, ?, ?, ?)",
                (self.model, taken.batch, taken.digest, taken.stamp),
            )
            self._append("safecal_points", (_point(p) for p in taken.points))
            self._append("safecal_alarms", (_alarm(r) for r in taken.alarms))
            words = "DELETE FROM safecal_asides WHERE model = ? AND batch = ? AND place = ?"
            self._rows(words, (self.model, taken.batch, WHOLE))  # it was set aside before, and is right now
            for aside in taken.asides:
                self._set_aside(aside)
            self._rows(
                "UPDATE safecal_state SET settings = ?, monitor = ? WHERE model = ?",
                (_text(taken.settings), _text(taken.monitor.to_dict()), self.model),
            )
        self.settings, self._changes = dict(taken.settings), changes

    def _append(self, table: str, contents: Iterable[Mapping[str, Any]]) -> None:
        for content in contents:
            self._rows(f"INSERT INTO {table} (model, document) VALUES (?, ?)", (self.model, _text(content)))

    def _set_aside(self, aside: Aside) -> None:
        self._rows(
            "INSERT INTO safecal_asides (model, batch, digest, place, reason) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (model, batch, digest, place) DO NOTHING",
            (self.model, aside.batch, aside.digest, aside.place, written(aside.reason)),
        )

    def quarantine(self, aside: Aside) -> None:
        with self._transaction():
            self._set_aside(aside)

    def quarantined(self, batch: str, digest: str) -> bool:
        words = "SELECT 1 FROM safecal_asides WHERE model = ? AND batch = ? AND digest = ? AND place = ?"
        with self._transaction():
            return bool(self._rows(words, (self.model, batch, digest, WHOLE)))

    def asides(self) -> tuple[Aside, ...]:
        words = "SELECT batch, digest, place, reason FROM safecal_asides WHERE model = ? ORDER BY number"
        with self._transaction():
            return tuple(Aside(*row) for row in self._rows(words, (self.model,)))

    def count(self) -> int:
        with self._transaction():
            return int(self._rows("SELECT count(*) FROM safecal_asides WHERE model = ?", (self.model,))[0][0])

    def alarms(self) -> tuple[Raised, ...]:
        with self._transaction():
            return self._alarms()

    def _alarms(self) -> tuple[Raised, ...]:
        return tuple(_raised(self._document(x)) for x in self._documents("safecal_alarms"))

    def _documents(self, table: str) -> list[str]:
        words = f"SELECT document FROM {table} WHERE model = ? ORDER BY number"
        return [row[0] for row in self._rows(words, (self.model,))]

    def undelivered(self, channel: str) -> tuple[tuple[int, Raised], ...]:
        words = (
            "SELECT number, document FROM safecal_alarms WHERE model = ? AND NOT EXISTS (SELECT 1 FROM "
            "safecal_deliveries d WHERE d.alarm = safecal_alarms.number AND d.channel = ?) ORDER BY number"
        )
        with self._transaction():
            found = self._rows(words, (self.model, channel))
        return tuple((int(number), _raised(self._document(text))) for number, text in found)

    def delivered(self, number: int, channel: str) -> None:
        words = "INSERT INTO safecal_deliveries (alarm, channel) VALUES (?, ?) ON CONFLICT (alarm, channel) DO NOTHING"
        with self._transaction():
            self._rows(words, (number, channel))

    def request(self, group: Any) -> None:
        with self._transaction():
            words = "INSERT INTO safecal_requests (model, wanted) VALUES (?, ?)"
            self._rows(words, (self.model, _text(documents.plain(group))))

    def grant(self) -> tuple[Any, ...]:
        words = "SELECT number, wanted FROM safecal_requests WHERE model = ? ORDER BY number"
        with self._transaction():
            found = self._rows(words, (self.model,))
            if not found:
                return ()
            self._change()
            monitor, granted = self._monitor(), []
            for number, text in found:
                group = json.loads(text)
                group = tuple(group) if isinstance(group, list) else group
                try:
                    monitor.acknowledge(group=group)
                    granted.append(group)
                except SafecalError:  # a group that has not appeared has nothing to start anew
                    pass
                self._rows("DELETE FROM safecal_requests WHERE number = ?", (number,))
            self._rows(
                "UPDATE safecal_state SET monitor = ? WHERE model = ?", (_text(monitor.to_dict()), self.model)
            )  # fmt: skip
        return tuple(granted)

    def last(self) -> Point | None:
        words = "SELECT document FROM safecal_points WHERE model = ? ORDER BY number DESC LIMIT 1"
        with self._transaction():
            found = self._rows(words, (self.model,))
        return _read_point(self._document(found[0][0])) if found else None

    def history(self) -> History:
        with self._transaction():
            points = tuple(_read_point(self._document(x)) for x in self._documents("safecal_points"))
            aside = self._rows("SELECT count(*) FROM safecal_asides WHERE model = ?", (self.model,))[0][0]
            return History(self._monitor(), points, self._alarms(), int(aside))


def _text(content: Any) -> str:
    return json.dumps(content, allow_nan=False)


def _point(point: Point) -> dict[str, Any]:
    logs = {name: documents.number(getattr(point, name)) for name in _LOGS}
    logs |= {name: documents.number(log) for name in _MORE if (log := getattr(point, name)) is not None}
    content = {"batch": point.batch, "window": point.window, "received": point.received}
    return documents.document("point", content | logs | {"summary": point.summary.to_dict()})


def _read_point(document: Mapping[str, Any]) -> Point:
    names = ("batch", "window", "received", "summary")
    found = documents.body("point", document, (*names, *_LOGS))
    logs = {name: float(found[name]) for name in (*_LOGS, *_MORE) if name in found}
    return Point(found["batch"], found["window"], found["received"], Summary.from_dict(found["summary"]), **logs)


def _alarm(raised: Raised) -> dict[str, Any]:
    return {"alarm": raised.alarm.to_dict(), "at": raised.at, "batch": raised.batch}


def _raised(document: Mapping[str, Any]) -> Raised:
    return Raised(Alarm.from_dict(document["alarm"]), document["at"], document["batch"])
