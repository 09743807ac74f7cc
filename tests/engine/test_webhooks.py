"""Webhooks in the library: endpoints, their secrets and their positions."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from outreach import InvalidRequest, NewWorkspace, NotFound, Outreach
from outreach.ledger import webhooks as ledger
from outreach.models import NewWebhook, WebhookReplay, WebhookRotation, WebhookUpdate
from outreach.models.webhook import WebhookHold
from outreach.services.tenants.webhooks import signing_secrets
from outreach.storage.unit_of_work import Transaction

pytestmark = pytest.mark.anyio

URL = "https://app.example/hook"


async def _workspace(engine: Outreach, name: str = "Acme") -> str:
    return (await engine.workspaces.create(NewWorkspace(name=name))).id


async def test_an_endpoint_is_created_with_a_secret_that_is_shown_once(engine: Outreach) -> None:
    """Its position is the end of the feed; a repeated key makes no second one."""
    place = await _workspace(engine)
    made = await engine.webhooks.create(place, NewWebhook(url=URL, types=["campaign.completed"]), idempotency_key="a")
    assert made.secret is not None
    assert made.secret.startswith("whsec_")
    assert made.secret not in repr(made)
    assert (made.webhook.state, made.webhook.payload, made.webhook.types) == ("active", "thin", ("campaign.completed",))
    assert await engine.webhooks.get(place, made.webhook.id) == made.webhook
    again = await engine.webhooks.create(place, NewWebhook(url=URL, types=["campaign.completed"]), idempotency_key="a")
    assert (again.webhook, again.secret) == (made.webhook, None)
    assert [one.id async for one in engine.webhooks.iter_all(place)] == [made.webhook.id]
    cursor = await engine.webhooks.cursor(place, made.webhook.id)
    assert made.secret not in cursor.sealed


async def test_an_endpoint_is_paused_and_enabled(engine: Outreach) -> None:
    """Its position stays, and failures are forgotten, so that it is tried at once."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    before = await engine.webhooks.cursor(place, webhook.id)
    paused = await engine.webhooks.pause(place, webhook.id)
    assert (paused.state, paused.reason) == ("paused", "operator")
    enabled = await engine.webhooks.enable(place, webhook.id)
    assert (enabled.state, enabled.reason) == ("active", None)
    assert (await engine.webhooks.cursor(place, webhook.id)).position == before.position
    changed = await engine.webhooks.update(place, webhook.id, WebhookUpdate(url=f"{URL}/2", types=()))
    assert (changed.url, changed.payload) == (f"{URL}/2", "thin")
    await engine.webhooks.remove(place, webhook.id)
    for call in (engine.webhooks.get, engine.webhooks.pause, engine.webhooks.cursor, engine.webhooks.rotate):
        with pytest.raises(NotFound):
            await call(place, webhook.id)


async def test_a_rotated_secret_signs_too_for_a_while(engine: Outreach) -> None:
    """For 24 hours by default; with none, at once not any more."""
    place = await _workspace(engine)
    made = await engine.webhooks.create(place, NewWebhook(url=URL))
    now = engine.now()
    second = await engine.webhooks.rotate(place, made.webhook.id)

    async def signing(at: timedelta) -> list[str]:
        cursor = await engine.webhooks.cursor(place, made.webhook.id)
        return [secret for secret, _ in signing_secrets(engine._vault, cursor, now + at)]

    assert await signing(timedelta(hours=23)) == [second.secret, made.secret]
    assert await signing(timedelta(hours=25)) == [second.secret]
    third = await engine.webhooks.rotate(place, made.webhook.id, WebhookRotation(overlap_hours=0))
    assert await signing(timedelta()) == [third.secret]
    with pytest.raises(InvalidRequest, match="overlap_hours"):
        await engine.webhooks.rotate(place, made.webhook.id, WebhookRotation(overlap_hours=169))


async def test_events_are_replayed_from_a_number_or_a_time(engine: Outreach) -> None:
    """By moving the position; a number ahead of the feed is refused."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    end = (await engine.webhooks.cursor(place, webhook.id)).position
    await engine.webhooks.replay(place, webhook.id, WebhookReplay(number=1))
    assert (await engine.webhooks.cursor(place, webhook.id)).position == 0
    await engine.webhooks.replay(place, webhook.id, WebhookReplay(at=engine.now() + timedelta(days=1)))
    assert (await engine.webhooks.cursor(place, webhook.id)).position == end
    for wrong in ({}, {"number": 0}, {"number": end + 2}, {"number": 1, "at": engine.now()}):
        with pytest.raises(InvalidRequest, match="number"):
            await engine.webhooks.replay(place, webhook.id, WebhookReplay(**wrong))


async def test_what_an_endpoint_has_not_received_is_counted(engine: Outreach, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its types alone, with the time of the oldest; also where the count ends before the feed does."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL, types=["contact.*"]))).webhook
    every = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    [none] = await engine.webhooks.progress(place, webhook.id)
    assert (none.waiting, none.is_all, none.waiting_since, none.last) == (0, True, None, None)
    before = engine.now()
    await engine.unsubscribes.add(place, "+12125550001", "+12125550002")
    await engine.webhooks.test(place, webhook.id)
    found, other = await engine.webhooks.progress(place, webhook.id, every.id)
    assert (found.waiting, found.is_all) == (2, True)
    assert found.waiting_since is not None
    assert before <= found.waiting_since <= engine.now()
    assert (other.cursor.webhook_id, other.waiting) == (every.id, 2)
    monkeypatch.setattr(ledger, "MAX_WAITING_COUNTED", 1)
    monkeypatch.setattr(ledger, "_STRETCH", 1)
    [some] = await engine.webhooks.progress(place, webhook.id)
    assert (some.waiting, some.is_all) == (1, False)
    with pytest.raises(NotFound):
        await engine.webhooks.progress(await _workspace(engine, "Others"), webhook.id)


async def test_an_event_that_was_refused_waits_still(engine: Outreach) -> None:
    """Though the position has passed it; since when it happened, not since it was refused."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    await engine.unsubscribes.add(place, "+12125550001")
    [before] = await engine.webhooks.progress(place, webhook.id)
    number = before.cursor.position + 1

    def refuse(tx: Transaction) -> None:
        later = engine.now() + timedelta(hours=1)
        tx.webhook_holds.put(
            WebhookHold(
                workspace_id=place,
                webhook_id=webhook.id,
                number=number,
                key="contact:+12125550001",
                attempts=1,
                next_at=later,
                first_at=later,
            )
        )
        tx.webhook_cursors.put(attrs.evolve(before.cursor, position=number, failures=1, failing_since=later))

    await engine.webhooks._context.storage.write(refuse)
    [after] = await engine.webhooks.progress(place, webhook.id)
    assert (after.waiting, after.is_all, after.waiting_since) == (1, True, before.waiting_since)


async def test_other_workspaces_have_none_of_it(engine: Outreach) -> None:
    """Neither to see nor to change."""
    place, other = await _workspace(engine), await _workspace(engine, "Others")
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    for call in (engine.webhooks.get, engine.webhooks.pause, engine.webhooks.list_attempts, engine.webhooks.remove):
        with pytest.raises(NotFound):
            await call(other, webhook.id)
    assert (await engine.webhooks.list(other)).items == []
    assert (await engine.webhooks.list_attempts(place, webhook.id)).items == []


@pytest.mark.parametrize(
    "url", ["http://app.example/hook", "https://127.0.0.1/", "https://[::1]/", "https://a:b@app.example/"]
)
async def test_a_target_that_is_not_allowed_is_refused(engine: Outreach, url: str) -> None:
    """When it is created, and when it is changed; nothing is stored."""
    place = await _workspace(engine)
    with pytest.raises(InvalidRequest, match="url"):
        await engine.webhooks.create(place, NewWebhook(url=url))
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    with pytest.raises(InvalidRequest, match="url"):
        await engine.webhooks.update(place, webhook.id, WebhookUpdate(url=url))
    assert await engine.webhooks.get(place, webhook.id) == webhook
