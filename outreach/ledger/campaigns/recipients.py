"""Recipients: loading them with a new campaign, and writing them with their counters and trail entries.

A large list is loaded in chunks under a hidden campaign, which is then published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import cache
from typing import Final

import attrs

from outreach.errors import InvalidRequest, StorageError
from outreach.ledger.campaigns import trail
from outreach.ledger.common import call_settings_of, record_audit
from outreach.models.campaign import Campaign, Counters, PreparedRecipient, Recipient, contribution
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Advance, Ending, Postponement
from outreach.models.resources import FlowStep
from outreach.models.states import CLOSABLE_RECIPIENT_STATUSES, RecipientStatus, TrailRule
from outreach.rules.deciding import decide_loading
from outreach.rules.flows import enter_step
from outreach.rules.numbering import person_key
from outreach.rules.settlement import drop_second_leg, ended_recipient, waiting
from outreach.storage.unit_of_work import Transaction


def put_recipient(
    tx: Transaction,
    workspace_id: str,
    before: Recipient,
    after: Recipient,
    *,
    rule: TrailRule,
    now: datetime,
    dispatch: Dispatch | None = None,
    actor: str = trail.ENGINE,
) -> Counters:
    """Write a recipient and its trail entry; return the change of the counters.

    Every change of a loaded recipient that its trail shows goes through here. `rule` is the trail rule unless the new
    reason implies another (`rule_of_recipient`).
    """
    tx.recipients.put(workspace_id, after)
    trail.record_recipient(tx, workspace_id, before, after, rule=rule, now=now, dispatch=dispatch, actor=actor)
    return _difference(counted(after), counted(before))


def keep_sender(tx: Transaction, workspace_id: str, recipient: Recipient, number: str) -> None:
    """Write the number that sends to a recipient; neither its trail nor the counters change by it."""
    tx.recipients.put(workspace_id, attrs.evolve(recipient, caller_id=number))


@cache
def _difference(after: Counters, before: Counters) -> Counters:
    # Called at every change, with few distinct values.
    return after - before


def counted(recipient: Recipient) -> Counters:
    """Return what a recipient adds to its campaign's counters."""
    return contribution(
        recipient.status, attempts=recipient.attempts, dispatched=recipient.dispatched, successful=recipient.successful
    )


def unchanged_recipient(tx: Transaction, workspace_id: str, recipient: Recipient, now: datetime) -> Recipient | None:
    """Return a recipient if it is due and has not changed since the decision, else None."""
    current = tx.recipients.get(workspace_id, recipient.campaign_id, recipient.position)
    if current is None or current.status not in CLOSABLE_RECIPIENT_STATUSES:
        return None
    if current.due_at is not None and current.due_at > now:
        # It was due by a clock that was set back since.
        return None
    # A postponement since the decision is a change, too.
    return current if _decision_fields(current) == _decision_fields(recipient) else None


def _decision_fields(recipient: Recipient) -> tuple[object, ...]:
    return (recipient.step, recipient.attempts, recipient.tries, recipient.reason, recipient.due_at)


def end_recipient(tx: Transaction, workspace_id: str, ending: Ending, now: datetime) -> Counters:
    """End a recipient that is not contacted; return the change of the counters."""
    current = unchanged_recipient(tx, workspace_id, ending.recipient, now)
    if current is None:
        return Counters()
    # A failure in a later step of a flow is no success, even if an earlier step was accepted.
    successful = current.successful and ending.status is not RecipientStatus.FAILED
    ended = attrs.evolve(
        current, status=ending.status, reason=ending.reason, successful=successful, due_at=None, ended_at=now
    )
    return put_recipient(tx, workspace_id, current, ended, rule=ending.rule, now=now)


def postpone_recipient(tx: Transaction, workspace_id: str, held: Postponement, now: datetime) -> Counters:
    """Postpone a recipient; return the change of the counters."""
    current = unchanged_recipient(tx, workspace_id, held.recipient, now)
    if current is None:
        return Counters()
    after = waiting(current, held.reason, held.due_at)
    return put_recipient(tx, workspace_id, current, after, rule=held.rule, now=now)


def advance_without_sending(tx: Transaction, campaign: Campaign, advance: Advance, now: datetime) -> Counters:
    """Advance a recipient; return the change of the counters."""
    current = unchanged_recipient(tx, campaign.workspace_id, advance.recipient, now)
    if current is None:
        return Counters()
    if advance.kind == "next_step":
        after = advance_in_flow(tx, campaign, current, current.step, steps_of(tx, campaign) or (), now)
        rule = TrailRule.FLOW
    else:
        settings = call_settings_of(tx, campaign.workspace_id)
        after = drop_second_leg(current, campaign=campaign.status, settings=settings, now=now)
        rule = TrailRule.DOUBLE_DIAL
    return put_recipient(tx, campaign.workspace_id, current, after, rule=rule, now=now)


def steps_of(tx: Transaction, campaign: Campaign) -> tuple[FlowStep, ...] | None:
    """Return the steps of a campaign's flow; None without a flow."""
    if campaign.message_source != "flow" or campaign.flow_id is None:
        return None
    flow = tx.flows.get(campaign.workspace_id, campaign.flow_id)
    return flow.steps if flow is not None else ()


def advance_in_flow(
    tx: Transaction, campaign: Campaign, recipient: Recipient, index: int, steps: tuple[FlowStep, ...], now: datetime
) -> Recipient:
    """Return a recipient after it enters a step."""
    after = enter_step(recipient, index, steps, replied=lambda: _replied(tx, campaign, recipient), now=now)
    phone = recipient.phone
    goes_on = after.is_open or after.reason == "replied"
    if goes_on and phone is not None and tx.register.stopped(campaign.workspace_id, campaign.channel, {phone}):
        # Otherwise it would wait for its next step only to be skipped. An opt-out outranks a reply.
        return ended_recipient(recipient, RecipientStatus.SKIPPED, "opted_out", now)
    return after


def is_stopped_by_reply(tx: Transaction, campaign: Campaign, recipient: Recipient, steps: tuple[FlowStep, ...]) -> bool:
    """Return whether a reply stops a recipient that is due for the step after a `stop_if_replied`.

    The reply may have come since the recipient entered the step.
    """
    before = recipient.step - 1
    return 0 <= before < len(steps) and steps[before].kind == "stop_if_replied" and _replied(tx, campaign, recipient)


def _replied(tx: Transaction, campaign: Campaign, recipient: Recipient) -> bool:
    since = campaign.started_at or campaign.created_at
    if recipient.added_at is not None:
        since = max(since, recipient.added_at)
    phone = recipient.phone
    return phone is not None and tx.inbound.replied_since(campaign.workspace_id, phone, since)


_PLACES: Final = 1 << 22
_LAST: Final = _PLACES - 1


class SeenNumbers:
    """The numbers of one load's earlier chunks, by the hashes of their persons' keys in 4 MiB.

    Every added number is a candidate. Some others are too, so the caller looks candidates up: of 100,000 contacts one
    in eighty, of a million one in nine, of many millions most.
    """

    def __init__(self) -> None:
        self._places = bytearray(_PLACES)

    def add(self, phones: Iterable[str | None]) -> None:
        """Add numbers; None is skipped."""
        places = self._places
        for phone in phones:
            if phone is not None:
                places[hash(person_key(phone)) & _LAST] = 1

    def candidates(self, phones: Iterable[str]) -> set[str]:
        """Return those of the numbers that may have been added."""
        places = self._places
        return {phone for phone in phones if places[hash(person_key(phone)) & _LAST]}


LOADING_LEASE: Final = timedelta(minutes=2)
"""A loading campaign without a chunk for this long was left by a crash."""


@attrs.frozen(kw_only=True)
class ChunkResult:
    """The result of one chunk.

    Attributes:
        next_position: The first position of the next chunk.
        excluded: Contacts on the register, which were not written.
        counters: The counters of the written contacts.
    """

    next_position: int
    excluded: int
    counters: Counters


def begin_loading(tx: Transaction, campaign: Campaign, *, now: datetime) -> None:
    """Write the hidden campaign that the chunks belong to."""
    tx.campaigns.insert_loading(campaign, loading_until=now + LOADING_LEASE)


def load_chunk(
    tx: Transaction,
    campaign: Campaign,
    chunk: Sequence[PreparedRecipient],
    *,
    seen_numbers: SeenNumbers | None,
    position: int,
    now: datetime,
    known: Collection[str] = (),
) -> ChunkResult:
    """Write one chunk of contacts of a loading campaign.

    Numbers on the register are excluded; duplicates and invalid numbers are written as skipped
    (docs/interface.md#invalid-numbers). `seen_numbers` has the numbers of earlier chunks, and the caller adds those of
    this one once it is written; None for a single chunk. `known` has numbers that are duplicates besides. Raises
    `StorageError` if the campaign was deleted.
    """
    workspace_id = campaign.workspace_id
    extend_loading(tx, workspace_id, campaign.id, now)
    phones = {recipient.phone for recipient in chunk if recipient.phone is not None}
    stopped = tx.register.stopped(workspace_id, campaign.channel, phones)
    repeated = seen_numbers.candidates(phones - stopped) if seen_numbers else None
    loaded = tx.recipients.known_phones(workspace_id, campaign.id, repeated) if repeated else ()
    return write_chunk(tx, campaign, chunk, stopped=stopped, known={*known, *loaded}, position=position, now=now)


def write_chunk(
    tx: Transaction,
    campaign: Campaign,
    chunk: Sequence[PreparedRecipient],
    *,
    stopped: AbstractSet[str],
    known: Collection[str],
    position: int,
    now: datetime,
) -> ChunkResult:
    """Write contacts from a position on, given which numbers are on the register and which the campaign has."""
    seen = {person_key(phone) for phone in known}
    rows: list[tuple[int, PreparedRecipient, RecipientStatus, str | None]] = []
    excluded = pending = 0
    for recipient in chunk:
        decided = decide_loading(recipient, stopped, seen)
        if decided == "opted_out":
            excluded += 1
            continue
        if decided == "load":
            rows.append((position, recipient, RecipientStatus.PENDING, None))
            pending += 1
        else:
            rows.append((position, recipient, RecipientStatus.SKIPPED, decided))
        position += 1
    tx.recipients.insert(campaign.workspace_id, campaign.id, rows, now=now)
    counters = Counters(total=len(rows), pending=pending, open=pending)
    return ChunkResult(next_position=position, excluded=excluded, counters=counters)


def publish_loaded(
    tx: Transaction,
    campaign: Campaign,
    *,
    loaded: Counters,
    variable_names: tuple[str, ...] | None,
    excluded: int,
    since: datetime,
    now: datetime,
    actor: str,
) -> tuple[Campaign, int]:
    """Publish a loaded campaign; return it and how many contacts were excluded in all.

    Numbers that came onto the register during the load are removed first.

    Raises:
        InvalidRequest: Every contact is on the register (docs/interface.md#4.3, rule 3).
        StorageError: The campaign was deleted as a leftover.
    """
    workspace_id = campaign.workspace_id
    extend_loading(tx, workspace_id, campaign.id, now)
    dropped = tx.recipients.delete_stopped_since(workspace_id, campaign.id, campaign.channel, since)
    counters = loaded - dropped
    excluded += dropped.total
    if counters.total == 0:
        raise InvalidRequest.at(
            "recipients", "Every contact is on the workspace's unsubscribe register; there is nobody left to reach."
        )
    published = attrs.evolve(campaign, counters=counters, variable_names=variable_names)
    tx.campaigns.publish(published)
    trail.record_campaign_created(tx, published, actor=actor, now=now)
    record_audit(tx, workspace_id, "campaign.create", campaign.id, actor=actor, now=now)
    return tx.campaigns.get(workspace_id, campaign.id) or published, excluded


def extend_loading(tx: Transaction, workspace_id: str, campaign_id: str, now: datetime) -> None:
    """Extend the lease of a loading campaign; raise `StorageError` if it was deleted."""
    if not tx.campaigns.extend_loading(workspace_id, campaign_id, loading_until=now + LOADING_LEASE):
        raise loading_stalled()


def loading_stalled() -> StorageError:
    """Return the error of a load whose lease has ended, so that what was loaded was deleted."""
    return StorageError(
        f"No contacts arrived for {LOADING_LEASE.total_seconds():.0f} seconds, so what was loaded was deleted, and "
        "nothing was created or added. Load it again, from a source that does not stall, such as a file."
    )
