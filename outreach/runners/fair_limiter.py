"""Places for intents and for requests: bounded, and shared so that no account takes them from all others."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import anyio

from outreach.protocols.dispatcher import WakeSignal

_SHARE: Final = 3
"""An account may hold this many times what is free: three quarters of all when it is alone, less beside others."""

_FIRST_CHECKS_SECONDS: Final = 0.25
"""How often the first of those that wait looks for places, and asks whether it is to stop."""

_OTHERS_CHECK_SECONDS: Final = 2.0
"""How often the others ask that: whoever becomes the first asks at once."""


class _Waiting:
    """One that waits for places: how many it wants, and has been granted."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.granted = 0
        self.called = anyio.Event()


class FairLimiter:
    """A bounded number of places, each held by an account: a workspace's at one provider.

    The bound is what a crash can leave unknown. A provider that does not answer holds its places until its requests
    time out, so one account never gets all of them: it gets another while it holds less than a share of what is still
    free. Something is left for an account that holds little, however many do not answer.

    Args:
        most: How many there are.
        opens: Whether an account may have another place at all, for another reason; who makes one free where it said
            no calls `wake_waiters`.
    """

    def __init__(self, most: int, *, opens: Callable[[str], bool] = lambda _: True) -> None:
        self._free = most
        self._opens = opens
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Waiting]] = {}

    def acquire_nowait(self, account: str) -> bool:
        """Take a place if one is free for this account and nobody of it waits; return whether it was."""
        return account not in self._waiting and self._take(account, 1) == 1

    def has_capacity(self, account: str) -> bool:
        """Return whether an account could have another place."""
        return self._held[account] < _SHARE * self._free

    async def acquire(self, account: str, wake_signal: WakeSignal, *, wanted: int = 1) -> int:
        """Wait for places, at the most so many; return how many were taken, none when the slice is to stop instead.

        Who finds some free takes what there is. Who has to wait gets all at once, or after a moment what there is then:
        where many wait, a place for each in turn would have each do its work for one.

        A stop waits for the slices before it drains, so a slice must not wait here for a provider that hangs.
        """
        if wake_signal.stopping:
            return 0
        taken = self._take(account, wanted) if account not in self._waiting else 0
        if taken:
            return taken
        waiting = _Waiting(wanted)
        queue = self._waiting.setdefault(account, deque())
        queue.append(waiting)
        try:
            while not waiting.granted and not wake_signal.stopping:
                first = queue[0] is waiting
                with anyio.move_on_after(_FIRST_CHECKS_SECONDS if first else _OTHERS_CHECK_SECONDS):
                    await waiting.called.wait()
                if first and not waiting.granted:
                    waiting.granted = self._take(account, wanted)
                waiting.called = anyio.Event()
        except BaseException:
            self._leave(account, waiting)
            if waiting.granted:
                self.release(account, waiting.granted)
            raise
        self._leave(account, waiting)
        return waiting.granted

    def release(self, account: str, places: int) -> None:
        """Give places back."""
        self._free += places
        self._held[account] -= places
        if not self._held[account]:
            del self._held[account]
        self.wake_waiters()

    def wake_waiters(self) -> None:
        """Hand what is free to those that wait: an account after the other, in each who came first."""
        served = True
        while served and self._free:
            served = False
            for account in list(self._waiting):
                first = self._waiting[account][0]
                first.granted = self._take(account, first.wanted, at_least=first.wanted)
                if first.granted:
                    first.called.set()
                    self._leave(account, first)
                    served = True

    def _take(self, account: str, wanted: int, *, at_least: int = 1) -> int:
        """Take as many places as there are for an account, up to what is wanted; none where there are fewer."""
        taken = 0
        while taken < wanted and self.has_capacity(account) and self._opens(account):
            self._free -= 1
            self._held[account] += 1
            taken += 1
        if taken < at_least:
            self._free += taken
            self._held[account] -= taken
            taken = 0
        if not self._held[account]:
            del self._held[account]
        return taken

    def _leave(self, account: str, waiting: _Waiting) -> None:
        queue = self._waiting.get(account)
        if queue is not None and waiting in queue:
            first = queue[0] is waiting
            queue.remove(waiting)
            if not queue:
                del self._waiting[account]
            elif first:
                queue[0].called.set()
