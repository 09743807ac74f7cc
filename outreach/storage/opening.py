"""Choosing a storage by URL."""

from __future__ import annotations

from pathlib import Path

from outreach.clock import Clock
from outreach.errors import ConfigError
from outreach.protocols.storage import Storage


def key_file_for(url: str) -> Path | None:
    """Return the file of a database's credentials key; None in memory."""
    prefix = "sqlite:///"
    return Path(url.removeprefix(prefix) + ".key") if url.startswith(prefix) else None


def storage_from_url(
    url: str, *, clock: Clock, host: str | None = None, create: bool = True, migrate: bool = True, workers: int = 1
) -> Storage:
    """Return the unopened storage of a URL.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` or `memory://`.
        clock: The source of time.
        host: A name for this machine, which detects that a database was moved; None for the system's identity.
        create: Whether opening creates a missing database; one in memory is always created.
        migrate: Whether opening migrates an older database.
        workers: How many engines may dispatch from it at a time, where the storage bounds that.

    Raises:
        ConfigError: The URL is not valid, or no storage has it.
    """
    scheme, separator, _ = url.partition("://")
    match scheme if separator else "":
        case "sqlite":
            from outreach.storage.sqlite.storage import sqlite_storage_from_url

            return sqlite_storage_from_url(url, clock=clock, host=host, create=create, migrate=migrate, workers=workers)
        case "memory":
            from outreach.storage.sqlite.memory import MemoryStorage

            return MemoryStorage(clock=clock, workers=workers)
        case _:
            raise ConfigError(
                f"{url!r} names no database. Write sqlite:///outreach.db, sqlite:////absolute/path.db or memory://."
            )
