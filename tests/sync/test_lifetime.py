"""One engine a process: opened by its first use, closed at the exit, never carried over a fork."""

from __future__ import annotations

import gc
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import anyio
import pytest

from outreach import ConfigError
from outreach.dispatch.worker import Worker
from outreach.errors import DatabaseMissing, StorageError
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.sync import Outreach, fail_after
from outreach.sync.calls import Call
from outreach.sync.thread import EngineClosed, EngineThread
from tests.sync.conftest import QUICK

BEGIN = """
import logging, os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from outreach import ConfigError, NewRecipient, NewSmsCampaign
from outreach import NewWorkspace
from outreach.sync import Outreach
engine = Outreach.open(sys.argv[1], dispatch=True)

def closed():
    return not os.path.exists(sys.argv[1].removeprefix("sqlite:///") + "-wal")

def in_child(function):
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            sys.stdout.flush()
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def script(text: str, place: Path) -> subprocess.Popen[str]:
    """Start a program that has an engine which is not open yet."""
    return subprocess.Popen(
        # A process with threads that forks is warned of by Python 3.12; here that is what is tried.
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            BEGIN + text,
            f"sqlite:///{place}/app.db",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said_by(text: str, place: Path) -> str:
    """Run such a program to its exit; return what it prints."""
    process = script(text, place)
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, ""), errors
    return said


def test_the_first_call_opens_the_engine_and_closing_ends_its_thread(tmp_path: Path) -> None:
    """A global that nobody uses opens nothing; one that is closed says so until it is started again."""
    engine = Outreach.open(f"sqlite:///{tmp_path}/app.db")
    assert not list(tmp_path.iterdir())
    engine.close()
    with pytest.raises(ConfigError, match=re.escape("has been closed. Open it again with start()")):
        engine.workspaces.list()
    assert engine.start() is engine
    with pytest.raises(ConfigError, match="open already"):
        engine.start()
    assert list(engine.workspaces.list()) == []
    before = threading.active_count()
    engine.close()
    engine.close()
    assert threading.active_count() < before


def test_an_engine_that_is_started_again_sends_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another loop than before, to which what its dispatcher had waited for does not belong."""
    followed = threading.Event()
    since = Worker.since

    async def counted(self: Worker, change: int) -> Any:
        followed.set()
        return await since(self, change)

    monkeypatch.setattr(Worker, "since", counted)
    engine = Outreach.open("memory://", dispatch=True, config=QUICK)
    for _ in range(2):
        with engine:
            followed.clear()
            assert followed.wait(60)
            assert engine.health().dispatching
            assert engine.health().failures == 0


def test_an_engine_that_cannot_be_opened_may_be_tried_again(tmp_path: Path) -> None:
    """The first call raises what is wrong, and leaves no thread behind."""
    before = threading.active_count()
    engine = Outreach.open(f"sqlite:///{tmp_path}/app.db", create=False)
    for _ in range(2):
        with pytest.raises(DatabaseMissing):
            engine.workspaces.list()
    assert threading.active_count() == before
    with Outreach.open(f"sqlite:///{tmp_path}/app.db"):
        pass
    assert list(engine.workspaces.list()) == []
    engine.close()


def test_an_interrupt_as_the_opening_ends_closes_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call opens it again."""
    run_jobs = Call._run_jobs

    def interrupted(self: Call[Any], until: float | None) -> bool:
        monkeypatch.undo()
        run_jobs(self, until)
        raise KeyboardInterrupt

    before = threading.active_count()
    engine = Outreach.open("memory://")
    monkeypatch.setattr(Call, "_run_jobs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.start()
    assert threading.active_count() == before
    assert list(engine.workspaces.list()) == []
    engine.close()


class SlowAtFirst(MemoryStorage):
    """A storage whose first opening does not end before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.opening = threading.Event()
        self.go_on = threading.Event()

    async def __aenter__(self) -> Self:
        """Open it, but for the first time."""
        if not self.opening.is_set():
            self.opening.set()
            while not self.go_on.is_set():  # noqa: ASYNC110 - it is set in another thread
                await anyio.sleep(0.01)
        return await super().__aenter__()


def test_opening_counts_against_the_time_that_a_call_is_given() -> None:
    """A storage that does not answer is given up, and nothing is left of it."""
    before = threading.active_count()
    engine = Outreach(SlowAtFirst())
    with pytest.raises(TimeoutError), fail_after(0.1):
        engine.workspaces.list()
    assert threading.active_count() == before
    assert list(engine.workspaces.list()) == []
    engine.close()


def test_a_thread_that_opens_the_engine_is_not_waited_for_too_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither by a call of another thread, which has its own time, nor by the exit of the interpreter."""
    monkeypatch.setattr("outreach.sync.lifetime._EXIT_SECONDS", 0.05)
    storage = SlowAtFirst()
    engine = Outreach(storage)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(engine.workspaces.list)
        assert storage.opening.wait(60)
        with pytest.raises(TimeoutError, match="Another thread"), fail_after(0.05):
            engine.workspaces.list()
        engine._lifetime.exit()
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        storage.go_on.set()
        assert list(first.result(60)) == []
    engine.close()


def test_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the loop cannot begin, its error is raised, and nobody waits for it."""

    def no_files(*_: object, **__: object) -> None:
        raise OSError("Too many open files")

    monkeypatch.setattr("outreach.sync.thread.anyio.run", no_files)
    with pytest.raises(OSError, match="Too many open files"):
        Outreach.open("memory://").start()


def test_threads_that_call_while_the_engine_closes_all_get_an_answer() -> None:
    """Either what they asked for or that it is closed; none waits for a loop that has ended."""

    def work() -> None:
        with suppress(EngineClosed):
            while True:
                engine.workspaces.list()
                called.set()

    for _ in range(10):
        engine, called = Outreach.open("memory://").start(), threading.Event()
        with ThreadPoolExecutor(6) as pool:
            working = [pool.submit(work) for _ in range(6)]
            assert called.wait(60)
            engine.close()
            for one in working:
                one.result(60)


async def waiting(begun: threading.Event) -> None:
    """Wait until cancelled."""
    begun.set()
    await anyio.sleep_forever()


async def reading(begun: threading.Event) -> None:
    """Wait until cancelled, and find the database closed."""
    begun.set()
    try:
        await anyio.sleep_forever()
    finally:
        raise StorageError("The storage is not open.")


@pytest.mark.parametrize("call", [waiting, reading])
def test_a_call_that_still_waits_as_the_engine_closes_is_reported(
    call: Callable[[threading.Event], Awaitable[None]],
) -> None:
    """It is cancelled, once the engine has done what it does for those in flight."""
    engine = Outreach.open("memory://").start()
    running, begun = engine._lifetime.running(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(running.run, lambda _: call(begun))
        assert begun.wait(60)
        engine.close()
        with pytest.raises(EngineClosed, match="closed while the call waited"):
            made.result(60)


class Broken(MemoryStorage):
    """A storage that cannot be read."""

    async def read(self, _: Any) -> Any:
        """Fail."""
        raise StorageError("disk I/O error")


def test_a_database_that_cannot_be_read_is_no_closed_engine() -> None:
    """Its error is raised as it is."""
    with Outreach(Broken()) as engine, pytest.raises(StorageError, match="disk I/O error"):
        engine.workspaces.list()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of tasks that the loop left behind
def test_a_loop_that_an_adapter_has_ended_is_an_error_and_no_wait() -> None:
    """A task of an adapter may raise SystemExit, which ends the loop and all that waits."""
    engine = Outreach.open("memory://").start()
    with ThreadPoolExecutor(1) as pool, engine.events.subscribe() as stream:
        waiting = pool.submit(list, stream)
        engine._lifetime.running()._loop.result().call_soon_threadsafe(sys.exit)
        assert waiting.result(60) == []
        engine._lifetime.running()._thread.join(60)
        with pytest.raises(ConfigError, match="event loop has ended"):
            engine.workspaces.list()
    engine.close()
    del engine, stream, waiting
    gc.collect()


def test_the_exit_of_the_interpreter_closes_the_engine(tmp_path: Path) -> None:
    """Also where threads of a pool, or of the host's own, still listen for events; none keeps the process."""
    listening = """
def listen():
    with engine.events.subscribe() as stream:
        begun.append(1)
        for event in stream:
            pass
    print("ended")
begun = []
pool = ThreadPoolExecutor()
pool.submit(listen)
threading.Thread(target=listen).start()
threading.Thread(target=listen, daemon=True).start()
while len(begun) < 3:
    time.sleep(0.01)
"""
    assert said_by(listening, tmp_path).count("ended") >= 2
    assert not (tmp_path / "app.db-wal").exists()


def test_the_exit_closes_an_engine_that_nothing_refers_to(tmp_path: Path) -> None:
    """Such as one that a function has opened; one that was closed is not kept."""
    forgotten = """
import gc, weakref
def use():
    engine = Outreach.open(sys.argv[1], dispatch=True)
    engine.workspaces.create(NewWorkspace(name="Acme"))
    return weakref.ref(engine._lifetime)
again = use()
gc.collect()
print(again() is not None)
again().close()
gc.collect()
print(again() is None)
use()
gc.collect()
"""
    assert said_by(forgotten, tmp_path).split() == ["True", "True"]
    assert not (tmp_path / "app.db-wal").exists()


def test_after_the_main_thread_the_engine_says_why_it_is_closed(tmp_path: Path) -> None:
    """A thread that goes on working is told, and does not open it again."""
    late = """
def work():
    threading.main_thread().join()
    for use in (engine.workspaces.list, engine.start):
        try:
            use()
        except ConfigError as error:
            print(error.message)
engine.workspaces.list()
threading.Thread(target=work).start()
"""
    said = said_by(late, tmp_path).splitlines()
    assert len(said) == 2
    assert all(line.startswith("The interpreter is exiting") for line in said)


def test_an_adapter_that_blocks_the_loop_does_not_keep_the_process(tmp_path: Path) -> None:
    """The exit gives the engine its grace and a moment, and then goes."""
    blocked = """
import outreach.sync.calls, outreach.sync.lifetime, outreach.sync.thread
outreach.sync.lifetime._CLOSE_SECONDS = outreach.sync.calls._CANCEL_SECONDS = outreach.sync.thread._END_SECONDS = 0.1
logging.disable()
begun = threading.Event()
def block():
    begun.set()
    threading.Event().wait()
engine._lifetime._grace_seconds = 0.1
engine.start()._lifetime.running()._loop.result().call_soon_threadsafe(block)
begun.wait()
print("main thread ends", flush=True)
"""
    assert said_by(blocked, tmp_path) == "main thread ends\n"


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="such signals are of POSIX")
def test_a_signal_handler_that_closes_the_engine_never_waits_for_itself(tmp_path: Path) -> None:
    """A second signal comes while the first one's handler still closes it."""
    # Sent again until it is handled: a signal that comes as a thread begins to wait is handled after the wait.
    twice = """
closing = type(engine._lifetime._engine).__aexit__
async def slow(self, *given):
    while len(asked) < 2:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
    return await closing(self, *given)
asked = []
def handler(*_):
    asked.append(1)
    engine.close()
    print("closed", flush=True)
signal.signal(signal.SIGTERM, handler)
type(engine._lifetime._engine).__aexit__ = slow
engine.start()
os.kill(os.getpid(), signal.SIGTERM)
print(len(asked), flush=True)
"""
    said = said_by(twice, tmp_path).splitlines()
    assert set(said[:-1]) == {"closed"}
    assert len(said[:-1]) == int(said[-1]) >= 2


def test_a_call_from_a_signal_handler_while_its_thread_opens_the_engine_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither can it wait for the thread that it has interrupted."""
    start = EngineThread.start
    engine = Outreach.open("memory://")

    def interrupted(self: EngineThread) -> None:
        with pytest.raises(ConfigError, match="signal handler"):
            engine.close()
        start(self)

    monkeypatch.setattr(EngineThread, "start", interrupted)
    assert list(engine.workspaces.list()) == []
    engine.close()


@pytest.mark.soak("closing waits five seconds for its own call")
def test_a_signal_handler_may_close_the_engine_as_a_call_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its thread holds at that moment."""
    engine = Outreach.open("memory://").start()
    loop = engine._lifetime.running()._loop.result()
    hand_over = loop.call_soon_threadsafe

    def interrupted(*given: Any, **options: Any) -> Any:
        monkeypatch.undo()
        engine.close()
        return hand_over(*given, **options)

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(EngineClosed):
        engine.workspaces.list()


def test_a_database_in_memory_is_of_one_engine_without_await() -> None:
    """Two of them, each on its own loop, would write into one transaction; one after the other may have it."""
    storage = MemoryStorage()
    first, second = Outreach(storage), Outreach(storage)
    with first, pytest.raises(ConfigError, match="open on another event loop"):
        second.workspaces.list()
    with second:
        assert list(second.workspaces.list()) == []


def test_a_relative_database_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the program changes its directory before the first call, as daemons do."""
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    engine = Outreach.open("sqlite:///app.db", dispatch=True)
    monkeypatch.chdir(tmp_path / "there")
    with engine:
        engine.workspaces.list()
        assert (tmp_path / "app.db").exists()
        assert engine.health().dispatching
    assert list((tmp_path / "there").iterdir()) == []


def test_an_error_while_closing_at_the_exit_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are closed all the same."""
    engine = Outreach.open("memory://").start()
    close = EngineThread.close

    def failing(self: EngineThread, **options: Any) -> None:
        close(self, **options)
        raise OSError("disk")

    monkeypatch.setattr(EngineThread, "close", failing)
    engine._lifetime.exit()
    assert [record.getMessage() for record in caplog.records] == ["The engine could not be closed at the exit."]


def test_an_engine_that_was_not_open_is_opened_anew_after_a_fork(tmp_path: Path) -> None:
    """As under gunicorn and Celery, which fork after the modules were imported; also one that was closed before."""
    forking = """
def work():
    print(len(engine.workspaces.list()))
    engine.close()
in_child(work)
engine.workspaces.create(NewWorkspace(name="Acme"))
engine.close()
in_child(work)
in_child(work)
"""
    assert said_by(forking, tmp_path).split() == ["0", "1", "1"]


def test_an_engine_that_was_open_is_refused_after_a_fork(tmp_path: Path) -> None:
    """In words that name the way out; the parent's goes on, and the child may close what it has not."""
    forking = """
def work():
    for use in (engine.workspaces.list, engine.start, engine.close, engine.workspaces.list):
        try:
            use()
        except ConfigError as error:
            print(error.message)
engine.workspaces.create(NewWorkspace(name="Acme"))
in_child(work)
print(len(engine.workspaces.list()))
"""
    *refused, count = said_by(forking, tmp_path).splitlines()
    assert len(refused) == 3
    assert all(re.match(r"This engine was open in process \d+ as this one, \d+, was forked", line) for line in refused)
    assert count == "1"


def test_a_database_that_was_open_is_refused_to_another_engine_after_a_fork(tmp_path: Path) -> None:
    """What the child commits would be lost as the parent closes; once that has closed, a child may have it."""
    forking = """
def work():
    try:
        print(len(Outreach.open(sys.argv[1]).workspaces.list()))
    except ConfigError as error:
        print(error.message)
engine.workspaces.create(NewWorkspace(name="Acme"))
in_child(work)
engine.close()
in_child(work)
"""
    refused, count = said_by(forking, tmp_path).splitlines()
    assert re.match(r"'.*app.db' was open in process (\d+) as this one, (?!\1)\d+, was forked from it", refused)
    assert count == "1"


def test_a_lock_that_another_thread_held_is_free_after_a_fork(tmp_path: Path) -> None:
    """A thread of the parent may be opening its engine at that moment."""
    forking = """
engine._lifetime._lock.acquire()
in_child(lambda: print(len(engine.workspaces.list())))
engine._lifetime._lock.release()
"""
    assert said_by(forking, tmp_path).split() == ["0"]


def test_a_process_of_multiprocessing_closes_its_engine(tmp_path: Path) -> None:
    """It runs no handlers of atexit."""
    forking = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=lambda: engine.workspaces.create(NewWorkspace(name="Acme")))
child.start()
child.join()
print(child.exitcode, closed())
"""
    assert said_by(forking, tmp_path).split() == ["0", "True"]


INTERRUPTED = """
workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
with engine.events.subscribe() as stream:
    try:
        print("waiting", flush=True)
        next(stream)
    except KeyboardInterrupt:
        print("interrupted", len(engine.workspaces.list()), flush=True)
"""


def test_ctrl_c_ends_a_wait(tmp_path: Path) -> None:
    """The thread that waits is interrupted at once, and the engine goes on."""
    process = script(INTERRUPTED, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, said, errors) == (0, "interrupted 1\n", "")
    assert not (tmp_path / "app.db-wal").exists()


def test_the_interpreter_still_has_the_hook_that_closes_in_time() -> None:
    """Without it `atexit` is taken, which comes after the wait for threads; the tests of the exit show the rest."""
    assert hasattr(threading, "_register_atexit")
