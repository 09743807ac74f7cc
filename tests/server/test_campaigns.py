from __future__ import annotations

import logging
from typing import Any

import pytest

from outreach import NewTrunk
from tests.server.conftest import Service, Tenant, sms_body
from tests.server.test_errors import check_envelope


def call_body(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    """Return the body of a calling campaign."""
    return {"name": "Renewals", "agent_id": tenant.agent.id, "recipients": [{"phone_number": "+14155550102"}]} | fields


def names(answer: Any) -> list[str]:
    """Return the names on a page, in its order."""
    assert answer.status_code == 200, answer.text
    return [campaign["name"] for campaign in answer.json()["data"]]


def test_holidays_of_a_part_of_a_country_are_filled(tenant: Tenant) -> None:
    """England has more than the kingdom, is shown as what it is, and another country's part is refused."""
    kingdom = tenant.create(holidays_config={"country": "GB"})["holidays_config"]
    england = tenant.create(holidays_config={"country": "GB", "subdivision": "eng"})["holidays_config"]
    assert england["subdivision"] == "ENG"
    assert {day["name"] for day in england["holidays"]} - {day["name"] for day in kingdom["holidays"]} == {
        "Easter Monday",
        "Late Summer Bank Holiday",
    }
    assert tenant.get("/campaigns").json()["data"][0]["holidays_config"] == england
    for wrong in ("BY", "", None, 1):
        body = sms_body(holidays_config={"country": "GB", "subdivision": wrong})
        refusal = check_envelope(tenant.post("/sms-campaigns", body), 400, "invalid_request")
        assert refusal["details"][0]["path"] == "holidays_config.subdivision"


def test_a_page_of_thousands_of_digits_is_an_empty_page(memory_tenant: Tenant) -> None:
    """docs/interface.md#query: "however large" has no exception."""
    answer = memory_tenant.get("/sms-campaigns?page=" + "9" * 10_000)
    assert answer.status_code == 200
    assert '"data":[]' in answer.text
    assert '"page":' + "9" * 10_000 in answer.text


@pytest.mark.parametrize("path", ["/sms-campaigns", "/campaigns"])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=%2B1", "page"),
        ("page=1.0", "page"),
        ("page=", "page"),
        ("page=%201", "page"),
        ("page=1_0", "page"),
        ("page=%D9%A1", "page"),
        ("page=1&page=1", "page"),
        ("page_size=0", "page_size"),
        ("page_size=ten", "page_size"),
        ("page_size=1&page_size=2", "page_size"),
        ("status=", "status"),
        ("status=Draft", "status"),
        ("status=draft&status=ready", "status"),
        ("search=a&search=b", "search"),
        ("search=%00", "search"),
        ("search=%FF", ""),
        ("&".join(f"p{i}=1" for i in range(200)), ""),
    ],
)
def test_a_strange_query_is_refused(memory_tenant: Tenant, path: str, query: str, name: str) -> None:
    """docs/interface.md#query: [0-9]+ only; below 1, repeated, or an empty status is a 400."""
    error = check_envelope(memory_tenant.get(f"{path}?{query}"), 400, "invalid_request")
    assert [detail["path"] for detail in error["details"]] == [name]


def test_what_a_calling_campaign_names_must_be_the_workspaces_own(service: Service) -> None:
    """docs/interface.md#agents: of another workspace 404; the same for a trunk."""
    mine, other = service.tenant(), service.tenant()
    trunk = service.run(
        service.engine.trunks.create, other.workspace.id, NewTrunk(name="Trunk", address="sip.example.com")
    )
    check_envelope(mine.post("/campaigns", call_body(other)), 404, "not_found")
    check_envelope(mine.post("/campaigns", call_body(mine, sip_trunk_id=trunk.id)), 404, "not_found")
    assert other.post("/campaigns", call_body(other, sip_trunk_id=trunk.id)).json()["sip_trunk_id"] == trunk.id


def test_a_workspace_sees_only_its_own(service: Service) -> None:
    """Every query carries its workspace."""
    mine, other = service.tenant(), service.tenant()
    mine.create(name="mine")
    other.create(name="other")
    for path in ("/sms-campaigns", "/campaigns", "/campaigns?search=mine", "/sms-campaigns?status=draft"):
        assert names(mine.get(path)) == ["mine"]
    assert mine.patch("/sms/settings", {"max_segments": 1}).json()["max_segments"] == 1
    assert other.patch("/sms/settings", {}).json()["max_segments"] == 5
    service.run(service.engine.unsubscribes.add, mine.workspace.id, "+14155550102")
    assert other.create()["sms_opted_out_excluded"] == 0
    assert other.post("/sms", {"to": "14155550102", "body": "x"}).status_code == 201


def test_placeholders_that_nothing_fills_are_logged(memory_tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    """The answer is fixed and has no place for them; the log has their names alone, and no text."""
    with caplog.at_level(logging.WARNING, "outreach_server"):
        memory_tenant.create(message_body="Secret {{first_name}} {{first_nam}} {{a\nb}}")
    (record,) = caplog.records
    assert "'first_nam', 'a\\nb'" in record.getMessage()
    assert "Secret" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "outreach_server"):
        memory_tenant.create(message_body="Hi {{first_name}} {{nick|there}}")
    assert caplog.records == []
    caplog.clear()
    with caplog.at_level(logging.WARNING, "outreach_server"):
        for _ in range(2):
            body = sms_body(message_body="{{first_nam}}")
            memory_tenant.post("/sms-campaigns", body, headers={"Idempotency-Key": "once"})
    assert len(caplog.records) == 1


def test_contacts_as_a_spreadsheet_left_them_are_themselves(service: Service) -> None:
    """One with `.0` at its end is the person who opted out, and no other."""
    tenant = service.tenant(default_region="AT")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+43664123456")
    phones = ["43664123456.0", "+43664123456.0", "4.3664123456E+10", "0664 123457"]
    created = tenant.create(recipients=[{"phone_number": phone} for phone in phones])
    assert (created["sms_opted_out_excluded"], created["total_recipients"], created["pending_calls"]) == (3, 1, 1)
