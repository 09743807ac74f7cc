"""The register of numbers that must not be contacted: what puts them there, and what passes it all the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.clock import format_timestamp
from outreach.models.base import Channel
from outreach.models.dispatch import Dispatch
from outreach.models.message import Purpose
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.models.trail import TrailRule
from outreach.models.unsubscribe import CALL, CARRIER, HELD, UNCLEAR, Unsubscribe
from outreach.operations.campaigns import trail
from outreach.operations.campaigns.recipients import put_recipient
from outreach.operations.campaigns.trail import ENGINE
from outreach.operations.common import campaign_unit, record_audit, reply_settings_of
from outreach.operations.settling.recipient_outcomes import update_recipient
from outreach.policy.settlement import ended_recipient
from outreach.working_set import Transaction

UNCLEAR_REPLY: Final = "unclear_reply"
"""Why a recipient waits who wrote what may be meant as an opt-out."""

HELD_RECHECK_AFTER: Final = timedelta(days=1)
"""How long before a recipient that is held back is looked at again by itself; whoever decides has it looked at."""

_MAX_CODE_LENGTH: Final = 100
"""Characters of a provider's code that are kept as evidence."""


def put_on_register(tx: Transaction, entry: Unsubscribe, *, actor: str = ENGINE) -> Unsubscribe:
    """Put a number on the register, at once and for everything; return its entry as it is then.

    Args:
        tx: The transaction.
        entry: What is known of the opt-out.
        actor: Who does it; the engine where a contact or a provider has told it.
    """
    known = tx.register.get(entry.workspace_id, entry.phone)
    after = entry if known is None else known.merged(entry)
    if after != known:
        tx.register.put(after)
        trail.record_opt_out(tx, after, actor=actor)
    return after


def take_off_register(tx: Transaction, workspace_id: str, phone: str, *, now: datetime, actor: str = ENGINE) -> bool:
    """Take a number off the register; return whether it was there.

    Args:
        tx: The transaction.
        workspace_id: Whose register.
        phone: E.164.
        now: The present moment.
        actor: Who does it; the engine where the contact has written START.
    """
    entry = tx.register.get(workspace_id, phone)
    if entry is None:
        return False
    if entry.scope == HELD:
        return release_number(tx, workspace_id, phone, now=now)
    tx.register.delete(workspace_id, phone)
    trail.record_opt_in(tx, entry, actor=actor, now=now)
    return True


def hold_number(tx: Transaction, workspace_id: str, phone: str, evidence: str, now: datetime) -> None:
    """Keep campaigns from a number until somebody has decided what its message means; an entry that is there stays."""
    if tx.register.get(workspace_id, phone) is None:
        tx.register.put(
            Unsubscribe(
                workspace_id=workspace_id,
                phone=phone,
                scope=HELD,
                source=UNCLEAR,
                evidence=evidence,
                created_at=now,
            )
        )


def is_number_held(tx: Transaction, workspace_id: str, phone: str | None) -> bool:
    """Return whether campaigns are kept from a number until somebody has decided."""
    entry = tx.register.get(workspace_id, phone) if phone is not None else None
    return entry is not None and entry.scope == HELD


def release_number(tx: Transaction, workspace_id: str, phone: str, *, now: datetime) -> bool:
    """Let campaigns go on with a number that is held back; return whether it was."""
    if not is_number_held(tx, workspace_id, phone):
        return False
    tx.register.delete(workspace_id, phone)
    for waiting in tx.recipients.waiting_for_phone(workspace_id, phone):
        campaign = tx.campaigns.get(workspace_id, waiting.campaign_id)
        if campaign is not None and waiting.reason == UNCLEAR_REPLY:
            again = attrs.evolve(waiting, due_at=now)
            put_recipient(tx, workspace_id, waiting, again, rule=TrailRule.REGISTER, now=now)
            tx.work.schedule(campaign_unit(campaign), now)
    return True


def block_reason(tx: Transaction, workspace_id: str, channel: Channel, phone: str, purpose: Purpose) -> str | None:
    """Return why the register forbids a single message or call; None when it does not.

    The confirmation of an opt-out alone is made for a number on the register, and only as long as it is there. An
    answer to HELP goes there where the workspace says so.
    """
    stopped = bool(tx.register.stopped(workspace_id, channel, {phone}))
    if purpose == "opt_out_confirmation":
        return None if stopped else "opted_in"
    if purpose == "help" and stopped and reply_settings_of(tx, workspace_id).help_when_opted_out:
        return None
    return "opted_out" if stopped else None


def record_carrier_opt_out(tx: Transaction, dispatch: Dispatch, error_code: str | None, now: datetime) -> None:
    """Take over an opt-out that a provider knows of, as its refusal or its receipt has told."""
    told = f"{dispatch.provider} refused dispatch {dispatch.id} as opted out"
    code = f" ({error_code[:_MAX_CODE_LENGTH]})" if error_code is not None else ""
    _take_over(tx, dispatch, CARRIER, f"{told}{code}, {format_timestamp(now)}", now)


def record_opt_out_in_call(
    tx: Transaction, dispatch: Dispatch, at: datetime, provider_id: str | None, now: datetime
) -> bool:
    """Take over that somebody has said, in a call, that no more are wanted; return whether that is new.

    Args:
        tx: The transaction.
        dispatch: The one that the call was placed by.
        at: When it was told, by the provider's clock.
        provider_id: The provider's identifier of the call, as the event has it.
        now: The present moment.
    """
    call = provider_id or dispatch.provider_id
    named = "" if call is None else f" {call}"
    evidence = f"said in call {dispatch.call_id} ({dispatch.provider}{named}), {format_timestamp(at)}"
    return _take_over(tx, dispatch, CALL, evidence, now)


def _take_over(tx: Transaction, dispatch: Dispatch, source: str, evidence: str, now: datetime) -> bool:
    before = tx.register.get(dispatch.workspace_id, dispatch.to)
    after = put_on_register(
        tx,
        Unsubscribe(
            workspace_id=dispatch.workspace_id,
            phone=dispatch.to,
            scope="all",
            source=source,
            evidence=evidence,
            created_at=now,
        ),
    )
    if after != before:
        skip_waiting_recipients(tx, dispatch.workspace_id, [dispatch.to], now=now)
        record_audit(
            tx,
            now=now,
            workspace_id=dispatch.workspace_id,
            actor="engine",
            action="unsubscribes.add",
            subject=dispatch.id,
            detail=source,
        )
    return after != before


_GO_ON: Final = frozenset({CampaignStatus.ACTIVE, CampaignStatus.PAUSED})
"""Campaigns whose waiting recipients would be contacted again; those that are over close theirs themselves."""


def skip_waiting_recipients(tx: Transaction, workspace_id: str, phones: Iterable[str], *, now: datetime) -> None:
    """End the recipients that wait with numbers that are on the register, as skipped.

    Otherwise they would wait on, perhaps for weeks, and be skipped only when they are due. Who opts in again
    meanwhile stays skipped: an opt-out ends what was under way. Those that are pending are skipped at their turn, and
    what is in flight keeps its true outcome.
    """
    for phone in phones:
        for recipient in tx.recipients.waiting_for_phone(workspace_id, phone):
            campaign = tx.campaigns.get(workspace_id, recipient.campaign_id)
            if campaign is None or campaign.status not in _GO_ON:
                continue
            if tx.register.stopped(workspace_id, campaign.channel, {phone}):
                skipped = ended_recipient(recipient, RecipientStatus.SKIPPED, "opted_out", now)
                update_recipient(tx, recipient, skipped, campaign, rule=TrailRule.REGISTER, now=now)
