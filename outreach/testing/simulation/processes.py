"""The dispatching processes: one at a time, killed, stopped for a while and started again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import copy_context
from typing import Final

import anyio

from outreach.engine import Outreach
from outreach.testing.simulation.faults import Faults
from outreach.testing.simulation.loop import PROCESS, Standstill
from outreach.testing.simulation.setting import CONFIG
from outreach.testing.simulation.storage import Machine, ProcessStorage
from outreach.testing.simulation.world import Link

_REST_SECONDS: Final = 5.0
"""At most so long nobody dispatches between two lives."""

_TURN_GRACE_SECONDS: Final = 120.0

Making = Callable[[ProcessStorage, Link], Outreach]
"""Makes the engine of a process."""


class Process:
    """One life of the dispatching process.

    Args:
        storage: The database as it sees it.
        engine: Its engine.
        standstill: Whether it stands still.
    """

    def __init__(self, storage: ProcessStorage, engine: Outreach, standstill: Standstill) -> None:
        self.storage = storage
        self.standstill = standstill
        context = copy_context()
        context.run(PROCESS.set, standstill)
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(_live(engine), context=context)

    def kill(self) -> None:
        """Cut it off, and have what is left of it go away by itself."""
        self.storage.kill()
        self.go_on()
        self._task.cancel()

    def go_on(self) -> None:
        """Let it go on if it stands still."""
        self.standstill.go_on(self._loop)

    async def gone(self) -> None:
        """Wait until nothing is left of it, or for so long that only an engine that is broken has anything left."""
        with anyio.CancelScope(shield=True):
            await asyncio.wait({self._task}, timeout=_TURN_GRACE_SECONDS)


class Processes:
    """Keeps one process alive, and now and then a second one that does not know that it has been replaced.

    Args:
        make: Makes a process's engine.
        storage: Makes the database as a process sees it, given what is called when that one is to die.
        machine: Where the lock is.
        moved: Called when the database is started from another place, with that place.
        rng: Decides how long things take.
        faults: Counts the leases that were lost.
    """

    def __init__(
        self,
        *,
        make: Making,
        storage: Callable[[Callable[[], None]], ProcessStorage],
        machine: Machine,
        moved: Callable[[str], None],
        rng: random.Random,
        faults: Faults,
    ) -> None:
        self._make = make
        self._storage = storage
        self._machine = machine
        self._moved = moved
        self._rng = rng
        self._faults = faults
        self._all: list[Process] = []
        self._current: Process | None = None
        self._replaced = anyio.Event()

    async def keep_one(self) -> None:
        """Have a process dispatch, and start another one whenever it has died or has been given up.

        Ends when it is cancelled; then nothing is left of any of them.
        """
        try:
            while True:
                self._replaced = anyio.Event()
                self._current = self._start()
                await self._replaced.wait()
                await anyio.sleep(self._rng.choice((0.0, self._rng.random() * _REST_SECONDS)))
        finally:
            for process in self._all:
                process.kill()
            for process in self._all:
                await process.gone()

    async def lose_lease(self) -> None:
        """Stop the present process until its lease is over and another one works; then let it go on.

        The lock goes with the lease, as it does where leases are kept by time.
        """
        process = self._current
        if process is None or process.storage.cut or process.standstill.still:
            return
        self._faults.note("lease_lost")
        process.standstill.still = True
        await anyio.sleep(CONFIG.lease_seconds)
        process.storage.lock.release()
        self._current = None
        self._replaced.set()
        await anyio.sleep(self._rng.random() * 15)
        process.go_on()

    def _start(self) -> Process:
        replaced = self._replaced
        if self._all and self._faults.draw("moved"):
            self._machine.moves += 1
            self._moved(self._machine.path)
        storage = self._storage(lambda: self._died(process, replaced))
        standstill = Standstill()
        link = Link(
            alive=lambda: not storage.cut,
            at_work_since=lambda: None if standstill.still else standstill.went_on,
            die=storage.kill,
        )
        process = Process(storage, self._make(storage, link), standstill)
        self._all.append(process)
        return process

    def _died(self, process: Process, replaced: anyio.Event) -> None:
        process.kill()
        if self._current is process:
            replaced.set()


async def _live(engine: Outreach) -> None:
    async with engine:
        await anyio.sleep_forever()
