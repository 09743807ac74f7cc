"""Taking over the later data of a replaced database about the contacts of a restored campaign.

The replaced database has every request, because each was committed before it was made. So a contact that has requests
there which are unknown here is continued from its state there: nothing is sent twice, and flows and retries go on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.campaigns.trail import ENGINE
from outreach.ledger.common import campaign_of
from outreach.ledger.erasure.people import ERASED
from outreach.ledger.opt_out.entries import put_on_register
from outreach.ledger.settling.callback_events import merge_early_events
from outreach.ledger.settling.ledger import settle
from outreach.ledger.settling.skipping import BY_OPERATOR
from outreach.models.call import Call
from outreach.models.campaign import Counters, Recipient
from outreach.models.dispatch import FROM_ELSEWHERE, Dispatch, DispatchOutcome
from outreach.models.recovery import ContactedMeanwhile
from outreach.models.states import (
    CLOSABLE_RECIPIENT_STATUSES,
    MESSAGE_STATUS_RANK,
    DispatchState,
    MessageStatus,
    RecipientStatus,
    TrailRule,
    TrailStepKind,
)
from outreach.models.unsubscribe import KEYWORD, Unsubscribe, imports_alone
from outreach.models.work import WorkUnit
from outreach.protocols.voice import Analyser
from outreach.rules.phones import is_pseudonym
from outreach.rules.settlement import NOT_REACHED, Backoff, ended_recipient
from outreach.storage.unit_of_work import Transaction

_LEFT_OUT: Final = frozenset({"opted_out", BY_OPERATOR, ERASED})
"""Reasons why somebody was left out who must not be contacted after a restore either."""

_LOST: Final = DispatchOutcome(state=DispatchState.UNKNOWN, reason="worker_lost")


@attrs.frozen(kw_only=True)
class ReplacedContact:
    """A contact as the replaced database has it.

    Attributes:
        dispatches: Its requests, oldest first.
        calls: Their calls, with what was said in each, and since when it is polled, if it is.
        opt_out: The entry of its number on the register there; None if the campaign's channel is not stopped.
    """

    recipient: Recipient
    dispatches: Sequence[Dispatch]
    calls: Sequence[tuple[Call, str | None, datetime | None]]
    opt_out: Unsubscribe | None


def replaced_contacts(
    tx: Transaction, workspace_id: str, campaign_id: str, *, after: int, limit: int
) -> Sequence[ReplacedContact]:
    """Return contacts of a campaign by position, from behind `after` on, in a transaction of the replaced database."""
    recipients = tx.recipients.page(workspace_id, campaign_id, after=after, limit=limit)
    tx.dispatches.prefetch_of_recipients((workspace_id, campaign_id, one.position) for one in recipients)
    phones = {one.phone for one in recipients if one.phone is not None}
    channel = campaign_of(tx, workspace_id, campaign_id).channel
    stopped = {
        phone: tx.register.get(workspace_id, phone) for phone in tx.register.stopped(workspace_id, channel, phones)
    }
    found = []
    for recipient in recipients:
        dispatches = tx.dispatches.of_recipient(workspace_id, campaign_id, recipient.position)
        ids = [one.call_id for one in dispatches if one.call_id is not None]
        said = tx.calls.transcripts(workspace_id, ids)
        calls = [
            (call, said.get(call.id), None if (work := tx.work.get(_unit_of(call))) is None else work.due_at)
            for one in ids
            if (call := tx.calls.get(workspace_id, one)) is not None
        ]
        found.append(
            ReplacedContact(
                recipient=recipient,
                dispatches=tuple(dispatches),
                calls=calls,
                opt_out=stopped.get(recipient.phone or ""),
            )
        )
    return found


def compare_slice(tx: Transaction, workspace_id: str, contacts: Sequence[ReplacedContact]) -> ContactedMeanwhile:
    """Return what `take_over_slice` would do with these contacts."""
    return sum((_Comparison(tx, workspace_id, one).counts for one in contacts), ContactedMeanwhile())


def take_over_slice(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    contacts: Sequence[ReplacedContact],
    *,
    backoff: Backoff,
    analyser: Analyser,
    now: datetime,
    actor: str = ENGINE,
) -> ContactedMeanwhile:
    """Continue contacts from their state in the replaced database; return how many.

    A repetition changes nothing.
    """
    found, change, taken = ContactedMeanwhile(), Counters(), list[Dispatch]()
    requests = [one for contact in contacts for one in contact.dispatches]
    tx.callbacks.prefetch_waiting((workspace_id, one.provider, one.provider_id) for one in requests if one.provider_id)
    for contact in contacts:
        compared = _Comparison(tx, workspace_id, contact)
        found += compared.counts
        if compared.opt_out is not None:
            # Its request may be in flight and wait again later.
            put_on_register(tx, compared.opt_out, actor=actor)
        if compared.current is None or not compared.differs:
            continue
        _take_over_requests(tx, workspace_id, compared)
        after = compared.current
        if compared.requests or compared.reported or contact.recipient.reason in _LEFT_OUT:
            after = attrs.evolve(after, **{name: getattr(contact.recipient, name) for name in _STATE})
        if compared.opt_out is not None and after.status in CLOSABLE_RECIPIENT_STATUSES:
            after = ended_recipient(after, RecipientStatus.SKIPPED, "opted_out", now)
        change += put_recipient(
            tx, workspace_id, compared.current, after, rule=TrailRule.OPERATOR, now=now, actor=actor
        )
        taken += compared.requests
    tx.campaigns.add_counters(workspace_id, campaign_id, change)
    for dispatch in taken:
        if dispatch.state is DispatchState.DISPATCHING:
            # The process that sent it is gone.
            settle(tx, workspace_id, dispatch.id, _LOST, backoff=backoff, now=now)
        merge_early_events(tx, dispatch, backoff=backoff, analyser=analyser, now=now)
    return found


_STATE: Final = (
    *("status", "reason", "due_at", "step", "attempts", "tries", "leg", "caller_id", "dispatched", "successful"),
    "ended_at",
)
"""The fields of a contact that change after it was loaded."""


class _Comparison:
    """One contact in both databases.

    Attributes:
        current: The contact here; None if only the replaced database has it.
        new: Requests that are unknown here, oldest first.
        settled: Requests without an outcome here that have one there.
        requests: Both.
        reported: Requests with an outcome here whose reports there are later.
        opt_out: The entry on the register there, unless the person has opted in here since.
    """

    def __init__(self, tx: Transaction, workspace_id: str, contact: ReplacedContact) -> None:
        self.current = _same_contact(tx, workspace_id, contact.recipient)
        if self.current is not None and self.current.position != contact.recipient.position:
            contact = _moved(contact, self.current.position)
        there = contact.recipient
        self.contact = contact
        ours = {one.id: one for one in tx.dispatches.of_recipient(workspace_id, there.campaign_id, there.position)}
        self.new = [one for one in contact.dispatches if one.id not in ours]
        self.settled = [
            one for one in contact.dispatches if one.id in ours and ours[one.id].unsettled and not one.unsettled
        ]
        self.requests = [*self.new, *self.settled]
        ended = {call.id for call, *_ in contact.calls if not call.is_open}
        self.reported = [
            one
            for one in contact.dispatches
            if one.id in ours and not ours[one.id].unsettled and _is_later(tx, one, ours[one.id], ended)
        ]
        self.opt_out = None if contact.opt_out is None else _standing(tx, _by_number(contact.opt_out, self.current))
        self._sent_here = bool(ours.keys() - {one.id for one in contact.dispatches})

    @property
    def differs(self) -> bool:
        """Whether the contact is continued from its state there."""
        return not self._sent_here and (bool(self.requests or self.reported) or self._is_left_out)

    @property
    def _is_left_out(self) -> bool:
        there, here = self.contact.recipient, self.current
        skipped = there.status is RecipientStatus.SKIPPED and there.reason in _LEFT_OUT
        return (
            here is not None
            and here.is_open
            and (skipped or (self.opt_out is not None and here.status in CLOSABLE_RECIPIENT_STATUSES))
        )

    @property
    def counts(self) -> ContactedMeanwhile:
        """The part of the result that comes from this contact."""
        if self.current is None:
            return ContactedMeanwhile(missing=1)
        requests = self.requests
        if self._sent_here:
            return ContactedMeanwhile(kept=int(bool(requests)))
        if not requests:
            reported = bool(self.reported)
            return ContactedMeanwhile(reported=int(reported), left_out=int(self._is_left_out and not reported))
        return ContactedMeanwhile(
            contacts=1,
            sent=int(any(one.state not in NOT_REACHED for one in requests)),
            unknown=int(any(one.unsettled for one in requests)),
        )


def _by_number(opt_out: Unsubscribe, here: Recipient | None) -> Unsubscribe:
    """Return an opt-out by the number of the contact here; there it may be hashed, with a salt that is unknown here."""
    known = None if here is None else here.phone
    return attrs.evolve(opt_out, phone=known) if known is not None and is_pseudonym(opt_out.phone) else opt_out


def _standing(tx: Transaction, opt_out: Unsubscribe) -> Unsubscribe | None:
    """Return an opt-out of the replaced database, or its part that no later opt-in here takes back; None if none."""
    phone, since = opt_out.phone, opt_out.created_at
    for entry in tx.trail.opt_outs_of_person(opt_out.workspace_id, phone, limit=1):
        if entry.what is TrailStepKind.OPTED_IN and entry.at > since:
            return None
    # A START before the opt-out was taken over had no entry to remove.
    start = tx.inbound.last_keyword(opt_out.workspace_id, phone, "start")
    return imports_alone(opt_out) if opt_out.source == KEYWORD and start is not None and start > since else opt_out


def _same_contact(tx: Transaction, workspace_id: str, there: Recipient) -> Recipient | None:
    """Return the contact here.

    A contact from before the backup has the same place and time of addition in both. One that was added after it, and
    again after the restore, has the same number alone.
    """
    here = tx.recipients.get(workspace_id, there.campaign_id, there.position)
    if here is not None and here.added_at == there.added_at:
        return here
    if there.phone is None:
        return None
    same = tx.recipients.by_phone(workspace_id, there.campaign_id, there.phone)
    return next((one for one in same if one.reason != "duplicate"), None)


def _moved(contact: ReplacedContact, position: int) -> ReplacedContact:
    return attrs.evolve(
        contact,
        recipient=attrs.evolve(contact.recipient, position=position),
        dispatches=[attrs.evolve(one, position=position) for one in contact.dispatches],
        calls=[(attrs.evolve(call, position=position), said, since) for call, said, since in contact.calls],
    )


def _is_later(tx: Transaction, there: Dispatch, here: Dispatch, ended: Collection[str]) -> bool:
    if there.call_id is not None:
        call = tx.calls.get(here.workspace_id, there.call_id)
        return there.call_id in ended and call is not None and call.is_open
    reports = [MESSAGE_STATUS_RANK[one.report or MessageStatus.ACCEPTED] for one in (there, here)]
    return reports[0] > reports[1]


def _take_over_requests(tx: Transaction, workspace_id: str, compared: _Comparison) -> None:
    for call, said, polled_since in compared.contact.calls:
        known = tx.calls.get(workspace_id, call.id)
        if known is None:
            tx.calls.insert(call)
        elif known.is_open:
            tx.calls.update(call)
        if known is None or known.is_open:
            tx.work.schedule(_unit_of(call), polled_since)
        if said is not None:
            tx.calls.put_transcript(call, said)
    # An open request here has to end before another one of the same step begins.
    for dispatch in (*compared.settled, *compared.reported):
        tx.dispatches.update(dispatch)
    for dispatch in compared.new:
        tx.dispatches.insert(attrs.evolve(dispatch, epoch=FROM_ELSEWHERE))


def _unit_of(call: Call) -> WorkUnit:
    return WorkUnit("call", call.workspace_id, call.id)
