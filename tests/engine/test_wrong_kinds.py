from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from outreach import (
    AgentUpdate,
    InvalidRequest,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewMessage,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    Outreach,
)
from outreach.server_support import prepare_recipient
from outreach.testing.builders import new_id
from tests.engine.rig import given_workspace

pytestmark = pytest.mark.virtual_time

NUMBER: Any = 4155550101
FAX: Any = "fax"
YES: Any = "yes"
TEXT: Any = "5"
DICT: Any = {"name": "Spring"}
SPRING = NewSmsCampaign(name="Spring", body="Hi {{first_name}}")


async def call_with(engine: Outreach, workspace_id: str, variables: Any) -> None:
    """Call with variables."""
    agent = await engine.agents.create(workspace_id, NewAgent(name="Ada"))
    await engine.calls.create(workspace_id, NewCall(agent_id=agent.id, to="+14155550101", variables=variables))


Wrong = Callable[[Outreach, str], Awaitable[Any]]

WRONG: list[tuple[str, Wrong]] = [
    ("new", lambda e, w: e.agents.create(w, DICT)),
    ("new", lambda e, w: e.agents.create(w, DICT, idempotency_key="k")),
    ("new", lambda e, w: e.numbers.create(w, DICT)),
    ("new", lambda e, w: e.flows.create(w, DICT)),
    ("new", lambda e, w: e.trunks.create(w, DICT)),
    ("new", lambda e, w: e.workspaces.create(DICT)),
    ("new", lambda e, w: e.messages.send_test(w, new_id(), DICT)),
    ("new", lambda e, w: e.campaigns.follow_up(w, new_id(), DICT)),
    ("carrier", lambda e, w: e.numbers.create(w, NewNumber(phone="+14155550101", carrier=FAX))),
    ("carrier", lambda e, w: e.messages.send(w, NewMessage(to="+14155550101", body="Hi", carrier=FAX))),
    ("new", lambda e, w: e.messages.send(w, DICT)),
    ("from_number", lambda e, w: e.messages.receive(w, from_number=NUMBER, to="+14155550101", body="Hi")),
    ("new", lambda e, w: e.calls.create(w, DICT)),
    ("phone_numbers[1]", lambda e, w: e.unsubscribes.add(w, "+14155550101", NUMBER)),
    ("phone_numbers[0]", lambda e, w: e.unsubscribes.remove(w, NUMBER)),
    ("opted_out", lambda e, w: e.unsubscribes.resolve(w, "+14155550101", opted_out=YES)),
    ("phone", lambda e, w: e.campaigns.contact_history(w, new_id(), NUMBER)),
    ("page", lambda e, w: e.http.list_campaigns(w, page=TEXT)),
    ("page_size", lambda e, w: e.http.list_campaigns(w, page_size=0)),
    ("campaign", lambda e, w: e.campaigns.create_sms(w, DICT, [])),
    ("campaign", lambda e, w: e.campaigns.create_call(w, DICT, [])),
    ("campaign", lambda e, w: e.campaigns.create_sms(w, NewCallCampaign(name="x", agent_id="x"), [])),  # type: ignore[arg-type]
    ("credentials", lambda e, w: e.accounts.connect(w, "twilio", TEXT)),
    ("credentials.account_sid", lambda e, w: e.accounts.connect(w, "twilio", {"account_sid": NUMBER})),
    ("change", lambda e, w: e.workspaces.update(w, DICT)),
    ("change", lambda e, w: e.agents.update(w, new_id(), DICT)),
    ("change", lambda e, w: e.trunks.update(w, new_id(), DICT)),
    ("change", lambda e, w: e.numbers.update(w, new_id(), DICT)),
    ("change", lambda e, w: e.flows.update(w, new_id(), DICT)),
    ("change", lambda e, w: e.campaigns.update(w, new_id(), AgentUpdate(name="Ada"))),  # type: ignore[arg-type]
    ("change", lambda e, w: e.sms_settings.update(w, DICT)),
    ("change", lambda e, w: e.call_settings.update(w, DICT)),
    ("change", lambda e, w: e.reply_settings.update(w, DICT)),
    ("search", lambda e, w: e.campaigns.list(w, search=NUMBER)),
    ("limit", lambda e, w: e.messages.list_inbound(w, limit=TEXT)),
    ("limit", lambda e, w: e.audit.list(w, limit=TEXT)),
    ("limit", lambda e, w: e.dispatches.list_unknown(w, limit=TEXT)),
    ("limit", lambda e, w: e.callbacks.list(w, limit=0)),
    (
        "written_at",
        lambda e, w: e.messages.receive(w, from_number="+14155550101", to="+14155550102", body="Hi", written_at=TEXT),
    ),
    ("variables", lambda e, w: call_with(e, w, NUMBER)),
    ("variables.plan", lambda e, w: call_with(e, w, {"plan": object()})),
]
"""The place that the error names, and what is wrong there."""


@pytest.mark.parametrize(("path", "wrong"), WRONG, ids=[f"{n}-{path}" for n, (path, _) in enumerate(WRONG)])
async def test_what_is_of_another_kind_is_refused_by_its_place(engine: Outreach, path: str, wrong: Wrong) -> None:
    """In words, and not by whatever Python says when it comes upon it."""
    workspace = await given_workspace(engine)
    with pytest.raises(InvalidRequest) as caught:
        await wrong(engine, workspace.id)
    assert [detail.path for detail in caught.value.details] == [path]


async def test_contacts_may_be_mappings(engine: Outreach) -> None:
    """As a row of a file is: with the fields of a contact, by the interface's names."""
    workspace = await given_workspace(engine)
    people: list[Any] = [
        {"phone_number": "+14155550101", "first_name": "Ada", "custom_variables": {"plan": "pro"}},
        NewRecipient(phone_number="+14155550102"),
        {"phone_number": "+14155550103", "custom_variables": None, "email": None},
        prepare_recipient(NewRecipient(phone_number="+14155550104"), None),
        [prepare_recipient(NewRecipient(phone_number="+14155550105"), None)],
    ]

    async def each() -> AsyncIterator[Any]:
        for one in people:
            yield one

    for source in (people, each()):
        created = await engine.campaigns.create_sms(workspace.id, SPRING, source)
        found = [one async for one in engine.campaigns.iter_recipients(workspace.id, created.campaign.id)]
        assert [one.phone for one in found] == [f"+1415555010{n}" for n in range(1, 6)]
        assert (found[0].first_name, found[0].custom_variables, found[2].custom_variables) == (
            "Ada",
            {"plan": "pro"},
            {},
        )


@pytest.mark.parametrize(
    ("recipients", "paths", "words"),
    [
        (
            [{"phone": "+14155550101"}],
            ["recipients[0].phone", "recipients[0].phone_number"],
            "is not a field of a contact",
        ),
        ([{"phone_number": "+14155550101", "fist_name": "Ada"}], ["recipients[0].fist_name"], "custom_variables"),
        ([{"phone_number": "+1"}, {"phone_number": NUMBER}], ["recipients[1].phone_number"], "must be a text, not int"),
        ([{"phone_number": None}], ["recipients[0].phone_number"], "must be a text, not NoneType"),
        ([{"phone_number": ""}], ["recipients[0].phone_number"], "at least 1 character"),
        ([{"phone_number": "1", "custom_variables": ["x"]}], ["recipients[0].custom_variables"], "values by name"),
        ([{1: "x", "phone_number": "1"}], ["recipients[0].1"], "is not a field"),
        ([NewRecipient(phone_number=NUMBER)], ["recipients[0].phone_number"], "must be a text, not int"),
        ([NewRecipient(phone_number="1", email=NUMBER)], ["recipients[0].email"], "must be a text, not int"),
        (
            [NewRecipient(phone_number="1", external_id="x" * 256)],
            ["recipients[0].external_id"],
            "must have 1 to 255 characters, has 256",
        ),
        (["+14155550101"], ["recipients[0]"], "must be an outreach.NewRecipient"),
        ([NUMBER], ["recipients[0]"], "not int"),
        ([["+14155550101"]], ["recipients[0]"], "not list"),
        ({"phone_number": "+14155550101"}, ["recipients"], "an iterable of contacts"),
        ("+14155550101", ["recipients"], "not str"),
        (NewRecipient(phone_number="1"), ["recipients"], "not NewRecipient"),
        (None, ["recipients"], "not NoneType"),
    ],
)
async def test_what_is_no_contact_is_refused_by_its_place(
    engine: Outreach, recipients: Any, paths: list[str], words: str
) -> None:
    """A slip in a field's name would leave people without their names, and nobody would notice."""
    workspace = await given_workspace(engine)
    for key in (None, "order-42"):
        with pytest.raises(InvalidRequest, match=words) as caught:
            await engine.campaigns.create_sms(workspace.id, SPRING, recipients, idempotency_key=key)
        assert [detail.path for detail in caught.value.details] == paths
    assert (await engine.campaigns.list(workspace.id)).total == 0
