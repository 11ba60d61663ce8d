"""Where the state is kept: a SQLite file, or PostgreSQL."""

from .opening import open_store

__all__ = ["open_store"]
