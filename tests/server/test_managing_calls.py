"""Calls and people under /manage: what was said, verdicts, erasure."""

from __future__ import annotations

import logging
from decimal import Decimal

import attrs
import pytest

from outreach.models.states import CallStatus
from outreach.testing.builders import NOW, make_call, new_id
from tests.server.conftest import Service, Tenant
from tests.server.test_errors import check_envelope

PHONE = "+14155550142"


def given_call(service: Service, tenant: Tenant) -> str:
    """Write a call that was answered and has ended, with what was said."""
    call = make_call(
        workspace_id=tenant.workspace.id, agent_id=tenant.agent.id, to=PHONE, status=CallStatus.COMPLETED,
        answered_at=NOW, ended_at=NOW, outcome="negative", cost=Decimal("0.14"), cost_currency="USD",
    )  # fmt: skip
    service.run(
        service.engine._storage.write,
        lambda tx: (tx.calls.insert(call), tx.calls.put_transcript(call, "agent: Hello")),
    )
    return call.id


def test_a_call_is_shown_with_what_was_said_and_judged(service: Service) -> None:
    """The list and the interface's own answer have no transcript; the latter has its documented fields alone."""
    tenant, other = service.tenant(), service.tenant()
    call_id = given_call(service, tenant)
    shown = tenant.get(f"/manage/calls/{call_id}").json()
    assert (shown["transcript"], shown["cost"], shown["cost_currency"]) == ("agent: Hello", "0.14", "USD")
    [listed] = tenant.get("/manage/calls").json()["data"]
    plain = tenant.get(f"/calls/{call_id}").json()
    assert shown == listed | {"transcript": "agent: Hello"}
    assert listed == plain | {
        "cost": "0.14",
        "cost_currency": "USD",
        "judged_at": None,
        "external_id": None,
        "metadata": None,
    }
    path = f"/manage/calls/{call_id}/outcome"
    check_envelope(other.request("PUT", path, json={"outcome": "positive"}), 404, "not_found")
    judged = tenant.request("PUT", path, json={"outcome": "callback", "summary": "On Monday."}).json()
    assert (judged["outcome"], judged["summary"]) == ("callback", "On Monday.")
    assert tenant.request("PUT", path, json={"outcome": "callback"}).json() == judged
    check_envelope(tenant.request("PUT", path, json={"outcome": "positive"}), 409, "conflict")
    for body, where in (
        ({"outcome": "busy"}, "outcome"),
        ({"summary": "x"}, "outcome"),
        ({"outcome": "negative", "x": 1}, "x"),
    ):
        error = check_envelope(tenant.request("PUT", path, json=body), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [where]


def test_calls_are_filtered_by_agent_status_and_outcome(service: Service) -> None:
    """All that is given holds together; a wrong word is a 400, an agent of another workspace a 404."""
    tenant, other = service.tenant(), service.tenant()
    call_id = given_call(service, tenant)
    for query, count in (
        (f"agent_id={tenant.agent.id}&status=completed&outcome=negative", 1),
        ("status=in-progress", 0),
        ("outcome=unknown", 0),
    ):
        found = tenant.get(f"/manage/calls?{query}").json()["data"]
        assert [one["id"] for one in found] == [call_id][:count]
    for query, where in (("status=complete", "status"), ("outcome=good", "outcome"), ("outcome=", "outcome")):
        error = check_envelope(tenant.get(f"/manage/calls?{query}"), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [where]
    check_envelope(other.get(f"/manage/calls?agent_id={tenant.agent.id}"), 404, "not_found")


def test_a_verdict_names_a_call_by_the_providers_id_too(service: Service) -> None:
    """An analyser that gets its data from the provider has no other identifier."""
    tenant = service.tenant()
    call_id = given_call(service, tenant)
    get = service.engine.calls.get
    call = service.run(get, tenant.workspace.id, call_id)
    known = attrs.evolve(call, provider_call_id="call_7f0c")
    service.run(service.engine._storage.write, lambda tx: tx.calls.update(known))
    judged = tenant.request("PUT", "/manage/calls/call_7f0c/outcome", json={"outcome": "positive"}).json()
    assert (judged["id"], judged["outcome"]) == (call_id, "positive")
    assert tenant.get("/manage/calls/call_7f0c").json()["transcript"] == "agent: Hello"


def test_a_person_is_erased_once_it_is_confirmed(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    """The answer counts what was found; repeated, nothing. Neither the log nor the audit trail has the number."""
    tenant, other = service.tenant(), service.tenant()
    call_id = given_call(service, tenant)
    for body, where in (
        ({"phone_number": PHONE}, "confirm"),
        ({"phone_number": PHONE, "confirm": False}, "confirm"),
        ({"confirm": True}, "phone_number"),
        ({"phone_number": "12", "confirm": True}, "phone_number"),
    ):
        error = check_envelope(tenant.request("PUT", "/manage/erasures", json=body), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [where]
    nothing = {"contacts": 0, "messages": 0, "calls": 0, "replies": 0, "callbacks": 0, "still_opted_out": False}
    request = {"phone_number": PHONE, "confirm": True}
    with caplog.at_level(logging.DEBUG):
        assert other.request("PUT", "/manage/erasures", json=request).json() == nothing
        assert tenant.get(f"/manage/calls/{call_id}").json()["to"] == PHONE
        assert tenant.request("PUT", "/manage/erasures", json=request).json() == nothing | {"calls": 1}
        assert tenant.request("PUT", "/manage/erasures", json=request).json() == nothing
    shown = tenant.get(f"/manage/calls/{call_id}").json()
    assert shown["transcript"] is None
    assert shown["to"] != PHONE
    entries = service.run(service.engine.audit.list, tenant.workspace.id)
    assert {one.actor for one in entries if one.action == "person.purge"} == {"api"}
    assert not any(PHONE[1:] in str(attrs.asdict(one)) for one in entries)
    assert PHONE[1:] not in caplog.text


def test_a_person_who_is_called_now_is_not_erased(service: Service) -> None:
    """A 409, and nothing is erased."""
    tenant = service.tenant()
    call = make_call(workspace_id=tenant.workspace.id, agent_id=tenant.agent.id, to=PHONE, id=new_id())
    service.run(service.engine._storage.write, lambda tx: tx.calls.insert(call))
    request = {"phone_number": PHONE, "confirm": True}
    check_envelope(tenant.request("PUT", "/manage/erasures", json=request), 409, "conflict")
    assert tenant.get(f"/manage/calls/{call.id}").json()["to"] == PHONE


def test_an_event_is_simulated_in_a_sandbox(service: Service) -> None:
    """As the library does it; what belongs to another event is refused with its place."""
    tenant = service.tenant()
    kept = tenant.request("POST", "/manage/simulate", json={"event": "busy", "phone_number": PHONE})
    assert kept.json() == {
        "event": "busy", "phone_number": PHONE, "dispatch_id": None, "inbound_id": None, "kept": True,
    }  # fmt: skip
    stop = {"event": "stop", "phone_number": PHONE, "to": "+14155550100"}
    assert tenant.request("POST", "/manage/simulate", json=stop).json()["inbound_id"] is not None
    assert [one["phone"] for one in tenant.get("/manage/unsubscribes").json()["data"]] == [PHONE]
    delivered = {"event": "receipt", "phone_number": PHONE, "status": "delivered"}
    check_envelope(tenant.request("POST", "/manage/simulate", json=delivered), 409, "conflict")
    for body, where in (({"event": "reply"}, "body"), ({"event": "busy", "status": "failed"}, "status")):
        wrong = tenant.request("POST", "/manage/simulate", json={"phone_number": PHONE, **body})
        error = check_envelope(wrong, 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [where]
