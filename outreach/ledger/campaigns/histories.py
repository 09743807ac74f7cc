"""The history of a contact in a campaign, from the ledger, the decision trail and the register."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from outreach.errors import NotFound
from outreach.ledger.common import campaign_of, recipient_of, workspace_of
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.states import (
    CallStatus,
    CampaignStatus,
    ContactHistory,
    DispatchState,
    RecipientStatus,
    TrailEntry,
    TrailRule,
    TrailStep,
    TrailStepKind,
)
from outreach.models.unsubscribe import Unsubscribe
from outreach.rules.contact_hours import narrower_hours
from outreach.rules.contact_places import place_of
from outreach.rules.deciding import rule_of_outcome, rule_of_recipient
from outreach.rules.phones import normalise_single
from outreach.storage.unit_of_work import Transaction

_LATEST: Final = 500
"""How many of the latest status changes of a campaign or its workspace are read."""

_WITHOUT_EFFECT: Final = frozenset({CampaignStatus.DRAFT, CampaignStatus.READY, CampaignStatus.COMPLETED})
"""Campaign statuses that neither stop nor release a recipient."""


def histories(tx: Transaction, workspace_id: str, campaign_id: str, written: str) -> Sequence[ContactHistory]:
    """Return what happened to a number in a campaign: one history for each of its positions, in order.

    `written` may be in any notation; text that is not a number is compared with what was supplied. Raises `NotFound` if
    there is no such campaign, or if the number is neither in it nor on the register.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    phone = normalise_single(written, workspace_of(tx, workspace_id).default_region)
    rows = with_phone(tx, campaign, written)
    of_number = _register_steps(tx, campaign, phone) if phone is not None else ()
    if rows:
        shared = _shared(tx, campaign)
        return tuple(_history(tx, campaign, recipient, of_number, shared) for recipient in rows)
    on_register = [step for step in of_number if step.what is not TrailStepKind.REPLIED]
    left_out = _is_stopped([step for step in on_register if step.at <= campaign.created_at])
    if phone is None or not (left_out or _is_stopped(on_register)):
        raise NotFound("recipient", written)
    return (_left_out(campaign, written, phone, on_register, left_out=left_out),)


def with_phone(tx: Transaction, campaign: Campaign, written: str) -> Sequence[Recipient]:
    """Return the recipients with a number in any notation, or with a supplied text that is none, by position."""
    phone = normalise_single(written, workspace_of(tx, campaign.workspace_id).default_region)
    found = () if phone is None else tx.recipients.by_phone(campaign.workspace_id, campaign.id, phone)
    return found or tx.recipients.without_phone(campaign.workspace_id, campaign.id, written)


def history_at(tx: Transaction, workspace_id: str, campaign_id: str, position: int) -> ContactHistory:
    """Return what happened to one recipient, or raise `NotFound` if there is no such campaign or position."""
    campaign = campaign_of(tx, workspace_id, campaign_id)
    recipient = recipient_of(tx, campaign, position)
    of_number = () if recipient.phone is None else _register_steps(tx, campaign, recipient.phone)
    return _history(tx, campaign, recipient, of_number, _shared(tx, campaign))


def histories_of_external_id(
    tx: Transaction, workspace_id: str, campaign_id: str, external_id: str
) -> Sequence[ContactHistory]:
    """Return what happened to the contacts with an id of the application's, like `histories`."""
    campaign = campaign_of(tx, workspace_id, campaign_id)
    rows = tx.recipients.with_external_id(workspace_id, external_id, campaign_id=campaign_id, limit=_LATEST)
    if not rows:
        raise NotFound("recipient", external_id)
    shared = _shared(tx, campaign)
    return tuple(
        _history(tx, campaign, one, _register_steps(tx, campaign, one.phone) if one.phone is not None else (), shared)
        for one in rows
    )


def _register_steps(tx: Transaction, campaign: Campaign, phone: str) -> Sequence[TrailStep]:
    """Return when a number came onto the register and left it, for the campaign's channel, and its replies."""
    entries = tx.trail.of_number(campaign.workspace_id, phone, limit=_LATEST)
    steps = [
        _step(entry)
        for entry in entries
        # A number that is held is shown by the message that held it, and by its contact's wait.
        if entry.what is not TrailStepKind.HELD
        and (entry.what is not TrailStepKind.OPTED_OUT or entry.state in {"all", campaign.channel})
    ]
    known = tx.register.get(campaign.workspace_id, phone)
    if known is not None and known.stops(campaign.channel) and not _is_stopped(steps):
        # The register counts, also if the trail no longer shows the entry.
        steps.append(_opted_out(known))
    return sorted(steps, key=lambda step: step.at)


def _is_stopped(steps: Sequence[TrailStep]) -> bool:
    """Return whether a number is on the register after these steps."""
    last = next((step for step in reversed(steps) if step.what is not TrailStepKind.REPLIED), None)
    return last is not None and last.what is TrailStepKind.OPTED_OUT


def _left_out(
    campaign: Campaign, written: str, phone: str, on_register: Sequence[TrailStep], *, left_out: bool
) -> ContactHistory:
    """Return the history of a number that is on the register, or was when the campaign was created.

    Such numbers get no position, and whether they were supplied is not stored.
    """
    left = TrailStep(at=campaign.created_at, what=TrailStepKind.LEFT_OUT, rule=TrailRule.REGISTER, reason="opted_out")
    return ContactHistory(
        campaign_id=campaign.id,
        position=None,
        phone_number=written,
        phone=phone,
        status=None,
        reason=None,
        due_at=None,
        steps=tuple(sorted([*on_register, *([left] if left_out else [])], key=lambda step: step.at)),
    )


def _history(
    tx: Transaction,
    campaign: Campaign,
    recipient: Recipient,
    of_number: Sequence[TrailStep],
    shared: Sequence[TrailEntry],
) -> ContactHistory:
    own = tx.trail.of_recipient(campaign.workspace_id, campaign.id, recipient.position)
    dispatches = tx.dispatches.of_recipient(campaign.workspace_id, campaign.id, recipient.position)
    recorded = {entry.dispatch_id for entry in own if entry.what is TrailStepKind.OUTCOME}
    derived = [
        *_loaded(campaign, recipient, ended_later=any(entry.what is TrailStepKind.ENDED for entry in own)),
        *(step for one in dispatches for step in _of_dispatch(one, outcome_recorded=one.id in recorded)),
    ]
    written = [_step(entry) for entry in own if _adds_to_dispatch(entry)]
    # A trail entry follows the change that it belongs to if both have the same time.
    steps = sorted([*derived, *written], key=lambda step: step.at)
    last = steps[-1].at if not recipient.is_open else None
    around = [_step(entry) for entry in shared if last is None or entry.at <= last]
    around += [
        step
        for step in of_number
        if step.what is not TrailStepKind.REPLIED
        or (campaign.created_at <= step.at and (last is None or step.at <= last))
    ]
    place, workspace = place_of(recipient), workspace_of(tx, campaign.workspace_id)
    return ContactHistory(
        campaign_id=campaign.id,
        position=recipient.position,
        phone_number=recipient.phone_number,
        phone=recipient.phone,
        status=recipient.status,
        reason=recipient.reason,
        due_at=recipient.due_at,
        # A campaign's status change comes before what it does to recipients at that time.
        steps=tuple(sorted([*around, *steps], key=lambda step: (step.at, step.what is not TrailStepKind.LOADED))),
        external_id=recipient.external_id,
        time_zones=place.zones,
        zone_source=place.source if place.zones else None,
        narrower_hours=tuple(narrower_hours(workspace.narrower_hours, place.regions)),
    )


def _shared(tx: Transaction, campaign: Campaign) -> Sequence[TrailEntry]:
    """Return what happened to the campaign and its workspace that concerned the recipients."""
    moves = tx.trail.of_campaign(campaign.workspace_id, campaign.id, limit=_LATEST)
    workspace = tx.trail.of_workspace(campaign.workspace_id, limit=_LATEST)
    entries = [
        *(one for one in moves if one.what is not TrailStepKind.CAMPAIGN or one.state not in _WITHOUT_EFFECT),
        *(one for one in workspace if one.at >= campaign.created_at),
    ]
    return sorted(entries, key=lambda entry: entry.number)


def _loaded(campaign: Campaign, recipient: Recipient, *, ended_later: bool) -> Sequence[TrailStep]:
    begun = recipient.added_at or campaign.created_at
    loaded = TrailStep(
        at=begun,
        what=TrailStepKind.LOADED,
        rule=TrailRule.LOAD,
        state=RecipientStatus.PENDING.value,
        step=0,
        attempt=0,
    )
    if recipient.is_open or ended_later:
        return (loaded,)
    # It ended when it was loaded: no trail entry repeats that.
    at: datetime = recipient.ended_at or begun
    end = TrailStep(
        at=at,
        what=TrailStepKind.ENDED,
        rule=rule_of_recipient(recipient, TrailRule.LOAD),
        state=recipient.status.value,
        reason=recipient.reason,
    )
    return loaded, end


def _of_dispatch(dispatch: Dispatch, *, outcome_recorded: bool) -> Sequence[TrailStep]:
    intent = TrailStep(
        at=dispatch.created_at,
        what=TrailStepKind.INTENT,
        rule=TrailRule.PACE if dispatch.channel == "sms" else TrailRule.CONCURRENCY,
        state=DispatchState.DISPATCHING.value,
        until=dispatch.slot_at,
        dispatch_id=dispatch.id,
        call_id=dispatch.call_id,
        step=dispatch.step,
        attempt=dispatch.attempt,
        leg=dispatch.leg,
    )
    if outcome_recorded or dispatch.settled_at is None:
        return (intent,)
    outcome = TrailStep(
        at=dispatch.settled_at,
        what=TrailStepKind.OUTCOME,
        rule=rule_of_outcome(dispatch.state, dispatch.reason, TrailRule.PROVIDER_ANSWER),
        state=dispatch.state.value,
        # The reason of a failed call is written to the dispatch later; the call's end shows it.
        reason=dispatch.reason if dispatch.state is not DispatchState.ACCEPTED else None,
        dispatch_id=dispatch.id,
        call_id=dispatch.call_id,
        step=dispatch.step,
        attempt=dispatch.attempt,
        leg=dispatch.leg,
    )
    return intent, outcome


def _adds_to_dispatch(entry: TrailEntry) -> bool:
    """Return whether an entry adds to its dispatch: the end of a call that was never placed does not."""
    reported = entry.rule in {TrailRule.PROVIDER_REPORT, TrailRule.CALL_SILENCE}
    # A verdict of `calls.set_outcome` is on one that took place.
    return entry.what is not TrailStepKind.CALL_ENDED or reported or entry.state == CallStatus.COMPLETED


def _opted_out(entry: Unsubscribe) -> TrailStep:
    return TrailStep(
        at=entry.created_at,
        what=TrailStepKind.OPTED_OUT,
        rule=TrailRule.REGISTER,
        state=entry.scope,
        reason=entry.source,
    )


def _step(entry: TrailEntry) -> TrailStep:
    return TrailStep(
        at=entry.at,
        what=entry.what,
        rule=entry.rule,
        state=entry.state,
        reason=entry.reason,
        until=entry.due_at,
        dispatch_id=entry.dispatch_id,
        call_id=entry.call_id,
        step=entry.step,
        attempt=entry.attempt,
        leg=entry.leg,
        repeats=entry.repeats,
        actor=entry.actor,
    )
