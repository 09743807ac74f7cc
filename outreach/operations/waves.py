"""Intents of SMS campaigns: what to send next, and committing it under every check again (design, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import LeaseLost
from outreach.models.campaign import Campaign, Counters, contribution
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.settings import SmsSettings
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus, WorkspaceStatus
from outreach.models.work import Run
from outreach.models.workspace import Workspace
from outreach.operations.campaign_moves import complete_if_done
from outreach.operations.common import settings_of
from outreach.policy.settlement import close_recipient, closed_as, receipt_timed_out
from outreach.protocols.storage import AlreadyThere, Transaction

_EVER: Final = timedelta(days=3650)
"""Further ahead than anything is due."""


@attrs.frozen(kw_only=True)
class Basis:
    """The revisions on which a decision was made; the commit compares them."""

    campaign: int
    workspace: int
    settings: int


@attrs.frozen(kw_only=True)
class Plan:
    """What a runner needs to decide about the next wave of a campaign.

    Attributes:
        due: Recipients to look at now, in order.
        next_due: When the next waiting one is due, when none is now; None when nobody waits.
        next_slot_at: The first moment at which the next message may start; None for any.
    """

    campaign: Campaign
    workspace: Workspace
    settings: SmsSettings
    basis: Basis
    due: Sequence[Recipient]
    next_due: datetime | None
    next_slot_at: datetime | None


@attrs.frozen(kw_only=True)
class Intent:
    """One message that is about to be sent to one recipient."""

    dispatch_id: str
    recipient: Recipient
    provider: str
    sender: str
    to: str
    body: str
    segments: int


@attrs.frozen(kw_only=True)
class Ending:
    """A recipient that ends without being contacted, and why."""

    recipient: Recipient
    status: RecipientStatus
    reason: str


@attrs.frozen(kw_only=True)
class Wave:
    """Intents and endings to commit together.

    Attributes:
        not_before: The first slot may not lie earlier, whatever the ledger says.
        horizon: Slots after this are left for the next wave.
        latest: No request of this wave may start later: closing time, expiry, end of the lease.
        spacing: Time between two slots.
    """

    workspace_id: str
    campaign_id: str
    epoch: int
    basis: Basis
    intents: Sequence[Intent]
    endings: Sequence[Ending]
    not_before: datetime
    horizon: datetime
    latest: datetime
    spacing: timedelta
    intent_lifetime: timedelta


@attrs.frozen(kw_only=True)
class Committed:
    """What a wave did.

    Attributes:
        stale: The decision was made on something that has changed since; nothing was committed.
        dispatches: The intents that now stand in the ledger, in the order of their slots.
    """

    stale: bool
    dispatches: Sequence[Dispatch]


def plan(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> Plan | None:
    """Return what is due in a campaign; None when the campaign is gone."""
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    workspace = tx.workspaces.get(workspace_id)
    if campaign is None or workspace is None:
        return None
    settings = settings_of(tx, workspace_id)
    active = campaign.status is CampaignStatus.ACTIVE
    due = tx.recipients.due(workspace_id, campaign_id, now, limit=limit) if active else ()
    run = tx.runs.get(workspace_id, campaign_id) if active else None
    return Plan(
        campaign=campaign,
        workspace=workspace,
        settings=settings,
        basis=Basis(campaign=campaign.revision, workspace=workspace.revision, settings=settings.revision),
        due=due,
        next_due=None if due or not active else tx.recipients.next_due(workspace_id, campaign_id),
        next_slot_at=run.next_slot_at if run else None,
    )


def commit_wave(tx: Transaction, wave: Wave, *, clock_now: Callable[[], datetime]) -> Committed:
    """Commit a wave's intents and endings, with everything checked again (design, section 5, rules 1 to 4).

    Raises:
        LeaseLost: The worker's epoch is not the present one; nothing was committed.
    """
    lease = tx.leases.current()
    if lease is None or lease.epoch != wave.epoch:
        raise LeaseLost("Another worker has taken over this database.")
    # The time of the commit, not of the decision: the operation may have waited for its turn.
    now = clock_now()
    campaign = tx.campaigns.get(wave.workspace_id, wave.campaign_id)
    if campaign is None or not _still_holds(tx, campaign, wave.basis, now) or now > wave.latest:
        return Committed(stale=True, dispatches=())
    stopped = tx.register.stopped(wave.workspace_id, campaign.channel, {intent.to for intent in wave.intents})
    run = tx.runs.get(wave.workspace_id, wave.campaign_id)
    slot = max(now, wave.not_before, *([run.next_slot_at] if run and run.next_slot_at else []))
    change = Counters()
    for ending in wave.endings:
        change += _end(tx, wave.workspace_id, ending.recipient, ending.status, ending.reason, now)
    dispatches: list[Dispatch] = []
    for intent in wave.intents:
        if intent.to in stopped:
            change += _end(tx, wave.workspace_id, intent.recipient, RecipientStatus.SKIPPED, "opted_out", now)
            continue
        if slot > min(wave.horizon, wave.latest):
            break
        dispatch, delta = _open(tx, wave, intent, slot, now)
        if dispatch is None:
            continue
        change += delta
        dispatches.append(dispatch)
        slot += wave.spacing
    if dispatches:
        tx.runs.put(
            Run(
                workspace_id=wave.workspace_id,
                campaign_id=wave.campaign_id,
                owner_epoch=wave.epoch,
                next_slot_at=slot,
            )
        )
    if change != Counters():
        counters = tx.campaigns.add_counters(wave.workspace_id, wave.campaign_id, change)
        complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)
    return Committed(stale=False, dispatches=tuple(dispatches))


def may_start(tx: Transaction, dispatch: Dispatch) -> str | None:
    """Return why a committed intent must not be sent after all; None when nothing stands against it.

    Read immediately before the request, so that a stop that has committed since the intent is heard.
    """
    workspace = tx.workspaces.get(dispatch.workspace_id)
    if workspace is None or workspace.status is not WorkspaceStatus.ACTIVE:
        return "workspace_unavailable"
    if tx.register.stopped(dispatch.workspace_id, dispatch.channel, {dispatch.to}):
        return "opted_out"
    if dispatch.campaign_id is not None:
        campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
        if campaign is None or campaign.status is not CampaignStatus.ACTIVE:
            return "campaign_stopped"
    current = tx.dispatches.get(dispatch.workspace_id, dispatch.id)
    if current is None or current.state is not DispatchState.DISPATCHING:
        return "settled_elsewhere"
    return None


def close_slice(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> bool:
    """End a slice of the open recipients of a campaign that was cancelled or expired; return whether more are left.

    An accepted message that only waits for its receipt ends as completed: nothing is retried any more, and a
    receipt that comes later still counts.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    closing = closed_as(campaign.status) if campaign else None
    if campaign is None or closing is None:
        return False
    rows = tx.recipients.closable(workspace_id, campaign_id, limit=limit)
    change = Counters()
    for recipient in rows:
        change += put_recipient(tx, workspace_id, recipient, close_recipient(recipient, closing, now))
    accepted: Sequence[Recipient] = ()
    if campaign.channel == "sms" and len(rows) < limit:
        accepted = tx.recipients.overdue_in_progress(workspace_id, campaign_id, now + _EVER, limit=limit - len(rows))
    for recipient in accepted:
        change += put_recipient(tx, workspace_id, recipient, receipt_timed_out(recipient, now))
    if rows or accepted:
        tx.campaigns.add_counters(workspace_id, campaign_id, change)
    return len(rows) + len(accepted) == limit


def end_receipt_waits(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> bool:
    """Complete a slice of the recipients whose receipt was waited for long enough; return whether more are left."""
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None:
        return False
    rows = tx.recipients.overdue_in_progress(workspace_id, campaign_id, now, limit=limit)
    change = Counters()
    for recipient in rows:
        change += put_recipient(tx, workspace_id, recipient, receipt_timed_out(recipient, now))
    if rows:
        counters = tx.campaigns.add_counters(workspace_id, campaign_id, change)
        complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)
    return len(rows) == limit


def put_recipient(tx: Transaction, workspace_id: str, before: Recipient, after: Recipient) -> Counters:
    """Write a recipient's new state and return what that changes in the counters."""
    tx.recipients.put(workspace_id, after)
    return counted(after) - counted(before)


def counted(recipient: Recipient) -> Counters:
    """Return what a recipient adds to its campaign's counters."""
    return contribution(
        recipient.status,
        attempts=recipient.attempts,
        dispatched=recipient.dispatched,
        successful=recipient.successful,
    )


def _still_holds(tx: Transaction, campaign: Campaign, basis: Basis, now: datetime) -> bool:
    workspace = tx.workspaces.get(campaign.workspace_id)
    return (
        campaign.status is CampaignStatus.ACTIVE
        and campaign.revision == basis.campaign
        and workspace is not None
        and workspace.status is WorkspaceStatus.ACTIVE
        and workspace.revision == basis.workspace
        and settings_of(tx, campaign.workspace_id).revision == basis.settings
        and (campaign.scheduled_expires_at is None or now < campaign.scheduled_expires_at)
    )


def _untouched(tx: Transaction, workspace_id: str, recipient: Recipient) -> Recipient | None:
    current = tx.recipients.get(workspace_id, recipient.campaign_id, recipient.position)
    if current is None or current.status not in {RecipientStatus.PENDING, RecipientStatus.WAITING}:
        return None
    same = (current.step, current.attempts, current.tries) == (recipient.step, recipient.attempts, recipient.tries)
    return current if same else None


def _end(
    tx: Transaction, workspace_id: str, recipient: Recipient, status: RecipientStatus, reason: str, now: datetime
) -> Counters:
    current = _untouched(tx, workspace_id, recipient)
    if current is None:
        return Counters()
    ended = attrs.evolve(current, status=status, reason=reason, due_at=None, ended_at=now)
    return put_recipient(tx, workspace_id, current, ended)


def _open(
    tx: Transaction, wave: Wave, intent: Intent, slot: datetime, now: datetime
) -> tuple[Dispatch | None, Counters]:
    current = _untouched(tx, wave.workspace_id, intent.recipient)
    if current is None:
        return None, Counters()
    dispatch = Dispatch(
        id=intent.dispatch_id,
        workspace_id=wave.workspace_id,
        channel="sms",
        campaign_id=wave.campaign_id,
        position=current.position,
        step=current.step,
        attempt=current.attempts + 1,
        try_number=current.tries + 1,
        provider=intent.provider,
        sender=intent.sender,
        to=intent.to,
        body=intent.body,
        segments=intent.segments,
        slot_at=slot,
        valid_until=min(wave.latest, slot + wave.intent_lifetime),
        epoch=wave.epoch,
        created_at=now,
    )
    try:
        tx.dispatches.insert(dispatch)
    except AlreadyThere:
        # The ledger itself forbids a second open dispatch; the recipient's state is behind, and is left alone.
        return None, Counters()
    opened = attrs.evolve(
        current,
        status=RecipientStatus.DISPATCHING,
        reason=None,
        due_at=None,
        attempts=current.attempts + 1,
        tries=current.tries + 1,
    )
    return dispatch, put_recipient(tx, wave.workspace_id, current, opened)
