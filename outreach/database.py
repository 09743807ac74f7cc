"""Maintenance of a database by its URL. A public module; its functions block."""

from __future__ import annotations

from outreach.models.database import Backup, Compaction, DatabaseCheck, DatabaseCopy, Restore
from outreach.storage.copying import copy_database
from outreach.storage.maintenance import (
    backup_database,
    check_database,
    compact_database,
    diagnose_database,
    migrate_database,
    restore_database,
)
from outreach.storage.opening import shown_url

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
    "restore_database",
    "shown_url",
]
