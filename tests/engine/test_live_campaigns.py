from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach import (
    BusinessHours,
    Campaign,
    CampaignStatus,
    InvalidRequest,
    NewNumber,
    NewRecipient,
    NotFound,
    Outreach,
    WorkspaceUpdate,
)
from outreach.models import CampaignNow
from outreach.models.account import ProviderThrottle
from outreach.models.settings import DAYS, TimeWindow
from outreach.models.states import DispatchState, MessageStatus, RecipientStatus, WorkspaceStatus
from outreach.rules.progress import MAX_POINTS
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_dispatch, make_worker
from outreach.testing.clock import ManualClock
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time

NIGHT = datetime(2026, 11, 20, 10, tzinfo=UTC)
"""Three in Denver, two in San Francisco."""

DENVER = ("+13032345678", "+13032345679")
HOUR = timedelta(hours=1)


@attrs.define
class Scene:
    """A running campaign that nobody drives, though a worker has a lease: the test writes what it waits for."""

    engine: Outreach
    clock: ManualClock
    campaign: Campaign

    @property
    def place(self) -> tuple[str, str]:
        """The workspace and the campaign."""
        return self.campaign.workspace_id, self.campaign.id

    async def now(self) -> CampaignNow:
        """Return what it waits for."""
        found = await self.engine.campaigns.now(*self.place)
        assert (found.campaign_id, found.at) == (self.campaign.id, self.clock.now())
        return found

    async def put(self, positions: Sequence[int], **changes: Any) -> None:
        """Change recipients."""

        def operation(tx: Transaction) -> None:
            for position in positions:
                found = tx.recipients.get(*self.place, position)
                assert found is not None
                tx.recipients.put(self.campaign.workspace_id, attrs.evolve(found, **changes))

        await self.engine._storage.write(operation)

    async def wait_for(self, reason: str, due_at: datetime, *positions: int, **changes: Any) -> None:
        """Let recipients wait."""
        await self.put(positions, status=RecipientStatus.WAITING, reason=reason, due_at=due_at, **changes)


@pytest.fixture
async def here(open_storage: OpenStorage) -> AsyncIterator[Scene]:
    """Open an engine, with a started campaign of six contacts."""
    clock = ManualClock()
    clock.set(NIGHT)
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await given_workspace(engine, contact_hours=True)
        people = [*(NewRecipient(phone_number=number) for number in DENVER), *contacts(4)]
        campaign = await given_campaign(engine, workspace, people, rate_per_minute=60)
        worker = make_worker(until=NIGHT + timedelta(days=90), renewed_at=NIGHT)
        await engine._storage.write(lambda tx: tx.workers.put(worker))
        yield Scene(engine, clock, await engine.campaigns.start(workspace.id, campaign.id))


async def test_contacts_whose_turn_it_is_are_sent_to_at_the_pace(here: Scene) -> None:
    """The slower of the campaign's rate and that of its number is what limits it."""
    found = await here.now()
    assert (found.rule, found.contacts, found.until) == ("pace", 6, None)
    assert found.message == "Sends, limited by its rate: 6 contacts due."
    await here.engine.numbers.create(here.campaign.workspace_id, NewNumber(phone="+14155550199", rate_per_minute=30))
    assert (await here.now()).rule == "sender_rate"


async def test_contacts_that_wait_for_their_morning_are_said_with_their_place(here: Scene) -> None:
    """The first that may be contacted again, and how many may be then; the others follow."""
    denver = NIGHT.replace(hour=15)
    await here.wait_for("contact_hours", denver, 0, 1)
    await here.wait_for("contact_hours", denver + HOUR, 2, 3, 4, 5)
    found = await here.now()
    assert (found.rule, found.until, found.contacts) == ("contact_hours", denver, 2)
    assert found.message == "Waits for 08:00 in Denver: 2 contacts."


async def test_contacts_that_wait_for_another_attempt_are_counted_for_all_reasons(here: Scene) -> None:
    """Whatever was the matter the last time."""
    for position, reason in enumerate(("retry_busy", "retry_voicemail", "deferred")):
        await here.wait_for(reason, NIGHT + HOUR * (position + 1), position)
    await here.wait_for("frequency_cap", NIGHT + 9 * HOUR, 3, 4, 5)
    assert (await here.now()).message == "Waits for another attempt: 3 contacts, the first until 11:00 UTC."


@pytest.mark.parametrize(
    ("reason", "rule", "message"),
    [
        ("retry", "retry", "Waits for another attempt: 6 contacts, the first until 11:00 UTC."),
        ("flow_wait", "flow", "Waits for the next step of their flow: 6 contacts, the first until 11:00 UTC."),
        ("frequency_cap", "frequency_cap", "Waits for the frequency cap: 6 contacts, the first until 11:00 UTC."),
        ("unclear_reply", "unclear_reply", "Waits for a decision about a reply: 6 contacts."),
    ],
)
async def test_contacts_that_each_have_a_time_of_their_own_are_counted(
    reason: str, rule: str, message: str, here: Scene
) -> None:
    """With the first time, if not a person decides it."""
    for position in range(6):
        await here.wait_for(reason, NIGHT + HOUR * (position + 1), position)
    found = await here.now()
    assert (found.rule, found.contacts, found.message) == (rule, 6, message)
    assert found.until == (None if reason == "unclear_reply" else NIGHT + HOUR)


async def test_requests_without_a_final_outcome_are_waited_for(here: Scene) -> None:
    """Where nobody else is left."""
    await here.put([0], status=RecipientStatus.DISPATCHING)
    await here.put([1], status=RecipientStatus.IN_PROGRESS, reason="awaiting_receipt", due_at=NIGHT + HOUR)
    await here.put([2, 3, 4, 5], status=RecipientStatus.COMPLETED)
    found = await here.now()
    assert (found.rule, found.contacts, found.until) == ("outcome", 2, NIGHT + HOUR)
    assert found.message == "Waits for the outcome of 2 requests."


async def test_the_campaigns_own_hours_bind_all_of_its_contacts(here: Scene) -> None:
    """By its clocks; with the date where that is not soon."""
    schedule = {day: (TimeWindow(start_minute=540, end_minute=1020),) if day == "monday" else () for day in DAYS}
    hours = BusinessHours(enabled=True, timezone="America/Chicago", schedule=schedule, batch_concurrency=1)
    workspace_id, campaign_id = here.place
    await here.engine._storage.write(
        lambda tx: tx.campaigns.update(attrs.evolve(here.campaign, business_hours=hours, revision=9))
    )
    found = await here.now()
    assert (found.rule, found.contacts) == ("business_hours", 6)
    assert found.until == datetime(2026, 11, 23, 15, tzinfo=UTC)
    assert found.message == "Waits for 09:00 on 23 November in Chicago (its business hours): 6 contacts."
    assert (workspace_id, campaign_id) == here.place


async def test_a_throttle_of_the_provider_binds_until_it_ends(here: Scene) -> None:
    """With its beginning."""
    throttle = ProviderThrottle(
        workspace_id=here.campaign.workspace_id, provider="twilio", since=NIGHT, until=NIGHT + HOUR, refusals=1
    )
    await here.engine._storage.write(lambda tx: tx.provider_throttles.put(throttle))
    found = await here.now()
    assert (found.rule, found.since, found.until) == ("provider_throttle", NIGHT, NIGHT + HOUR)
    assert found.message == "Waits until 11:00 UTC, because twilio throttles: 6 contacts."


async def test_a_workspace_that_is_suspended_and_a_server_that_is_gone_are_said(here: Scene) -> None:
    """Since when, where that is recorded."""
    here.clock.advance(60)
    workspaces = here.engine.workspaces
    await workspaces.update(here.campaign.workspace_id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
    found = await here.now()
    assert (found.rule, found.since, found.contacts) == ("workspace_suspended", NIGHT + timedelta(minutes=1), 6)
    await workspaces.update(here.campaign.workspace_id, WorkspaceUpdate(status=WorkspaceStatus.ACTIVE))
    here.clock.advance(timedelta(days=100).total_seconds())
    assert (await here.now()).rule == "no_dispatcher"


async def test_each_state_has_a_sentence(here: Scene) -> None:
    """With the time of the change to it."""
    workspace_id, campaign_id = here.place
    here.clock.advance(60)
    await here.engine.campaigns.pause(workspace_id, campaign_id)
    found = await here.now()
    assert (found.rule, found.since) == ("paused", here.clock.now())
    assert found.message == "Waits to be resumed, because an operator paused it: 6 contacts."
    await here.engine.campaigns.cancel(workspace_id, campaign_id)
    found = await here.now()
    assert (found.rule, found.contacts, found.message) == ("cancelled", 6, "Is cancelled: 6 contacts still open.")
    workspace = await here.engine.workspaces.get(workspace_id)
    start = NIGHT + timedelta(hours=3)
    later = await given_campaign(
        here.engine, workspace, contacts(1, first=90), schedule_type="scheduled", scheduled_start_at=start
    )
    assert (await here.engine.campaigns.now(workspace_id, later.id)).message == "Waits to be started: 1 contact."
    await here.engine.campaigns.start(workspace_id, later.id)
    found = await here.engine.campaigns.now(workspace_id, later.id)
    assert (found.rule, found.until) == ("scheduled", start)
    assert found.message == "Waits for its start at 13:00 UTC: 1 contact."
    with pytest.raises(NotFound):
        await here.engine.campaigns.now(workspace_id, "x")


async def request_at(here: Scene, *at: datetime, **changes: Any) -> None:
    """Write requests of the campaign."""
    made = {"workspace_id": here.campaign.workspace_id, "campaign_id": here.campaign.id, "position": 0}

    def operation(tx: Transaction) -> None:
        for moment in at:
            tx.dispatches.insert(
                make_dispatch(**{**made, "state": DispatchState.ACCEPTED, "created_at": moment, **changes})
            )

    await here.engine._storage.write(operation)


async def test_requests_are_counted_by_the_minute_with_what_became_of_them(here: Scene) -> None:
    """Minutes without a request are left out; those before `since` too, but not the rest of its minute."""
    minute = timedelta(minutes=1)
    await request_at(here, NIGHT, NIGHT + minute - timedelta(microseconds=1))
    await request_at(here, NIGHT + 2 * minute, report=MessageStatus.DELIVERED)
    await request_at(here, NIGHT + 2 * minute, report=MessageStatus.FAILED, reason="unreachable")
    for state in set(DispatchState) - {DispatchState.ACCEPTED, DispatchState.UNKNOWN, DispatchState.DISPATCHING}:
        await request_at(here, NIGHT + 2 * minute, state=state)
    await request_at(here, NIGHT + 2 * minute, state=DispatchState.UNKNOWN)
    found = await here.engine.campaigns.progress(*here.place)
    assert found.step_seconds == 60
    first, second = found.points
    assert (first.at, first.requests, first.accepted) == (NIGHT, 2, 2)
    assert second.at == NIGHT + 2 * minute
    assert (second.requests, second.accepted, second.delivered, second.undelivered) == (9, 2, 1, 1)
    assert (second.refused, second.uncertain, second.not_sent, second.in_flight) == (1, 3, 3, 0)
    later = await here.engine.campaigns.progress(*here.place, since=NIGHT + 2.5 * minute)
    assert later.points == () == (await here.engine.campaigns.progress(*here.place, since=NIGHT + HOUR)).points
    later = await here.engine.campaigns.progress(*here.place, since=NIGHT + timedelta(seconds=30))
    assert later.points == found.points
    with pytest.raises(InvalidRequest):
        await here.engine.campaigns.progress(*here.place, since=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused


@pytest.mark.parametrize(
    ("longest", "step"),
    [
        (timedelta(minutes=1439), 60),
        (timedelta(minutes=1440), 600),
        (timedelta(minutes=14_390), 600),
        (timedelta(minutes=14_400), 3600),
        (timedelta(hours=1440), 86_400),
        (timedelta(days=2000), 86_400),
    ],
)
async def test_a_long_time_has_longer_steps(longest: timedelta, step: int, here: Scene) -> None:
    """At most 1,440 points."""
    await request_at(here, NIGHT, NIGHT + longest)
    found = await here.engine.campaigns.progress(*here.place)
    assert found.step_seconds == step
    assert found.points[-1].at <= NIGHT + longest < found.points[-1].at + timedelta(seconds=step)
    assert (found.points[-1].at - found.points[0].at).total_seconds() / step < MAX_POINTS
    assert sum(one.requests for one in found.points) == (2 if longest < timedelta(days=1440) else 1)


async def test_a_campaign_without_requests_has_no_points(here: Scene) -> None:
    """Nor has one of another workspace."""
    assert (await here.engine.campaigns.progress(*here.place)).points == ()
    other = await given_workspace(here.engine)
    with pytest.raises(NotFound):
        await here.engine.campaigns.progress(other.id, here.campaign.id)
    assert (await here.engine.campaigns.get(*here.place)).status is CampaignStatus.ACTIVE


@pytest.mark.parametrize(
    ("lacks", "needs"),
    [
        ({"body": ""}, "a text"),
        ({"carrier": None, "from_number": None}, "a number to send from and a carrier"),
        (
            {"body": "", "carrier": None, "from_number": None},
            "a text, a number to send from and a carrier",
        ),
    ],
)
async def test_a_draft_says_what_it_needs(lacks: dict[str, Any], needs: str, here: Scene) -> None:
    """In words for people, without names of fields."""
    workspace = await here.engine.workspaces.get(here.campaign.workspace_id)
    draft = await given_campaign(here.engine, workspace, 2, add_sender=False, **lacks)
    found = await here.engine.campaigns.now(workspace.id, draft.id)
    assert found.message == f"Waits for {needs}, before it can start: 2 contacts."
