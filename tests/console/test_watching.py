"""A campaign of 5,000 contacts, watched in 20 sessions by plain HTTP clients."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import httpx
import pytest
from starlette.requests import Request

from outreach import NewNumber, NewRecipient, NewSmsCampaign, NewWorkspace, Outreach, SimulatorConfig
from outreach.campaigns import Campaigns
from outreach.models import CampaignReport, Counters, NewUser
from outreach_server.console import ConsoleUser, Role, create_console
from outreach_server.console.identities.cookies import PLAIN_NAME
from tests.console.conftest import MOUNT, ORIGIN, SENDER, House
from tests.console.page import Page
from tests.console.test_live import Stream, parts
from tests.process.place import Place, open_place
from tests.process.server import ServerProcess
from tests.process.waiting import wait_for

pytestmark = pytest.mark.nightly("a campaign of 5,000 contacts is watched for a minute")

CONTACTS: Final = 5000
WATCHERS: Final = 20
UPDATES: Final = 15
SECONDS: Final = 20.0
"""For how long the computing is measured, with those who watch and without."""

MOST_COMPUTING: Final = 0.1
"""Of a core, for all streams together."""

PACE_KEPT: Final = 0.9
"""Of the pace without anybody who watches: one wave more or less is a twentieth."""

LEAST_UPDATES: Final = 5
"""Of each stream in that time: they come more slowly on a machine that is busy."""

AGAIN_SECONDS: Final = 0.5


def tiles_of(page: Page) -> dict[str, int]:
    """Return the figures of the tiles, by their names."""
    values = {one.all("dt")[0].text: one.all("dd")[0].texts[0] for one in page.by_id("tiles").all("div")}
    return {name: int(value.replace(",", "")) for name, value in values.items()}


# ------------------------------------------------------------------------------- the same snapshot


@pytest.mark.anyio
async def test_tiles_equal_a_recount_at_every_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recount is of the same snapshot, and of the rows alone: it reads no counter."""
    recounts: dict[datetime, Counters] = {}
    report = Campaigns.report

    async def with_recount(self: Campaigns, workspace_id: str, campaign_id: str) -> CampaignReport:
        made, counted = await asyncio.gather(
            report(self, workspace_id, campaign_id), self.recount(workspace_id, campaign_id)
        )
        recounts[made.at] = counted
        return made

    monkeypatch.setattr(Campaigns, "report", with_recount)
    streams = [Stream() for _ in range(WATCHERS)]
    async with watched_house() as (house, campaign), anyio.create_task_group() as tasks:
        for number, stream in enumerate(streams):
            tasks.start_soon(stream.run, house, campaign, f"w{number}")
        with anyio.fail_after(300):
            while min(len(stream.bodies) for stream in streams) < UPDATES:  # noqa: ASYNC110
                await anyio.sleep(0.1)
        for stream in streams:
            stream.gone.set()
    moments = set()
    for stream in streams:
        for regions in map(parts, stream.bodies):
            if "tiles" in regions:
                at = datetime.fromisoformat(regions["as-of"].all("time")[0].attributes["datetime"])
                tiles, counted = tiles_of(regions["tiles"]), recounts[at]
                found = (tiles["Contacts"], tiles["Still open"], tiles["Failed"])
                assert found == (counted.total, counted.open, counted.failed), at
                moments.add((at, tiles["Still open"]))
    assert len({still_open for _, still_open in moments}) > UPDATES / 2


class watched_house:  # noqa: N801 - used as a function
    """A console over an engine that sends, with a person for each stream."""

    def __init__(self) -> None:
        self._engine = Outreach.open("memory://", dispatch=True, simulator=SimulatorConfig(latency_ms=5, seed=1))

    async def __aenter__(self) -> tuple[House, Any]:
        """Return the console, and the campaign, which sends."""
        engine = await self._engine.__aenter__()
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        await engine.numbers.create(workspace, NewNumber(phone=SENDER, carrier="twilio"))
        new = NewSmsCampaign(name="Spring", body="Hi", carrier="twilio", from_number=SENDER, rate_per_minute=600)
        people = [NewRecipient(phone_number=f"+1303555{number:04d}") for number in range(CONTACTS)]
        made = (await engine.campaigns.create_sms(workspace, new, people)).campaign
        campaign = await engine.campaigns.start(workspace, made.id)
        persons = {f"w{n}": ConsoleUser(id=f"w{n}", name="Ann", workspaces={workspace: Role.VIEWER}) for n in range(20)}

        async def identify(request: Request) -> ConsoleUser | None:
            return persons.get(request.headers.get("x-test-person", ""))

        console = create_console(engine=engine, identify=identify)
        client = httpx.AsyncClient(base_url=f"{ORIGIN}{MOUNT}")
        return House(engine, console, workspace, "", client, persons), campaign

    async def __aexit__(self, *error: Any) -> None:
        """Stop sending."""
        await self._engine.__aexit__(*error)


# --------------------------------------------------------------------------------- a real server


@attrs.define
class Watcher:
    """A client of one session that reads a campaign's stream, and begins again where it ends, as browsers do.

    Attributes:
        url: The address of the stream.
        token: What its browser keeps.
        updates: When a message came, with its tiles; those of a message without tiles are the last ones.
        begun: How often the stream has begun.
    """

    url: str
    token: str = attrs.field(repr=False)
    updates: list[tuple[float, dict[str, int]]] = attrs.field(factory=list)
    begun: int = 0
    _over: threading.Event = attrs.field(factory=threading.Event)

    def run(self) -> None:
        """Read until it is over."""
        while not self._over.is_set():
            try:
                with httpx.stream("GET", self.url, cookies={PLAIN_NAME: self.token}, timeout=30) as answer:
                    if answer.status_code == httpx.codes.OK:
                        self.begun += 1
                        self._read(answer)
            except httpx.HTTPError:
                pass
            self._over.wait(AGAIN_SECONDS)

    def _read(self, answer: httpx.Response) -> None:
        for line in answer.iter_lines():
            if self._over.is_set():
                return
            if line.startswith("data: ") and 'id="tiles"' in line:
                self.updates.append((time.time(), tiles_of(parts(f"{line}\n\n".encode())["tiles"])))

    def end(self) -> None:
        """Have it stop."""
        self._over.set()


@contextmanager
def watching(server: ServerProcess, campaign: str, workspace: str, tokens: Sequence[str]) -> Iterator[list[Watcher]]:
    """Watch a campaign in each session."""
    url = f"{server.url}/console/w/{workspace}/live?of=campaign:{campaign}"
    watchers = [Watcher(url, token) for token in tokens]
    threads = [threading.Thread(target=one.run, daemon=True) for one in watchers]
    for thread in threads:
        thread.start()
    try:
        yield watchers
    finally:
        for one in watchers:
            one.end()
        for thread in threads:
            thread.join(60)


def sessions_of(place: Place) -> list[str]:
    """Return the tokens of the sessions of somebody who operates the server."""

    async def work(engine: Outreach) -> list[str]:
        user = await engine.users.create(NewUser(email="ann@acme.example", name="Ann", operator=True))
        return [(await engine.sessions.begin(user.id)).token for _ in range(WATCHERS)]

    return place.with_engine(work)


def recount(database: Path) -> dict[str, int]:
    """Count the contacts that have ended, and all, in the file itself."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        [(contacts, ended, failed)] = connection.execute(
            "SELECT COUNT(*), COUNT(ended_at), COUNT(CASE WHEN status = 'failed' THEN 1 END) FROM recipients"
        ).fetchall()
    return {"Contacts": contacts, "Still open": contacts - ended, "Failed": failed}


def computed(server: ServerProcess, place: Place) -> tuple[float, int]:
    """Return what share of a core a server takes for a while, and how many messages it sends."""
    cpu, sent, begun = server.cpu_seconds(), place.books.sent(), time.monotonic()
    time.sleep(SECONDS)
    took = time.monotonic() - begun
    return (server.cpu_seconds() - cpu) / took, place.books.sent() - sent


def test_streams_cost_little_and_go_on_after_a_kill(tmp_path: Path) -> None:
    """The pace of the sending is kept; the server is killed and started again, and all pages go on by themselves."""
    with open_place(tmp_path) as place, ExitStack() as stack:
        tokens = sessions_of(place)
        [campaign] = place.create(campaigns=1, recipients=CONTACTS)
        server = place.serve()
        wait_for("messages to be sent", lambda: place.books.sent() > 0)
        time.sleep(3)
        alone, sent_alone = computed(server, place)
        watchers = stack.enter_context(watching(server, campaign, place.workspace_id, tokens))
        wait_for("each stream to begin", lambda: all(one.updates for one in watchers))
        watched, sent_watched = computed(server, place)
        assert watched - alone < MOST_COMPUTING, (alone, watched)
        assert sent_watched >= sent_alone * PACE_KEPT, (sent_alone, sent_watched)
        before = recount(place.database)
        server.kill()
        killed_at = time.time()
        again = place.serve("--port", server.url.rpartition(":")[2])
        assert again.url == server.url
        wait_for(
            "each stream to go on",
            lambda: all(one.begun >= 2 and one.updates[-1][0] > killed_at for one in watchers),
            seconds=120,
        )
        place.with_engine(lambda engine: engine.campaigns.pause(place.workspace_id, campaign))
        wait_for(
            "the tiles to stand at the recount",
            lambda: all(recount(place.database).items() <= one.updates[-1][1].items() for one in watchers),
            seconds=120,
        )
        for one in watchers:
            assert len(one.updates) >= LEAST_UPDATES
            opens = [tiles["Still open"] for _, tiles in one.updates]
            assert opens == sorted(opens, reverse=True)
            first = next(tiles for at, tiles in one.updates if at > killed_at)
            assert first["Still open"] <= before["Still open"]
