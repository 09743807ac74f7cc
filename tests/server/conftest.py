"""A server over each storage, and somebody who uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from outreach import Agent, NewAgent, NewWorkspace, Outreach, Workspace
from outreach.models import API_SCOPES
from outreach.protocols import Carrier, SystemClock
from outreach_server import create_app
from tests import postgres
from tests.contract.checked_client import CheckedClient

T = TypeVar("T")


@attrs.define
class MovableClock:
    """The system's clock, which a test can set forward."""

    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        """Return the present moment, moved."""
        return SystemClock().now() + self.ahead

    def monotonic(self) -> float:
        """Return seconds on the system's monotonic clock, moved."""
        return SystemClock().monotonic() + self.ahead.total_seconds()


@attrs.frozen(kw_only=True)
class Tenant:
    """A workspace with a key for everything and an agent, and its view of the API."""

    client: TestClient
    workspace: Workspace
    key: str
    agent: Agent

    def request(self, method: str, path: str, *, headers: dict[str, str] | None = None, **arguments: Any) -> Any:
        """Send a request with the key."""
        return self.client.request(
            method, path, headers={"Authorization": f"Bearer {self.key}"} | (headers or {}), **arguments
        )

    def get(self, path: str, **arguments: Any) -> Any:
        """Send a GET."""
        return self.request("GET", path, **arguments)

    def post(self, path: str, body: Any = None, **arguments: Any) -> Any:
        """Send a POST."""
        return self.request("POST", path, **({} if body is None else {"json": body}), **arguments)

    def patch(self, path: str, body: Any = None, **arguments: Any) -> Any:
        """Send a PATCH."""
        return self.request("PATCH", path, **({} if body is None else {"json": body}), **arguments)

    def delete(self, path: str, **arguments: Any) -> Any:
        """Send a DELETE."""
        return self.request("DELETE", path, **arguments)

    def create(self, path: str = "/sms-campaigns", **fields: Any) -> Any:
        """Create an SMS campaign and return what was answered."""
        answer = self.post(path, sms_body(**fields))
        assert answer.status_code == 201, answer.text
        return answer.json()


@attrs.frozen(kw_only=True)
class Service:
    """A running server, its engine and its clock."""

    client: TestClient
    engine: Outreach
    clock: MovableClock

    def run(self, function: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        """Run a coroutine function of the engine on the server's loop."""
        assert self.client.portal is not None
        return self.client.portal.call(partial(function, *arguments, **named))

    def tenant(self, **workspace: Any) -> Tenant:
        """Make a workspace that may send many requests."""
        made = self.run(
            self.engine.workspaces.create, NewWorkspace(name="Acme", **({"request_limit": None} | workspace))
        )
        key = self.run(self.engine.api_keys.create, made.id, scopes=API_SCOPES)
        agent = self.run(self.engine.agents.create, made.id, NewAgent(name="Renewals"))
        return Tenant(client=self.client, workspace=made, key=key.api_key, agent=agent)


def sms_body(**fields: Any) -> dict[str, Any]:
    """Return the body of an SMS campaign; a field that is `...` is left out."""
    body = {"name": "Autumn", "message_body": "Hi", "recipients": [{"phone_number": "+14155550102"}]} | fields
    return {name: value for name, value in body.items() if value is not ...}


_TURN = pytest.mark.turn(16, "the server is the same in memory")


@pytest.fixture(
    params=["memory", pytest.param("sqlite", marks=_TURN), pytest.param("postgres", marks=_TURN)],
)
def database_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Name a database of each storage."""
    if request.param == "postgres":
        # There is no file beside a database on a server that a key could be in.
        monkeypatch.setenv("OUTREACH_SECRET_KEY", "B" * 43 + "=")
        # A test moves the clock of its node, not the database's, by which a node would go again.
        monkeypatch.setattr("outreach.services.context._COMPARE_SECONDS", float("inf"))
        return postgres.empty_database()
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'outreach.db'}"


def serve(
    url: str, *, dispatch: bool = False, mount: str = "", carrier: Carrier | None = None, **options: Any
) -> Iterator[Service]:
    """Run a server in a host app that opens the engine; a carrier takes the messages of sandboxes."""
    clock = MovableClock()
    engine = Outreach.open(url, clock=clock, dispatch=dispatch, sandbox_carrier=carrier)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with engine:
            yield

    app = create_app(engine=engine, **options)
    host = Starlette(routes=[Mount(mount, app)], lifespan=lifespan)
    with CheckedClient(host, mount=mount, base_url=f"http://testserver{mount}", follow_redirects=False) as client:
        yield Service(client=client, engine=engine, clock=clock)


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    """Run a server that does not dispatch."""
    yield from serve(database_url)


@pytest.fixture
def tenant(service: Service) -> Tenant:
    """Make somebody who uses the server."""
    return service.tenant()


@pytest.fixture
def memory_service() -> Iterator[Service]:
    """Run a server for what has nothing to do with storage."""
    yield from serve("memory://")


@pytest.fixture
def memory_tenant(memory_service: Service) -> Tenant:
    """Make somebody who uses the server in memory."""
    return memory_service.tenant()
