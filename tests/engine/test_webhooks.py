"""Webhooks in the library: endpoints, their secrets and their positions."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from outreach import ConfigError, InvalidRequest, NewWorkspace, NotFound, Outreach
from outreach.core.vault import WEBHOOKS, Vault
from outreach.ledger import webhooks as ledger
from outreach.ledger.leases.clock_steps import repair_after_clock_step
from outreach.models import NewWebhook, RekeyResult, Webhook, WebhookReplay, WebhookRotation, WebhookUpdate
from outreach.models.webhook import WebhookHold
from outreach.protocols.storage import Storage
from outreach.services.tenants import account_rekeying
from outreach.services.tenants.webhooks import signing_secrets
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_webhook, make_webhook_attempt, make_webhook_cursor, make_webhook_hold
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE
from tests.engine.conftest import OpenStorage
from tests.engine.rig import make_engine_worker

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
    """By moving the position back; a number ahead of the feed is refused."""
    place = await _workspace(engine)
    await engine.unsubscribes.add(place, "+12125550001", "+12125550002")
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    end = (await engine.webhooks.cursor(place, webhook.id)).position
    for start, position in ((WebhookReplay(at=engine.now() + timedelta(days=1)), end), (WebhookReplay(number=1), 0)):
        await engine.webhooks.replay(place, webhook.id, start)
        assert (await engine.webhooks.cursor(place, webhook.id)).position == position
    for wrong in ({}, {"number": 0}, {"number": end + 2}, {"number": 1, "at": engine.now()}):
        with pytest.raises(InvalidRequest, match="number"):
            await engine.webhooks.replay(place, webhook.id, WebhookReplay(**wrong))


async def test_a_replay_leaves_out_nothing_that_is_still_to_come(engine: Outreach) -> None:
    """What is held from before its first event, what lies between the position and that, and what is held after it."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    begin = (await engine.webhooks.cursor(place, webhook.id)).position
    await engine.unsubscribes.add(place, *(f"+1212555000{number}" for number in range(4)))

    def hold(tx: Transaction) -> None:
        for number in (begin + 1, begin + 2, begin + 4):
            tx.webhook_holds.put(make_webhook_hold(workspace_id=place, webhook_id=webhook.id, number=number))
        cursor = tx.webhook_cursors.get(place, webhook.id)
        assert cursor is not None
        tx.webhook_cursors.put(attrs.evolve(cursor, position=begin + 2))

    await engine._storage.write(hold)
    for start, position, held in ((begin + 3, begin + 2, [1, 2, 4]), (begin + 2, begin + 1, [1])):
        await engine.webhooks.replay(place, webhook.id, WebhookReplay(number=start))
        assert (await engine.webhooks.cursor(place, webhook.id)).position == position
        left = await engine._storage.read(lambda tx: tx.webhook_holds.list(place, webhook.id, limit=9))
        assert [one.number - begin for one in left] == held


async def test_a_single_event_is_delivered_again_without_those_after_it(engine: Outreach) -> None:
    """It is held, before later ones with its key, and the position stays; what is still to come is refused."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL, types=["contact.*"]))).webhook
    await engine.unsubscribes.add(place, "+12125550001", "+12125550002")
    first = (await engine.webhooks.cursor(place, webhook.id)).position + 1
    with pytest.raises(InvalidRequest, match="still to be delivered"):
        await engine.webhooks.replay(place, webhook.id, WebhookReplay(number=first, only=True))

    def deliver(tx: Transaction) -> None:
        cursor = tx.webhook_cursors.get(place, webhook.id)
        assert cursor is not None
        tx.webhook_cursors.put(attrs.evolve(cursor, position=first + 1, failures=5, probe_at=engine.now()))

    await engine._storage.write(deliver)
    for _ in range(2):
        await engine.webhooks.replay(place, webhook.id, WebhookReplay(number=first, only=True))
        cursor = await engine.webhooks.cursor(place, webhook.id)
        assert (cursor.position, cursor.failures, cursor.probe_at) == (first + 1, 0, None)
        [hold] = await engine._storage.read(lambda tx: tx.webhook_holds.list(place, webhook.id, limit=9))
        assert (hold.number, hold.key, hold.next_at <= engine.now()) == (first, "contact:+12125550001", True)
    await engine.webhooks.update(place, webhook.id, WebhookUpdate(types=["call.ended"]))
    with pytest.raises(InvalidRequest, match="of a type of this webhook"):
        await engine.webhooks.replay(place, webhook.id, WebhookReplay(number=first, only=True))
    with pytest.raises(InvalidRequest, match="needs the number"):
        WebhookReplay(at=engine.now(), only=True)


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
    assert await engine.webhooks.progress(place) == [found, other]
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


async def test_old_attempts_are_swept(storage: Storage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 30 days ago, once the clock is trusted, and those beyond so many of an endpoint, removed or not."""
    monkeypatch.setattr("outreach.dispatch.worker._MAX_ROWS", 2)
    monkeypatch.setattr("outreach.ledger.webhooks.ATTEMPTS_KEPT", 6)
    ours, removed = make_webhook(), make_webhook(workspace_id=OTHER_WORKSPACE, removed_at=NOW)

    def write(tx: Transaction) -> None:
        for webhook in (ours, removed):
            tx.webhooks.insert(webhook)
            for days in range(40, 30 - (9 if webhook is ours else 0), -1):
                attempt = make_webhook_attempt(
                    id=f"{webhook.id}-{50 - days}",
                    workspace_id=webhook.workspace_id,
                    webhook_id=webhook.id,
                    at=NOW - timedelta(days=days),
                )
                tx.webhook_attempts.insert(attempt)

    async def left(webhook: Webhook) -> int:
        return await storage.read(lambda tx: len(tx.webhook_attempts.page(webhook.workspace_id, webhook.id, limit=50)))

    worker = make_engine_worker(storage, clock)
    await worker.acquire()
    await storage.write(write)
    for trusted, kept in ((False, [6, 6]), (True, [6, 0])):
        monkeypatch.setattr("outreach.ledger.leases.clock_steps.is_trusted", lambda *_, trusted=trusted: trusted)
        await worker.sweep()
        assert [await left(ours), await left(removed)] == kept
    await worker.release()


async def given_failures(engine: Outreach, place: str, webhook: Webhook) -> None:
    """Let an endpoint be down, and hold an event for an hour."""
    cursor, later = await engine.webhooks.cursor(place, webhook.id), engine.now() + timedelta(hours=1)
    failing = attrs.evolve(cursor, failures=5, failing_since=engine.now(), probe_at=later)
    hold = make_webhook_hold(workspace_id=place, webhook_id=webhook.id, next_at=later)

    def write(tx: Transaction) -> None:
        tx.webhook_cursors.put(failing)
        tx.webhook_holds.put(hold)

    await engine._storage.write(write)


async def state_of(engine: Outreach, place: str, webhook: Webhook) -> tuple[int, bool, bool, list[bool]]:
    """Return the failures of an endpoint, whether it fails and waits, and of each held event whether it is due."""
    cursor, now = await engine.webhooks.cursor(place, webhook.id), engine.now()
    holds = await engine._storage.read(lambda tx: tx.webhook_holds.list(place, webhook.id, limit=9))
    due = [one.next_at <= now for one in holds]
    return cursor.failures, cursor.failing_since is not None, cursor.probe_at is not None, due


async def test_a_changed_url_a_replay_and_enabling_let_an_endpoint_be_tried_at_once(engine: Outreach) -> None:
    """Other changes leave it to its schedule; where types change, held events may be of others, and are looked at."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    end = (await engine.webhooks.cursor(place, webhook.id)).position
    for change, expected in (
        (engine.webhooks.update(place, webhook.id, WebhookUpdate(description="Ours")), (5, True, True, [False])),
        (engine.webhooks.update(place, webhook.id, WebhookUpdate(types=["call.ended"])), (5, True, True, [True])),
        (engine.webhooks.update(place, webhook.id, WebhookUpdate(url=f"{URL}/2")), (0, False, False, [True])),
        (engine.webhooks.enable(place, webhook.id), (0, False, False, [True])),
        (engine.webhooks.replay(place, webhook.id, WebhookReplay(number=end + 1)), (0, False, False, [True])),
    ):
        await given_failures(engine, place, webhook)
        await change
        assert await state_of(engine, place, webhook) == expected


async def test_an_endpoint_that_failed_while_the_clock_was_ahead_is_tried_when_it_is_set_back(
    open_storage: OpenStorage, clock: ManualClock
) -> None:
    """Its failures have begun by now, so that it is disabled in time; one that has taken everything stays as it is."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        place, right = await _workspace(engine), clock.now()
        webhook, well = [(await engine.webhooks.create(place, NewWebhook(url=URL))).webhook for _ in range(2)]
        before = await engine.webhooks.cursor(place, well.id)
        clock.set(right + timedelta(days=60))
        await given_failures(engine, place, webhook)
        hold = make_webhook_hold(workspace_id=place, webhook_id=webhook.id, number=7, first_at=clock.now())
        await engine._storage.write(lambda tx: tx.webhook_holds.put(attrs.evolve(hold, next_at=clock.now())))
        clock.set(right)
        back = timedelta(days=60)
        await engine._storage.write(lambda tx: repair_after_clock_step(tx, back, epoch=1, now=right))
        assert await state_of(engine, place, webhook) == (5, True, True, [True, True])
        cursor = await engine.webhooks.cursor(place, webhook.id)
        assert (cursor.failing_since, cursor.probe_at, cursor.updated_at) == (right, right, right)
        holds = await engine._storage.read(lambda tx: tx.webhook_holds.list(place, webhook.id, limit=9))
        assert holds[-1].first_at == right
        assert await engine.webhooks.cursor(place, well.id) == before


async def test_a_removed_endpoint_keeps_no_secret(engine: Outreach) -> None:
    """Nor what it held; keys are changed without it."""
    place = await _workspace(engine)
    webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
    await given_failures(engine, place, webhook)
    await engine.webhooks.remove(place, webhook.id)

    def left(tx: Transaction) -> tuple[str | None, int]:
        cursor = tx.webhook_cursors.get(place, webhook.id)
        return None if cursor is None else cursor.sealed, len(tx.webhook_holds.list(place, webhook.id, limit=9))

    assert await engine._storage.read(left) == ("", 0)
    assert (await engine.accounts.rekey()).rekeyed == 0


async def test_the_secrets_of_webhooks_get_the_newest_key_too(
    open_storage: OpenStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In slices, those before a rotation too; messages name the webhook."""
    monkeypatch.setattr(account_rekeying, "_SLICE", 2)
    older, newer = Vault(keys="A" * 43 + "="), Vault(keys="B" * 43 + "=")
    both = Vault(keys="B" * 43 + "=," + "A" * 43 + "=")
    async with Outreach(open_storage(clock), clock=clock, vault=both) as engine:
        place, storage = await _workspace(engine), engine._storage
        made = [await engine.webhooks.create(place, NewWebhook(url=URL)) for _ in range(3)]
        made[0] = await engine.webhooks.rotate(place, made[0].webhook.id)
        for one in made:
            cursor = await engine.webhooks.cursor(place, one.webhook.id)
            sealed = older.encrypt(
                one.webhook.id,
                both.open(one.webhook.id, cursor.sealed, provider=WEBHOOKS),
                previous=both.previous(one.webhook.id, cursor.sealed, provider=WEBHOOKS),
            )
            resealed = attrs.evolve(cursor, sealed=sealed)
            await storage.write(lambda tx, it=resealed: tx.webhook_cursors.put(it))  # type: ignore[misc]
            with pytest.raises(ConfigError, match=f"secrets of webhook {one.webhook.id} were") as caught:
                newer.open(one.webhook.id, sealed, provider=WEBHOOKS)
            assert "account" not in caught.value.message
        assert await engine.accounts.rekey(max_slices=1) == RekeyResult(rekeyed=2, already_current=0, left=1)
        assert await engine.accounts.rekey(actor="olga") == RekeyResult(rekeyed=1, already_current=2, left=0)
        for count, one in zip((2, 1, 1), made, strict=True):
            cursor = await engine.webhooks.cursor(place, one.webhook.id)
            secrets = signing_secrets(newer, cursor, engine.now())
            assert (len(secrets), secrets[0][0]) == (count, one.secret)
        (entry, *_) = await engine.audit.list(place)
        assert (entry.action, entry.actor) == ("webhook.rekey", "olga")


async def test_an_endpoint_that_takes_nothing_for_an_hour_is_shown(
    open_storage: OpenStorage, clock: ManualClock
) -> None:
    """With what came of the latest delivery, and the command that has it tried at once; of its own workspace."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        place, other = await _workspace(engine), await _workspace(engine, "Others")
        webhook = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
        await given_failures(engine, place, webhook)
        since, place_of = engine.now(), {"workspace_id": place, "webhook_id": webhook.id}
        words = {
            (503, None): "it answered with the status 503",
            (None, "timeout"): "it did not answer in time",
            (None, "not_connected"): "no connection to it could be made",
        }
        clock.advance(3590)
        assert (await engine.status()).failing == []
        clock.advance(10)
        for (status, error), why in words.items():
            attempt = make_webhook_attempt(**place_of, status=status, error=error)
            await engine._storage.write(lambda tx, it=attempt: tx.webhook_attempts.insert(it))  # type: ignore[misc]
            (failing,) = (await engine.status(place)).failing
            assert (failing.host, failing.since, failing.status, failing.why) == ("app.example", since, status, why)
        for seen in (await engine.status(place), await engine.status()):
            (finding,) = [one for one in seen.findings if one.code == "webhook_failing"]
            assert (finding.path, finding.severity) == (webhook.id, "warning")
            assert finding.commands == [f"outreach-server webhooks enable {place} {webhook.id}"]
            assert "has taken nothing since" in finding.message
        assert (await engine.status(other)).failing == []
        await engine.webhooks.enable(place, webhook.id)
        assert (await engine.status()).failing == []


async def test_how_far_webhooks_are_behind_is_counted(open_storage: OpenStorage, clock: ManualClock) -> None:
    """The one that is furthest in each workspace: events that it wants, and those that it holds; active ones alone."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        place, other = await _workspace(engine), await _workspace(engine, "Others")
        every = (await engine.webhooks.create(place, NewWebhook(url=URL))).webhook
        await engine.webhooks.create(place, NewWebhook(url=URL, types=["call.ended"]))
        await engine.webhooks.create(other, NewWebhook(url=URL))
        assert (await engine.figures()).webhook_lags == {place: (0, 0.0), other: (0, 0.0)}
        for number in range(3):
            await engine.unsubscribes.add(place, f"+1212555000{number}")
            clock.advance(10)
        assert (await engine.figures()).webhook_lags == {place: (3, 30.0), other: (0, 0.0)}
        await given_failures(engine, place, every)
        clock.advance(5)
        assert (await engine.figures()).webhook_lags[place] == (4, 35.0)
        await engine.webhooks.pause(place, every.id)
        assert (await engine.figures()).webhook_lags[place] == (0, 0.0)


async def test_a_feed_that_is_far_ahead_is_not_read_to_its_end(
    open_storage: OpenStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond some stretches each number counts as an event."""
    monkeypatch.setattr(ledger, "_STRETCH", 2)
    monkeypatch.setattr(ledger, "MAX_WAITING_COUNTED", 6)
    async with Outreach(open_storage(clock), clock=clock) as engine:
        place, other = await _workspace(engine), await _workspace(engine, "Others")
        await engine.webhooks.create(other, NewWebhook(url=URL))
        for number in range(10):
            await engine.unsubscribes.add(place, f"+1212555000{number}")
        assert (await engine.figures()).webhook_lags == {other: (4, 0.0)}


def test_a_lease_that_was_taken_a_moment_later_by_the_clock_is_held() -> None:
    """Clocks differ, and a write waits for its turn; a lease that ends far too late was taken before a clock step."""
    lease, moment = timedelta(seconds=5), timedelta(milliseconds=8)
    for ahead, free in ((-lease, True), (-moment, False), (moment, False), (timedelta(minutes=2), True)):
        cursor = make_webhook_cursor(holder="one", held_until=NOW + ahead + lease)
        assert ledger.is_free(cursor, "another", lease=lease, now=NOW) is free
