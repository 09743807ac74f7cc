"""Events: what has happened, told after its commit, in the order of the commits."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import anyio

from outreach.convert.events import event_of
from outreach.errors import Conflict, InvalidRequest, StorageError
from outreach.models.events import Event
from outreach.services.context import ServiceContext
from outreach.working_set import Transaction

_STRETCH: Final = 500
"""Entries of the trail that are read at a time."""


class EventStream:
    """The events that a subscriber has asked for, one after the other.

    It reads the decision trail of the database, a stretch at a time and only when the subscriber asks for more. So
    what is not committed is never told, a subscriber that is slow holds nobody up and loses nothing, and what other
    processes do to the database is told too. When nothing is new it looks again every `poll_seconds`.

    Use it as an async context manager, and iterate over it; the iteration ends when the stream or the engine is
    closed. Whatever the subscriber raises stays with the subscriber.

    Attributes:
        position: Everything up to this number has been handed out, or was not asked for: a later subscription with
            `since=position` goes on from there, after a restart too.
    """

    def __init__(
        self,
        context: ServiceContext,
        closing: anyio.Event,
        *,
        kinds: tuple[type[Event], ...],
        workspace_id: str | None,
        since: int | None,
    ) -> None:
        self._context = context
        self._closing = closing
        self._closed = anyio.Event()
        self._kinds = kinds
        self._workspace_id = workspace_id
        self._since = since
        self._waiting: deque[Event] = deque()
        self._read_until = 0
        self.position = 0

    async def __aenter__(self) -> Self:
        """Begin to listen: what is committed from now on is told, or what was after `since`.

        Raises:
            Conflict: The database has not come as far as `since`: it is another one, or an older copy.
        """
        last = await self._context.storage.read(lambda tx: tx.trail.last_number())
        if self._since is not None and self._since > last:
            raise Conflict(
                f"The database has come to event {last} only, not to {self._since}: it is another one, or was restored "
                "from a copy. Subscribe without `since`, and read what you need to know anew."
            )
        self.position = self._read_until = last if self._since is None else self._since
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Stop listening."""
        self._closed.set()

    def __aiter__(self) -> Self:
        """Return itself: a stream is gone through once."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event; wait for it where there is none yet."""
        while not self._waiting:
            if self._closed.is_set() or self._closing.is_set():
                raise StopAsyncIteration
            try:
                found = await self._read()
            except StorageError:
                if self._closing.is_set():
                    raise StopAsyncIteration from None
                raise
            if not found:
                self.position = self._read_until
                await self._pause()
        event = self._waiting.popleft()
        self.position = event.number if self._waiting else self._read_until
        return event

    async def _read(self) -> bool:
        """Read a stretch of the trail; return whether there was one."""
        after = self._read_until

        def operation(tx: Transaction) -> tuple[int, Sequence[Event | None]]:
            until = min(tx.trail.last_number(), after + _STRETCH)
            return until, [event_of(entry) for entry in tx.trail.between(self._workspace_id, after, until)]

        until, events = await self._context.storage.read(operation)
        self._waiting.extend(event for event in events if isinstance(event, self._kinds))
        self._read_until = max(until, after)
        return until > after

    async def _pause(self) -> None:
        with anyio.move_on_after(self._context.config.poll_seconds):
            await self._closing.wait()


class Events:
    """What has happened, for an embedding application."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._closing: anyio.Event | None = None

    def subscribe(self, *kinds: type[Event], workspace_id: str | None = None, since: int | None = None) -> EventStream:
        """Return a stream of events; enter it to begin to listen.

            async with engine.events.subscribe(RecipientEnded, since=last_seen) as stream:
                async for event in stream:
                    ...

        Args:
            kinds: Classes of events; none for all.
            workspace_id: Of one workspace only; None for all.
            since: Go on after this number, which a stream's `position` or an event's `number` was; None to hear of
                what is committed from now on. 0 begins with the first event of all.

        Raises:
            InvalidRequest: `since` is negative.
        """
        if since is not None and since < 0:
            raise InvalidRequest.at("since", "must be at least 0")
        if self._closing is None:
            self._closing = anyio.Event()
        return EventStream(
            self._context, self._closing, kinds=kinds or (Event,), workspace_id=workspace_id, since=since
        )

    def close(self) -> None:
        """End every stream; a subscriber that waits stops waiting. The engine calls this as it closes."""
        if self._closing is not None:
            self._closing.set()
            self._closing = None
