"""The pace of campaigns and single messages: that of a sending number, the frequency cap, and how late they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.ledger.common import campaign_unit, workspace_of
from outreach.ledger.leases.clock_steps import latest_time
from outreach.ledger.provider_throttles import throttle_of_campaign
from outreach.models.campaign import Campaign
from outreach.models.plans import SenderPace, SenderPaces
from outreach.models.resources import Number
from outreach.models.states import WorkspaceStatus
from outreach.models.work import WorkUnit
from outreach.rules.deciding import next_slot, spacing
from outreach.rules.opening import opening_state
from outreach.rules.phones import normalise_single
from outreach.rules.spellings import spellings
from outreach.storage.unit_of_work import Transaction

FREQUENCY_WINDOW: Final = timedelta(hours=24)

CAP_RECHECK_AFTER: Final = timedelta(minutes=1)
"""How soon a capped number is checked again while a request in flight may turn out not to count."""

NO_LAG: Final = 0.0


def sender_paces(tx: Transaction, campaign: Campaign, now: datetime) -> SenderPaces:
    """Return the paces of the numbers that a campaign sends from, by the numbers as the campaign has them."""
    return {one: pace_of_number(tx, campaign.workspace_id, one, now) for one in _senders(campaign)}


def _senders(campaign: Campaign) -> Sequence[str]:
    return campaign.senders if campaign.channel == "sms" else ()


def prefetch_sender_paces(tx: Transaction, campaigns: Iterable[Campaign]) -> None:
    """Read the numbers that campaigns send from, in one go."""
    phones = (
        (campaign.workspace_id, _phone(tx, campaign.workspace_id, one))
        for campaign in campaigns
        for one in _senders(campaign)
    )
    wanted = [(workspace_id, phone) for workspace_id, phone in phones if phone is not None]
    tx.numbers.prefetch_by_phone((workspace_id, form) for workspace_id, phone in wanted for form in spellings(phone))
    tx.runs.prefetch_sender_slots(
        (number.workspace_id, number.phone)
        for key in wanted
        if (number := tx.numbers.of_line(*key)) is not None and number.rate_per_minute is not None
    )


def pace_of_number(tx: Transaction, workspace_id: str, written: str | None, now: datetime) -> SenderPace | None:
    """Return the pace of a sending number in any notation; None if it has none."""
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
    return tx.numbers.of_line(workspace_id, phone) if phone is not None else None


def _phone(tx: Transaction, workspace_id: str, written: str) -> str | None:
    # Campaigns keep the number as supplied, and all its notations share one pace.
    workspace = tx.workspaces.get(workspace_id)
    return normalise_single(written, workspace.default_region if workspace else None)


def frequency_capped_until(tx: Transaction, workspace_id: str, phone: str, now: datetime) -> datetime | None:
    """Return when the frequency cap next allows contacting a number; None if it does now."""
    workspace = tx.workspaces.get(workspace_id)
    cap = workspace.frequency_cap if workspace is not None else None
    if cap is None:
        return None
    known = tx.dispatches.sent_to(workspace_id, phone, since=now - FREQUENCY_WINDOW)
    # One from before the clock was set back counts as made when that was noticed, not until its time comes again.
    made = sorted((latest_time(tx, one.at, now), one.in_flight) for one in known)
    # Half-open: a contact exactly one window ago does not count.
    sent = [one for one in made if one[0] > now - FREQUENCY_WINDOW]
    if len(sent) < cap:
        return None
    until = sent[-cap][0] + FREQUENCY_WINDOW
    # A request in flight may reach nobody and then not count.
    return min(until, now + CAP_RECHECK_AFTER) if any(in_flight for _, in_flight in sent[-cap:]) else until


def lag_of_campaign(tx: Transaction, campaign: Campaign, now: datetime) -> float:
    """Return for how many seconds an active campaign could have begun its next contact; 0 while it has to wait."""
    workspace_id = campaign.workspace_id
    if workspace_of(tx, workspace_id).status is not WorkspaceStatus.ACTIVE or not opening_state(campaign, now).open:
        return NO_LAG
    if throttle_of_campaign(tx, campaign, now) is not None:
        return NO_LAG
    if campaign.channel == "call" and tx.recipients.in_flight(workspace_id, campaign.id) >= campaign.batch_concurrency:
        return NO_LAG
    since = _due_since(tx, campaign, now)
    if since is None:
        return NO_LAG
    run = tx.runs.get(workspace_id, campaign.id)
    work = tx.work.get(WorkUnit(*campaign_unit(campaign)))
    latest = tx.dispatches.recent(workspace_id, campaign.id, since=campaign.created_at, limit=1)
    paces = sender_paces(tx, campaign, now).values()
    slots = [None if pace is None else tx.runs.sender_slot(workspace_id, pace.phone) for pace in paces]
    taken = [slot for slot in slots if slot is not None]
    moments = [
        since,
        run.next_slot_at if run is not None else None,
        work.due_at if work is not None else None,
        latest[0].created_at if latest else None,
        # Campaigns with one sending number take turns; of a pool the first number that is free counts.
        min(taken, default=None) if len(taken) == len(slots) else None,
    ]
    return max((now - max(moment for moment in moments if moment is not None)).total_seconds(), NO_LAG)


def lag_of_singles(tx: Transaction, workspace_id: str | None, now: datetime) -> float:
    """Return for how many seconds the oldest single message or call that is due has waited to be sent."""
    due_at = tx.work.oldest_single(workspace_id, now)
    return NO_LAG if due_at is None else max((now - due_at).total_seconds(), NO_LAG)


def _due_since(tx: Transaction, campaign: Campaign, now: datetime) -> datetime | None:
    """Return since when at the latest a contact could be begun; None if none can."""
    # The counter of those that were never attempted has those, too, that wait for their hours or for a person.
    due = tx.recipients.due(campaign.workspace_id, campaign.id, now, limit=1)
    return due[0].due_at or campaign.started_at or campaign.created_at if due else None
