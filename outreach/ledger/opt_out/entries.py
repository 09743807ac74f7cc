"""The register of numbers that must not be contacted: adding, removing and checking entries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import attrs

from outreach.core.clock import format_timestamp
from outreach.ledger.campaigns import trail
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.campaigns.trail import ENGINE
from outreach.ledger.common import campaign_unit, record_audit, reply_settings_of
from outreach.ledger.settling.recipient_outcomes import update_recipient
from outreach.models.base import Channel
from outreach.models.dispatch import Dispatch
from outreach.models.message import Purpose
from outreach.models.states import UNCLEAR, CampaignStatus, RecipientStatus, TrailRule
from outreach.models.unsubscribe import CALL, CARRIER, HELD, Unsubscribe
from outreach.rules.deciding import UNCLEAR_REPLY
from outreach.rules.phones import is_erased
from outreach.rules.settlement import ended_recipient
from outreach.storage.unit_of_work import Transaction

_MAX_CODE_LENGTH: Final = 100


def put_on_register(tx: Transaction, entry: Unsubscribe, *, actor: str = ENGINE) -> Unsubscribe:
    """Put a number on the register, or merge the opt-out into its entry; return the entry."""
    known = tx.register.get(entry.workspace_id, entry.phone)
    after = entry if known is None else known.merged(entry)
    if after != known:
        tx.register.put(after)
    if _is_new(known, after):
        trail.record_opt_out(tx, after, actor=actor)
    return after


def _is_new(before: Unsubscribe | None, after: Unsubscribe) -> bool:
    """Return whether an entry is new or another one, not the same with more evidence."""
    return before is None or attrs.evolve(after, evidence=before.evidence, created_at=before.created_at) != before


def take_off_register(tx: Transaction, workspace_id: str, phone: str, *, now: datetime, actor: str = ENGINE) -> bool:
    """Take a number off the register; return whether it was there."""
    entry = tx.register.get(workspace_id, phone)
    if entry is None:
        return False
    if entry.scope == HELD:
        return release_number(tx, workspace_id, phone, now=now)
    tx.register.delete(workspace_id, phone)
    trail.record_opt_in(tx, entry, actor=actor, now=now)
    return True


def hold_number(tx: Transaction, workspace_id: str, phone: str, evidence: str, now: datetime) -> None:
    """Hold a number for review: campaigns do not contact it until somebody decides. An opt-out stops all then."""
    held = Unsubscribe(
        workspace_id=workspace_id, phone=phone, scope=HELD, source=UNCLEAR, evidence=evidence, created_at=now
    )
    known = tx.register.get(workspace_id, phone)
    after = held if known is None else known.merged(held)
    if after != known:
        tx.register.put(after)
    if _is_new(known, after):
        if after.scope == HELD:
            trail.record_hold(tx, after, now=now)
        else:
            trail.record_opt_out(tx, after, actor=ENGINE)


def is_number_held(tx: Transaction, workspace_id: str, phone: str | None) -> bool:
    """Return whether a number is under review."""
    entry = tx.register.get(workspace_id, phone) if phone is not None else None
    return entry is not None and entry.scope == HELD


def release_number(tx: Transaction, workspace_id: str, phone: str, *, now: datetime) -> bool:
    """End a number's review and wake its recipients; return whether it was under review."""
    if not is_number_held(tx, workspace_id, phone):
        return False
    tx.register.delete(workspace_id, phone)
    for waiting in tx.recipients.waiting_for_phone(workspace_id, phone):
        campaign = tx.campaigns.get(workspace_id, waiting.campaign_id)
        if campaign is not None and waiting.reason == UNCLEAR_REPLY.name:
            again = attrs.evolve(waiting, due_at=now)
            put_recipient(tx, workspace_id, waiting, again, rule=TrailRule.REGISTER, now=now)
            tx.work.schedule(campaign_unit(campaign), now)
    return True


def block_reason(tx: Transaction, workspace_id: str, channel: Channel, phone: str, purpose: Purpose) -> str | None:
    """Return why the register blocks a single message or call, or None.

    An opt-out confirmation goes only to numbers on the register, and a reply to HELP only if the settings allow it.
    """
    stopped = bool(tx.register.stopped(workspace_id, channel, {phone}))
    if purpose == "opt_out_confirmation":
        return None if stopped else "opted_in"
    if purpose == "help" and stopped and reply_settings_of(tx, workspace_id).help_when_opted_out:
        return None
    return "opted_out" if stopped else None


def record_carrier_opt_out(tx: Transaction, dispatch: Dispatch, error_code: str | None, now: datetime) -> bool:
    """Add an opt-out that a provider's refusal or receipt reported; return whether it is new.

    A START since the request outranks it: if the provider still blocks the number, the next request shows that.
    """
    newest_start = tx.inbound.last_keyword(dispatch.workspace_id, dispatch.to, "start")
    if newest_start is not None and dispatch.created_at < newest_start <= now:
        return False
    text = f"{dispatch.provider} refused dispatch {dispatch.id} as opted out"
    code = f" ({error_code[:_MAX_CODE_LENGTH]})" if error_code is not None else ""
    return _add_opt_out(tx, dispatch, CARRIER, f"{text}{code}, {format_timestamp(now)}", now)


def record_opt_out_in_call(
    tx: Transaction, dispatch: Dispatch, at: datetime, provider_id: str | None, now: datetime
) -> bool:
    """Add an opt-out that was spoken in a call; return whether it is new. `at` is the provider's time."""
    call = provider_id or dispatch.provider_id
    named = "" if call is None else f" {call}"
    evidence = f"said in call {dispatch.call_id} ({dispatch.provider}{named}), {format_timestamp(at)}"
    return _add_opt_out(tx, dispatch, CALL, evidence, now)


def _add_opt_out(tx: Transaction, dispatch: Dispatch, source: str, evidence: str, now: datetime) -> bool:
    if is_erased(dispatch.to):
        # The person was erased since: nobody knows the number any more.
        return False
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
    is_new = _is_new(before, after)
    if is_new:
        skip_waiting_recipients(tx, dispatch.workspace_id, [dispatch.to], now=now)
        record_audit(tx, dispatch.workspace_id, "unsubscribes.add", dispatch.id, actor="engine", now=now, detail=source)
    return is_new


_CONTINUING: Final = frozenset({CampaignStatus.ACTIVE, CampaignStatus.PAUSED})
"""Campaigns that would contact waiting recipients again; ended ones close theirs themselves."""


def skip_waiting_recipients(tx: Transaction, workspace_id: str, phones: Iterable[str], *, now: datetime) -> None:
    """Skip the recipients that wait with numbers on the register.

    They would only be skipped later. Pending ones are skipped at their turn; those in flight keep their true outcome.
    """
    for phone in phones:
        for recipient in tx.recipients.waiting_for_phone(workspace_id, phone):
            campaign = tx.campaigns.get(workspace_id, recipient.campaign_id)
            if campaign is None or campaign.status not in _CONTINUING:
                continue
            if tx.register.stopped(workspace_id, campaign.channel, {phone}):
                skipped = ended_recipient(recipient, RecipientStatus.SKIPPED, "opted_out", now)
                update_recipient(tx, recipient, skipped, campaign, rule=TrailRule.REGISTER, now=now)
