"""What is older than its workspace keeps: erased slice by slice, the oldest first."""

from __future__ import annotations

from datetime import datetime, timedelta

from outreach.models.campaign_report import CampaignReport
from outreach.operations.campaigns.reporting import report_of
from outreach.operations.common import campaign_of
from outreach.operations.erasure.campaigns import erase_slice
from outreach.working_set import Transaction


def due_report(tx: Transaction, workspace_id: str | None, *, now: datetime) -> CampaignReport | None:
    """Return the report of the next campaign to erase, of a workspace or all; None if none is due."""
    found = tx.erasures.due_campaign(workspace_id, now=now)
    return None if found is None else report_of(tx, campaign_of(tx, *found), now)


def retention_slice(tx: Transaction, workspace_id: str | None, *, salt: str, now: datetime, limit: int) -> bool:
    """Erase one slice of what is due, besides whole campaigns; return whether there was anything.

    Args:
        tx: The transaction.
        workspace_id: One workspace; None for all.
        salt: For the first hash of a workspace's register.
        now: The time of the commit.
        limit: Rows of each kind.
    """
    if erase_slice(tx, workspace_id, limit=limit):
        return True
    return any(
        _erase_rows(tx, owner, now - timedelta(days=days), salt=salt, limit=limit)
        for owner, days in tx.erasures.with_retention(workspace_id)
    )


def _erase_rows(tx: Transaction, workspace_id: str, before: datetime, *, salt: str, limit: int) -> bool:
    """Erase a slice of a workspace's single messages, calls, events and register."""
    erased = tx.erasures.erase_old_singles(workspace_id, before, limit=limit)
    erased += tx.erasures.delete_old_events(workspace_id, before, limit=limit)
    entries = tx.register.numbers_before(workspace_id, before, limit=limit)
    for entry in entries:
        tx.register.hash_number(entry, salt=salt)
    return bool(erased or entries)
