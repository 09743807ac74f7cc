from __future__ import annotations

import pytest
from store import Shop

from outreach import NewRecipient
from outreach.testing.scripted import ScriptedCarrier
from outreach.testing.waiting import campaign_ended


@pytest.mark.virtual_time
async def test_each_customer_gets_the_announcement(shop: Shop, outreach_carrier: ScriptedCarrier) -> None:
    ada = NewRecipient(phone_number="+14155550102", first_name="Ada")
    campaign = await shop.announce("Hi {{first_name}}, a new book!", [ada])
    ended = await campaign_ended(shop.engine, campaign)
    [message] = outreach_carrier.requests
    assert (message.to, message.body) == ("+14155550102", "Hi Ada, a new book!\nReply STOP to opt out")
    assert ended.counters.successful == 1
