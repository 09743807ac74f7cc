from __future__ import annotations

import orjson
import pytest

from outreach import NewRecipient
from outreach.events import MessageReceived, MessageStatusChanged, RecipientEnded
from outreach.ledger.subscriptions import events_between
from outreach.ledger.webhook_contents import contents_of
from outreach.protocols.storage import Storage
from outreach.serialization.webhook_bodies import body_of, type_of
from outreach.storage.unit_of_work import Transaction
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace, reported

pytestmark = pytest.mark.virtual_time

PHONE = "+14155550101"


async def full_bodies(storage: Storage, workspace_id: str) -> dict[str, dict[str, object]]:
    """Return the data of the full bodies of all events, by type; of several of a type the last one."""

    def operation(tx: Transaction) -> dict[str, dict[str, object]]:
        last = tx.trail.last_number()
        events = [event for event in events_between(tx, workspace_id, 0, last) if event is not None]
        pairs = zip(events, contents_of(tx, events), strict=True)
        return {type_of(event): orjson.loads(body_of(event, "full", content))["data"] for event, content in pairs}

    return await storage.read(operation)


async def test_full_bodies_have_numbers_and_texts_until_the_person_is_erased(open_storage: OpenStorage) -> None:
    """They are read when a body is made: after an erasure neither the number nor the text is in any of them."""
    storage = open_storage(clock_of_loop())
    async with dispatching(storage) as rig:
        workspace = await given_workspace(rig.engine)
        kinds = (RecipientEnded, MessageStatusChanged, MessageReceived)
        async with rig.engine.events.subscribe(*kinds, workspace_id=workspace.id) as stream:
            campaign = await given_campaign(rig.engine, workspace, [NewRecipient(phone_number=PHONE)])
            await rig.engine.campaigns.start(workspace.id, campaign.id)
            await rig.carrier.wait_for_requests(1)
            (request,) = rig.carrier.requests
            rig.carrier.report(reported(request))
            await rig.engine.messages.receive(workspace.id, from_number=PHONE, to="+14155550199", body="Which table?")
            for _ in range(3):
                await anext(stream)
        before = await full_bodies(storage, workspace.id)
        assert before["recipient.ended"]["phone"] == PHONE
        assert (before["message.status"]["phone"], before["message.status"]["text"]) == (PHONE, request.body)
        received = before["message.received"]
        assert (received["from_number"], received["text"]) == (PHONE, "Which table?")
        await rig.engine.erasure.purge(workspace.id, PHONE)
        after = await full_bodies(storage, workspace.id)
        assert after["recipient.ended"]["phone"] is None
        assert (after["message.status"]["phone"], after["message.status"]["text"]) == (None, None)
        assert after["message.received"]["text"] is None
        assert PHONE not in str(after)
