"""The thread in which an engine's event loop runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar

import anyio

from outreach.core.logged_errors import log_error
from outreach.errors import ConfigError, StorageError
from outreach.sync.calls import Call

T = TypeVar("T")

_here = threading.local()
_log = logging.getLogger(__name__)

_END_SECONDS: Final = 5.0
"""How long the loop has to end once the engine is closed; only an adapter that blocks it takes longer."""

_CLOSED: Final = "This engine has been closed."
_MEANWHILE: Final = "This engine was closed while the call waited."
_LOOP_ENDED: Final = (
    "The engine's event loop has ended: something that runs on it raised SystemExit, as the log shows. Close the "
    "engine, and start() it again."
)


class EngineClosed(ConfigError):
    """The engine was closed before the call, or while the call waited."""


def require_other_thread() -> None:
    """Check that this thread may wait for an engine.

    Raises:
        ConfigError: It runs the event loop of one, which would wait for itself.
    """
    if getattr(_here, "runs_a_loop", False):
        raise ConfigError(
            "outreach.sync was called from the thread of its own event loop, as by an adapter, and would wait for "
            "itself. Await the asynchronous engine there, or hand the work to another thread."
        )


class EngineThread:
    """An event loop in a thread of its own, with an engine open on it.

    Calls are handed over by `call_soon_threadsafe` and not by anyio's `BlockingPortal.start_task_soon`, which waits for
    the loop: an adapter that blocks the loop would make deadlines void, and an interrupt there could not cancel.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: AbstractAsyncContextManager[Any]) -> None:
        self._engine = engine
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        # Reentrant, because a signal handler that closes the engine may interrupt the holder of the lock.
        self._gate = threading.RLock()
        self._calls: set[Call[Any]] = set()
        self._handed_over: deque[tuple[Context, Call[Any]]] = deque()
        self._is_open = False
        self._stopping = False
        self._refusal: str | None = None
        self._over = False
        # A daemon: a loop that an adapter blocks must not keep the interpreter from exiting.
        self._thread = threading.Thread(target=self._main, name="outreach engine", daemon=True)

    def start(self) -> None:
        """Start the loop, and open the engine on it.

        Raises:
            OutreachError: The engine cannot be opened.
        """
        self._thread.start()
        try:
            self.run(self._enter)
        except BaseException:
            # An interrupt of this thread may have come after the opening.
            self.close()
            raise

    async def _enter(self, _: Call[None]) -> None:
        await self._engine.__aenter__()
        self._is_open = True

    def close(self, *, most_seconds: float | None = None) -> None:
        """Close the engine if it is open, as its `__aexit__` does, and end the loop.

        Calls that still wait raise `EngineClosed`.

        Raises:
            TimeoutError: It took longer than `most_seconds`.
        """
        self._refuse(_CLOSED)
        try:
            if self._is_open:
                with suppress(EngineClosed):  # its loop has ended before it
                    self._run(lambda _: self._engine.__aexit__(None, None, None), timeout=most_seconds, closing=True)
        finally:
            self._stop()

    def run(
        self, function: Callable[[Call[T]], Awaitable[T]], *, timeout: float | None = None, bounded: bool = True
    ) -> T:
        """Call a function on the loop, and wait for its outcome.

        Args:
            function: What is called there, with its `Call`.
            timeout: Seconds that it may take at the most.
            bounded: Whether a `fail_after` around it counts.

        Raises:
            ConfigError: This is the loop's own thread, which cannot wait for itself.
            EngineClosed: The engine is closed, or was while the call waited.
            TimeoutError: It took too long, and was cancelled.
        """
        try:
            return self._run(function, timeout=timeout, bounded=bounded)
        except StorageError as error:
            if self._refusal is None:
                raise
            raise EngineClosed(_MEANWHILE) from error

    def _run(
        self,
        function: Callable[[Call[T]], Awaitable[T]],
        *,
        timeout: float | None = None,
        bounded: bool = False,
        closing: bool = False,
    ) -> T:
        require_other_thread()
        loop = self._loop.result()
        call: Call[T] = Call(loop, function)

        def begin() -> None:
            with self._gate:
                if self._refusal is not None and (self._over or not closing):
                    raise EngineClosed(self._refusal)
                self._calls.add(call)
                with suppress(RuntimeError):  # the loop is closed already, and the call is about to be ended
                    loop.call_soon_threadsafe(self._take, copy_context(), call)

        try:
            return call.wait(begin, timeout=timeout, bounded=bounded)
        except CancelledError:
            raise EngineClosed(_MEANWHILE) from None
        finally:
            with self._gate:
                self._calls.discard(call)

    def _take(self, context: Context, call: Call[Any]) -> None:
        self._handed_over.append((context, call))
        self._news.set()

    def _main(self) -> None:
        _here.runs_a_loop = True
        try:
            anyio.run(self._serve, backend="asyncio")
        except BaseException as error:
            if not self._loop.done():
                self._loop.set_exception(error)
                return
            what = "The engine's event loop has ended in an error."
            log_error(_log, logging.ERROR, what, error=error, extra={"action": "sync_loop_failed"})
        self._end()

    async def _serve(self) -> None:
        self._news = asyncio.Event()
        async with anyio.create_task_group() as tasks:
            self._loop.set_result(asyncio.get_running_loop())
            while not self._stopping:
                await self._news.wait()
                self._news.clear()
                while self._handed_over:
                    # Begun by this task and not by a callback of the loop: anyio asks sniffio, where that is installed,
                    # which knows no loop outside of tasks.
                    context, call = self._handed_over.popleft()
                    context.run(tasks.start_soon, call.run)
                    # What the call was given is not kept until the next one.
                    del context, call
            tasks.cancel_scope.cancel()

    def _end(self) -> None:
        """End the calls whose tasks the loop has left behind."""
        self._refuse(_LOOP_ENDED)
        with self._gate:
            self._over = True
            left = list(self._calls)
        for call in left:
            call.end()

    def _refuse(self, reason: str) -> None:
        """Let no call begin from now on."""
        with self._gate:
            self._refusal = self._refusal or reason

    def _stop(self) -> None:
        """End the loop, which cancels the calls that were begun before."""
        self._refuse(_CLOSED)
        with suppress(RuntimeError):  # it has ended by itself
            loop = self._loop.result()
            self._stopping = True
            loop.call_soon_threadsafe(self._news.set)
        self._thread.join(_END_SECONDS)
