from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach import EngineConfig, NewWorkspace, Outreach, WorkspaceMode, WorkspaceUpdate
from outreach.models import Account
from outreach.models.states import DispatchState, MessageStatus, WorkspaceStatus
from outreach.rules.receipts import FEWEST, LOOK_BACK, NOTED_EVERY, SILENCE
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_dispatch, make_message, new_id
from outreach.testing.clock import ManualClock
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, given_campaign
from tests.engine.test_callbacks import Caller
from tests.fake_provider import CREDENTIALS, FakeAdapter

pytestmark = pytest.mark.virtual_time

MINUTE = timedelta(minutes=1)


@attrs.define
class Scene:
    """A live workspace with an account, at a time that the test moves; nothing is sent by itself."""

    engine: Outreach
    clock: ManualClock
    workspace_id: str
    account: Account
    reports: int = 0

    def pass_by(self, time: timedelta) -> None:
        """Let time pass."""
        self.clock.advance(time.total_seconds())

    async def report(self) -> datetime:
        """Let the provider report on a message, and return when."""
        self.reports += 1
        event = {"kind": "report", "id": f"r{self.reports}", "message": f"m{self.reports}", "status": "sent"}
        assert await Caller(self.engine, self.account.id).call(event) == ["unmatched"]
        return self.clock.now()

    async def accept(self, count: int = FEWEST, **changes: Any) -> None:
        """Have single messages accepted now."""
        now = self.clock.now()
        made = {"workspace_id": self.workspace_id, "status": MessageStatus.ACCEPTED, "created_at": now, "ended_at": now}

        def operation(tx: Transaction) -> None:
            for _ in range(count):
                tx.messages.insert(make_message(**{**made, "provider_id": new_id(), **changes}))

        await self.engine._storage.write(operation)

    async def accept_of_campaign(self, count: int, *, ended: bool, **changes: Any) -> None:
        """Have messages of a campaign accepted now."""
        workspace = await self.engine.workspaces.get(self.workspace_id)
        campaign = await given_campaign(self.engine, workspace, contacts(count))
        await self.engine.campaigns.start(self.workspace_id, campaign.id)
        made = {"workspace_id": self.workspace_id, "campaign_id": campaign.id, "created_at": self.clock.now()}

        def operation(tx: Transaction) -> None:
            for position in range(count):
                sent = make_dispatch(**{**made, "position": position, "state": DispatchState.ACCEPTED, **changes})
                tx.dispatches.insert(sent)

        await self.engine._storage.write(operation)
        if ended:
            await self.engine.campaigns.cancel(self.workspace_id, campaign.id)

    async def missing(self) -> list[tuple[str, int]]:
        """Return which accounts have no receipts, and how many messages were accepted, as each that looks sees it."""
        status = await self.engine.status()
        assert [one.path for one in status.findings if one.code == "receipts_missing"] == [i.id for i in status.silent]
        assert (await self.engine.status(self.workspace_id)).silent == status.silent
        assert sum((await self.engine.figures()).silent.values()) == len(status.silent)
        return [(one.id, one.accepted) for one in status.silent]


@pytest.fixture
async def here(open_storage: OpenStorage, clock: ManualClock, fake: FakeAdapter) -> AsyncIterator[Scene]:
    """Open an engine."""
    config = EngineConfig(public_url="https://o.example")
    async with Outreach(open_storage(clock), clock=clock, config=config) as engine:
        workspace = await engine.workspaces.create(
            NewWorkspace(name="A", mode=WorkspaceMode.LIVE, sms_campaigns_enabled=True, contact_hours=False)
        )
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        yield Scene(engine=engine, clock=clock, workspace_id=workspace.id, account=account)


async def test_an_account_without_receipts_for_longer_than_before_is_found(here: Scene) -> None:
    """After an hour, by the status and the diagnosis, with the command that tests its address, until one comes."""
    last = await here.report()
    here.pass_by(NOTED_EVERY + MINUTE)
    await here.accept()
    here.pass_by(SILENCE - MINUTE)
    assert await here.missing() == []
    here.pass_by(2 * MINUTE)
    assert await here.missing() == [(here.account.id, FEWEST)]
    status = await here.engine.status()
    assert status.silent[0].last_report_at == last
    (finding,) = [one for one in status.findings if one.code == "receipts_missing"]
    assert finding.commands == [f"outreach-server accounts check {here.account.id} --callback"]
    diagnosis = await here.engine.diagnose(network=False)
    assert [i.path for i in diagnosis.findings if i.code == finding.code] == [f"account {here.account.id}"]
    await here.report()
    assert await here.missing() == []


async def test_messages_of_campaigns_count_while_these_run_and_after(here: Scene) -> None:
    """As single ones do; what was refused, has a receipt or was sent by another account, does not."""
    await here.report()
    here.pass_by(NOTED_EVERY + MINUTE)
    await here.accept_of_campaign(FEWEST, ended=False)
    await here.accept_of_campaign(FEWEST + 1, ended=True)
    await here.accept_of_campaign(FEWEST, ended=False, state=DispatchState.REFUSED)
    await here.accept_of_campaign(FEWEST, ended=False, report=MessageStatus.SENT)
    await here.accept_of_campaign(FEWEST, ended=False, provider="telnyx")
    await here.accept(2)
    here.pass_by(SILENCE + MINUTE)
    assert await here.missing() == [(here.account.id, 2 * FEWEST + 3)]


async def test_what_was_sent_a_day_ago_counts_no_more(here: Scene) -> None:
    """An account that sends nothing is not reported for ever."""
    await here.report()
    here.pass_by(NOTED_EVERY + MINUTE)
    await here.accept()
    here.pass_by(LOOK_BACK - MINUTE)
    assert await here.missing() == [(here.account.id, FEWEST)]
    here.pass_by(2 * MINUTE)
    assert await here.missing() == []


async def test_many_receipts_are_noted_once_in_ten_minutes_and_all_count(here: Scene) -> None:
    """What was accepted in the minutes after the noted one may have been reported on."""
    first = await here.report()
    here.pass_by(NOTED_EVERY - MINUTE)
    await here.accept()
    await here.report()
    here.pass_by(SILENCE + NOTED_EVERY)
    assert await here.missing() == []
    stored = await here.engine._storage.read(lambda tx: tx.accounts.find(here.account.id))
    assert stored is not None
    assert stored.last_report_at == first


@pytest.mark.parametrize(
    "case", ["few", "sandbox", "suspended", "another carrier", "not accepted", "with a receipt", "reported"]
)
@pytest.mark.parametrize("is_new", [False, True])
async def test_no_account_is_called_silent_that_is_as_usual(is_new: bool, case: str, here: Scene) -> None:
    """Too few messages to tell, a sandbox, or receipts that came."""
    if not is_new:
        await here.report()
    here.pass_by(NOTED_EVERY + MINUTE)
    others: dict[str, dict[str, Any]] = {
        "with a receipt": {"status": MessageStatus.SENT},
        "another carrier": {"carrier": "telnyx"},
        "not accepted": {"provider_id": None},
    }
    await here.accept(FEWEST - (case == "few"), **others.get(case, {}))
    if case == "reported":
        await here.report()
    if case == "sandbox":
        await here.engine._storage.write(lambda tx: _make_sandbox(tx, here.workspace_id))
    if case == "suspended":
        await here.engine.workspaces.update(here.workspace_id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
    here.pass_by(2 * SILENCE)
    assert await here.missing() == []


async def test_a_new_account_whose_callbacks_never_arrive_is_found(here: Scene) -> None:
    """Its callback address was wrong from the start."""
    here.pass_by(MINUTE)
    await here.accept()
    here.pass_by(SILENCE - MINUTE)
    assert await here.missing() == []
    here.pass_by(2 * MINUTE)
    assert await here.missing() == [(here.account.id, FEWEST)]
    (finding,) = [one for one in (await here.engine.status()).findings if one.code == "receipts_missing"]
    assert "none ever came" in finding.message


async def test_an_account_that_is_connected_again_keeps_when_it_last_got_a_receipt(here: Scene) -> None:
    """Else a wrong address would go unseen after a change of credentials."""
    last = await here.report()
    await here.engine.accounts.connect(here.workspace_id, "twilio", CREDENTIALS)
    here.pass_by(NOTED_EVERY + MINUTE)
    await here.accept()
    here.pass_by(SILENCE + MINUTE)
    assert await here.missing() == [(here.account.id, FEWEST)]
    assert (await here.engine.status()).silent[0].last_report_at == last


@pytest.mark.parametrize("case", ["no callback URL", "adapter of one's own"])
async def test_an_account_that_can_get_no_receipts_is_not_called_silent(case: str, open_storage: OpenStorage) -> None:
    """Outcomes come from look-ups there, or not at all."""
    clock, adapter = ManualClock(), FakeAdapter()
    own = case == "adapter of one's own"
    if own:
        adapter.name = "mine"
    config = EngineConfig(public_url="https://o.example" if own else None)
    async with Outreach(open_storage(clock), clock=clock, config=config, adapters=[adapter] if own else []) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="A", mode=WorkspaceMode.LIVE))
        provider = "mine" if own else "twilio"
        credentials = CREDENTIALS if own else {"account_sid": f"AC{'0' * 32}", "auth_token": "s3cret"}
        account = await engine.accounts.connect(workspace.id, provider, credentials)
        here = Scene(engine=engine, clock=clock, workspace_id=workspace.id, account=account)
        here.pass_by(MINUTE)
        await here.accept(carrier=provider)
        here.pass_by(SILENCE + MINUTE)
        assert await here.missing() == []


def _make_sandbox(tx: Transaction, workspace_id: str) -> None:
    found = tx.workspaces.get(workspace_id)
    assert found is not None
    tx.workspaces.update(attrs.evolve(found, mode=WorkspaceMode.SANDBOX))
