"""A database in one SQLite file."""

from __future__ import annotations

from outreach.storage.sqlite.storage import SqliteStorage
from outreach.storage.sqlite.url import for_url

__all__ = ["SqliteStorage", "for_url"]
