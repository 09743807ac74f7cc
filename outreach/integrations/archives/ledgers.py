"""The archives of ledgers, for the core: `outreach.protocols.ledger_archives.LedgerArchives`, in functions.

A campaign whose contacts and requests are in an archive is read as if they were in the database. The code for files is
imported with the first of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from outreach.errors import ArchiveUnavailable
from outreach.models.archive import Archive, ArchivedErasure, ListedArchive
from outreach.models.states import TrailEntry
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.campaigns import Trail
from outreach.storage.unit_of_work.tables.reports import Reports


@contextmanager
def ledger_of(tx: Transaction, workspace_id: str, campaign_id: str) -> Iterator[Transaction]:
    """Return the tables in which a campaign's contacts, requests, calls and trail are found; the others are the same.

    Args:
        tx: A transaction that reads.
        workspace_id: The workspace.
        campaign_id: The campaign; one that is not there is looked for in the database.

    Raises:
        ArchiveUnavailable: They are in an archive that cannot be read; the message names it.
    """
    place = tx.archives.of_campaign(workspace_id, campaign_id)
    if place is None or not place.is_read_there:
        yield tx
        return
    from outreach.integrations.archives.files import read_archive

    with read_archive(place.file, place.archive_id) as archive:
        if archive.campaigns.get(workspace_id, campaign_id) is None:
            raise ArchiveUnavailable(
                f"The archive {place.file} does not hold campaign {campaign_id}: it is an older copy of the archive. "
                "Put the latest one there."
            )
        yield _ArchivedLedger(tx, archive)


def list_archives(tx: Transaction, workspace_id: str | None) -> Sequence[ListedArchive]:
    """Return the archives that hold something of a workspace, or all, with what is wrong with each."""
    return [_listed(one) for one in tx.archives.list(workspace_id)]


def erase_campaign(one: ArchivedErasure) -> None:
    """Take numbers, names and texts of a campaign out of its archive, slice by slice; the counts stay.

    Raises:
        ArchiveUnavailable: The archive is not there, or cannot be written.
    """
    from outreach.integrations.archives import erasing

    erasing.erase_campaign(one)


def erase_person(archives: Sequence[Archive], workspace_id: str, phone: str, *, name: str) -> Mapping[str, int]:
    """Put a name in the place of a number in all of these archives, or in none.

    Returns:
        How many contacts and calls were the person's, in all together.

    Raises:
        ArchiveUnavailable: One is not there, or cannot be written.
    """
    from outreach.integrations.archives import erasing

    total = {"contacts": 0, "calls": 0}
    with erasing.opened_archives(archives) as opened:
        for raw in opened:
            found = erasing.erase_person(raw, workspace_id, phone, name=name)
            total = {what: count + found[what] for what, count in total.items()}
    return total


def _listed(archive: Archive) -> ListedArchive:
    from outreach.integrations.archives.files import read_archive

    try:
        with read_archive(archive.file, archive.id):
            return ListedArchive(archive=archive, problem=None)
    except ArchiveUnavailable as error:
        return ListedArchive(archive=archive, problem=error.message, command=error.command)


class _ArchivedLedger(Transaction):
    """The tables of a database, with those of one campaign's ledger from an archive."""

    def __init__(self, tx: Transaction, archive: Transaction) -> None:
        # Rows that belong to no campaign stay in the database.
        self.__dict__.update(tx.__dict__)
        self.recipients = archive.recipients
        self.dispatches = archive.dispatches
        self.calls = archive.calls
        self.trail = _ArchivedTrail(tx.trail, archive.trail)
        self.reports = _ArchivedReports(archive.reports)


class _ArchivedTrail(Trail):
    """The trail, with the entries of a campaign from its archive."""

    def __init__(self, trail: Trail, archive: Trail) -> None:
        super().__init__(trail._rows)
        self._archive = archive

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[TrailEntry]:
        """Return the entries of one recipient, by number."""
        return self._archive.of_recipient(workspace_id, campaign_id, position)

    def of_campaign(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[TrailEntry]:
        """Return the latest entries of a campaign itself, by number; the latest of all are not in the archive."""
        archived = self._archive.of_campaign(workspace_id, campaign_id, limit=limit)
        later = super().of_campaign(workspace_id, campaign_id, limit=limit)
        found = {entry.number: entry for entry in (*archived, *later)}
        return [found[number] for number in sorted(found)][-limit:]


class _ArchivedReports(Reports):
    """The data that an export reads from an archive: it holds the replies and opt-outs that belong to its campaigns."""

    def __init__(self, archive: Reports) -> None:
        super().__init__(archive._rows)

    def replies_of(
        self, workspace_id: str, campaign_id: str, phones: Collection[str], since: datetime, until: datetime
    ) -> Mapping[str, Sequence[tuple[datetime, str]]]:
        """Return the time and text of each number's messages that belong to a campaign, by time."""
        return self.archived_replies_of(workspace_id, campaign_id, phones)

    def opt_outs_of(
        self, workspace_id: str, campaign_id: str, phones: Collection[str], since: datetime, until: datetime
    ) -> Mapping[str, datetime]:
        """Return when each of the numbers opted out."""
        return self.archived_opt_outs_of(workspace_id, campaign_id, phones)
