"""/manage/campaigns: what a console does with a campaign, its recipients and their trails."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Tenant, sms_body
from tests.server.test_errors import check_envelope

READY = {"sms_carrier": "twilio", "sms_from_number": "+14155550100"}
PEOPLE = [{"phone_number": number} for number in ("+14155550101", "+14155550102", "+14155550101", "12")]


def test_a_campaign_is_shown_with_what_a_console_needs(tenant: Tenant) -> None:
    """The fields of the interface, why it is paused, and what blocks it."""
    made = tenant.create(**READY)
    shown = tenant.get(f"/manage/campaigns/{made['id'].upper()}").json()
    assert {name: shown[name] for name in made if name != "sms_opted_out_excluded"} == {
        name: value for name, value in made.items() if name != "sms_opted_out_excluded"
    }
    assert (shown["pause_reason"], shown["open_recipients"], shown["blockers"]) == (None, 1, [])
    assert tenant.post(f"/manage/campaigns/{made['id']}/start").json()["status"] == "active"
    blocked = tenant.get(f"/manage/campaigns/{made['id']}").json()["blockers"]
    assert [one["by"] for one in blocked] == ["no_dispatcher"]
    assert tenant.post(f"/manage/campaigns/{made['id']}/pause").json()["pause_reason"] == "operator"
    assert tenant.get(f"/manage/campaigns/{made['id']}").json()["pause_why"]


def test_a_campaign_goes_from_state_to_state(tenant: Tenant) -> None:
    """Started, paused, resumed and cancelled; a scheduled one is taken back. The trail names the API."""
    path = f"/manage/campaigns/{tenant.create(**READY)['id']}"
    for move, status in (("start", "active"), ("pause", "paused"), ("resume", "active"), ("cancel", "cancelled")):
        answer = tenant.post(f"{path}/{move}")
        assert (answer.status_code, answer.json()["status"]) == (200, status)
    error = check_envelope(tenant.post(f"{path}/resume"), 409, "illegal_transition")
    assert "this state is final" in error["message"]
    start = {"schedule_type": "scheduled", "scheduled_start_at": "2999-01-01T00:00:00Z"}
    path = f"/manage/campaigns/{tenant.create(**READY, **start)['id']}"
    assert tenant.post(f"{path}/start", {}).json()["status"] == "scheduled"
    assert tenant.post(f"{path}/unschedule").json()["status"] == "ready"


def test_the_answers_of_start_and_resume_have_warnings(tenant: Tenant) -> None:
    """In the names of the update: here of a sending number that the sandbox does not have.

    Its replay is the same; another campaign or body under the same key is refused; another move has its own keys.
    """
    path, other = (f"/manage/campaigns/{tenant.create(**READY)['id']}" for _ in range(2))
    key = {"Idempotency-Key": "start"}
    started = tenant.post(f"{path}/start", headers=key).json()
    assert tenant.post(f"{path}/start", headers=key).json() == started
    for again in (tenant.post(f"{other}/start", headers=key), tenant.post(f"{path}/start", {}, headers=key)):
        assert check_envelope(again, 400, "invalid_request")["details"][0]["path"] == "Idempotency-Key"
    [warning] = started["warnings"]
    assert warning["path"] == "sms_from_number"
    assert "+14155550100 is not a number of the workspace" in warning["message"]
    assert tenant.post(f"{path}/pause", headers=key).json()["warnings"] == []
    assert tenant.post(f"{path}/resume").json()["warnings"] == [warning]
    assert tenant.get(path).json()["warnings"] == []


def test_what_keeps_a_campaign_from_starting_is_reported_by_field(tenant: Tenant) -> None:
    """In the names of the update; placeholders without a value may be allowed."""
    path = f"/manage/campaigns/{tenant.create(message_body='Hi {{nobody}}')['id']}"
    error = check_envelope(tenant.post(f"{path}/start"), 409, "cannot_start")
    assert {"sms_carrier", "sms_from_number"} <= {one["path"] for one in error["details"]}
    assert tenant.patch(path, READY).json()["status"] == "ready"
    error = check_envelope(tenant.post(f"{path}/start"), 409, "cannot_start")
    assert [one["path"] for one in error["details"]] == ["placeholders"]
    assert tenant.post(f"{path}/start", {"allow_unknown_placeholders": True}).json()["status"] == "active"
    check_envelope(tenant.patch(path, {"sms_carrier": "telnyx"}), 409, "conflict")
    assert tenant.patch(path, {"name": "Later"}).json()["name"] == "Later"


def test_a_campaign_is_changed_field_by_field(tenant: Tenant) -> None:
    """Null clears; a draft is what it becomes without what it needs."""
    path = f"/manage/campaigns/{tenant.create(**READY, description='Old')['id']}"
    hours = {"timezone": "UTC", "days": ["mon"], "start": "09:00", "end": "17:00"}
    changed = tenant.patch(
        path,
        {
            "name": "New",
            "description": None,
            "message_body": "Bye",
            "sms_rate_per_minute": 7,
            "scheduled_start_at": "2999-01-01T00:00:00Z",
            "business_hours_config": hours,
            "holidays_config": {"country": "US"},
        },
    ).json()
    assert (changed["name"], changed["description"], changed["sms_message_body"]) == ("New", None, "Bye")
    assert (changed["sms_rate_per_minute"], changed["schedule_type"], changed["timezone"]) == (7, "scheduled", "UTC")
    assert changed["holidays_config"]["country"] == "US"
    assert changed["replace_characters"] is False
    assert tenant.patch(path, {"replace_characters": True}).json()["replace_characters"] is True
    changed["replace_characters"] = True
    assert tenant.patch(path, {}).json() == changed | {"updated_at": tenant.get(path).json()["updated_at"]}
    assert tenant.patch(path, {"sms_carrier": None, "scheduled_start_at": None}).json()["status"] == "draft"


def test_a_campaign_is_created_with_plain_characters(tenant: Tenant) -> None:
    """Its answer keeps the documented fields, `/manage` shows the switch, and the preflight its effect."""
    made = tenant.create(**READY | {"message_body": "It\u2019s open"}, replace_characters=True)
    assert "replace_characters" not in made
    assert tenant.get(f"/manage/campaigns/{made['id']}").json()["replace_characters"] is True
    told = tenant.get(f"/manage/campaigns/{made['id']}/preflight").json()["replacement"]
    assert (told["enabled"], told["examples"][0]["after"].splitlines()[0]) == (True, "It's open")


def test_a_campaign_is_created_with_a_sender_pool(tenant: Tenant) -> None:
    """Its answer keeps the documented fields, with the first number; a change names another pool, or one number."""
    pool = ["+14155550197", "+14155550198"]
    made = tenant.create(sms_carrier="twilio", sms_from_numbers=pool)
    assert (made["status"], made["sms_from_number"], "sms_from_numbers" in made) == ("ready", pool[0], False)
    path = f"/manage/campaigns/{made['id']}"
    assert tenant.get(path).json()["sms_from_numbers"] == pool
    changed = tenant.patch(path, {"sms_from_numbers": pool[::-1]}).json()
    assert (changed["sms_from_number"], changed["sms_from_numbers"]) == (pool[1], pool[::-1])
    changed = tenant.patch(path, {"sms_from_number": pool[0]}).json()
    assert (changed["sms_from_number"], changed["sms_from_numbers"]) == (pool[0], [])


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"body": "Hi"}, "body"),
        ({"sms_from_numbers": "+14155550197"}, "sms_from_numbers"),
        ({"sms_from_numbers": None}, "sms_from_numbers"),
        ({"sms_from_numbers": ["ACME"]}, "sms_from_numbers[0]"),
        ({"sms_from_numbers": ["+14155550197"] * 2}, "sms_from_numbers[1]"),
        ({"sms_from_numbers": ["+14155550197"], "sms_from_number": "+14155550198"}, "sms_from_number"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"sms_rate_per_minute": 0}, "sms_rate_per_minute"),
        ({"sms_rate_per_minute": "60"}, "sms_rate_per_minute"),
        ({"replace_characters": 1}, "replace_characters"),
        ({"replace_characters": None}, "replace_characters"),
        ({"batch_concurrency": 41}, "batch_concurrency"),
        ({"batch_concurrency": 5}, "batch_concurrency"),
        ({"sms_carrier": "pigeon"}, "sms_carrier"),
        ({"sms_flow_id": "x"}, "sms_flow_id"),
        ({"message_body": "a", "sms_flow_id": "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"}, "sms_flow_id"),
        ({"agent_id": "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"}, "agent_id"),
        ({"business_hours_config": {"timezone": "Nowhere/Here", "schedule": {}}}, "business_hours_config.timezone"),
        ({"scheduled_start_at": "tomorrow"}, "scheduled_start_at"),
        ([], ""),
    ],
)
def test_a_wrong_change_is_refused_where_it_is_wrong(memory_tenant: Tenant, body: Any, where: str) -> None:
    """With the names of the body, and nothing changed."""
    path = f"/manage/campaigns/{memory_tenant.create(**READY)['id']}"
    before = memory_tenant.get(path).json()
    answer = memory_tenant.patch(path, body)
    if where == "agent_id":
        check_envelope(answer, 404, "not_found")
    else:
        error = check_envelope(answer, 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == [where]
    assert memory_tenant.get(path).json() == before


def test_what_takes_no_body_gets_none(memory_tenant: Tenant) -> None:
    """And a malformed key is told before the campaign is looked up."""
    path = "/manage/campaigns/1/pause"
    assert "takes no body" in check_envelope(memory_tenant.post(path, {}), 400, "invalid_request")["message"]
    check_envelope(memory_tenant.post(path, headers={"Idempotency-Key": ""}), 400, "invalid_request")
    check_envelope(memory_tenant.post(path), 404, "not_found")


@pytest.mark.parametrize("count", [1, 3_000])
def test_the_external_id_of_a_recipient_is_kept(tenant: Tenant, count: int) -> None:
    """From the body of the creation, small or large; an empty, long or other value is refused by its place."""
    people = [{"phone_number": "+14155550102", "external_id": f"crm-{number}"} for number in range(count)]
    created = tenant.create(recipients=[*people, {"phone_number": "+14155550103", "external_id": None}])
    assert "external_id" not in created
    path = f"/manage/campaigns/{created['id']}/recipients"
    found = tenant.get(path, params={"external_id": f"crm-{count - 1}"}).json()["data"]
    assert [(one["position"], one["external_id"]) for one in found] == [(count - 1, f"crm-{count - 1}")]
    assert tenant.get(f"{path}/{count}").json()["external_id"] is None
    for wrong in ("", "x" * 256, 7):
        body = sms_body(recipients=[people[0], {"phone_number": "1", "external_id": wrong}])
        refused = check_envelope(tenant.post("/sms-campaigns", body), 400, "invalid_request")
        assert [one["path"] for one in refused["details"]] == ["recipients[1].external_id"]


@pytest.mark.parametrize("count", [1, 3_000])
def test_the_time_zone_of_a_recipient_is_kept(tenant: Tenant, count: int) -> None:
    """From a small or large body of the creation. An unknown zone is refused, and its place named."""
    people = [{"phone_number": "+14155550102", "time_zone": "America/Denver"}] * count
    created = tenant.create(recipients=[*people, {"phone_number": "+14155550103", "time_zone": None, "state": 7}])
    path = f"/manage/campaigns/{created['id']}/recipients"
    assert [tenant.get(f"{path}/{place}").json()["time_zone"] for place in (0, count)] == ["America/Denver", None]
    trail = tenant.get(f"{path}/0/trail").json()
    assert (trail["time_zones"], trail["zone_source"], trail["narrower_hours"]) == (["America/Denver"], "own", [])
    for wrong in ("", "Eastern", 7):
        body = sms_body(recipients=[people[0], {"phone_number": "1", "time_zone": wrong}])
        refused = check_envelope(tenant.post("/sms-campaigns", body), 400, "invalid_request")
        assert [one["path"] for one in refused["details"]] == ["recipients[1].time_zone"]


def test_recipients_are_listed_by_state_and_reason(tenant: Tenant) -> None:
    """Page by page, each once; counts by state and reason in words."""
    path = f"/manage/campaigns/{tenant.create(**READY, recipients=PEOPLE)['id']}"
    found: list[Any] = []
    query: dict[str, Any] = {"limit": 3}
    while query:
        page = tenant.get(f"{path}/recipients", params=query).json()
        found += page["data"]
        query = {"limit": 3, "after": page["next"]} if page["next"] is not None else {}
    assert [one["position"] for one in found] == [0, 1, 2, 3]
    assert [one["reason"] for one in found] == [None, None, "duplicate", "invalid_number"]
    assert all(one["why"] for one in found[2:])

    def positions(**wanted: str) -> list[int]:
        listed = tenant.get(f"{path}/recipients", params=wanted).json()
        assert listed["next"] is None
        return [one["position"] for one in listed["data"]]

    assert positions(status="skipped") == [2, 3]
    assert positions(reason="invalid_number") == [3]
    assert positions(status="pending", reason="duplicate") == []
    number = found[2]["phone"]
    assert positions(phone=number) == positions(phone=number.removeprefix("+")) == [0, 2]
    assert positions(phone=number, status="skipped") == [2]
    # A plus sign that is not encoded is a space.
    assert tenant.get(f"{path}/recipients?phone={number}&limit=1").json()["data"] == found[:1]
    assert positions(external_id="crm-7") == []
    counts = tenant.get(f"{path}/results").json()["data"]
    assert sum(one["count"] for one in counts) == 4
    assert {(one["status"], one["reason"], one["count"]) for one in counts} >= {("pending", None, 2)}
    assert tenant.get(f"{path}/recipients/2").json() == found[2]
    trail = tenant.get(f"{path}/recipients/2/trail").json()
    assert (trail["position"], trail["reason"], trail["why"]) == (2, "duplicate", found[2]["why"])
    assert all(step["rule_text"] for step in trail["steps"])


@pytest.mark.parametrize("position", ["4", "-1", "x", "999999999999999999", "1" * 30, "%00"])
def test_a_recipient_that_is_not_there_is_a_404(memory_tenant: Tenant, position: str) -> None:
    """Whatever the path holds."""
    path = f"/manage/campaigns/{memory_tenant.create(**READY, recipients=PEOPLE)['id']}/recipients/{position}"
    for answer in (memory_tenant.get(path), memory_tenant.get(f"{path}/trail")):
        check_envelope(answer, 404, "not_found")


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=+5", "limit"),
        ("limit=5&limit=5", "limit"),
        ("page=1", "page"),
        ("status=lost", "status"),
        ("status=", "status"),
        ("reason=", "reason"),
        ("reason=%00", "reason"),
        ("after=-1", "after"),
        (f"after={10**18}", "after"),
        ("%FF=1", ""),
    ],
)
def test_a_wrong_parameter_is_refused(memory_tenant: Tenant, query: str, where: str) -> None:
    """Also an unknown one, which the operations of the interface ignore."""
    path = f"/manage/campaigns/{memory_tenant.create()['id']}/recipients"
    error = check_envelope(memory_tenant.get(f"{path}?{query}"), 400, "invalid_request")
    assert [one["path"] for one in error["details"]] == [where]


def test_contacts_are_added_to_a_campaign_that_has_not_ended(tenant: Tenant) -> None:
    """All of them or none; the same key adds once, for one campaign; an ended campaign takes none."""
    path, other = (f"/manage/campaigns/{tenant.create(**READY)['id']}" for _ in range(2))
    key = {"Idempotency-Key": "sign-up-42"}
    answer = tenant.post(f"{path}/recipients", {"recipients": PEOPLE}, headers=key)
    assert answer.status_code == 201
    added = {"campaign_id": path.rpartition("/")[2], "skipped": 2, "opted_out_excluded": 0, "audience": None}
    assert {**answer.json(), "skipped": 2} == {**added, "added": 4}
    assert tenant.post(f"{path}/recipients", {"recipients": PEOPLE}, headers=key).json() == answer.json()
    again = tenant.post(f"{other}/recipients", {"recipients": PEOPLE}, headers=key)
    assert check_envelope(again, 400, "invalid_request")["details"][0]["path"] == "Idempotency-Key"
    assert tenant.get(path).json()["total_recipients"] == 5
    last = tenant.get(f"{path}/recipients/4").json()
    assert (last["phone_number"], last["reason"], last["added_at"] is None) == ("12", "invalid_number", False)
    bad = tenant.post(f"{path}/recipients", {"recipients": [PEOPLE[0], {"phone_number": ""}]})
    assert check_envelope(bad, 400, "invalid_request")["details"][0]["path"] == "recipients[1].phone_number"
    counted = tenant.post(f"{path}/recipients", {"recipients": PEOPLE[:1], "leave_out": {}}).json()
    assert counted["audience"]["contacts"] == 1
    tenant.post(f"{path}/cancel")
    check_envelope(tenant.post(f"{path}/recipients", {"recipients": PEOPLE}), 409, "conflict")
    check_envelope(tenant.post("/manage/campaigns/none/recipients", {"recipients": PEOPLE}), 404, "not_found")


def test_a_campaign_that_stays_open_is_closed(tenant: Tenant) -> None:
    """`stay_open` is set by the creation or a change; a cancelled campaign cannot be closed."""
    made = tenant.create(**READY, stay_open=True)
    assert "stay_open" not in made
    path = f"/manage/campaigns/{made['id']}"
    assert tenant.get(path).json()["stay_open"] is True
    assert tenant.post(f"{path}/close").json()["stay_open"] is False
    assert tenant.patch(path, {"stay_open": True}).json()["stay_open"] is True
    tenant.post(f"{path}/cancel")
    check_envelope(tenant.post(f"{path}/close"), 409, "conflict")


def test_what_an_application_attaches_is_shown_to_it_alone(tenant: Tenant) -> None:
    """Under /manage, where lists find it by its id; the answers of the interface are as without it."""
    own: Any = {"external_id": "order-42", "metadata": {"team": 7, "price": 1.5}}
    made, plain = tenant.create(**own, **READY), tenant.create(**READY)
    assert made.keys() == plain.keys()
    calling = {"channel": "call", "agent_id": tenant.agent.id, "name": "C", "recipients": PEOPLE}
    call_campaign = tenant.post("/campaigns", {**calling, **own}).json()
    sent = [
        tenant.post("/sms", {"to": PEOPLE[0]["phone_number"], "body": "Hi", **more}).json()
        for more in (own, dict[str, Any]())
    ]
    assert sent[0].keys() == sent[1].keys()
    call = {"agent_id": tenant.agent.id, "to": PEOPLE[0]["phone_number"], **own}
    answer = tenant.post("/calls", call)
    placed = answer.headers["Location"].removeprefix("/calls/")
    assert "metadata" not in tenant.get(f"/calls/{placed}").json()
    for path in (f"/manage/campaigns/{made['id']}", f"/manage/sms/{sent[0]['id']}", f"/manage/calls/{placed}"):
        shown = tenant.get(path).json()
        assert {name: shown[name] for name in own} == own
    query = "?external_id=order-42"
    found = tenant.get(f"/manage/campaigns{query}").json()
    assert [one["id"] for one in found["data"]] == [call_campaign["id"], made["id"]]
    assert found["data"][1] == tenant.get(f"/manage/campaigns/{made['id']}").json()
    wanted = f"{query}&channel=sms&status=ready&search=aut&limit=1"
    assert [one["id"] for one in tenant.get(f"/manage/campaigns{wanted}").json()["data"]] == [made["id"]]
    assert tenant.get(f"/manage/campaigns{query}&archived=true").json() == {"data": [], "next": None}
    assert [one["id"] for one in tenant.get(f"/manage/sms{query}").json()["data"]] == [sent[0]["id"]]
    assert [one["id"] for one in tenant.get(f"/manage/calls{query}").json()["data"]] == [placed]
    assert len(tenant.get("/manage/sms").json()["data"]) == 2
    pair = "?metadata=team%3D7"
    assert [one["id"] for one in tenant.get(f"/manage/campaigns{pair}").json()["data"]] == [
        call_campaign["id"],
        made["id"],
    ]
    assert [one["id"] for one in tenant.get(f"/manage/campaigns{pair}&channel=sms").json()["data"]] == [made["id"]]
    assert [one["id"] for one in tenant.get(f"/manage/sms{pair}").json()["data"]] == [sent[0]["id"]]
    assert [one["id"] for one in tenant.get(f"/manage/calls{pair}").json()["data"]] == [placed]
    for kind in ("campaigns", "sms", "calls"):
        assert tenant.get(f"/manage/{kind}?metadata=team%3D8").json() == {"data": [], "next": None}
    event = next(one for one in tenant.get("/manage/events").json()["data"] if one["campaign_id"] == made["id"])
    assert {name: event[name] for name in own} == own


@pytest.mark.parametrize("path", ["/manage/campaigns", "/manage/sms", "/manage/calls"])
def test_a_list_by_no_id_is_refused(memory_tenant: Tenant, path: str) -> None:
    """An id that an application forgot to fill in does not return everything."""
    for wrong in ("", "x" * 256):
        for name in ("external_id", "metadata"):
            error = check_envelope(memory_tenant.get(f"{path}?{name}={wrong}"), 400, "invalid_request")
            assert [one["path"] for one in error["details"]] == [name]
    error = check_envelope(memory_tenant.get(f"{path}?metadata=team"), 400, "invalid_request")
    assert "such as team=7" in error["details"][0]["message"]


@pytest.mark.parametrize("metadata", [[], {"a": "x" * 4096}, "{}"])
def test_wrong_metadata_is_refused(memory_tenant: Tenant, metadata: Any) -> None:
    """Whatever is made with it."""
    for path, body in (
        ("/sms-campaigns", sms_body(metadata=metadata)),
        ("/sms", {"to": PEOPLE[0]["phone_number"], "body": "Hi", "metadata": metadata}),
        ("/calls", {"to": PEOPLE[0]["phone_number"], "agent_id": memory_tenant.agent.id, "metadata": metadata}),
    ):
        error = check_envelope(memory_tenant.post(path, body), 400, "invalid_request")
        assert [one["path"] for one in error["details"]] == ["metadata"]
