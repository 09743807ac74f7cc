"""Blocking iterators over the asynchronous iterators and event streams of the engine."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, cast

from outreach.errors import InvalidRequest
from outreach.models.events import Event
from outreach.models.subscription import EventGap
from outreach.services.messaging.events import EventStream as AsyncEventStream
from outreach.services.messaging.named_streams import NamedStream as AsyncNamedStream
from outreach.sync.thread import EngineClosed, EngineThread

T = TypeVar("T")
C = TypeVar("C", covariant=True)
E = TypeVar("E", bound=Event, covariant=True)

_AT_ONCE: Final = 100
"""Items that are fetched from the loop at a time."""

_INTERRUPTED: Final = "An earlier call was interrupted, and what follows was not read. Begin a new iteration."


class Items(Iterator[T]):
    """An iterator over an asynchronous one, which it reads in chunks."""

    def __init__(self, running: EngineThread, source: AsyncIterator[T]) -> None:
        self._running = running
        self._source = source
        self._fetched: deque[T] = deque()
        self._error: Exception | None = None
        self._ended = False
        self._interrupted = False

    def __next__(self) -> T:
        """Return the next item.

        Raises:
            OutreachError: The items cannot be read.
            InvalidRequest: An earlier call was interrupted, and what it had read has been returned.
            TimeoutError: A `fail_after` around it has passed.
        """
        if not self._fetched:
            if self._error is None and not self._ended:
                self._running.run(lambda _: self._fetch())
            if not self._fetched:
                if self._interrupted:
                    raise InvalidRequest(_INTERRUPTED)
                error, self._error, self._ended = self._error, None, True
                raise error or StopIteration
        return self._fetched.popleft()

    async def _fetch(self) -> None:
        try:
            while len(self._fetched) < _AT_ONCE:
                self._fetched.append(await anext(self._source))
        except StopAsyncIteration:
            self._ended = True
        except Exception as error:  # raised after the items that came before it
            self._error = error
        except BaseException:
            # Python ends an asynchronous generator that is cancelled: asked again, it would seem complete.
            self._interrupted = self._ended = True
            raise


class Stream(Generic[C]):
    """Something that is entered and gone through once; waiting for the next item blocks the thread."""

    def __init__(self, running: EngineThread, stream: AsyncEventStream[Any] | AsyncNamedStream[Any]) -> None:
        self._running = running
        self._stream = stream
        self._entered = False

    def __enter__(self) -> Self:
        """Begin to listen.

        Raises:
            NotFound: There is no such workspace.
            Conflict: The database has not come as far as `since`: it is another one, or an older copy; or a
                subscription of this name is for another workspace.
            InvalidRequest: It has been entered before.
        """
        self._running.run(lambda _: self._stream.__aenter__())
        self._entered = True
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Stop listening."""
        self.close()

    def __iter__(self) -> Self:
        """Return itself: a stream is gone through once."""
        return self

    def __next__(self) -> C:
        """Return the next event; wait for it where there is none yet.

        Raises:
            InvalidRequest: It has not been entered.
            StorageError: The database cannot be read.
            TimeoutError: A `fail_after` around it has passed.
        """
        return self.next()

    def next(self, timeout: float | None = None) -> C:
        """Return the next event, as `next(stream)` does, and wait for it no longer than `timeout` seconds.

        Raises:
            TimeoutError: None came; the stream goes on.
            StopIteration: The stream or the engine was closed.
            InvalidRequest: It has not been entered, or another thread waits for its next event.
            StorageError: The database cannot be read.
        """
        if not self._entered:
            raise InvalidRequest(
                "Enter the stream before you iterate over it: "
                "with engine.events.subscribe(...) as stream: for event in stream: ..."
            )
        try:
            found = self._running.run(lambda _: self._next(), timeout=timeout)
        except EngineClosed:
            found = None
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        """End the stream, from any thread; a waiting thread stops waiting within `change_poll_seconds`."""
        with suppress(EngineClosed):
            self._running.run(lambda _: self._stream.__aexit__(None, None, None), bounded=False)

    async def _next(self) -> C | None:
        try:
            found: Any = await self._stream.__anext__()
        except StopAsyncIteration:
            return None
        return cast("C", found)


class EventStream(Stream[E], Generic[E]):
    """The events that a subscriber has asked for, one after the other; waiting for the next blocks the thread.

        with engine.events.subscribe(RecipientEnded, since=last_seen) as stream:
            for event in stream:
                ...

    The iteration ends when the stream or the engine is closed, which any thread may do, and at the exit of the
    interpreter. A subscriber that is slow loses nothing.

    Attributes:
        position: Everything up to this number has been handed out, or was not asked for: a later subscription with
            `since=position` goes on from there, after a restart too.
    """

    _stream: AsyncEventStream[E]

    @property
    def position(self) -> int:
        """The number up to which events have been handed out."""
        return self._stream.position


class NamedStream(Stream[E | EventGap], Generic[E]):
    """The events of a named subscription, from where it was acknowledged last; see `outreach.events.NamedStream`.

    with engine.events.subscribe(RecipientEnded, name="billing") as stream:
        for event in stream:
            ...
            stream.ack()
    """

    _stream: AsyncNamedStream[E]

    @property
    def name(self) -> str:
        """The name of the subscription."""
        return self._stream.name

    def ack(self, *, at_once: bool = False) -> bool:
        """Acknowledge that everything delivered so far has been done: it is not delivered again.

        While further events are at hand, acknowledgements are stored together, every half a second and as the stream is
        closed. Where the process dies before, the events since then are delivered again.

        Args:
            at_once: Whether this one is stored before the call returns, as it is where no further event is at hand.

        Returns:
            Whether it is acknowledged. False where another stream of this name has taken over meanwhile, or the
            subscription was removed: the other gets the same events again.
        """
        return self._running.run(lambda _: self._stream.ack(at_once=at_once))
