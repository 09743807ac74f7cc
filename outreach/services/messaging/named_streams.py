"""Named streams of events: their position is stored, and one process at a time handles them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import anyio

from outreach.core.config import EngineConfig
from outreach.errors import InvalidRequest, StorageError
from outreach.ledger import subscriptions
from outreach.ledger.subscriptions import events_between
from outreach.models.events import Event
from outreach.models.subscription import EventGap, StoredSubscription
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

E = TypeVar("E", bound=Event, covariant=True)

LEASE_SECONDS: Final = 5.0
"""How long a stream that no longer renews its lease keeps others from its subscription."""

_RENEWALS: Final = 4
"""How often a lease is renewed while it lasts."""

_ACK_SECONDS: Final = 0.5
"""How long an acknowledgement waits for those of further events, so that a backlog costs no write for each event."""

_STRETCH: Final = 500
"""Entries of the trail that are read at a time."""


def lease_of(config: EngineConfig) -> timedelta:
    """Return how long a lease lasts: an engine that seldom looks for changes renews it as seldom."""
    return timedelta(seconds=max(LEASE_SECONDS, 2 * config.change_poll_seconds))


class OneReader:
    """Lets one task at a time read a stream: two would get the same events."""

    def __init__(self) -> None:
        self._is_reading = False

    def __enter__(self) -> None:
        if self._is_reading:
            raise InvalidRequest("Another task reads this stream: subscribe again for each task.")
        self._is_reading = True

    def __exit__(self, *_: object) -> None:
        self._is_reading = False


class NamedStream(Generic[E]):
    """The events of a named subscription, from where it was acknowledged last.

    Of all streams of one name, in whatever process, one gets the events; the others wait in their iteration and go
    on in its place when it is closed, or has not renewed its lease for five seconds
    (twice `change_poll_seconds`, where that is longer). What was delivered and not acknowledged is
    delivered again then: each event at least once, in the order of the commits.

    Use it as an async context manager, and iterate over it in one task at a time; the iteration ends when the stream or
    the engine is closed. Call `ack` when what was delivered so far has been done. Acknowledgements are stored in
    batches.
    """

    def __init__(
        self,
        context: ServiceContext,
        closing: anyio.Event,
        streams: set[NamedStream[Any]],
        *,
        name: str,
        kinds: tuple[type[E], ...],
        workspace_id: str | None,
        since: int | None,
    ) -> None:
        self.name = name
        self._context = context
        self._closing = closing
        self._streams = streams
        self._kinds = kinds
        self._workspace_id = workspace_id
        self._since = since
        self._holder = context.ids()
        self._lease = lease_of(context.config)
        self._one_reader = OneReader()
        self._entered = False
        self._closed = anyio.Event()
        self._renewing: asyncio.Task[None] | None = None
        self._held_until: float | None = None
        self._waiting: deque[E | EventGap] = deque()
        self._read_until = self._delivered_until = self._acked_until = 0
        self._gap_read = self._gap_delivered = self._gap_acked = 0
        self._stored_at = float("-inf")

    async def __aenter__(self) -> Self:
        """Make the subscription where there is none yet, and begin to wait for its turn.

        Raises:
            NotFound: There is no such workspace.
            Conflict: There is a subscription of this name for another workspace, or the database has not come as far
                as `since`.
            InvalidRequest: It has been entered before.
        """
        if self._entered:
            raise InvalidRequest("A stream is entered once: subscribe again under the same name to go on.")
        self._entered = True
        context = self._context
        await context.storage.write(
            lambda tx: subscriptions.ensure(
                tx, self.name, workspace_id=self._workspace_id, since=self._since, now=context.now()
            )
        )
        self._streams.add(self)
        self._renewing = asyncio.create_task(self._renew(), name=f"outreach subscription {self.name}")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Let another stream of this name go on at once; what was not acknowledged is delivered again."""
        await self.aclose()

    async def aclose(self) -> None:
        """Do what leaving the context does."""
        self._closed.set()
        renewing, self._renewing = self._renewing, None
        if renewing is None:
            return
        renewing.cancel()
        with anyio.CancelScope(shield=True), suppress(asyncio.CancelledError):
            await renewing
        self._streams.discard(self)
        if self._held_until is not None:
            self._held_until = None
            # Where the database is closed or fails, the lease expires.
            with anyio.CancelScope(shield=True), suppress(StorageError):
                await self._context.storage.write(self._leave)

    def __aiter__(self) -> Self:
        """Return itself: a stream is gone through once.

        Raises:
            InvalidRequest: It has not been entered.
        """
        if not self._entered:
            raise InvalidRequest(
                "Enter the stream before you iterate over it: "
                "async with engine.events.subscribe(..., name=...) as stream: async for event in stream: ..."
            )
        return self

    async def __anext__(self) -> E | EventGap:
        """Return the next event, or a notice of events that were purged; wait for it where there is none yet.

        Raises:
            NotFound: The subscription was removed.
            InvalidRequest: It has not been entered, or another task waits for its next event.
        """
        self.__aiter__()
        with self._one_reader:
            return await self._next()

    async def _next(self) -> E | EventGap:
        while True:
            if self._closed.is_set() or self._closing.is_set():
                raise StopAsyncIteration
            try:
                ready = (self._is_held() or await self._take()) and (self._waiting or await self._read())
            except StorageError:
                if self._closing.is_set():
                    raise StopAsyncIteration from None
                raise
            if ready and self._waiting and self._is_held():
                return self._deliver(self._waiting.popleft())
            if not ready:
                await wait_for_change(self._context, self._closing)

    async def ack(self, *, at_once: bool = False) -> bool:
        """Acknowledge that everything delivered so far has been done: it is not delivered again.

        While further events are at hand, acknowledgements are stored together, every half a second and as the stream is
        closed. Where the process dies before, the events since then are delivered again.

        Args:
            at_once: Whether this one is stored before the call returns, as it is where no further event is at hand.

        Returns:
            Whether it is acknowledged. False where another stream of this name has taken over meanwhile, or the
            subscription was removed: the other gets the same events again.
        """
        delivered, gap = self._delivered_until, self._gap_delivered
        now = self._context.clock.monotonic()
        is_due = not self._waiting or now >= self._stored_at + _ACK_SECONDS
        if at_once or is_due or self._held_until is None or now >= self._held_until:
            if not await self._store(delivered, gap):
                return False
            self._stored_at = now
        self._acked_until, self._gap_acked = delivered, gap
        return True

    def _leave(self, tx: Transaction) -> None:
        """Store what was acknowledged, and let another stream go on."""
        self._advance(tx, self._acked_until, self._gap_acked)
        subscriptions.release(tx, self.name, self._holder)

    def _deliver(self, found: E | EventGap) -> E | EventGap:
        if isinstance(found, EventGap):
            self._gap_delivered = found.last
        else:
            self._delivered_until = found.number
        if not self._waiting:
            # The filter leaves out the other events up to here: they count as delivered with this one.
            self._delivered_until = self._read_until
        return found

    def _is_held(self) -> bool:
        """Return whether this stream may deliver events; forget what waits where it may not any more."""
        if self._held_until is not None and self._context.clock.monotonic() < self._held_until:
            return True
        self._forget_lease()
        return False

    def _forget_lease(self) -> None:
        self._held_until = None
        self._waiting.clear()

    async def _take(self) -> bool:
        """Begin to read the subscription where no other stream does; return whether it did."""
        context, lease = self._context, self._lease
        begun = context.clock.monotonic()

        def look(tx: Transaction) -> bool:
            row = tx.subscriptions.get(self.name)
            # The write finds out that it was removed.
            return row is None or subscriptions.is_free(row, self._holder, lease=lease, now=context.now())

        # A stream that waits for its turn only reads.
        if not await context.storage.read(look):
            return False
        row: StoredSubscription | None = await context.storage.write(
            lambda tx: subscriptions.take(tx, self.name, self._holder, lease=lease, now=context.now())
        )
        if row is None:
            return False
        self._waiting.clear()
        self._read_until = self._delivered_until = self._acked_until = row.position
        self._gap_read = self._gap_delivered = self._gap_acked = row.gap_until
        self._held_until = begun + lease.total_seconds()
        return True

    async def _read(self) -> bool:
        """Read a stretch of the trail; return whether there was one."""
        after, gap = self._read_until, self._gap_read

        def operation(tx: Transaction) -> tuple[int, int, Sequence[Event | None]]:
            until = min(tx.trail.last_number(), after + _STRETCH)
            found = events_between(tx, self._workspace_id, after, until)
            return tx.trail.purged_until(), until, found

        purged, until, events = await self._context.storage.read(operation)
        if purged > max(gap, after):
            self._waiting.append(EventGap(first=max(gap, after) + 1, last=purged))
            self._gap_read = purged
        self._waiting.extend(event for event in events if isinstance(event, self._kinds))
        self._read_until = max(until, after)
        if not self._waiting and self._delivered_until == self._acked_until:
            # Nothing was delivered, so there is nothing to acknowledge.
            self._delivered_until = self._acked_until = self._read_until
        return until > after or bool(self._waiting)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / _RENEWALS)
            if self._held_until is not None:
                # The next read raises the error; the lease expires meanwhile.
                with suppress(StorageError):
                    await self._store(self._acked_until, self._gap_acked)

    async def _store(self, position: int, gap_until: int) -> bool:
        context, lease = self._context, self._lease
        begun = context.clock.monotonic()
        if self._held_until is None:
            return False
        stored = await context.storage.write(lambda tx: self._advance(tx, position, gap_until))
        if not stored:
            self._forget_lease()
        elif self._held_until is not None:
            self._held_until = max(self._held_until, begun + lease.total_seconds())
        return stored

    def _advance(self, tx: Transaction, position: int, gap_until: int) -> bool:
        return subscriptions.advance(
            tx,
            self.name,
            self._holder,
            position=position,
            gap_until=gap_until,
            lease=self._lease,
            now=self._context.now(),
        )


async def wait_for_change(context: ServiceContext, closing: anyio.Event) -> None:
    """Wait until the trail is read again, or the engine is being closed."""
    with anyio.move_on_after(context.config.change_poll_seconds):
        await closing.wait()
