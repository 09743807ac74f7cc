"""Deliveries of webhooks within a transaction: the lease of an endpoint, the events that it gets, its progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, Protocol

import attrs

from outreach.ledger.campaigns.trail import record_webhook_disabled
from outreach.ledger.common import record_audit
from outreach.ledger.subscriptions import events_between
from outreach.ledger.webhook_contents import contents_of
from outreach.models.events import Event, EventsPurged, WebhookTest
from outreach.models.webhook import Webhook, WebhookAttempt, WebhookCursor, WebhookHold, WebhookPayload
from outreach.serialization.webhook_bodies import DELIVERED, TYPES_FOR_ONE_ENDPOINT, body_of, key_of, type_of
from outreach.storage.unit_of_work import Transaction

MAX_HOLDS_READ: Final = 20_000

_STRETCH: Final = 500
"""Entries of the trail that are read at a time."""


class Choice(Protocol):
    """Which events of a workspace are read, and as what; a `Webhook` is one."""

    @property
    def workspace_id(self) -> str:
        """The workspace."""
        ...

    @property
    def types(self) -> Sequence[str]:
        """The types of events; none for all."""
        ...

    @property
    def payload(self) -> WebhookPayload:
        """What the bodies hold."""
        ...


class EventBody(NamedTuple):
    """An event as it is delivered now: its number, key, type, time and body."""

    number: int
    key: str
    type: str
    at: datetime
    body: bytes


def take(
    tx: Transaction, workspace_id: str, webhook_id: str, holder: str, *, lease: timedelta, now: datetime
) -> tuple[Webhook, WebhookCursor, Sequence[WebhookHold]] | None:
    """Take the lease of an active endpoint; None while another process has it, or where nothing is delivered."""
    webhook, cursor = tx.webhooks.get(workspace_id, webhook_id), tx.webhook_cursors.get(workspace_id, webhook_id)
    if (
        not is_delivered(webhook)
        or webhook is None
        or cursor is None
        or not is_free(cursor, holder, lease=lease, now=now)
    ):
        return None
    taken = attrs.evolve(cursor, holder=holder, held_until=now + lease)
    tx.webhook_cursors.put(taken)
    return webhook, taken, tx.webhook_holds.list(workspace_id, webhook_id, limit=MAX_HOLDS_READ)


def is_delivered(webhook: Webhook | None) -> bool:
    """Return whether events are delivered to an endpoint."""
    return webhook is not None and webhook.removed_at is None and webhook.state == "active"


def is_free(cursor: WebhookCursor, holder: str, *, lease: timedelta, now: datetime) -> bool:
    """Return whether a process may deliver to an endpoint: no other one has an unexpired lease."""
    if cursor.holder in {None, holder} or cursor.held_until is None:
        return True
    # A lease that ends too late was written before the clock was set back.
    return not timedelta() < cursor.held_until - now <= lease


def wanted_after(tx: Transaction, webhook: Choice, after: int) -> tuple[Sequence[Event], int, bool]:
    """Return the events that an endpoint wants after a number, up to which number they were read, and if to the end."""
    last = tx.trail.last_number()
    until = max(min(last, after + _STRETCH), after)
    found = events_between(tx, webhook.workspace_id, after, until)
    return [event for event in found if event is not None and is_wanted(webhook, event)], until, until >= last


def is_wanted(webhook: Choice, event: Event) -> bool:
    """Return whether an endpoint gets an event."""
    if not isinstance(event, DELIVERED):
        return False
    name = type_of(event)
    return (
        not webhook.types
        or name in TYPES_FOR_ONE_ENDPOINT
        or any(fnmatchcase(name, pattern) for pattern in webhook.types)
    )


def read(
    tx: Transaction, webhook: Choice, after: int, *, gap_until: int, now: datetime
) -> tuple[Sequence[EventBody], int, bool, int]:
    """Return the bodies of the next events, up to which number they were read, whether to the end, and the gap's end.

    Where events were purged that the endpoint has not received, one notice of them comes first.

    Args:
        tx: The transaction.
        webhook: The endpoint.
        after: Up to this number the events were read.
        gap_until: Up to this number the endpoint was told of a gap.
        now: The time of a notice.
    """
    events, until, at_end = wanted_after(tx, webhook, after)
    purged = tx.trail.purged_until()
    if purged > max(gap_until, after):
        there = {event.number for event in events}
        missing = next((number for number in range(after + 1, until + 1) if number not in there), None)
        if missing is not None:
            first = max(gap_until, after) + 1
            gap = EventsPurged(number=missing, at=now, workspace_id=webhook.workspace_id, first=first, last=purged)
            events = sorted([*events, gap], key=lambda event: event.number)
            gap_until = purged
    return _bodies(tx, webhook, events), until, at_end, gap_until


def body_now(tx: Transaction, webhook: Webhook, hold: WebhookHold) -> EventBody | None:
    """Return a held event as it is now; None where it was removed, or is of no type of the endpoint any more."""
    kind, _, rest = hold.key.partition(":")
    if kind == _GAP:
        first, last, at = rest.split(":", 2)
        purged = EventsPurged(
            number=hold.number,
            at=datetime.fromisoformat(at),
            workspace_id=webhook.workspace_id,
            first=int(first),
            last=int(last),
        )
        return _bodies(tx, webhook, [purged])[0]
    if kind == "webhook" and hold.number <= 0:
        test = WebhookTest(
            number=tx.trail.last_number(), at=hold.first_at, workspace_id=webhook.workspace_id, endpoint_id=webhook.id
        )
        return _bodies(tx, webhook, [test])[0]._replace(number=hold.number)
    events = events_between(tx, webhook.workspace_id, hold.number - 1, hold.number)
    wanted = [event for event in events if event is not None and is_wanted(webhook, event)]
    if not events:
        gap = EventsPurged(
            number=hold.number,
            at=hold.first_at,
            workspace_id=webhook.workspace_id,
            first=hold.number,
            last=hold.number,
        )
        return _bodies(tx, webhook, [gap])[0]
    return _bodies(tx, webhook, wanted)[0] if wanted else None


_GAP: Final = "gap"


def _bodies(tx: Transaction, webhook: Choice, events: Sequence[Event]) -> Sequence[EventBody]:
    contents = contents_of(tx, events)
    return [
        EventBody(event.number, _key(event), type_of(event), event.at, body_of(event, webhook.payload, content))
        for event, content in zip(events, contents, strict=True)
    ]


def _key(event: Event) -> str:
    """Return the key of an event; that of a gap has all that it says, because no entry of the trail does."""
    if isinstance(event, EventsPurged):
        return f"{_GAP}:{event.first}:{event.last}:{event.at.isoformat()}"
    return key_of(event)


def advance(
    tx: Transaction,
    opened: tuple[Webhook, WebhookCursor],
    moved: WebhookCursor,
    *,
    holds: Sequence[WebhookHold],
    done: Sequence[int],
    attempts: Sequence[WebhookAttempt],
    disabled: str | None,
    now: datetime,
) -> bool:
    """Store progress; return whether the process still has the lease and the endpoint is as it was opened.

    Args:
        tx: The transaction.
        opened: The endpoint as it was opened, and its cursor as this process stored it last.
        moved: The cursor as it is to be.
        holds: The held events to store.
        done: The numbers of those that are done.
        attempts: The requests since the last time.
        disabled: Why the endpoint is disabled; None if it is not.
        now: The present moment.
    """
    before, last = opened
    webhook = tx.webhooks.get(before.workspace_id, before.id)
    cursor = tx.webhook_cursors.get(before.workspace_id, before.id)
    if webhook is None or webhook.removed_at is not None or cursor is None or cursor.holder != last.holder:
        return False
    for attempt in attempts:
        tx.webhook_attempts.insert(attempt)
    if cursor.position != last.position or cursor.gap_until != last.gap_until:
        # A replay begins elsewhere: what was done meanwhile is delivered again.
        tx.webhook_cursors.put(attrs.evolve(cursor, holder=None, held_until=None))
        return False

    for hold in holds:
        tx.webhook_holds.put(hold)
    for number in done:
        tx.webhook_holds.delete(before.workspace_id, before.id, number)
    is_same = webhook == before and cursor.sealed == last.sealed
    if not is_same:
        # Its failures are those of what it was.
        moved = attrs.evolve(cursor, position=moved.position, gap_until=moved.gap_until, holder=None, held_until=None)
    elif disabled is not None:
        tx.webhooks.update(attrs.evolve(webhook, state="disabled", reason=disabled, updated_at=now))
        record_webhook_disabled(tx, webhook.workspace_id, webhook.id, reason=disabled, now=now)
        record_audit(
            tx,
            now=now,
            workspace_id=webhook.workspace_id,
            actor="engine",
            action="webhook.disable",
            subject=webhook.id,
            detail=disabled,
        )
    tx.webhook_cursors.put(moved)
    return is_same and disabled is None
