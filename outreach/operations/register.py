"""The register of numbers that must not be contacted: what puts them there, and what passes it all the same."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.clock import to_text
from outreach.models.carriers import Channel
from outreach.models.dispatch import Dispatch
from outreach.models.message import Purpose
from outreach.models.unsubscribe import CALL, CARRIER, Unsubscribe
from outreach.operations import trail
from outreach.operations.common import note, reply_settings_of
from outreach.operations.opting_out import end_waiting
from outreach.operations.trail import ENGINE
from outreach.working_set import Transaction

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
    tx.register.delete(workspace_id, phone)
    trail.opted_in(tx, entry, actor=actor, now=now)
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
