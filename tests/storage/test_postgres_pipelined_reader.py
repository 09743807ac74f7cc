"""Questions of one query that the event loop asks PostgreSQL itself, without a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

import psycopg
import pytest
from psycopg.adapt import Transformer

from outreach.errors import InvalidRequest, StorageError
from outreach.protocols.storage import OneQuery
from outreach.storage.postgres import PostgresStorage, pipelined_reader
from outreach.storage.postgres.connect import PostgresConnection
from outreach.storage.postgres.pipelined_reader import PipelinedReader
from outreach.storage.postgres.readers import Readers
from outreach.storage.postgres.single_query import CapturedQuery
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_campaign, make_workspace
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, publish
from outreach.testing.virtual_time import real_time
from tests import postgres
from tests.cutting_proxy import CuttingProxy
from tests.storage.conftest import opened

pytestmark = pytest.mark.anyio

DEADLINE = 60.0


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelined_reader, "_PAUSE_SECONDS", 0.0)


@pytest.fixture
async def storage(url: str, proxy: CuttingProxy) -> AsyncIterator[PostgresStorage]:
    """The database by way of the proxy, with two workspaces and with a pipelined reader."""
    async with opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/")) as made:
        await made.write(lambda tx: tx.workspaces.insert(make_workspace()))
        await made.write(lambda tx: tx.workspaces.insert(make_workspace(id=OTHER_WORKSPACE)))
        await wait_for_connection(made)
        yield made


@pytest.fixture
def by_readers(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The operations that readers have run."""
    ran: list[object] = []
    run = Readers.run

    async def noted(self: Readers, operation: Callable[[Transaction], object]) -> object:
        ran.append(operation)
        return await run(self, operation)

    monkeypatch.setattr(Readers, "run", noted)
    return ran


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that were sent."""
    names: list[str] = []
    send = PipelinedReader._send_one

    def noted(self: PipelinedReader, connection: PostgresConnection, query: CapturedQuery) -> bool:
        names.append(query.statement)
        return send(self, connection, query)

    monkeypatch.setattr(PipelinedReader, "_send_one", noted)
    return names


async def wait_for_connection(storage: PostgresStorage) -> None:
    """Query until the pipelined reader is connected."""
    await storage.read(STOPS)
    await until(lambda: reader_of(storage).connected)


def reader_of(storage: PostgresStorage) -> PipelinedReader:
    """Return what asks for an open storage."""
    assert storage._open is not None
    return storage._open.pipelined


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    with real_time():
        async with asyncio.timeout(DEADLINE):
            while not condition():  # noqa: ASYNC110 - threads and the server bring it about
                await asyncio.sleep(0.001)


def revision(workspace_id: str = THIS_WORKSPACE) -> OneQuery[int | None]:
    """Return the query for the revision of a workspace's lists."""
    return OneQuery(lambda tx: tx.campaign_lists.revision(workspace_id))


STOPS: OneQuery[int] = OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE))


async def test_an_answer_has_what_another_process_has_just_committed(
    url: str, storage: PostgresStorage, by_readers: list[object]
) -> None:
    """No reader is needed for it, and nothing is prepared twice."""
    async with opened(url) as other:
        for number in range(5):
            assert await storage.read(STOPS) == number
            await other.write(lambda tx: tx.stops.increment(THIS_WORKSPACE))
        before = await storage.read(revision())
        await other.write(lambda tx: publish(tx, make_campaign()))
        after = await storage.read(revision())
    assert before is not None
    assert after is not None
    assert after > before
    assert by_readers == []


async def test_equal_reads_at_the_same_time_share_one_answer(
    storage: PostgresStorage, by_readers: list[object], sent: list[str]
) -> None:
    """They share it while another answer is on its way. A later read asks anew."""
    await storage.write(lambda tx: publish(tx, make_campaign()))
    _, this, other, nothing, again = await asyncio.gather(
        storage.read(STOPS),
        storage.read(revision()),
        storage.read(revision(OTHER_WORKSPACE)),
        storage.read(revision("w9")),
        storage.read(revision()),
    )
    assert this == again != other
    assert nothing is None
    assert len(sent) == 4
    assert await storage.read(revision()) == this
    assert len(sent) == 5
    assert by_readers == []


async def test_a_cancelled_read_leaves_the_others_their_answers(url: str, storage: PostgresStorage) -> None:
    """The answers keep their order."""
    with psycopg.connect(url) as blocking:
        blocking.execute("LOCK TABLE outreach.campaign_lists")
        going, staying = [asyncio.create_task(storage.read(revision())) for _ in range(2)]
        stops = asyncio.create_task(storage.read(STOPS))
        await asyncio.sleep(0)
        going.cancel()
        await asyncio.wait([going])
        blocking.rollback()
    assert await staying == await storage.read(revision())
    assert await stops == 0
    assert going.cancelled()


async def test_a_lost_connection_is_nobody_s_business(
    url: str, storage: PostgresStorage, proxy: CuttingProxy, by_readers: list[object]
) -> None:
    """A reader answers who waited, and soon the loop asks again by itself."""
    with psycopg.connect(url) as blocking:
        blocking.execute("LOCK TABLE outreach.campaign_lists")
        asked = asyncio.create_task(storage.read(revision()))
        await until(lambda: reader_of(storage)._sent)
        proxy.cut_all()
        await until(lambda: by_readers)
    assert await asked is not None
    await wait_for_connection(storage)
    proxy.cut_all()
    assert await storage.read(revision()) == await asked
    await wait_for_connection(storage)
    del by_readers[:]
    assert await storage.read(revision()) == await asked
    assert by_readers == []


async def test_what_is_not_one_plain_query_is_run_by_a_reader(
    storage: PostgresStorage, by_readers: list[object]
) -> None:
    """With its own result or error; the loop's connection goes on."""

    def two(tx: Transaction) -> object:
        return tx.stops.count(THIS_WORKSPACE), tx.campaign_lists.revision(THIS_WORKSPACE)

    def written(tx: Transaction) -> object:
        return tx.stops.increment(THIS_WORKSPACE)

    def failing(tx: Transaction) -> None:
        tx.stops.count(THIS_WORKSPACE)
        raise LookupError("nothing")

    found = await storage.read(OneQuery(two))
    assert found == (0, await storage.read(revision()))
    assert await storage.read(OneQuery(lambda _: 7)) == 7
    assert len(by_readers) == 2
    with pytest.raises(LookupError, match="nothing"):
        await storage.read(OneQuery(failing))
    assert len(by_readers) == 2
    with pytest.raises(StorageError, match="may only read"):
        await storage.read(OneQuery(written))
    with pytest.raises(InvalidRequest, match="NUL"):
        await storage.read(revision("a\0b"))
    assert len(by_readers) == 3
    assert await storage.read(STOPS) == 0
    assert len(by_readers) == 3


async def test_an_error_of_the_server_is_reported_by_a_reader(
    url: str, storage: PostgresStorage, by_readers: list[object]
) -> None:
    """And passes with its cause."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("ALTER TABLE outreach.campaign_lists RENAME TO elsewhere")
        with pytest.raises(StorageError):
            await storage.read(revision())
        assert len(by_readers) == 1
        await wait_for_connection(storage)
        other.execute("ALTER TABLE outreach.elsewhere RENAME TO campaign_lists")
    del by_readers[:]
    assert await storage.read(revision()) is not None
    assert by_readers == []


async def test_closing_does_not_wait_for_an_answer(url: str) -> None:
    """The waiting read fails, because the storage is closed."""
    with psycopg.connect(url) as blocking:
        async with opened(url) as storage:
            await wait_for_connection(storage)
            pipelined = reader_of(storage)
            blocking.execute("LOCK TABLE outreach.campaign_lists")
            asked = asyncio.create_task(storage.read(revision()))
            await asyncio.sleep(0)
        with pytest.raises(StorageError, match="not open"):
            await asked
        assert not pipelined.connected


async def test_a_server_that_is_away_is_not_asked_for_a_while(
    storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost connection is not retried for each query."""
    attempts: list[object] = []
    monkeypatch.setattr(PipelinedReader, "_connect_in_thread", lambda pipelined: attempts.append(pipelined))
    monkeypatch.setattr(pipelined_reader, "_PAUSE_SECONDS", 3600.0)
    proxy.cut_all()
    await until(lambda: not reader_of(storage).connected)
    for _ in range(3):
        assert await storage.read(STOPS) == 0
    assert attempts == []


async def test_what_the_driver_cannot_write_keeps_nobody_waiting(
    url: str, storage: PostgresStorage, by_readers: list[object]
) -> None:
    """Neither those who ask beside it nor those who ask later."""
    with psycopg.connect(url) as blocking:
        blocking.execute("LOCK TABLE outreach.campaign_lists")
        first = asyncio.create_task(storage.read(revision()))
        together = asyncio.gather(storage.read(revision("\ud800")), storage.read(STOPS), return_exceptions=True)
        await until(lambda: reader_of(storage)._sent)
        blocking.rollback()
    with real_time():
        async with asyncio.timeout(DEADLINE / 6):
            refused, stops = await together
    assert isinstance(refused, InvalidRequest)
    assert stops == 0
    assert len(by_readers) == 1
    assert await storage.read(revision()) == await first
    assert len(by_readers) == 1


@pytest.mark.parametrize("error", [psycopg.DataError("year is out of range"), ValueError("not UTF-8")])
async def test_an_answer_that_the_driver_cannot_read_is_left_to_a_reader(
    storage: PostgresStorage, by_readers: list[object], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The caller does not wait for ever."""

    class Refusing(Transformer):  # type: ignore[misc, valid-type]  # it is chosen at run time
        def load_rows(self, *_: object) -> NoReturn:
            raise error

    with monkeypatch.context() as patched, real_time():
        patched.setattr(pipelined_reader, "Transformer", Refusing)
        async with asyncio.timeout(DEADLINE / 6):
            assert await storage.read(STOPS) == 0
    assert len(by_readers) == 1
    assert await storage.read(STOPS) == 0
    assert len(by_readers) == 1


async def test_a_question_without_an_answer_holds_the_others_up_for_a_moment_only(
    url: str, storage: PostgresStorage, by_readers: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its connection waits for, readers have others."""
    monkeypatch.setattr(pipelined_reader, "_ANSWER_SECONDS", 0.05, raising=False)
    with psycopg.connect(url) as blocking:
        blocking.execute("LOCK TABLE outreach.campaign_lists")
        held = asyncio.create_task(storage.read(revision()))
        await until(lambda: reader_of(storage)._sent)
        with real_time():
            async with asyncio.timeout(DEADLINE / 6):
                assert await storage.read(STOPS) == 0
        assert not held.done()
        blocking.rollback()
    assert await held == await storage.read(revision())
    monkeypatch.setattr(pipelined_reader, "_ANSWER_SECONDS", 3600.0)
    await wait_for_connection(storage)
    del by_readers[:]
    for _ in range(3):
        assert await storage.read(STOPS) == 0
        # As when the time limit of an answered query ends.
        reader_of(storage)._look()
    assert by_readers == []


async def test_a_process_without_a_thread_left_leaves_questions_to_readers(
    storage: PostgresStorage, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And connects when there is one again."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "outreach-postgres-pipelined":
            raise RuntimeError("can't start new thread")
        start(thread)

    proxy.cut_all()
    await until(lambda: not reader_of(storage).connected)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert await storage.read(STOPS) == 0
    await wait_for_connection(storage)


@pytest.mark.virtual_time
async def test_virtual_time_stands_still_for_a_question(url: str, by_readers: list[object]) -> None:
    """As it does while a thread works."""
    async with opened(url) as storage:
        await wait_for_connection(storage)
        del by_readers[:]
        before = asyncio.get_running_loop().time()
        timer = asyncio.create_task(asyncio.sleep(3600))
        for _ in range(20):
            assert await storage.read(STOPS) == 0
        assert asyncio.get_running_loop().time() - before < 1
        assert not timer.done()
        timer.cancel()
        assert by_readers == []
