from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from outreach.core.clock import SystemClock
from outreach.errors import StorageBusy, StorageError
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Within
from outreach.storage.base import writer
from outreach.storage.sqlite import SqliteStorage, thread
from outreach.storage.sqlite import storage as connect
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.thread import BUSY_SECONDS
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from tests.storage.conftest import Gate, settle
from tests.storage.sqlite_support import NOW, appending, campaign, contacts, entry, opened, set_up, subjects

pytestmark = pytest.mark.anyio


def commits(path: Path) -> int:
    """Return how often the write-ahead log has been committed to: frames that end a transaction."""
    content = path.with_name(f"{path.name}-wal").read_bytes()
    page = int.from_bytes(content[8:12], "big")
    frames = range(32, len(content) - 23, 24 + page)
    salt = content[16:24]
    return sum(
        1 for at in frames if content[at + 8 : at + 16] == salt and int.from_bytes(content[at + 4 : at + 8], "big")
    )


async def test_operations_that_queue_up_share_a_commit(
    sqlite_storage: SqliteStorage, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty operations that came while another ran are one transaction."""
    monkeypatch.setattr(writer, "GROUP_SECONDS", 3600.0)
    gate = Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sqlite_storage.write, gate)
        await gate.wait_entered()
        before = commits(database)
        for number in range(50):
            tasks.start_soon(sqlite_storage.write, appending(f"{number}"))
        await settle()
        gate.opened.set()
    assert await sqlite_storage.read(subjects) == ["gate", *map(str, range(50))]
    assert commits(database) - before == 1


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError, AlreadyExists])
async def test_every_kind_of_error_reaches_its_caller(sqlite_storage: SqliteStorage, kind: type[BaseException]) -> None:
    """Also those that would end a thread."""
    error = kind("odd")

    def fail(tx: Transaction) -> None:
        raise error

    with pytest.raises(kind) as caught:
        await sqlite_storage.write(fail)
    assert caught.value is error
    with pytest.raises(kind) as caught:
        await sqlite_storage.read(fail)
    assert caught.value is error
    assert await sqlite_storage.write(lambda _: "alive") == "alive"


async def test_an_error_that_no_coroutine_may_raise_does_not_hang(sqlite_storage: SqliteStorage) -> None:
    """Python turns a StopIteration that leaves a coroutine into a RuntimeError; a future would refuse it."""

    def fail(tx: Transaction) -> None:
        raise StopIteration

    with anyio.fail_after(10), pytest.raises(RuntimeError) as caught:
        await sqlite_storage.write(fail)
    assert isinstance(caught.value.__cause__, StopIteration)


async def test_a_cancelled_caller_whose_operation_waits_takes_it_along(sqlite_storage: SqliteStorage) -> None:
    """It is not done at all, and nobody else notices."""
    gate = Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sqlite_storage.write, gate)
        await gate.wait_entered()
        cancelled = asyncio.create_task(sqlite_storage.write(appending("cancelled")))
        tasks.start_soon(sqlite_storage.write, appending("kept"))
        await settle()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        gate.opened.set()
    assert await sqlite_storage.read(subjects) == ["gate", "kept"]


async def test_when_all_that_wait_are_cancelled_nothing_is_left_to_do(sqlite_storage: SqliteStorage) -> None:
    """The writer finds nothing, and goes on when something comes."""
    gate = Gate()
    first = asyncio.create_task(sqlite_storage.write(gate))
    await gate.wait_entered()
    cancelled = asyncio.create_task(sqlite_storage.write(appending("cancelled")))
    await settle()
    cancelled.cancel()
    # Long enough that the gate's group is over when it ends.
    await asyncio.sleep(0.05)
    gate.opened.set()
    await first
    await asyncio.sleep(0.05)
    await sqlite_storage.write(appending("next"))
    assert await sqlite_storage.read(subjects) == ["gate", "next"]


async def test_a_cancelled_caller_whose_operation_runs_leaves_it_whole(sqlite_storage: SqliteStorage) -> None:
    """It is done wholly, although nobody waits for it any more."""
    gate = Gate()
    cancelled = asyncio.create_task(sqlite_storage.write(gate))
    await gate.wait_entered()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    gate.opened.set()
    await sqlite_storage.write(appending("next"))
    assert await sqlite_storage.read(subjects) == ["gate", "next"]


async def test_an_urgent_operation_comes_between_pieces_of_large_work(sqlite_storage: SqliteStorage) -> None:
    """One piece of large work a transaction: what comes meanwhile does not wait for the rest."""
    gate = Gate(appending("bulk 0"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_write_bulk, sqlite_storage, gate)
        await gate.wait_entered()
        tasks.start_soon(_write_bulk, sqlite_storage, appending("bulk 1"))
        await settle()
        tasks.start_soon(sqlite_storage.write, appending("urgent"))
        await settle()
        gate.opened.set()
    assert await sqlite_storage.read(subjects) == ["bulk 0", "urgent", "bulk 1"]


async def test_workspaces_take_turns_however_much_one_of_them_writes(sqlite_storage: SqliteStorage) -> None:
    """Operations of one keep their order; each one for all workspaces has a turn of its own."""
    gate = Gate()
    queued = [("large", "0"), ("large", "1"), ("large", "2"), ("small", "3"), ("", "4"), ("", "5"), ("small", "6")]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sqlite_storage.write, gate)
        await gate.wait_entered()
        for whose, subject in queued:
            operation = appending(subject)
            tasks.start_soon(sqlite_storage.write, Within([whose], operation) if whose else operation)
            await settle()
        gate.opened.set()
    assert await sqlite_storage.read(subjects) == ["gate", "0", "3", "4", "5", "1", "6", "2"]


async def test_large_work_is_never_stopped_by_others(sqlite_storage: SqliteStorage) -> None:
    """However much else there is to do, a piece of large work gets its turn."""
    done = anyio.Event()

    async def flood() -> None:
        while not done.is_set():
            await sqlite_storage.write(lambda _: time.sleep(0.01))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(flood)
        await settle()
        with anyio.fail_after(10):
            await sqlite_storage.write(appending("bulk"), bulk=True)
        done.set()


async def test_a_group_ends_when_it_has_lasted_long_enough(sqlite_storage: SqliteStorage, database: Path) -> None:
    """Answers do not wait for everything that is queued."""
    gate = Gate()
    order: list[int] = []

    async def slow(number: int) -> None:
        def linger(tx: Transaction) -> None:
            tx.audit.append(entry(f"{number}"))
            time.sleep(0.03)

        await sqlite_storage.write(linger)
        order.append(number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sqlite_storage.write, gate)
        await gate.wait_entered()
        before = commits(database)
        for number in range(3):
            tasks.start_soon(slow, number)
        await settle()
        gate.opened.set()
    assert order == [0, 1, 2]
    assert commits(database) - before >= 3


async def test_when_the_commit_fails_every_operation_of_the_group_fails(
    sqlite_storage: SqliteStorage, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No caller gets a success that did not happen, and the next group works."""
    monkeypatch.setattr(writer, "GROUP_SECONDS", 3600.0)
    await sqlite_storage.write(set_up)
    own = ValueError("mine")

    def break_commit(tx: Transaction) -> None:
        # A deferred foreign key is checked by COMMIT alone: the one failure of it that can be had at will.
        connection = tx.audit._rows.backend.connection  # type: ignore[attr-defined]
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute("UPDATE campaigns SET workspace_id = 'nobody'")

    def fail(tx: Transaction) -> None:
        raise own

    gate = Gate()
    tasks = [asyncio.create_task(sqlite_storage.write(gate))]
    await gate.wait_entered()
    # In the gate's own group: whatever the gate does with its time, they come before the next commit.
    tasks += [
        asyncio.create_task(sqlite_storage.write(operation)) for operation in (appending("lost"), break_commit, fail)
    ]
    await settle()
    gate.opened.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[2], StorageError)
    assert isinstance(results[2].__cause__, sqlite3.IntegrityError)
    assert "Nothing was written" in str(results[2])
    assert isinstance(results[1], StorageError)
    assert results[3] is own
    assert await sqlite_storage.write(subjects) == (["gate"] if results[0] is None else [])
    with opened(database) as other:
        assert other.execute("SELECT workspace_id FROM campaigns").fetchall() == [("w1",)]


async def test_an_error_after_which_the_transaction_is_gone_fails_its_group(sqlite_storage: SqliteStorage) -> None:
    """SQLite has undone it, as on a full disk, and the operation raises another error, which has no code of SQLite."""

    def lose(tx: Transaction) -> None:
        tx.audit._rows.backend.connection.execute("ROLLBACK")  # type: ignore[attr-defined]
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await sqlite_storage.write(lose)
    await sqlite_storage.write(appending("next"))
    assert await sqlite_storage.write(subjects) == ["next"]


async def test_a_mistake_in_the_writer_leaves_no_caller_waiting(
    sqlite_storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The group's outcome is unknown then, and what was queued behind it was not written; the next write works."""

    def mistake(*_: object, **__: object) -> None:
        raise AttributeError("no such field")

    gate = Gate()
    with monkeypatch.context() as patch:
        patch.setattr(writer, "GROUP_SECONDS", 0.0)
        patch.setattr(Instrumentation, "transaction_committed", mistake)
        tasks = [asyncio.create_task(sqlite_storage.write(gate))]
        await gate.wait_entered()
        tasks.append(asyncio.create_task(sqlite_storage.write(appending("behind"))))
        await settle()
        gate.opened.set()
        committed, behind = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(committed, writer.CommitUnknown)
    assert str(behind).startswith("Nothing was written.")
    assert await sqlite_storage.write(subjects) == ["gate"]
    assert [record.__dict__["action"] for record in caplog.records] == ["writer_failed"]


async def test_when_the_disk_is_full_nothing_is_half_written(sqlite_storage: SqliteStorage) -> None:
    """The operation is undone and says why; when there is room again everything goes on."""
    await sqlite_storage.write(set_up)

    def limit(tx: Transaction, pages: int | None) -> None:
        connection = tx.audit._rows.backend.connection  # type: ignore[attr-defined]
        used = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {used if pages is None else pages}")

    def fill(tx: Transaction) -> None:
        tx.audit.append(entry("undone"))
        tx.campaigns.insert_loading(campaign("c2"), loading_until=NOW)
        tx.recipients.insert("w1", "c2", contacts(range(5000)), now=NOW)

    await sqlite_storage.write(lambda tx: limit(tx, None))
    with pytest.raises(StorageError, match="full"):
        await sqlite_storage.write(fill)
    await sqlite_storage.write(lambda tx: limit(tx, 2**31))
    assert await sqlite_storage.write(subjects) == []
    assert await sqlite_storage.write(lambda tx: tx.campaigns.get_loading("w1", "c2")) is None


async def test_a_lock_is_waited_for_longer_than_sqlite_does_at_a_time(
    sqlite_storage: SqliteStorage, database: Path
) -> None:
    """The write is done when the other process is."""
    with opened(database) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(sqlite_storage.write(appending("patient")))
        await asyncio.sleep(3 * connect.BUSY_POLL_SECONDS)
        assert not waiting.done()
        other.execute("ROLLBACK")
        await waiting
    assert await sqlite_storage.read(subjects) == ["patient"]


async def test_closing_does_not_wait_for_another_process(database: Path) -> None:
    """The queued writes fail with "nothing was written", and the storage closes within a moment."""
    with opened(database) as other:
        async with SqliteStorage(database, clock=SystemClock()) as storage:
            await storage.write(appending("before"))
            other.execute("BEGIN IMMEDIATE")
            waiting = [asyncio.create_task(storage.write(appending(f"{number}"))) for number in range(3)]
            await settle()
            begun = time.monotonic()
        assert time.monotonic() - begun < BUSY_SECONDS
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, StorageError) and "Nothing was written" in str(result) for result in results)


async def test_closing_leaves_behind_what_hangs(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that does not answer keeps nobody from ending; it is said, and the thread holds up no process."""
    monkeypatch.setattr(thread, "CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(thread, "_INTERRUPTED_SECONDS", 0.05)
    gate = Gate()
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        hanging = asyncio.create_task(storage.write(gate))
        await gate.wait_entered()
    assert "its disk does not respond" in caplog.text
    left = [one for one in threading.enumerate() if "connection_worker" in one.name]
    assert left
    assert all(one.daemon for one in left)
    gate.opened.set()
    hanging.cancel()
    await asyncio.to_thread(lambda: [one.join(10) for one in left])


async def test_when_another_process_keeps_the_lock_every_waiting_write_fails(
    sqlite_storage: SqliteStorage, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait has an end, the error says what is the matter, and later writes work."""
    monkeypatch.setattr(thread, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(writer, "BULK_SECONDS", 0.1)
    with opened(database) as other:
        other.execute("BEGIN IMMEDIATE")
        results = await asyncio.gather(
            *(sqlite_storage.write(appending(f"{number}")) for number in range(3)),
            sqlite_storage.write(appending("bulk"), bulk=True),
            return_exceptions=True,
        )
        other.execute("ROLLBACK")
    for result in results:
        assert isinstance(result, StorageBusy)
        assert "locked by another process" in str(result)
        assert isinstance(result.__cause__, sqlite3.OperationalError)
    await sqlite_storage.write(appending("later"))
    assert await sqlite_storage.read(subjects) == ["later"]


async def test_a_bulk_write_outlasts_a_lock_that_fails_small_writes(
    sqlite_storage: SqliteStorage, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller waits for the answer to a small write. An error would lose all of a long load."""
    monkeypatch.setattr(thread, "BUSY_SECONDS", 0.05)
    with opened(database) as other:
        other.execute("BEGIN IMMEDIATE")
        load = asyncio.create_task(sqlite_storage.write(appending("bulk"), bulk=True))
        for _ in range(3):
            with pytest.raises(StorageBusy):
                await sqlite_storage.write(appending("small"))
        assert not load.done()
        other.execute("ROLLBACK")
        await load
    assert await sqlite_storage.read(subjects) == ["bulk"]


async def test_a_bulk_write_that_meets_a_lock_in_its_middle_runs_again(sqlite_storage: SqliteStorage) -> None:
    """Its group is committed without it; a small write fails."""
    runs = list[str]()

    def busy_once(subject: str) -> Callable[[Transaction], None]:
        def operation(tx: Transaction) -> None:
            runs.append(subject)
            tx.audit.append(entry(subject))
            if runs.count(subject) == 1:
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error

        return operation

    await sqlite_storage.write(busy_once("bulk"), bulk=True)
    with pytest.raises(StorageBusy):
        await sqlite_storage.write(busy_once("small"))
    assert runs == ["bulk", "bulk", "small"]
    assert await sqlite_storage.write(subjects) == ["bulk"]


async def test_closing_is_not_cut_short(database: Path) -> None:
    """A cancelled task still closes wholly: no thread is left over."""
    threads = threading.active_count()
    with anyio.CancelScope() as scope:
        async with SqliteStorage(database, clock=SystemClock()) as storage:
            await storage.write(appending("one"))
            scope.cancel()
    assert threading.active_count() == threads


async def test_opening_can_be_cancelled_anywhere(database: Path) -> None:
    """Whenever the caller goes away, nothing stays open and no thread is left over."""
    threads = threading.active_count()
    for trips in range(12):
        opening = asyncio.create_task(SqliteStorage(database, clock=SystemClock()).__aenter__())
        for _ in range(trips):
            await asyncio.sleep(0.0005)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            opened_storage = await opening
            await opened_storage.__aexit__(None, None, None)
        assert threading.active_count() == threads


@pytest.mark.parametrize("how", ["write", "read"])
async def test_a_storage_that_is_not_open_says_so(database: Path, how: str) -> None:
    """Before and after."""
    storage = SqliteStorage(database, clock=SystemClock())
    with pytest.raises(StorageError, match="not open"):
        await getattr(storage, how)(subjects)
    async with storage:
        assert await getattr(storage, how)(subjects) == []
    with pytest.raises(StorageError, match="not open"):
        await getattr(storage, how)(subjects)


async def test_a_storage_opens_once_at_a_time_and_again_later(database: Path) -> None:
    """Twice at once is refused; after closing it opens again, with what it had."""
    storage = SqliteStorage(database, clock=SystemClock())
    async with storage:
        await storage.write(appending("one"))
        with pytest.raises(StorageError, match="open already"):
            await storage.__aenter__()
    async with storage:
        assert await storage.read(subjects) == ["one"]


async def test_errors_do_not_hold_on_to_what_they_failed_with(sqlite_storage: SqliteStorage) -> None:
    """An error is gone with the last one who looks at it, without the garbage collector's help."""

    class Mine(Exception):
        pass

    def fail(tx: Transaction) -> None:
        raise Mine

    gc.disable()
    try:
        gone: Callable[[], Mine | None] | None = None
        try:
            await sqlite_storage.write(fail)
        except Mine as error:
            gone = weakref.ref(error)
        assert gone is not None
        await sqlite_storage.write(appending("next"))
        assert gone() is None
    finally:
        gc.enable()


async def _write_bulk(storage: SqliteStorage, operation: Callable[[Transaction], None]) -> None:
    await storage.write(operation, bulk=True)


def test_a_disk_without_room_for_the_shared_memory_is_reported_as_full() -> None:
    """SQLite calls it an I/O error; others stay one."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR_SHMSIZE, "SQLITE_IOERR_SHMSIZE"
    assert "Make room" in translate(error).message
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR_READ, "SQLITE_IOERR_READ"
    assert "reports an error while reading or writing" in translate(error).message
