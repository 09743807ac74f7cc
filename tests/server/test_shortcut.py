from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from outreach import Campaign, WorkspaceStatus, WorkspaceUpdate
from tests.server.conftest import Service, Tenant, serve

PATHS = ("/sms-campaigns", "/campaigns")
QUERIES = (
    "",
    "?page=2&page_size=1",
    "?status=ready",
    "?search=tum",
    "?page=0&status=x",
    "?search=%FF",
    "?page=1&page=2",
)


@pytest.fixture(params=["", "/mounted/here"], ids=["short", "long"])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A server that is asked the short way, and one whose mount path makes the way long."""
    yield from serve("memory://", mount=request.param)


@pytest.fixture
def both() -> Iterator[tuple[Service, Service]]:
    """Both of them."""
    for short in serve("memory://"):
        for long in serve("memory://", mount="/mounted/here"):
            yield short, long


def told(answer: Any) -> tuple[int, dict[str, str], Any]:
    """Return what an answer says, but for what is its own: identifiers and times."""
    headers = {name: value for name, value in answer.headers.items() if name not in {"x-request-id", "content-length"}}
    body = answer.json()
    if "error" in body:
        assert body["error"].pop("request_id") == answer.headers["X-Request-Id"]
    else:
        body["data"] = [one["name"] for one in body["data"]]
    return answer.status_code, headers, body


@pytest.mark.parametrize("path", PATHS)
def test_both_ways_say_the_same(both: tuple[Service, Service], path: str) -> None:
    """Answers and refusals have the same headers too: a caller cannot tell which way was taken."""
    tenants = [service.tenant(request_limit=None) for service in both]
    for tenant in tenants:
        tenant.create(name="Autumn")
        tenant.create(name="Winter")
    for query in QUERIES:
        short, long = (told(tenant.get(path + query)) for tenant in tenants)
        assert short == long, query
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        short, long = (told(tenant.client.get(path, headers=headers)) for tenant in tenants)
        assert short == long
        assert short[0] == 401
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        short, long = (told(tenant.request(method, path)) for tenant in tenants)
        assert short == long
        assert short[0] == 405
    for service, tenant in zip(both, tenants, strict=True):
        change = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
        service.run(service.engine.workspaces.update, tenant.workspace.id, change)
    short, long = (told(tenant.get(path)) for tenant in tenants)
    assert short == long
    assert short[0] == 403


@pytest.mark.parametrize("path", PATHS)
def test_a_request_keeps_its_id_and_a_strange_one_is_replaced(service: Service, path: str) -> None:
    """docs/interface.md#error-envelope: what comes from outside never gets into log lines and headers unchecked."""
    tenant = service.tenant()
    for sane in ("abc-1", "01932f70-0f9e-7c55-a3c0-6b1f4a9d2e88", "Root=1-67891233-abcdef"):
        assert tenant.get(path, headers={"X-Request-Id": sane}).headers["X-Request-Id"] == sane
    for strange in ("", "a b", "x" * 129, '"><script>', "a;b", "é"):
        given = tenant.get(path, headers={"X-Request-Id": strange.encode()}).headers["X-Request-Id"]
        assert given != strange
        assert len(given) == 32


def test_a_head_is_answered_as_ever(service: Service) -> None:
    """Without a body, and with the headers of the list."""
    tenant: Tenant = service.tenant()
    answer = tenant.request("HEAD", "/sms-campaigns")
    assert (answer.status_code, answer.text) == (200, "")


def test_no_tenant_sees_what_another_asked_for_before(service: Service) -> None:
    """The same request with another key gets another answer, whichever tenant asked first."""
    one, two = service.tenant(), service.tenant()
    one.create(name="One")
    two.create(name="Two")
    for _ in range(3):
        for tenant, name in ((one, "One"), (two, "Two")):
            assert [it["name"] for it in tenant.get("/sms-campaigns").json()["data"]] == [name]
            assert [it["name"] for it in tenant.get("/sms-campaigns?search=o").json()["data"]] == [name]


def test_a_key_that_is_revoked_gets_nothing_that_is_kept(service: Service) -> None:
    """What was answered a moment ago is answered to nobody whose key is worthless by now."""
    tenant = service.tenant()
    tenant.create()
    assert tenant.get("/sms-campaigns").status_code == 200
    [key] = service.run(service.engine.api_keys.list, tenant.workspace.id)
    service.run(service.engine.api_keys.revoke, tenant.workspace.id, key.id)
    assert tenant.get("/sms-campaigns").status_code == 401


def test_a_campaign_that_moves_shows_at_once(service: Service) -> None:
    """What was answered a moment ago is not answered again."""
    tenant = service.tenant()
    made: list[Campaign] = []
    for name in ("First", "Second"):
        identifier = tenant.create(name=name)["id"]
        made.append(service.run(service.engine.campaigns.get_anywhere, identifier))
        assert tenant.get("/sms-campaigns").json()["pagination"]["total"] == len(made)
    service.run(service.engine.campaigns.cancel, tenant.workspace.id, made[0].id)
    statuses = [one["status"] for one in tenant.get("/sms-campaigns").json()["data"]]
    assert statuses == ["draft", "cancelled"]
