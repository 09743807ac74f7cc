"""Maintenance of a database by its URL. A public module; its functions block."""

from __future__ import annotations

from outreach.models.archive import Archive, ArchiveResult, ListedArchive
from outreach.models.database import Backup, Compaction, DatabaseCheck, DatabaseCopy, Restore
from outreach.operations.archives.by_url import archive_campaigns, list_archives, move_archive
from outreach.storage.copying import copy_database
from outreach.storage.maintenance import (
    backup_database,
    check_database,
    compact_database,
    migrate_database,
    restore_database,
)
from outreach.storage.opening import shown_url

__all__ = [
    "Archive",
    "ArchiveResult",
    "Backup",
    "Compaction",
    "DatabaseCheck",
    "DatabaseCopy",
    "ListedArchive",
    "Restore",
    "archive_campaigns",
    "backup_database",
    "check_database",
    "compact_database",
    "copy_database",
    "list_archives",
    "migrate_database",
    "move_archive",
    "restore_database",
    "shown_url",
]
