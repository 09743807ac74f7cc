"""Calls into the engine's loop: from any thread, with what belongs to that thread, and to their end."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from outreach import (
    ConfigError,
    EngineConfig,
    InvalidRequest,
    NewMessage,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    NotFound,
)
from outreach.providers.http.request_gate import Aborted
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.sync import Outreach, fail_after
from outreach.sync.calls import Call
from outreach.sync.streams import Items
from outreach.testing.builders import new_id
from outreach.testing.scripted import ScriptedCarrier
from tests.sync.conftest import QUICK

CAMPAIGN = NewSmsCampaign(name="Spring", body="Hi", carrier="twilio", from_number="+14155550199")
MESSAGE = NewMessage(to="+14155550102", body="Hi", from_number="+14155550199", carrier="twilio")


def people(count: int) -> Iterator[NewRecipient]:
    """Yield contacts."""
    for number in range(count):
        yield NewRecipient(phone_number=f"+1415555{number:04}")


def test_an_interrupt_after_the_end_of_a_call_waits_for_nothing(
    engine: Outreach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark of the end has been taken from the queue, and does not come again."""
    run_jobs = Call._run_jobs

    def interrupted(self: Call[Any], until: float | None) -> bool:
        run_jobs(self, until)
        del self._jobs
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Call, "_run_jobs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.workspaces.create(NewWorkspace(name="Acme"))
    assert [one.name for one in engine.workspaces.list()] == ["Acme"]


def test_threads_share_one_engine() -> None:
    """The first call of many at once opens it, once."""
    engine = Outreach.open("memory://")
    try:
        with ThreadPoolExecutor(8) as pool:
            made = [pool.submit(engine.workspaces.create, NewWorkspace(name=f"Acme {number}")) for number in range(40)]
            names = {one.result(60).name for one in made}
        assert {workspace.name for workspace in engine.workspaces.list()} == names
        assert len(names) == 40
    finally:
        engine.close()


def test_contacts_are_drawn_in_the_thread_that_calls(engine: Outreach) -> None:
    """An SQLite cursor of the host, which no other thread may touch, is a source of contacts."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    database = sqlite3.connect(":memory:")
    database.execute("create table people (phone text)")
    database.executemany("insert into people values (?)", [(one.phone_number,) for one in people(250)])
    rows = ({"phone_number": phone} for (phone,) in database.execute("select phone from people order by phone"))
    created = engine.campaigns.create_sms(workspace.id, CAMPAIGN, rows)
    database.close()
    assert created.campaign.counters.total == 250
    found = [recipient.phone for recipient in engine.campaigns.iter_recipients(workspace.id, created.campaign.id)]
    assert found == [one.phone_number for one in people(250)]


def test_contacts_may_come_from_the_engine_itself(engine: Outreach) -> None:
    """A generator calls the engine while the engine draws from it."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    first = engine.campaigns.create_sms(workspace.id, CAMPAIGN, people(120))
    again = (
        NewRecipient(phone_number=recipient.phone_number)
        for recipient in engine.campaigns.iter_recipients(workspace.id, first.campaign.id)
    )
    assert engine.campaigns.create_sms(workspace.id, CAMPAIGN, again).campaign.counters.total == 120


def test_an_error_of_the_source_is_raised_and_nothing_is_created(engine: Outreach) -> None:
    """Itself, with the place where it was raised."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))

    def broken() -> Iterator[NewRecipient]:
        yield from people(150)
        raise LookupError("no more rows")

    with pytest.raises(LookupError, match="no more rows") as caught:
        engine.campaigns.create_sms(workspace.id, CAMPAIGN, broken())
    assert "broken" in {frame.name for frame in traceback.extract_tb(caught.tb)}
    assert engine.campaigns.list(workspace.id).total == 0


@pytest.mark.parametrize("source", [None, "+14155550102", {"phone_number": "+14155550102"}, 5])
def test_what_is_no_source_of_contacts_is_refused_as_ever(engine: Outreach, source: Any) -> None:
    """In the words of the service."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    with pytest.raises(InvalidRequest, match="must be an iterable of contacts"):
        engine.campaigns.create_sms(workspace.id, CAMPAIGN, source)


def test_an_error_shows_the_line_that_called_and_the_service(engine: Outreach) -> None:
    """Its traceback begins in the host's code and ends where it was raised."""
    with pytest.raises(NotFound) as caught:
        engine.workspaces.get(new_id())
    frames = traceback.extract_tb(caught.tb)
    assert frames[0].name == "test_an_error_shows_the_line_that_called_and_the_service"
    assert [frame.name for frame in frames if frame.filename.endswith("services/tenants/workspaces.py")]


def test_items_end_with_their_error_after_what_came_before(engine: Outreach) -> None:
    """An iterator that cannot go on raises once, and is over then."""
    items = engine.unsubscribes.iter_all(new_id())
    with pytest.raises(NotFound):
        next(items)
    assert list(items) == []


def test_an_interrupted_iteration_never_seems_complete(engine: Outreach) -> None:
    """It returns what it had read, and then raises however often it is asked."""

    async def slow() -> AsyncIterator[int]:
        yield 1
        yield 2
        await asyncio.Event().wait()

    items = Items(engine._lifetime.running(), slow())
    with pytest.raises(TimeoutError), fail_after(0.2):
        next(items)
    assert [next(items), next(items)] == [1, 2]
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="was interrupted"):
            next(items)


def test_a_call_that_takes_too_long_is_cancelled(engine: Outreach) -> None:
    """`fail_after` bounds the calls within it; the engine goes on."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))

    def endless() -> Iterator[NewRecipient]:
        while True:
            yield from people(1)

    with fail_after(60), pytest.raises(TimeoutError), fail_after(0.3):
        engine.campaigns.create_sms(workspace.id, CAMPAIGN, endless())
    assert engine.campaigns.list(workspace.id).total == 0
    with pytest.raises(TimeoutError), fail_after(0.05), fail_after(60), engine.events.subscribe() as stream:
        next(stream)


def test_a_call_may_be_given_any_time(engine: Outreach) -> None:
    """Who reckons without a deadline says `inf`."""
    with fail_after(math.inf), engine.events.subscribe() as stream:
        engine.workspaces.create(NewWorkspace(name="Acme"))
        with Outreach.open("memory://") as another:
            assert list(another.workspaces.list()) == []
        with pytest.raises(TimeoutError):
            stream.next(timeout=0.05)


def test_a_slow_source_of_contacts_is_left_at_the_deadline(engine: Outreach, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is looked at after each of its contacts that takes long, and not after a hundred."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    passed = 0.0

    def slow() -> Iterator[NewRecipient]:
        nonlocal passed
        for one in people(1000):
            passed += 1000.0
            yield one

    monkeypatch.setattr("outreach.sync.calls.time", SimpleNamespace(monotonic=lambda: time.monotonic() + passed))
    with pytest.raises(TimeoutError), fail_after(2500):
        engine.campaigns.create_sms(workspace.id, CAMPAIGN, slow())
    assert passed == 3000.0
    assert engine.campaigns.list(workspace.id).total == 0


def test_a_source_of_contacts_that_outlasts_the_engine_raises_that_it_was_closed() -> None:
    """Its thread learns of the closing with the next contact, however long that takes."""
    engine = Outreach.open("memory://", config=EngineConfig(stop_grace_seconds=0.05))
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    drawing, closed = threading.Event(), threading.Event()

    def stuck() -> Iterator[NewRecipient]:
        drawing.set()
        assert closed.wait(60)
        yield from people(1)

    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(engine.campaigns.create_sms, workspace.id, CAMPAIGN, stuck())
        assert drawing.wait(60)
        engine.close()
        closed.set()
        with pytest.raises(ConfigError, match="closed while the call waited"):
            creating.result(60)


def test_a_loop_that_an_adapter_blocks_does_not_keep_a_call_for_ever(
    engine: Outreach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller goes on after `fail_after` and a moment; the loop does once it is free."""
    monkeypatch.setattr("outreach.sync.calls._CANCEL_SECONDS", 0.05)
    engine.workspaces.list()
    blocked = threading.Event()
    engine._lifetime.running()._loop.result().call_soon_threadsafe(blocked.wait, 60)
    with pytest.raises(TimeoutError), fail_after(0.05):
        engine.workspaces.list()
    blocked.set()
    assert list(engine.workspaces.list()) == []


def test_a_result_of_the_last_moment_is_not_thrown_away(engine: Outreach) -> None:
    """What was committed as the time was over is returned, so that its caller knows of it."""

    async def committing() -> str:
        with suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep_forever()
        return "committed"

    assert engine._lifetime.running().run(lambda _: committing(), timeout=0.05) == "committed"


def test_an_interrupt_cancels_the_call(engine: Outreach) -> None:
    """Ctrl-C while contacts are drawn: nothing is created, and the engine goes on."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))

    def interrupted() -> Iterator[NewRecipient]:
        yield from people(300)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.campaigns.create_sms(workspace.id, CAMPAIGN, interrupted())
    assert engine.campaigns.list(workspace.id).total == 0
    assert engine.campaigns.create_sms(workspace.id, CAMPAIGN, people(2)).campaign.counters.total == 2


def test_a_cancellation_that_nobody_has_asked_for_ends_that_call_alone(engine: Outreach) -> None:
    """The group of all calls would take it for its own, and the loop would end."""

    async def cancelled() -> None:
        shared = asyncio.get_running_loop().create_future()
        shared.cancel()
        await shared

    with pytest.raises(Aborted, match="CancelledError"):
        engine._lifetime.running().run(lambda _: cancelled())
    assert list(engine.workspaces.list()) == []


def test_an_adapter_that_calls_the_engine_is_refused_in_words() -> None:
    """On the loop's own thread it would wait for itself."""
    said: SimpleQueue[str] = SimpleQueue()

    class Calling(ScriptedCarrier):
        async def send(self, *arguments: Any, **named: Any) -> Any:
            """Call the engine for synchronous code from its own loop."""
            for use in (engine.workspaces.list, engine.start, engine.close):
                try:
                    use()
                except ConfigError as error:
                    said.put(error.message)
            return await super().send(*arguments, **named)

    engine = Outreach(MemoryStorage(), dispatch=True, config=QUICK, sandbox_carrier=Calling())
    with engine:
        workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
        engine.messages.send(workspace.id, MESSAGE)
        for _ in range(3):
            assert "thread of its own event loop" in said.get(timeout=60)
