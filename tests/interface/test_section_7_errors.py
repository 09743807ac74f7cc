"""docs/interface.md#7: each status of each operation is reached, in one envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from outreach import WorkspaceStatus, WorkspaceUpdate
from tests.interface.sentences import STATUSES
from tests.server.conftest import Service, Tenant, sms_body
from tests.server.test_errors import check_envelope

UNKNOWN = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"
CODES = {
    400: "invalid_request", 401: "unauthorized", 403: "workspace_unavailable", 404: "not_found",
    409: "call_in_progress", 429: "rate_limited",
}  # fmt: skip


def good(tenant: Tenant) -> dict[str, Any]:
    """Return a body for each operation with which it is carried out; a GET has none."""
    return {
        "POST /calls": {"agent_id": tenant.agent.id, "to": "+14155550102"},
        "GET /sms-campaigns": None,
        "POST /sms-campaigns": sms_body(),
        "PATCH /sms/settings": {},
    }


def ask(tenant: Tenant, operation: str, body: Any, query: str = "") -> Any:
    """Send the request of an operation."""
    method, path = operation.split()
    return tenant.request(method, path + query, **({} if body is None else {"json": body}))


def refuse(service: Service, operation: str, status: int) -> Any:
    """Bring an operation to a status."""
    tenant = service.tenant(request_limit=1) if status == 429 else service.tenant()
    body = good(tenant)[operation]
    provoke: dict[int, Callable[[], Any]] = {
        400: lambda: ask(tenant, operation, None if body is None else [], "?page=0"),
        401: lambda: tenant.client.request(*operation.split()),
        403: lambda: (suspend(service, tenant), ask(tenant, operation, body))[1],
        404: lambda: ask(tenant, operation, body | {"agent_id": UNKNOWN}),
        409: lambda: [ask(tenant, operation, body) for _ in range(2)][1],
        429: lambda: [ask(tenant, operation, body) for _ in range(2)][1],
    }
    return provoke[status]()


def suspend(service: Service, tenant: Tenant) -> None:
    """Suspend a workspace."""
    change = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
    service.run(service.engine.workspaces.update, tenant.workspace.id, change)


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        pytest.param(operation, status, marks=pytest.mark.sentence(f"7 {operation} {status}"))
        for operation, statuses in STATUSES.items()
        for status in statuses
    ],
)
def test_a_status_of_an_operation(service: Service, operation: str, status: int) -> None:
    """Section 7: the operation answers so, in the envelope, with the code of the status."""
    check_envelope(refuse(service, operation, status), status, CODES[status])


@pytest.mark.sentence("7 one envelope", "row error envelope")
def test_5xx_comes_in_the_same_envelope(memory_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 7: errors outside 4xx come in the same envelope, and so do unknown paths and methods."""
    tenant = memory_service.tenant()

    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("internals")

    monkeypatch.setattr(memory_service.engine.http, "list_campaigns", broken)
    answer = tenant.get("/sms-campaigns")
    check_envelope(answer, 500, "internal_error")
    assert "internals" not in answer.text
    check_envelope(tenant.get("/unknown"), 404, "not_found")
    check_envelope(tenant.request("DELETE", "/calls"), 405, "method_not_allowed")
    unauthorized = tenant.client.get("/campaigns")
    check_envelope(unauthorized, 401, "unauthorized")
    assert unauthorized.headers["WWW-Authenticate"] == "Bearer"
