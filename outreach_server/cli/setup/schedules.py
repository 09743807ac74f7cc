"""`schedules`: recurring campaigns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import click

from outreach import Outreach
from outreach.http import SCHEDULE_BODIES, document_of, write_occurrence
from outreach.models import NewSchedule, NewScheduleApproval, Schedule
from outreach_server.cli.asking import confirm
from outreach_server.cli.base import Command, Group, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.model_options import ClearOption, given_fields
from outreach_server.cli.output import note, show_list
from outreach_server.cli.resources import ResourceCommands, name_argument, workspace_argument
from outreach_server.cli.values import CAMPAIGN, DATE, NAME, ZONE, OneOf, integer_of

_SCHEDULES: Final = ResourceCommands("schedules", SCHEDULE_BODIES.write)

_CREATE: Final = """\
Create a schedule called NAME, by which a campaign recurs.

Each run is a campaign like TEMPLATE. It is made 15 minutes before its time, and started unless its preflight finds an
obstacle. The next five runs are shown first.

\b
--rule "FREQ=DAILY"                  each day
--rule "FREQ=WEEKLY;BYDAY=MO,TH"     each Monday and Thursday
--rule "FREQ=MONTHLY;BYDAY=1MO"      the first Monday of each month
--rule "FREQ=MONTHLY;BYMONTHDAY=-1"  the last day of each month
"""


def _options(*, required: bool) -> Sequence[click.Option]:
    """Return the options of the fields."""
    new = NewSchedule
    return (
        click.Option(["--template", "template_id"], type=CAMPAIGN, required=required, help="The campaign to repeat."),
        click.Option(["--audience", "audience_id"], type=CAMPAIGN, help="The campaign whose contacts each run gets."),
        click.Option(["--rule"], required=required, help="How it repeats, as an RRULE; daily at most."),
        click.Option(["--timezone", "zone"], type=ZONE, required=required, help="The zone of its days and its time."),
        click.Option(["--starts-on"], type=DATE, required=required, help="The first day that counts."),
        click.Option(["--at"], metavar="HH:MM", required=required, help="The time of the day."),
        click.Option(["--ends-on"], type=DATE, help="The last day."),
        click.Option(["--except", "except_dates"], type=DATE, multiple=True, help="A day without a run; repeatable."),
        click.Option(
            ["--holidays"],
            type=OneOf(["skip", "next_day", "ignore"]),
            help="What becomes of runs on the holidays of the template; skip by default.",
        ),
        click.Option(
            ["--overlap"],
            type=OneOf(["skip", "allow"]),
            help="What becomes of a run while the one before has not ended; skip by default.",
        ),
        click.Option(["--late-hours"], type=integer_of(new, "late_hours"), help="How late a missed run is made."),
        click.Option(
            ["--not-again-within-days"],
            type=integer_of(new, "not_again_within_days"),
            help="Leave out contacts who got a request of a run less than so many days ago.",
        ),
        click.Option(
            ["--max-cost"], type=integer_of(new, "max_cost"), help="Start no run that costs more, in whole units."
        ),
    )


def _cleared() -> Sequence[click.Option]:
    return (
        ClearOption("audience_id", "Take the contacts of the template.", word="audience"),
        ClearOption("ends_on", "Have no last day."),
        ClearOption("except_dates", "Have no day without a run.", word="except", value=()),
        ClearOption("late_hours", "Leave missed runs out."),
        ClearOption("not_again_within_days", "Leave nobody out."),
        ClearOption("max_cost", "Have no limit of the cost."),
    )


def _create(workspace_id: str, yes: bool, **values: Any) -> None:
    new = NewSchedule(**given_fields(values))

    async def preview(engine: Outreach) -> Sequence[str]:
        runs = await engine.schedules.preview(workspace_id, new)
        return [_run_in_words(one.at, new.zone, moved=one.moved_from is not None) for one in runs]

    for line in with_engine(preview):
        note(line)
    if sys.stdin.isatty() and not state().as_json:
        confirm("Create this schedule?", yes, warning="It starts campaigns by itself.")
    _SCHEDULES.show(lambda engine: engine.schedules.create(workspace_id, new, actor=actor()))


def _run_in_words(at: datetime, zone: str, *, moved: bool) -> str:
    local = at.astimezone(ZoneInfo(zone))
    return f"Run: {local:%A, %Y-%m-%d %H:%M} {zone}{', moved from a holiday' if moved else ''}."


def _show(workspace_id: str, schedule_id: str) -> None:
    _SCHEDULES.show(lambda engine: engine.schedules.get(workspace_id, schedule_id))


def _occurrences(workspace_id: str, schedule_id: str) -> None:
    found = with_engine(lambda engine: collect(engine.schedules.iter_occurrences(workspace_id, schedule_id)))
    show_list(
        [write_occurrence(one) for one in found],
        ("at", "state", "reason", "detail", "contacts", "run_id"),
        empty="The schedule has had no run.",
    )


def _next_runs(workspace_id: str, schedule_id: str) -> None:
    found = with_engine(lambda engine: engine.schedules.next_runs(workspace_id, schedule_id))
    show_list([document_of(one) for one in found], ("at", "day", "moved_from"), empty="It has no further run.")


def _approve(workspace_id: str, schedule_id: str, most_contacts: int, most_amount: int | None) -> None:
    async def work(engine: Outreach) -> Schedule:
        found = await engine.schedules.get(workspace_id, schedule_id)
        limits = NewScheduleApproval(revision=found.revision, most_contacts=most_contacts, most_amount=most_amount)
        return await engine.schedules.approve(workspace_id, schedule_id, limits, actor=actor())

    _SCHEDULES.show(work)


schedules = Group(
    "schedules",
    commands=[
        Command(
            "create",
            help=_CREATE,
            callback=_create,
            params=[
                workspace_argument(),
                name_argument(),
                *_options(required=True),
                click.Option(["--yes"], is_flag=True, help="Do not ask, in a terminal, after the next runs are shown."),
            ],
        ),
        _SCHEDULES.list(
            *("id", "name", "rule", "state", "reason", "next_at"),
            empty="The workspace has no schedules. Create one: outreach-server schedules create WORKSPACE_ID NAME …",
        ),
        _SCHEDULES.command("show", "Show a schedule.", _show),
        _SCHEDULES.update(
            "Change a schedule; the approval of a second person ends with it.",
            click.Option(["--name"], type=NAME, help="A new name."),
            *_options(required=False),
            *_cleared(),
        ),
        _SCHEDULES.command("next", "Show the next five runs of a schedule.", _next_runs),
        _SCHEDULES.command("occurrences", "List what became of the runs of a schedule.", _occurrences),
        _SCHEDULES.move("pause", "Pause a schedule: no run is made."),
        _SCHEDULES.move("resume", "Let a paused schedule go on with the first run after now."),
        _SCHEDULES.move("run-now", "Have a run made beside those of the rule."),
        _SCHEDULES.move("skip-next", "Leave the next run out."),
        _SCHEDULES.command(
            "approve",
            "Approve the runs of a schedule within limits, for what people at the console have set up.",
            _approve,
            click.Option(
                ["--most-contacts"],
                type=integer_of(NewScheduleApproval, "most_contacts"),
                required=True,
                help="The most contacts of a run.",
            ),
            click.Option(
                ["--most-amount"],
                type=integer_of(NewScheduleApproval, "most_amount"),
                help="The most that a run may cost, in whole units.",
            ),
        ),
        _SCHEDULES.remove("Remove a schedule; the campaigns of its runs stay."),
    ],
)
