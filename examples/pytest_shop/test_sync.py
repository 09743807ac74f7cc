from __future__ import annotations

from datetime import timedelta

from outreach import EngineConfig, NewMessage, NewRecipient, NewSmsCampaign, NewWorkspace
from outreach.events import MessageStatusChanged, RecipientEnded
from outreach.sync import Outreach
from outreach.testing.clock import ShiftedClock
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


def test_a_campaign_of_tomorrow_is_sent_tomorrow() -> None:
    carrier = ScriptedCarrier(then=accept().delivered())
    clock = ShiftedClock()
    quick = EngineConfig(change_poll_seconds=0.05)
    with Outreach.open("memory://", dispatch=True, sandbox_carrier=carrier, config=quick, clock=clock) as engine:
        workspace = engine.workspaces.create(NewWorkspace(name="Test", default_region="US", request_limit=None))
        offer = NewSmsCampaign(
            name="Offer",
            body="Hi!",
            carrier="twilio",
            from_number="+14155550100",
            schedule_type="scheduled",
            scheduled_start_at=engine.now() + timedelta(days=1),
        )
        created = engine.campaigns.create_sms(workspace.id, offer, [NewRecipient(phone_number="(415) 555-0102")])
        engine.campaigns.start(workspace.id, created.campaign.id)
        with engine.events.subscribe(RecipientEnded) as events:
            assert carrier.requests == []
            clock.advance(86_400)
            assert events.next(timeout=30).status == "completed"
