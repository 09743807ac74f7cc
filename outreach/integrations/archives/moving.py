"""Moving contacts and requests of ended campaigns into a file of their own: the files, and the lock on them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from outreach.core.clock import Clock, SystemClock, format_timestamp
from outreach.errors import ArchiveUnavailable, DatabaseMissing, InvalidRequest, NotFound, StorageError
from outreach.integrations.archives.files import lock_archive, make_archive
from outreach.integrations.archives.mover import Mover
from outreach.ledger.campaigns.reporting import REPLY_WINDOW
from outreach.models.archive import ArchiveResult
from outreach.storage.base.progress import Progress, ProgressCallback
from outreach.storage.sqlite.copying import identity_of, is_archive, is_empty, open_read_only, require_database
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.lock import SqliteDispatchLock
from outreach.storage.sqlite.schema import apply_migrations, transaction, version_of
from outreach.storage.sqlite.storage import BUSY_SECONDS
from outreach.storage.sqlite.watch import FileWatch

MIN_AGE: Final = REPLY_WINDOW + timedelta(days=1)
"""Until then replies and opt-outs may still belong to a campaign."""


def archive_ledgers(
    path: Path,
    file: Path,
    *,
    before: datetime,
    workspace_id: str | None = None,
    clock: Clock | None = None,
    on_progress: ProgressCallback | None = None,
) -> ArchiveResult:
    """Move the ledgers of campaigns that ended before a moment; see `by_url.archive_ledgers`."""
    clock = clock or SystemClock()
    if before > clock.now() - MIN_AGE:
        raise InvalidRequest.at(
            "before", f"must lie at least {MIN_AGE.days} days back: until then replies may belong to a campaign"
        )
    path, file = Path(os.path.realpath(path)), file.absolute()
    require_database(path)
    if not file.parent.is_dir():
        raise StorageError(f"The directory {str(file.parent)!r} does not exist. Create it first.")
    if file.exists() and os.path.samefile(file, path):
        raise StorageError(f"{str(file)!r} is the database itself. Name another file for the archive.")
    SqliteDispatchLock(path, watch=FileWatch(path, clock=clock)).check_before_opening()
    try:
        with ExitStack() as stack:
            raw = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)))
            raw.execute("PRAGMA foreign_keys = ON")
            raw.execute("PRAGMA synchronous = FULL")
            apply_migrations(raw, migrate=False)
            if workspace_id is not None:
                _require_workspace(raw, workspace_id)
            # Beside another program's file not even a lock is made.
            _require_own(raw, file)
            stack.enter_context(lock_archive(str(file)))
            identity = _attach(raw, file, clock.now())
            progress = Progress("Archiving", on_progress)
            result = Mover(raw, identity, clock, progress).run(file, before, workspace_id)
            progress.done("The campaigns are archived")
            return result
    except sqlite3.Error as error:
        raise StorageError(
            f"The campaigns of {str(path)!r} cannot be archived into {str(file)!r}. {translate(error).message} "
            "Nothing is lost: run it again."
        ) from error


def move_archive(path: Path, file: Path) -> str:
    """Note where an archive is now, by its identity; return that."""
    require_database(path)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as raw:
        apply_migrations(raw, migrate=False)
        if not file.is_file():
            raise DatabaseMissing(f"There is no file {str(file)!r}.")
        try:
            with closing(sqlite3.connect(file, isolation_level=None, timeout=BUSY_SECONDS)) as archive:
                identity = identity_of(archive)
        except sqlite3.Error:
            raise StorageError(f"{str(file)!r} is no archive of this database.") from None
        with transaction(raw):
            found = raw.execute("UPDATE archives SET file = ? WHERE id = ?", (str(file.absolute()), identity)).rowcount
        if not found:
            raise StorageError(f"{str(file)!r} is no archive of this database.")
        return identity


def _require_workspace(raw: sqlite3.Connection, workspace_id: str) -> None:
    if raw.execute("SELECT 1 FROM workspaces WHERE id = ?", (workspace_id,)).fetchone() is None:
        raise NotFound("workspace", workspace_id)


def _require_own(raw: sqlite3.Connection, file: Path) -> None:
    """Raise `StorageError` if a file is there that is no archive of this database."""
    if not file.exists() or is_empty(file):
        return
    why = None
    try:
        with open_read_only(file) as archive:
            version = version_of(archive)
            if version.is_foreign:
                why = "holds the tables of something else"
            elif version.applied and not is_archive(archive):
                why = "is a database or a backup of one, and no archive"
            elif not version.pending_migrations and not version.newer:
                known = raw.execute("SELECT 1 FROM archives WHERE id = ?", (identity_of(archive),)).fetchone()
                if known is None and archive.execute("SELECT 1 FROM campaigns LIMIT 1").fetchone() is not None:
                    why = "holds campaigns of another database"
    except StorageError as error:
        raise StorageError(f"{error.message} Name another file for the archive.") from error
    if why is not None:
        raise StorageError(f"{str(file)!r} {why}. Name another file for the archive.")


def _require_latest(raw: sqlite3.Connection, file: Path, identity: str) -> None:
    """Raise `StorageError` if the attached archive lacks a campaign that is in it, or has one that is unknown here."""
    there = set(raw.execute("SELECT number, id FROM archive.campaigns"))
    moved = raw.execute(
        "SELECT campaigns.number, campaigns.id FROM main.archived_campaigns AS archived "
        "JOIN main.campaigns AS campaigns ON campaigns.number = archived.campaign_number "
        "WHERE archived.archive_id = ? AND archived.state <> 'copying'",
        (identity,),
    )
    if not there.issuperset(moved):
        raise StorageError(
            f"{str(file)!r} is an older copy of the archive: campaigns that were moved into it are missing. Name the "
            "latest one."
        )
    if not there.issubset(raw.execute("SELECT number, id FROM main.campaigns")):
        raise StorageError(
            f"{str(file)!r} holds campaigns that this database does not know, as after a restore of a backup from "
            "before. Name another file for the archive."
        )


def _forget_unfinished(raw: sqlite3.Connection, file: Path) -> None:
    """Forget archives that are not there any more, or raise `ArchiveUnavailable` if one held what is nowhere else."""
    with transaction(raw):
        for (identity,) in raw.execute("SELECT id FROM main.archives WHERE file = ?", (str(file),)).fetchall():
            # What is being copied is still in the database as a whole.
            raw.execute("DELETE FROM main.archived_campaigns WHERE archive_id = ? AND state = 'copying'", (identity,))
            if raw.execute("SELECT 1 FROM main.archived_campaigns WHERE archive_id = ?", (identity,)).fetchone():
                raise ArchiveUnavailable(f"The archive {file} is not there. Put it back, or name another file.")
            raw.execute("DELETE FROM main.archives WHERE id = ?", (identity,))


def _attach(raw: sqlite3.Connection, file: Path, now: datetime) -> str:
    """Attach the archive, a new one or one of this database, and note where it is; return its identity."""
    # Checked again, now that no other process can create one.
    _require_own(raw, file)
    if not file.exists():
        _forget_unfinished(raw, file)
    identity = make_archive(file)
    raw.execute("ATTACH DATABASE ? AS archive", (str(file),))
    raw.execute("PRAGMA archive.synchronous = FULL")
    _require_latest(raw, file, identity)
    with transaction(raw):
        raw.execute(
            "INSERT INTO main.archives (id, file, created_at) VALUES (?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET file = excluded.file",
            (identity, str(file), format_timestamp(now)),
        )
    return identity
