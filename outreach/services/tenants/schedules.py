"""Schedules, by which campaigns recur."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from outreach.errors import Conflict, InvalidRequest, Problem
from outreach.ledger.campaigns.transitions import withdraw_run
from outreach.ledger.common import campaign_of, workspace_of
from outreach.ledger.schedules import (
    REPLANNED,
    before_run,
    closed_days,
    holidays_of,
    put,
    record_decided,
    record_left_out,
    replan,
    reschedule,
    run_ahead,
    runs_to_come,
    unit_of,
)
from outreach.models.base import Page
from outreach.models.fields import Integer, check_value
from outreach.models.schedule import (
    NewSchedule,
    NewScheduleApproval,
    Occurrence,
    PlannedRun,
    Schedule,
    ScheduleApproval,
    ScheduleUpdate,
    plan_problems,
)
from outreach.models.work import IdempotencyKey
from outreach.models.workspace import Workspace
from outreach.rules.recurrence import HORIZON_YEARS, runs_after
from outreach.services.context import check_kind
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.services.resource import EVERY_OPERATION, Resource
from outreach.storage.unit_of_work import Transaction

MAX_SHOWN: Final = 50
"""The most coming runs that are returned."""

_REMOVED: Final = Problem(code="removed", message="The schedule was removed before the campaign was started.")

_NEVER: Final = f"has no day within {HORIZON_YEARS} years from the first one, or from now"


class Schedules(Resource[Schedule, NewSchedule, ScheduleUpdate]):
    """The schedules of workspaces.

    Each run is a campaign like one that exists, its template, with the contacts that this one or another campaign has
    then. It is made 15 minutes before its time, and started unless its preflight finds an obstacle.
    """

    remove_advice = ""
    managed = EVERY_OPERATION

    async def preview(self, workspace_id: str, new: NewSchedule, *, count: int = 5) -> Sequence[PlannedRun]:
        """Return the first runs that a schedule would have, without creating it.

        Args:
            workspace_id: The workspace.
            new: The schedule.
            count: How many, 1 to 50.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A value is invalid, or a campaign does not exist.
        """
        check_kind("new", new, NewSchedule)
        check_value("count", count, Integer(1, MAX_SHOWN))
        now = self._context.now()

        def operation(tx: Transaction) -> Collection[date]:
            self._require_campaigns(tx, workspace_of(tx, workspace_id).id, attrs.asdict(new, recurse=False))
            return holidays_of(tx.campaigns.get(workspace_id, new.template_id), now)

        closed = await self._context.storage.read(operation)
        return list(islice(runs_after(new, now, closed), count))

    async def next_runs(self, workspace_id: str, schedule_id: str, *, count: int = 5) -> Sequence[PlannedRun]:
        """Return the coming runs of a schedule, as if it were not paused.

        Args:
            workspace_id: The workspace.
            schedule_id: The schedule.
            count: How many, 1 to 50.

        Raises:
            NotFound: The workspace has no such schedule.
            InvalidRequest: The count is invalid.
        """
        check_value("count", count, Integer(1, MAX_SHOWN))
        now = self._context.now()

        def operation(tx: Transaction) -> Sequence[PlannedRun]:
            schedule = tx.schedules.existing(workspace_id, schedule_id)
            return list(islice(runs_to_come(tx, schedule, now, now), count))

        return await self._context.storage.read(operation)

    async def pause(
        self,
        workspace_id: str,
        schedule_id: str,
        *,
        idempotency_key: IdempotencyKey[Schedule] = None,
        actor: str = "library",
    ) -> Schedule:
        """Pause a schedule: until it is resumed no run is made; a campaign that was made is not stopped.

        Args:
            workspace_id: The workspace.
            schedule_id: The schedule.
            idempotency_key: A name for this request: for a day, the same key only returns the schedule.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such schedule.
            Conflict: It has ended.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """

        def change(_: Transaction, schedule: Schedule, __: datetime) -> Schedule:
            if schedule.state == "ended":
                raise Conflict("The schedule has ended: there is nothing to pause.")
            return attrs.evolve(schedule, state="paused", reason="operator", run_now_at=None)

        return await self._change("pause", workspace_id, schedule_id, change, actor, idempotency_key)

    async def resume(
        self,
        workspace_id: str,
        schedule_id: str,
        *,
        idempotency_key: IdempotencyKey[Schedule] = None,
        actor: str = "library",
    ) -> Schedule:
        """Let a paused schedule go on with the first run after now; see `pause` for the arguments and other errors.

        Runs in between are not made up for.

        Raises:
            Conflict: It has ended.
        """

        def change(tx: Transaction, schedule: Schedule, now: datetime) -> Schedule:
            if schedule.state == "ended":
                raise Conflict("The schedule has ended: change its rule or its last day instead.")
            if schedule.state == "active":
                return schedule
            active = attrs.evolve(schedule, state="active", reason=None, blocked=0, known_contacts=None)
            return replan(tx, active, now)

        return await self._change("resume", workspace_id, schedule_id, change, actor, idempotency_key)

    async def run_now(
        self,
        workspace_id: str,
        schedule_id: str,
        *,
        idempotency_key: IdempotencyKey[Schedule] = None,
        actor: str = "library",
    ) -> Schedule:
        """Have a run made as soon as a process dispatches, with all checks; see `pause` for arguments and other errors.

        Raises:
            Conflict: It is paused or has ended, or a run that was asked for is not made yet.
        """

        def change(tx: Transaction, schedule: Schedule, now: datetime) -> Schedule:
            if schedule.state != "active":
                raise Conflict(f"The schedule is {schedule.state}: only one that is active has runs.")
            if schedule.run_now_at is not None:
                raise Conflict("Such a run was asked for, and is not made yet.")
            if tx.occurrences.get(workspace_id, schedule_id, now) is not None or schedule.next_at == now:
                raise Conflict("The schedule has a run at this very moment.")
            return attrs.evolve(schedule, run_now_at=now)

        return await self._change("run_now", workspace_id, schedule_id, change, actor, idempotency_key)

    async def skip_next(
        self,
        workspace_id: str,
        schedule_id: str,
        *,
        idempotency_key: IdempotencyKey[Schedule] = None,
        actor: str = "library",
    ) -> Schedule:
        """Leave the next run of the rule out; see `pause` for the arguments and other errors.

        If its campaign is made and has not begun, it is cancelled.

        Raises:
            Conflict: It has no next run: it is paused or has ended.
        """

        def change(tx: Transaction, schedule: Schedule, now: datetime) -> Schedule:
            why = Problem(code="operator", message="A person has left it out.")
            ahead = run_ahead(tx, schedule, now)
            if ahead is not None:
                withdraw_run(tx, *ahead, state="skipped", why=why, now=now, actor=actor)
                return tx.schedules.existing(workspace_id, schedule_id)
            if schedule.state != "active" or schedule.next_at is None:
                raise Conflict(f"The schedule is {schedule.state}: it has no next run.")
            record_left_out(tx, schedule, schedule.next_at, state="skipped", why=why, now=now)
            return tx.schedules.existing(workspace_id, schedule_id)

        return await self._change("skip_next", workspace_id, schedule_id, change, actor, idempotency_key)

    async def approve(
        self, workspace_id: str, schedule_id: str, new: NewScheduleApproval, *, actor: str = "library"
    ) -> Schedule:
        """Approve the runs of a schedule, as far as they stay within limits (docs/users.md#approval-of-starts).

        Raises:
            NotFound: The workspace has no such schedule, or one of its campaigns is gone.
            Conflict: The schedule has changed meanwhile, or this actor has changed it or one of its campaigns last.
        """
        check_kind("new", new, NewScheduleApproval)

        def change(tx: Transaction, schedule: Schedule, now: datetime) -> Schedule:
            template = campaign_of(tx, workspace_id, schedule.template_id)
            source = campaign_of(tx, workspace_id, schedule.source_id)
            if schedule.revision != new.revision:
                raise Conflict("The schedule has changed meanwhile, so nothing was approved. Look at it again.")
            if actor in {schedule.changed_by, template.changed_by, source.changed_by}:
                raise Conflict(
                    "The person who changed a schedule, its campaign or its contacts last cannot approve it: another "
                    "person has to."
                )
            made = ScheduleApproval(
                revision=schedule.revision,
                template_revision=template.revision,
                most_contacts=new.most_contacts,
                most_amount=new.most_amount,
                approved_by=actor,
                approved_at=now,
            )
            return attrs.evolve(schedule, approval=made)

        return await self._change("approve", workspace_id, schedule_id, change, actor)

    async def list_occurrences(
        self, workspace_id: str, schedule_id: str, *, after: str | None = None, limit: int = 100
    ) -> Page[Occurrence]:
        """Return a page of what became of a schedule's runs, the latest first.

        Raises:
            NotFound: The workspace has no such schedule.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("occurrences", workspace_id, schedule_id, after=after, limit=limit)
        begin = page_request.moment()

        def operation(tx: Transaction) -> Sequence[Occurrence]:
            schedule = tx.schedules.existing(workspace_id, schedule_id)
            before = None if begin is None else begin[0]
            return tx.occurrences.page(workspace_id, schedule.id, before=before, limit=limit + 1)

        found = await self._context.storage.read(operation)
        return page_request.page(found, lambda one: moment_cursor(one.at, ""))

    def iter_occurrences(self, workspace_id: str, schedule_id: str) -> AsyncIterator[Occurrence]:
        """Iterate over what became of a schedule's runs, the latest first; see `list_occurrences`."""
        return iterate(partial(self.list_occurrences, workspace_id, schedule_id))

    async def _change(
        self,
        action: str,
        workspace_id: str,
        schedule_id: str,
        change: Callable[[Transaction, Schedule, datetime], Schedule],
        actor: str,
        idempotency_key: IdempotencyKey[Schedule] = None,
    ) -> Schedule:
        now = self._context.now()

        def operation(tx: Transaction) -> Schedule:
            after = attrs.evolve(change(tx, tx.schedules.existing(workspace_id, schedule_id), now), updated_at=now)
            put(tx, after, now)
            self._record(tx, action, after, now, actor)
            return after

        changed = await self._keys.written(
            workspace_id,
            f"schedules.{action}",
            idempotency_key,
            operation,
            content=schedule_id,
            find=lambda tx, identifier: tx.schedules.existing(workspace_id, identifier),
        )
        self._context.wake(unit_of(changed))
        return changed

    # How the set-up differs from that of other resources.

    def _used_by(self, tx: Transaction, one: Schedule) -> Sequence[str]:
        return ()

    def _stored(self, tx: Transaction, workspace: Workspace, values: dict[str, Any]) -> dict[str, Any]:
        self._require_campaigns(tx, workspace.id, values)
        if "except_dates" in values:
            return {**values, "except_dates": tuple(values["except_dates"])}
        return values

    def _require_campaigns(self, tx: Transaction, workspace_id: str, values: dict[str, Any]) -> None:
        """Raise `InvalidRequest` where a campaign does not exist, or its contacts were erased."""
        for name in ("template_id", "audience_id"):
            identifier = values.get(name)
            if identifier is None:
                continue
            campaign = tx.campaigns.get(workspace_id, identifier)
            if campaign is None:
                raise InvalidRequest.at(name, "the workspace has no such campaign")
            if campaign.erased_at is not None:
                raise InvalidRequest.at(name, "its contacts and texts were erased; name another campaign")

    def _begun(self, values: dict[str, Any], now: datetime) -> dict[str, Any]:
        nothing = dict.fromkeys(("reason", "next_at", "run_now_at", "last_at", "known_contacts", "approval"), None)
        return {
            **values,
            **nothing,
            "state": "active",
            "blocked": 0,
            "revision": 1,
            "changed_by": "",
            "updated_at": now,
        }

    def _completed(self, tx: Transaction, made: Schedule, now: datetime, actor: str) -> Schedule:
        return self._planned(tx, attrs.evolve(made, changed_by=actor), now)

    def _insert(self, tx: Transaction, made: Schedule) -> None:
        super()._insert(tx, made)
        reschedule(tx, made, made.created_at)

    def _replace(self, tx: Transaction, before: Schedule, after: Schedule, now: datetime, actor: str) -> Schedule:
        problems = plan_problems(after)
        if problems:
            raise InvalidRequest(details=problems)
        changed = attrs.evolve(
            after, revision=before.revision + 1, changed_by=actor, known_contacts=None, updated_at=now
        )
        planned = self._planned(tx, self._without_made(tx, changed, now, actor), now)
        put(tx, planned, now)
        return planned

    def _remove(self, tx: Transaction, one: Schedule, now: datetime, actor: str) -> Schedule:
        made = tx.occurrences.made(one.workspace_id, one.id)
        if made is not None:
            record_decided(tx, made, state="blocked", why=_REMOVED, now=now)
            one = self._table(tx).existing(one.workspace_id, one.id)
        elif (ahead := run_ahead(tx, one, now)) is not None:
            withdraw_run(tx, *ahead, state="skipped", why=_REMOVED, now=now, actor=actor)
            one = self._table(tx).existing(one.workspace_id, one.id)
        gone = super()._remove(tx, one, now, actor)
        reschedule(tx, gone, now)
        return gone

    def _without_made(self, tx: Transaction, changed: Schedule, now: datetime, actor: str) -> Schedule:
        """Cancel the run that has not begun if it is not in the plan any more; return the schedule to plan anew."""
        ahead = run_ahead(tx, changed, now)
        if ahead is None:
            return changed
        run, _ = ahead
        same = next(runs_after(changed, run.at - timedelta(microseconds=1), closed_days(tx, changed, now)), None)
        if same is not None and same.at == run.at:
            return changed
        withdraw_run(tx, *ahead, state="skipped", why=REPLANNED, now=now, actor=actor)
        return before_run(tx, changed, run)

    def _planned(self, tx: Transaction, schedule: Schedule, now: datetime) -> Schedule:
        found = replan(tx, schedule, now)
        if found.next_at is None and found.state != "paused":
            raise InvalidRequest.at("rule", _NEVER)
        return found
