"""The next waves of campaigns: planned with all that deciding needs, and committed under every check again.

See docs/delivery-contract.md#rule-3.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.core.copying import copy_with
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns.recipients import (
    advance_without_sending,
    end_recipient,
    is_stopped_by_reply,
    postpone_recipient,
    steps_of,
)
from outreach.ledger.campaigns.transitions import complete_if_done
from outreach.ledger.common import provider_of, require_worker, settings_of
from outreach.ledger.leases import leases
from outreach.ledger.provider_throttles import left_out
from outreach.ledger.sending.intents import (
    IntentDraft,
    WaveSenders,
    commit_intents,
    draft_intent,
    frequency_capped_until,
    prefetch_sender_paces,
    sender_paces,
)
from outreach.models.campaign import Campaign, Counters, Recipient
from outreach.models.plans import Advance, DecisionBasis, Ending, Postponement, Wave, WavePlan, WaveResult
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus, TrailRule, WorkspaceStatus
from outreach.models.work import CampaignRunState
from outreach.models.workspace import Workspace
from outreach.rules.deciding import (
    FREQUENCY_CAP,
    apply_register,
    are_contact_rules_outdated,
    contact_rules_key,
    next_slot,
    spacing,
)
from outreach.rules.numbering import person_key
from outreach.rules.settlement import second_leg_is_late
from outreach.storage.unit_of_work import Transaction


def plan_waves(tx: Transaction, wanted: Sequence[tuple[str, str, int]], *, now: datetime) -> Sequence[WavePlan | None]:
    """Return the plans of many campaigns, given as workspace, campaign and maximum number of recipients."""
    prefetch_campaigns(tx, [(workspace_id, campaign_id) for workspace_id, campaign_id, _ in wanted])
    by_limit: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for workspace_id, campaign_id, limit in wanted:
        campaign = tx.campaigns.get(workspace_id, campaign_id)
        if campaign is not None and campaign.status is CampaignStatus.ACTIVE:
            by_limit[limit].append((workspace_id, campaign_id))
    due = {
        key: recipients
        for limit, keys in by_limit.items()
        for key, recipients in zip(keys, tx.recipients.due_for_campaigns(keys, now, limit=limit), strict=True)
    }
    next_due = tx.recipients.next_due_of_campaigns(key for key, recipients in due.items() if not recipients)
    return [
        _plan(tx, workspace_id, campaign_id, due.get((workspace_id, campaign_id), ()), next_due.get(campaign_id), now)
        for workspace_id, campaign_id, _ in wanted
    ]


def _plan(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    due: Sequence[Recipient],
    next_due: datetime | None,
    now: datetime,
) -> WavePlan | None:
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    workspace = tx.workspaces.get(workspace_id)
    if campaign is None or workspace is None:
        return None
    settings = settings_of(tx, workspace_id)
    active = campaign.status is CampaignStatus.ACTIVE
    run = tx.runs.get(workspace_id, campaign_id) if active else None
    senders = sender_paces(tx, campaign, now) if active else {}
    agent = tx.agents.get(workspace_id, campaign.agent_id) if campaign.agent_id else None
    return WavePlan(
        campaign=campaign,
        workspace=workspace,
        settings=settings,
        basis=DecisionBasis(
            campaign=campaign.revision,
            workspace=workspace.revision,
            settings=settings.revision,
            agent=agent.revision if agent else None,
        ),
        due=due,
        next_due=next_due,
        next_slot_at=next_slot(run.next_slot_at, now, _spacing(campaign)) if run else None,
        senders=senders,
        capped_until=_capped(tx, workspace, due, now),
        unreachable=left_out(tx, workspace, campaign.channel, {one.phone for one in due if one.phone is not None}),
        agent=agent,
        trunk=tx.trunks.get(workspace_id, campaign.trunk_id) if campaign.trunk_id else None,
        in_flight=tx.recipients.in_flight(workspace_id, campaign_id) if campaign.channel == "call" else 0,
        steps=steps_of(tx, campaign),
        provider_throttle=provider_throttles.throttle_of_campaign(tx, campaign, now) if active else None,
        contact_rules_outdated=are_contact_rules_outdated(run, workspace),
    )


def prefetch_campaigns(tx: Transaction, keys: Sequence[tuple[str, str]]) -> None:
    """Read the rows that many campaigns need, in one go."""
    workspace_ids = {workspace_id for workspace_id, _ in keys}
    tx.campaigns.prefetch(keys)
    tx.workspaces.prefetch(workspace_ids)
    tx.settings.prefetch(workspace_ids)
    tx.runs.prefetch(key for key in keys if tx.campaigns.get(*key) is not None)
    found = [campaign for campaign in (tx.campaigns.get(*key) for key in keys) if campaign is not None]
    prefetch_sender_paces(tx, found)
    providers = ((campaign.workspace_id, provider_of(tx, campaign)) for campaign in found)
    tx.provider_throttles.prefetch(
        (workspace_id, provider) for workspace_id, provider in providers if provider is not None
    )


def _spacing(campaign: Campaign) -> timedelta:
    """Return how far apart a campaign's requests start; calls are limited in flight instead."""
    return spacing(campaign.rate_per_minute or 1) if campaign.channel == "sms" else timedelta()


def _capped(
    tx: Transaction, workspace: Workspace, recipients: Sequence[Recipient], now: datetime
) -> Mapping[int, datetime]:
    if workspace.frequency_cap is None:
        return {}
    known = (
        (one.position, frequency_capped_until(tx, workspace.id, one.phone, now))
        for one in recipients
        if one.phone is not None
    )
    return {position: until for position, until in known if until is not None}


_STALE: Final = WaveResult(stale=True, changed=False, dispatches=())
_UNCLAIMED: Final = WaveResult(stale=True, unclaimed=True, changed=False, dispatches=())


@attrs.define(kw_only=True)
class _Begun:
    """A wave whose endings and postponements are written and whose intents are drafted."""

    wave: Wave
    campaign: Campaign
    change: Counters
    changed: bool
    drafts: Sequence[IntentDraft]


def commit_waves(tx: Transaction, waves: Sequence[Wave], *, clock_now: Callable[[], datetime]) -> Sequence[WaveResult]:
    """Commit the intents and endings of many campaigns, each checked again.

    See docs/delivery-contract.md#rule-1 to #rule-4. A wave that is in the ledger already is returned again, because its
    first caller may have gone before it got the result.

    Raises:
        LeaseLost: The worker's epoch has passed; nothing was committed.
    """
    for epoch in {wave.epoch for wave in waves}:
        require_worker(tx, epoch)
    # The time of the commit, not of the decision: the operation may have queued.
    now = clock_now()
    prefetch_campaigns(tx, [(wave.workspace_id, wave.campaign_id) for wave in waves])
    tx.recipients.prefetch(
        [(wave.workspace_id, wave.campaign_id, one.position) for wave in waves for one in wave.recipients]
    )
    tx.register.prefetch((wave.workspace_id, phone) for wave in waves for phone in _numbers(wave))
    tx.dispatches.prefetch((wave.workspace_id, intent.dispatch_id) for wave in waves for intent in wave.intents)
    tx.claims.prefetch((wave.workspace_id, wave.campaign_id) for wave in waves)
    contacted: set[tuple[str, str]] = set()
    begun = [_committed_before(tx, wave) or _begin(tx, wave, contacted, now) for wave in waves]
    opened = commit_intents(tx, [draft for one in begun if isinstance(one, _Begun) for draft in one.drafts])
    done = [_finish(tx, one, opened, now) if isinstance(one, _Begun) else one for one in begun]
    # Counted last, so that a stop by this operation itself is not taken for a later one.
    tx.stops.prefetch({wave.workspace_id for wave in waves})
    return [
        copy_with(committed, stops=tx.stops.count(one.wave.workspace_id)) if isinstance(one, _Begun) else committed
        for one, committed in zip(begun, done, strict=True)
    ]


def _committed_before(tx: Transaction, wave: Wave) -> WaveResult | None:
    """Return the result of a wave that is in the ledger already; None if it is not."""
    known = (tx.dispatches.get(wave.workspace_id, intent.dispatch_id) for intent in wave.intents)
    made = tuple(one for one in known if one is not None and one.state is DispatchState.DISPATCHING)
    # Without a stop count, all are checked again before their requests.
    return WaveResult(stale=False, changed=True, dispatches=made) if made else None


def _begin(tx: Transaction, wave: Wave, contacted: set[tuple[str, str]], now: datetime) -> _Begun | WaveResult:
    """Decide again about a wave and write all but its intents; nothing if it is stale.

    The numbers of this wave's intents are added to `contacted`.
    """
    campaign = tx.campaigns.get(wave.workspace_id, wave.campaign_id)
    workspace = tx.workspaces.get(wave.workspace_id)
    if campaign is None or workspace is None or now > wave.latest:
        return _STALE
    if not _is_basis_current(tx, campaign, workspace, wave.basis, now):
        return _STALE
    if (
        wave.intents
        and provider_throttles.active_throttle(tx, wave.workspace_id, wave.intents[0].provider, now) is not None
    ):
        return _STALE
    standing = tx.register.restrictions(wave.workspace_id, campaign.channel, _numbers(wave))
    run = tx.runs.get(wave.workspace_id, wave.campaign_id) or CampaignRunState(
        workspace_id=wave.workspace_id, campaign_id=wave.campaign_id, owner_epoch=wave.epoch, next_slot_at=None
    )
    known = run
    paces = sender_paces(tx, campaign, now)
    if not leases.may_commit(tx, wave.workspace_id, leases.subjects_of(campaign.id, paces.values()), wave.epoch):
        return _UNCLAIMED
    slot = max(now, wave.not_before, next_slot(run.next_slot_at, now, wave.spacing) or now)
    senders = WaveSenders(campaign, paces, wave, turn=run.assigned)
    latest_slot = min(now + wave.look_ahead, now + wave.intent_lifetime)
    places = _free_places(tx, campaign)
    steps = steps_of(tx, campaign)
    change = Counters()
    changed = bool(wave.endings or wave.postponements or wave.advances)
    for ending in wave.endings:
        change += end_recipient(tx, wave.workspace_id, ending, now)
    postponed: list[Postponement] = []
    for held in wave.postponements:
        registered = apply_register(held.recipient, standing.get(held.recipient.phone or ""), now)
        if isinstance(registered, Ending):
            change += end_recipient(tx, wave.workspace_id, registered, now)
        else:
            postponed.append(held)
    for advance in wave.advances:
        change += advance_without_sending(tx, campaign, advance, now)
    drafts: list[IntentDraft] = []
    ordered = senders.in_order(wave.intents, slot)
    for number, intent in enumerate(ordered):
        registered = apply_register(intent.recipient, standing.get(intent.to), now)
        if isinstance(registered, Postponement):
            postponed.append(registered)
            continue
        if registered is not None:
            change += end_recipient(tx, wave.workspace_id, registered, now)
            changed = True
            continue
        if steps is not None and is_stopped_by_reply(tx, campaign, intent.recipient, steps):
            change += end_recipient(tx, wave.workspace_id, _replied(intent.recipient), now)
            changed = True
            continue
        if second_leg_is_late(intent.recipient, now):
            # It was in time when decided, but the commit has queued.
            change += advance_without_sending(tx, campaign, _drop(intent.recipient), now)
            changed = True
            continue
        if workspace.frequency_cap is not None and (workspace.id, person_key(intent.to)) in contacted:
            # Intents of this commit are not in the ledger yet, but count for the cap.
            continue
        capped = frequency_capped_until(tx, wave.workspace_id, intent.to, now)
        if capped is not None:
            postponed.append(FREQUENCY_CAP.hold(intent.recipient, capped))
            continue
        sender = senders.sender_of(intent.recipient, slot)
        at = senders.start(sender, slot)
        if at > latest_slot or at >= wave.latest or len(drafts) >= places:
            postponed.extend(senders.waiting_for(ordered[number:], latest_slot, latest_slot - now))
            break
        if intent.closing is not None and at >= intent.closing.at:
            # Its local hours end before its slot: left due, it would block those behind it.
            postponed.append(intent.closing.hold(intent.recipient))
            continue
        drafted = draft_intent(tx, wave, campaign, run, intent, sender, at, now)
        if drafted is None:
            continue
        one, run = drafted
        drafts.append(one)
        if workspace.frequency_cap is not None:
            contacted.add((workspace.id, person_key(intent.to)))
        senders.take(sender, intent.recipient, at)
        slot = at + wave.spacing
    for held in postponed:
        change += _postpone_or_drop(tx, campaign, held, now)
    if postponed and not are_contact_rules_outdated(run, workspace):
        # A mark that stands (`leases.clock_steps`) wakes these as well.
        run = attrs.evolve(run, postponed_under=contact_rules_key(workspace))
    if drafts:
        last = drafts[-1].dispatch.slot_at
        assigned = senders.turn if campaign.from_numbers else run.assigned
        run = copy_with(run, owner_epoch=wave.epoch, next_slot_at=last + wave.spacing, assigned=assigned)
        senders.put(tx, wave.workspace_id)
    if run != known:
        tx.runs.put(run)
    return _Begun(wave=wave, campaign=campaign, change=change, changed=changed or bool(postponed), drafts=drafts)


def _finish(tx: Transaction, begun: _Begun, opened: Mapping[str, Counters], now: datetime) -> WaveResult:
    """Write what follows from a wave's intents that entered the ledger."""
    entered = tuple(one.dispatch for one in begun.drafts if one.dispatch.id in opened)
    change = begun.change
    for one in entered:
        change += opened[one.id]
    if change != Counters():
        campaign = begun.campaign
        counters = tx.campaigns.add_counters(campaign.workspace_id, campaign.id, change)
        if counters.open == 0:
            complete_if_done(tx, copy_with(campaign, counters=counters), now=now)
    return WaveResult(stale=False, changed=begun.changed or bool(entered), dispatches=entered)


def _numbers(wave: Wave) -> set[str]:
    return {intent.to for intent in wave.intents} | {held.recipient.phone or "" for held in wave.postponements}


def _replied(recipient: Recipient) -> Ending:
    return Ending(recipient=recipient, status=RecipientStatus.COMPLETED, reason="replied", rule=TrailRule.FLOW)


def _drop(recipient: Recipient) -> Advance:
    return Advance(recipient=recipient, kind="drop_second_leg")


def _postpone_or_drop(tx: Transaction, campaign: Campaign, held: Postponement, now: datetime) -> Counters:
    """Postpone a recipient; the second call of a double dial is dropped instead."""
    if held.recipient.leg == 2:
        return advance_without_sending(tx, campaign, _drop(held.recipient), now)
    return postpone_recipient(tx, campaign.workspace_id, held, now)


def _is_basis_current(
    tx: Transaction, campaign: Campaign, workspace: Workspace, basis: DecisionBasis, now: datetime
) -> bool:
    return (
        campaign.status is CampaignStatus.ACTIVE
        and campaign.revision == basis.campaign
        and workspace.status is WorkspaceStatus.ACTIVE
        and workspace.revision == basis.workspace
        and settings_of(tx, campaign.workspace_id).revision == basis.settings
        and _is_agent_current(tx, campaign, basis)
        # The start lies ahead again if the clock was set back.
        and (campaign.scheduled_start_at is None or now >= campaign.scheduled_start_at)
        and (campaign.scheduled_expires_at is None or now < campaign.scheduled_expires_at)
    )


def _is_agent_current(tx: Transaction, campaign: Campaign, basis: DecisionBasis) -> bool:
    if campaign.agent_id is None:
        return basis.agent is None
    agent = tx.agents.get(campaign.workspace_id, campaign.agent_id)
    return agent is not None and agent.revision == basis.agent and agent.is_active and agent.can_place_calls


def _free_places(tx: Transaction, campaign: Campaign) -> float:
    """Return how many more may be in flight; a call that may be ringing counts."""
    if campaign.channel == "sms":
        return math.inf
    return campaign.batch_concurrency - tx.recipients.in_flight(campaign.workspace_id, campaign.id)
