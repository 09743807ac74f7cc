"""Maintenance of a database by its URL. A public module; its functions block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from outreach.models.database import Backup, Compaction, DatabaseCheck, DatabaseCopy, Restore
from outreach.plugins import dispatcher_plugin
from outreach.storage import maintenance
from outreach.storage.maintenance import backup_database, compact_database, diagnose_database, restore_database
from outreach.storage.opening import copy_database, reclaim_database, shown_url

__all__ = [
    "Backup",
    "Compaction",
    "DatabaseCheck",
    "DatabaseCopy",
    "Restore",
    "backup_database",
    "check_database",
    "compact_database",
    "copy_database",
    "diagnose_database",
    "migrate_database",
    "reclaim_database",
    "restore_database",
    "shown_url",
]


def check_database(url: str, *, quick: bool = False, dispatcher: str = "in_process") -> DatabaseCheck:
    """Check a database or archive, which may be in use, by reading all of it.

    Args:
        url: The database.
        quick: Skip indexes and references of a file, and the rows of PostgreSQL, which is several times as fast.
        dispatcher: What drives the work; `procrastinate` has tables of its own, which may be missing.

    Raises:
        ConfigError: The URL names no file and no PostgreSQL database, or there is no such dispatcher for it.
        DatabaseMissing: There is no database.
        DatabaseNewer: A newer version of Procrastinate has made its tables.
        StorageError: It cannot be read at all.
    """
    found = maintenance.check_database(url, quick=quick)
    plugin = dispatcher_plugin(dispatcher)
    if plugin is None:
        return found
    return attrs.evolve(found, pending_migrations=[*found.pending_migrations, *plugin.pending_steps(url)])


def migrate_database(
    url: str, *, dispatcher: str = "in_process", on_progress: Callable[[str], None] | None = None
) -> Sequence[str]:
    """Migrate a database or archive that no process has open; return the names of the applied migrations.

    Until it succeeds a backup lies beside a file (`outreach.db.before-migration`); PostgreSQL takes one transaction,
    and one more for the tables of a dispatcher.

    Args:
        url: The database.
        dispatcher: What drives the work: the tables of `procrastinate` are made, or brought up to date.
        on_progress: Receives a sentence about the progress every 2 s; None logs them.

    Raises:
        ConfigError: The URL names no file and no PostgreSQL database, or there is no such dispatcher for it.
        DatabaseMissing: There is no database.
        DatabaseNewer: A newer version of this package, or of Procrastinate, wrote it; nothing was changed.
        DatabaseInUse: A process has it open; nothing was changed.
        StorageError: It is unusable or damaged, or there is no room for the backup; nothing was changed.
    """
    plugin = dispatcher_plugin(dispatcher)
    if plugin is None:
        return maintenance.migrate_database(url, on_progress=on_progress)
    plugin.conninfo_of(url)
    return [*maintenance.migrate_database(url, on_progress=on_progress), *plugin.install(url)]
