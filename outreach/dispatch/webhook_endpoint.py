"""Delivers the events of one endpoint, while there are some, under a lease of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Protocol

import anyio
import attrs
from anyio.abc import TaskGroup

from outreach.core.clock import Clock
from outreach.core.webhook_signatures import signed_headers
from outreach.errors import StorageError
from outreach.ledger.webhooks import EventBody
from outreach.protocols.instrumentation import Instrumentation
from outreach.providers.http.request_gate import FairLimiter
from outreach.rules.webhook_queue import DeliveryQueue, EndpointHealth, QueuedEvent
from outreach.rules.webhooks import BACKLOG_AFTER, DRAIN_PER_SECOND, Pace, is_success, retry_after_seconds

MAX_CONNECTIONS: Final = 64
"""Of all endpoints together."""

WHOLE_SECONDS: Final = 15.0
"""How long one request may take."""

FIRST_AT_ONCE: Final = 4
"""So many deliveries at a time are an endpoint's first: endpoints that hang must not take the connections of others."""

LEASE: Final = timedelta(seconds=5)
"""How long a process that no longer renews the lease of an endpoint keeps others from it."""

STORE_SECONDS: Final = 0.5
"""How long an answer waits to be stored with others, so that a backlog costs no write for each event."""

STOP_SECONDS: Final = 2.0
"""How long a stop waits for requests in flight; events without an answer by then are delivered again."""

SEEN_SECONDS: Final = 0.1
"""So long after an endpoint was paused, removed or changed a request to it may still begin: it is not read for each."""

_LEAST_WAIT_SECONDS: Final = 0.001
"""So that a time that is due but for rounding is not waited for in no time, again and again."""

_RENEW_SECONDS: Final = LEASE.total_seconds() / 4
_STAY_SECONDS: Final = 2.0
"""An event that is due within this is waited for; otherwise the lease is given back."""


@attrs.frozen(kw_only=True)
class DeliveryAnswer:
    """The result of one delivery.

    Attributes:
        status: The HTTP status; None where no answer came.
        error: Why no answer came: `target_refused`, `certificate` with the error of TLS behind a colon,
            `not_connected`, `timeout` or `dropped`; else None.
        text: The beginning of the answer, at most 4 kB.
        retry_after: The header `Retry-After`, as it came; None where there is none.
        seconds: How long it took.
    """

    status: int | None
    error: str | None = None
    text: bytes = b""
    retry_after: str | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the event is delivered: any status of 200 to 299."""
        return is_success(self.status)


@attrs.frozen(kw_only=True)
class OpenedEndpoint:
    """An endpoint whose lease was taken.

    Attributes:
        secrets: The raw bytes of the secrets that are valid, the current one first.
        position: The number up to which every event is done or held.
        held: The events that are stored by themselves.
    """

    id: str
    url: str
    concurrency: int
    secrets: Sequence[bytes]
    position: int
    health: EndpointHealth
    held: Sequence[QueuedEvent]


@attrs.frozen(kw_only=True)
class Stretch:
    """Part of the feed.

    Attributes:
        events: The events for the endpoint, in order, and the notice of a gap among them.
        until: The number up to which the feed was read.
        at_end: Whether the feed had no more.
    """

    events: Sequence[EventBody]
    until: int
    at_end: bool


@attrs.frozen(kw_only=True)
class AttemptMade:
    """One request of a delivery, for the log of attempts."""

    number: int
    type: str
    at: datetime
    answer: DeliveryAnswer


@attrs.frozen(kw_only=True)
class Progress:
    """The progress that is stored after answers.

    Attributes:
        position: The number up to which every event is done or held.
        health: How deliveries go.
        changed: The held events that changed, by number; None for those that are done.
        attempts: The requests since the last time.
        disabled: Why the endpoint is disabled with it; None if it is not.
        release: Whether the lease is given back.
    """

    position: int
    health: EndpointHealth
    changed: Mapping[int, QueuedEvent | None]
    attempts: Sequence[AttemptMade]
    disabled: str | None
    release: bool


class EndpointRecords(Protocol):
    """The records of an endpoint in the database; each method may raise a `StorageError`."""

    async def open(self) -> OpenedEndpoint | None:
        """Take the lease; return None where another process has it, or nothing is to be delivered."""
        ...

    async def read(self, after: int) -> Stretch:
        """Return a stretch of the feed after a number."""
        ...

    async def ready(self, event: QueuedEvent) -> EventBody | None:
        """Return a held event as it is now; None where it is of no type of the endpoint any more."""
        ...

    async def is_same(self) -> bool:
        """Return whether the endpoint is as it was opened: not paused, removed or changed."""
        ...

    async def store(self, progress: Progress) -> bool:
        """Store progress and renew the lease; return False where the lease is lost, or the endpoint has changed."""
        ...


class Sender(Protocol):
    """Makes requests to endpoints."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAnswer:
        """Make one request, and return what came of it."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class EndpointDeliveries:
    """The deliveries of one endpoint, from the moment that something is due until nothing is.

    Args:
        records: Its records in the database.
        sender: Makes the requests.
        permits: The connections that all endpoints share.
        pace: The pace that all endpoints share.
        clock: The source of time.
        rng: Where the jitter comes from.
        poll_seconds: How often further events are looked for while some are in flight.
        closing: Set when the process stops.
        instrumentation: Observes the results of requests.
    """

    def __init__(
        self,
        *,
        records: EndpointRecords,
        sender: Sender,
        permits: FairLimiter,
        pace: Pace,
        clock: Clock,
        rng: random.Random,
        poll_seconds: float,
        closing: anyio.Event,
        instrumentation: Instrumentation,
    ) -> None:
        self._instrumentation = instrumentation
        self._records = records
        self._sender = sender
        self._permits = permits
        self._pace = pace
        self._clock = clock
        self._rng = rng
        self._poll_seconds = poll_seconds
        self._closing = closing
        self._changed = anyio.Event()
        self._bodies: dict[int, EventBody] = {}
        self._attempts: list[AttemptMade] = []
        self._disabled: str | None = None
        self._lost = self._ended = False
        self._stored_at = self._held_until = self._seen_at = self._look_at = float("-inf")
        self._stored_position = 0
        self.given_up = 0
        self.unwanted = 0

    async def run(self) -> datetime | None:
        """Deliver what is due; return when something is due next, None where nothing is before the next event.

        Raises:
            StorageError: The database failed; events whose answer was not stored are delivered again.
        """
        begun = self._clock.monotonic()
        opened = await self._records.open()
        if opened is None:
            return None
        self._stored_at, self._seen_at, self._held_until = begun, begun, begun + LEASE.total_seconds()
        self._endpoint = opened
        self._at_once = min(FIRST_AT_ONCE, opened.concurrency)
        self._drain = Pace(DRAIN_PER_SECOND)
        self._backlog_until = self._clock.now() - BACKLOG_AFTER
        self._queue = DeliveryQueue(position=opened.position, health=opened.health, held=opened.held)
        self._stored_position = opened.position
        failure: StorageError | None = None
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    while await self._go_on(tasks):
                        await self._wait()
                except StorageError as error:
                    self._lost, failure = True, error
                tasks.cancel_scope.cancel()
        finally:
            if not self._lost:
                # Where the database fails, the lease expires.
                with anyio.move_on_after(STOP_SECONDS, shield=True), suppress(StorageError):
                    await self._store(release=True)
        if failure is not None:
            raise failure
        return None if self._disabled else self._queue.next_at()

    def wake(self) -> None:
        """Have it look for what has changed, such as that the process stops."""
        self._changed.set()

    async def _go_on(self, tasks: TaskGroup) -> bool:
        """Read, start and store what is due now; return whether there is more to do."""
        if self._lost:
            return False
        if self._closing.is_set() or self._ended:
            await self._finish()
            return False
        if self._disabled is None:
            await self._read()
            self._start(tasks)
        now = self._clock.monotonic()
        idle = self._queue.sent == 0
        since = now - self._stored_at
        if (self._attempts and (idle or since >= STORE_SECONDS)) or since >= _RENEW_SECONDS:
            await self._store()
        if self._queue.sent or self._attempts:
            # Where the lease was lost meanwhile, the next step ends.
            return True
        if self._disabled is not None:
            return False
        if self._queue.wants_more and self._look_at <= now:
            return True
        due = self._queue.next_at()
        return due is not None and (due - self._clock.now()).total_seconds() < _STAY_SECONDS

    async def _read(self) -> None:
        if not self._queue.wants_more or self._clock.monotonic() < self._look_at:
            return
        found = await self._records.read(self._queue.read_until)
        for event in found.events:
            self._queue.add(event.number, event.key)
            self._bodies[event.number] = event
        self._queue.read_until = max(self._queue.read_until, found.until)
        if found.at_end:
            self._look_at = self._clock.monotonic() + self._poll_seconds

    def _start(self, tasks: TaskGroup) -> None:
        while self._queue.sent < self._at_once and self._clock.monotonic() < self._held_until:
            event = self._queue.take(self._clock.now())
            if event is None:
                return
            tasks.start_soon(self._deliver, event)

    async def _deliver(self, event: QueuedEvent) -> None:
        try:
            await self._send(event)
        except StorageError:
            # The main loop meets it too, with its next write.
            self._queue.give_back(event)
            self._lost = True
        self._changed.set()

    async def _send(self, event: QueuedEvent) -> None:
        ready = self._bodies.pop(event.number, None) or await self._records.ready(event)
        if ready is None:
            self.unwanted += 1
            self._queue.drop(event)
            return
        now = self._clock.monotonic()
        wait = self._pace.wait(now)
        await anyio.sleep(max(wait, self._drain.wait(now)) if ready.at < self._backlog_until else wait)
        if not await self._permits.acquire_within(self._endpoint.id, WHOLE_SECONDS):
            self._queue.give_back(event)
            return
        try:
            if not await self._is_same() or self._lost or self._clock.monotonic() >= self._held_until:
                # Another process may deliver it, or nobody.
                self._queue.give_back(event)
                return
            at = self._clock.now()
            answer = await self._sender.send(self._endpoint.url, self._headers(ready, at), ready.body)
        finally:
            self._permits.release(self._endpoint.id, 1)
        self._attempts.append(AttemptMade(number=event.number, type=ready.type, at=at, answer=answer))
        self._instrumentation.webhook_answered(
            self._endpoint.id, status=answer.status, error=answer.error, seconds=answer.seconds
        )
        self._take_answer(event, answer)

    async def _is_same(self) -> bool:
        """Return whether the endpoint was as it was opened a moment ago; else nothing more is sent."""
        now = self._clock.monotonic()
        if not self._ended and now - self._seen_at >= SEEN_SECONDS:
            self._ended = not await self._records.is_same()
            self._seen_at = now
        return not self._ended

    def _headers(self, ready: EventBody, at: datetime) -> Mapping[str, str]:
        return signed_headers(self._endpoint.secrets, ready.id, int(at.timestamp()), ready.body)

    def _take_answer(self, event: QueuedEvent, answer: DeliveryAnswer) -> None:
        now = self._clock.now()
        if answer.ok:
            self._at_once = min(self._at_once + 1, self._endpoint.concurrency)
            if self._queue.health.is_down:
                # All that happened before is the backlog of its outage.
                self._backlog_until = now
            self._queue.succeed(event, now)
            return
        given_up = self._queue.fail(
            event,
            now,
            draw=self._rng.random(),
            retry_after=retry_after_seconds(answer.retry_after, now),
        )
        self.given_up += given_up
        self._disabled = self._disabled or self._queue.disabling_reason(answer.status, now)

    async def _store(self, *, release: bool = False) -> None:
        attempts, self._attempts = self._attempts, []
        begun = self._clock.monotonic()
        progress = Progress(
            position=self._queue.position,
            health=self._queue.health,
            changed=self._queue.take_changed(),
            attempts=attempts,
            disabled=self._disabled,
            release=release,
        )
        if await self._records.store(progress):
            self._stored_at, self._seen_at, self._held_until = begun, begun, begun + LEASE.total_seconds()
        else:
            self._lost = True

    async def _finish(self) -> None:
        """Wait a moment for the requests in flight."""
        with anyio.move_on_after(STOP_SECONDS):
            while self._queue.sent:
                self._changed = anyio.Event()
                await self._changed.wait()

    async def _wait(self) -> None:
        """Wait for an answer, or for the time of something that is due."""
        now = self._clock.monotonic()
        ends = [self._stored_at + (STORE_SECONDS if self._attempts else _RENEW_SECONDS)]
        if self._queue.wants_more:
            ends.append(self._look_at)
        due = self._queue.next_at()
        if due is not None and self._queue.sent < self._at_once:
            ends.append(now + max((due - self._clock.now()).total_seconds(), 0.0))
        if self._changed.is_set():
            self._changed = anyio.Event()
            return
        with anyio.move_on_after(max(min(ends) - now, _LEAST_WAIT_SECONDS)):
            await self._changed.wait()
        self._changed = anyio.Event()
