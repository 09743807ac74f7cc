from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from outreach import (
    CampaignUpdate,
    ConfigError,
    InvalidRequest,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewNumber,
    NewTrunk,
    NumberUpdate,
    Outreach,
    WorkspaceMode,
)
from outreach.core.clock import Clock
from outreach.core.vault import Vault
from outreach.errors import AccountMissing, CannotStart
from outreach.models import MessageStatus
from outreach.protocols import AnyAdapter, Callback, CallbackEvent, Connection, MessageReport, SystemClock
from outreach.protocols.storage import Storage
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice
from tests.engine.conftest import OpenStorage
from tests.engine.rig import (
    QUICK,
    contacts,
    given_campaign,
    given_workspace,
    reaches,
    start_campaign,
    stored_account,
    until,
)
from tests.fake_provider import CREDENTIALS, FakeAdapter, sign
from tests.own_adapter import OwnAdapter, OwnVoiceAdapter, package

pytestmark = pytest.mark.anyio

GROUP = "outreach.adapters"


@asynccontextmanager
async def live(
    open_storage: OpenStorage, adapters: Sequence[AnyAdapter] = (), workspace_id: str | None = None
) -> AsyncIterator[tuple[Outreach, str]]:
    """Open an engine that dispatches, with a live workspace that sends from a number of mycarrier."""
    config = attrs.evolve(QUICK, public_url="https://o.example")
    async with Outreach(
        open_storage(SystemClock()), dispatch=True, config=config, adapters=adapters, vault=Vault(keys="A" * 43 + "=")
    ) as engine:
        if workspace_id is None:
            workspace = await given_workspace(
                engine, mode=WorkspaceMode.LIVE, sms_campaigns_enabled=True, contact_hours=False
            )
            workspace_id = workspace.id
            await engine.numbers.create(workspace_id, NewNumber(phone="+14155550100", carrier="mycarrier"))
        yield engine, workspace_id


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with an adapter named mycarrier."""
    with package(tmp_path, monkeypatch, {GROUP: {"mycarrier": "own_things:ADAPTER"}}):
        yield


async def test_a_campaign_goes_to_a_carrier_of_ones_own(open_storage: OpenStorage) -> None:
    """From the account to the callback: everything that the engine's own carriers can."""
    own = OwnAdapter()
    async with live(open_storage, [own]) as (engine, workspace_id):
        assert [field.name for field in engine.accounts.credential_fields("mycarrier")][:2] == ["account", "token"]
        account = await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        (shown,) = await engine.accounts.list(workspace_id)
        assert (shown.provider, shown.kind, shown.problem) == ("mycarrier", "carrier", None)
        assert (await engine.accounts.check(workspace_id, account.id)).ok
        workspace = await engine.workspaces.get(workspace_id)
        campaign = await start_campaign(engine, workspace, 3, carrier="mycarrier")
        await reaches(engine, campaign, "completed")
        assert len(own.carrier.requests) == 3
        url = f"https://o.example/webhooks/{account.id}"
        body = b'[{"id": "e1", "kind": "text", "from": "+14155550101", "body": "HELP"}]'
        (record,) = await engine.callbacks.receive(
            account.id, url=url, headers={"x-signature": sign(url, body)}, body=body
        )
        assert record.result == "received"
        # It answers no keywords itself: the answer goes by it, from the number that was written to.
        await until(lambda: _sent(own, 4))
        assert own.carrier.requests[3].from_number == "+14155550100"


class _CutShort(OwnAdapter):
    """Reads one receipt from each callback, with a code and an identifier that hold half an emoji and NUL."""

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Return it."""
        report = MessageReport(
            workspace_id=connection.workspace_id,
            provider=self.name,
            dispatch_id=callback.body.decode(),
            provider_id=None,
            status=MessageStatus.FAILED,
            at=connection.clock.now(),
            reason="temporary",
            error_code="cut \ud83d\x00",
        )
        return [CallbackEvent(event_id="e\ud83d\x00", content=report)]


async def test_a_receipt_is_merged_whatever_texts_it_brings(open_storage: OpenStorage) -> None:
    """Refused, it would come again and again, and be lost in the end."""
    async with live(open_storage, [_CutShort()]) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        campaign = await start_campaign(engine, await engine.workspaces.get(workspace_id), 1, carrier="mycarrier")
        await reaches(engine, campaign, "completed")
        (dispatch,) = await engine.campaigns.list_dispatches(workspace_id, campaign.id, 0)
        for results in (["merged"], []):
            found = await engine.callbacks.receive(account.id, url="/", headers={}, body=dispatch.id.encode())
            assert [record.result for record in found] == results
        (dispatch,) = await engine.campaigns.list_dispatches(workspace_id, campaign.id, 0)
        assert (dispatch.report, dispatch.error_code) == ("failed", "cut \ufffd\ufffd")


async def _sent(own: OwnAdapter, count: int) -> bool:
    return len(own.carrier.requests) >= count


async def test_a_call_goes_to_a_voice_provider_of_ones_own(open_storage: OpenStorage) -> None:
    """By an agent of it; a trunk that it does not know keeps a campaign from starting."""
    own = OwnVoiceAdapter()
    async with live(open_storage, [OwnAdapter(), own]) as (engine, workspace_id):
        await engine.accounts.connect(workspace_id, "myvoice", {"key": "k"})
        agent = await engine.agents.create(workspace_id, NewAgent(name="Ada", provider="myvoice"))
        call = await engine.calls.create(workspace_id, NewCall(agent_id=agent.id, to="+14155550101"))
        assert call.provider == "myvoice"
        await until(lambda: _called(own))
        trunk = await engine.trunks.create(workspace_id, NewTrunk(name="Line", address="sip.example.com"))
        new = NewCallCampaign(name="Calls", agent_id=agent.id, trunk_id=trunk.id)
        made = await engine.campaigns.create_call(workspace_id, new, contacts(1))
        with pytest.raises(CannotStart, match="needs its identifier at myvoice"):
            await engine.campaigns.start(workspace_id, made.campaign.id)
        with pytest.raises(InvalidRequest, match="must be one of twilio, telnyx, vonage, mycarrier"):
            await engine.numbers.create(workspace_id, NewNumber(phone="+14155550177", carrier="myvoice"))


async def _called(own: OwnVoiceAdapter) -> bool:
    return [request.to for request in own.voice.requests] == ["+14155550101"]


async def test_a_carrier_of_ones_own_is_taken_wherever_a_carrier_is_named(open_storage: OpenStorage) -> None:
    """Numbers, updates of campaigns, single messages, inbound messages; and its kind is looked at."""
    own = OwnAdapter()
    async with live(open_storage, [own]) as (engine, workspace_id):
        await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        sent = await engine.messages.send(
            workspace_id, NewMessage(to="+14155550101", body="x", from_number="+14155550100", carrier="mycarrier")
        )
        assert sent.carrier == "mycarrier"
        number = await engine.numbers.create(workspace_id, NewNumber(phone="+14155550199"))
        await engine.numbers.update(workspace_id, number.id, NumberUpdate(carrier="mycarrier"))
        campaign = await given_campaign(engine, await engine.workspaces.get(workspace_id), 1)
        changed = await engine.campaigns.update(workspace_id, campaign.id, CampaignUpdate(carrier="mycarrier"))
        assert changed.carrier == "mycarrier"
        with pytest.raises(InvalidRequest, match=r"must be one of simulator, vapi, retell, elevenlabs"):
            await engine.agents.create(workspace_id, NewAgent(name="Ada", provider="mycarrier"))


async def test_an_unknown_name_is_refused_with_those_that_there_are(open_storage: OpenStorage) -> None:
    """The engine's own and those that it was given."""
    async with live(open_storage, [OwnAdapter()]) as (engine, workspace_id):
        workspace = await engine.workspaces.get(workspace_id)
        with pytest.raises(InvalidRequest, match="must be one of twilio, telnyx, vonage, mycarrier"):
            await given_campaign(engine, workspace, 1, carrier="othercarrier")
        with pytest.raises(InvalidRequest, match=r"'othercarrier' is no provider .*elevenlabs, mycarrier"):
            await engine.accounts.connect(workspace_id, "othercarrier", CREDENTIALS)


@pytest.mark.soak("waits until nothing has come")
async def test_what_an_adapter_that_is_gone_was_to_send_waits_for_it(open_storage: OpenStorage) -> None:
    """Its campaign is paused with clear words; nothing is lost or sent elsewhere, and all goes on once it is back."""
    own, storage = OwnAdapter(), open_storage(SystemClock())

    def again(_: Clock) -> Storage:
        return storage

    async with live(again, [own]) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        workspace = await engine.workspaces.get(workspace_id)
        campaign = await given_campaign(engine, workspace, 3, carrier="mycarrier", rate_per_minute=60)
        idle = await given_campaign(engine, workspace, 1, carrier="mycarrier")
        await engine.campaigns.start(workspace_id, campaign.id)
        await until(lambda: _sent(own, 1))
    async with live(again, workspace_id=workspace_id) as (engine, _):
        await reaches(engine, campaign, "paused")
        (paused,) = (await engine.status()).paused
        assert (paused.why, paused.provider_installed) == ("no adapter for mycarrier is installed here", False)
        for move, refused in ((engine.campaigns.resume, campaign), (engine.campaigns.start, idle)):
            with pytest.raises(CannotStart, match="'mycarrier' is no provider that an account can be at") as caught:
                await move(workspace_id, refused.id)
            assert [detail.path for detail in caught.value.details] == ["account.mycarrier"]
        with pytest.raises(AccountMissing, match="installed package") as missing:
            await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))
        assert not missing.value.connectable
        (shown,) = await engine.accounts.list(workspace_id)
        assert (shown.kind, shown.credentials) == (None, {})
        assert shown.problem is not None
        assert "'mycarrier'" in shown.problem
        # A provider comes again after a 5xx: no report and no STOP is lost.
        with pytest.raises(ConfigError, match="'mycarrier'"):
            await engine.callbacks.receive(account.id, url="/", headers={}, body=b"[]")
        assert (await engine.campaigns.get(workspace_id, campaign.id)).carrier == "mycarrier"
    async with live(again, [own], workspace_id=workspace_id) as (engine, _):
        await engine.campaigns.resume(workspace_id, campaign.id)
        done = await reaches(engine, campaign, "completed")
        assert (done.counters.successful, done.counters.failed) == (3, 0)
        assert len({request.to for request in own.carrier.requests}) == len(own.carrier.requests) == 3


@pytest.mark.parametrize(
    ("adapters", "words"),
    [
        ([OwnAdapter(), OwnAdapter()], "two adapters are named 'mycarrier'"),
        ([FakeAdapter()], "the engine brings an adapter named 'twilio' itself"),
        ([OwnAdapter], "OwnAdapter is a class; an adapter is an object"),
        ([object()], "the name of object is None"),
        ([SimpleNamespace(name="half", kind="voice")], "'half' lacks problems, check"),
        ([SimpleNamespace(name="odd")], "the kind of 'odd' is None"),
    ],
)
async def test_what_is_no_adapter_or_has_anothers_name_is_refused(
    open_storage: OpenStorage, adapters: Any, words: str
) -> None:
    """At once, where the engine is made, and with what is wrong."""
    with pytest.raises(ConfigError, match=words):
        Outreach(open_storage(SystemClock()), adapters=adapters)


@pytest.mark.usefixtures("installed")
async def test_an_installed_package_brings_a_carrier(engine: Outreach) -> None:
    """By its entry point alone."""
    found = {one.name: (one.kind, one.source) for one in engine.accounts.providers()}
    assert found["mycarrier"] == ("carrier", "own-things 1.2")
    assert found["twilio"] == ("carrier", "outreach")
    workspace = await given_workspace(engine, mode=WorkspaceMode.LIVE)
    assert (await engine.accounts.connect(workspace.id, "mycarrier", CREDENTIALS)).provider == "mycarrier"
    assert not (await engine.readiness()).adapter_problems


async def test_a_package_that_is_broken_is_named_and_the_rest_goes_on(
    open_storage: OpenStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A module that is not there, an object that is no adapter, another one's name, two packages with one name."""
    points = {
        "mycarrier": "own_things:ADAPTER",
        "gone": "no_such_module:ADAPTER",
        "odd": "own_things:MODULE_OF_NOTHING",
        "analyser": "own_things:ANALYSER",
        "vonage": "own_things:ADAPTER",
        "twice": "own_things:ADAPTER",
    }
    other = package(tmp_path, monkeypatch, {GROUP: {"twice": "own_things:ADAPTER"}}, name="other-things")
    with other, package(tmp_path, monkeypatch, {GROUP: points}):
        async with Outreach(open_storage(SystemClock())) as engine:
            assert "mycarrier" in {one.name for one in engine.accounts.providers()}
            ready = await engine.readiness()
            assert ready.ready
            problems = {one.path: one.message for one in ready.adapter_problems}
            assert set(problems) == {"gone", "odd", "analyser", "vonage", "twice"}
            assert "own-things 1.2" in problems["gone"]
            assert "No module named 'no_such_module'" in problems["gone"]
            assert "the engine brings an adapter named 'vonage' itself" in problems["vonage"]
            assert "other-things 1.2 and own-things 1.2" in problems["twice"]
            assert (await engine.status()).adapter_problems == ready.adapter_problems
            with pytest.raises(InvalidRequest, match=r"'gone' .* cannot be loaded"):
                engine.accounts.credential_fields("gone")
    logged = [record.message for record in caplog.records if getattr(record, "action", "") == "adapter_not_usable"]
    assert sorted(logged) == sorted(problems.values())


@pytest.mark.usefixtures("installed")
async def test_an_adapter_may_be_both_given_and_installed(open_storage: OpenStorage) -> None:
    """The same object is one adapter; another object of that name is the host's, and the package's is named."""
    import own_things  # type: ignore[import-not-found]  # the package that the fixture installs

    same = Outreach(open_storage(SystemClock()), adapters=[own_things.ADAPTER])
    assert same.accounts.adapter_problems() == []
    other = Outreach(open_storage(SystemClock()), adapters=[OwnAdapter()])
    (problem,) = other.accounts.adapter_problems()
    assert "two adapters are named 'mycarrier'" in problem.message
    assert [one.source for one in other.accounts.providers() if one.name == "mycarrier"] == ["given"]


async def test_an_installed_analyser_is_taken_by_its_name(
    open_storage: OpenStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an argument, or in `OUTREACH_ANALYSER`; an unknown name says which there are, and why one is not."""
    points = {"outreach.analysers": {"positive": "own_things:ANALYSER", "broken": "own_things:NOTHING"}}
    with package(tmp_path, monkeypatch, points):
        engine = Outreach(open_storage(SystemClock()), analyser="positive")
        assert type(engine._analyser).__name__ == "Positive"
        monkeypatch.setenv("OUTREACH_ANALYSER", "positive")
        assert type(Outreach.open("memory://")._analyser).__name__ == "Positive"
        with pytest.raises(ConfigError, match=r"There is no analyser 'other'. Installed packages bring: positive"):
            Outreach.open("memory://", analyser="other")
        with pytest.raises(ConfigError, match=r"'broken' .* cannot be loaded from own_things:NOTHING"):
            Outreach.open("memory://", analyser="broken")


async def test_open_takes_what_the_engine_takes(tmp_path: Path) -> None:
    """Own providers for sandboxes and live workspaces, and a vault, over a database by its URL."""
    own, sandbox = OwnAdapter(), ScriptedCarrier()
    async with Outreach.open(
        f"sqlite:///{tmp_path / 'a.db'}",
        dispatch=True,
        config=QUICK,
        adapters=[own],
        sandbox_carrier=sandbox,
        sandbox_voice=ScriptedVoice(),
        vault=Vault(keys="A" * 43 + "="),
    ) as engine:
        workspace = await given_workspace(engine, sms_campaigns_enabled=True, contact_hours=False)
        campaign = await start_campaign(engine, workspace, 1, carrier="mycarrier")
        await reaches(engine, campaign, "completed")
        assert len(sandbox.requests) == 1
        account = await engine.accounts.connect(workspace.id, "mycarrier", CREDENTIALS)
        sealed = (await engine._storage.read(lambda tx: stored_account(tx, account))).sealed
        assert Vault(keys="A" * 43 + "=").open(account.id, sealed, provider="mycarrier") == CREDENTIALS
    parameters = inspect.signature(Outreach).parameters.keys() - {"storage"}
    assert parameters <= inspect.signature(Outreach.open).parameters.keys()
