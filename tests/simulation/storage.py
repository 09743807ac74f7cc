"""Storage as the simulated processes see it: one database, a process that can be cut off from it."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import attrs

from outreach.core.clock import Clock, SystemClock
from outreach.errors import StorageError
from outreach.models.campaign import Counters
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.protocols.storage import Operation, Within
from outreach.storage.base.writer import Job, commit_group
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.memory import empty_database, open_image
from outreach.storage.sqlite.schema import apply_migrations
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import ALL_WORKSPACES, CAMPAIGNS, RECIPIENTS, everything_changed
from tests.simulation.cuts import Cuts
from tests.simulation.faults import Fault, Faults
from tests.simulation.fence import Fences, Turn
from tests.simulation.statements import Abandoned, Stepped, SteppingBackend, SteppingClock, SteppingTransactions
from tests.simulation.writes import RecordingTransaction, Writes

T = TypeVar("T")

_FAILING_EVERY: Final = 7
"""Every so many writes share their group with an operation that fails."""

_NO_WAITER: Final[Any] = None

_SLOW_SECONDS: Final = 2.0
"""How long an operation waits for its turn at the most."""

_AT_EDGE: Final = 0.15
"""How often a transaction that has begun waits before its first statement, where there are several writers."""

_EDGE_SECONDS: Final = 0.5

_IN_STEPS: Final = 0.5
"""How often a transaction goes on statement by statement, where there are several workspaces and writers."""

_STOPS_BEFORE: Final = 0.3
"""Before how many statements such a transaction stops."""


class Database:
    """The one database, over one connection in this thread: operations run at once, each in a transaction.

    Checks read from the database, through a session of their own: they find a row that the writer has wrong or did not
    write.

    Attributes:
        clock: Its clock.
        fences: What the transactions of processes side by side take first.
        workspaces: How many there are: with several, transactions of different ones run side by side.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._raw = _open(path)
        self.clock = DatabaseClock()
        self.fences = Fences()
        self.workspaces = 0
        self._reader = Session(self._raw, read_only=True, clock=self.clock)
        self._reader.rows.backend.own_clock = True
        self._commits: Counter[str] = Counter()
        self._shared = self.connect()
        self._writes = 0

    def connect(self) -> Connection:
        """Return a connection that writes, with rows of its own."""
        return Connection(self._raw, self.clock, commits=self._commits)

    def write(self, operation: Operation[T], connection: Connection | None = None) -> tuple[T, Mapping[str, Writes]]:
        """Run an operation that may write, and commit it; return what it has written too.

        Without a connection it is that which processes share that are never at work at a time.

        Now and then another one comes before it in the same group, which fails after it has written a lot: of that
        nothing must be left.
        """
        by = connection or self._shared
        within = operation.workspace_ids if isinstance(operation, Within) else None
        if connection is None:
            by.begin(within)
        jobs = [Job(operation=lambda _: operation(by.recording.fresh()), bulk=False, done=_NO_WAITER)]
        self._writes += 1
        if self._writes % _FAILING_EVERY == 0:
            jobs.insert(0, Job(operation=partial(_write_and_fail, by.session), bulk=False, done=_NO_WAITER))
        asked = jobs[-1]
        commit_group(by.session, jobs.pop(0), lambda: jobs.pop(0) if jobs else None, [], control=by.control)
        self._commits.update(within or (ALL_WORKSPACES,))
        by.committed(within)
        self._reader.rows.forget()
        if asked.error is not None:
            raise asked.error
        return cast("T", asked.result), by.recording.writes

    def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads."""
        return operation(self._reader.transaction)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


class DatabaseClock:
    """The clock of the database; the system's until it is set.

    Attributes:
        shown: The clock whose time it returns.
        stepping: How many transactions go on in steps now; nobody sets the clock meanwhile.
    """

    def __init__(self) -> None:
        self.shown: Clock = SystemClock()
        self.stepping = 0

    @contextmanager
    def showing(self, moment: datetime | None) -> Iterator[None]:
        """Have it show a moment, for what is checked in the block."""
        clock = cast("SteppingClock", self.shown)
        clock.shows = moment
        try:
            yield
        finally:
            clock.shows = None

    def now(self) -> datetime:
        """Return the time."""
        return self.shown.now()

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""
        return self.shown.monotonic()


class Connection:
    """A connection of one process, which knows rows of a workspace as long as no other one has committed there.

    Args:
        raw: The one connection there is.
        clock: The clock of the database.
        commits: How many commits there were in each workspace, and for all of them.

    Attributes:
        session: Its unit of work and tables.
        recording: The same; its writes are recorded.
        backend: The database of its unit of work.
        control: How its transactions begin and end.
        writer: Held by the one operation of the process that writes.
    """

    def __init__(self, raw: sqlite3.Connection, clock: Clock, *, commits: Counter[str]) -> None:
        self.session = Session(raw, clock=clock)
        self._commits = commits
        self._known: Counter[str] = Counter()
        self.writer = asyncio.Lock()
        self._within: frozenset[str] | None = None
        self._found: Counter[str] = Counter()
        self.session.rows.backend = self.backend = SteppingBackend(raw, clock, changes=self._changes)
        self.control = SteppingTransactions(self.backend)
        self.session.transaction = Transaction(self.session.rows)
        self.recording = RecordingTransaction(self.session.transaction)

    def begin(self, workspace_ids: frozenset[str] | None) -> None:
        """Begin a transaction in workspaces, or in all: learn how many commits there have been."""
        self._within, self._found = workspace_ids, Counter(self._commits)

    def _changes(self) -> Callable[[str], bool]:
        """Return where others had committed when the transaction began; it then knows of that."""
        if self._known[ALL_WORKSPACES] != self._found[ALL_WORKSPACES]:
            self._known = Counter({ALL_WORKSPACES: self._found[ALL_WORKSPACES]})
            return everything_changed
        within = self._found if self._within is None else self._within
        changed = {one for one in within if self._known[one] != self._found[one]}
        for one in changed:
            self._known[one] = self._found[one]
        return changed.__contains__

    def committed(self, workspace_ids: frozenset[str] | None) -> None:
        """Note a commit of its own."""
        self._known.update(workspace_ids or (ALL_WORKSPACES,))


def _write_and_fail(session: Session, tx: Transaction) -> None:
    """Write to known rows, and fail."""
    campaigns = [row for row in session.rows.cached_rows(CAMPAIGNS) if row is not None]
    for campaign in campaigns[:2]:
        tx.campaigns.add_counters(campaign.workspace_id, campaign.id, Counters(failed=1, open=-1))
        tx.campaigns.update(attrs.evolve(campaign, status=CampaignStatus.CANCELLED))
        for recipient in session.rows.cached_rows(RECIPIENTS)[:3]:
            if recipient is not None and recipient.campaign_id == campaign.id:
                spoiled = attrs.evolve(recipient, status=RecipientStatus.FAILED, reason="spoiled")
                tx.recipients.put(campaign.workspace_id, spoiled)
    raise FailingOperation


def _open(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return open_image(empty_database())
    # Used by one thread at a time.
    raw = sqlite3.connect(str(path), isolation_level=None, check_same_thread=False)
    raw.execute("PRAGMA foreign_keys = ON")
    apply_migrations(raw)
    return raw


class FailingOperation(Exception):
    """Raised by an operation on purpose, after writes that must leave nothing behind."""


class Killed(StorageError):
    """The simulated process is dead: nothing that it still does has any effect."""


class Machine:
    """What outlives a process: the lock file, the note beside the database, and where the database is.

    Args:
        workers: How many places there are.

    Attributes:
        holders: Who holds each place.
        moves: How often the database has been moved.
        tells: Whether it can be told that the holder of a place is gone, as it can on one machine.
    """

    def __init__(self, workers: int = 1, *, tells: bool = True) -> None:
        self.places = range(1, workers + 1)
        self.tells = tells
        self.holders: dict[int, object] = {}
        self.noted: HighWaterMark | None = None
        self.moves = 0

    @property
    def path(self) -> str:
        """Where the database is."""
        return f"/simulated-{self.moves}.db"


class ProcessLock:
    """The dispatch lock as one process sees it.

    Attributes:
        tenure: How often it has taken a place.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.tenure = 0
        self._home = DatabaseHome(host="simulated", path=machine.path)

    async def acquire(self) -> int:
        """Take the first place that no process has."""
        place = next((one for one in self._machine.places if one not in self._machine.holders), 0)
        if place:
            self._machine.holders[place] = self
            self.tenure += 1
        return place

    async def release(self, place: int | None = None) -> None:
        """Give back what is ours."""
        self.give_back(place)

    def give_back(self, place: int | None = None) -> None:
        """Give back what is ours, as the operating system does when the process has ended."""
        holders = self._machine.holders
        self._machine.holders = {
            one: holder for one, holder in holders.items() if holder is not self or place not in {None, one}
        }

    @property
    def held(self) -> bool:
        """Whether a place is ours."""
        return self in self._machine.holders.values()

    async def find_free(self, places: Collection[int]) -> Collection[int]:
        """Return which places nobody holds, if that can be told."""
        return [place for place in places if self._machine.tells and place not in self._machine.holders]

    def home(self) -> DatabaseHome | None:
        """Return where the database is."""
        return self._home

    def high_water(self) -> HighWaterMark | None:
        """Return what was last noted."""
        return self._machine.noted

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Note how far the database has come."""
        if self.held:
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
        check: Run after every commit, within this turn, with what was written in which workspace, and with the
            workspaces among them that the operation has not named.
        die: Called when the process is to die.
        held_up: Called when an operation that writes waits for long, with what was decided before.
        connection: The process's own; None for the one that processes share that are never at work at a time.
        cuts: Decides when the process, which lives, does not reach it; None for one that always does.
        steps: Decides which transactions go on statement by statement, and where they stop.

    Attributes:
        dead: Whether the process is dead, whatever its tasks still try.
        at_work_since: Returns since when it has neither stood still nor been without its database, by the loop's time;
            None while it does.
    """

    def __init__(
        self,
        *,
        database: Database,
        machine: Machine,
        rng: random.Random,
        faults: Faults | None,
        check: Callable[[Transaction, Mapping[str, Writes], Collection[str]], None],
        die: Callable[[], None],
        held_up: Callable[[], None] = lambda: None,
        connection: Connection | None = None,
        cuts: Cuts | None = None,
        steps: random.Random | None = None,
    ) -> None:
        self._steps = steps or random.Random(0)
        self._connection = connection
        self.cuts = cuts
        self._database = database
        self._rng = rng
        self._faults = faults
        self._check = check
        self._die = die
        self._held_up = held_up
        self._lock = ProcessLock(machine)
        self.dead = False
        self.at_work_since: Callable[[], float | None] = lambda: 0.0

    @property
    def kept_waiting_until(self) -> float:
        """When another process that stood still has last kept it from writing, by the loop's time."""
        return self._database.fences.lost_at

    async def __aenter__(self) -> Self:
        """Open it."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close it; the operating system gives the lock back."""
        self._lock.give_back()

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation, unless the process is dead; it may die just before or just after the commit."""
        await self._take_time(writes=True)
        await self._reach()
        if self._faults is not None and self._faults.draw("kill_before_commit"):
            self.kill()
        self._require_alive()
        result = await self._in_turn(operation)
        if self._faults is not None and self._faults.draw("kill_after_commit"):
            self.kill()
        await self._take_time()
        self._require_alive()
        if self.cuts is not None:
            self.cuts.end_commit()
        return result

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation that reads, unless the process is dead."""
        await self._take_time()
        await self._reach()
        return self._database.read(operation)

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return None: the caller has to read."""
        return None

    @property
    def lock(self) -> ProcessLock:
        """The lock as this process sees it."""
        return self._lock

    def kill(self) -> None:
        """Take the database away from the process, first of all; then have it cleared away."""
        if not self.dead:
            self.dead = True
            self._lock.give_back()
            self._die()

    async def _reach(self) -> None:
        self._require_alive()
        if self.cuts is not None:
            await self.cuts.reach()
            self._require_alive()

    def _require_alive(self) -> None:
        if self.dead:
            raise Killed("The process is dead.")

    async def _in_turn(self, operation: Operation[T]) -> T:
        """Run an operation in a transaction; where there are several writers, once it has its fences.

        One that has lost them meanwhile, as the process stood still, begins again.
        """
        connection = self._connection
        if connection is None:
            return await self._run(operation, None, None)
        workspace_ids = operation.workspace_ids if isinstance(operation, Within) else None
        async with connection.writer:
            while True:
                turn = await self._database.fences.take(self._note, workspace_ids)
                try:
                    self._require_alive()
                    connection.begin(workspace_ids)
                    if await self._keeps(turn):
                        self._require_alive()
                        return await self._run(operation, connection, turn)
                except Abandoned:
                    self._require_alive()
                finally:
                    self._database.fences.give_back(turn, self._note)

    async def _run(self, operation: Operation[T], connection: Connection | None, turn: Turn | None) -> T:
        """Run an operation in a transaction that has begun, commit it, and have it checked.

        Raises:
            Abandoned: The transaction has ended between two of its statements.
        """
        if self.cuts is not None:
            self.cuts.begin_commit()
        if connection is None or turn is None or self._database.workspaces < 2 or self._steps.random() >= _IN_STEPS:
            result, writes = self._database.write(operation, connection)
            self._check_commit(operation, connection, writes)
            return result
        return await self._run_in_steps(operation, connection, turn)

    def _check_commit(
        self, operation: Operation[Any], connection: Connection | None, writes: Mapping[str, Writes]
    ) -> None:
        outside: Collection[str] = ()
        if connection is not None and isinstance(operation, Within):
            written_in = connection.backend.written_in.union(name for name, one in writes.items() if not one.is_empty)
            outside = written_in - operation.workspace_ids
        self._database.read(lambda tx: self._check(tx, writes, outside))

    async def _run_in_steps(self, operation: Operation[T], connection: Connection, turn: Turn) -> T:
        clock = self._database.clock
        stepped = Stepped(lambda: self._database.write(operation, connection))

        def stop() -> None:
            if self._steps.random() < _STOPS_BEFORE:
                stepped.stop()

        connection.backend.stop = stop
        clock.stepping += 1
        try:
            while not stepped.step():
                self._note("between_statements")
                self._held_up()
                await asyncio.sleep(self._steps.random() * _EDGE_SECONDS)
                if turn.is_over or self.dead:
                    raise Abandoned
            result, writes = stepped.result()
            with clock.showing(stepped.began_at):
                self._check_commit(operation, connection, writes)
            return result
        except BaseException:
            stepped.abandon()
            raise
        finally:
            clock.stepping -= 1
            connection.backend.stop = None

    async def _keeps(self, turn: Turn) -> bool:
        """Stay at the edge of a transaction for a while, now and then; return whether it still has the fence."""
        if self._rng.random() < _AT_EDGE:
            self._held_up()
            await asyncio.sleep(self._rng.random() * _EDGE_SECONDS)
        return not turn.is_over

    def _note(self, fault: Fault) -> None:
        if self._faults is not None:
            self._faults.note(fault)

    async def _take_time(self, *, writes: bool = False) -> None:
        # Half of the time nothing but a turn of the loop, which costs less; now and then long enough that much happens
        # between what was read and what is written.
        slow = self._faults is not None and self._faults.draw("slow_storage")
        if slow and writes:
            self._held_up()
        await asyncio.sleep(self._rng.random() * _SLOW_SECONDS if slow else max(self._rng.random() * 0.04 - 0.02, 0.0))
