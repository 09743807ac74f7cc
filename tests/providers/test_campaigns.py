from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Final

import pytest

from outreach import NewNumber, NewRecipient, NewSmsCampaign
from tests.process.place import Place
from tests.providers.carriers import CARRIERS, SENDER, CarrierPart
from tests.providers.parts import Taken
from tests.providers.stage import Stage, staged

pytestmark = pytest.mark.anyio

PEOPLE: Final = [f"+1415555{number:04d}" for number in range(100, 108)]
FAILS: Final = PEOPLE[2]
FAILS_AND_ARRIVES: Final = PEOPLE[4]
"""The carrier tells of it as failed first: the news of the delivery is on its way, and counts."""
WRITES_STOP: Final = PEOPLE[-1]

RATE: Final = 120
"""A message every half second: who comes last has some seconds to write before their turn."""


@pytest.mark.field(10)
@pytest.mark.field(11)
@pytest.mark.sample(3)
@pytest.mark.parametrize("part_of", CARRIERS)
async def test_a_campaign_goes_out_once_is_receipted_and_honours_a_stop(
    place: Place, part_of: type[CarrierPart]
) -> None:
    """Server, database and carrier: receipts come before the answer, late and twice, and a STOP in the middle counts.

    Chatwoot let a late receipt overwrite a better one; Rock blocked its own confirmation.
    """

    def take(stage: Stage[CarrierPart], taken: Taken) -> None:
        now = datetime.now(UTC)
        end = stage.part.receipt(taken, "failed" if taken.to == FAILS else "delivered", now)
        sent = stage.part.receipt(taken, "sent", now)
        if taken.to == FAILS_AND_ARRIVES:
            failed = stage.part.receipt(taken, "failed", now)
            stage.tell([failed, end, failed, sent])
        else:
            stage.tell([end, sent, end, sent] if len(stage.taken) % 2 else [sent, end, sent, end])
        if len(stage.taken) == 2:
            stage.tell([stage.part.text(WRITES_STOP, "Stop!", now)] * 5)

    async with staged(place, part_of(), take) as stage:
        engine, workspace_id = stage.engine, stage.workspace_id
        await engine.numbers.create(workspace_id, NewNumber(phone=SENDER))
        new = NewSmsCampaign(
            name="Spring",
            body="Hi {{first_name}}!",
            carrier=part_of.name,
            from_number=SENDER,
            rate_per_minute=RATE,
        )
        contacts = [NewRecipient(phone_number=phone, first_name="Ada") for phone in PEOPLE]
        campaign = (await engine.campaigns.create_sms(workspace_id, new, contacts)).campaign
        await engine.campaigns.start(workspace_id, campaign.id)
        await stage.reaches(campaign.id, "completed")
        confirmations = 0 if part_of.replies else 1
        reached = len(PEOPLE) - 1

        async def all_taken() -> bool:
            return len(stage.taken) == reached + confirmations

        await stage.until(all_taken)
        await stage.told()

        assert Counter(taken.to for taken in stage.taken) == Counter([*PEOPLE[:-1], *[WRITES_STOP] * confirmations])
        found = [one async for one in engine.campaigns.iter_recipients(workspace_id, campaign.id)]
        ends = {one.phone: (one.status, one.reason) for one in found}
        assert ends == {
            **dict.fromkeys(PEOPLE, ("completed", None)),
            FAILS: ("failed", part_of.failure),
            WRITES_STOP: ("skipped", "opted_out"),
        }
        done = await engine.campaigns.get(workspace_id, campaign.id)
        assert done.counters == await engine.campaigns.recount(workspace_id, campaign.id)
        assert (done.counters.successful, done.counters.failed) == (reached - 1, 1)

        for position, phone in enumerate(PEOPLE[:-1]):
            (dispatch,) = await engine.campaigns.list_dispatches(workspace_id, campaign.id, position)
            (taken,) = [one for one in stage.taken if one.to == phone]
            assert (dispatch.id, dispatch.provider_id) == (taken.dispatch_id, taken.provider_id)
            assert dispatch.report == ("failed" if phone == FAILS else "delivered")
        assert list(await engine.campaigns.list_dispatches(workspace_id, campaign.id, reached)) == []

        assert [entry.source async for entry in engine.unsubscribes.iter_all(workspace_id)] == ["keyword"]
        (written,) = await engine.messages.list_inbound(workspace_id)
        assert (written.from_number, written.body) == (WRITES_STOP, "Stop!")
        records = await engine.callbacks.list(workspace_id)
        # Two of each message, a third of the one that failed and arrived, and the STOP.
        assert len(records) == 2 * len(stage.taken) + 1 + 1
        assert {record.result for record in records} <= {"merged", "unchanged", "received"}
        answers = place.books.rows("SELECT status, purpose FROM messages")
        assert answers == [{"status": "delivered", "purpose": "opt_out_confirmation"}] * confirmations
