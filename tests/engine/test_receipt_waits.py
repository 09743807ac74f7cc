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
from outreach.models.hours import DAYS
from outreach.models.states import RecipientStatus
from outreach.models.work import WorkUnit
from outreach.testing.clock import ShiftedClock
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, until

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
        campaign = await given_campaign(rig.engine, workspace, contacts, **changes)
        await rig.engine.campaigns.start(workspace.id, campaign.id)

        async def first() -> tuple[str, str | None]:
            one = (await people(rig.engine, campaign))[0]
            return one.status, one.reason

        async def waits() -> bool:
            return await first() == (R.IN_PROGRESS, "awaiting_receipt")

        await until(waits)
        if rest == "suspended":
            change = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
            await rig.engine.workspaces.update(workspace.id, change)
        clock.shift(timedelta(hours=4, minutes=1))
        if left:
            # It waits for a slot by a clock that nobody moves.
            rig.dispatcher.wake(WorkUnit("campaign", workspace.id, campaign.id))
        else:
            await reaches(rig.engine, campaign, "completed")

        async def ended() -> bool:
            return await first() == (R.COMPLETED, "no_receipt")

        await until(ended)
        assert len(rig.carrier.requests) == 1
        assert (await rig.engine.campaigns.get(workspace.id, campaign.id)).status == ("active" if left else "completed")
