"""One call into the engine's event loop, seen from both sides: the thread that waits and the task that runs."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from typing import Final, Generic, TypeVar, cast

import anyio

from outreach.providers.http.request_gate import call_plugin

T = TypeVar("T")
R = TypeVar("R")

_LISTEN_SECONDS: Final = 1.0
"""The longest wait: Python handles a signal that arrives as a wait begins, such as Ctrl-C, only when the wait ends."""

_CANCEL_SECONDS: Final = 5.0
"""How long the waiting thread gives a cancelled call to undo its work."""

_CHUNK: Final = 100
"""Items of an argument that are handed to the loop at a time."""

_CHUNK_SECONDS: Final = 0.1
"""A chunk ends early after this long: between two, a deadline and the end of the engine are noticed."""

_deadline: ContextVar[float | None] = ContextVar("outreach_sync_deadline", default=None)


@contextmanager
def fail_after(seconds: float) -> Iterator[None]:
    """Give the engine's calls within the block so many seconds together.

        with fail_after(2.0):
            engine.messages.send(workspace_id, message)

    A call that takes longer is cancelled, and its uncommitted work is undone. It applies to this thread; a block
    within another one can only shorten it.

    Raises:
        TimeoutError: From the call that was cancelled.
    """
    until = time.monotonic() + seconds
    outer = _deadline.get()
    token = _deadline.set(until if outer is None else min(outer, until))
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float | None:
    """Return what is left of the time that a `fail_after` gives this thread; None where there is none."""
    until = _deadline.get()
    return None if until is None else _seconds_until(until)


def _seconds_until(until: float) -> float:
    # Locks and queues take no infinite time.
    return min(max(until - time.monotonic(), 0.0), threading.TIMEOUT_MAX)


def _draw(items: Iterator[R]) -> list[R]:
    """Return the next items; none at the end."""
    until = time.monotonic() + _CHUNK_SECONDS
    drawn = []
    for item in islice(items, _CHUNK):
        drawn.append(item)
        if time.monotonic() >= until:
            break
    return drawn


class Call(Generic[T]):
    """A call that runs on the event loop, while the thread that made it waits and draws its iterable arguments.

    Args:
        loop: The loop that it runs on.
        function: What is called there. It is given a function that makes an iterable of the waiting thread an
            asynchronous one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[Call[T]], Awaitable[T]]) -> None:
        self._loop = loop
        self._function = function
        self._outcome: Future[T] = Future()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._scope: anyio.CancelScope | None = None
        self._cancelled = False

    async def run(self) -> None:
        """Run it, on the loop; its outcome, whatever it is, goes to the thread that waits."""
        try:
            with anyio.CancelScope() as self._scope:
                if self._cancelled:
                    self._scope.cancel()
                self._outcome.set_result(await call_plugin(self._function(self)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # a SystemExit reaches the caller and does not end the loop
            self._outcome.set_exception(error)
        finally:
            self.end()

    def end(self) -> None:
        """Notify the waiting thread that the call has ended; without an outcome it was cancelled."""
        if not self._outcome.done():
            self._outcome.cancel()
        self._jobs.put(None)

    def wait(self, begin: Callable[[], None], *, timeout: float | None, bounded: bool) -> T:
        """Begin the call, and return what it returns or raise what it raises; from the thread that makes it.

        Args:
            begin: Hands the call to the loop; what it raises is raised, and there is no call.
            timeout: Seconds that it may take at the most.
            bounded: Whether a `fail_after` around it counts.

        Raises:
            TimeoutError: It took too long, and was cancelled.
            CancelledError: The loop ended meanwhile.
        """
        until = _deadline.get() if bounded else None
        if timeout is not None:
            own = time.monotonic() + timeout
            until = own if until is None else min(own, until)
        begin()
        try:
            in_time = self._run_jobs(until)
        except BaseException:
            # An interrupt of this thread, such as Ctrl-C.
            self._cancel()
            raise
        if not in_time:
            self._cancel()
            # A result that came in the last moment is not thrown away.
            if not self._outcome.done() or self._outcome.cancelled():
                raise TimeoutError("The call took longer than it was given, and was cancelled.")
        return self._outcome.result()

    def each(self, source: Iterable[R]) -> AsyncIterable[R]:
        """Return an iterable of the waiting thread as one for the loop; its items are drawn in that thread.

        A generator may use what belongs to its thread: a database session, an SQLite connection, a request.
        """
        given: object = source
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            return cast("AsyncIterable[R]", given)  # the service says what is wrong with it
        return self._each(source)

    async def _each(self, source: Iterable[R]) -> AsyncIterator[R]:
        items = await self._in_thread(lambda: iter(source))
        while chunk := await self._in_thread(lambda: _draw(items)):
            for item in chunk:
                yield item

    async def _in_thread(self, function: Callable[[], R]) -> R:
        """Run a function in the thread that waits for this call; raise here what it raises."""
        drawn: Future[R] = Future()
        # A task that is cancelled while the thread is at work must not cancel this as well: the result comes.
        drawn.set_running_or_notify_cancel()

        def job() -> None:
            try:
                drawn.set_result(function())
            except Exception as error:  # raised in the service, which undoes its work and raises it to the caller
                drawn.set_exception(error)

        self._jobs.put(job)
        return await asyncio.wrap_future(drawn)

    def _run_jobs(self, until: float | None) -> bool:
        """Run the jobs of the loop in this thread until the call has ended; return False at the deadline."""
        while True:
            left = _LISTEN_SECONDS if until is None else min(_seconds_until(until), _LISTEN_SECONDS)
            try:
                job = self._jobs.get(timeout=left)
            except queue.Empty:
                if until is not None and time.monotonic() >= until:
                    return False
                continue
            if job is None:
                return True
            if until is not None and time.monotonic() >= until:
                return False
            job()

    def _cancel(self) -> None:
        """Cancel the call, and wait for its end; not for ever, as an adapter may block the loop."""
        if self._outcome.done():
            # The mark of its end may have been taken from the queue already.
            return
        with suppress(RuntimeError):  # the loop has ended, and the call with it
            self._loop.call_soon_threadsafe(self._cancel_on_loop)
        until = time.monotonic() + _CANCEL_SECONDS
        with suppress(queue.Empty):
            while self._jobs.get(timeout=max(until - time.monotonic(), 0.0)) is not None:
                pass

    def _cancel_on_loop(self) -> None:
        self._cancelled = True
        if self._scope is not None:
            self._scope.cancel()
