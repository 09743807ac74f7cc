from __future__ import annotations

import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from outreach import ConfigError, InvalidRequest, NewMessage, NewNumber, NewWorkspace, NotFound, Outreach, WorkspaceMode
from outreach.core.vault import Vault
from outreach.dispatch.account_keys import require_key
from outreach.errors import AccountMissing
from outreach.models import Account
from outreach.models.states import CampaignStatus, DispatchState, MessageStatus
from outreach.protocols.adapter import AccountCheck, Connection
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_provider_throttle
from outreach.testing.scripted import ScriptedCarrier, defer, drop
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import QUICK, given_workspace, reaches, start_campaign, stored_account, until, until_true
from tests.fake_provider import CREDENTIALS, FakeAdapter

pytestmark = pytest.mark.virtual_time


@asynccontextmanager
async def live(open_storage: OpenStorage, **changes: Any) -> AsyncIterator[tuple[Outreach, str]]:
    """Open an engine that dispatches, with a live workspace that sends at any hour."""
    config = attrs.evolve(QUICK, public_url="https://o.example", **changes)
    async with Outreach(open_storage(clock_of_loop()), dispatch=True, config=config, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(
            engine, mode=WorkspaceMode.LIVE, sms_campaigns_enabled=True, contact_hours=False
        )
        await engine.numbers.create(workspace.id, NewNumber(phone="+14155550100", carrier="twilio"))
        yield engine, workspace.id


async def test_a_live_campaign_goes_to_the_account_of_its_workspace(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """docs/rules.md#sandbox: a live workspace sends to the real provider, with the credentials that were given."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        campaign = await start_campaign(engine, await engine.workspaces.get(workspace_id), 3)
        await reaches(engine, campaign, "completed")
        assert len(fake.carrier.requests) == 3
        assert {connection.account_id for connection in fake.connections} == {account.id}
        assert fake.connections[0].credentials == CREDENTIALS
        assert fake.connections[0].callback_url == f"https://o.example/webhooks/{account.id}"


async def test_without_an_account_nothing_is_queued(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """A live workspace without an account is told so when it asks, and not ten minutes later."""
    async with live(open_storage) as (engine, workspace_id):
        with pytest.raises(AccountMissing, match="no account at twilio") as caught:
            await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))
        assert (caught.value.workspace_id, caught.value.provider) == (workspace_id, "twilio")
        assert "outreach-server" not in caught.value.message
        assert fake.carrier.requests == []


async def test_other_credentials_are_used_from_then_on(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """A second connect changes the account; it stays the same one, and so does its address for callbacks."""
    async with live(open_storage) as (engine, workspace_id):
        first = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        await _send(engine, workspace_id)
        second = await engine.accounts.connect(workspace_id, "twilio", {**CREDENTIALS, "token": "other"})
        assert second.id == first.id
        assert (await engine._storage.read(lambda tx: stored_account(tx, second))).revision == 1
        await _send(engine, workspace_id)
        assert [connection.credentials["token"] for connection in fake.connections] == ["s3cret-token", "other"]


@pytest.mark.parametrize("replies", [False, True])
async def test_other_credentials_change_nothing_about_who_answers_keywords(
    open_storage: OpenStorage, fake: FakeAdapter, replies: bool
) -> None:
    """Or a STOP would go without an answer, or get two; a new account begins with the provider's default.

    docs/opt-out.md#answers.
    """
    async with live(open_storage) as (engine, workspace_id):
        usual = fake.replies_to_keywords = not replies
        first = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        assert first.replies_to_keywords is usual
        said = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS, replies_to_keywords=replies)
        assert said.replies_to_keywords is replies
        rotated = await engine.accounts.connect(workspace_id, "twilio", {**CREDENTIALS, "token": "other"})
        assert rotated.replies_to_keywords is replies
        await engine.accounts.remove(workspace_id, first.id)
        assert (await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)).replies_to_keywords is usual


async def test_a_campaign_whose_account_was_removed_is_paused_and_nobody_is_lost(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """docs/rules.md#error-budget: it pauses with the reason; connected again, it reaches everybody once."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        workspace = await engine.workspaces.get(workspace_id)
        campaign = await start_campaign(engine, workspace, 3, rate_per_minute=120)
        await fake.carrier.wait_for_requests(1)
        await engine.accounts.remove(workspace_id, account.id)
        assert (await reaches(engine, campaign, "paused")).pause_reason == "provider_auth"
        await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        await engine.campaigns.resume(workspace_id, campaign.id)
        done = await reaches(engine, campaign, "completed")
        assert done.counters.successful == 3
        assert len({message.to for message in fake.carrier.requests}) == len(fake.carrier.requests) == 3


@pytest.mark.parametrize("anew", [False, True])
async def test_what_another_account_does_not_find_was_perhaps_sent_by_the_one_before(
    open_storage: OpenStorage, fake: FakeAdapter, anew: bool
) -> None:
    """Where a look-up is authoritative it is so for its own account: nobody is contacted twice after a change.

    docs/delivery-contract.md#rule-6.
    """
    fake.carrier = ScriptedCarrier([drop()])
    # Looked up once when it cannot be on its way any more, and ended soon after.
    seldom = {"change_poll_seconds": 1.0, "heartbeat_interval_seconds": 2.0, "reconcile_interval_seconds": 5.0}
    waits = {"reconcile_delay_seconds": 60.0, "reconcile_retry_seconds": 20.0, "reconcile_deadline_seconds": 90.0}
    async with live(open_storage, **seldom, **waits) as (engine, workspace):
        account = await engine.accounts.connect(workspace, "twilio", CREDENTIALS)
        campaign = await start_campaign(engine, await engine.workspaces.get(workspace), 1)

        async def states() -> list[DispatchState]:
            return [one.state for one in await engine.campaigns.list_dispatches(workspace, campaign.id, 0)]

        await until(states, lambda found: found == [DispatchState.UNKNOWN])
        fake.carrier = ScriptedCarrier(look_up="authoritative")
        if anew:
            await engine.accounts.remove(workspace, account.id)
        await engine.accounts.connect(workspace, "twilio", {**CREDENTIALS, "account": "AC2"})

        with anyio.fail_after(600):
            while await states() == [DispatchState.UNKNOWN]:  # noqa: ASYNC110 - it is asked of a database
                await anyio.sleep(1)
        assert await states() == [DispatchState.UNCONFIRMED]
        assert fake.carrier.requests == []


@pytest.mark.parametrize(
    ("provider", "credentials", "path"),
    [
        ("nobody", CREDENTIALS, "provider"),
        ("twilio", {}, "credentials.account"),
        ("twilio", {**CREDENTIALS, "signing_secret": "  "}, "credentials.signing_secret"),
        ("twilio", {**CREDENTIALS, "colour": "blue"}, "credentials.colour"),
        ("twilio", {**CREDENTIALS, "token": "a\0b"}, "credentials.token"),
        ("twilio", {**CREDENTIALS, "token": "x" * 10_001}, "credentials.token"),
        ("twilio", {**CREDENTIALS, "account": "XX1"}, "credentials"),
    ],
)
async def test_what_is_wrong_with_credentials_is_named(
    open_storage: OpenStorage, fake: FakeAdapter, provider: str, credentials: dict[str, str], path: str
) -> None:
    """Each place by its name, and nothing is written; without what verifies callbacks there is no account."""
    async with live(open_storage) as (engine, workspace_id):
        with pytest.raises(InvalidRequest) as caught:
            await engine.accounts.connect(workspace_id, provider, credentials)
        assert path in {detail.path for detail in caught.value.details}
        assert list(await engine.accounts.list(workspace_id)) == []


async def test_a_list_shows_no_secret(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """What is no secret is shown as it is; of a secret only that it is there; nor does a repr tell."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        (shown,) = await engine.accounts.list(workspace_id)
        assert shown.credentials == {"account": "AC1", "token": "set", "signing_secret": "set"}
        await _send(engine, workspace_id)
        assert "s3cret" not in f"{shown}{account}{fake.connections}"


async def test_a_check_says_what_is_the_case(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """In words, good or bad; and for the workspace's own account alone."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        assert (await engine.accounts.check(workspace_id, account.id)).ok
        await engine.accounts.connect(workspace_id, "twilio", {**CREDENTIALS, "token": "wrong"})
        found = await engine.accounts.check(workspace_id, account.id)
        assert (found.ok, found.message) == (False, "The token is wrong.")
    async with Outreach(open_storage(clock_of_loop()), clock=clock_of_loop()) as engine:
        with pytest.raises(NotFound):
            await engine.accounts.check(workspace_id, workspace_id)


async def test_a_check_ends_however_long_the_provider_answers(
    open_storage: OpenStorage, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that comes byte by byte keeps nobody waiting for longer than a request may take."""

    async def check(connection: Connection) -> AccountCheck:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(fake, "check", check)
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        with anyio.fail_after(10 * QUICK.provider_timeout_seconds):
            found = await engine.accounts.check(workspace_id, account.id)
        assert (found.ok, found.fault) == (False, "unreachable")
        assert found.message == f"twilio did not answer within {QUICK.provider_timeout_seconds:g} s."


@pytest.mark.parametrize("anew", [False, True])
async def test_connecting_an_account_ends_the_throttle_of_the_one_before(
    open_storage: OpenStorage, fake: FakeAdapter, anew: bool
) -> None:
    """A throttle stops the account, not its successor; what waited is sent, campaigns too.

    docs/delivery-contract.md#rule-7.
    """
    fake.carrier = ScriptedCarrier([defer(3600)])
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        message = await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))

        async def is_held() -> bool:
            return await engine.accounts.throttled_until(workspace_id, "twilio") is not None

        await until(is_held)
        (shown,) = await engine.accounts.list(workspace_id)
        ends = await engine.accounts.throttled_until(workspace_id, "twilio")
        assert (shown.throttled_by, shown.throttled_until) == ("provider_throttle", ends)
        campaign = await start_campaign(engine, await engine.workspaces.get(workspace_id), 2)
        assert (await engine.accounts.check(workspace_id, account.id)).ok
        assert await is_held()
        if anew:
            await engine.accounts.remove(workspace_id, account.id)
            assert not await is_held()
        await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        assert not await is_held()
        (shown,) = await engine.accounts.list(workspace_id)
        assert (shown.throttled_by, shown.throttled_until) == (None, None)
        await reaches(engine, campaign, "completed")

        async def is_taken() -> bool:
            return (await engine.messages.get(workspace_id, message.id)).status is MessageStatus.ACCEPTED

        await until(is_taken)


async def test_a_throttle_stops_its_workspace_alone(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """Another one's account at the same provider is not, nor is another provider; and what is over is over."""
    storage = open_storage(clock_of_loop())
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        ids = [
            (await engine.workspaces.create(NewWorkspace(name=name, mode=WorkspaceMode.LIVE))).id
            for name in ("One", "Two")
        ]
        for one in ids:
            await engine.accounts.connect(one, "twilio", CREDENTIALS)
        ends = clock_of_loop().now() + timedelta(hours=1)
        hold = make_provider_throttle(workspace_id=ids[0], until=ends)
        await storage.write(lambda tx: tx.provider_throttles.put(hold))
        assert [(await engine.accounts.list(one)).items[0].throttled_until for one in ids] == [ends, None]
        assert [await engine.accounts.throttled_until(one, "twilio") for one in ids] == [ends, None]
        assert await engine.accounts.throttled_until(ids[0], "telnyx") is None
        past = attrs.evolve(hold, until=clock_of_loop().now())
        await storage.write(lambda tx: tx.provider_throttles.put(past))
        assert await engine.accounts.throttled_until(ids[0], "twilio") is None


async def problem_of(url: str, workspace_id: str) -> str:
    """Return why a workspace's only account cannot be opened: a list tells it as a check does."""
    async with Outreach.open(url, clock=clock_of_loop()) as engine:
        (shown,) = await engine.accounts.list(workspace_id)
        assert (shown.provider, shown.credentials) == ("twilio", {})
        with pytest.raises(ConfigError) as caught:
            await engine.accounts.check(workspace_id, shown.id)
    assert shown.problem == caught.value.message
    assert f"account {shown.id} at twilio" in shown.problem
    return shown.problem


async def test_the_file_holds_no_credentials_and_the_key_is_the_owners(tmp_path: Path, fake: FakeAdapter) -> None:
    """SECURITY.md: encrypted at rest, with a key from a 0600 file that is not the database."""
    url = f"sqlite:///{tmp_path / 'o.db'}"
    async with Outreach.open(url, clock=clock_of_loop()) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
    key = tmp_path / "o.db.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with sqlite3.connect(tmp_path / "o.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert b"s3cret" not in (tmp_path / "o.db").read_bytes()
    async with Outreach.open(url, clock=clock_of_loop()) as engine:
        assert (await engine.accounts.list(workspace.id)).items[0].id == account.id
    key.unlink()
    assert "no key to open" in await problem_of(url, workspace.id)
    key.write_text("schlüssel\n", encoding="utf-8")
    assert "Others may read" in await problem_of(url, workspace.id)
    key.chmod(0o600)
    assert f"{key} holds no key" in await problem_of(url, workspace.id)
    key.unlink()
    key.mkdir()
    assert f"{key} cannot be read" in await problem_of(url, workspace.id)


async def test_credentials_open_for_their_own_account_alone(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """Somebody who can write into the file cannot give one workspace the credentials of another."""
    storage = open_storage(clock_of_loop())
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        ids = [
            (await engine.workspaces.create(NewWorkspace(name=name, mode=WorkspaceMode.LIVE))).id
            for name in ("One", "Two")
        ]
        mine, other = [await engine.accounts.connect(one, "twilio", CREDENTIALS) for one in ids]
        await storage.write(lambda tx: _reseal(tx, other, stored_account(tx, mine).sealed))
        with pytest.raises(ConfigError, match="belong to another account"):
            await engine.accounts.check(other.workspace_id, other.id)


async def test_an_account_that_cannot_be_opened_is_listed_beside_the_others(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """What is wrong with it stands there in words; the others are shown as ever."""
    storage = open_storage(clock_of_loop())
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        await engine.accounts.connect(workspace.id, "retell", {"api_key": "key_1"})
        sealed = Vault(keys="A" * 43 + "=").encrypt(account.id, CREDENTIALS)
        await storage.write(lambda tx: _reseal(tx, account, sealed))
        first, second = await engine.accounts.list(workspace.id)
        assert (first.id, first.credentials) == (account.id, {})
        assert first.problem is not None
        assert "connect the account at twilio anew" in first.problem
        assert (second.credentials, second.problem) == ({"api_key": "set"}, None)


async def test_a_missing_key_is_logged(
    open_storage: OpenStorage, fake: FakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """A campaign pauses and a message fails for its account's sake; what to do nobody else could tell."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        await engine.accounts.connect(workspace_id, "retell", {"api_key": "key_1"})
        sealed = Vault(keys="A" * 43 + "=").encrypt(account.id, CREDENTIALS)
        await engine._storage.write(lambda tx: _reseal(tx, account, sealed))
        message = await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))

        async def failed() -> bool:
            return (await engine.messages.get(workspace_id, message.id)).status is MessageStatus.FAILED

        await until(failed)
    (record,) = [record for record in caplog.records if getattr(record, "action", None) == "account_not_usable"]
    told = record.getMessage()
    assert record.levelname == "WARNING"
    assert all(part in told for part in (account.id, "twilio", "another key", "OUTREACH_SECRET_KEY"))
    assert "s3cret" not in told
    assert fake.carrier.requests == []


async def test_a_process_without_a_key_of_any_account_sends_nothing_and_pauses_nothing(
    open_storage: OpenStorage, fake: FakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """Its readiness and its log name the key; when the key is right again, it goes on without a restart.

    The account was connected by another process: at the start there was none.
    """
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        right = (await engine._storage.read(lambda tx: stored_account(tx, account))).sealed
        other = Vault(keys="A" * 43 + "=").encrypt(account.id, CREDENTIALS)
        await engine._storage.write(lambda tx: _reseal(tx, account, other))
        message = await engine.messages.send(workspace_id, NewMessage(to="+14155550199", body="x"))
        campaign = await start_campaign(engine, await engine.workspaces.get(workspace_id), 3)
        await until_true(lambda: engine.health().refused_reason == "secret_key")
        assert [one for one in (await engine.readiness()).reasons if "secret key" in one]
        await anyio.sleep(20)
        assert (await engine.campaigns.get(workspace_id, campaign.id)).status is CampaignStatus.ACTIVE
        assert (await engine.messages.get(workspace_id, message.id)).status is MessageStatus.QUEUED
        assert fake.carrier.requests == []
        await engine._storage.write(lambda tx: _reseal(tx, account, right))
        await reaches(engine, campaign, "completed")
        assert len({request.to for request in fake.carrier.requests}) == len(fake.carrier.requests) == 4
    said = [record for record in caplog.records if getattr(record, "action", None) == "dispatch_refused"]
    assert said
    assert all("another key" in record.getMessage() and record.levelname == "ERROR" for record in said)


async def test_sandboxes_need_no_key(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """Their accounts are not sent from."""
    async with Outreach(open_storage(clock_of_loop()), dispatch=True, config=QUICK, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        sealed = Vault(keys="A" * 43 + "=").encrypt(account.id, CREDENTIALS)
        await engine._storage.write(lambda tx: _reseal(tx, account, sealed))
        await engine._storage.read(lambda tx: require_key(tx, engine._vault))


async def _send(engine: Outreach, workspace_id: str) -> None:
    message = await engine.messages.send(workspace_id, NewMessage(to="+14155550101", body="x"))

    async def taken() -> bool:
        return (await engine.messages.get(workspace_id, message.id)).status is MessageStatus.ACCEPTED

    await until(taken)


def _reseal(tx: Transaction, account: Account, sealed: str) -> None:
    """Write other encrypted credentials."""
    tx.accounts.update(attrs.evolve(stored_account(tx, account), sealed=sealed))
