from __future__ import annotations

from datetime import timedelta

import anyio
import attrs
import pytest

from outreach import NewMessage, Outreach, WorkspaceUpdate
from outreach.models.account import Account
from outreach.models.states import WorkspaceMode, WorkspaceStatus
from outreach.rules.receipts import FEWEST, NOTED_EVERY, SILENCE
from outreach.storage.unit_of_work import Transaction
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, given_campaign, reaches, until
from tests.engine.test_accounts import live
from tests.engine.test_callbacks import Caller
from tests.fake_provider import CREDENTIALS, FakeAdapter

pytestmark = pytest.mark.virtual_time

HOUR = SILENCE.total_seconds()
NOTED = NOTED_EVERY.total_seconds()


async def _send(engine: Outreach, workspace_id: str, count: int, *, before: int = 0) -> None:
    for number in range(before, before + count):
        made = await engine.messages.send(workspace_id, NewMessage(to=f"+1415555{number:04d}", body="x"))

        async def taken(message_id: str = made.id) -> bool:
            return (await engine.messages.get(workspace_id, message_id)).ended_at is not None

        await until(taken)


async def _report(engine: Outreach, account: Account, number: int = 1) -> None:
    event = {"kind": "report", "id": f"r{number}", "message": f"m{number}", "status": "sent"}
    assert await Caller(engine, account.id).call(event) == ["unmatched"]


async def _missing(engine: Outreach, workspace_id: str | None = None) -> list[tuple[str, int]]:
    status = await engine.status(workspace_id)
    found = [one.path for one in status.findings if one.code == "receipts_missing"]
    assert found == [one.id for one in status.silent]
    assert sum((await engine.figures()).silent.values()) == len((await engine.status()).silent)
    return [(one.id, one.accepted) for one in status.silent]


async def test_an_account_without_receipts_for_longer_than_before_is_found(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """After an hour, by the status and the diagnosis, with the command that tests its address, until one comes."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        await _report(engine, account)
        last = engine.now()
        await anyio.sleep(NOTED + 1)
        await _send(engine, workspace_id, FEWEST)
        assert await _missing(engine) == []
        await anyio.sleep(HOUR)
        assert await _missing(engine) == await _missing(engine, workspace_id) == [(account.id, FEWEST)]
        (silent,) = (await engine.status()).silent
        assert abs(silent.last_report_at - last) < timedelta(seconds=1)
        (finding,) = [one for one in (await engine.status()).findings if one.code == "receipts_missing"]
        assert finding.commands == [f"outreach-server accounts check {account.id} --callback"]
        diagnosed = [one.path for one in (await engine.diagnose(network=False)).findings if one.code == finding.code]
        assert diagnosed == [f"account {account.id}"]
        await _report(engine, account, 2)
        assert await _missing(engine) == []


async def test_messages_of_campaigns_count_while_these_run_and_after(
    open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """As single ones do."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        await _report(engine, account)
        await anyio.sleep(NOTED + 1)
        workspace = await engine.workspaces.get(workspace_id)
        ended = await given_campaign(engine, workspace, contacts(FEWEST))
        running = await given_campaign(engine, workspace, contacts(FEWEST * 10), rate_per_minute=1)
        await engine.campaigns.start(workspace_id, ended.id)
        await reaches(engine, ended, "completed")
        await engine.campaigns.start(workspace_id, running.id)
        await anyio.sleep(HOUR - 60)
        assert await _missing(engine) == []
        await anyio.sleep(120)
        ((_, accepted),) = await _missing(engine)
        assert FEWEST <= accepted < FEWEST + 5
        await anyio.sleep(HOUR)
        ((_, later),) = await _missing(engine)
        assert accepted + 50 < later < accepted + 70


@pytest.mark.parametrize("case", ["never reported", "few messages", "sandbox", "suspended", "receipts came"])
async def test_no_account_is_called_silent_that_is_as_usual(
    case: str, open_storage: OpenStorage, fake: FakeAdapter
) -> None:
    """A carrier that reports nothing, too few messages to tell, a sandbox, or receipts within minutes."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        if case != "never reported":
            await _report(engine, account)
            await anyio.sleep(NOTED + 1)
        await _send(engine, workspace_id, FEWEST - (case == "few messages"))
        if case == "receipts came":
            await _report(engine, account, 2)
            await _send(engine, workspace_id, FEWEST, before=FEWEST)
        if case == "sandbox":
            await engine._storage.write(lambda tx: _make_sandbox(tx, workspace_id))
        if case == "suspended":
            await engine.workspaces.update(workspace_id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
        await anyio.sleep(2 * HOUR)
        assert await _missing(engine) == []


def _make_sandbox(tx: Transaction, workspace_id: str) -> None:
    tx.workspaces.update(attrs.evolve(tx.workspaces.existing(workspace_id), mode=WorkspaceMode.SANDBOX))
