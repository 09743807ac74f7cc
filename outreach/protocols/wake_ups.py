"""Waiting for what other processes change, without asking the database all the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, get_args, runtime_checkable

import anyio

Topic = Literal["work", "calls", "keys"]
"""What has changed: units of work, calls, kept answers of idempotency keys."""


@runtime_checkable
class NotifyingStorage(Protocol):
    """A storage that is notified of what other processes commit."""

    @property
    def is_listening(self) -> bool:
        """Whether it is notified of commits now; it may be away from its server for a while."""
        ...

    def listen(self, notify: Callable[[str], None]) -> None:
        """Call this on the event loop with the topic of each change, from now on, at every opening."""
        ...


class WakeUps:
    """Lets tasks of one event loop wait for changes; without a storage that is notified of them they wait by the clock.

    Args:
        storage: Starts to listen at the first wait; None if it is not notified of commits.
    """

    def __init__(self, storage: NotifyingStorage | None = None) -> None:
        self._storage = storage
        self._listening = False
        self._woken: dict[str, anyio.Event] = {}

    def _begin(self) -> None:
        """Wait for nothing of before; the engine calls this as it opens, perhaps on another event loop."""
        self._woken.clear()

    def notify(self, topic: str) -> None:
        """Wake all that wait for a topic, or the next one that will; for every topic if it is none.

        A topic that is none says that something may have been missed.
        """
        for one in [topic] if topic in get_args(Topic) else get_args(Topic):
            self._woken.setdefault(one, anyio.Event()).set()

    async def wait(self, topic: Topic, *, poll_seconds: float, listening_poll_seconds: float | None = None) -> None:
        """Wait until something of a topic may have changed; a notification since the last wait ends this one at once.

        Args:
            topic: What is waited for.
            poll_seconds: The longest wait.
            listening_poll_seconds: The longest wait while the storage is notified of changes; the same by default.
        """
        if self._storage is not None and not self._listening:
            self._listening = True
            self._storage.listen(self.notify)
        if listening_poll_seconds is not None and self._storage is not None and self._storage.is_listening:
            poll_seconds = listening_poll_seconds
        woken = self._woken.setdefault(topic, anyio.Event())
        with anyio.move_on_after(poll_seconds):
            await woken.wait()
        if woken.is_set() and self._woken.get(topic) is woken:
            del self._woken[topic]
