from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outreach import (
    BusinessHours,
    NewRecipient,
    SmsSettingsUpdate,
    TimeWindow,
    WorkspaceStatus,
    WorkspaceUpdate,
)
from outreach.models.settings import DAYS
from outreach.models.states import MessageStatus, RecipientStatus
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, accept
from outreach.testing.storage_tables.base_contract import TICK
from tests.engine.conftest import OpenStorage
from tests.engine.given import (
    ACCEPTED,
    BACKOFF,
    given_active,
    given_dispatch,
    given_settings,
    receipt,
    recipient,
    report,
    reread,
    settle,
)
from tests.engine.rig import (
    dispatching,
    given_workspace,
    people,
    reaches,
    sending,
    start_campaign,
    until,
)

pytestmark = pytest.mark.virtual_time

R = RecipientStatus
AFTERNOON = datetime(2026, 3, 2, 16, 0, tzinfo=UTC)
HOURS = BusinessHours(
    enabled=True,
    timezone="UTC",
    schedule=dict.fromkeys(DAYS, (TimeWindow(start_minute=9 * 60, end_minute=17 * 60),)),
    batch_concurrency=10,
)


@pytest.mark.parametrize("rest", ["closed", "suspended"])
@pytest.mark.parametrize("left", [0, 1])
async def test_a_wait_for_a_receipt_ends_also_while_nobody_is_contacted(
    open_storage: OpenStorage, rest: str, left: int
) -> None:
    """4 h, not until the next opening; and a campaign of which nothing is left completes then.

    docs/delivery-contract.md#rule-13.
    """
    clock = ShiftedClock(AFTERNOON)
    contacts = [NewRecipient(phone_number=f"+1415555010{n}") for n in range(1 + left)]
    async with dispatching(open_storage(clock), clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        await rig.engine.sms_settings.update(workspace.id, SmsSettingsUpdate(retry_enabled=True))
        changes: dict[str, Any] = {"business_hours": HOURS, "rate_per_minute": 1}
        campaign = await start_campaign(rig.engine, workspace, contacts, **changes)

        async def first() -> tuple[str, str | None]:
            one = (await people(rig.engine, campaign))[0]
            return one.status, one.reason

        await until(first, lambda found: found == (R.IN_PROGRESS, "awaiting_receipt"))
        if rest == "suspended":
            change = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
            await rig.engine.workspaces.update(workspace.id, change)
        clock.shift(timedelta(hours=4, minutes=1))
        if left:
            # It waits for a slot by a clock that nobody moves.
            rig.dispatcher.wake(WorkUnit("campaign", workspace.id, campaign.id))
        else:
            await reaches(rig.engine, campaign, "completed")
        await until(first, lambda found: found == (R.COMPLETED, "no_receipt"))
        assert len(rig.carrier.requests) == 1
        assert (await rig.engine.campaigns.get(workspace.id, campaign.id)).status == ("active" if left else "completed")


async def test_a_wait_for_a_receipt_ends_also_while_its_campaign_is_paused(open_storage: OpenStorage) -> None:
    """4 h, also of a request that was under way at the pause; then nobody looks at the campaign for a while.

    docs/delivery-contract.md#rule-13.
    """
    clock = ShiftedClock(AFTERNOON)
    carrier = ScriptedCarrier([accept(), accept(seconds=1)])
    async with sending(
        open_storage(clock),
        3,
        carrier=carrier,
        clock=clock,
        settings=SmsSettingsUpdate(retry_enabled=True),
        rate_per_minute=60,
    ) as (rig, campaign):
        await carrier.wait_for_requests(2)
        await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)

        async def reasons() -> list[str | None]:
            return [one.reason for one in await people(rig.engine, campaign)][:2]

        await until(reasons, lambda found: found == ["awaiting_receipt"] * 2)
        clock.shift(timedelta(hours=4, minutes=1))
        await until(reasons, lambda found: found == ["no_receipt"] * 2)

        async def due_later() -> bool:
            [work] = await rig.storage.read(lambda tx: tx.work.due())
            return work.due_at is not None and work.due_at > clock.now() + timedelta(hours=3)

        await until(due_later)
        assert len(carrier.requests) == 2
        assert (await rig.engine.campaigns.get(campaign.workspace_id, campaign.id)).status == "paused"


@pytest.mark.parametrize(("late", "status"), [(-TICK, R.WAITING), (timedelta(), R.FAILED)])
async def test_a_receipt_after_the_wait_opens_nothing(storage: Storage, late: timedelta, status: R) -> None:
    """Also where nobody has noticed the end of the wait yet: it says how the message ended, and no more.

    docs/delivery-contract.md#rule-13.
    """
    await given_settings(storage, retry_enabled=True)
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), ACCEPTED)
    failed = receipt(dispatch, MessageStatus.FAILED, reason="temporary")
    await report(storage, failed, now=NOW + BACKOFF.receipt + late)
    assert (await recipient(storage, campaign)).status is status
    await reread(storage, campaign)
