from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.types import Message

from outreach import ConfigError, Outreach
from outreach_server import create_app, running
from outreach_server.contract import contract_bytes, contract_text
from outreach_server.prose import prose
from outreach_server.routes import ROUTES
from tests.server.conftest import Service, sms_body


def test_the_app_opens_and_closes_its_own_engine(tmp_path: Path) -> None:
    """Given a URL, the lifespan owns the engine; started again, the app opens it again."""
    app = create_app(f"sqlite:///{tmp_path / 'a.db'}")
    for _ in range(2):
        with TestClient(app) as client:
            health = client.get("/healthz")
            assert (health.status_code, health.json()["status"]) == (200, "ok")
            assert health.json()["dispatcher"]["dispatching"] is True
    assert TestClient(app).get("/healthz").status_code == 500


def test_an_app_that_does_not_dispatch_is_healthy() -> None:
    """`dispatch=False`: the server answers and sends nothing."""
    with TestClient(create_app("memory://", dispatch=False)) as client:
        assert client.get("/healthz").json()["dispatcher"] == {
            "dispatching": False, "refused": False, "active_units": 0, "failures": 0,
        }  # fmt: skip


def test_the_database_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, section 8: OUTREACH_DATABASE_URL, else sqlite:///outreach.db."""
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
        contract = yaml.safe_load(client.get("/outreach/openapi.yaml").text)
        # Its paths are appended to this: a client that is made from it finds them.
        assert [server["url"] for server in contract["servers"]] == ["/outreach"]
        assert contract["paths"] == yaml.safe_load(contract_text())["paths"]


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


def test_routes_and_contract_agree() -> None:
    """Every path and method of openapi.yaml is served, and the other way round."""
    contract = yaml.safe_load(contract_text())
    described = {
        path: {method.upper() for method in item if method in {"get", "post", "put", "patch", "delete"}}
        for path, item in contract["paths"].items()
    }
    served = {
        re.sub(r":path}", "}", route.path): {
            method for method in ("GET", "POST", "PUT", "PATCH", "DELETE") if hasattr(route.endpoint, method.lower())
        }
        for route in ROUTES
    }
    assert served.pop("/webhooks/{account}") == {"POST"}
    open_paths = {path: served.pop(path) for path in ("/healthz", "/openapi.yaml", "/docs")}
    assert open_paths == {path: {"GET"} for path in open_paths}
    assert served == described


def test_the_contract_is_served_as_it_is(memory_service: Service) -> None:
    """/openapi.yaml is the file."""
    answer = memory_service.client.get("/openapi.yaml")
    assert answer.content == contract_bytes()
    assert answer.headers["Content-Type"].startswith("application/yaml")


class Page(HTMLParser):
    """Collects what a page links to and loads, and whether its tags match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        found = dict(attrs)
        if tag not in {"meta", "input", "link", "img"}:
            self.open.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if tag == "a" else []
        self.loaded += [found[name] or "" for name in ("src", "data", "action") if name in found]
        self.loaded += [found.get("href") or ""] if tag == "link" else []

    def handle_endtag(self, tag: str) -> None:
        """Match an end."""
        assert self.open.pop() == tag


def test_the_page_for_people_is_complete_and_needs_nothing_else(memory_service: Service) -> None:
    """/docs: every operation, parameter, schema and field is there; nothing is fetched; every link leads somewhere."""
    answer = memory_service.client.get("/docs")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    page = Page()
    page.feed(answer.text)
    assert page.open == []
    assert page.loaded == []
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids, "openapi.yaml"}
    contract: dict[str, Any] = yaml.safe_load(contract_text())
    for path, item in contract["paths"].items():
        assert f"<code>{path}</code>" in answer.text
        assert all(o["operationId"] in page.ids for o in item.values())
    for name, schema in contract["components"]["schemas"].items():
        assert f"schema-{name}" in page.ids
        assert all(f"<code>{field}</code>" in answer.text for field in schema.get("properties", {}))
    assert "{{title}}" not in answer.text


def test_prose_is_escaped() -> None:
    """A description is text, and never markup of its own."""
    assert prose("a <b> `x<y` **must**\n\nnext & last") == (
        "<p>a &lt;b&gt; <code>x&lt;y</code> <strong>must</strong></p><p>next &amp; last</p>"
    )


def test_examples_are_accepted_as_they_stand(memory_service: Service) -> None:
    """What the contract shows as a request works, once it names an agent that there is."""
    tenant = memory_service.tenant()
    contract = yaml.safe_load(contract_text())
    tried = 0
    for path, item in contract["paths"].items():
        for method, operation in item.items():
            media = operation["requestBody"]["content"]["application/json"] if "requestBody" in operation else {}
            for example in media.get("examples", {}).values():
                body = json.loads(json.dumps(example["value"], default=str))
                if "agent_id" in body:
                    body["agent_id"] = tenant.agent.id
                answer = tenant.request(method.upper(), path, json=body)
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
            workspace = client.portal.call(partial(engine.workspaces.create, "Acme"))
            key = client.portal.call(engine.workspaces.create_key, workspace.id).api_key
            answer = client.post("/sms-campaigns", json=sms_body(), headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == 201, answer.text
