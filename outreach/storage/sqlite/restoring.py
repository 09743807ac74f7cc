"""Replacing a database with a backup, without losing or mixing either."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import attrs

from outreach.errors import DatabaseInUse, DatabaseNewer, DispatchRefused, StorageError
from outreach.models.database import Restore
from outreach.models.work import HighWaterMark
from outreach.storage.base.schema import written_by_newer
from outreach.storage.sqlite.copying import (
    copy_database,
    give_to_owner,
    is_archive,
    is_archive_file,
    key_file_beside,
    open_read_only,
    sibling_path,
    sync,
)
from outreach.storage.sqlite.lock import SqliteDispatchLock, mark_ahead
from outreach.storage.sqlite.schema import version_of
from outreach.storage.sqlite.watch import exclusive_use

_PENDING: Final = ("-wal", "-journal")
"""The endings of SQLite's files beside a database that still change its content."""


def restore(path: Path, source: Path, *, now: datetime) -> Restore:
    """Replace a database by a copy of another file.

    The replaced one is kept beside it under a name with the time. The restored one is quarantined: it does not start
    sending by itself.

    Raises:
        DatabaseInUse: A process has the database open.
        DatabaseNewer: A newer version of this package wrote the file.
        StorageError: The file is missing, foreign, damaged, an archive or cannot be copied; nothing was changed.
    """
    path = Path(os.path.realpath(path))
    if source.exists() and path.exists() and os.path.samefile(source, path):
        raise StorageError(f"{str(source)!r} is the database itself. Name the backup to restore.")
    if not source.is_file():
        raise StorageError(f"There is no file {str(source.absolute())!r} to restore.")
    if is_archive_file(path):
        raise StorageError(
            f"{str(path)!r} is an archive of ended campaigns, and no database. Nothing was changed. Name the database "
            "to replace; a copy of an archive is put back without this command, by copying it."
        )
    draft = sibling_path(path, ".restoring")
    lock = SqliteDispatchLock(path)
    with _exclusively(lock, path):
        with open_read_only(source, at_rest=True) as raw:
            if is_archive(raw):
                raise StorageError(
                    f"{str(source)!r} is an archive of ended campaigns, and no backup of a database. Nothing was "
                    "changed. Name a backup of the database. To put an archive back, copy it to its place, which "
                    "`db archives` names."
                )
            version = version_of(raw)
            if version.newer:
                raise DatabaseNewer(
                    f"{written_by_newer(repr(str(source)), version)} Nothing was changed. Install that version."
                )
            if version.is_foreign:
                raise StorageError(f"{str(source)!r} is not a database of this package. Nothing was changed.")
            copy_database(raw, draft)
        with open_read_only(draft, at_rest=True) as raw:
            mark = mark_ahead(raw)
        try:
            kept = _swap(path, draft, lock, mark, now)
        except OSError as error:
            raise StorageError(
                f"The database {str(path)!r} cannot be replaced: {error.strerror}. Nothing was changed."
            ) from error
        finally:
            draft.unlink(missing_ok=True)
    return Restore(
        replaced_database=kept, pending_migrations=version.pending_migrations, key_file=key_file_beside(path)
    )


@contextmanager
def _exclusively(lock: SqliteDispatchLock, path: Path) -> Iterator[None]:
    if not path.parent.is_dir():
        raise StorageError(f"The directory {str(path.parent)!r} does not exist. Create it first.")
    lock_file = sibling_path(path, ".dispatch")
    lock_is_new = not lock_file.exists()
    try:
        if not lock.take():
            raise DatabaseInUse(f"A server dispatches from the database {str(path)!r}: stop the server first.")
    except DispatchRefused as refused:
        # Dispatching is impossible there, but serving is not.
        if refused.reason != "network_file_system":
            raise
    try:
        with exclusive_use(path):
            yield
    except BaseException:
        if lock_is_new:
            # Still held: a process that opened it meanwhile sees that the file was deleted, and makes another.
            with suppress(OSError):
                lock_file.unlink(missing_ok=True)
        raise
    finally:
        lock.give_back()


def _swap(path: Path, draft: Path, lock: SqliteDispatchLock, mark: HighWaterMark, now: datetime) -> Path | None:
    """Put the draft in a database's place and keep the old one; undo everything if a step fails.

    No log or journal lies beside a file that it does not belong to, even if the machine stops in between.
    """
    noted = lock.high_water()
    kept = free_name(sibling_path(path, f".before-restore-{now:%Y%m%dT%H%M%SZ}"))
    replaces = path.exists()
    undo: list[tuple[Path, Path]] = []
    if replaces:
        # A hard link: the first name stays until it is replaced.
        os.link(path, kept)
    try:
        # A log whose database is gone may hold the only copy of its last commits. A killed migration leaves a journal,
        # with which the next process that opens the kept database takes the migration back.
        for ending in _PENDING:
            if (pending := sibling_path(path, ending)).exists():
                kept_pending = sibling_path(kept, ending)
                os.replace(pending, kept_pending)
                undo.append((kept_pending, pending))
        # The next process that opens the database rebuilds it from the log.
        sibling_path(path, "-shm").unlink(missing_ok=True)
        # Written first: a needless quarantine is safe, a missing one is not.
        lock.record_high_water(
            attrs.evolve(mark, epoch=max(mark.epoch, noted.epoch if noted is not None else 0)), ended=True
        )
        # The mark says it: the restored database lacks commits.
        sibling_path(path, ".dispatch-position").unlink(missing_ok=True)
        _give_to_owner(path, draft)
        os.replace(draft, path)
    except BaseException:
        for now_at, was_at in undo:
            os.replace(now_at, was_at)
        with suppress(StorageError, OSError):
            sibling_path(path, ".dispatch-note.new").unlink(missing_ok=True)
            if noted is None:
                sibling_path(path, ".dispatch-note").unlink(missing_ok=True)
            else:
                lock.record_high_water(noted)
            _give_to_owner(path)
        if replaces:
            kept.unlink(missing_ok=True)
        raise
    sync(path.parent)
    if replaces:
        return kept
    return undo[0][0] if undo else None


def _give_to_owner(path: Path, *drafts: Path) -> None:
    """Give the files that a restore has made to the owner of the database."""
    for file in (sibling_path(path, ".dispatch"), sibling_path(path, ".dispatch-note"), *drafts):
        if file.exists():
            give_to_owner(file, path)


def free_name(path: Path) -> Path:
    """Return a free path for a database, its log and its journal: this one, or this one with a number."""
    names = itertools.chain([path], (sibling_path(path, f"-{number}") for number in itertools.count(2)))
    return next(name for name in names if not any(sibling_path(name, ending).exists() for ending in ("", *_PENDING)))
