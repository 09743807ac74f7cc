"""A feed of events, its endpoints and their receivers, in memory: what the tests of deliveries share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import anyio
import attrs

from outreach.core.clock import Clock
from outreach.dispatch.webhook_endpoint import (
    LEASE,
    DeliveryAnswer,
    OpenedEndpoint,
    Progress,
    Stretch,
)
from outreach.dispatch.webhooks import EndpointPlace
from outreach.errors import StorageError
from outreach.ledger.webhooks import EventBody
from outreach.rules.webhook_queue import EndpointHealth, QueuedEvent
from outreach.rules.webhooks import message_id

Answers = Callable[[int, int], tuple[float, DeliveryAnswer]]
"""Returns, for the number of an event and of its request, after how many seconds which answer comes."""

TAKEN = DeliveryAnswer(status=204)


@attrs.define
class Stored:
    """An endpoint as the database has it."""

    url: str = "https://hooks.example.com/"
    concurrency: int = 4
    position: int = 0
    health: EndpointHealth = attrs.field(factory=EndpointHealth)
    held: dict[int, QueuedEvent] = attrs.field(factory=dict)
    state: str = "active"
    reason: str | None = None
    holder: object = None
    held_until: datetime | None = None
    stores: int = 0

    def is_due(self, now: datetime, last: int) -> bool:
        """Return whether something may be due."""
        if self.health.is_down:
            return self.health.next_probe_at is None or self.health.next_probe_at <= now
        return self.position < last or any(one.next_at is None or one.next_at <= now for one in self.held.values())


class Feed:
    """The database that all processes share."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.keys: dict[int, str] = {}
        self.times: dict[int, datetime] = {}
        self.endpoints: dict[str, Stored] = {}

    def add(self, *keys: str, ago: timedelta = timedelta(0)) -> None:
        """Add an event for each key, which happened some time ago."""
        for number, key in enumerate(keys, len(self.keys) + 1):
            self.keys[number], self.times[number] = key, self.clock.now() - ago

    @property
    def last(self) -> int:
        """The number of the latest event."""
        return len(self.keys)


class Process:
    """The records as one process has them, until it is killed."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.is_dead = False

    def kill(self) -> None:
        """Let each further access to the database fail."""
        self.is_dead = True

    async def alive(self) -> None:
        """Take a moment, and fail if the process was killed."""
        await anyio.sleep(0.001)
        if self.is_dead:
            raise StorageError("The process was killed.")

    async def due(self, running: frozenset[EndpointPlace]) -> Sequence[EndpointPlace]:
        """Return the active endpoints for which something may be due."""
        await self.alive()
        now = self.feed.clock.now()
        return [
            EndpointPlace("ws1", name)
            for name, one in self.feed.endpoints.items()
            if one.state == "active" and one.is_due(now, self.feed.last)
        ]

    def ended(self, place: EndpointPlace, next_at: datetime | None) -> None:
        """The endpoint has it."""

    def of(self, place: EndpointPlace) -> Records:
        """Return the records of one endpoint."""
        return Records(self, place.id)


class Records:
    """The records of one endpoint."""

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._feed = process.feed
        self._name = name
        self._one = process.feed.endpoints[name]

    async def open(self) -> OpenedEndpoint | None:
        """Take the lease."""
        await self._process.alive()
        one, now = self._one, self._feed.clock.now()
        is_free = one.holder in {None, self._process} or one.held_until is None or one.held_until <= now
        if one.state != "active" or not is_free:
            return None
        one.holder, one.held_until = self._process, now + LEASE
        return OpenedEndpoint(
            id=self._name,
            url=one.url,
            concurrency=one.concurrency,
            secrets=[b"s" * 32],
            position=one.position,
            health=one.health,
            held=[attrs.evolve(event) for event in one.held.values()],
        )

    async def read(self, after: int) -> Stretch:
        """Return the next 500 events at most."""
        await self._process.alive()
        until = min(after + 500, self._feed.last)
        events = [self._ready(number) for number in range(after + 1, until + 1)]
        return Stretch(events=events, until=until, at_end=until == self._feed.last)

    async def ready(self, event: QueuedEvent) -> EventBody | None:
        """Return an event with its body."""
        await self._process.alive()
        return self._ready(event.number)

    async def is_same(self) -> bool:
        """Return whether it is still active, as it was when it was opened."""
        await self._process.alive()
        return self._one.state == "active"

    async def store(self, progress: Progress) -> bool:
        """Store progress, if the lease is still ours."""
        await self._process.alive()
        one, now = self._one, self._feed.clock.now()
        if one.holder is not self._process:
            return False
        one.stores += 1
        one.position, one.health = progress.position, progress.health
        for number, event in progress.changed.items():
            if event is None:
                one.held.pop(number, None)
            else:
                one.held[number] = event
        if progress.disabled:
            one.state, one.reason = "disabled", progress.disabled
        one.held_until = now + LEASE
        if progress.release:
            one.holder = one.held_until = None
        return True

    def _ready(self, number: int) -> EventBody:
        at = self._feed.times[number]
        return EventBody(
            id=message_id("ws1", number, at),
            number=number,
            key=self._feed.keys[number],
            type="t",
            at=at,
            body=str(number).encode(),
        )


@attrs.define
class Receiver:
    """What receives the requests to one URL.

    Attributes:
        answers: How it answers.
        taken: The numbers of the events that it took, in order.
        ids: The ids that came with each number.
        times: When each request came, in seconds on the monotonic clock.
    """

    clock: Clock
    answers: Answers = lambda number, request: (0.01, TAKEN)
    taken: list[int] = attrs.field(factory=list)
    ids: dict[int, set[str]] = attrs.field(factory=lambda: defaultdict(set))
    times: list[float] = attrs.field(factory=list)
    open: int = 0
    most: int = 0

    async def receive(self, headers: Mapping[str, str], body: bytes) -> DeliveryAnswer:
        """Answer a request, and note it."""
        number = int(body)
        self.times.append(self.clock.monotonic())
        self.ids[number].add(headers["webhook-id"])
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            seconds, answer = self.answers(number, len(self.times))
            await anyio.sleep(seconds)
        finally:
            self.open -= 1
        if answer.ok:
            self.taken.append(number)
        return answer


class Network:
    """Brings requests to receivers, by URL."""

    def __init__(self, receivers: Mapping[str, Receiver]) -> None:
        self._receivers = receivers

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAnswer:
        """Bring a request to the receiver of its URL."""
        return await self._receivers[url].receive(headers, body)

    async def aclose(self) -> None:
        """There is no connection."""
