"""Recurring campaigns: schedules, whose next dates are shown before they are saved, with what became of their runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import time
from typing import Any, Final

import attrs

from outreach import NotFound
from outreach.models import (
    NewSchedule,
    NewScheduleApproval,
    Occurrence,
    PlannedRun,
    Schedule,
    ScheduleUpdate,
)
from outreach.reasons import SCHEDULE_REASONS
from outreach.server_support import JoinedReads, limits_starts
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.clocks import Clocks
from outreach_server.console.context import Visit
from outreach_server.console.pages.named import schedules_named
from outreach_server.console.pages.set_up.inputs import Input, inputs_of
from outreach_server.console.pages.set_up.nouns import (
    PAGE_SIZE,
    Cell,
    LinkView,
    Listed,
    On,
    Result,
    Sent,
    SetUpAction,
    Table,
    TableRow,
    at,
)
from outreach_server.console.pages.set_up.resources import ResourceNoun
from outreach_server.console.pages.set_up.schedule_forms import LIKE, fields_of_schedule, schedule_values
from outreach_server.console.people import names_of
from outreach_server.console.recurrence_words import rule_words

_RUNS_SHOWN: Final = 20
_DAYS_SHOWN: Final = 5
_DAYS_READ: Final = 20
_NO_DAY: Final = "There is no such day within ten years."
_RUNS: Final = {
    "made": "Made, and being checked",
    "started": "Started",
    "blocked": "Not started",
    "skipped": "Left out",
    "missed": "Missed",
}


class SchedulesNoun(ResourceNoun):
    """Schedules."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.title = "Recurring"
        self.columns = ("Name", "State", "Next run", "Repeats")
        self.empty = "A campaign that recurs has its plan here. There is none yet, or none of this name."
        create, update, remove = *self.on_list, *self.on_one
        self.on_list = (attrs.evolve(create, right=Right.START, preview=_preview),)
        self.on_one = (
            *_buttons(),
            attrs.evolve(update, right=Right.START, preview=_preview),
            SetUpAction(
                name="approve",
                label="Approve these runs",
                title="Approve its runs",
                right=Right.START,
                command="schedules approve",
                fields=_approval_fields,
                do=_approve,
                changes=True,
                done="Runs within these limits need no other approval.",
                effect="Nobody who changed the schedule, its campaign or its contacts last can do it.",
                possible=_needs_approval,
            ),
            attrs.evolve(
                remove, right=Right.START, effect="No further run is made. The campaigns of earlier runs stay."
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the schedules, or those whose names have what is searched."""
        wanted = _searched(visit)
        if not wanted:
            return await super().list(visit, after)
        return Listed(items=(await schedules_named(visit, wanted))[:PAGE_SIZE])

    async def filters(self, visit: Visit) -> Sequence[Input]:
        """Return the field for a name."""
        return [Input(name="q", label="Name", longest=80, value=_searched(visit))]

    def is_begun(self, visit: Visit) -> bool:
        """Return whether the address chooses the campaign of a new schedule."""
        return LIKE in visit.request.query_params

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return the state, the next run and the rule of each."""
        return [
            (_state(one), at(visit, _next(one)), rule_words(one.rule, one.starts_on, visit.look.dates)) for one in items
        ]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return its state and rule, its campaigns, and the coming runs."""
        place = visit.place.id
        # At once, so that they are read in one snapshot with the rest of the page.
        coming, template, source, approved = await asyncio.gather(
            visit.engine.schedules.next_runs(place, one.id),
            _campaign(visit, one.template_id),
            _campaign(visit, one.source_id),
            _approved_by(visit, one),
        )
        dates = [_run_words(visit, run, one) for run in coming] if one.state != "ended" else []
        return [
            ("Identifier", one.id),
            ("State", _state(one)),
            ("Repeats", _repeats(visit, one)),
            ("Like the campaign", template),
            ("To the contacts of", source),
            ("Approved", approved),
            ("Asked for", "A run as soon as possible" if one.run_now_at is not None else ""),
            ("Next dates" if one.state == "active" else "Next dates, if it is resumed", dates),
        ]

    async def table(self, visit: Visit, one: Any, after: str | None) -> Table | None:
        """Return what became of its runs, the latest first."""
        page = await visit.engine.schedules.list_occurrences(visit.place.id, one.id, after=after, limit=_RUNS_SHOWN)
        return Table(
            title="Runs",
            note="Each is a campaign, which is made 15 minutes before its time and checked.",
            columns=("Planned for", "Result", "Campaign", "Contacts in its list", "Cost", "Why"),
            rows=[TableRow(cells=_run_cells(visit, one, run)) for run in page.items],
            next=page.next,
            nothing="No run was due yet.",
        )

    async def _new_fields(self, on: On) -> Sequence[Input]:
        return await fields_of_schedule(on, NewSchedule)

    async def _change_fields(self, on: On) -> Sequence[Input]:
        return await fields_of_schedule(on, ScheduleUpdate)

    async def _create(self, sent: Sent) -> Result:
        return await super()._create(attrs.evolve(sent, values=schedule_values(sent.values)))

    async def _update(self, sent: Sent) -> Result:
        return await super()._update(attrs.evolve(sent, values=schedule_values(sent.values, sent.one)))


def _buttons() -> Sequence[SetUpAction]:
    def button(name: str, method: str, **more: Any) -> SetUpAction:
        async def do(sent: Sent) -> Result:
            change: Callable[..., Awaitable[Schedule]] = getattr(sent.engine.schedules, method)
            await change(sent.place, sent.one.id, idempotency_key=sent.key, actor=sent.actor)
            return Result()

        return SetUpAction(name=name, command=f"schedules {name}", do=do, **more)

    return (
        button(
            "pause",
            "pause",
            label="Pause",
            right=Right.PAUSE,
            operation="pauseSchedule",
            done="It is paused: no run is made until it is resumed.",
            possible=lambda on: on.one.state == "active",
        ),
        button(
            "resume",
            "resume",
            label="Resume",
            right=Right.START,
            operation="resumeSchedule",
            done="It goes on with the first run after now.",
            primary=True,
            possible=lambda on: on.one.state == "paused",
        ),
        button(
            "skip-next",
            "skip_next",
            label="Leave the next run out",
            right=Right.START,
            operation="skipNextRun",
            done="The next run is left out.",
            changes=True,
            changed=_changed,
            possible=lambda on: _next(on.one) is not None,
        ),
        button(
            "run-now",
            "run_now",
            label="Run now",
            right=Right.START,
            operation="runSchedule",
            done="A run is made as soon as a server sends, with all checks.",
            changes=True,
            changed=_changed,
            possible=lambda on: on.one.state == "active" and on.one.run_now_at is None,
        ),
    )


async def _changed(on: On) -> str:
    """Return what is said of a button on an earlier page: that a run may have been made meanwhile."""
    runs = (await on.engine.schedules.list_occurrences(on.place, on.one.id, limit=_RUNS_SHOWN)).items
    # Identifiers sort in the order of their creation.
    latest = max((run for run in runs if run.run_id is not None), key=lambda run: str(run.run_id), default=None)
    visit = on.visit
    made = (
        ""
        if latest is None
        else f" The latest run was made for {visit.clocks(on.one.zone).moment(latest.at, visit.now)}."
    )
    return (
        f"It has changed since this page was opened, so nothing was done.{made} Press the button again if you still "
        "want this."
    )


async def _preview(sent: Sent) -> Sequence[str]:
    """Return the next runs of a schedule as it would be, with the holidays among them."""
    new = NewSchedule(**schedule_values(sent.values, sent.one))
    without = attrs.evolve(new, holidays="ignore" if new.holidays == "skip" else "skip")
    service = sent.engine.schedules
    async with JoinedReads() as reads:
        chosen = reads.start(service.preview(sent.place, new, count=_DAYS_SHOWN))
        others = reads.start(service.preview(sent.place, without, count=_DAYS_READ))
    runs, known = chosen.result(), {run.day for run in others.result()}
    days = {run.day: _run_words(sent.visit, run, new) for run in runs}
    if new.holidays == "ignore":
        for run in runs:
            if run.day not in known:
                days[run.day] += ", a holiday"
    elif new.holidays == "skip":
        last = runs[-1].day if len(runs) == _DAYS_SHOWN else max(known, default=None)
        for day in known - days.keys():
            if last is not None and day <= last:
                days[day] = f"{sent.visit.look.dates.weekday(day)}: left out, a holiday"
    return [days[day] for day in sorted(days)] or [_NO_DAY]


def _repeats(visit: Visit, one: Schedule) -> str:
    dates = visit.look.dates
    at = dates.clock(time.fromisoformat(one.at))
    return f"{rule_words(one.rule, one.starts_on, dates)}, at {at} ({Clocks(one.zone).name})"


def _run_words(visit: Visit, run: PlannedRun, plan: Schedule | NewSchedule) -> str:
    clocks = Clocks(plan.zone, visit.look.dates)
    at, planned = (clocks.dates.clock(one) for one in (clocks.local(run.at), time.fromisoformat(plan.at)))
    text = f"{clocks.dates.weekday(run.day)}, {at} ({clocks.name})"
    if at != planned:
        text += f", as the clocks leave {planned} out"
    if run.moved_from is not None:
        text += f", instead of {clocks.dates.weekday(run.moved_from)}, a holiday"
    return text


def _run_cells(visit: Visit, one: Schedule, run: Occurrence) -> Sequence[Cell]:
    clocks = Clocks(one.zone, visit.look.dates)
    campaign: Cell = ""
    if run.run_id is not None and run.reason != "deleted":
        campaign = LinkView(
            text=clocks.dates.moment(clocks.local(run.at)), url=visit.url("campaign", campaign=run.run_id)
        )
    return (
        at(visit, run.at),
        _RUNS[run.state],
        campaign,
        "" if run.contacts is None else words.number(run.contacts),
        "" if run.amount is None else f"{run.amount:,.2f}",
        run.detail or (words.sentence_of(run.reason) if run.reason is not None else ""),
    )


def _searched(visit: Visit) -> str:
    return visit.request.query_params.get("q", "").strip()[:80]


def _state(one: Schedule) -> str:
    word = words.sentence_of(one.state)
    return word if one.reason is None else f"{word}: {SCHEDULE_REASONS.get(one.reason, one.reason)}"


def _next(one: Schedule) -> Any:
    return one.next_at if one.state == "active" else None


async def _campaign(visit: Visit, identifier: str) -> Cell:
    try:
        found = await visit.engine.campaigns.get(visit.place.id, identifier)
    except NotFound:
        return "A campaign that was deleted"
    return LinkView(text=found.name, url=visit.url("campaign", campaign=identifier))


def _needs_approval(on: On) -> bool:
    return limits_starts(on.visit.place)


async def _approved_by(visit: Visit, one: Schedule) -> str:
    """Return who has approved its runs, and within which limits; empty for nobody."""
    known = one.approval
    if known is None:
        return ""
    names, revision = await asyncio.gather(names_of(visit.engine, [known.approved_by]), _template_revision(visit, one))
    limits = f"{words.plural(known.most_contacts, 'contact')} a run"
    if known.most_amount is not None:
        limits += f" and a cost of {known.most_amount:,}"
    counts = (known.revision, known.template_revision) == (one.revision, revision)
    ended = "" if counts else "; it or its campaign has changed since, so this no longer counts"
    return f"By {names[known.approved_by]}, for up to {limits}{ended}"


async def _template_revision(visit: Visit, one: Schedule) -> int | None:
    try:
        return (await visit.engine.campaigns.get(visit.place.id, one.template_id)).revision
    except NotFound:
        return None


async def _approval_fields(_: On) -> Sequence[Input]:
    return [one for one in inputs_of(NewScheduleApproval) if one.name != "revision"]


async def _approve(sent: Sent) -> Result:
    new = NewScheduleApproval(revision=sent.one.revision, **sent.values)
    await sent.engine.schedules.approve(sent.place, sent.one.id, new, actor=sent.actor)
    return Result()
