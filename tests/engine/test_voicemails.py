from __future__ import annotations

from typing import Any

import pytest

from outreach import Outreach
from outreach.models.states import CallStatus, RecipientStatus
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, calls_of, given_agent, given_call_settings, given_calls, hear, start_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_workspace, people, reaches

pytestmark = pytest.mark.virtual_time

MACHINE: dict[str, Any] = {"status": CallStatus.COMPLETED, "answered_by": "machine", "outcome": "voicemail"}
LEAVES: dict[str, Any] = {"voicemail": "leave_message", "voicemail_message": "Please call us back."}
ENDED = (RecipientStatus.COMPLETED, "voicemail")
TRIED = (RecipientStatus.FAILED, "voicemail")


@pytest.mark.parametrize(
    ("agent", "changes", "said", "calls", "end"),
    [
        (LEAVES, {}, None, 1, ENDED),
        (LEAVES, {"retry_voicemail": True}, None, 3, TRIED),
        ({"voicemail": "hang_up"}, {}, None, 3, TRIED),
        ({}, {}, None, 3, TRIED),
        # What the provider says of this call goes first: a menu takes no message, and an agent may talk to a machine.
        (LEAVES, {}, False, 3, TRIED),
        ({"voicemail": "hang_up"}, {}, True, 1, ENDED),
    ],
)
async def test_a_voicemail_that_got_the_message_is_not_called_again(
    open_storage: OpenStorage,
    agent: dict[str, Any],
    changes: dict[str, Any],
    said: bool | None,
    calls: int,
    end: tuple[RecipientStatus, str],
) -> None:
    """Unless the campaign asks for it; one that got none is called again while attempts are left."""
    voice = ScriptedVoice(look_up="none")
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        await given_call_settings(rig, workspace, attempts=3)
        agent_id = await given_agent(rig.engine, workspace, **agent)
        campaign = await start_calls(rig.engine, workspace, 1, agent_id=agent_id, **changes)
        for number in range(calls):
            await voice.wait_for_requests(number + 1)
            hear(voice, voice.requests[number], **MACHINE, message_left=said)
        done = await reaches(rig.engine, campaign, "completed")
        person = (await people(rig.engine, campaign))[0]
        assert (person.status, person.reason, person.successful) == (*end, False)
        assert [one.outcome for one in await calls_of(rig, campaign)] == ["voicemail"] * calls
        assert done.counters.successful == 0


async def test_calling_a_voicemail_again_is_off_by_default(engine: Outreach) -> None:
    """It is stored with the campaign."""
    workspace = await given_workspace(engine)
    usual = await given_calls(engine, workspace, 1)
    again = await given_calls(engine, workspace, 1, retry_voicemail=True)
    stored = [(await engine.campaigns.get(workspace.id, one.id)).retry_voicemail for one in (usual, again)]
    assert stored == [False, True]
