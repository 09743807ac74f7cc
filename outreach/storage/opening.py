"""Choosing a storage by URL."""

from __future__ import annotations

from pathlib import Path

from outreach.clock import Clock
from outreach.errors import ConfigError
from outreach.protocols.storage import Storage


def key_file_for(url: str) -> Path | None:
    """Return the file of a database's credentials key; None where no file is beside the database."""
    prefix = "sqlite:///"
    return Path(url.removeprefix(prefix) + ".key") if url.startswith(prefix) else None


def is_postgres(url: str) -> bool:
    """Return whether a URL names a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


def shown_url(url: str) -> str:
    """Return a database's URL as it may be shown: without user and password."""
    if not is_postgres(url):
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def storage_from_url(
    url: str, *, clock: Clock, host: str | None = None, create: bool = True, migrate: bool = True, workers: int = 1
) -> Storage:
    """Return the unopened storage of a URL.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://host/database` or `memory://`.
        clock: The source of time.
        host: A name for this machine, which detects that a file was moved; None for the system's identity.
        create: Whether opening creates a missing database; one in memory is always created.
        migrate: Whether opening migrates an older database.
        workers: How many engines may dispatch from it at a time, where the storage bounds that.

    Raises:
        ConfigError: The URL is not valid, no storage has it, or the extra that it needs is not installed.
    """
    scheme, separator, _ = url.partition("://")
    match scheme if separator else "":
        case "sqlite":
            from outreach.storage.sqlite.storage import sqlite_storage_from_url

            return sqlite_storage_from_url(url, clock=clock, host=host, create=create, migrate=migrate, workers=workers)
        case "postgresql" | "postgres":
            from outreach.storage.postgres import postgres_storage_from_url

            return postgres_storage_from_url(url, clock=clock, create=create, migrate=migrate, workers=workers)
        case "memory":
            from outreach.storage.sqlite.memory import MemoryStorage

            return MemoryStorage(clock=clock, workers=workers)
        case _:
            raise ConfigError(
                f"{shown_url(url)!r} names no database. Write sqlite:///outreach.db, sqlite:////absolute/path.db, "
                "postgresql://user:password@host/database or memory://."
            )
