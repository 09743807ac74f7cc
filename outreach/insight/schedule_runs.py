"""Making the runs of schedules: each is a campaign, made once and started unless its preflight finds an obstacle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal
from zoneinfo import ZoneInfo

from outreach.errors import (
    CannotStart,
    Conflict,
    IllegalTransition,
    InvalidRequest,
    NotFound,
    Problem,
    SmsCampaignsDisabled,
    StorageError,
    WorkspaceUnavailable,
)
from outreach.ledger.campaigns.trail import ENGINE
from outreach.ledger.campaigns.transitions import withdraw_run
from outreach.ledger.common import campaign_of, workspace_of
from outreach.ledger.leases.clock_steps import is_ahead, is_too_early
from outreach.ledger.schedules import (
    TOO_EARLY,
    RunTaken,
    is_missed,
    is_start_missed,
    record_decided,
    record_left_out,
    record_made,
    require_due,
    run_ahead,
)
from outreach.models.campaign import Campaign, CampaignCreated, Recipient
from outreach.models.preflight import Preflight
from outreach.models.schedule import Occurrence, OccurrenceState, Schedule
from outreach.models.states import UNSTARTED_STATUSES, CampaignStatus
from outreach.protocols.storage import Within
from outreach.rules.schedules import LEAD, MISSED, amount_of, due_time, not_again_since, obstacle, timing
from outreach.services.campaigns.copies import CampaignCopies
from outreach.services.context import ServiceContext
from outreach.services.idempotency import IdempotencyGuard
from outreach.storage.unit_of_work import Transaction

_LeftOut = Literal["blocked", "skipped", "missed"]
_Decided = Literal["started", "blocked"]

_MOST: Final = 20
"""Things that are done for a schedule in one slice."""

_HEARTBEATS: Final = timedelta(seconds=5)
"""After a time that no heartbeat confirms yet a schedule is looked at again."""

_REFUSALS: Final = (InvalidRequest, NotFound, Conflict, SmsCampaignsDisabled, WorkspaceUnavailable)
"""Errors of a creation or a start that no repetition would change."""


_PREVIOUS_RUN: Final = Problem(code="previous_run", message="The campaign of the run before has not ended.")
_NOBODY_NEW: Final = Problem(code="nobody_new", message="Everybody was reached by a run lately, or waits in one.")
_DELETED: Final = Problem(code="deleted", message="A person has deleted the campaign of this run.")


class ScheduleRuns:
    """Makes and starts the runs that are due.

    Args:
        context: What services share.
        copies: Makes campaigns that are like others.
        preflight: Returns the preflight of a campaign, by workspace and id.
        start: Starts a campaign.
    """

    def __init__(
        self,
        context: ServiceContext,
        *,
        copies: CampaignCopies,
        preflight: Callable[[str, str], Awaitable[Preflight]],
        start: Callable[..., Awaitable[Campaign]],
    ) -> None:
        self._context = context
        self._copies = copies
        self._preflight = preflight
        self._start = start

    async def run(self, workspace_id: str, schedule_id: str) -> datetime | None:
        """Do what is due for a schedule; return when more is to be done, None until it changes.

        It may be interrupted at any point, and run in several processes: a run is made and recorded in one transaction,
        under its schedule and its time.
        """
        for _ in range(_MOST):
            now = self._context.now()
            try:
                if await self._context.storage.read(partial(is_ahead, now=now)):
                    return now + _HEARTBEATS
                schedule, made, before = await self._context.storage.read(
                    partial(_read_run, workspace_id, schedule_id, now)
                )
                if schedule is None:
                    return None
                if not await self._advance(schedule, made, before, now):
                    return due_time(schedule)
            except RunTaken:
                # Another process, or a person, was faster.
                continue
            except StorageError:
                # The next process makes it: nothing of it is left.
                if not self._copies.is_closing:
                    raise
                return None
        return self._context.now()

    async def _advance(
        self, schedule: Schedule, made: Occurrence | None, before: Campaign | None, now: datetime
    ) -> bool:
        """Do the next thing for a schedule; return whether anything was to be done."""
        if made is not None:
            await self._decide(schedule, made, now)
            return True
        at = schedule.next_at if schedule.run_now_at is None else schedule.run_now_at
        if due_time(schedule) is None or at is None or timing(schedule, at, now) == "early":
            return False
        of_rule = at != schedule.run_now_at
        waits = before is not None and before.status is CampaignStatus.SCHEDULED
        if of_rule and await self._context.storage.read(lambda tx: is_missed(tx, schedule, at, now)):
            await self._leave_out(schedule, at, "missed", MISSED)
        elif waits and await self._withdraw_missed(schedule, now):
            # It holds this run up no more.
            return True
        elif schedule.overlap == "skip" and before is not None and not before.is_terminal:
            await self._leave_out(schedule, at, "skipped", _PREVIOUS_RUN)
        else:
            await self._make(schedule, at, now)
        return True

    async def _make(self, schedule: Schedule, at: datetime, now: datetime) -> None:
        chosen = _NotAgain(schedule, at)
        local = at.astimezone(ZoneInfo(schedule.zone))
        try:
            await self._copies.make_run(
                schedule.workspace_id,
                schedule.template_id,
                schedule.source_id,
                name=f"{schedule.name} {local:%Y-%m-%d %H:%M}",
                starts_at=at if at > now else None,
                chosen=chosen,
                actor=ENGINE,
                once=_RunGuard(schedule, at, chosen, self._context.now),
            )
        except RunTaken:
            raise
        except _REFUSALS as error:
            if chosen.left_out and chosen.left_out == chosen.read:
                await self._leave_out(schedule, at, "skipped", _NOBODY_NEW)
            else:
                await self._leave_out(schedule, at, "blocked", Problem(code="not_made", message=_words(error)))

    async def _leave_out(self, schedule: Schedule, at: datetime, state: _LeftOut, why: Problem) -> None:
        now = self._context.now()
        await self._context.storage.write(
            Within(
                [schedule.workspace_id],
                lambda tx: record_left_out(tx, schedule, at, state=state, why=why, now=now),
            )
        )

    async def _withdraw_missed(self, schedule: Schedule, now: datetime) -> bool:
        """Cancel the campaign of the run before if its start is missed; return whether it was."""

        def withdraw(tx: Transaction) -> bool:
            ahead = run_ahead(tx, schedule, now)
            if ahead is None or not is_start_missed(tx, ahead[0], now):
                return False
            withdraw_run(tx, *ahead, state="missed", why=MISSED, now=now, actor=ENGINE)
            return True

        return await self._context.storage.write(Within([schedule.workspace_id], withdraw))

    async def _decide(self, schedule: Schedule, made: Occurrence, now: datetime) -> None:
        """Start the campaign of a run, or record why it is not started."""
        workspace_id, run_id = schedule.workspace_id, made.run_id or ""
        try:
            run = await self._context.storage.read(lambda tx: campaign_of(tx, workspace_id, run_id))
        except NotFound:
            await self._record(made, "blocked", _DELETED)
            return
        if run.status not in UNSTARTED_STATUSES:
            # Started by a person, or before this process was killed.
            await self._record(made, "started")
            return
        # One that a person asked for is as late as it is: the last of the rule is another one.
        if made.at == schedule.last_at and await self._context.storage.read(lambda tx: is_start_missed(tx, made, now)):
            await self._withdraw(made, run, "missed", MISSED, now)
            return
        if is_too_early(made, now):
            await self._withdraw(made, run, "skipped", TOO_EARLY, now)
            return
        found = await self._preflight(workspace_id, run_id)
        why = await self._context.storage.read(partial(_obstacle_of, schedule, made, run, found))
        if why is None:
            why = await self._started(run)
        await self._record(made, "started" if why is None else "blocked", why, found)

    async def _withdraw(
        self, made: Occurrence, run: Campaign, state: OccurrenceState, why: Problem, now: datetime
    ) -> None:
        await self._context.storage.write(
            Within(
                [made.workspace_id],
                lambda tx: withdraw_run(tx, made, run, state=state, why=why, now=now, actor=ENGINE),
            )
        )

    async def _started(self, run: Campaign) -> Problem | None:
        """Start a campaign, unless it has changed since it was looked at; return why that was refused, if it was."""
        try:
            await self._start(run.workspace_id, run.id, revision=run.revision, actor=ENGINE)
        except IllegalTransition:
            # Somebody was faster.
            return None
        except CannotStart as error:
            return Problem(code="not_ready", message=_words(error))
        except _REFUSALS as error:
            return Problem(code="not_ready", message=_words(error))
        return None

    async def _record(
        self, made: Occurrence, state: _Decided, why: Problem | None = None, found: Preflight | None = None
    ) -> None:
        now, amount = self._context.now(), None if found is None else amount_of(found)
        await self._context.storage.write(
            Within(
                [made.workspace_id],
                lambda tx: record_decided(tx, made, state=state, why=why, amount=amount, now=now),
            )
        )


class _NotAgain:
    """Leaves out whom earlier runs of a schedule have reached lately, or are about to reach.

    Attributes:
        read: The contacts that were looked at.
        left_out: Those of them that were left out.
    """

    def __init__(self, schedule: Schedule, at: datetime) -> None:
        self._since = not_again_since(schedule, at)
        self._schedule = schedule
        self.read = self.left_out = 0

    def of(self, tx: Transaction, campaign: Campaign, rows: Sequence[Recipient]) -> Sequence[Recipient]:
        """Return those of some contacts that the run gets."""
        self.read += len(rows)
        if self._since is None:
            return rows
        phones = {row.phone for row in rows if row.phone is not None}
        reached = tx.occurrences.contacted(campaign.workspace_id, self._schedule.id, phones, since=self._since)
        chosen = [row for row in rows if row.phone not in reached]
        self.left_out += len(rows) - len(chosen)
        return chosen


class _RunGuard(IdempotencyGuard[CampaignCreated]):
    """Records a run in the transaction that makes its campaign."""

    def __init__(self, schedule: Schedule, at: datetime, chosen: _NotAgain, now: Callable[[], datetime]) -> None:
        self._schedule = schedule
        self._at = at
        self._chosen = chosen
        self._now = now

    def keep(self, tx: Transaction) -> None:
        require_due(tx, self._schedule, self._at)

    def finish(self, tx: Transaction, made: CampaignCreated, *, settled: bool = True) -> None:
        record_made(tx, self._schedule, self._at, run=made.campaign, contacts=self._chosen.read, now=self._now())


def _read_run(
    workspace_id: str, schedule_id: str, now: datetime, tx: Transaction
) -> tuple[Schedule | None, Occurrence | None, Campaign | None]:
    """Return a schedule, its run that was made and not decided about, and the campaign of its latest one.

    A campaign that waits for a person to start it does not count, nor one that waits since the clock was set back.
    """
    last = tx.occurrences.last_with_campaign(workspace_id, schedule_id, until=now + LEAD)
    campaign = None if last is None else tx.campaigns.get(workspace_id, last.run_id or "")
    if last is not None and last.state != "started" and campaign is not None and campaign.status in UNSTARTED_STATUSES:
        campaign = None
    return tx.schedules.get(workspace_id, schedule_id), tx.occurrences.made(workspace_id, schedule_id), campaign


def _obstacle_of(
    schedule: Schedule, made: Occurrence, run: Campaign, found: Preflight, tx: Transaction
) -> Problem | None:
    current = tx.schedules.get(schedule.workspace_id, schedule.id) or schedule
    template = tx.campaigns.get(schedule.workspace_id, schedule.template_id)
    source = tx.campaigns.get(schedule.workspace_id, schedule.source_id)
    if template is None or source is None:
        return Problem(code="not_ready", message="The campaign that its runs are like, or that of its list, is gone.")
    workspace = workspace_of(tx, schedule.workspace_id)
    return obstacle(current, template, source, run, workspace, found, made.contacts or 0)


def _words(error: Exception) -> str:
    details = getattr(error, "details", ())
    return " ".join([str(getattr(error, "message", error)), *(f"{one.path}: {one.message}" for one in details)])[:1000]
