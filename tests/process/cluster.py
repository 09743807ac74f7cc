"""A cluster of real processes: workers and nodes on one PostgreSQL, over a carrier on the loopback."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import psycopg

from outreach import NewNumber, NewWorkspace, Outreach, WorkspaceMode
from outreach.models import API_SCOPES
from tests import postgres
from tests.cutting_proxy import CuttingProxy
from tests.process.books import Books
from tests.process.carrier import CREDENTIALS
from tests.process.place import SENDER, Place
from tests.process.server import EngineProcess, ServerProcess, start_module, start_server
from tests.process.waiting import wait_for

PUBLIC_URL: Final = "https://outreach.test"
DATABASE: Final = "outreach"

LEASE_SECONDS: Final = 4.0
MAX_QUEUED: Final = 40
MAX_IN_FLIGHT: Final = 60
MAX_UNKNOWN: Final = MAX_QUEUED + MAX_IN_FLIGHT
"""Intents without an outcome that all workers may have at a time, and two more for each beside the first."""

WORKER_COMMAND: Final = ("worker",)
NODE_COMMAND: Final = ("serve", "--port", "0", "--no-dispatch")

SETTINGS: Final[Mapping[str, str]] = {
    "OUTREACH_MAX_WORKERS": "3",
    "OUTREACH_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
    "OUTREACH_HEARTBEAT_INTERVAL_SECONDS": "0.5",
    "OUTREACH_MAX_QUEUED_INTENTS": str(MAX_QUEUED),
    "OUTREACH_MAX_REQUESTS_IN_FLIGHT": str(MAX_IN_FLIGHT),
    "OUTREACH_PROVIDER_TIMEOUT_SECONDS": "10",
    "OUTREACH_PUBLIC_URL": PUBLIC_URL,
    # Nothing is settled by a look-up before the test has counted what is unknown.
    "OUTREACH_RECONCILE_DELAY_SECONDS": "3000",
}

# As the lease is shorter here, so is the time that a process which stands still within a transaction holds others up.
_PARAMETERS: Final = "options=-c%20idle_in_transaction_session_timeout%3D1500"


_STARTS: Final = 3


@attrs.define
class Member:
    """A process of the cluster.

    Attributes:
        name: For messages.
        command: The words of the command line that start it.
        port: Where it reaches the database.
        process: The present one.
    """

    name: str
    command: Sequence[str]
    port: int
    process: ServerProcess | None = None

    @property
    def running(self) -> ServerProcess:
        """The present process."""
        assert self.process is not None, self.name
        return self.process


@attrs.define(kw_only=True)
class Cluster:
    """A PostgreSQL server, a proxy that cuts connections, a carrier, and the members.

    Attributes:
        place: Its directory, its books, and the workspace that sends.
        server: The database server.
        proxy: The way of some members to it.
        workers: They dispatch.
        nodes: They answer requests.
        dispatcher: What drives the workers.
        limited_key: A key of a second workspace, whose request limit is `request_limit`.
    """

    place: Place
    server: postgres.Server
    proxy: CuttingProxy
    workers: Sequence[Member]
    nodes: Sequence[Member]
    request_limit: int
    dispatcher: str
    limited_key: str = attrs.field(default="", repr=False)

    @property
    def members(self) -> Sequence[Member]:
        """All processes that serve."""
        return (*self.workers, *self.nodes)

    def start(self, member: Member, **settings: str) -> None:
        """Start a member, and wait until it says that it is up.

        A cut may meet its first connection: then it ends, and is started again, as a service manager would.
        """
        for left in reversed(range(_STARTS)):
            try:
                member.process = self._start(member, settings)
            except AssertionError as error:
                if not left or "cannot be used. (OperationalError" not in str(error):
                    raise
            else:
                return

    def _start(self, member: Member, settings: Mapping[str, str]) -> ServerProcess:
        return start_server(
            f"{self.server.url(DATABASE, port=member.port)}?{_PARAMETERS}",
            directory=self.place.directory,
            environment={
                **self.place.environment,
                **SETTINGS,
                "OUTREACH_DISPATCHER": self.dispatcher,
                **settings,
            },
            words=member.command,
        )

    def kill(self, member: Member) -> None:
        """Kill a member as a power cut would."""
        member.running.kill()

    def halt(self, member: Member) -> None:
        """Let a member stand still."""
        os.kill(member.running.process.pid, signal.SIGSTOP)

    def go_on(self, member: Member) -> None:
        """Let it go on."""
        os.kill(member.running.process.pid, signal.SIGCONT)

    def restart_server(self, how: signal.Signals) -> None:
        """Restart PostgreSQL."""
        self.server.stop(how)
        self.server.start()

    def open_intents(self) -> dict[int, int]:
        """Return how many intents without an outcome the worker of each epoch has, or has left."""
        query = (
            "SELECT epoch, COUNT(*) AS count FROM dispatches WHERE state IN ('dispatching', 'unknown') GROUP BY epoch"
        )
        return {row["epoch"]: row["count"] for row in self.place.books.rows(query)}

    def permits(self) -> list[int]:
        """Return how many intents without an outcome each worker may have now."""
        return [
            row["most"] for row in self.place.books.rows("SELECT intent_permits + request_permits AS most FROM workers")
        ]

    def end(self) -> None:
        """Kill every member."""
        for member in self.members:
            if member.process is not None and member.process.process.poll() is None:
                member.process.kill()


async def _furnish(engine: Outreach, carrier_url: str, request_limit: int) -> tuple[str, str, str]:
    """Make the workspace that sends and the one that asks; return their first id, and a key of each."""
    sending = await engine.workspaces.create(
        NewWorkspace(
            name="Sending",
            mode=WorkspaceMode.LIVE,
            sms_campaigns_enabled=True,
            contact_hours=False,
            request_limit=None,
            default_region="US",
        )
    )
    await engine.accounts.connect(sending.id, "twilio", {**CREDENTIALS, "api_base": carrier_url})
    await engine.numbers.create(sending.id, NewNumber(phone=SENDER))
    asking = await engine.workspaces.create(NewWorkspace(name="Asking", request_limit=request_limit))
    keys = [await engine.api_keys.create(one.id, scopes=API_SCOPES) for one in (sending, asking)]
    return sending.id, keys[0].api_key, keys[1].api_key


@contextmanager
def open_cluster(
    directory: Path,
    *,
    latency_ms: float,
    request_limit: int,
    dispatcher: str,
) -> Iterator[Cluster]:
    """Make a cluster of three workers and two nodes, whose members are not started; end everything at the end.

    One worker and one node reach the database by way of the proxy. `OUTREACH_SECRET_KEY` has to be set.
    """
    with postgres.Server() as server:
        server.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
        url = server.url(DATABASE)
        log = directory / "carrier.jsonl"
        books = Books(database=directory / "none", log=log, server_url=url)
        place = Place(directory=directory, database=directory / "none", books=books, server_url=url)
        place.spool.mkdir()
        carrier = start_module(
            EngineProcess, ["tests.process.carrier", str(log), f"{latency_ms:g}"], directory, place.environment
        )
        with CuttingProxy(server.port) as proxy:
            cluster = Cluster(
                place=place,
                server=server,
                proxy=proxy,
                workers=[
                    Member(f"worker {number}", WORKER_COMMAND, port)
                    for number, port in enumerate([server.port, server.port, proxy.port], start=1)
                ],
                nodes=[
                    Member(f"node {number}", NODE_COMMAND, port)
                    for number, port in enumerate([server.port, proxy.port], start=1)
                ],
                request_limit=request_limit,
                dispatcher=dispatcher,
            )

            async def furnish(engine: Outreach) -> tuple[str, str, str]:
                return await _furnish(engine, carrier.told["url"], request_limit)

            try:
                place.workspace_id, place.api_key, cluster.limited_key = place.with_engine(furnish)
                yield cluster
            finally:
                cluster.end()
                carrier.kill()


def reachable(look: Callable[[], bool]) -> Callable[[], bool]:
    """Return what looks into the database, and finds nothing while the server restarts."""

    def looked() -> bool:
        try:
            return look()
        except psycopg.OperationalError:
            return False

    return looked


def wait_for_books(what: str, look: Callable[[], bool], *, seconds: float) -> None:
    """Wait until the books show something."""
    wait_for(what, reachable(look), seconds=seconds)
