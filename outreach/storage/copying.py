"""Copying a whole database into another one by their URLs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from outreach.models.database import DatabaseCopy
from outreach.storage.base.progress import Progress
from outreach.storage.base.transfer import Endpoint, copy_rows
from outreach.storage.opening import is_postgres, key_file_for


def copy_database(source: str, target: str, *, on_progress: Callable[[str], None] | None = None) -> DatabaseCopy:
    """Copy all rows of a database into a new one, and compare their counts and checksums.

    No process may have either open. The source is not changed. A copy that was interrupted goes on when it is run
    again; until it is finished, nobody can open the target. At the next dispatch from it, running campaigns are paused,
    because a copy elsewhere must not send what the original sends.

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
    from outreach.storage.sqlite.transfer import copied_tables

    progress = Progress("Copying the database", on_progress)
    with _opened(source, create=False) as here, _opened(target, create=True) as there:
        rows = copy_rows(here, there, copied_tables(), progress)
    progress.done("The database is copied")
    key_file = key_file_for(source)
    return DatabaseCopy(rows=rows, key_file=key_file.absolute() if key_file is not None and key_file.exists() else None)


def _opened(url: str, *, create: bool) -> AbstractContextManager[Endpoint]:
    if is_postgres(url):
        from outreach.storage.postgres.transfer import postgres_endpoint

        return postgres_endpoint(url, create=create)
    from outreach.storage.sqlite.storage import path_of
    from outreach.storage.sqlite.transfer import sqlite_endpoint

    return sqlite_endpoint(path_of(url), create=create)
