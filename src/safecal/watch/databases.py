"""The databases that hold a store: one SQLite file, or tables of a team in PostgreSQL, as the address says.

One watcher at a time: it holds a lock for as long as it lives, and the system or the server lets go of it however the
watcher ends. A batch that was acknowledged survives a kill and a loss of power.
"""

import errno
import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final
from urllib.parse import unquote

from .._optional import require
from ..errors import FileError, LockedError, SafecalError
from ..monitor import Monitor
from .store import TABLES, VERSION, Row, Store

__all__ = ["APPLICATION", "PostgresqlStore", "SqliteStore", "open_store", "store_files"]

APPLICATION = 0x5AFECA1  # what the header of our files says they belong to
# What rows are looked for by. SQLite keeps any type in any column, and bytes are never equal to text: a batch whose id
# became bytes would count a second time.
_SEARCHED = {
    "safecal_state": ("model",),
    "safecal_batches": ("model", "batch"),
    "safecal_points": ("model",),
    "safecal_alarms": ("model",),
    "safecal_deliveries": ("channel",),
    "safecal_asides": ("model", "batch", "digest", "place"),
    "safecal_requests": ("model",),
}


@final
class SqliteStore(Store):
    """A model's memory in a SQLite file, opened as `open_store` opens it; the folder of the file must exist.

    Every transaction is synced to the disk before it counts as done (``synchronous=EXTRA``, rollback journal). The
    lock is held on a small file beside the store, ``FILE.lock``; others may read meanwhile. A symbolic link leads to
    the lock of the file it points to; a file with two names is refused, since what a killed watcher left unfinished is
    found beside one of them only. Files that are made here belong to their owner alone.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from safecal.monitor import Monitor
    >>> from safecal.watch.databases import SqliteStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SqliteStore(pathlib.Path(folder) / "watch.sqlite", settings={"alpha": 0.05}) as store:
    ...         print(store.monitor().summary.n, store.known("monday.csv"))
    0 None
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: str = "model",
        settings: Mapping[str, Any] | None = None,
        monitor: Monitor | None = None,
        patience: float = 10.0,
    ) -> None:
        super().__init__(os.fspath(path), model, sqlite3.Error)
        self._path, self._patience = Path(os.path.realpath(path)), patience
        self._lock_file = f"{self._path}.lock"
        self._lock: sqlite3.Connection | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            if settings is not None:
                self._open_to_write()
                self.begin(settings, monitor or Monitor())
            else:
                self._open()
                self.resume()
        except BaseException:
            self.close()
            raise

    def _open_to_write(self) -> None:
        if not self._path.parent.is_dir():
            raise FileError(f"the folder of {self.name} does not exist.\n\nHint: mkdir -p {self._path.parent}")
        if self._path.is_dir():
            raise FileError(f"{self.name} is a folder; `--store` names a file.")
        with self._plain_errors():
            self._make_file(Path(self._lock_file))
            self._lock = self.lock()
            self._make_file(self._path)
            self._refuse_hard_links()
            self._connect("rw")
            self._create_or_check()

    def _open(self) -> None:
        if not self._path.is_file():
            raise FileError(f"there is no store at {self.name}.\n\nHint: `--store` says where it is.")
        self._refuse_hard_links()
        with self._plain_errors():
            # Open to write where we may: what a killed watcher left unfinished is then undone first.
            self._connect("rw" if os.access(self._path, os.W_OK) else "ro")
            self._check()

    def _make_file(self, path: Path) -> None:
        """Make an empty file that no one else can read, where there is none."""
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass
        except PermissionError as error:
            raise self._read_only() from error
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.ENOSPC, errno.EDQUOT):
                raise
            full = "is on a full disk" if error.errno != errno.EROFS else "is on a disk that is read-only"
            raise FileError(f"{self.name} {full}.\n\nHint: give another `--store`.") from error

    def _refuse_hard_links(self) -> None:
        if self._path.stat().st_nlink > 1:
            raise FileError(
                f"{self.name} has a second name (a hard link), under which another watcher would not be noticed.\n\n"
                "Hint: remove the other name, or make a copy; a symbolic link may stay."
            )

    def lock(self) -> sqlite3.Connection:
        """Take the lock of the watcher, for as long as the connection lives."""
        connection = sqlite3.connect(self._lock_file, timeout=0, isolation_level=None)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            connection.close()
            if not _is_kind(error, "SQLITE_BUSY"):
                raise
            raise LockedError(
                f"{self.name} is locked: another watcher is at work on it.\n\n"
                "Hint: one watcher for a store. Stop the other, or give another `--store`."
            ) from error
        return connection

    def _connect(self, mode: str) -> None:
        place = f"{self._path.absolute().as_uri()}?mode={mode}"
        # Only one thread speaks to it at a time; which one may change.
        self._connection = sqlite3.connect(
            place, uri=True, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA synchronous=EXTRA")

    def _create_or_check(self) -> None:
        assert self._connection is not None
        with self._transaction():
            new = self._number("application_id") == 0 and not self._execute("SELECT 1 FROM sqlite_master")
            if new:
                self._execute(f"PRAGMA application_id={APPLICATION}")
                self._execute(f"PRAGMA user_version={VERSION}")
                for table in TABLES:
                    self._execute(table.format(serial="INTEGER PRIMARY KEY"))
        self._check()
        # SQLite opens what it may not write to without a word; better to hear of it now than at the first batch.
        if not all(os.access(place, os.W_OK) for place in (self._path, self._lock_file)):
            raise self._read_only()
        with self._transaction():
            self._execute(f"PRAGMA user_version={VERSION}")

    def _check(self) -> None:
        if self._number("application_id") != APPLICATION:
            raise FileError(
                f"{self.name} is a SQLite file of another program; it is left as it is.\n\n"
                "Hint: give another name with `--store`."
            )
        if self._number("user_version") != VERSION:
            raise FileError(
                f"{self.name} is of version {self._number('user_version')}; this safecal reads version {VERSION}.\n\n"
                "Hint: it was written by another release of safecal; use that one."
            )
        health = self._execute("PRAGMA quick_check(1)")[0][0]
        if health != "ok":
            raise FileError(f"{self.name} is damaged: {health}. It is left as it is.\n\nHint: restore it from a copy.")
        for table, columns in _SEARCHED.items():
            for column in columns:
                wrong = self._execute(f"SELECT rowid FROM {table} WHERE typeof({column}) <> 'text' LIMIT 1")
                if wrong:
                    raise self._damaged(table, wrong[0][0], f"its `{column}` must be text.")

    def _number(self, pragma: str) -> int:
        return int(self._execute(f"PRAGMA {pragma}")[0][0])

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        assert self._connection is not None
        return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        assert self._connection is not None
        with self._plain_errors():
            self._connection.execute("BEGIN" if self._lock is None else "BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled back already
                    self._connection.execute("ROLLBACK")
                raise

    def _in_words(self, error: Any) -> SafecalError:
        name = self.name
        if _is_kind(error, "SQLITE_BUSY"):
            return FileError(
                f"{name} is locked by another program, for more than {self._patience:g} s.\n\n"
                "Hint: end its transaction; safecal wrote nothing."
            )
        if _is_kind(error, "SQLITE_FULL", "SQLITE_IOERR"):
            problem = "is on a full disk" if _is_kind(error, "SQLITE_FULL") else f"cannot be written or read ({error})"
            return FileError(f"{name} {problem}; the last batch was not counted.\n\nHint: make room and start again.")
        if _is_kind(error, "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"):
            return self._read_only()
        if _is_kind(error, "SQLITE_NOTADB", "SQLITE_CORRUPT"):
            return FileError(
                f"{name} is not a store of safecal, or it is damaged ({error}). It is left as it is.\n\n"
                "Hint: restore it from a copy, or give another name with `--store`."
            )
        return FileError(f"{name} cannot be used: {error}.")

    def _read_only(self) -> FileError:
        return FileError(
            f"{self.name} cannot be written: the file or its folder is read-only.\n\nHint: give another `--store`."
        )

    def close(self) -> None:
        for connection in (self._connection, self._lock):
            if connection is not None:
                connection.close()
        self._connection = self._lock = None


def _is_kind(error: sqlite3.Error, *names: str) -> bool:
    """Tell whether the error is of one of these kinds; SQLite's extended codes begin with the plain ones."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in {getattr(sqlite3, name) for name in names}


_SERIAL = "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
_CREATING = 0x5AFECA1  # the advisory lock under which tables are made


@final
class PostgresqlStore(Store):
    """A model's memory in a PostgreSQL database, opened as `open_store` opens it; several models share a database.

    A watcher holds an advisory lock for as long as its connection lives. A connection that breaks ends the watcher with
    an error; started again, it goes on after the last batch that was committed.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "model",
        settings: Mapping[str, Any] | None = None,
        monitor: Monitor | None = None,
        patience: float = 10.0,
    ) -> None:
        self._library = require("psycopg", "a store in PostgreSQL needs psycopg", "postgresql")
        super().__init__(_without_password(url), model, self._library.Error)
        self._secrets = _secrets(url)
        self._connection: Any = None
        with self._plain_errors():
            self._connection = self._library.connect(url, autocommit=True, connect_timeout=max(2, round(patience)))
        try:
            with self._plain_errors():
                self._connection.execute(f"SET lock_timeout = {round(1000 * patience)}")
                self._connection.execute("SET synchronous_commit = on")
            if settings is not None:
                self._lock()
                self._create()
                self.begin(settings, monitor or Monitor())
            else:
                self._check()
                self.resume()
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        number = int.from_bytes(hashlib.sha256(f"safecal {self.model}".encode()).digest()[:8], "big", signed=True)
        with self._plain_errors():
            if not self._execute("SELECT pg_try_advisory_lock(?)", (number,))[0][0]:
                raise LockedError(
                    f"{self.name} is locked: another watcher is at work on the model {self.model!r}.\n\n"
                    "Hint: one watcher for a model. Stop the other, or give another `--name`."
                )

    def _create(self) -> None:
        with self._transaction():
            self._execute("SELECT pg_advisory_xact_lock(?)", (_CREATING,))
            if self._execute("SELECT to_regclass('safecal_version')")[0][0] is None:
                self._execute("CREATE TABLE safecal_version (version INTEGER NOT NULL)")
                self._execute("INSERT INTO safecal_version (version) VALUES (?)", (VERSION,))
                for table in TABLES:
                    self._execute(table.format(serial=_SERIAL))
        self._check()

    def _check(self) -> None:
        with self._transaction():
            if self._execute("SELECT to_regclass('safecal_version')")[0][0] is None:
                raise FileError(f"there is no store at {self.name}.\n\nHint: `--store` says where it is.")
            versions = self._execute("SELECT version FROM safecal_version")
        if [row[0] for row in versions] != [VERSION]:
            shown = ", ".join(str(row[0]) for row in versions) or "none"
            raise FileError(f"{self.name} is of version {shown}; this safecal reads version {VERSION}.")

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values or None)
        return list(cursor.fetchall()) if cursor.description is not None else []

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._plain_errors(), self._connection.transaction():
            yield

    def _in_words(self, error: Exception) -> SafecalError:
        message = " ".join(str(error).split()) or type(error).__name__
        for secret in self._secrets:
            message = message.replace(secret, "...")
        if isinstance(error, self._library.errors.LockNotAvailable):
            return FileError(f"{self.name} is locked by another program: {message}. safecal wrote nothing.")
        if isinstance(error, self._library.OperationalError):
            return FileError(
                f"{self.name} cannot be reached: {message}.\n\n"
                "Hint: is the server up? Batches that were acknowledged are kept; start again to go on."
            )
        return FileError(f"{self.name} refused: {message}.")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:/@]*):.*@", r"\1@", re.sub(r"(password=)[^&]*", r"\1...", url))


def _secrets(url: str) -> tuple[str, ...]:
    """Return the passwords of an address, as they stand in it, in part, and as they are meant; the longest first."""
    passwords = re.findall(r"://[^:/@]*:(.*)@", url) + re.findall(r"password=([^&]*)", url)
    passwords += [part for password in passwords for part in password.split("@")]
    return tuple(sorted({*passwords, *map(unquote, passwords)} - {""}, key=len, reverse=True))


_URLS = ("postgresql://", "postgres://")


def open_store(
    address: str,
    *,
    model: str = "model",
    settings: Mapping[str, Any] | None = None,
    monitor: Monitor | None = None,
    patience: float = 10.0,
) -> Store:
    """Open a store.

    Parameters
    ----------
    address : str
        ``postgresql://user@host:port/database``, or the name of a SQLite file. A password is better kept in
        ``PGPASSWORD`` or ``~/.pgpass``.
    model : str, default "model"
        The name of the model.
    settings : mapping, optional
        The settings of a watcher, which then holds the store. Without them it is only read, and no lock is taken.
    monitor : Monitor, optional
        The monitor that a new store begins with.
    patience : float, default 10.0
        Seconds to wait for the server, and for the locks of other programs.
    """
    kind = PostgresqlStore if address.startswith(_URLS) else SqliteStore
    return kind(address, model=model, settings=settings, monitor=monitor, patience=patience)


def store_files(address: str) -> tuple[str, ...]:
    """Return the SQLite file of an address and what may be put beside it, whether they exist or not; else nothing."""
    if address.startswith(_URLS):
        return ()
    real = os.path.realpath(address)  # what belongs to it lies where it lies, and not where a link to it does
    return (address, *(f"{real}{end}" for end in ("-journal", "-wal", "-shm", ".lock")))
