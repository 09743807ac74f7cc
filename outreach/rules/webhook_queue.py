"""The delivery order of one endpoint: events of one key one after the other, those of different keys in parallel."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach.rules.webhooks import DOWN_AFTER, MAX_HELD_KEYS, disabling_reason, is_down, is_given_up, next_wait

MAX_WAITING: Final = 200
"""New events that are in memory for one endpoint."""

_MAX_HELD: Final = 10 * MAX_HELD_KEYS


@attrs.define(kw_only=True, eq=False)
class QueuedEvent:
    """An event that an endpoint is to get.

    Attributes:
        number: Its number in the feed.
        key: The key of its subject.
        attempts: How often it was refused.
        next_at: When it is tried again; None for at once.
        first_at: When it was refused first; None if it was not.
        held: Whether the position has passed it, so that it is stored by itself.
    """

    number: int
    key: str
    attempts: int = 0
    next_at: datetime | None = None
    first_at: datetime | None = None
    held: bool = False


@attrs.frozen(kw_only=True)
class EndpointHealth:
    """How the deliveries to an endpoint go.

    Attributes:
        consecutive_failures: Keys that failed since the last success; while it is down, failures of probes too.
        failing_since: When the first failure after the last success was.
        next_probe_at: When the next probe is due, while it is down.
    """

    consecutive_failures: int = 0
    failing_since: datetime | None = None
    next_probe_at: datetime | None = None

    @property
    def is_down(self) -> bool:
        """Whether nothing but one probe for each step is sent."""
        return is_down(self.consecutive_failures)


class DeliveryQueue:
    """The events of one endpoint: which may be sent now, and what their answers change.

    It uses no storage and no network: `changed` has the events to store.

    Args:
        position: The number up to which every event is done or held.
        health: How deliveries have gone.
        held: The events that are stored by themselves, in any order.

    Attributes:
        health: How deliveries go.
        read_until: The number up to which the feed was read.
        changed: The held events that changed since the last commit, by number; None for those that are done.
    """

    def __init__(self, *, position: int, health: EndpointHealth, held: Iterable[QueuedEvent] = ()) -> None:
        self.read_until = position
        self.health = health
        self.changed: dict[int, QueuedEvent | None] = {}
        self._keys: dict[str, deque[QueuedEvent]] = {}
        self._ready: deque[QueuedEvent] = deque()
        self._later: list[tuple[datetime, int, int, QueuedEvent]] = []
        self._order = itertools.count()
        self._unfinished: dict[int, None] = {}
        self._sent: set[str] = set()
        self._probe: QueuedEvent | None = None
        self._held = 0
        self._held_keys: set[str] = set()
        for event in sorted(held, key=lambda one: one.number):
            self._held += 1
            self._held_keys.add(event.key)
            self._append(event)
        retried = [key for key, events in self._keys.items() if events[0].attempts]
        self._failed_keys = set(retried[: health.consecutive_failures])

    @property
    def position(self) -> int:
        """The number up to which every event is done or held."""
        return next(iter(self._unfinished), self.read_until + 1) - 1

    @property
    def sent(self) -> int:
        """How many events were taken and have no answer yet."""
        return len(self._sent)

    @property
    def wants_more(self) -> bool:
        """Whether more of the feed should be read."""
        if self.health.is_down:
            return not self._keys
        is_full = len(self._held_keys) >= MAX_HELD_KEYS or self._held >= _MAX_HELD
        return len(self._unfinished) < MAX_WAITING and not is_full

    def add(self, number: int, key: str) -> None:
        """Add a new event, with a higher number than all others."""
        event = QueuedEvent(number=number, key=key)
        self.read_until = max(self.read_until, number)
        self._unfinished[number] = None
        before = self._keys.get(key)
        if before and before[0].held:
            self._hold(event)
        self._append(event)

    def held_events(self) -> Sequence[QueuedEvent]:
        """Return the events that are stored by themselves."""
        return [event for events in self._keys.values() for event in events if event.held]

    def take(self, now: datetime) -> QueuedEvent | None:
        """Return the next event that may be sent; None if none may now."""
        if self.health.is_down:
            return self._take_probe(now)
        while self._later and self._later[0][0] <= now:
            event = heapq.heappop(self._later)[3]
            if self._is_head(event) and (event.next_at is None or event.next_at <= now):
                return self._take(event)
        while self._ready:
            event = self._ready.popleft()
            if self._is_head(event) and not event.held:
                return self._take(event)
        return None

    def next_at(self) -> datetime | None:
        """Return when an event that waits for its time may be sent; None if there is none."""
        if self.health.is_down:
            return None if self._sent or not self._keys else self.health.next_probe_at or _LONG_AGO
        while self._later and not self._is_head(self._later[0][3]):
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    def give_back(self, event: QueuedEvent) -> None:
        """Take back an event that was not sent."""
        self._sent.discard(event.key)
        self._schedule(event, first=True)

    def drop(self, event: QueuedEvent) -> None:
        """Remove an event that is not to be sent."""
        self._sent.discard(event.key)
        events = self._keys[event.key]
        is_head = events[0] is event
        events.remove(event)
        self._unfinished.pop(event.number, None)
        if event.held:
            self._held -= 1
            self.changed[event.number] = None
        if not events:
            del self._keys[event.key]
        if not events or not events[0].held:
            self._held_keys.discard(event.key)
        if events and is_head:
            self._schedule(events[0], first=True)

    def succeed(self, event: QueuedEvent, now: datetime) -> None:
        """Note that an event was taken; after an outage all held events are due now."""
        was_down = self.health.is_down
        self._failed_keys.clear()
        self.health = EndpointHealth()
        self.drop(event)
        if was_down:
            for events in self._keys.values():
                if events[0].held and events[0].key not in self._sent:
                    events[0].next_at = now
                    self.changed[events[0].number] = events[0]
                    self._schedule(events[0])

    def fail(
        self,
        event: QueuedEvent,
        now: datetime,
        *,
        draw: float,
        retry_after: float | None = None,
    ) -> bool:
        """Note that an event was refused; return whether it is given up.

        Args:
            event: The event.
            now: The present moment.
            draw: A random number of 0 to 1.
            retry_after: The seconds that the receiver asks for.
        """
        was_down, failing_since = self.health.is_down, self.health.failing_since
        failures, next_probe_at = self.health.consecutive_failures, self.health.next_probe_at
        self._failed_keys.add(event.key)
        if not was_down:
            failures = len(self._failed_keys)
        elif event is self._probe:
            failures += 1
        if is_down(failures) and failures > self.health.consecutive_failures:
            next_probe_at = now + next_wait(failures - DOWN_AFTER + 1, draw=draw, retry_after=retry_after)
        self.health = EndpointHealth(
            consecutive_failures=failures, failing_since=failing_since or now, next_probe_at=next_probe_at
        )
        event.attempts += 1
        event.first_at = event.first_at or now
        if not self.health.is_down and is_given_up(event.first_at, failing_since, now):
            self.drop(event)
            return True
        self._sent.discard(event.key)
        event.next_at = now + next_wait(event.attempts, draw=draw, retry_after=retry_after)
        for one in self._keys[event.key]:
            self._hold(one)
        self.changed[event.number] = event
        self._schedule(event)
        return False

    def disabling_reason(self, status: int | None, now: datetime) -> str | None:
        """Return why the endpoint is to be disabled after a failure; None if it is not."""
        return disabling_reason(status, self.health.failing_since, now)

    def take_changed(self) -> Mapping[int, QueuedEvent | None]:
        """Return the changes of held events to store, and clear them."""
        changed, self.changed = self.changed, {}
        return {number: event and attrs.evolve(event) for number, event in changed.items()}

    def _take_probe(self, now: datetime) -> QueuedEvent | None:
        """Return a test that nobody has tried yet, else the event that was tried least often, the oldest of these.

        Always the oldest one could be an event that the endpoint refuses for its own sake: it would stay down.
        """
        if self._sent or (self.health.next_probe_at is not None and now < self.health.next_probe_at):
            return None
        heads = [events[0] for events in self._keys.values()]
        tests = [one for one in heads if one.number <= 0 and not one.attempts]
        candidates = tests or [one for one in heads if one.attempts] or heads
        self._probe = min(candidates, key=lambda one: (one.attempts, one.number), default=None)
        return None if self._probe is None else self._take(self._probe)

    def _take(self, event: QueuedEvent) -> QueuedEvent:
        self._sent.add(event.key)
        return event

    def _is_head(self, event: QueuedEvent) -> bool:
        events = self._keys.get(event.key)
        return bool(events) and events is not None and events[0] is event and event.key not in self._sent

    def _append(self, event: QueuedEvent) -> None:
        events = self._keys.setdefault(event.key, deque())
        events.append(event)
        if len(events) == 1:
            self._schedule(event)

    def _schedule(self, event: QueuedEvent, *, first: bool = False) -> None:
        if event.held:
            heapq.heappush(self._later, (event.next_at or _LONG_AGO, event.number, next(self._order), event))
        elif first:
            self._ready.appendleft(event)
        else:
            self._ready.append(event)

    def _hold(self, event: QueuedEvent) -> None:
        if not event.held:
            event.held = True
            self._held += 1
            self._held_keys.add(event.key)
            self._unfinished.pop(event.number, None)
            self.changed[event.number] = event


_LONG_AGO: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
