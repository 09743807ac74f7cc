"""What happens to operations when PostgreSQL, or the way to it, fails."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final

import psycopg
import pytest
from psycopg_pool.base import AttemptWithBackoff

from outreach import Outreach
from outreach.errors import StorageBusy, StorageError, StorageFull, StorageUnreachable
from outreach.models.work import DatabaseHome, WorkUnit
from outreach.protocols.storage import OneQuery, Within
from outreach.storage.base.writer import BULK_AFTER_GROUPS
from outreach.storage.postgres import PostgresStorage, pool, transactions
from outreach.storage.postgres import connect as connect_module
from outreach.storage.postgres import errors as postgres_errors
from outreach.storage.postgres import storage as storage_module
from outreach.storage.postgres.connect import PostgresConnection, connect, conninfo_of
from outreach.storage.postgres.pool import configure
from outreach.storage.postgres.transactions import FencedTransactions, fence_key
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_message, make_workspace
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE
from outreach.testing.waiting import until
from tests import postgres
from tests.cutting_proxy import CuttingProxy
from tests.storage.conftest import Gate, Told, append, opened, subjects

pytestmark = pytest.mark.anyio

Look = Callable[[FencedTransactions, psycopg.Error], bool]

_END_TRANSACTIONS: Final = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = '{name}' AND state = 'idle in transaction'
"""


# A process of its own: the driver's ping stops the threads of this one.
_REFUSING: Final = """
import socket, struct, sys

listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    with listening.accept()[0] as client:
        while struct.unpack("!ii", client.recv(10_000)[:8])[1] in (80877103, 80877104):
            client.sendall(b"N")  # no encryption
        fields = f"SFATAL\\0VFATAL\\0C{sys.argv[1]}\\0Mdas Datenbanksystem startet\\0\\0".encode()
        client.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)
"""


@pytest.fixture
async def storage(url: str, proxy: CuttingProxy) -> AsyncIterator[PostgresStorage]:
    """The database by way of the proxy."""
    async with opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/")) as made:
        yield made


@pytest.fixture
def crashing() -> Iterator[postgres.Server]:
    """A server of its own with a database `app`."""
    with postgres.Server() as server:
        server.execute("CREATE DATABASE app TEMPLATE template0")
        yield server


async def test_a_commit_whose_answer_was_lost_is_found(
    storage: PostgresStorage, proxy: CuttingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not done again, and its caller is answered as ever."""
    caplog.set_level(logging.INFO, logger="outreach")
    proxy.cut = "after"
    assert await storage.write(append("one")) == "one"
    assert proxy.cut is None
    assert "whose answer was lost has been found" in caplog.text
    await storage.write(append("two"))
    assert await storage.read(subjects) == ["one", "two"]


async def test_a_commit_whose_answer_was_lost_is_found_while_every_reader_is_busy(
    storage: PostgresStorage, proxy: CuttingProxy
) -> None:
    """Over a new connection in the place of the lost one."""
    with ExitStack() as stack:
        gates = [stack.enter_context(Gate(subjects)) for _ in range(storage_module._READERS)]
        reads = [asyncio.ensure_future(storage.read(gate)) for gate in gates]
        for gate in gates:
            await gate.wait_entered()
        proxy.cut = "after"
        assert await storage.write(append("one")) == "one"
        assert proxy.cut is None
    assert await asyncio.gather(*reads) == [[]] * storage_module._READERS


def test_a_process_that_lost_its_connections_does_not_come_back_to_a_newer_database(url: str) -> None:
    """Without a connection it held no lock, so that nothing kept `db migrate` of a newer version away."""
    conninfo, name = conninfo_of(url), url.rpartition("/")[2]
    with connect(conninfo) as connection:
        configure(connection)
    postgres.server().execute("INSERT INTO outreach.migrations VALUES ('9999_newer', now()) RETURNING name", name)
    try:
        with connect(conninfo) as connection, pytest.raises(psycopg.OperationalError, match="9999_newer"):
            configure(connection)
    finally:
        postgres.server().execute("DELETE FROM outreach.migrations WHERE name = '9999_newer' RETURNING name", name)


async def test_an_operation_that_the_server_never_committed_runs_again(
    storage: PostgresStorage, proxy: CuttingProxy
) -> None:
    """And nothing of the first time is left."""
    runs = 0

    def operation(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        append(f"run {runs}")(tx)

    proxy.cut = "before"
    await storage.write(operation)
    assert proxy.cut is None
    assert await storage.read(subjects) == ["run 2"]


@pytest.mark.parametrize("within", [True, False])
async def test_what_was_kept_for_a_commit_that_was_never_made_is_not_written_by_the_next(
    url: str, *, within: bool
) -> None:
    """The connection is lost between the last statement and the COMMIT, and then the operation writes nothing."""
    kill = _END_TRANSACTIONS.format(name=url.rpartition("/")[2])
    runs = []

    def operation(tx: Transaction) -> None:
        runs.append(tx)
        if len(runs) == 2:
            raise ValueError
        tx.work.schedule(WorkUnit("message", THIS_WORKSPACE, "M"), NOW)
        assert postgres.server().execute(kill) == [(True,)]

    async with opened(url) as storage:
        with pytest.raises(ValueError):  # noqa: PT011 - the operation's own
            await storage.write(Within([THIS_WORKSPACE], operation) if within else operation)
        assert len(runs) == 2
        await storage.write(lambda _: None)
        assert await storage.read(lambda tx: tx.work.since(0)) == []


async def test_a_server_that_cannot_be_written_for_a_while_is_asked_again_about_a_lost_commit(
    storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its disk was full: what it says then is no proof that nothing was committed."""
    look, asked = FencedTransactions._look, 0

    def look_while_read_only(self: FencedTransactions, connection: PostgresConnection) -> bool:
        nonlocal asked
        asked += 1
        connection.execute(f"SET default_transaction_read_only = {'on' if asked == 1 else 'off'}")
        try:
            return look(self, connection)
        finally:
            connection.execute("SET default_transaction_read_only = off")

    monkeypatch.setattr(FencedTransactions, "_look", look_while_read_only)
    proxy.cut = "after"
    assert await storage.write(append("one")) == "one"
    assert (asked, await storage.read(subjects)) == (2, ["one"])


async def test_a_server_that_crashes_at_a_commit_is_asked_about_it_whatever_it_has_said(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing disk ends it with an error of its own, after which the commit may be found in its log."""
    execute, crashed = PostgresConnection.execute, False

    def crash(self: PostgresConnection, query: Any, *given: Any, **more: Any) -> Any:
        nonlocal crashed
        cursor = execute(self, query, *given, **more)
        if query == "COMMIT" and not crashed:
            crashed = True
            self.close()
            raise psycopg.errors.IoError("PANIC: could not fsync file")
        return cursor

    monkeypatch.setattr(PostgresConnection, "execute", crash)
    assert await storage.write(append("one")) == "one"
    assert await storage.read(subjects) == ["one"]


@pytest.mark.parametrize(("cut", "kept"), [("after", ["lost", "other"]), ("before", ["other", "lost"])])
async def test_a_lost_commit_is_distinguished_from_those_of_others(
    url: str, storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch, cut: str, kept: list[str]
) -> None:
    """Others may have written since, over which the state of the fence says nothing any more."""
    look: Look = FencedTransactions._was_committed
    with psycopg.connect(url, autocommit=True) as other:

        def later(self: FencedTransactions, lost: psycopg.Error) -> bool:
            other.execute(
                "UPDATE outreach.fence SET version = version + 1, writer = 'other';"
                "INSERT INTO outreach.audit (at, actor, action, subject) VALUES ('2026', 'a', 'b', 'other')"
            )
            return look(self, lost)

        monkeypatch.setattr(FencedTransactions, "_was_committed", later)
        proxy.cut = "after" if cut == "after" else "before"
        await storage.write(append("lost"))
    rows = postgres.server().execute("SELECT subject FROM outreach.audit ORDER BY number", url.rpartition("/")[2])
    assert [subject for (subject,) in rows] == kept


async def test_a_transaction_that_a_crash_has_undone_is_not_taken_for_one_of_another_process(
    crashing: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL gives its number to the next transaction, which is committed."""
    look: Look = FencedTransactions._was_committed
    url = crashing.url("app")

    def after_a_crash(self: FencedTransactions, lost: psycopg.Error) -> bool:
        crashing.stop(signal.SIGQUIT)
        crashing.start()
        with psycopg.connect(url, autocommit=True) as other:
            for _ in range(2):
                other.execute("UPDATE outreach.fence SET version = version + 1, writer = 'other'")
        return look(self, lost)

    with CuttingProxy(crashing.port) as proxy:
        async with opened(crashing.url("app", port=proxy.port)) as storage:
            await storage.write(append("first"))
            monkeypatch.setattr(FencedTransactions, "_was_committed", after_a_crash)
            proxy.cut = "before"
            assert await storage.write(append("second")) == "second"
            assert proxy.cut is None
            assert await storage.read(subjects) == ["first", "second"]


async def test_a_process_that_has_not_written_for_a_day_is_forgotten(url: str) -> None:
    """By the next process that begins to write, so that there are few rows; it writes on as ever."""
    name = url.rpartition("/")[2]

    def writers() -> list[tuple[int]]:
        return postgres.server().execute("SELECT transactions FROM outreach.writers ORDER BY 1", name)

    async with opened(url) as idle:
        for number in range(3):
            await idle.write(append(str(number)))
        postgres.server().execute(
            "UPDATE outreach.writers SET last_at = last_at - interval '25 hours' RETURNING 1", name
        )
        async with opened(url) as other:
            await other.write(append("other"))
            assert writers() == [(1,)]
            await idle.write(append("again"))
            assert writers() == [(1,), (4,)]


@pytest.mark.soak("waits until nobody is asked any more")
async def test_a_commit_that_nobody_can_be_asked_about_is_reported_as_unknown(
    storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message does not claim that nothing was written; later operations work."""
    monkeypatch.setattr(transactions, "FIND_OUT_SECONDS", 0.0)
    # The other connections are idle, and would be asked: they are cut first.
    proxy.cut, proxy.refusing = "after", True
    with pytest.raises(StorageError, match="it may have been written") as caught:
        await storage.write(append("one"))
    assert not caught.value.message.startswith("Nothing")
    proxy.refusing = False
    await storage.write(append("two"))
    assert await storage.read(subjects) == ["one", "two"]


async def test_a_cut_within_an_operation_runs_its_group_again(storage: PostgresStorage, proxy: CuttingProxy) -> None:
    """Each of them once, also those that had run before the cut."""
    cuts = 0

    def operation(tx: Transaction) -> None:
        nonlocal cuts
        append("cut")(tx)
        tx.workspaces.list()
        if not cuts:
            cuts += 1
            proxy.cut_all()
        tx.workspaces.list()

    results = await asyncio.gather(
        storage.write(append("before")), storage.write(operation), storage.write(append("after"))
    )
    assert list(results) == ["before", None, "after"]
    assert sorted(await storage.read(subjects)) == ["after", "before", "cut"]


@pytest.mark.soak("waits until the pool gives up connecting")
async def test_a_database_that_stays_away_within_an_operation_fails_all_of_its_group(
    storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the operations that were to run again: nobody waits for ever, and the next ones are done."""
    monkeypatch.setattr(transactions, "BUSY_SECONDS", 0.0)

    def operation(tx: Transaction) -> None:
        append("cut")(tx)
        proxy.refusing = True
        proxy.cut_all()
        tx.workspaces.list()

    def before(tx: Transaction) -> None:
        append("before")(tx)
        # The others are queued by then.
        tx.workspaces.list()

    async with asyncio.timeout(60):
        results = await asyncio.gather(
            storage.write(before),
            storage.write(operation),
            storage.write(append("after")),
            return_exceptions=True,
        )
    assert [type(result) for result in results] == [StorageUnreachable] * 3
    proxy.refusing = False
    await storage.write(append("next"))
    assert await storage.read(subjects) == ["next"]


async def test_an_error_of_a_statement_in_a_group_that_runs_again_loses_no_operation(
    storage: PostgresStorage, proxy: CuttingProxy
) -> None:
    """The server undoes the second transaction, too, before those that follow have had their turn."""

    def broken(tx: Transaction) -> None:
        append("broken")(tx)
        if proxy.cut is None:
            raise_in_database(tx, "22012")

    proxy.cut = "before"
    async with asyncio.timeout(60):
        results = await asyncio.gather(
            storage.write(append("one")), storage.write(broken), storage.write(append("two")), return_exceptions=True
        )
    assert [results[0], results[2]] == ["one", "two"]
    assert isinstance(results[1], StorageError)
    assert sorted(await storage.read(subjects)) == ["one", "two"]


@pytest.mark.parametrize("code", ["40001", "40P01", "25P04"])
async def test_a_serialization_failure_a_deadlock_or_a_timeout_runs_the_group_again(
    storage: PostgresStorage, code: str
) -> None:
    """No caller gets an error."""
    failures = 0

    def operation(tx: Transaction) -> None:
        nonlocal failures
        append("one")(tx)
        failures += 1
        if failures == 1:
            raise_in_database(tx, code)

    await asyncio.gather(storage.write(append("zero")), storage.write(operation))
    assert failures == 2
    assert sorted(await storage.read(subjects)) == ["one", "zero"]


async def test_an_error_of_a_statement_fails_its_operation_and_no_other(storage: PostgresStorage) -> None:
    """PostgreSQL undoes the whole transaction; the others of the group run again."""

    def broken(tx: Transaction) -> None:
        append("broken")(tx)
        raise_in_database(tx, "22012")

    results = await asyncio.gather(
        storage.write(append("one")),
        storage.write(broken),
        storage.write(append("two")),
        return_exceptions=True,
    )
    assert [results[0], results[2]] == ["one", "two"]
    assert isinstance(results[1], StorageError)
    assert sorted(await storage.read(subjects)) == ["one", "two"]


async def test_what_follows_a_refused_row_can_be_written_over_the_same_connection(url: str) -> None:
    """The driver takes a statement for prepared that the server has skipped after the error of the one before it."""

    def refused(tx: Transaction) -> None:
        tx.messages.insert(make_message(workspace_id="none"))
        tx.stops.increment(THIS_WORKSPACE)

    async with opened(url) as storage:
        for _ in range(8):
            # Over each of two connections.
            for _ in range(2):
                await storage.write(lambda tx: tx.stops.increment(THIS_WORKSPACE))
            with pytest.raises(LookupError):
                await storage.write(refused)
        assert await storage.read(lambda tx: tx.stops.count(THIS_WORKSPACE)) == 16


async def test_a_swallowed_error_is_not_taken_for_a_commit(storage: PostgresStorage) -> None:
    """The server undoes such a transaction at its commit, without an error of its own."""

    def swallow(tx: Transaction) -> None:
        append("one")(tx)
        with pytest.raises(psycopg.Error):
            raise_in_database(tx, "22012")

    with pytest.raises(StorageError):
        await storage.write(swallow)
    assert await storage.read(subjects) == []


async def test_cached_rows_are_forgotten_when_another_process_has_written(url: str, storage: PostgresStorage) -> None:
    """And kept while nobody has."""
    await storage.write(lambda tx: tx.workspaces.insert(make_workspace(name="First")))
    workspace = make_workspace()

    def name(tx: Transaction) -> str:
        found = tx.workspaces.get(workspace.id)
        assert found is not None
        return found.name

    assert await storage.write(name) == "First"
    async with opened(url) as other:
        await other.write(lambda tx: tx.workspaces.update(make_workspace(name="Second")))
    assert await storage.write(name) == "Second"
    postgres.server().execute("UPDATE outreach.workspaces SET name = 'Unseen'", url.rpartition("/")[2])
    assert await storage.write(name) == "Second"


async def test_cached_rows_are_forgotten_over_a_new_connection(
    url: str, storage: PostgresStorage, proxy: CuttingProxy
) -> None:
    """A server that has taken over may have lost transactions, and given their numbers to those of others."""
    await storage.write(lambda tx: tx.workspaces.insert(make_workspace(name="Lost")))
    workspace = make_workspace()

    def name(tx: Transaction) -> str | None:
        found = tx.workspaces.get(workspace.id)
        return None if found is None else found.name

    postgres.server().execute("UPDATE outreach.workspaces SET name = 'Kept'", url.rpartition("/")[2])
    assert await storage.write(name) == "Lost"
    proxy.cut_all()
    # A reader finds the connections lost, so that the writer meets no error.
    assert await storage.read(name) == "Kept"
    assert await storage.write(name) == "Kept"


async def test_a_database_that_has_lost_transactions_is_logged(
    url: str, storage: PostgresStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has it once: nothing else shows that a server without them has taken over."""
    for n in range(3):
        await storage.write(append(str(n)))
    assert "has lost" not in caplog.text
    postgres.server().execute("UPDATE outreach.writers SET transactions = transactions - 2", url.rpartition("/")[2])
    for n in range(3):
        await storage.write(append(str(n)))
    [told] = [record for record in caplog.records if record.__dict__.get("action") == "commits_lost"]
    assert "has lost the last 2 or more transactions" in told.getMessage()


@pytest.mark.parametrize("idle_hours", [1, 25])
async def test_a_row_that_others_have_deleted_after_a_day_is_no_loss(
    url: str, storage: PostgresStorage, caplog: pytest.LogCaptureFixture, idle_hours: int
) -> None:
    """Its process was suspended, so that its own clock stood still; within the day a missing row is one."""
    await storage.write(append("before"))
    assert storage._open is not None
    storage._open.control._last_counted_at -= idle_hours * 3600
    postgres.server().execute("DELETE FROM outreach.writers RETURNING 1", url.rpartition("/")[2])
    await storage.write(append("after"))
    assert ("has lost" in caplog.text) is (idle_hours == 1)


async def test_a_process_does_not_go_on_with_a_copy_of_its_database(
    url: str, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/delivery-contract.md#rule-10: a copy in another cluster starts paused, and so it has to be opened anew."""
    monkeypatch.setattr(pool, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr(transactions, "BUSY_SECONDS", 0.0)
    async with asyncio.timeout(60), opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/")) as storage:
        await storage.write(append("before"))
        monkeypatch.setattr(pool, "home_of", lambda _: DatabaseHome(host="postgresql-2", path="copy"))
        proxy.cut_all()
        with pytest.raises(StorageError):
            await storage.write(append("copy"))
        with pytest.raises(StorageError):
            await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE)))
        monkeypatch.setattr(pool, "home_of", connect_module.home_of)
        written = ""
        while not written:
            with suppress(StorageError):
                written = await storage.write(append("back"))
        assert await storage.read(subjects) == ["before", "back"]


@pytest.mark.soak("waits until no answer is waited for")
@pytest.mark.parametrize(("at", "words"), [("begin", "Nothing was written"), ("commit", "it may have been written")])
async def test_closing_ends_every_wait_for_a_server_that_hangs(
    url: str, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch, at: str, words: str
) -> None:
    """No call waits for ever, however long the server gives no answer."""
    monkeypatch.setattr(storage_module, "_CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(storage_module, "_READ_CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(transactions, "BUSY_SECONDS", 0.1)
    loop, hangs = asyncio.get_running_loop(), asyncio.Event()

    def operation(tx: Transaction) -> None:
        append("one")(tx)
        tx.audit.list(None)
        proxy.keeps = "answers"
        loop.call_soon_threadsafe(hangs.set)

    async with asyncio.timeout(60):
        async with opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/")) as storage:
            await storage.read(subjects)
            if at == "begin":
                proxy.keeps = "answers"
                hangs.set()
            waiting: list[asyncio.Task[object]] = [asyncio.create_task(storage.write(operation))]
            await hangs.wait()
            waiting.append(asyncio.create_task(storage.read(subjects)))
            await asyncio.sleep(0)
        with pytest.raises(StorageError, match=words):
            await waiting[0]
        with pytest.raises(StorageError):
            await waiting[1]


async def test_a_restart_of_the_server_is_survived(storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a crash: who writes meanwhile waits, and who reads is answered."""
    monkeypatch.setattr(transactions, "BUSY_SECONDS", 60.0)
    await storage.write(append("before"))
    for how in (signal.SIGINT, signal.SIGQUIT):
        await asyncio.to_thread(postgres.server().stop, how)
        waiting = asyncio.create_task(storage.write(append(how.name)))
        await asyncio.to_thread(postgres.server().start)
        assert await waiting == how.name
        assert (await storage.read(subjects))[-1] == how.name


@pytest.mark.soak("waits until the server is looked for again")
async def test_a_server_that_was_away_for_long_is_found_soon(
    url: str, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool's pauses double while nobody answers: as long as it was away it would not be found again."""
    monkeypatch.setattr(AttemptWithBackoff, "INITIAL_DELAY", 3600.0)
    monkeypatch.setattr(pool, "BUSY_SECONDS", 0.5)
    async with asyncio.timeout(60), opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/")) as storage:
        proxy.refusing = True
        proxy.cut_all()
        with pytest.raises(StorageError):
            await storage.write(append("away"))
        proxy.refusing = False
        written = ""
        while not written:
            with suppress(StorageError):
                written = await storage.write(append("back"))
        assert await storage.read(subjects) == ["back"]


async def test_a_write_that_waits_too_long_for_the_fence_fails(url: str) -> None:
    """The wait for another process has an end. The URL's own options count more than the defaults."""
    async with opened(f"{url}?options=-c%20lock_timeout%3D50") as storage:
        with psycopg.connect(url) as other:
            other.execute("UPDATE outreach.fence SET version = version + 1")
            with pytest.raises(StorageBusy, match=r"Nothing was written\. The database is locked"):
                await storage.write(append("one"))
            other.rollback()
        await storage.write(append("two"))
        assert await storage.read(subjects) == ["two"]


async def test_bulk_work_that_waits_for_a_workspace_lets_operations_in_others_go_first(url: str) -> None:
    """It is tried again and again, for longer than others wait."""
    async with opened(f"{url}?options=-c%20lock_timeout%3D100") as storage:
        with psycopg.connect(url) as raw:
            raw.execute("SELECT pg_advisory_xact_lock(%s)", (fence_key(THIS_WORKSPACE),))
            load = asyncio.ensure_future(storage.write(Within([THIS_WORKSPACE], append("load")), bulk=True))
            for number in range(3 * BULK_AFTER_GROUPS):
                await storage.write(Within([OTHER_WORKSPACE], append(f"{number}")))
            assert not load.done()
        assert await load == "load"


async def test_reads_for_which_there_is_no_connection_fail_together(
    storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other each would wait as long in vain."""
    asked, getconn = 0, pool.Pool.getconn

    def counted(self: pool.Pool, timeout: float | None = None) -> PostgresConnection:
        nonlocal asked
        asked += 1
        return getconn(self, timeout=0.2)

    proxy.refusing = True
    proxy.cut_all()
    monkeypatch.setattr(pool.Pool, "getconn", counted)
    async with asyncio.timeout(60):
        results = await asyncio.gather(*(storage.read(subjects) for _ in range(100)), return_exceptions=True)
    assert {type(result) for result in results} == {StorageUnreachable}
    assert asked < 100
    proxy.refusing = False
    monkeypatch.undo()
    await storage.write(append("next"))
    assert await storage.read(subjects) == ["next"]


async def test_transactions_are_instrumented(url: str) -> None:
    """With the server's name of an error."""
    told = Told()
    storage = opened(f"{url}?options=-c%20lock_timeout%3D100")
    storage.observe(told)
    async with storage:
        await storage.write(append("one"))
        with psycopg.connect(url) as other:
            other.execute("UPDATE outreach.fence SET version = version + 1")
            with pytest.raises(StorageBusy):
                await storage.write(append("two"))
            other.rollback()
    assert (told.committed, told.failed) == ([1], [(1, "LockNotAvailable")])


async def test_a_group_is_a_handful_of_statements(url: str) -> None:
    """Whatever the number of rows: one that inserts, and the one that is asked for."""
    async with opened(url) as storage:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        asked: list[str] = []

        def operation(tx: Transaction) -> None:
            connection = tx.workspaces._rows.backend.connection  # type: ignore[attr-defined]
            execute = connection.execute

            def counted(*given: object, **more: object) -> object:
                asked.append(str(given[0]))
                return execute(*given, **more)

            connection.execute = counted
            for _ in range(200):
                append("x")(tx)
            tx.audit.list(None, limit=1)
            connection.execute = execute

        await storage.write(operation)
        assert len(asked) == 2, asked


async def test_one_query_is_one_round_trip(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees what was committed, and needs no transaction around it."""
    async with opened(url) as storage:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        asked: list[str] = []
        execute = PostgresConnection.execute

        def counted(self: PostgresConnection, query: Any, *given: Any, **more: Any) -> Any:
            asked.append(str(query).split()[0])
            return execute(self, query, *given, **more)

        monkeypatch.setattr(PostgresConnection, "execute", counted)
        assert await storage.read(lambda tx: tx.stops.count(THIS_WORKSPACE)) == 0
        assert await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE))) == 0
        await storage.write(lambda tx: tx.stops.increment(THIS_WORKSPACE))
        assert await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE))) == 1
        # The second reader may not have ended its transaction yet.
        assert asked.count("BEGIN") == 1
        assert asked.count("BEGIN;") == 1
        with pytest.raises(StorageError, match="may only read"):
            await storage.read(OneQuery(lambda tx: tx.stops.increment(THIS_WORKSPACE)))


async def test_a_query_whose_connection_is_lost_is_asked_again(storage: PostgresStorage, proxy: CuttingProxy) -> None:
    """The caller gets no error."""
    assert await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE))) == 0
    proxy.cut_all()
    assert await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE))) == 0


def raise_in_database(tx: Transaction, code: str) -> None:
    """Have the database raise an error."""
    connection = tx.workspaces._rows.backend.connection  # type: ignore[attr-defined]
    connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{code}'; END $$")


def test_a_full_disk_is_an_error_of_its_own() -> None:
    """Somebody has to make room: callers are told so, as with SQLite."""
    full = postgres_errors.translate(psycopg.errors.DiskFull("could not extend file"))
    assert type(full) is StorageFull
    assert "Make room" in full.message


def test_a_database_that_is_read_only_names_each_cause() -> None:
    """Its server need not be a standby."""
    refused = postgres_errors.translate(psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"))
    assert "a standby or hands over to one, or default_transaction_read_only is on" in refused.message


async def test_a_server_that_is_down_is_reported_as_unreachable(
    url: str, proxy: CuttingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """By readiness and the log, with the driver's words: not as a lock or a slow disk; and no more when it is back."""
    storage = opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/"))
    async with Outreach(storage) as engine:
        assert (await engine.readiness()).ready
        proxy.refusing = True
        proxy.cut_all()

        async def unreachable() -> bool:
            return any("unreachable" in reason for reason in (await engine.readiness()).reasons)

        async def ready() -> bool:
            return (await engine.readiness()).ready

        await until(unreachable)
        found = await engine.readiness()
        [reason] = found.reasons
        assert "connection" in reason
        assert "takes over" not in reason
        assert found.write_error == "storage_unreachable"
        assert "database unreachable: " in caplog.text
        assert "slow" not in caplog.text
        proxy.refusing = False
        await until(ready)


async def test_a_server_that_is_starting_is_away_whatever_its_language() -> None:
    """A worker waits for it. A refusal for another reason is no such thing."""
    for code, kind in (("57P03", StorageUnreachable), ("28000", StorageError)):
        with subprocess.Popen([sys.executable, "-c", _REFUSING, code], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                with pytest.raises(StorageError, match="das Datenbanksystem") as caught:
                    async with opened(f"postgresql://u@127.0.0.1:{server.stdout.readline().strip()}/db"):
                        pass
                assert type(caught.value) is kind
            finally:
                server.kill()


async def test_a_way_that_swallows_everything_is_reported_as_unreachable(
    url: str, proxy: CuttingProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """No connection is cut, and the server has said nothing yet: a new connection gets no answer, either."""
    storage = opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/"))
    async with Outreach(storage) as engine:
        proxy.keeps = "questions"
        found = await engine.readiness()
        assert found.write_error == "storage_unreachable"
        [reason] = [one for one in found.reasons if "database" in one]
        assert f"at 127.0.0.1:{proxy.port} to a new connection" in reason
        assert "database unreachable: no answer from " in caplog.text
        assert "slow" not in caplog.text
        proxy.keeps = None

        async def ready() -> bool:
            return (await engine.readiness()).ready

        await until(ready)


async def test_a_database_that_is_read_only_is_reported_as_that(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """While the writer still repeats its write: not as a lock or a slow disk."""
    async with Outreach(opened(f"{url}?options=-c%20default_transaction_read_only%3Don")) as engine:
        found = await engine.readiness()
        [reason] = [one for one in found.reasons if "database" in one]
        assert reason.startswith("The database takes no writes: ")
        assert found.write_error == "storage_unreachable"
        assert reason in caplog.text
        assert "slow" not in caplog.text


async def test_a_lock_is_reported_as_a_lock(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The server answers others."""
    async with Outreach(opened(url)) as engine:
        with psycopg.connect(url) as other:
            other.execute("SELECT version FROM outreach.fence FOR UPDATE")
            found = await engine.readiness()
        assert found.write_error == "locked"
        assert "another process keeps it locked" in caplog.text
        assert "unreachable" not in caplog.text


async def test_a_pool_that_cannot_be_opened_says_why_and_logs_no_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller gets the driver's words. The pool's own lines are at the level debug."""
    monkeypatch.setattr(pool, "_OPEN_SECONDS", 0.5)
    for level, count in ((logging.WARNING, 0), (logging.DEBUG, 1)):
        caplog.clear()
        with caplog.at_level(level, logger="psycopg.pool"), pytest.raises(psycopg.OperationalError, match="refused"):
            await asyncio.to_thread(pool.open_pool, conninfo_of("postgresql://u@127.0.0.1:1/x"), size=2)
        told = [record for record in caplog.records if "error connecting" in record.message]
        assert {record.levelno for record in told} <= {logging.DEBUG}
        assert (len(told) > 0) is (count > 0)
