"""Deliveries of webhooks within a transaction: the lease of an endpoint, the events that it gets, its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, Protocol

import attrs

from outreach.ledger.campaigns.trail import record_webhook_disabled
from outreach.ledger.common import record_audit
from outreach.ledger.leases.clock_steps import NODES_DIFFER
from outreach.ledger.subscriptions import events_between
from outreach.ledger.webhook_contents import contents_of
from outreach.models.database import WebhookLag
from outreach.models.events import Event, EventsPurged, WebhookTest
from outreach.models.webhook import ATTEMPTS_KEPT, Webhook, WebhookAttempt, WebhookCursor, WebhookHold, WebhookPayload
from outreach.rules.webhooks import gap_id, message_id
from outreach.serialization.webhook_bodies import DELIVERED, TYPES_FOR_ONE_ENDPOINT, body_of, key_of, type_of
from outreach.storage.unit_of_work import Transaction

MAX_HOLDS_READ: Final = 20_000

_STRETCH: Final = 500
"""Entries of the trail that are read at a time."""

MAX_WAITING_COUNTED: Final = 2_000
"""So many numbers of the feed are looked at, and held events, to count what an endpoint has not received: the position
of one for which nothing is due may be up to a thousand numbers old."""


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
        """The content of the bodies."""
        ...


class EventBody(NamedTuple):
    """An event as it is delivered now: its id, number, key, type, time and body."""

    id: str
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


def old_attempts(tx: Transaction, *, since: datetime | None) -> Sequence[tuple[Webhook, str]]:
    """Return the endpoints of all workspaces that have old attempts, each with the identifier of the first one to keep.

    Args:
        tx: The transaction.
        since: Attempts before this moment are old; None for none.
    """
    found, after = list[tuple[Webhook, str]](), ""
    while page := tx.webhooks.every(after=after, limit=_STRETCH):
        for one in page:
            first = tx.webhook_attempts.first_kept(one.workspace_id, one.id, since=since, most=ATTEMPTS_KEPT)
            if first is not None:
                found.append((one, first))
        after = page[-1].id
    return found


def is_delivered(webhook: Webhook | None) -> bool:
    """Return whether events are delivered to an endpoint."""
    return webhook is not None and webhook.removed_at is None and webhook.state == "active"


def is_free(cursor: WebhookCursor, holder: str, *, lease: timedelta, now: datetime) -> bool:
    """Return whether a process may deliver to an endpoint: no other one has an unexpired lease."""
    if cursor.holder in {None, holder} or cursor.held_until is None:
        return True
    # A lease that ends too late was written before the clock was set back.
    return not timedelta() < cursor.held_until - now <= lease + NODES_DIFFER


def wanted_after(
    tx: Transaction, webhook: Choice, after: int, *, limit: int = _STRETCH
) -> tuple[Sequence[Event], int, bool]:
    """Return the events for an endpoint after a number, up to which number they were read, and if to the end.

    At most `limit` numbers are read.
    """
    last = tx.trail.last_number()
    until = max(min(last, after + limit), after)
    found = events_between(tx, webhook.workspace_id, after, until)
    return [event for event in found if event is not None and is_wanted(webhook, event)], until, until >= last


class Waiting(NamedTuple):
    """The backlog of an endpoint: the events that it has not received yet.

    Attributes:
        events: Its events among those that were looked at.
        unread: Numbers of the feed that were not looked at.
        since: When the oldest of the events happened; None for no event.
    """

    events: int
    unread: int
    since: datetime | None


class UnreadFeed:
    """The end of a workspace's feed: each stretch is read once for all endpoints."""

    def __init__(self, tx: Transaction, workspace_id: str) -> None:
        self._tx = tx
        self._workspace_id = workspace_id
        self._last = tx.trail.last_number()
        self._stretches: dict[int, Sequence[Event]] = {}

    def waiting(self, webhook: Webhook, cursor: WebhookCursor) -> Waiting:
        """Return what an endpoint has not received yet, of what it holds and of the next numbers."""
        count, first = self._tx.webhook_holds.waiting(webhook.workspace_id, webhook.id, limit=MAX_WAITING_COUNTED)
        since = None if first is None else self._time_of(*first)
        read_until = cursor.position
        while read_until < self._last and read_until - cursor.position < MAX_WAITING_COUNTED:
            events, until = self._stretch(read_until + 1)
            wanted = [one.at for one in events if one.number > read_until and is_wanted(webhook, one)]
            count += len(wanted)
            since = min([one for one in (since, *wanted[:1]) if one is not None], default=None)
            read_until = until
        return Waiting(count, max(self._last - read_until, 0), since)

    def _time_of(self, number: int, first_at: datetime) -> datetime:
        """Return when an event happened; when it was first tried, where it is gone."""
        return next((one.at for one in self._stretch(number)[0] if one.number == number), first_at)

    def _stretch(self, number: int) -> tuple[Sequence[Event], int]:
        """Return the events of the stretch that has a number, and its last number."""
        begin = (number - 1) // _STRETCH * _STRETCH
        until = min(begin + _STRETCH, self._last)
        if begin not in self._stretches:
            found = events_between(self._tx, self._workspace_id, begin, until)
            self._stretches[begin] = [event for event in found if event is not None]
        return self._stretches[begin], until


def lags(tx: Transaction, now: datetime, *, limit: int) -> Mapping[str, WebhookLag]:
    """Return how far the active endpoints are behind: of each workspace the most events and seconds of one."""
    feeds, found = dict[str, UnreadFeed](), dict[str, WebhookLag]()
    for webhook in tx.webhooks.active(limit=limit):
        place = webhook.workspace_id
        cursor = tx.webhook_cursors.get(place, webhook.id)
        if cursor is None:
            continue
        waiting = feeds.setdefault(place, UnreadFeed(tx, place)).waiting(webhook, cursor)
        seconds = 0.0 if waiting.since is None else max((now - waiting.since).total_seconds(), 0.0)
        known = found.get(place, WebhookLag(0, 0.0))
        found[place] = WebhookLag(max(waiting.events + waiting.unread, known.events), max(seconds, known.seconds))
    return found


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
        gap_until: Up to this number the endpoint has got the notice of a gap.
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
        name = message_id(webhook.workspace_id, hold.number, hold.first_at)
        return _bodies(tx, webhook, [test])[0]._replace(id=name, number=hold.number)
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
        EventBody(
            _id(event), event.number, _key(event), type_of(event), event.at, body_of(event, webhook.payload, content)
        )
        for event, content in zip(events, contents, strict=True)
    ]


def _id(event: Event) -> str:
    if isinstance(event, EventsPurged):
        return gap_id(event.workspace_id, event.first, event.last)
    return message_id(event.workspace_id, event.number, event.at)


def _key(event: Event) -> str:
    """Return the key of an event; that of a gap has all its values, because no entry of the trail has them."""
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
    has_moved = cursor.position != last.position or cursor.gap_until != last.gap_until
    if has_moved or webhook.types != before.types:
        # A replay begins elsewhere, or events of added types were passed over: these events are delivered again.
        tx.webhook_cursors.put(attrs.evolve(cursor, holder=None, held_until=None))
        return False

    is_same = webhook == before and cursor.sealed == last.sealed and cursor.updated_at == last.updated_at
    if not is_same:
        # Its failures are those of what it was: it is tried at once.
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
    for hold in holds:
        tx.webhook_holds.put(hold if is_same else attrs.evolve(hold, next_at=min(hold.next_at, now)))
    for number in done:
        tx.webhook_holds.delete(before.workspace_id, before.id, number)
    tx.webhook_cursors.put(moved)
    return is_same and disabled is None
