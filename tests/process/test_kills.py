from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from datetime import timedelta

import httpx
import pytest

from tests.pace import assert_pace
from tests.process.killing import AT_ONCE, Kills
from tests.process.place import Place, body
from tests.process.waiting import PATIENCE, wait_for

CAMPAIGNS, RECIPIENTS, RATE = 20, 100, 600
KILLS = 20

MAX_MESSAGES = 50
"""A process is killed soon after fewer messages than this, so that the last one still has something to send."""


@pytest.mark.timeout(300)
def test_twenty_kills_reach_nobody_twice_and_lose_nobody(place: Place) -> None:
    """The server goes on after twenty kills at random moments; each request cut off is listed, and settled once.

    The look-up of the simulators is from their log and therefore proves what never arrived, but an unknown dispatch is
    looked up a minute after its intent: here after the last kill, by an engine that is told not to wait.
    """
    kills = Kills(place=place)
    rng = random.Random(kills.seed)
    everybody = CAMPAIGNS * RECIPIENTS
    place.latency_ms = 150
    place.create(campaigns=CAMPAIGNS, recipients=RECIPIENTS, rate=RATE)
    for _ in range(KILLS):
        server = kills.started(place.serve)
        more = rng.randrange(MAX_MESSAGES)
        wait_for(kills.told(f"{more} messages"), place.books.more_sent(more))
        time.sleep(rng.uniform(0, 0.1))  # the moment of the kill, not a wait for anything
        kills.kill(server)
    assert kills.cut_off, kills.told("no kill came while a request was on its way")
    engine = kills.started(lambda: place.dispatch(reconcile_delay_seconds=3600.0))
    wait_for(kills.told("everybody else"), lambda: not place.books.unfinished(), seconds=2 * PATIENCE)
    kills.check_listed()
    place.books.check()
    unknown = len(place.books.dispatches("unknown"))
    assert place.books.recipients() == {"completed": everybody - unknown, "unknown": unknown}, kills.told("lost")
    engine.kill()
    place.latency_ms = 5
    place.dispatch(**AT_ONCE)
    wait_for(
        kills.told("the unknown ones to be settled"),
        lambda: place.books.recipients() == {"completed": everybody},
        seconds=2 * PATIENCE,
    )
    place.books.check()
    assert place.books.sent() == everybody, kills.told("sent")
    kills.check_settled()
    for moments in place.books.starts().values():
        assert_pace(moments, timedelta(minutes=1) / RATE)


def test_what_is_unknown_after_a_kill_was_asked_at_most_once(place: Place) -> None:
    """A kill before the carrier has heard and one after it look alike: unknown, and nothing more is sent to them."""
    place.latency_ms = 400
    place.create(campaigns=10, recipients=40)
    server = place.serve()
    wait_for("messages that were heard and not answered", lambda: place.books.sent() >= 5)
    server.kill()
    cut_off = place.books.dispatches("dispatching")
    heard = {entry.dispatch_id for entry in place.books.accepted()}
    assert cut_off & heard, "no request was heard and not answered"
    assert cut_off - heard, "no request was unheard"
    place.latency_ms = 5
    place.serve()
    wait_for("the others to be sent", lambda: not place.books.unfinished())
    heard_in_the_end = {entry.dispatch_id for entry in place.books.accepted()}
    assert cut_off & heard_in_the_end == cut_off & heard
    assert place.books.dispatches("unknown") == cut_off
    place.books.check()


def test_a_kill_while_a_campaign_is_loaded_leaves_none(place: Place) -> None:
    """A campaign whose loading was cut off is never seen, its half is never sent to, and is deleted when it is old."""
    server = place.serve()
    raw = body(place.phones(60_000))

    def send() -> None:
        with contextlib.suppress(httpx.HTTPError), place.client(server) as client:
            client.post("/sms-campaigns", json=raw)

    sender = threading.Thread(target=send)
    sender.start()
    wait_for("the loading to begin", lambda: place.books.recipients()["pending"] >= 5000)
    server.kill()
    sender.join(PATIENCE)
    assert place.books.loading() == 1
    server = place.serve()
    with place.client(server) as client:
        assert client.get("/sms-campaigns").json()["data"] == []
    wait_for("its temporary files to be swept", lambda: not list(place.spool.iterdir()))
    server.kill()
    with contextlib.closing(sqlite3.connect(place.database, timeout=PATIENCE)) as connection, connection:
        connection.execute("UPDATE campaigns SET loading_until = '2026-01-01T00:00:00.000000Z'")
    place.serve()
    wait_for("what is left of it to be deleted", lambda: not place.books.loading())
    assert not place.books.recipients()
    assert place.books.sent() == 0
