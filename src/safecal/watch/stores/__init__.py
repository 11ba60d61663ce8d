"""Where the state is kept: a SQLite file, or PostgreSQL."""

from .opening import open_store, store_files

__all__ = ["open_store", "store_files"]
