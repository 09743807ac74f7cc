"""What services share: storage, clock, ids, and the event loop that the engine belongs to."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import attrs

from outreach.core.clock import Clock
from outreach.core.config import EngineConfig
from outreach.core.ids import IdSource
from outreach.core.log_throttle import LogThrottle
from outreach.errors import ConfigError, StorageError
from outreach.models.work import DatabaseHome, HighWaterMark, WorkUnit
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.ledger_archives import LedgerArchives
from outreach.protocols.storage import Operation, Storage
from outreach.protocols.wake_ups import WakeUps
from outreach.providers.registry import Adapters
from outreach.services.joined_reads import read_joined
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

_COMPARE_SECONDS: Final = 10.0
"""How often a node that writes compares its clock with the database's; a worker does at each heartbeat, too."""


class LoopGuard:
    """The process, thread and event loop that opened an engine; use from elsewhere would never get an answer."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._thread = 0

    def bind(self) -> None:
        """Bind the guard to the current process, thread and event loop.

        Raises:
            ConfigError: It is open already, or the event loop is not asyncio's.
        """
        self.require()
        if self._loop is not None:
            raise ConfigError("This engine is already open. Close it first, or create another one.")
        loop = _running_loop()
        if loop is None:
            raise ConfigError("The engine runs on asyncio, as its SQLite driver does; this is another loop.")
        self._loop, self._process, self._thread = loop, os.getpid(), threading.get_ident()

    def leave(self) -> None:
        """Unbind the guard, so that the engine may be opened elsewhere."""
        self._loop = None

    def require_open(self) -> None:
        """Check that the engine is open, and that this is where it was opened.

        Raises:
            StorageError: It is not open.
            ConfigError: This is another process, thread or event loop.
        """
        if self._loop is None:
            raise StorageError("This engine is not open: use it within `async with engine:`.")
        self.require()

    def require(self) -> None:
        """Check that this is where the engine was opened; a closed engine passes.

        Raises:
            ConfigError: This is another process, thread or event loop.
        """
        if self._loop is None:
            return
        if os.getpid() != self._process:
            raise ConfigError(
                f"This engine was opened in process {self._process}, from which this one, {os.getpid()}, was forked. "
                "Close it before the fork, or open it after the fork only: an open database does not survive one."
            )
        if _running_loop() is self._loop:
            return
        if threading.get_ident() != self._thread:
            raise ConfigError(
                "This engine was opened in another thread, and belongs to the event loop there. Hand the call to that "
                "loop, with anyio.from_thread.run or asyncio.run_coroutine_threadsafe, or use outreach.sync."
            )
        raise ConfigError(
            "This engine was opened on another event loop, and belongs to it. Use it within the asyncio.run that "
            "opened it, or open an engine on this loop."
        )


class GuardedStorage:
    """The storage that services use; it refuses calls from outside the engine's event loop.

    Args:
        storage: The storage.
        loop_guard: Knows where the engine was opened.
        clock: The engine's.
        compare_clocks: Sets that clock right by the database's; called now and then with a transaction that writes, so
            that the clocks of nodes which dispatch nothing stay together too.
    """

    def __init__(
        self,
        storage: Storage,
        loop_guard: LoopGuard,
        *,
        clock: Clock,
        compare_clocks: Callable[[Transaction], None],
        archives: LedgerArchives,
    ) -> None:
        self._storage = storage
        self._loop_guard = loop_guard
        self._clock = clock
        self._compare_clocks = compare_clocks
        self._archives = archives
        self._compared = float("-inf")

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction; see `Storage.write`.

        Raises:
            StorageError: The engine is not open.
            ConfigError: The engine was opened elsewhere.
        """
        self._loop_guard.require_open()
        now = self._clock.monotonic()
        if now < self._compared + _COMPARE_SECONDS:
            return await self._storage.write(operation, bulk=bulk)

        def compared(tx: Transaction) -> T:
            self._compare_clocks(tx)
            # Not before: the database may be away.
            self._compared = now
            return operation(tx)

        return await self._storage.write(compared, bulk=bulk)

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot; see `Storage.read`.

        Raises:
            StorageError: The engine is not open.
            ConfigError: The engine was opened elsewhere.
        """
        self._loop_guard.require_open()
        return await read_joined(self._storage.read, operation)

    async def read_ledger(self, workspace_id: str, campaign_id: str, operation: Operation[T]) -> T:
        """Run an operation on a snapshot in which a campaign has its contacts, requests, calls and trail.

        Raises:
            StorageError: The engine is not open.
            ConfigError: The engine was opened elsewhere.
            ArchiveUnavailable: They are in an archive that cannot be read; the message names it.
        """

        def over(tx: Transaction) -> T:
            with self._archives.ledger_of(tx, workspace_id, campaign_id) as ledger:
                return operation(ledger)

        return await self.read(over)

    def home(self) -> DatabaseHome | None:
        """Return where the database is; None if not applicable (in memory)."""
        return self._storage.lock.home()

    def high_water(self) -> HighWaterMark | None:
        """Return the high-water mark that is kept beside the database; None without one."""
        return self._storage.lock.high_water()

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return the revision of a workspace's lists; see `Storage.campaign_list_revision`.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        self._loop_guard.require()
        return self._storage.campaign_list_revision(workspace_id)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@attrs.frozen(kw_only=True)
class ServiceContext:
    """The collaborators that the engine hands to its services.

    Attributes:
        home: Where the engine was opened.
        storage: Its storage, guarded by `home`.
        wake: Notifies this process's dispatcher that a unit has changed; does nothing without one.
        dispatching: Whether this process dispatches now.
        log_throttle: Limits repeated log lines.
        adapters: The providers that accounts can be at.
        instrumentation: Observes what happens.
        wake_ups: Waits for what other processes change.
        archives: Reads the ledgers of campaigns that are in archives, and erases in them.
    """

    loop_guard: LoopGuard
    storage: GuardedStorage
    clock: Clock
    ids: IdSource
    config: EngineConfig
    wake: Callable[[WorkUnit], None]
    dispatching: Callable[[], bool]
    log_throttle: LogThrottle
    adapters: Adapters
    instrumentation: Instrumentation
    wake_ups: WakeUps
    archives: LedgerArchives

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()
