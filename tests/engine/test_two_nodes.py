"""Two nodes on one PostgreSQL: an idempotency key that one of them holds, and a node that dies with it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from outreach import EngineConfig, NewMessage, NewNumber, NewSmsCampaign, Outreach, Workspace, WorkspaceMode
from outreach.core.clock import SystemClock
from outreach.core.vault import Vault
from outreach.errors import RequestInProgress
from outreach.ledger.access import idempotency as operations
from outreach.services import idempotency
from outreach.services.idempotency import Idempotency, IdempotencyGuard
from outreach.storage.postgres import PostgresStorage, postgres_storage_from_url
from outreach.testing.clock import ShiftedClock
from tests import postgres
from tests.engine.rig import (
    QUICK,
    WatchedStorage,
    contacts,
    given_workspace,
    reaches,
    start_campaign,
    until,
    until_true,
)
from tests.fake_provider import CREDENTIALS, FakeAdapter

pytestmark = pytest.mark.anyio

SPRING: Final = NewSmsCampaign(name="Spring", body="Hi", carrier="twilio", from_number="+14155550199")
MESSAGE: Final = NewMessage(to="+14155550101", body="Hi", from_number="+14155550199", carrier="twilio")

Make = Callable[[Outreach, Workspace], Awaitable[Any]]

MAKING: Final[dict[str, Make]] = {
    "message": lambda engine, workspace: engine.messages.send(workspace.id, MESSAGE, idempotency_key="k"),
    "campaign": lambda engine, workspace: engine.campaigns.create_sms(
        workspace.id, SPRING, contacts(3), idempotency_key="k"
    ),
}

LISTED: Final = {"message": "SELECT id FROM outreach.messages", "campaign": "SELECT id FROM outreach.campaigns"}

HOLDER: Final = """
import sys

import anyio

from outreach import Outreach
from outreach.core.clock import SystemClock
from outreach.storage.postgres import postgres_storage_from_url
from tests.engine.rig import WatchedStorage
from tests.engine.test_two_nodes import MAKING


async def hold(_):
    print("claimed", flush=True)
    await anyio.sleep_forever()


async def main():
    storage = WatchedStorage(postgres_storage_from_url(sys.argv[1], clock=SystemClock()))
    async with Outreach(storage) as engine:
        storage.after_write = hold
        await MAKING[sys.argv[2]](engine, await engine.workspaces.get(sys.argv[3]))


anyio.run(main)
"""
"""A node that claims the key, and stands still before it makes anything."""


@asynccontextmanager
async def node(url: str, config: EngineConfig | None = None) -> AsyncIterator[tuple[Outreach, WatchedStorage]]:
    """Open a node that does not dispatch, with connections of its own."""
    storage = WatchedStorage(postgres_storage_from_url(url, clock=SystemClock()))
    async with Outreach(storage, config=config or EngineConfig()) as engine:
        yield engine, storage


async def made(url: str, kind: str) -> list[str]:
    """Return the ids of what there is."""
    rows = await asyncio.to_thread(postgres.server().execute, LISTED[kind], url.rpartition("/")[2])
    return [identifier for (identifier,) in rows]


def identifier(thing: Any) -> str:
    """Return the id of what was made."""
    return str(thing.campaign.id if hasattr(thing, "campaign") else thing.id)


class _Hold:
    """Holds a node after its first write, which claims the key."""

    def __init__(self) -> None:
        self.claimed, self.go_on = anyio.Event(), anyio.Event()

    async def __call__(self, _: object) -> None:
        """Wait."""
        self.claimed.set()
        await self.go_on.wait()


@pytest.mark.parametrize("kind", MAKING)
async def test_a_second_node_waits_for_the_key_and_gets_what_the_first_one_made(kind: str) -> None:
    """docs/interface.md#safe-retry: one thing, and one answer of both, while the first request still runs."""
    url, hold = postgres.empty_database(), _Hold()
    async with node(url) as (one, first), node(url) as (two, second):
        workspace = await given_workspace(one)
        first.after_write = hold
        answers: dict[int, Any] = {}

        async def ask(number: int, engine: Outreach) -> None:
            answers[number] = await MAKING[kind](engine, workspace)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, 1, one)
                await hold.claimed.wait()
                asked = second.writes
                tasks.start_soon(ask, 2, two)
                await until_true(lambda: second.writes >= asked + 3)
                assert answers == {}
                assert await made(url, kind) == []
                hold.go_on.set()
        assert answers[1] == answers[2]
        assert await made(url, kind) == [identifier(answers[1])]


async def test_the_response_to_the_first_request_is_that_to_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte, and told by the commit: the second node does not wait for its next look."""
    monkeypatch.setattr(idempotency, "_LISTENING_POLL_SECONDS", 600.0)
    claim_key, asked = operations.claim_key, 0

    def counted(*args: Any, **given: Any) -> operations.KeyClaim:
        nonlocal asked
        asked += 1
        return claim_key(*args, **given)

    monkeypatch.setattr(operations, "claim_key", counted)
    url = postgres.empty_database()
    config = EngineConfig(idempotency_wait_seconds=600.0)
    async with Outreach.open(url, config=config) as one, Outreach.open(url, config=config) as two:
        workspace = await given_workspace(one)
        answers: list[str] = []
        runs: list[int] = []
        claimed, go_on = anyio.Event(), anyio.Event()

        async def ask(number: int, engine: Outreach) -> None:
            async def make(once: IdempotencyGuard[str]) -> str:
                runs.append(number)
                claimed.set()
                await go_on.wait()
                return f"made by {number}"

            async def recall(stored: bytes) -> str:
                return stored.decode()

            keys = Idempotency(engine.campaigns._moves._context)
            made = await keys.once(
                workspace.id,
                "things.make",
                "k",
                content=1,
                make=make,
                remember=lambda thing: thing.encode(),
                recall=recall,
            )
            answers.append(made)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, 1, one)
                await claimed.wait()
                tasks.start_soon(ask, 2, two)
                await until_true(lambda: isinstance(two._storage, PostgresStorage) and two._storage.is_listening)

                async def asks_no_more() -> bool:
                    before = asked
                    await anyio.sleep(0.3)
                    return before == asked

                await until(asks_no_more)
                go_on.set()
        assert answers == ["made by 1"] * 2
        assert runs == [1]


@contextmanager
def _holder(url: str, kind: str, workspace: Workspace) -> Iterator[subprocess.Popen[str]]:
    """Run a node in a process of its own that has claimed the key and makes nothing."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", HOLDER, url, kind, workspace.id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "claimed\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("kind", MAKING)
async def test_a_second_node_makes_it_when_the_first_one_was_killed(kind: str) -> None:
    """It waits until the claim of the dead process is over, and not longer; one thing is made."""
    url = postgres.empty_database()
    async with node(url) as (two, second):
        workspace = await given_workspace(two)
        holder = _holder(url, kind, workspace)
        process = await asyncio.to_thread(holder.__enter__)
        try:
            # The claim is renewed by who makes it, whom nobody can ask any more.
            process.kill()
            asked = second.writes
            with anyio.move_on_after(1.0) as waiting:
                await MAKING[kind](two, workspace)
            assert waiting.cancelled_caught
            assert second.writes > asked
            assert await made(url, kind) == []
            _let_claims_end(url)
            with anyio.fail_after(60):
                thing = await MAKING[kind](two, workspace)
            assert await made(url, kind) == [identifier(thing)]
        finally:
            await asyncio.to_thread(holder.__exit__, None, None, None)


@pytest.mark.parametrize("kind", MAKING)
async def test_a_first_node_that_comes_back_too_late_makes_nothing(kind: str) -> None:
    """It stood still for longer than its claim, and another one has made it meanwhile."""
    url, hold = postgres.empty_database(), _Hold()
    async with node(url) as (one, first), node(url) as (two, _):
        workspace = await given_workspace(one)
        first.after_write = hold
        refused = anyio.Event()

        async def ask() -> None:
            with pytest.raises(RequestInProgress):
                await MAKING[kind](one, workspace)
            refused.set()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await hold.claimed.wait()
                _let_claims_end(url)
                thing = await MAKING[kind](two, workspace)
                hold.go_on.set()
                await refused.wait()
        assert await made(url, kind) == [identifier(thing)]
        assert await MAKING[kind](two, workspace) == thing


async def test_a_node_that_does_not_dispatch_goes_by_the_clock_of_the_database() -> None:
    """Also when its own one is set while it runs: as it writes something, now and then."""
    clock = ShiftedClock()
    storage = postgres_storage_from_url(postgres.empty_database(), clock=clock)
    clock.shift(timedelta(minutes=-3))
    async with Outreach(storage, clock=clock) as engine:
        await given_workspace(engine)
        for wrong in (timedelta(minutes=5), timedelta(hours=-1)):
            assert _differs(engine) < timedelta(seconds=5)
            clock.shift(wrong)
            assert _differs(engine) > timedelta(minutes=4)
            await given_workspace(engine)
            assert _differs(engine) > timedelta(minutes=4)
            clock.advance(10)
            await given_workspace(engine)
        assert _differs(engine) < timedelta(seconds=5)


async def test_a_node_with_another_key_leaves_the_work_to_the_one_that_has_the_accounts_key(fake: FakeAdapter) -> None:
    """It stops no campaign, whether it dispatched before the account was there or starts later, and says why."""
    url, clock = postgres.empty_database(), SystemClock()

    def worker(key: str) -> Outreach:
        storage = postgres_storage_from_url(url, clock=clock, workers=3)
        return Outreach(storage, dispatch=True, config=QUICK, vault=Vault(keys=key * 43 + "="))

    def refuses(node: Outreach) -> bool:
        return node.health().refused_reason == "secret_key"

    async with worker("B") as wrong, worker("A") as right:
        await until_true(lambda: wrong.health().dispatching and right.health().dispatching)
        workspace = await given_workspace(
            right, mode=WorkspaceMode.LIVE, sms_campaigns_enabled=True, contact_hours=False
        )
        await right.numbers.create(workspace.id, NewNumber(phone="+14155550100", carrier="twilio"))
        await right.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        campaigns = [await start_campaign(right, workspace, 3, name=f"Spring {each}") for each in range(4)]
        for campaign in campaigns:
            await reaches(right, campaign, "completed")
        async with worker("C") as later:
            await until_true(lambda: refuses(later))
        assert right.health().dispatching
    assert len({request.to for request in fake.carrier.requests}) == 3
    assert len(fake.carrier.requests) == 12


def _differs(engine: Outreach) -> timedelta:
    [(there,)] = postgres.server().execute("SELECT clock_timestamp()")
    return abs(engine.now() - there)


def _let_claims_end(url: str) -> None:
    """Let as much time have passed since the claims of keys as they last."""
    changed = postgres.server().execute(
        "WITH fence AS (UPDATE outreach.fence SET version = version + 1, writer = 'test') "
        "UPDATE outreach.idempotency_keys SET locked_until = '2026-01-01T00:00:00.000000Z' RETURNING key",
        url.rpartition("/")[2],
    )
    assert len(changed) == 1
