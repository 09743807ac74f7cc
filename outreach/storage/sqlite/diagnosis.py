"""Examining a database file from outside: the file, its directory and disk, its schema and its integrity."""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from outreach.core.clock import SystemClock
from outreach.core.command_lines import pip_commands
from outreach.errors import DatabaseLogDeleted, DatabaseReplaced, Problem, StorageError
from outreach.models.diagnosis import DatabaseCode, database_problem
from outreach.rules.status_findings import FULL_BYTES, LOW_BYTES
from outreach.storage.base.schema import written_by_newer, written_by_older
from outreach.storage.sqlite.copying import integrity_problems, is_archive, is_empty, open_read_only, sibling_path
from outreach.storage.sqlite.errors import is_damage, primary_code
from outreach.storage.sqlite.lock import NETWORK_FILE_SYSTEMS, SqliteDispatchLock, file_system_of, system_mounts
from outreach.storage.sqlite.schema import version_of
from outreach.storage.sqlite.watch import FileWatch

INTEGRITY_SECONDS: Final = 30.0
"""How long reading the whole file may take; `outreach-server db check` takes as long as it needs."""

LARGE_LOG_BYTES: Final = 512 * 1024**2
"""The writer cuts the log to 64 MB: a larger one is kept by a reader with an old snapshot."""

_LOG_ROOM_BYTES: Final = 16 * 1024**2
"""Room for the log of a command that makes a database smaller, beside its copy of the database."""

_CHECK_EVERY: Final = 10_000
"""Steps of SQLite's machine between two looks at the time."""

_REPLACED: Final = re.compile(r"\.before-(compact|restore)-[0-9TZ]+(-[0-9]+)?(-wal|-journal)?")
"""The ending of a database that a compaction or a restore has replaced, and of its log and journal."""

_RESTORE: Final = "outreach-server db restore FILE"
_CHECK: Final = "outreach-server db check"
_SETTINGS: Final = "outreach-server config"


def diagnose_file(path: Path) -> Sequence[Problem]:
    """Return what is wrong with a database file, which may be in use; changes nothing, and never raises for a fault."""
    path = Path(os.path.realpath(path))
    if not path.is_file() or is_empty(path):
        return [_missing(path)]
    found = [*_place(path), *_exposure(path)]
    if any(one.code == "database_not_writable" for one in found) and not os.access(path, os.R_OK):
        return found
    return [*found, *_content(path)]


def _missing(path: Path) -> Problem:
    try:
        _check_log(path)
    except DatabaseReplaced as error:
        return database_problem("database_replaced", error.message, path, _RESTORE)
    create = "outreach-server workspaces create NAME"
    if not path.is_file():
        return database_problem(
            "database_missing", f"There is no database at {str(path)!r}.", path, create, looks=[_SETTINGS]
        )
    words = f"The file {str(path)!r} is empty: there is no database in it. Restore a backup, or make a new one."
    return database_problem("database_missing", words, path, _RESTORE, create, looks=[_SETTINGS])


def _check_log(path: Path) -> None:
    """Raise `DatabaseReplaced` where the log is another file's."""
    SqliteDispatchLock(path, watch=FileWatch(path, clock=SystemClock())).check_before_opening()


def _place(path: Path) -> Iterator[Problem]:
    user = "$(id -un)"
    access = [(path, os.R_OK | os.W_OK, "u+rw"), (path.parent, os.W_OK | os.X_OK, "u+rwx")]
    # A command of another user, such as root, may have left them, and a server that may not write one sends nothing.
    access += [(file, os.R_OK | os.W_OK, "u+rw") for file in _files_beside(path)]
    for needed, mode, options in access:
        # A server that ends meanwhile deletes its log.
        if not os.access(needed, mode) and os.path.lexists(needed):
            quoted = shlex.quote(str(needed))
            yield database_problem(
                "database_not_writable",
                f"This user may not write {str(needed)!r}. A server writes the database, and the files beside it.",
                needed,
                f"sudo chown {user} {quoted}",
                f"chmod {options} {quoted}",
            )
    kind = file_system_of(path, system_mounts())
    if kind in NETWORK_FILE_SYSTEMS:
        yield database_problem(
            "network_file_system",
            f"The database is on a network file system ({kind}), where two machines could dispatch at once: nothing is "
            "sent from it.",
            path,
            "outreach-server db copy sqlite:////var/lib/outreach/outreach.db",
        )
    free = shutil.disk_usage(path.parent).free
    if free < LOW_BYTES:
        replaced = [file for file in path.parent.iterdir() if _REPLACED.fullmatch(file.name.removeprefix(path.name))]
        size = sum(file.stat().st_size for file in replaced) / 1024**2
        room = path.stat().st_size + _LOG_ROOM_BYTES
        has_room = free >= room
        yield database_problem(
            "disk_low",
            f"Only {free / 1024**2:,.0f} MB are free on the disk of {str(path)!r}: on a full disk nothing is sent. "
            f"{f'Databases that were replaced take {size:,.0f} MB, and can be deleted. ' if replaced else ''}"
            "Old backups and exports on this disk can be deleted too; never the files whose names are the database's "
            f"and -wal, -shm or .dispatch. {'' if has_room else 'Or move other files away, or enlarge the disk. '}"
            "What retention erases, for good, makes room after `db compact`, with the server stopped"
            f"{'' if has_room else f': both can run once {room // 1024**2 + 1:,} MB are free'}.",
            path.parent,
            *(f"rm {shlex.quote(str(file))}" for file in sorted(replaced)),
            *(["outreach-server retention run", "outreach-server db compact --delete-old"] if has_room else []),
            looks=[f"df -h {shlex.quote(str(path.parent))}", f"ls -lhS {shlex.quote(str(path.parent))}"],
            severity="critical" if free < FULL_BYTES else "warning",
        )
    log = sibling_path(path, "-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > LARGE_LOG_BYTES:
        yield database_problem(
            "log_large",
            f"The log beside the database has {size / 1024**2:,.0f} MB: some process reads from an old snapshot, and "
            "the log cannot be cut until that one ends.",
            log,
            looks=[f"fuser -v {shlex.quote(str(log))}"],
            severity="warning",
        )


def _files_beside(path: Path) -> Sequence[Path]:
    """Return the log, its index, the dispatch locks and the notes, as far as they are there."""
    endings = ("-wal", "-shm", ".dispatch", ".dispatch.[0-9]*", ".dispatch-note", ".dispatch-position")
    return [file for ending in endings for file in sorted(path.parent.glob(glob.escape(path.name) + ending))]


def _exposure(path: Path) -> Iterator[Problem]:
    directory = path.parent.stat().st_mode
    quoted = shlex.quote(str(path.parent))
    if directory & (stat.S_IWGRP | stat.S_IWOTH) and not directory & stat.S_ISVTX:
        yield database_problem(
            "directory_exposed",
            f"Others may write the directory {str(path.parent)!r}, and so put another file in the database's place.",
            path.parent,
            f"chmod go-w {quoted}",
            severity="warning",
        )
    others = stat.S_IROTH | stat.S_IWOTH
    if path.stat().st_mode & others and directory & stat.S_IXOTH:
        yield database_problem(
            "database_exposed",
            f"Everybody on this machine may read the database {str(path)!r}: numbers, names and texts.",
            path,
            f"chmod o-rwx {shlex.quote(str(path))}*",
            severity="warning",
        )


def _content(path: Path) -> Iterator[Problem]:
    """Look into the file; what cannot be looked into is a finding."""
    try:
        _check_log(path)
    except DatabaseLogDeleted as error:
        yield database_problem(
            "database_log_deleted", error.message, path, looks=[f"fuser -v {shlex.quote(str(path))}"]
        )
        return
    except DatabaseReplaced as error:
        yield database_problem("database_replaced", error.message, path, _RESTORE)
        return
    try:
        with open_read_only(path) as raw:
            problems, complete = _integrity(raw)
            if problems:
                words = f"The database is damaged: {problems[0]}. Stop the server, and restore a backup."
                yield database_problem("database_damaged", words, path, _RESTORE, looks=[_CHECK])
                return
            if not complete:
                yield database_problem(
                    "integrity_not_checked",
                    f"The database is too large to be read within {INTEGRITY_SECONDS:g} s, so that its integrity was "
                    "not checked to the end.",
                    path,
                    looks=[_CHECK],
                    severity="info",
                )
            yield from _version(raw, path)
    except StorageError as error:
        damaged = isinstance(error.__cause__, sqlite3.DatabaseError) and is_damage(error.__cause__)
        code: DatabaseCode = "database_damaged" if damaged else "database_not_usable"
        yield database_problem(code, error.message, path, _RESTORE, looks=[_CHECK])


def _version(raw: sqlite3.Connection, path: Path) -> Iterator[Problem]:
    version = version_of(raw)
    if is_archive(raw):
        yield database_problem(
            "database_foreign",
            f"The file {str(path)!r} is an archive of ended campaigns, and no database to work with. Name the database "
            "that it was made from.",
            path,
            looks=[_SETTINGS],
        )
    elif version.is_foreign:
        yield database_problem(
            "database_foreign",
            f"The file {str(path)!r} holds the tables of something else.",
            path,
            looks=[_SETTINGS],
        )
    elif version.newer:
        yield database_problem(
            "database_newer",
            written_by_newer("The database", version),
            path,
            *pip_commands("install", "--upgrade", "outreach"),
            looks=["outreach-server --version"],
        )
    elif version.pending_migrations:
        yield database_problem(
            "database_older",
            f"{written_by_older('The database', version)} Stop every server that uses it, and migrate it.",
            path,
            "outreach-server db backup FILE",
            "outreach-server db migrate",
        )


def _integrity(raw: sqlite3.Connection) -> tuple[Sequence[str], bool]:
    """Return the problems of the stored data, and whether everything was read in time."""
    # Real seconds: reading takes them.
    until = time.monotonic() + INTEGRITY_SECONDS
    raw.set_progress_handler(lambda: int(time.monotonic() > until), _CHECK_EVERY)
    try:
        return integrity_problems(raw, quick=True), True
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return [], False
    finally:
        raw.set_progress_handler(None, 0)
