"""Databases by their URLs: choosing a storage, and copying one into another."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from outreach.errors import ConfigError, StorageError
from outreach.models.work import COPIED_FROM, DatabaseHome
from outreach.storage.base.progress import Progress
from outreach.storage.base.transfer import copy_rows

if TYPE_CHECKING:
    from outreach.core.clock import Clock
    from outreach.models.database import DatabaseCopy
    from outreach.protocols.storage import Storage
    from outreach.storage.base.transfer import Endpoint


def key_file_for(url: str) -> Path | None:
    """Return the file of a database's credentials key; None where no file is beside the database."""
    prefix = "sqlite:///"
    if not url.startswith(prefix):
        return None
    # Absolute, because messages and commands name it; beside the file itself, or each link to it had a key of its own.
    return Path(f"{os.path.realpath(url.removeprefix(prefix))}.key")


def is_postgres(url: str) -> bool:
    """Return whether a URL names a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


def shown_url(url: str) -> str:
    """Return a database's URL as it may be shown: without user and password, also of one that names no database."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    if scheme in {"sqlite", "memory"}:
        return url
    # Its password may hold whatever should have been percent-encoded.
    return f"{scheme}{separator}{rest.rpartition('@')[2].partition('?')[0]}"


def state_directory(environment: Mapping[str, str]) -> Path | None:
    """Return the directory that outlives this process, as the host or systemd names it; None without one."""
    named = environment.get("OUTREACH_STATE_DIR") or environment.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(named) if named else None


def storage_from_url(
    url: str,
    *,
    clock: Clock,
    host: str | None = None,
    create: bool = True,
    migrate: bool = True,
    workers: int = 1,
    state_dir: Path | None = None,
) -> Storage:
    """Return the unopened storage of a URL.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://host/database` or `memory://`.
        clock: The source of time.
        host: A name for this machine, which detects that a file was moved; None for the system's identity.
        create: Whether opening creates a missing database; one in memory is always created.
        migrate: Whether opening migrates an older database.
        workers: How many engines may dispatch from it at a time, where the storage bounds that.
        state_dir: Where this machine notes how far a database has come; None for nowhere. A file has a note beside it,
            too.

    Raises:
        ConfigError: The URL is not valid, no storage has it, or the extra that it needs is not installed.
    """
    scheme, separator, _ = url.partition("://")
    match scheme if separator else "":
        case "sqlite":
            from outreach.storage.sqlite.storage import sqlite_storage_from_url

            return sqlite_storage_from_url(
                url,
                clock=clock,
                host=host,
                create=create,
                migrate=migrate,
                workers=workers,
                state_dir=state_dir,
            )
        case "postgresql" | "postgres":
            from outreach.storage.postgres import postgres_storage_from_url

            return postgres_storage_from_url(
                url, clock=clock, create=create, migrate=migrate, workers=workers, state_dir=state_dir
            )
        case "memory":
            from outreach.storage.sqlite.memory import MemoryStorage

            return MemoryStorage(clock=clock, workers=workers)
        case _:
            raise ConfigError(
                f"{shown_url(url)!r} names no database. Write sqlite:///outreach.db, sqlite:////absolute/path.db, "
                "postgresql://user:password@host/database or memory://."
            )


def copy_database(source: str, target: str, *, on_progress: Callable[[str], None] | None = None) -> DatabaseCopy:
    """Copy all rows of a database into a new one, and compare their counts and checksums.

    No process may have either open. A copy that was interrupted goes on when it is run again; until it is finished,
    nobody can open the target. At the next dispatch from it, running campaigns are paused. From the source nothing is
    dispatched any more, unless `reclaim_database` says so: both would reach the same contacts.

    Args:
        source: The URL of a database of this version.
        target: The URL of a database that is missing or empty, or holds an unfinished copy of this source.
        on_progress: Receives a sentence about the progress every 2 s; None logs them.

    Raises:
        ConfigError: A URL names no database that can be copied.
        DatabaseMissing: There is no source.
        DatabaseInUse: A process has one of them open; nothing was changed.
        DatabaseOlder: The source needs a migration.
        StorageError: The target holds something else, the source has changed since an interrupted copy of it, or one
            of them cannot be used.
    """
    from outreach.models.database import DatabaseCopy
    from outreach.storage.sqlite.transfer import copied_tables

    if not is_postgres(source) and not is_postgres(target):
        _require_two_files(source, target)
    progress = Progress("Copying the database", on_progress)
    with _opened(source, create=False) as here, _opened(target, create=True) as there:
        names = _full_name(source), _full_name(target)
        rows = copy_rows(here, there, copied_tables(), progress, names=names)
    progress.done("The database is copied")
    key_file = key_file_for(source)
    return DatabaseCopy(rows=rows, key_file=key_file.absolute() if key_file is not None and key_file.exists() else None)


def reclaim_database(url: str) -> str | None:
    """Let a database that was copied elsewhere be dispatched from again; its running campaigns are paused first.

    Call it once it is certain that nothing is sent from the copy.

    Args:
        url: The database, which no process may have open.

    Returns:
        Where it was copied to; None if it was not copied, and nothing was changed.

    Raises:
        ConfigError: The URL names no database that can be copied.
        DatabaseMissing: There is no database.
        DatabaseInUse: A process has it open; nothing was changed.
        DatabaseOlder: It needs a migration.
        StorageError: It cannot be used.
    """
    with _opened(url, create=False) as endpoint:
        home = endpoint.home()
        if home is None or home.copied_to is None:
            return None
        endpoint.set_home(DatabaseHome(host=COPIED_FROM, path=home.copied_to))
        return home.copied_to


def _full_name(url: str) -> str:
    """Return the URL of a database with an absolute path, without user and password."""
    if is_postgres(url):
        return shown_url(url)
    from outreach.storage.sqlite.storage import path_of

    return f"sqlite:///{os.path.realpath(path_of(url))}"


def _require_two_files(source: str, target: str) -> None:
    from outreach.storage.sqlite.storage import path_of

    one, other = path_of(source), path_of(target)
    if one.exists() and other.exists() and one.samefile(other):
        raise StorageError(f"{str(other)!r} is the database itself. Name another file for the copy.")


def _opened(url: str, *, create: bool) -> AbstractContextManager[Endpoint]:
    if is_postgres(url):
        from outreach.storage.postgres.transfer import postgres_endpoint

        return postgres_endpoint(url, create=create)
    from outreach.storage.sqlite.storage import path_of
    from outreach.storage.sqlite.transfer import sqlite_endpoint

    return sqlite_endpoint(path_of(url), create=create)
