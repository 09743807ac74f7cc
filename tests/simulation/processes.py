"""The dispatching processes: one or several at a time, killed, stopped for a while and started again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Final

import anyio

from outreach.engine import Outreach
from outreach.errors import StorageError
from tests.simulation.faults import Faults
from tests.simulation.loop import PROCESS, Standstill
from tests.simulation.scenario import CONFIG
from tests.simulation.storage import Machine, ProcessStorage
from tests.simulation.world import Link

_REST_SECONDS: Final = 5.0
"""At most so long nobody dispatches between two lives."""

_TURN_GRACE_SECONDS: Final = 120.0

_REPLACED: Final = 0.5
"""How often one of several processes that stood still is replaced, instead of going on beside the others."""

Making = Callable[[ProcessStorage, Link], Outreach]
"""Makes the engine of a process."""


class Process:
    """One life of a dispatching process.

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
        self._task = self._loop.create_task(_live(engine, storage), context=context)

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
    """Keeps processes alive, and now and then one more that does not know that it has been replaced.

    Args:
        make: Makes a process's engine.
        storage: Makes the database as a process sees it, given what is called when that one is to die.
        machine: Where the lock is.
        moved: Called when the database is started from another place, with that place.
        rng: Decides how long things take.
        faults: Counts the leases that were lost.
        workers: How many processes dispatch at a time.
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
        workers: int = 1,
    ) -> None:
        self._workers = workers
        self._make = make
        self._storage = storage
        self._machine = machine
        self._moved = moved
        self._rng = rng
        self._faults = faults
        self._all: list[Process] = []
        self._current: dict[int, Process] = {}
        self._replaced: dict[int, anyio.Event] = {}

    async def keep(self) -> None:
        """Have processes dispatch, and start another one whenever one has died or has been given up.

        Ends when it is cancelled; then nothing is left of any of them.
        """
        try:
            async with anyio.create_task_group() as tasks:
                for number in range(self._workers):
                    tasks.start_soon(self._keep_one, number)
        finally:
            for process in self._all:
                process.kill()
            for process in self._all:
                await process.gone()

    async def _keep_one(self, number: int) -> None:
        while True:
            self._replaced[number] = anyio.Event()
            self._current[number] = self._start(number)
            await self._replaced[number].wait()
            await anyio.sleep(self._rng.choice((0.0, self._rng.random() * _REST_SECONDS)))

    async def lose_lease(self) -> None:
        """Stop a present process until its lease is over and another one works; then let it go on.

        The lock goes with the lease, as it does where leases are kept by time. Of several, the others may take over
        what it drove before another one comes in its place, or it goes on when nothing was taken over yet.
        """
        number = self._rng.randrange(self._workers) if self._workers > 1 else 0
        process = self._current.get(number)
        if process is None or process.storage.dead or process.standstill.still:
            return
        self._faults.note("lease_lost")
        process.standstill.still = True
        await anyio.sleep(CONFIG.lease_seconds)
        if self._workers == 1 or self._rng.random() < _REPLACED:
            process.storage.lock.give_back()
            del self._current[number]
            self._replaced[number].set()
        await anyio.sleep(self._rng.random() * 15)
        process.go_on()

    def _start(self, number: int) -> Process:
        replaced = self._replaced[number]
        # Nobody moves a database that is in use.
        if self._all and self._faults.draw("moved") and not self._machine.holders:
            self._machine.moves += 1
            self._moved(self._machine.path)
        storage = self._storage(lambda: self._died(process, number, replaced))
        standstill = Standstill()
        storage.at_work_since = partial(_at_work_since, standstill, storage)
        link = Link(
            alive=lambda: not storage.dead,
            at_work_since=storage.at_work_since,
            kept_waiting_until=lambda: storage.kept_waiting_until,
            die=storage.kill,
        )
        process = Process(storage, self._make(storage, link), standstill)
        self._all.append(process)
        return process

    def _died(self, process: Process, number: int, replaced: anyio.Event) -> None:
        process.kill()
        if self._current.get(number) is process:
            replaced.set()


def _at_work_since(standstill: Standstill, storage: ProcessStorage) -> float | None:
    """Return since when a process has neither stood still nor been without its database; None while it is so."""
    cuts = storage.cuts
    if standstill.still or (cuts is not None and cuts.is_away):
        return None
    return max(standstill.went_on, cuts.back_at if cuts is not None else 0.0)


async def _live(engine: Outreach, storage: ProcessStorage) -> None:
    try:
        async with engine:
            await anyio.sleep_forever()
    except StorageError:
        # One that cannot open its database ends, and another one is started.
        storage.kill()
