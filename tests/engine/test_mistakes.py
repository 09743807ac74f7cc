"""What somebody who embeds the engine gets wrong at first, and what they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, time
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import anyio
import pytest

from outreach import (
    BusinessHours,
    ConfigError,
    InvalidRequest,
    NewMessage,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    TimeWindow,
    WorkspaceMode,
)
from outreach.core.async_functions import async_problem
from outreach.errors import StorageError
from outreach.models import DAYS, CallOutcome
from outreach.models.dispatch import DispatchOutcome
from outreach.protocols import AccountCheck, Callback, CallReport, Connection
from outreach.protocols.carrier import OutboundMessage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.scripted import ScriptedCarrier
from tests.fake_provider import CREDENTIALS, sign
from tests.own_adapter import OwnAdapter

pytestmark = pytest.mark.virtual_time

ADA = [NewRecipient(phone_number="+14155550102")]
OFFICE = TimeWindow.between(time(9), time(17, 30))


def new_campaign(**changes: Any) -> NewSmsCampaign:
    """Return a campaign with what differs."""
    return NewSmsCampaign(
        **{"name": "Spring", "body": "Hi", "carrier": "twilio", "from_number": "+14155550199", **changes}
    )


async def test_an_engine_that_is_not_open_says_so() -> None:
    """It itself, not the storage that somebody who wrote `Outreach.open` has never seen."""
    engine = Outreach.open("memory://")
    with pytest.raises(StorageError, match="engine is not open: use it within `async with engine:`"):
        await engine.workspaces.list()
    async with engine:
        assert list(await engine.workspaces.list()) == []
    with pytest.raises(StorageError, match="engine is not open"):
        await engine.workspaces.list()


async def test_a_start_that_would_have_no_effect_is_refused(engine: Outreach) -> None:
    """Or the campaign would go out as soon as it is started, years before the time that was given."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
    start = datetime(2030, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidRequest, match=r"scheduled_start_at: has no effect .* schedule_type='scheduled'"):
        await engine.campaigns.create_sms(workspace.id, new_campaign(scheduled_start_at=start), ADA)
    scheduled = new_campaign(scheduled_start_at=start, schedule_type="scheduled")
    created = await engine.campaigns.create_sms(workspace.id, scheduled, ADA)
    assert created.campaign.scheduled_start_at == start


async def test_business_hours_are_written_with_times_of_the_day(engine: Outreach) -> None:
    """As short as they are thought: a zone, and windows by day."""
    hours = BusinessHours(timezone="America/New_York", schedule=dict.fromkeys(DAYS[:5], (OFFICE,)))
    assert (OFFICE.start_minute, OFFICE.end_minute) == (540, 1050)
    assert TimeWindow.between(time(18), time(0)).end_minute == 1440
    assert (hours.enabled, hours.batch_concurrency) == (True, 10)
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
    created = await engine.campaigns.create_sms(workspace.id, new_campaign(business_hours=hours), ADA)
    assert created.campaign.business_hours == hours


@pytest.mark.parametrize("windows", [OFFICE, ["09:00"], "09:00-17:00"])
async def test_windows_that_are_none_are_named_with_their_day(engine: Outreach, windows: Any) -> None:
    """Rather than a `TypeError` from the depths."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
    hours = BusinessHours(timezone="UTC", schedule={"monday": windows})
    with pytest.raises(InvalidRequest, match=r"schedule\.monday: must be a tuple of outreach\.TimeWindow"):
        await engine.campaigns.create_sms(workspace.id, new_campaign(business_hours=hours), ADA)


@pytest.mark.parametrize(
    ("window", "told"),
    [
        (lambda: TimeWindow(start_minute=-1, end_minute=9999), "not -1 and 9999"),
        (lambda: TimeWindow(start_minute=60, end_minute=60), "starts, 60"),
        (lambda: TimeWindow.between(time(9, 0, 30), time(17)), "whole minutes"),
    ],
)
def test_a_window_that_cannot_be_says_which(window: Any, told: str) -> None:
    """With the values that were given."""
    with pytest.raises(ValueError, match=told):
        window()


class SlowAnalyser:
    """Asks a language model."""

    async def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return what it says."""
        return None


class OldStorage:
    """What somebody wrote for an earlier protocol."""

    async def __aenter__(self) -> None:
        """Open it."""

    async def __aexit__(self, *_: object) -> None:
        """Close it."""

    async def read(self, operation: object) -> None:
        """Read nothing."""


@pytest.mark.parametrize(
    ("storage", "told"),
    [
        (OldStorage(), "which lacks write, campaign_list_revision of an outreach.Storage"),
        (MemoryStorage, "which lacks __aenter__"),
        (None, "storage is None, which lacks"),
        (Path("app.db"), r"Outreach\.open\(url\)"),
    ],
)
def test_what_is_no_storage_is_refused_as_the_engine_is_made(storage: Any, told: str) -> None:
    """Not by the first thing that is asked of it."""
    with pytest.raises(ConfigError, match=told):
        Outreach(storage)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sandbox_carrier": "twilio"}, "sandbox_carrier is 'twilio'; it must be an outreach.Carrier"),
        ({"sandbox_voice": OwnAdapter()}, "it must be an outreach.VoiceProvider"),
        ({"adapters": OwnAdapter()}, "it must be a list of adapters"),
        ({"analyser": SlowAnalyser()}, "whose method `outcome` is no async one"),
    ],
)
def test_what_an_engine_cannot_use_is_refused_as_it_is_made(wrong: dict[str, Any], told: str) -> None:
    """Not by each request that fails later."""
    with pytest.raises(ConfigError, match=told):
        Outreach.open("memory://", **wrong)


class NamesFields(OwnAdapter):
    """Has names where fields must be."""

    fields: Any = ("key",)


class ChecksAtOnce(OwnAdapter):
    """Has a check that does not wait."""

    check: Any = lambda self, connection: AccountCheck(ok=True, message="")


class LacksReading(OwnAdapter):
    """Reads no callbacks."""

    read: Any = None


class ConnectsLater(OwnAdapter):
    """Connects in an async function."""

    async def connect(self, connection: Connection) -> Any:  # type: ignore[override]
        """Return nothing."""


class ReadsLater(OwnAdapter):
    """Reads in an async generator."""

    async def read(self, connection: Connection, callback: Callback) -> Any:
        """Yield nothing."""
        yield


@pytest.mark.parametrize(
    ("adapter", "told"),
    [
        (
            NamesFields(),
            r"the fields of 'mycarrier' .* must be a list of outreach\.protocols\.CredentialField",
        ),
        (ChecksAtOnce(), "check of 'mycarrier' must be an async function"),
        (ConnectsLater(), r"connect of 'mycarrier' must be a function without async \(def\)"),
        (ReadsLater(), "read of 'mycarrier' must be a function without async"),
        (LacksReading(), r"'mycarrier' lacks read: see outreach\.protocols\.CarrierAdapter"),
    ],
)
def test_an_adapter_that_cannot_work_is_refused_with_what_it_lacks(adapter: OwnAdapter, told: str) -> None:
    """And with the public name of what it has to be."""
    with pytest.raises(ConfigError, match=told):
        Outreach.open("memory://", adapters=[adapter])


class Connects(OwnAdapter):
    """Connects what it is given."""

    def __init__(self, connected: Any) -> None:
        super().__init__()
        self.connected = connected

    def connect(self, connection: Connection) -> Any:
        """Return it."""
        return self.connected


class SendsAtOnce:
    """A carrier whose `send` is not async."""

    def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Fail the test."""
        raise AssertionError(message)


async def _carrier() -> ScriptedCarrier:
    return ScriptedCarrier()


@pytest.mark.parametrize(
    ("connect", "told"),
    [
        (lambda: None, "returned NoneType, whose send is missing"),
        (SendsAtOnce, "returned SendsAtOnce, whose send must be an async function"),
        (_carrier, "returned coroutine, whose send must be an async function"),
    ],
)
async def test_an_adapter_that_connects_no_carrier_sends_nothing(
    connect: Callable[[], Any], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was certainly not asked for is not `unknown`."""
    connected = connect()
    engine = Outreach.open("memory://", dispatch=True, adapters=[Connects(connected)])
    async with engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
        await engine.accounts.connect(workspace.id, "mycarrier", CREDENTIALS)
        new = NewMessage(to="+14155550102", body="Hi", carrier="mycarrier", from_number="+14155550199")
        message = await engine.messages.send(workspace.id, new)
        await anyio.sleep(60)
        message = await engine.messages.get(workspace.id, message.id)
        assert message.status == "failed"
    assert told in caplog.text
    if asyncio.iscoroutine(connected):
        connected.close()


@pytest.mark.parametrize("function", [AsyncMock(), MagicMock(), partial(_carrier), partial(partial, _carrier)])
def test_a_callable_that_is_no_function_may_return_an_awaitable(function: object) -> None:
    """Only the call would show it."""
    assert async_problem(function, is_async=True) is None


@pytest.mark.parametrize("header", ["x-signature", "X-Signature"])
async def test_a_callback_is_read_however_its_headers_are_written(header: str) -> None:
    """Django and WSGI write them in another way than ASGI."""
    async with Outreach.open("memory://", adapters=[OwnAdapter()]) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
        account = await engine.accounts.connect(workspace.id, "mycarrier", CREDENTIALS)
        url, body = "https://acme.example/webhooks/1", b"[]"
        headers = {header: sign(url, body)}
        assert await engine.callbacks.receive(account.id, url=url, headers=headers, body=body) == []
