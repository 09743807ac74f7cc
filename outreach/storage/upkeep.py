"""Looking after a database by its URL: backing it up, restoring and checking it, bringing it up to date.

All of these wait for the disk: call them in a thread of their own where an event loop runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from outreach.clock import Clock, SystemClock


@attrs.frozen(kw_only=True)
class Backup:
    """A backup that was made.

    Attributes:
        file: Where it is.
        size: Its bytes.
        key_file: The file with the key of the accounts' credentials, which is not in it; None where there is none.
    """

    file: Path
    size: int
    key_file: Path | None


@attrs.frozen(kw_only=True)
class Restore:
    """A restore that was done.

    Attributes:
        kept: Where the database lies that was there before; None when there was none.
        lacking: The steps that bring the restored one up to date; empty when it is.
        key_file: The key file beside the database, which was left as it is; None where there is none.
    """

    kept: Path | None
    lacking: Sequence[str]
    key_file: Path | None


@attrs.frozen(kw_only=True)
class DatabaseCheck:
    """What looking a database through has found.

    Attributes:
        problems: What is wrong, a sentence each; empty when nothing is.
        size: Bytes of its file.
        log_size: Bytes of the log beside it.
        lacking: The steps that bring it up to date; empty when it is.
    """

    problems: Sequence[str]
    size: int
    log_size: int
    lacking: Sequence[str]


def backup_database(url: str, file: Path, *, overwrite: bool = False) -> Backup:
    """Copy a database into a file that only its owner can read, also while others write: one moment of it, whole.

    The copy is looked through before it gets its name. While it is made the log beside the database grows with what is
    written meanwhile. The key that credentials are encrypted with is not in it.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        StorageError: The file is there already, or cannot be written; or the database is damaged.
    """
    from outreach.storage.sqlite.upkeep import back_up
    from outreach.storage.sqlite.url import path_of

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
    from outreach.storage.sqlite.url import path_of

    path = path_of(url)
    done = restore(path, file, now=(clock or SystemClock()).now())
    return Restore(kept=done.kept, lacking=done.lacking, key_file=_key_file(path))


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
    from outreach.storage.sqlite.upkeep import check
    from outreach.storage.sqlite.url import path_of

    found = check(path_of(url), quick=quick)
    return DatabaseCheck(problems=found.problems, size=found.size, log_size=found.log_size, lacking=found.lacking)


def migrate_database(url: str, *, tell: Callable[[str], None] | None = None) -> Sequence[str]:
    """Bring a database of an older version up to date, while nobody has it open; return the names of the steps.

    Until it is done and looked through a copy of what it was lies beside it (`outreach.db.before-migration`), and for
    as long as it has not succeeded.

    Args:
        url: The database.
        tell: Is handed a sentence every 2 s that says how far it is, beginning after as long; None logs them.

    Raises:
        ConfigError: The URL names no file.
        DatabaseMissing: There is no database.
        DatabaseNewer: It was written by a newer version of this package; nothing was changed.
        DatabaseInUse: Some process has it open; nothing was changed.
        StorageError: It cannot be used, or is damaged, or there is no room for the copy; nothing was changed.
    """
    from outreach.storage.sqlite.upkeep import migrate
    from outreach.storage.sqlite.url import path_of

    return migrate(path_of(url), tell=tell)


def _key_file(path: Path) -> Path | None:
    file = path.with_name(f"{path.name}.key")
    return file.absolute() if file.exists() else None
