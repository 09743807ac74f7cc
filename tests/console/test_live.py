"""Pages that change while they are open."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import anyio
import attrs
import pytest

from outreach import Campaign
from outreach.models import Webhook
from outreach_server.console import Role
from outreach_server.console.context import Visit
from outreach_server.console.live import stream as stream_module
from outreach_server.console.live import views
from outreach_server.console.live.fan_out import FanOut, Regions
from outreach_server.console.live.stream import (
    MAX_MESSAGE_BYTES,
    MAX_STREAMS,
    MAX_STREAMS_EACH,
    LiveStreams,
    brought_by,
    message,
)
from outreach_server.console.live.views import CAMPAIGN_REGIONS, OVERVIEW_REGIONS, WEBHOOK_REGIONS
from outreach_server.console.look import COOKIE
from outreach_server.console.pages.overview import OverviewView, overview_view
from outreach_server.streams import end_streams
from tests.console import furniture
from tests.console.conftest import MOUNT, PEOPLE, House
from tests.console.page import Page, parse

pytestmark = pytest.mark.anyio

SHORT = 10.0
"""Longer than anything here takes on a busy machine."""


@attrs.define
class Stream:
    """A stream that a test reads: the bodies that came, and what ends it; `look` is the browser's choice."""

    bodies: list[bytes] = attrs.field(factory=list)
    status: int = 0
    came: anyio.Event = attrs.field(factory=anyio.Event)
    gone: anyio.Event = attrs.field(factory=anyio.Event)
    takes_nothing: bool = False
    look: str = ""
    over: anyio.Event = attrs.field(factory=anyio.Event)

    async def until(self, is_so: Callable[[bytes], bool]) -> bytes:
        """Wait until a message is so, and return it."""
        read = 0
        with anyio.fail_after(SHORT):
            while True:
                while read < len(self.bodies):
                    if is_so(self.bodies[read]):
                        return self.bodies[read]
                    read += 1
                self.came = anyio.Event()
                await self.came.wait()

    async def run(self, house: House, shown: Campaign | Webhook | None, person: str = "owner") -> None:
        """Open the stream of the page of a campaign or webhook, or of the overview, and read it until it ends."""
        kind = "webhook" if isinstance(shown, Webhook) else "campaign"
        of = "overview" if shown is None else f"{kind}:{shown.id}"
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": f"{MOUNT}/w/{house.workspace}/live",
            "root_path": MOUNT,
            "raw_path": b"",
            "query_string": f"of={of}".encode(),
            "headers": [
                (PEOPLE.encode(), person.encode()),
                (b"host", b"host.example"),
                (b"cookie", f"{COOKIE}={self.look}".encode()),
            ],
            "client": None,
            "server": None,
        }
        began = False

        async def receive() -> dict[str, Any]:
            nonlocal began
            if not began:
                began = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(sent: Any) -> None:
            if sent["type"] == "http.response.start":
                self.status = sent["status"]
            elif sent["body"]:
                self.bodies.append(sent["body"])
            self.came.set()
            if self.takes_nothing and sent["type"] == "http.response.body":
                await anyio.sleep_forever()

        await house.app(scope, receive, send)
        self.over.set()


def parts(body: bytes) -> dict[str, Page]:
    """Return the regions of a message by the id that they replace."""
    assert body.startswith(b"data: ")
    assert body.endswith(b"\n\n")
    assert b"\n" not in body[:-2]
    found = re.findall(r'<hx-partial hx-target="#([\w-]+)" hx-swap="outerMorph">(.*?)</hx-partial>', body.decode())
    return {name: parse(html) for name, html in found}


@pytest.fixture
async def active(house: House) -> Campaign:
    """Return a campaign that is active."""
    campaign = await house.campaign(contacts=5)
    return await house.engine.campaigns.start(house.workspace, campaign.id)


async def test_the_first_message_is_the_whole_state_and_the_next_what_has_changed(
    house: House, active: Campaign
) -> None:
    """Each region replaces the element that has its name, and what has not changed does not come again."""
    stream = Stream()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run, house, active)
        first = parts(await stream.until(lambda body: True))
        assert tuple(first) == CAMPAIGN_REGIONS
        for name, page in first.items():
            assert page.by_id(name).tag
            assert [one for one in page.problems if "h1" not in one] == []
            assert not page.all("form"), "a live region holds no form: what is typed is never replaced"
        await house.engine.campaigns.pause(house.workspace, active.id)
        second = parts(await stream.until(lambda body: b"Paused" in body))
        assert {"state", "now", "as-of"} <= set(second)
        assert "funnel" not in second
        stream.gone.set()
    assert house.app.state.streams.open == 0
    assert house.app.state.console.fan_out.watched == 0


async def test_the_page_has_each_region_once(house: House, active: Campaign) -> None:
    """So the page and the stream show the same, and a page of an ended campaign has no stream."""
    page = await house.page(f"campaigns/{active.id}")
    for name in CAMPAIGN_REGIONS:
        assert page.by_id(name).tag
    [live] = [one for one in page.root if "hx-sse:connect" in one.attributes]
    assert live.attributes["hx-sse:connect"].startswith(f"{MOUNT}/w/{house.workspace}/live?of=campaign")
    assert live.attributes["hx-sse:close"] == "superseded"
    assert not live.all("form")
    await house.engine.campaigns.cancel(house.workspace, active.id)
    page = await house.page(f"campaigns/{active.id}")
    assert not [one for one in page.root if "hx-sse:connect" in one.attributes]


async def test_the_overview_changes_by_itself(house: House, active: Campaign) -> None:
    """What needs a person, and what runs."""
    page = await house.page("")
    assert all(page.by_id(name).tag for name in OVERVIEW_REGIONS)
    stream = Stream()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run, house, None)
        first = parts(await stream.until(lambda body: True))
        assert tuple(first) == OVERVIEW_REGIONS
        assert active.name in first["running"].by_id("running").text
        stream.gone.set()


async def test_the_page_of_a_webhook_changes_by_itself(house: House) -> None:
    """Its state, what waits and its deliveries; only owners have its stream."""
    hook = await furniture.webhook(house.engine, house.workspace)
    page = await house.page(f"webhooks/{hook.id}")
    assert all(page.by_id(name).tag for name in WEBHOOK_REGIONS)
    assert [one for one in page.root if "hx-sse:connect" in one.attributes]
    assert not page.by_id("rows").all("form"), "a live region holds no form"
    stream = Stream()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run, house, hook)
        first = parts(await stream.until(lambda body: True))
        assert tuple(first) == WEBHOOK_REGIONS
        assert "404 Not Found" in first["rows"].by_id("rows").text
        await house.engine.unsubscribes.add(house.workspace, "+13035550100")
        assert "rows" not in parts(await stream.until(lambda body: b"1 event, the oldest of" in body))
        await house.engine.webhooks.enable(house.workspace, hook.id)
        await stream.until(lambda body: b"Active" in body)
        stream.gone.set()
    assert (await house.get(f"live?of=webhook:{hook.id}", person=Role.MANAGER)).status_code == 403


async def test_figures_are_those_of_the_ledger(house: House, active: Campaign) -> None:
    """The reasons add up to the contacts, and the tiles say the same."""
    console = house.app.state.console
    figures = await console.figures.read(house.engine, active)
    page = await house.page(f"campaigns/{active.id}")
    counted = [int(one.text.split()[0].replace(",", "")) for one in page.by_id("reasons").all("td", **{"class": "num"})]
    recount = await house.engine.campaigns.recount(house.workspace, active.id)
    assert sum(counted) == recount.total == figures.report.contacts == 5
    tiles = {one.all("dt")[0].text: one.all("dd")[0].text for one in page.by_id("tiles").all("div")}
    assert tiles["Contacts"].split()[0] == "5"
    assert tiles["Still open"].split()[0] == str(recount.open)


@pytest.mark.parametrize(("contacts", "said"), [(1, "1 contact: "), (2, "2 contacts: ")])
async def test_a_reason_says_how_many_contacts_have_it(house: House, contacts: int, said: str) -> None:
    """In words for those who hear the page."""
    campaign = await house.campaign(contacts=contacts)
    await house.engine.campaigns.start(house.workspace, campaign.id)
    assert said in (await house.page(f"campaigns/{campaign.id}")).by_id("reasons").text


async def test_all_viewers_share_one_renderer(house: House, active: Campaign) -> None:
    """A hundred pages cost as much as one."""
    streams = [Stream() for _ in range(3)]
    async with anyio.create_task_group() as tasks:
        for stream, person in zip(streams, ("owner", "viewer", "agent"), strict=True):
            tasks.start_soon(stream.run, house, active, person)
        for stream in streams:
            await stream.until(lambda body: True)
        assert house.app.state.console.fan_out.watched == 1
        assert len({stream.bodies[0] for stream in streams}) == 1
        for stream in streams:
            stream.gone.set()


async def test_each_viewer_gets_times_in_their_own_zone_and_style(house: House, active: Campaign) -> None:
    """In one rendering for all with the same."""
    house.people["agent"] = attrs.evolve(house.people["agent"], time_zone="Asia/Tokyo")
    watchers = [Stream(), Stream(look="..us"), Stream(look="..us"), Stream(look="..us")]
    async with anyio.create_task_group() as tasks:
        for stream, person in zip(watchers, ("owner", "owner", "viewer", "agent"), strict=True):
            tasks.start_soon(stream.run, house, active, person)
        firsts = [parts(await stream.until(lambda body: True))["as-of"].all("time")[0] for stream in watchers]
        assert house.app.state.console.fan_out.watched == 3
        for stream in watchers:
            stream.gone.set()
    said = [(one.attributes["title"], one.text.strip(":0123456789")) for one in firsts]
    assert said[0] == ("UTC", "")
    assert {said[1], said[2]} <= {("UTC", " AM"), ("UTC", " PM")}
    assert said[3] in {("Tokyo time", " AM"), ("Tokyo time", " PM")}


async def test_the_overview_shows_times_as_of_each_rendering(
    house: House, active: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a page that is open past midnight."""
    moments: list[datetime] = []

    async def noted(visit: Visit) -> OverviewView:
        moments.append(visit.now)
        return await overview_view(visit)

    monkeypatch.setattr(views, "overview_view", noted)
    stream = Stream()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run, house, None)
        first = await stream.until(lambda body: True)
        await house.engine.campaigns.pause(house.workspace, active.id)
        await stream.until(lambda body: body != first)
        stream.gone.set()
    assert moments[0] < moments[-1]


async def test_a_fifth_stream_of_a_session_ends_the_oldest(house: House, active: Campaign) -> None:
    """Which is told so; streams of others go on."""
    streams = [Stream() for _ in range(MAX_STREAMS_EACH)]
    other, late = Stream(), Stream()
    async with anyio.create_task_group() as tasks:
        for stream in streams:
            tasks.start_soon(stream.run, house, active)
            await stream.until(lambda body: True)
        tasks.start_soon(other.run, house, active, "viewer")
        await other.until(lambda body: True)
        tasks.start_soon(late.run, house, active)
        await late.until(lambda body: True)
        await streams[0].until(lambda body: body == b"event: superseded\ndata: \n\n")
        with anyio.fail_after(SHORT):
            await streams[0].over.wait()
        assert house.app.state.streams.open == MAX_STREAMS_EACH + 1
        for stream in (*streams, other, late):
            stream.gone.set()


@pytest.mark.parametrize("how", ["superseded", "alone"])
async def test_a_client_that_takes_nothing_keeps_no_stream(
    house: House, active: Campaign, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It would hold a place of the server for ever, and a session could have any number of them."""
    monkeypatch.setattr(stream_module, "CHECK_SECONDS", 0.05)
    if how == "alone":
        monkeypatch.setattr(stream_module, "STALLED_SECONDS", 0.05)
    stalled = Stream(takes_nothing=True)
    others = [Stream() for _ in range(MAX_STREAMS_EACH if how == "superseded" else 0)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stalled.run, house, active)
        await stalled.until(lambda body: True)
        for other in others:
            tasks.start_soon(other.run, house, active)
            await other.until(lambda body: True)
        with anyio.fail_after(SHORT):
            await stalled.over.wait()
        assert house.app.state.streams.open == len(others)
        for stream in (stalled, *others):
            stream.gone.set()


async def test_a_stream_ends_with_the_access_and_with_the_server(house: House, active: Campaign) -> None:
    """Within a second or so of the sign-out, the change of role, and the stop."""
    gone, changed, stopped = Stream(), Stream(), Stream()
    async with anyio.create_task_group() as tasks:
        for stream, person in ((gone, "viewer"), (changed, "agent"), (stopped, "owner")):
            tasks.start_soon(stream.run, house, active, person)
            await stream.until(lambda body: True)
        del house.people["viewer"]
        house.people["agent"] = attrs.evolve(house.people["agent"], workspaces={})
        with anyio.fail_after(SHORT):
            await gone.over.wait()
            await changed.over.wait()
        assert not stopped.over.is_set()
        end_streams(house.app)
        with anyio.fail_after(SHORT):
            await stopped.over.wait()


async def test_a_stream_of_what_is_erased_meanwhile_ends(house: House, active: Campaign) -> None:
    """The page, loaded again, says why."""
    stream = Stream()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run, house, active)
        await stream.until(lambda body: True)
        await house.engine.campaigns.cancel(house.workspace, active.id)
        assert b"Cancelled" in await stream.until(lambda body: b"Cancelled" in body)
        stream.gone.set()


@pytest.mark.parametrize("of", ["", "campaign:", "campaign:nothing", "webhook:nothing", "inbox", "campaign:../x"])
async def test_only_live_pages_have_a_stream(house: House, of: str) -> None:
    """Others are not there; who is not signed in is told so, and not sent to a page that would be taken for one."""
    assert (await house.get(f"live?of={of}")).status_code == 404
    assert (await house.get(f"live?of={of}", person=None)).status_code == 401


def test_a_message_has_what_differs_and_the_time() -> None:
    """The time alone is no change, and a sign of life all the same."""
    regions = {"a": "<p id=a>1\n2</p>", "b": "<p id=b></p>", "as-of": "<p id=as-of>1</p>"}
    assert tuple(brought_by(regions, {})) == ("a", "b", "as-of")
    assert tuple(parts(message(regions))) == ("a", "b", "as-of")
    assert tuple(brought_by(regions, {**regions, "b": "old"})) == ("b", "as-of")
    assert brought_by(regions, {**regions, "as-of": "old"}) == {}
    assert tuple(brought_by(regions, regions, say_time=True)) == ("as-of",)


def test_regions_that_have_no_room_come_with_the_next_message() -> None:
    """One that is larger than a message comes alone."""
    large = {"a": "x" * (MAX_MESSAGE_BYTES // 2), "b": "y" * MAX_MESSAGE_BYTES, "as-of": "1"}
    shown = dict[str, str]()
    brought = []
    while part := brought_by(large, shown):
        brought.append(tuple(part))
        shown.update(part)
    assert brought == [("a",), ("b",)]


def test_a_server_has_so_many_streams() -> None:
    """One more is refused, until one ends."""
    streams = LiveStreams()
    entered = [streams.enter(str(number)) for number in range(MAX_STREAMS)]
    assert all(one.__enter__() is not None for one in entered)
    with streams.enter("late") as refused:
        assert refused is None
    entered[0].__exit__(None, None, None)
    with streams.enter("late") as stream:
        assert stream is not None


async def test_a_view_that_fails_ends_and_may_begin_again() -> None:
    """Its error is in the log, and those who watched reconnect."""
    fan_out, calls = FanOut(), 0

    async def render() -> Regions:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("broken")
        return {"a": "<p></p>"}

    async with fan_out.watching("key", render) as view:
        with anyio.fail_after(SHORT):
            await view.changed.wait() if not view.failed else None
        assert view.failed
        async with fan_out.watching("key", render) as again:
            with anyio.fail_after(SHORT):
                await again.changed.wait()
            assert not again.failed
    assert fan_out.watched == 0
