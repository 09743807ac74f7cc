"""/manage/events as pages; streams are tested in tests/listening."""

from __future__ import annotations

from typing import Any

import pytest

from outreach.http import EVENT_TYPES
from outreach_server.event_stream import wants_stream
from tests.server.conftest import Service, Tenant
from tests.server.test_errors import check_envelope


def test_events_are_read_from_a_number_on(service: Service) -> None:
    """In the order of their commits, each once, of this workspace alone."""
    tenant, other = service.tenant(), service.tenant()
    assert tenant.get("/manage/events").json()["data"] == []
    begin = tenant.get("/manage/events").json()["position"]
    tenant.post("/manage/unsubscribes", {"phone_numbers": ["+14155550177", "+14155550178"]})
    other.post("/manage/unsubscribes", {"phone_numbers": ["+14155550179"]})
    campaign = tenant.create(sms_carrier="twilio", sms_from_number="+14155550100")
    tenant.post(f"/manage/campaigns/{campaign['id']}/start")
    whole = tenant.get("/manage/events", params={"since": begin}).json()
    assert whole["more"] is False
    assert [one["phone"] for one in whole["data"] if one["type"] == "opted_out"] == ["+14155550177", "+14155550178"]
    moves = [one for one in whole["data"] if one["type"] == "campaign_status_changed"]
    assert [(one["status"], one["actor"]) for one in moves][-1] == ("active", "api")
    found: list[Any] = []
    page: dict[str, Any] = {"position": begin, "more": True}
    while page["more"]:
        page = tenant.get("/manage/events", params={"since": page["position"], "limit": 1}).json()
        found += page["data"]
    assert found == whole["data"]
    assert [one["number"] for one in found] == sorted(one["number"] for one in found)
    only = tenant.get("/manage/events", params={"since": begin, "type": "opted_out"}).json()["data"]
    assert only == [one for one in found if one["type"] == "opted_out"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("since=1000000", 409, "conflict"),
        ("since=x", 400, "invalid_request"),
        ("since=-1", 400, "invalid_request"),
        ("type=all", 400, "invalid_request"),
        ("after=1", 400, "invalid_request"),
    ],
)
@pytest.mark.parametrize("accept", ["*/*", "text/event-stream"])
def test_a_wrong_place_is_refused(memory_tenant: Tenant, query: str, status: int, code: str, accept: str) -> None:
    """Before a stream begins, too."""
    answer = memory_tenant.get(f"/manage/events?{query}", headers={"Accept": accept})
    check_envelope(answer, status, code)


@pytest.mark.parametrize("given", ["", "x", "-1", "1, 2"])
def test_a_wrong_last_event_is_refused(memory_tenant: Tenant, given: str) -> None:
    """It is the number of an event, or the header is left out."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": given}
    error = check_envelope(memory_tenant.get("/manage/events", headers=headers), 400, "invalid_request")
    assert [one["path"] for one in error["details"]] == ["Last-Event-ID"]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (None, False),
        ("*/*", False),
        ("text/*", False),
        ("Text/Event-Stream; q=0.5", True),
        ("text/event-stream;q=0", False),
        ("application/json, text/event-stream", False),
        ("text/event-stream, application/json", False),
        ("text/event-stream, */*", False),
        ("text/event-stream, application/*;q=0.3", True),
        ("application/json;q=0.9, text/event-stream", True),
        ("text/event-stream;q=0.8, application/json;q=0.9", False),
        ("text/event-stream;q=0.001, application/json;q=0", True),
        ("text/event-stream;q=0.5, application/json;q=0.1, */*", True),
        ("text/event-stream;charset=utf-8;q=0.5, application/json;q=0.4", True),
        ("text/event-stream;q=loud, text/event-stream;q=2", False),
    ],
)
def test_the_type_with_the_higher_weight_decides(accept: str | None, wanted: bool) -> None:
    """A stream is for clients that name its type and give it more weight than JSON; all others get a page."""
    from starlette.requests import Request

    headers = [] if accept is None else [(b"accept", accept.encode())]
    assert wants_stream(Request({"type": "http", "headers": headers})) is wanted


def test_a_head_is_no_stream(memory_tenant: Tenant) -> None:
    """It is answered, whatever it accepts."""
    answer = memory_tenant.request("HEAD", "/manage/events", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.content) == (200, b"")


def test_every_type_of_events_can_be_asked_for(memory_tenant: Tenant) -> None:
    """By its name."""
    for name in EVENT_TYPES:
        assert memory_tenant.get(f"/manage/events?type={name}").status_code == 200
