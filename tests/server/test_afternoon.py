"""A campaign manager's afternoon over HTTP: from a list with everything wrong in it to the second try."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outreach.server_support import read_number_cell
from tests import afternoon
from tests.server.conftest import Service, serve
from tests.server.test_errors import check_envelope

DEADLINE = 60.0


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Run a server that sends, through a carrier that refuses some numbers."""
    yield from serve(f"sqlite:///{tmp_path / 'outreach.db'}", dispatch=True, carrier=afternoon.carrier())


def test_a_campaign_managers_afternoon(service: Service) -> None:
    """Corrected, looked at, tried, started, paused, changed, resumed, reported, exported and followed up."""
    tenant = service.tenant(contact_hours=False, default_region="US")
    tenant.post("/manage/numbers", {"phone": afternoon.SENDER, "carrier": "twilio"})
    tenant.post("/manage/unsubscribes", {"phone_numbers": [afternoon.OPTED_OUT]})
    prices = {"currency": "USD", "prices": [{"kind": "sms", "amount": "0.0079"}]}
    tenant.request("PUT", "/manage/settings/prices", json=prices)

    people: list[dict[str, Any]] = []
    for _, cell, first_name, slot in afternoon.ROWS:
        number = read_number_cell(cell)
        if number.problem is None:
            variables = {"Slot": slot}
            people.append({"phone_number": number.text, "first_name": first_name, "custom_variables": variables})
    assert len(people) == len(afternoon.ROWS) - afternoon.REJECTED
    made = tenant.create(
        message_body="Hi {{first_name}}, see you at {{Slot}}.",
        sms_carrier="twilio",
        sms_from_number=afternoon.SENDER,
        sms_rate_per_minute=60,
        recipients=people,
    )
    assert made["sms_opted_out_excluded"] == 1
    path = f"/manage/campaigns/{made['id']}"

    looked = tenant.get(f"{path}/preflight").json()
    assert (looked["contacts"], looked["contacted"], looked["problems"]) == (8, 7, [])
    assert [(one["rule"], one["count"]) for one in looked["left_out"]] == [("duplicate", 1)]
    assert tenant.get(f"{path}/forecast").json()["requests"] == 7
    tried = tenant.post(f"{path}/test-messages", {"contact": "+14155550102", "to": afternoon.MYSELF}).json()
    until(lambda: tenant.get(f"/manage/sms/{tried['id']}").json()["status"] == "accepted")
    assert "see you at 9:30" in tried["body"]

    assert tenant.post(f"{path}/start").json()["status"] == "active"
    until(lambda: tenant.get(path).json()["open_recipients"] < 7)
    assert tenant.post(f"{path}/pause").json()["status"] == "paused"
    changed = {"message_body": "Hi {{first_name}}, at {{Slot}} after all.", "sms_rate_per_minute": 600}
    assert tenant.patch(path, changed).json()["status"] == "paused"
    assert tenant.post(f"{path}/resume").json()["status"] == "active"
    until(lambda: tenant.get(path).json()["status"] == "completed")
    service.run(
        service.engine.messages.receive,
        tenant.workspace.id,
        from_number="+14155550107",
        to=afternoon.SENDER,
        body="See you then",
    )

    report = tenant.get(f"{path}/report").json()
    exported = [json.loads(line) for line in tenant.get(f"{path}/export?format=jsonl").text.splitlines()]
    ledger = service.run(afternoon.ledger_of, service.engine, tenant.workspace.id, made["id"], 8)
    afternoon.check_figures(report, exported, ledger, "0.0079")
    assert {"after all." in str(one.body) for one in ledger} == {False, True}
    rows = csv.DictReader(io.StringIO(tenant.get(f"{path}/export").content.decode("utf-8-sig"), newline=""))
    assert [(row["phone"], row["status"]) for row in rows] == [(one["phone"], one["status"]) for one in exported]

    again = tenant.post(f"{path}/follow-up", {"results": ["failed", "duplicate"]}).json()
    assert (again["selected"], again["left_out"]["reached"], again["total_recipients"]) == (3, 1, 2)
    listed = tenant.get(f"/manage/campaigns/{again['id']}/recipients").json()["data"]
    assert {one["phone"] for one in listed} == afternoon.FAILING

    erased = tenant.delete(path).json()
    assert erased["erased_at"]
    assert erased["archived_at"]
    assert tenant.get(f"{path}/report").json()["results"] == report["results"]
    check_envelope(tenant.post(f"{path}/clone"), 409, "conflict")
