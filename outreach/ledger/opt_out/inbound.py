"""Inbound messages: stored once, obeyed in the same transaction, answered at most once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

from outreach.core.clock import IdSource, format_timestamp
from outreach.ledger.campaigns import trail
from outreach.ledger.common import record_audit, reply_settings_of
from outreach.ledger.leases.clock_steps import latest_time
from outreach.ledger.opt_out.entries import (
    block_reason,
    hold_number,
    put_on_register,
    release_number,
    skip_waiting_recipients,
    take_off_register,
)
from outreach.ledger.sending.intents import keep_chosen_number
from outreach.ledger.sending.singles import create_message
from outreach.models.base import CarrierName
from outreach.models.message import InboundMessage, Message
from outreach.models.settings import ReplyPurpose
from outreach.models.states import MessageStatus, WorkspaceMode
from outreach.models.unsubscribe import KEYWORD, Unsubscribe, imports_alone, without_keyword_trace
from outreach.models.work import IdempotencyRecord
from outreach.models.workspace import Workspace
from outreach.protocols.adapter import InboundMessageEvent
from outreach.rules.opt_out.keywords import KeywordMatch, carrier_replies_to, keyword_of, may_mean_stop
from outreach.rules.opt_out.words import words_of
from outreach.rules.phones import normalise_single, parse_inbound_sender
from outreach.rules.rendering import CONFIRMATION_DEADLINE, HELP_INTERVAL, reply_text
from outreach.rules.segments import quoted, storable
from outreach.storage.unit_of_work import AlreadyExists, Transaction

_MAX_EVIDENCE_LENGTH: Final = 200

_REMEMBERED: Final = "inbound.start"
_FOR_GOOD: Final = datetime(9999, 1, 1, tzinfo=UTC)

_MAX_NUMBER_LENGTH: Final = 64
_MAX_ID_LENGTH: Final = 255


def receive(
    tx: Transaction,
    workspace: Workspace,
    text: InboundMessageEvent,
    *,
    provider: str | None,
    answers_by: CarrierName | None,
    carrier_start_words: Collection[str] | None,
    ids: IdSource,
    now: datetime,
) -> InboundMessage | None:
    """Store and obey a message to a workspace's number; return it, or None for a duplicate.

    A repeated START is one also after the message was deleted by the workspace's retention (`remember_opt_in`).

    STOP is in force with this transaction; START lifts only what a keyword set. They and unclear messages count by the
    time they were written; at the same moment START loses. The reply is queued in the same transaction.

    Args:
        tx: The transaction.
        workspace: The workspace that owns the number.
        text: The message. Without a provider's identifier, duplicates are not detected.
        provider: The carrier; None for a program that names none.
        answers_by: The carrier of a reply; None leaves it to the number that was written to.
        carrier_start_words: The START words of a carrier that answers keywords itself; None if it does not. If it
            does, only a STOP outside the carrier's own words is answered here
            (`rules.opt_out.keywords.carrier_replies_to`), and no other START lifts an entry: the carrier's own block
            would remain.
        ids: The source of identifiers.
        now: The time of the commit.
    """
    parsed = parse_inbound_sender(text.from_number, workspace.default_region)
    if parsed.phone is None:
        sender = storable(text.from_number[:_MAX_NUMBER_LENGTH])
    else:
        # So that the reply belongs to the request that it answers.
        sender = tx.dispatches.dialled_spelling(workspace.id, parsed.phone)
    entry = tx.register.get(workspace.id, sender)
    opted_out_by_keyword = entry is not None and entry.source == KEYWORD
    reading = _match_keyword(text, opted_out_by_keyword=opted_out_by_keyword)
    if parsed.channel is not None and reading is not None and reading.keyword != "stop":
        # STOP on another channel counts for all; START there is no consent to SMS or calls.
        reading = None
    # Obeying it would make sends that the carrier still blocks, and an entry that no START lifts.
    lifts_nothing = (
        carrier_start_words is not None
        and reading is not None
        and _is_not_carrier_start(text, reading, carrier_start_words)
    )
    if lifts_nothing:
        reading = None
    message = InboundMessage(
        id=ids(),
        workspace_id=workspace.id,
        from_number=sender,
        to=storable(text.to[:_MAX_NUMBER_LENGTH]),
        body=storable(text.body),
        provider=provider,
        provider_id=storable(text.provider_id[:_MAX_ID_LENGTH]) or None,
        media=tuple(storable(link) for link in text.media),
        keyword=None if reading is None else reading.keyword,
        unclear=reading is None and (may_mean_stop(text.body) or (lifts_nothing and opted_out_by_keyword)),
        # A sender's clock that is fast must not make a later keyword look older.
        written_at=min(text.at, now),
        received_at=now,
    )
    if message.keyword == "start" and _is_remembered(tx, message):
        return None
    try:
        tx.inbound.insert(message)
    except AlreadyExists:
        return None
    trail.record_reply(tx, message)
    for dispatch in tx.dispatches.to_person(workspace.id, sender, limit=1) if parsed.phone is not None else ():
        # The number that somebody answers to is the one that wrote.
        keep_chosen_number(tx, dispatch, message.to)
    if message.unclear and parsed.phone is not None and not _is_before_start(tx, message, now):
        hold_number(tx, workspace.id, sender, _evidence(message, None), now)
    if parsed.phone is not None and reading is not None:
        answer = _apply_keyword(tx, message, reading, entry, now)
        # A carrier that answers by itself knows only its own words of STOP: others are confirmed here.
        answered = text.replied_by_carrier or (
            carrier_start_words is not None and (reading.keyword != "stop" or carrier_replies_to(text.body))
        )
        # A reply by SMS would come from a number that the person has not written to.
        if answer is not None and parsed.channel is None and not answered:
            _reply(tx, workspace, message, answer, answers_by, ids=ids, now=now)
    return message


def may_opt_out(text: InboundMessageEvent) -> bool:
    """Return whether a message is an opt-out, or may be one."""
    reading = _match_keyword(text, opted_out_by_keyword=False)
    return (reading is not None and reading.keyword == "stop") or may_mean_stop(text.body)


def remember_opt_in(tx: Transaction, message: InboundMessage) -> None:
    """Remember a message that is about to be deleted, if it could take a number off the register.

    A signed callback can be repeated for as long as its secret is valid, and the register outlives messages.
    """
    reading = keyword_of(message.body, opted_out_by_keyword=True)
    # The text of an erased person is empty.
    may_opt_in = message.keyword == "start" or not message.body or (reading is not None and reading.keyword == "start")
    key = _remembered_as(message)
    if not may_opt_in or key is None:
        return
    tx.requests.put_stored(
        IdempotencyRecord(
            workspace_id=message.workspace_id,
            operation=_REMEMBERED,
            key=key,
            fingerprint=key,
            token="",
            answer=None,
            location=None,
            locked_until=message.received_at,
            expires_at=_FOR_GOOD,
        )
    )


def _is_remembered(tx: Transaction, message: InboundMessage) -> bool:
    key = _remembered_as(message)
    return key is not None and tx.requests.stored(message.workspace_id, _REMEMBERED, key) is not None


def _remembered_as(message: InboundMessage) -> str | None:
    """Return a hash of the provider's identifier of a message; None without one."""
    if message.provider is None or message.provider_id is None:
        return None
    return hashlib.sha256(f"{message.provider} {message.provider_id}".encode()).hexdigest()


def _match_keyword(text: InboundMessageEvent, *, opted_out_by_keyword: bool) -> KeywordMatch | None:
    """Return the keyword: an opt-out by our reading first, else the carrier's reading, else ours."""
    ours = keyword_of(text.body, opted_out_by_keyword=opted_out_by_keyword)
    if text.keyword is None or (ours is not None and ours.keyword == "stop"):
        return ours
    return KeywordMatch(text.keyword, "exact")


def _is_not_carrier_start(
    text: InboundMessageEvent, reading: KeywordMatch, carrier_start_words: Collection[str]
) -> bool:
    """Return whether a message is START by our reading alone."""
    return (
        reading.keyword == "start"
        and text.keyword != "start"
        and " ".join(words_of(text.body)) not in carrier_start_words
    )


def _apply_keyword(
    tx: Transaction, message: InboundMessage, reading: KeywordMatch, entry: Unsubscribe | None, now: datetime
) -> ReplyPurpose | None:
    """Act on a keyword; return the purpose of the reply, None for no reply."""
    if reading.keyword == "stop":
        return "opt_out_confirmation" if _stop(tx, message, reading, entry, now) else None
    if reading.keyword == "start":
        return "opt_in_confirmation" if _start(tx, message, entry, now) else None
    answered = _last_help(tx, message, now)
    return "help" if answered is None or answered <= now - HELP_INTERVAL else None


def _last_help(tx: Transaction, message: InboundMessage, now: datetime) -> datetime | None:
    """Return when the help text was last sent to a number; None if it never was."""
    newest = tx.messages.last_reply(message.workspace_id, message.from_number, "help")
    if newest is None or newest <= now:
        return newest
    # It was sent before the clock was set back, and others may have been sent since.
    since = tx.messages.last_reply(message.workspace_id, message.from_number, "help", until=now)
    made = latest_time(tx, newest, now)
    return made if since is None else max(made, since)


def _is_before_start(tx: Transaction, message: InboundMessage, now: datetime) -> bool:
    """Return whether a message was written before a START that has arrived already."""
    newest_start = tx.inbound.last_keyword(message.workspace_id, message.from_number, "start")
    # A START from the future dates from before a clock step: which came later is unknown.
    return newest_start is not None and message.written_at < newest_start <= now


def _stop(
    tx: Transaction, message: InboundMessage, reading: KeywordMatch, entry: Unsubscribe | None, now: datetime
) -> bool:
    """Put a number on the register; return whether it could be messaged before."""
    if _is_before_start(tx, message, now):
        return False
    after = put_on_register(
        tx,
        Unsubscribe(
            workspace_id=message.workspace_id,
            phone=message.from_number,
            scope="all",
            source=KEYWORD,
            evidence=_evidence(message, reading),
            created_at=now,
        ),
    )
    if after != entry:
        skip_waiting_recipients(tx, message.workspace_id, [message.from_number], now=now)
        _audit(tx, message, "unsubscribes.add", now)
    return entry is None or not entry.stops("sms")


def _start(tx: Transaction, message: InboundMessage, entry: Unsubscribe | None, now: datetime) -> bool:
    """Take a number off the register if a keyword put it there; return whether that was so.

    A START changes nothing if the person has written a STOP since, or what may be one.
    """
    newest_stop = tx.inbound.last_keyword(message.workspace_id, message.from_number, "stop")
    newest_unclear = tx.inbound.last_unclear(message.workspace_id, message.from_number)
    if any(newest is not None and newest >= message.written_at for newest in (newest_stop, newest_unclear)):
        return False
    if release_number(tx, message.workspace_id, message.from_number, now=now):
        # The START also answers the message under review.
        return False
    if entry is None:
        return False
    if entry.source != KEYWORD:
        left = without_keyword_trace(entry)
        if left != entry:
            tx.register.put(left)
        return False
    imported = imports_alone(entry)
    if imported is not None:
        # START takes back what the person wrote, not what a list says.
        tx.register.put(imported)
        return False
    take_off_register(tx, message.workspace_id, message.from_number, now=now)
    _audit(tx, message, "unsubscribes.remove", now)
    return True


def _evidence(message: InboundMessage, reading: KeywordMatch | None) -> str:
    carrier = " ".join(name for name in (message.provider, message.provider_id) if name) or "no carrier"
    written = quoted(message.body, _MAX_EVIDENCE_LENGTH)
    tier = "unclear" if reading is None else reading.tier
    return f"wrote {written} ({tier}; {carrier}), {format_timestamp(message.written_at)}"


def _audit(tx: Transaction, message: InboundMessage, action: str, now: datetime) -> None:
    record_audit(tx, message.workspace_id, action, message.id, actor="engine", now=now, detail=KEYWORD)


def _reply(
    tx: Transaction,
    workspace: Workspace,
    message: InboundMessage,
    purpose: ReplyPurpose,
    answers_by: CarrierName | None,
    *,
    ids: IdSource,
    now: datetime,
) -> None:
    """Queue the reply from the number that was written to, by the same carrier, if allowed."""
    settings = reply_settings_of(tx, workspace.id)
    carrier, sender = _reply_route(tx, workspace, message, answers_by)
    send_until = message.written_at + CONFIRMATION_DEADLINE if purpose != "help" else None
    late = send_until is not None and now >= send_until
    if not settings.enabled or carrier is None or late:
        return
    if block_reason(tx, workspace.id, "sms", message.from_number, purpose) is not None:
        return
    reply = reply_text(settings, purpose, workspace.name)
    create_message(
        tx,
        Message(
            id=ids(),
            workspace_id=workspace.id,
            to=message.from_number,
            from_number=sender,
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


def _reply_route(
    tx: Transaction, workspace: Workspace, message: InboundMessage, answers_by: CarrierName | None
) -> tuple[CarrierName | None, str]:
    """Return the carrier and sender of a reply; no carrier if none is known."""
    # A short code is not a phone number and is used as it is.
    sender = normalise_single(message.to, workspace.default_region) or message.to
    if answers_by is not None:
        return answers_by, sender
    number = tx.numbers.of_line(workspace.id, sender)
    if number is not None and number.carrier is not None:
        return number.carrier, sender
    return ("twilio" if workspace.mode is WorkspaceMode.SANDBOX else None), sender
