"""Archives of a database by its URL. All functions block on the disk: call them in a thread if an event loop runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from outreach.core.clock import Clock
from outreach.errors import ConfigError
from outreach.integrations.archives import ledgers
from outreach.models.archive import ArchiveResult, ListedArchive
from outreach.storage.opening import is_postgres


def archive_ledgers(
    url: str,
    file: Path,
    *,
    before: datetime,
    workspace_id: str | None = None,
    on_progress: Callable[[str], None] | None = None,
    clock: Clock | None = None,
) -> ArchiveResult:
    """Move contacts, requests, calls and trail of campaigns that ended before a moment into a SQLite file of their own.

    Engines may run on the database meanwhile. Each campaign keeps its row and its report; its history and its export
    are read from the file from then on. A run that was interrupted goes on when it is run again: each row is in one of
    both files, or in both. A campaign with requests in doubt, or with events that a named subscription has not read, is
    kept back.

    Args:
        url: The database.
        file: The archive: a new file, or one of this database.
        before: Campaigns that ended before it are moved; at least 31 days back, and with a time zone.
        workspace_id: Those of one workspace only; None for all.
        on_progress: Receives a sentence about the progress every 2 s; None logs them.
        clock: The source of time; the system by default.

    Raises:
        ConfigError: The URL names no file.
        InvalidRequest: `before` is too recent.
        NotFound: There is no such workspace.
        DatabaseMissing: There is no database.
        DatabaseOlder: It needs a migration.
        ArchiveUnavailable: Another process moves into the archive, or it is not where it was.
        StorageError: The file holds something else, or one of both cannot be used.
    """
    path = _path(url)
    from outreach.integrations.archives import moving

    return moving.archive_ledgers(
        path, file, before=before, workspace_id=workspace_id, clock=clock, on_progress=on_progress
    )


def list_archives(url: str) -> Sequence[ListedArchive]:
    """Return the archives of a database, oldest first, with what is wrong with each.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        StorageError: It cannot be read, or is an archive itself.
    """
    path = _path(url)
    from outreach.storage.sqlite.backend import Session
    from outreach.storage.sqlite.copying import open_read_only, require_no_archive

    with open_read_only(path) as raw:
        require_no_archive(raw)
        session = Session(raw, read_only=True)
        session.rows.begin()
        return ledgers.list_archives(session.transaction, None)


def move_archive(url: str, file: Path) -> str:
    """Note where an archive of a database is now; return its id.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database, or no such file.
        StorageError: The file is no archive of this database.
    """
    path = _path(url)
    from outreach.integrations.archives import moving

    return moving.move_archive(path, file)


def _path(url: str) -> Path:
    if is_postgres(url):
        raise ConfigError(
            "The campaigns of a PostgreSQL database are not moved into files. Keep them there, or set how long "
            "workspaces keep people (workspaces update --retention-days)."
        )
    from outreach.storage.sqlite.storage import path_of

    return path_of(url)
