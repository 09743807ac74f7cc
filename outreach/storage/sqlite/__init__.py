"""A database in one SQLite file."""

from __future__ import annotations

from outreach.storage.sqlite.storage import SqliteStorage, sqlite_storage_from_url

__all__ = ["SqliteStorage", "sqlite_storage_from_url"]
