"""The places of the workers on PostgreSQL, and a server that does not answer while they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, Literal

import psycopg
import pytest

from outreach.core.clock import SystemClock
from outreach.storage.postgres import PostgresStorage, lock, postgres_storage_from_url
from outreach.storage.postgres.connect import PostgresConnection, conninfo_of
from outreach.storage.postgres.lock import PostgresDispatchLock
from tests import postgres
from tests.cutting_proxy import CuttingProxy

pytestmark = pytest.mark.anyio

Kept = Literal["questions", "answers"]


@pytest.fixture
def conninfo(url: str, proxy: CuttingProxy) -> str:
    """How to connect by way of the proxy."""
    return conninfo_of(url.replace(f":{postgres.server().port}/", f":{proxy.port}/"))


@pytest.fixture
async def half_dead(conninfo: str) -> AsyncIterator[PostgresDispatchLock]:
    """A lock whose connection the proxy can silence."""
    made = PostgresDispatchLock(conninfo, workers=2)
    await asyncio.to_thread(made.open)
    yield made
    await asyncio.to_thread(made.close)


@pytest.fixture
async def other(url: str) -> AsyncIterator[PostgresDispatchLock]:
    """The lock as another node sees it."""
    made = PostgresDispatchLock(conninfo_of(url), workers=2)
    await asyncio.to_thread(made.open)
    yield made
    await asyncio.to_thread(made.close)


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is true."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a thread changes it
            await asyncio.sleep(0.01)


def asks(one: PostgresDispatchLock) -> bool:
    """Return whether a question is on its way to the server."""
    return one._current is not None


def worker(url: str) -> PostgresStorage:
    """Return the storage of a node, one of two that may dispatch."""
    return postgres_storage_from_url(url, clock=SystemClock(), workers=2)


async def cancel_once_asked(half_dead: PostgresDispatchLock, tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks when the first of them has asked the server."""
    await until(lambda: asks(half_dead))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_a_lost_connection_frees_the_dispatch_lock(
    half_dead: PostgresDispatchLock, other: PostgresDispatchLock, proxy: CuttingProxy
) -> None:
    """The next holder fences the one before by the lease. A cut connection is made anew."""
    assert await half_dead.acquire() == 1
    assert await other.acquire() == 2
    assert [await one.find_free({1, 2}) for one in (half_dead, other)] == [[], []]
    assert half_dead.home() == other.home() is not None
    proxy.cut_all()
    async with asyncio.timeout(60):
        while not await other.find_free({1}):  # noqa: ASYNC110 - the server frees it
            await asyncio.sleep(0.01)
    assert await other.acquire() == 1
    await half_dead.release()
    assert await half_dead.acquire() == 0
    assert await half_dead.find_free({1, 2}) == []
    await other.release()
    assert await half_dead.acquire() == 1


async def test_each_worker_has_a_place_of_its_own(url: str) -> None:
    """As many as there may be, and the lowest that is free."""
    async with worker(url) as first, worker(url) as second, worker(url) as third:
        assert [await one.lock.acquire() for one in (first, second, third)] == [1, 2, 0]
        assert await third.lock.find_free([1, 2, 3]) == [3]
        await first.lock.release(2)
        assert await third.lock.acquire() == 0
        await first.lock.release(1)
        assert (await first.lock.find_free([1]), await second.lock.find_free([1, 2])) == ([1], [1])
        assert await third.lock.acquire() == 1
        await third.lock.release()
        assert await second.lock.find_free([1]) == [1]


@pytest.mark.parametrize("kept", ["questions", "answers"])
async def test_the_event_loop_goes_on_while_the_server_does_not_answer(
    half_dead: PostgresDispatchLock,
    other: PostgresDispatchLock,
    proxy: CuttingProxy,
    monkeypatch: pytest.MonkeyPatch,
    kept: Kept,
) -> None:
    """After a while nothing counts as free and the connection as lost; the next question makes another one."""
    monkeypatch.setattr(lock, "_ANSWER_SECONDS", 0.5)
    proxy.keeps = kept
    asking = [asyncio.create_task(half_dead.find_free({1, 2})), asyncio.create_task(half_dead.acquire())]
    turns = 0
    async with asyncio.timeout(60):
        while not all(task.done() for task in asking):
            await asyncio.sleep(0.001)
            turns += 1
    assert turns > 0
    assert [task.result() for task in asking] == [[], 0]
    proxy.keeps = None
    monkeypatch.setattr(lock, "_ANSWER_SECONDS", 60.0)
    assert await half_dead.find_free({1}) == [1]
    assert await half_dead.acquire() == 1
    assert await other.acquire() == 2


@pytest.mark.parametrize("kept", ["questions", "answers"])
async def test_a_request_for_a_place_that_is_cancelled_takes_none(
    half_dead: PostgresDispatchLock,
    other: PostgresDispatchLock,
    proxy: CuttingProxy,
    monkeypatch: pytest.MonkeyPatch,
    kept: Kept,
) -> None:
    """It ends at once, whether or not the question has arrived. A place that the server grants later is given back."""
    monkeypatch.setattr(lock, "_ANSWER_SECONDS", 600.0)
    proxy.keeps = kept
    asking = asyncio.create_task(half_dead.acquire())
    await until(lambda: asks(half_dead))
    asking.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await asking
    proxy.keeps = None
    # What was asked is answered, and undone, before the next question.
    assert await half_dead.find_free({1, 2}) == [1, 2]
    assert [await other.acquire(), await other.acquire()] == [1, 2]


async def test_questions_that_nobody_waits_for_are_not_asked(
    half_dead: PostgresDispatchLock, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is away for long finds no queue of them when it is back."""
    monkeypatch.setattr(lock, "_ANSWER_SECONDS", 600.0)
    asked: list[int] = []
    find_free = half_dead._find_free

    def noting(connection: PostgresConnection, places: Collection[int]) -> Collection[int]:
        asked.extend(places)
        return find_free(connection, places)

    monkeypatch.setattr(half_dead, "_find_free", noting)
    proxy.keeps = "answers"
    asking = [asyncio.create_task(half_dead.find_free({place})) for place in (1, 2)]
    await cancel_once_asked(half_dead, asking)
    proxy.keeps = None
    assert await half_dead.find_free({3}) == [3]
    assert asked == [1, 3]


async def test_giving_a_place_back_is_done_though_it_is_cancelled(
    half_dead: PostgresDispatchLock, other: PostgresDispatchLock, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that stops in a hurry leaves its place to others."""
    monkeypatch.setattr(lock, "_ANSWER_SECONDS", 600.0)
    assert [await half_dead.acquire(), await half_dead.acquire()] == [1, 2]
    proxy.keeps = "questions"
    releasing = [asyncio.create_task(half_dead.release(place)) for place in (1, 2)]
    await cancel_once_asked(half_dead, releasing)
    proxy.keeps = None
    assert await half_dead.find_free({1, 2}) == [1, 2]
    assert [await other.acquire(), await other.acquire()] == [1, 2]


async def test_closing_ends_what_is_asked(
    half_dead: PostgresDispatchLock, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Soon, without an answer; afterwards nothing is asked any more."""
    monkeypatch.setattr(lock, "_ANSWER_SECONDS", 600.0)
    proxy.keeps = "answers"
    asking = asyncio.create_task(half_dead.acquire())
    await until(lambda: asks(half_dead))
    async with asyncio.timeout(60):
        await asyncio.to_thread(half_dead.close)
        assert await asking == 0
    assert half_dead._connection is None
    assert (await half_dead.acquire(), await half_dead.find_free({1})) == (0, [])


async def test_a_server_that_is_away_has_no_free_place(half_dead: PostgresDispatchLock, proxy: CuttingProxy) -> None:
    """And is asked again by the next question."""
    assert await half_dead.acquire() == 1
    proxy.refusing = True
    proxy.cut_all()
    assert await half_dead.find_free({2}) == []
    assert await half_dead.acquire() == 0
    proxy.refusing = False
    async with asyncio.timeout(60):
        while not await half_dead.acquire():  # noqa: ASYNC110 - the server frees the first one
            await asyncio.sleep(0.01)


async def test_an_error_of_the_server_is_raised(
    half_dead: PostgresDispatchLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that is not the connection's must not look like a free place."""
    monkeypatch.setattr(lock, "_FREE", "SELECT no_such_function(%(keys)s)")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        await half_dead.find_free({1})
    assert await half_dead.acquire() == 1
