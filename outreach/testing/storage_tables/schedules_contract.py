"""The contract of schedules and of what became of their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import pytest

from outreach.models.schedule import Occurrence, Schedule
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists
from outreach.testing.builders import NOW, make_dispatch, make_occurrence, make_schedule
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    given_recipients,
    given_rows,
)


async def given_schedule(storage: Storage, **changes: Any) -> Schedule:
    """Write a schedule, and return it."""
    schedule = make_schedule(**changes)
    await given_rows(storage, schedule)
    return schedule


class SchedulesContract(ContractBase):
    """Schedules, beside what all resources have, and their occurrences."""

    async def test_a_time_of_a_schedule_has_one_run(self, storage: Storage) -> None:
        """A second insert raises and leaves the first as it was; another time, or schedule, has its own."""
        schedule, other = await given_schedule(storage), await given_schedule(storage)
        first = make_occurrence(schedule_id=schedule.id)
        await given_rows(storage, first)
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.occurrences.insert(make_occurrence(schedule_id=schedule.id)))
        await given_rows(
            storage, make_occurrence(schedule_id=schedule.id, at=NOW + TICK), make_occurrence(schedule_id=other.id)
        )
        assert await storage.read(lambda tx: tx.occurrences.get(THIS_WORKSPACE, schedule.id, NOW)) == first
        assert await storage.read(lambda tx: tx.occurrences.get(OTHER_WORKSPACE, schedule.id, NOW)) is None

    async def test_runs_are_listed_latest_first(self, storage: Storage) -> None:
        """Before a time, of one schedule, up to a limit."""
        schedule, other = await given_schedule(storage), await given_schedule(storage)
        runs = [make_occurrence(schedule_id=schedule.id, at=NOW + TICK * number) for number in range(3)]
        await given_rows(storage, *runs, make_occurrence(schedule_id=other.id))
        place = (THIS_WORKSPACE, schedule.id)
        assert list(await storage.read(lambda tx: tx.occurrences.page(*place, limit=9))) == runs[::-1]
        before = await storage.read(lambda tx: tx.occurrences.page(*place, before=NOW + TICK * 2, limit=1))
        assert list(before) == [runs[1]]

    async def test_the_run_that_is_made_and_the_last_one_with_a_campaign_are_found(self, storage: Storage) -> None:
        """At most one is made and not decided about; those without a campaign, and later ones, do not count."""
        schedule = await given_schedule(storage)
        place = (THIS_WORKSPACE, schedule.id)
        made = make_occurrence(schedule_id=schedule.id, state="made")
        skipped = make_occurrence(schedule_id=schedule.id, at=NOW + TICK, state="skipped", run_id=None)
        later = make_occurrence(schedule_id=schedule.id, at=NOW + 3 * TICK)
        await given_rows(storage, made, skipped, later)
        assert await storage.read(lambda tx: tx.occurrences.made(*place)) == made

        async def last(until: datetime) -> Occurrence | None:
            return await storage.read(lambda tx: tx.occurrences.last_with_campaign(*place, until=until))

        assert await last(NOW + 2 * TICK) == made
        assert await last(NOW + 3 * TICK) == later
        started = make_occurrence(schedule_id=schedule.id, run_id=made.run_id)
        await storage.write(lambda tx: tx.occurrences.update(started))
        assert await storage.read(lambda tx: tx.occurrences.made(*place)) is None
        assert await last(NOW) == started
        assert await last(NOW - TICK) is None

    async def test_the_run_of_a_campaign_is_found(self, storage: Storage) -> None:
        """In its workspace; a campaign of no schedule has none."""
        schedule = await given_schedule(storage)
        run = make_occurrence(schedule_id=schedule.id)
        await given_rows(storage, run)
        assert await storage.read(lambda tx: tx.occurrences.of_run(THIS_WORKSPACE, run.run_id or "")) == run
        assert await storage.read(lambda tx: tx.occurrences.of_run(OTHER_WORKSPACE, run.run_id or "")) is None
        assert await storage.read(lambda tx: tx.occurrences.of_run(THIS_WORKSPACE, schedule.id)) is None

    async def test_whom_runs_have_contacted_is_read_for_many_numbers(self, storage: Storage) -> None:
        """By requests of the schedule's campaigns since a moment, but for those that reached nobody."""
        schedule, other = await given_schedule(storage), await given_schedule(storage)
        campaign = await given_recipients(storage, 3)
        place: dict[str, Any] = {"campaign_id": campaign.id, "created_at": NOW + TICK}
        requests = (
            make_dispatch(**place, position=0, to="+14155550101"),
            make_dispatch(**place, position=1, to="+14155550102", state=DispatchState.WITHDRAWN),
            make_dispatch(campaign_id=campaign.id, position=2, to="+14155550103", created_at=NOW),
        )
        await given_rows(storage, *requests)
        run = make_occurrence(schedule_id=schedule.id, run_id=campaign.id)
        await given_rows(storage, run)
        asked = ["+14155550101", "+14155550102", "+14155550103"]
        for known, wanted in ((schedule.id, {asked[0]}), (other.id, set())):
            found = await storage.read(
                lambda tx, known=known: tx.occurrences.contacted(THIS_WORKSPACE, known, asked, since=NOW + TICK)  # type: ignore[misc]
            )
            assert found == wanted

    @pytest.mark.parametrize(
        ("status", "wanted"), [("ready", False), ("scheduled", True), ("paused", True), ("cancelled", False)]
    )
    async def test_whom_runs_under_way_will_contact_is_read_too(
        self, storage: Storage, status: str, wanted: bool
    ) -> None:
        """A campaign that waits for a person, or was cancelled, counts for nobody."""
        schedule, other = await given_schedule(storage), await given_schedule(storage)
        campaign = await given_recipients(storage, 2)
        moved = attrs.evolve(campaign, status=CampaignStatus(status))
        await storage.write(lambda tx: tx.campaigns.update(moved))
        first, second = [
            await storage.read(lambda tx, number=number: tx.recipients.get(THIS_WORKSPACE, campaign.id, number))  # type: ignore[misc]
            for number in range(2)
        ]
        ended = attrs.evolve(second, status=RecipientStatus.SKIPPED)
        await storage.write(lambda tx: tx.recipients.put(THIS_WORKSPACE, ended))
        run = make_occurrence(schedule_id=schedule.id, run_id=campaign.id)
        await given_rows(storage, run)
        asked = [first.phone, second.phone]
        for known, expected in ((schedule.id, {asked[0]} if wanted else set()), (other.id, set())):
            found = await storage.read(
                lambda tx, known=known: tx.occurrences.contacted(THIS_WORKSPACE, known, asked, since=NOW)  # type: ignore[misc]
            )
            assert found == expected

    async def test_schedules_that_the_engine_has_paused_are_listed(self, storage: Storage) -> None:
        """Of one workspace or of all; not those that a person has paused, or that were removed."""
        paused = await given_schedule(storage, state="paused", reason="cost")
        theirs = await given_schedule(storage, state="paused", reason="cost", workspace_id=OTHER_WORKSPACE)
        await given_schedule(storage, state="paused", reason="operator")
        await given_schedule(storage, state="paused", reason="cost", removed_at=NOW)
        await given_schedule(storage)
        assert list(await storage.read(lambda tx: tx.schedules.paused(THIS_WORKSPACE, limit=9))) == [paused]
        assert {one.id for one in await storage.read(lambda tx: tx.schedules.paused(None, limit=9))} == {
            paused.id,
            theirs.id,
        }
        assert len(await storage.read(lambda tx: tx.schedules.paused(None, limit=1))) == 1

    async def test_schedules_whose_latest_run_was_not_started_are_listed(self, storage: Storage) -> None:
        """Of one workspace or of all; not those that are paused, or were removed."""
        blocked = await given_schedule(storage, blocked=1)
        ended = await given_schedule(storage, blocked=1, state="ended", workspace_id=OTHER_WORKSPACE)
        await given_schedule(storage, blocked=2, state="paused", reason="cost")
        await given_schedule(storage, blocked=1, removed_at=NOW)
        await given_schedule(storage)
        assert list(await storage.read(lambda tx: tx.schedules.blocked(THIS_WORKSPACE, limit=9))) == [blocked]
        found = await storage.read(lambda tx: tx.schedules.blocked(None, limit=9))
        assert {one.id for one in found} == {blocked.id, ended.id}
        assert len(await storage.read(lambda tx: tx.schedules.blocked(None, limit=1))) == 1
