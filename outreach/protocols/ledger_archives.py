"""The hook for ledger archives: files that hold contacts and requests of ended campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from outreach.models.archive import Archive, ArchivedErasure, ListedArchive
    from outreach.storage.unit_of_work.transaction import Transaction


class LedgerArchives(Protocol):
    """Reads and erases in the files that the table `archives` names; all functions block on the disk."""

    def ledger_of(self, tx: Transaction, workspace_id: str, campaign_id: str) -> AbstractContextManager[Transaction]:
        """Return the tables of a transaction, with the contacts, requests, calls and trail of a campaign.

        Args:
            tx: A transaction that reads.
            workspace_id: The workspace.
            campaign_id: The campaign; one that is in no archive is read in the database.

        Raises:
            ArchiveUnavailable: They are in an archive that cannot be read; the message names it.
        """
        ...

    def list_archives(self, tx: Transaction, workspace_id: str | None) -> Sequence[ListedArchive]:
        """Return the archives that hold something of a workspace, or all, with what is wrong with each."""
        ...

    def erase_campaign(self, one: ArchivedErasure) -> None:
        """Take numbers, names and texts of a campaign out of its archive; what is counted stays.

        Raises:
            ArchiveUnavailable: The archive is not there, or cannot be written.
        """
        ...

    def erase_person(
        self, archives: Sequence[Archive], workspace_id: str, phone: str, *, name: str
    ) -> Mapping[str, int]:
        """Put a name in the place of a number in all of these archives, or in none.

        Returns:
            How many `contacts` and `calls` were the person's, in all together.

        Raises:
            ArchiveUnavailable: One is not there, or cannot be written.
        """
        ...
