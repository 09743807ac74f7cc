from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import attrs
import pytest

from outreach import CampaignStatus, InvalidRequest, NotFound, Outreach, RecipientStatus
from outreach.errors import Conflict
from outreach.models import TrailRule, TrailStepKind
from outreach.models.states import OPEN_RECIPIENT_STATUSES
from outreach.storage.unit_of_work import Transaction
from outreach.testing.scripted import ScriptedCarrier
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, dispatching, given_campaign, given_workspace, until

pytestmark = pytest.mark.virtual_time


async def test_a_contact_that_waits_for_its_turn_is_left_out(engine: Outreach) -> None:
    """With a step in its trail, an entry in the audit and true counters; the same once more changes nothing."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace, contacts(3))
    place = (workspace.id, campaign.id)
    skipped = await engine.campaigns.skip_recipient(*place, 1, reason="Asked by phone.", actor="cli:ann")
    assert (skipped.status, skipped.reason, skipped.due_at) == (RecipientStatus.SKIPPED, "by_operator", None)
    assert skipped == await engine.campaigns.get_recipient(*place, 1)
    last = (await engine.campaigns.recipient_history(*place, 1)).steps[-1]
    assert (last.what, last.rule, last.reason, last.actor) == (
        TrailStepKind.ENDED,
        TrailRule.OPERATOR,
        "by_operator",
        "cli:ann",
    )
    assert await engine.campaigns.skip_recipient(*place, 1, actor="cli:bob") == skipped
    entries = [one for one in await engine.audit.list(workspace.id) if one.action == "recipient.skip"]
    assert [(one.actor, one.subject, one.detail) for one in entries] == [
        ("cli:ann", f"{campaign.id}/1", "Asked by phone.")
    ]
    counters = (await engine.campaigns.get(*place)).counters
    assert counters == await engine.campaigns.recount(*place)
    assert (counters.open, counters.pending, counters.failed) == (2, 2, 0)


async def test_a_contact_that_is_left_out_gets_nothing_and_does_not_hold_its_campaign_open(
    open_storage: OpenStorage,
) -> None:
    """While the campaign runs, and where nobody else is left."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace, contacts(4), rate_per_minute=60)
        place = (workspace.id, campaign.id)
        await engine.campaigns.skip_recipient(*place, 0)
        await engine.campaigns.start(*place)
        await engine.campaigns.skip_recipient(*place, 3)
        await until(lambda: engine.campaigns.get(*place), lambda found: found.status is CampaignStatus.COMPLETED)
        assert sorted(one.to for one in rig.carrier.requests) == ["+14155550001", "+14155550002"]


async def test_the_last_open_contact_of_a_running_campaign_ends_it(engine: Outreach) -> None:
    """It completes at once, though nobody dispatches."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace, contacts(1))
    await engine.campaigns.start(workspace.id, campaign.id)
    await engine.campaigns.skip_recipient(workspace.id, campaign.id, 0)
    assert (await engine.campaigns.get(workspace.id, campaign.id)).status is CampaignStatus.COMPLETED


@pytest.mark.parametrize("status", RecipientStatus)
async def test_a_contact_whose_request_may_reach_it_is_not_left_out(status: RecipientStatus, engine: Outreach) -> None:
    """Nor one that has ended; nothing is written then."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace, contacts(2))
    place = (workspace.id, campaign.id)

    def put(tx: Transaction) -> None:
        found = tx.recipients.get(*place, 0)
        assert found is not None
        tx.recipients.put(workspace.id, attrs.evolve(found, status=status))

    await engine._storage.write(put)
    before = await engine.campaigns.get_recipient(*place, 0)
    if status in {RecipientStatus.PENDING, RecipientStatus.WAITING}:
        assert (await engine.campaigns.skip_recipient(*place, 0)).reason == "by_operator"
        return
    words = "has begun" if status in OPEN_RECIPIENT_STATUSES else "has ended"
    with pytest.raises(Conflict, match=words):
        await engine.campaigns.skip_recipient(*place, 0)
    assert await engine.campaigns.get_recipient(*place, 0) == before


async def test_what_is_asked_for_wrongly_is_refused(engine: Outreach) -> None:
    """Refused: a campaign that has ended, an unknown position, another workspace, and a reason that is too long."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    campaign = await given_campaign(engine, workspace, contacts(2))
    wrong: list[tuple[type[Exception], tuple[Any, ...], dict[str, Any]]] = [
        (NotFound, (workspace.id, campaign.id, 2), {}),
        (NotFound, (other.id, campaign.id, 0), {}),
        (InvalidRequest, (workspace.id, campaign.id, -1), {}),
        (InvalidRequest, (workspace.id, campaign.id, 0), {"reason": "x" * 201}),
        (InvalidRequest, (workspace.id, campaign.id, 0), {"reason": ""}),
    ]
    for error, place, more in wrong:
        with pytest.raises(error):
            await engine.campaigns.skip_recipient(*place, **more)
    await engine.campaigns.cancel(workspace.id, campaign.id)
    with pytest.raises(Conflict, match="cancelled"):
        await engine.campaigns.skip_recipient(workspace.id, campaign.id, 0)


async def test_a_skip_and_the_turn_of_the_contact_never_both_happen(open_storage: OpenStorage) -> None:
    """Whichever commits first decides, over many contacts that are left out while they are sent to."""
    carrier = ScriptedCarrier()
    async with dispatching(open_storage(clock_of_loop()), carrier=carrier) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace, contacts(60), rate_per_minute=600)
        place = (workspace.id, campaign.id)
        await engine.campaigns.start(*place)
        skipped: set[str] = set()
        for position in range(59, 0, -2):
            with suppress(Conflict):
                skipped.add((await engine.campaigns.skip_recipient(*place, position)).phone_number)
            await anyio.sleep(0.1)
        await until(lambda: engine.campaigns.get(*place), lambda found: found.status is CampaignStatus.COMPLETED)
        sent = [one.to for one in carrier.requests]
        assert skipped
        assert len(sent) == len(set(sent)) == 60 - len(skipped)
        assert skipped.isdisjoint(sent)
