"""A thread that calls what is posted to it, and the waits of an event loop that are like those for a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue


class Worker:
    """A thread that calls what is posted to it, in order; made in the thread of the event loop."""

    def __init__(self, name: str) -> None:
        self._posted: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A process must be able to end while its database hangs; commits are safe without this thread.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, function: Callable[[], None]) -> None:
        """Call a function after those posted before; it must not raise."""
        self._posted.put_nowait(function)

    def finish(self) -> None:
        """End the thread after what was posted; `join` waits for that."""
        self._posted.put_nowait(None)

    def join(self, seconds: float) -> bool:
        """Wait for the end of the thread; return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (function := self._posted.get()) is not None:
            function()


def waiting_outside() -> AbstractContextManager[None]:
    """Return a context in which the loop waits for a server: virtual time stops, as it does for threads."""
    return nullcontext()
