"""Debian's Chromium, and a server for it to look at."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
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
    CampaignUpdate,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    SimulatorConfig,
    WorkspaceUpdate,
)
from outreach_server.console import ConsoleUser, Role, create_console
from tests.console.conftest import MOUNT, SENDER
from tests.console.story import tell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.sync_api import Browser

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
STARTS_WITHIN: Final = 60.0


@attrs.define
class Site:
    """A running console with a campaign that sends, and what a test does in its loop.

    Attributes:
        home: The address of the overview.
        campaign: The address of the campaign's page.
        waiting: The address of the check of another campaign, whose start waits for approval.
        call: The address of a call's page.
        write: Lets somebody at a number write something.
    """

    home: str
    campaign: str
    waiting: str
    call: str
    pause: Callable[[], None]
    change: Callable[[], None]
    stop: Callable[[], None]
    write: Callable[[str, str], None]


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
def site(contacts: int = 200) -> Iterator[Site]:
    """Serve a console in a thread of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found: dict[str, str] = {}
    engine = Outreach.open("memory://", dispatch=True, simulator=SimulatorConfig(latency_ms=1, seed=3))

    async def identify(request: Request) -> ConsoleUser | None:
        return ConsoleUser(id="ann", name="Ann Miller", workspaces={found["workspace"]: Role.OWNER})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with engine:
            workspace = await engine.workspaces.create(NewWorkspace(name="Acme Clinic"))
            await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
            new = NewSmsCampaign(
                name="Reminders", body="Hi {{first_name}}", carrier="twilio", from_number=SENDER, rate_per_minute=60
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
            story = await tell(engine, workspace.id, asked_ago=timedelta(seconds=20))
            found.update(workspace=workspace.id, campaign=campaign.id, waiting=waiting.id, call=story.call.id)
            ended = attrs.evolve(new, name="Autumn", rate_per_minute=1)
            autumn = (await engine.campaigns.create_sms(workspace.id, ended, people[:3])).campaign
            await engine.campaigns.start(workspace.id, autumn.id)
            await engine.campaigns.cancel(workspace.id, autumn.id)
            async with anyio.from_thread.BlockingPortal() as portal:
                app.state.portal = portal
                yield
                await portal.stop()

    console = create_console(engine=engine, identify=identify)
    app = Starlette(routes=[Mount(MOUNT, console)], lifespan=lifespan)
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="warning", timeout_graceful_shutdown=1, lifespan="on")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        _wait_for(lambda: server.started)
        place = (found["workspace"], found["campaign"])
        home = f"http://127.0.0.1:{port}{MOUNT}/w/{place[0]}/"

        def pause() -> None:
            app.state.portal.call(engine.campaigns.pause, *place)

        def change() -> None:
            text = CampaignUpdate(body="Hi {{first_name}}")
            app.state.portal.call(engine.campaigns.update, place[0], found["waiting"], text)

        def stop() -> None:
            app.state.portal.call(console.state.streams.end)

        def write(phone: str, body: str) -> None:
            app.state.portal.call(partial(engine.messages.receive, place[0], from_number=phone, to=SENDER, body=body))

        check = f"{home}campaigns/new/check?campaign={found['waiting']}"
        call = f"{home}calls/{found['call']}"
        yield Site(home, f"{home}campaigns/{place[1]}", check, call, pause, change, stop, write)
    finally:
        app.state.portal.call(console.state.streams.end)
        server.should_exit = True
        thread.join(STARTS_WITHIN)


def _wait_for(is_so: Callable[[], bool]) -> None:
    ended = threading.Event()
    for _ in range(int(STARTS_WITHIN / 0.05)):
        if is_so():
            return
        ended.wait(0.05)
    raise AssertionError("The server has not started.")
