"""Ledger archives: contacts and requests of ended campaigns in SQLite files of their own. A public module.

A campaign in a ledger archive is not hidden, and one that `campaigns archive` hides is in no such file.
"""

from __future__ import annotations

from outreach.integrations.archives.by_url import archive_ledgers, list_archives, move_archive
from outreach.models.archive import Archive, ArchiveResult, ListedArchive

__all__ = ["Archive", "ArchiveResult", "ListedArchive", "archive_ledgers", "list_archives", "move_archive"]
