from __future__ import annotations

from datetime import timedelta

import pytest

from outreach import MessageStatus, Outreach
from outreach.models.call import Call
from outreach.models.message import Message
from outreach.protocols import SystemClock
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import WORKSPACE_ID, make_call, make_message, make_provider_throttle, make_workspace
from outreach_server.cli.upkeep.throttles import throttled_until, why_queued

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("fresh", "tried"),
    [
        (make_message(carrier="twilio"), make_message(carrier="twilio", reason="temporary")),
        (make_call(provider="vapi"), make_call(provider="vapi", error="temporary")),
    ],
)
async def test_why_something_waits_is_reported_as_far_as_it_is_known(
    fresh: Message | Call, tried: Message | Call
) -> None:
    """The throttle goes before the last answer; of a request that no process took nothing is known."""
    clock = SystemClock()
    provider = fresh.provider if isinstance(fresh, Call) else fresh.carrier
    storage = MemoryStorage(clock=clock)
    async with Outreach(storage) as engine:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace(id=WORKSPACE_ID)))
        assert await why_queued(engine, fresh) is None
        told = await why_queued(engine, tried)
        assert told is not None
        assert told.startswith(f"{provider} has not accepted it (temporary)")
        until = clock.now() + timedelta(hours=1)
        hold = make_provider_throttle(workspace_id=WORKSPACE_ID, provider=provider, until=until)
        await storage.write(lambda tx: tx.provider_throttles.put(hold))
        for item in (fresh, tried):
            told = await why_queued(engine, item)
            assert told is not None
            assert f"until {until:%Y-%m-%d %H:%M:%S} UTC" in told
            assert f"accounts connect {WORKSPACE_ID} {provider}" in told
            assert await throttled_until(engine, item) == until
        gone = make_message(carrier="twilio", status=MessageStatus.DELIVERED)
        assert await throttled_until(engine, gone) is None
