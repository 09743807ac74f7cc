"""What happens to operations when PostgreSQL, or the way to it, gives no answer and cuts no connection."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from selectors import DefaultSelector
from types import SimpleNamespace
from typing import Any, Literal

import anyio
import psycopg
import pytest

from outreach.errors import StorageError, StorageUnreachable
from outreach.protocols.storage import OneQuery
from outreach.storage.postgres import PostgresStorage, listening, lock, pipelined_reader, pool, transactions
from outreach.storage.postgres import connect as connect_module
from outreach.storage.postgres.connect import PostgresConnection, ServerHangs, ServerSilent, connect, conninfo_of
from outreach.storage.postgres.transactions import FencedTransactions
from outreach.storage.unit_of_work import Transaction
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests import postgres
from tests.cutting_proxy import CuttingProxy
from tests.storage.conftest import append, opened, subjects

pytestmark = pytest.mark.anyio

Look = Callable[[FencedTransactions, psycopg.Error], bool]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long."""
    monkeypatch.setattr(PostgresConnection, "silent_seconds", 0.3)
    monkeypatch.setattr(connect_module, "_PROBE_SECONDS", 2.0)
    monkeypatch.setattr(pool, "BUSY_SECONDS", 0.5)
    monkeypatch.setattr(transactions, "BUSY_SECONDS", 0.5)
    monkeypatch.setattr(pipelined_reader, "_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(lock, "_ANSWER_SECONDS", 0.5)


@pytest.fixture
async def storage(url: str, proxy: CuttingProxy, hasty: None) -> AsyncIterator[PostgresStorage]:
    """The database by way of the proxy."""
    async with opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/")) as made:
        yield made


@pytest.mark.soak("waits until no answer is waited for")
async def test_nobody_waits_for_ever_for_a_server_that_stands_still(
    url: str, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each caller gets an error. When the server goes on, all calls do, over new connections."""
    async with asyncio.timeout(60), opened(url) as storage:
        await storage.write(append("before"))
        assert await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE))) == 0
        with postgres.server().standing_still():
            for _ in range(2):
                written, *read = await asyncio.gather(
                    storage.write(append("never")),
                    *(storage.read(subjects) for _ in range(20)),
                    storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE))),
                    return_exceptions=True,
                )
                assert isinstance(written, StorageUnreachable)
                assert "Nothing was written" in written.message
                assert [type(error) for error in read] == [StorageUnreachable] * 21
            assert await storage.lock.acquire() == 0
        await _goes_on(storage)
        assert await storage.read(subjects) == ["before", "after"]
        monkeypatch.setattr(lock, "_ANSWER_SECONDS", 60.0)
        assert await storage.lock.acquire() == 1


async def _goes_on(storage: PostgresStorage) -> None:
    written = ""
    while not written:
        with suppress(StorageError):
            written = await storage.write(append("after"))


@pytest.mark.soak("waits until no answer is waited for")
async def test_an_operation_that_gets_no_answer_is_undone(storage: PostgresStorage, proxy: CuttingProxy) -> None:
    """In the middle of it, too: what had been written by then is not there."""

    def operation(tx: Transaction) -> None:
        append("never")(tx)
        tx.audit.list(None)
        proxy.keeps = "answers"
        tx.workspaces.list()

    async with asyncio.timeout(60):
        with pytest.raises(StorageError, match="Nothing was written"):
            await storage.write(operation)
        proxy.keeps = None
        await _goes_on(storage)
        assert await storage.read(subjects) == ["after"]


@pytest.mark.soak("waits until no answer is waited for")
@pytest.mark.parametrize("kept", ["questions", "answers"])
async def test_what_came_of_a_commit_without_an_answer_is_found_out(
    storage: PostgresStorage,
    proxy: CuttingProxy,
    monkeypatch: pytest.MonkeyPatch,
    kept: Literal["questions", "answers"],
) -> None:
    """Also where the server reads it only after the connection was given up: its caller is answered as ever."""
    look: Look = FencedTransactions._was_committed
    execute = PostgresConnection.execute
    hung: list[type[psycopg.Error]] = []

    def commit(self: PostgresConnection, query: Any, *given: Any, **more: Any) -> Any:
        if query == "COMMIT" and not hung:
            proxy.keeps = kept
        return execute(self, query, *given, **more)

    def goes_on(self: FencedTransactions, lost: psycopg.Error) -> bool:
        hung.append(type(lost))
        proxy.keeps = None
        return look(self, lost)

    monkeypatch.setattr(PostgresConnection, "execute", commit)
    monkeypatch.setattr(FencedTransactions, "_was_committed", goes_on)
    async with asyncio.timeout(60):
        assert await storage.write(append("one")) == "one"
        assert await storage.read(subjects) == ["one"]
    assert hung == [ServerHangs]


@pytest.mark.soak("waits until no answer is waited for")
async def test_a_commit_of_a_server_that_keeps_hanging_is_reported_as_unknown(
    storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not said to be undone."""
    monkeypatch.setattr(transactions, "FIND_OUT_SECONDS", 0.5)
    execute = PostgresConnection.execute

    def commit(self: PostgresConnection, query: Any, *given: Any, **more: Any) -> Any:
        if query == "COMMIT":
            proxy.keeps = "answers"
        return execute(self, query, *given, **more)

    monkeypatch.setattr(PostgresConnection, "execute", commit)
    async with asyncio.timeout(60):
        with pytest.raises(StorageError, match="it may have been written"):
            await storage.write(append("one"))
        monkeypatch.setattr(PostgresConnection, "execute", execute)
        proxy.keeps = None
        await _goes_on(storage)
        assert await storage.read(subjects) == ["one", "after"]


@pytest.mark.soak("waits for a slow statement")
async def test_a_slow_statement_of_a_server_that_lives_is_waited_for(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a large report, or behind a lock: another connection is answered meanwhile."""
    monkeypatch.setattr(connect_module, "_PROBE_SECONDS", 30.0)
    answers, asked = PostgresConnection._server_answers, []

    def noted(self: PostgresConnection) -> bool:
        asked.append(answers(self))
        return asked[-1]

    monkeypatch.setattr(PostgresConnection, "_server_answers", noted)

    def slow(tx: Transaction) -> str:
        connection = tx.workspaces._rows.backend.connection  # type: ignore[attr-defined]
        while len(asked) < 2:
            connection.execute("SELECT pg_sleep(1)")
        return "done"

    assert await storage.write(slow) == "done"
    assert all(asked)
    asked.clear()
    assert await storage.read(slow) == "done"
    assert all(asked)


async def test_a_server_that_takes_no_more_connections_does_not_hang(
    storage: PostgresStorage, proxy: CuttingProxy
) -> None:
    """A slow statement is waited for."""

    def slow(tx: Transaction) -> str:
        proxy.refusing = True
        connection = tx.workspaces._rows.backend.connection  # type: ignore[attr-defined]
        assert connection._server_answers()
        connection.execute("SELECT pg_sleep(1)")
        proxy.refusing = False
        return append("one")(tx)

    assert await storage.write(slow) == "one"
    assert await storage.read(subjects) == ["one"]


async def test_a_process_of_the_server_that_stands_still_holds_a_read_up_for_a_while_only(
    url: str, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others answer: the connection alone is given up, and the operation runs again."""
    monkeypatch.setattr("outreach.storage.postgres.readers.LONGEST_READ_SECONDS", 1.0)
    stopped: list[int] = []

    def read(tx: Transaction) -> int:
        connection = tx.workspaces._rows.backend.connection  # type: ignore[attr-defined]
        tx.workspaces.list()
        if not stopped:
            stopped.append(connection.info.backend_pid)
            os.kill(stopped[0], signal.SIGSTOP)
        tx.workspaces.list()
        return int(connection.info.backend_pid)

    async with asyncio.timeout(60), opened(url) as storage:
        try:
            assert await storage.read(read) != stopped[0]
        finally:
            os.kill(stopped[0], signal.SIGCONT)


async def test_a_listener_survives_a_process_that_can_open_no_file(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens again once there is room for one."""
    failed = 0

    def full() -> Any:
        nonlocal failed
        if failed < 3:
            failed += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return DefaultSelector()

    monkeypatch.setattr(listening, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(listening, "DefaultSelector", full)
    storage = opened(url)
    storage.listen(lambda _: None)
    async with asyncio.timeout(30), storage:
        while failed < 3 or not storage.is_listening:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_an_idle_connection_is_checked_for_a_moment_only(url: str) -> None:
    """However long its last user was ready to wait: a writer that looks for a live one keeps all writes waiting."""
    async with opened(url) as storage:
        assert storage._open is not None
        used = storage._open.pool
        with used.connection() as connection:
            connection.longest_seconds = 300.0
            used.check_connection(connection)
            assert connection.longest_seconds == connect_module.BUSY_SECONDS


@pytest.mark.soak("waits until no answer is waited for")
async def test_a_listener_whose_connection_is_silent_for_ever_finds_another_one(
    url: str, proxy: CuttingProxy, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wake-ups do not stop, and everything is looked at, because some were missed."""
    monkeypatch.setattr(listening, "_LOOK_SECONDS", 0.1)
    heard: list[str] = []
    storage = opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/"))
    storage.listen(heard.append)

    async def until(hears: bool) -> None:
        while storage.is_listening is not hears:  # noqa: ASYNC110
            await anyio.sleep(0.01)

    async with asyncio.timeout(60), storage:
        await until(True)
        proxy.keeps = "answers"
        await until(False)
        heard.clear()
        proxy.keeps = None
        await until(True)
        while "*" not in heard:  # noqa: ASYNC110
            await anyio.sleep(0.01)


@pytest.mark.soak("waits until no answer is waited for")
def test_a_migration_waits_as_long_as_the_server_lives(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits no longer than that: a server that hangs is an error."""
    monkeypatch.setattr(connect_module, "_PATIENT_SECONDS", 0.2)
    monkeypatch.setattr(connect_module, "_PROBE_SECONDS", 30.0)
    monkeypatch.setattr(PostgresConnection, "longest_seconds", 0.2)
    with connect(conninfo_of(url), patient=True) as connection:
        connection.execute("SELECT pg_sleep(1)")
        monkeypatch.setattr(connect_module, "_PROBE_SECONDS", 2.0)
        with postgres.server().standing_still(), pytest.raises(ServerHangs, match="the server hangs"):
            connection.execute("SELECT 1")
        assert connection.closed
    with connect(conninfo_of(url)) as connection, pytest.raises(ServerSilent, match="no answer"):
        connection.execute("SELECT pg_sleep(30)")


def test_each_word_is_progress(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long answer that comes slowly is no silence, nor are many rows that go slowly."""
    now = 0.0
    monkeypatch.setattr(connect_module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(PostgresConnection, "silent_seconds", float("inf"))
    monkeypatch.setattr(PostgresConnection, "longest_seconds", 60.0)

    def parts() -> Generator[int, int, None]:
        while True:
            yield 1

    with connect(conninfo_of(url)) as connection:
        waits = connection._watched(parts())
        next(waits)
        for _ in range(3):
            waits.send(0)
            now += 59.0
            waits.send(0)
            waits.send(1)
        waits.send(0)
        now += 60.0
        waits.send(0)
        # Only if nothing has come until now.
        with pytest.raises(ServerSilent, match="no answer for 60 s"):
            waits.send(0)
        assert connection.closed
