"""Ctrl-C: a command is cancelled once, ends in order, and is not broken into while it does."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import Final, TypeVar

import anyio

from outreach_server.cli.base import EXIT_INTERRUPTED
from outreach_server.cli.deafness import ignore_sigint

T = TypeVar("T")

PATIENCE_SECONDS: Final = 5.0
"""How long the end of a command may take before another Ctrl-C ends the process as it stands."""


class _Ear:
    """Hears SIGINT while a command runs.

    Python's own handling raises KeyboardInterrupt wherever the second one finds the program, which may be in the
    midst of closing the database: its thread is never told to end then, and the process waits for it for ever.
    """

    def __init__(self) -> None:
        self.heard_at: float | None = None
        self.reading = False
        self._cancel: Callable[[], object] | None = None

    def listen(self, cancel: Callable[[], object]) -> None:
        """Name what the first one calls; at once, if it has come already."""
        self._cancel = cancel
        if self.heard_at is not None:
            cancel()

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """Handle one SIGINT."""
        now = time.monotonic()
        if self.heard_at is None:
            self.heard_at = now
            if self.reading:
                raise KeyboardInterrupt
            if self._cancel is not None:
                self._cancel()
        elif now - self.heard_at >= PATIENCE_SECONDS:
            # What is committed is committed, and what is not is swept: a process of ours may be killed at any time.
            os._exit(EXIT_INTERRUPTED)


_ear = _Ear()


def run(work: Callable[[], Awaitable[T]], *, fast: bool = False) -> T:
    """Run asynchronous work to its end; the first Ctrl-C cancels it, later ones are not heard until it has ended.

    Args:
        work: What to run.
        fast: On the fastest loop there is: uvloop, which Windows does not have.

    Raises:
        KeyboardInterrupt: It was interrupted, and has ended in order. SIGINT does nothing from then on: nothing is
            left to do but to say so and exit.
    """
    options = {"use_uvloop": fast and find_spec("uvloop") is not None}
    if threading.current_thread() is not threading.main_thread():
        return anyio.run(work, backend_options=options)
    global _ear
    ear = _ear = _Ear()
    before = signal.signal(signal.SIGINT, ear.hear)
    interrupted = True
    try:
        result = anyio.run(_cancellable, work, ear, backend_options=options)
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
    """Let Ctrl-C break into a block that may stand still in a read, such as of a terminal, and changes nothing."""
    _ear.reading = True
    try:
        if _ear.heard_at is not None:
            raise KeyboardInterrupt
        yield
    finally:
        _ear.reading = False


async def _cancellable(work: Callable[[], Awaitable[T]], ear: _Ear) -> tuple[T] | None:
    """Return the result of the work; None when it was interrupted."""
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:
        # A handler of signals may run in the midst of anything: the loop cancels, when it comes to it.
        ear.listen(lambda: loop.call_soon_threadsafe(scope.cancel))
        try:
            return (await work(),)
        except KeyboardInterrupt:
            return None
    return None
