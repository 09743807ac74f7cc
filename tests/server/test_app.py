from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.types import Message

from outreach import ConfigError, NewWorkspace, Outreach, __version__
from outreach.engine_services import EngineServices
from outreach.errors import StorageError
from outreach.server_support import log_throttle_of
from outreach.storage.sqlite import lock
from outreach.testing.clock import ManualClock
from outreach_server import create_app, running
from outreach_server.contract import contract_bytes
from tests.contract.document import read_yaml
from tests.server.conftest import Service, sms_body
from tests.server.test_managing_tenants import Property


def test_the_app_opens_and_closes_its_own_engine(tmp_path: Path) -> None:
    """Given a URL, the lifespan owns the engine; started again, the app opens it again."""
    app = create_app(f"sqlite:///{tmp_path / 'a.db'}")
    for _ in range(2):
        with TestClient(app) as client:
            assert client.get("/healthz").json() == {"status": "ok", "version": __version__}
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()["status"], ready.json()["reasons"]) == (200, "ready", [])
            dispatcher = ready.json()["dispatcher"]
            assert (dispatcher["state"], dispatcher["dispatching"], dispatcher["refused"]) == (
                "dispatching",
                True,
                None,
            )
            assert dispatcher["epoch"] >= 1
            assert 0 < dispatcher["lease_seconds_left"] <= 15
            assert 0 <= dispatcher["heartbeat_seconds_ago"] < 15
            assert 0 <= ready.json()["storage"]["write_seconds"] < 1
    # It lives, and can do nothing.
    assert TestClient(app).get("/healthz").status_code == 200
    assert TestClient(app).get("/readyz").status_code == 500


@pytest.mark.anyio
@pytest.mark.parametrize("dispatch", [True, False])
async def test_the_services_are_imported_after_the_app_has_started(dispatch: bool) -> None:
    """The server listens before they are made, and needs no request for them."""
    app = create_app("memory://", dispatch=dispatch)
    async with running(app):
        engine = app.state.server.open_engine
        made = vars(engine)
        assert "erasure" not in made
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        services = {name for name, member in vars(EngineServices).items() if isinstance(member, cached_property)}
        assert services <= set(made)


def test_an_app_that_does_not_dispatch_is_ready() -> None:
    """`dispatch=False`: the server answers and sends nothing."""
    with TestClient(create_app("memory://", dispatch=False)) as client:
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert ready.json()["dispatcher"] == {
            "state": "off", "dispatching": False, "refused": None, "epoch": None, "lease_seconds_left": None,
            "heartbeat_seconds_ago": None, "active_units": 0, "failures": 0, "last_error": None,
        }  # fmt: skip


def test_a_server_that_stands_by_is_ready_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two on one file: one dispatches, the other serves and takes over; readiness and the log tell which is which."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with TestClient(create_app(url)) as first, caplog.at_level("INFO"), TestClient(create_app(url)) as second:
        assert first.get("/readyz").json()["dispatcher"]["state"] == "dispatching"
        ready = second.get("/readyz")
        assert (ready.status_code, ready.json()["dispatcher"]["state"]) == (200, "standing_by")
        (told,) = [one for one in caplog.records if getattr(one, "action", None) == "standing_by"]
        assert "takes over" in told.getMessage()


def test_a_server_that_may_not_dispatch_is_not_ready_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one word: what is wrong with which file is in the log."""
    monkeypatch.setattr(lock, "system_mounts", list)
    (tmp_path / "a.db.dispatch").mkdir()
    with TestClient(create_app(f"sqlite:///{tmp_path / 'a.db'}")) as client:
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["reasons"] == ["Dispatch is disabled for this database here (lock)."]
        assert (ready.json()["dispatcher"]["state"], ready.json()["dispatcher"]["refused"]) == ("refused", "lock")
        assert str(tmp_path) not in ready.text
        assert client.get("/healthz").status_code == 200


@pytest.mark.anyio
async def test_a_database_that_has_refused_somebodys_write_lately_is_not_ready() -> None:
    """The smallest write may fit into what is left of a full disk, where others do not."""
    clock = ManualClock()
    async with Outreach.open("memory://", clock=clock) as engine:
        clock.advance(1)
        assert (await engine.readiness()).ready
        log_throttle_of(engine).failure(
            "slice_failed", StorageError("Nothing was written. The disk is full."), "A slice failed."
        )
        clock.advance(1)
        found = await engine.readiness()
        assert (found.ready, found.write_error) == (False, "StorageError")
        assert found.write_seconds is not None
        clock.advance(10)
        assert (await engine.readiness()).ready


def test_a_server_whose_database_takes_no_writes_is_not_ready(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A foreign write lock: liveness stays, readiness goes within a second, many that ask share one line in the log."""
    file = tmp_path / "a.db"
    with TestClient(create_app(f"sqlite:///{file}", dispatch=False)) as client:
        assert client.get("/readyz").status_code == 200
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(0.6)  # the answer before is given again for half a second
            for _ in range(2):
                ready = client.get("/readyz")
                assert (ready.status_code, ready.json()["status"]) == (503, "not_ready")
                assert ready.json()["reasons"] == ["A write to the database takes over 1 s."]
                assert ready.json()["storage"] == {"write_seconds": None, "write_error": "locked"}
                assert client.get("/healthz").status_code == 200
            other.execute("ROLLBACK")
        time.sleep(0.6)
        assert client.get("/readyz").status_code == 200
    told = [one.getMessage() for one in caplog.records if one.name == "outreach"]
    assert len(told) == 2, told
    assert told[0].startswith("database write took over 1 s")
    assert told[1].startswith("database writable again")


def test_the_database_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/cli.md: OUTREACH_DATABASE_URL, else sqlite:///outreach.db."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTREACH_DATABASE_URL", "sqlite:///named.db")
    with TestClient(create_app(dispatch=False)):
        assert (tmp_path / "named.db").exists()
    monkeypatch.delenv("OUTREACH_DATABASE_URL")
    with TestClient(create_app(dispatch=False)):
        assert (tmp_path / "outreach.db").exists()


@pytest.mark.parametrize(
    "given",
    [
        {"database_url": "memory://"},
        {"dispatch": True},
        {"dispatch": False},
        {"public_url": "https://outreach.example.com"},
        {"dispatch": True, "public_url": "https://outreach.example.com"},
    ],
)
def test_what_an_engine_has_itself_is_not_given_beside_it(given: dict[str, Any]) -> None:
    """It would have no effect: the error names what is too much, and where it belongs."""
    with pytest.raises(ConfigError, match=f"or {' and '.join(given)}, not both"):
        create_app(engine=Outreach.open("memory://"), **given)


def test_what_is_no_engine_is_refused() -> None:
    """When the app is made, and not by its first request."""
    with pytest.raises(ConfigError, match=r"it must be an outreach\.Outreach"):
        create_app(engine="sqlite:///app.db")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dispatch": "no"}, "dispatch is 'no'; it must be True or False"),
        ({"dispatch": 0}, "dispatch is 0"),
        ({"database_url": Path("app.db")}, "must be a URL such as"),
        ({"max_body_bytes": "5"}, "max_body_bytes is '5'"),
        ({"max_body_bytes": True}, "max_body_bytes is True"),
        ({"spool_directory": 5}, "spool_directory is 5"),
    ],
)
def test_what_an_app_is_not_made_of_is_refused(given: dict[str, Any], words: str) -> None:
    """When it is made: `dispatch="no"` dispatched, and the others failed at the first request."""
    with pytest.raises(ConfigError, match=words):
        create_app(**{"database_url": "memory://", **given})


def test_a_mounted_app_runs_in_its_hosts_lifespan() -> None:
    """`running` does what Starlette does not do for a mounted app."""
    api = create_app("memory://", dispatch=False)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with running(api):
            yield

    with TestClient(Starlette(routes=[Mount("/outreach", api)], lifespan=lifespan)) as client:
        assert client.get("/outreach/healthz").status_code == 200
        assert client.get("/outreach/nothing").json()["error"]["code"] == "not_found"
        contract = read_yaml(client.get("/outreach/openapi.yaml").text)
        # Its paths are appended to this: a client that is made from it finds them.
        assert [server["url"] for server in contract["servers"]] == ["/outreach"]
        assert contract["paths"] == read_yaml(contract_bytes().decode())["paths"]


@pytest.mark.anyio
async def test_a_websocket_is_refused() -> None:
    """The app speaks HTTP only; the layers around the endpoints let the router say so."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/calls", "headers": [], "query_string": b"", "subprotocols": []}
    await create_app("memory://")(scope, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip", "gzip"), ("br, *;q=0.1", "gzip"), ("gzip;q=0, *", None), ("identity", None), ("br", None)],
)
def test_the_contract_is_sent_once(memory_service: Service, accepted: str, coding: str | None) -> None:
    """It is compressed for a client that takes gzip; the ETag of each form answers 304 for that form alone."""
    client = memory_service.client
    answer = client.get("/openapi.yaml", headers={"Accept-Encoding": accepted})
    assert (answer.content, answer.headers.get("Content-Encoding")) == (contract_bytes(), coding)
    assert (int(answer.headers["Content-Length"]) < len(contract_bytes()) / 3) is (coding == "gzip")
    assert answer.headers["Content-Type"].startswith("application/yaml")
    assert "Accept-Encoding" in answer.headers["Vary"]
    tag = answer.headers["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = client.get("/openapi.yaml", headers={"Accept-Encoding": accepted, "If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    other_form = {"Accept-Encoding": "identity" if coding else "gzip", "If-None-Match": tag}
    assert client.get("/openapi.yaml", headers=other_form).status_code == 200


def test_examples_are_accepted_as_they_stand(memory_service: Service) -> None:
    """What the contract shows as a request works, once it names an agent, or what a path needs, that there is."""
    tenant = memory_service.tenant()
    its = Property(memory_service, tenant)
    contract = read_yaml(contract_bytes().decode())
    tried = 0
    for path, item in contract["paths"].items():
        for method, operation in item.items():
            media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for example in media.get("examples", {}).values():
                body = json.loads(json.dumps(example["value"], default=str))
                if "agent_id" in body:
                    body["agent_id"] = tenant.agent.id
                if "contact" in body:
                    body["contact"] = "+14155550101"
                if "campaign_id" in body:
                    body["campaign_id"] = its.campaign["id"]
                if "template_id" in body:
                    body["template_id"] = its.campaign["id"]
                answer = tenant.request(method.upper(), its.path(path) if "{" in path else path, json=body)
                assert answer.status_code in {200, 201, 409}, answer.text
                tried += 1
    assert tried > 8


def test_an_engine_that_was_closed_may_be_opened_again(tmp_path: Path) -> None:
    """An app that is started again with the same engine creates campaigns as before."""
    engine = Outreach.open(f"sqlite:///{tmp_path / 'outreach.db'}")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with engine:
            yield

    for _ in range(2):
        with TestClient(Starlette(routes=[Mount("", create_app(engine=engine))], lifespan=lifespan)) as client:
            assert client.portal is not None
            workspace = client.portal.call(engine.workspaces.create, NewWorkspace(name="Acme"))
            key = client.portal.call(engine.api_keys.create, workspace.id).api_key
            answer = client.post("/sms-campaigns", json=sms_body(), headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == 201, answer.text
