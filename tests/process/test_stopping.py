from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing

import pytest

from tests.process.place import Place, body
from tests.process.uploading import Upload, padded
from tests.process.waiting import wait_for

MAX_SECONDS = 10.0 + 5.0
"""A server ends within 10 s of a signal, whatever is on its way; 5 s more for a machine that is busy. One that waited
for what is on its way would need 30 s and more."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_with_every_outcome_recorded(place: Place, number: signal.Signals) -> None:
    """A signal ends the server in time, in order, without a traceback; what was on its way has its outcome."""
    place.latency_ms = 600
    campaigns = place.create(campaigns=5, recipients=100)
    server = place.serve()
    wait_for("requests on their way", lambda: len(place.books.dispatches("dispatching")) >= 5)
    begun = time.monotonic()
    status = server.stop(number)
    assert time.monotonic() - begun < MAX_SECONDS
    assert status == 0, server.errors()
    assert "Traceback" not in server.errors()
    assert place.books.dispatches("dispatching") == set()
    assert place.books.dispatches("unknown") == set()
    assert place.books.dispatches("accepted") == {entry.dispatch_id for entry in place.books.accepted()}
    assert place.books.recipients()["pending"] > 0, "there was nothing left to stop"
    place.books.check()
    # A stop is none of the campaigns' business: they go on with the next start.
    assert {place.books.campaigns()[identifier]["status"] for identifier in campaigns} == {"active"}


def test_a_stop_does_not_wait_for_a_provider_that_does_not_answer(place: Place) -> None:
    """What has no outcome when the grace is over is recorded as unknown, and is not sent again by the next start."""
    place.latency_ms = 60_000
    place.create(campaigns=1, recipients=3)
    server = place.serve()
    wait_for("a request on its way", lambda: place.books.dispatches("dispatching"))
    begun = time.monotonic()
    assert server.stop() == 0, server.errors()
    assert time.monotonic() - begun < MAX_SECONDS
    assert "Traceback" not in server.errors()
    assert place.books.dispatches("dispatching") == set()
    unknown = place.books.dispatches("unknown")
    assert unknown
    place.latency_ms = 5
    place.serve()
    wait_for("the others to be sent", lambda: not place.books.unfinished())
    assert place.books.dispatches("unknown") == unknown
    assert not unknown & {entry.dispatch_id for entry in place.books.accepted()}
    place.books.check()


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_signal_during_an_upload_ends_the_server_and_leaves_no_half_of_it(place: Place, share: float) -> None:
    """A body that is half there, or is being loaded, does not hold a stop up; no half of it stays behind."""
    server = place.serve()
    raw = padded(body(place.phones(200_000)), 16_000_000)
    upload = Upload(server, place, {"Content-Length": str(len(raw))})
    upload.send(raw[: int(len(raw) * share)])
    if share < 1:
        wait_for("the half to be taken", lambda: list(place.spool.iterdir()))
    else:
        wait_for("the loading to begin", place.books.loading)
    begun = time.monotonic()
    assert server.stop() == 0, server.errors()
    assert time.monotonic() - begun < MAX_SECONDS
    status, document = upload.answer()
    upload.close()
    assert "Traceback" not in server.errors(), server.errors()
    assert list(place.spool.iterdir()) == []
    assert place.books.loading() == 0
    assert sum(place.books.recipients().values()) == (200_000 if status == 201 else 0)
    if status != 201:
        assert status == 503
        assert document["error"]["code"] == "internal_error"
        assert document["error"]["request_id"]


def test_a_stop_is_not_held_up_by_clients_that_keep_their_connection(place: Place) -> None:
    """Connections that clients keep open without a request do not hold a stop up."""
    server = place.serve()
    with place.client(server) as client:
        assert client.get("/sms-campaigns").status_code == 200
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < MAX_SECONDS
    assert "Traceback" not in server.errors()


@pytest.mark.parametrize("sending", [False, True])
def test_a_stop_is_bounded_while_another_process_keeps_the_database_locked(place: Place, sending: bool) -> None:
    """A foreign write lock keeps neither an idle server nor one whose outcomes cannot be recorded from ending."""
    place.latency_ms = 500
    place.create(campaigns=3, recipients=50, start=sending)
    server = place.serve()
    if sending:
        wait_for("requests on their way", lambda: len(place.books.dispatches("dispatching")) >= 3)
    with closing(sqlite3.connect(place.database, isolation_level=None)) as other, place.client(server) as client:
        other.execute("BEGIN IMMEDIATE")
        wait_for("a write that waits", lambda: client.get("/readyz").status_code == 503)
        begun = time.monotonic()
        assert server.stop() == 0, server.errors()
        assert time.monotonic() - begun < MAX_SECONDS
    assert "Traceback" not in server.errors(), server.errors()
    # What could not be recorded is unknown to the next start, and is not sent again.
    again = place.serve()
    wait_for("the right to dispatch", lambda: again.health()["dispatching"])
    assert again.stop() == 0
    assert place.books.dispatches("dispatching") == set()
    place.books.check()
