"""Database maintenance by URL: back up, check, migrate, restore. A public module; its functions block."""

from __future__ import annotations

from outreach.models.database import Backup, DatabaseCheck, Restore
from outreach.storage.maintenance import backup_database, check_database, migrate_database, restore_database
from outreach.storage.opening import shown_url

__all__ = [
    "Backup",
    "DatabaseCheck",
    "Restore",
    "backup_database",
    "check_database",
    "migrate_database",
    "restore_database",
    "shown_url",
]
