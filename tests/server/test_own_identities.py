from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from outreach import ConfigError, WorkspaceStatus, WorkspaceUpdate
from outreach.errors import Forbidden, Unauthorized
from outreach_server import Authenticate, create_app
from tests.server.conftest import Service, serve, sms_body
from tests.server.test_admission import OPERATIONS
from tests.server.test_errors import check_envelope


class Shop:
    """A host that knows its people by a cookie."""

    def __init__(self) -> None:
        self.people: dict[str, Any] = {}

    async def __call__(self, request: Request) -> Any:
        """Return the workspace of the caller."""
        who = self.people.get(request.cookies.get("session", ""))
        if isinstance(who, Exception):
            raise who
        return who


@contextmanager
def served(shop: Authenticate, mount: str = "") -> Iterator[Service]:
    """Serve the interface to the people of a host."""
    yield from serve("memory://", mount=mount, authenticate=shop)


@pytest.fixture(params=["", "/outreach"])
def hosted(request: pytest.FixtureRequest) -> Iterator[tuple[Service, Shop, str]]:
    """Return a service, its host, and a workspace of `ann`; the lists are answered both ways, short and long."""
    shop = Shop()
    with served(shop, request.param) as service:
        workspace_id = service.tenant(request_limit=100).workspace.id
        shop.people["ann"] = workspace_id
        yield service, shop, workspace_id


def ask(service: Service, who: str | None, method: str, path: str, **arguments: Any) -> Any:
    """Send a request of somebody."""
    headers = {"Cookie": f"session={who}"} if who else {}
    return service.client.request(method, path, headers=headers | arguments.pop("headers", {}), **arguments)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_who_is_not_signed_in_gets_401_at_every_operation(
    hosted: tuple[Service, Shop, str], method: str, path: str
) -> None:
    """Also with an API key, which is worth nothing here."""
    service, _, workspace_id = hosted
    key = service.run(service.engine.api_keys.create, workspace_id).api_key
    check_envelope(ask(service, None, method, path), 401, "unauthorized")
    check_envelope(ask(service, "eve", method, path, headers={"Authorization": f"Bearer {key}"}), 401, "unauthorized")


def test_who_is_signed_in_acts_for_the_workspace(hosted: tuple[Service, Shop, str]) -> None:
    """Its campaigns and no others; limits and replays are the workspace's."""
    service, shop, _ = hosted
    shop.people["bob"] = service.tenant().workspace.id
    again = {"Idempotency-Key": "k1"}
    first = ask(service, "ann", "POST", "/sms-campaigns", json=sms_body(name="Mine"), headers=again)
    assert first.status_code == 201
    assert first.headers["RateLimit-Policy"] == '"workspace";q=100;w=60'
    second = ask(service, "ann", "POST", "/sms-campaigns", json=sms_body(name="Mine"), headers=again)
    assert second.json() == first.json()
    for path in ("/sms-campaigns", "/campaigns"):
        assert [one["name"] for one in ask(service, "ann", "GET", path).json()["data"]] == ["Mine"]
        assert ask(service, "bob", "GET", path).json()["data"] == []
    theirs = ask(service, "bob", "POST", "/sms-campaigns", json=sms_body(name="Theirs"), headers=again)
    assert theirs.json()["name"] == "Theirs"


def test_the_host_refuses_in_its_own_words(hosted: tuple[Service, Shop, str]) -> None:
    """401 and 403, each before anything of the request is looked at."""
    service, shop, _ = hosted
    shop.people |= {"old": Unauthorized("Sign in again."), "guest": Forbidden("Guests send nothing.")}
    answer = ask(service, "old", "GET", "/campaigns")
    check_envelope(answer, 401, "unauthorized")
    assert answer.json()["error"]["message"] == "Sign in again."
    answer = ask(service, "guest", "POST", "/sms-campaigns", content=b"no JSON")
    assert (answer.status_code, answer.json()["error"]["message"]) == (403, "Guests send nothing.")


def test_refusals_of_the_hosts_framework_are_answered_at_every_path(hosted: tuple[Service, Shop, str]) -> None:
    """Also at the lists, whose way is shorter where the app is mounted nowhere."""
    service, shop, _ = hosted
    shop.people["late"] = HTTPException(401, "Your session has ended.", {"WWW-Authenticate": "Bearer"})
    for method, path in (("GET", "/campaigns"), ("GET", "/sms-campaigns"), ("POST", "/sms")):
        answer = ask(service, "late", method, path)
        check_envelope(answer, 401, "unauthorized")
        assert answer.json()["error"]["message"] == "Your session has ended."


def test_the_order_of_checks_is_the_same(hosted: tuple[Service, Shop, str]) -> None:
    """The workspace's state, then its limit, then the request."""
    service, shop, workspace_id = hosted
    update = service.engine.workspaces.update
    shop.people["nobody"] = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"
    check_envelope(ask(service, "nobody", "GET", "/campaigns"), 403, "workspace_unavailable")
    service.run(update, workspace_id, WorkspaceUpdate(request_limit=1))
    assert ask(service, "ann", "GET", "/campaigns").status_code == 200
    check_envelope(ask(service, "ann", "POST", "/sms-campaigns", content=b"no JSON"), 429, "rate_limited")
    service.run(update, workspace_id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
    check_envelope(ask(service, "ann", "GET", "/campaigns"), 403, "workspace_unavailable")


@pytest.mark.parametrize("wrong", [17, RuntimeError("secret of the host")])
def test_an_error_of_the_host_is_not_sent(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A 500 in the envelope; the log has where it was raised."""
    shop = Shop()
    with served(shop) as service:
        shop.people["ann"] = wrong
        for path in ("/campaigns", "/calls/1"):
            answer = ask(service, "ann", "GET", path)
            check_envelope(answer, 500, "internal_error")
            assert "secret" not in answer.text
    assert any(record.exc_text for record in caplog.records)


def test_the_body_is_not_for_the_host() -> None:
    """One that was read there would be missing where it is needed: it cannot be read at all."""
    seen: list[str] = []

    async def authenticate(request: Request) -> str | None:
        try:
            await request.body()
        except RuntimeError as error:
            seen.append(str(error))
        return None

    with served(authenticate) as service:
        check_envelope(service.client.post("/sms", json={"to": "+14155550101", "body": "x"}), 401, "unauthorized")
    assert len(seen) == 1


def test_what_needs_no_key_needs_nobody(hosted: tuple[Service, Shop, str]) -> None:
    """Health, the contract, and the callbacks of providers, which are signed."""
    service, _, _ = hosted
    for path in ("/healthz", "/readyz", "/openapi.yaml", "/docs"):
        assert ask(service, None, "GET", path).status_code == 200
    assert ask(service, None, "POST", "/webhooks/none").status_code == 404


def test_what_is_no_function_is_refused() -> None:
    """Where the app is made."""
    with pytest.raises(ConfigError, match="authenticate is 'ann'"):
        create_app("memory://", authenticate="ann")  # type: ignore[arg-type]
