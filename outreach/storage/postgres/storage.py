"""A database in PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar, cast

import anyio
import psycopg

from outreach.core.clock import Clock
from outreach.errors import Problem, StorageError, StorageUnreachable
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import OneQuery, Operation
from outreach.storage.base.dispatch_note import of_state_directory
from outreach.storage.base.threads import Worker
from outreach.storage.base.writer import GroupWriter
from outreach.storage.postgres.backend import Session
from outreach.storage.postgres.connect import connect, conninfo_of, name_of
from outreach.storage.postgres.diagnosis import diagnose_server, why_not_writable
from outreach.storage.postgres.errors import first_line, is_away, is_busy, not_usable
from outreach.storage.postgres.listening import Listener
from outreach.storage.postgres.lock import PostgresDispatchLock
from outreach.storage.postgres.pipelined_reader import PipelinedReader
from outreach.storage.postgres.pool import Pool, configure, open_pool
from outreach.storage.postgres.readers import Readers
from outreach.storage.postgres.schema import apply_migrations, column_types
from outreach.storage.postgres.sql import Types
from outreach.storage.postgres.transactions import FencedTransactions

_LOOK_SECONDS: Final = 2.0
"""A server that has not answered a new connection for this long is reported as unreachable."""

T = TypeVar("T")

_READERS: Final = 4
"""Reads at the same time: each needs a connection, and processes are many."""

_CLOSE_SECONDS: Final = 3.0
"""How long closing waits for queued operations."""

_READ_CLOSE_SECONDS: Final = 0.5
"""How long it waits for reads: interrupting one loses nothing."""

_log = logging.getLogger(__name__)


class PostgresStorage:
    """A database in PostgreSQL; see `outreach.protocols.storage.Storage`.

    Any number of processes on any machines may open it; as many as allowed dispatch. Each has up to seven connections,
    and one more to listen.

    Args:
        conninfo: How to connect.
        clock: Measures how long a group of operations lasts.
        create: Whether opening creates the schema `outreach` in a database without it.
        migrate: Whether opening migrates an older schema.
        workers: How many processes may dispatch from it at a time; the others stand by.
        state_dir: Where this machine notes how far the database has come; None for nowhere.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        clock: Clock,
        create: bool = True,
        migrate: bool = True,
        workers: int = 1,
        state_dir: Path | None = None,
    ) -> None:
        self._conninfo = conninfo
        self._clock = clock
        self._create = create
        self._migrate = migrate
        self._state_dir = state_dir
        self._lock = PostgresDispatchLock(conninfo, workers=workers, state_dir=state_dir)
        self._instrumentation = Instrumentation()
        self._open: _Open | None = None
        self._notify: Callable[[str], None] | None = None
        self._listener: Listener | None = None

    async def __aenter__(self) -> Self:
        """Connect, and create or migrate the schema."""
        if self._open is not None:
            raise StorageError("The storage is open already.")
        try:
            asyncio.get_running_loop()
        except RuntimeError as error:
            raise StorageError("PostgreSQL storage runs under asyncio, not under trio.") from error
        connected, cancelled = await _in_thread(self._connect)
        pool, types = connected.result()
        pipelined = PipelinedReader(self._conninfo, types, home=self._lock.home())
        self._open = _Open(pool, types, self._clock, self._instrumentation, pipelined, self._lock)
        if cancelled is not None:
            await self._close()
            raise cancelled
        if self._notify is not None:
            self.listen(self._notify)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Finish queued operations, disconnect, and release the dispatch lock."""
        cancelled = await self._close()
        if cancelled is not None:
            raise cancelled

    def observe(self, instrumentation: Instrumentation) -> None:
        """Report each transaction to this instrumentation, from the next opening on."""
        self._instrumentation = instrumentation

    @property
    def is_listening(self) -> bool:
        """Whether it is notified of other processes' commits now."""
        return self._listener is not None and self._listener.is_connected

    @property
    def server_changes(self) -> int:
        """How often another server has taken over since it was opened; see `outreach.protocols.storage`."""
        return 0 if self._open is None else self._open.control.server_changes

    async def why_unreachable(self) -> str | None:
        """Return why no connection can be made now; see `outreach.protocols.storage.RemoteStorage`."""
        if self._open is None or self._open.pool.problem is not None:
            return None if self._open is None else self._open.pool.problem
        # Nothing may have come over the pool's connections for some seconds yet, as while they wait for a lock.
        with anyio.move_on_after(_LOOK_SECONDS):
            # Refused, perhaps for too many connections: it answers.
            with suppress(psycopg.Error):
                await (await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)).close()
            return None
        return f"no answer from {name_of(self._conninfo)} to a new connection within {_LOOK_SECONDS:g} s"

    async def why_not_writable(self) -> StorageError | None:
        """Return the error of a write; see `outreach.protocols.storage.RemoteStorage`."""
        return await asyncio.to_thread(why_not_writable, self._conninfo)

    def listen(self, notify: Callable[[str], None]) -> None:
        """Call this with the topic of each change; see `outreach.protocols.storage.NotifyingStorage`."""
        self._notify = notify
        if self._open is not None and self._listener is None:
            self._listener = Listener(self._conninfo, notify, asyncio.get_running_loop())

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction; return its result after the commit."""
        if self._open is None:
            raise _not_open()
        return cast("T", await self._open.groups.run(operation, bulk=bulk))

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot; return its result."""
        if self._open is None:
            raise _not_open()
        if isinstance(operation, OneQuery):
            answer = await self._open.pipelined.run(operation)
            if answer is not None:
                return cast("T", answer.result)
            # It may have been closed meanwhile.
            if self._open is None:
                raise _not_open()
        return cast("T", await self._open.readers.run(operation))

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return None: asking the server takes a round trip, for which the event loop must not wait."""
        return None

    @property
    def lock(self) -> PostgresDispatchLock:
        """The dispatch lock."""
        return self._lock

    async def diagnose(self) -> Sequence[Problem]:
        """Return what is wrong with the database, also while this is not open."""
        return [*await asyncio.to_thread(diagnose_server, self._conninfo), *of_state_directory(self._state_dir)]

    async def _close(self) -> asyncio.CancelledError | None:
        """Disconnect, and return the cancellation that came meanwhile."""
        opened, self._open = self._open, None
        listener, self._listener = self._listener, None
        cancelled = None
        if opened is not None:
            # Here, on the event loop that its connection belongs to.
            opened.pipelined.close()

        def close() -> None:
            if listener is not None:
                listener.close(seconds=_READ_CLOSE_SECONDS)
            if opened is not None:
                opened.close()
            self._lock.close()

        if opened is not None:
            _, cancelled = await _in_thread(close)
        return cancelled

    def _connect(self) -> tuple[Pool, Types]:
        try:
            with connect(self._conninfo, patient=True) as connection:
                apply_migrations(connection, create=self._create, migrate=self._migrate)
                # Here, because a pool only says that it has waited.
                configure(connection)
                types = column_types(connection)
            self._lock.open()
            return open_pool(self._conninfo, size=1 + _READERS, home=self._lock.home()), types
        except psycopg.Error as error:
            self._lock.close()
            name = name_of(self._conninfo)
            if not is_away(error, self._conninfo):
                raise StorageError(not_usable(name, error)) from error
            raise StorageUnreachable(
                f"The database {name} cannot be reached. ({type(error).__name__}: {first_line(error)})"
            ) from error


class _Open:
    """The parts of an open storage."""

    def __init__(
        self,
        pool: Pool,
        types: Types,
        clock: Clock,
        instrumentation: Instrumentation,
        pipelined: PipelinedReader,
        lock: PostgresDispatchLock,
    ) -> None:
        self.pipelined = pipelined
        self.pool = pool
        session = Session(types)
        self.control = FencedTransactions(pool, session, on_loss=lock.note_loss)
        self._writer = Worker("outreach-postgres-writer")
        self.groups = GroupWriter(
            session,
            control=self.control,
            wake=lambda: self._writer.post(self.groups.work),
            clock=clock,
            bulk_waits_for=is_busy,
            instrumentation=instrumentation,
        )
        self.readers = Readers(pool, types, count=_READERS)

    def close(self) -> None:
        """Finish queued operations for a moment, then disconnect; blocks."""
        self.control.end()
        self._writer.finish()
        for reader in self.readers.readers:
            reader.worker.finish()
        ended = self._writer.join(_CLOSE_SECONDS)
        for reader in self.readers.readers:
            if not reader.worker.join(_READ_CLOSE_SECONDS):
                reader.cancel()
                ended = reader.worker.join(_READ_CLOSE_SECONDS) and ended
        self.pool.close(timeout=1)
        if not ended:
            # Operations that wait get an error: the server may never answer.
            self.pool.cut()
            _log.error(
                "The database was not closed, because its server does not respond. Committed data is safe.",
                extra={"action": "not_closed"},
            )


async def _in_thread(function: Callable[[], T]) -> tuple[asyncio.Future[T], asyncio.CancelledError | None]:
    """Run a function in a thread to its end, even if the caller is cancelled: half of it would leak connections.

    Returns:
        The finished future, and the cancellation that came meanwhile.
    """
    running = asyncio.get_running_loop().run_in_executor(None, function)
    cancelled = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    return running, cancelled


def _not_open() -> StorageError:
    return StorageError("The storage is not open: use it inside `async with`.")


def postgres_storage_from_url(
    url: str,
    *,
    clock: Clock,
    create: bool = True,
    migrate: bool = True,
    workers: int = 1,
    state_dir: Path | None = None,
) -> PostgresStorage:
    """Return the unopened storage of a URL such as `postgresql://user:password@host:5432/database`.

    Raises:
        ConfigError: The URL is not valid.
    """
    return PostgresStorage(
        conninfo_of(url), clock=clock, create=create, migrate=migrate, workers=workers, state_dir=state_dir
    )
