"""The log beside a database is deleted while a server has it open: nobody is contacted twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.process.place import Place
from tests.process.test_command_line import prove_that_it_sends
from tests.process.test_copies import refused
from tests.process.waiting import PATIENCE, wait_for


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_server_whose_log_is_deleted_sends_nothing_more(place: Place, ending: str, killed: bool) -> None:
    """It says so, commands touch nothing, and what ran is paused at the next start, with all that was sent."""
    (campaign,) = place.create(campaigns=1, recipients=80)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    Path(f"{place.database}{ending}").unlink()
    assert wait_for("the refusal", lambda: server.health()["refused"]) == "log_deleted"
    sent = place.books.log.read_bytes()
    ready = httpx.get(f"{server.url}/readyz", timeout=PATIENCE)
    assert ready.status_code == 503
    assert any("log of the database was deleted" in reason for reason in ready.json()["reasons"])
    assert ready.json()["storage"]["write_error"] == "database_log_deleted"
    assert "was deleted or replaced while it is open" in server.errors()
    if ending == "-wal":
        said = refused(place, "campaigns", "pause", campaign)
        assert "was deleted while another process has it open" in said
        assert "Traceback" not in said
    if killed:
        server.kill()
    else:
        assert server.stop() == 0
    assert place.books.log.read_bytes() == sent
    before = place.books.sent()
    again = place.serve()
    prove_that_it_sends(place, again)
    assert place.books.sent() == before + 1, "the campaign went on by itself"
    found = place.books.campaigns()[campaign]
    assert (found["status"], found["pause_reason"]) == ("paused", "restored")
    place.command("campaigns", "resume", campaign)
    wait_for("everybody", lambda: not place.books.unfinished())
    assert max(Counter(entry.to for entry in place.books.accepted()).values()) == 1
    place.books.check_counters()


def test_what_ran_is_paused_though_the_server_is_killed_as_soon_as_it_knows(place: Place) -> None:
    """Its last requests have not ended then."""
    (campaign,) = place.create(campaigns=1, recipients=80)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    Path(f"{place.database}-wal").unlink()
    wait_for("the log to be missed", lambda: "was deleted or replaced while it is open" in server.errors())
    server.kill()
    prove_that_it_sends(place, place.serve())
    found = place.books.campaigns()[campaign]
    assert (found["status"], found["pause_reason"]) == ("paused", "restored")
    assert max(Counter(entry.to for entry in place.books.accepted()).values()) == 1
