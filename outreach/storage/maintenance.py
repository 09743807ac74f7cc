"""Backing up, restoring, checking, compacting and migrating a database by its URL.

All functions block on the disk or the network: call them in a thread if an event loop runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from outreach.core.clock import Clock, SystemClock
from outreach.core.command_lines import naming_database
from outreach.errors import ConfigError, Problem
from outreach.models.database import Backup, Compaction, DatabaseCheck, Restore
from outreach.storage.opening import is_postgres


def backup_database(url: str, file: Path, *, overwrite: bool = False) -> Backup:
    """Copy one snapshot of a database or archive, which may be in use, into a private file, and check the copy.

    The log beside the database grows during the copy. The key of the account credentials is not included.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        DatabaseInUse: A process has the file open.
        StorageError: The file exists, is an archive or part of a database, or cannot be written, or the database is
            damaged.
    """
    _refuse_server(url, "pg_dump --schema='outreach*', or your server's own backups")
    from outreach.storage.sqlite.copying import key_file_beside
    from outreach.storage.sqlite.maintenance import back_up
    from outreach.storage.sqlite.storage import path_of

    path = path_of(url)
    size = back_up(path, file, overwrite=overwrite)
    return Backup(file=file.absolute(), size=size, key_file=key_file_beside(path))


def restore_database(url: str, file: Path, *, clock: Clock | None = None) -> Restore:
    """Replace a database that no process has open with a copy of a backup, or change nothing.

    The replaced database is kept beside it. The backup's log counts, if there is one. At the next dispatch, running
    campaigns are paused and queued single messages and calls cancelled, because the ledger does not show what was sent
    after the backup.

    Raises:
        ConfigError: The URL names no file.
        DatabaseInUse: A process has the database open.
        DatabaseNewer: A newer version of this package made the backup.
        StorageError: The file is missing, foreign, damaged, an archive or cannot be copied; or the database is one.
    """
    _refuse_server(url, "pg_restore, or your server's own backups, into a database without the schema outreach")
    from outreach.storage.sqlite.restoring import restore
    from outreach.storage.sqlite.storage import path_of

    return restore(path_of(url), file, now=(clock or SystemClock()).now())


def compact_database(
    url: str,
    *,
    delete_old: bool = False,
    on_progress: Callable[[str], None] | None = None,
    clock: Clock | None = None,
) -> Compaction:
    """Replace a database or archive that no process has open with a copy without the room of deleted rows.

    The copy is checked first, and where a step fails nothing was changed. The old file is kept beside it
    (`outreach.db.before-compact-…`), and nothing is paused: the rows are the same.

    Args:
        url: The database.
        delete_old: Whether the old file is deleted at the end.
        on_progress: Receives a sentence about the progress every 2 s; None logs them.
        clock: The source of time, for the name of the old file; the system by default.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        DatabaseInUse: A process has it open.
        DatabaseOlder: It needs a migration.
        StorageError: It is damaged, there is no room for the copy, or a step failed.
    """
    _refuse_server(
        url,
        "its autovacuum, which makes the room of deleted rows usable again; or, with the servers stopped, "
        "VACUUM (FULL, ANALYZE) on the tables of the schema outreach, which gives it back to the disk",
    )
    from outreach.storage.sqlite.compacting import compact
    from outreach.storage.sqlite.storage import path_of

    return compact(path_of(url), delete_old=delete_old, now=(clock or SystemClock()).now(), on_progress=on_progress)


def check_database(url: str, *, quick: bool = False) -> DatabaseCheck:
    """Check a database or archive, which may be in use, by reading all of it.

    Args:
        url: The database.
        quick: Skip indexes and references of a file, and the rows of PostgreSQL, which is several times as fast.

    Raises:
        ConfigError: The URL names no file and no PostgreSQL database.
        DatabaseMissing: There is no database.
        StorageError: It cannot be read at all.
    """
    if is_postgres(url):
        from outreach.storage.postgres import maintenance

        return maintenance.check(url, quick=quick)
    from outreach.storage.sqlite.maintenance import check
    from outreach.storage.sqlite.storage import path_of

    return check(path_of(url), quick=quick)


def diagnose_database(url: str) -> Sequence[Problem]:
    """Return what is wrong with a database, which may be in use or not be usable at all; changes nothing.

    `engine.diagnose()` finds the same and more, where the database can be opened. Takes little more than half a minute.

    Raises:
        ConfigError: The URL names no file and no PostgreSQL database.
    """
    if is_postgres(url):
        from outreach.storage.postgres.connect import conninfo_of
        from outreach.storage.postgres.diagnosis import diagnose_server

        return [naming_database(one, url) for one in diagnose_server(conninfo_of(url))]
    from outreach.storage.sqlite.diagnosis import diagnose_file
    from outreach.storage.sqlite.storage import path_of

    return [naming_database(one, url) for one in diagnose_file(path_of(url))]


def migrate_database(url: str, *, on_progress: Callable[[str], None] | None = None) -> Sequence[str]:
    """Migrate a database that no process has open; return the names of the applied migrations.

    Until it succeeds a backup lies beside a file (`outreach.db.before-migration`); PostgreSQL takes one transaction.

    Args:
        url: The database.
        on_progress: Receives a sentence about the progress every 2 s; None logs them.

    Raises:
        ConfigError: The URL names no file and no PostgreSQL database.
        DatabaseMissing: There is no database.
        DatabaseNewer: A newer version of this package wrote it; nothing was changed.
        DatabaseInUse: A process has it open; nothing was changed.
        StorageError: It is unusable or damaged, or there is no room for the backup; nothing was changed.
    """
    if is_postgres(url):
        from outreach.storage.postgres import maintenance

        return maintenance.migrate(url, on_progress=on_progress)
    from outreach.storage.sqlite.maintenance import migrate
    from outreach.storage.sqlite.storage import path_of

    return migrate(path_of(url), on_progress=on_progress)


def _refuse_server(url: str, instead: str) -> None:
    if is_postgres(url):
        raise ConfigError(f"A PostgreSQL database is not a file: use {instead}.")
