"""Debian's Chromium, and a server for it to look at."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import time, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import attrs
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from outreach import (
    BusinessHours,
    CampaignUpdate,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    SimulatorConfig,
    TimeWindow,
    WorkspaceUpdate,
)
from outreach.models import DAYS
from outreach_server.console import ConsoleUser, Role
from outreach_server.console.app import build
from tests.console.conftest import MOUNT, SENDER
from tests.console.furniture import addresses, furnish, furnished
from tests.console.places import PUBLIC
from tests.console.story import ANN, tell
from tests.own_adapter import OwnAdapter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.sync_api import Browser

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
STARTS_WITHIN: Final = 60.0

PERSON: Final = "x-test-person"
"""The header of a request by somebody with another role than an owner's."""

OPERATOR: Final = "operator"
NOBODY: Final = "nobody"


@attrs.define
class Site:
    """A running console with a campaign that sends, and what a test does in its loop.

    Attributes:
        home: The address of the overview.
        campaign: The address of the campaign's page.
        waiting: The address of the check of another campaign, whose start waits for approval.
        write: Lets somebody at a number write something.
        end: Lets a campaign of a name to some numbers end.
        pages: The address of every page of people who are signed in, after the name of its route.
        public: The addresses of those of people who are not.
    """

    home: str
    campaign: str
    waiting: str
    pause: Callable[[], None]
    change: Callable[[], None]
    stop: Callable[[], None]
    write: Callable[[str, str], None]
    end: Callable[[str, Sequence[str]], None]
    pages: Sequence[tuple[str, str]]
    public: Sequence[str]


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the browser; the test is skipped, and the summary says so, where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="not installed here: playwright, for pages in a browser"
    )
    if CHROMIUM is None:
        pytest.skip("not installed here: chromium, for pages in a browser")
    with playwright.sync_playwright() as running:
        # As root it has no sandbox of its own.
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


@contextmanager
def site(contacts: int = 200, *, has_login: bool = True, database: str = "memory://") -> Iterator[Site]:
    """Serve a console in a thread of its own."""
    found: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUTREACH_SECRET_KEY", "A" * 43 + "=")
        engine = Outreach.open(
            database, dispatch=True, simulator=SimulatorConfig(latency_ms=1, seed=3), adapters=[OwnAdapter()]
        )

    async def identify(request: Request) -> ConsoleUser | None:
        role = request.headers.get(PERSON, Role.OWNER)
        if role == NOBODY:
            return None
        roles = {} if role == OPERATOR else {found["workspace"]: Role(role)}
        return ConsoleUser(id=found["users"], name="Ann Miller", workspaces=roles, operator=role == OPERATOR)

    async def end_campaign(name: str, phones: Sequence[str]) -> str:
        new = NewSmsCampaign(
            name=name, body="Hi {{first_name}}", carrier="twilio", from_number=SENDER, rate_per_minute=1
        )
        people = [NewRecipient(phone_number=phone, first_name="Ana") for phone in phones]
        campaign = (await engine.campaigns.create_sms(found["workspace"], new, people)).campaign
        await engine.campaigns.start(found["workspace"], campaign.id)
        await engine.campaigns.cancel(found["workspace"], campaign.id)
        return campaign.id

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with engine:
            workspace = await engine.workspaces.create(NewWorkspace(name="Acme Clinic"))
            found["workspace"] = workspace.id
            await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
            new = NewSmsCampaign(
                name="Reminders",
                body="Hi {{first_name}}",
                carrier="twilio",
                from_number=SENDER,
                rate_per_minute=60,
                # It does not end while slow tests look at it.
                stay_open=True,
            )
            people = [
                NewRecipient(phone_number=f"+1303555{number:04d}", first_name="Ana") for number in range(contacts)
            ]
            campaign = (await engine.campaigns.create_sms(workspace.id, new, people)).campaign
            await engine.campaigns.start(workspace.id, campaign.id)
            # More than people start alone; no other campaign here has so many.
            await engine.workspaces.update(workspace.id, WorkspaceUpdate(approve_over_contacts=250))
            check_ups = NewSmsCampaign(name="Check-ups", body="Hi {{first_name}}", carrier="twilio", from_number=SENDER)
            more = [NewRecipient(phone_number=f"+1408555{number:04d}", first_name="Ben") for number in range(300)]
            waiting = (await engine.campaigns.create_sms(workspace.id, check_ups, more)).campaign
            found.update(await furnish(engine, workspace.id))
            story = await tell(engine, workspace.id, asked_ago=timedelta(seconds=20))
            found.update(campaign=campaign.id, waiting=waiting.id, call=story.call.id)
            found["ended"] = await end_campaign("Autumn", [one.phone_number for one in people[:3]])
            opens = DAYS[(engine.now() + timedelta(days=2)).weekday()]
            hours = BusinessHours(timezone="UTC", schedule={opens: (TimeWindow.between(time(9), time(17)),)})
            closed = attrs.evolve(new, name="Closed", business_hours=hours)
            some = [NewRecipient(phone_number=f"+1505555000{number}", first_name="Cleo") for number in range(2)]
            waits = (await engine.campaigns.create_sms(workspace.id, closed, some)).campaign
            await engine.campaigns.start(workspace.id, waits.id)
            slow = attrs.evolve(new, name="Recall", rate_per_minute=1)
            many = [NewRecipient(phone_number=f"+1506555{number:04d}", first_name="Dan") for number in range(90)]
            recall = (await engine.campaigns.create_sms(workspace.id, slow, many)).campaign
            await engine.campaigns.start(workspace.id, recall.id)
            async with anyio.from_thread.BlockingPortal() as portal:
                app.state.portal = portal
                yield
                await portal.stop()

    console = build(get_engine=lambda: engine, identify=identify, actor_kind="user", has_login=has_login)
    app = Starlette(routes=[Mount(MOUNT, console)], lifespan=lifespan)
    with serving(app) as url:
        place = (found["workspace"], found["campaign"])
        home = f"{url}{MOUNT}/w/{place[0]}/"

        def pause() -> None:
            app.state.portal.call(engine.campaigns.pause, *place)

        def change() -> None:
            text = CampaignUpdate(body="Hi {{first_name}}")
            app.state.portal.call(engine.campaigns.update, place[0], found["waiting"], text)

        def stop() -> None:
            app.state.portal.call(console.state.streams.end)

        def write(phone: str, body: str) -> None:
            app.state.portal.call(partial(engine.messages.receive, place[0], from_number=phone, to=SENDER, body=body))

        def end(name: str, phones: Sequence[str]) -> None:
            app.state.portal.call(end_campaign, name, phones)

        check = f"{home}campaigns/new/check?campaign={found['waiting']}"
        things = {**found, "draft": found["waiting"], "position": "0", "phone": ANN[1:]}
        pages = [(name, f"{url}{MOUNT}{path}") for name, path in addresses(console, things)]
        public = [f"{url}{MOUNT}{path.format_map(things)}" for paths in PUBLIC.values() for path in paths]
        try:
            yield Site(home, f"{home}campaigns/{place[1]}", check, pause, change, stop, write, end, pages, public)
        finally:
            stop()


@contextmanager
def named_site(called: str) -> Iterator[Sequence[str]]:
    """Serve a console in which everything has one name; the addresses are those of every page."""
    things: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUTREACH_SECRET_KEY", "A" * 43 + "=")
        engine = Outreach.open("memory://", adapters=[OwnAdapter()])

    async def identify(request: Request) -> ConsoleUser | None:
        return ConsoleUser(id=things["users"], name=called, operator=True)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with engine:
            things.update(await furnished(engine, called))
            yield

    console = build(get_engine=lambda: engine, identify=identify, actor_kind="user", has_login=True)
    with serving(Starlette(routes=[Mount(MOUNT, console)], lifespan=lifespan)) as url:
        yield [f"{url}{MOUNT}{path}" for _, path in addresses(console, things)]


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """Serve an app in a thread of its own; the URL is where."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="warning", timeout_graceful_shutdown=1, lifespan="on")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        _wait_for(lambda: server.started)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(STARTS_WITHIN)


def _wait_for(is_so: Callable[[], bool]) -> None:
    ended = threading.Event()
    for _ in range(int(STARTS_WITHIN / 0.05)):
        if is_so():
            return
        ended.wait(0.05)
    raise AssertionError("The server has not started.")
