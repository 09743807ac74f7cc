from __future__ import annotations

import os
import signal
import time
from datetime import datetime

from tests.process.place import Place
from tests.process.waiting import wait_for

LONGER_THAN_AN_INTENT_LASTS = 6.0


def test_a_process_that_stood_still_sends_nothing_that_is_out_of_date(place: Place) -> None:
    """After a suspension no request starts whose intent has run out meanwhile, and everybody is reached once.

    One may: the request that had passed its last look at the clock when the process was stopped. Between that look and
    the first byte nothing can stand that no suspension could fall into, and one loop is at one such place at a time.
    """
    place.latency_ms = 100
    place.create(campaigns=20, recipients=20)
    server, other = place.serve(), place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 20)
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        time.sleep(LONGER_THAN_AN_INTENT_LASTS)  # what is tested is that time has passed
        assert not other.health()["dispatching"], "the other took over from a process that still holds the lock"
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    wait_for("everybody", lambda: not place.books.unfinished())
    assert place.books.recipients() == {"completed": 400}
    place.books.check()
    valid_until = {row["id"]: row["valid_until"] for row in place.books.rows("SELECT id, valid_until FROM dispatches")}
    late = [it for it in place.books.accepted() if it.at > datetime.fromisoformat(valid_until[it.dispatch_id])]
    assert len(late) <= 1
