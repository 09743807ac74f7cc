"""Storage as the simulated processes see it: one database, a process that can be cut off from it."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import attrs

from outreach.errors import StorageError
from outreach.models.campaign import Counters
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.protocols.storage import DispatchLock, Operation
from outreach.storage.base.group_commit import commit_group
from outreach.storage.base.jobs import Job
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.memory import empty_database, open_image
from outreach.storage.sqlite.schema import apply_migrations
from outreach.storage.sqlite.transactions import Transactions
from outreach.testing.simulation.faults import Faults
from outreach.testing.simulation.touched import NotingTransaction, Touched
from outreach.working_set import Transaction
from outreach.working_set.kinds import CAMPAIGNS, RECIPIENTS

T = TypeVar("T")

_SPOILED: Final = 7
"""Every so many writes share their group with an operation that fails."""

_NOBODY_WAITS: Final[Any] = None

_SLOW_SECONDS: Final = 2.0
"""How long an operation waits for its turn at the most."""


class Database:
    """The one database, over one connection in this thread: operations run at once, each in a transaction.

    What checks read comes from the database, through a session of its own: a row that the writer knows wrongly, or has
    kept to itself, is found out.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._raw = _open(path)
        self._writer = Session(self._raw)
        self._reader = Session(self._raw, read_only=True)
        self._noting = NotingTransaction(self._writer.transaction)
        self._writes = 0

    def write(self, operation: Operation[T]) -> tuple[T, Mapping[str, Touched]]:
        """Run an operation that may write, and commit it; return what it has written too.

        Now and then another one comes before it in the same group, which fails after it has written a lot: of that
        nothing must be left.
        """
        jobs = [Job(operation=lambda _: operation(self._noting.fresh()), bulk=False, done=_NOBODY_WAITS)]
        self._writes += 1
        if self._writes % _SPOILED == 0:
            jobs.insert(0, Job(operation=self._spoil, bulk=False, done=_NOBODY_WAITS))
        asked = jobs[-1]
        commit_group(self._writer, lambda: jobs.pop(0) if jobs else None, [], control=Transactions(self._raw))
        self._reader.rows.forget()
        if asked.error is not None:
            raise asked.error
        return cast("T", asked.result), self._noting.touched

    def _spoil(self, tx: Transaction) -> None:
        """Write to whatever is known, and fail."""
        campaigns = [row for row in self._writer.rows.cached_rows(CAMPAIGNS) if row is not None]
        for campaign in campaigns[:2]:
            tx.campaigns.add_counters(campaign.workspace_id, campaign.id, Counters(failed=1, open=-1))
            tx.campaigns.update(attrs.evolve(campaign, status=CampaignStatus.CANCELLED))
            for recipient in self._writer.rows.cached_rows(RECIPIENTS)[:3]:
                if recipient is not None and recipient.campaign_id == campaign.id:
                    spoiled = attrs.evolve(recipient, status=RecipientStatus.FAILED, reason="spoiled")
                    tx.recipients.put(campaign.workspace_id, spoiled)
        raise Spoiled

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads."""
        return operation(self._reader.transaction)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


def _open(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return open_image(empty_database())
    raw = sqlite3.connect(str(path), isolation_level=None)
    raw.execute("PRAGMA foreign_keys = ON")
    apply_migrations(raw)
    return raw


class Spoiled(Exception):
    """What an operation raises that is to leave nothing behind."""


class Killed(StorageError):
    """The simulated process is dead: nothing that it still does has any effect."""


class Machine:
    """What outlives a process: the lock file, the note beside the database, and where the database is.

    Attributes:
        moves: How often the database has been moved.
    """

    def __init__(self) -> None:
        self.holder: object | None = None
        self.noted: HighWaterMark | None = None
        self.moves = 0

    @property
    def path(self) -> str:
        """Where the database is."""
        return f"/simulated-{self.moves}.db"


class ProcessLock:
    """The dispatch lock as one process sees it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._home = DatabaseHome(host="simulated", path=machine.path)

    def acquire(self) -> bool:
        """Take the lock unless some process has it."""
        if self._machine.holder is not None:
            return False
        self._machine.holder = self
        return True

    def release(self) -> None:
        """Give it back if it is ours."""
        if self._machine.holder is self:
            self._machine.holder = None

    def home(self) -> DatabaseHome | None:
        """Return where the database is."""
        return self._home

    def high_water(self) -> HighWaterMark | None:
        """Return what was last noted."""
        return self._machine.noted

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Note how far the database has come."""
        if self._machine.holder is self:
            self._machine.noted = mark

    def ended_uncleanly(self) -> bool:
        """Return False: the simulation has no disk."""
        return False

    async def check_integrity(self) -> str | None:
        """Return None, for the same reason."""
        return None


class ProcessStorage:
    """The database as one process sees it.

    Args:
        database: The one database.
        machine: Lock and note.
        rng: Decides how long operations take.
        faults: Decides at which commits the process dies; None for one that never does.
        check: Run after every commit, within this turn, with what was written in which workspace.
        die: Called when the process is to die.
        held_up: Called when an operation that writes waits for long, with what was decided before.

    Attributes:
        cut: Whether the process is cut off from it: it is dead, whatever its tasks still try.
    """

    def __init__(
        self,
        *,
        database: Database,
        machine: Machine,
        rng: random.Random,
        faults: Faults | None,
        check: Callable[[Transaction, Mapping[str, Touched]], None],
        die: Callable[[], None],
        held_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._rng = rng
        self._faults = faults
        self._check = check
        self._die = die
        self._held_up = held_up
        self._lock = ProcessLock(machine)
        self.cut = False

    async def __aenter__(self) -> Self:
        """Open it."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close it; the operating system gives the lock back."""
        self._lock.release()

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation, unless the process is dead; it may die just before or just after the commit."""
        await self._take_time(writes=True)
        self._require_alive()
        if self._faults is not None and self._faults.draw("kill_before_commit"):
            self.kill()
        self._require_alive()
        result, touched = self._database.write(operation)
        self._database.read(lambda tx: self._check(tx, touched))
        if self._faults is not None and self._faults.draw("kill_after_commit"):
            self.kill()
        await self._take_time()
        self._require_alive()
        return result

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads, unless the process is dead."""
        await self._take_time()
        self._require_alive()
        return self._database.read(operation)

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return None: whoever asks has to read."""
        return None

    @property
    def lock(self) -> DispatchLock:
        """The lock as this process sees it."""
        return self._lock

    def kill(self) -> None:
        """Cut the process off, first of all; then have it cleared away."""
        if not self.cut:
            self.cut = True
            self._lock.release()
            self._die()

    def _require_alive(self) -> None:
        if self.cut:
            raise Killed("The process is dead.")

    async def _take_time(self, *, writes: bool = False) -> None:
        # Half of the time nothing but a turn of the loop, which costs less; now and then long enough that much happens
        # between what was read and what is written.
        slow = self._faults is not None and self._faults.draw("slow_storage")
        if slow and writes:
            self._held_up()
        await asyncio.sleep(self._rng.random() * _SLOW_SECONDS if slow else max(self._rng.random() * 0.04 - 0.02, 0.0))
