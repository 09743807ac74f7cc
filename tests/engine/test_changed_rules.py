from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach import CampaignUpdate, WorkspaceUpdate
from outreach.ledger.leases import clock_steps
from outreach.models.campaign import Recipient
from outreach.models.plans import Postponement
from outreach.models.settings import DAYS, BusinessHours, TimeWindow
from outreach.models.states import RecipientStatus, TrailRule
from outreach.protocols.storage import Storage
from outreach.rules.deciding import contact_rules_key
from outreach.rules.settlement import RECEIPT_WAIT
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_workspace
from outreach.testing.clock import ShiftedClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.conftest import OpenStorage
from tests.engine.given import commit, given_active, plan_wave, recipient
from tests.engine.rig import Rig, contacts, people, sending, until

pytestmark = pytest.mark.virtual_time

R = RecipientStatus
NIGHT = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
"""Midnight in San Francisco, where the contacts' numbers are."""

LATER = NOW + timedelta(hours=9)


async def given_held(rig: Rig, campaign: Any, reason: str) -> None:
    """Wait until everybody in a campaign waits for one reason."""

    async def held() -> bool:
        return {(one.status, one.reason) for one in await people(rig.engine, campaign)} == {(R.WAITING, reason)}

    await until(held)


async def test_who_waits_for_the_hours_of_campaign_and_contact_does_so_by_the_new_ones(
    open_storage: OpenStorage,
) -> None:
    """Who had to wait for the one day that has both waits for the first morning once the campaign is always open."""
    clock = ShiftedClock(NIGHT.replace(hour=6, minute=35))
    noon = TimeWindow(start_minute=12 * 60, end_minute=13 * 60)
    at_noon = dict.fromkeys(DAYS, (noon,)) | {"friday": (attrs.evolve(noon, end_minute=23 * 60),)}
    hours = BusinessHours(timezone="Asia/Kolkata", schedule=at_noon)
    async with sending(
        open_storage(clock), 2, clock=clock, workspace={"contact_hours": True}, business_hours=hours
    ) as (rig, campaign):
        await given_held(rig, campaign, "contact_hours")
        assert {one.due_at for one in await people(rig.engine, campaign)} == {datetime(2026, 3, 6, 16, tzinfo=UTC)}
        await rig.engine.campaigns.update(campaign.workspace_id, campaign.id, CampaignUpdate(business_hours=None))

        async def sooner() -> bool:
            due = {one.due_at for one in await people(rig.engine, campaign)}
            return due == {datetime(2026, 3, 3, 16, tzinfo=UTC)}

        await until(sooner)


async def test_who_is_released_is_put_off_again_where_the_new_rule_says_so(open_storage: OpenStorage) -> None:
    """Night is night under another cap, too; and one rule more puts off who is not contacted yet."""
    clock = ShiftedClock(NIGHT)
    async with sending(open_storage(clock), contacts(2), clock=clock, workspace={"contact_hours": True}) as (
        rig,
        campaign,
    ):
        await given_held(rig, campaign, "contact_hours")
        before = [one.due_at for one in await people(rig.engine, campaign)]
        after = await rig.engine.workspaces.update(campaign.workspace_id, WorkspaceUpdate(frequency_cap=5))

        async def decided_again() -> bool:
            run = await rig.storage.read(lambda tx: tx.runs.get(campaign.workspace_id, campaign.id))
            return run is not None and run.postponed_under == contact_rules_key(after)

        await until(decided_again)
        await given_held(rig, campaign, "contact_hours")
        await until(lambda: people(rig.engine, campaign), lambda found: [one.due_at for one in found] == before)
        assert rig.carrier.requests == []


async def given_put_off(storage: Storage, *reasons: str) -> Any:
    """Write an active campaign whose recipients wait, each for its reason, until the same moment."""
    campaign = await given_active(storage, len(reasons))
    held = [
        Postponement(
            recipient=await recipient(storage, campaign, position),
            due_at=LATER,
            reason=reason,
            rule=TrailRule.CONTACT_HOURS,
        )
        for position, reason in enumerate(reasons)
    ]
    await commit(storage, campaign, 99, postponements=held)
    return campaign


async def test_a_release_goes_in_slices_and_touches_nobody_else(storage: Storage) -> None:
    """Who waits for a retry keeps the time; the campaign is outdated until the last one is released."""
    reasons = ["contact_hours", "retry", "frequency_cap", "contact_hours", "contact_hours"]
    campaign = await given_put_off(storage, *reasons)
    moment = NOW + timedelta(minutes=1)

    def slice_of(tx: Transaction) -> tuple[bool, list[Recipient]]:
        clock_steps.release_postponed(tx, THIS_WORKSPACE, campaign.id, receipt=RECEIPT_WAIT, now=moment, limit=2)
        plan = plan_wave(tx, THIS_WORKSPACE, campaign.id, now=moment, limit=9)
        assert plan is not None
        return plan.contact_rules_outdated, list(plan.due)

    assert await storage.write(slice_of) == (False, [])
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(frequency_cap=3)))
    seen = [await storage.write(slice_of) for _ in range(4)]
    assert [(outdated, len(due)) for outdated, due in seen] == [(True, 2), (True, 4), (False, 4), (False, 4)]
    assert [one.position for one in seen[-1][1]] == [0, 2, 3, 4]
    assert (await recipient(storage, campaign, 1)).due_at == LATER


@pytest.mark.parametrize("change", [{"name": "Other"}, {"request_limit": 5}, {"revision": 9}])
async def test_what_is_no_rule_of_contact_releases_nobody(storage: Storage, change: dict[str, Any]) -> None:
    """A changed name does not have a million recipients decided about again."""
    campaign = await given_put_off(storage, "contact_hours")
    await storage.write(lambda tx: tx.workspaces.update(attrs.evolve(make_workspace(), **change)))
    plan = await storage.read(lambda tx: plan_wave(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=9))
    assert plan is not None
    assert not plan.contact_rules_outdated


async def test_a_campaign_that_has_put_nobody_off_is_never_outdated(storage: Storage) -> None:
    """There is nobody to be released."""
    campaign = await given_active(storage, 2)
    await commit(storage, campaign, 0)
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(frequency_cap=3)))
    plan = await storage.read(lambda tx: plan_wave(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=9))
    assert plan is not None
    assert not plan.contact_rules_outdated
