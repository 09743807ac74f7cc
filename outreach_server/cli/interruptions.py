"""Ctrl-C: cancels a command once, and does not interrupt its clean end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import Final, TypeVar

import anyio
import anyio.lowlevel

from outreach_server.cli.sigint import EXIT_INTERRUPTED, ignore_sigint

T = TypeVar("T")

PATIENCE_SECONDS: Final = 5.0
"""After this long, another Ctrl-C ends the process immediately."""


class _InterruptHandler:
    """Handles SIGINT while a command runs.

    Python's own handler raises KeyboardInterrupt again at the second SIGINT. While the database is being closed, that
    would leave the database's thread running forever.
    """

    def __init__(self) -> None:
        self.interrupted_at: float | None = None
        self.reading = False
        self._cancel: Callable[[], object] | None = None

    def set_cancel(self, cancel: Callable[[], object]) -> None:
        """Set the function that the first SIGINT calls; call it now if that signal has already arrived."""
        self._cancel = cancel
        if self.interrupted_at is not None:
            cancel()

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        """Handle one SIGINT."""
        now = time.monotonic()
        if self.interrupted_at is None:
            self.interrupted_at = now
            if self.reading:
                raise KeyboardInterrupt
            if self._cancel is not None:
                self._cancel()
        elif now - self.interrupted_at >= PATIENCE_SECONDS:
            # Safe at any time: what is committed stays, and the rest is cleaned up at the next start.
            os._exit(EXIT_INTERRUPTED)


_handler = _InterruptHandler()


def run(work: Callable[[], Awaitable[T]], *, fast: bool = False) -> T:
    """Run asynchronous work to its end; the first Ctrl-C cancels it, and later ones are ignored until it has ended.

    Args:
        work: What to run.
        fast: Use uvloop where available (not on Windows).

    Raises:
        KeyboardInterrupt: It was interrupted and has ended cleanly. SIGINT is ignored from then on.
    """
    options = {"use_uvloop": fast and find_spec("uvloop") is not None}
    if threading.current_thread() is not threading.main_thread():
        return anyio.run(work, backend_options=options)
    global _handler
    handler = _handler = _InterruptHandler()
    before = signal.signal(signal.SIGINT, handler.handle)
    interrupted = True
    try:
        result = anyio.run(_cancellable, work, handler, backend_options=options)
        interrupted = result is None
        if result is None:
            raise KeyboardInterrupt
        return result[0]
    except Exception:
        interrupted = False
        raise
    finally:
        signal.signal(signal.SIGINT, ignore_sigint if interrupted else before)


@contextmanager
def reading() -> Iterator[None]:
    """Let Ctrl-C interrupt a block that may wait in a read, such as of a terminal, and changes nothing."""
    _handler.reading = True
    try:
        if _handler.interrupted_at is not None:
            raise KeyboardInterrupt
        yield
    finally:
        _handler.reading = False


async def iterate(items: Iterator[T]) -> AsyncIterator[T]:
    """Yield items whose reading Ctrl-C may interrupt."""
    while True:
        with reading():
            item = next(items, None)
        if item is None:
            return
        yield item
        # Lets an interruption in between items, also while a file has only bad rows.
        await anyio.lowlevel.checkpoint()


async def _cancellable(work: Callable[[], Awaitable[T]], handler: _InterruptHandler) -> tuple[T] | None:
    """Return the result of the work; None if it was interrupted."""
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:
        # A signal handler may run anywhere, so the loop does the cancelling.
        handler.set_cancel(lambda: loop.call_soon_threadsafe(scope.cancel))
        try:
            return (await work(),)
        except KeyboardInterrupt:
            return None
    return None
