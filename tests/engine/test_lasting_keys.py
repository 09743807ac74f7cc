"""An idempotency key may be remembered for longer than a day."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outreach import InvalidRequest, NewMessage, NewRecipient, NewSmsCampaign, Outreach
from outreach.http import LastingKey
from outreach.protocols.storage import Storage
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.conftest import OpenStorage, given_workspaces

pytestmark = pytest.mark.anyio

DAY = 86_400.0
KEY = LastingKey(key="order-42", idempotency_days=30)


@pytest.fixture
async def writing(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch on a database of two workspaces."""
    storage: Storage = open_storage(clock)
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        yield engine


async def test_a_lasting_key_is_remembered_for_its_days(writing: Outreach, clock: ManualClock) -> None:
    """A repetition returns the first message; after the days the key makes another one, as any key does after a day."""
    new = NewMessage(to="+14155550102", body="Hi", from_number="+14155550199")
    first = await writing.messages.send(THIS_WORKSPACE, new, idempotency_key=KEY)
    plain = await writing.messages.send(THIS_WORKSPACE, new, idempotency_key="order-43")
    clock.advance(25 * 3600.0)
    assert (await writing.messages.send(THIS_WORKSPACE, new, idempotency_key=KEY)).id == first.id
    assert (await writing.messages.send(THIS_WORKSPACE, new, idempotency_key="order-43")).id != plain.id
    clock.advance(28 * DAY)
    # The period begins with the first request; the days of a repetition do not count.
    assert (await writing.messages.send(THIS_WORKSPACE, new, idempotency_key="order-42")).id == first.id
    clock.advance(DAY)
    assert (await writing.messages.send(THIS_WORKSPACE, new, idempotency_key=KEY)).id != first.id


async def test_a_campaign_is_made_once_in_its_days(writing: Outreach, clock: ManualClock) -> None:
    """Its contacts are compared; other ones are refused."""
    new, contacts = NewSmsCampaign(name="Sale", body="Hi"), [NewRecipient(phone_number="+14155550102")]
    made = (await writing.campaigns.create_sms(THIS_WORKSPACE, new, contacts, idempotency_key=KEY)).campaign
    clock.advance(29 * DAY)
    again = (await writing.campaigns.create_sms(THIS_WORKSPACE, new, contacts, idempotency_key=KEY)).campaign
    assert again.id == made.id
    other = [NewRecipient(phone_number="+14155550103")]
    with pytest.raises(InvalidRequest, match="other contacts"):
        await writing.campaigns.create_sms(THIS_WORKSPACE, new, other, idempotency_key=KEY)


@pytest.mark.parametrize("days", [0, 91, True, 1.5])
def test_the_days_are_whole_and_at_most_90(days: int) -> None:
    """docs/embedding.md#idempotency."""
    with pytest.raises(InvalidRequest, match="idempotency_days"):
        LastingKey(key="order-42", idempotency_days=days)
