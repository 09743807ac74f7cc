from __future__ import annotations

import attrs
import pytest

from outreach.models.settings import SmsSettingsUpdate
from outreach.testing.scripted import ScriptedCarrier, accept
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import QUICK, people, reaches, sending

pytestmark = pytest.mark.virtual_time

HASTY = attrs.evolve(QUICK, receipt_timeout_seconds=0.3)


async def test_a_campaign_whose_receipts_never_come_ends_when_they_have_been_waited_for(
    open_storage: OpenStorage,
) -> None:
    """The wait begins with the answer, after the last wave, and ends without other news.

    docs/delivery-contract.md#rule-13.
    """
    carrier = ScriptedCarrier([accept(seconds=0.4)] * 3)
    async with sending(
        open_storage(clock_of_loop()), carrier=carrier, config=HASTY, settings=SmsSettingsUpdate(retry_enabled=True)
    ) as (rig, campaign):
        done = await reaches(rig.engine, campaign, "completed")
        assert {(one.status, one.reason) for one in await people(rig.engine, campaign)} == {("completed", "no_receipt")}
    assert done.counters.successful == 3
