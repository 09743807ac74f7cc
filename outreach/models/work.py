"""Work, the worker that does it, and the place where the database lives."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

import attrs

WorkUnitKind = Literal["campaign", "call", "message"]


class WorkUnit(NamedTuple):
    """Something that a runner works on by slices."""

    kind: WorkUnitKind
    workspace_id: str
    id: str


@attrs.frozen(kw_only=True)
class WorkItem:
    """A unit and when it wants to be looked at.

    Attributes:
        due_at: When; None once there is nothing left to do.
        change: Number of the change that wrote this; numbers only go up within one database.
    """

    unit: WorkUnit
    due_at: datetime | None
    change: int


@attrs.frozen(kw_only=True)
class DatabaseHome:
    """Where a database lives, so that a copy elsewhere does not start sending.

    Attributes:
        host: Identifier of the machine.
        path: Absolute path of the file.
    """

    host: str
    path: str


@attrs.frozen(kw_only=True)
class HighWaterMark:
    """How far a database had come, as noted beside it.

    Attributes:
        database: Identifier of the database, which its copies share and a new one does not.
        epoch: Of the last lease.
        change: The highest change number.
        renewed_at: The last heartbeat of that lease: messages of one campaign change no change number, so that this
            alone tells a copy that was made in the midst of them. None in a note of an earlier version.
    """

    database: str
    epoch: int
    change: int
    renewed_at: datetime | None = None


@attrs.frozen(kw_only=True)
class Lease:
    """The right to dispatch.

    Attributes:
        epoch: Fencing number; each taking of the lease raises it.
        home: Where the database was when the lease was taken; None where that means nothing.
        renewed_at: The last heartbeat; each lies after the one before, also where the clock was set back between them.
        steady_since: Since when the wall clock has not been set, as far as its holder can tell: the taking, or the last
            step of the clock that it has seen.
        steady_until: Until when that is known: what the clock showed at the last heartbeat.
        held_reason: Why the database was last kept from sending by itself: `moved` or `restored`; None for never.
        held_epoch: The epoch of that; what was asked of a provider under an earlier one is not asked again.
    """

    epoch: int
    home: DatabaseHome | None
    renewed_at: datetime
    steady_since: datetime | None = None
    steady_until: datetime | None = None
    held_reason: str | None = None
    held_epoch: int | None = None


@attrs.frozen(kw_only=True)
class CampaignRunState:
    """What a dispatcher remembers of a campaign across restarts.

    Attributes:
        owner_epoch: Epoch of the worker that owns the campaign.
        next_slot_at: The first moment at which the next message may start; None before the first.
        assigned: Recipients that have got a number of the caller-ID group.
        held_under: The workspace's rules of contact under which recipients were put off; None when none were.
    """

    workspace_id: str
    campaign_id: str
    owner_epoch: int
    next_slot_at: datetime | None
    assigned: int = 0
    held_under: str | None = None


@attrs.frozen(kw_only=True)
class RequestWindow:
    """The requests that a workspace has made in the present minute."""

    workspace_id: str
    started_at: datetime
    count: int


@attrs.frozen(kw_only=True)
class IdempotencyRecord:
    """A request that carries an idempotency key (docs/interface.md#safe-retry).

    Attributes:
        operation: The operation's name.
        key: The client's key.
        fingerprint: SHA-256 of the raw body, in hexadecimal.
        token: Names the one request that may finish this; a later one that took over has another.
        answer: The first answer's body; None while the first request still runs.
        location: Value of the answer's Location header, where it has one.
        locked_until: While it runs: when another request may take over.
        expires_at: When the key is forgotten.
    """

    workspace_id: str
    operation: str
    key: str
    fingerprint: str
    token: str
    answer: bytes | None
    location: str | None
    locked_until: datetime
    expires_at: datetime


@attrs.frozen(kw_only=True)
class AuditEntry:
    """Who did what.

    Attributes:
        workspace_id: None for what concerns the whole database.
        actor: Who: `api`, `library`, `cli:NAME`, `engine`.
        action: What: `campaign.pause`, `key.revoke`, …
        subject: Identifier of what it was done to.
        detail: More for people; never a secret, a message body or a full number.
    """

    at: datetime
    workspace_id: str | None
    actor: str
    action: str
    subject: str
    detail: str | None = None
