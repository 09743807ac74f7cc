from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from outreach import NewFlow, NewRecipient, Outreach
from outreach.ledger.campaigns import transitions
from outreach.ledger.opt_out.entries import skip_waiting_recipients
from outreach.models.campaign import Campaign, Recipient
from outreach.models.plans import Postponement
from outreach.models.resources import FlowStep
from outreach.models.states import CampaignStatus, RecipientStatus, TrailRule
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_campaign, make_prepared, make_unsubscribe
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, pending, publish
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import (
    commit,
    given_active,
    given_dispatch,
    given_requested,
    given_settings,
    recipient,
    refused,
    reread,
    settle,
)
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, start_campaign, until

pytestmark = pytest.mark.virtual_time

R, C = RecipientStatus, CampaignStatus
PHONE = "+14155550123"
WEEK = timedelta(days=7)


async def given_waiting(storage: Storage, count: int = 1, **changes: Any) -> Campaign:
    """Write a campaign in which one number, and another one, wait for a week."""
    fields = {"status": C.ACTIVE, "started_at": NOW, **changes}
    campaign = make_campaign(**fields)
    contacts = [make_prepared(phone=PHONE) for _ in range(count)] + [make_prepared(phone="+14155550199")]

    def operation(tx: Transaction) -> None:
        publish(tx, campaign, pending(*contacts))
        for one in tx.recipients.page(campaign.workspace_id, campaign.id):
            waits = attrs.evolve(one, status=R.WAITING, reason="retry", due_at=NOW + WEEK)
            tx.recipients.put(campaign.workspace_id, waits)

    await storage.write(operation)
    return campaign


async def opt_out(storage: Storage, scope: str = "all") -> None:
    """Put the number on the register, and end who waits with it."""

    def operation(tx: Transaction) -> None:
        tx.register.put(make_unsubscribe(phone=PHONE, scope=scope))
        skip_waiting_recipients(tx, THIS_WORKSPACE, [PHONE], now=NOW)

    await storage.write(operation)


async def statuses(storage: Storage, campaign: Campaign) -> list[tuple[RecipientStatus, str | None]]:
    """Return status and reason of a campaign's recipients."""
    found: list[Recipient] = list(await storage.read(lambda tx: tx.recipients.page(campaign.workspace_id, campaign.id)))
    return [(one.status, one.reason) for one in found]


SKIPPED = (R.SKIPPED, "opted_out")
WAITS = (R.WAITING, "retry")


@pytest.mark.parametrize("status", [C.ACTIVE, C.PAUSED])
async def test_who_waits_is_skipped_in_every_campaign_that_goes_on(storage: Storage, status: CampaignStatus) -> None:
    """At once, however long the wait; the counters say so, and others wait on."""
    campaigns = [await given_waiting(storage, count, status=status) for count in (1, 2)]
    await opt_out(storage)
    assert await statuses(storage, campaigns[0]) == [SKIPPED, WAITS]
    assert await statuses(storage, campaigns[1]) == [SKIPPED, SKIPPED, WAITS]
    for campaign in campaigns:
        assert (await reread(storage, campaign)).counters.open == 1
    assert (await recipient(storage, campaigns[0])).ended_at == NOW


@pytest.mark.parametrize(
    ("scope", "channel", "ends"),
    [("all", "sms", True), ("all", "call", True), ("sms", "sms", True), ("sms", "call", False), ("call", "sms", False)],
)
async def test_the_scope_of_an_opt_out_decides(storage: Storage, scope: str, channel: str, ends: bool) -> None:
    """Who may be called still waits for the call."""
    campaign = await given_waiting(storage, channel=channel)
    await opt_out(storage, scope)
    assert (await statuses(storage, campaign))[0] == (SKIPPED if ends else WAITS)


async def test_other_workspaces_and_campaigns_that_are_over_are_left_alone(storage: Storage) -> None:
    """A register is one workspace's; a campaign that is over closes its recipients with its own reason."""
    foreign = await given_waiting(storage, workspace_id=OTHER_WORKSPACE)
    over = await given_waiting(storage, status=C.CANCELLED)
    await opt_out(storage)
    assert await statuses(storage, foreign) == [WAITS, WAITS]
    assert await statuses(storage, over) == [WAITS, WAITS]


async def test_what_is_pending_or_in_flight_is_left_to_its_turn(storage: Storage) -> None:
    """A pending one is skipped when it comes, one in flight keeps its true outcome."""
    campaign = await given_active(storage, 2)
    dispatch = await given_dispatch(storage, campaign, 0)
    numbers = [(await recipient(storage, campaign, position)).phone or "" for position in (0, 1)]

    def operation(tx: Transaction) -> None:
        for phone in numbers:
            tx.register.put(make_unsubscribe(phone=phone))
        skip_waiting_recipients(tx, THIS_WORKSPACE, numbers, now=NOW)

    await storage.write(operation)
    assert await statuses(storage, campaign) == [(R.DISPATCHING, None), (R.PENDING, None)]
    await settle(storage, dispatch, refused("invalid_number"))
    assert (await statuses(storage, campaign))[0] == (R.FAILED, "invalid_number")


async def test_who_opts_out_during_a_request_does_not_wait_for_another(storage: Storage) -> None:
    """A refusal that may pass would be retried in an hour, only to be skipped then."""
    await given_settings(storage, retry_enabled=True, retry_delay_minutes=60)
    campaign, dispatch = await given_requested(storage)
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=dispatch.to)))
    await settle(storage, dispatch, refused("temporary"))
    assert await statuses(storage, campaign) == [SKIPPED]
    assert (await reread(storage, campaign)).status == "completed"


async def test_who_has_opted_out_is_not_put_off_until_the_morning(storage: Storage) -> None:
    """A hold is decided under the register, like a request."""
    campaign = await given_active(storage, 2)
    held = [
        Postponement(
            recipient=await recipient(storage, campaign, position),
            due_at=NOW + WEEK,
            reason="contact_hours",
            rule=TrailRule.CONTACT_HOURS,
        )
        for position in (0, 1)
    ]
    phone = held[0].recipient.phone or ""
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=phone)))
    await commit(storage, campaign, 99, postponements=held)
    assert await statuses(storage, campaign) == [SKIPPED, (R.WAITING, "contact_hours")]


async def test_an_opt_out_in_a_long_wait_ends_it_and_an_opt_in_does_not_bring_it_back(
    open_storage: OpenStorage,
) -> None:
    """What people look at says so at once: the campaign has completed, and START opens nothing that had ended."""
    steps = (
        FlowStep(kind="send", body="Hello"),
        FlowStep(kind="wait", wait_minutes=14 * 24 * 60),
        FlowStep(kind="send", body="Still there?"),
    )
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        flow = await rig.engine.flows.create(workspace.id, NewFlow(name="Reminder", steps=steps))
        person = [NewRecipient(phone_number=PHONE)]
        campaign = await start_campaign(
            rig.engine, workspace, person, message_source="flow", flow_id=flow.id, body=None
        )
        await until(lambda: people(rig.engine, campaign), lambda found: found[0].reason == "flow_wait")
        await rig.engine.unsubscribes.add(workspace.id, PHONE)
        done = await reaches(rig.engine, campaign, "completed")
        assert (done.counters.completed, done.counters.successful) == (1, 1)
        await rig.engine.unsubscribes.remove(workspace.id, PHONE)
        assert [(one.status, one.reason) for one in await people(rig.engine, campaign)] == [SKIPPED]
        assert len(rig.carrier.requests) == 1


async def test_an_import_ends_all_who_wait(engine: Outreach) -> None:
    """More numbers than one transaction takes: every one of them is ended."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace, 120)
    clock = clock_of_loop()

    def wait(tx: Transaction) -> None:
        transitions.start(tx, workspace.id, campaign.id, now=clock.now(), actor="test")
        for one in tx.recipients.page(workspace.id, campaign.id):
            waits = attrs.evolve(one, status=R.WAITING, reason="retry", due_at=clock.now() + WEEK)
            tx.recipients.put(workspace.id, waits)

    await engine._storage.write(wait)

    async def rows() -> Any:
        for one in await people(engine, campaign):
            yield one.phone_number

    assert (await engine.unsubscribes.import_numbers(workspace.id, rows())).added == 120
    assert {(one.status, one.reason) for one in await people(engine, campaign)} == {SKIPPED}
    assert (await engine.campaigns.get(workspace.id, campaign.id)).status == "completed"
