"""Webhooks over a database and a real receiver."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs
import pytest
from standardwebhooks import Webhook as Verifier

from outreach import Conflict, NewWorkspace, Outreach
from outreach.core.config import EngineConfig
from outreach.dispatch.webhook_endpoint import Progress
from outreach.dispatch.webhook_records import StoredWebhooks
from outreach.dispatch.webhooks import EndpointPlace
from outreach.models import NewWebhook, Webhook, WebhookReplay, WebhookUpdate
from outreach.models.webhook import WebhookHold
from outreach.protocols.instrumentation import Instrumentation
from outreach.rules.webhook_queue import EndpointHealth
from outreach.rules.webhooks import DOWN_AFTER
from outreach.testing.fault_server import Answer, FaultServer

pytestmark = pytest.mark.anyio

CONFIG = EngineConfig(webhook_allow="127.0.0.0/8", webhook_allow_http=True, change_poll_seconds=0.05)


class Notes(Instrumentation):
    """Notes the answers of webhooks."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, int | None, str | None]] = []

    def webhook_answered(self, webhook_id: str, *, status: int | None, error: str | None, seconds: float) -> None:
        """Note it."""
        assert 0 < seconds < 10
        self.answers.append((webhook_id, status, error))


async def until(server: FaultServer, count: int) -> None:
    """Wait until so many requests have come."""
    async with asyncio.timeout(20):
        while len(server.requests) < count:  # noqa: ASYNC110 - the database notifies nobody here
            await asyncio.sleep(0.05)


async def free(engine: Outreach, webhook: Webhook) -> None:
    """Wait until what came of the requests is stored, and nothing more is due soon."""
    async with asyncio.timeout(20):
        while (await engine.webhooks.cursor(webhook.workspace_id, webhook.id)).holder:  # noqa: ASYNC110 - the database notifies nobody here
            await asyncio.sleep(0.05)


async def opt_out(engine: Outreach, workspace: str, number: int) -> None:
    """Make an event."""
    await engine.unsubscribes.add(workspace, f"+1212555{number:04}")


async def test_events_are_delivered_signed_and_stored(tmp_path: Path) -> None:
    """With ids of their own, and without a number in a thin body."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with (
        FaultServer(lambda _: Answer(status=204)) as server,
        Outreach.open(url, dispatch=True, config=CONFIG) as engine,
    ):
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        made = await engine.webhooks.create(workspace, NewWebhook(url=f"{server.url}/hooks", types=["contact.*"]))
        for number in range(5):
            await opt_out(engine, workspace, number)
        await until(server, 5)
        received = server.requests[0]
        assert made.secret is not None
        verified = Verifier(made.secret).verify(received.body, dict(received.headers))
        assert verified["type"] == "contact.opted_out"
        assert "phone" not in verified["data"]
        assert len({one.headers["webhook-id"] for one in server.requests}) == 5
        async with asyncio.timeout(10):
            while not (attempts := (await engine.webhooks.list_attempts(workspace, made.webhook.id)).items):  # noqa: ASYNC110 - the database notifies nobody here
                await asyncio.sleep(0.1)
        assert {(one.status, one.type, one.error) for one in attempts} == {(204, "contact.opted_out", None)}


async def test_a_test_is_delivered_beside_the_events(tmp_path: Path) -> None:
    """Also by an endpoint that wants other types; each call has one of its own."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with (
        FaultServer(lambda _: Answer(status=204)) as server,
        Outreach.open(url, dispatch=True, config=CONFIG) as engine,
    ):
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        made = await engine.webhooks.create(workspace, NewWebhook(url=server.url, types=["call.ended"]))
        for count in (1, 2):
            await engine.webhooks.test(workspace, made.webhook.id)
            await until(server, count)
        assert [json.loads(one.body)["type"] for one in server.requests] == ["webhook.test"] * 2
        assert len({one.headers["webhook-id"] for one in server.requests}) == 2
        await engine.webhooks.pause(workspace, made.webhook.id)
        with pytest.raises(Conflict, match="paused"):
            await engine.webhooks.test(workspace, made.webhook.id)


async def test_a_test_of_an_endpoint_that_is_down_is_its_next_probe(tmp_path: Path) -> None:
    """A person who has mended the receiver learns so at once, and then everything comes."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with (
        FaultServer(lambda _: Answer(status=500)) as server,
        Outreach.open(url, dispatch=True, config=CONFIG) as engine,
    ):
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        webhook = (await engine.webhooks.create(workspace, NewWebhook(url=server.url, concurrency=1))).webhook
        for number in range(DOWN_AFTER):
            await opt_out(engine, workspace, number)
        await until(server, DOWN_AFTER)
        await free(engine, webhook)
        assert (await engine.webhooks.cursor(workspace, webhook.id)).probe_at is not None
        server.answer = lambda _: Answer(status=204)
        sent = len(server.requests)
        await engine.webhooks.test(workspace, webhook.id)
        await until(server, sent + 1 + DOWN_AFTER)
        assert json.loads(server.requests[sent].body)["type"] == "webhook.test"


async def test_a_refused_event_is_held_and_comes_again_after_a_restart_with_its_id(tmp_path: Path) -> None:
    """And with its body; a replay brings it once more."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with FaultServer(lambda _: Answer(status=500)) as server:
        async with Outreach.open(url, dispatch=True, config=CONFIG) as engine:
            workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
            webhook = (await engine.webhooks.create(workspace, NewWebhook(url=server.url, payload="full"))).webhook
            await opt_out(engine, workspace, 1)
            await until(server, 1)
            await free(engine, webhook)
            (hold,) = await held(engine, webhook)
            assert hold.attempts == 1
        server.answer = lambda _: Answer()
        async with Outreach.open(url, dispatch=True, config=CONFIG) as engine:
            await until(server, 2)
            await free(engine, webhook)
            cursor = await engine.webhooks.cursor(workspace, webhook.id)
            assert (cursor.failures, cursor.failing_since) == (0, None)
            await engine.webhooks.replay(workspace, webhook.id, WebhookReplay(number=1, only=True))
            await until(server, 3)

    first, second, third = server.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == third.headers["webhook-id"]
    assert json.loads(first.body) == json.loads(second.body)
    assert json.loads(first.body)["data"]["phone"] == "+12125550001"


async def test_410_disables_with_a_reason_and_an_entry_of_the_audit_log(tmp_path: Path) -> None:
    """The instrumentation gets the answer. An enabled webhook goes on."""
    notes = Notes()
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with (
        FaultServer(lambda _: Answer(status=410)) as server,
        Outreach.open(url, dispatch=True, config=CONFIG, instrumentation=[notes]) as engine,
    ):
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        webhook = (await engine.webhooks.create(workspace, NewWebhook(url=server.url))).webhook
        await opt_out(engine, workspace, 1)
        async with asyncio.timeout(10):
            while (found := await engine.webhooks.get(workspace, webhook.id)).state == "active":  # noqa: ASYNC110 - the database notifies nobody here
                await asyncio.sleep(0.05)
        assert (found.state, found.reason) == ("disabled", "gone")
        (entry, *_) = await engine.audit.list(workspace)
        assert entry.action == "webhook.disable"
        assert notes.answers == [(webhook.id, 410, None)]
        server.answer = lambda _: Answer()
        await engine.webhooks.enable(workspace, webhook.id)
        await until(server, 2)


async def given_an_event_held_for_an_hour(engine: Outreach, server: FaultServer) -> tuple[str, str]:
    """Return a workspace and an endpoint that has refused an event."""
    workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
    webhook = (await engine.webhooks.create(workspace, NewWebhook(url=f"{server.url}/a"))).webhook
    await opt_out(engine, workspace, 1)
    await until(server, 1)
    async with asyncio.timeout(10):
        while (await engine.webhooks.cursor(workspace, webhook.id)).holder or not await held(engine, webhook):  # noqa: ASYNC110 - the database notifies nobody here
            await asyncio.sleep(0.05)
    (hold,) = await held(engine, webhook)
    later = attrs.evolve(hold, next_at=engine.now() + timedelta(hours=1))
    await engine._storage.write(lambda tx: tx.webhook_holds.put(later))
    return workspace, webhook.id


async def held(engine: Outreach, webhook: Webhook) -> Sequence[WebhookHold]:
    """Return what an endpoint holds."""
    return await engine._storage.read(lambda tx: tx.webhook_holds.list(webhook.workspace_id, webhook.id, limit=9))


async def test_a_changed_url_is_tried_at_once(tmp_path: Path) -> None:
    """With what the old one has refused; then nothing is held."""
    async with (
        FaultServer(lambda request: Answer(status=500 if request.path == "/a" else 204)) as server,
        Outreach.open(f"sqlite:///{tmp_path / 'a.db'}", dispatch=True, config=CONFIG) as engine,
    ):
        workspace, webhook_id = await given_an_event_held_for_an_hour(engine, server)
        webhook = await engine.webhooks.update(workspace, webhook_id, WebhookUpdate(url=f"{server.url}/b"))
        await until(server, 2)
        assert server.requests[1].path == "/b"
        async with asyncio.timeout(10):
            while await held(engine, webhook):  # noqa: ASYNC110 - the database notifies nobody here
                await asyncio.sleep(0.05)


async def test_held_events_of_types_that_are_wanted_no_more_are_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """That is logged; nothing is sent."""
    caplog.set_level(logging.INFO, "outreach")
    async with (
        FaultServer(lambda _: Answer(status=500)) as server,
        Outreach.open(f"sqlite:///{tmp_path / 'a.db'}", dispatch=True, config=CONFIG) as engine,
    ):
        workspace, webhook_id = await given_an_event_held_for_an_hour(engine, server)
        webhook = await engine.webhooks.update(workspace, webhook_id, WebhookUpdate(types=["call.ended"]))
        async with asyncio.timeout(10):
            while await held(engine, webhook):  # noqa: ASYNC110 - the database notifies nobody here
                await asyncio.sleep(0.05)
            while "webhook_dropped" not in [getattr(record, "action", "") for record in caplog.records]:  # noqa: ASYNC110 - a log notifies nobody
                await asyncio.sleep(0.05)
        assert len(server.requests) == 1


async def test_an_endpoint_whose_probe_found_nothing_to_send_gets_the_next_event(tmp_path: Path) -> None:
    """It was down, and what it was to get is not wanted any more: no answer ends that, and it is tried all the same."""
    async with Outreach.open(f"sqlite:///{tmp_path / 'a.db'}", config=CONFIG) as engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        webhook = (await engine.webhooks.create(workspace, NewWebhook(url="http://127.0.0.1:8000/"))).webhook
        stored = StoredWebhooks(
            storage=engine._storage, clock=engine._clock, ids=engine._ids, secrets=engine.webhooks._signing_keys
        )
        place = EndpointPlace(workspace, webhook.id)
        records = stored.of(place)
        opened = await records.open()
        assert opened is not None
        probed = EndpointHealth(
            consecutive_failures=9, failing_since=engine.now(), next_probe_at=engine.now() - timedelta(seconds=1)
        )
        done = Progress(position=opened.position, health=probed, changed={}, attempts=[], disabled=None, release=True)
        assert await records.store(done)
        stored.ended(place, None)
        assert await stored.due(frozenset()) == []
        await opt_out(engine, workspace, 1)
        assert await stored.due(frozenset()) == [place]


async def test_an_endpoint_that_is_delivered_to_is_seen_to_be_paused_and_removed(tmp_path: Path) -> None:
    """Progress, and what happens to other endpoints, leave it as it was opened."""
    async with Outreach.open(f"sqlite:///{tmp_path / 'a.db'}", config=CONFIG) as engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        new = NewWebhook(url="http://127.0.0.1:8000/")
        webhook, other = [(await engine.webhooks.create(workspace, new)).webhook for _ in range(2)]
        stored = StoredWebhooks(
            storage=engine._storage, clock=engine._clock, ids=engine._ids, secrets=engine.webhooks._signing_keys
        )
        records = stored.of(EndpointPlace(workspace, webhook.id))
        assert await records.open() is not None
        health = EndpointHealth()
        done = Progress(position=1, health=health, changed={}, attempts=[], disabled=None, release=False)
        assert await records.store(done)
        await engine.webhooks.remove(workspace, other.id)
        assert await records.is_same()
        await engine.webhooks.pause(workspace, webhook.id)
        assert not await records.is_same()
        await engine.webhooks.enable(workspace, webhook.id)
        assert await records.open() is not None
        assert await records.is_same()
        await engine.webhooks.remove(workspace, webhook.id)
        assert not await records.is_same()


async def test_an_event_of_a_type_that_was_added_is_not_passed_over(tmp_path: Path) -> None:
    """A process that had opened the endpoint before reads on by the types of then."""
    async with Outreach.open(f"sqlite:///{tmp_path / 'a.db'}", config=CONFIG) as engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        new = NewWebhook(url="http://127.0.0.1:8000/", types=["call.ended"])
        webhook = (await engine.webhooks.create(workspace, new)).webhook
        stored = StoredWebhooks(
            storage=engine._storage, clock=engine._clock, ids=engine._ids, secrets=engine.webhooks._signing_keys
        )
        records = stored.of(EndpointPlace(workspace, webhook.id))
        opened = await records.open()
        assert opened is not None
        await engine.webhooks.update(workspace, webhook.id, WebhookUpdate(types=["contact.*"]))
        await opt_out(engine, workspace, 1)
        stretch = await records.read(opened.position)
        assert (stretch.events, stretch.until) == ([], opened.position + 1)
        passed = Progress(
            position=stretch.until, health=EndpointHealth(), changed={}, attempts=[], disabled=None, release=False
        )
        assert not await records.store(passed)
        assert await records.open() is not None
        assert [one.type for one in (await records.read(opened.position)).events] == ["contact.opted_out"]
        assert (await engine.webhooks.cursor(workspace, webhook.id)).position == opened.position
