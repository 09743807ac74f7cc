from __future__ import annotations

import pytest

from tests.server.conftest import Service, Tenant, sms_body
from tests.server.test_errors import check_envelope

OPERATIONS = [
    ("POST", "/calls"),
    ("GET", "/calls/01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"),
    ("GET", "/sms-campaigns"),
    ("POST", "/sms-campaigns"),
    ("GET", "/campaigns"),
    ("POST", "/campaigns"),
    ("PATCH", "/sms/settings"),
    ("POST", "/sms"),
]


def test_two_keys_at_once_are_malformed(memory_tenant: Tenant) -> None:
    """Which of the two counts, nobody should have to guess."""
    header = ("Authorization", f"Bearer {memory_tenant.key}")
    check_envelope(memory_tenant.client.get("/campaigns", headers=[header, header]), 401, "unauthorized")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR "])
def test_the_scheme_may_be_in_any_case(memory_tenant: Tenant, scheme: str) -> None:
    """RFC 9110: schemes are case-insensitive."""
    headers = {"Authorization": f"{scheme} {memory_tenant.key}"}
    assert memory_tenant.client.get("/campaigns", headers=headers).status_code == 200


def test_sms_campaigns_can_be_off(service: Service) -> None:
    """docs/interface.md#4.3, rule 1; listing them stays allowed, and calling campaigns are not touched."""
    tenant = service.tenant(sms_campaigns_enabled=False)
    check_envelope(tenant.post("/campaigns", sms_body(channel="sms")), 403, "sms_campaigns_disabled")
    check_envelope(tenant.post("/campaigns", {"channel": "sms"}), 403, "sms_campaigns_disabled")
    assert tenant.get("/sms-campaigns").json()["pagination"]["total"] == 0
    call = {"name": "n", "agent_id": tenant.agent.id, "recipients": [{"phone_number": "1"}]}
    assert tenant.post("/campaigns", call).status_code == 201


def test_without_a_limit_there_are_no_limit_headers(memory_tenant: Tenant) -> None:
    """A workspace may have no limit."""
    assert "RateLimit" not in memory_tenant.get("/campaigns").headers


def test_paths_that_need_no_key(memory_service: Service) -> None:
    """/healthz, /readyz, /openapi.yaml and /docs are open and show nothing of any workspace."""
    for path in ("/healthz", "/readyz", "/openapi.yaml", "/docs"):
        assert memory_service.client.get(path).status_code == 200
        assert memory_service.client.head(path).status_code == 200
