from __future__ import annotations

import pytest

from outreach import NewAgent, NewNumber, WorkspaceMode
from tests.server.conftest import Service, Tenant, serve
from tests.server.test_errors import check_envelope


def test_an_opt_out_stops_a_call_however_the_number_is_written(service: Service) -> None:
    """docs/interface.md#same-number: the workspace's region first, for calls as for messages and the register."""
    tenant = service.tenant(default_region="US")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "(415) 555-0102")
    for written in ("4155550102", "14155550102", "+14155550102"):
        answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": written})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "recipient_unsubscribed"), written
        assert tenant.post("/sms", {"to": written, "body": "Hi"}).status_code == 409, written


def test_no_field_of_a_request_lets_a_message_past_the_register(service: Service) -> None:
    """Only the engine's own confirmation of an opt-out passes it: what a request says of its purpose is ignored."""
    tenant = service.tenant()
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550102", source="keyword")
    for purpose in ("opt_out_confirmation", "help", "message"):
        body = {"to": "+14155550102", "body": "Hi", "purpose": purpose, "send_until": "2099-01-01T00:00:00Z"}
        answer = tenant.post("/sms", body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "recipient_unsubscribed")


def test_a_number_that_no_plan_knows_is_dialled_as_it_stands(service: Service) -> None:
    """docs/interface.md#to: the interface's pattern decides what is a number."""
    tenant = service.tenant(default_region="US")
    answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "9999999"})
    assert answer.status_code == 201
    assert tenant.get(answer.headers["Location"]).json()["to"] == "+9999999"


def test_what_is_wrong_with_the_request_is_reported_before_the_state_of_the_agent(service: Service) -> None:
    """400 comes before 409, and an agent that is not there (404) declares nothing.

    docs/interface.md#order-of-checks.
    """
    tenant = service.tenant()
    new = NewAgent(name="Other", is_active=False, placeholders=["name"])
    idle = service.run(service.engine.agents.create, tenant.workspace.id, new)
    body = {"agent_id": idle.id, "to": "+14155550102", "variables": {"other": 1}}
    assert tenant.post("/calls", body).status_code == 400
    assert tenant.post("/calls", body | {"variables": {"name": 1}}).status_code == 409


@pytest.mark.parametrize(
    ("mount", "written"), [("/caf\xe9", "/caf%C3%A9"), ("/\u65e5", "/%E6%97%A5"), ("/a b", "/a%20b")]
)
def test_the_location_is_a_path_wherever_the_server_is_mounted(mount: str, written: str) -> None:
    """A header takes no such text as it stands: the call would be queued, and the answer a 500, also to a retry."""
    for service in serve("memory://", mount=mount):
        tenant = service.tenant()
        answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "14155550102"})
        assert answer.status_code == 201
        assert answer.headers["Location"].startswith(f"{written}/calls/")


@pytest.mark.parametrize(
    "identifier",
    ["nothing", "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01", "%00", "a%2Fb", "%F0%9F%98%80", "..%2F", "%ED%A0%80", "+1"],
)
def test_an_unknown_call_is_a_404(tenant: Tenant, identifier: str) -> None:
    """docs/interface.md#get-call: any text is taken, and one that names no call is a 404."""
    check_envelope(tenant.get(f"/calls/{identifier}"), 404, "not_found")


def test_a_live_workspace_needs_something_to_send_with(service: Service) -> None:
    """docs/interface.md#post-sms: nothing to send with is a conflict with the workspace's state."""
    tenant = service.tenant(mode=WorkspaceMode.LIVE)
    for body in ({}, {"carrier": "telnyx"}):
        check_envelope(tenant.post("/sms", {"to": "14155550102", "body": "x"} | body), 409, "conflict")
    service.run(service.engine.numbers.create, tenant.workspace.id, NewNumber(phone="+14155550199", carrier="telnyx"))
    answer = tenant.post("/sms", {"to": "14155550102", "body": "x"})
    check_envelope(answer, 409, "conflict")
    assert "no account at telnyx" in answer.json()["error"]["message"]
