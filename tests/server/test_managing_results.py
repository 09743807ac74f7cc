"""/manage/campaigns/{id}: what a campaign will do, what became of it, and campaigns made from it."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from starlette.requests import Request

from outreach import MessageStatus
from outreach.ledger.settling.ledger import close_open_recipients
from outreach.storage.unit_of_work import Transaction
from outreach_server.download import DownloadResponse, made_in_turn, prefers
from outreach_server.fair_semaphore import FairSemaphore
from tests.server.conftest import Service, Tenant, serve
from tests.server.test_errors import check_envelope

READY = {"sms_carrier": "twilio", "sms_from_number": "+14155550100"}
PEOPLE = [{"phone_number": number, "first_name": "Ana"} for number in ("+14155550101", "+14155550102", "+14155550101")]


@pytest.fixture
def path(tenant: Tenant) -> str:
    """Return the path of a campaign of two contacts, one of them twice."""
    made = tenant.create(**READY, recipients=PEOPLE, message_body="Hi {{first_name}}")
    return f"/manage/campaigns/{made['id']}"


def test_a_preflight_says_who_gets_what(tenant: Tenant, path: str) -> None:
    """And what it costs, once there are prices; one contact can be asked for."""
    found = tenant.get(f"{path}/preflight").json()
    assert (found["contacts"], found["contacted"], found["cost"], found["asked"]) == (3, 2, None, [])
    assert [(one["rule"], one["count"]) for one in found["left_out"]] == [("duplicate", 1)]
    prices = {"currency": "EUR", "prices": [{"kind": "sms", "amount": "0.05"}]}
    assert tenant.request("PUT", "/manage/settings/prices", json=prices).status_code == 200
    found = tenant.get(f"{path}/preflight", params={"contact": "+14155550102"}).json()
    assert (found["cost"]["currency"], found["cost"]["unpriced"]) == ("EUR", 0)
    assert [one["position"] for one in found["asked"]] == [1]
    assert found["asked"][0]["messages"][0]["text"].startswith("Hi Ana")
    check_envelope(tenant.get(f"{path}/preflight?contact=%2B14155550199"), 404, "not_found")
    check_envelope(tenant.get(f"{path}/preflight?phone=1"), 400, "invalid_request")


@pytest.mark.parametrize("many", [1, 400])
def test_a_preflight_counts_missing_values_and_names_columns(tenant: Tenant, many: int) -> None:
    """`csv_column_headers` say where a field came from; a body of any size is composed, and copies keep both."""
    people = [{"phone_number": f"+1415555{1000 + at}", "first_name": "Jose\u0301"} for at in range(many)]
    people.append({"phone_number": "+14155550999", "first_name": ""})
    text = "Hi {{Pre\u0301nom}}, *|LNAME|*"
    headers = ["Phone", "Pre\u0301nom"]
    made = tenant.create(**READY, recipients=people, message_body=text, csv_column_headers=headers)
    assert made["csv_column_headers"] == ["Phone", "Pr\u00e9nom"]
    copy = tenant.post(f"/manage/campaigns/{made['id']}/clone", {}).json()
    assert copy["unknown_placeholders"] == []
    for campaign in (made, copy):
        found = tenant.get(f"/manage/campaigns/{campaign['id']}/preflight").json()
        assert found["samples"][0]["messages"][0]["text"].startswith("Hi Jos\u00e9, *|LNAME|*")
        assert found["placeholder_problems"] == [
            {
                "name": "first_name",
                "problem": "no_value",
                "date": None,
                "count": 1,
                "examples": [{"position": many, "phone_number": "+14155550999", "detail": None}],
            }
        ]
        assert [one["meant"] for one in found["text_warnings"]] == ["{{last_name}}"]


def test_a_forecast_takes_what_it_assumes(tenant: Tenant, path: str) -> None:
    """Every assumption within its bounds, and no other parameter."""
    found = tenant.get(f"{path}/forecast", params={"failure_rate": "0.5", "receipt_seconds": "7"}).json()
    assert (found["contacts"], found["assumptions"]["failure_rate"]) == (2, 0.5)
    assert found["assumptions"]["receipt_seconds"] == 7
    for wrong in ("failure_rate=1.5", "call_seconds=-1", "ring_seconds=1e9", "answer_rate=", "rate=1"):
        error = check_envelope(tenant.get(f"{path}/forecast?{wrong}"), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [wrong.split("=")[0]]


def test_a_test_message_is_sent_once_for_a_key(service: Service, tenant: Tenant, path: str) -> None:
    """It is a single message, and counts in no campaign."""
    body = {"contact": "+14155550102", "to": "+14155550199", "at_any_hour": True}
    first, again = (tenant.post(f"{path}/test-messages", body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    shown = tenant.get(f"/manage/sms/{first.json()['id']}").json()
    assert (shown["purpose"], shown["to"], shown["status"]) == ("test", "+14155550199", MessageStatus.QUEUED)
    assert shown["body"].startswith("Hi Ana")
    assert tenant.get(path).json()["pending_calls"] == 2
    check_envelope(tenant.post(f"{path}/test-messages", body | {"contact": "+14155550155"}), 404, "not_found")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+14155550199")
    check_envelope(tenant.post(f"{path}/test-messages", body), 409, "recipient_unsubscribed")
    for wrong, where in (({"message": 0}, "message"), ({"to": 1}, "to"), ({"from": "x"}, "from")):
        error = check_envelope(tenant.post(f"{path}/test-messages", body | wrong), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [where]


def test_a_report_is_json_or_a_page(tenant: Tenant, path: str) -> None:
    """A browser gets the page, which may run nothing; the parameter counts more than what is accepted."""
    found = tenant.get(f"{path}/report")
    assert found.json()["contacts"] == 3
    page = tenant.get(f"{path}/report", headers={"Accept": "text/html,application/xhtml+xml;q=0.9"})
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.text.startswith("<!doctype html>")
    assert tenant.get(f"{path}/report?format=html").headers["Content-Type"].startswith("text/html")
    as_json = tenant.get(f"{path}/report?format=json", headers={"Accept": "text/html"})
    assert as_json.headers["Content-Type"] == "application/json"
    check_envelope(tenant.get(f"{path}/report?format=pdf"), 400, "invalid_request")


def test_an_export_is_a_file_with_a_row_a_contact(tenant: Tenant, path: str) -> None:
    """In each format, under a name; a HEAD has the headers alone."""
    text = tenant.get(f"{path}/export")
    assert text.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert text.headers["Content-Disposition"] == f'attachment; filename="campaign-{path.rsplit("/", 1)[1]}.csv"'
    rows = list(csv.DictReader(io.StringIO(text.content.decode("utf-8-sig"), newline="")))
    lines = [json.loads(line) for line in tenant.get(f"{path}/export?format=jsonl").text.splitlines()]
    assert [row["phone"] for row in rows] == [line["phone"] for line in lines]
    assert [line["reason"] for line in lines] == [None, None, "duplicate"]
    assert zipfile.is_zipfile(io.BytesIO(tenant.get(f"{path}/export?format=xlsx").content))
    head = tenant.request("HEAD", f"{path}/export?format=xlsx")
    assert (head.status_code, head.content) == (200, b"")
    check_envelope(tenant.get(f"{path}/export?format=xls"), 400, "invalid_request")


def test_an_export_ends_when_the_client_goes() -> None:
    """What makes the file is closed, and no part is made ahead of the client."""
    made: list[int] = []
    closed: list[bool] = []

    async def parts() -> Any:
        try:
            for number in range(1000):
                made.append(number)
                yield b"x"
        finally:
            closed.append(True)

    async def scenario() -> None:
        gone = anyio.Event()
        sent: list[Any] = []

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if len(sent) == 3:
                gone.set()
                await anyio.sleep_forever()

        with anyio.fail_after(60):
            await DownloadResponse(parts(), name="a.csv", content_type="text/csv")({"type": "http"}, receive, send)
        assert [one["type"] for one in sent] == ["http.response.start", "http.response.body", "http.response.body"]

    anyio.run(scenario)
    assert (made, closed) == ([0, 1], [True])


def test_workbooks_are_made_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a thread for long: without turns dozens of them keep callbacks waiting. Other formats need none."""
    monkeypatch.setattr("outreach_server.context.MAX_WORKBOOKS", 0)
    monkeypatch.setattr("outreach_server.fair_semaphore.WAIT_SECONDS", 0.05)
    for service in serve("memory://"):
        tenant = service.tenant()
        export = f"/manage/campaigns/{tenant.create()['id']}/export?format="
        answer = tenant.get(f"{export}xlsx")
        check_envelope(answer, 503, "internal_error")
        assert answer.headers["Retry-After"] == "30"
        assert tenant.get(f"{export}csv").status_code == 200


@pytest.mark.anyio
async def test_a_workbook_that_is_made_makes_room_before_it_is_taken() -> None:
    """A slow client keeps nobody else waiting; one that goes leaves no turn taken."""
    turns = FairSemaphore(1, 1)

    async def parts() -> AsyncGenerator[bytes]:
        assert turns.free == 0
        yield b"1"
        assert turns.free == 1
        yield b"2"

    async with aclosing(made_in_turn(parts(), turns, "a")) as slow:
        assert await anext(slow) == b"1"
        assert [part async for part in made_in_turn(parts(), turns, "b")] == [b"1", b"2"]
    assert (turns.free, turns.waiting) == (1, 0)


def test_an_export_that_breaks_does_not_look_whole() -> None:
    """The error passes, and the end of the response is never sent."""

    async def parts() -> Any:
        yield b"x"
        raise OSError("no")

    async def scenario() -> None:
        sent: list[Any] = []

        async def receive() -> Any:
            await anyio.sleep_forever()

        async def send(message: Any) -> None:
            sent.append(message)

        with pytest.raises(OSError, match="no"):
            await DownloadResponse(parts(), name="a.csv", content_type="text/csv")({"type": "http"}, receive, send)
        assert all(one.get("more_body", True) for one in sent)

    anyio.run(scenario)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("*/*", False),
        ("text/html", True),
        ("text/html;q=0", False),
        ("a/b, TEXT/html", True),
        ("text/html, application/json", False),
    ],
)
def test_a_type_may_be_refused(text: str, accepted: bool) -> None:
    """By a quality of zero."""
    headers = [(b"accept", text.encode())]
    assert prefers(Request({"type": "http", "headers": headers}), "text/html") is accepted


def test_a_campaign_is_cloned_once_for_a_key(tenant: Tenant, path: str) -> None:
    """With its contacts; without a body it is named after the other one."""
    first, again = (tenant.post(f"{path}/clone", headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.status_code == again.status_code == 201
    made = first.json()
    assert made == again.json()
    assert (made["name"], made["status"], made["total_recipients"]) == ("Autumn (copy)", "ready", 3)
    assert (made["missing"], made["sms_opted_out_excluded"]) == ([], 0)
    assert tenant.post(f"{path}/clone", {"name": "Again"}).json()["name"] == "Again"
    check_envelope(tenant.post(f"{path}/clone", {"name": ""}), 400, "invalid_request")
    check_envelope(tenant.post(f"{path}/clone", {"copy": 1}), 400, "invalid_request")


def test_a_clone_and_a_follow_up_leave_contacts_of_other_campaigns_out(
    service: Service, tenant: Tenant, path: str
) -> None:
    """And count how many are where; a campaign that is not there is named by its place."""
    other = tenant.create(**READY, name="Other", recipients=[{"phone_number": "+14155550102"}])
    chosen = {"campaigns": [other["id"]], "contacted_within_days": 30}
    copy = tenant.post(f"{path}/clone", {"leave_out": chosen}).json()
    assert copy["total_recipients"] == 2
    overlap = {"campaign_id": other["id"], "name": "Other", "people": 1, "left_out": True}
    assert copy["audience"] == {"contacts": 3, "people": 2, "left_out": 1, "campaigns": [overlap], "contacted": 0}
    assert tenant.post(f"{path}/clone", {"name": "All"}).json()["audience"] is None
    campaign_id = tenant.post(f"{path}/cancel").json()["id"]

    def close(tx: Transaction) -> None:
        close_open_recipients(tx, tenant.workspace.id, campaign_id, now=service.clock.now(), limit=10)

    service.run(service.engine._storage.write, close)
    follow_up = {"results": ["canceled"], "leave_out": {}}
    followed = tenant.post(f"{path}/follow-up", follow_up).json()
    assert (followed["total_recipients"], followed["audience"]["left_out"]) == (2, 0)
    assert [one["name"] for one in followed["audience"]["campaigns"]] == ["All", "Autumn (copy)", "Other"]
    followed = tenant.post(f"{path}/follow-up", follow_up | {"leave_out": chosen}).json()
    assert (followed["total_recipients"], followed["selected"], followed["audience"]["left_out"]) == (1, 2, 1)
    for leave_out, place in (
        ({"campaigns": ["nobody"]}, "leave_out.campaigns[0]"),
        ({"campaigns": "x"}, "leave_out.campaigns"),
        ({"contacted_within_days": 0}, "leave_out.contacted_within_days"),
        ({"days": 1}, "leave_out.days"),
    ):
        answer = tenant.post(f"{path}/clone", {"leave_out": leave_out})
        assert check_envelope(answer, 400, "invalid_request")["details"][0]["path"] == place


def test_those_who_were_not_reached_are_followed_up(service: Service, tenant: Tenant, path: str) -> None:
    """Those with the results, and once for a key; where nobody is left, it is said why."""
    error = check_envelope(tenant.post(f"{path}/follow-up", {"results": ["failed"]}), 409, "conflict")
    assert error["message"] == "Nobody has the result failed."
    body = {"results": ["duplicate"], "name": "Once more", "message_body": "Sorry, {{first_name}}"}
    # While the contact whose number it has is open, a duplicate has no result.
    check_envelope(tenant.post(f"{path}/follow-up", body), 409, "conflict")
    campaign_id = tenant.post(f"{path}/cancel").json()["id"]

    def close(tx: Transaction) -> None:
        close_open_recipients(tx, tenant.workspace.id, campaign_id, now=service.clock.now(), limit=10)

    service.run(service.engine._storage.write, close)
    first, again = (tenant.post(f"{path}/follow-up", body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.status_code == again.status_code == 201
    made = first.json()
    assert made == again.json()
    assert (made["selected"], made["left_out"]) == (1, {"opted_out": 0, "replied": 0, "reached": 0})
    assert (made["name"], made["total_recipients"]) == ("Once more", 1)
    assert made["sms_message_body"] == "Sorry, {{first_name}}"
    for wrong, where in (
        ({"results": []}, "results"),
        ({"results": ["x"]}, "results[0]"),
        ({"include": ["x"]}, "include[0]"),
    ):
        error = check_envelope(tenant.post(f"{path}/follow-up", body | wrong), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [where]


def test_a_campaign_is_archived_and_comes_back(tenant: Tenant, path: str) -> None:
    """Not while it is under way."""
    assert tenant.post(f"{path}/archive", headers={"Idempotency-Key": "k"}).json()["archived_at"]
    assert tenant.post(f"{path}/unarchive").json()["archived_at"] is None
    assert tenant.post(f"{path}/archive", headers={"Idempotency-Key": "k"}).json()["archived_at"]
    assert tenant.get(path).json()["archived_at"] is None
    tenant.post(f"{path}/start")
    check_envelope(tenant.post(f"{path}/archive"), 409, "conflict")


def test_a_campaign_that_has_not_started_is_deleted(tenant: Tenant, path: str) -> None:
    """It is returned as it was, and is gone; one that is under way stays."""
    before = tenant.get(path).json()
    other = f"/manage/campaigns/{tenant.create(**READY)['id']}"
    gone = tenant.delete(path)
    assert (gone.status_code, gone.json()) == (200, before)
    check_envelope(tenant.get(path), 404, "not_found")
    tenant.post(f"{other}/start")
    check_envelope(tenant.delete(other), 409, "conflict")


def test_prices_are_replaced_as_a_whole(tenant: Tenant) -> None:
    """And removed; every wrong place is named."""
    where = "/manage/settings/prices"
    none: dict[str, Any] = {"currency": None, "prices": []}
    assert tenant.get(where).json() == none
    table = {"currency": "USD", "prices": [{"kind": "sms", "country": "US", "amount": "0.0079"}]}
    whole = {"currency": "USD", "prices": [{"kind": "sms", "amount": "0.0079", "provider": None, "country": "US"}]}
    assert tenant.request("PUT", where, json=table).json() == tenant.get(where).json() == whole
    for wrong, at in (
        ({"currency": "usd"}, "currency"),
        ({"prices": []}, "prices"),
        ({"rate": 1}, "rate"),
        ({"prices": [{"kind": "sms", "amount": "1e1"}]}, "prices[0].amount"),
        ({"prices": [{"kind": "sms", "amount": "1", "unit": "x"}]}, "prices[0].unit"),
        ({"prices": [{"kind": "fax", "amount": "1"}]}, "prices[0].kind"),
    ):
        error = check_envelope(tenant.request("PUT", where, json=table | wrong), 400, "invalid_request")
        assert at in [one["path"] for one in error["details"]]
    check_envelope(tenant.request("PUT", where, json=[]), 400, "invalid_request")
    assert tenant.get(where).json() == whole
    assert tenant.delete(where).json() == tenant.get(where).json() == none


def test_an_audience_is_counted_before_its_campaign_exists(service: Service, tenant: Tenant, path: str) -> None:
    """Whom `leave_out` names is counted; an unknown field of it is refused."""
    first = tenant.get(path).json()
    listed = [{"phone_number": number} for number in ("+14155550102", "+1 415 555 0188", "none")]
    chosen = {"campaigns": [first["id"]]}
    counts = tenant.post("/manage/audience", {"recipients": listed, "leave_out": chosen}).json()
    overlap = {"campaign_id": first["id"], "name": first["name"], "people": 1, "left_out": True}
    assert counts == {"contacts": 3, "people": 2, "left_out": 1, "campaigns": [overlap], "contacted": None}
    without = tenant.post("/manage/audience", {"recipients": listed}).json()
    assert without == counts | {"left_out": 0, "campaigns": [overlap | {"left_out": False}]}
    assert service.tenant().post("/manage/audience", {"recipients": listed}).json()["campaigns"] == []
    many = [{"phone_number": f"+1415556{number:04}", "company": "x" * 1000} for number in range(2500)]
    counts = tenant.post("/manage/audience", {"recipients": [*many, *listed], "leave_out": chosen}).json()
    assert (counts["contacts"], counts["people"], counts["left_out"]) == (2503, 2502, 1)
    for body, place in (
        ({"recipients": listed, "leave_out": {"campaigns": ["nobody"]}}, "leave_out.campaigns[0]"),
        ({"recipients": listed, "leave_out": {"campaign": first["id"]}}, "leave_out.campaign"),
        ({"recipients": listed, "leave_out": 1}, "leave_out"),
        ({"recipients": listed, "name": "x"}, "name"),
        ({"recipients": []}, "recipients"),
        ({"leave_out": {}}, "recipients"),
    ):
        refused = check_envelope(tenant.post("/manage/audience", body), 400, "invalid_request")
        assert refused["details"][0]["path"] == place


def test_a_campaign_is_followed_while_it_runs(tenant: Tenant, path: str) -> None:
    """What it waits for, its requests since a time, and the forecasts that were kept."""
    now = tenant.get(f"{path}/now").json()
    assert (now["rule"], now["until"], now["contacts"]) == ("ready", None, 2)
    assert now["message"] == "Waits to be started: 2 contacts."
    for since in ("", "?since=2026-11-20T16:00:00Z", "?since=2026-11-20T16:00:00%2B01:00"):
        found = tenant.get(f"{path}/progress{since}").json()
        assert (found["step_seconds"], found["points"]) == (60, [])
    check_envelope(tenant.get(f"{path}/progress?since=yesterday"), 400, "invalid_request")
    assert tenant.get(f"{path}/forecasts").json() == {"data": []}


def test_a_recipient_is_left_out(tenant: Tenant, path: str) -> None:
    """With a reason or without a body; one that has ended is a conflict."""
    skipped = tenant.post(f"{path}/recipients/0/skip", {"reason": "Asked by phone."}).json()
    assert (skipped["status"], skipped["reason"]) == ("skipped", "by_operator")
    assert tenant.post(f"{path}/recipients/1/skip", None).json()["reason"] == "by_operator"
    check_envelope(tenant.post(f"{path}/recipients/2/skip", None), 409, "conflict")
    check_envelope(tenant.post(f"{path}/recipients/3/skip", None), 404, "not_found")
    check_envelope(tenant.post(f"{path}/recipients/1/skip", {"reason": ""}), 400, "invalid_request")
    check_envelope(tenant.post(f"{path}/recipients/1/skip", {"why": "x"}), 400, "invalid_request")
