from __future__ import annotations

from tests.process.place import Place
from tests.process.waiting import wait_for


def test_two_servers_may_dispatch_side_by_side(place: Place) -> None:
    """With OUTREACH_MAX_WORKERS=2 both send; when one is killed the other goes on, and nobody is reached twice."""
    place.latency_ms = 100
    first, second = place.serve("--max-workers", "2"), place.serve("--max-workers", "2")
    wait_for("both to dispatch", lambda: first.health()["dispatching"] and second.health()["dispatching"])
    place.create(campaigns=10, recipients=40)
    wait_for("them to send", lambda: place.books.sent() >= 60)
    first.kill()
    cut_off = place.books.dispatches("dispatching")
    wait_for("everybody else", lambda: not place.books.unfinished())
    assert place.books.dispatches("unknown") <= cut_off
    ended = place.books.recipients()
    assert ended["completed"] + ended.get("unknown", 0) == 400, ended
    place.books.check()
