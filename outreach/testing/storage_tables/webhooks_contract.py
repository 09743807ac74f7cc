"""The contract of endpoints of webhooks, and of what is stored about their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs

from outreach.models.webhook import Webhook
from outreach.protocols.storage import Storage
from outreach.testing.builders import (
    NOW,
    make_webhook,
    make_webhook_attempt,
    make_webhook_cursor,
    make_webhook_hold,
)
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    given_rows,
)


async def given_webhook(storage: Storage, **changes: Any) -> Webhook:
    """Write an endpoint, and return it."""
    webhook = make_webhook(**changes)
    await given_rows(storage, webhook)
    return webhook


class WebhooksContract(ContractBase):
    """Endpoints, beside what all resources have, with their cursors, held events and attempts."""

    async def test_active_and_disabled_endpoints_are_found(self, storage: Storage) -> None:
        """Of all workspaces, in the order of their identifiers; those that were removed are left out."""
        made = [await given_webhook(storage) for _ in range(3)]
        theirs = await given_webhook(storage, workspace_id=OTHER_WORKSPACE)
        disabled = await given_webhook(storage, state="disabled", reason="gone")
        await given_webhook(storage, state="paused", reason="operator")
        await given_webhook(storage, removed_at=NOW)
        active = sorted([*made, theirs], key=lambda one: one.id)
        assert list(await storage.read(lambda tx: tx.webhooks.active(limit=9))) == active
        assert list(await storage.read(lambda tx: tx.webhooks.active(after=active[0].id, limit=2))) == active[1:3]
        assert list(await storage.read(lambda tx: tx.webhooks.disabled(THIS_WORKSPACE, limit=9))) == [disabled]
        assert list(await storage.read(lambda tx: tx.webhooks.disabled(None, limit=9))) == [disabled]
        assert list(await storage.read(lambda tx: tx.webhooks.disabled(OTHER_WORKSPACE, limit=9))) == []

    async def test_a_cursor_is_put_and_replaced(self, storage: Storage) -> None:
        """One for each endpoint."""
        webhook = await given_webhook(storage)
        place = (THIS_WORKSPACE, webhook.id)
        assert await storage.read(lambda tx: tx.webhook_cursors.get(*place)) is None
        cursor = make_webhook_cursor(webhook_id=webhook.id, position=7, probe_at=NOW, failing_since=NOW)
        await storage.write(lambda tx: tx.webhook_cursors.put(cursor))
        moved = attrs.evolve(cursor, position=9, probe_at=None, holder="one", held_until=NOW + TICK)
        await storage.write(lambda tx: tx.webhook_cursors.put(moved))
        assert await storage.read(lambda tx: tx.webhook_cursors.get(*place)) == moved
        assert await storage.read(lambda tx: tx.webhook_cursors.get(OTHER_WORKSPACE, webhook.id)) is None

    async def test_endpoints_that_have_taken_nothing_since_a_moment_are_found(self, storage: Storage) -> None:
        """Active ones of a workspace, or of all."""
        failing = await given_webhook(storage)
        theirs = await given_webhook(storage, workspace_id=OTHER_WORKSPACE)
        later, well = await given_webhook(storage), await given_webhook(storage)
        disabled = await given_webhook(storage, state="disabled", reason="failing")
        since = {failing.id: NOW, theirs.id: NOW, later.id: NOW + TICK, well.id: None, disabled.id: NOW}
        for one in (failing, theirs, later, well, disabled):
            cursor = make_webhook_cursor(workspace_id=one.workspace_id, webhook_id=one.id, failing_since=since[one.id])
            await storage.write(lambda tx, cursor=cursor: tx.webhook_cursors.put(cursor))  # type: ignore[misc]
        for workspace_id, found in (
            (None, sorted([failing.id, theirs.id])),
            (THIS_WORKSPACE, [failing.id]),
            (OTHER_WORKSPACE, [theirs.id]),
        ):
            rows = await storage.read(lambda tx, it=workspace_id: tx.webhooks.failing(it, NOW, limit=9))  # type: ignore[misc]
            assert [one.id for one in rows] == found

    async def test_held_events_are_listed_by_number(self, storage: Storage) -> None:
        """Those of one endpoint; each is deleted alone, or all at once."""
        webhook, other = await given_webhook(storage), await given_webhook(storage)
        holds = [make_webhook_hold(webhook_id=webhook.id, number=number) for number in (10, 2, 30)]
        theirs = make_webhook_hold(webhook_id=other.id)
        await given_rows(storage, *holds, theirs)
        again = attrs.evolve(holds[1], attempts=2, next_at=NOW + TICK)
        await storage.write(lambda tx: tx.webhook_holds.put(again))
        place = (THIS_WORKSPACE, webhook.id)
        assert list(await storage.read(lambda tx: tx.webhook_holds.list(*place, limit=2))) == [again, holds[0]]
        assert await storage.read(lambda tx: tx.webhook_holds.waiting(*place, limit=9)) == (3, (2, NOW))
        assert await storage.read(lambda tx: tx.webhook_holds.waiting(*place, limit=2)) == (2, (2, NOW))
        nowhere = await storage.read(lambda tx: tx.webhook_holds.waiting(OTHER_WORKSPACE, webhook.id, limit=9))
        assert nowhere == (0, None)
        ahead = make_webhook_hold(webhook_id=webhook.id, number=3, first_at=NOW + TICK, next_at=NOW + 2 * TICK)
        await storage.write(lambda tx: tx.webhook_holds.put(ahead))
        assert await storage.write(lambda tx: tx.webhook_holds.hasten(*place, NOW)) == 2
        first = await storage.read(lambda tx: tx.webhook_holds.list(*place, limit=2))
        assert list(first) == [attrs.evolve(again, next_at=NOW), attrs.evolve(ahead, first_at=NOW, next_at=NOW)]
        assert await storage.write(lambda tx: tx.webhook_holds.delete(*place, 10))
        assert not await storage.write(lambda tx: tx.webhook_holds.delete(*place, 10))
        numbers = [one.number for one in await storage.read(lambda tx: tx.webhook_holds.list(*place, limit=9))]
        assert await storage.write(lambda tx: tx.webhook_holds.delete_from(*place, numbers[-1])) == 1
        assert await storage.write(lambda tx: tx.webhook_holds.delete_from(*place, None)) == 2
        assert list(await storage.read(lambda tx: tx.webhook_holds.list(*place, limit=9))) == []
        assert list(await storage.read(lambda tx: tx.webhook_holds.list(THIS_WORKSPACE, other.id, limit=9))) == [theirs]

    async def test_a_key_with_a_number_is_forgotten(self, storage: Storage) -> None:
        """At all endpoints of the workspace; other keys stay."""
        webhook, other = await given_webhook(storage), await given_webhook(storage)
        theirs = await given_webhook(storage, workspace_id=OTHER_WORKSPACE)
        ours = [
            make_webhook_hold(webhook_id=one.id, number=number, key=key)
            for one in (webhook, other)
            for number, key in ((1, "contact:+14155550101"), (2, "contact:+14155550102"))
        ]
        await given_rows(
            storage, *ours, make_webhook_hold(workspace_id=OTHER_WORKSPACE, webhook_id=theirs.id, key=ours[0].key)
        )
        assert await storage.write(lambda tx: tx.webhook_holds.forget_key(THIS_WORKSPACE, ours[0].key)) == 2
        for one in (webhook, other):
            found = await storage.read(lambda tx, one=one: tx.webhook_holds.list(THIS_WORKSPACE, one.id, limit=9))  # type: ignore[misc]
            assert [hold.key for hold in found] == ["erased:1", "contact:+14155550102"]
        kept = await storage.read(lambda tx: tx.webhook_holds.list(OTHER_WORKSPACE, theirs.id, limit=9))
        assert [hold.key for hold in kept] == [ours[0].key]

    async def test_attempts_are_listed_latest_first(self, storage: Storage) -> None:
        """Those of one endpoint."""
        webhook, other = await given_webhook(storage), await given_webhook(storage)
        made = [make_webhook_attempt(webhook_id=webhook.id, number=number) for number in range(3)]
        await given_rows(storage, *made, make_webhook_attempt(webhook_id=other.id))
        made.sort(key=lambda one: one.id, reverse=True)
        place = (THIS_WORKSPACE, webhook.id)
        assert list(await storage.read(lambda tx: tx.webhook_attempts.page(*place, limit=9))) == made
        page = await storage.read(lambda tx: tx.webhook_attempts.page(*place, before=made[0].id, limit=1))
        assert list(page) == [made[1]]

    async def test_attempts_are_listed_by_what_came_of_them(self, storage: Storage) -> None:
        """Any status of 200 to 299 is a success; no answer is a failure."""
        webhook = await given_webhook(storage)
        statuses = {200: False, 299: False, None: True, 199: True, 300: True, 500: True}
        for status in statuses:
            one = make_webhook_attempt(webhook_id=webhook.id, status=status)
            await given_rows(storage, one)
        place = (THIS_WORKSPACE, webhook.id)
        for failed in (True, False):
            page = await storage.read(
                lambda tx, failed=failed: tx.webhook_attempts.page(*place, failed=failed, limit=9)  # type: ignore[misc]
            )
            assert {one.status for one in page} == {status for status, bad in statuses.items() if bad is failed}

    async def test_old_attempts_are_found_and_deleted(self, storage: Storage) -> None:
        """Those before a moment, and those beyond so many, of one endpoint; in slices, the oldest first."""
        webhook, other = await given_webhook(storage), await given_webhook(storage, removed_at=NOW)
        place, theirs = (THIS_WORKSPACE, webhook.id), (THIS_WORKSPACE, other.id)
        made = [
            make_webhook_attempt(id=f"{one.id}{hour}", webhook_id=one.id, at=NOW + hour * TICK)
            for one in (webhook, other)
            for hour in range(5)
        ]
        await given_rows(storage, *made)

        async def first_kept(since: datetime | None, most: int) -> str | None:
            return await storage.read(lambda tx: tx.webhook_attempts.first_kept(*place, since=since, most=most))

        assert await first_kept(None, 5) is None
        assert await first_kept(NOW, 5) is None
        assert await first_kept(None, 2) == made[3].id
        assert await first_kept(NOW + 2 * TICK, 5) == made[2].id
        assert await first_kept(NOW + 2 * TICK, 1) == made[4].id
        before = await first_kept(NOW + 9 * TICK, 5)
        assert before is not None
        assert before > made[4].id
        delete = [
            await storage.write(lambda tx: tx.webhook_attempts.delete_before(*place, made[3].id, limit=2)),
            await storage.write(lambda tx: tx.webhook_attempts.delete_before(*place, made[3].id, limit=2)),
        ]
        assert delete == [2, 1]
        assert list(await storage.read(lambda tx: tx.webhook_attempts.page(*place, limit=9))) == made[4:2:-1]
        assert len(await storage.read(lambda tx: tx.webhook_attempts.page(*theirs, limit=9))) == 5
        every = await storage.read(lambda tx: tx.webhooks.every(limit=9))
        assert [one.id for one in every] == sorted([webhook.id, other.id])
        assert [one.id for one in await storage.read(lambda tx: tx.webhooks.every(after=every[0].id, limit=1))] == [
            every[1].id
        ]
