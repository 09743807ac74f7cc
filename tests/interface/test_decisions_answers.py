"""The rows of docs/interface.md#10: errors, answers, limits, and repeated requests."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from outreach import AgentUpdate, NewAgent, NewWorkspace, WorkspaceStatus, WorkspaceUpdate
from tests.contract.document import SCHEMAS
from tests.interface.conftest import Sending
from tests.server.conftest import Service, Tenant, serve, sms_body
from tests.server.test_errors import check_envelope

UNKNOWN = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"


@pytest.mark.sentence("row carrier identifiers")
def test_carrier_identifiers(memory_tenant: Tenant) -> None:
    """Row "carrier identifiers": twilio, telnyx, vonage, and no others."""
    for carrier in ("twilio", "telnyx", "vonage"):
        assert memory_tenant.create(sms_carrier=carrier)["sms_carrier"] == carrier
    assert memory_tenant.post("/sms-campaigns", sms_body(sms_carrier="Twilio")).status_code == 400


@pytest.mark.sentence("row codes", "row agents")
def test_codes_of_conflicts(service: Service) -> None:
    """Rows "codes" and "agents": of another workspace 404; inactive 409; inbound without allow_outbound 409."""
    tenant, other = service.tenant(), service.tenant()
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550109")
    create = service.engine.agents.create
    inactive = service.run(create, tenant.workspace.id, NewAgent(name="I", is_active=False))
    inbound = service.run(create, tenant.workspace.id, NewAgent(name="N", direction="inbound"))
    for agent_id, to, status, code in (
        (other.agent.id, "+14155550102", 404, "not_found"),
        (inactive.id, "+14155550102", 409, "agent_inactive"),
        (inbound.id, "+14155550102", 409, "agent_not_outbound"),
        (tenant.agent.id, "+14155550109", 409, "recipient_unsubscribed"),
    ):
        check_envelope(tenant.post("/calls", {"agent_id": agent_id, "to": to}), status, code)


@pytest.mark.sentence("row order of checks")
def test_the_order_of_checks(service: Service) -> None:
    """Row "order of checks": 401, 403, 429, then 400, then 404, then 409."""
    tenant = service.tenant(request_limit=4)
    update = service.engine.agents.update
    service.run(update, tenant.workspace.id, tenant.agent.id, AgentUpdate(is_active=False))
    both_wrong = {"agent_id": UNKNOWN, "to": "x"}
    assert tenant.client.post("/calls", json=both_wrong).status_code == 401
    assert tenant.post("/calls", both_wrong).status_code == 400
    assert tenant.post("/calls", {"agent_id": UNKNOWN, "to": "+14155550102"}).status_code == 404
    assert tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "+14155550102"}).status_code == 409
    assert tenant.get("/sms-campaigns").status_code == 200
    assert tenant.post("/calls", both_wrong).status_code == 429
    change = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
    service.run(service.engine.workspaces.update, tenant.workspace.id, change)
    assert tenant.post("/calls", both_wrong).status_code == 403


@pytest.mark.sentence("row statuses")
def test_no_other_statuses() -> None:
    """Row "statuses": what another API would call 413, 415 or 422 is a 400 here."""
    for service in serve("memory://", max_body_bytes=1000):
        tenant = service.tenant()
        answers = [
            tenant.post("/sms-campaigns", sms_body(name="x" * 2000)),
            tenant.post("/sms-campaigns", content=b"a=b", headers={"Content-Type": "text/plain"}),
            tenant.post("/sms-campaigns", content=b"{", headers={"Content-Type": "application/json"}),
            tenant.post("/sms-campaigns", {}),
        ]
        assert [answer.status_code for answer in answers] == [400] * 4


@pytest.mark.sentence("row callId", "2.1 callId")
def test_the_call_id(sending: Sending) -> None:
    """Row "callId": in the answer when the provider accepts in time; GET takes it and ours; Location is there."""
    tenant, other = sending.service.tenant(), sending.service.tenant()
    answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "+14155550102"})
    by_location = tenant.get(answer.headers["Location"]).json()
    assert by_location["callId"] == answer.json()["callId"]
    assert tenant.get(f"/calls/{by_location['callId']}").json()["id"] == by_location["id"]
    for identifier in (by_location["id"], by_location["callId"]):
        check_envelope(other.get(f"/calls/{identifier}"), 404, "not_found")
    assert answer.json()["provider"] == "simulator"


@pytest.mark.sentence("row callId")
def test_the_call_id_is_absent_where_nothing_dispatches() -> None:
    """Row "callId": absent then; Location has the mount path."""
    for service in serve("memory://", mount="/api"):
        tenant = service.tenant()
        answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "+14155550102"})
        assert "callId" not in answer.json()
        assert answer.headers["Location"].startswith("/api/calls/")


@pytest.mark.sentence("row 409 call_in_progress")
def test_an_open_call(tenant: Tenant) -> None:
    """Row "409 call_in_progress": an open call of the same agent to the same number."""
    call = {"agent_id": tenant.agent.id, "to": "+14155550102"}
    assert tenant.post("/calls", call).status_code == 201
    check_envelope(tenant.post("/calls", call), 409, "call_in_progress")
    assert tenant.post("/calls", call | {"to": "+14155550103"}).status_code == 201


@pytest.mark.sentence("row request limit", "5 rule 3", "8 request rate")
def test_the_request_limit(service: Service) -> None:
    """Row "request limit": all in one burst; headers tell; 600 by default; a minute later it is whole again.

    Section 5, rule 3, and section 8: one limit per workspace, shared by all its keys, for all operations.
    """
    tenant, other = service.tenant(request_limit=3), service.tenant(request_limit=3)
    second = service.run(service.engine.api_keys.create, tenant.workspace.id).api_key
    answers = [tenant.get("/campaigns"), tenant.post("/sms", {}), tenant.get("/calls/none")]
    assert [answer.status_code for answer in answers] == [200, 400, 404]
    for left, answer in zip((2, 1, 0), answers, strict=True):
        assert answer.headers["RateLimit-Policy"] == '"workspace";q=3;w=60'
        assert answer.headers["RateLimit"] in {f'"workspace";r={left};t={t}' for t in range(50, 61)}
    check_envelope(tenant.post("/sms-campaigns", sms_body()), 429, "rate_limited")
    refused = tenant.client.get("/campaigns", headers={"Authorization": f"Bearer {second}"})
    check_envelope(refused, 429, "rate_limited")
    seconds = int(refused.headers["Retry-After"])
    assert refused.headers["RateLimit"] == f'"workspace";r=0;t={seconds}'
    assert other.get("/sms-campaigns").status_code == 200
    service.clock.ahead += timedelta(seconds=seconds)
    assert tenant.get("/campaigns").status_code == 200
    assert service.run(service.engine.workspaces.create, NewWorkspace(name="Default")).request_limit == 600


@pytest.mark.sentence("row safe retry")
def test_a_safe_retry(service: Service) -> None:
    """Row "safe retry": same key and body replay the answer; another body is a 400; a 4xx is not stored."""
    tenant = service.tenant()
    bodies: dict[str, dict[str, Any]] = {
        "/sms-campaigns": sms_body(),
        "/campaigns": {"agent_id": tenant.agent.id, "name": "n", "recipients": [{"phone_number": "1"}]},
        "/calls": {"agent_id": tenant.agent.id, "to": "+14155550102"},
        "/sms": {"to": "+14155550102", "body": "x"},
    }
    for path, body in bodies.items():
        key = {"Idempotency-Key": "k1"}
        assert tenant.post(path, {}, headers=key).status_code == 400
        first, again = (tenant.post(path, body, headers=key) for _ in range(2))
        assert (first.status_code, first.content) == (201, again.content)
        assert first.headers.get("Location") == again.headers.get("Location")
        assert tenant.post(path, body | {"unknown": 1}, headers=key).status_code == 400
    assert tenant.get("/campaigns").json()["pagination"]["total"] == 2


@pytest.mark.sentence("row POST /sms")
def test_a_single_message(tenant: Tenant) -> None:
    """Row "POST /sms": {to, body, from_number?, carrier?}, 201 {success, id, carrier, status, segments}."""
    full = {"to": "+14155550102", "body": "x" * 161, "from_number": "+14155550199", "carrier": "telnyx"}
    answer = tenant.post("/sms", full)
    assert (answer.status_code, set(answer.json())) == (201, {"success", "id", "carrier", "status", "segments"})
    assert (answer.json()["carrier"], answer.json()["segments"]) == ("telnyx", 2)
    assert tenant.post("/sms", {"to": "+14155550102", "body": "x"}).status_code == 201
    assert tenant.post("/sms", {"to": "1000000", "body": "x"}).status_code == 201
    for wrong in ({"to": "+1"}, {"body": ""}, {"carrier": "x"}, {"to": None}):
        assert tenant.post("/sms", full | wrong).status_code == 400


@pytest.mark.sentence("row GET /calls/{id}")
def test_a_call_record(tenant: Tenant) -> None:
    """Row "GET /calls/{id}": its fields, and 404 for what names no call."""
    location = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "+14155550102"}).headers["Location"]
    assert list(tenant.get(location).json()) == list(SCHEMAS["Call"]["properties"])
    check_envelope(tenant.get("/calls/unknown"), 404, "not_found")


@pytest.mark.sentence("row GET /campaigns, POST /campaigns")
def test_campaigns_of_both_channels(service: Service) -> None:
    """Row "GET /campaigns, POST /campaigns": channel selects the body, default call; ready when its agent may call."""
    tenant = service.tenant()
    inactive = service.run(service.engine.agents.create, tenant.workspace.id, NewAgent(name="I", is_active=False))
    people = [{"phone_number": "1"}]
    call = {"agent_id": tenant.agent.id, "name": "voice", "recipients": people}
    answers = [
        tenant.post("/campaigns", call),
        tenant.post("/campaigns", call | {"channel": "call", "agent_id": inactive.id}),
        tenant.post("/campaigns", sms_body(channel="sms")),
    ]
    found = [(answer.json()["channel"], answer.json()["status"]) for answer in answers]
    assert found == [("call", "ready"), ("call", "draft"), ("sms", "draft")]
    assert tenant.get("/campaigns").json()["pagination"]["total"] == 3
    assert tenant.post("/campaigns", call | {"channel": "fax"}).status_code == 400
    assert tenant.post("/campaigns", call | {"agent_id": UNKNOWN}).status_code == 404
    assert tenant.post("/campaigns", sms_body()).status_code == 400


@pytest.mark.sentence("row ids")
def test_ids(tenant: Tenant) -> None:
    """Row "ids": UUIDv7, monotonic."""
    ids = [tenant.create()["id"] for _ in range(5)]
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id_) for id_ in ids)
