from __future__ import annotations

from outreach import EngineConfig, NewMessage, NewWorkspace
from outreach.events import MessageStatusChanged
from outreach.sync import Outreach
from outreach.testing.scripted import ScriptedCarrier, accept


def test_a_message_is_delivered() -> None:
    carrier = ScriptedCarrier(then=accept().delivered())
    quick = EngineConfig(change_poll_seconds=0.05)
    with Outreach.open("memory://", dispatch=True, sandbox_carrier=carrier, config=quick) as engine:
        workspace = engine.workspaces.create(NewWorkspace(name="Test", default_region="US", request_limit=None))
        with engine.events.subscribe(MessageStatusChanged) as events:
            engine.messages.send(workspace.id, NewMessage(to="(415) 555-0102", body="Hi!"))
            assert events.next(timeout=30).status == "delivered"
    assert [message.body for message in carrier.requests] == ["Hi!"]
