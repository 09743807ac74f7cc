"""The next waves of campaigns: what is due, and committing it under every check again (design, section 5)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.campaign import Campaign, Counters
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus, WorkspaceStatus
from outreach.models.trail import Rule
from outreach.models.unsubscribe import HELD
from outreach.models.work import Run
from outreach.models.workspace import Workspace
from outreach.operations import account_holds, holds
from outreach.operations.campaign_moves import complete_if_done
from outreach.operations.common import provider_of, require_lease, settings_of
from outreach.operations.flows import reply_stops, steps_of
from outreach.operations.intents import Draft, draft, enter, open_all
from outreach.operations.limits import cap_reached, load_sender_paces, sender_pace
from outreach.operations.recipients import end, go_on_without_request, hold
from outreach.operations.register import HOLD, UNCLEAR_REPLY, is_held, obstacle
from outreach.operations.wave import Basis, Committed, Ending, Hold, Intent, Move, Plan, Wave
from outreach.policy.call_settlement import second_leg_is_late
from outreach.policy.pacing import next_slot, spacing
from outreach.working_set import Transaction

_STALE: Final = Committed(stale=True, changed=False, dispatches=())


def plan_all(tx: Transaction, wanted: Sequence[tuple[str, str, int]], *, now: datetime) -> Sequence[Plan | None]:
    """Return what is due in many campaigns, read all at once.

    Args:
        tx: The transaction.
        wanted: Workspace, campaign, and how many recipients at the most.
        now: When.
    """
    _load(tx, [(workspace_id, campaign_id) for workspace_id, campaign_id, _ in wanted])
    by_limit: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for workspace_id, campaign_id, limit in wanted:
        campaign = tx.campaigns.get(workspace_id, campaign_id)
        if campaign is not None and campaign.status is CampaignStatus.ACTIVE:
            by_limit[limit].append((workspace_id, campaign_id))
    due = {
        key: recipients
        for limit, keys in by_limit.items()
        for key, recipients in zip(keys, tx.recipients.due_of(keys, now, limit=limit), strict=True)
    }
    return [
        _plan(tx, workspace_id, campaign_id, due.get((workspace_id, campaign_id), ()), now)
        for workspace_id, campaign_id, _ in wanted
    ]


def _plan(tx: Transaction, workspace_id: str, campaign_id: str, due: Sequence[Recipient], now: datetime) -> Plan | None:
    """Return what is due in a campaign; None when the campaign is gone."""
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    workspace = tx.workspaces.get(workspace_id)
    if campaign is None or workspace is None:
        return None
    settings = settings_of(tx, workspace_id)
    active = campaign.status is CampaignStatus.ACTIVE
    run = tx.runs.get(workspace_id, campaign_id) if active else None
    pace = sender_pace(tx, campaign, now) if active else None
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
        next_slot_at=next_slot(run.next_slot_at, now, _spacing(campaign)) if run else None,
        sender=pace,
        capped=_capped(tx, workspace, due, now),
        agent=agent,
        trunk=tx.trunks.get(workspace_id, campaign.sip_trunk_id) if campaign.sip_trunk_id else None,
        in_flight=tx.recipients.in_flight(workspace_id, campaign_id) if campaign.channel == "call" else 0,
        steps=steps_of(tx, campaign),
        provider_hold=account_holds.hold_of_campaign(tx, campaign, now) if active else None,
        holds_outdated=holds.are_outdated(run, workspace),
    )


def _load(tx: Transaction, keys: Sequence[tuple[str, str]]) -> None:
    """Read what is looked at of each of many campaigns, all at once."""
    workspace_ids = {workspace_id for workspace_id, _ in keys}
    tx.campaigns.load(keys)
    tx.workspaces.load(workspace_ids)
    tx.settings.load(workspace_ids)
    tx.runs.load(
        campaign_id for workspace_id, campaign_id in keys if tx.campaigns.get(workspace_id, campaign_id) is not None
    )
    found = [campaign for campaign in (tx.campaigns.get(*key) for key in keys) if campaign is not None]
    load_sender_paces(tx, found)
    providers = ((campaign.workspace_id, provider_of(tx, campaign)) for campaign in found)
    tx.account_holds.load((workspace_id, provider) for workspace_id, provider in providers if provider is not None)


@attrs.define(kw_only=True)
class _Begun:
    """A wave of which is decided what is written: the change of its counters until now, and its intents."""

    wave: Wave
    campaign: Campaign
    change: Counters
    changed: bool
    drafts: Sequence[Draft]


def commit_waves(tx: Transaction, waves: Sequence[Wave], *, clock_now: Callable[[], datetime]) -> Sequence[Committed]:
    """Commit the intents and endings of many campaigns, each checked again (design, section 5, rules 1 to 4).

    Raises:
        LeaseLost: The worker's epoch is not the present one; nothing was committed.
    """
    for epoch in {wave.epoch for wave in waves}:
        require_lease(tx, epoch)
    # The time of the commit, not of the decision: the operation may have waited for its turn.
    now = clock_now()
    _load(tx, [(wave.workspace_id, wave.campaign_id) for wave in waves])
    tx.recipients.load(
        [(wave.workspace_id, wave.campaign_id, one.position) for wave in waves for one in wave.concerned]
    )
    tx.register.load((wave.workspace_id, phone) for wave in waves for phone in _numbers(wave))
    contacted: set[tuple[str, str]] = set()
    begun = [_begin(tx, wave, contacted, now) for wave in waves]
    opened = open_all(tx, [draft for one in begun if one is not None for draft in one.drafts])
    done = [_finish(tx, one, opened, now) if one is not None else _STALE for one in begun]
    # Counted last: a stop of this very operation, such as the end of the campaign, is not one that comes after.
    stops = tx.stops.number()
    return [attrs.evolve(committed, stops=stops) for committed in done]


def _begin(tx: Transaction, wave: Wave, contacted: set[tuple[str, str]], now: datetime) -> _Begun | None:
    """Decide anew about a wave, and write all of it but its intents; None where it is stale.

    Args:
        tx: The transaction.
        wave: What was decided before.
        contacted: The numbers that intents are for which are not in the ledger yet; those of this wave are added.
        now: When.
    """
    campaign = tx.campaigns.get(wave.workspace_id, wave.campaign_id)
    workspace = tx.workspaces.get(wave.workspace_id)
    if campaign is None or workspace is None or now > wave.latest:
        return None
    if not _still_holds(tx, campaign, workspace, wave.basis, now):
        return None
    if wave.intents and account_holds.hold_of(tx, wave.workspace_id, wave.intents[0].provider, now) is not None:
        return None
    standing = tx.register.standing(wave.workspace_id, campaign.channel, _numbers(wave))
    run = tx.runs.get(wave.workspace_id, wave.campaign_id) or Run(
        workspace_id=wave.workspace_id, campaign_id=wave.campaign_id, owner_epoch=wave.epoch, next_slot_at=None
    )
    known = run
    pace = sender_pace(tx, campaign, now)
    moments = (next_slot(run.next_slot_at, now, wave.spacing), pace.next_slot_at if pace else None)
    slot = max(now, wave.not_before, *(moment for moment in moments if moment is not None))
    apart = max(wave.spacing, pace.spacing) if pace else wave.spacing
    places = _places(tx, campaign)
    steps = steps_of(tx, campaign)
    change = Counters()
    changed = bool(wave.endings or wave.holds or wave.moves)
    for ending in wave.endings:
        change += end(tx, wave.workspace_id, ending, now)
    put_off: list[Hold] = []
    for held in wave.holds:
        if standing.get(held.recipient.phone or "") == "stopped":
            change += end(tx, wave.workspace_id, _opted_out(held.recipient), now)
        else:
            put_off.append(held)
    for going in wave.moves:
        change += go_on_without_request(tx, campaign, going, now)
    drafts: list[Draft] = []
    for intent in wave.intents:
        if standing.get(intent.to) == HELD:
            put_off.append(_holding(intent, now + HOLD, Rule.REGISTER, UNCLEAR_REPLY))
            continue
        if intent.to in standing:
            change += end(tx, wave.workspace_id, _opted_out(intent.recipient), now)
            changed = True
            continue
        if steps is not None and reply_stops(tx, campaign, intent.recipient, steps):
            change += end(tx, wave.workspace_id, _replied(intent.recipient), now)
            changed = True
            continue
        if second_leg_is_late(intent.recipient, now):
            # It was in time when it was decided on; the commit has waited for its turn.
            change += go_on_without_request(tx, campaign, _drop(intent.recipient), now)
            changed = True
            continue
        if workspace.frequency_cap is not None and (workspace.id, intent.to) in contacted:
            # What goes to the same number by this very commit counts too, and is not in the ledger yet.
            continue
        capped = cap_reached(tx, wave.workspace_id, intent.to, now)
        if capped is not None:
            put_off.append(_holding(intent, capped, Rule.FREQUENCY_CAP, holds.FREQUENCY_CAP))
            continue
        far = slot > min(now + wave.look_ahead, now + wave.intent_lifetime)
        if far or slot >= wave.latest or len(drafts) >= places:
            break
        if intent.latest is not None and slot >= intent.latest:
            # Its evening comes before its slot. It is decided about again then; left due, it would be asked about
            # without a pause until then, and others behind it not at all.
            put_off.append(_holding(intent, intent.latest, Rule.CONTACT_HOURS, holds.CONTACT_HOURS))
            continue
        drafted = draft(tx, wave, campaign, run, intent, slot, now)
        if drafted is None:
            continue
        one, run = drafted
        drafts.append(one)
        contacted.add((workspace.id, intent.to))
        slot += apart
    for held in put_off:
        change += _put_off(tx, campaign, held, now)
    if put_off:
        run = attrs.evolve(run, held_under=holds.rules_of(workspace))
    if drafts:
        last = drafts[-1].dispatch.slot_at
        run = attrs.evolve(run, owner_epoch=wave.epoch, next_slot_at=last + wave.spacing)
        if pace is not None:
            tx.runs.put_sender_slot(wave.workspace_id, pace.phone, last + pace.spacing)
    if run != known:
        tx.runs.put(run)
    return _Begun(wave=wave, campaign=campaign, change=change, changed=changed or bool(put_off), drafts=drafts)


def _finish(tx: Transaction, begun: _Begun, opened: frozenset[str], now: datetime) -> Committed:
    """Write what follows from the intents of a wave that went into the ledger."""
    entered = [one for one in begun.drafts if one.dispatch.id in opened]
    change = begun.change
    for one in entered:
        change += enter(tx, one)
    if change != Counters():
        campaign = begun.campaign
        counters = tx.campaigns.add_counters(campaign.workspace_id, campaign.id, change)
        if counters.open == 0:
            complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)
    return Committed(
        stale=False, changed=begun.changed or bool(entered), dispatches=tuple(one.dispatch for one in entered)
    )


def _numbers(wave: Wave) -> set[str]:
    return {intent.to for intent in wave.intents} | {held.recipient.phone or "" for held in wave.holds}


def obstacles(tx: Transaction, intents: Sequence[tuple[Dispatch, int | None]], now: datetime) -> Sequence[str | None]:
    """Return why each of some committed intents must not be sent after all; None where nothing stands against it.

    Args:
        tx: The transaction.
        intents: Each with the number of stops at its commit, as far as it is known: without another one since nothing
            needs to be looked at.
        now: When.
    """
    stops = tx.stops.number()
    doubtful = [dispatch for dispatch, known in intents if known != stops]
    load_for_start(tx, doubtful)
    return [
        None if known == stops else may_start(tx, dispatch) or account_holds.obstacle(tx, dispatch, now)
        for dispatch, known in intents
    ]


def load_for_start(tx: Transaction, dispatches: Sequence[Dispatch]) -> None:
    """Read what `may_start` looks at for many dispatches, all at once."""
    tx.dispatches.load((dispatch.workspace_id, dispatch.id) for dispatch in dispatches)
    tx.register.load((dispatch.workspace_id, dispatch.to) for dispatch in dispatches)


def may_start(tx: Transaction, dispatch: Dispatch) -> str | None:
    """Return why a committed intent must not be sent after all; None when nothing stands against it.

    Read immediately before the request, so that a stop that has committed since the intent is heard.
    """
    workspace = tx.workspaces.get(dispatch.workspace_id)
    if workspace is None or workspace.status is not WorkspaceStatus.ACTIVE:
        return "workspace_unavailable"
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id) if dispatch.message_id else None
    purpose = message.purpose if message is not None else "message"
    forbidden = obstacle(tx, dispatch.workspace_id, dispatch.channel, dispatch.to, purpose)
    if forbidden is not None:
        return forbidden
    if dispatch.campaign_id is not None:
        if is_held(tx, dispatch.workspace_id, dispatch.to):
            return UNCLEAR_REPLY
        campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
        if campaign is None or campaign.status is not CampaignStatus.ACTIVE:
            return "campaign_stopped"
    current = tx.dispatches.get(dispatch.workspace_id, dispatch.id)
    if current is None or current.state is not DispatchState.DISPATCHING:
        return "settled_elsewhere"
    return None


def _opted_out(recipient: Recipient) -> Ending:
    return Ending(recipient=recipient, status=RecipientStatus.SKIPPED, reason="opted_out", rule=Rule.REGISTER)


def _replied(recipient: Recipient) -> Ending:
    return Ending(recipient=recipient, status=RecipientStatus.COMPLETED, reason="replied", rule=Rule.FLOW)


def _drop(recipient: Recipient) -> Move:
    return Move(recipient=recipient, kind="drop_second_leg")


def _put_off(tx: Transaction, campaign: Campaign, held: Hold, now: datetime) -> Counters:
    """Let a recipient wait; the second call of a double dial waits for nothing, and is dropped instead."""
    if held.recipient.leg == 2:
        return go_on_without_request(tx, campaign, _drop(held.recipient), now)
    return hold(tx, campaign.workspace_id, held, now)


def _holding(intent: Intent, until: datetime, rule: Rule, reason: str) -> Hold:
    return Hold(recipient=intent.recipient, due_at=until, reason=reason, rule=rule)


def _spacing(campaign: Campaign) -> timedelta:
    """Return how far apart the requests of a campaign start; calls have no pace but their places."""
    return spacing(campaign.sms_rate_per_minute or 1) if campaign.channel == "sms" else timedelta()


def _capped(
    tx: Transaction, workspace: Workspace, recipients: Sequence[Recipient], now: datetime
) -> Mapping[int, datetime]:
    if workspace.frequency_cap is None:
        return {}
    known = (
        (one.position, cap_reached(tx, workspace.id, one.phone, now)) for one in recipients if one.phone is not None
    )
    return {position: until for position, until in known if until is not None}


def _still_holds(tx: Transaction, campaign: Campaign, workspace: Workspace, basis: Basis, now: datetime) -> bool:
    return (
        campaign.status is CampaignStatus.ACTIVE
        and campaign.revision == basis.campaign
        and workspace.status is WorkspaceStatus.ACTIVE
        and workspace.revision == basis.workspace
        and settings_of(tx, campaign.workspace_id).revision == basis.settings
        and _agent_still_holds(tx, campaign, basis)
        # Ahead of it where the clock was set back after its start.
        and (campaign.scheduled_start_at is None or now >= campaign.scheduled_start_at)
        and (campaign.scheduled_expires_at is None or now < campaign.scheduled_expires_at)
    )


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
