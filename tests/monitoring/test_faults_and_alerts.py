"""Each fault that lasts, on a file, with contacts that are being sent to: exactly the alerts that ever fire."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args

import anyio
import attrs
import httpx
import pytest

from outreach import WorkspaceMode
from outreach.ledger.leases import leases
from outreach.models import API_SCOPES
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Operation
from outreach.providers.http.account_client import AccountClient
from outreach.storage.base import writer as base_writer
from outreach.storage.sqlite import SqliteStorage, thread
from outreach.storage.sqlite import storage as connect
from outreach.storage.sqlite.backend import Transactions
from outreach.testing.fault_server import Answer, Fault, FaultServer
from outreach.testing.scripted import ScriptedCarrier, accept, not_sent
from outreach.testing.virtual_time import clock_of_loop, real_time
from outreach_server import create_app
from tests.engine.rig import WatchedStorage
from tests.monitoring.scenes import CALM, Disk, Scene, scene, stand_still
from tests.monitoring.watcher import EVERY_SECONDS
from tests.providers.carriers import SENDER, Twilio

T = TypeVar("T")

LOCK_SECONDS: Final = thread.BUSY_SECONDS
CONTACTS: Final = 30
MINUTES: Final = 25
"""Longer than any rule waits, and than most look back."""

UNKNOWN: Final = "OutreachDispatchesUnknown"


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk has room, whatever this machine's has."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1000, 500, 500))


@pytest.fixture(autouse=True)
def requests_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to providers go over real sockets; everything else waits in virtual time."""
    send = AccountClient.send

    async def sent(self: AccountClient, request: httpx.Request, **options: Any) -> httpx.Response:
        with real_time():
            return await send(self, request, **options)

    monkeypatch.setattr(AccountClient, "send", sent)


def file_in(directory: Path) -> SqliteStorage:
    """Return a storage on a new file."""
    return SqliteStorage(directory / "o.db", clock=clock_of_loop())


_ANSWERS: Final[Mapping[str, tuple[Answer, set[str]]]] = {
    "400": (Answer(status=400, body=json.dumps({"code": 1}).encode()), {"OutreachCampaignsPaused"}),
    "401": (Answer(status=401), {"OutreachProviderRejectsCredentials"}),
    "402": (Answer(status=402), {"OutreachProviderOutOfFunds"}),
    "404": (Answer(status=404), {"OutreachCampaignsPaused"}),
    "429": (Answer(status=429), {"OutreachAccountsThrottled"}),
    "429 for an hour": (Answer(status=429, headers={"retry-after": "3600"}), {"OutreachAccountsThrottled"}),
    "500": (Answer(status=500), {UNKNOWN}),
    "503": (Answer(status=503, headers={"retry-after": "60"}), {UNKNOWN}),
    "unreadable": (Answer(status=201, body=b"<html>"), {UNKNOWN}),
    "without its id": (Answer(status=200, body=b"{}"), {UNKNOWN}),
}
_FAULTS: Final[Mapping[Fault, set[str]]] = {
    "drop_before": {UNKNOWN},
    "drop_during": {UNKNOWN},
    "drop_after": {UNKNOWN},
    "silence": {UNKNOWN},
    "cut_answer": {UNKNOWN},
}


PLAYED: Final = pytest.mark.turn(8, "plays up to 50 minutes of a fault, looked at as often as Prometheus looks")


def test_no_fault_of_the_server_is_forgotten() -> None:
    """One that is added has its alerts here."""
    assert set(_FAULTS) == set(get_args(Fault))


@PLAYED
@pytest.mark.virtual_time
@pytest.mark.parametrize("fault", ["none", *_FAULTS, *_ANSWERS, "refused"])
async def test_a_provider_fault_that_lasts_fires_its_alert_and_no_other(tmp_path: Path, fault: Any) -> None:
    """The network's and the provider's, over HTTP; `refused` is a port at which nobody listens."""
    part, config = Twilio(), attrs.evolve(CALM, provider_timeout_seconds=0.5, public_url="https://outreach.test")
    live: dict[str, Any] = {"mode": WorkspaceMode.LIVE, "sms_campaigns_enabled": True, "contact_hours": False}
    expected: set[str] = set()
    async with FaultServer(part.stand_in.accept) as provider, scene(file_in(tmp_path), config=config, **live) as here:
        base = provider.url
        if fault in _FAULTS:
            provider.fault, expected = fault, _FAULTS[fault]
        elif fault in _ANSWERS:
            answer, expected = _ANSWERS[fault]
            provider.answer = lambda _: answer
        elif fault == "refused":
            expected = {"OutreachProviderUnreachable"}
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                base = f"http://127.0.0.1:{free.getsockname()[1]}"
        await here.engine.accounts.connect(here.workspace.id, "twilio", {**part.credentials, "api_base": base})
        await here.start(CONTACTS, carrier="twilio", from_number=SENDER)
        assert await here.watcher.follow(minutes=MINUTES, sleep=True) == expected


@PLAYED
@pytest.mark.virtual_time
async def test_callbacks_signed_with_another_secret_fire_their_alert_and_no_other(tmp_path: Path) -> None:
    """As after it was changed at the provider alone: over HTTP, and sent again every minute."""
    part, config = Twilio(), attrs.evolve(CALM, public_url="https://outreach.test")
    fired: set[str] = set()
    async with FaultServer(part.stand_in.accept) as provider, scene(file_in(tmp_path), config=config) as here:
        account = await here.engine.accounts.connect(
            here.workspace.id, "twilio", {**part.credentials, "api_base": provider.url}
        )
        transport = httpx.ASGITransport(create_app(engine=here.engine, metrics=here.watcher.metrics))
        async with httpx.AsyncClient(transport=transport, base_url="https://outreach.test") as client:
            for _ in range(MINUTES):
                answer = await client.post(
                    f"/webhooks/{account.id}",
                    data={"MessageSid": "SM1", "MessageStatus": "delivered"},
                    headers={"x-twilio-signature": "AAAA"},
                )
                assert answer.status_code == 403
                fired |= await here.watcher.follow(minutes=1, sleep=True)
    assert fired == {"OutreachCallbacksRefused"}


@PLAYED
@pytest.mark.virtual_time
@pytest.mark.parametrize("contacts", [1, CONTACTS])
async def test_a_provider_that_cannot_be_reached_for_seconds_fires_nothing(tmp_path: Path, contacts: int) -> None:
    """What is retried soon is no outage."""
    ends = 0.0
    carrier = ScriptedCarrier(
        lambda _: not_sent("not_connected") if anyio.current_time() < ends else accept().delivered(), name="twilio"
    )
    async with scene(file_in(tmp_path), carrier=carrier) as here:
        ends = anyio.current_time() + 5
        await here.start(contacts)
        assert await here.watcher.follow(minutes=MINUTES, sleep=True) == set()


@PLAYED
@pytest.mark.virtual_time
@pytest.mark.parametrize("contacts", [1, CONTACTS])
async def test_a_provider_that_cannot_be_reached_for_long_fires_its_alert(tmp_path: Path, contacts: int) -> None:
    """And it ends with the outage."""
    async with scene(
        file_in(tmp_path), carrier=ScriptedCarrier(lambda _: not_sent("not_connected"), name="twilio")
    ) as here:
        await here.start(contacts)
        assert await here.watcher.follow(minutes=MINUTES, sleep=True) == {"OutreachProviderUnreachable"}


class User:
    """Somebody who creates a campaign by the API every minute.

    Attributes:
        answers: What it got.
    """

    def __init__(self, here: Scene, key: str) -> None:
        self._here = here
        self._key = key
        self._app = create_app(engine=here.engine, metrics=here.watcher.metrics)
        self.answers: set[int] = set()

    async def follow(self) -> set[str]:
        """Ask, and return all alerts that fired meanwhile."""
        fired: set[str] = set()
        async with anyio.create_task_group() as tasks:
            for _ in range(MINUTES):
                tasks.start_soon(self._ask)
                fired |= await self._here.watcher.follow(minutes=1, sleep=True)
        return fired

    async def _ask(self) -> None:
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {self._key}"}
        body = {"name": "More", "message_body": "Hi", "recipients": [{"phone_number": "+14155550102"}]}
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client:
            self.answers.add((await client.post("/sms-campaigns", json=body)).status_code)


async def user_of(here: Scene) -> User:
    """Return one with a key."""
    key = await here.engine.api_keys.create(here.workspace.id, scopes=API_SCOPES)
    user = User(here, key.api_key)
    here.watcher.scrape()
    return user


class SlowToFail(WatchedStorage):
    """Waits in virtual time where SQLite waits in real time for another program's lock.

    Attributes:
        locked: Whether it has to wait.
    """

    locked = False

    def observe(self, instrumentation: Instrumentation) -> None:
        """Tell this instrumentation of each transaction."""
        cast("SqliteStorage", self._storage).observe(instrumentation)

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Write, after the wait."""
        if self.locked:
            await anyio.sleep(LOCK_SECONDS)
        return await super().write(operation, bulk=bulk)


@PLAYED
@pytest.mark.virtual_time
async def test_a_full_disk_that_lasts_fires_its_alert_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every commit wants a page more than SQLite may take, as on a disk that is full; the disk shows it, too."""
    full, commit = False, Transactions.commit

    def commit_if_there_is_room(self: Transactions) -> None:
        if full:
            used = self._raw.execute("PRAGMA page_count").fetchone()[0]
            free = self._raw.execute("PRAGMA freelist_count").fetchone()[0]
            self._raw.execute(f"PRAGMA max_page_count = {used}")
            self._raw.execute(f"CREATE TABLE more AS SELECT zeroblob({(free + 1) * 4096}) AS x")
        commit(self)

    monkeypatch.setattr(Transactions, "commit", commit_if_there_is_room)
    async with scene(file_in(tmp_path), carrier=receipts(), database=tmp_path / "o.db") as here:
        user = await user_of(here)
        await here.start(CONTACTS, rate_per_minute=2)
        assert await here.watcher.follow(minutes=1, sleep=True) == set()
        full = True
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1000, 1000, 0))
        assert await user.follow() == {"OutreachDatabaseWritesFail"}
        assert user.answers == {503}
        full = False
        await unlimited(here)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1000, 500, 500))
        assert await user.follow() == {"OutreachDatabaseWritesFail"}
        assert user.answers == {503, 201}
        assert await here.watcher.follow(minutes=1, sleep=True) == set()


async def unlimited(here: Scene) -> None:
    """Have SQLite take as many pages as it wants."""
    await here.storage.write(
        lambda tx: cast("Any", tx.audit)._rows.backend.connection.execute("PRAGMA max_page_count = 1073741823")
    )


@PLAYED
@pytest.mark.virtual_time
async def test_a_lock_of_another_program_that_lasts_fires_its_alert_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write gives up after its seconds."""
    monkeypatch.setattr(thread, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(base_writer, "BULK_SECONDS", 0.0)
    monkeypatch.setattr(connect, "_BUSY_TIMEOUT", "PRAGMA busy_timeout = 0")
    storage = SlowToFail(file_in(tmp_path))
    async with scene(storage, carrier=receipts(), database=tmp_path / "o.db") as here:
        user = await user_of(here)
        await here.start(CONTACTS, rate_per_minute=2)
        assert await here.watcher.follow(minutes=1, sleep=True) == set()
        with closing(sqlite3.connect(tmp_path / "o.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            storage.locked = True
            assert await user.follow() == {"OutreachDatabaseWritesFail"}
            assert user.answers == {503}
            storage.locked = False
        assert await user.follow() == {"OutreachDatabaseWritesFail"}
        assert user.answers == {503, 201}
        assert await here.watcher.follow(minutes=1, sleep=True) == set()


@PLAYED
@pytest.mark.virtual_time
@pytest.mark.parametrize("minutes", [-30, 30])
async def test_a_clock_that_is_set_fires_its_alert_and_no_other(tmp_path: Path, minutes: int) -> None:
    """Back or forth, once."""
    async with scene(file_in(tmp_path), carrier=receipts()) as here:
        user = await user_of(here)
        await here.start(CONTACTS, rate_per_minute=2)
        assert await here.watcher.follow(minutes=1, sleep=True) == set()
        here.clock.shift(timedelta(minutes=minutes))
        assert await user.follow() == {"OutreachClockStepped"}


@PLAYED
@pytest.mark.virtual_time
async def test_a_lost_lease_fires_its_alert_and_no_other(tmp_path: Path) -> None:
    """Somebody else has taken it; this process takes it again a moment later."""
    async with scene(file_in(tmp_path), carrier=receipts()) as here:
        user = await user_of(here)
        await here.start(CONTACTS, rate_per_minute=2)
        assert await here.watcher.follow(minutes=1, sleep=True) == set()
        await here.storage.write(lambda tx: leases.take_over(tx, home=None, noted=None, now=here.clock.now()))
        assert await user.follow() == {"OutreachLeaseLost"}


@PLAYED
@pytest.mark.virtual_time
@pytest.mark.parametrize("seconds", [10, 60])
async def test_a_process_that_stands_still_for_seconds_fires_nothing(tmp_path: Path, seconds: int) -> None:
    """It goes on where nobody has taken its lease meanwhile; Prometheus reads nothing while it stands."""
    async with scene(file_in(tmp_path), carrier=receipts()) as here:
        await here.start(CONTACTS, rate_per_minute=2)
        assert await here.watcher.follow(minutes=1, sleep=True) == set()
        stand_still(seconds)
        fired: set[str] = set()
        here.watcher.up = False
        for _ in range(int(seconds / EVERY_SECONDS)):
            here.watcher.scrape()
            fired |= here.watcher.firing()
        here.watcher.up = True
        fired |= await here.watcher.follow(minutes=MINUTES, sleep=True)
        assert fired == set()


def receipts() -> ScriptedCarrier:
    """Return a carrier that delivers everything."""
    return ScriptedCarrier(lambda _: accept().delivered(), name="twilio")
