"""docs/interface.md#5: authentication."""

from __future__ import annotations

import pytest

from outreach import WorkspaceStatus, WorkspaceUpdate
from tests.server.conftest import Service, Tenant
from tests.server.test_admission import OPERATIONS
from tests.server.test_errors import check_envelope


@pytest.mark.sentence("5 rule 1", "5 rule 4")
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_needs_a_key(memory_tenant: Tenant, method: str, path: str) -> None:
    """Section 5, rules 1 and 4: a missing, malformed or invalid key returns 401, which says how to send one."""
    client, key = memory_tenant.client, memory_tenant.key
    malformed = ("", key, f"Basic {key}", "Bearer", "Bearer ", "Bearer é", f"Bearer {key}x", f"Bearer {key} {key}")
    for header in (None, *malformed):
        headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
        answer = client.request(method, path, headers=headers)
        check_envelope(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "RateLimit" not in answer.headers


@pytest.mark.sentence("5 rule 2")
def test_a_key_is_made_in_the_application(service: Service) -> None:
    """Section 5, rule 2: keys come from the application; no operation of the interface makes one."""
    tenant = service.tenant()
    key = service.run(service.engine.api_keys.create, tenant.workspace.id, name="second")
    headers = {"Authorization": f"Bearer {key.api_key}"}
    assert tenant.client.get("/sms-campaigns", headers=headers).status_code == 200


@pytest.mark.sentence("5 rule 5")
@pytest.mark.parametrize("status", [s for s in WorkspaceStatus if s is not WorkspaceStatus.ACTIVE])
def test_a_workspace_that_may_not_work(service: Service, status: WorkspaceStatus) -> None:
    """Section 5, rule 5: unavailable, suspended or paywalled returns 403, for every operation."""
    tenant = service.tenant()
    service.run(service.engine.workspaces.update, tenant.workspace.id, WorkspaceUpdate(status=status))
    for method, path in OPERATIONS:
        check_envelope(tenant.request(method, path), 403, "workspace_unavailable")
