"""Units of work, the dispatching worker, requests over HTTP, and where the database is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import attrs

from outreach.models.fields import Checked, bounded, sized

M = TypeVar("M")

MAX_IDEMPOTENCY_DAYS: Final = 90
"""The longest time for which an idempotency key is kept."""

WorkUnitKind = Literal["campaign", "call", "message", "schedule"]


class WorkUnit(NamedTuple):
    """Something that a runner works on in slices."""

    kind: WorkUnitKind
    workspace_id: str
    id: str


@attrs.frozen(kw_only=True)
class WorkItem:
    """A unit and when it is due.

    Attributes:
        due_at: When; None if nothing is left to do.
        change: Number of the change that wrote this; only increases within one database.
    """

    unit: WorkUnit
    due_at: datetime | None
    change: int


COPIED_TO: Final = "outreach:copied-to"
COPIED_FROM: Final = "outreach:copied-from"
"""Hosts of databases that `db copy` has copied, and of the copies, until a worker begins there."""

STATE: Final = " state "
"""Before the state of a database on a server, in its host."""

SOME_SERVER: Final = "postgresql"
"""The machine of a database whose server does not show its identity, which takes a privilege."""

RESTORED: Final = "restored"
"""The state of a database whose rows another program has written, such as `pg_restore`, until a worker begins there."""


@attrs.frozen(kw_only=True)
class DatabaseHome:
    """Where a database is, so that a copy elsewhere does not start sending.

    Attributes:
        host: Id of the machine; or `COPIED_TO` or `COPIED_FROM`. Of a server also the state of the database, which is
            another one where it was set back in its place (`on_server`).
        path: Absolute path of the file; or where the other database of a copy is.
    """

    host: str
    path: str

    @classmethod
    def on_server(cls, *, server: str, database: str, objects: str, timeline: str) -> DatabaseHome:
        """Return the home of a database on a server.

        Args:
            server: Identifies the server and its copies.
            database: The name of the database.
            objects: Identifies the database and its tables: others have others, whatever their names are.
            timeline: Of the server: one that was set back to an earlier moment, or has taken over, has another one.
        """
        return cls(host=f"{server}{STATE}{objects} {timeline}", path=database)

    @property
    def machine(self) -> str:
        """The host without the state of the database."""
        return self.host.partition(STATE)[0]

    @property
    def state(self) -> str:
        """The state of a database on a server; empty for a file, and for one that an earlier version recorded."""
        return self.host.partition(STATE)[2]

    def may_share_machine(self, other: DatabaseHome) -> bool:
        """Return whether both are on one machine, or it is not known of one of them."""
        return self.machine == other.machine or SOME_SERVER in {self.machine, other.machine}

    def is_connected_like(self, other: DatabaseHome) -> bool:
        """Return whether two are the same database, perhaps on two servers after a failover."""
        ours, theirs = self.state.rpartition(" ")[0], other.state.rpartition(" ")[0]
        return self.may_share_machine(other) and (ours, self.path) == (theirs, other.path)

    @property
    def copied_to(self) -> str | None:
        """Where `db copy` has copied the database, so that it must not be sent from here; None if it was not copied."""
        return self.path if self.machine == COPIED_TO else None


@attrs.frozen(kw_only=True)
class HighWaterMark:
    """The state that a database had reached, recorded outside it.

    Attributes:
        database: Id of the database, shared by its copies.
        epoch: The highest epoch.
        change: The highest change number.
        renewed_at: The last heartbeat. None in a record of an earlier version.
    """

    database: str
    epoch: int
    change: int
    renewed_at: datetime | None = None


@attrs.frozen(kw_only=True)
class WorkerLease:
    """The right of one worker to dispatch; its times are the database's.

    Attributes:
        epoch: Fencing number: no other worker has had it.
        place: Number of the worker's dispatch lock; no two workers hold one at a time.
        renewed_at: Its last heartbeat.
        until: It is over then, unless it is renewed.
        intent_permits: Intents that it may have waiting for their slots until its next heartbeat.
        request_permits: Requests that it may have on their way until then.
    """

    epoch: int
    place: int
    renewed_at: datetime
    until: datetime
    intent_permits: int = 0
    request_permits: int = 0


@attrs.frozen(kw_only=True)
class Claim:
    """Which worker drives something that only one may drive at a time.

    Attributes:
        subject: A campaign's id, a sending number that has a rate, or `singles` for calls and messages outside
            campaigns.
        epoch: Of the worker, or of the one that drove it last.
        held: Whether that one still drives it.
    """

    workspace_id: str
    subject: str
    epoch: int
    held: bool


@attrs.frozen(kw_only=True)
class Lease:
    """The state of dispatching as a whole, kept by the worker that leads: the one with the lowest epoch.

    Attributes:
        epoch: The highest epoch so far; each new worker raises it.
        home: Where the database was when the last worker began; None if not applicable.
        renewed_at: The last heartbeat; only increases, also where the clock was set back.
        steady_since: Since when the wall clock has not been set, as far as the leader knows.
        steady_until: The wall clock at the last heartbeat, until when that is known.
        quarantine_reason: Why the database was last quarantined: `moved` or `restored`; None for never.
        quarantine_epoch: The epoch of the quarantine; requests of an earlier one are not repeated.
    """

    epoch: int
    home: DatabaseHome | None
    renewed_at: datetime
    steady_since: datetime | None = None
    steady_until: datetime | None = None
    quarantine_reason: str | None = None
    quarantine_epoch: int | None = None


@attrs.frozen(kw_only=True)
class CampaignRunState:
    """A campaign's dispatch state, kept across restarts.

    Attributes:
        owner_epoch: Epoch of the worker that last drove the campaign.
        next_slot_at: The earliest start of the next message; None before the first.
        assigned: Recipients with a number of the caller-ID group or sender pool.
        postponed_under: The contact rules of the workspace under which recipients were postponed, if any.
    """

    workspace_id: str
    campaign_id: str
    owner_epoch: int
    next_slot_at: datetime | None
    assigned: int = 0
    postponed_under: str | None = None


@attrs.frozen(kw_only=True)
class RequestWindow:
    """A workspace's requests in the current minute."""

    workspace_id: str
    started_at: datetime
    count: int


@attrs.frozen(kw_only=True)
class IdempotencyRecord:
    """A request with an idempotency key (docs/interface.md#safe-retry).

    Attributes:
        operation: The operation's name.
        key: The client's key.
        fingerprint: SHA-256 of the raw body, in hexadecimal.
        token: Identifies the request that may finish this; a takeover has another.
        answer: The first response's body; None while the first request runs.
        location: The response's Location header, if any.
        locked_until: When another request may take over from a running one.
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
    """An entry of the audit trail: actor, action, subject.

    Attributes:
        workspace_id: None for the whole database.
        actor: `api`, `library`, `cli:NAME`, `user:ID` or `engine`.
        action: `campaign.pause`, `key.revoke`, …
        subject: Id of the changed object.
        detail: For people; never a secret, a message body or a full number.
    """

    at: datetime
    workspace_id: str | None
    actor: str
    action: str
    subject: str
    detail: str | None = None


@attrs.frozen(kw_only=True)
class StoredAnswer:
    """The answer that a key replays."""

    body: bytes
    location: str | None = None


class AnswerReplayed(Exception):
    """Ends a method that was called with an `IdempotentRequest` whose key has an answer already.

    The request has the answer.
    """


@attrs.frozen(kw_only=True)
class LastingKey(Checked):
    """An idempotency key that is kept for longer than the engine's default.

    Attributes:
        key: The key, 1 to 255 printable characters.
        idempotency_days: Days from the first request for which it is kept, 1 to 90.
    """

    key: str = sized(1, 255)
    idempotency_days: int = bounded(1, MAX_IDEMPOTENCY_DAYS)


@attrs.define(kw_only=True, eq=False)
class IdempotentRequest(Generic[M]):
    """A request and what becomes its answer, for the argument `idempotency_key` of a method that makes something.

    The method stores the answer in the transaction that makes the thing, or raises `AnswerReplayed`; both set `answer`.

    Attributes:
        operation: The operation's name, which scopes the key.
        key: The client's key; None for a request without one, whose answer is not stored.
        digest: SHA-256 of the content, in hexadecimal; the same key with another one is refused.
        render: Makes the answer of what was made; called once for each try of the transaction.
        where: The header or field with the key, for errors.
        idempotency_days: Days for which the key is kept; None for the engine's default.
        answer: The answer, as soon as the method has returned or raised `AnswerReplayed`.
    """

    operation: str
    key: str | None
    digest: str
    render: Callable[[M], StoredAnswer]
    where: str = "Idempotency-Key"
    idempotency_days: int | None = None
    answer: StoredAnswer = attrs.field(init=False)


IdempotencyKey: TypeAlias = str | LastingKey | IdempotentRequest[M] | None
"""How a caller names what a method makes, so that a repeated call makes nothing new: by a name of its own, which
may last, or by a request whose answer is replayed."""


@attrs.frozen(kw_only=True)
class RateLimitState:
    """The state of a workspace's request limit.

    Attributes:
        limit: Requests a minute.
        remaining: Requests left in this minute.
        reset_seconds: Whole seconds until the next minute begins.
    """

    limit: int
    remaining: int
    reset_seconds: int
