"""Results of database maintenance: backups, checks, copies, restores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs


@attrs.frozen(kw_only=True)
class Backup:
    """A finished backup.

    Attributes:
        file: Its path.
        size: In bytes.
        key_file: The file with the key of the accounts' credentials, which the backup does not contain; None if none.
    """

    file: Path
    size: int
    key_file: Path | None


@attrs.frozen(kw_only=True)
class Restore:
    """A finished restore.

    Attributes:
        replaced_database: The path of the previous database; None if there was none.
        pending_migrations: The migrations that the restored database needs.
        key_file: The key file beside the database, which was not changed; None if there is none.
    """

    replaced_database: Path | None
    pending_migrations: Sequence[str]
    key_file: Path | None


@attrs.frozen(kw_only=True)
class Compaction:
    """A database that was replaced by a compact copy of itself.

    Attributes:
        size_before: Bytes of the file before.
        size: Bytes of it now.
        replaced_database: Where the old one was kept; None if it was deleted.
    """

    size_before: int
    size: int
    replaced_database: Path | None


@attrs.frozen(kw_only=True)
class DatabaseCopy:
    """A finished copy of a database.

    Attributes:
        rows: How many rows of each table both databases hold.
        key_file: The file with the key of the accounts' credentials, which the copy does not contain; None if none.
    """

    rows: Mapping[str, int]
    key_file: Path | None


@attrs.frozen(kw_only=True)
class DatabaseCheck:
    """The result of a database check.

    Attributes:
        problems: A sentence each; empty if all is well.
        size: Bytes of the database file.
        log_size: Bytes of the write-ahead log.
        pending_migrations: The migrations that it needs.
    """

    problems: Sequence[str]
    size: int
    log_size: int
    pending_migrations: Sequence[str]
