"""Every operation that names something is asked for what is another workspace's: it is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from outreach import FlowStep, NewCall, NewFlow, NewMessage, NewNumber
from outreach.models import NewUpload, NewWebhook, UnreachableNumber
from outreach.models.states import DispatchState
from outreach.testing.builders import make_dispatch, make_schedule, new_id
from tests.contract.document import DOCUMENT, operations, resolve
from tests.server.conftest import Service, Tenant
from tests.server.test_errors import check_envelope

NAMING: Final = [
    (path, method, one["operationId"])
    for path, method, one in operations()
    if "{" in path and one["operationId"] != "getContactHistory"
]
"""The operations with an identifier in their path; any number has a history, which may be empty."""

BODIES: Final[Mapping[str, Any]] = {
    "updateCampaign": {"name": "Mine"},
    "resolveUnsubscribe": {"opted_out": True},
    "setCallOutcome": {"outcome": "positive"},
    "addRecipients": {"recipients": [{"phone_number": "+14155550103"}]},
    "updateAgent": {"name": "Mine"},
    "updateNumber": {"rate_per_minute": 1},
    "updateFlow": {"name": "Mine"},
    "updateSchedule": {"name": "Mine"},
    "updateWebhook": {"concurrency": 1},
    "replayWebhook": {"number": 1},
    "sendTestMessage": {"contact": "+14155550101", "to": "+14155550199"},
    "followUpCampaign": {"results": ["expired"]},
    "addUploadChunk": "a" * 65_536,
    "loadUpload": {"campaign": {"channel": "sms", "name": "Mine", "message_body": "Hi"}},
}
"""What is sent where a body is needed."""

IN_QUERIES: Final = (("listCalls", "campaign_id", "campaigns"), ("listCalls", "agent_id", "agents"))
"""Parameters that name something, and what."""


class Property:
    """What a workspace has, by the noun in the path."""

    def __init__(self, service: Service, tenant: Tenant) -> None:
        run, engine, workspace_id = service.run, service.engine, tenant.workspace.id
        self.campaign = tenant.create(recipients=[{"phone_number": "+14155550101"}])
        flow = run(engine.flows.create, workspace_id, NewFlow(name="F", steps=[FlowStep(kind="send", body="Hi")]))
        number = run(engine.numbers.create, workspace_id, NewNumber(phone="+14155550100", carrier="twilio"))
        call = run(engine.calls.create, workspace_id, NewCall(agent_id=tenant.agent.id, to="+14155550103"))
        message = run(engine.messages.send, workspace_id, NewMessage(to="+14155550104", body="Hi"))
        run(
            engine.messages.receive,
            workspace_id,
            from_number="+14155550177",
            to="+14155550100",
            body="do not stop",
        )
        [inbound] = run(engine.messages.list_inbound, workspace_id)
        new = NewUpload(file_name="list.csv", size_bytes=1_000_000)
        upload = run(engine.uploads.create, workspace_id, new)
        landline = UnreachableNumber(
            workspace_id=workspace_id,
            phone="+14155550105",
            channel="sms",
            provider="twilio",
            error_code="30006",
            reported_at=engine.now(),
        )
        run(engine._storage.write, lambda tx: tx.unreachable_numbers.put(landline))
        dispatch = make_dispatch(workspace_id=workspace_id, message_id=message.id, state=DispatchState.UNKNOWN)
        run(engine._storage.write, lambda tx: tx.dispatches.insert(dispatch))
        schedule = make_schedule(workspace_id=workspace_id, template_id=self.campaign["id"])
        run(engine._storage.write, lambda tx: tx.schedules.insert(schedule))
        webhook = run(engine.webhooks.create, workspace_id, NewWebhook(url="https://hooks.example.com/")).webhook
        self.ids = {
            "webhooks": webhook.id,
            "schedules": schedule.id,
            "campaigns": self.campaign["id"],
            "agents": tenant.agent.id,
            "numbers": number.id,
            "flows": flow.id,
            "calls": call.id,
            "sms": message.id,
            "dispatches": dispatch.id,
            "inbound": inbound.id,
            "unsubscribes": "+14155550177",
            "unreachable-numbers": landline.phone,
            "uploads": upload.id,
            # Nobody here has an account; one that is there is told apart by the engine's own tests.
            "accounts": new_id(),
        }

    def path(self, template: str) -> str:
        """Return a path that names what this workspace has."""
        noun = template.removeprefix("/manage").split("/")[1]
        path = re.sub(r"\{(id|phone)\}", self.ids[noun], template)
        assert "{" not in path.replace("{position}", "")
        return path.replace("{position}", "0")


@pytest.fixture
def world(memory_service: Service) -> tuple[Tenant, Tenant, Property]:
    """Return somebody, an owner, and what the owner has."""
    owner = memory_service.tenant(default_region="US")
    return memory_service.tenant(default_region="US"), owner, Property(memory_service, owner)


@pytest.mark.parametrize(("path", "method", "operation"), NAMING)
def test_an_item_of_another_workspace_is_not_found(
    world: tuple[Tenant, Tenant, Property], path: str, method: str, operation: str
) -> None:
    """Another workspace gets a 404. The owner still has the item: the same request succeeds there, or is a conflict."""
    here, owner, its = world
    body = {"json": BODIES[operation]} if operation in BODIES else {}
    if operation == "addUpload":
        body = {"json": {"campaign_id": its.ids["campaigns"]}}
    check_envelope(here.request(method.upper(), its.path(path), **body), 404, "not_found")
    answer = owner.request(method.upper(), its.path(path), **body)
    if not path.startswith("/manage/accounts"):
        assert answer.status_code in {200, 201, 409}, answer.text


@pytest.mark.parametrize(("operation", "parameter", "noun"), IN_QUERIES)
def test_an_item_of_another_workspace_is_not_found_in_a_query(
    world: tuple[Tenant, Tenant, Property], operation: str, parameter: str, noun: str
) -> None:
    """As in a path."""
    here, owner, its = world
    [path] = [path for path, _, one in operations() if one["operationId"] == operation]
    query = {parameter: its.ids[noun]}
    check_envelope(here.get(path, params=query), 404, "not_found")
    assert owner.get(path, params=query).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/manage/campaigns/{own}", {"sms_flow_id": "flows"}),
        ("PATCH", "/manage/campaigns/{calls}", {"agent_id": "agents"}),
    ],
)
def test_an_item_of_another_workspace_is_not_found_in_a_body(
    world: tuple[Tenant, Tenant, Property], method: str, path: str, body: dict[str, str]
) -> None:
    """A flow or an agent that a campaign is to have."""
    here, _, its = world
    own = here.create()["id"]
    people = {"name": "C", "agent_id": here.agent.id, "recipients": [{"phone_number": "+14155550101"}]}
    calls = here.post("/campaigns", people).json()["id"]
    named = {field: its.ids[noun] for field, noun in body.items()}
    check_envelope(here.request(method, path.format(own=own, calls=calls), json=named), 404, "not_found")


def test_lists_show_only_ones_own(world: tuple[Tenant, Tenant, Property]) -> None:
    """A workspace without items of a kind gets an empty list of it."""
    here, owner, _ = world
    paths = [path for path, method, one in operations() if method == "get" and path.startswith("/manage/")]
    lists = [path for path in paths if "{" not in path and _has_data(path)]
    assert len(lists) >= 7
    for path in lists:
        of_owner = owner.get(path).json()["data"]
        mine = {one.get("id") for one in here.get(path).json()["data"]}
        assert path in {"/manage/accounts", "/manage/events"} or of_owner
        assert mine <= {here.agent.id}, path


def _has_data(path: str) -> bool:
    answer = resolve(DOCUMENT["paths"][path]["get"]["responses"]["200"])
    schema = resolve(answer["content"]["application/json"]["schema"])
    return "data" in schema["properties"]


def test_every_identifier_in_a_query_or_body_is_tried() -> None:
    """A new parameter or field that names something has to be added above."""
    found = set()
    for _, _, one in operations():
        for parameter in map(resolve, one.get("parameters", [])):
            if parameter["in"] == "query" and parameter["name"].endswith("_id"):
                found.add((one["operationId"], parameter["name"]))
        content = one["requestBody"]["content"] if "requestBody" in one else {}
        if one["tags"] == ["manage"] and "application/json" in content:
            schema = resolve(content["application/json"]["schema"])
            found |= {(one["operationId"], name) for name in schema["properties"] if name.endswith("_id")}
    assert found == {
        *((operation, parameter) for operation, parameter, _ in IN_QUERIES),
        # The application's own: a list has what is the workspace's with it, and may be empty.
        ("listCalls", "external_id"),
        ("listManagedCampaigns", "external_id"),
        ("listSms", "external_id"),
        # The same within the campaign that the path names.
        ("listRecipients", "external_id"),
        ("updateCampaign", "sms_flow_id"),
        ("updateCampaign", "agent_id"),
        ("createAgent", "provider_agent_id"),
        ("updateAgent", "provider_agent_id"),
        # tests/server/test_uploads.py adds a list of one's own to another's campaign.
        ("addUpload", "campaign_id"),
        # Its engine tests are with those of trunks, which have no operation here.
        ("addNumber", "trunk_id"),
        ("updateNumber", "trunk_id"),
        # A 400: tests/engine/test_schedules.py tries each.
        *(
            (operation, name)
            for operation in ("createSchedule", "updateSchedule", "previewSchedule")
            for name in ("template_id", "audience_id")
        ),
    }
