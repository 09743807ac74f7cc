"""Looking after a database by its URL: backing it up, restoring and checking it, bringing it up to date.

All of these wait for the disk: call them in a thread of their own where an event loop runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from outreach.clock import Clock, SystemClock
from outreach.models.database import Backup, DatabaseCheck, Restore


def backup_database(url: str, file: Path, *, overwrite: bool = False) -> Backup:
    """Copy a database into a file that only its owner can read, also while others write: one moment of it, whole.

    The copy is looked through before it gets its name. While it is made the log beside the database grows with what is
    written meanwhile. The key that credentials are encrypted with is not in it.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        StorageError: The file is there already, or cannot be written; or the database is damaged.
    """
    from outreach.storage.sqlite.maintenance import back_up
    from outreach.storage.sqlite.storage import path_of

    path = path_of(url)
    size = back_up(path, file, overwrite=overwrite)
    return Backup(file=file.absolute(), size=size, key_file=_key_file(path))


def restore_database(url: str, file: Path, *, clock: Clock | None = None) -> Restore:
    """Put a copy of a backup in the place of a database that nobody has open; all of it, or nothing is changed.

    What was there is kept beside it. Of the backup the log beside it counts too, where it has one. What was active in
    it is paused when it is first dispatched from, and single messages and calls that still waited are canceled: what
    was sent after the backup stands in no ledger any more.

    Raises:
        ConfigError: The URL names no file.
        DatabaseInUse: Some process has the database open.
        DatabaseNewer: The backup was made by a newer version of this package.
        StorageError: There is no such file, or it is no database of this package, or is damaged, or cannot be copied.
    """
    from outreach.storage.sqlite.restoring import restore
    from outreach.storage.sqlite.storage import path_of

    path = path_of(url)
    done = restore(path, file, now=(clock or SystemClock()).now())
    return Restore(
        replaced_database=done.replaced_database, pending_migrations=done.pending_migrations, key_file=_key_file(path)
    )


def check_database(url: str, *, quick: bool = False) -> DatabaseCheck:
    """Look a database through, also while others write; it reads all of it.

    Args:
        url: The database.
        quick: Leave out the comparison of indexes with their tables, and of references: several times as fast.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        StorageError: It cannot be read at all.
    """
    from outreach.storage.sqlite.maintenance import check
    from outreach.storage.sqlite.storage import path_of

    found = check(path_of(url), quick=quick)
    return DatabaseCheck(
        problems=found.problems, size=found.size, log_size=found.log_size, pending_migrations=found.pending_migrations
    )


def migrate_database(url: str, *, on_progress: Callable[[str], None] | None = None) -> Sequence[str]:
    """Bring a database of an older version up to date, while nobody has it open; return the names of the steps.

    Until it is done and looked through a copy of what it was lies beside it (`outreach.db.before-migration`), and for
    as long as it has not succeeded.

    Args:
        url: The database.
        on_progress: Is handed a sentence every 2 s that says how far it is, beginning after as long; None logs them.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        DatabaseNewer: It was written by a newer version of this package; nothing was changed.
        DatabaseInUse: Some process has it open; nothing was changed.
        StorageError: It cannot be used, or is damaged, or there is no room for the copy; nothing was changed.
    """
    from outreach.storage.sqlite.maintenance import migrate
    from outreach.storage.sqlite.storage import path_of

    return migrate(path_of(url), on_progress=on_progress)


def _key_file(path: Path) -> Path | None:
    file = path.with_name(f"{path.name}.key")
    return file.absolute() if file.exists() else None
