"""Contacts by result: what is counted without a look at each of them equals what a look at each of them finds."""

from __future__ import annotations

import random
from collections import Counter

import attrs
import pytest

from outreach import Campaign, NewRecipient, NewSmsCampaign, Outreach, RecipientStatus, Workspace
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.models import TrailRule
from outreach.models.campaign import Counters
from outreach.services.campaigns import recipients
from outreach.storage.unit_of_work import Transaction

pytestmark = pytest.mark.anyio

CONTACTS = 40
LIMIT = 5
REASONS = (None, "unreachable", "no_evidence")


@pytest.fixture
async def campaign(outreach_engine: Outreach, outreach_workspace: Workspace) -> Campaign:
    """A campaign whose contacts are in all states."""
    new = NewSmsCampaign(name="Visits", body="Hi", carrier="twilio", from_number="+12025550100")
    people = [NewRecipient(phone_number=f"+1303555{number:04}") for number in range(CONTACTS)]
    made = (await outreach_engine.campaigns.create_sms(outreach_workspace.id, new, people)).campaign
    rng = random.Random(7)

    def write(tx: Transaction) -> None:
        now, change = outreach_engine.now(), Counters()
        for before in tx.recipients.page(made.workspace_id, made.id):
            status = rng.choice(list(RecipientStatus))
            if status is RecipientStatus.PENDING:
                continue
            after = attrs.evolve(before, status=status, reason=rng.choice(REASONS), dispatched=rng.random() < 0.5)
            change += put_recipient(tx, made.workspace_id, before, after, rule=TrailRule.OPERATOR, now=now)
        tx.campaigns.add_counters(made.workspace_id, made.id, change)

    await outreach_engine._storage.write(write)
    return made


async def test_the_counts_equal_a_recount(outreach_engine: Outreach, campaign: Campaign) -> None:
    """Of each state and reason, no reason first."""
    at = (campaign.workspace_id, campaign.id)
    found = await outreach_engine.campaigns.count_recipients(*at)
    looked = Counter([(one.status, one.reason) async for one in outreach_engine.campaigns.iter_recipients(*at)])
    assert {(one.status, one.reason): one.count for one in found} == looked
    keys = [(one.status, one.reason or "") for one in found]
    assert keys == sorted(keys)


@pytest.mark.parametrize("few", [0, 3, 10_000])
async def test_pages_of_a_state_are_the_same_however_they_are_found(
    outreach_engine: Outreach, campaign: Campaign, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """In the index of the few, or by a walk over all, which ends with the last."""
    monkeypatch.setattr(recipients, "_FEW", few)
    at, campaigns = (campaign.workspace_id, campaign.id), outreach_engine.campaigns
    everybody = [one async for one in campaigns.iter_recipients(*at)]
    for status in RecipientStatus:
        for reason in (None, *REASONS[1:], "nothing"):
            wanted = [one for one in everybody if one.status is status and reason in {None, one.reason}]
            page = await campaigns.list_recipients(*at, status=status, reason=reason, limit=LIMIT)
            found = list(page.items)
            while page.next is not None:
                page = await campaigns.list_recipients(*at, status=status, reason=reason, after=page.next, limit=LIMIT)
                found += page.items
            assert found == wanted
