from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from outreach import Agent, AgentUpdate, NewAgent, NewNumber, WorkspaceMode
from tests.server.conftest import Service, Tenant, serve
from tests.server.test_errors import check_envelope

CALL_FIELDS = {
    "id", "agent_id", "campaign_id", "provider", "callId", "to", "from", "status", "outcome", "answered_by",
    "variables", "attempt", "error", "created_at", "dialed_at", "answered_at", "ended_at", "duration_seconds",
    "summary",
}  # fmt: skip


@pytest.fixture
def dispatching(database_url: str) -> Iterator[Service]:
    """Run a server that also sends."""
    yield from serve(database_url, dispatch=True)


def agent(service: Service, tenant: Tenant, **fields: Any) -> Agent:
    """Make another agent."""
    return service.run(service.engine.agents.create, tenant.workspace.id, NewAgent(name="Other", **fields))


def test_a_call_is_queued_and_can_be_looked_up(service: Service) -> None:
    """Without a dispatcher it is absent at once, and Location names the record.

    docs/interface.md#call-id and #get-call.
    """
    tenant = service.tenant()
    answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "14155550102", "variables": {"a": [1, None]}})
    assert (answer.status_code, answer.json()) == (201, {"success": True, "provider": "simulator"})
    record = tenant.get(answer.headers["Location"]).json()
    assert set(record) == CALL_FIELDS
    assert answer.headers["Location"] == f"/calls/{record['id']}"
    assert (record["to"], record["status"], record["callId"]) == ("+14155550102", "queued", None)
    assert (record["agent_id"], record["variables"]) == (tenant.agent.id, {"a": "[1,null]"})
    assert tenant.get(f"/calls/{record['id'].upper()}").json() == record


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


def test_variables_are_kept_as_written(tenant: Tenant) -> None:
    """docs/interface.md#variables: any JSON value, as text."""
    variables = (
        '{"s": "x", "i": 7, "f": 1.10, "e": 1e5, "big": 10000000000000000000000, "t": true, "n": null, '
        '"o": {"a": [1.0, "é"]}}'
    )
    raw = f'{{"agent_id": "{tenant.agent.id}", "to": "14155550102", "variables": {variables}}}'
    answer = tenant.post("/calls", content=raw.encode(), headers={"Content-Type": "application/json"})
    assert tenant.get(answer.headers["Location"]).json()["variables"] == {
        "s": "x", "i": "7", "f": "1.10", "e": "1e5", "big": "10000000000000000000000", "t": "true", "n": "",
        "o": '{"a":[1.0,"é"]}',
    }  # fmt: skip


def test_what_is_wrong_with_the_request_is_reported_before_the_state_of_the_agent(service: Service) -> None:
    """400 comes before 409, and an agent that is not there (404) declares nothing.

    docs/interface.md#order-of-checks.
    """
    tenant = service.tenant()
    idle = agent(service, tenant, is_active=False, placeholders=["name"])
    body = {"agent_id": idle.id, "to": "+14155550102", "variables": {"other": 1}}
    assert tenant.post("/calls", body).status_code == 400
    assert tenant.post("/calls", body | {"variables": {"name": 1}}).status_code == 409


def test_the_provider_accepts_in_time(dispatching: Service) -> None:
    """The provider's identifier, usable with GET /calls/{id}; another workspace does not see it.

    docs/interface.md#call-id.
    """
    tenant, other = dispatching.tenant(), dispatching.tenant()
    answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "+14155550102"})
    assert set(answer.json()) == {"success", "provider", "callId"}
    record = tenant.get(f"/calls/{answer.json()['callId']}").json()
    assert record["callId"] == answer.json()["callId"]
    assert tenant.get(answer.headers["Location"]).json()["id"] == record["id"]
    for identifier in (record["id"], record["callId"]):
        check_envelope(other.get(f"/calls/{identifier}"), 404, "not_found")


def test_the_location_has_the_mount_path() -> None:
    """docs/interface.md#call-id: Location, with the mount path."""
    for service in serve("memory://", mount="/v1/api"):
        tenant = service.tenant()
        answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "14155550102"})
        assert answer.headers["Location"].startswith("/v1/api/calls/")


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


def test_which_agents_may_call(service: Service) -> None:
    """docs/interface.md#agents: of another workspace 404; inactive 409; inbound without allow_outbound 409."""
    tenant, other = service.tenant(), service.tenant()
    inactive = agent(service, tenant, is_active=False)
    inbound = agent(service, tenant, direction="inbound")
    allowed = agent(service, tenant, direction="inbound", allow_outbound=True)
    for agent_id, status, code in (
        (other.agent.id, 404, "not_found"),
        (inactive.id, 409, "agent_inactive"),
        (inbound.id, 409, "agent_not_outbound"),
    ):
        check_envelope(tenant.post("/calls", {"agent_id": agent_id, "to": "14155550102"}), status, code)
    assert tenant.post("/calls", {"agent_id": allowed.id, "to": "14155550102"}).status_code == 201


def test_an_open_call_blocks_another(service: Service) -> None:
    """docs/interface.md#call-in-progress: of the same agent to the same number."""
    tenant = service.tenant()
    call = {"agent_id": tenant.agent.id, "to": "14155550102"}
    assert tenant.post("/calls", call).status_code == 201
    check_envelope(tenant.post("/calls", call | {"to": "+14155550102"}), 409, "call_in_progress")
    assert tenant.post("/calls", call | {"to": "+14155550103"}).status_code == 201
    assert tenant.post("/calls", call | {"agent_id": agent(service, tenant).id}).status_code == 201


def test_the_register_stops_calls_and_messages(service: Service) -> None:
    """docs/interface.md#register: POST /sms and POST /calls are a 409, by scope."""
    tenant = service.tenant()
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550101", scope="all")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550102", scope="sms")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550103", scope="call")
    calls = [tenant.post("/calls", {"agent_id": tenant.agent.id, "to": f"1415555010{n}"}) for n in (1, 2, 3)]
    messages = [tenant.post("/sms", {"to": f"1415555010{n}", "body": "x"}) for n in (1, 2, 3)]
    assert [answer.status_code for answer in calls] == [409, 201, 409]
    assert [answer.status_code for answer in messages] == [409, 409, 201]
    check_envelope(calls[0], 409, "recipient_unsubscribed")
    check_envelope(messages[0], 409, "recipient_unsubscribed")


def test_an_agent_that_declares_placeholders_takes_no_others(service: Service) -> None:
    """docs/interface.md#variables: a key that is none of the agent's placeholders is a 400."""
    tenant = service.tenant()
    service.run(
        service.engine.agents.update, tenant.workspace.id, tenant.agent.id, AgentUpdate(placeholders=["first_name"])
    )
    call = {"agent_id": tenant.agent.id, "to": "14155550102"}
    error = check_envelope(tenant.post("/calls", call | {"variables": {"name": 1}}), 400, "invalid_request")
    assert [detail["path"] for detail in error["details"]] == ["variables.name"]
    assert tenant.post("/calls", call | {"variables": {"first_name": 1}}).status_code == 201


def test_a_wrong_number_is_an_invalid_request(memory_tenant: Tenant) -> None:
    """docs/interface.md#4.1: code invalid_request."""
    answer = memory_tenant.post("/calls", {"agent_id": memory_tenant.agent.id, "to": "14155550102\n"})
    assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == "to"


def test_a_message_is_queued(service: Service) -> None:
    """docs/interface.md#post-sms: no footer is appended, so it does not count."""
    tenant = service.tenant()
    answer = tenant.post("/sms", {"to": "14155550102", "body": "x" * 160, "carrier": "vonage", "from_number": ""})
    assert answer.status_code == 201
    body = answer.json()
    assert set(body) == {"success", "id", "carrier", "status", "segments"}
    assert (body["success"], body["carrier"], body["status"], body["segments"]) == (True, "vonage", "queued", 1)


def test_a_live_workspace_needs_something_to_send_with(service: Service) -> None:
    """docs/interface.md#post-sms: nothing to send with is a conflict with the workspace's state."""
    tenant = service.tenant(mode=WorkspaceMode.LIVE)
    for body in ({}, {"carrier": "telnyx"}):
        check_envelope(tenant.post("/sms", {"to": "14155550102", "body": "x"} | body), 409, "conflict")
    service.run(service.engine.numbers.create, tenant.workspace.id, NewNumber(phone="+14155550199", carrier="telnyx"))
    answer = tenant.post("/sms", {"to": "14155550102", "body": "x"})
    check_envelope(answer, 409, "conflict")
    assert "no account at telnyx" in answer.json()["error"]["message"]
