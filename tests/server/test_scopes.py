"""Scopes of keys: what each operation needs, in code, in the documentation and in the answers."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import pytest

from outreach import WorkspaceStatus, WorkspaceUpdate
from outreach.models import API_SCOPES, ApiScope
from outreach_server import Identity
from outreach_server.auth import SCOPES_BY_OPERATION, scopes_of
from tests.contract.document import operations
from tests.server.conftest import Service, serve
from tests.server.test_errors import check_envelope

OPERATIONS = [(path, method, operation["operationId"]) for path, method, operation in operations()]
REFUSED = [
    (path, method, operation, scope)
    for path, method, operation in OPERATIONS
    for scope in API_SCOPES
    if scope not in scopes_of(operation, method.upper())
]


def filled(path: str) -> str:
    """Return a path whose parameters name nothing."""
    return re.sub(r"\{\w+\}", "1", path)


def test_each_route_has_its_scopes() -> None:
    """The table names operations of the contract; others have those of their method."""
    assert SCOPES_BY_OPERATION.keys() <= {operation for _, _, operation in OPERATIONS}
    for path, method, operation in OPERATIONS:
        needed = scopes_of(operation, method.upper())
        assert set(needed) <= set(API_SCOPES)
        if operation not in SCOPES_BY_OPERATION:
            assert path.startswith("/manage/")
            assert needed == (("read", "manage") if method == "get" else ("manage",))


@pytest.mark.parametrize(("path", "method", "operation", "scope"), REFUSED)
def test_a_key_without_the_scope_gets_403(
    memory_service: Service, path: str, method: str, operation: str, scope: ApiScope
) -> None:
    """Before anything of the request is looked at, and with the scopes that would do."""
    tenant = memory_service.tenant(request_limit=1)
    key = memory_service.run(memory_service.engine.api_keys.create, tenant.workspace.id, scopes=[scope]).api_key
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": ""}
    for _ in range(2):
        answer = memory_service.client.request(method.upper(), filled(path), headers=headers, content=b"no JSON")
        error = check_envelope(answer, 403, "insufficient_scope")
        assert f"needs the scope {' or '.join(scopes_of(operation, method.upper()))}" in error["message"]
    update = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
    memory_service.run(memory_service.engine.workspaces.update, tenant.workspace.id, update)
    answer = memory_service.client.request(method.upper(), filled(path), headers=headers)
    check_envelope(answer, 403, "workspace_unavailable")


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_a_key_with_each_scope_of_the_operation_passes(
    memory_service: Service, path: str, method: str, operation: str
) -> None:
    """The request then fails for its own faults, if at all."""
    tenant = memory_service.tenant()
    for scope in scopes_of(operation, method.upper()):
        key = memory_service.run(memory_service.engine.api_keys.create, tenant.workspace.id, scopes=[scope]).api_key
        headers = {"Authorization": f"Bearer {key}"}
        answer = memory_service.client.request(method.upper(), filled(path), headers=headers, content=b"no JSON")
        assert answer.status_code in {200, 400, 404}, answer.text


class Host:
    """A host that says which scopes the caller has."""

    def __init__(self) -> None:
        self.found: Any = None

    async def __call__(self, _: Any) -> Any:
        """Return what the test has put here."""
        return self.found


def test_a_host_returns_scopes_as_well() -> None:
    """A workspace's identifier alone may do what keys could do before there were scopes."""
    host = Host()
    for service in serve("memory://", authenticate=host):
        workspace_id = service.tenant().workspace.id
        host.found = Identity(workspace_id=workspace_id, scopes=["read"])
        assert service.client.get("/campaigns").status_code == 200
        error = check_envelope(service.client.post("/sms"), 403, "insufficient_scope")
        # Nobody has an API key here, nor is told to create another.
        assert error["message"] == "You may not do this here: it needs the scope send."
        host.found = workspace_id
        check_envelope(service.client.post("/sms"), 400, "invalid_request")
        assert Identity(workspace_id=workspace_id).scopes == ("send",)


@pytest.mark.parametrize("scopes", ["send", ["all"]])
def test_wrong_scopes_of_a_host_are_not_sent(scopes: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A 500 in the envelope; the log says which there are."""
    host = Host()
    for service in serve("memory://", authenticate=host):
        host.found = Identity(workspace_id=service.tenant().workspace.id, scopes=scopes)
        check_envelope(service.client.get("/campaigns"), 500, "internal_error")
    told = chain.from_iterable(str(record.exc_text) for record in caplog.records)
    assert "there are send, manage, read" in "".join(told)


def test_an_authenticate_function_that_is_not_async_is_reported_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The line does not say merely that the answer cannot be awaited."""
    at_once: Any = lambda request: None  # noqa: E731
    for service in serve("memory://", authenticate=at_once):
        check_envelope(service.client.get("/campaigns"), 500, "internal_error")
    told = chain.from_iterable(str(record.exc_text) for record in caplog.records)
    assert "authenticate must be an async function" in "".join(told)
