"""The bases of the services, which call asynchronous ones on the engine's loop, and of the engine."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

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


class Engine(Service[AsyncOutreach]):
    """The base of `outreach.sync.Outreach`.

    Args:
        engine: The asynchronous engine, not open yet.
    """

    def __init__(self, engine: AsyncOutreach) -> None:
        super().__init__(Lifetime(engine), lambda engine: engine)
        self._serve()

    @classmethod
    def _over(cls, engine: AsyncOutreach) -> Self:
        found = cls.__new__(cls)
        Engine.__init__(found, engine)
        return found

    def _serve(self) -> None:
        """Set the services."""

    def start(self) -> Self:
        """Open the engine in this process now, instead of with the first call; return it.

        Raises:
            ConfigError: It is open already, or was open as this process was forked.
            DatabaseOlder: An older version has written it, and this engine was not to bring it up to date.
            StorageError: The database cannot be used.
        """
        self._lifetime.start()
        return self

    def close(self) -> None:
        """Stop dispatching, letting what is in flight end within the grace, and close the database.

        Calls and streams of other threads end. Any later call is a `ConfigError`, until `start`.
        """
        self._lifetime.close()

    def __enter__(self) -> Self:
        """Open the engine; see `start`."""
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close the engine; see `close`."""
        self.close()
