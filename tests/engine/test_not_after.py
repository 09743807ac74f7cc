from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from outreach import BusinessHours, NewCall, NewMessage, TimeWindow
from outreach.models.settings import DAYS, Holiday, HolidayCalendar
from outreach.testing.clock import ShiftedClock
from tests.engine.calling import CALLS, given_agent, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time

NOON = datetime(2026, 3, 2, 20, 0, tzinfo=UTC)
"""A Monday, noon in San Francisco, where the contacts' numbers are."""

HOUR = timedelta(hours=1)


def _hours(start: int, end: int) -> BusinessHours:
    windows = (TimeWindow(start_minute=start * 60, end_minute=end * 60),)
    return BusinessHours(enabled=True, timezone="UTC", schedule=dict.fromkeys(DAYS, windows), batch_concurrency=10)


_HOLIDAY = HolidayCalendar(country=None, holidays=(Holiday(date=date(2026, 3, 3), name="Carnival", enabled=True),))


@pytest.mark.parametrize(
    ("contact_hours", "campaign", "not_after"),
    [
        (False, {}, None),
        (True, {}, NOON + 9 * HOUR),
        (False, {"business_hours": _hours(9, 22)}, NOON + 2 * HOUR),
        (True, {"business_hours": _hours(9, 22), "scheduled_expires_at": NOON + 3 * HOUR}, NOON + 2 * HOUR),
        (True, {"business_hours": _hours(9, 22), "scheduled_expires_at": NOON + HOUR}, NOON + HOUR),
        (True, {"business_hours": _hours(16, 12), "scheduled_expires_at": NOON + 40 * HOUR}, NOON + 9 * HOUR),
        (True, {"holidays": _HOLIDAY, "scheduled_expires_at": NOON + 40 * HOUR}, NOON + 4 * HOUR),
    ],
    ids=["no bound", "the evening", "closing time", "closing first", "expiry first", "the evening first", "a holiday"],
)
@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_the_earliest_end_goes_with_the_request(
    open_storage: OpenStorage,
    channel: str,
    contact_hours: bool,
    campaign: dict[str, Any],
    not_after: datetime | None,
) -> None:
    """Closing time and expiry go to the provider, which may keep a request for hours.

    docs/delivery-contract.md#rule-4.
    """
    clock = ShiftedClock(NOON)
    async with dispatching(open_storage(clock), clock=clock, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine, contact_hours=contact_hours)
        given = given_campaign if channel == "sms" else given_calls
        made = await given(rig.engine, workspace, 1, **campaign)
        await rig.engine.campaigns.start(workspace.id, made.id)
        provider: Any = rig.carrier if channel == "sms" else rig.voice
        await provider.wait_for_requests(1)
        assert [request.not_after for request in provider.requests] == [not_after]


async def test_single_messages_and_calls_have_no_end(open_storage: OpenStorage) -> None:
    """They have neither closing time nor expiry; how long they may wait for their dispatch is another matter."""
    clock = ShiftedClock(NOON)
    async with dispatching(open_storage(clock), clock=clock, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine, contact_hours=True)
        agent_id = await given_agent(rig.engine, workspace)
        await rig.engine.messages.send(workspace.id, NewMessage(to="+14155550123", body="x"))
        await rig.engine.calls.create(workspace.id, NewCall(agent_id=agent_id, to="+14155550124"))
        await rig.carrier.wait_for_requests(1)
        await rig.voice.wait_for_requests(1)
        assert [one.not_after for one in rig.carrier.requests] == [None]
        assert [one.not_after for one in rig.voice.requests] == [None]
