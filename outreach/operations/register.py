"""The register of numbers that must not be contacted: what puts them there, and what passes it all the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.clock import to_text
from outreach.models.carriers import Channel
from outreach.models.dispatch import Dispatch
from outreach.models.message import Purpose
from outreach.models.trail import Rule
from outreach.models.unsubscribe import CALL, CARRIER, HELD, UNCLEAR, Unsubscribe
from outreach.operations import trail
from outreach.operations.common import campaign_unit, note, reply_settings_of
from outreach.operations.opting_out import end_waiting
from outreach.operations.recipients import put_recipient
from outreach.operations.trail import ENGINE
from outreach.protocols.storage import Transaction

UNCLEAR_REPLY: Final = "unclear_reply"
"""Why a recipient waits who wrote what may be meant as an opt-out."""

HOLD: Final = timedelta(days=1)
"""How long before a recipient that is held back is looked at again by itself; whoever decides has it looked at."""

_LONGEST_CODE: Final = 100
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
        trail.opted_out(tx, after, actor=actor)
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
        return lift_hold(tx, workspace_id, phone, now=now)
    tx.register.delete(workspace_id, phone)
    trail.opted_in(tx, entry, actor=actor, now=now)
    return True


def hold_back(tx: Transaction, workspace_id: str, phone: str, evidence: str, now: datetime) -> None:
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


def is_held(tx: Transaction, workspace_id: str, phone: str | None) -> bool:
    """Return whether campaigns are kept from a number until somebody has decided."""
    entry = tx.register.get(workspace_id, phone) if phone is not None else None
    return entry is not None and entry.scope == HELD


def lift_hold(tx: Transaction, workspace_id: str, phone: str, *, now: datetime) -> bool:
    """Let campaigns go on with a number that is held back; return whether it was."""
    if not is_held(tx, workspace_id, phone):
        return False
    tx.register.delete(workspace_id, phone)
    for waiting in tx.recipients.waiting_with(workspace_id, phone):
        campaign = tx.campaigns.get(workspace_id, waiting.campaign_id)
        if campaign is not None and waiting.reason == UNCLEAR_REPLY:
            again = attrs.evolve(waiting, due_at=now)
            put_recipient(tx, workspace_id, waiting, again, rule=Rule.REGISTER, now=now)
            tx.work.touch(campaign_unit(campaign), now)
    return True


def obstacle(tx: Transaction, workspace_id: str, channel: Channel, phone: str, purpose: Purpose) -> str | None:
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


def refused_by_provider(tx: Transaction, dispatch: Dispatch, error_code: str | None, now: datetime) -> None:
    """Take over an opt-out that a provider knows of, as its refusal or its receipt has told."""
    told = f"{dispatch.provider} refused dispatch {dispatch.id} as opted out"
    code = f" ({error_code[:_LONGEST_CODE]})" if error_code is not None else ""
    _take_over(tx, dispatch, CARRIER, f"{told}{code}, {to_text(now)}", now)


def asked_for_no_more(
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
    evidence = f"said in call {dispatch.call_id} ({dispatch.provider}{named}), {to_text(at)}"
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
        end_waiting(tx, dispatch.workspace_id, [dispatch.to], now=now)
        note(
            tx,
            now=now,
            workspace_id=dispatch.workspace_id,
            actor="engine",
            action="unsubscribes.add",
            subject=dispatch.id,
            detail=source,
        )
    return after != before
