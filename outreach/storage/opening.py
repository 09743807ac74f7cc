"""Choosing a storage by URL."""

from __future__ import annotations

from pathlib import Path

from outreach.clock import Clock
from outreach.errors import ConfigError
from outreach.protocols.storage import Storage


def key_file_for(url: str) -> Path | None:
    """Return the file beside a database that holds the key of its accounts' credentials; None in memory."""
    prefix = "sqlite:///"
    return Path(url.removeprefix(prefix) + ".key") if url.startswith(prefix) else None


def storage_from_url(
    url: str, *, clock: Clock, host: str | None = None, create: bool = True, migrate: bool = True
) -> Storage:
    """Return the storage that a URL names, not opened yet.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` or `memory://`.
        clock: Where the storage reads the time.
        host: What this machine is called, for a database that must not dispatch after a move; None takes the
            system's own identity.
        create: Whether opening it makes the database where there is none; one in memory is always made.
        migrate: Whether opening it brings one of an older version up to date.

    Raises:
        ConfigError: No storage goes by this URL, or the URL is not valid; the message says what would be.
    """
    scheme, separator, _ = url.partition("://")
    match scheme if separator else "":
        case "sqlite":
            from outreach.storage.sqlite.storage import sqlite_storage_from_url

            return sqlite_storage_from_url(url, clock=clock, host=host, create=create, migrate=migrate)
        case "memory":
            from outreach.storage.sqlite.memory import MemoryStorage

            return MemoryStorage(clock=clock)
        case _:
            raise ConfigError(
                f"{url!r} names no database. Write sqlite:///outreach.db, sqlite:////absolute/path.db or memory://."
            )
