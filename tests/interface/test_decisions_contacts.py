"""The rows of docs/interface.md#10: contacts, their numbers, the register and the counters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interface.conftest import Sending
from tests.server.conftest import Service, Tenant
from tests.server.test_errors import check_envelope

READY: dict[str, Any] = {"sms_carrier": "twilio", "sms_from_number": "+14155550199", "sms_rate_per_minute": 600}


def people(*phones: str) -> list[dict[str, str]]:
    """Return contacts with these numbers."""
    return [{"phone_number": phone} for phone in phones]


def outcomes(sending: Sending, tenant: Tenant, campaign: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return the state and the reason of each contact, in order."""

    async def read() -> list[tuple[str, str | None]]:
        found = sending.service.engine.campaigns.iter_recipients(tenant.workspace.id, campaign["id"])
        return [(person.status.value, person.reason) async for person in found]

    return sending.service.run(read)


@pytest.mark.sentence("row duplicates in a request", "row numbers that are not numbers", "row SMS counters")
def test_contacts_that_are_not_reached(sending: Sending) -> None:
    """Rows "duplicates" and "numbers that are not numbers": loaded and counted, skipped; the counters tell."""
    tenant = sending.service.tenant(default_region="US")
    created = tenant.create(recipients=people("+14155550102", "(415) 555-0102", "nobody"), **READY)
    assert (created["total_recipients"], created["pending_calls"]) == (3, 1)
    ended = sending.completed(tenant, created)
    assert [state for state, _ in outcomes(sending, tenant, created)][1:] == ["skipped", "skipped"]
    assert [reason for _, reason in outcomes(sending, tenant, created)][1:] == ["duplicate", "invalid_number"]
    assert [entry["to"] for entry in sending.accepted()] == ["+14155550102"]
    counted = [ended[f"{name}_calls"] for name in ("pending", "completed", "successful", "failed")]
    assert (ended["total_recipients"], counted) == (3, [0, 1, 1, 0])


@pytest.mark.sentence("row same number")
def test_the_same_number(service: Service) -> None:
    """Row "same number": normalised when written; an opted-out number supplied twice counts two."""
    tenant = service.tenant(default_region="US")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "+1 (415) 555-0102")
    phones = ("14155550102", "415.555.0102", "+14155550103")
    created = tenant.create(recipients=people(*phones))
    assert (created["sms_opted_out_excluded"], created["total_recipients"]) == (2, 1)


@pytest.mark.sentence("row same number")
def test_digits_without_a_region(sending: Sending) -> None:
    """Row "same number": no country is guessed in a list; the pattern of POST /sms and POST /calls makes + optional."""
    tenant = sending.service.tenant(default_region=None)
    created = tenant.create(recipients=people("+14155550102", "6465550102", "14155550103", "0044 7400 123456"), **READY)
    sending.completed(tenant, created)
    assert [reason for _, reason in outcomes(sending, tenant, created)] == [
        None,
        "invalid_number",
        "invalid_number",
        None,
    ]
    assert [entry["to"] for entry in sending.accepted()] == ["+14155550102", "+447400123456"]
    sent = tenant.post("/sms", {"to": "14155550104", "body": "x"})
    assert sent.status_code == 201
    placed = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": "14155550104"})
    assert placed.status_code == 201


@pytest.mark.sentence("row same number")
def test_a_number_that_lost_its_plus(sending: Sending) -> None:
    """Row "same number": the region's calling code is recognised, in lists, on the register and in POST /sms."""
    service, tenant = sending.service, sending.service.tenant(default_region="DE")
    service.run(service.engine.unsubscribes.add, tenant.workspace.id, "4915123456701")
    created = tenant.create(recipients=people("4915123456702", "14155550102", "015123456701"), **READY)
    assert (created["sms_opted_out_excluded"], created["total_recipients"]) == (1, 2)
    sending.completed(tenant, created)
    assert [entry["to"] for entry in sending.accepted()] == ["+4915123456702"]
    assert outcomes(sending, tenant, created)[1] == ("skipped", "invalid_number")
    answer = tenant.post("/sms", {"to": "4915123456701", "body": "x"})
    check_envelope(answer, 409, "recipient_unsubscribed")


@pytest.mark.sentence("row register")
def test_the_register(sending: Sending) -> None:
    """Row "register": all, sms or call; it stops campaigns, POST /sms and POST /calls, also after the loading."""
    service, tenant = sending.service, sending.service.tenant()
    created = tenant.create(recipients=people("+14155550101", "+14155550102", "+14155550103"), **READY)
    for phone, scope in (("+14155550101", "all"), ("+14155550102", "sms"), ("+14155550103", "call")):
        service.run(service.engine.unsubscribes.add, tenant.workspace.id, phone, scope=scope)
    sending.completed(tenant, created)
    assert outcomes(sending, tenant, created)[:2] == [("skipped", "opted_out")] * 2
    assert [entry["to"] for entry in sending.accepted()] == ["+14155550103"]
    for number, sms, call in ((1, 409, 409), (2, 409, 201), (3, 201, 409)):
        to = f"+1415555010{number}"
        assert tenant.post("/sms", {"to": to, "body": "x"}).status_code == sms
        answer = tenant.post("/calls", {"agent_id": tenant.agent.id, "to": to})
        assert answer.status_code == call
        if call == 409:
            check_envelope(answer, 409, "recipient_unsubscribed")
