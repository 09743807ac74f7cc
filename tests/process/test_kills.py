from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time

import httpx
import pytest

from tests.process.place import Place, body
from tests.process.waiting import PATIENCE, wait_for

CAMPAIGNS, RECIPIENTS = 12, 30
KILLS = 3
MOST_UNKNOWN = 100
"""Intents without an outcome that one process may have at a time: what one kill can leave unknown."""


@pytest.mark.parametrize("seed", [1, 20261120])
def test_kills_reach_nobody_twice_and_lose_nobody(place: Place, seed: int) -> None:
    """Killed again and again while it sends, the server goes on; whoever it asked for unheard of is unknown."""
    rng = random.Random(seed)
    place.latency_ms = 150
    place.create(campaigns=CAMPAIGNS, recipients=RECIPIENTS)
    unknown: set[str] = set()
    for kill in range(KILLS):
        told = f"seed {seed}, kill {kill}"
        before = place.books.sent()
        server = place.serve()
        wait_for(f"{told}: the next message", lambda before=before: place.books.sent() > before)  # type: ignore[misc]
        time.sleep(rng.uniform(0, 0.6))  # the moment of the kill, not a wait for anything
        server.kill()
        cut_off = place.books.dispatches("dispatching")
        assert len(cut_off) <= MOST_UNKNOWN, told
        assert place.books.dispatches("unknown") == unknown, told
        unknown |= cut_off
    assert unknown, f"seed {seed}: no kill came while a request was on its way"
    assert place.books.unfinished(), f"seed {seed}: all was sent before the last kill"
    place.serve()
    wait_for(f"seed {seed}: everybody else", lambda: not place.books.unfinished(), seconds=2 * PATIENCE)
    assert place.books.dispatches("unknown") == unknown, f"seed {seed}"
    ended = place.books.recipients()
    assert ended["unknown"] == len(unknown), f"seed {seed}: {ended}"
    assert ended["completed"] + ended["unknown"] == CAMPAIGNS * RECIPIENTS, f"seed {seed}: {ended}"
    place.books.check()


def test_what_is_unknown_after_a_kill_was_asked_at_most_once(place: Place) -> None:
    """A kill before the carrier has heard and one after it look alike: unknown, and nothing more is sent to them."""
    place.latency_ms = 400
    place.create(campaigns=10, recipients=10)
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
