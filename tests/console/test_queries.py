"""How much a page asks of the database, and how large it is."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from typing import Any, Final

import anyio
import attrs
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from outreach import (
    CampaignStatus,
    FlowStep,
    NewAgent,
    NewFlow,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    Outreach,
    SimulatorConfig,
)
from outreach.models import NewScheduleApproval, NewUser, NewWebhook
from outreach.storage.postgres import PostgresStorage
from outreach.storage.postgres.backend import PostgresBackend
from outreach.storage.sqlite.backend import SqliteBackend
from outreach.storage.sqlite.memory import MemoryStorage
from outreach_server.console import ConsoleUser, Role
from outreach_server.console.app import build
from tests.console.conftest import MOUNT, ORIGIN, SENDER
from tests.console.furniture import recurring
from tests.console.places import OF_LISTS, every_page
from tests.console.story import ANN, UNCLEAR, tell
from tests.fake_provider import CREDENTIALS
from tests.own_adapter import OwnAdapter
from tests.postgres import empty_database

pytestmark = pytest.mark.anyio

MOST_QUERIES: Final = 3
"""Snapshots of the database that a page may take, besides the look-up of its session."""

MOST_STATEMENTS: Final = 60
"""Statements in them: more on a page of fifty rows would be some for each row."""

MOST_BYTES: Final = 150_000

ROWS: Final = 60
"""More than a page of a list has."""

RUNS: Final = 25
"""More runs of a schedule than its page has."""

LONG: Final = "<" * 100
"""The longest name, of what takes most bytes in HTML."""

IN_ONE_STATE: Final = {"edit": "active"}
"""Pages of a campaign that only one in this state has."""


@attrs.define
class Counts:
    """What one request asked: snapshots, and statements in them."""

    queries: int = 0
    statements: int = 0


@attrs.define
class Filled:
    """A console with much in it.

    Attributes:
        campaigns: Campaigns by their state.
        things: What else is there, by its name in a path.
    """

    app: Starlette
    client: httpx.AsyncClient
    workspace: str
    campaigns: dict[str, str]
    things: dict[str, str]

    def paths(self) -> Iterator[str]:
        """Yield the address of each page; those of a campaign for one in each state."""
        things = {**self.things, "position": "1", "ended": self.campaigns["ended"], "name": "%3C%3C"}
        things["draft"] = self.campaigns["ready"]
        for name, path in every_page():
            if name in OF_LISTS and path in OF_LISTS[name]:
                continue  # what they do is no page's, but a preflight's
            states = (IN_ONE_STATE[name],) if name in IN_ONE_STATE else self.campaigns
            for campaign in [self.campaigns[state] for state in states] if "{campaign}" in path else ("",):
                found = path.format_map({**things, "campaign": campaign})
                yield f"{MOUNT}{found}" if found.startswith("/") else f"{MOUNT}/w/{self.workspace}/{found}"

    async def get(self, url: str) -> tuple[httpx.Response, Counts]:
        """Get a page as after a long time, in which nothing is kept any more, and count what it asks."""
        console = self.app.state.console
        for name in ("status", "figures"):
            console._kept.pop(name, None)
        console.throttle._counts.clear()
        with counted() as counts:
            answer = await self.client.get(url)
        return answer, counts


_COUNTS: ContextVar[Counts | None] = ContextVar("counts", default=None)
_OF_THREAD = threading.local()


@contextmanager
def counted() -> Iterator[Counts]:
    """Count what is asked within."""
    token = _COUNTS.set(Counts())
    try:
        found = _COUNTS.get()
        assert found is not None
        yield found
    finally:
        _COUNTS.reset(token)


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have reads counted, and the statements in them, whichever thread runs them."""
    for storage in (MemoryStorage, PostgresStorage):
        monkeypatch.setattr(storage, "read", _counting_reads(storage.read))
    for backend in (SqliteBackend, PostgresBackend):
        for name in ("load", "query"):
            monkeypatch.setattr(backend, name, _counting_statements(getattr(backend, name)))


def _counting_reads(read: Any) -> Any:
    async def counting(self: Any, operation: Any) -> Any:
        counts = _COUNTS.get()
        if counts is None:
            return await read(self, operation)
        counts.queries += 1

        def within(tx: Any) -> Any:
            _OF_THREAD.counts = counts
            try:
                return operation(tx)
            finally:
                _OF_THREAD.counts = None

        return await read(self, within)

    return counting


def _counting_statements(run: Any) -> Any:
    def counting(self: Any, *arguments: Any) -> Any:
        counts = getattr(_OF_THREAD, "counts", None)
        if counts is not None:
            counts.statements += 1
        return run(self, *arguments)

    return counting


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak("the pages are those of SQLite"))])
async def filled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Filled]:
    """A console whose lists are longer than a page, with a campaign in each state and people who did something."""
    monkeypatch.setenv("OUTREACH_SECRET_KEY", "A" * 43 + "=")
    url = "memory://" if request.param == "sqlite" else empty_database()
    engine = Outreach.open(url, dispatch=True, simulator=SimulatorConfig(latency_ms=0, seed=1), adapters=[OwnAdapter()])
    async with engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        await engine.numbers.create(workspace, NewNumber(phone=SENDER, carrier="twilio"))
        users = [(await engine.users.create(NewUser(email=f"{n}@acme.example", name=LONG))).id for n in range(3)]

        async def campaign(contacts: int, rate: int) -> str:
            new = NewSmsCampaign(
                name=LONG,
                body="Hi {{first_name}}, " + "ä" * 600,
                carrier="twilio",
                from_number=SENDER,
                rate_per_minute=rate,
            )
            people = [
                NewRecipient(phone_number=f"+1303555{n:04d}", first_name=LONG, last_name=LONG, external_id=f"A{n}")
                for n in range(contacts)
            ]
            return (await engine.campaigns.create_sms(workspace, new, people)).campaign.id

        ready, *_ = [await campaign(ROWS if n == 0 else 2, 60) for n in range(ROWS)]
        active, paused, ended = await campaign(ROWS, 60), await campaign(ROWS, 60), await campaign(2, 600)
        for user, one in zip(users, (active, paused, ended), strict=True):
            await engine.campaigns.start(workspace, one, actor=f"user:{user}")
        await engine.campaigns.pause(workspace, paused, actor=f"user:{users[0]}")
        with anyio.fail_after(60):
            while (await engine.campaigns.get(workspace, ended)).status is not CampaignStatus.COMPLETED:  # noqa: ASYNC110
                await anyio.sleep(0.05)

        things = {"workspace": workspace, "phone": ANN[1:], **await more_things(engine, workspace, users)}

        async def identify(asking: Request) -> ConsoleUser | None:
            return ConsoleUser(id=users[0], name="Ann", operator=True)

        console = build(get_engine=lambda: engine, identify=identify, actor_kind="user", has_login=True)
        app = Starlette(routes=[Mount(MOUNT, console)])
        campaigns = {"ready": ready, "active": active, "paused": paused, "ended": ended}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            yield Filled(console, client, workspace, campaigns, things)


async def more_things(engine: Outreach, workspace: str, users: Sequence[str]) -> dict[str, str]:
    """Let much happen that is in no campaign, and set up much; return one of each, by its name in a path."""
    story = await tell(engine, workspace)
    await engine.unsubscribes.add(workspace, *(f"+1720555{n:04d}" for n in range(ROWS)), evidence=LONG)
    for n in range(ROWS):
        phone = f"+1480555{n:04d}"
        await engine.messages.receive(workspace, from_number=phone, to=SENDER, body="ä" * 600)
        await engine.messages.receive(workspace, from_number=f"+1481555{n:04d}", to=SENDER, body=UNCLEAR)
    things: dict[str, str] = {"call": story.call.id, "users": users[0]}
    steps = [FlowStep(kind="send", body="Hi"), FlowStep(kind="wait", wait_minutes=90)]
    await engine.accounts.connect(workspace, "mycarrier", CREDENTIALS)
    for n in range(ROWS):
        things["agents"] = (await engine.agents.create(workspace, NewAgent(name=f"{LONG}{n}"))).id
        things["trunks"] = (await engine.trunks.create(workspace, NewTrunk(name=f"{n}", address=f"{n}.example"))).id
        number = NewNumber(phone=f"+1206555{n:04d}", carrier="twilio", trunk_id=things["trunks"])
        things["numbers"] = (await engine.numbers.create(workspace, number)).id
        things["flows"] = (await engine.flows.create(workspace, NewFlow(name=f"{LONG}{n}", steps=steps))).id
        hook = NewWebhook(url=f"https://app.example/{n}?{LONG}", description=LONG, types=["contact.*"])
        things["webhooks"] = (await engine.webhooks.create(workspace, hook)).webhook.id
        await engine.webhooks.pause(workspace, things["webhooks"])
        await engine.unsubscribes.add(workspace, f"+1721555{n:04d}")
        maker = f"user:{users[n % len(users)]}"
        things["keys"] = (await engine.api_keys.create(workspace, name=LONG, actor=maker)).id
        invited = await engine.users.invite(workspace, f"guest{n}@acme.example", Role.VIEWER, actor=maker)
        things["invitations"] = invited.invitation.id
        await engine.users.set_role(workspace, (await engine.users.create(person(n))).id, Role.VIEWER)
    for user in users:
        await engine.users.set_role(workspace, user, Role.OWNER)
    campaign = (await engine.campaigns.list(workspace)).items[-1].id  # older than those that a form offers
    for n in range(ROWS):
        soon = attrs.evolve(recurring(campaign, f"{LONG[:70]}{n}"), rule="FREQ=DAILY", starts_on=date(2026, 1, 1))
        things["schedules"] = (await engine.schedules.create(workspace, soon, actor=f"user:{users[0]}")).id
    for _ in range(RUNS):
        await engine.schedules.skip_next(workspace, things["schedules"])
    approval = NewScheduleApproval(revision=1, most_contacts=100)
    await engine.schedules.approve(workspace, things["schedules"], approval, actor=f"user:{users[1]}")
    [account] = (await engine.accounts.list(workspace)).items
    return {**things, "accounts": account.id}


def person(n: int) -> NewUser:
    """Return one of many people."""
    return NewUser(email=f"more{n}@acme.example", name=LONG)


async def test_a_page_takes_three_snapshots_at_most_and_is_small(filled: Filled) -> None:
    """Also the first of all, for which nothing was read before."""
    problems = []
    for url in filled.paths():
        answer, counts = await filled.get(url)
        assert answer.status_code == 200, url
        size = len(answer.content)
        path = url.removeprefix(f"{MOUNT}/w/{filled.workspace}/")
        if counts.queries > MOST_QUERIES or counts.statements > MOST_STATEMENTS or size > MOST_BYTES:
            problems.append((path, counts, size))
    assert problems == []


async def test_the_figures_of_a_page_are_of_one_snapshot(filled: Filled) -> None:
    """Its state, its line, its tiles and its reasons: whatever happens meanwhile, they agree."""
    console = filled.app.state.console
    engine, place = console.engine, (filled.workspace, filled.campaigns["active"])
    known = await engine.campaigns.get(*place)
    console._kept.pop("figures", None)
    figures = await console.figures.read(engine, known, is_first=True)
    counters, report = figures.campaign.counters, figures.report
    assert report.contacts == counters.total
    assert report.still_open == counters.open
    assert sum(one.contacts for one in report.results) == counters.total
