"""Campaigns whose contacts and requests are in files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outreach.clock import parse_timestamp
from outreach.models.archive import Archive, ArchivedCampaign, ArchivedErasure
from outreach.working_set.tables.base import Table

_LIMIT: Final = 1000


class Archives(Table):
    """Which campaigns are archived, and where; `operations.archives.moving` writes it."""

    def of_campaign(self, workspace_id: str, campaign_id: str) -> ArchivedCampaign | None:
        """Return where the ledger of a campaign is; None while it is in the database, and no move was begun."""
        rows = self._rows.query("archives.of_campaign", workspace_id=workspace_id, campaign_id=campaign_id)
        if not rows:
            return None
        [[archive_id, file, state, figures]] = rows
        return ArchivedCampaign(archive_id=archive_id, file=file, state=state, figures=figures)

    def list(self, workspace_id: str | None) -> Sequence[Archive]:
        """Return those that hold something of a workspace, or all, by (created_at, id)."""
        rows = self._rows.query("archives.list", workspace_id=workspace_id)
        return [
            Archive(id=identity, file=file, created_at=parse_timestamp(created_at), campaigns=count)
            for identity, file, created_at, count in rows
        ]

    def to_erase(self, workspace_id: str | None) -> Sequence[ArchivedErasure]:
        """Return campaigns of a workspace, or all, that their archives still have to erase, at most 1,000."""
        rows = self._rows.query("archives.to_erase", workspace_id=workspace_id, limit=_LIMIT)
        return [
            ArchivedErasure(workspace_id=owner, campaign_id=campaign_id, number=number, archive_id=identity, file=file)
            for owner, campaign_id, number, identity, file in rows
        ]

    def note_erasure(self, workspace_id: str, campaign_id: str) -> None:
        """Note that the archive of a campaign, if any, has to erase it."""
        self._rows.execute("archives.note_erasure", number=self._rows.number(workspace_id, campaign_id))

    def erased(self, one: ArchivedErasure) -> None:
        """Note that an archive has erased a campaign."""
        self._rows.execute("archives.erased", number=one.number)
