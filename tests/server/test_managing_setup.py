"""/manage: agents, numbers, flows, settings, accounts, messages, calls and the register."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.server.conftest import Service, Tenant
from tests.server.test_errors import check_envelope

FLOW = {"name": "Welcome", "steps": [{"kind": "send", "body": "Hi"}, {"kind": "wait", "wait_minutes": 5}]}


def test_agents_are_made_shown_and_changed(tenant: Tenant) -> None:
    """Null clears; the other fields stay."""
    body = {"name": "Ada", "from_number": "+14155550100", "placeholders": ["plan"], "max_call_seconds": 60}
    made = tenant.post("/manage/agents", body)
    assert made.status_code == 201
    agent = made.json()
    assert {name: agent[name] for name in body} == body
    assert [one["id"] for one in tenant.get("/manage/agents").json()["data"]] == [tenant.agent.id, agent["id"]]
    path = f"/manage/agents/{agent['id']}"
    assert tenant.get(path).json() == agent
    changed = tenant.patch(path, {"is_active": False, "placeholders": None}).json()
    assert changed == agent | {"is_active": False, "placeholders": None, "updated_at": changed["updated_at"]}


def test_numbers_are_added_changed_and_removed(tenant: Tenant) -> None:
    """One that a campaign uses stays."""
    number = tenant.post("/manage/numbers", {"phone": "(415) 555-0100", "carrier": "telnyx"}, headers={}).json()
    assert "error" in number
    number = tenant.post("/manage/numbers", {"phone": "+1 415 555 0100", "carrier": "telnyx"}).json()
    assert number["phone"] == "+14155550100"
    check_envelope(tenant.post("/manage/numbers", {"phone": "+1 (415) 555-0100"}), 409, "conflict")
    path = f"/manage/numbers/{number['id']}"
    assert tenant.get("/manage/numbers").json() == {"data": [number]}
    assert tenant.get(path).json() == number
    assert tenant.patch(path, {"rate_per_minute": 9}).json() == number | {"rate_per_minute": 9}
    campaign = tenant.create(sms_carrier="telnyx", sms_from_number="+14155550100")
    check_envelope(tenant.delete(path), 409, "conflict")
    tenant.post(f"/manage/campaigns/{campaign['id']}/cancel")
    assert tenant.delete(path).json()["id"] == number["id"]
    check_envelope(tenant.get(path), 404, "not_found")
    check_envelope(tenant.delete(path), 404, "not_found")


def test_flows_are_made_changed_and_removed(tenant: Tenant) -> None:
    """A removed one is gone."""
    flow = tenant.post("/manage/flows", FLOW).json()
    path = f"/manage/flows/{flow['id']}"
    assert [step["kind"] for step in flow["steps"]] == ["send", "wait"]
    assert tenant.get("/manage/flows").json() == {"data": [flow]}
    changed = tenant.patch(path, {"name": "Again", "steps": flow["steps"][:1]}).json()
    assert (changed["name"], changed["steps"]) == ("Again", flow["steps"][:1])
    assert tenant.get(path).json() == tenant.delete(path).json() == changed
    check_envelope(tenant.get(path), 404, "not_found")
    assert tenant.get("/manage/flows").json() == {"data": []}


def test_contacts_are_counted_at_each_step_of_a_flow(tenant: Tenant) -> None:
    """Those of campaigns that have not ended; a flow of nobody is not there."""
    flow = tenant.post("/manage/flows", FLOW).json()
    path = f"/manage/flows/{flow['id']}/contacts"
    assert tenant.get(path).json() == {"data": [{"step": 0, "contacts": 0}, {"step": 1, "contacts": 0}]}
    check_envelope(tenant.get("/manage/flows/01932f73-0a51-7b3c-8d2e-6f4a1c9b7e52/contacts"), 404, "not_found")


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/manage/agents", {}, "name"),
        ("/manage/agents", {"name": "A", "id": "1"}, "id"),
        ("/manage/agents", {"name": "A", "provider": "pigeon"}, "provider"),
        ("/manage/agents", {"name": "A", "voicemail": "leave_message"}, "voicemail_message"),
        ("/manage/agents", {"name": "A", "from_number": "12"}, "from_number"),
        ("/manage/agents", {"name": "A", "placeholders": [""]}, "placeholders[0]"),
        ("/manage/agents", {"name": "A", "placeholders": ["a"] * 1001}, "placeholders"),
        ("/manage/numbers", {"phone": "12"}, "phone"),
        ("/manage/numbers", {"phone": "+14155550100", "carrier": "pigeon"}, "carrier"),
        ("/manage/flows", {"name": "F", "steps": []}, "steps"),
        ("/manage/flows", {"name": "F", "steps": [{"kind": "wait", "wait_minutes": 1}]}, "steps"),
        ("/manage/flows", {"name": "F", "steps": [{"kind": "send", "body": "x", "text": 1}]}, "steps[0].text"),
        ("/manage/flows", {"name": "F", "steps": [{"kind": "send", "body": " "}]}, "steps[0].body"),
        ("/manage/unsubscribes", {"phone_numbers": []}, "phone_numbers"),
        ("/manage/unsubscribes", {"phone_numbers": ["+14155550177", "12"]}, "phone_numbers[1]"),
        ("/manage/unsubscribes", {"phone_numbers": ["+14155550177"] * 1001}, "phone_numbers"),
        ("/manage/unsubscribes", {"phone_numbers": ["+14155550177"], "scope": "held"}, "scope"),
    ],
)
def test_a_wrong_body_is_refused_where_it_is_wrong(
    memory_tenant: Tenant, path: str, body: dict[str, Any], where: str
) -> None:
    """With the field's path, and nothing made."""
    before = memory_tenant.get(path).json()
    error = check_envelope(memory_tenant.post(path, body), 400, "invalid_request")
    assert [one["path"] for one in error["details"]] == [where]
    assert memory_tenant.get(path).json() == before


def test_what_is_created_with_a_key_is_created_once(tenant: Tenant) -> None:
    """The first answer again, for each POST."""
    for path, body in (
        ("/manage/agents", {"name": "Ada"}),
        ("/manage/numbers", {"phone": "+14155550100"}),
        ("/manage/flows", FLOW),
        ("/manage/unsubscribes", {"phone_numbers": ["+14155550177"]}),
    ):
        first, second = (tenant.post(path, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
        assert first.status_code == second.status_code == 201
        assert first.json() == second.json()


def test_settings_are_shown_and_changed(tenant: Tenant) -> None:
    """Those of messages by the operation of the interface."""
    tenant.patch("/sms/settings", {"max_segments": 2})
    calls = tenant.patch("/manage/settings/calls", {"retry_max_attempts": 10}).json()
    replies = tenant.patch("/manage/settings/replies", {"help_text": "Ask us."}).json()
    assert replies["effective"]["help"] == {"text": "Ask us.", "segments": 1}
    shown = tenant.get("/manage/settings").json()
    assert (shown["workspace"]["id"], shown["sms"]["max_segments"]) == (tenant.workspace.id, 2)
    assert (shown["calls"], shown["replies"]) == (calls, replies)
    assert tenant.patch("/manage/settings/replies", {"help_text": None}).json()["help_text"] == ""
    for path, body in (
        ("calls", {"retry_max_attempts": 11}),
        ("calls", {"retries": 1}),
        ("replies", {"help_text": " "}),
        ("replies", {"enabled": None}),
    ):
        error = check_envelope(tenant.patch(f"/manage/settings/{path}", body), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == list(body)


def test_narrower_contact_hours_are_replaced(tenant: Tenant) -> None:
    """All at once; they are among the settings."""
    monday = {"monday": [{"start": "10:00", "end": "13:00"}, {"start": "14:00", "end": "20:00"}]}
    hours = {"place": "FR", "schedule": monday, "source": "A decree"}
    path = "/manage/settings/contact-hours"
    set_to = tenant.request("PUT", path, json={"narrower_hours": [hours]}).json()
    assert set_to == {"contact_hours": tenant.workspace.contact_hours, "narrower_hours": [hours]}
    assert tenant.get("/manage/settings").json()["workspace"]["narrower_hours"] == [hours]
    for wrong, where in (
        ({"place": "QQ"}, "place"),
        ({"place": 7}, "place"),
        ({"schedule": {"monday": [{"start": "07:00", "end": "13:00"}]}}, "schedule.monday"),
        ({"schedule": {"monday": [{"start": "10:00"}]}}, "schedule.monday[0].end"),
        ({"schedule": {}}, "schedule"),
        ({"source": ""}, "source"),
        ({"law": "x"}, "law"),
    ):
        error = check_envelope(
            tenant.request("PUT", path, json={"narrower_hours": [hours | wrong]}), 400, "invalid_request"
        )
        assert [one["path"] for one in error["details"]] == [f"narrower_hours[0].{where}"]
    assert tenant.request("PUT", path, json={"narrower_hours": []}).json()["narrower_hours"] == []


def test_accounts_have_no_secrets(service: Service) -> None:
    """What is secret is only said to be set; another workspace's account is not there."""
    tenant, other = service.tenant(), service.tenant()
    credentials = {"account_sid": f"AC{'0' * 32}", "auth_token": "a-secret-of-theirs"}
    account = service.run(service.engine.accounts.connect, tenant.workspace.id, "twilio", credentials)
    listed = tenant.get("/manage/accounts")
    [shown] = listed.json()["data"]
    assert (shown["id"], shown["provider"], shown["problem"]) == (account.id, "twilio", None)
    assert shown["credentials"] == {"account_sid": credentials["account_sid"], "auth_token": "set"}
    one = tenant.get(f"/manage/accounts/{account.id}")
    assert one.json() == shown
    assert credentials["auth_token"] not in listed.text + one.text
    check_envelope(other.get(f"/manage/accounts/{account.id}"), 404, "not_found")
    assert other.get("/manage/accounts").json() == {"data": []}


def test_the_callback_url_of_an_account_is_tested(service: Service) -> None:
    """By its own workspace alone; without a public URL there is none."""
    tenant, other = service.tenant(), service.tenant()
    credentials = {"account_sid": f"AC{'0' * 32}", "auth_token": "a-secret-of-theirs"}
    account = service.run(service.engine.accounts.connect, tenant.workspace.id, "twilio", credentials)
    found = tenant.post(f"/manage/accounts/{account.id}/check-callback", None).json()
    assert (found["ok"], found["fault"], found["url"], found["signed"]) == (False, "no_public_url", None, False)
    check_envelope(other.post(f"/manage/accounts/{account.id}/check-callback", None), 404, "not_found")


def test_a_single_message_is_looked_up(service: Service) -> None:
    """The engine's answers to keywords are messages too."""
    tenant = service.tenant()
    sent = tenant.post("/sms", {"to": "+14155550102", "body": "Hi"}).json()
    shown = tenant.get(f"/manage/sms/{sent['id'].upper()}").json()
    assert (shown["id"], shown["body"], shown["purpose"], shown["error_code"]) == (sent["id"], "Hi", "message", None)


def test_calls_are_listed_newest_first(service: Service) -> None:
    """With the record that GET /calls/{id} has, and what it cost, page by page."""
    tenant = service.tenant()
    for last in "123":
        tenant.post("/calls", {"agent_id": tenant.agent.id, "to": f"+1415555010{last}"})
    first = tenant.get("/manage/calls?limit=2").json()
    assert [one["to"][-1] for one in first["data"]] == ["3", "2"]
    record = tenant.get(f"/calls/{first['data'][0]['id']}").json()
    assert first["data"][0] == record | {
        "cost": None,
        "cost_currency": None,
        "judged_at": None,
        "external_id": None,
        "metadata": None,
    }
    rest = tenant.get("/manage/calls", params={"after": first["next"]}).json()
    assert ([one["to"][-1] for one in rest["data"]], rest["next"]) == (["1"], None)
    check_envelope(tenant.get("/manage/calls?campaign_id=1"), 404, "not_found")
    campaign = tenant.create()
    assert tenant.get("/manage/calls", params={"campaign_id": campaign["id"]}).json() == {"data": [], "next": None}


def receive(service: Service, tenant: Tenant, body: str) -> None:
    """Have somebody write."""
    service.clock.ahead += timedelta(seconds=1)
    service.run(
        service.engine.messages.receive,
        tenant.workspace.id,
        from_number="+14155550177",
        to="+14155550100",
        body=body,
    )


def test_inbound_messages_are_listed_newest_first(service: Service) -> None:
    """All, or those that a person has to read."""
    tenant = service.tenant()
    for body in ("Hello", "do not stop", "Thanks"):
        receive(service, tenant, body)
    first = tenant.get("/manage/inbound?limit=1").json()
    assert [one["body"] for one in first["data"]] == ["Thanks"]
    rest = tenant.get("/manage/inbound", params={"after": first["next"]}).json()["data"]
    assert [one["body"] for one in rest] == ["do not stop", "Hello"]
    assert tenant.get("/manage/inbound?unclear=true").json()["data"] == rest[:1]
    assert tenant.get(f"/manage/inbound/{rest[0]['id']}").json() == rest[0]
    check_envelope(tenant.get("/manage/inbound?unclear=1"), 400, "invalid_request")


def test_everything_with_a_number_is_listed_newest_first(service: Service) -> None:
    """In pages; a number of which there is nothing has an empty one, and a text that is no number is a 404."""
    tenant = service.tenant()
    for body in ("Hello", "STOP"):
        receive(service, tenant, body)
    path = "/manage/contacts/+14155550177/history"
    whole = tenant.get(path).json()
    assert whole["next"] is None
    assert {"opted_out", "message"} == {one["kind"] for one in whole["data"]}
    assert [one["text"] for one in whole["data"] if one["direction"] == "inbound"] == ["STOP", "Hello"]
    first = tenant.get(path, params={"limit": 1}).json()
    rest = tenant.get(path, params={"after": first["next"]}).json()
    assert first["data"] + rest["data"] == whole["data"]
    assert tenant.get("/manage/contacts/+14155550178/history").json() == {"data": [], "next": None}
    assert service.tenant().get(path).json() == {"data": [], "next": None}
    check_envelope(tenant.get("/manage/contacts/Ann/history"), 404, "not_found")
    check_envelope(tenant.get(path, params={"after": "x"}), 400, "invalid_request")


def test_a_list_takes_only_its_own_cursors(service: Service) -> None:
    """A cursor that is broken, or of another list, campaign or workspace, is a 400; none is a phone number."""
    tenants = service.tenant(), service.tenant()
    cursors: dict[str, str] = {}
    for tenant in tenants:
        for last in "12":
            tenant.post("/calls", {"agent_id": tenant.agent.id, "to": f"+1415555010{last}"})
            receive(service, tenant, "Hello")
        tenant.post("/manage/unsubscribes", {"phone_numbers": ["+14155550178", "+14155550179"]})
        people = [{"phone_number": f"+1415555012{last}"} for last in "12"]
        campaigns = [tenant.create(recipients=people)["id"] for _ in "12"]
        for path in ("calls", "inbound", "unsubscribes", *(f"campaigns/{one}/recipients" for one in campaigns)):
            cursors[path if tenant is tenants[0] else f"foreign {path}"] = cursor = tenant.get(
                f"/manage/{path}?limit=1"
            ).json()["next"]
            assert len(tenant.get(f"/manage/{path}", params={"after": cursor}).json()["data"]) == 1
            assert "4155550" not in cursor
    assert len(set(cursors.values())) == 10
    for path, own in list(cursors.items())[:5]:
        wrong = [cursor for cursor in cursors.values() if cursor != own]
        flipped = ("B" if own[0] == "A" else "A") + own[1:]
        for after in (*wrong, flipped, own[:-2], f"{own}AAAA", f"{own}\n", "1", "~", "+14155550177", "é", "0" * 40):
            refused = tenants[0].get(f"/manage/{path}", params={"after": after})
            assert check_envelope(refused, 400, "invalid_request")["details"][0]["path"] == "after"


def test_the_register_is_kept(service: Service) -> None:
    """Listed, looked up in any notation, added to, and taken off."""
    tenant = service.tenant(default_region="US")
    added = tenant.post(
        "/manage/unsubscribes", {"phone_numbers": ["(415) 555-0178", "+14155550177"], "evidence": "phoned"}
    ).json()["data"]
    assert [(one["phone"], one["source"], one["evidence"]) for one in added] == [
        ("+14155550178", "operator", "phoned"),
        ("+14155550177", "operator", "phoned"),
    ]
    first = tenant.get("/manage/unsubscribes?limit=1").json()
    rest = tenant.get("/manage/unsubscribes", params={"after": first["next"]}).json()
    assert rest == {"data": [added[0]], "next": None}
    for path in ("+14155550178", "(415) 555-0178", "%2B14155550178"):
        assert tenant.get(f"/manage/unsubscribes/{path}").json() == added[0]
    too_long = tenant.delete(f"/manage/unsubscribes/+14155550178?evidence={'x' * 1001}")
    assert [one["path"] for one in too_long.json()["error"]["details"]] == ["evidence"]
    assert tenant.delete("/manage/unsubscribes/+14155550178?evidence=Letter").json() == added[0]
    for nobody in ("+14155550178", "nobody", "%00"):
        check_envelope(tenant.get(f"/manage/unsubscribes/{nobody}"), 404, "not_found")
        check_envelope(tenant.delete(f"/manage/unsubscribes/{nobody}"), 404, "not_found")


@pytest.mark.parametrize("opted_out", [True, False])
def test_a_held_number_is_decided(service: Service, opted_out: bool) -> None:
    """Once; with a key the first answer comes again."""
    tenant = service.tenant()
    receive(service, tenant, "do not stop")
    [held] = tenant.get("/manage/unsubscribes").json()["data"]
    assert held["scope"] == "held"
    path = f"/manage/unsubscribes/{held['phone']}/resolve"
    first, second = (tenant.post(path, {"opted_out": opted_out}, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.json() == second.json()
    assert first.json()["scope"] == ("all" if opted_out else "held")
    left = tenant.get("/manage/unsubscribes").json()["data"]
    assert left == ([first.json()] if opted_out else [])
    check_envelope(
        tenant.post(path, {"opted_out": opted_out}), *((409, "conflict") if opted_out else (404, "not_found"))
    )
    check_envelope(tenant.post(path, {"opted_out": 1}), 400, "invalid_request")
