"""What maintenance of a database tells: backups, checks, restores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs


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
        replaced_database: Where the database lies that was there before; None when there was none.
        pending_migrations: The steps that bring the restored one up to date; empty when it is.
        key_file: The key file beside the database, which was left as it is; None where there is none.
    """

    replaced_database: Path | None
    pending_migrations: Sequence[str]
    key_file: Path | None


@attrs.frozen(kw_only=True)
class DatabaseCheck:
    """What looking a database through has found.

    Attributes:
        problems: What is wrong, a sentence each; empty when nothing is.
        size: Bytes of its file.
        log_size: Bytes of the log beside it.
        pending_migrations: The steps that bring it up to date; empty when it is.
    """

    problems: Sequence[str]
    size: int
    log_size: int
    pending_migrations: Sequence[str]
