"""Archives of ended campaigns: files that are read and erased in, whatever the database is.

All functions block on the disk: call them in a thread if an event loop runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from outreach.models.archive import Archive, ArchivedErasure
from outreach.working_set import Transaction


def read_archive(file: str, identity: str) -> AbstractContextManager[Transaction]:
    """Open an archive for reading, as one snapshot.

    Raises:
        ArchiveUnavailable: It is not there, is another file, or needs a migration; the message says what to do.
    """
    from outreach.storage.sqlite import archive_file

    return archive_file.read_archive(file, identity)


def erase_campaign(one: ArchivedErasure) -> None:
    """Take numbers, names and texts of a campaign out of its archive, slice by slice; what is counted stays.

    Raises:
        ArchiveUnavailable: The archive is not there, or cannot be written.
    """
    from outreach.storage.sqlite import archive_erasing

    archive_erasing.erase_campaign(one)


def require_writable(archives: Sequence[Archive]) -> None:
    """Raise `ArchiveUnavailable` if one of these archives cannot be written now."""
    from outreach.storage.sqlite import archive_erasing

    with archive_erasing.opened_archives(archives):
        pass


def erase_person(archives: Sequence[Archive], workspace_id: str, phone: str, *, name: str) -> Mapping[str, int]:
    """Put a name in the place of a number in all of these archives, or in none.

    Returns:
        How many contacts and calls were the person's, in all together.

    Raises:
        ArchiveUnavailable: One is not there, or cannot be written.
    """
    from outreach.storage.sqlite import archive_erasing

    total = {"contacts": 0, "calls": 0}
    with archive_erasing.opened_archives(archives) as opened:
        for raw in opened:
            found = archive_erasing.erase_person(raw, workspace_id, phone, name=name)
            total = {what: count + found[what] for what, count in total.items()}
    return total
