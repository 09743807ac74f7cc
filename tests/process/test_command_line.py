from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx

from tests.process.place import Place
from tests.process.server import ServerProcess
from tests.process.waiting import wait_for

NOTICED = timedelta(seconds=1)
"""A change by the command line takes effect in the running server within so long."""

TOLERANCE = timedelta(seconds=2)
"""For a machine that is busy with other things."""

LONG = 500
"""Recipients of a campaign that is still being sent when a command has done its work: 50 s at 600 a minute."""


def wait_for_status(client: httpx.Client, status: int) -> timedelta:
    """Wait until the list is answered so; return how long that took."""
    begun = datetime.now(UTC)
    wait_for(f"status {status}", lambda: client.get("/sms-campaigns").status_code == status)
    return datetime.now(UTC) - begun


def intents_of_campaigns(place: Place) -> set[str]:
    """Return the ids of all intents for recipients of campaigns."""
    return {row["id"] for row in place.books.rows("SELECT id FROM dispatches WHERE campaign_number IS NOT NULL")}


def prove_that_it_sends(place: Place, server: ServerProcess) -> None:
    """Have a single message sent, to know that what was not sent meanwhile is not coming."""
    before = place.books.sent()
    with place.client(server) as client:
        answer = client.post("/sms", json={"to": "+14155550177", "body": "Hi", "from_number": "+14155550199"})
    assert answer.status_code == 201, answer.text
    wait_for("a single message to be sent", lambda: place.books.sent() > before)


def prove_that_it_goes_on(place: Place, server: ServerProcess) -> None:
    """Wait for more messages, then stop the server and hold its books against each other."""
    before = place.books.sent()
    wait_for("more messages", lambda: place.books.sent() >= before + 5)
    assert server.stop() == 0
    place.books.check()


def test_a_start_is_noticed_within_a_second(place: Place) -> None:
    """What the command line starts, the running server sends within a second."""
    place.serve()
    (campaign,) = place.create(campaigns=1, recipients=3, start=False)
    assert place.command("campaigns", "start", campaign)["status"] == "active"
    wait_for("the first message", place.books.sent)
    started = datetime.fromisoformat(place.books.campaigns()[campaign]["started_at"])
    assert place.books.accepted()[0].at - started < NOTICED + TOLERANCE


def test_a_pause_stops_and_a_resume_goes_on(place: Place) -> None:
    """After a pause no further intent is committed; after a resume those left are reached, once."""
    server = place.serve()
    (campaign,) = place.create(campaigns=1, recipients=LONG)
    wait_for("some messages", lambda: place.books.sent() >= 3)
    paused = place.command("campaigns", "pause", campaign)
    intents = intents_of_campaigns(place)
    assert paused["status"] == "paused"
    prove_that_it_sends(place, server)
    assert intents_of_campaigns(place) == intents
    assert place.books.recipients()["pending"] > 0
    assert place.command("campaigns", "resume", campaign)["status"] == "active"
    prove_that_it_goes_on(place, server)


def test_a_suspended_workspace_is_refused_and_sends_nothing(place: Place) -> None:
    """A suspended workspace gets 403 and its campaign rests without changing its state; lifted, it goes on."""
    server = place.serve()
    (campaign,) = place.create(campaigns=1, recipients=LONG)
    wait_for("some messages", lambda: place.books.sent() >= 3)
    place.command("workspaces", "update", place.workspace_id, "--status", "suspended")
    intents = intents_of_campaigns(place)
    with place.client(server) as client:
        assert wait_for_status(client, 403) < NOTICED + TOLERANCE
    wait_for("requests on their way to end", lambda: not place.books.dispatches("dispatching"))
    assert intents_of_campaigns(place) == intents
    assert place.books.campaigns()[campaign]["status"] == "active"
    assert place.books.recipients()["pending"] > 0
    place.command("workspaces", "update", place.workspace_id, "--status", "active")
    prove_that_it_goes_on(place, server)
