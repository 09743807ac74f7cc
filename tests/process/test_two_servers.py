from __future__ import annotations

from tests.process.place import Place
from tests.process.waiting import wait_for


def test_of_two_servers_on_one_file_one_dispatches_and_the_other_takes_over(place: Place) -> None:
    """One of two servers dispatches, both answer; when it is killed the other goes on, and nobody is reached twice."""
    place.latency_ms = 100
    first = place.serve()
    second = place.serve()
    assert first.health()["dispatching"]
    assert not second.health()["dispatching"]
    identifiers = place.create(campaigns=10, recipients=40)
    with place.client(second) as client:
        listed = client.get("/sms-campaigns").json()["data"]
        assert {campaign["id"] for campaign in listed} == set(identifiers)
    wait_for("the first to send", lambda: place.books.sent() >= 30)
    assert not second.health()["dispatching"]
    first.kill()
    cut_off = place.books.dispatches("dispatching")
    wait_for("the second to take over", lambda: second.health()["dispatching"])
    wait_for("everybody else", lambda: not place.books.unfinished())
    assert place.books.dispatches("unknown") == cut_off
    ended = place.books.recipients()
    assert ended["completed"] + ended["unknown"] == 400, ended
    place.books.check()


def test_a_server_that_stops_in_order_hands_over_without_unknowns(place: Place) -> None:
    """When the dispatching server is stopped the other takes over, and everybody is reached once."""
    first, second = place.serve(), place.serve()
    place.create(campaigns=5, recipients=20)
    wait_for("the first to send", lambda: place.books.sent() >= 10)
    assert first.stop() == 0
    wait_for("the second to send the rest", lambda: not place.books.unfinished())
    assert second.health()["dispatching"]
    assert "did not shut down cleanly" not in second.errors()
    assert place.books.recipients() == {"completed": 100}
    place.books.check()


def test_a_server_asked_not_to_dispatch_sends_nothing(place: Place) -> None:
    """With --no-dispatch a server answers and leaves the sending to another."""
    silent = place.serve("--no-dispatch")
    place.create(campaigns=1, recipients=5)
    assert not silent.health()["dispatching"]
    sending = place.serve()
    wait_for("the other to send", lambda: not place.books.unfinished())
    assert sending.health()["dispatching"]
    assert not silent.health()["dispatching"]
    assert place.books.recipients() == {"completed": 5}


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
