"""The base of the services: each calls an asynchronous service on the engine's loop."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from outreach.engine import Outreach as AsyncOutreach
from outreach.models.events import Event
from outreach.services.events import EventStream as AsyncEventStream
from outreach.services.named_streams import NamedStream as AsyncNamedStream
from outreach.sync.calls import Call
from outreach.sync.lifetime import Lifetime
from outreach.sync.streams import EventStream, Items, NamedStream

S = TypeVar("S")
T = TypeVar("T")
E = TypeVar("E", bound=Event)


class Each(Protocol):
    """Makes an iterable of the calling thread one for the loop; see `Call.each`."""

    def __call__(self, source: Iterable[T], /) -> AsyncIterable[T]:
        """Return it."""
        ...


class Service(Generic[S]):
    """A service for synchronous code.

    Args:
        lifetime: Whose engine it belongs to.
        pick: Returns the asynchronous service of an engine.
    """

    def __init__(self, lifetime: Lifetime, pick: Callable[[AsyncOutreach], S]) -> None:
        self._lifetime = lifetime
        self._service = pick(lifetime.engine)

    def _call(self, use: Callable[[S], Awaitable[T]]) -> T:
        """Await a method of the service on the loop."""
        return self._lifetime.run(lambda _: use(self._service))

    def _supply(self, use: Callable[[S, Each], Awaitable[T]]) -> T:
        """Await a method with an iterable argument, which this thread supplies."""

        def function(call: Call[T]) -> Awaitable[T]:
            return use(self._service, call.each)

        return self._lifetime.run(function)

    def _plain(self, use: Callable[[S], T]) -> T:
        """Call a method that awaits nothing, on the loop as its service expects."""

        async def function(_: Call[T]) -> T:
            return use(self._service)

        return self._lifetime.run(function)

    def _items(self, use: Callable[[S], AsyncIterator[T]]) -> Iterator[T]:
        """Return an iterator over the items of a method."""
        return Items(self._lifetime.running(), use(self._service))

    def _stream(self, use: Callable[[S], AsyncEventStream[E] | AsyncNamedStream[E]]) -> EventStream[E] | NamedStream[E]:
        """Subscribe to events."""
        running = self._lifetime.running()

        async def function(_: Any) -> AsyncEventStream[E] | AsyncNamedStream[E]:
            return use(self._service)

        stream = running.run(function)
        if isinstance(stream, AsyncNamedStream):
            return NamedStream(running, stream)
        return EventStream(running, stream)
