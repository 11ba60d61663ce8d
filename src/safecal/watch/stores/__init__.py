"""Where the state is kept: a SQLite file, or PostgreSQL."""

import os
from collections.abc import Mapping
from typing import Any

from ...monitor import Monitor
from .sql import SqlStore

__all__ = ["open_store", "store_files"]

_URLS = ("postgresql://", "postgres://")


def open_store(
    address: str,
    *,
    model: str = "model",
    settings: Mapping[str, Any] | None = None,
    monitor: Monitor | None = None,
    patience: float = 10.0,
) -> SqlStore:
    """Open a store.

    Parameters
    ----------
    address : str
        ``postgresql://…``, or the name of a SQLite file.
    model : str, default "model"
        The name of the model.
    settings : mapping, optional
        What a watcher runs with; it then holds the store. Without, the store is only read.
    monitor : Monitor, optional
        What a new store begins with.
    patience : float, default 10.0
        Seconds to wait for the locks of other programs.

    Returns
    -------
    SqlStore
        Close it after use; it is a context manager.
    """
    if address.startswith(_URLS):
        from .postgresql import PostgresqlStore

        return PostgresqlStore(address, model=model, settings=settings, monitor=monitor, patience=patience)
    from .sqlite import SqliteStore

    return SqliteStore(address, model=model, settings=settings, monitor=monitor, patience=patience)


def store_files(address: str) -> tuple[str, ...]:
    """Return the files that belong to a store, whether they exist or not.

    Parameters
    ----------
    address : str
        As for `open_store`.

    Returns
    -------
    tuple of str
        The SQLite file, and what SQLite and the watcher may put beside it; nothing for PostgreSQL.
    """
    if address.startswith(_URLS):
        return ()
    real = os.path.realpath(address)  # what belongs to it lies where it lies, and not where a link to it does
    return (address, *(f"{real}{end}" for end in ("-journal", "-wal", "-shm", ".lock")))
