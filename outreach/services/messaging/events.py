"""Events, delivered after their commit, in the order of the commits."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, overload

import anyio

from outreach.errors import Conflict, InvalidRequest, StorageError
from outreach.ledger import subscriptions
from outreach.ledger.common import workspace_of
from outreach.ledger.subscriptions import events_between
from outreach.models.base import MAX_PAGE_ITEMS, Page
from outreach.models.events import Event, EventPage
from outreach.models.fields import Integer, Text, check_value
from outreach.models.subscription import Subscription
from outreach.services.context import ServiceContext
from outreach.services.lists import PageRequest, iterate
from outreach.services.messaging.named_streams import NamedStream, OneReader, lease_of, wait_for_change
from outreach.storage.unit_of_work import Transaction

E = TypeVar("E", bound=Event, covariant=True)
A = TypeVar("A", bound=Event)
B = TypeVar("B", bound=Event)
C = TypeVar("C", bound=Event)

_STRETCH: Final = 500
"""Entries of the trail that are read at a time."""

_MAX_STRETCHES: Final = 20
"""Stretches that one page reads: those of other workspaces count too."""

_MAX_NAME_LENGTH: Final = 100


class EventStream(Generic[E]):
    """The events that a subscriber has asked for, one after the other.

    It reads the decision trail of the database, a stretch at a time and only when the subscriber asks for more. So
    only what is committed is delivered, that of other processes too, and a subscriber that is slow delays no other and
    loses nothing. When nothing is new it looks again every `change_poll_seconds`.

    Use it as an async context manager, and iterate over it in one task at a time; the iteration ends when the stream or
    the engine is closed. An error of the subscriber stays with the subscriber.

    Attributes:
        position: Every event up to this number was delivered, or was not asked for: a later subscription with
            `since=position` goes on from there, after a restart too.
    """

    def __init__(
        self,
        context: ServiceContext,
        closing: anyio.Event,
        *,
        kinds: tuple[type[E], ...],
        workspace_id: str | None,
        since: int | None,
    ) -> None:
        self._context = context
        self._closing = closing
        self._one_reader = OneReader()
        self._entered = False
        self._closed = anyio.Event()
        self._kinds = kinds
        self._workspace_id = workspace_id
        self._since = since
        self._waiting: deque[E] = deque()
        self._read_until = 0
        self._purged_until = 0
        self.position = 0

    async def __aenter__(self) -> Self:
        """Begin to listen: the events that are committed from now on are delivered, or those after `since`.

        Raises:
            NotFound: There is no such workspace.
            Conflict: The database has not come as far as `since`: it is another one, or an older copy; or events
                after `since` were purged.
            InvalidRequest: It has been entered before.
        """
        if self._entered:
            raise InvalidRequest("A stream is entered once: subscribe again, with `since=stream.position` to go on.")
        self._entered = True

        def operation(tx: Transaction) -> tuple[int, int]:
            if self._workspace_id is not None:
                workspace_of(tx, self._workspace_id)
            return _begin(tx, self._since), tx.trail.purged_until()

        self._read_until, self._purged_until = await self._context.storage.read(operation)
        self.position = self._read_until
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Stop listening."""
        self._closed.set()

    def __aiter__(self) -> Self:
        """Return itself: a stream is gone through once.

        Raises:
            InvalidRequest: It has not been entered.
        """
        self._require_entered()
        return self

    async def __anext__(self) -> E:
        """Return the next event; wait for it where there is none yet.

        Raises:
            Conflict: Events that were not read yet were purged since the stream was entered.
            InvalidRequest: It has not been entered, or another task waits for its next event.
        """
        self._require_entered()
        with self._one_reader:
            return await self._next()

    async def _next(self) -> E:
        # Events that were read and not delivered are dropped, so that a closed stream with many of them ends at once.
        while not self._is_closed() and not self._waiting:
            try:
                found = await self._read()
            except StorageError:
                if self._closing.is_set():
                    raise StopAsyncIteration from None
                raise
            if not found:
                self.position = self._read_until
                await wait_for_change(self._context, self._closing)
        if self._is_closed():
            raise StopAsyncIteration
        event = self._waiting.popleft()
        self.position = event.number if self._waiting else self._read_until
        return event

    def _is_closed(self) -> bool:
        return self._closed.is_set() or self._closing.is_set()

    def _require_entered(self) -> None:
        if not self._entered:
            # Only there it is decided from where on events are delivered: without it the whole history would be.
            raise InvalidRequest(
                "Enter the stream before you iterate over it: "
                "async with engine.events.subscribe(...) as stream: async for event in stream: ..."
            )

    async def _read(self) -> bool:
        """Read a stretch of the trail; return whether there was one."""
        after = self._read_until

        def operation(tx: Transaction) -> tuple[int, Sequence[Event | None]]:
            if (purged := tx.trail.purged_until()) > max(after, self._purged_until):
                raise _purged(after, purged)
            until = min(tx.trail.last_number(), after + _STRETCH)
            return until, events_between(tx, self._workspace_id, after, until)

        until, events = await self._context.storage.read(operation)
        self._waiting.extend(event for event in events if isinstance(event, self._kinds))
        self._read_until = max(until, after)
        return until > after


def _begin(tx: Transaction, since: int | None) -> int:
    """Return the number after which events are delivered; raise `Conflict` where that cannot be done without a gap."""
    last, purged = tx.trail.last_number(), tx.trail.purged_until()
    if since is not None and since > last:
        raise Conflict(
            f"The database has come to event {last} only, not to {since}: it is another one, or was restored "
            "from a copy. Subscribe without `since`, and read what you need to know anew."
        )
    if since and since < purged:
        raise _purged(since, purged)
    return last if since is None else since


def _purged(after: int, until: int) -> Conflict:
    return Conflict(
        f"Of the events from {after + 1} to {until} some were purged: their content is lost. "
        "Subscribe with since=0 for what is left, and read what you need to know anew."
    )


def _check_kinds(kinds: tuple[object, ...]) -> None:
    for index, kind in enumerate(kinds):
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise InvalidRequest.at(
                f"kinds[{index}]", f"must be a class of outreach.events such as RecipientEnded, not {kind!r}"
            )


def _check_since(since: object) -> None:
    if since is not None and (type(since) is not int or since < 0):
        raise InvalidRequest.at("since", f"must be an integer of at least 0, not {since!r}")


class Events:
    """The events of the engine, for an embedding application."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._closing: anyio.Event | None = None
        self._named: set[NamedStream[Any]] = set()

    @overload
    def subscribe(
        self, *, workspace_id: str | None = None, since: int | None = None, name: None = None
    ) -> EventStream[Event]: ...
    @overload
    def subscribe(
        self, kind: type[A], /, *, workspace_id: str | None = None, since: int | None = None, name: None = None
    ) -> EventStream[A]: ...
    @overload
    def subscribe(
        self,
        kind: type[A],
        other: type[B],
        /,
        *,
        workspace_id: str | None = None,
        since: int | None = None,
        name: None = None,
    ) -> EventStream[A | B]: ...
    @overload
    def subscribe(
        self,
        kind: type[A],
        other: type[B],
        third: type[C],
        /,
        *,
        workspace_id: str | None = None,
        since: int | None = None,
        name: None = None,
    ) -> EventStream[A | B | C]: ...
    @overload
    def subscribe(
        self, *kinds: type[Event], workspace_id: str | None = None, since: int | None = None, name: None = None
    ) -> EventStream[Event]: ...
    @overload
    def subscribe(
        self, *, name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[Event]: ...
    @overload
    def subscribe(
        self, kind: type[A], /, *, name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[A]: ...
    @overload
    def subscribe(
        self, kind: type[A], other: type[B], /, *, name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[A | B]: ...
    @overload
    def subscribe(
        self,
        kind: type[A],
        other: type[B],
        third: type[C],
        /,
        *,
        name: str,
        workspace_id: str | None = None,
        since: int | None = None,
    ) -> NamedStream[A | B | C]: ...
    @overload
    def subscribe(
        self, *kinds: type[Event], name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[Event]: ...
    def subscribe(
        self, *kinds: type[Event], name: str | None = None, workspace_id: str | None = None, since: int | None = None
    ) -> EventStream[Any] | NamedStream[Any]:
        """Return a stream of events; enter it to begin to listen.

            async with engine.events.subscribe(RecipientEnded, since=last_seen) as stream:
                async for event in stream:
                    ...

        Args:
            kinds: Classes of events, such as `RecipientEnded`; none for all. Up to three of them are known to type
                checkers as the events of the stream.
            workspace_id: Of one workspace only; None for all.
            since: Go on after this number, which a stream's `position` or an event's `number` was; None for
                the events from now on. 0 begins with the first event of all. With a name it is the beginning of a
                new subscription; one that exists goes on where it was.
            name: Has the position stored under this name, 1 to 100 characters: of all streams of that name, in
                whatever process, one gets each event, until it acknowledges it (`NamedStream.ack`).

        Raises:
            InvalidRequest: A kind is no class of events, `since` is no number from 0 on, or the name is none.
        """
        _check_kinds(kinds)
        _check_since(since)
        if name is not None:
            check_value("name", name, Text(1, _MAX_NAME_LENGTH))
        if self._closing is None:
            self._closing = anyio.Event()
        if name is None:
            return EventStream(
                self._context, self._closing, kinds=kinds or (Event,), workspace_id=workspace_id, since=since
            )
        return NamedStream[Any](
            self._context,
            self._closing,
            self._named,
            name=name,
            kinds=kinds or (Event,),
            workspace_id=workspace_id,
            since=since,
        )

    async def page(
        self, *kinds: type[Event], workspace_id: str | None = None, since: int | None = None, limit: int = 500
    ) -> EventPage:
        """Return the events after a number, without waiting for more.

        Args:
            kinds: Classes of events, such as `RecipientEnded`; none for all.
            workspace_id: Of one workspace only; None for all.
            since: Go on after this number, which the `position` of the page before or an event's `number` was. None
                returns no event, and the position from which a later page goes on. 0 begins with the first event.
            limit: The most events, up to 1,000. A page may have fewer, also none, although there are `more`.

        Raises:
            NotFound: There is no such workspace.
            Conflict: The database has not come as far as `since`: it is another one, or an older copy; or events
                after `since` were purged.
            InvalidRequest: A kind is no class of events, `since` is no number from 0 on, or the limit is invalid.
        """
        _check_kinds(kinds)
        _check_since(since)
        check_value("limit", limit, Integer(1, MAX_PAGE_ITEMS))
        wanted = kinds or (Event,)

        def operation(tx: Transaction) -> EventPage:
            if workspace_id is not None:
                workspace_of(tx, workspace_id)
            position, last = _begin(tx, since), tx.trail.last_number()
            found: list[Event] = []
            for _ in range(_MAX_STRETCHES):
                if position >= last or len(found) == limit:
                    break
                until = min(last, position + _STRETCH)
                for event in events_between(tx, workspace_id, position, until):
                    if isinstance(event, wanted):
                        found.append(event)
                        if len(found) == limit:
                            until = event.number
                            break
                position = until
            return EventPage(events=found, position=position, more=position < last)

        return await self._context.storage.read(operation)

    async def get_subscription(self, name: str) -> Subscription:
        """Return a named subscription: how far it has come, and whether anybody reads it now.

        Raises:
            NotFound: There is none of that name.
        """
        now, lease = self._context.now(), lease_of(self._context.config)
        return await self._context.storage.read(
            lambda tx: subscriptions.shown(tx, subscriptions.row_of(tx, name), lease=lease, now=now)
        )

    async def list_subscriptions(self, *, after: str | None = None, limit: int = 100) -> Page[Subscription]:
        """Return a page of all named subscriptions, by name; see `get_subscription`.

        Raises:
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("subscriptions", after=after, limit=limit)
        now, lease = self._context.now(), lease_of(self._context.config)

        def operation(tx: Transaction) -> Sequence[Subscription]:
            rows = [
                row for row in tx.subscriptions.list() if page_request.cursor is None or row.name > page_request.cursor
            ]
            return [subscriptions.shown(tx, row, lease=lease, now=now) for row in rows[: limit + 1]]

        return page_request.page(await self._context.storage.read(operation), lambda one: one.name)

    def iter_subscriptions(self) -> AsyncIterator[Subscription]:
        """Iterate over all named subscriptions, by name; see `list_subscriptions`."""
        return iterate(self.list_subscriptions)

    async def remove_subscription(self, name: str) -> None:
        """Remove a named subscription and its position; a stream that reads it now gets `NotFound`.

        Raises:
            NotFound: There is none of that name.
        """
        await self._context.storage.write(lambda tx: subscriptions.remove(tx, name))

    def _close(self) -> None:
        """End every stream; a subscriber that waits stops waiting. The engine calls this as it closes."""
        if self._closing is not None:
            self._closing.set()
            self._closing = None

    async def _release(self) -> None:
        """Let other processes go on with named subscriptions; the engine calls this before it closes its storage.

        Raises:
            ConfigError: The engine was opened in another process, thread or event loop.
        """
        self._context.loop_guard.require()
        for stream in list(self._named):
            await stream.aclose()
