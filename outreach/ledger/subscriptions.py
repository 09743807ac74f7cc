"""Named subscriptions: their positions, the leases of the streams that read them, and the events of a stretch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import Conflict, NotFound
from outreach.ledger.common import existing, workspace_of
from outreach.models.call import Call
from outreach.models.campaign import Campaign
from outreach.models.events import Event
from outreach.models.message import Message
from outreach.models.states import TrailEntry, TrailStepKind
from outreach.models.subscription import StoredSubscription, Subscription
from outreach.serialization.events import OwnData, event_from_entry
from outreach.storage.unit_of_work import Transaction

_STRETCH: Final = 200
"""Numbers among which one is looked for that has an entry."""


def ensure(
    tx: Transaction, name: str, *, workspace_id: str | None, since: int | None, now: datetime
) -> StoredSubscription:
    """Return a subscription; a new one begins after `since`, or with the next event.

    Raises:
        NotFound: The workspace does not exist.
        Conflict: The name belongs to another workspace's subscription.
    """
    known = tx.subscriptions.get(name)
    if known is not None:
        if known.workspace_id != workspace_id:
            whose = "all workspaces" if known.workspace_id is None else f"workspace {known.workspace_id}"
            raise Conflict(f"The subscription {name!r} is for {whose}: take another name, or remove it first.")
        return known
    if workspace_id is not None:
        workspace_of(tx, workspace_id)
    last = tx.trail.last_number()
    if since is not None and since > last:
        raise Conflict(f"The database has come to event {last} only, not to {since}.")
    position = last if since is None else since
    made = StoredSubscription(
        name=name,
        workspace_id=workspace_id,
        position=position,
        # A subscription that begins with what is left has missed nothing.
        gap_until=tx.trail.purged_until() if not since else 0,
        created_at=now,
        updated_at=now,
    )
    tx.subscriptions.put(made)
    return made


def is_free(row: StoredSubscription, holder: str, *, lease: timedelta, now: datetime) -> bool:
    """Return whether a stream may read a subscription: no other one holds an unexpired lease."""
    if row.holder in {None, holder} or row.held_until is None:
        return True
    # A lease that ends too late was written before the clock was set back.
    return not timedelta() < row.held_until - now <= lease


def take(tx: Transaction, name: str, holder: str, *, lease: timedelta, now: datetime) -> StoredSubscription | None:
    """Take the lease of a subscription and return it; None while another stream holds it.

    Raises:
        NotFound: It was removed.
    """
    row = row_of(tx, name)
    if not is_free(row, holder, lease=lease, now=now):
        return None
    taken = attrs.evolve(row, holder=holder, held_until=now + lease)
    tx.subscriptions.put(taken)
    return taken


def advance(
    tx: Transaction, name: str, holder: str, *, position: int, gap_until: int, lease: timedelta, now: datetime
) -> bool:
    """Store a stream's position and renew its lease; return whether it still holds the lease."""
    row = tx.subscriptions.get(name)
    if row is None or row.holder != holder:
        return False
    moved = position > row.position or gap_until > row.gap_until
    tx.subscriptions.put(
        attrs.evolve(
            row,
            position=max(position, row.position),
            gap_until=max(gap_until, row.gap_until),
            held_until=now + lease,
            updated_at=now if moved else row.updated_at,
        )
    )
    return True


def release(tx: Transaction, name: str, holder: str) -> None:
    """Release the lease, if this stream holds it."""
    row = tx.subscriptions.get(name)
    if row is not None and row.holder == holder:
        tx.subscriptions.put(attrs.evolve(row, holder=None, held_until=None))


def remove(tx: Transaction, name: str) -> None:
    """Remove a subscription and its position, or raise `NotFound`."""
    if not tx.subscriptions.delete(name):
        raise NotFound("subscription", name)


def shown(tx: Transaction, row: StoredSubscription, *, lease: timedelta, now: datetime) -> Subscription:
    """Return the public form of a subscription."""
    return Subscription(
        name=row.name,
        workspace_id=row.workspace_id,
        position=row.position,
        behind=max(tx.trail.last_number() - row.position, 0),
        active=row.holder is not None and not is_free(row, "", lease=lease, now=now),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def row_of(tx: Transaction, name: str) -> StoredSubscription:
    """Return a subscription as it is stored, or raise `NotFound`."""
    return existing(tx.subscriptions.get(name), "subscription", name)


def events_between(tx: Transaction, workspace_id: str | None, after: int, until: int) -> Sequence[Event | None]:
    """Return the events of a workspace, or all, numbered above `after` and up to `until`; None for other entries."""
    entries = tx.trail.between(workspace_id, after, until)
    external_ids = tx.recipients.external_ids(
        {
            (entry.workspace_id, entry.campaign_id, entry.position)
            for entry in entries
            if entry.campaign_id is not None and entry.position is not None
        }
    )
    tx.campaigns.prefetch(
        (entry.workspace_id, entry.campaign_id)
        for entry in entries
        if entry.what is TrailStepKind.CAMPAIGN and entry.campaign_id is not None
    )
    of_singles = {TrailStepKind.CALL_ENDED, TrailStepKind.REPORTED}
    singles = [entry for entry in entries if entry.campaign_id is None and entry.what in of_singles]
    tx.calls.prefetch((entry.workspace_id, entry.call_id) for entry in singles if entry.call_id is not None)
    tx.messages.prefetch((entry.workspace_id, entry.message_id) for entry in singles if entry.message_id is not None)

    def own(entry: TrailEntry, campaign: Campaign | None) -> OwnData:
        if entry.campaign_id is not None and entry.position is not None:
            return OwnData(external_ids.get((entry.campaign_id, entry.position)))
        found: Campaign | Call | Message | None = campaign
        if entry.what is TrailStepKind.CALL_ENDED and entry.call_id is not None:
            found = tx.calls.get(entry.workspace_id, entry.call_id)
        elif entry.what is TrailStepKind.REPORTED and entry.message_id is not None:
            found = tx.messages.get(entry.workspace_id, entry.message_id)
        return OwnData() if found is None else OwnData(found.external_id, found.metadata)

    def event(entry: TrailEntry) -> Event | None:
        campaign = None
        if entry.what is TrailStepKind.CAMPAIGN and entry.campaign_id is not None:
            campaign = tx.campaigns.get(entry.workspace_id, entry.campaign_id)
        started_at = None if campaign is None else campaign.started_at
        return event_from_entry(entry, own(entry, campaign), first_started_at=started_at)

    return [event(entry) for entry in entries]


def first_since(tx: Transaction, at: datetime) -> int:
    """Return the number of the first event at or after a moment: numbers follow the order of the commits."""
    low, high = tx.trail.purged_until() + 1, tx.trail.last_number() + 1
    while low < high:
        middle = (low + high) // 2
        found = tx.trail.between(None, middle - 1, min(middle + _STRETCH, high - 1))
        if found and found[0].at < at:
            low = found[0].number + 1
        else:
            high = middle
    return low
