"""Intents of SMS campaigns: what to send next, and committing it under every check again (design, section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import LeaseLost
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters, contribution
from outreach.models.directory import Agent, Trunk
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.settings import SmsSettings
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, RecipientStatus, WorkspaceStatus
from outreach.models.work import Run
from outreach.models.workspace import Workspace
from outreach.operations.campaign_moves import complete_if_done
from outreach.operations.common import call_settings_of, settings_of
from outreach.policy.call_settlement import drop_second_leg
from outreach.policy.caller_ids import caller_id
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
    agent: int | None


@attrs.frozen(kw_only=True)
class Plan:
    """What a runner needs to decide about the next wave of a campaign.

    Attributes:
        due: Recipients to look at now, in order.
        next_due: When the next waiting one is due, when none is now; None when nobody waits.
        next_slot_at: The first moment at which the next message may start; None for any.
        agent: The agent of a calling campaign.
        trunk: The trunk of a calling campaign.
        in_flight: Recipients that take a place at the provider, or may.
    """

    campaign: Campaign
    workspace: Workspace
    settings: SmsSettings
    basis: Basis
    due: Sequence[Recipient]
    next_due: datetime | None
    next_slot_at: datetime | None
    agent: Agent | None
    trunk: Trunk | None
    in_flight: int


@attrs.frozen(kw_only=True)
class Intent:
    """One message that is about to be sent to one recipient, or one call about to be placed.

    Attributes:
        sender: None leaves the caller ID to the provider; a group's number goes before it.
        body: The rendered text; None for a call.
        call_id: Identifier for the record of a call; None for a message.
        variables: Template variables of a call.
    """

    dispatch_id: str
    recipient: Recipient
    provider: str
    sender: str | None
    to: str
    body: str | None = None
    segments: int | None = None
    call_id: str | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict)


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
        spacing: Time between two slots; zero for calls, whose pace is the places they take.
        lapsed: Recipients whose second call of a double dial came too late.
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
    lapsed: Sequence[Recipient] = ()


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
    agent = tx.agents.get(workspace_id, campaign.agent_id) if campaign.agent_id else None
    return Plan(
        campaign=campaign,
        workspace=workspace,
        settings=settings,
        basis=Basis(
            campaign=campaign.revision,
            workspace=workspace.revision,
            settings=settings.revision,
            agent=agent.revision if agent else None,
        ),
        due=due,
        next_due=None if due or not active else tx.recipients.next_due(workspace_id, campaign_id),
        next_slot_at=run.next_slot_at if run else None,
        agent=agent,
        trunk=tx.trunks.get(workspace_id, campaign.sip_trunk_id) if campaign.sip_trunk_id else None,
        in_flight=tx.recipients.in_flight(workspace_id, campaign_id) if campaign.channel == "call" else 0,
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
    run = tx.runs.get(wave.workspace_id, wave.campaign_id) or Run(
        workspace_id=wave.workspace_id, campaign_id=wave.campaign_id, owner_epoch=wave.epoch, next_slot_at=None
    )
    slot = max(now, wave.not_before, *([run.next_slot_at] if run.next_slot_at else []))
    places = _places(tx, campaign)
    change = Counters()
    for ending in wave.endings:
        change += _end(tx, wave.workspace_id, ending.recipient, ending.status, ending.reason, now)
    for recipient in wave.lapsed:
        change += _drop_second_leg(tx, campaign, recipient, now)
    dispatches: list[Dispatch] = []
    for intent in wave.intents:
        if intent.to in stopped:
            change += _end(tx, wave.workspace_id, intent.recipient, RecipientStatus.SKIPPED, "opted_out", now)
            continue
        if slot > min(wave.horizon, wave.latest) or len(dispatches) >= places:
            break
        opened = _open(tx, wave, campaign, run, intent, slot, now)
        if opened is None:
            continue
        dispatch, run, delta = opened
        change += delta
        dispatches.append(dispatch)
        slot += wave.spacing
    if dispatches:
        tx.runs.put(attrs.evolve(run, owner_epoch=wave.epoch, next_slot_at=slot))
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
        and _agent_still_holds(tx, campaign, basis)
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


def _agent_still_holds(tx: Transaction, campaign: Campaign, basis: Basis) -> bool:
    if campaign.agent_id is None:
        return basis.agent is None
    agent = tx.agents.get(campaign.workspace_id, campaign.agent_id)
    return agent is not None and agent.revision == basis.agent and agent.is_active and agent.may_call_out


def _places(tx: Transaction, campaign: Campaign) -> float:
    """Return how many more may be in flight; a call that may be ringing takes a place until that is known."""
    if campaign.channel == "sms":
        return math.inf
    return campaign.batch_concurrency - tx.recipients.in_flight(campaign.workspace_id, campaign.id)


def _drop_second_leg(tx: Transaction, campaign: Campaign, recipient: Recipient, now: datetime) -> Counters:
    current = _untouched(tx, campaign.workspace_id, recipient)
    if current is None:
        return Counters()
    settings = call_settings_of(tx, campaign.workspace_id)
    dropped = drop_second_leg(current, campaign=campaign.status, settings=settings, now=now)
    return put_recipient(tx, campaign.workspace_id, current, dropped)


def _open(
    tx: Transaction, wave: Wave, campaign: Campaign, run: Run, intent: Intent, slot: datetime, now: datetime
) -> tuple[Dispatch, Run, Counters] | None:
    current = _untouched(tx, wave.workspace_id, intent.recipient)
    if current is None:
        return None
    # The second call of a double dial belongs to the first one's attempt.
    attempt = current.attempts + 1 if current.leg == 1 else current.attempts
    caller, run = _caller(campaign, run, current, intent)
    dispatch = Dispatch(
        id=intent.dispatch_id,
        workspace_id=wave.workspace_id,
        channel=campaign.channel,
        campaign_id=wave.campaign_id,
        position=current.position,
        call_id=intent.call_id,
        step=current.step,
        attempt=attempt,
        leg=current.leg,
        try_number=current.tries + 1,
        provider=intent.provider,
        sender=caller,
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
        return None
    if intent.call_id is not None and campaign.agent_id is not None:
        tx.calls.insert(_call(dispatch, campaign.agent_id, intent))
    opened = attrs.evolve(
        current,
        status=RecipientStatus.DISPATCHING,
        reason=None,
        due_at=None,
        attempts=attempt,
        tries=current.tries + 1,
        caller_id=caller if campaign.cli_mode == "group" else None,
    )
    return dispatch, run, put_recipient(tx, wave.workspace_id, current, opened)


def _caller(campaign: Campaign, run: Run, recipient: Recipient, intent: Intent) -> tuple[str | None, Run]:
    """Return the number to call from; one of a group is assigned at the first dispatch and kept for retries."""
    if campaign.cli_mode != "group" or not campaign.cli_group:
        return intent.sender, run
    if recipient.caller_id is not None:
        return recipient.caller_id, run
    return caller_id(campaign.cli_group, run.assigned), attrs.evolve(run, assigned=run.assigned + 1)


def _call(dispatch: Dispatch, agent_id: str, intent: Intent) -> Call:
    return Call(
        id=intent.call_id or "",
        workspace_id=dispatch.workspace_id,
        agent_id=agent_id,
        campaign_id=dispatch.campaign_id,
        position=dispatch.position,
        provider=dispatch.provider,
        to=dispatch.to,
        sender=dispatch.sender,
        status=CallStatus.DISPATCHING,
        variables=intent.variables,
        attempt=dispatch.attempt,
        tries=1,
        created_at=dispatch.created_at,
    )
