"""Intents: dispatches, committed before their requests start, from which number, at which pace, with which permits.

docs/delivery-contract.md#rule-1. Each worker's row says how many permits it may have until its next heartbeat, so that
no two count on the same ones, however late one of them detects the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

import attrs

from outreach.core.copying import copy_with
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns.recipients import keep_sender, put_recipient, unchanged_recipient
from outreach.ledger.common import campaign_unit, require_worker, workspace_of
from outreach.ledger.leases.clock_steps import latest_time
from outreach.ledger.opt_out.entries import block_reason, is_number_held
from outreach.ledger.provider_throttles import throttle_of_campaign
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.plans import Intent, Postponement, SenderPace, SenderPaces, Wave
from outreach.models.resources import Number
from outreach.models.states import (
    CallStatus,
    CampaignStatus,
    DispatchState,
    RecipientStatus,
    TrailRule,
    WorkspaceStatus,
)
from outreach.models.work import CampaignRunState, WorkUnit
from outreach.rules.deciding import FREQUENCY_WINDOW, UNCLEAR_REPLY, next_caller_id, next_slot, spacing
from outreach.rules.free_first import FreeFirst
from outreach.rules.numbering import spellings
from outreach.rules.opening import opening_state
from outreach.rules.phones import MAX_NUMBER_WAIT, NUMBER_BUSY, is_service, normalise, normalise_single
from outreach.rules.settlement import second_leg_deadline
from outreach.storage.unit_of_work import Transaction

CAP_RECHECK_AFTER: Final = timedelta(minutes=1)
"""How soon a capped number is checked again while a request in flight may turn out not to count."""

NO_LAG: Final = 0.0


def sender_paces(tx: Transaction, campaign: Campaign, now: datetime) -> SenderPaces:
    """Return the paces of the numbers that a campaign sends from, by the numbers as the campaign has them."""
    return {one: pace_of_number(tx, campaign.workspace_id, one, now) for one in _senders(campaign)}


def _senders(campaign: Campaign) -> Sequence[str]:
    return campaign.senders if campaign.channel == "sms" else ()


def prefetch_sender_paces(tx: Transaction, campaigns: Iterable[Campaign]) -> None:
    """Read the numbers that campaigns send from, in one go."""
    phones = (
        (campaign.workspace_id, _phone(tx, campaign.workspace_id, one))
        for campaign in campaigns
        for one in _senders(campaign)
    )
    wanted = [(workspace_id, phone) for workspace_id, phone in phones if phone is not None]
    tx.numbers.prefetch_by_phone((workspace_id, form) for workspace_id, phone in wanted for form in spellings(phone))
    tx.runs.prefetch_sender_slots(
        (number.workspace_id, number.phone)
        for key in wanted
        if (number := tx.numbers.of_line(*key)) is not None and number.rate_per_minute is not None
    )


def pace_of_number(tx: Transaction, workspace_id: str, written: str | None, now: datetime) -> SenderPace | None:
    """Return the pace of a sending number in any notation; None if it has none."""
    number = _number(tx, workspace_id, written) if written is not None else None
    if number is None or number.rate_per_minute is None:
        return None
    apart = spacing(number.rate_per_minute)
    return SenderPace(
        workspace_id=workspace_id,
        phone=number.phone,
        spacing=apart,
        next_slot_at=next_slot(tx.runs.sender_slot(workspace_id, number.phone), now, apart),
    )


def _number(tx: Transaction, workspace_id: str, written: str) -> Number | None:
    phone = _phone(tx, workspace_id, written)
    return tx.numbers.of_line(workspace_id, phone) if phone is not None else None


def _phone(tx: Transaction, workspace_id: str, written: str) -> str | None:
    # Campaigns keep the number as supplied, and all its notations share one pace.
    workspace = tx.workspaces.get(workspace_id)
    return normalise_single(written, workspace.default_region if workspace else None)


def frequency_capped_until(tx: Transaction, workspace_id: str, phone: str, now: datetime) -> datetime | None:
    """Return when the frequency cap next allows contacting a number; None if it does now."""
    workspace = tx.workspaces.get(workspace_id)
    cap = workspace.frequency_cap if workspace is not None else None
    if cap is None:
        return None
    known = tx.dispatches.sent_to(workspace_id, phone, since=now - FREQUENCY_WINDOW)
    # One from before the clock was set back counts as made when that was noticed, not until its time comes again.
    made = sorted((latest_time(tx, one.at, now), one.in_flight) for one in known)
    # Half-open: a contact exactly one window ago does not count.
    sent = [one for one in made if one[0] > now - FREQUENCY_WINDOW]
    if len(sent) < cap:
        return None
    until = sent[-cap][0] + FREQUENCY_WINDOW
    # A request in flight may reach nobody and then not count.
    return min(until, now + CAP_RECHECK_AFTER) if any(in_flight for _, in_flight in sent[-cap:]) else until


def lag_of_campaign(tx: Transaction, campaign: Campaign, now: datetime) -> float:
    """Return for how many seconds an active campaign could have begun its next contact; 0 while it has to wait."""
    workspace_id = campaign.workspace_id
    if workspace_of(tx, workspace_id).status is not WorkspaceStatus.ACTIVE or not opening_state(campaign, now).open:
        return NO_LAG
    if throttle_of_campaign(tx, campaign, now) is not None:
        return NO_LAG
    if campaign.channel == "call" and tx.recipients.in_flight(workspace_id, campaign.id) >= campaign.batch_concurrency:
        return NO_LAG
    since = _due_since(tx, campaign, now)
    if since is None:
        return NO_LAG
    run = tx.runs.get(workspace_id, campaign.id)
    work = tx.work.get(WorkUnit(*campaign_unit(campaign)))
    latest = tx.dispatches.recent(workspace_id, campaign.id, since=campaign.created_at, limit=1)
    paces = sender_paces(tx, campaign, now).values()
    slots = [None if pace is None else tx.runs.sender_slot(workspace_id, pace.phone) for pace in paces]
    taken = [slot for slot in slots if slot is not None]
    moments = [
        since,
        run.next_slot_at if run is not None else None,
        work.due_at if work is not None else None,
        latest[0].created_at if latest else None,
        # Campaigns with one sending number take turns; of a pool the first number that is free counts.
        min(taken, default=None) if len(taken) == len(slots) else None,
    ]
    return max((now - max(moment for moment in moments if moment is not None)).total_seconds(), NO_LAG)


def lag_of_singles(tx: Transaction, workspace_id: str | None, now: datetime) -> float:
    """Return for how many seconds the oldest single message or call that is due has waited to be sent."""
    due_at = tx.work.oldest_single(workspace_id, now)
    return NO_LAG if due_at is None else max((now - due_at).total_seconds(), NO_LAG)


def _due_since(tx: Transaction, campaign: Campaign, now: datetime) -> datetime | None:
    """Return since when at the latest a contact could be begun; None if none can."""
    # The counter of those that were never attempted has those, too, that wait for their hours or for a person.
    due = tx.recipients.due(campaign.workspace_id, campaign.id, now, limit=1)
    return due[0].due_at or campaign.started_at or campaign.created_at if due else None


_ANY_TIME: Final = datetime.min.replace(tzinfo=UTC)


class WaveSenders:
    """The sending numbers of one wave, with the slots that they have left.

    A contact of a pool has one number, from its first message on. A new contact gets the one that is free first; of
    several that are, the one whose turn it is.

    Args:
        campaign: The campaign.
        paces: The paces of its numbers.
        wave: The wave.
        turn: How many of the campaign's contacts have got a number.
    """

    def __init__(self, campaign: Campaign, paces: SenderPaces, wave: Wave, *, turn: int) -> None:
        self._pool = campaign.from_numbers
        self._default = campaign.from_number
        self._paces = paces
        self._spacing = wave.spacing
        self._turn = turn
        self._free: dict[str, datetime] = {}
        for pace in paces.values():
            moments = () if pace is None else (pace.next_slot_at, wave.numbers_from.get(pace.key))
            known = [moment for moment in moments if moment is not None]
            if pace is not None and known:
                self._free[pace.phone] = max(known)
        self._taken: dict[str, datetime] = {}

    def in_order(self, intents: Sequence[Intent], slot: datetime) -> Sequence[Intent]:
        """Return a wave's intents in the order of the slots that they can have from `slot` on.

        A contact whose number is not free goes behind those whose numbers are.
        """
        if not self._pool:
            return intents
        free, turn, ordered = dict(self._free), self._turn, list[Intent]()
        new, waiting = deque[int](), defaultdict[str, deque[int]](deque)
        for index, intent in enumerate(intents):
            keeps = self._keeps(intent.recipient)
            (waiting[intent.recipient.caller_id or ""] if keeps else new).append(index)
        # All new contacts have the same choice, and those that keep a number go one after the other.
        pool = self._free_first(free)
        kept = FreeFirst(((indexes[0], sender) for sender, indexes in waiting.items()), self._free_at(free))
        while new or kept:
            choices = []
            if new:
                _, sender = pool.first(slot, turn % len(self._pool))
                choices.append((self._start(sender, slot, free), new[0], sender))
            if kept:
                index, sender = kept.first(slot)
                choices.append((self._start(sender, slot, free), index, sender))
            slot, index, sender = min(choices)
            self._take(sender, slot, free)
            slot += self._spacing
            ordered.append(intents[index])
            if new and index == new[0]:
                new.popleft()
                turn += 1
            else:
                waiting[sender].popleft()
                kept.replace(index, waiting[sender][0] if waiting[sender] else None)
        return ordered

    def sender_of(self, recipient: Recipient, slot: datetime) -> str | None:
        """Return the number of a contact's next message, which starts at `slot` or later."""
        if self._keeps(recipient):
            return recipient.caller_id
        return self._turns.first(slot, self._turn % len(self._pool))[1] if self._pool else self._default

    def start(self, sender: str | None, slot: datetime) -> datetime:
        """Return when a number can send, from `slot` on."""
        return self._start(sender, slot, self._free)

    def take(self, sender: str | None, recipient: Recipient, slot: datetime) -> None:
        """Take a slot of a number for a contact."""
        self._turn += bool(self._pool) and not self._keeps(recipient)
        self._take(sender, slot, self._free)
        pace = self._pace(sender)
        if pace is not None:
            self._taken[pace.phone] = slot + pace.spacing

    def waiting_for(self, intents: Iterable[Intent], latest: datetime, lead: timedelta) -> Sequence[Postponement]:
        """Return the postponements of contacts whose number has no slot until `latest`.

        Left due, they would keep those from being looked at whose numbers are free. Each is decided again `lead` before
        the slot that it may get.
        """
        found, before = [], Counter[str]()
        for intent in intents:
            pace = self._pace(intent.recipient.caller_id) if self._keeps(intent.recipient) else None
            free = self._free.get(pace.phone) if pace is not None else None
            if pace is None or free is None or free <= latest:
                continue
            due_at = min(free + before[pace.phone] * pace.spacing, latest + MAX_NUMBER_WAIT) - lead
            before[pace.phone] += 1
            found.append(
                Postponement(recipient=intent.recipient, due_at=due_at, reason=NUMBER_BUSY, rule=TrailRule.PACE)
            )
        return found

    def put(self, tx: Transaction, workspace_id: str) -> None:
        """Write the next slots of the numbers that were used."""
        for phone, slot in self._taken.items():
            tx.runs.put_sender_slot(workspace_id, phone, slot)

    @property
    def turn(self) -> int:
        """How many of the campaign's contacts have got a number of the pool."""
        return self._turn

    def _keeps(self, recipient: Recipient) -> bool:
        """Return whether a contact has its number: of the pool, or by the choice of the Messaging Service."""
        known = recipient.caller_id
        return known is not None and (known in self._pool if self._pool else is_service(self._default))

    @cached_property
    def _turns(self) -> FreeFirst:
        return self._free_first(self._free)

    def _free_first(self, free: Mapping[str, datetime]) -> FreeFirst:
        return FreeFirst(enumerate(self._pool), self._free_at(free))

    def _free_at(self, free: Mapping[str, datetime]) -> Callable[[str], datetime]:
        return lambda sender: self._start(sender, _ANY_TIME, free)

    def _start(self, sender: str | None, slot: datetime, free: Mapping[str, datetime]) -> datetime:
        pace = self._pace(sender)
        return max(slot, free.get(pace.phone, slot)) if pace is not None else slot

    def _take(self, sender: str | None, slot: datetime, free: dict[str, datetime]) -> None:
        pace = self._pace(sender)
        if pace is not None:
            free[pace.phone] = slot + pace.spacing

    def _pace(self, sender: str | None) -> SenderPace | None:
        return None if sender is None else self._paces.get(sender)


def keep_chosen_number(tx: Transaction, dispatch: Dispatch, number: str | None) -> None:
    """Keep the number that a Messaging Service chose for a contact: its next messages come from that one."""
    if number is None or dispatch.campaign_id is None or dispatch.position is None:
        return
    if not is_service(dispatch.from_number) or normalise(number, None) is None:
        return
    recipient = tx.recipients.get(dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
    if recipient is not None and recipient.caller_id is None:
        keep_sender(tx, dispatch.workspace_id, recipient, number)


@attrs.frozen(kw_only=True)
class Permits:
    """A number of permits.

    Attributes:
        intents: For intents that wait for their slots.
        requests: For requests on their way.
    """

    intents: int
    requests: int


def share_permits(tx: Transaction, epoch: int, *, most: Permits, in_use: Permits) -> Permits:
    """Return how many permits a worker may grant from now on: its portion, of those that no other worker has.

    It has at least one of each, so that no worker is blocked where there are more of them than permits, or where the
    others have not yet given back what is more than their portion.

    Args:
        tx: The transaction.
        epoch: The worker's.
        most: How many all workers may have together.
        in_use: How many it may have now: what it was allowed before, or what it still holds if that is more.

    Raises:
        LeaseLost: Its lease has ended.
    """
    worker = require_worker(tx, epoch)
    others = [other for other in tx.workers.list() if other.epoch != epoch]
    portion = Permits(
        intents=_portion(most.intents, [other.intent_permits for other in others]),
        requests=_portion(most.requests, [other.request_permits for other in others]),
    )
    noted = attrs.evolve(
        worker,
        intent_permits=max(portion.intents, in_use.intents),
        request_permits=max(portion.requests, in_use.requests),
    )
    if noted != worker:
        tx.workers.put(noted)
    return portion


def _portion(most: int, of_others: list[int]) -> int:
    return max(min(most // (len(of_others) + 1), most - sum(of_others)), 1)


@attrs.frozen(kw_only=True)
class IntentDraft:
    """An intent to be written, with what changes by it.

    Attributes:
        dispatch: The intent.
        before: The recipient of a campaign before; None for a single message or call.
        after: The recipient, or the single message or call, once the intent is written.
        call: The new call record of a recipient; None for a message, and for a single call, which has one.
    """

    dispatch: Dispatch
    before: Recipient | None = None
    after: Recipient | Message | Call
    call: Call | None = None


def draft_intent(
    tx: Transaction,
    wave: Wave,
    campaign: Campaign,
    run: CampaignRunState,
    intent: Intent,
    sender: str | None,
    slot: datetime,
    now: datetime,
) -> tuple[IntentDraft, CampaignRunState] | None:
    """Return an unwritten intent and the new state of the run; None if the recipient has changed or is not due.

    `sender` is what a message is sent from.
    """
    current = unchanged_recipient(tx, wave.workspace_id, intent.recipient, now)
    if current is None:
        return None
    # The second call of a double dial belongs to the first one's attempt.
    attempt = current.attempts + 1 if current.leg == 1 else current.attempts
    caller, run = (sender, run) if campaign.channel == "sms" else _caller(campaign, run, current, intent)
    bounds = (wave.latest, now + wave.intent_lifetime, intent.latest, second_leg_deadline(current))
    dispatch = Dispatch(
        id=intent.dispatch_id,
        workspace_id=wave.workspace_id,
        channel=campaign.channel,
        campaign_id=wave.campaign_id,
        position=current.position,
        call_id=intent.call_id,
        step=current.step,
        attempt=attempt,
        leg=current.leg,
        try_number=current.tries + 1,
        provider=intent.provider,
        from_number=caller,
        to=intent.to,
        body=intent.body,
        segments=intent.segments,
        slot_at=slot,
        valid_until=min(bound for bound in bounds if bound is not None),
        epoch=wave.epoch,
        created_at=now,
    )
    after = copy_with(
        current,
        status=RecipientStatus.DISPATCHING,
        reason=None,
        due_at=None,
        attempts=attempt,
        tries=current.tries + 1,
        caller_id=caller if campaign.cli_mode == "group" or campaign.from_numbers else current.caller_id,
    )
    call = None if intent.call_id is None or campaign.agent_id is None else _call(dispatch, campaign.agent_id, intent)
    return IntentDraft(dispatch=dispatch, before=current, after=after, call=call), run


def commit_intents(tx: Transaction, drafts: Sequence[IntentDraft]) -> Mapping[str, Counters]:
    """Write many intents at once, of campaigns or of single messages and calls, and what changes by them.

    The ledger refuses a second open dispatch; the slot of a refused one is lost.

    Returns:
        The change of the campaign's counters for each intent that was written, by its identifier.
    """
    for one in drafts:
        if one.call is not None:
            tx.calls.insert(one.call)
    opened = frozenset(dispatch.id for dispatch in tx.dispatches.open([one.dispatch for one in drafts]))
    for one in drafts:
        if one.call is not None and one.dispatch.id not in opened:
            at = one.dispatch.created_at
            tx.calls.update(attrs.evolve(one.call, status=CallStatus.CANCELED, error="dispatch_open", ended_at=at))
    return {one.dispatch.id: _mark_dispatching(tx, one) for one in drafts if one.dispatch.id in opened}


def _mark_dispatching(tx: Transaction, opened: IntentDraft) -> Counters:
    """Update what a written intent is for; return the change of the campaign's counters."""
    dispatch, after = opened.dispatch, opened.after
    if isinstance(after, Message):
        tx.messages.update(after)
    elif isinstance(after, Call):
        tx.calls.update(after)
    elif opened.before is not None:
        rule = TrailRule.PACE if dispatch.channel == "sms" else TrailRule.CONCURRENCY
        return put_recipient(
            tx, dispatch.workspace_id, opened.before, after, rule=rule, now=dispatch.created_at, dispatch=dispatch
        )
    return Counters()


def _caller(
    campaign: Campaign, run: CampaignRunState, recipient: Recipient, intent: Intent
) -> tuple[str | None, CampaignRunState]:
    """Return the number to call from; one of a group is assigned at the first dispatch and kept for retries."""
    if campaign.cli_mode != "group" or not campaign.cli_group:
        return intent.from_number, run
    if recipient.caller_id is not None:
        return recipient.caller_id, run
    return next_caller_id(campaign.cli_group, run.assigned), attrs.evolve(run, assigned=run.assigned + 1)


def _call(dispatch: Dispatch, agent_id: str, intent: Intent) -> Call:
    return Call(
        id=intent.call_id or "",
        workspace_id=dispatch.workspace_id,
        agent_id=agent_id,
        campaign_id=dispatch.campaign_id,
        position=dispatch.position,
        provider=dispatch.provider,
        to=dispatch.to,
        from_number=dispatch.from_number,
        status=CallStatus.DISPATCHING,
        variables=intent.variables,
        attempt=dispatch.attempt,
        tries=1,
        created_at=dispatch.created_at,
    )


class CommittedIntent(NamedTuple):
    """A committed intent whose request is about to start.

    Attributes:
        stops: The stop count of its workspace at its commit; None if unknown.
        revision: The revision of the campaign that it was decided on; None for a single message or call.
    """

    dispatch: Dispatch
    stops: int | None
    revision: int | None


def withdrawal_reasons(tx: Transaction, intents: Sequence[CommittedIntent], now: datetime) -> Sequence[str | None]:
    """Return for each committed intent why it must not be sent after all, or None.

    If no stop was counted since its commit, nothing needs to be read.
    """
    stopped = {one.dispatch.id for one in stopped_since(tx, intents)}
    doubtful = [one.dispatch for one in intents if one.dispatch.id in stopped]
    prefetch_for_last_check(tx, doubtful)
    changed = provider_throttles.of_changed_accounts(tx, doubtful, now)
    return [
        None
        if one.dispatch.id not in stopped
        else withdrawal_reason(tx, one.dispatch)
        or _change_reason(tx, one, now)
        or provider_throttles.throttle_reason(tx, one.dispatch, now)
        or (provider_throttles.ACCOUNT_CHANGED if one.dispatch.id in changed else None)
        for one in intents
    ]


def stopped_since(tx: Transaction, committed: Sequence[CommittedIntent]) -> Sequence[CommittedIntent]:
    """Return those for whose workspaces a stop was counted since their commit; this is one query."""
    tx.stops.prefetch({one.dispatch.workspace_id for one in committed})
    return [one for one in committed if one.stops != tx.stops.count(one.dispatch.workspace_id)]


def _change_reason(tx: Transaction, intent: CommittedIntent, now: datetime) -> str | None:
    """Return why an intent must be decided again: its campaign has other texts or hours since; else None."""
    of = intent.dispatch
    if of.created_at > now:
        # The clock was set back, which gives campaigns new revisions; its slot lies ahead, and that withdraws it.
        return None
    campaign = None if of.campaign_id is None else tx.campaigns.get(of.workspace_id, of.campaign_id)
    changed = campaign is not None and intent.revision is not None and campaign.revision != intent.revision
    return "campaign_changed" if changed else None


def prefetch_for_last_check(tx: Transaction, dispatches: Sequence[Dispatch]) -> None:
    """Read the rows that `withdrawal_reason` needs for many dispatches, in one go."""
    tx.dispatches.prefetch((dispatch.workspace_id, dispatch.id) for dispatch in dispatches)
    tx.register.prefetch((dispatch.workspace_id, dispatch.to) for dispatch in dispatches)
    tx.workspaces.prefetch({dispatch.workspace_id for dispatch in dispatches})
    tx.campaigns.prefetch(
        {(dispatch.workspace_id, dispatch.campaign_id) for dispatch in dispatches if dispatch.campaign_id is not None}
    )


def withdrawal_reason(tx: Transaction, dispatch: Dispatch) -> str | None:
    """Return why a committed intent must not be sent after all, or None.

    This is read immediately before the request, so that stops since the commit count.
    """
    workspace = tx.workspaces.get(dispatch.workspace_id)
    if workspace is None or workspace.status is not WorkspaceStatus.ACTIVE:
        return "workspace_unavailable"
    message = tx.messages.get(dispatch.workspace_id, dispatch.message_id) if dispatch.message_id else None
    purpose = message.purpose if message is not None else "message"
    forbidden = block_reason(tx, dispatch.workspace_id, dispatch.channel, dispatch.to, purpose)
    if forbidden is not None:
        return forbidden
    if dispatch.campaign_id is not None:
        if is_number_held(tx, dispatch.workspace_id, dispatch.to):
            return UNCLEAR_REPLY.name
        campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
        if campaign is None or campaign.status is not CampaignStatus.ACTIVE:
            return "campaign_stopped"
    current = tx.dispatches.get(dispatch.workspace_id, dispatch.id)
    if current is None or current.state is not DispatchState.DISPATCHING:
        return "settled_elsewhere"
    if tx.workers.get(dispatch.epoch) is None:
        # Another worker has taken over, and goes by its own pace: the clock of the database was set forth.
        return "lease_over"
    return None
