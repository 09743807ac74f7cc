"""The event loop and the process that an engine was opened in, and belongs to."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TypeVar

from outreach.errors import ConfigError
from outreach.protocols.storage import Operation, Storage

T = TypeVar("T")


class Home:
    """Where an engine was opened: used from elsewhere, its answers would come to a loop that nobody runs."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._thread = 0

    def settle(self) -> None:
        """Remember where the engine is being opened.

        Raises:
            ConfigError: It is open already, or the running event loop is not asyncio's.
        """
        self.require()
        if self._loop is not None:
            raise ConfigError("This engine is open already. Close it first, or make another one.")
        loop = _running_loop()
        if loop is None:
            raise ConfigError("The engine runs on asyncio, as its SQLite driver does; this is another loop.")
        self._loop, self._process, self._thread = loop, os.getpid(), threading.get_ident()

    def leave(self) -> None:
        """Forget it: the engine is closed, and may be opened elsewhere."""
        self._loop = None

    def require(self) -> None:
        """Check that this is where the engine was opened; one that is not open has nothing to check.

        Raises:
            ConfigError: This is another process, thread or event loop.
        """
        if self._loop is None:
            return
        if os.getpid() != self._process:
            raise ConfigError(
                f"This engine was opened in process {self._process}, from which this one, {os.getpid()}, was forked. "
                "Open an engine here, after the fork: two processes may have the same database."
            )
        if _running_loop() is self._loop:
            return
        if threading.get_ident() != self._thread:
            raise ConfigError(
                "This engine was opened in another thread, and belongs to the event loop there. Hand the call to that "
                "loop, with anyio.from_thread.run or asyncio.run_coroutine_threadsafe."
            )
        raise ConfigError(
            "This engine was opened on another event loop, and belongs to it. Use it within the asyncio.run that "
            "opened it, or open an engine on this loop."
        )


class HomeStorage:
    """A storage as services use it: from where the engine was opened, and from nowhere else."""

    def __init__(self, storage: Storage, home: Home) -> None:
        self._storage = storage
        self._home = home

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction; see `Storage.write`.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        self._home.require()
        return await self._storage.write(operation, bulk=bulk)

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot; see `Storage.read`.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        self._home.require()
        return await self._storage.read(operation)

    def list_change(self, workspace_id: str) -> int | None:
        """Return the number of the latest change of a workspace's lists; see `Storage.list_change`.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        self._home.require()
        return self._storage.list_change(workspace_id)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
