"""Streams of events block a thread until there is one, or until they are closed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import assert_type

import pytest

from outreach import InvalidRequest, NewRecipient, NewSmsCampaign, NewWorkspace
from outreach.events import CampaignStatusChanged, OptedOut, RecipientEnded
from outreach.sync import NamedStream, Outreach, fail_after

CAMPAIGN = NewSmsCampaign(name="Spring", body="Hi", carrier="twilio", from_number="+14155550199")


def test_a_campaign_is_followed_to_its_end(engine: Outreach) -> None:
    """In the order of the commits, as a loop over the stream."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    created = engine.campaigns.create_sms(workspace.id, CAMPAIGN, [NewRecipient(phone_number="+14155550102")])
    told: list[str] = []
    with engine.events.subscribe(CampaignStatusChanged, RecipientEnded) as stream, fail_after(60):
        engine.campaigns.start(workspace.id, created.campaign.id)
        for event in stream:
            told.append(f"{type(event).__name__} {event.status}")
            if isinstance(event, CampaignStatusChanged) and event.status == "completed":
                break
    assert told == ["CampaignStatusChanged active", "RecipientEnded completed", "CampaignStatusChanged completed"]


def test_a_stream_goes_on_after_a_timeout_and_from_a_position(engine: Outreach) -> None:
    """Nothing is lost between."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    with engine.events.subscribe(OptedOut) as stream:
        with pytest.raises(TimeoutError):
            stream.next(timeout=0.05)
        engine.unsubscribes.add(workspace.id, "+14155550102", "+14155550103")
        first = stream.next(timeout=60)
        position = stream.position
    with engine.events.subscribe(OptedOut, since=position) as later:
        second = later.next(timeout=60)
        assert later.position >= second.number > first.number


def test_closing_a_stream_ends_it_for_the_thread_that_waits(engine: Outreach) -> None:
    """And so does closing the engine."""
    with ThreadPoolExecutor(2) as pool:
        with engine.events.subscribe() as first, engine.events.subscribe() as second:
            waiting = [pool.submit(list, stream) for stream in (first, second)]
            first.close()
            assert waiting[0].result(60) == []
            engine.close()
            assert waiting[1].result(60) == []
        assert list(second) == []


def test_a_stream_that_was_not_entered_says_so(engine: Outreach) -> None:
    """Else the whole history would be told."""
    stream = engine.events.subscribe()
    with pytest.raises(InvalidRequest, match=r": with engine\.events\.subscribe"):
        next(stream)
    with stream, pytest.raises(InvalidRequest, match="entered once"), stream:
        pass


def test_a_thread_that_listens_ends_with_the_engine(engine: Outreach) -> None:
    """The thread in the background of an app needs no signal of its own."""

    def listen() -> None:
        with engine.events.subscribe() as stream:
            begun.set()
            for _ in stream:
                pass

    begun = threading.Event()
    thread = threading.Thread(target=listen)
    thread.start()
    assert begun.wait(60)
    engine.close()
    thread.join(60)
    assert not thread.is_alive()


def test_a_named_subscription_goes_on_where_it_was_acknowledged(engine: Outreach) -> None:
    """What was not acknowledged is told again."""
    workspace = engine.workspaces.create(NewWorkspace(name="Acme"))
    with engine.events.subscribe(OptedOut, name="billing") as stream:
        assert_type(stream, NamedStream[OptedOut])
        engine.unsubscribes.add(workspace.id, "+14155550102", "+14155550103")
        first = stream.next(timeout=60)
        assert stream.ack()
        second = next(stream)
    with engine.events.subscribe(OptedOut, name="billing") as stream:
        again = stream.next(timeout=60)
        assert stream.name == "billing"
    assert isinstance(first, OptedOut)
    assert first != second == again
    assert [one.name for one in engine.events.list_subscriptions()] == ["billing"]
    engine.events.remove_subscription("billing")
    assert list(engine.events.list_subscriptions()) == []
