"""The routes of the app and the operations of the contract are the same, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.routing import Route

from outreach_server import create_app
from tests.contract.checked_client import OPEN_PATHS, CheckedClient
from tests.contract.document import DOCUMENT, METHODS, operations, template_of


def served() -> set[tuple[str, str]]:
    """Return path and method of all that the app serves; HEAD comes with GET."""
    found = set()
    for route in create_app("memory://").routes:
        assert isinstance(route, Route)
        path = route.path.replace(":path}", "}")
        found |= {(path, method) for method in METHODS if hasattr(route.endpoint, method)}
    return found


def test_what_the_contract_describes_is_served_and_nothing_else() -> None:
    """Only health, /openapi.yaml, /docs with its files and where providers call back are served and not described."""
    described = {(path, method) for path, method, _ in operations()}
    callbacks = {f"{a}webhooks{b}{{account}}{c}" for a in ("/", "//") for b in ("/", "//") for c in ("", "/")}
    beside = {("/docs/{name}", "get"), *((path, "post") for path in callbacks)}
    assert served() == described | {(path, "get") for path in OPEN_PATHS} | beside


def test_the_contract_names_the_paths_that_it_leaves_out() -> None:
    """Its description lists the four that need no key."""
    assert all(f"`{path}`" in DOCUMENT["info"]["description"] for path in OPEN_PATHS)


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/calls", "/calls"),
        ("/calls/1", "/calls/{id}"),
        ("/calls/a/b", "/calls/{id}"),
        ("/calls/", None),
        ("/manage/campaigns/1", "/manage/campaigns/{id}"),
        ("/manage/campaigns/1/start", "/manage/campaigns/{id}/start"),
        ("/manage/campaigns/1/2", None),
        ("/sms/settings", "/sms/settings"),
        ("/healthz", None),
    ],
)
def test_a_path_is_found_in_the_contract(path: str, template: str | None) -> None:
    """The checked client looks answers up under the right operation."""
    assert template_of(path) == template


class _Answering:
    """An app that answers one thing."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self._status, self._body, self._headers = status, body, headers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})


JSON = {"Content-Type": "application/json", "X-Request-Id": "1"}
ERROR = b'{"error": {"code": "c", "message": "m", "request_id": "1", "details": []}}'


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (200, b"{}", JSON),
        (200, b'{"data": [], "pagination": {"page": 1, "page_size": 101, "total": 0}}', JSON),
        (404, ERROR, JSON),
        (400, b'{"error": "no"}', JSON),
        (400, ERROR, {"Content-Type": "application/json"}),
        (400, ERROR, {"Content-Type": "text/plain", "X-Request-Id": "1"}),
        (401, ERROR, JSON),
        (429, ERROR, JSON | {"Retry-After": "0"}),
    ],
)
def test_the_checked_client_has_teeth(status: int, body: bytes, headers: dict[str, str]) -> None:
    """An undeclared status, a missing or wrong header, a wrong type or body fails the test that asked."""
    client = CheckedClient(_Answering(status, body, headers))
    with pytest.raises(AssertionError):
        client.get("/sms-campaigns")
    with pytest.raises(AssertionError):
        CheckedClient(_Answering(201, body, headers)).get("/nothing")
