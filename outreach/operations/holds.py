"""Recipients that the workspace's rules of contact put off, and what becomes of them when the rules change."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.trail import Rule
from outreach.models.work import Run
from outreach.models.workspace import Workspace
from outreach.operations import clock_steps
from outreach.operations.recipients import put_recipient
from outreach.working_set import Transaction

CONTACT_HOURS: Final = "contact_hours"
FREQUENCY_CAP: Final = "frequency_cap"


def rules_of(workspace: Workspace) -> str:
    """Return the rules by which a workspace puts recipients off, as one text to compare."""
    return f"{CONTACT_HOURS}={workspace.contact_hours} {FREQUENCY_CAP}={workspace.frequency_cap}"


def are_outdated(run: Run | None, workspace: Workspace) -> bool:
    """Return whether recipients may wait under rules that have changed since they were put off."""
    return run is not None and run.held_under is not None and run.held_under != rules_of(workspace)


def release(
    tx: Transaction, workspace_id: str, campaign_id: str, *, receipt: timedelta, now: datetime, limit: int
) -> None:
    """Make a slice of those that wait under outdated rules due again; the rules of now decide about them then.

    The campaign stays outdated until nobody is left. What waits for another reason keeps its time, unless that was
    noted by a clock that has been set back since.

    Args:
        tx: The transaction.
        workspace_id: Whose campaign.
        campaign_id: Which.
        receipt: How long a receipt is waited for.
        now: The present moment.
        limit: How many recipients at the most.
    """
    run, workspace = tx.runs.get(workspace_id, campaign_id), tx.workspaces.get(workspace_id)
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if run is None or workspace is None or campaign is None or not are_outdated(run, workspace):
        return
    left = limit
    back = clock_steps.noted(run)
    if back is not None:
        for before, after in clock_steps.retime(tx, campaign, back, receipt=receipt, now=now, limit=limit):
            put_recipient(tx, workspace_id, before, after, rule=Rule.DEFERRAL, now=now)
            left -= 1
    for reason in (CONTACT_HOURS, FREQUENCY_CAP):
        for recipient in tx.recipients.put_off(workspace_id, campaign_id, reason, now, limit=left):
            put_recipient(tx, workspace_id, recipient, attrs.evolve(recipient, due_at=now), rule=Rule(reason), now=now)
            left -= 1
    if left:
        tx.runs.put(attrs.evolve(run, held_under=rules_of(workspace)))
