from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import pytest

from outreach import (
    BusinessHours,
    CampaignUpdate,
    EngineConfig,
    InvalidRequest,
    NewRecipient,
    NewSmsCampaign,
    Outreach,
    Workspace,
)
from outreach.ledger.campaigns import recipients as loading
from outreach.ledger.campaigns.recipients import ChunkResult
from outreach.models import Campaign, PreparedRecipient
from outreach.server_support import prepare_recipient
from outreach.storage.unit_of_work import Transaction
from outreach.testing.clock import ManualClock
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, given_workspace

pytestmark = pytest.mark.virtual_time

LATER = datetime(2999, 1, 1, tzinfo=UTC)
NAIVE = datetime(2999, 1, 1)  # noqa: DTZ001 - what is refused


CHUNK = EngineConfig().insert_batch_size


def _hours(**changes: Any) -> BusinessHours:
    always: dict[str, Any] = {"enabled": True, "timezone": "UTC", "schedule": {}, "batch_concurrency": 10}
    return BusinessHours(**{**always, **changes})


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"schedule_type": "scheduled"}, ["scheduled_start_at"]),
        ({"schedule_type": "scheduled", "scheduled_start_at": NAIVE}, ["scheduled_start_at"]),
        ({"scheduled_expires_at": NAIVE}, ["scheduled_expires_at"]),
        (
            {"schedule_type": "scheduled", "scheduled_start_at": LATER, "scheduled_expires_at": LATER},
            ["scheduled_expires_at"],
        ),
        ({"name": "", "rate_per_minute": 0}, ["name", "rate_per_minute"]),
        ({"business_hours": _hours(timezone="Mars/Olympus")}, ["business_hours.timezone"]),
        ({"business_hours": _hours(timezone="")}, ["business_hours.timezone"]),
        ({"business_hours": _hours(timezone="america/new_york")}, ["business_hours.timezone"]),
        ({"business_hours": _hours(timezone="../etc/passwd")}, ["business_hours.timezone"]),
        ({"business_hours": _hours(schedule={"mon": ()})}, ["business_hours.schedule.mon"]),
        ({"business_hours": _hours(batch_concurrency=41)}, ["business_hours.batch_concurrency"]),
    ],
)
def test_a_campaign_made_in_python_has_the_rules_of_a_body(fields: dict[str, Any], paths: list[str]) -> None:
    """docs/interface.md#4.3: those of times and hours; bounds and kinds stand on the fields of the model."""
    with pytest.raises(InvalidRequest) as caught:
        NewSmsCampaign(**{"name": "Spring", "body": "Hi", **fields})
    assert [detail.path for detail in caught.value.details] == paths


async def test_an_unknown_carrier_is_refused(engine: Outreach, workspace: Workspace) -> None:
    """The engine knows its adapters, and names them."""
    campaign = NewSmsCampaign(name="Spring", body="Hi", carrier="pigeon")
    with pytest.raises(InvalidRequest, match=r"carrier: must be one of .*twilio"):
        await engine.campaigns.create_sms(workspace.id, campaign, contacts(1))
    assert (await engine.campaigns.list(workspace.id)).total == 0


async def test_times_of_a_zone_are_moments(engine: Outreach, workspace: Workspace) -> None:
    """In the hour that comes twice a quarter past one may be later than half past one; they are kept in UTC."""
    zone = ZoneInfo("America/New_York")
    start, expiry = datetime(2998, 11, 4, 1, 30, tzinfo=zone), datetime(2998, 11, 4, 1, 15, fold=1, tzinfo=zone)
    assert start.utcoffset() != expiry.utcoffset()
    campaign = NewSmsCampaign(
        name="Spring", body="Hi", schedule_type="scheduled", scheduled_start_at=start, scheduled_expires_at=expiry
    )
    created = (await engine.campaigns.create_sms(workspace.id, campaign, contacts(1))).campaign
    assert created.scheduled_start_at is not None
    assert (created.scheduled_start_at, created.scheduled_start_at.tzinfo) == (start.astimezone(UTC), UTC)
    update = CampaignUpdate(scheduled_expires_at=datetime(2998, 11, 4, 1, 20, fold=1, tzinfo=zone))
    updated = await engine.campaigns.update(workspace.id, created.id, update)
    assert updated.scheduled_expires_at is not None
    assert updated.scheduled_expires_at.tzinfo is UTC


@pytest.mark.parametrize("key", [None, "order-42"])
@pytest.mark.parametrize(("count", "most"), [(1, 1), (100, 1), (CHUNK - 1, 1), (CHUNK + 1, 4)])
async def test_a_small_campaign_is_one_transaction(
    engine: Outreach, workspace: Workspace, count: int, most: int, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction waits for the disk; nobody can see half of one, nor is there anything to sweep.

    A key is taken by one more, and finished by the one that makes the campaign.
    """
    writes = 0
    write = engine._storage.write

    async def counted(operation: Callable[[Transaction], Any], *, bulk: bool = False) -> Any:
        nonlocal writes
        writes += 1
        return await write(operation, bulk=bulk)

    monkeypatch.setattr(engine._storage, "write", counted)
    new = NewSmsCampaign(name="Few", body="x")
    made = await engine.campaigns.create_sms(workspace.id, new, contacts(count), idempotency_key=key)
    assert (made.campaign.counters.total, writes) == (count, most + (key is not None))


async def test_contacts_that_are_ready_need_nothing_but_the_transaction(
    engine: Outreach, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a local number belongs is asked for the sake of contacts that are not ready; a server's are."""
    ready = [prepare_recipient(NewRecipient(phone_number="+14155550102"), None)]

    async def asked(operation: Callable[[Transaction], Any]) -> Any:
        raise AssertionError(operation)

    monkeypatch.setattr(engine._storage, "read", asked)
    made = await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(name="One", body="x"), ready)
    assert made.campaign.counters.total == 1


async def test_the_next_contacts_are_fetched_while_those_before_are_written(engine: Outreach) -> None:
    """A source that is slow, and a disk that is, are slow at the same time and not one after the other."""
    workspace = await given_workspace(engine)
    asked = anyio.Event()
    write = engine._storage.write

    async def waiting(operation: Callable[[Transaction], Any], *, bulk: bool = False) -> Any:
        if bulk:
            await asked.wait()
        return await write(operation, bulk=bulk)

    async def source() -> AsyncIterator[NewRecipient]:
        for number, contact in enumerate(contacts(2 * CHUNK)):
            if number == CHUNK:
                asked.set()
            yield contact

    with pytest.MonkeyPatch.context() as patched, anyio.fail_after(60):
        patched.setattr(engine._storage, "write", waiting)
        made = await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(name="Many", body="x"), source())
    assert made.campaign.counters.total == 2 * CHUNK


async def test_a_load_writes_less_at_a_time_while_others_write(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As much as takes some milliseconds, where it had to wait for its turn; all of it in the order of the source."""
    clock, written = ManualClock(), list[int]()
    load_chunk = loading.load_chunk

    def slow(tx: Transaction, campaign: Campaign, chunk: Sequence[PreparedRecipient], **more: Any) -> ChunkResult:
        clock.advance(0.00165 * len(chunk))
        written.append(len(chunk))
        return load_chunk(tx, campaign, chunk, **more)

    monkeypatch.setattr(loading, "load_chunk", slow)
    async with Outreach(open_storage(clock), clock=clock, config=EngineConfig(insert_batch_size=30)) as engine:
        workspace = await given_workspace(engine)
        write = engine._storage.write
        await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(name="Alone", body="x"), contacts(75))

        async def waiting(operation: Callable[[Transaction], Any], *, bulk: bool = False) -> Any:
            clock.advance(1.0 if bulk else 0.0)
            return await write(operation, bulk=bulk)

        monkeypatch.setattr(engine._storage, "write", waiting)
        new = NewSmsCampaign(name="Beside others", body="x")
        made = await engine.campaigns.create_sms(workspace.id, new, contacts(75))
        loaded = await engine.campaigns.list_recipients(workspace.id, made.campaign.id, limit=100)
    assert [one.phone_number for one in loaded.items] == [one.phone_number for one in contacts(75)]
    assert written == [30, 30, 15, 30, 15, 15, 15]
