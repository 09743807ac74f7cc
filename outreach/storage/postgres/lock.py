"""The dispatch lock of a PostgreSQL database: advisory locks, which the server frees with their connection."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import attrs
import psycopg

from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.storage.base.dispatch_note import DispatchNote, note_in
from outreach.storage.base.threads import Worker
from outreach.storage.postgres.connect import BUSY_SECONDS, DISPATCH_KEY, PostgresConnection, connect, home_of

T = TypeVar("T")

_ANSWER_SECONDS: Final = BUSY_SECONDS
"""A connection that has given no answer for this long is taken for lost."""

_CLOSE_SECONDS: Final = 1.0
"""How long closing waits for the thread, which a connection that is being made may hold up."""

_FREE: Final = """
    SELECT key FROM unnest(%(keys)s::bigint[]) AS key
    WHERE CASE WHEN pg_try_advisory_lock(key) THEN pg_advisory_unlock(key) ELSE false END
"""


class _LockRequest(Generic[T]):
    """A request of the lock thread to the server.

    Attributes:
        ask: Sends it and returns the answer.
        answer: The answer; None without one.
        error: The error that the server returned instead of an answer.
        dropped: Whether no caller waits for the answer any more, so that it need not be sent.
    """

    def __init__(self, ask: Callable[[PostgresConnection], T]) -> None:
        self.ask = ask
        self.answer: T | None = None
        self.error: Exception | None = None
        self.dropped = False


class PostgresDispatchLock:
    """The places of the workers, an advisory lock each; a worker that loses its connection is fenced by its lease.

    A thread asks the server, so that the event loop never waits for it. After some seconds
    without an answer, the connection is cut, with all places that it holds, and the next request makes another one.

    The database is where its cluster is, and has the OIDs of its tables and the timeline of its server: a dump that was
    restored, here or elsewhere, and a server that was set back or has taken over, are others, and start paused. Files
    of a server that were set back are the same: a note in a directory of this machine shows that.

    Args:
        conninfo: How to connect.
        workers: How many places there are.
        state_dir: The directory of the note; None for no note.
    """

    def __init__(self, conninfo: str, *, workers: int = 1, state_dir: Path | None = None) -> None:
        self._places = range(1, workers + 1)
        self._conninfo = conninfo
        self._state_dir = state_dir
        self._home: DatabaseHome | None = None
        self._mark: HighWaterMark | None = None
        self._closed = True
        self._thread: Worker | None = None
        # These belong to the thread, and to `open` and `close` before and after it.
        self._connection: PostgresConnection | None = None
        self._held: set[int] = set()
        # The request in progress, and a second descriptor of its socket: the library may close its own at any time.
        self._current: _LockRequest[Any] | None = None
        self._plug: socket.socket | None = None
        self._guard = threading.Lock()

    def open(self) -> None:
        """Connect, and learn where the database is; blocks, and may raise `psycopg.Error`."""
        self._closed = False
        self._connect()

    async def acquire(self) -> int:
        """Take the lowest free place; return it, or 0 if none is free, or if the server does not answer."""
        return await self._run(self._take, undo=self._give_back) or 0

    async def release(self, place: int | None = None) -> None:
        """Give a place back, if it is held here; by default all that are."""
        # At once: a server ends the session of a closed connection when it comes to it.
        await self._run(lambda connection: self._give_back(connection, place), must=True)

    async def find_free(self, places: Collection[int]) -> Collection[int]:
        """Return which places no process holds; none if the server does not answer."""
        return await self._run(lambda connection: self._find_free(connection, places)) or []

    def close(self) -> None:
        """Disconnect for good; blocks for a moment."""
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is None:
            self._drop()
            return
        self._cut(self._current)
        thread.post(self._drop)
        thread.finish()
        thread.join(_CLOSE_SECONDS)

    # --------------------------------------------------------------------------------- on the event loop

    async def _run(
        self,
        ask: Callable[[PostgresConnection], T],
        *,
        undo: Callable[[PostgresConnection, T], object] | None = None,
        must: bool = False,
    ) -> T | None:
        """Run a request in the thread; return its answer, or None if none arrives in time.

        Args:
            ask: Sends the request, in the thread.
            undo: Undoes it there, where no caller has waited for the answer.
            must: Whether to send it also where no caller waits for the answer any more.
        """
        if self._closed:
            return None
        if self._thread is None:
            self._thread = Worker("outreach-postgres-lock")
        thread, loop, request = self._thread, asyncio.get_running_loop(), _LockRequest(ask)
        done: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            limit.cancel()
            if not done.done():
                done.set_result(None)

        def work() -> None:
            self._answer(request)
            with suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(finish)

        def give_up() -> None:
            self._cut(request)
            request.dropped = not must
            finish()

        limit = loop.call_later(_ANSWER_SECONDS, give_up)
        thread.post(work)
        try:
            await done
        except asyncio.CancelledError:
            request.dropped = not must
            raise
        finally:
            if request.dropped and undo is not None:
                # After it, in the same thread: a request that was not sent has no answer to undo.
                thread.post(lambda: self._undo(request, undo))
        if request.error is not None:
            raise request.error
        return None if request.dropped else request.answer

    def _cut(self, request: _LockRequest[Any] | None) -> None:
        """Close the connection of a request, if the request is still in progress."""
        with self._guard, suppress(OSError):
            if request is not None and request is self._current and self._plug is not None:
                self._plug.shutdown(socket.SHUT_RDWR)

    # --------------------------------------------------------------------------------------- in the thread

    def _answer(self, request: _LockRequest[T]) -> None:
        if request.dropped or self._closed:
            return
        with self._guard:
            self._current = request
        try:
            request.answer = request.ask(self._connection or self._connect())
        except (psycopg.OperationalError, OSError):
            self._drop()
        except psycopg.Error as error:
            request.error = error
        finally:
            with self._guard:
                self._current = None

    def _undo(self, request: _LockRequest[T], undo: Callable[[PostgresConnection, T], object]) -> None:
        if request.answer and self._connection is not None:
            answer = request.answer
            self._answer(_LockRequest(lambda connection: undo(connection, answer)))

    def _connect(self) -> PostgresConnection:
        connection = connect(self._conninfo)
        self._plug = socket.fromfd(connection.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)
        self._connection = connection
        # Anew for each: another server may have taken over.
        self._home = home_of(connection)
        return connection

    def _drop(self) -> None:
        """Close the connection; the server frees the places that it holds."""
        self._held.clear()
        plug, self._plug = self._plug, None
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()
        if plug is not None:
            with self._guard:
                plug.close()

    def _take(self, connection: PostgresConnection) -> int:
        for place in self._places:
            if place not in self._held and _ask(connection, "SELECT pg_try_advisory_lock(%(key)s)", place):
                self._held.add(place)
                return place
        return 0

    def _give_back(self, connection: PostgresConnection, place: int | None) -> None:
        for one in sorted(self._held) if place is None else [place]:
            if one in self._held:
                _ask(connection, "SELECT pg_advisory_unlock(%(key)s)", one)
                self._held.discard(one)

    def _find_free(self, connection: PostgresConnection, places: Collection[int]) -> Collection[int]:
        keys = [DISPATCH_KEY + place - 1 for place in places if place not in self._held]
        return [key - DISPATCH_KEY + 1 for (key,) in connection.execute(_FREE, {"keys": keys}).fetchall()]

    # ------------------------------------------------------------------------- what the server looks after

    def home(self) -> DatabaseHome | None:
        """Return which database of which cluster this is, and in which state; None before it is open."""
        return self._home

    def high_water(self) -> HighWaterMark | None:
        """Return the latest that this process, or any in the note, has recorded.

        It shows a database that was set back.
        """
        note = self._note()
        known = [mark for mark in (self._mark, note.mark() if note is not None else None) if mark is not None]
        return max(known, key=lambda mark: (mark.epoch, mark.change), default=None)

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Keep the database's state; after `note_loss` only that of the next worker.

        Raises:
            DispatchRefused: The note cannot be written.
        """
        if self._mark is None or mark.epoch >= self._mark.epoch:
            self._mark = mark
            note = self._note()
            if note is not None:
                note.write(mark)

    def _note(self) -> DispatchNote | None:
        """Return the note of this database; None without a directory, or before the database is open."""
        if self._state_dir is None or self._home is None:
            return None
        # The same before and after the files of the server were set back, and another for each database.
        return note_in(self._state_dir, f"{self._home.machine} {self._home.path}")

    def note_loss(self) -> None:
        """Have this process's next worker pause what runs: the database has lost transactions."""
        if self._mark is not None:
            self._mark = attrs.evolve(self._mark, epoch=self._mark.epoch + 1)

    def ended_uncleanly(self) -> bool:
        """Return False: the server recovers without help."""
        return False

    async def check_integrity(self) -> str | None:
        """Return None: `outreach-server db check` reads the data."""
        return None


def _ask(connection: PostgresConnection, query: str, place: int) -> bool:
    [(answer,)] = connection.execute(query, {"key": DISPATCH_KEY + place - 1}).fetchall()
    return bool(answer)
