"""Recipients postponed by contact rules, and their release when the rules change."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from outreach.models.trail import TrailRule
from outreach.operations.campaigns.recipients import put_recipient
from outreach.operations.waves import clock_steps
from outreach.policy.contact_hours import CONTACT_HOURS, FREQUENCY_CAP, are_contact_rules_outdated, contact_rules_key
from outreach.working_set import Transaction


def release_postponed(
    tx: Transaction, workspace_id: str, campaign_id: str, *, receipt: timedelta, now: datetime, limit: int
) -> None:
    """Make a slice of the recipients postponed under outdated contact rules due now.

    The run stays outdated until none is left. Other waits keep their time unless a clock step changed it (`receipt` is
    the longest wait for a receipt).
    """
    run, workspace = tx.runs.get(workspace_id, campaign_id), tx.workspaces.get(workspace_id)
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if run is None or workspace is None or campaign is None or not are_contact_rules_outdated(run, workspace):
        return
    left = limit
    back = clock_steps.recorded_setback(run)
    if back is not None:
        for before, after in clock_steps.shorten_waits(tx, campaign, back, receipt=receipt, now=now, limit=limit):
            put_recipient(tx, workspace_id, before, after, rule=TrailRule.DEFERRAL, now=now)
            left -= 1
    for reason in (CONTACT_HOURS, FREQUENCY_CAP):
        for recipient in tx.recipients.postponed(workspace_id, campaign_id, reason, now, limit=left):
            put_recipient(
                tx, workspace_id, recipient, attrs.evolve(recipient, due_at=now), rule=TrailRule(reason), now=now
            )
            left -= 1
    if left:
        tx.runs.put(attrs.evolve(run, postponed_under=contact_rules_key(workspace)))
