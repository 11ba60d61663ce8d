"""The tables of a store, and the statements that read and write them; SQLite and PostgreSQL understand the same."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, Self

from .. import documents
from .._sums.summary import Summary
from ..errors import DocumentError, FileError, OptionError, SafecalError
from ..files import parsed_json
from ..monitor import Alarm, Monitor
from .history import WHOLE, Aside, History, Known, Point, Raised, Taken, storable_text

__all__ = ["TABLES", "VERSION", "Store"]

_LOGS = ("log_over", "log_under", "log_change")  # of every point
_OPTIONAL_LOGS = ("log_up", "log_down", "log_other")  # where shifts, or changes in the other direction, are looked for

VERSION = 1
_RESTORE = "\n\nHint: restore the store from a copy, or begin another with `--store`; nothing was written to this one."

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


class Store(ABC):
    """The memory of one watched model, in tables. Subclasses say how to connect, and what a transaction is.

    A method that writes is one transaction: when it returns, what it wrote survives a kill, and when it raises,
    nothing has changed.
    """

    def __init__(self, name: str, model: str, error: type[Exception]) -> None:
        self.name, self.model = name, model
        self._error = error  # what the library of the database raises
        self.settings: Mapping[str, Any] = {}
        self._changes = 0  # how often the state had changed when we last saw it

    @abstractmethod
    def close(self) -> None:
        """Let go of the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Return a context: everything that is executed in it is kept when it ends well, and nothing otherwise."""

    @abstractmethod
    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Execute a statement, with ``?`` for each value, and return the rows that come back."""

    @abstractmethod
    def _in_words(self, error: Any) -> SafecalError:
        """Return an error of the database in words, with one move to make."""

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise self._in_words(error) from error

    def begin(self, settings: Mapping[str, Any], monitor: Monitor) -> None:
        """Take up the model where it was left, or begin with these settings and this monitor."""
        with self._transaction():
            rows = self._execute("SELECT settings FROM safecal_state WHERE model = ?", (self.model,))
            if rows:
                self.settings = _check_settings(self._settings(rows[0][0]), settings, self.name)
                return
            # What was not asked for is as the monitor has it.
            self.settings = {k: getattr(monitor, k, None) if v is None else v for k, v in settings.items()}
            self._execute(
                "INSERT INTO safecal_state (model, changes, settings, monitor) VALUES (?, 0, ?, ?)",
                (self.model, _json_text(self.settings), _json_text(monitor.to_dict())),
            )

    def resume(self) -> None:
        """Take up a model that was begun, whatever its settings."""
        with self._transaction():
            rows = self._execute("SELECT settings FROM safecal_state WHERE model = ?", (self.model,))
        if not rows:
            raise FileError(f"{self.name} knows nothing of a model named {self.model!r}.\n\nHint: `--name` names it.")
        self.settings = self._settings(rows[0][0])

    def _settings(self, content: Any) -> dict[str, Any]:
        return dict(self._read("safecal_state", "settings", content, documents.mapping_of(_read_setting)))

    def monitor(self) -> Monitor:
        """Return the state."""
        with self._transaction():
            return self._monitor()

    def _monitor(self) -> Monitor:
        rows = self._execute("SELECT monitor, changes FROM safecal_state WHERE model = ?", (self.model,))
        if not rows:
            raise FileError(f"{self.name} is damaged: safecal_state has no row of the model {self.model!r}.{_RESTORE}")
        monitor: Monitor = self._read("safecal_state", "monitor", rows[0][0], Monitor.from_dict)
        self._changes = self._whole("safecal_state", "changes", rows[0][1])
        return monitor

    def _change(self) -> int:
        """Count a change, which locks the state until the transaction ends, and return how many there were."""
        self._execute("UPDATE safecal_state SET changes = changes + 1 WHERE model = ?", (self.model,))
        rows = self._execute("SELECT changes FROM safecal_state WHERE model = ?", (self.model,))
        return self._whole("safecal_state", "changes", rows[0][0] if rows else None)

    def _read(self, table: str, place: object, content: Any, reader: Callable[[Any], Any]) -> Any:
        """Read the document in a row of a table; ``place`` is the number of the row, or its column."""
        try:
            if not isinstance(content, str):
                documents.refuse("must be JSON in text", type(content).__name__)
            return reader(parsed_json(content))
        except DocumentError as error:
            raise self._damaged(table, place, str(error).partition("\n")[0]) from error

    def _whole(self, table: str, column: str, value: Any) -> int:
        if not isinstance(value, int):
            raise self._damaged(table, column, f"it must be a whole number, and is {value!r:.60}.")
        return value

    def _texts(self, table: str, place: object, row: Row) -> Row:
        if not all(isinstance(value, str) for value in row):
            raise self._damaged(table, place, "it must be text.")
        return row

    def _damaged(self, table: str, place: object, why: str) -> FileError:
        where = f"row {place} of {table}" if isinstance(place, int) else f"`{place}` in {table}"
        return FileError(f"{self.name} is damaged: {where}, of the model {self.model!r}: {why}{_RESTORE}")

    def known(self, batch: str) -> Known | None:
        """Return digest and stamp of a batch, if it was counted."""
        statement = "SELECT digest, stamp FROM safecal_batches WHERE model = ? AND batch = ?"
        with self._transaction():
            rows = self._execute(statement, (self.model, batch))
        return Known(*self._texts("safecal_batches", "digest", rows[0])) if rows else None

    def restamp(self, batch: str, stamp: str) -> None:
        """Remember how the file of a batch looks that was counted, and came again."""
        statement = "UPDATE safecal_batches SET stamp = ? WHERE model = ? AND batch = ?"
        with self._transaction():
            self._execute(statement, (stamp, self.model, batch))

    def batches(self, start: str) -> Iterator[str]:
        """Yield the ids of the batches that were counted and begin with some text, in their order."""
        statement = "SELECT batch FROM safecal_batches WHERE model = ? AND substr(batch, 1, ?) = ? ORDER BY number"
        with self._transaction():
            rows = self._execute(statement, (self.model, len(start), start))
        yield from (self._texts("safecal_batches", "batch", row)[0] for row in rows)

    def commit(self, taken: Taken) -> None:
        """Keep a batch and everything that follows from it. A batch that was counted is refused."""
        with self._transaction():
            changes = self._change()
            statement = "SELECT 1 FROM safecal_batches WHERE model = ? AND batch = ?"
            if self._execute(statement, (self.model, taken.batch)):
                raise FileError(f"{self.name} has counted the batch {taken.batch!r} before; it counts once.")
            if changes != self._changes + 1:  # a lock was lost, and what we know is no longer so
                raise FileError(f"{self.name} was changed by another watcher; safecal wrote nothing.")
            self._execute(
                "INSERT INTO safecal_batches (model, batch, digest, stamp) VALUES (?, ?, ?, ?)",
                (self.model, taken.batch, taken.digest, taken.stamp),
            )
            self._append("safecal_points", (_point_document(p) for p in taken.points))
            self._append("safecal_alarms", (_alarm_document(r) for r in taken.alarms))
            statement = "DELETE FROM safecal_asides WHERE model = ? AND batch = ? AND place = ?"
            self._execute(statement, (self.model, taken.batch, WHOLE))  # it was set aside before, and is right now
            for aside in taken.asides:
                self._set_aside(aside)
            self._execute(
                "UPDATE safecal_state SET settings = ?, monitor = ? WHERE model = ?",
                (_json_text(taken.settings), _json_text(taken.monitor.to_dict()), self.model),
            )
        self.settings, self._changes = dict(taken.settings), changes

    def _append(self, table: str, contents: Iterable[Mapping[str, Any]]) -> None:
        for content in contents:
            self._execute(f"INSERT INTO {table} (model, document) VALUES (?, ?)", (self.model, _json_text(content)))

    def _set_aside(self, aside: Aside) -> None:
        self._execute(
            "INSERT INTO safecal_asides (model, batch, digest, place, reason) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (model, batch, digest, place) DO NOTHING",
            (self.model, aside.batch, aside.digest, aside.place, storable_text(aside.reason)),
        )

    def quarantine(self, aside: Aside) -> None:
        """Remember that a batch was set aside; once, however often it is said."""
        with self._transaction():
            self._set_aside(aside)

    def quarantined(self, batch: str, digest: str) -> bool:
        """Tell whether a batch with this content was set aside whole."""
        statement = "SELECT 1 FROM safecal_asides WHERE model = ? AND batch = ? AND digest = ? AND place = ?"
        with self._transaction():
            return bool(self._execute(statement, (self.model, batch, digest, WHOLE)))

    def asides(self) -> tuple[Aside, ...]:
        """Return all that was set aside, in its order."""
        statement = "SELECT batch, digest, place, reason FROM safecal_asides WHERE model = ? ORDER BY number"
        with self._transaction():
            rows = self._execute(statement, (self.model,))
        return tuple(Aside(*self._texts("safecal_asides", "reason", row)) for row in rows)

    def count(self) -> int:
        """Return how many rows and batches were set aside."""
        with self._transaction():
            return int(self._execute("SELECT count(*) FROM safecal_asides WHERE model = ?", (self.model,))[0][0])

    def alarms(self) -> tuple[Raised, ...]:
        """Return every alarm, in its order."""
        with self._transaction():
            return self._alarms()

    def _alarms(self) -> tuple[Raised, ...]:
        return tuple(self._documents("safecal_alarms", _read_raised))

    def _documents(self, table: str, reader: Callable[[Any], Any]) -> list[Any]:
        statement = f"SELECT number, document FROM {table} WHERE model = ? ORDER BY number"
        return [self._read(table, number, text, reader) for number, text in self._execute(statement, (self.model,))]

    def undelivered(self, channel: str) -> tuple[tuple[int, Raised], ...]:
        """Return the alarms that a channel has not delivered, with their numbers."""
        statement = (
            "SELECT number, document FROM safecal_alarms WHERE model = ? AND NOT EXISTS (SELECT 1 FROM "
            "safecal_deliveries d WHERE d.alarm = safecal_alarms.number AND d.channel = ?) ORDER BY number"
        )
        with self._transaction():
            rows = self._execute(statement, (self.model, channel))
        return tuple((number, self._read("safecal_alarms", number, text, _read_raised)) for number, text in rows)

    def delivered(self, number: int, channel: str) -> None:
        """Remember that a channel has delivered an alarm."""
        statement = (
            "INSERT INTO safecal_deliveries (alarm, channel) VALUES (?, ?) ON CONFLICT (alarm, channel) DO NOTHING"
        )
        with self._transaction():
            self._execute(statement, (number, channel))

    def request(self, group: Any) -> None:
        """Ask for the detector of a group, or of all rows (None), to be started anew."""
        with self._transaction():
            statement = "INSERT INTO safecal_requests (model, wanted) VALUES (?, ?)"
            self._execute(statement, (self.model, _json_text(documents.plain(group))))

    def grant(self) -> tuple[Any, ...]:
        """Start the detectors anew that were asked for, and return their groups."""
        statement = "SELECT number, wanted FROM safecal_requests WHERE model = ? ORDER BY number"
        with self._transaction():
            rows = self._execute(statement, (self.model,))
            if not rows:
                return ()
            self._change()
            monitor, granted = self._monitor(), []
            for number, text in rows:
                group = self._read("safecal_requests", number, text, documents.key)
                try:
                    monitor.acknowledge(group=group)
                    granted.append(group)
                except SafecalError:  # a group that has not appeared has nothing to start anew
                    pass
                self._execute("DELETE FROM safecal_requests WHERE number = ?", (number,))
            self._execute(
                "UPDATE safecal_state SET monitor = ? WHERE model = ?", (_json_text(monitor.to_dict()), self.model)
            )  # fmt: skip
        return tuple(granted)

    def last(self) -> Point | None:
        """Return the last point."""
        statement = "SELECT number, document FROM safecal_points WHERE model = ? ORDER BY number DESC LIMIT 1"
        with self._transaction():
            rows = self._execute(statement, (self.model,))
        return self._read("safecal_points", rows[0][0], rows[0][1], _read_point) if rows else None

    def history(self) -> History:
        """Return everything."""
        with self._transaction():
            points = tuple(self._documents("safecal_points", _read_point))
            aside = self._execute("SELECT count(*) FROM safecal_asides WHERE model = ?", (self.model,))[0][0]
            return History(self._monitor(), points, self._alarms(), int(aside))


def _json_text(content: Any) -> str:
    return json.dumps(content, allow_nan=False)


def _check_settings(stored: Mapping[str, Any], requested: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings to go on with; refuse those that would mean another test than the one that was begun.

    A value of None requests nothing.
    """
    for key, value in requested.items():
        if value is not None and stored.get(key) != value:
            option = "--" + key.replace("_", "-")
            raise OptionError(
                f"{name} was begun with {_option_text(option, stored.get(key))}; got {_option_text(option, value)}.\n\n"
                "Hint: evidence counts under the settings it was begun with. Give those, or another `--store`."
            )
    return dict(stored)


def _option_text(option: str, value: Any) -> str:
    if value is None or value == [] or value is False:
        return f"no `{option}`"
    if isinstance(value, list):
        return "`" + " ".join(f"{option} {x}" for x in value) + "`"
    return f"`{option}`" if value is True else f"`{option} {value}`"


def _read_setting(value: Any) -> Any:
    """Read a setting: nothing, a word, a number, yes or no, or the names of columns."""
    if value is None or isinstance(value, str | bool):
        return value
    return documents.list_of(documents.text)(value) if isinstance(value, list) else documents.read_number(value)


def _read_moment(value: Any) -> str:
    """Read a moment: ISO 8601."""
    try:
        datetime.fromisoformat(documents.text(value))
    except ValueError:
        documents.refuse("must be a moment, as 2026-01-31T12:00:00+00:00", value)
    return str(value)


def _point_document(point: Point) -> dict[str, Any]:
    logs = {name: documents.number(getattr(point, name)) for name in _LOGS}
    logs |= {name: documents.number(log) for name in _OPTIONAL_LOGS if (log := getattr(point, name)) is not None}
    content = {"batch": point.batch, "window": point.window, "received": point.received}
    return documents.document("point", content | logs | {"summary": point.summary.to_dict()})


_log = documents.between(infinite=True)
_POINT: dict[str, Any] = {
    "batch": documents.text,
    "window": documents.optional(documents.text),
    "received": _read_moment,
    "summary": Summary.from_dict,
    **dict.fromkeys(_LOGS, _log),
}


def _read_point(document: Any) -> Point:
    return Point(**documents.read("point", document, _POINT, dict.fromkeys(_OPTIONAL_LOGS, _log)))


def _alarm_document(raised: Raised) -> dict[str, Any]:
    return {"alarm": raised.alarm.to_dict(), "at": raised.at, "batch": raised.batch}


_RAISED = documents.record({"alarm": Alarm.from_dict, "at": _read_moment, "batch": documents.text})


def _read_raised(document: Any) -> Raised:
    return Raised(**_RAISED(document))
