"""A place for a server to run in: a database, a simulator's log, a directory for temporary files, an API key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import attrs
import httpx

from outreach import NewAgent, NewCallCampaign, NewRecipient, NewSmsCampaign, NewWorkspace, Outreach
from outreach.models import API_SCOPES
from tests.process.books import Books
from tests.process.server import EngineProcess, ServerProcess, start_engine, start_server, start_worker
from tests.process.waiting import PATIENCE, wait_for

T = TypeVar("T")

SENDER: Final = "+14155550199"

_FIRST_NUMBER: Final = 12_015_550_000
"""Every contact gets a number of its own, counted from here."""


def phones(count: int, *, start: int = 0) -> list[str]:
    """Return so many different numbers in E.164."""
    return [f"+{_FIRST_NUMBER + number}" for number in range(start, start + count)]


@attrs.define(kw_only=True)
class Place:
    """Where servers run one after the other, or beside each other, on one database.

    Attributes:
        directory: Everything lies below it.
        database: The SQLite file.
        server_url: The URL of a PostgreSQL database to use instead of the file.
        books: The database and the simulator's log, to be read.
        workspace_id: A sandbox.
        api_key: A key of it.
        latency_ms: How long the simulators take for an answer.
        call_seconds: How long their calls last once they are answered.
    """

    directory: Path
    database: Path
    books: Books
    workspace_id: str = ""
    api_key: str = attrs.field(default="", repr=False)
    latency_ms: float = 20.0
    call_seconds: float = 2.0
    server_url: str | None = attrs.field(default=None, repr=False)
    _started: list[EngineProcess] = attrs.field(factory=list)
    _used: int = 0

    @property
    def url(self) -> str:
        """The database's URL."""
        return self.server_url or f"sqlite:///{self.database}"

    @property
    def spool(self) -> Path:
        """Where its servers keep temporary files."""
        return self.directory / "tmp"

    @property
    def headers(self) -> dict[str, str]:
        """The header that authenticates."""
        return {"Authorization": f"Bearer {self.api_key}"}

    @property
    def environment(self) -> dict[str, str]:
        """Variables for servers and commands."""
        return {
            "OUTREACH_SIMULATOR_LOG": str(self.books.log),
            "OUTREACH_SIMULATOR_LATENCY_MS": f"{self.latency_ms:g}",
            "OUTREACH_SIMULATOR_CALL_SECONDS": f"{self.call_seconds:g}",
            "OUTREACH_HOST_ID": "process-tests",
            "TMPDIR": str(self.spool),
        }

    def serve(self, *options: str, database: Path | None = None, descriptors: int | None = None) -> ServerProcess:
        """Start a server; it is killed at the end, if it still runs then."""
        url = self.url if database is None else f"sqlite:///{database}"
        server = start_server(
            url, directory=self.directory, environment=self.environment, options=options, descriptors=descriptors
        )
        self._started.append(server)
        return server

    def work(self, *options: str) -> EngineProcess:
        """Start a worker without a server; it is killed at the end like one."""
        worker = start_worker(self.url, directory=self.directory, environment=self.environment, options=options)
        self._started.append(worker)
        return worker

    def dispatch(self, **config: float) -> EngineProcess:
        """Start an engine without a server, under settings of its own; it is killed at the end like a server."""
        engine = start_engine(self.url, directory=self.directory, environment=self.environment, config=config)
        self._started.append(engine)
        return engine

    def client(self, server: ServerProcess) -> httpx.Client:
        """Return a client of a server that authenticates itself."""
        return httpx.Client(base_url=server.url, headers=self.headers, timeout=PATIENCE * 2)

    def command(self, *arguments: str, statuses: Collection[int] = (0,)) -> Any:
        """Run a command of the command line and return the document that it prints; it ends with one of these."""
        done = subprocess.run(
            [sys.executable, "-m", "outreach_server", "--json", "--database", self.url, *arguments],
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )
        assert done.returncode in statuses, done.stderr.decode()
        return json.loads(done.stdout)

    def with_engine(self, work: Callable[[Outreach], Awaitable[T]]) -> T:
        """Do something with the engine in this process, which does not dispatch."""

        async def run() -> T:
            async with Outreach.open(self.url) as engine:
                return await work(engine)

        return anyio.run(run)

    def create(self, *, campaigns: int, recipients: int, rate: int = 600, start: bool = True) -> list[str]:
        """Create campaigns in which everybody is there once, and start them; return their ids."""

        async def work(engine: Outreach) -> list[str]:
            made: list[str] = []
            for number in range(campaigns):
                people = [NewRecipient(phone_number=phone) for phone in self.phones(recipients)]
                created = await engine.campaigns.create_sms(self.workspace_id, _campaign(number, rate), people)
                made.append(created.campaign.id)
            for identifier in made if start else ():
                await engine.campaigns.start(self.workspace_id, identifier)
            return made

        return self.with_engine(work)

    def create_calls(self, *, campaigns: int, recipients: int, concurrency: int) -> list[str]:
        """Create calling campaigns of one agent and start them; return their ids."""

        async def work(engine: Outreach) -> list[str]:
            agent = await engine.agents.create(self.workspace_id, NewAgent(name="Ada"))
            made: list[str] = []
            for number in range(campaigns):
                people = [NewRecipient(phone_number=phone) for phone in self.phones(recipients)]
                new = NewCallCampaign(name=f"Calls {number}", agent_id=agent.id, batch_concurrency=concurrency)
                created = await engine.campaigns.create_call(self.workspace_id, new, people)
                made.append(created.campaign.id)
            for identifier in made:
                await engine.campaigns.start(self.workspace_id, identifier)
            return made

        return self.with_engine(work)

    def phones(self, count: int) -> list[str]:
        """Return so many numbers that nobody else has had here."""
        start = self._used
        self._used += count
        return phones(count, start=start)

    def create_demo_workspace(self, *, request_limit: int | None) -> None:
        """Make the workspace and its key."""

        async def work(engine: Outreach) -> tuple[str, str]:
            workspace = await engine.workspaces.create(
                NewWorkspace(name="Acme", request_limit=request_limit, default_region="US")
            )
            key = await engine.api_keys.create(workspace.id, name="tests", scopes=API_SCOPES)
            return workspace.id, key.api_key

        self.workspace_id, self.api_key = self.with_engine(work)

    def prove_that_it_sends(self, server: ServerProcess) -> None:
        """Have a single message sent, to know that what was not sent meanwhile is not coming."""
        before = self.books.sent()
        with self.client(server) as client:
            answer = client.post("/sms", json={"to": "+14155550177", "body": "Hi", "from_number": SENDER})
        assert answer.status_code == 201, answer.text
        wait_for("a single message to be sent", lambda: self.books.sent() > before)

    def end(self) -> None:
        """Kill what still runs."""
        for started in self._started:
            if started.process.poll() is None:
                started.kill()


@contextmanager
def open_place(
    directory: Path, *, request_limit: int | None = 1_000_000, server_url: str | None = None
) -> Iterator[Place]:
    """Make a place in a directory, and end its servers at the end.

    The request limit is one that is never reached: requests are counted, as they are by default.
    """
    database = directory / "outreach.db"
    place = Place(
        directory=directory,
        database=database,
        books=Books(database=database, log=directory / "log.jsonl", server_url=server_url),
        server_url=server_url,
    )
    place.spool.mkdir()
    place.create_demo_workspace(request_limit=request_limit)
    try:
        yield place
    finally:
        place.end()


def body(recipients: Sequence[str], **fields: object) -> dict[str, Any]:
    """Return the body of POST /sms-campaigns."""
    return {
        "name": "Spring",
        "message_body": "Hi {{first_name}}!",
        "sms_carrier": "twilio",
        "sms_from_number": SENDER,
        "recipients": [{"phone_number": phone} for phone in recipients],
        **fields,
    }


def _campaign(number: int, rate: int) -> NewSmsCampaign:
    return NewSmsCampaign(
        name=f"Campaign {number}",
        body="Hi!",
        carrier="twilio",
        from_number=SENDER,
        rate_per_minute=rate,
    )
