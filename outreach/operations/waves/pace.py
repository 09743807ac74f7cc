"""What campaigns and single messages share: the pace of a sending number, and how often a person is contacted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from outreach.models.campaign import Campaign
from outreach.models.plans import SenderPace
from outreach.models.resources import Number
from outreach.policy.pacing import next_slot, spacing
from outreach.policy.phones import normalise
from outreach.working_set import Transaction

FREQUENCY_WINDOW: Final = timedelta(hours=24)

CAP_RECHECK_AFTER: Final = timedelta(minutes=1)
"""How long the cap holds at first where a request decides that is under way: by then it is known or in doubt."""


def sender_pace(tx: Transaction, campaign: Campaign, now: datetime) -> SenderPace | None:
    """Return the pace of the number that a campaign sends from; None when it has none of its own."""
    if campaign.channel != "sms":
        return None
    return pace_of_number(tx, campaign.workspace_id, campaign.from_number, now)


def prefetch_sender_paces(tx: Transaction, campaigns: Iterable[Campaign]) -> None:
    """Read the numbers that campaigns send from, all at once."""
    phones = (
        (campaign.workspace_id, _phone(tx, campaign.workspace_id, campaign.from_number))
        for campaign in campaigns
        if campaign.channel == "sms" and campaign.from_number is not None
    )
    tx.numbers.prefetch_by_phone((workspace_id, phone) for workspace_id, phone in phones if phone is not None)


def pace_of_number(tx: Transaction, workspace_id: str, written: str | None, now: datetime) -> SenderPace | None:
    """Return the pace of a sending number, however it is spelled; None when it has none of its own."""
    number = _number(tx, workspace_id, written) if written is not None else None
    if number is None or number.rate_per_minute is None:
        return None
    apart = spacing(number.rate_per_minute)
    return SenderPace(
        workspace_id=workspace_id,
        phone=number.phone,
        spacing=apart,
        next_slot_at=next_slot(tx.runs.sender_slot(workspace_id, number.phone), now, apart),
    )


def _number(tx: Transaction, workspace_id: str, written: str) -> Number | None:
    phone = _phone(tx, workspace_id, written)
    return tx.numbers.by_phone(workspace_id, phone) if phone is not None else None


def _phone(tx: Transaction, workspace_id: str, written: str) -> str | None:
    # Campaigns keep the number as it was written; two spellings of it share one pace.
    workspace = tx.workspaces.get(workspace_id)
    return normalise(written, workspace.default_region if workspace else None)


def frequency_capped_until(tx: Transaction, workspace_id: str, phone: str, now: datetime) -> datetime | None:
    """Return when a number may be contacted again under the workspace's frequency cap; None when it may be now."""
    workspace = tx.workspaces.get(workspace_id)
    cap = workspace.frequency_cap if workspace is not None else None
    if cap is None:
        return None
    # Half-open: what lies exactly a window back is out of it.
    sent = [
        one
        for one in tx.dispatches.sent_to(workspace_id, phone, since=now - FREQUENCY_WINDOW)
        if one.at > now - FREQUENCY_WINDOW
    ]
    if len(sent) < cap:
        return None
    # What was sent before the clock was set back lies ahead, and holds nobody for longer than what is sent now.
    until = min(sent[-cap].at, now) + FREQUENCY_WINDOW
    # One that turns out to have reached nobody does not count: who waits for it all day may be reached by nobody.
    return min(until, now + CAP_RECHECK_AFTER) if any(one.in_flight for one in sent[-cap:]) else until
