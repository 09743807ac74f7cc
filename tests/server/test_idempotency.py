from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Service, Tenant, sms_body
from tests.server.test_bodies import JSON, large_body
from tests.server.test_errors import check_envelope


def key(text: str) -> dict[str, str]:
    """Return the header for a key."""
    return {"Idempotency-Key": text}


def bodies(tenant: Tenant) -> dict[str, dict[str, Any]]:
    """Return a body for each operation that takes a key."""
    return {
        "/sms-campaigns": sms_body(),
        "/campaigns": {"name": "n", "agent_id": tenant.agent.id, "recipients": [{"phone_number": "1"}]},
        "/calls": {"agent_id": tenant.agent.id, "to": "14155550102"},
        "/sms": {"to": "14155550103", "body": "x"},
    }


def test_replays_count_against_the_limit(service: Service) -> None:
    """docs/interface.md#safe-retry."""
    tenant = service.tenant(request_limit=2)
    statuses = [tenant.post("/sms-campaigns", sms_body(), headers=key("k")).status_code for _ in range(3)]
    assert statuses == [201, 201, 429]


@pytest.mark.parametrize("value", [b"", b"x" * 256, b"a b", b"\xc3\xa9", b"a\tb"])
@pytest.mark.parametrize("path", ["/sms-campaigns", "/campaigns", "/calls", "/sms"])
def test_a_malformed_key_is_refused(memory_tenant: Tenant, path: str, value: bytes) -> None:
    """docs/interface.md#safe-retry: 1 to 255 visible ASCII characters."""
    answer = memory_tenant.post(path, bodies(memory_tenant)[path], headers={"Idempotency-Key": value})
    assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == "Idempotency-Key"


def test_a_key_of_255_characters_is_taken(memory_tenant: Tenant) -> None:
    """docs/interface.md#safe-retry: the longest key."""
    assert memory_tenant.post("/sms-campaigns", sms_body(), headers=key("~" * 255)).status_code == 201


def test_a_large_body_is_carried_out_once(memory_service: Service) -> None:
    """docs/interface.md#safe-retry: bodies on disk are told apart by their digest."""
    tenant = memory_service.tenant()
    raw = large_body()
    answers = [tenant.post("/sms-campaigns", content=raw, headers=JSON | key("k")) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    changed = tenant.post(
        "/sms-campaigns", content=raw.replace(b"+14150000007", b"+14150000008"), headers=JSON | key("k")
    )
    check_envelope(changed, 400, "invalid_request")


@pytest.mark.parametrize("value", ["0", "91", "1.5", "x", "-1", "", "030"])
def test_malformed_days_are_refused(memory_tenant: Tenant, value: str) -> None:
    """From 1 to 90, as a whole number."""
    answer = memory_tenant.post("/sms", bodies(memory_tenant)["/sms"], headers=key("k") | {"Idempotency-Days": value})
    assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == "Idempotency-Days"


def test_days_need_a_key(memory_tenant: Tenant) -> None:
    """Alone they would keep nothing."""
    answer = memory_tenant.post("/sms", bodies(memory_tenant)["/sms"], headers={"Idempotency-Days": "30"})
    assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == "Idempotency-Days"


@pytest.mark.parametrize(("days", "expected"), [({}, 1), ({"Idempotency-Days": "30"}, 30)])
@pytest.mark.parametrize("path", ["/sms-campaigns", "/calls", "/sms"])
def test_a_key_is_kept_for_its_days(memory_service: Service, path: str, days: dict[str, str], expected: int) -> None:
    """By all that takes a key; the answer is the same."""
    tenant = memory_service.tenant()
    answer = tenant.post(path, bodies(tenant)[path], headers=key("k") | days)
    assert answer.is_success
    operation = {"/sms-campaigns": "createSmsCampaign", "/calls": "createCall", "/sms": "sendSms"}[path]
    stored = memory_service.run(
        memory_service.engine._storage.read, lambda tx: tx.requests.stored(tenant.workspace.id, operation, "k")
    )
    left = stored.expires_at - memory_service.engine.now()
    assert expected - 1 <= left.total_seconds() / 86_400 <= expected
