"""The application's own names of contacts."""

from __future__ import annotations

import anyio
import pytest

from outreach import InvalidRequest, NewRecipient, NewSmsCampaign, NotFound, Outreach
from outreach.events import CallEnded, MessageStatusChanged, RecipientEnded
from outreach.http import parse_json, read_sms_campaign
from outreach.models.states import TrailStepKind
from outreach.serialization.events import OwnData, event_from_entry
from outreach.server_support import prepare_recipient, read_simple_body
from outreach.testing.builders import make_trail_entry, new_id
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace, reported

pytestmark = pytest.mark.virtual_time

ANN, BEN = "+14155550101", "+14155550102"


async def test_a_contact_is_found_by_the_id_of_the_application(engine: Outreach) -> None:
    """In one campaign and in all of the workspace, the newest first, as a model and as a mapping; not in another's."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    people = [NewRecipient(phone_number=ANN, external_id="crm-7"), NewRecipient(phone_number=BEN)]
    older = await given_campaign(engine, workspace, people)
    await anyio.sleep(1)
    newer = await given_campaign(engine, workspace, [{"phone_number": ANN, "external_id": "crm-7"}])  # type: ignore[list-item]
    await given_campaign(engine, other, people)
    found = await engine.campaigns.list_appearances(workspace.id, "crm-7")
    assert [(one.campaign_id, one.position, one.external_id) for one in found] == [
        (newer.id, 0, "crm-7"),
        (older.id, 0, "crm-7"),
    ]
    [one] = await engine.campaigns.list_recipients(workspace.id, older.id, external_id="crm-7")
    assert one.campaign_id == older.id
    assert list(await engine.campaigns.list_appearances(workspace.id, "crm-8")) == []
    with pytest.raises(NotFound):
        await engine.campaigns.list_recipients(other.id, older.id, external_id="crm-7")


@pytest.mark.parametrize("wrong", ["", "x" * 256, "a\x00b", 7])
async def test_an_id_that_cannot_be_kept_is_named_with_its_contact(engine: Outreach, wrong: object) -> None:
    """It is 1 to 255 characters of text."""
    workspace = await given_workspace(engine)
    people = [NewRecipient(phone_number=ANN), NewRecipient(phone_number=BEN, external_id=wrong)]  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest) as raised:
        await given_campaign(engine, workspace, people)
    assert [detail.path for detail in raised.value.details] == ["recipients[1].external_id"]
    longest = await given_campaign(engine, workspace, [NewRecipient(phone_number=ANN, external_id="x" * 255)])
    assert len(await engine.campaigns.list_appearances(workspace.id, "x" * 255)) == longest.counters.total


async def test_events_name_the_contact_by_its_id(open_storage: OpenStorage) -> None:
    """Those about a recipient; without an id it is None."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        people = [NewRecipient(phone_number=ANN, external_id="crm-7"), NewRecipient(phone_number=BEN)]
        campaign = await given_campaign(engine, workspace, people)
        async with engine.events.subscribe(RecipientEnded, MessageStatusChanged) as stream:
            await engine.campaigns.start(workspace.id, campaign.id)
            await rig.carrier.wait_for_requests(2)
            for request in rig.carrier.requests:
                rig.carrier.report(reported(request))
            with anyio.fail_after(3600):
                told = [await anext(stream) for _ in range(4)]
    assert {(type(event), event.position, event.external_id) for event in told} == {
        (RecipientEnded, 0, "crm-7"),
        (MessageStatusChanged, 0, "crm-7"),
        (RecipientEnded, 1, None),
        (MessageStatusChanged, 1, None),
    }


async def test_the_history_of_a_contact_is_found_by_its_id(engine: Outreach) -> None:
    """Each of its places; exactly one of number and id is given."""
    workspace = await given_workspace(engine)
    people = [NewRecipient(phone_number=phone, external_id="crm-7") for phone in (ANN, BEN, "nothing")]
    campaign = await given_campaign(engine, workspace, people)
    found = await engine.campaigns.contact_history(workspace.id, campaign.id, external_id="crm-7")
    assert [(one.position, one.phone, one.external_id, one.reason) for one in found] == [
        (0, ANN, "crm-7", None),
        (1, BEN, "crm-7", None),
        (2, None, "crm-7", "invalid_number"),
    ]
    assert [one.external_id for one in await engine.campaigns.contact_history(workspace.id, campaign.id, ANN)] == [
        "crm-7"
    ]
    with pytest.raises(NotFound):
        await engine.campaigns.contact_history(workspace.id, campaign.id, external_id="crm-8")
    for wrong in ({}, {"phone": ANN, "external_id": "crm-7"}):
        with pytest.raises(InvalidRequest, match="external_id"):
            await engine.campaigns.contact_history(workspace.id, campaign.id, **wrong)


async def test_the_same_key_with_other_ids_is_refused(engine: Outreach) -> None:
    """The id is part of what a contact is."""
    workspace = await given_workspace(engine)

    async def create(external_id: str) -> str:
        made = await engine.campaigns.create_sms(
            workspace.id,
            NewSmsCampaign(name="C", body="Hi"),
            [NewRecipient(phone_number=ANN, external_id=external_id)],
            idempotency_key="order-42",
        )
        return made.campaign.id

    assert await create("a") == await create("a")
    with pytest.raises(InvalidRequest, match="other contacts"):
        await create("b")


def test_a_body_of_the_interface_keeps_it() -> None:
    """Both readers of bodies do."""
    body = b'{"name":"C","message_body":"Hi","recipients":[{"phone_number":"+14155550101","external_id":"x"}]}'
    _, [recipient] = read_sms_campaign(parse_json(body), this_year=2026)
    assert recipient.external_id == "x"
    quickly = read_simple_body(body)
    assert quickly is not None
    [[prepared]] = quickly.chunks(None, size=10)
    assert prepared == prepare_recipient(recipient, None)


def test_the_end_of_a_call_names_its_contact() -> None:
    """As the end of a recipient and a report do."""
    entry = make_trail_entry(what=TrailStepKind.CALL_ENDED, state="completed", call_id=new_id(), position=0)
    event = event_from_entry(entry, OwnData("crm-7"))
    assert isinstance(event, CallEnded)
    assert event.external_id == "crm-7"
