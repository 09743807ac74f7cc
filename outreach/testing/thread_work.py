"""The work that an event loop with virtual time has passed to threads: its time stands still until that is done."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final
from weakref import WeakSet

import aiosqlite.core
import anyio.lowlevel
from anyio._backends import _asyncio as backend

from outreach.storage.base import threads

_WITH_QUEUES: Final[tuple[Any, ...]] = (aiosqlite.core, threads)
"""The modules whose threads take their work from queues."""

_watching: dict[asyncio.AbstractEventLoop, ThreadWork] = {}
"""The open loops with virtual time."""


class ThreadWork:
    """The work of threads that is not done yet.

    Args:
        wake_up: Wakes the loop, from any thread.

    Attributes:
        loop_waits: Whether the loop has to be woken when nothing is left.
    """

    def __init__(self, wake_up: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._wake_up = wake_up
        self._calls = 0
        self._queues: WeakSet[WorkQueue] = WeakSet()
        self.loop_waits = False

    def begin(self) -> None:
        """Count a call that was passed to a thread."""
        with self._lock:
            self._calls += 1

    def end(self) -> None:
        """Count it as done."""
        with self._lock:
            self._calls -= 1
        self.look_again()

    def new_queue(self) -> WorkQueue:
        """Return a queue whose items count until they are done."""
        made = WorkQueue(self)
        self._queues.add(made)
        return made

    def any_left(self) -> bool:
        """Return whether anything is not done yet; call it in the loop's thread, which makes the queues."""
        return self._calls > 0 or any(one.is_busy() for one in self._queues)

    def look_again(self) -> None:
        """Have the loop look whether anything is left; may be called in any thread."""
        if self.loop_waits:
            self._wake_up()


class WorkQueue(queue.SimpleQueue[Any]):
    """A queue of one thread: an item counts as work until the thread asks for the next one, or has ended."""

    def __init__(self, work: ThreadWork) -> None:
        super().__init__()
        self._work = work
        self._lock = threading.Lock()
        self._left = 0
        self._taken = False
        self._thread: threading.Thread | None = None

    def put_nowait(self, item: Any) -> None:
        """Hand something to the thread."""
        with self._lock:
            self._left += 1
        super().put_nowait(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the next item; the one that was taken before is done."""
        self._thread = threading.current_thread()
        if self._taken:
            self._taken = False
            with self._lock:
                self._left -= 1
            self._work.look_again()
        item = super().get(block, timeout)
        self._taken = True
        return item

    def is_busy(self) -> bool:
        """Return whether its thread has anything to do."""
        return self._left > 0 and (self._thread is None or self._thread.is_alive())


def anyio_threads_work(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a thread of anyio works for a loop; call it in the loop's own thread."""
    # anyio has no public count of its working threads.
    variables = anyio.lowlevel._run_vars.get(loop, {})
    workers = variables.get(backend._threadpool_workers, ())
    return len(workers) > len(variables.get(backend._threadpool_idle_workers, ()))


def watch_storages(loop: asyncio.AbstractEventLoop, work: ThreadWork) -> None:
    """Count what the threads of storages that are opened on a loop have to do.

    They do not show whether they work, so their queues are replaced while such a loop is open.
    """
    _watching[loop] = work
    for module in _WITH_QUEUES:
        module.SimpleQueue = _queue_for_thread
    threads.waiting_outside = _waiting_outside


def leave_storages(loop: asyncio.AbstractEventLoop) -> None:
    """Count no more for a loop; nothing happens for one that was not watched."""
    _watching.pop(loop, None)
    if not _watching:
        for module in _WITH_QUEUES:
            module.SimpleQueue = queue.SimpleQueue
        threads.waiting_outside = nullcontext


@contextmanager
def _waiting_outside() -> Iterator[None]:
    work = _watching.get(asyncio.get_running_loop())
    if work is None:
        yield
        return
    work.begin()
    try:
        yield
    finally:
        work.end()


def _queue_for_thread() -> queue.SimpleQueue[Any]:
    try:
        work = _watching.get(asyncio.get_running_loop())
    except RuntimeError:
        work = None
    return work.new_queue() if work is not None else queue.SimpleQueue()
