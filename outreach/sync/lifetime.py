"""When an engine for synchronous code is opened and closed: once a process, and at its exit at the latest."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - its exit handler has to be registered before ours
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final, TypeVar
from weakref import WeakSet

from outreach.core.logged_errors import log_error
from outreach.errors import ConfigError
from outreach.sync.calls import Call, seconds_left
from outreach.sync.thread import EngineClosed, EngineThread, require_other_thread

T = TypeVar("T")

_log = logging.getLogger(__name__)

_EXIT_SECONDS: Final = 5.0
"""How long the exit of the interpreter waits for a thread that is opening or closing the engine."""

_CLOSE_SECONDS: Final = 10.0
"""How long it waits, beyond the grace, for the engine to close: only an adapter that blocks the loop takes longer."""

_lifetimes: Final[WeakSet[Lifetime]] = WeakSet()

_open_lifetimes: Final[set[Lifetime]] = set()
"""Those that are open, which are kept until they are closed, also where the host has forgotten its engine."""


class Lifetime:
    """Opens an engine in this process when it is first used, and closes it when the process exits.

    Args:
        engine: The engine, not open yet.
        grace_seconds: How long it waits for requests in flight as it closes.
    """

    def __init__(self, engine: AbstractAsyncContextManager[Any], *, grace_seconds: float) -> None:
        self._engine = engine
        self._grace_seconds = grace_seconds
        self._lock = threading.Lock()
        self._holder: tuple[int, bool] | None = None
        self._running: EngineThread | None = None
        self._closed: str | None = None
        self._left_behind: EngineThread | None = None
        self._process = os.getpid()
        _lifetimes.add(self)

    def start(self) -> None:
        """Open it in this process.

        Raises:
            ConfigError: It is open already, or was as this process was forked.
            OutreachError: It cannot be opened.
        """
        with self._turn(seconds_left()):
            if self._running is not None:
                raise ConfigError("This engine is open already, and all threads of the process may use it.")
            if self._closed != _EXITING:
                self._closed = None
            self._open()

    def close(self) -> None:
        """Close it in this process; nothing to do where it is not open."""
        self._close(_CLOSED)

    def running(self) -> EngineThread:
        """Return the thread of the engine, opened now where it is not open yet.

        Raises:
            ConfigError: It was closed, or was open as this process was forked.
            OutreachError: It cannot be opened.
        """
        found = self._running
        if found is not None:
            return found
        with self._turn(seconds_left()):
            return self._running or self._open()

    def run(self, function: Callable[[Call[T]], Awaitable[T]]) -> T:
        """Call a function on the engine's loop, and wait for its outcome; see `EngineThread.run`."""
        return self.running().run(function)

    def exit(self) -> None:
        """Close it because the interpreter exits; it stays closed."""
        try:
            self._close(_EXITING, at_exit=True)
        except Exception as error:
            what = "The engine could not be closed at the exit."
            log_error(_log, logging.ERROR, what, error=error, extra={"action": "sync_exit_failed"})

    def forked(self) -> None:
        """Note, in a forked child, that an engine that is open belongs to the parent."""
        # Another thread of the parent may have held it.
        self._lock, self._holder = threading.Lock(), None
        # Kept, so that nothing closes the parent's connections from here.
        self._left_behind = self._running or self._left_behind
        self._running = None
        if self._closed == _CLOSED:
            self._closed = None

    def _open(self) -> EngineThread:
        if self._left_behind is not None:
            raise ConfigError(
                f"This engine was open in process {self._process} as this one, {os.getpid()}, was forked from it, and "
                "SQLite does not survive a fork. Use the engine after the fork only: not while modules are imported "
                "under gunicorn's preload_app, in Celery not before the tasks run. Or close() it before the fork."
            )
        if self._closed is not None:
            raise EngineClosed(self._closed)
        running, self._process = EngineThread(self._engine), os.getpid()
        running.start()
        # At once: an interrupt before this would leave an open engine that nobody knows.
        self._running = running
        _open_lifetimes.add(self)
        return running

    def _close(self, reason: str, *, at_exit: bool = False) -> None:
        if self._holder == (threading.get_ident(), True):
            # A signal handler, while this thread closes it already.
            return
        with self._turn(_EXIT_SECONDS if at_exit else None, closing=True):
            running, self._running = self._running, None
            self._closed = reason
            _open_lifetimes.discard(self)
            if running is not None:
                running.close(most_seconds=self._grace_seconds + _CLOSE_SECONDS if at_exit else None)

    @contextmanager
    def _turn(self, patience: float | None, *, closing: bool = False) -> Iterator[None]:
        """Let one thread at a time open or close the engine."""
        require_other_thread()
        lock, thread, holder = self._lock, threading.get_ident(), self._holder
        if holder is not None and holder[0] == thread:
            raise ConfigError(
                "This thread is opening or closing the engine, and a signal handler called it in the midst of that: it "
                "would wait for itself."
            )
        if not lock.acquire(timeout=-1 if patience is None else patience):
            raise TimeoutError("Another thread was opening or closing the engine for too long.")
        self._holder = thread, closing
        try:
            yield
        finally:
            self._holder = None
            lock.release()


_CLOSED: Final = "This engine has been closed. Open it again with start(), or close it later."
_EXITING: Final = (
    "The interpreter is exiting, and the engine was closed as the main thread ended. Let the main thread wait for the "
    "threads that use the engine."
)


def _exit() -> None:
    for lifetime in list(_lifetimes):
        lifetime.exit()


def _after_fork() -> None:
    for lifetime in list(_lifetimes):
        lifetime.forked()


# `atexit` comes too late: before it, the interpreter waits for the threads of pools, and these for events of ours.
getattr(threading, "_register_atexit", atexit.register)(_exit)
if hasattr(os, "register_at_fork"):  # pragma: no branch - but not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)
