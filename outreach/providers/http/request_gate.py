"""The gate before a request to a provider: fair permits, the last check, and calls of plug-ins that fail alone.

A request may wait long for a connection. A stop may be committed meanwhile, or the process may be suspended
(docs/delivery-contract.md#rule-4): the last check is made when it has a connection and before its first byte.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from outreach.protocols.dispatcher import WakeSignal

_SHARE: Final = 3
"""An account may hold this many times what is free: three quarters when alone, less beside others."""

_PROVIDER_SHARE: Final = 9
"""The accounts of a provider may hold this many times what is free: nine tenths when alone, less beside others."""

_FIRST_CHECKS_SECONDS: Final = 0.25
"""How often the first waiter checks for permits and for a stop."""

_OTHERS_CHECK_SECONDS: Final = 2.0
"""How often the others check for a stop."""


class _Waiting:
    """A waiter.

    Attributes:
        wanted: How many permits it requests.
        granted: How many it was granted.
        checks: Whether it checks for permits by itself once it is first; otherwise they are granted to it.
        has_left: Whether it has left the queue.
    """

    def __init__(self, wanted: int, *, checks: bool) -> None:
        self.wanted = wanted
        self.granted = 0
        self.checks = checks
        self.has_left = False
        self._called: asyncio.Future[None] | None = None

    async def wait(self, seconds: float) -> None:
        """Wait until called, at most this long."""
        loop = asyncio.get_running_loop()
        self._called = loop.create_future()
        timer = loop.call_later(seconds, self.call)
        try:
            await self._called
        finally:
            timer.cancel()

    def call(self) -> None:
        """End its wait."""
        if self._called is not None and not self._called.done():
            self._called.set_result(None)


class FairLimiter:
    """A bounded number of permits, each held by an account (a workspace at one provider).

    The bound limits what a crash can leave unknown. A provider that does not answer holds its permits until its
    requests time out, so that an account gets another one only while it holds less than a share of what is free, and
    the accounts of its provider together less than another share. The part of an account after its last slash is the
    provider.

    Args:
        most: The number of permits.
        opens: Whether an account may have another permit, for reasons of the caller's; call `wake_waiters` when this
            changes.
    """

    def __init__(self, most: int, *, opens: Callable[[str], bool] = lambda _: True) -> None:
        self._most = most
        self._free = most
        self._opens = opens
        self._held: Counter[str] = Counter()
        self._held_at_provider: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Waiting]] = {}

    @property
    def held(self) -> int:
        """How many permits are held."""
        return self._most - self._free

    @property
    def in_use(self) -> int:
        """How many permits may be held until the next resizing: more than the limit while too many are held."""
        return max(self._most, self.held)

    def resize(self, most: int) -> None:
        """Have another number of permits; those that are held stay so, and none is granted while too many are."""
        self._free += most - self._most
        self._most = most
        self.wake_waiters()

    def acquire_nowait(self, account: str) -> bool:
        """Take a permit if one is free and no waiter of the account is queued; return whether it was taken."""
        return account not in self._waiting and self._take(account, 1) == 1

    def has_capacity(self, account: str) -> bool:
        """Return whether an account could have another permit."""
        return (
            self._held[account] < _SHARE * self._free
            and self._held_at_provider[_provider_of(account)] < _PROVIDER_SHARE * self._free
        )

    async def acquire(self, account: str, wake_signal: WakeSignal, *, wanted: int = 1) -> int:
        """Wait for permits; return how many were taken, at most `wanted`, or 0 if the slice must stop.

        Free permits are taken at once. A waiter gets all `wanted`, or after a moment the free ones, because one permit
        at a time would cost each waiter a wave. It ends when the slice stops, so that a hanging provider cannot delay a
        drain.
        """
        if wake_signal.stopping:
            return 0
        taken = self._take(account, wanted) if account not in self._waiting else 0
        if taken:
            return taken
        waiting = self._queue_up(account, _Waiting(wanted, checks=True))
        try:
            while not waiting.granted and not wake_signal.stopping:
                first = self._waiting[account][0] is waiting
                await waiting.wait(_FIRST_CHECKS_SECONDS if first else _OTHERS_CHECK_SECONDS)
                if first and not waiting.granted:
                    waiting.granted = self._take(account, wanted)
        except BaseException:
            self._give_up(account, waiting)
            raise
        self._leave(account, waiting)
        return waiting.granted

    async def acquire_within(self, account: str, seconds: float) -> bool:
        """Wait for one permit, at most this long; return whether it was taken."""
        if self.acquire_nowait(account):
            return True
        waiting = self._queue_up(account, _Waiting(1, checks=False))
        try:
            await waiting.wait(seconds)
        except BaseException:
            self._give_up(account, waiting)
            raise
        self._leave(account, waiting)
        return waiting.granted == 1

    def release(self, account: str, places: int) -> None:
        """Release permits."""
        self._put_back(account, places)
        self.wake_waiters()

    def wake_waiters(self) -> None:
        """Grant free permits to waiters, account by account: one that was served is the last one of the next turn."""
        served = True
        while served and self._free > 0:
            served = False
            for account in list(self._waiting):
                first = self._waiting[account][0]
                first.granted = self._take(account, first.wanted, at_least=first.wanted)
                if first.granted:
                    self._waiting[account] = self._waiting.pop(account)
                    self._leave(account, first)
                    first.call()
                    served = True

    def _take(self, account: str, wanted: int, *, at_least: int = 1) -> int:
        """Take up to `wanted` permits, or none if fewer than `at_least` are available."""
        taken, provider = 0, _provider_of(account)
        while taken < wanted and self.has_capacity(account) and self._opens(account):
            self._free -= 1
            self._held[account] += 1
            self._held_at_provider[provider] += 1
            taken += 1
        if taken < at_least:
            self._put_back(account, taken)
            taken = 0
        return taken

    def _put_back(self, account: str, places: int) -> None:
        self._free += places
        for held, key in ((self._held, account), (self._held_at_provider, _provider_of(account))):
            held[key] -= places
            if not held[key]:
                del held[key]

    def _queue_up(self, account: str, waiting: _Waiting) -> _Waiting:
        self._waiting.setdefault(account, deque()).append(waiting)
        return waiting

    def _give_up(self, account: str, waiting: _Waiting) -> None:
        """Leave the queue, and release what was granted meanwhile."""
        self._leave(account, waiting)
        if waiting.granted:
            self.release(account, waiting.granted)

    def _leave(self, account: str, waiting: _Waiting) -> None:
        """Leave the queue, unless that happened when permits were granted."""
        if waiting.has_left:
            return
        waiting.has_left = True
        queue = self._waiting[account]
        first = queue[0] is waiting
        queue.remove(waiting)
        if not queue:
            del self._waiting[account]
        elif first and queue[0].checks:
            queue[0].call()


def _provider_of(account: str) -> str:
    return account.rpartition("/")[2]


MayStart = Callable[[], Awaitable[bool]]
"""Returns whether a request may start now."""

_present: Final[ContextVar[MayStart | None]] = ContextVar("may_start", default=None)


@contextmanager
def request_gate(may_start: MayStart) -> Iterator[None]:
    """Make each request of this task call `may_start` before its first byte."""
    token = _present.set(may_start)
    try:
        yield
    finally:
        _present.reset(token)


def current_gate() -> MayStart | None:
    """Return the `may_start` of this task; None if it has none."""
    return _present.get()


T = TypeVar("T")


class Aborted(Exception):
    """A plug-in raised an error that would have ended more than its own call."""


async def call_plugin(answer: Awaitable[T]) -> T:
    """Await a plug-in's coroutine and return its result.

    An error that is no `Exception` becomes `Aborted`:

    - a cancellation that the engine did not request, such as that of a task which an adapter's requests share. A task
      group would take it for its own, and cancel the requests of other workspaces;
    - a `GeneratorExit` of the plug-in's own coroutine, while the caller's goes on;
    - a `SystemExit`, which would end the process for all workspaces.

    `KeyboardInterrupt` is raised unchanged, because a person pressed Ctrl-C.

    Raises:
        Aborted: The plug-in raised an error that is no `Exception`.
    """
    task = asyncio.current_task()
    try:
        return await answer
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        if isinstance(error, GeneratorExit) and _current_task() is not task:
            # This coroutine itself is closed: its task is gone.
            raise
        raise _aborted(error) from error


def call_plugin_function(function: Callable[..., T], *args: Any) -> T:
    """Call a plug-in's function and return its result.

    Raises:
        Aborted: The function raised an error that is no `Exception`.
    """
    try:
        return function(*args)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _aborted(error) from error


def _aborted(error: BaseException) -> Aborted:
    return Aborted(f"It raised {type(error).__name__}, although it had not been cancelled.")


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
