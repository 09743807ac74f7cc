"""docs/interface.md#4.1: POST /calls."""

from __future__ import annotations

from typing import Any

import pytest

from outreach import NewAgent
from tests.interface.conftest import Sending, until
from tests.server.conftest import Service, Tenant
from tests.server.test_errors import check_envelope


def make_agent(service: Service, tenant: Tenant, **fields: Any) -> str:
    """Make an agent and return its id."""
    return str(service.run(service.engine.agents.create, tenant.workspace.id, NewAgent(name="A", **fields)).id)


@pytest.mark.sentence("4.1 queues", "4.1 201", "2.1 success", "2.1 provider")
def test_a_call_is_queued(tenant: Tenant) -> None:
    """Section 4.1: a call is queued, and 201 answers with success and provider; it is not placed yet."""
    answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "+14155550102"})
    assert (answer.status_code, answer.json()) == (201, {"success": True, "provider": "simulator"})
    assert answer.json()["provider"] == tenant.agent.provider
    identifier = answer.headers["Location"].removeprefix("/calls/")
    assert tenant.get(f"/calls/{identifier.upper()}").json()["status"] == "queued"


@pytest.mark.sentence("4.1 poll")
def test_the_status_can_be_polled(sending: Sending) -> None:
    """Section 4.1: dispatch is asynchronous; use GET /calls/{id} to poll status."""
    tenant = sending.service.tenant()
    call_id = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "+14155550102"}).json()["callId"]
    ended = until(lambda: (record := tenant.get(f"/calls/{call_id}").json())["ended_at"] and record)
    assert ended["status"] in {"completed", "busy", "no-answer", "failed"}
    assert [entry["to"] for entry in sending.accepted()] == ["+14155550102"]


@pytest.mark.sentence("4.1 agent_id")
def test_which_agents_may_call(service: Service) -> None:
    """Section 4.1: of the calling workspace, outbound or inbound with allow_outbound set to true."""
    tenant, other = service.tenant(), service.tenant()
    inbound = make_agent(service, tenant, direction="inbound")
    allowed = make_agent(service, tenant, direction="inbound", allow_outbound=True)
    agents = [(tenant.agent.id, 201), (allowed, 201), (inbound, 409), (other.agent.id, 404)]
    for agent_id, status in agents:
        assert tenant.post("/calls", {"agent_id": agent_id, "to": "+14155550102"}).status_code == status
    for wrong in ("x", 1, None, ...):
        body = {"agent_id": wrong, "to": "+14155550102"} if wrong is not ... else {"to": "+14155550102"}
        assert tenant.post("/calls", body).status_code == 400


@pytest.mark.sentence("4.1 to", "8 to", "7 code invalid_request", "row to")
def test_which_numbers_are_called(tenant: Tenant) -> None:
    r"""Section 4.1: ^\+?[1-9]\d{6,14}$, in ASCII digits and the whole string; else 400 with code invalid_request."""
    for right in ("1234567", "+1234567", "123456789012345", "+123456789012345"):
        assert tenant.post("/calls", {"agent_id": tenant.agent.id, "to": right}).status_code in {201, 409}
    wrongs: list[Any] = [
        "123456", "1234567890123456", "0123456789", "+0123456789", "++1234567", "12345 67", "1234567\n",
        "１２３４５６７", "", 14155550102, None,
    ]  # fmt: skip
    for wrong in wrongs:
        error = check_envelope(
            tenant.post("/calls", {"agent_id": tenant.agent.id, "to": wrong}), 400, "invalid_request"
        )
        assert [detail["path"] for detail in error["details"]] == ["to"]
