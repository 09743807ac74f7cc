"""What is logged of problems while an engine sends."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import anyio
import attrs
import pytest

from outreach import EngineConfig, Outreach
from outreach.errors import DispatchRefused, StorageError
from outreach.ledger.campaigns.trail import ENGINE
from outreach.ledger.campaigns.transitions import move
from outreach.ledger.common import campaign_of, campaign_unit
from outreach.models.states import CampaignAction
from outreach.models.work import HighWaterMark
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.scripted import (
    ScriptedCarrier,
    accept,
    drop,
    refuse,
)
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import (
    WatchedStorage,
    dispatching,
    given_campaign,
    given_workspace,
    make_engine_worker,
    reaches,
    sending,
    start_campaign,
    until,
    until_true,
)

pytestmark = pytest.mark.virtual_time


def told(caplog: pytest.LogCaptureFixture, action: str) -> Sequence[str]:
    """Return the lines of an action."""
    return [one.getMessage() for one in caplog.records if getattr(one, "action", None) == action]


async def test_a_pause_by_the_engine_and_an_accounts_first_trouble_are_one_line_each(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """Five requests get no answer: the account's trouble is told once, the pause once, with why and where."""
    carrier = ScriptedCarrier(lambda _: drop("dropped"))
    async with sending(open_storage(clock_of_loop()), 20, carrier=carrier) as (rig, campaign):
        await reaches(rig.engine, campaign, "paused")
        (pause,) = await until_true(lambda: told(caplog, "campaign_paused"))
        assert campaign.id in pause
        assert campaign.workspace_id in pause
        assert "error_budget" in pause
        (trouble,) = told(caplog, "account_in_trouble")
        assert trouble == f"twilio drops connections, for workspace {campaign.workspace_id}."
        levels = {one.levelno for one in caplog.records if getattr(one, "action", None) == "campaign_paused"}
        assert levels == {logging.WARNING}


@pytest.mark.parametrize("due", ["at its expiry", "to be looked at"])
async def test_a_pause_is_reported_of_a_campaign_that_is_due_all_the_same(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture, due: str
) -> None:
    """One that expires later, and one of which something was taken back after it was paused."""
    async with dispatching(open_storage(clock_of_loop()), carrier=ScriptedCarrier(lambda _: accept())) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, 1)
        expiry = clock_of_loop().now() + timedelta(days=1) if due == "at its expiry" else None

        def operation(tx: Transaction) -> None:
            now = clock_of_loop().now()
            known = campaign_of(tx, workspace.id, campaign.id)
            active = move(
                tx, attrs.evolve(known, scheduled_expires_at=expiry), CampaignAction.START, now=now, actor="t"
            )
            move(tx, active, CampaignAction.PAUSE, now=now, actor=ENGINE, pause_reason="provider_auth")
            tx.work.schedule(campaign_unit(known), expiry or now)

        await rig.storage.write(operation)
        (pause,) = await until_true(lambda: told(caplog, "campaign_paused"))
        assert campaign.id in pause


async def test_a_pause_is_reported_once_however_often_the_campaign_is_changed_afterwards(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """Who changes a campaign that is paused has not paused it again; a second pause is told."""
    async with dispatching(open_storage(clock_of_loop()), carrier=ScriptedCarrier(lambda _: accept())) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, 1)

        def pause(tx: Transaction) -> None:
            active = move(
                tx, campaign_of(tx, workspace.id, campaign.id), steps.pop(), now=clock_of_loop().now(), actor="t"
            )
            move(
                tx, active, CampaignAction.PAUSE, now=clock_of_loop().now(), actor=ENGINE, pause_reason="provider_auth"
            )

        def change(tx: Transaction) -> None:
            known = campaign_of(tx, workspace.id, campaign.id)
            tx.campaigns.update(attrs.evolve(known, name="New", revision=known.revision + 1))
            tx.work.schedule(campaign_unit(known), None)

        steps = [CampaignAction.RESUME, CampaignAction.START]
        for count in (1, 2):
            await rig.storage.write(pause)

            async def pauses_logged(count: int = count) -> bool:
                return len(told(caplog, "campaign_paused")) == count

            await until(pauses_logged)
            before = await rig.storage.read(lambda tx: tx.work.last_change())
            await rig.storage.write(change)

            async def change_seen(before: int = before) -> bool:
                return bool(await rig.worker.since(before))

            await until(change_seen)
            assert await pauses_logged()


async def test_a_database_that_was_moved_names_each_campaign_that_it_has_paused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A line each, as of any other pause."""
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    async with Outreach.open(f"sqlite:///{here}", dispatch=True, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        campaign = await start_campaign(engine, workspace, 3, rate_per_minute=1)
    shutil.copy(here, there)
    async with Outreach.open(f"sqlite:///{there}", dispatch=True, clock=clock_of_loop()) as engine:
        (pause,) = await until_true(lambda: told(caplog, "campaign_paused"))
    assert campaign.id in pause
    assert "(moved)" in pause


async def test_an_account_that_works_again_says_so_once(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """Two refusals of one class are one line, and what is accepted afterwards ends it."""
    carrier = ScriptedCarrier([accept(), refuse("bad_sender", error_code="21606"), refuse("bad_sender"), accept()])
    async with sending(open_storage(clock_of_loop()), 5, carrier=carrier) as (rig, campaign):
        await reaches(rig.engine, campaign, "completed")
    assert told(caplog, "account_in_trouble") == [
        f"twilio rejects the sending number (21606), for workspace {campaign.workspace_id}."
    ]
    assert told(caplog, "account_again") == [
        f"twilio accepts requests of workspace {campaign.workspace_id} again. It occurred 2 times."
    ]


async def test_a_full_disk_is_one_line_and_its_end_another(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever fails meanwhile, and however often: outcomes, slices, heartbeats."""
    async with sending(open_storage(clock_of_loop()), 10) as (rig, campaign):
        await until_true(lambda: rig.carrier.requests)
        failures = 0

        def fail() -> None:
            nonlocal failures
            failures += 1
            raise StorageError("Nothing was written. The disk that the database is on is full.")

        rig.storage.before_write = fail
        with anyio.fail_after(30):
            while failures < 50:  # noqa: ASYNC110 - nothing tells of the next one
                await anyio.sleep(0.02)
        rig.storage.before_write = lambda: None
        await reaches(rig.engine, campaign, "completed")
        await until_true(lambda: told(caplog, "database_again"))
    lines = [one.getMessage() for one in caplog.records if one.name == "outreach"]
    assert lines[0] == "Nothing was written. The disk that the database is on is full."
    assert lines[1].startswith("The database accepts writes again.")
    assert "Traceback" not in caplog.text


async def test_nothing_is_sent_while_the_note_cannot_be_written(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would show that the database was set back. One line says so, and it goes on by itself."""
    async with sending(open_storage(clock_of_loop()), 20, rate_per_minute=60) as (rig, campaign):
        await rig.carrier.wait_for_requests(2)

        def refuse_note(mark: object, *, ended: bool = False) -> None:
            raise DispatchRefused(
                "The high-water mark '/var/lib/note' cannot be written (No space left on device). Make room.",
                reason="note",
            )

        with monkeypatch.context() as patch:
            patch.setattr(rig.storage.lock, "record_high_water", refuse_note)
            await until_true(lambda: rig.engine.health().refused_reason == "note")
            count = len(rig.carrier.requests)
            await anyio.sleep(12)
            assert len(rig.carrier.requests) == count
            health = rig.engine.health()
            assert (health.state, health.dispatching, health.lease_seconds_left) == ("refused", False, None)
            # To other processes, too, although the lease is taken with each retry.
            status = await rig.engine.status()
            assert (status.dispatching.by, status.severity) == ("no_process", "critical")
            assert "/readyz say why" in status.findings[0].message
            found = await rig.engine.readiness()
            assert (found.ready, found.write_error) == (False, None)
            assert found.reasons == [
                "The high-water mark cannot be written (No space left on device). Make room.",
            ]
        await rig.carrier.wait_for_requests(count + 1)
        assert (rig.engine.health().state, (await rig.engine.readiness()).ready) == ("dispatching", True)
        await reaches(rig.engine, campaign, "completed")
    assert len(rig.carrier.requests) == 20
    assert len(told(caplog, "dispatch_refused")) == len(told(caplog, "dispatch_again")) == 1
    assert not [*told(caplog, "note_failed"), *told(caplog, "lease_lost"), *told(caplog, "renew_failed")]


@pytest.mark.parametrize("fails", ["database", "note"])
async def test_a_database_is_checked_once_however_often_the_lease_cannot_be_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """After a crash on a full disk it would else be read twice a second, with two lines each time."""
    caplog.set_level(logging.INFO)
    clock = clock_of_loop()
    async with WatchedStorage(SqliteStorage(tmp_path / "outreach.db", clock=clock)) as storage:
        storage.lock.record_high_water(HighWaterMark(database="one", epoch=1, change=1))
        worker = make_engine_worker(storage, clock, EngineConfig())

        def full(*_: object) -> None:
            raise StorageError("The disk is full.")

        with monkeypatch.context() as patch:
            where, name = (storage, "before_write") if fails == "database" else (storage.lock, "record_high_water")
            patch.setattr(where, name, full)
            for _ in range(3):
                with pytest.raises(StorageError, match="full"):
                    await worker.acquire()
        assert await worker.acquire() is not None
        assert (len(told(caplog, "checking")), len(told(caplog, "checked"))) == (1, 1)
        await worker.release()
