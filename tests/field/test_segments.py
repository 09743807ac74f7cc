from __future__ import annotations

from typing import Any

import pytest

from outreach import NewRecipient, SmsSettingsUpdate
from outreach.models.states import RecipientStatus
from outreach.protocols import SystemClock
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches

pytestmark = pytest.mark.anyio

R = RecipientStatus
FOOTER = "Reply STOP to opt out"
ROOM = 160 - len("Hi ") - len("\n" + FOOTER)
"""What a name may have in a message of one segment; of UCS-2, 90 less."""


@pytest.mark.field(13)
@pytest.mark.parametrize(
    ("name", "segments"),
    [
        ("a" * ROOM, 1),
        ("a" * (ROOM + 1), 2),
        ("a" * (ROOM - 1) + "€", 2),
        ("a" * (ROOM - 2) + "€", 1),
        ("ç" + "a" * (ROOM - 91), 1),
        ("ç" + "a" * (ROOM - 90), 2),
        ("a" * (ROOM - 91) + "’", 1),
        ("a" * ROOM + "’", 3),
    ],
)
@pytest.mark.parametrize("cap", [1, 2, 3])
async def test_what_the_values_and_the_footer_make_of_a_text_is_counted_and_capped(
    open_storage: OpenStorage, name: str, segments: int, cap: int
) -> None:
    """Field, test 13 (postmangovsg #1362, a UCS-2 bill; Rock #6505, doubled): counted for each contact, as it goes."""
    async with dispatching(open_storage(SystemClock())) as rig:
        workspace = await given_workspace(rig.engine)
        await rig.engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=cap, footer_text=FOOTER))
        contacts: list[Any] = [
            NewRecipient(phone_number="+14155550101", first_name=name),
            NewRecipient(phone_number="+14155550102", first_name="Ada"),
        ]
        campaign = await given_campaign(rig.engine, workspace, contacts, body="Hi {{first_name}}")
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await reaches(rig.engine, campaign, "completed")
        first = (await people(rig.engine, campaign))[0]
        made = await rig.engine.campaigns.list_dispatches(workspace.id, campaign.id, 0)
        if segments > cap:
            assert (first.status, first.reason, list(made)) == (R.FAILED, "over_segment_cap", [])
        else:
            assert first.status is R.COMPLETED
            assert [(one.segments, one.body) for one in made] == [(segments, f"Hi {name}\n{FOOTER}")]
