"""The store of a team: tables in a PostgreSQL database.

One watcher for each name of a model: it holds an advisory lock for as long as its connection lives. A connection that
breaks ends the watcher with an error; started again, it goes on after the last batch that was committed.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final
from urllib.parse import unquote

from .._optional import require
from ..errors import FileError, LockedError, SafecalError
from ..monitor import Monitor
from .store import TABLES, VERSION, Row, Store

__all__ = ["PostgresqlStore"]

_SERIAL = "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
_CREATING = 0x5AFECA1  # the advisory lock under which tables are made


def _psycopg() -> Any:
    return require("psycopg", "a store in PostgreSQL needs psycopg", "postgresql")


@final
class PostgresqlStore(Store):
    """A model's memory in a PostgreSQL database.

    Parameters
    ----------
    url : str
        ``postgresql://user@host:port/database``; a password is better kept in ``PGPASSWORD`` or ``~/.pgpass``.
    model : str, default "model"
        The name of the model; several share a database.
    settings : mapping, optional
        The settings of a watcher. Without them, the store is only read, and no lock is taken.
    monitor : Monitor, optional
        The monitor that a new model begins with.
    patience : float, default 10.0
        Seconds to wait for the server, and for locks of others.
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
        super().__init__(_without_password(url), model)
        self._secrets = _secrets(url)
        self._library = _psycopg()
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

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Turn errors of psycopg into words."""
        try:
            yield
        except self._library.Error as error:
            raise self._in_words(error) from error

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return text

    def _in_words(self, error: Exception) -> SafecalError:
        message = self._without_secrets(" ".join(str(error).split()) or type(error).__name__)
        if isinstance(error, self._library.errors.LockNotAvailable):
            return FileError(f"{self.name} is locked by another program: {message}. Nothing of ours was written.")
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
