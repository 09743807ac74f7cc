"""Schedules: each run is a campaign that is made once, looked at, and started unless something speaks against it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs
import pytest

from outreach import (
    Campaign,
    CampaignStatus,
    CampaignUpdate,
    Conflict,
    FlowStep,
    FlowUpdate,
    InvalidRequest,
    NewFlow,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    NotFound,
    NumberUpdate,
    Outreach,
    WorkspaceUpdate,
)
from outreach.core.clock import format_timestamp
from outreach.events import ScheduleRan, ScheduleSkipped
from outreach.ledger.campaigns.transitions import apply_schedule
from outreach.ledger.leases.clock_steps import repair_after_clock_step, repair_what_the_last_left
from outreach.ledger.schedules import pause_after_restore
from outreach.models import (
    Holiday,
    HolidayCalendar,
    NewSchedule,
    NewScheduleApproval,
    Occurrence,
    Preflight,
    Price,
    PriceTable,
    Schedule,
    ScheduleUpdate,
)
from outreach.models.campaign import Counters
from outreach.models.states import WorkspaceMode
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_dispatch, make_lease
from outreach.testing.clock import ManualClock
from tests.engine.conftest import OpenStorage

pytestmark = pytest.mark.anyio

ANN, BEN = "user:ann", "user:ben"
SENDER = "+12025550100"
MONDAY = datetime(2026, 11, 2, 8, tzinfo=UTC)
NINE = MONDAY.replace(hour=9)
DAY = timedelta(days=1)


@attrs.define
class Place:
    """An engine with a workspace and a campaign to repeat, at eight o'clock."""

    engine: Outreach
    clock: ManualClock
    workspace: str
    template: Campaign

    async def campaign(self, *, contacts: int = 3, actor: str = "library", **fields: Any) -> Campaign:
        """Return a ready campaign."""
        given = {"name": "Weekly", "body": "Hi", "carrier": "twilio", "from_number": SENDER, **fields}
        people = [NewRecipient(phone_number=f"+1303555{number:04d}") for number in range(100, 100 + contacts)]
        made = await self.engine.campaigns.create_sms(self.workspace, NewSmsCampaign(**given), people, actor=actor)
        return made.campaign

    def new(self, **fields: Any) -> NewSchedule:
        """Return a schedule for each day at nine."""
        given = {"name": "Daily", "template_id": self.template.id, "rule": "FREQ=DAILY", "zone": "UTC", "at": "09:00"}
        return NewSchedule(**{**given, "starts_on": date(2026, 11, 2), **fields})

    async def schedule(self, *, actor: str = "library", **fields: Any) -> Schedule:
        """Create one."""
        return await self.engine.schedules.create(self.workspace, self.new(**fields), actor=actor)

    async def get(self, schedule: Schedule) -> Schedule:
        """Return a schedule as it is now."""
        return await self.engine.schedules.get(self.workspace, schedule.id)

    async def run(self) -> None:
        """Have everything done that is due by the work feed."""
        for _ in range(100):
            found = await self.engine._storage.read(lambda tx: tx.work.due())
            due = [
                one for one in found if one.unit.kind == "schedule" and one.due_at and one.due_at <= self.clock.now()
            ]
            if not due:
                return
            for one in due:
                await self.engine.campaigns._run_schedule(one.unit.workspace_id, one.unit.id)
        raise AssertionError("It goes on for ever.")

    async def make_only(self, schedule: Schedule) -> None:
        """Make the next run, and be killed before it is started."""
        await self.engine.campaigns._schedule_runs._make(await self.get(schedule), NINE, self.clock.now())

    async def at(self, moment: datetime) -> None:
        """Set the clock, and have everything done that is due."""
        self.clock.set(moment)
        await self.run()

    async def set_back(self, moment: datetime) -> None:
        """Set the clock back, repair what a dispatching process repairs then, and have everything done that is due."""
        back = self.clock.now() - moment
        self.clock.set(moment)
        await self.engine._storage.write(lambda tx: repair_after_clock_step(tx, back, epoch=1, now=moment))
        await self.run()

    async def advance(self, run: Campaign) -> Campaign:
        """Make the change that is due by time, as a dispatching process does."""
        moved = await self.engine._storage.write(
            lambda tx: apply_schedule(tx, self.workspace, run.id, now=self.clock.now(), grace=timedelta(hours=1))
        )
        assert moved is not None
        return moved

    async def occurrences(self, schedule: Schedule) -> list[Occurrence]:
        """Return what became of a schedule's runs, the earliest first."""
        return [one async for one in self.engine.schedules.iter_occurrences(self.workspace, schedule.id)][::-1]

    async def states(self, schedule: Schedule) -> list[tuple[str, str | None]]:
        """Return their states and reasons."""
        return [(one.state, one.reason) for one in await self.occurrences(schedule)]

    async def runs(self, schedule: Schedule) -> list[Campaign]:
        """Return the campaigns of a schedule's runs."""
        found = await self.occurrences(schedule)
        return [await self.engine.campaigns.get(self.workspace, one.run_id) for one in found if one.run_id]


@pytest.fixture
async def place(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Place]:
    """A sandbox with a campaign."""
    clock.set(MONDAY)
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.SANDBOX))
        await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
        made = Place(engine, clock, workspace.id, None)  # type: ignore[arg-type]
        made.template = await made.campaign()
        yield made


async def test_a_run_is_made_a_quarter_of_an_hour_before_and_scheduled(place: Place) -> None:
    """So that a person can look at it; a moment earlier nothing is done."""
    schedule = await place.schedule()
    assert (schedule.state, schedule.next_at) == ("active", NINE)
    await place.at(NINE - timedelta(minutes=15, seconds=1))
    assert await place.states(schedule) == []
    await place.at(NINE - timedelta(minutes=15))
    [one], [run] = await place.occurrences(schedule), await place.runs(schedule)
    assert (one.at, one.state, one.reason, one.contacts) == (NINE, "started", None, 3)
    assert (run.status, run.scheduled_start_at, run.counters.total) == (CampaignStatus.SCHEDULED, NINE, 3)
    assert (run.name, run.body) == ("Daily 2026-11-02 09:00", "Hi")
    assert (await place.get(schedule)).next_at == NINE + DAY


async def test_a_run_is_made_once_whatever_the_clock_does(place: Place) -> None:
    """Its schedule and time are its key."""
    schedule = await place.schedule()
    for moment in (NINE, NINE - DAY, NINE - timedelta(minutes=10), NINE, NINE + timedelta(minutes=1)):
        await place.at(moment)
    assert await place.states(schedule) == [("started", None)]
    await place.engine.schedules.update(place.workspace, schedule.id, ScheduleUpdate(name="Other"))
    place.clock.set(MONDAY)
    await place.engine.schedules.pause(place.workspace, schedule.id)
    resumed = await place.engine.schedules.resume(place.workspace, schedule.id)
    assert resumed.next_at == NINE + DAY


async def test_a_clock_that_is_ahead_for_a_moment_costs_no_run(place: Place) -> None:
    """What it has left out as missed comes at its time; a schedule that it has ended goes on."""
    schedule = await place.schedule(rule="FREQ=DAILY;COUNT=3")
    await place.at(NINE + 60 * DAY)
    assert (await place.get(schedule)).state == "ended"
    await place.set_back(MONDAY)
    assert [one.at for one in await place.engine.schedules.next_runs(place.workspace, schedule.id)] == [
        NINE + number * DAY for number in range(3)
    ]
    found = await place.get(schedule)
    assert (found.state, found.reason, found.next_at) == ("active", None, NINE)
    for number in range(3):
        await place.at(NINE + number * DAY)
        [*_, run] = await place.runs(schedule)
        await place.engine.campaigns.cancel(place.workspace, run.id)
    assert await place.states(schedule) == [("started", None)] * 3
    assert (await place.get(schedule)).state == "ended"


async def test_a_time_that_no_heartbeat_confirms_decides_nothing(place: Place) -> None:
    """Another process has corrected its clock and this one has not, or this one was suspended."""
    schedule = await place.schedule()
    lease = make_lease(steady_since=MONDAY, steady_until=MONDAY)
    await place.engine._storage.write(lambda tx: tx.leases.put(lease))
    place.clock.set(NINE + 60 * DAY)
    again = await place.engine.campaigns._run_schedule(place.workspace, schedule.id)
    assert (again, await place.states(schedule)) == (place.clock.now() + timedelta(seconds=5), [])
    await place.engine._storage.write(
        lambda tx: tx.leases.put(attrs.evolve(lease, steady_until=place.clock.now() - timedelta(minutes=1)))
    )
    await place.run()
    assert len(await place.states(schedule)) == 61


async def test_a_process_that_starts_plans_again_what_a_clock_that_was_ahead_has_passed_over(place: Place) -> None:
    """No other process has noticed the step."""
    schedule = await place.schedule()
    await place.at(NINE + 60 * DAY + timedelta(hours=1))
    place.clock.set(MONDAY)
    await place.engine._storage.write(
        lambda tx: repair_what_the_last_left(tx, receipt=None, epoch=1, now=place.clock.now())
    )
    found = await place.get(schedule)
    assert (found.next_at, found.last_at) == (NINE, None)


async def test_a_run_that_began_while_the_clock_was_ahead_is_not_repeated(place: Place) -> None:
    """It holds no earlier run up, and its campaign waits for its time again."""
    schedule = await place.schedule(rule="FREQ=DAILY")
    ahead = NINE + 2 * DAY
    await place.at(ahead - timedelta(minutes=10))
    [run] = await place.runs(schedule)
    place.clock.set(ahead)
    assert (await place.advance(run)).status is CampaignStatus.ACTIVE
    await place.set_back(MONDAY)
    assert (await place.engine.campaigns.get(place.workspace, run.id)).status is CampaignStatus.SCHEDULED
    for moment in (NINE, NINE + DAY):
        await place.at(moment)
        today = next(
            one for one in await place.runs(schedule) if one.scheduled_start_at is None and not one.is_terminal
        )
        await place.engine.campaigns.cancel(place.workspace, today.id)
    await place.at(ahead)
    assert await place.states(schedule) == [("started", None)] * 3
    assert (await place.runs(schedule))[2] == await place.engine.campaigns.get(place.workspace, run.id)
    assert (await place.get(schedule)).next_at == ahead + DAY


async def test_a_run_that_a_clock_that_was_ahead_has_made_is_made_again_at_its_time(place: Place) -> None:
    """Its campaign has not begun, and is cancelled."""
    schedule = await place.schedule(rule="FREQ=DAILY;INTERVAL=2")
    await place.at(NINE + 2 * DAY - timedelta(minutes=10))
    [run] = await place.runs(schedule)
    assert run.status is CampaignStatus.SCHEDULED
    await place.set_back(MONDAY)
    assert (await place.engine.campaigns.get(place.workspace, run.id)).status is CampaignStatus.CANCELLED
    assert (await place.get(schedule)).next_at == NINE
    await place.at(NINE + 2 * DAY - timedelta(minutes=10))
    assert await place.states(schedule) == [("missed", "missed"), ("started", None)]
    assert (await place.runs(schedule))[0].id != run.id


async def test_a_run_that_was_made_by_a_clock_that_was_ahead_is_not_started(place: Place) -> None:
    """It was late by that clock, so that its campaign would begin at once."""
    schedule = await place.schedule(late_hours=2)
    place.clock.set(NINE + timedelta(hours=1))
    await place.make_only(schedule)
    await place.set_back(MONDAY)
    [run] = await place.runs(schedule)
    assert (await place.states(schedule), run.status) == ([("skipped", "replanned")], CampaignStatus.CANCELLED)


async def test_a_run_that_is_late_but_not_missed_by_the_corrected_clock_is_made(place: Place) -> None:
    """The record of the clock that was ahead is replaced."""
    schedule = await place.schedule(late_hours=2)
    await place.at(NINE + timedelta(hours=3))
    assert await place.states(schedule) == [("missed", "missed")]
    await place.set_back(NINE + timedelta(hours=1))
    assert await place.states(schedule) == [("started", None)]
    assert (await place.get(schedule)).next_at == NINE + DAY


async def test_a_run_that_is_late_stays_due_when_the_clock_is_set_back(place: Place) -> None:
    """A change of the schedule by the clock that was ahead does not take it away."""
    schedule = await place.schedule(late_hours=2)
    place.clock.set(NINE + timedelta(minutes=2))
    await place.engine._storage.write(
        lambda tx: tx.schedules.update(attrs.evolve(schedule, updated_at=place.clock.now()))
    )
    await place.set_back(NINE + timedelta(minutes=1))
    assert await place.states(schedule) == [("started", None)]


async def test_a_run_that_was_asked_for_while_the_clock_was_ahead_is_made(place: Place) -> None:
    """By the corrected clock it was asked for now."""
    schedule = await place.schedule()
    place.clock.set(NINE + 60 * DAY)
    await place.engine.schedules.pause(place.workspace, schedule.id)
    await place.engine.schedules.resume(place.workspace, schedule.id)
    await place.engine.schedules.run_now(place.workspace, schedule.id)
    await place.set_back(MONDAY)
    assert await place.states(schedule) == [("started", None)]
    assert (await place.get(schedule)).next_at == NINE


async def test_two_that_make_the_same_run_make_it_once(place: Place) -> None:
    """The second one finds the run of the first."""
    schedule = await place.schedule()
    place.clock.set(NINE)
    again: list[bool] = []
    runs = place.engine.campaigns._schedule_runs
    make = runs._copies.make_run

    async def twice(*args: Any, **kwargs: Any) -> Any:
        if not again:
            again.append(True)
            await place.run()
        return await make(*args, **kwargs)

    runs._copies.make_run = twice  # type: ignore[method-assign]
    await place.run()
    assert again
    assert await place.states(schedule) == [("started", None)]
    found = [one async for one in place.engine.campaigns.iter_all(place.workspace)]
    assert len(found) == 2


async def test_a_run_that_was_made_before_a_kill_is_started_after_it(place: Place) -> None:
    """Making and starting are two transactions, and the first one is not repeated."""
    schedule = await place.schedule()
    place.clock.set(NINE - timedelta(minutes=5))
    await place.make_only(schedule)
    assert await place.states(schedule) == [("made", None)]
    await place.run()
    assert await place.states(schedule) == [("started", None)]


@pytest.mark.parametrize(
    ("late_hours", "later", "state"),
    [
        (None, timedelta(minutes=5), "started"),
        (None, timedelta(minutes=5, seconds=1), "missed"),
        (2, timedelta(hours=2), "started"),
        (2, timedelta(hours=2, seconds=1), "missed"),
    ],
)
async def test_a_missed_run_is_left_out_or_late(
    place: Place, late_hours: int | None, later: timedelta, state: str
) -> None:
    """As the schedule says; up to five minutes are on time."""
    schedule = await place.schedule(late_hours=late_hours)
    await place.at(NINE + later)
    assert [one for one, _ in await place.states(schedule)] == [state]
    if state == "started":
        [run] = await place.runs(schedule)
        assert run.status is CampaignStatus.ACTIVE


@pytest.mark.parametrize(
    ("late_hours", "later", "state", "status"),
    [
        (None, timedelta(minutes=5), "started", CampaignStatus.ACTIVE),
        (None, timedelta(minutes=5, seconds=1), "missed", CampaignStatus.CANCELLED),
        (24, timedelta(hours=24), "started", CampaignStatus.ACTIVE),
        (24, timedelta(hours=24, seconds=1), "missed", CampaignStatus.CANCELLED),
    ],
)
async def test_a_run_that_was_made_before_an_outage_follows_the_same_policy(
    place: Place, late_hours: int | None, later: timedelta, state: str, status: CampaignStatus
) -> None:
    """One that is left out holds no later run up."""
    schedule = await place.schedule(rule="FREQ=DAILY;INTERVAL=2", late_hours=late_hours)
    await place.at(NINE - timedelta(minutes=10))
    place.clock.set(NINE + later)
    [run] = await place.runs(schedule)
    moved = await place.advance(run)
    assert (moved.status, moved.pause_reason) == (status, None)
    assert [one for one, _ in await place.states(schedule)] == [state]
    await place.at(NINE + 2 * DAY)
    held_up = state == "started"
    assert (await place.states(schedule))[-1] == (("skipped", "previous_run") if held_up else ("started", None))


async def test_a_run_that_got_another_time_from_a_person_is_like_other_campaigns(place: Place) -> None:
    """The policy of the schedule is about the time of the schedule."""
    schedule = await place.schedule()
    await place.at(NINE - timedelta(minutes=10))
    [run] = await place.runs(schedule)
    await place.engine.campaigns.unschedule(place.workspace, run.id)
    change = CampaignUpdate(scheduled_start_at=NINE + timedelta(hours=1))
    await place.engine.campaigns.update(place.workspace, run.id, change)
    await place.engine.campaigns.start(place.workspace, run.id)
    place.clock.set(NINE + timedelta(hours=1, minutes=30))
    assert (await place.advance(run)).status is CampaignStatus.ACTIVE


async def test_a_run_that_is_too_late_to_be_checked_is_cancelled(place: Place) -> None:
    """It was made, and the process was killed."""
    schedule = await place.schedule()
    place.clock.set(NINE - timedelta(minutes=5))
    await place.make_only(schedule)
    await place.at(NINE + timedelta(hours=1))
    [run] = await place.runs(schedule)
    assert (await place.states(schedule), run.status) == ([("missed", "missed")], CampaignStatus.CANCELLED)


async def test_missed_runs_are_recorded_and_do_not_pause(place: Place) -> None:
    """After a long standstill the next run comes as planned."""
    schedule = await place.schedule()
    await place.at(NINE + 3 * DAY + timedelta(hours=1))
    assert await place.states(schedule) == [("missed", "missed")] * 4
    assert (await place.get(schedule)).next_at == NINE + 4 * DAY


@pytest.mark.parametrize("overlap", ["skip", "allow"])
async def test_only_the_latest_missed_run_is_made_up_for(place: Place, overlap: str) -> None:
    """A contact gets one message after a long standstill, not one for each day."""
    schedule = await place.schedule(overlap=overlap, late_hours=168)
    await place.at(NINE + 3 * DAY + timedelta(hours=1))
    assert await place.states(schedule) == [("missed", "missed")] * 3 + [("started", None)]
    assert (await place.get(schedule)).next_at == NINE + 4 * DAY


@pytest.mark.parametrize("fields", [{}, {"overlap": "allow"}, {"overlap": "allow", "not_again_within_days": 7}])
@pytest.mark.parametrize("first", ["schedule", "campaign", "undecided"])
async def test_a_run_that_was_made_before_later_missed_ones_is_cancelled(
    place: Place, first: str, fields: dict[str, Any]
) -> None:
    """It does not hold the latest one up, whether its campaign or its schedule is looked at first."""
    schedule = await place.schedule(late_hours=168, **fields)
    place.clock.set(NINE - timedelta(minutes=10))
    await (place.make_only(schedule) if first == "undecided" else place.run())
    place.clock.set(NINE + DAY)
    if first == "campaign":
        [run] = await place.runs(schedule)
        await place.advance(run)
    await place.run()
    assert await place.states(schedule) == [("missed", "missed"), ("started", None)]
    assert [run.status for run in await place.runs(schedule)] == [CampaignStatus.CANCELLED, CampaignStatus.ACTIVE]


@pytest.mark.parametrize("overlap", ["skip", "allow"])
async def test_a_run_over_the_one_before_follows_the_policy(place: Place, overlap: str) -> None:
    """Its campaign has not ended, for nothing sends here."""
    schedule = await place.schedule(overlap=overlap)
    await place.at(NINE)
    await place.at(NINE + DAY)
    second = ("skipped", "previous_run") if overlap == "skip" else ("started", None)
    assert await place.states(schedule) == [("started", None), second]
    if overlap == "skip":
        [run] = await place.runs(schedule)
        await place.engine.campaigns.cancel(place.workspace, run.id)
        await place.at(NINE + 2 * DAY)
        assert (await place.states(schedule))[-1] == ("started", None)


async def test_a_blocked_run_that_a_person_has_started_counts_as_the_run_before(place: Place) -> None:
    """Until it is started it holds nothing up."""
    schedule = await place.schedule(max_cost=1)
    await place.at(NINE)
    [blocked] = await place.runs(schedule)
    await place.engine.schedules.update(place.workspace, schedule.id, ScheduleUpdate(max_cost=None))
    await place.engine.campaigns.start(place.workspace, blocked.id)
    await place.at(NINE + DAY)
    assert await place.states(schedule) == [("blocked", "cost"), ("skipped", "previous_run")]


async def test_a_run_is_like_its_template_as_it_is_then_with_the_audience_of_then(place: Place) -> None:
    """Both are read again for each run."""
    audience = await place.campaign(name="People", contacts=1, stay_open=True)
    schedule = await place.schedule(audience_id=audience.id, overlap="allow")
    await place.at(NINE)
    await place.engine.campaigns.update(place.workspace, place.template.id, CampaignUpdate(body="Ho"))
    await place.engine.campaigns.start(place.workspace, audience.id)
    await place.engine.campaigns.add_recipients(
        place.workspace, audience.id, [NewRecipient(phone_number="+13035550177")]
    )
    await place.engine.schedules.update(place.workspace, schedule.id, ScheduleUpdate(late_hours=1))
    await place.at(NINE + DAY)
    first, second = await place.runs(schedule)
    assert (first.body, first.counters.total) == ("Hi", 1)
    assert (second.body, second.counters.total, second.stay_open) == ("Ho", 2, False)


async def test_the_second_blocked_run_in_a_row_pauses_the_schedule(place: Place) -> None:
    """With the reason; its campaigns wait for a person."""
    await place.engine.campaigns.update(place.workspace, place.template.id, CampaignUpdate(body="Hi {{nickname}}"))
    schedule = await place.schedule()
    await place.at(NINE)
    [one] = await place.occurrences(schedule)
    assert (one.state, one.reason) == ("blocked", "not_ready")
    assert "nickname" in (one.detail or "")
    assert (await place.get(schedule)).state == "active"
    await place.at(NINE + DAY)
    paused = await place.get(schedule)
    assert (paused.state, paused.reason, paused.blocked) == ("paused", "not_ready", 2)
    assert [run.status for run in await place.runs(schedule)] == [CampaignStatus.READY] * 2
    await place.at(NINE + 2 * DAY)
    assert len(await place.occurrences(schedule)) == 2
    status = await place.engine.status(place.workspace)
    assert [finding.code for finding in status.findings if finding.path == schedule.id] == ["schedule_paused"]
    diagnosis = await place.engine.diagnose()
    assert "schedule_paused" in {finding.code for finding in diagnosis.findings}
    await place.engine.campaigns.update(place.workspace, place.template.id, CampaignUpdate(body="Hi"))
    resumed = await place.engine.schedules.resume(place.workspace, schedule.id)
    assert (resumed.state, resumed.reason, resumed.blocked) == ("active", None, 0)
    await place.at(NINE + 3 * DAY)
    assert (await place.states(schedule))[-1] == ("started", None)


async def test_a_started_run_between_two_blocked_ones_keeps_the_schedule_active(place: Place) -> None:
    """Only blocked runs in a row count."""
    schedule = await place.schedule(overlap="allow")
    for number, body in enumerate(("{{x}}", "Hi", "{{x}}")):
        await place.engine.campaigns.update(place.workspace, place.template.id, CampaignUpdate(body=body))
        await place.at(NINE + number * DAY)
    assert [state for state, _ in await place.states(schedule)] == ["blocked", "started", "blocked"]
    assert (await place.get(schedule)).state == "active"


async def test_a_run_without_contacts_is_blocked(place: Place) -> None:
    """Everybody is on the register, so that no campaign can be made."""
    schedule = await place.schedule()
    await place.engine.unsubscribes.add(place.workspace, *(f"+1303555{number:04d}" for number in (100, 101, 102)))
    await place.at(NINE)
    assert await place.states(schedule) == [("blocked", "not_made")]


async def test_a_list_that_grew_by_half_is_looked_at(place: Place) -> None:
    """Until a person lets the schedule go on."""
    audience = await place.campaign(name="People", contacts=4, stay_open=True)
    await place.engine.campaigns.start(place.workspace, audience.id)
    schedule = await place.schedule(overlap="allow", audience_id=audience.id)
    for number, more in enumerate((0, 2, 1, 0)):
        people = [NewRecipient(phone_number=f"+1303555{number}{extra:03d}") for extra in range(more)]
        if people:
            await place.engine.campaigns.add_recipients(place.workspace, audience.id, people)
        await place.at(NINE + number * DAY)
    assert [reason for _, reason in await place.states(schedule)] == [None, None, None, None]
    people = [NewRecipient(phone_number=f"+1303556{extra:04d}") for extra in range(4)]
    await place.engine.campaigns.add_recipients(place.workspace, audience.id, people)
    await place.at(NINE + 4 * DAY)
    await place.at(NINE + 5 * DAY)
    assert [reason for _, reason in await place.states(schedule)][-2:] == ["audience_grew"] * 2
    assert (await place.get(schedule)).state == "paused"
    await place.engine.schedules.resume(place.workspace, schedule.id)
    await place.at(NINE + 6 * DAY)
    assert (await place.states(schedule))[-1] == ("started", None)


@pytest.mark.parametrize(("price", "max_cost", "reason"), [("0.50", 1, "cost"), ("0.50", 2, None), (None, 5, "cost")])
async def test_a_run_over_its_cost_is_blocked(
    place: Place, price: str | None, max_cost: int, reason: str | None
) -> None:
    """Also where nobody knows what it costs."""
    if price is not None:
        table = PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal(price)),))
        await place.engine.prices.update(place.workspace, table)
    schedule = await place.schedule(max_cost=max_cost)
    await place.at(NINE)
    [one] = await place.occurrences(schedule)
    assert one.reason == reason
    assert one.amount == (None if price is None else Decimal("1.5"))


async def test_a_schedule_of_a_person_needs_the_approval_of_another_one(place: Place) -> None:
    """Within its limits all runs are approved; a change of schedule or template ends that."""
    await place.engine.workspaces.update(place.workspace, WorkspaceUpdate(approve_over_contacts=2))
    schedule = await place.schedule(actor=ANN, overlap="allow")
    schedules = place.engine.schedules
    await place.at(NINE)
    assert await place.states(schedule) == [("blocked", "awaits_approval")]
    limits = NewScheduleApproval(revision=schedule.revision, most_contacts=3)
    with pytest.raises(Conflict, match="another person"):
        await schedules.approve(place.workspace, schedule.id, limits, actor=ANN)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await schedules.approve(place.workspace, schedule.id, attrs.evolve(limits, revision=9), actor=BEN)
    approved = await schedules.approve(place.workspace, schedule.id, limits, actor=BEN)
    assert approved.approval is not None
    assert approved.approval.approved_by == BEN
    await place.at(NINE + DAY)
    await schedules.approve(place.workspace, schedule.id, attrs.evolve(limits, most_contacts=2), actor=BEN)
    await place.at(NINE + 2 * DAY)
    assert [state for state, _ in await place.states(schedule)] == ["blocked", "started", "blocked"]
    await schedules.approve(place.workspace, schedule.id, limits, actor=BEN)
    await place.engine.campaigns.update(place.workspace, place.template.id, CampaignUpdate(body="Ho"), actor=BEN)
    with pytest.raises(Conflict, match="another person"):
        await schedules.approve(place.workspace, schedule.id, limits, actor=BEN)
    await place.at(NINE + 3 * DAY)
    paused = await place.get(schedule)
    assert (paused.state, paused.reason) == ("paused", "awaits_approval")


async def test_a_run_that_is_not_started_needs_a_person(place: Place) -> None:
    """From when its campaign is made, until a person starts that; the status names the command."""
    await place.engine.workspaces.update(place.workspace, WorkspaceUpdate(approve_over_contacts=2))
    schedule = await place.schedule(actor=ANN)
    await place.at(NINE - timedelta(minutes=10))
    [run] = await place.runs(schedule)
    assert run.status is CampaignStatus.READY
    status = await place.engine.status(place.workspace)
    [found] = [one for one in status.findings if one.code == "run_blocked"]
    assert found.path == schedule.id
    assert found.commands[-1] == f"outreach-server campaigns start {run.id}"
    assert f"has not started its run of {format_timestamp(NINE)}. A second person has to approve" in found.message
    await place.engine.campaigns.start(place.workspace, run.id)
    assert (await place.engine.status(place.workspace)).blocked_runs == []


async def test_who_filled_the_list_of_a_schedule_does_not_approve_it(place: Place) -> None:
    """A person who adds contacts counts as one who has changed the schedule, also where a program has made it."""
    await place.engine.workspaces.update(place.workspace, WorkspaceUpdate(approve_over_contacts=2))
    audience = await place.campaign(name="People")
    schedule = await place.schedule(audience_id=audience.id)
    people = [NewRecipient(phone_number="+13035550177")]
    await place.engine.campaigns.add_recipients(place.workspace, audience.id, people, actor=ANN)
    await place.at(NINE)
    assert await place.states(schedule) == [("blocked", "awaits_approval")]
    limits = NewScheduleApproval(revision=schedule.revision, most_contacts=9)
    with pytest.raises(Conflict, match="another person"):
        await place.engine.schedules.approve(place.workspace, schedule.id, limits, actor=ANN)
    await place.engine.schedules.approve(place.workspace, schedule.id, limits, actor=BEN)
    await place.at(NINE + DAY)
    assert [state for state, _ in await place.states(schedule)] == ["blocked", "started"]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_run_that_a_person_changes_before_its_start_is_not_the_one_approved(
    place: Place, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Before it is looked at, such as between a kill and a restart; or while it is."""
    await place.engine.workspaces.update(place.workspace, WorkspaceUpdate(approve_over_contacts=2))
    schedule = await place.schedule(actor=ANN)
    limits = NewScheduleApproval(revision=schedule.revision, most_contacts=3)
    await place.engine.schedules.approve(place.workspace, schedule.id, limits, actor=BEN)
    place.clock.set(NINE)
    await place.make_only(schedule)
    [run] = await place.runs(schedule)
    runs = place.engine.campaigns._schedule_runs
    preflight = runs._preflight

    async def change() -> None:
        await place.engine.campaigns.update(place.workspace, run.id, CampaignUpdate(body="Ho"), actor=ANN)

    async def slow(workspace_id: str, run_id: str) -> Preflight:
        found = await preflight(workspace_id, run_id)
        await change()
        return found

    if when == "before":
        await change()
    else:
        monkeypatch.setattr(runs, "_preflight", slow)
    await place.run()
    reason = "awaits_approval" if when == "before" else "not_ready"
    assert await place.states(schedule) == [("blocked", reason)]
    assert (await place.engine.campaigns.get(place.workspace, run.id)).status is CampaignStatus.READY


async def test_an_approval_of_a_schedule_ends_with_a_change_of_its_flow(place: Place) -> None:
    """Also where the campaign that its runs are like has ended: its runs say what the flow says."""
    await place.engine.workspaces.update(place.workspace, WorkspaceUpdate(approve_over_contacts=0))
    new = NewFlow(name="Welcome", steps=[FlowStep(kind="send", body="Hi")])
    flow = await place.engine.flows.create(place.workspace, new)
    change = CampaignUpdate(flow_id=flow.id)
    await place.engine.campaigns.update(place.workspace, place.template.id, change, actor=ANN)
    for move in (place.engine.campaigns.start, place.engine.campaigns.cancel):
        await move(place.workspace, place.template.id)
    schedule = await place.schedule(actor=ANN)
    limits = NewScheduleApproval(revision=schedule.revision, most_contacts=9)
    await place.engine.schedules.approve(place.workspace, schedule.id, limits, actor=BEN)
    other = FlowUpdate(steps=[FlowStep(kind="send", body="Ho")])
    await place.engine.flows.update(place.workspace, flow.id, other, actor=ANN)
    await place.at(NINE)
    assert await place.states(schedule) == [("blocked", "awaits_approval")]


async def test_the_approval_of_a_run_that_has_not_begun_ends_with_a_change(place: Place) -> None:
    """Of the number that it sends from: its start, which the schedule's approval covered, is taken back."""
    await place.engine.workspaces.update(place.workspace, WorkspaceUpdate(approve_over_contacts=0))
    schedule = await place.schedule(actor=ANN, overlap="allow")
    limits = NewScheduleApproval(revision=schedule.revision, most_contacts=9)
    await place.engine.schedules.approve(place.workspace, schedule.id, limits, actor=BEN)
    await place.at(NINE - timedelta(minutes=10))
    [run] = await place.runs(schedule)
    assert run.status is CampaignStatus.SCHEDULED
    number = (await place.engine.numbers.list(place.workspace)).items[0]
    change = NumberUpdate(carrier="vonage")
    await place.engine.numbers.update(place.workspace, number.id, change, actor=ANN)
    await place.at(NINE)
    run = await place.advance(run)
    assert (run.status, run.changed_by) == (CampaignStatus.READY, ANN)
    assert await place.states(schedule) == [("blocked", "awaits_approval")]
    assert (await place.engine.campaigns.approval(place.workspace, run.id)).is_missing
    await place.at(NINE + DAY)
    assert await place.states(schedule) == [("blocked", "awaits_approval")] * 2


async def test_an_approval_without_an_amount_covers_no_run_that_needs_one(place: Place) -> None:
    """Where the workspace limits the cost of starts."""
    table = PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal("0.5")),))
    await place.engine.prices.update(place.workspace, table)
    await place.engine.workspaces.update(place.workspace, WorkspaceUpdate(approve_over_amount=1))
    schedule = await place.schedule(actor=ANN, overlap="allow")
    for most_amount, number in ((None, 0), (2, 1)):
        new = NewScheduleApproval(revision=1, most_contacts=9, most_amount=most_amount)
        await place.engine.schedules.approve(place.workspace, schedule.id, new, actor=BEN)
        await place.at(NINE + number * DAY)
    assert [state for state, _ in await place.states(schedule)] == ["blocked", "started"]


async def test_who_got_a_run_lately_is_left_out(place: Place) -> None:
    """In any later run within the days; who was not contacted comes again."""
    schedule = await place.schedule(not_again_within_days=2, overlap="allow")
    await place.at(NINE)
    [run] = await place.runs(schedule)
    dispatch = make_dispatch(
        workspace_id=place.workspace, campaign_id=run.id, position=0, to="+13035550100", created_at=NINE
    )
    await place.engine._storage.write(lambda tx: tx.dispatches.insert(dispatch))
    await place.engine.campaigns.cancel(place.workspace, run.id)
    await place.at(NINE + DAY)
    second = (await place.runs(schedule))[-1]
    await place.engine.campaigns.cancel(place.workspace, second.id)
    await place.at(NINE + 2 * DAY)
    last = (await place.runs(schedule))[-1]
    assert [second.counters.total, last.counters.total] == [2, 3]


async def test_a_run_is_not_deleted_while_its_contacts_are_left_out(place: Place) -> None:
    """The next run would contact them again; the error says what to do instead."""
    schedule = await place.schedule(not_again_within_days=9)
    await place.at(NINE)
    [run] = await place.runs(schedule)
    ended = attrs.evolve(run, status=CampaignStatus.COMPLETED, completed_at=NINE, revision=run.revision + 1)

    def end(tx: Transaction) -> None:
        tx.campaigns.update(ended)
        tx.campaigns.add_counters(place.workspace, run.id, Counters(open=-3, pending=-3, completed=3))

    await place.engine._storage.write(end)
    place.clock.set(NINE + 9 * DAY)
    with pytest.raises(Conflict, match=r"leaves out whom .* shorten not_again_within_days"):
        await place.engine.campaigns.delete(place.workspace, run.id)
    place.clock.set(NINE + 9 * DAY + timedelta(seconds=1))
    erased = await place.engine.campaigns.delete(place.workspace, run.id)
    assert erased is not None
    assert erased.erased_at is not None


async def test_who_waits_in_an_earlier_run_is_left_out(place: Place) -> None:
    """Until that campaign is over, however long that takes."""
    schedule = await place.schedule(not_again_within_days=1, overlap="allow")
    await place.at(NINE - timedelta(minutes=10))
    await place.engine.schedules.run_now(place.workspace, schedule.id)
    await place.run()
    await place.at(NINE + 2 * DAY)
    states = [("skipped", "nobody_new"), ("started", None), ("missed", "missed"), ("skipped", "nobody_new")]
    assert await place.states(schedule) == states
    [waiting] = await place.runs(schedule)
    await place.engine.campaigns.cancel(place.workspace, waiting.id)
    await place.at(NINE + 3 * DAY)
    assert [run.counters.total for run in await place.runs(schedule)] == [3, 3]


async def test_a_weekly_run_contacts_those_of_the_week_before(place: Place) -> None:
    """With seven days, however early it is made; with eight it leaves them out."""
    place.template = await place.campaign(contacts=1)
    week = timedelta(days=7)
    wanted = {7: [("started", None)] * 2, 8: [("started", None), ("skipped", "nobody_new")]}
    for days, states in wanted.items():
        schedule = await place.schedule(rule="FREQ=WEEKLY", not_again_within_days=days, overlap="allow")
        first = schedule.next_at
        assert first is not None
        await place.at(first)
        [run] = await place.runs(schedule)
        dispatch = make_dispatch(
            workspace_id=place.workspace,
            campaign_id=run.id,
            position=0,
            to="+13035550100",
            created_at=first + timedelta(hours=2),
        )
        await place.engine._storage.write(lambda tx, dispatch=dispatch: tx.dispatches.insert(dispatch))  # type: ignore[misc]
        await place.engine.campaigns.cancel(place.workspace, run.id)
        await place.at(first + week)
        assert await place.states(schedule) == states
        await place.engine.schedules.remove(place.workspace, schedule.id)


async def test_a_run_in_which_everybody_is_left_out_is_skipped(place: Place) -> None:
    """That nobody is new is nothing that a person has to look at."""
    place.template = await place.campaign(contacts=1)
    schedule = await place.schedule(not_again_within_days=7, overlap="allow")
    await place.at(NINE)
    [run] = await place.runs(schedule)
    dispatch = make_dispatch(
        workspace_id=place.workspace, campaign_id=run.id, position=0, to="+13035550100", created_at=NINE
    )
    await place.engine._storage.write(lambda tx: tx.dispatches.insert(dispatch))
    await place.at(NINE + DAY)
    assert await place.states(schedule) == [("started", None), ("skipped", "nobody_new")]


async def test_a_run_on_a_holiday_of_the_template_moves(place: Place) -> None:
    """The campaign's own holidays count."""
    day = Holiday(date=date(2026, 11, 2), name="Feast", enabled=True)
    place.template = await place.campaign(holidays=HolidayCalendar(country=None, holidays=(day,)))
    moved = await place.schedule(holidays="next_day")
    assert moved.next_at == NINE + DAY
    found = await place.engine.schedules.preview(place.workspace, place.new(holidays="next_day"), count=2)
    assert [(one.at, one.moved_from) for one in found] == [(NINE + DAY, day.date), (NINE + 2 * DAY, None)]


async def test_the_next_run_follows_holidays_that_the_template_gets_and_loses(place: Place) -> None:
    """Also when it was planned before; one that is due is made."""
    feasts = tuple(Holiday(date=date(2026, 11, day), name="Feast", enabled=True) for day in (3, 4))
    schedule = await place.schedule(overlap="allow")
    await place.at(NINE)
    for holidays, number in ((feasts[:1], 2), ((), 1), (feasts, 3)):
        given = CampaignUpdate(holidays=HolidayCalendar(country=None, holidays=holidays))
        await place.engine.campaigns.update(place.workspace, place.template.id, given)
        assert (await place.get(schedule)).next_at == NINE + number * DAY
    for number in range(1, 4):
        await place.at(NINE + number * DAY)
    assert [one.at for one in await place.occurrences(schedule)] == [NINE, NINE + 3 * DAY]


async def test_a_preview_leaves_holidays_out(place: Place) -> None:
    """Unless the schedule ignores them; what it shows is what is made."""
    day = Holiday(date=date(2026, 11, 3), name="Feast", enabled=True)
    place.template = await place.campaign(holidays=HolidayCalendar(country=None, holidays=(day,)))
    preview = place.engine.schedules.preview
    shown = [one.at for one in await preview(place.workspace, place.new(), count=2)]
    assert shown == [NINE, NINE + 2 * DAY]
    ignoring = await preview(place.workspace, place.new(holidays="ignore"), count=2)
    assert [one.at for one in ignoring] == [NINE, NINE + DAY]
    schedule = await place.schedule(overlap="allow")
    for number in range(3):
        await place.at(NINE + number * DAY)
    assert [one.at for one in await place.occurrences(schedule) if one.run_id] == shown


async def test_a_run_now_is_made_beside_the_others(place: Place) -> None:
    """At once, under its own time, and once for each time that it is asked for."""
    schedule = await place.schedule(overlap="allow")
    asked = await place.engine.schedules.run_now(place.workspace, schedule.id, idempotency_key="k")
    assert asked.run_now_at == MONDAY
    with pytest.raises(Conflict, match="not made yet"):
        await place.engine.schedules.run_now(place.workspace, schedule.id)
    await place.run()
    assert [(one.at, one.state) for one in await place.occurrences(schedule)] == [(MONDAY, "started")]
    [run] = await place.runs(schedule)
    assert run.status is CampaignStatus.ACTIVE
    again = await place.engine.schedules.run_now(place.workspace, schedule.id, idempotency_key="k")
    assert (again.run_now_at, again.next_at) == (None, NINE)


async def test_a_run_now_is_made_however_late(place: Place) -> None:
    """A person has asked for it; no process dispatched until then, or it was killed before the start."""
    schedule = await place.schedule(overlap="allow")
    await place.engine.schedules.run_now(place.workspace, schedule.id)
    place.clock.set(MONDAY + timedelta(minutes=20))
    runs = place.engine.campaigns._schedule_runs
    await runs._make(await place.get(schedule), MONDAY, place.clock.now())
    await place.at(MONDAY + timedelta(minutes=40))
    assert await place.states(schedule) == [("started", None)]


async def test_the_next_run_is_left_out_once(place: Place) -> None:
    """By a person."""
    schedule = await place.schedule()
    after = await place.engine.schedules.skip_next(place.workspace, schedule.id)
    assert after.next_at == NINE + DAY
    await place.at(NINE)
    assert await place.states(schedule) == [("skipped", "operator")]


async def test_a_run_that_is_made_and_has_not_begun_is_left_out_first(place: Place) -> None:
    """Its campaign is cancelled; the second time the run after it is left out."""
    schedule = await place.schedule()
    await place.at(NINE - timedelta(minutes=10))
    after = await place.engine.schedules.skip_next(place.workspace, schedule.id)
    assert after.next_at == NINE + DAY
    [run] = await place.runs(schedule)
    assert (await place.states(schedule), run.status) == ([("skipped", "operator")], CampaignStatus.CANCELLED)
    again = await place.engine.schedules.skip_next(place.workspace, schedule.id)
    assert again.next_at == NINE + 2 * DAY


async def test_the_last_run_is_left_out_after_it_was_made(place: Place) -> None:
    """Although no other one is planned; once it has begun there is nothing to leave out."""
    schedule = await place.schedule(rule="FREQ=DAILY;COUNT=1")
    await place.at(NINE - timedelta(minutes=10))
    await place.engine.schedules.skip_next(place.workspace, schedule.id)
    assert await place.states(schedule) == [("skipped", "operator")]
    with pytest.raises(Conflict, match="ended"):
        await place.engine.schedules.skip_next(place.workspace, schedule.id)


async def test_skipping_leaves_a_run_that_has_begun_alone(place: Place) -> None:
    """And the one after it does not come."""
    schedule = await place.schedule()
    await place.at(NINE)
    after = await place.engine.schedules.skip_next(place.workspace, schedule.id)
    assert (after.next_at, await place.states(schedule)) == (
        NINE + 2 * DAY,
        [("started", None), ("skipped", "operator")],
    )


@pytest.mark.parametrize(
    ("change", "next_at"),
    [
        (ScheduleUpdate(at="11:00"), NINE + timedelta(hours=2)),
        (ScheduleUpdate(at="08:55"), NINE - timedelta(minutes=5)),
        (ScheduleUpdate(rule="FREQ=WEEKLY;BYDAY=WE"), NINE + 2 * DAY),
        (ScheduleUpdate(zone="America/New_York"), NINE + timedelta(hours=5)),
        (ScheduleUpdate(except_dates=(NINE.date(),)), NINE + DAY),
    ],
)
async def test_a_change_of_the_plan_cancels_the_run_that_has_not_begun(
    place: Place, change: ScheduleUpdate, next_at: datetime
) -> None:
    """Else two would come on that day, or one on a day without any."""
    schedule = await place.schedule(overlap="allow")
    await place.at(NINE - timedelta(minutes=10))
    changed = await place.engine.schedules.update(place.workspace, schedule.id, change)
    assert (changed.next_at, changed.last_at) == (next_at, None)
    [run] = await place.runs(schedule)
    assert (await place.states(schedule), run.status) == ([("skipped", "replanned")], CampaignStatus.CANCELLED)
    await place.at(next_at)
    known = {one.at: one.state for one in await place.occurrences(schedule)}
    assert known == {NINE: "skipped", next_at: "started"}


async def test_a_plan_that_is_changed_back_has_its_run(place: Place) -> None:
    """One campaign is cancelled, and another one made."""
    schedule = await place.schedule()
    await place.at(NINE - timedelta(minutes=10))
    await place.engine.schedules.update(place.workspace, schedule.id, ScheduleUpdate(at="11:00"))
    changed = await place.engine.schedules.update(place.workspace, schedule.id, ScheduleUpdate(at="09:00"))
    assert changed.next_at == NINE
    await place.at(NINE - timedelta(minutes=5))
    assert await place.states(schedule) == [("started", None)]
    found = [one async for one in place.engine.campaigns.iter_all(place.workspace) if one.id != place.template.id]
    assert sorted(one.status for one in found) == [CampaignStatus.CANCELLED, CampaignStatus.SCHEDULED]


async def test_a_change_that_leaves_the_time_of_a_run_leaves_the_run(place: Place) -> None:
    """Its name, or a rule that has the day too."""
    schedule = await place.schedule()
    await place.at(NINE - timedelta(minutes=10))
    change = ScheduleUpdate(name="Other", rule="FREQ=WEEKLY;BYDAY=MO")
    changed = await place.engine.schedules.update(place.workspace, schedule.id, change)
    [run] = await place.runs(schedule)
    assert (run.status, changed.next_at) == (CampaignStatus.SCHEDULED, NINE + 7 * DAY)


async def test_a_paused_schedule_makes_nothing_and_makes_up_for_nothing(place: Place) -> None:
    """It goes on with the first run after its resumption."""
    schedule = await place.schedule()
    paused = await place.engine.schedules.pause(place.workspace, schedule.id)
    assert (paused.state, paused.reason) == ("paused", "operator")
    await place.at(NINE + DAY)
    with pytest.raises(Conflict):
        await place.engine.schedules.run_now(place.workspace, schedule.id)
    with pytest.raises(Conflict):
        await place.engine.schedules.skip_next(place.workspace, schedule.id)
    resumed = await place.engine.schedules.resume(place.workspace, schedule.id)
    assert resumed.next_at == NINE + 2 * DAY
    assert await place.states(schedule) == []


async def test_a_schedule_ends_with_its_rule_and_begins_again_with_another(place: Place) -> None:
    """Nothing is left to pause or to resume."""
    schedule = await place.schedule(rule="FREQ=DAILY;COUNT=1")
    await place.at(NINE)
    ended = await place.get(schedule)
    assert (ended.state, ended.reason, ended.next_at) == ("ended", "no_further_run", None)
    for method in (place.engine.schedules.pause, place.engine.schedules.resume):
        with pytest.raises(Conflict):
            await method(place.workspace, schedule.id)
    again = await place.engine.schedules.update(place.workspace, schedule.id, ScheduleUpdate(rule="FREQ=DAILY"))
    assert (again.state, again.reason, again.next_at, again.revision) == ("active", None, NINE + DAY, 2)


async def test_a_removed_schedule_makes_nothing(place: Place) -> None:
    """A run that is being made is not started either."""
    schedule = await place.schedule()
    place.clock.set(NINE)
    await place.make_only(schedule)
    await place.engine.schedules.remove(place.workspace, schedule.id)
    await place.at(NINE + DAY)
    with pytest.raises(NotFound):
        await place.get(schedule)
    found = [one async for one in place.engine.campaigns.iter_all(place.workspace)]
    assert {one.status for one in found} == {CampaignStatus.READY}


async def test_a_removed_schedule_cancels_the_run_that_has_not_begun(place: Place) -> None:
    """As does each other way to take a run out of the plan."""
    schedule = await place.schedule()
    await place.at(NINE - timedelta(minutes=10))
    [run] = await place.runs(schedule)
    await place.engine.schedules.remove(place.workspace, schedule.id)
    assert (await place.engine.campaigns.get(place.workspace, run.id)).status is CampaignStatus.CANCELLED


async def test_a_template_that_is_gone_blocks_its_runs(place: Place) -> None:
    """A person has to name another one."""
    schedule = await place.schedule()
    with pytest.raises(Conflict, match="in use by schedule 'Daily'"):
        await place.engine.campaigns.delete(place.workspace, place.template.id)
    await place.engine.schedules.remove(place.workspace, schedule.id)
    await place.engine.campaigns.delete(place.workspace, place.template.id)
    with pytest.raises(InvalidRequest, match="template_id"):
        await place.schedule()


async def test_a_restored_database_makes_no_run_until_a_person_looks(place: Place) -> None:
    """What has run since the copy was made is not known in it."""
    schedule = await place.schedule()
    await place.engine._storage.write(lambda tx: pause_after_restore(tx, "restored", MONDAY))
    paused = await place.get(schedule)
    assert (paused.state, paused.reason) == ("paused", "restored")
    await place.at(NINE)
    assert await place.states(schedule) == []


async def test_events_tell_of_runs(place: Place) -> None:
    """Those that were started, and those that were not."""
    schedule = await place.schedule()
    async with place.engine.events.subscribe(ScheduleRan, ScheduleSkipped, workspace_id=place.workspace) as stream:
        await place.at(NINE)
        await place.at(NINE + DAY)
        ran, skipped = await anext(stream), await anext(stream)
    [run] = await place.runs(schedule)
    assert isinstance(ran, ScheduleRan)
    assert (ran.schedule_id, ran.planned_at, ran.campaign_id) == (schedule.id, NINE, run.id)
    assert isinstance(skipped, ScheduleSkipped)
    assert (skipped.planned_at, skipped.state, skipped.reason) == (NINE + DAY, "skipped", "previous_run")


async def test_another_workspace_knows_nothing_of_a_schedule(place: Place) -> None:
    """Nor can it repeat its campaigns."""
    schedule = await place.schedule()
    other = (await place.engine.workspaces.create(NewWorkspace(name="Other"))).id
    schedules = place.engine.schedules
    for call in (
        schedules.get(other, schedule.id),
        schedules.pause(other, schedule.id),
        schedules.resume(other, schedule.id),
        schedules.run_now(other, schedule.id),
        schedules.skip_next(other, schedule.id),
        schedules.next_runs(other, schedule.id),
        schedules.list_occurrences(other, schedule.id),
        schedules.remove(other, schedule.id),
        schedules.update(other, schedule.id, ScheduleUpdate(name="Mine")),
        schedules.approve(other, schedule.id, NewScheduleApproval(revision=1, most_contacts=1)),
    ):
        with pytest.raises(NotFound):
            await call
    for change in (ScheduleUpdate(template_id=other), ScheduleUpdate(audience_id=other)):
        with pytest.raises(InvalidRequest):
            await schedules.update(place.workspace, schedule.id, change)
    for fields in ({}, {"template_id": schedule.id}, {"audience_id": place.template.id}):
        with pytest.raises(InvalidRequest):
            await schedules.create(other, place.new(**fields))
        with pytest.raises(InvalidRequest):
            await schedules.preview(other, place.new(**fields))


async def test_a_blank_name_is_refused(place: Place) -> None:
    """Campaigns are called after it."""
    with pytest.raises(InvalidRequest, match="name: must not be blank"):
        await place.schedule(name="  ")
    schedule = await place.schedule()
    with pytest.raises(InvalidRequest, match="name: must not be blank"):
        await place.engine.schedules.update(place.workspace, schedule.id, ScheduleUpdate(name="\t "))


async def test_a_rule_that_never_comes_is_refused(place: Place) -> None:
    """When it is created, and when it is changed."""
    with pytest.raises(InvalidRequest, match="10 years"):
        await place.schedule(rule="FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30")
    schedule = await place.schedule()
    for change in (ScheduleUpdate(ends_on=date(2026, 11, 1)), ScheduleUpdate(rule="FREQ=DAILY;UNTIL=20261101")):
        with pytest.raises(InvalidRequest):
            await place.engine.schedules.update(place.workspace, schedule.id, change)
