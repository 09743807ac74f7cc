"""Messages that people write to us: stored once, obeyed at once, answered at most once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from outreach.clock import to_text
from outreach.ids import IdSource
from outreach.models.carriers import CARRIERS, CarrierName
from outreach.models.message import InboundMessage, Message, ReplyPurpose
from outreach.models.states import MessageStatus, WorkspaceMode
from outreach.models.unsubscribe import KEYWORD, Unsubscribe
from outreach.models.workspace import Workspace
from outreach.operations import trail
from outreach.operations.common import note, reply_settings_of
from outreach.operations.opting_out import end_waiting
from outreach.operations.register import hold_back, lift_hold, obstacle, put_on_register, take_off_register
from outreach.operations.singles import create_message
from outreach.policy.keywords import Reading, carriers_answer, keyword_of, may_mean_stop
from outreach.policy.phones import normalise
from outreach.policy.replies import CONFIRM_WITHIN, HELP_EVERY, reply_text
from outreach.policy.senders import sender_of
from outreach.policy.texts import quoted, storable
from outreach.policy.words import words_of
from outreach.protocols.adapter import InboundText
from outreach.protocols.storage import AlreadyThere, Transaction

_LONGEST_EVIDENCE: Final = 200
"""Characters of a message that the register keeps."""

_LONGEST_NUMBER: Final = 64
_LONGEST_ID: Final = 255


def receive(
    tx: Transaction,
    workspace: Workspace,
    text: InboundText,
    *,
    provider: str | None,
    own_starts: Collection[str] | None,
    ids: IdSource,
    now: datetime,
) -> InboundMessage | None:
    """Take in a message that somebody wrote to a workspace's number; return it, None for one that is there already.

    STOP is in force with this transaction, so that nothing that commits later reaches the number; a START lifts only
    what a keyword set. Both count in the order in which they were written, whatever order they arrive in; of a STOP
    and a START of one moment the STOP is the later one. The answer is queued in the same transaction.

    Args:
        tx: The transaction.
        workspace: Whose number was written to.
        text: The message. One without an identifier of its provider is taken in as often as it comes.
        provider: The carrier that brings it; None for a program that names none.
        own_starts: What the carrier takes for START where it answers STOP, START and HELP by itself, at the number that
            was written to; None where it does not. Where it does, nothing is answered here but a STOP that is none of
            the carriers' words (`policy.keywords.carriers_answer`), and no other START lifts an entry: the carrier's
            own block would stay.
        ids: Where identifiers come from.
        now: The time of the commit.
    """
    who = sender_of(text.sender, workspace.default_region)
    sender = who.phone or storable(text.sender[:_LONGEST_NUMBER])
    entry = tx.register.get(workspace.id, sender)
    opted_out_by_keyword = entry is not None and entry.source == KEYWORD
    reading = _read(text, opted_out_by_keyword=opted_out_by_keyword)
    if who.channel is not None and reading is not None and reading.keyword != "stop":
        # Whoever writes STOP on another channel wants no more from us; a START there is none for SMS and calls.
        reading = None
    # To obey it would ask the carrier for what it refuses, and make the entry one that no START lifts.
    lifts_nothing = own_starts is not None and reading is not None and _is_no_own_start(text, reading, own_starts)
    if lifts_nothing:
        reading = None
    message = InboundMessage(
        id=ids(),
        workspace_id=workspace.id,
        sender=sender,
        to=storable(text.to[:_LONGEST_NUMBER]),
        body=storable(text.body),
        provider=provider,
        provider_id=storable(text.provider_id[:_LONGEST_ID]) or None,
        keyword=None if reading is None else reading.keyword,
        unclear=reading is None and (may_mean_stop(text.body) or (lifts_nothing and opted_out_by_keyword)),
        # A clock that goes before ours must not make a later keyword look the older one.
        written_at=min(text.at, now),
        received_at=now,
    )
    try:
        tx.inbound.insert(message)
    except AlreadyThere:
        return None
    trail.replied(tx, message)
    if message.unclear and who.phone is not None:
        hold_back(tx, workspace.id, sender, _evidence(message, None), now)
    if who.phone is not None and reading is not None:
        answer = _obey(tx, message, reading, entry, now)
        # A carrier that answers by itself knows its own words of STOP only: what else is one is ours to confirm.
        answered = text.answered or (
            own_starts is not None and (reading.keyword != "stop" or carriers_answer(text.body))
        )
        # An answer by SMS would come from a number that the person has not written to.
        if answer is not None and who.channel is None and not answered:
            _reply(tx, workspace, message, answer, ids=ids, now=now)
    return message


def _read(text: InboundText, *, opted_out_by_keyword: bool) -> Reading | None:
    """Return what a message wants: an opt-out in anybody's reading, else what the carrier took it for, else ours."""
    ours = keyword_of(text.body, opted_out_by_keyword=opted_out_by_keyword)
    if text.keyword is None or (ours is not None and ours.keyword == "stop"):
        return ours
    return Reading(text.keyword, "exact")


def _is_no_own_start(text: InboundText, reading: Reading, own_starts: Collection[str]) -> bool:
    """Return whether a message is a START to us alone: the carrier neither says that it took it for one nor does so."""
    return reading.keyword == "start" and text.keyword != "start" and " ".join(words_of(text.body)) not in own_starts


def _obey(
    tx: Transaction, message: InboundMessage, reading: Reading, entry: Unsubscribe | None, now: datetime
) -> ReplyPurpose | None:
    """Do what a message wants; return what is to be answered, None for nothing."""
    if reading.keyword == "stop":
        return "opt_out_confirmation" if _stop(tx, message, reading, entry, now) else None
    if reading.keyword == "start":
        return "opt_in_confirmation" if _start(tx, message, entry, now) else None
    answered = tx.messages.last_reply(message.workspace_id, message.sender, "help")
    return "help" if answered is None or answered <= now - HELP_EVERY else None


def _stop(tx: Transaction, message: InboundMessage, reading: Reading, entry: Unsubscribe | None, now: datetime) -> bool:
    """Put a number on the register; return whether messages could reach it before."""
    newest_start = tx.inbound.last_keyword(message.workspace_id, message.sender, "start")
    # A START from ahead of now was taken in before the clock was set back: nobody can say that it is the later one.
    if newest_start is not None and message.written_at < newest_start <= now:
        return False
    after = put_on_register(
        tx,
        Unsubscribe(
            workspace_id=message.workspace_id,
            phone=message.sender,
            scope="all",
            source=KEYWORD,
            evidence=_evidence(message, reading),
            created_at=now,
        ),
    )
    if after != entry:
        end_waiting(tx, message.workspace_id, [message.sender], now=now)
        _note(tx, message, "unsubscribes.add", now)
    return entry is None or not entry.stops("sms")


def _start(tx: Transaction, message: InboundMessage, entry: Unsubscribe | None, now: datetime) -> bool:
    """Take a number off the register that a keyword put there; return whether it was so."""
    if lift_hold(tx, message.workspace_id, message.sender, now=now):
        # Whoever writes START has decided what the earlier message meant.
        return False
    newest_stop = tx.inbound.last_keyword(message.workspace_id, message.sender, "stop")
    if entry is None or entry.source != KEYWORD or (newest_stop is not None and newest_stop >= message.written_at):
        return False
    take_off_register(tx, message.workspace_id, message.sender, now=now)
    _note(tx, message, "unsubscribes.remove", now)
    return True


def _evidence(message: InboundMessage, reading: Reading | None) -> str:
    carrier = " ".join(name for name in (message.provider, message.provider_id) if name) or "no carrier"
    written = quoted(message.body, _LONGEST_EVIDENCE)
    tier = "unclear" if reading is None else reading.tier
    return f"wrote {written} ({tier}; {carrier}), {to_text(message.written_at)}"


def _note(tx: Transaction, message: InboundMessage, action: str, now: datetime) -> None:
    note(
        tx,
        now=now,
        workspace_id=message.workspace_id,
        actor="engine",
        action=action,
        subject=message.id,
        detail=KEYWORD,
    )


def _reply(
    tx: Transaction,
    workspace: Workspace,
    message: InboundMessage,
    purpose: ReplyPurpose,
    *,
    ids: IdSource,
    now: datetime,
) -> None:
    """Queue the answer, from the number that was written to and by the same carrier; or none where it may not go."""
    settings = reply_settings_of(tx, workspace.id)
    carrier, sender = _way_back(tx, workspace, message)
    send_until = message.written_at + CONFIRM_WITHIN if purpose != "help" else None
    late = send_until is not None and now >= send_until
    if not settings.enabled or carrier is None or late:
        return
    if obstacle(tx, workspace.id, "sms", message.sender, purpose) is not None:
        return
    reply = reply_text(settings, purpose, workspace.name)
    create_message(
        tx,
        Message(
            id=ids(),
            workspace_id=workspace.id,
            to=message.sender,
            sender=sender,
            carrier=carrier,
            body=reply.text,
            segments=reply.segments,
            status=MessageStatus.QUEUED,
            purpose=purpose,
            send_until=send_until,
            created_at=now,
        ),
        now=now,
    )


def _way_back(tx: Transaction, workspace: Workspace, message: InboundMessage) -> tuple[CarrierName | None, str]:
    """Return the carrier and the number of ours that an answer goes by; no carrier when none can be told."""
    # A short code is no phone number, and is sent from as it is.
    sender = normalise(message.to, workspace.default_region) or message.to
    for name in CARRIERS:
        if name == message.provider:
            return name, sender
    number = tx.numbers.by_phone(workspace.id, sender)
    if number is not None and number.carrier is not None:
        return number.carrier, sender
    return ("twilio" if workspace.mode is WorkspaceMode.SANDBOX else None), sender
