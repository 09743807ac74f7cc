"""The overview of a workspace: what needs a person, what runs, what is next and what was last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import attrs
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from outreach import CampaignStatus, Workspace, WorkspaceMode
from outreach.errors import Problem
from outreach.models import InboundMessage, Page, RunningCampaign, Schedule
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.drawing.charts import Piece, progress
from outreach_server.console.drawing.curves import drawn_small
from outreach_server.console.pages.campaign_progress import small_curve_of
from outreach_server.console.pages.campaign_views import MomentView, moment_of, row_of, with_times
from outreach_server.console.pages.named import MOST_SEARCHED
from outreach_server.console.pages.set_up.system import waiting_in
from outreach_server.console.recurrence_words import rule_words
from outreach_server.console.running import Activity

MAX_SHOWN: Final = 8
RUNS_WITHIN: Final = timedelta(days=7)
"""The runs of schedules within so much time are shown."""

_MOST_WORKSPACES: Final = 100
_LOOKED_AT: Final = 50
_ENDED: Final = frozenset({CampaignStatus.COMPLETED, CampaignStatus.CANCELLED, CampaignStatus.EXPIRED})
_ICONS: Final = {"critical": "circle-alert", "warning": "triangle-alert", "info": "circle-help"}


@attrs.frozen(kw_only=True)
class NeedView:
    """Something that waits for a person.

    Attributes:
        commands: What fixes it, where the console has no button for it yet.
        url: The page where it is decided; empty if there is none.
    """

    icon: str
    tone: str
    text: str
    commands: Sequence[str]
    url: str


@attrs.frozen(kw_only=True)
class RunningView:
    """A campaign that sends.

    Attributes:
        curve: What it sent and what it will send, by time; empty where there is nothing to draw.
        late: For how long its next contact could have been begun; empty while that is no time.
        now: What it does or waits for, and why.
        done: When it will be done.
    """

    name: str
    url: str
    channel: str
    counts: str
    share: str
    bar: Markup
    curve: Markup
    late: str
    now: str
    done: str


@attrs.frozen(kw_only=True)
class RunView:
    """The next run of a schedule.

    Attributes:
        url: The schedule's page; empty for those who may not see it.
        repeats: Its rule in words.
    """

    name: str
    url: str
    at: MomentView
    repeats: str


@attrs.frozen(kw_only=True)
class StepView:
    """A step towards the first campaign."""

    text: str
    command: str
    done: bool


@attrs.frozen(kw_only=True)
class WorkspaceView:
    """A workspace to choose."""

    name: str
    url: str
    role: str
    mode: str
    running: str
    waiting: str


async def home(visit: Visit) -> Response:
    """Show the person's workspaces; one alone is opened at once."""
    user = visit.user
    if not user.operator and len(user.workspaces) == 1:
        [only] = user.workspaces
        return RedirectResponse(visit.first_url(only), 303)
    next_url = ""
    workspaces: Sequence[Workspace]
    if user.operator:
        page = await visit.engine.workspaces.list(
            after=visit.request.query_params.get("after") or None, limit=_MOST_WORKSPACES
        )
        workspaces = page.items
        next_url = visit.url("home", {"after": page.next}) if page.next else ""
    else:
        ids = sorted(user.workspaces)[:_MOST_WORKSPACES]
        async with JoinedReads() as reads:
            found = [reads.start(visit.engine.workspaces.get(one)) for one in ids]
        workspaces = [one.result() for one in found]
    # Others see what waits on the overview of each.
    status = await visit.engine.status() if user.operator else None
    running = Counter(one.workspace_id for one in status.running) if status is not None else Counter()
    waiting = waiting_in(status) if status is not None else Counter()
    shown = [
        WorkspaceView(
            name=one.name,
            url=visit.first_url(one.id),
            role=str(user.role_in(one.id)),
            mode="Sandbox" if one.mode is WorkspaceMode.SANDBOX else "Live",
            running=words.number(running[one.id]) if running[one.id] else "",
            waiting=words.number(waiting[one.id]) if waiting[one.id] else "",
        )
        for one in workspaces
    ]
    return visit.page("home", title="Workspaces", workspaces=shown, next_url=next_url, operator=user.operator)


@attrs.frozen(kw_only=True)
class OverviewView:
    """The parts of the overview that change by themselves.

    Attributes:
        running_count: How many campaigns run; `running` has the oldest.
        pause_form: The id of the form that their buttons send.
    """

    needs: Sequence[NeedView]
    running: Sequence[RunningView]
    running_count: int
    pause_form: str
    as_of: MomentView


async def overview_view(visit: Visit) -> OverviewView:
    """Return what the overview shows now."""
    status = await visit.console.status.of(visit.engine, visit.place.id)
    activities = await visit.console.activities.of(visit.engine, visit.place.id)
    needs = [_need(visit, one) for one in status.findings if one.code not in {"no_dispatcher", "database_copied"}]
    if visit.may(Right.REPLY) and visit.has("inbox"):
        needs += _unanswered(visit, await visit.console.unanswered.of(visit.engine, visit.place.id))
    return OverviewView(
        needs=needs,
        running=[_running(visit, one, activities.get(one.id)) for one in status.running],
        running_count=status.active_campaigns,
        pause_form="pause" if visit.may(Right.PAUSE) and visit.has("campaign") else "",
        as_of=moment_of(status.at, status.at, visit.clocks(), seconds=True),
    )


async def show(visit: Visit) -> Response:
    """Show the overview."""
    workspace = visit.place.id
    async with JoinedReads() as reads:
        next_ones = reads.start(
            visit.engine.campaigns.list(workspace, status=CampaignStatus.SCHEDULED, limit=MAX_SHOWN)
        )
        newest = reads.start(visit.engine.campaigns.list(workspace, limit=_LOOKED_AT))
        schedules = reads.start(visit.engine.schedules.list(workspace, limit=MOST_SEARCHED))
        looked = reads.start(overview_view(visit))
    scheduled, recent = next_ones.result(), newest.result()
    ended = [one for one in recent.items if one.status in _ENDED][:MAX_SHOWN]
    drafts = [one for one in recent.items if one.status in {CampaignStatus.DRAFT, CampaignStatus.READY}][:MAX_SHOWN]
    return visit.page(
        "overview",
        title="Overview",
        current="overview",
        live=True,
        view=looked.result(),
        stream_url=visit.url("live", {"of": "overview"}),
        upcoming=[row_of(visit, one) for one in (*scheduled.items, *drafts)],
        runs=_next_runs(visit, schedules.result().items),
        last=[row_of(visit, one) for one in ended],
        clone_keys={one.id: visit.new_key() for one in ended if visit.may(Right.DRAFT) and one.erased_at is None},
        pause_key=visit.new_key(),
        steps=() if recent.items else _steps(visit),
        may_draft=visit.may(Right.DRAFT),
    )


def _next_runs(visit: Visit, schedules: Sequence[Schedule]) -> Sequence[RunView]:
    """Return the next run of each schedule that has one soon, the first at the top."""
    until = visit.now + RUNS_WITHIN
    found = [
        (one.next_at, one)
        for one in schedules
        if one.state == "active" and one.next_at is not None and one.next_at <= until
    ]
    return [
        RunView(
            name=one.name,
            url=_schedule_url(visit, one.id),
            at=moment_of(at, visit.now, visit.clocks(one.zone)),
            repeats=rule_words(one.rule, one.starts_on, visit.look.dates),
        )
        for at, one in sorted(found, key=lambda each: (each[0], each[1].id))[:MAX_SHOWN]
    ]


def _schedule_url(visit: Visit, identifier: str) -> str:
    """Return the address of a schedule; empty for those who may not see it."""
    may = visit.has("schedules-one") and visit.may(Right.FLOWS)
    return visit.url("schedules-one", id=identifier) if may else ""


def _need(visit: Visit, problem: Problem) -> NeedView:
    severity = problem.severity or "info"
    url = _place_of(visit, problem)
    return NeedView(
        icon=_ICONS[severity],
        tone={"critical": "bad", "warning": "warn", "info": "plain"}[severity],
        text=with_times(visit, problem.message),
        commands=() if url else problem.commands,
        url=url,
    )


def _unanswered(visit: Visit, page: Page[InboundMessage]) -> Sequence[NeedView]:
    """Return what is said of those who wait for an answer, of the newest messages; nothing where nobody does."""
    numbers = len({one.from_number for one in page.items})
    if not numbers:
        return ()
    count = f"{numbers:,}{' or more' if page.next else ''} {'number' if numbers == 1 else 'numbers'}"
    text = f"{count} wrote back, and {'waits' if numbers == 1 and not page.next else 'wait'} for an answer."
    return [NeedView(icon="inbox", tone="plain", text=text, commands=(), url=visit.url("inbox"))]


def _place_of(visit: Visit, problem: Problem) -> str:
    """Return the address of the page where something is decided; empty if the person has none."""
    match problem.code:
        case "campaign_paused" | "start_taken_back":
            return visit.url("campaign", campaign=problem.path)
        case "schedule_paused" | "run_blocked":
            return _schedule_url(visit, problem.path)
        case "requests_unknown" if visit.may(Right.DECIDE):
            return visit.url("unknown")
        case "webhook_disabled" | "webhook_failing" if visit.may(Right.OWN):
            return visit.url("webhooks-one", id=problem.path)
        case "number_held" if visit.may(Right.REPLY):
            return visit.url("inbox", {"folder": "held"})
        case _:
            return ""


def _running(visit: Visit, one: RunningCampaign, activity: Activity | None) -> RunningView:
    counts = f"{one.ended:,} of {one.recipients:,} done"
    done = "" if activity is None else _done(visit, activity)
    says = f"Requests by time: {counts}. {done}".rstrip()
    curve = None if activity is None else small_curve_of(activity, one.channel, visit.clocks(), says)
    return RunningView(
        name=one.name,
        url=visit.url("campaign", campaign=one.id),
        channel=words.CHANNELS[one.channel],
        counts=counts,
        share=words.share(one.ended, one.recipients),
        bar=progress([Piece(value=one.ended, tone="accent", words="done")], total=one.recipients, label=counts),
        curve=Markup("") if curve is None else drawn_small(curve, one.recipients),
        late=f"{words.duration(one.lag_seconds)} behind" if one.lag_seconds >= 60 else "",
        now="" if activity is None else words.visible(activity.now.message),
        done=done,
    )


def _done(visit: Visit, activity: Activity) -> str:
    """Return when a campaign will be done, or should have been."""
    ends_at = None if activity.planned is None else activity.planned.ends_at
    if ends_at is None:
        return ""
    at = moment_of(ends_at, visit.now, visit.clocks())
    verb = "Done" if ends_at > visit.now else "It should have been done"
    return f"{verb} {at.text} ({at.zone}) by the forecast."


def _steps(visit: Visit) -> Sequence[StepView]:
    """Return the three steps of a first campaign, ticked by what exists."""
    sending = not any(one.command for one in visit.notices)
    return (
        StepView(text="A server sends what is due.", command="outreach-server serve", done=sending),
        StepView(
            text="Choose a file with contacts, and write a text: New campaign, above.",
            command="",
            done=False,
        ),
        StepView(text="Check it, and press the button that sends it.", command="", done=False),
    )
